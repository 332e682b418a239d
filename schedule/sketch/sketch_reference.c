/* schedule/sketch/sketch_reference.c: the schedule of what candidates are compared with: the naive program in an order
 * in which its sums do not wait for themselves.
 *
 *     naive:  for <results>              a sum's addition waits for the one before,
 *               for <terms>              and what is read may lie far apart
 *                 acc += ...
 *
 *     here:   for <other results>         on all threads
 *               for <terms>
 *                 copy[lanes] = ...      what the lanes would have to gather, once for all rows
 *                 for <rows>             unrolled; along which as little as possible moves with the lanes
 *                   acc[lanes] += ...
 *
 * Every element is made of the same terms in the same order. Nothing is packed or summed in pieces: little can go wrong.
 * (Measured: a 3x3 convolution of 256 channels, 56 by 56, in 0.22 s, naive in 2.5.) */
#include "schedule/sketch/sketch_private.h"

enum {
    LEAST_ROWS = 4, /* an addition is done before the same lanes are added to again */
    MOST_ROWS = 8   /* their sums stay in registers while the terms go by */
};

/* The block's loops and what becomes of them. */
typedef struct {
    const tl_block *block;
    const tl_var *lane, *row; /* its iters; row NULL: all others are too short */
    const tl_expr *loads[16];
    int load_count;
    tl_loop_list loops;
    tl_loop_ref lanes, rows, innermost; /* innermost: of the terms */
} nest;

/* Loads that move with the lanes and the iter: they are read anew for each row. */
static int count_moving(const nest *n, const tl_var *row)
{
    int moving = 0;
    for (int i = 0; i < n->load_count; i++)
        moving += tl_expr_uses_var(n->loads[i], n->lane) && tl_expr_uses_var(n->loads[i], row);
    return moving;
}

/* The rows: the longest (and innermost) loop of those along which the fewest loads have to be read again. */
static void find_rows(tl_schedule *s, nest *n)
{
    int fewest = 0;
    for (int i = 0; i < n->block->iter_count; i++) {
        const tl_iter *iter = &n->block->iters[i];
        tl_loop_ref loop = tl_sketch_loop_of(s, iter, &n->loops);
        int moving = count_moving(n, iter->var);
        if (iter->kind != TL_ITER_SPATIAL || iter->var == n->lane || loop.id == 0 ||
            tl_sketch_extent(s, loop) < LEAST_ROWS)
            continue;
        if (n->row == NULL || moving < fewest ||
            (moving == fewest && tl_sketch_extent(s, loop) >= tl_sketch_extent(s, n->rows))) {
            n->row = iter->var;
            n->rows = loop;
            fewest = moving;
        }
    }
}

static tl_status find_nest(tl_schedule *s, tl_block_ref ref, nest *n, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, ref);
    *n = (nest){ .block = block, .lane = tl_contiguous_iter(s->arena, block) };
    n->load_count = tl_collect_loads(block->stores[0].value, n->loads, 16);
    TL_TRY(tl_sketch_loops(s, ref, 0, &n->loops, diag));
    if (n->lane != NULL)
        n->lanes = tl_sketch_loop_of(s, tl_sketch_iter_of(block, n->lane), &n->loops);
    if (n->lanes.id == 0 || n->loops.count + 2 > TL_MAX_LOOPS)
        return tl_refuse(diag, "reference schedule", block->name, "has no loop of lanes");
    find_rows(s, n);
    return TL_OK;
}

/* Pieces of the rows, of as many as divide them, else MOST_ROWS: the rows of one piece are n->rows from here on. */
static tl_status cut_rows(tl_schedule *s, nest *n, tl_loop_ref *pieces, tl_diag *diag)
{
    int64_t rows = tl_sketch_extent(s, n->rows), piece = MOST_ROWS;
    while (piece > LEAST_ROWS && rows % piece != 0)
        piece--;
    tl_loop_ref parts[2];
    TL_TRY(tl_split(s, n->rows, (int64_t[]){ 0, rows % piece == 0 ? piece : MOST_ROWS }, 2, parts,
                    diag));
    for (int i = 0; i < n->loops.count; i++)
        if (tl_same_loop(n->loops.loops[i], n->rows))
            n->loops.loops[i] = parts[1];
    *pieces = parts[0];
    n->rows = parts[1];
    return TL_OK;
}

/* The order above. Without rows the vectors of a row stand in for them, unless each would gather from all over the memory. */
static tl_status reorder(tl_schedule *s, nest *n, tl_diag *diag)
{
    int width = tl_target_lanes(s->target, n->block->stores[0].buffer->dtype);
    bool vectors_are_rows = n->row == NULL;
    for (int i = 0; i < n->load_count; i++)
        vectors_are_rows &= tl_sketch_reads_lines(s, n->loads[i], n->lane);
    tl_loop_ref vectors[2] = { { 0 }, n->lanes }, pieces = { 0 };
    if (tl_sketch_extent(s, n->lanes) > width)
        TL_TRY(tl_split(s, n->lanes, (int64_t[]){ 0, width }, 2, vectors, diag));
    if (n->row != NULL && tl_sketch_extent(s, n->rows) > MOST_ROWS)
        TL_TRY(cut_rows(s, n, &pieces, diag));

    tl_loop_list order = { 0 };
    for (int is_term = 0; is_term < 2; is_term++) {
        for (int i = 0; i < n->loops.count; i++) {
            tl_loop_ref loop = n->loops.loops[i];
            if (tl_same_loop(loop, n->lanes) || tl_same_loop(loop, n->rows) ||
                tl_sketch_drives_reduce(s, n->block, loop) != is_term)
                continue;
            tl_loop_push(&order, loop);
            if (is_term)
                n->innermost = loop;
        }
        if (!is_term)
            tl_loop_push(&order, pieces);
        if (vectors_are_rows == is_term)
            tl_loop_push(&order, vectors[0]);
    }
    tl_loop_push(&order, n->rows);
    tl_loop_push(&order, vectors[1]);
    TL_TRY(tl_reorder(s, order.loops, order.count, diag));
    if (pieces.id != 0)
        TL_TRY(tl_unroll(s, n->rows, diag));
    return tl_vectorize(s, vectors[1], diag);
}

static tl_status schedule_sum(tl_schedule *s, tl_block_ref ref, tl_diag *diag)
{
    nest n;
    TL_TRY(find_nest(s, ref, &n, diag));
    TL_TRY(reorder(s, &n, diag));
    for (int i = 0; i < n.load_count && n.row != NULL; i++) {
        tl_block_ref copy;
        if (tl_sketch_reads_lines(s, n.loads[i], n.lane) || tl_expr_uses_var(n.loads[i], n.row))
            continue;
        TL_TRY(tl_cache_read(s, ref, n.loads[i]->u.buffer->name, "global", &copy, diag));
        TL_TRY(tl_compute_at(s, copy, n.innermost, diag));
    }
    return TL_OK;
}

tl_status tl_schedule_reference(tl_schedule *s, int64_t least_terms, tl_diag *diag)
{
    const tl_block **blocks;
    int count = tl_sketch_blocks(s, &blocks), scheduled = 0;
    for (int i = 0; i < count; i++) {
        tl_block_ref ref = tl_schedule_name_block(s, blocks[i]->name);
        if (!tl_block_is_reduction(blocks[i]) || blocks[i]->store_count != 1 ||
            tl_block_instances(blocks[i]) < least_terms || tl_sketch_shared_loops(s, ref) > 0)
            continue;
        tl_schedule_state before = tl_schedule_save(s);
        tl_diag why = { 0 };
        tl_status status = schedule_sum(s, ref, &why);
        TL_TRY(tl_sketch_tried(s, &before, status, &why, diag)); /* or it runs as it was written */
        scheduled += status == TL_OK;
    }
    return scheduled > 0 ? tl_sketch_parallel(s, s->target->cores, diag) : TL_OK;
}
