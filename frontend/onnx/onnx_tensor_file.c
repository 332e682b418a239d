/* frontend/onnx/onnx_tensor_file.c: a file that holds one serialized TensorProto, as ONNX's test data does. */
#include <stdlib.h>
#include <string.h>
#include "frontend/onnx/onnx_private.h"
#include "frontend/onnx/onnx_scan.h"
#include "runtime/base/file.h"

/* Nothing of it is lent: all of it is in the arena then. */
static tl_status copy_tensor(tl_arena *arena, Onnx__TensorProto *proto, tl_dtype *dtype,
                             tl_shape *shape, const void **data, tl_diag *diag)
{
    tl_onnx closed = { .folder = -1 };
    tl_onnx_tensor tensor;
    tl_arena_guard outer;
    tl_status status;
    tl_arena_guard_save(arena, &outer);
    if (TL_ARENA_GUARD(arena)) {
        status = tl_fail(diag, TL_NO_MEMORY, "out of memory");
    } else {
        status = tl_onnx_read_tensor(arena, &closed, proto, &tensor, diag);
        if (status == TL_OK) {
            *dtype = tensor.dtype;
            *shape = tensor.shape;
            *data = tensor.data;
        }
    }
    tl_arena_guard_restore(arena, &outer);
    return status;
}

tl_status tl_onnx_read_tensor_file(tl_arena *arena, const char *path, tl_dtype *dtype,
                                   tl_shape *shape, const void **data, tl_diag *diag)
{
    tl_mapping file;
    TL_TRY(tl_file_map(path, &file, diag));
    tl_onnx_memory memory = { .limit = tl_onnx_memory_limit(file.size) };
    ProtobufCAllocator allocator = tl_onnx_allocator(&memory);
    tl_status status = tl_onnx_scan(file.data, file.size, TL_ONNX_MESSAGE_TENSOR, diag);
    Onnx__TensorProto *proto = NULL;
    if (status == TL_OK) {
        proto = onnx__tensor_proto__unpack(&allocator, file.size, file.data);
        status = proto == NULL
                     ? tl_fail(diag, TL_BAD_MODEL, "no TensorProto: its encoding is broken")
                     : copy_tensor(arena, proto, dtype, shape, data, diag);
    }
    onnx__tensor_proto__free_unpacked(proto, &allocator);
    tl_file_unmap(&file);
    if (status != TL_OK)
        tl_context(diag, "%s", path);
    return status;
}
