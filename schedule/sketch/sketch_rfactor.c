/* schedule/sketch/sketch_rfactor.c: a reduction with few results in two: partial results, then what they come to.
 *
 *     outer part of the longest reduce loop:         inner part:
 *     for k0 in parts      parallel                  for k0
 *       for k1                                         for k1 in lanes     vectorized
 *         part[k0] += ...                                part[k1] += ...
 *     for k0: acc += part[k0]                        for k1: acc += part[k1]
 */
#include "runtime/base/checked.h"
#include "schedule/sketch/sketch_private.h"

enum { JOBS_PER_CORE = 16 };

bool tl_sketch_needs_rfactor(const tl_schedule *s, const tl_block *block)
{
    if (!tl_block_is_reduction(block) || block->store_count != 1 || block->predicate != NULL ||
        tl_keeps_order(s, block))
        return false;
    int64_t results = tl_sketch_points(block, TL_ITER_SPATIAL),
            steps = tl_sketch_points(block, TL_ITER_REDUCE), longest = 1;
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_REDUCE)
            longest = tl_max64(longest, tl_max_extent(block->iters[i].extent));
    if (tl_sketch_divisors(longest, (int64_t[3]){ 0 }, 3) < 3)
        return false; /* nothing between 1 and all of it */
    if (tl_sketch_needs_tiling(block))
        return results <= steps && results <= (int64_t)s->target->cores * JOBS_PER_CORE;
    return steps > s->target->cores && results <= steps;
}

tl_status tl_sketch_factor(tl_schedule *s, tl_block_ref ref, const tl_loop_list *own,
                           tl_loop_ref whole, tl_loop_ref factored, tl_loop_ref rest,
                           tl_block_ref *partial, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, ref);
    tl_loop_list all = { 0 };
    tl_loop_push(&all, factored);
    tl_loop_push(&all, rest);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < own->count; i++)
            if (!tl_same_loop(own->loops[i], whole) &&
                tl_sketch_drives_reduce(s, block, own->loops[i]) == (pass == 0))
                tl_loop_push(&all, own->loops[i]);
    TL_TRY(tl_reorder(s, all.loops, all.count, diag));
    return tl_rfactor(s, ref, factored, partial, diag);
}

tl_status tl_sketch_rfactor(tl_schedule *s, tl_block_ref ref, tl_rfactor_part part,
                            tl_block_ref *partial, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, ref);
    tl_loop_list own;
    TL_TRY(tl_sketch_loops(s, ref, 0, &own, diag));
    tl_loop_ref longest = { 0 }, parts[2];
    for (int i = 0; i < own.count; i++)
        if (tl_sketch_drives_reduce(s, block, own.loops[i]) &&
            (longest.id == 0 || tl_sketch_extent(s, own.loops[i]) > tl_sketch_extent(s, longest)))
            longest = own.loops[i];
    int64_t divisors[64];
    int count = tl_sketch_divisors(tl_sketch_extent(s, longest), divisors, 64);
    if (longest.id == 0 || count < 3)
        return tl_refuse(diag, "rfactor", block->name, "has no reduce loop that can be divided");
    int64_t size =
        tl_decide(s, block->name, "rfactor", divisors + 1, count - 2, divisors[count / 2]);
    TL_TRY(tl_split(s, longest, (int64_t[]){ 0, size }, 2, parts, diag));
    int factored = part == TL_RFACTOR_OUTER ? 0 : 1;
    return tl_sketch_factor(s, ref, &own, longest, parts[factored], parts[1 - factored], partial,
                            diag);
}
