/* schedule/sketch/gpu_default.c: the default schedule for a GPU: which rule schedules which block.
 *
 * What stands at the top of a program is a launch each, and what one launch hands to the next lies in global memory.
 *
 *   1. spatial stages that one other stage reads are computed inline;
 *   2. contractions get tiles in shared memory and registers (gpu_tile.c), the stage that reads the result their epilogue;
 *   3. reductions of long rows a warp a row (gpu_combine.c);
 *   4. other reductions a thread a result (gpu_nest.c), what is left a thread an element;
 *   5. stages inside of loops that the program was written with (a step of time, a scan) share out their elements among the
 *      threads of one block, which wait for each other between stages;
 *   6. barriers where threads share elements.
 *
 * What none of the rules takes runs as it was written, by one thread. */
#include "schedule/dependence.h"
#include "schedule/sketch/sketch_private.h"

static bool is_reduction(const tl_block *block)
{
    return tl_block_is_reduction(block) && block->call == NULL && block->store_count == 1;
}

typedef bool block_test(tl_schedule *s, const tl_block *block);
typedef tl_status block_rule(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_diag *diag);

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

static tl_status apply_anchored(tl_schedule *s, block_test *fits, block_rule *rule, tl_map *done,
                                const tl_map *known, tl_diag *diag)
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
        tl_status status = tl_sketch_find_epilogue(s, block, &out, &why);
        if (status == TL_OK && (tl_map_has(done, tl_schedule_get_block(s, out)->name) ||
                                !is_alone(s, tl_schedule_get_block(s, out))))
            status = tl_refuse(&why, "default schedule", block->name, "has an epilogue elsewhere");
        if (status == TL_OK)
            status = rule(s, anchor, out, &why);
        TL_TRY(tl_sketch_tried(s, &before, status, &why, diag));
        if (status != TL_OK)
            continue;
        tl_map_put(done, block->name, s);
        tl_map_put(done, tl_schedule_get_block(s, out)->name, s);
    }
    return TL_OK;
}

/* Long rows of terms. */
static tl_status apply_combine(tl_schedule *s, tl_map *done, const tl_map *known, tl_diag *diag)
{
    const tl_block **blocks;
    int count = tl_sketch_blocks(s, &blocks);
    for (int i = 0; i < count; i++) {
        if (tl_map_has(done, blocks[i]->name) || !tl_map_has(known, blocks[i]->name) ||
            !is_reduction_alone(s, blocks[i]))
            continue;
        tl_schedule_state before = tl_schedule_save(s);
        tl_diag why = { 0 };
        tl_status status = tl_gpu_combine(s, tl_schedule_name_block(s, blocks[i]->name), &why);
        TL_TRY(tl_sketch_tried(s, &before, status, &why, diag));
        if (status == TL_OK)
            tl_map_put(done, blocks[i]->name, s);
    }
    return TL_OK;
}

static tl_status apply_nests(tl_schedule *s, tl_map *done, const tl_map *known, tl_diag *diag)
{
    const tl_block **blocks;
    int count = tl_sketch_blocks(s, &blocks);
    for (int i = 0; i < count; i++) {
        if (tl_map_has(done, blocks[i]->name) || !tl_map_has(known, blocks[i]->name) ||
            !is_alone(s, blocks[i]))
            continue;
        tl_schedule_state before = tl_schedule_save(s);
        tl_diag why = { 0 };
        tl_status status = tl_gpu_nest(s, tl_schedule_name_block(s, blocks[i]->name), &why);
        TL_TRY(tl_sketch_tried(s, &before, status, &why, diag));
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
    TL_TRY(apply_anchored(s, is_contraction_alone, tl_gpu_tile, done, known, diag));
    TL_TRY(apply_combine(s, done, known, diag));
    TL_TRY(apply_anchored(s, is_reduction_alone, tl_gpu_reduction, done, known, diag));
    TL_TRY(apply_nests(s, done, known, diag));
    tl_schedule_state before = tl_schedule_save(s);
    TL_TRY(apply_shared(s, done, known, diag));
    tl_diag why = { 0 };
    tl_status status = tl_put_barriers(s, &why);
    TL_TRY(tl_sketch_tried(s, &before, status, &why, diag));
    return status == TL_OK ? TL_OK : tl_put_barriers(s, diag);
}
