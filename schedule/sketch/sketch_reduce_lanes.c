/* schedule/sketch/sketch_reduce_lanes.c: sums of products whose lanes would gather along the result, while terms lie side by
 * side: partial sums in lanes.
 *
 *     acc[ow, ci] = sum over kw, rl of x[ci//2, ow + kw, rl]*w[ci, kw, rl]      two results a group of 32 channels
 *
 *     for ow, tiles of ci                              parallel
 *       part[ci][16 lanes] = 0                         registers
 *       for kw                                         rolled
 *         part[ci][rl] += x[.., rl]*w[.., rl]          vectorized
 *     acc[ow, ci] = sum over rl of part[ow, ci, rl]
 *
 * By rfactor over the terms; the partial sums are a window then (sketch_window.c). Joining the lanes takes as long as some ten
 * steps; where no other rule takes the sum, its lanes would gather each product, which takes longer still. */
#include "schedule/sketch/sketch_private.h"

enum { LEAST_STEPS = 4, MOST_VECTORS = 4 };

/* The reduce iter whose steps become lanes: whole vectors of terms, side by side in every factor, or in one once it is packed.
 * NULL: there is none. */
static const tl_iter *find_terms(tl_schedule *s, const tl_block *block)
{
    const tl_expr *loads[8];
    int count = tl_collect_loads(block->stores[0].value, loads, 8);
    int64_t lanes = tl_target_lanes(s->target, block->stores[0].buffer->dtype);
    for (int i = block->iter_count - 1; i >= 0; i--) {
        const tl_iter *iter = &block->iters[i];
        int64_t extent = tl_max_extent(iter->extent);
        bool fits = iter->kind == TL_ITER_REDUCE && extent % lanes == 0 &&
                    extent <= MOST_VECTORS * lanes &&
                    tl_sketch_points(block, TL_ITER_REDUCE) / extent >= LEAST_STEPS;
        for (int l = 0; l < count && fits; l++)
            fits = tl_expr_uses_var(loads[l], iter->var) &&
                   (tl_sketch_reads_lines(s, loads[l], iter->var) ||
                    tl_sketch_can_pack_lanes(s, loads[l], iter->var));
        if (fits && count > 1)
            return iter;
    }
    return NULL;
}

bool tl_sketch_sums_terms(tl_schedule *s, const tl_block *block)
{
    return tl_block_is_reduction(block) && block->combiner == TL_COMBINER_SUM &&
           block->store_count == 1 && block->predicate == NULL && !tl_keeps_order(s, block) &&
           block->stores[0].value->kind == TL_EXPR_MUL && find_terms(s, block) != NULL;
}

/* (x0, x1, x2) -> (x1, x2, x0) */
static const char *first_last(tl_arena *arena, int rank)
{
    const char *from = "x0", *to = "";
    for (int a = 1; a < rank; a++) {
        from = tl_arena_format(arena, "%s, x%d", from, a);
        to = tl_arena_format(arena, "%sx%d, ", to, a);
    }
    return tl_arena_format(arena, "(%s) -> (%sx0)", from, to);
}

/* The loop over terms, the first around the block, becomes the last; that over rows, number `rows` (0: none), the one before
 * it. */
static tl_status put_terms_last(tl_schedule *s, tl_block_ref block, int rows, tl_diag *diag)
{
    tl_loop_list loops, order = { 0 };
    TL_TRY(tl_sketch_loops(s, block, 0, &loops, diag));
    for (int i = 1; i < loops.count; i++)
        if (i != rows)
            tl_loop_push(&order, loops.loops[i]);
    if (rows > 0 && rows < loops.count)
        tl_loop_push(&order, loops.loops[rows]);
    tl_loop_push(&order, loops.loops[0]);
    return tl_reorder(s, order.loops, order.count, diag);
}

/* Which spatial iter of the partial sums makes rows: the last that moves no weight, so that a vector of weights serves all rows
 * of a tile. 0: none does. */
static int find_rows(const tl_block *part)
{
    const tl_expr *loads[8];
    int count = tl_collect_loads(part->stores[0].value, loads, 8), rows = 0;
    for (int i = 1; i < part->iter_count && part->iters[i].kind == TL_ITER_SPATIAL; i++)
        for (int l = 0; l < count; l++)
            if (tl_max_extent(part->iters[i].extent) > 1 &&
                loads[l]->u.buffer != part->stores[0].buffer &&
                tl_sketch_is_constant(loads[l]->u.buffer) &&
                !tl_expr_uses_var(loads[l], part->iters[i].var))
                rows = i;
    return rows;
}

tl_status tl_sketch_reduce_lanes(tl_schedule *s, tl_block_ref sum, tl_map *done, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, sum);
    tl_loop_list own;
    TL_TRY(tl_sketch_loops(s, sum, 0, &own, diag));
    tl_loop_ref terms = tl_sketch_loop_of(s, find_terms(s, block), &own);
    if (terms.id == 0 || tl_sketch_shared_loops(s, sum) > 0)
        return tl_refuse(diag, "default schedule", block->name, "has no loop over terms");
    if (!tl_decide_range(s, block->name, "terms", 0, 1, 1))
        return tl_refuse(diag, "default schedule", block->name, "has no lanes by decision");
    tl_block_ref part, copy;
    TL_TRY(tl_sketch_factor(s, sum, &own, terms, terms, (tl_loop_ref){ 0 }, &part, diag));
    TL_TRY(put_terms_last(s, sum, 0, diag));
    const tl_buffer *buffer = tl_schedule_get_block(s, part)->stores[0].buffer;
    TL_TRY(tl_transform_layout(s, buffer->name, first_last(s->arena, buffer->rank), diag));
    TL_TRY(tl_cache_write(s, part, "register", &copy, diag));
    TL_TRY(put_terms_last(s, copy, find_rows(tl_schedule_get_block(s, part)), diag));
    tl_map_put(done, tl_schedule_get_block(s, part)->name, s);
    tl_map_put(done, tl_schedule_get_block(s, copy)->name, s);
    return tl_sketch_window(s, part, copy, diag);
}
