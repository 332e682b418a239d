/* frontend/import/import_reduce.c: reductions, arg reductions, and softmax.
 *
 * What is no sum, mean, maximum or minimum itself is one of them between elementwise functions:
 * ReduceL2 = sqrt(sum(x*x)), and so on. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "frontend/import/import_rules.h"

/* The axes of one reduction, in whatever form the opset gives them. */
typedef struct {
    tl_value *input; /* computed axes */
    const int64_t *ints;
    int count; /* of ints; -1: all axes */
    bool none; /* noop_with_empty_axes: nothing is reduced */
} axes_of;

static tl_value *reduce(tl_onnx_call *c, tl_op op, tl_value *x, const axes_of *axes, bool keepdims)
{
    if (axes->none)
        return x;
    tl_value *inputs[] = { x, axes->input };
    tl_node *n = tl_onnx_emit_node(c, op, axes->input != NULL ? 2 : 1, inputs);
    if (axes->count > 0)
        tl_attr_set_ints(c->graph, n, "axes", axes->ints, axes->count);
    tl_attr_set_int(c->graph, n, "keepdims", keepdims);
    return tl_emitted(c, n);
}

static tl_value *squeeze(tl_onnx_call *c, tl_value *x, const axes_of *axes)
{
    tl_value *inputs[] = { x, axes->input };
    tl_node *n = tl_onnx_emit_node(c, TL_OP_SQUEEZE, axes->input != NULL ? 2 : 1, inputs);
    if (axes->count > 0)
        tl_attr_set_ints(c->graph, n, "axes", axes->ints, axes->count);
    return tl_emitted(c, n);
}

/* log(sum(exp(x - m))) + m with m the largest x, or 0 where that is infinite. */
static tl_value *log_sum_exp(tl_onnx_call *c, tl_value *x, const axes_of *axes, bool keepdims)
{
    tl_value *m = reduce(c, TL_OP_REDUCE_MAX, x, axes, true);
    tl_value *infinite = tl_emit2(c, TL_OP_EQUAL, tl_emit1(c, TL_OP_ABS, m),
                                  tl_onnx_emit_scalar(c, x->dtype, INFINITY));
    m = tl_onnx_emit_where(c, infinite, tl_onnx_emit_scalar(c, x->dtype, 0), m);
    tl_value *e = tl_emit1(c, TL_OP_EXP, tl_emit2(c, TL_OP_SUB, x, m));
    tl_value *sum = reduce(c, TL_OP_REDUCE_SUM, e, axes, true);
    tl_value *y = tl_emit2(c, TL_OP_ADD, tl_emit1(c, TL_OP_LOG, sum), m);
    return keepdims || axes->none ? y : squeeze(c, y, axes);
}

static tl_status reduction(tl_onnx_call *c, const axes_of *axes)
{
    tl_value *x = c->inputs[0], *y = NULL;
    bool keepdims = tl_call_int(c, "keepdims", 1) != 0;
    TL_TRY(tl_need_dtype(c, x));
    bool wide = x->dtype == TL_BOOL; /* the largest of bools is their or */
    x = wide ? tl_onnx_emit_cast(c, x, TL_U8) : x;
    switch (c->rule->op) { /* an int: the operators that are not here are reductions themselves */
    case TL_OP_ABS:
        y = reduce(c, TL_OP_REDUCE_SUM, tl_emit1(c, TL_OP_ABS, x), axes, keepdims);
        break;
    case TL_OP_MUL:
        y = reduce(c, TL_OP_REDUCE_SUM, tl_emit2(c, TL_OP_MUL, x, x), axes, keepdims);
        break;
    case TL_OP_SQRT:
        y = reduce(c, TL_OP_REDUCE_SUM, tl_emit2(c, TL_OP_MUL, x, x), axes, keepdims);
        if (!tl_dtype_is_float(x->dtype)) /* of integers: through f64, truncated */
            y = tl_onnx_emit_cast(c, y, TL_F64);
        y = tl_onnx_emit_cast(c, tl_emit1(c, TL_OP_SQRT, y), x->dtype);
        break;
    case TL_OP_LOG:
        y = tl_emit1(c, TL_OP_LOG, reduce(c, TL_OP_REDUCE_SUM, x, axes, keepdims));
        break;
    case TL_OP_EXP:
        y = log_sum_exp(c, x, axes, keepdims);
        break;
    default:
        y = reduce(c, (tl_op)c->rule->op, x, axes, keepdims);
        break;
    }
    tl_result(c, 0, wide ? tl_onnx_emit_cast(c, y, TL_BOOL) : y);
    return TL_OK;
}

tl_status tl_import_reduce_old(tl_onnx_call *c)
{
    axes_of axes = { .count = -1 };
    axes.count = tl_call_ints(c, "axes", &axes.ints);
    return reduction(c, &axes);
}

tl_status tl_import_reduce(tl_onnx_call *c)
{
    axes_of axes = { .count = -1 };
    tl_value *input = tl_call_input(c, 1);
    bool noop = tl_call_int(c, "noop_with_empty_axes", 0) != 0;
    if (input != NULL) {
        axes.count = tl_constant_i64(c->arena, input, &axes.ints);
        if (axes.count < 0 && tl_shape_elements(&input->shape) == 0)
            axes.count = 0;
        if (axes.count < 0 && noop) {
            TL_TRY(tl_call_decide(c, &input));
            axes.count = tl_constant_i64(c->arena, input, &axes.ints);
        }
        if (axes.count < 0 && noop)
            return tl_call_unknown(c, "noop_with_empty_axes with computed axes");
        axes.input = axes.count < 0 ? input : NULL;
    }
    axes.none = noop && axes.input == NULL && axes.count <= 0;
    return reduction(c, &axes);
}

/* ArgMax; ArgMin (op NEG) is that of the negated values, of -1 - x for integers, which cannot overflow. */
tl_status tl_import_arg(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    if (c->rule->op == TL_OP_NEG) {
        TL_TRY(tl_need_dtype(c, x));
        if (tl_dtype_is_float(x->dtype)) {
            x = tl_emit1(c, TL_OP_NEG, x);
        } else {
            tl_value *ones = tl_onnx_emit_scalar(c, x->dtype, 0);
            memset((void *)(uintptr_t)ones->data, 0xff, tl_dtype_size(x->dtype));
            x = tl_emit2(c, TL_OP_SUB, ones, x);
        }
    }
    tl_node *n = tl_onnx_emit_node(c, TL_OP_ARGMAX, 1, &x);
    tl_attr_set_int(c->graph, n, "axis", tl_call_int(c, "axis", 0));
    tl_attr_set_int(c->graph, n, "keepdims", tl_call_int(c, "keepdims", 1));
    tl_attr_set_int(c->graph, n, "select_last_index", tl_call_int(c, "select_last_index", 0));
    tl_result(c, 0, tl_emitted(c, n));
    return TL_OK;
}

/* ---- softmax ---- */

static tl_value *softmax(tl_onnx_call *c, tl_value *x, int64_t axis)
{
    tl_node *n = tl_onnx_emit_node(c, TL_OP_SOFTMAX, 1, &x);
    tl_attr_set_int(c->graph, n, "axis", axis);
    return tl_emitted(c, n);
}

tl_value *tl_onnx_emit_log_softmax(tl_onnx_call *c, tl_value *x, int64_t axis)
{
    axes_of axes = { .ints = &axis, .count = 1 };
    tl_value *shifted = tl_emit2(c, TL_OP_SUB, x, reduce(c, TL_OP_REDUCE_MAX, x, &axes, true));
    tl_value *sum = reduce(c, TL_OP_REDUCE_SUM, tl_emit1(c, TL_OP_EXP, shifted), &axes, true);
    return tl_emit2(c, TL_OP_SUB, shifted, tl_emit1(c, TL_OP_LOG, sum));
}

typedef tl_value *softmax_function(tl_onnx_call *c, tl_value *x, int64_t axis);

/* Up to opset 12 everything from `axis` on is one axis: the value is flattened, and gets its shape back. A vector's softmax
 * needs to say axis 0 there: the default, 1, is no axis of it. */
static tl_status coerced(tl_onnx_call *c, softmax_function *function)
{
    tl_value *x = c->inputs[0];
    int64_t axis = tl_call_int(c, "axis", 1);
    int rank = x->shape.rank;
    if (rank >= 0 && (axis < -rank || axis >= rank))
        return tl_call_bad(c, "axis %lld%s is not among the %d of its input", (long long)axis,
                           tl_call_has(c, "axis") ? "" : " (the default)", rank);
    if (axis == -1 || (x->shape.rank > 0 && axis == x->shape.rank - 1)) {
        tl_result(c, 0, function(c, x, -1));
        return TL_OK;
    }
    tl_node *flatten = tl_onnx_emit_node(c, TL_OP_FLATTEN, 1, &x);
    tl_attr_set_int(c->graph, flatten, "axis", axis);
    tl_value *y = function(c, tl_emitted(c, flatten), 1);
    tl_result(c, 0, tl_onnx_emit_shape_like(c, TL_OP_RESHAPE, y, x));
    return TL_OK;
}

tl_status tl_import_softmax_old(tl_onnx_call *c)
{
    return coerced(c, softmax);
}

tl_status tl_import_softmax(tl_onnx_call *c)
{
    tl_result(c, 0, softmax(c, c->inputs[0], tl_call_int(c, "axis", -1)));
    return TL_OK;
}

tl_status tl_import_log_softmax_old(tl_onnx_call *c)
{
    return coerced(c, tl_onnx_emit_log_softmax);
}

tl_status tl_import_log_softmax(tl_onnx_call *c)
{
    tl_result(c, 0, tl_onnx_emit_log_softmax(c, c->inputs[0], tl_call_int(c, "axis", -1)));
    return TL_OK;
}
