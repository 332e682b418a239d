/* frontend/graph/scale_channels.c: a depthwise convolution of one tap is a product.
 *
 *     Conv(x, w[C, 1, 1, 1], b) of C groups  ->  Add(Mul(x, w[C, 1, 1]), b[C, 1, 1])
 *
 * Written as a convolution it would be a kernel of its own, of sums with one term; a product goes with what stands around it. A
 * sum of one term begins with zero, so that a zero may have another sign: not for strict numerics. */
#include "frontend/graph/graph_passes.h"
#include "frontend/node/graph_questions.h"

/* Whether each element of the result comes from one of the input, at the same place. */
static bool has_one_tap(const tl_node *conv)
{
    const tl_shape *w = &conv->inputs[1]->shape;
    for (int i = 1; i < w->rank; i++)
        if (w->dims[i].extent != 1)
            return false;
    return w->dims[0].extent == tl_attr_int(conv, "group", 1) &&
           tl_attr_all_are(conv, "strides", 1) && tl_attr_all_are(conv, "pads", 0) &&
           tl_same_shape(conv->inputs[0], conv->outputs[0]) &&
           conv->inputs[0]->dtype == conv->outputs[0]->dtype;
}

/* The constant, one number a channel, as an operand of what has `rank` axes. */
static tl_value *channel_operand(tl_graph *g, const tl_value *v, int rank)
{
    int64_t extents[TL_MAX_RANK] = { v->shape.dims[0].extent };
    for (int i = 1; i < rank - 1; i++)
        extents[i] = 1;
    tl_shape shape = tl_shape_of(rank - 1, extents);
    return tl_graph_constant(g, tl_arena_format(g->arena, "%s.channels", v->name), v->dtype, &shape,
                             v->data);
}

static void scale(tl_graph *g, tl_node *conv)
{
    tl_value *w = conv->inputs[1], *y = conv->outputs[0];
    tl_value *bias = conv->input_count > 2 ? conv->inputs[2] : NULL;
    const int rank = y->shape.rank;
    if (w->data == NULL || (bias != NULL && bias->data == NULL) || !has_one_tap(conv))
        return;
    tl_value *factors[2] = { conv->inputs[0], channel_operand(g, w, rank) };
    const char *name = conv->name;
    if (bias == NULL) {
        tl_replace_node(g, y, TL_OP_MUL, 2, factors);
        return;
    }
    tl_value *product =
        tl_graph_value(g, tl_arena_format(g->arena, "%s.scaled", name), y->dtype, &y->shape);
    tl_graph_node(g, TL_OP_MUL, name, 2, factors, 1, &product);
    tl_value *terms[2] = { product, channel_operand(g, bias, rank) };
    tl_replace_node(g, y, TL_OP_ADD, 2, terms);
}

tl_status tl_scale_channels(tl_graph *g, tl_diag *diag)
{
    (void)diag;
    const int count = g->node_count;
    for (int i = 0; i < count; i++)
        if (!g->nodes[i]->dead && g->nodes[i]->op == TL_OP_CONV)
            scale(g, g->nodes[i]);
    return TL_OK;
}
