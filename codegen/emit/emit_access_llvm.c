/* codegen/emit/emit_access_llvm.c: loads and stores.
 *
 * Lane stride 0 is a scalar access, 1 a vector; emit_apart_llvm.c has the others, emit_first_llvm.c the rests of rows. What some
 * lanes must not touch is masked.
 * A load that its guard does not allow reads zeroes kept for that. A store of many lanes to one element is the update
 * of a reduction: the lanes are joined first. */
#include <assert.h>
#include "codegen/emit/emit_private.h"
#include "runtime/base/checked.h"

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

LLVMValueRef tl_emit_plain_load(tl_emitter *em, const tl_buffer_storage *storage, LLVMTypeRef type,
                                LLVMValueRef pointer)
{
    LLVMValueRef v = LLVMBuildLoad2(em->builder, type, pointer, "");
    LLVMSetAlignment(v, (unsigned)tl_dtype_size(storage->buffer->dtype));
    return v;
}

void tl_emit_plain_store(tl_emitter *em, const tl_buffer_storage *storage, LLVMValueRef v,
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

/* A register buffer's lanes one by one. */
static LLVMValueRef load_lanes(tl_emitter *em, const tl_address *a, LLVMTypeRef element)
{
    LLVMValueRef v = LLVMConstNull(tl_emit_vector(element, em->lanes));
    for (int i = 0; i < em->lanes; i++) {
        LLVMValueRef p = tl_emit_offset(em, element, a->pointer, a->stride * i);
        v = LLVMBuildInsertElement(em->builder, v, tl_emit_plain_load(em, a->storage, element, p),
                                   LLVMConstInt(em->i32, (unsigned)i, false), "");
    }
    return v;
}

/* Whether all lanes find zeroes where they read instead. */
static bool is_safe_span(const tl_emitter *em, const tl_address *a)
{
    int64_t size = (int64_t)tl_dtype_size(a->storage->buffer->dtype);
    return a->stride > 0 && a->stride <= TL_SAFE_BYTES / size / em->lanes;
}

static LLVMValueRef load_vector(tl_emitter *em, const tl_address *a, LLVMTypeRef element)
{
    const tl_buffer_storage *storage = a->storage;
    LLVMTypeRef type = tl_emit_vector(element, em->lanes);
    if (storage->is_register)
        return a->stride == 1 ? aligned_load(em, a, type) : load_lanes(em, a, element);
    tl_address at = *a;
    if (a->in_pairs && a->constant % 2 != 0) {
        at.is_odd = true;
        at.pointer = tl_emit_offset(em, element, a->pointer, -1);
    }
    LLVMValueRef mask = em->mask != NULL && (em->is_tail || !a->in_bounds) ? em->mask : NULL;
    if (em->guard != NULL && !a->in_bounds) {
        if (em->gpu.phase != NULL && mask == NULL && at.kind == TL_STRIDE_CONSTANT &&
            at.stride == 1)
            return load_where(em, &at, type, em->guard);
        if (em->gpu.phase == NULL && at.kind == TL_STRIDE_CONSTANT && is_safe_span(em, &at)) {
            at.pointer = LLVMBuildSelect(em->builder, em->guard, at.pointer, safe_pointer(em), "");
        } else {
            LLVMValueRef all = tl_emit_splat(em, em->guard, em->lanes);
            mask = mask == NULL ? all : LLVMBuildAnd(em->builder, mask, all, "");
        }
    }
    /* of a mask that is known to let the first lanes through, how many; 0: of another */
    int count = em->gpu.phase == NULL ? tl_emit_first_lanes(em, mask)
                : mask == NULL        ? em->lanes
                                      : 0;
    bool has_masks = tl_isa_infos[em->target->isa].has_masks;
    if (at.kind == TL_STRIDE_CONSTANT && at.stride == 1) {
        if (mask == NULL)
            return aligned_load(em, &at, type);
        if (count > 0 && !has_masks)
            return tl_emit_load_first(em, storage, type, at.pointer, count);
        return tl_emit_load_masked(em, storage, type, at.pointer, mask);
    }
    return tl_emit_load_apart(em, &at, element, mask, count);
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
    LLVMValueRef v = tl_emit_plain_load(em, a.storage, element, pointer);
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
        tl_emit_plain_store(em, a->storage, v, a->pointer);
        return;
    }
    LLVMValueRef some = tl_emit_any(em, em->mask);
    if (a->storage->is_register) {
        LLVMValueRef old = tl_emit_plain_load(em, a->storage, LLVMTypeOf(v), a->pointer);
        tl_emit_plain_store(em, a->storage, LLVMBuildSelect(em->builder, some, v, old, ""),
                            a->pointer);
        return;
    }
    LLVMBasicBlockRef yes = LLVMAppendBasicBlockInContext(em->context, em->function, "");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(em->context, em->function, "");
    LLVMBuildCondBr(em->builder, some, yes, after);
    LLVMPositionBuilderAtEnd(em->builder, yes);
    tl_emit_plain_store(em, a->storage, v, a->pointer);
    LLVMBuildBr(em->builder, after);
    LLVMPositionBuilderAtEnd(em->builder, after);
}

/* Whether the lanes that a tail's mask keeps back lie behind a row of a register buffer, where nothing is. */
static bool ends_row(const tl_emitter *em, const tl_address *a)
{
    const tl_buffer *buffer = a->storage->buffer;
    int64_t extent = 1, pitch = 0;
    int axis = buffer->rank - 1, count = em->is_tail ? tl_emit_first_lanes(em, em->mask) : 0;
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
        if (em->mask != NULL && !ends_row(em, a))
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
            one = LLVMBuildSelect(em->builder, active, one,
                                  tl_emit_plain_load(em, a->storage, element, p), "");
        }
        tl_emit_plain_store(em, a->storage, one, p);
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
    /* of a mask that is known to let the first lanes through, how many; 0: of another */
    bool has_masks = tl_isa_infos[em->target->isa].has_masks;
    int count = em->gpu.phase == NULL && !has_masks ? tl_emit_first_lanes(em, em->mask) : 0;
    if (!contiguous) {
        tl_emit_store_apart(em, a, element, v, count);
        return;
    }
    if (count > 0) {
        tl_emit_store_first(em, a, element, v, count);
        return;
    }
    LLVMTypeRef overloads[2] = { LLVMTypeOf(v), LLVMTypeOf(a->pointer) };
    LLVMValueRef args[4] = { v, a->pointer,
                             LLVMConstInt(em->i32, tl_dtype_size(storage->buffer->dtype), false),
                             em->mask };
    tl_emit_intrinsic(em, "llvm.masked.store", overloads, 2, args, 4);
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
