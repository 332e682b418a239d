/* frontend/graph/pad_channels.c: channels up to whole vectors.
 *
 *     x = Conv(a, v[72, 24, 1, 1])               x' = Conv(a, v'[80, 24, 1, 1])                16 lanes
 *     y = Conv(x, w[72, 1, 3, 3], group 72)  ->  y' = Conv(x', w'[80, 1, 3, 3], group 80)
 *     z = Conv(y, u[24, 72, 1, 1])               z = Conv(y', u'[24, 80, 1, 1])
 *
 * Depthwise convolutions work on each channel alone: where channels end within a vector they would waste lanes or read
 * vectors across cache lines. Where every reader and writer can do so, their values get as many channels as fill the last
 * vector. Weights and biases of the channels added are zero, so that nobody who sums over channels sees them, whatever an
 * activation between makes of a zero. Other values keep theirs: it is cheaper to read an uneven row (assign_blocks.c)
 * than to sum over zeros.
 *
 * Values whose channels are the same ones (through elementwise operators, pools and depthwise convolutions) change
 * together or not at all. A convolution with constant weights may change on both sides; operators that look at channels
 * in another way (Concat, Reshape, ...), constants that differ from channel to channel, graph inputs and outputs
 * keep theirs. Sums are the same bit for bit, except that an infinity times an added zero is NaN: not for strict numerics. */
#include <string.h>
#include "frontend/graph/graph_passes.h"
#include "frontend/node/graph_questions.h"
#include "runtime/base/checked.h"

typedef struct {
    tl_graph *graph;
    int lanes;
    int *parent; /* of each value, towards the one that stands for its set */
    /* A member keeps its channels; of the one that stands for the set once all nodes were seen. */
    bool *fixed;
    bool *depthwise; /* a depthwise convolution reads and writes members */
} state;

static int find(const state *s, const tl_value *v)
{
    int i = v->index;
    while (s->parent[i] != i)
        i = s->parent[i];
    return i;
}

static void unite(state *s, const tl_value *a, const tl_value *b)
{
    int from = find(s, a), to = find(s, b);
    s->parent[from] = to;
    s->fixed[to] = s->fixed[to] || s->fixed[from];
    s->depthwise[to] = s->depthwise[to] || s->depthwise[from];
}

static void fix(state *s, const tl_value *v)
{
    if (v != NULL)
        s->fixed[find(s, v)] = true;
}

static void fix_all(state *s, const tl_node *n)
{
    for (int i = 0; i < n->input_count; i++)
        fix(s, n->inputs[i]);
    for (int i = 0; i < n->output_count; i++)
        fix(s, n->outputs[i]);
}

static bool is_number(const tl_value *v)
{
    return v == NULL || (v->data != NULL && tl_shape_elements(&v->shape) == 1);
}

static int64_t channels_of(const tl_value *v)
{
    return v->shape.dims[1].extent;
}

static bool is_depthwise(const tl_node *n)
{
    const tl_value *w = n->inputs[1];
    return tl_attr_int(n, "group", 1) == channels_of(n->inputs[0]) && channels_of(w) == 1 &&
           w->shape.dims[0].extent == channels_of(n->inputs[0]);
}

static void see_conv(state *s, const tl_node *n)
{
    const tl_value *x = n->inputs[0], *w = n->inputs[1];
    bool constant = w->data != NULL && x->shape.rank == 4;
    if (n->input_count > 2 && n->inputs[2] != NULL)
        constant = constant && n->inputs[2]->data != NULL;
    if (!constant)
        fix_all(s, n);
    else if (is_depthwise(n)) {
        unite(s, x, n->outputs[0]);
        s->depthwise[find(s, x)] = true;
    } else if (tl_attr_int(n, "group", 1) != 1)
        fix_all(s, n);
}

/* An operator whose operands are the same channels as its result, or single numbers. */
static void see_pointwise(state *s, const tl_node *n)
{
    const tl_value *y = n->outputs[0];
    for (int i = 0; i < n->input_count; i++) {
        const tl_value *v = n->inputs[i];
        if (is_number(v))
            continue;
        if (v->shape.rank != 4 || y->shape.rank != 4 || channels_of(v) != channels_of(y)) {
            fix_all(s, n);
            return;
        }
    }
    for (int i = 0; i < n->input_count; i++)
        if (!is_number(n->inputs[i]))
            unite(s, n->inputs[i], y);
}

/* Whether the node makes numbers of zeros, as far as it is up to it: what is no number stays one when it is times zero. */
static bool makes_numbers(const tl_node *n)
{
    double divisor;
    switch (tl_operators[n->op].zero) {
    case TL_ZERO_STAYS:
    case TL_ZERO_FINITE:
        return true;
    case TL_ZERO_BY_NUMBER: /* 0/0 */
        return is_number(n->inputs[1]) && tl_uniform(n->inputs[1], &divisor) && divisor != 0;
    case TL_ZERO_ANY:
        break;
    }
    return false;
}

static void see(state *s, const tl_node *n)
{
    bool keeps_channels = tl_is_elementwise(n) || tl_operators[n->op].block == tl_block_kept;
    if (n->op == TL_OP_CONV)
        see_conv(s, n);
    else if (keeps_channels && makes_numbers(n))
        see_pointwise(s, n);
    else
        fix_all(s, n);
}

/* The channels that the value gets; as many as it has where it stays. */
static int64_t padded(const state *s, const tl_value *v)
{
    int set = find(s, v);
    int64_t channels = channels_of(v);
    if (s->fixed[set] || !s->depthwise[set] || channels <= s->lanes)
        return channels;
    return tl_ceildiv(channels, s->lanes) * s->lanes;
}

/* The constant with zeros behind its first two axes. */
static tl_value *pad_constant(tl_graph *g, const tl_value *v, int64_t first, int64_t second)
{
    tl_shape shape = v->shape;
    size_t element = tl_dtype_size(v->dtype);
    int64_t rows = v->shape.dims[0].extent, inner = 1, columns = 1;
    for (int i = 2; i < v->shape.rank; i++)
        inner *= v->shape.dims[i].extent;
    shape.dims[0].extent = first;
    if (v->shape.rank > 1) {
        columns = v->shape.dims[1].extent;
        shape.dims[1].extent = second;
    }
    size_t row = (size_t)(columns * inner) * element, new_row = (size_t)(second * inner) * element;
    char *data = tl_arena_alloc(g->arena, (size_t)first * new_row, 64);
    for (int64_t i = 0; i < rows; i++)
        memcpy(data + (size_t)i * new_row, (const char *)v->data + (size_t)i * row, row);
    tl_graph_rest(g, v);
    return tl_graph_constant(g, tl_arena_format(g->arena, "%s.padded", v->name), v->dtype, &shape,
                             data);
}

static void pad_conv(tl_graph *g, tl_node *n, int64_t in, int64_t out)
{
    const tl_value *w = n->inputs[1];
    bool depthwise = is_depthwise(n);
    int64_t second = depthwise ? 1 : in;
    if (out != w->shape.dims[0].extent || second != channels_of(w))
        tl_node_set_input(n, 1, pad_constant(g, w, out, second));
    if (out != w->shape.dims[0].extent && n->input_count > 2 && n->inputs[2] != NULL)
        tl_node_set_input(n, 2, pad_constant(g, n->inputs[2], out, 1));
    if (depthwise)
        tl_attr_set_int(g, n, "group", out);
}

tl_status tl_pad_channels(tl_graph *g, const tl_target *target, tl_diag *diag)
{
    (void)diag;
    state s = { .graph = g, .lanes = tl_target_lanes(target, TL_F32) };
    if (tl_target_is_gpu(target) || s.lanes < 2)
        return TL_OK;
    int count = g->value_count;
    s.parent = TL_NEW_ARRAY(g->arena, int, count);
    s.fixed = TL_NEW_ARRAY(g->arena, bool, count);
    s.depthwise = TL_NEW_ARRAY(g->arena, bool, count);
    for (int i = 0; i < count; i++) {
        const tl_value *v = g->values[i];
        s.parent[i] = i;
        s.fixed[i] = v->is_input || v->is_output || v->data != NULL || v->shape.rank != 4 ||
                     v->dtype != TL_F32 || !tl_shape_is_static(&v->shape);
    }
    for (int i = 0; i < g->node_count; i++)
        see(&s, g->nodes[i]);

    int64_t *channels = TL_NEW_ARRAY(g->arena, int64_t, count); /* 0: not one of ours */
    for (int i = 0; i < count; i++)
        if (!s.fixed[find(&s, g->values[i])])
            channels[i] = padded(&s, g->values[i]);
    for (int i = 0; i < g->node_count; i++) {
        tl_node *n = g->nodes[i];
        if (n->op != TL_OP_CONV || n->inputs[0]->shape.rank != 4 ||
            (tl_attr_int(n, "group", 1) != 1 && !is_depthwise(n)))
            continue;
        int64_t in = channels[n->inputs[0]->index], out = channels[n->outputs[0]->index];
        if (in != 0 || out != 0)
            pad_conv(g, n, in != 0 ? in : channels_of(n->inputs[0]),
                     out != 0 ? out : channels_of(n->outputs[0]));
    }
    for (int i = 0; i < count; i++)
        if (channels[i] != 0)
            g->values[i]->shape.dims[1].extent = channels[i];
    return TL_OK;
}
