/* tests/structural/draw_layout.c: operators that move elements and compute none. */
#include <math.h>
#include <string.h>
#include "tests/structural/draw.h"

static const draw_value *pick_any(drawing *c, int least_rank)
{
    return draw_pick(c, &(draw_want){ .dtypes = DRAW_ANY, .least_rank = least_rank });
}

bool draw_transpose(drawing *c)
{
    const draw_value *x = pick_any(c, draw_chance(c, 90) ? 2 : 0);
    int64_t perm[TL_MAX_RANK], dims[TL_MAX_RANK];
    bool open[TL_MAX_RANK];
    bool said = draw_chance(c, 85);
    for (int i = 0; i < x->rank; i++)
        perm[i] = said ? i : x->rank - 1 - i;
    for (int i = x->rank - 1; said && i > 0; i--) {
        int k = (int)draw_below(c, i + 1);
        int64_t keep = perm[i];
        perm[i] = perm[k];
        perm[k] = keep;
    }
    for (int i = 0; i < x->rank; i++) {
        dims[i] = x->dims[perm[i]];
        open[i] = x->open[perm[i]];
    }
    draw_node(c, "Transpose", DRAW_IN(x), 1, said ? "perm=[%s]" : "%.0s",
              draw_list(c, x->rank, perm));
    draw_result(c, x->dtype, x->rank, dims, open, x->range);
    return true;
}

static const draw_value *known_numbers(drawing *c, int count, const int64_t *numbers)
{
    return draw_numbers(c, TL_I64, count, numbers, false);
}

/* Splits and merges neighbouring axes; what is open stays an axis of its own. */
bool draw_reshape(drawing *c)
{
    const draw_value *x = pick_any(c, 0);
    int64_t dims[TL_MAX_RANK], said[TL_MAX_RANK];
    bool open[TL_MAX_RANK] = { false };
    int rank = 0, inferred = -1;
    bool is_open = draw_is_open(x), allow_zero = false;
    bool flattens = c->opset >= 9 || (tl_dtype_is_float(x->dtype) && x->dtype != TL_BF16);
    if (flattens && draw_chance(c, 15)) { /* Flatten */
        int axis = (int)draw_below(c, x->rank + 1);
        int64_t flat[2] = { draw_elements(axis, x->dims),
                            draw_elements(x->rank - axis, x->dims + axis) };
        for (int i = 0; i < x->rank; i++) {
            bool alone = draw_elements(axis, x->dims) == x->dims[i] && i < axis;
            if (x->open[i] && !(alone && axis == 1))
                return false;
            open[0] |= x->open[i];
        }
        bool signed_axis = c->opset >= 11 && axis < x->rank && draw_chance(c, 40);
        draw_node(c, "Flatten", DRAW_IN(x), 1, "axis=%d", signed_axis ? axis - x->rank : axis);
        draw_result(c, x->dtype, 2, flat, open, x->range);
        return true;
    }
    for (int i = 0; i < x->rank && rank < 6; i++) {
        int64_t extent = x->dims[i];
        if (x->open[i]) {
            open[rank] = true;
            dims[rank++] = extent;
            continue;
        }
        while (i + 1 < x->rank && !x->open[i + 1] && (draw_chance(c, 40) || rank == 5))
            extent *= x->dims[++i];
        int64_t factor = extent > 1 ? draw_between(c, 1, 8) : 1;
        if (extent > 0 && extent % factor == 0 && draw_chance(c, 50) && rank < 4) {
            dims[rank++] = factor;
            extent /= factor;
        }
        dims[rank++] = extent;
    }
    if (!is_open && draw_elements(rank, dims) != draw_size(x))
        return false;
    for (int i = 0; is_open && i < x->rank; i++) /* all axes got their place */
        if (x->open[i] && (rank >= 6 || draw_elements(rank, dims) != draw_size(x)))
            return false;
    for (int i = 0; i < rank; i++) {
        said[i] = dims[i];
        if (open[i] && i < x->rank && x->open[i] && dims[i] > 0 && draw_chance(c, 50)) {
            said[i] = 0;
        } else if (open[i]) {
            if (inferred >= 0 || draw_size(x) == 0)
                return false;
            said[i] = -1;
            inferred = i;
        }
    }
    for (int i = 0; i < rank; i++)
        allow_zero |= dims[i] == 0 && said[i] == 0;
    int at = rank > 0 ? (int)draw_below(c, rank) : 0;
    if (rank > 0 && inferred < 0 && draw_size(x) > 0 && !open[at] && draw_chance(c, 40))
        said[at] = -1;
    for (int i = 0; i < rank; i++)
        if (allow_zero && (c->opset < 14 || (said[i] == 0 && open[i])))
            return false;
    const draw_value *shape = known_numbers(c, rank, said);
    draw_node(c, "Reshape", DRAW_IN(x, shape), 1, "%s", allow_zero ? "allowzero=1" : "");
    draw_result(c, x->dtype, rank, dims, open, x->range);
    return true;
}

bool draw_squeeze(drawing *c)
{
    const draw_value *x = pick_any(c, 0);
    bool squeezes = draw_chance(c, 40), by_input = c->opset >= 13;
    int64_t axes[TL_MAX_RANK], dims[TL_MAX_RANK];
    bool open[TL_MAX_RANK] = { false };
    int count = 0, rank = 0, full = x->rank;
    if (squeezes) {
        for (int i = 0; i < x->rank; i++)
            if (x->dims[i] == 1 && !x->open[i] && draw_chance(c, 70)) {
                axes[count++] = draw_signed_axis(c, i, c->opset >= 11 ? x->rank : 0);
            } else {
                open[rank] = x->open[i];
                dims[rank++] = x->dims[i];
            }
        if (count == 0)
            return false;
        for (int i = 0; i < count && c->opset < 11; i++)
            axes[i] += axes[i] < 0 ? x->rank : 0;
    } else {
        int more = (int)draw_between(c, 1, 2);
        full += more;
        if (full > 6)
            return false;
        for (int i = 0, left = more; i < full; i++)
            if (left > 0 && (draw_below(c, full - i) < left || rank == x->rank)) {
                axes[count++] = c->opset >= 11 ? draw_signed_axis(c, i, full) : i;
                open[i] = false;
                dims[i] = 1;
                left--;
            } else {
                open[i] = x->open[rank];
                dims[i] = x->dims[rank++];
            }
        rank = full;
    }
    for (int i = 0; i < count; i++)
        if (axes[i] >= full || (c->opset < 11 && axes[i] < 0))
            return false;
    const char *op = squeezes ? "Squeeze" : "Unsqueeze";
    if (by_input)
        draw_node(c, op, DRAW_IN(x, known_numbers(c, count, axes)), 1, "%s", "");
    else
        draw_node(c, op, DRAW_IN(x), 1, "axes=[%s]", draw_list(c, count, axes));
    draw_result(c, x->dtype, rank, dims, open, x->range);
    return true;
}

bool draw_concat(drawing *c)
{
    const draw_value *x = pick_any(c, 1), *parts[5] = { x };
    int axis = draw_axis(c, x), count = (int)draw_between(c, 1, 4);
    if (axis < 0)
        return false;
    int64_t dims[TL_MAX_RANK], total = x->dims[axis];
    draw_range r = x->range;
    for (int k = 1; k < count; k++) {
        const draw_value *y = draw_chance(c, 15) ? x : NULL;
        for (int tries = 0; tries < 12 && y == NULL; tries++) {
            const draw_value *other = &c->values[draw_below(c, c->count)];
            bool fits = other->dtype == x->dtype && other->rank == x->rank && !other->open[axis] &&
                        draw_may_read(c, other);
            for (int i = 0; fits && i < x->rank; i++)
                fits = i == axis || (other->dims[i] == x->dims[i] && other->open[i] == x->open[i]);
            y = fits ? other : NULL;
        }
        if (y == NULL) {
            memcpy(dims, x->dims, sizeof dims);
            dims[axis] = draw_between(c, 0, 6);
            y = draw_new_open(c, x->dtype, x->rank, dims, x->open, draw_usual(x->dtype));
        }
        parts[k] = y;
        total += y->dims[axis];
        bool exact = draw_is_exact(y) && r.step > 0;
        r = (draw_range){ fmin(r.low, y->range.low), fmax(r.high, y->range.high),
                          exact ? fmin(r.step, y->range.step) : 0 };
    }
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = total;
    if (draw_elements(x->rank, dims) > 2 * DRAW_ELEMENTS)
        return false;
    draw_node(c, "Concat", (draw_inputs){ count, parts }, 1, "axis=%lld",
              (long long)(c->opset >= 11 ? draw_signed_axis(c, axis, x->rank) : axis));
    draw_result(c, x->dtype, x->rank, dims, x->open, r);
    return true;
}

bool draw_split(drawing *c)
{
    const draw_value *x = pick_any(c, 1);
    int axis = draw_axis(c, x), parts = (int)draw_between(c, 1, 4);
    if (axis < 0)
        return false;
    int64_t sizes[4], dims[TL_MAX_RANK], left = x->dims[axis];
    bool equal = left % parts == 0 && draw_chance(c, 40);
    int64_t at = c->opset >= 11 ? draw_signed_axis(c, axis, x->rank) : axis;
    for (int i = 0; i < parts; i++) {
        sizes[i] = equal ? x->dims[axis] / parts : i + 1 == parts ? left : draw_below(c, left + 1);
        left -= sizes[i];
    }
    if (c->opset >= 18 && equal)
        draw_node(c, "Split", DRAW_IN(x), parts, "axis=%lld num_outputs=%d", (long long)at, parts);
    else if (equal)
        draw_node(c, "Split", DRAW_IN(x), parts, "axis=%lld", (long long)at);
    else if (c->opset >= 13)
        draw_node(c, "Split", DRAW_IN(x, known_numbers(c, parts, sizes)), parts, "axis=%lld",
                  (long long)at);
    else
        draw_node(c, "Split", DRAW_IN(x), parts, "axis=%lld split=[%s]", (long long)at,
                  draw_list(c, parts, sizes));
    draw_value whole = *x; /* results may move the values */
    memcpy(dims, whole.dims, sizeof dims);
    for (int i = 0; i < parts; i++) {
        dims[axis] = sizes[i];
        draw_result(c, whole.dtype, whole.rank, dims, whole.open, whole.range);
    }
    return true;
}

/* What a slice takes of an axis, by ONNX's rules of clamping. */
static int64_t sliced(int64_t extent, int64_t start, int64_t end, int64_t step)
{
    int64_t least = step > 0 ? 0 : -1, most = step > 0 ? extent : extent - 1, count = 0;
    start = start < 0 ? start + extent : start;
    end = end < 0 ? end + extent : end;
    start = start < (step > 0 ? 0 : 0) ? 0 : start > most ? most : start;
    end = end < least ? least : end > extent ? extent : end;
    for (int64_t i = start; step > 0 ? i < end : i > end; i += step)
        count++;
    return extent == 0 ? 0 : count;
}

bool draw_slice(drawing *c)
{
    const draw_value *x = pick_any(c, 1);
    int64_t starts[TL_MAX_RANK], ends[TL_MAX_RANK], axes[TL_MAX_RANK], steps[TL_MAX_RANK],
        dims[TL_MAX_RANK];
    int count = 0;
    bool attributes = c->opset < 10, has_steps = !attributes && draw_chance(c, 50);
    memcpy(dims, x->dims, sizeof dims);
    for (int i = 0; i < x->rank; i++) {
        if (x->open[i] || (draw_chance(c, 45) && !(i + 1 == x->rank && count == 0)))
            continue;
        int64_t extent = x->dims[i];
        steps[count] = has_steps ? draw_between(c, 1, 3) * (draw_chance(c, 30) ? -1 : 1) : 1;
        starts[count] = draw_between(c, 0, extent > 0 ? extent - 1 : 0);
        ends[count] = draw_between(c, 0, extent);
        if (steps[count] < 0) { /* from the end to the beginning */
            starts[count] = draw_chance(c, 50) ? -1 : draw_between(c, 0, extent);
            ends[count] = draw_chance(c, 50) ? INT64_MIN + 1 : -draw_between(c, 1, extent + 3);
        } else if (starts[count] > ends[count] && draw_chance(c, 90)) {
            ends[count] = draw_chance(c, 50) ? INT64_MAX : extent;
        } else if (draw_chance(c, 30)) {
            starts[count] -= extent;
        }
        int64_t end = ends[count];
        dims[i] = sliced(extent, starts[count],
                         end > 1000    ? 1000
                         : end < -1000 ? -1000
                                       : end,
                         steps[count]);
        axes[count++] = c->opset >= 10 ? draw_signed_axis(c, i, x->rank) : i;
    }
    if (count == 0)
        return false;
    if (attributes) {
        draw_node(c, "Slice", DRAW_IN(x), 1, "starts=[%s] ends=[%s] axes=[%s]",
                  draw_list(c, count, starts), draw_list(c, count, ends),
                  draw_list(c, count, axes));
    } else {
        const draw_value *s = known_numbers(c, count, starts), *e = known_numbers(c, count, ends),
                         *a = known_numbers(c, count, axes),
                         *t = has_steps ? known_numbers(c, count, steps) : NULL;
        draw_node(c, "Slice", DRAW_IN(x, s, e, a, t), 1, "%s", "");
    }
    draw_result(c, x->dtype, x->rank, dims, x->open, x->range);
    return true;
}

bool draw_pad(drawing *c)
{
    bool old = c->opset < 11;
    const draw_value *x =
        draw_pick(c, &(draw_want){ .dtypes = old              ? DRAW_FLOATS
                                             : c->opset >= 13 ? DRAW_ANY
                                                              : draw_sums(c) & ~DRAW_NARROW,
                                   .least_rank = 1 });
    const char *mode =
        draw_word(c, c->opset >= 19 ? "constant reflect edge wrap" : "constant reflect edge");
    int64_t pads[2 * TL_MAX_RANK] = { 0 }, dims[TL_MAX_RANK];
    memcpy(dims, x->dims, sizeof dims);
    for (int i = 0; i < x->rank; i++) {
        if (x->open[i] || draw_chance(c, 30))
            continue;
        if (mode[0] != 'c' && x->dims[i] == 0)
            continue;
        int64_t most = mode[0] == 'r' || mode[0] == 'w' ? x->dims[i] - 1 : 4;
        most = most > 4 ? 4 : most;
        pads[i] = draw_between(c, 0, most);
        pads[x->rank + i] = draw_between(c, 0, most);
        if (draw_chance(c, 10) && x->dims[i] > 2 && mode[0] == 'c')
            pads[i] = -1;
        dims[i] += pads[i] + pads[x->rank + i];
    }
    if (draw_elements(x->rank, dims) > 2 * DRAW_ELEMENTS)
        return false;
    bool has_value = mode[0] == 'c' && draw_chance(c, 60);
    draw_range r = x->range;
    double value = has_value ? 1 : 0;
    if (mode[0] == 'c')
        r = (draw_range){ fmin(r.low, 0), fmax(r.high, value), r.step > 1 ? 1 : r.step };
    if (old) {
        draw_node(c, "Pad", DRAW_IN(x), 1, "mode='%s' value=%.1f pads=[%s]", mode, value,
                  draw_list(c, 2 * x->rank, pads));
    } else {
        const draw_value *p = known_numbers(c, 2 * x->rank, pads);
        const draw_value *v = has_value ? draw_new(c, x->dtype, 0, NULL, DRAW_WHOLE(1, 1)) : NULL;
        draw_node(c, "Pad", DRAW_IN(x, p, v), 1, "mode='%s'", mode);
    }
    draw_result(c, x->dtype, x->rank, dims, x->open, r);
    return true;
}

bool draw_expand(drawing *c)
{
    const draw_value *x = pick_any(c, 0);
    int64_t said[TL_MAX_RANK], dims[TL_MAX_RANK];
    if (draw_chance(c, 40) && x->rank > 0) { /* Tile */
        for (int i = 0; i < x->rank; i++) {
            said[i] = draw_between(c, draw_chance(c, 5) ? 0 : 1, 3);
            dims[i] = x->dims[i] * said[i];
        }
        if (draw_elements(x->rank, dims) > 2 * DRAW_ELEMENTS)
            return false;
        draw_node(c, "Tile", DRAW_IN(x, known_numbers(c, x->rank, said)), 1, "%s", "");
        draw_result(c, x->dtype, x->rank, dims, NULL, x->range);
        return true;
    }
    int more = x->rank < 5 ? (int)draw_below(c, 3) : 0, rank = x->rank + more;
    for (int i = 0; i < rank; i++) {
        int64_t extent = i < more ? 1 : x->dims[i - more];
        dims[i] = extent == 1 ? draw_between(c, 1, 5) : extent;
        said[i] = extent > 1 && draw_chance(c, 30) ? 1 : dims[i];
    }
    if (draw_elements(rank, dims) > 2 * DRAW_ELEMENTS)
        return false;
    draw_node(c, "Expand", DRAW_IN(x, known_numbers(c, rank, said)), 1, "%s", "");
    draw_result(c, x->dtype, rank, dims, NULL, x->range);
    return true;
}

/* Positions along an axis, counted from either end. */
static draw_range positions(drawing *c, int64_t extent)
{
    return DRAW_WHOLE(draw_chance(c, 40) && c->opset >= 11 ? -(double)extent : 0,
                      (double)extent - 1);
}

bool draw_gather(drawing *c)
{
    const draw_value *x = pick_any(c, 1);
    int axis = draw_axis(c, x);
    if (axis < 0 || x->dims[axis] == 0)
        return false;
    int64_t of[TL_MAX_RANK], dims[2 * TL_MAX_RANK];
    bool open[2 * TL_MAX_RANK] = { false };
    int rank = draw_shape(c, 0, 2, of), count = 0;
    if (x->rank - 1 + rank > 6)
        return false;
    tl_dtype dtype = draw_of(c, DRAW_BIT(TL_I32) | DRAW_BIT(TL_I64));
    for (int i = 0; i < x->rank; i++) {
        if (i != axis) {
            open[count] = x->open[i];
            dims[count++] = x->dims[i];
        }
        for (int k = 0; i == axis && k < rank; k++)
            dims[count++] = of[k];
    }
    if (draw_elements(count, dims) > 2 * DRAW_ELEMENTS)
        return false;
    const draw_value *indices = draw_new(c, dtype, rank, of, positions(c, x->dims[axis]));
    draw_node(c, "Gather", DRAW_IN(x, indices), 1, "axis=%lld",
              (long long)draw_signed_axis(c, axis, x->rank));
    draw_result(c, x->dtype, count, dims, open, x->range);
    return true;
}

bool draw_gather_elements(drawing *c)
{
    const draw_value *x =
        draw_pick(c, &(draw_want){ .dtypes = DRAW_ANY, .least_rank = 1, .full = true });
    int axis = draw_axis(c, x);
    int64_t dims[TL_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        dims[i] = i == axis ? draw_between(c, 1, 5) : draw_between(c, 1, x->dims[i]);
    if (draw_elements(x->rank, dims) > DRAW_ELEMENTS)
        return false;
    const draw_value *indices = draw_new(c, draw_of(c, DRAW_BIT(TL_I32) | DRAW_BIT(TL_I64)),
                                         x->rank, dims, positions(c, x->dims[axis]));
    draw_node(c, "GatherElements", DRAW_IN(x, indices), 1, "axis=%lld",
              (long long)draw_signed_axis(c, axis, x->rank));
    draw_result(c, x->dtype, x->rank, dims, NULL, x->range);
    return true;
}

bool draw_gather_nd(drawing *c)
{
    const draw_value *x =
        draw_pick(c, &(draw_want){
                         .dtypes = DRAW_ANY, .least_rank = 2, .most_rank = 4, .full = true });
    int batch = x->rank > 2 && !x->counted && draw_chance(c, 40) ? 1 : 0,
        depth = (int)draw_between(c, 1, x->rank - batch);
    int64_t of[TL_MAX_RANK], dims[TL_MAX_RANK], least = x->dims[batch];
    int rank = 0, count = 0;
    if (batch > 0)
        dims[count++] = of[rank++] = x->dims[0];
    for (int i = (int)draw_below(c, 3 - batch); i > 0; i--)
        dims[count++] = of[rank++] = draw_between(c, 1, 4);
    of[rank++] = depth;
    for (int i = batch; i < batch + depth; i++)
        least = x->dims[i] < least ? x->dims[i] : least;
    for (int i = batch + depth; i < x->rank; i++)
        dims[count++] = x->dims[i];
    if (draw_elements(count, dims) > 2 * DRAW_ELEMENTS)
        return false;
    const draw_value *indices = draw_new(c, TL_I64, rank, of, positions(c, least));
    draw_node(c, "GatherND", DRAW_IN(x, indices), 1, "%s", batch > 0 ? "batch_dims=1" : "");
    draw_result(c, x->dtype, count, dims, NULL, x->range);
    return true;
}

bool draw_scatter(drawing *c)
{
    const draw_value *x =
        draw_pick(c, &(draw_want){
                         .dtypes = draw_sums(c), .least_rank = 1, .most_rank = 4, .full = true });
    const char *reduction = draw_word(c, c->opset >= 18 ? "none add min max add" : "none add");
    if (draw_size(x) > 600)
        return false;
    draw_range usual = draw_usual(x->dtype), r = x->range;
    int64_t of[TL_MAX_RANK], dims[TL_MAX_RANK];
    bool nd = draw_chance(c, 50);
    int axis = (int)draw_below(c, x->rank);
    if (nd) {
        int depth = (int)draw_between(c, 1, x->rank), rank = 0;
        int64_t least = x->dims[0];
        of[0] = draw_between(c, 1, 4);
        of[1] = depth;
        dims[rank++] = of[0];
        for (int i = 0; i < x->rank; i++) {
            least = i < depth && x->dims[i] < least ? x->dims[i] : least;
            if (i >= depth)
                dims[rank++] = x->dims[i];
        }
        r = (draw_range){ fmin(r.low, usual.low), fmax(r.high, usual.high),
                          fmin(r.step, usual.step) };
        if (reduction[0] == 'a')
            r = (draw_range){ 5 * fmin(r.low, 0), 5 * fmax(r.high, 0), r.step };
        if (!draw_fits(x->dtype, &r))
            return false;
        const draw_value *indices = draw_new(c, TL_I64, 2, of, positions(c, least));
        const draw_value *updates = draw_new(c, x->dtype, rank, dims, usual);
        draw_node(c, "ScatterND", DRAW_IN(x, indices, updates), 1, "reduction='%s'", reduction);
    } else {
        for (int i = 0; i < x->rank; i++)
            of[i] = draw_between(c, 1, i == axis ? 5 : x->dims[i]);
        if (draw_elements(x->rank, of) > 400)
            return false;
        r = (draw_range){ fmin(r.low, usual.low), fmax(r.high, usual.high),
                          fmin(r.step, usual.step) };
        if (reduction[0] == 'a')
            r = (draw_range){ 6 * fmin(r.low, 0), 6 * fmax(r.high, 0), r.step };
        if (!draw_fits(x->dtype, &r))
            return false;
        const draw_value *indices = draw_new(c, TL_I64, x->rank, of, positions(c, x->dims[axis]));
        const draw_value *updates = draw_new(c, x->dtype, x->rank, of, usual);
        draw_node(c, "ScatterElements", DRAW_IN(x, indices, updates), 1, "axis=%lld reduction='%s'",
                  (long long)draw_signed_axis(c, axis, x->rank), reduction);
    }
    draw_result(c, x->dtype, x->rank, x->dims, NULL, r);
    return true;
}

bool draw_depth_space(drawing *c)
{
    int64_t block = draw_between(c, 1, 3), dims[4];
    bool open[4];
    bool to_depth = draw_chance(c, 50);
    const draw_value *x = NULL;
    for (int i = 0; i < c->count && x == NULL; i++) {
        const draw_value *v = &c->values[i];
        bool fits = v->rank == 4 && tl_dtype_is_float(v->dtype) && !v->open[1] && !v->open[2] &&
                    !v->open[3];
        fits = fits && (to_depth ? v->dims[2] % block == 0 && v->dims[3] % block == 0
                                 : v->dims[1] % (block * block) == 0);
        x = fits && draw_size(v) > 0 && draw_may_read(c, v) ? v : NULL;
    }
    if (x == NULL) {
        for (int i = 0; i < 4; i++)
            dims[i] = draw_between(c, 1, 3) * (to_depth ? (i >= 2 ? block : 1)
                                               : i == 1 ? block * block
                                                        : 1);
        tl_dtype dtype = draw_of(c, DRAW_FLOATS);
        x = draw_new(c, dtype, 4, dims, draw_usual(dtype));
    }
    memcpy(dims, x->dims, sizeof dims);
    memcpy(open, x->open, sizeof open);
    dims[1] = to_depth ? dims[1] * block * block : dims[1] / (block * block);
    for (int i = 2; i < 4; i++)
        dims[i] = to_depth ? dims[i] / block : dims[i] * block;
    if (to_depth || c->opset < 11)
        draw_node(c, to_depth ? "SpaceToDepth" : "DepthToSpace", DRAW_IN(x), 1, "blocksize=%lld",
                  (long long)block);
    else
        draw_node(c, "DepthToSpace", DRAW_IN(x), 1, "blocksize=%lld mode='%s'", (long long)block,
                  draw_word(c, "DCR CRD"));
    draw_result(c, x->dtype, 4, dims, open, x->range);
    return true;
}

bool draw_trilu(drawing *c)
{
    const draw_value *x = pick_any(c, 2);
    int64_t k = draw_between(c, -3, 3);
    const draw_value *offset = draw_chance(c, 60) ? draw_numbers(c, TL_I64, 1, &k, true) : NULL;
    draw_node(c, "Trilu", DRAW_IN(x, offset), 1, "upper=%d", draw_chance(c, 50));
    draw_result_like(c, x, x->dtype,
                     (draw_range){ fmin(x->range.low, 0), fmax(x->range.high, 0), x->range.step });
    return true;
}

bool draw_identity(drawing *c)
{
    const draw_value *x = pick_any(c, 0);
    if (draw_chance(c, 50) && tl_dtype_is_float(x->dtype))
        draw_node(c, "Dropout", DRAW_IN(x), 1, "%s", "");
    else
        draw_node(c, "Identity", DRAW_IN(x), 1, "%s", "");
    draw_result_like(c, x, x->dtype, x->range);
    return true;
}

/* The extents of a value as numbers, part of them as a shape again: what exporters write of axes that vary. */
bool draw_extents(drawing *c)
{
    const draw_value *x =
        draw_pick(c, &(draw_want){ .dtypes = DRAW_ANY, .least_rank = 1, .most_rank = 4 });
    int64_t rank = x->rank;
    draw_value keep = *x;
    draw_node(c, "Shape", DRAW_IN(x), 1, "%s", "");
    const draw_value *shape = draw_result(c, TL_I64, 1, &rank, NULL, DRAW_WHOLE(0, 4096));
    if (draw_chance(c, 50)) { /* zeros of that shape, which are added */
        if (!tl_dtype_is_float(keep.dtype) || (keep.dtype == TL_BF16 && c->opset < 20))
            return true;
        draw_node(c, "ConstantOfShape", DRAW_IN(shape), 1, "value=<%s 1 = 2>",
                  tl_dtype_infos[keep.dtype].text);
        draw_result(c, keep.dtype, keep.rank, keep.dims, keep.open, DRAW_WHOLE(2, 2));
        return true;
    }
    int64_t one[1] = { draw_below(c, rank) };
    const draw_value *index = draw_numbers(c, TL_I64, 1, one, false);
    draw_node(c, "Gather", DRAW_IN(shape, index), 1, "%s", "");
    int64_t extent = 1;
    const draw_value *first = draw_result(c, TL_I64, 1, &extent, NULL, DRAW_WHOLE(0, 4096));
    if (keep.rank < 2 || draw_size(&keep) == 0)
        return true;
    int64_t rest[1] = { -1 }, dims[2] = { keep.dims[one[0]], draw_size(&keep) / keep.dims[one[0]] };
    bool open[2] = { keep.open[one[0]], false };
    for (int i = 0; i < keep.rank; i++)
        open[1] |= keep.open[i] && i != one[0];
    if (open[1])
        return true;
    const draw_value *minus = draw_numbers(c, TL_I64, 1, rest, false);
    draw_node(c, "Concat", DRAW_IN(first, minus), 1, "axis=0");
    int64_t two = 2;
    const draw_value *target = draw_result(c, TL_I64, 1, &two, NULL, DRAW_WHOLE(-1, 4096));
    const draw_value *again = NULL;
    for (int i = 0; i < c->count && again == NULL; i++)
        again = c->values[i].name == keep.name ? &c->values[i] : NULL;
    draw_node(c, "Reshape", DRAW_IN(again, target), 1, "%s", "");
    draw_result(c, keep.dtype, 2, dims, open, keep.range);
    return true;
}

bool draw_counting(drawing *c)
{
    int64_t start = draw_between(c, -5, 5), step = draw_between(c, 1, 3),
            count = draw_between(c, 0, 20);
    tl_dtype dtype = draw_of(c, DRAW_BIT(TL_I64) | DRAW_BIT(TL_I32) | DRAW_BIT(TL_F32));
    int64_t numbers[3] = { start, start + step * count, step };
    const draw_value *s[3];
    for (int i = 0; i < 3; i++)
        s[i] = draw_weight(c, dtype, 0, NULL, DRAW_WHOLE((double)numbers[i], (double)numbers[i]));
    draw_node(c, "Range", (draw_inputs){ 3, s }, 1, "%s", "");
    draw_result(c, dtype, 1, &count, NULL,
                DRAW_WHOLE((double)start, (double)(start + step * count)));
    return true;
}

bool draw_one_hot(drawing *c)
{
    if (c->main == TL_BF16)
        return false;
    const draw_value *x = draw_pick(c, &(draw_want){ .dtypes = DRAW_BIT(TL_I64) | DRAW_BIT(TL_I32),
                                                     .least_rank = 1,
                                                     .most_rank = 3,
                                                     .most_elements = 200 });
    int64_t depth = draw_between(c, 1, 9), two = 2, numbers[1] = { depth };
    int axis = (int)draw_below(c, x->rank + 1);
    const draw_value *d = draw_numbers(c, TL_I64, 1, numbers, draw_chance(c, 50));
    const draw_value *values = draw_new(c, c->main, 1, &two, draw_usual(c->main));
    int64_t dims[TL_MAX_RANK];
    for (int i = 0; i <= x->rank; i++)
        dims[i] = i == axis ? depth : x->dims[i < axis ? i : i - 1];
    draw_node(c, "OneHot", DRAW_IN(x, d, values), 1, "axis=%lld",
              (long long)draw_signed_axis(c, axis, x->rank + 1));
    draw_result(c, c->main, x->rank + 1, dims, NULL, draw_usual(c->main));
    return true;
}

bool draw_reverse_sequence(drawing *c)
{
    const draw_value *x =
        draw_pick(c, &(draw_want){
                         .dtypes = DRAW_ANY & ~DRAW_BIT(TL_BF16), .least_rank = 2, .full = true });
    bool time_first = draw_chance(c, 50);
    int64_t batch = x->dims[time_first ? 1 : 0], time = x->dims[time_first ? 0 : 1];
    const draw_value *lengths = draw_new(c, TL_I64, 1, &batch, DRAW_WHOLE(1, (double)time));
    draw_node(c, "ReverseSequence", DRAW_IN(x, lengths), 1, "time_axis=%d batch_axis=%d",
              !time_first, time_first);
    draw_result_like(c, x, x->dtype, x->range);
    return true;
}

bool draw_eye_like(drawing *c)
{
    const draw_value *x = draw_pick(c, &(draw_want){ .dtypes = (DRAW_USUAL_FLOATS | DRAW_WIDE),
                                                     .least_rank = 2,
                                                     .most_rank = 2 });
    tl_dtype dtype = draw_of(c, DRAW_USUAL_FLOATS | DRAW_WIDE);
    draw_node(c, "EyeLike", DRAW_IN(x), 1, "dtype=%d k=%lld", tl_dtype_infos[dtype].onnx,
              (long long)draw_between(c, -3, 3));
    draw_result_like(c, x, dtype, DRAW_WHOLE(0, 1));
    return true;
}

bool draw_center_crop_pad(drawing *c)
{
    const draw_value *x = pick_any(c, 1);
    int axis = draw_axis(c, x);
    int64_t to[1] = { draw_between(c, 1, 9) }, dims[TL_MAX_RANK];
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = to[0];
    if (draw_elements(x->rank, dims) > 2 * DRAW_ELEMENTS)
        return false;
    const draw_value *shape = known_numbers(c, 1, to);
    draw_node(c, "CenterCropPad", DRAW_IN(x, shape), 1, "axes=[%d]", axis);
    draw_result(c, x->dtype, x->rank, dims, NULL,
                (draw_range){ fmin(x->range.low, 0), fmax(x->range.high, 0), x->range.step });
    return true;
}
