/* tests/structural/draw_reduce.c: reductions, order, and normalisations. */
#include <math.h>
#include <string.h>
#include "tests/structural/draw.h"

static double magnitude(draw_range r)
{
    return fmax(fabs(r.low), fabs(r.high));
}

static const struct {
    const char *op;
    bool floats, only_positive;
} reductions[] = {
    { "ReduceSum", false, false },  { "ReduceMax", false, false },
    { "ReduceMin", false, false },  { "ReduceMean", true, false },
    { "ReduceProd", true, false },  { "ReduceL1", true, false },
    { "ReduceL2", true, false },    { "ReduceSumSquare", true, false },
    { "ReduceLogSum", true, true }, { "ReduceLogSumExp", true, false },
};

bool draw_reduce(drawing *c)
{
    int k = draw_chance(c, 45) ? (int)draw_below(c, 3) : (int)draw_below(c, 10);
    const char *op = reductions[k].op;
    bool extreme = k == 1 || k == 2;
    bool by_input = c->opset >= 18 || (k == 0 && c->opset >= 13);
    draw_want want = { .dtypes = reductions[k].floats ? DRAW_FLOATS : DRAW_FLOATS | DRAW_WIDE };
    if (extreme && c->opset >= 12)
        want.dtypes |= DRAW_BIT(TL_I8) | DRAW_BIT(TL_U8);
    want.full = extreme || k == 3 ||
                k >= 8; /* ONNX leaves out what is the least of nothing, or says it by infinities */
    if (reductions[k].only_positive) {
        want.low = 0.125;
        want.high = 100;
    } else if (k == 9) {
        want.low = -30;
        want.high = 30;
    }
    const draw_value *x = draw_pick(c, &want);
    int64_t axes[TL_MAX_RANK], dims[TL_MAX_RANK], terms = 1;
    bool open[TL_MAX_RANK] = { false }, reduced[TL_MAX_RANK] = { false }, keep = draw_chance(c, 50);
    int count = 0, rank = 0;
    bool all = draw_chance(c, 15);
    for (int i = 0; i < x->rank; i++)
        if (all || draw_chance(c, 40)) {
            if (x->open[i])
                return false; /* how many terms there are would decide how large the sum is */
            reduced[i] = true;
            terms *= x->dims[i];
            axes[count++] = c->opset >= 11 ? draw_signed_axis(c, i, x->rank) : i;
        }
    if (count == 0 && !all)
        return false;
    for (int i = 0; i < x->rank; i++) {
        if (reduced[i] && !keep)
            continue;
        open[rank] = x->open[i];
        dims[rank++] = reduced[i] ? 1 : x->dims[i];
    }
    double m = magnitude(x->range), n = (double)terms;
    bool exact_sum = k == 0 || k == 5 || k == 7 || extreme;
    draw_range r = x->range;
    if (k == 0)
        r = (draw_range){ n * fmin(r.low, 0), n * fmax(r.high, 0), r.step };
    else if (k == 4)
        r = DRAW_REAL(-pow(m, n), pow(m, n));
    else if (k >= 5)
        r = (draw_range){ k >= 8 ? -100 : 0, k == 7 ? n * m * m : n * m + 100,
                          k == 7 ? r.step * r.step : r.step };
    r.step = exact_sum ? r.step : 0;
    if (!draw_fits(x->dtype, &r))
        return false;
    if (all && draw_chance(c, 50))
        draw_node(c, op, DRAW_IN(x), 1, "keepdims=%d", keep);
    else if (by_input)
        draw_node(c, op, DRAW_IN(x, draw_numbers(c, TL_I64, count, axes, false)), 1, "keepdims=%d",
                  keep);
    else if (count > 0)
        draw_node(c, op, DRAW_IN(x), 1, "keepdims=%d axes=[%s]", keep, draw_list(c, count, axes));
    else
        draw_node(c, op, DRAW_IN(x), 1, "keepdims=%d", keep);
    draw_result(c, x->dtype, rank, dims, open, r);
    return true;
}

bool draw_arg(drawing *c)
{
    const draw_value *x =
        draw_pick(c, &(draw_want){ .dtypes = draw_sums(c), .exact = true, .least_rank = 1 });
    int axis = draw_axis(c, x), rank = 0;
    if (axis < 0 || x->dims[axis] == 0)
        return false;
    bool keep = draw_chance(c, 50), open[TL_MAX_RANK];
    int64_t dims[TL_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        if (i == axis && !keep)
            continue;
        open[rank] = x->open[i];
        dims[rank++] = i == axis ? 1 : x->dims[i];
    }
    double most = (double)x->dims[axis] - 1;
    draw_node(c, draw_word(c, "ArgMax ArgMin"), DRAW_IN(x), 1,
              "axis=%lld keepdims=%d select_last_index=%d",
              (long long)draw_signed_axis(c, axis, x->rank), keep, draw_chance(c, 40));
    draw_result(c, TL_I64, rank, dims, open, DRAW_WHOLE(0, most));
    return true;
}

bool draw_cumulate(drawing *c)
{
    const draw_value *x =
        draw_pick(c,
                  &(draw_want){ .dtypes = (c->opset >= 14 ? DRAW_FLOATS
                                                          : DRAW_BIT(TL_F32) | DRAW_BIT(TL_F64)) |
                                          DRAW_WIDE,
                                .least_rank = 1 });
    int axis = draw_axis(c, x);
    if (axis < 0)
        return false;
    bool product = c->opset >= 26 && tl_dtype_is_float(x->dtype) && draw_chance(c, 30);
    double n = (double)x->dims[axis];
    draw_range r = { n * fmin(x->range.low, 0), n * fmax(x->range.high, 0), x->range.step };
    if (product)
        r = DRAW_REAL(-pow(magnitude(x->range) + 1, n), pow(magnitude(x->range) + 1, n));
    if (!draw_fits(x->dtype, &r))
        return false;
    int64_t at[1] = { draw_signed_axis(c, axis, x->rank) };
    const draw_value *where = draw_numbers(c, draw_chance(c, 50) ? TL_I64 : TL_I32, 1, at, true);
    draw_node(c, product ? "CumProd" : "CumSum", DRAW_IN(x, where), 1, "exclusive=%d reverse=%d",
              draw_chance(c, 40), draw_chance(c, 40));
    draw_result_like(c, x, x->dtype, r);
    return true;
}

bool draw_top_k(drawing *c)
{
    const draw_value *x = draw_pick(c, &(draw_want){ .dtypes = DRAW_FLOATS & ~DRAW_BIT(TL_BF16),
                                                     .exact = true,
                                                     .least_rank = 1 });
    if (draw_chance(c, 30))
        x = draw_pick(c, &(draw_want){ .dtypes = DRAW_WIDE, .least_rank = 1 });
    int axis = draw_axis(c, x);
    if (axis < 0 || x->dims[axis] == 0)
        return false;
    int64_t k[1] = { draw_between(c, 1, x->dims[axis]) }, dims[TL_MAX_RANK];
    double most = (double)x->dims[axis] - 1;
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = k[0];
    const draw_value *count = draw_numbers(c, TL_I64, 1, k, false);
    draw_node(c, "TopK", DRAW_IN(x, count), 2, "axis=%lld largest=%d sorted=1",
              (long long)draw_signed_axis(c, axis, x->rank), draw_chance(c, 60));
    draw_result(c, x->dtype, x->rank, dims, x->open, x->range);
    draw_result(c, TL_I64, x->rank, dims, x->open, DRAW_WHOLE(0, most));
    return true;
}

bool draw_softmax(drawing *c)
{
    const draw_value *x = draw_pick(
        c, &(draw_want){
               .dtypes = DRAW_FLOATS, .low = -20, .high = 20, .least_rank = 1, .full = true });
    int axis = draw_axis(c, x);
    if (axis < 0)
        return false;
    if (c->opset < 13) { /* all axes from this one on are one */
        for (int i = axis; i < x->rank; i++)
            if (x->open[i])
                return false;
        if (x->counted)
            return false;
    }
    const char *op = draw_word(c, "Softmax Softmax LogSoftmax Hardmax");
    if (op[0] == 'H' && !draw_is_exact(x))
        return false;
    bool is_log = op[0] == 'L';
    draw_node(c, op, DRAW_IN(x), 1, "axis=%lld",
              (long long)(c->opset >= 11 ? draw_signed_axis(c, axis, x->rank) : axis));
    draw_range r = is_log ? DRAW_REAL(-50, 0) : op[0] == 'H' ? DRAW_WHOLE(0, 1) : DRAW_REAL(0, 1);
    draw_result_like(c, x, x->dtype, r);
    return true;
}

/* Values that differ, so that no variance is next to nothing. */
static const draw_value *pick_for_norm(drawing *c, int least_rank, int most_rank)
{
    return draw_pick(c, &(draw_want){ .dtypes = DRAW_FLOATS,
                                      .low = -200,
                                      .high = 200,
                                      .least_rank = least_rank,
                                      .most_rank = most_rank,
                                      .full = true });
}

static const draw_value *scale_of(drawing *c, tl_dtype dtype, int rank, const int64_t *dims)
{
    return draw_new(c, dtype, rank, dims, (draw_range){ 0.5, 2, draw_chance(c, 50) ? 0.25 : 0 });
}

bool draw_layer_norm(drawing *c)
{
    const draw_value *x = pick_for_norm(c, 1, 4);
    int axis = (int)draw_between(c, 0, x->rank - 1), count = x->rank - axis;
    for (int i = axis; i < x->rank; i++)
        if (x->open[i])
            return false;
    bool is_rms = c->opset >= 23 && draw_chance(c, 40);
    const draw_value *scale = scale_of(c, x->dtype, count, x->dims + axis);
    const draw_value *bias =
        !is_rms && draw_chance(c, 60)
            ? draw_new(c, x->dtype, count, x->dims + axis, draw_usual(x->dtype))
            : NULL;
    double most = 2 * sqrt((double)draw_elements(count, x->dims + axis)) + 2;
    draw_node(c, is_rms ? "RMSNormalization" : "LayerNormalization", DRAW_IN(x, scale, bias), 1,
              "axis=%lld epsilon=%s", (long long)draw_signed_axis(c, axis, x->rank),
              draw_word(c, "0.00001 0.1"));
    draw_result_like(c, x, x->dtype, DRAW_REAL(-most, most));
    return true;
}

bool draw_group_norm(drawing *c)
{
    const draw_value *x = pick_for_norm(c, 3, 4);
    int64_t channels = x->dims[1], groups = draw_between(c, 1, 4),
            per = c->opset >= 21 ? channels : groups;
    if (x->open[1] || x->open[2] || (x->rank > 3 && x->open[3]) || channels % groups != 0)
        return false;
    const draw_value *scale = scale_of(c, x->dtype, 1, &per),
                     *bias = draw_new(c, x->dtype, 1, &per, draw_usual(x->dtype));
    double most = 2 * sqrt((double)draw_size(x)) + 2;
    draw_node(c, "GroupNormalization", DRAW_IN(x, scale, bias), 1, "num_groups=%lld epsilon=0.001",
              (long long)groups);
    draw_result_like(c, x, x->dtype, DRAW_REAL(-most, most));
    return true;
}

bool draw_instance_norm(drawing *c)
{
    const draw_value *x = pick_for_norm(c, 3, 5);
    if (x->dtype == TL_BF16 && c->opset < 22)
        return false;
    for (int i = 1; i < x->rank; i++)
        if (x->open[i])
            return false;
    double most = 2 * sqrt((double)draw_size(x)) + 2;
    if (draw_chance(c, 30) && c->opset >= 9 && x->rank == 4 && x->dtype == TL_F32) {
        draw_node(c, "MeanVarianceNormalization", DRAW_IN(x), 1, "axes=[%s]",
                  draw_word(c, "0,2,3 2,3 1,2,3"));
        if (draw_is_open(x))
            return false;
    } else {
        int64_t channels = x->dims[1];
        const draw_value *scale = scale_of(c, x->dtype, 1, &channels),
                         *bias = draw_new(c, x->dtype, 1, &channels, draw_usual(x->dtype));
        draw_node(c, "InstanceNormalization", DRAW_IN(x, scale, bias), 1, "epsilon=%s",
                  draw_word(c, "0.00001 0.01"));
    }
    draw_result_like(c, x, x->dtype, DRAW_REAL(-most, most));
    return true;
}

bool draw_batch_norm(drawing *c)
{
    const draw_value *x = pick_for_norm(c, 2, 5);
    if (x->dtype == TL_BF16 && c->opset < 14)
        return false;
    int64_t channels = x->dims[1];
    if (x->open[1])
        return false;
    const draw_value *scale = scale_of(c, x->dtype, 1, &channels),
                     *bias = draw_new(c, x->dtype, 1, &channels, draw_usual(x->dtype)),
                     *mean = draw_new(c, x->dtype, 1, &channels, draw_usual(x->dtype)),
                     *variance = draw_new(c, x->dtype, 1, &channels,
                                          (draw_range){ 0.25, 4, draw_chance(c, 50) ? 0.25 : 0 });
    double most = 4 * magnitude(x->range) + 12;
    draw_range r = DRAW_REAL(-most, most);
    if (!draw_fits(x->dtype, &r))
        return false;
    draw_node(c, "BatchNormalization", DRAW_IN(x, scale, bias, mean, variance), 1, "epsilon=%s",
              draw_word(c, "0.00001 0.01"));
    draw_result_like(c, x, x->dtype, r);
    return true;
}

bool draw_lrn(drawing *c)
{
    const draw_value *x = draw_pick(c, &(draw_want){ .dtypes = DRAW_FLOATS,
                                                     .low = -20,
                                                     .high = 20,
                                                     .least_rank = 4,
                                                     .most_rank = 4,
                                                     .full = true });
    if (x->open[1])
        return false;
    draw_node(c, "LRN", DRAW_IN(x), 1, "size=%lld alpha=%s beta=%s bias=%s",
              (long long)draw_between(c, 1, 5), draw_word(c, "0.001 0.5"), draw_word(c, "0.75 0.5"),
              draw_word(c, "1.0 2.0"));
    draw_result_like(c, x, x->dtype, DRAW_REAL(-20, 20));
    return true;
}

/* Numbers above zero: the norm of zeros divides by nothing. */
bool draw_lp_norm(drawing *c)
{
    const draw_value *x =
        draw_pick(c, &(draw_want){ .dtypes = DRAW_BIT(TL_F32) | DRAW_BIT(TL_F64) | DRAW_BIT(TL_F16),
                                   .low = 0.25,
                                   .high = 50,
                                   .least_rank = 1,
                                   .full = true });
    int axis = draw_axis(c, x);
    if (axis < 0)
        return false;
    draw_node(c, "LpNormalization", DRAW_IN(x), 1, "axis=%d p=%d", axis,
              draw_chance(c, 50) ? 1 : 2);
    draw_result_like(c, x, x->dtype, DRAW_REAL(0, 1));
    return true;
}
