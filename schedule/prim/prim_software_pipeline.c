/* schedule/prim/prim_software_pipeline.c: software_pipeline(loop, stages)
 *
 *                                            alloc T: f32[2, 8]
 *     for k in 0..16                         for p in 0..1
 *       alloc T: f32[8]                        copy_prologue(p)    into T[p % 2]
 *       copy(k)       into T         ->      for k in 0..15
 *       compute(k)    from T                   copy(k + 1)         into T[(k + 1) % 2]
 *                                              compute(k)          from T[k % 2]
 *                                            for e in 0..1
 *                                              compute_epilogue(15 + e)
 *
 * What the loop's body writes into buffers of its own, up to the first block that reads one, runs `stages` - 1
 * iterations ahead, into one of `stages` versions of each buffer, so that it can go on while the rest computes. Blocks
 * that touch them get an ordered iter that says which iteration they are of. A version of a buffer in shared memory is as
 * long as what one iteration touches of it, on each axis where the iteration alone says where that begins: its index counts
 * from there. The three loops are then marked, so that code for a GPU that can copies while it computes (codegen/GPU.md).
 *
 * Shared buffers that threads around the loop have moved outwards count as allocated in it.
 *
 * Requires  a serial loop of a constant extent of at least `stages`, 2 to 8; allocs first in its body, then blocks or
 *           loops that write those buffers, then the rest, which reads and does not write them, but for more that write
 *           them alone and might stand in front of it; no buffer that one of
 *           the two parts writes and the other touches but those; no barrier.
 * Keeps     every value; the loop's iterations run in order from then on.
 */
#include <assert.h>
#include <string.h>
#include "runtime/base/array.h"
#include "schedule/nest.h"

#define PRIM "software_pipeline"

enum { MOST_STAGES = 8, MOST_BUFFERS = 16 };

/* How the iterations move along an axis of a buffer: iteration k touches first(k) + min .. first(k) + max, `first` over the
 * loop's variable. NULL: as they like. */
typedef struct {
    bool seen;
    const tl_expr *first;
    int64_t min, max;
} moving;

typedef struct {
    const tl_stmt *loop;
    int64_t stages, extent;
    int buffer_count;
    const tl_buffer *buffers[MOST_BUFFERS], *versions[MOST_BUFFERS];
    moving *axes[MOST_BUFFERS]; /* one an axis */
    const tl_stmt *copy, *compute;
} plan;

typedef struct {
    const plan *p;
    bool reads, writes, has_barrier;
} usage;

static bool visit_usage(const tl_stmt *stmt, void *context)
{
    usage *u = context;
    u->has_barrier |= stmt->kind == TL_STMT_BARRIER;
    if (stmt->kind != TL_STMT_BLOCK)
        return true;
    for (int i = 0; i < u->p->buffer_count; i++) {
        const tl_buffer *b = u->p->buffers[i];
        bool reads = tl_block_reads_buffer(stmt->u.block, b);
        bool writes = tl_block_writes_buffer(stmt->u.block, b);
        u->reads |= reads;
        u->writes |= writes;
    }
    return true;
}

static usage usage_of(const plan *p, const tl_stmt *stmt)
{
    usage u = { .p = p };
    tl_stmt_visit(stmt, visit_usage, &u);
    return u;
}

/* The alloc behind copies, of what begins with a copy of its own: it might as well stand before them. */
static bool takes_alloc(plan *p, const tl_stmt *alloc)
{
    const tl_buffer *buffer = alloc->u.alloc.buffer;
    const tl_stmt *first = alloc->u.alloc.body;
    if (first->kind != TL_STMT_SEQ || p->buffer_count == MOST_BUFFERS ||
        buffer->scope == TL_SCOPE_REGISTER || tl_scope_threads[buffer->scope] > 0)
        return false;
    p->buffers[p->buffer_count++] = buffer;
    usage u = usage_of(p, first->u.seq.items[0]);
    if (u.writes && !u.reads)
        return true;
    p->buffer_count--;
    return false;
}

typedef struct {
    int count, capacity;
    const tl_stmt **items;
} item_list;

static void gather(tl_schedule *s, plan *p, const tl_stmt *seq, item_list *list)
{
    for (int i = 0; i < seq->u.seq.count; i++) {
        const tl_stmt *item = seq->u.seq.items[i];
        if (item->kind == TL_STMT_ALLOC && i == seq->u.seq.count - 1 && takes_alloc(p, item)) {
            gather(s, p, item->u.alloc.body, list);
            return;
        }
        TL_ROOM(s->arena, list->items, list->count, list->capacity);
        list->items[list->count++] = item;
    }
}

/* The statement without what only fills the loop's buffers, which is put into the list: a copy that stands behind what does not
 * read it might as well stand before that. What it must not be taken out of, check_parts finds. */
static const tl_stmt *lift_copies(tl_schedule *s, const plan *p, const tl_stmt *stmt,
                                  item_list *copies)
{
    if (stmt->kind == TL_STMT_ALLOC)
        return tl_stmt_with_body(s->arena, stmt, lift_copies(s, p, stmt->u.alloc.body, copies));
    if (stmt->kind != TL_STMT_SEQ)
        return stmt;
    int count = 0;
    const tl_stmt **items = TL_NEW_ARRAY(s->arena, const tl_stmt *, stmt->u.seq.count);
    for (int i = 0; i < stmt->u.seq.count; i++) {
        const tl_stmt *item = stmt->u.seq.items[i];
        usage u = usage_of(p, item);
        if (item->kind != TL_STMT_ALLOC && u.writes && !u.reads) {
            TL_ROOM(s->arena, copies->items, copies->count, copies->capacity);
            copies->items[copies->count++] = item;
        } else {
            items[count++] = lift_copies(s, p, item, copies);
        }
    }
    return tl_stmt_seq(s->arena, items, count);
}

/* Shared buffers that would be allocated in the loop, had it no threads around it: it alone uses them, and fills them anew in
 * each iteration. */
static void take_hoisted(tl_schedule *s, plan *p, const tl_path *path)
{
    const tl_stmt *nothing = tl_stmt_seq(s->arena, NULL, 0);
    for (int i = 0; i < path->count && p->buffer_count < MOST_BUFFERS; i++) {
        const tl_buffer *buffer =
            path->stmts[i]->kind == TL_STMT_ALLOC ? path->stmts[i]->u.alloc.buffer : NULL;
        if (buffer == NULL || buffer->scope != TL_SCOPE_SHARED ||
            !tl_stmt_uses_buffer(p->loop, buffer))
            continue;
        tl_path inside = { path->count - i, path->stmts + i };
        const tl_stmt *without = tl_path_replace(s->arena, &inside, nothing);
        if ((without == NULL || !tl_stmt_uses_buffer(without, buffer)) &&
            tl_writes_before_reads(s->arena, p->loop, buffer))
            p->buffers[p->buffer_count++] = buffer;
    }
}

/* The buffers of the loop's own, and its body in two. */
static tl_status take_apart(tl_schedule *s, plan *p, const tl_path *path, tl_diag *diag)
{
    const char *name = p->loop->u.loop.var->name;
    const tl_stmt *body = p->loop->u.loop.body;
    take_hoisted(s, p, path);
    for (; body->kind == TL_STMT_ALLOC; body = body->u.alloc.body) {
        if (p->buffer_count == MOST_BUFFERS)
            return tl_refuse(diag, PRIM, name, "it allocates more than %d buffers", MOST_BUFFERS);
        p->buffers[p->buffer_count++] = body->u.alloc.buffer;
    }
    if (p->buffer_count == 0)
        return tl_refuse(diag, PRIM, name,
                         "it allocates no buffer that a part of it writes and the rest reads; "
                         "cache_read and compute_at make one");
    if (body->kind != TL_STMT_SEQ)
        return tl_refuse(diag, PRIM, name, "its body is one part, and a pipeline has two");
    item_list list = { 0 };
    gather(s, p, body, &list);
    int count = list.count, split = 0;
    const tl_stmt *const *items = list.items;
    while (split < count && items[split]->kind != TL_STMT_ALLOC) {
        usage u = usage_of(p, items[split]);
        if (u.reads || !u.writes)
            break;
        split++;
    }
    if (split == 0)
        return tl_refuse(diag, PRIM, name, "the first part of its body does not write %s alone",
                         p->buffers[0]->name);
    if (split == count)
        return tl_refuse(diag, PRIM, name, "nothing in it reads %s", p->buffers[0]->name);
    p->compute = tl_stmt_seq(s->arena, items + split, count - split);
    list.count = split;
    p->compute = lift_copies(s, p, p->compute, &list);
    p->copy = tl_stmt_seq(s->arena, list.items, list.count);

    usage ahead = usage_of(p, p->copy), rest = usage_of(p, p->compute);
    if (rest.writes)
        return tl_refuse(diag, PRIM, name, "what reads the buffers also writes one of them");
    if (ahead.has_barrier || rest.has_barrier)
        return tl_refuse(diag, PRIM, name, "there is a barrier in it: place_barriers comes last");
    for (int i = 0; i < p->buffer_count; i++) {
        if (p->buffers[i]->scope == TL_SCOPE_REGISTER || tl_scope_threads[p->buffers[i]->scope] > 0)
            return tl_refuse(diag, PRIM, name,
                             "buffer %s is in scope %s, where versions cannot take turns; use "
                             "stack, shared or global",
                             p->buffers[i]->name, tl_scope_texts[p->buffers[i]->scope]);
        if (p->buffers[i]->strides != NULL)
            return tl_refuse(diag, PRIM, name,
                             "buffer %s has strides: pipeline before "
                             "storage_align",
                             p->buffers[i]->name);
    }
    return TL_OK;
}

typedef struct {
    const plan *p;
    const tl_stmt *other;
    const tl_buffer *found;
    const tl_block *block;
} conflict_search;

static bool is_own(const plan *p, const tl_buffer *buffer)
{
    for (int i = 0; i < p->buffer_count; i++)
        if (p->buffers[i] == buffer)
            return true;
    return false;
}

static void note_conflict(conflict_search *c, const tl_block *block, const tl_buffer *buffer)
{
    if (c->found == NULL && !is_own(c->p, buffer) && tl_stmt_uses_buffer(c->other, buffer)) {
        c->found = buffer;
        c->block = block;
    }
}

static bool visit_written(const tl_stmt *stmt, void *context)
{
    if (stmt->kind != TL_STMT_BLOCK)
        return true;
    const tl_block *block = stmt->u.block;
    for (int i = 0; i < block->store_count; i++)
        note_conflict(context, block, block->stores[i].buffer);
    for (int i = 0; block->call && i < block->call->write_count; i++)
        note_conflict(context, block, block->call->writes[i].buffer);
    return true;
}

/* Neither part writes what the other touches, and the first does not go on with what it wrote before. */
static tl_status check_parts(tl_schedule *s, const plan *p, tl_diag *diag)
{
    const char *name = p->loop->u.loop.var->name;
    for (int side = 0; side < 2; side++) {
        conflict_search c = { .p = p, .other = side ? p->copy : p->compute };
        tl_stmt_visit(side ? p->compute : p->copy, visit_written, &c);
        if (c.found)
            return tl_refuse(diag, PRIM, name,
                             "block %s writes %s, which both parts of the body touch: they cannot "
                             "run in different iterations",
                             c.block->name, c.found->name);
    }
    for (int i = 0; i < p->buffer_count; i++) {
        const tl_block **writers;
        int count = tl_writers_of(s->arena, p->copy, p->buffers[i], &writers);
        for (int k = 0; k < count; k++)
            if (writers[k]->combiner != TL_COMBINER_NONE && !writers[k]->has_init)
                return tl_refuse(diag, PRIM, name, "block %s only updates %s", writers[k]->name,
                                 p->buffers[i]->name);
    }
    return TL_OK;
}

/* ---- what an iteration touches of a buffer ---- */

typedef struct {
    tl_arena *arena;
    const plan *p;
    const tl_block *block;
} move_walk;

/* e = what the variable alone decides, `first`, + rest, which is free of it; false when e is no such sum. */
static bool part_by_iteration(tl_arena *arena, const tl_expr *e, const tl_var *var,
                              const tl_expr **first, const tl_expr **rest)
{
    tl_linear sum = tl_linear_of(arena, e);
    const tl_binding zero = { var, tl_int(arena, 0) };
    *first = tl_int(arena, 0);
    *rest = tl_int(arena, sum.constant);
    for (int i = 0; i < sum.count; i++) {
        const tl_expr *term = tl_muli(arena, sum.terms[i], sum.coefficients[i]);
        if (!tl_expr_uses_var(sum.terms[i], var))
            *rest = tl_add(arena, *rest, term);
        else if (tl_substitute(arena, sum.terms[i], &zero, 1)->kind == TL_EXPR_INT)
            *first = tl_add(arena, *first, term);
        else
            return false;
    }
    return tl_expr_uses_var(*first, var);
}

static void see_axis(const move_walk *w, moving *m, const tl_expr *index, const tl_expr *extent)
{
    int64_t length = 1;
    const tl_expr *first = NULL, *rest = NULL, *bound = tl_block_bind(w->arena, w->block, index);
    bool moves = !tl_expr_has_load(bound) && (extent == NULL || tl_const_int(extent, &length)) &&
                 part_by_iteration(w->arena, bound, w->p->loop->u.loop.var, &first, &rest);
    tl_range range = moves ? tl_expr_range(rest) : (tl_range){ 0, 0 };
    moves = moves && range.min != INT64_MIN && range.max != INT64_MAX &&
            (!m->seen || (m->first != NULL && tl_expr_equal(m->first, first)));
    range.max += length - 1;
    m->min = !m->seen || range.min < m->min ? range.min : m->min;
    m->max = !m->seen || range.max > m->max ? range.max : m->max;
    m->first = moves ? first : NULL;
    m->seen = true;
}

static void see_indices(const move_walk *w, const tl_buffer *buffer, const tl_expr *const *indices,
                        const tl_expr *const *extents)
{
    for (int i = 0; i < w->p->buffer_count; i++)
        for (int a = 0; w->p->buffers[i] == buffer && a < buffer->rank; a++)
            see_axis(w, &w->p->axes[i][a], indices[a], extents != NULL ? extents[a] : NULL);
}

static bool see_load(const tl_expr *e, void *context)
{
    if (e->kind == TL_EXPR_LOAD)
        see_indices(context, e->u.buffer, e->args, NULL);
    return true;
}

static bool see_block(const tl_stmt *stmt, void *context)
{
    move_walk *w = context;
    if (stmt->kind != TL_STMT_BLOCK)
        return true;
    const tl_block *block = w->block = stmt->u.block;
    for (int i = 0; i < block->store_count; i++) {
        see_indices(w, block->stores[i].buffer, block->stores[i].indices, NULL);
        tl_expr_visit(block->stores[i].value, see_load, w);
    }
    if (block->predicate != NULL)
        tl_expr_visit(block->predicate, see_load, w);
    for (int i = 0; block->call != NULL && i < block->call->read_count; i++)
        see_indices(w, block->call->reads[i].buffer, block->call->reads[i].begin,
                    block->call->reads[i].extent);
    for (int i = 0; block->call != NULL && i < block->call->write_count; i++)
        see_indices(w, block->call->writes[i].buffer, block->call->writes[i].begin,
                    block->call->writes[i].extent);
    return true;
}

static bool is_shared(const tl_buffer *buffer)
{
    return buffer->scope == TL_SCOPE_SHARED;
}

/* A `first` that is left over says that the axis is cut to what an iteration touches. */
static void find_moving(tl_schedule *s, plan *p)
{
    for (int i = 0; i < p->buffer_count; i++)
        p->axes[i] = TL_NEW_ARRAY(s->arena, moving, p->buffers[i]->rank + 1);
    move_walk w = { s->arena, p, NULL };
    tl_stmt_visit(p->copy, see_block, &w);
    tl_stmt_visit(p->compute, see_block, &w);
    for (int i = 0; i < p->buffer_count; i++)
        for (int a = 0; a < p->buffers[i]->rank; a++) {
            moving *m = &p->axes[i][a];
            int64_t extent = 0;
            if (!is_shared(p->buffers[i]) || !tl_const_int(p->buffers[i]->shape[a], &extent) ||
                m->max - m->min + 1 >= extent)
                m->first = NULL;
        }
}

static const tl_expr *const *version_shape(tl_arena *arena, const plan *p, int i)
{
    const tl_buffer *from = p->buffers[i];
    const tl_expr **shape = TL_NEW_ARRAY(arena, const tl_expr *, from->rank + 1);
    shape[0] = tl_int(arena, p->stages);
    for (int a = 0; a < from->rank; a++) {
        const moving *m = &p->axes[i][a];
        shape[a + 1] = m->first == NULL ? from->shape[a] : tl_int(arena, m->max - m->min + 1);
    }
    return shape;
}

/* A part of the body, in another iteration and under other names of blocks and loops. */
typedef struct {
    tl_schedule *s;
    const plan *p;
    const char *suffix; /* of names; NULL: the blocks and loops themselves */
} pipe_part;

static int number_of(const plan *p, const tl_buffer *buffer)
{
    for (int i = 0; i < p->buffer_count; i++)
        if (p->buffers[i] == buffer)
            return i;
    return -1;
}

typedef struct {
    const plan *p;
    const tl_var *iteration;
} versioning;

/* In the version of the iteration, on cut axes counted from what it touches. */
static const tl_expr *const *with_version(tl_arena *arena, const versioning *v, int i,
                                          const tl_expr *const *indices)
{
    const tl_buffer *from = v->p->buffers[i];
    const tl_expr **all = TL_NEW_ARRAY(arena, const tl_expr *, from->rank + 1);
    const tl_expr *iteration = tl_ref(arena, v->iteration);
    all[0] = tl_floormod_expr(arena, iteration, tl_int(arena, v->p->stages));
    for (int a = 0; a < from->rank; a++) {
        const moving *m = &v->p->axes[i][a];
        all[a + 1] = indices[a];
        if (m->first == NULL)
            continue;
        const tl_binding is = { v->p->loop->u.loop.var, iteration };
        const tl_expr *first = tl_substitute(arena, m->first, &is, 1);
        all[a + 1] = tl_addi(arena, tl_sub(arena, indices[a], first), -m->min);
    }
    return all;
}

static const tl_region *version_regions(tl_arena *arena, const versioning *v,
                                        const tl_region *regions, int count)
{
    tl_region *out = TL_NEW_ARRAY(arena, tl_region, count);
    for (int r = 0; r < count; r++) {
        out[r] = regions[r];
        int i = number_of(v->p, regions[r].buffer);
        if (i < 0)
            continue;
        int rank = regions[r].buffer->rank;
        const tl_expr **extent = TL_NEW_ARRAY(arena, const tl_expr *, rank + 1);
        extent[0] = tl_int(arena, 1);
        memcpy(extent + 1, regions[r].extent, sizeof *extent * (size_t)rank);
        out[r] =
            (tl_region){ v->p->versions[i], with_version(arena, v, i, regions[r].begin), extent };
    }
    return out;
}

static const tl_expr *version_load(tl_arena *arena, const tl_expr *e, void *context)
{
    const versioning *v = context;
    int i = e->kind == TL_EXPR_LOAD ? number_of(v->p, e->u.buffer) : -1;
    return i < 0 ? NULL : tl_load(arena, v->p->versions[i], with_version(arena, v, i, e->args));
}

static const tl_expr *version_loads(tl_arena *arena, const tl_expr *e, void *context)
{
    return tl_expr_rewrite(arena, e, version_load, context);
}

static const tl_stmt *version_block(tl_arena *arena, const pipe_part *part, const tl_stmt *stmt)
{
    const plan *p = part->p;
    if (usage_of(p, stmt).reads || usage_of(p, stmt).writes) {
        tl_var *var = tl_var_make(arena, p->loop->u.loop.var->name, 0, p->extent - 1);
        versioning v = { p, var };
        stmt = tl_stmt_map_exprs(arena, stmt, version_loads, &v);
        tl_block *block = tl_block_copy(arena, stmt->u.block);
        tl_iter *iters = TL_NEW_ARRAY(arena, tl_iter, block->iter_count + 1);
        iters[0] = (tl_iter){ var, TL_ITER_ORDERED, tl_int(arena, p->extent),
                              tl_ref(arena, p->loop->u.loop.var) };
        memcpy(iters + 1, block->iters, sizeof *iters * (size_t)block->iter_count);
        tl_store *stores = TL_NEW_ARRAY(arena, tl_store, block->store_count);
        for (int i = 0; i < block->store_count; i++) {
            stores[i] = block->stores[i];
            int number = number_of(p, stores[i].buffer);
            if (number < 0)
                continue;
            stores[i].indices = with_version(arena, &v, number, stores[i].indices);
            stores[i].buffer = p->versions[number];
        }
        if (block->call != NULL) {
            tl_intrinsic_call *call = TL_NEW(arena, tl_intrinsic_call);
            *call = *block->call;
            call->reads = version_regions(arena, &v, call->reads, call->read_count);
            call->writes = version_regions(arena, &v, call->writes, call->write_count);
            block->call = call;
        }
        block->iters = iters;
        block->iter_count++;
        block->stores = stores;
        stmt = tl_stmt_block(arena, block);
    }
    if (part->suffix) {
        tl_block *block = tl_block_copy(arena, stmt->u.block);
        block->name = tl_fresh_block_name(part->s, tl_arena_format(arena, "%s_%s", block->name,
                                                                   part->suffix));
        tl_iter *iters = TL_NEW_ARRAY(arena, tl_iter, block->iter_count);
        tl_binding *renamed = TL_NEW_ARRAY(arena, tl_binding, block->iter_count);
        for (int i = 0; i < block->iter_count; i++) {
            iters[i] = block->iters[i];
            iters[i].var = tl_var_derive(arena, iters[i].var, "", iters[i].extent);
            renamed[i] = (tl_binding){ block->iters[i].var, tl_ref(arena, iters[i].var) };
        }
        stmt = tl_stmt_substitute(arena, tl_stmt_block(arena, block), renamed, block->iter_count);
        block = tl_block_copy(arena, stmt->u.block);
        block->iters = iters;
        stmt = tl_stmt_block(arena, block);
    }
    return stmt;
}

/* Bottom-up: blocks get their version, and copies other variables. */
static const tl_stmt *make_part(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    const pipe_part *part = context;
    if (stmt->kind == TL_STMT_BLOCK)
        return version_block(arena, part, stmt);
    if (stmt->kind == TL_STMT_PREFETCH && is_own(part->p, stmt->u.prefetch.buffer))
        return NULL;
    if (part->suffix == NULL)
        return stmt;
    if (stmt->kind == TL_STMT_LOOP) {
        tl_var *var = tl_var_derive(arena, stmt->u.loop.var, "", stmt->u.loop.extent);
        tl_binding renamed = { stmt->u.loop.var, tl_ref(arena, var) };
        tl_stmt *copy = tl_stmt_copy(arena, stmt);
        copy->u.loop.var = var;
        copy->u.loop.body = tl_stmt_substitute(arena, stmt->u.loop.body, &renamed, 1);
        return copy;
    }
    if (stmt->kind == TL_STMT_ALLOC) {
        tl_buffer *buffer = TL_NEW(arena, tl_buffer);
        *buffer = *stmt->u.alloc.buffer;
        return tl_stmt_alloc(arena, buffer,
                             tl_stmt_replace_buffer(arena, stmt->u.alloc.body, stmt->u.alloc.buffer,
                                                    buffer));
    }
    return stmt;
}

static const tl_stmt *part_at(tl_schedule *s, const plan *p, const tl_stmt *stmt,
                              const tl_expr *iteration, const char *suffix)
{
    pipe_part context = { s, p, suffix };
    stmt = tl_stmt_rewrite(s->arena, stmt, make_part, &context);
    tl_binding at = { p->loop->u.loop.var, iteration };
    return tl_stmt_substitute(s->arena, stmt, &at, 1);
}

static bool visit_filled(const tl_stmt *stmt, void *context)
{
    bool *fills = context;
    for (int i = 0; stmt->kind == TL_STMT_BLOCK && i < stmt->u.block->store_count; i++)
        *fills |= is_shared(stmt->u.block->stores[i].buffer);
    return true;
}

/* Not where the rest copies into shared memory for itself, for which it would have to wait. */
static const tl_stmt *mark(tl_arena *arena, const plan *p, const tl_stmt *loop, const char *key)
{
    bool any = false, fills = false;
    tl_stmt_visit(p->compute, visit_filled, &fills);
    if (fills)
        return loop;
    for (int i = 0; i < p->buffer_count; i++)
        any = any || is_shared(p->buffers[i]);
    if (!any)
        return loop;
    int count = loop->u.loop.annotation_count;
    tl_annotation *annotations = TL_NEW_ARRAY(arena, tl_annotation, count + 1);
    for (int i = 0; i < count; i++)
        annotations[i] = loop->u.loop.annotations[i];
    annotations[count] = (tl_annotation){ key, p->stages };
    return tl_loop_with_annotations(arena, loop, count + 1, annotations);
}

static const tl_stmt *rewrite(tl_schedule *s, const plan *p, const tl_var **steady_var)
{
    tl_arena *arena = s->arena;
    const tl_var *var = p->loop->u.loop.var;
    int64_t ahead = p->stages - 1;
    const tl_expr *lead = tl_int(arena, ahead), *rest = tl_int(arena, p->extent - ahead);
    const tl_var *before = tl_var_derive(arena, var, "_prologue", lead);
    const tl_var *after = tl_var_derive(arena, var, "_epilogue", lead);
    const tl_var *steady = tl_var_derive(arena, var, "", rest);
    const tl_stmt *parts[] = {
        tl_stmt_loop(arena, before, lead, TL_LOOP_SERIAL,
                     part_at(s, p, p->copy, tl_ref(arena, before), "prologue")),
        NULL,
        tl_stmt_loop(arena, after, lead, TL_LOOP_SERIAL,
                     part_at(s, p, p->compute,
                             tl_addi(arena, tl_ref(arena, after), p->extent - ahead), "epilogue")),
    };
    const tl_stmt *next =
        part_at(s, p, p->copy, tl_addi(arena, tl_ref(arena, steady), ahead), NULL);
    const tl_stmt *now = part_at(s, p, p->compute, tl_ref(arena, steady), NULL);
    tl_stmt *loop = tl_stmt_copy(arena, p->loop);
    loop->u.loop.var = steady;
    loop->u.loop.extent = rest;
    loop->u.loop.body = tl_stmt_seq2(arena, next, now);
    parts[1] = loop;
    *steady_var = steady;
    static const char *const marks[] = { "pipeline_prologue", "pipeline", "pipeline_epilogue" };
    for (int i = 0; i < 3; i++)
        parts[i] = mark(arena, p, parts[i], marks[i]);
    const tl_stmt *with = tl_stmt_seq(arena, parts, 3);
    for (int i = p->buffer_count - 1; i >= 0; i--)
        with = tl_stmt_alloc(arena, p->versions[i], with);
    return with;
}

tl_status tl_apply_software_pipeline(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                                     int *out_count, tl_diag *diag)
{
    assert(arg_count == 2 && args[0].kind == TL_ARG_LOOP && args[1].kind == TL_ARG_INT);
    (void)arg_count;
    (void)out;
    (void)out_count;
    plan p = { .stages = args[1].value };
    TL_TRY(tl_need_loop(s, PRIM, args[0].loop, &p.loop, diag));
    const char *name = p.loop->u.loop.var->name;
    TL_TRY(tl_check_serial(PRIM, p.loop, diag));
    TL_TRY(tl_check_constant_extent(PRIM, p.loop, INT32_MAX, diag));
    (void)tl_const_int(p.loop->u.loop.extent, &p.extent);
    if (p.stages < 2 || p.stages > MOST_STAGES)
        return tl_refuse(diag, PRIM, name, "%lld stages are not in 2..%d", (long long)p.stages,
                         MOST_STAGES);
    if (p.extent < p.stages)
        return tl_refuse(diag, PRIM, name, "its extent %lld is less than the %lld stages",
                         (long long)p.extent, (long long)p.stages);
    tl_path path = tl_path_to_loop(s->arena, s->program->body, p.loop->u.loop.var);
    if (path.count == 0)
        return tl_refuse(diag, PRIM, name, "it is in the prepare part, which runs once");
    TL_TRY(take_apart(s, &p, &path, diag));
    TL_TRY(check_parts(s, &p, diag));
    find_moving(s, &p);

    for (int i = 0; i < p.buffer_count; i++) {
        const tl_buffer *from = p.buffers[i];
        tl_buffer *to = TL_NEW(s->arena, tl_buffer);
        *to = *from;
        to->rank = from->rank + 1;
        to->shape = version_shape(s->arena, &p, i);
        p.versions[i] = to;
    }
    const tl_var *steady;
    const tl_stmt *with = rewrite(s, &p, &steady);
    tl_schedule_rename_loop(s, p.loop->u.loop.var, steady);
    const tl_program *before = s->program;
    bool has_hoisted = false;
    for (int i = 0; i < path.count - 1; i++)
        has_hoisted |=
            path.stmts[i]->kind == TL_STMT_ALLOC && is_own(&p, path.stmts[i]->u.alloc.buffer);
    tl_schedule_replace(s, &path, with);
    if (has_hoisted) {
        tl_schedule_set_body(s, tl_sink_allocs(s->arena, s->program->body));
        tl_hoist_shared(s);
    }
    return tl_check_parallel_loops(s, before, PRIM, diag);
}
