/* codegen/emit/emit_reduce_llvm.c: the lanes of a vector joined into one value, halving it each time. */
#include "codegen/emit/emit_private.h"

static LLVMValueRef half(tl_emitter *em, LLVMValueRef v, int begin, int count)
{
    LLVMValueRef picks[512];
    for (int i = 0; i < count; i++)
        picks[i] = LLVMConstInt(em->i32, (unsigned)(begin + i), false);
    return LLVMBuildShuffleVector(em->builder, v, LLVMGetPoison(LLVMTypeOf(v)),
                                  LLVMConstVector(picks, (unsigned)count), "");
}

LLVMValueRef tl_emit_reduce(tl_emitter *em, tl_expr_kind kind, tl_dtype dtype, LLVMValueRef v)
{
    int lanes = tl_emit_lanes_of(LLVMTypeOf(v));
    for (; lanes > 2; lanes /= 2) /* chunks have a power of two of lanes */
        v = tl_emit_binary(em, NULL, kind, dtype, half(em, v, 0, lanes / 2),
                           half(em, v, lanes / 2, lanes / 2));
    LLVMValueRef a = LLVMBuildExtractElement(em->builder, v, LLVMConstInt(em->i32, 0, false), "");
    LLVMValueRef b = LLVMBuildExtractElement(em->builder, v, LLVMConstInt(em->i32, 1, false), "");
    return lanes == 1 ? a : tl_emit_binary(em, NULL, kind, dtype, a, b);
}

LLVMValueRef tl_emit_any(tl_emitter *em, LLVMValueRef mask)
{
    if (tl_emit_lanes_of(LLVMTypeOf(mask)) == 1)
        return mask;
    LLVMTypeRef type = LLVMTypeOf(mask);
    return tl_emit_intrinsic(em, "llvm.vector.reduce.or", &type, 1, &mask, 1);
}
