/* schedule/prim/prim_fuse.c: fuse(i, j, ...) -> i_j
 *
 *     for i in 0..n                   for i_j in 0..n*m
 *       for j in 0..m           ->      S(i_j // m, i_j % m)
 *         S(i, j)
 *
 * After a perfect split the indices come back as they were: ((f//8)*8 + f%8) is f.
 *
 * Requires  serial loops, each the whole body of the one before; constant extents but for the outermost.
 * Keeps     which instances of S run, and their order.
 */
#include <assert.h>
#include "runtime/base/checked.h"
#include "schedule/schedule_private.h"

static tl_status check_loop(const tl_stmt *loop, const tl_stmt *outer, tl_diag *diag)
{
    assert(loop->kind == TL_STMT_LOOP && (outer == NULL || outer->kind == TL_STMT_LOOP));
    const char *name = loop->u.loop.var->name;
    if (loop->u.loop.kind != TL_LOOP_SERIAL)
        return tl_refuse(diag, "fuse", name,
                         "the loop is %s and only serial loops fuse; fuse them "
                         "before giving one a kind",
                         tl_loop_kind_infos[loop->u.loop.kind].text);
    if (outer == NULL)
        return TL_OK;
    const tl_stmt *below = outer->u.loop.body;
    if (below != loop) {
        if (below->kind == TL_STMT_LOOP)
            return tl_refuse(diag, "fuse", name,
                             "loop %s, not %s, is directly inside %s; reorder "
                             "first, or fuse %s and %s",
                             below->u.loop.var->name, name, outer->u.loop.var->name,
                             outer->u.loop.var->name, below->u.loop.var->name);
        return tl_refuse(diag, "fuse", name,
                         "%s stands between the loops %s and %s; fused loops must "
                         "be perfectly nested",
                         below->kind == TL_STMT_ALLOC ? below->u.alloc.buffer->name
                                                      : "another statement",
                         outer->u.loop.var->name, name);
    }
    int64_t extent;
    if (!tl_const_int(loop->u.loop.extent, &extent) || extent < 1)
        return tl_refuse(diag, "fuse", name,
                         "the extent of an inner loop must be a constant of at "
                         "least 1");
    return TL_OK;
}

static const tl_stmt *rewrite(tl_arena *arena, const tl_stmt *const *loops, int count)
{
    assert(count > 0);
    const tl_expr *extent = loops[0]->u.loop.extent;
    const char *suffix = "";
    for (int i = 1; i < count; i++) {
        extent = tl_mul(arena, extent, loops[i]->u.loop.extent);
        suffix = tl_arena_format(arena, "%s_%s", suffix, loops[i]->u.loop.var->name);
    }
    const tl_var *fused = tl_var_derive(arena, loops[0]->u.loop.var, suffix, extent);

    tl_binding bindings[TL_MAX_ARGS];
    const tl_expr *rest = tl_ref(arena, fused);
    for (int i = count - 1; i >= 0; i--) {
        const tl_expr *size = loops[i]->u.loop.extent;
        bindings[i] =
            (tl_binding){ loops[i]->u.loop.var, i ? tl_floormod_expr(arena, rest, size) : rest };
        if (i)
            rest = tl_floordiv_expr(arena, rest, size);
    }
    const tl_stmt *body = tl_stmt_substitute(arena, loops[count - 1]->u.loop.body, bindings, count);
    body = tl_stmt_loop(arena, fused, extent, TL_LOOP_SERIAL, body);
    return tl_loop_with_annotations(arena, body, loops[0]->u.loop.annotation_count,
                                    loops[0]->u.loop.annotations);
}

tl_status tl_apply_fuse(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                        int *out_count, tl_diag *diag)
{
    assert(arg_count >= 1 && args[0].kind == TL_ARG_LOOP);
    const tl_stmt *loops[TL_MAX_ARGS];
    int64_t size = 1;
    for (int i = 0; i < arg_count; i++) {
        TL_TRY(tl_need_loop(s, "fuse", args[i].loop, &loops[i], diag));
        TL_TRY(check_loop(loops[i], i ? loops[i - 1] : NULL, diag));
        int64_t most = tl_max64(tl_expr_range(loops[i]->u.loop.extent).max, 1);
        if (tl_mul_overflows(size, most, &size) || size > INT64_MAX / 4)
            return tl_refuse(diag, "fuse", loops[i]->u.loop.var->name,
                             "the product of the extents does not fit 64 bits");
    }
    tl_path path = tl_schedule_path_to_loop(s, loops[0]->u.loop.var);
    const tl_stmt *fused = rewrite(s->arena, loops, arg_count);
    tl_schedule_replace(s, &path, fused);
    out[0] = (tl_arg){ .kind = TL_ARG_LOOP, .loop = tl_schedule_name_loop(s, fused->u.loop.var) };
    *out_count = 1;
    return TL_OK;
}
