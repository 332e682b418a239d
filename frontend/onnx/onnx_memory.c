/* frontend/onnx/onnx_memory.c: malloc with the size before each block, so that freeing gives back its share. */
#include "frontend/onnx/onnx_memory.h"
#include <stdint.h>
#include <stdlib.h>

typedef union {
    size_t size;
    max_align_t align;
} header;

static void *allocate(void *data, size_t size)
{
    tl_onnx_memory *memory = data;
    if (size > SIZE_MAX - sizeof(header) || size + sizeof(header) > memory->limit - memory->used) {
        memory->exceeded = true;
        return NULL;
    }
    header *block = malloc(size + sizeof(header));
    if (block == NULL)
        return NULL;
    block->size = size + sizeof(header);
    memory->used += block->size;
    return block + 1;
}

static void release(void *data, void *block)
{
    tl_onnx_memory *memory = data;
    if (block == NULL)
        return;
    memory->used -= ((header *)block - 1)->size;
    free((header *)block - 1);
}

size_t tl_onnx_memory_limit(size_t size)
{
    const size_t floor = (size_t)64 << 20;
    return size > (SIZE_MAX - floor) / 16 ? SIZE_MAX : floor + 16 * size;
}

ProtobufCAllocator tl_onnx_allocator(tl_onnx_memory *memory)
{
    return (ProtobufCAllocator){ allocate, release, memory };
}
