/* frontend/import/import_sample.c: elements at positions that are computed: grids, regions of interest, deformed windows.
 *
 * A sample is a sum over the whole positions around it, each an element of the flattened image times a weight. Positions are
 * [N, P] for an image [N, C, ...]; the result is [N, C, P]. Definitions: ONNX, GridSample-22, RoiAlign-22, DeformConv-22. */
#include <math.h>
#include <string.h>
#include "frontend/import/import_rules.h"
#include "frontend/call/onnx_counts.h"
#include "frontend/call/onnx_scope.h"

enum { MOST_SPATIAL = 3, MOST_TAPS = 4 };

typedef enum { OUTSIDE_ZERO, OUTSIDE_BORDER, OUTSIDE_REFLECTED } outside;

/* The whole positions around a position along one axis, and their weights. */
typedef struct {
    int count;
    tl_value *position[MOST_TAPS], *weight[MOST_TAPS]; /* i64 and float, [N, P]; weight NULL: 1 */
    tl_value *inside[MOST_TAPS];                       /* bool; NULL: always */
} axis_taps;

static tl_value *with(tl_onnx_call *c, tl_op op, tl_value *x, double number)
{
    return tl_onnx_emit_with(c, op, x, number);
}

static tl_value *clamp(tl_onnx_call *c, tl_value *x, double low, double high)
{
    return with(c, TL_OP_MIN, with(c, TL_OP_MAX, x, low), high);
}

/* Mirrored at both ends until it lies between them. */
static tl_value *reflect(tl_onnx_call *c, tl_value *x, double low, double high)
{
    double range = high - low;
    if (range <= 0)
        return with(c, TL_OP_ADD, with(c, TL_OP_MUL, x, 0), low);
    tl_value *t = with(c, TL_OP_SUB, x, low);
    tl_value *periods = tl_emit1(c, TL_OP_FLOOR, with(c, TL_OP_DIV, t, 2 * range));
    t = tl_emit2(c, TL_OP_SUB, t, with(c, TL_OP_MUL, periods, 2 * range));
    tl_value *back = tl_emit2(c, TL_OP_SUB, tl_onnx_emit_scalar(c, x->dtype, 2 * range), t);
    return with(c, TL_OP_ADD, tl_emit2(c, TL_OP_MIN, t, back), low);
}

static tl_value *bring_inside(tl_onnx_call *c, outside rule, tl_value *x, int64_t extent,
                              bool aligned)
{
    double last = (double)(extent - 1), margin = aligned ? 0 : 0.5;
    if (rule == OUTSIDE_BORDER)
        return clamp(c, x, 0, last);
    return rule == OUTSIDE_REFLECTED ? reflect(c, x, -margin, last + margin) : x;
}

/* Between the last pixel's centre and its edge a position stays where it is: not so the four pixels that a cubic reads. */
static tl_value *bring_to_border(tl_onnx_call *c, tl_value *x, int64_t extent, bool aligned)
{
    double last = (double)(extent - 1), margin = aligned ? 0 : 0.5;
    tl_value *is_inside = tl_emit2(c, TL_OP_AND, with(c, TL_OP_GREATER_OR_EQUAL, x, -margin),
                                   with(c, TL_OP_LESS_OR_EQUAL, x, last + margin));
    return tl_onnx_emit_where(c, is_inside, x, clamp(c, x, 0, last));
}

/* Tap `whole` (a float that is a whole number), weighed. */
static void add_tap(tl_onnx_call *c, axis_taps *taps, outside rule, tl_value *whole,
                    tl_value *weight, int64_t extent, bool aligned)
{
    double last = (double)(extent - 1);
    int i = taps->count++;
    if (rule == OUTSIDE_ZERO)
        taps->inside[i] = tl_emit2(c, TL_OP_AND, with(c, TL_OP_GREATER_OR_EQUAL, whole, 0),
                                   with(c, TL_OP_LESS_OR_EQUAL, whole, last));
    else
        whole = bring_inside(c, rule, whole, extent, aligned);
    taps->position[i] = tl_onnx_emit_cast(c, clamp(c, whole, 0, last), TL_I64);
    taps->weight[i] = weight;
}

/* (1-d, d) of the two around x. */
static void linear_taps(tl_onnx_call *c, axis_taps *taps, outside rule, tl_value *x, int64_t extent,
                        bool aligned)
{
    tl_value *low = tl_emit1(c, TL_OP_FLOOR, x), *d = tl_emit2(c, TL_OP_SUB, x, low);
    tl_value *rest = tl_emit2(c, TL_OP_SUB, tl_onnx_emit_scalar(c, x->dtype, 1), d);
    add_tap(c, taps, rule, low, rest, extent, aligned);
    add_tap(c, taps, rule, with(c, TL_OP_ADD, low, 1), d, extent, aligned);
}

/* The cubic convolution's weight at distance t: near (below 1) or far (below 2), a = -0.75. */
static tl_value *cubic_weight(tl_onnx_call *c, tl_value *t, bool is_near)
{
    const double a = -0.75;
    tl_value *y;
    if (is_near) {
        y = with(c, TL_OP_SUB, with(c, TL_OP_MUL, t, a + 2), a + 3);
        y = tl_emit2(c, TL_OP_MUL, tl_emit2(c, TL_OP_MUL, y, t), t);
        return with(c, TL_OP_ADD, y, 1);
    }
    y = with(c, TL_OP_SUB, with(c, TL_OP_MUL, t, a), 5 * a);
    y = with(c, TL_OP_ADD, tl_emit2(c, TL_OP_MUL, y, t), 8 * a);
    return with(c, TL_OP_SUB, tl_emit2(c, TL_OP_MUL, y, t), 4 * a);
}

static void cubic_taps(tl_onnx_call *c, axis_taps *taps, outside rule, tl_value *x, int64_t extent,
                       bool aligned)
{
    tl_value *low = tl_emit1(c, TL_OP_FLOOR, x), *d = tl_emit2(c, TL_OP_SUB, x, low);
    for (int k = -1; k <= 2; k++) {
        tl_value *t = k <= 0 ? with(c, TL_OP_SUB, d, k)
                             : tl_emit2(c, TL_OP_SUB, tl_onnx_emit_scalar(c, x->dtype, k), d);
        add_tap(c, taps, rule, with(c, TL_OP_ADD, low, k), cubic_weight(c, t, k == 0 || k == 1),
                extent, aligned);
    }
}

/* One combination of taps: the element there times the product of weights, [N, C, P]. */
static tl_value *take(tl_onnx_call *c, tl_value *flat, int spatial, const int64_t *extents,
                      const axis_taps *taps, const int *chosen)
{
    tl_value *position = NULL, *weight = NULL, *inside = NULL;
    const int64_t channel[] = { 1 };
    for (int i = 0; i < spatial; i++) {
        const axis_taps *t = &taps[i];
        int k = chosen[i];
        position = position == NULL
                       ? t->position[k]
                       : tl_emit2(c, TL_OP_ADD, with(c, TL_OP_MUL, position, (double)extents[i]),
                                  t->position[k]);
        if (t->weight[k] != NULL)
            weight = weight == NULL ? t->weight[k] : tl_emit2(c, TL_OP_MUL, weight, t->weight[k]);
        if (t->inside[k] != NULL)
            inside = inside == NULL ? t->inside[k] : tl_emit2(c, TL_OP_AND, inside, t->inside[k]);
    }
    int64_t wide[] = { flat->shape.dims[0].extent, flat->shape.dims[1].extent,
                       position->shape.dims[1].extent };
    position = tl_onnx_emit_expand(c, tl_onnx_emit_axes(c, TL_OP_UNSQUEEZE, position, 1, channel),
                                   wide, 3);
    tl_value *y = tl_onnx_emit_gather(c, TL_OP_GATHER_ELEMENTS, flat, position, 2);
    if (inside != NULL)
        y = tl_onnx_emit_where(c, tl_onnx_emit_axes(c, TL_OP_UNSQUEEZE, inside, 1, channel), y,
                               tl_onnx_emit_scalar(c, y->dtype, 0));
    if (weight != NULL)
        y = tl_emit2(c, TL_OP_MUL, y, tl_onnx_emit_axes(c, TL_OP_UNSQUEEZE, weight, 1, channel));
    return y;
}

/* All combinations of taps: added up, or the largest of them. */
static tl_value *sample(tl_onnx_call *c, tl_value *x, const axis_taps *taps, tl_op combine)
{
    int spatial = x->shape.rank - 2, chosen[MOST_SPATIAL] = { 0 };
    int64_t extents[MOST_SPATIAL], pixels = 1;
    tl_value *sum = NULL;
    for (int i = 0; i < spatial; i++) {
        extents[i] = x->shape.dims[2 + i].extent;
        pixels *= extents[i];
    }
    x = tl_onnx_emit_reshape(
        c, x, (int64_t[]){ x->shape.dims[0].extent, x->shape.dims[1].extent, pixels }, 3);
    for (bool more = true; more;) {
        tl_value *y = take(c, x, spatial, extents, taps, chosen);
        sum = sum == NULL ? y : tl_emit2(c, combine, sum, y);
        int i = spatial - 1;
        while (i >= 0 && ++chosen[i] == taps[i].count)
            chosen[i--] = 0;
        more = i >= 0;
    }
    return sum;
}

/* ---- GridSample ---- */

static tl_status read_outside(tl_onnx_call *c, outside *out)
{
    const char *mode = tl_call_string(c, "padding_mode", "zeros");
    *out = strcmp(mode, "border") == 0       ? OUTSIDE_BORDER
           : strcmp(mode, "reflection") == 0 ? OUTSIDE_REFLECTED
                                             : OUTSIDE_ZERO;
    return *out != OUTSIDE_ZERO || strcmp(mode, "zeros") == 0
               ? TL_OK
               : tl_call_bad(c, "padding_mode '%.40s'", mode);
}

tl_status tl_import_grid_sample(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *grid = c->inputs[1];
    const char *mode = tl_call_string(c, "mode", c->version < 20 ? "bilinear" : "linear");
    bool aligned = tl_call_int(c, "align_corners", 0) != 0;
    outside rule;
    TL_TRY(read_outside(c, &rule));
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_shape(c, grid));
    TL_TRY(tl_need_dtype(c, x));
    TL_TRY(tl_need_dtype(c, grid));
    int spatial = x->shape.rank - 2, last = grid->shape.rank - 1;
    bool is_linear = strstr(mode, "linear") != NULL, is_cubic = strstr(mode, "cubic") != NULL;
    if (!is_linear && !is_cubic && strcmp(mode, "nearest") != 0)
        return tl_call_bad(c, "mode '%.40s'", mode);
    if (spatial < 1 || last != spatial + 1 || grid->shape.dims[last].extent != spatial)
        return tl_call_bad(c, "a grid of %d axes for an image of %d", last + 1, x->shape.rank);
    if (spatial > MOST_SPATIAL)
        return tl_call_unsupported(c, "more than three spatial axes");
    int64_t batch = x->shape.dims[0].extent, points = 1,
            out[TL_MAX_RANK] = { batch, x->shape.dims[1].extent };
    for (int i = 0; i < spatial; i++)
        points *= out[2 + i] = grid->shape.dims[1 + i].extent;
    axis_taps taps[MOST_SPATIAL] = { 0 };
    grid = tl_onnx_emit_reshape(c, grid, (int64_t[]){ batch, points, spatial }, 3);
    for (int i = 0; i < spatial; i++) {
        int64_t extent = x->shape.dims[2 + i].extent;
        if (extent == 0)
            return tl_call_bad(c, "axis %d of its image is empty", 2 + i);
        tl_value *at = tl_onnx_emit_slice(c, grid, 2, spatial - 1 - i, 1);
        at = with(c, TL_OP_ADD, tl_onnx_emit_reshape(c, at, (int64_t[]){ batch, points }, 2), 1);
        at = aligned ? with(c, TL_OP_MUL, at, (double)(extent - 1) / 2)
                     : with(c, TL_OP_DIV,
                            with(c, TL_OP_SUB, with(c, TL_OP_MUL, at, (double)extent), 1), 2);
        if (!is_linear && !is_cubic)
            at = tl_emit1(c, TL_OP_ROUND, at);
        if (is_cubic && rule == OUTSIDE_BORDER)
            at = bring_to_border(c, at, extent, aligned);
        else
            at = bring_inside(c, rule, at, extent, aligned);
        if (is_linear)
            linear_taps(c, &taps[i], rule, at, extent, aligned);
        else if (is_cubic)
            cubic_taps(c, &taps[i], rule, at, extent, aligned);
        else
            add_tap(c, &taps[i], rule, at, NULL, extent, aligned);
    }
    tl_value *y = sample(c, x, taps, TL_OP_ADD);
    tl_result(c, 0, tl_onnx_emit_reshape(c, y, out, 2 + spatial));
    return TL_OK;
}

/* theta times the positions of all pixels, those along an axis evenly spread over -1..1. */
tl_status tl_import_affine_grid(tl_onnx_call *c)
{
    tl_value *theta = c->inputs[0];
    const int64_t *size;
    int count;
    bool aligned = tl_call_int(c, "align_corners", 0) != 0;
    TL_TRY(tl_need_shape(c, theta));
    TL_TRY(tl_need_dtype(c, theta));
    TL_TRY(tl_need_i64(c, 1, &size, &count));
    int spatial = count - 2;
    if (spatial < 2 || spatial > MOST_SPATIAL || theta->shape.rank != 3 ||
        theta->shape.dims[1].extent != spatial || theta->shape.dims[2].extent != spatial + 1)
        return tl_call_bad(c, "a size of %d axes for its theta", count);
    int64_t points = 1, out[TL_MAX_RANK] = { theta->shape.dims[0].extent };
    for (int i = 0; i < spatial; i++) {
        out[1 + i] = size[2 + i];
        if (size[2 + i] < 1 || size[2 + i] > 1 << 22 || (points *= size[2 + i]) > 1 << 22)
            return tl_call_bad(c, "axis %d of its size is %lld", 2 + i, (long long)size[2 + i]);
    }
    double *base = TL_NEW_ARRAY(c->arena, double, points *(spatial + 1));
    for (int64_t p = 0; p < points; p++) {
        int64_t rest = p;
        for (int i = spatial - 1; i >= 0; i--) {
            double n = (double)size[2 + i], at = (double)(rest % size[2 + i]);
            rest /= size[2 + i];
            double number = !aligned ? (2 * at + 1) / n - 1 : n > 1 ? 2 * at / (n - 1) - 1 : 0;
            base[p * (spatial + 1) + spatial - 1 - i] = number;
        }
        base[p * (spatial + 1) + spatial] = 1;
    }
    tl_value *grid =
        tl_onnx_emit_numbers(c, theta->dtype, base, 2, (int64_t[]){ points, spatial + 1 });
    tl_value *y = tl_emit2(c, TL_OP_MATMUL, grid,
                           tl_onnx_emit_transpose(c, theta, (const int64_t[]){ 0, 2, 1 }));
    out[1 + spatial] = spatial;
    tl_result(c, 0, tl_onnx_emit_reshape(c, y, out, 2 + spatial));
    return TL_OK;
}

/* ---- RoiAlign ---- */

/* Positions along an axis: [R, bins * grid], `grid` in each bin; `first` is the column of rois where the axis begins. */
static tl_value *roi_positions(tl_onnx_call *c, tl_value *rois, int first, int64_t bins,
                               int64_t grid, bool half_pixel)
{
    double scale = tl_call_float(c, "spatial_scale", 1);
    tl_value *start = with(c, TL_OP_MUL, tl_onnx_emit_slice(c, rois, 1, first, 1), scale);
    tl_value *end = with(c, TL_OP_MUL, tl_onnx_emit_slice(c, rois, 1, first + 2, 1), scale);
    tl_value *size = tl_emit2(c, TL_OP_SUB, end, start);
    if (half_pixel)
        start = with(c, TL_OP_SUB, start, 0.5);
    else
        size = with(c, TL_OP_MAX, size, 1);
    int64_t count = bins * grid;
    double *steps = TL_NEW_ARRAY(c->arena, double, count);
    for (int64_t i = 0; i < count; i++)
        steps[i] = (double)(i / grid) + ((double)(i % grid) + 0.5) / (double)grid;
    tl_value *step = tl_onnx_emit_numbers(c, rois->dtype, steps, 1, &count);
    tl_value *bin = with(c, TL_OP_DIV, size, (double)bins);
    return tl_emit2(c, TL_OP_ADD, start, tl_emit2(c, TL_OP_MUL, bin, step));
}

/* Nothing beyond one pixel outside; up to there, as at the border. Each position `times` times or all of them `times` times. */
static void roi_taps(tl_onnx_call *c, axis_taps *taps, tl_value *at, int64_t extent, bool is_row,
                     int64_t times)
{
    int64_t rois = at->shape.dims[0].extent, count = at->shape.dims[1].extent;
    int64_t split[] = { rois, is_row ? count : 1, is_row ? 1 : count };
    int64_t wide[] = { rois, is_row ? count : times, is_row ? times : count };
    at = tl_onnx_emit_expand(c, tl_onnx_emit_reshape(c, at, split, 3), wide, 3);
    at = tl_onnx_emit_reshape(c, at, (int64_t[]){ rois, count * times }, 2);
    tl_value *inside = tl_emit2(c, TL_OP_AND, with(c, TL_OP_GREATER_OR_EQUAL, at, -1),
                                with(c, TL_OP_LESS_OR_EQUAL, at, (double)extent));
    linear_taps(c, taps, OUTSIDE_BORDER, clamp(c, at, 0, (double)(extent - 1)), extent, true);
    taps->inside[0] = taps->inside[1] = inside;
}

static tl_value *align_rois(tl_onnx_call *c, tl_value *x, tl_value *rois, tl_value *batches,
                            const int64_t *bins, const int64_t *grid, bool half_pixel, bool largest)
{
    axis_taps taps[2] = { 0 };
    tl_value *y = roi_positions(c, rois, 1, bins[0], grid[0], half_pixel);
    tl_value *across = roi_positions(c, rois, 0, bins[1], grid[1], half_pixel);
    roi_taps(c, &taps[0], y, x->shape.dims[2].extent, true, bins[1] * grid[1]);
    roi_taps(c, &taps[1], across, x->shape.dims[3].extent, false, bins[0] * grid[0]);
    x = tl_onnx_emit_gather(c, TL_OP_GATHER, x, batches, 0);
    tl_value *all = sample(c, x, taps, largest ? TL_OP_MAX : TL_OP_ADD);
    int64_t split[] = {
        rois->shape.dims[0].extent, x->shape.dims[1].extent, bins[0], grid[0], bins[1], grid[1]
    };
    all = tl_onnx_emit_reshape(c, all, split, 6);
    return tl_onnx_emit_reduce(c, largest ? TL_OP_REDUCE_MAX : TL_OP_REDUCE_MEAN, all,
                               (const int64_t[]){ 3, 5 }, 2, false);
}

tl_status tl_import_roi_align(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *rois = c->inputs[1], *batches = c->inputs[2];
    const char *mode = tl_call_string(c, "mode", "avg");
    const char *coordinates = tl_call_string(c, "coordinate_transformation_mode",
                                             c->version < 16 ? "output_half_pixel" : "half_pixel");
    int64_t ratio = tl_call_int(c, "sampling_ratio", 0);
    int64_t bins[] = { tl_call_int(c, "output_height", 1), tl_call_int(c, "output_width", 1) };
    bool half_pixel = strcmp(coordinates, "half_pixel") == 0, largest = strcmp(mode, "max") == 0;
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_dtype(c, x));
    TL_TRY(tl_need_shape(c, rois));
    if (x->shape.rank != 4 || rois->shape.rank != 2 || rois->shape.dims[1].extent != 4 ||
        bins[0] < 1 || bins[1] < 1 || bins[0] > 1 << 12 || bins[1] > 1 << 12 || ratio < 0 ||
        ratio > 256)
        return tl_call_bad(c, "%lld x %lld bins of %lld samples", (long long)bins[0],
                           (long long)bins[1], (long long)ratio);
    if (!largest && strcmp(mode, "avg") != 0)
        return tl_call_bad(c, "mode '%.40s'", mode);
    if (!half_pixel && strcmp(coordinates, "output_half_pixel") != 0)
        return tl_call_bad(c, "coordinate_transformation_mode '%.40s'", coordinates);
    if (tl_counts_of(c->import, x) != NULL)
        return tl_call_unsupported(c, "images that data count");
    tl_value *const *counts = tl_counts_of(c->import, rois);
    if (ratio > 0) {
        int64_t grid[] = { ratio, ratio };
        c->import->plain_nodes++;
        tl_value *y = align_rois(c, x, rois, batches, bins, grid, half_pixel, largest);
        c->import->plain_nodes--;
        tl_set_count(c->import, y, 0, counts != NULL ? counts[0] : NULL);
        tl_result(c, 0, y);
        return TL_OK;
    }
    if (counts != NULL)
        return tl_call_unsupported(c, "regions whose number data decide, without sampling_ratio");
    /* a sample for each pixel of a bin: as many as the regions' sizes say, which must be known */
    const double *numbers;
    int count;
    double scale = tl_call_float(c, "spatial_scale", 1);
    TL_TRY(tl_need_numbers(c, 1, &numbers, &count));
    if (count == 0 || count > 4 * 64)
        return tl_call_unsupported(c, "%d regions with sizes of their own", count / 4);
    rois = c->inputs[1];
    tl_value **parts = TL_NEW_ARRAY(c->arena, tl_value *, count / 4);
    for (int i = 0; i < count / 4; i++) {
        int64_t grid[2];
        for (int axis = 0; axis < 2; axis++) {
            double size = (numbers[4 * i + 3 - axis] - numbers[4 * i + 1 - axis]) * scale;
            size = half_pixel ? size : fmax(size, 1);
            grid[axis] = (int64_t)fmin(fmax(ceil(size / (double)bins[axis]), 1), 256);
        }
        parts[i] =
            align_rois(c, x, tl_onnx_emit_slice(c, rois, 0, i, 1),
                       tl_onnx_emit_slice(c, batches, 0, i, 1), bins, grid, half_pixel, largest);
    }
    tl_result(c, 0, tl_onnx_emit_concat(c, count / 4, parts, 0));
    return TL_OK;
}

/* ---- DeformConv ---- */

/* Where the windows' taps lie along an axis without an offset: [1, taps, outputs]. */
static tl_value *tap_positions(tl_onnx_call *c, tl_dtype dtype, int axis, const int64_t *kernel,
                               const int64_t *out, int64_t stride, int64_t pad, int64_t dilation)
{
    int64_t extents[] = { 1, kernel[0] * kernel[1], out[0] * out[1] };
    double *numbers = TL_NEW_ARRAY(c->arena, double, extents[1] * extents[2]);
    for (int64_t k = 0; k < extents[1]; k++)
        for (int64_t o = 0; o < extents[2]; o++) {
            int64_t tap = axis == 0 ? k / kernel[1] : k % kernel[1];
            int64_t place = axis == 0 ? o / out[1] : o % out[1];
            numbers[k * extents[2] + o] = (double)(place * stride - pad + tap * dilation);
        }
    return tl_onnx_emit_numbers(c, dtype, numbers, 3, extents);
}

/* The image at the windows' taps, offsets added: [N, C of the group, taps, outputs]. */
static tl_value *deformed_columns(tl_onnx_call *c, tl_value *x, tl_value *offset, tl_value *mask,
                                  tl_value *const base[2], int64_t taps, int64_t outputs)
{
    int64_t batch = x->shape.dims[0].extent, channels = x->shape.dims[1].extent;
    axis_taps around[2] = { 0 };
    offset = tl_onnx_emit_reshape(c, offset, (int64_t[]){ batch, taps, 2, outputs }, 4);
    for (int axis = 0; axis < 2; axis++) {
        tl_value *moved = tl_onnx_emit_reshape(c, tl_onnx_emit_slice(c, offset, 2, axis, 1),
                                               (int64_t[]){ batch, taps, outputs }, 3);
        moved = tl_emit2(c, TL_OP_ADD, moved, base[axis]);
        moved = tl_onnx_emit_reshape(c, moved, (int64_t[]){ batch, taps * outputs }, 2);
        linear_taps(c, &around[axis], OUTSIDE_ZERO, moved, x->shape.dims[2 + axis].extent, true);
    }
    tl_value *y = sample(c, x, around, TL_OP_ADD);
    y = tl_onnx_emit_reshape(c, y, (int64_t[]){ batch, channels, taps, outputs }, 4);
    if (mask != NULL)
        y = tl_emit2(c, TL_OP_MUL, y,
                     tl_onnx_emit_reshape(c, mask, (int64_t[]){ batch, 1, taps, outputs }, 4));
    return y;
}

tl_status tl_import_deform_conv(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *w = c->inputs[1], *offset = c->inputs[2];
    tl_value *bias = tl_call_input(c, 3), *mask = tl_call_input(c, 4), *base[2];
    int64_t group = tl_call_int(c, "group", 1), fields = tl_call_int(c, "offset_group", 1);
    int64_t strides[2], dilations[2], pads[4], kernel[2], out[2];
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_dtype(c, x));
    TL_TRY(tl_need_shape(c, w));
    TL_TRY(tl_need_shape(c, offset));
    if (x->shape.rank != 4 || w->shape.rank != 4 || offset->shape.rank != 4)
        return tl_call_unsupported(c, "other than two spatial axes");
    TL_TRY(tl_call_list(c, "strides", 2, 1, -TL_LARGEST_LISTED, strides));
    TL_TRY(tl_call_list(c, "dilations", 2, 1, -TL_LARGEST_LISTED, dilations));
    TL_TRY(tl_call_list(c, "pads", 4, 0, -TL_LARGEST_LISTED, pads));
    int64_t batch = x->shape.dims[0].extent, channels = x->shape.dims[1].extent,
            results = w->shape.dims[0].extent;
    for (int i = 0; i < 2; i++) {
        kernel[i] = w->shape.dims[2 + i].extent;
        if (strides[i] < 1 || dilations[i] < 1 || kernel[i] < 1)
            return tl_call_bad(c, "a stride, a dilation or a kernel of its axis %d is below 1", i);
        if (kernel[i] > 1 << 12 || fields > 1 << 16 || x->shape.dims[2 + i].extent > INT32_MAX)
            return tl_call_unsupported(c, "a window, an image or groups of this size");
        out[i] = (x->shape.dims[2 + i].extent + pads[i] + pads[2 + i] -
                  (kernel[i] - 1) * dilations[i] - 1) /
                     strides[i] +
                 1;
    }
    int64_t taps = kernel[0] * kernel[1], outputs = out[0] * out[1];
    if (group < 1 || fields < 1 || channels % group != 0 || channels % fields != 0 ||
        results % group != 0 || w->shape.dims[1].extent != channels / group ||
        out[0] != offset->shape.dims[2].extent || out[1] != offset->shape.dims[3].extent ||
        offset->shape.dims[1].extent != fields * taps * 2)
        return tl_call_bad(c, "its offsets or its weight do not fit its input");
    if (taps * outputs > TL_ONNX_MOST_NUMBERS)
        return tl_call_unsupported(c, "%lld windows of %lld taps", (long long)outputs,
                                   (long long)taps);
    for (int i = 0; i < 2; i++)
        base[i] = tap_positions(c, x->dtype, i, kernel, out, strides[i], pads[i], dilations[i]);
    tl_value **parts = TL_NEW_ARRAY(c->arena, tl_value *, fields);
    for (int64_t f = 0; f < fields; f++)
        parts[f] =
            deformed_columns(c,
                             tl_onnx_emit_slice(c, x, 1, f * (channels / fields),
                                                channels / fields),
                             tl_onnx_emit_slice(c, offset, 1, f * taps * 2, taps * 2),
                             mask != NULL ? tl_onnx_emit_slice(c, mask, 1, f * taps, taps) : NULL,
                             base, taps, outputs);
    tl_value *columns = tl_onnx_emit_concat(c, (int)fields, parts, 1);
    columns =
        tl_onnx_emit_reshape(c, columns,
                             (int64_t[]){ batch, group, channels / group * taps, outputs }, 4);
    w = tl_onnx_emit_reshape(c, w, (int64_t[]){ group, results / group, channels / group * taps },
                             3);
    tl_value *y = tl_onnx_emit_reshape(c, tl_emit2(c, TL_OP_MATMUL, w, columns),
                                       (int64_t[]){ batch, results, out[0], out[1] }, 4);
    if (bias != NULL)
        y = tl_emit2(c, TL_OP_ADD, y, tl_onnx_emit_channel_vector(c, bias, 4));
    tl_result(c, 0, y);
    return TL_OK;
}
