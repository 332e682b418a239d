/* codegen/math/math_llvm.c: what the functions of math_*.c are written with, and which function is which. */
#include "codegen/math/math_llvm.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

static LLVMTypeRef wide(const tl_math *m, LLVMTypeRef element)
{
    return m->lanes == 1 ? element : LLVMVectorType(element, (unsigned)m->lanes);
}

static LLVMTypeRef element(const tl_math *m)
{
    return m->dtype == TL_F64 ? LLVMDoubleTypeInContext(m->context)
                              : LLVMFloatTypeInContext(m->context);
}

static LLVMTypeRef int_element(const tl_math *m)
{
    return m->dtype == TL_F64 ? LLVMInt64TypeInContext(m->context)
                              : LLVMInt32TypeInContext(m->context);
}

static LLVMValueRef splat(const tl_math *m, LLVMValueRef c)
{
    LLVMValueRef all[512];
    if (m->lanes == 1)
        return c;
    for (int i = 0; i < m->lanes; i++)
        all[i] = c;
    return LLVMConstVector(all, (unsigned)m->lanes);
}

LLVMTypeRef tl_math_type(const tl_math *m)
{
    return wide(m, element(m));
}

LLVMTypeRef tl_math_int_type(const tl_math *m)
{
    return wide(m, int_element(m));
}

LLVMValueRef tl_math_constant(const tl_math *m, double value)
{
    return splat(m, LLVMConstReal(element(m), value));
}

LLVMValueRef tl_math_int(const tl_math *m, int64_t value)
{
    return splat(m, LLVMConstInt(int_element(m), (unsigned long long)value, true));
}

LLVMValueRef tl_math_add(tl_math *m, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildFAdd(m->builder, a, b, "");
}

LLVMValueRef tl_math_sub(tl_math *m, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildFSub(m->builder, a, b, "");
}

LLVMValueRef tl_math_mul(tl_math *m, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildFMul(m->builder, a, b, "");
}

LLVMValueRef tl_math_div(tl_math *m, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildFDiv(m->builder, a, b, "");
}

static LLVMValueRef call(tl_math *m, const char *intrinsic, LLVMValueRef *args, unsigned count)
{
    LLVMTypeRef type = tl_math_type(m);
    unsigned id = LLVMLookupIntrinsicID(intrinsic, strlen(intrinsic));
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(m->module, id, &type, 1);
    return LLVMBuildCall2(m->builder, LLVMIntrinsicGetType(m->context, id, &type, 1), f, args,
                          count, "");
}

bool tl_math_has_fma(const tl_math *m)
{
    return tl_isa_infos[m->target->isa].has_fma;
}

LLVMValueRef tl_math_fma(tl_math *m, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    if (tl_math_has_fma(m)) {
        LLVMValueRef args[3] = { a, b, c };
        return call(m, "llvm.fma", args, 3);
    }
    return tl_math_add(m, tl_math_mul(m, a, b), c);
}

LLVMValueRef tl_math_negate(tl_math *m, LLVMValueRef a)
{
    return LLVMBuildFNeg(m->builder, a, "");
}

LLVMValueRef tl_math_select(tl_math *m, LLVMValueRef condition, LLVMValueRef yes, LLVMValueRef no)
{
    return LLVMBuildSelect(m->builder, condition, yes, no, "");
}

LLVMValueRef tl_math_compare(tl_math *m, LLVMRealPredicate p, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildFCmp(m->builder, p, a, b, "");
}

LLVMValueRef tl_math_less(tl_math *m, LLVMValueRef a, double b)
{
    return tl_math_compare(m, LLVMRealOLT, a, tl_math_constant(m, b));
}

LLVMValueRef tl_math_greater(tl_math *m, LLVMValueRef a, double b)
{
    return tl_math_compare(m, LLVMRealOGT, a, tl_math_constant(m, b));
}

static LLVMValueRef is_nan(tl_math *m, LLVMValueRef a)
{
    return tl_math_compare(m, LLVMRealUNO, a, a);
}

/* The constant first: on x86 one instruction each, which returns the second operand when it is a NaN. */
LLVMValueRef tl_math_clamp(tl_math *m, LLVMValueRef a, double low, double high)
{
    LLVMValueRef l = tl_math_constant(m, low), h = tl_math_constant(m, high);
    a = tl_math_select(m, tl_math_compare(m, LLVMRealOLT, h, a), h, a);
    return tl_math_select(m, tl_math_compare(m, LLVMRealOGT, l, a), l, a);
}

LLVMValueRef tl_math_bits(tl_math *m, LLVMValueRef a)
{
    return LLVMBuildBitCast(m->builder, a, tl_math_int_type(m), "");
}

LLVMValueRef tl_math_from_bits(tl_math *m, LLVMValueRef a)
{
    return LLVMBuildBitCast(m->builder, a, tl_math_type(m), "");
}

LLVMValueRef tl_math_from_int(tl_math *m, LLVMValueRef a)
{
    return LLVMBuildSIToFP(m->builder, a, tl_math_type(m), "");
}

LLVMValueRef tl_math_unary(tl_math *m, const char *intrinsic, LLVMValueRef a)
{
    return call(m, intrinsic, &a, 1);
}

LLVMValueRef tl_math_copysign(tl_math *m, LLVMValueRef magnitude, LLVMValueRef sign)
{
    LLVMValueRef args[2] = { magnitude, sign };
    return call(m, "llvm.copysign", args, 2);
}

/* In two halves, so that each factor is a normal number. */
LLVMValueRef tl_math_scale(tl_math *m, LLVMValueRef a, LLVMValueRef n)
{
    LLVMBuilderRef b = m->builder;
    LLVMValueRef bias = tl_math_int(m, m->dtype == TL_F64 ? 1023 : 127);
    LLVMValueRef shift = tl_math_int(m, m->dtype == TL_F64 ? 52 : 23);
    LLVMValueRef half = LLVMBuildAShr(b, n, tl_math_int(m, 1), "");
    LLVMValueRef rest = LLVMBuildSub(b, n, half, "");
    LLVMValueRef first =
        tl_math_from_bits(m, LLVMBuildShl(b, LLVMBuildAdd(b, half, bias, ""), shift, ""));
    LLVMValueRef second =
        tl_math_from_bits(m, LLVMBuildShl(b, LLVMBuildAdd(b, rest, bias, ""), shift, ""));
    return tl_math_mul(m, tl_math_mul(m, a, first), second);
}

bool tl_math_has_scale(const tl_math *m)
{
    return !m->strict && m->target->isa == TL_ISA_AVX512 && m->dtype == TL_F32 &&
           (m->lanes == 4 || m->lanes == 8 || m->lanes == 16);
}

/* An instruction of AVX-512 on all lanes: operands, what lanes that are off get, which are on, and how to round (there in
 * 512 bits only, and where the instruction rounds). */
static LLVMValueRef call_avx512(tl_math *m, const char *name, LLVMValueRef *operands, int count,
                                bool rounds)
{
    char intrinsic[64];
    snprintf(intrinsic, sizeof intrinsic, "llvm.x86.avx512.%s.ps.%d", name, 32 * m->lanes);
    unsigned id = LLVMLookupIntrinsicID(intrinsic, strlen(intrinsic));
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(m->module, id, NULL, 0), args[5];
    unsigned at = 0;
    for (int i = 0; i < count; i++)
        args[at++] = operands[i];
    args[at++] = LLVMConstNull(tl_math_type(m));
    args[at++] = LLVMConstAllOnes(LLVMIntTypeInContext(m->context, m->lanes == 16 ? 16 : 8));
    if (rounds && m->lanes == 16)
        args[at++] =
            LLVMConstInt(LLVMInt32TypeInContext(m->context), 4, false); /* as the mode says */
    return LLVMBuildCall2(m->builder, LLVMIntrinsicGetType(m->context, id, NULL, 0), f, args, at,
                          "");
}

LLVMValueRef tl_math_scale_by(tl_math *m, LLVMValueRef a, LLVMValueRef n)
{
    return call_avx512(m, "mask.scalef", (LLVMValueRef[]){ a, n }, 2, true);
}

/* 14 bits from a table, twice as many by a step of Newton's. */
LLVMValueRef tl_math_reciprocal(tl_math *m, LLVMValueRef a)
{
    LLVMValueRef y = call_avx512(m, "rcp14", &a, 1, false);
    LLVMValueRef rest = tl_math_fma(m, tl_math_negate(m, a), y, tl_math_constant(m, 1));
    return tl_math_fma(m, rest, y, y);
}

LLVMValueRef tl_math_any(tl_math *m, LLVMValueRef condition)
{
    if (m->lanes == 1)
        return condition;
    LLVMTypeRef bits = LLVMIntTypeInContext(m->context, (unsigned)m->lanes);
    LLVMValueRef all = LLVMBuildBitCast(m->builder, condition, bits, "");
    return LLVMBuildICmp(m->builder, LLVMIntNE, all, LLVMConstInt(bits, 0, false), "");
}

tl_math tl_math_wide(const tl_math *m)
{
    tl_math wide_math = *m;
    wide_math.dtype = TL_F64;
    return wide_math;
}

LLVMValueRef tl_math_widen(const tl_math *m, LLVMValueRef a)
{
    tl_math to = tl_math_wide(m);
    return m->dtype == TL_F64 ? a : LLVMBuildFPExt(m->builder, a, tl_math_type(&to), "");
}

LLVMValueRef tl_math_narrow(const tl_math *m, LLVMValueRef a)
{
    return m->dtype == TL_F64 ? a : LLVMBuildFPTrunc(m->builder, a, tl_math_type(m), "");
}

LLVMValueRef tl_math_polynomial(tl_math *m, LLVMValueRef x, const double *c, int count)
{
    LLVMValueRef sum = tl_math_constant(m, c[count - 1]);
    for (int i = count - 2; i >= 0; i--)
        sum = tl_math_fma(m, sum, x, tl_math_constant(m, c[i]));
    return sum;
}

LLVMValueRef tl_math_short_polynomial(tl_math *m, LLVMValueRef x, const double *c, int count)
{
    LLVMValueRef terms[TL_MATH_MOST_TERMS];
    assert(count > 0 && count <= TL_MATH_MOST_TERMS);
    for (int i = 0; i < count; i++)
        terms[i] = tl_math_constant(m, c[i]);
    for (; count > 1; count = (count + 1) / 2, x = count > 1 ? tl_math_mul(m, x, x) : x)
        for (int i = 0; i < (count + 1) / 2; i++)
            terms[i] = 2 * i + 1 < count ? tl_math_fma(m, terms[2 * i + 1], x, terms[2 * i])
                                         : terms[2 * i];
    return terms[0];
}

typedef LLVMValueRef math_function(tl_math *m, const LLVMValueRef *args);
static math_function *const ours[TL_FUNCTION_COUNT] = {
#define MATH(file, function, f32_ulp, f64_ulp) [TL_FUNCTION_##function] = tl_math_##function,
#include "codegen/math/math_functions.def"
#undef MATH
};

static const char *const operations[TL_FUNCTION_COUNT] = {
    [TL_FUNCTION_SQRT] = "llvm.sqrt",   [TL_FUNCTION_FLOOR] = "llvm.floor",
    [TL_FUNCTION_CEIL] = "llvm.ceil",   [TL_FUNCTION_ROUND] = "llvm.roundeven",
    [TL_FUNCTION_TRUNC] = "llvm.trunc", [TL_FUNCTION_ABS] = "llvm.fabs",
};

/* Rounding without an instruction for it would become a call of libm. Numbers of 2^23 (2^52) and more are integers;
 * below, adding and subtracting that rounds to even, and a correction gives the other directions. */
static LLVMValueRef round_by_adding(tl_math *m, tl_function f, LLVMValueRef a)
{
    double big = m->dtype == TL_F64 ? 4503599627370496.0 : 8388608.0;
    LLVMValueRef magnitude = tl_math_unary(m, "llvm.fabs", a), large = tl_math_constant(m, big);
    LLVMValueRef even = tl_math_sub(m, tl_math_add(m, magnitude, large), large);
    LLVMValueRef one = tl_math_constant(m, 1), zero = tl_math_constant(m, 0);
    LLVMValueRef over = tl_math_compare(m, LLVMRealOGT, even, magnitude);
    LLVMValueRef down =
        tl_math_sub(m, even, tl_math_select(m, over, one, zero)); /* of the magnitude */
    LLVMValueRef result = f == TL_FUNCTION_ROUND ? even : down;
    if (f == TL_FUNCTION_FLOOR || f == TL_FUNCTION_CEIL) {
        LLVMValueRef inexact = tl_math_compare(m, LLVMRealOLT, down, magnitude);
        LLVMRealPredicate away = f == TL_FUNCTION_FLOOR ? LLVMRealOLT : LLVMRealOGT;
        LLVMValueRef up = LLVMBuildAnd(m->builder, inexact, tl_math_compare(m, away, a, zero), "");
        result = tl_math_add(m, down, tl_math_select(m, up, one, zero));
    }
    LLVMValueRef is_small = tl_math_compare(m, LLVMRealOLT, magnitude, large);
    return tl_math_select(m, is_small, tl_math_copysign(m, result, a), a);
}

LLVMValueRef tl_emit_function(tl_math *m, tl_function f, const LLVMValueRef *args)
{
    LLVMValueRef a = args[0];
    if (ours[f] != NULL)
        return ours[f](m, args);
    bool rounds = f == TL_FUNCTION_FLOOR || f == TL_FUNCTION_CEIL || f == TL_FUNCTION_ROUND ||
                  f == TL_FUNCTION_TRUNC;
    if (rounds && m->target->isa == TL_ISA_SSE2)
        return round_by_adding(m, f, a);
    if (operations[f] != NULL)
        return tl_math_unary(m, operations[f], a);
    if (f == TL_FUNCTION_ISNAN)
        return is_nan(m, a);
    if (f == TL_FUNCTION_ISINF)
        return tl_math_compare(m, LLVMRealOEQ, tl_math_unary(m, "llvm.fabs", a),
                               tl_math_constant(m, __builtin_inf()));
    return NULL;
}
