/* frontend/node/shape_rules_matmul.c: products of matrices, and attention. */
#include "frontend/node/shape_rules.h"
#include <inttypes.h>

tl_status tl_shape_rule_matmul(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *a = n->inputs[0], *b = n->inputs[1];
    int ra = a->shape.rank, rb = b->shape.rank, rank = 0;
    TL_TRY(tl_not_bool(g, n, diag));
    TL_TRY(tl_same_dtype(g, n, 0, 1, diag));
    int64_t inner_a = ra > 0 ? tl_extent(a, ra - 1) : -1;
    int64_t inner_b = rb > 0 ? tl_extent(b, rb > 1 ? rb - 2 : 0) : -2;
    bool fits = inner_a == inner_b;
    int64_t extents[TL_MAX_RANK + 2];
    int batch = (ra > rb ? ra : rb) - 2;
    for (int i = 0; fits && i < batch; i++) {
        int from_a = i - (batch - (ra - 2)), from_b = i - (batch - (rb - 2));
        int64_t ea = ra > 2 && from_a >= 0 ? tl_extent(a, from_a) : 1;
        int64_t eb = rb > 2 && from_b >= 0 ? tl_extent(b, from_b) : 1;
        fits = ea == eb || ea == 1 || eb == 1;
        extents[rank++] = ea == 1 ? eb : ea;
    }
    if (!fits)
        return tl_fail_node(diag, TL_BAD_MODEL, n, "%s and %s do not multiply", tl_value_text(g, a),
                            tl_value_text(g, b));
    if (ra > 1)
        extents[rank++] = tl_extent(a, ra - 2);
    if (rb > 1)
        extents[rank++] = tl_extent(b, rb - 1);
    return tl_set_output(g, n, 0, a->dtype, rank, extents, diag);
}

tl_status tl_shape_rule_gemm(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *a = n->inputs[0], *b = n->inputs[1], *c = tl_node_input(n, 2);
    int ta = tl_attr_int(n, "transA", 0) != 0, tb = tl_attr_int(n, "transB", 0) != 0;
    TL_TRY(tl_not_bool(g, n, diag));
    TL_TRY(tl_same_dtype(g, n, 0, 1, diag));
    if (a->shape.rank != 2 || b->shape.rank != 2 || tl_extent(a, 1 - ta) != tl_extent(b, tb))
        return tl_fail_node(diag, TL_BAD_MODEL, n, "%s%s and %s%s do not multiply",
                            tl_value_text(g, a), ta ? " transposed" : "", tl_value_text(g, b),
                            tb ? " transposed" : "");
    int64_t extents[2] = { tl_extent(a, ta), tl_extent(b, 1 - tb) };
    if (c != NULL) {
        TL_TRY(tl_same_dtype(g, n, 0, 2, diag));
        bool fits = c->shape.rank <= 2;
        for (int i = 1; fits && i <= c->shape.rank; i++) {
            int64_t e = tl_extent(c, c->shape.rank - i);
            fits = e == 1 || e == extents[2 - i];
        }
        if (!fits)
            return tl_fail_node(diag, TL_BAD_MODEL, n,
                                "%s does not broadcast to [%" PRId64 ", %" PRId64 "]",
                                tl_value_text(g, c), extents[0], extents[1]);
        if (tl_attr_float(n, "beta", 1) == 0) { /* nothing of C counts, not even a NaN */
            tl_attr_remove(n, "beta");
            n->input_count = 2;
        }
    }
    return tl_set_output(g, n, 0, a->dtype, 2, extents, diag);
}

tl_status tl_shape_rule_attention(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_value *q = n->inputs[0], *k = n->inputs[1], *v = n->inputs[2];
    const tl_value *mask = tl_node_input(n, 3);
    int64_t heads = tl_attr_int(n, "heads", 1);
    TL_TRY(tl_same_dtype(g, n, 0, 1, diag));
    TL_TRY(tl_same_dtype(g, n, 0, 2, diag));
    bool fits = q->shape.rank == 3 && k->shape.rank == 3 && v->shape.rank == 3 && heads >= 1 &&
                tl_extent(q, 0) == tl_extent(k, 0) && tl_extent(q, 0) == tl_extent(v, 0) &&
                tl_extent(q, 2) == tl_extent(k, 2) && tl_extent(k, 1) == tl_extent(v, 1) &&
                tl_extent(q, 2) % heads == 0 && tl_extent(v, 2) % heads == 0;
    if (!fits)
        return tl_fail_node(diag, TL_BAD_MODEL, n,
                            "%s, %s and %s in %" PRId64 " heads do not fit together",
                            tl_value_text(g, q), tl_value_text(g, k), tl_value_text(g, v), heads);
    if (mask != NULL) {
        int64_t scores[4] = { tl_extent(q, 0), heads, tl_extent(q, 1), tl_extent(k, 1) };
        TL_TRY(tl_same_dtype(g, n, 0, 3, diag));
        fits = mask->shape.rank <= 4;
        for (int i = 1; fits && i <= mask->shape.rank; i++) {
            int64_t e = tl_extent(mask, mask->shape.rank - i);
            fits = e == 1 || e == scores[4 - i];
        }
        if (!fits)
            return tl_fail_node(diag, TL_BAD_MODEL, n, "mask %s does not broadcast to %s",
                                tl_value_text(g, mask), tl_extents_text(g, 4, scores));
    }
    int64_t extents[3] = { tl_extent(q, 0), tl_extent(q, 1), tl_extent(v, 2) };
    return tl_set_output(g, n, 0, q->dtype, 3, extents, diag);
}
