/* frontend/node/shape_rules_scatter.c: operators that put elements where others are, or bring them into an order. */
#include <string.h>
#include "frontend/node/shape_rules.h"

static tl_status check_scatter(tl_graph *g, const tl_node *n, tl_diag *diag)
{
    static const char *const known[] = { "none", "add", "mul", "max", "min" };
    const char *reduction = tl_attr_string(n, "reduction", "none");
    tl_dtype indices = n->inputs[1]->dtype;
    bool is_known = false;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        is_known |= strcmp(reduction, known[i]) == 0;
    if (!is_known)
        return tl_fail_node(diag, TL_BAD_MODEL, n, "there is no reduction '%.40s'", reduction);
    if (indices != TL_I64 && indices != TL_I32)
        return tl_fail_node(diag, TL_BAD_MODEL, n, "its indices %s should be i32 or i64",
                            tl_value_text(g, n->inputs[1]));
    if (n->inputs[0]->dtype == TL_BOOL && strcmp(reduction, "none") != 0)
        return tl_fail_node(diag, TL_UNSUPPORTED, n, "%s: bool is not combined",
                            tl_value_text(g, n->inputs[0]));
    return tl_same_dtype(g, n, 0, 2, diag);
}

static tl_status fail_updates(tl_graph *g, const tl_node *n, tl_diag *diag)
{
    return tl_fail_node(diag, TL_BAD_MODEL, n, "indices %s and updates %s do not fit %s",
                        tl_value_text(g, n->inputs[1]), tl_value_text(g, n->inputs[2]),
                        tl_value_text(g, n->inputs[0]));
}

tl_status tl_shape_rule_scatter_elements(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0], *indices = n->inputs[1], *updates = n->inputs[2];
    int axis, rank = x->shape.rank;
    TL_TRY(check_scatter(g, n, diag));
    TL_TRY(tl_normal_axis(n, tl_attr_int(n, "axis", 0), rank, false, &axis, diag));
    bool fits = indices->shape.rank == rank && tl_shape_equal(&indices->shape, &updates->shape);
    for (int i = 0; fits && i < rank; i++)
        fits = i == axis || tl_extent(indices, i) <= tl_extent(x, i);
    if (!fits)
        return fail_updates(g, n, diag);
    tl_attr_set_int(g, n, "axis", axis);
    return tl_set_output_like(g, n, x->dtype, diag);
}

tl_status tl_shape_rule_scatter_nd(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0], *indices = n->inputs[1], *updates = n->inputs[2];
    int last = indices->shape.rank - 1, rank = x->shape.rank;
    TL_TRY(check_scatter(g, n, diag));
    int64_t tuple = last >= 0 ? tl_extent(indices, last) : 0;
    bool fits =
        last >= 0 && tuple >= 1 && tuple <= rank && updates->shape.rank == last + rank - (int)tuple;
    for (int i = 0; fits && i < updates->shape.rank; i++)
        fits = tl_extent(updates, i) ==
               (i < last ? tl_extent(indices, i) : tl_extent(x, (int)tuple + i - last));
    return fits ? tl_set_output_like(g, n, x->dtype, diag) : fail_updates(g, n, diag);
}

static tl_status along_axis(tl_graph *g, tl_node *n, tl_dtype dtype, tl_diag *diag)
{
    int axis;
    TL_TRY(
        tl_normal_axis(n, tl_attr_int(n, "axis", 0), n->inputs[0]->shape.rank, false, &axis, diag));
    tl_attr_set_int(g, n, "axis", axis);
    return tl_set_output_like(g, n, dtype, diag);
}

tl_status tl_shape_rule_cumulate(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0];
    if (x->dtype == TL_BOOL)
        return tl_fail_node(diag, TL_UNSUPPORTED, n, "%s: bool is not added up",
                            tl_value_text(g, x));
    return along_axis(g, n, x->dtype, diag);
}

tl_status tl_shape_rule_sort_order(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0];
    if (x->shape.rank > 0 && tl_shape_elements(&x->shape) > INT32_MAX)
        return tl_fail_node(diag, TL_UNSUPPORTED, n, "%s has too many elements to be sorted",
                            tl_value_text(g, x));
    return along_axis(g, n, TL_I64, diag);
}
