/* frontend/graph/fold_weights.c: weights that are computed from constants alone become constants, large ones as well.
 *
 *     Conv(x, Mul(const [514, 1, 512], const [512]))  ->  Conv(x, const [514, 1, 512])
 *
 * fold_constants leaves what has more than 64 K elements to the kernels: they compute a mask on the way faster than they
 * read it. The weights of a product are otherwise: constant they are packed once, when the model is loaded, computed they
 * are computed, and read as they lie, in every run. So are the filters of a resampler, of a transform with its window.
 * What this takes is bounded, for all weights of a graph together. */
#include "frontend/graph/graph_passes.h"
#include "frontend/node/fold_node.h"

enum {
    MOST_ELEMENTS = 1 << 20, /* of a weight, and of each value that it is made of */
    MOST_IN_ALL = 1 << 22,   /* of all of them together: they are interpreted */
};

/* What values are to the weights of the graph, by their indices. */
typedef struct {
    const tl_graph *graph;
    /* its elements depend on constants alone, and may be computed here */
    bool *is_constant;
    /* a weight is made of it */
    bool *is_wanted;
} walk;

static bool is_known(const walk *w, const tl_value *v)
{
    return v == NULL || v->data != NULL || w->is_constant[v->index];
}

static void find_constants(const walk *w)
{
    for (int i = 0; i < w->graph->node_count; i++) {
        const tl_node *n = w->graph->nodes[i];
        bool known = n->input_count > 0 && tl_node_folds_within(w->graph, n, MOST_ELEMENTS);
        for (int k = 0; known && k < n->input_count; k++)
            known = is_known(w, n->inputs[k]);
        if (known)
            w->is_constant[n->outputs[0]->index] = true;
    }
}

static bool multiplies(const tl_node *n)
{
    return n->op == TL_OP_CONV || n->op == TL_OP_MATMUL || n->op == TL_OP_GEMM;
}

/* The weights, then what they are made of, from the last node to the first. */
static void find_wanted(const walk *w)
{
    for (int i = w->graph->node_count - 1; i >= 0; i--) {
        const tl_node *n = w->graph->nodes[i];
        bool is_part =
            n->output_count == 1 && n->outputs[0] != NULL && w->is_wanted[n->outputs[0]->index];
        for (int k = 0; k < n->input_count; k++) {
            const tl_value *v = n->inputs[k];
            if (v != NULL && v->data == NULL && w->is_constant[v->index] &&
                (is_part || (multiplies(n) && k < 2)))
                w->is_wanted[v->index] = true;
        }
    }
}

tl_status tl_fold_weights(tl_graph *g, tl_diag *diag)
{
    walk w = { g, TL_NEW_ARRAY(g->arena, bool, g->value_count),
               TL_NEW_ARRAY(g->arena, bool, g->value_count) };
    int64_t elements = 0;
    find_constants(&w);
    find_wanted(&w);
    for (int i = 0; i < g->node_count; i++) {
        tl_node *n = g->nodes[i];
        if (n->output_count != 1 || n->outputs[0] == NULL || !w.is_wanted[n->outputs[0]->index])
            continue;
        elements += tl_shape_elements(&n->outputs[0]->shape);
        bool is_made = true; /* what it is made of may have been too much in all */
        for (int k = 0; k < n->input_count; k++)
            is_made &= n->inputs[k] == NULL || n->inputs[k]->data != NULL;
        if (!is_made || elements > MOST_IN_ALL)
            continue;
        TL_TRY(tl_check_constants(g, n, diag));
        TL_TRY(tl_fold_node(g, n, diag));
    }
    return TL_OK;
}
