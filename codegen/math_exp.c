/* codegen/math_exp.c: exp and sigmoid.
 *
 * exp(x) = 2^n * e^r with n = round(x / ln 2) and r = x - n ln 2 in two pieces (Cody and Waite), |r| <= 0.347. e^r is
 * its Taylor polynomial: degree 7 leaves 1e-8 relative in f32, degree 13 leaves 4e-18 in f64. At most 1.5 ulp in f32
 * and f64. sigmoid is e/(1 + e) with e = exp(x) for x < 0 and 1/(1 + exp(-x)) otherwise: at most 3 ulp. */
#include "codegen/math_llvm.h"

static const double taylor[] = { 1.0,
                                 1.0,
                                 1.0 / 2,
                                 1.0 / 6,
                                 1.0 / 24,
                                 1.0 / 120,
                                 1.0 / 720,
                                 1.0 / 5040,
                                 1.0 / 40320,
                                 1.0 / 362880,
                                 1.0 / 3628800,
                                 1.0 / 39916800,
                                 1.0 / 479001600,
                                 1.0 / 6227020800 };

LLVMValueRef tl_math_EXP(tl_math *m, const LLVMValueRef *args)
{
    bool f64 = m->dtype == TL_F64;
    /* the first piece of ln 2 has enough zeroes at its end that n times it is exact */
    double high = f64 ? 0x1.62e42fefa3800p-1 : 0x1.62e4p-1,
           low = f64 ? 0x1.ef35793c76730p-45 : 0x1.7f7d1cp-20;
    LLVMValueRef x = tl_math_clamp(m, args[0], f64 ? -746 : -104, f64 ? 710 : 89);
    LLVMValueRef n = tl_math_mul(m, x, tl_math_constant(m, 0x1.71547652b82fep0));
    n = tl_emit_function(m, TL_FUNCTION_ROUND, &n);
    LLVMValueRef r = tl_math_fma(m, n, tl_math_constant(m, -high), x);
    r = tl_math_fma(m, n, tl_math_constant(m, -low), r);
    LLVMValueRef e = tl_math_polynomial(m, r, taylor, f64 ? 14 : 8);
    LLVMValueRef scaled = tl_math_scale(m, e, tl_math_to_int(m, n));
    return tl_math_select(m, tl_math_is_nan(m, args[0]), args[0], scaled);
}

LLVMValueRef tl_math_SIGMOID(tl_math *m, const LLVMValueRef *args)
{
    LLVMValueRef one = tl_math_constant(m, 1);
    LLVMValueRef small = tl_math_negate(m, tl_math_unary(m, "llvm.fabs", args[0]));
    LLVMValueRef e = tl_math_EXP(m, &small);
    LLVMValueRef above = tl_math_select(m, tl_math_less(m, args[0], 0), e, one);
    LLVMValueRef result = tl_math_div(m, above, tl_math_add(m, one, e));
    return tl_math_select(m, tl_math_is_nan(m, args[0]), args[0], result);
}
