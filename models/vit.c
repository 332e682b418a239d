/* models/vit.c: vision transformers (Dosovitskiy and others: An Image is Worth 16x16 Words, 2020): a square of 16x16
 * pixels is a token, one more token collects what is said about the image. Layer norms are single nodes here. */
#include <math.h>
#include <string.h>
#include "models/builders.h"
#include "models/image.h"
#include "models/transformer.h"

static const struct variant {
    const char *name;
    int layers;
    int64_t hidden, heads;
} variants[] = {
    { "vit_tiny16", 12, 192, 3 },
    { "vit_b16", 12, 768, 12 },
};
enum { PATCH = 16, CLASSES = 1000 };

static const char *layer_norm(tl_onnx_build *b, const char *at, const char *x, int64_t hidden)
{
    const char *weight = tl_build_normal(b, TL_AT("weight"), 1, 0.05, TL_DIMS(hidden));
    const char *bias = tl_build_normal(b, TL_AT("bias"), 0, 0.05, TL_DIMS(hidden));
    x = TL_NODE_AT("LayerNormalization", "LayerNormalization", x, weight, bias);
    tl_build_int(b, "axis", -1);
    tl_build_float(b, "epsilon", 1e-12);
    return x;
}

/* The class token, then a token for each patch, each with its position: [batch, 1 + patches, hidden]. */
static const char *embeddings(tl_onnx_build *b, const char *at, const tl_zoo_size *size,
                              int64_t hidden)
{
    const tl_window patch = {
        .channels = hidden, .kernel = PATCH, .stride = PATCH, .bias = true, .gain = 1
    };
    tl_image x = tl_image_input(b, size, 3);
    x = tl_image_conv(b, TL_AT("patch_embeddings.projection"), x, &patch);
    int64_t patches = x.height * x.width;
    const char *shape =
        tl_build_constant_ints(b, TL_AT("Constant"), TL_DIMS(size->batch, hidden, patches));
    const char *y = TL_NODE_AT("Reshape", "Reshape", x.name, shape);
    y = TL_NODE_AT("Transpose", "Transpose", y);
    tl_build_ints(b, "perm", TL_DIMS(0, 2, 1));
    const char *token = tl_build_normal(b, TL_AT("cls_token"), 0, 1, TL_DIMS(1, 1, hidden));
    const char *tokens =
        tl_build_constant_ints(b, TL_AT("Constant_1"), TL_DIMS(size->batch, 1, hidden));
    token = TL_NODE_AT("Expand", "Expand", token, tokens);
    y = TL_NODE_AT("Concat", "Concat", token, y);
    tl_build_int(b, "axis", 1);
    const char *places =
        tl_build_normal(b, TL_AT("position_embeddings"), 0, 0.2, TL_DIMS(1, 1 + patches, hidden));
    return TL_NODE_AT("Add", "Add", y, places);
}

static const char *encoder_layer(tl_onnx_build *b, const char *at, const char *x,
                                 const struct variant *v)
{
    int64_t h = v->hidden;
    const char *y = layer_norm(b, TL_AT("layernorm_before"), x, h);
    y = tl_build_self_attention(b, TL_AT("attention/attention"), y, h, v->heads,
                                (tl_attention_mask){ 0 });
    y = tl_build_dense(b, TL_AT("attention/output/dense"), y, h, h);
    x = TL_NODE_AT("Add", "Add", y, x);
    y = layer_norm(b, TL_AT("layernorm_after"), x, h);
    y = tl_build_dense(b, TL_AT("intermediate/dense"), y, h, 4 * h);
    y = tl_build_gelu(b, TL_AT("intermediate/act"), y);
    y = tl_build_dense(b, TL_AT("output/dense"), y, 4 * h, h);
    return TL_NODE_AT("Add", "Add_1", y, x);
}

void tl_zoo_vit(tl_onnx_build *b, const char *name, const tl_zoo_size *size)
{
    const struct variant *v = variants;
    while (strcmp(v->name, name) != 0)
        v++;
    const char *x = embeddings(b, "embeddings", size, v->hidden);
    for (int i = 0; i < v->layers; i++)
        x = encoder_layer(b, tl_build_name(b, "encoder/layer.%d", i), x, v);
    x = layer_norm(b, "layernorm", x, v->hidden);
    x = tl_build_node(b, "Gather", "Gather", TL_NAMES(x, tl_build_constant_int(b, "Constant", 0)));
    tl_build_int(b, "axis", 1);
    tl_image_dense(b, "classifier", x, v->hidden, CLASSES, sqrt(1.0 / (double)v->hidden));
    x = tl_build_rename(b, "logits");
    tl_build_output(b, x, TL_F32, TL_DIMS(size->batch, CLASSES));
}
