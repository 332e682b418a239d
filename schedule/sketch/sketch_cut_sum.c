/* schedule/sketch/sketch_cut_sum.c: a long sum of products in pieces, inside of its register tile:
 *
 *     total[R][C vectors] = 0                        on the stack, in L1
 *     for <piece of the sum>
 *       part[R][C vectors] = 0                       registers
 *       for <steps of the piece>                     rolled
 *         part[r][c] += stream[r] * panel[c]
 *       total[r][c] += part[r][c]
 *
 * Roundings of n products in one accumulator add up like n, of pieces of s like s + n/s (frontend/lower/lower_sum.c has the
 * reference): 4,608 products of a 3x3 convolution of 512 channels in pieces of 144 are five times as exact. That is about
 * what the field's runtimes do, whose pieces follow from their cache blocks. Adding a part to the total takes as long as two
 * or three steps. */
#include "schedule/sketch/sketch_private.h"

enum {
    PIECE_STEPS = 192, /* of a piece at most, where the extents have such divisors */
    FEWEST_STEPS = 64, /* pieces of fewer would cost more than they give */
};

/* How many iterations of a loop of so many, each of `inner` steps, make a piece; all of them: the sum stays whole. */
static int64_t choose_piece(int64_t extent, int64_t inner)
{
    int64_t best = extent;
    if (extent * inner <= TL_WHOLE_STEPS)
        return extent;
    for (int64_t n = extent - 1; n >= 1 && n * inner >= FEWEST_STEPS; n--)
        if (extent % n == 0) {
            best = n;
            if (n * inner <= PIECE_STEPS)
                break;
        }
    return best;
}

/* The reduce iter of `partial` that runs with the loop. NULL: none does. */
static const tl_var *iter_of_loop(const tl_block *partial, const tl_var *loop)
{
    for (int i = 0; loop != NULL && i < partial->iter_count; i++)
        if (partial->iters[i].binding->kind == TL_EXPR_VAR &&
            partial->iters[i].binding->u.var == loop)
            return partial->iters[i].var;
    return NULL;
}

tl_status tl_sketch_cut_sum(tl_schedule *s, tl_block_ref anchor, tl_contraction *c, int *depth,
                            tl_block_ref *sums, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, anchor);
    const tl_buffer *total = block->stores[0].buffer;
    const tl_var *vector = c->vector, *tap_loop = NULL;
    tl_loop_list own;
    tl_loop_ref cut = { 0 }, parts[2], piece;
    int64_t steps = 1, piece_size;
    *sums = anchor;
    if (!tl_dtype_is_float(total->dtype) || tl_keeps_order(s, block))
        return TL_OK;
    TL_TRY(tl_sketch_loops(s, anchor, *depth, &own, diag));
    for (int i = 0; i < own.count; i++) {
        if (!tl_sketch_drives_reduce(s, block, own.loops[i]))
            continue;
        if (cut.id == 0 && tl_sketch_extent(s, own.loops[i]) > 1)
            cut = own.loops[i];
        else
            steps *= tl_sketch_extent(s, own.loops[i]);
    }
    for (int i = 0; i < block->iter_count; i++) {
        tl_loop_ref loop = tl_sketch_loop_of(s, &block->iters[i], &own);
        if (c->tap != NULL && block->iters[i].var == c->tap && loop.id != 0)
            tap_loop = tl_schedule_get_loop(s, loop)->u.loop.var;
    }
    if (cut.id == 0 || !tl_sketch_is_fixed(s, cut)) /* of a dim there are no whole pieces */
        return TL_OK;
    piece_size = choose_piece(tl_sketch_extent(s, cut), steps);
    if (piece_size == tl_sketch_extent(s, cut))
        return TL_OK;

    TL_TRY(tl_split(s, cut, (int64_t[]){ 0, piece_size }, 2, parts, diag));
    TL_TRY(tl_sketch_factor(s, anchor, &own, cut, parts[0], parts[1], sums, diag));
    const tl_var *tap = iter_of_loop(tl_schedule_get_block(s, *sums), tap_loop);
    TL_TRY(tl_sketch_reduction(s, anchor, *depth, vector, NULL, 0, &piece, diag));
    TL_TRY(tl_set_scope(s, total->name, "stack", diag));
    TL_TRY(tl_compute_at(s, *sums, piece, diag));
    block = tl_schedule_get_block(s, *sums);
    if (!tl_find_contraction(s->arena, block, c))
        return tl_refuse(diag, "default schedule", block->name, "is no contraction any more");
    c->tap = tap;
    *depth = tl_sketch_shared_loops(s, *sums);
    return TL_OK;
}
