/* frontend/lower/lower_elementwise.c: operators on one element of each (broadcast) input. */
#include "frontend/lower/lower.h"
#include <assert.h>
#include <math.h>

/* Integer powers and mixed dtypes go through f64, whose 53 bits hold what ONNX's tests ask of them. */
const tl_expr *tl_expression_power(tl_arena *arena, const tl_node *n,
                                   const tl_expr *const *operands)
{
    const tl_expr *x = operands[0], *y = operands[1];
    (void)n;
    tl_dtype dtype = x->dtype;
    if (y->kind == TL_EXPR_FLOAT || y->kind == TL_EXPR_INT) {
        double exponent = y->kind == TL_EXPR_FLOAT ? y->u.number : (double)y->u.value;
        if (exponent == 1)
            return x;
        if (exponent == 2)
            return tl_mul(arena, x, x);
        if (exponent == 3)
            return tl_mul(arena, tl_mul(arena, x, x), x);
        if (exponent == 0.5 && tl_dtype_is_float(dtype))
            return tl_call1(arena, TL_FUNCTION_SQRT, x);
    }
    if (tl_dtype_is_float(dtype))
        return tl_call2(arena, TL_FUNCTION_POW, x, tl_cast(arena, dtype, y));
    return tl_cast(arena, dtype,
                   tl_call2(arena, TL_FUNCTION_POW, tl_cast(arena, TL_F64, x),
                            tl_cast(arena, TL_F64, y)));
}

/* 0.5*x*(1 + erf(x/sqrt(2))), or its approximation by tanh (Hendrycks and Gimpel, 2016). */
const tl_expr *tl_expression_gelu(tl_arena *arena, const tl_node *n, const tl_expr *const *operands)
{
    const tl_expr *x = operands[0];
    tl_dtype d = x->dtype;
    const char *form = tl_attr_string(n, "approximate", "none");
    const tl_expr *inner;
    if (form[0] == 't') {
        const tl_expr *cube = tl_mul(arena, tl_mul(arena, x, x), x);
        inner = tl_add(arena, x, tl_mul(arena, tl_float(arena, d, 0.044715), cube));
        inner = tl_mul(arena, tl_float(arena, d, sqrt(2 / acos(-1))), inner);
        inner = tl_call1(arena, TL_FUNCTION_TANH, inner);
    } else {
        inner = tl_mul(arena, x, tl_float(arena, d, sqrt(0.5)));
        inner = tl_call1(arena, TL_FUNCTION_ERF, inner);
    }
    const tl_expr *half = tl_mul(arena, x, tl_float(arena, d, 0.5));
    return tl_mul(arena, half, tl_add(arena, inner, tl_float(arena, d, 1)));
}

/* Operators that are one function of ir/expr/functions.def, on as many operands as it has. */
#define FUNCTION(name, text, arity, operands, result)                      \
    const tl_expr *tl_expression_##name(tl_arena *arena, const tl_node *n, \
                                        const tl_expr *const *x)           \
    {                                                                      \
        (void)n;                                                           \
        return tl_call(arena, TL_FUNCTION_##name, x);                      \
    }
#include "ir/expr/functions.def"
#undef FUNCTION

/* Operators that are one operation on two operands. */
#define OPERATION(name, operation)                                         \
    const tl_expr *tl_expression_##name(tl_arena *arena, const tl_node *n, \
                                        const tl_expr *const *x)           \
    {                                                                      \
        (void)n;                                                           \
        return operation(arena, x[0], x[1]);                               \
    }
OPERATION(add, tl_add)
OPERATION(sub, tl_sub)
OPERATION(mul, tl_mul)
OPERATION(div, tl_div)
OPERATION(min, tl_min)
OPERATION(max, tl_max)
OPERATION(equal, tl_eq)
OPERATION(less, tl_lt)
OPERATION(less_or_equal, tl_le)
OPERATION(greater, tl_gt)
OPERATION(greater_or_equal, tl_ge)
OPERATION(and, tl_and)
OPERATION(or, tl_or)
#undef OPERATION

/* Of operators that are not elementwise, or whose value reads operands in its own way. */
const tl_expr *tl_expression_none(tl_arena *arena, const tl_node *n, const tl_expr *const *x)
{
    (void)arena;
    (void)n;
    (void)x;
    assert(!"not the elements alone make this operator's value");
    return NULL;
}

const tl_expr *tl_expression_not(tl_arena *arena, const tl_node *n, const tl_expr *const *x)
{
    (void)n;
    return tl_not(arena, x[0]);
}

const tl_expr *tl_expression_select(tl_arena *arena, const tl_node *n, const tl_expr *const *x)
{
    (void)n;
    return tl_select(arena, x[0], x[1], x[2]);
}

const tl_expr *tl_expression_cast(tl_arena *arena, const tl_node *n, const tl_expr *const *x)
{
    return tl_cast(arena, (tl_dtype)tl_attr_int(n, "to", TL_F32), x[0]);
}

const tl_expr *tl_expression_bit_cast(tl_arena *arena, const tl_node *n, const tl_expr *const *x)
{
    return tl_bits(arena, (tl_dtype)tl_attr_int(n, "to", x[0]->dtype), x[0]);
}

const tl_expr *tl_expression_operand(tl_arena *arena, const tl_node *n, const tl_expr *const *x)
{
    (void)arena;
    (void)n;
    return x[0];
}

const tl_expr *tl_expression_neg(tl_arena *arena, const tl_node *n, const tl_expr *const *x)
{
    (void)n;
    return tl_dtype_is_float(x[0]->dtype) ? tl_mul(arena, x[0], tl_float(arena, x[0]->dtype, -1))
                                          : tl_sub(arena, tl_int_of(arena, x[0]->dtype, 0), x[0]);
}

const tl_expr *tl_expression_reciprocal(tl_arena *arena, const tl_node *n, const tl_expr *const *x)
{
    (void)n;
    return tl_div(arena, tl_float(arena, x[0]->dtype, 1), x[0]);
}

const tl_expr *tl_expression_relu(tl_arena *arena, const tl_node *n, const tl_expr *const *x)
{
    (void)n;
    return tl_max(arena, x[0], tl_constant(arena, x[0]->dtype, 0));
}

const tl_expr *tl_expression_clip(tl_arena *arena, const tl_node *n, const tl_expr *const *x)
{
    (void)n;
    const tl_expr *low = x[1] != NULL ? tl_max(arena, x[0], x[1]) : x[0];
    return x[2] != NULL ? tl_min(arena, low, x[2]) : low;
}

const tl_expr *tl_value_elementwise(tl_lower *l, const tl_node *n, tl_index index)
{
    const tl_expr *x[3] = { NULL };
    int rank = n->outputs[0]->shape.rank;
    for (int i = 0; i < n->input_count; i++) {
        const tl_value *v = n->inputs[i];
        if (v == NULL)
            continue;
        /* a bound of Clip may be [1] beside a scalar */
        if (v->shape.rank > rank) {
            const tl_expr *zero[TL_MAX_RANK];
            for (int k = 0; k < v->shape.rank; k++)
                zero[k] = tl_int(tl_lower_arena(l), 0);
            x[i] = tl_lower_read(l, v, zero);
        } else {
            x[i] = tl_lower_read_broadcast(l, v, rank, index);
        }
    }
    return tl_operators[n->op].expression(tl_lower_arena(l), n, x);
}

/* (x - mean)*(scale/deviation) + bias: the quotient is the channel's, and no element is divided. */
const tl_expr *tl_value_batch_norm(tl_lower *l, const tl_node *n, tl_index index)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_expr *channel = n->outputs[0]->shape.rank > 1 ? index[1] : tl_int(arena, 0);
    const tl_expr *x = tl_lower_read(l, n->inputs[0], index), *p[5];
    for (int i = 1; i < 5; i++)
        p[i] = tl_lower_read(l, n->inputs[i], &channel);
    const tl_expr *epsilon = tl_float(arena, p[4]->dtype, tl_attr_float(n, "epsilon", 1e-5));
    const tl_expr *deviation = tl_call1(arena, TL_FUNCTION_SQRT, tl_add(arena, p[4], epsilon));
    const tl_expr *factor = tl_div(arena, p[1], deviation);
    return tl_add(arena, tl_mul(arena, tl_sub(arena, x, p[3]), factor), p[2]);
}
