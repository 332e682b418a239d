/* tests/structural/draw_contrib.c: operators of com.microsoft, as ONNX Runtime's optimizer writes them. */
#include <math.h>
#include "tests/structural/draw.h"

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
