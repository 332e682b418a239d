/* schedule/implied_comparison.c: what one comparison says of another.
 *
 * The excess of a condition times a positive number is no larger than that of what is given: so it is below 0, too. */
#include "schedule/schedule_private.h"

/* a - b where a comparison says a < b, a - b - 1 where it says a <= b: below 0 where it holds; NULL: neither. */
static const tl_expr *excess_of(tl_arena *arena, const tl_expr *condition)
{
    if (condition->kind != TL_EXPR_LT && condition->kind != TL_EXPR_LE)
        return NULL;
    const tl_expr *excess = tl_sub(arena, condition->args[0], condition->args[1]);
    return condition->kind == TL_EXPR_LT ? excess : tl_addi(arena, excess, -1);
}

bool tl_follows_from(tl_arena *arena, const tl_expr *condition, const tl_expr *given)
{
    const tl_expr *claim = excess_of(arena, condition), *known = excess_of(arena, given);
    if (claim == NULL || known == NULL)
        return false;
    tl_linear a = tl_linear_of(arena, claim), b = tl_linear_of(arena, known);
    for (int i = 0; i < a.count; i++)
        for (int k = 0; k < b.count; k++)
            if (tl_expr_equal(a.terms[i], b.terms[k]) &&
                b.coefficients[k] % a.coefficients[i] == 0 &&
                b.coefficients[k] / a.coefficients[i] > 0 &&
                tl_prove_le(arena, tl_muli(arena, claim, b.coefficients[k] / a.coefficients[i]),
                            known))
                return true;
    return false;
}
