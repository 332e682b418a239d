/* ir/expr/index_private.h: sums taken apart on the stack, which is how index expressions are built,
 * bounded and compared. */
#ifndef TL_IR_EXPR_INDEX_PRIVATE_H
#define TL_IR_EXPR_INDEX_PRIVATE_H
#include "ir/expr/expr_private.h"
#include "ir/expr/index.h"

/* An ADD chain with more addends than this is left as it is: an opaque term. */
enum { TL_MAX_ADDENDS = 48 };

typedef struct {
    int64_t coefficient;
    const tl_expr *term;
    const tl_expr *product; /* coefficient*term when that node exists, else NULL */
} tl_addend;

/* constant + sum of coefficient*term, terms distinct and in the order of tl_expr_compare.
 * `overflow`: a number wrapped, the sum holds only modulo 2^64. */
typedef struct {
    int64_t constant;
    int count;
    bool overflow;
    tl_addend addends[TL_MAX_ADDENDS];
} tl_sum;

/* ir/expr/index_sum.c */
static inline void tl_sum_clear(tl_sum *s)
{
    s->constant = 0;
    s->count = 0;
    s->overflow = false;
}
void tl_sum_copy(tl_sum *to, const tl_sum *from);
/* s += scale*e; false (and s unusable) when there are too many terms. */
bool tl_sum_add(tl_sum *s, const tl_expr *e, int64_t scale);
bool tl_sum_add_term(tl_sum *s, const tl_expr *term, int64_t coefficient);
bool tl_sum_add_sum(tl_sum *s, const tl_sum *other, int64_t scale);
void tl_sum_add_constant(tl_sum *s, int64_t value, int64_t scale);
void tl_sum_remove(tl_sum *s, int index);
/* s *= scale (not 0). */
void tl_sum_scale(tl_sum *s, int64_t scale);
/* The coefficient of `term`, 0 when it is not there. */
int64_t tl_sum_coefficient(const tl_sum *s, const tl_expr *term);
/* The expression as it stands. */
const tl_expr *tl_sum_expr(tl_arena *arena, const tl_sum *s);
/* The same after pairs of // and % have been put together (ir/expr/index_divide.c); changes s. */
const tl_expr *tl_sum_canonical(tl_arena *arena, tl_sum *s);
/* Bounds; `ranges` as in tl_expr_range_with. */
tl_range tl_sum_range(const tl_sum *s, const tl_var_range *ranges, int count);

/* The canonical sum of several canonical i64 expressions. */
const tl_expr *tl_index_sum(tl_arena *arena, const tl_expr *const *parts, int count);

/* ir/expr/index_divide.c: canonical e // d and e % d for d > 0. */
const tl_expr *tl_index_floordiv(tl_arena *arena, const tl_expr *e, int64_t d);
const tl_expr *tl_index_floormod(tl_arena *arena, const tl_expr *e, int64_t d);

/* ir/expr/index_prove.c: what is known to hold: each fact is a sum that is >= 0. */
enum { TL_MAX_FACTS = 24 };
typedef struct {
    int count;
    tl_sum *facts[TL_MAX_FACTS]; /* in the arena */
    int truth_count;
    const tl_expr *truths[TL_MAX_FACTS]; /* bool expressions that hold */
} tl_facts;
void tl_facts_add(tl_arena *arena, tl_facts *facts, const tl_expr *condition); /* NULL: nothing */
/* s >= bound for all values of the variables for which the facts (NULL: none) hold. */
bool tl_sum_at_least(const tl_sum *s, int64_t bound, const tl_facts *facts);
bool tl_prove_under(const tl_facts *facts, const tl_expr *condition);
bool tl_disprove_under(const tl_facts *facts, const tl_expr *condition);

/* Addition and multiplication of range ends: INT64_MIN as a least and INT64_MAX as a greatest
 * value mean "unknown", and what does not fit becomes that. */
tl_range tl_range_add(tl_range a, tl_range b);
tl_range tl_range_scale(tl_range a, int64_t c);
static inline tl_range tl_range_unknown(void)
{
    return (tl_range){ INT64_MIN, INT64_MAX };
}
static inline bool tl_range_known(tl_range r)
{
    return r.min != INT64_MIN && r.max != INT64_MAX;
}

#endif
