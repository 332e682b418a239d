/* schedule/sketch/sketch_turn_stream.c: a window whose lanes would gather what it reads gets a copy in their order.
 *
 *     y[co, ow, ci] += x[16*co + ci, ow + k]*w[...]      x plain, the result in blocks of channels
 *
 *     for squares of 16 channels x 16 columns
 *       t[co, ow, ci] = x[16*co + ci, ow]                turned around once, line by line
 *     y[co, ow, ci] += t[co, ow + k, ci]*w[...]          a window like any other (sketch_window.c)
 *
 * So it is where a plain input meets a result in blocks, or the other way round: in front of a depthwise convolution behind a
 * Transpose, say. What is copied must be read several times, else nothing is won: the copy gathers, too, though by whole
 * lines. */
#include "runtime/base/checked.h"
#include "schedule/sketch/sketch_private.h"

enum { LEAST_TAPS = 3, MOST_COPIED = 2, LEAST_READS = 2, MOST_LANES = 64 };

/* The one axis that the lane moves, by a constant; -1: there is no such. */
static int moved_axis(tl_schedule *s, const tl_expr *load, const tl_var *lane, int64_t *step,
                      const tl_expr **rest)
{
    int found = -1;
    for (int axis = 0; axis < load->u.buffer->rank; axis++) {
        if (!tl_expr_uses_var(load->args[axis], lane))
            continue;
        if (found >= 0 || !tl_affine_in(s->arena, load->args[axis], lane, step, rest))
            return -1;
        found = axis;
    }
    return found;
}

/* Where lanes are a block of the axis: how many; 0: they go along the whole axis. */
static int64_t block_of_axis(tl_schedule *s, const tl_block *block, const tl_var *lane,
                             int64_t step, const tl_expr *rest)
{
    const int64_t lanes = tl_max_extent(tl_sketch_iter_of(block, lane)->extent);
    if (step != 1 || lanes < 2 || lanes > MOST_LANES)
        return 0;
    const tl_expr *left = tl_floormod_expr(s->arena, rest, tl_int(s->arena, lanes));
    return tl_is_int(left, 0) ? lanes : 0;
}

/* The order of the copy: the axis last, or its place in a block. */
static const char *map_of(tl_arena *arena, int rank, int axis, int64_t lanes)
{
    const char *from = "", *to = "";
    for (int a = 0; a < rank; a++) {
        from = tl_arena_format(arena, "%s%sx%d", from, a > 0 ? ", " : "", a);
        if (a == axis && lanes > 0)
            to = tl_arena_format(arena, "%sx%d//%lld, ", to, a, (long long)lanes);
        else if (a != axis)
            to = tl_arena_format(arena, "%sx%d, ", to, a);
    }
    return lanes > 0
               ? tl_arena_format(arena, "(%s) -> (%sx%d%%%lld)", from, to, axis, (long long)lanes)
               : tl_arena_format(arena, "(%s) -> (%sx%d)", from, to, axis);
}

const char *tl_sketch_axes_last(tl_arena *arena, int rank, int axis, int count)
{
    const char *from = "", *to = "", *end = "";
    for (int a = 0; a < rank; a++) {
        const bool moves = a >= axis && a < axis + count;
        from = tl_arena_format(arena, "%s%sx%d", from, a > 0 ? ", " : "", a);
        if (moves)
            end = tl_arena_format(arena, "%s%sx%d", end, a > axis ? ", " : "", a);
        else
            to = tl_arena_format(arena, "%sx%d, ", to, a);
    }
    return tl_arena_format(arena, "(%s) -> (%s%s)", from, to, end);
}

tl_status tl_sketch_turn_copy(tl_schedule *s, tl_block_ref copy, int first, int axis,
                              tl_turned_plane plane, int64_t across_lanes, int lanes, tl_diag *diag)
{
    tl_loop_list loops, order = { 0 };
    tl_loop_ref across[2], along[2], joined;
    TL_TRY(tl_sketch_loops(s, copy, first, &loops, diag));
    int last = loops.count - 1;
    if (axis >= last || loops.count != tl_schedule_get_block(s, copy)->iter_count)
        return tl_refuse(diag, "default schedule", tl_schedule_get_block(s, copy)->name,
                         "copies along one axis");
    if (plane != TL_NO_PLANE) {
        const tl_loop_ref *inner = &loops.loops[plane == TL_PLANE_ACROSS ? axis + 1 : last];
        TL_TRY(tl_fuse(s, (tl_loop_ref[]){ inner[-1], inner[0] }, 2, &joined, diag));
        TL_TRY(tl_sketch_loops(s, copy, first, &loops, diag));
        if (axis >= --last)
            return tl_refuse(diag, "default schedule", tl_schedule_get_block(s, copy)->name,
                             "copies within one plane");
    }
    int64_t width = tl_min64(across_lanes, tl_sketch_extent(s, loops.loops[axis])),
            length = tl_min64(lanes, tl_sketch_extent(s, loops.loops[last]));
    bool odd_width = tl_sketch_extent(s, loops.loops[axis]) % width != 0,
         odd_length = tl_sketch_extent(s, loops.loops[last]) % length != 0;
    TL_TRY(tl_split(s, loops.loops[axis], (int64_t[]){ 0, width }, 2, across, diag));
    TL_TRY(tl_split(s, loops.loops[last], (int64_t[]){ 0, length }, 2, along, diag));
    for (int i = 0; i < last; i++) /* planes one after the other, as they lie */
        tl_loop_push(&order, i == axis ? across[0] : loops.loops[i]);
    tl_loop_push(&order, along[0]);
    tl_loop_push(&order, along[1]);
    tl_loop_push(&order, across[1]);
    TL_TRY(tl_reorder(s, order.loops, order.count, diag));
    TL_TRY(tl_unroll(s, along[1], diag));
    TL_TRY(tl_vectorize(s, across[1], diag));
    if (odd_length)
        TL_TRY(tl_loop_partition(s, along[0], diag));
    return odd_width ? tl_loop_partition(s, across[0], diag) : TL_OK;
}

tl_status tl_sketch_copy_turned(tl_schedule *s, tl_block_ref reader, const tl_buffer *buffer,
                                int axis, tl_turned_plane plane, tl_loop_ref place, int first,
                                tl_block_ref *copy, tl_diag *diag)
{
    const int lanes = tl_target_lanes(s->target, buffer->dtype);
    TL_TRY(tl_cache_read(s, reader, buffer->name, "global", copy, diag));
    if (first > 0)
        TL_TRY(tl_compute_at(s, *copy, place, diag));
    const char *name = tl_schedule_get_block(s, *copy)->stores[0].buffer->name;
    TL_TRY(tl_transform_layout(s, name,
                               tl_sketch_axes_last(s->arena, buffer->rank, axis,
                                                   plane == TL_PLANE_ACROSS ? 2 : 1),
                               diag));
    return tl_sketch_turn_copy(s, *copy, first, axis, plane, lanes, lanes, diag);
}

static tl_status turn(tl_schedule *s, tl_block_ref ref, const tl_expr *load, const tl_var *lane,
                      tl_map *done, tl_diag *diag)
{
    int64_t step;
    const tl_expr *rest;
    tl_block_ref copy;
    const tl_block *block = tl_schedule_get_block(s, ref);
    int axis = moved_axis(s, load, lane, &step, &rest), rank = load->u.buffer->rank;
    if (axis < 0 || axis == rank - 1)
        return tl_refuse(diag, "default schedule", block->name,
                         "has lanes that no copy brings together");
    int lanes = tl_target_lanes(s->target, load->dtype);
    int64_t blocks = block_of_axis(s, block, lane, step, rest);
    TL_TRY(tl_cache_read(s, ref, load->u.buffer->name, "global", &copy, diag));
    const tl_block *copying = tl_schedule_get_block(s, copy);
    tl_map_put(done, copying->name, s);
    TL_TRY(tl_transform_layout(s, copying->stores[0].buffer->name,
                               map_of(s->arena, rank, axis, blocks), diag));
    return tl_sketch_turn_copy(s, copy, 0, axis, TL_NO_PLANE, blocks > 0 ? blocks : lanes, lanes,
                               diag);
}

/* Lanes so close are shuffled out of few vectors. */
static bool reads_near(tl_schedule *s, const tl_expr *load, const tl_var *lane)
{
    int64_t stride = tl_access_stride(s->arena, load->u.buffer, load->args, lane);
    return stride != TL_NOT_AFFINE && stride >= 0 && stride <= TL_NEAR;
}

/* Whether the terms are products with weights (a convolution): lanes along them would gather these instead. */
static bool sums_weighted(const tl_block *block)
{
    const tl_expr *value = block->stores[0].value;
    for (int i = 0; value->kind == TL_EXPR_MUL && i < 2; i++)
        if (value->args[i]->kind == TL_EXPR_LOAD && tl_sketch_is_constant(value->args[i]->u.buffer))
            return true;
    return false;
}

/* Whether elements are read often enough for a copy to be worth its while: by a convolution as good as once, by what may have
 * lanes along its terms twice. */
static bool is_worth_a_copy(const tl_block *block, const tl_expr *load)
{
    const int64_t elements = tl_buffer_max_elements(load->u.buffer),
                  reads = tl_block_instances(block);
    return sums_weighted(block) ? elements / MOST_COPIED <= reads : reads / LEAST_READS >= elements;
}

const tl_expr *tl_sketch_gathered_load(tl_schedule *s, const tl_block *block)
{
    const tl_var *lane = tl_contiguous_iter(s->arena, block);
    const tl_expr *loads[8];
    int count = lane != NULL ? tl_collect_loads(block->stores[0].value, loads, 8) : 0;
    for (int l = 0; l < count; l++)
        if (!reads_near(s, loads[l], lane) && !tl_sketch_is_constant(loads[l]->u.buffer) &&
            !tl_sketch_can_pack_lanes(s, loads[l], lane) &&
            !tl_sketch_lanes_share(s, loads[l], lane))
            return loads[l];
    return NULL;
}

tl_status tl_sketch_turn_stream(tl_schedule *s, tl_block_ref ref, tl_map *done, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, ref);
    if (!tl_block_is_reduction(block) || block->store_count != 1 ||
        tl_sketch_points(block, TL_ITER_REDUCE) < LEAST_TAPS)
        return TL_OK;
    const tl_expr *load = tl_sketch_gathered_load(s, block);
    if (load == NULL || load->u.buffer->role == TL_ROLE_LOCAL || !is_worth_a_copy(block, load))
        return TL_OK; /* the writer of a local one decides how it lies */
    return tl_decide_range(s, block->name, "turn", 0, 1, 1)
               ? turn(s, ref, load, tl_contiguous_iter(s->arena, block), done, diag)
               : TL_OK;
}
