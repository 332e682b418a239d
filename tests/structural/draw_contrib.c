/* tests/structural/draw_contrib.c: operators of com.microsoft, as ONNX Runtime's optimizer writes them. */
#include <math.h>
#include "tests/structural/draw.h"

static const draw_value *scalar(drawing *c, tl_dtype dtype, double value)
{
    return draw_weight(c, dtype, 0, NULL, (draw_range){ value, value, 0.25 });
}

static draw_range bytes_of(tl_dtype dtype)
{
    return DRAW_WHOLE((double)tl_dtype_infos[dtype].least, (double)tl_dtype_infos[dtype].largest);
}

/* Products with an activation behind, of weights of few bits, of numbers of 8 bits with scales. */
static bool draw_fused_products(drawing *c)
{
    int64_t m = draw_between(c, 1, 5), k = draw_between(c, 1, 17), n = draw_between(c, 1, 9),
            x2[2] = { m, k }, w2[2] = { k, n }, y2[2] = { m, n };
    draw_range usual = draw_usual(TL_F32), sums = DRAW_REAL(-80, 80);
    switch (draw_below(c, 5)) {
    case 0: {
        int64_t x[4] = { 1, draw_between(c, 1, 4), draw_between(c, 3, 8), draw_between(c, 3, 8) },
                w[4] = { draw_between(c, 1, 6), x[1], 3, 3 }, y[4] = { 1, w[0], x[2], x[3] };
        const draw_value *vx = draw_new(c, TL_F32, 4, x, usual),
                         *vw = draw_weight(c, TL_F32, 4, w, usual),
                         *bias =
                             draw_chance(c, 60) ? draw_weight(c, TL_F32, 1, &w[0], usual) : NULL,
                         *z = bias != NULL && draw_chance(c, 50) ? draw_new(c, TL_F32, 4, y, usual)
                                                                 : NULL;
        draw_node(c, "com.microsoft.FusedConv", DRAW_IN(vx, vw, bias, z), 1,
                  "kernel_shape=[3,3] pads=[1,1,1,1] activation='%s'",
                  draw_word(c, "Relu Sigmoid Tanh"));
        draw_result(c, TL_F32, 4, y, NULL, DRAW_REAL(-160, 160));
        return true;
    }
    case 1: {
        const draw_value *x = draw_new(c, TL_F32, 2, x2, usual),
                         *w = draw_weight(c, TL_F32, 2, w2, usual),
                         *b = draw_weight(c, TL_F32, 1, &n, usual);
        draw_node(c, "com.microsoft.FusedGemm", DRAW_IN(x, w, b), 1, "activation='%s'",
                  draw_word(c, "Relu Sigmoid Tanh"));
        draw_result(c, TL_F32, 2, y2, NULL, sums);
        return true;
    }
    case 2: {
        int64_t block = draw_chance(c, 50) ? 16 : 32, inner = block * draw_between(c, 1, 2),
                blocks = inner / block, packed[3] = { n, blocks, block / 2 }, scales = n * blocks,
                rows[2] = { m, inner };
        const draw_value *x = draw_new(c, TL_F32, 2, rows, usual),
                         *w = draw_weight(c, TL_U8, 3, packed, bytes_of(TL_U8)),
                         *s = draw_weight(c, TL_F32, 1, &scales, DRAW_REAL(0.1, 1));
        draw_node(c, "com.microsoft.MatMulNBits", DRAW_IN(x, w, s), 1,
                  "K=%lld N=%lld bits=4 block_size=%lld", (long long)inner, (long long)n,
                  (long long)block);
        draw_result(c, TL_F32, 2, y2, NULL, DRAW_REAL(-1000, 1000));
        return true;
    }
    case 3: {
        const draw_value *x = draw_new(c, TL_U8, 2, x2, bytes_of(TL_U8)),
                         *w = draw_weight(c, TL_U8, 2, w2, bytes_of(TL_U8)),
                         *s = scalar(c, TL_F32, 0.25), *z = scalar(c, TL_U8, 7),
                         *t = scalar(c, TL_F32, 0.5);
        draw_node(c, "com.microsoft.MatMulIntegerToFloat", DRAW_IN(x, w, s, t, z, z), 1, "%s", "");
        draw_result(c, TL_F32, 2, y2, NULL, DRAW_REAL(-150000, 150000));
        return true;
    }
    default: {
        const draw_value *x = draw_new(c, TL_F32, 2, x2, usual),
                         *w = draw_weight(c, TL_I8, 2, w2, bytes_of(TL_I8)),
                         *s = scalar(c, TL_F32, 0.25);
        draw_node(c, "com.microsoft.DynamicQuantizeMatMul", DRAW_IN(x, w, s), 1, "%s", "");
        draw_result(c, TL_F32, 2, y2, NULL, DRAW_REAL(-3000, 3000));
        return true;
    }
    }
}

/* Quantised operators of one or several tensors of 8 bits. */
static bool draw_quantized_bytes(drawing *c)
{
    tl_dtype q = draw_chance(c, 50) ? TL_U8 : TL_I8;
    int64_t dims[4] = { 1, draw_between(c, 1, 4), draw_between(c, 1, 5), draw_between(c, 1, 5) },
            pooled[4] = { 1, dims[1], 1, 1 };
    const draw_value *x = draw_new(c, q, 4, dims, bytes_of(q)), *s = scalar(c, TL_F32, 0.25),
                     *z = scalar(c, q, draw_chance(c, 50) ? 3 : 4), *t = scalar(c, TL_F32, 0.5);
    const draw_value *real = draw_new(c, TL_F32, 4, dims, draw_usual(TL_F32));
    switch (draw_below(c, 5)) {
    case 0:
        draw_node(c, "com.microsoft.QLinearLeakyRelu", DRAW_IN(x, s, z, t, z), 1, "alpha=%s",
                  draw_word(c, "0.25 0.5"));
        break;
    case 1:
        draw_node(c, "com.microsoft.QLinearGlobalAveragePool", DRAW_IN(x, s, z, t, z), 1,
                  "channels_last=0%s", "");
        draw_result(c, q, 4, pooled, NULL, bytes_of(q));
        return true;
    case 2: {
        const draw_value *y = draw_new(c, q, 4, dims, bytes_of(q));
        int64_t wide[4] = { 1, 2 * dims[1], dims[2], dims[3] };
        draw_node(c, "com.microsoft.QLinearConcat", DRAW_IN(t, z, x, s, z, y, t, z), 1, "axis=1%s",
                  "");
        draw_result(c, q, 4, wide, NULL, bytes_of(q));
        return true;
    }
    case 3:
        draw_node(c, "com.microsoft.QuantizeLinear", DRAW_IN(real, s, z), 1, "%s", "");
        break;
    default:
        draw_node(c, "com.microsoft.DequantizeLinear", DRAW_IN(x, s, z), 1, "%s", "");
        draw_result(c, TL_F32, 4, dims, NULL, (draw_range){ -70, 70, 0.25 });
        return true;
    }
    draw_result(c, q, 4, dims, NULL, bytes_of(q));
    return true;
}

/* Attention in its forms: with the projection, with queries, keys and values in one tensor, with shared keys. */
static bool draw_fused_attention(drawing *c)
{
    int64_t b = draw_between(c, 1, 2), s = draw_between(c, 1, 5), e = draw_between(c, 1, 3),
            d = 2 * draw_between(c, 1, 4), hidden = e * d, in[3] = { b, s, hidden };
    draw_range one = DRAW_REAL(-1, 1), half = DRAW_REAL(-0.5, 0.5);
    switch (draw_below(c, 4)) {
    case 0: {
        int64_t w[2] = { hidden, 3 * hidden }, bias = 3 * hidden;
        const draw_value *x = draw_new(c, TL_F32, 3, in, one),
                         *vw = draw_weight(c, TL_F32, 2, w, half),
                         *vb = draw_weight(c, TL_F32, 1, &bias, half);
        draw_node(c, "com.microsoft.Attention", DRAW_IN(x, vw, vb), 1,
                  "num_heads=%lld unidirectional=%d", (long long)e, draw_chance(c, 40));
        draw_result(c, TL_F32, 3, in, NULL, DRAW_REAL(-9, 9));
        return true;
    }
    case 1: {
        int64_t packed[5] = { b, s, e, 3, d };
        const draw_value *x = draw_new(c, TL_F32, 5, packed, one);
        draw_node(c, "com.microsoft.MultiHeadAttention", DRAW_IN(x), 1, "num_heads=%lld",
                  (long long)e);
        draw_result(c, TL_F32, 3, in, NULL, one);
        return true;
    }
    case 2: {
        int64_t other = draw_between(c, 1, 6), packed[5] = { b, other, e, 2, d };
        const draw_value *q = draw_new(c, TL_F32, 3, in, one),
                         *k = draw_new(c, TL_F32, 5, packed, one);
        draw_node(c, "com.microsoft.MultiHeadAttention", DRAW_IN(q, k), 1, "num_heads=%lld",
                  (long long)e);
        draw_result(c, TL_F32, 3, in, NULL, one);
        return true;
    }
    default: {
        int64_t dims[4] = { b, e, s, d }, ids[2] = { b, s }, cache[2] = { s, d / 2 };
        const draw_value *x = draw_new(c, TL_F32, 4, dims, one),
                         *at = draw_new(c, TL_I64, 2, ids, DRAW_WHOLE(0, (double)s - 1)),
                         *cosine = draw_weight(c, TL_F32, 2, cache, one),
                         *sine = draw_weight(c, TL_F32, 2, cache, one);
        draw_node(c, "com.microsoft.RotaryEmbedding", DRAW_IN(x, at, cosine, sine), 1,
                  "interleaved=%d", draw_chance(c, 50));
        draw_result(c, TL_F32, 4, dims, NULL, DRAW_REAL(-2, 2));
        return true;
    }
    }
}

/* Channels last; and an LSTM whose weights have 8 bits. */
static bool draw_other_layouts(drawing *c)
{
    if (draw_chance(c, 50)) {
        int64_t x[4] = { 1, draw_between(c, 3, 7), draw_between(c, 3, 7), draw_between(c, 1, 5) },
                w[4] = { draw_between(c, 1, 6), 3, 3, x[3] }, y[4] = { 1, x[1], x[2], w[0] };
        const draw_value *vx = draw_new(c, TL_F32, 4, x, draw_usual(TL_F32)),
                         *vw = draw_weight(c, TL_F32, 4, w, draw_usual(TL_F32));
        draw_node(c, "com.microsoft.NhwcConv", DRAW_IN(vx, vw), 1,
                  "kernel_shape=[3,3] pads=[1,1,1,1]%s", "");
        draw_result(c, TL_F32, 4, y, NULL, DRAW_REAL(-200, 200));
        return true;
    }
    int64_t s = draw_between(c, 1, 4), b = draw_between(c, 1, 2), in = draw_between(c, 1, 5),
            h = draw_between(c, 1, 5), x[3] = { s, b, in }, w[3] = { 1, in, 4 * h },
            r[3] = { 1, h, 4 * h }, y[4] = { s, 1, b, h }, single = 1;
    const draw_value *vx = draw_new(c, TL_F32, 3, x, DRAW_REAL(-1, 1)),
                     *vw = draw_weight(c, TL_I8, 3, w, DRAW_WHOLE(-100, 100)),
                     *vr = draw_weight(c, TL_I8, 3, r, DRAW_WHOLE(-100, 100)),
                     *scale = draw_weight(c, TL_F32, 1, &single, DRAW_REAL(0.005, 0.01)),
                     *zero = draw_weight(c, TL_I8, 1, &single, DRAW_WHOLE(0, 0));
    draw_node(c, "com.microsoft.DynamicQuantizeLSTM",
              DRAW_IN(vx, vw, vr, NULL, NULL, NULL, NULL, NULL, scale, zero, scale, zero), 1,
              "hidden_size=%lld", (long long)h);
    draw_result(c, TL_F32, 4, y, NULL, DRAW_REAL(-1, 1));
    return true;
}

bool draw_fused(drawing *c)
{
    static draw_fn *const all[] = { draw_fused_products, draw_quantized_bytes, draw_fused_attention,
                                    draw_other_layouts };
    c->has_contrib = true;
    return all[draw_below(c, sizeof all / sizeof all[0])](c);
}

bool draw_contrib(drawing *c)
{
    int64_t b = draw_between(c, 1, 2), s = draw_between(c, 1, 6), h = draw_between(c, 2, 17),
            dims[3] = { b, s, h }, w[2] = { h, draw_between(c, 1, 12) };
    draw_range one = DRAW_REAL(-1, 1);
    const draw_value *x = draw_pick(c, &(draw_want){ .dtypes = DRAW_BIT(TL_F32),
                                                     .low = -20,
                                                     .high = 20,
                                                     .least_rank = 3,
                                                     .most_rank = 3,
                                                     .full = true });
    int64_t last = x->dims[2], wide[2] = { last, w[1] },
            product[3] = { x->dims[0], x->dims[1], w[1] };
    c->has_contrib = true;
    switch (draw_below(c, 8)) {
    case 0:
        draw_node(c, "com.microsoft.BiasGelu", DRAW_IN(x, draw_new(c, TL_F32, 1, &last, one)), 1,
                  "%s", "");
        break;
    case 1:
        draw_node(c, "com.microsoft.FastGelu",
                  DRAW_IN(x, draw_chance(c, 50) ? draw_new(c, TL_F32, 1, &last, one) : NULL), 1,
                  "%s", "");
        break;
    case 2:
        draw_node(c, "com.microsoft.QuickGelu", DRAW_IN(x), 1, "alpha=%s",
                  draw_word(c, "1.702 1.0"));
        break;
    case 3: {
        const draw_value *skip = draw_new(c, TL_F32, 3, x->dims, one),
                         *g = draw_new(c, TL_F32, 1, &last, DRAW_REAL(0.5, 2)),
                         *beta = draw_new(c, TL_F32, 1, &last, one),
                         *bias = draw_chance(c, 50) ? draw_new(c, TL_F32, 1, &last, one) : NULL;
        draw_node(c, "com.microsoft.SkipLayerNormalization", DRAW_IN(x, skip, g, beta, bias), 1,
                  "epsilon=0.001%s", "");
        break;
    }
    case 4: {
        const draw_value *skip = draw_new(c, TL_F32, 3, x->dims, one),
                         *g = draw_new(c, TL_F32, 1, &last, DRAW_REAL(0.5, 2));
        draw_node(c, "com.microsoft.SkipSimplifiedLayerNormalization", DRAW_IN(x, skip, g), 1,
                  "epsilon=0.001%s", "");
        break;
    }
    case 5: {
        const draw_value *y = draw_new(c, TL_F32, 2, wide, draw_usual(TL_F32));
        draw_node(c, "com.microsoft.FusedMatMul", DRAW_IN(x, y), 1, "alpha=%s",
                  draw_word(c, "0.5 1.0"));
        double most = 40 * (double)last;
        draw_result(c, TL_F32, 3, product, NULL, DRAW_REAL(-most, most));
        return true;
    }
    case 6: {
        int64_t e = draw_between(c, 1, 3), half = draw_between(c, 1, 4), hidden = e * 2 * half,
                q[3] = { b, s, hidden };
        const draw_value *p[3];
        for (int i = 0; i < 3; i++)
            p[i] = draw_new(c, TL_F32, 3, q, one);
        draw_node(c, "com.microsoft.MultiHeadAttention", (draw_inputs){ 3, p }, 1, "num_heads=%lld",
                  (long long)e);
        draw_result(c, TL_F32, 3, q, NULL, one);
        return true;
    }
    default: {
        draw_range q = DRAW_WHOLE(0, 255);
        const draw_value *a = draw_new(c, TL_U8, 3, dims, q), *d = draw_new(c, TL_U8, 3, dims, q),
                         *z = draw_weight(c, TL_U8, 0, NULL, DRAW_WHOLE(0, 9)),
                         *scale = draw_weight(c, TL_F32, 0, NULL, (draw_range){ 0.25, 0.25, 0.25 }),
                         *to = draw_weight(c, TL_F32, 0, NULL, (draw_range){ 0.5, 0.5, 0.25 });
        draw_node(c, draw_chance(c, 50) ? "com.microsoft.QLinearAdd" : "com.microsoft.QLinearMul",
                  DRAW_IN(a, scale, z, d, scale, z, to, z), 1, "%s", "");
        draw_result(c, TL_U8, 3, dims, NULL, q);
        return true;
    }
    }
    double most = 2 * sqrt((double)last) + 30;
    draw_result_like(c, x, TL_F32, DRAW_REAL(-most, most));
    return true;
}
