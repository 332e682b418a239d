/* schedule/sketch/sketch_contraction.c: the default schedule of matrix products and dense convolutions.
 *
 *     for <tiles of columns, tiles of lines>           parallel
 *       for <tiles of rows>
 *         acc[R][C vectors] = init                     registers
 *         for <reduce>                                 rolled
 *           for r in R, c in C                         unrolled
 *             acc[r][c] += stream[r] * panel[c]        vectorized
 *         result[r][c] = epilogue(acc[r][c])
 *
 * Open: the tile; whether an axis of the window is written out in it, where rows share elements (sketch_taps.c); whether the
 * panel's loops stand outside the stream's or inside; how many tiles of the inner kind are taken together, before the outer
 * kind takes a step (what they read stays in L2); how far the reduction is unrolled; packing and prefetching; of a product with
 * one row, whose weights come from memory, whether each of the tile's vectors is a stream of its own.
 *
 * The panel is the operand that moves with the result's contiguous iter; sketch_pack.c lays it out in the order in which
 * this nest reads it. R, which may cover several short lines, and C come from tl_choose_tile. */
#include "runtime/base/checked.h"
#include "schedule/dependence.h"
#include "schedule/sketch/sketch_private.h"

enum {
    PREFETCH_STEPS = 8, /* reduction steps ahead where the panel is in L2: 4 to 32 measured alike */
    STREAM_STEPS = 32,  /* where it comes from memory */
    AHEAD = 8,          /* a panel is fetched this part of L2 ahead, or one panel */
    MOST_UNROLLED = 128,    /* multiply-adds written out in the reduction's loop */
    SHORT_SUM = 128,        /* terms: a sum of no more is over before a line has come from memory */
    MOST_OUTSIDE = 1 << 20, /* iterations beyond that make no difference to cores */
};

/* What the tiling needs to know of the result block's loops. */
typedef struct {
    tl_loop_ref vector;    /* along which the result is contiguous */
    tl_loop_ref column;    /* another that moves with the panel; id 0: none */
    tl_loop_ref row, line; /* the innermost two that move with the stream; id 0: none */
    const tl_var *row_iter, *line_iter; /* the anchor's iters that they move; NULL: more than one */
    int64_t vector_extent, column_extent, row_extent, line_extent;
    bool panel_varies, row_varies, line_varies; /* a dim decides the extent: no tile divides it */
    tl_loop_ref column_tiles, row_tiles, line_tiles; /* the loops over tiles, once split */
    unsigned stream; /* bit i: loop i of the list moves only with the stream */
} result_loops;

/* Whether the anchor's axis `axis` of the result moves with the panel, the stream. */
static void classify_axis(const tl_contraction *c, int axis, bool *in_panel, bool *in_stream)
{
    const tl_store *store = &c->block->stores[0];
    *in_panel = *in_stream = false;
    for (int i = 0; i < c->block->iter_count; i++) {
        const tl_var *iter = c->block->iters[i].var;
        if (!tl_expr_uses_var(store->indices[axis], iter))
            continue;
        *in_panel |= tl_expr_uses_var(c->panel, iter);
        *in_stream |= tl_expr_uses_var(c->stream, iter);
    }
}

/* Finds the loops of the result block to tile, through its load of what the anchor computes. */
static bool find_result_loops(tl_schedule *s, const tl_contraction *c, const tl_block *out,
                              const tl_loop_list *loops, result_loops *found)
{
    const tl_buffer *acc = c->block->stores[0].buffer;
    const tl_expr *load = NULL, *loads[32];
    *found =
        (result_loops){ .vector_extent = 1, .column_extent = 1, .row_extent = 1, .line_extent = 1 };
    int count = tl_collect_loads(out->stores[0].value, loads, 32);
    for (int i = 0; i < count; i++)
        if (loads[i]->u.buffer == acc)
            load = loads[i];
    if (load == NULL)
        return false;

    int last = -1; /* the result's axis with the vector iter */
    for (int axis = 0; axis < acc->rank; axis++)
        if (tl_expr_uses_var(c->block->stores[0].indices[axis], c->vector))
            last = axis;

    for (int i = 0; i < out->iter_count; i++) {
        const tl_iter *iter = &out->iters[i];
        int moved = -1, moves = 0;
        int64_t coefficient = 0;
        const tl_expr *rest;
        for (int axis = 0; axis < acc->rank; axis++)
            if (tl_expr_uses_var(load->args[axis], iter->var)) {
                moved = axis;
                moves++;
            }
        tl_loop_ref loop = tl_sketch_loop_of(s, iter, loops);
        int64_t extent = tl_sketch_extent(s, loop);
        if (moves != 1 || loop.id == 0 ||
            !tl_affine_in(s->arena, load->args[moved], iter->var, &coefficient, &rest))
            continue;
        bool in_panel, in_stream;
        classify_axis(c, moved, &in_panel, &in_stream);
        if (moved == last && coefficient == 1) {
            found->vector = loop;
            found->vector_extent = extent;
        } else if (in_panel && !in_stream && moved != last && coefficient == 1) {
            found->column = loop;
            found->column_extent = extent;
        } else if (in_stream && !in_panel) {
            for (int l = 0; l < loops->count; l++)
                if (loops->loops[l].id == loop.id)
                    found->stream |= 1u << l;
            if (coefficient == 1 && extent > 1) {
                const tl_expr *index = c->block->stores[0].indices[moved];
                found->line = found->row;
                found->line_iter = found->row_iter;
                found->line_extent = found->row_extent;
                found->row = loop;
                found->row_iter = index->kind == TL_EXPR_VAR ? index->u.var : NULL;
                found->row_extent = extent;
            }
        }
    }
    return found->vector.id != 0;
}

/* How many times a loop over tiles runs; 1 when there is none. */
static int64_t count_tiles(int64_t extent, int64_t size)
{
    return tl_ceildiv(extent, size);
}

/* Whether the result is written along its rows: these lie pages apart, more of them than L2 holds, and a sum is over before a
 * line is there. Down a column each tile of rows asks for a line of another page. All panels stay in L2 then. */
static bool writes_rows(tl_schedule *s, const tl_block *out, const tl_loop_list *loops,
                        const result_loops *found, int64_t steps, int64_t width)
{
    const tl_store *store = &out->stores[0];
    int64_t size = (int64_t)tl_dtype_size(store->buffer->dtype), pitch = 0, panel, rows;
    for (int i = 0; i < out->iter_count; i++)
        if (out->iters[i].kind == TL_ITER_SPATIAL &&
            tl_same_loop(tl_sketch_loop_of(s, &out->iters[i], loops), found->row))
            pitch = tl_access_stride(s->arena, store->buffer, store->indices, out->iters[i].var);
    return pitch != TL_NOT_AFFINE && pitch * size >= TL_PAGE_BYTES && steps <= SHORT_SUM &&
           !tl_mul_overflows(steps * size, width, &panel) && panel <= s->target->l2_bytes / 2 &&
           !tl_mul_overflows(pitch * size, found->row_extent, &rows) && rows > s->target->l2_bytes;
}

/* The order of the loops over tiles: whether those of the panel stand inside those of the stream, and how many tiles of
 * the inner kind make a block (0: all). Only whole blocks of whole tiles are on offer. */
typedef struct {
    bool panel_inside;
    int64_t block;
    int images; /* the loop that goes outside of all others; -1: none */
} tile_order;

/* The loop over images of a batch, which go one after the other through all of the panel where what they are made of does not
 * stay in the last cache together, but each does, and the panel: with panels outside, each would fetch all images from memory.
 * -1: there is none, or no need. */
static int find_images(tl_schedule *s, const tl_contraction *c, const tl_loop_list *loops,
                       const result_loops *found)
{
    const int64_t cache = s->target->l3_bytes, all = tl_buffer_max_bytes(c->stream->u.buffer);
    for (int i = 0; i < loops->count; i++) {
        tl_loop_ref loop = loops->loops[i];
        int64_t extent = tl_sketch_extent(s, loop);
        if ((found->stream & (1u << i)) == 0 || extent < 2 || tl_same_loop(loop, found->row) ||
            tl_same_loop(loop, found->line))
            continue;
        bool meets_memory = all > cache / 2 && all / extent <= cache / 4 &&
                            tl_buffer_max_bytes(c->panel->u.buffer) <= cache / 4;
        return meets_memory ? i : -1;
    }
    return -1;
}

static tile_order decide_order(tl_schedule *s, const char *name, const result_loops *found,
                               tl_register_tile t, int64_t panel_extent, int64_t panel_size,
                               bool along_rows)
{
    tile_order order = { .images = -1 };
    int64_t panels = count_tiles(panel_extent, panel_size), options[16];
    int64_t rows = count_tiles(found->row_extent, t.rows);
    int count = 0;
    if (panels < 2 || rows * count_tiles(found->line_extent, t.lines) < 2)
        return order;
    order.panel_inside = tl_decide_range(s, name, "panel_inside", 0, 1, along_rows) != 0;
    int64_t tiles = order.panel_inside ? panels : rows;
    bool whole = order.panel_inside ? !found->panel_varies && panel_extent % panel_size == 0
                                    : !found->row_varies && found->row_extent % t.rows == 0;
    options[count++] = 0;
    for (int64_t block = 2; whole && block < tiles && count < 16; block++)
        if (tiles % block == 0)
            options[count++] = block;
    order.block = tl_decide(s, name, "block", options, count, 0);
    return order;
}

/* Puts the outer part of `inner`, split in blocks, before the first loop of the list that is one of `others`. */
static tl_status block_loop(tl_schedule *s, tl_loop_ref inner, int64_t block, tl_loop_list *list,
                            const tl_loop_list *others, tl_diag *diag)
{
    tl_loop_ref parts[2];
    tl_loop_list result = { 0 };
    bool placed = false;
    TL_TRY(tl_split(s, inner, (int64_t[]){ 0, block }, 2, parts, diag));
    for (int i = 0; i < list->count; i++) {
        for (int k = 0; k < others->count && !placed; k++)
            if (tl_same_loop(list->loops[i], others->loops[k])) {
                tl_loop_push(&result, parts[0]);
                placed = true;
            }
        tl_loop_push(&result, tl_same_loop(list->loops[i], inner) ? parts[1] : list->loops[i]);
    }
    *list = result;
    return TL_OK;
}

/* Each vector of a tile gets a loop of its own around its lanes: the vectors of a panel lie in as many places. */
static tl_status split_streams(tl_schedule *s, tl_block_ref anchor, const tl_var *vector, int first,
                               int64_t lanes, tl_diag *diag)
{
    tl_loop_list loops;
    tl_loop_ref parts[2];
    const tl_block *block = tl_schedule_get_block(s, anchor);
    TL_TRY(tl_sketch_loops(s, anchor, first, &loops, diag));
    const tl_loop_ref loop = tl_sketch_loop_of(s, tl_sketch_iter_of(block, vector), &loops);
    return loop.id != 0 && tl_sketch_extent(s, loop) > lanes
               ? tl_split(s, loop, (int64_t[]){ 0, lanes }, 2, parts, diag)
               : TL_OK;
}

/* Iterations of the loops outside the innermost one that moves the stream, those over tiles of columns left out. */
static int64_t iterations_around(tl_schedule *s, const tl_loop_list *loops,
                                 const result_loops *found)
{
    int64_t iterations = 1, last = 1;
    for (int i = 0; i < loops->count; i++) {
        tl_loop_ref loop = loops->loops[i];
        if (tl_same_loop(loop, found->vector) || tl_same_loop(loop, found->column))
            continue;
        bool is_row = tl_same_loop(loop, found->row), is_line = tl_same_loop(loop, found->line);
        int64_t extent = tl_min64(tl_sketch_extent(s, is_row    ? found->row_tiles
                                                      : is_line ? found->line_tiles
                                                                : loop),
                                  MOST_OUTSIDE);
        if (is_row || is_line || found->stream & (1u << i)) {
            iterations = tl_min64(iterations * last, MOST_OUTSIDE);
            last = extent;
        } else {
            iterations = tl_min64(iterations * extent, MOST_OUTSIDE);
        }
    }
    return iterations;
}

/* Splits and orders the result's loops; `tile` gets the loops inside a tile (row, column, vector), `outer` the others. */
static tl_status tile_result(tl_schedule *s, const tl_loop_list *loops, result_loops *found,
                             tl_register_tile t, tile_order order, int lanes, bool panel_stays,
                             tl_loop_list *outer, tl_loop_list *tile, tl_diag *diag)
{
    tl_loop_ref row = { 0 }, line = { 0 }, column = { 0 }, vector = found->vector, parts[3];
    tl_loop_ref vector_tiles = { 0 }, column_tiles = found->column;
    found->line_tiles = found->line;
    if (found->row.id != 0) {
        TL_TRY(tl_split(s, found->row, (int64_t[]){ 0, t.rows }, 2, parts, diag));
        found->row_tiles = parts[0];
        row = parts[1];
    }
    if (t.lines > 1) {
        TL_TRY(tl_split(s, found->line, (int64_t[]){ 0, t.lines }, 2, parts, diag));
        found->line_tiles = parts[0];
        line = parts[1];
    }
    bool is_wide = found->vector_extent > lanes || !tl_sketch_is_fixed(s, found->vector);
    if (is_wide && (found->panel_varies || found->vector_extent > t.columns * lanes)) {
        TL_TRY(tl_split(s, found->vector, (int64_t[]){ 0, t.columns * lanes }, 2, parts, diag));
        found->column_tiles = vector_tiles = parts[0];
        vector = parts[1];
    } else if (!is_wide && found->column.id != 0) {
        TL_TRY(tl_split(s, found->column, (int64_t[]){ 0, t.columns }, 2, parts, diag));
        found->column_tiles = column_tiles = parts[0];
        column = parts[1];
    }

    /* outside: what moves the panel, then the stream's loops, so that a panel stays in cache. Tiles of which the last is
     * narrower go inside, around those of a row, where the whole panel stays and loops for all cores are left outside: a
     * nest of its own would end the phase. */
    bool narrower = vector_tiles.id != 0 && !order.panel_inside &&
                    (found->panel_varies || found->vector_extent % (t.columns * lanes) != 0);
    bool inside = narrower && panel_stays && order.block == 0 &&
                  iterations_around(s, loops, found) >= s->target->cores;
    tl_loop_list stream = { 0 }, panel = { 0 };
    tl_loop_list *panel_list = order.panel_inside ? &panel : outer;
    if (order.images >= 0)
        tl_loop_push(outer, loops->loops[order.images]);
    if (narrower && !inside)
        tl_loop_push(outer, vector_tiles);
    for (int i = 0; i < loops->count; i++) {
        tl_loop_ref loop = loops->loops[i];
        if (tl_same_loop(loop, found->row))
            tl_loop_push(&stream, found->row_tiles);
        else if (tl_same_loop(loop, found->line))
            tl_loop_push(&stream, found->line_tiles);
        else if (tl_same_loop(loop, found->vector))
            tl_loop_push(panel_list, narrower ? (tl_loop_ref){ 0 } : vector_tiles);
        else if (tl_same_loop(loop, found->column))
            tl_loop_push(panel_list, column_tiles);
        else if (i != order.images)
            tl_loop_push(found->stream & (1u << i) ? &stream : outer, loop);
    }
    for (int i = 0; i + 1 < stream.count; i++)
        tl_loop_push(outer, stream.loops[i]);
    if (inside)
        tl_loop_push(outer, vector_tiles);
    if (stream.count > 0)
        tl_loop_push(outer, stream.loops[stream.count - 1]);
    for (int i = 0; i < panel.count; i++)
        tl_loop_push(outer, panel.loops[i]);
    if (order.block > 0) {
        tl_loop_list columns = { 0 };
        tl_loop_push(&columns, vector_tiles);
        tl_loop_push(&columns, column_tiles);
        TL_TRY(block_loop(s, order.panel_inside ? found->column_tiles : found->row_tiles,
                          order.block, outer, order.panel_inside ? &stream : &columns, diag));
    }
    tl_loop_push(tile, line);
    tl_loop_push(tile, row);
    tl_loop_push(tile, column);
    tl_loop_push(tile, vector);
    tl_loop_list all = *outer;
    for (int i = 0; i < tile->count; i++)
        tl_loop_push(&all, tile->loops[i]);
    return tl_reorder(s, all.loops, all.count, diag);
}

/* Iterations of the loops that are not tiled. */
static int64_t loops_outside(tl_schedule *s, const tl_loop_list *loops, const result_loops *found)
{
    int64_t iterations = 1;
    for (int i = 0; i < loops->count; i++) {
        tl_loop_ref loop = loops->loops[i];
        if (!tl_same_loop(loop, found->vector) && !tl_same_loop(loop, found->column) &&
            !tl_same_loop(loop, found->row) && !tl_same_loop(loop, found->line))
            iterations = tl_min64(iterations * tl_min64(tl_sketch_extent(s, loop), MOST_OUTSIDE),
                                  MOST_OUTSIDE);
    }
    return iterations;
}

/* Weights arrive while those before them are used: a panel further on is fetched into L2, spread over the present one. Few
 * networks are so small that theirs stay there from run to run. Its loop is the innermost one that moves the panel, among
 * `depth` outside of the tile, of which the caller scheduled `first`. Where no other does, panels are used in the order in
 * which they lie, and an executable's prepared constants lie in the order of its steps: so the last panels bring the first
 * ones of the steps that follow, for which nothing else would, an eighth of L2 of them (measured on an Ice Lake:
 * MobileNetV2's products at 7x7 that follow a depthwise convolution take 0.90 to 0.97 of the time, all of the network 0.99). */
static tl_status prefetch_next_panel(tl_schedule *s, const char *name, tl_block_ref anchor,
                                     const tl_expr *panel, int64_t bytes, int first, int depth,
                                     tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, anchor);
    tl_loop_list loops;
    int innermost = -1, movers = 0;
    if (!tl_decide_range(s, name, "next_panel", 0, 1, 1))
        return TL_OK;
    TL_TRY(tl_sketch_loops(s, anchor, 0, &loops, diag));
    for (int i = 0; i < depth; i++)
        if (tl_sketch_extent(s, loops.loops[i]) > 1 &&
            tl_sketch_moves_load(s, block, panel, loops.loops[i])) {
            innermost = i;
            movers++;
        }
    if (innermost < first)
        return TL_OK;
    int64_t ahead = movers > 1 ? 1 : tl_max64(s->target->l2_bytes / AHEAD / bytes, 1);
    tl_loop_ref mover = loops.loops[innermost];
    tl_status status = tl_prefetch(s, anchor, panel->u.buffer->name, mover, ahead, 2, diag);
    return status == TL_ILLEGAL_SCHEDULE ? TL_OK : status;
}

/* Whether neighbouring rows take elements of one line of the stream. */
static bool is_near(tl_schedule *s, const tl_contraction *c, const result_loops *found)
{
    const tl_buffer *stream = c->stream->u.buffer;
    if (found->row_iter == NULL)
        return false;
    const int64_t step = tl_access_stride(s->arena, stream, c->stream->args, found->row_iter);
    return step > 0 && step <= TL_LINE_BYTES / 2 / (int64_t)tl_dtype_size(stream->dtype);
}

/* Whether some axis of the stream moves with a spatial and a reduce iter: rows of a window are mostly there already. What moves
 * the panel, too, is no row but a piece of the sum. */
static bool is_windowed(const tl_contraction *c)
{
    for (int axis = 0; axis < c->stream->u.buffer->rank; axis++) {
        bool moves[2] = { false, false };
        for (int i = 0; i < c->block->iter_count; i++) {
            const tl_iter *iter = &c->block->iters[i];
            bool reduces = iter->kind == TL_ITER_REDUCE;
            if (tl_max_extent(iter->extent) > 1 &&
                tl_expr_uses_var(c->stream->args[axis], iter->var) &&
                (reduces || !tl_expr_uses_var(c->panel, iter->var)))
                moves[reduces] = true;
        }
        if (moves[0] && moves[1])
            return true;
    }
    return false;
}

/* Channels in blocks: a tile's rows are a few lines in each plane, too few for the hardware to foresee them. Those of the
 * next plane, the next step of the loop around `reduce`, are fetched into L1 while this one's are used: 3 to 10 % on 1x1
 * convolutions (measured on an Ice Lake). */
static tl_status prefetch_stream(tl_schedule *s, const char *name, tl_block_ref anchor,
                                 tl_loop_ref reduce, tl_diag *diag)
{
    tl_contraction c; /* as it is now: of a copy of the stream, where one was made */
    const tl_block *block = tl_schedule_get_block(s, anchor);
    if (!tl_find_contraction(s->arena, block, &c))
        return TL_OK;
    const tl_buffer *stream = c.stream->u.buffer;
    const tl_var *planes = NULL, *rows = tl_schedule_get_loop(s, reduce)->u.loop.var;
    tl_path path = tl_schedule_path_to_loop(s, rows);
    for (int i = 0; i < path.count; i++) {
        const tl_iter *iter;
        const tl_stmt *loop = path.stmts[i];
        if (loop->kind != TL_STMT_LOOP || loop->u.loop.var == rows ||
            tl_max_extent(loop->u.loop.extent) == 1)
            continue;
        bool reduces = tl_loop_drives(block, loop->u.loop.var, &iter) & TL_DRIVES_REDUCE;
        planes = reduces ? loop->u.loop.var : NULL;
    }
    if (planes == NULL || is_windowed(&c))
        return TL_OK;
    bool leaves_l1 = tl_buffer_max_bytes(stream) > s->target->l1_bytes;
    if (!tl_decide_range(s, name, "next_plane", 0, 1, leaves_l1))
        return TL_OK;
    tl_status status =
        tl_prefetch(s, anchor, stream->name, tl_schedule_name_loop(s, planes), 1, 1, diag);
    return status == TL_ILLEGAL_SCHEDULE ? TL_OK : status;
}

/* Several steps of the reduction written out: 1, 2 or 4, as far as they divide it and the code stays small. */
static tl_status unroll_reduction(tl_schedule *s, const char *name, tl_loop_ref reduce,
                                  tl_register_tile t, int64_t taps, tl_diag *diag)
{
    int64_t options[3], extent = tl_sketch_extent(s, reduce);
    int64_t tile = t.rows * t.lines * t.columns * taps;
    int count = 0;
    for (int64_t steps = 1; reduce.id != 0 && steps <= 4 && steps < extent; steps *= 2)
        if (extent % steps == 0 && steps * tile <= MOST_UNROLLED)
            options[count++] = steps;
    if (count < 2)
        return TL_OK;
    int64_t steps = tl_decide(s, name, "unroll", options, count, 1);
    if (steps == 1)
        return TL_OK;
    tl_loop_ref parts[2];
    TL_TRY(tl_split(s, reduce, (int64_t[]){ 0, steps }, 2, parts, diag));
    return tl_unroll(s, parts[1], diag);
}

/* Rows and lines change places. */
static void exchange_lines(result_loops *found)
{
    const result_loops old = *found;
    found->row = old.line;
    found->row_iter = old.line_iter;
    found->row_extent = old.line_extent;
    found->line = old.row;
    found->line_iter = old.row_iter;
    found->line_extent = old.row_extent;
}

/* The model's tile, after taps are found or not: then `c` gets the tap, and rows are what shares its elements. */
static tl_register_tile choose_tile(tl_schedule *s, tl_contraction *c, result_loops *found,
                                    tl_tile_problem *problem)
{
    tl_register_tile plain = tl_choose_tile(s->target, problem);
    tl_tile_problem tapped = *problem;
    result_loops turned = *found;
    const tl_var *tap = tl_sketch_find_taps(s, c, turned.row_iter, &tapped.taps);
    if (tap == NULL) { /* the window's axis runs across the lines */
        exchange_lines(&turned);
        tap = tl_sketch_find_taps(s, c, turned.row_iter, &tapped.taps);
        tapped.rows = turned.row_extent;
        tapped.lines = turned.line_extent;
    }
    if (tap == NULL || tl_tile_room(s->target, &tapped, 1) < 1)
        return plain;
    tl_register_tile t = tl_choose_tile(s->target, &tapped);
    bool pays = tl_tile_cycles(s->target, &tapped, t) < tl_tile_cycles(s->target, problem, plain);
    if (!tl_decide_range(s, c->block->name, "taps", 0, 1, pays))
        return plain;
    *found = turned;
    *problem = tapped;
    c->tap = tap;
    return t;
}

/* The tile that is taken instead of the model's: any that the register file holds. */
static void decide_tile(tl_schedule *s, const char *name, const result_loops *found,
                        int64_t vectors, const tl_tile_problem *problem, tl_register_tile *t)
{
    int64_t widest = tl_min64(vectors, 8);
    while (widest > 1 && tl_tile_room(s->target, problem, widest) < 1)
        widest--;
    int64_t columns = tl_decide_range(s, name, "columns", 1, widest, t->columns);
    int64_t room = tl_tile_room(s->target, problem, columns);
    int64_t most = tl_min64(room, found->row_extent);
    if (columns != t->columns)
        *t = (tl_register_tile){ most, 1, columns };
    t->rows = tl_decide_range(s, name, "rows", 1, most, t->rows);
    t->lines = t->rows < found->row_extent
                   ? 1
                   : tl_decide_range(s, name, "lines", 1,
                                     tl_min64(room / t->rows, found->line_extent), t->lines);
}

/* Whether `extent` elements along the vector are a piece of the panel's axis (a block of keys, the channels of a group) that is
 * no number of panels `width` wide: such panels would end in the middle of it, and lanes on both sides of their end. A
 * panel as wide as the piece begins and ends with it. */
static bool is_cut_unevenly(const tl_block *block, const tl_contraction *c, int64_t extent,
                            int64_t width)
{
    const tl_expr *panel = tl_sketch_panel_load(block, c->vector);
    int axis = 0;
    while (!tl_expr_uses_var(panel->args[axis], c->vector))
        axis++;
    return extent < tl_max_extent(panel->u.buffer->shape[axis]) && extent % width != 0;
}

tl_status tl_sketch_contraction(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, int first,
                                bool whole, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, anchor);
    const char *name = block->name; /* decisions are the whole sum's, in pieces or not */
    int lanes = tl_target_lanes(s->target, block->stores[0].buffer->dtype);
    tl_contraction c;
    tl_loop_list loops;
    result_loops found;
    TL_TRY(tl_sketch_loops(s, out, first, &loops, diag));
    if (!tl_find_contraction(s->arena, block, &c) ||
        !find_result_loops(s, &c, tl_schedule_get_block(s, out), &loops, &found))
        return tl_refuse(diag, "default schedule", name, "is not a contraction that %s reads",
                         tl_schedule_get_block(s, out)->name);

    bool wide = found.vector_extent > lanes || !tl_sketch_is_fixed(s, found.vector);
    found.panel_varies = !tl_sketch_is_fixed(s, wide ? found.vector : found.column);
    int64_t vectors = wide ? tl_ceildiv(found.vector_extent, lanes) : found.column_extent;
    tl_tile_problem problem = { .rows = found.row_extent,
                                .lines = found.line_extent,
                                .vectors = vectors,
                                .steps = tl_sketch_points(block, TL_ITER_REDUCE),
                                .outside = first == 0 ? loops_outside(s, &loops, &found) : 0,
                                .is_near = is_near(s, &c, &found) };
    bool panel_stays = tl_sketch_stays_in_l2(s->target, c.panel->u.buffer);
    /* each weight is read once: from memory */
    bool once = found.row_extent * found.line_extent == 1;
    if (once && tl_sketch_is_constant(c.panel->u.buffer))
        problem.streams = tl_decide_range(s, name, "streams", 0, 1, first == 0) != 0;
    else if (once)
        problem.scattered = !panel_stays;
    tl_register_tile t = choose_tile(s, &c, &found, &problem);
    found.row_varies = !tl_sketch_is_fixed(s, found.row);
    found.line_varies = !tl_sketch_is_fixed(s, found.line);
    while (whole && t.rows > 1 && (found.row_varies || found.row_extent % t.rows != 0))
        t.rows--;
    /* narrower tiles at the end would go outside, around all rows of the panel */
    for (int64_t columns = t.columns; problem.scattered && 2 * columns > t.columns; columns--)
        if (vectors % columns == 0) {
            t.columns = columns;
            break;
        }
    /* a tile wider than the result is refused below: what is not a whole vector makes none */
    decide_tile(s, name, &found, wide ? found.vector_extent / lanes : vectors, &problem, &t);
    int64_t panel_extent = wide ? found.vector_extent : found.column_extent;
    int64_t panel_size = wide ? t.columns * lanes : t.columns;
    int64_t taps = tl_max64(problem.taps.count, 1); /* they are one step of the loop */
    bool along_rows =
        first == 0 && wide && !found.panel_varies && panel_extent % panel_size == 0 &&
        writes_rows(s, tl_schedule_get_block(s, out), &loops, &found, problem.steps, panel_extent);
    tile_order order = decide_order(s, name, &found, t, panel_extent, panel_size, along_rows);
    order.images = first == 0 ? find_images(s, &c, &loops, &found) : -1;
    tl_loop_list outer = { 0 }, tile = { 0 };
    TL_TRY(tile_result(s, &loops, &found, t, order, lanes, panel_stays, &outer, &tile, diag));
    if (outer.count == 0)
        return tl_refuse(diag, "default schedule", name, "has no loop outside its register tile");
    tl_loop_ref innermost = outer.loops[outer.count - 1], reduce;
    tl_block_ref sums;
    int depth = first + outer.count,
        inside = depth; /* inside: of a loop over pieces of the sum, too */
    int64_t steps = tl_sketch_points(block, TL_ITER_REDUCE);
    TL_TRY(tl_compute_at(s, anchor, innermost, diag));
    int64_t vector_lanes = wide ? lanes : found.vector_extent;
    int64_t panel_width = (problem.streams ? 1 : t.columns) * vector_lanes;
    if (wide && is_cut_unevenly(block, &c, found.vector_extent, panel_width))
        panel_width = found.vector_extent;
    TL_TRY(tl_sketch_pack_panel(s, anchor, &c, panel_width, vector_lanes, t.rows * t.lines, depth,
                                diag));
    if (first == 0)
        TL_TRY(tl_sketch_pack_stream(s, anchor, &c, t.lines == 1 && found.row.id != 0 ? t.rows : 0,
                                     count_tiles(panel_extent, panel_size), diag));
    TL_TRY(tl_sketch_cut_sum(s, anchor, &c, &inside, &sums, diag));
    block = tl_schedule_get_block(s, sums);
    TL_TRY(tl_set_scope(s, block->stores[0].buffer->name, "register", diag));
    if (problem.streams)
        TL_TRY(split_streams(s, sums, c.vector, inside, lanes, diag));
    TL_TRY(tl_sketch_reduction(s, sums, inside, c.vector, c.tap, 0, &reduce, diag));
    for (int i = 0; i + 1 < tile.count; i++)
        TL_TRY(tl_unroll(s, tile.loops[i], diag));
    TL_TRY(tl_vectorize(s, tile.loops[tile.count - 1], diag));

    if (reduce.id != 0)
        TL_TRY(tl_sketch_fuse_reduction(s, sums, &reduce, diag));
    block = tl_schedule_get_block(s, sums);
    const tl_expr *panel = tl_sketch_panel_load(block, c.vector);
    bool constant = panel->u.buffer->role == TL_ROLE_PREPARED;
    int64_t bytes = tl_storage_bytes(panel->dtype, steps * t.columns * vector_lanes);
    bool copied = panel->u.buffer->role == TL_ROLE_LOCAL && 2 * bytes > s->target->l1_bytes;
    if ((constant || copied) && reduce.id != 0) {
        int64_t ahead = tl_decide(s, name, "prefetch", (int64_t[]){ 0, 2, 4, 8, 16, 32 }, 6,
                                  tl_max64((once ? STREAM_STEPS : PREFETCH_STEPS) / taps, 1));
        if (ahead > 0)
            TL_TRY(tl_prefetch(s, sums, panel->u.buffer->name, reduce, ahead, 1, diag));
        if (constant && !once)
            TL_TRY(prefetch_next_panel(s, name, sums, panel, bytes, first, depth, diag));
    }
    if (reduce.id != 0)
        TL_TRY(prefetch_stream(s, name, sums, reduce, diag));
    if (first == 0)
        TL_TRY(tl_sketch_inline_border(s, c.stream->u.buffer));

    TL_TRY(unroll_reduction(s, name, reduce, t, taps, diag));
    TL_TRY(tl_sketch_turn_operands(s, out, first, &outer));
    /* what does not divide becomes a smaller nest of its own; the innermost first: the outer copies it */
    bool panel_tail =
        found.column_tiles.id != 0 && (found.panel_varies || panel_extent % panel_size != 0);
    if (panel_tail && order.panel_inside)
        TL_TRY(tl_loop_partition(s, found.column_tiles, diag));
    if (found.row_varies || found.row_extent % t.rows != 0)
        TL_TRY(tl_loop_partition(s, found.row_tiles, diag));
    if (found.line_varies || found.line_extent % t.lines != 0)
        TL_TRY(tl_loop_partition(s, found.line_tiles, diag));
    if (panel_tail && !order.panel_inside)
        TL_TRY(tl_loop_partition(s, found.column_tiles, diag));
    return TL_OK;
}
