/* schedule/sketch/sketch_window.c: the default schedule of reductions over a window in which every lane has its own
 * data: depthwise convolution, pooling.
 *
 *     for <outer>
 *       for x0 in x / X
 *         acc[X vectors] = init                  registers
 *         for <window>                           unrolled when small
 *           for x in X                           unrolled
 *             acc[x] op= in[x...]                vectorized
 *         result[x] = epilogue(acc[x])
 *
 * A constant whose lanes lie apart (depthwise weights: one channel's window after the other) is packed so that
 * they lie side by side. In a convolution of small groups, lanes share elements of the input (ci//4*4 + rc): a vector of it
 * is loaded and shuffled for every sum. There only the innermost axis of the window is written out, and the row is as long
 * as registers allow: neighbours in the row shuffle the same vectors, which are then shuffled once. Of plain planes the
 * results of a group share all vectors: the tile has some of them (members), and a vector is loaded once for all.
 */
#include "runtime/base/checked.h"
#include "schedule/sketch/sketch_private.h"

enum {
    LARGEST_WINDOW = 16, /* reduce instances that are written out */
    STREAM_ROWS = 2,     /* where each reads a stream of its own, or what is shuffled */
    MOST_ROWS = 8,       /* sums at a time: two pipes of four cycles */
    ROLLED_ROWS = 14,    /* where each waits for its own last one in every step of a loop */
    MOST_UNROLLED = 128, /* operations written out at most */
    MOST_MEMBERS = 4,    /* of a group in one tile */
};

/* How many elements of a row one tile takes: about `most`, the last tile somewhat fewer where they do not divide it. */
static int64_t tile_rows(int64_t extent, int64_t most)
{
    for (int64_t rows = most; 2 * rows > most; rows--)
        if (extent % rows == 0)
            return rows;
    return extent < 1 ? 1 : tl_ceildiv(extent, tl_ceildiv(extent, most));
}

/* The iter along which the result lies side by side; NULL: there is none. */
static const tl_var *lane_of(tl_schedule *s, const tl_block *block)
{
    const tl_var *lane = NULL;
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_SPATIAL &&
            tl_access_stride(s->arena, block->stores[0].buffer, block->stores[0].indices,
                             block->iters[i].var) == 1)
            lane = block->iters[i].var;
    return lane;
}

/* Whether lanes share elements of something that they move in. */
static bool shuffles(tl_schedule *s, const tl_block *block, const tl_var *lane)
{
    const tl_expr *loads[8];
    int count = tl_collect_loads(block->stores[0].value, loads, 8);
    for (int l = 0; lane != NULL && l < count; l++)
        if (tl_expr_uses_var(loads[l], lane) && tl_sketch_lanes_share(s, loads[l], lane))
            return true;
    return false;
}

bool tl_sketch_can_pack_lanes(tl_schedule *s, const tl_expr *load, const tl_var *lane)
{
    return load->u.buffer->role == TL_ROLE_CONST && tl_sketch_axis_of(s, load, lane) >= 0;
}

bool tl_sketch_lanes_share(tl_schedule *s, const tl_expr *load, const tl_var *lane)
{
    const tl_buffer *buffer = load->u.buffer;
    int lanes = tl_target_lanes(s->target, buffer->dtype);
    for (int axis = 0; axis < buffer->rank; axis++) {
        if (!tl_expr_uses_var(load->args[axis], lane))
            continue;
        tl_linear sum = tl_linear_of(s->arena, load->args[axis]);
        for (int t = 0; t < sum.count; t++) {
            const tl_expr *term = sum.terms[t];
            int64_t group;
            if (!tl_expr_uses_var(term, lane))
                continue;
            if (axis != buffer->rank - 1 || buffer->strides != NULL ||
                term->kind != TL_EXPR_FLOORDIV || term->args[0]->kind != TL_EXPR_VAR ||
                !tl_const_int(term->args[1], &group) || group < 1 || lanes % group != 0 ||
                sum.coefficients[t] < 1 || sum.coefficients[t] > group)
                return false;
        }
    }
    return true;
}

/* Splits the axis that the lanes move in blocks of as many as there are, and puts the place in the block last. */
static tl_status pack_lanes(tl_schedule *s, const tl_expr *load, const tl_var *lane, int64_t lanes,
                            tl_diag *diag)
{
    int at = tl_sketch_axis_of(s, load, lane), rank = load->u.buffer->rank;
    const char *from = "", *to = "";
    for (int axis = 0; axis < rank; axis++) {
        const char *comma = axis > 0 ? ", " : "";
        from = tl_arena_format(s->arena, "%s%sx%d", from, comma, axis);
        to = axis == at
                 ? tl_arena_format(s->arena, "%s%sx%d//%lld", to, comma, axis, (long long)lanes)
                 : tl_arena_format(s->arena, "%s%sx%d", to, comma, axis);
    }
    const char *map =
        tl_arena_format(s->arena, "(%s) -> (%s, x%d%%%lld)", from, to, at, (long long)lanes);
    return tl_transform_layout(s, load->u.buffer->name, map, diag);
}

/* Every constant of the block whose lanes lie apart. */
tl_status tl_sketch_pack_constants(tl_schedule *s, tl_block_ref anchor, const tl_var *lane,
                                   int64_t lanes, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, anchor);
    const tl_expr *loads[8];
    int count = tl_collect_loads(block->stores[0].value, loads, 8);
    for (int l = 0; l < count; l++)
        if (!tl_sketch_reads_lines(s, loads[l], lane) &&
            tl_sketch_can_pack_lanes(s, loads[l], lane))
            TL_TRY(pack_lanes(s, loads[l], lane, lanes, diag));
    return TL_OK;
}

/* Whether each sum goes along a piece of memory that no other reads (a mean over space): then they are taken nearly one after
 * the other, written out, so that what is read is one stream. Seven at a time were seven, of which the hardware fetches
 * ahead few. */
static bool sums_streams(tl_schedule *s, const tl_block *block)
{
    const tl_expr *loads[2];
    const tl_var *lane = tl_contiguous_iter(s->arena, block);
    int64_t width = 0, step = 0;
    if (lane == NULL || tl_sketch_points(block, TL_ITER_REDUCE) <= LARGEST_WINDOW ||
        tl_collect_loads(block->stores[0].value, loads, 2) != 1 ||
        tl_block_instances(block) > tl_buffer_max_elements(loads[0]->u.buffer))
        return false;
    for (int i = 0; i < block->iter_count; i++) {
        const tl_iter *iter = &block->iters[i];
        if (iter->var == lane)
            width = tl_max_extent(iter->extent);
        else if (iter->kind == TL_ITER_REDUCE && tl_max_extent(iter->extent) > 1)
            step = tl_access_stride(s->arena, loads[0]->u.buffer, loads[0]->args, iter->var);
    }
    return step == width;
}

/* Whether each term is a product. */
static bool sums_products(const tl_block *block)
{
    const tl_expr *value = block->stores[0].value;
    return block->combiner == TL_COMBINER_SUM && value->kind == TL_EXPR_MUL;
}

/* Whether lanes read elements that do not lie side by side, which nothing multiplies (a pool of stride 2 in plain
 * rows): what they are shuffled out of does not fit the registers of many sums. */
static bool reads_apart(tl_schedule *s, const tl_block *block)
{
    const tl_expr *loads[2];
    const tl_var *lane = tl_contiguous_iter(s->arena, block);
    if (lane == NULL || tl_collect_loads(block->stores[0].value, loads, 2) != 1)
        return false;
    int64_t stride = tl_access_stride(s->arena, loads[0]->u.buffer, loads[0]->args, lane);
    return stride != TL_NOT_AFFINE && stride > 1;
}

/* How many of the window's steps are written out: none, a small window, or this one as long as the code stays small; where
 * lanes share elements, those of the innermost axis. */
static int64_t decide_unroll(tl_schedule *s, const tl_block *block, int64_t sums, bool is_shuffled,
                             bool is_stream)
{
    int64_t steps = tl_sketch_points(block, TL_ITER_REDUCE), likely = steps;
    for (int i = 0; is_shuffled && i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_REDUCE && tl_max_extent(block->iters[i].extent) > 1)
            likely = tl_max_extent(block->iters[i].extent);
    const int64_t options[2] = { 0, likely };
    const bool fits = likely <= MOST_UNROLLED / sums;
    return tl_decide(s, block->name, "unroll", options, 1 + fits,
                     likely <= LARGEST_WINDOW || (is_stream && fits) ? likely : 0);
}

tl_status tl_sketch_window(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_diag *diag)
{
    return tl_sketch_window_from(s, anchor, out, 0, diag);
}

/* The results of a group that a tile has: `count` neighbours along one of the result's loops; 1: lanes share nothing. */
typedef struct {
    int64_t count;
    int loop; /* of the list */
} members;

/* The iter along which `group` neighbours move the load by nothing: v in v//group*Cg + c, and in no other place. */
static const tl_iter *shared_by(tl_schedule *s, const tl_block *block, const tl_expr *load,
                                int64_t *group)
{
    const tl_expr *terms[32], *found = NULL;
    int count = 0, uses = 0;
    for (int axis = 0; axis < load->u.buffer->rank; axis++) {
        tl_linear sum = tl_linear_of(s->arena, load->args[axis]);
        for (int t = 0; t < sum.count && count < 32; t++) {
            const tl_expr *term = terms[count++] = sum.terms[t];
            if (term->kind == TL_EXPR_FLOORDIV && term->args[0]->kind == TL_EXPR_VAR &&
                tl_const_int(term->args[1], group) && *group > 1)
                found = term->args[0];
        }
    }
    for (int t = 0; found != NULL && t < count; t++)
        uses += tl_expr_uses_var(terms[t], found->u.var);
    const tl_iter *iter = uses == 1 ? tl_sketch_iter_of(block, found->u.var) : NULL;
    bool fits =
        iter != NULL && iter->kind == TL_ITER_SPATIAL && tl_max_extent(iter->extent) % *group == 0;
    return fits ? iter : NULL;
}

/* The loop of `out` that goes along the block's iter, which is an axis of the result; its id is 0 where there is none. */
static tl_loop_ref loop_of_result(tl_schedule *s, const tl_block *block, const tl_block *out,
                                  const tl_iter *iter, const tl_loop_list *loops)
{
    const tl_expr *loads[64];
    const tl_store *store = &block->stores[0];
    const int count = tl_collect_loads(out->stores[0].value, loads, 64);
    for (int axis = 0; axis < store->buffer->rank; axis++)
        for (int l = 0; l < count && l < 64; l++) {
            const tl_expr *index = store->indices[axis];
            if (index->kind != TL_EXPR_VAR || index->u.var != iter->var ||
                loads[l]->u.buffer != store->buffer || loads[l]->args[axis]->kind != TL_EXPR_VAR)
                continue;
            const tl_iter *own = tl_sketch_iter_of(out, loads[l]->args[axis]->u.var);
            return own != NULL ? tl_sketch_loop_of(s, own, loops) : (tl_loop_ref){ 0 };
        }
    return (tl_loop_ref){ 0 };
}

/* The last two loops of the list are the tile's already. */
static members find_members(tl_schedule *s, const tl_block *block, const tl_block *out,
                            const tl_loop_list *loops)
{
    members found = { .count = 1 };
    const tl_expr *loads[8];
    const tl_var *lane = tl_contiguous_iter(s->arena, block);
    const tl_iter *shared = NULL;
    int64_t group = 0;
    const int count = tl_collect_loads(block->stores[0].value, loads, 8);
    for (int l = 0; lane != NULL && shared == NULL && l < count; l++)
        if (tl_expr_uses_var(loads[l], lane))
            shared = shared_by(s, block, loads[l], &group);
    if (shared == NULL || shared->var == lane)
        return found;
    const tl_loop_ref loop = loop_of_result(s, block, out, shared, loops);
    for (int l = 0; l + 2 < loops->count; l++)
        for (int64_t m = 2; tl_same_loop(loops->loops[l], loop) && m <= MOST_MEMBERS; m++)
            if (group % m == 0)
                found = (members){ .count = m, .loop = l };
    return found;
}

tl_status tl_sketch_window_from(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, int first,
                                tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, anchor);
    const tl_buffer *result = block->stores[0].buffer;
    const bool is_shuffled = shuffles(s, block, lane_of(s, block)),
               is_stream = sums_streams(s, block);
    int lanes = tl_target_lanes(s->target, result->dtype);
    tl_loop_list loops, outer = { 0 };
    if (!tl_sketch_reads_by_axes(s, tl_schedule_get_block(s, out), result))
        return tl_refuse(diag, "default schedule", block->name, "has an epilogue across its axes");
    TL_TRY(tl_sketch_loops(s, out, first, &loops, diag));
    /* the innermost loop is the contiguous one, the one before it is tiled; several vectors make up for a short row */
    tl_loop_ref vector = loops.loops[loops.count - 1], reduce, row[2] = { { 0 } }, split[3] = { 0 },
                member[2] = { { 0 } };
    int64_t width = tl_sketch_extent(s, vector), length = 1, rows = 1;
    const int64_t registers = tl_isa_infos[s->target->isa].vector_registers - 2;
    /* sums, and what they add; products in a loop take that from memory, beside the factor that they share */
    const bool is_rolled = !is_shuffled && !is_stream && sums_products(block) &&
                           tl_sketch_points(block, TL_ITER_REDUCE) > LARGEST_WINDOW;
    const members group = find_members(s, block, tl_schedule_get_block(s, out), &loops);
    const int64_t most = group.count > 1 ? (registers - 1 - group.count) / group.count
                         : is_rolled     ? registers
                                         : registers / 2;
    const int64_t suggested = is_rolled || group.count > 1 ? tl_min64(ROLLED_ROWS, most)
                              : reads_apart(s, block)      ? STREAM_ROWS
                                                           : MOST_ROWS;
    if (width == 1)
        return tl_refuse(diag, "default schedule", block->name,
                         "has an innermost loop that runs once");
    if (loops.count > 1) {
        length = tl_sketch_extent(s, loops.loops[loops.count - 2]);
        rows = tl_decide_range(s, block->name, "rows", 1, tl_min64(length, most),
                               tile_rows(length, is_shuffled ? most
                                                 : is_stream ? STREAM_ROWS
                                                             : suggested));
        TL_TRY(tl_split(s, loops.loops[loops.count - 2], (int64_t[]){ 0, rows }, 2, row, diag));
    }
    int64_t columns = tl_decide_range(s, block->name, "columns", 1,
                                      tl_max64(1, tl_min64(most / rows, width / lanes)),
                                      tl_max64(1, tl_min64(suggested / rows, width / lanes)));
    if (columns > 1) {
        TL_TRY(tl_split(s, vector, (int64_t[]){ 0, columns, lanes }, 3, split, diag));
    } else if (width > lanes) {
        columns = 1;
        TL_TRY(tl_split(s, vector, (int64_t[]){ 0, lanes }, 2, split, diag));
        split[2] = split[1];
        split[1] = (tl_loop_ref){ 0 };
    } else {
        columns = 1;
        split[2] = vector;
    }
    if (group.count > 1)
        TL_TRY(
            tl_split(s, loops.loops[group.loop], (int64_t[]){ 0, group.count }, 2, member, diag));
    for (int i = 0; i + 2 < loops.count; i++)
        tl_loop_push(&outer, group.count > 1 && i == group.loop ? member[0] : loops.loops[i]);
    tl_loop_push(&outer, row[0]);
    tl_loop_push(&outer, split[0]);
    if (outer.count == 0)
        return tl_refuse(diag, "default schedule", block->name,
                         "has no loop outside its row of registers");
    tl_loop_list all = outer;
    tl_loop_push(&all, member[1]);
    tl_loop_push(&all, row[1]);
    tl_loop_push(&all, split[1]);
    tl_loop_push(&all, split[2]);
    if (all.count > 1)
        TL_TRY(tl_reorder(s, all.loops, all.count, diag));

    TL_TRY(tl_compute_at(s, anchor, outer.loops[outer.count - 1], diag));
    TL_TRY(tl_set_scope(s, result->name, "register", diag));
    block = tl_schedule_get_block(s, anchor);
    const tl_var *lane = lane_of(s, block);
    TL_TRY(tl_sketch_pack_constants(s, anchor, lane, width <= 4 * lanes ? width : lanes, diag));
    int64_t unrolled =
        decide_unroll(s, block, rows * columns * group.count, is_shuffled, is_stream);
    TL_TRY(
        tl_sketch_reduction(s, anchor, first + outer.count, lane, NULL, unrolled, &reduce, diag));
    if (is_shuffled && unrolled > 0 && unrolled < tl_sketch_points(block, TL_ITER_REDUCE))
        TL_TRY(tl_unroll(s, reduce, diag));
    if (member[1].id != 0)
        TL_TRY(tl_unroll(s, member[1], diag));
    if (row[1].id != 0)
        TL_TRY(tl_unroll(s, row[1], diag));
    if (split[1].id != 0)
        TL_TRY(tl_unroll(s, split[1], diag));
    TL_TRY(tl_vectorize(s, split[2], diag));
    TL_TRY(tl_sketch_turn_operands(s, out, first, &outer));
    /* the innermost first: the outer copies it, so that no tail has a test in each lane */
    if (split[0].id != 0 && width % (columns * lanes) != 0)
        TL_TRY(tl_loop_partition(s, split[0], diag));
    if (length % rows != 0)
        TL_TRY(tl_loop_partition(s, row[0], diag));
    return TL_OK;
}
