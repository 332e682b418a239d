/* codegen/math/math_exp.c: exp, exp(x) - 1 and sigmoid.
 *
 * exp(x) = 2^n * e^r with n = round(x / ln 2) and r = x - n ln 2 in two pieces (Cody and Waite 1980), |r| <= 0.35.
 * e^r is 1 + r + r^2 P(r), where P interpolates at Chebyshev points (relative error of e^r 1e-8 in f32, 3e-19 in f64).
 * Adding 1.5 * 2^23 (2^52) rounds x / ln 2, and leaves n in the last bits. exp(x) - 1 is 2^n p + (2^n - 1) with
 * p = r + r^2 P(r), half of it at first, which does not overflow. sigmoid is 2^n / (2^n + e^-r) in f32, e/(1 + e) with
 * e = exp(x) for x < 0 and 1/(1 + exp(-x)) otherwise in f64. Where scaling by 2^n and an approximate reciprocal are
 * instructions, they take the place of integer arithmetic and of the division, which takes 16 cycles for a vector of 512
 * bits. */
#include "codegen/math/math_llvm.h"

static const double exp_f32[] = {
    1.0, 1.0, 0x1.000000p-1, 0x1.5554d8p-3, 0x1.555516p-5, 0x1.12106cp-7, 0x1.6d1606p-10,
};
static const double exp_f64[] = {
    1.0,
    1.0,
    0x1.0000000000000p-1,
    0x1.5555555555557p-3,
    0x1.5555555555556p-5,
    0x1.111111110ff87p-7,
    0x1.6c16c16c16212p-10,
    0x1.a01a01aca0134p-13,
    0x1.a01a01a741b3cp-16,
    0x1.71ddffef9e7b1p-19,
    0x1.27e4da1a3bf04p-22,
    0x1.af52906239de4p-26,
    0x1.1f75aba0b1e2ep-29,
};

/* r; *n is n as a number, *t has it in its last bits. */
static LLVMValueRef reduce(tl_math *m, LLVMValueRef x, LLVMValueRef *t, LLVMValueRef *n)
{
    bool f64 = m->dtype == TL_F64;
    /* the first piece of ln 2 has enough zeroes at its end that n times it is exact */
    double ln2_high = f64 ? 0x1.62e42fefa3800p-1 : 0x1.62e4p-1,
           ln2_low = f64 ? 0x1.ef35793c76730p-45 : 0x1.7f7d1cp-20;
    LLVMValueRef rounder = tl_math_constant(m, f64 ? 0x1.8p52 : 0x1.8p23);
    *t = tl_math_fma(m, x, tl_math_constant(m, 0x1.71547652b82fep0), rounder);
    *n = tl_math_sub(m, *t, rounder);
    LLVMValueRef r = tl_math_fma(m, *n, tl_math_constant(m, -ln2_high), x);
    return tl_math_fma(m, *n, tl_math_constant(m, -ln2_low), r);
}

/* 2^(n + shift), a normal number, for the n in the last bits of t. */
static LLVMValueRef power_of_two(tl_math *m, LLVMValueRef t, int shift)
{
    bool f64 = m->dtype == TL_F64;
    int64_t one = f64 ? INT64_C(1023) << 52 : INT64_C(127) << 23;
    int64_t shifted = shift * (INT64_C(1) << (f64 ? 52 : 23));
    LLVMValueRef bits =
        LLVMBuildShl(m->builder, tl_math_bits(m, t), tl_math_int(m, f64 ? 52 : 23), "");
    return tl_math_from_bits(m, LLVMBuildAdd(m->builder, bits, tl_math_int(m, one + shifted), ""));
}

LLVMValueRef tl_math_exp_of(tl_math *m, LLVMValueRef x, LLVMValueRef low, int shift, bool is_normal)
{
    LLVMBuilderRef b = m->builder;
    bool f64 = m->dtype == TL_F64;
    LLVMValueRef rounder = tl_math_constant(m, f64 ? 0x1.8p52 : 0x1.8p23), t, n;
    if (!is_normal)
        x = tl_math_clamp(m, x, f64 ? -747 : -105, f64 ? 712 : 91);
    LLVMValueRef r = reduce(m, x, &t, &n);
    if (low != NULL)
        r = tl_math_add(m, r, low);
    LLVMValueRef e =
        f64 ? tl_math_polynomial(m, r, exp_f64, 13) : tl_math_polynomial(m, r, exp_f32, 7);

    if (is_normal)
        return tl_math_mul(m, e, power_of_two(m, t, shift));
    if (tl_math_has_scale(m))
        return tl_math_scale_by(m, e,
                                shift == 0 ? n : tl_math_add(m, n, tl_math_constant(m, shift)));
    LLVMValueRef zero = tl_math_bits(m, rounder);
    LLVMValueRef bits = LLVMBuildSub(b, tl_math_bits(m, t), zero, "");
    return tl_math_scale(m, e, LLVMBuildAdd(b, bits, tl_math_int(m, shift), ""));
}

LLVMValueRef tl_math_EXP(tl_math *m, const LLVMValueRef *args)
{
    return tl_math_exp_of(m, args[0], NULL, 0, false);
}

LLVMValueRef tl_math_EXPM1(tl_math *m, const LLVMValueRef *args)
{
    bool f64 = m->dtype == TL_F64;
    LLVMValueRef t, n, x = tl_math_clamp(m, args[0], f64 ? -40 : -20, f64 ? 710 : 89);
    LLVMValueRef r = reduce(m, x, &t, &n);
    LLVMValueRef rest =
        f64 ? tl_math_polynomial(m, r, exp_f64 + 2, 11) : tl_math_polynomial(m, r, exp_f32 + 2, 5);
    LLVMValueRef p = tl_math_fma(m, tl_math_mul(m, r, r), rest, r);
    LLVMValueRef half = power_of_two(m, t, -1);
    LLVMValueRef v = tl_math_fma(m, half, p, tl_math_sub(m, half, tl_math_constant(m, 0.5)));
    return tl_math_copysign(m, tl_math_add(m, v, v), args[0]); /* -0 stays */
}

/* With x = n ln 2 + r: 2^n / (2^n + e^-r). The sum is a normal number from 0.7 to 2^44, whatever the result is. */
static LLVMValueRef sigmoid_f32(tl_math *m, LLVMValueRef x)
{
    enum { SHIFT = 24 }; /* 2^(n + 24) is a normal number for the least n */
    bool has_scale = tl_math_has_scale(m);
    LLVMValueRef rounder = tl_math_constant(m, 0x1.8p23);
    x = tl_math_clamp(m, x, has_scale ? -105 : -104, 30);
    LLVMValueRef t = tl_math_fma(m, x, tl_math_constant(m, 0x1.71547652b82fep0), rounder);
    LLVMValueRef n = tl_math_sub(m, t, rounder);
    LLVMValueRef r = tl_math_fma(m, n, tl_math_constant(m, 0x1.62e4p-1), tl_math_negate(m, x));
    r = tl_math_fma(m, n, tl_math_constant(m, 0x1.7f7d1cp-20), r);
    LLVMValueRef power =
        has_scale ? tl_math_scale_by(m, tl_math_constant(m, 1), n)
                  : tl_math_mul(m, power_of_two(m, t, SHIFT), tl_math_constant(m, 0x1p-24));
    LLVMValueRef sum = tl_math_add(m, power, tl_math_polynomial(m, r, exp_f32, 7));
    return has_scale ? tl_math_mul(m, power, tl_math_reciprocal(m, sum))
                     : tl_math_div(m, power, sum);
}

LLVMValueRef tl_math_SIGMOID(tl_math *m, const LLVMValueRef *args)
{
    if (m->dtype == TL_F32)
        return sigmoid_f32(m, args[0]);
    LLVMValueRef one = tl_math_constant(m, 1);
    LLVMValueRef below = tl_math_negate(m, tl_math_unary(m, "llvm.fabs", args[0]));
    LLVMValueRef e = tl_math_EXP(m, &below);
    LLVMValueRef above = tl_math_select(m, tl_math_less(m, args[0], 0), e, one);
    return tl_math_div(m, above, tl_math_add(m, one, e));
}
