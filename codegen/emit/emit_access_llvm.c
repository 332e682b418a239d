/* codegen/emit/emit_access_llvm.c: loads and stores.
 *
 * Lane stride 0 is a scalar access, 1 a vector, another a gather or scatter; what some lanes must not touch is masked.
 * A load that its guard does not allow reads zeroes kept for that. A store of many lanes to one element is the update
 * of a reduction: the lanes are joined first. */
#include <assert.h>
#include "codegen/emit/emit_private.h"
#include "runtime/base/checked.h"

enum {
    TL_MAX_NEAR_LANES = 64,
    MOST_PIECES = 4,   /* vectors that lanes are shuffled out of, instead of a gather */
    LEAST_PIECED = 16, /* lanes: fewer are gathered as fast */
};

LLVMTypeRef tl_emit_memory_type(tl_emitter *em, tl_dtype dtype)
{
    switch (dtype) {
    case TL_BOOL:
    case TL_I4:
    case TL_U4:
    case TL_I8:
    case TL_U8:
        return em->i8;
    case TL_I16:
    case TL_U16:
    case TL_F16:
    case TL_BF16:
        return em->i16;
    case TL_I32:
    case TL_U32:
        return em->i32;
    case TL_I64:
    case TL_U64:
        return em->i64;
    case TL_F32:
        return em->f32;
    case TL_F64:
        return em->f64;
    case TL_DTYPE_COUNT:
        break;
    }
    return em->i8;
}

LLVMTypeRef tl_emit_value_type(tl_emitter *em, tl_dtype dtype)
{
    if (dtype == TL_BOOL)
        return em->i1;
    return dtype == TL_F16 || dtype == TL_BF16 ? em->f32 : tl_emit_memory_type(em, dtype);
}

LLVMTypeRef tl_emit_vector(LLVMTypeRef element, int lanes)
{
    return lanes == 1 ? element : LLVMVectorType(element, (unsigned)lanes);
}

int tl_emit_lanes_of(LLVMTypeRef type)
{
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? (int)LLVMGetVectorSize(type) : 1;
}

LLVMValueRef tl_emit_splat(tl_emitter *em, LLVMValueRef scalar, int lanes)
{
    if (lanes == 1)
        return scalar;
    if (LLVMIsConstant(scalar)) {
        LLVMValueRef all[512];
        for (int i = 0; i < lanes; i++)
            all[i] = scalar;
        return LLVMConstVector(all, (unsigned)lanes);
    }
    LLVMTypeRef type = tl_emit_vector(LLVMTypeOf(scalar), lanes);
    LLVMValueRef zero = LLVMConstInt(em->i32, 0, false);
    LLVMValueRef v = LLVMBuildInsertElement(em->builder, LLVMGetPoison(type), scalar, zero, "");
    LLVMValueRef indices = LLVMConstNull(LLVMVectorType(em->i32, (unsigned)lanes));
    return LLVMBuildShuffleVector(em->builder, v, LLVMGetPoison(type), indices, "");
}

static LLVMValueRef plain_load(tl_emitter *em, const tl_buffer_storage *storage, LLVMTypeRef type,
                               LLVMValueRef pointer)
{
    LLVMValueRef v = LLVMBuildLoad2(em->builder, type, pointer, "");
    LLVMSetAlignment(v, (unsigned)tl_dtype_size(storage->buffer->dtype));
    return v;
}

static void plain_store(tl_emitter *em, const tl_buffer_storage *storage, LLVMValueRef v,
                        LLVMValueRef pointer)
{
    LLVMValueRef store = LLVMBuildStore(em->builder, v, pointer);
    LLVMSetAlignment(store, (unsigned)tl_dtype_size(storage->buffer->dtype));
}

/* From where the address says. */
static LLVMValueRef aligned_load(tl_emitter *em, const tl_address *a, LLVMTypeRef type)
{
    LLVMValueRef v = LLVMBuildLoad2(em->builder, type, a->pointer, "");
    LLVMSetAlignment(v, a->align);
    return v;
}

/* On a GPU a branch, which becomes a predicate: what is not loaded is zero. */
static LLVMValueRef load_where(tl_emitter *em, const tl_address *a, LLVMTypeRef type,
                               LLVMValueRef condition)
{
    LLVMBuilderRef b = em->builder;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
    LLVMBasicBlockRef yes = LLVMAppendBasicBlockInContext(em->context, em->function, "");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(em->context, em->function, "");
    LLVMBuildCondBr(b, condition, yes, after);
    LLVMPositionBuilderAtEnd(b, yes);
    LLVMValueRef values[2] = { aligned_load(em, a, type), LLVMConstNull(type) };
    LLVMBuildBr(b, after);
    LLVMPositionBuilderAtEnd(b, after);
    LLVMValueRef v = LLVMBuildPhi(b, type, "");
    LLVMBasicBlockRef from[2] = { yes, before };
    LLVMAddIncoming(v, values, from, 2);
    return v;
}

/* 512 bytes of zeroes on the stack, to be read where a guard says that nothing may be. */
static LLVMValueRef safe_pointer(tl_emitter *em)
{
    if (em->safe_used)
        return em->safe;
    em->safe_used = true;
    LLVMBasicBlockRef back = tl_emit_hoist(em, 0);
    LLVMBuildMemSet(em->builder, em->safe, LLVMConstInt(em->i8, 0, false),
                    LLVMConstInt(em->i64, TL_SAFE_BYTES, false), 64);
    tl_emit_leave(em, 0, back);
    return em->safe;
}

/* What must hold for a scalar access: the select's guard, and some active lane. NULL: nothing. */
static LLVMValueRef scalar_condition(tl_emitter *em)
{
    LLVMValueRef some = em->mask != NULL ? tl_emit_any(em, em->mask) : NULL;
    if (em->guard == NULL || some == NULL)
        return em->guard != NULL ? em->guard : some;
    return LLVMBuildAnd(em->builder, em->guard, some, "");
}

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

/* Whether a load of the first lanes is one instruction: AVX2 has it for elements of four and eight bytes (its stores take
 * dozens of cycles: these are written in parts). */
static bool masks_loads(const tl_emitter *em, tl_dtype dtype)
{
    const tl_isa_info *isa = &tl_isa_infos[em->target->isa];
    return isa->has_masks || (isa->vector_bits >= 256 && tl_dtype_size(dtype) >= 4);
}

static bool is_power_of_two(int n)
{
    return n > 0 && (n & (n - 1)) == 0;
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
        LLVMValueRef part = plain_load(em, storage, tl_emit_vector(element, lanes), from);
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

/* The first `count` lanes, side by side from an element on; the others are zero. Nothing behind them is touched. */
static LLVMValueRef load_first(tl_emitter *em, const tl_buffer_storage *storage, LLVMTypeRef type,
                               LLVMValueRef pointer, int count)
{
    int n = tl_emit_lanes_of(type);
    tl_dtype dtype = storage->buffer->dtype;
    if (count >= n)
        return plain_load(em, storage, type, pointer);
    if (count <= 0)
        return LLVMConstNull(type);
    if (!masks_loads(em, dtype) ||
        (!tl_isa_infos[em->target->isa].has_masks && is_power_of_two(count)))
        return load_parts(em, storage, type, pointer, count);
    LLVMValueRef active[512];
    for (int i = 0; i < n; i++)
        active[i] = LLVMConstInt(em->i1, i < count, false);
    LLVMTypeRef overloads[2] = { type, LLVMTypeOf(pointer) };
    LLVMValueRef args[4] = { pointer, LLVMConstInt(em->i32, tl_dtype_size(dtype), false),
                             LLVMConstVector(active, (unsigned)n), LLVMConstNull(type) };
    return tl_emit_intrinsic(em, "llvm.masked.load", overloads, 2, args, 4);
}

LLVMValueRef tl_emit_load_part(tl_emitter *em, const tl_address *a, LLVMTypeRef element, int width)
{
    assert(em->lanes < width && width <= TL_MAX_NEAR_LANES);
    return load_first(em, a->storage, tl_emit_vector(element, width), a->pointer, em->lanes);
}

/* The first `count` lanes to elements side by side; nothing behind them is touched. */
static void store_first(tl_emitter *em, const tl_address *a, LLVMTypeRef element,
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
        plain_store(em, a->storage, part, tl_emit_offset(em, element, a->pointer, at));
    }
}

void tl_emit_store_part(tl_emitter *em, const tl_address *a, LLVMTypeRef element,
                        LLVMValueRef whole)
{
    store_first(em, a, element, whole, em->lanes);
}

/* Every second element, in the first `count` lanes: two vectors that end where the last of these is, and a shuffle. */
static LLVMValueRef load_pairs(tl_emitter *em, const tl_address *a, LLVMTypeRef element, int count)
{
    int n = em->lanes, span = 2 * count - 1;
    LLVMTypeRef type = tl_emit_vector(element, n);
    LLVMValueRef low = load_first(em, a->storage, type, a->pointer, span);
    LLVMValueRef behind = tl_emit_offset(em, element, a->pointer, n - 1);
    LLVMValueRef high = load_first(em, a->storage, type, behind, span - (n - 1)), picks[512];
    for (int i = 0; i < n; i++) {
        int at = 2 * i < n ? 2 * i : n + 2 * i - (n - 1);
        picks[i] = LLVMConstInt(em->i32, (unsigned)at, false);
    }
    return LLVMBuildShuffleVector(em->builder, low, high, LLVMConstVector(picks, (unsigned)n), "");
}

/* How many lanes a constant mask lets through, when these are the first ones; 0: it is another. No mask: all. */
static int first_lanes(const tl_emitter *em, LLVMValueRef mask)
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

/* Constant offsets that all lie within one vector: how far each lane's element is behind the first, and the first; false
 * when they do not. */
static bool near_offsets(tl_emitter *em, const tl_address *a, int64_t *first, int64_t *behind)
{
    int64_t least = INT64_MAX, most = INT64_MIN;
    if (a->kind != TL_STRIDE_GENERAL || !constant_offsets(em, a, em->lanes, behind))
        return false;
    for (int i = 0; i < em->lanes; i++) {
        least = tl_min64(least, behind[i]);
        most = tl_max64(most, behind[i]);
    }
    *first = least;
    for (int i = 0; i < em->lanes; i++)
        behind[i] -= least;
    return most - least < em->lanes;
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

/* Elements of one vector in another order, some several times: one load and a shuffle. What lies behind the last of
 * them may not be there: it is masked. */
static LLVMValueRef load_near(tl_emitter *em, const tl_address *a, LLVMTypeRef element,
                              int64_t first, const int64_t *behind)
{
    assert(em->lanes <= TL_MAX_NEAR_LANES);
    int n = em->lanes;
    LLVMTypeRef type = tl_emit_vector(element, n);
    LLVMValueRef start = tl_emit_offset(em, element, a->pointer, first), picks[TL_MAX_NEAR_LANES],
                 active[TL_MAX_NEAR_LANES];
    int64_t last = 0;
    for (int i = 0; i < n; i++) {
        last = tl_max64(last, behind[i]);
        picks[i] = LLVMConstInt(em->i32, (unsigned)behind[i], false);
    }
    for (int i = 0; i < n; i++)
        active[i] = LLVMConstInt(em->i1, i <= last, false);
    LLVMTypeRef overloads[2] = { type, LLVMTypeOf(start) };
    LLVMValueRef args[4] = { start,
                             LLVMConstInt(em->i32, tl_dtype_size(a->storage->buffer->dtype), false),
                             LLVMConstVector(active, (unsigned)n), LLVMConstNull(type) };
    LLVMValueRef v = tl_emit_intrinsic(em, "llvm.masked.load", overloads, 2, args, 4);
    return LLVMBuildShuffleVector(em->builder, v, LLVMGetPoison(type),
                                  LLVMConstVector(picks, (unsigned)n), "");
}

/* Elements in known places, one by one: no address is computed, as a gather that is written out would. */
static LLVMValueRef load_known(tl_emitter *em, const tl_address *a, LLVMTypeRef element,
                               const int64_t *offsets, int count)
{
    LLVMValueRef v = LLVMConstNull(tl_emit_vector(element, em->lanes));
    for (int i = 0; i < count; i++) {
        LLVMValueRef p = tl_emit_offset(em, element, a->pointer, offsets[i]);
        v = LLVMBuildInsertElement(em->builder, v, plain_load(em, a->storage, element, p),
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
        plain_store(em, a->storage, LLVMBuildExtractElement(em->builder, v, lane, ""),
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
        LLVMValueRef next = load_first(em, a->storage, type, pointer, p->spans[k]);
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

/* A register buffer's lanes one by one. */
static LLVMValueRef load_lanes(tl_emitter *em, const tl_address *a, LLVMTypeRef element)
{
    LLVMValueRef v = LLVMConstNull(tl_emit_vector(element, em->lanes));
    for (int i = 0; i < em->lanes; i++) {
        LLVMValueRef p = tl_emit_offset(em, element, a->pointer, a->stride * i);
        v = LLVMBuildInsertElement(em->builder, v, plain_load(em, a->storage, element, p),
                                   LLVMConstInt(em->i32, (unsigned)i, false), "");
    }
    return v;
}

static LLVMValueRef load_vector(tl_emitter *em, const tl_address *a, LLVMTypeRef element)
{
    const tl_buffer_storage *storage = a->storage;
    LLVMTypeRef type = tl_emit_vector(element, em->lanes);
    if (storage->is_register)
        return a->stride == 1 ? aligned_load(em, a, type) : load_lanes(em, a, element);
    tl_address at = *a;
    LLVMValueRef mask = em->mask != NULL && (em->is_tail || !a->in_bounds) ? em->mask : NULL;
    if (em->guard != NULL && !a->in_bounds) {
        if (em->gpu.phase != NULL && mask == NULL && at.kind == TL_STRIDE_CONSTANT &&
            at.stride == 1)
            return load_where(em, &at, type, em->guard);
        if (em->gpu.phase == NULL && at.kind == TL_STRIDE_CONSTANT && at.stride == 1) {
            at.pointer = LLVMBuildSelect(em->builder, em->guard, at.pointer, safe_pointer(em), "");
        } else {
            LLVMValueRef all = tl_emit_splat(em, em->guard, em->lanes);
            mask = mask == NULL ? all : LLVMBuildAnd(em->builder, mask, all, "");
        }
    }
    /* of a mask that is known to let the first lanes through, how many; 0: of another */
    int count = em->gpu.phase == NULL ? first_lanes(em, mask) : mask == NULL ? em->lanes : 0;
    bool has_masks = tl_isa_infos[em->target->isa].has_masks;
    if (at.kind == TL_STRIDE_CONSTANT && at.stride == 1) {
        if (mask == NULL)
            return aligned_load(em, &at, type);
        if (count > 0 && !has_masks)
            return load_first(em, storage, type, at.pointer, count);
        LLVMTypeRef overloads[2] = { type, LLVMTypeOf(at.pointer) };
        LLVMValueRef args[4] = {
            at.pointer, LLVMConstInt(em->i32, tl_dtype_size(storage->buffer->dtype), false), mask,
            LLVMConstNull(type)
        };
        return tl_emit_intrinsic(em, "llvm.masked.load", overloads, 2, args, 4);
    }
    if (at.kind == TL_STRIDE_CONSTANT && at.stride == 2 && em->lanes >= 4 && count > 1)
        return load_pairs(em, &at, element, count);
    int64_t first, offsets[TL_MAX_NEAR_LANES];
    pieces p;
    if (mask == NULL && has_masks && near_offsets(em, &at, &first, offsets))
        return load_near(em, &at, element, first, offsets);
    if (em->gpu.phase == NULL &&
        (has_masks ? at.kind == TL_STRIDE_GENERAL && mask == NULL && em->lanes >= LEAST_PIECED
                   : count > 0) &&
        constant_offsets(em, &at, count, offsets)) {
        int most = !has_masks && count / 2 < MOST_PIECES ? count / 2 : MOST_PIECES;
        if (find_pieces(em, offsets, count, most, &p))
            return load_pieces(em, &at, element, &p);
        if (!has_masks)
            return load_known(em, &at, element, offsets, count);
    }
    return gather(em, &at, element, mask);
}

tl_emit_value tl_emit_load_word(tl_emitter *em, const tl_expr *load)
{
    assert(load->kind == TL_EXPR_LOAD && load->arg_count == load->u.buffer->rank);
    const tl_buffer *buffer = load->u.buffer;
    LLVMTypeRef element = tl_emit_memory_type(em, buffer->dtype);
    tl_address a;
    if (!tl_emit_address(em, buffer, load->args, load, false, &a))
        return (tl_emit_value){ LLVMGetPoison(element), false };
    if (a.kind != TL_STRIDE_NONE)
        return (tl_emit_value){ load_vector(em, &a, element), true };
    LLVMValueRef pointer = a.pointer;
    LLVMValueRef condition = a.in_bounds || a.storage->is_register ? NULL : scalar_condition(em);
    if (condition != NULL && em->gpu.phase != NULL)
        return (tl_emit_value){ load_where(em, &a, element, condition), false };
    if (condition != NULL)
        pointer = LLVMBuildSelect(em->builder, condition, pointer, safe_pointer(em), "");
    LLVMValueRef v = plain_load(em, a.storage, element, pointer);
    return (tl_emit_value){ a.lane < 0 ? v : tl_emit_from_row(em, v, a.lane), false };
}

tl_emit_value tl_emit_load(tl_emitter *em, const tl_expr *load)
{
    tl_emit_value v = tl_emit_load_word(em, load);
    v.llvm = tl_emit_from_memory(em, load->dtype, v.llvm);
    return v;
}

static void store_scalar(tl_emitter *em, const tl_address *a, LLVMValueRef v)
{
    if (em->mask == NULL ||
        LLVMIsConstant(em->mask)) { /* a constant mask is a tail: its first lane is active */
        plain_store(em, a->storage, v, a->pointer);
        return;
    }
    LLVMValueRef some = tl_emit_any(em, em->mask);
    if (a->storage->is_register) {
        LLVMValueRef old = plain_load(em, a->storage, LLVMTypeOf(v), a->pointer);
        plain_store(em, a->storage, LLVMBuildSelect(em->builder, some, v, old, ""), a->pointer);
        return;
    }
    LLVMBasicBlockRef yes = LLVMAppendBasicBlockInContext(em->context, em->function, "");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(em->context, em->function, "");
    LLVMBuildCondBr(em->builder, some, yes, after);
    LLVMPositionBuilderAtEnd(em->builder, yes);
    plain_store(em, a->storage, v, a->pointer);
    LLVMBuildBr(em->builder, after);
    LLVMPositionBuilderAtEnd(em->builder, after);
}

/* Whether the lanes that a tail's mask keeps back lie behind a row of a register buffer, where nothing is. */
static bool ends_row(const tl_emitter *em, const tl_address *a)
{
    const tl_buffer *buffer = a->storage->buffer;
    int64_t extent = 1, pitch = 0;
    int axis = buffer->rank - 1, count = em->is_tail ? first_lanes(em, em->mask) : 0;
    while (axis > 0 && tl_const_int(buffer->shape[axis], &extent) && extent == 1)
        axis--;
    if (count == 0 || axis < 0 || !tl_const_int(buffer->shape[axis], &extent) ||
        (axis > 0 && !tl_const_int(a->storage->strides[axis - 1], &pitch)))
        return false;
    return (pitch > 0 ? a->constant % pitch : a->constant) + count == extent;
}

/* Registers: whole vectors, where a mask blends; other strides lane by lane. */
static void store_register(tl_emitter *em, const tl_address *a, LLVMTypeRef element, LLVMValueRef v)
{
    LLVMTypeRef type = LLVMTypeOf(v);
    if (a->stride == 1) {
        bool blends = em->mask != NULL &&
                      (tl_isa_infos[em->target->isa].has_masks || !ends_row(em, a));
        if (blends)
            v = LLVMBuildSelect(em->builder, em->mask, v, aligned_load(em, a, type), "");
        LLVMSetAlignment(LLVMBuildStore(em->builder, v, a->pointer), a->align);
        return;
    }
    for (int i = 0; i < em->lanes; i++) {
        LLVMValueRef lane = LLVMConstInt(em->i32, (unsigned)i, false);
        LLVMValueRef p = tl_emit_offset(em, element, a->pointer, a->stride * i);
        LLVMValueRef one = LLVMBuildExtractElement(em->builder, v, lane, "");
        if (em->mask != NULL) {
            LLVMValueRef active = LLVMBuildExtractElement(em->builder, em->mask, lane, "");
            if (LLVMIsAConstantInt(active) && LLVMConstIntGetZExtValue(active) == 0)
                continue;
            one = LLVMBuildSelect(em->builder, active, one, plain_load(em, a->storage, element, p),
                                  "");
        }
        plain_store(em, a->storage, one, p);
    }
}

static void store_vector(tl_emitter *em, const tl_address *a, LLVMTypeRef element, LLVMValueRef v)
{
    const tl_buffer_storage *storage = a->storage;
    if (storage->is_register) {
        store_register(em, a, element, v);
        return;
    }
    bool contiguous = a->kind == TL_STRIDE_CONSTANT && a->stride == 1;
    if (contiguous && em->mask == NULL) {
        LLVMSetAlignment(LLVMBuildStore(em->builder, v, a->pointer), a->align);
        return;
    }
    bool has_parts = em->gpu.phase == NULL && !tl_isa_infos[em->target->isa].has_masks;
    int count = has_parts ? first_lanes(em, em->mask) : 0;
    int64_t offsets[TL_MAX_NEAR_LANES];
    if (count > 0 && contiguous) {
        store_first(em, a, element, v, count);
        return;
    }
    if (count > 0 && constant_offsets(em, a, count, offsets)) {
        store_known(em, a, element, v, offsets, count);
        return;
    }
    LLVMValueRef align = LLVMConstInt(em->i32, tl_dtype_size(storage->buffer->dtype), false);
    LLVMValueRef where = contiguous ? a->pointer : lane_pointers(em, a, element);
    LLVMTypeRef overloads[2] = { LLVMTypeOf(v), LLVMTypeOf(where) };
    LLVMValueRef args[4] = { v, where, align, em->mask == NULL ? all_lanes(em) : em->mask };
    tl_emit_intrinsic(em, contiguous ? "llvm.masked.store" : "llvm.masked.scatter", overloads, 2,
                      args, 4);
}

/* C[...] = C[...] op rest, op one of the combiners. */
bool tl_emit_is_update(const tl_store *store)
{
    const tl_expr *value = store->value;
    switch (value->kind) {
    case TL_EXPR_ADD:
    case TL_EXPR_MUL:
    case TL_EXPR_MIN:
    case TL_EXPR_MAX:
    case TL_EXPR_AND:
    case TL_EXPR_OR:
        return tl_is_own_element(value->args[0], store) || tl_is_own_element(value->args[1], store);
    case TL_EXPR_INT:
    case TL_EXPR_FLOAT:
    case TL_EXPR_VAR:
    case TL_EXPR_LOAD:
    case TL_EXPR_SUB:
    case TL_EXPR_DIV:
    case TL_EXPR_FLOORDIV:
    case TL_EXPR_FLOORMOD:
    case TL_EXPR_LT:
    case TL_EXPR_LE:
    case TL_EXPR_EQ:
    case TL_EXPR_NE:
    case TL_EXPR_NOT:
    case TL_EXPR_SELECT:
    case TL_EXPR_CAST:
    case TL_EXPR_BITS:
    case TL_EXPR_CALL:
    case TL_EXPR_KIND_COUNT:
        break;
    }
    return false;
}

/* C[...] = C[...] + lanes: joins the lanes, then updates the one element. */
static void store_reduction(tl_emitter *em, const tl_store *store, const tl_address *a)
{
    const tl_expr *value = store->value;
    tl_dtype dtype = store->buffer->dtype;
    if (!tl_emit_is_update(store)) {
        tl_emit_fail(em, em->i64, TL_UNSUPPORTED,
                     "buffer %s: the lanes of a vectorized loop store different values to one "
                     "element, or not the "
                     "plain update of a reduction",
                     store->buffer->name);
        return;
    }
    const tl_expr *old = value->args[tl_is_own_element(value->args[0], store) ? 0 : 1];
    const tl_expr *added = value->args[tl_is_own_element(value->args[0], store) ? 1 : 0];
    LLVMValueRef v = tl_emit_spread(em, tl_emit_expr(em, added));
    if (em->mask != NULL) {
        tl_combiner combiner = value->kind == TL_EXPR_ADD   ? TL_COMBINER_SUM
                               : value->kind == TL_EXPR_MUL ? TL_COMBINER_PROD
                               : value->kind == TL_EXPR_MIN ? TL_COMBINER_MIN
                               : value->kind == TL_EXPR_MAX ? TL_COMBINER_MAX
                               : value->kind == TL_EXPR_AND ? TL_COMBINER_ALL
                                                            : TL_COMBINER_ANY;
        tl_emit_value identity =
            tl_emit_expr(em, tl_combiner_identity(em->arena, combiner, dtype, 0));
        v = LLVMBuildSelect(em->builder, em->mask, v, tl_emit_spread(em, identity), "");
    }
    LLVMValueRef one = tl_emit_reduce(em, value->kind, dtype, v);
    tl_emit_value before = tl_emit_load(em, old);
    LLVMValueRef after = tl_emit_binary(em, NULL, value->kind, dtype, before.llvm, one);
    store_scalar(em, a, tl_emit_to_memory(em, dtype, after));
}

void tl_emit_store_scalar(tl_emitter *em, const tl_store *store, LLVMValueRef value)
{
    tl_address a;
    if (tl_emit_address(em, store->buffer, store->indices, store->indices, false, &a))
        store_scalar(em, &a, tl_emit_to_memory(em, store->buffer->dtype, value));
}

void tl_emit_store(tl_emitter *em, const tl_store *store)
{
    assert(store->value->dtype == store->buffer->dtype);
    if (tl_emit_async_copy(em, store))
        return;
    if (tl_emit_joins_threads(em, store)) {
        tl_emit_join(em, store);
        return;
    }
    const tl_buffer *buffer = store->buffer;
    LLVMTypeRef element = tl_emit_memory_type(em, buffer->dtype);
    tl_address a;
    /* each lane of an update counts, also where all of them add the same */
    bool joins = em->lanes > 1 && (tl_emit_varies(em, store->value) || tl_reads_own_element(store));
    if (!tl_emit_address(em, buffer, store->indices, store->indices, false, &a))
        return;
    if (a.kind == TL_STRIDE_NONE && joins) {
        store_reduction(em, store, &a);
        return;
    }
    tl_emit_value value = tl_emit_expr(em, store->value);
    if (a.kind == TL_STRIDE_NONE) {
        store_scalar(em, &a, tl_emit_to_memory(em, buffer->dtype, value.llvm));
    } else {
        LLVMValueRef v = tl_emit_to_memory(em, buffer->dtype, tl_emit_spread(em, value));
        store_vector(em, &a, element, v);
    }
}

void tl_emit_store_vector(tl_emitter *em, const tl_store *store, LLVMValueRef v)
{
    tl_address a;
    if (!tl_emit_address(em, store->buffer, store->indices, store->indices, false, &a))
        return;
    store_vector(em, &a, tl_emit_memory_type(em, store->buffer->dtype), v);
}
