/* frontend/onnx/onnx_nodes.c: one node after the other: its inputs by name, its attributes, the rule for its
 * operator and opset, and the importer that the rule names. */
#include <string.h>
#include "frontend/call/onnx_eithers.h"
#include "frontend/import/import_counted.h"
#include "frontend/import/import_rules.h"
#include "frontend/onnx/onnx_walk.h"
#include "frontend/call/onnx_sequences.h"

static tl_status version_of(const tl_import *im, const tl_onnx_scope *s, const char *domain,
                            int *out)
{
    *out = s->opset;
    if (domain[0] == '\0' && s->opset > 0)
        return TL_OK;
    for (size_t i = 0; i < s->import_count; i++) {
        if (strcmp(tl_domain(s->imports[i]->domain), domain) == 0) {
            int64_t version = s->imports[i]->version;
            *out = version > 0 && version < 1000000 ? (int)version : 0;
            return TL_OK;
        }
    }
    return tl_fail(im->diag, TL_BAD_MODEL, "no opset is imported for the domain '%.100s'", domain);
}

/* The call's attributes, with references to those of the enclosing function resolved. */
tl_status tl_collect_attributes(tl_import *im, const tl_onnx_scope *s, const Onnx__NodeProto *node,
                                const char *name, int *count, Onnx__AttributeProto ***out)
{
    *out = TL_NEW_ARRAY(im->arena, Onnx__AttributeProto *, node->n_attribute);
    *count = 0;
    for (size_t i = 0; i < node->n_attribute; i++) {
        Onnx__AttributeProto *a = node->attribute[i];
        if (tl_text_or(a->name, NULL) == NULL)
            return tl_fail(im->diag, TL_BAD_MODEL, "node '%.120s': an attribute without a name",
                           name);
        if (tl_text_or(a->ref_attr_name, NULL) == NULL) {
            (*out)[(*count)++] = a;
            continue;
        }
        const tl_onnx_scope *body = s;
        while (body != NULL && body->function == NULL)
            body = body->parent;
        if (body == NULL)
            return tl_fail(
                im->diag, TL_BAD_MODEL,
                "node '%.120s': attribute '%.60s' refers to a function's attribute, but is "
                "in none",
                name, a->name);
        for (int k = 0; k < body->attr_count; k++) {
            if (strcmp(body->attrs[k]->name, a->ref_attr_name) == 0) {
                Onnx__AttributeProto *copy = TL_NEW(im->arena, Onnx__AttributeProto);
                *copy = *body->attrs[k];
                copy->name = a->name;
                (*out)[(*count)++] = copy;
            }
        }
    }
    return TL_OK;
}

/* The inputs; *unsupported when one of them is the result of what tilth does not have. */
static tl_status collect_inputs(tl_import *im, const tl_onnx_scope *s, const Onnx__NodeProto *node,
                                const char *name, tl_value ***out, bool *unsupported)
{
    *out = TL_NEW_ARRAY(im->arena, tl_value *, node->n_input);
    *unsupported = false;
    for (size_t i = 0; i < node->n_input; i++) {
        if (node->input[i][0] == '\0')
            continue;
        const tl_onnx_binding *b = tl_scope_find(s, node->input[i]);
        if (b == NULL)
            return tl_fail(im->diag, TL_BAD_MODEL,
                           "node '%.120s' reads '%.120s', which is defined nowhere", name,
                           node->input[i]);
        (*out)[i] =
            tl_scope_read(im, b); /* NULL too: an input that the call of a function does not give */
        *unsupported |= b->unsupported;
    }
    return TL_OK;
}

static tl_status bind_unsupported(tl_import *im, tl_onnx_scope *s, const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_output; i++)
        if (node->output[i][0] != '\0')
            TL_TRY(tl_scope_bind(im, s, node->output[i], NULL, true));
    return TL_OK;
}

static tl_status check_arity(tl_onnx_call *c)
{
    const tl_import_rule *rule = c->rule;
    if (c->input_count < rule->min_inputs ||
        (rule->max_inputs >= 0 && c->input_count > rule->max_inputs))
        return tl_call_bad(c, "it has %d inputs, opset %d allows %d to %d", c->input_count,
                           c->version, rule->min_inputs, rule->max_inputs);
    for (int i = 0; i < rule->min_inputs; i++)
        if (c->inputs[i] == NULL)
            return tl_call_bad(c, "input %d is required", i);
    if (rule->max_outputs >= 0 && c->output_count > rule->max_outputs)
        return tl_call_bad(c, "it has %d outputs, opset %d allows %d", c->output_count, c->version,
                           rule->max_outputs);
    return TL_OK;
}

static tl_status check_results(tl_onnx_call *c, tl_onnx_scope *s)
{
    for (int i = 0; i < c->output_count; i++)
        if (c->output_names[i] != NULL && tl_scope_find(s, c->output_names[i]) == NULL)
            return tl_call_unsupported(c, "its output %d is not supported", i);
    return c->status;
}

/* An operator whose importer would take the largest extent for the one that there is, or a sequence for a tensor. */
static tl_status check_inputs(tl_onnx_call *c)
{
    for (int i = 0; i < c->input_count; i++)
        if (tl_sequence_of(c->import, c->inputs[i]) != NULL && !tl_takes_sequences(c->op_type))
            return tl_call_unsupported(c, "its input %d is a sequence", i);
    for (int i = 0; i < c->input_count; i++)
        if (tl_counts_of(c->import, c->inputs[i]) != NULL && !tl_takes_counted(c->op_type))
            return tl_call_unsupported(c, "its input %d has an extent that data decide", i);
    return TL_OK;
}

static tl_status run_importer(tl_import *im, tl_onnx_scope *s, const Onnx__NodeProto *node,
                              tl_onnx_call *c)
{
    tl_onnx_scope *outer = im->current;
    im->current = s;
    tl_status status = check_arity(c);
    if (status == TL_OK)
        status = tl_check_attributes(c);
    if (status == TL_OK)
        status = check_inputs(c);
    tl_importer *computed = NULL;
    if (status == TL_OK)
        status = tl_find_computed(c, &computed);
    if (status == TL_OK)
        status = computed != NULL ? computed(c) : c->rule->import(c);
    if (status == TL_OK)
        status = check_results(c, s);
    im->current = outer;
    if (status != TL_UNSUPPORTED)
        return status;
    for (size_t i = 0; i < node->n_output; i++)
        if (node->output[i][0] != '\0' && tl_map_find(s->bindings, node->output[i]) == NULL)
            TL_TRY(tl_scope_bind(im, s, node->output[i], NULL, true));
    return TL_OK;
}

/* ---- nodes that read one of two values ---- */

static int find_either(const tl_onnx_call *c)
{
    for (int i = 0; i < c->input_count; i++)
        if (tl_either_of(c->import, c->inputs[i]) != NULL)
            return i;
    return -1;
}

static tl_status run_call(tl_import *im, tl_onnx_scope *s, const Onnx__NodeProto *node,
                          tl_onnx_call *c);

/* The node with one of the two in the place of what stands for both; its results have names of their own. */
static tl_status run_with(tl_import *im, tl_onnx_scope *s, const Onnx__NodeProto *node,
                          const tl_onnx_call *c, const tl_onnx_either *e, bool yes,
                          tl_onnx_scope *names)
{
    const tl_value *both = c->inputs[find_either(c)];
    tl_onnx_call one = *c;
    *names = *s;
    names->parent = s;
    names->function = NULL;
    names->bindings = tl_map_create(im->arena);
    names->prefix = tl_arena_format(im->arena, "%s%s/", c->name, yes ? "yes" : "no");
    one.name = tl_arena_format(im->arena, "%s/%s", c->name, yes ? "yes" : "no");
    one.inputs = TL_NEW_ARRAY(im->arena, tl_value *, c->input_count);
    for (int i = 0; i < c->input_count; i++) {
        bool is_it = c->inputs[i] == both || tl_either_of(im, c->inputs[i]) == e;
        one.inputs[i] = !is_it ? c->inputs[i] : yes ? e->yes : e->no;
    }
    one.first_value = im->graph->value_count;
    if (++im->nodes > TL_ONNX_MAX_NODES)
        return tl_fail(im->diag, TL_BAD_MODEL, "more than %d nodes, functions counted where called",
                       TL_ONNX_MAX_NODES);
    return run_call(im, names, node, &one);
}

static tl_status run_twice(tl_import *im, tl_onnx_scope *s, const Onnx__NodeProto *node,
                           tl_onnx_call *c)
{
    const tl_onnx_either *e = tl_either_of(im, c->inputs[find_either(c)]);
    tl_onnx_scope names[2];
    TL_TRY(run_with(im, s, node, c, e, true, &names[0]));
    TL_TRY(run_with(im, s, node, c, e, false, &names[1]));
    for (int i = 0; i < c->output_count; i++) {
        if (c->output_names[i] == NULL)
            continue;
        const tl_onnx_binding *yes = tl_map_find(names[0].bindings, c->output_names[i]);
        const tl_onnx_binding *no = tl_map_find(names[1].bindings, c->output_names[i]);
        tl_value *chosen = NULL;
        bool is_good = yes != NULL && no != NULL && yes->value != NULL && no->value != NULL;
        if (is_good) {
            tl_status status = tl_choose_value(c, e->condition, yes->value, no->value, &chosen);
            if (status != TL_OK && status != TL_UNSUPPORTED)
                return status;
            is_good = status == TL_OK;
        }
        TL_TRY(tl_scope_bind(im, s, c->output_names[i], chosen, !is_good));
    }
    return c->status == TL_UNSUPPORTED ? TL_OK : c->status;
}

static tl_status run_call(tl_import *im, tl_onnx_scope *s, const Onnx__NodeProto *node,
                          tl_onnx_call *c)
{
    return find_either(c) >= 0 ? run_twice(im, s, node, c) : run_importer(im, s, node, c);
}

static tl_status import_node(tl_import *im, tl_onnx_scope *s, const Onnx__NodeProto *node)
{
    const char *op_type = tl_text_or(node->op_type, "");
    const char *name = tl_text_or(node->name, node->n_output > 0 ? node->output[0] : op_type);
    const char *domain = tl_domain(node->domain), *reason = NULL;
    if (op_type[0] == '\0')
        return tl_fail(im->diag, TL_BAD_MODEL, "node '%.120s' has no operator", name);
    if (++im->nodes > TL_ONNX_MAX_NODES)
        return tl_fail(im->diag, TL_BAD_MODEL, "more than %d nodes, functions counted where called",
                       TL_ONNX_MAX_NODES);
    const Onnx__FunctionProto *f =
        tl_map_find(im->functions, tl_function_key(im->arena, domain, op_type, node->overload));
    if (f != NULL)
        return tl_inline_function(im, s, f, node, name);

    bool unsupported;
    tl_onnx_call c = { .import = im,
                       .graph = im->graph,
                       .arena = im->arena,
                       .op_type = domain[0] == '\0'
                                      ? op_type
                                      : tl_arena_format(im->arena, "%s.%s", domain, op_type),
                       .name = tl_arena_format(im->arena, "%s%s", s->prefix, name),
                       .input_count = (int)node->n_input,
                       .output_count = (int)node->n_output,
                       .first_value = im->graph->value_count,
                       .diag = im->diag };
    TL_TRY(version_of(im, s, domain, &c.version));
    TL_TRY(collect_inputs(im, s, node, c.name, &c.inputs, &unsupported));
    TL_TRY(tl_collect_attributes(im, s, node, c.name, &c.attr_count, &c.attrs));
    c.rule = tl_import_rule_find(c.op_type, c.version, &reason);
    if (c.rule == NULL) {
        tl_onnx_refuse(im, c.op_type, c.name, reason);
        return bind_unsupported(im, s, node);
    }
    if (unsupported)
        return bind_unsupported(im, s, node);
    while (c.input_count > c.rule->min_inputs && c.inputs[c.input_count - 1] == NULL)
        c.input_count--;
    c.output_names = TL_NEW_ARRAY(im->arena, const char *, c.output_count);
    for (int i = 0; i < c.output_count; i++)
        c.output_names[i] = node->output[i][0] != '\0' ? node->output[i] : NULL;
    return run_call(im, s, node, &c);
}

tl_status tl_import_nodes(tl_import *im, tl_onnx_scope *s, size_t count, Onnx__NodeProto **nodes)
{
    const int *order;
    TL_TRY(tl_onnx_order(im, s, count, nodes, &order));
    for (size_t n = 0; n < count; n++)
        TL_TRY(import_node(im, s, nodes[order[n]]));
    return TL_OK;
}
