/* runtime/base/random.c: splitmix64 and what is drawn from it. */
#include "runtime/base/random.h"
#include <assert.h>
#include <math.h>

tl_random tl_random_make(uint64_t seed)
{
    return (tl_random){ seed };
}

uint64_t tl_random_next(tl_random *r)
{
    uint64_t z = r->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

int64_t tl_random_below(tl_random *r, int64_t n)
{
    assert(n >= 1);
    uint64_t range = (uint64_t)n, limit = UINT64_MAX - UINT64_MAX % range, x;
    do
        x = tl_random_next(r);
    while (x >= limit);
    return (int64_t)(x % range);
}

double tl_random_unit(tl_random *r)
{
    return (double)(tl_random_next(r) >> 11) * 0x1p-53;
}

double tl_random_normal(tl_random *r)
{
    /* Box and Muller 1958; one of the pair is thrown away so that the state is all there is */
    double u = 1.0 - tl_random_unit(r), v = tl_random_unit(r);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}
