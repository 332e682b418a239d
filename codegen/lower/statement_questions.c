/* codegen/lower/statement_questions.c: questions that several passes ask of statements. */
#include <assert.h>
#include <string.h>
#include "codegen/lower/passes.h"
#include "runtime/base/array.h"

/* Every expression of one statement, its children not included. */
typedef struct {
    tl_expr_visitor *visit;
    void *context;
} expr_walk;

static void walk_exprs(const tl_expr *const *exprs, int count, const expr_walk *walk)
{
    for (int i = 0; i < count; i++)
        tl_expr_visit(exprs[i], walk->visit, walk->context);
}

static void walk_regions(const tl_region *regions, int count, const expr_walk *walk)
{
    for (int r = 0; r < count; r++) {
        walk_exprs(regions[r].begin, regions[r].buffer->rank, walk);
        walk_exprs(regions[r].extent, regions[r].buffer->rank, walk);
    }
}

static void walk_call(const tl_intrinsic_call *call, const expr_walk *walk)
{
    walk_regions(call->reads, call->read_count, walk);
    walk_regions(call->writes, call->write_count, walk);
    walk_exprs(call->scalars, call->scalar_count, walk);
}

static void walk_block(const tl_block *block, const expr_walk *walk)
{
    for (int i = 0; i < block->iter_count; i++)
        tl_expr_visit(block->iters[i].binding, walk->visit, walk->context);
    if (block->predicate != NULL)
        tl_expr_visit(block->predicate, walk->visit, walk->context);
    for (int s = 0; s < block->store_count; s++) {
        walk_exprs(block->stores[s].indices, block->stores[s].buffer->rank, walk);
        tl_expr_visit(block->stores[s].value, walk->visit, walk->context);
        if (block->init != NULL)
            tl_expr_visit(block->init[s], walk->visit, walk->context);
    }
    if (block->call != NULL)
        walk_call(block->call, walk);
}

static void walk_stmt_exprs(const tl_stmt *stmt, const expr_walk *walk)
{
    switch (stmt->kind) {
    case TL_STMT_LOOP:
        tl_expr_visit(stmt->u.loop.extent, walk->visit, walk->context);
        break;
    case TL_STMT_BLOCK:
        walk_block(stmt->u.block, walk);
        break;
    case TL_STMT_PREFETCH:
        walk_exprs(stmt->u.prefetch.indices, stmt->u.prefetch.buffer->rank, walk);
        break;
    case TL_STMT_IF:
        tl_expr_visit(stmt->u.branch.condition, walk->visit, walk->context);
        break;
    case TL_STMT_STORE:
        walk_exprs(stmt->u.store.indices, stmt->u.store.buffer->rank, walk);
        tl_expr_visit(stmt->u.store.value, walk->visit, walk->context);
        break;
    case TL_STMT_CALL:
        walk_call(stmt->u.call, walk);
        break;
    case TL_STMT_SEQ:
    case TL_STMT_ALLOC:
    case TL_STMT_BARRIER:
    case TL_STMT_KIND_COUNT:
        break;
    }
}

typedef struct {
    const tl_buffer *buffer;
    bool found;
    tl_access_visitor *visit;
    void *context;
    bool stopped;
} access_walk;

static bool access_in_expr(const tl_expr *e, void *context)
{
    access_walk *walk = context;
    if (e->kind == TL_EXPR_LOAD && e->u.buffer == walk->buffer) {
        walk->found = true;
        if (walk->visit != NULL && !walk->stopped && !walk->visit(e->args, walk->context))
            walk->stopped = true;
    }
    return true;
}

static void store_access(access_walk *walk, const tl_buffer *buffer, const tl_expr *const *indices)
{
    if (buffer != walk->buffer)
        return;
    walk->found = true;
    if (walk->visit != NULL && !walk->stopped && !walk->visit(indices, walk->context))
        walk->stopped = true;
}

static bool call_has(const tl_intrinsic_call *call, const tl_buffer *buffer)
{
    for (int r = 0; r < call->read_count; r++)
        if (call->reads[r].buffer == buffer)
            return true;
    for (int w = 0; w < call->write_count; w++)
        if (call->writes[w].buffer == buffer)
            return true;
    return false;
}

static bool access_in_stmt(const tl_stmt *stmt, void *context)
{
    access_walk *walk = context;
    expr_walk exprs = { access_in_expr, walk };
    walk_stmt_exprs(stmt, &exprs);
    if (stmt->kind == TL_STMT_STORE)
        store_access(walk, stmt->u.store.buffer, stmt->u.store.indices);
    if (stmt->kind == TL_STMT_PREFETCH)
        store_access(walk, stmt->u.prefetch.buffer, stmt->u.prefetch.indices);
    if (stmt->kind == TL_STMT_BLOCK) {
        const tl_block *block = stmt->u.block;
        for (int s = 0; s < block->store_count; s++)
            store_access(walk, block->stores[s].buffer, block->stores[s].indices);
        if (block->call != NULL && call_has(block->call, walk->buffer))
            walk->found = true;
    }
    if (stmt->kind == TL_STMT_CALL && call_has(stmt->u.call, walk->buffer))
        walk->found = true;
    return true;
}

bool tl_stmt_touches(const tl_stmt *stmt, const tl_buffer *buffer)
{
    access_walk walk = { buffer, false, NULL, NULL, false };
    tl_stmt_visit(stmt, access_in_stmt, &walk);
    return walk.found;
}

void tl_visit_accesses(const tl_stmt *stmt, const tl_buffer *buffer, tl_access_visitor *visit,
                       void *context)
{
    access_walk walk = { buffer, false, visit, context, false };
    tl_stmt_visit(stmt, access_in_stmt, &walk);
}

typedef struct {
    const tl_buffer *buffer;
    bool found;
} call_walk;

static bool call_in_stmt(const tl_stmt *stmt, void *context)
{
    call_walk *walk = context;
    if (stmt->kind == TL_STMT_CALL && call_has(stmt->u.call, walk->buffer))
        walk->found = true;
    return true;
}

bool tl_stmt_calls_with(const tl_stmt *stmt, const tl_buffer *buffer)
{
    call_walk walk = { buffer, false };
    tl_stmt_visit(stmt, call_in_stmt, &walk);
    return walk.found;
}

/* Variables. */
bool tl_var_set_has(const tl_var_set *set, const tl_var *var)
{
    for (int i = 0; i < set->count; i++)
        if (set->vars[i] == var)
            return true;
    return false;
}

void tl_var_set_add(tl_arena *arena, tl_var_set *set, const tl_var *var)
{
    assert(var != NULL && set->count <= set->capacity);
    if (tl_var_set_has(set, var))
        return;
    TL_ROOM(arena, set->vars, set->count, set->capacity);
    set->vars[set->count++] = var;
}

typedef struct {
    tl_arena *arena;
    tl_var_set set;
} collect;

static bool collect_loop(const tl_stmt *stmt, void *context)
{
    collect *c = context;
    if (stmt->kind == TL_STMT_LOOP)
        tl_var_set_add(c->arena, &c->set, stmt->u.loop.var);
    return true;
}

tl_var_set tl_stmt_loop_vars(tl_arena *arena, const tl_stmt *stmt)
{
    collect c = { arena, { 0, 0, NULL } };
    tl_stmt_visit(stmt, collect_loop, &c);
    return c.set;
}

typedef struct {
    const tl_var_set *set;
    bool found;
} use_walk;

static bool use_visit(const tl_expr *e, void *context)
{
    use_walk *walk = context;
    if (e->kind == TL_EXPR_VAR && tl_var_set_has(walk->set, e->u.var))
        walk->found = true;
    return !walk->found;
}

bool tl_expr_uses_any(const tl_expr *e, const tl_var_set *set)
{
    use_walk walk = { set, false };
    tl_expr_visit(e, use_visit, &walk);
    return walk.found;
}

/* Remapping accesses. */
typedef struct {
    const tl_buffer *from, *to;
    tl_index_mapper *map;
    void *context;
} remap;

static const tl_expr *remap_leaf(tl_arena *arena, const tl_expr *e, void *context)
{
    remap *r = context;
    if (e->kind != TL_EXPR_LOAD || e->u.buffer != r->from)
        return NULL;
    return tl_load(arena, r->to, r->map(arena, e->args, r->context));
}

static const tl_expr *remap_expr(tl_arena *arena, const tl_expr *e, void *context)
{
    return tl_expr_rewrite(arena, e, remap_leaf, context);
}

/* Only where a region's first element moves: its extents stay. */
static const tl_region *remap_regions(tl_arena *arena, const tl_region *regions, int count,
                                      const remap *r)
{
    tl_region *out = TL_NEW_ARRAY(arena, tl_region, count);
    for (int i = 0; i < count; i++) {
        out[i] = regions[i];
        if (regions[i].buffer != r->from)
            continue;
        out[i].buffer = r->to;
        out[i].begin = r->map(arena, regions[i].begin, r->context);
    }
    return out;
}

static const tl_stmt *remap_stmt(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    remap *r = context;
    stmt = tl_stmt_map_exprs(arena, stmt, remap_expr, r);
    if (stmt->kind == TL_STMT_STORE && stmt->u.store.buffer == r->from)
        return tl_stmt_store(arena, r->to, r->map(arena, stmt->u.store.indices, r->context),
                             stmt->u.store.value);
    if (stmt->kind == TL_STMT_CALL && tl_stmt_calls_with(stmt, r->from)) {
        tl_intrinsic_call *call = TL_NEW(arena, tl_intrinsic_call);
        *call = *stmt->u.call;
        call->reads = remap_regions(arena, call->reads, call->read_count, r);
        call->writes = remap_regions(arena, call->writes, call->write_count, r);
        return tl_stmt_call(arena, call);
    }
    if (stmt->kind == TL_STMT_PREFETCH && stmt->u.prefetch.buffer == r->from)
        return tl_stmt_prefetch(arena, r->to, r->map(arena, stmt->u.prefetch.indices, r->context),
                                stmt->u.prefetch.level);
    return stmt;
}

const tl_stmt *tl_remap_accesses(tl_arena *arena, const tl_stmt *stmt, const tl_buffer *from,
                                 const tl_buffer *to, tl_index_mapper *map, void *context)
{
    remap r = { from, to, map, context };
    return tl_stmt_rewrite(arena, stmt, remap_stmt, &r);
}

/* Regions of calls. */
typedef struct {
    const tl_buffer *buffer;
    tl_region_visitor *visit;
    void *context;
} region_walk;

static bool see_regions(const tl_stmt *stmt, void *context)
{
    const region_walk *walk = context;
    if (stmt->kind != TL_STMT_CALL)
        return true;
    const tl_intrinsic_call *call = stmt->u.call;
    for (int i = 0; i < call->read_count + call->write_count; i++) {
        const tl_region *region =
            i < call->read_count ? &call->reads[i] : &call->writes[i - call->read_count];
        if (region->buffer == walk->buffer)
            walk->visit(region, walk->context);
    }
    return true;
}

void tl_visit_regions(const tl_stmt *stmt, const tl_buffer *buffer, tl_region_visitor *visit,
                      void *context)
{
    region_walk walk = { buffer, visit, context };
    tl_stmt_visit(stmt, see_regions, &walk);
}

/* Lanes. */
typedef struct {
    bool is_gpu;
    int narrow, wide; /* bits of the widest type up to 4 bytes, and of the 8-byte ones */
} width_walk;

static void see_dtype(width_walk *w, tl_dtype dtype)
{
    if (dtype == TL_BOOL)
        return;
    bool in_f32 = !w->is_gpu && (dtype == TL_F16 || dtype == TL_BF16); /* computed there */
    int bits = in_f32 ? 32 : tl_dtype_infos[dtype].bits;
    if (bits > 32)
        w->wide = bits;
    else if (bits > w->narrow)
        w->narrow = bits;
}

static bool width_in_value(const tl_expr *e, void *context)
{
    width_walk *w = context;
    if (e->kind == TL_EXPR_VAR)
        return false;
    if (e->dtype != TL_I64 || e->kind == TL_EXPR_LOAD)
        see_dtype(w, e->dtype);
    return e->kind != TL_EXPR_LOAD; /* what computes an index has no say */
}

static bool width_in_stmt(const tl_stmt *stmt, void *context)
{
    width_walk *w = context;
    if (stmt->kind == TL_STMT_STORE) {
        see_dtype(w, stmt->u.store.buffer->dtype);
        tl_expr_visit(stmt->u.store.value, width_in_value, w);
    }
    return true;
}

int tl_vector_lanes(const tl_stmt *loop, const tl_target *target)
{
    enum { GPU_ACCESS_BITS = 128 }; /* a thread's: its arithmetic is scalar */
    width_walk w = { .is_gpu = tl_target_is_gpu(target) };
    tl_stmt_visit(loop, width_in_stmt, &w);
    int bits = w.narrow > 0 ? w.narrow : w.wide > 0 ? w.wide : 8;
    int lanes = (w.is_gpu ? GPU_ACCESS_BITS : tl_isa_infos[target->isa].vector_bits) / bits;
    return lanes < 1 ? 1 : lanes;
}

int tl_rest_lanes(const tl_target *target, int64_t rest)
{
    bool is_gpu = tl_target_is_gpu(target);
    int lanes = 1;
    while (is_gpu ? 2 * lanes <= rest : lanes < rest)
        lanes *= 2;
    return lanes;
}

const tl_stmt *tl_sync_call(tl_arena *arena, const char *name, const int64_t *numbers, int count)
{
    tl_intrinsic_call *call = TL_NEW(arena, tl_intrinsic_call);
    const tl_expr **scalars = TL_NEW_ARRAY(arena, const tl_expr *, count);
    for (int i = 0; i < count; i++)
        scalars[i] = tl_int(arena, numbers[i]);
    *call = (tl_intrinsic_call){ .name = name, .scalar_count = count, .scalars = scalars };
    return tl_stmt_call(arena, call);
}

bool tl_is_call(const tl_stmt *stmt, const char *name)
{
    return stmt->kind == TL_STMT_CALL && strcmp(stmt->u.call->name, name) == 0;
}

const tl_stmt *tl_sync_call2(tl_arena *arena, const char *name, const tl_expr *a, const tl_expr *b)
{
    tl_intrinsic_call *call = TL_NEW(arena, tl_intrinsic_call);
    const tl_expr **scalars = TL_NEW_ARRAY(arena, const tl_expr *, 2);
    scalars[0] = a;
    scalars[1] = b;
    *call = (tl_intrinsic_call){ .name = name, .scalar_count = 2, .scalars = scalars };
    return tl_stmt_call(arena, call);
}
