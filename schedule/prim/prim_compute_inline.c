/* schedule/prim/prim_compute_inline.c: compute_inline(block)
 *
 *     alloc T                                for i in 0..n
 *     for i in 0..n                            C[i] = max(A[i + 1]*2, 0)
 *       T[i] = A[i]*2               ->
 *     for i in 0..n
 *       C[i] = max(T[i + 1], 0)
 *
 * Every load of the block's result becomes the value stored there; the block, its buffer and alloc are gone. Loads
 * under a select stay under it.
 *
 * Requires  a block with spatial iters, one assigning store and no predicate, whose indices are its iters, each once;
 *           the result a local buffer that no other block writes and no opaque block reads; nothing that the block
 *           reads is written between it and its readers, and all of it is visible to them; no reader's expression becomes
 *           large (expression_size.c).
 * Keeps     every value that is read. */
#include <assert.h>
#include <string.h>
#include "schedule/nest.h"

#define PRIM "compute_inline"

typedef struct {
    tl_arena *arena;
    const tl_block *block;
    const tl_buffer *buffer;
} inlining;

/* The iter that index `axis` of the store is, -1: none (a constant 0 on an axis of extent 1). */
static int iter_of_axis(const tl_block *block, int axis)
{
    const tl_expr *index = block->stores[0].indices[axis];
    for (int i = 0; i < block->iter_count; i++)
        if (index->kind == TL_EXPR_VAR && index->u.var == block->iters[i].var)
            return i;
    return -1;
}

static tl_status check_store(tl_schedule *s, const tl_block *block, tl_diag *diag)
{
    assert(block->store_count > 0);
    const tl_buffer *buffer = block->stores[0].buffer;
    for (int i = 0; i < block->iter_count; i++) {
        int uses = 0;
        for (int axis = 0; axis < buffer->rank; axis++)
            uses += iter_of_axis(block, axis) == i;
        if (uses != 1 && !tl_is_int(block->iters[i].extent, 1))
            return tl_refuse(diag, PRIM, block->name,
                             "its iter %s is an index of %s %d times and must be one once, so that "
                             "a reader's index tells it",
                             block->iters[i].var->name, buffer->name, uses);
    }
    for (int axis = 0; axis < buffer->rank; axis++)
        if (iter_of_axis(block, axis) < 0 && !tl_is_int(block->stores[0].indices[axis], 0))
            return tl_refuse(diag, PRIM, block->name,
                             "index %d of its store, %s, is not one of its iters", axis,
                             tl_expr_text(s->arena, block->stores[0].indices[axis]));
    return TL_OK;
}

static tl_status check_block(tl_schedule *s, const tl_block *block, tl_diag *diag)
{
    if (block->call != NULL)
        return tl_refuse(diag, PRIM, block->name, "it calls the intrinsic %s", block->call->name);
    if (block->combiner != TL_COMBINER_NONE)
        return tl_refuse(diag, PRIM, block->name,
                         "it is a reduction (%s), which cannot be repeated in every reader; "
                         "compute_at moves it",
                         tl_combiner_infos[block->combiner].text);
    if (block->store_count != 1)
        return tl_refuse(diag, PRIM, block->name, "it has %d stores and must have one",
                         block->store_count);
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind != TL_ITER_SPATIAL)
            return tl_refuse(diag, PRIM, block->name, "its iter %s is not spatial",
                             block->iters[i].var->name);
    tl_nest nest = { .block = block };
    nest.path = tl_path_to_block(s->arena, s->program->body, block->name);
    if (nest.path.count == 0)
        return tl_refuse(diag, PRIM, block->name,
                         "it is in the prepare part; only blocks of the body are inlined");
    const tl_buffer *buffer = block->stores[0].buffer;
    if (buffer->role != TL_ROLE_LOCAL)
        return tl_refuse(diag, PRIM, block->name,
                         "it writes %s, an argument of the kernel, which must exist", buffer->name);
    const tl_expr **conjuncts;
    int count = tl_conjuncts(s->arena, block->predicate, &conjuncts);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < block->iter_count; k++)
            if (tl_expr_uses_var(conjuncts[i], block->iters[k].var))
                return tl_refuse(diag, PRIM, block->name,
                                 "its predicate %s leaves elements out; say it as a select",
                                 tl_expr_text(s->arena, conjuncts[i]));
    return check_store(s, block, diag);
}

static bool is_visible_to(const tl_path *path, const tl_buffer *buffer)
{
    if (buffer->role != TL_ROLE_LOCAL)
        return true;
    for (int i = 0; i < path->count; i++)
        if (path->stmts[i]->kind == TL_STMT_ALLOC && path->stmts[i]->u.alloc.buffer == buffer)
            return true;
    return false;
}

static tl_status check_readers(tl_schedule *s, const tl_block *block, tl_diag *diag)
{
    const tl_stmt *body = s->program->body;
    const tl_buffer *buffer = block->stores[0].buffer, **inputs;
    const tl_block **writers, **readers;
    int count = tl_writers_of(s->arena, body, buffer, &writers);
    for (int i = 0; i < count; i++)
        if (writers[i] != block)
            return tl_refuse(diag, PRIM, block->name, "%s is also written by block %s",
                             buffer->name, writers[i]->name);
    int reader_count = tl_readers_of(s->arena, body, buffer, &readers);
    if (reader_count == 0)
        return tl_refuse(diag, PRIM, block->name, "no block reads %s", buffer->name);
    int input_count = tl_buffers_read(s->arena, block, &inputs);

    for (int i = 0; i < reader_count; i++) {
        if (readers[i] == block)
            return tl_refuse(diag, PRIM, block->name, "it reads its own result %s", buffer->name);
        if (readers[i]->call != NULL)
            return tl_refuse(diag, PRIM, block->name,
                             "block %s reads %s as a region of the intrinsic %s, which must exist",
                             readers[i]->name, buffer->name, readers[i]->call->name);
        TL_TRY(tl_check_copies(PRIM, block, readers[i], diag));
        tl_path path = tl_path_to_block(s->arena, body, readers[i]->name);
        tl_path old = tl_path_to_block(s->arena, body, block->name);
        TL_TRY(tl_check_leaves(s, PRIM, block, &old, &path, diag));
        for (int k = 0; k < input_count; k++)
            if (!is_visible_to(&path, inputs[k]))
                return tl_refuse(diag, PRIM, block->name,
                                 "%s, which it reads, is not visible at %s", inputs[k]->name,
                                 readers[i]->name);
    }
    int position = tl_block_position(body, block->name);
    for (int k = 0; k < input_count; k++) {
        count = tl_writers_of(s->arena, body, inputs[k], &writers);
        for (int i = 0; i < count; i++)
            if (tl_block_position(body, writers[i]->name) > position)
                return tl_refuse(diag, PRIM, block->name,
                                 "it reads %s, which block %s writes after it", inputs[k]->name,
                                 writers[i]->name);
    }
    return TL_OK;
}

/* A load of the result becomes the value, the iters replaced by the load's indices. */
static const tl_expr *replace_load(tl_arena *arena, const tl_expr *e, void *context)
{
    const inlining *in = context;
    if (e->kind != TL_EXPR_LOAD || e->u.buffer != in->buffer)
        return NULL;
    tl_binding *bindings = TL_NEW_ARRAY(arena, tl_binding, in->block->iter_count);
    for (int i = 0; i < in->block->iter_count; i++)
        bindings[i] = (tl_binding){ in->block->iters[i].var, tl_int(arena, 0) };
    for (int axis = 0; axis < in->buffer->rank; axis++) {
        int iter = iter_of_axis(in->block, axis);
        if (iter >= 0)
            bindings[iter].value = e->args[axis];
    }
    return tl_substitute(arena, in->block->stores[0].value, bindings, in->block->iter_count);
}

static const tl_expr *replace_loads(tl_arena *arena, const tl_expr *e, void *context)
{
    return tl_expr_rewrite(arena, e, replace_load, context);
}

static const tl_stmt *rewrite(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    const inlining *in = context;
    if (stmt->kind == TL_STMT_ALLOC && stmt->u.alloc.buffer == in->buffer)
        return stmt->u.alloc.body;
    if (stmt->kind == TL_STMT_PREFETCH && stmt->u.prefetch.buffer == in->buffer)
        return NULL;
    if (stmt->kind == TL_STMT_BLOCK && tl_block_reads_buffer(stmt->u.block, in->buffer))
        return tl_stmt_map_exprs(arena, stmt, replace_loads, context);
    return stmt;
}

tl_status tl_apply_compute_inline(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                                  int *out_count, tl_diag *diag)
{
    assert(arg_count == 1 && args[0].kind == TL_ARG_BLOCK);
    (void)arg_count;
    (void)out;
    *out_count = 0;
    const tl_block *block;
    TL_TRY(tl_need_block(s, PRIM, args[0].block, &block, diag));
    TL_TRY(check_block(s, block, diag));
    TL_TRY(check_readers(s, block, diag));

    tl_path path = tl_path_to_block(s->arena, s->program->body, block->name);
    const tl_stmt *root = tl_path_replace(s->arena, &path, NULL);
    inlining in = { s->arena, block, block->stores[0].buffer };
    root = tl_stmt_rewrite(s->arena, root, rewrite, &in);
    const tl_block **readers;
    int count = tl_readers_of(s->arena, s->program->body, in.buffer, &readers);
    for (int i = 0; i < count; i++) {
        path = tl_path_to_block(s->arena, root, readers[i]->name);
        TL_TRY(tl_check_inlined(PRIM, block, path.stmts[path.count - 1]->u.block, diag));
        TL_TRY(tl_check_placed(s, PRIM, root, readers[i]->name, NULL, diag));
    }
    tl_schedule_set_body(s, tl_sink_allocs(s->arena, root));
    return TL_OK;
}
