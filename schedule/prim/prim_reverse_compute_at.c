/* schedule/prim/prim_reverse_compute_at.c: reverse_compute_at(block, loop)
 *
 *     for i0 in 0..25                        for i0 in 0..25
 *       for k in 0..64                         for k in 0..64
 *         for i1 in 0..4            ->           for i1 in 0..4
 *           T[i0*4 + i1] += ...                    T[i0*4 + i1] += ...
 *     for i in 0..100                          for i in 0..4
 *       C[i] = max(T[i], 0)                      C[i0*4 + i] = max(T[i0*4 + i], 0)
 *
 * The consumer's own loops are replaced by one an iter over exactly what one iteration of `loop` completes.
 *
 * Requires  a block that assigns, all of whose iters are spatial, with loops of its own that were not split, fused or
 *           given a kind; under `loop` (not vectorized) its producers write one dense box an iteration, the boxes of
 *           different iterations apart, and no loop from `loop` outwards drives their reduce iters; the block reads
 *           each producer, which comes before it, at one place an instance; nothing before the block reads or writes its result.
 * Keeps     every instance of the block, each once, after all that it reads. */
#include <assert.h>
#include <string.h>
#include "schedule/coverage.h"
#include "schedule/nest.h"

#define PRIM "reverse_compute_at"

/* Block `other` comes before the consumer and touches its result. */
static tl_status check_untouched(tl_schedule *s, const tl_block *block, const tl_buffer *buffer,
                                 const char *how, const tl_block *const *others, int count,
                                 tl_diag *diag)
{
    int position = tl_block_position(s->program->body, block->name);
    for (int i = 0; i < count; i++)
        if (others[i] != block && tl_block_position(s->program->body, others[i]->name) < position)
            return tl_refuse(diag, PRIM, block->name, "block %s %s %s before it", others[i]->name,
                             how, buffer->name);
    return TL_OK;
}

static tl_status check_block(tl_schedule *s, const tl_block *block, tl_diag *diag)
{
    if (block->combiner != TL_COMBINER_NONE)
        return tl_refuse(diag, PRIM, block->name,
                         "it is a reduction (%s); only a block that assigns moves to its producer",
                         tl_combiner_infos[block->combiner].text);
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind != TL_ITER_SPATIAL)
            return tl_refuse(diag, PRIM, block->name,
                             "its iter %s is not spatial; only independent instances move to their "
                             "producer",
                             block->iters[i].var->name);
    for (int i = 0; i < block->store_count; i++) {
        const tl_buffer *buffer = block->stores[i].buffer;
        const tl_block **others;
        int count = tl_readers_of(s->arena, s->program->body, buffer, &others);
        TL_TRY(check_untouched(s, block, buffer, "reads", others, count, diag));
        count = tl_writers_of(s->arena, s->program->body, buffer, &others);
        TL_TRY(check_untouched(s, block, buffer, "writes", others, count, diag));
    }
    return TL_OK;
}

/* The loops between `loop` and a block under it. */
static int loops_inside(tl_arena *arena, const tl_stmt *loop, const char *block, tl_free_var **out)
{
    const tl_stmt **loops;
    int count = tl_loops_around(arena, loop->u.loop.body, block, &loops);
    *out = TL_NEW_ARRAY(arena, tl_free_var, count);
    for (int i = 0; i < count; i++)
        (*out)[i] = (tl_free_var){ loops[i]->u.loop.var, loops[i]->u.loop.extent };
    return count;
}

/* One iteration of `loop` completes all of a dense box of the buffer, as far as this producer goes. */
static tl_status check_producer(tl_schedule *s, const tl_block *block, const tl_nest *nest,
                                const tl_block *producer, const tl_buffer *buffer,
                                const tl_path *place, tl_diag *diag)
{
    assert(place->count > 0);
    const tl_stmt *loop = place->stmts[place->count - 1];
    for (int i = 0; i < place->count; i++) {
        const tl_stmt *outer = place->stmts[i];
        if (outer->kind != TL_STMT_LOOP || tl_path_find_loop(&nest->path, outer->u.loop.var) >= 0)
            continue;
        for (int k = 0; k < producer->iter_count; k++)
            if (producer->iters[k].kind != TL_ITER_SPATIAL &&
                tl_expr_uses_var(producer->iters[k].binding, outer->u.loop.var))
                return tl_refuse(diag, PRIM, block->name,
                                 "loop %s drives iter %s of block %s, so %s is not complete in one "
                                 "iteration of %s; take a loop outside it",
                                 outer->u.loop.var->name, producer->iters[k].var->name,
                                 producer->name, buffer->name, loop->u.loop.var->name);
    }
    if (producer->call != NULL)
        return tl_refuse(diag, PRIM, block->name,
                         "block %s, which writes %s, calls an intrinsic; its region is not entered",
                         producer->name, buffer->name);

    tl_free_var *inside;
    int inside_count = loops_inside(s->arena, loop, producer->name, &inside);
    for (int i = 0; i < producer->store_count; i++) {
        if (producer->stores[i].buffer != buffer)
            continue;
        const tl_expr **indices = TL_NEW_ARRAY(s->arena, const tl_expr *, buffer->rank);
        for (int axis = 0; axis < buffer->rank; axis++)
            indices[axis] = tl_block_bind(s->arena, producer, producer->stores[i].indices[axis]);
        if (!tl_is_dense(s->arena, indices, buffer->rank, inside, inside_count))
            return tl_refuse(
                diag, PRIM, block->name,
                "what block %s writes of %s in one iteration of loop %s is no box that "
                "can be told",
                producer->name, buffer->name, loop->u.loop.var->name);
    }
    return TL_OK;
}

/* The one load of a buffer in a block; NULL when there are several different ones. */
typedef struct {
    const tl_buffer *buffer;
    const tl_expr *load;
    bool several;
} load_search;

static bool visit_load(const tl_expr *e, void *context)
{
    load_search *search = context;
    if (e->kind == TL_EXPR_LOAD && e->u.buffer == search->buffer) {
        if (search->load != NULL && !tl_expr_equal(search->load, e))
            search->several = true;
        search->load = e;
    }
    return true;
}

static bool same_span(tl_arena *arena, tl_span a, tl_span b)
{
    return tl_prove_equal(arena, a.min, b.min) && tl_prove_equal(arena, a.max, b.max);
}

/* Narrows the spans to what is complete of `buffer`, written under the loop. */
static tl_status take_buffer(tl_schedule *s, const tl_nest *nest, const tl_buffer *buffer,
                             const tl_path *place, tl_span *spans, tl_diag *diag)
{
    assert(place->count > 0 && place->stmts[place->count - 1]->kind == TL_STMT_LOOP);
    const tl_block *block = nest->block, **writers;
    const tl_stmt *loop = place->stmts[place->count - 1];
    const char *name = loop->u.loop.var->name;
    int count = tl_writers_of(s->arena, s->program->body, buffer, &writers);
    for (int i = 0; i < count; i++) {
        if (!tl_stmt_has_block(loop->u.loop.body, writers[i]->name))
            return tl_refuse(diag, PRIM, block->name, "block %s writes %s outside loop %s",
                             writers[i]->name, buffer->name, name);
        if (tl_block_position(s->program->body, writers[i]->name) >
            tl_block_position(s->program->body, block->name))
            return tl_refuse(diag, PRIM, block->name,
                             "block %s writes %s only after it has read it, so it is no consumer "
                             "of that block; compute_at moves it towards its own readers",
                             writers[i]->name, buffer->name);
        TL_TRY(check_producer(s, block, nest, writers[i], buffer, place, diag));
        tl_box one, first;
        (void)tl_box_at(s->arena, loop->u.loop.body, buffer, TL_BOX_WRITES, writers[i]->name, &one);
        (void)tl_box_at(s->arena, loop->u.loop.body, buffer, TL_BOX_WRITES, writers[0]->name,
                        &first);
        for (int axis = 0; axis < buffer->rank; axis++)
            if (!same_span(s->arena, one.axes[axis], first.axes[axis]))
                return tl_refuse(diag, PRIM, block->name,
                                 "blocks %s and %s write different parts of %s in one iteration of "
                                 "loop %s",
                                 writers[0]->name, writers[i]->name, buffer->name, name);
    }

    load_search search = { .buffer = buffer };
    for (int i = 0; i < block->store_count; i++) {
        tl_expr_visit(block->stores[i].value, visit_load, &search);
        for (int axis = 0; axis < block->stores[i].buffer->rank; axis++)
            tl_expr_visit(block->stores[i].indices[axis], visit_load, &search);
    }
    if (search.several || search.load == NULL)
        return tl_refuse(diag, PRIM, block->name,
                         "it reads %s at several places: one iteration of loop %s does not "
                         "complete them together; compute_at the producer into this block instead",
                         buffer->name, name);

    tl_box box;
    (void)tl_box_at(s->arena, loop->u.loop.body, buffer, TL_BOX_WRITES, writers[0]->name, &box);
    tl_span *one = TL_NEW_ARRAY(s->arena, tl_span, block->iter_count);
    tl_iters_in_box(s->arena, block, search.load->args, &box, one);
    for (int k = 0; k < block->iter_count; k++) {
        if (one[k].min == NULL)
            continue;
        if (spans[k].min != NULL && !same_span(s->arena, spans[k], one[k]))
            return tl_refuse(diag, PRIM, block->name,
                             "the buffers that it reads give its iter %s different values in one "
                             "iteration of loop %s",
                             block->iters[k].var->name, name);
        spans[k] = one[k];
    }
    return TL_OK;
}

/* Every instance of the placed block runs once. Loops that were around it before and did not drive it stay out. */
static tl_status check_once(tl_schedule *s, const tl_nest *nest, const tl_stmt *root,
                            const tl_stmt *target, tl_diag *diag)
{
    const tl_block *old = nest->block;
    tl_path path = tl_path_to_block(s->arena, root, old->name);
    const tl_block *block = path.stmts[path.count - 1]->u.block;
    tl_free_var *loops = TL_NEW_ARRAY(s->arena, tl_free_var, path.count);
    int count = 0;
    for (int i = 0; i < path.count; i++) {
        if (path.stmts[i]->kind != TL_STMT_LOOP)
            continue;
        const tl_var *var = path.stmts[i]->u.loop.var;
        bool drove = tl_path_find_loop(&nest->path, var) < 0;
        for (int k = 0; k < old->iter_count; k++)
            drove |= tl_expr_uses_var(old->iters[k].binding, var);
        if (drove)
            loops[count++] = (tl_free_var){ var, path.stmts[i]->u.loop.extent };
    }
    const tl_expr **bindings = TL_NEW_ARRAY(s->arena, const tl_expr *, block->iter_count);
    bool whole = true;
    for (int k = 0; k < block->iter_count; k++) {
        const tl_expr *last = tl_addi(s->arena, block->iters[k].extent, -1);
        bindings[k] = block->iters[k].binding;
        tl_span all = tl_span_of(s->arena, bindings[k], loops, count);
        whole = whole && all.min != NULL && tl_prove_le(s->arena, all.min, tl_int(s->arena, 0)) &&
                tl_prove_le(s->arena, last, all.max);
    }
    if (!tl_is_injective(s->arena, bindings, block->iter_count, loops, count))
        return tl_refuse(diag, PRIM, block->name,
                         "iterations of loop %s (or of one around it) complete parts of its input "
                         "that overlap, so instances would run more than once",
                         target->u.loop.var->name);
    if (!whole || !tl_is_dense(s->arena, bindings, block->iter_count, loops, count))
        return tl_refuse(diag, PRIM, block->name,
                         "what the iterations of loop %s complete is not all that it computes, so "
                         "instances would be lost",
                         target->u.loop.var->name);
    return TL_OK;
}

static const tl_stmt *drop_alloc(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    (void)arena;
    return stmt->kind == TL_STMT_ALLOC && stmt->u.alloc.buffer == context ? stmt->u.alloc.body
                                                                          : stmt;
}

/* The body with the allocs of the block's results around both its old place and the loop. */
static const tl_stmt *raise_allocs(tl_schedule *s, const tl_block *block, const tl_var *loop)
{
    const tl_stmt *root = s->program->body;
    for (int i = 0; i < block->store_count; i++) {
        const tl_buffer *buffer = block->stores[i].buffer;
        tl_path from = tl_path_to_block(s->arena, root, block->name);
        tl_path to = tl_path_to_loop(s->arena, root, loop);
        int shared = 0;
        bool visible = buffer->role != TL_ROLE_LOCAL;
        while (from.stmts[shared] == to.stmts[shared]) {
            visible |= from.stmts[shared]->kind == TL_STMT_ALLOC &&
                       from.stmts[shared]->u.alloc.buffer == buffer;
            shared++;
        }
        if (visible)
            continue;
        tl_path both = tl_path_prefix(&from, shared);
        const tl_stmt *without = tl_stmt_rewrite(s->arena, both.stmts[shared - 1], drop_alloc,
                                                 (void *)(uintptr_t)buffer);
        root = tl_path_replace(s->arena, &both, tl_stmt_alloc(s->arena, buffer, without));
    }
    return root;
}

tl_status tl_apply_reverse_compute_at(tl_schedule *s, const tl_arg *args, int arg_count,
                                      tl_arg *out, int *out_count, tl_diag *diag)
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
    TL_TRY(check_block(s, block, diag));

    tl_path place = tl_path_to_loop(s->arena, s->program->body, loop->u.loop.var);
    if (place.count == 0 || tl_path_find_loop(&nest.path, loop->u.loop.var) >= 0)
        return tl_refuse(diag, PRIM, block->name,
                         "loop %s is around it already; take a loop of its producer",
                         loop->u.loop.var->name);
    if (loop->u.loop.kind == TL_LOOP_VECTORIZED)
        return tl_refuse(diag, PRIM, block->name,
                         "loop %s is vectorized; a block moves under a loop outside it",
                         loop->u.loop.var->name);

    const tl_buffer **buffers;
    int buffer_count = tl_buffers_read(s->arena, block, &buffers), producer_count = 0;
    tl_span *spans = TL_NEW_ARRAY(s->arena, tl_span, block->iter_count);
    const tl_block **producers = NULL;
    for (int i = 0; i < buffer_count; i++) {
        const tl_block **writers, **all;
        int count = tl_writers_of(s->arena, loop->u.loop.body, buffers[i], &writers);
        if (count == 0)
            continue;
        TL_TRY(take_buffer(s, &nest, buffers[i], &place, spans, diag));
        all = TL_NEW_ARRAY(s->arena, const tl_block *, producer_count + count);
        for (int k = 0; k < producer_count + count; k++)
            all[k] = k < producer_count ? producers[k] : writers[k - producer_count];
        producers = all;
        producer_count += count;
    }
    if (producer_count == 0)
        return tl_refuse(diag, PRIM, block->name, "nothing that it reads is written under loop %s",
                         loop->u.loop.var->name);

    const tl_stmt *root = raise_allocs(s, block, loop->u.loop.var);
    tl_path old = tl_path_to_block(s->arena, root, block->name);
    old = tl_path_prefix(&old, old.count - (nest.path.count - nest.top - 1));
    root = tl_path_replace(s->arena, &old, NULL);
    place = tl_path_to_loop(s->arena, root, loop->u.loop.var);
    const tl_stmt *added = tl_nest_build(s->arena, &nest, spans, &place);
    root = tl_insert_after(s->arena, &place, added, producers, producer_count);
    TL_TRY(check_once(s, &nest, root, loop, diag));
    TL_TRY(tl_check_placed(s, PRIM, root, block->name, NULL, diag));
    return tl_settle(s, PRIM, root, block->name, diag);
}
