/* codegen/lower/split_inits.c: runs a reduction's init before its reduce loops, where that is provable.
 *
 *     for j                              for j
 *       for k                              block c_init: C[j] = 0
 *         block c: C[j] = sum(A[j, k])  ->     for k
 *                                            block c: C[j] sum= A[j, k]
 *
 * Requires  that no loop below the outermost reduce loop is unknown to the block, that nothing else there touches
 *           what it writes, and that every reduce iter is 0 in the first iteration of the reduce loops
 *           and in no later one.
 * Keeps     which elements are initialised, before any update. A block that does not qualify keeps its init. */
#include "codegen/lower/passes.h"
#include <assert.h>
#include <string.h>
#include "runtime/base/array.h"
#include "runtime/base/checked.h"

enum { MAX_DEPTH = 64, MAX_ITERS = 64 };

typedef struct {
    const char *name;
    int depth;
    const tl_stmt *stmts[MAX_DEPTH]; /* from the root down to the block */
} path;

static bool find(const tl_stmt *stmt, path *p)
{
    if (p->depth == MAX_DEPTH)
        return false;
    p->stmts[p->depth++] = stmt;
    assert(p->depth <= MAX_DEPTH);
    bool found = false;
    if (stmt->kind == TL_STMT_LOOP)
        found = find(stmt->u.loop.body, p);
    else if (stmt->kind == TL_STMT_ALLOC)
        found = find(stmt->u.alloc.body, p);
    else if (stmt->kind == TL_STMT_BLOCK)
        found = strcmp(stmt->u.block->name, p->name) == 0;
    else if (stmt->kind == TL_STMT_SEQ)
        for (int i = 0; i < stmt->u.seq.count && !found; i++)
            found = find(stmt->u.seq.items[i], p);
    if (!found)
        p->depth--;
    return found;
}

static bool is_reduce_loop(const tl_block *block, const tl_var *var)
{
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_REDUCE &&
            tl_expr_uses_var(block->iters[i].binding, var))
            return true;
    return false;
}

static bool is_spatial_loop(const tl_block *block, const tl_var *var)
{
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind != TL_ITER_REDUCE &&
            tl_expr_uses_var(block->iters[i].binding, var))
            return true;
    return false;
}

/* How often `stmt` touches the buffers that the block writes, the block's own accesses not counted. */
typedef struct {
    const tl_block *block;
    bool touched;
} others;

static bool other_touches(const tl_stmt *stmt, void *context)
{
    others *o = context;
    if (stmt->kind == TL_STMT_BLOCK && stmt->u.block != o->block)
        for (int s = 0; s < o->block->store_count; s++)
            if (tl_stmt_touches(stmt, o->block->stores[s].buffer))
                o->touched = true;
    if (stmt->kind == TL_STMT_ALLOC)
        for (int s = 0; s < o->block->store_count; s++)
            if (stmt->u.alloc.buffer == o->block->stores[s].buffer)
                o->touched = true; /* the buffer is made inside: the init must be as well */
    return true;
}

static bool find_modulo(const tl_expr *e, void *context)
{
    bool *found = context;
    *found |= e->kind == TL_EXPR_FLOORMOD;
    return !*found;
}

/* Whether the loops of a reduce iter that is a digit of them may run through the reduction more than once: a loop that
 * only repeats it was fused with a reduce loop. A guard leaves out less than one time. */
static bool repeats(const tl_block *block, const tl_iter *iter, const path *p)
{
    int64_t iterations = 1, instances = 1, extent;
    bool is_digit = false, has_guard = false;
    tl_expr_visit(iter->binding, find_modulo, &is_digit);
    bool drives[MAX_ITERS] = { false };
    if (!is_digit || block->iter_count > MAX_ITERS)
        return is_digit;
    for (int d = 0; d < p->depth; d++) {
        const tl_stmt *loop = p->stmts[d];
        if (loop->kind != TL_STMT_LOOP || !tl_expr_uses_var(iter->binding, loop->u.loop.var))
            continue;
        if (!tl_const_int(loop->u.loop.extent, &extent) ||
            tl_mul_overflows(iterations, extent, &iterations))
            return true;
        has_guard |= block->predicate && tl_expr_uses_var(block->predicate, loop->u.loop.var);
        for (int k = 0; k < block->iter_count; k++)
            drives[k] |= tl_expr_uses_var(block->iters[k].binding, loop->u.loop.var);
    }
    for (int k = 0; k < block->iter_count; k++)
        if (drives[k] && (!tl_const_int(block->iters[k].extent, &extent) ||
                          tl_mul_overflows(instances, extent, &instances)))
            return true;
    return has_guard ? iterations >= 2 * instances : iterations > instances;
}

/* The depth of the outermost reduce loop, or -1 when the init has to stay. */
static int outermost_reduce(tl_arena *arena, const path *p, const tl_block *block)
{
    assert(p->depth > 0);
    int at = -1;
    for (int d = 0; d < p->depth && at < 0; d++)
        if (p->stmts[d]->kind == TL_STMT_LOOP && is_reduce_loop(block, p->stmts[d]->u.loop.var))
            at = d;
    if (at < 0)
        return -1;
    tl_binding zeros[MAX_DEPTH];
    int zero_count = 0;
    for (int d = at; d < p->depth; d++) {
        if (p->stmts[d]->kind != TL_STMT_LOOP)
            continue;
        const tl_var *var = p->stmts[d]->u.loop.var;
        bool reduce = is_reduce_loop(block, var), spatial = is_spatial_loop(block, var);
        if (reduce == spatial)
            return -1;
        if (reduce)
            zeros[zero_count++] = (tl_binding){ var, tl_int(arena, 0) };
    }
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_REDUCE &&
            (!tl_is_int(tl_substitute(arena, block->iters[i].binding, zeros, zero_count), 0) ||
             repeats(block, &block->iters[i], p)))
            return -1;
    others o = { block, false };
    tl_stmt_visit(p->stmts[at], other_touches, &o);
    return o.touched ? -1 : at;
}

static const tl_block *init_block(tl_arena *arena, const tl_block *block, const tl_binding *loops,
                                  int loop_count, const tl_binding *zeros, int zero_count)
{
    assert(loop_count >= 0 && zero_count >= 0);
    tl_block *init = TL_NEW(arena, tl_block);
    tl_iter *iters = TL_NEW_ARRAY(arena, tl_iter, block->iter_count);
    tl_binding *fresh = TL_NEW_ARRAY(arena, tl_binding, block->iter_count + zero_count);
    int fresh_count = 0;
    init->name = tl_arena_format(arena, "%s_init", block->name);
    for (int i = 0; i < block->iter_count; i++) {
        const tl_iter *iter = &block->iters[i];
        if (iter->kind == TL_ITER_REDUCE) {
            fresh[fresh_count++] = (tl_binding){ iter->var, tl_int(arena, 0) };
            continue;
        }
        tl_var *var = tl_var_make(arena, iter->var->name, iter->var->min, iter->var->max);
        fresh[fresh_count++] = (tl_binding){ iter->var, tl_ref(arena, var) };
        iters[init->iter_count++] =
            (tl_iter){ var, iter->kind, iter->extent,
                       tl_substitute(arena, iter->binding, loops, loop_count) };
    }
    init->iters = iters;
    if (block->predicate != NULL) {
        const tl_expr *p = tl_substitute(arena, block->predicate, zeros, zero_count);
        p = tl_substitute(arena, p, loops, loop_count);
        init->predicate = tl_substitute(arena, p, fresh, fresh_count);
    }
    tl_store *stores = TL_NEW_ARRAY(arena, tl_store, block->store_count);
    for (int s = 0; s < block->store_count; s++) {
        const tl_buffer *buffer = block->stores[s].buffer;
        const tl_expr **indices = TL_NEW_ARRAY(arena, const tl_expr *, buffer->rank);
        for (int a = 0; a < buffer->rank; a++)
            indices[a] = tl_substitute(arena, block->stores[s].indices[a], fresh, fresh_count);
        const tl_expr *value = block->init != NULL
                                   ? tl_substitute(arena, block->init[s], fresh, fresh_count)
                                   : tl_combiner_identity(arena, block->combiner, buffer->dtype, s);
        stores[s] = (tl_store){ buffer, indices, value };
    }
    init->store_count = block->store_count;
    init->stores = stores;
    return init;
}

/* The init's own copy of the spatial loops between the reduce loop and the block. */
static const tl_stmt *init_nest(tl_arena *arena, const path *p, int at, const tl_block *block)
{
    assert(at >= 0 && at < p->depth && p->depth <= MAX_DEPTH);
    tl_binding loops[MAX_DEPTH], zeros[MAX_DEPTH];
    const tl_stmt *from[MAX_DEPTH];
    tl_var *vars[MAX_DEPTH];
    int loop_count = 0, zero_count = 0;
    for (int d = at; d < p->depth; d++) {
        const tl_stmt *stmt = p->stmts[d];
        if (stmt->kind != TL_STMT_LOOP)
            continue;
        const tl_var *var = stmt->u.loop.var;
        if (is_reduce_loop(block, var)) {
            zeros[zero_count++] = (tl_binding){ var, tl_int(arena, 0) };
            continue;
        }
        from[loop_count] = stmt;
        vars[loop_count] = tl_var_make(arena, var->name, var->min, var->max);
        loops[loop_count] = (tl_binding){ var, tl_ref(arena, vars[loop_count]) };
        loop_count++;
    }
    const tl_stmt *nest =
        tl_stmt_block(arena, init_block(arena, block, loops, loop_count, zeros, zero_count));
    for (int l = loop_count - 1; l >= 0; l--)
        nest = tl_stmt_loop(arena, vars[l], from[l]->u.loop.extent, from[l]->u.loop.kind, nest);
    return nest;
}

typedef struct {
    const tl_stmt *at, *nest;
    const tl_block *from;
    const tl_stmt *updated; /* the block without its init */
    const tl_stmt *rebuilt;
} replacement;

static const tl_stmt *replace_block(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    const replacement *r = context;
    (void)arena;
    return stmt->kind == TL_STMT_BLOCK && stmt->u.block == r->from ? r->updated : stmt;
}

/* The whole tree with `r->at` replaced by the init's nest and the loop of updates. */
static const tl_stmt *replace_loop(tl_arena *arena, const tl_stmt *stmt, const replacement *r)
{
    if (stmt == r->at)
        return tl_stmt_seq2(arena, r->nest, r->rebuilt);
    if (stmt->kind == TL_STMT_LOOP)
        return tl_stmt_with_body(arena, stmt, replace_loop(arena, stmt->u.loop.body, r));
    if (stmt->kind == TL_STMT_ALLOC)
        return tl_stmt_with_body(arena, stmt, replace_loop(arena, stmt->u.alloc.body, r));
    if (stmt->kind != TL_STMT_SEQ)
        return stmt;
    const tl_stmt **items = TL_NEW_ARRAY(arena, const tl_stmt *, stmt->u.seq.count);
    bool changed = false;
    for (int i = 0; i < stmt->u.seq.count; i++) {
        items[i] = replace_loop(arena, stmt->u.seq.items[i], r);
        changed = changed || items[i] != stmt->u.seq.items[i];
    }
    return changed ? tl_stmt_seq(arena, items, stmt->u.seq.count) : stmt;
}

typedef struct {
    tl_arena *arena;
    int count, capacity;
    const tl_block **blocks;
} block_list;

static bool collect(const tl_stmt *stmt, void *context)
{
    block_list *list = context;
    if (stmt->kind != TL_STMT_BLOCK || !stmt->u.block->has_init)
        return true;
    TL_ROOM(list->arena, list->blocks, list->count, list->capacity);
    list->blocks[list->count++] = stmt->u.block;
    return true;
}

tl_status tl_split_inits(tl_lowered_kernel *kernel, tl_diag *diag)
{
    (void)diag;
    tl_arena *arena = kernel->arena;
    block_list list = { arena, 0, 0, NULL };
    tl_stmt_visit(kernel->body, collect, &list);
    for (int b = 0; b < list.count; b++) {
        const tl_block *block = list.blocks[b];
        path p = { .name = block->name };
        if (!find(kernel->body, &p))
            continue;
        int at = outermost_reduce(arena, &p, block);
        if (at < 0)
            continue;
        tl_block *update = TL_NEW(arena, tl_block);
        *update = *block;
        update->has_init = false;
        update->init = NULL;
        replacement r = { .at = p.stmts[at],
                          .nest = init_nest(arena, &p, at, block),
                          .from = block };
        r.updated = tl_stmt_block(arena, update);
        r.rebuilt = tl_stmt_rewrite(arena, r.at, replace_block, &r);
        kernel->body = replace_loop(arena, kernel->body, &r);
    }
    return TL_OK;
}
