/* frontend/graph/fold_batch_norm.c: batch normalisation into the weights of the convolution before it.
 *
 *     f = scale / sqrt(variance + epsilon)
 *     BatchNorm(Conv(x, w, b))  ->  Conv(x, w*f, (b - mean)*f + bias)          f per output channel */
#include "frontend/graph/graph_passes.h"
#include <math.h>
#include "frontend/node/graph_questions.h"

static double element(const tl_value *v, int64_t i)
{
    return tl_number_load(v->dtype, v->data, (size_t)i).f;
}

static tl_value *new_constant(tl_graph *g, const tl_value *like, const tl_shape *shape,
                              const char *what, void **data)
{
    size_t size = (size_t)tl_storage_bytes(like->dtype, tl_shape_elements(shape));
    *data = tl_arena_alloc(g->arena, size, 64);
    return tl_graph_constant(g, tl_arena_format(g->arena, "%s.%s", like->name, what), like->dtype,
                             shape, *data);
}

static void fold(tl_graph *g, tl_node *norm, tl_node *conv)
{
    tl_value *weight = conv->inputs[1], *bias = conv->input_count > 2 ? conv->inputs[2] : NULL;
    int64_t channels = weight->shape.dims[0].extent;
    int64_t per_channel = channels > 0 ? tl_shape_elements(&weight->shape) / channels : 0;
    double epsilon = tl_attr_float(norm, "epsilon", 1e-5);
    void *new_weight, *new_bias;
    tl_shape vector = tl_shape_of(1, &channels);
    tl_value *inputs[3] = { conv->inputs[0],
                            new_constant(g, weight, &weight->shape, "normalized", &new_weight),
                            NULL };
    inputs[2] = new_constant(g, norm->inputs[2], &vector, "normalized", &new_bias);
    for (int64_t o = 0; o < channels; o++) {
        double factor = element(norm->inputs[1], o) / sqrt(element(norm->inputs[4], o) + epsilon);
        double shift = (bias != NULL ? element(bias, o) : 0) - element(norm->inputs[3], o);
        for (int64_t i = o * per_channel; i < (o + 1) * per_channel; i++)
            tl_number_store(weight->dtype, new_weight, (size_t)i,
                            (tl_number){ .f = element(weight, i) * factor });
        tl_number_store(weight->dtype, new_bias, (size_t)o,
                        (tl_number){ .f = shift * factor + element(norm->inputs[2], o) });
    }
    tl_graph_rest(g, weight);
    tl_node *both = tl_replace_node(g, norm->outputs[0], TL_OP_CONV, 3, inputs);
    both->attrs = conv->attrs;
    both->attr_count = conv->attr_count;
    both->name = conv->name;
    tl_node_kill(conv);
}

tl_status tl_fold_batch_norm(tl_graph *g, tl_diag *diag)
{
    (void)diag;
    int count = g->node_count;
    for (int i = 0; i < count; i++) {
        tl_node *norm = g->nodes[i];
        if (norm->dead || norm->op != TL_OP_BATCH_NORM)
            continue;
        tl_node *conv = tl_sole_producer(norm->inputs[0], TL_OP_CONV);
        bool constant =
            conv != NULL && conv->inputs[1]->data != NULL &&
            (conv->input_count < 3 || conv->inputs[2] == NULL || conv->inputs[2]->data != NULL);
        for (int k = 1; k < 5; k++)
            constant = constant && norm->inputs[k]->data != NULL;
        if (constant)
            fold(g, norm, conv);
    }
    return TL_OK;
}
