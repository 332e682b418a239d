/* frontend/import/import_attention.c: attention and what goes with it, written as its definition says (ONNX, Attention-24,
 * RotaryEmbedding-23, LinearAttention-27, CausalConvWithState-27). The pass recognize_attention.c makes one kernel of the
 * products and the softmax where it can. */
#include <math.h>
#include <string.h>
#include "frontend/import/import_attention.h"

enum { MOST_STEPS = 128 }; /* of a state that is updated step by step, each written out */

tl_status tl_onnx_split_heads(tl_onnx_call *c, tl_value *x, int64_t heads, tl_value **out)
{
    *out = x;
    TL_TRY(tl_need_shape(c, x));
    if (x->shape.rank == 4)
        return TL_OK;
    if (x->shape.rank != 3 || heads < 1 || x->shape.dims[2].extent % heads != 0)
        return tl_call_bad(c, "an operand of %d axes for %lld heads", x->shape.rank,
                           (long long)heads);
    const tl_dim *d = x->shape.dims;
    x = tl_onnx_emit_reshape(c, x,
                             (int64_t[]){ d[0].extent, d[1].extent, heads, d[2].extent / heads },
                             4);
    *out = tl_onnx_emit_transpose(c, x, (const int64_t[]){ 0, 2, 1, 3 });
    return TL_OK;
}

tl_value *tl_onnx_join_heads(tl_onnx_call *c, tl_value *x)
{
    x = tl_onnx_emit_transpose(c, x, (const int64_t[]){ 0, 2, 1, 3 });
    const tl_dim *d = x->shape.dims;
    return tl_onnx_emit_reshape(c, x,
                                (int64_t[]){ d[0].extent, d[1].extent, d[2].extent * d[3].extent },
                                3);
}

/* Each head of axis 1 `times` times, side by side. */
static tl_value *repeat_heads(tl_onnx_call *c, tl_value *x, int64_t times)
{
    int64_t e[TL_MAX_RANK];
    if (times == 1)
        return x;
    tl_onnx_extents(x, e);
    x = tl_onnx_emit_reshape(c, x, (int64_t[]){ e[0], e[1], 1, e[2], e[3] }, 5);
    x = tl_onnx_emit_expand(c, x, (int64_t[]){ e[0], e[1], times, e[2], e[3] }, 5);
    return tl_onnx_emit_reshape(c, x, (int64_t[]){ e[0], e[1] * times, e[2], e[3] }, 4);
}

/* What a mask adds to the scores: a bool one 0 where it lets through, minus infinity elsewhere; one that is too short for the
 * keys hides those it does not cover. */
static tl_status mask_to_bias(tl_onnx_call *c, tl_value *mask, tl_dtype dtype, int64_t keys,
                              tl_value **out)
{
    TL_TRY(tl_need_shape(c, mask));
    TL_TRY(tl_need_dtype(c, mask));
    if (mask->dtype == TL_BOOL)
        mask = tl_onnx_emit_where(c, mask, tl_onnx_emit_scalar(c, dtype, 0),
                                  tl_onnx_emit_scalar(c, dtype, -INFINITY));
    int rank = mask->shape.rank;
    int64_t pads[2 * TL_MAX_RANK] = { 0 },
                     covered = rank > 0 ? mask->shape.dims[rank - 1].extent : 1;
    if (covered < keys && covered != 1)
        pads[2 * rank - 1] = keys - covered;
    *out = tl_onnx_emit_pad(c, tl_onnx_emit_cast(c, mask, dtype), pads, -INFINITY);
    return TL_OK;
}

tl_value *tl_onnx_add_hidden(tl_onnx_call *c, tl_value *bias, tl_value *hidden, tl_dtype dtype,
                             double number)
{
    tl_value *more = tl_onnx_emit_where(c, hidden, tl_onnx_emit_scalar(c, dtype, number),
                                        tl_onnx_emit_scalar(c, dtype, 0));
    return bias == NULL ? more : tl_emit2(c, TL_OP_ADD, bias, more);
}

typedef struct {
    tl_value *mask, *past_k, *past_v, *lengths;
    bool causal, joins; /* joins: the result has three axes */
} options;

static tl_status make_bias(tl_onnx_call *c, const options *a, const tl_attention *heads,
                           tl_value **out)
{
    tl_dtype dtype = heads->q->dtype;
    int64_t queries = heads->q->shape.dims[2].extent, keys = heads->k->shape.dims[2].extent;
    int64_t past = a->past_k != NULL ? a->past_k->shape.dims[2].extent : 0;
    tl_value *key = tl_onnx_emit_along(c, tl_onnx_emit_range(c, keys), 2, 1);
    *out = NULL;
    if (a->mask != NULL)
        TL_TRY(mask_to_bias(c, a->mask, dtype, keys, out));
    if (a->causal) {
        tl_value *query = tl_onnx_emit_along(c, tl_onnx_emit_range(c, queries), 2, 0);
        query = tl_onnx_emit_with(c, TL_OP_ADD, query, (double)past);
        *out = tl_onnx_add_hidden(c, *out, tl_emit2(c, TL_OP_LESS, query, key), dtype, -INFINITY);
    }
    if (a->lengths != NULL) {
        tl_value *length = tl_onnx_emit_along(c, tl_onnx_emit_cast(c, a->lengths, TL_I64), 4, 0);
        *out = tl_onnx_add_hidden(c, *out, tl_emit2(c, TL_OP_GREATER_OR_EQUAL, key, length), dtype,
                                  -INFINITY);
    }
    return TL_OK;
}

/* The sink of each head as a further column of its scores, which softmax counts and nothing else reads. */
static tl_value *add_sink(tl_onnx_call *c, const tl_attention *a, tl_value *scores)
{
    int64_t extents[TL_MAX_RANK];
    tl_onnx_extents(scores, extents);
    extents[3] = 1;
    tl_value *sink = tl_onnx_emit_cast(c, a->sink, scores->dtype);
    if (sink->shape.rank == 1)
        sink = tl_onnx_emit_along(c, sink, 4, 1);
    sink = tl_onnx_emit_expand(c, sink, extents, 4);
    return tl_onnx_emit_concat(c, 2, (tl_value *[]){ scores, sink }, 3);
}

tl_status tl_onnx_attend(tl_onnx_call *c, const tl_attention *a, int64_t mode, tl_value **out,
                         tl_value **shown)
{
    int64_t heads = a->q->shape.dims[1].extent, kv_heads = a->k->shape.dims[1].extent;
    if (kv_heads < 1 || heads % kv_heads != 0)
        return tl_call_bad(c, "%lld heads of queries on %lld heads of keys", (long long)heads,
                           (long long)kv_heads);
    tl_value *k = repeat_heads(c, a->k, heads / kv_heads);
    k = tl_onnx_emit_transpose(c, k, (const int64_t[]){ 0, 1, 3, 2 });
    tl_value *scores =
        tl_emit2(c, TL_OP_MATMUL, tl_onnx_emit_with(c, TL_OP_MUL, a->q, sqrt(a->scale)),
                 tl_onnx_emit_with(c, TL_OP_MUL, k, sqrt(a->scale)));
    *shown = scores;
    if (a->softcap != 0) {
        scores = tl_emit1(c, TL_OP_TANH, tl_onnx_emit_with(c, TL_OP_DIV, scores, a->softcap));
        scores = tl_onnx_emit_with(c, TL_OP_MUL, scores, a->softcap);
    }
    if (mode == 1)
        *shown = scores;
    if (a->bias != NULL)
        scores = tl_emit2(c, TL_OP_ADD, scores, a->bias);
    if (mode == 2)
        *shown = scores;
    int64_t keys = a->k->shape.dims[2].extent;
    tl_value *wide = tl_onnx_emit_cast(c, scores, a->softmax);
    if (a->sink != NULL)
        wide = add_sink(c, a, wide);
    tl_node *n = tl_onnx_emit_node(c, TL_OP_SOFTMAX, 1, &wide);
    tl_attr_set_int(c->graph, n, "axis", 3);
    tl_value *shares = tl_emitted(c, n);
    if (a->sink != NULL)
        shares = tl_onnx_emit_slice(c, shares, 3, 0, keys);
    shares = tl_onnx_emit_cast(c, shares, a->q->dtype);
    if (mode == 3)
        *shown = shares;
    *out = tl_emit2(c, TL_OP_MATMUL, shares, repeat_heads(c, a->v, heads / kv_heads));
    return TL_OK;
}

tl_status tl_onnx_check_attention(tl_onnx_call *c, const tl_attention *a)
{
    const tl_dim *q = a->q->shape.dims, *k = a->k->shape.dims, *v = a->v->shape.dims;
    bool fits = q[0].extent == k[0].extent && q[3].extent == k[3].extent &&
                v[0].extent == k[0].extent && v[1].extent == k[1].extent &&
                v[2].extent == k[2].extent;
    return fits ? TL_OK : tl_call_bad(c, "its queries, keys and values do not fit together");
}

tl_status tl_onnx_append_past(tl_onnx_call *c, tl_value *past, tl_value **x)
{
    if (past == NULL)
        return TL_OK;
    TL_TRY(tl_need_shape(c, past));
    if (past->shape.rank != 4)
        return tl_call_bad(c, "a past of %d axes", past->shape.rank);
    *x = tl_onnx_emit_concat(c, 2, (tl_value *[]){ past, *x }, 2);
    return TL_OK;
}

tl_status tl_import_attention(tl_onnx_call *c)
{
    options a = { .mask = tl_call_input(c, 3),
                  .past_k = tl_call_input(c, 4),
                  .past_v = tl_call_input(c, 5),
                  .lengths = tl_call_input(c, 6),
                  .causal = tl_call_int(c, "is_causal", 0) != 0 };
    tl_attention heads = { .softcap = tl_call_float(c, "softcap", 0) };
    int64_t q_heads = tl_call_int(c, "q_num_heads", 0),
            mode = tl_call_int(c, "qk_matmul_output_mode", 0);
    tl_value *y = NULL, *shown = NULL;
    int precision = (int)tl_call_int(c, "softmax_precision", 0);
    if ((a.past_k == NULL) != (a.past_v == NULL))
        return tl_call_bad(c, "past_key and past_value go together");
    if (mode < 0 || mode > 3)
        return tl_call_bad(c, "qk_matmul_output_mode %lld", (long long)mode);
    TL_TRY(tl_onnx_split_heads(c, c->inputs[0], q_heads, &heads.q));
    TL_TRY(tl_onnx_split_heads(c, c->inputs[1], tl_call_int(c, "kv_num_heads", 0), &heads.k));
    TL_TRY(tl_onnx_split_heads(c, c->inputs[2], tl_call_int(c, "kv_num_heads", 0), &heads.v));
    TL_TRY(tl_need_dtype(c, heads.q));
    a.joins = c->inputs[0]->shape.rank == 3;
    heads.softmax = heads.q->dtype;
    if (precision != 0 && !tl_dtype_from_onnx(precision, &heads.softmax))
        return tl_call_unsupported(c, "softmax_precision %s", tl_onnx_dtype_text(precision));
    TL_TRY(tl_onnx_append_past(c, a.past_k, &heads.k));
    TL_TRY(tl_onnx_append_past(c, a.past_v, &heads.v));
    TL_TRY(tl_onnx_check_attention(c, &heads));
    heads.scale = tl_call_float(c, "scale", 1 / sqrt((double)heads.q->shape.dims[3].extent));
    TL_TRY(make_bias(c, &a, &heads, &heads.bias));
    TL_TRY(tl_onnx_attend(c, &heads, mode, &y, &shown));
    tl_result(c, 0, a.joins ? tl_onnx_join_heads(c, y) : y);
    tl_result(c, 1, heads.k);
    tl_result(c, 2, heads.v);
    tl_result(c, 3, shown);
    return TL_OK;
}

/* ---- rotary embedding ---- */

/* Half `part` of the elements to rotate: every second one, or those of one half. */
static tl_value *take_half(tl_onnx_call *c, tl_value *x, int64_t size, bool interleaved, int part)
{
    int axis = x->shape.rank - 1;
    int64_t extents[TL_MAX_RANK];
    if (!interleaved)
        return tl_onnx_emit_slice(c, x, axis, part * size / 2, size / 2);
    tl_onnx_extents(x, extents);
    tl_value *pairs = tl_onnx_emit_reshape_axis(c, x, axis, 2, (int64_t[]){ size / 2, 2 });
    return tl_onnx_emit_reshape(c, tl_onnx_emit_slice(c, pairs, axis + 1, part, 1),
                                (int64_t[]){ extents[0], extents[1], extents[2], size / 2 }, 4);
}

static tl_value *put_halves(tl_onnx_call *c, tl_value *a, tl_value *b, int64_t size,
                            bool interleaved)
{
    tl_value *halves[] = { a, b };
    int64_t extents[TL_MAX_RANK];
    if (!interleaved)
        return tl_onnx_emit_concat(c, 2, halves, 3);
    for (int i = 0; i < 2; i++)
        halves[i] = tl_onnx_emit_reshape_axis(c, halves[i], 3, 2, (int64_t[]){ size / 2, 1 });
    tl_onnx_extents(a, extents);
    extents[3] = size;
    return tl_onnx_emit_reshape(c, tl_onnx_emit_concat(c, 2, halves, 4), extents, 4);
}

/* The cache's rows of the positions, as [B, 1, S, size/2]. */
static tl_status take_angles(tl_onnx_call *c, tl_value *cache, tl_value *positions, int64_t half,
                             tl_value **out)
{
    TL_TRY(tl_need_shape(c, cache));
    if (positions != NULL)
        cache = tl_onnx_emit_gather(c, TL_OP_GATHER, cache, positions, 0);
    if (cache->shape.rank != 3 || cache->shape.dims[2].extent != half)
        return tl_call_bad(c, "a cache of other angles than %lld a position", (long long)half);
    *out = tl_onnx_emit_axes(c, TL_OP_UNSQUEEZE, cache, 1, (int64_t[]){ 1 });
    return TL_OK;
}

tl_status tl_onnx_rotate(tl_onnx_call *c, tl_value *x, const tl_rotation *how, tl_value **out)
{
    tl_value *cosine, *sine;
    int64_t size = how->size, whole = x->shape.dims[3].extent;
    if (size > whole || size % 2 != 0)
        return tl_call_bad(c, "rotary_embedding_dim %lld of %lld", (long long)size,
                           (long long)whole);
    TL_TRY(take_angles(c, how->cosine, how->positions, size / 2, &cosine));
    TL_TRY(take_angles(c, how->sine, how->positions, size / 2, &sine));
    tl_value *turned = tl_onnx_emit_slice(c, x, 3, 0, size);
    tl_value *a = take_half(c, turned, size, how->interleaved, 0);
    tl_value *b = take_half(c, turned, size, how->interleaved, 1);
    tl_value *real =
        tl_emit2(c, TL_OP_SUB, tl_emit2(c, TL_OP_MUL, cosine, a), tl_emit2(c, TL_OP_MUL, sine, b));
    tl_value *imaginary =
        tl_emit2(c, TL_OP_ADD, tl_emit2(c, TL_OP_MUL, sine, a), tl_emit2(c, TL_OP_MUL, cosine, b));
    *out = put_halves(c, real, imaginary, size, how->interleaved);
    if (size < whole)
        *out = tl_onnx_emit_concat(
            c, 2, (tl_value *[]){ *out, tl_onnx_emit_slice(c, x, 3, size, whole - size) }, 3);
    return TL_OK;
}

tl_status tl_import_rotary_embedding(tl_onnx_call *c)
{
    bool is_contrib = strncmp(c->rule->op_type, "com.", 4) == 0;
    tl_value *x = c->inputs[0], *positions = tl_call_input(c, is_contrib ? 1 : 3);
    bool interleaved = tl_call_int(c, "interleaved", 0) != 0;
    int64_t size = tl_call_int(c, "rotary_embedding_dim", 0),
            heads = tl_call_int(c, "num_heads", 0);
    int first = is_contrib ? 2 : 1;
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_dtype(c, x));
    bool joins = x->shape.rank == 3;
    if (joins && heads == 0 && is_contrib && c->inputs[2]->shape.rank == 2)
        heads = x->shape.dims[2].extent / (2 * c->inputs[2]->shape.dims[1].extent);
    TL_TRY(tl_onnx_split_heads(c, x, heads, &x));
    int64_t whole = x->shape.dims[3].extent;
    size = size > 0 ? size : whole;
    if (is_contrib && tl_shape_elements(&positions->shape) == 1) { /* where the first one stands */
        tl_value *all = tl_onnx_emit_along(c, tl_onnx_emit_range(c, x->shape.dims[2].extent), 2, 1);
        positions =
            tl_emit2(c, TL_OP_ADD, all,
                     tl_onnx_emit_cast(c, tl_onnx_emit_reshape(c, positions, NULL, 0), TL_I64));
        positions =
            tl_onnx_emit_expand(c, positions,
                                (int64_t[]){ x->shape.dims[0].extent, x->shape.dims[2].extent }, 2);
    }
    tl_value *y;
    tl_rotation how = { c->inputs[first], c->inputs[first + 1], positions, size, interleaved };
    TL_TRY(tl_onnx_rotate(c, x, &how, &y));
    tl_result(c, 0, joins ? tl_onnx_join_heads(c, y) : y);
    return TL_OK;
}

/* ---- states that are updated step by step ---- */

/* Step t of [B, S, heads, size], as [B, heads, size]. */
static tl_value *take_step(tl_onnx_call *c, tl_value *x, int64_t t)
{
    return tl_onnx_emit_axes(c, TL_OP_SQUEEZE, tl_onnx_emit_slice(c, x, 1, t, 1), 1,
                             (int64_t[]){ 1 });
}

typedef struct {
    tl_value *q, *k, *v, *decay, *beta; /* [B, S, heads, size], f32 or wider */
    bool gated, delta;
} linear_attention;

/* state [B, heads, K, V] after step t. */
static tl_value *update_state(tl_onnx_call *c, const linear_attention *a, tl_value *state,
                              int64_t t)
{
    const int64_t last[] = { -1 }, row[] = { -2 };
    tl_value *key = tl_onnx_emit_axes(c, TL_OP_UNSQUEEZE, take_step(c, a->k, t), 1, last);
    tl_value *value = take_step(c, a->v, t);
    if (a->gated) {
        tl_value *decay = tl_emit1(c, TL_OP_EXP, take_step(c, a->decay, t));
        state =
            tl_emit2(c, TL_OP_MUL, state, tl_onnx_emit_axes(c, TL_OP_UNSQUEEZE, decay, 1, last));
    }
    if (a->delta) {
        tl_value *turned = tl_onnx_emit_transpose(c, state, (const int64_t[]){ 0, 1, 3, 2 });
        tl_value *held =
            tl_onnx_emit_axes(c, TL_OP_SQUEEZE, tl_emit2(c, TL_OP_MATMUL, turned, key), 1, last);
        value =
            tl_emit2(c, TL_OP_MUL, take_step(c, a->beta, t), tl_emit2(c, TL_OP_SUB, value, held));
    }
    tl_value *outer =
        tl_emit2(c, TL_OP_MUL, key, tl_onnx_emit_axes(c, TL_OP_UNSQUEEZE, value, 1, row));
    return tl_emit2(c, TL_OP_ADD, state, outer);
}

/* [B, S, heads * size] as [B, S, heads, size], in the dtype that the state is kept in. */
static tl_status by_heads(tl_onnx_call *c, tl_value *x, int64_t heads, tl_dtype dtype,
                          tl_value **out)
{
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_dtype(c, x));
    const tl_dim *d = x->shape.dims;
    if (x->shape.rank != 3 || heads < 1 || d[2].extent % heads != 0)
        return tl_call_bad(c, "an operand of %d axes for %lld heads", x->shape.rank,
                           (long long)heads);
    *out = tl_onnx_emit_reshape(c, tl_onnx_emit_cast(c, x, dtype),
                                (int64_t[]){ d[0].extent, d[1].extent, heads, d[2].extent / heads },
                                4);
    return TL_OK;
}

tl_status tl_import_linear_attention(tl_onnx_call *c)
{
    const char *rule = tl_call_string(c, "update_rule", "gated_delta");
    int64_t heads = tl_call_int(c, "q_num_heads", 0), kv_heads = tl_call_int(c, "kv_num_heads", 0);
    linear_attention a = { .gated = strncmp(rule, "gated", 5) == 0,
                           .delta = strstr(rule, "delta") != NULL };
    tl_value *past = tl_call_input(c, 3), *decay = tl_call_input(c, 4), *beta = tl_call_input(c, 5);
    TL_TRY(tl_need_dtype(c, c->inputs[0]));
    tl_dtype own = c->inputs[0]->dtype, dtype = own == TL_F64 ? TL_F64 : TL_F32;
    if (strcmp(rule, "linear") != 0 && strcmp(rule, "gated") != 0 && strcmp(rule, "delta") != 0 &&
        strcmp(rule, "gated_delta") != 0)
        return tl_call_bad(c, "update_rule '%.40s'", rule);
    TL_TRY(by_heads(c, c->inputs[0], heads, dtype, &a.q));
    TL_TRY(by_heads(c, c->inputs[1], kv_heads, dtype, &a.k));
    TL_TRY(by_heads(c, c->inputs[2], kv_heads, dtype, &a.v));
    if ((a.gated && decay == NULL) || (a.delta && beta == NULL))
        return tl_call_bad(c, "update_rule '%s' without %s", rule,
                           decay == NULL ? "decay" : "beta");
    if (a.gated)
        TL_TRY(by_heads(c, decay, kv_heads, dtype, &a.decay));
    if (a.delta)
        TL_TRY(by_heads(c, beta, beta->shape.dims[2].extent, dtype, &a.beta));
    const tl_dim *k = a.k->shape.dims, *v = a.v->shape.dims;
    int64_t steps = k[1].extent, extents[] = { k[0].extent, kv_heads, k[3].extent, v[3].extent };
    if (heads % kv_heads != 0 || steps < 1)
        return tl_call_bad(c, "%lld heads of queries on %lld, %lld steps", (long long)heads,
                           (long long)kv_heads, (long long)steps);
    if (steps > MOST_STEPS)
        return tl_call_unsupported(c, "more than %d steps", MOST_STEPS);
    double scale = tl_call_float(c, "scale", 0);
    if (scale == 0)
        scale = 1 / sqrt((double)k[3].extent);
    tl_value *state = past != NULL
                          ? tl_onnx_emit_cast(c, past, dtype)
                          : tl_onnx_emit_expand(c, tl_onnx_emit_scalar(c, dtype, 0), extents, 4);
    tl_value **outputs = TL_NEW_ARRAY(c->arena, tl_value *, steps);
    for (int64_t t = 0; t < steps; t++) {
        state = update_state(c, &a, state, t);
        tl_value *query =
            tl_onnx_emit_axes(c, TL_OP_UNSQUEEZE, take_step(c, a.q, t), 1, (int64_t[]){ -2 });
        tl_value *y = tl_emit2(c, TL_OP_MATMUL, query, repeat_heads(c, state, heads / kv_heads));
        outputs[t] = tl_onnx_emit_reshape(c, tl_onnx_emit_with(c, TL_OP_MUL, y, scale),
                                          (int64_t[]){ extents[0], 1, heads * extents[3] }, 3);
    }
    tl_result(c, 0, tl_onnx_emit_cast(c, tl_onnx_emit_concat(c, (int)steps, outputs, 1), own));
    tl_result(c, 1, tl_onnx_emit_cast(c, state, own));
    return TL_OK;
}

/* A depthwise convolution over what came before and what comes now. */
tl_status tl_import_causal_conv(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *w = c->inputs[1], *bias = tl_call_input(c, 2),
             *past = tl_call_input(c, 3);
    const char *activation = tl_call_string(c, "activation", "none");
    bool silu = strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_dtype(c, x));
    TL_TRY(tl_need_shape(c, w));
    if (!silu && strcmp(activation, "none") != 0)
        return tl_call_bad(c, "activation '%.40s'", activation);
    if (x->shape.rank != 3 || w->shape.rank != 3 || w->shape.dims[2].extent < 1)
        return tl_call_bad(c, "its input has %d axes, its weight %d", x->shape.rank, w->shape.rank);
    int64_t channels = x->shape.dims[1].extent, before = w->shape.dims[2].extent - 1;
    int64_t pads[2 * TL_MAX_RANK] = { 0, 0, before };
    tl_value *all = past != NULL ? tl_onnx_emit_concat(c, 2, (tl_value *[]){ past, x }, 2)
                                 : tl_onnx_emit_pad(c, x, pads, 0);
    tl_value *inputs[] = { all, w, bias };
    tl_node *n = tl_onnx_emit_node(c, TL_OP_CONV, bias != NULL ? 3 : 2, inputs);
    tl_attr_set_int(c->graph, n, "group", channels);
    tl_value *y = tl_emitted(c, n);
    if (silu) {
        tl_value *wide = x->dtype == TL_F64 ? y : tl_onnx_emit_cast(c, y, TL_F32);
        y = tl_onnx_emit_cast(c, tl_emit2(c, TL_OP_MUL, wide, tl_emit1(c, TL_OP_SIGMOID, wide)),
                              x->dtype);
    }
    tl_result(c, 0, y);
    if (tl_call_wants(c, 1) && all->shape.rank == 3)
        tl_result(c, 1, tl_onnx_emit_slice(c, all, 2, all->shape.dims[2].extent - before, before));
    return TL_OK;
}
