/* schedule/sketch/gpu_split.c: a contraction with too few results for all multiprocessors, and long sums: the sum in pieces.
 *
 *     for <pieces>                                         a launch: a contraction with one axis of results more
 *       part[piece, results] = sum(<terms of a piece>)
 *     result = sum(part[:, results])                       a launch: a thread a result, with the stage behind it
 */
#include "schedule/sketch/gpu_private.h"

enum {
    TILE = 64,         /* rows and columns, about */
    LEAST_TERMS = 128, /* of a piece */
    MOST_PIECES = 16,
};

/* Pieces of which the multiprocessors have one each, about. */
static int64_t choose_pieces(const tl_schedule *s, const tl_gpu_product *p, int term)
{
    int64_t tiles = 1, columns = 1, terms = 1, options[MOST_PIECES], best = 1;
    const tl_block *block = p->c.block;
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_REDUCE)
            terms *= p->extents[i];
        else if (i == p->column || i == p->line)
            columns *= p->extents[i];
        else
            tiles *= i == p->row ? tl_ceildiv(p->extents[i], TILE) : p->extents[i];
    tiles *= tl_ceildiv(columns, TILE);
    int count = tl_sketch_divisors(p->extents[term], options, MOST_PIECES);
    for (int o = 0; o < count; o++)
        if (options[o] <= MOST_PIECES && options[o] * tiles <= s->target->cores &&
            terms / options[o] >= LEAST_TERMS)
            best = options[o];
    return best;
}

tl_status tl_gpu_split_sum(tl_schedule *s, tl_block_ref anchor, tl_block_ref *part, tl_diag *diag)
{
    tl_gpu_product p;
    tl_loop_list loops, order = { 0 };
    tl_loop_ref parts[2];
    int term = -1;
    TL_TRY(tl_gpu_find_product(s, tl_schedule_get_block(s, anchor), &p, diag));
    const tl_block *block = p.c.block;
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_REDUCE && (term < 0 || p.extents[i] > p.extents[term]))
            term = i;
    if (term < 0 || tl_keeps_order(s, block))
        return tl_refuse(diag, "default schedule", block->name, "has no sum to cut");
    int64_t pieces =
        tl_decide_range(s, block->name, "pieces", 1, MOST_PIECES, choose_pieces(s, &p, term));
    if (pieces < 2 || p.extents[term] % pieces != 0)
        return tl_refuse(diag, "default schedule", block->name, "has results enough");
    TL_TRY(tl_sketch_loops(s, anchor, 0, &loops, diag));
    tl_loop_ref loop = tl_sketch_loop_of(s, &block->iters[term], &loops);
    if (loop.id == 0)
        return tl_refuse(diag, "default schedule", block->name, "has no loop of terms");
    TL_TRY(tl_split(s, loop, (int64_t[]){ pieces, 0 }, 2, parts, diag));
    block = tl_schedule_get_block(s, anchor);
    /* terms outermost, so that the two sums come to stand behind each other */
    tl_loop_push(&order, parts[0]);
    tl_loop_push(&order, parts[1]);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < loops.count; i++)
            if (!tl_same_loop(loops.loops[i], loop) &&
                tl_sketch_drives_reduce(s, block, loops.loops[i]) == (pass == 0))
                tl_loop_push(&order, loops.loops[i]);
    TL_TRY(tl_reorder(s, order.loops, order.count, diag));
    return tl_rfactor(s, anchor, parts[0], part, diag);
}
