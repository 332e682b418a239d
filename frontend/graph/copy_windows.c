/* frontend/graph/copy_windows.c: each reader of a window gets a Slice of its own, so that it can take it into its kernel and
 * read the larger value where it lies (partition.c). */
#include "frontend/graph/graph_passes.h"
#include "frontend/lower/lower.h"
#include "frontend/node/graph_questions.h"

static void copy(tl_graph *g, const tl_node *slice, tl_node *reader, int input)
{
    tl_value *y = slice->outputs[0];
    tl_value *own = tl_graph_value(g, y->name, y->dtype, &y->shape);
    tl_node *n = tl_graph_node(g, TL_OP_SLICE, slice->name, 1, slice->inputs, 1, &own);
    n->attrs = slice->attrs;
    n->attr_count = slice->attr_count;
    tl_node_set_input(reader, input, own);
}

tl_status tl_copy_windows(tl_graph *g, tl_diag *diag)
{
    (void)diag;
    int count = g->node_count;
    for (int i = 0; i < count; i++) {
        tl_node *n = g->nodes[i];
        for (int k = 0; k < n->input_count; k++) {
            tl_node *slice = tl_producer(n->inputs[k], TL_OP_SLICE);
            if (slice != NULL && tl_is_window(slice) && tl_graph_users(n->inputs[k]) > 1 &&
                ((tl_operators[n->op].takes & TL_TAKES_WINDOWS) != 0 || tl_is_elementwise(n)))
                copy(g, slice, n, k);
        }
    }
    return TL_OK;
}
