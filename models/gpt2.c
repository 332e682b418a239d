/* models/gpt2.c: GPT-2 (Radford, Wu, Child, Luan, Amodei, Sutskever: Language Models are Unsupervised Multitask
 * Learners, 2019): layer norms before the branches, tokens see only those before them, the head shares the table of
 * words. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "models/builders.h"
#include "models/transformer.h"

static const struct variant {
    const char *name;
    int layers;
    int64_t hidden, heads;
} variants[] = {
    { "gpt2_tiny", 2, 128, 2 },
    { "gpt2", 12, 768, 12 },
};
enum { VOCABULARY = 50257, POSITIONS = 1024 };
static const double EPSILON = 1e-5;

/* x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) */
static const char *gelu(tl_onnx_build *b, const char *at, const char *x)
{
    const char *y = TL_NODE_AT("Pow", "Pow", x, tl_build_constant_float(b, TL_AT("Constant"), 3));
    y = TL_NODE_AT("Mul", "Mul", y, tl_build_constant_float(b, TL_AT("Constant_1"), 0.044715));
    y = TL_NODE_AT("Add", "Add", x, y);
    y = TL_NODE_AT("Mul", "Mul_1", y,
                   tl_build_constant_float(b, TL_AT("Constant_2"), sqrt(2 / 3.141592653589793)));
    y = TL_NODE_AT("Tanh", "Tanh", y);
    y = TL_NODE_AT("Add", "Add_1", y, tl_build_constant_float(b, TL_AT("Constant_3"), 1));
    const char *half =
        TL_NODE_AT("Mul", "Mul_2", x, tl_build_constant_float(b, TL_AT("Constant_4"), 0.5));
    return TL_NODE_AT("Mul", "Mul_3", half, y);
}

/* bool[1, 1, tokens, tokens], true where the column is not behind the row: cut from the one for all positions. */
static const char *causal_mask(tl_onnx_build *b, const char *at, const char *ids)
{
    const char *first = tl_build_constant_ints(b, TL_AT("Constant"), TL_DIMS(0, 0));
    const char *axes = tl_build_constant_ints(b, TL_AT("Constant_1"), TL_DIMS(2, 3));
    const char *tokens = tl_build_dimension(b, TL_AT("tokens"), ids, 1);
    const char *end = TL_NODE_AT("Concat", "Concat", tokens, tokens);
    tl_build_int(b, "axis", 0);
    uint8_t *triangle = calloc((size_t)POSITIONS * POSITIONS, 1);
    if (triangle == NULL)
        return tl_onnx_build_fail(b);
    for (int i = 0; i < POSITIONS; i++)
        memset(triangle + (size_t)i * POSITIONS, 1, (size_t)i + 1);
    const char *all =
        tl_build_weight(b, TL_AT("bias"), TL_BOOL, TL_DIMS(1, 1, POSITIONS, POSITIONS), triangle);
    free(triangle);
    return TL_NODE_AT("Slice", "Slice", all, first, end, axes);
}

/* Queries, keys and values come from one dense layer. */
static const char *attention(tl_onnx_build *b, const char *at, const char *x, const char *mask,
                             const struct variant *v)
{
    int64_t h = v->hidden;
    x = tl_build_dense(b, TL_AT("c_attn"), x, h, 3 * h);
    const char *q = TL_NODE_AT("Split", "Split", x,
                               tl_build_constant_ints(b, TL_AT("sizes"), TL_DIMS(h, h, h)));
    tl_build_int(b, "axis", 2);
    const char *k = tl_build_more(b), *w = tl_build_more(b);
    q = tl_build_split_heads(b, TL_AT("query_heads"), q, h, v->heads, false);
    k = tl_build_split_heads(b, TL_AT("key_heads"), k, h, v->heads, true);
    w = tl_build_split_heads(b, TL_AT("value_heads"), w, h, v->heads, false);
    x = tl_build_attend(b, at, q, k, w, h, v->heads, (tl_attention_mask){ .kept = mask });
    return tl_build_dense(b, TL_AT("c_proj"), x, h, h);
}

static const char *decoder_layer(tl_onnx_build *b, const char *at, const char *x, const char *mask,
                                 const struct variant *v)
{
    int64_t h = v->hidden;
    const char *y = tl_build_layer_norm(b, TL_AT("ln_1"), x, h, EPSILON);
    y = attention(b, TL_AT("attn"), y, mask, v);
    x = TL_NODE_AT("Add", "Add", x, y);
    y = tl_build_layer_norm(b, TL_AT("ln_2"), x, h, EPSILON);
    y = tl_build_dense(b, TL_AT("mlp/c_fc"), y, h, 4 * h);
    y = gelu(b, TL_AT("mlp/act"), y);
    y = tl_build_dense(b, TL_AT("mlp/c_proj"), y, 4 * h, h);
    return TL_NODE_AT("Add", "Add_1", x, y);
}

void tl_zoo_gpt2(tl_onnx_build *b, const char *name, const tl_zoo_size *size)
{
    const struct variant *v = variants;
    const char *at = "transformer";
    while (strcmp(v->name, name) != 0)
        v++;
    const char *ids = tl_build_input(b, "input_ids", TL_I64, TL_DIMS(size->batch, size->length));
    /* so that a logit's variance is about 1 */
    const char *words = tl_build_normal(b, TL_AT("wte.weight"), 0, sqrt(1.0 / (double)v->hidden),
                                        TL_DIMS(VOCABULARY, v->hidden));
    const char *x = TL_NODE_AT("Gather", "wte/Gather", words, ids);
    const char *places = tl_build_positions(b, TL_AT("wpe"), ids, POSITIONS, v->hidden);
    x = TL_NODE_AT("Add", "Add", x, places);
    const char *mask = causal_mask(b, TL_AT("mask"), ids);
    for (int i = 0; i < v->layers; i++)
        x = decoder_layer(b, tl_build_name(b, "%s/h.%d", at, i), x, mask, v);
    x = tl_build_layer_norm(b, TL_AT("ln_f"), x, v->hidden, EPSILON);
    const char *head = tl_build_node(b, "Transpose", "lm_head/Transpose", TL_NAMES(words));
    tl_build_ints(b, "perm", TL_DIMS(1, 0));
    tl_build_node(b, "MatMul", "lm_head/MatMul", TL_NAMES(x, head));
    x = tl_build_rename(b, "logits");
    tl_build_output(b, x, TL_F32, TL_DIMS(size->batch, size->length, VOCABULARY));
}
