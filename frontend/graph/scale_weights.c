/* frontend/graph/scale_weights.c: a factor for each channel goes to the weights that read it, where these are fewer.
 *
 *     Conv(Mul(x[1, C, H, W], s[1, C, 1, 1]), w)  ->  Conv(x, Mul(w[O, C, kh, kw], s[1, C, 1, 1]))
 *
 * As squeeze-and-excite has it: the product with all of x would be written and read once more. The weights are scaled, and
 * packed, in every run, which is only cheaper where x has many times their elements. Products are rounded in another
 * order: not for strict numerics. */
#include "frontend/graph/graph_passes.h"
#include "frontend/node/graph_questions.h"

enum { LEAST_GAIN = 8 }; /* elements of x for one of w: a weight is scaled, transposed and packed */

static bool is_factor(const tl_value *s, const tl_value *x)
{
    return s->data == NULL && s->shape.rank == 4 && x->shape.rank == 4 &&
           s->shape.dims[0].extent == 1 && x->shape.dims[0].extent == 1 &&
           s->shape.dims[1].extent == x->shape.dims[1].extent && s->shape.dims[2].extent == 1 &&
           s->shape.dims[3].extent == 1;
}

static void scale(tl_graph *g, tl_node *conv)
{
    tl_value *w = conv->inputs[1];
    tl_node *mul = tl_sole_producer(conv->inputs[0], TL_OP_MUL);
    if (mul == NULL || w->data == NULL || tl_attr_int(conv, "group", 1) != 1)
        return;
    for (int i = 0; i < 2; i++) {
        tl_value *x = mul->inputs[i], *s = mul->inputs[1 - i];
        if (!is_factor(s, x) || !tl_same_shape(x, mul->outputs[0]) || x->data != NULL ||
            tl_shape_elements(&x->shape) < LEAST_GAIN * tl_shape_elements(&w->shape))
            continue;
        tl_value *scaled = tl_graph_value(g, tl_arena_format(g->arena, "%s.scaled", mul->name),
                                          w->dtype, &w->shape);
        tl_value *factors[2] = { w, s };
        tl_graph_node(g, TL_OP_MUL, mul->name, 2, factors, 1, &scaled);
        tl_node_set_input(conv, 0, x);
        tl_node_set_input(conv, 1, scaled);
        return;
    }
}

tl_status tl_scale_weights(tl_graph *g, tl_diag *diag)
{
    (void)diag;
    int count = g->node_count;
    for (int i = 0; i < count; i++)
        if (g->nodes[i]->op == TL_OP_CONV)
            scale(g, g->nodes[i]);
    return TL_OK;
}
