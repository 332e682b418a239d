/* codegen/math/math_erf.c: the error function, with the sign of x.
 *
 * f32: 1 - e^-a with a = -log(erfc|x|) = |x| + |x| P(|x|): one polynomial for all x, for exp(-a) - 1 = 2^n p + (2^n - 1)
 * keeps the digits of a small one (math_exp.c). p is e^r - 1 = r + r^2 Q(r), and r = -|x| - n ln 2 - |x| P(|x|) is never
 * rounded as a whole: what it has besides its first two terms comes to the small part of p. P and Q were fitted to the least
 * error in units of the result's last place (0.07 and 0.09 of one).
 * f64: |x| < 1: x + x P(x^2). From 1 on, 1 - exp(-x^2) Q(t) with t = (|x| - 3)/(|x| + 3), where Q interpolates
 * erfc(x) exp(x^2) (relative error 2e-19), at Chebyshev points to 50 digits (relative error of P 2e-21).
 * From |x| = 4 (f32) or 6 (f64) on the result is 1. */
#include "codegen/math/math_llvm.h"

static const double log_f32[] = {
    0x1.06eba8p-3,  0x1.45f300p-1,   0x1.a4f8dap-4,  -0x1.39bab8p-6,  -0x1.5f16a8p-13,
    0x1.b68690p-10, -0x1.4d2b22p-11, 0x1.effc2ap-14, -0x1.387dd4p-17,
};
static const double exp_f32[] = {
    0x1.fffff4p-2, 0x1.555490p-3, 0x1.555e70p-5, 0x1.123bb2p-7, 0x1.6667a0p-10,
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

/* of a magnitude up to 4 */
static LLVMValueRef erf_f32(tl_math *m, LLVMValueRef x)
{
    LLVMBuilderRef b = m->builder;
    LLVMValueRef one = tl_math_constant(m, 1), rounder = tl_math_constant(m, 0x1.8p23);
    LLVMValueRef more = tl_math_mul(m, x, tl_math_short_polynomial(m, x, log_f32, 9));
    LLVMValueRef a = tl_math_add(m, x, more);
    LLVMValueRef t = tl_math_fma(m, a, tl_math_constant(m, -0x1.71547652b82fep0), rounder);
    LLVMValueRef n = tl_math_sub(m, t, rounder);
    /* n times the first piece of ln 2 is exact */
    LLVMValueRef high = tl_math_fma(m, n, tl_math_constant(m, -0x1.62e4p-1), tl_math_negate(m, x));
    LLVMValueRef low = tl_math_fma(m, n, tl_math_constant(m, 0x1.7f7d1cp-20), more);
    LLVMValueRef r = tl_math_sub(m, high, low);
    LLVMValueRef q = tl_math_short_polynomial(m, r, exp_f32, 5);
    LLVMValueRef p = tl_math_fma(m, tl_math_mul(m, r, r), q, tl_math_negate(m, low));
    p = tl_math_add(m, high, p);

    LLVMValueRef bits = LLVMBuildShl(b, tl_math_bits(m, t), tl_math_int(m, 23), "");
    bits = LLVMBuildAdd(b, bits, tl_math_int(m, INT64_C(127) << 23), "");
    LLVMValueRef power = tl_math_from_bits(m, bits); /* 2^n, n from -26 to 0 */
    return tl_math_fma(m, tl_math_negate(m, power), p, tl_math_sub(m, one, power));
}

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

LLVMValueRef tl_math_ERF(tl_math *m, const LLVMValueRef *args)
{
    bool f64 = m->dtype == TL_F64;
    LLVMValueRef x = tl_math_unary(m, "llvm.fabs", args[0]);
    x = tl_math_clamp(m, x, 0, f64 ? 6 : 4);
    return tl_math_copysign(m, f64 ? erf_f64(m, x) : erf_f32(m, x), args[0]);
}
