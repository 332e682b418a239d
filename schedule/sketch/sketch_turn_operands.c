/* schedule/sketch/sketch_turn_operands.c: what the reader of a sum gathers besides gets copies in the order of its lanes.
 *
 *     for co, oh
 *       for <squares of 16 channels x 16 columns of a row>
 *         t[oh, ow, ci] = x[16*co + ci, oh, ow]           turned around in registers
 *       for ow0
 *         acc[ow1, ci] = ...                              the sums of a tile
 *         y[co, oh, ow, ci] = acc[ow1, ci] + t[oh, ow, ci]
 *
 * So it is where a shortcut comes from a plain value to a result in blocks. The sums stay in registers; what is copied is a
 * row, or as much as the loops go through before they come to the next, and stays in L1 or L2. */
#include "runtime/base/checked.h"
#include "schedule/sketch/sketch_private.h"

/* The iter along which the load's elements lie side by side; NULL: there is none. */
static const tl_iter *along_of(tl_schedule *s, const tl_block *block, const tl_expr *load)
{
    for (int i = 0; i < block->iter_count; i++)
        if (tl_max_extent(block->iters[i].extent) > 1 &&
            tl_access_stride(s->arena, load->u.buffer, load->args, block->iters[i].var) == 1)
            return &block->iters[i];
    return NULL;
}

/* How many of the outer loops stand around the first that walks along the load's rows. */
static int loops_around(tl_schedule *s, const tl_block *block, const tl_expr *load,
                        const tl_iter *along, const tl_loop_list *outer, int64_t *bytes)
{
    *bytes = tl_buffer_max_bytes(load->u.buffer);
    for (int l = 0; l < outer->count; l++) {
        const tl_var *loop = tl_schedule_get_loop(s, outer->loops[l])->u.loop.var;
        if (tl_expr_uses_var(along->binding, loop))
            return l;
        if (tl_sketch_moves_load(s, block, load, outer->loops[l]))
            *bytes /= tl_max64(tl_sketch_extent(s, outer->loops[l]), 1);
    }
    return outer->count;
}

static tl_status copy_rows(tl_schedule *s, tl_block_ref out, const tl_expr *load,
                           const tl_var *lane, int first, const tl_loop_list *outer)
{
    const tl_block *block = tl_schedule_get_block(s, out);
    const int axis = tl_sketch_axis_of(s, load, lane);
    const tl_iter *along = along_of(s, block, load);
    int64_t bytes;
    int around = along != NULL ? loops_around(s, block, load, along, outer, &bytes) : 0;
    if (axis < 0 || around == 0 || bytes > s->target->l2_bytes / 2)
        return TL_ILLEGAL_SCHEDULE;
    tl_block_ref copy;
    return tl_sketch_copy_turned(s, out, load->u.buffer, axis, TL_NO_PLANE,
                                 outer->loops[around - 1], first + around, &copy, NULL);
}

tl_status tl_sketch_turn_operands(tl_schedule *s, tl_block_ref out, int first,
                                  const tl_loop_list *outer)
{
    const tl_block *block = tl_schedule_get_block(s, out);
    const tl_var *lane = tl_contiguous_iter(s->arena, block);
    tl_gathered g;
    if (lane == NULL || block->call != NULL || !tl_sketch_find_gathered(s, block, lane, &g))
        return TL_OK;
    for (int i = 0; i < g.count; i++) {
        if (g.loads[i]->u.buffer->role != TL_ROLE_INPUT ||
            !tl_decide_range(s, block->name, "turn", 0, 1, 1))
            continue;
        tl_schedule_state before = tl_schedule_save(s);
        tl_status status = copy_rows(s, out, g.loads[i], lane, first, outer);
        if (status == TL_ILLEGAL_SCHEDULE)
            tl_schedule_restore(s, &before); /* it is gathered, then */
        else
            TL_TRY(status);
    }
    return TL_OK;
}
