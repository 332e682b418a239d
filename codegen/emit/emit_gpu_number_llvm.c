/* codegen/emit/emit_gpu_number_llvm.c: what a GPU from sm_80 on computes of f32 numbers by an instruction of its own, where a CPU
 * takes several: the larger one that keeps a NaN, two numbers rounded to bf16, and 2^x. */
#include "codegen/emit/emit_private.h"

enum { FIRST_SM = 80 };

static bool has_instructions(const tl_emitter *em, LLVMValueRef v)
{
    LLVMTypeRef type = LLVMTypeOf(v);
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind)
        type = LLVMGetElementType(type);
    return em->gpu.phase != NULL && em->target->gpu.sm >= FIRST_SM && type == em->f32;
}

static LLVMValueRef lane_of(tl_emitter *em, LLVMValueRef v, int lane)
{
    return tl_emit_lanes_of(LLVMTypeOf(v)) == 1
               ? v
               : LLVMBuildExtractElement(em->builder, v,
                                         LLVMConstInt(em->i32, (unsigned)lane, false), "");
}

/* The instruction for every lane; `b` may be NULL. */
static LLVMValueRef each_lane(tl_emitter *em, const char *name, LLVMValueRef a, LLVMValueRef b)
{
    LLVMTypeRef type = LLVMTypeOf(a);
    int lanes = tl_emit_lanes_of(type);
    LLVMValueRef all = LLVMGetPoison(type);
    for (int i = 0; i < lanes; i++) {
        LLVMValueRef args[2] = { lane_of(em, a, i), b != NULL ? lane_of(em, b, i) : NULL };
        LLVMValueRef v = tl_emit_intrinsic(em, name, NULL, 0, args, b != NULL ? 2 : 1);
        if (lanes == 1)
            return v;
        all = LLVMBuildInsertElement(em->builder, all, v, LLVMConstInt(em->i32, (unsigned)i, false),
                                     "");
    }
    return all;
}

LLVMValueRef tl_emit_gpu_extreme(tl_emitter *em, bool is_max, LLVMValueRef a, LLVMValueRef b)
{
    if (!has_instructions(em, a))
        return NULL;
    return each_lane(em, is_max ? "llvm.nvvm.fmax.ftz.nan.f" : "llvm.nvvm.fmin.ftz.nan.f", a, b);
}

LLVMValueRef tl_emit_gpu_to_bf16(tl_emitter *em, LLVMValueRef v)
{
    LLVMBuilderRef b = em->builder;
    int lanes = tl_emit_lanes_of(LLVMTypeOf(v));
    if (!has_instructions(em, v))
        return NULL;
    if (lanes % 2 != 0 && lanes > 1)
        return NULL;
    if (lanes == 1)
        return LLVMBuildBitCast(b, tl_emit_intrinsic(em, "llvm.nvvm.f2bf16.rn", NULL, 0, &v, 1),
                                em->i16, "");
    LLVMTypeRef pair = LLVMVectorType(em->i16, 2),
                words = LLVMVectorType(em->i32, (unsigned)lanes / 2);
    LLVMValueRef all = LLVMGetPoison(words);
    for (int i = 0; i < lanes; i += 2) {
        LLVMValueRef args[2] = { lane_of(em, v, i + 1),
                                 lane_of(em, v, i) }; /* the upper half first */
        LLVMValueRef two = tl_emit_intrinsic(em, "llvm.nvvm.ff2bf16x2.rn", NULL, 0, args, 2);
        if (lanes == 2)
            return LLVMBuildBitCast(b, two, pair, "");
        all = LLVMBuildInsertElement(b, all, LLVMBuildBitCast(b, two, em->i32, ""),
                                     LLVMConstInt(em->i32, (unsigned)i / 2, false), "");
    }
    return LLVMBuildBitCast(b, all, LLVMVectorType(em->i16, (unsigned)lanes), "");
}

/* The product with log2(e) is off by 2^-24 of itself, which is less than 152 where the result is no zero in f16 or bf16: 2^-17 of
 * the result, an instruction that is off by 2^-22, and then half a unit of 2^-11 or more. */
LLVMValueRef tl_emit_gpu_short_exp(tl_emitter *em, LLVMValueRef x)
{
    if (em->kernel->program->strict || !has_instructions(em, x))
        return NULL;
    int lanes = tl_emit_lanes_of(LLVMTypeOf(x));
    LLVMValueRef log2e = tl_emit_splat(em, LLVMConstReal(em->f32, 0x1.71547652b82fep0), lanes);
    x = LLVMBuildFMul(em->builder, x, log2e, "");
    return each_lane(em, "llvm.nvvm.ex2.approx.ftz.f", x, NULL);
}
