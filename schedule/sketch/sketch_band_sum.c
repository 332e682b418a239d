/* schedule/sketch/sketch_band_sum.c: the default schedule of a contraction over what a window makes (a depthwise
 * convolution, then a pointwise one), where the values between them are too many for the cache.
 *
 *     for <band of rows>                             parallel
 *       between[rows of the band]                    stays in cache
 *         acc[X vectors] = window                    sketch_window.c, or sketch_band.c where that reads a contraction
 *         between = f(acc)
 *       for <tiles of the band>
 *         acc_1[R][C vectors] = sum(between * panel) sketch_contraction.c
 *         result = epilogue(acc_1)
 *
 * Nothing is computed twice that the window's own bands would not compute twice. */
#include "schedule/sketch/sketch_private.h"

/* What the contraction reads: `between`, made of `window`, and what reads the contraction. */
typedef struct {
    const tl_block *window, *between, *out;
    bool is_fed;  /* the window reads a contraction: sketch_band.c has a form for it */
    int64_t rows; /* of a band; 0: none fits */
} stages;

static bool find_stages(tl_schedule *s, const tl_block *block, stages *found)
{
    const tl_expr *loads[32];
    const tl_block **readers;
    tl_contraction c;
    const tl_buffer *result = block->stores[0].buffer;
    if (!tl_find_contraction(s->arena, block, &c) || result->role != TL_ROLE_LOCAL ||
        tl_readers_of(s->arena, s->program->body, result, &readers) != 1 ||
        !tl_block_is_spatial(readers[0]))
        return false;
    *found = (stages){ .out = readers[0] };
    found->between = tl_sketch_only_writer(s, c.stream->u.buffer, block);
    if (found->between == NULL || !tl_block_is_spatial(found->between))
        return false;
    int count = tl_collect_loads(found->between->stores[0].value, loads, 32);
    for (int i = 0; i < count && found->window == NULL; i++)
        found->window = tl_sketch_only_writer(s, loads[i]->u.buffer, found->between);
    /* one that would gather gets a copy first (sketch_turn_stream.c) */
    return found->window != NULL && tl_block_is_reduction(found->window) &&
           !tl_find_contraction(s->arena, found->window, &c) &&
           tl_sketch_gathered_load(s, found->window) == NULL;
}

/* What a window alone makes goes through L1 to the contraction, for a band is higher only to lose less to tiles that start
 * and end; each core gets one. */
static void choose_rows(tl_schedule *s, stages *found)
{
    const tl_block *between = found->between;
    const tl_buffer *buffer = between->stores[0].buffer;
    int64_t rows = tl_sketch_last_extent(between, 2);
    int64_t bytes = tl_storage_bytes(buffer->dtype, tl_sketch_last_extent(between, 0) *
                                                        tl_sketch_last_extent(between, 1) *
                                                        tl_sketch_last_extent(between, 3));
    found->is_fed = tl_sketch_band_rows(s, found->window, between, bytes, &found->rows);
    if (found->is_fed)
        return;
    found->rows = 1;
    for (int64_t r = 2; r * s->target->cores <= rows; r++)
        if (rows % r == 0 && 4 * r * bytes <= 3 * s->target->l1_bytes)
            found->rows = r;
}

tl_status tl_sketch_band_sum(tl_schedule *s, tl_block_ref anchor, tl_map *done, tl_diag *diag)
{
    const char *name = tl_schedule_get_block(s, anchor)->name;
    stages found;
    tl_loop_list loops, all = { 0 };
    if (!find_stages(s, tl_schedule_get_block(s, anchor), &found))
        return tl_refuse(diag, "default schedule", name, "reads nothing that a window makes");
    tl_block_ref out = tl_schedule_name_block(s, found.out->name),
                 between = tl_schedule_name_block(s, found.between->name),
                 window = tl_schedule_name_block(s, found.window->name);
    TL_TRY(tl_sketch_loops(s, out, 0, &loops, diag));
    if (loops.count < 4 || found.between->iter_count != loops.count ||
        tl_sketch_last_extent(found.out, 2) != tl_sketch_last_extent(found.between, 2))
        return tl_refuse(diag, "default schedule", name, "has other axes than %s",
                         found.between->name);

    int64_t rows;
    choose_rows(s, &found);
    TL_TRY(tl_sketch_decide_band(s, name, tl_sketch_last_extent(found.out, 2), found.rows, &rows,
                                 diag));

    /* columns of vectors, rows, what a row has, lanes: the last four loops */
    int column = loops.count - 4, line = loops.count - 3;
    tl_loop_ref bands[2];
    TL_TRY(tl_split(s, loops.loops[line], (int64_t[]){ 0, rows }, 2, bands, diag));
    for (int i = 0; i < column; i++)
        tl_loop_push(&all, loops.loops[i]);
    tl_loop_push(&all, bands[0]);
    int first = all.count;
    tl_loop_push(&all, loops.loops[column]);
    tl_loop_push(&all, bands[1]);
    for (int i = line + 1; i < loops.count; i++)
        tl_loop_push(&all, loops.loops[i]);
    TL_TRY(tl_reorder(s, all.loops, all.count, diag));
    TL_TRY(tl_sketch_contraction(s, anchor, out, first, false, diag));
    TL_TRY(tl_compute_at(s, between, bands[0], diag));
    if (found.is_fed)
        TL_TRY(tl_sketch_band(s, window, between, first, rows, done, diag));
    else
        TL_TRY(tl_sketch_window_from(s, window, between, first, diag));
    const tl_block_ref made[] = { anchor, out, between, window };
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        tl_map_put(done, tl_schedule_get_block(s, made[i])->name, s);
    return TL_OK;
}
