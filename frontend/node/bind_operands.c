/* frontend/node/bind_operands.c: operands that decide a shape become attributes.
 *
 *     Reshape(x, [1, -1])  ->  Reshape(x) {shape = [1, -1]}
 *
 * Shape inference calls it for each node before the node's rule; by then whatever is computed from constants
 * and shapes alone has been folded. */
#include "frontend/node/shape_rules.h"

static const struct {
    tl_op op;
    int input;
    const char *attribute;
} operands[] = {
    { TL_OP_RESHAPE, 1, "shape" },    { TL_OP_EXPAND, 1, "shape" },
    { TL_OP_SQUEEZE, 1, "axes" },     { TL_OP_UNSQUEEZE, 1, "axes" },
    { TL_OP_SLICE, 1, "starts" },     { TL_OP_SLICE, 2, "ends" },
    { TL_OP_SLICE, 3, "axes" },       { TL_OP_SLICE, 4, "steps" },
    { TL_OP_SPLIT, 1, "split" },      { TL_OP_PAD, 1, "pads" },
    { TL_OP_PAD, 3, "axes" },         { TL_OP_REDUCE_SUM, 1, "axes" },
    { TL_OP_REDUCE_MEAN, 1, "axes" }, { TL_OP_REDUCE_MAX, 1, "axes" },
    { TL_OP_REDUCE_MIN, 1, "axes" },  { TL_OP_REDUCE_PROD, 1, "axes" },
};

bool tl_operand_decides_shape(tl_op op, int input)
{
    for (size_t i = 0; i < sizeof operands / sizeof operands[0]; i++)
        if (operands[i].op == op && operands[i].input == input)
            return true;
    return op == TL_OP_RANGE || (op == TL_OP_CONSTANT_OF_SHAPE && input == 0);
}

tl_status tl_bind_operands(tl_graph *g, tl_node *n, tl_diag *diag)
{
    for (size_t i = 0; i < sizeof operands / sizeof operands[0]; i++) {
        tl_value *v = tl_node_input(n, operands[i].input);
        if (operands[i].op != n->op || v == NULL)
            continue;
        const int64_t *ints;
        int count;
        if (!tl_constant_ints(g, v, &ints, &count))
            return tl_fail_node(diag, TL_UNSUPPORTED, n,
                                "its operand '%.120s' (%s) decides a shape and is not a constant",
                                v->name, operands[i].attribute);
        tl_attr_set_ints(g, n, operands[i].attribute, ints, count);
        tl_node_set_input(n, operands[i].input, NULL);
    }
    while (n->input_count > tl_op_infos[n->op].min_inputs && n->inputs[n->input_count - 1] == NULL)
        tl_node_keep_inputs(n, n->input_count - 1);
    return TL_OK;
}
