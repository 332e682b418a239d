/* codegen/math_log.c: log.
 *
 * x = 2^e * m with sqrt(1/2) <= m < sqrt(2); with f = m - 1 and s = f/(2 + f), |s| <= 0.172,
 *     log m = f - f^2/2 + s*(f^2/2 + R(s^2)),   R(z) = 2/3 z + 2/5 z^2 + ... (the series of atanh),
 * and e ln 2 is added in two pieces. 0 gives -inf, a negative number NaN. At most 1.5 ulp in f32 and f64. */
#include "codegen/math_llvm.h"

static const double series[] = { 2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                                 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21 };

LLVMValueRef tl_math_LOG(tl_math *m, const LLVMValueRef *args)
{
    LLVMBuilderRef b = m->builder;
    bool f64 = m->dtype == TL_F64;
    double high = f64 ? 0x1.62e42fefa3800p-1 : 0x1.62e400p-1,
           low = f64 ? 0x1.ef35793c76730p-45 : 0x1.7f7d1cf79abcap-20;
    int mantissa = f64 ? 52 : 23;
    /* subnormal numbers are scaled up first */
    LLVMValueRef is_small = tl_math_less(m, args[0], f64 ? 0x1p-1022 : 0x1p-126);
    LLVMValueRef scaled = tl_math_mul(m, args[0], tl_math_constant(m, f64 ? 0x1p54 : 0x1p25));
    LLVMValueRef x = tl_math_select(m, is_small, scaled, args[0]);
    LLVMValueRef shift =
        tl_math_select(m, is_small, tl_math_int(m, f64 ? 54 : 25), tl_math_int(m, 0));
    /* the exponent that brings the mantissa to sqrt(1/2)...: subtract the bits of sqrt(1/2), cut the mantissa */
    LLVMValueRef half_root = tl_math_int(m, f64 ? 0x3FE6A09E667F3BCD : 0x3F3504F3);
    LLVMValueRef bits = tl_math_bits(m, x);
    LLVMValueRef e =
        LLVMBuildAShr(b, LLVMBuildSub(b, bits, half_root, ""), tl_math_int(m, mantissa), "");
    LLVMValueRef moved = LLVMBuildShl(b, e, tl_math_int(m, mantissa), "");
    LLVMValueRef one = tl_math_constant(m, 1);
    LLVMValueRef f = tl_math_sub(m, tl_math_from_bits(m, LLVMBuildSub(b, bits, moved, "")), one);
    LLVMValueRef n = tl_math_from_int(m, LLVMBuildSub(b, e, shift, ""));

    LLVMValueRef s = tl_math_div(m, f, tl_math_add(m, tl_math_constant(m, 2), f));
    LLVMValueRef z = tl_math_mul(m, s, s);
    LLVMValueRef r = tl_math_mul(m, z, tl_math_polynomial(m, z, series, f64 ? 10 : 4));
    LLVMValueRef half = tl_math_mul(m, tl_math_mul(m, f, f), tl_math_constant(m, 0.5));
    LLVMValueRef tail =
        tl_math_fma(m, s, tl_math_add(m, half, r), tl_math_mul(m, n, tl_math_constant(m, low)));
    LLVMValueRef log = tl_math_sub(m, f, tl_math_sub(m, half, tail));
    log = tl_math_fma(m, n, tl_math_constant(m, high), log);

    LLVMValueRef infinity = tl_math_constant(m, __builtin_inf()), zero = tl_math_constant(m, 0);
    log = tl_math_select(m, tl_math_compare(m, LLVMRealOEQ, args[0], infinity), infinity, log);
    log = tl_math_select(m, tl_math_compare(m, LLVMRealOEQ, args[0], zero),
                         tl_math_negate(m, infinity), log);
    return tl_math_select(m, tl_math_compare(m, LLVMRealUGE, args[0], zero),
                          tl_math_select(m, tl_math_is_nan(m, args[0]), args[0], log),
                          tl_math_constant(m, __builtin_nan("")));
}
