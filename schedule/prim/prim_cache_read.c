/* schedule/prim/prim_cache_read.c: cache_read(consumer, buffer, scope) -> copy
 *
 *                                            alloc A_local
 *     for i in 0..n                          for i in 0..n
 *       C[i] = A[i + 1]*2           ->         A_local: A_local[i] = A[i]
 *                                            for i in 0..n
 *                                              C[i] = A_local[i + 1]*2
 *
 * The consumer reads a copy in another scope. The copy is made by a block of its own as far out as the buffer's writers
 * allow: of what the consumer reads there, or of a whole local buffer. Where its indices walk in steps, the copy has
 * only the elements that they meet: A_local[i] = A[i*2] for a consumer of A[i*2]. compute_at then moves it to where it is
 * wanted.
 *
 * Requires  a block of the body that reads the buffer and does not write it; a buffer without register scope.
 * Keeps     every value; all of the new buffer that is read is written before. */
#include <assert.h>
#include <string.h>
#include "runtime/base/checked.h"
#include "schedule/coverage.h"
#include "schedule/nest.h"
#include "schedule/strided_reads.h"

#define PRIM "cache_read"

static tl_status find_scope(const char *subject, const char *text, tl_scope *out, tl_diag *diag)
{
    for (int i = 0; i < TL_SCOPE_COUNT; i++)
        if (strcmp(tl_scope_texts[i], text) == 0) {
            *out = (tl_scope)i;
            return TL_OK;
        }
    return tl_refuse(diag, PRIM, subject,
                     "there is no scope %s; scopes: global, stack, register, shared, warp", text);
}

/* The outermost loop on the way to the consumer (or the consumer) that contains no writer of the buffer nor its
 * alloc. */
static int find_place(tl_schedule *s, const tl_path *path, const tl_buffer *buffer)
{
    assert(path->count > 0);
    int at = 0;
    for (int i = 0; i < path->count - 1; i++) {
        const tl_block **writers;
        bool allocs =
            path->stmts[i]->kind == TL_STMT_ALLOC && path->stmts[i]->u.alloc.buffer == buffer;
        if (allocs || tl_writers_of(s->arena, path->stmts[i], buffer, &writers) > 0)
            at = i + 1;
    }
    while (path->stmts[at]->kind == TL_STMT_ALLOC || path->stmts[at]->kind == TL_STMT_SEQ)
        at++;
    return at;
}

/* The copy: the elements at the places of the steps. */
static const tl_buffer *make_local(tl_arena *arena, const char *name, const tl_buffer *from,
                                   tl_scope scope, const tl_read_step *steps)
{
    const tl_expr *const *whole = tl_shape_in_scope(arena, from, scope);
    const tl_expr **shape = TL_NEW_ARRAY(arena, const tl_expr *, from->rank);
    for (int a = 0; a < from->rank; a++)
        shape[a] = tl_step_count(arena, steps[a], whole[a]);
    return tl_buffer_make(arena, name, from->dtype, TL_ROLE_LOCAL, scope, from->rank, shape);
}

/* The places that a span of elements has among those of a step. */
static tl_span span_of_places(tl_arena *arena, tl_span span, tl_read_step step)
{
    if (span.min == NULL || span.max == NULL)
        return span;
    const tl_expr *size = tl_int(arena, step.step);
    return (tl_span){ tl_floordiv_expr(arena, tl_addi(arena, span.min, -step.first), size),
                      tl_floordiv_expr(arena, tl_addi(arena, span.max, -step.first), size),
                      span.width < 0 ? -1 : tl_ceildiv(span.width, step.step) };
}

/* Loops over what is read, around a block that copies it. */
static const tl_stmt *make_copy(tl_schedule *s, const char *name, const tl_buffer *from,
                                const tl_buffer *to, const tl_read_step *steps, const tl_box *box,
                                const tl_expr *condition)
{
    assert(from->rank >= 0);
    tl_arena *arena = s->arena;
    int rank = from->rank;
    const tl_expr **places = TL_NEW_ARRAY(arena, const tl_expr *, rank);
    const tl_var **vars = TL_NEW_ARRAY(arena, const tl_var *, rank);
    const tl_expr **extents = TL_NEW_ARRAY(arena, const tl_expr *, rank);
    const tl_expr **indices = TL_NEW_ARRAY(arena, const tl_expr *, rank);
    tl_iter *iters = TL_NEW_ARRAY(arena, tl_iter, rank);
    const tl_expr *predicate = condition;
    for (int a = 0; a < rank; a++) {
        const tl_expr *begin = tl_int(arena, 0),
                      *count = tl_step_count(arena, steps[a], from->shape[a]);
        extents[a] = count;
        if (box != NULL)
            tl_span_loop(arena, span_of_places(arena, box->axes[a], steps[a]), count, &begin,
                         &extents[a]);
        const tl_var *named = tl_var_make(arena, tl_arena_format(arena, "i%d", a), 0, 0);
        vars[a] = tl_var_derive(arena, named, "", extents[a]);
        tl_var *iter = tl_var_derive(arena, named, "", count);
        const tl_expr *binding = tl_add(arena, begin, tl_ref(arena, vars[a]));
        iters[a] = (tl_iter){ iter, TL_ITER_SPATIAL, count, binding };
        places[a] = tl_ref(arena, iter);
        indices[a] = tl_addi(arena, tl_muli(arena, places[a], steps[a].step), steps[a].first);
        predicate =
            tl_and(arena, predicate, tl_loop_guard(arena, begin, extents[a], binding, count));
    }
    tl_store *store = TL_NEW(arena, tl_store);
    *store = (tl_store){ to, places, tl_load(arena, from, indices) };
    tl_block *block = TL_NEW(arena, tl_block);
    *block = (tl_block){ .name = name,
                         .iter_count = rank,
                         .iters = iters,
                         .predicate = predicate,
                         .store_count = 1,
                         .stores = store };
    const tl_stmt *stmt = tl_stmt_block(arena, block);
    for (int a = rank - 1; a >= 0; a--)
        stmt = tl_stmt_loop(arena, vars[a], extents[a], TL_LOOP_SERIAL, stmt);
    return stmt;
}

/* Whether the loops may walk along a diagonal of the block's domain: two of its iters are driven by one of them, and
 * are not known to be digits of it. */
static bool walks_diagonal(tl_arena *arena, const tl_path *path, const tl_block *block)
{
    int loop_count, count = 0;
    const tl_free_var *loops = tl_path_loops(arena, path, 0, &loop_count);
    const tl_expr **bindings = TL_NEW_ARRAY(arena, const tl_expr *, block->iter_count);
    bool shares = false;
    for (int k = 0; k < block->iter_count; k++) {
        if (block->iters[k].kind == TL_ITER_REDUCE)
            continue;
        for (int other = 0; other < count; other++)
            shares |= tl_share_vars(bindings[other], block->iters[k].binding);
        bindings[count++] = block->iters[k].binding;
    }
    return shares && !tl_is_dense(arena, bindings, count, loops, loop_count);
}

/* What a block writes of a buffer, in one pass through all of its loops: all of it, but for one axis or two, of which it writes
 * spans. */
enum { MOST_CUT = 2 };
typedef struct {
    int count; /* of axes */
    int axes[MOST_CUT];
    tl_span spans[MOST_CUT];
} part;

/* The axis of a buffer that an iter alone is the index of; -1: none. */
static int axis_of(const tl_store *store, const tl_iter *iter)
{
    for (int axis = 0; axis < store->buffer->rank; axis++)
        if (store->indices[axis]->kind == TL_EXPR_VAR && store->indices[axis]->u.var == iter->var &&
            tl_expr_equal(iter->extent, store->buffer->shape[axis]))
            return axis;
    return -1;
}

/* Whether the block's domain is all of the buffer: every axis an iter of its own of that extent, or as many instances
 * as elements (different ones write different elements). */
static bool is_domain_whole(const tl_block *block, const tl_store *store)
{
    int64_t instances = 1, elements = 1, extent;
    bool is_constant = true;
    int plain = 0;
    for (int i = 0; i < block->iter_count; i++) {
        const tl_iter *iter = &block->iters[i];
        plain += axis_of(store, iter) >= 0;
        if (iter->kind == TL_ITER_SPATIAL)
            is_constant = is_constant && tl_const_int(iter->extent, &extent) &&
                          !tl_mul_overflows(instances, extent, &instances);
    }
    for (int axis = 0; axis < store->buffer->rank; axis++)
        is_constant = is_constant && tl_const_int(store->buffer->shape[axis], &extent) &&
                      !tl_mul_overflows(elements, extent, &elements);
    return plain == store->buffer->rank || (is_constant && instances == elements);
}

/* False: it cannot be told what the block writes, or there are holes in it. */
static bool take_part(tl_arena *arena, const tl_path *path, const tl_block *block,
                      const tl_store *store, part *out)
{
    int count;
    const tl_free_var *loops = tl_path_loops(arena, path, 0, &count);
    *out = (part){ 0 };
    if (!is_domain_whole(block, store))
        return false;
    for (int k = 0; k < block->iter_count; k++) {
        const tl_iter *iter = &block->iters[k];
        if (iter->kind == TL_ITER_REDUCE)
            continue;
        tl_span span = tl_span_of(arena, iter->binding, loops, count);
        if (span.min == NULL || span.max == NULL)
            return false;
        if (tl_prove_le(arena, span.min, tl_int(arena, 0)) &&
            tl_prove_le(arena, tl_addi(arena, iter->extent, -1), span.max))
            continue;
        if (out->count == MOST_CUT || axis_of(store, iter) < 0)
            return false;
        out->axes[out->count] = axis_of(store, iter);
        out->spans[out->count++] = span;
    }
    return true;
}

/* NULL: all of the axis. */
static const tl_span *span_on(const part *p, int axis)
{
    for (int i = 0; i < p->count; i++)
        if (p->axes[i] == axis)
            return &p->spans[i];
    return NULL;
}

static bool are_beside(const part *a, const part *b, int axis)
{
    const tl_span *x = span_on(a, axis), *y = span_on(b, axis);
    return x == y || (x != NULL && y != NULL && tl_expr_equal(x->min, y->min) &&
                      tl_expr_equal(x->max, y->max));
}

/* Whether those of the parts that count, one behind another along the axis, reach from its start to its end. */
static bool reach(tl_arena *arena, const tl_buffer *buffer, const part *parts, const bool *counts,
                  int count, int axis)
{
    const tl_expr *reached = tl_int(arena, 0);
    for (int pass = 0; pass < count; pass++)
        for (int i = 0; i < count; i++) {
            const tl_span *span = span_on(&parts[i], axis);
            if (!counts[i])
                continue;
            if (span == NULL)
                return true;
            if (tl_prove_le(arena, span->min, reached) && tl_prove_le(arena, reached, span->max))
                reached = tl_addi(arena, span->max, 1);
        }
    return tl_prove_le(arena, buffer->shape[axis], reached);
}

/* Whether bands along `band`, each of parts of the same span there that cover the axis `along` (the same: no other is cut), cover
 * the buffer. */
static bool cover_by_bands(tl_arena *arena, const tl_buffer *buffer, const part *parts, int count,
                           int band, int along)
{
    bool *counts = TL_NEW_ARRAY(arena, bool, count), *beside = TL_NEW_ARRAY(arena, bool, count);
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < count; k++)
            beside[k] = are_beside(&parts[i], &parts[k], band);
        counts[i] = band == along || reach(arena, buffer, parts, beside, count, along);
    }
    return reach(arena, buffer, parts, counts, count, band);
}

/* Whether the parts are all of the buffer together: one behind another along an axis, or a grid that was cut along two. */
static bool join(tl_arena *arena, const tl_buffer *buffer, const part *parts, int count)
{
    int axes[MOST_CUT], axis_count = 0;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < parts[i].count; k++) {
            bool is_known = false;
            for (int a = 0; a < axis_count; a++)
                is_known |= axes[a] == parts[i].axes[k];
            if (!is_known && axis_count == MOST_CUT)
                return false;
            if (!is_known)
                axes[axis_count++] = parts[i].axes[k];
        }
    if (axis_count == 0)
        return false;
    const int other = axes[axis_count - 1]; /* the same where there is one */
    return cover_by_bands(arena, buffer, parts, count, axes[0], other) ||
           cover_by_bands(arena, buffer, parts, count, other, axes[0]);
}

/* Whether there is nothing in the buffer before a block writes it. */
static bool starts_empty(const tl_buffer *buffer)
{
    return buffer->role == TL_ROLE_LOCAL || buffer->role == TL_ROLE_OUTPUT;
}

/* Whether nobody is known to write some elements of such a buffer before the consumer (padding of its layout, dims at
 * their largest, what guards leave out): a copy of it all would read them. `boxed`: only what is read in one iteration
 * is copied, and that it is written there is for tl_check_placed to say. */
static bool is_padded(tl_schedule *s, const tl_buffer *buffer, const tl_block *consumer, bool boxed)
{
    const tl_block **writers;
    if (!starts_empty(buffer))
        return false;
    int count = tl_writers_of(s->arena, s->program->body, buffer, &writers), part_count = 0;
    int position = tl_block_position(s->program->body, consumer->name);
    part *parts = TL_NEW_ARRAY(s->arena, part, count);
    for (int w = 0; w < count; w++) {
        tl_path path = tl_path_to_block(s->arena, s->program->body, writers[w]->name);
        if (tl_block_position(s->program->body, writers[w]->name) > position)
            continue;
        if (writers[w]->call)
            return false;
        if (tl_cutting_condition(s->arena, &path, writers[w]) != NULL ||
            walks_diagonal(s->arena, &path, writers[w]))
            continue;
        for (int i = 0; i < writers[w]->store_count; i++) {
            const tl_store *store = &writers[w]->stores[i];
            if (store->buffer != buffer)
                continue;
            if (boxed && is_domain_whole(writers[w], store))
                return false;
            if (!take_part(s->arena, &path, writers[w], store, &parts[part_count]))
                continue;
            if (parts[part_count++].count == 0)
                return false;
            break;
        }
    }
    return !join(s->arena, buffer, parts, part_count);
}

tl_status tl_apply_cache_read(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                              int *out_count, tl_diag *diag)
{
    assert(arg_count == 3 && args[0].kind == TL_ARG_BLOCK && args[1].kind == TL_ARG_WORD &&
           args[2].kind == TL_ARG_WORD);
    (void)arg_count;
    tl_arena *arena = s->arena;
    const tl_block *consumer;
    tl_scope scope = TL_SCOPE_GLOBAL;
    TL_TRY(tl_need_block(s, PRIM, args[0].block, &consumer, diag));
    TL_TRY(find_scope(consumer->name, args[2].word, &scope, diag));
    tl_path path = tl_path_to_block(arena, s->program->body, consumer->name);
    if (path.count == 0)
        return tl_refuse(diag, PRIM, consumer->name,
                         "it is in the prepare part, which has no caches");
    const tl_buffer *buffer = tl_program_find_buffer(s->program, args[1].word);
    if (buffer == NULL || !tl_block_reads_buffer(consumer, buffer))
        return tl_refuse(diag, PRIM, consumer->name, "it does not read a buffer %s", args[1].word);
    if (tl_block_writes_buffer(consumer, buffer))
        return tl_refuse(diag, PRIM, consumer->name,
                         "it also writes %s, which a copy would not see", buffer->name);
    if (buffer->scope == TL_SCOPE_REGISTER || tl_scope_threads[buffer->scope] > 0)
        return tl_refuse(diag, PRIM, consumer->name, "%s is in %s scope and needs no cache",
                         buffer->name, tl_scope_texts[buffer->scope]);
    TL_TRY(tl_check_scope(s, PRIM, buffer, scope, diag));
    int at = find_place(s, &path, buffer);
    const tl_stmt *place = path.stmts[at];
    bool in_loop = false;
    for (int i = 0; i < at; i++)
        in_loop |= path.stmts[i]->kind == TL_STMT_LOOP;
    tl_box box;
    bool boxed = (in_loop || buffer->role != TL_ROLE_LOCAL) &&
                 tl_box_at(arena, place, buffer, TL_BOX_READS, consumer->name, &box);

    if (is_padded(s, buffer, consumer, boxed))
        return tl_refuse(diag, PRIM, consumer->name,
                         "no block is known to write all of %s, and its copy would read the rest",
                         buffer->name);

    const char *name = tl_fresh_buffer_name(s, tl_arena_format(arena, "%s_local", buffer->name));
    const char *block_name = tl_fresh_block_name(s, name);
    const tl_stmt *reader = path.stmts[path.count - 1];
    const tl_read_step *steps = tl_read_steps(arena, reader, buffer);
    const tl_buffer *local = make_local(arena, name, buffer, scope, steps);
    const tl_stmt *copy = make_copy(s, block_name, buffer, local, steps, boxed ? &box : NULL,
                                    tl_outer_condition(arena, &path, at));

    tl_path inside = { path.count - at, path.stmts + at };
    const tl_stmt *reads =
        tl_skip_steps(arena, tl_stmt_replace_buffer(arena, reader, buffer, local), local, steps);
    const tl_stmt *with = tl_path_replace(arena, &inside, reads);
    tl_path prefix = tl_path_prefix(&path, at + 1);
    const tl_stmt *both = tl_stmt_alloc(arena, local, tl_stmt_seq2(arena, copy, with));
    const tl_stmt *root = tl_path_replace(arena, &prefix, both);
    if (in_loop && starts_empty(buffer))
        TL_TRY(tl_check_placed(s, PRIM, root, block_name, NULL, diag));
    tl_schedule_set_body(s, root);
    if (scope == TL_SCOPE_SHARED)
        tl_hoist_shared(s);
    out[0] = (tl_arg){ .kind = TL_ARG_BLOCK, .block = tl_schedule_name_block(s, block_name) };
    *out_count = 1;
    return TL_OK;
}
