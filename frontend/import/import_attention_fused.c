/* frontend/import/import_attention_fused.c: attention as ONNX Runtime's optimizer and its exporters write it: Attention with the
 * product that gives queries, keys and values, MultiHeadAttention, and GroupQueryAttention with the cache of a decoder.
 *
 *     scores = cap(q k^T * scale) + bias        what a mask hides gets mask_filter_value, what lies ahead minus infinity */
#include <math.h>
#include <string.h>
#include "frontend/import/import_attention.h"

static tl_value *keys_in_a_row(tl_onnx_call *c, int64_t keys)
{
    return tl_onnx_emit_along(c, tl_onnx_emit_range(c, keys), 4, 3);
}

/* Element `part` of each text's numbers, which lie part after part: [B, 1, 1, 1]. */
static tl_value *per_text(tl_onnx_call *c, tl_value *numbers, int64_t batch, int part)
{
    numbers = tl_onnx_emit_slice(c, numbers, 0, part * batch, batch);
    return tl_onnx_emit_along(c, tl_onnx_emit_cast(c, numbers, TL_I64), 4, 0);
}

/* A mask that says where texts end: [B] ends; [2B] ends, then starts; [3B+2] lengths of the keys first. */
static tl_value *hide_outside(tl_onnx_call *c, tl_value *mask, const tl_attention *a, double filter)
{
    int64_t batch = a->q->shape.dims[0].extent, keys = a->k->shape.dims[2].extent;
    tl_value *key = keys_in_a_row(c, keys);
    tl_value *hidden = tl_emit2(c, TL_OP_GREATER_OR_EQUAL, key, per_text(c, mask, batch, 0));
    if (mask->shape.dims[0].extent == 2 * batch)
        hidden = tl_emit2(c, TL_OP_OR, hidden,
                          tl_emit2(c, TL_OP_LESS, key, per_text(c, mask, batch, 1)));
    return tl_onnx_add_hidden(c, NULL, hidden, a->q->dtype, filter);
}

/* What the mask adds to the scores: lengths, or of [B, keys] or [B, queries, keys] where it is not above 0. */
static tl_status add_mask(tl_onnx_call *c, tl_value *mask, tl_attention *a)
{
    double filter = tl_call_float(c, "mask_filter_value", -10000);
    int64_t batch = a->q->shape.dims[0].extent, keys = a->k->shape.dims[2].extent;
    if (mask == NULL)
        return TL_OK;
    TL_TRY(tl_need_shape(c, mask));
    TL_TRY(tl_need_dtype(c, mask));
    const tl_dim *d = mask->shape.dims;
    int rank = mask->shape.rank;
    if (rank == 1 &&
        (d[0].extent == batch || d[0].extent == 2 * batch || d[0].extent == 3 * batch + 2)) {
        a->bias = hide_outside(c, mask, a, filter);
        return TL_OK;
    }
    if ((rank != 2 && rank != 3) || d[rank - 1].extent != keys)
        return tl_call_unsupported(c, "a mask of %d axes that does not end in %lld keys", rank,
                                   (long long)keys);
    int64_t between[] = { 1, 2 };
    mask = tl_onnx_emit_axes(c, TL_OP_UNSQUEEZE, mask, rank == 2 ? 2 : 1, between);
    a->bias = tl_onnx_add_hidden(c, NULL, tl_onnx_emit_with(c, TL_OP_LESS_OR_EQUAL, mask, 0),
                                 a->q->dtype, filter);
    return TL_OK;
}

static void add_given_bias(tl_onnx_call *c, tl_value *bias, tl_attention *a)
{
    if (bias != NULL)
        a->bias = a->bias == NULL ? bias : tl_emit2(c, TL_OP_ADD, a->bias, bias);
}

/* A query sees the keys up to its own, and `window` of them where that is not negative. `first`: the position of the first
 * query, [B, 1, 1, 1] or one number. */
static void hide_future(tl_onnx_call *c, tl_value *first, int64_t window, tl_attention *a)
{
    int64_t queries = a->q->shape.dims[2].extent, keys = a->k->shape.dims[2].extent;
    tl_value *key = keys_in_a_row(c, keys);
    tl_value *query = tl_onnx_emit_along(c, tl_onnx_emit_range(c, queries), 4, 2);
    query = tl_emit2(c, TL_OP_ADD, query, first);
    tl_value *hidden = tl_emit2(c, TL_OP_LESS, query, key);
    if (window >= 0) {
        tl_value *oldest = tl_onnx_emit_with(c, TL_OP_SUB, query, (double)window);
        hidden = tl_emit2(c, TL_OP_OR, hidden, tl_emit2(c, TL_OP_LESS_OR_EQUAL, key, oldest));
    }
    a->bias = tl_onnx_add_hidden(c, a->bias, hidden, a->q->dtype, -INFINITY);
}

static tl_status finish(tl_onnx_call *c, tl_attention *a)
{
    tl_value *y, *shown;
    a->softmax = a->q->dtype;
    a->scale = tl_call_float(c, "scale", 0);
    if (a->scale == 0)
        a->scale = 1 / sqrt((double)a->q->shape.dims[3].extent);
    TL_TRY(tl_onnx_attend(c, a, 0, &y, &shown));
    tl_result(c, 0, tl_onnx_join_heads(c, y));
    return TL_OK;
}

static tl_status need_heads(tl_onnx_call *c, const char *name, int64_t *out)
{
    *out = tl_call_int(c, name, 0);
    return *out > 0 ? TL_OK : tl_call_bad(c, "attribute '%s' is required", name);
}

/* ---- MultiHeadAttention ---- */

/* x with its part of the bias, [B, heads, S, size]; of four axes it is a past that needs neither. */
static tl_status take_heads(tl_onnx_call *c, tl_value *x, tl_value *bias, int64_t from,
                            int64_t heads, tl_value **out)
{
    TL_TRY(tl_need_shape(c, x));
    if (bias != NULL && x->shape.rank == 3) {
        TL_TRY(tl_need_shape(c, bias));
        int64_t width = x->shape.dims[2].extent;
        if (bias->shape.rank != 1 || from + width > bias->shape.dims[0].extent)
            return tl_call_bad(c, "its bias does not reach over queries, keys and values");
        x = tl_emit2(c, TL_OP_ADD, x, tl_onnx_emit_slice(c, bias, 0, from, width));
    }
    return tl_onnx_split_heads(c, x, heads, out);
}

/* Part `i` of what lies as [B, S, heads, parts, size]: [B, S, heads * size]. */
static tl_value *packed_part(tl_onnx_call *c, tl_value *packed, int64_t i)
{
    const tl_dim *d = packed->shape.dims;
    const int64_t shape[] = { d[0].extent, d[1].extent, d[2].extent * d[4].extent };
    return tl_onnx_emit_reshape(c, tl_onnx_emit_slice(c, packed, 3, i, 1), shape, 3);
}

/* Queries, keys and values apart: all three may lie in the first tensor, keys and values in the second. */
static tl_status unpack(tl_onnx_call *c, int64_t heads, tl_value **q, tl_value **k, tl_value **v)
{
    tl_value **packed = *k == NULL ? q : k;
    int64_t parts = *k == NULL ? 3 : 2;
    if (*k != NULL)
        TL_TRY(tl_need_shape(c, *k));
    if (*v != NULL && (*q)->shape.rank == 3)
        return TL_OK;
    const tl_shape *s = &(*packed)->shape;
    if (*v != NULL || s->rank != 5 || s->dims[3].extent != parts || s->dims[2].extent != heads)
        return tl_call_bad(c, "its queries, keys and values are neither apart nor packed");
    tl_value *whole = *packed;
    if (parts == 3)
        *q = packed_part(c, whole, 0);
    *k = packed_part(c, whole, parts - 2);
    *v = packed_part(c, whole, parts - 1);
    return TL_OK;
}

tl_status tl_import_multi_head_attention(tl_onnx_call *c)
{
    tl_attention a = { 0 };
    tl_value *q = c->inputs[0], *k = tl_call_input(c, 1), *v = tl_call_input(c, 2);
    tl_value *bias = tl_call_input(c, 3), *past_k = tl_call_input(c, 6),
             *past_v = tl_call_input(c, 7);
    int64_t heads;
    TL_TRY(need_heads(c, "num_heads", &heads));
    TL_TRY(tl_need_shape(c, q));
    TL_TRY(tl_need_dtype(c, q));
    TL_TRY(unpack(c, heads, &q, &k, &v));
    if (tl_call_input(c, 8) != NULL || tl_call_input(c, 9) != NULL)
        return tl_call_unsupported(c, "a past in a buffer that is written in place");
    if (tl_call_wants(c, 3))
        return tl_call_unsupported(c, "the scores as an output");
    if ((past_k == NULL) != (past_v == NULL))
        return tl_call_bad(c, "past_key and past_value go together");
    int64_t width = q->shape.dims[2].extent;
    TL_TRY(take_heads(c, q, bias, 0, heads, &a.q));
    TL_TRY(take_heads(c, k, bias, width, heads, &a.k));
    TL_TRY(take_heads(c, v, bias, 2 * width, heads, &a.v));
    int64_t fresh = a.k->shape.dims[2].extent;
    TL_TRY(tl_onnx_append_past(c, past_k, &a.k));
    TL_TRY(tl_onnx_append_past(c, past_v, &a.v));
    TL_TRY(tl_onnx_check_attention(c, &a));
    TL_TRY(add_mask(c, tl_call_input(c, 4), &a));
    if (tl_call_int(c, "unidirectional", 0) != 0)
        hide_future(c, tl_onnx_emit_scalar(c, TL_I64, (double)(a.k->shape.dims[2].extent - fresh)),
                    -1, &a);
    add_given_bias(c, tl_call_input(c, 5), &a);
    TL_TRY(finish(c, &a));
    tl_result(c, 1, a.k);
    tl_result(c, 2, a.v);
    return TL_OK;
}

/* ---- Attention ---- */

/* The columns of input 0 times input 1: queries, keys, values. */
static tl_status project(tl_onnx_call *c, int64_t heads, tl_attention *a)
{
    tl_value *weights = c->inputs[1], *bias = tl_call_input(c, 2);
    tl_value **parts[] = { &a->q, &a->k, &a->v };
    const int64_t *sizes;
    int64_t from = 0;
    int count = tl_call_ints(c, "qkv_hidden_sizes", &sizes);
    TL_TRY(tl_need_shape(c, c->inputs[0]));
    TL_TRY(tl_need_dtype(c, c->inputs[0]));
    TL_TRY(tl_need_shape(c, weights));
    if (weights->shape.rank != 2 || c->inputs[0]->shape.rank != 3)
        return tl_call_bad(c, "its input has not three axes, or its weights not two");
    int64_t columns = weights->shape.dims[1].extent,
            thirds[] = { columns / 3, columns / 3, columns / 3 };
    sizes = count == 3 ? sizes : thirds;
    bool fits = count == 3 || (count < 0 && columns % 3 == 0);
    for (int i = 0; i < 3; i++)
        fits = fits && sizes[i] > 0 && sizes[i] <= columns;
    if (!fits || sizes[0] + sizes[1] + sizes[2] != columns)
        return tl_call_bad(c, "qkv_hidden_sizes are not the %lld columns of the weights",
                           (long long)columns);
    tl_value *y = tl_emit2(c, TL_OP_MATMUL, c->inputs[0], weights);
    if (bias != NULL)
        y = tl_emit2(c, TL_OP_ADD, y, bias);
    for (int i = 0; i < 3; i++) {
        tl_value *part = tl_onnx_emit_slice(c, y, 2, from, sizes[i]);
        TL_TRY(tl_onnx_split_heads(c, part, heads, parts[i]));
        from += sizes[i];
    }
    return TL_OK;
}

/* Keys (0) or values (1) of [2, B, heads, S, size]. */
static tl_value *half_of(tl_onnx_call *c, tl_value *past, int64_t which)
{
    const int64_t first = 0;
    return tl_onnx_emit_axes(c, TL_OP_SQUEEZE, tl_onnx_emit_slice(c, past, 0, which, 1), 1, &first);
}

tl_status tl_import_projected_attention(tl_onnx_call *c)
{
    tl_attention a = { 0 };
    tl_value *past = tl_call_input(c, 4);
    const int64_t first = 0;
    int64_t heads;
    TL_TRY(need_heads(c, "num_heads", &heads));
    if (tl_call_int(c, "do_rotary", 0) != 0)
        return tl_call_unsupported(c, "do_rotary");
    if (tl_call_int(c, "past_present_share_buffer", 0) != 0 || tl_call_input(c, 6) != NULL)
        return tl_call_unsupported(c, "a past in a buffer that is written in place");
    TL_TRY(project(c, heads, &a));
    int64_t fresh = a.k->shape.dims[2].extent;
    if (past != NULL) {
        TL_TRY(tl_need_shape(c, past));
        if (past->shape.rank != 5 || past->shape.dims[0].extent != 2)
            return tl_call_bad(c, "its past is not keys and values, [2, ..] of five axes");
        TL_TRY(tl_onnx_append_past(c, half_of(c, past, 0), &a.k));
        TL_TRY(tl_onnx_append_past(c, half_of(c, past, 1), &a.v));
    }
    TL_TRY(tl_onnx_check_attention(c, &a));
    TL_TRY(add_mask(c, tl_call_input(c, 3), &a));
    if (tl_call_int(c, "unidirectional", 0) != 0)
        hide_future(c, tl_onnx_emit_scalar(c, TL_I64, (double)(a.k->shape.dims[2].extent - fresh)),
                    -1, &a);
    add_given_bias(c, tl_call_input(c, 5), &a);
    TL_TRY(finish(c, &a));
    if (tl_call_wants(c, 1)) {
        tl_value *both[] = { tl_onnx_emit_axes(c, TL_OP_UNSQUEEZE, a.k, 1, &first),
                             tl_onnx_emit_axes(c, TL_OP_UNSQUEEZE, a.v, 1, &first) };
        tl_result(c, 1, tl_onnx_emit_concat(c, 2, both, 0));
    }
    return TL_OK;
}

/* ---- GroupQueryAttention ---- */

enum {
    QUERY,
    KEY,
    VALUE,
    PAST_KEY,
    PAST_VALUE,
    LAST_KEYS, /* seqlens_k: the position of each text's last key */
    TOTAL,
    COSINE,
    SINE,
    POSITIONS,
    BIAS,
    SINK,
    KEY_SCALE,
    VALUE_SCALE,
    QUERY_NORM,
    KEY_NORM,
    QUERY_LENGTHS
};

/* Where the new keys come in the cache. */
typedef struct {
    int64_t batch, fresh, past, total, capacity;
    bool differs;   /* from text to text, with what is given when the model runs */
    int64_t before; /* keys that stand before the new ones, if it is the same for all */
    tl_value *each; /* else: of each text, [B] */
} cache;

static tl_status refuse_rare_forms(tl_onnx_call *c)
{
    static const char *const types[] = { "k_quant_type", "v_quant_type" };
    for (int i = 0; i < 2; i++)
        if (strcmp(tl_call_string(c, types[i], "NONE"), "NONE") != 0)
            return tl_call_unsupported(c, "a quantised cache (%s)", types[i]);
    if (tl_call_input(c, KEY_SCALE) != NULL || tl_call_input(c, VALUE_SCALE) != NULL)
        return tl_call_unsupported(c, "a quantised cache (k_scale, v_scale)");
    if (tl_call_int(c, "sliding_window_cache", 0) != 0)
        return tl_call_unsupported(c, "sliding_window_cache");
    if (tl_call_input(c, QUERY_LENGTHS) != NULL)
        return tl_call_unsupported(c, "query_seqlens");
    if (tl_call_int(c, "qk_output", 0) != 0 || tl_call_wants(c, 3))
        return tl_call_unsupported(c, "the scores as an output");
    return TL_OK;
}

/* Queries, keys and values apart, in heads; they may lie side by side in the first input. */
static tl_status take_groups(tl_onnx_call *c, tl_attention *a)
{
    tl_value *q = c->inputs[QUERY], *k = tl_call_input(c, KEY), *v = tl_call_input(c, VALUE);
    int64_t heads, groups;
    TL_TRY(need_heads(c, "num_heads", &heads));
    TL_TRY(need_heads(c, "kv_num_heads", &groups));
    TL_TRY(tl_need_shape(c, q));
    TL_TRY(tl_need_dtype(c, q));
    if (q->shape.rank != 3 || (k == NULL) != (v == NULL))
        return tl_call_bad(c, "its queries have not three axes, or keys come without values");
    if (k == NULL) {
        if (heads > 1 << 20 || groups > 1 << 20)
            return tl_call_bad(c, "%lld heads on %lld", (long long)heads, (long long)groups);
        int64_t size = q->shape.dims[2].extent / (heads + 2 * groups);
        if (size * (heads + 2 * groups) != q->shape.dims[2].extent)
            return tl_call_bad(c, "its heads do not fill its first input");
        k = tl_onnx_emit_slice(c, q, 2, heads * size, groups * size);
        v = tl_onnx_emit_slice(c, q, 2, (heads + groups) * size, groups * size);
        q = tl_onnx_emit_slice(c, q, 2, 0, heads * size);
    }
    TL_TRY(tl_onnx_split_heads(c, q, heads, &a->q));
    TL_TRY(tl_onnx_split_heads(c, k, groups, &a->k));
    TL_TRY(tl_onnx_split_heads(c, v, groups, &a->v));
    return tl_onnx_check_attention(c, a);
}

/* Of one text, and of a first prompt, it is known where the new keys come; of several texts their lengths say it. */
static tl_status place_keys(tl_onnx_call *c, const tl_attention *a, cache *out)
{
    const tl_value *past = tl_call_input(c, PAST_KEY);
    double total;
    TL_TRY(tl_need_scalar(c, TOTAL, 0, &total));
    out->batch = a->k->shape.dims[0].extent;
    out->fresh = a->k->shape.dims[2].extent;
    out->total = total >= 0 && total < 1e9 ? (int64_t)total : -1;
    if ((past == NULL) != (tl_call_input(c, PAST_VALUE) == NULL))
        return tl_call_bad(c, "past_key and past_value go together");
    if (past != NULL) {
        TL_TRY(tl_need_shape(c, past));
        if (past->shape.rank != 4)
            return tl_call_bad(c, "a past of %d axes", past->shape.rank);
        out->past = past->shape.dims[2].extent;
    }
    out->before = out->total - out->fresh;
    if (out->before < 0 || out->before > out->past)
        return tl_call_bad(c, "%.0f keys in all do not come of %lld new ones and a past of %lld",
                           total, (long long)out->fresh, (long long)out->past);
    out->capacity = out->past > out->total ? out->past : out->total;
    out->differs = out->batch > 1 && out->before > 0;
    if (out->differs) {
        tl_value *last = tl_onnx_emit_cast(c, c->inputs[LAST_KEYS], TL_I64);
        last = tl_onnx_emit_reshape(c, last, &out->batch, 1);
        out->each = tl_onnx_emit_with(c, TL_OP_SUB, last, (double)(out->fresh - 1));
    }
    return TL_OK;
}

/* The cache with the new keys (or values) in it, zero behind them. */
static tl_status join_cache(tl_onnx_call *c, const cache *at, tl_value *past, tl_value *fresh,
                            tl_value **out)
{
    int64_t pads[8] = { 0 }, extents[TL_MAX_RANK];
    if (!at->differs) {
        if (past != NULL && at->before > 0)
            TL_TRY(tl_onnx_append_past(c, tl_onnx_emit_slice(c, past, 2, 0, at->before), &fresh));
        pads[6] = at->capacity - at->total;
        *out = tl_onnx_emit_pad(c, fresh, pads, 0);
        return TL_OK;
    }
    TL_TRY(tl_onnx_append_past(c, past, &fresh));
    pads[6] = 1; /* a row of zeros */
    fresh = tl_onnx_emit_pad(c, fresh, pads, 0);
    tl_value *row = tl_onnx_emit_along(c, tl_onnx_emit_range(c, at->capacity), 4, 2);
    tl_value *before = tl_onnx_emit_along(c, at->each, 4, 0);
    tl_value *since = tl_emit2(c, TL_OP_SUB, row, before);
    tl_value *of_fresh = tl_onnx_emit_with(c, TL_OP_ADD, since, (double)at->past);
    tl_value *zeros = tl_onnx_emit_scalar(c, TL_I64, (double)(at->past + at->fresh));
    tl_value *is_fresh = tl_onnx_emit_with(c, TL_OP_LESS, since, (double)at->fresh);
    tl_value *from = tl_onnx_emit_where(c, is_fresh, of_fresh, zeros);
    from = tl_onnx_emit_where(c, tl_emit2(c, TL_OP_LESS, row, before), row, from);
    tl_onnx_extents(fresh, extents);
    extents[2] = at->capacity;
    *out = tl_onnx_emit_gather(c, TL_OP_GATHER_ELEMENTS, fresh,
                               tl_onnx_emit_expand(c, from, extents, 4), 2);
    return TL_OK;
}

/* The positions of the queries, [B or 1, S]. Of given ones a first prompt uses the first alone, and counts on from it. */
static tl_value *positions_of(tl_onnx_call *c, const cache *at)
{
    tl_value *given = tl_call_input(c, POSITIONS);
    if (given != NULL && at->before > 0)
        return given;
    tl_value *step = tl_onnx_emit_along(c, tl_onnx_emit_range(c, at->fresh), 2, 1);
    if (given != NULL) {
        given = tl_onnx_emit_slice(c, tl_onnx_emit_slice(c, given, 0, 0, 1), 1, 0, 1);
        return tl_emit2(c, TL_OP_ADD, step, given);
    }
    if (at->differs)
        return tl_emit2(c, TL_OP_ADD, step, tl_onnx_emit_along(c, at->each, 2, 0));
    return tl_onnx_emit_with(c, TL_OP_ADD, step, (double)at->before);
}

/* Queries and keys normalised head by head, then turned. */
static tl_status prepare_keys(tl_onnx_call *c, const cache *at, tl_attention *a)
{
    tl_value **parts[] = { &a->q, &a->k }, *unused;
    const char *const epsilons[] = { "q_norm_epsilon", "k_norm_epsilon" };
    double usual = tl_call_float(c, "qk_norm_epsilon", 1e-6f);
    for (int i = 0; i < 2; i++)
        if (tl_call_input(c, QUERY_NORM + i) != NULL)
            TL_TRY(tl_onnx_emit_rms_norm(c, *parts[i], c->inputs[QUERY_NORM + i], -1,
                                         tl_call_float(c, epsilons[i], usual), parts[i], &unused));
    if (tl_call_int(c, "do_rotary", 0) == 0)
        return TL_OK;
    TL_TRY(tl_need_inputs(c, 1u << COSINE | 1u << SINE));
    TL_TRY(tl_need_shape(c, c->inputs[COSINE]));
    if (c->inputs[COSINE]->shape.rank != 2)
        return tl_call_bad(c, "cos_cache has not two axes");
    const tl_value *positions = tl_call_input(c, POSITIONS);
    if (positions != NULL)
        TL_TRY(tl_need_shape(c, positions));
    if (positions != NULL &&
        (positions->shape.rank != 2 || tl_shape_elements(&positions->shape) == 0))
        return tl_call_bad(c, "position_ids has not two axes");
    tl_rotation how = { c->inputs[COSINE], c->inputs[SINE], positions_of(c, at),
                        2 * c->inputs[COSINE]->shape.dims[1].extent,
                        tl_call_int(c, "rotary_interleaved", 0) != 0 };
    for (int i = 0; i < 2; i++)
        TL_TRY(tl_onnx_rotate(c, *parts[i], &how, parts[i]));
    return TL_OK;
}

/* A text sees no keys behind its last one. */
static void hide_padding(tl_onnx_call *c, tl_attention *a, const cache *at)
{
    tl_value *last =
        per_text(c, tl_onnx_emit_reshape(c, c->inputs[LAST_KEYS], &at->batch, 1), at->batch, 0);
    tl_value *key = keys_in_a_row(c, at->total);
    a->bias = tl_onnx_add_hidden(c, a->bias, tl_emit2(c, TL_OP_GREATER, key, last), a->q->dtype,
                                 -INFINITY);
}

tl_status tl_import_group_query_attention(tl_onnx_call *c)
{
    tl_attention a = { .softcap = tl_call_float(c, "softcap", 0) };
    cache at = { 0 };
    tl_value *keys, *values;
    TL_TRY(tl_need_inputs(c, 1u << LAST_KEYS | 1u << TOTAL));
    TL_TRY(refuse_rare_forms(c));
    TL_TRY(take_groups(c, &a));
    TL_TRY(place_keys(c, &a, &at));
    TL_TRY(prepare_keys(c, &at, &a));
    TL_TRY(join_cache(c, &at, tl_call_input(c, PAST_KEY), a.k, &keys));
    TL_TRY(join_cache(c, &at, tl_call_input(c, PAST_VALUE), a.v, &values));
    a.k = tl_onnx_emit_slice(c, keys, 2, 0, at.total);
    a.v = tl_onnx_emit_slice(c, values, 2, 0, at.total);
    tl_value *first = at.differs ? tl_onnx_emit_along(c, at.each, 4, 0)
                                 : tl_onnx_emit_scalar(c, TL_I64, (double)at.before);
    if (tl_call_int(c, "causal", 1) != 0)
        hide_future(c, first, tl_call_int(c, "local_window_size", -1), &a);
    else
        hide_padding(c, &a, &at);
    add_given_bias(c, tl_call_input(c, BIAS), &a);
    a.sink = tl_call_input(c, SINK);
    if (a.sink != NULL)
        TL_TRY(tl_need_shape(c, a.sink));
    else if (tl_call_int(c, "smooth_softmax", 0) > 0)
        a.sink = tl_onnx_emit_scalar(c, a.q->dtype, 0);
    TL_TRY(finish(c, &a));
    tl_result(c, 1, keys);
    tl_result(c, 2, values);
    return TL_OK;
}
