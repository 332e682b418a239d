/* codegen/emit/emit_cast_llvm.c: from dtype to dtype, with the rules of tl_number_cast: a float becomes an integer by
 * truncation with saturation (NaN gives 0), an integer another by wrapping, a bool is != 0, a float type rounds to
 * nearest even. Values of f16 and bf16 are kept as f32 that were rounded; in memory they are 16-bit words. */
#include <assert.h>
#include "codegen/emit/emit_private.h"

static LLVMValueRef word(LLVMValueRef like, LLVMTypeRef element, uint64_t value)
{
    int lanes = tl_emit_lanes_of(LLVMTypeOf(like));
    LLVMValueRef all[512], c = LLVMConstInt(element, value, false);
    if (lanes == 1)
        return c;
    for (int i = 0; i < lanes; i++)
        all[i] = c;
    return LLVMConstVector(all, (unsigned)lanes);
}

static LLVMTypeRef like(LLVMValueRef v, LLVMTypeRef element)
{
    return tl_emit_vector(element, tl_emit_lanes_of(LLVMTypeOf(v)));
}

static bool has_half(const tl_emitter *em)
{
    tl_isa isa = em->target->isa;
    return isa == TL_ISA_AVX2 || isa == TL_ISA_AVX512 || isa == TL_ISA_NEON || isa == TL_ISA_PTX;
}

/* The words that from_bf16 has made the value of: a value that was rounded is not rounded again. NULL: it has not. */
static LLVMValueRef was_bf16(tl_emitter *em, LLVMValueRef v)
{
    LLVMValueRef at = LLVMIsABitCastInst(v) ? LLVMGetOperand(v, 0) : NULL;
    if (at == NULL || LLVMIsAInstruction(at) == NULL || LLVMGetInstructionOpcode(at) != LLVMShl)
        return NULL;
    at = LLVMGetOperand(at, 0);
    if (!LLVMIsAZExtInst(at) || LLVMTypeOf(LLVMGetOperand(at, 0)) != like(v, em->i16))
        return NULL;
    return LLVMGetOperand(at, 0);
}

/* f32 to the upper 16 bits, nearest even; a NaN stays one. */
static LLVMValueRef to_bf16(tl_emitter *em, LLVMValueRef v)
{
    LLVMBuilderRef b = em->builder;
    LLVMValueRef short_way = em->gpu.phase == NULL ? NULL : was_bf16(em, v);
    if (short_way == NULL)
        short_way = tl_emit_gpu_to_bf16(em, v);
    if (short_way != NULL)
        return short_way;
    LLVMValueRef bits = LLVMBuildBitCast(b, v, like(v, em->i32), "");
    LLVMValueRef odd =
        LLVMBuildAnd(b, LLVMBuildLShr(b, bits, word(v, em->i32, 16), ""), word(v, em->i32, 1), "");
    LLVMValueRef rounded =
        LLVMBuildAdd(b, bits, LLVMBuildAdd(b, odd, word(v, em->i32, 0x7FFF), ""), "");
    LLVMValueRef is_nan = LLVMBuildFCmp(b, LLVMRealUNO, v, v, "");
    LLVMValueRef quiet = LLVMBuildOr(b, bits, word(v, em->i32, 0x400000), "");
    rounded = LLVMBuildSelect(b, is_nan, quiet, rounded, "");
    return LLVMBuildTrunc(b, LLVMBuildLShr(b, rounded, word(v, em->i32, 16), ""), like(v, em->i16),
                          "");
}

static LLVMValueRef from_bf16(tl_emitter *em, LLVMValueRef v)
{
    LLVMBuilderRef b = em->builder;
    LLVMValueRef wide = LLVMBuildZExt(b, v, like(v, em->i32), "");
    return LLVMBuildBitCast(b, LLVMBuildShl(b, wide, word(v, em->i32, 16), ""), like(v, em->f32),
                            "");
}

/* Without hardware: the magnitude scaled so that the FPU itself rounds at the right bit (subnormals by adding
 * 0.5, whose last place is the subnormals' step), then the exponent is moved. */
static LLVMValueRef to_f16_bits(tl_emitter *em, LLVMValueRef v)
{
    LLVMBuilderRef b = em->builder;
    LLVMTypeRef i32 = like(v, em->i32), f32 = like(v, em->f32);
    LLVMValueRef bits = LLVMBuildBitCast(b, v, i32, "");
    LLVMValueRef sign = LLVMBuildAnd(b, bits, word(v, em->i32, 0x80000000u), "");
    LLVMValueRef magnitude = LLVMBuildXor(b, bits, sign, "");
    LLVMValueRef half = LLVMBuildBitCast(b, word(v, em->i32, 0x3F000000u), f32, "");
    LLVMValueRef small = LLVMBuildFAdd(b, LLVMBuildBitCast(b, magnitude, f32, ""), half, "");
    small = LLVMBuildSub(b, LLVMBuildBitCast(b, small, i32, ""), word(v, em->i32, 0x3F000000u), "");
    LLVMValueRef odd = LLVMBuildAnd(b, LLVMBuildLShr(b, magnitude, word(v, em->i32, 13), ""),
                                    word(v, em->i32, 1), "");
    LLVMValueRef normal = LLVMBuildAdd(b, magnitude, word(v, em->i32, 0xC8000FFFu),
                                       ""); /* exponent - 112, + half - 1 */
    normal = LLVMBuildLShr(b, LLVMBuildAdd(b, normal, odd, ""), word(v, em->i32, 13), "");
    LLVMValueRef is_small =
        LLVMBuildICmp(b, LLVMIntULT, magnitude, word(v, em->i32, 0x38800000u), "");
    LLVMValueRef is_large =
        LLVMBuildICmp(b, LLVMIntUGE, magnitude, word(v, em->i32, 0x47800000u), "");
    LLVMValueRef is_nan =
        LLVMBuildICmp(b, LLVMIntUGT, magnitude, word(v, em->i32, 0x7F800000u), "");
    LLVMValueRef large =
        LLVMBuildSelect(b, is_nan, word(v, em->i32, 0x7E00), word(v, em->i32, 0x7C00), "");
    LLVMValueRef out =
        LLVMBuildSelect(b, is_small, small, LLVMBuildSelect(b, is_large, large, normal, ""), "");
    out = LLVMBuildOr(b, out, LLVMBuildLShr(b, sign, word(v, em->i32, 16), ""), "");
    return LLVMBuildTrunc(b, out, like(v, em->i16), "");
}

static LLVMValueRef from_f16_bits(tl_emitter *em, LLVMValueRef v)
{
    LLVMBuilderRef b = em->builder;
    LLVMTypeRef i32 = like(v, em->i32), f32 = like(v, em->f32);
    LLVMValueRef wide = LLVMBuildZExt(b, v, i32, "");
    LLVMValueRef sign = LLVMBuildShl(b, LLVMBuildAnd(b, wide, word(v, em->i32, 0x8000), ""),
                                     word(v, em->i32, 16), "");
    LLVMValueRef magnitude = LLVMBuildAnd(b, wide, word(v, em->i32, 0x7FFF), "");
    LLVMValueRef shifted = LLVMBuildShl(b, magnitude, word(v, em->i32, 13), "");
    LLVMValueRef normal = LLVMBuildAdd(b, shifted, word(v, em->i32, 112u << 23), "");
    LLVMValueRef infinite = LLVMBuildAdd(b, normal, word(v, em->i32, 112u << 23), "");
    LLVMValueRef one = LLVMBuildAdd(b, shifted, word(v, em->i32, 113u << 23), "");
    LLVMValueRef least = LLVMBuildBitCast(b, word(v, em->i32, 113u << 23), f32, ""); /* 2^-14 */
    LLVMValueRef subnormal = LLVMBuildFSub(b, LLVMBuildBitCast(b, one, f32, ""), least, "");
    subnormal = LLVMBuildBitCast(b, subnormal, i32, "");
    LLVMValueRef is_sub = LLVMBuildICmp(b, LLVMIntULT, magnitude, word(v, em->i32, 0x400), "");
    LLVMValueRef is_inf = LLVMBuildICmp(b, LLVMIntUGE, magnitude, word(v, em->i32, 0x7C00), "");
    LLVMValueRef out =
        LLVMBuildSelect(b, is_sub, subnormal, LLVMBuildSelect(b, is_inf, infinite, normal, ""), "");
    return LLVMBuildBitCast(b, LLVMBuildOr(b, out, sign, ""), f32, "");
}

LLVMValueRef tl_emit_to_memory(tl_emitter *em, tl_dtype dtype, LLVMValueRef v)
{
    LLVMBuilderRef b = em->builder;
    if (dtype == TL_BOOL)
        return LLVMBuildZExt(b, v, like(v, em->i8), "");
    if (dtype == TL_BF16)
        return to_bf16(em, v);
    if (dtype == TL_F16 && !has_half(em))
        return to_f16_bits(em, v);
    if (dtype == TL_F16)
        return LLVMBuildBitCast(b,
                                LLVMBuildFPTrunc(b, v, like(v, LLVMHalfTypeInContext(em->context)),
                                                 ""),
                                like(v, em->i16), "");
    return v;
}

LLVMValueRef tl_emit_from_memory(tl_emitter *em, tl_dtype dtype, LLVMValueRef v)
{
    LLVMBuilderRef b = em->builder;
    if (dtype == TL_BOOL)
        return LLVMBuildICmp(b, LLVMIntNE, v, word(v, em->i8, 0), "");
    if (dtype == TL_BF16)
        return from_bf16(em, v);
    if (dtype == TL_F16 && !has_half(em))
        return from_f16_bits(em, v);
    if (dtype == TL_F16)
        return LLVMBuildFPExt(b,
                              LLVMBuildBitCast(b, v, like(v, LLVMHalfTypeInContext(em->context)),
                                               ""),
                              like(v, em->f32), "");
    return v;
}

LLVMValueRef tl_emit_round(tl_emitter *em, tl_dtype dtype, LLVMValueRef v)
{
    if (dtype != TL_F16 && dtype != TL_BF16)
        return v;
    return tl_emit_from_memory(em, dtype, tl_emit_to_memory(em, dtype, v));
}

static LLVMValueRef zero_of(LLVMValueRef v)
{
    return LLVMConstNull(LLVMTypeOf(v));
}

/* f64 to a 16-bit float in two steps would round twice: the first step rounds to odd, so that the second sees on
 * which side of a tie the value was. */
static LLVMValueRef narrow_to_odd(tl_emitter *em, LLVMValueRef v)
{
    LLVMBuilderRef b = em->builder;
    LLVMValueRef narrow = LLVMBuildFPTrunc(b, v, like(v, em->f32), "");
    LLVMValueRef back = LLVMBuildFPExt(b, narrow, LLVMTypeOf(v), "");
    LLVMValueRef bits = LLVMBuildBitCast(b, narrow, like(v, em->i32), "");
    LLVMValueRef inexact = LLVMBuildFCmp(b, LLVMRealONE, back, v, "");
    LLVMTypeRef overload = LLVMTypeOf(v);
    LLVMValueRef a = tl_emit_intrinsic(em, "llvm.fabs", &overload, 1, &v, 1);
    LLVMValueRef c = tl_emit_intrinsic(em, "llvm.fabs", &overload, 1, &back, 1);
    LLVMValueRef grew = LLVMBuildAnd(b, inexact, LLVMBuildFCmp(b, LLVMRealOGT, c, a, ""), "");
    LLVMValueRef less = LLVMBuildSub(b, bits, LLVMBuildZExt(b, grew, LLVMTypeOf(bits), ""), "");
    LLVMValueRef odd = LLVMBuildOr(b, less, LLVMBuildZExt(b, inexact, LLVMTypeOf(bits), ""), "");
    return LLVMBuildBitCast(b, odd, like(v, em->f32), "");
}

/* A number of fewer bits than its byte has. */
static bool is_narrow(tl_dtype dtype)
{
    return tl_dtype_is_int(dtype) && tl_dtype_infos[dtype].digits < tl_dtype_infos[dtype].bits;
}

/* A byte, its low bits taken for a number of a narrow dtype. */
static LLVMValueRef wrap_narrow(tl_emitter *em, tl_dtype to, LLVMValueRef v)
{
    const tl_dtype_info *info = &tl_dtype_infos[to];
    LLVMValueRef by = word(v, em->i8, (uint64_t)(info->bits - info->digits));
    v = LLVMBuildShl(em->builder, v, by, "");
    return info->class == TL_CLASS_INT ? LLVMBuildAShr(em->builder, v, by, "")
                                       : LLVMBuildLShr(em->builder, v, by, "");
}

LLVMValueRef tl_emit_wrap(tl_emitter *em, tl_dtype dtype, LLVMValueRef v)
{
    return is_narrow(dtype) ? wrap_narrow(em, dtype, v) : v;
}

static LLVMValueRef cast_float(tl_emitter *em, tl_dtype to, tl_dtype from, LLVMValueRef v)
{
    assert(tl_dtype_is_float(from) || tl_dtype_is_float(to));
    LLVMBuilderRef b = em->builder;
    LLVMTypeRef type = like(v, tl_emit_value_type(em, to));
    if (tl_dtype_is_float(to)) {
        if (to == TL_F64)
            return LLVMBuildFPExt(b, v, type, "");
        if (from == TL_F64)
            return to == TL_F32 ? LLVMBuildFPTrunc(b, v, type, "")
                                : tl_emit_round(em, to, narrow_to_odd(em, v));
        return tl_emit_round(em, to, v);
    }
    if (is_narrow(to)) /* which wraps, as from an integer */
        return wrap_narrow(em, to, LLVMBuildTrunc(b, cast_float(em, TL_I32, from, v), type, ""));
    LLVMTypeRef overloads[2] = { type, LLVMTypeOf(v) };
    bool is_signed = tl_dtype_infos[to].class == TL_CLASS_INT;
    return tl_emit_intrinsic(em, is_signed ? "llvm.fptosi.sat" : "llvm.fptoui.sat", overloads, 2,
                             &v, 1);
}

/* A wide integer to a 16-bit float: by way of f64, whose 53 bits and a sticky bit decide every tie. */
static LLVMValueRef cast_to_narrow(tl_emitter *em, tl_dtype to, bool is_signed, LLVMValueRef v)
{
    LLVMTypeRef f64 = like(v, em->f64);
    LLVMValueRef wide = is_signed ? LLVMBuildSIToFP(em->builder, v, f64, "")
                                  : LLVMBuildUIToFP(em->builder, v, f64, "");
    return tl_emit_round(em, to, narrow_to_odd(em, wide));
}

LLVMValueRef tl_emit_cast(tl_emitter *em, tl_dtype to, tl_dtype from, LLVMValueRef v)
{
    LLVMBuilderRef b = em->builder;
    if (to == from)
        return v;
    LLVMTypeRef type = like(v, tl_emit_value_type(em, to));
    if (tl_dtype_is_float(from))
        return to == TL_BOOL ? LLVMBuildFCmp(b, LLVMRealUNE, v, zero_of(v), "")
                             : cast_float(em, to, from, v);
    if (to == TL_BOOL)
        return LLVMBuildICmp(b, LLVMIntNE, v, zero_of(v), "");
    bool is_signed = tl_dtype_infos[from].class == TL_CLASS_INT;
    if (to == TL_F16 || to == TL_BF16)
        return cast_to_narrow(em, to, is_signed, v);
    if (tl_dtype_is_float(to))
        return is_signed ? LLVMBuildSIToFP(b, v, type, "") : LLVMBuildUIToFP(b, v, type, "");
    int bits = from == TL_BOOL ? 1 : tl_dtype_infos[from].bits;
    if (tl_dtype_infos[to].bits <= bits) {
        v = tl_dtype_infos[to].bits == bits ? v : LLVMBuildTrunc(b, v, type, "");
        return is_narrow(to) ? wrap_narrow(em, to, v) : v;
    }
    return is_signed ? LLVMBuildSExt(b, v, type, "") : LLVMBuildZExt(b, v, type, "");
}
