/* schedule/prim/prim_prefetch.c: prefetch(block, buffer, loop, distance, level)
 *
 *     for k in 0..768                      for k in 0..768
 *       for j1 in 0..32 vectorized           for j_p in 0..2 unrolled
 *         block C                     ->       prefetch B[k + 8, 16*j_p] to L1
 *           ... B[k, j1] ...                 for j1 in 0..32 vectorized
 *                                              block C
 *
 * What the block will read of the buffer `distance` iterations of the loop later, one prefetch a cache line: loops
 * that move by less than a line step over several of their elements at once, vectorized lanes included.
 *
 * When serial loops lie between the loop and the block, and what they read is one panel, its lines are not fetched at
 * once but spread over their iterations (prefetch_spread.c).
 *
 * Requires  a loop around the block that moves the buffer's index; the block reads the buffer, which is global;
 *           distance 1 or more; level 1 or 2. The address may lie outside of the buffer: a prefetch never faults.
 * Keeps     everything.
 */
#include <assert.h>
#include "runtime/base/checked.h"
#include "schedule/prefetch_spread.h"
#include "schedule/schedule_private.h"

enum { MAX_DISTANCE = 1 << 20, MAX_UNROLLED = 16, MAX_LOADS = 8 };

typedef struct {
    const tl_buffer *buffer;
    int count;
    const tl_expr *loads[MAX_LOADS]; /* distinct */
} load_list;

static bool add_load(const tl_expr *e, void *context)
{
    load_list *list = context;
    if (e->kind != TL_EXPR_LOAD || e->u.buffer != list->buffer || list->count == MAX_LOADS)
        return true;
    for (int i = 0; i < list->count; i++)
        if (tl_expr_equal(list->loads[i], e))
            return true;
    list->loads[list->count++] = e;
    return true;
}

/* Elements that the access moves by per step of `var`; INT64_MAX when that is not one number. */
static int64_t stride_of(tl_arena *arena, const tl_buffer *b, const tl_expr *const *indices,
                         const tl_var *var)
{
    int64_t stride = 0, size = 1;
    for (int axis = b->rank - 1; axis >= 0; axis--) {
        int64_t coefficient, extent, step = b->strides ? b->strides[axis] : size;
        const tl_expr *rest;
        if (!tl_affine_in(arena, indices[axis], var, &coefficient, &rest))
            return INT64_MAX;
        if (coefficient && step < 0)
            return INT64_MAX; /* an axis further in has no constant extent */
        if (coefficient && (tl_mul_overflows(coefficient, step, &coefficient) ||
                            tl_add_overflows(stride, coefficient, &stride)))
            return INT64_MAX;
        if (size >= 0 &&
            (!tl_const_int(b->shape[axis], &extent) || tl_mul_overflows(size, extent, &size)))
            size = -1;
    }
    return stride < 0 ? -stride : stride;
}

/* One load's prefetches: a nest over the loops further in that move it. */
static const tl_stmt *make_nest(tl_schedule *s, const tl_path *inner, const tl_buffer *buffer,
                                const tl_expr *const *indices, int level)
{
    assert(buffer->rank >= 0 && level >= 0);
    tl_arena *arena = s->arena;
    int64_t total = 1, element = (int64_t)tl_dtype_size(buffer->dtype);
    int count = 0;
    const tl_var **vars = TL_NEW_ARRAY(arena, const tl_var *, inner->count);
    const tl_expr **extents = TL_NEW_ARRAY(arena, const tl_expr *, inner->count);
    tl_binding *bindings = TL_NEW_ARRAY(arena, tl_binding, inner->count);
    for (int i = 0; i < inner->count; i++) {
        if (inner->stmts[i]->kind != TL_STMT_LOOP)
            continue;
        const tl_var *var = inner->stmts[i]->u.loop.var;
        const tl_expr *extent = inner->stmts[i]->u.loop.extent;
        int64_t stride = stride_of(arena, buffer, indices, var);
        int64_t per_line = stride >= TL_LINE_BYTES / element ? 1
                           : stride == 0                     ? 0
                                                             : TL_LINE_BYTES / (stride * element);
        extents[count] = per_line == 0
                             ? tl_int(arena, 1) /* axes may move against each other */
                             : tl_floordiv_expr(arena, tl_addi(arena, extent, per_line - 1),
                                                tl_int(arena, per_line));
        vars[count] = tl_var_derive(arena, var, "_p", extents[count]);
        bindings[count] = (tl_binding){ var, tl_muli(arena, tl_ref(arena, vars[count]), per_line) };
        if (tl_is_int(extents[count], 1)) /* no loop for a single line */
            bindings[count].value = tl_int(arena, 0);
        if (tl_mul_overflows(total, tl_max64(tl_expr_range(extents[count]).max, 1), &total))
            total = INT64_MAX;
        count++;
    }
    const tl_expr **moved = TL_NEW_ARRAY(arena, const tl_expr *, buffer->rank);
    for (int axis = 0; axis < buffer->rank; axis++)
        moved[axis] = tl_substitute(arena, indices[axis], bindings, count);
    const tl_stmt *nest = tl_stmt_prefetch(arena, buffer, moved, level);
    for (int i = count - 1; i >= 0; i--) {
        int64_t extent;
        bool unrolled = tl_const_int(extents[i], &extent) && total <= MAX_UNROLLED;
        if (!tl_is_int(extents[i], 1))
            nest = tl_stmt_loop(arena, vars[i], extents[i],
                                unrolled ? TL_LOOP_UNROLLED : TL_LOOP_SERIAL, nest);
    }
    return nest;
}

static tl_status check(tl_schedule *s, const tl_arg *args, const tl_block *block,
                       const tl_stmt *loop, const tl_path *path, load_list *loads, tl_diag *diag)
{
    const char *name = args[1].word, *var = loop->u.loop.var->name;
    loads->buffer = tl_program_find_buffer(s->program, name);
    if (loads->buffer == NULL)
        return tl_refuse(diag, "prefetch", name, "there is no such buffer in kernel %s",
                         s->program->name);
    if (loads->buffer->scope != TL_SCOPE_GLOBAL)
        return tl_refuse(diag, "prefetch", name,
                         "the buffer is in scope %s; only global memory is fetched",
                         tl_scope_texts[loads->buffer->scope]);
    if (args[3].value < 1 || args[3].value > MAX_DISTANCE)
        return tl_refuse(diag, "prefetch", name, "the distance %lld is not between 1 and %d",
                         (long long)args[3].value, MAX_DISTANCE);
    if (args[4].value != 1 && args[4].value != 2)
        return tl_refuse(diag, "prefetch", name, "the level %lld is neither 1 nor 2",
                         (long long)args[4].value);
    int at = tl_path_find_loop(path, loop->u.loop.var);
    if (at < 0)
        return tl_refuse(diag, "prefetch", name, "loop %s is not around block %s", var,
                         block->name);
    for (int i = 0; i <= at; i++)
        if (path->stmts[i]->kind == TL_STMT_LOOP &&
            path->stmts[i]->u.loop.kind == TL_LOOP_VECTORIZED)
            return tl_refuse(diag, "prefetch", name,
                             "loop %s is vectorized; prefetch in a loop around it",
                             path->stmts[i]->u.loop.var->name);
    for (int i = at + 1; i < path->count; i++)
        if (path->stmts[i]->kind == TL_STMT_ALLOC &&
            path->stmts[i]->u.alloc.buffer == loads->buffer)
            return tl_refuse(diag, "prefetch", name,
                             "it is allocated inside loop %s, anew in every iteration", var);
    for (int i = 0; i < block->store_count; i++)
        tl_expr_visit(block->stores[i].value, add_load, loads);
    if (loads->count == 0)
        return tl_refuse(diag, "prefetch", name, "block %s does not read it", block->name);
    return TL_OK;
}

/* At the start of the loop at that position of the path. */
static void put_share(tl_schedule *s, const tl_path *path, int position, const tl_stmt *share)
{
    const tl_stmt *loop = path->stmts[position];
    const tl_stmt *body = tl_stmt_seq2(s->arena, share, loop->u.loop.body);
    tl_path prefix = tl_path_prefix(path, position + 1);
    tl_schedule_replace(s, &prefix, tl_stmt_with_body(s->arena, loop, body));
}

tl_status tl_apply_prefetch(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                            int *out_count, tl_diag *diag)
{
    assert(arg_count == 5 && args[0].kind == TL_ARG_BLOCK && args[1].kind == TL_ARG_WORD &&
           args[2].kind == TL_ARG_LOOP && args[3].kind == TL_ARG_INT && args[4].kind == TL_ARG_INT);
    (void)arg_count;
    (void)out;
    (void)out_count;
    const tl_block *block;
    const tl_stmt *loop;
    load_list loads = { 0 };
    TL_TRY(tl_need_block(s, "prefetch", args[0].block, &block, diag));
    TL_TRY(tl_need_loop(s, "prefetch", args[2].loop, &loop, diag));
    tl_path path = tl_schedule_path_to_block(s, block->name);
    TL_TRY(check(s, args, block, loop, &path, &loads, diag));

    const tl_var *var = loop->u.loop.var;
    int at = tl_path_find_loop(&path, var), count = 0;
    tl_path inner = { path.count - at - 1, path.stmts + at + 1 };
    tl_binding later = { var, tl_addi(s->arena, tl_ref(s->arena, var), args[3].value) };
    const tl_stmt *items[MAX_LOADS + 1];
    for (int i = 0; i < loads.count; i++) {
        int rank = loads.buffer->rank;
        const tl_expr **indices = TL_NEW_ARRAY(s->arena, const tl_expr *, rank);
        bool moves = false;
        for (int axis = 0; axis < rank; axis++) {
            const tl_expr *now = tl_block_bind(s->arena, block, loads.loads[i]->args[axis]);
            indices[axis] = tl_substitute(s->arena, now, &later, 1);
            moves = moves || indices[axis] != now;
            if (tl_expr_has_load(now))
                return tl_refuse(diag, "prefetch", args[1].word,
                                 "where block %s reads it is itself read from memory", block->name);
        }
        tl_prefetch_share share;
        if (moves && loads.count == 1 &&
            tl_prefetch_spread(s->arena, &inner, loads.buffer, indices, (int)args[4].value,
                               &share)) {
            put_share(s, &path, at + 1 + share.at, share.stmt);
            return TL_OK;
        }
        if (moves)
            items[count++] = make_nest(s, &inner, loads.buffer, indices, (int)args[4].value);
    }
    if (count == 0)
        return tl_refuse(diag, "prefetch", args[1].word,
                         "loop %s does not move what block %s reads of it", var->name, block->name);
    items[count++] = loop->u.loop.body;
    const tl_stmt *body = tl_stmt_seq(s->arena, items, count);
    tl_path prefix = tl_path_prefix(&path, at + 1);
    tl_schedule_replace(s, &prefix, tl_stmt_with_body(s->arena, loop, body));
    return TL_OK;
}
