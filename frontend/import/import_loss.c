/* frontend/import/import_loss.c: losses, which are sums over elements that a target picks (ONNX, NegativeLogLikelihoodLoss-22 and
 * SoftmaxCrossEntropyLoss-13). */
#include <string.h>
#include "frontend/import/import_rules.h"

/* -logs[n, target[n, ...], ...] * weight[target], over the sum of weights where the mean is asked for. */
static tl_status loss_of(tl_onnx_call *c, tl_value *logs, tl_value *target, tl_value *weight)
{
    const char *reduction = tl_call_string(c, "reduction", "mean");
    bool mean = strcmp(reduction, "mean") == 0, none = strcmp(reduction, "none") == 0;
    const int64_t axis[] = { 1 };
    tl_value *ignored = NULL, *one = tl_onnx_emit_scalar(c, logs->dtype, 1);
    tl_value *zero = tl_onnx_emit_scalar(c, logs->dtype, 0);
    if (!mean && !none && strcmp(reduction, "sum") != 0)
        return tl_call_bad(c, "reduction '%.40s'", reduction);
    if (target->shape.rank != logs->shape.rank - 1)
        return tl_call_bad(c, "a target of %d axes for an input of %d", target->shape.rank,
                           logs->shape.rank);
    target = tl_onnx_emit_cast(c, target, TL_I64);
    if (tl_call_has(c, "ignore_index")) {
        tl_value *index = tl_onnx_emit_i64(c, (int64_t[]){ tl_call_int(c, "ignore_index", 0) }, 1);
        ignored = tl_emit2(c, TL_OP_EQUAL, target, index);
        target = tl_onnx_emit_where(c, ignored, tl_onnx_emit_scalar(c, TL_I64, 0), target);
    }
    tl_value *picked =
        tl_onnx_emit_gather(c, TL_OP_GATHER_ELEMENTS, logs,
                            tl_onnx_emit_axes(c, TL_OP_UNSQUEEZE, target, 1, axis), 1);
    picked = tl_emit1(c, TL_OP_NEG, tl_onnx_emit_axes(c, TL_OP_SQUEEZE, picked, 1, axis));
    tl_value *share =
        weight != NULL ? tl_onnx_emit_gather(c, TL_OP_GATHER, weight, target, 0) : NULL;
    if (ignored != NULL)
        share = tl_onnx_emit_where(c, ignored, zero, share != NULL ? share : one);
    if (share != NULL)
        picked = tl_emit2(c, TL_OP_MUL, picked, share);
    if (!none && share != NULL && mean)
        picked =
            tl_emit2(c, TL_OP_DIV, tl_onnx_emit_reduce(c, TL_OP_REDUCE_SUM, picked, NULL, 0, false),
                     tl_onnx_emit_reduce(
                         c, TL_OP_REDUCE_SUM,
                         tl_onnx_emit_reshape(c, share,
                                              (int64_t[]){ tl_shape_elements(&share->shape) }, 1),
                         NULL, 0, false));
    else if (!none)
        picked = tl_onnx_emit_reduce(c, mean ? TL_OP_REDUCE_MEAN : TL_OP_REDUCE_SUM, picked, NULL,
                                     0, false);
    tl_result(c, 0, picked);
    return TL_OK;
}

tl_status tl_import_nll_loss(tl_onnx_call *c)
{
    TL_TRY(tl_need_shape(c, c->inputs[0]));
    TL_TRY(tl_need_dtype(c, c->inputs[0]));
    TL_TRY(tl_need_shape(c, c->inputs[1]));
    return loss_of(c, c->inputs[0], c->inputs[1], tl_call_input(c, 2));
}

tl_status tl_import_cross_entropy(tl_onnx_call *c)
{
    TL_TRY(tl_need_shape(c, c->inputs[0]));
    TL_TRY(tl_need_dtype(c, c->inputs[0]));
    TL_TRY(tl_need_shape(c, c->inputs[1]));
    tl_value *logs = tl_onnx_emit_log_softmax(c, c->inputs[0], 1);
    TL_TRY(loss_of(c, logs, c->inputs[1], tl_call_input(c, 2)));
    tl_result(c, 1, logs);
    return TL_OK;
}
