/* runtime/cuda/cuda_launch.c: one phase of a kernel as one launch: its grid for the dims, its parameters in the order that
 * descriptor.h says, and, for the tensor memory accelerator, maps of the buffers where they lie. */
#include "runtime/cuda/cuda_private.h"

/* All that fits into the 4 KB that every driver hands over. */
enum { MAX_PARAMETERS = 512, PARAMETER_BYTES = 4096, MAX_MAPS = 16 };

static bool has_scratch(const tl_descriptor *d)
{
    return d->scratch_bytes > 0 || d->scratch_formula != NULL;
}

tl_status tl_cuda_check_parameters(const tl_descriptor *d, tl_diag *diag)
{
    int words = d->buffer_count + has_scratch(d) + d->dim_count;
    /* maps are aligned to 64 bytes */
    int64_t bytes = (d->map_count > 0 ? (words * 8 + 63) / 64 * 64 : words * 8) +
                    (int64_t)d->map_count * (int64_t)sizeof(cu_tensor_map);

    if (bytes > PARAMETER_BYTES || words + d->map_count > MAX_PARAMETERS || d->map_count > MAX_MAPS)
        return tl_fail(diag, TL_UNSUPPORTED,
                       "kernel %s: %d buffers, %d dims and %d maps are more parameters than a GPU "
                       "takes",
                       d->name, d->buffer_count, d->dim_count, d->map_count);
    return TL_OK;
}

/* Of whole numbers only the size matters. */
static const int map_types[TL_DTYPE_COUNT] = {
    [TL_BOOL] = CU_MAP_UINT8,  [TL_I8] = CU_MAP_UINT8,      [TL_I16] = CU_MAP_UINT16,
    [TL_I32] = CU_MAP_INT32,   [TL_I64] = CU_MAP_FLOAT64,   [TL_U8] = CU_MAP_UINT8,
    [TL_U16] = CU_MAP_UINT16,  [TL_U32] = CU_MAP_INT32,     [TL_U64] = CU_MAP_FLOAT64,
    [TL_F16] = CU_MAP_FLOAT16, [TL_BF16] = CU_MAP_BFLOAT16, [TL_F32] = CU_MAP_FLOAT32,
    [TL_F64] = CU_MAP_FLOAT64, [TL_I4] = CU_MAP_UINT8,      [TL_U4] = CU_MAP_UINT8,
};

/* The driver's numbers for a swizzle of 0, 32, 64 and 128 bytes are 0 to 3. */
static int swizzle_of(int bytes)
{
    return bytes == 0 ? 0 : bytes == 32 ? 1 : bytes == 64 ? 2 : 3;
}

static cu_result encode_map(const cuda_device *d, const tl_tensor_map *m, void *buffer,
                            cu_tensor_map *out)
{
    uint64_t extents[TL_MAP_AXES], strides[TL_MAP_AXES];
    uint32_t box[TL_MAP_AXES], steps[TL_MAP_AXES];

    for (int i = 0; i < m->rank; i++) {
        extents[i] = (uint64_t)m->extents[i];
        box[i] = (uint32_t)m->box[i];
        steps[i] = 1;
        if (i > 0) /* that of the innermost axis is the element's size */
            strides[i - 1] = (uint64_t)m->strides[i];
    }
    return d->driver->tensor_map(out, map_types[m->dtype], (unsigned)m->rank, buffer, extents,
                                 strides, box, steps, CU_MAP_NOT_INTERLEAVED,
                                 swizzle_of(m->swizzle), CU_MAP_L2_PROMOTION_256,
                                 CU_MAP_FILL_ZEROS);
}

/* The addresses of all parameters, in order. */
static cu_result gather(const cuda_device *d, const tl_descriptor *of, const tl_kernel_args *args,
                        cu_tensor_map *maps, void **out)
{
    int count = 0;

    for (int i = 0; i < of->buffer_count; i++)
        out[count++] = (void *)&args->buffers[i];
    if (has_scratch(of))
        out[count++] = (void *)&args->scratch;
    for (int i = 0; i < of->dim_count; i++)
        out[count++] = (void *)&args->dims[i];
    for (int i = 0; i < of->map_count; i++) {
        const tl_tensor_map *m = &of->maps[i];
        cu_result result = encode_map(d, m, tl_tensor_map_base(m, args), &maps[i]);
        if (result != CU_SUCCESS)
            return result;
        out[count++] = &maps[i];
    }
    return CU_SUCCESS;
}

static cu_result launch_cluster(const cuda_device *d, cu_stream stream, cu_function f,
                                const tl_launch *l, const int64_t *grid, void **parameters)
{
    cu_launch_attribute cluster = { .id = CU_ATTRIBUTE_CLUSTER };
    cu_launch_config config = { .dynamic_shared = (unsigned)l->dynamic_shared_bytes,
                                .stream = stream,
                                .attributes = &cluster,
                                .attribute_count = 1 };
    for (int i = 0; i < TL_LAUNCH_AXES; i++) {
        cluster.value.cluster[i] = (unsigned)l->cluster[i];
        config.grid[i] = (unsigned)grid[i];
        config.block[i] = (unsigned)l->block[i];
    }
    return d->driver->launch_with(&config, f, parameters, NULL);
}

tl_status tl_cuda_launch(tl_queue *queue, const tl_device_kernel *kernel, int phase,
                         const tl_kernel_args *args, tl_diag *diag)
{
    cuda_device *d = tl_cuda_device_of(queue);
    const cuda_kernel *k = (const cuda_kernel *)kernel;
    const tl_descriptor *of = &k->base.descriptor;
    const tl_launch *l = &of->launches[phase];
    cu_stream stream = ((const cuda_queue *)queue)->stream;
    void *parameters[MAX_PARAMETERS];
    cu_tensor_map maps[MAX_MAPS];
    int64_t grid[TL_LAUNCH_AXES];
    cu_context before;

    TL_TRY(tl_descriptor_grid(of, phase, args->dims, grid, diag));
    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0)
        return TL_OK;
    TL_TRY(tl_cuda_enter(d, &before, diag));
    cu_result result = gather(d, of, args, maps, parameters);
    if (result != CU_SUCCESS) {
        tl_status status = tl_cuda_leave(d, before, result, "cuTensorMapEncodeTiled", diag);
        tl_context(diag, "kernel %s", of->name);
        return status;
    }
    if (l->cluster[0] * l->cluster[1] * l->cluster[2] > 1)
        result = launch_cluster(d, stream, k->functions[phase], l, grid, parameters);
    else
        result = d->driver->launch(k->functions[phase], (unsigned)grid[0], (unsigned)grid[1],
                                   (unsigned)grid[2], (unsigned)l->block[0], (unsigned)l->block[1],
                                   (unsigned)l->block[2], (unsigned)l->dynamic_shared_bytes, stream,
                                   parameters, NULL);
    tl_status status = tl_cuda_leave(d, before, result, "cuLaunchKernel", diag);
    if (status != TL_OK)
        tl_context(diag, "kernel %s", of->name);
    return status;
}
