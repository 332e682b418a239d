/* codegen/emit/emit_swizzle_llvm.c: where an element of a swizzled buffer lies (schedule/prim/prim_swizzle.c).
 *
 *     offset in bytes  ^  (offset >> 7 & mask) << 4        mask 7, 3, 1 for 128, 64, 32
 *
 * What is added by multiples of the pattern's length (1024, 512, 256 bytes) stays outside of it, so that the pattern of
 * a thread's own part is made once, in front of the loops. */
#include <assert.h>
#include "codegen/emit/emit_private.h"

static int log2_of(int64_t value)
{
    int log = 0;
    while ((int64_t)1 << log < value)
        log++;
    return log;
}

bool tl_emit_is_swizzled(const tl_emitter *em, const tl_buffer *buffer)
{
    const tl_placement *p = buffer->swizzle != 0 ? tl_plan_find(em->plan, buffer) : NULL;
    return p != NULL && p->place == TL_PLACE_BLOCK;
}

int64_t tl_emit_swizzle_period(const tl_buffer *buffer)
{
    return (int64_t)buffer->swizzle * 8 / (int64_t)tl_dtype_size(buffer->dtype);
}

/* `inner`, one offset or one a lane, in elements. */
LLVMValueRef tl_emit_swizzled(tl_emitter *em, const tl_buffer *buffer, LLVMValueRef inner)
{
    LLVMBuilderRef b = em->builder;
    int lanes = tl_emit_lanes_of(LLVMTypeOf(inner));
    int size = log2_of((int64_t)tl_dtype_size(buffer->dtype)), mask = buffer->swizzle / 16 - 1;
    assert(mask > 0 && size <= 3);
    LLVMValueRef row =
        tl_emit_splat(em, LLVMConstInt(em->i64, (unsigned long long)(mask << (7 - size)), false),
                      lanes);
    LLVMValueRef by = tl_emit_splat(em, LLVMConstInt(em->i64, 3, false), lanes);
    return LLVMBuildXor(b, inner, LLVMBuildLShr(b, LLVMBuildAnd(b, inner, row, ""), by, ""), "");
}
