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

tl_status tl_onnx_unpack(const void *bytes, size_t size, ProtobufCAllocator *allocator,
                         tl_onnx_memory *memory, Onnx__ModelProto **out, tl_diag *diag)
{
    TL_TRY(tl_onnx_scan(bytes, size, TL_ONNX_MESSAGE_MODEL, diag));
    *out = onnx__model_proto__unpack(allocator, size, bytes);
    if (*out == NULL && memory->exceeded)
        return tl_fail(diag, TL_BAD_MODEL,
                       "unpacked, the model needs more than %zu MB for %zu bytes",
                       memory->limit >> 20, size);
    if (*out == NULL)
        return tl_fail(diag, TL_BAD_MODEL, "no ONNX model: its encoding is broken");
    return check_model(*out, diag);
}

static tl_status open_model(const tl_onnx_source *r, tl_onnx **out, tl_diag *diag)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    (*out)->folder = -1;
    if (r->folder == NULL)
        return TL_OK;
    (*out)->folder = open(r->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if ((*out)->folder < 0)
        return tl_fail(diag, TL_IO, "folder '%.300s': %s", r->folder, strerror(errno));
    return TL_OK;
}

/* The arena may run out at any allocation of the import; what is held besides it is released here. */
static tl_status read_model(tl_arena *arena, const tl_onnx_source *r, tl_onnx **model,
                            tl_graph **graph, tl_diag *diag)
{
    tl_onnx_memory memory = { .limit = tl_onnx_memory_limit(r->size) };
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
            status = tl_onnx_import(arena, *model, proto, r, graph, diag);
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

/* The folder of a path: what stands before its last slash. NULL: no memory. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static tl_status read_file(tl_arena *arena, const tl_onnx_source *source, tl_onnx **out,
                           tl_graph **graph, tl_diag *diag)
{
    tl_mapping file;
    TL_TRY(tl_file_map(source->path, &file, diag));
    char *folder = folder_of(source->path);
    tl_onnx_source bytes = *source;
    bytes.bytes = file.data;
    bytes.size = file.size;
    bytes.folder = folder;
    tl_status status = folder == NULL ? tl_fail(diag, TL_NO_MEMORY, "out of memory") : TL_OK;
    if (status == TL_OK && file.size == 0)
        status = tl_fail(diag, TL_BAD_MODEL, "the file is empty");
    if (status == TL_OK)
        status = read_model(arena, &bytes, out, graph, diag);
    if (status != TL_OK)
        tl_context(diag, "%s", source->path);
    free(folder);
    tl_file_unmap(&file);
    return status;
}

tl_status tl_onnx_read_source(tl_arena *arena, const tl_onnx_source *source, tl_onnx **out,
                              tl_graph **graph, tl_diag *diag)
{
    *out = NULL;
    *graph = NULL;
    return source->path != NULL ? read_file(arena, source, out, graph, diag)
                                : read_model(arena, source, out, graph, diag);
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
