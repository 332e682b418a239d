/* frontend/node/infer_shapes.c: walks the nodes in order and applies their rules.
 *
 * Operands that decide shapes have to be constants by the time their node is reached, so integer, bool and small
 * float nodes that depend on constants and shapes alone are folded on the way: shape arithmetic vanishes here. */
#include <stdio.h>
#include <string.h>
#include "frontend/frontend.h"
#include "frontend/node/fold_node.h"
#include "frontend/node/shape_rules.h"

/* What rules may rely on: enough inputs, each with a dtype and a static shape. */
static tl_status check_inputs(const tl_node *n, tl_diag *diag)
{
    const tl_op_info *info = &tl_op_infos[n->op];
    if (n->input_count < info->min_inputs ||
        (info->max_inputs >= 0 && n->input_count > info->max_inputs))
        return tl_fail_node(diag, TL_BAD_MODEL, n, "it has %d inputs", n->input_count);
    for (int i = 0; i < n->input_count; i++) {
        const tl_value *v = n->inputs[i];
        if (v == NULL && i < info->min_inputs)
            return tl_fail_node(diag, TL_BAD_MODEL, n, "its input %d is missing", i);
        if (v != NULL && (!v->dtype_known || v->shape.rank < 0))
            return tl_fail_node(diag, TL_BAD_MODEL, n, "nothing is known about its input '%.120s'",
                                v->name);
        if (v != NULL && !tl_shape_is_addressable(&v->shape, v->dtype))
            return tl_fail_node(diag, TL_BAD_MODEL, n, "the size of its input '%.120s' overflows",
                                v->name);
    }
    return TL_OK;
}

tl_status tl_check_graph_input(const tl_value *v, tl_diag *diag)
{
    if (!v->dtype_known || v->shape.rank < 0)
        return tl_fail(diag, TL_BAD_MODEL, "graph input '%.200s' has no %s", v->name,
                       v->dtype_known ? "shape" : "dtype");
    for (int i = 0; i < v->shape.rank; i++) {
        const char *name = v->shape.dims[i].name;
        if (v->shape.dims[i].extent < 0)
            return tl_fail(diag, TL_UNBOUND,
                           "axis %d of graph input '%.200s' (%.80s) is open: give its shape", i,
                           v->name, name != NULL ? name : "?");
    }
    if (!tl_shape_is_addressable(&v->shape, v->dtype))
        return tl_fail(diag, TL_BAD_MODEL, "the size of graph input '%.200s' overflows", v->name);
    return TL_OK;
}

/* Numbers of four bits, a byte each, are only moved, chosen and cast. */
static tl_status check_narrow(const tl_node *n, tl_diag *diag)
{
    tl_operator_kind kind = tl_operators[n->op].kind;
    bool moves = kind == TL_KIND_LAYOUT || kind == TL_KIND_VANISHING || n->op == TL_OP_CAST ||
                 n->op == TL_OP_IDENTITY || n->op == TL_OP_WHERE;
    for (int i = 0; !moves && i < n->output_count; i++) {
        const tl_value *v = n->outputs[i];
        if (v != NULL && tl_dtype_is_int(v->dtype) &&
            tl_dtype_infos[v->dtype].digits < tl_dtype_infos[v->dtype].bits)
            return tl_fail_node(diag, TL_UNSUPPORTED, n, "numbers of %s are not computed with",
                                tl_dtype_infos[v->dtype].text);
    }
    return TL_OK;
}

static tl_status infer_node(tl_graph *g, tl_node *n, tl_diag *diag)
{
    TL_TRY(check_inputs(n, diag));
    TL_TRY(tl_bind_operands(g, n, diag));
    TL_TRY(tl_operators[n->op].shape(g, n, diag));
    TL_TRY(check_narrow(n, diag));
    TL_TRY(tl_check_constants(g, n, diag));
    if (tl_node_may_decide_shapes(n) && tl_node_is_foldable(g, n))
        return tl_fold_node(g, n, diag);
    return TL_OK;
}

static bool reads_unknown(const tl_node *n)
{
    for (int i = 0; i < n->input_count; i++) {
        const tl_value *v = n->inputs[i];
        if (v != NULL && (!v->dtype_known || v->shape.rank < 0))
            return true;
    }
    return false;
}

/* Adds a refused node's sentence to those before it; what no longer fits is left out. */
static void add_refusal(tl_diag *all, const tl_diag *one, int before)
{
    size_t used = strlen(all->text), left = sizeof all->text - used;
    if (before == 0)
        *all = *one;
    else if (strlen(one->text) + 4 < left)
        snprintf(all->text + used, left, "\n  %.*s", (int)(left - 4), one->text);
}

tl_status tl_infer_shapes(tl_graph *g, tl_diag *diag)
{
    tl_diag all = { 0 };
    int refused = 0;
    TL_TRY(tl_graph_tidy(g, diag));
    for (int i = 0; i < g->input_count; i++)
        TL_TRY(tl_check_graph_input(g->inputs[i], diag));
    for (int i = 0; i < g->node_count; i++) {
        tl_diag one;
        one.text[0] = '\0';
        if (refused > 0 && reads_unknown(g->nodes[i]))
            continue; /* it comes after what was refused */
        tl_status status = infer_node(g, g->nodes[i], &one);
        if (status == TL_UNSUPPORTED)
            add_refusal(&all, &one, refused++);
        else if (status != TL_OK)
            return tl_fail(diag, status, "%s", one.text);
    }
    if (refused > 0)
        return tl_fail(diag, TL_UNSUPPORTED, "%s", all.text);
    return tl_graph_tidy(g, diag);
}
