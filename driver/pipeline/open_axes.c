/* driver/pipeline/open_axes.c: which open axes of a model become dims, and at which extents it is read to find out. */
#include "driver/pipeline/open_axes.h"
#include <string.h>
#include "runtime/base/checked.h"
#include "runtime/base/map.h"

enum { CHECKS = 2, MOST_SAMPLES = TL_VARYING_TERMS + CHECKS };

/* Boxes are tried from large to small: models have limits (a table of positions), mostly powers of two. Extents of different axes
 * should not be the same, nor one that the model has anyway: primes. What is small is special: an extent of 1 broadcasts, a
 * loop that runs once is gone. */
static const int64_t highs[][TL_MOST_DIMS] = {
    { 4093, 4091, 4079 }, { 2039, 2029, 2027 }, { 1021, 1019, 1013 },
    { 509, 503, 499 },    { 251, 241, 239 },    { 127, 113, 109 },
};
static const int64_t lows[][TL_MOST_DIMS] = { { 2, 2, 2 }, { 2, 3, 5 }, { 11, 13, 17 } };
enum { HIGHS = sizeof highs / sizeof *highs, LOWS = sizeof lows / sizeof *lows };

/* ---- the axes ---- */

tl_open_axes tl_open_axes_of(tl_arena *arena, const tl_onnx_signature *signature)
{
    int inputs = signature->input_count;
    tl_map *known = tl_map_create(arena);
    tl_open_axes out = { .is_known = true };
    out.axes = TL_NEW_ARRAY(arena, tl_open_axis, inputs * TL_MAX_RANK);
    out.place = TL_NEW_ARRAY(arena, int, inputs *TL_MAX_RANK);
    for (int i = 0; i < inputs; i++) {
        const tl_onnx_input *input = &signature->inputs[i];
        out.is_known &= input->shape.rank >= 0;
        for (int a = 0; a < TL_MAX_RANK; a++) {
            int *place = &out.place[i * TL_MAX_RANK + a];
            *place = -1;
            if (a >= input->shape.rank || input->shape.dims[a].extent >= 0)
                continue;
            const char *name = input->shape.dims[a].name;
            tl_open_axis *axis = name != NULL ? tl_map_find(known, name) : NULL;
            if (axis == NULL) {
                axis = &out.axes[out.count++];
                *axis = (tl_open_axis){
                    .name = name != NULL ? name : tl_arena_format(arena, "%s.%d", input->name, a),
                    .input = i,
                    .axis = a,
                    .leader = -1,
                };
                tl_map_put(known, axis->name, axis);
            }
            *place = (int)(axis - out.axes);
        }
    }
    return out;
}

void tl_open_axes_read(const tl_open_axes *axes, const tl_shape_override *shapes, int64_t *out)
{
    for (int i = 0; i < axes->count; i++)
        out[i] = shapes[axes->axes[i].input].shape.dims[axes->axes[i].axis].extent;
}

/* ---- samples ---- */

typedef struct {
    tl_arena *arena; /* of what is learned of axes */
    tl_arena *work;
    tl_onnx *onnx;
    const tl_onnx_signature *signature;
    tl_open_axes *axes;
    const int64_t *before, *after; /* the extents of all axes in two calls */
    const tl_shape_override *now;
    const tl_model_options *options;
    bool may_learn; /* an axis that can be no dim now will never be one */
    bool is_range;  /* the only box is that of the two calls */
} chooser;

/* The axes that are dims of an attempt. */
typedef struct {
    int count;
    int of[TL_MOST_DIMS];
} choice;

/* The number of the dim that moves an axis, and how far a step of the dim does; -1: none. */
static int dim_of(const chooser *s, const choice *c, int axis, int64_t *slope)
{
    const tl_open_axis *a = &s->axes->axes[axis];
    *slope = a->leader >= 0 ? a->slope : 1;
    for (int d = 0; d < c->count; d++)
        if (c->of[d] == (a->leader >= 0 ? a->leader : axis))
            return d;
    return -1;
}

/* The shapes of all inputs at one point; false: an extent would be too small. A value is offered where its input does not
 * vary. */
static bool shapes_at(const chooser *s, const choice *c, const int64_t *dims,
                      tl_shape_override *out)
{
    for (int i = 0; i < s->signature->input_count; i++) {
        out[i] = s->now[i];
        for (int a = 0; a < out[i].shape.rank; a++) {
            int axis = s->axes->place[i * TL_MAX_RANK + a];
            int64_t slope, *extent = &out[i].shape.dims[a].extent;
            int d = axis >= 0 ? dim_of(s, c, axis, &slope) : -1;
            if (d < 0)
                continue;
            out[i].value = NULL;
            *extent = s->after[axis] + (dims[d] - s->after[c->of[d]]) * slope;
            if (*extent < (s->is_range ? 1 : lows[0][0]))
                return false;
        }
    }
    return true;
}

/* The ends of a dim of a box that holds the call; false: the call lies outside. */
static bool choose_ends(const chooser *s, const choice *c, int box, int d, int64_t *low,
                        int64_t *high)
{
    int64_t now = s->after[c->of[d]];
    *low = s->is_range ? s->before[c->of[d]] : lows[box % LOWS][d];
    *high = s->is_range ? now : highs[box / LOWS][d];
    if (now > *high && box / LOWS == 0)
        *high = 2 * now + 1 + d;
    return now >= *low && now <= *high;
}

/* A box that holds the call; its corners, then points inside of it. False: the call lies outside. */
static bool choose_points(const chooser *s, const choice *c, int box, tl_executable_dim *dims,
                          int64_t *points)
{
    int count = c->count, corners = 1 << count;
    for (int d = 0; d < count; d++) {
        int64_t low, high;
        if (!choose_ends(s, c, box, d, &low, &high))
            return false;
        dims[d] = (tl_executable_dim){
            .name = s->axes->axes[c->of[d]].name, .min = low, .max = high, .start = low
        };
        for (int k = 0; k < corners; k++)
            points[k * count + d] = (k >> d & 1) != 0 ? high : low;
        points[corners * count + d] = tl_min64(low + 1 + d + (high - low) / 3, high);
        points[(corners + 1) * count + d] = tl_min64(low + 2 + (high - low) * (2 + d) / 7, high);
    }
    return true;
}

static tl_status attempt(const chooser *s, const choice *c, int box, tl_join **out, tl_diag *diag)
{
    tl_executable_dim dims[TL_MOST_DIMS];
    int64_t points[MOST_SAMPLES * TL_MOST_DIMS];
    int inputs = s->signature->input_count, count = c->count, samples = (1 << count) + CHECKS;
    if (!choose_points(s, c, box, dims, points))
        return tl_fail(diag, TL_UNSUPPORTED, "the extent now is too small, or too large");
    tl_shape_override *shapes = TL_NEW_ARRAY(s->work, tl_shape_override, inputs * samples);
    for (int k = 0; k < samples; k++)
        if (!shapes_at(s, c, &points[k * count], &shapes[k * inputs]))
            return tl_fail(diag, TL_UNSUPPORTED, "an axis that goes along would be too small");
    tl_join_request request = {
        .dims = dims, .samples = { count, samples, points }, .input_count = inputs, .shapes = shapes
    };
    return tl_join_create(s->onnx, &request, s->options, out, diag);
}

/* TL_UNSUPPORTED: no box will do; the sentence is that of the largest one that the model allows. */
static tl_status attempt_all(const chooser *s, const choice *c, tl_join **out, tl_diag *diag)
{
    tl_diag first = { "" };
    bool is_allowed = false;
    for (int box = 0; box < (s->is_range ? 1 : HIGHS * LOWS); box++) {
        tl_diag why = { "" };
        tl_status status = attempt(s, c, box, out, &why);
        if (status == TL_NO_MEMORY || status == TL_IO)
            return tl_fail(diag, status, "%s", why.text);
        for (int d = 0; d < c->count && status == TL_OK; d++)
            s->axes->axes[c->of[d]].is_dim = true;
        if (status == TL_OK)
            return TL_OK;
        if (!is_allowed)
            first = why;
        is_allowed |= status == TL_UNSUPPORTED;
        if (status != TL_UNSUPPORTED)
            box += LOWS - 1 - box % LOWS; /* there is no such model */
    }
    return tl_fail(diag, TL_UNSUPPORTED, "%s", first.text);
}

/* ---- which axes ---- */

static bool is_too_small(const chooser *s, int axis)
{
    return s->after[axis] < lows[0][0];
}

/* Axes that differ in the two calls go along with the first of them, on the line through the calls: the keys of the past, and
 * those of past and present. What was supposed in vain is forgotten. */
static tl_status attempt_tied(const chooser *s, const choice *all, tl_join **out, tl_diag *diag)
{
    choice c = { 0 };
    tl_open_axis *axes = s->axes->axes;
    bool fits = true;
    for (int d = 0; d < all->count; d++) {
        int axis = all->of[d];
        if (s->before[axis] == s->after[axis])
            continue;
        if (c.count == 0) {
            c.of[c.count++] = axis;
            continue;
        }
        int64_t along = s->after[c.of[0]] - s->before[c.of[0]];
        int64_t across = s->after[axis] - s->before[axis];
        fits &= across % along == 0;
        axes[axis].leader = c.of[0];
        axes[axis].slope = across / along;
    }
    tl_status status = fits ? attempt_all(s, &c, out, diag)
                            : tl_fail(diag, TL_UNSUPPORTED, "axes do not go along in whole steps");
    for (int d = 0; d < all->count && status != TL_OK; d++)
        if (all->of[d] != c.of[0])
            axes[all->of[d]].leader = -1;
    return status;
}

/* Each of the axes alone, then those together that can be a dim. */
static tl_status attempt_each(const chooser *s, const choice *all, tl_join **out, tl_diag *diag)
{
    choice able = { 0 };
    tl_diag why = { "" };
    for (int d = 0; d < all->count; d++) {
        choice alone = { .count = 1, .of = { all->of[d] } };
        tl_open_axis *axis = &s->axes->axes[all->of[d]];
        tl_join *join;
        why.text[0] = '\0';
        if (attempt_all(s, &alone, &join, &why) != TL_OK) {
            if (s->may_learn && !axis->is_dim)
                axis->specialised = tl_arena_strdup(s->arena, why.text);
            continue;
        }
        if (able.count == 0)
            *out = join;
        else
            tl_join_destroy(join);
        able.of[able.count++] = all->of[d];
    }
    if (able.count == 0)
        return tl_fail(diag, TL_UNSUPPORTED, "%s", why.text);
    tl_join *both;
    if (able.count > 1 && able.count < all->count && attempt_all(s, &able, &both, NULL) == TL_OK) {
        tl_join_destroy(*out);
        *out = both;
    }
    return TL_OK;
}

/* The axes in which the calls differ, and those that are dims of other joins; but for those that are specialised, that go along
 * with another one, and are too small now. */
static choice choose_axes(chooser *s)
{
    choice c = { 0 };
    s->may_learn = true;
    for (int i = 0; i < s->axes->count && c.count < TL_MOST_DIMS; i++) {
        const tl_open_axis *axis = &s->axes->axes[i];
        if ((s->before[i] == s->after[i] && !axis->is_dim) || axis->specialised != NULL ||
            axis->leader >= 0)
            continue;
        if (is_too_small(s, i))
            s->may_learn = false;
        else
            c.of[c.count++] = i;
    }
    return c;
}

static tl_status join(chooser *s, tl_join **out, tl_diag *diag)
{
    if (TL_ARENA_GUARD(s->work))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    int64_t *after = TL_NEW_ARRAY(s->work, int64_t, s->axes->count);
    tl_open_axes_read(s->axes, s->now, after);
    s->after = after;
    choice c = choose_axes(s);
    if (c.count == 0)
        return tl_fail(diag, TL_UNSUPPORTED, "no axis of it can be a dim");
    tl_status status = c.count > 1 ? attempt_all(s, &c, out, diag) : TL_UNSUPPORTED;
    if (status == TL_UNSUPPORTED && c.count > 1 && s->may_learn)
        status = attempt_tied(s, &c, out, diag);
    return status == TL_UNSUPPORTED ? attempt_each(s, &c, out, diag) : status;
}

tl_status tl_join_axes(tl_arena *arena, tl_onnx *onnx, const tl_onnx_signature *signature,
                       tl_open_axes *axes, const int64_t *before, const tl_shape_override *now,
                       const tl_model_options *options, tl_join **out, tl_diag *diag)
{
    chooser s = { .arena = arena,
                  .onnx = onnx,
                  .signature = signature,
                  .axes = axes,
                  .before = before,
                  .now = now,
                  .options = options };
    *out = NULL;
    if (!axes->is_known)
        return tl_fail(diag, TL_UNSUPPORTED, "an input may have any number of axes");
    s.work = tl_arena_create(0);
    if (s.work == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    tl_status status = join(&s, out, diag);
    tl_arena_destroy(s.work);
    return status;
}

/* ---- ranges ---- */

/* The axes whose range has more than one extent. */
static tl_status choose_ranges(const chooser *s, choice *out, tl_diag *diag)
{
    *out = (choice){ 0 };
    for (int i = 0; i < s->axes->count; i++) {
        if (s->before[i] == s->after[i])
            continue;
        if (out->count == TL_MOST_DIMS)
            return tl_fail(diag, TL_BAD_ARGUMENT, "ranges of more than %d axes", TL_MOST_DIMS);
        out->of[out->count++] = i;
    }
    for (int i = 0; i < s->signature->input_count; i++)
        for (int a = 0; a < s->now[i].shape.rank; a++)
            if (s->axes->place[i * TL_MAX_RANK + a] < 0 &&
                s->signature->inputs[i].shape.dims[a].extent != s->now[i].shape.dims[a].extent)
                return tl_fail(diag, TL_BAD_ARGUMENT,
                               "axis %d of input '%.120s' is %lld in the model", a, s->now[i].name,
                               (long long)s->signature->inputs[i].shape.dims[a].extent);
    return out->count > 0 ? TL_OK
                          : tl_fail(diag, TL_BAD_ARGUMENT, "no axis that is open has a range");
}

/* The axes that are dims, once the others go along with them. */
static choice without_followers(const chooser *s, const choice *all)
{
    choice c = { 0 };
    for (int d = 0; d < all->count; d++)
        if (s->axes->axes[all->of[d]].leader < 0)
            c.of[c.count++] = all->of[d];
    return c;
}

static tl_status check_point(const chooser *s, const choice *c, tl_join *join, const int64_t *dims,
                             tl_shape_override *shapes, tl_diag *diag)
{
    if (!shapes_at(s, c, dims, shapes))
        return tl_fail(diag, TL_UNSUPPORTED, "an axis that goes along would be too small");
    return tl_join_check(join, shapes, s->signature->input_count, dims, diag);
}

/* Reads the model for every combination. */
static tl_status check_range(const chooser *s, const choice *c, tl_join *join, tl_diag *diag)
{
    tl_shape_override *shapes = TL_NEW_ARRAY(s->work, tl_shape_override, s->signature->input_count);
    int64_t dims[TL_MOST_DIMS], total = 1;
    for (int d = 0; d < c->count; d++) {
        int64_t extents = s->after[c->of[d]] - s->before[c->of[d]] + 1;
        if (tl_mul_overflows(total, extents, &total) || total > TL_MOST_COMBINATIONS)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "the ranges have more than %d combinations, of which each is checked",
                           TL_MOST_COMBINATIONS);
    }
    for (int64_t i = 0; i < total; i++) {
        int64_t rest = i;
        for (int d = 0; d < c->count; d++) {
            int64_t extents = s->after[c->of[d]] - s->before[c->of[d]] + 1;
            dims[d] = s->before[c->of[d]] + rest % extents;
            rest /= extents;
        }
        if (s->options->progress != NULL && i % 64 == 0)
            s->options->progress(s->options->user, "checking shapes", (int)i, (int)total);
        tl_status status = check_point(s, c, join, dims, shapes, diag);
        for (int d = 0; status != TL_OK && d < c->count; d++)
            tl_context(diag, "where %s is %lld", s->axes->axes[c->of[d]].name, (long long)dims[d]);
        TL_TRY(status);
    }
    return TL_OK;
}

static tl_status join_ranges(chooser *s, const tl_shape_override *low, tl_join **out, tl_diag *diag)
{
    choice all;
    if (TL_ARENA_GUARD(s->work))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    if (!s->axes->is_known)
        return tl_fail(diag, TL_UNSUPPORTED, "an input may have any number of axes");
    int64_t *before = TL_NEW_ARRAY(s->work, int64_t, s->axes->count);
    int64_t *after = TL_NEW_ARRAY(s->work, int64_t, s->axes->count);
    tl_open_axes_read(s->axes, low, before);
    tl_open_axes_read(s->axes, s->now, after);
    s->before = before;
    s->after = after;
    TL_TRY(choose_ranges(s, &all, diag));
    tl_status status = attempt_all(s, &all, out, diag);
    if (status == TL_UNSUPPORTED && all.count > 1)
        status = attempt_tied(s, &all, out, NULL) == TL_OK ? TL_OK : status;
    TL_TRY(status);
    choice dims = without_followers(s, &all);
    return check_range(s, &dims, *out, diag);
}

tl_status tl_join_ranges(tl_arena *arena, tl_onnx *onnx, const tl_onnx_signature *signature,
                         const tl_shape_override *low, const tl_shape_override *high,
                         const tl_model_options *options, tl_join **out, tl_diag *diag)
{
    tl_open_axes axes = tl_open_axes_of(arena, signature);
    chooser s = { .arena = arena,
                  .onnx = onnx,
                  .signature = signature,
                  .axes = &axes,
                  .now = high,
                  .options = options,
                  .is_range = true };
    *out = NULL;
    s.work = tl_arena_create(0);
    if (s.work == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    tl_status status = join_ranges(&s, low, out, diag);
    tl_arena_destroy(s.work);
    if (status != TL_OK) {
        tl_join_destroy(*out);
        *out = NULL;
    }
    return status;
}
