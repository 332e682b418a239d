/* codegen/lower/gpu_formula.c: an expression over dims as the text that a descriptor holds (runtime/abi/formula.h):
 *
 *     (n + 127) // 128      ->      d0 127 + 128 / */
#include "codegen/lower/kernel_plan.h"
#include "runtime/base/text.h"

static const char *const operators[TL_EXPR_KIND_COUNT] = {
    [TL_EXPR_ADD] = "+",      [TL_EXPR_SUB] = "-",      [TL_EXPR_MUL] = "*",
    [TL_EXPR_FLOORDIV] = "/", [TL_EXPR_FLOORMOD] = "%", [TL_EXPR_MIN] = "min",
    [TL_EXPR_MAX] = "max",
};

/* An expression may have parts in common, which its text writes out each time: so many in all, then it is none. */
enum { MOST_TERMS = 256 };

static const char *formula(tl_arena *arena, const tl_program *program, const tl_expr *e, int *left)
{
    if ((*left)-- <= 0)
        return NULL;
    if (e->kind == TL_EXPR_INT)
        return tl_arena_format(arena, "%lld", (long long)e->u.value);
    for (int d = 0; e->kind == TL_EXPR_VAR && d < program->dim_count; d++)
        if (program->dims[d] == e->u.var)
            return tl_arena_format(arena, "d%d", d);
    const char *operation = operators[e->kind];
    if (operation == NULL)
        return NULL;
    const char *a = formula(arena, program, e->args[0], left);
    const char *b = formula(arena, program, e->args[1], left);
    return a == NULL || b == NULL ? NULL : tl_arena_format(arena, "%s %s %s", a, b, operation);
}

tl_status tl_gpu_formula(tl_arena *arena, const tl_program *program, const tl_expr *e,
                         int64_t *number, const char **out, tl_diag *diag)
{
    int left = MOST_TERMS;
    *out = NULL;
    *number = 0;
    if (tl_const_int(e, number))
        return TL_OK;
    *out = formula(arena, program, e, &left);
    if (*out == NULL)
        return tl_fail(diag, TL_UNSUPPORTED,
                       "%s decides how a GPU launches the kernel and is no formula over dims%s",
                       left < 0 ? "an extent" : tl_expr_text(arena, e),
                       left < 0 ? " of at most 256 terms" : "");
    return TL_OK;
}
