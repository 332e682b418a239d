/* tests/structural/draw_elementwise.c: operators on one element of each operand. */
#include <math.h>
#include "tests/structural/draw.h"

/* Functions: the range of arguments that they are given, what comes out, and whether that is exact. */
typedef enum { ROUGH, SAME_STEP, WHOLE } exactness;
static const struct {
    const char *op;
    int since;
    bool brain; /* takes bf16 from opset 13 on, not 22 */
    bool jumps; /* reads exact values alone */
    double low, high, least, most;
    exactness exact;
} functions[] = {
    { "Exp", 7, true, false, -5, 5, 0, 150, ROUGH },
    { "Log", 7, true, false, 0.125, 1000, -3, 7, ROUGH },
    { "Sqrt", 7, true, false, 0.0625, 1000, 0.25, 32, ROUGH },
    { "Reciprocal", 7, true, false, 0.125, 1000, 0, 8, ROUGH },
    { "Erf", 9, true, false, -6, 6, -1, 1, ROUGH },
    { "Tanh", 7, true, false, -30, 30, -1, 1, ROUGH },
    { "Sigmoid", 7, true, false, -30, 30, 0, 1, ROUGH },
    { "Sin", 7, false, false, -20, 20, -1, 1, ROUGH },
    { "Cos", 7, false, false, -20, 20, -1, 1, ROUGH },
    { "Tan", 7, false, false, -1, 1, -1.6, 1.6, ROUGH },
    { "Asin", 7, false, false, -0.9, 0.9, -1.6, 1.6, ROUGH },
    { "Acos", 7, false, false, -0.9, 0.9, 0, 3.2, ROUGH },
    { "Atan", 7, false, false, -100, 100, -1.6, 1.6, ROUGH },
    { "Sinh", 9, false, false, -4, 4, -28, 28, ROUGH },
    { "Cosh", 9, false, false, -4, 4, 1, 28, ROUGH },
    { "Asinh", 9, false, false, -100, 100, -6, 6, ROUGH },
    { "Acosh", 9, false, false, 1.25, 1000, 0, 8, ROUGH },
    { "Atanh", 9, false, false, -0.9, 0.9, -1.5, 1.5, ROUGH },
    { "Softplus", 7, false, false, -20, 20, 0, 20.1, ROUGH },
    { "Softsign", 7, false, false, -20, 20, -1, 1, ROUGH },
    { "Mish", 18, false, false, -20, 20, -0.4, 20, ROUGH },
    { "HardSwish", 14, false, false, -20, 20, -0.4, 20, ROUGH },
    { "Floor", 7, true, true, -1e6, 1e6, 0, 0, WHOLE },
    { "Ceil", 7, true, true, -1e6, 1e6, 0, 0, WHOLE },
    { "Round", 11, false, true, -1e6, 1e6, 0, 0, WHOLE },
};

bool draw_unary(drawing *c)
{
    int i = (int)draw_below(c, sizeof functions / sizeof functions[0]);
    if (draw_chance(c, 30)) { /* those of integers, too */
        const char *op = draw_word(c, "Neg Abs Relu Neg Abs Sign");
        bool is_sign = op[0] == 'S';
        unsigned dtypes = op[0] == 'R'   ? DRAW_FLOATS | (c->opset >= 14 ? DRAW_SIGNED : 0)
                          : op[0] == 'A' ? DRAW_FLOATS | DRAW_WIDE | DRAW_NARROW
                          : is_sign      ? DRAW_FLOATS | DRAW_WIDE
                                         : DRAW_FLOATS | DRAW_SIGNED;
        if (is_sign && c->opset < 9)
            return false;
        const draw_value *x = draw_pick(c, &(draw_want){ .dtypes = dtypes, .exact = is_sign });
        double most = fmax(fabs(x->range.low), fabs(x->range.high));
        draw_range r = { op[0] == 'N' ? -x->range.high : 0, op[0] == 'N' ? -x->range.low : most,
                         x->range.step };
        if (is_sign)
            r = DRAW_WHOLE(-1, 1);
        draw_node(c, op, DRAW_IN(x), 1, "%s", "");
        draw_result_like(c, x, x->dtype, r);
        return true;
    }
    if (c->opset < functions[i].since)
        return false;
    unsigned dtypes = functions[i].brain ? DRAW_FLOATS : draw_floats_22(c);
    const draw_want want = { .dtypes = dtypes,
                             .low = functions[i].low,
                             .high = functions[i].high,
                             .exact = functions[i].jumps };
    const draw_value *x = draw_pick(c, &want);
    draw_range r = { functions[i].least, functions[i].most, 0 };
    if (functions[i].exact == WHOLE)
        r = DRAW_WHOLE(floor(x->range.low), ceil(x->range.high));
    draw_node(c, functions[i].op, DRAW_IN(x), 1, "%s", "");
    draw_result_like(c, x, x->dtype, r);
    return true;
}

static draw_range sum(draw_range a, draw_range b, double sign)
{
    bool exact = a.step > 0 && b.step > 0;
    double low = sign > 0 ? b.low : -b.high, high = sign > 0 ? b.high : -b.low;
    return (draw_range){ a.low + low, a.high + high, exact ? fmin(a.step, b.step) : 0 };
}

static draw_range product(draw_range a, draw_range b)
{
    double p[4] = { a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high };
    return (draw_range){ fmin(fmin(p[0], p[1]), fmin(p[2], p[3])),
                         fmax(fmax(p[0], p[1]), fmax(p[2], p[3])), a.step * b.step };
}

static bool binary(drawing *c, const char *op, const draw_value *x, const draw_value *y,
                   draw_range r)
{
    draw_dims both;
    if (!draw_broadcast(x, y, &both) || !draw_fits(x->dtype, &r))
        return false;
    if (draw_chance(c, 50) && (op[0] == 'A' || op[0] == 'M'))
        draw_node(c, op, DRAW_IN(y, x), 1, "%s", "");
    else
        draw_node(c, op, DRAW_IN(x, y), 1, "%s", "");
    draw_result(c, x->dtype, both.rank, both.dims, both.open, r);
    return true;
}

bool draw_arithmetic(drawing *c)
{
    const char *op = draw_word(c, "Add Add Sub Mul Mul Div Pow");
    bool divides = op[0] == 'D', is_power = op[0] == 'P';
    draw_want want = { .dtypes = is_power ? DRAW_FLOATS : draw_sums(c) };
    if (is_power) {
        want.low = 0.25;
        want.high = 8;
    }
    const draw_value *x = draw_pick(c, &want);
    want.low = divides ? (tl_dtype_is_float(x->dtype) ? 0.25 : 1) : is_power ? -2 : 0;
    want.high = divides ? 64 : is_power ? 2 : 0;
    const draw_value *y = draw_beside(c, x, &want);
    if (!divides && !is_power)
        return binary(c, op, x, y,
                      op[0] == 'M' ? product(x->range, y->range)
                                   : sum(x->range, y->range, op[0] == 'A' ? 1 : -1));
    if (y->range.low < want.low || y->range.high > want.high)
        return false;
    double most = fmax(fabs(x->range.low), fabs(x->range.high));
    draw_range r = DRAW_REAL(0, fmax(most * most, 16));
    if (divides && tl_dtype_is_float(x->dtype))
        r = DRAW_REAL(-most / y->range.low, most / y->range.low);
    else if (divides)
        r = DRAW_WHOLE(-most, most);
    if (divides && tl_dtype_infos[x->dtype].class == TL_CLASS_UINT)
        r.low = 0;
    draw_dims both;
    if (!draw_broadcast(x, y, &both) || !draw_fits(x->dtype, &r))
        return false;
    draw_node(c, op, DRAW_IN(x, y), 1, "%s", "");
    draw_result(c, x->dtype, both.rank, both.dims, both.open, r);
    return true;
}

bool draw_compare(drawing *c)
{
    const char *op = draw_word(c, c->opset >= 12 ? "Equal Less Greater LessOrEqual GreaterOrEqual"
                                                 : "Equal Less Greater");
    unsigned dtypes = c->opset >= 11  ? DRAW_FLOATS | DRAW_WIDE | DRAW_NARROW
                      : op[0] == 'E'  ? DRAW_BIT(TL_I32) | DRAW_BIT(TL_I64)
                      : c->opset >= 9 ? DRAW_FLOATS | DRAW_WIDE
                                      : DRAW_FLOATS;
    const draw_want want = { .dtypes = dtypes, .exact = true };
    const draw_value *x = draw_pick(c, &want), *y = draw_beside(c, x, &want);
    draw_dims both;
    if (!draw_broadcast(x, y, &both) || !draw_is_exact(y))
        return false;
    draw_node(c, op, DRAW_IN(x, y), 1, "%s", "");
    draw_result(c, TL_BOOL, both.rank, both.dims, both.open, DRAW_WHOLE(0, 1));
    return true;
}

bool draw_logic(drawing *c)
{
    const char *op = draw_word(c, "And Or Xor Not Equal");
    const draw_want want = { .dtypes = DRAW_BOOL };
    const draw_value *x = draw_pick(c, &want);
    if (op[0] == 'N') {
        draw_node(c, op, DRAW_IN(x), 1, "%s", "");
        draw_result_like(c, x, TL_BOOL, DRAW_WHOLE(0, 1));
        return true;
    }
    const draw_value *y = draw_beside(c, x, &want);
    draw_dims both;
    if (!draw_broadcast(x, y, &both))
        return false;
    draw_node(c, op, DRAW_IN(x, y), 1, "%s", "");
    draw_result(c, TL_BOOL, both.rank, both.dims, both.open, DRAW_WHOLE(0, 1));
    return true;
}

bool draw_bits(drawing *c)
{
    const char *op =
        draw_word(c, c->opset >= 18 ? "BitShift BitwiseAnd BitwiseOr BitwiseXor BitwiseNot"
                                    : "BitShift");
    bool shifts = op[3] == 'S';
    const draw_want want = { .dtypes = shifts ? DRAW_UNSIGNED : DRAW_WIDE | DRAW_NARROW };
    const draw_value *x = draw_pick(c, &want);
    const tl_dtype_info *info = &tl_dtype_infos[x->dtype];
    draw_range all = DRAW_WHOLE((double)info->least, (double)info->largest);
    if (op[7] == 'N') {
        draw_node(c, op, DRAW_IN(x), 1, "%s", "");
        draw_result_like(c, x, x->dtype, all);
        return true;
    }
    const draw_value *y = draw_beside(c, x, &want);
    draw_dims both;
    if (!draw_broadcast(x, y, &both) || (shifts && y->range.high >= info->bits))
        return false;
    draw_node(c, op, DRAW_IN(x, y), 1, shifts ? "direction='%s'" : "%.0s",
              draw_word(c, "LEFT RIGHT"));
    draw_result(c, x->dtype, both.rank, both.dims, both.open, all);
    return true;
}

bool draw_where(drawing *c)
{
    const draw_value *condition = draw_pick(c, &(draw_want){ .dtypes = DRAW_BOOL });
    const draw_want want = { .dtypes = DRAW_ANY };
    const draw_value *x = draw_pick(c, &want), *y = draw_beside(c, x, &want);
    draw_dims both, all;
    if (!draw_broadcast(x, y, &both))
        return false;
    draw_value whole = { .rank = both.rank };
    for (int i = 0; i < both.rank; i++) {
        whole.dims[i] = both.dims[i];
        whole.open[i] = both.open[i];
    }
    if (!draw_broadcast(condition, &whole, &all))
        condition = draw_within(c, &whole, TL_BOOL, DRAW_WHOLE(0, 1));
    if (!draw_broadcast(condition, &whole, &all))
        return false;
    bool exact = draw_is_exact(x) && draw_is_exact(y);
    draw_node(c, "Where", DRAW_IN(condition, x, y), 1, "%s", "");
    draw_result(c, x->dtype, all.rank, all.dims, all.open,
                (draw_range){ fmin(x->range.low, y->range.low), fmax(x->range.high, y->range.high),
                              exact ? fmin(x->range.step, y->range.step) : 0 });
    return true;
}

/* From floats to integers only what the integer holds: ONNX does not say what becomes of the rest. */
bool draw_cast(drawing *c)
{
    const draw_value *x = draw_pick(c, &(draw_want){ .dtypes = DRAW_ANY });
    tl_dtype to = draw_of(c, DRAW_ANY);
    bool from_float = tl_dtype_is_float(x->dtype), to_float = tl_dtype_is_float(to);
    draw_range r = x->range;
    if (!to_float && !draw_is_exact(x))
        return false;
    if (from_float && !to_float && to != TL_BOOL &&
        (r.low < (double)tl_dtype_infos[to].least ||
         r.high > fmin((double)tl_dtype_infos[to].largest, 1e9)))
        return false;
    if (from_float && !to_float)
        r = DRAW_WHOLE(floor(r.low), ceil(r.high));
    if (!draw_fits(to, &r) || (x->range.step > 0 && r.step == 0 && !to_float))
        return false;
    if (c->opset >= 15 && draw_chance(c, 25)) {
        draw_range usual = draw_usual(to);
        int64_t one = 1;
        const draw_value *like = draw_new(c, to, 1, &one, usual);
        draw_node(c, "CastLike", DRAW_IN(x, like), 1, "%s", "");
    } else {
        draw_node(c, "Cast", DRAW_IN(x), 1, "to=%d", tl_dtype_infos[to].onnx);
    }
    draw_result_like(c, x, to, r);
    return true;
}

/* There and back again, or what the bits of small positive numbers are: nothing that could be a NaN. */
bool draw_bit_cast(drawing *c)
{
    static const tl_dtype pairs[][2] = {
        { TL_F32, TL_I32 }, { TL_F64, TL_I64 }, { TL_F16, TL_U16 },
        { TL_I32, TL_U32 }, { TL_I8, TL_U8 },   { TL_F32, TL_U32 }
    };
    int p = (int)draw_below(c, 6);
    const draw_value *x =
        draw_pick(c, &(draw_want){ .dtypes = DRAW_BIT(pairs[p][0]), .exact = true });
    tl_dtype to = pairs[p][1];
    draw_node(c, "BitCast", DRAW_IN(x), 1, "to=%d", tl_dtype_infos[to].onnx);
    const draw_value *y = draw_result_like(c, x, to,
                                           DRAW_WHOLE((double)tl_dtype_infos[to].least,
                                                      (double)tl_dtype_infos[to].largest));
    if (draw_chance(c, 50)) {
        draw_node(c, "BitCast", DRAW_IN(y), 1, "to=%d", tl_dtype_infos[x->dtype].onnx);
        draw_result_like(c, x, x->dtype, x->range);
    }
    return true;
}

bool draw_clip(drawing *c)
{
    const draw_value *x =
        draw_pick(c, &(draw_want){ .dtypes = c->opset >= 12 ? draw_sums(c) | DRAW_BIT(TL_I8)
                                                            : DRAW_FLOATS });
    double least = tl_dtype_infos[x->dtype].class == TL_CLASS_UINT ? 1 : -1, most = 3;
    bool has_least = draw_chance(c, 75), has_most = draw_chance(c, 75);
    draw_range r = x->range;
    r.low = has_least ? fmax(r.low, least) : r.low;
    r.high = fmax(has_most ? fmin(r.high, most) : r.high, has_least ? least : r.low);
    if (has_most)
        r.low = fmin(r.low, most);
    if (c->opset < 11) {
        draw_node(c, "Clip", DRAW_IN(x), 1, "min=%.1f max=%.1f", least, most);
        r.low = fmin(fmax(x->range.low, least), most);
        r.high = fmax(fmin(x->range.high, most), least);
    } else {
        const draw_value *low =
            has_least ? draw_weight(c, x->dtype, 0, NULL, DRAW_WHOLE(least, least)) : NULL;
        const draw_value *high =
            has_most ? draw_new(c, x->dtype, 0, NULL, DRAW_WHOLE(most, most)) : NULL;
        draw_node(c, "Clip", DRAW_IN(x, low, high), 1, "%s", "");
    }
    r.step = r.step > 1 ? 1 : r.step;
    draw_result_like(c, x, x->dtype, r);
    return true;
}

bool draw_activation(drawing *c)
{
    const draw_want want = { .dtypes = draw_floats_22(c), .low = -20, .high = 20 };
    const draw_value *x = draw_pick(c, &want);
    double most = fmax(fabs(x->range.low), fabs(x->range.high));
    draw_range within = DRAW_REAL(-2 * most - 2, 2 * most + 2);
    bool exact = draw_is_exact(x);
    switch (draw_below(c, 11)) {
    case 0:
        draw_node(c, "LeakyRelu", DRAW_IN(x), 1, "alpha=%s", draw_word(c, "0.25 0.01 0.5"));
        break;
    case 1:
        draw_node(c, "Elu", DRAW_IN(x), 1, "alpha=%s", draw_word(c, "1.0 0.5 2.0"));
        break;
    case 2:
        draw_node(c, "Selu", DRAW_IN(x), 1, "%s", "");
        break;
    case 3:
        if (c->opset < 12 || x->dtype != TL_F32)
            return false;
        draw_node(c, "Celu", DRAW_IN(x), 1, "alpha=%s", draw_word(c, "1.0 0.5 2.0"));
        break;
    case 4:
        if (c->opset < 10 || !exact)
            return false;
        draw_node(c, "ThresholdedRelu", DRAW_IN(x), 1, "alpha=%s", draw_word(c, "1.0 0.5"));
        break;
    case 5:
        draw_node(c, "HardSigmoid", DRAW_IN(x), 1, "alpha=%s beta=0.5", draw_word(c, "0.2 0.25"));
        within = DRAW_REAL(0, 1);
        break;
    case 6:
        if (c->opset < 20)
            return false;
        draw_node(c, "Gelu", DRAW_IN(x), 1, "approximate='%s'", draw_word(c, "none tanh"));
        break;
    case 7:
        if (c->opset < 24)
            return false;
        draw_node(c, "Swish", DRAW_IN(x), 1, "alpha=%s", draw_word(c, "1.0 0.5 2.0"));
        break;
    case 8:
        if (c->opset < 9 || !exact || x->dtype == TL_BF16)
            return false;
        draw_node(c, "Shrink", DRAW_IN(x), 1, "bias=%s lambd=%s", draw_word(c, "0.0 0.5"),
                  draw_word(c, "0.5 1.5"));
        break;
    case 9: {
        const draw_value *slope = draw_within(c, x, x->dtype, (draw_range){ -1, 1, 0.25 });
        draw_node(c, "PRelu", DRAW_IN(x, slope), 1, "%s", "");
        break;
    }
    default: { /* GELU as exporters write it */
        if (c->opset < 9 || x->dtype == TL_BF16)
            return false;
        int64_t one = 1;
        const draw_value *root = draw_weight(c, x->dtype, 1, &one, DRAW_REAL(1.4142135, 1.4142136));
        draw_node(c, "Div", DRAW_IN(x, root), 1, "%s", "");
        const draw_value *scaled = draw_result_like(c, x, x->dtype, DRAW_REAL(-most, most));
        if (x->rank == 0)
            return true;
        draw_node(c, "Erf", DRAW_IN(scaled), 1, "%s", "");
        const draw_value *erf = draw_result_like(c, x, x->dtype, DRAW_REAL(-1, 1));
        const draw_value *unit = draw_weight(c, x->dtype, 0, NULL, DRAW_WHOLE(1, 1));
        draw_node(c, "Add", DRAW_IN(erf, unit), 1, "%s", "");
        const draw_value *shifted = draw_result_like(c, x, x->dtype, DRAW_REAL(0, 2));
        draw_node(c, "Mul", DRAW_IN(x, shifted), 1, "%s", "");
        const draw_value *doubled =
            draw_result_like(c, x, x->dtype, DRAW_REAL(-2 * most, 2 * most));
        const draw_value *half = draw_weight(c, x->dtype, 0, NULL, (draw_range){ 0.5, 0.5, 0.25 });
        draw_node(c, "Mul", DRAW_IN(doubled, half), 1, "%s", "");
        break;
    }
    }
    draw_result_like(c, x, x->dtype, within);
    return true;
}

bool draw_modulo(drawing *c)
{
    bool is_float = draw_chance(c, 30);
    const draw_want want = { .dtypes = is_float ? DRAW_FLOATS : DRAW_WIDE | DRAW_NARROW,
                             .exact = true };
    const draw_value *x = draw_pick(c, &want),
                     *y = draw_beside(c, x, &(draw_want){ .low = 1, .high = 64, .exact = true });
    draw_dims both;
    if (!draw_broadcast(x, y, &both) || y->range.low < 1 || !draw_is_exact(y))
        return false;
    bool fmod = is_float || draw_chance(c, 30);
    draw_node(c, "Mod", DRAW_IN(x, y), 1, "fmod=%d", fmod);
    draw_result(c, x->dtype, both.rank, both.dims, both.open,
                (draw_range){ -y->range.high, y->range.high, fmin(x->range.step, y->range.step) });
    return true;
}

bool draw_several(drawing *c)
{
    const char *op = draw_word(c, "Sum Mean Min Max");
    bool sums = op[0] == 'S' || op[1] == 'e';
    unsigned dtypes = sums ? DRAW_FLOATS : c->opset >= 12 ? draw_sums(c) : DRAW_FLOATS;
    const draw_want want = { .dtypes = dtypes };
    const draw_value *x = draw_pick(c, &want), *y = draw_beside(c, x, &want),
                     *z = draw_chance(c, 40) ? draw_within(c, x, x->dtype, draw_usual(x->dtype))
                                             : NULL;
    draw_dims both;
    if (!draw_broadcast(x, y, &both))
        return false;
    bool exact = draw_is_exact(x) && draw_is_exact(y) && op[1] != 'e';
    double step = exact ? fmin(fmin(x->range.step, y->range.step), z ? z->range.step : 1) : 0;
    draw_range r = { fmin(x->range.low, y->range.low), fmax(x->range.high, y->range.high), step };
    if (z != NULL)
        r = (draw_range){ fmin(r.low, z->range.low), fmax(r.high, z->range.high), r.step };
    if (op[0] == 'S')
        r = (draw_range){ 3 * fmin(r.low, 0), 3 * fmax(r.high, 0), r.step };
    if (!draw_fits(x->dtype, &r))
        return false;
    draw_node(c, op, DRAW_IN(x, y, z), 1, "%s", "");
    draw_result(c, x->dtype, both.rank, both.dims, both.open, r);
    return true;
}

bool draw_predicate(drawing *c)
{
    bool nan = draw_chance(c, 50);
    const draw_value *x =
        draw_pick(c, &(draw_want){ .dtypes = nan || c->opset >= 20
                                                 ? DRAW_FLOATS
                                                 : DRAW_BIT(TL_F32) | DRAW_BIT(TL_F64) });
    if (nan)
        draw_node(c, "IsNaN", DRAW_IN(x), 1, "%s", "");
    else
        draw_node(c, "IsInf", DRAW_IN(x), 1, "detect_negative=%d", draw_chance(c, 50));
    draw_result_like(c, x, TL_BOOL, DRAW_WHOLE(0, 1));
    return true;
}
