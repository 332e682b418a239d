/* schedule/sketch_window.c: the default schedule of reductions over a window in which every lane has its own data: depthwise
 * convolution, pooling.
 *
 *     for <outer>
 *       for x0 in x / X
 *         acc[X vectors] = init                  registers
 *         for <window>                           unrolled when small
 *           for x in X                           unrolled
 *             acc[x] op= in[x...]                vectorized
 *         result[x] = epilogue(acc[x])
 */
#include "schedule/sketch_private.h"

enum { LARGEST_WINDOW = 16 }; /* reduce instances that are written out */

/* The largest divisor of `extent` that is at most `limit`. */
static int64_t divisor(int64_t extent, int64_t limit)
{
    for (int64_t d = limit; d > 1; d--)
        if (extent % d == 0)
            return d;
    return 1;
}

tl_status tl_sketch_window(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, anchor);
    const tl_buffer *result = block->stores[0].buffer;
    int lanes = tl_target_lanes(s->target, result->dtype);
    tl_loop_list loops, outer = { 0 };
    TL_TRY(tl_sketch_loops(s, out, 0, &loops, diag));
    if (loops.count < 2)
        return tl_sketch_nest(s, out, 0, diag);

    /* the innermost loop is the contiguous one, the one before it is tiled */
    tl_loop_ref vector = loops.loops[loops.count - 1], parts[2], split[2] = { { 0 }, vector },
                reduce;
    tl_loop_ref row = loops.loops[loops.count - 2];
    int64_t width = tl_sketch_extent(s, vector);
    TL_TRY(
        tl_split(s, row, (int64_t[]){ 0, divisor(tl_sketch_extent(s, row), 8) }, 2, parts, diag));
    if (width > lanes)
        TL_TRY(tl_split(s, vector, (int64_t[]){ 0, lanes }, 2, split, diag));
    for (int i = 0; i + 2 < loops.count; i++)
        tl_loop_push(&outer, loops.loops[i]);
    tl_loop_push(&outer, parts[0]);
    tl_loop_push(&outer, split[0]);
    tl_loop_list all = outer;
    tl_loop_push(&all, parts[1]);
    tl_loop_push(&all, split[1]);
    TL_TRY(tl_reorder(s, all.loops, all.count, diag));

    TL_TRY(tl_compute_at(s, anchor, outer.loops[outer.count - 1], diag));
    TL_TRY(tl_set_scope(s, result->name, "register", diag));
    block = tl_schedule_get_block(s, anchor);
    const tl_var *lane = NULL;
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_SPATIAL &&
            tl_access_stride(s->arena, result, block->stores[0].indices, block->iters[i].var) == 1)
            lane = block->iters[i].var;
    TL_TRY(tl_sketch_reduction(s, anchor, outer.count, lane, LARGEST_WINDOW, &reduce, diag));
    TL_TRY(tl_unroll(s, parts[1], diag));
    TL_TRY(tl_vectorize(s, split[1], diag));
    if (split[0].id != 0 && width % lanes != 0)
        TL_TRY(tl_loop_partition(s, split[0], diag));
    return TL_OK;
}
