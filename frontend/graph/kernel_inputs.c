/* frontend/graph/kernel_inputs.c: what the nodes of a kernel read from outside of it. */
#include "frontend/lower/lower.h"

bool tl_is_window(const tl_node *n)
{
    const int64_t *steps;
    int rank = n->op == TL_OP_SLICE ? tl_attr_ints(n, "steps", &steps) : -1;
    for (int i = 0; i < rank; i++)
        if (steps[i] != 1)
            return false;
    return rank >= 0 && n->inputs[0]->layout.plain;
}

void tl_kernel_inputs(tl_kernel *kernel, tl_value **inputs, const tl_node **windows)
{
    int count = 0;
    for (int k = 0; k < kernel->node_count; k++) {
        const tl_node *n = kernel->nodes[k], *window = tl_is_window(n) ? n : NULL;
        for (int i = 0; i < n->input_count; i++) {
            tl_value *v = n->inputs[i];
            bool skip = v == NULL || tl_value_is_literal(v);
            for (int j = 0; j < k && !skip; j++)
                skip = v->producer == kernel->nodes[j];
            for (int j = 0; j < count && !skip; j++)
                skip = inputs[j] == v && windows[j] == window;
            if (!skip) {
                windows[count] = window;
                inputs[count++] = v;
            }
        }
    }
    kernel->windows = windows;
    kernel->inputs = inputs;
    kernel->input_count = count;
}
