/* tests/structural/draw_quantized.c: numbers of few bits. Scales are powers of two and values are exact, so that what is rounded
 * is known to the last bit. */
#include <math.h>
#include "tests/structural/draw.h"

static const draw_value *scale_of(drawing *c, tl_dtype dtype, int count, int64_t extent)
{
    double scale = ldexp(1, (int)draw_between(c, -2, 1));
    return draw_weight(c, dtype, count, &extent, (draw_range){ scale, scale, 0.25 });
}

static const draw_value *zero_of(drawing *c, tl_dtype dtype, int count, int64_t extent)
{
    double low = tl_dtype_infos[dtype].class == TL_CLASS_INT ? -3 : 0;
    return draw_weight(c, dtype, count, &extent, DRAW_WHOLE(low, 5));
}

bool draw_quantize(drawing *c)
{
    static const tl_dtype kinds[] = { TL_I8, TL_U8, TL_I8, TL_U8, TL_I16, TL_U16, TL_I4, TL_U4 };
    tl_dtype q = kinds[draw_below(c, c->opset >= 21 ? 8 : 4)];
    const draw_value *x = draw_pick(c, &(draw_want){ .dtypes = DRAW_BIT(TL_F32),
                                                     .exact = true,
                                                     .least_rank = 1,
                                                     .low = -1000,
                                                     .high = 1000 });
    bool per_axis = draw_chance(c, 40);
    int axis = draw_axis(c, x), count = per_axis ? 1 : 0;
    if (axis < 0)
        return false;
    const draw_value *s = scale_of(c, TL_F32, count, x->dims[axis]),
                     *z = zero_of(c, q, count, x->dims[axis]);
    const char *at = per_axis ? tl_arena_format(c->arena, "axis=%lld",
                                                (long long)draw_signed_axis(c, axis, x->rank))
                              : "";
    draw_node(c, "QuantizeLinear", DRAW_IN(x, s, z), 1, "%s", at);
    const tl_dtype_info *info = &tl_dtype_infos[q];
    double most = fmax(fabs((double)info->least), (double)info->largest) + 5;
    const draw_value *y =
        draw_result_like(c, x, q, DRAW_WHOLE((double)info->least, (double)info->largest));
    if (draw_chance(c, 80)) {
        draw_node(c, "DequantizeLinear", DRAW_IN(y, s, z), 1, "%s", at);
        draw_result_like(c, x, TL_F32, (draw_range){ -2 * most, 2 * most, 0.25 });
    }
    return true;
}

bool draw_dynamic_quantize(drawing *c)
{
    bool below = draw_chance(c, 30); /* never zeros alone, whose scale ONNX does not say */
    const draw_want want = { .dtypes = DRAW_BIT(TL_F32),
                             .exact = true,
                             .full = true,
                             .low = below ? -100 : 0.25,
                             .high = below ? -0.25 : 100 };
    const draw_value *x = draw_pick(c, &want);
    /* The scale is a quotient by 255, so that ties do not meet: two that differ in no bit of the input differ in none of this. */
    draw_node(c, "DynamicQuantizeLinear", DRAW_IN(x), 3, "%s", "");
    draw_result_like(c, x, TL_U8, DRAW_WHOLE(0, 255));
    draw_result(c, TL_F32, 0, NULL, NULL, DRAW_REAL(0, 1));
    draw_result(c, TL_U8, 0, NULL, NULL, DRAW_WHOLE(0, 255));
    return true;
}

bool draw_integer_product(drawing *c)
{
    tl_dtype a = draw_chance(c, 50) ? TL_U8 : TL_I8, b = draw_chance(c, 50) ? TL_U8 : TL_I8;
    int64_t m = draw_between(c, 1, 9), k = draw_between(c, 1, 33), n = draw_between(c, 1, 17),
            batch = draw_between(c, 1, 2);
    int64_t x[3] = { batch, m, k }, y[2] = { k, n }, out[3] = { batch, m, n };
    draw_range all_a = a == TL_U8 ? DRAW_WHOLE(0, 255) : DRAW_WHOLE(-128, 127),
               all_b = b == TL_U8 ? DRAW_WHOLE(0, 255) : DRAW_WHOLE(-128, 127);
    int rank = draw_chance(c, 50) ? 3 : 2;
    const draw_value *vx = draw_new(c, a, rank, x + 3 - rank, all_a),
                     *vy = draw_new(c, b, 2, y, all_b), *za = zero_of(c, a, 0, 1),
                     *zb = zero_of(c, b, 0, 1);
    if (draw_chance(c, 50)) {
        draw_node(c, "MatMulInteger", DRAW_IN(vx, vy, za, zb), 1, "%s", "");
        draw_result(c, TL_I32, rank, out + 3 - rank, NULL, DRAW_WHOLE(-1e7, 1e7));
        return true;
    }
    double scale = ldexp(1, -8);
    const draw_value *s = draw_weight(c, TL_F32, 0, NULL, (draw_range){ 0.25, 0.25, 0.25 }),
                     *sy = draw_weight(c, TL_F32, 0, NULL, (draw_range){ 1 / scale, 1 / scale, 1 });
    tl_dtype q = draw_chance(c, 50) ? TL_U8 : TL_I8;
    const draw_value *zy = zero_of(c, q, 0, 1);
    draw_node(c, "QLinearMatMul", DRAW_IN(vx, s, za, vy, s, zb, sy, zy), 1, "%s", "");
    draw_result(c, q, rank, out + 3 - rank, NULL,
                DRAW_WHOLE(tl_dtype_infos[q].least, (double)tl_dtype_infos[q].largest));
    return true;
}

bool draw_integer_conv(drawing *c)
{
    int64_t ch = draw_between(c, 1, 5), h = draw_between(c, 3, 9), out = draw_between(c, 1, 6),
            k = draw_between(c, 1, 3), pad = draw_between(c, 0, 1), o = h + 2 * pad - k + 1;
    int64_t x[4] = { 1, ch, h, h }, w[4] = { out, ch, k, k }, y[4] = { 1, out, o, o };
    tl_dtype a = draw_chance(c, 50) ? TL_U8 : TL_I8;
    const draw_value *vx = draw_new(c, a, 4, x,
                                    a == TL_U8 ? DRAW_WHOLE(0, 255) : DRAW_WHOLE(-128, 127)),
                     *za = zero_of(c, a, 0, 1);
    const draw_value *vw = draw_new(c, TL_I8, 4, w, DRAW_WHOLE(-128, 127)),
                     *zw = zero_of(c, TL_I8, 0, 1);
    if (draw_chance(c, 50)) {
        draw_node(c, "ConvInteger", DRAW_IN(vx, vw, za, zw), 1, "pads=[%lld,%lld,%lld,%lld]",
                  (long long)pad, (long long)pad, (long long)pad, (long long)pad);
        draw_result(c, TL_I32, 4, y, NULL, DRAW_WHOLE(-1e7, 1e7));
        return true;
    }
    const draw_value *s = draw_weight(c, TL_F32, 0, NULL, (draw_range){ 0.25, 0.25, 0.25 }),
                     *sy = draw_weight(c, TL_F32, 0, NULL, DRAW_WHOLE(64, 64));
    const draw_value *zy = zero_of(c, a, 0, 1),
                     *bias = draw_chance(c, 60)
                                 ? draw_weight(c, TL_I32, 1, &out, DRAW_WHOLE(-500, 500))
                                 : NULL;
    draw_node(c, "QLinearConv", DRAW_IN(vx, s, za, vw, s, zw, sy, zy, bias), 1,
              "pads=[%lld,%lld,%lld,%lld]", (long long)pad, (long long)pad, (long long)pad,
              (long long)pad);
    draw_result(c, a, 4, y, NULL,
                DRAW_WHOLE(tl_dtype_infos[a].least, (double)tl_dtype_infos[a].largest));
    return true;
}
