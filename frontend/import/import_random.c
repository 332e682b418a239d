/* frontend/import/import_random.c: random numbers: RandomNormal, RandomUniform and their Like forms, Bernoulli, Multinomial.
 *
 *     h = hash(position, key)      u = (h / 2^9 + 1/2) / 2^23      normal: sqrt(-2 ln u) cos(2 pi v)
 *
 * The numbers hang on the attribute `seed`, without one on the node's name, and on the position: they are the same in every
 * run, whatever the target and the number of threads. Hash: Wellons, lowbias32 (2018); normal: Box and Muller (1958). */
#include <math.h>
#include <string.h>
#include "frontend/import/import_rules.h"
#include "frontend/call/onnx_counts.h"
#include "frontend/call/onnx_scope.h"

static uint32_t key_of(tl_onnx_call *c)
{
    uint32_t key = 2166136261u;
    float seed = (float)tl_call_float(c, "seed", 0);
    const char *bytes = tl_call_has(c, "seed") ? (const char *)&seed : c->name;
    size_t size = tl_call_has(c, "seed") ? sizeof seed : strlen(c->name);
    for (size_t i = 0; i < size; i++)
        key = (key ^ (unsigned char)bytes[i]) * 16777619u;
    return key;
}

/* x ^ x >> by */
static tl_value *fold_down(tl_onnx_call *c, tl_value *x, double by)
{
    return tl_emit2(c, TL_OP_BITWISE_XOR, x, tl_onnx_emit_with(c, TL_OP_SHIFT_RIGHT, x, by));
}

/* A number between 0 and 1, both excluded, for each position of the shape. */
static tl_value *uniform(tl_onnx_call *c, uint32_t key, const int64_t *extents, int rank)
{
    const tl_shape shape = tl_shape_of(rank, extents); /* check_count saw it */
    tl_value *x = tl_onnx_emit_range(c, tl_shape_elements(&shape));
    x = tl_onnx_emit_cast(c, x, TL_U32);
    x = tl_onnx_emit_with(c, TL_OP_MUL, x, 2654435769.0);
    x = fold_down(c, tl_onnx_emit_with(c, TL_OP_ADD, x, key), 16);
    x = fold_down(c, tl_onnx_emit_with(c, TL_OP_MUL, x, 569420461.0), 15);
    x = fold_down(c, tl_onnx_emit_with(c, TL_OP_MUL, x, 1935289751.0), 15);
    x = tl_onnx_emit_cast(c, tl_onnx_emit_with(c, TL_OP_SHIFT_RIGHT, x, 9), TL_F32);
    x = tl_onnx_emit_with(c, TL_OP_MUL, tl_onnx_emit_with(c, TL_OP_ADD, x, 0.5), 0x1p-23);
    return tl_onnx_emit_reshape(c, x, extents, rank);
}

static tl_value *normal(tl_onnx_call *c, uint32_t key, const int64_t *extents, int rank)
{
    const double turn = 6.283185307179586;
    tl_value *radius = tl_emit1(c, TL_OP_LOG, uniform(c, key, extents, rank));
    tl_value *angle = tl_onnx_emit_with(c, TL_OP_MUL, uniform(c, ~key, extents, rank), turn);
    radius = tl_emit1(c, TL_OP_SQRT, tl_onnx_emit_with(c, TL_OP_MUL, radius, -2));
    return tl_emit2(c, TL_OP_MUL, radius, tl_emit1(c, TL_OP_COS, angle));
}

static tl_status check_count(tl_onnx_call *c, const int64_t *extents, int rank)
{
    tl_shape shape = tl_shape_of(rank, extents);
    int64_t count = tl_shape_elements(&shape);
    if (count < 0 || count > TL_ONNX_MOST_NUMBERS)
        return tl_call_unsupported(c, "more than %d random numbers", TL_ONNX_MOST_NUMBERS);
    return TL_OK;
}

/* The dtype that an attribute says. */
static tl_status find_dtype(tl_onnx_call *c, tl_dtype otherwise, tl_dtype *out)
{
    int64_t given = tl_call_int(c, "dtype", 0);
    *out = otherwise;
    if (tl_call_has(c, "dtype") &&
        (given < 0 || given > INT32_MAX || !tl_dtype_from_onnx((int)given, out)))
        return tl_call_unsupported(c, "data type %lld", (long long)given);
    return TL_OK;
}

static tl_status give_numbers(tl_onnx_call *c, const int64_t *extents, int rank, tl_dtype dtype,
                              const tl_value *like)
{
    bool is_normal = strncmp(c->op_type, "RandomNormal", 12) == 0;
    TL_TRY(check_count(c, extents, rank));
    if (!tl_dtype_is_float(dtype))
        return tl_call_bad(c, "random numbers of dtype %s", tl_dtype_infos[dtype].text);
    double low = is_normal ? tl_call_float(c, "mean", 0) : tl_call_float(c, "low", 0);
    double size = is_normal ? tl_call_float(c, "scale", 1) : tl_call_float(c, "high", 1) - low;
    uint32_t key = key_of(c);
    tl_value *y = is_normal ? normal(c, key, extents, rank) : uniform(c, key, extents, rank);
    y = tl_onnx_emit_with(c, TL_OP_ADD, tl_onnx_emit_with(c, TL_OP_MUL, y, size), low);
    y = tl_onnx_emit_cast(c, y, dtype);
    tl_value *const *counts = tl_counts_of(c->import, like);
    for (int i = 0; counts != NULL && i < rank; i++)
        tl_set_count(c->import, y, i, counts[i]);
    tl_result(c, 0, y);
    return TL_OK;
}

/* RandomNormal and RandomUniform. */
tl_status tl_import_random(tl_onnx_call *c)
{
    const int64_t *extents;
    int rank = tl_call_ints(c, "shape", &extents);
    tl_dtype dtype;
    TL_TRY(find_dtype(c, TL_F32, &dtype));
    if (rank < 0)
        return tl_call_bad(c, "attribute 'shape' is required");
    if (rank > TL_MAX_RANK)
        return tl_call_unsupported(c, "%d axes", rank);
    for (int i = 0; i < rank; i++)
        if (extents[i] < 0)
            return tl_call_bad(c, "an extent of %lld", (long long)extents[i]);
    return give_numbers(c, extents, rank, dtype, NULL);
}

tl_status tl_import_random_like(tl_onnx_call *c)
{
    const tl_value *x = c->inputs[0];
    int64_t extents[TL_MAX_RANK];
    tl_dtype dtype;
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_dtype(c, x));
    TL_TRY(find_dtype(c, x->dtype, &dtype));
    tl_onnx_extents(x, extents);
    return give_numbers(c, extents, x->shape.rank, dtype, x);
}

/* True where a random number is less than the probability. */
tl_status tl_import_bernoulli(tl_onnx_call *c)
{
    tl_value *p = c->inputs[0];
    int64_t extents[TL_MAX_RANK];
    tl_dtype dtype;
    TL_TRY(tl_need_shape(c, p));
    TL_TRY(tl_need_dtype(c, p));
    TL_TRY(find_dtype(c, p->dtype, &dtype));
    tl_onnx_extents(p, extents);
    TL_TRY(check_count(c, extents, p->shape.rank));
    tl_value *u = uniform(c, key_of(c), extents, p->shape.rank);
    u = tl_onnx_emit_cast(c, u, p->dtype);
    c->import->plain_nodes++;
    tl_value *y = tl_onnx_emit_cast(c, tl_emit2(c, TL_OP_LESS, u, p), dtype);
    c->import->plain_nodes--;
    tl_value *const *counts = tl_counts_of(c->import, p);
    for (int i = 0; counts != NULL && i < p->shape.rank; i++)
        tl_set_count(c->import, y, i, counts[i]);
    tl_result(c, 0, y);
    return TL_OK;
}

/* Of each row of logarithms of weights so many classes: that at which the running sum of probabilities passes the number. */
tl_status tl_import_multinomial(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    int64_t samples = tl_call_int(c, "sample_size", 1), last = 2;
    tl_dtype dtype;
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_dtype(c, x));
    TL_TRY(find_dtype(c, TL_I32, &dtype));
    if (x->shape.rank != 2 || x->shape.dims[1].extent < 1 || samples < 1 || samples > 1 << 20)
        return tl_call_bad(c, "%lld samples of a tensor of %d axes", (long long)samples,
                           x->shape.rank);
    int64_t rows = x->shape.dims[0].extent, classes = x->shape.dims[1].extent;
    TL_TRY(check_count(c, (const int64_t[]){ rows, samples, classes }, 3));
    tl_node *n = tl_onnx_emit_node(c, TL_OP_SOFTMAX, 1, &x);
    tl_attr_set_int(c->graph, n, "axis", 1);
    tl_value *p = tl_emitted(c, n);
    n = tl_onnx_emit_node(c, TL_OP_CUMULATE, 1, &p);
    tl_attr_set_int(c->graph, n, "axis", 1);
    tl_value *sums = tl_onnx_emit_reshape(c, tl_emitted(c, n), (int64_t[]){ rows, 1, classes }, 3);
    tl_value *u = uniform(c, key_of(c), (int64_t[]){ rows, samples, 1 }, 3);
    tl_value *passed = tl_emit2(c, TL_OP_LESS_OR_EQUAL, sums, tl_onnx_emit_cast(c, u, x->dtype));
    tl_value *y = tl_onnx_emit_reduce(c, TL_OP_REDUCE_SUM, tl_onnx_emit_cast(c, passed, TL_I64),
                                      &last, 1, false);
    y = tl_onnx_emit_with(c, TL_OP_MIN, y, (double)(classes - 1));
    tl_result(c, 0, tl_onnx_emit_cast(c, y, dtype));
    return TL_OK;
}
