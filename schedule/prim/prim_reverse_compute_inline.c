/* schedule/prim/prim_reverse_compute_inline.c: reverse_compute_inline(block)
 *
 *     alloc T
 *     for i in 0..n
 *       for j in 0..m                        for i in 0..n
 *         A: T[i, j] = X[i, j]*2               for j in 0..m
 *     for j in 0..m                 ->           A: C[j, i] = max(X[i, j]*2 + bias[j], 0)
 *       for i in 0..n
 *         B: C[j, i] = max(T[i, j] + bias[j], 0)
 *
 * The consumer's expression goes into its only producer, which stores the consumer's result; the consumer, the buffer
 * between them and its alloc are gone.
 *
 * Requires  a consumer with spatial iters, one assigning store and no predicate that leaves elements out, which reads a
 *           local buffer at its iters, each once, everywhere, and is its only reader; the producer its only writer, no
 *           reduction and no intrinsic, with its iters as indices over the same domains, all of which it runs
 *           over; nothing between the two touches the result, nobody else writes it, and what else the consumer reads
 *           is there where the producer stands; what the producer then stores is no large expression
 *           (expression_size.c).
 * Keeps     every value that is stored.
 */
#include <assert.h>
#include <string.h>
#include "schedule/coverage.h"
#include "schedule/nest.h"

#define PRIM "reverse_compute_inline"

typedef struct {
    const tl_block *consumer, *producer;
    const tl_buffer *between;
    const tl_expr *load; /* of it, by the consumer */
} plan;

/* The iter that an index is; -1: none. */
static int iter_of(const tl_block *block, const tl_expr *index)
{
    for (int i = 0; i < block->iter_count; i++)
        if (index->kind == TL_EXPR_VAR && index->u.var == block->iters[i].var)
            return i;
    return -1;
}

static tl_status check_plain(const tl_block *named, const tl_block *block, const char *role,
                             tl_diag *diag)
{
    if (block->call != NULL)
        return tl_refuse(diag, PRIM, named->name, "%s %s calls the intrinsic %s", role, block->name,
                         block->call->name);
    if (block->combiner != TL_COMBINER_NONE)
        return tl_refuse(diag, PRIM, named->name,
                         "%s %s is a reduction (%s): what it stores is not its last value; "
                         "reverse_compute_at brings the two together",
                         role, block->name, tl_combiner_infos[block->combiner].text);
    if (block->store_count != 1)
        return tl_refuse(diag, PRIM, named->name, "%s %s has %d stores and must have one", role,
                         block->name, block->store_count);
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind != TL_ITER_SPATIAL)
            return tl_refuse(diag, PRIM, named->name, "iter %s of %s %s is not spatial",
                             block->iters[i].var->name, role, block->name);
    return TL_OK;
}

typedef struct {
    const tl_buffer *buffer;
    const tl_expr *load;
    bool differs;
} load_search;

static bool find_load(const tl_expr *e, void *context)
{
    load_search *search = context;
    if (e->kind == TL_EXPR_LOAD && e->u.buffer == search->buffer) {
        search->differs |= search->load != NULL && !tl_expr_equal(search->load, e);
        search->load = e;
    }
    return true;
}

/* The local buffer that has one writer, a plain block, and is read here at one place. */
static tl_status find_producer(tl_schedule *s, plan *p, tl_diag *diag)
{
    const tl_stmt *body = s->program->body;
    const tl_buffer **inputs;
    int input_count = tl_buffers_read(s->arena, p->consumer, &inputs);
    for (int i = 0; i < input_count && p->between == NULL; i++) {
        const tl_block **found;
        if (inputs[i]->role == TL_ROLE_LOCAL && inputs[i] != p->consumer->stores[0].buffer &&
            tl_readers_of(s->arena, body, inputs[i], &found) == 1 &&
            tl_writers_of(s->arena, body, inputs[i], &found) == 1) {
            p->between = inputs[i];
            p->producer = found[0];
        }
    }
    if (p->between == NULL)
        return tl_refuse(diag, PRIM, p->consumer->name,
                         "it reads no local buffer that has one writer and no other reader");
    load_search search = { .buffer = p->between };
    tl_expr_visit(p->consumer->stores[0].value, find_load, &search);
    for (int axis = 0; axis < p->consumer->stores[0].buffer->rank; axis++)
        if (p->consumer->stores[0].indices[axis] &&
            tl_expr_has_load(p->consumer->stores[0].indices[axis]))
            return tl_refuse(diag, PRIM, p->consumer->name, "an index of its store is data");
    if (search.load == NULL || search.differs)
        return tl_refuse(diag, PRIM, p->consumer->name,
                         "it reads %s at more than one place, and its producer has one value at "
                         "a time",
                         p->between->name);
    p->load = search.load;
    return check_plain(p->consumer, p->producer, "its producer", diag);
}

/* Index by index: an iter of the consumer, an iter of the producer, over one domain; all iters of both. */
static tl_status check_indices(const plan *p, tl_diag *diag)
{
    const tl_block *c = p->consumer, *w = p->producer;
    int used_c = 0, used_w = 0;
    for (int axis = 0; axis < p->between->rank; axis++) {
        const tl_expr *read = p->load->args[axis], *written = w->stores[0].indices[axis];
        int i = iter_of(c, read), k = iter_of(w, written);
        if (tl_is_int(read, 0) && tl_is_int(written, 0))
            continue;
        if (i < 0 || k < 0)
            return tl_refuse(diag, PRIM, c->name,
                             "index %d of %s is not an iter of both blocks: which value of one "
                             "goes with which of the other cannot be told",
                             axis, p->between->name);
        for (int before = 0; before < axis; before++)
            if (iter_of(c, p->load->args[before]) == i ||
                iter_of(w, w->stores[0].indices[before]) == k)
                return tl_refuse(diag, PRIM, c->name, "an iter is two indices of %s",
                                 p->between->name);
        if (!tl_expr_equal(c->iters[i].extent, w->iters[k].extent))
            return tl_refuse(diag, PRIM, c->name,
                             "iter %s of it and iter %s of %s have different domains",
                             c->iters[i].var->name, w->iters[k].var->name, w->name);
        used_c++;
        used_w++;
    }
    if (used_c != c->iter_count || used_w != w->iter_count)
        return tl_refuse(diag, PRIM, c->name,
                         "%s has %d indices that are iters, and block %s has %d iters: each must "
                         "be one",
                         p->between->name, used_c < c->iter_count ? used_c : used_w,
                         used_c < c->iter_count ? c->name : w->name,
                         used_c < c->iter_count ? c->iter_count : w->iter_count);
    return TL_OK;
}

/* The loops around a block, the consumer or its producer, run over all of its domain. */
static tl_status check_loops(tl_schedule *s, const tl_block *named, const tl_block *block,
                             const tl_path *path, tl_diag *diag)
{
    int count;
    const tl_free_var *loops = tl_path_loops(s->arena, path, 0, &count);
    const tl_expr **bindings = TL_NEW_ARRAY(s->arena, const tl_expr *, block->iter_count);
    for (int k = 0; k < block->iter_count; k++)
        bindings[k] = block->iters[k].binding;
    if (!tl_is_dense(s->arena, bindings, block->iter_count, loops, count))
        return tl_refuse(diag, PRIM, named->name,
                         "the elements that block %s runs for are no box that can be told",
                         block->name);
    for (int k = 0; k < block->iter_count; k++) {
        const tl_expr *domain = block->iters[k].extent;
        tl_span span = tl_span_of(s->arena, bindings[k], loops, count);
        if (span.min == NULL || span.max == NULL ||
            !tl_prove_le(s->arena, span.min, tl_int(s->arena, 0)) ||
            !tl_prove_le(s->arena, tl_addi(s->arena, domain, -1), span.max))
            return tl_refuse(diag, PRIM, named->name,
                             "the loops of block %s do not give its iter %s all of 0..%s",
                             block->name, block->iters[k].var->name,
                             tl_expr_text(s->arena, domain));
    }
    return TL_OK;
}

static tl_status check_whole(tl_schedule *s, const tl_block *block, tl_diag *diag)
{
    tl_nest nest;
    TL_TRY(tl_nest_of(s, PRIM, block, &nest, diag));
    if (nest.condition)
        return tl_refuse(diag, PRIM, block->name, "its predicate %s leaves elements out",
                         tl_expr_text(s->arena, nest.condition));
    return check_loops(s, block, block, &nest.path, diag);
}

/* The producer runs for all elements, so that the consumer in its place does. */
static tl_status check_producer(tl_schedule *s, const plan *p, tl_diag *diag)
{
    tl_path path = tl_path_to_block(s->arena, s->program->body, p->producer->name);
    const tl_expr *cut = tl_cutting_condition(s->arena, &path, p->producer);
    if (cut)
        return tl_refuse(diag, PRIM, p->consumer->name,
                         "its producer %s leaves out elements where not %s, which it computes",
                         p->producer->name, tl_expr_text(s->arena, cut));
    return check_loops(s, p->consumer, p->producer, &path, diag);
}

/* Nobody else writes the result, and nobody reads it before the consumer has written it. */
static tl_status check_result(tl_schedule *s, const plan *p, tl_diag *diag)
{
    const tl_stmt *body = s->program->body;
    const tl_buffer *result = p->consumer->stores[0].buffer;
    const char *name = p->consumer->name;
    const tl_block **found;
    int count = tl_writers_of(s->arena, body, result, &found);
    for (int i = 0; i < count; i++)
        if (found[i] != p->consumer)
            return tl_refuse(diag, PRIM, name, "%s is also written by block %s", result->name,
                             found[i]->name);
    count = tl_readers_of(s->arena, body, result, &found);
    for (int i = 0; i < count; i++)
        if (tl_block_position(body, found[i]->name) <= tl_block_position(body, name))
            return tl_refuse(diag, PRIM, name, "block %s reads %s before or while it is written",
                             found[i]->name, result->name);
    return TL_OK;
}

typedef struct {
    const plan *plan;
    const tl_expr *value;
} load_value;

static const tl_expr *replace_load(tl_arena *arena, const tl_expr *e, void *context)
{
    (void)arena;
    const load_value *v = context;
    return e->kind == TL_EXPR_LOAD && e->u.buffer == v->plan->between ? v->value : NULL;
}

/* The producer, storing what the consumer did. */
static const tl_block *join(tl_arena *arena, const plan *p)
{
    assert(p->consumer->store_count == 1 && p->producer->store_count == 1);
    const tl_store *store = &p->consumer->stores[0], *old = &p->producer->stores[0];
    tl_binding *bindings = TL_NEW_ARRAY(arena, tl_binding, p->consumer->iter_count);
    int count = 0;
    for (int axis = 0; axis < p->between->rank; axis++) {
        int i = iter_of(p->consumer, p->load->args[axis]);
        if (i >= 0)
            bindings[count++] = (tl_binding){ p->consumer->iters[i].var, old->indices[axis] };
    }
    const tl_expr **indices = TL_NEW_ARRAY(arena, const tl_expr *, store->buffer->rank);
    for (int axis = 0; axis < store->buffer->rank; axis++)
        indices[axis] = tl_substitute(arena, store->indices[axis], bindings, count);
    load_value v = { p, old->value };
    const tl_expr *value = tl_substitute(arena, store->value, bindings, count);
    value = tl_expr_rewrite(arena, value, replace_load, &v);

    tl_store *joined = TL_NEW(arena, tl_store);
    *joined = (tl_store){ store->buffer, indices, value };
    tl_block *block = tl_block_copy(arena, p->producer);
    block->stores = joined;
    return block;
}

static const tl_stmt *drop_alloc(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    (void)arena;
    const tl_buffer *buffer = context;
    if (stmt->kind == TL_STMT_ALLOC && stmt->u.alloc.buffer == buffer)
        return stmt->u.alloc.body;
    if (stmt->kind == TL_STMT_PREFETCH && stmt->u.prefetch.buffer == buffer)
        return NULL;
    return stmt;
}

tl_status tl_apply_reverse_compute_inline(tl_schedule *s, const tl_arg *args, int arg_count,
                                          tl_arg *out, int *out_count, tl_diag *diag)
{
    assert(arg_count == 1 && args[0].kind == TL_ARG_BLOCK);
    (void)arg_count;
    (void)out;
    (void)out_count;
    plan p = { 0 };
    TL_TRY(tl_need_block(s, PRIM, args[0].block, &p.consumer, diag));
    TL_TRY(check_plain(p.consumer, p.consumer, "the block", diag));
    TL_TRY(check_whole(s, p.consumer, diag));
    TL_TRY(find_producer(s, &p, diag));
    TL_TRY(check_indices(&p, diag));
    TL_TRY(check_producer(s, &p, diag));
    TL_TRY(check_result(s, &p, diag));

    tl_path path = tl_path_to_block(s->arena, s->program->body, p.consumer->name);
    const tl_stmt *root = tl_path_replace(s->arena, &path, NULL);
    path = tl_path_to_block(s->arena, root, p.producer->name);
    const tl_block *joined = join(s->arena, &p);
    TL_TRY(tl_check_inlined(PRIM, p.consumer, joined, diag));
    root = tl_path_replace(s->arena, &path, tl_stmt_block(s->arena, joined));
    root = tl_stmt_rewrite(s->arena, root, drop_alloc, (void *)(uintptr_t)p.between);
    TL_TRY(tl_check_placed(s, PRIM, root, p.producer->name, NULL, diag));
    tl_schedule_set_body(s, tl_sink_allocs(s->arena, root));
    return TL_OK;
}
