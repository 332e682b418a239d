/* frontend/import/import_norm.c: normalisations. Layer and batch normalisation have canonical operators; the others are
 * written out: (x - mean) / sqrt(variance + epsilon), scaled and shifted. */
#include <string.h>
#include "frontend/call/onnx_counts.h"
#include "frontend/import/import_rules.h"
#include "runtime/base/checked.h"

tl_status tl_import_batch_norm(tl_onnx_call *c)
{
    if (tl_call_int(c, "spatial", 1) == 0)
        return tl_call_unsupported(c, "statistics for each position (spatial = 0)");
    if (tl_call_int(c, "training_mode", 0) != 0)
        return tl_call_unsupported(c, "training mode");
    tl_node *n = tl_onnx_emit_node(c, TL_OP_BATCH_NORM, 5, c->inputs);
    tl_attr_set_float(c->graph, n, "epsilon", tl_call_float(c, "epsilon", 1e-5f));
    tl_result(c, 0, tl_emitted(c, n));
    return TL_OK;
}

static tl_value *mean(tl_onnx_call *c, tl_value *x, const int64_t *axes, int count)
{
    return tl_onnx_emit_reduce(c, TL_OP_REDUCE_MEAN, x, axes, count, true);
}

/* sqrt(mean(x*x) + epsilon) */
static tl_value *deviation(tl_onnx_call *c, tl_value *x, const int64_t *axes, int count,
                           double epsilon)
{
    tl_value *variance = mean(c, tl_emit2(c, TL_OP_MUL, x, x), axes, count);
    tl_value *sum = tl_emit2(c, TL_OP_ADD, variance, tl_onnx_emit_scalar(c, x->dtype, epsilon));
    return tl_emit1(c, TL_OP_SQRT, sum);
}

static tl_value *normalise(tl_onnx_call *c, tl_value *x, const int64_t *axes, int count,
                           double epsilon)
{
    tl_value *centred = tl_emit2(c, TL_OP_SUB, x, mean(c, x, axes, count));
    return tl_emit2(c, TL_OP_DIV, centred, deviation(c, centred, axes, count, epsilon));
}

static tl_value *affine(tl_onnx_call *c, tl_value *x, tl_value *scale, tl_value *shift)
{
    return tl_emit2(c, TL_OP_ADD, tl_emit2(c, TL_OP_MUL, x, scale), shift);
}

/* axis .. rank-1 into `axes`. */
static tl_status trailing_axes(tl_onnx_call *c, const tl_value *x, int64_t axis,
                               int64_t axes[TL_MAX_RANK], int *count)
{
    int rank;
    TL_TRY(tl_need_rank(c, x, &rank));
    axis = axis < 0 ? axis + rank : axis;
    if (axis < 0 || axis >= rank)
        return tl_call_bad(c, "axis %lld is outside %d axes", (long long)axis, rank);
    *count = rank - (int)axis;
    for (int i = 0; i < *count; i++)
        axes[i] = axis + i;
    return TL_OK;
}

/* Whether data count some extent that is normalised, or how many scales there are. */
static bool counts_normalised(tl_onnx_call *c, int64_t axis)
{
    int rank = c->inputs[0]->shape.rank;
    int64_t first = tl_max64(axis < 0 ? axis + rank : axis, 0);
    return !tl_counts_only_lead(c->import, c->inputs, c->input_count, (int)tl_min64(first, rank));
}

/* In its parts, which know all counts: in f32 at least, then scaled in the input's dtype. */
static tl_status layer_norm_parts(tl_onnx_call *c, int64_t axis, double epsilon, tl_value **out)
{
    tl_value *x = c->inputs[0], *shift = tl_call_input(c, 2);
    int64_t axes[TL_MAX_RANK];
    int count;
    TL_TRY(tl_need_dtype(c, x));
    TL_TRY(trailing_axes(c, x, axis, axes, &count));
    tl_dtype dtype = x->dtype, wide = tl_accumulate_dtype(dtype);
    tl_value *y = normalise(c, tl_onnx_emit_cast(c, x, wide), axes, count, epsilon);
    y = tl_emit2(c, TL_OP_MUL, tl_onnx_emit_cast(c, y, dtype), c->inputs[1]);
    *out = shift != NULL ? tl_emit2(c, TL_OP_ADD, y, shift) : y;
    return TL_OK;
}

/* The statistics, where they are wanted, are computed apart (in f32, as stash_type says). */
tl_status tl_import_layer_norm(tl_onnx_call *c)
{
    double epsilon = tl_call_float(c, "epsilon", 1e-5f);
    int64_t axis = tl_call_int(c, "axis", -1), axes[TL_MAX_RANK];
    int count;
    if (counts_normalised(c, axis)) {
        tl_value *y;
        TL_TRY(layer_norm_parts(c, axis, epsilon, &y));
        tl_result(c, 0, y);
    } else {
        tl_node *n = tl_onnx_emit_node(c, TL_OP_LAYER_NORM, c->input_count, c->inputs);
        tl_attr_set_int(c->graph, n, "axis", axis);
        tl_attr_set_float(c->graph, n, "epsilon", epsilon);
        tl_result(c, 0, tl_emitted(c, n));
    }
    if (!tl_call_wants(c, 1) && !tl_call_wants(c, 2))
        return TL_OK;
    TL_TRY(tl_need_dtype(c, c->inputs[0]));
    tl_value *x = tl_onnx_emit_cast(c, c->inputs[0], TL_F32);
    TL_TRY(trailing_axes(c, x, axis, axes, &count));
    tl_value *m = mean(c, x, axes, count);
    tl_result(c, 1, m);
    tl_value *spread = deviation(c, tl_emit2(c, TL_OP_SUB, x, m), axes, count, epsilon);
    tl_result(c, 2, tl_emit1(c, TL_OP_RECIPROCAL, spread));
    return TL_OK;
}

tl_status tl_import_instance_norm(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    int64_t axes[TL_MAX_RANK];
    int rank, count;
    TL_TRY(tl_need_dtype(c, x));
    TL_TRY(tl_need_rank(c, x, &rank));
    TL_TRY(trailing_axes(c, x, 2, axes, &count));
    tl_value *y = normalise(c, x, axes, count, tl_call_float(c, "epsilon", 1e-5f));
    tl_result(c, 0,
              affine(c, y, tl_onnx_emit_channel_vector(c, c->inputs[1], rank),
                     tl_onnx_emit_channel_vector(c, c->inputs[2], rank)));
    return TL_OK;
}

/* [N, C, ...] as [N, groups, C/groups * ...]; scale and shift are one a group up to opset 20, one a channel from 21. */
tl_status tl_import_group_norm(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *scale = c->inputs[1], *shift = c->inputs[2];
    int64_t groups = tl_call_int(c, "num_groups", 0), full[TL_MAX_RANK];
    TL_TRY(tl_need_dtype(c, x));
    TL_TRY(tl_need_shape(c, x));
    int rank = x->shape.rank;
    if (rank < 2 || groups < 1 || x->shape.dims[1].extent % groups != 0)
        return tl_call_bad(c, "num_groups %lld does not divide the channels", (long long)groups);
    for (int i = 0; i < rank; i++)
        full[i] = x->shape.dims[i].extent;
    int64_t elements = tl_shape_elements(&x->shape);
    int64_t rest = elements == 0 ? 0 : elements / full[0] / groups;
    const int64_t grouped[] = { full[0], groups, rest }, last = 2;
    double epsilon = tl_call_float(c, "epsilon", 1e-5f);
    tl_value *y = normalise(c, tl_onnx_emit_reshape(c, x, grouped, 3), &last, 1, epsilon);
    if (c->version < 21)
        y = affine(c, y, tl_onnx_emit_channel_vector(c, scale, 3),
                   tl_onnx_emit_channel_vector(c, shift, 3));
    y = tl_onnx_emit_reshape(c, y, full, rank);
    if (c->version >= 21)
        y = affine(c, y, tl_onnx_emit_channel_vector(c, scale, rank),
                   tl_onnx_emit_channel_vector(c, shift, rank));
    tl_result(c, 0, y);
    return TL_OK;
}

tl_status tl_onnx_emit_rms_norm(tl_onnx_call *c, tl_value *x, tl_value *scale, int64_t axis,
                                double epsilon, tl_value **out, tl_value **spread)
{
    int64_t axes[TL_MAX_RANK];
    int count;
    TL_TRY(tl_need_dtype(c, x));
    tl_dtype dtype = x->dtype;
    bool wide = dtype == TL_F16 || dtype == TL_BF16;
    x = wide ? tl_onnx_emit_cast(c, x, TL_F32) : x;
    TL_TRY(trailing_axes(c, x, axis, axes, &count));
    *spread = deviation(c, x, axes, count, epsilon);
    tl_value *y = tl_onnx_emit_cast(c, tl_emit2(c, TL_OP_DIV, x, *spread), dtype);
    *out = tl_emit2(c, TL_OP_MUL, y, scale);
    return TL_OK;
}

tl_status tl_import_rms_norm(tl_onnx_call *c)
{
    tl_value *y, *spread;
    TL_TRY(tl_onnx_emit_rms_norm(c, c->inputs[0], c->inputs[1], tl_call_int(c, "axis", -1),
                                 tl_call_float(c, "epsilon", 1e-5f), &y, &spread));
    tl_result(c, 0, y);
    if (tl_call_wants(c, 1))
        tl_result(c, 1, tl_emit1(c, TL_OP_RECIPROCAL, spread));
    return TL_OK;
}

/* x over its norm along one axis; where that is 0, 0. */
tl_status tl_import_lp_norm(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    int64_t axis = tl_call_int(c, "axis", -1), p = tl_call_int(c, "p", 2);
    TL_TRY(tl_need_dtype(c, x));
    if (p != 1 && p != 2)
        return tl_call_bad(c, "p is 1 or 2, not %lld", (long long)p);
    tl_value *part = p == 1 ? tl_emit1(c, TL_OP_ABS, x) : tl_emit2(c, TL_OP_MUL, x, x);
    tl_value *norm = tl_onnx_emit_reduce(c, TL_OP_REDUCE_SUM, part, &axis, 1, true);
    norm = p == 1 ? norm : tl_emit1(c, TL_OP_SQRT, norm);
    tl_value *zero = tl_onnx_emit_scalar(c, x->dtype, 0);
    tl_value *y = tl_emit2(c, TL_OP_DIV, x, norm);
    tl_result(c, 0, tl_onnx_emit_where(c, tl_emit2(c, TL_OP_EQUAL, norm, zero), zero, y));
    return TL_OK;
}

tl_status tl_import_mean_variance(tl_onnx_call *c)
{
    static const int64_t usual[] = { 0, 2, 3 };
    tl_value *x = c->inputs[0];
    const int64_t *axes;
    int count = tl_call_ints(c, "axes", &axes);
    TL_TRY(tl_need_dtype(c, x));
    tl_value *y = normalise(c, x, count < 0 ? usual : axes, count < 0 ? 3 : count, 1e-9);
    tl_result(c, 0, y);
    return TL_OK;
}

/* x / (bias + alpha/size * sum of the squares of `size` channels around)^beta: the sum is an average pool over
 * the channels, seen as the rows of a picture [N, 1, C, rest], times size. */
tl_status tl_import_lrn(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    int64_t size = tl_call_int(c, "size", 0);
    TL_TRY(tl_need_dtype(c, x));
    TL_TRY(tl_need_shape(c, x));
    int rank = x->shape.rank;
    if (rank < 2 || size < 1 || size > 1 << 20)
        return tl_call_bad(c, "size %lld of %d axes", (long long)size, rank);
    int64_t full[TL_MAX_RANK];
    for (int i = 0; i < rank; i++)
        full[i] = x->shape.dims[i].extent;
    int64_t elements = tl_shape_elements(&x->shape);
    int64_t rest = elements == 0 ? 0 : elements / full[0] / full[1];
    const int64_t picture[] = { full[0], 1, full[1], rest }, window[] = { size, 1 };
    const int64_t pads[] = { (size - 1) / 2, 0, size / 2, 0 };
    tl_value *squares = tl_onnx_emit_reshape(c, tl_emit2(c, TL_OP_MUL, x, x), picture, 4);
    tl_node *n = tl_onnx_emit_node(c, TL_OP_AVERAGE_POOL, 1, &squares);
    tl_attr_set_ints(c->graph, n, "kernel_shape", window, 2);
    tl_attr_set_ints(c->graph, n, "pads", pads, 4);
    tl_attr_set_int(c->graph, n, "count_include_pad", 1);
    tl_value *average = tl_onnx_emit_reshape(c, tl_emitted(c, n), full, rank);
    tl_value *alpha = tl_onnx_emit_scalar(c, x->dtype, tl_call_float(c, "alpha", 1e-4f));
    tl_value *bias = tl_onnx_emit_scalar(c, x->dtype, tl_call_float(c, "bias", 1));
    tl_value *beta = tl_onnx_emit_scalar(c, x->dtype, tl_call_float(c, "beta", 0.75));
    tl_value *base = tl_emit2(c, TL_OP_ADD, tl_emit2(c, TL_OP_MUL, average, alpha), bias);
    tl_result(c, 0, tl_emit2(c, TL_OP_DIV, x, tl_emit2(c, TL_OP_POW, base, beta)));
    return TL_OK;
}
