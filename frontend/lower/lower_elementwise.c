/* frontend/lower/lower_elementwise.c: operators on one element of each (broadcast) input. */
#include "frontend/lower/lower.h"
#include <math.h>

/* Integer powers and mixed dtypes go through f64, whose 53 bits hold what ONNX's tests ask of them. */
static const tl_expr *power(tl_arena *arena, const tl_expr *x, const tl_expr *y)
{
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
static const tl_expr *gelu(tl_arena *arena, const tl_node *n, const tl_expr *x)
{
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
static const struct {
    tl_op op;
    tl_function function;
} functions[] = {
    { TL_OP_ABS, TL_FUNCTION_ABS },
    { TL_OP_SQRT, TL_FUNCTION_SQRT },
    { TL_OP_EXP, TL_FUNCTION_EXP },
    { TL_OP_LOG, TL_FUNCTION_LOG },
    { TL_OP_EXPM1, TL_FUNCTION_EXPM1 },
    { TL_OP_LOG1P, TL_FUNCTION_LOG1P },
    { TL_OP_ERF, TL_FUNCTION_ERF },
    { TL_OP_TANH, TL_FUNCTION_TANH },
    { TL_OP_SIGMOID, TL_FUNCTION_SIGMOID },
    { TL_OP_SIN, TL_FUNCTION_SIN },
    { TL_OP_COS, TL_FUNCTION_COS },
    { TL_OP_TAN, TL_FUNCTION_TAN },
    { TL_OP_ASIN, TL_FUNCTION_ASIN },
    { TL_OP_ACOS, TL_FUNCTION_ACOS },
    { TL_OP_ATAN, TL_FUNCTION_ATAN },
    { TL_OP_SINH, TL_FUNCTION_SINH },
    { TL_OP_COSH, TL_FUNCTION_COSH },
    { TL_OP_ASINH, TL_FUNCTION_ASINH },
    { TL_OP_ACOSH, TL_FUNCTION_ACOSH },
    { TL_OP_ATANH, TL_FUNCTION_ATANH },
    { TL_OP_FLOOR, TL_FUNCTION_FLOOR },
    { TL_OP_CEIL, TL_FUNCTION_CEIL },
    { TL_OP_ROUND, TL_FUNCTION_ROUND },
    { TL_OP_FMOD, TL_FUNCTION_FMOD },
    { TL_OP_BITWISE_AND, TL_FUNCTION_BITAND },
    { TL_OP_BITWISE_OR, TL_FUNCTION_BITOR },
    { TL_OP_BITWISE_XOR, TL_FUNCTION_BITXOR },
    { TL_OP_BITWISE_NOT, TL_FUNCTION_BITNOT },
    { TL_OP_SHIFT_LEFT, TL_FUNCTION_SHL },
    { TL_OP_SHIFT_RIGHT, TL_FUNCTION_SHR },
};

static const tl_expr *apply(tl_arena *arena, const tl_node *n, const tl_expr *const *x)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (functions[i].op == n->op)
            return tl_call(arena, functions[i].function, x);
    switch ((int)n->op) { /* the other elementwise ones of lowerings.def */
    case TL_OP_ADD:
        return tl_add(arena, x[0], x[1]);
    case TL_OP_SUB:
        return tl_sub(arena, x[0], x[1]);
    case TL_OP_MUL:
        return tl_mul(arena, x[0], x[1]);
    case TL_OP_DIV:
        return tl_div(arena, x[0], x[1]);
    case TL_OP_POW:
        return power(arena, x[0], x[1]);
    case TL_OP_MIN:
        return tl_min(arena, x[0], x[1]);
    case TL_OP_MAX:
        return tl_max(arena, x[0], x[1]);
    case TL_OP_EQUAL:
        return tl_eq(arena, x[0], x[1]);
    case TL_OP_LESS:
        return tl_lt(arena, x[0], x[1]);
    case TL_OP_LESS_OR_EQUAL:
        return tl_le(arena, x[0], x[1]);
    case TL_OP_GREATER:
        return tl_gt(arena, x[0], x[1]);
    case TL_OP_GREATER_OR_EQUAL:
        return tl_ge(arena, x[0], x[1]);
    case TL_OP_AND:
        return tl_and(arena, x[0], x[1]);
    case TL_OP_OR:
        return tl_or(arena, x[0], x[1]);
    case TL_OP_NOT:
        return tl_not(arena, x[0]);
    case TL_OP_WHERE:
        return tl_select(arena, x[0], x[1], x[2]);
    case TL_OP_CAST:
        return tl_cast(arena, (tl_dtype)tl_attr_int(n, "to", TL_F32), x[0]);
    case TL_OP_IDENTITY:
        return x[0];
    case TL_OP_NEG:
        return tl_dtype_is_float(x[0]->dtype)
                   ? tl_mul(arena, x[0], tl_float(arena, x[0]->dtype, -1))
                   : tl_sub(arena, tl_int_of(arena, x[0]->dtype, 0), x[0]);
    case TL_OP_RECIPROCAL:
        return tl_div(arena, tl_float(arena, x[0]->dtype, 1), x[0]);
    case TL_OP_RELU:
        return tl_max(arena, x[0], tl_constant(arena, x[0]->dtype, 0));
    case TL_OP_CLIP: {
        const tl_expr *low = x[1] != NULL ? tl_max(arena, x[0], x[1]) : x[0];
        return x[2] != NULL ? tl_min(arena, low, x[2]) : low;
    }
    case TL_OP_GELU:
        return gelu(arena, n, x[0]);
    default:
        return NULL;
    }
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
    return apply(tl_lower_arena(l), n, x);
}

const tl_expr *tl_value_batch_norm(tl_lower *l, const tl_node *n, tl_index index)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_expr *channel = n->outputs[0]->shape.rank > 1 ? index[1] : tl_int(arena, 0);
    const tl_expr *x = tl_lower_read(l, n->inputs[0], index), *p[5];
    for (int i = 1; i < 5; i++)
        p[i] = tl_lower_read(l, n->inputs[i], &channel);
    const tl_expr *epsilon = tl_float(arena, p[4]->dtype, tl_attr_float(n, "epsilon", 1e-5));
    const tl_expr *deviation = tl_call1(arena, TL_FUNCTION_SQRT, tl_add(arena, p[4], epsilon));
    const tl_expr *normal = tl_div(arena, tl_sub(arena, x, p[3]), deviation);
    return tl_add(arena, tl_mul(arena, normal, p[1]), p[2]);
}
