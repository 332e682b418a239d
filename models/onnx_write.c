/* models/onnx_write.c: an unpacked ONNX model that grows in an arena, and its way into files.
 *
 * Every public call that allocates opens a guard: when the arena runs out, the build is marked as failed and
 * later calls do nothing; that is told once, by the write. */
#include "models/onnx_write.h"
#include <stdlib.h>
#include <string.h>
#include "frontend/onnx.pb-c.h"
#include "runtime/base/arena.h"
#include "runtime/base/file.h"
#include "runtime/base/map.h"
#include "runtime/base/random.h"

enum { ATTR_FLOAT = 1, ATTR_INT = 2, ATTR_STRING = 3, ATTR_TENSOR = 4, ATTR_INTS = 7 };
enum { EXTERNAL_LEAST = 1024, EXTERNAL_ALIGN = 64 };
static const size_t IN_FILE_MOST = (size_t)2000 << 20; /* protobuf ends at 2 GB */

/* How to make an initializer's numbers, for those that are drawn when the model is written. */
typedef struct {
    bool drawn;
    double mean, deviation;
} recipe;

struct tl_onnx_build {
    tl_arena *arena;
    uint64_t seed;
    bool failed, external;
    size_t weight_size;
    Onnx__ModelProto model;
    Onnx__GraphProto graph;
    Onnx__OperatorSetIdProto opset, *opsets[1];
    Onnx__NodeProto *latest;
    recipe **recipes; /* one for each initializer */
    size_t recipe_count;
};

/* Room for one more pointer in a list that doubles. */
static void *grow(tl_arena *arena, void *list, size_t count)
{
    if ((count & (count - 1)) != 0)
        return list;
    void **larger = TL_NEW_ARRAY(arena, void *, count == 0 ? 1 : count * 2);
    if (count > 0)
        memcpy(larger, list, sizeof *larger * count);
    return larger;
}
#define APPEND(b, list, count, item)                \
    do {                                            \
        (list) = grow((b)->arena, (list), (count)); \
        (list)[(count)++] = (item);                 \
    } while (0)

tl_onnx_build *tl_onnx_build_create(const char *name, int opset, uint64_t seed)
{
    tl_arena *arena = tl_arena_create(0);
    if (arena == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        return NULL;
    }
    tl_onnx_build *b = TL_NEW(arena, tl_onnx_build);
    b->arena = arena;
    b->seed = seed;
    onnx__model_proto__init(&b->model);
    onnx__graph_proto__init(&b->graph);
    onnx__operator_set_id_proto__init(&b->opset);
    b->model.has_ir_version = 1;
    b->model.ir_version = 8;
    b->model.producer_name = tl_arena_strdup(arena, "tilth");
    b->model.graph = &b->graph;
    b->graph.name = tl_arena_strdup(arena, name);
    b->opset.domain = tl_arena_strdup(arena, "");
    b->opset.has_version = 1;
    b->opset.version = opset;
    b->opsets[0] = &b->opset;
    b->model.opset_import = b->opsets;
    b->model.n_opset_import = 1;
    return b;
}

void tl_onnx_build_destroy(tl_onnx_build *b)
{
    if (b != NULL)
        tl_arena_destroy(b->arena);
}

const char *tl_onnx_build_fail(tl_onnx_build *b)
{
    b->failed = true;
    return "";
}

bool tl_onnx_build_failed(const tl_onnx_build *b)
{
    return b->failed;
}

/* True when the call must give up: the build failed before, or right now. */
#define GIVE_UP(b) ((b)->failed || (TL_ARENA_GUARD((b)->arena) && ((b)->failed = true)))

const char *tl_build_name(tl_onnx_build *b, const char *format, ...)
{
    if (GIVE_UP(b))
        return "";
    va_list args;
    va_start(args, format);
    const char *name = tl_arena_vformat(b->arena, format, args);
    va_end(args);
    return name;
}

/* ---- inputs and outputs ---- */

static Onnx__ValueInfoProto *value_info(tl_onnx_build *b, const char *name, tl_dtype dtype,
                                        tl_build_list dims)
{
    Onnx__ValueInfoProto *info = TL_NEW(b->arena, Onnx__ValueInfoProto);
    onnx__value_info_proto__init(info);
    info->name = tl_arena_strdup(b->arena, name);
    info->type = TL_NEW(b->arena, Onnx__TypeProto);
    onnx__type_proto__init(info->type);
    Onnx__TypeProto__Tensor *tensor = TL_NEW(b->arena, Onnx__TypeProto__Tensor);
    onnx__type_proto__tensor__init(tensor);
    info->type->tensor_type = tensor;
    tensor->has_elem_type = 1;
    tensor->elem_type = tl_dtype_infos[dtype].onnx;
    tensor->shape = TL_NEW(b->arena, Onnx__TensorShapeProto);
    onnx__tensor_shape_proto__init(tensor->shape);
    for (int i = 0; i < dims.count; i++) {
        Onnx__TensorShapeProto__Dimension *d = TL_NEW(b->arena, Onnx__TensorShapeProto__Dimension);
        onnx__tensor_shape_proto__dimension__init(d);
        d->has_dim_value = 1;
        d->dim_value = dims.values[i];
        APPEND(b, tensor->shape->dim, tensor->shape->n_dim, d);
    }
    return info;
}

const char *tl_build_input(tl_onnx_build *b, const char *name, tl_dtype dtype, tl_build_list dims)
{
    if (GIVE_UP(b))
        return "";
    Onnx__ValueInfoProto *info = value_info(b, name, dtype, dims);
    APPEND(b, b->graph.input, b->graph.n_input, info);
    return info->name;
}

void tl_build_output(tl_onnx_build *b, const char *name, tl_dtype dtype, tl_build_list dims)
{
    if (GIVE_UP(b))
        return;
    Onnx__ValueInfoProto *info = value_info(b, name, dtype, dims);
    APPEND(b, b->graph.output, b->graph.n_output, info);
}

/* ---- weights ---- */

static Onnx__TensorProto *tensor(tl_onnx_build *b, const char *name, tl_dtype dtype,
                                 tl_build_list dims, size_t *count)
{
    Onnx__TensorProto *t = TL_NEW(b->arena, Onnx__TensorProto);
    onnx__tensor_proto__init(t);
    t->name = name != NULL ? tl_arena_strdup(b->arena, name) : NULL;
    t->has_data_type = 1;
    t->data_type = tl_dtype_infos[dtype].onnx;
    t->n_dims = (size_t)dims.count;
    t->dims = TL_NEW_ARRAY(b->arena, int64_t, dims.count);
    *count = 1;
    for (int i = 0; i < dims.count; i++) {
        t->dims[i] = dims.values[i];
        *count *= (size_t)dims.values[i];
    }
    t->has_raw_data = 1;
    t->raw_data.len = (size_t)tl_storage_bytes(dtype, (int64_t)*count);
    return t;
}

static void allocate(tl_onnx_build *b, Onnx__TensorProto *t)
{
    t->raw_data.data = tl_arena_alloc(b->arena, t->raw_data.len, 64);
}

static Onnx__TensorProto *initializer(tl_onnx_build *b, const char *name, tl_dtype dtype,
                                      tl_build_list dims, recipe how, size_t *count)
{
    Onnx__TensorProto *t = tensor(b, name, dtype, dims, count);
    recipe *r = TL_NEW(b->arena, recipe);
    *r = how;
    if (!how.drawn)
        allocate(b, t);
    APPEND(b, b->recipes, b->recipe_count, r);
    APPEND(b, b->graph.initializer, b->graph.n_initializer, t);
    b->weight_size += t->raw_data.len;
    return t;
}

const char *tl_build_weight(tl_onnx_build *b, const char *name, tl_dtype dtype, tl_build_list dims,
                            const void *data)
{
    size_t count;
    if (GIVE_UP(b))
        return "";
    Onnx__TensorProto *t = initializer(b, name, dtype, dims, (recipe){ 0 }, &count);
    if (t->raw_data.len > 0)
        memcpy(t->raw_data.data, data, t->raw_data.len);
    return t->name;
}

const char *tl_build_normal(tl_onnx_build *b, const char *name, double mean, double deviation,
                            tl_build_list dims)
{
    size_t count;
    if (GIVE_UP(b))
        return "";
    recipe how = { .drawn = true, .mean = mean, .deviation = deviation };
    return initializer(b, name, TL_F32, dims, how, &count)->name;
}

/* The numbers of initializer i, `data` has room for them. */
static void draw(const tl_onnx_build *b, size_t i, void *data)
{
    const Onnx__TensorProto *t = b->graph.initializer[i];
    const recipe *r = b->recipes[i];
    tl_random random = tl_random_make(tl_hash_bytes(t->name, strlen(t->name), b->seed));
    float *numbers = data;
    for (size_t k = 0; k < t->raw_data.len / sizeof *numbers; k++)
        numbers[k] = (float)(r->mean + r->deviation * tl_random_normal(&random));
}

/* ---- nodes ---- */

const char *tl_build_node(tl_onnx_build *b, const char *op_type, const char *name,
                          tl_build_names inputs)
{
    if (GIVE_UP(b))
        return "";
    Onnx__NodeProto *n = TL_NEW(b->arena, Onnx__NodeProto);
    onnx__node_proto__init(n);
    n->op_type = tl_arena_strdup(b->arena, op_type);
    n->name = tl_arena_strdup(b->arena, name);
    for (int i = 0; i < inputs.count; i++)
        APPEND(b, n->input, n->n_input, tl_arena_strdup(b->arena, inputs.values[i]));
    APPEND(b, b->graph.node, b->graph.n_node, n);
    b->latest = n;
    return tl_build_more(b);
}

const char *tl_build_more(tl_onnx_build *b)
{
    if (GIVE_UP(b))
        return "";
    Onnx__NodeProto *n = b->latest;
    char *name = tl_arena_format(b->arena, "%s_output_%zu", n->name, n->n_output);
    APPEND(b, n->output, n->n_output, name);
    return name;
}

const char *tl_build_rename(tl_onnx_build *b, const char *name)
{
    if (GIVE_UP(b))
        return "";
    char *copy = tl_arena_strdup(b->arena, name);
    b->latest->output[b->latest->n_output - 1] = copy;
    return copy;
}

/* ---- look-ups ---- */

int64_t tl_build_input_extent(const tl_onnx_build *b, const char *name, int axis)
{
    for (size_t i = 0; i < b->graph.n_input; i++) {
        const Onnx__TensorShapeProto *shape = b->graph.input[i]->type->tensor_type->shape;
        if (strcmp(b->graph.input[i]->name, name) == 0)
            return (size_t)axis < shape->n_dim ? shape->dim[axis]->dim_value : -1;
    }
    return -1;
}

const char *tl_build_input_name(const tl_onnx_build *b, int index)
{
    return (size_t)index < b->graph.n_input ? b->graph.input[index]->name : NULL;
}

int tl_build_count_nodes(const tl_onnx_build *b, const char *op_type)
{
    int count = 0;
    for (size_t i = 0; i < b->graph.n_node; i++)
        count += strcmp(b->graph.node[i]->op_type, op_type) == 0;
    return count;
}

int64_t tl_build_count_weights(const tl_onnx_build *b)
{
    int64_t count = 0;
    for (size_t i = 0; i < b->graph.n_initializer; i++)
        if (b->graph.initializer[i]->data_type == tl_dtype_infos[TL_F32].onnx)
            count += (int64_t)(b->graph.initializer[i]->raw_data.len / sizeof(float));
    return count;
}

static Onnx__AttributeProto *attribute(tl_onnx_build *b, const char *name, int type)
{
    Onnx__AttributeProto *a = TL_NEW(b->arena, Onnx__AttributeProto);
    onnx__attribute_proto__init(a);
    a->name = tl_arena_strdup(b->arena, name);
    a->has_type = 1;
    a->type = type;
    APPEND(b, b->latest->attribute, b->latest->n_attribute, a);
    return a;
}

void tl_build_int(tl_onnx_build *b, const char *name, int64_t value)
{
    if (GIVE_UP(b))
        return;
    Onnx__AttributeProto *a = attribute(b, name, ATTR_INT);
    a->has_i = 1;
    a->i = value;
}

void tl_build_float(tl_onnx_build *b, const char *name, double value)
{
    if (GIVE_UP(b))
        return;
    Onnx__AttributeProto *a = attribute(b, name, ATTR_FLOAT);
    a->has_f = 1;
    a->f = (float)value;
}

void tl_build_string(tl_onnx_build *b, const char *name, const char *value)
{
    if (GIVE_UP(b))
        return;
    Onnx__AttributeProto *a = attribute(b, name, ATTR_STRING);
    a->has_s = 1;
    a->s.len = strlen(value);
    a->s.data = (uint8_t *)tl_arena_strdup(b->arena, value);
}

void tl_build_ints(tl_onnx_build *b, const char *name, tl_build_list values)
{
    if (GIVE_UP(b))
        return;
    Onnx__AttributeProto *a = attribute(b, name, ATTR_INTS);
    a->n_ints = (size_t)values.count;
    a->ints = TL_NEW_ARRAY(b->arena, int64_t, values.count);
    for (int i = 0; i < values.count; i++)
        a->ints[i] = values.values[i];
}

static void tensor_attribute(tl_onnx_build *b, const char *name, tl_dtype dtype, tl_build_list dims,
                             const void *data)
{
    size_t count;
    Onnx__AttributeProto *a = attribute(b, name, ATTR_TENSOR);
    a->t = tensor(b, NULL, dtype, dims, &count);
    allocate(b, a->t);
    if (count > 0)
        memcpy(a->t->raw_data.data, data, a->t->raw_data.len);
}

void tl_build_tensor_int(tl_onnx_build *b, const char *name, int64_t value)
{
    static const int64_t extent = 1;
    static const tl_build_list dims = { 1, &extent }; /* not a local: the jump back may spoil it */
    if (!GIVE_UP(b))
        tensor_attribute(b, name, TL_I64, dims, &value);
}

static const char *constant(tl_onnx_build *b, const char *name, tl_dtype dtype, tl_build_list dims,
                            const void *data)
{
    const char *output = tl_build_node(b, "Constant", name, (tl_build_names){ 0, NULL });
    if (GIVE_UP(b))
        return "";
    tensor_attribute(b, "value", dtype, dims, data);
    return output;
}

const char *tl_build_constant_ints(tl_onnx_build *b, const char *name, tl_build_list values)
{
    return constant(b, name, TL_I64, TL_DIMS(values.count), values.values);
}

const char *tl_build_constant_int(tl_onnx_build *b, const char *name, int64_t value)
{
    return constant(b, name, TL_I64, TL_SCALAR, &value);
}

const char *tl_build_constant_float(tl_onnx_build *b, const char *name, double value)
{
    float number = (float)value;
    return constant(b, name, TL_F32, TL_SCALAR, &number);
}

/* ---- files ---- */

void tl_onnx_build_external(tl_onnx_build *b, bool external)
{
    b->external = external;
}

/* protobuf-c's sink; the first failure stays. */
typedef struct {
    ProtobufCBuffer base;
    tl_file *file;
    tl_status status;
    tl_diag *diag;
} sink;

static void append(ProtobufCBuffer *base, size_t size, const uint8_t *data)
{
    sink *s = (sink *)(void *)base;
    if (s->status == TL_OK)
        s->status = tl_file_append(s->file, data, size, s->diag);
}

static void add_entry(tl_onnx_build *b, Onnx__TensorProto *t, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *e = TL_NEW(b->arena, Onnx__StringStringEntryProto);
    onnx__string_string_entry_proto__init(e);
    e->key = tl_arena_strdup(b->arena, key);
    e->value = tl_arena_strdup(b->arena, value);
    APPEND(b, t->external_data, t->n_external_data, e);
}

/* Appends the numbers of initializer i, drawn first where they are to be drawn. */
static tl_status append_numbers(const tl_onnx_build *b, size_t i, tl_file *file, tl_diag *diag)
{
    const Onnx__TensorProto *t = b->graph.initializer[i];
    if (t->raw_data.data != NULL)
        return tl_file_append(file, t->raw_data.data, t->raw_data.len, diag);
    void *numbers = malloc(t->raw_data.len);
    if (numbers == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory while writing the weights");
    draw(b, i, numbers);
    tl_status status = tl_file_append(file, numbers, t->raw_data.len, diag);
    free(numbers);
    return status;
}

/* Appends the large weights to `file`, each at an aligned offset, and leaves references in the model. */
static tl_status move_weights(tl_onnx_build *b, tl_file *file, const char *location, tl_diag *diag)
{
    static const char zeros[EXTERNAL_ALIGN];
    size_t offset = 0;
    for (size_t i = 0; i < b->graph.n_initializer; i++) {
        Onnx__TensorProto *t = b->graph.initializer[i];
        if (t->raw_data.len < EXTERNAL_LEAST)
            continue;
        size_t padding = -offset % EXTERNAL_ALIGN;
        TL_TRY(tl_file_append(file, zeros, padding, diag));
        TL_TRY(append_numbers(b, i, file, diag));
        offset += padding;
        if (t->n_external_data == 0) {
            add_entry(b, t, "location", location);
            add_entry(b, t, "offset", tl_arena_format(b->arena, "%zu", offset));
            add_entry(b, t, "length", tl_arena_format(b->arena, "%zu", t->raw_data.len));
        }
        offset += t->raw_data.len;
        t->has_data_location = 1;
        t->data_location = 1;
        t->has_raw_data = 0;
    }
    return TL_OK;
}

static tl_status write_weights(tl_onnx_build *b, const char *path, tl_diag *diag)
{
    size_t size = strlen(path);
    bool named = size > 5 && strcmp(path + size - 5, ".onnx") == 0;
    const char *weights = tl_build_name(b, "%.*s.weights", (int)(named ? size - 5 : size), path);
    const char *slash = strrchr(weights, '/');
    tl_file *file;
    if (b->failed)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory while building the model");
    if (tl_file_is_stream(path))
        return tl_fail(
            diag, TL_BAD_ARGUMENT,
            "%s: the weights go to a file beside the model, and there is none beside this", path);
    TL_TRY(tl_file_create(weights, &file, diag));
    if (TL_ARENA_GUARD(b->arena)) {
        b->failed = true;
        tl_file_abandon(file);
        return tl_fail(diag, TL_NO_MEMORY, "out of memory while writing the weights");
    }
    tl_status status = move_weights(b, file, slash != NULL ? slash + 1 : weights, diag);
    if (status != TL_OK) {
        tl_file_abandon(file);
        return status;
    }
    return tl_file_commit(file, diag);
}

/* Draws what has not gone to another file. */
static tl_status draw_weights(tl_onnx_build *b, tl_diag *diag)
{
    if (TL_ARENA_GUARD(b->arena)) {
        b->failed = true;
        return tl_fail(diag, TL_NO_MEMORY, "out of memory while drawing the weights");
    }
    for (size_t i = 0; i < b->graph.n_initializer; i++) {
        Onnx__TensorProto *t = b->graph.initializer[i];
        if (!t->has_raw_data || t->raw_data.data != NULL)
            continue;
        allocate(b, t);
        draw(b, i, t->raw_data.data);
    }
    return TL_OK;
}

tl_status tl_onnx_build_write(tl_onnx_build *b, const char *path, tl_diag *diag)
{
    if (b->failed)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory while building the model");
    if (b->external || b->weight_size > IN_FILE_MOST)
        TL_TRY(write_weights(b, path, diag));
    TL_TRY(draw_weights(b, diag));
    sink s = { .base = { append }, .diag = diag };
    TL_TRY(tl_file_create(path, &s.file, diag));
    onnx__model_proto__pack_to_buffer(&b->model, &s.base);
    if (s.status != TL_OK) {
        tl_file_abandon(s.file);
        return s.status;
    }
    return tl_file_commit(s.file, diag);
}
