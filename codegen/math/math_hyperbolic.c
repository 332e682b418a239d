/* codegen/math/math_hyperbolic.c: sinh, cosh and their inverses, and atanh.
 *
 * With E = exp(|x|)/2: cosh(x) = E + 1/(4E), and sinh(x) = E - 1/(4E) with the sign of x from 1 on; below, it is
 * x + x^3 P(x^2), where P interpolates at Chebyshev points (relative error of sinh 4e-9 in f32, 8e-18 in f64).
 *     asinh(x) = log1p(|x| + x^2/(1 + sqrt(1 + x^2))) with the sign of x
 *     acosh(x) = log1p(t + sqrt(t (x + 1))),  t = x - 1
 *     atanh(x) = log1p(2|x|/(1 - |x|))/2 with the sign of x,
 * and where 1 is nothing beside x^2, asinh and acosh are log|x| + ln 2. */
#include "codegen/math/math_llvm.h"

static const double sinh_f32[] = { 0x1.555556p-3, 0x1.11111ep-7, 0x1.a00900p-13, 0x1.78a70ep-19 };
static const double sinh_f64[] = {
    0x1.5555555555555p-3,  0x1.1111111111111p-7,  0x1.a01a01a01a001p-13, 0x1.71de3a556f96cp-19,
    0x1.ae6456792a77fp-26, 0x1.612467ccb2260p-33, 0x1.ae777c36fd5b6p-41, 0x1.99f0806c2628dp-49,
};

static LLVMValueRef half_exp(tl_math *m, LLVMValueRef magnitude, LLVMValueRef *quarter_inverse)
{
    LLVMValueRef e = tl_math_exp_of(m, magnitude, NULL, -1, false);
    *quarter_inverse = tl_math_div(m, tl_math_constant(m, 0.25), e);
    return e;
}

LLVMValueRef tl_math_SINH(tl_math *m, const LLVMValueRef *args)
{
    LLVMValueRef x = tl_math_unary(m, "llvm.fabs", args[0]), inverse;
    LLVMValueRef e = half_exp(m, x, &inverse);
    LLVMValueRef z = tl_math_mul(m, x, x);
    LLVMValueRef p = m->dtype == TL_F64 ? tl_math_polynomial(m, z, sinh_f64, 8)
                                        : tl_math_polynomial(m, z, sinh_f32, 4);
    LLVMValueRef small = tl_math_fma(m, tl_math_mul(m, x, z), p, x);
    LLVMValueRef v = tl_math_select(m, tl_math_less(m, x, 1), small, tl_math_sub(m, e, inverse));
    return tl_math_copysign(m, v, args[0]);
}

LLVMValueRef tl_math_COSH(tl_math *m, const LLVMValueRef *args)
{
    LLVMValueRef inverse;
    LLVMValueRef e = half_exp(m, tl_math_unary(m, "llvm.fabs", args[0]), &inverse);
    return tl_math_add(m, e, inverse);
}

/* log1p(u), or log(x) + ln 2 where is_large, for u >= 0; infinity stays, NaN too. */
static LLVMValueRef log_of_sum(tl_math *m, LLVMValueRef u, LLVMValueRef x, LLVMValueRef is_large)
{
    LLVMValueRef low, zero = tl_math_constant(m, 0),
                      infinity = tl_math_constant(m, __builtin_inf());
    LLVMValueRef sum = tl_math_two_sum(m, tl_math_constant(m, 1), u, &low);
    LLVMValueRef n = tl_math_select(m, is_large, tl_math_int(m, 1), tl_math_int(m, 0));
    sum = tl_math_select(m, is_large, x, sum);
    low = tl_math_select(m, is_large, zero, low);
    LLVMValueRef log = tl_math_log_of(m, sum, low, n);
    LLVMValueRef is_finite = tl_math_compare(m, LLVMRealOLT, sum, infinity);
    return tl_math_select(m, is_finite, log, sum);
}

static LLVMValueRef is_large(tl_math *m, LLVMValueRef x)
{
    return tl_math_greater(m, x, m->dtype == TL_F64 ? 0x1p28 : 0x1p13);
}

LLVMValueRef tl_math_ASINH(tl_math *m, const LLVMValueRef *args)
{
    LLVMValueRef x = tl_math_unary(m, "llvm.fabs", args[0]), one = tl_math_constant(m, 1);
    LLVMValueRef square = tl_math_mul(m, x, x);
    LLVMValueRef root = tl_math_unary(m, "llvm.sqrt", tl_math_add(m, one, square));
    LLVMValueRef u = tl_math_add(m, x, tl_math_div(m, square, tl_math_add(m, one, root)));
    return tl_math_copysign(m, log_of_sum(m, u, x, is_large(m, x)), args[0]);
}

LLVMValueRef tl_math_ACOSH(tl_math *m, const LLVMValueRef *args)
{
    LLVMValueRef x = args[0], one = tl_math_constant(m, 1), t = tl_math_sub(m, x, one);
    LLVMValueRef root = tl_math_unary(m, "llvm.sqrt", tl_math_mul(m, t, tl_math_add(m, x, one)));
    LLVMValueRef u = tl_math_add(m, t, root);
    LLVMValueRef v = log_of_sum(m, u, x, is_large(m, x));
    LLVMValueRef is_fine = tl_math_compare(m, LLVMRealOGE, x, one);
    return tl_math_select(m, is_fine, v, tl_math_constant(m, __builtin_nan("")));
}

LLVMValueRef tl_math_ATANH(tl_math *m, const LLVMValueRef *args)
{
    LLVMValueRef x = tl_math_unary(m, "llvm.fabs", args[0]), one = tl_math_constant(m, 1);
    LLVMValueRef u = tl_math_div(m, tl_math_add(m, x, x), tl_math_sub(m, one, x));
    LLVMValueRef never = tl_math_less(m, u, 0);
    LLVMValueRef v = tl_math_mul(m, log_of_sum(m, u, x, never), tl_math_constant(m, 0.5));
    v = tl_math_select(m, tl_math_greater(m, x, 1), tl_math_constant(m, __builtin_nan("")), v);
    return tl_math_copysign(m, v, args[0]);
}
