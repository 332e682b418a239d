/* schedule/sketch/sketch_staged.c: the default schedule of a contraction between transforms (Winograd): stages that make its
 * stream from the input, the product, stages that make the result from it.
 *
 *     banded: V of a band of tiles stays in L2,        whole: the product's panel is too large for that;
 *     the panel U does too                             V is a phase of its own, U is read once: by all images of a
 *                                                      batch, when there is less V of them than U
 *
 *     for <band of rows>              parallel         for <tile>                      parallel
 *       V[...] = transform of x                          V[...] = transform of x
 *       for <tile of columns>                          for <tile of columns>           parallel
 *         M[...] = U V                                   M[...] = U V
 *         acc[...] = transform of M                      acc[...] = transform of M
 *         y[...] = epilogue(acc)                         y[...] = epilogue(acc)
 */
#include "runtime/base/checked.h"
#include "schedule/sketch/sketch_private.h"

enum { MAX_STAGES = 8, LEAST_ROWS = 12, MOST_IMAGES = 1 << 10 };

typedef struct {
    const tl_block *product;
    tl_contraction contraction;
    int before_count, after_count;
    const tl_block *before[MAX_STAGES]; /* execution order; the last one writes the stream */
    const tl_block *after[MAX_STAGES];  /* execution order; the first one reads the product */
    const tl_block *out;                /* reads what the last of `after` writes */
} stages;

/* The one spatial block that reads a buffer; NULL when there are several or it is no such block. */
static const tl_block *only_reader(tl_schedule *s, const tl_buffer *buffer)
{
    const tl_block **readers;
    int count = tl_readers_of(s->arena, s->program->body, buffer, &readers);
    return count == 1 && tl_block_is_spatial(readers[0]) ? readers[0] : NULL;
}

static const tl_block *only_writer(tl_schedule *s, const tl_buffer *buffer)
{
    const tl_block **writers;
    int count = buffer->role == TL_ROLE_LOCAL
                    ? tl_writers_of(s->arena, s->program->body, buffer, &writers)
                    : 0;
    return count == 1 && tl_block_is_spatial(writers[0]) ? writers[0] : NULL;
}

static bool find_stages(tl_schedule *s, const tl_block *block, stages *out)
{
    *out = (stages){ .product = block };
    if (!tl_find_contraction(s->arena, block, &out->contraction))
        return false;
    /* after: transforms are blocks of several stores; the block with one is the epilogue */
    const tl_block *reader = only_reader(s, block->stores[0].buffer);
    for (; reader != NULL && reader->store_count > 1 && out->after_count < MAX_STAGES;
         reader = only_reader(s, reader->stores[0].buffer))
        out->after[out->after_count++] = reader;
    if (reader == NULL || out->after_count == 0 || reader->store_count != 1)
        return false;
    out->out = reader;

    const tl_block *found[MAX_STAGES];
    int count = 0;
    const tl_block *writer = only_writer(s, out->contraction.stream->u.buffer);
    while (writer != NULL && writer->store_count > 1 && count < MAX_STAGES) {
        found[count++] = writer;
        const tl_expr *loads[1];
        tl_collect_loads(writer->stores[0].value, loads, 1);
        writer = only_writer(s, loads[0]->u.buffer);
    }
    for (int i = 0; i < count; i++)
        out->before[i] = found[count - 1 - i];
    out->before_count = count;
    return count > 0;
}

/* How far apart the elements are that one tile of the last transform starts at, along an axis of what it writes: 1 when
 * it is not tiled along it. */
static int64_t tile_step(tl_schedule *s, const tl_block *block, int axis)
{
    int64_t step = 1;
    for (int i = 0; i < block->iter_count; i++) {
        int64_t coefficient;
        const tl_expr *rest, *index = block->stores[0].indices[axis];
        if (tl_expr_uses_var(index, block->iters[i].var) &&
            tl_affine_in(s->arena, index, block->iters[i].var, &coefficient, &rest))
            step = tl_max64(step, coefficient);
    }
    return step;
}

/* The axis of what `block` writes that moves with the axis `from` of `buffer`, which it reads; -1: none does. */
static int axis_behind(const tl_block *block, const tl_buffer *buffer, int from)
{
    const tl_expr *loads[32];
    int count = tl_collect_loads(block->stores[0].value, loads, 32);
    for (int l = 0; l < count && l < 32; l++)
        for (int axis = 0; axis < block->stores[0].buffer->rank; axis++)
            if (loads[l]->u.buffer == buffer && loads[l]->args[from]->kind == TL_EXPR_VAR &&
                tl_expr_uses_var(block->stores[0].indices[axis], loads[l]->args[from]->u.var))
                return axis;
    return -1;
}

/* The axis of the transforms' result that moves with the product's columns: blocks of channels. -1: none does. */
static int column_axis(const stages *g)
{
    const tl_store *store = &g->product->stores[0];
    int axis = -1;
    for (int i = 0; i < g->product->iter_count; i++) {
        const tl_var *iter = g->product->iters[i].var;
        for (int a = 0; a < store->buffer->rank; a++)
            if (iter != g->contraction.vector && tl_expr_uses_var(store->indices[a], iter) &&
                tl_expr_uses_var(g->contraction.panel, iter) &&
                !tl_expr_uses_var(g->contraction.stream, iter))
                axis = a;
    }
    const tl_buffer *buffer = store->buffer;
    for (int k = 0; k < g->after_count && axis >= 0; k++) {
        axis = axis_behind(g->after[k], buffer, axis);
        buffer = g->after[k]->stores[0].buffer;
    }
    return axis;
}

/* The epilogue's loops, by what they move in the transforms' result. */
typedef struct {
    tl_loop_list loops;
    int down, across, column, vector; /* positions in `loops`; -1: none */
    int64_t step_down, tiles_down, tiles_across;
} result_loops;

static bool find_loops(tl_schedule *s, const stages *g, result_loops *r, tl_diag *diag)
{
    const tl_block *last = g->after[g->after_count - 1];
    const tl_buffer *acc = last->stores[0].buffer;
    const tl_expr *loads[32], *load = NULL;
    *r = (result_loops){ .down = -1, .across = -1, .column = -1, .vector = -1 };
    if (tl_sketch_loops(s, tl_schedule_name_block(s, g->out->name), 0, &r->loops, diag) != TL_OK)
        return false;
    int count = tl_collect_loads(g->out->stores[0].value, loads, 32), columns = column_axis(g);
    for (int i = 0; i < count; i++)
        if (loads[i]->u.buffer == acc)
            load = loads[i];
    for (int i = 0; load != NULL && i < g->out->iter_count; i++)
        for (int axis = 0; axis < acc->rank; axis++) {
            if (!tl_expr_uses_var(load->args[axis], g->out->iters[i].var))
                continue;
            tl_loop_ref loop = tl_sketch_loop_of(s, &g->out->iters[i], &r->loops);
            int at = 0;
            while (at < r->loops.count && !tl_same_loop(r->loops.loops[at], loop))
                at++;
            int64_t step = tile_step(s, last, axis), extent = tl_sketch_extent(s, loop);
            if (at == r->loops.count)
                return false;
            if (axis == acc->rank - 1) {
                r->vector = at;
            } else if (step > 1 && r->down < 0) {
                r->down = at;
                r->step_down = step;
                r->tiles_down = tl_ceildiv(extent, step);
            } else if (step > 1) {
                r->across = at;
                r->tiles_across = tl_ceildiv(extent, step);
            } else if (extent > 1 && axis == columns) {
                r->column = at;
            }
        }
    return r->down >= 0 && r->across >= 0 && r->column >= 0 && r->vector >= 0;
}

/* Bytes of the operand that moves with the result's columns, and of the other. */
static int64_t bytes_of(const tl_expr *load)
{
    return tl_buffer_max_bytes(load->u.buffer);
}

/* Whether the products of one of so many tiles of columns stay in L2 beside what they are made of. */
static bool products_stay(const tl_schedule *s, const tl_block *product, int64_t column_tiles)
{
    return tl_buffer_max_bytes(product->stores[0].buffer) / column_tiles <= s->target->l2_bytes / 4;
}

static bool is_of_images(const result_loops *r, int at)
{
    return at != r->down && at != r->column && at != r->across && at != r->vector;
}

static int64_t count_images(tl_schedule *s, const result_loops *r)
{
    int64_t count = 1;
    for (int i = 0; i < r->loops.count; i++)
        if (is_of_images(r, i))
            count *= tl_min64(tl_sketch_extent(s, r->loops.loops[i]), MOST_IMAGES);
    return count;
}

/* Whether each core gets one band of an image, though U does not stay in L2: otherwise each would read all of V, which the
 * others have just written, perhaps behind another last cache; U is nobody's. */
static bool shares_bands(tl_schedule *s, const stages *g, const result_loops *r,
                         int64_t image_count)
{
    const int64_t cores = s->target->cores;
    return cores > 1 && image_count % cores != 0 && r->tiles_down % cores == 0 &&
           r->tiles_down / cores * r->tiles_across >= LEAST_ROWS &&
           bytes_of(g->contraction.panel) <= bytes_of(g->contraction.stream);
}

/* A transform moved under `outside` loops: its contiguous loop is vectorized, the loop before it, a few points, written
 * out. */
static tl_status schedule_transform(tl_schedule *s, const char *name, int outside, tl_diag *diag)
{
    tl_loop_list loops;
    tl_block_ref ref = tl_schedule_name_block(s, name);
    TL_TRY(tl_sketch_loops(s, ref, outside, &loops, diag));
    if (loops.count < 2)
        return TL_OK;
    TL_TRY(tl_vectorize(s, loops.loops[loops.count - 1], diag));
    return tl_unroll(s, loops.loops[loops.count - 2], diag);
}

/* The first of two transforms moves into the tile loop of the second: the loop before its last two. */
static tl_status nest_transforms(tl_schedule *s, const tl_block *const *pair, int count,
                                 int outside, tl_diag *diag)
{
    tl_loop_list loops;
    const char *second = pair[count - 1]->name;
    TL_TRY(tl_sketch_loops(s, tl_schedule_name_block(s, second), outside, &loops, diag));
    if (count == 2 && loops.count > 2) {
        const char *first = pair[0]->name, *between = pair[0]->stores[0].buffer->name;
        TL_TRY(
            tl_compute_at(s, tl_schedule_name_block(s, first), loops.loops[loops.count - 3], diag));
        TL_TRY(tl_set_scope(s, between, "stack", diag));
        TL_TRY(schedule_transform(s, first, outside + loops.count - 2, diag));
    }
    return schedule_transform(s, second, outside, diag);
}

tl_status tl_sketch_staged(tl_schedule *s, tl_block_ref anchor, tl_map *done, tl_diag *diag)
{
    stages g;
    result_loops r;
    const tl_block *block = tl_schedule_get_block(s, anchor);
    if (!find_stages(s, block, &g) || !find_loops(s, &g, &r, diag))
        return tl_refuse(diag, "default schedule", block->name,
                         "does not stand between transforms");

    /* the tile of columns; the band of rows, or all of them when the panel does not stay in L2 beside the stream, or when
     * there are too few bands to share out */
    int lanes = tl_target_lanes(s->target, block->stores[0].buffer->dtype);
    int64_t vectors = tl_sketch_extent(s, r.loops.loops[r.column]);
    tl_register_tile t =
        tl_choose_tile(s->target, &(tl_tile_problem){ .rows = r.tiles_across,
                                                      .lines = r.tiles_down,
                                                      .vectors = vectors,
                                                      .steps = 16 * (int64_t)lanes });
    while (vectors % t.columns !=
           0) /* the transformed panel has no room for a tile that sticks out */
        t.columns--;
    int64_t divisors[32];
    int count = tl_sketch_divisors(vectors, divisors, 32);
    int64_t span = tl_decide(s, block->name, "span", divisors, count, t.columns);
    int64_t band = 1;
    while (band < r.tiles_down && (band * r.tiles_across < LEAST_ROWS || r.tiles_down % band != 0))
        band++;
    bool banded = tl_sketch_stays_in_l2(s->target, g.contraction.panel->u.buffer) &&
                  r.tiles_down / band >= s->target->cores; /* each core a band at least */
    int64_t image_count = count_images(s, &r);
    if (!banded && shares_bands(s, &g, &r, image_count)) {
        band = r.tiles_down / s->target->cores;
        banded = true;
    }
    int64_t bands[33] = { 0 }; /* tiles down in a band; 0: none, V is a phase of its own */
    count = 1 + tl_sketch_divisors(r.tiles_down, bands + 1, 32);
    band = tl_decide(s, block->name, "band", bands, count, banded ? band : 0);
    banded = band > 0;

    tl_block_ref copy, out = tl_schedule_name_block(s, g.out->name);
    TL_TRY(tl_cache_write(s, anchor, "register", &copy, diag));
    tl_loop_ref rows[2] = { { 0 } }, columns[2];
    if (banded)
        TL_TRY(tl_split(s, r.loops.loops[r.down], (int64_t[]){ 0, band * r.step_down }, 2, rows,
                        diag));
    TL_TRY(tl_split(s, r.loops.loops[r.column], (int64_t[]){ 0, span }, 2, columns, diag));
    tl_loop_list images = { 0 }, all = { 0 };
    for (int i = 0; i < r.loops.count; i++)
        if (is_of_images(&r, i))
            tl_loop_push(&images, r.loops.loops[i]);
    bool panel_outside = !banded && image_count > 1 &&
                         bytes_of(g.contraction.panel) > bytes_of(g.contraction.stream);
    bool all_images = panel_outside && products_stay(s, block, vectors / span);
    tl_loop_ref place = columns[0]; /* one iteration of it: all stages of a tile of columns */
    if (panel_outside)
        tl_loop_push(&all, columns[0]);
    for (int i = 0; i < images.count && !all_images; i++)
        tl_loop_push(&all, images.loops[i]);
    tl_loop_push(&all, rows[0]);
    int band_depth = all.count;
    if (!panel_outside)
        tl_loop_push(&all, columns[0]);
    else if (!all_images)
        place = images.loops[images.count - 1];
    int depth = all.count;
    for (int i = 0; i < images.count && all_images; i++)
        tl_loop_push(&all, images.loops[i]);
    tl_loop_push(&all, columns[1]);
    tl_loop_push(&all, banded ? rows[1] : r.loops.loops[r.down]);
    tl_loop_push(&all, r.loops.loops[r.across]);
    tl_loop_push(&all, r.loops.loops[r.vector]);
    TL_TRY(tl_reorder(s, all.loops, all.count, diag));
    TL_TRY(tl_vectorize(s, r.loops.loops[r.vector], diag));

    for (int i = g.after_count - 1; i >= 0; i--)
        TL_TRY(tl_compute_at(s, tl_schedule_name_block(s, g.after[i]->name), place, diag));
    TL_TRY(tl_compute_at(s, copy, place, diag));
    TL_TRY(nest_transforms(s, g.after, g.after_count, depth, diag));
    TL_TRY(tl_sketch_contraction(s, anchor, copy, depth, false, diag));
    int outside = 0;
    if (banded) {
        outside = band_depth;
        for (int i = g.before_count - 1; i >= 0; i--)
            TL_TRY(tl_compute_at(s, tl_schedule_name_block(s, g.before[i]->name), rows[0], diag));
    }
    TL_TRY(nest_transforms(s, g.before, g.before_count, outside, diag));

    for (int i = 0; i < g.before_count; i++)
        tl_map_put(done, g.before[i]->name, s);
    for (int i = 0; i < g.after_count; i++)
        tl_map_put(done, g.after[i]->name, s);
    tl_map_put(done, block->name, s);
    tl_map_put(done, tl_schedule_get_block(s, copy)->name, s);
    tl_map_put(done, tl_schedule_get_block(s, out)->name, s);
    return TL_OK;
}
