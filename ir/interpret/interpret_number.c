/* ir/interpret/interpret_number.c: the arithmetic of the dtypes: rounding, wrapping, combining, and the functions an
 * expression may call, which are libm's on doubles rounded to the dtype. */
#include <math.h>
#include "ir/interpret/interpret_private.h"

double tl_round_slow(tl_dtype dtype, double value)
{
    if (dtype == TL_BF16) /* which is computed in f32 */
        value = tl_number_flush(TL_F32, value);
    return tl_number_cast(dtype, TL_F64, (tl_number){ .f = value }).f;
}

int64_t tl_wrap_slow(tl_dtype dtype, int64_t value)
{
    if (dtype == TL_I32)
        return (int32_t)(uint32_t)(uint64_t)value;
    return tl_number_cast(dtype, TL_I64, (tl_number){ .i = value }).i;
}

double tl_min_number(double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    return b < a ? b : a;
}

double tl_max_number(double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    return b > a ? b : a;
}

bool tl_less(tl_dtype dtype, tl_number a, tl_number b)
{
    if (tl_dtype_is_float(dtype))
        return a.f < b.f;
    return dtype == TL_U64 ? (uint64_t)a.i < (uint64_t)b.i : a.i < b.i;
}

double tl_combine_number(tl_combiner combiner, tl_dtype dtype, double old, double value)
{
    switch (combiner) {
    case TL_COMBINER_SUM:
        return tl_round_to(dtype, old + value);
    case TL_COMBINER_PROD:
        return tl_round_to(dtype, old * value);
    case TL_COMBINER_MIN:
        return tl_min_number(old, value);
    case TL_COMBINER_MAX:
        return tl_max_number(old, value);
    case TL_COMBINER_NONE:
    case TL_COMBINER_ALL:
    case TL_COMBINER_ANY:
    case TL_COMBINER_ARGMIN:
    case TL_COMBINER_ARGMAX:
    case TL_COMBINER_COUNT:
        break;
    }
    return value;
}

int64_t tl_combine_integer(tl_combiner combiner, tl_dtype dtype, int64_t old, int64_t value)
{
    tl_number a = { .i = old }, b = { .i = value };
    switch (combiner) {
    case TL_COMBINER_SUM:
        return tl_wrap_to(dtype, (int64_t)((uint64_t)old + (uint64_t)value));
    case TL_COMBINER_PROD:
        return tl_wrap_to(dtype, (int64_t)((uint64_t)old * (uint64_t)value));
    case TL_COMBINER_MIN:
        return tl_less(dtype, b, a) ? value : old;
    case TL_COMBINER_MAX:
        return tl_less(dtype, a, b) ? value : old;
    case TL_COMBINER_ALL:
        return old && value;
    case TL_COMBINER_ANY:
        return old || value;
    case TL_COMBINER_NONE:
    case TL_COMBINER_ARGMIN:
    case TL_COMBINER_ARGMAX:
    case TL_COMBINER_COUNT:
        break;
    }
    return value;
}

bool tl_pair_wins(tl_combiner combiner, tl_dtype dtype, const tl_number old[2],
                  const tl_number value[2])
{
    bool larger = tl_less(dtype, old[0], value[0]), smaller = tl_less(dtype, value[0], old[0]);
    bool better = combiner == TL_COMBINER_ARGMAX ? larger : smaller;
    bool equal = tl_dtype_is_float(dtype) ? value[0].f == old[0].f : value[0].i == old[0].i;
    return better || (equal && value[1].i < old[1].i);
}

/* ---- functions ---- */

static double rsqrt(double x)
{
    return 1 / sqrt(x);
}
static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Of one operand, float to float; the rest is below. */
static double (*const unary_functions[TL_FUNCTION_COUNT])(double) = {
    [TL_FUNCTION_EXP] = exp,     [TL_FUNCTION_LOG] = log,         [TL_FUNCTION_SQRT] = sqrt,
    [TL_FUNCTION_RSQRT] = rsqrt, [TL_FUNCTION_ERF] = erf,         [TL_FUNCTION_TANH] = tanh,
    [TL_FUNCTION_SIN] = sin,     [TL_FUNCTION_SIGMOID] = sigmoid, [TL_FUNCTION_COS] = cos,
    [TL_FUNCTION_TAN] = tan,     [TL_FUNCTION_ASIN] = asin,       [TL_FUNCTION_ACOS] = acos,
    [TL_FUNCTION_ATAN] = atan,   [TL_FUNCTION_SINH] = sinh,       [TL_FUNCTION_COSH] = cosh,
    [TL_FUNCTION_ASINH] = asinh, [TL_FUNCTION_ACOSH] = acosh,     [TL_FUNCTION_ATANH] = atanh,
    [TL_FUNCTION_LOG1P] = log1p, [TL_FUNCTION_FLOOR] = floor,     [TL_FUNCTION_CEIL] = ceil,
    [TL_FUNCTION_EXPM1] = expm1, [TL_FUNCTION_ROUND] = rint,      [TL_FUNCTION_TRUNC] = trunc,
    [TL_FUNCTION_ABS] = fabs,
};

/* libm looks at the bits of its arguments, which the mode of the processor does not change. */
static double operand(const tl_interp_code *code, tl_frame *f)
{
    return tl_number_flush(TL_F64, tl_code_number(code, f));
}
static double result(const tl_interp_code *c, double value)
{
    return tl_round_to(c->dtype, tl_number_flush(TL_F64, value));
}
static double call_unary(const tl_interp_code *c, tl_frame *f)
{
    return result(c, c->u.function(operand(c->a, f)));
}
static double call_pow(const tl_interp_code *c, tl_frame *f)
{
    double a = operand(c->a, f);
    return result(c, pow(a, operand(c->b, f)));
}
static double call_fmod(const tl_interp_code *c, tl_frame *f)
{
    double a = operand(c->a, f);
    return result(c, fmod(a, operand(c->b, f)));
}
static int64_t call_isnan(const tl_interp_code *c, tl_frame *f)
{
    return isnan(tl_code_number(c->a, f)) != 0;
}
static int64_t call_isinf(const tl_interp_code *c, tl_frame *f)
{
    return isinf(tl_code_number(c->a, f)) != 0;
}
static int64_t call_abs(const tl_interp_code *c, tl_frame *f)
{
    int64_t a = tl_code_integer(c->a, f);
    bool negative = tl_dtype_infos[c->dtype].class == TL_CLASS_INT && a < 0;
    return negative ? tl_wrap_to(c->dtype, (int64_t)(0 - (uint64_t)a)) : a;
}
static int64_t call_bitand(const tl_interp_code *c, tl_frame *f)
{
    int64_t a = tl_code_integer(c->a, f);
    return a & tl_code_integer(c->b, f);
}
static int64_t call_bitor(const tl_interp_code *c, tl_frame *f)
{
    int64_t a = tl_code_integer(c->a, f);
    return a | tl_code_integer(c->b, f);
}
static int64_t call_bitxor(const tl_interp_code *c, tl_frame *f)
{
    int64_t a = tl_code_integer(c->a, f);
    return a ^ tl_code_integer(c->b, f);
}
static int64_t call_bitnot(const tl_interp_code *c, tl_frame *f)
{
    return tl_wrap_to(c->dtype, ~tl_code_integer(c->a, f));
}
static int64_t call_shl(const tl_interp_code *c, tl_frame *f)
{
    uint64_t a = (uint64_t)tl_code_integer(c->a, f), by = (uint64_t)tl_code_integer(c->b, f);
    if (by >= (uint64_t)tl_dtype_infos[c->dtype].bits)
        return 0;
    return tl_wrap_to(c->dtype, (int64_t)(a << by));
}
static int64_t call_shr(const tl_interp_code *c, tl_frame *f)
{
    int64_t a = tl_code_integer(c->a, f);
    uint64_t by = (uint64_t)tl_code_integer(c->b, f);
    if (by >= (uint64_t)tl_dtype_infos[c->dtype].bits)
        return 0;
    if (tl_dtype_infos[c->dtype].class == TL_CLASS_INT)
        return a >> by;
    return (int64_t)((uint64_t)a >> by);
}

bool tl_function_code(tl_interp_code *code, tl_function function)
{
    static const struct {
        tl_number_code *number;
        tl_integer_code *integer;
    } others[TL_FUNCTION_COUNT] = {
        [TL_FUNCTION_POW] = { call_pow, NULL },       [TL_FUNCTION_FMOD] = { call_fmod, NULL },
        [TL_FUNCTION_ISNAN] = { NULL, call_isnan },   [TL_FUNCTION_ISINF] = { NULL, call_isinf },
        [TL_FUNCTION_ABS] = { NULL, call_abs },       [TL_FUNCTION_BITAND] = { NULL, call_bitand },
        [TL_FUNCTION_BITOR] = { NULL, call_bitor },   [TL_FUNCTION_BITXOR] = { NULL, call_bitxor },
        [TL_FUNCTION_BITNOT] = { NULL, call_bitnot }, [TL_FUNCTION_SHL] = { NULL, call_shl },
        [TL_FUNCTION_SHR] = { NULL, call_shr },
    };
    bool of_floats = tl_dtype_is_float(code->from);
    tl_operands wanted = tl_function_infos[function].operands;
    if (wanted == TL_OPERANDS_FLOAT && !of_floats)
        return false;
    if (wanted == TL_OPERANDS_INT && !tl_dtype_is_int(code->from))
        return false;

    if (of_floats && unary_functions[function] != NULL) {
        code->u.function = unary_functions[function];
        code->number = call_unary;
    } else {
        code->number = others[function].number;
        code->integer = others[function].integer;
    }
    return tl_dtype_is_float(code->dtype) ? code->number != NULL : code->integer != NULL;
}
