/* runtime/base/statistics.c: whether two samples differ by more than chance; how sure a median is. */
#include "runtime/base/statistics.h"
#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include "runtime/base/sort.h"

int64_t tl_quantile(const int64_t *sorted, int count, double q)
{
    int rank = (int)ceil(q * count) - 1;
    return sorted[rank < 0 ? 0 : rank >= count ? count - 1 : rank];
}

typedef struct {
    double value;
    bool of_a;
} ranked;

static int by_value(const void *a, const void *b)
{
    double x = ((const ranked *)a)->value, y = ((const ranked *)b)->value;
    return x < y ? -1 : x > y;
}

/* H. B. Mann, D. R. Whitney: On a test of whether one of two random variables is stochastically larger than the other
 * (Annals of Mathematical Statistics 18, 1947). U from the sum of ranks; its mean is mn/2 and its variance
 * mn/12 ((N+1) - sum(t^3-t)/(N(N-1))) over groups of t equal values. */
double tl_mann_whitney(const double *a, int a_count, const double *b, int b_count)
{
    assert(a_count >= 0 && b_count >= 0);
    int count = a_count + b_count;
    ranked *all = a_count > 0 && b_count > 0 ? malloc(sizeof *all * (size_t)count) : NULL;
    if (all == NULL)
        return 1;
    for (int i = 0; i < count; i++)
        all[i] = (ranked){ i < a_count ? a[i] : b[i - a_count], i < a_count };
    qsort(all, (size_t)count, sizeof *all, by_value);

    double rank_sum = 0, ties = 0;
    for (int i = 0; i < count;) {
        int end = i;
        while (end < count && all[end].value == all[i].value)
            end++;
        double t = end - i, rank = (i + 1 + end) / 2.0; /* the mean of ranks i+1 .. end */
        for (; i < end; i++)
            rank_sum += all[i].of_a ? rank : 0;
        ties += t * t * t - t;
    }
    free(all);

    double m = a_count, n = b_count, total = m + n;
    double u = rank_sum - m * (m + 1) / 2, mean = m * n / 2;
    double variance = m * n / 12 * ((total + 1) - ties / (total * (total - 1)));
    double distance = fabs(u - mean) - 0.5;
    if (!(variance > 0) || distance <= 0)
        return 1;
    return erfc(distance / sqrt(variance) / sqrt(2));
}

/* The number of values below the median is binomial, whatever they are distributed like: order statistics k and n+1-k
 * contain it with P(k <= B < n+1-k), B of n tosses of a coin. The largest k for which that is 95 % or more. */
tl_interval tl_median_interval(double *values, int count)
{
    assert(count >= 0);
    tl_sort_doubles(values, count);
    if (count < 1)
        return (tl_interval){ NAN, -INFINITY, INFINITY };
    tl_interval i = { (values[(count - 1) / 2] + values[count / 2]) / 2, -INFINITY, INFINITY };
    double below = 0; /* P(B < k) for the next k */
    for (int k = 1; 2 * k <= count; k++) {
        below += exp(lgamma(count + 1) - lgamma(k) - lgamma(count - k + 2) - count * log(2));
        if (2 * below > 0.05)
            break;
        i.low = values[k - 1];
        i.high = values[count - k];
    }
    return i;
}
