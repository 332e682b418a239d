/* ir/expr/index_simplify.c: what an expression becomes where a condition is known to hold: comparisons
 * that follow from it (or contradict it) fold, and so do min, max, // and % that it decides. */
#include <assert.h>
#include "ir/expr/index_private.h"
#include "runtime/base/checked.h"

typedef struct {
    tl_facts facts;
    int range_count;
    tl_var_range ranges[TL_MAX_FACTS]; /* variables that the facts narrow */
} knowledge;

/* c*v + k >= 0 bounds v on one side. */
static void narrow(knowledge *known, const tl_sum *fact)
{
    if (fact->count != 1 || fact->addends[0].term->kind != TL_EXPR_VAR)
        return;
    const tl_var *var = fact->addends[0].term->u.var;
    int64_t c = fact->addends[0].coefficient, k = fact->constant;
    int at = 0;
    while (at < known->range_count && known->ranges[at].var != var)
        at++;
    if (c == INT64_MIN || k == INT64_MIN)
        return;
    if (at == known->range_count) {
        known->ranges[at] = (tl_var_range){ var, { var->min, var->max } };
        known->range_count++;
    }
    tl_range *range = &known->ranges[at].range;
    if (c > 0)
        range->min = tl_max64(range->min, tl_ceildiv(-k, c));
    else
        range->max = tl_min64(range->max, tl_floordiv(k, -c));
}

static const tl_expr *simplify(tl_arena *arena, const tl_expr *e, const knowledge *known);

/* e // d or e % d whose quotient is one number within the narrowed ranges. */
static const tl_expr *fold_division(tl_arena *arena, const tl_expr *e, const knowledge *known)
{
    int64_t d;
    if (known->range_count == 0 || !tl_const_int(e->args[1], &d) || d <= 0)
        return e;
    tl_range r = tl_expr_range_with(e->args[0], known->ranges, known->range_count);
    if (!tl_range_known(r) || r.min > r.max || tl_floordiv(r.min, d) != tl_floordiv(r.max, d))
        return e;
    int64_t quotient = tl_floordiv(r.min, d);
    return e->kind == TL_EXPR_FLOORDIV ? tl_int(arena, quotient)
                                       : tl_addi(arena, e->args[0], tl_wrap_mul(-quotient, d));
}

static const tl_expr *fold_extremum(const tl_expr *e, const knowledge *known)
{
    tl_sum s; /* second - first */
    for (int first = 0; first < 2; first++) {
        tl_sum_clear(&s);
        if (tl_sum_add(&s, e->args[1 - first], 1) && tl_sum_add(&s, e->args[first], -1) &&
            tl_sum_at_least(&s, 0, &known->facts)) /* args[first] is the smaller */
            return e->args[e->kind == TL_EXPR_MIN ? first : 1 - first];
    }
    return e;
}

static const tl_expr *simplify_args(tl_arena *arena, const tl_expr *e, const knowledge *known)
{
    const tl_expr *few[4], **args = few;
    if (e->arg_count > 4)
        args = TL_NEW_ARRAY(arena, const tl_expr *, e->arg_count);
    bool changed = false;
    for (int i = 0; i < e->arg_count; i++) {
        args[i] = simplify(arena, e->args[i], known);
        changed |= args[i] != e->args[i];
    }
    return changed ? tl_expr_with_args(arena, e, args) : e;
}

static const tl_expr *simplify(tl_arena *arena, const tl_expr *e, const knowledge *known)
{
    if (e->dtype == TL_BOOL && e->kind != TL_EXPR_INT) {
        if (tl_prove_under(&known->facts, e))
            return tl_bool(arena, true);
        if (tl_disprove_under(&known->facts, e))
            return tl_bool(arena, false);
    }
    if (e->arg_count > 0)
        e = simplify_args(arena, e, known);
    if (e->dtype != TL_I64)
        return e;
    if (e->kind == TL_EXPR_FLOORDIV || e->kind == TL_EXPR_FLOORMOD)
        return fold_division(arena, e, known);
    if (e->kind == TL_EXPR_MIN || e->kind == TL_EXPR_MAX)
        return fold_extremum(e, known);
    return e;
}

const tl_expr *tl_simplify_under(tl_arena *arena, const tl_expr *e, const tl_expr *condition)
{
    assert(condition == NULL || condition->dtype == TL_BOOL);
    knowledge known = { .range_count = 0 };
    tl_facts_add(arena, &known.facts, condition);
    for (int i = 0; i < known.facts.count; i++)
        narrow(&known, known.facts.facts[i]);
    return simplify(arena, e, &known);
}
