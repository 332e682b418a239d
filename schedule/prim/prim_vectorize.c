/* schedule/prim/prim_vectorize.c: vectorize(loop)
 *
 *     for j in 0..16         ->       for j in 0..16 vectorized
 *       S(j)                            S(j)                      (all lanes at once)
 *
 * Requires  a serial loop of constant extent, at most MAX_LANES, with no parallel or vectorized loop inside and none
 *           vectorized around; the iters that move with it are spatial, or reduce iters of a block with a combiner
 *           (lanes are combined at the end; in a strict kernel no sum's); lanes touch different elements where one
 *           writes; no opaque block, no GPU loop and no barrier inside.
 * Keeps     what every lane computes.
 */
#include <assert.h>
#include "schedule/schedule_private.h"

enum { MAX_LANES = 1024 };

static bool find_call(const tl_stmt *stmt, void *context)
{
    const tl_block **found = context;
    if (stmt->kind == TL_STMT_BLOCK && stmt->u.block->call)
        *found = stmt->u.block;
    return *found == NULL;
}

static tl_status check(tl_schedule *s, const tl_path *path, const tl_stmt *loop, tl_diag *diag)
{
    const char *name = loop->u.loop.var->name;
    TL_TRY(tl_check_serial("vectorize", loop, diag));
    TL_TRY(tl_check_constant_extent("vectorize", loop, MAX_LANES, diag));
    const tl_stmt *above = tl_find_kind_above(path, TL_LOOP_VECTORIZED);
    const tl_stmt *below = tl_find_kind_under(loop, TL_LOOP_VECTORIZED);
    if (above || below)
        return tl_refuse(diag, "vectorize", name,
                         "loop %s %s it is vectorized already; fuse the two, "
                         "or unroll one",
                         (above ? above : below)->u.loop.var->name, above ? "around" : "inside");
    below = tl_find_kind_under(loop, TL_LOOP_PARALLEL);
    if (below)
        return tl_refuse(diag, "vectorize", name,
                         "loop %s inside is parallel: lanes cannot start threads",
                         below->u.loop.var->name);
    TL_TRY(tl_refuse_gpu_under("vectorize", loop, diag));
    const tl_block *call = NULL;
    tl_stmt_visit(loop, find_call, &call);
    if (call)
        return tl_refuse(diag, "vectorize", name, "block %s inside calls %s, which has no lanes",
                         call->name, call->call->name);
    return tl_check_iterations(s, "vectorize", loop, true, diag);
}

tl_status tl_apply_vectorize(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                             int *out_count, tl_diag *diag)
{
    assert(arg_count == 1 && args[0].kind == TL_ARG_LOOP);
    (void)arg_count;
    (void)out;
    (void)out_count;
    const tl_stmt *loop;
    TL_TRY(tl_need_loop(s, "vectorize", args[0].loop, &loop, diag));
    tl_path path = tl_schedule_path_to_loop(s, loop->u.loop.var);
    TL_TRY(check(s, &path, loop, diag));
    tl_schedule_replace(s, &path, tl_loop_with_kind(s->arena, loop, TL_LOOP_VECTORIZED));
    return TL_OK;
}
