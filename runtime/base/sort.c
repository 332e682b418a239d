/* runtime/base/sort.c: numbers in order. */
#include "runtime/base/sort.h"
#include <stdlib.h>

static int smallest_first(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

void tl_sort_doubles(double *values, int count)
{
    if (count > 0)
        qsort(values, (size_t)count, sizeof *values, smallest_first);
}
