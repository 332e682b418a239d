/* codegen/lower/widen_reductions.c: a vectorized loop that reduces keeps a partial result in every lane.
 *
 *     for k0                                     alloc lanes: f32[32] register
 *       for k1 in 0..64 vectorized               for v in 0..32 vectorized: lanes[v] = 0
 *         C[i] = C[i] + A[i, k0*64 + k1]         for k0
 *                                          ->      for k1 in 0..64 vectorized
 *                                                    lanes[k1 % 32] = lanes[k1 % 32] + A[i, k0*64 + k1]
 *                                                for v in 0..16 vectorized: lanes[v] = lanes[v] + lanes[v + 16]
 *                                                for v in 0..16 vectorized: C[i] = C[i] + lanes[v]
 *
 * Requires  that nothing else in the outermost loop touches C, and that of the loops' variables only unrolled ones
 *           are in C's index (each value of those gets lanes of its own).
 * Keeps     which elements of C are touched, by which thread: the tests on the way that do not speak of the reduction
 *           guard the last loop, too. One that speaks of it and of other loops has no place there: nothing is done.
 * Changes   the order of a float reduction: the schedule asked for that by vectorizing it. */
#include <assert.h>
#include "codegen/lower/passes.h"

#define MAX_UNROLLED  8
#define MAX_CHAINS    4  /* vectors of partial results: as many as hide an addition's latency */
#define MAX_REGISTERS 16 /* vectors for all of them */

typedef struct {
    tl_arena *arena;
    const tl_target *target;
} pass;

/* The way from a loop down to a reducing store, as found. */
typedef struct {
    const pass *p;
    const tl_stmt *outer; /* the loop we start from */
    tl_var_set fixed;     /* serial variables on the way: not in the index */
    int unrolled_count;
    const tl_stmt *unrolled[MAX_UNROLLED];
    const tl_stmt *vectorized, *store;
    /* of the tests on the way what does not speak of `fixed`; NULL: nothing */
    const tl_expr *guard;
    bool has_mixed_test; /* one speaks of `fixed` and of other loops, or of data */
} way;

static bool find_other_var(const tl_expr *e, void *context)
{
    way *w = context;
    w->has_mixed_test |= e->kind == TL_EXPR_LOAD || (e->kind == TL_EXPR_VAR && !e->u.var->is_dim &&
                                                     !tl_var_set_has(&w->fixed, e->u.var));
    return !w->has_mixed_test;
}

static void add_guard(way *w, const tl_expr *condition)
{
    if (condition->kind == TL_EXPR_AND) {
        add_guard(w, condition->args[0]);
        add_guard(w, condition->args[1]);
    } else if (tl_expr_uses_any(condition, &w->fixed) || tl_expr_has_load(condition)) {
        tl_expr_visit(condition, find_other_var, w);
    } else {
        w->guard = tl_and(w->p->arena, w->guard, condition);
    }
}

/* The combiner when the store is C = C op rest, and `rest`. */
static tl_combiner combiner_of(const tl_store *s, const tl_expr **rest)
{
    const tl_expr *v = s->value;
    if (v->arg_count != 2)
        return TL_COMBINER_NONE;
    int at = tl_is_own_element(v->args[0], s) ? 0 : tl_is_own_element(v->args[1], s) ? 1 : -1;
    if (at < 0)
        return TL_COMBINER_NONE;
    *rest = v->args[1 - at];
    switch (v->kind) {
    case TL_EXPR_ADD:
        return TL_COMBINER_SUM;
    case TL_EXPR_MUL:
        return TL_COMBINER_PROD;
    case TL_EXPR_MIN:
        return TL_COMBINER_MIN;
    case TL_EXPR_MAX:
        return TL_COMBINER_MAX;
    case TL_EXPR_AND:
        return TL_COMBINER_ALL;
    case TL_EXPR_OR:
        return TL_COMBINER_ANY;
    case TL_EXPR_INT:
    case TL_EXPR_FLOAT:
    case TL_EXPR_VAR:
    case TL_EXPR_LOAD:
    case TL_EXPR_SUB:
    case TL_EXPR_DIV:
    case TL_EXPR_FLOORDIV:
    case TL_EXPR_FLOORMOD:
    case TL_EXPR_LT:
    case TL_EXPR_LE:
    case TL_EXPR_EQ:
    case TL_EXPR_NE:
    case TL_EXPR_NOT:
    case TL_EXPR_SELECT:
    case TL_EXPR_CAST:
    case TL_EXPR_BITS:
    case TL_EXPR_CALL:
    case TL_EXPR_KIND_COUNT:
        break;
    }
    return TL_COMBINER_NONE;
}

static const tl_stmt *drop(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    (void)arena;
    return stmt == context ? NULL : stmt;
}

static bool alone(const way *w)
{
    const tl_buffer *buffer = w->store->u.store.buffer;
    const tl_stmt *rest = tl_stmt_rewrite(w->p->arena, w->outer, drop, (void *)(uintptr_t)w->store);
    return rest == NULL || !tl_stmt_touches(rest, buffer);
}

typedef struct {
    const tl_buffer *buffer;
    bool found;
} load_walk;

static bool find_load(const tl_expr *e, void *context)
{
    load_walk *walk = context;
    if (e->kind == TL_EXPR_LOAD && e->u.buffer == walk->buffer)
        walk->found = true;
    return !walk->found;
}

static bool qualifies(const way *w)
{
    int64_t extent = 0;
    tl_const_int(w->vectorized->u.loop.extent, &extent);
    if (w->outer == w->vectorized && extent <= tl_vector_lanes(w->vectorized, w->p->target))
        return false; /* one vector, joined where it is stored */
    const tl_store *s = &w->store->u.store;
    const tl_expr *rest;
    tl_dtype dtype = s->buffer->dtype;
    if (combiner_of(s, &rest) == TL_COMBINER_NONE || dtype == TL_F16 || dtype == TL_BF16)
        return false;
    load_walk walk = { s->buffer, false };
    tl_expr_visit(rest, find_load, &walk);
    for (int a = 0; a < s->buffer->rank; a++)
        if (tl_expr_uses_any(s->indices[a], &w->fixed) || tl_expr_has_load(s->indices[a]))
            return false;
    return !walk.found && !w->has_mixed_test && alone(w);
}

static bool descend(way *w, const tl_stmt *stmt)
{
    int64_t extent;
    way saved = *w;
    bool found = false;
    switch (stmt->kind) {
    case TL_STMT_LOOP:
        if (!tl_const_int(stmt->u.loop.extent, &extent))
            extent = -1;
        if (stmt->u.loop.kind == TL_LOOP_UNROLLED && extent > 0 && w->unrolled_count < MAX_UNROLLED)
            w->unrolled[w->unrolled_count++] = stmt;
        else if (stmt->u.loop.kind == TL_LOOP_VECTORIZED && extent > 1 && w->vectorized == NULL)
            w->vectorized = stmt;
        else if (stmt->u.loop.kind != TL_LOOP_SERIAL)
            return false;
        if (stmt->u.loop.kind != TL_LOOP_UNROLLED)
            tl_var_set_add(w->p->arena, &w->fixed, stmt->u.loop.var);
        found = descend(w, stmt->u.loop.body);
        break;
    case TL_STMT_SEQ:
        for (int i = 0; i < stmt->u.seq.count && !found; i++)
            found = descend(w, stmt->u.seq.items[i]);
        break;
    case TL_STMT_IF:
        add_guard(w, stmt->u.branch.condition);
        found = descend(w, stmt->u.branch.then);
        if (!found && stmt->u.branch.otherwise != NULL) {
            *w = saved;
            add_guard(w, tl_not(w->p->arena, stmt->u.branch.condition));
            found = descend(w, stmt->u.branch.otherwise);
        }
        break;
    case TL_STMT_ALLOC:
        found = descend(w, stmt->u.alloc.body);
        break;
    case TL_STMT_STORE:
        if (w->vectorized == NULL)
            return false;
        w->store = stmt;
        found = qualifies(w);
        break;
    case TL_STMT_BLOCK:
    case TL_STMT_BARRIER:
    case TL_STMT_PREFETCH:
    case TL_STMT_CALL:
    case TL_STMT_KIND_COUNT:
        break;
    }
    if (!found)
        *w = saved;
    return found;
}

/* lanes[u..., v] */
typedef struct {
    const tl_buffer *buffer;
    int unrolled_count;
    const tl_stmt *const *unrolled;
} partials;

static const tl_expr *const *partial_index(tl_arena *arena, const partials *p, const tl_expr *lane)
{
    const tl_expr **indices = TL_NEW_ARRAY(arena, const tl_expr *, p->unrolled_count + 1);
    for (int u = 0; u < p->unrolled_count; u++)
        indices[u] = tl_ref(arena, p->unrolled[u]->u.loop.var);
    indices[p->unrolled_count] = lane;
    return indices;
}

/* The statement for every lane and every value of the unrolled variables, with variables of its own. */
static const tl_stmt *over_lanes(tl_arena *arena, const partials *p, const tl_var *lane,
                                 int64_t lanes, const tl_stmt *body)
{
    assert(lanes > 0);
    const tl_stmt *nest = tl_stmt_loop(arena, lane, tl_int(arena, lanes), TL_LOOP_VECTORIZED, body);
    for (int u = p->unrolled_count - 1; u >= 0; u--) {
        const tl_var *old = p->unrolled[u]->u.loop.var;
        const tl_var *fresh = tl_var_make(arena, old->name, old->min, old->max);
        tl_binding binding = { old, tl_ref(arena, fresh) };
        nest = tl_stmt_loop(arena, fresh, p->unrolled[u]->u.loop.extent, TL_LOOP_UNROLLED,
                            tl_stmt_substitute(arena, nest, &binding, 1));
    }
    return nest;
}

typedef struct {
    const tl_stmt *from, *to;
} swap;

static const tl_stmt *swap_store(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    const swap *s = context;
    (void)arena;
    return stmt == s->from ? s->to : stmt;
}

static const tl_stmt *rewrite(const pass *ps, const way *w)
{
    assert(w->store->kind == TL_STMT_STORE);
    tl_arena *arena = ps->arena;
    const tl_store *s = &w->store->u.store;
    const tl_expr *rest;
    tl_combiner combiner = combiner_of(s, &rest);
    int64_t extent = 1, lanes = tl_vector_lanes(w->vectorized, ps->target), copies = 1, width;
    tl_const_int(w->vectorized->u.loop.extent, &extent);
    if (extent < lanes)
        lanes = tl_rest_lanes(ps->target, extent);
    partials p = { NULL, w->unrolled_count, w->unrolled };
    const tl_expr **shape = TL_NEW_ARRAY(arena, const tl_expr *, p.unrolled_count + 1);
    for (int u = 0; u < p.unrolled_count; u++) {
        int64_t count = 1;
        shape[u] = p.unrolled[u]->u.loop.extent;
        tl_const_int(shape[u], &count);
        copies = copies > MAX_REGISTERS ? copies : copies * count;
    }
    width = lanes;
    while (2 * width <= extent && 2 * width <= MAX_CHAINS * lanes &&
           copies * (2 * width / lanes) <= MAX_REGISTERS)
        width *= 2;
    if (copies * (width / lanes) > 2 * MAX_REGISTERS)
        return NULL;
    shape[p.unrolled_count] = tl_int(arena, width);
    p.buffer = tl_buffer_make(arena, "lanes", s->buffer->dtype, TL_ROLE_LOCAL, TL_SCOPE_REGISTER,
                              p.unrolled_count + 1, shape);

    const tl_stmt *items[8];
    int count = 0;
    const tl_var *v = tl_var_make(arena, "v", 0, width - 1);
    const tl_expr *identity = tl_combiner_identity(arena, combiner, s->buffer->dtype, 0);
    items[count++] =
        over_lanes(arena, &p, v, width,
                   tl_stmt_store(arena, p.buffer, partial_index(arena, &p, tl_ref(arena, v)),
                                 identity));

    const tl_expr *lane =
        tl_floormod_expr(arena, tl_ref(arena, w->vectorized->u.loop.var), tl_int(arena, width));
    const tl_expr *const *at = partial_index(arena, &p, lane);
    swap change = { w->store, tl_stmt_store(arena, p.buffer, at,
                                            tl_binary(arena, s->value->kind,
                                                      tl_load(arena, p.buffer, at), rest)) };
    items[count++] = tl_stmt_rewrite(arena, w->outer, swap_store, &change);

    for (; width > lanes; width /= 2) { /* halves onto each other, then the lanes of one vector */
        const tl_var *h = tl_var_make(arena, "v", 0, width / 2 - 1);
        const tl_expr *const *low = partial_index(arena, &p, tl_ref(arena, h));
        const tl_expr *const *high =
            partial_index(arena, &p, tl_addi(arena, tl_ref(arena, h), width / 2));
        const tl_expr *sum = tl_binary(arena, s->value->kind, tl_load(arena, p.buffer, low),
                                       tl_load(arena, p.buffer, high));
        items[count++] =
            over_lanes(arena, &p, h, width / 2, tl_stmt_store(arena, p.buffer, low, sum));
    }
    const tl_var *l = tl_var_make(arena, "v", 0, lanes - 1);
    const tl_expr *partial = tl_load(arena, p.buffer, partial_index(arena, &p, tl_ref(arena, l)));
    const tl_expr *joined =
        tl_binary(arena, s->value->kind, tl_load(arena, s->buffer, s->indices), partial);
    const tl_stmt *join = tl_stmt_store(arena, s->buffer, s->indices, joined);
    if (w->guard != NULL)
        join = tl_stmt_if(arena, w->guard, join, NULL);
    items[count++] = over_lanes(arena, &p, l, lanes, join);
    return tl_stmt_alloc(arena, p.buffer, tl_stmt_seq(arena, items, count));
}

/* Top down, so that the outermost loop that can have the partial results gets them. */
static const tl_stmt *widen(const pass *p, const tl_stmt *stmt)
{
    if (stmt->kind == TL_STMT_SEQ) {
        const tl_stmt **items = TL_NEW_ARRAY(p->arena, const tl_stmt *, stmt->u.seq.count);
        bool changed = false;
        for (int i = 0; i < stmt->u.seq.count; i++) {
            items[i] = widen(p, stmt->u.seq.items[i]);
            changed = changed || items[i] != stmt->u.seq.items[i];
        }
        return changed ? tl_stmt_seq(p->arena, items, stmt->u.seq.count) : stmt;
    }
    if (stmt->kind == TL_STMT_ALLOC)
        return tl_stmt_with_body(p->arena, stmt, widen(p, stmt->u.alloc.body));
    if (stmt->kind == TL_STMT_IF)
        return tl_stmt_if(p->arena, stmt->u.branch.condition, widen(p, stmt->u.branch.then),
                          stmt->u.branch.otherwise == NULL ? NULL
                                                           : widen(p, stmt->u.branch.otherwise));
    if (stmt->kind != TL_STMT_LOOP)
        return stmt;
    way w = { .p = p, .outer = stmt };
    if ((stmt->u.loop.kind == TL_LOOP_SERIAL || stmt->u.loop.kind == TL_LOOP_VECTORIZED) &&
        descend(&w, stmt)) {
        const tl_stmt *wide = rewrite(p, &w);
        if (wide != NULL)
            return widen(p, wide); /* further reductions in the same loops */
    }
    return tl_stmt_with_body(p->arena, stmt, widen(p, stmt->u.loop.body));
}

tl_status tl_widen_reductions(tl_lowered_kernel *kernel, tl_diag *diag)
{
    (void)diag;
    pass p = { kernel->arena, kernel->target };
    kernel->body = widen(&p, kernel->body);
    return TL_OK;
}
