/* codegen/emit/emit_first_llvm.c: the first lanes of a vector, from or to elements side by side: what is left of a row.
 *
 * Nothing behind them is touched. Where the ISA has no masks, AVX2 can still load them at once; else they fall into parts, each a
 * power of two. */
#include <assert.h>
#include "codegen/emit/emit_private.h"

int tl_emit_first_lanes(const tl_emitter *em, LLVMValueRef mask)
{
    int count = 0;
    if (mask == NULL)
        return em->lanes;
    for (int i = 0; i < em->lanes; i++) {
        LLVMValueRef lane =
            LLVMIsConstant(mask) ? LLVMGetAggregateElement(mask, (unsigned)i) : NULL;
        if (lane == NULL || LLVMIsAConstantInt(lane) == NULL)
            return 0;
        bool is_active = LLVMConstIntGetZExtValue(lane) != 0;
        if (is_active && count < i)
            return 0;
        count += is_active;
    }
    return count;
}

/* Whether a load under a mask is one instruction: AVX2 has it for elements of four and eight bytes (its stores take
 * dozens of cycles: these are written in parts). */
bool tl_emit_masks_loads(const tl_emitter *em, tl_dtype dtype)
{
    const tl_isa_info *isa = &tl_isa_infos[em->target->isa];
    return isa->has_masks || (isa->vector_bits >= 256 && tl_dtype_size(dtype) >= 4);
}

LLVMValueRef tl_emit_load_masked(tl_emitter *em, const tl_buffer_storage *storage, LLVMTypeRef type,
                                 LLVMValueRef pointer, LLVMValueRef mask)
{
    LLVMTypeRef overloads[2] = { type, LLVMTypeOf(pointer) };
    LLVMValueRef size = LLVMConstInt(em->i32, tl_dtype_size(storage->buffer->dtype), false);
    LLVMValueRef args[4] = { pointer, size, mask, LLVMConstNull(type) };
    return tl_emit_intrinsic(em, "llvm.masked.load", overloads, 2, args, 4);
}

/* How many of `count` lanes go together from lane `at` on: the largest power of two that is left. */
static int next_part(int at, int count)
{
    int lanes = 1;
    while (2 * lanes <= count - at)
        lanes *= 2;
    return lanes;
}

/* Loads elements in parts, each a power of two of them, into the first lanes of a vector; the others are zero. */
static LLVMValueRef load_parts(tl_emitter *em, const tl_buffer_storage *storage, LLVMTypeRef type,
                               LLVMValueRef pointer, int count)
{
    LLVMTypeRef element = LLVMGetElementType(type);
    LLVMValueRef whole = LLVMConstNull(type), picks[TL_MAX_NEAR_LANES];
    int width = tl_emit_lanes_of(type);
    assert(width <= TL_MAX_NEAR_LANES);
    for (int at = 0, lanes; at < count; at += lanes) {
        lanes = next_part(at, count);
        LLVMValueRef from = tl_emit_offset(em, element, pointer, at);
        LLVMValueRef part = tl_emit_plain_load(em, storage, tl_emit_vector(element, lanes), from);
        if (lanes == 1) {
            LLVMValueRef place = LLVMConstInt(em->i32, (unsigned)at, false);
            whole = LLVMBuildInsertElement(em->builder, whole, part, place, "");
            continue;
        }
        for (int i = 0; i < width; i++)
            picks[i] =
                i < lanes ? LLVMConstInt(em->i32, (unsigned)i, false) : LLVMGetPoison(em->i32);
        part = LLVMBuildShuffleVector(em->builder, part, LLVMGetPoison(LLVMTypeOf(part)),
                                      LLVMConstVector(picks, (unsigned)width), "");
        for (int i = 0; i < width; i++) {
            bool is_of_part = i >= at && i < at + lanes;
            picks[i] = LLVMConstInt(em->i32, (unsigned)(is_of_part ? width + i - at : i), false);
        }
        whole = LLVMBuildShuffleVector(em->builder, whole, part,
                                       LLVMConstVector(picks, (unsigned)width), "");
    }
    return whole;
}

LLVMValueRef tl_emit_load_first(tl_emitter *em, const tl_buffer_storage *storage, LLVMTypeRef type,
                                LLVMValueRef pointer, int count)
{
    int n = tl_emit_lanes_of(type);
    tl_dtype dtype = storage->buffer->dtype;
    if (count >= n)
        return tl_emit_plain_load(em, storage, type, pointer);
    if (count <= 0)
        return LLVMConstNull(type);
    if (!tl_emit_masks_loads(em, dtype) ||
        (!tl_isa_infos[em->target->isa].has_masks && next_part(0, count) == count))
        return load_parts(em, storage, type, pointer, count);
    LLVMValueRef active[512];
    for (int i = 0; i < n; i++)
        active[i] = LLVMConstInt(em->i1, i < count, false);
    return tl_emit_load_masked(em, storage, type, pointer, LLVMConstVector(active, (unsigned)n));
}

void tl_emit_store_first(tl_emitter *em, const tl_address *a, LLVMTypeRef element,
                         LLVMValueRef whole, int count)
{
    int width = tl_emit_lanes_of(LLVMTypeOf(whole));
    assert(count < width && width <= TL_MAX_NEAR_LANES);
    LLVMValueRef picks[TL_MAX_NEAR_LANES];
    if (tl_isa_infos[em->target->isa].has_masks) {
        for (int i = 0; i < width; i++)
            picks[i] = LLVMConstInt(em->i1, i < count, false);
        LLVMTypeRef overloads[2] = { LLVMTypeOf(whole), LLVMTypeOf(a->pointer) };
        LLVMValueRef args[4] = { whole, a->pointer,
                                 LLVMConstInt(em->i32, tl_dtype_size(a->storage->buffer->dtype),
                                              false),
                                 LLVMConstVector(picks, (unsigned)width) };
        tl_emit_intrinsic(em, "llvm.masked.store", overloads, 2, args, 4);
        return;
    }
    for (int at = 0, lanes; at < count; at += lanes) {
        lanes = next_part(at, count);
        for (int i = 0; i < lanes; i++)
            picks[i] = LLVMConstInt(em->i32, (unsigned)(at + i), false);
        LLVMValueRef part =
            lanes == 1
                ? LLVMBuildExtractElement(em->builder, whole, picks[0], "")
                : LLVMBuildShuffleVector(em->builder, whole, LLVMGetPoison(LLVMTypeOf(whole)),
                                         LLVMConstVector(picks, (unsigned)lanes), "");
        tl_emit_plain_store(em, a->storage, part, tl_emit_offset(em, element, a->pointer, at));
    }
}
