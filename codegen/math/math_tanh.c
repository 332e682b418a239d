/* codegen/math/math_tanh.c: tanh.
 *
 * |x| < 0.625: x + x^3 P(x^2), where P interpolates (tanh(x)/x - 1)/x^2 at Chebyshev points (relative error of tanh
 * 1e-9 in f32, 3e-18 in f64). Otherwise 1 - 2/(exp(2|x|) + 1) with the sign of x. */
#include "codegen/math/math_llvm.h"

static const double small_f32[] = {
    -0x1.5555526346510p-2, 0x1.110e1c9ed53c1p-3,  -0x1.b9258aeffc781p-5,
    0x1.58048d46fe82ap-6,  -0x1.8f8de3f4a4895p-8,
};
static const double small_f64[] = {
    -0x1.5555555555553p-2,  0x1.11111111107acp-3,  -0x1.ba1ba1b92a52cp-5,  0x1.664f4836ffb5ep-6,
    -0x1.226e29216080bp-7,  0x1.d6d17faac7499p-9,  -0x1.7d80275a99754p-10, 0x1.33fc7f7473d21p-11,
    -0x1.e3f90249802dbp-13, 0x1.4ddd5fb800f82p-14, -0x1.21522c06d082ap-16,
};

LLVMValueRef tl_math_TANH(tl_math *m, const LLVMValueRef *args)
{
    bool f64 = m->dtype == TL_F64;
    LLVMValueRef x = tl_math_unary(m, "llvm.fabs", args[0]), one = tl_math_constant(m, 1);
    LLVMValueRef z = tl_math_mul(m, x, x);
    LLVMValueRef p =
        f64 ? tl_math_polynomial(m, z, small_f64, 11) : tl_math_polynomial(m, z, small_f32, 5);
    LLVMValueRef small = tl_math_fma(m, tl_math_mul(m, z, p), x, x);

    LLVMValueRef near = tl_math_clamp(m, x, 0, f64 ? 20 : 10); /* from there on it is 1 */
    LLVMValueRef e = tl_math_exp_of(m, tl_math_add(m, near, near), NULL, 0, true);
    LLVMValueRef rest = tl_math_div(m, tl_math_constant(m, 2), tl_math_add(m, e, one));
    LLVMValueRef large = tl_math_sub(m, one, rest);
    return tl_math_copysign(m, tl_math_select(m, tl_math_less(m, x, 0.625), small, large), args[0]);
}
