/* frontend/graph/recognize_softmax.c: softmax back from its pieces.
 *
 *     e = Exp(x - ReduceMax(x));  e / ReduceSum(e)  ->  Softmax(x) {axis}        also without the maximum */
#include "frontend/graph/graph_passes.h"
#include "frontend/node/graph_questions.h"

/* The one axis that n reduces and keeps; -1 when it is not so. */
static int only_axis(const tl_node *n)
{
    const int64_t *axes;
    if (n == NULL || tl_attr_int(n, "keepdims", 1) == 0 || tl_attr_ints(n, "axes", &axes) != 1)
        return -1;
    return (int)axes[0];
}

static void recognize(tl_graph *g, tl_node *division)
{
    tl_value *e = division->inputs[0];
    tl_node *power = tl_producer(e, TL_OP_EXP);
    tl_node *sum = tl_producer(division->inputs[1], TL_OP_REDUCE_SUM);
    int axis = only_axis(sum);
    if (power == NULL || axis < 0 || sum->inputs[0] != e)
        return;
    tl_value *x = power->inputs[0];
    tl_node *shift = tl_producer(x, TL_OP_SUB);
    tl_node *most = shift != NULL ? tl_producer(shift->inputs[1], TL_OP_REDUCE_MAX) : NULL;
    if (only_axis(most) == axis && most->inputs[0] == shift->inputs[0])
        x = shift->inputs[0];
    tl_node *softmax = tl_replace_node(g, division->outputs[0], TL_OP_SOFTMAX, 1, &x);
    tl_attr_set_int(g, softmax, "axis", axis);
}

tl_status tl_recognize_softmax(tl_graph *g, tl_diag *diag)
{
    (void)diag;
    int count = g->node_count;
    for (int i = 0; i < count; i++)
        if (!g->nodes[i]->dead && g->nodes[i]->op == TL_OP_DIV)
            recognize(g, g->nodes[i]);
    return TL_OK;
}
