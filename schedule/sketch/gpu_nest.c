/* schedule/sketch/gpu_nest.c: nests in which every thread makes results of its own.
 *
 *     for <results>//T  blockIdx.x                 the loops over results as one, contiguous ones innermost: neighbours
 *       for T  threadIdx.x                         in a warp touch neighbours in memory
 *         acc = init                               a register
 *         for <terms>                              of a reduction
 *           acc op= ...
 *         result = epilogue(acc)                   or four neighbours at once, in one access of 16 bytes
 */
#include "runtime/base/checked.h"
#include "schedule/dependence.h"
#include "schedule/sketch/sketch_private.h"

enum { WIDE = 4, LARGEST_WINDOW = 32 };

int64_t tl_gpu_threads(int64_t iterations)
{
    enum { MOST = 256, WARP = 32 };
    return iterations >= MOST ? MOST : tl_ceildiv(tl_max64(iterations, 1), WARP) * WARP;
}

tl_status tl_gpu_spread(tl_schedule *s, const tl_loop_ref *loops, int count, int64_t threads,
                        int64_t inner, bool blocks, tl_loop_ref parts[3], tl_diag *diag)
{
    tl_loop_ref all = loops[0];
    parts[2] = (tl_loop_ref){ 0 };
    if (count > 1)
        TL_TRY(tl_fuse(s, loops, count, &all, diag));
    TL_TRY(tl_split(s, all, (int64_t[]){ 0, threads, inner }, inner > 1 ? 3 : 2, parts, diag));
    TL_TRY(tl_bind_loop(s, parts[1], "threadIdx.x", diag));
    return blocks ? tl_bind_loop(s, parts[0], "blockIdx.x", diag) : TL_OK;
}

static bool is_spatial_loop(const tl_schedule *s, const tl_block *block, tl_loop_ref loop)
{
    const tl_iter *iter;
    return tl_loop_drives(block, tl_schedule_get_loop(s, loop)->u.loop.var, &iter) ==
           TL_DRIVES_SPATIAL;
}

/* The loops over results, the contiguous one last, then the others as they stand. */
static tl_status order_loops(tl_schedule *s, tl_block_ref ref, tl_loop_list *spatial, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, ref);
    tl_loop_list loops, order = { 0 }, rest = { 0 };
    TL_TRY(tl_sketch_loops(s, ref, 0, &loops, diag));
    const tl_var *line = tl_contiguous_iter(s->arena, block);
    const tl_iter *last_iter = tl_sketch_iter_of(block, line);
    const tl_loop_ref last =
        last_iter != NULL ? tl_sketch_loop_of(s, last_iter, &loops) : (tl_loop_ref){ 0 };
    for (int i = 0; i < loops.count; i++)
        if (!is_spatial_loop(s, block, loops.loops[i]))
            tl_loop_push(&rest, loops.loops[i]);
        else if (!tl_same_loop(loops.loops[i], last))
            tl_loop_push(&order, loops.loops[i]);
    tl_loop_push(&order, last);
    *spatial = order;
    if (spatial->count == 0)
        return tl_refuse(diag, "default schedule", block->name, "has no loop over results");
    for (int i = 0; i < rest.count; i++)
        tl_loop_push(&order, rest.loops[i]);
    return order.count > 1 ? tl_reorder(s, order.loops, order.count, diag) : TL_OK;
}

bool tl_gpu_is_wide(tl_schedule *s, const tl_block *block, int64_t wide)
{
    const tl_expr *loads[16];
    const tl_var *line = tl_contiguous_iter(s->arena, block);
    int64_t extent;
    if (line == NULL || block->store_count != 1 || block->predicate != NULL ||
        block->call != NULL || !tl_block_is_spatial(block) ||
        tl_dtype_size(block->stores[0].buffer->dtype) != 4)
        return false;
    if (!tl_const_int(tl_sketch_iter_of(block, line)->extent, &extent) || extent % wide != 0)
        return false;
    int count = tl_collect_loads(block->stores[0].value, loads, 16);
    for (int l = 0; l < count; l++)
        if (!tl_sketch_reads_lines(s, loads[l], line) ||
            tl_dtype_size(loads[l]->u.buffer->dtype) != 4)
            return false;
    return count < 16;
}

static int64_t iterations_of(const tl_schedule *s, const tl_loop_list *loops)
{
    int64_t all = 1;
    for (int i = 0; i < loops->count; i++)
        if (tl_mul_overflows(all, tl_sketch_extent(s, loops->loops[i]), &all))
            return INT64_MAX;
    return all;
}

tl_status tl_gpu_nest(tl_schedule *s, tl_block_ref ref, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, ref);
    tl_loop_list spatial;
    tl_loop_ref parts[3];
    if (block->call != NULL)
        return tl_refuse(diag, "default schedule", block->name, "is a call");
    TL_TRY(order_loops(s, ref, &spatial, diag));
    const int64_t options[2] = { 1, WIDE };
    int64_t inner =
        tl_gpu_is_wide(s, block, WIDE) ? tl_decide(s, block->name, "vectors", options, 2, WIDE) : 1;
    int64_t threads = tl_gpu_threads(iterations_of(s, &spatial) / inner);
    TL_TRY(tl_gpu_spread(s, spatial.loops, spatial.count, threads, inner, true, parts, diag));
    return inner > 1 ? tl_vectorize(s, parts[2], diag) : TL_OK;
}

/* The window written out, when it is small. */
static tl_status unroll_terms(tl_schedule *s, tl_block_ref anchor, int depth, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, anchor);
    tl_loop_list own;
    int64_t terms = 1;
    TL_TRY(tl_sketch_loops(s, anchor, depth, &own, diag));
    for (int i = own.count - 1; i >= 0; i--) {
        if (tl_schedule_get_loop(s, own.loops[i])->u.loop.extent->kind != TL_EXPR_INT)
            break;
        terms *= tl_sketch_extent(s, own.loops[i]);
        if (terms > LARGEST_WINDOW && tl_sketch_drives_reduce(s, block, own.loops[i]))
            break;
        TL_TRY(tl_unroll(s, own.loops[i], diag));
    }
    return TL_OK;
}

tl_status tl_gpu_reduction(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_diag *diag)
{
    const tl_buffer *result = tl_schedule_get_block(s, anchor)->stores[0].buffer;
    tl_loop_list spatial, own;
    tl_loop_ref parts[3];
    TL_TRY(order_loops(s, out, &spatial, diag));
    int64_t threads = tl_gpu_threads(iterations_of(s, &spatial));
    tl_loop_ref all = spatial.loops[0];
    if (spatial.count > 1)
        TL_TRY(tl_fuse(s, spatial.loops, spatial.count, &all, diag));
    TL_TRY(tl_split(s, all, (int64_t[]){ 0, threads }, 2, parts, diag));
    TL_TRY(tl_compute_at(s, anchor, parts[1], diag));
    TL_TRY(tl_set_scope(s, result->name, "register", diag));
    TL_TRY(tl_bind_loop(s, parts[1], "threadIdx.x", diag));
    TL_TRY(tl_sketch_loops(s, anchor, 2, &own, diag));
    const tl_block *block = tl_schedule_get_block(s, anchor);
    for (int i = 0; i < own.count; i++)
        if (tl_sketch_drives_reduce(s, block, own.loops[i])) {
            TL_TRY(tl_decompose_reduction(s, anchor, own.loops[i], &(tl_block_ref){ 0 }, diag));
            break;
        }
    TL_TRY(unroll_terms(s, anchor, 2, diag));
    return tl_bind_loop(s, parts[0], "blockIdx.x", diag);
}
