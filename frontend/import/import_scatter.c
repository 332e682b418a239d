/* frontend/import/import_scatter.c: operators that put elements in places, count along an axis, or bring it into an order. */
#include <math.h>
#include <string.h>
#include "runtime/base/checked.h"
#include "frontend/import/import_rules.h"
#include "frontend/call/onnx_counts.h"

static tl_status scatter(tl_onnx_call *c, tl_op op, tl_value *x, tl_value *indices,
                         tl_value *updates, int axis, const char *reduction)
{
    tl_value *inputs[] = { x, indices, updates };
    tl_node *n = tl_onnx_emit_node(c, op, 3, inputs);
    if (op == TL_OP_SCATTER_ELEMENTS)
        tl_attr_set_int(c->graph, n, "axis", axis);
    tl_attr_set_string(c->graph, n, "reduction", reduction);
    tl_result(c, 0, tl_emitted(c, n));
    return TL_OK;
}

tl_status tl_import_scatter(tl_onnx_call *c)
{
    return scatter(c, (tl_op)c->rule->op, c->inputs[0], c->inputs[1], c->inputs[2],
                   (int)tl_call_int(c, "axis", 0), tl_call_string(c, "reduction", "none"));
}

/* What is written into a cache of keys or values: `update` behind the first write_indices[batch] positions of the axis; in
 * mode circular from the beginning again at its end. */
tl_status tl_import_tensor_scatter(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *update = c->inputs[1], *starts = tl_call_input(c, 2);
    const char *mode = tl_call_string(c, "mode", "linear");
    bool circular = strcmp(mode, "circular") == 0;
    int axis, rank;
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_shape(c, update));
    rank = x->shape.rank;
    TL_TRY(tl_onnx_axis(c, tl_call_int(c, "axis", -2), rank, &axis));
    if (!circular && strcmp(mode, "linear") != 0)
        return tl_call_bad(c, "mode '%.40s'", mode);
    if (update->shape.rank != rank || axis == 0)
        return tl_call_bad(c, "an update of %d axes along axis %d of %d", update->shape.rank, axis,
                           rank);
    int64_t extents[TL_MAX_RANK];
    tl_onnx_extents(update, extents);
    tl_value *at = tl_onnx_emit_along(c, tl_onnx_emit_range(c, extents[axis]), rank, axis);
    if (starts != NULL)
        at = tl_emit2(c, TL_OP_ADD, at,
                      tl_onnx_emit_along(c, tl_onnx_emit_cast(c, starts, TL_I64), rank, 0));
    if (circular) {
        tl_value *turns = tl_onnx_emit_with(c, TL_OP_DIV, at, (double)x->shape.dims[axis].extent);
        at = tl_emit2(c, TL_OP_SUB, at,
                      tl_onnx_emit_with(c, TL_OP_MUL, turns, (double)x->shape.dims[axis].extent));
    }
    at = tl_onnx_emit_expand(c, at, extents, rank);
    return scatter(c, TL_OP_SCATTER_ELEMENTS, x, at, update, axis, "none");
}

/* CumSum and CumProd. */
tl_status tl_import_cumulate(tl_onnx_call *c)
{
    int axis;
    tl_value *x = c->inputs[0];
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_axis(c, 1, 0, x->shape.rank, &axis));
    bool is_product = strcmp(c->rule->op_type, "CumProd") == 0;
    if (x->shape.dims[axis].extent == 0) {
        tl_result(c, 0, x);
        return TL_OK;
    }
    tl_node *n = tl_onnx_emit_node(c, TL_OP_CUMULATE, 1, &x);
    tl_attr_set_int(c->graph, n, "axis", axis);
    tl_attr_set_string(c->graph, n, "by", is_product ? "product" : "sum");
    tl_attr_set_int(c->graph, n, "exclusive", tl_call_int(c, "exclusive", 0) != 0);
    tl_attr_set_int(c->graph, n, "reverse", tl_call_int(c, "reverse", 0) != 0);
    tl_result(c, 0, tl_emitted(c, n));
    return TL_OK;
}

/* The first k of the sorted order; values that are equal as they stand. */
tl_status tl_import_top_k(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    double given = 0;
    int axis;
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_onnx_axis(c, tl_call_int(c, "axis", -1), x->shape.rank, &axis));
    if (c->version < 10)
        given = (double)tl_call_int(c, "k", -1);
    else
        TL_TRY(tl_need_scalar(c, 1, -1, &given));
    if (!(given >= 0 && given <= (double)x->shape.dims[axis].extent))
        return tl_call_bad(c, "k is %g, axis %d has %lld elements", given, axis,
                           (long long)x->shape.dims[axis].extent);
    tl_node *n = tl_onnx_emit_node(c, TL_OP_SORT_ORDER, 1, &x);
    tl_attr_set_int(c->graph, n, "axis", axis);
    tl_attr_set_int(c->graph, n, "descending", tl_call_int(c, "largest", 1) != 0);
    tl_value *order = tl_onnx_emit_slice(c, tl_emitted(c, n), axis, 0, (int64_t)given);
    tl_result(c, 0, tl_onnx_emit_gather(c, TL_OP_GATHER_ELEMENTS, x, order, axis));
    tl_result(c, 1, order);
    return TL_OK;
}

/* on where the index is the position along the new axis, counted from its end where negative, off elsewhere. */
tl_status tl_import_one_hot(tl_onnx_call *c)
{
    tl_value *indices = c->inputs[0], *values = c->inputs[2];
    double depth;
    int axis, rank;
    TL_TRY(tl_need_shape(c, indices));
    TL_TRY(tl_need_dtype(c, indices));
    TL_TRY(tl_need_scalar(c, 1, 0, &depth));
    rank = indices->shape.rank + 1;
    TL_TRY(tl_onnx_axis(c, tl_call_int(c, "axis", -1), rank, &axis));
    if (!(depth >= 0 && depth < INT32_MAX) || rank > TL_MAX_RANK)
        return tl_call_bad(c, "depth %g", depth);
    int64_t axes = axis;
    tl_value *at = tl_onnx_emit_cast(c, indices, TL_I64);
    tl_value *from_end = tl_onnx_emit_with(c, TL_OP_ADD, at, depth);
    at = tl_onnx_emit_where(c, tl_onnx_emit_with(c, TL_OP_LESS, at, 0), from_end, at);
    at = tl_onnx_emit_axes(c, TL_OP_UNSQUEEZE, at, 1, &axes);
    tl_value *position = tl_onnx_emit_along(c, tl_onnx_emit_range(c, (int64_t)depth), rank, axis);
    int64_t zero = 0;
    tl_value *off =
        tl_onnx_emit_axes(c, TL_OP_SQUEEZE, tl_onnx_emit_slice(c, values, 0, 0, 1), 1, &zero);
    tl_value *on =
        tl_onnx_emit_axes(c, TL_OP_SQUEEZE, tl_onnx_emit_slice(c, values, 0, 1, 1), 1, &zero);
    tl_result(c, 0, tl_onnx_emit_where(c, tl_emit2(c, TL_OP_EQUAL, at, position), on, off));
    return TL_OK;
}

/* 1 at the first largest element along the axis. */
tl_status tl_import_hardmax(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    int axis, rank = x->shape.rank;
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_dtype(c, x));
    TL_TRY(tl_onnx_axis(c, tl_call_int(c, "axis", c->version < 13 ? 1 : -1), rank, &axis));
    int64_t own[TL_MAX_RANK];
    tl_onnx_extents(x, own);
    if (c->version < 13) { /* of all axes from this one on together */
        int64_t rows = 1, columns = 1;
        for (int i = 0; i < rank; i++)
            *(i < axis ? &rows : &columns) *= own[i];
        x = tl_onnx_emit_reshape(c, x, (int64_t[]){ rows, columns }, 2);
        axis = 1;
    }
    tl_node *n = tl_onnx_emit_node(c, TL_OP_ARGMAX, 1, &x);
    tl_attr_set_int(c->graph, n, "axis", axis);
    tl_attr_set_int(c->graph, n, "keepdims", 1);
    tl_value *best = tl_emitted(c, n),
             *position = tl_onnx_emit_range(c, x->shape.dims[axis].extent);
    position = tl_onnx_emit_along(c, position, x->shape.rank, axis);
    tl_value *const *counts = tl_counts_of(c->import, x);
    if (counts != NULL)
        tl_set_count(c->import, position, axis, counts[axis]);
    tl_value *y = tl_onnx_emit_cast(c, tl_emit2(c, TL_OP_EQUAL, best, position), x->dtype);
    tl_result(c, 0, c->version < 13 ? tl_onnx_emit_reshape(c, y, own, rank) : y);
    return TL_OK;
}

/* The first sequence_lens[batch] elements along the time axis back to front, the others as they are. */
tl_status tl_import_reverse_sequence(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *lengths = c->inputs[1];
    int batch, time, rank;
    TL_TRY(tl_need_shape(c, x));
    rank = x->shape.rank;
    TL_TRY(tl_onnx_axis(c, tl_call_int(c, "batch_axis", 1), rank, &batch));
    TL_TRY(tl_onnx_axis(c, tl_call_int(c, "time_axis", 0), rank, &time));
    if (batch == time)
        return tl_call_bad(c, "batch_axis and time_axis are both %d", batch);
    int64_t extents[TL_MAX_RANK];
    tl_onnx_extents(x, extents);
    tl_value *t = tl_onnx_emit_along(c, tl_onnx_emit_range(c, extents[time]), rank, time);
    tl_value *length = tl_onnx_emit_along(c, tl_onnx_emit_cast(c, lengths, TL_I64), rank, batch);
    tl_value *mirrored = tl_emit2(c, TL_OP_SUB, tl_onnx_emit_with(c, TL_OP_SUB, length, 1), t);
    tl_value *at = tl_onnx_emit_where(c, tl_emit2(c, TL_OP_LESS, t, length), mirrored, t);
    at = tl_onnx_emit_expand(c, at, extents, rank);
    tl_result(c, 0, tl_onnx_emit_gather(c, TL_OP_GATHER_ELEMENTS, x, at, time));
    return TL_OK;
}

/* Where each element was says where it goes: the pools' windows need not be asked. */
tl_status tl_import_max_unpool(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *indices = c->inputs[1];
    const int64_t *shape;
    int64_t kernel[TL_MAX_RANK], stride[TL_MAX_RANK], pads[2 * TL_MAX_RANK];
    int64_t out[TL_MAX_RANK], natural[TL_MAX_RANK], count = 1;
    int shape_count;
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_dtype(c, x));
    int rank = x->shape.rank, spatial = rank - 2;
    if (spatial < 1)
        return tl_call_bad(c, "an input of %d axes, none of which is an image's", rank);
    TL_TRY(tl_call_list(c, "kernel_shape", spatial, 0, 1, kernel));
    TL_TRY(tl_call_list(c, "strides", spatial, 1, 1, stride));
    TL_TRY(tl_call_list(c, "pads", 2 * spatial, 0, 0, pads));
    tl_onnx_extents(x, natural);
    for (int i = 0; i < spatial; i++) {
        int64_t *n = &natural[2 + i];
        if (tl_mul_overflows(*n - 1, stride[i], n) ||
            tl_add_overflows(*n, kernel[i] - pads[i] - pads[spatial + i], n))
            return tl_call_bad(c, "its result has too many elements");
    }
    memcpy(out, natural, sizeof out);
    if (tl_call_input(c, 2) != NULL) {
        TL_TRY(tl_need_i64(c, 2, &shape, &shape_count));
        if (shape_count != rank)
            return tl_call_bad(c, "an output shape of %d axes", shape_count);
        memcpy(out, shape, sizeof *shape * (size_t)rank);
    }
    for (int i = 0; i < rank; i++) {
        if (out[i] < 0 || out[i] > 1 << 24)
            return tl_call_bad(c, "axis %d of its result has %lld elements", i, (long long)out[i]);
        if (natural[i] < 0 || tl_mul_overflows(count, natural[i], &count) || count > INT32_MAX)
            return tl_call_bad(c, "its result has too many elements");
    }
    /* indices count through the result as the windows alone would have it */
    int64_t elements = tl_shape_elements(&x->shape);
    tl_value *zeros = tl_onnx_emit_expand(c, tl_onnx_emit_scalar(c, x->dtype, 0), &count, 1);
    tl_value *inputs[] = { zeros, tl_onnx_emit_reshape(c, indices, &elements, 1),
                           tl_onnx_emit_reshape(c, x, &elements, 1) };
    tl_node *n = tl_onnx_emit_node(c, TL_OP_SCATTER_ELEMENTS, 3, inputs);
    tl_attr_set_int(c->graph, n, "axis", 0);
    tl_value *y = tl_onnx_emit_reshape(c, tl_emitted(c, n), natural, rank);
    int64_t grow[2 * TL_MAX_RANK] = { 0 };
    for (int i = 0; i < rank; i++)
        grow[rank + i] = out[i] - natural[i];
    tl_result(c, 0, tl_onnx_emit_pad(c, y, grow, 0));
    return TL_OK;
}
