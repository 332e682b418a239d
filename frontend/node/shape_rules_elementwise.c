/* frontend/node/shape_rules_elementwise.c: operators that work element by element, after broadcasting. */
#include "frontend/node/shape_rules.h"

static tl_status broadcast_to(tl_graph *g, tl_node *n, tl_dtype dtype, tl_diag *diag)
{
    int rank;
    int64_t extents[TL_MAX_RANK];
    TL_TRY(tl_broadcast_inputs(g, n, 0, &rank, extents, diag));
    return tl_set_output(g, n, 0, dtype, rank, extents, diag);
}

tl_status tl_shape_rule_broadcast(tl_graph *g, tl_node *n, tl_diag *diag)
{
    TL_TRY(tl_same_dtype(g, n, 0, 1, diag));
    TL_TRY(tl_not_bool(g, n, diag));
    return broadcast_to(g, n, n->inputs[0]->dtype, diag);
}

tl_status tl_shape_rule_broadcast_float(tl_graph *g, tl_node *n, tl_diag *diag)
{
    if (!tl_dtype_is_float(n->inputs[0]->dtype))
        return tl_fail_node(diag, TL_BAD_MODEL, n, "%s should be of a float dtype",
                            tl_value_text(g, n->inputs[0]));
    return tl_shape_rule_broadcast(g, n, diag);
}

tl_status tl_shape_rule_bitwise(tl_graph *g, tl_node *n, tl_diag *diag)
{
    if (!tl_dtype_is_int(n->inputs[0]->dtype))
        return tl_fail_node(diag, TL_BAD_MODEL, n, "%s should be of an integer dtype",
                            tl_value_text(g, n->inputs[0]));
    if (n->input_count > 1)
        TL_TRY(tl_same_dtype(g, n, 0, 1, diag));
    return broadcast_to(g, n, n->inputs[0]->dtype, diag);
}

/* A shift by the width or more gives 0. */
tl_status tl_shape_rule_shift(tl_graph *g, tl_node *n, tl_diag *diag)
{
    if (tl_dtype_infos[n->inputs[0]->dtype].class != TL_CLASS_UINT)
        return tl_fail_node(diag, TL_BAD_MODEL, n, "%s should be of an unsigned dtype",
                            tl_value_text(g, n->inputs[0]));
    return tl_shape_rule_broadcast(g, n, diag);
}

/* The exponent may have a dtype of its own; the result has the base's. */
tl_status tl_shape_rule_power(tl_graph *g, tl_node *n, tl_diag *diag)
{
    for (int i = 0; i < 2; i++)
        if (n->inputs[i]->dtype == TL_BOOL)
            return tl_fail_node(diag, TL_BAD_MODEL, n, "%s: bool has no arithmetic",
                                tl_value_text(g, n->inputs[i]));
    return broadcast_to(g, n, n->inputs[0]->dtype, diag);
}

tl_status tl_shape_rule_compare(tl_graph *g, tl_node *n, tl_diag *diag)
{
    TL_TRY(tl_same_dtype(g, n, 0, 1, diag));
    return broadcast_to(g, n, TL_BOOL, diag);
}

tl_status tl_shape_rule_logical(tl_graph *g, tl_node *n, tl_diag *diag)
{
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i]->dtype != TL_BOOL)
            return tl_fail_node(diag, TL_BAD_MODEL, n, "%s should be bool",
                                tl_value_text(g, n->inputs[i]));
    return broadcast_to(g, n, TL_BOOL, diag);
}

tl_status tl_shape_rule_where(tl_graph *g, tl_node *n, tl_diag *diag)
{
    if (n->inputs[0]->dtype != TL_BOOL)
        return tl_fail_node(diag, TL_BAD_MODEL, n, "its condition %s should be bool",
                            tl_value_text(g, n->inputs[0]));
    TL_TRY(tl_same_dtype(g, n, 1, 2, diag));
    return broadcast_to(g, n, n->inputs[1]->dtype, diag);
}

tl_status tl_shape_rule_cast(tl_graph *g, tl_node *n, tl_diag *diag)
{
    int64_t to = tl_attr_int(n, "to", -1);
    if (to < 0 || to >= TL_DTYPE_COUNT)
        return tl_fail_node(diag, TL_BAD_MODEL, n, "it does not say which dtype to cast to");
    return tl_set_output_like(g, n, (tl_dtype)to, diag);
}

tl_status tl_shape_rule_bit_cast(tl_graph *g, tl_node *n, tl_diag *diag)
{
    int64_t to = tl_attr_int(n, "to", -1);
    if (to < 0 || to >= TL_DTYPE_COUNT || !tl_dtype_has_bits_of((tl_dtype)to, n->inputs[0]->dtype))
        return tl_fail_node(diag, TL_BAD_MODEL, n,
                            "`to` should be a dtype of as many bits as %s, one of the two a float",
                            tl_value_text(g, n->inputs[0]));
    return tl_set_output_like(g, n, (tl_dtype)to, diag);
}

tl_status tl_shape_rule_same(tl_graph *g, tl_node *n, tl_diag *diag)
{
    if (n->op != TL_OP_IDENTITY)
        TL_TRY(tl_not_bool(g, n, diag));
    return tl_set_output_like(g, n, n->inputs[0]->dtype, diag);
}

tl_status tl_shape_rule_same_float(tl_graph *g, tl_node *n, tl_diag *diag)
{
    if (!tl_dtype_is_float(n->inputs[0]->dtype))
        return tl_fail_node(diag, TL_BAD_MODEL, n, "%s should be of a float dtype",
                            tl_value_text(g, n->inputs[0]));
    return tl_set_output_like(g, n, n->inputs[0]->dtype, diag);
}

tl_status tl_shape_rule_clip(tl_graph *g, tl_node *n, tl_diag *diag)
{
    TL_TRY(tl_not_bool(g, n, diag));
    for (int i = 1; i < n->input_count; i++) {
        if (n->inputs[i] == NULL)
            continue;
        TL_TRY(tl_same_dtype(g, n, 0, i, diag));
        if (tl_shape_elements(&n->inputs[i]->shape) != 1)
            return tl_fail_node(diag, TL_BAD_MODEL, n, "its bound %s should be a scalar",
                                tl_value_text(g, n->inputs[i]));
    }
    return tl_set_output_like(g, n, n->inputs[0]->dtype, diag);
}
