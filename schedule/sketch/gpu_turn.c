/* schedule/sketch/gpu_turn.c: a slice of an operand that lies across, turned by threads on its way to shared memory.
 *
 *     for <tiles of 4 by 4>  threadIdx.y, threadIdx.x      a warp: 8 along the source's rows, 4 across them
 *       alloc held: 4 by 4 registers
 *         for 4 across                                     written out
 *           held = source                                  4 neighbours in an access of 16 bytes: a warp's are whole lines
 *         for 4 along                                      written out
 *           slice = held                                   the same the other way round
 *
 * In rows of 128 swizzled bytes the eight threads that store at once are in eight pieces, and so in all banks. */
#include "schedule/sketch/gpu_private.h"

enum {
    SIDE = 4, /* words of a tile */
    ALONG = 8,
    ACROSS = 4,
};

bool tl_gpu_can_turn(int64_t rows, int64_t lines, int64_t depth, int64_t size, int64_t threads)
{
    int64_t across = tl_min64(depth / SIDE, ACROSS);
    return size == SIDE && rows % (ALONG * SIDE) == 0 && depth % SIDE == 0 &&
           depth / SIDE % across == 0 && lines * (rows / SIDE) * (depth / SIDE) % threads == 0;
}

tl_status tl_gpu_take_turned(tl_schedule *s, tl_gpu_slice *slice, tl_block_ref *held, tl_diag *diag)
{
    *held = slice->copy;
    return tl_cache_write(s, *held, "register", &slice->copy, diag);
}

tl_loop_ref tl_gpu_loop_of_axis(tl_schedule *s, const tl_block *block, int axis,
                                const tl_loop_list *own)
{
    const tl_expr *index = block->stores[0].indices[axis];
    for (int i = 0; i < block->iter_count; i++)
        if (tl_expr_uses_var(index, block->iters[i].var))
            return tl_sketch_loop_of(s, &block->iters[i], own);
    return (tl_loop_ref){ 0 };
}

tl_status tl_gpu_find_rows(tl_schedule *s, tl_block_ref ref, int inside, tl_loop_list *others,
                           tl_loop_ref *row, tl_loop_ref *last, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, ref);
    const int rank = block->stores[0].buffer->rank;
    tl_loop_list own;
    TL_TRY(tl_sketch_loops(s, ref, inside, &own, diag));
    *row = tl_gpu_loop_of_axis(s, block, rank - 2, &own);
    *last = tl_gpu_loop_of_axis(s, block, rank - 1, &own);
    if (row->id == 0 || last->id == 0)
        return tl_refuse(diag, "default schedule", block->name, "copies no rows");
    *others = (tl_loop_list){ 0 };
    for (int i = 0; i < own.count; i++)
        if (!tl_same_loop(own.loops[i], *row) && !tl_same_loop(own.loops[i], *last))
            tl_loop_push(others, own.loops[i]);
    return TL_OK;
}

tl_status tl_gpu_load_tile(tl_schedule *s, tl_block_ref held, int inside, tl_diag *diag)
{
    tl_loop_list order;
    tl_loop_ref along, across;
    TL_TRY(tl_gpu_find_rows(s, held, inside, &order, &along, &across, diag));
    tl_loop_push(&order, across);
    tl_loop_push(&order, along);
    TL_TRY(tl_reorder(s, order.loops, order.count, diag));
    for (int i = 0; i < order.count - 1; i++)
        TL_TRY(tl_unroll(s, order.loops[i], diag));
    return tl_vectorize(s, along, diag);
}

tl_status tl_gpu_turn_slice(tl_schedule *s, tl_block_ref copy, tl_block_ref held, int inside,
                            int64_t groups, int64_t threads, tl_diag *diag)
{
    tl_loop_list order;
    tl_loop_ref row, last, along[3], across[3], parts[3], all;
    TL_TRY(tl_gpu_find_rows(s, copy, inside, &order, &row, &last, diag));
    int64_t pieces = tl_sketch_extent(s, last) / SIDE;
    TL_TRY(tl_split(s, row, (int64_t[]){ 0, ALONG, SIDE }, 3, along, diag));
    TL_TRY(tl_split(s, last, (int64_t[]){ 0, tl_min64(pieces, ACROSS), SIDE }, 3, across, diag));
    for (int i = 0; i < 2; i++) {
        tl_loop_push(&order, along[i]);
        tl_loop_push(&order, across[i]);
    }
    int tiles = order.count;
    tl_loop_push(&order, along[2]);
    tl_loop_push(&order, across[2]);
    TL_TRY(tl_reorder(s, order.loops, order.count, diag));
    TL_TRY(tl_fuse(s, order.loops, tiles, &all, diag));
    TL_TRY(tl_split(s, all, (int64_t[]){ 0, groups, threads }, 3, parts, diag));
    TL_TRY(tl_compute_at(s, held, parts[2], diag));
    TL_TRY(tl_gpu_load_tile(s, held, inside + 3, diag));
    TL_TRY(tl_unroll(s, along[2], diag));
    TL_TRY(tl_vectorize(s, across[2], diag));
    TL_TRY(tl_bind_loop(s, parts[2], "threadIdx.x", diag));
    TL_TRY(tl_bind_loop(s, parts[1], "threadIdx.y", diag));
    return tl_unroll(s, parts[0], diag);
}
