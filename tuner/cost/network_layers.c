/* tuner/cost/network_layers.c: layers with the arrays of a network. */
#include "tuner/cost/network.h"
#include "tuner/learn/layers.h"

int tl_network_width(const tl_cost_network *n, int kind)
{
    const tl_sample_shape *shape = &n->model.shape;
    const tl_columns *const all[TL_NETWORK_KINDS] = { &shape->row, &shape->decision,
                                                      &shape->workload, &shape->machine };
    return all[kind]->width;
}

void tl_network_declare_linear(tl_cost_network *n, int in, int out, const char *name)
{
    tl_weights_add(&n->weights, TL_WEIGHTS_MATRIX, in, out, "%s.weight", name);
    tl_weights_add(&n->weights, TL_WEIGHTS_ZERO, 1, out, "%s.bias", name);
}

void tl_network_linear(const tl_cost_network *n, int layer, int rows, int in, int out,
                       const float *x, float *y)
{
    tl_linear(rows, in, out, x, tl_weights_of(&n->weights, layer),
              tl_weights_of(&n->weights, layer + 1), y);
}

void tl_network_linear_back(tl_cost_network *n, int layer, int rows, int in, int out,
                            const float *x, const float *d_y, float *d_x, bool add)
{
    tl_linear_back(rows, in, out, x, tl_weights_of(&n->weights, layer), d_y, d_x, add,
                   tl_weights_gradient_of(&n->weights, layer),
                   tl_weights_gradient_of(&n->weights, layer + 1));
}

void tl_network_declare_norm(tl_cost_network *n, int width, const char *name)
{
    tl_weights_add(&n->weights, TL_WEIGHTS_ONE, 1, width, "%s.gain", name);
    tl_weights_add(&n->weights, TL_WEIGHTS_ZERO, 1, width, "%s.bias", name);
}

tl_network_norm tl_network_normalize(const tl_cost_network *n, int layer, int rows, int width,
                                     const float *x, tl_scratch *scratch)
{
    const size_t size = (size_t)rows * (size_t)width;
    const tl_network_norm norm = { tl_scratch_floats(scratch, size),
                                   tl_scratch_floats(scratch, (size_t)rows),
                                   tl_scratch_floats(scratch, size) };
    tl_layer_norm(rows, width, x, tl_weights_of(&n->weights, layer),
                  tl_weights_of(&n->weights, layer + 1), norm.normal, norm.inverse, norm.out);
    return norm;
}

void tl_network_normalize_back(tl_cost_network *n, int layer, int rows, int width,
                               const tl_network_norm *norm, const float *d_y, float *d_x, bool add)
{
    tl_layer_norm_back(rows, width, norm->normal, norm->inverse, tl_weights_of(&n->weights, layer),
                       d_y, d_x, add, tl_weights_gradient_of(&n->weights, layer),
                       tl_weights_gradient_of(&n->weights, layer + 1));
}
