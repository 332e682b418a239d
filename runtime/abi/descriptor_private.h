/* runtime/abi/descriptor_private.h: what the files that read and write descriptors share. */
#ifndef TL_RUNTIME_ABI_DESCRIPTOR_PRIVATE_H
#define TL_RUNTIME_ABI_DESCRIPTOR_PRIVATE_H
#include <jansson.h>
#include "runtime/abi/descriptor.h"

static inline bool tl_has_extents(const tl_descriptor *d)
{
    return !d->has_sizes && !tl_descriptor_is_gpu(d);
}

tl_status tl_descriptor_integer(const json_t *object, const char *key, int64_t low, int64_t high,
                                int64_t *out, tl_diag *diag);

/* runtime/abi/descriptor_gpu.c: the members that only a GPU's descriptor has. */
void tl_gpu_part_print(const tl_descriptor *d, tl_text *out);
tl_status tl_gpu_part_read(tl_arena *arena, const json_t *root, tl_descriptor *out, tl_diag *diag);
void tl_gpu_part_copy(tl_arena *arena, const tl_descriptor *from, tl_descriptor *out);

#endif
