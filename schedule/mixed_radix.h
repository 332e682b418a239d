/* schedule/mixed_radix.h: a variable as a number in a mixed radix, of which an index uses some digits.
 *
 *     v // c  is the digit of divisor c and no modulus        v % m  of divisor 1 and modulus m
 *     (v // c) % m  and  (v % (c*m)) // c  of divisor c and modulus m
 */
#ifndef TL_SCHEDULE_MIXED_RADIX_H
#define TL_SCHEDULE_MIXED_RADIX_H
#include "ir/expr/index.h"

typedef struct {
    const tl_var *var;
    int64_t divisor, modulus; /* modulus 0: none */
} tl_digit;

/* One digit with its place in a sum. */
typedef struct {
    tl_digit digit;
    int64_t coefficient, extent; /* extent: how many values the digit takes */
} tl_digit_term;

bool tl_digit_of(const tl_expr *e, tl_digit *out);
/* The values it takes when the variable is in 0..extent-1. */
int64_t tl_digit_extent(tl_digit digit, int64_t extent);
/* Whether two digits of one variable share a part of it. */
bool tl_digits_overlap(tl_digit a, tl_digit b);
/* Whether the digits (of one variable with values 0..extent-1; reordered) determine it. */
bool tl_digits_complete(tl_digit *digits, int count, int64_t extent);
/* Sorts places by coefficient. */
void tl_places_sort(tl_digit_term *places, int count);
const tl_expr *tl_digit_expr(tl_arena *arena, tl_digit digit, const tl_expr *of);

#endif
