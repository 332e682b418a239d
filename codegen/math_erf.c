/* codegen/math_erf.c: the error function.
 *
 * |x| < 1: x + x P(x^2). Otherwise 1 - exp(-x^2) Q(t) with t = (|x| - 3)/(|x| + 3) and the sign of x, where Q interpolates
 * erfc(x) exp(x^2); from |x| = 4 (f32) or 6 (f64) on the result is 1. P and Q were fitted at Chebyshev points to 50
 * digits (relative errors of P 1e-9 and 2e-21, of Q 3e-9 and 2e-19 of its values there). */
#include "codegen/math_llvm.h"

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
static const double large_f32[] = {
    0x1.6e9827d229321p-3, -0x1.4e102a990b637p-2, 0x1.f6ff22fdb501fp-3, -0x1.33712017fdb90p-3,
    0x1.25825532c4605p-4, -0x1.8ebf847d5d028p-6, 0x1.31bb4c6d7ae22p-8, 0x1.9625850ab523fp-10,
};
static const double large_f64[] = {
    0x1.6e9827d229d2dp-3,   -0x1.4e102b9cf8513p-2,  0x1.f6ff204105975p-3,  -0x1.336ffbef08b52p-3,
    0x1.258b13b01793fp-4,   -0x1.8fa58eb5d84e7p-6,  0x1.17c838eedb88ap-8,  0x1.73101e7556a26p-11,
    -0x1.39084cb001ad2p-11, 0x1.7ba10334165eap-15,  0x1.0cac64cf08cb6p-14, -0x1.af854b573b9d1p-17,
    -0x1.0bc21cb4f942ep-17, 0x1.1c21e19aa6c5bp-19,  0x1.523269bb1d46ep-20, -0x1.24cdd513fcda3p-22,
    -0x1.008efb840f3cfp-22, -0x1.bd674a4b37efep-26,
};

LLVMValueRef tl_math_ERF(tl_math *m, const LLVMValueRef *args)
{
    bool f64 = m->dtype == TL_F64;
    LLVMValueRef x = args[0], three = tl_math_constant(m, 3), one = tl_math_constant(m, 1);
    LLVMValueRef magnitude = tl_math_clamp(m, tl_math_unary(m, "llvm.fabs", x), 0, f64 ? 6 : 4);
    LLVMValueRef z = tl_math_mul(m, magnitude, magnitude);
    LLVMValueRef p =
        f64 ? tl_math_polynomial(m, z, small_f64, 14) : tl_math_polynomial(m, z, small_f32, 7);
    LLVMValueRef below = tl_math_fma(m, magnitude, p, magnitude);

    LLVMValueRef t =
        tl_math_div(m, tl_math_sub(m, magnitude, three), tl_math_add(m, magnitude, three));
    LLVMValueRef q =
        f64 ? tl_math_polynomial(m, t, large_f64, 18) : tl_math_polynomial(m, t, large_f32, 8);
    LLVMValueRef e = tl_math_exp_of(m, tl_math_negate(m, z), NULL, 0, true);
    LLVMValueRef above = tl_math_sub(m, one, tl_math_mul(m, e, q));
    LLVMValueRef result = tl_math_select(m, tl_math_less(m, magnitude, 1), below, above);
    return tl_math_copysign(m, result, x);
}
