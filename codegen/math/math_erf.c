/* codegen/math/math_erf.c: the error function.
 *
 * f32: x P(x^2)/Q(x^2), fitted to the least relative error on |x| < 3.92 (0.02 units of the last place), multiplied by 5/3,
 * where the first coefficients lose least to rounding, and searched among neighbouring f32 for those whose results are nearest.
 * Few operations in short chains: what a vector of GELU costs is how many of them a core has in flight (NOTES.md).
 * f64: |x| < 1: x + x P(x^2). From 1 on, 1 - exp(-x^2) Q(t) with t = (|x| - 3)/(|x| + 3), where Q interpolates
 * erfc(x) exp(x^2) (relative error 2e-19), at Chebyshev points to 50 digits (relative error of P 2e-21).
 * From |x| = 3.92 (f32) or 6 (f64) on the result is 1, with the sign of x. */
#include "codegen/math/math_llvm.h"

static const double numerator_f32[] = {
    0x1.e17390p+0, 0x1.486960p-2, 0x1.7b5b5ep-4, 0x1.c9e15ep-8, 0x1.62272ep-11, 0x1.6f8936p-17,
};
static const double denominator_f32[] = {
    0x1.aaacdap+0, 0x1.adf94cp-1,  0x1.900df2p-3,  0x1.ba8dc6p-6,
    0x1.333e3ep-9, 0x1.f0478ep-14, 0x1.bbe984p-22,
};
static const double small_f64[] = {
    0x1.06eba8214db68p-3,  -0x1.812746b0379e7p-2,  0x1.ce2f21a042bdep-4,  -0x1.b82ce312889bap-6,
    0x1.565bcd0e6502dp-8,  -0x1.c02db3feeb579p-11, 0x1.f9a326c233146p-14, -0x1.f4d2561aeafd4p-17,
    0x1.b9e6509b9867dp-20, -0x1.5f6d925a0bc7ap-23, 0x1.fc4356498c2d9p-27, -0x1.4e607b41a6416p-30,
    0x1.7f072188e194dp-34, -0x1.29b9f1b3df556p-38,
};
static const double large_f64[] = {
    0x1.6e9827d229d2dp-3,   -0x1.4e102b9cf8513p-2,  0x1.f6ff204105975p-3,  -0x1.336ffbef08b52p-3,
    0x1.258b13b01793fp-4,   -0x1.8fa58eb5d84e7p-6,  0x1.17c838eedb88ap-8,  0x1.73101e7556a26p-11,
    -0x1.39084cb001ad2p-11, 0x1.7ba10334165eap-15,  0x1.0cac64cf08cb6p-14, -0x1.af854b573b9d1p-17,
    -0x1.0bc21cb4f942ep-17, 0x1.1c21e19aa6c5bp-19,  0x1.523269bb1d46ep-20, -0x1.24cdd513fcda3p-22,
    -0x1.008efb840f3cfp-22, -0x1.bd674a4b37efep-26,
};

/* erfc of a magnitude in 1...6, f64; z is its square */
static LLVMValueRef tail_f64(tl_math *m, LLVMValueRef x, LLVMValueRef z)
{
    LLVMValueRef three = tl_math_constant(m, 3);
    LLVMValueRef t = tl_math_div(m, tl_math_sub(m, x, three), tl_math_add(m, x, three));
    LLVMValueRef e = tl_math_exp_of(m, tl_math_negate(m, z), NULL, 0, true);
    return tl_math_mul(m, e, tl_math_polynomial(m, t, large_f64, 18));
}

/* of a magnitude up to 6 */
static LLVMValueRef erf_f64(tl_math *m, LLVMValueRef x)
{
    LLVMValueRef z = tl_math_mul(m, x, x);
    LLVMValueRef below = tl_math_fma(m, x, tl_math_polynomial(m, z, small_f64, 14), x);
    LLVMValueRef above = tl_math_sub(m, tl_math_constant(m, 1), tail_f64(m, x, z));
    return tl_math_select(m, tl_math_less(m, x, 1), below, above);
}

static LLVMValueRef erf_f32(tl_math *m, LLVMValueRef x)
{
    x = tl_math_clamp(m, x, -0x1.f5c29p+1, 0x1.f5c29p+1);
    LLVMValueRef z = tl_math_mul(m, x, x);
    LLVMValueRef p = tl_math_short_polynomial(m, z, numerator_f32, 6);
    LLVMValueRef q = tl_math_short_polynomial(m, z, denominator_f32, 7);
    return tl_math_clamp(m, tl_math_div(m, tl_math_mul(m, x, p), q), -1, 1);
}

LLVMValueRef tl_math_ERF(tl_math *m, const LLVMValueRef *args)
{
    if (m->dtype != TL_F64)
        return erf_f32(m, args[0]);
    LLVMValueRef x = tl_math_clamp(m, tl_math_unary(m, "llvm.fabs", args[0]), 0, 6);
    return tl_math_copysign(m, erf_f64(m, x), args[0]);
}
