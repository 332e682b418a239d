/* frontend/import/import_counted.c: operators whose results have as many elements as data say, of what is computed on the way:
 * nodes whose results have the largest shape that there can be, and counts (onnx_counts.h).
 *
 *     NonZero(x)  ->  at = positions of x != 0 (a running sum says where each goes); at / stride % extent, axis by axis
 *     Unique(x)   ->  x in order; where it differs from what is before it, a new one begins
 *
 * NonMaxSuppression is a loop: a turn takes the best box of each class that is left, and what overlaps it goes.
 *
 * Definitions: ONNX, NonZero-13, Compress-11, Unique-11, NonMaxSuppression-11. */
#include <math.h>
#include <string.h>
#include "frontend/import/import_counted.h"
#include "frontend/import/import_rules.h"
#include "frontend/call/onnx_scope.h"

enum { MOST_COLUMNS = 64 }; /* of rows that are put in order */

static tl_value *flat(tl_onnx_call *c, tl_value *x)
{
    return tl_onnx_emit_reshape(c, x, (int64_t[]){ tl_shape_elements(&x->shape) }, 1);
}

static tl_value *is_true(tl_onnx_call *c, tl_value *x)
{
    if (x->dtype == TL_BOOL)
        return x;
    return tl_emit1(c, TL_OP_NOT, tl_emit2(c, TL_OP_EQUAL, x, tl_onnx_emit_scalar(c, x->dtype, 0)));
}

/* a - a / b * b of numbers that are not negative. */
static tl_value *rest(tl_onnx_call *c, tl_value *a, double b)
{
    tl_value *whole = tl_onnx_emit_with(c, TL_OP_DIV, a, b);
    return tl_emit2(c, TL_OP_SUB, a, tl_onnx_emit_with(c, TL_OP_MUL, whole, b));
}

static tl_value *with_axis(tl_onnx_call *c, tl_value *x, int64_t axis)
{
    return tl_onnx_emit_axes(c, TL_OP_UNSQUEEZE, x, 1, &axis);
}

tl_status tl_count_non_zero(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *count, *rows[TL_MAX_RANK];
    int rank = x->shape.rank;
    int64_t stride = tl_shape_elements(&x->shape);
    if (rank == 0)
        return tl_call_unsupported(c, "a single number");
    tl_value *mask = tl_onnx_emit_masked(c, is_true(c, x), 0);
    tl_value *at = tl_onnx_emit_positions(c, flat(c, mask), &count);
    for (int i = 0; i < rank; i++) {
        stride /= x->shape.dims[i].extent;
        tl_value *row = tl_onnx_emit_with(c, TL_OP_DIV, at, (double)stride);
        rows[i] = with_axis(c, rest(c, row, (double)x->shape.dims[i].extent), 0);
    }
    tl_result(c, 0, tl_onnx_emit_concat(c, rank, rows, 0));
    return TL_OK;
}

tl_status tl_count_compress(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *condition = c->inputs[1], *count;
    int axis = 0;
    if (tl_call_has(c, "axis"))
        TL_TRY(tl_onnx_axis(c, tl_call_int(c, "axis", 0), x->shape.rank, &axis));
    else
        x = flat(c, x);
    if (condition->shape.rank != 1 || condition->shape.dims[0].extent > x->shape.dims[axis].extent)
        return tl_call_bad(c, "%lld conditions for %lld elements",
                           (long long)tl_shape_elements(&condition->shape),
                           (long long)x->shape.dims[axis].extent);
    condition = tl_onnx_emit_masked(c, condition, 0);
    tl_value *at = tl_onnx_emit_positions(c, condition, &count);
    tl_result(c, 0, tl_onnx_emit_gather(c, TL_OP_GATHER, x, at, axis));
    return TL_OK;
}

/* ---- Unique ---- */

static tl_value *sort_order(tl_onnx_call *c, tl_value *x)
{
    tl_node *n = tl_onnx_emit_node(c, TL_OP_SORT_ORDER, 1, &x);
    tl_attr_set_int(c->graph, n, "axis", 0);
    tl_attr_set_int(c->graph, n, "descending", 0);
    return tl_emitted(c, n);
}

/* to[at[i]] = from[i]; `at` holds each position once. */
static tl_value *scatter(tl_onnx_call *c, tl_value *at, tl_value *from)
{
    int64_t extent = at->shape.dims[0].extent;
    tl_value *zeros = tl_onnx_emit_expand(c, tl_onnx_emit_scalar(c, TL_I64, 0), &extent, 1);
    tl_value *inputs[] = { zeros, at, from };
    tl_node *n = tl_onnx_emit_node(c, TL_OP_SCATTER_ELEMENTS, 3, inputs);
    tl_attr_set_int(c->graph, n, "axis", 0);
    tl_attr_set_string(c->graph, n, "reduction", "none");
    return tl_emitted(c, n);
}

static tl_value *column_of(tl_onnx_call *c, tl_value *rows, int64_t column)
{
    int64_t second = 1;
    return tl_onnx_emit_axes(c, TL_OP_SQUEEZE, tl_onnx_emit_slice(c, rows, 1, column, 1), 1,
                             &second);
}

/* In which order the rows stand, the first column counting most: sorted by each from the last on, equal ones as they were. */
static tl_value *order_of_rows(tl_onnx_call *c, tl_value *rows)
{
    tl_value *order = NULL;
    for (int64_t column = rows->shape.dims[1].extent - 1; column >= 0; column--) {
        tl_value *key = column_of(c, rows, column);
        if (order == NULL) {
            order = sort_order(c, key);
            continue;
        }
        key = tl_onnx_emit_gather(c, TL_OP_GATHER, key, order, 0);
        order = tl_onnx_emit_gather(c, TL_OP_GATHER, order, sort_order(c, key), 0);
    }
    return order;
}

/* Which of the rows, in order, is another than the one before it. */
static tl_value *begins_new(tl_onnx_call *c, tl_value *sorted)
{
    int64_t extent = sorted->shape.dims[0].extent, second = 1;
    tl_value *before = tl_onnx_emit_with(c, TL_OP_SUB, tl_onnx_emit_range(c, extent), 1);
    before = tl_onnx_emit_with(c, TL_OP_MAX, before, 0);
    tl_value *previous = tl_onnx_emit_gather(c, TL_OP_GATHER, sorted, before, 0);
    tl_value *same = tl_onnx_emit_cast(c, tl_emit2(c, TL_OP_EQUAL, sorted, previous), TL_I32);
    same = tl_onnx_emit_reduce(c, TL_OP_REDUCE_MIN, same, &second, 1, false);
    tl_value *is_first =
        tl_emit2(c, TL_OP_EQUAL, tl_onnx_emit_range(c, extent), tl_onnx_emit_scalar(c, TL_I64, 0));
    tl_value *differs = tl_emit2(c, TL_OP_EQUAL, same, tl_onnx_emit_scalar(c, TL_I32, 0));
    return tl_emit2(c, TL_OP_OR, is_first, differs);
}

/* The rows that are told apart: [rows, columns]. */
static tl_status rows_of(tl_onnx_call *c, int axis, bool has_axis, tl_value **out)
{
    tl_value *x = c->inputs[0];
    int64_t extents[2] = { tl_shape_elements(&x->shape), 1 }, perm[TL_MAX_RANK];
    if (has_axis) {
        for (int i = 0; i < x->shape.rank; i++)
            perm[i] = i == 0 ? axis : i <= axis ? i - 1 : i;
        x = axis == 0 ? x : tl_onnx_emit_transpose(c, x, perm);
        extents[0] = x->shape.dims[0].extent; /* may be 0 */
        for (int i = 1; i < x->shape.rank; i++)
            extents[1] *= x->shape.dims[i].extent;
    }
    if (extents[1] < 1 || extents[1] > MOST_COLUMNS)
        return tl_call_unsupported(c, "rows of %lld elements, which data decide; 1 to %d",
                                   (long long)extents[1], MOST_COLUMNS);
    *out = tl_onnx_emit_reshape(c, x, extents, 2);
    return c->status;
}

tl_status tl_count_unique(tl_onnx_call *c)
{
    bool sorts = tl_call_int(c, "sorted", 1) != 0, has_axis = tl_call_has(c, "axis");
    tl_value *x = c->inputs[0], *rows = NULL, *count;
    int axis = 0;
    if (has_axis)
        TL_TRY(tl_onnx_axis(c, tl_call_int(c, "axis", 0), x->shape.rank, &axis));
    TL_TRY(rows_of(c, axis, has_axis, &rows));
    int64_t extent = rows->shape.dims[0].extent;
    tl_value *order = order_of_rows(c, rows), *range = tl_onnx_emit_range(c, extent);
    tl_value *begins = begins_new(c, tl_onnx_emit_gather(c, TL_OP_GATHER, rows, order, 0));
    tl_value *ones = tl_onnx_emit_cast(c, begins, TL_I64);
    tl_node *n = tl_onnx_emit_node(c, TL_OP_CUMULATE, 1, &ones);
    tl_attr_set_int(c->graph, n, "axis", 0);
    tl_value *which = tl_onnx_emit_with(c, TL_OP_SUB, tl_emitted(c, n), 1);
    tl_value *starts = tl_onnx_emit_positions(c, begins, &count);

    c->import->plain_nodes++; /* all of these are counted alike, and are said to be below */
    tl_value *next = tl_onnx_emit_with(c, TL_OP_ADD, range, 1);
    tl_value *is_inner = tl_emit2(c, TL_OP_LESS, next, count);
    next = tl_onnx_emit_gather(c, TL_OP_GATHER, starts,
                               tl_onnx_emit_with(c, TL_OP_MIN, next, (double)(extent - 1)), 0);
    next = tl_onnx_emit_where(c, is_inner, next, tl_onnx_emit_scalar(c, TL_I64, (double)extent));
    tl_value *sizes = tl_emit2(c, TL_OP_SUB, next, starts);
    tl_value *first = tl_onnx_emit_gather(c, TL_OP_GATHER, order, starts, 0);
    tl_value *inverse = scatter(c, order, which);
    if (!sorts) { /* in the order of their first occurrences */
        tl_value *is_there = tl_emit2(c, TL_OP_LESS, range, count);
        tl_value *key =
            tl_onnx_emit_where(c, is_there, first, tl_onnx_emit_scalar(c, TL_I64, (double)extent));
        tl_value *by_first = sort_order(c, key);
        first = tl_onnx_emit_gather(c, TL_OP_GATHER, first, by_first, 0);
        sizes = tl_onnx_emit_gather(c, TL_OP_GATHER, sizes, by_first, 0);
        inverse = tl_onnx_emit_gather(c, TL_OP_GATHER, scatter(c, by_first, range), inverse, 0);
    }
    tl_value *y = tl_onnx_emit_gather(c, TL_OP_GATHER, has_axis ? x : flat(c, x), first, axis);
    c->import->plain_nodes--;
    tl_set_count(c->import, y, axis, count);
    tl_set_count(c->import, first, 0, count);
    tl_set_count(c->import, sizes, 0, count);
    tl_result(c, 0, y);
    tl_result(c, 1, first);
    tl_result(c, 2, inverse);
    tl_result(c, 3, sizes);
    return TL_OK;
}

/* ---- NonMaxSuppression ---- */

typedef struct {
    tl_value *scores;   /* [images, classes, boxes] */
    tl_value *overlap;  /* one f32 */
    tl_value *edges[4]; /* y, x of one corner and of the other: [images, 1, boxes] */
    tl_value *outputs
        [4]; /* whether there is another turn, what is left, the best, whether there was one */
} suppression;

/* Edges of all boxes, whichever of its corners the model names first. */
static void find_edges(tl_onnx_call *c, suppression *s, bool centered)
{
    tl_value *boxes = c->inputs[0], *n[4];
    int64_t last = 2;
    for (int i = 0; i < 4; i++) {
        n[i] = tl_onnx_emit_axes(c, TL_OP_SQUEEZE, tl_onnx_emit_slice(c, boxes, 2, i, 1), 1, &last);
        n[i] = with_axis(c, n[i], 1);
    }
    for (int i = 0; i < 2; i++) {
        if (centered) { /* x, y, width, height */
            tl_value *half = tl_onnx_emit_with(c, TL_OP_DIV, n[3 - i], 2);
            s->edges[i] = tl_emit2(c, TL_OP_SUB, n[1 - i], half);
            s->edges[2 + i] = tl_emit2(c, TL_OP_ADD, n[1 - i], half);
        } else {
            s->edges[i] = tl_emit2(c, TL_OP_MIN, n[i], n[2 + i]);
            s->edges[2 + i] = tl_emit2(c, TL_OP_MAX, n[i], n[2 + i]);
        }
    }
}

static tl_value *area_of(tl_onnx_call *c, tl_value *const edges[4])
{
    return tl_emit2(c, TL_OP_MUL, tl_emit2(c, TL_OP_SUB, edges[2], edges[0]),
                    tl_emit2(c, TL_OP_SUB, edges[3], edges[1]));
}

/* What two boxes share, not less than nothing, along one side. */
static tl_value *shared_side(tl_onnx_call *c, tl_value *const a[4], tl_value *const b[4], int side)
{
    tl_value *end = tl_emit2(c, TL_OP_MIN, a[2 + side], b[2 + side]);
    tl_value *start = tl_emit2(c, TL_OP_MAX, a[side], b[side]);
    return tl_onnx_emit_with(c, TL_OP_MAX, tl_emit2(c, TL_OP_SUB, end, start), 0);
}

static tl_status read_turn(tl_onnx_call *c, void *context)
{
    suppression *s = context;
    tl_import *im = c->import;
    tl_onnx_region *r = im->region;
    const tl_shape scalar = { .rank = 0 }, *all = &s->scores->shape;
    int64_t extents[3], axes[3] = { 0, 1, 2 };
    tl_value *edges[4], *chosen[4], *turn = tl_graph_value(r->graph, "turn", TL_I64, &scalar);
    tl_value *left = tl_graph_value(r->graph, "left", TL_BOOL, all);
    tl_graph_add_input(r->graph, turn);
    tl_graph_add_input(r->graph, left);
    tl_value *scores = tl_region_capture(im, r, s->scores);
    tl_value *worst = tl_onnx_emit_scalar(c, scores->dtype, -INFINITY);
    tl_value *candidates = tl_onnx_emit_where(c, left, scores, worst);
    tl_node *n = tl_onnx_emit_node(c, TL_OP_ARGMAX, 1, &candidates);
    tl_attr_set_int(c->graph, n, "axis", 2);
    tl_attr_set_int(c->graph, n, "keepdims", 1);
    tl_attr_set_int(c->graph, n, "select_last_index", 0);
    tl_value *best = tl_emitted(c, n);
    tl_value *is_one = tl_onnx_emit_gather(c, TL_OP_GATHER_ELEMENTS, left, best, 2);
    for (int i = 0; i < 3; i++)
        extents[i] = all->dims[i].extent;
    for (int i = 0; i < 4; i++) {
        edges[i] = tl_region_capture(im, r, s->edges[i]);
        chosen[i] = tl_onnx_emit_gather(c, TL_OP_GATHER_ELEMENTS,
                                        tl_onnx_emit_expand(c, edges[i], extents, 3), best, 2);
    }
    tl_value *both =
        tl_emit2(c, TL_OP_MUL, shared_side(c, edges, chosen, 0), shared_side(c, edges, chosen, 1));
    tl_value *either = tl_emit2(c, TL_OP_ADD, area_of(c, edges), area_of(c, chosen));
    either = tl_emit2(c, TL_OP_SUB, either, both);
    /* both / either > overlap, of nothing false */
    tl_value *share = tl_emit2(c, TL_OP_DIV, both, either);
    tl_value *is_some = tl_emit2(c, TL_OP_LESS, tl_onnx_emit_scalar(c, both->dtype, 0), both);
    tl_value *goes =
        tl_emit2(c, TL_OP_GREATER, share,
                 tl_onnx_emit_cast(c, tl_region_capture(im, r, s->overlap), both->dtype));
    goes = tl_emit2(c, TL_OP_AND, goes, is_some);
    tl_value *places = tl_onnx_emit_along(c, tl_onnx_emit_range(c, extents[2]), 3, 2);
    goes = tl_emit2(c, TL_OP_OR, goes, tl_emit2(c, TL_OP_EQUAL, places, best));
    tl_value *stays = tl_emit2(c, TL_OP_AND, left, tl_emit1(c, TL_OP_NOT, goes));
    tl_value *some = tl_onnx_emit_reduce(c, TL_OP_REDUCE_MAX, tl_onnx_emit_cast(c, stays, TL_I32),
                                         axes, 3, false);
    s->outputs[0] = is_true(c, some);
    s->outputs[1] = stays;
    s->outputs[2] = best;
    s->outputs[3] = is_one;
    return TL_OK;
}

/* [turns, images, classes, 1] as a vector in which the turns of a class stand together. */
static tl_value *by_class(tl_onnx_call *c, tl_value *x)
{
    const int64_t perm[4] = { 1, 2, 0, 3 };
    return flat(c, tl_onnx_emit_transpose(c, x, perm));
}

tl_status tl_count_suppressed(tl_onnx_call *c)
{
    suppression s = { .scores = c->inputs[1] };
    tl_onnx_region *r;
    double most;
    const tl_dim *p = s.scores->shape.dims;
    int64_t images = p[0].extent, classes = p[1].extent, boxes = p[2].extent, turns = boxes;
    if (tl_call_input(c, 2) == NULL || tl_shape_elements(&s.scores->shape) == 0) {
        tl_result(c, 0,
                  tl_graph_constant(c->graph, c->name, TL_I64,
                                    &(tl_shape){ .rank = 2, .dims = { { 0 }, { 3 } } }, ""));
        return TL_OK;
    }
    c->import->plain_nodes++; /* what lies behind a count is not left from the beginning */
    find_edges(c, &s, tl_call_int(c, "center_point_box", 0) != 0);
    s.overlap = tl_call_input(c, 3) != NULL ? tl_onnx_emit_reshape(c, c->inputs[3], NULL, 0)
                                            : tl_onnx_emit_scalar(c, TL_F32, 0);
    tl_value *wanted = tl_onnx_emit_reshape(c, tl_onnx_emit_cast(c, c->inputs[2], TL_I64), NULL, 0);
    if (tl_constant_number(c->inputs[2], &most))
        turns = most < 0 ? 0 : most < (double)boxes ? (int64_t)most : boxes;
    else /* a box a turn, at most */
        wanted = tl_onnx_emit_with(c, TL_OP_MIN, wanted, (double)boxes);
    int64_t extents[3] = { images, classes, boxes };
    tl_value *left = tl_onnx_emit_expand(c, tl_onnx_emit_scalar(c, TL_BOOL, 1), extents, 3);
    if (tl_call_input(c, 4) != NULL)
        left = tl_emit2(c, TL_OP_GREATER, s.scores,
                        tl_onnx_emit_cast(c, tl_onnx_emit_reshape(c, c->inputs[4], NULL, 0),
                                          s.scores->dtype));
    left = tl_onnx_emit_and_before(c, left, s.scores);
    if (turns < boxes)
        wanted = tl_onnx_emit_scalar(c, TL_I64, (double)turns);
    else
        wanted = tl_onnx_emit_with(c, TL_OP_MIN, wanted, (double)boxes);
    if (turns == 0)
        turns = 1; /* none is taken, but results have a shape */
    bool is_good =
        images * classes * turns <= TL_ONNX_MOST_NUMBERS && tl_try_region(c, read_turn, &s, &r);
    c->import->plain_nodes--;
    if (!is_good)
        return tl_call_unsupported(c, "boxes that data decide, of this many or of this dtype");
    const tl_onnx_loop l = { .wanted = wanted,
                             .state_count = 1,
                             .states = &left,
                             .has_again = true,
                             .output_count = 4,
                             .outputs = s.outputs,
                             .most = turns };
    tl_value **results = tl_onnx_emit_loop(c, r, &l);
    tl_value *taken = results[3], *count;
    tl_value *is_one =
        tl_emit2(c, TL_OP_AND, results[2],
                 tl_emit2(c, TL_OP_LESS, tl_onnx_emit_along(c, tl_onnx_emit_range(c, turns), 4, 0),
                          taken));
    tl_value *at = tl_onnx_emit_positions(c, by_class(c, is_one), &count), *columns[3];
    columns[0] = tl_onnx_emit_with(c, TL_OP_DIV, at, (double)(classes * turns));
    columns[1] = rest(c, tl_onnx_emit_with(c, TL_OP_DIV, at, (double)turns), (double)classes);
    columns[2] = tl_onnx_emit_gather(c, TL_OP_GATHER, by_class(c, results[1]), at, 0);
    for (int i = 0; i < 3; i++)
        columns[i] = with_axis(c, columns[i], 1);
    tl_result(c, 0, tl_onnx_emit_concat(c, 3, columns, 1));
    return TL_OK;
}
