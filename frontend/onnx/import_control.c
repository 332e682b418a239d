/* frontend/onnx/import_control.c: If: a branch that is known joins the graph; where data decide, both become bodies of a node,
 * of which a run takes one.
 *
 * What constants, shapes, or the values of single inputs that configure a model decide is known. Branches that cannot be
 * bodies (onnx_region.c) are both computed, and each result is chosen, unless the values of all inputs that the condition
 * is computed from are offered. */
#include <string.h>
#include "frontend/onnx/import_rules.h"
#include "frontend/onnx/onnx_counts.h"
#include "frontend/onnx/onnx_scope.h"

/* ---- a branch that is known, or both ---- */

static tl_status take_branch(tl_onnx_call *c, const char *name, tl_value **outputs)
{
    const char *prefix = tl_arena_format(c->arena, "%s/", c->name);
    return tl_import_body(c, tl_call_graph(c, name), prefix, 0, NULL, c->output_count, outputs);
}

/* Both branches, which have to agree in what they give. */
static tl_status take_both(tl_onnx_call *c)
{
    tl_value **yes = TL_NEW_ARRAY(c->arena, tl_value *, c->output_count);
    tl_value **no = TL_NEW_ARRAY(c->arena, tl_value *, c->output_count);
    TL_TRY(take_branch(c, "then_branch", yes));
    TL_TRY(take_branch(c, "else_branch", no));
    tl_value *condition = tl_onnx_emit_reshape(c, c->inputs[0], NULL, 0);
    for (int i = 0; i < c->output_count; i++) {
        if (!tl_call_wants(c, i))
            continue;
        bool known = tl_shape_is_static(&yes[i]->shape) && tl_shape_is_static(&no[i]->shape);
        if (!known || yes[i]->dtype != no[i]->dtype ||
            !tl_shape_equal(&yes[i]->shape, &no[i]->shape))
            return tl_call_unknown(c, "branches of different shapes, which data decide");
        tl_result(c, i, tl_onnx_emit_where(c, condition, yes[i], no[i]));
    }
    return TL_OK;
}

/* ---- bodies of a node ---- */

typedef struct {
    const char *name;
    tl_value **outputs;
} branch;

static tl_status read_branch(tl_onnx_call *c, void *context)
{
    const branch *b = context;
    return take_branch(c, b->name, b->outputs);
}

/* The inputs of the node, which both branches have: what either reads. */
static tl_value **join_inputs(tl_onnx_call *c, tl_onnx_region *const branches[2], int *count)
{
    tl_value **all =
        TL_NEW_ARRAY(c->arena, tl_value *, 1 + branches[0]->count + branches[1]->count);
    *count = 1;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < branches[k]->count; i++) {
            tl_value *v = branches[k]->captured[i];
            int at = 1;
            while (at < *count && all[at] != v)
                at++;
            all[at] = v;
            *count += at == *count;
        }
    for (int k = 0; k < 2; k++) {
        tl_graph *body = branches[k]->graph;
        for (int i = 1; i < *count; i++)
            tl_region_capture(c->import, branches[k], all[i]);
        for (int i = 1; i < *count; i++) /* in the order of the node's */
            for (int j = 0; j < branches[k]->count; j++)
                if (branches[k]->captured[j] == all[i])
                    body->inputs[i - 1] = branches[k]->inputs[j];
    }
    return all;
}

static bool are_alike(const tl_import *im, const tl_value *a, const tl_value *b)
{
    return tl_counts_of(im, a) == NULL && tl_counts_of(im, b) == NULL && a->dtype_known &&
           b->dtype_known && a->dtype == b->dtype && tl_shape_is_static(&a->shape) &&
           tl_shape_equal(&a->shape, &b->shape);
}

/* False: the branches are not of the kind that can be bodies, or do not give the same types. */
static bool make_choice(tl_onnx_call *c)
{
    static const char *const names[2] = { "then_branch", "else_branch" };
    tl_onnx_region *regions[2];
    branch branches[2];
    int count, wanted = 0;
    for (int k = 0; k < 2; k++) {
        branches[k] = (branch){ names[k], TL_NEW_ARRAY(c->arena, tl_value *, c->output_count) };
        if (!tl_try_region(c, read_branch, &branches[k], &regions[k]))
            return false;
    }
    for (int i = 0; i < c->output_count; i++)
        if (!are_alike(c->import, branches[0].outputs[i], branches[1].outputs[i]))
            return false;
    tl_value **results = TL_NEW_ARRAY(c->arena, tl_value *, c->output_count);
    tl_value **inputs = join_inputs(c, regions, &count);
    inputs[0] = tl_onnx_emit_reshape(c, c->inputs[0], NULL, 0);
    for (int i = 0; i < c->output_count; i++) {
        if (!tl_call_wants(c, i))
            continue;
        const tl_value *like = branches[0].outputs[i];
        const char *name = tl_arena_format(c->arena, "%s.%d", c->name, wanted);
        results[wanted++] = tl_graph_value(c->graph, name, like->dtype, &like->shape);
        for (int k = 0; k < 2; k++)
            tl_region_output(regions[k], branches[k].outputs[i]);
    }
    if (wanted == 0)
        return true;
    tl_node *n = tl_graph_node(c->graph, TL_OP_IF, c->name, count, inputs, wanted, results);
    for (int k = 0; k < 2; k++)
        n->bodies[k] = regions[k]->graph;
    for (int i = 0, at = 0; i < c->output_count; i++)
        if (tl_call_wants(c, i))
            tl_result(c, i, results[at++]);
    return true;
}

tl_status tl_import_if(tl_onnx_call *c)
{
    double condition;
    size_t needed = tl_map_count(c->import->needed);
    if (!tl_call_has(c, "then_branch") || !tl_call_has(c, "else_branch"))
        return tl_call_bad(c, "both branches are required");
    TL_TRY(tl_need_dtype(c, c->inputs[0]));
    if (!tl_call_is_configured(c, c->inputs[0])) {
        if (c->import->is_open)
            return tl_call_unknown(c, "a branch that is not decided yet");
        if (make_choice(c))
            return TL_OK;
    }
    TL_TRY(tl_call_decide(c, &c->inputs[0]));
    if (tl_constant_number(c->inputs[0], &condition)) {
        tl_value **outputs = TL_NEW_ARRAY(c->arena, tl_value *, c->output_count);
        TL_TRY(take_branch(c, condition != 0 ? "then_branch" : "else_branch", outputs));
        for (int i = 0; i < c->output_count; i++)
            tl_result(c, i, outputs[i]);
        return TL_OK;
    }
    if (tl_map_count(c->import->needed) > needed || c->import->is_open)
        return tl_call_unknown(c, "a branch that is not decided yet");
    return take_both(c);
}
