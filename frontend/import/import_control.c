/* frontend/import/import_control.c: If: a branch that is known joins the graph; where data decide, both become bodies of a node,
 * of which a run takes one.
 *
 * What constants, shapes, or the values of single inputs that configure a model decide is known. Results of other extents in
 * both branches have room for either, and are counted. Branches that cannot be bodies (onnx_region.c), or whose results are
 * of other ranks, are both computed, and each result is chosen (onnx_eithers.h), unless the values of all inputs that the
 * condition is computed from are offered. */
#include <string.h>
#include "frontend/import/import_rules.h"
#include "frontend/call/onnx_counts.h"
#include "frontend/call/onnx_eithers.h"
#include "frontend/call/onnx_scope.h"

/* ---- a branch that is known, or both ---- */

static tl_status take_branch(tl_onnx_call *c, const char *name, tl_value **outputs)
{
    const char *prefix = tl_arena_format(c->arena, "%s/", c->name);
    return tl_import_body(c, tl_call_graph(c, name), prefix, 0, NULL, c->output_count, outputs);
}

/* Both branches, and of what they give the one that is chosen. */
static tl_status take_both(tl_onnx_call *c)
{
    tl_value **yes = TL_NEW_ARRAY(c->arena, tl_value *, c->output_count);
    tl_value **no = TL_NEW_ARRAY(c->arena, tl_value *, c->output_count);
    TL_TRY(take_branch(c, "then_branch", yes));
    TL_TRY(take_branch(c, "else_branch", no));
    tl_value *condition = tl_onnx_emit_reshape(c, c->inputs[0], NULL, 0);
    for (int i = 0; i < c->output_count; i++) {
        tl_value *chosen;
        if (!tl_call_wants(c, i))
            continue;
        TL_TRY(tl_choose_value(c, condition, yes[i], no[i], &chosen));
        tl_result(c, i, chosen);
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

/* A result of both branches, with room for either. */
typedef struct {
    int output; /* of the call */
    tl_shape shape;
    bool differs[TL_MAX_RANK];
    tl_value *value, *counts[TL_MAX_RANK]; /* of the node */
} joint_result;

/* The results in one branch, in their order: values in the shape that has room for them, and the extents that they have. */
typedef struct {
    const branch *branch;
    const joint_result *joint;
    int count, output_count;
    tl_value **outputs;
} branch_end;

static tl_status end_branch(tl_onnx_call *c, void *context)
{
    branch_end *e = context;
    e->outputs = TL_NEW_ARRAY(c->arena, tl_value *, e->count * (1 + TL_MAX_RANK) + 1);
    for (int i = 0; i < e->count; i++) {
        const joint_result *j = &e->joint[i];
        tl_value *v = e->branch->outputs[j->output];
        e->outputs[e->output_count++] = tl_onnx_emit_in_shape(c, v, &j->shape);
        for (int axis = 0; axis < j->shape.rank; axis++)
            if (j->differs[axis])
                e->outputs[e->output_count++] = tl_onnx_emit_extent(c, v, axis);
    }
    return TL_OK;
}

/* What the node gives; its outputs in the order of the branches'. */
static tl_value **make_results(tl_onnx_call *c, joint_result *joint, int count, int output_count,
                               const branch *like)
{
    const tl_shape scalar = { .rank = 0 };
    tl_value **results = TL_NEW_ARRAY(c->arena, tl_value *, output_count + 1);
    int at = 0;
    for (int i = 0; i < count; i++) {
        joint_result *j = &joint[i];
        const char *name = tl_arena_format(c->arena, "%s.%d", c->name, at);
        j->value = results[at++] =
            tl_graph_value(c->graph, name, like->outputs[j->output]->dtype, &j->shape);
        for (int axis = 0; axis < j->shape.rank; axis++) {
            if (!j->differs[axis])
                continue;
            name = tl_arena_format(c->arena, "%s.%d", c->name, at);
            j->counts[axis] = results[at++] = tl_graph_value(c->graph, name, TL_I64, &scalar);
        }
    }
    return results;
}

/* False: the branches are not of the kind that can be bodies, or give results of other dtypes or ranks. */
static bool make_choice(tl_onnx_call *c)
{
    static const char *const names[2] = { "then_branch", "else_branch" };
    tl_onnx_region *regions[2];
    branch branches[2];
    branch_end ends[2];
    joint_result *joint = TL_NEW_ARRAY(c->arena, joint_result, c->output_count + 1);
    int input_count, count = 0;
    for (int k = 0; k < 2; k++) {
        branches[k] = (branch){ names[k], TL_NEW_ARRAY(c->arena, tl_value *, c->output_count) };
        if (!tl_try_region(c, read_branch, &branches[k], &regions[k]))
            return false;
    }
    for (int i = 0; i < c->output_count; i++) {
        joint_result *j = &joint[count];
        if (!tl_call_wants(c, i))
            continue;
        j->output = i;
        if (!tl_common_shape(c->import, branches[0].outputs[i], branches[1].outputs[i], &j->shape,
                             j->differs))
            return false;
        for (int k = 0; k < 2; k++) /* counts of two graphs are not the same value */
            for (int axis = 0; axis < j->shape.rank; axis++)
                j->differs[axis] |= tl_extent_is_counted(c->import, branches[k].outputs[i], axis);
        count++;
    }
    if (count == 0)
        return true;
    for (int k = 0; k < 2; k++) {
        ends[k] = (branch_end){ .branch = &branches[k], .joint = joint, .count = count };
        if (!tl_extend_region(c, regions[k], end_branch, &ends[k]))
            return false;
        for (int i = 0; i < ends[k].output_count; i++)
            tl_region_output(regions[k], ends[k].outputs[i]);
    }
    tl_value **results = make_results(c, joint, count, ends[0].output_count, &branches[0]);
    tl_value **inputs = join_inputs(c, regions, &input_count);
    inputs[0] = tl_onnx_emit_reshape(c, c->inputs[0], NULL, 0);
    tl_node *n = tl_graph_node(c->graph, TL_OP_IF, c->name, input_count, inputs,
                               ends[0].output_count, results);
    for (int k = 0; k < 2; k++)
        n->bodies[k] = regions[k]->graph;
    for (int i = 0; i < count; i++) {
        for (int axis = 0; axis < joint[i].shape.rank; axis++)
            tl_set_count(c->import, joint[i].value, axis, joint[i].counts[axis]);
        tl_result(c, joint[i].output, joint[i].value);
    }
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
