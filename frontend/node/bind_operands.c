/* frontend/node/bind_operands.c: operands that decide a shape become attributes.
 *
 *     Reshape(x, [1, -1])  ->  Reshape(x) {shape = [1, -1]}
 *
 * Shape inference calls it for each node before the node's rule; by then whatever is computed from constants
 * and shapes alone has been folded. */
#include "frontend/node/shape_rules.h"

bool tl_operand_decides_shape(tl_op op, int input)
{
    size_t size;
    const char *word = tl_operator_word(tl_operators[op].binds, input, &size);
    return size > 0 && word[0] != '-';
}

tl_status tl_bind_operands(tl_graph *g, tl_node *n, tl_diag *diag)
{
    for (int i = 0; i < n->input_count; i++) {
        size_t size;
        const char *word = tl_operator_word(tl_operators[n->op].binds, i, &size);
        if (size == 0 || word[0] == '-' || word[0] == '=' || n->inputs[i] == NULL)
            continue;
        const char *attribute = tl_arena_strndup(g->arena, word, size);
        const int64_t *ints;
        int count;
        if (!tl_constant_ints(g, n->inputs[i], &ints, &count))
            return tl_fail_node(diag, TL_UNSUPPORTED, n,
                                "its operand '%.120s' (%s) decides a shape and is not a constant",
                                n->inputs[i]->name, attribute);
        tl_attr_set_ints(g, n, attribute, ints, count);
        tl_node_set_input(n, i, NULL);
    }
    while (n->input_count > tl_op_infos[n->op].min_inputs && n->inputs[n->input_count - 1] == NULL)
        tl_node_keep_inputs(n, n->input_count - 1);
    return TL_OK;
}
