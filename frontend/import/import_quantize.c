/* frontend/import/import_quantize.c: numbers of few bits, with a scale and a zero point.
 *
 *     quantize      y = saturate(round to even(x / scale) + zero point)         in float
 *     dequantize    y = (x - zero point) * scale                                the difference in i32
 *
 * A product of quantised operands is one of i32, zero points taken off before: exact, and padding is zero. */
#include <math.h>
#include <string.h>
#include "frontend/call/onnx_counts.h"
#include "frontend/import/import_quantize.h"

/* A scale or zero point as it broadcasts to x: of one element; a vector along the axis; or a tensor of x's rank, in which each
 * element along the axis is that of `block` elements. */
static tl_status spread_over(tl_onnx_call *c, tl_value *v, const tl_value *x, tl_value **out)
{
    int rank = x->shape.rank, axis = 0;
    int64_t block = tl_call_int(c, "block_size", 0), wide[2 * TL_MAX_RANK], extents[TL_MAX_RANK];
    *out = v;
    TL_TRY(tl_need_shape(c, v));
    if (v->shape.rank == 0 || (v->shape.rank == 1 && v->shape.dims[0].extent == 1)) {
        *out = tl_onnx_emit_reshape(c, v, NULL, 0);
        return TL_OK;
    }
    TL_TRY(tl_onnx_axis(c, tl_call_int(c, "axis", 1), rank, &axis));
    if (v->shape.rank == 1) {
        if (v->shape.dims[0].extent != x->shape.dims[axis].extent &&
            tl_count_at(c->import, x, axis) == NULL) /* else the vector says how many there are */
            return tl_call_bad(c, "%lld scales or zero points for %lld elements of axis %d",
                               (long long)v->shape.dims[0].extent,
                               (long long)x->shape.dims[axis].extent, axis);
        *out = tl_onnx_emit_along(c, v, rank, axis);
        return TL_OK;
    }
    if (v->shape.rank != rank || block < 1 || rank == TL_MAX_RANK)
        return tl_call_bad(c, "scales or zero points of %d axes, block_size %lld", v->shape.rank,
                           (long long)block);
    tl_onnx_extents(v, extents);
    tl_value *y = tl_onnx_emit_reshape_axis(c, v, axis, 2, (int64_t[]){ extents[axis], 1 });
    tl_onnx_extents(y, wide);
    wide[axis + 1] = block;
    y = tl_onnx_emit_expand(c, y, wide, rank + 1);
    extents[axis] *= block;
    y = tl_onnx_emit_reshape(c, y, extents, rank);
    if (extents[axis] < x->shape.dims[axis].extent)
        return tl_call_bad(c, "%lld blocks of %lld do not cover axis %d",
                           (long long)(extents[axis] / block), (long long)block, axis);
    *out = tl_onnx_emit_slice(c, y, axis, 0, x->shape.dims[axis].extent);
    return TL_OK;
}

tl_status tl_onnx_check_quantized(tl_onnx_call *c, tl_dtype dtype)
{
    return tl_dtype_is_int(dtype)
               ? TL_OK
               : tl_call_unsupported(c, "numbers quantised to %s", tl_dtype_infos[dtype].text);
}

tl_value *tl_onnx_saturate(tl_onnx_call *c, tl_value *scaled, tl_value *zero, tl_dtype dtype)
{
    tl_value *y = tl_emit1(c, TL_OP_ROUND, scaled);
    if (zero != NULL)
        y = tl_emit2(c, TL_OP_ADD, y, tl_onnx_emit_cast(c, zero, y->dtype));
    const tl_dtype_info *info = &tl_dtype_infos[dtype];
    if (info->digits < info->bits) { /* a cast would wrap */
        tl_value *inputs[] = { y, tl_onnx_emit_scalar(c, y->dtype, (double)info->least),
                               tl_onnx_emit_scalar(c, y->dtype, (double)info->largest) };
        y = tl_emitted(c, tl_onnx_emit_node(c, TL_OP_CLIP, 3, inputs));
    }
    return tl_onnx_emit_cast(c, y, dtype);
}

tl_value *tl_onnx_wide_float(tl_onnx_call *c, tl_value *x)
{
    return x->dtype == TL_F64 ? x : tl_onnx_emit_cast(c, x, TL_F32);
}

tl_status tl_import_quantize_linear(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *scale = c->inputs[1], *zero = tl_call_input(c, 2);
    tl_dtype dtype = TL_U8;
    int asked = (int)tl_call_int(c, "output_dtype", 0);
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_dtype(c, x));
    if (zero != NULL) {
        TL_TRY(tl_need_dtype(c, zero));
        dtype = zero->dtype;
    } else if (asked != 0 && !tl_dtype_from_onnx(asked, &dtype)) {
        return tl_call_unsupported(c, "numbers quantised to %s", tl_onnx_dtype_text(asked));
    }
    TL_TRY(tl_onnx_check_quantized(c, dtype));
    TL_TRY(spread_over(c, scale, x, &scale));
    if (zero != NULL)
        TL_TRY(spread_over(c, zero, x, &zero));
    tl_value *scaled =
        tl_emit2(c, TL_OP_DIV, tl_onnx_wide_float(c, x), tl_onnx_wide_float(c, scale));
    tl_result(c, 0, tl_onnx_saturate(c, scaled, zero, dtype));
    return TL_OK;
}

tl_status tl_import_dequantize_linear(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *scale = c->inputs[1], *zero = tl_call_input(c, 2);
    int asked = (int)tl_call_int(c, "output_dtype", 0);
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_dtype(c, x));
    TL_TRY(tl_need_dtype(c, scale));
    tl_dtype dtype = scale->dtype;
    if (asked != 0 && !tl_dtype_from_onnx(asked, &dtype))
        return tl_call_unsupported(c, "numbers of %s", tl_onnx_dtype_text(asked));
    TL_TRY(tl_onnx_check_quantized(c, x->dtype));
    TL_TRY(spread_over(c, scale, x, &scale));
    tl_value *y = tl_onnx_emit_cast(c, x, TL_I32);
    if (zero != NULL) {
        TL_TRY(spread_over(c, zero, x, &zero));
        y = tl_emit2(c, TL_OP_SUB, y, tl_onnx_emit_cast(c, zero, TL_I32));
    }
    y = tl_emit2(c, TL_OP_MUL, tl_onnx_wide_float(c, y), tl_onnx_wide_float(c, scale));
    tl_result(c, 0, tl_onnx_emit_cast(c, y, dtype));
    return TL_OK;
}

void tl_onnx_quantize_range(tl_onnx_call *c, tl_value *x, tl_value *out[3])
{
    tl_value *zero = tl_onnx_emit_scalar(c, x->dtype, 0);
    tl_value *high =
        tl_emit2(c, TL_OP_MAX, zero, tl_onnx_emit_reduce(c, TL_OP_REDUCE_MAX, x, NULL, 0, false));
    tl_value *low =
        tl_emit2(c, TL_OP_MIN, zero, tl_onnx_emit_reduce(c, TL_OP_REDUCE_MIN, x, NULL, 0, false));
    tl_value *scale = tl_onnx_emit_with(c, TL_OP_DIV, tl_emit2(c, TL_OP_SUB, high, low), 255);
    tl_value *is_zero = tl_emit2(c, TL_OP_EQUAL, scale, zero);
    tl_value *divisor = tl_onnx_emit_where(c, is_zero, tl_onnx_emit_scalar(c, x->dtype, 1), scale);
    tl_value *point =
        tl_onnx_saturate(c, tl_emit1(c, TL_OP_NEG, tl_emit2(c, TL_OP_DIV, low, divisor)), NULL,
                         TL_U8);
    out[0] = tl_onnx_saturate(c, tl_emit2(c, TL_OP_DIV, x, divisor), point, TL_U8);
    out[1] = scale;
    out[2] = point;
}

tl_status tl_import_dynamic_quantize(tl_onnx_call *c)
{
    tl_value *out[3];
    TL_TRY(tl_need_shape(c, c->inputs[0]));
    TL_TRY(tl_need_dtype(c, c->inputs[0]));
    tl_onnx_quantize_range(c, c->inputs[0], out);
    for (int i = 0; i < 3; i++)
        tl_result(c, i, out[i]);
    return TL_OK;
}

tl_status tl_onnx_take_off(tl_onnx_call *c, tl_value *x, tl_value *zero, int axis, tl_value **out)
{
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_dtype(c, x));
    *out = tl_onnx_emit_cast(c, x, TL_I32);
    if (zero == NULL)
        return TL_OK;
    TL_TRY(tl_need_shape(c, zero));
    zero = tl_onnx_emit_cast(c, zero, TL_I32);
    if (tl_shape_elements(&zero->shape) == 1)
        zero = tl_onnx_emit_reshape(c, zero, NULL, 0);
    else if (zero->shape.rank == 1 && axis < 0 && x->shape.rank >= 2)
        zero = tl_onnx_emit_along(c, zero, 2, 0);
    else if (zero->shape.rank == 1 && axis == 0)
        zero = tl_onnx_emit_along(c, zero, x->shape.rank, 0);
    *out = tl_emit2(c, TL_OP_SUB, *out, zero);
    return TL_OK;
}

/* acc * (a * b / y), rounded and saturated to the dtype of the zero point. */
static tl_value *requantize(tl_onnx_call *c, tl_value *acc, tl_value *a, tl_value *b, tl_value *y,
                            tl_value *zero)
{
    tl_value *factor =
        tl_emit2(c, TL_OP_DIV,
                 tl_emit2(c, TL_OP_MUL, tl_onnx_wide_float(c, a), tl_onnx_wide_float(c, b)),
                 tl_onnx_wide_float(c, y));
    tl_value *scaled = tl_emit2(c, TL_OP_MUL, tl_onnx_emit_cast(c, acc, TL_F32), factor);
    return tl_onnx_saturate(c, scaled, zero, zero->dtype);
}

/* A scale along rows: [M] as [M, 1]. */
static tl_value *as_rows(tl_onnx_call *c, tl_value *v)
{
    return v->shape.rank == 1 && v->shape.dims[0].extent > 1 ? tl_onnx_emit_along(c, v, 2, 0) : v;
}

tl_value *tl_onnx_as_scalar(tl_onnx_call *c, tl_value *v)
{
    return tl_shape_elements(&v->shape) == 1 ? tl_onnx_emit_reshape(c, v, NULL, 0) : v;
}

tl_status tl_import_matmul_integer(tl_onnx_call *c)
{
    tl_value *a, *b;
    TL_TRY(tl_onnx_take_off(c, c->inputs[0], tl_call_input(c, 2), -1, &a));
    TL_TRY(tl_onnx_take_off(c, c->inputs[1], tl_call_input(c, 3), 1, &b));
    tl_result(c, 0, tl_emit2(c, TL_OP_MATMUL, a, b));
    return TL_OK;
}

tl_status tl_import_qlinear_matmul(tl_onnx_call *c)
{
    tl_value *a, *b;
    for (int i = 0; i < 8; i++) {
        TL_TRY(tl_need_shape(c, c->inputs[i]));
        TL_TRY(tl_need_dtype(c, c->inputs[i]));
    }
    TL_TRY(tl_onnx_check_quantized(c, c->inputs[7]->dtype));
    TL_TRY(tl_onnx_take_off(c, c->inputs[0], c->inputs[2], -1, &a));
    TL_TRY(tl_onnx_take_off(c, c->inputs[3], c->inputs[5], 1, &b));
    tl_result(c, 0,
              requantize(c, tl_emit2(c, TL_OP_MATMUL, a, b),
                         as_rows(c, tl_onnx_as_scalar(c, c->inputs[1])),
                         tl_onnx_as_scalar(c, c->inputs[4]), tl_onnx_as_scalar(c, c->inputs[6]),
                         tl_onnx_as_scalar(c, c->inputs[7])));
    return TL_OK;
}

static tl_status convolve(tl_onnx_call *c, tl_value *x, tl_value *w, tl_value *bias, tl_value **out)
{
    tl_value *inputs[] = { x, w, bias };
    tl_node *n = tl_onnx_emit_node(c, TL_OP_CONV, bias != NULL ? 3 : 2, inputs);
    tl_copy_attributes(c, n);
    TL_TRY(tl_check_auto_pad(c, n));
    *out = tl_emitted(c, n);
    return TL_OK;
}

tl_status tl_import_conv_integer(tl_onnx_call *c)
{
    tl_value *x, *w, *y;
    TL_TRY(tl_onnx_take_off(c, c->inputs[0], tl_call_input(c, 2), 1, &x));
    TL_TRY(tl_onnx_take_off(c, c->inputs[1], tl_call_input(c, 3), 0, &w));
    TL_TRY(convolve(c, x, w, NULL, &y));
    tl_result(c, 0, y);
    return TL_OK;
}

/* A scale for each channel of the result. */
static tl_value *as_channels(tl_onnx_call *c, tl_value *v, int rank)
{
    v = tl_onnx_as_scalar(c, v);
    return v->shape.rank == 1 ? tl_onnx_emit_channel_vector(c, v, rank) : v;
}

tl_status tl_import_qlinear_conv(tl_onnx_call *c)
{
    tl_value *x, *w, *y;
    for (int i = 0; i < 8; i++) {
        TL_TRY(tl_need_shape(c, c->inputs[i]));
        TL_TRY(tl_need_dtype(c, c->inputs[i]));
    }
    TL_TRY(tl_onnx_check_quantized(c, c->inputs[7]->dtype));
    TL_TRY(tl_onnx_take_off(c, c->inputs[0], c->inputs[2], 1, &x));
    TL_TRY(tl_onnx_take_off(c, c->inputs[3], c->inputs[5], 0, &w));
    TL_TRY(convolve(c, x, w, tl_call_input(c, 8), &y));
    int rank = x->shape.rank;
    tl_result(c, 0,
              requantize(c, y, tl_onnx_as_scalar(c, c->inputs[1]),
                         as_channels(c, c->inputs[4], rank), tl_onnx_as_scalar(c, c->inputs[6]),
                         tl_onnx_as_scalar(c, c->inputs[7])));
    return TL_OK;
}
