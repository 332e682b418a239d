/* codegen/lower/relax_guards.c: a register tile that a dim cuts off is computed whole, and cut off where it is written to memory.
 *
 *     alloc acc: f32[6, 64] register               alloc acc: f32[6, 64] register
 *     for i in 0..6 unrolled                       if n//6*6 < n and n//64*64 < n
 *       for j in 0..64 vectorized                    for i in 0..6 unrolled
 *         if n//6*6 + i < n and n//64*64 + j < n       for j in 0..64 vectorized
 *           acc[i, j] = 0.0                              acc[i, j] = 0.0
 *     for k in 0..K                           ->     for k in 0..K
 *       for i, j: if (the same)                        for i, j
 *         acc[i, j] = acc[i, j] +                        acc[i, j] = acc[i, j] +
 *             A[n//6*6 + i, k]*P[n//64, k, j]                A[min(n//6*6 + i, n - 1), k]*P[n//64, k, j]
 *     for i, j: if (the same)                      for i, j: if (the same)
 *       C[n//6*6 + i, n//64*64 + j] = acc[i, j]      C[n//6*6 + i, n//64*64 + j] = acc[i, j]
 *
 * Tests inside of the innermost loop keep a tile out of registers: what is loaded under one test is loaded again under the next.
 * Where a constant cuts a tile off, schedules and partition_loops see to it; this is for tests that only a run decides.
 *
 * Requires  that all stores to the tile have one test, which is about the element's indices: an element is written by all of
 *           them or by none, so that what is in the others now is what nobody reads. The test holds for the first element if
 *           for any. Loads that go along with the tile's rows are clamped into their buffer; along its lanes they are inside
 *           of it anyway (padding of a copy, which may hold any number).
 *
 * Where a run has few rows, one or two tokens of a text, most of such a tile is thrown away: a tile of two rows stands beside
 * it, for when there is no third.
 *
 *     if n//6*6 + 2 < n
 *       alloc acc: f32[6, 64] register ..., as above
 *     else
 *       alloc acc: f32[2, 64] register
 *       for i in 0..2 unrolled ... */
#include "codegen/lower/passes.h"
#include "ir/expr/index.h"

enum {
    MOST_RANK = 16,
    MOST_LOOPS = 16,
    FEW_ROWS = 2,   /* of the smaller tile */
    LEAST_ROWS = 4, /* of one that has a smaller one beside it */
};

typedef struct {
    tl_arena *arena;
    const tl_buffer *tile;
    tl_var_set inner, lanes;            /* variables of the loops inside; of the vectorized ones */
    const tl_expr *elements[MOST_RANK]; /* what stands for the element's indices in `test` */
    const tl_expr *test;  /* that of all stores, over `elements`; NULL: none was seen yet */
    const tl_expr *first; /* the test of the tile's first element */
    bool fails;
} relaxation;

static bool is_of_dim(const tl_expr *e, void *context)
{
    bool *found = context;
    *found |= e->kind == TL_EXPR_VAR && e->u.var->is_dim;
    return !*found;
}

static bool add_lane(const tl_stmt *stmt, void *context)
{
    relaxation *r = context;
    if (stmt->kind == TL_STMT_LOOP && stmt->u.loop.kind == TL_LOOP_VECTORIZED)
        tl_var_set_add(r->arena, &r->lanes, stmt->u.loop.var);
    return true;
}

/* Whether each comparison is one of sums that grow with the variable: what holds for it holds for 0. */
static bool holds_first(tl_arena *arena, const tl_expr *test, const tl_var *var)
{
    int64_t coefficient;
    const tl_expr *rest;
    if (test->kind == TL_EXPR_AND)
        return holds_first(arena, test->args[0], var) && holds_first(arena, test->args[1], var);
    if ((test->kind != TL_EXPR_LT && test->kind != TL_EXPR_LE) || test->args[0]->dtype != TL_I64)
        return false;
    const tl_expr *difference = tl_sub(arena, test->args[0], test->args[1]);
    return !tl_expr_uses_var(difference, var) ||
           (tl_affine_in(arena, difference, var, &coefficient, &rest) && coefficient >= 0);
}

/* The test over `elements`, and that of the first one, in the place of the loops' variables. False: it is about something
 * else. */
static bool over_elements(const relaxation *r, const tl_expr *test, const tl_store *store,
                          const tl_expr **out, const tl_expr **first)
{
    tl_binding elements[MOST_LOOPS], zeros[MOST_LOOPS];
    int count = 0;
    for (int i = 0; i < r->inner.count; i++) {
        const tl_var *var = r->inner.vars[i];
        if (!tl_expr_uses_var(test, var))
            continue;
        int axis = 0;
        while (axis < r->tile->rank &&
               !(store->indices[axis]->kind == TL_EXPR_VAR && store->indices[axis]->u.var == var))
            axis++;
        if (axis == r->tile->rank || count == MOST_LOOPS || !holds_first(r->arena, test, var))
            return false;
        elements[count] = (tl_binding){ var, r->elements[axis] };
        zeros[count++] = (tl_binding){ var, tl_int(r->arena, 0) };
    }
    *out = tl_substitute(r->arena, test, elements, count);
    *first = tl_substitute(r->arena, test, zeros, count);
    return count > 0;
}

/* ---- loads ---- */

/* Whether the index stays in the buffer whatever the variables of the test are. */
static bool stays(tl_arena *arena, const tl_expr *index, const tl_expr *extent)
{
    return tl_expr_range(index).min >= 0 && tl_prove_lt(arena, index, extent);
}

/* The variables of loops inside that the test is about. */
static tl_var_set tested(const relaxation *r, const tl_expr *test)
{
    tl_var_set out = { 0 };
    for (int i = 0; i < r->inner.count; i++)
        if (tl_expr_uses_var(test, r->inner.vars[i]))
            tl_var_set_add(r->arena, &out, r->inner.vars[i]);
    return out;
}

typedef struct {
    relaxation *r;
    tl_var_set tested;
} load_walk;

static const tl_expr *clamp_load(tl_arena *arena, const tl_expr *e, void *context)
{
    load_walk *w = context;
    if (e->kind != TL_EXPR_LOAD || e->u.buffer == w->r->tile)
        return NULL;
    const tl_buffer *b = e->u.buffer;
    const tl_expr **args = TL_NEW_ARRAY(arena, const tl_expr *, b->rank);
    for (int a = 0; a < b->rank; a++) {
        args[a] = e->args[a];
        if (tl_expr_has_load(args[a]))
            w->r->fails = true;
        if (w->r->fails || !tl_expr_uses_any(args[a], &w->tested) ||
            stays(arena, args[a], b->shape[a]))
            continue;
        if (tl_expr_uses_any(args[a], &w->r->lanes) || tl_expr_range(args[a]).min < 0)
            w->r->fails = true;
        else
            args[a] = tl_min(arena, args[a], tl_addi(arena, b->shape[a], -1));
    }
    return tl_load(arena, b, args);
}

/* ---- stores ---- */

static bool is_tested_store(const relaxation *r, const tl_stmt *stmt)
{
    return stmt->kind == TL_STMT_IF && stmt->u.branch.otherwise == NULL &&
           stmt->u.branch.then->kind == TL_STMT_STORE &&
           stmt->u.branch.then->u.store.buffer == r->tile;
}

static bool see_store(const tl_stmt *stmt, void *context)
{
    relaxation *r = context;
    const tl_expr *test, *first;
    bool varies = false;
    if (stmt->kind == TL_STMT_CALL || stmt->kind == TL_STMT_ALLOC ||
        (stmt->kind == TL_STMT_STORE && stmt->u.store.buffer == r->tile))
        r->fails = true; /* a store without a test */
    if (r->fails || !is_tested_store(r, stmt))
        return !r->fails;
    const tl_expr *condition = stmt->u.branch.condition;
    tl_expr_visit(condition, is_of_dim, &varies);
    if (!varies || tl_expr_has_load(condition) ||
        !over_elements(r, condition, &stmt->u.branch.then->u.store, &test, &first) ||
        (r->test != NULL && !tl_expr_equal(r->test, test))) {
        r->fails = true;
        return false;
    }
    r->test = test;
    r->first = first;
    load_walk loads = { r, tested(r, condition) };
    (void)tl_expr_rewrite(r->arena, stmt->u.branch.then->u.store.value, clamp_load, &loads);
    return false;
}

static const tl_stmt *relax_store(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    relaxation *r = context;
    if (!is_tested_store(r, stmt))
        return stmt;
    load_walk loads = { r, tested(r, stmt->u.branch.condition) };
    const tl_store *store = &stmt->u.branch.then->u.store;
    return tl_stmt_store(arena, store->buffer, store->indices,
                         tl_expr_rewrite(arena, store->value, clamp_load, &loads));
}

typedef struct {
    const tl_buffer *tile;
    bool tile_written, others_written;
} writes;

static bool see_write(const tl_stmt *stmt, void *context)
{
    writes *w = context;
    if (stmt->kind == TL_STMT_STORE && stmt->u.store.buffer == w->tile)
        w->tile_written = true;
    else if (stmt->kind == TL_STMT_STORE || stmt->kind == TL_STMT_CALL ||
             stmt->kind == TL_STMT_BARRIER)
        w->others_written = true;
    return true;
}

/* The parts of the alloc's body that make the tile, each under the test of its first element. NULL: a part makes something else,
 * too. */
static const tl_stmt *relax_parts(relaxation *r, const tl_stmt *body)
{
    writes w = { .tile = r->tile };
    if (body->kind == TL_STMT_SEQ) {
        const tl_stmt **items = TL_NEW_ARRAY(r->arena, const tl_stmt *, body->u.seq.count);
        for (int i = 0; i < body->u.seq.count; i++) {
            items[i] = relax_parts(r, body->u.seq.items[i]);
            if (items[i] == NULL)
                return NULL;
        }
        return tl_stmt_seq(r->arena, items, body->u.seq.count);
    }
    tl_stmt_visit(body, see_write, &w);
    if (!w.tile_written)
        return body;
    if (w.others_written)
        return NULL;
    return tl_stmt_if(r->arena, r->first, tl_stmt_rewrite(r->arena, body, relax_store, r), NULL);
}

/* ---- few rows ---- */

/* The axis of a tile along which it becomes shorter. */
typedef struct {
    const relaxation *r;
    int axis;
    tl_var_set rows; /* the variables that go along it */
    /* The test of element FEW_ROWS of it, and of the first one along the others. */
    const tl_expr *few;
    bool fails;
} shortening;

static bool see_row(const tl_expr *const *indices, void *context)
{
    shortening *s = context;
    const tl_expr *index = indices[s->axis];
    if (index->kind != TL_EXPR_VAR || tl_var_set_has(&s->r->lanes, index->u.var))
        s->fails = true;
    else if (!tl_var_set_has(&s->rows, index->u.var))
        tl_var_set_add(s->r->arena, &s->rows, index->u.var);
    return !s->fails;
}

/* Whether nothing is done for the rows from FEW_ROWS on when the test of that one fails. */
static bool is_about_few(const shortening *s, const tl_expr *condition)
{
    tl_arena *arena = s->r->arena;
    tl_binding at[MOST_LOOPS];
    int count = 0;
    for (int i = 0; i < s->r->inner.count; i++) {
        const tl_var *var = s->r->inner.vars[i];
        if (!tl_expr_uses_var(condition, var))
            continue;
        if (count == MOST_LOOPS || !holds_first(arena, condition, var))
            return false;
        at[count++] =
            (tl_binding){ var, tl_int(arena, tl_var_set_has(&s->rows, var) ? FEW_ROWS : 0) };
    }
    return tl_expr_equal(tl_substitute(arena, condition, at, count), s->few);
}

static bool check_rows(const tl_stmt *stmt, void *context)
{
    shortening *s = context;
    int64_t extent, whole;
    if (stmt->kind == TL_STMT_IF && is_about_few(s, stmt->u.branch.condition))
        return false;
    if (stmt->kind == TL_STMT_STORE && stmt->u.store.buffer != s->r->tile)
        for (int a = 0; a < stmt->u.store.buffer->rank; a++)
            s->fails |= tl_expr_uses_any(stmt->u.store.indices[a], &s->rows);
    if (stmt->kind == TL_STMT_LOOP && tl_var_set_has(&s->rows, stmt->u.loop.var))
        s->fails |= !tl_const_int(stmt->u.loop.extent, &extent) ||
                    !tl_const_int(s->r->tile->shape[s->axis], &whole) || extent != whole;
    s->fails |= stmt->kind == TL_STMT_CALL || stmt->kind == TL_STMT_BARRIER;
    return !s->fails;
}

static const tl_stmt *shorten_loop(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    const shortening *s = context;
    if (stmt->kind != TL_STMT_LOOP)
        return stmt;
    const tl_var *old = stmt->u.loop.var;
    bool is_row = tl_var_set_has(&s->rows, old);
    const tl_var *var = tl_var_make(arena, old->name, old->min, is_row ? FEW_ROWS - 1 : old->max);
    tl_binding binding = { old, tl_ref(arena, var) };
    return tl_stmt_loop(arena, var, is_row ? tl_int(arena, FEW_ROWS) : stmt->u.loop.extent,
                        stmt->u.loop.kind,
                        tl_stmt_substitute(arena, stmt->u.loop.body, &binding, 1));
}

/* The alloc with a tile of FEW_ROWS. */
static const tl_stmt *shorten(const shortening *s, const tl_stmt *alloc)
{
    tl_arena *arena = s->r->arena;
    const tl_buffer *old = alloc->u.alloc.buffer;
    const tl_expr **shape = TL_NEW_ARRAY(arena, const tl_expr *, old->rank);
    for (int a = 0; a < old->rank; a++)
        shape[a] = a == s->axis ? tl_int(arena, FEW_ROWS) : old->shape[a];
    const tl_buffer *tile =
        tl_buffer_make(arena, old->name, old->dtype, old->role, old->scope, old->rank, shape);
    const tl_stmt *body =
        tl_stmt_rewrite(arena, alloc->u.alloc.body, shorten_loop, (void *)(uintptr_t)s);
    return tl_stmt_alloc(arena, tile, tl_stmt_replace_buffer(arena, body, old, tile));
}

/* An axis along which the tile is cut off and can be shorter; false: there is none. */
static bool find_axis(const relaxation *r, const tl_stmt *alloc, shortening *out)
{
    int64_t extent;
    for (int axis = 0; axis < r->tile->rank; axis++) {
        tl_binding at[MOST_RANK];
        if (!tl_const_int(r->tile->shape[axis], &extent) || extent < LEAST_ROWS ||
            !tl_expr_uses_var(r->test, r->elements[axis]->u.var))
            continue;
        for (int a = 0; a < r->tile->rank; a++)
            at[a] =
                (tl_binding){ r->elements[a]->u.var, tl_int(r->arena, a == axis ? FEW_ROWS : 0) };
        *out = (shortening){ .r = r, .axis = axis };
        out->few = tl_substitute(r->arena, r->test, at, r->tile->rank);
        tl_visit_accesses(alloc->u.alloc.body, r->tile, see_row, out);
        if (!out->fails)
            tl_stmt_visit(alloc->u.alloc.body, check_rows, out);
        if (!out->fails && out->rows.count > 0)
            return true;
    }
    return false;
}

static const tl_stmt *relax(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    (void)context;
    if (stmt->kind != TL_STMT_ALLOC || stmt->u.alloc.buffer->scope != TL_SCOPE_REGISTER ||
        stmt->u.alloc.buffer->rank > MOST_RANK || !tl_dtype_is_float(stmt->u.alloc.buffer->dtype))
        return stmt;
    relaxation r = { .arena = arena, .tile = stmt->u.alloc.buffer };
    r.inner = tl_stmt_loop_vars(arena, stmt->u.alloc.body);
    tl_stmt_visit(stmt->u.alloc.body, add_lane, &r);
    for (int a = 0; a < r.tile->rank; a++) {
        int64_t most = tl_expr_range(r.tile->shape[a]).max;
        r.elements[a] = tl_ref(arena, tl_var_make(arena, "element", 0, most > 0 ? most - 1 : 0));
    }
    tl_stmt_visit(stmt->u.alloc.body, see_store, &r);
    if (r.fails || r.test == NULL)
        return stmt;
    const tl_stmt *body = relax_parts(&r, stmt->u.alloc.body);
    if (body == NULL)
        return stmt;
    const tl_stmt *whole = tl_stmt_with_body(arena, stmt, body);
    shortening few;
    return stmt->u.alloc.buffer->strides == NULL && find_axis(&r, whole, &few)
               ? tl_stmt_if(arena, few.few, whole, shorten(&few, whole))
               : whole;
}

tl_status tl_relax_guards(tl_lowered_kernel *kernel, tl_diag *diag)
{
    (void)diag;
    if (kernel->program->dim_count > 0)
        kernel->body = tl_stmt_rewrite(kernel->arena, kernel->body, relax, NULL);
    return TL_OK;
}
