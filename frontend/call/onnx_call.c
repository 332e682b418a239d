/* frontend/call/onnx_call.c: what an importer sees of the node it imports, and how it makes canonical nodes.
 *
 * Dtypes and shapes are inferred as nodes are made, where the inputs allow: forms of older opsets mean different things
 * at different ranks. The rules work on a copy of the node; the graph keeps the node as it was imported, for
 * shape inference proper. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "frontend/call/onnx_emit.h"
#include "frontend/call/onnx_counts.h"
#include "frontend/call/onnx_scope.h"
#include "frontend/node/fold_node.h"
#include "frontend/node/shape_rules.h"
#include "frontend/value_notes.h"

/* ---- attributes ---- */

static Onnx__AttributeProto *find(const tl_onnx_call *c, const char *name)
{
    for (int i = 0; i < c->attr_count; i++)
        if (strcmp(c->attrs[i]->name, name) == 0)
            return c->attrs[i];
    return NULL;
}

bool tl_call_has(const tl_onnx_call *c, const char *name)
{
    return find(c, name) != NULL;
}

int64_t tl_call_int(const tl_onnx_call *c, const char *name, int64_t otherwise)
{
    const Onnx__AttributeProto *a = find(c, name);
    return a != NULL ? a->i : otherwise;
}

double tl_call_float(const tl_onnx_call *c, const char *name, double otherwise)
{
    const Onnx__AttributeProto *a = find(c, name);
    return a != NULL ? (double)a->f : otherwise;
}

const char *tl_call_string(const tl_onnx_call *c, const char *name, const char *otherwise)
{
    const Onnx__AttributeProto *a = find(c, name);
    if (a == NULL)
        return otherwise;
    return tl_arena_strndup(c->arena, a->s.len > 0 ? (const char *)a->s.data : "", a->s.len);
}

int tl_call_ints(const tl_onnx_call *c, const char *name, const int64_t **out)
{
    const Onnx__AttributeProto *a = find(c, name);
    *out = a != NULL ? a->ints : NULL;
    return a != NULL ? (int)a->n_ints : -1;
}

int tl_call_floats(const tl_onnx_call *c, const char *name, const float **out)
{
    const Onnx__AttributeProto *a = find(c, name);
    *out = a != NULL ? a->floats : NULL;
    return a != NULL ? (int)a->n_floats : -1;
}

int tl_call_strings(const tl_onnx_call *c, const char *name, const char *const **out)
{
    const Onnx__AttributeProto *a = find(c, name);
    int count = a != NULL ? (int)a->n_strings : -1;
    const char **texts = TL_NEW_ARRAY(c->arena, const char *, count > 0 ? count : 0);
    for (int i = 0; i < count; i++) { /* an empty one has no data */
        const ProtobufCBinaryData *s = &a->strings[i];
        texts[i] = s->len > 0 ? tl_arena_strndup(c->arena, (const char *)s->data, s->len) : "";
    }
    *out = texts;
    return count;
}

Onnx__TensorProto *tl_call_tensor(const tl_onnx_call *c, const char *name)
{
    const Onnx__AttributeProto *a = find(c, name);
    return a != NULL ? a->t : NULL;
}

Onnx__GraphProto *tl_call_graph(const tl_onnx_call *c, const char *name)
{
    const Onnx__AttributeProto *a = find(c, name);
    return a != NULL ? a->g : NULL;
}

/* The type that the rule's attribute list gives `name`, 0 when it is not there. */
static int listed_type(const char *list, const char *name)
{
    static const struct {
        const char *letters;
        int type;
    } types[] = {
        { "f", TL_ONNX_FLOAT },   { "i", TL_ONNX_INT },      { "s", TL_ONNX_STRING },
        { "t", TL_ONNX_TENSOR },  { "g", TL_ONNX_GRAPH },    { "fs", TL_ONNX_FLOATS },
        { "is", TL_ONNX_INTS },   { "ss", TL_ONNX_STRINGS }, { "ts", TL_ONNX_TENSORS },
        { "gs", TL_ONNX_GRAPHS }, { "st", TL_ONNX_SPARSE },  { "tp", TL_ONNX_TYPE },
    };
    size_t length = strlen(name);
    while (*list != '\0') {
        size_t word = strcspn(list, ":"), whole = strcspn(list, " ");
        if (word == length && memcmp(list, name, length) == 0)
            for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
                if (strlen(types[i].letters) == whole - word - 1 &&
                    memcmp(types[i].letters, list + word + 1, whole - word - 1) == 0)
                    return types[i].type;
        list += whole;
        list += strspn(list, " ");
    }
    return 0;
}

/* The fields that hold something, a bit for each attribute type. */
static unsigned filled(const Onnx__AttributeProto *a)
{
    return (a->has_f ? 1u << TL_ONNX_FLOAT : 0) | (a->has_i ? 1u << TL_ONNX_INT : 0) |
           (a->has_s ? 1u << TL_ONNX_STRING : 0) | (a->t != NULL ? 1u << TL_ONNX_TENSOR : 0) |
           (a->g != NULL ? 1u << TL_ONNX_GRAPH : 0) | (a->n_floats > 0 ? 1u << TL_ONNX_FLOATS : 0) |
           (a->n_ints > 0 ? 1u << TL_ONNX_INTS : 0) |
           (a->n_strings > 0 ? 1u << TL_ONNX_STRINGS : 0) |
           (a->n_tensors > 0 ? 1u << TL_ONNX_TENSORS : 0) |
           (a->n_graphs > 0 ? 1u << TL_ONNX_GRAPHS : 0) |
           (a->sparse_tensor != NULL ? 1u << TL_ONNX_SPARSE : 0) |
           (a->tp != NULL ? 1u << TL_ONNX_TYPE : 0);
}

static tl_status check_attribute(tl_onnx_call *c, const Onnx__AttributeProto *a)
{
    int type = listed_type(c->rule->attributes, a->name);
    unsigned have = filled(a);
    if (type == 0)
        return tl_call_bad(c, "there is no attribute '%.60s' in opset %d", a->name, c->version);
    if (a->has_type && a->type != type)
        return tl_call_bad(c, "attribute '%.60s' has type %d, not %d", a->name, a->type, type);
    if (have != 0 && (have & 1u << type) == 0)
        return tl_call_bad(c, "attribute '%.60s' holds a value of another type", a->name);
    bool pointer = type == TL_ONNX_TENSOR || type == TL_ONNX_GRAPH || type == TL_ONNX_SPARSE;
    if (have == 0 && (pointer || !a->has_type))
        return tl_call_bad(c, "attribute '%.60s' holds nothing", a->name);
    if (type == TL_ONNX_STRING && a->s.len > 0 && memchr(a->s.data, '\0', a->s.len) != NULL)
        return tl_call_bad(c, "attribute '%.60s' holds a zero byte", a->name);
    if (a->n_ints > (1u << 20) || a->n_floats > (1u << 20) || a->n_strings > (1u << 20))
        return tl_call_bad(c, "attribute '%.60s' holds more than 2^20 values", a->name);
    return TL_OK;
}

tl_status tl_check_attributes(tl_onnx_call *c)
{
    for (int i = 0; i < c->attr_count; i++) {
        for (int k = 0; k < i; k++)
            if (strcmp(c->attrs[k]->name, c->attrs[i]->name) == 0)
                return tl_call_bad(c, "attribute '%.60s' is given twice", c->attrs[i]->name);
        /* a hint of the first opsets about memory, without meaning */
        if (c->version < 6 && strcmp(c->attrs[i]->name, "consumed_inputs") == 0)
            continue;
        TL_TRY(check_attribute(c, c->attrs[i]));
    }
    return TL_OK;
}

/* ---- inputs, outputs, failures ---- */

tl_value *tl_call_input(const tl_onnx_call *c, int i)
{
    return i < c->input_count ? c->inputs[i] : NULL;
}

bool tl_call_wants(const tl_onnx_call *c, int output)
{
    return output < c->output_count && c->output_names[output] != NULL;
}

tl_status tl_call_bad(tl_onnx_call *c, const char *format, ...)
{
    char sentence[768];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return tl_fail(c->diag, TL_BAD_MODEL, "node '%.120s' (%.60s): %s", c->name, c->op_type,
                   sentence);
}

/* ---- making nodes ---- */

/* The dtype that the operator gives where shapes do not count; false when that is not known. */
static bool dtype_of(const tl_node *n, tl_dtype *out)
{
    const tl_value *like = NULL;
    switch (tl_operators[n->op].dtype) {
    case TL_GIVES_FIRST:
        like = tl_node_input(n, 0);
        break;
    case TL_GIVES_SECOND:
        like = tl_node_input(n, 1);
        break;
    case TL_GIVES_BOOL:
        *out = TL_BOOL;
        return true;
    case TL_GIVES_I64:
        *out = TL_I64;
        return true;
    case TL_GIVES_TO:
        *out = (tl_dtype)tl_attr_int(n, "to", TL_F32);
        return true;
    case TL_GIVES_DTYPE:
        *out = (tl_dtype)tl_attr_int(n, "dtype", TL_F32);
        return true;
    }
    if (like == NULL || !like->dtype_known)
        return false;
    *out = like->dtype;
    return true;
}

/* The dtype of a result whose shape cannot be known yet. */
static void guess_dtype(tl_node *n)
{
    tl_dtype dtype;
    bool known = dtype_of(n, &dtype);
    for (int i = 0; known && i < n->output_count; i++)
        if (n->outputs[i] != NULL) {
            n->outputs[i]->dtype = dtype;
            n->outputs[i]->dtype_known = true;
        }
}

static bool inputs_are_known(const tl_node *n)
{
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i] != NULL &&
            (!n->inputs[i]->dtype_known || !tl_shape_is_static(&n->inputs[i]->shape)))
            return false;
    return true;
}

/* A node that the rules and folding may change; the graph's stays as it was imported. */
static tl_node copy_of(tl_arena *arena, const tl_node *n)
{
    tl_node copy = *n;
    tl_value **inputs = TL_NEW_ARRAY(arena, tl_value *, n->input_count);
    for (int i = 0; i < n->input_count; i++)
        inputs[i] = n->inputs[i];
    copy.inputs = inputs;
    copy.uses = NULL;
    copy.attrs = TL_NEW_ARRAY(arena, tl_attr, n->attr_count);
    for (int i = 0; i < n->attr_count; i++)
        copy.attrs[i] = n->attrs[i];
    return copy;
}

static void make_constant(tl_onnx_call *c, const tl_node *n, tl_value *v, const void *data)
{
    tl_notes_make(c->graph, v)->folded = n->name;
    v->data = data;
    v->producer = NULL;
}

/* The parts of a constant, which is small. */
static void fold_split(tl_onnx_call *c, tl_node *n, const tl_node *bound)
{
    const tl_value *x = bound->inputs[0];
    int axis = (int)tl_attr_int(bound, "axis", 0);
    size_t rows = 1, inner = tl_dtype_size(x->dtype), from = 0;
    for (int i = 0; i < x->shape.rank; i++)
        *(i < axis ? &rows : &inner) *= i == axis ? 1 : (size_t)x->shape.dims[i].extent;
    size_t row = inner * (size_t)x->shape.dims[axis].extent;
    const int64_t *sizes;
    tl_attr_ints(bound, "split", &sizes);
    for (int i = 0; i < n->output_count; i++) {
        size_t part = inner * (size_t)sizes[i];
        char *data = tl_arena_alloc(c->arena, rows * part + 1, 64);
        for (size_t r = 0; r < rows; r++)
            memcpy(data + r * part, (const char *)x->data + r * row + from, part);
        if (n->outputs[i] != NULL)
            make_constant(c, n, n->outputs[i], data);
        from += part;
    }
    tl_node_kill(n);
}

/* `bound`: a copy of `n` whose rule has been applied. */
static tl_status fold_bound(tl_onnx_call *c, tl_node *n, tl_node *bound)
{
    const void *data;
    bool is_kept = c->graph->kept != NULL && tl_map_has(c->graph->kept, n->name);
    if (n->op == TL_OP_SPLIT && !is_kept && bound->inputs[0]->data != NULL &&
        tl_node_may_decide_shapes(bound) &&
        tl_shape_elements(&bound->inputs[0]->shape) <= TL_DECIDING_ELEMENTS) {
        fold_split(c, n, bound);
        return TL_OK;
    }
    if (!tl_node_may_decide_shapes(bound) || !tl_node_is_foldable(c->graph, bound))
        return TL_OK;
    TL_TRY(tl_node_value(c->graph, bound, &data, c->diag));
    make_constant(c, n, n->outputs[0], data);
    tl_node_kill(n);
    return TL_OK;
}

tl_status tl_onnx_fold(tl_onnx_call *c, tl_node *n)
{
    tl_node copy = copy_of(c->arena, n);
    tl_diag diag = { 0 };
    if (tl_bind_operands(c->graph, &copy, &diag) != TL_OK ||
        tl_operators[n->op].shape(c->graph, &copy, &diag) != TL_OK)
        return TL_OK; /* shape inference proper says what is wrong */
    TL_TRY(tl_check_constants(c->graph, &copy, c->diag));
    return fold_bound(c, n, &copy);
}

/* Operands that decide the shape of the node's result, made constants where that is possible. */
static tl_status decide_operands(tl_onnx_call *c, tl_node *n)
{
    for (int i = 0; i < n->input_count; i++) {
        tl_value *v = n->inputs[i];
        if (!tl_operand_decides_shape(n->op, i))
            continue;
        TL_TRY(tl_call_decide(c, &v));
        if (v != n->inputs[i])
            tl_node_set_input(n, i, v);
    }
    return TL_OK;
}

/* Dtypes and shapes of the outputs of a new node, by its rule applied to a copy; its value, if it is shape arithmetic. */
static tl_status infer(tl_onnx_call *c, tl_node *n)
{
    TL_TRY(decide_operands(c, n));
    tl_node copy = copy_of(c->arena, n);
    tl_diag diag = { 0 };
    if (!inputs_are_known(n) || tl_bind_operands(c->graph, &copy, &diag) != TL_OK) {
        guess_dtype(n);
        return TL_OK;
    }
    tl_status status = tl_operators[n->op].shape(c->graph, &copy, &diag);
    if (status == TL_BAD_MODEL)
        return tl_fail(c->diag, status, "%s", diag.text);
    if (status != TL_OK)
        return TL_OK;
    TL_TRY(tl_check_constants(c->graph, &copy, c->diag));
    return fold_bound(c, n, &copy);
}

tl_node *tl_onnx_emit_node(tl_onnx_call *c, tl_op op, int input_count, tl_value *const *inputs)
{
    const char *name = c->temporaries++ == 0
                           ? c->name
                           : tl_arena_format(c->arena, "%s.%d", c->name, c->temporaries - 1);
    tl_value *y = tl_graph_value(c->graph, name, TL_DTYPE_COUNT, NULL);
    return tl_graph_node(c->graph, op, name, input_count, inputs, 1, &y);
}

tl_value *tl_emitted(tl_onnx_call *c, tl_node *n)
{
    tl_value *y = n->outputs[0];
    bool is_shape = n->op == TL_OP_SHAPE && c->import->plain_nodes == 0 &&
                    tl_counts_of(c->import, n->inputs[0]) != NULL;
    tl_count_operands(c, n);
    if (c->status == TL_OK && !is_shape)
        c->status = infer(c, n);
    if (c->status == TL_OK)
        c->status = tl_count_result(c, n, &y);
    return y;
}

tl_value *tl_emit1(tl_onnx_call *c, tl_op op, tl_value *x)
{
    return tl_emitted(c, tl_onnx_emit_node(c, op, 1, &x));
}

tl_value *tl_emit2(tl_onnx_call *c, tl_op op, tl_value *x, tl_value *y)
{
    tl_value *inputs[] = { x, y };
    return tl_emitted(c, tl_onnx_emit_node(c, op, 2, inputs));
}

tl_value *tl_onnx_emit_where(tl_onnx_call *c, tl_value *condition, tl_value *yes, tl_value *no)
{
    tl_value *inputs[] = { condition, yes, no };
    return tl_emitted(c, tl_onnx_emit_node(c, TL_OP_WHERE, 3, inputs));
}

tl_value *tl_onnx_emit_cast(tl_onnx_call *c, tl_value *x, tl_dtype to)
{
    if (x->dtype_known && x->dtype == to)
        return x;
    tl_node *n = tl_onnx_emit_node(c, TL_OP_CAST, 1, &x);
    tl_attr_set_int(c->graph, n, "to", to);
    return tl_emitted(c, n);
}

tl_value *tl_onnx_emit_ints(tl_onnx_call *c, tl_op op, tl_value *x, const char *attribute,
                            const int64_t *ints, int count)
{
    tl_node *n = tl_onnx_emit_node(c, op, 1, &x);
    tl_attr_set_ints(c->graph, n, attribute, ints, count);
    return tl_emitted(c, n);
}

tl_value *tl_onnx_emit_reduce(tl_onnx_call *c, tl_op op, tl_value *x, const int64_t *axes,
                              int count, bool keepdims)
{
    tl_node *n = tl_onnx_emit_node(c, op, 1, &x);
    tl_attr_set_ints(c->graph, n, "axes", axes, count);
    tl_attr_set_int(c->graph, n, "keepdims", keepdims);
    return tl_emitted(c, n);
}

tl_value *tl_onnx_emit_reshape(tl_onnx_call *c, tl_value *x, const int64_t *extents, int rank)
{
    tl_node *n = tl_onnx_emit_node(c, TL_OP_RESHAPE, 1, &x);
    tl_attr_set_ints(c->graph, n, "shape", extents, rank);
    tl_attr_set_int(c->graph, n, "allowzero", 1);
    return tl_emitted(c, n);
}

tl_value *tl_onnx_emit_shape_like(tl_onnx_call *c, tl_op op, tl_value *y, tl_value *x)
{
    int64_t extents[TL_MAX_RANK];
    tl_value *inputs[] = { y, NULL };
    bool known = tl_shape_is_static(&x->shape);
    if (!known)
        inputs[1] = tl_emit1(c, TL_OP_SHAPE, x);
    for (int i = 0; known && i < x->shape.rank; i++)
        extents[i] = x->shape.dims[i].extent;
    tl_node *n = tl_onnx_emit_node(c, op, known ? 1 : 2, inputs);
    if (known)
        tl_attr_set_ints(c->graph, n, "shape", extents, x->shape.rank);
    if (op == TL_OP_RESHAPE)
        tl_attr_set_int(c->graph, n, "allowzero", 1);
    return tl_emitted(c, n);
}

tl_value *tl_onnx_emit_scalar(tl_onnx_call *c, tl_dtype dtype, double value)
{
    tl_shape scalar = tl_shape_of(0, NULL);
    void *data = tl_arena_alloc(c->arena, 8, 8);
    tl_number_store(dtype, data, 0, tl_number_cast(dtype, TL_F64, (tl_number){ .f = value }));
    const char *name = tl_arena_format(c->arena, "%s.c%d", c->name, c->temporaries++);
    return tl_graph_constant(c->graph, name, dtype, &scalar, data);
}

bool tl_call_has_room(tl_onnx_call *c, int64_t numbers)
{
    if (numbers >= 0 && numbers <= TL_ONNX_ALL_NUMBERS - c->import->numbers) {
        c->import->numbers += numbers;
        return true;
    }
    tl_status status = tl_call_unsupported(c, "more than %d numbers that operators write down",
                                           TL_ONNX_ALL_NUMBERS);
    c->status = c->status == TL_OK ? status : c->status;
    return false;
}

tl_value *tl_onnx_emit_i64(tl_onnx_call *c, const int64_t *values, int count)
{
    int64_t extent = count;
    if (!tl_call_has_room(c, count))
        return tl_onnx_emit_scalar(c, TL_I64, 0);
    tl_shape shape = tl_shape_of(1, &extent);
    const void *data = tl_arena_copy(c->arena, values, sizeof *values * (size_t)count, 8);
    const char *name = tl_arena_format(c->arena, "%s.c%d", c->name, c->temporaries++);
    return tl_graph_constant(c->graph, name, TL_I64, &shape, data);
}

/* ---- constants ---- */

int tl_constant_i64(tl_arena *arena, const tl_value *v, const int64_t **out)
{
    if (v == NULL || v->data == NULL || !tl_dtype_is_int(v->dtype))
        return -1;
    int64_t count = tl_shape_elements(&v->shape);
    if (count > 1 << 20)
        return -1;
    int64_t *ints = TL_NEW_ARRAY(arena, int64_t, count);
    for (int64_t i = 0; i < count; i++)
        ints[i] = tl_number_load(v->dtype, v->data, (size_t)i).i;
    *out = ints;
    return (int)count;
}

bool tl_constant_number(const tl_value *v, double *out)
{
    if (v == NULL || v->data == NULL || tl_shape_elements(&v->shape) != 1)
        return false;
    tl_number n = tl_number_load(v->dtype, v->data, 0);
    *out = tl_dtype_is_float(v->dtype) ? n.f : (double)n.i;
    return true;
}

/* Whether a value that a node made is the result of another of its outputs too, and has that name. */
static bool is_named(const tl_onnx_scope *s, const tl_value *v)
{
    size_t prefix = strlen(s->prefix);
    if (strncmp(v->name, s->prefix, prefix) != 0)
        return false;
    const tl_onnx_binding *b = tl_scope_find(s, v->name + prefix);
    return b != NULL && b->value == v;
}

void tl_result(tl_onnx_call *c, int i, tl_value *v)
{
    tl_import *im = c->import;
    if (!tl_call_wants(c, i))
        return;
    const char *name = c->output_names[i];
    bool ours = v->index >= c->first_value && v->producer != NULL;
    if (ours && !is_named(im->current, v))
        v->name = tl_arena_format(im->arena, "%s%s", im->current->prefix, name);
    tl_status status = tl_scope_bind(im, im->current, name, v, false);
    if (c->status == TL_OK)
        c->status = status;
}

/* ---- what the reader does ---- */

tl_status tl_import_body(tl_onnx_call *c, Onnx__GraphProto *body, const char *prefix,
                         int input_count, tl_value *const *inputs, int output_count,
                         tl_value **outputs)
{
    return c->import->reader->body(c, body, prefix, input_count, inputs, output_count, outputs);
}

tl_status tl_import_constant(tl_onnx_call *c, Onnx__TensorProto *t, tl_value **out)
{
    return c->import->reader->constant(c, t, out);
}
