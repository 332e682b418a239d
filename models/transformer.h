/* models/transformer.h: the layers of which transformers are made, as the elementary nodes that exporters leave.
 *
 * `at` is where in the network a layer stands: "encoder/layer.3/output"; names of nodes and weights begin with it. */
#ifndef TL_MODELS_TRANSFORMER_H
#define TL_MODELS_TRANSFORMER_H
#include "models/zoo.h"

/* A node, and a name, below `at`. */
#define TL_AT(name)               tl_build_name(b, "%s/%s", at, name)
#define TL_NODE_AT(op, name, ...) tl_build_node(b, op, TL_AT(name), TL_NAMES(__VA_ARGS__))

/* (x - mean) / sqrt(mean((x - mean)^2) + epsilon) * weight + bias over the last axis. */
const char *tl_build_layer_norm(tl_onnx_build *b, const char *at, const char *x, int64_t hidden,
                                double epsilon);
/* x * weight + bias, the weight stored as [in, out]. */
const char *tl_build_dense(tl_onnx_build *b, const char *at, const char *x, int64_t in,
                           int64_t out);
/* x / 2 * (1 + erf(x / sqrt(2))) */
const char *tl_build_gelu(tl_onnx_build *b, const char *at, const char *x);

/* One dimension of `like`'s shape as a list of one, the way exporters compute it. */
const char *tl_build_dimension(tl_onnx_build *b, const char *at, const char *like, int64_t axis);
/* A table of `count` learned positions, and its rows 0, 1, ... as many as `ids` has on axis 1. */
const char *tl_build_positions(tl_onnx_build *b, const char *at, const char *ids, int64_t count,
                               int64_t hidden);

/* [batch, tokens, hidden] as [batch, heads, tokens, hidden / heads], keys with the last two axes swapped. */
const char *tl_build_split_heads(tl_onnx_build *b, const char *at, const char *x, int64_t hidden,
                                 int64_t heads, bool keys);
/* What is done to the scores before the softmax; at most one is set. */
typedef struct {
    const char *added; /* broadcastable to [batch, heads, tokens, tokens] */
    const char *kept;  /* bool: scores where it is false become the lowest f32 */
} tl_attention_mask;
/* softmax(q k / sqrt(hidden / heads)) w of what tl_build_split_heads gave, as [batch, tokens, hidden]. */
const char *tl_build_attend(tl_onnx_build *b, const char *at, const char *q, const char *k,
                            const char *w, int64_t hidden, int64_t heads, tl_attention_mask mask);
/* Queries, keys and values by three dense layers, and attention. */
const char *tl_build_self_attention(tl_onnx_build *b, const char *at, const char *x, int64_t hidden,
                                    int64_t heads, tl_attention_mask mask);

#endif
