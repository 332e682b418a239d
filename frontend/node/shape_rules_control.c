/* frontend/node/shape_rules_control.c: shapes of LOOP and IF: what goes into their bodies, and what comes out of them. */
#include "frontend/frontend.h"
#include "frontend/node/shape_rules.h"

static bool is_like(const tl_value *a, const tl_value *b)
{
    return a->dtype_known && b->dtype_known && a->dtype == b->dtype &&
           tl_shape_equal(&a->shape, &b->shape);
}

/* The number of turns, or a condition. */
static tl_status check_scalar(const tl_node *n, int input, tl_dtype dtype, tl_diag *diag)
{
    const tl_value *v = n->inputs[input];
    if (v == NULL || (v->dtype == dtype && tl_shape_elements(&v->shape) == 1))
        return TL_OK;
    return tl_fail_node(diag, TL_BAD_MODEL, n, "its input %d is not one %s", input,
                        tl_dtype_infos[dtype].text);
}

/* The body's inputs from `own` on are the node's from `before` on. */
static tl_status infer_body(tl_graph *g, const tl_node *n, int which, int before, int own,
                            tl_diag *diag)
{
    tl_graph *body = n->bodies[which];
    if (body->input_count - own != n->input_count - before)
        return tl_fail_node(diag, TL_BAD_IR, n, "%d values for the %d inputs of its body",
                            n->input_count - before, body->input_count - own);
    for (int i = own; i < body->input_count; i++) {
        tl_value *in = body->inputs[i];
        const tl_value *v = n->inputs[before + i - own];
        in->dtype = v->dtype;
        in->dtype_known = v->dtype_known;
        in->shape = v->shape;
    }
    body->without = g->without;
    return tl_infer_shapes(body, diag);
}

static tl_status set_output_from(tl_graph *g, tl_node *n, int output, const tl_value *v,
                                 int64_t turns, tl_diag *diag)
{
    int64_t extents[TL_MAX_RANK + 1] = { turns };
    int rank = turns >= 0;
    for (int i = 0; i < v->shape.rank; i++)
        extents[rank++] = tl_extent(v, i);
    return tl_set_output(g, n, output, v->dtype, rank, extents, diag);
}

tl_status tl_shape_rule_loop(tl_graph *g, tl_node *n, tl_diag *diag)
{
    const tl_graph *body = n->bodies[0];
    int states = (int)tl_attr_int(n, "states", 0), again = tl_attr_int(n, "again", 0) != 0;
    if (n->input_count < 2)
        return tl_fail_node(diag, TL_BAD_IR, n, "it has %d inputs", n->input_count);
    TL_TRY(check_scalar(n, 0, TL_I64, diag));
    TL_TRY(check_scalar(n, 1, TL_BOOL, diag));
    TL_TRY(infer_body(g, n, 0, 2, 1, diag));
    if (body->output_count - again != n->output_count - 1 || states > n->output_count - 1)
        return tl_fail_node(diag, TL_BAD_IR, n, "%d results for the %d of its body",
                            n->output_count, body->output_count);
    if (again &&
        (body->outputs[0]->dtype != TL_BOOL || tl_shape_elements(&body->outputs[0]->shape) != 1))
        return tl_fail_node(diag, TL_BAD_MODEL, n,
                            "the condition that its body gives is not one bool");
    for (int i = 0; i < body->output_count - again; i++) {
        const tl_value *v = body->outputs[again + i];
        if (i < states && !is_like(v, n->inputs[2 + i]))
            return tl_fail_node(diag, TL_BAD_MODEL, n,
                                "its state %d goes in as %s and comes out as %s", i,
                                tl_value_text(g, n->inputs[2 + i]), tl_value_text(g, v));
        TL_TRY(set_output_from(g, n, i, v, i < states ? -1 : tl_attr_int(n, "most", 0), diag));
    }
    return tl_set_output(g, n, n->output_count - 1, TL_I64, 0, NULL, diag);
}

tl_status tl_shape_rule_if(tl_graph *g, tl_node *n, tl_diag *diag)
{
    TL_TRY(check_scalar(n, 0, TL_BOOL, diag));
    for (int k = 0; k < 2; k++) {
        TL_TRY(infer_body(g, n, k, 1, 0, diag));
        if (n->bodies[k]->output_count != n->output_count)
            return tl_fail_node(diag, TL_BAD_IR, n, "%d results for the %d of a branch",
                                n->output_count, n->bodies[k]->output_count);
    }
    for (int i = 0; i < n->output_count; i++) {
        const tl_value *yes = n->bodies[0]->outputs[i], *no = n->bodies[1]->outputs[i];
        if (!is_like(yes, no))
            return tl_fail_node(diag, TL_BAD_MODEL, n, "its branches give %s and %s",
                                tl_value_text(g, yes), tl_value_text(g, no));
        TL_TRY(set_output_from(g, n, i, yes, -1, diag));
    }
    return TL_OK;
}
