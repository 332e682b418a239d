/* frontend/onnx/onnx_import.c: the walk over a model's graphs: initializers, inputs, nodes, outputs. */
#include <stdio.h>
#include <string.h>
#include "frontend/node/shape_rules.h"
#include "frontend/call/onnx_counts.h"
#include "frontend/call/onnx_eithers.h"
#include "frontend/onnx/onnx_walk.h"
#include "frontend/call/onnx_sequences.h"

/* The tensor, whose bytes are taken out of the model: a body or a model that is imported several times has them once. */
static tl_status read_tensor(tl_import *im, Onnx__TensorProto *t, tl_onnx_tensor *out,
                             tl_diag *diag)
{
    bool stays = im->model->tensors != NULL; /* for the graphs that are read later */
    tl_arena *arena = stays ? im->model->arena : im->arena;
    tl_map *tensors = stays ? im->model->tensors : im->tensors;
    if (im->bodies == 0 && !stays)
        return tl_onnx_read_tensor(arena, im->model, t, out, diag);
    char key[32];
    snprintf(key, sizeof key, "%p", (void *)t);
    const tl_onnx_tensor *known = tl_map_find(tensors, key);
    if (known == NULL) {
        TL_TRY(tl_onnx_read_tensor(arena, im->model, t, out, diag));
        tl_onnx_tensor *kept = TL_NEW(arena, tl_onnx_tensor);
        *kept = *out;
        tl_map_put(tensors, key, kept);
        return TL_OK;
    }
    *out = *known;
    return TL_OK;
}

static tl_status import_initializer(tl_import *im, tl_onnx_scope *s, Onnx__TensorProto *t)
{
    tl_onnx_tensor tensor;
    tl_diag diag = { 0 };
    const char *name = tl_text_or(t->name, NULL);
    if (name == NULL)
        return tl_fail(im->diag, TL_BAD_MODEL, "an initializer has no name");
    tl_status status = read_tensor(im, t, &tensor, &diag);
    if (status == TL_UNSUPPORTED) {
        tl_onnx_refuse(im, "initializer", name, diag.text);
        return tl_scope_bind(im, s, name, NULL, true);
    }
    if (status != TL_OK)
        return tl_fail(im->diag, status, "%s", diag.text);
    name = tl_arena_format(im->arena, "%s%s", s->prefix, name);
    tl_value *v = tl_graph_constant(im->graph, name, tensor.dtype, &tensor.shape, tensor.data);
    return tl_scope_bind(im, s, t->name, v, false);
}

static tl_status constant_of_call(tl_onnx_call *c, Onnx__TensorProto *t, tl_value **out)
{
    tl_onnx_tensor tensor;
    tl_diag diag = { 0 };
    tl_status status = read_tensor(c->import, t, &tensor, &diag);
    if (status == TL_UNSUPPORTED)
        return tl_call_unsupported(c, "%s", diag.text);
    if (status != TL_OK)
        return tl_call_bad(c, "%s", diag.text);
    const char *name = tl_arena_format(c->arena, "%s.c%d", c->name, c->temporaries++);
    *out = tl_graph_constant(c->graph, name, tensor.dtype, &tensor.shape, tensor.data);
    return TL_OK;
}

/* "[n, 3]"; axes that nobody named are "?". */
static const char *shape_text(tl_arena *arena, const tl_shape *shape)
{
    const char *text = "";
    for (int i = 0; i < shape->rank; i++) {
        const tl_dim *d = &shape->dims[i];
        const char *axis = d->extent >= 0    ? tl_arena_format(arena, "%lld", (long long)d->extent)
                           : d->name != NULL ? tl_arena_format(arena, "%.40s", d->name)
                                             : "?";
        text = tl_arena_format(arena, "%s%s%s", text, i > 0 ? ", " : "", axis);
    }
    return tl_arena_format(arena, "[%s]", text);
}

/* The shape that the caller gives an input replaces what is open in the model's. */
static tl_status override_shape(tl_import *im, const char *name, tl_shape *shape)
{
    for (int k = 0; k < im->shape_count; k++) {
        const tl_shape *given = &im->shapes[k].shape;
        if (strcmp(im->shapes[k].name, name) != 0)
            continue;
        bool fits = shape->rank < 0 || shape->rank == given->rank;
        for (int i = 0; fits && i < shape->rank; i++)
            fits = shape->dims[i].extent < 0 || shape->dims[i].extent == given->dims[i].extent;
        if (!fits || !tl_shape_is_static(given))
            return tl_fail(im->diag, TL_BAD_ARGUMENT,
                           "the shape given for input '%.120s', %s, does not agree with the "
                           "model's, %s",
                           name, shape_text(im->arena, given), shape_text(im->arena, shape));
        *shape = *given;
    }
    return TL_OK;
}

static tl_status import_input(tl_import *im, tl_onnx_scope *s, const Onnx__ValueInfoProto *info)
{
    const char *name = tl_text_or(info->name, NULL);
    tl_shape shape = { .rank = -1 };
    tl_dtype dtype;
    if (name == NULL)
        return tl_fail(im->diag, TL_BAD_MODEL, "a graph input has no name");
    const Onnx__TypeProto *type = info->type;
    if (type == NULL || type->tensor_type == NULL) {
        bool other = type != NULL && (type->sequence_type || type->map_type ||
                                      type->optional_type || type->sparse_tensor_type);
        if (!other)
            return tl_fail(im->diag, TL_BAD_MODEL, "graph input '%.120s' has no type", name);
        tl_onnx_refuse(im, "graph input", name, "it is no dense tensor");
        return tl_scope_bind(im, s, name, NULL, true);
    }
    if (!tl_dtype_from_onnx(type->tensor_type->elem_type, &dtype)) {
        tl_onnx_refuse(im, "graph input", name,
                       tl_arena_format(im->arena, "data type %s (%d)",
                                       tl_onnx_dtype_text(type->tensor_type->elem_type),
                                       type->tensor_type->elem_type));
        return tl_scope_bind(im, s, name, NULL, true);
    }
    const Onnx__TensorShapeProto *dims = type->tensor_type->shape;
    if (dims != NULL && dims->n_dim > TL_MAX_RANK) {
        tl_onnx_refuse(im, "graph input", name,
                       tl_arena_format(im->arena, "rank %zu; at most %d is supported", dims->n_dim,
                                       TL_MAX_RANK));
        return tl_scope_bind(im, s, name, NULL, true);
    }
    TL_TRY(tl_onnx_read_shape(im->arena, name, dims, &shape, im->diag));
    TL_TRY(override_shape(im, name, &shape));
    if (!tl_shape_is_bounded(&shape, dtype))
        return tl_fail(im->diag, TL_BAD_MODEL,
                       "graph input '%.120s': the product of its dimensions overflows", name);
    tl_value *v = tl_graph_value(im->graph, name, dtype, &shape);
    tl_graph_add_input(im->graph, v);
    im->is_open = im->is_open || !tl_shape_is_static(&shape);
    return tl_scope_bind(im, s, name, v, false);
}

static tl_status import_body(tl_import *im, tl_onnx_scope *s, Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_initializer; i++)
        TL_TRY(import_initializer(im, s, g->initializer[i]));
    for (size_t i = 0; i < g->n_sparse_initializer; i++) {
        const Onnx__TensorProto *t = g->sparse_initializer[i]->values;
        const char *name = t != NULL ? tl_text_or(t->name, NULL) : NULL;
        if (name == NULL)
            return tl_fail(im->diag, TL_BAD_MODEL, "a sparse initializer has no name");
        tl_onnx_refuse(im, "sparse initializer", name, "sparse tensors");
        TL_TRY(tl_scope_bind(im, s, name, NULL, true));
    }
    for (size_t i = 0; i < g->n_input; i++) {
        const char *name = tl_text_or(g->input[i]->name, NULL);
        const tl_onnx_binding *b = name != NULL ? tl_map_find(s->bindings, name) : NULL;
        /* an initializer that is an input too is a default: it stays a constant */
        bool is_bound = s->parent != NULL && b != NULL; /* of a body: by what calls it */
        if (!is_bound && (b == NULL || (b->value != NULL && b->value->is_input)))
            TL_TRY(import_input(im, s, g->input[i]));
    }
    return tl_import_nodes(im, s, g->n_node, g->node);
}

static tl_status body_of_call(tl_onnx_call *c, Onnx__GraphProto *body, const char *prefix,
                              int input_count, tl_value *const *inputs, int output_count,
                              tl_value **outputs)
{
    tl_import *im = c->import;
    tl_onnx_scope *outer = im->current;
    tl_onnx_scope s = *outer;
    s.parent = outer;
    s.function = NULL;
    s.bindings = tl_map_create(im->arena);
    s.prefix = prefix;
    if (body->n_input != (size_t)input_count || body->n_output != (size_t)output_count)
        return tl_call_bad(c, "its body has %zu inputs and %zu outputs, not %d and %d",
                           body->n_input, body->n_output, input_count, output_count);
    for (int i = 0; i < input_count; i++)
        TL_TRY(tl_scope_bind(im, &s, tl_text_or(body->input[i]->name, ""), inputs[i], false));
    im->bodies++;
    tl_status status = import_body(im, &s, body);
    im->bodies--;
    TL_TRY(status);
    for (int i = 0; i < output_count; i++) {
        const tl_onnx_binding *b = tl_scope_find(&s, tl_text_or(body->output[i]->name, ""));
        if (b == NULL || (b->value == NULL && !b->unsupported))
            return tl_call_bad(c, "its body never computes output %d", i);
        outputs[i] = tl_scope_read(im, b);
        if (b->unsupported)
            return TL_UNSUPPORTED; /* what it comes from is listed */
    }
    return TL_OK;
}

/* Graph outputs have names of their own, even where one value is an input, a constant, or two of them. */
static tl_status import_outputs(tl_import *im, const tl_onnx_scope *s, const Onnx__GraphProto *g)
{
    tl_value **values =
        TL_NEW_ARRAY(im->arena, tl_value *, g->n_output); /* as they were before they got names */
    for (size_t i = 0; i < g->n_output; i++) {
        const char *name = tl_text_or(g->output[i]->name, "");
        const tl_onnx_binding *b = tl_scope_find(s, name);
        if (b == NULL)
            return tl_fail(im->diag, TL_BAD_MODEL, "graph output '%.120s' is never computed", name);
        if (b->unsupported)
            continue;
        tl_value *v = values[im->graph->output_count] = b->value;
        if (tl_sequence_of(im, v) != NULL) {
            tl_onnx_refuse(im, "graph output", name, "it is a sequence");
            continue;
        }
        if (tl_either_of(im, v) != NULL) {
            tl_onnx_refuse(im, "graph output", name, "data decide how many axes it has");
            continue;
        }
        if (v->producer == NULL || v->is_output) {
            tl_value *copy = tl_graph_value(im->graph, name, v->dtype, &v->shape);
            copy->dtype_known = v->dtype_known;
            tl_graph_node(im->graph, TL_OP_IDENTITY, name, 1, &v, 1, &copy);
            v = copy;
        }
        v->name = tl_arena_strdup(im->arena, name);
        tl_graph_add_output(im->graph, v);
    }
    for (int i = 0, count = im->graph->output_count; i < count; i++) {
        tl_value *const *counts = tl_counts_of(im, values[i]);
        for (int a = 0; counts != NULL && a < values[i]->shape.rank; a++)
            if (counts[a] != NULL)
                tl_graph_set_extent(im->graph, i, a, counts[a]);
    }
    return TL_OK;
}

static tl_status check_overrides(const tl_import *im)
{
    for (int k = 0; k < im->shape_count; k++) {
        bool found = false;
        for (int i = 0; i < im->graph->input_count; i++)
            found = found || strcmp(im->graph->inputs[i]->name, im->shapes[k].name) == 0;
        if (!found)
            return tl_fail(im->diag, TL_BAD_ARGUMENT, "the model has no input called '%.120s'",
                           im->shapes[k].name);
    }
    return TL_OK;
}

tl_status tl_onnx_import(tl_arena *arena, tl_onnx *model, Onnx__ModelProto *proto,
                         const tl_onnx_source *source, const tl_map *kept, tl_graph **out,
                         tl_diag *diag)
{
    static const tl_onnx_reader reader = { body_of_call, constant_of_call };
    tl_diag unread = { 0 };
    tl_import im = { .arena = arena,
                     .reader = &reader,
                     .model = model,
                     .graph = tl_graph_create(arena, tl_text_or(proto->graph->name, "graph")),
                     .functions = tl_map_create(arena),
                     .refusals = tl_map_create(arena),
                     .needed = tl_map_create(arena),
                     .tensors = tl_map_create(arena),
                     .shapes = source->shapes,
                     .shape_count = source->shape_count,
                     .most_turns = source->most_turns,
                     .keeps_loops = source->keeps_loops,
                     .diag = diag != NULL ? diag : &unread };
    im.graph->is_mapped = tl_onnx_is_mapped;
    im.graph->mapped_by = model;
    im.graph->kept = kept;
    im.bound = model->bound = tl_map_create(arena);
    tl_onnx_scope top = { .bindings = tl_map_create(arena),
                          .prefix = "",
                          .import_count = proto->n_opset_import,
                          .imports = proto->opset_import };
    TL_TRY(tl_default_opset(&im, top.import_count, top.imports, &top.opset));
    if (top.opset == 0 && proto->ir_version < 3)
        top.opset = 1; /* from before opsets */
    if (top.opset == 0 && proto->n_opset_import == 0)
        return tl_fail(diag, TL_BAD_MODEL, "the model imports no opset");
    for (size_t i = 0; i < proto->n_functions; i++) {
        Onnx__FunctionProto *f = proto->functions[i];
        const char *key = tl_function_key(arena, f->domain, f->name, f->overload);
        if (tl_map_has(im.functions, key))
            return tl_fail(diag, TL_BAD_MODEL, "function '%.120s' is defined twice",
                           tl_text_or(f->name, ""));
        tl_map_put(im.functions, key, f);
    }
    tl_status status = import_body(&im, &top, proto->graph);
    model->met_loops = im.met_loops;
    TL_TRY(status);
    TL_TRY(import_outputs(&im, &top, proto->graph));
    TL_TRY(tl_report_refusals(&im));
    TL_TRY(tl_report_needed(&im));
    for (int i = 0; im.is_unknown && i < im.graph->input_count; i++)
        TL_TRY(tl_check_graph_input(im.graph->inputs[i], diag));
    TL_TRY(check_overrides(&im));
    *out = im.graph;
    return TL_OK;
}
