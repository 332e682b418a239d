/* schedule/region_at.c: bounds of index expressions over the loops inside a statement, and the boxes they give. */
#include "schedule/region_at.h"
#include <assert.h>
#include <string.h>
#include "runtime/base/array.h"
#include "runtime/base/checked.h"

static const tl_span unknown = { NULL, NULL, -1 };

static bool is_known(tl_span s)
{
    return s.min != NULL;
}

/* Fills in the width where max - min is a constant after all. */
static tl_span make_span(tl_arena *arena, const tl_expr *min, const tl_expr *max, int64_t width)
{
    int64_t exact;
    if (tl_const_int(tl_sub(arena, max, min), &exact))
        width = exact;
    return (tl_span){ min, max, width };
}

static const tl_free_var *find_free(const tl_var *var, const tl_free_var *free_vars, int count)
{
    for (int i = 0; i < count; i++)
        if (free_vars[i].var == var)
            return &free_vars[i];
    return NULL;
}

static bool uses_free(const tl_expr *e, const tl_free_var *free_vars, int count)
{
    for (int i = 0; i < count; i++)
        if (tl_expr_uses_var(e, free_vars[i].var))
            return true;
    return false;
}

static tl_span scale(tl_arena *arena, tl_span s, int64_t c)
{
    int64_t width;
    if (s.width < 0 || tl_mul_overflows(s.width, c < 0 ? -c : c, &width))
        width = -1;
    const tl_expr *a = tl_muli(arena, s.min, c), *b = tl_muli(arena, s.max, c);
    return c < 0 ? (tl_span){ b, a, width } : (tl_span){ a, b, width };
}

static tl_span plus(tl_arena *arena, tl_span a, tl_span b)
{
    int64_t width;
    if (a.width < 0 || b.width < 0 || tl_add_overflows(a.width, b.width, &width))
        width = -1;
    return (tl_span){ tl_add(arena, a.min, b.min), tl_add(arena, a.max, b.max), width };
}

static tl_span span_of_sum(tl_arena *arena, const tl_expr *e, const tl_free_var *free_vars,
                           int count)
{
    tl_linear sum = tl_linear_of(arena, e);
    const tl_expr *constant = tl_int(arena, sum.constant);
    tl_span total = { constant, constant, 0 };
    for (int i = 0; i < sum.count; i++) {
        if (sum.terms[i] == e) /* no progress: not a sum at all */
            return unknown;
        tl_span term = tl_span_of(arena, sum.terms[i], free_vars, count);
        if (!is_known(term))
            return unknown;
        total = plus(arena, total, scale(arena, term, sum.coefficients[i]));
    }
    return make_span(arena, total.min, total.max, total.width);
}

/* A product of things that are never negative grows with each of them. */
static tl_span span_of_product(tl_arena *arena, tl_span a, tl_span b)
{
    if (!is_known(a) || !is_known(b) || tl_expr_range(a.min).min < 0 ||
        tl_expr_range(b.min).min < 0)
        return unknown;
    return make_span(arena, tl_mul(arena, a.min, b.min), tl_mul(arena, a.max, b.max), -1);
}

static tl_span span_of_mod(tl_arena *arena, tl_span a, int64_t d)
{
    assert(d > 0);
    const tl_expr *divisor = tl_int(arena, d);
    if (is_known(a) && a.width >= 0 && a.width < d &&
        tl_prove_equal(arena, tl_floordiv_expr(arena, a.min, divisor),
                       tl_floordiv_expr(arena, a.max, divisor)))
        return make_span(arena, tl_floormod_expr(arena, a.min, divisor),
                         tl_floormod_expr(arena, a.max, divisor), a.width);
    return (tl_span){ tl_int(arena, 0), tl_int(arena, d - 1), d - 1 };
}

tl_span tl_span_of(tl_arena *arena, const tl_expr *e, const tl_free_var *free_vars, int count)
{
    assert(count >= 0 && (count == 0 || free_vars != NULL));
    if (tl_expr_has_load(e))
        return unknown;
    if (!uses_free(e, free_vars, count))
        return (tl_span){ e, e, 0 };

    int64_t d;
    tl_span a, b;
    switch (e->kind) {
    case TL_EXPR_VAR: {
        const tl_expr *last = tl_addi(arena, find_free(e->u.var, free_vars, count)->extent, -1);
        return make_span(arena, tl_int(arena, 0), last, -1);
    }
    case TL_EXPR_MUL:
        if (!tl_const_int(e->args[0], &d) && !tl_const_int(e->args[1], &d))
            return span_of_product(arena, tl_span_of(arena, e->args[0], free_vars, count),
                                   tl_span_of(arena, e->args[1], free_vars, count));
        return span_of_sum(arena, e, free_vars, count);
    case TL_EXPR_ADD:
    case TL_EXPR_SUB:
        return span_of_sum(arena, e, free_vars, count);
    case TL_EXPR_FLOORDIV:
        a = tl_span_of(arena, e->args[0], free_vars, count);
        if (!is_known(a) || !tl_const_int(e->args[1], &d) || d < 1)
            return unknown;
        return make_span(arena, tl_floordiv_expr(arena, a.min, e->args[1]),
                         tl_floordiv_expr(arena, a.max, e->args[1]),
                         a.width < 0 ? -1 : tl_ceildiv(a.width, d));
    case TL_EXPR_FLOORMOD:
        if (!tl_const_int(e->args[1], &d) || d < 1)
            return unknown;
        return span_of_mod(arena, tl_span_of(arena, e->args[0], free_vars, count), d);
    case TL_EXPR_MIN:
    case TL_EXPR_MAX:
        a = tl_span_of(arena, e->args[0], free_vars, count);
        b = tl_span_of(arena, e->args[1], free_vars, count);
        if (!is_known(a) || !is_known(b))
            return unknown;
        return make_span(arena, tl_binary(arena, e->kind, a.min, b.min),
                         tl_binary(arena, e->kind, a.max, b.max),
                         a.width < 0 || b.width < 0 ? -1 : tl_max64(a.width, b.width));
    case TL_EXPR_SELECT:
        return tl_span_union(arena, tl_span_of(arena, e->args[1], free_vars, count),
                             tl_span_of(arena, e->args[2], free_vars, count));
    case TL_EXPR_INT:
    case TL_EXPR_FLOAT:
    case TL_EXPR_LOAD:
    case TL_EXPR_DIV:
    case TL_EXPR_LT:
    case TL_EXPR_LE:
    case TL_EXPR_EQ:
    case TL_EXPR_NE:
    case TL_EXPR_AND:
    case TL_EXPR_OR:
    case TL_EXPR_NOT:
    case TL_EXPR_CAST:
    case TL_EXPR_BITS:
    case TL_EXPR_CALL:
    case TL_EXPR_KIND_COUNT:
        break;
    }
    return unknown;
}

/* The smaller of two when that can be told, else NULL. */
static const tl_expr *smaller(tl_arena *arena, const tl_expr *a, const tl_expr *b)
{
    return tl_prove_le(arena, a, b) ? a : tl_prove_le(arena, b, a) ? b : NULL;
}

tl_span tl_span_union(tl_arena *arena, tl_span a, tl_span b)
{
    if (!is_known(a) || !is_known(b))
        return unknown;
    const tl_expr *min = smaller(arena, a.min, b.min), *least_max = smaller(arena, a.max, b.max);
    if (min == NULL || least_max == NULL)
        return unknown;
    const tl_expr *max = least_max == a.max ? b.max : a.max;
    int64_t width = -1;
    if (min == a.min && max == a.max)
        width = a.width;
    else if (min == b.min && max == b.max)
        width = b.width;
    return make_span(arena, min, max, width);
}

static bool not_dim(const tl_expr *e, void *context)
{
    if (e->kind == TL_EXPR_LOAD || (e->kind == TL_EXPR_VAR && !e->u.var->is_dim))
        *(bool *)context = true;
    return true;
}

const tl_expr *tl_not_negative(tl_arena *arena, const tl_expr *extent)
{
    const tl_expr *zero = tl_int(arena, 0);
    return tl_prove_le(arena, zero, extent) ? extent : tl_max(arena, extent, zero);
}

void tl_span_loop(tl_arena *arena, tl_span span, const tl_expr *domain, const tl_expr **begin,
                  const tl_expr **extent)
{
    *begin = tl_int(arena, 0);
    *extent = domain;
    if (!is_known(span))
        return;

    const tl_expr *length = tl_addi(arena, tl_sub(arena, span.max, span.min), 1);
    bool has_loops = false;
    tl_expr_visit(length, not_dim, &has_loops);
    if (has_loops) {
        int64_t most = tl_expr_range(length).max;
        if (span.width >= 0)
            most = tl_min64(most, span.width + 1);
        if (most < 1 || most == INT64_MAX)
            return;
        length = tl_int(arena, most);
    }
    length = tl_not_negative(arena, length); /* a loop may not run at all */
    if (tl_prove_le(arena, domain, length))
        return;
    *begin = span.min;
    *extent = length;
}

/* --- boxes --- */

typedef struct {
    tl_arena *arena;
    const tl_buffer *buffer;
    tl_box_kind kind;
    const char *only;
    tl_free_var *free_vars;
    int free_count, free_capacity;
    const tl_block *block; /* the one being looked at */
    tl_span *axes;
    bool found;
} box_walk;

static void add_span(box_walk *w, int axis, tl_span span)
{
    w->axes[axis] = w->found ? tl_span_union(w->arena, w->axes[axis], span) : span;
}

static tl_span bound(box_walk *w, const tl_expr *over_iters)
{
    return tl_span_of(w->arena, tl_block_bind(w->arena, w->block, over_iters), w->free_vars,
                      w->free_count);
}

static void add_access(box_walk *w, const tl_expr *const *indices)
{
    for (int axis = 0; axis < w->buffer->rank; axis++)
        add_span(w, axis, bound(w, indices[axis]));
    w->found = true;
}

static void add_region(box_walk *w, const tl_region *region)
{
    if (region->buffer != w->buffer)
        return;
    assert(region->buffer->rank == w->buffer->rank);
    for (int axis = 0; axis < w->buffer->rank; axis++) {
        tl_span first = bound(w, region->begin[axis]);
        const tl_expr *end = tl_add(w->arena, region->begin[axis], region->extent[axis]);
        tl_span last = bound(w, tl_addi(w->arena, end, -1));
        int64_t width = -1, extent;
        if (first.width >= 0 && tl_const_int(region->extent[axis], &extent))
            width = first.width + extent - 1;
        add_span(w, axis,
                 is_known(first) && is_known(last) ? make_span(w->arena, first.min, last.max, width)
                                                   : unknown);
    }
    w->found = true;
}

static bool visit_load(const tl_expr *e, void *context)
{
    box_walk *w = context;
    if (e->kind == TL_EXPR_LOAD && e->u.buffer == w->buffer)
        add_access(w, e->args);
    return true;
}

static void add_block(box_walk *w, const tl_block *block)
{
    if (w->only != NULL && strcmp(w->only, block->name) != 0)
        return;
    w->block = block;
    if (w->kind == TL_BOX_WRITES) {
        for (int i = 0; i < block->store_count; i++)
            if (block->stores[i].buffer == w->buffer)
                add_access(w, block->stores[i].indices);
        if (block->call != NULL)
            for (int i = 0; i < block->call->write_count; i++)
                add_region(w, &block->call->writes[i]);
        return;
    }
    for (int i = 0; i < block->store_count; i++) {
        tl_expr_visit(block->stores[i].value, visit_load, w);
        for (int axis = 0; axis < block->stores[i].buffer->rank; axis++)
            tl_expr_visit(block->stores[i].indices[axis], visit_load, w);
        if (block->init != NULL)
            tl_expr_visit(block->init[i], visit_load, w);
    }
    if (block->predicate != NULL)
        tl_expr_visit(block->predicate, visit_load, w);
    if (block->call != NULL)
        for (int i = 0; i < block->call->read_count; i++)
            add_region(w, &block->call->reads[i]);
}

static void push_free(box_walk *w, const tl_stmt *loop)
{
    assert(loop->kind == TL_STMT_LOOP);
    TL_ROOM(w->arena, w->free_vars, w->free_count, w->free_capacity);
    w->free_vars[w->free_count++] = (tl_free_var){ loop->u.loop.var, loop->u.loop.extent };
}

static void walk_box(box_walk *w, const tl_stmt *stmt)
{
    switch (stmt->kind) {
    case TL_STMT_LOOP:
        push_free(w, stmt);
        walk_box(w, stmt->u.loop.body);
        w->free_count--;
        return;
    case TL_STMT_SEQ:
        for (int i = 0; i < stmt->u.seq.count; i++)
            walk_box(w, stmt->u.seq.items[i]);
        return;
    case TL_STMT_ALLOC:
        walk_box(w, stmt->u.alloc.body);
        return;
    case TL_STMT_BLOCK:
        add_block(w, stmt->u.block);
        return;
    case TL_STMT_BARRIER:
    case TL_STMT_PREFETCH:
    case TL_STMT_IF: /* those below exist only after lowering, where no primitive comes */
    case TL_STMT_STORE:
    case TL_STMT_CALL:
    case TL_STMT_KIND_COUNT:
        return;
    }
}

bool tl_box_at(tl_arena *arena, const tl_stmt *stmt, const tl_buffer *buffer, tl_box_kind kind,
               const char *only, tl_box *out)
{
    box_walk w = { .arena = arena, .buffer = buffer, .kind = kind, .only = only };
    w.axes = TL_NEW_ARRAY(arena, tl_span, buffer->rank);
    walk_box(&w, stmt);
    *out = (tl_box){ buffer, w.axes };
    return w.found;
}

bool tl_box_covers(tl_arena *arena, const tl_box *outer, const tl_box *inner)
{
    assert(outer->buffer->rank == inner->buffer->rank);
    const tl_expr *zero = tl_int(arena, 0);
    for (int axis = 0; axis < outer->buffer->rank; axis++) {
        tl_span o = outer->axes[axis], i = inner->axes[axis];
        const tl_expr *last = tl_addi(arena, outer->buffer->shape[axis], -1);
        if (!is_known(o))
            return false;
        bool below =
            tl_prove_le(arena, o.min, zero) || (is_known(i) && tl_prove_le(arena, o.min, i.min));
        bool above =
            tl_prove_le(arena, last, o.max) || (is_known(i) && tl_prove_le(arena, i.max, o.max));
        if (!below || !above)
            return false;
    }
    return true;
}

/* --- from a box back to iters --- */

static bool uses_iters(const tl_block *block, const tl_expr *e)
{
    for (int i = 0; i < block->iter_count; i++)
        if (tl_expr_uses_var(e, block->iters[i].var))
            return true;
    return false;
}

/* index = c*v + rest: v from (min - rest)/c rounded up to (max - rest)/c. Where rest is lesser digits (other iters whose
 * sum stays below c), its least and largest values stand for it. */
static bool solve_affine(tl_arena *arena, const tl_block *block, const tl_expr *index, tl_span box,
                         const tl_var *v, tl_span *out)
{
    int64_t c;
    const tl_expr *rest;
    if (!tl_affine_in(arena, index, v, &c, &rest) || c < 1)
        return false;
    const tl_expr *least = rest, *largest = rest;
    int64_t spread = 0;
    if (uses_iters(block, rest)) {
        tl_range r = tl_expr_range(rest);
        if (r.min == INT64_MIN || r.max == INT64_MAX || r.max - r.min >= c)
            return false;
        least = tl_int(arena, r.min);
        largest = tl_int(arena, r.max);
        spread = r.max - r.min;
    }
    const tl_expr *low = tl_addi(arena, tl_sub(arena, box.min, largest), c - 1);
    const tl_expr *high = tl_sub(arena, box.max, least), *divisor = tl_int(arena, c);
    low = tl_floordiv_expr(arena, low, divisor);
    high = tl_floordiv_expr(arena, high, divisor);
    int64_t width = box.width < 0 ? -1 : (box.width + spread) / c;
    tl_range difference = tl_expr_range(tl_sub(arena, high, low));
    if (difference.max != INT64_MAX && (width < 0 || difference.max < width))
        width = tl_max64(difference.max, 0);
    *out = make_span(arena, low, high, width);
    return true;
}

static bool is_digit_pair(const tl_expr *e, tl_expr_kind kind, const tl_var *v, int64_t *c)
{
    return e->kind == kind && e->args[0]->kind == TL_EXPR_VAR && e->args[0]->u.var == v &&
           tl_const_int(e->args[1], c) && *c >= 1;
}

/* v // c on this axis, and perhaps v % c on another that takes one value. */
static bool solve_blocked(tl_arena *arena, const tl_expr *const *indices, const tl_box *box,
                          int axis, const tl_var *v, tl_span *out)
{
    assert(axis >= 0 && axis < box->buffer->rank);
    int64_t c, other;
    if (!is_digit_pair(indices[axis], TL_EXPR_FLOORDIV, v, &c))
        return false;
    tl_span outer = box->axes[axis];
    tl_span inner = { tl_int(arena, 0), tl_int(arena, c - 1), c - 1 };
    for (int i = 0; i < box->buffer->rank; i++)
        if (is_digit_pair(indices[i], TL_EXPR_FLOORMOD, v, &other) && other == c &&
            outer.width == 0 && is_known(box->axes[i]))
            inner = box->axes[i];
    tl_span sum = plus(arena, scale(arena, outer, c), inner);
    *out = make_span(arena, sum.min, sum.max, sum.width);
    return true;
}

void tl_iters_in_box(tl_arena *arena, const tl_block *block, const tl_expr *const *indices,
                     const tl_box *box, tl_span *spans)
{
    for (int i = 0; i < block->iter_count; i++) {
        const tl_var *v = block->iters[i].var;
        spans[i] = unknown;
        for (int axis = 0; axis < box->buffer->rank && !is_known(spans[i]); axis++)
            if (is_known(box->axes[axis]) &&
                !solve_affine(arena, block, indices[axis], box->axes[axis], v, &spans[i]))
                (void)solve_blocked(arena, indices, box, axis, v, &spans[i]);
    }
}

/* --- small questions --- */

static bool collect_loops(const tl_stmt *stmt, const char *block, const tl_stmt **out, int depth,
                          int *count)
{
    assert(depth >= 0);
    switch (stmt->kind) {
    case TL_STMT_LOOP:
        if (!collect_loops(stmt->u.loop.body, block, out, depth + 1, count))
            return false;
        if (out != NULL)
            out[depth] = stmt;
        return true;
    case TL_STMT_SEQ:
        for (int i = 0; i < stmt->u.seq.count; i++)
            if (collect_loops(stmt->u.seq.items[i], block, out, depth, count))
                return true;
        return false;
    case TL_STMT_ALLOC:
        return collect_loops(stmt->u.alloc.body, block, out, depth, count);
    case TL_STMT_BLOCK:
        *count = depth;
        return strcmp(stmt->u.block->name, block) == 0;
    case TL_STMT_BARRIER:
    case TL_STMT_PREFETCH:
    case TL_STMT_IF:
    case TL_STMT_STORE:
    case TL_STMT_CALL:
    case TL_STMT_KIND_COUNT:
        break;
    }
    return false;
}

int tl_loops_around(tl_arena *arena, const tl_stmt *root, const char *block, const tl_stmt ***out)
{
    int count = 0;
    *out = NULL;
    if (!collect_loops(root, block, NULL, 0, &count))
        return 0;
    *out = TL_NEW_ARRAY(arena, const tl_stmt *, count);
    (void)collect_loops(root, block, *out, 0, &count);
    return count;
}

static const tl_expr *guard(tl_arena *arena, const tl_expr *binding, const tl_expr *domain,
                            bool low_holds, bool high_holds)
{
    const tl_expr *low = tl_le(arena, tl_int(arena, 0), binding);
    const tl_expr *high = tl_lt(arena, binding, domain);
    low_holds = low_holds || tl_prove(arena, low);
    high_holds = high_holds || tl_prove(arena, high);
    return tl_and(arena, low_holds ? NULL : low, high_holds ? NULL : high);
}

const tl_expr *tl_domain_guard(tl_arena *arena, const tl_expr *binding, const tl_expr *domain)
{
    return guard(arena, binding, domain, false, false);
}

const tl_expr *tl_loop_guard(tl_arena *arena, const tl_expr *begin, const tl_expr *extent,
                             const tl_expr *binding, const tl_expr *domain)
{
    return guard(arena, binding, domain, tl_prove_le(arena, tl_int(arena, 0), begin),
                 tl_prove_le(arena, tl_add(arena, begin, extent), domain));
}
