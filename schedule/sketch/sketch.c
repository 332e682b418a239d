/* schedule/sketch/sketch.c: the default schedule: which rule schedules which block.
 *
 *   1. spatial stages that one other stage reads are computed inline (not into a contraction, which reads an
 *      element many times);
 *   2. contractions between transforms bring those along, a band of tiles at a time (sketch_staged.c), windows over
 *      contractions these, a band of rows at a time (sketch_band.c), contractions over windows both
 *      (sketch_band_sum.c), and two contractions with row-wise stages between
 *      them run a block of rows at a time (sketch_chained.c); the others
 *      get a register tile (sketch_contraction.c), the stage that reads the result their epilogue;
 *   3. reductions whose lanes have their own data a register row (sketch_window.c), those of products whose terms lie
 *      side by side a vector of them (sketch_reduce_lanes.c);
 *   4. row-wise chains are brought together a row at a time (sketch_rows.c);
 *   5. what is left is vectorized nest by nest (sketch_nest.c);
 *   6. every phase gets its parallel loop (sketch_parallel.c). */
#include <string.h>
#include "runtime/base/array.h"
#include "schedule/sketch/sketch_private.h"

enum { CHUNKS_PER_CORE = 8 }; /* enough iterations to share out evenly */

typedef struct {
    const tl_block **blocks;
    int count, capacity;
    tl_arena *arena;
} block_list;

static bool add_block(const tl_stmt *stmt, void *context)
{
    block_list *list = context;
    if (stmt->kind != TL_STMT_BLOCK)
        return true;
    TL_ROOM(list->arena, list->blocks, list->count, list->capacity);
    list->blocks[list->count++] = stmt->u.block;
    return true;
}

int tl_sketch_blocks(tl_schedule *s, const tl_block ***out)
{
    block_list list = { .arena = s->arena };
    tl_stmt_visit(s->program->body, add_block, &list);
    *out = list.blocks;
    return list.count;
}

static bool is_contraction(tl_schedule *s, const tl_block *block)
{
    tl_contraction c;
    return tl_find_contraction(s->arena, block, &c);
}

tl_status tl_sketch_inline_stages(tl_schedule *s)
{
    const tl_block **blocks, **readers;
    int count = tl_sketch_blocks(s, &blocks);
    for (int i = 0; i < count; i++) {
        const tl_block *block = blocks[i];
        if (!tl_block_is_spatial(block) || block->store_count != 1 ||
            block->stores[0].buffer->role != TL_ROLE_LOCAL)
            continue;
        int reader_count =
            tl_readers_of(s->arena, s->program->body, block->stores[0].buffer, &readers);
        if (reader_count != 1 || is_contraction(s, readers[0]) ||
            tl_sketch_is_between(s, block, readers[0]) ||
            tl_sketch_is_of_turned_row(s, block, readers[0]) ||
            !tl_decide_range(s, block->name, "inline", 0, 1, 1))
            continue;
        tl_status status = tl_compute_inline(s, tl_schedule_name_block(s, block->name), NULL);
        if (status != TL_OK && status != TL_ILLEGAL_SCHEDULE)
            return status;
    }
    return TL_OK;
}

/* Whether lanes read every second element: two vectors, shuffled. */
static bool reads_pairs(tl_schedule *s, const tl_expr *load, const tl_var *lane)
{
    return tl_access_stride(s->arena, load->u.buffer, load->args, lane) == 2;
}

/* A reduction with a contiguous spatial iter, all of whose loads either move with it by one or two or not at all, or can be
 * packed so that they do, or are the same for groups of lanes. */
static bool is_window(tl_schedule *s, const tl_block *block)
{
    const tl_expr *loads[8];
    if (!tl_block_is_reduction(block) || block->store_count != 1 ||
        tl_sketch_lane_total(s, block) != NULL)
        return false;
    const tl_var *lane = tl_contiguous_iter(s->arena, block);
    if (lane == NULL)
        return false;
    int count = tl_collect_loads(block->stores[0].value, loads, 8);
    for (int l = 0; l < count; l++)
        if (!tl_sketch_reads_lines(s, loads[l], lane) && !reads_pairs(s, loads[l], lane) &&
            !tl_sketch_can_pack_lanes(s, loads[l], lane) &&
            !tl_sketch_lanes_share(s, loads[l], lane))
            return false;
    return true;
}

static bool is_window_alone(tl_schedule *s, const tl_block *block)
{
    return !is_contraction(s, block) && is_window(s, block);
}

/* A window over each of many planes (a depthwise convolution, channels not in blocks): what lanes share, a weight, moves with
 * nothing that they do not move with, so that a tile would have one row. A register row of the window has several. Long
 * sums stay with the tile, which cuts them. */
static bool is_window_of_planes(tl_schedule *s, const tl_block *block)
{
    tl_contraction c;
    bool has_rows = false;
    if (!tl_find_contraction(s->arena, block, &c) || tl_sketch_is_constant(c.panel->u.buffer) ||
        tl_sketch_points(block, TL_ITER_REDUCE) > TL_WHOLE_STEPS || !is_window(s, block))
        return false;
    for (int i = 0; i < block->iter_count; i++) {
        const tl_iter *iter = &block->iters[i];
        if (iter->kind != TL_ITER_SPATIAL || tl_max_extent(iter->extent) == 1)
            continue;
        bool in_panel = tl_expr_uses_var(c.panel, iter->var),
             in_stream = tl_expr_uses_var(c.stream, iter->var);
        if (in_stream && !in_panel)
            return false;
        has_rows |= in_panel && !in_stream && iter->var != c.vector;
    }
    return has_rows;
}

static bool is_tiled(tl_schedule *s, const tl_block *block)
{
    return is_contraction(s, block) && !is_window_of_planes(s, block);
}

static tl_status contraction(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_map *done,
                             tl_diag *diag)
{
    (void)done;
    tl_schedule_state before = tl_schedule_save(s);
    tl_status status = tl_sketch_split_sum(s, anchor, out, NULL);
    if (status != TL_ILLEGAL_SCHEDULE)
        return status;
    tl_schedule_restore(s, &before);
    int shared = tl_sketch_shared_loops(s, out);
    return tl_sketch_contraction(s, anchor, out, shared, shared > 0, diag);
}

static tl_status window(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_map *done,
                        tl_diag *diag)
{
    (void)done;
    return tl_sketch_window(s, anchor, out, diag);
}

static tl_status band(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_map *done,
                      tl_diag *diag)
{
    return tl_sketch_band(s, anchor, out, 0, 0, done, diag);
}

tl_status tl_sketch_tried(tl_schedule *s, const tl_schedule_state *before, tl_status status,
                          const tl_diag *why, tl_diag *diag)
{
    if (status != TL_ILLEGAL_SCHEDULE)
        return status == TL_OK ? TL_OK : tl_fail(diag, status, "%s", why->text);
    tl_schedule_restore(s, before);
    return TL_OK;
}

/* The stage behind the block, if nothing else has scheduled it and a tile finds its sums in registers of its own; else a copy. */
static tl_status find_out(tl_schedule *s, const tl_block *block, const tl_map *done,
                          tl_block_ref *out, tl_diag *diag)
{
    const tl_buffer *result = block->stores[0].buffer;
    TL_TRY(tl_sketch_find_epilogue(s, block, out, diag));
    const tl_block *reader = tl_schedule_get_block(s, *out);
    bool is_copied =
        tl_map_has(done, reader->name) ||
        (result->role == TL_ROLE_LOCAL && !tl_target_is_gpu(s->target) &&
         (!tl_sketch_reads_by_axes(s, reader, result) || tl_sketch_turns(s, reader, result)));
    return is_copied
               ? tl_cache_write(s, tl_schedule_name_block(s, block->name), "register", out, diag)
               : TL_OK;
}

tl_status tl_sketch_apply_anchored(tl_schedule *s, tl_block_test *fits, tl_block_rule *rule,
                                   tl_map *done, const tl_map *known, tl_diag *diag)
{
    const tl_block **blocks;
    int count = tl_sketch_blocks(s, &blocks);
    for (int i = 0; i < count; i++) {
        const tl_block *block = blocks[i];
        if (tl_map_has(done, block->name) || !tl_map_has(known, block->name) || !fits(s, block))
            continue;
        tl_block_ref out, anchor = tl_schedule_name_block(s, block->name);
        tl_schedule_state before = tl_schedule_save(s);
        tl_diag why = { 0 };
        tl_status status = find_out(s, block, done, &out, &why);
        if (status == TL_OK)
            status = rule(s, anchor, out, done, &why);
        TL_TRY(tl_sketch_tried(s, &before, status, &why, diag));
        if (status != TL_OK)
            continue;
        tl_map_put(done, block->name, s);
        tl_map_put(done, tl_schedule_get_block(s, out)->name, s);
    }
    return TL_OK;
}

tl_status tl_sketch_apply_each(tl_schedule *s, tl_block_test *fits, tl_group_rule *rule,
                               tl_map *done, const tl_map *known, tl_diag *diag)
{
    const tl_block **blocks;
    int count = tl_sketch_blocks(s, &blocks);
    for (int i = 0; i < count; i++) {
        const tl_block *block = blocks[i];
        if (tl_map_has(done, block->name) || (known && !tl_map_has(known, block->name)) ||
            !fits(s, block))
            continue;
        tl_schedule_state before = tl_schedule_save(s);
        tl_diag why = { 0 };
        tl_status status = rule(s, tl_schedule_name_block(s, block->name), done, &why);
        TL_TRY(tl_sketch_tried(s, &before, status, &why, diag));
    }
    return TL_OK;
}

/* Whether the block is the end of a row-wise chain: it writes a result from others, or sums up partial sums to one. */
static bool ends_rows(tl_schedule *s, const tl_block *block)
{
    if (block->store_count == 0 || block->stores[0].buffer->role == TL_ROLE_LOCAL)
        return false;
    if (tl_block_is_spatial(block))
        return true;
    const tl_block **blocks;
    int count = tl_sketch_blocks(s, &blocks);
    for (int i = 0; i < count; i++) {
        const char *total = tl_sketch_lane_total(s, blocks[i]);
        if (total != NULL && strcmp(total, block->name) == 0)
            return true;
    }
    return false;
}

/* Windows that would gather get copies of what they read; contractions see to that themselves. */
static bool may_gather(tl_schedule *s, const tl_block *block)
{
    return !is_contraction(s, block) && !is_window(s, block);
}

static bool is_any(tl_schedule *s, const tl_block *block)
{
    (void)s, (void)block;
    return true;
}

/* Maps that would gather get copies of what they read; what could stand in its reader's registers was scheduled before. */
static tl_status turn_result(tl_schedule *s, tl_block_ref anchor, tl_map *done, tl_diag *diag)
{
    const char *name = tl_schedule_get_block(s, anchor)->name;
    TL_TRY(tl_sketch_turn_result(s, anchor, done, diag));
    tl_map_put(done, name, s);
    return TL_OK;
}

/* Blocks that rules made on the way are scheduled: nobody else knows them. */
static void settle_made(tl_schedule *s, tl_map *done, const tl_map *known)
{
    const tl_block **blocks;
    int count = tl_sketch_blocks(s, &blocks);
    for (int i = 0; i < count; i++)
        if (!tl_map_has(known, blocks[i]->name))
            tl_map_put(done, blocks[i]->name, s);
}

/* Blocks that a rule made on the way (inits, copies, tails) are scheduled by it: only those of `names` are left. */
static tl_status schedule_rest(tl_schedule *s, tl_map *done, tl_map *known, tl_diag *diag)
{
    const tl_block **blocks;
    int count = tl_sketch_blocks(s, &blocks);
    for (int i = count - 1; i >= 0; i--) {
        if (tl_map_has(done, blocks[i]->name) || !tl_map_has(known, blocks[i]->name))
            continue;
        tl_block_ref ref = tl_schedule_name_block(s, blocks[i]->name);
        if (tl_schedule_get_block(s, ref) == NULL)
            continue; /* a rule inlined it */
        tl_map_put(done, blocks[i]->name, s);
        tl_schedule_state before = tl_schedule_save(s);
        tl_diag why = { 0 };
        tl_status status = ends_rows(s, blocks[i])
                               ? tl_sketch_rows(s, ref, done, &why)
                               : tl_sketch_nest(s, ref, tl_sketch_shared_loops(s, ref), &why);
        TL_TRY(tl_sketch_tried(s, &before, status, &why, diag)); /* or it runs as it was written */
    }
    return TL_OK;
}

tl_status tl_schedule_default(tl_schedule *s, tl_diag *diag)
{
    if (s->target != NULL && tl_target_is_gpu(s->target))
        return tl_gpu_default(s, diag);
    tl_map *done = tl_map_create(s->arena), *known = tl_map_create(s->arena);
    const tl_block **blocks;
    TL_TRY(tl_sketch_inline_stages(s));
    int count = tl_sketch_blocks(s, &blocks);
    for (int i = 0; i < count; i++)
        tl_map_put(known, blocks[i]->name, s);
    if (s->decide != NULL) /* of the search space, never of the default schedule */
        TL_TRY(tl_sketch_generic(s, false, done, known, diag));
    TL_TRY(tl_sketch_apply_each(s, is_contraction, tl_sketch_staged, done, NULL, diag));
    TL_TRY(tl_sketch_apply_each(s, is_contraction, tl_sketch_chained, done, NULL, diag));
    TL_TRY(tl_sketch_apply_each(s, is_contraction, tl_sketch_band_sum, done, NULL, diag));
    /* windows over contractions bring these along, before they are scheduled by themselves */
    TL_TRY(tl_sketch_apply_anchored(s, is_window_alone, band, done, known, diag));
    TL_TRY(tl_sketch_apply_anchored(s, is_tiled, contraction, done, known, diag));
    TL_TRY(tl_sketch_apply_each(s, may_gather, tl_sketch_turn_stream, done, known, diag));
    TL_TRY(tl_sketch_apply_anchored(s, is_window, window, done, known, diag));
    TL_TRY(
        tl_sketch_apply_each(s, tl_sketch_sums_terms, tl_sketch_reduce_lanes, done, known, diag));
    settle_made(s, done, known);
    TL_TRY(tl_sketch_apply_each(s, is_any, turn_result, done, known, diag));
    TL_TRY(schedule_rest(s, done, known, diag));
    return tl_sketch_parallel(s, (int64_t)s->target->cores * CHUNKS_PER_CORE, diag);
}
