/* schedule/sketch/sketch_band.c: the default schedule of a window over what a contraction makes (a pointwise convolution
 * in front of a depthwise one), where the values between them are too many for the cache.
 *
 *     for <band of rows, a few vectors of columns>     parallel
 *       between[rows of the band and its window]       stays in L2
 *         acc[R][C vectors] = sum(stream * panel)      sketch_contraction.c
 *         between = zeros outside, else f(acc)
 *       for <row of the band>
 *         acc_1[X vectors] = window over between       sketch_window.c
 *         result = epilogue(acc_1)
 *
 * Bands share rows, as many as a window is higher than its step: these are computed twice, 4 to 7 % of the contraction in
 * MobileNetV2 on 1.25 MB of L2. A rolling buffer would save them, but bands would have to run one after the other, and
 * its guards would stand in the register tile. Fewer columns at a time make room for higher bands. */
#include "runtime/base/checked.h"
#include "schedule/sketch/sketch_private.h"

enum { MOST_COLUMNS = 5, LEAST_BAND = 4 };

/* The blocks that feed the window. */
typedef struct {
    const tl_block *product, *between;
} feeders;

const tl_block *tl_sketch_only_writer(tl_schedule *s, const tl_buffer *buffer,
                                      const tl_block *reader)
{
    const tl_block **writers, **readers;
    if (buffer->role != TL_ROLE_LOCAL ||
        tl_readers_of(s->arena, s->program->body, buffer, &readers) != 1 || readers[0] != reader ||
        tl_writers_of(s->arena, s->program->body, buffer, &writers) != 1)
        return NULL;
    return writers[0]->store_count == 1 ? writers[0] : NULL;
}

static bool find_feeders(tl_schedule *s, const tl_block *window, feeders *out)
{
    const tl_expr *loads[8], *inner[32];
    *out = (feeders){ 0 };
    int count = tl_collect_loads(window->stores[0].value, loads, 8);
    for (int i = 0; i < count; i++) {
        const tl_block *between = tl_sketch_only_writer(s, loads[i]->u.buffer, window);
        if (between == NULL || !tl_block_is_spatial(between))
            continue;
        int inner_count = tl_collect_loads(between->stores[0].value, inner, 32);
        for (int k = 0; k < inner_count; k++) {
            const tl_block *product = tl_sketch_only_writer(s, inner[k]->u.buffer, between);
            tl_contraction c;
            if (product != NULL && tl_find_contraction(s->arena, product, &c)) {
                *out = (feeders){ product, between };
                return true;
            }
        }
    }
    return false;
}

bool tl_sketch_is_between(tl_schedule *s, const tl_block *block, const tl_block *reader)
{
    feeders f;
    return tl_block_is_reduction(reader) && reader->store_count == 1 &&
           find_feeders(s, reader, &f) && f.between == block;
}

/* What a band may be made of. */
typedef struct {
    int64_t rows, rows_between;  /* of the result, of what the window reads */
    int64_t width, vectors;      /* of a row between: places, vectors of columns at each */
    int64_t vector_bytes, steps; /* of the product: bytes of a vector, terms of a sum */
    /* of a row of the result; above 0: all of its columns stay in L2 with the band, on one core */
    int64_t kept_bytes;
} band_shape;

typedef struct {
    int64_t columns, rows; /* rows 0: no band fits */
} band_size;

int64_t tl_sketch_last_extent(const tl_block *block, int i)
{
    return tl_max_extent(block->iters[block->iter_count - 1 - i].extent);
}

static band_shape shape_of(const feeders *f, const tl_block *out, int64_t kept_bytes)
{
    return (band_shape){
        .rows = tl_sketch_last_extent(out, 2),
        .rows_between = tl_sketch_last_extent(f->between, 2),
        .width = tl_sketch_last_extent(f->between, 1),
        .vectors = tl_sketch_last_extent(out, 3),
        .vector_bytes = tl_storage_bytes(f->between->stores[0].buffer->dtype,
                                         tl_sketch_last_extent(f->between, 0)),
        .steps = tl_sketch_points(f->product, TL_ITER_REDUCE),
        .kept_bytes = kept_bytes,
    };
}

/* Rows between that so many of the result read. */
static int64_t rows_read(const band_shape *shape, int64_t rows)
{
    int64_t step = tl_max64(shape->rows_between / shape->rows, 1);
    return (rows - shape->rows) * step + shape->rows_between;
}

/* Cycles a step of the product's sums for a row between. */
static double row_cycles(const tl_target *target, const band_shape *shape, int64_t columns)
{
    const tl_tile_problem row = {
        .rows = shape->width, .lines = 1, .vectors = columns, .steps = shape->steps
    };
    return tl_tile_cycles(target, &row, tl_choose_tile(target, &row));
}

/* By how much more is done because bands share rows, which are computed twice, and cores are without a band. */
static double band_factor(const tl_target *target, const band_shape *shape, band_size size)
{
    int64_t spans = shape->kept_bytes > 0 ? 1 : shape->vectors / size.columns;
    int64_t tasks = shape->rows / size.rows * spans;
    double rounds = (double)tl_ceildiv(tasks, target->cores) * target->cores;
    return (double)rows_read(shape, size.rows) / (double)size.rows * rounds / (double)tasks;
}

/* Whether the rows between fit into two fifths of L2, with what is kept beside them into half. */
static bool band_fits(const tl_target *target, const band_shape *shape, band_size size)
{
    int64_t bytes = rows_read(shape, size.rows) * shape->width * size.columns * shape->vector_bytes;
    return 5 * bytes <= 2 * target->l2_bytes &&
           2 * (bytes + size.rows * shape->kept_bytes) <= target->l2_bytes;
}

/* Vectors of columns, as many as a register tile takes at once, and rows, both dividing all of them, with the least work
 * among those that fit. `fixed`: as was decided, 0: any. */
static band_size choose_band(const tl_target *target, const band_shape *shape, band_size fixed)
{
    band_size best = { 1, 0 };
    double least = 0;
    int64_t most = fixed.columns > 0 ? fixed.columns : tl_min64(MOST_COLUMNS, shape->vectors);
    for (int64_t c = fixed.columns > 0 ? fixed.columns : 1; c <= most; c++) {
        double row = shape->vectors % c == 0 ? row_cycles(target, shape, c) / (double)c : 0;
        for (int64_t r = 1; row > 0 && r <= shape->rows; r++) {
            if (fixed.rows > 0 ? r != fixed.rows
                               : shape->rows % r != 0 || (r < LEAST_BAND && r < shape->rows) ||
                                     !band_fits(target, shape, (band_size){ c, r }))
                continue;
            double cycles = row * band_factor(target, shape, (band_size){ c, r });
            if (best.rows == 0 || cycles < least) {
                best = (band_size){ c, r };
                least = cycles;
            }
        }
    }
    return best;
}

bool tl_sketch_band_rows(tl_schedule *s, const tl_block *window, const tl_block *out,
                         int64_t kept_bytes, int64_t *rows)
{
    feeders f;
    if (!find_feeders(s, window, &f) || out->iter_count < 4 || f.between->iter_count < 4)
        return false;
    band_shape shape = shape_of(&f, out, kept_bytes);
    *rows = choose_band(s->target, &shape, (band_size){ 0, 0 }).rows;
    return true;
}

tl_status tl_sketch_decide_band(tl_schedule *s, const char *name, int64_t rows, int64_t suggested,
                                int64_t *band, tl_diag *diag)
{
    int64_t options[33] = { 0 }; /* no bands: the stages one after the other */
    int count = 1 + tl_sketch_divisors(rows, options + 1, 32);
    *band = tl_decide(s, name, "band", options, count, suggested);
    if (*band == 0)
        return tl_refuse(diag, "default schedule", name, "has no bands that fit into L2");
    return TL_OK;
}

tl_status tl_sketch_band(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, int first,
                         int64_t rows, tl_map *done, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, anchor);
    const char *name = block->name;
    feeders f;
    tl_loop_list loops, between_loops;
    TL_TRY(tl_sketch_loops(s, out, first, &loops, diag));
    if (!find_feeders(s, block, &f) || loops.count < 4)
        return tl_refuse(diag, "default schedule", name, "is no window over a contraction");
    tl_block_ref between = tl_schedule_name_block(s, f.between->name);
    tl_block_ref product = tl_schedule_name_block(s, f.product->name);
    TL_TRY(tl_sketch_loops(s, between, 0, &between_loops, diag));
    if (between_loops.count != loops.count)
        return tl_refuse(diag, "default schedule", name, "has other axes than %s", f.between->name);

    /* columns of vectors, rows, what a row has, lanes: the last four loops of both */
    int column = loops.count - 4, line = loops.count - 3;
    band_shape shape = shape_of(&f, tl_schedule_get_block(s, out), 0);
    int64_t options[33];
    int option_count = tl_sketch_divisors(shape.vectors, options, 32);
    int64_t columns = tl_decide(s, name, "span", options, option_count,
                                choose_band(s->target, &shape, (band_size){ 0, rows }).columns);
    int64_t band = rows;
    if (rows == 0)
        TL_TRY(tl_sketch_decide_band(s, name, shape.rows,
                                     choose_band(s->target, &shape, (band_size){ columns, 0 }).rows,
                                     &band, diag));

    tl_loop_ref bands[2], tiles[2];
    tl_loop_list all = { 0 };
    TL_TRY(tl_split(s, loops.loops[column], (int64_t[]){ 0, columns }, 2, tiles, diag));
    TL_TRY(tl_split(s, loops.loops[line], (int64_t[]){ 0, band }, 2, bands, diag));
    for (int i = 0; i < column; i++)
        tl_loop_push(&all, loops.loops[i]);
    tl_loop_push(&all, bands[0]);
    tl_loop_push(&all, tiles[0]);
    int inside = first + all.count;
    tl_loop_push(&all, tiles[1]);
    tl_loop_push(&all, bands[1]);
    for (int i = line + 1; i < loops.count; i++)
        tl_loop_push(&all, loops.loops[i]);
    TL_TRY(tl_reorder(s, all.loops, all.count, diag));
    TL_TRY(tl_sketch_window_from(s, anchor, out, inside, diag));
    TL_TRY(tl_compute_at(s, between, tiles[0], diag));
    TL_TRY(tl_sketch_contraction(s, product, between, inside, false, diag));
    tl_map_put(done, f.between->name, s);
    tl_map_put(done, f.product->name, s);
    return TL_OK;
}
