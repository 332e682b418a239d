/* ir/graph/graph_verify.c: the invariants of a Graph that every pass of frontend/ may rely on. */
#include <stdint.h>
#include <string.h>
#include "ir/graph/graph.h"
#include "runtime/base/checked.h"
#include "runtime/base/map.h"

static tl_status check_layout(const tl_value *v, tl_diag *diag)
{
    const tl_layout *layout = &v->layout;
    bool seen[TL_MAX_RANK] = { false };
    if (layout->plain)
        return TL_OK;
    for (int i = 0; i < v->shape.rank; i++) {
        int axis = layout->order[i];
        if (axis < 0 || axis >= v->shape.rank || seen[axis])
            return tl_fail(diag, TL_BAD_IR,
                           "value %s: layout order is no permutation of %d axes (axis %d)", v->name,
                           v->shape.rank, axis);
        seen[axis] = true;
        if (layout->block[i] < 1 || layout->halo_before[i] < 0 || layout->halo_after[i] < 0)
            return tl_fail(diag, TL_BAD_IR, "value %s: block or halo of axis %d is out of range",
                           v->name, i);
    }
    return TL_OK;
}

static tl_status check_value(const tl_value *v, tl_diag *diag)
{
    if (v->shape.rank < -1 || v->shape.rank > TL_MAX_RANK)
        return tl_fail(diag, TL_BAD_IR, "value %s: rank %d is not within -1..%d", v->name,
                       v->shape.rank, TL_MAX_RANK);
    if ((unsigned)v->dtype >= TL_DTYPE_COUNT)
        return tl_fail(diag, TL_BAD_IR, "value %s: dtype %d does not exist", v->name, v->dtype);
    for (int i = 0; i < v->shape.rank; i++)
        if (v->shape.dims[i].extent < -1 ||
            (v->shape.dims[i].extent >= 0 && v->shape.dims[i].name != NULL))
            return tl_fail(diag, TL_BAD_IR, "value %s: dimension %d is both a constant and a name",
                           v->name, i);
    if (tl_shape_is_static(&v->shape) &&
        (tl_shape_elements(&v->shape) < 0 ||
         tl_storage_bytes(v->dtype, tl_shape_elements(&v->shape)) < 0))
        return tl_fail(diag, TL_BAD_IR, "value %s: its size overflows", v->name);
    if (v->data != NULL && (!v->dtype_known || !tl_shape_is_static(&v->shape)))
        return tl_fail(diag, TL_BAD_IR, "constant %s has no dtype or no static shape", v->name);
    if ((v->data != NULL) + (v->producer != NULL) + v->is_input != 1)
        return tl_fail(diag, TL_BAD_IR,
                       "value %s: is not exactly one of input, constant, result of a node",
                       v->name);
    return check_layout(v, diag);
}

static tl_status check_attributes(const tl_node *n, tl_diag *diag)
{
    for (int i = 0; i < n->attr_count; i++) {
        tl_attr_type type;
        bool is_dtype;
        const tl_attr *a = &n->attrs[i];
        if (!tl_op_attribute_type(n->op, a->name, &type, &is_dtype))
            return tl_fail(diag, TL_BAD_IR, "node %s: %s has no attribute %s", n->name,
                           tl_op_infos[n->op].text, a->name);
        if (a->type != type)
            return tl_fail(diag, TL_BAD_IR, "node %s: attribute %s has the wrong type", n->name,
                           a->name);
        if (is_dtype && (a->i < 0 || a->i >= TL_DTYPE_COUNT))
            return tl_fail(diag, TL_BAD_IR, "node %s: attribute %s = %lld is no dtype", n->name,
                           a->name, (long long)a->i);
        for (int k = 0; k < i; k++)
            if (strcmp(n->attrs[k].name, a->name) == 0)
                return tl_fail(diag, TL_BAD_IR, "node %s: attribute %s is there twice", n->name,
                               a->name);
    }
    return TL_OK;
}

static tl_status check_value_alike(const tl_node *n, const tl_value *outer, const tl_value *inner,
                                   tl_diag *diag)
{
    if (outer == NULL ||
        (outer->dtype == inner->dtype && tl_shape_equal(&outer->shape, &inner->shape)))
        return TL_OK;
    return tl_fail(diag, TL_BAD_IR, "node %s: %s is not of the type of %s in its body", n->name,
                   outer->name, inner->name);
}

/* What goes into the bodies, and comes out of them, is of one type on both sides (frontend/CANONICAL.md). */
static tl_status check_body(const tl_node *n, const tl_graph *body, tl_diag *diag)
{
    bool is_loop = n->op == TL_OP_LOOP;
    int64_t states = tl_attr_int(n, "states", 0);
    int before = is_loop ? 2 : 1,
        own = is_loop ? 1 : 0; /* inputs of the node, of the body, that are no values handed on */
    int conditions = is_loop && tl_attr_int(n, "again", 0) != 0;
    if (body == NULL || body->extent_count > 0 || n->input_count < before || n->output_count < 1)
        return tl_fail(diag, TL_BAD_IR, "node %s: a body is missing, or has extents", n->name);
    if (body->input_count - own != n->input_count - before ||
        body->output_count - conditions != n->output_count - own || states < 0 ||
        states > n->input_count - before || states > body->output_count - conditions ||
        tl_attr_int(n, "most", 0) < 0)
        return tl_fail(diag, TL_BAD_IR,
                       "node %s: %d inputs and %d outputs do not fit a body of %d and %d", n->name,
                       n->input_count, n->output_count, body->input_count, body->output_count);
    for (int i = own; i < body->input_count; i++) {
        if (n->inputs[i - own + before] == NULL)
            return tl_fail(diag, TL_BAD_IR, "node %s: input %d is missing", n->name,
                           i - own + before);
        TL_TRY(check_value_alike(n, n->inputs[i - own + before], body->inputs[i], diag));
    }
    int alike = is_loop ? (int)states : n->output_count;
    for (int i = 0; i < alike; i++)
        TL_TRY(check_value_alike(n, n->outputs[i], body->outputs[i + conditions], diag));
    for (int i = 0; is_loop && i < alike; i++)
        TL_TRY(check_value_alike(n, n->inputs[2 + i], body->outputs[i + conditions], diag));
    return tl_graph_verify(body, diag);
}

static tl_status check_arity(const tl_node *n, tl_diag *diag)
{
    const tl_op_info *info = &tl_op_infos[n->op];
    int given = n->input_count;
    if (given < info->min_inputs || (info->max_inputs >= 0 && given > info->max_inputs))
        return tl_fail(diag, TL_BAD_IR, "node %s: %s has %d inputs, %d to %d are allowed", n->name,
                       info->text, given, info->min_inputs, info->max_inputs);
    if (info->outputs >= 0 && n->output_count != info->outputs)
        return tl_fail(diag, TL_BAD_IR, "node %s: %s has %d outputs, not %d", n->name, info->text,
                       n->output_count, info->outputs);
    for (int i = 0; i < info->min_inputs; i++)
        if (n->inputs[i] == NULL)
            return tl_fail(diag, TL_BAD_IR, "node %s: input %d of %s is required", n->name, i,
                           info->text);
    for (int i = 0; i < tl_op_bodies(n->op); i++)
        TL_TRY(check_body(n, n->bodies[i], diag));
    return TL_OK;
}

/* `defined` maps the values that the nodes so far may read. */
static tl_status check_node(const tl_graph *g, const tl_node *n, bool *defined, tl_diag *diag)
{
    if ((unsigned)n->op >= TL_OP_COUNT)
        return tl_fail(diag, TL_BAD_IR, "node %s: operator %d does not exist", n->name, n->op);
    TL_TRY(check_arity(n, diag));
    TL_TRY(check_attributes(n, diag));
    for (int i = 0; i < n->input_count; i++) {
        const tl_value *v = n->inputs[i];
        if (v == NULL)
            continue;
        if (v->index < 0 || v->index >= g->value_count || g->values[v->index] != v)
            return tl_fail(diag, TL_BAD_IR, "node %s reads value %s, which is not in the graph",
                           n->name, v->name);
        if (!defined[v->index])
            return tl_fail(diag, TL_BAD_IR, "node %s reads value %s before it is computed", n->name,
                           v->name);
    }
    for (int i = 0; i < n->output_count; i++) {
        const tl_value *v = n->outputs[i];
        if (v == NULL)
            continue;
        if (v->index < 0 || v->index >= g->value_count || g->values[v->index] != v)
            return tl_fail(diag, TL_BAD_IR, "node %s computes value %s, which is not in the graph",
                           n->name, v->name);
        if (v->producer != n || defined[v->index])
            return tl_fail(diag, TL_BAD_IR, "value %s is computed twice, once by node %s", v->name,
                           n->name);
        defined[v->index] = true;
    }
    return TL_OK;
}

static tl_status check_outside(const tl_graph *g, const bool *defined, tl_diag *diag)
{
    for (int i = 0; i < g->input_count; i++)
        if (!g->inputs[i]->is_input)
            return tl_fail(diag, TL_BAD_IR, "input %s is not marked as one", g->inputs[i]->name);
    for (int i = 0; i < g->output_count; i++) {
        const tl_value *v = g->outputs[i];
        if (v->index < 0 || v->index >= g->value_count || g->values[v->index] != v ||
            !v->is_output || !defined[v->index])
            return tl_fail(diag, TL_BAD_IR, "output %s is not computed in the graph", v->name);
    }
    return TL_OK;
}

static tl_status check_graph(const tl_graph *g, tl_arena *scratch, tl_diag *diag)
{
    bool *defined = TL_NEW_ARRAY(scratch, bool, g->value_count);
    tl_map *names = tl_map_create(scratch);
    for (int i = 0; i < g->value_count; i++) {
        tl_value *v = g->values[i];
        TL_TRY(check_value(v, diag));
        if (v->index != i)
            return tl_fail(diag, TL_BAD_IR, "value %s: index %d is not its position %d", v->name,
                           v->index, i);
        if (tl_map_has(names, v->name))
            return tl_fail(diag, TL_BAD_IR, "two values are called %s", v->name);
        tl_map_put(names, v->name, v);
        defined[i] = v->producer == NULL;
    }
    for (int i = 0; i < g->node_count; i++)
        if (!g->nodes[i]->dead)
            TL_TRY(check_node(g, g->nodes[i], defined, diag));
    return check_outside(g, defined, diag);
}

tl_status tl_graph_verify(const tl_graph *g, tl_diag *diag)
{
    tl_arena *scratch = tl_arena_create(0);
    if (scratch == NULL || TL_ARENA_GUARD(scratch)) {
        tl_arena_destroy(scratch);
        return tl_fail(diag, TL_NO_MEMORY, "graph %s: no memory to verify it", g->name);
    }
    tl_status status = check_graph(g, scratch, diag);
    tl_arena_destroy(scratch);
    return status;
}
