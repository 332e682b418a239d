/* frontend/call/onnx_eithers.c: one of two values. */
#include "frontend/call/onnx_eithers.h"
#include "frontend/call/onnx_emit.h"
#include "frontend/call/onnx_counts.h"
#include "frontend/call/onnx_scope.h"
#include "frontend/call/onnx_sequences.h"
#include "frontend/call/onnx_sums.h"

const tl_onnx_either *tl_either_of(const tl_import *im, const tl_value *v)
{
    if (im->eithers == NULL || v == NULL)
        return NULL;
    return tl_map_find(im->eithers, tl_value_key(im, v));
}

tl_value *tl_either_value(tl_import *im, tl_graph *g, const tl_onnx_either *e)
{
    tl_value *v = tl_graph_value(g, tl_arena_format(im->arena, "%s.either", e->yes->name),
                                 TL_DTYPE_COUNT, NULL);
    tl_onnx_either *kept = TL_NEW(im->arena, tl_onnx_either);
    *kept = *e;
    if (im->eithers == NULL)
        im->eithers = tl_map_create(im->arena);
    tl_map_put(im->eithers, tl_value_key(im, v), kept);
    return v;
}

bool tl_extent_is_counted(const tl_import *im, const tl_value *v, int axis)
{
    return tl_count_at(im, v, axis) != NULL;
}

tl_value *tl_onnx_emit_extent(tl_onnx_call *c, const tl_value *v, int axis)
{
    tl_value *count = tl_count_at(c->import, v, axis);
    if (count == NULL && c->graph->kept == NULL)
        return tl_onnx_emit_scalar(c, TL_I64, (double)v->shape.dims[axis].extent);
    if (count == NULL)
        return tl_onnx_emit_reshape(c, tl_onnx_emit_known_extent(c, v, axis), NULL, 0);
    return tl_onnx_emit_count(c, count);
}

static bool has_type(const tl_import *im, const tl_value *v)
{
    return tl_sequence_of(im, v) == NULL && tl_either_of(im, v) == NULL && v->dtype_known &&
           tl_shape_is_static(&v->shape) && tl_dtype_infos[v->dtype].bits % 8 == 0;
}

bool tl_common_shape(tl_import *im, const tl_value *yes, const tl_value *no, tl_shape *shape,
                     bool differs[TL_MAX_RANK])
{
    if (!has_type(im, yes) || !has_type(im, no) || yes->dtype != no->dtype ||
        yes->shape.rank != no->shape.rank)
        return false;
    *shape = yes->shape;
    for (int i = 0; i < shape->rank; i++) {
        tl_onnx_sum a = tl_sum_of_extent(im, yes, i), b = tl_sum_of_extent(im, no, i);
        int64_t extent = no->shape.dims[i].extent;
        differs[i] = !tl_sums_are_equal(im, &a, &b);
        if (extent > shape->dims[i].extent)
            shape->dims[i].extent = extent;
    }
    return tl_shape_elements(shape) >= 0;
}

tl_value *tl_onnx_emit_in_shape(tl_onnx_call *c, tl_value *v, const tl_shape *shape)
{
    for (int i = 0; i < shape->rank; i++)
        v = tl_onnx_emit_first(c, v, i, shape->dims[i].extent);
    return v;
}

tl_status tl_choose_value(tl_onnx_call *c, tl_value *condition, tl_value *yes, tl_value *no,
                          tl_value **out)
{
    tl_import *im = c->import;
    tl_shape shape;
    bool differs[TL_MAX_RANK];
    if (tl_sequence_of(im, yes) != NULL || tl_sequence_of(im, no) != NULL)
        return tl_call_unsupported(c, "one of two sequences, of which data decide");
    if (tl_common_shape(im, yes, no, &shape, differs)) {
        tl_value *counts[TL_MAX_RANK];
        for (int i = 0; i < shape.rank; i++)
            counts[i] = differs[i]
                            ? tl_onnx_emit_where(c, condition, tl_onnx_emit_extent(c, yes, i),
                                                 tl_onnx_emit_extent(c, no, i))
                            : tl_count_at(im, yes, i);
        im->plain_nodes++;
        *out = tl_onnx_emit_where(c, condition, tl_onnx_emit_in_shape(c, yes, &shape),
                                  tl_onnx_emit_in_shape(c, no, &shape));
        im->plain_nodes--;
        for (int i = 0; i < shape.rank; i++)
            tl_set_count(im, *out, i, counts[i]);
        return TL_OK;
    }
    const tl_onnx_either *a = tl_either_of(im, yes), *b = tl_either_of(im, no);
    bool known = (a != NULL || has_type(im, yes)) && (b != NULL || has_type(im, no));
    int depth = 1 + (a != NULL && (b == NULL || a->depth > b->depth) ? a->depth
                     : b != NULL                                     ? b->depth
                                                                     : 0);
    if (!known)
        return tl_call_unknown(c, "branches of types that are not known, of which data decide");
    if (depth > TL_MOST_EITHERS)
        return tl_call_unsupported(c, "more than %d ranks that data decide, one on another",
                                   TL_MOST_EITHERS);
    *out = tl_either_value(im, c->graph, &(tl_onnx_either){ condition, yes, no, depth });
    return TL_OK;
}
