/* models/bert.c: BERT encoders (Devlin, Chang, Lee, Toutanova: BERT, 2018; the small ones: Turc and others: Well-Read
 * Students Learn Better, 2019), in the pieces that an exporter leaves: layer norm, GELU and attention as elementary
 * nodes, shapes computed by nodes from the shape of the input. */
#include <math.h>
#include <string.h>
#include "models/builders.h"
#include "models/transformer.h"

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
enum { VOCABULARY = 30522, POSITIONS = 512 };
static const double EPSILON = 1e-12;

static const char *encoder_layer(tl_onnx_build *b, const char *at, const char *x, const char *mask,
                                 const struct variant *v)
{
    int64_t h = v->hidden;
    const char *y = tl_build_self_attention(b, TL_AT("attention/self"), x, h, v->heads,
                                            (tl_attention_mask){ .added = mask });
    y = tl_build_dense(b, TL_AT("attention/output/dense"), y, h, h);
    y = TL_NODE_AT("Add", "attention/output/Add", y, x);
    x = tl_build_layer_norm(b, TL_AT("attention/output/LayerNorm"), y, h, EPSILON);
    y = tl_build_dense(b, TL_AT("intermediate/dense"), x, h, 4 * h);
    y = tl_build_gelu(b, TL_AT("intermediate/act"), y);
    y = tl_build_dense(b, TL_AT("output/dense"), y, 4 * h, h);
    y = TL_NODE_AT("Add", "output/Add", y, x);
    return tl_build_layer_norm(b, TL_AT("output/LayerNorm"), y, h, EPSILON);
}

/* Words, positions, and segment 0 for all. */
static const char *embeddings(tl_onnx_build *b, const char *at, const char *ids, int64_t hidden)
{
    const char *words =
        tl_build_normal(b, TL_AT("word_embeddings.weight"), 0, 0.5, TL_DIMS(VOCABULARY, hidden));
    const char *segments =
        tl_build_normal(b, TL_AT("token_type_embeddings.weight"), 0, 0.1, TL_DIMS(2, hidden));
    const char *x = TL_NODE_AT("Gather", "word_embeddings/Gather", words, ids);
    const char *zeros =
        TL_NODE_AT("ConstantOfShape", "ConstantOfShape", TL_NODE_AT("Shape", "Shape", ids));
    tl_build_tensor_int(b, "value", 0);
    const char *segment = TL_NODE_AT("Gather", "token_type_embeddings/Gather", segments, zeros);
    const char *place = tl_build_positions(b, at, ids, POSITIONS, hidden);
    x = TL_NODE_AT("Add", "Add", x, segment);
    x = TL_NODE_AT("Add", "Add_1", x, place);
    return tl_build_layer_norm(b, TL_AT("LayerNorm"), x, hidden, EPSILON);
}

/* 0 where the mask is 1, the lowest f32 where it is 0, as [batch, 1, 1, tokens]. */
static const char *additive_mask(tl_onnx_build *b, const char *at, const char *mask)
{
    const char *m = TL_NODE_AT("Unsqueeze", "Unsqueeze", mask,
                               tl_build_constant_ints(b, TL_AT("Constant"), TL_DIMS(1)));
    m = TL_NODE_AT("Unsqueeze", "Unsqueeze_1", m,
                   tl_build_constant_ints(b, TL_AT("Constant_1"), TL_DIMS(2)));
    m = TL_NODE_AT("Cast", "Cast", m);
    tl_build_int(b, "to", tl_dtype_infos[TL_F32].onnx);
    m = TL_NODE_AT("Sub", "Sub", tl_build_constant_float(b, TL_AT("Constant_2"), 1), m);
    return TL_NODE_AT("Mul", "Mul", m,
                      tl_build_constant_float(b, TL_AT("Constant_3"), -3.4028234663852886e38));
}

void tl_zoo_bert(tl_onnx_build *b, const char *name, const tl_zoo_size *size)
{
    const struct variant *v = variants;
    const char *at = "pooler";
    while (strcmp(v->name, name) != 0)
        v++;
    tl_build_list dims = TL_DIMS(size->batch, size->length);
    const char *ids = tl_build_input(b, "input_ids", TL_I64, dims);
    const char *mask = tl_build_input(b, "attention_mask", TL_I64, dims);
    const char *added = additive_mask(b, "mask", mask);
    const char *x = embeddings(b, "embeddings", ids, v->hidden);
    for (int i = 0; i < v->layers; i++)
        x = encoder_layer(b, tl_build_name(b, "encoder/layer.%d", i), x, added, v);
    x = tl_build_rename(b, "last_hidden_state");
    tl_build_output(b, x, TL_F32, TL_DIMS(size->batch, size->length, v->hidden));

    const char *first =
        TL_NODE_AT("Gather", "Gather", x, tl_build_constant_int(b, TL_AT("Constant"), 0));
    tl_build_int(b, "axis", 1);
    const char *weight = tl_build_normal(b, TL_AT("dense.weight"), 0, sqrt(1.0 / (double)v->hidden),
                                         TL_DIMS(v->hidden, v->hidden));
    const char *bias = tl_build_normal(b, TL_AT("dense.bias"), 0, 0.05, TL_DIMS(v->hidden));
    const char *y = TL_NODE_AT("Gemm", "dense", first, weight, bias);
    tl_build_int(b, "transB", 1);
    TL_NODE_AT("Tanh", "Tanh", y);
    y = tl_build_rename(b, "pooler_output");
    tl_build_output(b, y, TL_F32, TL_DIMS(size->batch, v->hidden));
}
