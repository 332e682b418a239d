/* ir/graph/graph.c: the Graph container: values, nodes, attributes, and tidying after a pass. */
#include "ir/graph/graph.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include "ir/graph/graph_private.h"
#include "runtime/base/array.h"
#include "runtime/base/pages.h"

const tl_op_info tl_op_infos[TL_OP_COUNT] = {
#define OP(name, text, min_inputs, max_inputs, outputs, attributes) \
    [TL_OP_##name] = { #name, text, min_inputs, max_inputs, outputs, attributes },
#include "ir/graph/graph_ops.def"
#undef OP
};

bool tl_op_from_text(const char *text, tl_op *out)
{
    for (int op = 0; op < TL_OP_COUNT; op++) {
        if (strcmp(tl_op_infos[op].text, text) == 0) {
            *out = (tl_op)op;
            return true;
        }
    }
    return false;
}

bool tl_op_attribute_type(tl_op op, const char *name, tl_attr_type *type, bool *is_dtype)
{
    assert(op < TL_OP_COUNT);
    size_t length = strlen(name);
    const char *at = tl_op_infos[op].attributes;
    while (*at != '\0') {
        size_t word = strcspn(at, ":"), rest = strcspn(at, " ");
        if (word == length && memcmp(at, name, length) == 0) {
            const char *letters = at + word + 1;
            bool list = rest - word - 1 == 2;
            *is_dtype = letters[0] == 'd';
            switch (letters[0]) {
            case 'i':
            case 'd':
                *type = list ? TL_ATTR_INTS : TL_ATTR_INT;
                return true;
            case 'f':
                *type = list ? TL_ATTR_FLOATS : TL_ATTR_FLOAT;
                return true;
            default:
                *type = TL_ATTR_STRING;
                return true;
            }
        }
        at += rest;
        at += strspn(at, " ");
    }
    return false;
}

tl_graph *tl_graph_create(tl_arena *arena, const char *name)
{
    tl_graph *g = TL_NEW(arena, tl_graph);
    g->arena = arena;
    g->name = tl_arena_strdup(arena, name);
    return g;
}

tl_value *tl_graph_value(tl_graph *g, const char *name, tl_dtype dtype, const tl_shape *shape)
{
    assert(name != NULL && dtype <= TL_DTYPE_COUNT);
    tl_value *v = TL_NEW(g->arena, tl_value);
    v->name = tl_arena_strdup(g->arena, name);
    v->dtype = dtype;
    v->dtype_known = dtype != TL_DTYPE_COUNT;
    if (!v->dtype_known)
        v->dtype = TL_F32;
    v->shape.rank = -1;
    if (shape != NULL)
        v->shape = *shape;
    v->layout = tl_layout_plain();
    TL_ROOM(g->arena, g->values, g->value_count, g->value_capacity);
    v->index = g->value_count;
    g->values[g->value_count++] = v;
    return v;
}

tl_value *tl_graph_constant(tl_graph *g, const char *name, tl_dtype dtype, const tl_shape *shape,
                            const void *data)
{
    static const char nothing[8];
    assert(shape != NULL && tl_shape_is_static(shape));
    tl_value *v = tl_graph_value(g, name, dtype, shape);
    assert(data != NULL || tl_shape_elements(shape) == 0);
    v->data = data != NULL ? data : nothing;
    return v;
}

/* ---- uses ---- */

static void link_use(tl_node *n, int index)
{
    assert(index >= 0 && index < n->input_count && n->uses != NULL);
    tl_value *v = n->inputs[index];
    tl_use *use = &n->uses[index];
    *use = (tl_use){ .node = n };
    if (v == NULL || n->dead)
        return;
    use->previous = v->last_use;
    if (v->last_use != NULL)
        v->last_use->next = use;
    else
        v->first_use = use;
    v->last_use = use;
    v->use_count++;
}

static void unlink_use(tl_node *n, int index)
{
    assert(index >= 0 && index < n->input_count);
    tl_value *v = n->inputs[index];
    if (n->uses == NULL || v == NULL || n->dead)
        return;
    tl_use *use = &n->uses[index];
    if (use->previous != NULL)
        use->previous->next = use->next;
    else
        v->first_use = use->next;
    if (use->next != NULL)
        use->next->previous = use->previous;
    else
        v->last_use = use->previous;
    v->use_count--;
}

void tl_graph_rest(const tl_graph *g, const tl_value *constant)
{
    const int64_t least = 256 << 10; /* bytes, that a call of the system is worth */
    int64_t size = tl_storage_bytes(constant->dtype, tl_shape_elements(&constant->shape));
    if (constant->data == NULL || size < least)
        return;
    if ((g->is_mapped != NULL && g->is_mapped(g->mapped_by, constant->data, (size_t)size)) ||
        tl_arena_is_spilled(g->arena, constant->data, (size_t)size))
        tl_pages_rest(constant->data, (size_t)size);
}

void tl_node_set_input(tl_node *n, int index, tl_value *v)
{
    assert(index >= 0 && index < n->input_count);
    unlink_use(n, index);
    ((tl_value **)(uintptr_t)n->inputs)[index] = v;
    if (n->uses != NULL)
        link_use(n, index);
}

void tl_node_set_inputs(tl_graph *g, tl_node *n, int count, tl_value *const *inputs)
{
    assert(count >= 0 && (count == 0 || inputs != NULL));
    tl_value **copy = TL_NEW_ARRAY(g->arena, tl_value *, count);
    if (count > 0)
        memcpy(copy, inputs, sizeof *copy * (size_t)count);
    tl_node_keep_inputs(n, 0);
    n->inputs = copy;
    n->input_count = count;
    n->uses = TL_NEW_ARRAY(g->arena, tl_use, count);
    for (int i = 0; i < count; i++)
        link_use(n, i);
}

void tl_node_keep_inputs(tl_node *n, int count)
{
    assert(count >= 0);
    assert(count <= n->input_count);
    for (int i = count; i < n->input_count; i++)
        unlink_use(n, i);
    n->input_count = count;
}

void tl_node_kill(tl_node *n)
{
    for (int i = 0; i < n->input_count; i++)
        unlink_use(n, i);
    n->dead = true;
}

void tl_graph_sort_uses(tl_graph *g)
{
    for (int i = 0; i < g->value_count; i++) {
        g->values[i]->first_use = g->values[i]->last_use = NULL;
        g->values[i]->use_count = 0;
    }
    for (int i = 0; i < g->node_count; i++)
        for (int k = 0; k < g->nodes[i]->input_count; k++)
            link_use(g->nodes[i], k);
}

tl_node *tl_graph_node(tl_graph *g, tl_op op, const char *name, int input_count,
                       tl_value *const *inputs, int output_count, tl_value *const *outputs)
{
    assert(op < TL_OP_COUNT && name != NULL && output_count > 0);
    tl_node *n = TL_NEW(g->arena, tl_node);
    n->op = op;
    n->name = tl_arena_strdup(g->arena, name);
    n->output_count = output_count;
    tl_node_set_inputs(g, n, input_count, inputs);
    n->outputs = TL_NEW_ARRAY(g->arena, tl_value *, output_count);
    n->bodies = tl_op_bodies(op) > 0 ? TL_NEW_ARRAY(g->arena, tl_graph *, tl_op_bodies(op)) : NULL;
    for (int i = 0; i < output_count; i++) {
        n->outputs[i] = outputs[i];
        if (outputs[i] != NULL)
            outputs[i]->producer = n;
    }
    TL_ROOM(g->arena, g->nodes, g->node_count, g->node_capacity);
    g->nodes[g->node_count++] = n;
    return n;
}

void tl_graph_add_input(tl_graph *g, tl_value *v)
{
    assert(!v->is_input && v->producer == NULL && v->data == NULL);
    v->is_input = true;
    TL_ROOM(g->arena, g->inputs, g->input_count, g->input_capacity);
    g->inputs[g->input_count++] = v;
}

void tl_graph_add_output(tl_graph *g, tl_value *v)
{
    v->is_output = true;
    TL_ROOM(g->arena, g->outputs, g->output_count, g->output_capacity);
    g->outputs[g->output_count++] = v;
    if (g->extent_count == 0)
        g->shown_count = g->output_count;
}

void tl_graph_set_extent(tl_graph *g, int output, int axis, tl_value *count)
{
    assert(count->dtype == TL_I64 && tl_shape_elements(&count->shape) == 1);
    int shown = g->shown_count, at = shown;
    assert(output < shown);
    while (at < g->output_count && g->outputs[at] != count)
        at++;
    if (at == g->output_count)
        tl_graph_add_output(g, count);
    g->shown_count = shown;
    TL_ROOM(g->arena, g->extents, g->extent_count, g->extent_capacity);
    g->extents[g->extent_count++] = (tl_output_extent){ output, axis, at };
}

void tl_graph_visit(const tl_graph *g, tl_graph_visitor *visit, void *context)
{
    visit(g, context);
    for (int i = 0; i < g->node_count; i++)
        for (int k = 0; k < tl_op_bodies(g->nodes[i]->op); k++)
            tl_graph_visit(g->nodes[i]->bodies[k], visit, context);
}

bool tl_value_crosses_regions(const tl_value *v)
{
    if (v->producer != NULL && tl_op_bodies(v->producer->op) > 0)
        return true;
    for (const tl_use *use = v->first_use; use != NULL; use = use->next)
        if (tl_op_bodies(use->node->op) > 0)
            return true;
    return false;
}

tl_value *tl_graph_find(const tl_graph *g, const char *name)
{
    for (int i = 0; i < g->value_count; i++)
        if (strcmp(g->values[i]->name, name) == 0)
            return g->values[i];
    return NULL;
}

int tl_graph_users(const tl_value *v)
{
    assert(v->use_count >= 0 && (v->use_count == 0) == (v->first_use == NULL));
    return v->use_count + v->is_output;
}

/* `from` stays a graph output under its name, computed from now on as a copy of `to`. */
static void keep_as_copy(tl_graph *g, tl_value *from, tl_value *to)
{
    tl_node *old = from->producer;
    if (old != NULL)
        for (int i = 0; i < old->output_count; i++)
            if (old->outputs[i] == from)
                old->outputs[i] = NULL;
    tl_graph_node(g, TL_OP_IDENTITY, from->name, 1, &to, 1, &from);
}

void tl_graph_replace_value(tl_graph *g, tl_value *from, tl_value *to)
{
    assert(from != to);
    for (tl_use *use = from->first_use, *next; use != NULL; use = next) {
        next = use->next;
        if (use->node != to->producer)
            tl_node_set_input(use->node, (int)(use - use->node->uses), to);
    }
    if (!from->is_output)
        return;
    if (to->is_input || to->is_output || to->data != NULL) {
        keep_as_copy(g, from, to);
        return;
    }
    for (int i = 0; i < g->output_count; i++)
        if (g->outputs[i] == from)
            g->outputs[i] = to;
    from->is_output = false;
    to->is_output = true;
    const char *name = from->name; /* the world knows the output by this name */
    from->name = to->name;
    to->name = name;
}

/* ---- attributes ---- */

const tl_attr *tl_attr_find(const tl_node *n, const char *name)
{
    for (int i = 0; i < n->attr_count; i++)
        if (strcmp(n->attrs[i].name, name) == 0)
            return &n->attrs[i];
    return NULL;
}

int64_t tl_attr_int(const tl_node *n, const char *name, int64_t otherwise)
{
    const tl_attr *a = tl_attr_find(n, name);
    return a != NULL && a->type == TL_ATTR_INT ? a->i : otherwise;
}

double tl_attr_float(const tl_node *n, const char *name, double otherwise)
{
    const tl_attr *a = tl_attr_find(n, name);
    return a != NULL && a->type == TL_ATTR_FLOAT ? a->f : otherwise;
}

const char *tl_attr_string(const tl_node *n, const char *name, const char *otherwise)
{
    const tl_attr *a = tl_attr_find(n, name);
    return a != NULL && a->type == TL_ATTR_STRING ? a->s : otherwise;
}

int tl_attr_ints(const tl_node *n, const char *name, const int64_t **out)
{
    const tl_attr *a = tl_attr_find(n, name);
    if (a == NULL || a->type != TL_ATTR_INTS) {
        *out = NULL;
        return -1;
    }
    *out = a->ints;
    return a->count;
}

/* The attribute `name`, emptied; made when it is not there. */
static tl_attr *attr_slot(tl_graph *g, tl_node *n, const char *name, tl_attr_type type)
{
    int at = 0;
    while (at < n->attr_count && strcmp(n->attrs[at].name, name) != 0)
        at++;
    assert(at <= n->attr_count);
    if (at == n->attr_count) {
        tl_attr *larger = TL_NEW_ARRAY(g->arena, tl_attr, n->attr_count + 1);
        if (n->attr_count > 0)
            memcpy(larger, n->attrs, sizeof *larger * (size_t)n->attr_count);
        n->attrs = larger;
        n->attr_count++;
    }
    n->attrs[at] = (tl_attr){ .name = tl_arena_strdup(g->arena, name), .type = type };
    return &n->attrs[at];
}

void tl_attr_set_int(tl_graph *g, tl_node *n, const char *name, int64_t value)
{
    attr_slot(g, n, name, TL_ATTR_INT)->i = value;
}

void tl_attr_set_float(tl_graph *g, tl_node *n, const char *name, double value)
{
    attr_slot(g, n, name, TL_ATTR_FLOAT)->f = value;
}

void tl_attr_set_string(tl_graph *g, tl_node *n, const char *name, const char *value)
{
    const char *copy = tl_arena_strdup(g->arena, value);
    attr_slot(g, n, name, TL_ATTR_STRING)->s = copy;
}

void tl_attr_set_ints(tl_graph *g, tl_node *n, const char *name, const int64_t *values, int count)
{
    int64_t *copy = TL_NEW_ARRAY(g->arena, int64_t, count);
    if (count > 0)
        memcpy(copy, values, sizeof *copy * (size_t)count);
    tl_attr *a = attr_slot(g, n, name, TL_ATTR_INTS);
    a->ints = copy;
    a->count = count;
}

void tl_attr_set_floats(tl_graph *g, tl_node *n, const char *name, const double *values, int count)
{
    double *copy = TL_NEW_ARRAY(g->arena, double, count);
    if (count > 0)
        memcpy(copy, values, sizeof *copy * (size_t)count);
    tl_attr *a = attr_slot(g, n, name, TL_ATTR_FLOATS);
    a->floats = copy;
    a->count = count;
}

void tl_attr_remove(tl_node *n, const char *name)
{
    for (int i = 0; i < n->attr_count; i++) {
        if (strcmp(n->attrs[i].name, name) == 0) {
            memmove(&n->attrs[i], &n->attrs[i + 1],
                    sizeof *n->attrs * (size_t)(n->attr_count - i - 1));
            n->attr_count--;
            return;
        }
    }
}

void tl_graph_dump(const tl_graph *g)
{
    tl_text text = { 0 };
    tl_graph_print(g, &text);
    fputs(tl_text_get(&text), stderr);
    tl_text_free(&text);
}
