/* schedule/sketch/gpu_turn_ahead.c: an operand that lies across, turned as a whole in a launch in front of its contraction.
 *
 *     for <tiles of 4 by 4>  blockIdx.x
 *       for <tiles>  threadIdx.x                           a warp: 8 along the source's rows, 4 across them
 *         alloc held: 4 by 4 registers
 *           for 4 across                                   written out
 *             held = source                                4 neighbours in an access of 16 bytes
 *           for 4 along                                    written out
 *             turned = held                                the same the other way round
 *
 * Eight threads, which a multiprocessor serves at once, read 32 bytes of each of four rows and write 64 of two: memory's sectors
 * of 32 bytes are moved whole, both ways. What is turned lies in scratch, in global memory; what follows sees an operand by
 * rows, of which boxes can be copied. */
#include "schedule/sketch/gpu_private.h"

enum {
    SIDE = 4, /* words of a tile */
    ALONG = 8,
    ACROSS = 4,
    MOST_THREADS = 256,
    LEAST_THREADS = 64,
    MEMORY_BYTES = 16,    /* a cycle and multiprocessor, of an H100 or H200 14 to 19 */
    LAUNCH_CYCLES = 5000, /* one more, of some microseconds */
};

/* Tiles of a block: of a warp, and how many times as many. */
typedef struct {
    int64_t along, across, more_along, more_across;
} shares;

/* The largest divisor that is no more than `most`. */
static int64_t part_of(int64_t tiles, int64_t most)
{
    int64_t part = tl_max64(tl_min64(tiles, most), 1);
    while (tiles % part != 0)
        part--;
    return part;
}

static shares share_out(int64_t along, int64_t across)
{
    shares n = { part_of(along, ALONG), part_of(across, ACROSS), 1, 1 };
    n.more_across = part_of(across / n.across, MOST_THREADS / (n.along * n.across));
    n.more_along = part_of(along / n.along, MOST_THREADS / (n.along * n.across * n.more_across));
    return n;
}

bool tl_gpu_can_turn_ahead(const tl_buffer *buffer, int row, int last)
{
    int64_t extent, rows = 0, lasts = 0;
    if (buffer->role == TL_ROLE_LOCAL || tl_dtype_size(buffer->dtype) != SIDE ||
        row != buffer->rank - 1 || last < 0 || row == last)
        return false;
    for (int a = 0; a < buffer->rank; a++)
        if (!tl_const_int(buffer->shape[a], &extent))
            return false;
    tl_const_int(buffer->shape[row], &rows);
    tl_const_int(buffer->shape[last], &lasts);
    if (rows % SIDE != 0 || lasts % SIDE != 0)
        return false;
    shares n = share_out(rows / SIDE, lasts / SIDE);
    return n.along * n.across * n.more_along * n.more_across >= LEAST_THREADS;
}

double tl_gpu_cycles_ahead(const tl_target *target, const tl_buffer *buffer)
{
    double bytes = 2 * (double)tl_buffer_max_bytes(buffer);
    return bytes / (MEMORY_BYTES * (double)tl_max64(target->cores, 1)) + LAUNCH_CYCLES;
}

/* Shares out tiles of the source's rows and across them among blocks and threads. *along, *across: inside of a tile. */
static tl_status share_tiles(tl_schedule *s, tl_block_ref copy, tl_loop_ref *block,
                             tl_loop_ref *thread, tl_loop_ref *along, tl_loop_ref *across,
                             tl_diag *diag)
{
    tl_loop_list order;
    tl_loop_ref row, last, rows[4], lasts[4];
    TL_TRY(tl_gpu_find_rows(s, copy, 0, &order, &row, &last, diag));
    shares n = share_out(tl_sketch_extent(s, row) / SIDE, tl_sketch_extent(s, last) / SIDE);
    TL_TRY(tl_split(s, row, (int64_t[]){ 0, n.more_along, n.along, SIDE }, 4, rows, diag));
    TL_TRY(tl_split(s, last, (int64_t[]){ 0, n.more_across, n.across, SIDE }, 4, lasts, diag));
    tl_loop_push(&order, rows[0]);
    tl_loop_push(&order, lasts[0]);
    const int blocks = order.count;
    const tl_loop_ref threads[] = { rows[1], lasts[1], rows[2], lasts[2] };
    for (int i = 0; i < 4; i++)
        tl_loop_push(&order, threads[i]);
    tl_loop_push(&order, rows[3]);
    tl_loop_push(&order, lasts[3]);
    TL_TRY(tl_reorder(s, order.loops, order.count, diag));
    TL_TRY(tl_fuse(s, order.loops, blocks, block, diag));
    TL_TRY(tl_fuse(s, threads, 4, thread, diag));
    *along = rows[3];
    *across = lasts[3];
    return TL_OK;
}

tl_status tl_gpu_turn_ahead(tl_schedule *s, tl_block_ref anchor, const tl_expr *load, int row,
                            int last, tl_diag *diag)
{
    tl_block_ref held, copy;
    tl_loop_ref block, thread, along, across;
    TL_TRY(tl_cache_read(s, anchor, load->u.buffer->name, "global", &held, diag));
    const char *turned = tl_schedule_get_block(s, held)->stores[0].buffer->name;
    TL_TRY(tl_gpu_arrange(s, turned, (int[]){ row, last }, 2, 1, diag));
    TL_TRY(tl_cache_write(s, held, "register", &copy, diag));
    TL_TRY(share_tiles(s, copy, &block, &thread, &along, &across, diag));
    TL_TRY(tl_compute_at(s, held, thread, diag));
    TL_TRY(tl_gpu_load_tile(s, held, 2, diag));
    TL_TRY(tl_unroll(s, along, diag));
    TL_TRY(tl_vectorize(s, across, diag));
    TL_TRY(tl_bind_loop(s, thread, "threadIdx.x", diag));
    return tl_bind_loop(s, block, "blockIdx.x", diag);
}
