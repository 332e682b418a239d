/* codegen/math/math_fmod.c: fmod, exact.
 *
 * |x| = a * 2^i and |y| = b * 2^j with integers a, b < 2^53. The remainder of a 2^(i-j) by b is built up from a mod b by
 * eleven bits of the power at a time: a loop until no lane has bits left, which runs once or not at all unless x is far
 * larger than y. f32 goes through f64. fmod(x, 0) and fmod(inf, y) are NaN, fmod(x, inf) is x; the sign is that of x. */
#include "codegen/math/math_llvm.h"

/* The integer mantissa of a magnitude, and its exponent where the smallest is 1. */
static LLVMValueRef integer_mantissa(tl_math *m, LLVMValueRef bits, LLVMValueRef *exponent)
{
    LLVMBuilderRef b = m->builder;
    LLVMValueRef field = LLVMBuildLShr(b, bits, tl_math_int(m, 52), "");
    LLVMValueRef fraction = LLVMBuildAnd(b, bits, tl_math_int(m, (INT64_C(1) << 52) - 1), "");
    LLVMValueRef is_subnormal = LLVMBuildICmp(b, LLVMIntEQ, field, tl_math_int(m, 0), "");
    LLVMValueRef full = LLVMBuildOr(b, fraction, tl_math_int(m, INT64_C(1) << 52), "");
    *exponent = tl_math_select(m, is_subnormal, tl_math_int(m, 1), field);
    return tl_math_select(m, is_subnormal, fraction, full);
}

/* (a * 2^shift) mod d, for a < d < 2^53 */
static LLVMValueRef shifted_remainder(tl_math *m, LLVMValueRef a, LLVMValueRef d,
                                      LLVMValueRef shift)
{
    LLVMBuilderRef b = m->builder;
    LLVMTypeRef type = tl_math_int_type(m);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
    LLVMValueRef function = LLVMGetBasicBlockParent(before);
    LLVMBasicBlockRef head = LLVMAppendBasicBlockInContext(m->context, function, "fmod");
    LLVMBasicBlockRef inside = LLVMAppendBasicBlockInContext(m->context, function, "");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(m->context, function, "");
    LLVMBuildBr(b, head);
    LLVMPositionBuilderAtEnd(b, head);
    LLVMValueRef rest = LLVMBuildPhi(b, type, ""), left = LLVMBuildPhi(b, type, "");
    LLVMValueRef more = LLVMBuildICmp(b, LLVMIntSGT, left, tl_math_int(m, 0), "");
    LLVMBuildCondBr(b, tl_math_any(m, more), inside, after);

    LLVMPositionBuilderAtEnd(b, inside);
    LLVMValueRef eleven = tl_math_int(m, 11);
    LLVMValueRef is_less = LLVMBuildICmp(b, LLVMIntSLT, left, eleven, "");
    LLVMValueRef step = tl_math_select(m, is_less, left, eleven);
    LLVMValueRef next = LLVMBuildURem(b, LLVMBuildShl(b, rest, step, ""), d, "");
    LLVMValueRef fewer = LLVMBuildSub(b, left, step, "");
    LLVMBuildBr(b, head);
    LLVMAddIncoming(rest, &a, &before, 1);
    LLVMAddIncoming(rest, &next, &inside, 1);
    LLVMAddIncoming(left, &shift, &before, 1);
    LLVMAddIncoming(left, &fewer, &inside, 1);
    LLVMPositionBuilderAtEnd(b, after);
    return rest;
}

static LLVMValueRef remainder_f64(tl_math *m, LLVMValueRef x, LLVMValueRef y)
{
    LLVMBuilderRef b = m->builder;
    LLVMValueRef a = tl_math_unary(m, "llvm.fabs", x), d = tl_math_unary(m, "llvm.fabs", y), i, j;
    LLVMValueRef infinity = tl_math_constant(m, __builtin_inf());
    LLVMValueRef dividend = integer_mantissa(m, tl_math_bits(m, a), &i);
    LLVMValueRef divisor = integer_mantissa(m, tl_math_bits(m, d), &j);
    LLVMValueRef works = LLVMBuildAnd(b, tl_math_compare(m, LLVMRealOGE, a, d),
                                      LLVMBuildAnd(b, tl_math_less(m, a, __builtin_inf()),
                                                   tl_math_greater(m, d, 0), ""),
                                      "");
    LLVMValueRef shift = tl_math_select(m, works, LLVMBuildSub(b, i, j, ""), tl_math_int(m, 0));
    divisor = tl_math_select(m, works, divisor, tl_math_int(m, 1));
    LLVMValueRef first = LLVMBuildURem(b, dividend, divisor, "");
    LLVMValueRef rest = shifted_remainder(m, first, divisor, shift);
    LLVMValueRef power = LLVMBuildSub(b, j, tl_math_int(m, 1075), "");
    LLVMValueRef result = tl_math_scale(m, tl_math_from_int(m, rest), power);
    result = tl_math_copysign(m, tl_math_select(m, works, result, a), x);
    LLVMValueRef fine =
        LLVMBuildAnd(b, tl_math_compare(m, LLVMRealOLT, a, infinity),
                     tl_math_compare(m, LLVMRealOGT, d, tl_math_constant(m, 0)), "");
    return tl_math_select(m, fine, result, tl_math_constant(m, __builtin_nan("")));
}

LLVMValueRef tl_math_FMOD(tl_math *m, const LLVMValueRef *args)
{
    tl_math wide = tl_math_wide(m);
    LLVMValueRef x = tl_math_widen(m, args[0]), y = tl_math_widen(m, args[1]);
    return tl_math_narrow(m, remainder_f64(&wide, x, y));
}
