/* schedule/prim/prim_split.c: split(loop, [f0, f1, ...]) -> i_0, i_1, ...
 *
 *     for i in 0..n               for i_0 in 0..ceil(n/f)
 *       block S             ->      for i_1 in 0..f
 *         spatial v = i               block S
 *                                       spatial v = i_0*f + i_1
 *                                       where i_0*f + i_1 < n       (absent when f divides n)
 *
 * One factor may be _ (0): it is inferred as ceil(n / product of the others); without _ the product of the factors
 * must reach n. A factor of n or more is legal: traces are replayed on other shapes.
 *
 * Requires  a serial loop; factors of at least 1, at most one of them _, together covering the extent; an extent
 *           that depends on dims is inferred: one factor is _.
 * Keeps     which instances of S run, and their order.
 */
#include <assert.h>
#include "runtime/base/checked.h"
#include "schedule/schedule_private.h"

typedef struct {
    const tl_stmt *loop;
    int count, inferred; /* inferred: which factor is _, -1: none */
    const tl_expr *extents[TL_MAX_ARGS];
    bool covers_exactly; /* the product of the extents is the loop's extent */
} plan;

static tl_status check(tl_arena *arena, const tl_stmt *loop, const tl_arg *factors, plan *out,
                       tl_diag *diag)
{
    const char *name = loop->u.loop.var->name;
    const tl_expr *extent = loop->u.loop.extent;
    *out = (plan){ .loop = loop, .count = factors->count, .inferred = -1 };
    if (loop->u.loop.kind != TL_LOOP_SERIAL)
        return tl_refuse(diag, "split", name,
                         "the loop is %s and only a serial loop can be split; "
                         "split it before giving it a kind",
                         tl_loop_kind_infos[loop->u.loop.kind].text);

    int64_t product = 1, constant = 0;
    for (int i = 0; i < factors->count; i++) {
        int64_t factor = factors->factors[i];
        if (factor < 0)
            return tl_refuse(diag, "split", name, "factor %lld is not at least 1",
                             (long long)factor);
        if (factor == 0 && out->inferred >= 0)
            return tl_refuse(diag, "split", name,
                             "factors %d and %d are both _; one can be inferred", out->inferred + 1,
                             i + 1);
        if (factor == 0)
            out->inferred = i;
        else if (tl_mul_overflows(product, factor, &product) || product > INT32_MAX)
            return tl_refuse(diag, "split", name, "the product of the factors is larger than %d",
                             INT32_MAX);
        if (factor > 0)
            out->extents[i] = tl_int(arena, factor);
    }
    bool is_constant = tl_const_int(extent, &constant);
    if (out->inferred >= 0) {
        const tl_expr *rounded = tl_addi(arena, extent, product - 1);
        out->extents[out->inferred] = tl_floordiv_expr(arena, rounded, tl_int(arena, product));
        if (tl_expr_range(out->extents[out->inferred]).min < 0) /* not seen to be none the less */
            out->extents[out->inferred] =
                tl_max(arena, out->extents[out->inferred], tl_int(arena, 0));
    } else if (!is_constant) {
        return tl_refuse(diag, "split", name,
                         "the extent %s is not constant: the outermost factor "
                         "must be _",
                         tl_expr_text(arena, extent));
    } else if (product < constant) {
        return tl_refuse(diag, "split", name,
                         "the factors cover %lld of the extent %lld; let one be _ "
                         "(here %lld would do for the first)",
                         (long long)product, (long long)constant,
                         (long long)tl_ceildiv(constant, product / factors->factors[0]));
    }
    const tl_expr *covered = tl_int(arena, 1);
    for (int i = 0; i < out->count; i++)
        covered = tl_mul(arena, covered, out->extents[i]);
    out->covers_exactly = tl_prove_equal(arena, covered, extent);
    return TL_OK;
}

static const tl_stmt *add_guard(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    const tl_expr *guard = context;
    if (stmt->kind != TL_STMT_BLOCK)
        return stmt;
    tl_block *block = TL_NEW(arena, tl_block);
    *block = *stmt->u.block;
    block->predicate = tl_and(arena, block->predicate, guard);
    return tl_stmt_block(arena, block);
}

static const tl_stmt *rewrite(tl_arena *arena, const plan *p, const tl_var **vars)
{
    const tl_stmt *loop = p->loop;
    const tl_expr *index = NULL;
    for (int i = 0; i < p->count; i++) {
        const char *suffix = tl_arena_format(arena, "_%d", i);
        vars[i] = tl_var_derive(arena, loop->u.loop.var, suffix, p->extents[i]);
        const tl_expr *ref = tl_ref(arena, vars[i]);
        index = index ? tl_add(arena, tl_mul(arena, index, p->extents[i]), ref) : ref;
    }
    tl_binding binding = { loop->u.loop.var, index };
    const tl_stmt *body = tl_stmt_substitute(arena, loop->u.loop.body, &binding, 1);
    if (!p->covers_exactly) {
        const tl_expr *guard = tl_lt(arena, index, loop->u.loop.extent);
        int64_t always;
        if (!tl_const_int(guard, &always))
            body = tl_stmt_rewrite(arena, body, add_guard, (void *)(uintptr_t)guard);
    }
    for (int i = p->count - 1; i >= 0; i--) {
        body = tl_stmt_loop(arena, vars[i], p->extents[i], TL_LOOP_SERIAL, body);
        if (i == 0 && loop->u.loop.annotation_count)
            body = tl_loop_with_annotations(arena, body, loop->u.loop.annotation_count,
                                            loop->u.loop.annotations);
    }
    return body;
}

tl_status tl_apply_split(tl_schedule *s, const tl_arg *args, int arg_count, tl_arg *out,
                         int *out_count, tl_diag *diag)
{
    assert(arg_count == 2 && args[0].kind == TL_ARG_LOOP && args[1].kind == TL_ARG_FACTORS);
    (void)arg_count;
    const tl_stmt *loop;
    plan p;
    if (args[1].count > TL_MAX_ARGS)
        return tl_fail(diag, TL_BAD_ARGUMENT, "split: %d factors are more than %d", args[1].count,
                       TL_MAX_ARGS);
    TL_TRY(tl_need_loop(s, "split", args[0].loop, &loop, diag));
    TL_TRY(check(s->arena, loop, &args[1], &p, diag));

    const tl_var *vars[TL_MAX_ARGS];
    tl_path path = tl_schedule_path_to_loop(s, loop->u.loop.var);
    tl_schedule_replace(s, &path, rewrite(s->arena, &p, vars));
    for (int i = 0; i < p.count; i++)
        out[i] = (tl_arg){ .kind = TL_ARG_LOOP, .loop = tl_schedule_name_loop(s, vars[i]) };
    *out_count = p.count;
    return TL_OK;
}
