/* tuner/learn/losses.c: what is wrong with predictions of a group. Sums are doubles, in the group's order. */
#include "tuner/learn/losses.h"
#include <math.h>
#include <stdlib.h>

static const double most_deviations = 3, steepness = 8;

double tl_loss_likelihood(const tl_loss_group *g, double *constant)
{
    double sum = 0, weight = 0, loss = 0;
    *constant = 0;
    for (int i = 0; i < g->count; i++) {
        if (!isfinite(g->label[i]))
            continue;
        sum += (double)g->weight[i] * ((double)g->label[i] - (double)g->mean[i]);
        weight += (double)g->weight[i];
    }
    if (!(weight > 0))
        return 0;
    *constant = sum / weight;
    double all = 0; /* of derivatives by the distance: what the constant takes back */
    for (int i = 0; i < g->count; i++) {
        if (!isfinite(g->label[i]))
            continue;
        const double w = (double)g->weight[i], error = (double)g->error[i];
        const double own = exp((double)g->spread[i]), variance = own + error * error;
        const double distance = (double)g->label[i] - (double)g->mean[i] - *constant;
        const double z = distance / sqrt(variance), far = fabs(z) > most_deviations;
        const double square = far ? most_deviations * (2 * fabs(z) - most_deviations) : z * z;
        loss += w * 0.5 * (square + log(variance));
        const double slope = far ? copysign(most_deviations, z) : z; /* of square / 2 by z */
        const double by_distance = w * slope / sqrt(variance);
        g->d_mean[i] -= (float)by_distance;
        all += by_distance;
        g->d_spread[i] += (float)(w * 0.5 * (1 - slope * z) * own / variance);
    }
    for (int i = 0; i < g->count; i++)
        if (isfinite(g->label[i]))
            g->d_mean[i] += (float)(all * (double)g->weight[i] / weight);
    return loss;
}

/* --- ranking ---------------------------------------------------------------------------------------------------------- */

typedef struct {
    double mean, label, gain, discount;
    int index;
} ranked;

static int by_mean(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->mean != y->mean)
        return x->mean < y->mean ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static int by_label(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->label != y->label)
        return x->label < y->label ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Of the pair (better, worse). */
static double rank_pair(const tl_loss_group *g, const ranked *better, const ranked *worse,
                        double weight, double even)
{
    const int b = better->index, w = worse->index;
    const double error = hypot((double)g->error[b], (double)g->error[w]);
    const double sure = isfinite(worse->label) && error > 0
                            ? 1 - exp(-0.5 * pow((worse->label - better->label) / error, 2))
                            : 1;
    const double by =
        sure * sqrt((double)g->weight[b] * (double)g->weight[w]) *
        (weight * fabs(better->discount - worse->discount) * (better->gain - worse->gain) + even);
    const double x = steepness * (worse->mean - better->mean);
    const double slope = -steepness * by / (1 + exp(x));
    g->d_mean[w] += (float)slope;
    g->d_mean[b] -= (float)slope;
    return by * (x > 0 ? log1p(exp(-x)) : -x + log1p(exp(x)));
}

double tl_loss_rank(const tl_loss_group *g, double weight, double even)
{
    int count = 0;
    double most = 0, loss = 0;
    ranked *r = calloc((size_t)g->count + 1, sizeof *r);
    for (int i = 0; i < g->count && r != NULL; i++)
        if (!isnan(g->label[i]))
            r[count++] =
                (ranked){ .mean = (double)g->mean[i], .label = (double)g->label[i], .index = i };
    if (count < 2) {
        free(r);
        return 0;
    }
    qsort(r, (size_t)count, sizeof *r, by_label);
    if (!isfinite(r[0].label)) { /* nothing is better than anything */
        free(r);
        return 0;
    }
    for (int i = 0; i < count; i++) {
        r[i].gain = exp2(exp(r[0].label - r[i].label)) - 1;
        most += r[i].gain / log2(2.0 + i);
    }
    qsort(r, (size_t)count, sizeof *r, by_mean);
    for (int i = 0; i < count; i++) {
        r[i].gain /= most;
        r[i].discount = 1 / log2(2.0 + i);
    }
    /* even pairs count as much a program in a long list as in a short one */
    for (int i = 0; i < count; i++)
        for (int j = i + 1; j < count; j++)
            if (r[i].label < r[j].label)
                loss += rank_pair(g, &r[i], &r[j], weight * count, even / count);
            else if (r[j].label < r[i].label)
                loss += rank_pair(g, &r[j], &r[i], weight * count, even / count);
    free(r);
    return loss;
}
