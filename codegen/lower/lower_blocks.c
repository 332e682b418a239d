/* codegen/lower/lower_blocks.c: blocks become stores.
 *
 *     block c                                    if j0*8 + j1 < 100
 *       spatial j = j0*8 + j1                      C[j0*8 + j1] = C[j0*8 + j1] + A[j0*8 + j1, k]
 *       reduce k                          ->
 *       where j < 100
 *       C[j] sum= A[j, k]
 *
 * Leaves    no blocks. An init that could not be split off is under a test of the reduce iters; the pair of an
 *           arg reduction is stored under one test of its value; values that would be read after a store of the
 *           same instance go through a register first. A vectorized loop that drives a reduction whose lanes cannot be
 *           joined is serial. */
#include <assert.h>
#include "codegen/lower/passes.h"

typedef struct {
    tl_arena *arena;
    tl_var_set serialised; /* loops over the instances of a reduction that stays serial */
} lowering;

static const tl_expr **bind_all(tl_arena *arena, const tl_block *block, const tl_expr *const *exprs,
                                int count)
{
    const tl_expr **out = TL_NEW_ARRAY(arena, const tl_expr *, count);
    for (int i = 0; i < count; i++)
        out[i] = tl_block_bind(arena, block, exprs[i]);
    return out;
}

static tl_region *bind_regions(tl_arena *arena, const tl_block *block, const tl_region *regions,
                               int count)
{
    tl_region *out = TL_NEW_ARRAY(arena, tl_region, count);
    for (int r = 0; r < count; r++) {
        int rank = regions[r].buffer->rank;
        out[r] = (tl_region){ regions[r].buffer, bind_all(arena, block, regions[r].begin, rank),
                              bind_all(arena, block, regions[r].extent, rank) };
    }
    return out;
}

static const tl_stmt *lower_call(tl_arena *arena, const tl_block *block)
{
    tl_intrinsic_call *call = TL_NEW(arena, tl_intrinsic_call);
    *call = *block->call;
    call->reads = bind_regions(arena, block, call->reads, call->read_count);
    call->writes = bind_regions(arena, block, call->writes, call->write_count);
    call->scalars = bind_all(arena, block, call->scalars, call->scalar_count);
    return tl_stmt_call(arena, call);
}

/* All reduce iters are 0. */
static const tl_expr *is_first(tl_arena *arena, const tl_block *block)
{
    const tl_expr *first = NULL;
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_REDUCE)
            first = tl_and(arena, first, tl_eq(arena, block->iters[i].binding, tl_int(arena, 0)));
    return first == NULL ? tl_bool(arena, true) : first;
}

static tl_expr_kind combiner_kind(tl_combiner combiner)
{
    switch (combiner) {
    case TL_COMBINER_SUM:
        return TL_EXPR_ADD;
    case TL_COMBINER_PROD:
        return TL_EXPR_MUL;
    case TL_COMBINER_MIN:
        return TL_EXPR_MIN;
    case TL_COMBINER_MAX:
        return TL_EXPR_MAX;
    case TL_COMBINER_ALL:
        return TL_EXPR_AND;
    case TL_COMBINER_ANY:
        return TL_EXPR_OR;
    case TL_COMBINER_NONE:
    case TL_COMBINER_ARGMIN:
    case TL_COMBINER_ARGMAX:
    case TL_COMBINER_COUNT:
        break;
    }
    return TL_EXPR_KIND_COUNT;
}

/* value before V, or equal to it with a smaller index. */
static const tl_stmt *lower_pair(tl_arena *arena, const tl_block *block, const tl_store *stores)
{
    const tl_expr *old = tl_load(arena, stores[0].buffer, stores[0].indices);
    const tl_expr *old_index = tl_load(arena, stores[1].buffer, stores[1].indices);
    const tl_expr *value = stores[0].value, *index = stores[1].value;
    const tl_expr *better =
        block->combiner == TL_COMBINER_ARGMAX ? tl_lt(arena, old, value) : tl_lt(arena, value, old);
    const tl_expr *tie = tl_and(arena, tl_eq(arena, value, old), tl_lt(arena, index, old_index));
    const tl_stmt *both =
        tl_stmt_seq2(arena, tl_stmt_store(arena, stores[0].buffer, stores[0].indices, value),
                     tl_stmt_store(arena, stores[1].buffer, stores[1].indices, index));
    return tl_stmt_if(arena, tl_or(arena, better, tie), both, NULL);
}

typedef struct {
    const tl_store *stores;
    int count;
    bool found;
} reads_earlier;

static bool reads_stored(const tl_expr *e, void *context)
{
    reads_earlier *r = context;
    for (int s = 0; s < r->count && e->kind == TL_EXPR_LOAD; s++)
        if (e->u.buffer == r->stores[s].buffer)
            r->found = true;
    return !r->found;
}

/* Plain stores, in order; values are read before any store. */
static const tl_stmt *lower_stores(tl_arena *arena, const tl_store *stores, int count)
{
    assert(count > 0);
    const tl_stmt **before = TL_NEW_ARRAY(arena, const tl_stmt *, 2 * count);
    const tl_buffer **temporaries = TL_NEW_ARRAY(arena, const tl_buffer *, count);
    int statement_count = 0, temporary_count = 0;
    const tl_expr **values = TL_NEW_ARRAY(arena, const tl_expr *, count);
    for (int s = 0; s < count; s++) {
        reads_earlier r = { stores, s, false };
        tl_expr_visit(stores[s].value, reads_stored, &r);
        values[s] = stores[s].value;
        if (!r.found)
            continue;
        const tl_buffer *t = tl_buffer_make(arena, "kept", stores[s].buffer->dtype, TL_ROLE_LOCAL,
                                            TL_SCOPE_REGISTER, 0, NULL);
        temporaries[temporary_count++] = t;
        before[statement_count++] = tl_stmt_store(arena, t, NULL, values[s]);
        values[s] = tl_load(arena, t, NULL);
    }
    for (int s = 0; s < count; s++)
        before[statement_count++] =
            tl_stmt_store(arena, stores[s].buffer, stores[s].indices, values[s]);
    const tl_stmt *all = tl_stmt_seq(arena, before, statement_count);
    for (int t = 0; t < temporary_count; t++)
        all = tl_stmt_alloc(arena, temporaries[t], all);
    return all;
}

static const tl_stmt *lower_block(tl_arena *arena, const tl_block *block)
{
    if (block->call != NULL)
        return lower_call(arena, block);
    tl_store *stores = TL_NEW_ARRAY(arena, tl_store, block->store_count);
    for (int s = 0; s < block->store_count; s++)
        stores[s] = (tl_store){ block->stores[s].buffer,
                                bind_all(arena, block, block->stores[s].indices,
                                         block->stores[s].buffer->rank),
                                tl_block_bind(arena, block, block->stores[s].value) };
    if (block->combiner == TL_COMBINER_NONE)
        return lower_stores(arena, stores, block->store_count);

    const tl_stmt *init = NULL, *update;
    if (block->has_init) {
        tl_store *inits = TL_NEW_ARRAY(arena, tl_store, block->store_count);
        for (int s = 0; s < block->store_count; s++) {
            inits[s] = stores[s];
            inits[s].value = block->init != NULL ? tl_block_bind(arena, block, block->init[s])
                                                 : tl_combiner_identity(arena, block->combiner,
                                                                        stores[s].buffer->dtype, s);
        }
        init = tl_stmt_if(arena, is_first(arena, block),
                          lower_stores(arena, inits, block->store_count), NULL);
    }
    tl_expr_kind kind = combiner_kind(block->combiner);
    if (kind == TL_EXPR_KIND_COUNT) {
        update = lower_pair(arena, block, stores);
    } else {
        const tl_expr *old = tl_load(arena, stores[0].buffer, stores[0].indices);
        update = tl_stmt_store(arena, stores[0].buffer, stores[0].indices,
                               tl_binary(arena, kind, old, stores[0].value));
    }
    return tl_stmt_seq2(arena, init, update);
}

static bool mark_vars(const tl_expr *e, void *context)
{
    lowering *l = context;
    if (e->kind == TL_EXPR_VAR)
        tl_var_set_add(l->arena, &l->serialised, e->u.var);
    return true;
}

/* Whether C op rest is made of C and rest: sums of i64 and chains of `and` and `or` have a canonical form, in which C
 * may come to stand among the parts of rest. */
static bool keeps_shape(tl_arena *arena, const tl_block *block)
{
    const tl_store *s = &block->stores[0];
    tl_expr_kind kind = combiner_kind(block->combiner);
    const tl_expr *old =
        tl_load(arena, s->buffer, bind_all(arena, block, s->indices, s->buffer->rank));
    const tl_expr *update = tl_binary(arena, kind, old, tl_block_bind(arena, block, s->value));
    return update->kind == kind &&
           (tl_expr_equal(update->args[0], old) || tl_expr_equal(update->args[1], old));
}

/* Reductions whose lanes cannot be joined: pairs; what is no plain update; and i64 products, where a factor that is a
 * sum is multiplied out, at the latest when its variables are bound. */
static bool stays_serial(tl_arena *arena, const tl_block *block)
{
    if (block->combiner == TL_COMBINER_NONE)
        return false;
    return combiner_kind(block->combiner) == TL_EXPR_KIND_COUNT || !keeps_shape(arena, block) ||
           (block->combiner == TL_COMBINER_PROD && block->stores[0].buffer->dtype == TL_I64 &&
            block->stores[0].value->kind != TL_EXPR_LOAD);
}

static bool mark_serial_loops(const tl_stmt *stmt, void *context)
{
    if (stmt->kind != TL_STMT_BLOCK)
        return true;
    const tl_block *block = stmt->u.block;
    const lowering *l = context;
    if (stays_serial(l->arena, block))
        for (int i = 0; i < block->iter_count; i++)
            if (block->iters[i].kind == TL_ITER_REDUCE)
                tl_expr_visit(block->iters[i].binding, mark_vars, context);
    return true;
}

static const tl_stmt *lower(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    lowering *l = context;
    if (stmt->kind == TL_STMT_LOOP && stmt->u.loop.kind == TL_LOOP_VECTORIZED &&
        tl_var_set_has(&l->serialised, stmt->u.loop.var))
        return tl_stmt_loop(arena, stmt->u.loop.var, stmt->u.loop.extent, TL_LOOP_SERIAL,
                            stmt->u.loop.body);
    if (stmt->kind != TL_STMT_BLOCK)
        return stmt;
    const tl_block *block = stmt->u.block;
    const tl_stmt *lowered = lower_block(arena, block);
    if (block->predicate == NULL)
        return lowered;
    return tl_stmt_if(arena, tl_block_bind(arena, block, block->predicate), lowered, NULL);
}

tl_status tl_lower_blocks(tl_lowered_kernel *kernel, tl_diag *diag)
{
    (void)diag;
    lowering l = { kernel->arena, { 0, 0, NULL } };
    tl_stmt_visit(kernel->body, mark_serial_loops, &l);
    kernel->body = tl_stmt_rewrite(kernel->arena, kernel->body, lower, &l);
    return TL_OK;
}
