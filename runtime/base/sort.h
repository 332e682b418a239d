/* runtime/base/sort.h: numbers in order. */
#ifndef TL_RUNTIME_BASE_SORT_H
#define TL_RUNTIME_BASE_SORT_H

/* The smallest first; no NaNs; count < 1: nothing. */
void tl_sort_doubles(double *values, int count);

#endif
