/* models/lstm.c: a stack of LSTM layers (Hochreiter, Schmidhuber: Long Short-Term Memory, 1997), written out step by step
 * in elementary nodes; weights as PyTorch names them, its gates in the order in, forget, cell, out. */
#include <math.h>
#include <stdlib.h>
#include "models/builders.h"

enum { LAYERS = 2, FEATURES = 128, HIDDEN = 256 };

typedef struct {
    const char *hidden, *cell; /* [batch, HIDDEN]; NULL before the first step: zeros */
} state;

static const char *normal(tl_onnx_build *b, const char *kind, int layer, double deviation,
                          tl_build_list dims)
{
    return tl_build_normal(b, tl_build_name(b, "lstm.%s_l%d", kind, layer), 0, deviation, dims);
}

/* One step of one layer; `gates` [batch, 4 * HIDDEN] has the input's part of the gates already. */
static state step(tl_onnx_build *b, const char *at, const char *gates, const char *recurrent,
                  state s)
{
#define NODE(op, name, ...) \
    tl_build_node(b, op, tl_build_name(b, "%s/%s", at, name), TL_NAMES(__VA_ARGS__))
    if (s.hidden != NULL)
        gates = NODE("Add", "Add", gates, NODE("MatMul", "MatMul", s.hidden, recurrent));
    const char *in = NODE("Split", "Split", gates,
                          tl_build_constant_ints(b, tl_build_name(b, "%s/sizes", at),
                                                 TL_DIMS(HIDDEN, HIDDEN, HIDDEN, HIDDEN)));
    tl_build_int(b, "axis", 1);
    const char *forget = tl_build_more(b), *cell = tl_build_more(b), *out = tl_build_more(b);
    in = NODE("Sigmoid", "in", in);
    cell = NODE("Tanh", "cell", cell);
    out = NODE("Sigmoid", "out", out);
    cell = NODE("Mul", "new", in, cell);
    if (s.cell != NULL)
        cell = NODE("Add", "sum", NODE("Mul", "kept", NODE("Sigmoid", "forget", forget), s.cell),
                    cell);
    return (state){ .hidden = NODE("Mul", "hidden", out, NODE("Tanh", "Tanh", cell)),
                    .cell = cell };
#undef NODE
}

/* [batch, HIDDEN] each, along a new axis. */
static const char *stack(tl_onnx_build *b, const char *name, const char **parts, int64_t count,
                         int64_t axis)
{
    for (int64_t i = 0; i < count; i++) {
        const char *at = tl_build_name(b, "%s/Unsqueeze_%lld", name, (long long)i);
        const char *axes =
            tl_build_constant_ints(b, tl_build_name(b, "%s/axes", at), TL_DIMS(axis));
        parts[i] = tl_build_node(b, "Unsqueeze", at, TL_NAMES(parts[i], axes));
    }
    const char *y = tl_build_node(b, "Concat", name, (tl_build_names){ (int)count, parts });
    tl_build_int(b, "axis", axis);
    return y;
}

/* All steps of one layer: [batch, steps, in] to [batch, steps, HIDDEN]. The input's part of the gates is one product for
 * all steps. `outputs` has room for as many as there are steps. */
static const char *layer(tl_onnx_build *b, int number, const char *x, int64_t in, int64_t steps,
                         const char **outputs, state *last)
{
    const char *at = tl_build_name(b, "layer%d", number);
    double deviation = sqrt(1.0 / HIDDEN);
    const char *weight =
        normal(b, "weight_ih", number, sqrt(1.0 / (double)in), TL_DIMS(in, 4 * HIDDEN));
    const char *recurrent = normal(b, "weight_hh", number, deviation, TL_DIMS(HIDDEN, 4 * HIDDEN));
    const char *bias = normal(b, "bias", number, 0.2, TL_DIMS(4 * HIDDEN));
    const char *gates =
        tl_build_node(b, "MatMul", tl_build_name(b, "%s/MatMul", at), TL_NAMES(x, weight));
    gates = tl_build_node(b, "Add", tl_build_name(b, "%s/Add", at), TL_NAMES(gates, bias));
    state s = { NULL, NULL };
    for (int64_t t = 0; t < steps; t++) {
        const char *now = tl_build_name(b, "%s/step%lld", at, (long long)t);
        const char *index = tl_build_constant_int(b, tl_build_name(b, "%s/index", now), t);
        const char *part =
            tl_build_node(b, "Gather", tl_build_name(b, "%s/Gather", now), TL_NAMES(gates, index));
        tl_build_int(b, "axis", 1);
        s = step(b, now, part, recurrent, s);
        outputs[t] = s.hidden;
    }
    *last = s;
    return stack(b, tl_build_name(b, "%s/Concat", at), outputs, steps, 1);
}

void tl_zoo_lstm(tl_onnx_build *b, const char *name, const tl_zoo_size *size)
{
    const char *hidden[LAYERS], *cells[LAYERS];
    const char **outputs = calloc((size_t)size->length, sizeof *outputs);
    (void)name;
    if (outputs == NULL) {
        tl_onnx_build_fail(b);
        return;
    }
    const char *x =
        tl_build_input(b, "input", TL_F32, TL_DIMS(size->batch, size->length, FEATURES));
    for (int i = 0; i < LAYERS; i++) {
        state last;
        x = layer(b, i, x, i == 0 ? FEATURES : HIDDEN, size->length, outputs, &last);
        hidden[i] = last.hidden;
        cells[i] = last.cell;
    }
    x = tl_build_rename(b, "output");
    tl_build_output(b, x, TL_F32, TL_DIMS(size->batch, size->length, HIDDEN));
    stack(b, "h_n", hidden, LAYERS, 0);
    x = tl_build_rename(b, "h_n");
    tl_build_output(b, x, TL_F32, TL_DIMS(LAYERS, size->batch, HIDDEN));
    stack(b, "c_n", cells, LAYERS, 0);
    x = tl_build_rename(b, "c_n");
    tl_build_output(b, x, TL_F32, TL_DIMS(LAYERS, size->batch, HIDDEN));
    free(outputs);
}
