/* frontend/call/onnx_eithers.h: one of two values, of which data decide: what an If gives whose branches do not give the same
 * type.
 *
 *     y = If(c) {yes: Squeeze(x), f32[4]; no: x, f32[1, 4]}        z = ReduceSum(y)
 *       ->  z = Where(c, ReduceSum(Squeeze(x)), ReduceSum(x))
 *
 * Where the types differ in extents alone, the result has the largest, and counts (onnx_counts.h). Where they differ in rank, a
 * name stands for both values, and every node that reads it is there twice, until what comes out is of one rank. */
#ifndef TL_FRONTEND_ONNX_ONNX_EITHERS_H
#define TL_FRONTEND_ONNX_ONNX_EITHERS_H
#include "frontend/call/onnx_call.h"

typedef struct {
    tl_value *condition; /* one bool */
    tl_value *yes, *no;
    int depth; /* how many there are inside one another */
} tl_onnx_either;

enum { TL_MOST_EITHERS = 5 }; /* inside one another: a node is there 2^5 times at most */

/* NULL: the value is one. */
const tl_onnx_either *tl_either_of(const tl_import *im, const tl_value *v);
/* A value that stands for both. */
tl_value *tl_either_value(tl_import *im, tl_graph *g, const tl_onnx_either *e);
/* The one that the condition chooses: a value where both are of one dtype and rank, else what stands for both. */
tl_status tl_choose_value(tl_onnx_call *c, tl_value *condition, tl_value *yes, tl_value *no,
                          tl_value **out);
/* The extents that have room for both values; false where they are not of one dtype and rank. `differs`: which of them are not
 * the same number in both. */
bool tl_common_shape(tl_import *im, const tl_value *yes, const tl_value *no, tl_shape *shape,
                     bool differs[TL_MAX_RANK]);
/* The value in the shape that has room for it, without counts. */
tl_value *tl_onnx_emit_in_shape(tl_onnx_call *c, tl_value *v, const tl_shape *shape);
bool tl_extent_is_counted(const tl_import *im, const tl_value *v, int axis);
/* One i64 of no axes: how long an axis is. */
tl_value *tl_onnx_emit_extent(tl_onnx_call *c, const tl_value *v, int axis);

#endif
