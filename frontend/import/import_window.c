/* frontend/import/import_window.c: convolutions, pools, and matrix products. */
#include <string.h>
#include "frontend/call/onnx_counts.h"
#include "frontend/import/import_rules.h"

/* auto_pad says nothing, or one of three words; then pads have no say. */
tl_status tl_check_auto_pad(tl_onnx_call *c, tl_node *n)
{
    static const char *const words[] = { "SAME_UPPER", "SAME_LOWER", "VALID" };
    const char *word = tl_call_string(c, "auto_pad", "NOTSET");
    if (strcmp(word, "NOTSET") == 0 || word[0] == '\0') {
        tl_attr_remove(n, "auto_pad");
        return TL_OK;
    }
    for (int i = 0; i < 3; i++) {
        if (strcmp(word, words[i]) == 0) {
            tl_attr_remove(n, "pads");
            return TL_OK;
        }
    }
    return tl_call_bad(c, "auto_pad '%.40s'", word);
}

/* kernel_shape repeats what the weight's shape says. */
static tl_status check_kernel_shape(tl_onnx_call *c)
{
    const int64_t *kernel;
    const tl_shape *weight = &c->inputs[1]->shape;
    int count = tl_call_ints(c, "kernel_shape", &kernel);
    if (count < 0 || weight->rank < 0)
        return TL_OK;
    bool agrees = count == weight->rank - 2;
    for (int i = 0; agrees && i < count; i++)
        agrees = weight->dims[i + 2].extent < 0 || weight->dims[i + 2].extent == kernel[i];
    return agrees ? TL_OK : tl_call_bad(c, "kernel_shape does not agree with the weight's shape");
}

tl_status tl_import_conv(tl_onnx_call *c)
{
    TL_TRY(check_kernel_shape(c));
    tl_node *n = tl_onnx_emit_node(c, TL_OP_CONV, c->input_count, c->inputs);
    tl_copy_attributes(c, n);
    TL_TRY(tl_check_auto_pad(c, n));
    tl_result(c, 0, tl_emitted(c, n));
    return TL_OK;
}

tl_status tl_import_pool(tl_onnx_call *c)
{
    if (!tl_call_has(c, "kernel_shape"))
        return tl_call_bad(c, "attribute 'kernel_shape' is required");
    tl_node *n = tl_onnx_emit_node(c, (tl_op)c->rule->op, 1, c->inputs);
    tl_copy_attributes(c, n);
    TL_TRY(tl_check_auto_pad(c, n));
    tl_value *y = tl_emitted(c, n);
    tl_result(c, 0, y);
    return tl_call_wants(c, 1) && c->rule->op == TL_OP_MAX_POOL ? tl_import_pool_positions(c, y)
                                                                : TL_OK;
}

tl_status tl_import_global_pool(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    if (c->rule->op == TL_OP_GLOBAL_AVERAGE_POOL)
        return tl_import_as(c, TL_OP_GLOBAL_AVERAGE_POOL, 1);
    int rank;
    TL_TRY(tl_need_rank(c, x, &rank));
    if (rank < 3)
        return tl_call_bad(c, "its input has %d axes, at least 3 are required", rank);
    int64_t axes[TL_MAX_RANK];
    for (int i = 2; i < rank; i++)
        axes[i - 2] = i;
    tl_result(c, 0, tl_onnx_emit_reduce(c, (tl_op)c->rule->op, x, axes, rank - 2, true));
    return TL_OK;
}

/* Whether data count nothing of a Gemm but rows of A, beside which C says nothing of how many there are. */
static bool is_plain_gemm(tl_onnx_call *c)
{
    const tl_value *addend = tl_call_input(c, 2);
    bool turns = tl_call_int(c, "transA", 0) != 0;
    return tl_counts_only_lead(c->import, c->inputs, c->input_count, turns ? 0 : 1) &&
           (tl_count_at(c->import, c->inputs[0], 0) == NULL || addend == NULL ||
            addend->shape.rank < 2 || addend->shape.dims[0].extent == 1);
}

static tl_value *turned(tl_onnx_call *c, tl_value *x, bool turns, tl_dtype dtype)
{
    static const int64_t perm[2] = { 1, 0 };
    return tl_onnx_emit_cast(c, turns ? tl_onnx_emit_transpose(c, x, perm) : x, dtype);
}

/* In its parts, each of which knows counts of all its operands: alpha * A' B' + beta * C, in f32 at least. */
static tl_status emit_gemm_parts(tl_onnx_call *c, tl_value **out)
{
    tl_value *addend = tl_call_input(c, 2);
    double alpha = tl_call_float(c, "alpha", 1), beta = tl_call_float(c, "beta", 1);
    TL_TRY(tl_need_dtype(c, c->inputs[0]));
    tl_dtype dtype = c->inputs[0]->dtype, wide = tl_accumulate_dtype(dtype);
    if (c->inputs[0]->shape.rank != 2 || c->inputs[1]->shape.rank != 2)
        return tl_call_bad(c, "its operands have %d and %d axes, not 2", c->inputs[0]->shape.rank,
                           c->inputs[1]->shape.rank);
    tl_value *y =
        tl_emit2(c, TL_OP_MATMUL, turned(c, c->inputs[0], tl_call_int(c, "transA", 0) != 0, wide),
                 turned(c, c->inputs[1], tl_call_int(c, "transB", 0) != 0, wide));
    if (alpha != 1)
        y = tl_onnx_emit_with(c, TL_OP_MUL, y, alpha);
    if (addend != NULL && beta != 0) {
        addend = tl_onnx_emit_cast(c, addend, wide);
        y = tl_emit2(c, TL_OP_ADD, y,
                     beta == 1 ? addend : tl_onnx_emit_with(c, TL_OP_MUL, addend, beta));
    }
    *out = tl_onnx_emit_cast(c, y, dtype);
    return c->status;
}

tl_status tl_onnx_emit_gemm(tl_onnx_call *c, tl_value **out)
{
    if (!is_plain_gemm(c))
        return emit_gemm_parts(c, out);
    tl_node *n = tl_onnx_emit_node(c, TL_OP_GEMM, c->input_count, c->inputs);
    tl_copy_attributes(c, n);
    *out = tl_emitted(c, n);
    return TL_OK;
}

tl_status tl_import_gemm(tl_onnx_call *c)
{
    tl_value *y;
    TL_TRY(tl_onnx_emit_gemm(c, &y));
    tl_result(c, 0, y);
    return TL_OK;
}
