/* frontend/onnx/onnx_read.c: from the bytes of a model to a Graph: scan, unpack, import. The unpacked model is
 * gone when these functions return; what stays are the graph, and the files and blocks its constants lie in. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "frontend/onnx/onnx_private.h"
#include "frontend/onnx/onnx_scan.h"
#include "runtime/base/file.h"

typedef struct {
    const void *bytes;
    size_t size;
    const char *folder;
    const tl_shape_override *shapes;
    int shape_count;
    bool stays; /* the bytes are there until the model is closed */
} request;

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

static tl_status open_model(const request *r, tl_onnx **out, tl_diag *diag)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    (*out)->folder = -1;
    (*out)->bytes = r->bytes;
    (*out)->size = r->size;
    (*out)->stays = r->stays;
    if (r->folder == NULL)
        return TL_OK;
    (*out)->folder = open(r->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if ((*out)->folder < 0)
        return tl_fail(diag, TL_IO, "folder '%.300s': %s", r->folder, strerror(errno));
    return TL_OK;
}

/* The arena may run out at any allocation of the import; what is held besides it is released here. */
static tl_status read_model(tl_arena *arena, const request *r, tl_onnx **model, tl_graph **graph,
                            tl_diag *diag)
{
    size_t room = tl_arena_room(arena), deserved = tl_onnx_memory_limit(r->size);
    tl_onnx_memory memory = { .limit = room < deserved ? room : deserved };
    ProtobufCAllocator allocator = tl_onnx_allocator(&memory);
    Onnx__ModelProto *volatile proto = NULL;
    Onnx__ModelProto *unpacked = NULL;
    tl_arena_guard outer;

    tl_status status = open_model(r, model, diag);
    if (status == TL_OK) {
        status = tl_onnx_unpack(r->bytes, r->size, &allocator, &memory, &unpacked, diag);
        proto = unpacked;
    }
    tl_arena_guard_save(arena, &outer);
    if (status == TL_OK) {
        if (TL_ARENA_GUARD(arena))
            status = tl_fail(diag, TL_NO_MEMORY, "out of memory while importing the model");
        else
            status = tl_onnx_import(arena, *model, proto, r->shapes, r->shape_count, graph, diag);
    }
    if (status == TL_OK) {
        if (TL_ARENA_GUARD(arena))
            status = tl_fail(diag, TL_NO_MEMORY, "out of memory while sorting the graph");
        else
            status = tl_graph_tidy(*graph, diag);
    }
    tl_arena_guard_restore(arena, &outer);
    onnx__model_proto__free_unpacked(proto, &allocator);
    if (status != TL_OK) {
        tl_onnx_close(*model);
        *model = NULL;
        *graph = NULL;
    }
    return status;
}

tl_status tl_onnx_read_memory(tl_arena *arena, const void *bytes, size_t size, const char *folder,
                              const tl_shape_override *shapes, int shape_count, tl_onnx **out,
                              tl_graph **graph, tl_diag *diag)
{
    request r = {
        .bytes = bytes, .size = size, .folder = folder, .shapes = shapes, .shape_count = shape_count
    };
    *out = NULL;
    *graph = NULL;
    return read_model(arena, &r, out, graph, diag);
}

/* The folder of a path: what stands before its last slash. NULL: no memory. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

tl_status tl_onnx_read(tl_arena *arena, const char *path, const tl_shape_override *shapes,
                       int shape_count, tl_onnx **out, tl_graph **graph, tl_diag *diag)
{
    tl_mapping file;
    *out = NULL;
    *graph = NULL;
    TL_TRY(tl_file_map(path, &file, diag));
    char *folder = folder_of(path);
    tl_status status = folder == NULL ? tl_fail(diag, TL_NO_MEMORY, "out of memory") : TL_OK;
    if (status == TL_OK && file.size == 0)
        status = tl_fail(diag, TL_BAD_MODEL, "the file is empty");
    request r = { .bytes = file.data,
                  .size = file.size,
                  .folder = folder,
                  .shapes = shapes,
                  .shape_count = shape_count,
                  .stays = true };
    if (status == TL_OK)
        status = read_model(arena, &r, out, graph, diag);
    if (status == TL_OK)
        (*out)->file = file; /* constants lie in it */
    else
        tl_file_unmap(&file);
    if (status != TL_OK)
        tl_context(diag, "%s", path);
    free(folder);
    return status;
}
