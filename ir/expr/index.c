/* ir/expr/index.c: the canonical i64 expression for each operator. */
#include "ir/expr/index.h"
#include <assert.h>
#include "ir/expr/index_private.h"
#include "runtime/base/checked.h"

static const tl_expr *add(tl_arena *arena, const tl_expr *a, const tl_expr *b, int64_t scale)
{
    if (b->kind == TL_EXPR_INT) { /* the commonest case: only the constant changes */
        int64_t constant = tl_wrap_mul(b->u.value, scale);
        const tl_expr *base = a;
        if (a->kind == TL_EXPR_ADD && a->args[1]->kind == TL_EXPR_INT) {
            constant = tl_wrap_add(constant, a->args[1]->u.value);
            base = a->args[0];
        }
        if (constant == 0)
            return base;
        return tl_expr_node2(arena, TL_EXPR_ADD, TL_I64, base, tl_int(arena, constant));
    }
    tl_sum sum;
    tl_sum_clear(&sum);
    if (tl_sum_add(&sum, a, 1) && tl_sum_add(&sum, b, scale))
        return tl_sum_canonical(arena, &sum);
    return tl_expr_node2(arena, scale == 1 ? TL_EXPR_ADD : TL_EXPR_SUB, TL_I64, a, b);
}

/* ---- products ---- */

enum { MAX_FACTORS = 32 };

/* The atoms of a term, in order; 0 when there are too many. */
static int factors_of(const tl_expr *term, const tl_expr **out)
{
    const tl_expr *reversed[MAX_FACTORS];
    int count = 0;
    while (term->kind == TL_EXPR_MUL && count < MAX_FACTORS - 1) {
        reversed[count++] = term->args[1];
        term = term->args[0];
    }
    if (term->kind == TL_EXPR_MUL)
        return 0;
    reversed[count++] = term;
    assert(count <= MAX_FACTORS);
    for (int i = 0; i < count; i++)
        out[i] = reversed[count - 1 - i];
    return count;
}

static const tl_expr *multiply_terms(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    const tl_expr *x[MAX_FACTORS], *y[MAX_FACTORS], *product = NULL;
    int n = factors_of(a, x), m = factors_of(b, y), i = 0, j = 0;
    if (n == 0 || m == 0 || n + m > MAX_FACTORS)
        return tl_expr_node2(arena, TL_EXPR_MUL, TL_I64, a, b);
    while (i < n || j < m) {
        bool first = j == m || (i < n && tl_expr_compare(x[i], y[j]) <= 0);
        const tl_expr *factor = first ? x[i++] : y[j++];
        product =
            product == NULL ? factor : tl_expr_node2(arena, TL_EXPR_MUL, TL_I64, product, factor);
    }
    return product;
}

static const tl_expr *scale(tl_arena *arena, const tl_expr *a, int64_t c)
{
    assert(a->dtype == TL_I64);
    if (c == 0)
        return tl_int(arena, 0);
    if (c == 1)
        return a;
    if (a->kind == TL_EXPR_VAR)
        return tl_expr_node2(arena, TL_EXPR_MUL, TL_I64, a, tl_int(arena, c));
    tl_sum sum;
    tl_sum_clear(&sum);
    tl_sum_add(&sum, a, c);
    return tl_sum_expr(arena, &sum);
}

static const tl_expr *multiply(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    int64_t c;
    if (tl_const_int(b, &c))
        return scale(arena, a, c);
    if (tl_const_int(a, &c))
        return scale(arena, b, c);
    tl_sum x, y, out;
    tl_sum_clear(&x);
    tl_sum_clear(&y);
    tl_sum_clear(&out);
    tl_sum_add(&x, a, 1);
    tl_sum_add(&y, b, 1);
    bool fits = (x.count + 1) * (y.count + 1) <= TL_MAX_ADDENDS &&
                tl_sum_add_sum(&out, &x, y.constant) && tl_sum_add_sum(&out, &y, x.constant);
    tl_sum_add_constant(&out, tl_wrap_mul(x.constant, y.constant), -1); /* it was added twice */
    for (int i = 0; fits && i < x.count; i++)
        for (int j = 0; fits && j < y.count; j++)
            fits =
                tl_sum_add_term(&out, multiply_terms(arena, x.addends[i].term, y.addends[j].term),
                                tl_wrap_mul(x.addends[i].coefficient, y.addends[j].coefficient));
    return fits ? tl_sum_canonical(arena, &out) : tl_expr_node2(arena, TL_EXPR_MUL, TL_I64, a, b);
}

/* ---- the rest ---- */

static const tl_expr *divide(tl_arena *arena, tl_expr_kind kind, const tl_expr *a, const tl_expr *b)
{
    assert(kind == TL_EXPR_FLOORDIV || kind == TL_EXPR_FLOORMOD);
    int64_t d;
    if (tl_const_int(b, &d) && d > 0)
        return kind == TL_EXPR_FLOORDIV ? tl_index_floordiv(arena, a, d)
                                        : tl_index_floormod(arena, a, d);
    tl_range x = tl_expr_range(a), y = tl_expr_range(b);
    if (x.min >= 0 && y.min > 0 && x.max < y.min) /* fits once into any divisor */
        return kind == TL_EXPR_FLOORDIV ? tl_int(arena, 0) : a;
    return tl_expr_node2(arena, kind, TL_I64, a, b);
}

/* a <= b, for folding: intervals and the relaxations of ir/expr/index_prove.c. */
static bool is_le(const tl_expr *a, const tl_expr *b)
{
    tl_sum difference;
    tl_sum_clear(&difference);
    return tl_sum_add(&difference, b, 1) && tl_sum_add(&difference, a, -1) &&
           tl_sum_at_least(&difference, 0, NULL);
}

static const tl_expr *extremum(tl_arena *arena, tl_expr_kind kind, const tl_expr *a,
                               const tl_expr *b)
{
    assert(kind == TL_EXPR_MIN || kind == TL_EXPR_MAX);
    if (is_le(a, b))
        return kind == TL_EXPR_MIN ? a : b;
    if (is_le(b, a))
        return kind == TL_EXPR_MIN ? b : a;
    bool swap = tl_expr_compare(a, b) > 0;
    return tl_expr_node2(arena, kind, TL_I64, swap ? b : a, swap ? a : b);
}

const tl_expr *tl_index_binary(tl_arena *arena, tl_expr_kind kind, const tl_expr *a,
                               const tl_expr *b)
{
    assert(a->dtype == TL_I64 && b->dtype == TL_I64);
    if (tl_is_constant(a) && tl_is_constant(b)) {
        const tl_expr *folded = tl_fold_binary(arena, kind, a, b);
        if (folded != NULL)
            return folded;
    }
    switch (kind) {
    case TL_EXPR_ADD:
        return add(arena, a, b, 1);
    case TL_EXPR_SUB:
        return add(arena, a, b, -1);
    case TL_EXPR_MUL:
        return multiply(arena, a, b);
    case TL_EXPR_FLOORDIV:
    case TL_EXPR_FLOORMOD:
        return divide(arena, kind, a, b);
    case TL_EXPR_MIN:
    case TL_EXPR_MAX:
        return extremum(arena, kind, a, b);
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
    return tl_expr_node2(arena, kind, TL_I64, a, b);
}

/* ---- comparisons ---- */

static int64_t common_factor(const tl_sum *s)
{
    uint64_t g = 0;
    for (int i = 0; i < s->count; i++) {
        int64_t c = s->addends[i].coefficient;
        uint64_t x = c < 0 ? 0 - (uint64_t)c : (uint64_t)c;
        while (x != 0) {
            uint64_t r = g % x;
            g = x;
            x = r;
        }
    }
    return g > INT64_MAX ? 1 : (int64_t)g;
}

/* positive part of s on one side, negated negative part on the other: s >= 0 is left <= right. */
static void take_sides(tl_arena *arena, const tl_sum *s, const tl_expr **left,
                       const tl_expr **right)
{
    assert(s->count >= 0 && s->count <= TL_MAX_ADDENDS);
    tl_sum low, high;
    tl_sum_clear(&low);
    tl_sum_clear(&high);
    for (int i = 0; i < s->count; i++) {
        tl_addend a = s->addends[i];
        if (a.coefficient > 0) {
            high.addends[high.count++] = a;
        } else {
            a.coefficient = -a.coefficient;
            a.product = a.coefficient == 1 ? a.term : NULL;
            low.addends[low.count++] = a;
        }
    }
    /* the constant goes where it is positive, or to the side that would else be empty */
    if (s->constant > 0 ? low.count == 0 && high.count > 0 : high.count > 0 || low.count == 0)
        low.constant = -s->constant;
    else
        high.constant = s->constant;
    *left = tl_sum_expr(arena, &low);
    *right = tl_sum_expr(arena, &high);
}

/* Divides by the common factor of the terms; false when an equality can then not hold. */
static bool reduce(tl_sum *s, tl_expr_kind kind)
{
    int64_t g = common_factor(s);
    assert(g >= 0);
    if (g <= 1)
        return true;
    if ((kind == TL_EXPR_EQ || kind == TL_EXPR_NE) && s->constant % g != 0)
        return false;
    for (int i = 0; i < s->count; i++) {
        s->addends[i].coefficient /= g;
        s->addends[i].product = s->addends[i].coefficient == 1 ? s->addends[i].term : NULL;
    }
    if (kind == TL_EXPR_LT) /* sum + c >= 1 */
        s->constant = tl_floordiv(s->constant - 1, g) + 1;
    else
        s->constant = tl_floordiv(s->constant, g);
    return true;
}

/* Whether a term may be any number (data, read from memory): sums with it wrap around, and no term may change sides. */
static bool is_wild(const tl_sum *s)
{
    for (int i = 0; i < s->count; i++) {
        tl_range range = tl_expr_range(s->addends[i].term);
        bool any = range.min == INT64_MIN || range.max == INT64_MAX;
        if (any && s->addends[i].term->kind != TL_EXPR_VAR)
            return true;
    }
    return false;
}

const tl_expr *tl_index_compare(tl_arena *arena, tl_expr_kind kind, const tl_expr *a,
                                const tl_expr *b)
{
    assert(a->dtype == TL_I64 && b->dtype == TL_I64);
    tl_sum s, of_a; /* b - a; a by itself, for a term that both have is gone from the difference */
    tl_sum_clear(&s);
    tl_sum_clear(&of_a);
    bool equality = kind == TL_EXPR_EQ || kind == TL_EXPR_NE;
    if (!tl_sum_add(&s, b, 1) || is_wild(&s) || !tl_sum_add(&of_a, a, 1) || is_wild(&of_a) ||
        !tl_sum_add(&s, a, -1) || s.overflow || s.constant == INT64_MIN)
        return tl_expr_node2(arena, kind, TL_BOOL, a, b);
    for (int i = 0; i < s.count; i++)
        if (s.addends[i].coefficient == INT64_MIN)
            return tl_expr_node2(arena, kind, TL_BOOL, a, b);

    int64_t least = kind == TL_EXPR_LE ? 0 : 1; /* b - a of a true LE, LT */
    tl_range range = tl_sum_range(&s, NULL, 0);
    if (equality) {
        if (s.count == 0)
            return tl_bool(arena, (s.constant == 0) == (kind == TL_EXPR_EQ));
        if (range.min > 0 || range.max < 0 || !reduce(&s, kind))
            return tl_bool(arena, kind == TL_EXPR_NE);
        if (s.addends[0].coefficient > 0) /* one sign of the two */
            tl_sum_scale(&s, -1);
    } else {
        if (tl_sum_at_least(&s, least, NULL))
            return tl_bool(arena, true);
        if (range.max < least)
            return tl_bool(arena, false);
        tl_sum opposite;
        tl_sum_copy(&opposite, &s);
        tl_sum_scale(&opposite, -1);
        if (tl_sum_at_least(&opposite, 1 - least, NULL))
            return tl_bool(arena, false);
        reduce(&s, kind);
    }
    const tl_expr *left, *right;
    take_sides(arena, &s, &left, &right);
    return tl_expr_node2(arena, kind, TL_BOOL, left, right);
}
