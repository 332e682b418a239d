/* frontend/onnx/onnx_embed.c: a model of one file: its external data lies in the messages of its tensors. */
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include "frontend/onnx/onnx_private.h"
#include "frontend/onnx/onnx_scan.h"
#include "runtime/base/file.h"

/* protobuf-c's own memory, that of the arena: nothing of a model that is written again is given back alone. */
static void *allocate(void *data, size_t size)
{
    return tl_arena_alloc(data, size, _Alignof(max_align_t));
}

static void release(void *data, void *block)
{
    (void)data;
    (void)block;
}

static tl_status embed_tensor(tl_arena *arena, tl_onnx *model, Onnx__TensorProto *t, tl_diag *diag)
{
    tl_onnx_tensor read;
    if (t == NULL || t->data_location != 1)
        return TL_OK;
    TL_TRY(tl_onnx_read_tensor(arena, model, t, &read, diag));
    int64_t elements = tl_shape_elements(&read.shape);
    uint8_t *data = (uint8_t *)read.data;
    int64_t bytes = tl_storage_bytes(read.dtype, elements);
    if (tl_dtype_is_int(read.dtype) && tl_dtype_infos[read.dtype].digits == 4) { /* two a byte */
        bytes = elements / 2 + elements % 2;
        data = tl_arena_alloc(arena, (size_t)bytes, 1);
        for (int64_t i = 0; i < elements; i++)
            data[i / 2] |= (uint8_t)((((const uint8_t *)read.data)[i] & 15) << (i % 2 * 4));
    }
    t->has_raw_data = true;
    t->raw_data = (ProtobufCBinaryData){ (size_t)bytes, data };
    t->has_data_location = false;
    t->data_location = 0;
    t->n_external_data = 0;
    return TL_OK;
}

static tl_status embed_graph(tl_arena *arena, tl_onnx *model, Onnx__GraphProto *g, tl_diag *diag);

static tl_status embed_nodes(tl_arena *arena, tl_onnx *model, size_t count, Onnx__NodeProto **nodes,
                             tl_diag *diag)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < nodes[i]->n_attribute; k++) {
            Onnx__AttributeProto *a = nodes[i]->attribute[k];
            TL_TRY(embed_tensor(arena, model, a->t, diag));
            for (size_t j = 0; j < a->n_tensors; j++)
                TL_TRY(embed_tensor(arena, model, a->tensors[j], diag));
            if (a->g != NULL)
                TL_TRY(embed_graph(arena, model, a->g, diag));
            for (size_t j = 0; j < a->n_graphs; j++)
                TL_TRY(embed_graph(arena, model, a->graphs[j], diag));
        }
    return TL_OK;
}

static tl_status embed_graph(tl_arena *arena, tl_onnx *model, Onnx__GraphProto *g, tl_diag *diag)
{
    for (size_t i = 0; i < g->n_initializer; i++)
        TL_TRY(embed_tensor(arena, model, g->initializer[i], diag));
    return embed_nodes(arena, model, g->n_node, g->node, diag);
}

static tl_status write_packed(const Onnx__ModelProto *proto, tl_text *out, tl_diag *diag)
{
    size_t size = onnx__model_proto__get_packed_size(proto);
    if (size > TL_ONNX_MOST_BYTES)
        return tl_fail(diag, TL_UNSUPPORTED,
                       "with its external data the model has %zu MB; one file holds at most %zu",
                       size >> 20, TL_ONNX_MOST_BYTES >> 20);
    char *data = malloc(size + 1);
    if (data == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    data[onnx__model_proto__pack(proto, (uint8_t *)data)] = '\0';
    *out = (tl_text){ .data = data, .size = size, .capacity = size + 1 };
    return TL_OK;
}

static tl_status embed(tl_arena *arena, tl_onnx *model, const tl_mapping *file, tl_text *out,
                       tl_diag *diag)
{
    ProtobufCAllocator allocator = { allocate, release, arena };
    if (TL_ARENA_GUARD(arena))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    TL_TRY(tl_onnx_scan(file->data, file->size, TL_ONNX_MESSAGE_MODEL, diag));
    Onnx__ModelProto *proto = onnx__model_proto__unpack(&allocator, file->size, file->data);
    if (proto == NULL || proto->graph == NULL)
        return tl_fail(diag, TL_BAD_MODEL, "no ONNX model: its encoding is broken");
    TL_TRY(embed_graph(arena, model, proto->graph, diag));
    for (size_t i = 0; i < proto->n_functions; i++)
        TL_TRY(embed_nodes(arena, model, proto->functions[i]->n_node, proto->functions[i]->node,
                           diag));
    return write_packed(proto, out, diag);
}

tl_status tl_onnx_embed(const char *path, tl_text *out, tl_diag *diag)
{
    tl_mapping file;
    TL_TRY(tl_file_map(path, &file, diag));
    char *name = strdup(path);
    tl_onnx *model = calloc(1, sizeof *model);
    tl_arena *arena = tl_arena_create(0);
    tl_status status;
    if (name == NULL || model == NULL || arena == NULL) {
        status = tl_fail(diag, TL_NO_MEMORY, "out of memory");
        free(model);
        model = NULL;
    } else {
        model->folder = open(dirname(name), O_PATH | O_DIRECTORY | O_CLOEXEC);
        status = embed(arena, model, &file, out, diag);
    }
    if (status != TL_OK)
        tl_context(diag, "%s", path);
    tl_onnx_close(model);
    tl_arena_destroy(arena);
    free(name);
    tl_file_unmap(&file);
    return status;
}
