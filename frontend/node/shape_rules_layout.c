/* frontend/node/shape_rules_layout.c: operators that only move elements: reshape, transpose, expand, concat. */
#include "frontend/node/shape_rules.h"
#include <inttypes.h>
#include "runtime/base/checked.h"

/* The node becomes a Reshape to `extents`. */
static tl_status become_reshape(tl_graph *g, tl_node *n, int rank, const int64_t *extents,
                                tl_diag *diag)
{
    TL_TRY(tl_set_output(g, n, 0, n->inputs[0]->dtype, rank, extents, diag));
    n->op = TL_OP_RESHAPE;
    tl_node_keep_inputs(n, 1);
    n->attr_count = 0;
    tl_attr_set_ints(g, n, "shape", extents, rank);
    if (tl_shape_elements(&n->outputs[0]->shape) == 0)
        tl_attr_set_int(g, n, "allowzero", 1); /* a 0 that stays one when inferred again */
    return TL_OK;
}

tl_status tl_shape_rule_reshape(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0];
    const int64_t *target;
    int rank = tl_attr_ints(n, "shape", &target), inferred = -1;
    bool allow_zero = tl_attr_int(n, "allowzero", 0) != 0;
    int64_t extents[TL_MAX_RANK], elements = tl_shape_elements(&x->shape);
    if (rank < 0 || rank > TL_MAX_RANK)
        return tl_fail_node(diag, rank < 0 ? TL_BAD_MODEL : TL_UNSUPPORTED, n,
                            "its target shape %s", rank < 0 ? "is missing" : "has too many axes");

    for (int i = 0; i < rank; i++) {
        extents[i] = target[i];
        if (target[i] == 0 && !allow_zero) {
            if (i >= x->shape.rank)
                return tl_fail_node(diag, TL_BAD_MODEL, n, "0 in %s: %s has no axis %d",
                                    tl_extents_text(g, rank, target), tl_value_text(g, x), i);
            extents[i] = tl_extent(x, i);
        } else if (target[i] == -1) {
            if (inferred >= 0)
                return tl_fail_node(diag, TL_BAD_MODEL, n, "its target shape %s has two -1",
                                    tl_extents_text(g, rank, target));
            inferred = i;
            extents[i] = 1;
        }
    }
    tl_shape shape = tl_shape_of(rank, extents);
    int64_t known = tl_shape_elements(&shape);
    if (inferred >= 0 && known > 0 && elements % known == 0) {
        extents[inferred] = elements / known;
        known = elements;
    }
    if (known != elements)
        return tl_fail_node(diag, TL_BAD_MODEL, n, "%s does not fit into shape %s",
                            tl_value_text(g, x), tl_extents_text(g, rank, target));
    return become_reshape(g, n, rank, extents, diag);
}

tl_status tl_shape_rule_flatten(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0];
    int axis;
    TL_TRY(tl_normal_axis(n, tl_attr_int(n, "axis", 1), x->shape.rank, true, &axis, diag));
    int64_t extents[2] = { 1, 1 };
    for (int i = 0; i < x->shape.rank; i++)
        if (tl_mul_overflows(extents[i >= axis], tl_extent(x, i), &extents[i >= axis]))
            return tl_fail_node(diag, TL_BAD_MODEL, n, "the size of %s overflows",
                                tl_value_text(g, x));
    return become_reshape(g, n, 2, extents, diag);
}

tl_status tl_shape_rule_squeeze(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0];
    bool drop[TL_MAX_RANK];
    const int64_t *axes;
    bool every = tl_attr_ints(n, "axes", &axes) < 0;
    TL_TRY(tl_axes_set(n, "axes", x->shape.rank, drop, diag));
    int64_t extents[TL_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < x->shape.rank; i++) {
        if (drop[i] && tl_extent(x, i) != 1)
            return tl_fail_node(diag, TL_BAD_MODEL, n, "axis %d of %s is not 1", i,
                                tl_value_text(g, x));
        if (!drop[i] && !(every && tl_extent(x, i) == 1))
            extents[rank++] = tl_extent(x, i);
    }
    return become_reshape(g, n, rank, extents, diag);
}

tl_status tl_shape_rule_unsqueeze(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0];
    const int64_t *axes;
    int count = tl_attr_ints(n, "axes", &axes);
    if (count < 0)
        return tl_fail_node(diag, TL_BAD_MODEL, n, "its axes are missing");
    if (count > TL_MAX_RANK - x->shape.rank)
        return tl_fail_node(diag, TL_UNSUPPORTED, n, "its output would have rank %d, at most %d",
                            x->shape.rank + count, TL_MAX_RANK);
    int rank = x->shape.rank + count;
    bool added[TL_MAX_RANK];
    TL_TRY(tl_axes_set(n, "axes", rank, added, diag));
    int64_t extents[TL_MAX_RANK];
    for (int i = 0, from = 0; i < rank; i++)
        extents[i] = added[i] ? 1 : tl_extent(x, from++);
    return become_reshape(g, n, rank, extents, diag);
}

tl_status tl_shape_rule_expand(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0];
    const int64_t *target;
    int count = tl_attr_ints(n, "shape", &target);
    if (count < 0 || count > TL_MAX_RANK)
        return tl_fail_node(diag, count < 0 ? TL_BAD_MODEL : TL_UNSUPPORTED, n,
                            "its target shape %s", count < 0 ? "is missing" : "has too many axes");
    int rank = count > x->shape.rank ? count : x->shape.rank;
    int64_t extents[TL_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        int from = i - (rank - x->shape.rank), to = i - (rank - count);
        int64_t a = from >= 0 ? tl_extent(x, from) : 1, b = to >= 0 ? target[to] : 1;
        if (b < 0 || (a != b && a != 1 && b != 1))
            return tl_fail_node(diag, TL_BAD_MODEL, n, "%s does not expand to %s",
                                tl_value_text(g, x), tl_extents_text(g, count, target));
        extents[i] = a == 1 ? b : a;
    }
    TL_TRY(tl_set_output(g, n, 0, x->dtype, rank, extents, diag));
    tl_attr_set_ints(g, n, "shape", extents, rank);
    return TL_OK;
}

tl_status tl_shape_rule_transpose(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0];
    int rank = x->shape.rank;
    const int64_t *given;
    int count = tl_attr_ints(n, "perm", &given);
    int64_t perm[TL_MAX_RANK], extents[TL_MAX_RANK];
    bool seen[TL_MAX_RANK] = { false };
    if (count >= 0 && count != rank)
        return tl_fail_node(diag, TL_BAD_MODEL, n, "perm has %d axes, %s has %d", count,
                            tl_value_text(g, x), rank);
    for (int i = 0; i < rank; i++) {
        perm[i] = count < 0 ? rank - 1 - i : given[i];
        if (perm[i] < 0 || perm[i] >= rank || seen[perm[i]])
            return tl_fail_node(diag, TL_BAD_MODEL, n, "perm %s is no permutation of %d axes",
                                tl_extents_text(g, rank, given), rank);
        seen[perm[i]] = true;
        extents[i] = tl_extent(x, (int)perm[i]);
    }
    tl_attr_set_ints(g, n, "perm", perm, rank);
    return tl_set_output(g, n, 0, x->dtype, rank, extents, diag);
}

tl_status tl_shape_rule_concat(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *x = n->inputs[0];
    int axis, rank = x->shape.rank;
    if (tl_attr_find(n, "axis") == NULL)
        return tl_fail_node(diag, TL_BAD_MODEL, n, "its axis is missing");
    TL_TRY(tl_normal_axis(n, tl_attr_int(n, "axis", 0), rank, false, &axis, diag));
    int64_t extents[TL_MAX_RANK];
    for (int i = 0; i < rank; i++)
        extents[i] = i == axis ? 0 : tl_extent(x, i);
    for (int k = 0; k < n->input_count; k++) {
        const tl_value *v = n->inputs[k];
        if (v == NULL)
            return tl_fail_node(diag, TL_BAD_MODEL, n, "input %d is missing", k);
        TL_TRY(tl_same_dtype(g, n, 0, k, diag));
        bool fits = v->shape.rank == rank;
        for (int i = 0; i < rank && fits; i++)
            fits = i == axis || tl_extent(v, i) == extents[i];
        if (!fits || tl_add_overflows(extents[axis], tl_extent(v, axis), &extents[axis]))
            return tl_fail_node(diag, TL_BAD_MODEL, n, "%s does not join %s along axis %d",
                                tl_value_text(g, v), tl_value_text(g, x), axis);
    }
    tl_attr_set_int(g, n, "axis", axis);
    return tl_set_output(g, n, 0, x->dtype, rank, extents, diag);
}
