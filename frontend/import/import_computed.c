/* frontend/import/import_computed.c: operators whose results have extents that a run computes (onnx_counts.h), from counts or,
 * where something says how large they can be, from any data.
 *
 *     s = Shape(y), y: [n, 4], n at most 12       Expand(x, s)        ->  x expanded to [12, 4], axis 0 counted by n
 *     Slice(x, a, b), x: [9]                      ->  Gather(x, a' + 0..8), counted by max(b' - a', 0)
 *
 * What lies behind a count moves, and so do all elements behind it in memory, where Reshape joins or parts counted axes: then
 * each element is fetched from where it was. */
#include <math.h>
#include <string.h>
#include "frontend/import/import_counted.h"
#include "frontend/import/import_rules.h"
#include "frontend/call/onnx_scope.h"
#include "frontend/call/onnx_sums.h"
#include "runtime/base/checked.h"

enum { MOST_ELEMENTS = 1 << 30 }; /* of a result, at most */

/* ---- shapes of which some extents are computed ---- */

typedef struct {
    int rank;
    tl_onnx_sum sums[TL_MAX_RANK]; /* the extents that there are */
    int64_t most[TL_MAX_RANK];     /* and those that there can be */
} computed_shape;

static computed_shape shape_of(tl_onnx_call *c, const tl_value *v)
{
    computed_shape s = { .rank = v->shape.rank };
    for (int i = 0; i < s.rank; i++) {
        s.sums[i] = tl_sum_of_extent(c->import, v, i);
        s.most[i] = v->shape.dims[i].extent;
    }
    return s;
}

static bool is_counted(const computed_shape *s, int axis)
{
    return !tl_sum_is_constant(&s->sums[axis]);
}

static int64_t elements_of(const computed_shape *s, int from, int to)
{
    int64_t product = 1;
    for (int i = from; i < to; i++)
        if (tl_mul_overflows(product, s->most[i], &product))
            return INT64_MAX;
    return product;
}

/* The largest extents, from the bounds of those that there are. */
static tl_status bound_shape(tl_onnx_call *c, computed_shape *s, int axis)
{
    tl_onnx_bounds b = tl_sum_bounds(c->import, &s->sums[axis]);
    if (!(b.most <= (double)MOST_ELEMENTS))
        return tl_call_unsupported(c,
                                   "extent %d of its result is computed from data, and nothing "
                                   "says that it is at most %d",
                                   axis, MOST_ELEMENTS);
    s->most[axis] = b.most < 0 ? 0 : (int64_t)b.most;
    if (b.least == b.most)
        s->sums[axis] = tl_sum_constant(s->most[axis]);
    else
        s->sums[axis] = tl_sum_max(c, s->sums[axis], tl_sum_constant(0));
    return TL_OK;
}

static tl_status check_size(tl_onnx_call *c, const computed_shape *s)
{
    int64_t elements = 1;
    for (int i = 0; i < s->rank; i++)
        if (s->most[i] > 0 &&
            (tl_mul_overflows(elements, s->most[i], &elements) || elements > MOST_ELEMENTS))
            return tl_call_unsupported(c,
                                       "its result may have more than %d elements: its extents are "
                                       "computed from data",
                                       MOST_ELEMENTS);
    return TL_OK;
}

static tl_value *give_counts(tl_onnx_call *c, tl_value *y, const computed_shape *s)
{
    for (int i = 0; i < s->rank; i++)
        if (is_counted(s, i))
            tl_set_count(c->import, y, i, tl_onnx_emit_sum(c, &s->sums[i]));
    return y;
}

/* What nothing bounds may be computed from inputs whose values are offered; *whole: the operand, which may be one. */
static tl_status decide_terms(tl_onnx_call *c, const tl_onnx_sum *n, tl_value **whole)
{
    for (int i = 0; i < n->count; i++) {
        tl_onnx_sum term = { .count = 1, .terms = { n->terms[i] } };
        tl_onnx_bounds b = tl_sum_bounds(c->import, &term);
        tl_value *v = n->terms[i].value;
        if (isinf(b.most) || isinf(b.least))
            TL_TRY(tl_call_decide(c, &v));
        if (n->terms[i].value == *whole)
            *whole = v;
    }
    return TL_OK;
}

/* An element of an operand that decides extents. */
static tl_status read_sum(tl_onnx_call *c, tl_value **operand, int element, tl_onnx_sum *out)
{
    *out = tl_sum_of(c->import, *operand, element);
    TL_TRY(decide_terms(c, out, operand));
    *out = tl_sum_of(c->import, *operand, element);
    return TL_OK;
}

/* The extents that a vector of numbers says. */
static tl_status read_shape(tl_onnx_call *c, tl_value *v, computed_shape *s)
{
    int64_t rank = tl_shape_elements(&v->shape);
    if (rank < 0 || rank > TL_MAX_RANK || !tl_dtype_is_int(v->dtype))
        return tl_call_unsupported(c, "a result of %lld axes", (long long)rank);
    s->rank = (int)rank;
    for (int i = 0; i < s->rank; i++)
        TL_TRY(read_sum(c, &v, i, &s->sums[i]));
    return TL_OK;
}

/* ---- which calls are of this kind ---- */

/* Whether an operand that decides extents is computed from counts. */
static bool is_computed(tl_onnx_call *c, int input)
{
    tl_value *v = tl_call_input(c, input);
    int64_t count =
        v == NULL || v->data != NULL || !v->dtype_known ? -1 : tl_shape_elements(&v->shape);
    if (count < 1 || count > TL_MAX_RANK * 2)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (tl_sum_is_bounded(c->import, v, i))
            return true;
    return false;
}

/* Whether it stays unknown: it is not computed from inputs of which somebody offers the values, or nobody may ask for them. */
static tl_status is_unknown(tl_onnx_call *c, int input, bool *out)
{
    size_t needed = tl_map_count(c->import->needed);
    *out = false;
    if (tl_call_input(c, input) == NULL)
        return TL_OK;
    TL_TRY(tl_call_decide(c, &c->inputs[input]));
    *out = c->inputs[input]->data == NULL && !c->import->is_open &&
           tl_map_count(c->import->needed) == needed;
    return TL_OK;
}

/* ---- ConstantOfShape, Expand, Size ---- */

static tl_status compute_constant(tl_onnx_call *c)
{
    computed_shape s;
    tl_value *value = tl_onnx_emit_scalar(c, TL_F32, 0);
    if (tl_call_has(c, "value"))
        TL_TRY(tl_import_constant(c, tl_call_tensor(c, "value"), &value));
    if (tl_shape_elements(&value->shape) != 1)
        return tl_call_bad(c, "attribute 'value' has %lld elements, not 1",
                           (long long)tl_shape_elements(&value->shape));
    TL_TRY(read_shape(c, c->inputs[0], &s));
    for (int i = 0; i < s.rank; i++)
        TL_TRY(bound_shape(c, &s, i));
    TL_TRY(check_size(c, &s));
    value = tl_onnx_emit_reshape(c, value, NULL, 0);
    tl_result(c, 0, give_counts(c, tl_onnx_emit_expand(c, value, s.most, s.rank), &s));
    return TL_OK;
}

static tl_status compute_expand(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    computed_shape s, own = shape_of(c, x), to = { 0 };
    TL_TRY(read_shape(c, c->inputs[1], &s));
    int rank = own.rank > s.rank ? own.rank : s.rank;
    to.rank = rank;
    for (int i = rank - 1; i >= 0; i--) {
        int a = i - (rank - own.rank), b = i - (rank - s.rank);
        bool has_own = a >= 0 && !(own.most[a] == 1 && !is_counted(&own, a));
        if (b >= 0)
            TL_TRY(bound_shape(c, &s, b));
        bool is_one = b < 0 || (!is_counted(&s, b) && s.most[b] == 1);
        if (!has_own && b >= 0) {
            to.sums[i] = s.sums[b];
            to.most[i] = s.most[b];
            continue;
        }
        to.sums[i] = a >= 0 ? own.sums[a] : tl_sum_constant(1);
        to.most[i] = a >= 0 ? own.most[a] : 1;
        if (is_one || !has_own)
            continue;
        bool same = tl_sums_are_equal(c->import, &own.sums[a], &s.sums[b]);
        if (!same && is_counted(&own, a) && !is_counted(&s, b) && own.most[a] > 0) {
            x = tl_onnx_emit_spread(c, x, a, s.most[b]);
            to.sums[i] = s.sums[b];
            to.most[i] = s.most[b];
            continue;
        }
        if (!same && (is_counted(&own, a) || !is_counted(&s, b)))
            return tl_call_unsupported(c, "axis %d of its result: two extents that data decide", i);
        if (same && s.most[b] < own.most[a]) { /* less is known of the operand */
            x = tl_onnx_emit_first(c, x, a, s.most[b]);
            to.most[i] = s.most[b];
        }
    }
    TL_TRY(check_size(c, &to));
    c->import->plain_nodes++;
    tl_value *y = tl_onnx_emit_expand(c, x, to.most, rank);
    c->import->plain_nodes--;
    tl_result(c, 0, give_counts(c, y, &to));
    return TL_OK;
}

static tl_status compute_size(tl_onnx_call *c)
{
    computed_shape own = shape_of(c, c->inputs[0]);
    tl_onnx_sum size = tl_sum_constant(1);
    for (int i = 0; i < own.rank; i++)
        size = tl_sum_times(c, size, own.sums[i]);
    tl_result(c, 0, tl_onnx_emit_sum(c, &size));
    return TL_OK;
}

/* ---- Reshape ---- */

/* The element at each position of `to`, whose rows are as long as its sums say, of `x`, whose rows are as long as those of `own`;
 * what lies behind a count is some element or other. */
static tl_value *fetch(tl_onnx_call *c, tl_value *x, const computed_shape *own,
                       const computed_shape *to)
{
    tl_value *place = tl_onnx_emit_scalar(c, TL_I64, 0), *from = tl_onnx_emit_scalar(c, TL_I64, 0);
    tl_onnx_sum stride = tl_sum_constant(1);
    for (int i = to->rank - 1; i >= 0; i--) {
        tl_value *along = tl_onnx_emit_along(c, tl_onnx_emit_range(c, to->most[i]), to->rank, i);
        along = tl_emit2(c, TL_OP_MUL, along, tl_onnx_emit_sum(c, &stride));
        place = tl_emit2(c, TL_OP_ADD, place, along);
        stride = tl_sum_times(c, stride, to->sums[i]);
    }
    int64_t step = 1;
    for (int i = own->rank - 1; i >= 0; i--) {
        tl_onnx_sum extent = tl_sum_max(c, own->sums[i], tl_sum_constant(1));
        tl_value *divisor = tl_onnx_emit_sum(c, &extent);
        tl_value *rest = tl_emit2(c, TL_OP_DIV, place, divisor);
        tl_value *at = tl_emit2(c, TL_OP_SUB, place, tl_emit2(c, TL_OP_MUL, rest, divisor));
        from = tl_emit2(c, TL_OP_ADD, from, tl_onnx_emit_with(c, TL_OP_MUL, at, (double)step));
        step *= own->most[i];
        place = rest;
    }
    int64_t all = elements_of(own, 0, own->rank);
    if (all == 0 || elements_of(to, 0, to->rank) == 0)
        return tl_onnx_emit_expand(c, tl_onnx_emit_scalar(c, x->dtype, 0), to->most, to->rank);
    from = tl_onnx_emit_with(c, TL_OP_MIN, from, (double)(all - 1));
    from = tl_onnx_emit_expand(c, from, to->most, to->rank);
    return tl_onnx_emit_gather(c, TL_OP_GATHER, tl_onnx_emit_reshape(c, x, &all, 1), from, 0);
}

/* Whether elements that there are come first in memory: nothing is counted but behind axes of one element. */
static bool is_front(const computed_shape *s, int from, int to)
{
    while (from < to && s->most[from] == 1 && !is_counted(s, from))
        from++;
    for (int i = from + 1; i < to; i++)
        if (is_counted(s, i))
            return false;
    return true;
}

static bool is_same_axis(tl_onnx_call *c, const computed_shape *a, int i, const computed_shape *b,
                         int k)
{
    return a->most[i] == b->most[k] && tl_sums_are_equal(c->import, &a->sums[i], &b->sums[k]);
}

/* x as `to`, which has as many elements: axes in front and behind that stay stay, between them rows may become longer. */
static tl_value *reshape(tl_onnx_call *c, tl_value *x, const computed_shape *to)
{
    computed_shape own = shape_of(c, x);
    int first = 0, last = 0;
    tl_value *y;
    c->import->plain_nodes++;
    while (first < own.rank && first < to->rank && is_same_axis(c, &own, first, to, first))
        first++;
    while (last < own.rank - first && last < to->rank - first &&
           !is_counted(&own, own.rank - 1 - last) &&
           is_same_axis(c, &own, own.rank - 1 - last, to, to->rank - 1 - last))
        last++;
    if (is_front(&own, first, own.rank - last) && is_front(to, first, to->rank - last)) {
        int64_t middle[3] = { elements_of(&own, 0, first),
                              elements_of(&own, first, own.rank - last),
                              elements_of(&own, own.rank - last, own.rank) };
        y = tl_onnx_emit_reshape(c, x, middle, 3);
        y = tl_onnx_emit_first(c, y, 1, elements_of(to, first, to->rank - last));
        y = tl_onnx_emit_reshape(c, y, to->most, to->rank);
    } else {
        y = fetch(c, x, &own, to);
    }
    c->import->plain_nodes--;
    return give_counts(c, y, to);
}

/* Products of extents, of which some are on both sides of a division. */
typedef struct {
    int64_t constant;
    int count;
    tl_onnx_sum sums[TL_MAX_RANK];
} extents_product;

/* factor * n: a number whose parts have no common divisor. */
static void add_extent(extents_product *p, tl_onnx_sum n)
{
    int64_t divisor = n.constant, product;
    for (int i = 0; i < n.count; i++)
        divisor = tl_gcd(divisor, n.terms[i].factor);
    if (tl_sum_is_constant(&n))
        divisor = n.constant;
    divisor = divisor < 1 ? tl_sum_is_constant(&n) ? 0 : 1 : divisor;
    p->constant = tl_mul_overflows(p->constant, divisor, &product) ? INT64_MAX : product;
    if (tl_sum_is_constant(&n))
        return;
    n.constant /= divisor;
    for (int i = 0; i < n.count; i++)
        n.terms[i].factor /= divisor;
    p->sums[p->count++] = n;
}

static void cancel(tl_onnx_call *c, extents_product *a, extents_product *b)
{
    for (int i = 0; i < a->count; i++)
        for (int k = 0; k < b->count; k++)
            if (tl_sums_are_equal(c->import, &a->sums[i], &b->sums[k])) {
                a->sums[i--] = a->sums[--a->count];
                b->sums[k] = b->sums[--b->count];
                break;
            }
}

static tl_onnx_sum value_of(tl_onnx_call *c, const extents_product *p)
{
    tl_onnx_sum y = tl_sum_constant(p->constant);
    for (int i = 0; i < p->count; i++)
        y = tl_sum_times(c, y, p->sums[i]);
    return y;
}

/* The extent that is what is left of all elements. */
static tl_status infer_extent(tl_onnx_call *c, const computed_shape *own, computed_shape *s,
                              int inferred)
{
    extents_product all = { .constant = 1 }, others = { .constant = 1 };
    for (int i = 0; i < own->rank; i++)
        add_extent(&all, own->sums[i]);
    for (int i = 0; i < s->rank; i++)
        if (i != inferred)
            add_extent(&others, s->sums[i]);
    cancel(c, &all, &others);
    if (others.constant == 0)
        return tl_call_bad(c, "-1 beside an extent of 0");
    if (all.count == 0 && others.count == 0) {
        if (all.constant % others.constant != 0)
            return tl_call_bad(c, "%lld elements in rows of %lld", (long long)all.constant,
                               (long long)others.constant);
        s->sums[inferred] = tl_sum_constant(all.constant / others.constant);
    } else {
        tl_onnx_sum divisor =
            tl_sum_max(c, value_of(c, &others), tl_sum_constant(others.count > 0 ? 1 : 0));
        s->sums[inferred] = tl_sum_quotient(c, value_of(c, &all), divisor);
    }
    TL_TRY(bound_shape(c, s, inferred));
    return TL_OK;
}

static tl_status compute_reshape(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    computed_shape s, own = shape_of(c, x);
    int inferred = -1;
    bool zero_is_zero = tl_call_int(c, "allowzero", 0) != 0;
    TL_TRY(read_shape(c, c->inputs[1], &s));
    for (int i = 0; i < s.rank; i++) {
        bool is_known = tl_sum_is_constant(&s.sums[i]);
        if (is_known && s.sums[i].constant == -1) {
            if (inferred >= 0)
                return tl_call_bad(c, "more than one extent of -1");
            inferred = i;
            continue;
        }
        if (is_known && s.sums[i].constant == 0 && !zero_is_zero) {
            if (i >= own.rank)
                return tl_call_bad(c, "extent %d is that of an axis that is not there", i);
            s.sums[i] = own.sums[i];
            s.most[i] = own.most[i];
            continue;
        }
        if (is_known && s.sums[i].constant < 0)
            return tl_call_bad(c, "an extent of %lld", (long long)s.sums[i].constant);
        TL_TRY(bound_shape(c, &s, i));
    }
    if (inferred >= 0)
        TL_TRY(infer_extent(c, &own, &s, inferred));
    TL_TRY(check_size(c, &s));
    tl_result(c, 0, reshape(c, x, &s));
    return TL_OK;
}

/* Squeeze of counted axes, which have one element whenever the node is taken. */
static tl_status compute_squeeze(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    computed_shape own = shape_of(c, x), to = { 0 };
    bool gone[TL_MAX_RANK] = { false };
    const int64_t *axes = NULL;
    int count = tl_call_input(c, 1) == NULL ? tl_call_ints(c, "axes", &axes) : 0;
    if (tl_call_input(c, 1) != NULL)
        TL_TRY(tl_need_i64(c, 1, &axes, &count));
    for (int i = 0; i < count; i++) {
        int axis;
        TL_TRY(tl_onnx_axis(c, axes[i], own.rank, &axis));
        gone[axis] = true;
    }
    for (int i = 0; count < 0 && i < own.rank; i++) {
        if (is_counted(&own, i))
            return tl_call_unsupported(c,
                                       "the rank of its result: it is for data to say whether "
                                       "axis %d has one element",
                                       i);
        gone[i] = own.most[i] == 1;
    }
    for (int i = 0; i < own.rank; i++) {
        if (gone[i] && !is_counted(&own, i) && own.most[i] != 1)
            return tl_call_bad(c, "axis %d has %lld elements", i, (long long)own.most[i]);
        if (gone[i]) {
            x = tl_onnx_emit_first(c, x, i, 1);
            continue;
        }
        to.sums[to.rank] = own.sums[i];
        to.most[to.rank++] = own.most[i];
    }
    c->import->plain_nodes++;
    tl_value *y = tl_onnx_emit_reshape(c, x, to.most, to.rank);
    c->import->plain_nodes--;
    tl_result(c, 0, give_counts(c, y, &to));
    return TL_OK;
}

/* ---- Slice ---- */

/* A position as Slice counts it, from the end where it is negative, and not behind `most`. */
static tl_onnx_sum place_of(tl_onnx_call *c, tl_onnx_sum at, tl_onnx_sum extent, tl_onnx_sum most)
{
    tl_onnx_bounds b = tl_sum_bounds(c->import, &at);
    if (tl_sum_is_constant(&at) && (double)at.constant > 0x1p60)
        return most;
    if (tl_sum_is_constant(&at) && (double)at.constant < -0x1p60)
        return tl_sum_constant(-1);
    if (b.least < 0) {
        tl_onnx_sum from_end = tl_sum_plus(c, at, extent);
        if (b.most < 0) {
            at = from_end;
        } else {
            tl_value *v = tl_onnx_emit_sum(c, &at);
            at = tl_sum_where(c, tl_onnx_emit_with(c, TL_OP_LESS, v, 0), from_end, at);
        }
    }
    return tl_sum_min(c, at, most);
}

/* Elements of an axis at places that are computed, from 0 on where they are before it and up to the last. */
static tl_value *pick(tl_onnx_call *c, tl_value *x, tl_value *at, int axis)
{
    int64_t last = x->shape.dims[axis].extent - 1;
    if (last < 0)
        return tl_onnx_emit_first(c, x, axis, at->shape.dims[0].extent);
    at = tl_onnx_emit_with(c, TL_OP_MIN, tl_onnx_emit_with(c, TL_OP_MAX, at, 0), (double)last);
    return tl_onnx_emit_gather(c, TL_OP_GATHER, x, at, axis);
}

/* Elements from `start` on to before `end`, as Slice counts them. */
static tl_value *cut(tl_onnx_call *c, tl_value *x, int axis, tl_onnx_sum start, tl_onnx_sum end,
                     int64_t step)
{
    computed_shape s = shape_of(c, x);
    const tl_onnx_sum none = tl_sum_constant(0), extent = s.sums[axis];
    int64_t size = step < 0 ? -step : step, own = s.most[axis];
    tl_onnx_sum count;
    if (step > 0) { /* min(end - start, end - 0): a start before the first element is the first */
        start = place_of(c, start, extent, extent);
        end = tl_sum_max(c, place_of(c, end, extent, extent), none);
        count = tl_sum_min(c, tl_sum_minus(c, end, start), end);
        start = tl_sum_max(c, start, none);
    } else {
        tl_onnx_sum last = tl_sum_minus(c, extent, tl_sum_constant(1));
        start = tl_sum_max(c, place_of(c, start, extent, last), none);
        end = tl_sum_max(c, place_of(c, end, extent, last), tl_sum_constant(-1));
        count = tl_sum_min(c, tl_sum_minus(c, start, end), extent);
    }
    count = tl_sum_max(c, count, none);
    count =
        tl_sum_quotient(c, tl_sum_plus(c, count, tl_sum_constant(size - 1)), tl_sum_constant(size));
    tl_onnx_bounds b = tl_sum_bounds(c->import, &count);
    s.sums[axis] = count;
    s.most[axis] = b.most < (double)own ? (int64_t)fmax(b.most, 0) : own;
    if (b.least == b.most)
        s.sums[axis] = tl_sum_constant(s.most[axis]);
    c->import->plain_nodes++;
    if (tl_sum_is_constant(&start) && step == 1 && start.constant + s.most[axis] <= own) {
        bool is_whole = start.constant == 0 && s.most[axis] == own; /* of which fewer count */
        x = is_whole ? tl_emit1(c, TL_OP_IDENTITY, x)
                     : tl_onnx_emit_slice(c, x, axis, start.constant, s.most[axis]);
    } else {
        tl_value *at = tl_onnx_emit_range(c, s.most[axis]);
        if (step != 1)
            at = tl_onnx_emit_with(c, TL_OP_MUL, at, (double)step);
        x = pick(c, x, tl_emit2(c, TL_OP_ADD, at, tl_onnx_emit_sum(c, &start)), axis);
    }
    c->import->plain_nodes--;
    return give_counts(c, x, &s);
}

static tl_status compute_slice(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *starts = c->inputs[1], *ends = c->inputs[2];
    const int64_t *axes = NULL, *steps = NULL;
    int rank = x->shape.rank, count = (int)tl_shape_elements(&starts->shape), given = -1,
        step_count = -1;
    if (tl_call_input(c, 3) != NULL)
        TL_TRY(tl_need_i64(c, 3, &axes, &given));
    if (tl_call_input(c, 4) != NULL)
        TL_TRY(tl_need_i64(c, 4, &steps, &step_count));
    if (count > rank || tl_shape_elements(&ends->shape) != count ||
        (given >= 0 && given != count) || (step_count >= 0 && step_count != count))
        return tl_call_bad(c, "its starts, ends, axes and steps are not as many as one another");
    for (int i = 0; i < count; i++) {
        int64_t step = step_count >= 0 ? steps[i] : 1;
        int axis;
        TL_TRY(tl_onnx_axis(c, given >= 0 ? axes[i] : i, rank, &axis));
        if (step == 0 || step < -INT32_MAX || step > INT32_MAX)
            return tl_call_bad(c, "a step of %lld", (long long)step);
        x = cut(c, x, axis, tl_sum_of(c->import, starts, i), tl_sum_of(c->import, ends, i), step);
    }
    tl_result(c, 0, x);
    return TL_OK;
}

/* Parts of a counted axis, or of others of what is counted. */
static tl_status compute_split(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *sizes = tl_call_input(c, 1);
    int axis, parts = c->output_count;
    TL_TRY(tl_onnx_axis(c, tl_call_int(c, "axis", 0), x->shape.rank, &axis));
    const int64_t *listed;
    int count = tl_call_ints(c, "split", &listed);
    if (parts < 1 || (sizes != NULL && tl_shape_elements(&sizes->shape) != parts) ||
        (count >= 0 && count != parts))
        return tl_call_bad(c, "its sizes are not %d", parts);
    tl_onnx_sum from = tl_sum_constant(0);
    tl_onnx_sum each = tl_sum_quotient(c,
                                       tl_sum_plus(c, tl_sum_of_extent(c->import, x, axis),
                                                   tl_sum_constant(parts - 1)),
                                       tl_sum_constant(parts));
    for (int i = 0; i < parts; i++) {
        tl_onnx_sum size = sizes != NULL ? tl_sum_of(c->import, sizes, i)
                           : count >= 0  ? tl_sum_constant(listed[i])
                                         : each;
        tl_onnx_sum to = tl_sum_plus(c, from, size);
        tl_result(c, i, cut(c, x, axis, from, to, 1));
        from = to;
    }
    return TL_OK;
}

/* ---- Range, Tile, Pad, TopK ---- */

static tl_status compute_range(tl_onnx_call *c)
{
    computed_shape s = { .rank = 1 };
    tl_dtype dtype = c->inputs[0]->dtype;
    for (int i = 0; i < 3; i++)
        if (tl_shape_elements(&c->inputs[i]->shape) != 1 || !tl_dtype_is_int(dtype) ||
            tl_dtype_size(dtype) < 4)
            return tl_call_unsupported(c, "numbers other than i32 and i64 that data decide");
    tl_onnx_sum start, end, step;
    TL_TRY(read_sum(c, &c->inputs[0], 0, &start));
    TL_TRY(read_sum(c, &c->inputs[1], 0, &end));
    TL_TRY(read_sum(c, &c->inputs[2], 0, &step));
    if (!tl_sum_is_constant(&step) || step.constant == 0 || step.constant < -INT32_MAX ||
        step.constant > INT32_MAX)
        return tl_call_unsupported(c, "a step that data decide");
    int64_t size = step.constant < 0 ? -step.constant : step.constant;
    tl_onnx_sum count =
        step.constant > 0 ? tl_sum_minus(c, end, start) : tl_sum_minus(c, start, end);
    count = tl_sum_max(c, count, tl_sum_constant(0));
    s.sums[0] =
        tl_sum_quotient(c, tl_sum_plus(c, count, tl_sum_constant(size - 1)), tl_sum_constant(size));
    TL_TRY(bound_shape(c, &s, 0));
    TL_TRY(check_size(c, &s));
    tl_value *y = tl_onnx_emit_range(c, s.most[0]);
    if (step.constant != 1)
        y = tl_onnx_emit_with(c, TL_OP_MUL, y, (double)step.constant);
    y = tl_emit2(c, TL_OP_ADD, y, tl_onnx_emit_sum(c, &start));
    y = tl_onnx_emit_cast(c, y, dtype);
    tl_result(c, 0, give_counts(c, y, &s));
    return TL_OK;
}

/* Element i of a tiled axis is element i % extent. */
static tl_status compute_tile(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    computed_shape repeats, s = shape_of(c, x);
    TL_TRY(read_shape(c, c->inputs[1], &repeats));
    if (repeats.rank != s.rank)
        return tl_call_bad(c, "%d repeats for %d axes", repeats.rank, s.rank);
    for (int i = 0; i < s.rank; i++) {
        tl_onnx_sum own = s.sums[i];
        if (tl_sum_is_constant(&repeats.sums[i]) && repeats.sums[i].constant == 1)
            continue;
        s.sums[i] = tl_sum_times(c, own, repeats.sums[i]);
        TL_TRY(bound_shape(c, &s, i));
        TL_TRY(check_size(c, &s));
        tl_onnx_sum divisor = tl_sum_max(c, own, tl_sum_constant(1));
        c->import->plain_nodes++;
        tl_value *range = tl_onnx_emit_range(c, s.most[i]), *by = tl_onnx_emit_sum(c, &divisor);
        tl_value *whole = tl_emit2(c, TL_OP_DIV, range, by);
        tl_value *at = tl_emit2(c, TL_OP_SUB, range, tl_emit2(c, TL_OP_MUL, whole, by));
        x = pick(c, x, at, i);
        c->import->plain_nodes--;
    }
    tl_result(c, 0, give_counts(c, x, &s));
    return TL_OK;
}

static tl_value *magnitude(tl_onnx_call *c, tl_value *x)
{
    return tl_emit2(c, TL_OP_MAX, x, tl_emit1(c, TL_OP_NEG, x));
}

/* Where the elements come from that a pad puts beside `own` ones: the mirror image of a place, or that place once around. */
static tl_value *source_of(tl_onnx_call *c, tl_value *at, const tl_onnx_sum *own, const char *mode)
{
    tl_onnx_sum some = tl_sum_max(c, *own, tl_sum_constant(1));
    tl_value *extent = tl_onnx_emit_sum(c, &some);
    tl_value *last = tl_onnx_emit_with(c, TL_OP_SUB, extent, 1);
    if (strcmp(mode, "edge") == 0)
        return tl_emit2(c, TL_OP_MIN, at, last);
    if (strcmp(mode, "reflect") == 0)
        return tl_emit2(c, TL_OP_SUB, last,
                        magnitude(c, tl_emit2(c, TL_OP_SUB, last, magnitude(c, at))));
    tl_value *around = tl_emit2(c, TL_OP_ADD, at, extent);
    tl_value *whole = tl_emit2(c, TL_OP_DIV, around, extent);
    return tl_emit2(c, TL_OP_SUB, around, tl_emit2(c, TL_OP_MUL, whole, extent));
}

/* Axis by axis: element i of the result is element i - before, where there is one. */
static tl_status compute_pad(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *pads = c->inputs[1], *value = tl_call_input(c, 2);
    computed_shape s = shape_of(c, x);
    const int64_t *axes = NULL;
    int count = s.rank;
    if (tl_call_input(c, 3) != NULL)
        TL_TRY(tl_need_i64(c, 3, &axes, &count));
    const char *mode = tl_call_string(c, "mode", "constant");
    bool is_constant = strcmp(mode, "constant") == 0;
    if (!is_constant && strcmp(mode, "edge") != 0 && strcmp(mode, "reflect") != 0 &&
        strcmp(mode, "wrap") != 0)
        return tl_call_bad(c, "mode '%.40s'", mode);
    if (tl_shape_elements(&pads->shape) != 2 * count)
        return tl_call_bad(c, "%lld pads for %d axes", (long long)tl_shape_elements(&pads->shape),
                           count);
    tl_value *number = value != NULL ? tl_onnx_emit_reshape(c, value, NULL, 0)
                                     : tl_onnx_emit_scalar(c, x->dtype, 0);
    for (int i = 0; i < count; i++) {
        int axis;
        TL_TRY(tl_onnx_axis(c, axes != NULL ? axes[i] : i, s.rank, &axis));
        tl_onnx_sum own = s.sums[axis], none = tl_sum_constant(0), before, after;
        TL_TRY(read_sum(c, &pads, i, &before));
        TL_TRY(read_sum(c, &pads, count + i, &after));
        if (tl_sums_are_equal(c->import, &before, &none) &&
            tl_sums_are_equal(c->import, &after, &none))
            continue;
        s.sums[axis] = tl_sum_plus(c, own, tl_sum_plus(c, before, after));
        TL_TRY(bound_shape(c, &s, axis));
        TL_TRY(check_size(c, &s));
        c->import->plain_nodes++;
        tl_value *at = tl_emit2(c, TL_OP_SUB, tl_onnx_emit_range(c, s.most[axis]),
                                tl_onnx_emit_sum(c, &before));
        tl_value *inside = tl_emit2(c, TL_OP_LESS, at, tl_onnx_emit_sum(c, &own));
        inside = tl_emit2(c, TL_OP_AND, inside,
                          tl_emit1(c, TL_OP_NOT, tl_onnx_emit_with(c, TL_OP_LESS, at, 0)));
        x = pick(c, x, is_constant ? at : source_of(c, at, &own, mode), axis);
        if (is_constant)
            x = tl_onnx_emit_where(c, tl_onnx_emit_along(c, inside, s.rank, axis), x, number);
        c->import->plain_nodes--;
    }
    tl_result(c, 0, give_counts(c, x, &s));
    return TL_OK;
}

/* All in order, of which the first k count. */
static tl_status compute_top_k(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    int axis;
    TL_TRY(tl_onnx_axis(c, tl_call_int(c, "axis", -1), x->shape.rank, &axis));
    if (tl_shape_elements(&c->inputs[1]->shape) != 1)
        return tl_call_bad(c, "k has %lld elements",
                           (long long)tl_shape_elements(&c->inputs[1]->shape));
    tl_onnx_sum extent = tl_sum_of_extent(c->import, x, axis),
                k = tl_sum_of(c->import, c->inputs[1], 0);
    tl_node *n = tl_onnx_emit_node(c, TL_OP_SORT_ORDER, 1, &x);
    tl_attr_set_int(c->graph, n, "axis", axis);
    tl_attr_set_int(c->graph, n, "descending", tl_call_int(c, "largest", 1) != 0);
    tl_value *order = tl_emitted(c, n);
    k = tl_sum_max(c, tl_sum_min(c, k, extent), tl_sum_constant(0));
    order = cut(c, order, axis, tl_sum_constant(0), k, 1);
    tl_result(c, 0, tl_onnx_emit_gather(c, TL_OP_GATHER_ELEMENTS, x, order, axis));
    tl_result(c, 1, order);
    return TL_OK;
}

/* ---- the table ---- */

static const struct {
    const char *op_type;
    int since;             /* the first opset in which the operands are inputs */
    unsigned decide;       /* a bit for each input that decides extents */
    bool looks_at_extents; /* an input 0 that is counted is reason enough */
    bool is_bounded;       /* the result is no larger than input 0: any data may decide */
    tl_importer *import;
} computed[] = {
    { "ConstantOfShape", 9, 1u << 0, false, false, compute_constant },
    { "Expand", 8, 1u << 1, true, false, compute_expand },
    { "Pad", 11, 1u << 1, true, false, compute_pad },
    { "Range", 11, 1u << 0 | 1u << 1, false, false, compute_range },
    { "Reshape", 5, 1u << 1, true, false, compute_reshape },
    { "Size", 1, 0, true, false, compute_size },
    { "Slice", 10, 1u << 1 | 1u << 2, true, true, compute_slice },
    { "Split", 2, 1u << 1, true, false, compute_split },
    { "Squeeze", 1, 0, true, false, compute_squeeze },
    { "Tile", 6, 1u << 1, true, false, compute_tile },
    { "TopK", 10, 1u << 1, false, true, compute_top_k },
};

tl_status tl_find_computed(tl_onnx_call *c, tl_importer **out)
{
    *out = NULL;
    for (size_t i = 0; i < sizeof computed / sizeof *computed; i++) {
        if (strcmp(computed[i].op_type, c->op_type) != 0 || c->version < computed[i].since)
            continue;
        bool is_ours = false;
        for (int k = 0; k < c->input_count; k++)
            if (c->inputs[k] != NULL &&
                (!c->inputs[k]->dtype_known || !tl_shape_is_static(&c->inputs[k]->shape)))
                return TL_OK;
        is_ours = computed[i].looks_at_extents && tl_counts_of(c->import, c->inputs[0]) != NULL;
        for (int k = 0; k < c->input_count; k++)
            is_ours |= (computed[i].decide >> k & 1) != 0 && is_computed(c, k);
        for (int k = 0; computed[i].is_bounded && !is_ours && k < c->input_count; k++)
            if ((computed[i].decide >> k & 1) != 0)
                TL_TRY(is_unknown(c, k, &is_ours));
        if (is_ours)
            *out = computed[i].import;
    }
    return TL_OK;
}

bool tl_takes_counted(const char *op_type)
{
    static const char *const names[] = {
#define COUNTED(name) name,
#include "frontend/import/counted_operators.def"
#undef COUNTED
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], op_type) == 0)
            return true;
    return false;
}
