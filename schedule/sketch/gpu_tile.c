/* schedule/sketch/gpu_tile.c: a contraction in tiles, a matrix product or a convolution as one, by multiply-adds of threads.
 *
 *     for <tiles>  blockIdx.x
 *       for <warps>  threadIdx.y
 *         for <lanes>  threadIdx.x                 rows, then lines, then columns: neighbours read neighbours
 *           acc[rows][columns] = 0                 registers
 *           for k0                                 slices, two of them on their way
 *             panel, stream                        shared memory, the stream's rows side by side
 *             for k1                               written out
 *               a[rows] = stream[k, rows]          registers, four in one access
 *               b[columns] = panel[k, columns]
 *               acc[r][c] += a[r]*b[c]
 *           out = epilogue(acc)
 *
 * Rows run along the result's axis that only the stream moves with; columns along the contiguous one and, where that is
 * short, along one more that the panel moves with (lines). Extents that do not come out even are padded with zeroes. Which
 * tile: that of the least cycles (gpu_model.c). */
#include "schedule/sketch/gpu_private.h"

enum {
    WIDE = 4,
    LEAST_ROWS = 4,
    LEAST_WARPS = 2,
    MOST_WARPS = 8,
    STEPS = 16,             /* of a slice */
    SLICE_BYTES = 24 << 10, /* of both operands */
    PLACE_REGISTERS = 6,
    OTHER_REGISTERS = 44, /* addresses, counters */
    MOST_WRITTEN = 1024,  /* multiply-adds */
};

/* ---- which tile ---- */

/* What tiles are chosen from: `warps` 0: with any number of them, extents padded; else with so many, that cover extents
 * exactly, inside of a block that has other stages. */
typedef struct {
    const tl_gpu_product *p;
    int64_t warps, others, terms;
} tile_problem;

static int64_t padded(int64_t extent, const tl_gpu_cut *cut)
{
    return tl_ceildiv(extent, tl_gpu_cut_size(cut));
}

static bool divides(const tile_problem *q, const tl_gpu_tiling *t)
{
    const tl_gpu_product *p = q->p;
    return p->extents[p->row] % tl_gpu_cut_size(&t->row) == 0 &&
           p->extents[p->column] % tl_gpu_cut_size(&t->column) == 0 &&
           (p->line < 0 || p->extents[p->line] % tl_gpu_cut_size(&t->line) == 0);
}

/* How many neighbours are stored in one access: of an axis so long all or none of them are inside. */
static int64_t at_once(int64_t length)
{
    int64_t wide = WIDE;
    while (length % wide != 0)
        wide /= 2;
    return wide;
}

/* Cycles of a tile; less than 0: it does not fit. */
static double cycles_of(tl_schedule *s, const tile_problem *q, const tl_gpu_tiling *t)
{
    const tl_gpu_product *p = q->p;
    int64_t others = q->others, terms = q->terms;
    int64_t rows = tl_gpu_cut_size(&t->row);
    int64_t columns = tl_gpu_cut_size(&t->column) * tl_gpu_cut_size(&t->line);
    int64_t warps = t->row.warps * t->column.warps * t->line.warps;
    int64_t own = t->column.own * t->line.own;
    int64_t registers = t->row.own * own + t->row.own + own + OTHER_REGISTERS;
    if (!divides(q, t)) /* every access at the end is to a place of its own, under a condition */
        registers += PLACE_REGISTERS * t->row.own * own / at_once(p->extents[p->column]);
    int64_t resident = tl_gpu_resident(s->target, warps * TL_WARP_LANES, registers, SLICE_BYTES);
    if (resident == 0 || warps > MOST_WARPS || warps < LEAST_WARPS ||
        (q->warps > 0 && (warps != q->warps || !divides(q, t))))
        return -1;
    int64_t blocks =
        others * padded(p->extents[p->row], &t->row) * padded(p->extents[p->column], &t->column);
    if (p->line >= 0)
        blocks *= padded(p->extents[p->line], &t->line);
    /* of one step: shared memory serves 128 bytes a cycle, eight threads at a time where each takes 16 bytes; those of a row
     * of lanes meet in its banks when they are 32 bytes apart */
    int64_t row_meets = t->row.own > WIDE && t->column.lanes < 2 ? 2 : 1;
    int64_t column_meets = t->column.own > WIDE && t->column.lanes > WIDE ? 2 : 1;
    double loads =
        (double)warps * (double)(2 * row_meets * tl_ceildiv(t->row.own, WIDE) +
                                 2 * column_meets * t->line.own * tl_ceildiv(t->column.own, WIDE));
    double copies = (double)(rows + columns) / 32 + (double)(rows + columns) * 4 / 32;
    tl_gpu_work work = { blocks, warps, resident, (double)terms * (double)(rows * columns) / 128,
                         (double)terms * (loads + copies) };
    return tl_gpu_cycles(s->target, &work);
}

static const int64_t owns[] = { 2, 4, 8 }, lanes_of[] = { 1, 2, 4, 8, 16 },
                     warps_of[] = { 1, 2, 4, 7, 8 };
enum { OWNS = 3, LANES = 5, WARPS = 5 };

/* The tiles with that many rows of a thread and lanes of rows and columns. */
static void try_warps(tl_schedule *s, const tile_problem *q, tl_gpu_tiling t, tl_gpu_tiling *best,
                      double *least)
{
    for (int r = 0; r < WARPS; r++)
        for (int c = 0; c < WARPS; c++)
            for (int l = 0; l < (q->p->line >= 0 ? WARPS : 1); l++) {
                t.row.warps = warps_of[r];
                t.column.warps = warps_of[c];
                t.line.warps = warps_of[l];
                double cycles = cycles_of(s, q, &t);
                if (cycles < 0 || (*least >= 0 && cycles >= *least))
                    continue;
                *least = cycles;
                *best = t;
            }
}

static bool find_tile(tl_schedule *s, const tl_gpu_product *p, int64_t warps, tl_gpu_tiling *best)
{
    const tl_block *block = p->c.block;
    tile_problem q = { p, warps, 1, 1 };
    double least = -1;
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_REDUCE)
            q.terms *= p->extents[i];
        else if (i != p->row && i != p->column && i != p->line)
            q.others *= p->extents[i];
    for (int r = 0; r < OWNS; r++)
        for (int c = 0; c < OWNS; c++)
            for (int y = 1; y < LANES; y++)
                for (int x = 0; x < LANES; x++) {
                    int64_t left = TL_WARP_LANES / (lanes_of[y] * lanes_of[x]);
                    if (left == 0 || (left > 1 && p->line < 0))
                        continue;
                    tl_gpu_tiling t = { { 1, lanes_of[y], owns[r] },
                                        { 1, lanes_of[x], owns[c] },
                                        { 1, left, 1 } };
                    try_warps(s, &q, t, best, &least);
                }
    return least >= 0;
}

static tl_status decide_tile(tl_schedule *s, tl_gpu_product *p, int64_t warps, tl_diag *diag)
{
    const char *name = p->c.block->name;
    tl_gpu_tiling t;
    if (p->extents[p->row] < LEAST_ROWS)
        return tl_refuse(diag, "default schedule", name, "has few rows");
    if (!find_tile(s, p, warps, &t))
        return tl_refuse(diag, "default schedule", name, "has no tile that fits");
    if (warps > 0) {
        tl_gpu_take_tiling(p, &t);
        return TL_OK;
    }
    t.row.own = tl_decide(s, name, "rows", owns, OWNS, t.row.own);
    t.column.own = tl_decide(s, name, "columns", owns, OWNS, t.column.own);
    t.row.lanes = tl_decide(s, name, "lanes.rows", lanes_of, LANES, t.row.lanes);
    t.column.lanes = tl_decide(s, name, "lanes.columns", lanes_of, LANES, t.column.lanes);
    t.row.warps = tl_decide(s, name, "warps.rows", warps_of, WARPS, t.row.warps);
    t.column.warps = tl_decide(s, name, "warps.columns", warps_of, WARPS, t.column.warps);
    t.line.lanes = TL_WARP_LANES / (t.row.lanes * t.column.lanes);
    int64_t all = t.row.warps * t.column.warps * t.line.warps;
    int64_t registers = t.row.own * t.column.own + OTHER_REGISTERS;
    if (t.line.lanes * t.row.lanes * t.column.lanes != TL_WARP_LANES ||
        (p->line < 0 && t.line.lanes > 1) ||
        tl_gpu_resident(s->target, all * TL_WARP_LANES, registers, SLICE_BYTES) == 0)
        return tl_refuse(diag, "default schedule", name, "has a tile that no block can have");
    tl_gpu_take_tiling(p, &t);
    return TL_OK;
}

/* The longest reduce iter. */
static int longest_term(const tl_gpu_product *p)
{
    int found = -1;
    for (int i = 0; i < p->c.block->iter_count; i++)
        if (p->c.block->iters[i].kind == TL_ITER_REDUCE &&
            (found < 0 || p->extents[i] > p->extents[found]))
            found = i;
    return found;
}

/* ---- loops ---- */

static tl_status unroll_list(tl_schedule *s, const tl_loop_list *list, tl_diag *diag)
{
    for (int i = 0; i < list->count; i++)
        TL_TRY(tl_unroll(s, list->loops[i], diag));
    return TL_OK;
}

/* A loop of what a thread has of its own, of an axis so long: in accesses of 16 bytes, or of what comes out even, so that no
 * condition comes between the elements of one. */
static tl_status widen(tl_schedule *s, tl_loop_ref loop, int64_t length, tl_diag *diag)
{
    tl_loop_ref parts[2];
    int64_t extent = tl_sketch_extent(s, loop), wide = tl_min64(at_once(extent), at_once(length));
    if (wide == 1)
        return tl_unroll(s, loop, diag);
    if (extent == wide)
        return tl_vectorize(s, loop, diag);
    TL_TRY(tl_split(s, loop, (int64_t[]){ 0, wide }, 2, parts, diag));
    TL_TRY(tl_unroll(s, parts[0], diag));
    return tl_vectorize(s, parts[1], diag);
}

tl_status tl_gpu_pitch(tl_schedule *s, const char *name, int64_t step, tl_diag *diag)
{
    enum { BANKS = 128 }; /* bytes */
    const tl_buffer *buffer = tl_program_find_buffer(s->program, name);
    int64_t size = (int64_t)tl_dtype_size(buffer->dtype);
    return size > step
               ? TL_OK
               : tl_storage_align(s, name, buffer->rank - 2, BANKS / size, step / size, diag);
}

/* Of a slice whose last axis is not the operand's, threads that copy neighbours write down a column: rows end 16 bytes further on
 * than at a multiple of all banks, so that eight of them lie in different ones. */
static tl_status spread_rows(tl_schedule *s, const char *name, int axis, int rank, tl_diag *diag)
{
    return axis < 0 || axis == rank - 1 || rank < 2 ? TL_OK : tl_gpu_pitch(s, name, 16, diag);
}

/* What a thread reads of a slice in a step, in registers. `dense`: its elements lie side by side. */
static tl_status keep_fragment(tl_schedule *s, tl_block_ref anchor, const char *slice,
                               tl_loop_ref step, bool dense, tl_diag *diag)
{
    tl_block_ref fragment;
    tl_loop_list loops;
    tl_schedule_state before = tl_schedule_save(s);
    tl_diag why = { 0 };
    tl_status status = tl_cache_read(s, anchor, slice, "register", &fragment, &why);
    TL_TRY(tl_sketch_tried(s, &before, status, &why, diag));
    if (status != TL_OK) /* it is read where it lies */
        return TL_OK;
    TL_TRY(tl_compute_at(s, fragment, step, diag));
    TL_TRY(tl_sketch_loops(s, fragment, 0, &loops, diag));
    int first = 0, last = -1;
    for (int i = 0; i < loops.count; i++)
        if (tl_same_loop(loops.loops[i], step))
            first = i + 1;
    for (int i = first; i < loops.count; i++)
        if (tl_sketch_extent(s, loops.loops[i]) > 1)
            last = i;
    for (int i = first; i < loops.count; i++)
        TL_TRY(i == last && dense ? widen(s, loops.loops[i], WIDE, diag)
                                  : tl_unroll(s, loops.loops[i], diag));
    return TL_OK;
}

/* The innermost steps of a slice, written out as far as there is room. */
static tl_status unroll_steps(tl_schedule *s, const tl_loop_list *inner, int64_t each,
                              tl_diag *diag)
{
    int64_t steps = 1;
    for (int i = inner->count - 1; i >= 0; i--) {
        int64_t extent = tl_sketch_extent(s, inner->loops[i]);
        if (steps * extent * each > MOST_WRITTEN) {
            int64_t part = 1;
            tl_loop_ref parts[2];
            for (int64_t d = 1; d <= extent; d++)
                if (extent % d == 0 && steps * d * each <= MOST_WRITTEN)
                    part = d;
            if (part == 1)
                return TL_OK;
            TL_TRY(tl_split(s, inner->loops[i], (int64_t[]){ 0, part }, 2, parts, diag));
            return tl_unroll(s, parts[1], diag);
        }
        steps *= extent;
        TL_TRY(tl_unroll(s, inner->loops[i], diag));
    }
    return TL_OK;
}

/* The init that decompose_reduction made. */
static tl_status unroll_init(tl_schedule *s, tl_block_ref init, int outside, tl_diag *diag)
{
    tl_loop_list own;
    TL_TRY(tl_sketch_loops(s, init, outside, &own, diag));
    return unroll_list(s, &own, diag);
}

/* Slices, steps, and what a thread computes in each, written out. */
static tl_status make_terms(tl_schedule *s, tl_block_ref anchor, int outside, const tl_gpu_terms *t,
                            tl_diag *diag)
{
    tl_loop_list all = t->others, results = { 0 };
    tl_block_ref init;
    for (int i = 0; i < t->outer.count; i++)
        tl_loop_push(&all, t->outer.loops[i]);
    for (int i = 0; i < t->inner.count; i++)
        tl_loop_push(&all, t->inner.loops[i]);
    tl_loop_push(&results, t->row);
    tl_loop_push(&results, t->line);
    tl_loop_push(&results, t->column);
    for (int i = 0; i < results.count; i++)
        tl_loop_push(&all, results.loops[i]);
    TL_TRY(tl_reorder(s, all.loops, all.count, diag));
    TL_TRY(tl_decompose_reduction(s, anchor, t->outer.loops[0], &init, diag));
    TL_TRY(unroll_list(s, &results, diag));
    return unroll_init(s, init, outside, diag);
}

/* A constant operand is kept with what threads take side by side of it last, so that slices are copied 16 bytes at a time. */
static tl_status pack(tl_schedule *s, tl_block_ref anchor, const tl_expr *load, int iter,
                      tl_gpu_product *p, tl_diag *diag)
{
    const tl_buffer *buffer = load->u.buffer;
    int axis = tl_sketch_axis_of(s, load, p->c.block->iters[iter].var);
    if (buffer->role != TL_ROLE_CONST || axis < 0 || axis == buffer->rank - 1)
        return TL_OK;
    tl_schedule_state before = tl_schedule_save(s);
    tl_diag why = { 0 };
    tl_status status = tl_gpu_arrange(s, buffer->name, &axis, 1, 1, &why);
    TL_TRY(tl_sketch_tried(s, &before, status, &why, diag));
    return tl_gpu_find_product(s, tl_schedule_get_block(s, anchor), p, diag);
}

tl_status tl_gpu_tile_in(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, int first,
                         int64_t rows, tl_loop_ref *tiles, tl_diag *diag)
{
    tl_gpu_product p;
    tl_gpu_loops loops;
    tl_gpu_terms terms;
    tl_gpu_slice operands[2]; /* panel, stream */
    TL_TRY(tl_gpu_find_product(s, tl_schedule_get_block(s, anchor), &p, diag));
    if (rows == 0) {
        TL_TRY(pack(s, anchor, p.c.panel, p.column, &p, diag));
        TL_TRY(pack(s, anchor, p.c.stream, p.row, &p, diag));
    }
    TL_TRY(tl_gpu_take_extents(s, anchor, first, rows, &p, diag));
    TL_TRY(decide_tile(s, &p, rows != 0 ? TL_GPU_SHARED_WARPS : 0, diag));
    int longest = longest_term(&p);
    if (longest < 0)
        return tl_refuse(diag, "default schedule", p.c.block->name, "has no terms");
    TL_TRY(tl_gpu_decide_depth(s, &p, STEPS, longest, 1, SLICE_BYTES, diag));
    if (rows != 0 && p.extents[longest] % p.depth[longest] != 0)
        return tl_refuse(diag, "default schedule", p.c.block->name, "has slices of two sizes");
    int64_t length = p.extents[p.column];
    if (rows == 0)
        TL_TRY(tl_gpu_pad(s, anchor, out, &p, diag));
    const char *name = p.c.block->name, *result = p.c.block->stores[0].buffer->name;
    int row_axis = tl_sketch_axis_of(s, p.c.stream, p.c.block->iters[p.row].var);
    int column_axis = tl_sketch_axis_of(s, p.c.panel, p.c.block->iters[p.column].var);
    int64_t bytes = tl_gpu_slice_bytes(s, &p), each = p.cuts[p.row].own * p.cuts[p.column].own;
    TL_TRY(tl_gpu_take_slice(s, anchor, p.c.panel, &operands[0], diag));
    TL_TRY(tl_gpu_take_slice(s, anchor, p.c.stream, &operands[1], diag));
    if (row_axis >= 0)
        TL_TRY(tl_gpu_arrange(s, operands[1].buffer, &row_axis, 1, 1, diag));
    if (column_axis >= 0)
        TL_TRY(tl_gpu_arrange(s, operands[0].buffer, &column_axis, 1, 1, diag));

    TL_TRY(tl_gpu_cut_results(s, out, first, &p, &loops, diag));
    TL_TRY(tl_compute_at(s, anchor, loops.lanes, diag));
    TL_TRY(tl_set_scope(s, result, "register", diag));
    const bool has_warps = loops.warps.id != 0;
    const int outside = first + (has_warps ? 3 : 2); /* tiles, warps, lanes */
    TL_TRY(tl_gpu_cut_terms(s, anchor, outside, &p, &terms, diag));
    TL_TRY(make_terms(s, anchor, outside, &terms, diag));
    tl_loop_ref step = terms.inner.loops[terms.inner.count - 1],
                slices = terms.outer.loops[terms.outer.count - 1];
    TL_TRY(tl_bind_loop(s, loops.lanes, "threadIdx.x", diag));
    if (has_warps)
        TL_TRY(tl_bind_loop(s, loops.warps, "threadIdx.y", diag));
    TL_TRY(tl_gpu_place_slices(s, operands, 2, slices, diag));
    TL_TRY(keep_fragment(s, anchor, operands[1].buffer, step, row_axis >= 0, diag));
    TL_TRY(keep_fragment(s, anchor, operands[0].buffer, step, column_axis >= 0, diag));
    TL_TRY(unroll_steps(s, &terms.inner, each, diag));
    TL_TRY(tl_gpu_fill_slices(s, name, operands, 2, slices, p.warps, bytes, TL_GPU_STAGED_BYTES,
                              diag));
    TL_TRY(spread_rows(s, operands[1].buffer, row_axis, p.c.stream->u.buffer->rank, diag));
    TL_TRY(spread_rows(s, operands[0].buffer, column_axis, p.c.panel->u.buffer->rank, diag));
    if (loops.row.id != 0)
        TL_TRY(tl_unroll(s, loops.row, diag));
    if (loops.line.id != 0)
        TL_TRY(tl_unroll(s, loops.line, diag));
    if (loops.column.id != 0)
        TL_TRY(widen(s, loops.column, length, diag));
    *tiles = loops.tiles;
    return TL_OK;
}

tl_status tl_gpu_tile(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_diag *diag)
{
    tl_loop_ref tiles;
    TL_TRY(tl_gpu_tile_in(s, anchor, out, 0, 0, &tiles, diag));
    return tl_bind_loop(s, tiles, "blockIdx.x", diag);
}
