/* schedule/sketch/sketch_turn_result.c: a map whose lanes would gather what some of its loads read gets copies in their order,
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
 * So ends a convolution in blocks of channels whose result is plain. A plain copy out of blocks needs none: its loops make
 * such squares themselves. (Where nothing lies in blocks that is a transposition: sketch_nest.c.) */
#include "runtime/base/checked.h"
#include "schedule/sketch/sketch_private.h"

enum {
    MOST_DIGITS = 4,      /* of a number of channels, and one for the rest */
    MOST_WRITTEN_OUT = 8, /* iterations inside of a shuffle */
    MOST_APART = 1 << 20, /* copies beyond that make no difference to cores */
};

bool tl_sketch_find_gathered(tl_schedule *s, const tl_block *block, const tl_var *lane,
                             tl_gathered *g)
{
    const tl_expr *loads[32];
    int count = tl_collect_loads(block->stores[0].value, loads, 32);
    *g = (tl_gathered){ 0 };
    if (count >= 32)
        return false;
    for (int l = 0; l < count; l++) {
        int64_t stride = tl_access_stride(s->arena, loads[l]->u.buffer, loads[l]->args, lane);
        bool is_known = false;
        if (stride >= 0 && stride <= TL_NEAR && stride != TL_NOT_AFFINE)
            continue;
        for (int i = 0; i < g->count; i++) {
            is_known |= tl_expr_equal(g->loads[i], loads[l]);
            if (!is_known && g->loads[i]->u.buffer == loads[l]->u.buffer)
                return false; /* one copy serves one order */
        }
        if (is_known)
            continue;
        if (stride == TL_NOT_AFFINE || g->count == TL_MOST_GATHERED)
            return false;
        g->loads[g->count++] = loads[l];
    }
    return g->count > 0;
}

bool tl_sketch_turns(tl_schedule *s, const tl_block *out, const tl_buffer *buffer)
{
    tl_gathered g;
    const tl_var *lane = tl_contiguous_iter(s->arena, out);
    return lane != NULL && tl_sketch_find_gathered(s, out, lane, &g) && g.count == 1 &&
           g.loads[0]->u.buffer == buffer;
}

bool tl_sketch_is_settled(tl_schedule *s, const tl_buffer *buffer, const tl_map *done)
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

/* Two iters that everything goes through as through one, as through a plane of few columns, and the loop over both; NULL where
 * there is none. Its id is 0 where only what is copied lies so, in front of a result with a border. */
typedef struct {
    const tl_var *outer, *inner;
    tl_loop_ref loop;
} small_plane;

/* Whether the access goes through both iters as through one, or through neither. */
static bool goes_through(tl_schedule *s, const tl_buffer *buffer, const tl_expr *const *indices,
                         const tl_var *outer, const tl_var *inner, int64_t columns)
{
    int64_t row = tl_access_stride(s->arena, buffer, indices, outer),
            column = tl_access_stride(s->arena, buffer, indices, inner), whole;
    return row != TL_NOT_AFFINE && column != TL_NOT_AFFINE &&
           !tl_mul_overflows(column, columns, &whole) && row == whole;
}

/* The iter that makes a plane with `inner`, whose rows have fewer places than a vector has lanes, while the plane takes no more
 * vectors than there are rows; NULL: there is none. */
static const tl_iter *find_rows_of_plane(tl_schedule *s, const tl_block *block,
                                         const tl_iter *inner, int64_t vector)
{
    const tl_expr *loads[32];
    const tl_store *store = &block->stores[0];
    const int count = tl_collect_loads(store->value, loads, 32);
    const int64_t columns = tl_max_extent(inner->extent);
    for (int i = 0; columns > 1 && columns < vector && count < 32 && i < block->iter_count; i++) {
        const tl_iter *outer = &block->iters[i];
        int64_t rows = tl_max_extent(outer->extent), places;
        bool fits = outer != inner && rows > 1 && !tl_mul_overflows(rows, columns, &places) &&
                    tl_ceildiv(places, vector) <= rows &&
                    goes_through(s, store->buffer, store->indices, outer->var, inner->var, columns);
        for (int l = 0; l < count && fits; l++)
            fits = goes_through(s, loads[l]->u.buffer, loads[l]->args, outer->var, inner->var,
                                columns);
        if (fits)
            return outer;
    }
    return NULL;
}

/* Makes one loop of those over a small plane whose columns are `inner`, when they stand one in the other. */
static tl_status join_plane(tl_schedule *s, tl_block_ref out, const tl_var *inner, int64_t vector,
                            small_plane *plane, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, out);
    const tl_iter *columns = tl_sketch_iter_of(block, inner);
    tl_loop_list loops;
    *plane = (small_plane){ 0 };
    const tl_iter *rows = columns != NULL ? find_rows_of_plane(s, block, columns, vector) : NULL;
    if (rows == NULL)
        return TL_OK;
    TL_TRY(tl_sketch_loops(s, out, 0, &loops, diag));
    tl_loop_ref pair[2] = { tl_sketch_loop_of(s, rows, &loops),
                            tl_sketch_loop_of(s, columns, &loops) };
    for (int i = 0; i + 1 < loops.count; i++)
        if (tl_sketch_is_fixed(s, loops.loops[i]) && tl_sketch_is_fixed(s, loops.loops[i + 1]) &&
            tl_same_loop(loops.loops[i], pair[0]) && tl_same_loop(loops.loops[i + 1], pair[1])) {
            *plane = (small_plane){ .outer = rows->var, .inner = inner };
            return tl_fuse(s, pair, 2, &plane->loop, diag);
        }
    return TL_OK;
}

/* Copies of what is gathered, inside of `outside` loops of which `place` is the innermost (0: of all, before the map), in the
 * order of the lanes; then the map itself, along `lanes`. */
static tl_status turn(tl_schedule *s, tl_block_ref out, const tl_gathered *g, const tl_var *lane,
                      const small_plane *plane, tl_loop_ref place, int outside, tl_loop_ref lanes,
                      tl_map *done, tl_diag *diag)
{
    const tl_turned_plane kind = plane->outer == NULL   ? TL_NO_PLANE
                                 : plane->inner == lane ? TL_PLANE_ACROSS
                                                        : TL_PLANE_ALONG;
    const int axes = kind == TL_PLANE_ACROSS ? 2 : 1;
    int vector = tl_target_lanes(s->target, g->loads[0]->dtype);
    for (int i = 0; i < g->count; i++) {
        const tl_buffer *buffer = g->loads[i]->u.buffer;
        int axis = tl_sketch_axis_of(s, g->loads[i], lane) - (axes - 1);
        if (kind != TL_NO_PLANE && tl_sketch_axis_of(s, g->loads[i], plane->outer) !=
                                       (kind == TL_PLANE_ACROSS ? axis : buffer->rank - 2))
            return tl_refuse(diag, "default schedule", tl_schedule_get_block(s, out)->name,
                             "has a plane whose axes lie apart");
        tl_block_ref copy;
        TL_TRY(tl_sketch_copy_turned(s, out, buffer, axis, kind, place, outside, &copy, diag));
        tl_map_put(done, tl_schedule_get_block(s, copy)->name, s);
    }
    int64_t extent = tl_sketch_extent(s, lanes);
    tl_loop_ref outer;
    TL_TRY(tl_sketch_vectorize(s, lanes, vector, &outer, diag));
    return outer.id != 0 && extent % vector != 0 ? tl_loop_partition(s, outer, diag) : TL_OK;
}

/* Whether the load takes the iter as it is, on one axis alone. */
static bool is_own_axis(const tl_expr *load, const tl_var *iter)
{
    int uses = 0;
    for (int axis = 0; axis < load->u.buffer->rank; axis++)
        if (tl_expr_uses_var(load->args[axis], iter)) {
            if (load->args[axis]->kind != TL_EXPR_VAR)
                return false;
            uses++;
        }
    return uses <= 1;
}

/* Where the digits of the iter begin that the index takes by division and remainder, in `at` (1: always), ascending. Returns
 * how many; 0: too many, or such as do not divide each other. */
static int find_digits(const tl_expr *e, const tl_var *iter, int64_t extent,
                       int64_t at[MOST_DIGITS])
{
    const tl_expr *stack[64];
    int depth = 0, count = 1;
    at[0] = 1;
    for (stack[depth++] = e; depth > 0;) {
        const tl_expr *top = stack[--depth], *inner = top->arg_count > 0 ? top->args[0] : NULL;
        int64_t size, scale = 1;
        for (int i = 0; i < top->arg_count; i++) {
            if (depth == 64)
                return 0;
            stack[depth++] = top->args[i];
        }
        if ((top->kind != TL_EXPR_FLOORDIV && top->kind != TL_EXPR_FLOORMOD) ||
            !tl_const_int(top->args[1], &size))
            continue;
        if (top->kind == TL_EXPR_FLOORMOD && inner->kind == TL_EXPR_FLOORDIV &&
            tl_const_int(inner->args[1], &scale))
            inner = inner->args[0];
        if (inner->kind != TL_EXPR_VAR || inner->u.var != iter ||
            tl_mul_overflows(size, scale, &size) || size < 1 || extent % size != 0)
            continue;
        int place = 0;
        while (place < count && at[place] < size)
            place++;
        if (place < count && at[place] == size)
            continue;
        if (count == MOST_DIGITS)
            return 0;
        for (int i = count++; i > place; i--)
            at[i] = at[i - 1];
        at[place] = size;
    }
    for (int i = 1; i < count; i++)
        if (at[i] % at[i - 1] != 0)
            return 0;
    return count;
}

/* The loop as one for each digit that the load's indices take, so that they need no division. */
static tl_status split_digits(tl_schedule *s, const tl_expr *load, const tl_var *iter,
                              tl_loop_ref loop, tl_loop_list *out, tl_diag *diag)
{
    int64_t at[MOST_DIGITS], factors[MOST_DIGITS];
    tl_loop_ref parts[MOST_DIGITS];
    const int64_t extent = tl_sketch_extent(s, loop);
    const int count = find_digits(load, iter, extent, at);
    int parts_count = 0;
    for (int i = count - 1; i >= 0; i--) {
        const int64_t size = (i + 1 < count ? at[i + 1] : extent) / at[i];
        if (size > 1)
            factors[parts_count++] = size;
    }
    if (parts_count < 2) {
        tl_loop_push(out, loop);
        return TL_OK;
    }
    factors[0] = 0;
    TL_TRY(tl_split(s, loop, factors, parts_count, parts, diag));
    for (int i = 0; i < parts_count; i++)
        tl_loop_push(out, parts[i]);
    return TL_OK;
}

/* The rows that short lines of the result belong to, one behind the other in what is read, while there is a border between them
 * in the result; NULL: there are no such. Of each line of the caches several rows would write a piece. */
static const tl_iter *rows_of_short_lines(tl_schedule *s, const tl_block *block,
                                          const tl_expr *load, const tl_var *lane)
{
    const int64_t columns = tl_max_extent(tl_sketch_iter_of(block, lane)->extent);
    if (columns * (int64_t)tl_dtype_size(load->dtype) > TL_LINE_BYTES)
        return NULL;
    for (int i = 0; i < block->iter_count; i++) {
        const tl_iter *rows = &block->iters[i];
        if (rows->var != lane && tl_max_extent(rows->extent) > 1 && is_own_axis(load, rows->var) &&
            tl_expr_uses_var(load, rows->var) &&
            goes_through(s, load->u.buffer, load->args, rows->var, lane, columns))
            return rows;
    }
    return NULL;
}

/* The loops of a shuffle, by what they do. */
typedef struct {
    tl_loop_list outside;                  /* go along with what is read, around the copy */
    const tl_iter *shuffled[TL_MAX_LOOPS]; /* of those that take it in another order */
    int shuffled_count;
    tl_loop_ref rows, lanes; /* rows: id 0: they stand outside, or there are none */
    small_plane plane;       /* that the copy goes through, with rows */
    int64_t bytes;           /* copied at a time */
    bool is_page_apart;      /* what is shuffled lies a page apart in the result */
} shuffle_loops;

static void find_shuffle_loops(tl_schedule *s, const tl_block *block, const tl_expr *load,
                               const tl_var *lane, const small_plane *plane,
                               const tl_loop_list *loops, shuffle_loops *found)
{
    const tl_store *store = &block->stores[0];
    const tl_iter *rows = plane->outer == NULL ? rows_of_short_lines(s, block, load, lane) : NULL;
    int64_t apart = 1; /* copies that cores may share */
    *found = (shuffle_loops){ .bytes = tl_buffer_max_bytes(load->u.buffer) };
    for (int i = 0; i < block->iter_count; i++) {
        const tl_iter *iter = &block->iters[i];
        const tl_loop_ref loop = tl_sketch_loop_of(s, iter, loops);
        if (iter->var == lane) {
            found->lanes = plane->loop.id != 0 ? plane->loop : loop;
        } else if (iter == rows) {
            found->rows = loop;
            found->plane = (small_plane){ .outer = iter->var, .inner = lane };
        } else if (plane->loop.id != 0 && iter->var == plane->outer) {
            continue;
        } else if (is_own_axis(load, iter->var)) {
            tl_loop_push(&found->outside, loop);
            apart = tl_min64(apart * tl_min64(tl_sketch_extent(s, loop), MOST_APART), MOST_APART);
            if (tl_expr_uses_var(load, iter->var))
                found->bytes /= tl_sketch_extent(s, loop);
        } else {
            int64_t stride = tl_access_stride(s->arena, store->buffer, store->indices, iter->var),
                    size = (int64_t)tl_dtype_size(load->dtype);
            found->is_page_apart |= stride != TL_NOT_AFFINE && stride * size % TL_PAGE_BYTES == 0;
            found->shuffled[found->shuffled_count++] = iter;
        }
    }
    if (found->rows.id != 0 && apart < s->target->cores) {
        tl_loop_push(&found->outside, found->rows);
        found->bytes /= tl_sketch_extent(s, found->rows);
        found->rows = (tl_loop_ref){ 0 };
    }
}

/* A map that takes channels in another order (a channel shuffle), from blocks: for each place of the loops that go along
 * with what is read, all of its channels are turned around, and then taken in order.
 *
 *     for n, oh                                         parallel
 *       for co0, squares of 16 channels x 16 columns
 *         t[co0, co1, ow] = x[n, co0, oh, ow, co1]
 *       for c                                           in whatever order, a loop for each digit of it
 *         for ow                                        vectorized
 *           y[n, c, oh, ow] = t[c % 2*8 + c//16 ..., ow]
 *
 * Of short rows that do not follow each other in the result, the loop over them stands inside. */
static tl_status turn_shuffle(tl_schedule *s, tl_block_ref out, const tl_gathered *g,
                              const tl_var *lane, const small_plane *plane, tl_map *done,
                              tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, out);
    const tl_expr *load = g->loads[0];
    const int axis = axis_of(load, lane);
    shuffle_loops found;
    tl_loop_list loops, order;
    TL_TRY(tl_sketch_loops(s, out, 0, &loops, diag));
    if (axis < 0 || axis == load->u.buffer->rank - 1 || tl_buffer_max_bytes(load->u.buffer) == 0 ||
        loops.count + (plane->loop.id != 0) != block->iter_count ||
        tl_block_instances(block) < tl_buffer_max_elements(load->u.buffer))
        return tl_refuse(diag, "default schedule", block->name, "gathers nothing that is turned");
    find_shuffle_loops(s, block, load, lane, plane, &loops, &found);
    if (found.outside.count == 0 || found.shuffled_count == 0 || found.lanes.id == 0 ||
        found.bytes > s->target->l2_bytes / 2)
        return tl_refuse(diag, "default schedule", block->name, "has no rows to turn around");
    if (!tl_decide_range(s, block->name, "turn", 0, 1, 1))
        return tl_refuse(diag, "default schedule", block->name, "gathers by decision");
    if (found
            .is_page_apart) /* rows of all channels would meet in few sets of the caches: plane by plane */
        return turn(s, out, g, lane, plane, found.lanes, 0, found.lanes, done, diag);
    order = found.outside;
    for (int i = 0; i < found.shuffled_count; i++)
        TL_TRY(split_digits(s, load, found.shuffled[i]->var,
                            tl_sketch_loop_of(s, found.shuffled[i], &loops), &order, diag));
    tl_loop_push(&order, found.rows);
    tl_loop_ref written_out = order.loops[order.count - 1];
    tl_loop_push(&order, found.lanes);
    TL_TRY(tl_reorder(s, order.loops, order.count, diag));
    const small_plane *copied = found.rows.id != 0 ? &found.plane : plane;
    TL_TRY(turn(s, out, g, lane, copied, found.outside.loops[found.outside.count - 1],
                found.outside.count, found.lanes, done, diag));
    return tl_sketch_extent(s, written_out) <= MOST_WRITTEN_OUT ? tl_unroll(s, written_out, diag)
                                                                : TL_OK;
}

/* A plain copy out of blocks: the loop over `rows`, split in blocks of `size`, and that over `lanes` make squares. */
static tl_status turn_blocks(tl_schedule *s, tl_block_ref out, const tl_loop_list *loops,
                             tl_loop_ref rows, int64_t size, tl_loop_ref lanes, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, out);
    int64_t extent = tl_sketch_extent(s, lanes),
            vector = tl_target_lanes(s->target, block->stores[0].buffer->dtype),
            width = tl_min64(vector, extent);
    tl_loop_ref across[2], along[2];
    tl_loop_list order = { 0 };
    if (size > vector)
        return tl_refuse(diag, "default schedule", block->name, "has blocks wider than a vector");
    if (!tl_decide_range(s, block->name, "turn", 0, 1, 1))
        return tl_refuse(diag, "default schedule", block->name, "gathers by decision");
    TL_TRY(tl_split(s, rows, (int64_t[]){ 0, size }, 2, along, diag));
    TL_TRY(tl_split(s, lanes, (int64_t[]){ 0, width }, 2, across, diag));
    for (int i = 0; i < loops->count; i++)
        if (tl_same_loop(loops->loops[i], rows))
            tl_loop_push(&order, along[0]);
        else if (!tl_same_loop(loops->loops[i], lanes))
            tl_loop_push(&order, loops->loops[i]);
    tl_loop_push(&order, across[0]);
    tl_loop_push(&order, along[1]);
    tl_loop_push(&order, across[1]);
    TL_TRY(tl_reorder(s, order.loops, order.count, diag));
    TL_TRY(tl_unroll(s, along[1], diag));
    TL_TRY(tl_vectorize(s, across[1], diag));
    return extent % width != 0 ? tl_loop_partition(s, across[0], diag) : TL_OK;
}

/* The iter that all loads are contiguous along in blocks of `size` (0: along all of it); NULL: they are not alike. */
static const tl_var *common_rows(tl_schedule *s, const tl_gathered *g, const tl_var *lane,
                                 tl_dtype dtype, const tl_map *done, int64_t *size)
{
    const tl_var *along = NULL;
    for (int i = 0; i < g->count; i++) {
        int64_t own_size = 0;
        const tl_expr *load = g->loads[i];
        const tl_var *own =
            tl_sketch_axis_of(s, load, lane) >= 0 ? contiguous_in(load, &own_size) : NULL;
        if (own == NULL || own == lane || !tl_sketch_is_settled(s, load->u.buffer, done) ||
            load->dtype != dtype || (i > 0 && (own != along || own_size != *size)))
            return NULL;
        along = own;
        *size = own_size;
    }
    return along;
}

tl_status tl_sketch_turn_result(tl_schedule *s, tl_block_ref out, tl_map *done, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, out);
    const tl_var *lane = tl_contiguous_iter(s->arena, block);
    tl_gathered g;
    int64_t size = 0;
    if (!tl_block_is_spatial(block) || block->call != NULL || block->predicate != NULL ||
        block->store_count != 1 || lane == NULL || !tl_sketch_find_gathered(s, block, lane, &g) ||
        tl_sketch_shared_loops(s, out) > 0 || tl_sketch_begins_turned_rows(s, block))
        return tl_refuse(diag, "default schedule", block->name, "gathers nothing along lanes");
    tl_dtype dtype = block->stores[0].buffer->dtype;
    const tl_var *along = common_rows(s, &g, lane, dtype, done, &size);
    bool is_copy = block->stores[0].value->kind == TL_EXPR_LOAD;
    if (is_copy && along != NULL && size == 0)
        return tl_refuse(diag, "default schedule", block->name, "gathers nothing that is turned");
    const int64_t vector = tl_target_lanes(s->target, dtype);
    small_plane plane;
    TL_TRY(join_plane(s, out, lane, vector, &plane, diag));
    if (plane.loop.id == 0 && along != NULL && size == 0)
        TL_TRY(join_plane(s, out, along, vector, &plane, diag));
    block = tl_schedule_get_block(s, out);
    if (along == NULL && g.count == 1 && tl_sketch_is_settled(s, g.loads[0]->u.buffer, done))
        return turn_shuffle(s, out, &g, lane, &plane, done, diag);
    if (along == NULL)
        return tl_refuse(diag, "default schedule", block->name, "gathers nothing that is turned");
    tl_loop_list loops, order = { 0 };
    TL_TRY(tl_sketch_loops(s, out, 0, &loops, diag));
    tl_loop_ref lanes = tl_sketch_loop_of(s, tl_sketch_iter_of(block, lane), &loops),
                rows = tl_sketch_loop_of(s, tl_sketch_iter_of(block, along), &loops);
    if (plane.loop.id != 0)
        *(plane.inner == lane ? &lanes : &rows) = plane.loop;
    tl_loop_ref parts[2] = { { 0 } };
    if (lanes.id == 0 || rows.id == 0 || (size > 0 && tl_sketch_extent(s, rows) % size != 0))
        return tl_refuse(diag, "default schedule", block->name, "is not made of whole squares");
    if (is_copy)
        return turn_blocks(s, out, &loops, rows, size, lanes, diag);
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
    return turn(s, out, &g, lane, &plane, place, outside, lanes, done, diag);
}
