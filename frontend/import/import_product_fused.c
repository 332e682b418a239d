/* frontend/import/import_product_fused.c: products and convolutions with what ONNX Runtime's optimizer has fused with them. */
#include <string.h>
#include "frontend/import/import_rules.h"

/* act(conv(x, w) + bias + z) */
tl_status tl_import_fused_conv(tl_onnx_call *c)
{
    const char *name = tl_call_string(c, "activation", "");
    const float *given;
    double numbers[2];
    int count = tl_call_floats(c, "activation_params", &given);
    tl_value *z = tl_call_input(c, 3);
    if (count > 2)
        return tl_call_bad(c, "activation_params holds %d numbers", count);
    for (int i = 0; i < count; i++)
        numbers[i] = (double)given[i];
    tl_node *n = tl_onnx_emit_node(c, TL_OP_CONV, tl_call_input(c, 2) != NULL ? 3 : 2, c->inputs);
    tl_copy_attributes(c, n);
    TL_TRY(tl_check_auto_pad(c, n));
    tl_value *y = tl_emitted(c, n);
    if (z != NULL)
        y = tl_emit2(c, TL_OP_ADD, y, z);
    if (name[0] != '\0')
        TL_TRY(tl_onnx_emit_activation(c, name, count, numbers, &y));
    tl_result(c, 0, y);
    return TL_OK;
}

/* Channels last, also in the weights: [M, kernel, C]. (Where a kernel_shape says that they lie as a Conv's, they do.) */
tl_status tl_import_nhwc_conv(tl_onnx_call *c)
{
    tl_value *inputs[3] = { c->inputs[0], c->inputs[1], tl_call_input(c, 2) };
    int64_t group = tl_call_int(c, "group", 1), turn[TL_MAX_RANK], back[TL_MAX_RANK];
    const int64_t *kernel;
    int given = tl_call_ints(c, "kernel_shape", &kernel);
    TL_TRY(tl_need_shape(c, inputs[0]));
    TL_TRY(tl_need_shape(c, inputs[1]));
    const tl_shape *x = &inputs[0]->shape, *w = &inputs[1]->shape;
    int rank = x->rank;
    if (rank < 3 || w->rank != rank || group < 1)
        return tl_call_bad(c, "an image of %d axes and weights of %d", rank, w->rank);
    int64_t channels = x->dims[rank - 1].extent / group;
    bool last = w->dims[rank - 1].extent == channels, first = w->dims[1].extent == channels;
    for (int i = 0; i < rank - 2; i++) {
        last = last && (given != rank - 2 || w->dims[1 + i].extent == kernel[i]);
        first = first && given == rank - 2 && w->dims[2 + i].extent == kernel[i];
        turn[2 + i] = 1 + i;
        back[1 + i] = 2 + i;
    }
    if (!last && !first)
        return tl_call_bad(c, "its weights are not those of %lld channels", (long long)channels);
    turn[0] = back[0] = 0;
    turn[1] = rank - 1;
    back[rank - 1] = 1;
    inputs[0] = tl_onnx_emit_transpose(c, inputs[0], turn);
    if (last)
        inputs[1] = tl_onnx_emit_transpose(c, inputs[1], turn);
    tl_node *n = tl_onnx_emit_node(c, TL_OP_CONV, inputs[2] != NULL ? 3 : 2, inputs);
    tl_copy_attributes(c, n);
    TL_TRY(tl_check_auto_pad(c, n));
    tl_result(c, 0, tl_onnx_emit_transpose(c, tl_emitted(c, n), back));
    return TL_OK;
}

tl_status tl_import_fused_gemm(tl_onnx_call *c)
{
    const char *name = tl_call_string(c, "activation", "");
    double numbers[] = { tl_call_float(c, "activation_alpha", 0),
                         tl_call_float(c, "activation_beta", 0) };
    int count = tl_call_has(c, "activation_beta") ? 2 : tl_call_has(c, "activation_alpha") ? 1 : 0;
    tl_value *y;
    TL_TRY(tl_onnx_emit_gemm(c, &y));
    if (name[0] != '\0')
        TL_TRY(tl_onnx_emit_activation(c, name, count, numbers, &y));
    tl_result(c, 0, y);
    return TL_OK;
}

/* An operand of FusedMatMul as MatMul wants it. With `batch` the rows stand before the batch axes; with `turn` the last two
 * axes, after that, change places. */
static tl_status turn_operand(tl_onnx_call *c, tl_value *x, bool turn, bool batch, tl_value **out)
{
    int64_t perm[TL_MAX_RANK];
    int rank;
    *out = x;
    TL_TRY(tl_need_rank(c, x, &rank));
    if (rank < 2 || (!turn && !batch))
        return TL_OK;
    for (int i = 0; i < rank; i++)
        perm[i] = i;
    if (batch) {
        memmove(perm, perm + 1, sizeof *perm * (size_t)(rank - 2));
        perm[rank - 2] = 0;
    }
    if (turn) {
        int64_t row = perm[rank - 2];
        perm[rank - 2] = perm[rank - 1];
        perm[rank - 1] = row;
    }
    *out = tl_onnx_emit_transpose(c, x, perm);
    return TL_OK;
}

tl_status tl_import_fused_matmul(tl_onnx_call *c)
{
    tl_value *a, *b;
    double alpha = tl_call_float(c, "alpha", 1);
    TL_TRY(tl_need_dtype(c, c->inputs[0]));
    TL_TRY(turn_operand(c, c->inputs[0], tl_call_int(c, "transA", 0) != 0,
                        tl_call_int(c, "transBatchA", 0) != 0, &a));
    TL_TRY(turn_operand(c, c->inputs[1], tl_call_int(c, "transB", 0) != 0,
                        tl_call_int(c, "transBatchB", 0) != 0, &b));
    tl_value *y = tl_emit2(c, TL_OP_MATMUL, a, b);
    tl_result(c, 0, alpha == 1 ? y : tl_onnx_emit_with(c, TL_OP_MUL, y, alpha));
    return TL_OK;
}
