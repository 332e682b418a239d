/* codegen/emit/emit_address_llvm.c: where an access goes.
 *
 * The flat index of an access is made once, as a linear form. With constants and lanes filled in it is
 *     constant + sum coefficient*value (by level) + stride*lane   [+ a vector of offsets: a gather]
 * and the address is built outermost level first, so that an inner loop adds only what changes in it; the constant
 * comes last, where the machine's addressing takes it. An index that contains a load is clamped into its axis. */
#include "codegen/emit/emit_private.h"
#include <assert.h>
#include <limits.h>
#include "runtime/base/array.h"

/* NULL after a failure. */
const tl_buffer_storage *tl_emit_find_storage(tl_emitter *em, const tl_buffer *buffer)
{
    for (int tries = 0; tries < 2; tries++) {
        for (int i = em->storage_count - 1; i >= 0; i--)
            if (em->storages[i].buffer == buffer)
                return &em->storages[i];
        if (tries == 0)
            tl_emit_storage(em, buffer); /* allocated around the phases */
    }
    return NULL;
}

void tl_add_storage(tl_emitter *em, const tl_buffer *buffer, LLVMValueRef base, bool is_register)
{
    assert(base != NULL);
    TL_ROOM(em->arena, em->storages, em->storage_count, em->storage_capacity);
    const tl_placement *placement = tl_plan_find(em->plan, buffer);
    const tl_expr *const *strides =
        placement != NULL ? placement->strides : tl_buffer_strides(em->arena, buffer);
    em->storages[em->storage_count++] = (tl_buffer_storage){ buffer, base, strides, is_register };
}

/* 0 <= index < extent whatever the variables are. */
static bool inside(tl_emitter *em, const tl_expr *index, const tl_expr *extent)
{
    int64_t constant;
    tl_range range = tl_expr_range(index);
    if (range.min < 0)
        return false;
    if (tl_const_int(extent, &constant))
        return range.max < constant;
    return tl_prove_lt(em->arena, index, extent);
}

static tl_flat make_flat(tl_emitter *em, const tl_buffer_storage *storage,
                         const tl_expr *const *indices, const void *node, bool wild)
{
    const tl_buffer *buffer = storage->buffer;
    const tl_expr *sum = tl_int(em->arena, 0);
    tl_flat flat = { .node = node, .in_bounds = true };
    for (int a = 0; a < buffer->rank; a++) {
        const tl_expr *index = indices[a];
        if (tl_expr_has_load(index) && !wild) {
            const tl_expr *last = tl_addi(em->arena, buffer->shape[a], -1);
            index = tl_max(em->arena, tl_min(em->arena, index, last), tl_int(em->arena, 0));
        } else if (!wild) {
            flat.in_bounds = flat.in_bounds && inside(em, index, buffer->shape[a]);
        }
        sum = tl_add(em->arena, sum, tl_mul(em->arena, index, storage->strides[a]));
    }
    flat.flat = tl_linear_of(em->arena, sum);
    return flat;
}

static const tl_flat *find_flat(tl_emitter *em, const tl_buffer_storage *storage,
                                const tl_expr *const *indices, const void *node, bool wild)
{
    if (2 * (em->flat_count + 1) > em->flat_capacity) {
        int old_capacity = em->flat_capacity, capacity = old_capacity == 0 ? 128 : 2 * old_capacity;
        tl_flat *old = em->flats;
        em->flats = TL_NEW_ARRAY(em->arena, tl_flat, capacity);
        em->flat_capacity = capacity;
        for (int i = 0; i < old_capacity; i++) {
            if (old[i].node == NULL)
                continue;
            unsigned at = (unsigned)(((uintptr_t)old[i].node >> 4) % (unsigned)capacity);
            while (em->flats[at].node != NULL)
                at = (at + 1) % (unsigned)capacity;
            em->flats[at] = old[i];
        }
    }
    unsigned at = (unsigned)(((uintptr_t)node >> 4) % (unsigned)em->flat_capacity);
    while (em->flats[at].node != NULL && em->flats[at].node != node)
        at = (at + 1) % (unsigned)em->flat_capacity;
    if (em->flats[at].node == NULL) {
        em->flats[at] = make_flat(em, storage, indices, node, wild);
        em->flat_count++;
    }
    return &em->flats[at];
}

bool tl_emit_in_bounds(tl_emitter *em, const tl_expr *load)
{
    const tl_buffer_storage *storage = tl_emit_find_storage(em, load->u.buffer);
    return storage == NULL || find_flat(em, storage, load->args, load, false)->in_bounds;
}

/* The parts of one address as they are found. */
#define MAX_PARTS 64
typedef struct {
    int64_t coefficient;
    LLVMValueRef value;
    int level;
} part;
typedef struct {
    int count;
    part parts[MAX_PARTS];
    int64_t constant, stride;
    LLVMValueRef offsets;     /* <lanes x i64>, or NULL */
    const tl_expr *offending; /* the last term that is no constant */
} sum;

static void add_part(tl_emitter *em, sum *s, int64_t coefficient, LLVMValueRef value, int level)
{
    if (LLVMIsAConstantInt(value)) {
        s->constant += coefficient * LLVMConstIntGetSExtValue(value);
        return;
    }
    if (s->count == MAX_PARTS) {
        tl_emit_fail(em, em->i64, TL_UNSUPPORTED, "an index with more than %d terms", MAX_PARTS);
        s->count--;
    }
    s->parts[s->count++] = (part){ coefficient, value, level };
}

static void add_vector(tl_emitter *em, sum *s, int64_t coefficient, const tl_expr *term)
{
    LLVMValueRef v = tl_emit_spread(em, tl_emit_expr(em, term));
    LLVMValueRef c =
        tl_emit_splat(em, LLVMConstInt(em->i64, (unsigned long long)coefficient, true), em->lanes);
    v = LLVMBuildMul(em->builder, v, c, "");
    s->offsets = s->offsets == NULL ? v : LLVMBuildAdd(em->builder, s->offsets, v, "");
}

/* A term with constants and lanes filled in. */
static void add_filled(tl_emitter *em, sum *s, int64_t coefficient, const tl_expr *term)
{
    int level;
    if (em->lane_var != NULL && term->kind == TL_EXPR_VAR && term->u.var == em->lane_var) {
        s->stride += coefficient;
    } else if (tl_emit_varies(em, term)) {
        add_vector(em, s, coefficient, term);
    } else {
        LLVMValueRef value = tl_emit_scalar_index(em, term, &level);
        add_part(em, s, coefficient, value, level);
    }
    s->offending = term;
}

static void add_term(tl_emitter *em, sum *s, int64_t coefficient, const tl_expr *term)
{
    if (term->kind == TL_EXPR_VAR) {
        const tl_bound *b = tl_find_bound(em, term->u.var);
        if (b != NULL && b->kind == TL_BOUND_CONSTANT) {
            s->constant += coefficient * b->constant;
            return;
        }
        if (b != NULL && b->kind == TL_BOUND_LANE) {
            s->constant += coefficient * b->constant;
            s->stride += coefficient;
            return;
        }
        add_filled(em, s, coefficient, term);
        return;
    }
    const tl_expr *filled = tl_emit_substitute(em, term);
    if (filled == term) {
        add_filled(em, s, coefficient, term);
        return;
    }
    tl_linear linear = tl_linear_of(em->arena, filled);
    s->constant += coefficient * linear.constant;
    for (int t = 0; t < linear.count; t++)
        add_filled(em, s, coefficient * linear.coefficients[t], linear.terms[t]);
}

/* base + coefficient*index elements, at `level`; base is known at `known_at`. */
static LLVMValueRef step(tl_emitter *em, LLVMTypeRef element, LLVMValueRef base, int known_at,
                         LLVMValueRef index, int64_t coefficient, int level)
{
    if (index != NULL && known_at < level && level != INT_MAX) {
        LLVMValueRef moving = tl_emit_moving(em, element, base, index, coefficient, level);
        if (moving != NULL)
            return moving;
    }

    tl_hoisted key = {
        .base = base, .index = index, .coefficient = coefficient, .element = element
    };
    LLVMValueRef known = level == INT_MAX ? NULL : tl_emit_recall(em, &key);
    if (known != NULL)
        return known;
    LLVMBasicBlockRef back = level == INT_MAX ? NULL : tl_emit_hoist(em, level);
    key.result = index == NULL ? tl_emit_offset(em, element, base, coefficient)
                               : tl_emit_scaled(em, element, base, index, coefficient);
    if (level != INT_MAX) {
        tl_emit_leave(em, level, back);
        tl_emit_remember(em, key);
    }
    return key.result;
}

LLVMValueRef tl_emit_scaled(tl_emitter *em, LLVMTypeRef element, LLVMValueRef base,
                            LLVMValueRef index, int64_t coefficient)
{
    LLVMValueRef c = LLVMConstInt(em->i64, (unsigned long long)coefficient, true);
    LLVMValueRef offset = coefficient == 1 ? index : LLVMBuildNSWMul(em->builder, index, c, "");
    return LLVMBuildGEP2(em->builder, element, base, &offset, 1, "");
}

LLVMValueRef tl_emit_offset(tl_emitter *em, LLVMTypeRef element, LLVMValueRef base,
                            int64_t constant)
{
    LLVMValueRef offset = LLVMConstInt(em->i64, (unsigned long long)constant, true);
    return constant == 0 ? base : LLVMBuildGEP2(em->builder, element, base, &offset, 1, "");
}

static LLVMValueRef build_pointer(tl_emitter *em, const tl_buffer_storage *storage, sum *s)
{
    LLVMTypeRef element = tl_emit_memory_type(em, storage->buffer->dtype);
    for (int i = 1; i < s->count; i++) /* insertion sort, stable */
        for (int j = i; j > 0 && s->parts[j].level < s->parts[j - 1].level; j--) {
            part swap = s->parts[j];
            s->parts[j] = s->parts[j - 1];
            s->parts[j - 1] = swap;
        }
    LLVMValueRef pointer = storage->base;
    int level = 0;
    for (int i = 0; i < s->count; i++) {
        const part *p = &s->parts[i];
        pointer = step(em, element, pointer, level, p->value, p->coefficient, p->level);
        level = p->level;
    }
    return s->constant == 0 ? pointer : step(em, element, pointer, level, NULL, s->constant, level);
}

/* What an access of a GPU needs to move 16 bytes at once; buffers begin at multiples of that (kernel_abi.h). */
static unsigned alignment(const tl_emitter *em, const tl_buffer_storage *storage, const sum *s)
{
    enum { MOST = 16 };
    int64_t size = (int64_t)tl_dtype_size(storage->buffer->dtype);
    if (em->gpu.phase == NULL)
        return (unsigned)size;
    uint64_t bits = (uint64_t)s->constant | MOST / (uint64_t)size;
    for (int i = 0; i < s->count; i++)
        bits |= (uint64_t)s->parts[i].coefficient;
    return (unsigned)((bits & -bits) * (uint64_t)size);
}

/* Whether lanes two elements apart are elements of pairs that lie in the buffer as a whole: all but the constant is even, and the
 * last element is the second of its pair. */
static bool is_in_pairs(const tl_buffer_storage *storage, const sum *s)
{
    int64_t last = 0, extent, stride;
    if (s->stride != 2 || s->offsets != NULL)
        return false;
    for (int axis = 0; axis < storage->buffer->rank; axis++) {
        if (!tl_const_int(storage->buffer->shape[axis], &extent) ||
            !tl_const_int(storage->strides[axis], &stride))
            return false;
        last += (extent - 1) % 2 * (stride % 2);
    }
    for (int i = 0; i < s->count; i++)
        if (s->parts[i].coefficient % 2 != 0)
            return false;
    return last % 2 != 0;
}

/* A thread's own element of what a warp holds, or one to read of another thread's. */
static bool warp_address(tl_emitter *em, const tl_buffer_storage *storage,
                         const tl_expr *const *indices, bool reads, tl_address *out)
{
    int64_t at;
    int lane;
    bool varies = false;
    for (int a = 0; a < storage->buffer->rank; a++)
        varies = varies || tl_emit_varies(em, indices[a]);
    if (!tl_emit_warp_register(em, storage->buffer, indices, reads && !varies, &at, &lane))
        return false;
    LLVMTypeRef element = tl_emit_memory_type(em, storage->buffer->dtype);
    *out = (tl_address){ .storage = storage,
                         .pointer = tl_emit_offset(em, element, storage->base, at),
                         .kind = varies ? TL_STRIDE_CONSTANT : TL_STRIDE_NONE,
                         .stride = varies ? 1 : 0,
                         .constant = at,
                         .lane = lane,
                         .in_bounds = true,
                         .align = (unsigned)tl_dtype_size(storage->buffer->dtype) };
    return true;
}

/* Elements behind the storage's base: those parts of the sum that move by whole patterns, or the others. */
static LLVMValueRef add_up(tl_emitter *em, const sum *s, int64_t period, bool whole)
{
    int64_t rest = ((s->constant % period) + period) % period;
    int64_t constant = whole ? s->constant - rest : rest;
    LLVMValueRef total = LLVMConstInt(em->i64, (unsigned long long)constant, true);
    for (int i = 0; i < s->count; i++) {
        if ((s->parts[i].coefficient % period == 0) != whole)
            continue;
        LLVMValueRef c = LLVMConstInt(em->i64, (unsigned long long)s->parts[i].coefficient, true);
        total = LLVMBuildAdd(em->builder, total,
                             LLVMBuildMul(em->builder, s->parts[i].value, c, ""), "");
    }
    return total;
}

/* All parts of the sum. */
static LLVMValueRef add_moving(tl_emitter *em, const sum *s)
{
    LLVMValueRef total = LLVMConstInt(em->i64, 0, false);
    for (int i = 0; i < s->count; i++) {
        LLVMValueRef c = LLVMConstInt(em->i64, (unsigned long long)s->parts[i].coefficient, true);
        total = LLVMBuildAdd(em->builder, total,
                             LLVMBuildMul(em->builder, s->parts[i].value, c, ""), "");
    }
    return total;
}

/* Lanes that do not lie in one piece of 16 bytes go where each of them has to. */
static void swizzle_address(tl_emitter *em, const sum *s, tl_address *out)
{
    const tl_buffer *buffer = out->storage->buffer;
    LLVMTypeRef element = tl_emit_memory_type(em, buffer->dtype);
    int64_t period = tl_emit_swizzle_period(buffer);
    LLVMValueRef whole = add_up(em, s, period, true);
    out->inner = add_up(em, s, period, false);
    out->moving = add_moving(em, s);
    out->outer = LLVMBuildGEP2(em->builder, element, out->storage->base, &whole, 1, "");
    bool in_piece = out->kind == TL_STRIDE_CONSTANT && out->stride == 1 &&
                    (int64_t)em->lanes * (int64_t)tl_dtype_size(buffer->dtype) <= out->align;
    if (out->kind == TL_STRIDE_NONE || in_piece) {
        LLVMValueRef offset = tl_emit_swizzled(em, buffer, out->inner);
        out->pointer = LLVMBuildGEP2(em->builder, element, out->outer, &offset, 1, "");
        return;
    }
    LLVMValueRef lanes = out->offsets;
    if (out->kind == TL_STRIDE_CONSTANT) {
        LLVMValueRef ramp[512];
        for (int i = 0; i < em->lanes; i++)
            ramp[i] = LLVMConstInt(em->i64, (unsigned long long)(out->stride * i), true);
        lanes = LLVMConstVector(ramp, (unsigned)em->lanes);
    }
    lanes = LLVMBuildAdd(em->builder, tl_emit_splat(em, out->inner, em->lanes), lanes, "");
    out->kind = TL_STRIDE_GENERAL;
    out->offsets = tl_emit_swizzled(em, buffer, lanes);
    out->pointer = out->outer;
}

bool tl_emit_address(tl_emitter *em, const tl_buffer *buffer, const tl_expr *const *indices,
                     const void *node, bool wild, tl_address *out)
{
    assert(buffer->rank >= 0 && (buffer->rank == 0 || indices != NULL));
    const tl_buffer_storage *storage = tl_emit_find_storage(em, buffer);
    if (storage == NULL)
        return false;
    if (tl_scope_threads[buffer->scope] > 0)
        return warp_address(em, storage, indices, node != indices, out);
    const tl_flat *flat = find_flat(em, storage, indices, node, wild);
    tl_linear linear = flat->flat;
    bool in_bounds = flat->in_bounds;
    sum s = { .constant = linear.constant };
    for (int t = 0; t < linear.count; t++)
        add_term(em, &s, linear.coefficients[t], linear.terms[t]);
    *out = (tl_address){ .storage = storage,
                         .stride = s.stride,
                         .constant = s.constant,
                         .lane = -1,
                         .in_bounds = in_bounds };
    if (s.offsets != NULL) {
        out->kind = TL_STRIDE_GENERAL;
        if (s.stride != 0) {
            LLVMValueRef ramp[512];
            for (int i = 0; i < em->lanes; i++)
                ramp[i] = LLVMConstInt(em->i64, (unsigned long long)(s.stride * i), true);
            s.offsets = LLVMBuildAdd(em->builder, s.offsets,
                                     LLVMConstVector(ramp, (unsigned)em->lanes), "");
        }
        out->offsets = s.offsets;
    } else {
        out->kind = s.stride != 0 ? TL_STRIDE_CONSTANT : TL_STRIDE_NONE;
    }
    if (storage->is_register && (s.count > 0 || s.offsets != NULL)) {
        tl_emit_fail(em, em->i64, TL_UNSUPPORTED,
                     "register buffer %s: its index contains %s, which is no constant once loops "
                     "are unrolled",
                     buffer->name, tl_expr_text(em->arena, s.offending));
        return false;
    }
    out->align = alignment(em, storage, &s);
    out->in_pairs = em->gpu.phase == NULL && is_in_pairs(storage, &s);
    if (tl_emit_is_swizzled(em, buffer))
        swizzle_address(em, &s, out);
    else
        out->pointer = build_pointer(em, storage, &s);
    return em->status == TL_OK;
}
