/* schedule/loop_kind.c: what parallel, vectorize and unroll share: a loop gets a kind if the blocks under it
 * allow that its iterations run together. */
#include <assert.h>
#include <string.h>
#include "schedule/dependence.h"
#include "schedule/schedule_private.h"

const tl_stmt *tl_loop_with_kind(tl_arena *arena, const tl_stmt *loop, tl_loop_kind kind)
{
    if (loop->u.loop.kind == kind)
        return loop;
    tl_stmt *copy = TL_NEW(arena, tl_stmt);
    *copy = *loop;
    copy->u.loop.kind = kind;
    return copy;
}

typedef struct {
    const tl_stmt *found;
    const tl_stmt *loop;
    bool (*test)(const tl_stmt *stmt, const tl_var *var);
} stmt_search;

static bool search_stmt(const tl_stmt *stmt, void *context)
{
    stmt_search *s = context;
    if (s->found == NULL && s->test(stmt, s->loop->u.loop.var))
        s->found = stmt;
    return s->found == NULL;
}

static bool is_ordered_block(const tl_stmt *stmt, const tl_var *var)
{
    const tl_iter *iter;
    return stmt->kind == TL_STMT_BLOCK &&
           (tl_loop_drives(stmt->u.block, var, &iter) & TL_DRIVES_ORDERED);
}

static bool is_reduce_block(const tl_stmt *stmt, const tl_var *var)
{
    const tl_iter *iter;
    return stmt->kind == TL_STMT_BLOCK &&
           (tl_loop_drives(stmt->u.block, var, &iter) & TL_DRIVES_REDUCE);
}

static bool is_uncombined_reduce_block(const tl_stmt *stmt, const tl_var *var)
{
    return is_reduce_block(stmt, var) &&
           (stmt->u.block->combiner == TL_COMBINER_NONE || stmt->u.block->call);
}

static bool is_rounding_block(const tl_stmt *stmt, const tl_var *var)
{
    return is_reduce_block(stmt, var) && tl_block_rounds(stmt->u.block);
}

static bool is_mixed_block(const tl_stmt *stmt, const tl_var *var)
{
    const tl_iter *iter;
    return is_reduce_block(stmt, var) &&
           (tl_loop_drives(stmt->u.block, var, &iter) & TL_DRIVES_SPATIAL);
}

static const tl_stmt *find_under(const tl_stmt *loop, bool (*test)(const tl_stmt *, const tl_var *))
{
    stmt_search s = { NULL, loop, test };
    tl_stmt_visit(loop, search_stmt, &s);
    return s.found;
}

/* "; spatial loops of it: i, j" of the loops around a block. */
static const char *spatial_loops(tl_schedule *s, const tl_block *block)
{
    tl_path path = tl_schedule_path_to_block(s, block->name);
    const char *text = "";
    for (int i = 0; i < path.count; i++) {
        const tl_iter *iter;
        if (path.stmts[i]->kind == TL_STMT_LOOP &&
            tl_loop_drives(block, path.stmts[i]->u.loop.var, &iter) == TL_DRIVES_SPATIAL)
            text = tl_arena_format(s->arena, "%s%s%s", text, *text ? ", " : "",
                                   path.stmts[i]->u.loop.var->name);
    }
    return *text ? tl_arena_format(s->arena, "spatial loops of the block: %s", text)
                 : "the block has no spatial loop";
}

static tl_status refuse_iter(tl_schedule *s, const char *prim, const tl_stmt *loop,
                             const tl_block *block, const char *rule, tl_diag *diag)
{
    if (diag == NULL)
        return TL_ILLEGAL_SCHEDULE;
    static const char *const kinds[] = { "spatial", "reduce", "ordered" };
    const tl_iter *iter;
    tl_loop_drives(block, loop->u.loop.var, &iter);
    return tl_refuse(diag, prim, loop->u.loop.var->name,
                     "the loop drives the %s iter %s of block %s; %s; %s", kinds[iter->kind],
                     iter->var->name, block->name, rule, spatial_loops(s, block));
}

tl_status tl_check_iterations(tl_schedule *s, const char *prim, const tl_stmt *loop,
                              bool may_reduce, tl_diag *diag)
{
    assert(loop->kind == TL_STMT_LOOP);
    const char *rule = may_reduce
                           ? "it needs spatial iters, or reduce iters of a block with a combiner"
                           : "it needs spatial iters";
    const tl_stmt *bad = find_under(loop, is_ordered_block);
    if (bad == NULL)
        bad = find_under(loop, may_reduce ? is_uncombined_reduce_block : is_reduce_block);
    if (bad)
        return refuse_iter(s, prim, loop, bad->u.block, rule, diag);
    bad = s->program->strict ? find_under(loop, is_rounding_block) : NULL;
    if (bad)
        return refuse_iter(s, prim, loop, bad->u.block, TL_STRICT_RULE, diag);

    if (loop->u.loop.var->max == 0) /* a single iteration */
        return TL_OK;
    bad = find_under(loop, is_mixed_block);
    if (bad)
        return tl_refuse(diag, prim, loop->u.loop.var->name,
                         "the loop drives spatial and reduce iters of block %s together, so that "
                         "some of its lanes combine and others do not; do not fuse them; %s",
                         bad->u.block->name, spatial_loops(s, bad->u.block));
    tl_access a, b;
    if (tl_loop_is_independent(s->arena, loop, may_reduce, &a, &b))
        return TL_OK;
    if (a.block == b.block)
        return tl_refuse(
            diag, prim, loop->u.loop.var->name,
            "two iterations may touch the same element of buffer %s in block %s, one of "
            "them writing: the loop does not move all that the block writes",
            a.buffer->name, a.block->name);
    return tl_refuse(
        diag, prim, loop->u.loop.var->name,
        "block %s in one iteration and block %s in another may touch the same element of "
        "buffer %s; iterations must be independent",
        a.block->name, b.block->name, a.buffer->name);
}

tl_status tl_check_serial(const char *prim, const tl_stmt *loop, tl_diag *diag)
{
    if (loop->u.loop.kind == TL_LOOP_SERIAL)
        return TL_OK;
    return tl_refuse(diag, prim, loop->u.loop.var->name,
                     "the loop is %s already; only a serial loop gets a kind",
                     tl_loop_kind_infos[loop->u.loop.kind].text);
}

tl_status tl_check_constant_extent(const char *prim, const tl_stmt *loop, int64_t most,
                                   tl_diag *diag)
{
    assert(loop->kind == TL_STMT_LOOP && most > 0);
    int64_t extent;
    if (!tl_const_int(loop->u.loop.extent, &extent))
        return tl_refuse(
            diag, prim, loop->u.loop.var->name,
            "the extent depends on dims and must be constant; split it by a constant first");
    if (extent > most)
        return tl_refuse(diag, prim, loop->u.loop.var->name,
                         "the extent %lld is larger than %lld; split it first", (long long)extent,
                         (long long)most);
    return TL_OK;
}

typedef struct {
    const tl_stmt *found, *self;
    tl_loop_kind kind;
} kind_search;

static bool search_kind(const tl_stmt *stmt, void *context)
{
    kind_search *s = context;
    if (stmt != s->self && stmt->kind == TL_STMT_LOOP && stmt->u.loop.kind == s->kind)
        s->found = stmt;
    return s->found == NULL;
}

const tl_stmt *tl_find_kind_under(const tl_stmt *loop, tl_loop_kind kind)
{
    kind_search s = { NULL, loop, kind };
    tl_stmt_visit(loop, search_kind, &s);
    return s.found;
}

static bool search_gpu(const tl_stmt *stmt, void *context)
{
    kind_search *s = context;
    if (stmt != s->self && s->found == NULL &&
        (stmt->kind == TL_STMT_BARRIER ||
         (stmt->kind == TL_STMT_LOOP && tl_loop_kind_infos[stmt->u.loop.kind].gpu)))
        s->found = stmt;
    return s->found == NULL;
}

tl_status tl_refuse_gpu_under(const char *prim, const tl_stmt *loop, tl_diag *diag)
{
    assert(loop->kind == TL_STMT_LOOP);
    kind_search s = { NULL, loop, TL_LOOP_SERIAL };
    tl_stmt_visit(loop, search_gpu, &s);
    if (s.found == NULL)
        return TL_OK;
    if (s.found->kind == TL_STMT_BARRIER)
        return tl_refuse(diag, prim, loop->u.loop.var->name,
                         "there is a barrier inside, where the threads of a GPU block meet");
    return tl_refuse(diag, prim, loop->u.loop.var->name,
                     "loop %s inside is %s; a GPU's threads are around what else runs together",
                     s.found->u.loop.var->name, tl_loop_kind_infos[s.found->u.loop.kind].text);
}

const tl_stmt *tl_find_kind_above(const tl_path *path, tl_loop_kind kind)
{
    for (int i = 0; i + 1 < path->count; i++)
        if (path->stmts[i]->kind == TL_STMT_LOOP && path->stmts[i]->u.loop.kind == kind)
            return path->stmts[i];
    return NULL;
}

tl_status tl_check_private(const char *prim, const tl_path *path, const tl_stmt *loop,
                           tl_loop_kind kind, tl_diag *diag)
{
    assert(path->count > 0);
    bool is_thread = tl_is_thread_kind(kind), in_thread = false; /* of another axis */
    for (int i = 0; i + 1 < path->count; i++) {
        const tl_stmt *alloc = path->stmts[i];
        if (alloc->kind == TL_STMT_LOOP && alloc->u.loop.kind != kind)
            in_thread |= tl_is_thread_kind(alloc->u.loop.kind);
        if (alloc->kind != TL_STMT_ALLOC || !tl_stmt_uses_buffer(loop, alloc->u.alloc.buffer))
            continue;
        bool is_warps =
            kind == TL_LOOP_THREAD_X && tl_scope_threads[alloc->u.alloc.buffer->scope] > 0;
        if (is_thread && in_thread && alloc->u.alloc.buffer->scope != TL_SCOPE_SHARED && !is_warps)
            return tl_refuse(diag, prim, loop->u.loop.var->name,
                             "buffer %s is allocated outside of it by threads of another axis, "
                             "each for itself; set_scope(%s, shared) is one for all",
                             alloc->u.alloc.buffer->name, alloc->u.alloc.buffer->name);
        if (!tl_loop_kind_shares(kind, alloc->u.alloc.buffer->scope))
            return tl_refuse(diag, prim, loop->u.loop.var->name,
                             "buffer %s is allocated outside of it in scope %s, which iterations "
                             "of a loop that is %s do not share; compute its producer inside the "
                             "loop first",
                             alloc->u.alloc.buffer->name,
                             tl_scope_texts[alloc->u.alloc.buffer->scope],
                             tl_loop_kind_infos[kind].text);
    }
    return TL_OK;
}

/* Loops whose iterations run together, after a step that moved blocks or buffers. */

typedef struct {
    tl_schedule *s;
    const tl_program *before;
    const char *prim;
    tl_diag *diag;
    tl_status status;
} recheck;

static bool recheck_loop(const tl_stmt *stmt, void *context)
{
    recheck *r = context;
    if (r->status != TL_OK)
        return false;
    if (stmt->kind != TL_STMT_LOOP || stmt->u.loop.kind == TL_LOOP_SERIAL ||
        stmt->u.loop.kind == TL_LOOP_UNROLLED)
        return true;
    if (tl_program_find_loop(r->before, stmt->u.loop.var) == stmt)
        return false; /* nothing under it has changed */
    bool may_reduce = tl_loop_kind_joins(stmt->u.loop.kind);
    tl_access a, b;
    tl_path path = tl_schedule_path_to_loop(r->s, stmt->u.loop.var);
    r->status = tl_check_private(r->prim, &path, stmt, stmt->u.loop.kind, r->diag);
    if (r->status == TL_OK)
        r->status = tl_check_same_threads(r->s, r->prim, stmt, r->diag);
    if (r->status == TL_OK && stmt->u.loop.var->max > 0 &&
        !tl_loop_is_independent(r->s->arena, stmt, may_reduce, &a, &b))
        r->status =
            tl_refuse(r->diag, r->prim, stmt->u.loop.var->name,
                      "iterations of the %s loop would meet in buffer %s (block %s and block "
                      "%s); do this step before the loop gets its kind",
                      tl_loop_kind_infos[stmt->u.loop.kind].text, a.buffer->name, a.block->name,
                      b.block->name);
    return true;
}

tl_status tl_check_parallel_loops(tl_schedule *s, const tl_program *before, const char *prim,
                                  tl_diag *diag)
{
    recheck r = { s, before, prim, diag, TL_OK };
    tl_stmt_visit(s->program->body, recheck_loop, &r);
    if (s->program->prepare && r.status == TL_OK)
        tl_stmt_visit(s->program->prepare, recheck_loop, &r);
    return r.status;
}
