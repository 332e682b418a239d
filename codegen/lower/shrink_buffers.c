/* codegen/lower/shrink_buffers.c: a local buffer becomes as large as the region really used while it lives.
 *
 *     for i0                                     for i0
 *       alloc T: f32[M, 64]                        alloc T: f32[8, 64]
 *       for i1 in 0..8                        ->     for i1 in 0..8
 *         T[i0*8 + i1, j] = ...                        T[i1, j] = ...
 *
 * The shared memory of a GPU block is allocated outside of the loops over its threads. A loop around all that touches it
 * counts as an outer one when its iterations touch different elements, which then take turns in the same place:
 *
 *     alloc S: f32[64] shared                 alloc S: f32[8] shared
 *     for t threadIdx.x                       for t threadIdx.x
 *       for k0 in 0..8                   ->     for k0 in 0..8
 *         S[k0*8 + ..] = ..                       S[..] = ..
 *
 * (Threads wait for each other between two iterations: what one does to an element another one does to its neighbour, and
 * that is all that barriers ask.)
 *
 * Requires  that on an axis all indices have the same part over outer variables, and an inner part of known range.
 * Keeps     which accesses meet in one element. */
#include <assert.h>
#include "codegen/lower/passes.h"
#include "ir/expr/index.h"

typedef struct {
    tl_arena *arena;
    const tl_var_set *inner;
    int rank;
    bool any, ok[16];
    const tl_expr *outer[16];
    int64_t min[16], max[16];
} axes;

/* e = outer + inner, by which variables the terms of its sum use. */
static void take_apart(tl_arena *arena, const tl_expr *e, const tl_var_set *inner,
                       const tl_expr **out_outer, const tl_expr **out_inner)
{
    tl_linear sum = tl_linear_of(arena, e);
    const tl_expr *outer = tl_int(arena, 0), *rest = tl_int(arena, sum.constant);
    for (int t = 0; t < sum.count; t++) {
        const tl_expr *term = tl_muli(arena, sum.terms[t], sum.coefficients[t]);
        if (tl_expr_uses_any(term, inner) || tl_expr_has_load(term))
            rest = tl_add(arena, rest, term);
        else
            outer = tl_add(arena, outer, term);
    }
    *out_outer = outer;
    *out_inner = rest;
}

/* `more`: how far each index goes on behind what it says; NULL: not at all. */
static bool see_box(const tl_expr *const *indices, const tl_expr *const *more, axes *x)
{
    for (int a = 0; a < x->rank; a++) {
        int64_t extent = 1;
        if (more != NULL && !tl_const_int(more[a], &extent))
            x->ok[a] = false;
        if (!x->ok[a])
            continue;
        const tl_expr *outer, *inner;
        take_apart(x->arena, indices[a], x->inner, &outer, &inner);
        tl_range range = tl_expr_range(inner);
        if (range.min == INT64_MIN || range.max == INT64_MAX ||
            (x->any && !tl_expr_equal(outer, x->outer[a]))) {
            x->ok[a] = false;
            continue;
        }
        if (!x->any || range.min < x->min[a])
            x->min[a] = range.min;
        if (!x->any || range.max + extent - 1 > x->max[a])
            x->max[a] = range.max + extent - 1;
        x->outer[a] = outer;
    }
    x->any = true;
    return true;
}

static bool see(const tl_expr *const *indices, void *context)
{
    return see_box(indices, NULL, context);
}

static bool see_region(const tl_region *region, void *context)
{
    return see_box(region->begin, region->extent, context);
}

static const tl_expr *const *rebase(tl_arena *arena, const tl_expr *const *indices, void *context)
{
    const axes *x = context;
    const tl_expr **out = TL_NEW_ARRAY(arena, const tl_expr *, x->rank);
    for (int a = 0; a < x->rank; a++) {
        out[a] = indices[a];
        if (!x->ok[a])
            continue;
        const tl_expr *outer, *inner;
        take_apart(arena, indices[a], x->inner, &outer, &inner);
        out[a] = tl_addi(arena, inner, -x->min[a]);
    }
    return out;
}

/* Whether an axis tells the iterations of a loop apart: every index of it is n times the variable, and less than n. */
typedef struct {
    tl_arena *arena;
    const tl_var *var;
    int axis;
    bool apart;
    int64_t step, min, max;
} turns;

static bool see_index(const tl_expr *index, int64_t extent, turns *t)
{
    int64_t step = 0;
    const tl_expr *rest = NULL;
    t->apart = t->apart && !tl_expr_has_load(index) &&
               tl_affine_in(t->arena, index, t->var, &step, &rest) && step > 0 &&
               (t->step == 0 || t->step == step);
    if (!t->apart)
        return false;
    tl_range range = tl_expr_range(rest);
    t->min = t->step == 0 || range.min < t->min ? range.min : t->min;
    t->max = t->step == 0 || range.max + extent - 1 > t->max ? range.max + extent - 1 : t->max;
    t->step = step;
    t->apart = range.min != INT64_MIN && range.max != INT64_MAX;
    return t->apart;
}

static bool see_turn(const tl_expr *const *indices, void *context)
{
    turns *t = context;
    return see_index(indices[t->axis], 1, t);
}

static bool see_turn_of_region(const tl_region *region, void *context)
{
    turns *t = context;
    int64_t extent;
    t->apart = t->apart && tl_const_int(region->extent[t->axis], &extent);
    return t->apart && see_index(region->begin[t->axis], extent, t);
}

static bool takes_turns(tl_arena *arena, const tl_stmt *loop, const tl_buffer *buffer)
{
    assert(loop->kind == TL_STMT_LOOP);
    for (int a = 0; a < buffer->rank; a++) {
        turns t = { .arena = arena, .var = loop->u.loop.var, .axis = a, .apart = true };
        tl_visit_accesses(loop->u.loop.body, buffer, see_turn, &t);
        tl_visit_regions(loop->u.loop.body, buffer, see_turn_of_region, &t);
        if (t.apart && t.step > 0 && t.max - t.min < t.step)
            return true;
    }
    return false;
}

/* The part that touches the buffer, when it is but one. */
static const tl_stmt *only_part(const tl_stmt *seq, const tl_buffer *buffer)
{
    const tl_stmt *part = NULL;
    for (int i = 0; i < seq->u.seq.count; i++) {
        if (!tl_stmt_touches(seq->u.seq.items[i], buffer))
            continue;
        if (part != NULL)
            return NULL;
        part = seq->u.seq.items[i];
    }
    return part;
}

/* The variables inside, but for those of loops whose iterations take turns. */
static tl_var_set inner_vars(tl_arena *arena, const tl_stmt *alloc)
{
    const tl_buffer *buffer = alloc->u.alloc.buffer;
    const tl_stmt *at = alloc->u.alloc.body;
    tl_var_set all = tl_stmt_loop_vars(arena, at), outer = { 0 }, inner = { 0 };
    if (buffer->scope != TL_SCOPE_SHARED)
        return all;
    while (at != NULL &&
           (at->kind == TL_STMT_LOOP || at->kind == TL_STMT_ALLOC || at->kind == TL_STMT_SEQ)) {
        if (at->kind == TL_STMT_LOOP && at->u.loop.kind == TL_LOOP_SERIAL &&
            takes_turns(arena, at, buffer))
            tl_var_set_add(arena, &outer, at->u.loop.var);
        at = at->kind == TL_STMT_LOOP    ? at->u.loop.body
             : at->kind == TL_STMT_ALLOC ? at->u.alloc.body
                                         : only_part(at, buffer);
    }
    for (int i = 0; i < all.count; i++)
        if (!tl_var_set_has(&outer, all.vars[i]))
            tl_var_set_add(arena, &inner, all.vars[i]);
    return inner;
}

/* The strides of a shared buffer of that shape; NULL: its rows follow each other. Where the larger one has room behind an axis,
 * strides stay what they were modulo the width of all banks. */
static const int64_t *shrink_strides(tl_arena *arena, const tl_buffer *buffer,
                                     const tl_expr *const *shape)
{
    enum { BANKS = 128 }; /* bytes */
    int64_t *strides = TL_NEW_ARRAY(arena, int64_t, buffer->rank);
    int64_t stride = 1, old_stride = 1, extent = 1;
    int64_t width = BANKS / (int64_t)tl_dtype_size(buffer->dtype);
    if (buffer->strides == NULL)
        return NULL;
    for (int a = buffer->rank - 1; a >= 0; a--) {
        if (buffer->strides[a] > old_stride)
            stride += ((buffer->strides[a] - stride) % width + width) % width;
        strides[a] = stride;
        old_stride = buffer->strides[a];
        (void)tl_const_int(buffer->shape[a], &extent);
        old_stride *= extent;
        (void)tl_const_int(shape[a], &extent);
        stride *= extent;
    }
    return strides;
}

static const tl_stmt *shrink(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    const tl_lowered_kernel *kernel = context;
    if (stmt->kind != TL_STMT_ALLOC)
        return stmt;
    const tl_buffer *buffer = stmt->u.alloc.buffer;
    if (buffer->rank > 16 || (buffer->strides != NULL && buffer->scope != TL_SCOPE_SHARED) ||
        (tl_stmt_calls_with(stmt->u.alloc.body, buffer) && !tl_target_is_gpu(kernel->target)))
        return stmt;
    tl_var_set inner = inner_vars(arena, stmt);
    axes x = { .arena = arena, .inner = &inner, .rank = buffer->rank };
    for (int a = 0; a < x.rank; a++)
        x.ok[a] = true;
    tl_visit_accesses(stmt->u.alloc.body, buffer, see, &x);
    tl_visit_regions(stmt->u.alloc.body, buffer, see_region, &x);
    if (!x.any)
        return stmt;
    const tl_expr **shape = TL_NEW_ARRAY(arena, const tl_expr *, x.rank);
    bool changed = false;
    for (int a = 0; a < x.rank; a++) {
        int64_t old = INT64_MAX, extent = x.ok[a] ? x.max[a] - x.min[a] + 1 : 0;
        shape[a] = buffer->shape[a];
        tl_const_int(buffer->shape[a], &old);
        if (!x.ok[a] || extent > old ||
            (extent == old && x.min[a] == 0 && tl_is_int(x.outer[a], 0))) {
            x.ok[a] = false;
            continue;
        }
        shape[a] = tl_int(arena, extent);
        changed = true;
    }
    if (!changed)
        return stmt;
    tl_buffer *small = tl_buffer_make(arena, buffer->name, buffer->dtype, buffer->role,
                                      buffer->scope, buffer->rank, shape);
    small->swizzle = buffer->swizzle;
    small->strides = shrink_strides(arena, buffer, shape);
    return tl_stmt_alloc(arena, small,
                         tl_remap_accesses(arena, stmt->u.alloc.body, buffer, small, rebase, &x));
}

tl_status tl_shrink_buffers(tl_lowered_kernel *kernel, tl_diag *diag)
{
    (void)diag;
    kernel->body = tl_stmt_rewrite(kernel->arena, kernel->body, shrink, kernel);
    return TL_OK;
}
