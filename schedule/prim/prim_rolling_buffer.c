/* schedule/prim/prim_rolling_buffer.c: rolling_buffer(buffer, loop)
 *
 *     for h in 0..n                          alloc T: f32[3, m]
 *       alloc T: f32[n + 2, m]               for h in 0..n
 *       for y in 0..3               ->         for y in 0..3
 *         T: T[h + y] = ..                       T: T[(h + y) % 3] = ..    where h == 0 or h + 2 <= h + y
 *       C: .. T[h] + T[h + 1] + T[h + 2]       C: .. T[h % 3] + T[(h + 1) % 3] + T[(h + 2) % 3]
 *
 * Every iteration of the loop needs a window of the buffer that overlaps the one before: only what is new is computed,
 * and the buffer keeps one window, in which elements take turns.
 *
 * Requires  a local buffer in memory with one writer, of which all accesses are under the loop, which is serial; on
 *           exactly one axis what the writer fills moves with the loop, by a constant of at least 1 that is less than
 *           the window's constant length, without holes; the writer's guards say its domain only; what it reads is,
 *           where it changes under the loop, complete in every iteration.
 * Keeps     every value that is read; the loop's iterations must run in order from then on.
 */
#include <assert.h>
#include <string.h>
#include "schedule/dependence.h"
#include "schedule/coverage.h"
#include "schedule/nest.h"

#define PRIM "rolling_buffer"

typedef struct {
    const tl_buffer *buffer;
    const tl_stmt *loop;
    const tl_block *writer;
    tl_path path; /* to the writer */
    int at;       /* of the loop */
    int axis;
    const tl_expr *begin; /* of the window, over the loop's variable and those outside */
    int64_t window, step;
} plan;

static tl_status check_buffer(tl_schedule *s, const char *name, const tl_buffer *b, tl_diag *diag)
{
    if (b == NULL)
        return tl_refuse(diag, PRIM, name, "there is no such buffer in kernel %s",
                         s->program->name);
    if (b->role != TL_ROLE_LOCAL)
        return tl_refuse(diag, PRIM, name,
                         "the buffer is an argument of the kernel or prepared, "
                         "which is whole; cache_read or cache_write gives a "
                         "local one");
    if (b->scope == TL_SCOPE_REGISTER || tl_scope_threads[b->scope] > 0)
        return tl_refuse(diag, PRIM, name,
                         "it is in scope %s, where elements do not take turns; roll it in global, "
                         "stack or shared",
                         tl_scope_texts[b->scope]);
    if (b->strides != NULL)
        return tl_refuse(diag, PRIM, name, "it has strides: roll it before storage_align");
    return TL_OK;
}

/* Everything that touches the buffer is under the loop, and one plain block writes it. */
static tl_status find_writer(tl_schedule *s, plan *p, tl_diag *diag)
{
    const tl_stmt *body = s->program->body;
    const tl_block **found;
    const char *name = p->buffer->name, *loop = p->loop->u.loop.var->name;
    int count = tl_writers_of(s->arena, body, p->buffer, &found);
    if (count != 1)
        return tl_refuse(diag, PRIM, name, "%d blocks of the body write it; one must", count);
    p->writer = found[0];
    int readers = tl_readers_of(s->arena, body, p->buffer, &found);
    for (int i = 0; i < readers; i++) {
        if (!tl_stmt_has_block(p->loop, found[i]->name))
            return tl_refuse(diag, PRIM, name, "block %s reads it outside of loop %s",
                             found[i]->name, loop);
        if (found[i]->call)
            return tl_refuse(diag, PRIM, name,
                             "block %s takes a region of it for the intrinsic %s, and its elements "
                             "would take turns",
                             found[i]->name, found[i]->call->name);
    }
    if (p->writer->call)
        return tl_refuse(diag, PRIM, name, "the intrinsic %s writes it", p->writer->call->name);
    if (tl_block_reads_buffer(p->writer, p->buffer))
        return tl_refuse(diag, PRIM, name, "its writer %s reads it", p->writer->name);
    if (p->writer->combiner != TL_COMBINER_NONE && !p->writer->has_init)
        return tl_refuse(diag, PRIM, name, "its writer %s only updates it", p->writer->name);
    p->path = tl_path_to_block(s->arena, body, p->writer->name);
    p->at = tl_path_find_loop(&p->path, p->loop->u.loop.var);
    if (p->at < 0)
        return tl_refuse(diag, PRIM, name, "its writer %s is not under loop %s; compute_at(%s, %s)",
                         p->writer->name, loop, p->writer->name, loop);
    const tl_iter *iter;
    if (tl_loop_drives(p->writer, p->loop->u.loop.var, &iter) & ~TL_DRIVES_SPATIAL)
        return tl_refuse(diag, PRIM, name,
                         "loop %s drives iter %s of its writer, which is not "
                         "spatial",
                         loop, iter->var->name);
    for (int i = p->at + 1; i < p->path.count; i++) {
        const tl_stmt *stmt = p->path.stmts[i];
        if (stmt->kind == TL_STMT_LOOP &&
            tl_expr_uses_var(stmt->u.loop.extent, p->loop->u.loop.var))
            return tl_refuse(diag, PRIM, name, "the extent of loop %s depends on loop %s",
                             stmt->u.loop.var->name, loop);
    }
    const tl_expr *narrow = tl_narrowing_condition(s->arena, p->writer, NULL);
    if (narrow)
        return tl_refuse(diag, PRIM, name,
                         "its writer %s leaves out what %s says: roll it before its loops are "
                         "split",
                         p->writer->name, tl_expr_text(s->arena, narrow));
    return TL_OK;
}

static tl_status check_kinds(const plan *p, tl_diag *diag)
{
    const char *name = p->buffer->name;
    if (p->loop->u.loop.kind != TL_LOOP_SERIAL)
        return tl_refuse(diag, PRIM, name,
                         "loop %s is %s, and what one iteration leaves to the next wants a serial "
                         "one",
                         p->loop->u.loop.var->name, tl_loop_kind_infos[p->loop->u.loop.kind].text);
    return TL_OK;
}

/* The axis on which the window moves, by how much, and how long it is. */
static tl_status find_window(tl_schedule *s, plan *p, tl_diag *diag)
{
    const tl_var *var = p->loop->u.loop.var;
    const char *name = p->buffer->name;
    int count;
    const tl_free_var *inside = tl_path_loops(s->arena, &p->path, p->at + 1, &count);
    const tl_store *store = NULL;
    for (int i = 0; i < p->writer->store_count; i++)
        if (p->writer->stores[i].buffer == p->buffer)
            store = &p->writer->stores[i];
    p->axis = -1;
    const tl_expr **bound = TL_NEW_ARRAY(s->arena, const tl_expr *, p->buffer->rank);
    for (int axis = 0; axis < p->buffer->rank; axis++) {
        bound[axis] = tl_block_bind(s->arena, p->writer, store->indices[axis]);
        if (!tl_expr_uses_var(bound[axis], var))
            continue;
        if (p->axis >= 0)
            return tl_refuse(diag, PRIM, name, "axes %d and %d both move with loop %s; one must",
                             p->axis, axis, var->name);
        p->axis = axis;
        tl_span span = tl_span_of(s->arena, bound[axis], inside, count);
        if (span.min == NULL || span.width < 0)
            return tl_refuse(diag, PRIM, name,
                             "how much of axis %d an iteration of loop %s fills "
                             "is no constant",
                             axis, var->name);
        const tl_expr *rest;
        p->begin = span.min;
        p->window = span.width + 1;
        if (!tl_affine_in(s->arena, span.min, var, &p->step, &rest) ||
            !tl_prove_equal(s->arena, tl_addi(s->arena, span.min, span.width), span.max))
            return tl_refuse(diag, PRIM, name, "axis %d does not move by a constant with loop %s",
                             axis, var->name);
        if (p->step < 1 || p->step >= p->window)
            return tl_refuse(diag, PRIM, name,
                             "loop %s moves its window of %lld by %lld: nothing of it stays",
                             var->name, (long long)p->window, (long long)p->step);
    }
    if (p->axis < 0)
        return tl_refuse(diag, PRIM, name, "no axis of what %s writes moves with loop %s",
                         p->writer->name, var->name);
    if (!tl_is_dense(s->arena, bound, p->buffer->rank, inside, count))
        return tl_refuse(diag, PRIM, name,
                         "what %s writes in an iteration of loop %s is no box "
                         "that can be told",
                         p->writer->name, var->name);
    return TL_OK;
}

/* What the writer reads does not change from one iteration to the next. */
static tl_status check_inputs(tl_schedule *s, const plan *p, tl_diag *diag)
{
    const tl_buffer **inputs;
    int count = tl_buffers_read(s->arena, p->writer, &inputs);
    for (int i = 0; i < count; i++) {
        const tl_block **writers;
        int writer_count = tl_writers_of(s->arena, p->loop, inputs[i], &writers);
        for (int k = 0; k < writer_count; k++) {
            const tl_iter *iter;
            int drives = tl_loop_drives(writers[k], p->loop->u.loop.var, &iter);
            if (writer_count > 1 || (drives & ~TL_DRIVES_SPATIAL) ||
                tl_block_reads_buffer(writers[k], inputs[i]))
                return tl_refuse(diag, PRIM, p->buffer->name,
                                 "its writer %s reads %s, which block %s changes under loop %s: "
                                 "what was computed in one iteration may differ in the next",
                                 p->writer->name, inputs[i]->name, writers[k]->name,
                                 p->loop->u.loop.var->name);
        }
    }
    return TL_OK;
}

typedef struct {
    const plan *plan;
    const tl_buffer *rolled;
} rolling;

static const tl_expr *turn(tl_arena *arena, const tl_expr *index, const plan *p)
{
    return tl_floormod_expr(arena, index, tl_int(arena, p->window));
}

static const tl_expr *const *turn_indices(tl_arena *arena, const tl_expr *const *indices,
                                          const plan *p)
{
    const tl_expr **turned = TL_NEW_ARRAY(arena, const tl_expr *, p->buffer->rank);
    for (int axis = 0; axis < p->buffer->rank; axis++)
        turned[axis] = axis == p->axis ? turn(arena, indices[axis], p) : indices[axis];
    return turned;
}

static const tl_expr *roll_load(tl_arena *arena, const tl_expr *e, void *context)
{
    const rolling *r = context;
    if (e->kind != TL_EXPR_LOAD || e->u.buffer != r->plan->buffer)
        return NULL;
    return tl_load(arena, r->rolled, turn_indices(arena, e->args, r->plan));
}

static const tl_expr *roll_loads(tl_arena *arena, const tl_expr *e, void *context)
{
    return tl_expr_rewrite(arena, e, roll_load, context);
}

/* "it is the loop's first iteration, or the element is new" */
static const tl_expr *is_new(tl_arena *arena, const plan *p, const tl_expr *index)
{
    const tl_expr *first = tl_eq(arena, tl_ref(arena, p->loop->u.loop.var), tl_int(arena, 0));
    const tl_expr *from = tl_addi(arena, p->begin, p->window - p->step);
    return tl_or(arena, first, tl_le(arena, from, tl_block_bind(arena, p->writer, index)));
}

static const tl_stmt *roll(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    const rolling *r = context;
    const plan *p = r->plan;
    if (stmt->kind == TL_STMT_ALLOC && stmt->u.alloc.buffer == p->buffer)
        return stmt->u.alloc.body;
    if (stmt->kind == TL_STMT_PREFETCH && stmt->u.prefetch.buffer == p->buffer)
        return NULL;
    if (stmt->kind != TL_STMT_BLOCK)
        return stmt;
    stmt = tl_stmt_map_exprs(arena, stmt, roll_loads, context);
    const tl_block *block = stmt->u.block;
    if (!tl_block_writes_buffer(block, p->buffer))
        return stmt;
    tl_block *copy = tl_block_copy(arena, block);
    tl_store *stores = TL_NEW_ARRAY(arena, tl_store, block->store_count);
    for (int i = 0; i < block->store_count; i++) {
        stores[i] = block->stores[i];
        if (stores[i].buffer != p->buffer)
            continue;
        copy->predicate =
            tl_and(arena, copy->predicate, is_new(arena, p, stores[i].indices[p->axis]));
        stores[i].buffer = r->rolled;
        stores[i].indices = turn_indices(arena, stores[i].indices, p);
    }
    copy->stores = stores;
    return tl_stmt_block(arena, copy);
}

tl_status tl_apply_rolling_buffer(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                                  int *out_count, tl_diag *diag)
{
    assert(arg_count == 2 && args[0].kind == TL_ARG_WORD && args[1].kind == TL_ARG_LOOP);
    (void)arg_count;
    (void)out;
    (void)out_count;
    plan p = { .buffer = tl_program_find_buffer(s->program, args[0].word) };
    TL_TRY(check_buffer(s, args[0].word, p.buffer, diag));
    TL_TRY(tl_need_loop(s, PRIM, args[1].loop, &p.loop, diag));
    TL_TRY(find_writer(s, &p, diag));
    TL_TRY(check_kinds(&p, diag));
    TL_TRY(find_window(s, &p, diag));
    TL_TRY(check_inputs(s, &p, diag));
    if (p.writer->store_count > 1)
        return tl_refuse(diag, PRIM, p.buffer->name, "its writer %s has %d stores", p.writer->name,
                         p.writer->store_count);

    const tl_expr **shape = TL_NEW_ARRAY(s->arena, const tl_expr *, p.buffer->rank);
    for (int axis = 0; axis < p.buffer->rank; axis++)
        shape[axis] = axis == p.axis ? tl_int(s->arena, p.window) : p.buffer->shape[axis];
    tl_buffer *rolled = TL_NEW(s->arena, tl_buffer);
    *rolled = *p.buffer;
    rolled->shape = shape;
    rolling r = { &p, rolled };
    tl_path path = tl_path_prefix(&p.path, p.at + 1);
    const tl_stmt *loop = tl_stmt_rewrite(s->arena, p.loop, roll, &r);
    const tl_stmt *root = tl_path_replace(s->arena, &path, tl_stmt_alloc(s->arena, rolled, loop));
    /* an alloc that stood further out */
    for (int i = 0; i < p.at; i++)
        if (p.path.stmts[i]->kind == TL_STMT_ALLOC && p.path.stmts[i]->u.alloc.buffer == p.buffer)
            root = tl_stmt_rewrite(s->arena, root, roll, &r);
    tl_schedule_set_body(s, root);
    if (rolled->scope == TL_SCOPE_SHARED)
        tl_hoist_shared(s);
    return TL_OK;
}
