/* tests/structural/draw_rare.c: operators that few models have. */
#include <math.h>
#include <string.h>
#include "tests/structural/draw.h"

static draw_range one(void)
{
    return DRAW_REAL(-1, 1);
}

static const draw_value *scalar(drawing *c, tl_dtype dtype, double value)
{
    return draw_weight(c, dtype, 0, NULL, (draw_range){ value, value, 0.25 });
}

/* Signals: a transform of pieces of one, and the filters that come behind it. */
static bool draw_short_transform(drawing *c)
{
    int64_t batch = draw_between(c, 1, 2), frame = 2 * draw_between(c, 2, 8),
            step = draw_between(c, 1, frame), frames = draw_between(c, 1, 4);
    int64_t length = frame + (frames - 1) * step, in[3] = { batch, length, 1 },
            out[4] = { batch, frames, frame / 2 + 1, 2 };
    const draw_value *x = draw_new(c, TL_F32, 3, in, draw_usual(TL_F32)),
                     *s = draw_numbers(c, TL_I64, 1, &step, true);
    const draw_value *w =
        draw_chance(c, 50) ? draw_weight(c, TL_F32, 1, &frame, DRAW_REAL(0, 1)) : NULL;
    const draw_value *f =
        w == NULL || draw_chance(c, 50) ? draw_numbers(c, TL_I64, 1, &frame, true) : NULL;
    draw_node(c, "STFT", DRAW_IN(x, s, w, f), 1, "onesided=1%s", "");
    draw_result(c, TL_F32, 4, out, NULL, DRAW_REAL(-50, 50));
    return true;
}

static bool draw_mel(drawing *c)
{
    int64_t bins[1] = { draw_between(c, 2, 8) }, size[1] = { 16 }, rate[1] = { 8192 },
            out[2] = { 9, bins[0] };
    const draw_value *a = draw_numbers(c, TL_I64, 1, bins, true),
                     *b = draw_numbers(c, TL_I64, 1, size, true),
                     *r = draw_numbers(c, TL_I64, 1, rate, true), *low = scalar(c, TL_F32, 0),
                     *high = scalar(c, TL_F32, 4096);
    draw_node(c, "MelWeightMatrix", DRAW_IN(a, b, r, low, high), 1, "%s", "");
    draw_result(c, TL_F32, 2, out, NULL, DRAW_REAL(0, 1));
    return true;
}

static bool draw_affine(drawing *c)
{
    int64_t n = draw_between(c, 1, 2),
            size[4] = { n, 1, draw_between(c, 2, 5), draw_between(c, 2, 5) },
            theta[3] = { n, 2, 3 }, out[4] = { n, size[2], size[3], 2 };
    const draw_value *t = draw_new(c, TL_F32, 3, theta, one()),
                     *s = draw_numbers(c, TL_I64, 4, size, false);
    draw_node(c, "AffineGrid", DRAW_IN(t, s), 1, "align_corners=%d", draw_chance(c, 50));
    draw_result(c, TL_F32, 4, out, NULL, DRAW_REAL(-3, 3));
    return true;
}

static bool draw_linear_attention(drawing *c)
{
    int64_t b = draw_between(c, 1, 2), h = draw_between(c, 1, 2), s = draw_between(c, 1, 4),
            d = draw_between(c, 1, 5), dims[3] = { b, s, h * d }, state[4] = { b, h, d, d };
    const draw_value *q = draw_new(c, TL_F32, 3, dims, one()),
                     *k = draw_new(c, TL_F32, 3, dims, one()),
                     *v = draw_new(c, TL_F32, 3, dims, one()),
                     *past = draw_chance(c, 50) ? draw_new(c, TL_F32, 4, state, one()) : NULL;
    draw_node(c, "LinearAttention", DRAW_IN(q, k, v, past), 2,
              "update_rule='linear' q_num_heads=%lld kv_num_heads=%lld", (long long)h,
              (long long)h);
    draw_result(c, TL_F32, 3, dims, NULL, DRAW_REAL(-40, 40));
    draw_result(c, TL_F32, 4, state, NULL, DRAW_REAL(-10, 10));
    return true;
}

static bool draw_causal_conv(drawing *c)
{
    int64_t b = draw_between(c, 1, 2), ch = draw_between(c, 1, 6), s = draw_between(c, 1, 9),
            k = draw_between(c, 2, 4);
    int64_t x[3] = { b, ch, s }, w[3] = { ch, 1, k }, state[3] = { b, ch, k - 1 };
    const draw_value *vx = draw_new(c, TL_F32, 3, x, draw_usual(TL_F32)),
                     *vw = draw_weight(c, TL_F32, 3, w, draw_usual(TL_F32)),
                     *bias = draw_chance(c, 50) ? draw_weight(c, TL_F32, 1, &ch, draw_usual(TL_F32))
                                                : NULL,
                     *past = draw_chance(c, 50) ? draw_new(c, TL_F32, 3, state, draw_usual(TL_F32))
                                                : NULL;
    draw_node(c, "CausalConvWithState", DRAW_IN(vx, vw, bias, past), 2, "activation='%s'",
              draw_word(c, "none silu swish"));
    draw_result(c, TL_F32, 3, x, NULL, DRAW_REAL(-30, 30));
    draw_result(c, TL_F32, 3, state, NULL, draw_usual(TL_F32));
    return true;
}

static bool draw_tensor_scatter(drawing *c)
{
    int64_t b = draw_between(c, 1, 3), most = draw_between(c, 3, 8), d = draw_between(c, 1, 4),
            s = draw_between(c, 1, 2), past[3] = { b, most, d }, update[3] = { b, s, d };
    const draw_value *x = draw_new(c, c->main, 3, past, draw_usual(c->main)),
                     *u = draw_new(c, c->main, 3, update, draw_usual(c->main)),
                     *at = draw_chance(c, 70)
                               ? draw_new(c, TL_I64, 1, &b, DRAW_WHOLE(0, (double)(most - s)))
                               : NULL;
    draw_node(c, "TensorScatter", DRAW_IN(x, u, at), 1, "axis=1 mode='%s'",
              draw_word(c, "linear circular"));
    draw_result(c, c->main, 3, past, NULL, draw_usual(c->main));
    return true;
}

static bool draw_swiglu(drawing *c)
{
    const draw_value *x =
        draw_pick(c, &(draw_want){ .dtypes = DRAW_FLOATS, .low = -20, .high = 20 });
    const draw_value *y = draw_new(c, x->dtype, x->rank, x->dims, draw_usual(x->dtype));
    draw_node(c, "SwiGLU", DRAW_IN(x, y), 1, "alpha=%s", draw_word(c, "1.0 0.5"));
    draw_result_like(c, x, x->dtype, DRAW_REAL(-40, 40));
    return true;
}

static bool draw_size_of(drawing *c)
{
    const draw_value *x = draw_pick(c, &(draw_want){ .dtypes = DRAW_ANY });
    draw_node(c, "Size", DRAW_IN(x), 1, "%s", "");
    draw_result(c, TL_I64, 0, NULL, NULL, DRAW_WHOLE(0, 2 * DRAW_ELEMENTS));
    return true;
}

bool draw_rare(drawing *c)
{
    static const struct {
        int since;
        draw_fn *draw;
    } all[] = {
        { 17, draw_short_transform },  { 17, draw_mel },         { 20, draw_affine },
        { 27, draw_linear_attention }, { 27, draw_causal_conv }, { 24, draw_tensor_scatter },
        { 28, draw_swiglu },           { 13, draw_size_of },
    };
    int i = (int)draw_below(c, sizeof all / sizeof all[0]);
    return c->opset >= all[i].since && all[i].draw(c);
}

/* What opsets took away or gave another form. */
bool draw_old(drawing *c)
{
    if (c->opset >= 9 && c->opset <= 10 && draw_chance(c, 50)) {
        const draw_value *x = draw_pick(c, &(draw_want){ .dtypes = DRAW_USUAL_FLOATS,
                                                         .least_rank = 1,
                                                         .most_rank = 3,
                                                         .full = true });
        int64_t of[TL_MAX_RANK];
        int axis = (int)draw_below(c, x->rank);
        for (int i = 0; i < x->rank; i++)
            of[i] = draw_between(c, 1, x->dims[i] < 4 ? x->dims[i] : 4);
        const draw_value *indices = draw_new(c, TL_I64, x->rank, of,
                                             DRAW_WHOLE(0, (double)x->dims[axis] - 1)),
                         *updates = draw_new(c, x->dtype, x->rank, of, draw_usual(x->dtype));
        draw_range usual = draw_usual(x->dtype);
        draw_node(c, "Scatter", DRAW_IN(x, indices, updates), 1, "axis=%d", axis);
        draw_result_like(c, x, x->dtype,
                         (draw_range){ fmin(x->range.low, usual.low),
                                       fmax(x->range.high, usual.high),
                                       fmin(x->range.step, usual.step) });
        return true;
    }
    int64_t dims[4] = { 1, draw_between(c, 1, 3), draw_between(c, 1, 5), draw_between(c, 1, 5) },
            out[4] = { 1, dims[1], 2 * dims[2], 2 * dims[3] }, four = 4;
    const draw_value *x = draw_new(c, TL_F32, 4, dims, draw_usual(TL_F32));
    const char *mode = draw_word(c, "nearest linear");
    if (c->opset == 9) {
        draw_value scales = { .name = tl_arena_format(c->arena, "scales%d", c->count),
                              .dtype = TL_F32,
                              .rank = 1,
                              .dims = { four } };
        tl_text_format(&c->head, "init %s f32 4 = 1,1,2,2;\n", scales.name);
        draw_node(c, "Upsample", DRAW_IN(x, &scales), 1, "mode='%s'", mode);
    } else if (c->opset <= 8) {
        draw_node(c, "Upsample", DRAW_IN(x), 1, "mode='%s' scales=[1.0,1.0,2.0,2.0]", mode);
    } else {
        return false;
    }
    draw_result(c, TL_F32, 4, out, NULL, DRAW_REAL(-2, 2));
    return true;
}
