/* ir/expr/index.h: what is known about index expressions: their canonical form, ranges and proofs.
 *
 * The canonical form of an i64 expression is   c0 + c1*t1 + c2*t2 + ...   with integer constants c
 * and distinct terms t in a fixed order (the order of tl_expr_compare), where a term is a product of
 * variables (and other opaque atoms: loads, casts, min, max, select), or `e // d` or `e % d` with e
 * canonical and d a positive constant, none of which the ranges of the variables allow to remove:
 *   (x*8 + y) // 4 -> x*2 + y//4          (x*8 + y) % 4 -> y % 4
 *   y // 4 -> 0, y % 4 -> y               when y is in 0..3
 *   (x//4)*4 + x%4 -> x                   (x//4)//2 -> x//8
 *   (x % 8) // 4, (x % 8) % 4             recombined where exact
 * A perfect split followed by a fuse gives back the original text. */
#ifndef TL_IR_EXPR_INDEX_H
#define TL_IR_EXPR_INDEX_H
#include "ir/expr/expr.h"
#include "runtime/base/status.h"

/* Builds a canonical i64 ADD, SUB, MUL, FLOORDIV, FLOORMOD, MIN or MAX of canonical operands. tl_binary calls it. */
const tl_expr *tl_index_binary(tl_arena *arena, tl_expr_kind kind, const tl_expr *a,
                               const tl_expr *b);
/* A comparison of i64 operands, folded to a constant when the ranges decide it. */
const tl_expr *tl_index_compare(tl_arena *arena, tl_expr_kind kind, const tl_expr *a,
                                const tl_expr *b);

/* Bounds of an i64 expression over the ranges of its variables; INT64_MIN/INT64_MAX when unknown. */
typedef struct {
    int64_t min, max;
} tl_range;
tl_range tl_expr_range(const tl_expr *e);
/* The same with some variables narrowed (or widened) to given ranges. */
typedef struct {
    const tl_var *var;
    tl_range range;
} tl_var_range;
tl_range tl_expr_range_with(const tl_expr *e, const tl_var_range *ranges, int count);

/* True when provable for all values of the variables; false means "not known". */
bool tl_prove_le(tl_arena *arena, const tl_expr *a, const tl_expr *b);
bool tl_prove_lt(tl_arena *arena, const tl_expr *a, const tl_expr *b);
bool tl_prove_equal(tl_arena *arena, const tl_expr *a, const tl_expr *b);
/* Whether a bool expression is always true. */
bool tl_prove(tl_arena *arena, const tl_expr *condition);

/* The canonical sum, taken apart: e = constant + sum of coefficient[i]*term[i]. */
typedef struct {
    int64_t constant;
    int count;
    const int64_t *coefficients;
    const tl_expr *const *terms;
} tl_linear;
tl_linear tl_linear_of(tl_arena *arena, const tl_expr *e);
/* Whether every coefficient, and the constant, is a multiple of `step`: then e is one, too. */
bool tl_is_multiple(tl_arena *arena, const tl_expr *e, int64_t step);
/* e = coefficient*var + rest, rest free of var; false when e is not affine in var. */
bool tl_affine_in(tl_arena *arena, const tl_expr *e, const tl_var *var, int64_t *coefficient,
                  const tl_expr **rest);
/* An i64 expression over these variables, read from text; `file` names it in messages. */
tl_status tl_index_parse(tl_arena *arena, const char *text, const char *file,
                         const tl_var *const *vars, int var_count, const tl_expr **out,
                         tl_diag *diag);
/* Simplifies e knowing that `condition` holds (used to drop predicates and specialise tails). */
const tl_expr *tl_simplify_under(tl_arena *arena, const tl_expr *e, const tl_expr *condition);

/* e for given values of its variables, with i64 arithmetic that wraps; false when e is not made of
 * integers and variables alone or divides by 0. */
typedef bool tl_var_value(const tl_var *var, int64_t *out, void *context);
bool tl_expr_evaluate(const tl_expr *e, tl_var_value *value, void *context, int64_t *out);

#endif
