/* frontend/call/onnx_sums.h: whole numbers that a run computes, and between which bounds they lie.
 *
 * Extents that data decide (onnx_counts.h) are computed with: Shape, Gather, Mul, Concat, Reshape. What comes out decides a
 * shape again. So a number on the way is read back as a sum over what it is made of:
 *
 *     n = count of NonZero(x), 0 <= n <= 12        Mul(Gather(Shape(y), 0), 4) + 3   is   4*n + 3, at most 51
 *
 * Two numbers are the same where their sums are; a bound says how large a result has to be made. */
#ifndef TL_FRONTEND_ONNX_ONNX_SUMS_H
#define TL_FRONTEND_ONNX_ONNX_SUMS_H
#include "frontend/call/onnx_call.h"

enum { TL_MOST_TERMS = 6 };

typedef struct {
    int64_t factor;
    tl_value *value;
    int64_t element;
} tl_sum_term;
/* A constant and terms, no two of them alike; everything of the graph that is imported now. */
typedef struct {
    int64_t constant;
    int count;
    tl_sum_term terms[TL_MOST_TERMS];
} tl_onnx_sum;
typedef struct {
    double least, most; /* infinite where nothing is known */
} tl_onnx_bounds;

/* A value of one element whose bounds are known; they hold for whatever is computed from it. */
void tl_set_bounds(tl_import *im, const tl_value *v, double least, double most);

tl_onnx_sum tl_sum_of(tl_import *im, tl_value *v, int64_t element);
/* How long an axis is: its count, where it has one. */
tl_onnx_sum tl_sum_of_extent(tl_import *im, const tl_value *v, int axis);
tl_onnx_sum tl_sum_constant(int64_t constant);
bool tl_sum_is_constant(const tl_onnx_sum *n);
bool tl_sums_are_equal(tl_import *im, const tl_onnx_sum *a, const tl_onnx_sum *b);
tl_onnx_bounds tl_sum_bounds(tl_import *im, const tl_onnx_sum *n);
/* Whether something whose bounds were said takes part in the element's computation. */
bool tl_sum_is_bounded(tl_import *im, tl_value *v, int64_t element);
/* How often the value takes part: *factor of it beside the rest. False: otherwise than in a sum; `anywhere`: then the rest is
 * computed from it too. */
bool tl_sum_factor(tl_import *im, const tl_onnx_sum *n, const tl_value *v, bool anywhere,
                   int64_t *factor, tl_onnx_sum *rest);

/* Arithmetic: sums stay sums, and what bounds decide is decided; everything else is a node. */
tl_onnx_sum tl_sum_plus(tl_onnx_call *c, tl_onnx_sum a, tl_onnx_sum b);
tl_onnx_sum tl_sum_minus(tl_onnx_call *c, tl_onnx_sum a, tl_onnx_sum b);
tl_onnx_sum tl_sum_times(tl_onnx_call *c, tl_onnx_sum a, tl_onnx_sum b);
tl_onnx_sum tl_sum_quotient(tl_onnx_call *c, tl_onnx_sum a,
                            tl_onnx_sum b); /* of positive ones, rounded down */
tl_onnx_sum tl_sum_min(tl_onnx_call *c, tl_onnx_sum a, tl_onnx_sum b);
tl_onnx_sum tl_sum_max(tl_onnx_call *c, tl_onnx_sum a, tl_onnx_sum b);
tl_onnx_sum tl_sum_where(tl_onnx_call *c, tl_value *condition, tl_onnx_sum yes, tl_onnx_sum no);
/* One i64 of no axes that holds it. */
tl_value *tl_onnx_emit_sum(tl_onnx_call *c, const tl_onnx_sum *n);

#endif
