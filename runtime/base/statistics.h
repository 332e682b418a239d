/* runtime/base/statistics.h: what samples say: quantiles, the median and how sure it is, whether two samples differ. */
#ifndef TL_RUNTIME_BASE_STATISTICS_H
#define TL_RUNTIME_BASE_STATISTICS_H
#include <stdint.h>

int64_t tl_quantile(const int64_t *sorted, int count, double q); /* nearest rank */

/* Whether two samples come from the same distribution: the rank test of Mann and Whitney (1947), by its normal
 * approximation with ties and continuity taken into account. Two-sided p; 1 when one sample is empty. */
double tl_mann_whitney(const double *a, int a_count, const double *b, int b_count);

/* The median and where it lies with 95 % confidence, whatever the values are distributed like; infinite ends: too few
 * values (5 or less) to say. Sorts the values. */
typedef struct {
    double median, low, high;
} tl_interval;
tl_interval tl_median_interval(double *values, int count);

#endif
