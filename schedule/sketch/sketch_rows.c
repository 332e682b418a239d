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
 * What the rows are made of may lie the other way round (a norm over channels of plain planes): stages that bring a block of rows
 * together turn squares around. Then a block is as many rows as a line of memory has elements, all rows where they are no
 * more, and what is left of them is a nest of its own, without tests in its squares.
 *
 * A sum is a chain: its additions, then its lanes, then what waits for it. A core that looks ahead by some hundred operations
 * has several rows of one stage under way, but not several rows of all stages. */
#include <string.h>
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

/* Whether a stage that makes what `out` reads turns it around. */
static bool reads_turned(tl_schedule *s, tl_block_ref out, const tl_map *done)
{
    const tl_block **blocks, *block = tl_schedule_get_block(s, out);
    int count = tl_sketch_blocks(s, &blocks);
    for (int i = 0; i < count; i++)
        if (blocks[i] != block && blocks[i]->call == NULL && !tl_map_has(done, blocks[i]->name) &&
            blocks[i]->store_count == 1 && blocks[i]->stores[0].value->kind == TL_EXPR_LOAD &&
            feeds(blocks[i], &block, 1) && tl_sketch_turns_rows(s, blocks[i]))
            return true;
    return false;
}

/* How many rows whose elements are turned around go together: a line of them, so that no line is read twice, while they and the
 * lines that they come from stay in half of L2. Lines lie a column apart and share few sets of L1: it keeps none of them for
 * another block, however few rows a block has. */
static int64_t choose_turned_rows(tl_schedule *s, const tl_loop_list *loops, int depth)
{
    int64_t bytes = 2 * (int64_t)sizeof(float), rows = TL_LINE_BYTES / (int64_t)sizeof(float);
    for (int i = depth; i < loops->count; i++)
        if (tl_mul_overflows(bytes, tl_sketch_extent(s, loops->loops[i]), &bytes))
            return 1;
    while (rows > 1 && bytes > s->target->l2_bytes / 2 / rows)
        rows /= 2;
    return tl_min64(rows, tl_sketch_extent(s, loops->loops[depth - 1]));
}

/* Cuts the loop over rows in blocks of some. Of rows that are turned around, what is left has to be a nest of its own
 * (`has_tail`), which needs a loop around both. */
static tl_status block_rows(tl_schedule *s, tl_block_ref out, const tl_loop_list *loops, int depth,
                            bool is_turned, tl_loop_ref *row, bool *has_tail, tl_diag *diag)
{
    const char *name = tl_schedule_get_block(s, out)->name;
    int64_t options[MOST_ROWS], extent = tl_sketch_extent(s, *row);
    tl_loop_ref parts[2];
    int count = 0;
    for (int64_t r = 1; r <= MOST_ROWS && r <= extent; r++)
        options[count++] = r;
    int64_t rows = tl_decide(s, name, "rows", options, count,
                             is_turned ? choose_turned_rows(s, loops, depth)
                                       : choose_rows(s, loops, depth, 2));
    if (rows == 1)
        return TL_OK;
    TL_TRY(tl_split(s, *row, (int64_t[]){ 0, rows }, 2, parts, diag));
    *row = parts[0];
    *has_tail = is_turned && extent % rows != 0;
    return TL_OK;
}

tl_status tl_sketch_cut_tail(tl_schedule *s, tl_loop_ref row, tl_row_stages *tails, tl_diag *diag)
{
    const tl_block **blocks;
    int count = tl_sketch_blocks(s, &blocks);
    tl_map *before = tl_map_create(s->arena);
    for (int i = 0; i < count; i++)
        tl_map_put(before, blocks[i]->name, s);
    TL_TRY(tl_loop_partition(s, row, diag));
    count = tl_sketch_blocks(s, &blocks);
    tails->count = 0;
    for (int i = count - 1; i >= 0 && tails->count < TL_MOST_ROW_STAGES; i--)
        if (!tl_map_has(before, blocks[i]->name))
            tails->names[tails->count++] = blocks[i]->name;
    return TL_OK;
}

void tl_sketch_bring_stages(tl_schedule *s, tl_block_ref out, const char *own, tl_loop_ref row,
                            const tl_map *done, tl_row_stages *moved)
{
    const tl_block **blocks;
    const tl_block *group[TL_MOST_ROW_STAGES];
    int group_count = 0, count = tl_sketch_blocks(s, &blocks);
    const char *out_name = tl_schedule_get_block(s, out)->name;
    moved->count = 0;
    for (int i = count - 1; i >= 0 && group_count < TL_MOST_ROW_STAGES; i--) {
        const tl_block *block = blocks[i];
        if (block->name == out_name || tl_schedule_get_block(s, out) == block) {
            group[group_count++] = block;
            continue;
        }
        const bool is_others =
            tl_map_has(done, block->name) && (own == NULL || strcmp(block->name, own) != 0);
        if (group_count == 0 || is_others || block->call != NULL ||
            !feeds(block, group, group_count))
            continue;
        if (!tl_decide_range(s, block->name, "in_row", 0, 1, 1))
            continue;
        if (tl_compute_at(s, tl_schedule_name_block(s, block->name), row, NULL) != TL_OK)
            continue; /* it stays a phase of its own */
        group[group_count++] = block;
        moved->names[moved->count++] = block->name;
    }
}

tl_status tl_sketch_rows(tl_schedule *s, tl_block_ref out, tl_map *done, tl_diag *diag)
{
    tl_loop_list loops;
    TL_TRY(tl_sketch_loops(s, out, 0, &loops, diag));
    int depth = row_depth(s, out, &loops);
    if (depth < 1)
        return tl_sketch_nest(s, out, 0, diag);
    tl_schedule_state before = tl_schedule_save(s);
    tl_status status = tl_sketch_turned_rows(s, out, done, NULL);
    if (status != TL_ILLEGAL_SCHEDULE)
        return status;
    tl_schedule_restore(s, &before);
    tl_loop_ref row = loops.loops[depth - 1];
    bool has_tail = false;
    if (count_feeding(s, out, done) > 0)
        TL_TRY(block_rows(s, out, &loops, depth, depth > 1 && reads_turned(s, out, done), &row,
                          &has_tail, diag));
    const char *out_name = tl_schedule_get_block(s, out)->name;
    tl_row_stages moved, tails;
    tl_sketch_bring_stages(s, out, NULL, row, done, &moved);
    tl_map *summed = tl_map_create(s->arena);
    for (int i = 0; i < moved.count; i++)
        tl_map_put(done, moved.names[i], s);
    if (has_tail) {
        TL_TRY(tl_sketch_cut_tail(s, row, &tails, diag));
        TL_TRY(
            tl_sketch_nests(s, tails.names, tails.count, depth - 1, tl_map_create(s->arena), diag));
    }
    TL_TRY(tl_sketch_nests(s, moved.names, moved.count, depth, summed, diag));
    if (tl_map_has(summed, out_name))
        return TL_OK;
    return tl_sketch_nest(s, out, moved.count == 0 ? 0 : depth, diag);
}
