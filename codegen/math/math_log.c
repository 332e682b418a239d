/* codegen/math/math_log.c: log and log1p.
 *
 * x = 2^e * m with sqrt(1/2) <= m < sqrt(2); with f = m - 1 and s = f/(2 + f), |s| <= 0.172,
 *     log m = f - f^2/2 + s*(f^2/2 + R(s^2)),   R(z) = 2/3 z + 2/5 z^2 + ... (the series of atanh),
 * and e ln 2 is added in two pieces. A low part of the operand, l in units of m, adds l/(1 + f) = l (1 - f + f^2...).
 * log1p(x) takes 1 + x with what rounding that sum lost as the low part. log of 0 is -inf, of a negative number NaN. */
#include "codegen/math/math_llvm.h"

static const double series[] = { 2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                                 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21 };

/* Subtract the bits of sqrt(1/2) and cut the mantissa: that is the exponent. */
LLVMValueRef tl_math_mantissa(tl_math *m, LLVMValueRef x, LLVMValueRef *exponent)
{
    LLVMBuilderRef b = m->builder;
    bool f64 = m->dtype == TL_F64;
    LLVMValueRef half_root = tl_math_int(m, f64 ? 0x3FE6A09E667F3BCD : 0x3F3504F3);
    LLVMValueRef width = tl_math_int(m, f64 ? 52 : 23), bits = tl_math_bits(m, x);
    *exponent = LLVMBuildAShr(b, LLVMBuildSub(b, bits, half_root, ""), width, "");
    LLVMValueRef moved = LLVMBuildShl(b, *exponent, width, "");
    return tl_math_from_bits(m, LLVMBuildSub(b, bits, moved, ""));
}

LLVMValueRef tl_math_log_of(tl_math *m, LLVMValueRef x, LLVMValueRef low, LLVMValueRef n)
{
    LLVMBuilderRef b = m->builder;
    bool f64 = m->dtype == TL_F64;
    double ln2_high = f64 ? 0x1.62e42fefa3800p-1 : 0x1.62e400p-1,
           ln2_low = f64 ? 0x1.ef35793c76730p-45 : 0x1.7f7d1cp-20;
    LLVMValueRef one = tl_math_constant(m, 1), e;
    LLVMValueRef f = tl_math_sub(m, tl_math_mantissa(m, x, &e), one);
    LLVMValueRef k = tl_math_from_int(m, n == NULL ? e : LLVMBuildAdd(b, e, n, ""));

    LLVMValueRef s = tl_math_div(m, f, tl_math_add(m, tl_math_constant(m, 2), f));
    LLVMValueRef z = tl_math_mul(m, s, s), square = tl_math_mul(m, f, f);
    LLVMValueRef r = tl_math_mul(m, z, tl_math_polynomial(m, z, series, f64 ? 10 : 4));
    LLVMValueRef half = tl_math_mul(m, square, tl_math_constant(m, 0.5));
    LLVMValueRef tail = tl_math_mul(m, k, tl_math_constant(m, ln2_low));
    if (low != NULL) {
        LLVMValueRef l = tl_math_scale(m, low, LLVMBuildNeg(b, e, ""));
        LLVMValueRef inverse = tl_math_add(m, tl_math_sub(m, one, f), square);
        tail = tl_math_fma(m, l, inverse, tail);
    }
    tail = tl_math_fma(m, s, tl_math_add(m, half, r), tail);
    LLVMValueRef log = tl_math_sub(m, f, tl_math_sub(m, half, tail));
    return tl_math_fma(m, k, tl_math_constant(m, ln2_high), log);
}

/* inf of inf, -inf where `zero` is 0, NaN where it is negative or a NaN. */
static LLVMValueRef put_limits(tl_math *m, LLVMValueRef log, LLVMValueRef zero)
{
    LLVMValueRef infinity = tl_math_constant(m, __builtin_inf());
    LLVMValueRef is_infinite = tl_math_compare(m, LLVMRealOEQ, zero, infinity);
    LLVMValueRef is_zero = tl_math_compare(m, LLVMRealOEQ, zero, tl_math_constant(m, 0));
    LLVMValueRef is_fine = tl_math_compare(m, LLVMRealOGE, zero, tl_math_constant(m, 0));
    log = tl_math_select(m, is_infinite, infinity, log);
    log = tl_math_select(m, is_zero, tl_math_negate(m, infinity), log);
    return tl_math_select(m, is_fine, log, tl_math_constant(m, __builtin_nan("")));
}

LLVMValueRef tl_math_LOG(tl_math *m, const LLVMValueRef *args)
{
    bool f64 = m->dtype == TL_F64;
    /* subnormal numbers are scaled up first */
    LLVMValueRef is_small = tl_math_less(m, args[0], f64 ? 0x1p-1022 : 0x1p-126);
    LLVMValueRef scaled = tl_math_mul(m, args[0], tl_math_constant(m, f64 ? 0x1p54 : 0x1p25));
    LLVMValueRef x = tl_math_select(m, is_small, scaled, args[0]);
    LLVMValueRef n =
        tl_math_select(m, is_small, tl_math_int(m, f64 ? -54 : -25), tl_math_int(m, 0));
    return put_limits(m, tl_math_log_of(m, x, NULL, n), args[0]);
}

LLVMValueRef tl_math_LOG1P(tl_math *m, const LLVMValueRef *args)
{
    LLVMValueRef x = args[0], low;
    LLVMValueRef sum = tl_math_two_sum(m, tl_math_constant(m, 1), x, &low);
    LLVMValueRef log = put_limits(m, tl_math_log_of(m, sum, low, NULL), sum);
    LLVMValueRef is_zero = tl_math_compare(m, LLVMRealOEQ, x, tl_math_constant(m, 0));
    return tl_math_select(m, is_zero, x, log); /* -0 stays */
}
