/* frontend/import/import_values.c: operators whose results have as many elements as data say. Of constants they are
 * evaluated when the model is read; else import_counted.c makes nodes of them whose results are counted.
 *
 * Definitions: ONNX, NonZero-13, Compress-11, Unique-11, NonMaxSuppression-11. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "frontend/import/import_counted.h"
#include "frontend/import/import_rules.h"

static bool is_known(const tl_value *v)
{
    return v->data != NULL || tl_shape_elements(&v->shape) == 0;
}

static double number_at(const tl_value *v, int64_t i)
{
    tl_number n = tl_number_load(v->dtype, v->data, (size_t)i);
    return tl_dtype_is_float(v->dtype) ? n.f
           : v->dtype == TL_U64        ? (double)(uint64_t)n.i
                                       : (double)n.i;
}

static bool is_true(const tl_value *v, int64_t i)
{
    tl_number n = tl_number_load(v->dtype, v->data, (size_t)i);
    return tl_dtype_is_float(v->dtype) ? n.f != 0 : n.i != 0; /* a NaN is not zero */
}

static tl_value *matrix_of(tl_onnx_call *c, const int64_t *values, int64_t rows, int64_t columns)
{
    tl_shape shape = tl_shape_of(2, (int64_t[]){ rows, columns });
    const void *data =
        tl_arena_copy(c->arena, values, sizeof *values * (size_t)(rows * columns), 8);
    const char *name = tl_arena_format(c->arena, "%s.c%d", c->name, c->temporaries++);
    return tl_graph_constant(c->graph, name, TL_I64, &shape, data);
}

/* A column for each element that is not zero: its position. */
tl_status tl_import_non_zero(tl_onnx_call *c)
{
    const tl_value *x = c->inputs[0];
    TL_TRY(tl_need_shape(c, c->inputs[0]));
    if (!is_known(x))
        return tl_count_non_zero(c);
    int rank = x->shape.rank;
    int64_t elements = tl_shape_elements(&x->shape), count = 0;
    for (int64_t i = 0; i < elements; i++)
        count += is_true(x, i);
    int64_t *at = TL_NEW_ARRAY(c->arena, int64_t, rank * count + 1), column = 0;
    for (int64_t i = 0; i < elements; i++) {
        int64_t rest = i;
        if (!is_true(x, i))
            continue;
        for (int a = rank - 1; a >= 0; a--) {
            at[a * count + column] = rest % x->shape.dims[a].extent;
            rest /= x->shape.dims[a].extent;
        }
        column++;
    }
    tl_result(c, 0, matrix_of(c, at, rank, count));
    return TL_OK;
}

/* Slices along the axis, or elements of the whole without one, whose condition is true. */
tl_status tl_import_compress(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    const tl_value *condition = c->inputs[1];
    int axis = 0;
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_shape(c, c->inputs[1]));
    if (!is_known(condition) || tl_counts_of(c->import, x) != NULL)
        return tl_count_compress(c);
    if (tl_call_has(c, "axis"))
        TL_TRY(tl_onnx_axis(c, tl_call_int(c, "axis", 0), x->shape.rank, &axis));
    else
        x = tl_onnx_emit_reshape(c, x, (int64_t[]){ tl_shape_elements(&x->shape) }, 1);
    int64_t count = tl_shape_elements(&condition->shape), kept = 0;
    int64_t *at = TL_NEW_ARRAY(c->arena, int64_t, count + 1);
    if (count > x->shape.dims[axis].extent)
        return tl_call_bad(c, "%lld conditions for %lld elements", (long long)count,
                           (long long)x->shape.dims[axis].extent);
    for (int64_t i = 0; i < count; i++)
        if (is_true(condition, i))
            at[kept++] = i;
    tl_result(c, 0,
              tl_onnx_emit_gather(c, TL_OP_GATHER, x, tl_onnx_emit_i64(c, at, (int)kept), axis));
    return TL_OK;
}

/* ---- Unique ---- */

/* Rows to be told apart: the slices along an axis, each `size` elements, `stride` apart within. */
typedef struct {
    const tl_value *x;
    int64_t count, outer, inner;
} rows_of;

static int compare_rows(const rows_of *r, int64_t a, int64_t b)
{
    for (int64_t o = 0; o < r->outer; o++)
        for (int64_t i = 0; i < r->inner; i++) {
            double x = number_at(r->x, (o * r->count + a) * r->inner + i);
            double y = number_at(r->x, (o * r->count + b) * r->inner + i);
            if (x < y || x > y)
                return x < y ? -1 : 1;
        }
    return 0;
}

/* The distinct rows in the order of their first occurrence, or sorted; in binary search order while they are found. */
typedef struct {
    int64_t *sorted;              /* first occurrences, by value */
    int64_t *first, *of, *counts; /* of each distinct row; `of`: of each row, which */
    int64_t count;
} distinct;

static void find_distinct(tl_onnx_call *c, const rows_of *r, distinct *d)
{
    d->sorted = TL_NEW_ARRAY(c->arena, int64_t, r->count + 1);
    d->first = TL_NEW_ARRAY(c->arena, int64_t, r->count + 1);
    d->counts = TL_NEW_ARRAY(c->arena, int64_t, r->count + 1);
    d->of = TL_NEW_ARRAY(c->arena, int64_t, r->count + 1);
    d->count = 0;
    for (int64_t row = 0; row < r->count; row++) {
        int64_t low = 0, high = d->count;
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (compare_rows(r, d->first[d->sorted[middle]], row) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        if (low == d->count || compare_rows(r, d->first[d->sorted[low]], row) != 0) {
            memmove(d->sorted + low + 1, d->sorted + low,
                    sizeof *d->sorted * (size_t)(d->count - low));
            d->sorted[low] = d->count;
            d->first[d->count++] = row;
        }
        d->of[row] = d->sorted[low];
        d->counts[d->sorted[low]]++;
    }
}

tl_status tl_import_unique(tl_onnx_call *c)
{
    const tl_value *x = c->inputs[0];
    rows_of r = { .outer = 1, .inner = 1 };
    distinct d;
    int axis = 0;
    bool sorts = tl_call_int(c, "sorted", 1) != 0, has_axis = tl_call_has(c, "axis");
    TL_TRY(tl_need_shape(c, c->inputs[0]));
    if (!is_known(x))
        return tl_count_unique(c);
    r.x = x;
    r.count = tl_shape_elements(&x->shape);
    if (has_axis) {
        TL_TRY(tl_onnx_axis(c, tl_call_int(c, "axis", 0), x->shape.rank, &axis));
        r.count = x->shape.dims[axis].extent;
        for (int i = 0; i < x->shape.rank; i++)
            if (i != axis)
                *(i < axis ? &r.outer : &r.inner) *= x->shape.dims[i].extent;
    }
    if (r.count > TL_ONNX_MOST_NUMBERS)
        return tl_call_unsupported(c, "%lld rows, not at most %d", (long long)r.count,
                                   TL_ONNX_MOST_NUMBERS);
    find_distinct(c, &r, &d);
    int64_t *place =
        TL_NEW_ARRAY(c->arena, int64_t, d.count + 1); /* of a distinct row in the result */
    int64_t *first = TL_NEW_ARRAY(c->arena, int64_t, d.count + 1);
    int64_t *counts = TL_NEW_ARRAY(c->arena, int64_t, d.count + 1);
    for (int64_t i = 0; i < d.count; i++) {
        int64_t which = sorts ? d.sorted[i] : i;
        place[which] = i;
        first[i] = d.first[which];
        counts[i] = d.counts[which];
    }
    for (int64_t i = 0; i < r.count; i++)
        d.of[i] = place[d.of[i]];
    tl_value *flat =
        has_axis ? c->inputs[0] : tl_onnx_emit_reshape(c, c->inputs[0], (int64_t[]){ r.count }, 1);
    tl_value *rows = tl_onnx_emit_i64(c, first, (int)d.count);
    tl_result(c, 0, tl_onnx_emit_gather(c, TL_OP_GATHER, flat, rows, axis));
    tl_result(c, 1, rows);
    tl_result(c, 2, tl_onnx_emit_i64(c, d.of, (int)r.count));
    tl_result(c, 3, tl_onnx_emit_i64(c, counts, (int)d.count));
    return TL_OK;
}

/* ---- NonMaxSuppression ---- */

typedef struct {
    double score;
    int64_t box;
} candidate;

/* Larger scores first, equal ones as they stand. */
static int compare_candidates(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->score < y->score || x->score > y->score)
        return x->score > y->score ? -1 : 1;
    return x->box < y->box ? -1 : x->box > y->box;
}

/* Corners of a box, whichever of them the model names first. */
static void corners_of(const tl_value *boxes, int64_t at, bool centered, double out[4])
{
    double n[4];
    for (int i = 0; i < 4; i++)
        n[i] = number_at(boxes, at * 4 + i);
    if (centered) { /* x, y, width, height */
        out[0] = n[1] - n[3] / 2;
        out[1] = n[0] - n[2] / 2;
        out[2] = n[1] + n[3] / 2;
        out[3] = n[0] + n[2] / 2;
        return;
    }
    for (int i = 0; i < 2; i++) {
        out[i] = fmin(n[i], n[2 + i]);
        out[2 + i] = fmax(n[i], n[2 + i]);
    }
}

static double shared_part(const double a[4], const double b[4])
{
    double height = fmin(a[2], b[2]) - fmax(a[0], b[0]),
           width = fmin(a[3], b[3]) - fmax(a[1], b[1]);
    if (height <= 0 || width <= 0)
        return 0;
    double both = height * width;
    double all = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both;
    return all > 0 ? both / all : 0;
}

typedef struct {
    const tl_value *boxes, *scores;
    int64_t count, most; /* boxes; taken of a class, at most */
    double overlap, least;
    bool centered, has_least;
} suppression;

/* Takes boxes of one class of one image; returns how many. `taken` has room for all. */
static int64_t suppress(const suppression *s, int64_t image, int64_t class_start, candidate *queue,
                        int64_t *taken)
{
    int64_t queued = 0, kept = 0;
    for (int64_t i = 0; i < s->count; i++) {
        double score = number_at(s->scores, class_start + i);
        if (!s->has_least || score > s->least)
            queue[queued++] = (candidate){ score, i };
    }
    qsort(queue, (size_t)queued, sizeof *queue, compare_candidates);
    for (int64_t i = 0; i < queued && kept < s->most; i++) {
        double mine[4], its[4];
        bool stays = true;
        corners_of(s->boxes, image * s->count + queue[i].box, s->centered, mine);
        for (int64_t k = 0; stays && k < kept; k++) {
            corners_of(s->boxes, image * s->count + taken[k], s->centered, its);
            stays = !(shared_part(mine, its) > s->overlap);
        }
        if (stays)
            taken[kept++] = queue[i].box;
    }
    return kept;
}

tl_status tl_import_non_max_suppression(tl_onnx_call *c)
{
    suppression s = { .centered = tl_call_int(c, "center_point_box", 0) != 0,
                      .has_least = tl_call_input(c, 4) != NULL };
    double most;
    TL_TRY(tl_need_shape(c, c->inputs[0]));
    TL_TRY(tl_need_shape(c, c->inputs[1]));
    s.boxes = c->inputs[0];
    s.scores = c->inputs[1];
    const tl_dim *b = s.boxes->shape.dims, *p = s.scores->shape.dims;
    if (s.boxes->shape.rank != 3 || s.scores->shape.rank != 3 || b[2].extent != 4 ||
        b[0].extent != p[0].extent || b[1].extent != p[2].extent)
        return tl_call_bad(c, "its boxes and scores do not fit together");
    bool is_static = is_known(s.boxes) && is_known(s.scores);
    for (int i = 2; i < c->input_count; i++)
        is_static &= c->inputs[i] == NULL || is_known(c->inputs[i]);
    if (!is_static)
        return tl_count_suppressed(c);
    TL_TRY(tl_need_scalar(c, 2, 0, &most));
    TL_TRY(tl_need_scalar(c, 3, 0, &s.overlap));
    TL_TRY(tl_need_scalar(c, 4, 0, &s.least));
    s.count = b[1].extent;
    s.most = most > (double)s.count ? s.count : most > 0 ? (int64_t)most : 0;
    int64_t images = b[0].extent, classes = p[1].extent, rows = 0;
    candidate *queue = TL_NEW_ARRAY(c->arena, candidate, s.count + 1);
    int64_t *taken = TL_NEW_ARRAY(c->arena, int64_t, s.count + 1);
    int64_t *out = TL_NEW_ARRAY(c->arena, int64_t, 3 * images * classes * s.most + 1);
    for (int64_t image = 0; image < images; image++)
        for (int64_t class = 0; class < classes; class ++) {
            int64_t kept = suppress(&s, image, (image * classes + class) * s.count, queue, taken);
            for (int64_t i = 0; i < kept; i++, rows++) {
                out[3 * rows] = image;
                out[3 * rows + 1] = class;
                out[3 * rows + 2] = taken[i];
            }
        }
    tl_result(c, 0, matrix_of(c, out, rows, 3));
    return TL_OK;
}
