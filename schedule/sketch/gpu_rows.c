/* schedule/sketch/gpu_rows.c: chains of reductions and maps along rows in one launch: softmax, layer normalisation.
 *
 *     for <rows>//W  blockIdx.x
 *       for W  threadIdx.y                       rows of a block; long ones have one for themselves
 *         max[] = max(x[row, :])                 T threads share a row: each its terms, then all by shuffles
 *         e[:] = exp(x[row, :] - max[])          shared memory
 *         sum[] = sum(e[:])
 *         y[row, :] = e[:]/sum[]
 *
 * Every stage that feeds the result alone moves under its loop over rows; what stages hand on is in shared memory. */
#include "schedule/dependence.h"
#include "schedule/sketch/gpu_private.h"

enum {
    MOST_STAGES = 32,
    MOST_WARPS = 8,
    SHORT_ROW = 256, /* which a warp takes alone */
    LONG_ROW = 2048,
    MOST_UNROLLED = 16,
    WIDE = 4,
    SHARED_BYTES = 48 << 10,
};

typedef struct {
    int count;
    const char *names[MOST_STAGES]; /* of blocks, the last first */
} stage_list;

static bool reads_any(const tl_block *reader, const tl_block *writer)
{
    for (int i = 0; i < writer->store_count; i++)
        if (tl_block_reads_buffer(reader, writer->stores[i].buffer))
            return true;
    return false;
}

/* How many of the loops around `out` are its rows: those outside of its own sum; else those that it looks results of
 * reductions up by. */
static int row_depth(tl_schedule *s, const tl_block *out, const tl_loop_list *loops)
{
    const tl_expr *loads[16];
    int count = tl_collect_loads(out->stores[0].value, loads, 16), depth = 0;
    for (int i = 0; i < loops->count; i++)
        if (tl_sketch_drives_reduce(s, out, loops->loops[i]))
            return i;
    for (int l = 0; l < count; l++) {
        const tl_block **writers;
        if (tl_writers_of(s->arena, s->program->body, loads[l]->u.buffer, &writers) != 1 ||
            loads[l]->u.buffer->role != TL_ROLE_LOCAL)
            continue;
        int used = 0;
        for (int i = 0; i < loops->count; i++)
            if (tl_sketch_moves_load(s, out, loads[l], loops->loops[i]) ||
                tl_sketch_extent(s, loops->loops[i]) == 1)
                used = i + 1;
        if (used < loops->count && used > depth)
            depth = used;
    }
    return depth;
}

/* Terms of a row, or elements, whichever stage has more. */
static int64_t row_length(tl_schedule *s, tl_block_ref ref, int depth)
{
    tl_loop_list loops;
    int64_t length = 1;
    if (tl_sketch_loops(s, ref, depth, &loops, NULL) != TL_OK)
        return 1;
    for (int i = 0; i < loops.count; i++)
        length *= tl_sketch_extent(s, loops.loops[i]);
    return length;
}

/* The stages that feed `out` move under `row`. */
static void gather(tl_schedule *s, tl_block_ref out, tl_loop_ref row, const tl_map *done,
                   const tl_map *known, stage_list *moved)
{
    const tl_block **blocks, *group[MOST_STAGES + 1];
    int count = tl_sketch_blocks(s, &blocks), group_count = 1;
    group[0] = tl_schedule_get_block(s, out);
    for (int i = count - 1; i >= 0 && moved->count < MOST_STAGES; i--) {
        const tl_block *block = blocks[i];
        bool feeds = false;
        tl_contraction product;
        for (int k = 0; k < group_count; k++)
            feeds |= reads_any(group[k], block);
        if (!feeds || tl_find_contraction(s->arena, block, &product) || block == group[0] ||
            tl_map_has(done, block->name) || !tl_map_has(known, block->name) ||
            block->call != NULL || block->store_count != 1 ||
            !tl_decide_range(s, block->name, "in_row", 0, 1, 1) ||
            tl_compute_at(s, tl_schedule_name_block(s, block->name), row, NULL) != TL_OK)
            continue; /* or it stays a launch of its own */
        group[group_count++] = block;
        moved->names[moved->count++] = block->name;
    }
}

/* ---- one stage of a row ---- */

/* A map: an element a thread, four at once where that comes out even. */
static tl_status share_map(tl_schedule *s, const tl_block *block, const tl_loop_list *loops,
                           int64_t threads, tl_diag *diag)
{
    tl_loop_ref all = loops->loops[0], parts[3];
    int64_t elements = 1;
    for (int i = 0; i < loops->count; i++)
        elements *= tl_sketch_extent(s, loops->loops[i]);
    bool wide = elements % (threads * WIDE) == 0 && tl_gpu_is_wide(s, block, WIDE);
    if (loops->count > 1)
        TL_TRY(tl_fuse(s, loops->loops, loops->count, &all, diag));
    TL_TRY(tl_split(s, all, (int64_t[]){ 0, threads, WIDE }, wide ? 3 : 2, parts, diag));
    TL_TRY(tl_bind_loop(s, parts[1], "threadIdx.x", diag));
    if (wide)
        TL_TRY(tl_vectorize(s, parts[2], diag));
    return tl_sketch_extent(s, parts[0]) <= MOST_UNROLLED ? tl_unroll(s, parts[0], diag) : TL_OK;
}

/* A sum of which every thread has terms of its own: part, then all parts by shuffles. */
static tl_status share_terms(tl_schedule *s, tl_block_ref ref, const tl_loop_list *terms, int depth,
                             int64_t threads, tl_diag *diag)
{
    tl_loop_ref all = terms->loops[0], parts[2];
    tl_block_ref part;
    tl_loop_list loops;
    if (terms->count > 1)
        TL_TRY(tl_fuse(s, terms->loops, terms->count, &all, diag));
    TL_TRY(tl_split(s, all, (int64_t[]){ 0, threads }, 2, parts, diag));
    TL_TRY(tl_rfactor(s, ref, parts[1], &part, diag));
    const char *partial = tl_schedule_get_block(s, part)->stores[0].buffer->name;
    TL_TRY(tl_sketch_loops(s, ref, depth, &loops, diag));
    if (loops.count < 1)
        return tl_refuse(diag, "default schedule", "rows", "has no loop of parts");
    tl_loop_ref thread = loops.loops[loops.count - 1];
    TL_TRY(tl_compute_at(s, part, thread, diag));
    TL_TRY(tl_set_scope(s, partial, "register", diag));
    return tl_bind_loop(s, thread, "threadIdx.x", diag);
}

/* Many sums in a row: a thread each, in a register. */
static tl_status share_sums(tl_schedule *s, tl_block_ref ref, int depth, int64_t threads,
                            tl_diag *diag)
{
    tl_block_ref copy;
    tl_loop_list loops;
    tl_loop_ref all, parts[2];
    const char *name = tl_schedule_get_block(s, ref)->name;
    TL_TRY(tl_cache_write(s, ref, "register", &copy, diag));
    TL_TRY(tl_sketch_loops(s, copy, depth, &loops, diag));
    if (loops.count == 0)
        return tl_refuse(diag, "default schedule", name, "has no loop of sums");
    all = loops.loops[0];
    if (loops.count > 1)
        TL_TRY(tl_fuse(s, loops.loops, loops.count, &all, diag));
    TL_TRY(tl_split(s, all, (int64_t[]){ 0, threads }, 2, parts, diag));
    TL_TRY(tl_compute_at(s, ref, parts[1], diag));
    TL_TRY(tl_bind_loop(s, parts[1], "threadIdx.x", diag));
    TL_TRY(tl_sketch_loops(s, ref, depth + 2, &loops, diag));
    for (int i = loops.count - 1; i >= 0; i--)
        if (tl_sketch_extent(s, loops.loops[i]) <= MOST_UNROLLED)
            TL_TRY(tl_unroll(s, loops.loops[i], diag));
    return TL_OK;
}

tl_status tl_gpu_share_stage(tl_schedule *s, tl_block_ref ref, int depth, int64_t threads,
                             tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, ref);
    tl_loop_list loops, results = { 0 }, terms = { 0 }, order;
    int64_t result_count = 1;
    TL_TRY(tl_sketch_loops(s, ref, depth, &loops, diag));
    for (int i = 0; i < loops.count; i++) {
        bool is_term = tl_sketch_drives_reduce(s, block, loops.loops[i]);
        tl_loop_push(is_term ? &terms : &results, loops.loops[i]);
        result_count *= is_term ? 1 : tl_sketch_extent(s, loops.loops[i]);
    }
    if (loops.count == 0)
        return TL_OK; /* the first thread does it */
    if (terms.count == 0)
        return share_map(s, block, &results, threads, diag);
    order = results;
    for (int i = 0; i < terms.count; i++)
        tl_loop_push(&order, terms.loops[i]);
    TL_TRY(tl_reorder(s, order.loops, order.count, diag));
    if (result_count >= TL_WARP_LANES || tl_keeps_order(s, block))
        return share_sums(s, ref, depth, threads, diag);
    return share_terms(s, ref, &terms, depth, threads, diag);
}

/* ---- all of a row ---- */

/* What the stages of a row hand on, in shared memory; *bytes: how much it is. */
static tl_status place_results(tl_schedule *s, const stage_list *moved, const int64_t *elements,
                               int64_t *bytes, tl_diag *diag)
{
    *bytes = 0;
    for (int i = 0; i < moved->count; i++) {
        tl_block_ref ref = tl_schedule_name_block(s, moved->names[i]);
        const tl_buffer *buffer = tl_schedule_get_block(s, ref)->stores[0].buffer;
        *bytes += tl_storage_bytes(buffer->dtype, elements[i]);
        TL_TRY(tl_set_scope(s, buffer->name, "shared", diag));
    }
    return TL_OK;
}

static int64_t results_of_row(tl_schedule *s, tl_block_ref ref, int depth)
{
    tl_loop_list loops;
    int64_t all = 1;
    if (tl_sketch_loops(s, ref, depth, &loops, NULL) != TL_OK)
        return 1;
    const tl_block *block = tl_schedule_get_block(s, ref);
    for (int i = 0; i < loops.count; i++)
        all *= tl_sketch_drives_reduce(s, block, loops.loops[i])
                   ? 1
                   : tl_sketch_extent(s, loops.loops[i]);
    return all;
}

/* Terms of one sum of the stage, if threads are to share them; else none. */
static int64_t shared_terms(tl_schedule *s, tl_block_ref ref, int depth)
{
    const tl_block *block = tl_schedule_get_block(s, ref);
    int64_t results = results_of_row(s, ref, depth);
    return tl_block_is_reduction(block) && results < TL_WARP_LANES
               ? row_length(s, ref, depth) / tl_max64(results, 1)
               : INT64_MAX;
}

/* As many threads a row as it is long, but none without a term of every sum. Of long rows few are then under way in a
 * multiprocessor, whose first cache has what later stages read again. */
static int64_t decide_threads(tl_schedule *s, tl_block_ref out, const stage_list *moved, int depth,
                              int64_t length)
{
    enum { OPTIONS = 6 };
    const int64_t options[OPTIONS] = { 32, 64, 128, 256, 512, 1024 };
    int64_t most = shared_terms(s, out, depth), threads = options[0];
    for (int i = 0; i < moved->count; i++)
        most = tl_min64(most, shared_terms(s, tl_schedule_name_block(s, moved->names[i]), depth));
    most = tl_min64(most, length <= SHORT_ROW     ? options[0]
                          : length <= LONG_ROW    ? options[2]
                          : length < 2 * LONG_ROW ? options[3]
                          : length < 4 * LONG_ROW ? options[4]
                                                  : options[5]);
    for (int i = 1; i < OPTIONS; i++)
        if (options[i] <= most)
            threads = options[i];
    return tl_decide(s, tl_schedule_get_block(s, out)->name, "threads", options, OPTIONS, threads);
}

tl_status tl_gpu_rows(tl_schedule *s, tl_block_ref out, tl_map *done, const tl_map *known,
                      tl_diag *diag)
{
    const char *out_name = tl_schedule_get_block(s, out)->name;
    tl_loop_list loops;
    stage_list moved = { 0 };
    int64_t length, elements[MOST_STAGES], bytes, warps = 1, threads;
    TL_TRY(tl_sketch_loops(s, out, 0, &loops, diag));
    int depth = row_depth(s, tl_schedule_get_block(s, out), &loops);
    if (depth < 1 || depth >= loops.count)
        return tl_refuse(diag, "default schedule", out_name, "has no rows");
    tl_loop_ref row = loops.loops[0], parts[2];
    int inside = 1;
    length = row_length(s, out, depth);
    if (depth > 1)
        TL_TRY(tl_fuse(s, loops.loops, depth, &row, diag));
    int64_t rows = tl_sketch_extent(s, row);
    if (tl_schedule_get_loop(s, row)->u.loop.extent->kind != TL_EXPR_INT)
        return tl_refuse(diag, "default schedule", out_name, "has as many rows as a dim says");
    for (int64_t w = MOST_WARPS; w > 1 && warps == 1; w /= 2)
        if (rows % w == 0 && length <= SHORT_ROW)
            warps = w;
    parts[0] = parts[1] = row;
    if (warps > 1) {
        TL_TRY(tl_split(s, row, (int64_t[]){ 0, warps }, 2, parts, diag));
        inside = 2;
    }
    gather(s, out, parts[1], done, known, &moved);
    bool reduces = false;
    for (int i = 0; i < moved.count; i++) {
        tl_block_ref ref = tl_schedule_name_block(s, moved.names[i]);
        reduces |= tl_block_is_reduction(tl_schedule_get_block(s, ref));
        elements[i] = results_of_row(s, ref, inside) * warps;
        length = tl_max64(length, row_length(s, ref, inside));
    }
    if (!reduces)
        return tl_refuse(diag, "default schedule", out_name, "is behind no reduction");
    TL_TRY(place_results(s, &moved, elements, &bytes, diag));
    if (bytes > SHARED_BYTES)
        return tl_refuse(diag, "default schedule", out_name, "has rows too long for shared memory");
    threads = decide_threads(s, out, &moved, inside, length);
    if (threads * warps > TL_MAX_BLOCK_THREADS)
        return tl_refuse(diag, "default schedule", out_name, "has blocks that are too large");
    for (int i = moved.count - 1; i >= 0; i--)
        TL_TRY(tl_gpu_share_stage(s, tl_schedule_name_block(s, moved.names[i]), inside, threads,
                                  diag));
    TL_TRY(tl_gpu_share_stage(s, out, inside, threads, diag));
    if (warps > 1)
        TL_TRY(tl_bind_loop(s, parts[1], "threadIdx.y", diag));
    TL_TRY(tl_bind_loop(s, parts[0], "blockIdx.x", diag));
    for (int i = 0; i < moved.count; i++)
        tl_map_put(done, moved.names[i], s);
    tl_map_put(done, out_name, s);
    return TL_OK;
}
