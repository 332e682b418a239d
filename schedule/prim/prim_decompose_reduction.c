/* schedule/prim/prim_decompose_reduction.c: decompose_reduction(block, loop) -> init
 *
 *     for i0 in 0..25                        for i0 in 0..25
 *       for k in 0..64                         for i1_init in 0..4
 *         for i1 in 0..4            ->           C_init: C[i] = 0
 *           C: C[i] = sum(..)                  for k in 0..64
 *                                                for i1 in 0..4
 *                                                  C: C[i] sum= ..
 *
 * The initial values are written just before `loop` by a block NAME_init, under copies of those loops from `loop`
 * inwards that drive spatial iters; loop kinds and annotations are kept.
 *
 * Requires  a reduction with its init and no ordered iter; `loop` around it, no loop outside `loop` driving its reduce
 *           iters, no loop driving reduce and spatial iters together; under `loop` nothing else touches
 *           the result, and no instance runs twice.
 * Keeps     all values: the init block runs for exactly those instances that initialised. */
#include <assert.h>
#include <string.h>
#include "schedule/coverage.h"
#include "schedule/nest.h"

#define PRIM "decompose_reduction"

static bool drives(const tl_block *block, const tl_var *var, bool spatial)
{
    for (int i = 0; i < block->iter_count; i++)
        if ((block->iters[i].kind == TL_ITER_SPATIAL) == spatial &&
            tl_expr_uses_var(block->iters[i].binding, var))
            return true;
    return false;
}

static tl_status check_block(const tl_block *block, const tl_stmt *loop, const tl_path *path,
                             int at, tl_diag *diag)
{
    if (block->call != NULL || block->combiner == TL_COMBINER_NONE)
        return tl_refuse(diag, PRIM, block->name, "it is not a reduction");
    if (!block->has_init)
        return tl_refuse(diag, PRIM, block->name,
                         "it only updates: it was decomposed before, or never had an init");
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_ORDERED)
            return tl_refuse(diag, PRIM, block->name,
                             "its iter %s is ordered, and each of its steps has an init of its "
                             "own; decompose before software_pipeline or rolling_buffer",
                             block->iters[i].var->name);
    if (at < 0) {
        const char *around = NULL;
        for (int i = 0; i < path->count && around == NULL; i++)
            if (path->stmts[i]->kind == TL_STMT_LOOP &&
                drives(block, path->stmts[i]->u.loop.var, false))
                around = path->stmts[i]->u.loop.var->name;
        return tl_refuse(diag, PRIM, block->name,
                         "loop %s is not around it; its outermost reduce loop is %s",
                         loop->u.loop.var->name, around == NULL ? "none" : around);
    }
    for (int i = 0; i < path->count; i++) {
        if (path->stmts[i]->kind != TL_STMT_LOOP)
            continue;
        const tl_var *var = path->stmts[i]->u.loop.var;
        if (!drives(block, var, false))
            continue;
        if (i < at)
            return tl_refuse(diag, PRIM, block->name,
                             "loop %s outside %s drives a reduce iter, so the init would run again "
                             "in each of its iterations; take %s or a loop outside it",
                             var->name, loop->u.loop.var->name, var->name);
        if (drives(block, var, true))
            return tl_refuse(diag, PRIM, block->name,
                             "loop %s drives spatial and reduce iters together; do not fuse them",
                             var->name);
    }
    return TL_OK;
}

/* The init must be able to stand before `loop`: the result is visible there and untouched by others. */
static tl_status check_place(tl_schedule *s, const tl_block *block, const tl_path *path, int at,
                             tl_diag *diag)
{
    assert(at >= 0 && at < path->count);
    const tl_stmt *loop = path->stmts[at];
    for (int i = 0; i < block->store_count; i++) {
        const tl_buffer *buffer = block->stores[i].buffer;
        for (int k = at; k < path->count; k++)
            if (path->stmts[k]->kind == TL_STMT_ALLOC && path->stmts[k]->u.alloc.buffer == buffer)
                return tl_refuse(diag, PRIM, block->name,
                                 "%s is allocated inside loop %s; take a loop inside the alloc",
                                 buffer->name, loop->u.loop.var->name);
        const tl_block **found[2];
        int counts[2] = { tl_readers_of(s->arena, loop, buffer, &found[0]),
                          tl_writers_of(s->arena, loop, buffer, &found[1]) };
        for (int side = 0; side < 2; side++)
            for (int k = 0; k < counts[side]; k++)
                if (found[side][k] != block)
                    return tl_refuse(diag, PRIM, block->name,
                                     "block %s also touches %s under loop %s; take a loop around "
                                     "the reduction alone",
                                     found[side][k]->name, buffer->name, loop->u.loop.var->name);
    }
    return TL_OK;
}

/* Under `loop` every instance runs once: where one runs again, it finds what it added, and no init between. */
static tl_status check_once(tl_schedule *s, const tl_block *block, const tl_path *path, int at,
                            tl_diag *diag)
{
    assert(at >= 0 && at < path->count);
    int count;
    const tl_free_var *loops = tl_path_loops(s->arena, path, at, &count);
    const tl_expr **bindings = TL_NEW_ARRAY(s->arena, const tl_expr *, block->iter_count);
    for (int i = 0; i < block->iter_count; i++)
        bindings[i] = block->iters[i].binding;
    if (!tl_is_injective(s->arena, bindings, block->iter_count, loops, count))
        return tl_refuse(diag, PRIM, block->name,
                         "it is not known to add every term once in one pass through loop %s; take "
                         "a loop inside those that repeat it",
                         path->stmts[at]->u.loop.var->name);
    return TL_OK;
}

/* What the bindings are in the instance that initialises: every reduce loop at 0. */
static tl_status check_start(tl_schedule *s, const tl_block *block, const tl_binding *start,
                             int count, tl_diag *diag)
{
    for (int i = 0; i < block->iter_count; i++) {
        const tl_iter *iter = &block->iters[i];
        const tl_expr *first = tl_substitute(s->arena, iter->binding, start, count);
        if (iter->kind != TL_ITER_SPATIAL && !tl_is_int(first, 0))
            return tl_refuse(diag, PRIM, block->name,
                             "its iter %s starts at %s and not at 0, so it never initialises here",
                             iter->var->name, tl_expr_text(s->arena, first));
    }
    return TL_OK;
}

/* The new block: spatial iters under new names of variables, the stores' indices, the initial values. */
static const tl_stmt *make_init(tl_schedule *s, const tl_block *old, const char *name,
                                const tl_binding *loops, int loop_count)
{
    assert(loop_count >= 0);
    tl_arena *arena = s->arena;
    tl_binding *renamed = TL_NEW_ARRAY(arena, tl_binding, old->iter_count + loop_count);
    tl_iter *iters = TL_NEW_ARRAY(arena, tl_iter, old->iter_count);
    tl_block *init = TL_NEW(arena, tl_block);
    for (int i = 0; i < loop_count; i++)
        renamed[i] = loops[i];
    for (int i = 0; i < old->iter_count; i++) {
        const tl_iter *iter = &old->iters[i];
        const tl_expr *value = tl_int(arena, 0);
        if (iter->kind == TL_ITER_SPATIAL) {
            tl_var *var = tl_var_derive(arena, iter->var, "", iter->extent);
            value = tl_ref(arena, var);
            iters[init->iter_count++] =
                (tl_iter){ var, iter->kind, iter->extent,
                           tl_substitute(arena, iter->binding, loops, loop_count) };
        }
        renamed[loop_count + i] = (tl_binding){ iter->var, value };
    }
    int count = old->iter_count + loop_count;

    tl_store *stores = TL_NEW_ARRAY(arena, tl_store, old->store_count);
    for (int i = 0; i < old->store_count; i++) {
        const tl_buffer *buffer = old->stores[i].buffer;
        const tl_expr **indices = TL_NEW_ARRAY(arena, const tl_expr *, buffer->rank);
        for (int axis = 0; axis < buffer->rank; axis++)
            indices[axis] = tl_substitute(arena, old->stores[i].indices[axis], renamed, count);
        const tl_expr *value = old->init != NULL
                                   ? tl_substitute(arena, old->init[i], renamed, count)
                                   : tl_combiner_identity(arena, old->combiner, buffer->dtype, i);
        stores[i] = (tl_store){ buffer, indices, value };
    }
    init->name = name;
    init->iters = iters;
    if (old->predicate != NULL) {
        init->predicate = tl_substitute(arena, old->predicate, renamed, count);
        if (tl_prove(arena, init->predicate))
            init->predicate = NULL;
    }
    init->store_count = old->store_count;
    init->stores = stores;
    return tl_stmt_block(arena, init);
}

static const tl_stmt *make_update(tl_arena *arena, const tl_block *old)
{
    tl_block *update = TL_NEW(arena, tl_block);
    *update = *old;
    update->has_init = false;
    update->init = NULL;
    return tl_stmt_block(arena, update);
}

/* The same loop over another variable and body. */
static const tl_stmt *copy_loop(tl_arena *arena, const tl_stmt *loop, const tl_var *var,
                                const tl_stmt *body)
{
    tl_stmt *copy = TL_NEW(arena, tl_stmt);
    *copy = *loop;
    copy->u.loop.var = var;
    copy->u.loop.body = body;
    return copy;
}

tl_status tl_apply_decompose_reduction(tl_schedule *s, const tl_arg *args, int arg_count,
                                       tl_arg *out, int *out_count, tl_diag *diag)
{
    assert(arg_count == 2 && args[0].kind == TL_ARG_BLOCK && args[1].kind == TL_ARG_LOOP);
    (void)arg_count;
    const tl_block *block;
    const tl_stmt *loop;
    TL_TRY(tl_need_block(s, PRIM, args[0].block, &block, diag));
    TL_TRY(tl_need_loop(s, PRIM, args[1].loop, &loop, diag));
    tl_path path = tl_schedule_path_to_block(s, block->name);
    int at = tl_path_find_loop(&path, loop->u.loop.var);
    TL_TRY(check_block(block, loop, &path, at, diag));
    TL_TRY(check_place(s, block, &path, at, diag));

    tl_binding *loops = TL_NEW_ARRAY(s->arena, tl_binding, path.count);
    tl_binding *start = TL_NEW_ARRAY(s->arena, tl_binding, path.count);
    const tl_var **copies = TL_NEW_ARRAY(s->arena, const tl_var *, path.count);
    int loop_count = 0, start_count = 0;
    for (int i = at; i < path.count; i++) {
        if (path.stmts[i]->kind != TL_STMT_LOOP)
            continue;
        const tl_var *var = path.stmts[i]->u.loop.var;
        const tl_expr *value = tl_int(s->arena, 0);
        if (drives(block, var, true)) {
            copies[loop_count] =
                tl_var_derive(s->arena, var, "_init", path.stmts[i]->u.loop.extent);
            value = tl_ref(s->arena, copies[loop_count]);
        } else {
            start[start_count++] = (tl_binding){ var, value };
        }
        loops[loop_count++] = (tl_binding){ var, value };
    }
    TL_TRY(check_start(s, block, start, start_count, diag));
    TL_TRY(check_once(s, block, &path, at, diag));

    const char *name = tl_fresh_block_name(s, tl_arena_format(s->arena, "%s_init", block->name));
    const tl_stmt *init = make_init(s, block, name, loops, loop_count);
    for (int i = path.count - 1, k = loop_count - 1; i >= at; i--) {
        if (path.stmts[i]->kind != TL_STMT_LOOP)
            continue;
        if (copies[k] != NULL)
            init = copy_loop(s->arena, path.stmts[i], copies[k], init);
        k--;
    }

    tl_path inside = { path.count - at, path.stmts + at };
    const tl_stmt *with = tl_path_replace(s->arena, &inside, make_update(s->arena, block));
    tl_path prefix = tl_path_prefix(&path, at + 1);
    tl_schedule_replace(s, &prefix, tl_stmt_seq2(s->arena, init, with));
    out[0] = (tl_arg){ .kind = TL_ARG_BLOCK, .block = tl_schedule_name_block(s, name) };
    *out_count = 1;
    return TL_OK;
}
