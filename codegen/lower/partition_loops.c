/* codegen/lower/partition_loops.c: loops are cut where their bounds tests become true for good.
 *
 *     for i0 in 0..13                              for i0 in 0..12
 *       for i1 in 0..8 unrolled               ->     for i1 in 0..8 unrolled
 *         if i0*8 + i1 < 100                           C[i0*8 + i1] = ...
 *           C[i0*8 + i1] = ...                     for i1 in 0..8 unrolled
 *                                                    if i1 < 4
 *                                                      C[i1 + 96] = ...
 *
 * A test is a comparison that is affine in the loop's variable; other inner variables count with the worst of their
 * ranges, outer ones and dims as they are. Serial loops fall into a part before, a main part and a part behind; a
 * parallel one stays whole and chooses between bodies, also by p // 12 or p % 12 of its variable, as fused loops have
 * them; tests that fail for good in the body at the edge are settled there, and it is cut again (the parts of a
 * Concat). What a kernel may grow by is bounded. */
#include <assert.h>
#include "codegen/lower/passes.h"
#include "ir/expr/index.h"

#define MAX_TESTS 32
#define MAX_SIZE  3000 /* stores once unrolled, of all parts together */
#define MAX_BOUND \
    200 /* nodes of the places where a loop is cut: they are copied into all that speaks of its variable */

typedef struct {
    tl_arena *arena;
    int64_t size; /* of the kernel so far */
} pass;

/* Stores that a statement becomes when its unrolled loops are written out. */
static int64_t size_of(const tl_stmt *stmt)
{
    int64_t extent = 1, sum = 0;
    switch (stmt->kind) {
    case TL_STMT_LOOP:
        if (stmt->u.loop.kind == TL_LOOP_UNROLLED)
            tl_const_int(stmt->u.loop.extent, &extent);
        else if (stmt->u.loop.kind == TL_LOOP_VECTORIZED &&
                 tl_const_int(stmt->u.loop.extent, &extent))
            extent = (extent + 15) / 16;
        sum = size_of(stmt->u.loop.body);
        return extent > MAX_SIZE || sum > MAX_SIZE ? 2 * MAX_SIZE : extent * sum;
    case TL_STMT_SEQ:
        for (int i = 0; i < stmt->u.seq.count; i++)
            sum += size_of(stmt->u.seq.items[i]);
        return sum > 2 * MAX_SIZE ? 2 * MAX_SIZE : sum;
    case TL_STMT_ALLOC:
        return size_of(stmt->u.alloc.body);
    case TL_STMT_IF:
        return size_of(stmt->u.branch.then) +
               (stmt->u.branch.otherwise == NULL ? 0 : size_of(stmt->u.branch.otherwise));
    case TL_STMT_BLOCK:
    case TL_STMT_BARRIER:
    case TL_STMT_PREFETCH:
    case TL_STMT_STORE:
    case TL_STMT_CALL:
    case TL_STMT_KIND_COUNT:
        break;
    }
    return 1;
}

/* The tests of one loop, and the range of its variable (or of a term of it) where all hold. */
typedef struct {
    tl_arena *arena;
    const tl_var *var;
    bool any_term; /* the first term found decides; false: the variable itself only */
    const tl_expr *term;
    tl_var_set inner;
    int count;
    const tl_expr *tests[MAX_TESTS];
    const tl_expr *low, *high; /* low <= term < high; NULL: the term's own end */
    bool fails;                /* these are tests that fail everywhere, not hold */
} cut;

/* The largest or least value of e over the inner variables, in terms of the others; NULL: unknown. */
static const tl_expr *extreme(const cut *c, const tl_expr *e, bool largest)
{
    tl_linear sum = tl_linear_of(c->arena, e);
    const tl_expr *bound = tl_int(c->arena, sum.constant);
    for (int t = 0; t < sum.count; t++) {
        const tl_expr *term = sum.terms[t];
        if (tl_expr_has_load(term))
            return NULL;
        if (!tl_expr_uses_any(term, &c->inner)) {
            bound = tl_add(c->arena, bound, tl_muli(c->arena, term, sum.coefficients[t]));
            continue;
        }
        tl_range range = tl_expr_range(term);
        int64_t at = (sum.coefficients[t] > 0) == largest ? range.max : range.min;
        if (at == INT64_MAX || at == INT64_MIN)
            return NULL;
        bound = tl_addi(c->arena, bound, sum.coefficients[t] * at);
    }
    return bound;
}

/* The tightest of two bounds. */
static const tl_expr *tighter(tl_arena *arena, const tl_expr *a, const tl_expr *b, bool larger)
{
    return a == NULL ? b : larger ? tl_max(arena, a, b) : tl_min(arena, a, b);
}

/* The one term of e that uses the loop's variable, its coefficient, and the rest. */
static bool take_term(const cut *c, const tl_expr *e, const tl_expr **term, int64_t *coefficient,
                      const tl_expr **rest)
{
    tl_linear sum = tl_linear_of(c->arena, e);
    *term = NULL;
    *rest = tl_int(c->arena, sum.constant);
    for (int t = 0; t < sum.count; t++) {
        const tl_expr *one = sum.terms[t];
        if (!tl_expr_uses_var(one, c->var)) {
            *rest = tl_add(c->arena, *rest, tl_muli(c->arena, one, sum.coefficients[t]));
            continue;
        }
        bool plain = one->kind == TL_EXPR_VAR;
        bool digit = (one->kind == TL_EXPR_FLOORDIV || one->kind == TL_EXPR_FLOORMOD) &&
                     c->any_term && !tl_expr_uses_any(one, &c->inner) && !tl_expr_has_load(one);
        if (*term != NULL || (!plain && !digit))
            return false;
        *term = one;
        *coefficient = sum.coefficients[t];
    }
    return *term != NULL;
}

/* A test as  coefficient*term + rest < 0. */
static bool read_test(const cut *c, const tl_expr *test, const tl_expr **term, int64_t *coefficient,
                      const tl_expr **rest)
{
    const tl_expr *difference = tl_sub(c->arena, test->args[0], test->args[1]);
    if (test->kind == TL_EXPR_LE)
        difference = tl_addi(c->arena, difference, -1);
    return take_term(c, difference, term, coefficient, rest);
}

static void consider(cut *c, const tl_expr *test)
{
    assert(c->count <= MAX_TESTS && test->dtype == TL_BOOL);
    if ((test->kind != TL_EXPR_LT && test->kind != TL_EXPR_LE) || test->args[0]->dtype != TL_I64 ||
        c->count == MAX_TESTS || !tl_expr_uses_var(test, c->var))
        return;
    for (int i = 0; i < c->count; i++)
        if (tl_expr_equal(c->tests[i], test))
            return;
    const tl_expr *rest, *term;
    int64_t coefficient;
    if (!read_test(c, test, &term, &coefficient, &rest) ||
        (c->term != NULL && !tl_expr_equal(term, c->term)))
        return;
    const tl_expr *most = extreme(c, rest, true);
    if (most == NULL)
        return;
    if (coefficient > 0) { /* term <= (-most - 1) // coefficient */
        const tl_expr *last = tl_addi(c->arena, tl_muli(c->arena, most, -1), -1);
        last = tl_floordiv_expr(c->arena, last, tl_int(c->arena, coefficient));
        c->high = tighter(c->arena, c->high, tl_addi(c->arena, last, 1), false);
    } else { /* term > most // -coefficient */
        const tl_expr *before = tl_floordiv_expr(c->arena, most, tl_int(c->arena, -coefficient));
        c->low = tighter(c->arena, c->low, tl_addi(c->arena, before, 1), true);
    }
    c->term = term;
    c->tests[c->count++] = test;
}

static void consider_all(cut *c, const tl_expr *condition)
{
    if (condition->kind == TL_EXPR_AND) {
        consider_all(c, condition->args[0]);
        consider_all(c, condition->args[1]);
    } else {
        consider(c, condition);
    }
}

static bool see_expr(const tl_expr *e, void *context)
{
    if (e->kind == TL_EXPR_SELECT)
        consider_all(context, e->args[0]);
    return true;
}

static bool see_stmt(const tl_stmt *stmt, void *context)
{
    cut *c = context;
    if (stmt->kind == TL_STMT_IF) {
        consider_all(c, stmt->u.branch.condition);
    } else if (stmt->kind == TL_STMT_STORE) {
        tl_expr_visit(stmt->u.store.value, see_expr, c);
        for (int a = 0; a < stmt->u.store.buffer->rank; a++)
            tl_expr_visit(stmt->u.store.indices[a], see_expr, c);
    }
    return true;
}

/* The body where every test of the cut holds, or fails. */
static const tl_expr *settle_test(const cut *c, const tl_expr *condition)
{
    if (condition->kind == TL_EXPR_AND)
        return tl_and(c->arena, settle_test(c, condition->args[0]),
                      settle_test(c, condition->args[1]));
    for (int i = 0; i < c->count; i++)
        if (tl_expr_equal(c->tests[i], condition))
            return tl_bool(c->arena, !c->fails);
    return condition;
}

static const tl_expr *settle_expr(tl_arena *arena, const tl_expr *e, void *context)
{
    const cut *c = context;
    const tl_expr *args[8] = { NULL };
    bool changed = false;
    if (e->arg_count == 0 || e->arg_count > 8)
        return e;
    for (int i = 0; i < e->arg_count; i++) {
        args[i] = settle_expr(arena, e->args[i], context);
        if (e->kind == TL_EXPR_SELECT && i == 0)
            args[i] = settle_test(c, args[i]);
        changed = changed || args[i] != e->args[i];
    }
    if (e->kind == TL_EXPR_SELECT && args[0]->kind == TL_EXPR_INT)
        return args[0]->u.value != 0 ? args[1] : args[2];
    return changed ? tl_expr_with_args(arena, e, args) : e;
}

static const tl_stmt *settle(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    stmt = tl_stmt_map_exprs(arena, stmt, settle_expr, context);
    if (stmt->kind != TL_STMT_IF)
        return stmt;
    const tl_expr *condition = settle_test(context, stmt->u.branch.condition);
    if (condition->kind == TL_EXPR_INT)
        return condition->u.value != 0 ? stmt->u.branch.then : stmt->u.branch.otherwise;
    return condition == stmt->u.branch.condition
               ? stmt
               : tl_stmt_if(arena, condition, stmt->u.branch.then, stmt->u.branch.otherwise);
}

static const tl_stmt *copy_loop(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    (void)context;
    if (stmt->kind == TL_STMT_ALLOC) {
        const tl_buffer *old = stmt->u.alloc.buffer;
        tl_buffer *fresh = tl_buffer_make(arena, old->name, old->dtype, old->role, old->scope,
                                          old->rank, old->shape);
        fresh->strides = old->strides;
        return tl_stmt_alloc(arena, fresh,
                             tl_stmt_replace_buffer(arena, stmt->u.alloc.body, old, fresh));
    }
    if (stmt->kind != TL_STMT_LOOP)
        return stmt;
    const tl_var *old = stmt->u.loop.var;
    const tl_var *fresh = tl_var_make(arena, old->name, old->min, old->max);
    tl_binding binding = { old, tl_ref(arena, fresh) };
    const tl_stmt *loop = tl_stmt_loop(arena, fresh, stmt->u.loop.extent, stmt->u.loop.kind,
                                       tl_stmt_substitute(arena, stmt->u.loop.body, &binding, 1));
    return loop;
}

static const tl_stmt *partition(pass *p, const tl_stmt *stmt);

/* The body with loop variables and buffers of its own, for iterations begin .. begin+extent-1. */
static const tl_stmt *part(pass *p, const tl_stmt *loop, const tl_stmt *body, const tl_expr *begin,
                           const tl_expr *extent)
{
    assert(loop->kind == TL_STMT_LOOP);
    tl_arena *arena = p->arena;
    const tl_var *old = loop->u.loop.var;
    tl_range range = tl_expr_range(extent);
    if (range.max <= 0)
        return NULL;
    if (body == NULL)
        return NULL;
    body = tl_stmt_rewrite(arena, body, copy_loop, NULL);
    if (tl_is_int(extent, 1)) {
        tl_binding binding = { old, begin };
        return partition(p, tl_stmt_substitute(arena, body, &binding, 1));
    }
    int64_t most = range.max - 1 < old->max ? range.max - 1 : old->max;
    const tl_var *fresh = tl_var_make(arena, old->name, 0, most);
    tl_binding binding = { old, tl_add(arena, begin, tl_ref(arena, fresh)) };
    body = partition(p, tl_stmt_substitute(arena, body, &binding, 1));
    return body == NULL ? NULL : tl_stmt_loop(arena, fresh, extent, loop->u.loop.kind, body);
}

/* What the tests in `body` say; false when nothing is to be gained, or the kernel would grow too much. */
static bool find_cut(pass *p, const tl_stmt *body, const tl_expr *begin, const tl_expr *end, cut *c)
{
    tl_arena *arena = p->arena;
    c->inner = tl_stmt_loop_vars(arena, body);
    tl_stmt_visit(body, see_stmt, c);
    if (c->count == 0)
        return false;
    if (c->term->kind != TL_EXPR_VAR) {
        tl_range range = tl_expr_range(c->term);
        begin = tl_int(arena, range.min);
        end = tl_int(arena, range.max + 1);
    }
    c->low = c->low == NULL ? begin : tl_min(arena, tl_max(arena, c->low, begin), end);
    c->high = c->high == NULL ? end : tl_max(arena, tl_min(arena, c->high, end), c->low);
    bool before = !tl_expr_equal(c->low, begin), behind = !tl_expr_equal(c->high, end);
    int64_t growth = size_of(body) * ((before ? 1 : 0) + (behind ? 1 : 0));
    if (c->low->size + c->high->size > MAX_BOUND)
        return false;
    if ((!before && !behind) || tl_expr_range(tl_sub(arena, c->high, c->low)).max <= 0 ||
        p->size + growth > MAX_SIZE)
        return false;
    p->size += growth;
    return true;
}

typedef struct {
    const tl_expr *term, *value;
} fixing;

static const tl_expr *fix_expr(tl_arena *arena, const tl_expr *e, void *context)
{
    const fixing *f = context;
    const tl_expr *args[8] = { NULL };
    bool changed = false;
    if (tl_expr_equal(e, f->term))
        return f->value;
    if (e->arg_count == 0 || e->arg_count > 8)
        return e;
    for (int i = 0; i < e->arg_count; i++) {
        args[i] = fix_expr(arena, e->args[i], context);
        changed = changed || args[i] != e->args[i];
    }
    return changed ? tl_expr_with_args(arena, e, args) : e;
}

static const tl_stmt *fix_stmt(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    return tl_stmt_map_exprs(arena, stmt, fix_expr, context);
}

/* Those tests of the cut that fail wherever the term is outside, on its one side that there is. */
static cut find_failing(const cut *c, bool before)
{
    cut out = *c;
    out.fails = true;
    out.count = 0;
    for (int i = 0; i < c->count; i++) {
        const tl_expr *term, *rest;
        int64_t coefficient;
        if (!read_test(c, c->tests[i], &term, &coefficient, &rest) || (coefficient < 0) != before)
            continue;
        /* the term is at least `high`, or below `low` */
        const tl_expr *end = before ? tl_addi(c->arena, c->low, -1) : c->high;
        const tl_expr *least = extreme(c, rest, false);
        if (least != NULL &&
            tl_expr_range(tl_add(c->arena, tl_muli(c->arena, end, coefficient), least)).min >= 0)
            out.tests[out.count++] = c->tests[i];
    }
    return out;
}

/* The body of a parallel loop, choosing by one term after the other. */
static const tl_stmt *divide_parallel(pass *p, const tl_stmt *loop, const tl_stmt *body)
{
    assert(loop->kind == TL_STMT_LOOP);
    tl_arena *arena = p->arena;
    const tl_expr *begin = tl_int(arena, 0), *end = loop->u.loop.extent, *where = NULL;
    cut c = { .arena = arena, .var = loop->u.loop.var, .any_term = true };
    if (!find_cut(p, body, begin, end, &c))
        return partition(p, body);
    if (c.term->kind != TL_EXPR_VAR) {
        tl_range range = tl_expr_range(c.term);
        begin = tl_int(arena, range.min);
        end = tl_int(arena, range.max + 1);
    }
    const tl_stmt *clean = tl_stmt_rewrite(arena, body, settle, &c);
    bool before = !tl_expr_equal(c.low, begin), behind = !tl_expr_equal(c.high, end);
    cut failing = { 0 };
    if (before != behind)
        failing = find_failing(&c, before);
    const tl_stmt *edge = failing.count > 0 ? tl_stmt_rewrite(arena, body, settle, &failing) : body;
    if (edge != NULL)
        edge = tl_stmt_rewrite(arena, edge, copy_loop, NULL);
    if (before)
        where = tl_le(arena, c.low, c.term);
    if (behind)
        where = tl_and(arena, where, tl_lt(arena, c.term, c.high));
    /* a single value at the edge is known there */
    fixing f = { c.term, NULL };
    if (!before && tl_is_int(tl_sub(arena, end, c.high), 1))
        f.value = c.high;
    if (!behind && tl_is_int(tl_sub(arena, c.low, begin), 1))
        f.value = begin;
    if (f.value != NULL && edge != NULL)
        edge = tl_stmt_rewrite(arena, edge, fix_stmt, &f);
    clean = clean == NULL ? NULL : divide_parallel(p, loop, clean);
    if (edge != NULL)
        edge = f.value != NULL || failing.count > 0 ? divide_parallel(p, loop, edge)
                                                    : partition(p, edge);
    if (clean == NULL)
        return edge;
    return tl_stmt_if(arena, where, clean, edge);
}

static const tl_stmt *divide_serial(pass *p, const tl_stmt *loop)
{
    assert(loop->kind == TL_STMT_LOOP);
    tl_arena *arena = p->arena;
    const tl_expr *zero = tl_int(arena, 0), *extent = loop->u.loop.extent;
    const tl_stmt *body = loop->u.loop.body;
    cut c = { .arena = arena, .var = loop->u.loop.var };
    if (tl_expr_range(extent).max <= 1 || !find_cut(p, body, zero, extent, &c))
        return tl_stmt_with_body(arena, loop, partition(p, body));
    const tl_stmt *clean = tl_stmt_rewrite(arena, body, settle, &c);
    const tl_stmt *parts[3] = { part(p, loop, body, zero, c.low),
                                clean == NULL
                                    ? NULL
                                    : part(p, loop, clean, c.low, tl_sub(arena, c.high, c.low)),
                                part(p, loop, body, c.high, tl_sub(arena, extent, c.high)) };
    return tl_stmt_seq(arena, parts, 3);
}

/* Outermost first: what an outer cut settles needs no inner one in its main part. */
static const tl_stmt *partition(pass *p, const tl_stmt *stmt)
{
    tl_arena *arena = p->arena;
    if (stmt == NULL)
        return NULL;
    if (stmt->kind == TL_STMT_SEQ) {
        const tl_stmt **items = TL_NEW_ARRAY(arena, const tl_stmt *, stmt->u.seq.count);
        bool changed = false;
        for (int i = 0; i < stmt->u.seq.count; i++) {
            items[i] = partition(p, stmt->u.seq.items[i]);
            changed = changed || items[i] != stmt->u.seq.items[i];
        }
        return changed ? tl_stmt_seq(arena, items, stmt->u.seq.count) : stmt;
    }
    if (stmt->kind == TL_STMT_ALLOC)
        return tl_stmt_with_body(arena, stmt, partition(p, stmt->u.alloc.body));
    if (stmt->kind == TL_STMT_IF)
        return tl_stmt_if(arena, stmt->u.branch.condition, partition(p, stmt->u.branch.then),
                          stmt->u.branch.otherwise == NULL
                              ? NULL
                              : partition(p, stmt->u.branch.otherwise));
    if (stmt->kind != TL_STMT_LOOP || stmt->u.loop.kind == TL_LOOP_VECTORIZED)
        return stmt;
    if (stmt->u.loop.kind == TL_LOOP_SERIAL)
        return divide_serial(p, stmt);
    if (stmt->u.loop.kind == TL_LOOP_PARALLEL)
        return tl_stmt_with_body(arena, stmt, divide_parallel(p, stmt, stmt->u.loop.body));
    return tl_stmt_with_body(arena, stmt, partition(p, stmt->u.loop.body));
}

tl_status tl_partition_loops(tl_lowered_kernel *kernel, tl_diag *diag)
{
    (void)diag;
    pass p = { kernel->arena, size_of(kernel->body) };
    kernel->body = partition(&p, kernel->body);
    return TL_OK;
}
