/* frontend/call/onnx_emit.h: what an importer makes nodes with. All of it may be called after a failure, which is in the call
 * (tl_onnx_call.status) then; a value that comes of a failure has no known shape. */
#ifndef TL_FRONTEND_CALL_ONNX_EMIT_H
#define TL_FRONTEND_CALL_ONNX_EMIT_H
#include "frontend/call/onnx_call.h"

/* Numbers that an importer writes down at most: positions of windows, weights of what is resized; and all of a model together. */
enum { TL_ONNX_MOST_NUMBERS = 1 << 24, TL_ONNX_ALL_NUMBERS = 1 << 26 };

/* A new node with one fresh output; set its attributes, then tl_emitted gives the output, its dtype and shape
 * inferred where the inputs allow. tl_emit is both for a node without attributes. */
tl_node *tl_onnx_emit_node(tl_onnx_call *c, tl_op op, int input_count, tl_value *const *inputs);
tl_value *tl_emitted(tl_onnx_call *c, tl_node *n);
tl_value *tl_emit1(tl_onnx_call *c, tl_op op, tl_value *x);
tl_value *tl_emit2(tl_onnx_call *c, tl_op op, tl_value *x, tl_value *y);
tl_value *tl_onnx_emit_where(tl_onnx_call *c, tl_value *condition, tl_value *yes, tl_value *no);
tl_value *tl_onnx_emit_cast(tl_onnx_call *c, tl_value *x,
                            tl_dtype to); /* x itself when it has that dtype */
tl_value *tl_onnx_emit_ints(tl_onnx_call *c, tl_op op, tl_value *x, const char *attribute,
                            const int64_t *ints, int count);
tl_value *tl_onnx_emit_reduce(tl_onnx_call *c, tl_op op, tl_value *x, const int64_t *axes,
                              int count, bool keepdims);
tl_value *tl_onnx_emit_reshape(tl_onnx_call *c, tl_value *x, const int64_t *extents, int rank);
/* y in the shape of x, or y expanded to it: with an attribute where the shape is known, else with a Shape node. */
tl_value *tl_onnx_emit_shape_like(tl_onnx_call *c, tl_op op, tl_value *y, tl_value *x);
/* Constants: a scalar of the dtype, a list of i64. */
tl_value *tl_onnx_emit_scalar(tl_onnx_call *c, tl_dtype dtype, double value);
tl_value *tl_onnx_emit_i64(tl_onnx_call *c, const int64_t *values, int count);
/* Whether so many more numbers may be written down for the model; if not, the call has failed. */
bool tl_call_has_room(tl_onnx_call *c, int64_t numbers);
/* Nodes over values whose shapes are known. */
tl_value *tl_onnx_emit_numbers(tl_onnx_call *c, tl_dtype dtype, const double *numbers, int rank,
                               const int64_t *extents); /* a constant */
tl_value *tl_onnx_emit_doubles(tl_onnx_call *c, const double *numbers, int rank,
                               const int64_t *extents); /* of f64, as they lie in the arena */
tl_value *tl_onnx_emit_with(tl_onnx_call *c, tl_op op, tl_value *x,
                            double number); /* op(x, number) */
tl_value *tl_onnx_emit_axes(tl_onnx_call *c, tl_op op, tl_value *x, int count, const int64_t *axes);
tl_value *tl_onnx_emit_transpose(tl_onnx_call *c, tl_value *x, const int64_t *perm);
tl_value *tl_onnx_emit_expand(tl_onnx_call *c, tl_value *x, const int64_t *extents, int rank);
/* Elements from `start` to before `end` in steps, as Slice counts them; the shape need not be known. */
tl_value *tl_onnx_emit_part(tl_onnx_call *c, tl_value *x, int64_t axis, int64_t start, int64_t end,
                            int64_t step);
tl_value *tl_onnx_emit_slice(tl_onnx_call *c, tl_value *x, int axis, int64_t start, int64_t count);
tl_value *tl_onnx_emit_reverse(tl_onnx_call *c, tl_value *x, int axis);
tl_value *tl_onnx_emit_concat(tl_onnx_call *c, int count, tl_value *const *parts, int axis);
/* GATHER and GATHER_ELEMENTS along `axis`, GATHER_ND behind so many batch axes. */
tl_value *tl_onnx_emit_gather(tl_onnx_call *c, tl_op op, tl_value *x, tl_value *indices, int axis);
/* `pads`: before each axis, then after each; negative ones cut off. */
tl_value *tl_onnx_emit_pad(tl_onnx_call *c, tl_value *x, const int64_t *pads, double number);
/* One axis becomes `count` of these extents (0: it had one element). */
tl_value *tl_onnx_emit_reshape_axis(tl_onnx_call *c, tl_value *x, int axis, int count,
                                    const int64_t *extents);
/* A vector along `axis` of `rank` axes, the others of extent 1. */
tl_value *tl_onnx_emit_along(tl_onnx_call *c, tl_value *v, int rank, int axis);
tl_value *tl_onnx_emit_range(tl_onnx_call *c, int64_t count); /* 0, 1, 2, ... as i64 */

#endif
