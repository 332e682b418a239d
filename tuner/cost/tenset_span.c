/* tuner/cost/tenset_span.c: bounds and coefficients of indices as TVM's analyzer and TenSet's extractor find them:
 * bounds are those of intervals (a product, a quotient and a remainder of intervals, each on its own), and a
 * coefficient is guessed from the order in which a sum is written. */
#include <assert.h>
#include <math.h>
#include "ir/expr/index.h"
#include "tuner/cost/tenset_private.h"

static int loop_of(const tl_tenset_walk *walk, const tl_var *var)
{
    for (int i = walk->depth - 1; i >= 0; i--)
        if (walk->loops[i]->var == var)
            return i;
    return -1;
}

uint64_t tl_tenset_loops_of(const tl_tenset_walk *walk, const tl_expr *e)
{
    uint64_t bits = 0;
    if (e->kind == TL_EXPR_VAR) {
        int loop = loop_of(walk, e->u.var);
        return loop >= 0 ? (uint64_t)1 << loop : 0;
    }
    for (int i = 0; i < e->arg_count; i++)
        bits |= tl_tenset_loops_of(walk, e->args[i]);
    return bits;
}

/* --- bounds ------------------------------------------------------------------------------------------------------- */

static void set_all(const tl_tenset_walk *walk, double min, double max, tl_tenset_span *out)
{
    for (int i = 0; i < walk->depth; i++) {
        out->min[i] = min;
        out->max[i] = max;
    }
}

/* A kernel's dim is an unknown number that stands still, as 0. */
static void span_of_var(const tl_tenset_walk *walk, const tl_var *var, tl_tenset_span *out)
{
    int loop = loop_of(walk, var);
    for (int i = 0; i < walk->depth; i++) {
        out->min[i] = 0;
        out->max[i] = i <= loop ? walk->loops[loop]->span - 1 : 0;
    }
}

static double product(double a, double b)
{
    return a == 0 || b == 0 ? 0 : a * b; /* of nothing and of anything nothing */
}

static void multiply(const tl_tenset_walk *walk, const tl_tenset_span *a, tl_tenset_span *out)
{
    for (int i = 0; i < walk->depth; i++) {
        double p = product(a->min[i], out->min[i]), q = product(a->min[i], out->max[i]);
        double r = product(a->max[i], out->min[i]), s = product(a->max[i], out->max[i]);
        out->min[i] = fmin(fmin(p, q), fmin(r, s));
        out->max[i] = fmax(fmax(p, q), fmax(r, s));
    }
}

/* `e // k` and `e % k` of e in a. */
static void divide(const tl_tenset_walk *walk, const tl_tenset_span *a, double k,
                   tl_tenset_span *out)
{
    for (int i = 0; i < walk->depth; i++) {
        out->min[i] = floor(a->min[i] / k);
        out->max[i] = floor(a->max[i] / k);
    }
}

static void take_remainder(const tl_tenset_walk *walk, const tl_tenset_span *a, double k,
                           tl_tenset_span *out)
{
    for (int i = 0; i < walk->depth; i++) {
        out->min[i] = 0;
        out->max[i] = a->min[i] >= 0 ? fmin(a->max[i], k - 1) : k - 1;
    }
}

static void join(const tl_tenset_walk *walk, const tl_tenset_span *a, tl_tenset_span *out)
{
    for (int i = 0; i < walk->depth; i++) {
        out->min[i] = fmin(a->min[i], out->min[i]);
        out->max[i] = fmax(a->max[i], out->max[i]);
    }
}

static void span_of_binary(const tl_tenset_walk *walk, const tl_expr *e, tl_tenset_span *out)
{
    tl_tenset_span a;
    int64_t k = 0;
    tl_tenset_span_of(walk, e->args[0], &a);
    tl_tenset_span_of(walk, e->args[1], out);
    bool by_constant = tl_const_int(e->args[1], &k) && k > 0;
    if (e->kind == TL_EXPR_MUL)
        multiply(walk, &a, out);
    else if (e->kind == TL_EXPR_FLOORDIV && by_constant)
        divide(walk, &a, (double)k, out);
    else if (e->kind == TL_EXPR_FLOORMOD && by_constant)
        take_remainder(walk, &a, (double)k, out);
    else if (e->kind == TL_EXPR_ADD || e->kind == TL_EXPR_SUB || e->kind == TL_EXPR_MIN ||
             e->kind == TL_EXPR_MAX)
        for (int i = 0; i < walk->depth; i++) {
            double least = out->min[i], most = out->max[i];
            out->min[i] = e->kind == TL_EXPR_ADD   ? a.min[i] + least
                          : e->kind == TL_EXPR_SUB ? a.min[i] - most
                          : e->kind == TL_EXPR_MIN ? fmin(a.min[i], least)
                                                   : fmax(a.min[i], least);
            out->max[i] = e->kind == TL_EXPR_ADD   ? a.max[i] + most
                          : e->kind == TL_EXPR_SUB ? a.max[i] - least
                          : e->kind == TL_EXPR_MIN ? fmin(a.max[i], most)
                                                   : fmax(a.max[i], most);
        }
    else
        set_all(walk, -INFINITY, INFINITY, out);
}

void tl_tenset_span_of(const tl_tenset_walk *walk, const tl_expr *e, tl_tenset_span *out)
{
    int64_t constant;
    if (e->kind == TL_EXPR_VAR) {
        span_of_var(walk, e->u.var, out);
    } else if (tl_const_int(e, &constant)) {
        set_all(walk, (double)constant, (double)constant, out);
    } else if (e->kind == TL_EXPR_CAST) {
        tl_tenset_span_of(walk, e->args[0], out);
    } else if (e->kind == TL_EXPR_SELECT) {
        tl_tenset_span other;
        tl_tenset_span_of(walk, e->args[1], out);
        tl_tenset_span_of(walk, e->args[2], &other);
        join(walk, &other, out);
    } else if (e->kind != TL_EXPR_LOAD && tl_expr_infos[e->kind].arity == 2) {
        span_of_binary(walk, e, out);
    } else {
        set_all(walk, -INFINITY, INFINITY, out);
    }
}

/* --- coefficients ------------------------------------------------------------------------------------------------- */

/* Their extractor passes through an index from left to right. Once it has met the variable, the constant of a product
 * that ends is the coefficient, be it that of another variable, until a sum ends in which there was none: then it is
 * 1. */
typedef struct {
    const tl_tenset_walk *walk;
    const tl_var *var;
    bool met, multiplied, added;
    double coefficient;
} extractor;

enum { MOST_ADDENDS = 32 };

static int find_addends(const tl_expr *e, const tl_expr **addends, int count)
{
    if (e->kind == TL_EXPR_ADD && count < MOST_ADDENDS - 1) {
        count = find_addends(e->args[0], addends, count);
        return find_addends(e->args[1], addends, count);
    }
    if (count < MOST_ADDENDS)
        addends[count++] = e;
    return count;
}

/* In TVM a split writes the outer part first, constants come last; our sums have an order of their own. */
static void order_addends(const tl_tenset_walk *walk, const tl_expr **addends, int count)
{
    int place[MOST_ADDENDS];
    for (int i = 0; i < count; i++) {
        const tl_expr *addend = addends[i];
        uint64_t loops = tl_tenset_loops_of(walk, addend);
        int own = TL_TENSET_DEPTH, at = i;
        for (int d = TL_TENSET_DEPTH - 1; d >= 0; d--)
            own = loops >> d & 1 ? d : own;
        for (; at > 0 && place[at - 1] > own; at--) {
            addends[at] = addends[at - 1];
            place[at] = place[at - 1];
        }
        addends[at] = addend;
        place[at] = own;
    }
}

static void extract(extractor *x, const tl_expr *e);

static void extract_sum(extractor *x, const tl_expr *e)
{
    const tl_expr *addends[MOST_ADDENDS];
    int count = find_addends(e, addends, 0);
    order_addends(x->walk, addends, count);
    for (int i = 0; i < count; i++) {
        if (addends[i]->kind == TL_EXPR_ADD) /* of more than can be put in order */
            for (int a = 0; a < 2; a++)
                extract(x, addends[i]->args[a]);
        else
            extract(x, addends[i]);
        if (i > 0 && x->met && !x->multiplied) {
            x->added = true;
            x->coefficient = 1;
        }
    }
}

static void extract(extractor *x, const tl_expr *e)
{
    int64_t k;
    if (e->kind == TL_EXPR_ADD) {
        extract_sum(x, e);
        return;
    }
    if (e->kind == TL_EXPR_VAR && e->u.var == x->var) {
        x->met = true;
        x->coefficient = 2;
    }
    for (int i = 0; i < e->arg_count; i++)
        extract(x, e->args[i]);
    if (e->kind == TL_EXPR_MUL && x->met && !x->added &&
        (tl_const_int(e->args[0], &k) || tl_const_int(e->args[1], &k))) {
        x->multiplied = true;
        x->coefficient = (double)k;
    }
}

double tl_tenset_coefficient(const tl_tenset_walk *walk, const tl_expr *e, int loop)
{
    assert(loop >= 0 && loop < walk->depth);
    extractor x = { .walk = walk, .var = walk->loops[loop]->var };
    extract(&x, e);
    return x.met && !x.multiplied && !x.added ? 1 : x.coefficient;
}
