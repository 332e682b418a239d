/* frontend/import/import_resize.c: Resize and Upsample: each axis by itself, as a weighted sum of elements at positions that are
 * constants. A nearest neighbour is one element; where it repeats each a whole number of times, that is an Expand.
 *
 * Positions and weights: the operator's definition (ONNX, Resize-19); sums of more taps than MOST_TAPS, as of antialiasing,
 * are a product with the matrix of weights. */
#include <math.h>
#include <string.h>
#include "frontend/import/import_rules.h"

enum { MOST_TAPS = 4 };

typedef struct {
    const char *coordinates, *nearest;
    bool is_nearest, is_cubic, antialias, exclude_outside;
    double cubic_a, extrapolation;
} resize_form;

typedef struct {
    int axis;
    int64_t in, out;
    double scale, start, end; /* start, end: of the region, for tf_crop_and_resize */
    bool *is_outside;         /* of each output position: it takes the extrapolation value */
    bool any_outside;
} resize_axis;

/* Where output position i lies among the input's. */
static double coordinate(const resize_form *f, const resize_axis *a, int64_t i)
{
    const char *mode = f->coordinates;
    double x = (double)i, in = (double)a->in,
           out = a->scale * in; /* before it is cut to a whole number */
    if (strcmp(mode, "asymmetric") == 0)
        return x / a->scale;
    if (strcmp(mode, "align_corners") == 0)
        return out == 1 ? 0 : x * (in - 1) / (out - 1);
    if (strcmp(mode, "pytorch_half_pixel") == 0 && a->out == 1)
        return 0;
    if (strcmp(mode, "tf_half_pixel_for_nn") == 0)
        return (x + 0.5) / a->scale;
    if (strcmp(mode, "half_pixel_symmetric") == 0) {
        double adjustment = (double)a->out / out, center = in / 2;
        return center * (1 - adjustment) + (x + 0.5) / a->scale - 0.5;
    }
    if (strcmp(mode, "tf_crop_and_resize") == 0)
        return out > 1 ? a->start * (in - 1) + x * (a->end - a->start) * (in - 1) / (out - 1)
                       : 0.5 * (a->start + a->end) * (in - 1);
    return (x + 0.5) / a->scale - 0.5; /* half_pixel */
}

static double round_nearest(const char *mode, double x)
{
    if (strcmp(mode, "floor") == 0)
        return floor(x);
    if (strcmp(mode, "ceil") == 0)
        return ceil(x);
    return strcmp(mode, "round_prefer_ceil") == 0 ? floor(x + 0.5) : ceil(x - 0.5);
}

static int64_t clamp_position(double x, int64_t extent)
{
    return !(x > 0) ? 0 : x >= (double)(extent - 1) ? extent - 1 : (int64_t)x;
}

static double cubic_weight(double a, double d)
{
    d = fabs(d);
    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/* How many elements a weighted sum has, and from which on, counted from the one before the position. */
static int taps_of(const resize_form *f, const resize_axis *a, int *first)
{
    double scale = f->antialias ? fmin(a->scale, 1) : 1;
    double reach = f->is_cubic ? 2 : 1;
    *first = (int)floor(-reach / scale) + 1;
    return 2 - 2 * *first;
}

/* Positions and weights of output position i: `taps` of each. */
static void weigh(const resize_form *f, const resize_axis *a, int64_t i, int first, int taps,
                  int64_t *positions, double *weights)
{
    double scale = f->antialias ? fmin(a->scale, 1) : 1, x = coordinate(f, a, i), sum = 0;
    double base = floor(x) == x ? x - 1 : floor(x), ratio = x - base;
    for (int k = 0; k < taps; k++) {
        double at = base + first + k, distance = scale * (first + k - ratio);
        weights[k] = f->is_cubic ? cubic_weight(f->cubic_a, distance) : fmax(0, 1 - fabs(distance));
        if (f->exclude_outside && (at < 0 || at >= (double)a->in))
            weights[k] = 0;
        positions[k] = clamp_position(at, a->in);
        sum += weights[k];
    }
    for (int k = 0; (f->antialias || f->exclude_outside) && sum != 0 && k < taps; k++)
        weights[k] /= sum;
}

/* The axis' elements, each `times` times. */
static tl_value *repeat(tl_onnx_call *c, tl_value *x, int axis, int64_t times)
{
    int64_t wide[2 * TL_MAX_RANK], extent = x->shape.dims[axis].extent;
    int rank = x->shape.rank;
    tl_value *split = tl_onnx_emit_reshape_axis(c, x, axis, 2, (int64_t[]){ extent, 1 });
    for (int i = 0; i <= rank; i++)
        wide[i] = i == axis + 1 ? times : x->shape.dims[i > axis ? i - 1 : i].extent;
    tl_value *y = tl_onnx_emit_expand(c, split, wide, rank + 1);
    int64_t merged[TL_MAX_RANK];
    tl_onnx_extents(x, merged);
    merged[axis] = extent * times;
    return tl_onnx_emit_reshape(c, y, merged, rank);
}

static tl_value *take_nearest(tl_onnx_call *c, const resize_form *f, const resize_axis *a,
                              tl_value *x)
{
    int64_t *positions = TL_NEW_ARRAY(c->arena, int64_t, a->out), times = a->out / a->in;
    bool repeats = a->out % a->in == 0 && x->shape.rank < TL_MAX_RANK;
    for (int64_t i = 0; i < a->out; i++) {
        positions[i] = clamp_position(round_nearest(f->nearest, coordinate(f, a, i)), a->in);
        repeats = repeats && positions[i] == i / times;
    }
    if (repeats)
        return repeat(c, x, a->axis, times);
    return tl_onnx_emit_gather(c, TL_OP_GATHER, x, tl_onnx_emit_i64(c, positions, (int)a->out),
                               a->axis);
}

/* Few taps: element after element; a weight is a vector along the axis. */
static tl_value *add_taps(tl_onnx_call *c, const resize_axis *a, tl_value *x, int taps,
                          const int64_t *positions, const double *weights)
{
    tl_value *sum = NULL;
    int64_t *at = TL_NEW_ARRAY(c->arena, int64_t, a->out);
    double *w = TL_NEW_ARRAY(c->arena, double, a->out);
    for (int k = 0; k < taps; k++) {
        for (int64_t i = 0; i < a->out; i++) {
            at[i] = positions[i * taps + k];
            w[i] = weights[i * taps + k];
        }
        tl_value *part =
            tl_onnx_emit_gather(c, TL_OP_GATHER, x, tl_onnx_emit_i64(c, at, (int)a->out), a->axis);
        tl_value *weight = tl_onnx_emit_numbers(c, x->dtype, w, 1, &a->out);
        part = tl_emit2(c, TL_OP_MUL, part, tl_onnx_emit_along(c, weight, x->shape.rank, a->axis));
        sum = sum == NULL ? part : tl_emit2(c, TL_OP_ADD, sum, part);
    }
    return sum;
}

static tl_value *multiply(tl_onnx_call *c, const resize_axis *a, tl_value *x, int taps,
                          const int64_t *positions, const double *weights)
{
    double *matrix = TL_NEW_ARRAY(c->arena, double, a->in * a->out);
    int64_t perm[TL_MAX_RANK], extents[] = { a->in, a->out };
    int rank = x->shape.rank;
    for (int64_t i = 0; i < a->out; i++)
        for (int k = 0; k < taps; k++)
            matrix[positions[i * taps + k] * a->out + i] += weights[i * taps + k];
    for (int i = 0; i < rank; i++)
        perm[i] = i == a->axis ? rank - 1 : i == rank - 1 ? a->axis : i;
    tl_value *w = tl_onnx_emit_numbers(c, x->dtype, matrix, 2, extents);
    x = tl_emit2(c, TL_OP_MATMUL, tl_onnx_emit_transpose(c, x, perm), w);
    return tl_onnx_emit_transpose(c, x, perm);
}

static tl_value *interpolate(tl_onnx_call *c, const resize_form *f, const resize_axis *a,
                             tl_value *x)
{
    int first, taps = taps_of(f, a, &first);
    int64_t *positions = TL_NEW_ARRAY(c->arena, int64_t, a->out * taps);
    double *weights = TL_NEW_ARRAY(c->arena, double, a->out *taps);
    for (int64_t i = 0; i < a->out; i++)
        weigh(f, a, i, first, taps, positions + i * taps, weights + i * taps);
    return taps <= MOST_TAPS ? add_taps(c, a, x, taps, positions, weights)
                             : multiply(c, a, x, taps, positions, weights);
}

/* Positions outside of the input take a number: tf_crop_and_resize. */
static tl_value *extrapolate(tl_onnx_call *c, const resize_form *f, const resize_axis *a,
                             tl_value *y)
{
    if (!a->any_outside)
        return y;
    double *inside = TL_NEW_ARRAY(c->arena, double, a->out);
    for (int64_t i = 0; i < a->out; i++)
        inside[i] = !a->is_outside[i];
    tl_value *mask = tl_onnx_emit_numbers(c, TL_BOOL, inside, 1, &a->out);
    return tl_onnx_emit_where(c, tl_onnx_emit_along(c, mask, y->shape.rank, a->axis), y,
                              tl_onnx_emit_scalar(c, y->dtype, f->extrapolation));
}

static tl_value *resize_along(tl_onnx_call *c, const resize_form *f, resize_axis *a, tl_value *x)
{
    bool crops = strcmp(f->coordinates, "tf_crop_and_resize") == 0;
    if (a->in == 0) /* and so is what comes of it */
        return x;
    if (a->in == a->out && a->scale == 1 && (!crops || (a->start == 0 && a->end == 1)))
        return x;
    a->is_outside = TL_NEW_ARRAY(c->arena, bool, a->out);
    for (int64_t i = 0; crops && i < a->out; i++) {
        double at = coordinate(f, a, i);
        a->is_outside[i] = at < 0 || at > (double)(a->in - 1);
        a->any_outside |= a->is_outside[i];
    }
    return f->is_nearest ? take_nearest(c, f, a, x) : interpolate(c, f, a, x);
}

static tl_status resize(tl_onnx_call *c, const resize_form *f, int count, resize_axis *axes)
{
    tl_value *x = c->inputs[0];
    tl_dtype dtype = x->dtype;
    bool widens = !f->is_nearest && dtype != TL_F64 && dtype != TL_F32;
    for (int i = 0; i < count; i++) {
        const resize_axis *a = &axes[i];
        if (!(a->scale > 0) || !isfinite(a->scale) || a->out < 0 || a->out > INT32_MAX)
            return tl_call_bad(c, "axis %d: scale %g", a->axis, a->scale);
        if (a->in == 0 && a->out > 0)
            return tl_call_bad(c, "axis %d is empty", a->axis);
        double taps = f->antialias ? 4 / fmin(a->scale, 1) + (double)a->in : 4;
        if ((double)a->out * (taps + 4) > TL_ONNX_MOST_NUMBERS)
            return tl_call_unsupported(c, "axis %d of %lld elements as %lld", a->axis,
                                       (long long)a->in, (long long)a->out);
    }
    if (widens)
        x = tl_onnx_emit_cast(c, x, TL_F32);
    for (int i = 0; i < count; i++)
        x = resize_along(c, f, &axes[i], x);
    for (int i = 0; i < count; i++)
        x = extrapolate(c, f, &axes[i], x);
    tl_result(c, 0, widens ? tl_onnx_emit_cast(c, x, dtype) : x);
    return TL_OK;
}

static bool is_one_of(const char *word, int count, const char *const *words)
{
    for (int i = 0; i < count; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

static tl_status read_form(tl_onnx_call *c, resize_form *f)
{
    static const char *const modes[] = { "nearest", "linear", "cubic" };
    static const char *const rounds[] = { "round_prefer_floor", "round_prefer_ceil", "floor",
                                          "ceil" };
    static const char *const coordinates[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",   "align_corners",
        "asymmetric", "tf_crop_and_resize",   "tf_half_pixel_for_nn",
    };
    const char *mode = tl_call_string(c, "mode", "nearest");
    if (c->version < 7 && strcmp(mode, "bilinear") == 0) /* Upsample's first word for it */
        mode = "linear";
    *f = (resize_form){
        .coordinates = tl_call_string(c, "coordinate_transformation_mode", "half_pixel"),
        .nearest = tl_call_string(c, "nearest_mode", "round_prefer_floor"),
        .is_nearest = strcmp(mode, "nearest") == 0,
        .is_cubic = strcmp(mode, "cubic") == 0,
        .antialias = tl_call_int(c, "antialias", 0) != 0,
        .exclude_outside = tl_call_int(c, "exclude_outside", 0) != 0,
        .cubic_a = tl_call_float(c, "cubic_coeff_a", -0.75),
        .extrapolation = tl_call_float(c, "extrapolation_value", 0),
    };
    if (!is_one_of(mode, 3, modes))
        return tl_call_bad(c, "mode '%.40s'", mode);
    if (!is_one_of(f->coordinates, c->version >= 13 ? 6 : 7, coordinates))
        return tl_call_bad(c, "coordinate_transformation_mode '%.40s'", f->coordinates);
    if (!is_one_of(f->nearest, 4, rounds))
        return tl_call_bad(c, "nearest_mode '%.40s'", f->nearest);
    return TL_OK;
}

/* The axes of attribute `axes`, all without it. */
static tl_status read_axes(tl_onnx_call *c, resize_axis *axes, int *count)
{
    const tl_value *x = c->inputs[0];
    const int64_t *given;
    int given_count = tl_call_ints(c, "axes", &given);
    *count = given_count >= 0 ? given_count : x->shape.rank;
    if (*count > x->shape.rank)
        return tl_call_bad(c, "%d axes of %d", *count, x->shape.rank);
    for (int i = 0; i < *count; i++) {
        int axis = i;
        if (given_count >= 0)
            TL_TRY(tl_onnx_axis(c, given[i], x->shape.rank, &axis));
        axes[i] =
            (resize_axis){ .axis = axis, .in = x->shape.dims[axis].extent, .start = 0, .end = 1 };
    }
    return TL_OK;
}

static tl_status set_scales(tl_onnx_call *c, int scale_count, const double *scales, int count,
                            resize_axis *axes)
{
    if (scale_count != count)
        return tl_call_bad(c, "%d scales for %d axes", scale_count, count);
    for (int i = 0; i < count; i++) {
        double out = floor((double)axes[i].in * scales[i]);
        axes[i].scale = scales[i];
        axes[i].out = out >= 0 && out < INT32_MAX ? (int64_t)out : -1;
    }
    return TL_OK;
}

static tl_status from_scales(tl_onnx_call *c, int input, int count, resize_axis *axes)
{
    const double *scales;
    int scale_count;
    TL_TRY(tl_need_numbers(c, input, &scales, &scale_count));
    return set_scales(c, scale_count, scales, count, axes);
}

/* Of the attribute that Upsample had at first. */
static tl_status from_listed_scales(tl_onnx_call *c, int count, resize_axis *axes)
{
    const float *listed;
    int scale_count = tl_call_floats(c, "scales", &listed);
    double *scales = TL_NEW_ARRAY(c->arena, double, scale_count);
    for (int i = 0; i < scale_count; i++)
        scales[i] = (double)listed[i];
    return set_scales(c, scale_count, scales, count, axes);
}

/* Of those that it had before: of the last two axes of an image. */
static tl_status from_image_scales(tl_onnx_call *c, int count, resize_axis *axes)
{
    double scales[] = { 1, 1, tl_call_float(c, "height_scale", 0),
                        tl_call_float(c, "width_scale", 0) };
    if (count != 4)
        return tl_call_bad(c, "its image has %d axes, not 4", count);
    return set_scales(c, 4, scales, count, axes);
}

static tl_status from_sizes(tl_onnx_call *c, int input, int count, resize_axis *axes)
{
    const int64_t *sizes;
    int size_count;
    const char *policy = tl_call_string(c, "keep_aspect_ratio_policy", "stretch");
    TL_TRY(tl_need_i64(c, input, &sizes, &size_count));
    if (size_count != count)
        return tl_call_bad(c, "%d sizes for %d axes", size_count, count);
    bool stretch = strcmp(policy, "stretch") == 0, larger = strcmp(policy, "not_smaller") == 0;
    double scale = 0;
    if (!stretch && !larger && strcmp(policy, "not_larger") != 0)
        return tl_call_bad(c, "keep_aspect_ratio_policy '%.40s'", policy);
    for (int i = 0; i < count; i++) {
        axes[i].out = sizes[i];
        axes[i].scale = axes[i].in > 0 ? (double)sizes[i] / (double)axes[i].in : 1;
        bool better = larger ? axes[i].scale > scale : axes[i].scale < scale;
        if (i == 0 || better)
            scale = axes[i].scale;
    }
    for (int i = 0; !stretch && i < count; i++) {
        axes[i].scale = scale;
        double out = floor(scale * (double)axes[i].in + 0.5);
        axes[i].out = out >= 0 && out < INT32_MAX ? (int64_t)out : -1;
    }
    return TL_OK;
}

static bool is_given(const tl_onnx_call *c, int input)
{
    const tl_value *v = tl_call_input(c, input);
    return v != NULL && tl_shape_elements(&v->shape) != 0;
}

tl_status tl_import_resize(tl_onnx_call *c)
{
    resize_form f;
    resize_axis axes[TL_MAX_RANK];
    int count;
    TL_TRY(tl_need_shape(c, c->inputs[0]));
    TL_TRY(tl_need_dtype(c, c->inputs[0]));
    TL_TRY(read_form(c, &f));
    TL_TRY(read_axes(c, axes, &count));
    if (strcmp(f.coordinates, "tf_crop_and_resize") == 0) {
        const double *region;
        int region_count;
        if (!is_given(c, 1))
            return tl_call_bad(c, "tf_crop_and_resize needs its input 'roi'");
        TL_TRY(tl_need_numbers(c, 1, &region, &region_count));
        if (region_count != 2 * count)
            return tl_call_bad(c, "%d numbers in 'roi' for %d axes", region_count, count);
        for (int i = 0; i < count; i++) {
            axes[i].start = region[i];
            axes[i].end = region[count + i];
        }
    }
    if (is_given(c, 3))
        TL_TRY(from_sizes(c, 3, count, axes));
    else if (is_given(c, 2))
        TL_TRY(from_scales(c, 2, count, axes));
    else
        return tl_call_bad(c, "neither scales nor sizes are given");
    return resize(c, &f, count, axes);
}

/* Upsample, and Resize of opset 10: scales alone, positions without a shift, the element before. */
tl_status tl_import_upsample(tl_onnx_call *c)
{
    resize_form f;
    resize_axis axes[TL_MAX_RANK];
    int count;
    TL_TRY(tl_need_shape(c, c->inputs[0]));
    TL_TRY(tl_need_dtype(c, c->inputs[0]));
    TL_TRY(read_form(c, &f));
    TL_TRY(read_axes(c, axes, &count));
    f.coordinates = "asymmetric";
    f.nearest = "floor";
    if (c->version < 7)
        TL_TRY(from_image_scales(c, count, axes));
    else if (tl_call_has(c, "scales"))
        TL_TRY(from_listed_scales(c, count, axes));
    else if (tl_call_input(c, 1) != NULL)
        TL_TRY(from_scales(c, 1, count, axes));
    else
        return tl_call_bad(c, "it has no scales");
    return resize(c, &f, count, axes);
}
