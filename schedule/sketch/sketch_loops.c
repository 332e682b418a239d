/* schedule/sketch/sketch_loops.c: small questions and moves that the sketch rules share. */
#include "runtime/base/checked.h"
#include "schedule/dependence.h"
#include "schedule/sketch/sketch_private.h"

/* A step of the trace gives the loops only where one of them has no name there yet: what rules merely look at leaves no line. */
tl_status tl_sketch_loops(tl_schedule *s, tl_block_ref block, int first, tl_loop_list *out,
                          tl_diag *diag)
{
    tl_arg of = { .kind = TL_ARG_BLOCK, .block = block }, found[TL_MAX_ARGS];
    int count = 0;
    bool are_named = true;
    *out = (tl_loop_list){ 0 };
    TL_TRY(tl_apply_loops(s, &of, 1, found, &count, diag));
    for (int i = 0; i < count; i++)
        are_named &= s->loop_numbers[found[i].loop.id - 1] != 0;
    if (!are_named)
        tl_schedule_record(s, TL_PRIM_loops, &of, 1, found, count);
    for (int i = first; i < count; i++) {
        if (out->count == TL_MAX_LOOPS)
            return tl_refuse(diag, "default schedule", tl_schedule_get_block(s, block)->name,
                             "more than %d loops around a block", TL_MAX_LOOPS);
        out->loops[out->count++] = found[i].loop;
    }
    return TL_OK;
}

static bool count_block(const tl_stmt *stmt, void *context)
{
    *(int *)context += stmt->kind == TL_STMT_BLOCK;
    return true;
}

int tl_sketch_shared_loops(tl_schedule *s, tl_block_ref block)
{
    tl_path path =
        tl_path_to_block(s->arena, s->program->body, tl_schedule_get_block(s, block)->name);
    int shared = 0;
    for (int i = 0; i < path.count; i++) {
        int blocks = 0;
        if (path.stmts[i]->kind != TL_STMT_LOOP)
            continue;
        tl_stmt_visit(path.stmts[i], count_block, &blocks);
        shared += blocks > 1;
    }
    return shared;
}

void tl_loop_push(tl_loop_list *list, tl_loop_ref loop)
{
    if (loop.id != 0 && list->count < TL_MAX_LOOPS)
        list->loops[list->count++] = loop;
}

const tl_iter *tl_sketch_iter_of(const tl_block *block, const tl_var *var)
{
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].var == var)
            return &block->iters[i];
    return NULL;
}

tl_loop_ref tl_sketch_loop_of(tl_schedule *s, const tl_iter *iter, const tl_loop_list *loops)
{
    for (int i = loops->count - 1; i >= 0; i--) {
        const tl_stmt *loop = tl_schedule_get_loop(s, loops->loops[i]);
        int64_t coefficient;
        const tl_expr *rest;
        if (loop != NULL && tl_expr_uses_var(iter->binding, loop->u.loop.var) &&
            tl_affine_in(s->arena, iter->binding, loop->u.loop.var, &coefficient, &rest) &&
            coefficient == 1)
            return loops->loops[i];
    }
    return (tl_loop_ref){ 0 };
}

int64_t tl_sketch_extent(const tl_schedule *s, tl_loop_ref ref)
{
    const tl_stmt *loop = tl_schedule_get_loop(s, ref);
    return loop == NULL ? 1 : tl_max_extent(loop->u.loop.extent);
}

bool tl_sketch_is_fixed(const tl_schedule *s, tl_loop_ref ref)
{
    const tl_stmt *loop = tl_schedule_get_loop(s, ref);
    int64_t extent;
    return loop == NULL || tl_const_int(loop->u.loop.extent, &extent);
}

int64_t tl_sketch_points(const tl_block *block, tl_iter_kind kind)
{
    int64_t points = 1;
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == kind &&
            tl_mul_overflows(points, tl_max_extent(block->iters[i].extent), &points))
            return INT64_MAX;
    return points;
}

int tl_sketch_divisors(int64_t extent, int64_t *out, int capacity)
{
    int count = 0;
    for (int64_t d = 1; d <= extent && count < capacity; d++)
        if (extent % d == 0)
            out[count++] = d;
    return count;
}

bool tl_sketch_drives_reduce(const tl_schedule *s, const tl_block *block, tl_loop_ref loop)
{
    const tl_iter *iter;
    return tl_loop_drives(block, tl_schedule_get_loop(s, loop)->u.loop.var, &iter) &
           TL_DRIVES_REDUCE;
}

bool tl_sketch_moves_load(const tl_schedule *s, const tl_block *block, const tl_expr *load,
                          tl_loop_ref loop)
{
    const tl_var *var = tl_schedule_get_loop(s, loop)->u.loop.var;
    for (int i = 0; i < block->iter_count; i++)
        if (tl_expr_uses_var(block->iters[i].binding, var) &&
            tl_expr_uses_var(load, block->iters[i].var))
            return true;
    return false;
}

int tl_sketch_axis_of(tl_schedule *s, const tl_expr *load, const tl_var *iter)
{
    int found = -1;
    for (int axis = 0; axis < load->u.buffer->rank; axis++) {
        int64_t coefficient;
        const tl_expr *rest;
        if (!tl_expr_uses_var(load->args[axis], iter))
            continue;
        if (found >= 0 || !tl_affine_in(s->arena, load->args[axis], iter, &coefficient, &rest) ||
            coefficient != 1)
            return -1;
        found = axis;
    }
    return found;
}

bool tl_sketch_reads_lines(tl_schedule *s, const tl_expr *load, const tl_var *lane)
{
    int64_t stride = tl_access_stride(s->arena, load->u.buffer, load->args, lane);
    return stride == 0 || stride == 1;
}

tl_status tl_sketch_vectorize(tl_schedule *s, tl_loop_ref loop, int lanes, tl_loop_ref *outer,
                              tl_diag *diag)
{
    const tl_stmt *stmt = tl_schedule_get_loop(s, loop);
    int64_t extent;
    *outer = (tl_loop_ref){ 0 };
    if (tl_const_int(stmt->u.loop.extent, &extent) && extent <= lanes)
        return tl_vectorize(s, loop, diag);
    tl_loop_ref parts[2];
    TL_TRY(tl_split(s, loop, (int64_t[]){ 0, lanes }, 2, parts, diag));
    *outer = parts[0];
    return tl_vectorize(s, parts[1], diag);
}

bool tl_sketch_reads_by_axes(tl_schedule *s, const tl_block *out, const tl_buffer *result)
{
    const tl_expr *loads[64];
    for (int k = 0; k < out->store_count; k++) {
        int count = tl_collect_loads(out->stores[k].value, loads, 64);
        if (count > 64)
            return false;
        for (int l = 0; l < count; l++) {
            for (int axis = 0; loads[l]->u.buffer == result && axis < result->rank; axis++) {
                tl_linear sum = tl_linear_of(s->arena, loads[l]->args[axis]);
                for (int t = 0; t < sum.count; t++)
                    if (sum.terms[t]->kind != TL_EXPR_VAR)
                        return false;
            }
        }
    }
    return true;
}

/* Whether some load moves with both iters. */
static bool moves_with(const tl_block *block, const tl_var *iter, const tl_var *vector)
{
    const tl_expr *loads[8];
    int count = tl_collect_loads(block->stores[0].value, loads, 8);
    for (int l = 0; l < count; l++)
        if (tl_expr_uses_var(loads[l], iter) && tl_expr_uses_var(loads[l], vector))
            return true;
    return false;
}

tl_status tl_sketch_reduction(tl_schedule *s, tl_block_ref anchor, int outside,
                              const tl_var *vector, const tl_var *tap, int64_t unroll_limit,
                              tl_loop_ref *last_reduce, tl_diag *diag)
{
    tl_loop_list own, once = { 0 }, reduce = { 0 }, tile = { 0 }, columns = { 0 }, all;
    tl_loop_ref vector_loop = { 0 }, tap_loop = { 0 };
    TL_TRY(tl_sketch_loops(s, anchor, outside, &own, diag));
    const tl_block *block = tl_schedule_get_block(s, anchor);
    int64_t runs = 1;
    for (int i = 0; i < own.count; i++) {
        const tl_var *var = tl_schedule_get_loop(s, own.loops[i])->u.loop.var;
        bool reduces = false, is_vector = false, is_column = false, is_tap = false;
        for (int j = 0; j < block->iter_count; j++)
            if (tl_expr_uses_var(block->iters[j].binding, var)) {
                reduces |= block->iters[j].kind == TL_ITER_REDUCE;
                is_vector |= block->iters[j].var == vector;
                is_tap |= block->iters[j].var == tap;
                is_column |= moves_with(block, block->iters[j].var, vector);
            }
        if (is_tap) {
            tap_loop = own.loops[i];
        } else if (reduces) {
            tl_loop_push(&reduce, own.loops[i]);
            runs *= tl_sketch_extent(s, own.loops[i]);
        } else if (is_vector) {
            tl_loop_push(&columns, vector_loop); /* the inner of two has the lanes */
            vector_loop = own.loops[i];
        } else if (tl_sketch_extent(s, own.loops[i]) == 1)
            tl_loop_push(&once, own.loops[i]);
        else
            tl_loop_push(is_column ? &columns : &tile, own.loops[i]);
    }
    /* rows outside columns: an element that is broadcast serves its columns at once, and the panel's vectors, few,
     * stay in registers. The other way round every row's broadcast would have to. */
    tl_loop_push(&tile, tap_loop);
    for (int i = 0; i < columns.count; i++)
        tl_loop_push(&tile, columns.loops[i]);

    all = once;
    for (int i = 0; i < reduce.count; i++)
        tl_loop_push(&all, reduce.loops[i]);
    for (int i = 0; i < tile.count; i++)
        tl_loop_push(&all, tile.loops[i]);
    tl_loop_push(&all, vector_loop);
    if (all.count > 1)
        TL_TRY(tl_reorder(s, all.loops, all.count, diag));

    *last_reduce = (tl_loop_ref){ 0 };
    for (int i = 0; i < reduce.count; i++) {
        if (tl_sketch_extent(s, reduce.loops[i]) > 1)
            *last_reduce = reduce.loops[i];
        if (runs <= unroll_limit)
            TL_TRY(tl_unroll(s, reduce.loops[i], diag));
    }
    for (int i = 0; i < once.count; i++)
        TL_TRY(tl_unroll(s, once.loops[i], diag));
    for (int i = 0; i < tile.count; i++)
        TL_TRY(tl_unroll(s, tile.loops[i], diag));
    if (vector_loop.id != 0)
        TL_TRY(tl_vectorize(s, vector_loop, diag));
    if (reduce.count > 0)
        TL_TRY(tl_decompose_reduction(s, anchor, reduce.loops[0], &(tl_block_ref){ 0 }, diag));
    return TL_OK;
}
