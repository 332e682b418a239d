/* ir/program/program_rewrite.c: walking and rewriting statements. What does not change keeps its pointer. */
#include <assert.h>
#include <string.h>
#include "ir/program/program.h"

void tl_stmt_visit(const tl_stmt *s, tl_stmt_visitor *visit, void *context)
{
    if (!visit(s, context))
        return;
    switch (s->kind) {
    case TL_STMT_LOOP:
        tl_stmt_visit(s->u.loop.body, visit, context);
        return;
    case TL_STMT_SEQ:
        for (int i = 0; i < s->u.seq.count; i++)
            tl_stmt_visit(s->u.seq.items[i], visit, context);
        return;
    case TL_STMT_ALLOC:
        tl_stmt_visit(s->u.alloc.body, visit, context);
        return;
    case TL_STMT_IF:
        tl_stmt_visit(s->u.branch.then, visit, context);
        if (s->u.branch.otherwise != NULL)
            tl_stmt_visit(s->u.branch.otherwise, visit, context);
        return;
    case TL_STMT_BLOCK:
    case TL_STMT_BARRIER:
    case TL_STMT_PREFETCH:
    case TL_STMT_STORE:
    case TL_STMT_CALL:
    case TL_STMT_KIND_COUNT:
        return;
    }
}

/* ---- children ---- */

static const tl_stmt *rewrite_seq(tl_arena *arena, const tl_stmt *s, tl_stmt_rewriter *visit,
                                  void *context)
{
    assert(s->kind == TL_STMT_SEQ && s->u.seq.count > 0);
    int count = s->u.seq.count;
    const tl_stmt **items = NULL; /* made when the first item changes */
    for (int i = 0; i < count; i++) {
        const tl_stmt *item = tl_stmt_rewrite(arena, s->u.seq.items[i], visit, context);
        if (item != s->u.seq.items[i] && items == NULL) {
            items = TL_NEW_ARRAY(arena, const tl_stmt *, count);
            memcpy(items, s->u.seq.items, (size_t)i * sizeof *items);
        }
        if (items != NULL)
            items[i] = item;
    }
    if (items == NULL)
        return s;
    const tl_stmt *seq = tl_stmt_seq(arena, items, count);
    return seq->kind == TL_STMT_SEQ && seq->u.seq.count == 0 ? NULL : seq;
}

static const tl_stmt *rewrite_if(tl_arena *arena, const tl_stmt *s, tl_stmt_rewriter *visit,
                                 void *context)
{
    assert(s->kind == TL_STMT_IF && s->u.branch.then != NULL);
    const tl_stmt *then = tl_stmt_rewrite(arena, s->u.branch.then, visit, context);
    const tl_stmt *otherwise = s->u.branch.otherwise;
    if (otherwise != NULL)
        otherwise = tl_stmt_rewrite(arena, otherwise, visit, context);
    if (then == s->u.branch.then && otherwise == s->u.branch.otherwise)
        return s;
    if (then == NULL)
        return otherwise == NULL
                   ? NULL
                   : tl_stmt_if(arena, tl_not(arena, s->u.branch.condition), otherwise, NULL);
    return tl_stmt_if(arena, s->u.branch.condition, then, otherwise);
}

/* A loop, alloc, or SEQ that is left without anything in it goes too. */
const tl_stmt *tl_stmt_rewrite(tl_arena *arena, const tl_stmt *s, tl_stmt_rewriter *visit,
                               void *context)
{
    switch (s->kind) {
    case TL_STMT_LOOP:
    case TL_STMT_ALLOC: {
        const tl_stmt *body = s->kind == TL_STMT_LOOP ? s->u.loop.body : s->u.alloc.body;
        body = tl_stmt_rewrite(arena, body, visit, context);
        if (body == NULL)
            return NULL;
        s = tl_stmt_with_body(arena, s, body);
        break;
    }
    case TL_STMT_SEQ:
        s = rewrite_seq(arena, s, visit, context);
        break;
    case TL_STMT_IF:
        s = rewrite_if(arena, s, visit, context);
        break;
    case TL_STMT_BLOCK:
    case TL_STMT_BARRIER:
    case TL_STMT_PREFETCH:
    case TL_STMT_STORE:
    case TL_STMT_CALL:
    case TL_STMT_KIND_COUNT:
        break;
    }
    return s == NULL ? NULL : visit(arena, s, context);
}

/* ---- expressions ---- */

typedef struct {
    tl_arena *arena;
    tl_stmt_expr_mapper *map;
    void *context;
} mapping;

static const tl_expr *map_one(const mapping *m, const tl_expr *e)
{
    return e == NULL ? NULL : m->map(m->arena, e, m->context);
}

/* `exprs` with the mapping applied; the same array when none changed. */
static const tl_expr *const *map_list(const mapping *m, const tl_expr *const *exprs, int count)
{
    const tl_expr **copy = NULL;
    for (int i = 0; i < count; i++) {
        const tl_expr *e = map_one(m, exprs[i]);
        if (e != exprs[i] && copy == NULL)
            copy =
                tl_arena_copy(m->arena, exprs, (size_t)count * sizeof *exprs, _Alignof(tl_expr *));
        if (copy != NULL)
            copy[i] = e;
    }
    return copy == NULL ? exprs : copy;
}

static bool map_store(const mapping *m, const tl_store *store, tl_store *out)
{
    *out = *store;
    out->indices = map_list(m, store->indices, store->buffer->rank);
    out->value = map_one(m, store->value);
    return out->indices != store->indices || out->value != store->value;
}

static const tl_region *map_regions(const mapping *m, const tl_region *regions, int count)
{
    tl_region *copy = NULL;
    for (int i = 0; i < count; i++) {
        tl_region r = regions[i];
        r.begin = map_list(m, r.begin, r.buffer->rank);
        r.extent = map_list(m, r.extent, r.buffer->rank);
        if (r.begin == regions[i].begin && r.extent == regions[i].extent)
            continue;
        if (copy == NULL)
            copy = tl_arena_copy(m->arena, regions, (size_t)count * sizeof *regions,
                                 _Alignof(tl_region));
        copy[i] = r;
    }
    return copy == NULL ? regions : copy;
}

static const tl_intrinsic_call *map_call(const mapping *m, const tl_intrinsic_call *call)
{
    if (call == NULL)
        return NULL;
    tl_intrinsic_call c = *call;
    c.reads = map_regions(m, call->reads, call->read_count);
    c.writes = map_regions(m, call->writes, call->write_count);
    c.scalars = map_list(m, call->scalars, call->scalar_count);
    if (c.reads == call->reads && c.writes == call->writes && c.scalars == call->scalars)
        return call;
    return tl_arena_copy(m->arena, &c, sizeof c, _Alignof(tl_intrinsic_call));
}

static const tl_iter *map_iters(const mapping *m, const tl_iter *iters, int count)
{
    tl_iter *copy = NULL;
    for (int i = 0; i < count; i++) {
        const tl_expr *extent = map_one(m, iters[i].extent);
        const tl_expr *binding = map_one(m, iters[i].binding);
        if (extent == iters[i].extent && binding == iters[i].binding)
            continue;
        if (copy == NULL)
            copy = tl_arena_copy(m->arena, iters, (size_t)count * sizeof *iters, _Alignof(tl_iter));
        copy[i].extent = extent;
        copy[i].binding = binding;
    }
    return copy == NULL ? iters : copy;
}

static const tl_store *map_stores(const mapping *m, const tl_store *stores, int count)
{
    tl_store *copy = NULL;
    for (int i = 0; i < count; i++) {
        tl_store mapped;
        if (!map_store(m, &stores[i], &mapped))
            continue;
        if (copy == NULL)
            copy =
                tl_arena_copy(m->arena, stores, (size_t)count * sizeof *stores, _Alignof(tl_store));
        copy[i] = mapped;
    }
    return copy == NULL ? stores : copy;
}

static const tl_block *map_block(const mapping *m, const tl_block *block)
{
    tl_block b = *block;
    b.iters = map_iters(m, block->iters, block->iter_count);
    b.predicate = map_one(m, block->predicate);
    if (b.predicate != NULL && b.predicate != block->predicate &&
        b.predicate->kind == TL_EXPR_INT && b.predicate->u.value != 0)
        b.predicate = NULL; /* it became true */
    if (block->init != NULL)
        b.init = map_list(m, block->init, block->store_count);
    b.stores = map_stores(m, block->stores, block->store_count);
    b.call = map_call(m, block->call);
    if (b.iters == block->iters && b.predicate == block->predicate && b.init == block->init &&
        b.stores == block->stores && b.call == block->call)
        return block;
    return tl_block_copy(m->arena, &b);
}

const tl_stmt *tl_stmt_map_exprs(tl_arena *arena, const tl_stmt *s, tl_stmt_expr_mapper *map,
                                 void *context)
{
    mapping m = { arena, map, context };
    tl_stmt out = *s;
    bool changed = false;
    switch (s->kind) {
    case TL_STMT_LOOP:
        out.u.loop.extent = map_one(&m, s->u.loop.extent);
        changed = out.u.loop.extent != s->u.loop.extent;
        break;
    case TL_STMT_BLOCK:
        out.u.block = map_block(&m, s->u.block);
        changed = out.u.block != s->u.block;
        break;
    case TL_STMT_PREFETCH:
        out.u.prefetch.indices = map_list(&m, s->u.prefetch.indices, s->u.prefetch.buffer->rank);
        changed = out.u.prefetch.indices != s->u.prefetch.indices;
        break;
    case TL_STMT_IF:
        out.u.branch.condition = map_one(&m, s->u.branch.condition);
        changed = out.u.branch.condition != s->u.branch.condition;
        break;
    case TL_STMT_STORE:
        changed = map_store(&m, &s->u.store, &out.u.store);
        break;
    case TL_STMT_CALL:
        out.u.call = map_call(&m, s->u.call);
        changed = out.u.call != s->u.call;
        break;
    case TL_STMT_SEQ:
    case TL_STMT_ALLOC:
    case TL_STMT_BARRIER:
    case TL_STMT_KIND_COUNT:
        break;
    }
    return changed ? tl_stmt_copy(arena, &out) : s;
}

typedef struct {
    const tl_binding *bindings;
    int count;
} substitution;

static const tl_expr *substitute_expr(tl_arena *arena, const tl_expr *e, void *context)
{
    const substitution *sub = context;
    return tl_substitute(arena, e, sub->bindings, sub->count);
}

static const tl_stmt *substitute_stmt(tl_arena *arena, const tl_stmt *s, void *context)
{
    return tl_stmt_map_exprs(arena, s, substitute_expr, context);
}

const tl_stmt *tl_stmt_substitute(tl_arena *arena, const tl_stmt *s, const tl_binding *bindings,
                                  int count)
{
    substitution sub = { bindings, count };
    return count == 0 ? s : tl_stmt_rewrite(arena, s, substitute_stmt, &sub);
}

const tl_expr *tl_block_bind(tl_arena *arena, const tl_block *block, const tl_expr *over_iters)
{
    assert(block->iter_count >= 0);
    tl_binding few[16], *bindings = few;
    if (block->iter_count > 16)
        bindings = TL_NEW_ARRAY(arena, tl_binding, block->iter_count);
    for (int i = 0; i < block->iter_count; i++)
        bindings[i] = (tl_binding){ block->iters[i].var, block->iters[i].binding };
    return tl_substitute(arena, over_iters, bindings, block->iter_count);
}

/* ---- buffers ---- */

typedef struct {
    const tl_buffer *from, *to;
} replacement;

static const tl_expr *replace_load(tl_arena *arena, const tl_expr *e, void *context)
{
    const replacement *r = context;
    assert(r->from->rank == r->to->rank);
    if (e->kind != TL_EXPR_LOAD || e->u.buffer != r->from)
        return NULL;
    return tl_load(arena, r->to, e->args);
}

static const tl_expr *replace_in_expr(tl_arena *arena, const tl_expr *e, void *context)
{
    return tl_expr_rewrite(arena, e, replace_load, context);
}

static const tl_region *replace_in_regions(tl_arena *arena, const tl_region *regions, int count,
                                           const replacement *r)
{
    tl_region *copy = NULL;
    for (int i = 0; i < count; i++) {
        if (regions[i].buffer != r->from)
            continue;
        if (copy == NULL)
            copy =
                tl_arena_copy(arena, regions, (size_t)count * sizeof *regions, _Alignof(tl_region));
        copy[i].buffer = r->to;
    }
    return copy == NULL ? regions : copy;
}

static const tl_intrinsic_call *replace_in_call(tl_arena *arena, const tl_intrinsic_call *call,
                                                const replacement *r)
{
    if (call == NULL)
        return NULL;
    tl_intrinsic_call c = *call;
    c.reads = replace_in_regions(arena, call->reads, call->read_count, r);
    c.writes = replace_in_regions(arena, call->writes, call->write_count, r);
    if (c.reads == call->reads && c.writes == call->writes)
        return call;
    return tl_arena_copy(arena, &c, sizeof c, _Alignof(tl_intrinsic_call));
}

static const tl_block *replace_in_block(tl_arena *arena, const tl_block *block,
                                        const replacement *r)
{
    tl_store *stores = NULL;
    for (int i = 0; i < block->store_count; i++) {
        if (block->stores[i].buffer != r->from)
            continue;
        if (stores == NULL)
            stores = tl_arena_copy(arena, block->stores,
                                   (size_t)block->store_count * sizeof *stores, _Alignof(tl_store));
        stores[i].buffer = r->to;
    }
    const tl_intrinsic_call *call = replace_in_call(arena, block->call, r);
    if (stores == NULL && call == block->call)
        return block;
    tl_block *b = tl_block_copy(arena, block);
    if (stores != NULL)
        b->stores = stores;
    b->call = call;
    return b;
}

static const tl_stmt *replace_in_stmt(tl_arena *arena, const tl_stmt *s, void *context)
{
    const replacement *r = context;
    s = tl_stmt_map_exprs(arena, s, replace_in_expr, context);
    tl_stmt out = *s;
    switch (s->kind) {
    case TL_STMT_BLOCK:
        out.u.block = replace_in_block(arena, s->u.block, r);
        return out.u.block == s->u.block ? s : tl_stmt_copy(arena, &out);
    case TL_STMT_PREFETCH:
        if (s->u.prefetch.buffer != r->from)
            return s;
        out.u.prefetch.buffer = r->to;
        return tl_stmt_copy(arena, &out);
    case TL_STMT_STORE:
        if (s->u.store.buffer != r->from)
            return s;
        out.u.store.buffer = r->to;
        return tl_stmt_copy(arena, &out);
    case TL_STMT_CALL:
        out.u.call = replace_in_call(arena, s->u.call, r);
        return out.u.call == s->u.call ? s : tl_stmt_copy(arena, &out);
    case TL_STMT_LOOP:
    case TL_STMT_SEQ:
    case TL_STMT_ALLOC:
    case TL_STMT_BARRIER:
    case TL_STMT_IF:
    case TL_STMT_KIND_COUNT:
        break;
    }
    return s;
}

const tl_stmt *tl_stmt_replace_buffer(tl_arena *arena, const tl_stmt *s, const tl_buffer *from,
                                      const tl_buffer *to)
{
    assert(from->rank == to->rank && from->dtype == to->dtype);
    replacement r = { from, to };
    return tl_stmt_rewrite(arena, s, replace_in_stmt, &r);
}
