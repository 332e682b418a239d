/* codegen/emit/emit_apart_llvm.c: lanes whose elements do not lie side by side.
 *
 * Every second element is two vectors and a shuffle; known places within few vectors are these and a shuffle of each; others a
 * gather or a scatter where the ISA has one that pays, else one element after the other from its place. */
#include <assert.h>
#include "codegen/emit/emit_private.h"
#include "runtime/base/checked.h"

enum {
    MOST_PIECES = 4,   /* vectors that lanes are shuffled out of, instead of a gather */
    MOST_APART = 4,    /* elements between lanes, for that */
    LEAST_PIECED = 16, /* lanes: fewer are gathered as fast as several vectors are shuffled */
};

static LLVMValueRef lane_constants(tl_emitter *em, int64_t stride)
{
    LLVMValueRef all[512];
    for (int i = 0; i < em->lanes; i++)
        all[i] = LLVMConstInt(em->i64, (unsigned long long)(stride * i), true);
    return LLVMConstVector(all, (unsigned)em->lanes);
}

static LLVMValueRef lane_pointers(tl_emitter *em, const tl_address *a, LLVMTypeRef element)
{
    LLVMValueRef offsets =
        a->kind == TL_STRIDE_GENERAL ? a->offsets : lane_constants(em, a->stride);
    return LLVMBuildGEP2(em->builder, element, a->pointer, &offsets, 1, "");
}

static LLVMValueRef all_lanes(tl_emitter *em)
{
    return tl_emit_splat(em, LLVMConstInt(em->i1, 1, false), em->lanes);
}

static LLVMValueRef gather(tl_emitter *em, const tl_address *a, LLVMTypeRef element,
                           LLVMValueRef mask)
{
    LLVMTypeRef type = tl_emit_vector(element, em->lanes);
    LLVMValueRef pointers = lane_pointers(em, a, element);
    LLVMTypeRef overloads[2] = { type, LLVMTypeOf(pointers) };
    LLVMValueRef args[4] = { pointers,
                             LLVMConstInt(em->i32, tl_dtype_size(a->storage->buffer->dtype), false),
                             mask == NULL ? all_lanes(em) : mask, LLVMConstNull(type) };
    return tl_emit_intrinsic(em, "llvm.masked.gather", overloads, 2, args, 4);
}

/* Every second element out of two vectors, n elements each: the second begins with the last element of the first, so that nothing
 * behind the last lane is read; or right behind it, in whole pairs, which those who want the others of each pair load as well. */
static int second_vector(const tl_emitter *em, const tl_address *a)
{
    return a->in_pairs ? em->lanes : em->lanes - 1;
}

static LLVMValueRef pick_elements(tl_emitter *em, const tl_address *a, LLVMValueRef low,
                                  LLVMValueRef high)
{
    LLVMValueRef picks[512];
    int n = em->lanes, second = second_vector(em, a);
    for (int i = 0; i < n; i++) {
        int at = 2 * i + a->is_odd;
        picks[i] = LLVMConstInt(em->i32, (unsigned)(at < n ? at : n + at - second), false);
    }
    return LLVMBuildShuffleVector(em->builder, low, high, LLVMConstVector(picks, (unsigned)n), "");
}

/* In the first `count` lanes. */
static LLVMValueRef load_pairs(tl_emitter *em, const tl_address *a, LLVMTypeRef element, int count)
{
    int second = second_vector(em, a), span = a->in_pairs ? 2 * count : 2 * count - 1;
    LLVMTypeRef type = tl_emit_vector(element, em->lanes);
    LLVMValueRef behind = tl_emit_offset(em, element, a->pointer, second);
    LLVMValueRef low = tl_emit_load_first(em, a->storage, type, a->pointer, span);
    return pick_elements(em, a, low,
                         tl_emit_load_first(em, a->storage, type, behind, span - second));
}

/* Where the mask lets it through: each vector under a mask of its own. */
static LLVMValueRef load_masked_pairs(tl_emitter *em, const tl_address *a, LLVMTypeRef element,
                                      LLVMValueRef mask)
{
    int n = em->lanes, second = second_vector(em, a);
    LLVMTypeRef type = tl_emit_vector(element, n);
    LLVMValueRef none = LLVMConstNull(LLVMTypeOf(mask)), halves[2];
    for (int half = 0; half < 2; half++) {
        LLVMValueRef lanes[512];
        for (int i = 0; i < n; i++)
            lanes[i] = LLVMConstInt(em->i32, (unsigned)n, false); /* of none */
        for (int i = 0; i < n; i++) {
            int at = 2 * i + a->is_odd;
            if ((at >= n) == (half == 1))
                lanes[at - half * second] = LLVMConstInt(em->i32, (unsigned)i, false);
        }
        LLVMValueRef spread = LLVMBuildShuffleVector(em->builder, mask, none,
                                                     LLVMConstVector(lanes, (unsigned)n), "");
        LLVMValueRef from = tl_emit_offset(em, element, a->pointer, half * second);
        halves[half] = tl_emit_load_masked(em, a->storage, type, from, spread);
    }
    return pick_elements(em, a, halves[0], halves[1]);
}

/* Where the elements of the first lanes are, behind the pointer, when all are constants. */
static bool constant_offsets(const tl_emitter *em, const tl_address *a, int count, int64_t *offsets)
{
    if (em->lanes > TL_MAX_NEAR_LANES ||
        (a->kind == TL_STRIDE_GENERAL && !LLVMIsConstant(a->offsets)))
        return false;
    for (int i = 0; i < count; i++) {
        if (a->kind != TL_STRIDE_GENERAL) {
            offsets[i] = a->stride * i;
            continue;
        }
        LLVMValueRef offset = LLVMGetAggregateElement(a->offsets, (unsigned)i);
        if (offset == NULL || LLVMIsAConstantInt(offset) == NULL)
            return false;
        offsets[i] = LLVMConstIntGetSExtValue(offset);
    }
    return count > 0;
}

/* Elements of few vectors (channels that are shuffled out of blocks): where each begins and how many elements it has, and of
 * each lane which of them it is in and where. */
typedef struct {
    int count;
    int64_t first[MOST_PIECES];
    int spans[MOST_PIECES];
    int piece[TL_MAX_NEAR_LANES], place[TL_MAX_NEAR_LANES];
} pieces;

static bool find_pieces(const tl_emitter *em, const int64_t *offsets, int count, int most,
                        pieces *p)
{
    int left = count;
    *p = (pieces){ 0 };
    for (int i = 0; i < em->lanes; i++)
        p->piece[i] = -1;
    while (left > 0) {
        int64_t first = INT64_MAX;
        if (p->count == most)
            return false;
        for (int i = 0; i < count; i++)
            if (p->piece[i] < 0)
                first = tl_min64(first, offsets[i]);
        p->first[p->count] = first;
        for (int i = 0; i < count; i++)
            if (p->piece[i] < 0 && offsets[i] - first < em->lanes) {
                p->piece[i] = p->count;
                p->place[i] = (int)(offsets[i] - first);
                p->spans[p->count] = (int)tl_max64(p->spans[p->count], p->place[i] + 1);
                left--;
            }
        p->count++;
    }
    return true;
}

/* Elements in known places, one by one: no address is computed, as a gather that is written out would. */
static LLVMValueRef load_known(tl_emitter *em, const tl_address *a, LLVMTypeRef element,
                               const int64_t *offsets, int count)
{
    LLVMValueRef v = LLVMConstNull(tl_emit_vector(element, em->lanes));
    for (int i = 0; i < count; i++) {
        LLVMValueRef p = tl_emit_offset(em, element, a->pointer, offsets[i]);
        v = LLVMBuildInsertElement(em->builder, v, tl_emit_plain_load(em, a->storage, element, p),
                                   LLVMConstInt(em->i32, (unsigned)i, false), "");
    }
    return v;
}

/* The same of a store. */
static void store_known(tl_emitter *em, const tl_address *a, LLVMTypeRef element, LLVMValueRef v,
                        const int64_t *offsets, int count)
{
    for (int i = 0; i < count; i++) {
        LLVMValueRef lane = LLVMConstInt(em->i32, (unsigned)i, false);
        tl_emit_plain_store(em, a->storage, LLVMBuildExtractElement(em->builder, v, lane, ""),
                            tl_emit_offset(em, element, a->pointer, offsets[i]));
    }
}

/* Loads of the vectors, no further than what is asked of them, and shuffles that take from two of them, then from what is there
 * and the next. */
static LLVMValueRef load_pieces(tl_emitter *em, const tl_address *a, LLVMTypeRef element,
                                const pieces *p)
{
    int n = em->lanes;
    LLVMTypeRef type = tl_emit_vector(element, n);
    LLVMValueRef whole = NULL, picks[TL_MAX_NEAR_LANES];
    for (int k = 0; k < p->count; k++) {
        LLVMValueRef pointer = tl_emit_offset(em, element, a->pointer, p->first[k]);
        LLVMValueRef next = tl_emit_load_first(em, a->storage, type, pointer, p->spans[k]);
        if (k == 0 && p->count > 1) {
            whole = next; /* its elements find their places with those of the next */
            continue;
        }
        for (int i = 0; i < n; i++) {
            int before = k <= 1 && p->piece[i] == 0 ? p->place[i] : i;
            int at = k > 0 && p->piece[i] == k ? n + p->place[i] : before;
            picks[i] = LLVMConstInt(em->i32, (unsigned)at, false);
        }
        whole = LLVMBuildShuffleVector(em->builder, k == 0 ? next : whole, next,
                                       LLVMConstVector(picks, (unsigned)n), "");
    }
    return whole;
}

LLVMValueRef tl_emit_load_apart(tl_emitter *em, const tl_address *a, LLVMTypeRef element,
                                LLVMValueRef mask, int count)
{
    bool has_masks = tl_isa_infos[em->target->isa].has_masks;
    bool every_second = a->kind == TL_STRIDE_CONSTANT && a->stride == 2 && em->lanes >= 4;
    if (every_second && count > 1)
        return load_pairs(em, a, element, count);
    if (every_second && mask != NULL && em->gpu.phase == NULL &&
        tl_emit_masks_loads(em, a->storage->buffer->dtype))
        return load_masked_pairs(em, a, element, mask);
    tl_address own = *a; /* the lanes' elements, not the first ones of their pairs */
    if (a->is_odd)
        own.pointer = tl_emit_offset(em, element, a->pointer, 1);
    a = &own;
    int64_t offsets[TL_MAX_NEAR_LANES];
    pieces p;
    const bool is_near = a->kind == TL_STRIDE_CONSTANT && a->stride > 0 && a->stride <= MOST_APART;
    if (em->gpu.phase == NULL &&
        (has_masks ? mask == NULL && (a->kind == TL_STRIDE_GENERAL || is_near) : count > 0) &&
        constant_offsets(em, a, count, offsets)) {
        int most = has_masks ? (em->lanes >= LEAST_PIECED ? MOST_PIECES : 1)
                             : (int)tl_min64(count / 2, MOST_PIECES);
        if (find_pieces(em, offsets, count, most, &p))
            return load_pieces(em, a, element, &p);
        if (!has_masks)
            return load_known(em, a, element, offsets, count);
    }
    return gather(em, a, element, mask);
}

void tl_emit_store_apart(tl_emitter *em, const tl_address *a, LLVMTypeRef element, LLVMValueRef v,
                         int count)
{
    int64_t offsets[TL_MAX_NEAR_LANES];
    if (count > 0 && constant_offsets(em, a, count, offsets)) {
        store_known(em, a, element, v, offsets, count);
        return;
    }
    LLVMValueRef where = lane_pointers(em, a, element);
    LLVMTypeRef overloads[2] = { LLVMTypeOf(v), LLVMTypeOf(where) };
    LLVMValueRef args[4] = { v, where,
                             LLVMConstInt(em->i32, tl_dtype_size(a->storage->buffer->dtype), false),
                             em->mask == NULL ? all_lanes(em) : em->mask };
    tl_emit_intrinsic(em, "llvm.masked.scatter", overloads, 2, args, 4);
}
