/* codegen/lower/gpu_formula.c: an expression over dims as the text that a descriptor holds (runtime/abi/formula.h):
 *
 *     (n + 127) // 128      ->      d0 127 + 128 / */
#include "codegen/lower/kernel_plan.h"
#include "runtime/base/text.h"

static const char *operator_of(tl_expr_kind kind)
{
    switch (kind) {
    case TL_EXPR_ADD:
        return "+";
    case TL_EXPR_SUB:
        return "-";
    case TL_EXPR_MUL:
        return "*";
    case TL_EXPR_FLOORDIV:
        return "/";
    case TL_EXPR_FLOORMOD:
        return "%";
    case TL_EXPR_MIN:
        return "min";
    case TL_EXPR_MAX:
        return "max";
    case TL_EXPR_INT:
    case TL_EXPR_FLOAT:
    case TL_EXPR_VAR:
    case TL_EXPR_LOAD:
    case TL_EXPR_DIV:
    case TL_EXPR_LT:
    case TL_EXPR_LE:
    case TL_EXPR_EQ:
    case TL_EXPR_NE:
    case TL_EXPR_AND:
    case TL_EXPR_OR:
    case TL_EXPR_NOT:
    case TL_EXPR_SELECT:
    case TL_EXPR_CAST:
    case TL_EXPR_BITS:
    case TL_EXPR_CALL:
    case TL_EXPR_KIND_COUNT:
        break;
    }
    return NULL;
}

static const char *formula(tl_arena *arena, const tl_program *program, const tl_expr *e)
{
    if (e->kind == TL_EXPR_INT)
        return tl_arena_format(arena, "%lld", (long long)e->u.value);
    for (int d = 0; e->kind == TL_EXPR_VAR && d < program->dim_count; d++)
        if (program->dims[d] == e->u.var)
            return tl_arena_format(arena, "d%d", d);
    const char *operation = operator_of(e->kind);
    if (operation == NULL)
        return NULL;
    const char *a = formula(arena, program, e->args[0]);
    const char *b = formula(arena, program, e->args[1]);
    return a == NULL || b == NULL ? NULL : tl_arena_format(arena, "%s %s %s", a, b, operation);
}

tl_status tl_gpu_formula(tl_arena *arena, const tl_program *program, const tl_expr *e,
                         int64_t *number, const char **out, tl_diag *diag)
{
    *out = NULL;
    *number = 0;
    if (tl_const_int(e, number))
        return TL_OK;
    *out = formula(arena, program, e);
    if (*out == NULL)
        return tl_fail(diag, TL_UNSUPPORTED,
                       "%s decides how a GPU launches the kernel and is no formula over dims",
                       tl_expr_text(arena, e));
    return TL_OK;
}
