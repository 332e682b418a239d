/* ir/expr/index_divide.c: e // d and e % d for a positive constant d, and the pairs of them in a sum.
 *
 *     (d*a + r) // d        = a + r // d           also for part of a coefficient: 5*x = 4*x + x
 *     (g*a + b) // (g*h)    = a // h                 b in 0..g-1
 *     (g*a + b) % (g*h)     = (a % h)*g + b          b in 0..g-1
 *     (x // a + c) // d     = (x + c*a) // (a*d)
 *     (x % (d*h)) // d      = (x // d) % h
 *     (x % (d*h)) % d       = x % d
 *     (e // d)*d + e % d    = e
 *     ((e // d) % h)*d + e % d = e % (d*h)       also where the two e differ by a multiple of d
 *     e - (e // d)*d        = e % d
 *     e - e % d             = (e // d)*d
 *
 * All of it over the integers: an index is assumed not to overflow. */
#include <assert.h>
#include "ir/expr/index_private.h"
#include "runtime/base/checked.h"

/* Pairs in a sum (below). Coefficients that were divided may make new ones. */
static bool join(tl_arena *arena, tl_sum *s);

/* e = t // d or t % d with a positive constant d. */
static bool is_by_constant(const tl_expr *e, tl_expr_kind kind, int64_t *d)
{
    return e->kind == kind && tl_const_int(e->args[1], d) && *d > 0;
}

static tl_addend with_coefficient(tl_addend a, int64_t coefficient)
{
    assert(coefficient != 0 && a.term != NULL);
    if (a.coefficient != coefficient)
        a.product = coefficient == 1 ? a.term : NULL;
    a.coefficient = coefficient;
    return a;
}

/* Whether all of s lies in one interval quotient*d .. quotient*d + d-1. */
static bool one_quotient(const tl_sum *s, int64_t d, int64_t *quotient)
{
    assert(d > 0);
    tl_range r = tl_sum_range(s, NULL, 0);
    if (!tl_range_known(r))
        return false;
    *quotient = tl_floordiv(r.min, d);
    return *quotient == tl_floordiv(r.max, d);
}

/* r = g*high + low with low in 0..g-1 for the largest g > 1 that divides d. False: there is none. */
static bool cut(const tl_sum *r, int64_t d, int64_t *g, tl_sum *high, tl_sum *low)
{
    assert(d > 0);
    int64_t below = d;
    for (;;) {
        int64_t best = 1; /* the next smaller candidate */
        for (int i = 0; i < r->count; i++) {
            int64_t candidate = tl_gcd(r->addends[i].coefficient, d);
            if (candidate < below && candidate > best)
                best = candidate;
        }
        if (best == 1)
            return false;
        below = best;
        tl_sum_clear(high);
        tl_sum_clear(low);
        for (int i = 0; i < r->count; i++) {
            tl_addend a = r->addends[i];
            if (a.coefficient % best == 0) {
                high->addends[high->count++] = with_coefficient(a, a.coefficient / best);
            } else {
                low->addends[low->count++] = a;
            }
        }
        low->constant = tl_floormod(r->constant, best);
        high->constant = tl_floordiv(r->constant, best);
        int64_t quotient;
        if (one_quotient(low, best, &quotient)) {
            tl_sum_add_constant(high, quotient, 1);
            tl_sum_add_constant(low, quotient, -best);
            *g = best;
            return true;
        }
    }
}

/* s // d where no coefficient of s is a multiple of d and its constant is in 0..d-1. */
static const tl_expr *divide_rest(tl_arena *arena, const tl_sum *s, int64_t d)
{
    assert(d > 0);
    int64_t quotient, inner, g;
    if (one_quotient(s, d, &quotient))
        return tl_int(arena, quotient);
    if (s->count == 1 && s->addends[0].coefficient == 1) {
        const tl_expr *term = s->addends[0].term;
        int64_t both, shift = 0;
        if (is_by_constant(term, TL_EXPR_FLOORDIV, &inner) && !tl_mul_overflows(inner, d, &both) &&
            !tl_mul_overflows(s->constant, inner, &shift))
            return tl_index_floordiv(arena, tl_addi(arena, term->args[0], shift), both);
        if (s->constant == 0 && is_by_constant(term, TL_EXPR_FLOORMOD, &inner) && inner % d == 0)
            return tl_index_floormod(arena, tl_index_floordiv(arena, term->args[0], d), inner / d);
    }
    tl_sum high, low;
    if (cut(s, d, &g, &high, &low))
        return tl_index_floordiv(arena, tl_sum_canonical(arena, &high), d / g);
    return tl_expr_node2(arena, TL_EXPR_FLOORDIV, TL_I64, tl_sum_expr(arena, s), tl_int(arena, d));
}

const tl_expr *tl_index_floordiv(tl_arena *arena, const tl_expr *e, int64_t d)
{
    assert(d > 0);
    if (d == 1)
        return e;
    tl_sum s, out;
    tl_sum_clear(&s);
    tl_sum_clear(&out);
    tl_sum_add(&s, e, 1);
    int rest = 0;
    for (int i = 0; i < s.count; i++) {
        tl_addend a = s.addends[i];
        int64_t quotient = a.coefficient / d;
        if (a.coefficient % d != 0)
            s.addends[rest++] = with_coefficient(a, a.coefficient % d);
        if (quotient != 0)
            out.addends[out.count++] = with_coefficient(a, quotient);
    }
    s.count = rest;
    out.constant = tl_floordiv(s.constant, d);
    s.constant = tl_floormod(s.constant, d);
    if (s.count == 0)
        return tl_sum_expr(arena, &out);
    const tl_expr *quotient = join(arena, &s) ? tl_index_floordiv(arena, tl_sum_expr(arena, &s), d)
                                              : divide_rest(arena, &s, d);
    if (out.count == 0 && out.constant == 0)
        return quotient;
    if (!tl_sum_add(&out, quotient, 1)) /* too many terms: as written */
        return tl_expr_node2(arena, TL_EXPR_FLOORDIV, TL_I64, e, tl_int(arena, d));
    return tl_sum_canonical(arena, &out);
}

/* Drops multiples of d from s, brings its constant into 0..d-1. */
static void drop_multiples(tl_sum *s, int64_t d)
{
    assert(d > 0);
    int rest = 0;
    for (int i = 0; i < s->count; i++)
        if (s->addends[i].coefficient % d != 0)
            s->addends[rest++] = with_coefficient(s->addends[i], s->addends[i].coefficient % d);
    s->count = rest;
    s->constant = tl_floormod(s->constant, d);
}

/* c*(x % m) -> c*x in s, where d divides c*m. True when something was replaced. */
static bool open_modulo(tl_sum *s, int64_t d)
{
    for (int i = 0; i < s->count; i++) {
        int64_t m, both, c = s->addends[i].coefficient;
        const tl_expr *term = s->addends[i].term;
        if (!is_by_constant(term, TL_EXPR_FLOORMOD, &m) || tl_mul_overflows(c, m, &both) ||
            both % d != 0)
            continue;
        tl_sum with;
        tl_sum_copy(&with, s);
        tl_sum_remove(&with, i);
        if (!tl_sum_add(&with, term->args[0], c) || with.overflow)
            continue;
        tl_sum_copy(s, &with);
        return true;
    }
    return false;
}

const tl_expr *tl_index_floormod(tl_arena *arena, const tl_expr *e, int64_t d)
{
    assert(d > 0);
    if (d == 1)
        return tl_int(arena, 0);
    tl_sum s;
    tl_sum_clear(&s);
    tl_sum_add(&s, e, 1);
    do {
        int64_t quotient;
        drop_multiples(&s, d);
        if (s.count == 0)
            return tl_int(arena, s.constant);
        if (one_quotient(&s, d, &quotient)) {
            tl_sum_add_constant(&s, quotient, -d);
            return tl_sum_canonical(arena, &s);
        }
    } while (open_modulo(&s, d));
    if (join(arena, &s))
        return tl_index_floormod(arena, tl_sum_expr(arena, &s), d);

    tl_sum high, low;
    int64_t g;
    if (cut(&s, d, &g, &high, &low)) {
        const tl_expr *rest = tl_index_floormod(arena, tl_sum_canonical(arena, &high), d / g);
        if (tl_sum_add(&low, rest, g))
            return tl_sum_canonical(arena, &low);
    }
    return tl_expr_node2(arena, TL_EXPR_FLOORMOD, TL_I64, tl_sum_expr(arena, &s), tl_int(arena, d));
}

/* ---- pairs in a sum ---- */

/* Whether a - b is a multiple of d: c*(t % m) may stand for c*t where c*m is one. */
static bool is_congruent(const tl_expr *a, const tl_expr *b, int64_t d)
{
    assert(d > 0);
    tl_sum s;
    tl_sum_clear(&s);
    if (!tl_sum_add(&s, a, 1) || !tl_sum_add(&s, b, -1))
        return false;
    for (int i = 0, rounds = 0; i < s.count && rounds < 2 * TL_MAX_ADDENDS; rounds++) {
        const tl_addend it = s.addends[i];
        int64_t m, multiple;
        if (it.coefficient % d != 0 && is_by_constant(it.term, TL_EXPR_FLOORMOD, &m) &&
            !tl_mul_overflows(it.coefficient, m, &multiple) && multiple % d == 0) {
            tl_sum_remove(&s, i);
            if (!tl_sum_add(&s, it.term->args[0], it.coefficient))
                return false;
            i = 0; /* what it adds may stand anywhere */
        } else {
            i++;
        }
    }
    bool is_multiple = s.constant % d == 0 && !s.overflow;
    for (int i = 0; i < s.count; i++)
        is_multiple &= s.addends[i].coefficient % d == 0;
    return is_multiple;
}

/* What e % d adds up to with d times `other`: t when other is t // d, t % (d*h) when it is (t // d) % h, where t is e or differs
 * from it by a multiple of d; NULL when it is neither. */
static const tl_expr *joined(tl_arena *arena, const tl_expr *e, int64_t d, const tl_expr *quotient,
                             const tl_expr *other)
{
    assert(d > 0);
    int64_t h = 0, own, both;
    if (is_by_constant(other, TL_EXPR_FLOORMOD, &h))
        other = other->args[0];
    if (!tl_expr_equal(other, quotient)) {
        if (!is_by_constant(other, TL_EXPR_FLOORDIV, &own) || own != d ||
            !is_congruent(other->args[0], e, d))
            return NULL;
        e = other->args[0];
    }
    if (h == 0)
        return e;
    return tl_mul_overflows(d, h, &both) ? NULL : tl_index_floormod(arena, e, both);
}

/* (e // d)*c*d + (e % d)*c = c*e, for the % at `index`; (e // d) may itself stand under a %. */
static bool join_pair(tl_arena *arena, tl_sum *s, int index)
{
    assert(index >= 0 && index < s->count);
    const tl_expr *mod = s->addends[index].term, *quotient = NULL;
    int64_t d, wanted, c = s->addends[index].coefficient;
    if (!is_by_constant(mod, TL_EXPR_FLOORMOD, &d) || tl_mul_overflows(c, d, &wanted))
        return false;
    for (int i = 0; i < s->count; i++) {
        tl_expr_kind kind = s->addends[i].term->kind;
        if (s->addends[i].coefficient != wanted ||
            (kind != TL_EXPR_FLOORDIV && kind != TL_EXPR_FLOORMOD))
            continue;
        if (quotient == NULL)
            quotient = tl_index_floordiv(arena, mod->args[0], d);
        const tl_expr *whole = joined(arena, mod->args[0], d, quotient, s->addends[i].term);
        if (whole == NULL)
            continue;
        tl_sum with;
        tl_sum_copy(&with, s);
        tl_sum_remove(&with, i > index ? i : index);
        tl_sum_remove(&with, i > index ? index : i);
        if (!tl_sum_add(&with, whole, c) || with.overflow)
            return false;
        tl_sum_copy(s, &with);
        return true;
    }
    return false;
}

/* Whether s contains c*e up to the constant, e having at least one term. */
static bool contains_multiple(const tl_sum *s, const tl_sum *e, int64_t c)
{
    for (int i = 0; i < e->count; i++) {
        int64_t wanted;
        if (tl_mul_overflows(e->addends[i].coefficient, c, &wanted) ||
            tl_sum_coefficient(s, e->addends[i].term) != wanted)
            return false;
    }
    return e->count > 0;
}

/* c*e - c*d*(e // d) = c*(e % d)   and   c*e - c*(e % d) = c*d*(e // d), for the term at `index`. */
static bool join_difference(tl_arena *arena, tl_sum *s, int index)
{
    assert(index >= 0 && index < s->count);
    const tl_expr *term = s->addends[index].term;
    int64_t d, c = s->addends[index].coefficient;
    bool is_div = is_by_constant(term, TL_EXPR_FLOORDIV, &d);
    if ((!is_div && !is_by_constant(term, TL_EXPR_FLOORMOD, &d)) || c == INT64_MIN ||
        (is_div && c % d != 0))
        return false;
    c = is_div ? -(c / d) : -c;
    tl_sum e, with;
    tl_sum_clear(&e);
    tl_sum_add(&e, term->args[0], 1);
    if (!contains_multiple(s, &e, c))
        return false;
    int64_t multiple;
    if (c == INT64_MIN || tl_mul_overflows(c, d, &multiple))
        return false;
    tl_sum_copy(&with, s);
    tl_sum_remove(&with, index);
    const tl_expr *other = is_div ? tl_index_floormod(arena, term->args[0], d)
                                  : tl_index_floordiv(arena, term->args[0], d);
    if (!tl_sum_add_sum(&with, &e, -c) || !tl_sum_add(&with, other, is_div ? c : multiple) ||
        with.overflow)
        return false;
    tl_sum_copy(s, &with);
    return true;
}

/* All pairs; true when there was one. */
static bool join(tl_arena *arena, tl_sum *s)
{
    bool any = false, changed = true;
    /* Each join removes a // or %, or keeps their number and removes a term; the limit is a belt. */
    for (int round = 0; changed && round < 2 * TL_MAX_ADDENDS; round++) {
        changed = false;
        if (s->count < 2)
            break;
        for (int i = 0; i < s->count && !changed; i++) {
            tl_expr_kind kind = s->addends[i].term->kind;
            if (kind == TL_EXPR_FLOORMOD)
                changed = join_pair(arena, s, i) || join_difference(arena, s, i);
            else if (kind == TL_EXPR_FLOORDIV)
                changed = join_difference(arena, s, i);
        }
        any |= changed;
    }
    return any;
}

const tl_expr *tl_sum_canonical(tl_arena *arena, tl_sum *s)
{
    (void)join(arena, s);
    return tl_sum_expr(arena, s);
}
