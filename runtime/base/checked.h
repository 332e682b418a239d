/* runtime/base/checked.h: arithmetic on sizes that came from outside. */
#ifndef TL_RUNTIME_BASE_CHECKED_H
#define TL_RUNTIME_BASE_CHECKED_H
#include <stdbool.h>
#include <stdint.h>

/* True when the result does not fit; *out is then untouched. */
static inline bool tl_mul_overflows(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return true;
    *out = r;
    return false;
}
static inline bool tl_add_overflows(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;
    if (__builtin_add_overflow(a, b, &r))
        return true;
    *out = r;
    return false;
}
static inline bool tl_sub_overflows(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;
    if (__builtin_sub_overflow(a, b, &r))
        return true;
    *out = r;
    return false;
}
static inline int64_t tl_floordiv(int64_t a, int64_t b) /* b != 0; rounds towards minus infinity */
{
    int64_t q = a / b;
    return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}
static inline int64_t tl_floormod(int64_t a, int64_t b) /* has the sign of b */
{
    return a - tl_floordiv(a, b) * b;
}
static inline int64_t tl_ceildiv(int64_t a, int64_t b)
{
    return -tl_floordiv(-a, b);
}
/* The greatest common divisor, 0 of 0 and 0; of numbers of which it would be 2^63, 2^62. */
static inline int64_t tl_gcd(int64_t a, int64_t b)
{
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    while (y != 0) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x > INT64_MAX ? INT64_MAX / 2 + 1 : (int64_t)x;
}
static inline int64_t tl_min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t tl_max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
