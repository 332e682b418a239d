/* tests/gpu/fake_cuda/launches.c: launches as they are put into a stream, and the tensor maps that they are given. */
#include "tests/gpu/fake_cuda/fake_private.h"
#include <stdlib.h>
#include <string.h>

static cu_result put_launch(cu_function f, fake_operation o, cu_stream s, void **parameters)
{
    uint64_t threads = (uint64_t)o.block[0] * o.block[1] * o.block[2];
    bool has_blocks = o.grid[0] > 0 && o.grid[1] > 0 && o.grid[2] > 0;

    if (threads == 0 || threads > 1024 || !has_blocks || o.grid[1] > 65535 || o.grid[2] > 65535)
        return INVALID_VALUE;
    if (threads > f->threads ||
        (int)o.dynamic_shared > (f->dynamic_shared > 49152 ? f->dynamic_shared : 49152))
        return CU_LAUNCH_OUT_OF_RESOURCES;
    for (int i = 0; i < 3; i++)
        if (o.cluster[i] > 0 && o.grid[i] % o.cluster[i] != 0)
            return INVALID_VALUE;
    o.kind = LAUNCH;
    o.function = f;
    o.values = calloc((size_t)f->parameter_count + 1, PARAMETER_BYTES);
    for (int i = 0; i < f->parameter_count; i++)
        memcpy(o.values + (size_t)i * PARAMETER_BYTES, parameters[i], f->sizes[i]);
    fake_add(&s->work, o);
    return CU_SUCCESS;
}

EXPORT(cuLaunchKernel,
       (cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
        unsigned shared, cu_stream s, void **parameters, void **extra))
{
    (void)extra;
    BEGIN
    result = put_launch(f,
                        (fake_operation){ .grid = { gx, gy, gz },
                                          .block = { bx, by, bz },
                                          .cluster = { 1, 1, 1 },
                                          .dynamic_shared = shared },
                        s, parameters);
    END;
}

EXPORT(cuLaunchKernelEx,
       (const cu_launch_config *c, cu_function f, void **parameters, void **extra))
{
    (void)extra;
    BEGIN
    fake_operation o = { .dynamic_shared = c->dynamic_shared, .cluster = { 1, 1, 1 } };
    memcpy(o.grid, c->grid, sizeof o.grid);
    memcpy(o.block, c->block, sizeof o.block);
    for (unsigned i = 0; i < c->attribute_count; i++)
        if (c->attributes[i].id == CU_ATTRIBUTE_CLUSTER)
            memcpy(o.cluster, c->attributes[i].value.cluster, sizeof o.cluster);
    result = put_launch(f, o, c->stream, parameters);
    END;
}

/* A map that says what it is of: its address first, so that a kernel can follow it. */
EXPORT(cuTensorMapEncodeTiled,
       (cu_tensor_map * out, int type, unsigned rank, void *address, const uint64_t *extents,
        const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
        int swizzle, int promotion, int fill))
{
    (void)steps, (void)interleave, (void)promotion, (void)fill;
    if (rank < 1 || rank > 5 || ((uintptr_t)address & 15) != 0)
        return INVALID_VALUE;
    fake_map map = { .base = address, .type = type, .rank = (int)rank, .swizzle = swizzle };
    for (unsigned i = 0; i < rank; i++) {
        if (i > 0 && strides[i - 1] % 16 != 0)
            return INVALID_VALUE;
        map.extents[i] = extents[i];
        map.strides[i] = i > 0 ? strides[i - 1] : 0;
        map.box[i] = (unsigned short)box[i];
    }
    memset(out, 0, sizeof *out);
    memcpy(out, &map, sizeof map);
    return CU_SUCCESS;
}
