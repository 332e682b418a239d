/* frontend/onnx_import.c: the walk over a model's graphs and local functions.
 *
 * A scope maps the names of one graph or function body to values. A function call opens a scope of its own, a
 * branch one that sees its parent's names. Results of what is not supported are bound as such, so that the walk goes on
 * and the report names everything at once. */
#include <stdio.h>
#include <string.h>
#include "frontend/onnx_private.h"

typedef struct {
    tl_value *value;
    bool unsupported; /* computed by something that tilth does not have */
} binding;

typedef struct scope scope;
struct scope {
    const scope *parent; /* of a branch; NULL for a graph and a function */
    tl_map *bindings;
    const char *prefix; /* of names made inside a function */
    int opset;          /* of the default domain */
    size_t import_count;
    Onnx__OperatorSetIdProto **imports;
    const Onnx__FunctionProto *function; /* whose body this is */
    const scope *caller;
    int attr_count; /* of the call, for ref_attr_name */
    Onnx__AttributeProto **attrs;
};

typedef struct {
    const char *text, *first; /* operator and reason; the first node */
    const char *reason;
    int count;
} refusal;

struct tl_import {
    tl_arena *arena;
    tl_onnx *model;
    tl_graph *graph;
    tl_map *functions; /* "domain\nname\noverload" */
    tl_map *refusals;
    int nodes, calls;
    const tl_shape_override *shapes;
    int shape_count;
    scope *current;
    tl_diag *diag;
};

static tl_status import_nodes(tl_import *im, scope *s, size_t count, Onnx__NodeProto **nodes);

static const char *text_or(const char *s, const char *otherwise)
{
    return s != NULL && s[0] != '\0' ? s : otherwise;
}

static const char *domain_of(const char *domain)
{
    return domain == NULL || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

/* ---- what is not supported ---- */

static void refuse(tl_import *im, const char *what, const char *where, const char *reason)
{
    const char *key = tl_arena_format(im->arena, "%s\n%s", what, reason);
    refusal *r = tl_map_find(im->refusals, key);
    if (r == NULL) {
        r = TL_NEW(im->arena, refusal);
        *r = (refusal){ .text = tl_arena_strdup(im->arena, what),
                        .first = tl_arena_strdup(im->arena, where),
                        .reason = tl_arena_strdup(im->arena, reason) };
        tl_map_put(im->refusals, key, r);
    }
    r->count++;
}

/* One line each; what no longer fits is counted. */
static tl_status report_refusals(tl_import *im)
{
    size_t count = tl_map_count(im->refusals);
    if (count == 0)
        return TL_OK;
    char text[sizeof im->diag->text];
    size_t used = (size_t)snprintf(text, sizeof text, "not supported (%zu):", count);
    for (size_t i = 0; i < count; i++) {
        const refusal *r = tl_map_at(im->refusals, i).value;
        char line[400];
        int size = snprintf(line, sizeof line, "\n  %.80s: %d, first '%.100s': %.160s", r->text,
                            r->count, r->first, r->reason);
        if (used + (size_t)size + 32 > sizeof text) {
            snprintf(text + used, sizeof text - used, "\n  ... and %zu more", count - i);
            break;
        }
        memcpy(text + used, line, (size_t)size + 1);
        used += (size_t)size;
    }
    return tl_fail(im->diag, TL_UNSUPPORTED, "%s", text);
}

tl_status tl_call_unsupported(tl_onnx_call *c, const char *format, ...)
{
    char reason[400];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    refuse(c->import, c->op_type, c->name, reason);
    return TL_UNSUPPORTED;
}

/* ---- names ---- */

static binding *lookup(const scope *s, const char *name)
{
    for (; s != NULL; s = s->parent) {
        binding *b = tl_map_find(s->bindings, name);
        if (b != NULL)
            return b;
    }
    return NULL;
}

static tl_status bind(tl_import *im, scope *s, const char *name, tl_value *value, bool unsupported)
{
    if (lookup(s, name) != NULL)
        return tl_fail(im->diag, TL_BAD_MODEL, "the name '%.200s' is defined twice", name);
    binding *b = TL_NEW(im->arena, binding);
    *b = (binding){ value, unsupported };
    tl_map_put(s->bindings, name, b);
    return TL_OK;
}

static tl_status version_of(const tl_import *im, const scope *s, const char *domain, int *out)
{
    *out = s->opset;
    if (domain[0] == '\0' && s->opset > 0)
        return TL_OK;
    for (size_t i = 0; i < s->import_count; i++) {
        if (strcmp(domain_of(s->imports[i]->domain), domain) == 0) {
            int64_t version = s->imports[i]->version;
            *out = version > 0 && version < 1000000 ? (int)version : 0;
            return TL_OK;
        }
    }
    return tl_fail(im->diag, TL_BAD_MODEL, "no opset is imported for the domain '%.100s'", domain);
}

/* ---- calls ---- */

/* The call's attributes, with references to those of the enclosing function resolved. */
static tl_status collect_attributes(tl_import *im, const scope *s, const Onnx__NodeProto *node,
                                    const char *name, int *count, Onnx__AttributeProto ***out)
{
    *out = TL_NEW_ARRAY(im->arena, Onnx__AttributeProto *, node->n_attribute);
    *count = 0;
    for (size_t i = 0; i < node->n_attribute; i++) {
        Onnx__AttributeProto *a = node->attribute[i];
        if (text_or(a->name, NULL) == NULL)
            return tl_fail(im->diag, TL_BAD_MODEL, "node '%.120s': an attribute without a name",
                           name);
        if (text_or(a->ref_attr_name, NULL) == NULL) {
            (*out)[(*count)++] = a;
            continue;
        }
        const scope *body = s;
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
static tl_status collect_inputs(tl_import *im, const scope *s, const Onnx__NodeProto *node,
                                const char *name, tl_value ***out, bool *unsupported)
{
    *out = TL_NEW_ARRAY(im->arena, tl_value *, node->n_input);
    *unsupported = false;
    for (size_t i = 0; i < node->n_input; i++) {
        if (node->input[i][0] == '\0')
            continue;
        const binding *b = lookup(s, node->input[i]);
        if (b == NULL)
            return tl_fail(im->diag, TL_BAD_MODEL,
                           "node '%.120s' reads '%.120s', which is defined nowhere", name,
                           node->input[i]);
        (*out)[i] = b->value; /* NULL too: an input that the call of a function does not give */
        *unsupported |= b->unsupported;
    }
    return TL_OK;
}

static tl_status bind_unsupported(tl_import *im, scope *s, const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_output; i++)
        if (node->output[i][0] != '\0')
            TL_TRY(bind(im, s, node->output[i], NULL, true));
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

static tl_status check_results(tl_onnx_call *c, scope *s)
{
    for (int i = 0; i < c->output_count; i++)
        if (c->output_names[i] != NULL && lookup(s, c->output_names[i]) == NULL)
            return tl_call_unsupported(c, "its output %d is not supported", i);
    return c->status;
}

static tl_status run_importer(tl_import *im, scope *s, const Onnx__NodeProto *node, tl_onnx_call *c)
{
    scope *outer = im->current;
    im->current = s;
    tl_status status = check_arity(c);
    if (status == TL_OK)
        status = tl_check_attributes(c);
    if (status == TL_OK)
        status = c->rule->import(c);
    if (status == TL_OK)
        status = check_results(c, s);
    im->current = outer;
    if (status != TL_UNSUPPORTED)
        return status;
    for (size_t i = 0; i < node->n_output; i++)
        if (node->output[i][0] != '\0' && tl_map_find(s->bindings, node->output[i]) == NULL)
            TL_TRY(bind(im, s, node->output[i], NULL, true));
    return TL_OK;
}

void tl_result(tl_onnx_call *c, int i, tl_value *v)
{
    tl_import *im = c->import;
    if (!tl_call_wants(c, i))
        return;
    const char *name = c->output_names[i];
    bool ours = v->index >= c->first_value && v->producer != NULL;
    for (int k = 0; k < i; k++) {
        const binding *b =
            c->output_names[k] != NULL ? lookup(im->current, c->output_names[k]) : NULL;
        ours = ours && (b == NULL || b->value != v);
    }
    if (ours)
        v->name = tl_arena_format(im->arena, "%s%s", im->current->prefix, name);
    tl_status status = bind(im, im->current, name, v, false);
    if (c->status == TL_OK)
        c->status = status;
}

/* ---- local functions ---- */

static const char *function_key(tl_arena *arena, const char *domain, const char *name,
                                const char *overload)
{
    return tl_arena_format(arena, "%s\n%s\n%s", domain_of(domain), text_or(name, ""),
                           text_or(overload, ""));
}

static tl_status default_opset(const tl_import *im, size_t count,
                               Onnx__OperatorSetIdProto **imports, int *out)
{
    *out = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++)
            if (strcmp(domain_of(imports[i]->domain), domain_of(imports[k]->domain)) == 0)
                return tl_fail(im->diag, TL_BAD_MODEL,
                               "the opset of domain '%.100s' is imported twice",
                               domain_of(imports[i]->domain));
        if (domain_of(imports[i]->domain)[0] != '\0')
            continue;
        int64_t version = imports[i]->version;
        if (version < 1)
            return tl_fail(im->diag, TL_BAD_MODEL, "opset version %lld does not exist",
                           (long long)version);
        if (version > TL_ONNX_NEWEST_OPSET)
            return tl_fail(im->diag, TL_UNSUPPORTED,
                           "opset version %lld is newer than %d, the newest that is supported",
                           (long long)version, TL_ONNX_NEWEST_OPSET);
        *out = (int)version;
    }
    return TL_OK;
}

static tl_status open_function(tl_import *im, scope *caller, const Onnx__FunctionProto *f,
                               const Onnx__NodeProto *node, const char *name, scope *s)
{
    *s = (scope){ .bindings = tl_map_create(im->arena),
                  .prefix = tl_arena_format(im->arena, "%s%s/", caller->prefix, name),
                  .import_count = f->n_opset_import,
                  .imports = f->opset_import,
                  .function = f,
                  .caller = caller };
    TL_TRY(default_opset(im, s->import_count, s->imports, &s->opset));
    for (const scope *up = caller; up != NULL; up = up->parent != NULL ? up->parent : up->caller)
        if (up->function == f)
            return tl_fail(im->diag, TL_BAD_MODEL, "function '%.120s' calls itself",
                           text_or(f->name, ""));
    int given;
    Onnx__AttributeProto **attrs;
    TL_TRY(collect_attributes(im, caller, node, name, &given, &attrs));
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

static tl_status inline_function(tl_import *im, scope *caller, const Onnx__FunctionProto *f,
                                 const Onnx__NodeProto *node, const char *name)
{
    scope s;
    if (im->calls >= TL_ONNX_MAX_CALLS)
        return tl_fail(im->diag, TL_BAD_MODEL, "functions call each other more than %d deep",
                       TL_ONNX_MAX_CALLS);
    if (node->n_input > f->n_input || node->n_output > f->n_output)
        return tl_fail(im->diag, TL_BAD_MODEL,
                       "node '%.120s' has more inputs or outputs than function '%.100s'", name,
                       text_or(f->name, ""));
    TL_TRY(open_function(im, caller, f, node, name, &s));
    for (size_t i = 0; i < f->n_input; i++) {
        static const binding absent;
        const binding *b = &absent;
        if (i < node->n_input && node->input[i][0] != '\0')
            b = lookup(caller, node->input[i]);
        if (b == NULL)
            return tl_fail(im->diag, TL_BAD_MODEL,
                           "node '%.120s' reads '%.120s', which is defined nowhere", name,
                           node->input[i]);
        TL_TRY(bind(im, &s, f->input[i], b->value, b->unsupported));
    }
    im->calls++;
    tl_status status = import_nodes(im, &s, f->n_node, f->node);
    im->calls--;
    if (status != TL_OK) {
        tl_context(im->diag, "function '%.100s', called by node '%.100s'", text_or(f->name, ""),
                   name);
        return status;
    }
    for (size_t i = 0; i < node->n_output; i++) {
        if (node->output[i][0] == '\0')
            continue;
        const binding *b = lookup(&s, f->output[i]);
        if (b == NULL || (b->value == NULL && !b->unsupported))
            return tl_fail(im->diag, TL_BAD_MODEL, "function '%.100s' never computes '%.100s'",
                           text_or(f->name, ""), f->output[i]);
        TL_TRY(bind(im, caller, node->output[i], b->value, b->unsupported));
    }
    return TL_OK;
}

/* ---- nodes ---- */

static tl_status import_node(tl_import *im, scope *s, const Onnx__NodeProto *node)
{
    const char *op_type = text_or(node->op_type, "");
    const char *name = text_or(node->name, node->n_output > 0 ? node->output[0] : op_type);
    const char *domain = domain_of(node->domain), *reason = NULL;
    if (op_type[0] == '\0')
        return tl_fail(im->diag, TL_BAD_MODEL, "node '%.120s' has no operator", name);
    if (++im->nodes > TL_ONNX_MAX_NODES)
        return tl_fail(im->diag, TL_BAD_MODEL, "more than %d nodes, functions counted where called",
                       TL_ONNX_MAX_NODES);
    const Onnx__FunctionProto *f =
        tl_map_find(im->functions, function_key(im->arena, domain, op_type, node->overload));
    if (f != NULL)
        return inline_function(im, s, f, node, name);

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
    TL_TRY(collect_attributes(im, s, node, c.name, &c.attr_count, &c.attrs));
    c.rule = tl_import_rule_find(domain, op_type, c.version, &reason);
    if (c.rule == NULL) {
        refuse(im, c.op_type, c.name, reason);
        return bind_unsupported(im, s, node);
    }
    if (unsupported)
        return bind_unsupported(im, s, node);
    while (c.input_count > 0 && c.inputs[c.input_count - 1] == NULL)
        c.input_count--;
    c.output_names = TL_NEW_ARRAY(im->arena, const char *, c.output_count);
    for (int i = 0; i < c.output_count; i++)
        c.output_names[i] = node->output[i][0] != '\0' ? node->output[i] : NULL;
    return run_importer(im, s, node, &c);
}

/* ---- the order of nodes ---- */

typedef struct {
    tl_import *im;
    tl_map *producers; /* name -> node number + 1, as a pointer into `numbers` */
    Onnx__NodeProto **nodes;
    int *state; /* 0 new, 1 open, 2 done */
    int *stack, *order;
    size_t *next;
    const char ***reads; /* by node, filled when it is opened */
    size_t *read_count;
    int done;
} sorter;

/* The names a node reads, those of its branches included. */
static void collect_reads(const Onnx__NodeProto *node, tl_arena *arena, const char ***list,
                          size_t *count, size_t *capacity)
{
    for (size_t i = 0; i < node->n_input; i++) {
        if (*count == *capacity) {
            const char **larger = TL_NEW_ARRAY(arena, const char *, *capacity * 2 + 8);
            if (*count > 0)
                memcpy(larger, *list, sizeof *larger * *count);
            *list = larger;
            *capacity = *capacity * 2 + 8;
        }
        (*list)[(*count)++] = node->input[i];
    }
    for (size_t a = 0; a < node->n_attribute; a++) {
        const Onnx__AttributeProto *attr = node->attribute[a];
        for (size_t g = 0; g < attr->n_graphs + 1; g++) {
            const Onnx__GraphProto *body = g < attr->n_graphs ? attr->graphs[g] : attr->g;
            for (size_t i = 0; body != NULL && i < body->n_node; i++)
                collect_reads(body->node[i], arena, list, count, capacity);
        }
    }
}

static void open_node(sorter *s, int n, int depth)
{
    size_t capacity = 0;
    collect_reads(s->nodes[n], s->im->arena, &s->reads[n], &s->read_count[n], &capacity);
    s->state[n] = 1;
    s->stack[depth] = n;
    s->next[depth] = 0;
}

static tl_status sort_from(sorter *s, int root)
{
    int depth = 0;
    open_node(s, root, depth++);
    while (depth > 0) {
        int n = s->stack[depth - 1];
        if (s->next[depth - 1] == s->read_count[n]) {
            s->state[n] = 2;
            s->order[s->done++] = n;
            depth--;
            continue;
        }
        const char *name = s->reads[n][s->next[depth - 1]++];
        const int *number = name[0] != '\0' ? tl_map_find(s->producers, name) : NULL;
        if (number == NULL || s->state[*number] == 2)
            continue;
        if (s->state[*number] == 1)
            return tl_fail(s->im->diag, TL_BAD_MODEL,
                           "node '%.120s' depends on its own result, through '%.120s'",
                           text_or(s->nodes[*number]->name, name), name);
        open_node(s, *number, depth++);
    }
    return TL_OK;
}

/* Nodes in an order in which each comes after those it reads: the file's own order where that is one. */
static tl_status import_nodes(tl_import *im, scope *s, size_t count, Onnx__NodeProto **nodes)
{
    if (count > TL_ONNX_MAX_NODES)
        return tl_fail(im->diag, TL_BAD_MODEL, "more than %d nodes", TL_ONNX_MAX_NODES);
    int *numbers = TL_NEW_ARRAY(im->arena, int, count);
    sorter sort = { .im = im,
                    .producers = tl_map_create(im->arena),
                    .nodes = nodes,
                    .state = TL_NEW_ARRAY(im->arena, int, count),
                    .stack = TL_NEW_ARRAY(im->arena, int, count + 1),
                    .order = TL_NEW_ARRAY(im->arena, int, count),
                    .next = TL_NEW_ARRAY(im->arena, size_t, count + 1),
                    .reads = TL_NEW_ARRAY(im->arena, const char **, count),
                    .read_count = TL_NEW_ARRAY(im->arena, size_t, count) };
    for (size_t n = 0; n < count; n++) {
        numbers[n] = (int)n;
        for (size_t i = 0; i < nodes[n]->n_output; i++) {
            const char *name = nodes[n]->output[i];
            if (name[0] == '\0')
                continue;
            if (tl_map_has(sort.producers, name) || lookup(s, name) != NULL)
                return tl_fail(im->diag, TL_BAD_MODEL, "the name '%.200s' is defined twice", name);
            tl_map_put(sort.producers, name, &numbers[n]);
        }
    }
    for (size_t n = 0; n < count; n++)
        if (sort.state[n] == 0)
            TL_TRY(sort_from(&sort, (int)n));
    for (size_t n = 0; n < count; n++)
        TL_TRY(import_node(im, s, nodes[sort.order[n]]));
    return TL_OK;
}

/* ---- graphs ---- */

static tl_status import_initializer(tl_import *im, scope *s, Onnx__TensorProto *t)
{
    tl_onnx_tensor tensor;
    tl_diag diag = { 0 };
    const char *name = text_or(t->name, NULL);
    if (name == NULL)
        return tl_fail(im->diag, TL_BAD_MODEL, "an initializer has no name");
    tl_status status = tl_onnx_read_tensor(im->arena, im->model, t, &tensor, &diag);
    if (status == TL_UNSUPPORTED) {
        refuse(im, "initializer", name, diag.text);
        return bind(im, s, name, NULL, true);
    }
    if (status != TL_OK)
        return tl_fail(im->diag, status, "%s", diag.text);
    name = tl_arena_format(im->arena, "%s%s", s->prefix, name);
    tl_value *v = tl_graph_constant(im->graph, name, tensor.dtype, &tensor.shape, tensor.data);
    return bind(im, s, t->name, v, false);
}

tl_status tl_import_constant(tl_onnx_call *c, Onnx__TensorProto *t, tl_value **out)
{
    tl_onnx_tensor tensor;
    tl_diag diag = { 0 };
    tl_status status = tl_onnx_read_tensor(c->arena, c->import->model, t, &tensor, &diag);
    if (status == TL_UNSUPPORTED)
        return tl_call_unsupported(c, "%s", diag.text);
    if (status != TL_OK)
        return tl_call_bad(c, "%s", diag.text);
    const char *name = tl_arena_format(c->arena, "%s.c%d", c->name, c->temporaries++);
    *out = tl_graph_constant(c->graph, name, tensor.dtype, &tensor.shape, tensor.data);
    return TL_OK;
}

static tl_status read_dim(tl_import *im, const char *name, int i,
                          const Onnx__TensorShapeProto__Dimension *d, tl_dim *out)
{
    *out = (tl_dim){ .extent = -1 };
    if (d->has_dim_value && d->dim_value < -1)
        return tl_fail(im->diag, TL_BAD_MODEL, "graph input '%.120s': dimension %d is %lld", name,
                       i, (long long)d->dim_value);
    if (d->has_dim_value)
        out->extent = d->dim_value;
    else if (text_or(d->dim_param, NULL) != NULL)
        out->name = tl_arena_strdup(im->arena, d->dim_param);
    return TL_OK;
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
                           "the shape given for input '%.120s' does not agree with the model's",
                           name);
        *shape = *given;
    }
    return TL_OK;
}

static tl_status import_input(tl_import *im, scope *s, const Onnx__ValueInfoProto *info)
{
    const char *name = text_or(info->name, NULL);
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
        refuse(im, "graph input", name, "it is no dense tensor");
        return bind(im, s, name, NULL, true);
    }
    if (!tl_dtype_from_onnx(type->tensor_type->elem_type, &dtype)) {
        refuse(im, "graph input", name,
               tl_arena_format(im->arena, "data type %s (%d)",
                               tl_onnx_dtype_text(type->tensor_type->elem_type),
                               type->tensor_type->elem_type));
        return bind(im, s, name, NULL, true);
    }
    const Onnx__TensorShapeProto *dims = type->tensor_type->shape;
    if (dims != NULL && dims->n_dim > TL_MAX_RANK) {
        refuse(im, "graph input", name,
               tl_arena_format(im->arena, "rank %zu; at most %d is supported", dims->n_dim,
                               TL_MAX_RANK));
        return bind(im, s, name, NULL, true);
    }
    shape.rank = dims != NULL ? (int)dims->n_dim : -1;
    for (int i = 0; i < shape.rank; i++)
        TL_TRY(read_dim(im, name, i, dims->dim[i], &shape.dims[i]));
    TL_TRY(override_shape(im, name, &shape));
    if (tl_shape_is_static(&shape) && tl_shape_elements(&shape) < 0)
        return tl_fail(im->diag, TL_BAD_MODEL,
                       "graph input '%.120s': the product of its dimensions overflows", name);
    tl_value *v = tl_graph_value(im->graph, name, dtype, &shape);
    tl_graph_add_input(im->graph, v);
    return bind(im, s, name, v, false);
}

static tl_status import_body(tl_import *im, scope *s, Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_initializer; i++)
        TL_TRY(import_initializer(im, s, g->initializer[i]));
    for (size_t i = 0; i < g->n_sparse_initializer; i++) {
        const Onnx__TensorProto *t = g->sparse_initializer[i]->values;
        const char *name = t != NULL ? text_or(t->name, NULL) : NULL;
        if (name == NULL)
            return tl_fail(im->diag, TL_BAD_MODEL, "a sparse initializer has no name");
        refuse(im, "sparse initializer", name, "sparse tensors");
        TL_TRY(bind(im, s, name, NULL, true));
    }
    for (size_t i = 0; i < g->n_input; i++) {
        const char *name = text_or(g->input[i]->name, NULL);
        const binding *b = name != NULL ? tl_map_find(s->bindings, name) : NULL;
        /* an initializer that is an input too is a default: it stays a constant */
        if (b == NULL || (b->value != NULL && b->value->is_input))
            TL_TRY(import_input(im, s, g->input[i]));
    }
    return import_nodes(im, s, g->n_node, g->node);
}

tl_status tl_import_branch(tl_onnx_call *c, Onnx__GraphProto *branch)
{
    tl_import *im = c->import;
    scope *outer = im->current;
    scope s = *outer;
    s.parent = outer;
    s.function = NULL;
    s.bindings = tl_map_create(im->arena);
    s.prefix = tl_arena_format(im->arena, "%s/", c->name);
    if (branch->n_input > 0 || branch->n_output != (size_t)c->output_count)
        return tl_call_bad(c, "its branch has %zu inputs and %zu outputs, not 0 and %d",
                           branch->n_input, branch->n_output, c->output_count);
    TL_TRY(import_body(im, &s, branch));
    for (int i = 0; i < c->output_count; i++) {
        const binding *b = lookup(&s, text_or(branch->output[i]->name, ""));
        if (b == NULL || (b->value == NULL && !b->unsupported))
            return tl_call_bad(c, "its branch never computes output %d", i);
        if (c->output_names[i] != NULL)
            TL_TRY(bind(im, outer, c->output_names[i], b->value, b->unsupported));
    }
    return TL_OK;
}

/* Graph outputs have names of their own, even where one value is an input, a constant, or two of them. */
static tl_status import_outputs(tl_import *im, const scope *s, const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_output; i++) {
        const char *name = text_or(g->output[i]->name, "");
        const binding *b = lookup(s, name);
        if (b == NULL)
            return tl_fail(im->diag, TL_BAD_MODEL, "graph output '%.120s' is never computed", name);
        if (b->unsupported)
            continue;
        tl_value *v = b->value;
        if (v->producer == NULL || v->is_output) {
            tl_value *copy = tl_graph_value(im->graph, name, v->dtype, &v->shape);
            copy->dtype_known = v->dtype_known;
            tl_graph_node(im->graph, TL_OP_IDENTITY, name, 1, &v, 1, &copy);
            v = copy;
        }
        v->name = tl_arena_strdup(im->arena, name);
        tl_graph_add_output(im->graph, v);
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
                         const tl_shape_override *shapes, int shape_count, tl_graph **out,
                         tl_diag *diag)
{
    tl_diag unread = { 0 };
    tl_import im = { .arena = arena,
                     .model = model,
                     .graph = tl_graph_create(arena, text_or(proto->graph->name, "graph")),
                     .functions = tl_map_create(arena),
                     .refusals = tl_map_create(arena),
                     .shapes = shapes,
                     .shape_count = shape_count,
                     .diag = diag != NULL ? diag : &unread };
    scope top = { .bindings = tl_map_create(arena),
                  .prefix = "",
                  .import_count = proto->n_opset_import,
                  .imports = proto->opset_import };
    TL_TRY(default_opset(&im, top.import_count, top.imports, &top.opset));
    if (top.opset == 0 && proto->ir_version < 3)
        top.opset = 1; /* from before opsets */
    if (top.opset == 0 && proto->n_opset_import == 0)
        return tl_fail(diag, TL_BAD_MODEL, "the model imports no opset");
    for (size_t i = 0; i < proto->n_functions; i++) {
        Onnx__FunctionProto *f = proto->functions[i];
        const char *key = function_key(arena, f->domain, f->name, f->overload);
        if (tl_map_has(im.functions, key))
            return tl_fail(diag, TL_BAD_MODEL, "function '%.120s' is defined twice",
                           text_or(f->name, ""));
        tl_map_put(im.functions, key, f);
    }
    TL_TRY(import_body(&im, &top, proto->graph));
    TL_TRY(import_outputs(&im, &top, proto->graph));
    TL_TRY(report_refusals(&im));
    TL_TRY(check_overrides(&im));
    *out = im.graph;
    return TL_OK;
}
