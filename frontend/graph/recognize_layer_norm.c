/* frontend/graph/recognize_layer_norm.c: layer normalisation back from its pieces.
 *
 *     c = x - ReduceMean(x);  c / Sqrt(ReduceMean(c^2) + epsilon) * scale + bias
 *         ->  LayerNormalization(x, scale, bias) {axis, epsilon}
 *
 * The axes are the last ones; without a scale it is 1, the bias may be missing. */
#include "frontend/graph/graph_passes.h"
#include "frontend/node/graph_questions.h"

/* n = ReduceMean over the axes axis..rank-1, kept. */
static bool is_row_mean(const tl_node *n, int *axis)
{
    const int64_t *axes;
    if (n == NULL || tl_attr_int(n, "keepdims", 1) == 0)
        return false;
    int count = tl_attr_ints(n, "axes", &axes), rank = n->inputs[0]->shape.rank;
    for (int i = 0; i < count; i++)
        if (axes[i] != rank - count + i)
            return false;
    *axis = rank - count;
    return count > 0;
}

/* v = x - ReduceMean(x); gives x and the first axis. */
static tl_value *centred(const tl_value *v, int *axis)
{
    tl_node *sub = tl_producer(v, TL_OP_SUB);
    tl_node *mean = sub != NULL ? tl_producer(sub->inputs[1], TL_OP_REDUCE_MEAN) : NULL;
    return is_row_mean(mean, axis) && mean->inputs[0] == sub->inputs[0] ? sub->inputs[0] : NULL;
}

/* v = Sqrt(ReduceMean((x - mean)^2) + epsilon) over the axes `axis`.. */
static bool is_deviation(const tl_value *v, const tl_value *x, int axis, double *epsilon)
{
    tl_node *root = tl_producer(v, TL_OP_SQRT);
    tl_node *add = root != NULL ? tl_producer(root->inputs[0], TL_OP_ADD) : NULL;
    tl_product square;
    for (int i = 0; add != NULL && i < 2; i++) {
        tl_node *mean = tl_producer(add->inputs[i], TL_OP_REDUCE_MEAN);
        int own, centred_axis;
        if (tl_uniform(add->inputs[1 - i], epsilon) && is_row_mean(mean, &own) && own == axis &&
            tl_product_of(mean->inputs[0], &square) && square.scale == 1 && square.count == 2 &&
            square.factors[0] == square.factors[1] &&
            centred(square.factors[0], &centred_axis) == x && centred_axis == axis)
            return true;
    }
    return false;
}

/* A constant over the normalised axes only. */
static bool is_row_constant(const tl_value *v, const tl_value *x, int axis)
{
    if (v == NULL || v->data == NULL || v->dtype != x->dtype || v->shape.rank > x->shape.rank)
        return false;
    for (int k = 1; k <= v->shape.rank; k++) {
        int64_t e = v->shape.dims[v->shape.rank - k].extent;
        int at = x->shape.rank - k;
        if (e != 1 && (at < axis || e != x->shape.dims[at].extent))
            return false;
    }
    return true;
}

static void recognize(tl_graph *g, tl_node *n)
{
    int axis;
    double epsilon;
    tl_value *x = NULL, *y = n->outputs[0];
    for (int i = 0; i < (n->op == TL_OP_MUL ? 2 : 1) && x == NULL; i++) {
        const tl_value *below = n->inputs[1 - i];
        tl_node *reciprocal = tl_producer(below, TL_OP_RECIPROCAL);
        if (n->op == TL_OP_MUL)
            below = reciprocal != NULL ? reciprocal->inputs[0] : NULL;
        tl_value *candidate = centred(n->inputs[i], &axis);
        if (candidate != NULL && below != NULL && is_deviation(below, candidate, axis, &epsilon))
            x = candidate;
    }
    if (x == NULL || !tl_same_shape(x, y))
        return;

    tl_value *inputs[3] = { x, NULL, NULL };
    tl_node *scaled = tl_sole_user(y, TL_OP_MUL);
    tl_value *scale = tl_other_input(scaled, y);
    if (is_row_constant(scale, x, axis)) {
        inputs[1] = scale;
        y = scaled->outputs[0];
        tl_node *shifted = tl_sole_user(y, TL_OP_ADD);
        tl_value *bias = tl_other_input(shifted, y);
        if (is_row_constant(bias, x, axis)) {
            inputs[2] = bias;
            y = shifted->outputs[0];
        }
    } else {
        void *one = tl_arena_alloc(g->arena, 16, 16);
        tl_shape scalar = tl_shape_of(0, NULL);
        tl_number_store(x->dtype, one, 0, (tl_number){ .f = 1 });
        inputs[1] = tl_graph_constant(g, tl_arena_format(g->arena, "%s.one", n->name), x->dtype,
                                      &scalar, one);
    }
    tl_node *norm = tl_replace_node(g, y, TL_OP_LAYER_NORM, inputs[2] != NULL ? 3 : 2, inputs);
    tl_attr_set_int(g, norm, "axis", axis);
    tl_attr_set_float(g, norm, "epsilon", epsilon);
}

tl_status tl_recognize_layer_norm(tl_graph *g, tl_diag *diag)
{
    (void)diag;
    int count = g->node_count;
    for (int i = 0; i < count; i++)
        if (!g->nodes[i]->dead && (g->nodes[i]->op == TL_OP_DIV || g->nodes[i]->op == TL_OP_MUL))
            recognize(g, g->nodes[i]);
    return TL_OK;
}
