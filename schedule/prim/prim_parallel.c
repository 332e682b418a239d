/* schedule/prim/prim_parallel.c: parallel(loop)
 *
 *     for i in 0..n          ->       for i in 0..n parallel
 *       S(i)                            S(i)
 *
 * Requires  a serial loop with no loop around it (it is what a phase of the kernel runs on its threads) and no
 *           parallel loop inside; under it only spatial iters move with it, and no two of its iterations touch the
 *           same element while one of them writes; no GPU loop or barrier inside.
 * Keeps     what every iteration computes; their order is free.
 */
#include <assert.h>
#include "schedule/schedule_private.h"

static tl_status check(tl_schedule *s, const tl_path *path, const tl_stmt *loop, tl_diag *diag)
{
    const char *name = loop->u.loop.var->name;
    TL_TRY(tl_check_serial("parallel", loop, diag));
    for (int i = 0; i + 1 < path->count; i++) {
        const tl_stmt *above = path->stmts[i];
        if (above->kind == TL_STMT_LOOP)
            return tl_refuse(diag, "parallel", name,
                             "loop %s is around it; a parallel loop is the outermost of its phase: "
                             "reorder it outside, or fuse the two",
                             above->u.loop.var->name);
    }
    TL_TRY(tl_check_private("parallel", path, loop, TL_LOOP_PARALLEL, diag));
    const tl_stmt *inner = tl_find_kind_under(loop, TL_LOOP_PARALLEL);
    if (inner)
        return tl_refuse(diag, "parallel", name,
                         "loop %s inside is parallel already; fuse the two before",
                         inner->u.loop.var->name);
    TL_TRY(tl_refuse_gpu_under("parallel", loop, diag));
    return tl_check_iterations(s, "parallel", loop, false, diag);
}

tl_status tl_apply_parallel(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                            int *out_count, tl_diag *diag)
{
    assert(arg_count == 1 && args[0].kind == TL_ARG_LOOP);
    (void)arg_count;
    (void)out;
    (void)out_count;
    const tl_stmt *loop;
    TL_TRY(tl_need_loop(s, "parallel", args[0].loop, &loop, diag));
    tl_path path = tl_schedule_path_to_loop(s, loop->u.loop.var);
    TL_TRY(check(s, &path, loop, diag));
    tl_schedule_replace(s, &path, tl_loop_with_kind(s->arena, loop, TL_LOOP_PARALLEL));
    return TL_OK;
}
