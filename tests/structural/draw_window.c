/* tests/structural/draw_window.c: convolutions, pools, and what samples images. */
#include <math.h>
#include <string.h>
#include "tests/structural/draw.h"

static double magnitude(draw_range r)
{
    return fmax(fabs(r.low), fabs(r.high));
}

/* A window over the spatial axes of x, and what comes out. */
typedef struct {
    int axes;
    int64_t kernel[3], strides[3], pads[6], dilations[3], out[3];
    const char *auto_pad; /* NULL: pads count */
    bool ceil;
} window;

static bool draw_the_window(drawing *c, const draw_value *x, bool has_dilations, bool may_ceil,
                            window *w)
{
    *w = (window){ .axes = x->rank - 2 };
    bool square = draw_chance(c, 60), same_3 = draw_chance(c, 40);
    w->auto_pad = draw_chance(c, 15) ? draw_word(c, "SAME_UPPER SAME_LOWER VALID") : NULL;
    w->ceil = may_ceil && draw_chance(c, 20) && w->auto_pad == NULL;
    for (int i = 0; i < w->axes; i++) {
        bool like_first = square && i > 0;
        w->kernel[i] = same_3 ? 3 : like_first ? w->kernel[0] : draw_between(c, 1, 5);
        w->strides[i] = like_first ? w->strides[0] : draw_chance(c, 60) ? 1 : draw_between(c, 1, 3);
        w->dilations[i] = has_dilations && draw_chance(c, 20) && w->auto_pad == NULL ? 2 : 1;
        int64_t most = w->kernel[i] / 2;
        w->pads[i] = w->auto_pad != NULL || draw_chance(c, 30) ? 0
                     : same_3                                  ? 1
                                                               : draw_between(c, 0, most);
        w->pads[w->axes + i] = w->auto_pad != NULL ? 0
                               : same_3            ? w->pads[i]
                                                   : draw_between(c, 0, most);
        int64_t extent = x->dims[2 + i], span = (w->kernel[i] - 1) * w->dilations[i] + 1;
        int64_t room = extent + w->pads[i] + w->pads[w->axes + i] - span;
        if (w->auto_pad != NULL && w->auto_pad[0] == 'S') {
            w->out[i] = (extent + w->strides[i] - 1) / w->strides[i];
        } else {
            if (room < 0)
                return false;
            w->out[i] = room / w->strides[i] + 1;
            if (w->ceil && room % w->strides[i] != 0 &&
                w->out[i] * w->strides[i] < extent + w->pads[i])
                w->out[i]++; /* one more window, but none that begins behind the end */
        }
        if (extent == 0)
            return false;
    }
    return true;
}

static const char *window_text(drawing *c, const window *w, bool dilations)
{
    const char *text =
        tl_arena_format(c->arena, "kernel_shape=[%s] strides=[%s]",
                        draw_list(c, w->axes, w->kernel), draw_list(c, w->axes, w->strides));
    if (w->auto_pad != NULL)
        text = tl_arena_format(c->arena, "%s auto_pad='%s'", text, w->auto_pad);
    else
        text = tl_arena_format(c->arena, "%s pads=[%s]", text, draw_list(c, 2 * w->axes, w->pads));
    if (dilations)
        text = tl_arena_format(c->arena, "%s dilations=[%s]", text,
                               draw_list(c, w->axes, w->dilations));
    return w->ceil ? tl_arena_format(c->arena, "%s ceil_mode=1", text) : text;
}

/* An image: rank 3 to 5, nothing open but the batch. */
static const draw_value *pick_image(drawing *c, unsigned dtypes, double most)
{
    for (int i = c->count - 1; i >= 0 && draw_chance(c, 85); i--) {
        const draw_value *v = &c->values[i];
        bool fits = (dtypes & DRAW_BIT(v->dtype)) != 0 && v->rank >= 3 && v->rank <= 5 &&
                    draw_size(v) > 0 && draw_size(v) <= DRAW_ELEMENTS &&
                    magnitude(v->range) <= most && draw_may_read(c, v);
        for (int a = 1; fits && a < v->rank; a++)
            fits = !v->open[a];
        if (fits && draw_chance(c, 60))
            return v;
    }
    int rank = draw_chance(c, 70) ? 4 : (int)draw_between(c, 3, 5);
    int64_t dims[5] = { draw_between(c, 1, 2),
                        draw_chance(c, 60) ? draw_between(c, 1, 8) : draw_between(c, 8, 33) };
    bool open[5] = { c->has_open && !c->closed && draw_chance(c, 60) };
    if (open[0])
        dims[0] = c->open_extent;
    for (int i = 2; i < rank; i++)
        dims[i] = rank == 3   ? draw_between(c, 1, 40)
                  : rank == 4 ? draw_between(c, 1, 14)
                              : draw_between(c, 1, 5);
    while (draw_elements(rank, dims) > DRAW_ELEMENTS)
        for (int i = 1; i < rank; i++)
            dims[i] = (dims[i] + 1) / 2;
    tl_dtype dtype = draw_of(c, dtypes);
    return draw_new_open(c, dtype, rank, dims, open, draw_usual(dtype));
}

bool draw_conv(drawing *c)
{
    const draw_value *x =
        pick_image(c, c->opset >= 22 ? DRAW_FLOATS : DRAW_FLOATS & ~DRAW_BIT(TL_BF16), 300);
    window w;
    if (!draw_the_window(c, x, true, false, &w))
        return false;
    int64_t channels = x->dims[1], group = 1, per = 1;
    if (draw_chance(c, 25))
        group = channels; /* depthwise */
    else if (channels % 2 == 0 && draw_chance(c, 20))
        group = 2;
    int64_t out =
        group == channels ? channels * draw_between(c, 1, 2) : group * draw_between(c, 1, 12);
    int64_t dims[5] = { x->dims[0], out }, weights[5] = { out, channels / group };
    for (int i = 0; i < w.axes; i++) {
        dims[2 + i] = w.out[i];
        weights[2 + i] = w.kernel[i];
        per *= w.kernel[i];
    }
    int64_t terms = per * channels / group;
    if (draw_elements(x->rank, dims) * terms > DRAW_WORK ||
        draw_elements(x->rank, dims) > 4 * DRAW_ELEMENTS ||
        draw_elements(x->rank, weights) > 4 * DRAW_ELEMENTS)
        return false;
    const draw_value *f = draw_chance(c, 85)
                              ? draw_weight(c, x->dtype, x->rank, weights, draw_usual(x->dtype))
                              : draw_new(c, x->dtype, x->rank, weights, draw_usual(x->dtype));
    const draw_value *bias =
        draw_chance(c, 50) ? draw_new(c, x->dtype, 1, &out, draw_usual(x->dtype)) : NULL;
    double most = (double)terms * magnitude(x->range) * 2 + 2;
    bool is_exact = w.axes != 2 || w.kernel[0] != 3 || group > 1; /* Winograd's transforms round */
    draw_range r = { -most, most, is_exact ? x->range.step * 0.25 : 0 };
    if (!draw_fits(x->dtype, &r))
        return false;
    draw_node(c, "Conv", DRAW_IN(x, f, bias), 1, "%s group=%lld", window_text(c, &w, true),
              (long long)group);
    draw_result(c, x->dtype, x->rank, dims, x->open, r);
    return true;
}

bool draw_conv_transpose(drawing *c)
{
    const draw_value *x = pick_image(c, DRAW_FLOATS & ~DRAW_BIT(TL_BF16), 100);
    int axes = x->rank - 2;
    int64_t channels = x->dims[1], group = channels % 2 == 0 && draw_chance(c, 20) ? 2 : 1,
            out = draw_between(c, 1, 6);
    int64_t dims[5] = { x->dims[0], out * group }, weights[5] = { channels, out }, kernel[3],
            strides[3], pads[6] = { 0 }, more[3], per = 1;
    for (int i = 0; i < axes; i++) {
        kernel[i] = draw_between(c, 1, 4);
        strides[i] = draw_between(c, 1, 3);
        more[i] = strides[i] > 1 && draw_chance(c, 30) ? 1 : 0;
        pads[i] = draw_below(c, kernel[i]) / 2;
        pads[axes + i] = draw_below(c, kernel[i]) / 2;
        dims[2 + i] =
            strides[i] * (x->dims[2 + i] - 1) + more[i] + kernel[i] - pads[i] - pads[axes + i];
        weights[2 + i] = kernel[i];
        per *= kernel[i];
        if (dims[2 + i] < 1)
            return false;
    }
    if (draw_size(x) * out * per > DRAW_WORK / 4 ||
        draw_elements(x->rank, dims) > 4 * DRAW_ELEMENTS)
        return false;
    const draw_value *f = draw_new(c, x->dtype, x->rank, weights, draw_usual(x->dtype));
    int64_t all = out * group;
    const draw_value *bias =
        draw_chance(c, 50) ? draw_new(c, x->dtype, 1, &all, draw_usual(x->dtype)) : NULL;
    double most = (double)(per * channels) * magnitude(x->range) * 2 + 2;
    draw_range r = DRAW_REAL(-most, most);
    if (!draw_fits(x->dtype, &r))
        return false;
    draw_node(c, "ConvTranspose", DRAW_IN(x, f, bias), 1,
              "kernel_shape=[%s] strides=[%s] pads=[%s] output_padding=[%s] group=%lld",
              draw_list(c, axes, kernel), draw_list(c, axes, strides), draw_list(c, 2 * axes, pads),
              draw_list(c, axes, more), (long long)group);
    draw_result(c, x->dtype, x->rank, dims, NULL, r);
    return true;
}

bool draw_pool(drawing *c)
{
    const char *op = draw_word(c, "MaxPool MaxPool AveragePool LpPool");
    bool max = op[0] == 'M', average = op[0] == 'A';
    unsigned dtypes = c->opset >= 22 && !max ? DRAW_FLOATS : DRAW_FLOATS & ~DRAW_BIT(TL_BF16);
    if (max && c->opset >= 12)
        dtypes |= DRAW_BIT(TL_I8) | DRAW_BIT(TL_U8);
    const draw_value *x = pick_image(c, dtypes, 1000);
    bool dilations = max ? c->opset >= 10 : c->opset >= 19;
    window w;
    if (!draw_the_window(c, x, dilations, max ? c->opset >= 10 : average && c->opset >= 19, &w))
        return false;
    int64_t dims[5] = { x->dims[0], x->dims[1] };
    for (int i = 0; i < w.axes; i++) {
        dims[2 + i] = w.out[i];
        if (w.pads[i] >= w.kernel[i] || w.pads[w.axes + i] >= w.kernel[i] ||
            (max && w.dilations[i] > 1 && w.pads[i] + w.pads[w.axes + i] > 0))
            return false; /* windows of padding alone */
    }
    if (draw_elements(x->rank, dims) > 4 * DRAW_ELEMENTS)
        return false;
    draw_range r = x->range;
    const char *text = window_text(c, &w, dilations);
    if (average) {
        text = tl_arena_format(c->arena, "%s count_include_pad=%d", text, draw_chance(c, 40));
        r = DRAW_REAL(fmin(r.low, 0), fmax(r.high, 0));
    } else if (!max) {
        text = tl_arena_format(c->arena, "%s p=%d", text, draw_chance(c, 50) ? 1 : 2);
        r = DRAW_REAL(0, magnitude(r) * 125);
    }
    bool indices = max && draw_is_exact(x) && draw_chance(c, 20) && c->opset >= 8;
    draw_node(c, op, DRAW_IN(x), indices ? 2 : 1, "%s", text);
    draw_result(c, x->dtype, x->rank, dims, x->open, r);
    if (indices)
        draw_result(c, TL_I64, x->rank, dims, x->open, DRAW_WHOLE(0, 2 * DRAW_ELEMENTS));
    return true;
}

bool draw_global_pool(drawing *c)
{
    const draw_value *x = pick_image(c, DRAW_FLOATS & ~DRAW_BIT(TL_BF16), 1000);
    const char *op = draw_word(c, "GlobalAveragePool GlobalMaxPool GlobalLpPool");
    int64_t dims[5] = { x->dims[0], x->dims[1], 1, 1, 1 };
    draw_range r = x->range;
    if (op[6] != 'M')
        r = op[6] == 'A' ? DRAW_REAL(r.low, r.high)
                         : DRAW_REAL(0, magnitude(r) * (double)draw_size(x));
    if (!draw_fits(x->dtype, &r))
        return false;
    draw_node(c, op, DRAW_IN(x), 1, "%s", op[6] == 'L' ? "p=2" : "");
    draw_result(c, x->dtype, x->rank, dims, x->open, r);
    return true;
}

bool draw_resize(drawing *c)
{
    const draw_value *x =
        pick_image(c, c->opset >= 13 ? DRAW_FLOATS & ~DRAW_BIT(TL_BF16) : DRAW_BIT(TL_F32), 1000);
    const char *mode = draw_word(c, "nearest linear cubic");
    const char *coordinates =
        draw_word(c, "half_pixel asymmetric align_corners pytorch_half_pixel");
    int64_t sizes[5], dims[5];
    if (x->rank != 4 && mode[0] == 'c')
        return false;
    for (int i = 0; i < x->rank; i++)
        dims[i] = sizes[i] = i < 2 ? x->dims[i] : x->dims[i] * draw_between(c, 1, 3);
    if (draw_elements(x->rank, dims) > 2 * DRAW_ELEMENTS)
        return false;
    const draw_value *to = draw_numbers(c, TL_I64, x->rank, sizes, false);
    int64_t none = 0;
    const draw_value *roi = c->opset < 13 ? draw_weight(c, x->dtype, 1, &none, DRAW_WHOLE(0, 0))
                                          : NULL,
                     *scales =
                         c->opset < 13 ? draw_weight(c, TL_F32, 1, &none, DRAW_WHOLE(0, 0)) : NULL;
    const char *nearest =
        mode[0] == 'n'
            ? tl_arena_format(c->arena, "nearest_mode='%s'",
                              draw_word(c, "floor ceil round_prefer_floor round_prefer_ceil"))
            : "";
    if (mode[0] == 'n' && coordinates[0] != 'a')
        coordinates = "asymmetric"; /* whole positions and halves: no last bit decides */
    if (mode[0] == 'n' && coordinates[1] == 'l')
        coordinates = "asymmetric";
    draw_node(c, "Resize", DRAW_IN(x, roi, scales, to), 1,
              "mode='%s' coordinate_transformation_mode='%s' %s", mode, coordinates, nearest);
    double most = 2 * magnitude(x->range);
    draw_result(c, x->dtype, x->rank, dims, NULL,
                mode[0] == 'n' ? x->range : DRAW_REAL(-most, most));
    return true;
}

bool draw_grid_sample(drawing *c)
{
    const draw_value *x = draw_new(c, TL_F32, 4,
                                   (int64_t[]){ 1, draw_between(c, 1, 3), draw_between(c, 2, 6),
                                                draw_between(c, 2, 6) },
                                   draw_usual(TL_F32));
    int64_t grid[4] = { 1, draw_between(c, 1, 5), draw_between(c, 1, 5), 2 },
            dims[4] = { 1, x->dims[1], grid[1], grid[2] };
    const draw_value *g = draw_new(c, TL_F32, 4, grid, DRAW_REAL(-0.9, 0.9));
    draw_node(c, "GridSample", DRAW_IN(x, g), 1, "mode='%s' padding_mode='%s' align_corners=%d",
              draw_word(c, "linear cubic"), draw_word(c, "zeros border reflection"),
              draw_chance(c, 50));
    draw_result(c, TL_F32, 4, dims, NULL, DRAW_REAL(-8, 8));
    return true;
}

bool draw_col2im(drawing *c)
{
    int64_t h = draw_between(c, 2, 6), w = draw_between(c, 2, 6), kh = draw_between(c, 1, 2),
            kw = draw_between(c, 1, 2), ch = draw_between(c, 1, 3);
    int64_t blocks = (h - kh + 1) * (w - kw + 1), in[3] = { 1, ch * kh * kw, blocks },
            image[2] = { h, w }, block[2] = { kh, kw }, dims[4] = { 1, ch, h, w };
    tl_dtype dtype = draw_of(c, DRAW_FLOATS);
    const draw_value *x = draw_new(c, dtype, 3, in, draw_usual(dtype)),
                     *i = draw_numbers(c, TL_I64, 2, image, false),
                     *b = draw_numbers(c, TL_I64, 2, block, false);
    draw_node(c, "Col2Im", DRAW_IN(x, i, b), 1, "%s", "");
    draw_result(c, dtype, 4, dims, NULL, (draw_range){ -8, 8, 0.25 });
    return true;
}

bool draw_max_unpool(drawing *c)
{
    int64_t dims[4] = { 1, draw_between(c, 1, 3), 2 * draw_between(c, 1, 4),
                        2 * draw_between(c, 1, 4) };
    int64_t half[4] = { 1, dims[1], dims[2] / 2, dims[3] / 2 };
    const draw_value *x = draw_new(c, TL_F32, 4, dims, draw_usual(TL_F32));
    draw_node(c, "MaxPool", DRAW_IN(x), 2, "kernel_shape=[2,2] strides=[2,2]%s", "");
    const draw_value *y = draw_result(c, TL_F32, 4, half, NULL, x->range);
    const draw_value *i =
        draw_result(c, TL_I64, 4, half, NULL, DRAW_WHOLE(0, (double)draw_size(x)));
    draw_node(c, "MaxUnpool", DRAW_IN(y, i), 1, "kernel_shape=[2,2] strides=[2,2]%s", "");
    draw_result(c, TL_F32, 4, dims, NULL, (draw_range){ -2, 2, 0.25 });
    return true;
}

bool draw_deform_conv(drawing *c)
{
    int64_t ch = draw_between(c, 1, 3), h = draw_between(c, 3, 6), out = draw_between(c, 1, 4),
            k = 2, o = h - k + 1;
    int64_t dims[4] = { 1, ch, h, h }, f[4] = { out, ch, k, k }, shift[4] = { 1, 2 * k * k, o, o },
            y[4] = { 1, out, o, o };
    const draw_value *x = draw_new(c, TL_F32, 4, dims, draw_usual(TL_F32)),
                     *w = draw_new(c, TL_F32, 4, f, draw_usual(TL_F32)),
                     *offset = draw_new(c, TL_F32, 4, shift, DRAW_REAL(-0.9, 0.9));
    draw_node(c, "DeformConv", DRAW_IN(x, w, offset), 1, "kernel_shape=[2,2]%s", "");
    draw_result(c, TL_F32, 4, y, NULL, DRAW_REAL(-200, 200));
    return true;
}

bool draw_roi_align(drawing *c)
{
    int64_t dims[4] = { 2, draw_between(c, 1, 3), draw_between(c, 4, 8), draw_between(c, 4, 8) },
            n = draw_between(c, 1, 3), rois[2] = { n, 4 },
            y[4] = { n, dims[1], draw_between(c, 1, 3), draw_between(c, 1, 3) };
    const draw_value *x = draw_new(c, TL_F32, 4, dims, draw_usual(TL_F32));
    const draw_value *r = draw_new(c, TL_F32, 2, rois, DRAW_REAL(0.3, 0.9)),
                     *b = draw_new(c, TL_I64, 1, &n, DRAW_WHOLE(0, 1));
    draw_node(c, "RoiAlign", DRAW_IN(x, r, b), 1,
              "output_height=%lld output_width=%lld sampling_ratio=2 mode='%s'", (long long)y[2],
              (long long)y[3], draw_word(c, "avg max"));
    draw_result(c, TL_F32, 4, y, NULL, DRAW_REAL(-2, 2));
    return true;
}
