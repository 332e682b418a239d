/* frontend/onnx/onnx_operators.c: which operators a model has, before it is known whether tilth has them. */
#include <string.h>
#include "frontend/onnx/onnx_walk.h"
#include "runtime/base/file.h"

static void add_operators(tl_arena *arena, const Onnx__GraphProto *g, tl_map *found)
{
    for (size_t i = 0; g != NULL && i < g->n_node; i++) {
        const Onnx__NodeProto *node = g->node[i];
        const char *domain = tl_domain(node->domain), *op = tl_text_or(node->op_type, "");
        const char *name = domain[0] == '\0' ? op : tl_arena_format(arena, "%s.%s", domain, op);
        if (*op != '\0' && !tl_map_has(found, name))
            tl_map_put(found, name, found);
        for (size_t a = 0; a < node->n_attribute; a++) {
            add_operators(arena, node->attribute[a]->g, found);
            for (size_t k = 0; k < node->attribute[a]->n_graphs; k++)
                add_operators(arena, node->attribute[a]->graphs[k], found);
        }
    }
}

static void list_names(tl_arena *arena, const tl_map *found, const char *const **out, int *count)
{
    *count = (int)tl_map_count(found);
    const char **names = TL_NEW_ARRAY(arena, const char *, *count);
    for (int i = 0; i < *count; i++)
        names[i] = tl_map_at(found, (size_t)i).key;
    *out = names;
}

tl_status tl_onnx_read_operators(tl_arena *arena, const char *path, const char *const **out,
                                 int *count, int *opset, tl_diag *diag)
{
    *opset = 0;
    tl_mapping file;
    TL_TRY(tl_file_map(path, &file, diag));
    tl_onnx_memory memory = { .limit = tl_onnx_memory_limit(file.size) };
    ProtobufCAllocator allocator = tl_onnx_allocator(&memory);
    Onnx__ModelProto *unpacked = NULL;
    tl_status status =
        file.size == 0 ? tl_fail(diag, TL_BAD_MODEL, "the file is empty")
                       : tl_onnx_unpack(file.data, file.size, &allocator, &memory, &unpacked, diag);
    Onnx__ModelProto *volatile proto = unpacked;
    tl_arena_guard outer;
    tl_arena_guard_save(arena, &outer);
    if (status == TL_OK) {
        if (TL_ARENA_GUARD(arena)) {
            status = tl_fail(diag, TL_NO_MEMORY, "out of memory while reading the operators");
        } else {
            tl_map *found = tl_map_create(arena);
            add_operators(arena, proto->graph, found);
            list_names(arena, found, out, count);
            for (size_t i = 0; i < proto->n_opset_import; i++) {
                int64_t version = proto->opset_import[i]->version;
                if (*tl_domain(proto->opset_import[i]->domain) == '\0' && version > 0 &&
                    version < 1 << 20)
                    *opset = (int)version;
            }
        }
    }
    tl_arena_guard_restore(arena, &outer);
    onnx__model_proto__free_unpacked(proto, &allocator);
    tl_file_unmap(&file);
    if (status != TL_OK)
        tl_context(diag, "%s", path);
    return status;
}
