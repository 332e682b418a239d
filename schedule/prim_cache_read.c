/* schedule/prim_cache_read.c: cache_read(consumer, buffer, scope) -> copy
 *
 *                                            alloc A_local
 *     for i in 0..n                          for i in 0..n
 *       C[i] = A[i + 1]*2           ->         A_local: A_local[i] = A[i]
 *                                            for i in 0..n
 *                                              C[i] = A_local[i + 1]*2
 *
 * The consumer reads a copy in another scope. The copy is made by a block of its own as far out as the buffer's writers
 * allow: of the whole buffer, or inside a loop of what the consumer reads in one iteration. compute_at then
 * moves it to where it is wanted.
 *
 * Requires  a block of the body that reads the buffer and does not write it; a buffer without register scope.
 * Keeps     every value; all of the new buffer that is read is written before. */
#include <string.h>
#include "runtime/base/checked.h"
#include "schedule/instances.h"
#include "schedule/nest.h"

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

/* Loops over what is read, around a block that copies it. */
static const tl_stmt *make_copy(tl_schedule *s, const char *name, const tl_buffer *from,
                                const tl_buffer *to, const tl_box *box, const tl_expr *condition)
{
    tl_arena *arena = s->arena;
    int rank = from->rank;
    const tl_var **vars = TL_NEW_ARRAY(arena, const tl_var *, rank);
    const tl_expr **extents = TL_NEW_ARRAY(arena, const tl_expr *, rank);
    const tl_expr **indices = TL_NEW_ARRAY(arena, const tl_expr *, rank);
    tl_iter *iters = TL_NEW_ARRAY(arena, tl_iter, rank);
    const tl_expr *predicate = condition;
    for (int a = 0; a < rank; a++) {
        const tl_expr *begin = tl_int(arena, 0);
        extents[a] = from->shape[a];
        if (box != NULL)
            tl_span_loop(arena, box->axes[a], from->shape[a], &begin, &extents[a]);
        const tl_var *named = tl_var_make(arena, tl_arena_format(arena, "i%d", a), 0, 0);
        vars[a] = tl_var_derive(arena, named, "", extents[a]);
        tl_var *iter = tl_var_derive(arena, named, "", from->shape[a]);
        const tl_expr *binding = tl_add(arena, begin, tl_ref(arena, vars[a]));
        iters[a] = (tl_iter){ iter, TL_ITER_SPATIAL, from->shape[a], binding };
        indices[a] = tl_ref(arena, iter);
        predicate = tl_and(arena, predicate,
                           tl_loop_guard(arena, begin, extents[a], binding, from->shape[a]));
    }
    tl_store *store = TL_NEW(arena, tl_store);
    *store = (tl_store){ to, indices, tl_load(arena, from, indices) };
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
static bool leaves_holes(tl_arena *arena, const tl_path *path, const tl_block *block)
{
    tl_free_var *loops = TL_NEW_ARRAY(arena, tl_free_var, path->count);
    const tl_expr **bindings = TL_NEW_ARRAY(arena, const tl_expr *, block->iter_count);
    int loop_count = 0, count = 0;
    bool shares = false;
    for (int i = 0; i < path->count; i++)
        if (path->stmts[i]->kind == TL_STMT_LOOP)
            loops[loop_count++] =
                (tl_free_var){ path->stmts[i]->u.loop.var, path->stmts[i]->u.loop.extent };
    for (int k = 0; k < block->iter_count; k++) {
        if (block->iters[k].kind == TL_ITER_REDUCE)
            continue;
        for (int other = 0; other < count; other++)
            shares |= tl_share_vars(bindings[other], block->iters[k].binding);
        bindings[count++] = block->iters[k].binding;
    }
    return shares && !tl_is_dense(arena, bindings, count, loops, loop_count);
}

/* Whether a block's domain is all of the buffer: every axis an iter of its own of that extent, or as many instances
 * as elements (different ones write different elements); and no guard leaves out a part of it. */
static bool fills(tl_arena *arena, const tl_stmt *body, const tl_block *block,
                  const tl_buffer *buffer)
{
    tl_path path = tl_path_to_block(arena, body, block->name);
    if (tl_cutting_condition(arena, &path, block) != NULL || leaves_holes(arena, &path, block))
        return false;
    const tl_store *store = NULL;
    for (int i = 0; i < block->store_count; i++)
        if (block->stores[i].buffer == buffer)
            store = &block->stores[i];
    int64_t instances = 1, elements = 1, extent;
    bool is_constant = true;
    int plain = 0;
    for (int i = 0; i < block->iter_count; i++) {
        const tl_iter *iter = &block->iters[i];
        for (int axis = 0; store && axis < buffer->rank; axis++)
            plain += store->indices[axis]->kind == TL_EXPR_VAR &&
                     store->indices[axis]->u.var == iter->var &&
                     tl_expr_equal(iter->extent, buffer->shape[axis]);
        if (iter->kind == TL_ITER_SPATIAL)
            is_constant = is_constant && tl_const_int(iter->extent, &extent) &&
                          !tl_mul_overflows(instances, extent, &instances);
    }
    for (int axis = 0; axis < buffer->rank; axis++)
        is_constant = is_constant && tl_const_int(buffer->shape[axis], &extent) &&
                      !tl_mul_overflows(elements, extent, &elements);
    return store && (plain == buffer->rank || (is_constant && instances == elements));
}

/* Whether nobody writes some elements of a local buffer (padding of its layout, or dims at their largest): a copy of
 * it all would read them. */
static bool is_padded(tl_schedule *s, const tl_buffer *buffer)
{
    const tl_block **writers;
    if (buffer->role != TL_ROLE_LOCAL)
        return false;
    int count = tl_writers_of(s->arena, s->program->body, buffer, &writers);
    for (int w = 0; w < count; w++)
        if (writers[w]->call || fills(s->arena, s->program->body, writers[w], buffer))
            return false;
    return true;
}

tl_status tl_apply_cache_read(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                              int *out_count, tl_diag *diag)
{
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
    if (buffer->scope == TL_SCOPE_REGISTER || buffer->scope == TL_SCOPE_WARP)
        return tl_refuse(diag, PRIM, consumer->name, "%s is in %s scope and needs no cache",
                         buffer->name, tl_scope_texts[buffer->scope]);
    TL_TRY(tl_check_scope(s, PRIM, buffer, scope, diag));
    if (is_padded(s, buffer))
        return tl_refuse(diag, PRIM, consumer->name,
                         "no block is known to write all of %s, and its copy would read the rest",
                         buffer->name);

    int at = find_place(s, &path, buffer);
    const tl_stmt *place = path.stmts[at];
    bool in_loop = false;
    for (int i = 0; i < at; i++)
        in_loop |= path.stmts[i]->kind == TL_STMT_LOOP;
    tl_box box;
    bool boxed = in_loop && tl_box_at(arena, place, buffer, TL_BOX_READS, consumer->name, &box);

    const char *name = tl_fresh_buffer_name(s, tl_arena_format(arena, "%s_local", buffer->name));
    const char *block_name = tl_fresh_block_name(s, name);
    const tl_buffer *local = tl_buffer_make(arena, name, buffer->dtype, TL_ROLE_LOCAL, scope,
                                            buffer->rank, tl_shape_in_scope(arena, buffer, scope));
    const tl_stmt *copy = make_copy(s, block_name, buffer, local, boxed ? &box : NULL,
                                    tl_outer_condition(arena, &path, at));

    tl_path inside = { path.count - at, path.stmts + at };
    const tl_stmt *reads = tl_stmt_replace_buffer(arena, path.stmts[path.count - 1], buffer, local);
    const tl_stmt *with = tl_path_replace(arena, &inside, reads);
    tl_path prefix = tl_path_prefix(&path, at + 1);
    const tl_stmt *both = tl_stmt_alloc(arena, local, tl_stmt_seq2(arena, copy, with));
    const tl_stmt *root = tl_path_replace(arena, &prefix, both);
    if (in_loop && buffer->role == TL_ROLE_LOCAL)
        TL_TRY(tl_check_placed(s, PRIM, root, block_name, diag));
    tl_schedule_set_body(s, root);
    if (scope == TL_SCOPE_SHARED)
        tl_hoist_shared(s);
    out[0] = (tl_arg){ .kind = TL_ARG_BLOCK, .block = tl_schedule_name_block(s, block_name) };
    *out_count = 1;
    return TL_OK;
}
