/* schedule/sketch/sketch_turn_result.c: a map whose lanes would gather what one of its loads reads gets a copy in their order,
 * a few rows at a time.
 *
 *     for co, oh
 *       for ow                                          lanes gather, 16 elements apart
 *         y[co, oh, ow] = f(acc[co//16, oh, ow, co % 16])
 *
 *     for co0 in co / 16, oh                            parallel
 *       for squares of 16 channels x 16 columns
 *         t[co1, ow] = acc[co0, oh, ow, co1]            turned around in registers
 *       for co1 in 16
 *         for ow                                        vectorized
 *           y[16*co0 + co1, oh, ow] = f(t[co1, ow])
 *
 * So ends a convolution in blocks of channels whose result is plain. A plain copy is a transposition (sketch_nest.c). */
#include "schedule/sketch/sketch_private.h"

enum { NEAR = 4 };

/* The one load whose lanes lie apart; NULL: there is none, or several are. */
static const tl_expr *gathered_load(tl_schedule *s, const tl_block *block, const tl_var *lane)
{
    const tl_expr *loads[32], *found = NULL;
    int count = tl_collect_loads(block->stores[0].value, loads, 32);
    if (count >= 32)
        return NULL;
    for (int l = 0; l < count; l++) {
        int64_t stride = tl_access_stride(s->arena, loads[l]->u.buffer, loads[l]->args, lane);
        if (stride >= 0 && stride <= NEAR && stride != TL_NOT_AFFINE)
            continue;
        if (stride == TL_NOT_AFFINE || (found != NULL && !tl_expr_equal(found, loads[l])))
            return NULL;
        found = loads[l];
    }
    return found;
}

bool tl_sketch_turns(tl_schedule *s, const tl_block *out, const tl_buffer *buffer)
{
    const tl_var *lane = tl_contiguous_iter(s->arena, out);
    const tl_expr *load = lane != NULL ? gathered_load(s, out, lane) : NULL;
    return load != NULL && load->u.buffer == buffer;
}

/* Whether what is in the buffer comes from a block that a rule has scheduled: another may go along with the map. */
static bool is_settled(tl_schedule *s, const tl_buffer *buffer, const tl_map *done)
{
    const tl_block **writers;
    int count = buffer->role == TL_ROLE_LOCAL
                    ? tl_writers_of(s->arena, s->program->body, buffer, &writers)
                    : 0;
    for (int i = 0; i < count; i++)
        if (!tl_map_has(done, writers[i]->name))
            return false;
    return true;
}

/* The only axis of the load that `lane` is, and nothing else; -1: there is no such. */
static int axis_of(const tl_expr *load, const tl_var *lane)
{
    int found = -1;
    for (int axis = 0; axis < load->u.buffer->rank; axis++) {
        if (!tl_expr_uses_var(load->args[axis], lane))
            continue;
        if (found >= 0 || load->args[axis]->kind != TL_EXPR_VAR)
            return -1;
        found = axis;
    }
    return found;
}

/* What the load's last axis moves with: an iter, or its remainder, and by what. */
static const tl_var *contiguous_in(const tl_expr *load, int64_t *block)
{
    const tl_expr *last = load->args[load->u.buffer->rank - 1];
    *block = 0;
    if (last->kind == TL_EXPR_VAR)
        return last->u.var;
    bool is_place = last->kind == TL_EXPR_FLOORMOD && last->args[0]->kind == TL_EXPR_VAR &&
                    tl_const_int(last->args[1], block);
    return is_place ? last->args[0]->u.var : NULL;
}

static tl_loop_ref loop_of(tl_schedule *s, const tl_block *block, const tl_var *iter,
                           const tl_loop_list *loops)
{
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].var == iter)
            return tl_sketch_loop_of(s, &block->iters[i], loops);
    return (tl_loop_ref){ 0 };
}

tl_status tl_sketch_turn_result(tl_schedule *s, tl_block_ref out, tl_map *done, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, out);
    const tl_var *lane = tl_contiguous_iter(s->arena, block);
    if (!tl_block_is_spatial(block) || block->call != NULL || block->predicate != NULL ||
        block->store_count != 1 || lane == NULL || block->stores[0].value->kind == TL_EXPR_LOAD)
        return tl_refuse(diag, "default schedule", block->name, "is no map along lanes");
    const tl_expr *load = gathered_load(s, block, lane);
    int64_t size;
    int axis = load != NULL ? axis_of(load, lane) : -1;
    const tl_var *along = axis >= 0 ? contiguous_in(load, &size) : NULL;
    if (along == NULL || along == lane || !is_settled(s, load->u.buffer, done) ||
        load->dtype != block->stores[0].buffer->dtype)
        return tl_refuse(diag, "default schedule", block->name, "gathers nothing that is turned");
    tl_loop_list loops, order = { 0 };
    TL_TRY(tl_sketch_loops(s, out, 0, &loops, diag));
    tl_loop_ref lanes = loop_of(s, block, lane, &loops), rows = loop_of(s, block, along, &loops);
    tl_loop_ref parts[2] = { { 0 } };
    if (lanes.id == 0 || rows.id == 0 || tl_sketch_shared_loops(s, out) > 0 ||
        (size > 0 && tl_sketch_extent(s, rows) % size != 0))
        return tl_refuse(diag, "default schedule", block->name, "is not made of whole squares");
    if (!tl_decide_range(s, block->name, "turn", 0, 1, 1))
        return tl_refuse(diag, "default schedule", block->name, "gathers by decision");
    parts[1] = rows;
    if (size > 0)
        TL_TRY(tl_split(s, rows, (int64_t[]){ 0, size }, 2, parts, diag));
    for (int i = 0; i < loops.count; i++)
        if (tl_same_loop(loops.loops[i], rows))
            tl_loop_push(&order, parts[0]);
        else if (!tl_same_loop(loops.loops[i], lanes))
            tl_loop_push(&order, loops.loops[i]);
    int outside = order.count;
    if (outside == 0)
        return tl_refuse(diag, "default schedule", block->name, "has no loop around its squares");
    tl_loop_ref place = order.loops[outside - 1];
    tl_loop_push(&order, parts[1]);
    tl_loop_push(&order, lanes);
    TL_TRY(tl_reorder(s, order.loops, order.count, diag));

    tl_block_ref copy;
    TL_TRY(tl_cache_read(s, out, load->u.buffer->name, "global", &copy, diag));
    tl_map_put(done, tl_schedule_get_block(s, copy)->name, s);
    TL_TRY(tl_compute_at(s, copy, place, diag));
    const char *name = tl_schedule_get_block(s, copy)->stores[0].buffer->name;
    TL_TRY(tl_transform_layout(s, name, tl_sketch_axis_last(s->arena, load->u.buffer->rank, axis),
                               diag));
    int vector = tl_target_lanes(s->target, load->dtype);
    TL_TRY(tl_sketch_turn_copy(s, copy, outside, axis, vector, vector, diag));
    int64_t extent = tl_sketch_extent(s, lanes);
    tl_loop_ref outer;
    TL_TRY(tl_sketch_vectorize(s, lanes, vector, &outer, diag));
    return outer.id != 0 && extent % vector != 0 ? tl_loop_partition(s, outer, diag) : TL_OK;
}
