/* frontend/onnx/onnx_functions.c: local functions: the nodes of a function's body take the place of the node that
 * calls it, in a scope of their own. */
#include <string.h>
#include "frontend/onnx/onnx_walk.h"

const char *tl_function_key(tl_arena *arena, const char *domain, const char *name,
                            const char *overload)
{
    return tl_arena_format(arena, "%s\n%s\n%s", tl_domain(domain), tl_text_or(name, ""),
                           tl_text_or(overload, ""));
}

static tl_status open_function(tl_import *im, tl_onnx_scope *caller, const Onnx__FunctionProto *f,
                               const Onnx__NodeProto *node, const char *name, tl_onnx_scope *s)
{
    *s = (tl_onnx_scope){ .bindings = tl_map_create(im->arena),
                          .prefix = tl_arena_format(im->arena, "%s%s/", caller->prefix, name),
                          .import_count = f->n_opset_import,
                          .imports = f->opset_import,
                          .function = f,
                          .caller = caller };
    TL_TRY(tl_default_opset(im, s->import_count, s->imports, &s->opset));
    for (const tl_onnx_scope *up = caller; up != NULL;
         up = up->parent != NULL ? up->parent : up->caller)
        if (up->function == f)
            return tl_fail(im->diag, TL_BAD_MODEL, "function '%.120s' calls itself",
                           tl_text_or(f->name, ""));
    int given;
    Onnx__AttributeProto **attrs;
    TL_TRY(tl_collect_attributes(im, caller, node, name, &given, &attrs));
    s->attrs =
        TL_NEW_ARRAY(im->arena, Onnx__AttributeProto *, (size_t)given + f->n_attribute_proto);
    for (int i = 0; i < given; i++)
        s->attrs[s->attr_count++] = attrs[i];
    for (size_t i = 0; i < f->n_attribute_proto; i++) {
        bool overridden = f->attribute_proto[i]->name == NULL;
        for (int k = 0; k < given; k++)
            overridden = overridden || strcmp(attrs[k]->name, f->attribute_proto[i]->name) == 0;
        if (!overridden)
            s->attrs[s->attr_count++] = f->attribute_proto[i];
    }
    return TL_OK;
}

tl_status tl_inline_function(tl_import *im, tl_onnx_scope *caller, const Onnx__FunctionProto *f,
                             const Onnx__NodeProto *node, const char *name)
{
    tl_onnx_scope s;
    if (im->calls >= TL_ONNX_MAX_CALLS)
        return tl_fail(im->diag, TL_BAD_MODEL, "functions call each other more than %d deep",
                       TL_ONNX_MAX_CALLS);
    if (node->n_input > f->n_input || node->n_output > f->n_output)
        return tl_fail(im->diag, TL_BAD_MODEL,
                       "node '%.120s' has more inputs or outputs than function '%.100s'", name,
                       tl_text_or(f->name, ""));
    TL_TRY(open_function(im, caller, f, node, name, &s));
    for (size_t i = 0; i < f->n_input; i++) {
        tl_onnx_binding absent = { .region = im->region };
        const tl_onnx_binding *b = &absent;
        if (i < node->n_input && node->input[i][0] != '\0')
            b = tl_scope_find(caller, node->input[i]);
        if (b == NULL)
            return tl_fail(im->diag, TL_BAD_MODEL,
                           "node '%.120s' reads '%.120s', which is defined nowhere", name,
                           node->input[i]);
        TL_TRY(tl_scope_bind(im, &s, f->input[i], tl_scope_read(im, b), b->unsupported));
    }
    im->calls++;
    tl_status status = tl_import_nodes(im, &s, f->n_node, f->node);
    im->calls--;
    if (status != TL_OK) {
        tl_context(im->diag, "function '%.100s', called by node '%.100s'", tl_text_or(f->name, ""),
                   name);
        return status;
    }
    for (size_t i = 0; i < node->n_output; i++) {
        if (node->output[i][0] == '\0')
            continue;
        const tl_onnx_binding *b = tl_scope_find(&s, f->output[i]);
        if (b == NULL || (b->value == NULL && !b->unsupported))
            return tl_fail(im->diag, TL_BAD_MODEL, "function '%.100s' never computes '%.100s'",
                           tl_text_or(f->name, ""), f->output[i]);
        TL_TRY(tl_scope_bind(im, caller, node->output[i], b->value, b->unsupported));
    }
    return TL_OK;
}
