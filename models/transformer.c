/* models/transformer.c: the layers of which transformers are made. */
#include "models/transformer.h"
#include <assert.h>
#include <math.h>

static const double LOWEST = -3.4028234663852886e38;

const char *tl_build_layer_norm(tl_onnx_build *b, const char *at, const char *x, int64_t hidden,
                                double epsilon)
{
    const char *weight = tl_build_normal(b, TL_AT("weight"), 1, 0.05, TL_DIMS(hidden));
    const char *bias = tl_build_normal(b, TL_AT("bias"), 0, 0.05, TL_DIMS(hidden));
    const char *mean = TL_NODE_AT("ReduceMean", "ReduceMean", x);
    tl_build_ints(b, "axes", TL_DIMS(-1));
    const char *centred = TL_NODE_AT("Sub", "Sub", x, mean);
    const char *two = tl_build_constant_float(b, TL_AT("Constant"), 2);
    const char *square = TL_NODE_AT("Pow", "Pow", centred, two);
    const char *variance = TL_NODE_AT("ReduceMean", "ReduceMean_1", square);
    tl_build_ints(b, "axes", TL_DIMS(-1));
    const char *least = tl_build_constant_float(b, TL_AT("Constant_1"), epsilon);
    const char *sum = TL_NODE_AT("Add", "Add", variance, least);
    const char *root = TL_NODE_AT("Sqrt", "Sqrt", sum);
    const char *y = TL_NODE_AT("Div", "Div", centred, root);
    y = TL_NODE_AT("Mul", "Mul", y, weight);
    return TL_NODE_AT("Add", "Add_1", y, bias);
}

const char *tl_build_dense(tl_onnx_build *b, const char *at, const char *x, int64_t in, int64_t out)
{
    const char *weight =
        tl_build_normal(b, TL_AT("weight"), 0, sqrt(1.0 / (double)in), TL_DIMS(in, out));
    const char *bias = tl_build_normal(b, TL_AT("bias"), 0, 0.05, TL_DIMS(out));
    const char *y = TL_NODE_AT("MatMul", "MatMul", x, weight);
    return TL_NODE_AT("Add", "Add", bias, y);
}

const char *tl_build_gelu(tl_onnx_build *b, const char *at, const char *x)
{
    const char *y =
        TL_NODE_AT("Div", "Div", x, tl_build_constant_float(b, TL_AT("Constant"), sqrt(2)));
    y = TL_NODE_AT("Erf", "Erf", y);
    y = TL_NODE_AT("Add", "Add", y, tl_build_constant_float(b, TL_AT("Constant_1"), 1));
    y = TL_NODE_AT("Mul", "Mul", x, y);
    return TL_NODE_AT("Mul", "Mul_1", y, tl_build_constant_float(b, TL_AT("Constant_2"), 0.5));
}

const char *tl_build_dimension(tl_onnx_build *b, const char *at, const char *like, int64_t axis)
{
    const char *shape = TL_NODE_AT("Shape", "Shape", like);
    const char *index = tl_build_constant_int(b, TL_AT("Index"), axis);
    const char *extent = TL_NODE_AT("Gather", "Gather", shape, index);
    tl_build_int(b, "axis", 0);
    return TL_NODE_AT("Unsqueeze", "Unsqueeze", extent,
                      tl_build_constant_ints(b, TL_AT("Axes"), TL_DIMS(0)));
}

const char *tl_build_positions(tl_onnx_build *b, const char *at, const char *ids, int64_t count,
                               int64_t hidden)
{
    enum { MOST = 1024 };
    int64_t numbers[MOST];
    assert(count <= MOST);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = i;
    const char *places =
        tl_build_normal(b, TL_AT("position_embeddings.weight"), 0, 0.2, TL_DIMS(count, hidden));
    const char *all = tl_build_weight(b, TL_AT("position_ids"), TL_I64, TL_DIMS(1, count), numbers);
    const char *end = tl_build_dimension(b, TL_AT("tokens"), ids, 1);
    const char *used =
        TL_NODE_AT("Slice", "Slice", all, tl_build_constant_ints(b, TL_AT("Constant"), TL_DIMS(0)),
                   end, tl_build_constant_ints(b, TL_AT("Constant_1"), TL_DIMS(1)));
    return TL_NODE_AT("Gather", "position_embeddings/Gather", places, used);
}

/* Reshape to [batch of `like`, tokens of `like`, tail...]. */
static const char *reshape(tl_onnx_build *b, const char *at, const char *x, const char *like,
                           tl_build_list tail)
{
    const char *batch = tl_build_dimension(b, TL_AT("batch"), like, 0);
    const char *tokens = tl_build_dimension(b, TL_AT("tokens"), like, 1);
    const char *rest = tl_build_constant_ints(b, TL_AT("Constant"), tail);
    const char *shape = TL_NODE_AT("Concat", "Concat", batch, tokens, rest);
    tl_build_int(b, "axis", 0);
    return TL_NODE_AT("Reshape", "Reshape", x, shape);
}

const char *tl_build_split_heads(tl_onnx_build *b, const char *at, const char *x, int64_t hidden,
                                 int64_t heads, bool keys)
{
    x = reshape(b, at, x, x, TL_DIMS(heads, hidden / heads));
    x = TL_NODE_AT("Transpose", "Transpose", x);
    if (keys)
        tl_build_ints(b, "perm", TL_DIMS(0, 2, 3, 1));
    else
        tl_build_ints(b, "perm", TL_DIMS(0, 2, 1, 3));
    return x;
}

const char *tl_build_attend(tl_onnx_build *b, const char *at, const char *q, const char *k,
                            const char *w, int64_t hidden, int64_t heads, tl_attention_mask mask)
{
    const char *scores = TL_NODE_AT("MatMul", "MatMul", q, k);
    double scale = sqrt((double)hidden / (double)heads);
    scores = TL_NODE_AT("Div", "Div", scores, tl_build_constant_float(b, TL_AT("Constant"), scale));
    if (mask.added != NULL)
        scores = TL_NODE_AT("Add", "Add", scores, mask.added);
    if (mask.kept != NULL)
        scores = TL_NODE_AT("Where", "Where", mask.kept, scores,
                            tl_build_constant_float(b, TL_AT("Constant_1"), LOWEST));
    scores = TL_NODE_AT("Softmax", "Softmax", scores);
    tl_build_int(b, "axis", -1);
    const char *y = TL_NODE_AT("MatMul", "MatMul_1", scores, w);
    y = TL_NODE_AT("Transpose", "Transpose", y);
    tl_build_ints(b, "perm", TL_DIMS(0, 2, 1, 3));
    return reshape(b, TL_AT("merge"), y, y, TL_DIMS(hidden));
}

const char *tl_build_self_attention(tl_onnx_build *b, const char *at, const char *x, int64_t hidden,
                                    int64_t heads, tl_attention_mask mask)
{
    static const char *const roles[] = { "query", "key", "value" };
    const char *parts[3];
    for (int i = 0; i < 3; i++) {
        parts[i] = tl_build_dense(b, TL_AT(roles[i]), x, hidden, hidden);
        parts[i] = tl_build_split_heads(b, tl_build_name(b, "%s/%s_heads", at, roles[i]), parts[i],
                                        hidden, heads, i == 1);
    }
    return tl_build_attend(b, at, parts[0], parts[1], parts[2], hidden, heads, mask);
}
