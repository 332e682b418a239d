/* frontend/node/shape_rules_reduce.c: reductions over axes, and the normalisations made of them. */
#include "frontend/node/shape_rules.h"

tl_status tl_shape_rule_reduce(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0];
    bool reduced[TL_MAX_RANK];
    int64_t axes[TL_MAX_RANK], extents[TL_MAX_RANK];
    const int64_t *given;
    int rank = 0, axis_count = 0;
    bool every = tl_attr_ints(n, "axes", &given) <= 0, keep = tl_attr_int(n, "keepdims", 1) != 0;
    if (x->dtype == TL_BOOL)
        return tl_fail_node(diag, TL_UNSUPPORTED, n, "%s: bool is not reduced",
                            tl_value_text(g, x));
    TL_TRY(tl_axes_set(n, "axes", x->shape.rank, reduced, diag));
    for (int i = 0; i < x->shape.rank; i++) {
        bool gone = every || reduced[i];
        if (gone)
            axes[axis_count++] = i;
        if (!gone || keep)
            extents[rank++] = gone ? 1 : tl_extent(x, i);
    }
    tl_attr_set_ints(g, n, "axes", axes, axis_count);
    tl_attr_set_int(g, n, "keepdims", keep);
    return tl_set_output(g, n, 0, x->dtype, rank, extents, diag);
}

tl_status tl_shape_rule_argmax(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0];
    int axis, rank = 0;
    bool keep = tl_attr_int(n, "keepdims", 1) != 0;
    int64_t extents[TL_MAX_RANK];
    TL_TRY(tl_normal_axis(n, tl_attr_int(n, "axis", 0), x->shape.rank, false, &axis, diag));
    if (tl_extent(x, axis) == 0)
        return tl_fail_node(diag, TL_BAD_MODEL, n, "axis %d of %s is empty", axis,
                            tl_value_text(g, x));
    for (int i = 0; i < x->shape.rank; i++)
        if (i != axis || keep)
            extents[rank++] = i == axis ? 1 : tl_extent(x, i);
    tl_attr_set_int(g, n, "axis", axis);
    return tl_set_output(g, n, 0, TL_I64, rank, extents, diag);
}

static tl_status same_float(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0];
    if (!tl_dtype_is_float(x->dtype))
        return tl_fail_node(diag, TL_BAD_MODEL, n, "%s should be of a float dtype",
                            tl_value_text(g, x));
    return tl_set_output_like(g, n, x->dtype, diag);
}

tl_status tl_shape_rule_softmax(tl_graph *g, tl_node *n, tl_diag *diag)
{
    int axis;
    TL_TRY(tl_normal_axis(n, tl_attr_int(n, "axis", -1), n->inputs[0]->shape.rank, false, &axis,
                          diag));
    tl_attr_set_int(g, n, "axis", axis);
    return same_float(g, n, diag);
}

tl_status tl_shape_rule_layer_norm(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0];
    int axis, rank = x->shape.rank;
    TL_TRY(tl_normal_axis(n, tl_attr_int(n, "axis", -1), rank, false, &axis, diag));
    for (int i = 1; i < n->input_count; i++) {
        const tl_value *v = n->inputs[i];
        if (v == NULL)
            continue;
        TL_TRY(tl_same_dtype(g, n, 0, i, diag));
        bool fits = v->shape.rank <= rank;
        for (int k = 1; fits && k <= v->shape.rank; k++) {
            int64_t e = tl_extent(v, v->shape.rank - k);
            fits = e == 1 || e == tl_extent(x, rank - k);
        }
        if (!fits)
            return tl_fail_node(diag, TL_BAD_MODEL, n, "%s does not broadcast to %s",
                                tl_value_text(g, v), tl_value_text(g, x));
    }
    tl_attr_set_int(g, n, "axis", axis);
    return same_float(g, n, diag);
}

tl_status tl_shape_rule_batch_norm(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0];
    for (int i = 1; i < 5; i++) {
        const tl_value *v = n->inputs[i];
        int64_t channels = x->shape.rank >= 2 ? tl_extent(x, 1) : 1;
        TL_TRY(tl_same_dtype(g, n, 0, i, diag));
        if (x->shape.rank < 1 || v->shape.rank != 1 || tl_extent(v, 0) != channels)
            return tl_fail_node(diag, TL_BAD_MODEL, n, "%s should have one element a channel of %s",
                                tl_value_text(g, v), tl_value_text(g, x));
    }
    return same_float(g, n, diag);
}
