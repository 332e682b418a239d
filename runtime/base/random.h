/* runtime/base/random.h: seeded random numbers (splitmix64), the same on every machine. */
#ifndef TL_RUNTIME_BASE_RANDOM_H
#define TL_RUNTIME_BASE_RANDOM_H
#include <stdint.h>

typedef struct {
    uint64_t state;
} tl_random;

tl_random tl_random_make(uint64_t seed);
uint64_t tl_random_next(tl_random *r);
int64_t tl_random_below(tl_random *r, int64_t n); /* 0 .. n-1, n >= 1, without bias */
double tl_random_unit(tl_random *r);              /* [0, 1) */
double tl_random_normal(tl_random *r);            /* mean 0, deviation 1 */

#endif
