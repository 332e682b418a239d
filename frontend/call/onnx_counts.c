/* frontend/call/onnx_counts.c: what nodes make of values whose extents data decide. */
#include "frontend/call/onnx_counts.h"
#include <math.h>
#include <string.h>
#include "frontend/node/shape_rules.h"
#include "frontend/call/onnx_emit.h"
#include "frontend/call/onnx_scope.h"
#include "frontend/call/onnx_sums.h"
#include "runtime/base/checked.h"

typedef tl_value *axis_counts[TL_MAX_RANK];

tl_value *const *tl_counts_of(const tl_import *im, const tl_value *v)
{
    if (im->counts == NULL || v == NULL)
        return NULL;
    return tl_map_find(im->counts, tl_value_key(im, v));
}

tl_value *tl_count_at(const tl_import *im, const tl_value *v, int axis)
{
    tl_value *const *counts = tl_counts_of(im, v);
    return counts != NULL && axis >= 0 && axis < v->shape.rank ? counts[axis] : NULL;
}

void tl_set_count(tl_import *im, tl_value *v, int axis, tl_value *count)
{
    if (count == NULL)
        return;
    if (im->counts == NULL)
        im->counts = tl_map_create(im->arena);
    tl_value **counts = (tl_value **)(uintptr_t)tl_counts_of(im, v);
    if (counts == NULL) {
        counts = TL_NEW_ARRAY(im->arena, tl_value *, TL_MAX_RANK);
        tl_map_put(im->counts, tl_value_key(im, v), counts);
    }
    counts[axis] = count;
    tl_set_bounds(im, count, 0, (double)v->shape.dims[axis].extent);
}

bool tl_counts_only_lead(const tl_import *im, tl_value *const *operands, int count, int axes)
{
    for (int i = 0; i < count; i++)
        for (int a = i == 0 ? axes : 0; operands[i] != NULL && a < operands[i]->shape.rank; a++)
            if (tl_count_at(im, operands[i], a) != NULL)
                return false;
    return true;
}

bool tl_counts_are_same(tl_import *im, tl_value *a, tl_value *b)
{
    if (a == b || a == NULL || b == NULL)
        return a == b;
    tl_onnx_sum x = tl_sum_of(im, a, 0), y = tl_sum_of(im, b, 0);
    return tl_sums_are_equal(im, &x, &y);
}

/* ---- masks ---- */

/* Nodes that look at all elements, whatever is counted. */
static void begin_plain(tl_onnx_call *c)
{
    c->import->plain_nodes++;
}

static void end_plain(tl_onnx_call *c)
{
    c->import->plain_nodes--;
}

/* Which positions of the axis are before the count, along `axis` of `rank` axes. */
static tl_value *before_count(tl_onnx_call *c, int64_t extent, tl_value *count, int rank, int axis)
{
    tl_value *positions = tl_onnx_emit_along(c, tl_onnx_emit_range(c, extent), rank, axis);
    int64_t ones[TL_MAX_RANK];
    for (int i = 0; i < rank; i++)
        ones[i] = 1;
    return tl_emit2(c, TL_OP_LESS, positions, tl_onnx_emit_reshape(c, count, ones, rank));
}

static tl_value *mask_axis(tl_onnx_call *c, tl_value *x, int axis, double number)
{
    tl_value *const *counts = tl_counts_of(c->import, x);
    if (counts == NULL || counts[axis] == NULL)
        return x;
    begin_plain(c);
    tl_value *mask = before_count(c, x->shape.dims[axis].extent, counts[axis], x->shape.rank, axis);
    tl_value *y = tl_onnx_emit_where(c, mask, x, tl_onnx_emit_scalar(c, x->dtype, number));
    end_plain(c);
    for (int i = 0; i < x->shape.rank; i++)
        if (i != axis)
            tl_set_count(c->import, y, i, counts[i]);
    return y;
}

tl_value *tl_onnx_emit_masked(tl_onnx_call *c, tl_value *x, double number)
{
    for (int i = 0; i < x->shape.rank; i++)
        x = mask_axis(c, x, i, number);
    return x;
}

/* Which elements are before all counts of `v`: a mask that broadcasts to it. */
static tl_value *before_counts(tl_onnx_call *c, const tl_value *v)
{
    tl_value *mask = NULL, *const *counts = tl_counts_of(c->import, v);
    for (int i = 0; i < v->shape.rank; i++) {
        tl_value *count = counts != NULL ? counts[i] : NULL, *own;
        if (count == NULL)
            continue;
        own = before_count(c, v->shape.dims[i].extent, count, v->shape.rank, i);
        mask = mask != NULL ? tl_emit2(c, TL_OP_AND, mask, own) : own;
    }
    return mask;
}

tl_value *tl_onnx_emit_and_before(tl_onnx_call *c, tl_value *mask, const tl_value *v)
{
    begin_plain(c);
    tl_value *before = before_counts(c, v);
    if (before != NULL)
        mask = tl_emit2(c, TL_OP_AND, mask, before);
    end_plain(c);
    return mask;
}

tl_value *tl_onnx_emit_positions(tl_onnx_call *c, tl_value *mask, tl_value **count)
{
    int64_t extent = mask->shape.dims[0].extent, first = 0;
    if (extent > TL_ONNX_MOST_NUMBERS) {
        tl_status status =
            tl_call_unsupported(c, "positions among %lld elements", (long long)extent);
        c->status = c->status == TL_OK ? status : c->status;
        *count = tl_onnx_emit_scalar(c, TL_I64, 0);
        return tl_onnx_emit_i64(c, NULL, 0);
    }
    tl_value *ones = tl_onnx_emit_cast(c, mask, TL_I64), *range = tl_onnx_emit_range(c, extent);
    tl_node *n = tl_onnx_emit_node(c, TL_OP_CUMULATE, 1, &ones);
    tl_attr_set_int(c->graph, n, "axis", 0);
    tl_value *place = tl_onnx_emit_with(c, TL_OP_SUB, tl_emitted(c, n), 1);
    place = tl_onnx_emit_where(c, mask, place, tl_onnx_emit_scalar(c, TL_I64, (double)extent));
    const int64_t room = extent + 1;
    tl_value *zeros = tl_onnx_emit_expand(c, tl_onnx_emit_scalar(c, TL_I64, 0), &room, 1);
    tl_value *inputs[] = { zeros, place, range };
    n = tl_onnx_emit_node(c, TL_OP_SCATTER_ELEMENTS, 3, inputs);
    tl_attr_set_int(c->graph, n, "axis", 0);
    tl_attr_set_string(c->graph, n, "reduction", "none");
    tl_value *positions = tl_onnx_emit_slice(c, tl_emitted(c, n), 0, 0, extent);
    *count = tl_onnx_emit_reduce(c, TL_OP_REDUCE_SUM, ones, &first, 1, false);
    tl_set_count(c->import, positions, 0, *count);
    return positions;
}

tl_value *tl_onnx_emit_known_extent(tl_onnx_call *c, const tl_value *v, int axis)
{
    tl_value *x = (tl_value *)(uintptr_t)v;
    if (c->graph->kept == NULL)
        return tl_onnx_emit_i64(c, &v->shape.dims[axis].extent, 1);
    begin_plain(c);
    tl_node *n = tl_onnx_emit_node(c, TL_OP_SHAPE, 1, &x);
    tl_attr_set_int(c->graph, n, "start", axis);
    tl_attr_set_int(c->graph, n, "end", axis + 1);
    tl_value *extent = tl_emitted(c, n);
    end_plain(c);
    return extent;
}

tl_value *tl_onnx_emit_count(tl_onnx_call *c, tl_value *count)
{
    return tl_onnx_emit_cast(c, tl_onnx_emit_reshape(c, count, NULL, 0), TL_I64);
}

tl_value *tl_onnx_emit_spread(tl_onnx_call *c, tl_value *x, int axis, int64_t extent)
{
    tl_value *const *counts = tl_counts_of(c->import, x);
    int64_t last = x->shape.dims[axis].extent - 1;
    begin_plain(c);
    tl_value *count = tl_onnx_emit_count(c, counts[axis]);
    tl_value *is_one = tl_onnx_emit_with(c, TL_OP_EQUAL, count, 1);
    tl_value *at = tl_onnx_emit_where(c, is_one, tl_onnx_emit_scalar(c, TL_I64, 0),
                                      tl_onnx_emit_range(c, extent));
    at = tl_onnx_emit_with(c, TL_OP_MIN, at, (double)(last > 0 ? last : 0));
    tl_value *y = tl_onnx_emit_gather(c, TL_OP_GATHER, x, at, axis);
    end_plain(c);
    for (int i = 0; i < x->shape.rank; i++)
        if (i != axis)
            tl_set_count(c->import, y, i, counts[i]);
    return y;
}

/* ---- rules ---- */

int tl_axis_of(const tl_node *n, int64_t otherwise, int rank)
{
    int64_t axis = tl_attr_int(n, "axis", otherwise);
    return (int)(axis < 0 ? axis + rank : axis);
}

static tl_status refuse(tl_onnx_call *c, const tl_node *n)
{
    return tl_call_unsupported(c, "%s along an axis whose extent data decide",
                               tl_op_infos[n->op].text);
}

/* Operands that broadcast: one count an axis, and beside it only extents of 1. */
static tl_status count_elementwise(tl_onnx_call *c, tl_node *n, tl_value **out)
{
    tl_value *y = *out;
    for (int axis = 0; axis < y->shape.rank; axis++) {
        tl_value *count = NULL;
        bool whole = false;
        for (int i = 0; i < n->input_count; i++) {
            const tl_value *x = n->inputs[i];
            int at = x == NULL ? -1 : axis - (y->shape.rank - x->shape.rank);
            if (at < 0)
                continue;
            tl_value *own = tl_count_at(c->import, x, at);
            if (own != NULL && count != NULL && !tl_counts_are_same(c->import, own, count))
                return refuse(c, n);
            count = own != NULL ? own : count;
            whole |= own == NULL && x->shape.dims[at].extent != 1;
        }
        if (count != NULL && whole)
            return refuse(c, n);
        tl_set_count(c->import, y, axis, count);
    }
    return TL_OK;
}

static int64_t product(const tl_shape *s, int from, int to)
{
    int64_t p = 1;
    for (int i = from; i < to; i++)
        p *= s->dims[i].extent;
    return p;
}

/* The axis of y that begins where axis `from` of x does, and holds a multiple of `extent`; -1: none. */
static int find_axis(const tl_value *x, const tl_value *y, int from, int64_t extent)
{
    int64_t before = product(&x->shape, 0, from);
    for (int i = y->shape.rank - 1; i >= 0; i--)
        if (product(&y->shape, 0, i) == before && extent > 0 &&
            y->shape.dims[i].extent % extent == 0 && (y->shape.dims[i].extent > 1 || extent == 1))
            return i;
    return -1;
}

/* The counted axis stays in its place, or takes in axes behind it: it comes first in what it is merged into, for the counted
 * elements stand together then. Of a tensor without elements it may stand anywhere. */
static tl_status count_reshape(tl_onnx_call *c, tl_node *n, tl_value **out)
{
    tl_value *y = *out;
    const tl_value *x = n->inputs[0];
    bool is_empty = product(&x->shape, 0, x->shape.rank) == 0;
    for (int axis = 0; axis < x->shape.rank; axis++) {
        tl_value *count = tl_count_at(c->import, x, axis);
        int64_t extent = x->shape.dims[axis].extent, merged = 1;
        if (count == NULL || extent == 0) /* of at most none there are none */
            continue;
        int first = axis, at = find_axis(x, y, axis, extent);
        while (at < 0 && is_empty && first > 0)
            at = find_axis(x, y, --first, extent);
        if (at < 0)
            return refuse(c, n);
        int64_t times = y->shape.dims[at].extent / extent;
        for (int i = first; i < x->shape.rank && (i <= axis || merged < times); i++) {
            if (i != axis && tl_count_at(c->import, x, i) != NULL)
                return refuse(c, n);
            merged *= i != axis ? x->shape.dims[i].extent : 1;
        }
        if (merged != times)
            return refuse(c, n);
        begin_plain(c);
        if (times > 1)
            count = tl_onnx_emit_with(c, TL_OP_MUL, count, (double)times);
        end_plain(c);
        tl_set_count(c->import, y, at, count);
    }
    return TL_OK;
}

static tl_status count_transpose(tl_onnx_call *c, tl_node *n, tl_value **out)
{
    tl_value *y = *out;
    const int64_t *perm;
    int count = tl_attr_ints(n, "perm", &perm), rank = y->shape.rank;
    for (int i = 0; i < rank; i++)
        tl_set_count(c->import, y, i,
                     tl_count_at(c->import, n->inputs[0],
                                 count == rank ? (int)perm[i] : rank - 1 - i));
    return TL_OK;
}

/* Indices from behind count from the count. */
static void index_before_count(tl_onnx_call *c, tl_node *n, tl_value *count)
{
    tl_value *index = n->inputs[1], *const *counts = tl_counts_of(c->import, index);
    begin_plain(c);
    int64_t one = 1;
    tl_value *wide = tl_onnx_emit_cast(c, index, TL_I64);
    tl_value *end = tl_onnx_emit_reshape(c, count, &one, wide->shape.rank > 0 ? 1 : 0);
    tl_value *negative = tl_emit2(c, TL_OP_LESS, wide, tl_onnx_emit_scalar(c, TL_I64, 0));
    tl_value *from_end = tl_emit2(c, TL_OP_ADD, wide, end);
    tl_value *fixed = tl_onnx_emit_where(c, negative, from_end, wide);
    end_plain(c);
    for (int i = 0; counts != NULL && i < index->shape.rank; i++)
        tl_set_count(c->import, fixed, i, counts[i]);
    tl_node_set_input(n, 1, fixed);
}

static tl_status count_gather(tl_onnx_call *c, tl_node *n, tl_value **out)
{
    tl_value *y = *out;
    const tl_value *x = n->inputs[0], *index = n->inputs[1];
    int axis = tl_axis_of(n, 0, x->shape.rank), width = index->shape.rank;
    tl_value *count = tl_count_at(c->import, x, axis);
    if (count != NULL)
        index_before_count(c, n, count);
    for (int i = 0; i < y->shape.rank; i++)
        tl_set_count(c->import, y, i,
                     i < axis           ? tl_count_at(c->import, x, i)
                     : i < axis + width ? tl_count_at(c->import, n->inputs[1], i - axis)
                                        : tl_count_at(c->import, x, i - width + 1));
    return TL_OK;
}

/* Along other axes an element is fetched from where its index stands: there are at least as many as indices. */
static tl_status count_gather_elements(tl_onnx_call *c, tl_node *n, tl_value **out)
{
    tl_value *y = *out;
    const tl_value *x = n->inputs[0];
    int axis = tl_axis_of(n, 0, x->shape.rank);
    for (int i = 0; i < y->shape.rank; i++)
        tl_set_count(c->import, y, i, tl_count_at(c->import, n->inputs[1], i));
    if (tl_count_at(c->import, x, axis) != NULL)
        index_before_count(c, n, tl_count_at(c->import, x, axis));
    return TL_OK;
}

/* An axis that is counted stays as it is. */
static tl_status count_expand(tl_onnx_call *c, tl_node *n, tl_value **out)
{
    const tl_value *x = n->inputs[0], *y = *out;
    for (int i = 0; i < x->shape.rank; i++)
        if (tl_count_at(c->import, x, i) != NULL &&
            x->shape.dims[i].extent != y->shape.dims[y->shape.rank - x->shape.rank + i].extent)
            return refuse(c, n);
    return count_elementwise(c, n, out);
}

static tl_status count_pad(tl_onnx_call *c, tl_node *n, tl_value **out)
{
    const tl_value *x = n->inputs[0], *y = *out;
    for (int i = 0; i < x->shape.rank; i++) {
        tl_value *count = tl_count_at(c->import, x, i);
        if (count != NULL && x->shape.dims[i].extent != y->shape.dims[i].extent)
            return refuse(c, n);
        tl_set_count(c->import, *out, i, count);
    }
    return TL_OK;
}

/* Where updates would go that lie behind a count: a row that is added to the data, and taken away again. */
static tl_value *scatter_beside(tl_onnx_call *c, tl_node *n, tl_value *indices, int axis)
{
    tl_value *x = n->inputs[0], *y;
    int64_t pads[2 * TL_MAX_RANK] = { 0 };
    pads[x->shape.rank + axis] = 1;
    tl_value *inputs[] = { tl_onnx_emit_pad(c, x, pads, 0), indices, n->inputs[2] };
    tl_node *beside = tl_onnx_emit_node(c, n->op, 3, inputs);
    if (n->op == TL_OP_SCATTER_ELEMENTS)
        tl_attr_set_int(c->graph, beside, "axis", axis);
    tl_attr_set_string(c->graph, beside, "reduction", tl_attr_string(n, "reduction", "none"));
    y = tl_onnx_emit_slice(c, tl_emitted(c, beside), axis, 0, x->shape.dims[axis].extent);
    return y;
}

/* Extents of the data, some of them counts: from its first axis on as many as an index has numbers. */
static tl_value *extents_as_data(tl_onnx_call *c, const tl_value *x, int from, int count)
{
    tl_value *parts[TL_MAX_RANK];
    int64_t one = 1;
    for (int i = 0; i < count; i++) {
        tl_value *own = tl_count_at(c->import, x, from + i);
        parts[i] = own != NULL ? tl_onnx_emit_cast(c, tl_onnx_emit_reshape(c, own, &one, 1), TL_I64)
                               : tl_onnx_emit_known_extent(c, x, from + i);
    }
    return tl_onnx_emit_concat(c, count, parts, 0);
}

/* As GATHER, with an index of several axes. */
static tl_status count_gather_nd(tl_onnx_call *c, tl_node *n, tl_value **out)
{
    tl_value *y = *out, *index = n->inputs[1];
    const tl_value *x = n->inputs[0];
    int last = index->shape.rank - 1, tuple = (int)index->shape.dims[last].extent;
    bool is_counted = false;
    if (tl_attr_int(n, "batch_dims", 0) != 0 || tl_count_at(c->import, index, last) != NULL)
        return refuse(c, n);
    for (int i = 0; i < tuple; i++)
        is_counted |= tl_count_at(c->import, x, i) != NULL;
    if (is_counted) {
        begin_plain(c);
        tl_value *wide = tl_onnx_emit_cast(c, index, TL_I64);
        tl_value *is_negative = tl_onnx_emit_with(c, TL_OP_LESS, wide, 0);
        tl_value *from_end = tl_emit2(c, TL_OP_ADD, wide, extents_as_data(c, x, 0, tuple));
        tl_node_set_input(n, 1, tl_onnx_emit_where(c, is_negative, from_end, wide));
        end_plain(c);
    }
    for (int i = 0; i < y->shape.rank; i++)
        tl_set_count(c->import, y, i,
                     i < last ? tl_count_at(c->import, index, i)
                              : tl_count_at(c->import, x, i - last + tuple));
    return TL_OK;
}

static tl_status count_scatter(tl_onnx_call *c, tl_node *n, tl_value **y)
{
    tl_value *x = n->inputs[0], *indices = n->inputs[1];
    bool is_nd = n->op == TL_OP_SCATTER_ND;
    int rank = indices->shape.rank, axis = is_nd ? 0 : tl_axis_of(n, 0, x->shape.rank);
    int tuple = is_nd ? (int)indices->shape.dims[rank - 1].extent : 1;
    if (is_nd && tl_count_at(c->import, indices, rank - 1) != NULL)
        return refuse(c, n);
    for (int i = 0; i < rank - is_nd; i++)
        if (!tl_counts_are_same(c->import, tl_count_at(c->import, indices, i),
                                tl_count_at(c->import, n->inputs[2], i)))
            return refuse(c, n);
    begin_plain(c);
    tl_value *mask = before_counts(c, indices), *extents = extents_as_data(c, x, axis, tuple);
    tl_value *wide = tl_onnx_emit_cast(c, indices, TL_I64);
    tl_value *is_negative = tl_onnx_emit_with(c, TL_OP_LESS, wide, 0);
    wide = tl_onnx_emit_where(c, is_negative, tl_emit2(c, TL_OP_ADD, wide, extents), wide);
    if (mask != NULL) {
        int64_t *behind = TL_NEW_ARRAY(c->arena, int64_t, tuple);
        behind[0] = x->shape.dims[axis].extent;
        wide = tl_onnx_emit_where(c, mask, wide, tl_onnx_emit_i64(c, behind, tuple));
        *y = scatter_beside(c, n, wide, axis);
    } else {
        tl_node_set_input(n, 1, wide);
    }
    end_plain(c);
    for (int i = 0; i < x->shape.rank; i++)
        tl_set_count(c->import, *y, i, tl_count_at(c->import, x, i));
    return TL_OK;
}

/* Parts one after another: what lies behind their counts is left out by gathering what does not. */
static tl_status count_concat(tl_onnx_call *c, tl_node *n, tl_value **y)
{
    int axis = tl_axis_of(n, 0, (*y)->shape.rank);
    bool counted = false;
    for (int i = 0; i < (*y)->shape.rank; i++) {
        tl_value *count = tl_count_at(c->import, n->inputs[0], i);
        for (int k = 0; k < n->input_count; k++) {
            tl_value *own = tl_count_at(c->import, n->inputs[k], i);
            counted |= i == axis && own != NULL;
            if (i != axis && !tl_counts_are_same(c->import, own, count))
                return refuse(c, n);
        }
        if (i != axis)
            tl_set_count(c->import, *y, i, count);
    }
    if (!counted)
        return TL_OK;
    tl_value *const *others = tl_counts_of(c->import, *y);
    begin_plain(c);
    tl_value *at = tl_onnx_emit_range(c, (*y)->shape.dims[axis].extent), *index = at;
    tl_value *total = tl_onnx_emit_scalar(c, TL_I64, 0), *gap = tl_onnx_emit_scalar(c, TL_I64, 0);
    for (int k = 0; k < n->input_count; k++) {
        tl_value *count = tl_count_at(c->import, n->inputs[k], axis);
        double extent = (double)n->inputs[k]->shape.dims[axis].extent;
        tl_value *own = count != NULL ? tl_onnx_emit_reshape(c, count, NULL, 0)
                                      : tl_onnx_emit_scalar(c, TL_I64, extent);
        total = tl_emit2(c, TL_OP_ADD, total, own);
        if (k + 1 == n->input_count || count == NULL)
            continue;
        gap = tl_emit2(c, TL_OP_ADD, gap,
                       tl_emit2(c, TL_OP_SUB, tl_onnx_emit_scalar(c, TL_I64, extent), own));
        tl_value *before = tl_emit2(c, TL_OP_LESS, at, total);
        index = tl_onnx_emit_where(c, before, index, tl_emit2(c, TL_OP_ADD, at, gap));
    }
    int64_t last = (*y)->shape.dims[axis].extent - 1;
    index = tl_onnx_emit_with(c, TL_OP_MIN, index, (double)(last > 0 ? last : 0));
    tl_value *packed = tl_onnx_emit_gather(c, TL_OP_GATHER, *y, index, axis);
    end_plain(c);
    for (int i = 0; others != NULL && i < packed->shape.rank; i++)
        tl_set_count(c->import, packed, i, others[i]);
    tl_set_count(c->import, packed, axis, total);
    *y = packed;
    return TL_OK;
}

/* A number that counts from the end where it is negative, between 0 and the count. */
static tl_value *clamp_to(tl_onnx_call *c, int64_t number, tl_value *count)
{
    tl_value *n = tl_onnx_emit_scalar(c, TL_I64, 0), *zero = n;
    if (number >= 0)
        return tl_emit2(c, TL_OP_MIN, tl_onnx_emit_i64(c, &number, 1), count);
    if (number < -(1LL << 60))
        return zero;
    n = tl_emit2(c, TL_OP_ADD, tl_onnx_emit_i64(c, &number, 1), count);
    return tl_emit2(c, TL_OP_MAX, n, zero);
}

/* The axis the other way around: what is counted comes first again. */
static tl_status reverse_counted(tl_onnx_call *c, tl_node *n, int axis, tl_value **y)
{
    tl_value *x = n->inputs[0], *count = tl_count_at(c->import, x, axis);
    int64_t one = 1;
    for (int k = 0; k < x->shape.rank; k++)
        if ((*y)->shape.dims[k].extent != x->shape.dims[k].extent)
            return refuse(c, n);
    begin_plain(c);
    tl_value *last = tl_onnx_emit_with(c, TL_OP_SUB, tl_onnx_emit_reshape(c, count, &one, 1), 1);
    tl_value *at = tl_emit2(c, TL_OP_SUB, last, tl_onnx_emit_range(c, x->shape.dims[axis].extent));
    at = tl_onnx_emit_with(c, TL_OP_MAX, at, 0);
    *y = tl_onnx_emit_gather(c, TL_OP_GATHER, x, at, axis);
    end_plain(c);
    for (int k = 0; k < x->shape.rank; k++)
        tl_set_count(c->import, *y, k, tl_count_at(c->import, x, k));
    return TL_OK;
}

static tl_status count_slice(tl_onnx_call *c, tl_node *n, tl_value **y)
{
    const int64_t *lists[4];
    static const char *const names[4] = { "starts", "ends", "axes", "steps" };
    tl_value *x = n->inputs[0], *result = *y;
    int counts[4], rank = x->shape.rank;
    for (int k = 0; k < 4; k++) {
        counts[k] = tl_attr_ints(n, names[k], &lists[k]);
        if (counts[k] < 0 && k + 1 < n->input_count && n->inputs[k + 1] != NULL) {
            counts[k] = tl_constant_i64(c->arena, n->inputs[k + 1], &lists[k]);
            if (counts[k] < 0)
                return refuse(c, n);
        }
    }
    int64_t starts[TL_MAX_RANK], ends[TL_MAX_RANK];
    bool cut[TL_MAX_RANK] = { false };
    for (int i = 0; i < counts[0]; i++) {
        int64_t axis = counts[2] >= 0 ? lists[2][i] : i;
        axis += axis < 0 ? rank : 0;
        if (tl_count_at(c->import, x, (int)axis) == NULL)
            continue;
        if (counts[0] == 1 && counts[1] == 1 && counts[3] == 1 && lists[3][0] == -1 &&
            lists[0][0] == -1 && lists[1][0] < -(1LL << 60))
            return reverse_counted(c, n, (int)axis, y);
        if ((counts[3] >= 0 && lists[3][i] != 1) || i >= counts[1])
            return refuse(c, n);
        cut[axis] = lists[0][i] != 0 || lists[1][i] < x->shape.dims[axis].extent;
        starts[axis] = lists[0][i];
        ends[axis] = lists[1][i];
    }
    for (int axis = 0; axis < rank; axis++) {
        tl_value *count = tl_count_at(c->import, x, axis);
        if (count == NULL || !cut[axis]) {
            tl_set_count(c->import, result, axis, count);
            continue;
        }
        /* from the end: where that is, is not known before */
        if (starts[axis] < 0) {
            if (ends[axis] >= 0 && ends[axis] < x->shape.dims[axis].extent)
                return refuse(c, n);
            for (int k = 0; k < rank; k++)
                if (k != axis && result->shape.dims[k].extent != x->shape.dims[k].extent)
                    return refuse(c, n);
            begin_plain(c);
            count = tl_onnx_emit_reshape(c, count, (int64_t[]){ 1 }, 1);
            tl_value *from = clamp_to(c, starts[axis], count), *to = clamp_to(c, ends[axis], count);
            tl_value *range = tl_onnx_emit_range(c, result->shape.dims[axis].extent);
            tl_value *at = tl_emit2(c, TL_OP_ADD, range, from);
            at = tl_onnx_emit_with(c, TL_OP_MIN, at, (double)(x->shape.dims[axis].extent - 1));
            tl_value *packed = tl_onnx_emit_gather(c, TL_OP_GATHER, x, at, axis);
            count = tl_emit2(c, TL_OP_MAX, tl_emit2(c, TL_OP_SUB, to, from),
                             tl_onnx_emit_scalar(c, TL_I64, 0));
            end_plain(c);
            for (int k = 0; k < rank; k++)
                if (k != axis)
                    tl_set_count(c->import, packed, k, tl_count_at(c->import, x, k));
            tl_set_count(c->import, packed, axis, count);
            *y = packed;
            return TL_OK;
        }
        begin_plain(c);
        count = tl_onnx_emit_reshape(c, count, (int64_t[]){ 1 }, 1);
        tl_value *from = clamp_to(c, starts[axis], count), *to = clamp_to(c, ends[axis], count);
        count = tl_emit2(c, TL_OP_MAX, tl_emit2(c, TL_OP_SUB, to, from),
                         tl_onnx_emit_scalar(c, TL_I64, 0));
        end_plain(c);
        tl_set_count(c->import, result, axis, count);
    }
    return TL_OK;
}

/* The number that a reduction does not see. */
static double neutral(tl_op op, tl_dtype dtype)
{
    bool is_float = tl_dtype_is_float(dtype);
    const tl_dtype_info *info = &tl_dtype_infos[dtype];
    if (op == TL_OP_REDUCE_MAX || op == TL_OP_ARGMAX)
        return is_float ? -INFINITY : info->least;
    if (op == TL_OP_REDUCE_MIN)
        return is_float ? INFINITY : info->largest;
    return op == TL_OP_REDUCE_PROD;
}

/* Along counted axes what lies behind is masked; the mean is that of so many. */
static tl_status count_reduce(tl_onnx_call *c, tl_node *n, tl_value **y)
{
    tl_value *x = n->inputs[0], *masked = x, *how_many = NULL;
    const int64_t *axes;
    bool reduced[TL_MAX_RANK] = { false }, keeps = tl_attr_int(n, "keepdims", 1) != 0;
    int rank = x->shape.rank, axis_count = tl_attr_ints(n, "axes", &axes), at = 0;
    bool is_one = n->op == TL_OP_ARGMAX;
    if (axis_count < 0 && n->input_count > 1 && n->inputs[1] != NULL)
        axis_count = tl_constant_i64(c->arena, n->inputs[1], &axes);
    for (int i = 0; i < rank; i++)
        reduced[i] = is_one ? i == tl_axis_of(n, 0, rank) : axis_count <= 0;
    for (int i = 0; !is_one && i < axis_count; i++)
        reduced[axes[i] < 0 ? axes[i] + rank : axes[i]] = true;
    for (int i = 0; i < rank; i++) {
        tl_value *count = reduced[i] ? tl_count_at(c->import, x, i) : NULL;
        if (count == NULL)
            continue;
        if (n->op == TL_OP_REDUCE_MEAN) {
            begin_plain(c);
            count = tl_onnx_emit_cast(c, tl_onnx_emit_reshape(c, count, NULL, 0), x->dtype);
            double extent = (double)x->shape.dims[i].extent;
            count = tl_emit2(c, TL_OP_DIV, tl_onnx_emit_scalar(c, x->dtype, extent), count);
            how_many = how_many != NULL ? tl_emit2(c, TL_OP_MUL, how_many, count) : count;
            end_plain(c);
        }
        masked = mask_axis(c, masked, i, neutral(n->op, x->dtype));
    }
    tl_node_set_input(n, 0, masked);
    if (how_many != NULL) {
        begin_plain(c);
        *y = tl_emit2(c, TL_OP_MUL, *y, how_many);
        end_plain(c);
    }
    for (int i = 0; i < rank; i++) {
        if (!reduced[i])
            tl_set_count(c->import, *y, at, tl_count_at(c->import, x, i));
        at += !reduced[i] || keeps;
    }
    return TL_OK;
}

/* An operator that keeps the shape and looks along one axis. */
static tl_status count_along(tl_onnx_call *c, tl_node *n, tl_value *y, double behind)
{
    tl_value *x = n->inputs[0];
    int axis = tl_axis_of(n, n->op == TL_OP_CUMULATE ? 0 : -1, x->shape.rank);
    tl_node_set_input(n, 0, mask_axis(c, x, axis, behind));
    for (int i = 0; i < x->shape.rank; i++)
        tl_set_count(c->import, y, i, tl_count_at(c->import, x, i));
    return TL_OK;
}

static tl_status count_softmax(tl_onnx_call *c, tl_node *n, tl_value **out)
{
    return count_along(c, n, *out, -INFINITY);
}

static tl_status count_cumulate(tl_onnx_call *c, tl_node *n, tl_value **out)
{
    return count_along(c, n, *out, strcmp(tl_attr_string(n, "by", "sum"), "product") == 0);
}

/* What lies behind comes last. */
static tl_status count_sort(tl_onnx_call *c, tl_node *n, tl_value **out)
{
    tl_op end = tl_attr_int(n, "descending", 0) != 0 ? TL_OP_REDUCE_MAX : TL_OP_REDUCE_MIN;
    return count_along(c, n, *out, neutral(end, n->inputs[0]->dtype));
}

/* The axis of sums is masked in both operands: what lies behind may be infinite. A vector is a row, or a column. */
static tl_status count_product(tl_onnx_call *c, tl_node *n, tl_value **out)
{
    tl_value *y = *out, *a = n->inputs[0], *b = n->inputs[1];
    int ranks[2] = { a->shape.rank, b->shape.rank }, axes = y->shape.rank;
    int inner[2] = { ranks[0] - 1, ranks[1] > 1 ? ranks[1] - 2 : 0 };
    if (ranks[1] > 1)
        tl_set_count(c->import, y, --axes, tl_count_at(c->import, b, ranks[1] - 1));
    if (ranks[0] > 1)
        tl_set_count(c->import, y, --axes, tl_count_at(c->import, a, ranks[0] - 2));
    for (int i = 0; i < axes; i++) { /* batches */
        int at_a = i - (axes - (ranks[0] - 2)), at_b = i - (axes - (ranks[1] - 2));
        tl_value *of_a = at_a >= 0 ? tl_count_at(c->import, a, at_a) : NULL;
        tl_value *of_b = at_b >= 0 ? tl_count_at(c->import, b, at_b) : NULL;
        bool a_is_one = at_a < 0 || (of_a == NULL && a->shape.dims[at_a].extent == 1);
        bool b_is_one = at_b < 0 || (of_b == NULL && b->shape.dims[at_b].extent == 1);
        if (!tl_counts_are_same(c->import, of_a, of_b) && !a_is_one && !b_is_one)
            return refuse(c, n);
        tl_set_count(c->import, y, i, of_a != NULL ? of_a : of_b);
    }
    tl_node_set_input(n, 0, mask_axis(c, a, inner[0], 0));
    tl_node_set_input(n, 1, mask_axis(c, b, inner[1], 0));
    return TL_OK;
}

/* Rows that nobody mixes: only the batch may be counted, and nothing else of the operands. */
static tl_status count_batch(tl_onnx_call *c, tl_node *n, tl_value *y, int axes)
{
    if (!tl_counts_only_lead(c->import, n->inputs, n->input_count, axes))
        return refuse(c, n);
    for (int a = 0; a < axes; a++)
        tl_set_count(c->import, y, a, tl_count_at(c->import, n->inputs[0], a));
    return TL_OK;
}

static tl_status count_rows(tl_onnx_call *c, tl_node *n, tl_value **out)
{
    return n->op == TL_OP_GEMM && tl_attr_int(n, "transA", 0) != 0 ? refuse(c, n)
                                                                   : count_batch(c, n, *out, 1);
}

static tl_status count_layer_norm(tl_onnx_call *c, tl_node *n, tl_value **out)
{
    return count_batch(c, n, *out, tl_axis_of(n, -1, n->inputs[0]->shape.rank));
}

/* The extents, some of them counts. */
static tl_value *counted_shape(tl_onnx_call *c, const tl_node *n)
{
    const tl_value *x = n->inputs[0];
    int rank = x->shape.rank;
    int64_t start = tl_attr_int(n, "start", 0), end = tl_attr_int(n, "end", rank), one = 1;
    tl_value *parts[TL_MAX_RANK];
    int count = 0;
    start += start < 0 ? rank : 0;
    end += end < 0 ? rank : 0;
    begin_plain(c);
    for (int64_t i = start < 0 ? 0 : start; i < (end < rank ? end : rank); i++) {
        tl_value *own = tl_count_at(c->import, x, (int)i);
        parts[count++] = own != NULL ? tl_onnx_emit_reshape(c, own, &one, 1)
                                     : tl_onnx_emit_known_extent(c, x, (int)i);
    }
    tl_value *y = count > 0 ? tl_onnx_emit_concat(c, count, parts, 0) : n->outputs[0];
    end_plain(c);
    return y;
}

/* Operators that look at counted axes in their own way; elementwise ones that are not here look at one element of each. */
static const struct {
    tl_op op;
    tl_status (*rule)(tl_onnx_call *c, tl_node *n, tl_value **out);
} rules[] = {
    { TL_OP_RESHAPE, count_reshape },
    { TL_OP_FLATTEN, count_reshape },
    { TL_OP_SQUEEZE, count_reshape },
    { TL_OP_UNSQUEEZE, count_reshape },
    { TL_OP_TRANSPOSE, count_transpose },
    { TL_OP_GATHER, count_gather },
    { TL_OP_GATHER_ELEMENTS, count_gather_elements },
    { TL_OP_GATHER_ND, count_gather_nd },
    { TL_OP_CONCAT, count_concat },
    { TL_OP_EXPAND, count_expand },
    { TL_OP_PAD, count_pad },
    { TL_OP_SCATTER_ELEMENTS, count_scatter },
    { TL_OP_SCATTER_ND, count_scatter },
    { TL_OP_SLICE, count_slice },
    { TL_OP_REDUCE_SUM, count_reduce },
    { TL_OP_REDUCE_MEAN, count_reduce },
    { TL_OP_REDUCE_MAX, count_reduce },
    { TL_OP_REDUCE_MIN, count_reduce },
    { TL_OP_REDUCE_PROD, count_reduce },
    { TL_OP_ARGMAX, count_reduce },
    { TL_OP_SOFTMAX, count_softmax },
    { TL_OP_CUMULATE, count_cumulate },
    { TL_OP_SORT_ORDER, count_sort },
    { TL_OP_MATMUL, count_product },
    { TL_OP_GEMM, count_rows },
    { TL_OP_CONV, count_rows },
    { TL_OP_MAX_POOL, count_rows },
    { TL_OP_AVERAGE_POOL, count_rows },
    { TL_OP_GLOBAL_AVERAGE_POOL, count_rows },
    { TL_OP_BATCH_NORM, count_rows },
    { TL_OP_LAYER_NORM, count_layer_norm },
};

tl_status tl_count_result(tl_onnx_call *c, tl_node *n, tl_value **y)
{
    bool counted = false;
    if (c->import->counts == NULL || c->import->plain_nodes > 0)
        return TL_OK;
    for (int i = 0; i < n->input_count; i++)
        counted |= n->inputs[i] != NULL && tl_counts_of(c->import, n->inputs[i]) != NULL;
    if (!counted)
        return TL_OK;
    if (n->op == TL_OP_SHAPE) {
        *y = counted_shape(c, n);
        return TL_OK;
    }
    if (!tl_shape_is_static(&(*y)->shape) || n->output_count != 1)
        return refuse(c, n);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].op == n->op)
            return rules[i].rule(c, n, y);
    return tl_is_elementwise(n) ? count_elementwise(c, n, y) : refuse(c, n);
}

tl_value *tl_onnx_emit_first(tl_onnx_call *c, tl_value *x, int axis, int64_t extent)
{
    int64_t pads[2 * TL_MAX_RANK] = { 0 }, own = x->shape.dims[axis].extent;
    pads[x->shape.rank + axis] = extent - own;
    c->import->plain_nodes++;
    x = own >= extent ? tl_onnx_emit_slice(c, x, axis, 0, extent) : tl_onnx_emit_pad(c, x, pads, 0);
    c->import->plain_nodes--;
    return x;
}
