/* ir/expr/index_sum.c: canonical sums: taking an expression apart into addends and putting it together
 * again. The tree of a sum is a chain that leans left, terms in the order of tl_expr_compare, the
 * constant last:
 *
 *     i*8 + j + 3   =   ADD(ADD(MUL(i, 8), j), 3)
 */
#include <assert.h>
#include <string.h>
#include "ir/expr/index_private.h"
#include "runtime/base/checked.h"

void tl_sum_copy(tl_sum *to, const tl_sum *from)
{
    assert(to != from && from->count >= 0 && from->count <= TL_MAX_ADDENDS);
    to->constant = from->constant;
    to->count = from->count;
    to->overflow = from->overflow;
    memcpy(to->addends, from->addends, (size_t)from->count * sizeof from->addends[0]);
}

static int64_t product(tl_sum *s, int64_t a, int64_t b)
{
    int64_t result = tl_wrap_mul(a, b);
    if (tl_mul_overflows(a, b, &result))
        s->overflow = true;
    return result;
}

static int64_t total(tl_sum *s, int64_t a, int64_t b)
{
    int64_t result = tl_wrap_add(a, b);
    if (tl_add_overflows(a, b, &result))
        s->overflow = true;
    return result;
}

void tl_sum_add_constant(tl_sum *s, int64_t value, int64_t scale)
{
    s->constant = total(s, s->constant, product(s, value, scale));
}

void tl_sum_remove(tl_sum *s, int index)
{
    assert(index >= 0 && index < s->count);
    s->count--;
    memmove(&s->addends[index], &s->addends[index + 1],
            (size_t)(s->count - index) * sizeof s->addends[0]);
}

/* Adds an addend at or after position *at, which moves to it: sorted addends merge in one pass. */
static bool insert(tl_sum *s, int *at, tl_addend addend)
{
    assert(*at >= 0 && *at <= s->count && addend.term != NULL);
    assert(*at == 0 || tl_expr_compare(s->addends[*at - 1].term, addend.term) < 0);
    int order = 1;
    while (*at < s->count && (order = tl_expr_compare(s->addends[*at].term, addend.term)) < 0)
        ++*at;
    if (*at < s->count && order == 0) {
        tl_addend *same = &s->addends[*at];
        same->coefficient = total(s, same->coefficient, addend.coefficient);
        same->product = NULL;
        if (same->coefficient == 0)
            tl_sum_remove(s, *at);
        return true;
    }
    if (addend.coefficient == 0)
        return true;
    if (s->count == TL_MAX_ADDENDS)
        return false;
    memmove(&s->addends[*at + 1], &s->addends[*at],
            (size_t)(s->count - *at) * sizeof s->addends[0]);
    s->addends[*at] = addend;
    s->count++;
    return true;
}

bool tl_sum_add_term(tl_sum *s, const tl_expr *term, int64_t coefficient)
{
    int at = 0;
    return insert(s, &at, (tl_addend){ coefficient, term, coefficient == 1 ? term : NULL });
}

bool tl_sum_add_sum(tl_sum *s, const tl_sum *other, int64_t scale)
{
    assert(s != other);
    int at = 0;
    s->overflow |= other->overflow;
    for (int i = 0; i < other->count; i++) {
        tl_addend addend = other->addends[i];
        if (scale != 1) {
            addend.coefficient = product(s, addend.coefficient, scale);
            addend.product = addend.coefficient == 1 ? addend.term : NULL;
        }
        if (!insert(s, &at, addend))
            return false;
    }
    tl_sum_add_constant(s, other->constant, scale);
    return true;
}

static tl_addend addend_of(const tl_expr *e)
{
    if (e->kind == TL_EXPR_MUL && e->args[1]->kind == TL_EXPR_INT)
        return (tl_addend){ e->args[1]->u.value, e->args[0], e };
    return (tl_addend){ 1, e, e };
}

bool tl_sum_add(tl_sum *s, const tl_expr *e, int64_t scale)
{
    assert(e->dtype == TL_I64);
    tl_addend parts[TL_MAX_ADDENDS]; /* last first */
    int count = 0, at = 0;
    const tl_expr *rest = e;
    if (e->kind == TL_EXPR_INT) {
        tl_sum_add_constant(s, e->u.value, scale);
        return true;
    }
    int64_t constant = 0;
    if (rest->kind == TL_EXPR_ADD && rest->args[1]->kind == TL_EXPR_INT) {
        constant = rest->args[1]->u.value;
        rest = rest->args[0];
    }
    while (rest->kind == TL_EXPR_ADD && count < TL_MAX_ADDENDS) {
        parts[count++] = addend_of(rest->args[1]);
        rest = rest->args[0];
    }
    if (count == TL_MAX_ADDENDS) { /* too long: one opaque term */
        count = 0;
        constant = 0;
        parts[count++] = (tl_addend){ 1, e, e };
    } else {
        parts[count++] = addend_of(rest);
    }
    tl_sum_add_constant(s, constant, scale);
    while (count > 0) {
        tl_addend addend = parts[--count];
        if (scale != 1) {
            addend.coefficient = product(s, addend.coefficient, scale);
            addend.product = addend.coefficient == 1 ? addend.term : NULL;
        }
        if (!insert(s, &at, addend))
            return false;
    }
    return true;
}

void tl_sum_scale(tl_sum *s, int64_t scale)
{
    assert(scale != 0);
    if (scale == 1)
        return;
    s->constant = product(s, s->constant, scale);
    int kept = 0;
    for (int i = 0; i < s->count; i++) {
        tl_addend *a = &s->addends[i];
        a->coefficient = product(s, a->coefficient, scale);
        a->product = a->coefficient == 1 ? a->term : NULL;
        if (a->coefficient != 0) /* it may wrap to 0 */
            s->addends[kept++] = *a;
    }
    s->count = kept;
}

int64_t tl_sum_coefficient(const tl_sum *s, const tl_expr *term)
{
    for (int i = 0; i < s->count; i++)
        if (tl_expr_equal(s->addends[i].term, term))
            return s->addends[i].coefficient;
    return 0;
}

const tl_expr *tl_sum_expr(tl_arena *arena, const tl_sum *s)
{
    const tl_expr *chain = NULL;
    for (int i = 0; i < s->count; i++) {
        const tl_addend *a = &s->addends[i];
        const tl_expr *node = a->product;
        if (node == NULL)
            node = a->coefficient == 1 ? a->term
                                       : tl_expr_node2(arena, TL_EXPR_MUL, TL_I64, a->term,
                                                       tl_int(arena, a->coefficient));
        chain = chain == NULL ? node : tl_expr_node2(arena, TL_EXPR_ADD, TL_I64, chain, node);
    }
    if (chain == NULL)
        return tl_int(arena, s->constant);
    if (s->constant == 0)
        return chain;
    return tl_expr_node2(arena, TL_EXPR_ADD, TL_I64, chain, tl_int(arena, s->constant));
}

const tl_expr *tl_index_sum(tl_arena *arena, const tl_expr *const *parts, int count)
{
    assert(count > 0);
    tl_sum sum;
    tl_sum_clear(&sum);
    for (int i = 0; i < count; i++)
        if (!tl_sum_add(&sum, parts[i], 1)) {
            const tl_expr *chain = parts[0]; /* too many terms: one by one, as written */
            for (int j = 1; j < count; j++)
                chain = tl_add(arena, chain, parts[j]);
            return chain;
        }
    return tl_sum_canonical(arena, &sum);
}

tl_linear tl_linear_of(tl_arena *arena, const tl_expr *e)
{
    tl_sum sum;
    tl_sum_clear(&sum);
    tl_sum_add(&sum, e, 1); /* a single expression always fits */
    int64_t *coefficients = TL_NEW_ARRAY(arena, int64_t, sum.count);
    const tl_expr **terms = TL_NEW_ARRAY(arena, const tl_expr *, sum.count);
    for (int i = 0; i < sum.count; i++) {
        coefficients[i] = sum.addends[i].coefficient;
        terms[i] = sum.addends[i].term;
    }
    return (tl_linear){ sum.constant, sum.count, coefficients, terms };
}

bool tl_is_multiple(tl_arena *arena, const tl_expr *e, int64_t step)
{
    tl_linear sum = tl_linear_of(arena, e);
    bool is_multiple = sum.constant % step == 0;
    for (int i = 0; i < sum.count; i++)
        is_multiple &= sum.coefficients[i] % step == 0;
    return is_multiple;
}

bool tl_affine_in(tl_arena *arena, const tl_expr *e, const tl_var *var, int64_t *coefficient,
                  const tl_expr **rest)
{
    assert(e->dtype == TL_I64);
    tl_sum sum;
    tl_sum_clear(&sum);
    tl_sum_add(&sum, e, 1);
    *coefficient = 0;
    int at = -1;
    for (int i = 0; i < sum.count; i++) {
        const tl_expr *term = sum.addends[i].term;
        if (term->kind == TL_EXPR_VAR && term->u.var == var) {
            *coefficient = sum.addends[i].coefficient;
            at = i;
        } else if (tl_expr_uses_var(term, var)) {
            return false;
        }
    }
    if (at >= 0)
        tl_sum_remove(&sum, at);
    *rest = at >= 0 ? tl_sum_expr(arena, &sum) : e;
    return true;
}
