/* schedule/prim/prim_unroll.c: unroll(loop)
 *
 *     for i in 0..4          ->       for i in 0..4 unrolled
 *       S(i)                            S(i)                      (written out four times by code generation)
 *
 * Requires  a serial loop of constant extent, at most MAX_COPIES.
 * Keeps     everything, the order included: any iters may move with it.
 */
#include <assert.h>
#include "schedule/schedule_private.h"

enum { MAX_COPIES = 1024 };

tl_status tl_apply_unroll(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                          int *out_count, tl_diag *diag)
{
    assert(arg_count == 1 && args[0].kind == TL_ARG_LOOP);
    (void)arg_count;
    (void)out;
    (void)out_count;
    const tl_stmt *loop;
    TL_TRY(tl_need_loop(s, "unroll", args[0].loop, &loop, diag));
    TL_TRY(tl_check_serial("unroll", loop, diag));
    TL_TRY(tl_check_constant_extent("unroll", loop, MAX_COPIES, diag));
    tl_path path = tl_schedule_path_to_loop(s, loop->u.loop.var);
    tl_schedule_replace(s, &path, tl_loop_with_kind(s->arena, loop, TL_LOOP_UNROLLED));
    return TL_OK;
}
