/* schedule/check_placement.c: whether a block may stand where it stands, by what it and the blocks before it touch. */
#include <assert.h>
#include <string.h>
#include "runtime/base/array.h"
#include "schedule/dependence.h"
#include "schedule/coverage.h"
#include "schedule/nest.h"

typedef struct {
    const char *block;
    int seen, position;
} position_search;

static bool visit_position(const tl_stmt *stmt, void *context)
{
    position_search *search = context;
    if (stmt->kind == TL_STMT_BLOCK) {
        if (strcmp(stmt->u.block->name, search->block) == 0)
            search->position = search->seen;
        search->seen++;
    }
    return true;
}

int tl_block_position(const tl_stmt *root, const char *block)
{
    position_search search = { block, 0, -1 };
    tl_stmt_visit(root, visit_position, &search);
    return search.position;
}

bool tl_stmt_has_block(const tl_stmt *stmt, const char *block)
{
    return tl_block_position(stmt, block) >= 0;
}

const char *tl_common_loops_text(tl_arena *arena, const tl_stmt *root,
                                 const tl_block *const *blocks, int count)
{
    assert(count > 0);
    tl_path first = { 0, NULL };
    int common = 0;
    for (int i = 0; i < count; i++) {
        tl_path path = tl_path_to_block(arena, root, blocks[i]->name);
        if (i == 0) {
            first = path;
            common = path.count;
        }
        int same = 0;
        while (same < common && same < path.count && path.stmts[same] == first.stmts[same])
            same++;
        common = same;
    }
    const char *text = NULL;
    for (int i = 0; i < common; i++)
        if (first.stmts[i]->kind == TL_STMT_LOOP) {
            const char *name = first.stmts[i]->u.loop.var->name;
            text = text == NULL ? name : tl_arena_format(arena, "%s, %s", text, name);
        }
    return text == NULL ? "none" : text;
}

typedef struct {
    tl_arena *arena;
    int count, capacity;
    const tl_buffer **buffers;
} buffer_list;

static void add_buffer(buffer_list *list, const tl_buffer *buffer)
{
    for (int i = 0; i < list->count; i++)
        if (list->buffers[i] == buffer)
            return;
    TL_ROOM(list->arena, list->buffers, list->count, list->capacity);
    list->buffers[list->count++] = buffer;
}

static bool visit_load(const tl_expr *e, void *context)
{
    if (e->kind == TL_EXPR_LOAD)
        add_buffer(context, e->u.buffer);
    return true;
}

int tl_buffers_read(tl_arena *arena, const tl_block *block, const tl_buffer ***out)
{
    buffer_list list = { .arena = arena };
    for (int i = 0; i < block->store_count; i++) {
        tl_expr_visit(block->stores[i].value, visit_load, &list);
        for (int axis = 0; axis < block->stores[i].buffer->rank; axis++)
            tl_expr_visit(block->stores[i].indices[axis], visit_load, &list);
        if (block->init != NULL)
            tl_expr_visit(block->init[i], visit_load, &list);
    }
    if (block->predicate != NULL)
        tl_expr_visit(block->predicate, visit_load, &list);
    for (int i = 0; block->call != NULL && i < block->call->read_count; i++)
        add_buffer(&list, block->call->reads[i].buffer);
    *out = list.buffers;
    return list.count;
}

static bool is_allocated_on(const tl_path *path, const tl_buffer *buffer)
{
    for (int i = 0; i < path->count; i++)
        if (path->stmts[i]->kind == TL_STMT_ALLOC && path->stmts[i]->u.alloc.buffer == buffer)
            return true;
    return !(buffer->role == TL_ROLE_LOCAL);
}

/* The innermost loop around both ends; -1: none. */
static int innermost_common_loop(const tl_path *a, const tl_path *b)
{
    int loop = -1;
    for (int i = 0; i < a->count && i < b->count && a->stmts[i] == b->stmts[i]; i++)
        if (a->stmts[i]->kind == TL_STMT_LOOP)
            loop = i;
    return loop;
}

/* Whether the block, under the loop, may leave out elements inside the box of what it writes. */
static bool leaves_holes(tl_arena *arena, const tl_stmt *root, const tl_stmt *loop,
                         const tl_block *block, const tl_buffer *buffer)
{
    assert(loop->kind == TL_STMT_LOOP);
    tl_path path = tl_path_to_block(arena, root, block->name);
    int at = tl_path_find_loop(&path, loop->u.loop.var), count;
    if (at < 0)
        return false;
    const tl_free_var *inside = tl_path_loops(arena, &path, at + 1, &count);
    const tl_expr **bound = TL_NEW_ARRAY(arena, const tl_expr *, buffer->rank);
    for (int i = 0; i < block->store_count; i++) {
        if (block->stores[i].buffer != buffer)
            continue;
        for (int axis = 0; axis < buffer->rank; axis++)
            bound[axis] = tl_block_bind(arena, block, block->stores[i].indices[axis]);
        if (!tl_is_dense(arena, bound, buffer->rank, inside, count))
            return true;
    }
    return false;
}

static tl_status check_read(tl_schedule *s, const char *prim, const tl_stmt *root,
                            const tl_path *path, const char *block, const tl_buffer *buffer,
                            tl_diag *diag)
{
    assert(path->count > 0 && path->stmts[path->count - 1]->kind == TL_STMT_BLOCK);
    const tl_block *placed = path->stmts[path->count - 1]->u.block;
    const tl_block **writers;
    int count = tl_writers_of(s->arena, root, buffer, &writers), shared = -1, others = 0;
    for (int i = 0; i < count; i++) {
        if (strcmp(writers[i]->name, block) == 0)
            continue;
        if (tl_block_position(root, writers[i]->name) > tl_block_position(root, block))
            return tl_refuse(diag, prim, block,
                             "it reads %s, which block %s writes only after the new place",
                             buffer->name, writers[i]->name);
        tl_path other = tl_path_to_block(s->arena, root, writers[i]->name);
        int loop = innermost_common_loop(path, &other);
        if (loop > shared)
            shared = loop;
        others++;
    }
    if (others == 0 || shared < 0)
        return TL_OK;

    const tl_stmt *loop = path->stmts[shared];
    tl_box reads, writes;
    if (!tl_box_at(s->arena, loop->u.loop.body, buffer, TL_BOX_READS, block, &reads))
        return TL_OK;
    for (int i = 0; i < count; i++) {
        const tl_expr *narrow = tl_narrowing_condition(s->arena, writers[i], placed);
        if (narrow != NULL && tl_stmt_has_block(loop, writers[i]->name))
            return tl_refuse(
                diag, prim, block,
                "it reads %s, of which block %s under the same loop %s leaves out what "
                "%s says: split that block's loops after the move",
                buffer->name, writers[i]->name, loop->u.loop.var->name,
                tl_expr_text(s->arena, narrow));
        if (leaves_holes(s->arena, root, loop, writers[i], buffer))
            return tl_refuse(diag, prim, block,
                             "it reads %s, of which block %s under the same loop %s writes what is "
                             "no box that can be told",
                             buffer->name, writers[i]->name, loop->u.loop.var->name);
    }
    if (tl_box_at(s->arena, loop->u.loop.body, buffer, TL_BOX_WRITES, NULL, &writes) &&
        tl_box_covers(s->arena, &writes, &reads))
        return TL_OK;
    return tl_refuse(diag, prim, block,
                     "in one iteration of loop %s it would read more of %s than is written there: "
                     "move the writer of %s further out first",
                     loop->u.loop.var->name, buffer->name, buffer->name);
}

/* Whether instances of the block store to the same element in turns, as rolling_buffer and software_pipeline make
 * them: what is there is there for a while only. */
static bool takes_turns(tl_arena *arena, const tl_block *block, const tl_buffer *buffer)
{
    tl_free_var *iters = TL_NEW_ARRAY(arena, tl_free_var, block->iter_count);
    int count = 0;
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind != TL_ITER_REDUCE)
            iters[count++] = (tl_free_var){ block->iters[i].var, block->iters[i].extent };
    for (int i = 0; i < block->store_count; i++)
        if (block->stores[i].buffer == buffer && buffer->role == TL_ROLE_LOCAL &&
            !tl_is_injective(arena, block->stores[i].indices, buffer->rank, iters, count))
            return true;
    return false;
}

static tl_status check_turns(tl_schedule *s, const char *prim, const tl_stmt *root,
                             const char *block, const tl_buffer *buffer, tl_diag *diag)
{
    const tl_block **writers;
    int count = tl_writers_of(s->arena, root, buffer, &writers);
    for (int i = 0; i < count; i++)
        if (takes_turns(s->arena, writers[i], buffer))
            return tl_refuse(diag, prim, block,
                             "elements of %s, which it touches, take turns (block %s stores there "
                             "again and again): move blocks before rolling_buffer and "
                             "software_pipeline",
                             buffer->name, writers[i]->name);
    return TL_OK;
}

/* Whether iterations of the loop write an element in turns. */
static bool writes_again(tl_arena *arena, const tl_stmt *loop, const tl_block *block,
                         const tl_buffer *buffer)
{
    tl_dependences d = tl_dependences_under(arena, loop);
    for (int i = 0; i < d.access_count; i++) {
        const tl_access *a = &d.accesses[i];
        if (a->buffer != buffer || !a->writes || strcmp(a->block->name, block->name) != 0)
            continue;
        tl_pins pins = tl_pins_of_elements(&d, a, a);
        if (!tl_pins_var(&pins, loop->u.loop.var))
            return true;
    }
    return false;
}

/* Whether an element may have another value in each iteration of the loop: a sum that goes on, or what is computed from
 * one. What depends on spatial iters alone is the same whenever it is written. Writes of `but` do not count. */
static bool changes_under(tl_arena *arena, const tl_stmt *loop, const tl_buffer *buffer,
                          const tl_block *but, int depth)
{
    assert(loop->kind == TL_STMT_LOOP && depth >= 0);
    enum { DEEPEST = 16 };
    const tl_block **writers;
    int count = tl_writers_of(arena, loop, buffer, &writers);
    for (int i = 0; i < count; i++) {
        const tl_iter *iter;
        const tl_buffer **inputs;
        if (strcmp(writers[i]->name, but->name) == 0)
            continue;
        bool goes_on =
            (tl_loop_drives(writers[i], loop->u.loop.var, &iter) & ~TL_DRIVES_SPATIAL) != 0;
        if (!goes_on && !writes_again(arena, loop, writers[i], buffer))
            continue;
        if (goes_on || depth == DEEPEST || tl_block_reads_buffer(writers[i], buffer))
            return true;
        int input_count = tl_buffers_read(arena, writers[i], &inputs);
        for (int k = 0; k < input_count; k++)
            if (changes_under(arena, loop, inputs[k], but, depth + 1))
                return true;
    }
    return false;
}

tl_status tl_check_leaves(tl_schedule *s, const char *prim, const tl_block *block,
                          const tl_path *old, const tl_path *place, tl_diag *diag)
{
    const tl_buffer **buffers;
    int count = tl_buffers_read(s->arena, block, &buffers);
    for (int i = 0; i < old->count; i++) {
        const tl_stmt *loop = old->stmts[i];
        if (loop->kind != TL_STMT_LOOP || tl_path_find_loop(place, loop->u.loop.var) >= 0)
            continue;
        for (int k = 0; k < count; k++)
            if (changes_under(s->arena, loop, buffers[k], block, 0))
                return tl_refuse(diag, prim, block->name,
                                 "it reads %s, which has other values in every iteration of loop "
                                 "%s, and would leave that loop",
                                 buffers[k]->name, loop->u.loop.var->name);
    }
    return TL_OK;
}

bool tl_keeps_on_the_way(tl_schedule *s, const char *block, const tl_stmt *loop,
                         const tl_buffer *buffer)
{
    tl_path from = tl_path_to_block(s->arena, s->program->body, block);
    tl_path to = tl_path_to_loop(s->arena, s->program->body, loop->u.loop.var);
    int common = 0;
    while (common + 1 < from.count && common + 1 < to.count &&
           from.stmts[common + 1] == to.stmts[common + 1])
        common++;
    if (common + 1 >= from.count || common + 1 >= to.count ||
        from.stmts[common]->kind != TL_STMT_SEQ)
        return false;
    const tl_stmt *seq = from.stmts[common];
    int ends = 0;
    for (int i = 0; i < seq->u.seq.count && ends < 2; i++) {
        const tl_stmt *item = seq->u.seq.items[i];
        const tl_block **writers;
        ends += item == from.stmts[common + 1];
        ends += item == to.stmts[common + 1];
        if (ends > 0 && tl_writers_of(s->arena, item, buffer, &writers) > 0)
            return false;
    }
    return true;
}

/* The loops of `path` inside of those that it shares with `other`. */
static const tl_free_var *loops_of_its_own(tl_schedule *s, const tl_path *path,
                                           const tl_path *other, int *count)
{
    int other_count, shared = 0;
    const tl_free_var *own = tl_path_loops(s->arena, path, 0, count);
    const tl_free_var *others = tl_path_loops(s->arena, other, 0, &other_count);
    while (shared < *count && shared < other_count && own[shared].var == others[shared].var)
        shared++;
    *count -= shared;
    return own + shared;
}

bool tl_runs_no_more(tl_schedule *s, const tl_stmt *root, const char *block)
{
    tl_arena *arena = s->arena;
    tl_path from = tl_path_to_block(arena, s->program->body, block);
    tl_path to = tl_path_to_block(arena, root, block);
    const tl_block *before = from.stmts[from.count - 1]->u.block;
    const tl_block *after = to.stmts[to.count - 1]->u.block;
    int from_count, to_count;
    const tl_free_var *from_loops = loops_of_its_own(s, &from, &to, &from_count);
    const tl_free_var *to_loops = loops_of_its_own(s, &to, &from, &to_count);
    for (int k = 0; k < before->iter_count; k++) {
        tl_span old = tl_span_of(arena, before->iters[k].binding, from_loops, from_count);
        tl_span new = tl_span_of(arena, after->iters[k].binding, to_loops, to_count);
        const tl_expr *last = tl_addi(arena, before->iters[k].extent, -1); /* of the domain */
        if (old.min == NULL || new.min == NULL ||
            (!tl_prove_le(arena, old.min, new.min) &&
             !tl_prove_le(arena, old.min, tl_int(arena, 0))) ||
            (!tl_prove_le(arena, new.max, old.max) && !tl_prove_le(arena, last, old.max)))
            return false;
    }
    return true;
}

tl_status tl_check_placed(tl_schedule *s, const char *prim, const tl_stmt *root, const char *block,
                          const tl_stmt *moved_to, tl_diag *diag)
{
    tl_path path = tl_path_to_block(s->arena, root, block);
    tl_path old = tl_path_to_block(s->arena, s->program->body, block);
    assert(path.count > 0);
    const tl_block *placed = path.stmts[path.count - 1]->u.block;
    const tl_buffer **buffers;
    int count = tl_buffers_read(s->arena, placed, &buffers);
    TL_TRY(tl_check_leaves(s, prim, placed, &old, &path, diag));
    for (int i = 0; i < count; i++) {
        if (!is_allocated_on(&path, buffers[i]))
            return tl_refuse(diag, prim, block,
                             "%s, which it reads, is not visible in the new place",
                             buffers[i]->name);
        if (moved_to != NULL && tl_keeps_on_the_way(s, block, moved_to, buffers[i]))
            continue;
        TL_TRY(check_turns(s, prim, root, block, buffers[i], diag));
        TL_TRY(check_read(s, prim, root, &path, block, buffers[i], diag));
    }
    for (int i = 0; i < placed->store_count; i++)
        TL_TRY(check_turns(s, prim, root, block, placed->stores[i].buffer, diag));
    for (int i = 0; i < placed->store_count; i++)
        if (!is_allocated_on(&path, placed->stores[i].buffer))
            return tl_refuse(diag, prim, block,
                             "%s, which it writes, is not visible in the new place",
                             placed->stores[i].buffer->name);
    return TL_OK;
}

tl_status tl_settle(tl_schedule *s, const char *prim, const tl_stmt *root, const char *block,
                    tl_diag *diag)
{
    root = tl_sink_allocs(s->arena, root);
    tl_path path = tl_path_to_block(s->arena, root, block);
    assert(path.count > 0);
    for (int i = 0; i < path.count; i++) {
        const tl_stmt *loop = path.stmts[i];
        tl_access a, b;
        if (loop->kind == TL_STMT_LOOP && loop->u.loop.kind == TL_LOOP_PARALLEL &&
            !tl_loop_is_independent(s->arena, loop, false, &a, &b))
            return tl_refuse(diag, prim, block,
                             "iterations of the parallel loop %s would touch the same elements of "
                             "%s: make the loop parallel after the move, or take a loop outside it",
                             loop->u.loop.var->name, a.buffer->name);
    }
    tl_schedule_set_body(s, root);
    return TL_OK;
}
