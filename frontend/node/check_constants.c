/* frontend/node/check_constants.c: whether the constants that a node reads are values its operator is defined for: indices lie
 * in their axis, integers are not divided by 0. Such a node is the model's fault whatever its other inputs will be, and is
 * refused by name before anything is folded or lowered. What is computed at run time is clamped instead. */
#include <inttypes.h>
#include "frontend/node/fold_node.h"
#include "frontend/node/shape_rules.h"

static int64_t integer_at(const tl_value *v, int64_t i)
{
    return tl_number_load(v->dtype, v->data, (size_t)i).i;
}

/* Every `step`-th of the indices from `first` on is a position along the axis of the table, from either end. */
static tl_status check_positions(tl_graph *g, const tl_node *n, int axis, int64_t first,
                                 int64_t step, tl_diag *diag)
{
    const tl_value *table = n->inputs[0], *indices = n->inputs[1];
    int64_t extent = tl_extent(table, axis), count = tl_shape_elements(&indices->shape);
    if (extent == 0 && tl_shape_elements(&n->outputs[0]->shape) > 0)
        return tl_fail_node(diag, TL_BAD_MODEL, n, "axis %d of %s is empty, no index lies in it",
                            axis, tl_value_text(g, table));
    for (int64_t i = first; indices->data != NULL && i < count; i += step) {
        int64_t at = integer_at(indices, i);
        if (at < -extent || at >= extent)
            return tl_fail_node(diag, TL_BAD_MODEL, n,
                                "element %" PRId64 " of its indices %s is %" PRId64
                                ", outside of %" PRId64 "..%" PRId64 " (axis %d of %s)",
                                i, tl_value_text(g, indices), at, -extent, extent - 1, axis,
                                tl_value_text(g, table));
    }
    return TL_OK;
}

tl_status tl_check_positions(tl_graph *g, const tl_node *n, tl_diag *diag)
{
    return check_positions(g, n, (int)tl_attr_int(n, "axis", 0), 0, 1, diag);
}

tl_status tl_check_tuples(tl_graph *g, const tl_node *n, tl_diag *diag)
{
    const tl_value *indices = n->inputs[1];
    int64_t tuple = tl_extent(indices, indices->shape.rank - 1);
    int batch = (int)tl_attr_int(n, "batch_dims", 0);
    for (int64_t i = 0; i < tuple; i++)
        TL_TRY(check_positions(g, n, batch + (int)i, i, tuple, diag));
    return TL_OK;
}

tl_status tl_check_divisor(tl_graph *g, const tl_node *n, tl_diag *diag)
{
    const tl_value *divisor = n->inputs[1];
    if (tl_dtype_is_float(divisor->dtype) || divisor->data == NULL ||
        tl_shape_elements(&n->outputs[0]->shape) == 0)
        return TL_OK;
    for (int64_t i = 0; i < tl_shape_elements(&divisor->shape); i++)
        if (integer_at(divisor, i) == 0)
            return tl_fail_node(diag, TL_BAD_MODEL, n, "element %" PRId64 " of its divisor %s is 0",
                                i, tl_value_text(g, divisor));
    return TL_OK;
}

tl_status tl_check_none(tl_graph *g, const tl_node *n, tl_diag *diag)
{
    (void)g;
    (void)n;
    (void)diag;
    return TL_OK;
}

tl_status tl_check_constants(tl_graph *g, const tl_node *n, tl_diag *diag)
{
    return n->dead ? TL_OK : tl_operators[n->op].check(g, n, diag);
}
