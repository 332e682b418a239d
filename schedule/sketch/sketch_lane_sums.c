/* schedule/sketch/sketch_lane_sums.c: the default schedule of a sum along what lies side by side, which the program has
 * as partial sums in lanes and their sum:
 *
 *     part[L lanes] = 0                          registers
 *     for <terms>
 *       part[L lanes] += x[term*L ...]           vectorized
 *     total = sum(part[L lanes])                 vectorized
 *
 * Where a row of them is too long for registers, or several rows stand in one nest, the partial sums get register rows as a
 * window does (sketch_window.c) and their sum is a nest of its own. */
#include "schedule/sketch/sketch_private.h"

enum { MOST_LANES = 64 }; /* in registers: four of AVX-512, eight of AVX2 */

/* The sum of the lanes: the only reader of what `block` makes, which combines along its last axis. NULL: there is none. */
static const tl_block *find_total(tl_schedule *s, const tl_block *block)
{
    const tl_block **readers;
    const tl_expr *loads[16];
    if (!tl_block_is_reduction(block) || block->combiner != TL_COMBINER_SUM ||
        block->store_count != 1 || block->stores[0].buffer->role != TL_ROLE_LOCAL ||
        block->stores[0].buffer->rank == 0 || tl_contiguous_iter(s->arena, block) == NULL)
        return NULL;
    const tl_buffer *part = block->stores[0].buffer;
    int load_count = tl_collect_loads(block->stores[0].value, loads, 16);
    for (int i = 0; i < load_count; i++)
        if (!tl_sketch_reads_lines(s, loads[i], tl_contiguous_iter(s->arena, block)))
            return NULL; /* lanes would gather */
    if (tl_readers_of(s->arena, s->program->body, part, &readers) != 1)
        return NULL;
    const tl_block *total = readers[0];
    if (!tl_block_is_reduction(total) || total->combiner != TL_COMBINER_SUM ||
        total->store_count != 1 || tl_collect_loads(total->stores[0].value, loads, 2) != 1 ||
        total->stores[0].value != loads[0] || loads[0]->u.buffer != part)
        return NULL;
    for (int i = 0; i < total->iter_count; i++)
        if (total->iters[i].kind == TL_ITER_REDUCE &&
            tl_access_stride(s->arena, part, loads[0]->args, total->iters[i].var) == 1)
            return total;
    return NULL;
}

const char *tl_sketch_lane_total(tl_schedule *s, const tl_block *block)
{
    const tl_block *total = find_total(s, block);
    for (int i = 0; total != NULL && i < total->iter_count; i++)
        if (total->iters[i].kind == TL_ITER_SPATIAL)
            return total->name;
    return NULL;
}

/* The loops of the nest that run more than once. Returns how many; the last of them in `loop`. */
static int count_running(tl_schedule *s, const tl_loop_list *loops, const tl_block *block,
                         bool reduces, tl_loop_ref *loop)
{
    int count = 0;
    for (int i = 0; i < loops->count; i++)
        if (tl_sketch_extent(s, loops->loops[i]) > 1 &&
            tl_sketch_drives_reduce(s, block, loops->loops[i]) == reduces) {
            *loop = loops->loops[i];
            count++;
        }
    return count;
}

/* One row of partial sums, in registers from the first term to their sum. */
static tl_status in_registers(tl_schedule *s, tl_block_ref part, tl_block_ref total, int first,
                              tl_diag *diag)
{
    tl_loop_list loops, total_loops;
    tl_loop_ref lanes = { 0 }, sum = { 0 }, last;
    TL_TRY(tl_sketch_loops(s, part, first, &loops, diag));
    TL_TRY(tl_sketch_loops(s, total, first, &total_loops, diag));
    const tl_block *block = tl_schedule_get_block(s, part);
    const tl_buffer *buffer = block->stores[0].buffer;
    const tl_block *reader = tl_schedule_get_block(s, total);
    if (tl_keeps_order(s, reader))
        return tl_refuse(diag, "default schedule", reader->name, "keeps its order");
    if (count_running(s, &loops, block, false, &lanes) != 1 ||
        count_running(s, &total_loops, reader, true, &sum) != 1 ||
        tl_sketch_extent(s, lanes) != tl_sketch_extent(s, sum) ||
        tl_sketch_extent(s, lanes) > MOST_LANES ||
        tl_sketch_extent(s, lanes) % tl_target_lanes(s->target, buffer->dtype) != 0)
        return tl_refuse(diag, "default schedule", block->name, "is no row of registers");
    TL_TRY(tl_set_scope(s, buffer->name, "register", diag));
    block = tl_schedule_get_block(s, part);
    TL_TRY(tl_sketch_reduction(s, part, first, tl_contiguous_iter(s->arena, block), NULL, 0, &last,
                               diag));
    return tl_vectorize(s, sum, diag);
}

tl_status tl_sketch_sum_in_rows(tl_schedule *s, tl_block_ref sum, int first, tl_diag *diag)
{
    tl_block_ref copy;
    TL_TRY(tl_cache_write(s, sum, "register", &copy, diag));
    return tl_sketch_window_from(s, sum, copy, first, diag);
}

static tl_status schedule_part(tl_schedule *s, tl_block_ref part, const char *total, int first,
                               bool *has_total, tl_diag *diag)
{
    tl_schedule_state before = tl_schedule_save(s);
    tl_status status = in_registers(s, part, tl_schedule_name_block(s, total), first, NULL);
    *has_total = status == TL_OK;
    if (status != TL_ILLEGAL_SCHEDULE)
        return status;
    tl_schedule_restore(s, &before);
    status = tl_sketch_sum_in_rows(s, part, first, NULL);
    if (status != TL_ILLEGAL_SCHEDULE)
        return status;
    tl_schedule_restore(s, &before);
    return tl_sketch_nest(s, part, first, diag);
}

tl_status tl_sketch_nests(tl_schedule *s, const char *const *blocks, int count, int first,
                          tl_map *summed, tl_diag *diag)
{
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < count; i++) {
            tl_block_ref ref = tl_schedule_name_block(s, blocks[i]);
            const tl_block *block = tl_schedule_get_block(s, ref);
            const char *total = tl_sketch_lane_total(s, block);
            if (pass == 0 && total != NULL) {
                bool has_total;
                TL_TRY(schedule_part(s, ref, total, first, &has_total, diag));
                tl_map_put(summed, blocks[i], s);
                if (has_total)
                    tl_map_put(summed, total, s);
            } else if (pass == 1 && !tl_map_has(summed, blocks[i]))
                TL_TRY(tl_sketch_nest(s, ref, first, diag));
        }
    return TL_OK;
}
