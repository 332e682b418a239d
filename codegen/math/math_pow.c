/* codegen/math/math_pow.c: pow and rsqrt.
 *
 * |x|^y = exp(y log|x|). For f32 both are taken in f64. For f64 the logarithm needs eleven more bits: it is the series
 * of math_log.c,
 *     log|x| = e ln 2 + 2s + s^3 (2/3 + 2/5 s^2 + ...),   s = (m - 1)/(m + 1),
 * with s, s^3, 2/3 and the sums in pairs of numbers (relative error 2^-64), and y times it is a pair too. The special
 * cases are those of IEEE 754: x^0 = 1^y = 1 even for a NaN, (-1)^inf = 1, a negative x to a y that is no integer is
 * NaN, and odd integers y keep the sign of x. */
#include "codegen/math/math_llvm.h"

static const double series[] = { 2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
                                 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23 };

/* The logarithm of a normal x, plus n ln 2, as a pair. */
static LLVMValueRef log_pair(tl_math *m, LLVMValueRef x, LLVMValueRef n, LLVMValueRef *low)
{
    LLVMValueRef one = tl_math_constant(m, 1), two = tl_math_constant(m, 2), e, error;
    LLVMValueRef mantissa = tl_math_mantissa(m, x, &e);
    LLVMValueRef k = tl_math_from_int(m, LLVMBuildAdd(m->builder, e, n, ""));
    LLVMValueRef f = tl_math_sub(m, mantissa, one), below_low;
    LLVMValueRef below = tl_math_two_sum(m, mantissa, one, &below_low);
    LLVMValueRef s = tl_math_div(m, f, below);
    LLVMValueRef back = tl_math_two_product(m, s, below, &error);
    LLVMValueRef rest = tl_math_sub(m, tl_math_sub(m, f, back), error);
    rest = tl_math_sub(m, rest, tl_math_mul(m, s, below_low));
    LLVMValueRef s_low = tl_math_div(m, rest, below);

    LLVMValueRef z_low, z = tl_math_two_product(m, s, s, &z_low);
    z_low = tl_math_fma(m, tl_math_mul(m, two, s), s_low, z_low);
    LLVMValueRef p = tl_math_mul(m, z, tl_math_polynomial(m, z, series, 10)), q_low;
    LLVMValueRef q = tl_math_fast_two_sum(m, tl_math_constant(m, 2.0 / 3), p, &q_low);
    q_low = tl_math_add(m, q_low, tl_math_constant(m, 0x1.5555555555555p-55));
    LLVMValueRef cube_low, cube = tl_math_two_product(m, s, z, &cube_low);
    cube_low = tl_math_fma(m, s, z_low, tl_math_fma(m, s_low, z, cube_low));
    LLVMValueRef d_low, d = tl_math_two_product(m, cube, q, &d_low);
    d_low = tl_math_fma(m, cube, q_low, tl_math_fma(m, cube_low, q, d_low));

    LLVMValueRef sum_low, sum = tl_math_fast_two_sum(m, tl_math_mul(m, two, s), d, &sum_low);
    sum_low = tl_math_add(m, sum_low, tl_math_fma(m, two, s_low, d_low));
    LLVMValueRef exact = tl_math_mul(m, k, tl_math_constant(m, 0x1.62e42fefa3800p-1));
    sum_low = tl_math_fma(m, k, tl_math_constant(m, 0x1.ef35793c76730p-45), sum_low);
    sum = tl_math_two_sum(m, exact, sum, &error);
    return tl_math_fast_two_sum(m, sum, tl_math_add(m, sum_low, error), low);
}

/* |x|^y in f64; `precise` for a result that is f64. */
static LLVMValueRef magnitude_power(tl_math *m, LLVMValueRef x, LLVMValueRef y, bool precise)
{
    LLVMValueRef infinity = tl_math_constant(m, __builtin_inf()), zero = tl_math_constant(m, 0);
    LLVMValueRef is_small = tl_math_less(m, x, 0x1p-1022);
    LLVMValueRef normal =
        tl_math_select(m, is_small, tl_math_mul(m, x, tl_math_constant(m, 0x1p54)), x);
    LLVMValueRef n = tl_math_select(m, is_small, tl_math_int(m, -54), tl_math_int(m, 0));
    LLVMValueRef low = zero;
    LLVMValueRef log = precise ? log_pair(m, normal, n, &low) : tl_math_log_of(m, x, NULL, NULL);
    log = tl_math_select(m, tl_math_compare(m, LLVMRealOEQ, x, zero), tl_math_negate(m, infinity),
                         log);
    log = tl_math_select(m, tl_math_compare(m, LLVMRealOLT, x, infinity), log, x);
    if (!precise) { /* beyond +-200 the f32 result is 0 or infinity */
        LLVMValueRef power = tl_math_clamp(m, tl_math_mul(m, y, log), -200, 200);
        return tl_math_exp_of(m, power, NULL, 0, true);
    }
    LLVMValueRef error, power = tl_math_two_product(m, y, log, &error);
    error = tl_math_fma(m, y, low, error);
    /* an overflow or an infinity has no low part */
    LLVMValueRef near = tl_math_less(m, tl_math_unary(m, "llvm.fabs", power), 1000);
    return tl_math_exp_of(m, power, tl_math_select(m, near, error, zero), 0, false);
}

static LLVMValueRef is_integer(tl_math *m, LLVMValueRef y)
{
    LLVMValueRef whole = tl_emit_function(m, TL_FUNCTION_TRUNC, &y);
    return tl_math_compare(m, LLVMRealOEQ, whole, y);
}

LLVMValueRef tl_math_POW(tl_math *m, const LLVMValueRef *args)
{
    LLVMBuilderRef b = m->builder;
    LLVMValueRef x = args[0], y = args[1], one = tl_math_constant(m, 1),
                 zero = tl_math_constant(m, 0);
    LLVMValueRef magnitude = tl_math_unary(m, "llvm.fabs", x);
    tl_math wide = tl_math_wide(m);
    LLVMValueRef power = magnitude_power(&wide, tl_math_widen(m, magnitude), tl_math_widen(m, y),
                                         m->dtype == TL_F64);
    power = tl_math_narrow(m, power);

    LLVMValueRef is_whole = is_integer(m, y);
    LLVMValueRef half = tl_math_mul(m, y, tl_math_constant(m, 0.5));
    LLVMValueRef is_odd = LLVMBuildAnd(b, is_whole, LLVMBuildNot(b, is_integer(m, half), ""), "");
    power = tl_math_select(m, is_odd, tl_math_copysign(m, power, x), power);
    LLVMValueRef is_negative = LLVMBuildAnd(b, tl_math_compare(m, LLVMRealOLT, x, zero),
                                            tl_math_greater(m, x, -__builtin_inf()), "");
    LLVMValueRef no_result = LLVMBuildAnd(b, is_negative, LLVMBuildNot(b, is_whole, ""), "");
    power = tl_math_select(m, no_result, tl_math_constant(m, __builtin_nan("")), power);
    LLVMValueRef is_infinite = tl_math_compare(m, LLVMRealOEQ, tl_math_unary(m, "llvm.fabs", y),
                                               tl_math_constant(m, __builtin_inf()));
    LLVMValueRef is_unit =
        LLVMBuildAnd(b, is_infinite, tl_math_compare(m, LLVMRealOEQ, magnitude, one), "");
    is_unit = LLVMBuildOr(b, is_unit, tl_math_compare(m, LLVMRealOEQ, x, one), "");
    is_unit = LLVMBuildOr(b, is_unit, tl_math_compare(m, LLVMRealOEQ, y, zero), "");
    return tl_math_select(m, is_unit, one, power);
}

LLVMValueRef tl_math_RSQRT(tl_math *m, const LLVMValueRef *args)
{
    LLVMValueRef root = tl_math_unary(m, "llvm.sqrt", args[0]);
    return tl_math_div(m, tl_math_constant(m, 1), root);
}
