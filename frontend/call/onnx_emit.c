/* frontend/call/onnx_emit.c: canonical nodes in the words of an importer that writes an operator as several of them. */
#include <assert.h>
#include <math.h>
#include "frontend/call/onnx_emit.h"

enum { MOST_LISTED = 1 << 16 }; /* positions that are written down as a constant */

tl_value *tl_onnx_emit_numbers(tl_onnx_call *c, tl_dtype dtype, const double *numbers, int rank,
                               const int64_t *extents)
{
    tl_shape shape = tl_shape_of(rank, extents);
    int64_t count = tl_shape_elements(&shape);
    if (!tl_call_has_room(c, count))
        return tl_onnx_emit_scalar(c, dtype, 0);
    void *data = tl_arena_alloc(c->arena, (size_t)count * tl_dtype_size(dtype) + 1, 64);
    for (int64_t i = 0; i < count; i++)
        tl_number_store(dtype, data, (size_t)i,
                        tl_number_cast(dtype, TL_F64, (tl_number){ .f = numbers[i] }));
    const char *name = tl_arena_format(c->arena, "%s.c%d", c->name, c->temporaries++);
    return tl_graph_constant(c->graph, name, dtype, &shape, data);
}

tl_value *tl_onnx_emit_doubles(tl_onnx_call *c, const double *numbers, int rank,
                               const int64_t *extents)
{
    tl_shape shape = tl_shape_of(rank, extents);
    if (!tl_call_has_room(c, tl_shape_elements(&shape)))
        return tl_onnx_emit_scalar(c, TL_F64, 0);
    const char *name = tl_arena_format(c->arena, "%s.c%d", c->name, c->temporaries++);
    return tl_graph_constant(c->graph, name, TL_F64, &shape, numbers);
}

tl_value *tl_onnx_emit_with(tl_onnx_call *c, tl_op op, tl_value *x, double number)
{
    return tl_emit2(c, op, x, tl_onnx_emit_scalar(c, x->dtype, number));
}

tl_value *tl_onnx_emit_axes(tl_onnx_call *c, tl_op op, tl_value *x, int count, const int64_t *axes)
{
    return count > 0 ? tl_onnx_emit_ints(c, op, x, "axes", axes, count) : x;
}

tl_value *tl_onnx_emit_transpose(tl_onnx_call *c, tl_value *x, const int64_t *perm)
{
    return tl_onnx_emit_ints(c, TL_OP_TRANSPOSE, x, "perm", perm,
                             x->shape.rank > 0 ? x->shape.rank : 0);
}

tl_value *tl_onnx_emit_expand(tl_onnx_call *c, tl_value *x, const int64_t *extents, int rank)
{
    return tl_onnx_emit_ints(c, TL_OP_EXPAND, x, "shape", extents, rank);
}

tl_value *tl_onnx_emit_part(tl_onnx_call *c, tl_value *x, int64_t axis, int64_t start, int64_t end,
                            int64_t step)
{
    tl_node *n = tl_onnx_emit_node(c, TL_OP_SLICE, 1, &x);
    tl_attr_set_ints(c->graph, n, "starts", &start, 1);
    tl_attr_set_ints(c->graph, n, "ends", &end, 1);
    tl_attr_set_ints(c->graph, n, "axes", &axis, 1);
    tl_attr_set_ints(c->graph, n, "steps", &step, 1);
    return tl_emitted(c, n);
}

tl_value *tl_onnx_emit_slice(tl_onnx_call *c, tl_value *x, int axis, int64_t start, int64_t count)
{
    bool is_known = axis >= 0 && axis < x->shape.rank; /* else what made it was refused */
    bool is_whole = is_known && start == 0 && count == x->shape.dims[axis].extent;
    return is_whole ? x : tl_onnx_emit_part(c, x, axis, start, start + count, 1);
}

tl_value *tl_onnx_emit_reverse(tl_onnx_call *c, tl_value *x, int axis)
{
    return tl_onnx_emit_part(c, x, axis, -1, INT64_MIN, -1);
}

tl_value *tl_onnx_emit_concat(tl_onnx_call *c, int count, tl_value *const *parts, int axis)
{
    if (count == 1)
        return parts[0];
    tl_node *n = tl_onnx_emit_node(c, TL_OP_CONCAT, count, parts);
    tl_attr_set_int(c->graph, n, "axis", axis);
    return tl_emitted(c, n);
}

tl_value *tl_onnx_emit_gather(tl_onnx_call *c, tl_op op, tl_value *x, tl_value *indices, int axis)
{
    tl_value *inputs[] = { x, indices };
    tl_node *n = tl_onnx_emit_node(c, op, 2, inputs);
    tl_attr_set_int(c->graph, n, op == TL_OP_GATHER_ND ? "batch_dims" : "axis", axis);
    return tl_emitted(c, n);
}

tl_value *tl_onnx_emit_pad(tl_onnx_call *c, tl_value *x, const int64_t *pads, double number)
{
    bool any = false;
    for (int i = 0; i < 2 * x->shape.rank; i++)
        any |= pads[i] != 0;
    if (!any)
        return x;
    tl_value *inputs[] = { x, NULL, tl_onnx_emit_scalar(c, x->dtype, number) };
    tl_node *n = tl_onnx_emit_node(c, TL_OP_PAD, 3, inputs);
    tl_attr_set_ints(c->graph, n, "pads", pads, 2 * x->shape.rank);
    return tl_emitted(c, n);
}

tl_value *tl_onnx_emit_reshape_axis(tl_onnx_call *c, tl_value *x, int axis, int count,
                                    const int64_t *extents)
{
    int64_t shape[2 * TL_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < x->shape.rank; i++) {
        if (i != axis)
            shape[rank++] = x->shape.dims[i].extent;
        for (int k = 0; i == axis && k < count; k++)
            shape[rank++] = extents[k];
    }
    return tl_onnx_emit_reshape(c, x, shape, rank);
}

tl_value *tl_onnx_emit_along(tl_onnx_call *c, tl_value *v, int rank, int axis)
{
    int64_t extents[TL_MAX_RANK];
    for (int i = 0; i < rank; i++)
        extents[i] = i == axis ? v->shape.dims[0].extent : 1;
    return tl_onnx_emit_reshape(c, v, extents, rank);
}

tl_value *tl_onnx_emit_range(tl_onnx_call *c, int64_t count)
{
    if (count > TL_ONNX_MOST_NUMBERS) {
        tl_status status = tl_call_unsupported(c, "an axis of %lld elements", (long long)count);
        c->status = c->status == TL_OK ? status : c->status;
        count = 0;
    }
    /* computed where it is read, also where the graph may be one for all extents: this one is some extent, mostly */
    if (count > MOST_LISTED || c->graph->kept != NULL) {
        tl_value *inputs[] = { tl_onnx_emit_scalar(c, TL_I64, 0),
                               tl_onnx_emit_scalar(c, TL_I64, (double)count),
                               tl_onnx_emit_scalar(c, TL_I64, 1) };
        return tl_emitted(c, tl_onnx_emit_node(c, TL_OP_RANGE, 3, inputs));
    }
    int64_t *values = TL_NEW_ARRAY(c->arena, int64_t, count);
    for (int64_t i = 0; i < count; i++)
        values[i] = i;
    return tl_onnx_emit_i64(c, values, (int)count);
}

void tl_onnx_extents(const tl_value *v, int64_t out[TL_MAX_RANK])
{
    for (int i = 0; i < v->shape.rank; i++)
        out[i] = v->shape.dims[i].extent;
}

tl_status tl_onnx_axis(tl_onnx_call *c, int64_t axis, int rank, int *out)
{
    if (axis < -rank || axis >= rank)
        return tl_call_bad(c, "axis %lld is not one of %d axes", (long long)axis, rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return TL_OK;
}

tl_status tl_call_list(tl_onnx_call *c, const char *name, int count, int64_t otherwise,
                       int64_t least, int64_t *out)
{
    const int64_t *given;
    int given_count = tl_call_ints(c, name, &given);
    if (given_count >= 0 && given_count != count)
        return tl_call_bad(c, "%s has %d numbers, not %d", name, given_count, count);
    for (int i = 0; i < count; i++) {
        out[i] = given_count >= 0 ? given[i] : otherwise;
        if (out[i] < least || out[i] > TL_LARGEST_LISTED)
            return tl_call_bad(c, "%s holds %lld", name, (long long)out[i]);
    }
    return TL_OK;
}

tl_status tl_need_i64(tl_onnx_call *c, int input, const int64_t **out, int *count)
{
    TL_TRY(tl_call_decide(c, &c->inputs[input]));
    *count = tl_constant_i64(c->arena, c->inputs[input], out);
    return *count >= 0 ? TL_OK : tl_call_unknown(c, "its input %d is computed from data", input);
}

tl_status tl_need_numbers(tl_onnx_call *c, int input, const double **out, int *count)
{
    TL_TRY(tl_call_decide(c, &c->inputs[input]));
    const tl_value *v = c->inputs[input];
    int64_t elements = v->data != NULL ? tl_shape_elements(&v->shape) : -1;
    if (elements < 0 || elements > 1 << 20)
        return tl_call_unknown(c, "its input %d is computed from data", input);
    double *numbers = TL_NEW_ARRAY(c->arena, double, elements);
    for (int64_t i = 0; i < elements; i++) {
        tl_number n = tl_number_load(v->dtype, v->data, (size_t)i);
        numbers[i] = tl_dtype_is_float(v->dtype) ? n.f : (double)n.i;
    }
    *out = numbers;
    *count = (int)elements;
    return TL_OK;
}

tl_status tl_need_axis(tl_onnx_call *c, int input, int64_t otherwise, int rank, int *out)
{
    double given;
    TL_TRY(tl_need_scalar(c, input, (double)otherwise, &given));
    if (!(fabs(given) <= TL_MAX_RANK))
        return tl_call_bad(c, "axis %g is not one of %d axes", given, rank);
    return tl_onnx_axis(c, (int64_t)given, rank, out);
}

tl_status tl_need_scalar(tl_onnx_call *c, int input, double otherwise, double *out)
{
    const double *numbers;
    int count;
    *out = otherwise;
    if (tl_call_input(c, input) == NULL)
        return TL_OK;
    TL_TRY(tl_need_numbers(c, input, &numbers, &count));
    if (count != 1)
        return tl_call_bad(c, "its input %d has %d elements, not one", input, count);
    *out = numbers[0];
    return TL_OK;
}
