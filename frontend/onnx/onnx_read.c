/* frontend/onnx/onnx_read.c: from the bytes of a model to a Graph: scan, unpack, import. Of a model that is read once the
 * unpacked form is gone when these functions return; what stays are the graph, and the files and blocks its constants
 * lie in. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "frontend/onnx/onnx_private.h"
#include "frontend/onnx/onnx_scan.h"
#include "runtime/base/file.h"

static tl_status check_model(const Onnx__ModelProto *proto, tl_diag *diag)
{
    if (proto->graph == NULL)
        return tl_fail(diag, TL_BAD_MODEL, "no ONNX model: it has no graph");
    if (proto->ir_version < 1)
        return tl_fail(diag, TL_BAD_MODEL, "no ONNX model: its IR version is %lld",
                       (long long)proto->ir_version);
    if (proto->graph->n_output == 0)
        return tl_fail(diag, TL_BAD_MODEL, "the graph has no output");
    return TL_OK;
}

/* NULL where protobuf-c gives up. */
static tl_status unpack_lifted(const void *bytes, size_t size, ProtobufCAllocator *allocator,
                               Onnx__ModelProto **out, tl_diag *diag)
{
    tl_onnx_edits edits = { 0 };
    tl_text rest = { 0 };
    *out = NULL;
    tl_status status = tl_onnx_scan_lifting(bytes, size, &edits, diag);
    if (status == TL_OK && edits.count == 0) {
        *out = onnx__model_proto__unpack(allocator, size, bytes);
    } else if (status == TL_OK) {
        tl_onnx_edits_apply(&edits, bytes, size, &rest);
        if (rest.failed)
            status = tl_fail(diag, TL_NO_MEMORY, "out of memory while unpacking the model");
        else
            *out = onnx__model_proto__unpack(allocator, rest.size, (const uint8_t *)rest.data);
    }
    tl_onnx_edits_free(&edits);
    tl_text_free(&rest);
    return status;
}

tl_status tl_onnx_unpack(const void *bytes, size_t size, ProtobufCAllocator *allocator,
                         tl_onnx_memory *memory, Onnx__ModelProto **out, tl_diag *diag)
{
    TL_TRY(unpack_lifted(bytes, size, allocator, out, diag));
    if (*out == NULL && memory->exceeded && memory->limit < tl_onnx_memory_limit(size))
        return tl_fail(diag, TL_NO_MEMORY,
                       "unpacked, the model needs more than the %zu KB that it may have",
                       memory->limit >> 10);
    if (*out == NULL && memory->exceeded)
        return tl_fail(diag, TL_BAD_MODEL,
                       "unpacked, the model needs more than %zu MB for %zu bytes",
                       memory->limit >> 20, size);
    if (*out == NULL)
        return tl_fail(diag, TL_BAD_MODEL, "no ONNX model: its encoding is broken");
    return check_model(*out, diag);
}

/* `file`: that the bytes are of: the model takes it, and they stay; NULL: from memory. */
static tl_status open_model(const tl_onnx_source *r, tl_mapping *file, tl_onnx **out, tl_diag *diag)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    (*out)->folder = -1;
    (*out)->bytes = r->bytes;
    (*out)->size = r->size;
    if (file != NULL) {
        (*out)->stays = true;
        (*out)->file = *file;
        *file = (tl_mapping){ 0 };
    }
    if (r->folder == NULL)
        return TL_OK;
    (*out)->folder = open(r->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if ((*out)->folder < 0)
        return tl_fail(diag, TL_IO, "folder '%.300s': %s", r->folder, strerror(errno));
    return TL_OK;
}

/* The graph for these shapes. The arena may run out at any allocation of the import. */
static tl_status import_graph(tl_arena *arena, tl_onnx *model, Onnx__ModelProto *proto,
                              const tl_onnx_source *source, const tl_map *kept, tl_graph **graph,
                              tl_diag *diag)
{
    if (TL_ARENA_GUARD(arena))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory while importing the model");
    TL_TRY(tl_onnx_import(arena, model, proto, source, kept, graph, diag));
    return tl_graph_tidy(*graph, diag);
}

static tl_status import_guarded(tl_arena *arena, tl_onnx *model, Onnx__ModelProto *proto,
                                const tl_onnx_source *source, const tl_map *kept, tl_graph **graph,
                                tl_diag *diag)
{
    tl_arena_guard outer;
    tl_arena_guard_save(arena, &outer);
    tl_status status = import_graph(arena, model, proto, source, kept, graph, diag);
    tl_arena_guard_restore(arena, &outer);
    if (status != TL_OK)
        *graph = NULL;
    return status;
}

/* What is held besides the arena is released here. */
static tl_status read_model(tl_arena *arena, const tl_onnx_source *r, tl_mapping *file,
                            tl_onnx **model, tl_graph **graph, tl_diag *diag)
{
    size_t room = tl_arena_room(arena), deserved = tl_onnx_memory_limit(r->size);
    tl_onnx_memory memory = { .limit = room < deserved ? room : deserved };
    ProtobufCAllocator allocator = tl_onnx_allocator(&memory);
    Onnx__ModelProto *proto = NULL;

    tl_status status = open_model(r, file, model, diag);
    if (status == TL_OK)
        status = tl_onnx_unpack(r->bytes, r->size, &allocator, &memory, &proto, diag);
    if (status == TL_OK)
        status = import_guarded(arena, *model, proto, r, NULL, graph, diag);
    onnx__model_proto__free_unpacked(proto, &allocator);
    if (status != TL_OK) {
        tl_onnx_close(*model);
        *model = NULL;
        *graph = NULL;
    }
    return status;
}

/* The folder of a path: what stands before its last slash. NULL: no memory. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* The bytes of a file and its folder, as a source's; to be released with release_file. */
static tl_status map_file(const char *path, tl_mapping *file, char **folder, tl_diag *diag)
{
    TL_TRY(tl_file_map(path, file, diag));
    *folder = folder_of(path);
    if (*folder == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    return file->size > 0 ? TL_OK : tl_fail(diag, TL_BAD_MODEL, "the file is empty");
}

static tl_status release_file(const char *path, tl_mapping *file, char *folder, tl_status status,
                              tl_diag *diag)
{
    if (status != TL_OK)
        tl_context(diag, "%s", path);
    free(folder);
    tl_file_unmap(file);
    return status;
}

tl_status tl_onnx_read_source(tl_arena *arena, const tl_onnx_source *source, tl_onnx **out,
                              tl_graph **graph, tl_diag *diag)
{
    tl_mapping file = { 0 };
    char *folder = NULL;
    tl_onnx_source bytes = *source;
    *out = NULL;
    *graph = NULL;
    if (source->path == NULL)
        return read_model(arena, source, NULL, out, graph, diag);
    tl_status status = map_file(source->path, &file, &folder, diag);
    bytes.bytes = file.data;
    bytes.size = file.size;
    bytes.folder = folder;
    if (status == TL_OK)
        status = read_model(arena, &bytes, &file, out, graph, diag);
    return release_file(source->path, &file, folder, status, diag);
}

tl_status tl_onnx_read(tl_arena *arena, const char *path, const tl_shape_override *shapes,
                       int shape_count, tl_onnx **out, tl_graph **graph, tl_diag *diag)
{
    const tl_onnx_source source = { .path = path, .shapes = shapes, .shape_count = shape_count };
    return tl_onnx_read_source(arena, &source, out, graph, diag);
}

tl_status tl_onnx_read_memory(tl_arena *arena, const void *bytes, size_t size, const char *folder,
                              const tl_shape_override *shapes, int shape_count, tl_onnx **out,
                              tl_graph **graph, tl_diag *diag)
{
    const tl_onnx_source source = {
        .bytes = bytes, .size = size, .folder = folder, .shapes = shapes, .shape_count = shape_count
    };
    return tl_onnx_read_source(arena, &source, out, graph, diag);
}

/* ---- a model for several graphs ---- */

void tl_onnx_drop_proto(tl_onnx *model)
{
    ProtobufCAllocator allocator = tl_onnx_allocator(&model->memory);
    if (model->proto != NULL)
        onnx__model_proto__free_unpacked(model->proto, &allocator);
    tl_arena_destroy(model->arena);
}

static tl_status keep_model(const tl_onnx_source *r, tl_onnx *model, tl_diag *diag)
{
    model->memory.limit = tl_onnx_memory_limit(r->size);
    ProtobufCAllocator allocator = tl_onnx_allocator(&model->memory);
    model->arena = tl_arena_create(0);
    if (model->arena == NULL || TL_ARENA_GUARD(model->arena))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    model->tensors = tl_map_create(model->arena);
    if (!model->stays) /* tensors are read later than the bytes are there */
        model->bytes = tl_arena_copy(model->arena, r->bytes, r->size, 64);
    return tl_onnx_unpack(r->bytes, r->size, &allocator, &model->memory, &model->proto, diag);
}

static tl_status open_source(const tl_onnx_source *r, tl_mapping *file, tl_onnx **out,
                             tl_diag *diag)
{
    tl_status status = open_model(r, file, out, diag);
    if (status == TL_OK)
        status = keep_model(r, *out, diag);
    if (status != TL_OK) {
        tl_onnx_close(*out);
        *out = NULL;
    }
    return status;
}

tl_status tl_onnx_open_memory(const void *bytes, size_t size, const char *folder, tl_onnx **out,
                              tl_diag *diag)
{
    const tl_onnx_source r = { .bytes = bytes, .size = size, .folder = folder };
    return open_source(&r, NULL, out, diag);
}

tl_status tl_onnx_open(const char *path, tl_onnx **out, tl_diag *diag)
{
    tl_mapping file = { 0 };
    char *folder = NULL;
    *out = NULL;
    tl_status status = map_file(path, &file, &folder, diag);
    const tl_onnx_source r = { .bytes = file.data, .size = file.size, .folder = folder };
    if (status == TL_OK)
        status = open_source(&r, &file, out, diag);
    return release_file(path, &file, folder, status, diag);
}

void tl_onnx_limit_turns(tl_onnx *model, int64_t most)
{
    model->most_turns = most;
}

void tl_onnx_keep_loops(tl_onnx *model, bool keep)
{
    model->keeps_loops = keep;
}

bool tl_onnx_met_loops(const tl_onnx *model)
{
    return model->met_loops;
}

tl_status tl_onnx_graph(tl_arena *arena, tl_onnx *model, const tl_shape_override *shapes,
                        int shape_count, const tl_map *kept, tl_graph **graph, tl_diag *diag)
{
    *graph = NULL;
    /* a tensor that is read for the first time is made in the model's arena */
    if (TL_ARENA_GUARD(model->arena))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory while importing the model");
    const tl_onnx_source source = { .shapes = shapes,
                                    .shape_count = shape_count,
                                    .most_turns = model->most_turns,
                                    .keeps_loops = model->keeps_loops };
    return import_guarded(arena, model, model->proto, &source, kept, graph, diag);
}
