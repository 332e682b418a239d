/* schedule/dependence.c: see dependence.h. */
#include <assert.h>
#include "runtime/base/array.h"
#include "runtime/base/checked.h"
#include "schedule/dependence.h"
#include "schedule/analysis.h"
#include "schedule/schedule_private.h"

/* Collecting accesses. */

static void add_access(tl_dependences *d, tl_access access)
{
    for (int i = 0; i < d->local_count; i++)
        if (d->locals[i] == access.buffer)
            return;
    TL_ROOM(d->arena, d->accesses, d->access_count, d->access_capacity);
    d->accesses[d->access_count++] = access;
}

static const tl_expr *const *bind_all(tl_arena *arena, const tl_block *block,
                                      const tl_expr *const *exprs, int count)
{
    assert(count >= 0);
    const tl_expr **bound = TL_NEW_ARRAY(arena, const tl_expr *, count);
    for (int i = 0; i < count; i++)
        bound[i] = tl_block_bind(arena, block, exprs[i]);
    return bound;
}

typedef struct {
    tl_dependences *d;
    const tl_block *block;
} load_context;

static bool add_load(const tl_expr *e, void *context)
{
    load_context *c = context;
    if (e->kind == TL_EXPR_LOAD) {
        tl_access access = { .block = c->block, .buffer = e->u.buffer };
        access.begin = bind_all(c->d->arena, c->block, e->args, e->u.buffer->rank);
        add_access(c->d, access);
    }
    return true;
}

static void add_block(tl_dependences *d, const tl_block *block)
{
    load_context context = { d, block };
    for (int i = 0; i < block->store_count; i++) {
        const tl_store *store = &block->stores[i];
        tl_access access = { .block = block, .buffer = store->buffer, .writes = true };
        access.updates = block->combiner != TL_COMBINER_NONE;
        access.begin = bind_all(d->arena, block, store->indices, store->buffer->rank);
        add_access(d, access);
        tl_expr_visit(store->value, add_load, &context);
        for (int k = 0; k < store->buffer->rank; k++)
            tl_expr_visit(store->indices[k], add_load, &context);
        if (block->init)
            tl_expr_visit(block->init[i], add_load, &context);
    }
    if (block->predicate)
        tl_expr_visit(block->predicate, add_load, &context);
    const tl_intrinsic_call *call = block->call;
    for (int i = 0; call && i < call->read_count + call->write_count; i++) {
        bool writes = i >= call->read_count;
        const tl_region *region = writes ? &call->writes[i - call->read_count] : &call->reads[i];
        tl_access access = { .block = block, .buffer = region->buffer, .writes = writes };
        access.begin = bind_all(d->arena, block, region->begin, region->buffer->rank);
        access.extent = bind_all(d->arena, block, region->extent, region->buffer->rank);
        add_access(d, access);
    }
}

static bool collect(const tl_stmt *stmt, void *context)
{
    tl_dependences *d = context;
    if (stmt->kind == TL_STMT_LOOP) {
        TL_ROOM(d->arena, d->vars, d->var_count, d->var_capacity);
        d->vars[d->var_count++] = stmt->u.loop.var;
    } else if (stmt->kind == TL_STMT_ALLOC) {
        TL_ROOM(d->arena, d->locals, d->local_count, d->local_capacity);
        d->locals[d->local_count++] = stmt->u.alloc.buffer;
    } else if (stmt->kind == TL_STMT_BLOCK) {
        add_block(d, stmt->u.block);
    }
    return true;
}

tl_dependences tl_dependences_under(tl_arena *arena, const tl_stmt *stmt)
{
    tl_dependences d = { .arena = arena };
    tl_stmt_visit(stmt, collect, &d);
    return d;
}

bool tl_may_conflict(const tl_access *a, const tl_access *b)
{
    assert(a->buffer != NULL && b->buffer != NULL);
    return a->buffer == b->buffer && (a->writes || b->writes);
}

/* Equations. */

typedef struct {
    const tl_dependences *d;
    bool found;
} var_search;

static bool find_varying(const tl_expr *e, void *context)
{
    var_search *s = context;
    if (e->kind == TL_EXPR_LOAD)
        s->found = true;
    for (int i = 0; e->kind == TL_EXPR_VAR && i < s->d->var_count; i++)
        if (s->d->vars[i] == e->u.var &&
            e->u.var->min < e->u.var->max) /* a loop that runs once is fixed */
            s->found = true;
    return !s->found;
}

/* The same in both instances: nothing in it varies under the statement. */
static bool is_fixed(const tl_dependences *d, const tl_expr *e)
{
    var_search s = { d, false };
    tl_expr_visit(e, find_varying, &s);
    return !s.found;
}

static bool is_pinned(const tl_pins *pins, const tl_expr *e)
{
    for (int i = 0; i < pins->count; i++)
        if (tl_expr_equal(pins->equal[i], e))
            return true;
    return false;
}

static void pin(const tl_dependences *d, tl_pins *pins, const tl_expr *e)
{
    if (is_pinned(pins, e))
        return;
    TL_ROOM(d->arena, pins->equal, pins->count, pins->capacity);
    pins->equal[pins->count++] = e;
}

/* A sum, its terms struck out one by one. */
typedef struct {
    tl_linear linear;
    bool *struck;
} sum;

static sum sum_of(tl_arena *arena, const tl_expr *e)
{
    sum s = { .linear = tl_linear_of(arena, e) };
    s.struck = TL_NEW_ARRAY(arena, bool, s.linear.count);
    return s;
}

static int find_term(const sum *s, const tl_expr *term, int64_t coefficient)
{
    for (int i = 0; i < s->linear.count; i++)
        if (!s->struck[i] && s->linear.coefficients[i] == coefficient &&
            tl_expr_equal(s->linear.terms[i], term))
            return i;
    return -1;
}

/* Bounds of what is left, without the term at `skip`; false when there are none (or they are absurdly large). */
static bool rest_range(const sum *s, int skip, tl_range *out)
{
    assert(skip < s->linear.count);
    const int64_t large = INT64_MAX / 1024;
    *out = (tl_range){ s->linear.constant, s->linear.constant };
    for (int i = 0; i < s->linear.count; i++) {
        if (s->struck[i] || i == skip)
            continue;
        tl_range r = tl_expr_range(s->linear.terms[i]);
        int64_t c = s->linear.coefficients[i], low, high;
        if (tl_mul_overflows(c > 0 ? r.min : r.max, c, &low) ||
            tl_mul_overflows(c > 0 ? r.max : r.min, c, &high) || low < -large || high > large)
            return false;
        out->min += low;
        out->max += high;
        if (out->min < -large || out->max > large)
            return false;
    }
    return true;
}

/* The largest coefficient of a term that both sums have. */
static int64_t largest_common(const sum *a, const sum *b, int *at_a, int *at_b)
{
    int64_t largest = 0;
    for (int i = 0; i < a->linear.count; i++) {
        int64_t c = a->linear.coefficients[i], size = c < 0 ? -c : c;
        if (a->struck[i] || size <= largest || tl_expr_has_load(a->linear.terms[i]))
            continue;
        int other = find_term(b, a->linear.terms[i], c);
        if (other < 0)
            continue;
        largest = size;
        *at_a = i;
        *at_b = other;
    }
    return largest;
}

static void keep_sum(const tl_dependences *d, tl_pins *pins, const tl_expr *e)
{
    enum { MOST = 64 };
    for (int i = 0; i < pins->sum_count; i++)
        if (tl_expr_equal(pins->sums[i], e))
            return;
    if (pins->sum_count == MOST)
        return;
    TL_ROOM(d->arena, pins->sums, pins->sum_count, pins->sum_capacity);
    pins->sums[pins->sum_count++] = e;
}

/* Pins what follows from  ea = eb,  ea in one instance, eb in another; extents widen them to intervals. */
static void equate(const tl_dependences *d, tl_pins *pins, const tl_expr *ea, int64_t extent_a,
                   const tl_expr *eb, int64_t extent_b)
{
    sum a = sum_of(d->arena, ea), b = sum_of(d->arena, eb);
    for (int i = 0; i < a.linear.count; i++) {
        int other = find_term(&b, a.linear.terms[i], a.linear.coefficients[i]);
        if (other >= 0 && (is_fixed(d, a.linear.terms[i]) || is_pinned(pins, a.linear.terms[i]))) {
            a.struck[i] = true;
            b.struck[other] = true;
        }
    }
    int i, k;
    for (int64_t c; (c = largest_common(&a, &b, &i, &k)) != 0;) {
        tl_range ra, rb;
        if (!rest_range(&a, i, &ra) || !rest_range(&b, k, &rb))
            return;
        if (ra.max + extent_a - 1 - rb.min >= c || rb.max + extent_b - 1 - ra.min >= c) {
            if (extent_a == 1 && extent_b == 1 && tl_expr_equal(ea, eb))
                keep_sum(d, pins, ea);
            return;
        }
        pin(d, pins, a.linear.terms[i]);
        a.struck[i] = true;
        b.struck[k] = true;
    }
}

static int64_t extent_of(const tl_access *a, int axis)
{
    if (a->extent == NULL)
        return 1;
    return tl_min64(tl_expr_range(a->extent[axis]).max, INT64_MAX / 1024);
}

/* Whether x % d is the same in both: as it stands, or by its digits, x % m and x // m % (d/m), the lowest or the highest
 * first: an expression may be simplified in one of the two orders only. */
static bool is_remainder_pinned(const tl_dependences *d, const tl_pins *pins, const tl_expr *x,
                                int64_t divisor)
{
    int64_t known;
    const tl_expr *whole = tl_floormod_expr(d->arena, x, tl_int(d->arena, divisor));
    if (tl_const_int(whole, &known) || is_pinned(pins, whole))
        return true;
    int64_t low = 0;
    for (int i = 0; i < pins->count; i++) {
        int64_t m;
        if (pins->equal[i]->kind != TL_EXPR_FLOORMOD ||
            !tl_const_int(pins->equal[i]->args[1], &m) || m < 2 || m >= divisor || divisor % m != 0)
            continue;
        const tl_expr *modulus = tl_int(d->arena, m), *rest = tl_int(d->arena, divisor / m);
        if (is_pinned(pins, tl_floormod_expr(d->arena, x, modulus)))
            low = m;
        const tl_expr *highest =
            tl_floormod_expr(d->arena, tl_floordiv_expr(d->arena, x, rest), modulus);
        if (is_pinned(pins, highest))
            return is_remainder_pinned(d, pins, x, divisor / m);
    }
    return low > 0 &&
           is_remainder_pinned(d, pins, tl_floordiv_expr(d->arena, x, tl_int(d->arena, low)),
                               divisor / low);
}

/* rest + x // d the same in both, and x % d pinned: d*rest + x is the same. So is a split of fused loops whose parts are no
 * digits of the loops that were fused: (256*a + b)//70 is 3*a + (46*a + b)//70. */
static void close_over_sums(const tl_dependences *d, tl_pins *pins)
{
    for (int i = 0; i < pins->sum_count; i++) { /* grows while it runs */
        tl_linear kept = tl_linear_of(d->arena, pins->sums[i]);
        for (int k = 0; k < kept.count; k++) {
            const tl_expr *e = kept.terms[k];
            int64_t divisor;
            if (kept.coefficients[k] != 1 || e->kind != TL_EXPR_FLOORDIV ||
                !tl_const_int(e->args[1], &divisor) ||
                !is_remainder_pinned(d, pins, e->args[0], divisor))
                continue;
            const tl_expr *rest = tl_muli(d->arena, tl_sub(d->arena, pins->sums[i], e), divisor);
            const tl_expr *whole = tl_add(d->arena, rest, e->args[0]);
            equate(d, pins, whole, 1, whole, 1);
        }
    }
}

/* Whether x // divisor is the same in both, as it stands or over the sum that x divides: (2*a + (32*a + b)//112) // 112 is
 * (256*a + b)//12544, which is a//49 where b is below 256. */
static bool is_quotient_pinned(const tl_dependences *d, const tl_pins *pins, const tl_expr *x,
                               int64_t divisor)
{
    int64_t known, inner, both;
    const tl_expr *quotient = tl_floordiv_expr(d->arena, x, tl_int(d->arena, divisor));
    if (tl_const_int(quotient, &known) || is_fixed(d, quotient) || is_pinned(pins, quotient))
        return true;
    tl_linear terms = tl_linear_of(d->arena, x);
    for (int k = 0; k < terms.count; k++) {
        const tl_expr *e = terms.terms[k];
        if (terms.coefficients[k] != 1 || e->kind != TL_EXPR_FLOORDIV || e == x ||
            !tl_const_int(e->args[1], &inner) || tl_mul_overflows(inner, divisor, &both))
            continue;
        const tl_expr *rest = tl_muli(d->arena, tl_sub(d->arena, x, e), inner);
        return is_quotient_pinned(d, pins, tl_add(d->arena, rest, e->args[0]), both);
    }
    return false;
}

/* x // d and x % d pinned: x is. */
static void close_over_digits(const tl_dependences *d, tl_pins *pins)
{
    close_over_sums(d, pins);
    for (int i = 0; i < pins->count; i++) { /* grows while it runs */
        const tl_expr *e = pins->equal[i];
        int64_t divisor;
        if ((e->kind != TL_EXPR_FLOORDIV && e->kind != TL_EXPR_FLOORMOD) ||
            is_pinned(pins, e->args[0]))
            continue;
        if (e->kind == TL_EXPR_FLOORDIV) {
            if (!tl_const_int(e->args[1], &divisor) ||
                !is_remainder_pinned(d, pins, e->args[0], divisor))
                continue;
        } else {
            if (!tl_const_int(e->args[1], &divisor) ||
                !is_quotient_pinned(d, pins, e->args[0], divisor))
                continue;
        }
        pin(d, pins, e->args[0]);
        equate(d, pins, e->args[0], 1, e->args[0], 1);
        close_over_sums(d, pins);
        i = -1; /* what came first may have its partner now */
    }
}

static void equate_elements(const tl_dependences *d, tl_pins *pins, const tl_access *a,
                            const tl_access *b)
{
    for (int axis = 0; axis < a->buffer->rank; axis++)
        equate(d, pins, a->begin[axis], extent_of(a, axis), b->begin[axis], extent_of(b, axis));
    close_over_digits(d, pins);
}

tl_pins tl_pins_of(const tl_dependences *d, const tl_access *a, const tl_access *b)
{
    tl_pins pins = { 0 };
    if (a->block == b->block)
        pins = tl_pins_of_instance(d, a->block);
    equate_elements(d, &pins, a, b);
    return pins;
}

tl_pins tl_pins_of_elements(const tl_dependences *d, const tl_access *a, const tl_access *b)
{
    tl_pins pins = { 0 };
    equate_elements(d, &pins, a, b);
    return pins;
}

tl_pins tl_pins_of_instance(const tl_dependences *d, const tl_block *block)
{
    tl_pins pins = { 0 };
    for (int i = 0; i < block->iter_count; i++)
        if (block->iters[i].kind == TL_ITER_SPATIAL)
            equate(d, &pins, block->iters[i].binding, 1, block->iters[i].binding, 1);
    close_over_digits(d, &pins);
    return pins;
}

bool tl_pins_var(const tl_pins *pins, const tl_var *var)
{
    if (var->min == var->max)
        return true; /* it has one value */
    for (int i = 0; i < pins->count; i++)
        if (pins->equal[i]->kind == TL_EXPR_VAR && pins->equal[i]->u.var == var)
            return true;
    return false;
}

/* Questions about a loop. */

static bool is_thread_loop(const tl_stmt *stmt)
{
    return stmt->kind == TL_STMT_LOOP &&
           (stmt->u.loop.kind == TL_LOOP_THREAD_X || stmt->u.loop.kind == TL_LOOP_THREAD_Y ||
            stmt->u.loop.kind == TL_LOOP_THREAD_Z);
}

/* A thread loop inside one of the same axis is the same thread: its variable is the outer one's. */
static const tl_stmt *join_threads(tl_arena *arena, const tl_stmt *stmt, void *context)
{
    const tl_stmt *outer = context;
    if (!is_thread_loop(stmt) || stmt->u.loop.kind != outer->u.loop.kind)
        return stmt;
    tl_binding same = { stmt->u.loop.var, tl_ref(arena, outer->u.loop.var) };
    return tl_stmt_substitute(arena, stmt->u.loop.body, &same, 1);
}

bool tl_block_depends_on(const tl_block *block, const tl_var *var)
{
    const tl_iter *iter;
    return tl_loop_drives(block, var, &iter) != TL_DRIVES_NOTHING ||
           (block->predicate && tl_expr_uses_var(block->predicate, var));
}

/* Whether every iteration of the loop, before threads divide the work, writes the same in this access. Barriers put an
 * iteration's writes before its reads, and so those of all threads; writes that differ from iteration to iteration
 * would come in another order. */
static bool writes_alike(tl_arena *arena, const tl_stmt *loop, const tl_access *a)
{
    if (!a->writes)
        return true;
    tl_path path = tl_path_to_block(arena, loop, a->block->name);
    return !tl_block_depends_on(path.stmts[path.count - 1]->u.block, loop->u.loop.var);
}

/* One buffer for all threads: they may have had one each before, in which different instances of a block that stores at
 * one place do not meet. */
static bool shared_by_threads(const tl_stmt *loop, const tl_access *a)
{
    return is_thread_loop(loop) && a->buffer->scope == TL_SCOPE_SHARED;
}

/* Whether the access is of a block that assigns, and does not go on from what it wrote. */
static bool is_copy(const tl_access *a)
{
    return a->block->call == NULL && a->block->combiner == TL_COMBINER_NONE && a->writes &&
           !tl_block_reads_buffer(a->block, a->buffer);
}

/* A copy into shared memory that every thread makes, until one of its loops is bound to threads as well. */
static bool copies_alike(tl_arena *arena, const tl_stmt *loop, const tl_access *a,
                         const tl_access *b)
{
    return shared_by_threads(loop, a) && a->block == b->block && is_copy(a) &&
           writes_alike(arena, loop, a) && writes_alike(arena, loop, b);
}

bool tl_loop_is_independent(tl_arena *arena, const tl_stmt *loop, bool updates_commute,
                            tl_access *first, tl_access *second)
{
    assert(loop->kind == TL_STMT_LOOP);
    const tl_stmt *given = loop;
    if (is_thread_loop(loop))
        loop = tl_stmt_with_body(arena, loop,
                                 tl_stmt_rewrite(arena, loop->u.loop.body, join_threads,
                                                 (void *)loop));
    tl_dependences d = tl_dependences_under(arena, loop);
    for (int i = 0; i < d.access_count; i++) {
        const tl_access *a = &d.accesses[i];
        for (int k = i; k < d.access_count; k++) {
            const tl_access *b = &d.accesses[k];
            if (!tl_may_conflict(a, b))
                continue;
            const tl_iter *iter;
            if (updates_commute && a->block == b->block && a->updates && b->updates &&
                (tl_loop_drives(a->block, loop->u.loop.var, &iter) & TL_DRIVES_REDUCE))
                continue;
            if (shared_by_threads(loop, a) && a->block != b->block &&
                writes_alike(arena, given, a) && writes_alike(arena, given, b))
                continue; /* ordered by barriers */
            if (copies_alike(arena, given, a, b))
                continue;
            tl_pins pins =
                shared_by_threads(loop, a) ? tl_pins_of_elements(&d, a, b) : tl_pins_of(&d, a, b);
            if (tl_pins_var(&pins, loop->u.loop.var))
                continue;
            *first = *a;
            *second = *b;
            return false;
        }
    }
    return true;
}

int tl_loop_drives(const tl_block *block, const tl_var *var, const tl_iter **iter)
{
    assert(var != NULL);
    int drives = TL_DRIVES_NOTHING;
    *iter = NULL;
    for (int i = 0; i < block->iter_count; i++) {
        const tl_iter *it = &block->iters[i];
        if (!tl_expr_uses_var(it->binding, var))
            continue;
        if (*iter == NULL || it->kind > (*iter)->kind)
            *iter = it;
        switch (it->kind) {
        case TL_ITER_SPATIAL:
            drives |= TL_DRIVES_SPATIAL;
            break;
        case TL_ITER_REDUCE:
            drives |= TL_DRIVES_REDUCE;
            break;
        case TL_ITER_ORDERED:
            drives |= TL_DRIVES_ORDERED;
            break;
        }
    }
    return drives;
}
