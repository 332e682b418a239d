/* schedule/sketch/sketch_taps.c: steps of a reduction that share elements of the stream.
 *
 *     for kw in 0..3                                for rl in 0..16
 *       for rl in 0..16                               for ow in 0..7 unrolled
 *         for ow in 0..7 unrolled            ->         for kw in 0..3 unrolled
 *           acc[ow] += x[ow + kw, rl]*w[kw, rl]           acc[ow] += x[ow + kw, rl]*w[rl, kw]
 *
 * On the right 9 elements are broadcast for 21 multiply-adds, on the left 21: with few vectors a tile (16 channels a
 * group) the load ports bind there. Measured on an Ice Lake, percent of peak: 16 channels a group at 14x14 from 54 to 98,
 * a dense 3x3 of 128 channels at 28x28 from 89 to 98. The multiply-adds of a sum follow each other; other rows fill the
 * gaps. Innermost, a tap's element lives for as many rows as there are taps; outside of the rows, a whole row's would. */
#include "schedule/sketch/sketch_private.h"

enum { MOST_TAPS = 9 }; /* more leave no registers for rows */

/* Whether some axis of the stream is row_step*row + tap_step*tap + ..; the steps. */
static bool share_axis(tl_schedule *s, const tl_expr *stream, const tl_var *row, const tl_var *tap,
                       tl_taps *taps)
{
    for (int axis = 0; axis < stream->u.buffer->rank; axis++) {
        const tl_expr *index = stream->args[axis], *rest;
        if (tl_expr_uses_var(index, row) && tl_expr_uses_var(index, tap))
            return tl_affine_in(s->arena, index, row, &taps->row_step, &rest) &&
                   tl_affine_in(s->arena, index, tap, &taps->tap_step, &rest);
    }
    return false;
}

const tl_var *tl_sketch_find_taps(tl_schedule *s, const tl_contraction *c, const tl_var *row,
                                  tl_taps *taps)
{
    const tl_iter *last = NULL;
    int running = 0;
    *taps = (tl_taps){ 0 };
    if (row == NULL)
        return NULL;
    for (int i = c->block->iter_count - 1; i >= 0; i--) {
        const tl_iter *iter = &c->block->iters[i];
        int64_t extent = tl_max_extent(iter->extent);
        if (iter->kind != TL_ITER_REDUCE || extent == 1)
            continue;
        /* what it steps over would be summed up in another order */
        if (running++ > 0 && s->program->strict)
            break;
        tl_taps found = { .count = extent };
        if (last == NULL && extent <= MOST_TAPS && tl_const_int(iter->extent, &extent) &&
            share_axis(s, c->stream, row, iter->var, &found) && found.row_step > 0 &&
            found.tap_step > 0 &&
            tl_tile_elements(found.count + 1, &found) < (found.count + 1) * found.count) {
            last = iter;
            *taps = found;
        }
    }
    return running > 1 && last != NULL ? last->var : NULL; /* alone it would leave no loop */
}
