/* frontend/onnx/import_product_fused.c: products and convolutions with what ONNX Runtime's optimizer has fused with them. */
#include <string.h>
#include "frontend/onnx/import_rules.h"

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

tl_status tl_import_fused_gemm(tl_onnx_call *c)
{
    const char *name = tl_call_string(c, "activation", "");
    double numbers[] = { tl_call_float(c, "activation_alpha", 0),
                         tl_call_float(c, "activation_beta", 0) };
    int count = tl_call_has(c, "activation_beta") ? 2 : tl_call_has(c, "activation_alpha") ? 1 : 0;
    tl_node *n = tl_onnx_emit_node(c, TL_OP_GEMM, c->input_count, c->inputs);
    tl_copy_attributes(c, n);
    tl_value *y = tl_emitted(c, n);
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
