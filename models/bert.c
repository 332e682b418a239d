/* models/bert.c: BERT encoders (Devlin, Chang, Lee, Toutanova: BERT, 2018; the small ones: Turc and others: Well-Read
 * Students Learn Better, 2019), in the pieces that an exporter leaves: layer norm, GELU and attention as elementary
 * nodes, shapes computed by nodes from the shape of the input. */
#include <math.h>
#include <string.h>
#include "models/builders.h"

static const struct variant {
    const char *name;
    int layers;
    int64_t hidden, heads;
} variants[] = {
    { "bert_tiny", 2, 128, 2 },
    { "bert_mini", 4, 256, 4 },
    { "bert_small", 4, 512, 8 },
    { "bert_base", 12, 768, 12 },
};
enum { VOCABULARY = 30522, POSITIONS = 512, TOKENS = 128 };

/* A node whose name is the layer's and its own. */
#define NODE(op, name, ...) \
    tl_build_node(b, op, tl_build_name(b, "%s/%s", at, name), TL_NAMES(__VA_ARGS__))
#define NAME(name) tl_build_name(b, "%s/%s", at, name)

/* (x - mean) / sqrt(mean((x - mean)^2) + epsilon) * weight + bias over the last axis. */
static const char *layer_norm(tl_onnx_build *b, const char *at, const char *x, int64_t hidden)
{
    const char *weight = tl_build_normal(b, NAME("weight"), 1, 0.05, TL_DIMS(hidden));
    const char *bias = tl_build_normal(b, NAME("bias"), 0, 0.05, TL_DIMS(hidden));
    const char *mean = NODE("ReduceMean", "ReduceMean", x);
    tl_build_ints(b, "axes", TL_DIMS(-1));
    const char *centred = NODE("Sub", "Sub", x, mean);
    const char *two = tl_build_constant_float(b, NAME("Constant"), 2);
    const char *square = NODE("Pow", "Pow", centred, two);
    const char *variance = NODE("ReduceMean", "ReduceMean_1", square);
    tl_build_ints(b, "axes", TL_DIMS(-1));
    const char *epsilon = tl_build_constant_float(b, NAME("Constant_1"), 1e-12);
    const char *sum = NODE("Add", "Add", variance, epsilon);
    const char *root = NODE("Sqrt", "Sqrt", sum);
    const char *y = NODE("Div", "Div", centred, root);
    y = NODE("Mul", "Mul", y, weight);
    return NODE("Add", "Add_1", y, bias);
}

static const char *dense(tl_onnx_build *b, const char *at, const char *x, int64_t in, int64_t out)
{
    const char *weight =
        tl_build_normal(b, NAME("weight"), 0, sqrt(1.0 / (double)in), TL_DIMS(in, out));
    const char *bias = tl_build_normal(b, NAME("bias"), 0, 0.05, TL_DIMS(out));
    const char *y = NODE("MatMul", "MatMul", x, weight);
    return NODE("Add", "Add", bias, y);
}

/* x / 2 * (1 + erf(x / sqrt(2))) */
static const char *gelu(tl_onnx_build *b, const char *at, const char *x)
{
    const char *y = NODE("Div", "Div", x, tl_build_constant_float(b, NAME("Constant"), sqrt(2)));
    y = NODE("Erf", "Erf", y);
    y = NODE("Add", "Add", y, tl_build_constant_float(b, NAME("Constant_1"), 1));
    y = NODE("Mul", "Mul", x, y);
    return NODE("Mul", "Mul_1", y, tl_build_constant_float(b, NAME("Constant_2"), 0.5));
}

/* One dimension of `like`'s shape as a list of one, the way exporters compute it. */
static const char *dimension(tl_onnx_build *b, const char *at, const char *like, int64_t axis)
{
    const char *shape = NODE("Shape", "Shape", like);
    const char *index = tl_build_constant_int(b, NAME("Index"), axis);
    const char *extent = NODE("Gather", "Gather", shape, index);
    tl_build_int(b, "axis", 0);
    return NODE("Unsqueeze", "Unsqueeze", extent,
                tl_build_constant_ints(b, NAME("Axes"), TL_DIMS(0)));
}

/* Reshape to [batch of `like`, tokens of `like`, tail...]. */
static const char *reshape(tl_onnx_build *b, const char *at, const char *x, const char *like,
                           tl_build_list tail)
{
    const char *batch = dimension(b, NAME("batch"), like, 0);
    const char *tokens = dimension(b, NAME("tokens"), like, 1);
    const char *rest = tl_build_constant_ints(b, NAME("Constant"), tail);
    const char *shape = NODE("Concat", "Concat", batch, tokens, rest);
    tl_build_int(b, "axis", 0);
    return NODE("Reshape", "Reshape", x, shape);
}

/* [1, tokens, hidden] as [1, heads, tokens, hidden / heads], keys as [1, heads, hidden / heads, tokens]. */
static const char *split_heads(tl_onnx_build *b, const char *at, const char *x,
                               const struct variant *v, bool keys)
{
    x = reshape(b, at, x, x, TL_DIMS(v->heads, v->hidden / v->heads));
    x = NODE("Transpose", "Transpose", x);
    if (keys)
        tl_build_ints(b, "perm", TL_DIMS(0, 2, 3, 1));
    else
        tl_build_ints(b, "perm", TL_DIMS(0, 2, 1, 3));
    return x;
}

static const char *attention(tl_onnx_build *b, const char *at, const char *x, const char *mask,
                             const struct variant *v)
{
    int64_t h = v->hidden;
    const char *q = split_heads(b, NAME("query_heads"), dense(b, NAME("query"), x, h, h), v, false);
    const char *k = split_heads(b, NAME("key_heads"), dense(b, NAME("key"), x, h, h), v, true);
    const char *w = split_heads(b, NAME("value_heads"), dense(b, NAME("value"), x, h, h), v, false);
    const char *scores = NODE("MatMul", "MatMul", q, k);
    double scale = sqrt((double)h / (double)v->heads);
    scores = NODE("Div", "Div", scores, tl_build_constant_float(b, NAME("Constant"), scale));
    scores = NODE("Add", "Add", scores, mask);
    scores = NODE("Softmax", "Softmax", scores);
    tl_build_int(b, "axis", -1);
    const char *y = NODE("MatMul", "MatMul_1", scores, w);
    y = NODE("Transpose", "Transpose", y);
    tl_build_ints(b, "perm", TL_DIMS(0, 2, 1, 3));
    return reshape(b, NAME("merge"), y, y, TL_DIMS(h));
}

static const char *encoder_layer(tl_onnx_build *b, const char *at, const char *x, const char *mask,
                                 const struct variant *v)
{
    int64_t h = v->hidden;
    const char *y = attention(b, NAME("attention/self"), x, mask, v);
    y = dense(b, NAME("attention/output/dense"), y, h, h);
    y = NODE("Add", "attention/output/Add", y, x);
    x = layer_norm(b, NAME("attention/output/LayerNorm"), y, h);
    y = gelu(b, NAME("intermediate/act"), dense(b, NAME("intermediate/dense"), x, h, 4 * h));
    y = dense(b, NAME("output/dense"), y, 4 * h, h);
    y = NODE("Add", "output/Add", y, x);
    return layer_norm(b, NAME("output/LayerNorm"), y, h);
}

/* Words, positions 0, 1, ... (a slice of all there are, as long as the input), and segment 0 for all. */
static const char *embeddings(tl_onnx_build *b, const char *at, const char *ids, int64_t hidden)
{
    int64_t positions[POSITIONS];
    for (int i = 0; i < POSITIONS; i++)
        positions[i] = i;
    const char *words =
        tl_build_normal(b, NAME("word_embeddings.weight"), 0, 0.5, TL_DIMS(VOCABULARY, hidden));
    const char *places =
        tl_build_normal(b, NAME("position_embeddings.weight"), 0, 0.2, TL_DIMS(POSITIONS, hidden));
    const char *segments =
        tl_build_normal(b, NAME("token_type_embeddings.weight"), 0, 0.1, TL_DIMS(2, hidden));
    const char *all =
        tl_build_weight(b, NAME("position_ids"), TL_I64, TL_DIMS(1, POSITIONS), positions);

    const char *x = NODE("Gather", "word_embeddings/Gather", words, ids);
    const char *zeros = NODE("ConstantOfShape", "ConstantOfShape", NODE("Shape", "Shape", ids));
    tl_build_tensor_int(b, "value", 0);
    const char *segment = NODE("Gather", "token_type_embeddings/Gather", segments, zeros);
    const char *end = dimension(b, NAME("tokens"), ids, 1);
    const char *used =
        NODE("Slice", "Slice", all, tl_build_constant_ints(b, NAME("Constant"), TL_DIMS(0)), end,
             tl_build_constant_ints(b, NAME("Constant_1"), TL_DIMS(1)));
    const char *place = NODE("Gather", "position_embeddings/Gather", places, used);
    x = NODE("Add", "Add", x, segment);
    x = NODE("Add", "Add_1", x, place);
    return layer_norm(b, NAME("LayerNorm"), x, hidden);
}

/* 0 where the mask is 1, the lowest f32 where it is 0, as [1, 1, 1, tokens]. */
static const char *additive_mask(tl_onnx_build *b, const char *at, const char *mask)
{
    const char *m = NODE("Unsqueeze", "Unsqueeze", mask,
                         tl_build_constant_ints(b, NAME("Constant"), TL_DIMS(1)));
    m = NODE("Unsqueeze", "Unsqueeze_1", m,
             tl_build_constant_ints(b, NAME("Constant_1"), TL_DIMS(2)));
    m = NODE("Cast", "Cast", m);
    tl_build_int(b, "to", tl_dtype_infos[TL_F32].onnx);
    m = NODE("Sub", "Sub", tl_build_constant_float(b, NAME("Constant_2"), 1), m);
    return NODE("Mul", "Mul", m,
                tl_build_constant_float(b, NAME("Constant_3"), -3.4028234663852886e38));
}

void tl_zoo_bert(tl_onnx_build *b, const char *name)
{
    const struct variant *v = variants;
    const char *at = "pooler";
    while (strcmp(v->name, name) != 0)
        v++;
    const char *ids = tl_build_input(b, "input_ids", TL_I64, TL_DIMS(1, TOKENS));
    const char *mask = tl_build_input(b, "attention_mask", TL_I64, TL_DIMS(1, TOKENS));
    const char *added = additive_mask(b, "mask", mask);
    const char *x = embeddings(b, "embeddings", ids, v->hidden);
    for (int i = 0; i < v->layers; i++)
        x = encoder_layer(b, tl_build_name(b, "encoder/layer.%d", i), x, added, v);
    x = tl_build_rename(b, "last_hidden_state");
    tl_build_output(b, x, TL_F32, TL_DIMS(1, TOKENS, v->hidden));

    const char *first = NODE("Gather", "Gather", x, tl_build_constant_int(b, NAME("Constant"), 0));
    tl_build_int(b, "axis", 1);
    const char *weight = tl_build_normal(b, NAME("dense.weight"), 0, sqrt(1.0 / (double)v->hidden),
                                         TL_DIMS(v->hidden, v->hidden));
    const char *bias = tl_build_normal(b, NAME("dense.bias"), 0, 0.05, TL_DIMS(v->hidden));
    const char *y = NODE("Gemm", "dense", first, weight, bias);
    tl_build_int(b, "transB", 1);
    NODE("Tanh", "Tanh", y);
    y = tl_build_rename(b, "pooler_output");
    tl_build_output(b, y, TL_F32, TL_DIMS(1, v->hidden));
}
