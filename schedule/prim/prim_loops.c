/* schedule/prim/prim_loops.c: loops(block) -> the loops around it, outermost first
 *
 *     for i in 0..n
 *       for k in 0..m           loops(C)  ->  i, k
 *         block C
 *
 * Requires  the block is in the program, under at most TL_MAX_ARGS loops.
 * Keeps     everything: it only gives handles.
 */
#include <assert.h>
#include "schedule/schedule_private.h"

tl_status tl_apply_loops(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                         int *out_count, tl_diag *diag)
{
    assert(arg_count == 1 && args[0].kind == TL_ARG_BLOCK);
    (void)arg_count;
    const tl_block *block;
    TL_TRY(tl_need_block(s, "loops", args[0].block, &block, diag));
    tl_path path = tl_schedule_path_to_block(s, block->name);
    int count = 0;
    for (int i = 0; i < path.count; i++)
        count += path.stmts[i]->kind == TL_STMT_LOOP;
    if (count > TL_MAX_ARGS)
        return tl_refuse(diag, "loops", block->name,
                         "%d loops are around it and a step gives %d at most", count, TL_MAX_ARGS);
    for (int i = 0; i < path.count; i++)
        if (path.stmts[i]->kind == TL_STMT_LOOP)
            out[(*out_count)++] =
                (tl_arg){ .kind = TL_ARG_LOOP,
                          .loop = tl_schedule_name_loop(s, path.stmts[i]->u.loop.var) };
    return TL_OK;
}
