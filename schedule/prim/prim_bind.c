/* schedule/prim/prim_bind.c: bind(loop, axis)
 *
 *     for i in 0..32         ->       for i in 0..32 threadIdx.x
 *       S(i)                            S(i)                      (iterations are threads of a GPU block)
 *
 * blockIdx.x, .y, .z: iterations are blocks of the grid. threadIdx.x, .y, .z: threads of a block. vthread: the
 * iterations of one thread, interleaved, so that their accesses are strided.
 *
 * A thread loop inside a thread loop of the same axis is the same thread: it stands for `if threadIdx.x == i`. Threads
 * may hand elements of shared buffers from one block to another: place_barriers makes them wait for each other.
 *
 * Requires  a GPU target (or none); a serial loop outside and not inside of parallel and vectorized loops; blocks of
 *           the grid not inside of threads, nor an axis of it inside itself; threads: a constant extent of at most 1024
 *           (z: 64), inside its own axis the same extent; independent iterations that move spatial iters only, which
 *           share no stack or register buffer, and fill shared buffers that other blocks read alike: parts of them come
 *           from a thread loop of their own. threadIdx.x may move reduce iters, too, whose values its threads combine: a
 *           power of two of them up to 32, or a multiple of 32, none kept away by a guard. Under a thread loop inside its
 *           own axis blocks must not depend on the outer one, nor touch what was allocated between the two: all threads
 *           would have done the same, and share it now.
 * Keeps     what is computed.
 */
#include <assert.h>
#include <string.h>
#include "schedule/dependence.h"
#include "schedule/schedule_private.h"

enum { MOST_THREADS = 1024, MOST_THREADS_Z = 64, MOST_VTHREADS = 64, WARP = 32 };

bool tl_is_thread_kind(tl_loop_kind kind)
{
    return kind == TL_LOOP_THREAD_X || kind == TL_LOOP_THREAD_Y || kind == TL_LOOP_THREAD_Z;
}

static bool is_grid_kind(tl_loop_kind kind)
{
    return kind == TL_LOOP_BLOCK_X || kind == TL_LOOP_BLOCK_Y || kind == TL_LOOP_BLOCK_Z;
}

static tl_status find_axis(const char *name, const char *word, tl_loop_kind *out, tl_diag *diag)
{
    for (int i = 0; i < TL_LOOP_KIND_COUNT; i++) {
        if (tl_loop_kind_infos[i].gpu && strcmp(tl_loop_kind_infos[i].text, word) == 0) {
            *out = (tl_loop_kind)i;
            return TL_OK;
        }
    }
    return tl_refuse(diag, "bind", name,
                     "there is no axis %s; axes are blockIdx.x, .y, .z, threadIdx.x, .y, .z and "
                     "vthread",
                     word);
}

/* What the loop and another one, the first around the second, say to each other. */
static tl_status check_pair(const tl_stmt *loop, const tl_stmt *outer, tl_loop_kind outer_kind,
                            const tl_stmt *inner, tl_loop_kind inner_kind, tl_diag *diag)
{
    const char *name = loop->u.loop.var->name;
    const tl_stmt *other = outer == loop ? inner : outer;
    const char *other_name = other->u.loop.var->name;
    if (other->u.loop.kind == TL_LOOP_PARALLEL || outer_kind == TL_LOOP_VECTORIZED)
        return tl_refuse(diag, "bind", name,
                         "loop %s %s it is %s; a GPU's loops and a CPU's do not nest", other_name,
                         other == outer ? "around" : "under",
                         tl_loop_kind_infos[other->u.loop.kind].text);
    if (is_grid_kind(inner_kind) &&
        (tl_is_thread_kind(outer_kind) || outer_kind == TL_LOOP_VTHREAD))
        return tl_refuse(diag, "bind", name,
                         "%s would be inside the %s loop %s, and threads are inside the blocks of "
                         "the grid; reorder the loops first",
                         tl_loop_kind_infos[inner_kind].text, tl_loop_kind_infos[outer_kind].text,
                         outer->u.loop.var->name);
    if (inner_kind != outer_kind || inner_kind == TL_LOOP_VTHREAD ||
        !tl_loop_kind_infos[inner_kind].gpu)
        return TL_OK;
    if (is_grid_kind(inner_kind) || !tl_expr_equal(inner->u.loop.extent, outer->u.loop.extent))
        return tl_refuse(diag, "bind", name, "loop %s %s it is %s already%s", other_name,
                         other == outer ? "around" : "under", tl_loop_kind_infos[inner_kind].text,
                         is_grid_kind(inner_kind) ? "" : ", with another extent");
    return TL_OK;
}

typedef struct {
    tl_schedule *s;
    const tl_stmt *loop, *bound; /* before and after */
    tl_diag *diag;
    tl_status status;
} under_check;

static bool check_under(const tl_stmt *stmt, void *context)
{
    under_check *c = context;
    if (stmt == c->loop || stmt->kind != TL_STMT_LOOP || c->status != TL_OK)
        return c->status == TL_OK;
    tl_loop_kind kind = c->bound->u.loop.kind;
    tl_path path = tl_path_to_loop(c->s->arena, c->bound, stmt->u.loop.var);
    c->status = check_pair(c->loop, c->loop, kind, stmt, stmt->u.loop.kind, c->diag);
    if (c->status == TL_OK && tl_is_thread_kind(kind))
        c->status = tl_check_private("bind", &path, stmt, stmt->u.loop.kind, c->diag);
    return c->status == TL_OK;
}

/* Under `inner`, a loop over the axis of `outer`: what every iteration of `outer` does alike. */
typedef struct {
    tl_arena *arena;
    const char *prim;
    const tl_stmt *outer, *inner;
    tl_path between;
    tl_diag *diag;
    tl_status status;
} same_thread;

static bool check_block_of_thread(const tl_stmt *stmt, void *context)
{
    same_thread *c = context;
    const tl_var *var = c->outer->u.loop.var;
    if (stmt->kind == TL_STMT_LOOP && tl_expr_uses_var(stmt->u.loop.extent, var))
        c->status = tl_refuse(c->diag, c->prim, c->inner->u.loop.var->name,
                              "the extent of loop %s inside depends on loop %s, which is the same "
                              "thread",
                              stmt->u.loop.var->name, var->name);
    if (stmt->kind != TL_STMT_BLOCK || c->status != TL_OK)
        return c->status == TL_OK;
    if (tl_block_depends_on(stmt->u.block, var))
        c->status = tl_refuse(c->diag, c->prim, c->inner->u.loop.var->name,
                              "it is inside loop %s over the same axis, so that a thread runs one "
                              "iteration of it, but block %s depends on both",
                              var->name, stmt->u.block->name);
    for (int i = 0; i < c->between.count && c->status == TL_OK; i++) {
        const tl_stmt *alloc = c->between.stmts[i];
        if (alloc->kind == TL_STMT_ALLOC && alloc->u.alloc.buffer->scope != TL_SCOPE_SHARED &&
            tl_stmt_uses_buffer(stmt, alloc->u.alloc.buffer))
            c->status = tl_refuse(c->diag, c->prim, c->inner->u.loop.var->name,
                                  "it is inside loop %s over the same axis, so that threads share "
                                  "the work of block %s, but each has its own %s",
                                  var->name, stmt->u.block->name, alloc->u.alloc.buffer->name);
    }
    return c->status == TL_OK;
}

static bool find_inner_thread(const tl_stmt *stmt, void *context)
{
    same_thread *c = context;
    if (stmt == c->outer || stmt->kind != TL_STMT_LOOP || c->status != TL_OK)
        return c->status == TL_OK;
    if (stmt->u.loop.kind == c->outer->u.loop.kind) {
        c->inner = stmt;
        c->between = tl_path_to_loop(c->arena, c->outer, stmt->u.loop.var);
        tl_stmt_visit(stmt, check_block_of_thread, c);
    }
    return c->status == TL_OK;
}

tl_status tl_check_same_threads(tl_schedule *s, const char *prim, const tl_stmt *outer,
                                tl_diag *diag)
{
    same_thread c = { .arena = s->arena, .prim = prim, .outer = outer, .diag = diag };
    if (tl_is_thread_kind(outer->u.loop.kind))
        tl_stmt_visit(outer, find_inner_thread, &c);
    return c.status;
}

/* The same for a loop that gets its kind, and the loop of that kind around it. */
static tl_status check_outer_thread(tl_schedule *s, const tl_stmt *loop, const tl_path *path,
                                    tl_loop_kind kind, tl_diag *diag)
{
    const tl_stmt *bound = tl_loop_with_kind(s->arena, loop, kind);
    TL_TRY(tl_check_same_threads(s, "bind", bound, diag));
    for (int i = 0; i < path->count - 1; i++) {
        if (path->stmts[i]->kind != TL_STMT_LOOP || path->stmts[i]->u.loop.kind != kind)
            continue;
        tl_path inside = { path->count - i, path->stmts + i };
        TL_TRY(tl_check_same_threads(s, "bind", tl_path_replace(s->arena, &inside, bound), diag));
    }
    return TL_OK;
}

typedef struct {
    const tl_var *var;
    const tl_block *found;
} join_search;

static bool find_joined(const tl_stmt *stmt, void *context)
{
    join_search *search = context;
    const tl_iter *iter;
    if (stmt->kind == TL_STMT_BLOCK && search->found == NULL &&
        (tl_loop_drives(stmt->u.block, search->var, &iter) & TL_DRIVES_REDUCE))
        search->found = stmt->u.block;
    return search->found == NULL;
}

/* Threads hand their values to each other in the tree of a warp, and warps in shared memory. */
static tl_status check_joined(tl_schedule *s, const tl_stmt *loop, tl_loop_kind kind, tl_diag *diag)
{
    join_search search = { loop->u.loop.var, NULL };
    if (kind == TL_LOOP_THREAD_X)
        tl_stmt_visit(loop, find_joined, &search);
    if (search.found == NULL)
        return TL_OK;
    int64_t extent = 0;
    (void)tl_const_int(loop->u.loop.extent, &extent);
    if (extent % WARP != 0 && (extent > WARP || (extent & (extent - 1)) != 0))
        return tl_refuse(diag, "bind", loop->u.loop.var->name,
                         "its %lld threads would combine what block %s reduces; that takes a power "
                         "of two of them up to %d, or a multiple of %d",
                         (long long)extent, search.found->name, WARP, WARP);
    if (search.found->store_count != 1)
        return tl_refuse(diag, "bind", loop->u.loop.var->name,
                         "its threads would combine what block %s reduces, pairs of a value and "
                         "an index, and combine single values only",
                         search.found->name);
    if (search.found->predicate != NULL &&
        tl_expr_uses_var(tl_block_bind(s->arena, search.found, search.found->predicate),
                         loop->u.loop.var))
        return tl_refuse(diag, "bind", loop->u.loop.var->name,
                         "its threads would combine what block %s reduces, and its guard %s keeps "
                         "some from it; rfactor first: every thread has a partial result",
                         search.found->name, tl_expr_text(s->arena, search.found->predicate));
    return TL_OK;
}

static tl_status check(tl_schedule *s, const tl_stmt *loop, const tl_path *path, tl_loop_kind kind,
                       tl_diag *diag)
{
    const char *name = loop->u.loop.var->name;
    if (s->target && !tl_target_is_gpu(s->target))
        return tl_refuse(diag, "bind", name,
                         "%s is an axis of a GPU and the target is %s; parallel and vectorize "
                         "are its kinds",
                         tl_loop_kind_infos[kind].text, tl_isa_infos[s->target->isa].text);
    TL_TRY(tl_check_serial("bind", loop, diag));
    if (tl_is_thread_kind(kind))
        TL_TRY(tl_check_constant_extent("bind", loop,
                                        kind == TL_LOOP_THREAD_Z ? MOST_THREADS_Z : MOST_THREADS,
                                        diag));
    if (kind == TL_LOOP_VTHREAD)
        TL_TRY(tl_check_constant_extent("bind", loop, MOST_VTHREADS, diag));
    for (int i = 0; i < path->count - 1; i++) {
        const tl_stmt *outer = path->stmts[i];
        if (outer->kind == TL_STMT_LOOP)
            TL_TRY(check_pair(loop, outer, outer->u.loop.kind, loop, kind, diag));
    }
    TL_TRY(tl_check_private("bind", path, loop, kind, diag));
    under_check under = { s, loop, tl_loop_with_kind(s->arena, loop, kind), diag, TL_OK };
    tl_stmt_visit(loop, check_under, &under);
    TL_TRY(under.status);
    TL_TRY(check_outer_thread(s, loop, path, kind, diag));
    TL_TRY(check_joined(s, loop, kind, diag));
    return tl_check_iterations(s, "bind", tl_loop_with_kind(s->arena, loop, kind),
                               tl_loop_kind_joins(kind), diag);
}

tl_status tl_apply_bind(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                        int *out_count, tl_diag *diag)
{
    assert(arg_count == 2 && args[0].kind == TL_ARG_LOOP && args[1].kind == TL_ARG_WORD);
    (void)arg_count;
    (void)out;
    (void)out_count;
    const tl_stmt *loop;
    tl_loop_kind kind = TL_LOOP_SERIAL;
    TL_TRY(tl_need_loop(s, "bind", args[0].loop, &loop, diag));
    TL_TRY(find_axis(loop->u.loop.var->name, args[1].word, &kind, diag));
    tl_path path = tl_schedule_path_to_loop(s, loop->u.loop.var);
    TL_TRY(check(s, loop, &path, kind, diag));
    tl_schedule_replace(s, &path, tl_loop_with_kind(s->arena, loop, kind));
    if (!tl_is_thread_kind(kind))
        return TL_OK;
    const tl_program *bound = s->program;
    tl_hoist_shared(s); /* one for all threads now, where each iteration had its own */
    return s->program == bound ? TL_OK : tl_check_parallel_loops(s, bound, "bind", diag);
}
