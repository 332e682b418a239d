/* codegen/emit/emit_moving_llvm.c: pointers that move with a loop.
 *
 *     p = base + begin*stride
 *     loop:                         instead of      loop:
 *       ...                                           p = base + i*stride
 *       p += stride                                   ...
 *
 * where a multiplication would be needed. x86 multiplies on one port, which on Intel's is one of the two that multiply and add
 * 256 bits: it waits there behind what iterations before have left to add up, and all that the next one loads waits for it.
 * (Measured on an Emerald Rapids, code for x86-64-v3: a 1x1 convolution whose loop over 8 channels ends with one such product
 * ran at 82 % of the peak with it, at 96 without.) */
#include <assert.h>
#include "codegen/emit/emit_private.h"
#include "runtime/base/array.h"

/* Whether a shift and an lea multiply by it. */
static bool is_cheap(int64_t coefficient)
{
    uint64_t odd = coefficient < 0 ? 0 - (uint64_t)coefficient : (uint64_t)coefficient;

    while (odd != 0 && odd % 2 == 0)
        odd /= 2;
    return odd <= 5 || odd == 9;
}

/* base + coefficient*begin elements, before the loop. */
static LLVMValueRef build_start(tl_emitter *em, const tl_emit_level *loop, LLVMTypeRef element,
                                LLVMValueRef base, int64_t coefficient)
{
    if (LLVMIsAConstantInt(loop->begin) && LLVMConstIntGetSExtValue(loop->begin) == 0)
        return base;
    LLVMPositionBuilderBefore(em->builder, LLVMGetBasicBlockTerminator(loop->before));
    return tl_emit_scaled(em, element, base, loop->begin, coefficient);
}

LLVMValueRef tl_emit_moving(tl_emitter *em, LLVMTypeRef element, LLVMValueRef base,
                            LLVMValueRef index, int64_t coefficient, int level)
{
    tl_emit_level *loop = &em->levels[level];
    int count = 0;

    assert(level < em->level_count);
    if (em->gpu.phase != NULL || index != loop->variable || is_cheap(coefficient))
        return NULL;
    for (int i = 0; i < em->moving_count; i++) {
        const tl_moving *m = &em->moving[i];
        if (m->level != level)
            continue;
        if (m->base == base && m->coefficient == coefficient && m->element == element)
            return m->pointer;
        count++;
    }
    if (count == TL_MAX_MOVING)
        return NULL;
    LLVMBasicBlockRef back = LLVMGetInsertBlock(em->builder);
    LLVMValueRef start = build_start(em, loop, element, base, coefficient);
    LLVMPositionBuilderBefore(em->builder, LLVMGetFirstInstruction(loop->block));
    LLVMValueRef pointer = LLVMBuildPhi(em->builder, LLVMTypeOf(base), "");
    LLVMAddIncoming(pointer, &start, &loop->before, 1);
    LLVMPositionBuilderAtEnd(em->builder, back);
    TL_ROOM(em->arena, em->moving, em->moving_count, em->moving_capacity);
    em->moving[em->moving_count++] = (tl_moving){ pointer, base, coefficient, element, level };
    return pointer;
}

void tl_emit_move_on(tl_emitter *em, int level)
{
    LLVMBasicBlockRef last = LLVMGetInsertBlock(em->builder);
    int kept = 0;

    for (int i = 0; i < em->moving_count; i++) {
        const tl_moving *m = &em->moving[i];
        if (m->level != level) {
            em->moving[kept++] = *m;
            continue;
        }
        LLVMValueRef next = tl_emit_offset(em, m->element, m->pointer, m->coefficient);
        LLVMAddIncoming(m->pointer, &next, &last, 1);
    }
    em->moving_count = kept;
}
