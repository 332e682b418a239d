/* schedule/sketch/sketch_rows.c: the default schedule of row-wise chains: softmax, layer normalisation.
 *
 *     for <row>                                   parallel later
 *       max[] = max(x[row, :])                    vectorized over the row
 *       e[:] = exp(x[row, :] - max[])
 *       sum[] = sum(e[:])
 *       y[row, :] = e[:] / sum[]
 *
 * Every stage that feeds the result moves under the loop just outside the result's innermost one, so that a row
 * stays in L1 between stages. */
#include "schedule/sketch/sketch_private.h"

/* Whether a block of the group reads what the producer writes. */
static bool feeds(const tl_block *producer, const tl_block *const *group, int count)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < producer->store_count; k++)
            if (tl_block_reads_buffer(group[i], producer->stores[k].buffer))
                return true;
    return false;
}

/* How many loops stand around a row of `out`: all but the innermost, or all but those of its sum. */
static int row_depth(tl_schedule *s, tl_block_ref out, const tl_loop_list *loops)
{
    const tl_block *block = tl_schedule_get_block(s, out);
    for (int i = 0; i < loops->count; i++)
        if (tl_sketch_drives_reduce(s, block, loops->loops[i]))
            return i;
    return loops->count - 1;
}

tl_status tl_sketch_rows(tl_schedule *s, tl_block_ref out, tl_map *done, tl_diag *diag)
{
    tl_loop_list loops;
    TL_TRY(tl_sketch_loops(s, out, 0, &loops, diag));
    int depth = row_depth(s, out, &loops);
    if (depth < 1)
        return tl_sketch_nest(s, out, 0, diag);
    tl_loop_ref row = loops.loops[depth - 1];

    const tl_block **blocks;
    int count = tl_sketch_blocks(s, &blocks);
    const tl_block *group[64];
    const char *moved[64];
    int group_count = 0, moved_count = 0;
    const char *out_name = tl_schedule_get_block(s, out)->name;
    for (int i = count - 1; i >= 0; i--) {
        const tl_block *block = blocks[i];
        if (group_count == 64)
            break;
        if (block->name == out_name || tl_schedule_get_block(s, out) == block) {
            group[group_count++] = block;
            continue;
        }
        if (group_count == 0 || tl_map_has(done, block->name) || block->call != NULL ||
            !feeds(block, group, group_count))
            continue;
        if (!tl_decide_range(s, block->name, "in_row", 0, 1, 1))
            continue;
        if (tl_compute_at(s, tl_schedule_name_block(s, block->name), row, NULL) != TL_OK)
            continue; /* it stays a phase of its own */
        group[group_count++] = block;
        moved[moved_count++] = block->name;
    }

    tl_map *summed = tl_map_create(s->arena);
    for (int i = 0; i < moved_count; i++)
        tl_map_put(done, moved[i], s);
    TL_TRY(tl_sketch_nests(s, moved, moved_count, depth, summed, diag));
    if (tl_map_has(summed, out_name))
        return TL_OK;
    return tl_sketch_nest(s, out, moved_count == 0 ? 0 : depth, diag);
}
