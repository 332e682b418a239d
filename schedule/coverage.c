/* schedule/coverage.c: dense and injective sums of digits.
 *
 *     8*a + b, b in 0..8        dense and injective
 *     8*a + b, b in 0..10       dense; a=0 b=8 and a=1 b=0 meet
 *     8*a + b, b in 0..4        injective; 4..7 are holes
 */
#include "schedule/coverage.h"
#include <assert.h>
#include <stdlib.h>
#include "runtime/base/checked.h"
#include "runtime/base/random.h"
#include "schedule/mixed_radix.h"

/* The places of all indices: those of index i are at first[i] .. first[i + 1]. */
typedef struct {
    tl_digit_term *places;
    int *first;
} place_table;

static const tl_free_var *free_var_of(const tl_expr *term, const tl_free_var *free_vars, int count,
                                      tl_digit *digit)
{
    if (!tl_digit_of(term, digit))
        return NULL;
    for (int i = 0; i < count; i++)
        if (free_vars[i].var == digit->var)
            return &free_vars[i];
    return NULL;
}

static bool uses_free(const tl_expr *e, const tl_free_var *free_vars, int count)
{
    for (int i = 0; i < count; i++)
        if (tl_expr_uses_var(e, free_vars[i].var))
            return true;
    return false;
}

/* An extent that depends on dims is as good as infinite. */
static int64_t extent_of(const tl_free_var *v)
{
    int64_t extent;
    return tl_const_int(v->extent, &extent) ? extent : INT64_MAX;
}

/* False when an index is not a sum of digits of the free variables with positive coefficients. */
static bool take_places(tl_arena *arena, const tl_expr *const *indices, int count,
                        const tl_free_var *free_vars, int free_count, place_table *out)
{
    assert(count >= 0 && free_count >= 0);
    tl_linear *sums = TL_NEW_ARRAY(arena, tl_linear, count);
    int total = 0;
    for (int i = 0; i < count; i++) {
        sums[i] = tl_linear_of(arena, indices[i]);
        total += sums[i].count;
    }
    out->places = TL_NEW_ARRAY(arena, tl_digit_term, total);
    out->first = TL_NEW_ARRAY(arena, int, count + 1);
    int filled = 0;
    for (int i = 0; i < count; i++) {
        out->first[i] = filled;
        for (int k = 0; k < sums[i].count; k++) {
            if (!uses_free(sums[i].terms[k], free_vars, free_count))
                continue;
            tl_digit digit;
            const tl_free_var *v = free_var_of(sums[i].terms[k], free_vars, free_count, &digit);
            if (v == NULL || sums[i].coefficients[k] < 1)
                return false;
            out->places[filled++] = (tl_digit_term){ digit, sums[i].coefficients[k],
                                                     tl_digit_extent(digit, extent_of(v)) };
        }
        tl_places_sort(out->places + out->first[i], filled - out->first[i]);
    }
    out->first[count] = filled;
    return true;
}

/* reach += coefficient*(extent - 1); false when it has no bound. */
static bool extend(int64_t *reach, const tl_digit_term *place)
{
    int64_t step;
    return place->extent != INT64_MAX &&
           !tl_mul_overflows(place->coefficient, place->extent - 1, &step) &&
           !tl_add_overflows(*reach, step, reach);
}

/* Whether the box is seen to be empty where the variable has no value: some index moves with it alone. */
static bool empties_box(const tl_expr *const *indices, int count, const tl_free_var *free_vars,
                        int free_count, int which)
{
    assert(which >= 0 && which < free_count);
    for (int i = 0; i < count; i++) {
        bool alone = tl_expr_uses_var(indices[i], free_vars[which].var);
        for (int k = 0; k < free_count && alone; k++)
            alone = k == which || !tl_expr_uses_var(indices[i], free_vars[k].var);
        if (alone)
            return true;
    }
    return false;
}

/* Whether what lies below the digit takes all its values with each value of the digit: no last one is cut short. */
static bool is_full(tl_arena *arena, tl_digit digit, const tl_expr *extent)
{
    const tl_expr *divisor = tl_int(arena, digit.divisor);
    int64_t end;
    return tl_is_int(tl_floormod_expr(arena, extent, divisor), 0) ||
           (digit.modulus > 0 && !tl_mul_overflows(digit.divisor, digit.modulus, &end) &&
            tl_prove_le(arena, tl_int(arena, end), extent));
}

/* Whether two digits take their values independently of each other. */
static bool are_free(tl_arena *arena, tl_digit a, tl_digit b, const tl_free_var *free_vars,
                     int free_count)
{
    if (a.var != b.var)
        return true;
    for (int i = 0; i < free_count; i++)
        if (free_vars[i].var == a.var)
            return !tl_digits_overlap(a, b) &&
                   is_full(arena, a.divisor > b.divisor ? a : b, free_vars[i].extent);
    return false;
}

bool tl_is_dense(tl_arena *arena, const tl_expr *const *indices, int count,
                 const tl_free_var *free_vars, int free_count)
{
    place_table table;
    for (int i = 0; i < free_count; i++)
        if (!tl_prove_le(arena, tl_int(arena, 1), free_vars[i].extent) &&
            !empties_box(indices, count, free_vars, free_count, i))
            return false;
    if (!take_places(arena, indices, count, free_vars, free_count, &table))
        return false;
    int total = table.first[count];
    for (int i = 0; i < total; i++)
        for (int k = 0; k < i; k++)
            if (!are_free(arena, table.places[i].digit, table.places[k].digit, free_vars,
                          free_count))
                return false;
    for (int i = 0; i < count; i++) {
        int64_t reach = 0;
        for (int k = table.first[i]; k < table.first[i + 1]; k++) {
            const tl_digit_term *place = &table.places[k];
            if (place->extent == 1)
                continue;
            if (place->coefficient > reach + 1)
                return false;
            if (!extend(&reach, place) && k + 1 < table.first[i + 1])
                return false;
        }
    }
    return true;
}

static bool is_determined(tl_arena *arena, const place_table *table, int total,
                          const tl_free_var *v)
{
    tl_digit *digits = TL_NEW_ARRAY(arena, tl_digit, total);
    int count = 0;
    for (int i = 0; i < total; i++)
        if (table->places[i].digit.var == v->var)
            digits[count++] = table->places[i].digit;
    return tl_digits_complete(digits, count, extent_of(v));
}

typedef struct {
    const tl_free_var *free_vars;
    const int64_t *values;
    int count;
} point;

static bool value_at(const tl_var *var, int64_t *out, void *context)
{
    const point *p = context;
    for (int i = 0; i < p->count; i++)
        if (p->free_vars[i].var == var) {
            *out = p->values[i];
            return true;
        }
    return false;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The same by looking at all points, where they are few: of fused loops that were split, whose parts are no digits. Two points of
 * one hash count as the same. */
static bool is_injective_by_trial(tl_arena *arena, const tl_expr *const *indices, int count,
                                  const tl_free_var *free_vars, int free_count)
{
    enum { MOST_POINTS = 4096 };
    int64_t points = 1, *values = TL_NEW_ARRAY(arena, int64_t, free_count + 1);
    for (int i = 0; i < free_count; i++) {
        int64_t extent = extent_of(&free_vars[i]);
        if (extent < 1 || extent > MOST_POINTS || points * extent > MOST_POINTS)
            return false;
        points *= extent;
    }
    uint64_t *hashes = TL_NEW_ARRAY(arena, uint64_t, points);
    point at = { free_vars, values, free_count };
    for (int64_t n = 0; n < points; n++) {
        int64_t rest = n, index;
        for (int i = 0; i < free_count; i++) {
            values[i] = rest % extent_of(&free_vars[i]);
            rest /= extent_of(&free_vars[i]);
        }
        for (int i = 0; i < count; i++) {
            if (!tl_expr_evaluate(indices[i], value_at, &at, &index))
                return false;
            tl_random mix = tl_random_make(hashes[n] ^ (uint64_t)index);
            hashes[n] = tl_random_next(&mix);
        }
    }
    qsort(hashes, (size_t)points, sizeof *hashes, by_value);
    for (int64_t n = 1; n < points; n++)
        if (hashes[n] == hashes[n - 1])
            return false;
    return true;
}

static bool is_injective_by_digits(tl_arena *arena, const tl_expr *const *indices, int count,
                                   const tl_free_var *free_vars, int free_count)
{
    place_table table;
    if (!take_places(arena, indices, count, free_vars, free_count, &table))
        return false;
    for (int i = 0; i < count; i++) {
        int64_t reach = 0;
        for (int k = table.first[i]; k < table.first[i + 1]; k++) {
            const tl_digit_term *place = &table.places[k];
            if (place->extent == 1)
                continue;
            if (place->coefficient <= reach)
                return false;
            if (!extend(&reach, place) && k + 1 < table.first[i + 1])
                return false;
        }
    }
    for (int i = 0; i < free_count; i++)
        if (!is_determined(arena, &table, table.first[count], &free_vars[i]))
            return false;
    return true;
}

bool tl_is_injective(tl_arena *arena, const tl_expr *const *indices, int count,
                     const tl_free_var *free_vars, int free_count)
{
    return is_injective_by_digits(arena, indices, count, free_vars, free_count) ||
           is_injective_by_trial(arena, indices, count, free_vars, free_count);
}
