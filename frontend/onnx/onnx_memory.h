/* frontend/onnx/onnx_memory.h: the memory protobuf-c unpacks into: bounded, and able to give a block away. */
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
/* A block of the allocator that its message no longer mentions is freed by this, after the memory is gone too. */
void tl_onnx_block_free(void *block);

#endif
