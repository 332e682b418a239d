/* frontend/import/import_qlinear.c: quantised operators of com.microsoft: numbers of 8 bits in and out, each with its scale and
 * zero point.
 *
 *     y = saturate(round(f((a - za) * sa, ..) / sy) + zy)
 *
 * Sums and products take the factors sa / sy together, and are rounded behind the zero point, as ONNX Runtime has them, so that
 * they round in the same places:
 *
 *     QLinearAdd  saturate(round(a * sa/sy + (b * sb/sy + (zy - (za * sa/sy + zb * sb/sy)))))
 *     QLinearMul  saturate(round((a - za) * (b - zb) * (sa*sb/sy) + zy)) */
#include "frontend/import/import_quantize.h"

/* An operand: numbers, scale, zero point (it may be left out), from input `first` on. */
typedef struct {
    tl_value *steps; /* numbers without the zero point, in f32 */
    tl_value *scale;
} operand;

static tl_status read_scale(tl_onnx_call *c, int input, tl_value **out)
{
    TL_TRY(tl_need_inputs(c, 1u << input));
    TL_TRY(tl_need_shape(c, c->inputs[input]));
    *out = tl_onnx_as_scalar(c, c->inputs[input]);
    return (*out)->shape.rank == 0
               ? TL_OK
               : tl_call_unsupported(c, "several scales for one operand (input %d)", input);
}

static tl_status read_operand(tl_onnx_call *c, tl_value *x, int scale, operand *out)
{
    tl_value *steps = NULL;
    TL_TRY(read_scale(c, scale, &out->scale));
    TL_TRY(tl_onnx_take_off(c, x, tl_call_input(c, scale + 1), 0, &steps));
    TL_TRY(tl_onnx_check_quantized(c, x->dtype));
    out->steps = tl_onnx_emit_cast(c, steps, TL_F32);
    return TL_OK;
}

/* The zero point of the result, an input, and its dtype; without one, NULL and that of input 0. */
static tl_status read_zero(tl_onnx_call *c, int input, tl_value **zero, tl_dtype *dtype)
{
    *zero = tl_call_input(c, input);
    *dtype = c->inputs[0]->dtype;
    if (*zero != NULL) {
        TL_TRY(tl_need_shape(c, *zero));
        TL_TRY(tl_need_dtype(c, *zero));
        *dtype = (*zero)->dtype;
        *zero = tl_onnx_as_scalar(c, *zero);
    }
    return tl_onnx_check_quantized(c, *dtype);
}

/* `scaled` in steps of the result. */
static tl_status give(tl_onnx_call *c, tl_value *scaled, int zero_input)
{
    tl_value *zero;
    tl_dtype dtype;
    TL_TRY(read_zero(c, zero_input, &zero, &dtype));
    tl_result(c, 0, tl_onnx_saturate(c, scaled, zero, dtype));
    return TL_OK;
}

/* A zero point as a number; NULL: 0. */
static tl_value *zero_number(tl_onnx_call *c, tl_value *zero)
{
    if (zero == NULL)
        return tl_onnx_emit_scalar(c, TL_F32, 0);
    if (zero->shape.rank > 0)
        zero = tl_onnx_as_scalar(c, zero);
    return tl_onnx_emit_cast(c, zero, TL_F32);
}

static tl_value *real(tl_onnx_call *c, const operand *x)
{
    return tl_emit2(c, TL_OP_MUL, x->steps, x->scale);
}

/* Two operands, and the scale of the result. */
static tl_status read_pair(tl_onnx_call *c, operand *a, operand *b, tl_value **scale)
{
    TL_TRY(tl_need_inputs(c, 1u << 3));
    TL_TRY(read_operand(c, c->inputs[0], 1, a));
    TL_TRY(read_operand(c, c->inputs[3], 4, b));
    return read_scale(c, 6, scale);
}

tl_status tl_import_qlinear_add(tl_onnx_call *c)
{
    operand a, b;
    tl_value *scale, *zero;
    tl_dtype dtype;
    TL_TRY(read_pair(c, &a, &b, &scale));
    TL_TRY(read_zero(c, 7, &zero, &dtype));
    tl_value *by[] = { tl_emit2(c, TL_OP_DIV, a.scale, scale),
                       tl_emit2(c, TL_OP_DIV, b.scale, scale) };
    tl_value *part[2], *zeros[2];
    for (int i = 0; i < 2; i++) {
        part[i] = tl_onnx_emit_cast(c, c->inputs[3 * i], TL_F32);
        part[i] = tl_emit2(c, TL_OP_MUL, part[i], by[i]);
        zeros[i] = tl_emit2(c, TL_OP_MUL, zero_number(c, tl_call_input(c, 3 * i + 2)), by[i]);
    }
    tl_value *offset = tl_emit2(c, TL_OP_ADD, zeros[0], zeros[1]);
    offset = tl_emit2(c, TL_OP_SUB, zero_number(c, zero), offset);
    tl_value *y = tl_emit2(c, TL_OP_ADD, part[0], tl_emit2(c, TL_OP_ADD, part[1], offset));
    tl_result(c, 0, tl_onnx_saturate(c, y, NULL, dtype));
    return TL_OK;
}

tl_status tl_import_qlinear_mul(tl_onnx_call *c)
{
    operand a, b;
    tl_value *scale, *zero;
    tl_dtype dtype;
    TL_TRY(read_pair(c, &a, &b, &scale));
    TL_TRY(read_zero(c, 7, &zero, &dtype));
    scale = tl_emit2(c, TL_OP_DIV, tl_emit2(c, TL_OP_MUL, a.scale, b.scale), scale);
    tl_value *y = tl_emit2(c, TL_OP_MUL, tl_emit2(c, TL_OP_MUL, a.steps, b.steps), scale);
    y = tl_emit2(c, TL_OP_ADD, y, zero_number(c, zero));
    tl_result(c, 0, tl_onnx_saturate(c, y, NULL, dtype));
    return TL_OK;
}

tl_status tl_import_qlinear_sigmoid(tl_onnx_call *c)
{
    operand x;
    tl_value *scale;
    TL_TRY(read_operand(c, c->inputs[0], 1, &x));
    TL_TRY(read_scale(c, 3, &scale));
    return give(c, tl_emit2(c, TL_OP_DIV, tl_emit1(c, TL_OP_SIGMOID, real(c, &x)), scale), 4);
}

tl_status tl_import_qlinear_leaky_relu(tl_onnx_call *c)
{
    operand x;
    tl_value *scale;
    TL_TRY(read_operand(c, c->inputs[0], 1, &x));
    TL_TRY(read_scale(c, 3, &scale));
    double alpha = tl_call_float(c, "alpha", 0.01f);
    tl_value *y = real(c, &x);
    TL_TRY(tl_onnx_emit_activation(c, "LeakyRelu", 1, &alpha, &y));
    return give(c, tl_emit2(c, TL_OP_DIV, y, scale), 4);
}

/* The sum of the places is exact; one factor makes steps of the result of it. */
tl_status tl_import_qlinear_global_average_pool(tl_onnx_call *c)
{
    operand x;
    tl_value *scale;
    bool last = tl_call_int(c, "channels_last", 0) != 0;
    int64_t axes[TL_MAX_RANK], places = 1;
    TL_TRY(read_operand(c, c->inputs[0], 1, &x));
    TL_TRY(read_scale(c, 3, &scale));
    int rank = x.steps->shape.rank;
    if (rank < 3)
        return tl_call_bad(c, "its input has %d axes, at least 3 are required", rank);
    for (int i = 0; i < rank - 2; i++) {
        axes[i] = i + (last ? 1 : 2);
        places *= x.steps->shape.dims[axes[i]].extent;
    }
    tl_value *sum = tl_onnx_emit_cast(c, x.steps, TL_I32);
    sum = tl_onnx_emit_reduce(c, TL_OP_REDUCE_SUM, sum, axes, rank - 2, true);
    tl_value *by = tl_onnx_emit_with(c, TL_OP_MUL, scale, (double)places);
    by = tl_emit2(c, TL_OP_DIV, x.scale, by);
    return give(c, tl_emit2(c, TL_OP_MUL, tl_onnx_emit_cast(c, sum, TL_F32), by), 4);
}

/* Inputs 0 and 1 are the scale and zero point of the result, then there are three for each part. */
tl_status tl_import_qlinear_concat(tl_onnx_call *c)
{
    tl_value *scale, *zero = c->inputs[1];
    int parts = (c->input_count - 2) / 3, rank = 0, axis = 0;
    tl_value **done = TL_NEW_ARRAY(c->arena, tl_value *, parts > 0 ? parts : 1);
    if (parts < 1 || c->input_count != 2 + 3 * parts)
        return tl_call_bad(c, "its inputs are not three for each part");
    TL_TRY(read_scale(c, 0, &scale));
    TL_TRY(tl_need_shape(c, zero));
    TL_TRY(tl_need_dtype(c, zero));
    TL_TRY(tl_onnx_check_quantized(c, zero->dtype));
    for (int i = 0; i < parts; i++) {
        operand x;
        if (c->inputs[2 + 3 * i] == NULL || c->inputs[3 + 3 * i] == NULL)
            return tl_call_bad(c, "part %d or its scale is missing", i);
        TL_TRY(read_operand(c, c->inputs[2 + 3 * i], 3 + 3 * i, &x));
        rank = x.steps->shape.rank;
        done[i] = tl_onnx_saturate(c, tl_emit2(c, TL_OP_DIV, real(c, &x), scale),
                                   tl_onnx_as_scalar(c, zero), zero->dtype);
    }
    if (!tl_call_has(c, "axis"))
        return tl_call_bad(c, "attribute 'axis' is required");
    TL_TRY(tl_onnx_axis(c, tl_call_int(c, "axis", 0), rank, &axis));
    tl_result(c, 0, tl_onnx_emit_concat(c, parts, done, axis));
    return TL_OK;
}

/* ---- products whose result is not quantised ---- */

/* a b in i32, times both scales, and the bias. */
static tl_status scaled_product(tl_onnx_call *c, tl_value *a, tl_value *a_scale, tl_value *a_zero,
                                int b_scale, int b_zero, int bias)
{
    tl_value *left = NULL, *right = NULL;
    TL_TRY(tl_need_shape(c, a_scale));
    TL_TRY(tl_need_shape(c, c->inputs[b_scale]));
    TL_TRY(tl_onnx_take_off(c, a, a_zero, -1, &left));
    TL_TRY(tl_onnx_take_off(c, c->inputs[1], tl_call_input(c, b_zero), 1, &right));
    tl_value *scale = tl_emit2(c, TL_OP_MUL, tl_onnx_as_scalar(c, a_scale),
                               tl_onnx_as_scalar(c, c->inputs[b_scale]));
    tl_value *y = tl_onnx_emit_cast(c, tl_emit2(c, TL_OP_MATMUL, left, right), TL_F32);
    y = tl_emit2(c, TL_OP_MUL, y, scale);
    tl_result(c, 0,
              tl_call_input(c, bias) != NULL ? tl_emit2(c, TL_OP_ADD, y, c->inputs[bias]) : y);
    return TL_OK;
}

tl_status tl_import_matmul_integer_to_float(tl_onnx_call *c)
{
    return scaled_product(c, c->inputs[0], c->inputs[2], tl_call_input(c, 4), 3, 5, 6);
}

tl_status tl_import_dynamic_quantize_matmul(tl_onnx_call *c)
{
    tl_value *a[3];
    TL_TRY(tl_need_shape(c, c->inputs[0]));
    TL_TRY(tl_need_dtype(c, c->inputs[0]));
    tl_onnx_quantize_range(c, c->inputs[0], a);
    return scaled_product(c, a[0], a[1], a[2], 2, 3, 4);
}
