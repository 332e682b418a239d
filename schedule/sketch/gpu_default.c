/* schedule/sketch/gpu_default.c: the default schedule for a GPU: which rule schedules which block.
 *
 * What stands at the top of a program is a launch each, and what one launch hands to the next lies in global memory.
 *
 *   1. spatial stages that one other stage reads are computed inline;
 *   2. two contractions with row-wise stages between them are one launch (gpu_attention.c), block by block of keys where the
 *      program is written so (gpu_online.c);
 *   3. contractions get tiles in shared memory, by tensor cores (gpu_mma.c) or in registers (gpu_tile.c), the stage that reads
 *      the result their epilogue; those of few results and long sums in pieces (gpu_split.c);
 *   4. chains of reductions and maps along rows are one launch (gpu_rows.c);
 *   5. reductions of long rows a warp a row (gpu_combine.c);
 *   6. other reductions a thread a result (gpu_nest.c), what is left a thread an element;
 *   7. stages inside of loops that the program was written with (a step of time, a scan) share out their elements among the
 *      threads of a block, which wait for each other between stages; the loops around them, where iterations are
 *      independent, are blocks;
 *   8. barriers where threads share elements.
 *
 * What none of the rules takes runs as it was written, by one thread. */
#include "schedule/dependence.h"
#include "schedule/sketch/gpu_private.h"

static bool is_reduction(const tl_block *block)
{
    return tl_block_is_reduction(block) && block->call == NULL && block->store_count == 1;
}

static bool is_contraction(tl_schedule *s, const tl_block *block)
{
    tl_contraction c;
    return tl_find_contraction(s->arena, block, &c);
}

static bool is_alone(tl_schedule *s, const tl_block *block)
{
    return tl_sketch_shared_loops(s, tl_schedule_name_block(s, block->name)) == 0;
}

static bool is_reduction_alone(tl_schedule *s, const tl_block *block)
{
    return is_reduction(block) && is_alone(s, block);
}

static bool is_contraction_alone(tl_schedule *s, const tl_block *block)
{
    return is_contraction(s, block) && is_alone(s, block);
}

/* ---- blocks with the stage that reads them ---- */

static tl_status check_out(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_diag *diag)
{
    if (is_alone(s, tl_schedule_get_block(s, out)))
        return TL_OK;
    return tl_refuse(diag, "default schedule", tl_schedule_get_block(s, anchor)->name,
                     "has an epilogue in other loops");
}

/* By tensor cores where its types have them. */
static tl_status product(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_diag *diag)
{
    tl_schedule_state before = tl_schedule_save(s);
    tl_status status = tl_gpu_wgmma(s, anchor, out, diag);
    if (status == TL_ILLEGAL_SCHEDULE) {
        tl_schedule_restore(s, &before);
        status = tl_gpu_mma(s, anchor, out, diag);
    }
    if (status != TL_ILLEGAL_SCHEDULE)
        return status;
    tl_schedule_restore(s, &before);
    return tl_gpu_tile(s, anchor, out, diag);
}

/* Pieces of the sum first, then what they come to with the stage behind. */
static tl_status product_in_pieces(tl_schedule *s, tl_block_ref anchor, tl_block_ref out,
                                   tl_diag *diag)
{
    tl_block_ref part, copy;
    TL_TRY(tl_gpu_split_sum(s, anchor, &part, diag));
    TL_TRY(tl_cache_write(s, part, "register", &copy, diag));
    TL_TRY(product(s, part, copy, diag));
    return tl_gpu_reduction(s, anchor, out, diag);
}

static tl_status contraction(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_map *done,
                             tl_diag *diag)
{
    (void)done;
    TL_TRY(check_out(s, anchor, out, diag));
    tl_schedule_state before = tl_schedule_save(s);
    tl_status status = product_in_pieces(s, anchor, out, diag);
    if (status != TL_ILLEGAL_SCHEDULE)
        return status;
    tl_schedule_restore(s, &before);
    return product(s, anchor, out, diag);
}

static tl_status reduction(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_map *done,
                           tl_diag *diag)
{
    (void)done;
    TL_TRY(check_out(s, anchor, out, diag));
    return tl_gpu_reduction(s, anchor, out, diag);
}

/* ---- chains ---- */

/* Chains along rows, the last stage first. */
static tl_status apply_rows(tl_schedule *s, tl_map *done, const tl_map *known, tl_diag *diag)
{
    const tl_block **blocks;
    int count = tl_sketch_blocks(s, &blocks);
    for (int i = count - 1; i >= 0; i--) {
        if (tl_map_has(done, blocks[i]->name) || !tl_map_has(known, blocks[i]->name) ||
            !is_alone(s, blocks[i]) || blocks[i]->call != NULL || blocks[i]->store_count != 1)
            continue;
        tl_schedule_state before = tl_schedule_save(s);
        tl_diag why = { 0 };
        tl_status status =
            tl_gpu_rows(s, tl_schedule_name_block(s, blocks[i]->name), done, known, &why);
        TL_TRY(tl_sketch_tried(s, &before, status, &why, diag));
    }
    return TL_OK;
}

/* Long rows of terms. */
static tl_status combine(tl_schedule *s, tl_block_ref anchor, tl_map *done, tl_diag *diag)
{
    const char *name = tl_schedule_get_block(s, anchor)->name;
    TL_TRY(tl_gpu_combine(s, anchor, diag));
    tl_map_put(done, name, s);
    return TL_OK;
}

static tl_status nest(tl_schedule *s, tl_block_ref anchor, tl_map *done, tl_diag *diag)
{
    (void)done;
    return tl_gpu_nest(s, anchor, diag);
}

/* The loops around stages, from the outermost on, as far as their iterations are independent: blocks of threads. */
static tl_status bind_around(tl_schedule *s, tl_block_ref ref, int shared)
{
    enum { MOST_BLOCKS_YZ = 65535 };
    static const char *const axes[] = { "blockIdx.x", "blockIdx.y", "blockIdx.z" };
    tl_loop_list loops;
    TL_TRY(tl_sketch_loops(s, ref, 0, &loops, NULL));
    for (int i = 0; i < loops.count && i < shared && i < 3; i++) {
        const tl_stmt *loop = tl_schedule_get_loop(s, loops.loops[i]);
        if (loop->u.loop.kind != TL_LOOP_SERIAL ||
            (i > 0 && tl_sketch_extent(s, loops.loops[i]) > MOST_BLOCKS_YZ))
            return TL_OK;
        tl_schedule_state before = tl_schedule_save(s);
        tl_status status = tl_bind_loop(s, loops.loops[i], axes[i], NULL);
        if (status != TL_ILLEGAL_SCHEDULE)
            TL_TRY(status);
        else
            tl_schedule_restore(s, &before);
        if (status != TL_OK)
            return TL_OK;
    }
    return TL_OK;
}

/* Stages inside of loops that the program has: each on its own among the threads of one block. All take part in every
 * barrier, so all stages have as many threads. */
static tl_status apply_shared(tl_schedule *s, const tl_map *done, const tl_map *known,
                              tl_diag *diag)
{
    enum { THREADS = 128 };
    const tl_block **blocks;
    int count = tl_sketch_blocks(s, &blocks);
    for (int i = 0; i < count; i++) {
        tl_block_ref ref = tl_schedule_name_block(s, blocks[i]->name);
        int first = tl_sketch_shared_loops(s, ref);
        if (first == 0 || tl_map_has(done, blocks[i]->name) ||
            !tl_map_has(known, blocks[i]->name) || blocks[i]->call != NULL)
            continue;
        tl_schedule_state before = tl_schedule_save(s);
        tl_diag why = { 0 };
        tl_loop_list loops, spatial = { 0 };
        tl_loop_ref parts[3];
        tl_status status = tl_sketch_loops(s, ref, first, &loops, &why);
        for (int k = 0; k < loops.count && status == TL_OK; k++) {
            const tl_iter *iter;
            if (tl_loop_drives(blocks[i], tl_schedule_get_loop(s, loops.loops[k])->u.loop.var,
                               &iter) != TL_DRIVES_SPATIAL)
                break;
            tl_loop_push(&spatial, loops.loops[k]);
        }
        if (status == TL_OK && spatial.count == 0)
            status = tl_refuse(&why, "default schedule", blocks[i]->name,
                               "has no spatial loop of its own");
        if (status == TL_OK)
            status = tl_gpu_spread(s, spatial.loops, spatial.count, THREADS, 1, false, parts, &why);
        TL_TRY(tl_sketch_tried(s, &before, status, &why, diag));
        TL_TRY(bind_around(s, ref, first));
    }
    return TL_OK;
}

tl_status tl_gpu_default(tl_schedule *s, tl_diag *diag)
{
    tl_map *done = tl_map_create(s->arena), *known = tl_map_create(s->arena);
    const tl_block **blocks;
    TL_TRY(tl_sketch_inline_stages(s));
    int count = tl_sketch_blocks(s, &blocks);
    for (int i = 0; i < count; i++)
        tl_map_put(known, blocks[i]->name, s);
    /* products with row-wise stages between them come first, while the stages are untouched */
    TL_TRY(tl_sketch_apply_each(s, is_contraction_alone, tl_gpu_attention, done, NULL, diag));
    TL_TRY(tl_sketch_apply_each(s, is_contraction, tl_gpu_fragments, done, NULL, diag));
    TL_TRY(tl_sketch_apply_each(s, is_contraction, tl_gpu_online, done, NULL, diag));
    TL_TRY(tl_sketch_apply_anchored(s, is_contraction_alone, contraction, done, known, diag));
    TL_TRY(apply_rows(s, done, known, diag));
    TL_TRY(tl_sketch_apply_each(s, is_reduction_alone, combine, done, known, diag));
    TL_TRY(tl_sketch_apply_anchored(s, is_reduction_alone, reduction, done, known, diag));
    TL_TRY(tl_sketch_apply_each(s, is_alone, nest, done, known, diag));
    tl_schedule_state before = tl_schedule_save(s);
    TL_TRY(apply_shared(s, done, known, diag));
    tl_diag why = { 0 };
    tl_status status = tl_put_barriers(s, &why);
    TL_TRY(tl_sketch_tried(s, &before, status, &why, diag));
    return status == TL_OK ? TL_OK : tl_put_barriers(s, diag);
}
