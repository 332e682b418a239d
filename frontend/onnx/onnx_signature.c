/* frontend/onnx/onnx_signature.c: what a model is called with, before a shape is known. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "frontend/onnx/onnx_private.h"
#include "runtime/base/file.h"

/* Exporters write "?" for axes that have nothing to do with each other. */
static bool is_name(const char *text)
{
    for (; *text != '\0'; text++)
        if (isalnum((unsigned char)*text) || (unsigned char)*text >= 0x80)
            return true;
    return false;
}

tl_status tl_onnx_read_shape(tl_arena *arena, const char *name, const Onnx__TensorShapeProto *dims,
                             tl_shape *out, tl_diag *diag)
{
    *out = (tl_shape){ .rank = -1 };
    if (dims == NULL)
        return TL_OK;
    if (dims->n_dim > TL_MAX_RANK)
        return tl_fail(diag, TL_UNSUPPORTED,
                       "graph input '%.120s': rank %zu; at most %d is supported", name, dims->n_dim,
                       TL_MAX_RANK);
    out->rank = (int)dims->n_dim;
    for (int i = 0; i < out->rank; i++) {
        const Onnx__TensorShapeProto__Dimension *d = dims->dim[i];
        out->dims[i] = (tl_dim){ .extent = d->has_dim_value ? d->dim_value : -1 };
        if (d->has_dim_value && d->dim_value < -1)
            return tl_fail(diag, TL_BAD_MODEL, "graph input '%.120s': dimension %d is %lld", name,
                           i, (long long)d->dim_value);
        if (!d->has_dim_value && d->dim_param != NULL && is_name(d->dim_param))
            out->dims[i].name = tl_arena_strdup(arena, d->dim_param);
    }
    return TL_OK;
}

/* An initializer that is an input, too, is a default: nobody calls with it. */
static tl_map *default_names(tl_arena *arena, const Onnx__GraphProto *g)
{
    tl_map *names = tl_map_create(arena);
    for (size_t i = 0; i < g->n_initializer; i++)
        if (g->initializer[i]->name != NULL)
            tl_map_put(names, tl_arena_strdup(arena, g->initializer[i]->name), names);
    return names;
}

static tl_status read_inputs(tl_arena *arena, const Onnx__GraphProto *g, tl_onnx_signature *out,
                             tl_diag *diag)
{
    tl_map *defaults = default_names(arena, g);
    tl_onnx_input *inputs = TL_NEW_ARRAY(arena, tl_onnx_input, g->n_input);
    *out = (tl_onnx_signature){ .inputs = inputs };
    for (size_t i = 0; i < g->n_input; i++) {
        const Onnx__ValueInfoProto *info = g->input[i];
        if (info->name == NULL || tl_map_has(defaults, info->name))
            continue;
        tl_onnx_input *input = &inputs[out->input_count++];
        *input =
            (tl_onnx_input){ .name = tl_arena_strdup(arena, info->name), .shape = { .rank = -1 } };
        if (info->type == NULL || info->type->tensor_type == NULL)
            continue;
        const Onnx__TypeProto__Tensor *type = info->type->tensor_type;
        input->dtype_known = tl_dtype_from_onnx(type->elem_type, &input->dtype);
        TL_TRY(tl_onnx_read_shape(arena, input->name, type->shape, &input->shape, diag));
    }
    return TL_OK;
}

tl_status tl_onnx_read_signature_memory(tl_arena *arena, const void *bytes, size_t size,
                                        tl_onnx_signature *out, tl_diag *diag)
{
    tl_onnx_memory memory = { .limit = tl_onnx_memory_limit(size) };
    ProtobufCAllocator allocator = tl_onnx_allocator(&memory);
    Onnx__ModelProto *unpacked = NULL;
    tl_status status = tl_onnx_unpack(bytes, size, &allocator, &memory, &unpacked, diag);
    Onnx__ModelProto *volatile proto = unpacked;
    tl_arena_guard outer;
    tl_arena_guard_save(arena, &outer);
    if (status == TL_OK) {
        if (TL_ARENA_GUARD(arena))
            status = tl_fail(diag, TL_NO_MEMORY, "out of memory while reading the model's inputs");
        else
            status = read_inputs(arena, proto->graph, out, diag);
    }
    tl_arena_guard_restore(arena, &outer);
    onnx__model_proto__free_unpacked(proto, &allocator);
    return status;
}

tl_status tl_onnx_read_signature(tl_arena *arena, const char *path, tl_onnx_signature *out,
                                 tl_diag *diag)
{
    tl_mapping file;
    TL_TRY(tl_file_map(path, &file, diag));
    tl_status status = file.size == 0
                           ? tl_fail(diag, TL_BAD_MODEL, "the file is empty")
                           : tl_onnx_read_signature_memory(arena, file.data, file.size, out, diag);
    if (status != TL_OK)
        tl_context(diag, "%s", path);
    tl_file_unmap(&file);
    return status;
}
