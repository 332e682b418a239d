/* runtime/cuda/cuda_device.c: NVIDIA GPUs as devices: opening them, and asking.
 *
 * A device is its primary context, which other users of the driver in this process share, so that their addresses and
 * streams are ours (cuda_context.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/cuda/cuda_private.h"

static tl_status count(int *out, tl_diag *diag)
{
    const cuda_driver *driver;
    TL_TRY(tl_cuda_driver(&driver, diag));
    *out = driver->devices;
    return TL_OK;
}

static int attribute(const cuda_device *d, int which)
{
    int value = 0;
    return d->driver->device_attribute(&value, which, d->handle) == CU_SUCCESS ? value : 0;
}

static void fill_id(const cuda_device *d, char out[40])
{
    cu_uuid id;
    char *at = out;

    out[0] = '\0';
    if (d->driver->device_uuid == NULL || d->driver->device_uuid(&id, d->handle) != CU_SUCCESS)
        return;
    for (int i = 0; i < 16; i++)
        at += sprintf(at, "%02x%s", id.bytes[i], i == 3 || i == 5 || i == 7 || i == 9 ? "-" : "");
}

/* Multiply-adds of f32 that a multiprocessor begins in a cycle. */
static int lanes_of(const cuda_device *d)
{
    return d->major < 8 || (d->major == 8 && d->minor == 0) ? 64 : 128;
}

static tl_status fill_facts(cuda_device *d, int number, tl_diag *diag)
{
    tl_device_facts *f = &d->base.facts;
    size_t memory = 0;
    cu_result result = d->driver->device_name(f->name, (int)sizeof f->name, d->handle);

    if (result == CU_SUCCESS)
        result = d->driver->device_memory(&memory, d->handle);
    if (result != CU_SUCCESS)
        return tl_cuda_failed(d->driver, result, "cuDeviceGetName", diag);
    f->name[sizeof f->name - 1] = '\0';
    f->number = number;
    f->memory_bytes = (int64_t)memory;
    d->major = attribute(d, CU_DEVICE_MAJOR);
    d->minor = attribute(d, CU_DEVICE_MINOR);
    f->multiprocessors = attribute(d, CU_DEVICE_MULTIPROCESSORS);
    f->threads_sm = attribute(d, CU_DEVICE_THREADS_SM);
    f->blocks_sm = attribute(d, CU_DEVICE_BLOCKS_SM);
    f->registers_sm = attribute(d, CU_DEVICE_REGISTERS_SM);
    f->shared_block = attribute(d, CU_DEVICE_SHARED_BLOCK);
    f->shared_sm = attribute(d, CU_DEVICE_SHARED_SM);
    f->l2_bytes = attribute(d, CU_DEVICE_L2_BYTES);
    f->clock_mhz = attribute(d, CU_DEVICE_CLOCK_KHZ) / 1000;
    f->memory_mhz = attribute(d, CU_DEVICE_MEMORY_KHZ) / 1000;
    f->memory_bits = attribute(d, CU_DEVICE_MEMORY_BITS);
    f->has_graphs = d->driver->capture_begin != NULL && d->driver->capture_end != NULL &&
                    d->driver->graph_instantiate != NULL && d->driver->graph_launch != NULL &&
                    d->driver->graph_exec_destroy != NULL && d->driver->graph_destroy != NULL;
    f->has_clusters = d->driver->launch_with != NULL && d->major >= 9;
    f->has_tensor_maps = d->driver->tensor_map != NULL && d->major >= 9;
    snprintf(f->arch, sizeof f->arch, "sm_%d%d", d->major, d->minor);
    snprintf(f->driver, sizeof f->driver, "CUDA %d.%d", d->driver->version / 1000,
             d->driver->version % 1000 / 10);
    snprintf(f->fingerprint, sizeof f->fingerprint, "%.40s %s %d SM %d MHz", f->name, f->arch,
             f->multiprocessors, f->clock_mhz);
    fill_id(d, f->id);
    f->f32_gflops = 2e-3 * (double)f->multiprocessors * lanes_of(d) * f->clock_mhz;
    f->memory_gbs = 2e-3 * (double)f->memory_mhz * f->memory_bits / 8;
    if (d->major < 7)
        return tl_fail(diag, TL_UNSUPPORTED, "%s is of compute capability %d.%d; 7.0 is needed",
                       f->name, d->major, d->minor);
    return TL_OK;
}

static void close_device(tl_device *device)
{
    cuda_device *d = (cuda_device *)device;

    if (d->context != NULL) {
        tl_cuda_free_blocks(d);
        d->driver->context_release(d->handle);
    }
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static tl_status open_handle(cuda_device *d, int number, tl_diag *diag)
{
    cu_result result = d->driver->device_get(&d->handle, number);

    if (result != CU_SUCCESS)
        return tl_cuda_failed(d->driver, result, "cuDeviceGet", diag);
    TL_TRY(fill_facts(d, number, diag));
    result = d->driver->context_retain(&d->context, d->handle);
    if (result == CU_SUCCESS)
        return TL_OK;
    d->context = NULL;
    return tl_cuda_failed(d->driver, result, "cuDevicePrimaryCtxRetain", diag);
}

static tl_status open_device(int number, tl_device **out, tl_diag *diag)
{
    const cuda_driver *driver;

    TL_TRY(tl_cuda_driver(&driver, diag));
    cuda_device *d = calloc(1, sizeof *d);
    if (d == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "cuda: out of memory");
    d->base.type = &tl_device_type_cuda;
    d->driver = driver;
    pthread_mutex_init(&d->lock, NULL);
    tl_status status = open_handle(d, number, diag);
    if (status != TL_OK) {
        tl_context(diag, "opening cuda:%d", number);
        close_device(&d->base);
        return status;
    }
    *out = &d->base;
    return TL_OK;
}

static tl_status memory(tl_device *device, int64_t *free_bytes, int64_t *total_bytes, tl_diag *diag)
{
    cuda_device *d = (cuda_device *)device;
    cu_context before;
    size_t available = 0, total = 0;

    TL_TRY(tl_cuda_enter(d, &before, diag));
    cu_result result = d->driver->memory_info(&available, &total);
    *free_bytes = (int64_t)available;
    *total_bytes = (int64_t)total;
    return tl_cuda_leave(d, before, result, "cuMemGetInfo", diag);
}

const tl_device_type tl_device_type_cuda = {
    .name = "cuda",
    .form = TL_FORM_PTX,
    .count = count,
    .open = open_device,
    .close = close_device,
    .check = tl_cuda_device_check,
    .memory = memory,
    .allocate = tl_cuda_allocate,
    .release = tl_cuda_release,
    .allocate_host = tl_cuda_allocate_host,
    .release_host = tl_cuda_release_host,
    .compile = tl_cuda_compile,
    .load = tl_cuda_load,
    .unload = tl_cuda_unload,
    .make_queue = tl_cuda_make_queue,
    .drop_queue = tl_cuda_drop_queue,
    .copy_in = tl_cuda_copy_in,
    .copy_out = tl_cuda_copy_out,
    .copy_within = tl_cuda_copy_within,
    .fill = tl_cuda_fill,
    .launch = tl_cuda_launch,
    .wait = tl_cuda_wait,
    .make_event = tl_cuda_make_event,
    .drop_event = tl_cuda_drop_event,
    .record = tl_cuda_record,
    .elapsed = tl_cuda_elapsed,
    .begin_graph = tl_cuda_begin_graph,
    .end_graph = tl_cuda_end_graph,
    .run_graph = tl_cuda_run_graph,
    .drop_graph = tl_cuda_drop_graph,
};
