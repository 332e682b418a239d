/* schedule/mixed_radix.c: digits of a variable, recognised in canonical index expressions. */
#include "schedule/mixed_radix.h"
#include <assert.h>
#include <stdlib.h>
#include "runtime/base/checked.h"

bool tl_digit_of(const tl_expr *e, tl_digit *out)
{
    if (e->kind == TL_EXPR_VAR) {
        *out = (tl_digit){ e->u.var, 1, 0 };
        return true;
    }
    int64_t c;
    tl_digit inner;
    if ((e->kind != TL_EXPR_FLOORDIV && e->kind != TL_EXPR_FLOORMOD) ||
        !tl_const_int(e->args[1], &c) || c < 1 || !tl_digit_of(e->args[0], &inner))
        return false;

    if (e->kind == TL_EXPR_FLOORMOD) {
        if (inner.modulus != 0 && inner.modulus % c != 0)
            return false;
        *out = (tl_digit){ inner.var, inner.divisor, c };
        return true;
    }
    if (inner.modulus != 0 && inner.modulus % c != 0)
        return false;
    int64_t divisor;
    if (tl_mul_overflows(inner.divisor, c, &divisor))
        return false;
    *out = (tl_digit){ inner.var, divisor, inner.modulus / c };
    return true;
}

int64_t tl_digit_extent(tl_digit digit, int64_t extent)
{
    int64_t top = tl_ceildiv(extent, digit.divisor);
    return digit.modulus == 0 ? top : tl_min64(top, digit.modulus);
}

/* The first power that the digit no longer covers. */
static int64_t end_of(tl_digit d)
{
    int64_t end;
    if (d.modulus == 0 || tl_mul_overflows(d.divisor, d.modulus, &end))
        return INT64_MAX;
    return end;
}

bool tl_digits_overlap(tl_digit a, tl_digit b)
{
    return a.divisor < end_of(b) && b.divisor < end_of(a);
}

static int by_divisor(const void *a, const void *b)
{
    int64_t x = ((const tl_digit *)a)->divisor, y = ((const tl_digit *)b)->divisor;
    return (x > y) - (x < y);
}

bool tl_digits_complete(tl_digit *digits, int count, int64_t extent)
{
    assert(count >= 0 && (count == 0 || digits != NULL));
    if (extent <= 1)
        return true;
    qsort(digits, (size_t)count, sizeof digits[0], by_divisor);
    int64_t known = 1; /* v % known is determined */
    for (int i = 0; i < count && known < extent; i++) {
        if (digits[i].divisor > known || known % digits[i].divisor != 0)
            return false;
        int64_t end = end_of(digits[i]);
        if (end == INT64_MAX || end % known == 0)
            known = tl_max64(known, end);
    }
    return known >= extent;
}

static int by_coefficient(const void *a, const void *b)
{
    int64_t x = ((const tl_digit_term *)a)->coefficient,
            y = ((const tl_digit_term *)b)->coefficient;
    return (x > y) - (x < y);
}

void tl_places_sort(tl_digit_term *places, int count)
{
    qsort(places, (size_t)count, sizeof places[0], by_coefficient);
}

const tl_expr *tl_digit_expr(tl_arena *arena, tl_digit digit, const tl_expr *of)
{
    const tl_expr *e = tl_floordiv_expr(arena, of, tl_int(arena, digit.divisor));
    return digit.modulus == 0 ? e : tl_floormod_expr(arena, e, tl_int(arena, digit.modulus));
}
