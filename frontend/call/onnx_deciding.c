/* frontend/call/onnx_deciding.c: values that must be known when a model is read, because a shape or a branch depends on them.
 *
 *     Reshape(x, s), s = Concat(b, [-1]), b an input     If(Equal(sr, 16000)), sr an input
 *
 * What such a value is computed from is evaluated, back to the model's inputs; these are bound to the values that the caller
 * offers, and what reads them reads constants from then on. The inputs stay in the signature: the graph remembers what they
 * are bound to (tl_onnx_bound). An input that is needed and not offered is named in the end, with all others. */
#include <string.h>
#include "frontend/call/onnx_scope.h"
#include "frontend/node/fold_node.h"
#include "frontend/node/shape_rules.h"

/* Nodes between a value and the inputs it is computed from: more are no shape arithmetic. */
enum { MOST_NODES = 1 << 14 };

typedef struct {
    tl_value *value;
    int next_input;
} frame;

/* A walk from a value back to the inputs; its memory serves all walks of an import. */
struct tl_onnx_walk {
    tl_onnx_call *call;
    int *seen_at; /* by the value's index: the last walk that came by */
    int seen_capacity, walk_number;
    frame *stack;
    tl_value **found; /* in an order in which each comes after what it is computed from */
    int found_count;
};
typedef struct tl_onnx_walk walk;

static walk *start_walk(tl_onnx_call *c)
{
    tl_import *im = c->import;
    walk *w = im->walk;
    if (w == NULL) {
        w = im->walk = TL_NEW(im->arena, walk);
        w->stack = TL_NEW_ARRAY(im->arena, frame, MOST_NODES);
        w->found = TL_NEW_ARRAY(im->arena, tl_value *, MOST_NODES);
    }
    if (w->seen_capacity < im->graph->value_count) {
        w->seen_capacity = 2 * im->graph->value_count;
        w->seen_at = TL_NEW_ARRAY(im->arena, int, w->seen_capacity);
    }
    w->call = c;
    w->walk_number++;
    w->found_count = 0;
    return w;
}

/* Whether the walk has not been at `v` yet. */
static bool is_new(walk *w, const tl_value *v)
{
    if (w->seen_at[v->index] == w->walk_number)
        return false;
    w->seen_at[v->index] = w->walk_number;
    return true;
}

static bool is_offered(const tl_shape_override *o, const tl_value *input)
{
    return strcmp(o->name, input->name) == 0 && o->value != NULL && o->dtype == input->dtype &&
           tl_shape_equal(&o->shape, &input->shape);
}

static const tl_shape_override *offer_for(const tl_import *im, const tl_value *input)
{
    for (int i = 0; i < im->shape_count; i++)
        if (is_offered(&im->shapes[i], input))
            return &im->shapes[i];
    return NULL;
}

/* A Shape is known without its operand; everything else needs all that it reads. */
static int inputs_to_follow(const tl_value *v)
{
    bool is_leaf = v->producer == NULL || v->producer->op == TL_OP_SHAPE;
    return is_leaf ? 0 : v->producer->input_count;
}

/* Whether `v` is computed from constants and inputs alone, by small nodes: those on the way, inputs first. */
static bool find_origins(walk *w, tl_value *v)
{
    int depth = 0, seen = 1;
    w->stack[depth++] = (frame){ v, 0 };
    is_new(w, v);
    while (depth > 0) {
        frame *top = &w->stack[depth - 1];
        if (top->next_input < inputs_to_follow(top->value)) {
            tl_value *next = top->value->producer->inputs[top->next_input++];
            if (next == NULL || next->data != NULL || !is_new(w, next))
                continue;
            if (++seen > MOST_NODES)
                return false;
            w->stack[depth++] = (frame){ next, 0 };
            continue;
        }
        int64_t elements = tl_shape_elements(&top->value->shape);
        bool is_leaf = top->value->producer == NULL;
        if (!is_leaf && tl_op_bodies(top->value->producer->op) > 0)
            return false;
        if (!top->value->dtype_known || elements < 0 || elements > TL_DECIDING_ELEMENTS ||
            (is_leaf && (!top->value->is_input || w->call->import->region != NULL)))
            return false;
        w->found[w->found_count++] = top->value;
        depth--;
    }
    return true;
}

/* The input's name now stands for the constant, in every scope that sees it. */
static void rebind(tl_onnx_scope *s, const tl_value *input, tl_value *constant)
{
    for (; s != NULL; s = (tl_onnx_scope *)(uintptr_t)(s->parent != NULL ? s->parent : s->caller)) {
        size_t count = tl_map_count(s->bindings);
        for (size_t i = 0; i < count; i++) {
            tl_onnx_binding *b = tl_map_at(s->bindings, i).value;
            if (b->value == input)
                b->value = constant;
        }
    }
}

static tl_value *bind_input(tl_onnx_call *c, tl_value *input, const tl_shape_override *offer)
{
    tl_import *im = c->import;
    size_t size = (size_t)tl_shape_elements(&input->shape) * tl_dtype_size(input->dtype);
    const void *data = tl_arena_copy(im->arena, offer->value, size, 64);
    const char *name = tl_arena_format(im->arena, "%s.bound", input->name);
    tl_value *constant = tl_graph_constant(im->graph, name, input->dtype, &input->shape, data);
    while (input->first_use != NULL) {
        tl_node *n = input->first_use->node;
        tl_node_set_input(n, (int)(input->first_use - n->uses), constant);
    }
    rebind(im->current, input, constant);
    for (int i = 0; i < c->input_count; i++)
        if (c->inputs[i] == input)
            c->inputs[i] = constant;
    tl_map_put(im->bound, input->name, constant);
    return constant;
}

/* Binds what is offered; what is not is remembered as needed. False: some input is not offered. */
static bool bind_origins(walk *w, tl_value **wanted)
{
    tl_import *im = w->call->import;
    bool all = true;
    for (int i = 0; i < w->found_count; i++) {
        tl_value *v = w->found[i];
        if (v->producer != NULL)
            continue;
        if (offer_for(im, v) == NULL && !tl_map_has(im->needed, v->name))
            tl_map_put(im->needed, v->name, (void *)(uintptr_t)w->call->name);
        all &= offer_for(im, v) != NULL;
    }
    for (int i = 0; all && i < w->found_count; i++) {
        tl_value *v = w->found[i];
        if (v->producer != NULL)
            continue;
        tl_value *constant = bind_input(w->call, v, offer_for(im, v));
        if (*wanted == v)
            *wanted = constant;
    }
    return all;
}

static bool has_leaf(const walk *w)
{
    for (int i = 0; i < w->found_count; i++)
        if (w->found[i]->producer == NULL)
            return true;
    return false;
}

bool tl_call_is_configured(tl_onnx_call *c, tl_value *value)
{
    walk *w = start_walk(c);
    if (value->data != NULL || !find_origins(w, value))
        return value->data != NULL;
    for (int i = 0; i < w->found_count; i++) {
        const tl_value *v = w->found[i];
        if (v->producer == NULL &&
            (tl_dtype_is_float(v->dtype) || tl_shape_elements(&v->shape) != 1 ||
             offer_for(c->import, v) == NULL))
            return false;
    }
    return true;
}

tl_status tl_call_decide(tl_onnx_call *c, tl_value **value)
{
    if (*value == NULL || (*value)->data != NULL)
        return TL_OK;
    walk *w = start_walk(c);
    if (!find_origins(w, *value) || (c->import->is_trial && has_leaf(w)) || !bind_origins(w, value))
        return TL_OK;
    for (int i = 0; i < w->found_count; i++)
        if (w->found[i]->producer != NULL)
            TL_TRY(tl_onnx_fold(c, w->found[i]->producer));
    return TL_OK;
}

tl_status tl_report_needed(const tl_import *im)
{
    size_t count = tl_map_count(im->needed);
    if (count == 0)
        return TL_OK;
    tl_map_entry first = tl_map_at(im->needed, 0);
    tl_text names = { 0 };
    for (size_t i = 0; i < count && i < 8; i++)
        tl_text_format(&names, "%s'%.80s'", i > 0 ? ", " : "", tl_map_at(im->needed, i).key);
    tl_status status = tl_fail(
        im->diag, TL_UNBOUND,
        "a shape or a branch depends on the value of %s %s%s (first at node '%.120s'): give "
        "%s (--data DIR, or --input %.80s=FILE)",
        count > 1 ? "the inputs" : "input", tl_text_get(&names), count > 8 ? ", ..." : "",
        (const char *)first.value, count > 1 ? "their values" : "it", first.key);
    tl_text_free(&names);
    return status;
}
