/* frontend/node/bind_input.c: a graph input becomes a constant for one call of the model.
 *
 *     ReduceSum(x, axes), axes an input that is [1]  ->  ReduceSum(x, const [1]) */
#include <string.h>
#include "frontend/frontend.h"

tl_status tl_bind_input(tl_graph *g, const char *name, const void *data, tl_diag *diag)
{
    tl_value *input = NULL;
    for (int i = 0; i < g->input_count; i++)
        if (strcmp(g->inputs[i]->name, name) == 0)
            input = g->inputs[i];
    if (input == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "graph %.200s has no input '%.200s'", g->name, name);
    int64_t elements = tl_shape_elements(&input->shape);
    if (!input->dtype_known || elements < 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "input '%.200s' has no static shape to be bound with",
                       name);
    void *copy =
        tl_arena_copy(g->arena, data, (size_t)tl_storage_bytes(input->dtype, elements), 64);
    tl_value *constant = tl_graph_constant(g, tl_arena_format(g->arena, "%s.bound", input->name),
                                           input->dtype, &input->shape, copy);
    while (input->first_use != NULL) {
        tl_node *n = input->first_use->node;
        tl_node_set_input(n, (int)(input->first_use - n->uses), constant);
    }
    return TL_OK;
}
