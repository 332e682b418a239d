/* schedule/prim/prim_tile.c: tile(i, j, ..., [a, b, ...]) -> i_0, j_0, ..., i_1, j_1, ...
 *
 *     for i in 0..64                         for i_0 in 0..8
 *       for j in 0..96                         for j_0 in 0..3
 *         S(i, j)                  ->            for i_1 in 0..8
 *                                                  for j_1 in 0..32
 *                                                    S(i_0*8 + i_1, j_0*32 + j_1)
 *
 * What split(i, [_, a]), split(j, [_, b]), reorder(i_0, j_0, i_1, j_1) does, in one step.
 *
 * Requires  as many factors as loops, none of them _; what split and reorder require.
 * Keeps     what split and reorder keep.
 */
#include <assert.h>
#include "schedule/schedule_private.h"

tl_status tl_apply_tile(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                        int *out_count, tl_diag *diag)
{
    assert(arg_count >= 1 && args[0].kind == TL_ARG_LOOP);
    int count = arg_count - 1, ignored;
    const tl_arg *sizes = &args[count];
    const tl_stmt *first;
    TL_TRY(tl_need_loop(s, "tile", args[0].loop, &first, diag));
    const char *name = first->u.loop.var->name;
    if (sizes->count != count)
        return tl_refuse(diag, "tile", name, "%d loops want %d factors and got %d", count, count,
                         sizes->count);
    if (2 * count > TL_MAX_ARGS)
        return tl_refuse(diag, "tile", name, "%d loops are more than %d", count, TL_MAX_ARGS / 2);

    for (int i = 0; i < count; i++) {
        if (sizes->factors[i] == 0)
            return tl_refuse(diag, "tile", name,
                             "factor %d is _; the number of tiles is inferred, their sizes are not",
                             i + 1);
        int64_t factors[2] = { 0, sizes->factors[i] };
        tl_arg split[] = { args[i], { .kind = TL_ARG_FACTORS, .count = 2, .factors = factors } };
        tl_arg parts[TL_MAX_ARGS];
        tl_status status = tl_apply_split(s, split, 2, parts, &ignored, diag);
        if (status != TL_OK) {
            tl_context(diag, "tile");
            return status;
        }
        out[i] = parts[0];
        out[count + i] = parts[1];
    }
    *out_count = 2 * count;
    tl_arg none[TL_MAX_ARGS];
    tl_status status = tl_apply_reorder(s, out, *out_count, none, &ignored, diag);
    if (status != TL_OK)
        tl_context(diag, "tile");
    return status;
}
