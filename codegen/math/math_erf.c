/* codegen/math/math_erf.c: the error function.
 *
 * |x| < 1: x + x P(x^2). From 1 on, with the sign of x,
 *     f32: 1 - exp(L(|x| - 1)), where L interpolates log(erfc(x)) (error of erf 1e-8), without a division;
 *     f64: 1 - exp(-x^2) Q(t) with t = (|x| - 3)/(|x| + 3), where Q interpolates erfc(x) exp(x^2) (relative error 2e-19).
 * From |x| = 4 (f32) or 6 (f64) on the result is 1. All were fitted at Chebyshev points to 50 digits (relative errors of
 * P 1e-9 and 2e-21). */
#include "codegen/math/math_llvm.h"

static const double small_f32[] = {
    0x1.06eba7f673900p-3, -0x1.81273e7a02443p-2,  0x1.ce2d10ed44e09p-4,  -0x1.b7faba961c85ap-6,
    0x1.541270c79ca2cp-8, -0x1.a45087f1a200ap-11, 0x1.4a5690869d13fp-14,
};
static const double small_f64[] = {
    0x1.06eba8214db68p-3,  -0x1.812746b0379e7p-2,  0x1.ce2f21a042bdep-4,  -0x1.b82ce312889bap-6,
    0x1.565bcd0e6502dp-8,  -0x1.c02db3feeb579p-11, 0x1.f9a326c233146p-14, -0x1.f4d2561aeafd4p-17,
    0x1.b9e6509b9867dp-20, -0x1.5f6d925a0bc7ap-23, 0x1.fc4356498c2d9p-27, -0x1.4e607b41a6416p-30,
    0x1.7f072188e194dp-34, -0x1.29b9f1b3df556p-38,
};
static const double log_f32[] = {
    -0x1.d97fc0p+0, -0x1.51c9b2p+1, -0x1.afab6cp-1,  -0x1.5496a6p-5, 0x1.4a3ac8p-7,
    -0x1.0d42e6p-9, 0x1.4fcba8p-12, -0x1.147ed8p-15, 0x1.b77830p-20,
};
static const double large_f64[] = {
    0x1.6e9827d229d2dp-3,   -0x1.4e102b9cf8513p-2,  0x1.f6ff204105975p-3,  -0x1.336ffbef08b52p-3,
    0x1.258b13b01793fp-4,   -0x1.8fa58eb5d84e7p-6,  0x1.17c838eedb88ap-8,  0x1.73101e7556a26p-11,
    -0x1.39084cb001ad2p-11, 0x1.7ba10334165eap-15,  0x1.0cac64cf08cb6p-14, -0x1.af854b573b9d1p-17,
    -0x1.0bc21cb4f942ep-17, 0x1.1c21e19aa6c5bp-19,  0x1.523269bb1d46ep-20, -0x1.24cdd513fcda3p-22,
    -0x1.008efb840f3cfp-22, -0x1.bd674a4b37efep-26,
};

/* erfc of a magnitude in 1...4, f32 */
static LLVMValueRef tail_f32(tl_math *m, LLVMValueRef x)
{
    LLVMValueRef above = tl_math_sub(m, x, tl_math_constant(m, 1));
    return tl_math_exp_of(m, tl_math_polynomial(m, above, log_f32, 9), NULL, 0, true);
}

/* erfc of a magnitude in 1...6, f64; z is its square */
static LLVMValueRef tail_f64(tl_math *m, LLVMValueRef x, LLVMValueRef z)
{
    LLVMValueRef three = tl_math_constant(m, 3);
    LLVMValueRef t = tl_math_div(m, tl_math_sub(m, x, three), tl_math_add(m, x, three));
    LLVMValueRef e = tl_math_exp_of(m, tl_math_negate(m, z), NULL, 0, true);
    return tl_math_mul(m, e, tl_math_polynomial(m, t, large_f64, 18));
}

LLVMValueRef tl_math_ERF(tl_math *m, const LLVMValueRef *args)
{
    bool f64 = m->dtype == TL_F64;
    LLVMValueRef x = tl_math_unary(m, "llvm.fabs", args[0]);
    x = tl_math_clamp(m, x, 0, f64 ? 6 : 4);
    LLVMValueRef z = tl_math_mul(m, x, x);
    LLVMValueRef p =
        f64 ? tl_math_polynomial(m, z, small_f64, 14) : tl_math_polynomial(m, z, small_f32, 7);
    LLVMValueRef below = tl_math_fma(m, x, p, x);
    LLVMValueRef tail = f64 ? tail_f64(m, x, z) : tail_f32(m, x);
    LLVMValueRef above = tl_math_sub(m, tl_math_constant(m, 1), tail);
    LLVMValueRef result = tl_math_select(m, tl_math_less(m, x, 1), below, above);
    return tl_math_copysign(m, result, args[0]);
}
