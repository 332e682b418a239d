/* schedule/prim/prim_bulk_copy.c: bulk_copy(loop)
 *
 *     for i in 0..64
 *       for k in 0..64             ->     call bulk_copy(read A[i0*64..i0*64 + 64, k0*64..k0*64 + 64],
 *         A_local[i0*64 + i, k0*64 + k]                  write A_local[i0*64..i0*64 + 64, k0*64..k0*64 + 64])
 *           = A[i0*64 + i, k0*64 + k]
 *
 * The loops from `loop` inwards are one copy of a box, which a GPU's tensor memory accelerator makes by itself
 * (sm_90a), from a buffer in global memory to one in shared memory or back. What of the box lies outside of the buffer that
 * is read counts as zero, and outside of the one that is written nowhere.
 *
 * Requires  only loops and one block from `loop` inwards, the loops serial, of constant extents; the block one store of one
 *           load of the same dtype, or of select(.., load, 0), or of selects in it; each loop moving one index of both buffers,
 *           by one, and the indices in the same order in both; guards and conditions of selects that hold wherever indices are
 *           inside of what is read; one of the buffers in shared memory and the other in global memory, in which boxes begin,
 *           along the last axis, at multiples of 16 bytes.
 * Keeps     every value.
 */
#include <assert.h>
#include "schedule/schedule_private.h"

#define PRIM "bulk_copy"

enum { MOST_LOOPS = 8, PIECE = 16 };

typedef struct {
    const tl_buffer *buffer;
    const tl_expr *const *indices; /* over the iters */
    const tl_expr **bound;         /* over the loops */
    int axis_of[MOST_LOOPS];       /* which each loop moves */
} side;

typedef struct {
    const tl_block *block;
    int loop_count;
    const tl_stmt *loops[MOST_LOOPS];
    int64_t extents[MOST_LOOPS];
    side from, to;
    const tl_expr *condition; /* of the selects, or NULL */
} plan;

static tl_status take_nest(tl_schedule *s, const tl_stmt *loop, plan *p, tl_diag *diag)
{
    const char *name = loop->u.loop.var->name;
    const tl_stmt *stmt = loop;
    for (; stmt->kind == TL_STMT_LOOP; stmt = stmt->u.loop.body) {
        const char *inner = stmt->u.loop.var->name;
        if (stmt->u.loop.kind != TL_LOOP_SERIAL)
            return tl_refuse(diag, PRIM, name, "loop %s is %s; bulk_copy before loops get a kind",
                             inner, tl_loop_kind_infos[stmt->u.loop.kind].text);
        if (p->loop_count == MOST_LOOPS)
            return tl_refuse(diag, PRIM, name, "there are more than %d loops inside", MOST_LOOPS);
        if (!tl_const_int(stmt->u.loop.extent, &p->extents[p->loop_count]))
            return tl_refuse(diag, PRIM, name, "the extent %s of loop %s is not constant",
                             tl_expr_text(s->arena, stmt->u.loop.extent), inner);
        p->loops[p->loop_count++] = stmt;
    }
    if (stmt->kind != TL_STMT_BLOCK)
        return tl_refuse(diag, PRIM, name,
                         "the loops from it inwards run more than one block, or an alloc");
    p->block = stmt->u.block;
    return TL_OK;
}

static side side_of(tl_arena *arena, const tl_block *block, const tl_buffer *buffer,
                    const tl_expr *const *indices)
{
    side x = { buffer, indices, TL_NEW_ARRAY(arena, const tl_expr *, buffer->rank), { 0 } };
    for (int axis = 0; axis < buffer->rank; axis++)
        x.bound[axis] = tl_block_bind(arena, block, indices[axis]);
    return x;
}

static bool is_zero(const tl_expr *e)
{
    return (e->kind == TL_EXPR_INT && e->u.value == 0) ||
           (e->kind == TL_EXPR_FLOAT && e->u.number == 0);
}

static tl_status take_block(tl_schedule *s, plan *p, tl_diag *diag)
{
    const tl_block *block = p->block;
    if (block->call != NULL)
        return tl_refuse(diag, PRIM, block->name, "it calls %s already", block->call->name);
    if (block->combiner != TL_COMBINER_NONE || block->store_count != 1)
        return tl_refuse(diag, PRIM, block->name,
                         "it computes, and only copies can go by themselves");
    const tl_store *store = &block->stores[0];
    const tl_expr *value = store->value;
    for (; value->kind == TL_EXPR_SELECT && is_zero(value->args[2]); value = value->args[1])
        p->condition =
            p->condition == NULL ? value->args[0] : tl_and(s->arena, p->condition, value->args[0]);
    if (value->kind != TL_EXPR_LOAD || value->dtype != store->buffer->dtype)
        return tl_refuse(diag, PRIM, block->name,
                         "what it stores, %s, is no element of a buffer of that dtype",
                         tl_expr_text(s->arena, store->value));
    p->to = side_of(s->arena, block, store->buffer, store->indices);
    p->from = side_of(s->arena, block, value->u.buffer, value->args);
    bool is_load = p->to.buffer->scope == TL_SCOPE_SHARED,
         is_store = p->from.buffer->scope == TL_SCOPE_SHARED;
    const tl_buffer *other = is_load ? p->from.buffer : p->to.buffer;
    if (is_load == is_store || other->scope != TL_SCOPE_GLOBAL)
        return tl_refuse(diag, PRIM, block->name,
                         "it copies from %s in scope %s to %s in scope %s: one of them must be in "
                         "shared memory and the other in global memory",
                         p->from.buffer->name, tl_scope_texts[p->from.buffer->scope],
                         p->to.buffer->name, tl_scope_texts[p->to.buffer->scope]);
    return TL_OK;
}

/* The one axis that the loop moves by one; -1: it is not so. */
static int axis_moved(tl_arena *arena, const side *x, const tl_var *var)
{
    int found = -1;
    int64_t coefficient;
    const tl_expr *rest;
    for (int axis = 0; axis < x->buffer->rank; axis++) {
        if (!tl_expr_uses_var(x->bound[axis], var))
            continue;
        if (found >= 0 || !tl_affine_in(arena, x->bound[axis], var, &coefficient, &rest) ||
            coefficient != 1)
            return -1;
        found = axis;
    }
    return found;
}

static tl_status check_axes(tl_schedule *s, plan *p, tl_diag *diag)
{
    for (int i = 0; i < p->loop_count; i++) {
        const tl_var *var = p->loops[i]->u.loop.var;
        side *const sides[] = { &p->from, &p->to };
        for (int k = 0; k < 2; k++) {
            int axis = p->extents[i] == 1 ? -1 : axis_moved(s->arena, sides[k], var);
            sides[k]->axis_of[i] = axis;
            if (axis < 0 && p->extents[i] != 1)
                return tl_refuse(diag, PRIM, p->block->name,
                                 "loop %s does not move one index of %s by one", var->name,
                                 sides[k]->buffer->name);
            for (int before = 0; before < i && axis >= 0; before++)
                if (sides[k]->axis_of[before] == axis)
                    return tl_refuse(diag, PRIM, p->block->name,
                                     "loops %s and %s move the same index of %s",
                                     p->loops[before]->u.loop.var->name, var->name,
                                     sides[k]->buffer->name);
        }
        for (int before = 0; before < i && p->from.axis_of[i] >= 0; before++)
            if (p->from.axis_of[before] >= 0 && (p->from.axis_of[before] < p->from.axis_of[i]) !=
                                                    (p->to.axis_of[before] < p->to.axis_of[i]))
                return tl_refuse(diag, PRIM, p->block->name,
                                 "loops %s and %s move axes that lie in another order in %s than "
                                 "in %s",
                                 p->loops[before]->u.loop.var->name, var->name,
                                 p->from.buffer->name, p->to.buffer->name);
    }
    return TL_OK;
}

/* To hardware a box that begins elsewhere along a row is an illegal instruction. */
static tl_status check_begin(tl_schedule *s, const plan *p, tl_diag *diag)
{
    const side *global = p->to.buffer->scope == TL_SCOPE_SHARED ? &p->from : &p->to;
    int64_t size = (int64_t)tl_dtype_size(global->buffer->dtype);
    if (global->buffer->rank == 0 || size < 1 || size >= PIECE)
        return TL_OK;
    tl_binding *first = TL_NEW_ARRAY(s->arena, tl_binding, p->loop_count);
    for (int i = 0; i < p->loop_count; i++)
        first[i] = (tl_binding){ p->loops[i]->u.loop.var, tl_int(s->arena, 0) };
    const tl_expr *begin =
        tl_substitute(s->arena, global->bound[global->buffer->rank - 1], first, p->loop_count);
    if (tl_is_multiple(s->arena, begin, PIECE / size))
        return TL_OK;
    return tl_refuse(diag, PRIM, p->block->name,
                     "along a row of %s the box begins at element %s, which may be no multiple of "
                     "16 bytes",
                     global->buffer->name, tl_expr_text(s->arena, begin));
}

/* Whether the condition holds wherever indices are inside of what is read. */
static bool is_inside(tl_arena *arena, const plan *p, const tl_expr *condition)
{
    if (condition->kind == TL_EXPR_AND)
        return is_inside(arena, p, condition->args[0]) && is_inside(arena, p, condition->args[1]);
    for (int axis = 0; axis < p->from.buffer->rank; axis++) {
        const tl_expr *index = p->from.bound[axis],
                      *below = tl_lt(arena, index, p->from.buffer->shape[axis]),
                      *above = tl_le(arena, tl_int(arena, 0), index);
        if (tl_expr_equal(condition, below) || tl_expr_equal(condition, above) ||
            tl_follows_from(arena, condition, below) || tl_follows_from(arena, condition, above))
            return true;
    }
    return false;
}

static tl_status check_guard(tl_schedule *s, const plan *p, const tl_expr *guard, tl_diag *diag)
{
    if (guard == NULL)
        return TL_OK;
    const tl_expr *bound = tl_block_bind(s->arena, p->block, guard);
    if (is_inside(s->arena, p, bound))
        return TL_OK;
    return tl_refuse(diag, PRIM, p->block->name,
                     "its guard %s says more than that the indices are inside of %s",
                     tl_expr_text(s->arena, bound), p->from.buffer->name);
}

static tl_region region_of(tl_arena *arena, const plan *p, const side *x)
{
    const tl_expr **extent = TL_NEW_ARRAY(arena, const tl_expr *, x->buffer->rank);
    for (int axis = 0; axis < x->buffer->rank; axis++)
        extent[axis] = tl_int(arena, 1);
    for (int i = 0; i < p->loop_count; i++)
        if (x->axis_of[i] >= 0)
            extent[x->axis_of[i]] = tl_int(arena, p->extents[i]);
    return (tl_region){ x->buffer, x->indices, extent };
}

/* The block, its iters at the box's first element. */
static const tl_stmt *make_call(tl_arena *arena, const plan *p)
{
    tl_binding *first = TL_NEW_ARRAY(arena, tl_binding, p->loop_count);
    for (int i = 0; i < p->loop_count; i++)
        first[i] = (tl_binding){ p->loops[i]->u.loop.var, tl_int(arena, 0) };
    tl_region *regions = TL_NEW_ARRAY(arena, tl_region, 2);
    regions[0] = region_of(arena, p, &p->from);
    regions[1] = region_of(arena, p, &p->to);
    tl_intrinsic_call *call = TL_NEW(arena, tl_intrinsic_call);
    *call = (tl_intrinsic_call){ .name = "bulk_copy",
                                 .read_count = 1,
                                 .write_count = 1,
                                 .reads = &regions[0],
                                 .writes = &regions[1] };
    tl_iter *iters = TL_NEW_ARRAY(arena, tl_iter, p->block->iter_count);
    for (int k = 0; k < p->block->iter_count; k++) {
        iters[k] = p->block->iters[k];
        iters[k].binding = tl_substitute(arena, iters[k].binding, first, p->loop_count);
    }
    tl_block *block = TL_NEW(arena, tl_block);
    *block = (tl_block){
        .name = p->block->name, .iter_count = p->block->iter_count, .iters = iters, .call = call
    };
    return tl_stmt_block(arena, block);
}

tl_status tl_apply_bulk_copy(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                             int *out_count, tl_diag *diag)
{
    assert(arg_count == 1 && args[0].kind == TL_ARG_LOOP);
    (void)arg_count;
    (void)out;
    (void)out_count;
    const tl_stmt *loop;
    plan p = { 0 };
    TL_TRY(tl_need_loop(s, PRIM, args[0].loop, &loop, diag));
    TL_TRY(take_nest(s, loop, &p, diag));
    TL_TRY(take_block(s, &p, diag));
    TL_TRY(check_axes(s, &p, diag));
    TL_TRY(check_begin(s, &p, diag));
    TL_TRY(check_guard(s, &p, p.block->predicate, diag));
    TL_TRY(check_guard(s, &p, p.condition, diag));
    tl_path path = tl_schedule_path_to_loop(s, loop->u.loop.var);
    if (tl_find_kind_above(&path, TL_LOOP_VECTORIZED))
        return tl_refuse(diag, PRIM, p.block->name, "it is inside a vectorized loop");
    const tl_program *before = s->program;
    tl_schedule_replace(s, &path, make_call(s->arena, &p));
    return tl_check_parallel_loops(s, before, PRIM, diag);
}
