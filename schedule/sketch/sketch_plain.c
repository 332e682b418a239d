/* schedule/sketch/sketch_plain.c: the plain space: schedules without expert rules, as Ansor has them for CPUs (Zheng and others
 * 2020): the ground on which search policies, cost models and transfer are compared, for the default schedule of the expert
 * rules is so near to the top of its space that nothing tells them apart there.
 *
 *     inlined or not        every spatial stage with one reader                            BLOCK.inline
 *     moved                 one that is not inlined, under a loop of its reader            BLOCK.at
 *     tiled                 SSRSRS, parts that divide, under its epilogue or not; rfactor  BLOCK.sketch, BLOCK.AXIS.N
 *     written out           0, 16, 64 or 512 operations                                    BLOCK.unroll
 *     shared out            the outer loops of each phase, fused                           BLOCK.parallel
 *
 * Where nobody decides it is the naive nest, its outer loop parallel, its contiguous loop innermost and vectorized; where a block
 * is not tiled, that is what it is. */
#include "schedule/sketch/sketch_private.h"

enum { LEAST_PARALLEL = 2, MOST_PLACES = 16 };

static const tl_block *only_reader(tl_schedule *s, const tl_block *block)
{
    const tl_block **readers;
    if (!tl_block_is_spatial(block) || block->store_count != 1 ||
        block->stores[0].buffer->role != TL_ROLE_LOCAL)
        return NULL;
    int count = tl_readers_of(s->arena, s->program->body, block->stores[0].buffer, &readers);
    return count == 1 ? readers[0] : NULL;
}

static tl_status inline_stages(tl_schedule *s)
{
    const tl_block **blocks;
    int count = tl_sketch_blocks(s, &blocks);
    for (int i = 0; i < count; i++) {
        if (only_reader(s, blocks[i]) == NULL ||
            !tl_decide_range(s, blocks[i]->name, "inline", 0, 1, 0))
            continue;
        tl_status status = tl_compute_inline(s, tl_schedule_name_block(s, blocks[i]->name), NULL);
        if (status != TL_OK && status != TL_ILLEGAL_SCHEDULE)
            return status;
    }
    return TL_OK;
}

/* The contiguous loop innermost, in vectors; a block without one stays as it is written. */
static tl_status vectorize_nest(tl_schedule *s, const char *name, tl_diag *diag)
{
    tl_block_ref ref = tl_schedule_name_block(s, name);
    const tl_block *block = tl_schedule_get_block(s, ref);
    const tl_var *contiguous = block->store_count > 0 ? tl_contiguous_iter(s->arena, block) : NULL;
    if (block->call != NULL || contiguous == NULL)
        return TL_OK;
    tl_loop_list loops, order = { 0 };
    tl_loop_ref outer;
    TL_TRY(tl_sketch_loops(s, ref, tl_sketch_shared_loops(s, ref), &loops, diag));
    const tl_loop_ref loop = tl_sketch_loop_of(s, tl_sketch_iter_of(block, contiguous), &loops);
    if (loop.id == 0)
        return TL_OK;
    for (int i = 0; i < loops.count; i++)
        if (!tl_same_loop(loops.loops[i], loop))
            tl_loop_push(&order, loops.loops[i]);
    tl_loop_push(&order, loop);
    if (order.count > 1)
        TL_TRY(tl_reorder(s, order.loops, order.count, diag));
    tl_dtype dtype = block->stores[0].buffer->dtype;
    return tl_sketch_vectorize(s, loop,
                               tl_target_lanes(s->target, dtype == TL_BOOL ? TL_F32 : dtype),
                               &outer, diag);
}

/* Under how many of the loops of its reader the block is made: 0 of them, where it stands. */
static tl_status move(tl_schedule *s, const char *name, tl_diag *diag)
{
    tl_block_ref ref = tl_schedule_name_block(s, name);
    const tl_block *reader = only_reader(s, tl_schedule_get_block(s, ref));
    tl_loop_list loops;
    if (reader == NULL || tl_sketch_shared_loops(s, ref) > 0)
        return TL_OK;
    TL_TRY(tl_sketch_loops(s, tl_schedule_name_block(s, reader->name), 0, &loops, diag));
    int places = loops.count < MOST_PLACES ? loops.count : MOST_PLACES;
    int64_t under = tl_decide_range(s, name, "at", 0, places, 0);
    return under > 0 ? tl_compute_at(s, ref, loops.loops[under - 1], diag) : TL_OK;
}

typedef tl_status nest_rule(tl_schedule *s, const char *name, tl_diag *diag);

/* Every block of `known` that is not in `done`, from the last to the first: readers before those that they read. */
static tl_status apply(tl_schedule *s, nest_rule *rule, const tl_map *done, const tl_map *known,
                       tl_diag *diag)
{
    const tl_block **blocks;
    int count = tl_sketch_blocks(s, &blocks);
    for (int i = count - 1; i >= 0; i--) {
        if (tl_map_has(done, blocks[i]->name) || !tl_map_has(known, blocks[i]->name))
            continue;
        tl_schedule_state before = tl_schedule_save(s);
        tl_diag why = { 0 };
        tl_status status = rule(s, blocks[i]->name, &why);
        TL_TRY(tl_sketch_tried(s, &before, status, &why, diag));
    }
    return TL_OK;
}

tl_status tl_schedule_plain(tl_schedule *s, tl_diag *diag)
{
    tl_map *done = tl_map_create(s->arena), *known = tl_map_create(s->arena);
    const tl_block **blocks;
    TL_TRY(inline_stages(s));
    int count = tl_sketch_blocks(s, &blocks);
    for (int i = 0; i < count; i++)
        tl_map_put(known, blocks[i]->name, s);
    TL_TRY(tl_sketch_generic(s, true, done, known, diag));
    TL_TRY(apply(s, vectorize_nest, done, known, diag));
    if (s->decide != NULL)
        TL_TRY(apply(s, move, done, known, diag));
    return tl_sketch_parallel(s, LEAST_PARALLEL, diag);
}
