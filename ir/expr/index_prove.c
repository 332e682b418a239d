/* ir/expr/index_prove.c: proofs that a sum is at least some bound.
 *
 * First by intervals; then by relaxations, each of which replaces one term by a bound that shares
 * variables with the rest of the sum:
 *
 *     (e - (d-1))/d <= e // d <= e/d           e % d <= e when e >= 0
 *     min(a, b) <= a and <= b, and is one of them; max and select likewise
 *
 * and with facts f >= 0:   s - k*f >= bound  implies  s >= bound   for k > 0.
 * False means "not known". Nothing is concluded from a sum that overflows. */
#include <assert.h>
#include "ir/expr/index_private.h"
#include "runtime/base/checked.h"

enum { MAX_DEPTH = 4, MAX_STEPS = 200, MAX_LOOKS = 4000 };

/* The search is cut off, not exhausted. */
typedef struct {
    const tl_facts *facts;
    int steps; /* sums looked at so far */
    int looks; /* nodes compared while choosing what to relax */
} search;

static bool at_least(search *find, const tl_sum *s, int64_t bound, int depth);

static bool uses(search *find, const tl_expr *e, const tl_var *var)
{
    if (e->kind == TL_EXPR_VAR)
        return e->u.var == var;
    for (int i = 0; i < e->arg_count && ++find->looks < MAX_LOOKS; i++)
        if (uses(find, e->args[i], var))
            return true;
    return false;
}

static bool shares_variable(search *find, const tl_expr *e, const tl_expr *with)
{
    if (e->kind == TL_EXPR_VAR)
        return uses(find, with, e->u.var);
    for (int i = 0; i < e->arg_count && ++find->looks < MAX_LOOKS; i++)
        if (shares_variable(find, e->args[i], with))
            return true;
    return false;
}

/* Whether another addend, or a fact, speaks of the variables of addend `index`. */
static bool is_correlated(search *find, const tl_sum *s, int index)
{
    assert(index >= 0 && index < s->count);
    for (int i = 0; i < s->count; i++)
        if (i != index && shares_variable(find, s->addends[index].term, s->addends[i].term))
            return true;
    return find->facts != NULL && find->facts->count > 0;
}

/* s with addend `index` replaced by scale*e. */
static bool replace(const tl_sum *s, int index, const tl_expr *e, int64_t scale, tl_sum *out)
{
    assert(index >= 0 && index < s->count && out != s);
    tl_sum_copy(out, s);
    tl_sum_remove(out, index);
    return tl_sum_add(out, e, scale) && !out->overflow;
}

/* c*(e // d): d*s >= d*bound - (d-1) with d*c*(e // d) replaced by c*(e - (d-1)) or, c < 0, by c*e. */
static bool relax_division(search *find, const tl_sum *s, int64_t bound, int index, int depth)
{
    assert(s->addends[index].term->kind == TL_EXPR_FLOORDIV);
    int64_t d, c = s->addends[index].coefficient;
    const tl_expr *term = s->addends[index].term;
    if (!tl_const_int(term->args[1], &d) || d <= 0)
        return false;
    tl_sum scaled, out;
    tl_sum_copy(&scaled, s);
    if (c % d == 0) {
        c /= d;
    } else {
        tl_sum_scale(&scaled, d);
        if (scaled.count != s->count || tl_mul_overflows(bound, d, &bound) ||
            tl_add_overflows(bound, 1 - d, &bound))
            return false;
    }
    if (!replace(&scaled, index, term->args[0], c, &out))
        return false;
    if (c > 0)
        tl_sum_add_constant(&out, d - 1, -c);
    return !out.overflow && at_least(find, &out, bound, depth + 1);
}

static bool relax_modulo(search *find, const tl_sum *s, int64_t bound, int index, int depth)
{
    assert(s->addends[index].term->kind == TL_EXPR_FLOORMOD);
    int64_t d, c = s->addends[index].coefficient;
    const tl_expr *term = s->addends[index].term;
    tl_sum out;
    if (c > 0 || !tl_const_int(term->args[1], &d) || d <= 0 || tl_expr_range(term->args[0]).min < 0)
        return false;
    return replace(s, index, term->args[0], c, &out) && at_least(find, &out, bound, depth + 1);
}

/* A term that is one of two expressions: both must do, or either when it is bounded by both. */
static bool relax_choice(search *find, const tl_sum *s, int64_t bound, int index, int depth)
{
    const tl_expr *term = s->addends[index].term;
    int64_t c = s->addends[index].coefficient;
    int first = term->kind == TL_EXPR_SELECT;
    bool either = (term->kind == TL_EXPR_MIN && c < 0) || (term->kind == TL_EXPR_MAX && c > 0);
    for (int i = 0; i < 2; i++) {
        tl_sum out;
        bool holds = replace(s, index, term->args[first + i], c, &out) &&
                     at_least(find, &out, bound, depth + 1);
        if (holds == either)
            return either;
    }
    return !either;
}

static bool relax_terms(search *find, const tl_sum *s, int64_t bound, int depth)
{
    for (int i = 0; i < s->count; i++) {
        tl_expr_kind kind = s->addends[i].term->kind;
        bool choice = kind == TL_EXPR_MIN || kind == TL_EXPR_MAX || kind == TL_EXPR_SELECT;
        if (!choice && kind != TL_EXPR_FLOORDIV && kind != TL_EXPR_FLOORMOD)
            continue;
        if (!choice && !is_correlated(find, s, i))
            continue;
        if (kind == TL_EXPR_FLOORDIV ? relax_division(find, s, bound, i, depth)
            : choice                 ? relax_choice(find, s, bound, i, depth)
                                     : relax_modulo(find, s, bound, i, depth))
            return true;
    }
    return false;
}

/* Subtracts the multiple of a fact that cancels one of the terms the two have in common. */
static bool use_fact(search *find, const tl_sum *s, int64_t bound, const tl_sum *fact, int depth)
{
    int64_t tried = 0;
    for (int i = 0; i < fact->count; i++) {
        int64_t f = fact->addends[i].coefficient;
        int64_t c = tl_sum_coefficient(s, fact->addends[i].term);
        if (c == 0 || (c < 0) != (f < 0) || c % f != 0 || c / f == tried)
            continue;
        tl_sum out;
        tried = c / f;
        tl_sum_copy(&out, s);
        if (tl_sum_add_sum(&out, fact, -tried) && !out.overflow &&
            at_least(find, &out, bound, depth + 1))
            return true;
    }
    return false;
}

static bool at_least(search *find, const tl_sum *s, int64_t bound, int depth)
{
    assert(depth <= MAX_DEPTH);
    if (s->overflow)
        return false;
    tl_range range = tl_sum_range(s, NULL, 0);
    if (range.min != INT64_MIN && range.min >= bound)
        return true;
    if (depth == MAX_DEPTH || s->count == 0 || range.max < bound || ++find->steps > MAX_STEPS)
        return false;
    for (int i = 0; find->facts != NULL && i < find->facts->count; i++)
        if (use_fact(find, s, bound, find->facts->facts[i], depth))
            return true;
    return relax_terms(find, s, bound, depth);
}

bool tl_sum_at_least(const tl_sum *s, int64_t bound, const tl_facts *facts)
{
    search find = { facts, 0, 0 };
    return at_least(&find, s, bound, 0);
}

/* ---- facts ---- */

/* b - a - least >= 0 as a fact. */
static void add_order(tl_arena *arena, tl_facts *facts, const tl_expr *a, const tl_expr *b,
                      int64_t least)
{
    if (facts->count == TL_MAX_FACTS)
        return;
    tl_sum *fact = TL_NEW(arena, tl_sum);
    tl_sum_add_constant(fact, least, -1);
    if (tl_sum_add(fact, b, 1) && tl_sum_add(fact, a, -1) && !fact->overflow && fact->count > 0)
        facts->facts[facts->count++] = fact;
}

void tl_facts_add(tl_arena *arena, tl_facts *facts, const tl_expr *condition)
{
    if (condition == NULL || condition->kind == TL_EXPR_INT)
        return;
    if (condition->kind == TL_EXPR_AND) {
        tl_facts_add(arena, facts, condition->args[0]);
        tl_facts_add(arena, facts, condition->args[1]);
        return;
    }
    if (facts->truth_count < TL_MAX_FACTS)
        facts->truths[facts->truth_count++] = condition;
    if (!tl_is_compare(condition->kind) || condition->args[0]->dtype != TL_I64)
        return;
    const tl_expr *a = condition->args[0], *b = condition->args[1];
    if (condition->kind == TL_EXPR_LT)
        add_order(arena, facts, a, b, 1);
    if (condition->kind == TL_EXPR_LE || condition->kind == TL_EXPR_EQ)
        add_order(arena, facts, a, b, 0);
    if (condition->kind == TL_EXPR_EQ)
        add_order(arena, facts, b, a, 0);
}

/* ---- conditions ---- */

/* a - b + shift >= 0 by intervals, relaxations and facts. */
static bool difference_at_least(const tl_facts *facts, const tl_expr *a, const tl_expr *b,
                                int64_t least)
{
    tl_sum s;
    tl_sum_clear(&s);
    return tl_sum_add(&s, a, 1) && tl_sum_add(&s, b, -1) && tl_sum_at_least(&s, least, facts);
}

static bool is_truth(const tl_facts *facts, const tl_expr *condition)
{
    for (int i = 0; facts != NULL && i < facts->truth_count; i++)
        if (tl_expr_equal(facts->truths[i], condition))
            return true;
    return false;
}

/* The comparison a KIND b of integers, proven true (or false, when `negated`). */
static bool prove_compare(const tl_facts *facts, tl_expr_kind kind, const tl_expr *a,
                          const tl_expr *b, bool negated)
{
    if (kind == TL_EXPR_LT || kind == TL_EXPR_LE) {
        bool strict = (kind == TL_EXPR_LT) != negated;
        return difference_at_least(facts, negated ? a : b, negated ? b : a, strict ? 1 : 0);
    }
    if ((kind == TL_EXPR_EQ) != negated)
        return tl_expr_equal(a, b) ||
               (difference_at_least(facts, a, b, 0) && difference_at_least(facts, b, a, 0));
    return difference_at_least(facts, a, b, 1) || difference_at_least(facts, b, a, 1);
}

static bool decide(const tl_facts *facts, const tl_expr *e, bool wanted)
{
    switch (e->kind) {
    case TL_EXPR_INT:
        return (e->u.value != 0) == wanted;
    case TL_EXPR_NOT:
        return decide(facts, e->args[0], !wanted);
    case TL_EXPR_AND:
    case TL_EXPR_OR:
        if ((e->kind == TL_EXPR_AND) == wanted)
            return decide(facts, e->args[0], wanted) && decide(facts, e->args[1], wanted);
        return decide(facts, e->args[0], wanted) || decide(facts, e->args[1], wanted);
    case TL_EXPR_LT:
    case TL_EXPR_LE:
    case TL_EXPR_EQ:
    case TL_EXPR_NE:
        if (wanted && is_truth(facts, e))
            return true;
        return e->args[0]->dtype == TL_I64 &&
               prove_compare(facts, e->kind, e->args[0], e->args[1], !wanted);
    case TL_EXPR_FLOAT:
    case TL_EXPR_VAR:
    case TL_EXPR_LOAD:
    case TL_EXPR_ADD:
    case TL_EXPR_SUB:
    case TL_EXPR_MUL:
    case TL_EXPR_DIV:
    case TL_EXPR_FLOORDIV:
    case TL_EXPR_FLOORMOD:
    case TL_EXPR_MIN:
    case TL_EXPR_MAX:
    case TL_EXPR_SELECT:
    case TL_EXPR_CAST:
    case TL_EXPR_BITS:
    case TL_EXPR_CALL:
    case TL_EXPR_KIND_COUNT:
        break;
    }
    return wanted && is_truth(facts, e);
}

bool tl_prove_under(const tl_facts *facts, const tl_expr *condition)
{
    return decide(facts, condition, true);
}

bool tl_disprove_under(const tl_facts *facts, const tl_expr *condition)
{
    return decide(facts, condition, false);
}

bool tl_prove(tl_arena *arena, const tl_expr *condition)
{
    (void)arena;
    assert(condition->dtype == TL_BOOL);
    return decide(NULL, condition, true);
}

bool tl_prove_le(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    assert(a->dtype == TL_I64 && b->dtype == TL_I64);
    (void)arena;
    return prove_compare(NULL, TL_EXPR_LE, a, b, false);
}

bool tl_prove_lt(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    assert(a->dtype == TL_I64 && b->dtype == TL_I64);
    (void)arena;
    return prove_compare(NULL, TL_EXPR_LT, a, b, false);
}

bool tl_prove_equal(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    assert(a->dtype == TL_I64 && b->dtype == TL_I64);
    (void)arena;
    return prove_compare(NULL, TL_EXPR_EQ, a, b, false);
}
