/* schedule/padding.c: a block whose iters run up to multiples, and what takes its results back. */
#include "schedule/padding.h"
#include <assert.h>

static tl_status check_block(tl_schedule *s, const tl_padding *p, const tl_arg *factors,
                             tl_diag *diag)
{
    const tl_block *block = p->block;
    if (block->call != NULL)
        return tl_refuse(diag, p->prim, block->name, "it calls the intrinsic %s",
                         block->call->name);
    if (block->combiner != TL_COMBINER_NONE && !block->has_init)
        return tl_refuse(diag, p->prim, block->name,
                         "it only updates %s: pad before decompose_reduction",
                         block->stores[0].buffer->name);
    if (block->predicate)
        return tl_refuse(diag, p->prim, block->name,
                         "it has a guard, %s: pad before its loops are "
                         "split",
                         tl_expr_text(s->arena, block->predicate));
    if (factors->count != block->iter_count)
        return tl_refuse(diag, p->prim, block->name, "it has %d iters and got %d factors",
                         block->iter_count, factors->count);
    for (int i = 0; i < block->iter_count; i++) {
        if (factors->factors[i] == 0)
            return tl_refuse(diag, p->prim, block->name, "factor %d is _, and nothing tells it",
                             i + 1);
        if (factors->factors[i] > INT32_MAX)
            return tl_refuse(diag, p->prim, block->name, "factor %d is larger than %d", i + 1,
                             INT32_MAX);
        if (block->iters[i].kind == TL_ITER_ORDERED && factors->factors[i] > 1)
            return tl_refuse(diag, p->prim, block->name,
                             "its iter %s is ordered and cannot be padded; its factor must be 1",
                             block->iters[i].var->name);
    }
    for (int i = 0; i < block->store_count; i++)
        if (tl_block_reads_buffer(block, block->stores[i].buffer))
            return tl_refuse(diag, p->prim, block->name, "it reads its own result %s",
                             block->stores[i].buffer->name);
    return TL_OK;
}

/* The spatial iters are the indices of every store, each once. */
static tl_status check_stores(const tl_padding *p, tl_diag *diag)
{
    const tl_block *block = p->block;
    for (int i = 0; i < block->store_count; i++) {
        const tl_store *store = &block->stores[i];
        for (int axis = 0; axis < store->buffer->rank; axis++) {
            const tl_expr *index = store->indices[axis];
            bool is_iter = tl_is_int(index, 0);
            for (int k = 0; k < block->iter_count; k++)
                is_iter |= index->kind == TL_EXPR_VAR && index->u.var == block->iters[k].var;
            if (!is_iter)
                return tl_refuse(diag, p->prim, block->name,
                                 "index %d of %s is not one of its iters", axis,
                                 store->buffer->name);
        }
        for (int k = 0; k < block->iter_count; k++) {
            int uses = 0;
            for (int axis = 0; axis < store->buffer->rank; axis++)
                uses += tl_expr_uses_var(store->indices[axis], block->iters[k].var);
            if (block->iters[k].kind == TL_ITER_SPATIAL && uses != 1)
                return tl_refuse(diag, p->prim, block->name,
                                 "its iter %s is an index of %s %d times and must be one once",
                                 block->iters[k].var->name, store->buffer->name, uses);
        }
    }
    return TL_OK;
}

/* Every iter has a loop of its own that runs over its domain, and they run nothing else. */
static tl_status find_loops(tl_schedule *s, tl_padding *p, const int64_t *factors, tl_diag *diag)
{
    const tl_block *block = p->block;
    p->path = tl_path_to_block(s->arena, s->program->body, block->name);
    if (p->path.count == 0)
        return tl_refuse(diag, p->prim, block->name, "it is in the prepare part");
    for (p->top = p->path.count - 1; p->top > 0;) {
        if (p->path.stmts[p->top - 1]->kind != TL_STMT_LOOP)
            break;
        p->top--;
    }
    p->extents = TL_NEW_ARRAY(s->arena, const tl_expr *, block->iter_count);
    p->loops = TL_NEW_ARRAY(s->arena, const tl_stmt *, block->iter_count);
    for (int k = 0; k < block->iter_count; k++) {
        const tl_iter *iter = &block->iters[k];
        int at = iter->binding->kind == TL_EXPR_VAR
                     ? tl_path_find_loop(&p->path, iter->binding->u.var)
                     : -1;
        const tl_stmt *loop = at >= p->top ? p->path.stmts[at] : NULL;
        p->extents[k] = iter->extent;
        if (loop == NULL && tl_is_int(iter->extent, 1) && factors[k] == 1 &&
            tl_is_int(iter->binding, 0))
            continue;
        if (loop == NULL || !tl_expr_equal(loop->u.loop.extent, iter->extent))
            return tl_refuse(diag, p->prim, block->name,
                             "its iter %s is bound to %s and must be bound to a loop of its own "
                             "over its domain: pad before its loops are split, fused or moved",
                             iter->var->name, tl_expr_text(s->arena, iter->binding));
        if (loop->u.loop.kind != TL_LOOP_SERIAL)
            return tl_refuse(diag, p->prim, block->name,
                             "its loop %s is %s; pad before loops get a "
                             "kind",
                             loop->u.loop.var->name, tl_loop_kind_infos[loop->u.loop.kind].text);
        for (int before = 0; before < k; before++)
            if (p->loops[before] == loop)
                return tl_refuse(diag, p->prim, block->name, "its loop %s drives two iters",
                                 loop->u.loop.var->name);
        p->loops[k] = loop;
        const tl_expr *factor = tl_int(s->arena, factors[k]);
        const tl_expr *rounded = tl_addi(s->arena, iter->extent, factors[k] - 1);
        p->extents[k] = tl_mul(s->arena, tl_floordiv_expr(s->arena, rounded, factor), factor);
        if (tl_expr_range(p->extents[k]).max > INT32_MAX)
            return tl_refuse(diag, p->prim, block->name,
                             "padded by %lld, iter %s has more than %d "
                             "values",
                             (long long)factors[k], iter->var->name, INT32_MAX);
    }
    for (int i = p->top; i < p->path.count - 1; i++) {
        bool is_own = tl_is_int(p->path.stmts[i]->u.loop.extent, 1);
        for (int k = 0; k < block->iter_count; k++)
            is_own |= p->loops[k] == p->path.stmts[i];
        if (!is_own)
            return tl_refuse(diag, p->prim, block->name,
                             "loop %s around it drives none of its iters",
                             p->path.stmts[i]->u.loop.var->name);
    }
    return TL_OK;
}

/* The indices of a store into the padded buffer: the spatial iters, and zeros where the store has them. */
static const tl_buffer *make_result(tl_schedule *s, const tl_padding *p, const tl_store *store)
{
    const tl_expr **shape = TL_NEW_ARRAY(s->arena, const tl_expr *, store->buffer->rank);
    for (int axis = 0; axis < store->buffer->rank; axis++) {
        shape[axis] = tl_int(s->arena, 1);
        for (int k = 0; k < p->block->iter_count; k++)
            if (tl_expr_uses_var(store->indices[axis], p->block->iters[k].var))
                shape[axis] = p->extents[k];
    }
    const char *name = tl_arena_format(s->arena, "%s_pad", store->buffer->name);
    return tl_buffer_make(s->arena, tl_fresh_buffer_name(s, name), store->buffer->dtype,
                          TL_ROLE_LOCAL, TL_SCOPE_GLOBAL, store->buffer->rank, shape);
}

const tl_stmt *tl_padded_nest(tl_schedule *s, const tl_padding *p, bool selects)
{
    const tl_buffer *const *padded = p->results;
    tl_arena *arena = s->arena;
    const tl_block *old = p->block;
    tl_iter *iters = TL_NEW_ARRAY(arena, tl_iter, old->iter_count);
    tl_binding *renamed = TL_NEW_ARRAY(arena, tl_binding, old->iter_count);
    const tl_var **vars = TL_NEW_ARRAY(arena, const tl_var *, old->iter_count);
    const tl_expr *inside = NULL;
    for (int k = 0; k < old->iter_count; k++) {
        iters[k] = old->iters[k];
        renamed[k] = (tl_binding){ old->iters[k].var, tl_ref(arena, old->iters[k].var) };
        if (p->loops[k] == NULL)
            continue;
        vars[k] = tl_var_derive(arena, p->loops[k]->u.loop.var, "", p->extents[k]);
        iters[k].var = tl_var_derive(arena, old->iters[k].var, "", p->extents[k]);
        iters[k].extent = p->extents[k];
        iters[k].binding = tl_ref(arena, vars[k]);
        renamed[k].value = tl_ref(arena, iters[k].var);
        const tl_expr *in_domain = tl_lt(arena, renamed[k].value, old->iters[k].extent);
        int64_t always;
        if (!tl_const_int(in_domain, &always))
            inside = tl_and(arena, inside, in_domain);
        tl_schedule_rename_loop(s, p->loops[k]->u.loop.var, vars[k]);
    }
    tl_store *stores = TL_NEW_ARRAY(arena, tl_store, old->store_count);
    for (int i = 0; i < old->store_count; i++) {
        const tl_buffer *b = padded[i];
        const tl_expr **indices = TL_NEW_ARRAY(arena, const tl_expr *, b->rank);
        for (int axis = 0; axis < b->rank; axis++)
            indices[axis] =
                tl_substitute(arena, old->stores[i].indices[axis], renamed, old->iter_count);
        const tl_expr *value = tl_substitute(arena, old->stores[i].value, renamed, old->iter_count);
        const tl_expr *outside = old->combiner == TL_COMBINER_NONE
                                     ? tl_constant(arena, b->dtype, 0)
                                     : tl_combiner_identity(arena, old->combiner, b->dtype, i);
        stores[i] =
            (tl_store){ b, indices,
                        inside && selects ? tl_select(arena, inside, value, outside) : value };
    }
    tl_block *block = tl_block_copy(arena, old);
    block->iters = iters;
    block->stores = stores;
    if (old->init) {
        const tl_expr **init = TL_NEW_ARRAY(arena, const tl_expr *, old->store_count);
        const tl_expr *spatial = NULL;
        for (int k = 0; k < old->iter_count; k++)
            if (old->iters[k].kind == TL_ITER_SPATIAL && p->loops[k])
                spatial =
                    tl_and(arena, spatial, tl_lt(arena, renamed[k].value, old->iters[k].extent));
        for (int i = 0; i < old->store_count; i++) {
            init[i] = tl_substitute(arena, old->init[i], renamed, old->iter_count);
            if (spatial && selects)
                init[i] = tl_select(arena, spatial, init[i], tl_constant(arena, init[i]->dtype, 0));
        }
        block->init = init;
    }
    const tl_stmt *stmt = tl_stmt_block(arena, block);
    for (int i = p->path.count - 2; i >= p->top; i--) {
        const tl_stmt *loop = p->path.stmts[i];
        int of = -1;
        for (int k = 0; k < old->iter_count; k++)
            if (p->loops[k] == loop)
                of = k;
        tl_stmt *copy = tl_stmt_copy(arena, loop);
        copy->u.loop.body = stmt;
        if (of >= 0) {
            copy->u.loop.var = vars[of];
            copy->u.loop.extent = p->extents[of];
        }
        stmt = copy;
    }
    return stmt;
}

/* The old domain of the spatial iters, copied. */
static const tl_stmt *copy_results(tl_schedule *s, const tl_padding *p, const char *name)
{
    tl_arena *arena = s->arena;
    const tl_buffer *const *padded = p->results;
    const tl_block *old = p->block;
    tl_iter *iters = TL_NEW_ARRAY(arena, tl_iter, old->iter_count);
    tl_binding *renamed = TL_NEW_ARRAY(arena, tl_binding, old->iter_count);
    const tl_var **vars = TL_NEW_ARRAY(arena, const tl_var *, old->iter_count);
    int count = 0;
    for (int k = 0; k < old->iter_count; k++) {
        const tl_iter *iter = &old->iters[k];
        renamed[k] = (tl_binding){ iter->var, tl_int(arena, 0) };
        if (iter->kind != TL_ITER_SPATIAL)
            continue;
        tl_var *var = tl_var_derive(arena, iter->var, "", iter->extent);
        vars[count] = tl_var_derive(arena, iter->var, "", iter->extent);
        renamed[k].value = tl_ref(arena, var);
        iters[count] = (tl_iter){ var, iter->kind, iter->extent, tl_ref(arena, vars[count]) };
        count++;
    }
    tl_store *stores = TL_NEW_ARRAY(arena, tl_store, old->store_count);
    for (int i = 0; i < old->store_count; i++) {
        const tl_store *store = &old->stores[i];
        const tl_expr **indices = TL_NEW_ARRAY(arena, const tl_expr *, store->buffer->rank);
        for (int axis = 0; axis < store->buffer->rank; axis++)
            indices[axis] = tl_substitute(arena, store->indices[axis], renamed, old->iter_count);
        stores[i] = (tl_store){ store->buffer, indices, tl_load(arena, padded[i], indices) };
    }
    tl_block *block = TL_NEW(arena, tl_block);
    *block = (tl_block){ .name = name,
                         .iter_count = count,
                         .iters = iters,
                         .store_count = old->store_count,
                         .stores = stores };
    const tl_stmt *stmt = tl_stmt_block(arena, block);
    for (int k = count - 1; k >= 0; k--)
        stmt = tl_stmt_loop(arena, vars[k], iters[k].extent, TL_LOOP_SERIAL, stmt);
    return stmt;
}

tl_status tl_padding_plan(tl_schedule *s, const char *prim, const tl_arg *args, tl_padding *p,
                          tl_diag *diag)
{
    assert(args[0].kind == TL_ARG_BLOCK && args[1].kind == TL_ARG_FACTORS);
    *p = (tl_padding){ .prim = prim };
    TL_TRY(tl_need_block(s, prim, args[0].block, &p->block, diag));
    TL_TRY(check_block(s, p, &args[1], diag));
    TL_TRY(check_stores(p, diag));
    TL_TRY(find_loops(s, p, args[1].factors, diag));
    p->results = TL_NEW_ARRAY(s->arena, const tl_buffer *, p->block->store_count);
    for (int i = 0; i < p->block->store_count; i++)
        p->results[i] = make_result(s, p, &p->block->stores[i]);
    return TL_OK;
}

void tl_padding_settle(tl_schedule *s, const tl_padding *p, const tl_stmt *with, tl_arg *out,
                       int *out_count)
{
    const char *name = tl_arena_format(s->arena, "%s_copy", p->block->name);
    name = tl_fresh_block_name(s, name);
    with = tl_stmt_seq2(s->arena, with, copy_results(s, p, name));
    for (int i = p->block->store_count - 1; i >= 0; i--)
        with = tl_stmt_alloc(s->arena, p->results[i], with);
    tl_path prefix = tl_path_prefix(&p->path, p->top + 1);
    tl_schedule_replace(s, &prefix, with);
    out[0] = (tl_arg){ .kind = TL_ARG_BLOCK, .block = tl_schedule_name_block(s, name) };
    *out_count = 1;
}
