/* tests/structural/draw_matrix.c: products, and what is made of them: attention, recurrent cells. */
#include <math.h>
#include <string.h>
#include "tests/structural/draw.h"

static double magnitude(draw_range r)
{
    return fmax(fabs(r.low), fabs(r.high));
}

static draw_range dot(const draw_value *x, const draw_value *y, int64_t terms)
{
    double most = (double)terms * magnitude(x->range) * magnitude(y->range);
    bool negative = x->range.low < 0 || y->range.low < 0;
    return (draw_range){ negative ? -most : 0, most, x->range.step * y->range.step };
}

static unsigned products(const drawing *c)
{
    return c->opset >= 9 ? DRAW_FLOATS | DRAW_WIDE : DRAW_FLOATS;
}

/* Axes in front broadcast; what is open may stand there, and for the rows. */
bool draw_matmul(drawing *c)
{
    const draw_value *x = draw_pick(
        c, &(draw_want){
               .dtypes = products(c), .low = -300, .high = 300, .least_rank = 1, .most_rank = 4 });
    if (draw_is_open(x) && x->open[x->rank - 1])
        return false;
    int64_t k = x->dims[x->rank - 1], dims[TL_MAX_RANK],
            rows = x->rank > 1 ? draw_size(x) / (k > 0 ? k : 1) : 1;
    draw_value y = { .dtype = x->dtype };
    y.rank = draw_chance(c, 12) ? 1 : x->rank > 2 && draw_chance(c, 40) ? x->rank : 2;
    for (int i = 0; i < y.rank - 2; i++) {
        y.dims[i] = draw_chance(c, 30) && !x->open[i] ? 1 : x->dims[i];
        y.open[i] = x->open[i];
    }
    int64_t n = draw_extent(c);
    if (rows * k * n > DRAW_WORK || rows * n > 2 * DRAW_ELEMENTS || k * n > 2 * DRAW_ELEMENTS)
        n = 1;
    y.dims[y.rank - 1] = y.rank == 1 ? k : n;
    if (y.rank > 1)
        y.dims[y.rank - 2] = k;
    if (draw_size(&y) > 4 * DRAW_ELEMENTS)
        return false;
    const draw_value *w = NULL;
    for (int i = 0; i < c->count && w == NULL && draw_chance(c, 50); i++) { /* one that is there */
        const draw_value *v = &c->values[i];
        bool same = v->dtype == x->dtype && v->rank == 2 && y.rank == 2 && v->dims[0] == k &&
                    !draw_is_open(v) && v->dims[1] * rows < DRAW_ELEMENTS && draw_may_read(c, v);
        w = same && magnitude(v->range) < 300 ? v : NULL;
    }
    if (w == NULL)
        w = draw_new_open(c, x->dtype, y.rank, y.dims, y.open, draw_usual(x->dtype));
    draw_range r = dot(x, w, k);
    if (!draw_fits(x->dtype, &r))
        return false;
    bool open[TL_MAX_RANK] = { false };
    int rank = 0;
    for (int i = 0; i < x->rank - 1; i++) {
        int at = i - (x->rank - w->rank);
        bool front = i < x->rank - 2 && w->rank > 2 && at >= 0 && x->dims[i] == 1 && !x->open[i];
        dims[rank] = front ? w->dims[at] : x->dims[i];
        open[rank++] = front ? w->open[at] : x->open[i];
    }
    if (w->rank > 1)
        dims[rank++] = w->dims[w->rank - 1];
    draw_node(c, "MatMul", DRAW_IN(x, w), 1, "%s", "");
    draw_result(c, x->dtype, rank, dims, open, r);
    return true;
}

bool draw_gemm(drawing *c)
{
    const draw_value *x = draw_pick(
        c, &(draw_want){
               .dtypes = DRAW_FLOATS, .low = -300, .high = 300, .least_rank = 2, .most_rank = 2 });
    bool ta = draw_chance(c, 30), tb = draw_chance(c, 40);
    int inner = ta ? 0 : 1;
    if (x->open[inner])
        return false;
    int64_t m = x->dims[1 - inner], k = x->dims[inner], n = draw_extent(c);
    n = m * k * n > DRAW_WORK || k * n > 2 * DRAW_ELEMENTS ? 1 : n;
    int64_t w[2] = { tb ? n : k, tb ? k : n }, dims[2] = { m, n };
    bool open[2] = { x->open[1 - inner], false };
    const draw_value *y = draw_new(c, x->dtype, 2, w, draw_usual(x->dtype));
    draw_value like = { .rank = 2, .dims = { m, n }, .open = { open[0], false } };
    const draw_value *z = c->opset < 11 || draw_chance(c, 60)
                              ? draw_within(c, &like, x->dtype, draw_usual(x->dtype))
                              : NULL;
    const char *alpha = draw_word(c, "1.0 0.5 2.0"), *beta = draw_word(c, "1.0 0.5 2.0 0.0");
    draw_range r = dot(x, y, k);
    r = (draw_range){ 2 * r.low - 4, 2 * r.high + 4, fmin(r.step * 0.5, 0.125) };
    if (!draw_fits(x->dtype, &r))
        return false;
    draw_node(c, "Gemm", DRAW_IN(x, y, z), 1, "transA=%d transB=%d alpha=%s beta=%s", ta, tb, alpha,
              beta);
    draw_result(c, x->dtype, 2, dims, open, r);
    return true;
}

bool draw_einsum(drawing *c)
{
    static const struct {
        const char *equation;
        const char *a, *b, *out;
    } forms[] = {
        { "ij,jk->ik", "ij", "jk", "ik" },
        { "bij,bjk->bik", "bij", "bjk", "bik" },
        { "ij,ij->ij", "ij", "ij", "ij" },
        { "ij,kj->ik", "ij", "kj", "ik" },
        { "i,j->ij", "i", "j", "ij" },
        { "ij->ji", "ij", "", "ji" },
        { "bhid,bhjd->bhij", "bhid", "bhjd", "bhij" },
        { "ij->i", "ij", "", "i" },
        { "ij,j->i", "ij", "j", "i" },
        { "bij,jk->bik", "bij", "jk", "bik" },
        { "ijk,ikl,im->jlm", "", "", "" },
    };
    int f = (int)draw_below(c, 10);
    tl_dtype dtype = draw_of(c, DRAW_USUAL_FLOATS);
    int64_t extents[128], dims[2][TL_MAX_RANK], out[TL_MAX_RANK], terms = 1;
    for (int i = 0; i < 128; i++)
        extents[i] = draw_between(c, 1, 6);
    const char *sides[2] = { forms[f].a, forms[f].b };
    const draw_value *v[2] = { NULL, NULL };
    for (int s = 0; s < 2; s++) {
        for (int i = 0; sides[s][i] != '\0'; i++)
            dims[s][i] = extents[(int)sides[s][i]];
        if (sides[s][0] != '\0')
            v[s] = draw_new(c, dtype, (int)strlen(sides[s]), dims[s], draw_usual(dtype));
    }
    for (int i = 'a'; i <= 'z'; i++)
        if (strchr(forms[f].equation, i) != NULL && strchr(forms[f].out, i) == NULL)
            terms *= extents[i];
    for (int i = 0; forms[f].out[i] != '\0'; i++)
        out[i] = extents[(int)forms[f].out[i]];
    double most = 4 * (double)terms;
    draw_node(c, "Einsum", DRAW_IN(v[0], v[1]), 1, "equation='%s'", forms[f].equation);
    draw_result(c, dtype, (int)strlen(forms[f].out), out, NULL,
                (draw_range){ -most, most, 0.0625 });
    return true;
}

bool draw_det(drawing *c)
{
    int64_t n = draw_between(c, 1, 3), dims[3] = { draw_between(c, 1, 3), n, n };
    bool batch = draw_chance(c, 50);
    tl_dtype dtype = draw_of(c, DRAW_BIT(TL_F32) | DRAW_BIT(TL_F64) | DRAW_BIT(TL_F16));
    const draw_value *x =
        draw_new(c, dtype, batch ? 3 : 2, batch ? dims : dims + 1, DRAW_WHOLE(-4, 4));
    draw_node(c, "Det", DRAW_IN(x), 1, "%s", "");
    draw_result(c, dtype, batch ? 1 : 0, dims, NULL, DRAW_REAL(-400, 400));
    return true;
}

/* What exporters write of attention: heads split, scores scaled, perhaps masked, softmax, heads merged. */
bool draw_attention_block(drawing *c)
{
    tl_dtype t = c->main == TL_F64 ? TL_F32 : c->main;
    int64_t b = draw_between(c, 1, 2), s = draw_between(c, 1, 9), h = draw_between(c, 1, 3),
            d = draw_between(c, 1, 8), hidden = h * d;
    int64_t in[3] = { b, s, hidden }, w[2] = { hidden, hidden }, four[4] = { b, s, h, d },
            three[3] = { b, s, hidden }, heads[4] = { b, h, s, d }, keys[4] = { b, h, d, s },
            scores[4] = { b, h, s, s };
    const draw_value *x = draw_new(c, t, 3, in, DRAW_REAL(-1, 1)), *part[3];
    draw_range one = DRAW_REAL(-1, 1), sums = DRAW_REAL(-20, 20);
    for (int i = 0; i < 3; i++) {
        const draw_value *weight = draw_weight(c, t, 2, w, DRAW_REAL(-0.5, 0.5));
        draw_node(c, "MatMul", DRAW_IN(x, weight), 1, "%s", "");
        const draw_value *p = draw_result(c, t, 3, three, NULL, sums);
        if (draw_chance(c, 70)) {
            const draw_value *bias = draw_weight(c, t, 1, &hidden, one);
            draw_node(c, "Add", DRAW_IN(p, bias), 1, "%s", "");
            p = draw_result(c, t, 3, three, NULL, sums);
        }
        const draw_value *shape = draw_numbers(c, TL_I64, 4, four, false);
        draw_node(c, "Reshape", DRAW_IN(p, shape), 1, "%s", "");
        p = draw_result(c, t, 4, four, NULL, sums);
        draw_node(c, "Transpose", DRAW_IN(p), 1, "perm=[%s]", i == 1 ? "0,2,3,1" : "0,2,1,3");
        part[i] = draw_result(c, t, 4, i == 1 ? keys : heads, NULL, sums);
    }
    draw_node(c, "MatMul", DRAW_IN(part[0], part[1]), 1, "%s", "");
    const draw_value *score = draw_result(c, t, 4, scores, NULL, DRAW_REAL(-400, 400));
    const draw_value *scale = draw_weight(c, t, 0, NULL, (draw_range){ 0.25, 0.25, 0.25 });
    draw_node(c, "Mul", DRAW_IN(score, scale), 1, "%s", "");
    score = draw_result(c, t, 4, scores, NULL, DRAW_REAL(-100, 100));
    if (draw_chance(c, 50)) {
        draw_value like = *score;
        const draw_value *mask = draw_within(c, &like, t, DRAW_REAL(-4, 0));
        draw_node(c, "Add", DRAW_IN(score, mask), 1, "%s", "");
        score = draw_result(c, t, 4, scores, NULL, DRAW_REAL(-100, 100));
    }
    draw_node(c, "Softmax", DRAW_IN(score), 1, "axis=%d", draw_chance(c, 50) ? 3 : -1);
    const draw_value *p = draw_result(c, t, 4, scores, NULL, DRAW_REAL(0, 1));
    draw_node(c, "MatMul", DRAW_IN(p, part[2]), 1, "%s", "");
    p = draw_result(c, t, 4, heads, NULL, sums);
    draw_node(c, "Transpose", DRAW_IN(p), 1, "perm=[0,2,1,3]%s", "");
    p = draw_result(c, t, 4, four, NULL, sums);
    const draw_value *merged = draw_numbers(c, TL_I64, 3, three, false);
    draw_node(c, "Reshape", DRAW_IN(p, merged), 1, "%s", "");
    draw_result(c, t, 3, three, NULL, sums);
    return true;
}

bool draw_attention(drawing *c)
{
    tl_dtype t = draw_of(c, DRAW_FLOATS & ~DRAW_BIT(TL_BF16));
    int64_t b = draw_between(c, 1, 2), s = draw_between(c, 1, 7), u = draw_between(c, 1, 9),
            kv = draw_between(c, 1, 2), h = kv * draw_between(c, 1, 2), d = draw_between(c, 1, 8),
            e = draw_between(c, 1, 8);
    bool flat = draw_chance(c, 40), causal = draw_chance(c, 40);
    int64_t q4[4] = { b, h, s, d }, k4[4] = { b, kv, u, d }, v4[4] = { b, kv, u, e },
            y4[4] = { b, h, s, e }, q3[3] = { b, s, h * d }, k3[3] = { b, u, kv * d },
            v3[3] = { b, u, kv * e }, y3[3] = { b, s, h * e };
    int rank = flat ? 3 : 4;
    const draw_value *q = draw_new(c, t, rank, flat ? q3 : q4, DRAW_REAL(-1, 1)),
                     *k = draw_new(c, t, rank, flat ? k3 : k4, DRAW_REAL(-1, 1)),
                     *v = draw_new(c, t, rank, flat ? v3 : v4, DRAW_REAL(-1, 1));
    int64_t mask[2] = { s, u };
    const draw_value *m =
        draw_chance(c, 50) && !causal ? draw_new(c, t, 2, mask, DRAW_REAL(-2, 0)) : NULL;
    const char *heads = flat ? tl_arena_format(c->arena, "q_num_heads=%lld kv_num_heads=%lld",
                                               (long long)h, (long long)kv)
                             : "";
    draw_node(c, "Attention", DRAW_IN(q, k, v, m), 1, "%s is_causal=%d%s", heads, causal,
              draw_chance(c, 25) ? " softcap=4.0" : "");
    draw_result(c, t, rank, flat ? y3 : y4, NULL, DRAW_REAL(-1, 1));
    return true;
}

bool draw_rotary(drawing *c)
{
    tl_dtype t = draw_of(c, DRAW_FLOATS & ~DRAW_BIT(TL_F64));
    int64_t b = draw_between(c, 1, 2), s = draw_between(c, 1, 6), h = draw_between(c, 1, 3),
            half = draw_between(c, 1, 4);
    int64_t dims[4] = { b, h, s, 2 * half }, cache[3] = { b, s, half };
    const draw_value *x = draw_new(c, t, 4, dims, draw_usual(t)),
                     *cosine = draw_new(c, t, 3, cache, DRAW_REAL(-1, 1)),
                     *sine = draw_new(c, t, 3, cache, DRAW_REAL(-1, 1));
    draw_node(c, "RotaryEmbedding", DRAW_IN(x, cosine, sine), 1, "interleaved=%d",
              draw_chance(c, 50));
    draw_result(c, t, 4, dims, NULL, DRAW_REAL(-4, 4));
    return true;
}

bool draw_recurrent(drawing *c)
{
    static const struct {
        const char *op;
        int gates, states;
    } cells[] = { { "RNN", 1, 1 }, { "GRU", 3, 1 }, { "LSTM", 4, 2 } };
    int k = (int)draw_below(c, 3), g = cells[k].gates;
    tl_dtype t = c->main == TL_BF16 || c->opset < 14 ? TL_F32 : c->main;
    const char *direction = draw_word(c, "forward reverse bidirectional");
    int64_t two = direction[0] == 'b' ? 2 : 1, s = draw_between(c, 1, 5), b = draw_between(c, 1, 3),
            in = draw_between(c, 1, 6), h = draw_between(c, 1, 7);
    bool batch_first = c->opset >= 14 && draw_chance(c, 25);
    int64_t x[3] = { batch_first ? b : s, batch_first ? s : b, in }, w[3] = { two, g * h, in },
            r[3] = { two, g * h, h }, bias[2] = { two, 2 * g * h },
            state[3] = { batch_first ? b : two, batch_first ? two : b, h };
    int64_t y[4] = { s, two, b, h }, y_batch[4] = { b, s, two, h };
    draw_range one = DRAW_REAL(-1, 1), half = DRAW_REAL(-0.5, 0.5);
    const draw_value *vx = draw_new(c, t, 3, x, one), *vw = draw_weight(c, t, 3, w, half),
                     *vr = draw_weight(c, t, 3, r, half),
                     *vb = draw_chance(c, 70) ? draw_weight(c, t, 2, bias, half) : NULL,
                     *lengths = draw_chance(c, 25)
                                    ? draw_new(c, TL_I32, 1, &b, DRAW_WHOLE(1, (double)s))
                                    : NULL,
                     *first = draw_chance(c, 40) ? draw_new(c, t, 3, state, one) : NULL,
                     *memory = k == 2 && first != NULL ? draw_new(c, t, 3, state, one) : NULL;
    const char *more = k == 1 ? draw_word(c, "linear_before_reset=0 linear_before_reset=1") : "";
    draw_node(c, cells[k].op, DRAW_IN(vx, vw, vr, vb, lengths, first, memory), 1 + cells[k].states,
              "hidden_size=%lld direction='%s' %s %s", (long long)h, direction, more,
              batch_first ? "layout=1" : "");
    draw_result(c, t, 4, batch_first ? y_batch : y, NULL, one);
    for (int i = 0; i < cells[k].states; i++)
        draw_result(c, t, 3, state, NULL, i == 0 ? one : DRAW_REAL(-6, 6));
    return true;
}
