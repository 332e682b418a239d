/* ir/program/region.c: the boxes that a block touches, in terms of its iters, and what they grow to when
 * some variables run through their range. All of it is conservative: a box may be too large. */
#include <assert.h>
#include "ir/expr/index_private.h"
#include "ir/program/program.h"
#include "runtime/base/array.h"

/* ---- one box an access ---- */

typedef struct {
    tl_arena *arena;
    int count, capacity;
    tl_region *regions;
} collection;

static void whole_axis(tl_arena *arena, const tl_buffer *buffer, int axis, const tl_expr **begin,
                       const tl_expr **extent)
{
    assert(axis >= 0 && axis < buffer->rank);
    *begin = tl_int(arena, 0);
    *extent = buffer->shape[axis];
}

/* Widens the axis begin, extent to contain other_begin, other_extent too. */
static void widen(tl_arena *arena, const tl_buffer *buffer, int axis, const tl_expr **begin,
                  const tl_expr **extent, const tl_expr *other_begin, const tl_expr *other_extent)
{
    int64_t shift, size, other_size;
    if (tl_expr_equal(*begin, other_begin) && tl_expr_equal(*extent, other_extent))
        return;
    if (!tl_const_int(*extent, &size) || !tl_const_int(other_extent, &other_size) ||
        !tl_const_int(tl_sub(arena, other_begin, *begin), &shift)) {
        whole_axis(arena, buffer, axis, begin, extent);
        return;
    }
    int64_t last = shift + other_size > size ? shift + other_size : size;
    if (shift < 0)
        *begin = other_begin;
    *extent = tl_int(arena, last - (shift < 0 ? shift : 0));
}

static tl_region *region_for(collection *c, const tl_buffer *buffer, bool *is_new)
{
    for (int i = 0; i < c->count; i++)
        if (c->regions[i].buffer == buffer) {
            *is_new = false;
            return &c->regions[i];
        }
    TL_ROOM(c->arena, c->regions, c->count, c->capacity);
    assert(c->count < c->capacity);
    *is_new = true;
    c->regions[c->count] = (tl_region){ .buffer = buffer };
    return &c->regions[c->count++];
}

static void add_region(collection *c, const tl_buffer *buffer, const tl_expr *const *begins,
                       const tl_expr *const *extents)
{
    bool is_new;
    tl_region *region = region_for(c, buffer, &is_new);
    const tl_expr **begin = TL_NEW_ARRAY(c->arena, const tl_expr *, buffer->rank);
    const tl_expr **extent = TL_NEW_ARRAY(c->arena, const tl_expr *, buffer->rank);
    for (int i = 0; i < buffer->rank; i++) {
        const tl_expr *b = begins[i];
        const tl_expr *e = extents == NULL ? tl_int(c->arena, 1) : extents[i];
        if (tl_expr_has_load(b))
            whole_axis(c->arena, buffer, i, &b, &e);
        begin[i] = is_new ? b : region->begin[i];
        extent[i] = is_new ? e : region->extent[i];
        if (!is_new)
            widen(c->arena, buffer, i, &begin[i], &extent[i], b, e);
    }
    region->begin = begin;
    region->extent = extent;
}

static bool add_loads(const tl_expr *e, void *context)
{
    if (e->kind == TL_EXPR_LOAD)
        add_region(context, e->u.buffer, e->args, NULL);
    return e->arg_count > 0;
}

int tl_block_reads(tl_arena *arena, const tl_block *block, const tl_region **out)
{
    collection c = { .arena = arena };
    for (int i = 0; i < block->store_count; i++) {
        const tl_store *store = &block->stores[i];
        tl_expr_visit(store->value, add_loads, &c);
        for (int axis = 0; axis < store->buffer->rank; axis++)
            tl_expr_visit(store->indices[axis], add_loads, &c);
        if (block->init != NULL)
            tl_expr_visit(block->init[i], add_loads, &c);
    }
    if (block->predicate != NULL)
        tl_expr_visit(block->predicate, add_loads, &c);
    for (int i = 0; block->call != NULL && i < block->call->read_count; i++)
        add_region(&c, block->call->reads[i].buffer, block->call->reads[i].begin,
                   block->call->reads[i].extent);
    *out = c.regions;
    return c.count;
}

int tl_block_writes(tl_arena *arena, const tl_block *block, const tl_region **out)
{
    collection c = { .arena = arena };
    for (int i = 0; i < block->store_count; i++)
        add_region(&c, block->stores[i].buffer, block->stores[i].indices, NULL);
    for (int i = 0; block->call != NULL && i < block->call->write_count; i++)
        add_region(&c, block->call->writes[i].buffer, block->call->writes[i].begin,
                   block->call->writes[i].extent);
    *out = c.regions;
    return c.count;
}

/* ---- boxes over ranges of variables ---- */

typedef struct {
    tl_arena *arena;
    const tl_var *const *vars;
    const tl_expr *const *extents;
    int count;
} freedom;

static bool is_free(const freedom *f, const tl_expr *e)
{
    for (int i = 0; i < f->count; i++)
        if (tl_expr_uses_var(e, f->vars[i]))
            return true;
    return false;
}

static const tl_expr *bound(const freedom *f, const tl_expr *e, bool upper);

/* The least (greatest) value of a term; NULL when it cannot be told. */
static const tl_expr *bound_term(const freedom *f, const tl_expr *term, bool upper)
{
    assert(term->dtype == TL_I64);
    if (!is_free(f, term))
        return term;
    for (int i = 0; i < f->count; i++)
        if (term->kind == TL_EXPR_VAR && term->u.var == f->vars[i])
            return upper ? tl_addi(f->arena, f->extents[i], -1) : tl_int(f->arena, 0);

    int64_t d;
    bool extremum = term->kind == TL_EXPR_MIN || term->kind == TL_EXPR_MAX;
    bool divides = term->kind == TL_EXPR_FLOORDIV && tl_const_int(term->args[1], &d) && d > 0;
    if (extremum || divides) { /* monotone in their operands */
        const tl_expr *a = bound(f, term->args[0], upper);
        const tl_expr *b = divides ? term->args[1] : bound(f, term->args[1], upper);
        if (a != NULL && b != NULL)
            return tl_binary(f->arena, term->kind, a, b);
    }
    if (term->kind == TL_EXPR_MUL && tl_expr_range(term->args[0]).min >= 0 &&
        tl_expr_range(term->args[1]).min >= 0) {
        const tl_expr *a = bound(f, term->args[0], upper), *b = bound(f, term->args[1], upper);
        if (a != NULL && b != NULL)
            return tl_mul(f->arena, a, b);
    }
    tl_range range = tl_expr_range(term);
    if (upper ? range.max == INT64_MAX : range.min == INT64_MIN)
        return NULL;
    return tl_int(f->arena, upper ? range.max : range.min);
}

static const tl_expr *bound(const freedom *f, const tl_expr *e, bool upper)
{
    if (!is_free(f, e))
        return e;
    tl_sum sum, out;
    tl_sum_clear(&sum);
    tl_sum_clear(&out);
    tl_sum_add(&sum, e, 1);
    out.constant = sum.constant;
    for (int i = 0; i < sum.count; i++) {
        int64_t c = sum.addends[i].coefficient;
        const tl_expr *term = bound_term(f, sum.addends[i].term, upper == (c > 0));
        if (term == NULL || !tl_sum_add(&out, term, c))
            return NULL;
    }
    return tl_sum_canonical(f->arena, &out);
}

tl_region tl_region_relax(tl_arena *arena, const tl_region *region, const tl_var *const *vars,
                          const tl_expr *const *extents, int count)
{
    assert(count >= 0 && region->buffer->rank >= 0);
    freedom f = { arena, vars, extents, count };
    int rank = region->buffer->rank;
    const tl_expr **begin = TL_NEW_ARRAY(arena, const tl_expr *, rank);
    const tl_expr **extent = TL_NEW_ARRAY(arena, const tl_expr *, rank);
    for (int i = 0; i < rank; i++) {
        const tl_expr *low = bound(&f, region->begin[i], false);
        const tl_expr *high = bound(&f, region->begin[i], true);
        const tl_expr *size = bound(&f, region->extent[i], true);
        if (low == NULL || high == NULL || size == NULL || is_free(&f, low) || is_free(&f, high)) {
            whole_axis(arena, region->buffer, i, &begin[i], &extent[i]);
            continue;
        }
        begin[i] = low;
        extent[i] = tl_add(arena, tl_sub(arena, high, low), size);
    }
    return (tl_region){ region->buffer, begin, extent };
}

bool tl_is_own_element(const tl_expr *e, const tl_store *store)
{
    if (e->kind != TL_EXPR_LOAD || e->u.buffer != store->buffer)
        return false;
    for (int a = 0; a < store->buffer->rank; a++)
        if (!tl_expr_equal(e->args[a], store->indices[a]))
            return false;
    return true;
}

typedef struct {
    const tl_store *store;
    bool is_found;
} own_element;

static bool find_own_element(const tl_expr *e, void *context)
{
    own_element *own = context;
    own->is_found |= tl_is_own_element(e, own->store);
    return !own->is_found;
}

bool tl_reads_own_element(const tl_store *store)
{
    own_element own = { store, false };
    tl_expr_visit(store->value, find_own_element, &own);
    return own.is_found;
}
