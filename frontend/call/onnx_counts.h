/* frontend/call/onnx_counts.h: extents that data decide.
 *
 * A value has the largest shape that it can have, and for an axis whose extent is computed on the way a count: one i64 that
 * holds it. What lies behind the count is some number or other, and nobody may look at it:
 *
 *     p = NonZero(x)          p: i64[2, 12], axis 1 counted by n      (x: f32[3, 4])
 *     y = Gather(t, p)        y: axis 1 counted by n                  what lies behind is gathered too, and never seen
 *     s = ReduceSum(y, 1)     y' = position < n ? y : 0; s = ReduceSum(y', 1)
 *
 * Counts are known while a model is read, and are nodes of the graph; the graph itself has constant shapes, and says which
 * of its outputs are counted (tl_output_extent). */
#ifndef TL_FRONTEND_ONNX_ONNX_COUNTS_H
#define TL_FRONTEND_ONNX_ONNX_COUNTS_H
#include "frontend/call/onnx_call.h"

/* By axis the count or NULL; NULL when no axis has one. */
tl_value *const *tl_counts_of(const tl_import *im, const tl_value *v);
/* The count of one axis; NULL: it has none, or there is no such axis. */
tl_value *tl_count_at(const tl_import *im, const tl_value *v, int axis);
/* Whether data count nothing of the operands (NULL: left out) but the first axes of the first, so many of them. */
bool tl_counts_only_lead(const tl_import *im, tl_value *const *operands, int count, int axes);
/* Whether two counts (NULL: there is none) are always the same number. */
bool tl_counts_are_same(tl_import *im, tl_value *a, tl_value *b);
/* The count as one i64 of no axes. */
tl_value *tl_onnx_emit_count(tl_onnx_call *c, tl_value *count);
/* The node's attribute `axis`, counted from the first one. */
int tl_axis_of(const tl_node *n, int64_t otherwise, int rank);
/* `count`: one i64 of any shape, of the graph of `v`. */
void tl_set_count(tl_import *im, tl_value *v, int axis, tl_value *count);
/* Before the types of a new node's results are found: a counted axis that meets one whose extent is known has that extent. */
void tl_count_operands(tl_onnx_call *c, tl_node *n);
/* The counts of the outputs of a new node. *y: its result, or what stands for it. TL_UNSUPPORTED: the operator looks behind
 * the count. */
tl_status tl_count_result(tl_onnx_call *c, tl_node *n, tl_value **y);
/* The extent of an axis that is not counted, one i64 in a vector: a number, or computed where the graph may be one for all. */
tl_value *tl_onnx_emit_known_extent(tl_onnx_call *c, const tl_value *v, int axis);
/* The elements behind counts become this number. */
tl_value *tl_onnx_emit_masked(tl_onnx_call *c, tl_value *x, double number);
/* A mask of the shape of `v`, false where `v` is behind a count as well. */
tl_value *tl_onnx_emit_and_before(tl_onnx_call *c, tl_value *mask, const tl_value *v);
/* The first `extent` elements of the axis whatever is counted, zeros behind the last. Without counts. */
tl_value *tl_onnx_emit_first(tl_onnx_call *c, tl_value *x, int axis, int64_t extent);
/* A counted axis as one of `extent` elements, which are as many as it holds, or all that one. Without a count for it. */
tl_value *tl_onnx_emit_spread(tl_onnx_call *c, tl_value *x, int axis, int64_t extent);
/* The positions at which a vector of bools is true, in order, in a vector as long; zeros behind. *count: how many. */
tl_value *tl_onnx_emit_positions(tl_onnx_call *c, tl_value *mask, tl_value **count);

#endif
