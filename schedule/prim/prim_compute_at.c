/* schedule/prim/prim_compute_at.c: compute_at(block, loop)
 *
 *     for i in 0..100                        for i0 in 0..25
 *       T[i] = f(i)                            for i in 0..6
 *     for i0 in 0..25               ->           where i0*4 + i < 100
 *       for i1 in 0..4                           T[i0*4 + i] = f(i0*4 + i)
 *         C[..] = T[i0*4 + i1] + ..            for i1 in 0..4
 *                 T[i0*4 + i1 + 2]               C[..] = ...
 *
 * The block's own loops are replaced by one an iter over exactly what one iteration of `loop` reads of the result (the
 * smallest box around it); reduce iters go along whole. The allocs of what moved sink with it. Under loops over threads of a
 * GPU block, what goes into shared memory is what all of them read in one iteration of the others: each does all of it,
 * until loops of the block are bound to threads, too, and they share it.
 *
 * Requires  a block whose results are local buffers that no other block writes, with loops of its own that were not
 *           split, fused or given a kind; a loop around every reader, not vectorized; what the block reads is not written
 *           on the way from the old place to the new one, where it runs for no more instances, or else never after the
 *           block, and inside a loop that it shares with a writer it reads only what was written there; no loop around
 *           the new place drives its reduce iters.
 * Keeps     every value that is read. Instances that no reader needs are gone; those that several iterations need
 *           (a halo) run in each of them. */
#include <assert.h>
#include "schedule/nest.h"

#define PRIM "compute_at"

/* The readers of all results of the block, itself left out; one may appear twice. */
static int find_readers(tl_schedule *s, const tl_block *block, const tl_block ***out)
{
    int total = 0;
    *out = NULL;
    for (int i = 0; i < block->store_count; i++) {
        const tl_block **readers;
        int count = tl_readers_of(s->arena, s->program->body, block->stores[i].buffer, &readers);
        const tl_block **all = TL_NEW_ARRAY(s->arena, const tl_block *, total + count);
        for (int k = 0; k < total; k++)
            all[k] = (*out)[k];
        for (int k = 0; k < count; k++)
            if (readers[k] != block)
                all[total++] = readers[k];
        *out = all;
    }
    return total;
}

static tl_status check_results(tl_schedule *s, const tl_block *block, tl_diag *diag)
{
    for (int i = 0; i < block->store_count; i++) {
        const tl_buffer *buffer = block->stores[i].buffer;
        if (buffer->role != TL_ROLE_LOCAL)
            return tl_refuse(diag, PRIM, block->name,
                             "it writes %s, an argument of the kernel, which must be complete: "
                             "only blocks that write local buffers move; cache_write(%s, ...) "
                             "makes one",
                             buffer->name, block->name);
        const tl_block **writers;
        int count = tl_writers_of(s->arena, s->program->body, buffer, &writers);
        for (int k = 0; k < count; k++)
            if (writers[k] != block)
                return tl_refuse(diag, PRIM, block->name,
                                 "%s is also written by block %s; only the one writer of a buffer "
                                 "moves",
                                 buffer->name, writers[k]->name);
    }
    return TL_OK;
}

/* Every buffer that the block reads keeps, up to the new place, the value it had before it. `loop`: NULL when it reads more
 * there. */
static tl_status check_inputs(tl_schedule *s, const tl_block *block, const tl_stmt *loop,
                              tl_diag *diag)
{
    assert(loop == NULL || loop->kind == TL_STMT_LOOP);
    const tl_buffer **buffers;
    int count = tl_buffers_read(s->arena, block, &buffers);
    int position = tl_block_position(s->program->body, block->name);
    for (int i = 0; i < count; i++) {
        const tl_block **writers;
        if (loop != NULL && tl_keeps_on_the_way(s, block->name, loop, buffers[i]))
            continue;
        int writer_count = tl_writers_of(s->arena, s->program->body, buffers[i], &writers);
        for (int k = 0; k < writer_count; k++)
            if (tl_block_position(s->program->body, writers[k]->name) > position)
                return tl_refuse(diag, PRIM, block->name,
                                 "it reads %s, which block %s writes after it", buffers[i]->name,
                                 writers[k]->name);
    }
    return TL_OK;
}

static tl_status check_loop(tl_schedule *s, const tl_block *block, const tl_stmt *loop,
                            const tl_block *const *readers, int count, tl_diag *diag)
{
    const char *name = loop->u.loop.var->name;
    if (count == 0)
        return tl_refuse(diag, PRIM, block->name, "no block reads %s",
                         block->stores[0].buffer->name);
    if (loop->u.loop.kind == TL_LOOP_VECTORIZED)
        return tl_refuse(diag, PRIM, block->name,
                         "loop %s is vectorized; a block moves under a loop outside it", name);
    for (int i = 0; i < count; i++)
        if (!tl_stmt_has_block(loop->u.loop.body, readers[i]->name))
            return tl_refuse(diag, PRIM, block->name,
                             "block %s reads its result outside loop %s; loops around all readers: "
                             "%s",
                             readers[i]->name, name,
                             tl_common_loops_text(s->arena, s->program->body, readers, count));
    return TL_OK;
}

/* What runs under a loop, for shared memory with the loops over threads that stand around it: their threads all read it. */
static const tl_stmt *readers_under(tl_arena *arena, const tl_block *block, const tl_path *place)
{
    const tl_stmt *under = place->stmts[place->count - 1]->u.loop.body;
    bool is_shared = false;
    for (int i = 0; i < block->store_count; i++)
        is_shared = is_shared || block->stores[i].buffer->scope == TL_SCOPE_SHARED;
    for (int i = place->count - 1; i >= 0 && is_shared; i--)
        if (place->stmts[i]->kind == TL_STMT_LOOP &&
            tl_is_thread_kind(place->stmts[i]->u.loop.kind))
            under = tl_stmt_with_body(arena, place->stmts[i], under);
    return under;
}

/* What the iters must run over so that all that is read at the place is there. */
static tl_span *needed(tl_arena *arena, const tl_block *block, const tl_path *place)
{
    assert(place->count > 0 && place->stmts[place->count - 1]->kind == TL_STMT_LOOP);
    const tl_stmt *under = readers_under(arena, block, place);
    int n = block->iter_count;
    tl_span *spans = TL_NEW_ARRAY(arena, tl_span, n), *one = TL_NEW_ARRAY(arena, tl_span, n);
    bool first = true;
    for (int i = 0; i < block->store_count; i++) {
        tl_box box;
        if (!tl_box_at(arena, under, block->stores[i].buffer, TL_BOX_READS, NULL, &box))
            continue;
        tl_iters_in_box(arena, block, block->stores[i].indices, &box, one);
        for (int k = 0; k < n; k++)
            spans[k] = first ? one[k] : tl_span_union(arena, spans[k], one[k]);
        first = false;
    }
    return spans;
}

/* A reduction starts and ends within one iteration of every loop around the new place. */
static tl_status check_whole_sum(const tl_block *block, const tl_path *place, tl_diag *diag)
{
    for (int k = 0; k < block->iter_count; k++)
        for (int i = 0; i < place->count && block->iters[k].kind == TL_ITER_REDUCE; i++)
            if (place->stmts[i]->kind == TL_STMT_LOOP &&
                tl_expr_uses_var(block->iters[k].binding, place->stmts[i]->u.loop.var))
                return tl_refuse(
                    diag, PRIM, block->name,
                    "its reduce iter %s is driven by loop %s, around the old place and "
                    "the new one: what goes on from one iteration to the next cannot "
                    "be computed where it is read",
                    block->iters[k].var->name, place->stmts[i]->u.loop.var->name);
    return TL_OK;
}

tl_status tl_apply_compute_at(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                              int *out_count, tl_diag *diag)
{
    assert(arg_count == 2 && args[0].kind == TL_ARG_BLOCK && args[1].kind == TL_ARG_LOOP);
    (void)arg_count;
    (void)out;
    *out_count = 0;
    const tl_block *block;
    const tl_stmt *loop;
    TL_TRY(tl_need_block(s, PRIM, args[0].block, &block, diag));
    TL_TRY(tl_need_loop(s, PRIM, args[1].loop, &loop, diag));

    tl_nest nest;
    TL_TRY(tl_nest_of(s, PRIM, block, &nest, diag));
    TL_TRY(check_results(s, block, diag));
    const tl_block **readers;
    int count = find_readers(s, block, &readers);
    TL_TRY(check_loop(s, block, loop, readers, count, diag));

    tl_path old = tl_path_prefix(&nest.path, nest.top + 1);
    const tl_stmt *root = tl_path_replace(s->arena, &old, NULL);
    tl_path place = tl_path_to_loop(s->arena, root, loop->u.loop.var);
    TL_TRY(check_whole_sum(block, &place, diag));
    const tl_span *spans = needed(s->arena, block, &place);
    const tl_stmt *added = tl_nest_build(s->arena, &nest, spans, &place);
    root = tl_insert_before(s->arena, &place, added, readers, count);
    const tl_stmt *alike = tl_runs_no_more(s, root, block->name) ? loop : NULL;
    TL_TRY(check_inputs(s, block, alike, diag));
    TL_TRY(tl_check_placed(s, PRIM, root, block->name, alike, diag));
    return tl_settle(s, PRIM, root, block->name, diag);
}
