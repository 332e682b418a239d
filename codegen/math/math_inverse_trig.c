/* codegen/math/math_inverse_trig.c: asin, acos and atan.
 *
 * asin(x) = x + x^3 P(x^2) up to 1/2; above, with s = sqrt((1 - |x|)/2), it is pi/2 - 2 asin(s), and acos(x) is 2 asin(s)
 * or pi - 2 asin(s). atan is x + x^3 A(x^2) up to tan(pi/8); above, it is pi/4 + atan((x - 1)/(x + 1)), and from
 * tan(3 pi/8) on pi/2 + atan(-1/x) (the reductions of Moshier's Cephes). P and A interpolate at Chebyshev points
 * (relative errors of asin 2e-8 and 6e-18, of atan 3e-9 and 7e-18 in f32 and f64). Constants are in two pieces. */
#include "codegen/math/math_llvm.h"

static const double asin_f32[] = {
    0x1.55555ep-3, 0x1.332732p-4, 0x1.70a6bcp-5, 0x1.b311d2p-6, 0x1.37fe16p-5,
};
static const double asin_f64[] = {
    0x1.5555555555556p-3, 0x1.3333333332ecap-4, 0x1.6db6db6e31f13p-5, 0x1.f1c71c1db0623p-6,
    0x1.6e8bb1c8209a2p-6, 0x1.1c4d35cf95421p-6, 0x1.c9cf07674736ap-7, 0x1.782651caa6547p-7,
    0x1.52420b04b37bep-7, 0x1.65a9c4dfcf8b2p-8, 0x1.1d189408314eep-6, -0x1.e6aaa8a0a04ccp-7,
    0x1.d72b2bc8155f8p-6,
};
static const double atan_f32[] = {
    -0x1.555554p-2, 0x1.999730p-3, -0x1.242026p-3, 0x1.b80edep-4, -0x1.0840fap-4,
};
static const double atan_f64[] = {
    -0x1.5555555555555p-2, 0x1.9999999999349p-3, -0x1.2492492435f94p-3, 0x1.c71c718525179p-4,
    -0x1.745d0b24c84b9p-4, 0x1.3b1262ac559fcp-4, -0x1.10fa72be60a88p-4, 0x1.dfe5f37f19c8bp-5,
    -0x1.a097da67e4438p-5, 0x1.415dac51cd10bp-5, -0x1.3a254249c2220p-6,
};

/* pi/2 and what its rounding lost; pi and pi/4 are multiples. */
static double half_pi(const tl_math *m)
{
    return m->dtype == TL_F64 ? 0x1.921fb54442d18p+0 : 0x1.921fb6p+0;
}

static double half_pi_low(const tl_math *m)
{
    return m->dtype == TL_F64 ? 0x1.1a62633145c07p-54 : -0x1.777a5cp-25;
}

/* What asin and acos share: t is |x| or s, rest is t^3 P(t^2). */
typedef struct {
    LLVMValueRef is_large, t, rest;
} arc;

static arc evaluate(tl_math *m, LLVMValueRef x)
{
    LLVMValueRef magnitude = tl_math_unary(m, "llvm.fabs", x), half = tl_math_constant(m, 0.5);
    LLVMValueRef is_large = tl_math_greater(m, magnitude, 0.5);
    LLVMValueRef above = tl_math_mul(m, tl_math_sub(m, tl_math_constant(m, 1), magnitude), half);
    LLVMValueRef z = tl_math_select(m, is_large, above, tl_math_mul(m, magnitude, magnitude));
    LLVMValueRef root = tl_math_unary(m, "llvm.sqrt", above); /* NaN beyond 1 */
    LLVMValueRef t = tl_math_select(m, is_large, root, magnitude);
    LLVMValueRef p = m->dtype == TL_F64 ? tl_math_polynomial(m, z, asin_f64, 13)
                                        : tl_math_polynomial(m, z, asin_f32, 5);
    return (arc){ is_large, t, tl_math_mul(m, tl_math_mul(m, t, z), p) };
}

/* high - a + (low - b), where high - a is exact or nearly so */
static LLVMValueRef difference(tl_math *m, double high, LLVMValueRef a, double low, LLVMValueRef b)
{
    LLVMValueRef first = tl_math_sub(m, tl_math_constant(m, high), a);
    return tl_math_add(m, first, tl_math_sub(m, tl_math_constant(m, low), b));
}

LLVMValueRef tl_math_ASIN(tl_math *m, const LLVMValueRef *args)
{
    arc a = evaluate(m, args[0]);
    LLVMValueRef twice = tl_math_add(m, a.t, a.t), rest = tl_math_add(m, a.rest, a.rest);
    LLVMValueRef large = difference(m, half_pi(m), twice, half_pi_low(m), rest);
    LLVMValueRef small = tl_math_add(m, a.t, a.rest);
    return tl_math_copysign(m, tl_math_select(m, a.is_large, large, small), args[0]);
}

LLVMValueRef tl_math_ACOS(tl_math *m, const LLVMValueRef *args)
{
    arc a = evaluate(m, args[0]);
    LLVMValueRef twice = tl_math_add(m, a.t, a.t), rest = tl_math_add(m, a.rest, a.rest);
    LLVMValueRef right = tl_math_add(m, twice, rest);
    LLVMValueRef left = difference(m, 2 * half_pi(m), twice, 2 * half_pi_low(m), rest);
    LLVMValueRef is_left = tl_math_less(m, args[0], 0);
    LLVMValueRef signed_rest = tl_math_copysign(m, a.rest, args[0]);
    /* pi/2 - (x - (low - rest)): x last, as it is the larger */
    LLVMValueRef inner =
        tl_math_sub(m, args[0], tl_math_sub(m, tl_math_constant(m, half_pi_low(m)), signed_rest));
    LLVMValueRef middle = tl_math_sub(m, tl_math_constant(m, half_pi(m)), inner);
    LLVMValueRef large = tl_math_select(m, is_left, left, right);
    return tl_math_select(m, a.is_large, large, middle);
}

LLVMValueRef tl_math_ATAN(tl_math *m, const LLVMValueRef *args)
{
    LLVMValueRef x = tl_math_unary(m, "llvm.fabs", args[0]);
    LLVMValueRef one = tl_math_constant(m, 1), zero = tl_math_constant(m, 0);
    LLVMValueRef is_some = tl_math_greater(m, x, 0x1.a827999fcef32p-2);
    LLVMValueRef is_large = tl_math_greater(m, x, 0x1.3504f333f9de6p+1);
    LLVMValueRef above =
        tl_math_select(m, is_large, tl_math_constant(m, -1), tl_math_sub(m, x, one));
    LLVMValueRef below = tl_math_select(m, is_large, x, tl_math_add(m, x, one));
    LLVMValueRef t = tl_math_select(m, is_some, tl_math_div(m, above, below), x);
    double high = half_pi(m), low = half_pi_low(m);
    LLVMValueRef start =
        tl_math_select(m, is_large, tl_math_constant(m, high), tl_math_constant(m, high / 2));
    LLVMValueRef start_low =
        tl_math_select(m, is_large, tl_math_constant(m, low), tl_math_constant(m, low / 2));
    start = tl_math_select(m, is_some, start, zero);
    start_low = tl_math_select(m, is_some, start_low, zero);

    LLVMValueRef z = tl_math_mul(m, t, t);
    LLVMValueRef p = m->dtype == TL_F64 ? tl_math_polynomial(m, z, atan_f64, 11)
                                        : tl_math_polynomial(m, z, atan_f32, 5);
    LLVMValueRef rest = tl_math_fma(m, tl_math_mul(m, t, z), p, start_low);
    LLVMValueRef result = tl_math_add(m, start, tl_math_add(m, t, rest));
    return tl_math_copysign(m, result, args[0]);
}
