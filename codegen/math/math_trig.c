/* codegen/math/math_trig.c: sin, cos and tan, of all numbers.
 *
 * The angle is reduced modulo pi/2 in f64 (math_angle.c). On |x| <= pi/4, with z = x^2 and the low part y,
 *     sin(x + y) = x + x^3 S(z) + y (1 - z/2),   cos(x + y) = 1 - z/2 + z^2 C(z) - x y,
 * where S and C interpolate at Chebyshev points (relative errors of sin 2e-8 and 2e-17, of cos 1e-9 and 1e-18 in f32 and
 * f64). The quadrant says which of them is meant and its sign; tan is their quotient. */
#include "codegen/math/math_llvm.h"

static const double sin_f32[] = { -0x1.555552p-3, 0x1.110c24p-7, -0x1.9ac6fcp-13 };
static const double sin_f64[] = {
    -0x1.5555555555555p-3, 0x1.1111111110ba5p-7,   -0x1.a01a019e80693p-13,
    0x1.71de379252004p-19, -0x1.ae60069e53ef1p-26, 0x1.5e098556d302ep-33,
};
static const double cos_f32[] = { 0x1.555554p-5, -0x1.6c12cep-10, 0x1.9bd670p-16 };
static const double cos_f64[] = {
    0x1.5555555555555p-5,   -0x1.6c16c16c16960p-10, 0x1.a01a019f4d0edp-16,
    -0x1.27e4fa15bd814p-22, 0x1.1eeb66b683028p-29,  -0x1.907c0e63adbb6p-37,
};

/* sin and cos of the reduced angle. */
typedef struct {
    LLVMValueRef sin, cos, quadrant;
} parts;

static LLVMValueRef narrow_int(tl_math *m, LLVMValueRef v)
{
    return m->dtype == TL_F64 ? v : LLVMBuildTrunc(m->builder, v, tl_math_int_type(m), "");
}

static parts evaluate(tl_math *m, LLVMValueRef operand)
{
    bool f64 = m->dtype == TL_F64;
    tl_math wide = tl_math_wide(m);
    tl_math_angle angle = tl_math_reduce_angle(&wide, tl_math_widen(m, operand));
    LLVMValueRef x = tl_math_narrow(m, angle.high), y = angle.low;
    LLVMValueRef z = tl_math_mul(m, x, x), one = tl_math_constant(m, 1);
    LLVMValueRef half = tl_math_mul(m, z, tl_math_constant(m, 0.5));
    LLVMValueRef s =
        f64 ? tl_math_polynomial(m, z, sin_f64, 6) : tl_math_polynomial(m, z, sin_f32, 3);
    LLVMValueRef c =
        f64 ? tl_math_polynomial(m, z, cos_f64, 6) : tl_math_polynomial(m, z, cos_f32, 3);
    LLVMValueRef cube = tl_math_mul(m, x, z), square = tl_math_mul(m, z, z), start = one;
    LLVMValueRef sin_rest, cos_rest = tl_math_mul(m, square, c);
    if (f64) {
        sin_rest = tl_math_fma(m, cube, s, tl_math_sub(m, y, tl_math_mul(m, half, y)));
        cos_rest = tl_math_sub(m, cos_rest, tl_math_mul(m, x, y));
    } else {
        sin_rest = tl_math_mul(m, cube, s);
    }
    start = tl_math_sub(m, one, half);
    LLVMValueRef lost = tl_math_sub(m, tl_math_sub(m, one, start), half);
    return (parts){ .sin = tl_math_add(m, x, sin_rest),
                    .cos = tl_math_add(m, start, tl_math_add(m, lost, cos_rest)),
                    .quadrant = narrow_int(m, angle.quadrant) };
}

static LLVMValueRef is_odd(tl_math *m, LLVMValueRef quadrant)
{
    LLVMValueRef last = LLVMBuildAnd(m->builder, quadrant, tl_math_int(m, 1), "");
    return LLVMBuildICmp(m->builder, LLVMIntNE, last, tl_math_int(m, 0), "");
}

/* sin of the angle turned by `turns` quadrants. */
static LLVMValueRef sin_turned(tl_math *m, LLVMValueRef x, int turns)
{
    LLVMBuilderRef b = m->builder;
    parts p = evaluate(m, x);
    LLVMValueRef q = LLVMBuildAdd(b, p.quadrant, tl_math_int(m, turns), "");
    LLVMValueRef v = tl_math_select(m, is_odd(m, q), p.cos, p.sin);
    LLVMValueRef sign = LLVMBuildAnd(b, q, tl_math_int(m, 2), "");
    sign = LLVMBuildShl(b, sign, tl_math_int(m, m->dtype == TL_F64 ? 62 : 30), "");
    return tl_math_from_bits(m, LLVMBuildXor(b, tl_math_bits(m, v), sign, ""));
}

static LLVMValueRef keep_zero(tl_math *m, LLVMValueRef x, LLVMValueRef v)
{
    LLVMValueRef is_zero = tl_math_compare(m, LLVMRealOEQ, x, tl_math_constant(m, 0));
    return tl_math_select(m, is_zero, x, v); /* -0 stays */
}

LLVMValueRef tl_math_SIN(tl_math *m, const LLVMValueRef *args)
{
    return keep_zero(m, args[0], sin_turned(m, args[0], 0));
}

LLVMValueRef tl_math_COS(tl_math *m, const LLVMValueRef *args)
{
    return sin_turned(m, args[0], 1);
}

LLVMValueRef tl_math_TAN(tl_math *m, const LLVMValueRef *args)
{
    parts p = evaluate(m, args[0]);
    LLVMValueRef odd = is_odd(m, p.quadrant);
    LLVMValueRef above = tl_math_select(m, odd, tl_math_negate(m, p.cos), p.sin);
    LLVMValueRef below = tl_math_select(m, odd, p.sin, p.cos);
    return keep_zero(m, args[0], tl_math_div(m, above, below));
}
