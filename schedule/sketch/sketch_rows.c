/* schedule/sketch/sketch_rows.c: the default schedule of row-wise chains: softmax, layer normalisation.
 *
 *     for <row>                                   parallel later
 *       max[] = max(x[row, :])                    vectorized over the row
 *       e[:] = exp(x[row, :] - max[])
 *       sum[] = sum(e[:])
 *       y[row, :] = e[:] / sum[]
 *
 * Every stage that feeds the result moves under the loop just outside the result's innermost one, so that a row
 * stays in L1 between stages. Where rows are short several go together:
 *
 *     for <R rows>                                parallel later
 *       for row in R
 *         max[row] = max(x[row, :])
 *       for row in R
 *         e[row, :] = exp(x[row, :] - max[row])
 *       ...
 *
 * A sum is a chain: its additions, then its lanes, then what waits for it. A core that looks ahead by some hundred operations
 * has several rows of one stage under way, but not several rows of all stages. */
#include "runtime/base/checked.h"
#include "schedule/sketch/sketch_private.h"

enum { LEAST_ROWS = 8, MOST_ROWS = 16, BLOCKS_PER_CORE = 4 };

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

/* How many rows go together: what all stages keep of them stays in half of L1, and all cores get some. */
static int64_t choose_rows(tl_schedule *s, const tl_loop_list *loops, int depth, int stages)
{
    const tl_target *target = s->target;
    int64_t row = 1, rows = tl_sketch_extent(s, loops->loops[depth - 1]), all = 1, best = 1;
    for (int i = 0; i < loops->count; i++) {
        int64_t *product = i < depth ? &all : &row;
        if (tl_mul_overflows(*product, tl_sketch_extent(s, loops->loops[i]), product))
            return 1;
    }
    if (row == 0) /* of an axis without elements: nothing is kept */
        return 1;
    int64_t bytes = row * (int64_t)sizeof(float) * (stages + 2);
    for (int64_t r = 2; r <= MOST_ROWS && r <= rows; r++)
        if (r <= target->l1_bytes / 2 / bytes &&
            (rows % r == 0 || best == 1 || best < LEAST_ROWS) &&
            (target->cores == 1 || all / r >= BLOCKS_PER_CORE * target->cores))
            best = r;
    return best;
}

/* How many blocks that nobody scheduled make what `out` reads. */
static int count_feeding(tl_schedule *s, tl_block_ref out, const tl_map *done)
{
    const tl_block **blocks, *block = tl_schedule_get_block(s, out);
    int count = tl_sketch_blocks(s, &blocks), feeding = 0;
    for (int i = 0; i < count; i++)
        feeding += blocks[i] != block && blocks[i]->call == NULL &&
                   !tl_map_has(done, blocks[i]->name) && feeds(blocks[i], &block, 1);
    return feeding;
}

/* Cuts the loop over rows in blocks of some. */
static tl_status block_rows(tl_schedule *s, tl_block_ref out, const tl_loop_list *loops, int depth,
                            tl_loop_ref *row, tl_diag *diag)
{
    const char *name = tl_schedule_get_block(s, out)->name;
    int64_t options[MOST_ROWS], extent = tl_sketch_extent(s, *row);
    tl_loop_ref parts[2];
    int count = 0;
    for (int64_t r = 1; r <= MOST_ROWS && r <= extent; r++)
        options[count++] = r;
    int64_t rows = tl_decide(s, name, "rows", options, count, choose_rows(s, loops, depth, 2));
    if (rows == 1)
        return TL_OK;
    TL_TRY(tl_split(s, *row, (int64_t[]){ 0, rows }, 2, parts, diag));
    *row = parts[0];
    return TL_OK;
}

tl_status tl_sketch_rows(tl_schedule *s, tl_block_ref out, tl_map *done, tl_diag *diag)
{
    tl_loop_list loops;
    TL_TRY(tl_sketch_loops(s, out, 0, &loops, diag));
    int depth = row_depth(s, out, &loops);
    if (depth < 1)
        return tl_sketch_nest(s, out, 0, diag);
    tl_loop_ref row = loops.loops[depth - 1];
    if (count_feeding(s, out, done) > 0)
        TL_TRY(block_rows(s, out, &loops, depth, &row, diag));

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
