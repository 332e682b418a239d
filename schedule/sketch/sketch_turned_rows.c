/* schedule/sketch/sketch_turned_rows.c: short rows that lie the other way round in memory: lanes go along the rows.
 *
 *     sum[row] = sum over c of x[c, row]              a row in each lane
 *     z[c, row] = (x[c, row] - sum[row]/C)*w[c]
 *     y[row, c] = z[c, row]                           squares, turned around in registers
 *
 * Turned around at the end instead of at the beginning. A row of few elements has no lanes of its own, or leaves most of them
 * empty, and its sums end in a step for each doubling of the lanes. What a block of rows reads has to stay in L1, for each stage
 * goes through it again. Elements of a row in an order that makes no squares (a channel shuffle) would be gathered: here it is
 * all the same. (Where x is more than a load, it is computed into a buffer as it lies.)
 *
 * Rows in order that are shorter than a vector are turned around first, for each stage that goes through them:
 *
 *     t[c, row] = x[row, c]                           squares
 *     sum[row] = sum over c of t[c, row]                                                                                   */
#include <string.h>
#include "runtime/base/checked.h"
#include "schedule/sketch/sketch_private.h"

enum {
    LONG_ROW = 48,           /* elements: from so many on, rows have lanes enough of their own, */
    LONG_ODD_ROW = 96,       /* of which the last vector is not full, */
    LONG_GATHERED_ROW = 256, /* which would have to be gathered */
    MOST_ROWS = 128,         /* at once */
    SHORT_SIDE = 4,          /* of a square; what is shorter is shuffled */
};

/* How far apart neighbours along the iter are in what the map reads, at most; TL_NOT_AFFINE: in a load of no stride. */
static int64_t most_apart(tl_schedule *s, const tl_block *map, const tl_var *iter)
{
    const tl_expr *loads[16];
    const int count = tl_collect_loads(map->stores[0].value, loads, 16);
    int64_t most = 0;
    for (int l = 0; l < count; l++) {
        int64_t stride = tl_access_stride(s->arena, loads[l]->u.buffer, loads[l]->args, iter);
        if (stride == TL_NOT_AFFINE || stride < 0)
            return TL_NOT_AFFINE;
        most = tl_max64(most, stride);
    }
    return count == 16 ? TL_NOT_AFFINE : most;
}

/* The iter along which all that the map reads lies side by side, while lanes along its own result lie apart in some; NULL: there
 * is none. */
static const tl_iter *turned_along(tl_schedule *s, const tl_block *map)
{
    const tl_var *lane = tl_contiguous_iter(s->arena, map);
    if (map->store_count != 1 || !tl_block_is_spatial(map) || lane == NULL)
        return NULL;
    const int64_t apart = most_apart(s, map, lane);
    for (int i = 0; i < map->iter_count; i++)
        if ((apart == TL_NOT_AFFINE || apart > TL_NEAR) &&
            tl_max_extent(map->iters[i].extent) > 1 && most_apart(s, map, map->iters[i].var) == 1)
            return &map->iters[i];
    return NULL;
}

bool tl_sketch_turns_rows(tl_schedule *s, const tl_block *map)
{
    return turned_along(s, map) != NULL;
}

/* Whether rows of so many elements are gone through in lanes. */
static bool suits(tl_schedule *s, const tl_block *turned, int64_t length)
{
    const int lanes = tl_target_lanes(s->target, turned->stores[0].buffer->dtype);
    const bool is_gathered =
        most_apart(s, turned, tl_contiguous_iter(s->arena, turned)) == TL_NOT_AFFINE;
    const bool fills = tl_max_extent(turned_along(s, turned)->extent) >= lanes;
    return length < LONG_ROW || (is_gathered && length < LONG_GATHERED_ROW) ||
           (fills && length % lanes != 0 && length < LONG_ODD_ROW);
}

bool tl_sketch_begins_turned_rows(tl_schedule *s, const tl_block *map)
{
    const tl_block **readers;
    bool sums = false, maps = false;
    if (map->stores[0].buffer->role != TL_ROLE_LOCAL || turned_along(s, map) == NULL ||
        !suits(s, map,
               tl_max_extent(tl_sketch_iter_of(map, tl_contiguous_iter(s->arena, map))->extent)))
        return false;
    const int count = tl_readers_of(s->arena, s->program->body, map->stores[0].buffer, &readers);
    for (int i = 0; i < count; i++) {
        sums |= tl_block_is_reduction(readers[i]);
        maps |= tl_block_is_spatial(readers[i]);
    }
    return sums && maps;
}

/* Whether so many rows fit half of L1: what is read, or what is written. */
static bool fits(const tl_target *target, int64_t rows, int64_t length)
{
    int64_t bytes = rows * (int64_t)sizeof(float);
    return !tl_mul_overflows(bytes, length, &bytes) && bytes <= target->l1_bytes / 2;
}

/* The stage that turns around what `out` reads and is not in `done` (NULL: in nothing); NULL: there is none. */
static const tl_block *find_turned(tl_schedule *s, const tl_block *out, const tl_map *done)
{
    const tl_expr *loads[32];
    const tl_block **writers;
    const int count = tl_collect_loads(out->stores[0].value, loads, 32);
    for (int l = 0; l < count; l++)
        if (loads[l]->u.buffer->role == TL_ROLE_LOCAL &&
            tl_writers_of(s->arena, s->program->body, loads[l]->u.buffer, &writers) == 1 &&
            writers[0]->call == NULL && (done == NULL || !tl_map_has(done, writers[0]->name)) &&
            tl_sketch_turns_rows(s, writers[0]))
            return writers[0];
    return NULL;
}

/* Whether nobody else has to schedule what makes the buffer; done NULL: what is no local. */
static bool is_there(tl_schedule *s, const tl_buffer *buffer, const tl_map *done)
{
    return buffer->role == TL_ROLE_INPUT ||
           (buffer->role == TL_ROLE_LOCAL && done != NULL && tl_sketch_is_settled(s, buffer, done));
}

/* What `out` reads row by row in the order in which it lies, rows of `length` elements, fewer than a vector has, one behind the
 * other; NULL: nothing that is there. */
static const tl_buffer *find_in_order(tl_schedule *s, const tl_block *out, int64_t length,
                                      const tl_map *done)
{
    const tl_expr *loads[32];
    const tl_var *lane = tl_contiguous_iter(s->arena, out);
    const int count = tl_collect_loads(out->stores[0].value, loads, 32);
    for (int l = 0; lane != NULL && count < 32 && l < count; l++) {
        const tl_buffer *buffer = loads[l]->u.buffer;
        if (length >= tl_target_lanes(s->target, buffer->dtype) || buffer->dtype != TL_F32 ||
            buffer->rank < 2 || !is_there(s, buffer, done) ||
            tl_access_stride(s->arena, buffer, loads[l]->args, lane) != 1)
            continue;
        for (int i = 0; i < out->iter_count; i++)
            if (tl_max_extent(out->iters[i].extent) > 1 &&
                tl_sketch_axis_of(s, loads[l], out->iters[i].var) == buffer->rank - 2 &&
                tl_access_stride(s->arena, buffer, loads[l]->args, out->iters[i].var) == length)
                return buffer;
    }
    return NULL;
}

bool tl_sketch_is_of_turned_row(tl_schedule *s, const tl_block *block, const tl_block *reader)
{
    const int64_t rows = tl_block_instances(block);
    if (reader->store_count == 0 || rows < 1 || tl_block_instances(reader) / rows < 2)
        return false;
    const int64_t length = tl_block_instances(reader) / rows;
    const tl_block *turned = find_turned(s, reader, NULL);
    return turned != NULL ? suits(s, turned, length)
                          : find_in_order(s, reader, length, NULL) != NULL;
}

/* The iter of `out` that the loop moves; NULL: none alone. */
static const tl_iter *iter_of(tl_schedule *s, const tl_block *out, const tl_loop_list *loops,
                              tl_loop_ref loop)
{
    for (int i = 0; i < out->iter_count; i++)
        if (tl_same_loop(tl_sketch_loop_of(s, &out->iters[i], loops), loop))
            return &out->iters[i];
    return NULL;
}

/* The axis of what `turned` makes that is the rows of `out`, wherever it reads that; -1: there is no such. */
static int axis_of_rows(tl_schedule *s, const tl_block *turned, const tl_block *out,
                        const tl_iter *row)
{
    const tl_expr *loads[32];
    const tl_store *store = &turned->stores[0];
    int found = -1, count = tl_collect_loads(out->stores[0].value, loads, 32);
    for (int l = 0; l < count; l++) {
        if (loads[l]->u.buffer != store->buffer)
            continue;
        int axis = tl_sketch_axis_of(s, loads[l], row->var);
        if (axis < 0 || (found >= 0 && axis != found))
            return -1;
        found = axis;
    }
    if (count == 32 || found < 0 || store->indices[found]->kind != TL_EXPR_VAR ||
        store->indices[found]->u.var != turned_along(s, turned)->var)
        return -1;
    return found;
}

/* The axis of the result that is the rows; -1: there is no such. */
static int axis_of_result(const tl_block *out, const tl_iter *row)
{
    const tl_store *store = &out->stores[0];
    for (int axis = 0; axis < store->buffer->rank; axis++)
        if (store->indices[axis]->kind == TL_EXPR_VAR && store->indices[axis]->u.var == row->var)
            return axis;
    return -1;
}

/* Has what is turned around (NULL: nothing) read as it lies, and what `out` computes as that; `copy` writes the result then. */
static tl_status turn_at_end(tl_schedule *s, tl_block_ref out, const tl_loop_list *loops,
                             const tl_block *turned, tl_block_ref *copy, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, out);
    const tl_iter *row = iter_of(s, block, loops, loops->loops[loops->count - 2]);
    const int result = row != NULL ? axis_of_result(block, row) : -1,
              axis = turned != NULL && row != NULL ? axis_of_rows(s, turned, block, row) : -1;
    if (result < 0 || (turned != NULL && axis < 0))
        return tl_refuse(diag, "default schedule", block->name, "has rows that lie as they are");
    const char *name = block->name;
    const tl_buffer *rows = turned != NULL ? turned->stores[0].buffer : NULL;
    if (turned != NULL && turned->stores[0].value->kind == TL_EXPR_LOAD)
        TL_TRY(tl_compute_inline(s, tl_schedule_name_block(s, turned->name), diag));
    else if (turned != NULL) /* computed once, as it lies */
        TL_TRY(tl_transform_layout(s, rows->name,
                                   tl_sketch_axes_last(s->arena, rows->rank, axis, 1), diag));
    TL_TRY(tl_cache_write(s, out, "global", copy, diag));
    const tl_buffer *local =
        tl_schedule_get_block(s, tl_schedule_name_block(s, name))->stores[0].buffer;
    return tl_transform_layout(s, local->name,
                               tl_sketch_axes_last(s->arena, local->rank, result, 1), diag);
}

/* How many rows go together: all of a loop where it is short, else whole lines of them, so many that divide the loop if there are
 * such. Each vector of rows has sums of its own, which do not wait for each other. */
static int64_t choose_rows(tl_schedule *s, int64_t extent, int64_t length)
{
    const int64_t line = TL_LINE_BYTES / (int64_t)sizeof(float);
    int64_t best = line;
    if (extent <= MOST_ROWS && fits(s->target, extent, length))
        return extent;
    for (int64_t rows = line; rows <= MOST_ROWS; rows += line)
        if (fits(s->target, rows, length) && (extent % rows == 0 || extent % best != 0))
            best = rows;
    return tl_min64(best, extent);
}

/* A copy of the rows that a stage inside of `first` loops reads in order, turned around. */
static tl_status turn_source(tl_schedule *s, tl_block_ref stage, const tl_buffer *source, int first,
                             tl_diag *diag)
{
    const tl_expr *loads[32];
    const tl_block *block = tl_schedule_get_block(s, stage);
    const int count = tl_collect_loads(block->stores[0].value, loads, 32);
    tl_loop_list loops;
    tl_block_ref copy;
    bool reads = false;
    for (int l = 0; l < count && l < 32; l++)
        reads |= loads[l]->u.buffer == source;
    if (!reads)
        return TL_OK;
    TL_TRY(tl_sketch_loops(s, stage, 0, &loops, diag));
    return tl_sketch_copy_turned(s, stage, source, source->rank - 2, TL_NO_PLANE,
                                 loops.loops[first > 0 ? first - 1 : 0], first, &copy, diag);
}

/* `source`: what they read in order, turned around for each; NULL: nothing. */
static tl_status schedule_stages(tl_schedule *s, const tl_row_stages *stages,
                                 const tl_buffer *source, int first, tl_diag *diag)
{
    for (int i = 0; i < stages->count; i++) {
        tl_block_ref ref = tl_schedule_name_block(s, stages->names[i]);
        if (source != NULL)
            TL_TRY(turn_source(s, ref, source, first, diag));
        tl_schedule_state before = tl_schedule_save(s);
        tl_status status = tl_block_is_reduction(tl_schedule_get_block(s, ref))
                               ? tl_sketch_sum_in_rows(s, ref, first, NULL)
                               : TL_ILLEGAL_SCHEDULE;
        if (status == TL_ILLEGAL_SCHEDULE) {
            tl_schedule_restore(s, &before);
            status = tl_sketch_nest(s, ref, first, diag);
        }
        TL_TRY(status);
    }
    return TL_OK;
}

/* The result of a block of rows, in order. Rows too short for squares go on in each other: lanes are shuffled out of a vector for
 * each of their elements. */
static tl_status write_rows(tl_schedule *s, tl_block_ref copy, int first, tl_diag *diag)
{
    tl_loop_list loops;
    TL_TRY(tl_sketch_loops(s, copy, first, &loops, diag));
    const tl_block *block = tl_schedule_get_block(s, copy);
    const int lanes = tl_target_lanes(s->target, block->stores[0].buffer->dtype);
    const tl_loop_ref *last = &loops.loops[loops.count - 1];
    if (loops.count < 2 || tl_sketch_extent(s, last[0]) >= SHORT_SIDE)
        return tl_sketch_nest(s, copy, first, diag);
    tl_loop_ref all, outer;
    TL_TRY(tl_fuse(s, (tl_loop_ref[]){ last[-1], last[0] }, 2, &all, diag));
    const int64_t extent = tl_sketch_extent(s, all);
    TL_TRY(tl_sketch_vectorize(s, all, lanes, &outer, diag));
    if (outer.id == 0)
        return TL_OK;
    if (extent % lanes != 0)
        TL_TRY(tl_loop_partition(s, outer, diag));
    return tl_unroll(s, outer, diag);
}

tl_status tl_sketch_turned_rows(tl_schedule *s, tl_block_ref out, tl_map *done, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, out);
    const char *name = block->name;
    tl_loop_list loops;
    TL_TRY(tl_sketch_loops(s, out, 0, &loops, diag));
    const int last = loops.count - 1;
    const int64_t length = tl_sketch_extent(s, loops.loops[last]);
    if (last < 1 || !tl_block_is_spatial(block) || block->store_count != 1 ||
        block->predicate != NULL || length < 2 || tl_sketch_extent(s, loops.loops[last - 1]) < 2 ||
        !tl_sketch_is_fixed(s, loops.loops[last]) || !tl_sketch_is_fixed(s, loops.loops[last - 1]))
        return tl_refuse(diag, "default schedule", name, "has no short rows");
    const tl_block *turned = find_turned(s, block, done);
    const tl_buffer *source = turned == NULL ? find_in_order(s, block, length, done) : NULL;
    if ((turned != NULL ? !suits(s, turned, length) : source == NULL) ||
        !tl_decide_range(s, name, "turn_rows", 0, 1, 1))
        return tl_refuse(diag, "default schedule", name, "has rows that nothing turns around");
    tl_block_ref copy;
    TL_TRY(turn_at_end(s, out, &loops, turned, &copy, diag));
    TL_TRY(tl_sketch_loops(s, copy, 0, &loops, diag));
    tl_loop_ref row[2] = { loops.loops[last - 1] };
    const int64_t extent = tl_sketch_extent(s, row[0]), likely = choose_rows(s, extent, length);
    const int64_t rows = tl_decide_range(s, name, "rows", 1, extent, likely);
    TL_TRY(tl_split(s, row[0], (int64_t[]){ 0, rows }, 2, row, diag));
    tl_row_stages stages, tails;
    tl_sketch_bring_stages(s, copy, name, row[0], done, &stages);
    if (stages.count < 2 || strcmp(stages.names[0], name) != 0)
        return tl_refuse(diag, "default schedule", name, "computes what no block of rows takes");
    if (extent % rows != 0) {
        TL_TRY(tl_sketch_cut_tail(s, row[0], &tails, diag));
        TL_TRY(schedule_stages(s, &tails, source, last - 1, diag));
    }
    TL_TRY(schedule_stages(s, &stages, source, last, diag));
    TL_TRY(write_rows(s, copy, last, diag));
    for (int i = 0; i < stages.count; i++)
        tl_map_put(done, stages.names[i], s);
    return TL_OK;
}
