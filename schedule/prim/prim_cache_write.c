/* schedule/prim/prim_cache_write.c: cache_write(block, scope) -> copy
 *
 *                                            alloc C_local
 *     for i in 0..n                          for i in 0..n
 *       for k in 0..m               ->         for k in 0..m
 *         C: C[i] = sum(A[i, k])                 C: C_local[i] = sum(A[i, k])
 *                                            for i in 0..n
 *                                              C_copy: C[i] = C_local[i]
 *
 * The block computes into a new buffer; a block after it copies to the old one what the block computes, over the
 * block's own spatial iters. compute_at or reverse_compute_at then moves one to the other.
 *
 * Requires  a block of the body that writes the whole value (no update-only reduction, no intrinsic) and does not read
 *           its own result; its loops begin where its reduce iters do (it is no tail); every loop around it that
 *           drives a reduce iter runs no other block that reads the result.
 * Keeps     every value. */
#include <assert.h>
#include <string.h>
#include "schedule/coverage.h"
#include "schedule/nest.h"

#define PRIM "cache_write"

static tl_status check_block(const tl_block *block, const char *scope_text, tl_scope *scope,
                             tl_diag *diag)
{
    *scope = TL_SCOPE_COUNT;
    for (int i = 0; i < TL_SCOPE_COUNT; i++)
        if (strcmp(tl_scope_texts[i], scope_text) == 0)
            *scope = (tl_scope)i;
    if (*scope == TL_SCOPE_COUNT)
        return tl_refuse(diag, PRIM, block->name,
                         "there is no scope %s; scopes: global, stack, register, shared, warp",
                         scope_text);
    if (block->call != NULL)
        return tl_refuse(diag, PRIM, block->name, "it calls the intrinsic %s", block->call->name);
    if (block->combiner != TL_COMBINER_NONE && !block->has_init)
        return tl_refuse(diag, PRIM, block->name,
                         "it only updates %s: cache before decompose_reduction",
                         block->stores[0].buffer->name);
    for (int i = 0; i < block->store_count; i++) {
        if (tl_block_reads_buffer(block, block->stores[i].buffer))
            return tl_refuse(diag, PRIM, block->name, "it reads its own result %s",
                             block->stores[i].buffer->name);
        for (int k = 0; k < i; k++)
            if (block->stores[i].buffer == block->stores[k].buffer)
                return tl_refuse(diag, PRIM, block->name, "it stores twice to %s",
                                 block->stores[i].buffer->name);
    }
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_ORDERED)
            return tl_refuse(diag, PRIM, block->name,
                             "its iter %s is ordered: what it writes is needed as it goes",
                             block->iters[i].var->name);
    return TL_OK;
}

/* The outermost loop on the way to the block (or the block) in which only it touches its results. */
static int find_place(tl_schedule *s, const tl_path *path, const tl_block *block)
{
    assert(path->count > 0);
    int at = 0;
    for (int i = 0; i < path->count - 1; i++) {
        const tl_stmt *stmt = path->stmts[i];
        for (int k = 0; k < block->store_count; k++) {
            const tl_buffer *buffer = block->stores[k].buffer;
            const tl_block **found;
            if ((stmt->kind == TL_STMT_ALLOC && stmt->u.alloc.buffer == buffer) ||
                tl_readers_of(s->arena, stmt, buffer, &found) > 0 ||
                tl_writers_of(s->arena, stmt, buffer, &found) > 1)
                at = i + 1;
        }
    }
    while (path->stmts[at]->kind == TL_STMT_ALLOC || path->stmts[at]->kind == TL_STMT_SEQ)
        at++;
    return at;
}

/* A guard that cuts the spatial iters otherwise than at their domains (of a split inside a split, or of a part of a
 * partitioned loop); NULL: there is none. */
static const tl_expr *find_cut(tl_schedule *s, const tl_block *block)
{
    tl_arena *arena = s->arena;
    if (block->predicate == NULL)
        return NULL;
    const tl_expr **guards, **domains;
    int count = tl_conjuncts(arena, tl_block_bind(arena, block, block->predicate), &guards);
    for (int i = 0; i < count; i++) {
        bool speaks_of_spatial = false, is_domain = false;
        for (int k = 0; k < block->iter_count && !is_domain; k++) {
            const tl_iter *iter = &block->iters[k];
            if (iter->kind != TL_ITER_SPATIAL)
                continue;
            speaks_of_spatial |= tl_share_vars(guards[i], iter->binding);
            const tl_expr *domain = tl_domain_guard(arena, iter->binding, iter->extent);
            int domain_count = tl_conjuncts(arena, domain, &domains);
            for (int d = 0; d < domain_count; d++)
                is_domain |= tl_expr_equal(domains[d], guards[i]);
        }
        if (speaks_of_spatial && !is_domain)
            return guards[i];
    }
    return NULL;
}

/* Whether the loops give every spatial iter its whole domain: bounds say so where no other block writes a part. */
static bool is_whole(tl_schedule *s, const tl_block *block, const tl_span *spans)
{
    const tl_block **writers;
    for (int i = 0; i < block->store_count; i++)
        if (tl_writers_of(s->arena, s->program->body, block->stores[i].buffer, &writers) > 1)
            return false;
    for (int k = 0; k < block->iter_count; k++) {
        const tl_expr *begin, *extent;
        if (block->iters[k].kind != TL_ITER_SPATIAL)
            continue;
        if (spans[k].min == NULL)
            return false;
        tl_span_loop(s->arena, spans[k], block->iters[k].extent, &begin, &extent);
        if (!tl_is_int(begin, 0) || !tl_prove_le(s->arena, spans[k].min, begin) ||
            !tl_expr_equal(extent, block->iters[k].extent))
            return false;
    }
    return true;
}

/* Whether the copy's loops start where the block's writing does: a span longer than the domain is cut to the whole of
 * it, which is more than was written when it starts later. */
static bool starts_right(tl_schedule *s, const tl_block *block, const tl_span *spans)
{
    for (int k = 0; k < block->iter_count; k++) {
        const tl_expr *begin, *extent;
        if (block->iters[k].kind != TL_ITER_SPATIAL)
            continue;
        if (spans[k].min == NULL)
            return false;
        tl_span_loop(s->arena, spans[k], block->iters[k].extent, &begin, &extent);
        if (!tl_expr_equal(begin, spans[k].min) &&
            !tl_prove_le(s->arena, spans[k].min, tl_int(s->arena, 0)))
            return false;
    }
    return true;
}

/* Whether loops leave out some elements; conjuncts over iters go along with the copy. */
static bool loses_instances(tl_schedule *s, const tl_path *path, const tl_block *block)
{
    const tl_expr **conjuncts;
    tl_block *over_loops = tl_block_copy(s->arena, block);
    int count = tl_conjuncts(s->arena, block->predicate, &conjuncts);
    over_loops->predicate = NULL;
    for (int i = 0; i < count; i++) {
        bool uses_iter = false;
        for (int k = 0; k < block->iter_count; k++)
            uses_iter |= tl_expr_uses_var(conjuncts[i], block->iters[k].var);
        if (!uses_iter)
            over_loops->predicate = tl_and(s->arena, over_loops->predicate, conjuncts[i]);
    }
    return tl_cutting_condition(s->arena, path, over_loops) != NULL;
}

/* The spans of the spatial iters in one pass through path->stmts[at]; the block completes what it writes there and
 * reaches every element of them. */
static tl_status take_spans(tl_schedule *s, const tl_block *block, const tl_path *path, int at,
                            tl_span *spans, tl_diag *diag)
{
    assert(at >= 0 && at <= path->count);
    tl_free_var *inside = TL_NEW_ARRAY(s->arena, tl_free_var, path->count);
    const tl_expr **bindings = TL_NEW_ARRAY(s->arena, const tl_expr *, block->iter_count);
    int inside_count = 0, spatial = 0;
    const char *outer = NULL;
    for (int i = 0; i < path->count; i++) {
        if (path->stmts[i]->kind != TL_STMT_LOOP)
            continue;
        const tl_var *var = path->stmts[i]->u.loop.var;
        if (i >= at) {
            inside[inside_count++] = (tl_free_var){ var, path->stmts[i]->u.loop.extent };
            continue;
        }
        outer = var->name;
        for (int k = 0; k < block->iter_count; k++)
            if (block->iters[k].kind == TL_ITER_REDUCE &&
                tl_expr_uses_var(block->iters[k].binding, var))
                return tl_refuse(diag, PRIM, block->name,
                                 "loop %s drives its reduce iter %s and also runs a block that "
                                 "touches %s, so nothing is complete inside",
                                 var->name, block->iters[k].var->name,
                                 block->stores[0].buffer->name);
    }
    for (int k = 0; k < block->iter_count; k++) {
        if (block->iters[k].kind != TL_ITER_SPATIAL)
            continue;
        bindings[spatial++] = block->iters[k].binding;
        spans[k] = tl_span_of(s->arena, block->iters[k].binding, inside, inside_count);
    }
    if (outer == NULL && !loses_instances(s, path, block) &&
        is_whole(s, block, spans)) { /* everything is complete: the iters' domains */
        for (int k = 0; k < block->iter_count; k++)
            spans[k] = (tl_span){ NULL, NULL, -1 };
        return TL_OK;
    }
    const tl_expr *cut = find_cut(s, block);
    if (cut)
        return tl_refuse(
            diag, PRIM, block->name,
            "its guard %s cuts what it writes, so that it is no box that can be told; cache "
            "before the split",
            tl_expr_text(s->arena, cut));
    if (!starts_right(s, block, spans) ||
        !tl_is_dense(s->arena, bindings, spatial, inside, inside_count))
        return tl_refuse(diag, PRIM, block->name,
                         "what it writes in one iteration of %s%s is no box "
                         "that can be told",
                         outer ? "loop " : "the kernel", outer ? outer : "");
    return TL_OK;
}

/* The part of the predicate that speaks of spatial iters or of loops around the place alone goes along. */
static tl_status take_condition(tl_schedule *s, const tl_block *block, const tl_path *path, int at,
                                const tl_expr **out, tl_diag *diag)
{
    assert(at >= 0 && at <= path->count);
    const tl_expr **conjuncts;
    int count = tl_conjuncts(s->arena, block->predicate, &conjuncts);
    *out = tl_outer_condition(s->arena, path, at);
    for (int i = 0; i < count; i++) {
        bool spatial = false, other = false;
        for (int k = 0; k < block->iter_count; k++)
            if (tl_expr_uses_var(conjuncts[i], block->iters[k].var)) {
                spatial |= block->iters[k].kind == TL_ITER_SPATIAL;
                other |= block->iters[k].kind != TL_ITER_SPATIAL;
            }
        for (int k = at; k < path->count && spatial; k++)
            other |= path->stmts[k]->kind == TL_STMT_LOOP &&
                     tl_expr_uses_var(conjuncts[i], path->stmts[k]->u.loop.var);
        if (other)
            return tl_refuse(
                diag, PRIM, block->name,
                "its predicate %s speaks of a reduce iter, or of iters and inner loops at "
                "once; say it as a select",
                tl_expr_text(s->arena, conjuncts[i]));
        if (spatial)
            *out = tl_and(s->arena, *out, conjuncts[i]);
    }
    return TL_OK;
}

static const tl_stmt *make_copy(tl_schedule *s, const tl_block *old, const char *name,
                                const tl_buffer *const *locals, const tl_span *spans,
                                const tl_expr *condition)
{
    tl_arena *arena = s->arena;
    tl_binding *renamed = TL_NEW_ARRAY(arena, tl_binding, old->iter_count);
    tl_iter *iters = TL_NEW_ARRAY(arena, tl_iter, old->iter_count);
    const tl_var **vars = TL_NEW_ARRAY(arena, const tl_var *, old->iter_count);
    const tl_expr **extents = TL_NEW_ARRAY(arena, const tl_expr *, old->iter_count);
    const tl_expr *predicate = NULL;
    int count = 0;
    for (int k = 0; k < old->iter_count; k++) {
        const tl_iter *iter = &old->iters[k];
        renamed[k] = (tl_binding){ iter->var, tl_int(arena, 0) };
        if (iter->kind != TL_ITER_SPATIAL)
            continue;
        tl_var *var = tl_var_derive(arena, iter->var, "", iter->extent);
        const tl_expr *begin;
        tl_span_loop(arena, spans[k], iter->extent, &begin, &extents[count]);
        vars[count] = tl_var_derive(arena, iter->var, "", extents[count]);
        const tl_expr *binding = tl_add(arena, begin, tl_ref(arena, vars[count]));
        predicate = tl_and(arena, predicate,
                           tl_loop_guard(arena, begin, extents[count], binding, iter->extent));
        iters[count++] = (tl_iter){ var, TL_ITER_SPATIAL, iter->extent, binding };
        renamed[k].value = tl_ref(arena, var);
    }

    tl_store *stores = TL_NEW_ARRAY(arena, tl_store, old->store_count);
    for (int i = 0; i < old->store_count; i++) {
        const tl_store *store = &old->stores[i];
        const tl_expr **indices = TL_NEW_ARRAY(arena, const tl_expr *, store->buffer->rank);
        for (int a = 0; a < store->buffer->rank; a++)
            indices[a] = tl_substitute(arena, store->indices[a], renamed, old->iter_count);
        stores[i] = (tl_store){ store->buffer, indices, tl_load(arena, locals[i], indices) };
    }
    if (condition != NULL)
        predicate =
            tl_and(arena, predicate, tl_substitute(arena, condition, renamed, old->iter_count));
    tl_block *block = TL_NEW(arena, tl_block);
    *block = (tl_block){ .name = name,
                         .iter_count = count,
                         .iters = iters,
                         .predicate = predicate,
                         .store_count = old->store_count,
                         .stores = stores };
    const tl_stmt *stmt = tl_stmt_block(arena, block);
    for (int k = count - 1; k >= 0; k--)
        stmt = tl_stmt_loop(arena, vars[k], extents[k], TL_LOOP_SERIAL, stmt);
    return stmt;
}

tl_status tl_apply_cache_write(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                               int *out_count, tl_diag *diag)
{
    assert(arg_count == 2 && args[0].kind == TL_ARG_BLOCK && args[1].kind == TL_ARG_WORD);
    (void)arg_count;
    tl_arena *arena = s->arena;
    const tl_block *block;
    tl_scope scope = TL_SCOPE_GLOBAL;
    TL_TRY(tl_need_block(s, PRIM, args[0].block, &block, diag));
    TL_TRY(check_block(block, args[1].word, &scope, diag));
    tl_path path = tl_path_to_block(arena, s->program->body, block->name);
    if (path.count == 0)
        return tl_refuse(diag, PRIM, block->name, "it is in the prepare part, which has no caches");
    for (int i = 0; i < block->store_count; i++)
        TL_TRY(tl_check_scope(s, PRIM, block->stores[i].buffer, scope, diag));
    TL_TRY(tl_check_begins(s, PRIM, &path, block, diag));
    int at = find_place(s, &path, block);
    tl_span *spans = TL_NEW_ARRAY(arena, tl_span, block->iter_count);
    const tl_expr *condition;
    TL_TRY(take_spans(s, block, &path, at, spans, diag));
    TL_TRY(take_condition(s, block, &path, at, &condition, diag));

    const tl_stmt *stmt = path.stmts[path.count - 1];
    const tl_buffer **locals = TL_NEW_ARRAY(arena, const tl_buffer *, block->store_count);
    for (int i = 0; i < block->store_count; i++) {
        const tl_buffer *buffer = block->stores[i].buffer;
        const char *local = tl_arena_format(arena, "%s_local", buffer->name);
        locals[i] =
            tl_buffer_make(arena, tl_fresh_buffer_name(s, local), buffer->dtype, TL_ROLE_LOCAL,
                           scope, buffer->rank, tl_shape_in_scope(arena, buffer, scope));
        stmt = tl_stmt_replace_buffer(arena, stmt, buffer, locals[i]);
    }
    const char *name = tl_fresh_block_name(s, tl_arena_format(arena, "%s_copy", block->name));
    const tl_stmt *copy = make_copy(s, block, name, locals, spans, condition);

    tl_path inside = { path.count - at, path.stmts + at };
    const tl_stmt *with = tl_stmt_seq2(arena, tl_path_replace(arena, &inside, stmt), copy);
    for (int i = block->store_count - 1; i >= 0; i--)
        with = tl_stmt_alloc(arena, locals[i], with);
    tl_path prefix = tl_path_prefix(&path, at + 1);
    tl_schedule_set_body(s, tl_path_replace(arena, &prefix, with));
    if (scope == TL_SCOPE_SHARED)
        tl_hoist_shared(s);
    out[0] = (tl_arg){ .kind = TL_ARG_BLOCK, .block = tl_schedule_name_block(s, name) };
    *out_count = 1;
    return TL_OK;
}
