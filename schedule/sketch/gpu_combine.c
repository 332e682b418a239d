/* schedule/sketch/gpu_combine.c: a reduction of long rows: the threads of a warp share one, and combine what they have.
 *
 *     for <results>//8  blockIdx.x
 *       for 8  threadIdx.y
 *         for 32  threadIdx.x                        neighbours read neighbours
 *           part = init                              a register
 *           for <terms>//32
 *             part op= x[result, term*32 + thread]
 *           result op= part                          by shuffles
 *
 * For reductions whose terms lie side by side; where results do, a thread each is as good (gpu_nest.c). */
#include "schedule/dependence.h"
#include "schedule/sketch/sketch_private.h"

enum { WARP = 32, WARPS = 8, LEAST_TERMS = 64 };

/* Whether neighbouring terms lie side by side in what is read, and neighbouring results do not. */
static bool reads_along_terms(tl_schedule *s, const tl_block *block)
{
    const tl_expr *loads[8];
    const tl_var *term = NULL, *line = tl_contiguous_iter(s->arena, block);
    int count = tl_collect_loads(block->stores[0].value, loads, 8);
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_REDUCE && tl_max_extent(block->iters[i].extent) > 1)
            term = block->iters[i].var;
    for (int l = 0; l < count && term != NULL; l++) {
        int64_t stride = tl_access_stride(s->arena, loads[l]->u.buffer, loads[l]->args, term);
        int64_t across =
            line != NULL ? tl_access_stride(s->arena, loads[l]->u.buffer, loads[l]->args, line) : 0;
        if (stride == 1 && across != 1)
            return true;
    }
    return false;
}

static bool fits(tl_schedule *s, const tl_block *block)
{
    int64_t terms = tl_sketch_points(block, TL_ITER_REDUCE);
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].extent->kind != TL_EXPR_INT || block->iters[i].kind == TL_ITER_ORDERED)
            return false;
    return !tl_keeps_order(s, block) && block->store_count == 1 && block->predicate == NULL &&
           terms >= LEAST_TERMS && tl_sketch_points(block, TL_ITER_SPATIAL) > 1 &&
           reads_along_terms(s, block);
}

tl_status tl_gpu_combine(tl_schedule *s, tl_block_ref ref, tl_diag *diag)
{
    const tl_block *block = tl_schedule_get_block(s, ref);
    tl_loop_list loops, results = { 0 }, terms = { 0 }, order = { 0 };
    tl_loop_ref term, parts[2], rows[2], row;
    tl_block_ref part;
    if (!fits(s, block))
        return tl_refuse(diag, "default schedule", block->name, "has no rows of terms to share");
    TL_TRY(tl_sketch_loops(s, ref, 0, &loops, diag));
    for (int i = 0; i < loops.count; i++)
        tl_loop_push(tl_sketch_drives_reduce(s, block, loops.loops[i]) ? &terms : &results,
                     loops.loops[i]);
    if (results.count == 0 || terms.count == 0)
        return tl_refuse(diag, "default schedule", block->name,
                         "has no loops of results and terms");
    for (int i = 0; i < results.count; i++)
        tl_loop_push(&order, results.loops[i]);
    for (int i = 0; i < terms.count; i++)
        tl_loop_push(&order, terms.loops[i]);
    TL_TRY(tl_reorder(s, order.loops, order.count, diag));
    term = terms.loops[0];
    if (terms.count > 1)
        TL_TRY(tl_fuse(s, terms.loops, terms.count, &term, diag));
    TL_TRY(tl_split(s, term, (int64_t[]){ 0, WARP }, 2, parts, diag));
    TL_TRY(tl_rfactor(s, ref, parts[1], &part, diag));

    const char *partial = tl_schedule_get_block(s, part)->stores[0].buffer->name;
    TL_TRY(tl_sketch_loops(s, ref, 0, &loops, diag));
    if (loops.count < 2)
        return tl_refuse(diag, "default schedule", block->name, "has no loop of parts");
    tl_loop_ref thread = loops.loops[loops.count - 1];
    TL_TRY(tl_compute_at(s, part, thread, diag));
    TL_TRY(tl_set_scope(s, partial, "register", diag));
    row = loops.loops[0];
    if (loops.count > 2)
        TL_TRY(tl_fuse(s, loops.loops, loops.count - 1, &row, diag));
    /* no guard may keep a warp from its row */
    int64_t warps = WARPS;
    while (tl_sketch_extent(s, row) % warps != 0)
        warps /= 2;
    if (warps > 1) {
        TL_TRY(tl_split(s, row, (int64_t[]){ 0, warps }, 2, rows, diag));
        TL_TRY(tl_bind_loop(s, rows[1], "threadIdx.y", diag));
        row = rows[0];
    }
    TL_TRY(tl_bind_loop(s, row, "blockIdx.x", diag));
    return tl_bind_loop(s, thread, "threadIdx.x", diag);
}
