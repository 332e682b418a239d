/* frontend/onnx/onnx_memory.h: the memory protobuf-c unpacks into: bounded. */
#ifndef TL_FRONTEND_ONNX_ONNX_MEMORY_H
#define TL_FRONTEND_ONNX_ONNX_MEMORY_H
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct {
    size_t used, limit;
    bool exceeded; /* an allocation was refused because of the limit */
} tl_onnx_memory;

/* The limit that a file of `size` bytes deserves: unpacked, real models take little more than their size. */
size_t tl_onnx_memory_limit(size_t size);
ProtobufCAllocator tl_onnx_allocator(tl_onnx_memory *memory);

#endif
