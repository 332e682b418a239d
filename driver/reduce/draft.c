/* driver/reduce/draft.c: a model that is being edited. */
#include "driver/reduce/draft.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "frontend/frontend.h"
#include "runtime/base/random.h"

static void *allocate(void *data, size_t size)
{
    return tl_arena_alloc(data, size, _Alignof(max_align_t));
}

static void release(void *data, void *block)
{
    (void)data;
    (void)block;
}

bool tl_draft_read(tl_arena *arena, const tl_text *bytes, tl_draft *out)
{
    ProtobufCAllocator allocator = { allocate, release, arena };
    out->arena = arena;
    out->model =
        onnx__model_proto__unpack(&allocator, bytes->size, (const uint8_t *)tl_text_get(bytes));
    out->graph = out->model != NULL ? out->model->graph : NULL;
    return out->graph != NULL;
}

bool tl_draft_write(const tl_draft *d, tl_text *out)
{
    size_t size = onnx__model_proto__get_packed_size(d->model);
    char *data = size <= TL_ONNX_MOST_BYTES ? malloc(size + 1) : NULL;
    *out = (tl_text){ 0 };
    if (data == NULL)
        return false;
    data[onnx__model_proto__pack(d->model, (uint8_t *)data)] = '\0';
    *out = (tl_text){ .data = data, .size = size, .capacity = size + 1 };
    return true;
}

void *tl_draft_appended(tl_draft *d, const void *list, size_t count, void *item)
{
    void **longer = TL_NEW_ARRAY(d->arena, void *, count + 1);
    if (count > 0)
        memcpy(longer, list, count * sizeof *longer);
    longer[count] = item;
    return longer;
}

/* ---- who reads what ---- */

static void reads_of_graph(Onnx__GraphProto *g, tl_read_visitor *visit, void *user)
{
    for (size_t i = 0; i < g->n_node; i++)
        tl_draft_reads(g->node[i], visit, user);
    for (size_t i = 0; i < g->n_output; i++)
        if (g->output[i]->name != NULL)
            visit(&g->output[i]->name, user);
}

void tl_draft_reads(Onnx__NodeProto *node, tl_read_visitor *visit, void *user)
{
    for (size_t i = 0; i < node->n_input; i++)
        if (*node->input[i] != '\0')
            visit(&node->input[i], user);
    for (size_t i = 0; i < node->n_attribute; i++) {
        Onnx__AttributeProto *a = node->attribute[i];
        if (a->g != NULL)
            reads_of_graph(a->g, visit, user);
        for (size_t k = 0; k < a->n_graphs; k++)
            reads_of_graph(a->graphs[k], visit, user);
    }
}

static void put(char **name, void *user)
{
    tl_map_put(user, *name, user);
}

void tl_draft_collect_reads(Onnx__NodeProto *node, tl_map *names)
{
    tl_draft_reads(node, put, names);
}

/* ---- what nobody needs ---- */

typedef struct {
    tl_map *producers; /* name -> its node's number + 1 */
    tl_map *needed;    /* names */
    bool *live;
    size_t *waiting, waiting_count;
} search;

static void need(char **name, void *user)
{
    search *s = user;
    tl_map_put(s->needed, *name, s);
    size_t producer = (size_t)(uintptr_t)tl_map_find(s->producers, *name);
    if (producer > 0 && !s->live[producer - 1]) {
        s->live[producer - 1] = true;
        s->waiting[s->waiting_count++] = producer - 1;
    }
}

static void keep_live_nodes(tl_draft *d, search *s)
{
    Onnx__GraphProto *g = d->graph;
    s->live = TL_NEW_ARRAY(d->arena, bool, g->n_node + 1);
    s->waiting = TL_NEW_ARRAY(d->arena, size_t, g->n_node + 1);
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            if (*g->node[i]->output[k] != '\0')
                tl_map_put(s->producers, g->node[i]->output[k], (void *)(uintptr_t)(i + 1));
    for (size_t i = 0; i < g->n_output; i++)
        if (g->output[i]->name != NULL)
            need(&g->output[i]->name, s);
    while (s->waiting_count > 0)
        tl_draft_reads(g->node[s->waiting[--s->waiting_count]], need, s);
    size_t count = 0;
    for (size_t i = 0; i < g->n_node; i++)
        if (s->live[i])
            g->node[count++] = g->node[i];
    g->n_node = count;
}

static void drop_unknown(ProtobufCMessage *message)
{
    message->n_unknown_fields = 0;
}

static size_t keep_declared(const search *s, size_t count, Onnx__ValueInfoProto **infos,
                            bool is_made)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const char *name = tl_draft_name(infos[i]->name);
        drop_unknown(&infos[i]->base);
        if (tl_map_has(s->needed, name) && (!is_made || tl_map_has(s->producers, name)))
            infos[kept++] = infos[i];
    }
    return kept;
}

static bool calls(size_t count, Onnx__NodeProto **nodes, const char *name);

static bool graph_calls(const Onnx__GraphProto *g, const char *name)
{
    return g != NULL && calls(g->n_node, g->node, name);
}

static bool calls(size_t count, Onnx__NodeProto **nodes, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(tl_draft_name(nodes[i]->op_type), name) == 0)
            return true;
        for (size_t k = 0; k < nodes[i]->n_attribute; k++) {
            const Onnx__AttributeProto *a = nodes[i]->attribute[k];
            bool found = graph_calls(a->g, name);
            for (size_t j = 0; !found && j < a->n_graphs; j++)
                found = graph_calls(a->graphs[j], name);
            if (found)
                return true;
        }
    }
    return false;
}

static void keep_called_functions(Onnx__ModelProto *m)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->n_functions; i++) {
        const char *name = tl_draft_name(m->functions[i]->name);
        bool called = graph_calls(m->graph, name);
        for (size_t k = 0; !called && k < m->n_functions; k++)
            called = k != i && calls(m->functions[k]->n_node, m->functions[k]->node, name);
        if (called)
            m->functions[kept++] = m->functions[i];
    }
    m->n_functions = kept;
}

void tl_draft_tidy(tl_draft *d)
{
    Onnx__GraphProto *g = d->graph;
    search s = { .producers = tl_map_create(d->arena), .needed = tl_map_create(d->arena) };
    keep_live_nodes(d, &s);
    g->n_input = keep_declared(&s, g->n_input, g->input, false);
    g->n_value_info = keep_declared(&s, g->n_value_info, g->value_info, true);
    size_t kept = 0;
    for (size_t i = 0; i < g->n_initializer; i++)
        if (tl_map_has(s.needed, tl_draft_name(g->initializer[i]->name)))
            g->initializer[kept++] = g->initializer[i];
    g->n_initializer = kept;
    kept = 0;
    for (size_t i = 0; i < g->n_sparse_initializer; i++) {
        const Onnx__TensorProto *values = g->sparse_initializer[i]->values;
        if (values == NULL || tl_map_has(s.needed, tl_draft_name(values->name)))
            g->sparse_initializer[kept++] = g->sparse_initializer[i];
    }
    g->n_sparse_initializer = kept;
    keep_called_functions(d->model);
    drop_unknown(&d->model->base);
    drop_unknown(&g->base);
    for (size_t i = 0; i < g->n_node; i++)
        drop_unknown(&g->node[i]->base);
}

/* ---- tensors ---- */

static bool finish_type(tl_draft_type *type)
{
    type->elements = 1;
    for (int i = 0; i < type->rank; i++)
        if (type->dims[i] < 0 ||
            __builtin_mul_overflow(type->elements, type->dims[i], &type->elements))
            return false;
    if (!tl_dtype_from_onnx(type->elem_type, &type->dtype))
        type->dtype = TL_DTYPE_COUNT;
    return type->elem_type != 0;
}

bool tl_draft_weight_type(const Onnx__TensorProto *t, tl_draft_type *out)
{
    *out = (tl_draft_type){ .elem_type = t->data_type, .rank = (int)t->n_dims };
    if (t->n_dims > sizeof out->dims / sizeof *out->dims)
        return false;
    for (size_t i = 0; i < t->n_dims; i++)
        out->dims[i] = t->dims[i];
    return finish_type(out);
}

static bool declared_type(const Onnx__ValueInfoProto *info, tl_draft_type *out)
{
    const Onnx__TypeProto__Tensor *tensor = info->type != NULL ? info->type->tensor_type : NULL;
    const Onnx__TensorShapeProto *shape = tensor != NULL ? tensor->shape : NULL;
    if (shape == NULL || shape->n_dim > sizeof out->dims / sizeof *out->dims)
        return false;
    *out = (tl_draft_type){ .elem_type = tensor->elem_type, .rank = (int)shape->n_dim };
    for (size_t i = 0; i < shape->n_dim; i++)
        out->dims[i] = shape->dim[i]->has_dim_value ? shape->dim[i]->dim_value : -1;
    return finish_type(out);
}

static bool find_declared(size_t count, Onnx__ValueInfoProto **infos, const char *name,
                          tl_draft_type *out)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(tl_draft_name(infos[i]->name), name) == 0)
            return declared_type(infos[i], out);
    return false;
}

bool tl_draft_find_type(const tl_draft *d, const char *name, tl_draft_type *out)
{
    const Onnx__GraphProto *g = d->graph;
    for (size_t i = 0; i < g->n_initializer; i++)
        if (strcmp(tl_draft_name(g->initializer[i]->name), name) == 0)
            return tl_draft_weight_type(g->initializer[i], out);
    return find_declared(g->n_value_info, g->value_info, name, out) ||
           find_declared(g->n_input, g->input, name, out) ||
           find_declared(g->n_output, g->output, name, out);
}

/* Whether the elements begin at a byte. */
static bool has_size(tl_dtype dtype)
{
    return dtype != TL_DTYPE_COUNT &&
           !(tl_dtype_is_int(dtype) && tl_dtype_infos[dtype].digits == 4);
}

const void *tl_draft_numbers(const Onnx__TensorProto *t, const tl_draft_type *type)
{
    size_t elements = (size_t)type->elements;
    if (!has_size(type->dtype) || elements == 0)
        return NULL;
    if (t->has_raw_data)
        return t->raw_data.len / tl_dtype_size(type->dtype) == elements ? t->raw_data.data : NULL;
    if (type->dtype == TL_F32 && t->n_float_data == elements)
        return t->float_data;
    if (type->dtype == TL_F64 && t->n_double_data == elements)
        return t->double_data;
    if (type->dtype == TL_I32 && t->n_int32_data == elements)
        return t->int32_data;
    return NULL;
}

Onnx__ValueInfoProto *tl_draft_declare(tl_draft *d, const char *name, const tl_draft_type *type)
{
    Onnx__ValueInfoProto *info = TL_NEW(d->arena, Onnx__ValueInfoProto);
    onnx__value_info_proto__init(info);
    info->name = tl_arena_strdup(d->arena, name);
    if (type == NULL)
        return info;
    Onnx__TypeProto__Tensor *tensor = TL_NEW(d->arena, Onnx__TypeProto__Tensor);
    info->type = TL_NEW(d->arena, Onnx__TypeProto);
    onnx__type_proto__init(info->type);
    onnx__type_proto__tensor__init(tensor);
    info->type->tensor_type = tensor;
    tensor->has_elem_type = true;
    tensor->elem_type = type->elem_type;
    tensor->shape = TL_NEW(d->arena, Onnx__TensorShapeProto);
    onnx__tensor_shape_proto__init(tensor->shape);
    tensor->shape->n_dim = (size_t)type->rank;
    tensor->shape->dim = TL_NEW_ARRAY(d->arena, Onnx__TensorShapeProto__Dimension *, type->rank);
    for (int i = 0; i < type->rank; i++) {
        Onnx__TensorShapeProto__Dimension *dim =
            TL_NEW(d->arena, Onnx__TensorShapeProto__Dimension);
        onnx__tensor_shape_proto__dimension__init(dim);
        dim->has_dim_value = true;
        dim->dim_value = type->dims[i];
        tensor->shape->dim[i] = dim;
    }
    return info;
}

Onnx__TensorProto *tl_draft_tensor(tl_draft *d, const char *name, const tl_draft_type *type)
{
    Onnx__TensorProto *t = TL_NEW(d->arena, Onnx__TensorProto);
    onnx__tensor_proto__init(t);
    t->name = tl_arena_strdup(d->arena, name);
    t->has_data_type = t->has_raw_data = true;
    t->data_type = type->elem_type;
    t->n_dims = (size_t)type->rank;
    t->dims = tl_arena_copy(d->arena, type->dims, t->n_dims * sizeof *t->dims, _Alignof(int64_t));
    t->raw_data.len = (size_t)type->elements * tl_dtype_size(type->dtype);
    t->raw_data.data = tl_arena_alloc(d->arena, t->raw_data.len, 64);
    return t;
}

void tl_draft_fill(Onnx__TensorProto *t, const tl_draft_type *type, double mean, double deviation,
                   bool positive)
{
    const char *name = tl_draft_name(t->name);
    tl_random random = tl_random_make(tl_hash_bytes(name, strlen(name), 1));
    bool is_float = tl_dtype_is_float(type->dtype);
    for (int64_t i = 0; i < type->elements; i++) {
        double x = mean + deviation * tl_random_normal(&random);
        tl_number number = { .i = 1 };
        if (is_float)
            number.f = positive ? fabs(x) : x;
        tl_number_store(type->dtype, t->raw_data.data, (size_t)i, number);
    }
}
