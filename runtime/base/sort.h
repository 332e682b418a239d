/* runtime/base/sort.h: numbers in order. */
#ifndef TL_RUNTIME_BASE_SORT_H
#define TL_RUNTIME_BASE_SORT_H

void tl_sort_doubles(double *values,
                     int count); /* the smallest first; no NaNs; count < 1: nothing */

#endif
