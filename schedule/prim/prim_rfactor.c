/* schedule/prim/prim_rfactor.c: rfactor(block, loop) -> partial
 *
 *                                            alloc C_rf: f32[8, n]
 *     for i in 0..n                          for i in 0..n
 *       for k0 in 0..m                         for k0 in 0..m
 *         for k1 in 0..8                         for k1 in 0..8
 *           C: C[i] = sum(A[i, k0*8 + k1])         C_rf: C_rf[k1, i] = sum(A[i, k0*8 + k1])   spatial k1, i; reduce k0
 *                                      ->      for i in 0..n
 *                                                for k1 in 0..8
 *                                                  C: C[i] = sum(C_rf[k1, i])
 *
 * The reduction in two: every iteration of `loop` reduces for itself, and what they found is reduced after all of them.
 * The loops stay with the partial reduction, in which `loop` drives a spatial iter: it can be vectorized or made
 * parallel.
 *
 * Requires  a reduction; `loop` around it, driving reduce iters only; nothing else under the outermost of its reduce
 *           loops, which begin at the start of what is reduced and run through it once; guards that speak of other
 *           reduce loops are lower bounds of them no more (their first iteration decides whether any runs); no float
 *           sum of a strict kernel.
 * Keeps     every value, but for the order of the combining.
 */
#include <assert.h>
#include <string.h>
#include "schedule/dependence.h"
#include "schedule/coverage.h"
#include "schedule/nest.h"

#define PRIM "rfactor"

typedef struct {
    const tl_block *block;
    const tl_stmt *loop;
    tl_path path;
    int at; /* of the outermost loop that drives a reduce iter */
} plan;

static bool drives_reduce(const tl_block *block, const tl_stmt *stmt)
{
    const tl_iter *iter;
    return stmt->kind == TL_STMT_LOOP &&
           (tl_loop_drives(block, stmt->u.loop.var, &iter) & ~TL_DRIVES_SPATIAL);
}

static const char *reduce_loops(tl_arena *arena, const plan *p)
{
    const char *text = "";
    for (int i = 0; i < p->path.count; i++)
        if (drives_reduce(p->block, p->path.stmts[i]))
            text = tl_arena_format(arena, "%s%s%s", text, *text ? ", " : "",
                                   p->path.stmts[i]->u.loop.var->name);
    return *text ? text : "none";
}

static tl_status check_block(tl_schedule *s, const tl_block *block, tl_diag *diag)
{
    if (block->call != NULL || block->combiner == TL_COMBINER_NONE)
        return tl_refuse(diag, PRIM, block->name, "it is not a reduction");
    if (tl_keeps_order(s, block))
        return tl_refuse(diag, PRIM, block->name, "%s", TL_STRICT_RULE);
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_ORDERED)
            return tl_refuse(diag, PRIM, block->name, "its iter %s is ordered",
                             block->iters[i].var->name);
    for (int i = 0; i < block->store_count; i++)
        if (tl_block_reads_buffer(block, block->stores[i].buffer))
            return tl_refuse(diag, PRIM, block->name, "it reads its own result %s",
                             block->stores[i].buffer->name);
    if (tl_path_to_block(s->arena, s->program->body, block->name).count == 0)
        return tl_refuse(diag, PRIM, block->name,
                         "it is in the prepare part, which has no partial results");
    return TL_OK;
}

/* Every term is added up once: a partial result would count a repeated one again, where the whole begins anew. */
static tl_status check_once(tl_schedule *s, const plan *p, tl_diag *diag)
{
    const tl_block *block = p->block;
    const tl_expr **bindings = TL_NEW_ARRAY(s->arena, const tl_expr *, block->iter_count);
    tl_free_var *loops = TL_NEW_ARRAY(s->arena, tl_free_var, p->path.count);
    int count = 0, loop_count = 0;
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_REDUCE)
            bindings[count++] = block->iters[i].binding;
    for (int i = p->at; i < p->path.count - 1; i++)
        if (drives_reduce(block, p->path.stmts[i]))
            loops[loop_count++] =
                (tl_free_var){ p->path.stmts[i]->u.loop.var, p->path.stmts[i]->u.loop.extent };
    if (!block->has_init || tl_is_injective(s->arena, bindings, count, loops, loop_count))
        return TL_OK;
    return tl_refuse(diag, PRIM, block->name,
                     "its reduce loops (%s) may run through a term more than once, as a loop does "
                     "that repeats the sum and was fused with them",
                     reduce_loops(s->arena, p));
}

static tl_status check_loops(tl_schedule *s, plan *p, tl_diag *diag)
{
    const tl_block *block = p->block;
    const tl_iter *iter;
    const char *name = p->loop->u.loop.var->name;
    if (tl_path_find_loop(&p->path, p->loop->u.loop.var) < 0)
        return tl_refuse(diag, PRIM, block->name, "loop %s is not around it; its reduce loops: %s",
                         name, reduce_loops(s->arena, p));
    if (!drives_reduce(block, p->loop))
        return tl_refuse(diag, PRIM, block->name,
                         "loop %s drives none of its reduce iters; its reduce loops: %s", name,
                         reduce_loops(s->arena, p));
    for (p->at = 0; !drives_reduce(block, p->path.stmts[p->at]);)
        p->at++;
    for (int i = p->at; i < p->path.count - 1; i++) {
        const tl_stmt *stmt = p->path.stmts[i];
        if (stmt->kind != TL_STMT_LOOP)
            return tl_refuse(diag, PRIM, block->name,
                             "its reduce loop %s runs other blocks or allocs too; the partial "
                             "results must be complete after it",
                             p->path.stmts[p->at]->u.loop.var->name);
        int drives = tl_loop_drives(block, stmt->u.loop.var, &iter);
        if (drives == (TL_DRIVES_SPATIAL | TL_DRIVES_REDUCE))
            return tl_refuse(diag, PRIM, block->name,
                             "loop %s drives spatial and reduce iters together; do not fuse them",
                             stmt->u.loop.var->name);
        for (int k = 0; k < i; k++)
            if (p->path.stmts[k]->kind == TL_STMT_LOOP &&
                tl_expr_uses_var(stmt->u.loop.extent, p->path.stmts[k]->u.loop.var))
                return tl_refuse(diag, PRIM, block->name,
                                 "the extent of loop %s depends on loop %s; rfactor before that",
                                 stmt->u.loop.var->name, p->path.stmts[k]->u.loop.var->name);
    }
    TL_TRY(check_once(s, p, diag));
    return tl_check_begins(s, PRIM, &p->path, block, diag);
}

/* A guard c0 + sum(c*v) < bound, c >= 0 for every reduce loop but the factored one: if it holds at all, then at 0. */
static bool starts_at_zero(tl_arena *arena, const plan *p, const tl_expr *guard)
{
    assert(p->at >= 0 && p->at < p->path.count);
    for (int i = p->at; i < p->path.count - 1; i++) {
        const tl_stmt *stmt = p->path.stmts[i];
        const tl_expr *rest;
        int64_t coefficient;
        if (!drives_reduce(p->block, stmt) || stmt == p->loop ||
            !tl_expr_uses_var(guard, stmt->u.loop.var))
            continue;
        if ((guard->kind != TL_EXPR_LT && guard->kind != TL_EXPR_LE) ||
            tl_expr_uses_var(guard->args[1], stmt->u.loop.var) ||
            !tl_affine_in(arena, guard->args[0], stmt->u.loop.var, &coefficient, &rest) ||
            coefficient < 0 || tl_expr_uses_var(rest, stmt->u.loop.var))
            return false;
    }
    return true;
}

/* The predicate over loop variables, every conjunct decided by the first iteration of the other reduce loops. */
static tl_status bound_predicate(tl_schedule *s, const plan *p, const tl_expr **out, tl_diag *diag)
{
    *out = p->block->predicate ? tl_block_bind(s->arena, p->block, p->block->predicate) : NULL;
    const tl_expr **guards;
    int count = tl_conjuncts(s->arena, *out, &guards);
    for (int i = 0; i < count; i++)
        if (!starts_at_zero(s->arena, p, guards[i]))
            return tl_refuse(diag, PRIM, p->block->name,
                             "its guard %s may leave out the first iteration of a reduce loop and "
                             "not a later one, so that a partial result would not be initialised",
                             tl_expr_text(s->arena, guards[i]));
    return TL_OK;
}

/* The partial reduction: the spatial iters, a spatial iter of the loop, and for each reduce iter one reduce iter for
 * every other loop that drives it. */
static const tl_block *make_partial(tl_arena *arena, const plan *p, const char *name,
                                    const tl_buffer *const *partials, const tl_expr *predicate)
{
    assert(partials != NULL);
    const tl_block *old = p->block;
    int room = old->iter_count + p->path.count + 1, count = 0;
    tl_iter *iters = TL_NEW_ARRAY(arena, tl_iter, room);
    tl_binding *loops = TL_NEW_ARRAY(arena, tl_binding, room);
    tl_binding *renamed = TL_NEW_ARRAY(arena, tl_binding, old->iter_count);
    const tl_expr **indices = TL_NEW_ARRAY(arena, const tl_expr *, old->iter_count + 1);
    int loop_count = 0, rank = 1;

    const tl_stmt *factored = p->loop;
    tl_var *own = tl_var_derive(arena, factored->u.loop.var, "", factored->u.loop.extent);
    iters[count++] = (tl_iter){ own, TL_ITER_SPATIAL, factored->u.loop.extent,
                                tl_ref(arena, factored->u.loop.var) };
    loops[loop_count++] = (tl_binding){ factored->u.loop.var, tl_ref(arena, own) };
    indices[0] = tl_ref(arena, own);
    for (int k = 0; k < old->iter_count; k++) {
        if (old->iters[k].kind != TL_ITER_SPATIAL)
            continue;
        tl_var *var = tl_var_derive(arena, old->iters[k].var, "", old->iters[k].extent);
        iters[count] = old->iters[k];
        iters[count++].var = var;
        renamed[k] = (tl_binding){ old->iters[k].var, tl_ref(arena, var) };
        indices[rank++] = tl_ref(arena, var);
    }
    for (int i = p->at; i < p->path.count - 1; i++) {
        const tl_stmt *stmt = p->path.stmts[i];
        if (!drives_reduce(old, stmt) || stmt == factored)
            continue;
        tl_var *var = tl_var_derive(arena, stmt->u.loop.var, "", stmt->u.loop.extent);
        iters[count++] =
            (tl_iter){ var, TL_ITER_REDUCE, stmt->u.loop.extent, tl_ref(arena, stmt->u.loop.var) };
        loops[loop_count++] = (tl_binding){ stmt->u.loop.var, tl_ref(arena, var) };
    }
    for (int k = 0; k < old->iter_count; k++)
        if (old->iters[k].kind != TL_ITER_SPATIAL)
            renamed[k] =
                (tl_binding){ old->iters[k].var,
                              tl_substitute(arena, old->iters[k].binding, loops, loop_count) };

    tl_store *stores = TL_NEW_ARRAY(arena, tl_store, old->store_count);
    for (int i = 0; i < old->store_count; i++)
        stores[i] =
            (tl_store){ partials[i], indices,
                        tl_substitute(arena, old->stores[i].value, renamed, old->iter_count) };
    tl_block *block = TL_NEW(arena, tl_block);
    *block = (tl_block){ .name = name,
                         .iter_count = count,
                         .iters = iters,
                         .predicate = predicate ? tl_substitute(arena, predicate, loops, loop_count)
                                                : NULL, /* over the iters, so that it can move */
                         .combiner = old->combiner,
                         .has_init = true,
                         .store_count = old->store_count,
                         .stores = stores };
    return block;
}

/* The final reduction over the partial results, under copies of the loops. */
static const tl_stmt *make_final(tl_arena *arena, const plan *p, const tl_buffer *const *partials,
                                 const tl_expr *predicate)
{
    assert(partials != NULL);
    const tl_block *old = p->block;
    tl_binding *loops = TL_NEW_ARRAY(arena, tl_binding, p->path.count);
    const tl_var **copies = TL_NEW_ARRAY(arena, const tl_var *, p->path.count);
    tl_iter *iters = TL_NEW_ARRAY(arena, tl_iter, old->iter_count + 1);
    const tl_expr **indices = TL_NEW_ARRAY(arena, const tl_expr *, old->iter_count + 1);
    int loop_count = 0, count = 0, rank = 1;
    const tl_var *factored = p->loop->u.loop.var;
    for (int i = p->at; i < p->path.count - 1; i++) {
        const tl_stmt *stmt = p->path.stmts[i];
        const tl_var *var = stmt->u.loop.var;
        copies[i] = NULL;
        if (stmt == p->loop || !drives_reduce(old, stmt))
            copies[i] = tl_var_derive(arena, var, "", stmt->u.loop.extent);
        loops[loop_count++] =
            (tl_binding){ var, copies[i] ? tl_ref(arena, copies[i]) : tl_int(arena, 0) };
    }
    for (int k = 0; k < old->iter_count; k++) {
        if (old->iters[k].kind != TL_ITER_SPATIAL)
            continue;
        iters[count] = old->iters[k];
        iters[count].binding = tl_substitute(arena, iters[count].binding, loops, loop_count);
        indices[rank++] = tl_ref(arena, iters[count++].var);
    }
    tl_var *own = tl_var_derive(arena, factored, "", p->loop->u.loop.extent);
    const tl_expr *over = tl_substitute(arena, tl_ref(arena, factored), loops, loop_count);
    iters[count++] = (tl_iter){ own, TL_ITER_REDUCE, p->loop->u.loop.extent, over };
    indices[0] = tl_ref(arena, own);

    tl_store *stores = TL_NEW_ARRAY(arena, tl_store, old->store_count);
    for (int i = 0; i < old->store_count; i++) {
        stores[i] = old->stores[i];
        stores[i].value = tl_load(arena, partials[i], indices);
    }
    tl_block *block = tl_block_copy(arena, old);
    block->iter_count = count;
    block->iters = iters;
    block->stores = stores;
    block->predicate = predicate ? tl_substitute(arena, predicate, loops, loop_count) : NULL;
    if (block->predicate && tl_prove(arena, block->predicate))
        block->predicate = NULL;

    /* the spatial loops as they stood, the factored one inside them */
    const tl_stmt *stmt = tl_stmt_block(arena, block);
    int at_own = tl_path_find_loop(&p->path, factored);
    stmt = tl_stmt_loop(arena, copies[at_own], p->loop->u.loop.extent, TL_LOOP_SERIAL, stmt);
    for (int i = p->path.count - 2; i >= p->at; i--)
        if (copies[i] && i != at_own)
            stmt = tl_stmt_loop(arena, copies[i], p->path.stmts[i]->u.loop.extent, TL_LOOP_SERIAL,
                                stmt);
    return stmt;
}

tl_status tl_apply_rfactor(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                           int *out_count, tl_diag *diag)
{
    assert(arg_count == 2 && args[0].kind == TL_ARG_BLOCK && args[1].kind == TL_ARG_LOOP);
    (void)arg_count;
    tl_arena *arena = s->arena;
    plan p = { 0 };
    const tl_expr *predicate;
    TL_TRY(tl_need_block(s, PRIM, args[0].block, &p.block, diag));
    TL_TRY(tl_need_loop(s, PRIM, args[1].loop, &p.loop, diag));
    TL_TRY(check_block(s, p.block, diag));
    p.path = tl_path_to_block(arena, s->program->body, p.block->name);
    TL_TRY(check_loops(s, &p, diag));
    TL_TRY(bound_predicate(s, &p, &predicate, diag));

    int rank = 1;
    const tl_expr **shape = TL_NEW_ARRAY(arena, const tl_expr *, p.block->iter_count + 1);
    shape[0] = p.loop->u.loop.extent;
    for (int k = 0; k < p.block->iter_count; k++)
        if (p.block->iters[k].kind == TL_ITER_SPATIAL)
            shape[rank++] = p.block->iters[k].extent;
    const tl_buffer **partials = TL_NEW_ARRAY(arena, const tl_buffer *, p.block->store_count);
    for (int i = 0; i < p.block->store_count; i++) {
        const tl_buffer *result = p.block->stores[i].buffer;
        const char *wanted = tl_arena_format(arena, "%s_rf", result->name);
        partials[i] = tl_buffer_make(arena, tl_fresh_buffer_name(s, wanted), result->dtype,
                                     TL_ROLE_LOCAL, TL_SCOPE_GLOBAL, rank, shape);
    }
    const char *name = tl_fresh_block_name(s, tl_arena_format(arena, "%s_rf", p.block->name));
    const tl_block *partial = make_partial(arena, &p, name, partials, predicate);

    tl_path inside = { p.path.count - p.at, p.path.stmts + p.at };
    const tl_stmt *with = tl_path_replace(arena, &inside, tl_stmt_block(arena, partial));
    with = tl_stmt_seq2(arena, with, make_final(arena, &p, partials, predicate));
    for (int i = p.block->store_count - 1; i >= 0; i--)
        with = tl_stmt_alloc(arena, partials[i], with);
    tl_path prefix = tl_path_prefix(&p.path, p.at + 1);
    tl_schedule_replace(s, &prefix, with);
    out[0] = (tl_arg){ .kind = TL_ARG_BLOCK, .block = tl_schedule_name_block(s, name) };
    *out_count = 1;
    return TL_OK;
}
