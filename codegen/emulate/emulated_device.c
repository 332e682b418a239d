/* codegen/emulate/emulated_device.c: see emulated_device.h. */
#include "codegen/emulate/emulated_device.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/emulate/emulate.h"
#include "runtime/base/array.h"
#include "runtime/device/host_event.h"
#include "runtime/device/host_queue.h"

typedef struct {
    tl_device base;
    tl_target host;
    pthread_mutex_t lock; /* of what follows */
    tl_emulated_buffer *buffers;
    int buffer_count, buffer_capacity;
    tl_status lost;
    tl_diag why;
} emulated_device;

typedef struct {
    tl_device_kernel base;
    tl_arena *arena; /* of the descriptor */
    tl_emulated *module;
    int *phases; /* numbers of the module's kernels */
} emulated_kernel;

static tl_status count(int *out, tl_diag *diag)
{
    (void)diag;
    *out = 1;
    return TL_OK;
}

static void close_device(tl_device *device)
{
    emulated_device *d = (emulated_device *)device;
    for (int i = 0; i < d->buffer_count; i++)
        free((void *)(uintptr_t)d->buffers[i].base);
    free(d->buffers);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

/* This machine's CPU with what it has, as far as code for the emulator can use it. */
static tl_status find_host(tl_target *out, tl_diag *diag)
{
    char triple[64], cpu[32], features[2048];
    TL_TRY(tl_codegen_host(triple, cpu, features, diag));
    bool is_arm = strncmp(triple, "aarch64", 7) == 0;
    TL_TRY(tl_target_named(is_arm                              ? "aarch64"
                           : strstr(features, "+avx2") != NULL ? "x86-64-v3"
                                                               : "x86-64",
                           out, diag));
    memcpy(out->triple, triple, sizeof triple);
    memcpy(out->cpu, cpu, sizeof cpu);
    memcpy(out->features, features, sizeof features);
    return TL_OK;
}

static tl_status open_device(int number, tl_device **out, tl_diag *diag)
{
    emulated_device *d = calloc(1, sizeof *d);
    if (d == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "cuda-emulated: out of memory");
    tl_status status = find_host(&d->host, diag);
    if (status != TL_OK) {
        free(d);
        return status;
    }
    pthread_mutex_init(&d->lock, NULL);
    d->base.type = &tl_device_type_emulated;
    tl_device_facts *f = &d->base.facts;
    snprintf(f->name, sizeof f->name, "emulated GPU");
    snprintf(f->arch, sizeof f->arch, "sm_90a");
    snprintf(f->fingerprint, sizeof f->fingerprint, "emulated");
    f->number = number;
    f->multiprocessors = 1;
    f->threads_sm = 2048;
    f->blocks_sm = 32;
    f->registers_sm = 65536;
    f->shared_block = 227 << 10;
    f->shared_sm = 228 << 10;
    f->memory_bytes = INT64_C(1) << 34;
    f->l2_bytes = 50 << 20;
    f->has_clusters = f->has_tensor_maps = true;
    *out = &d->base;
    return TL_OK;
}

static tl_status check(tl_device *device, tl_diag *diag)
{
    emulated_device *d = (emulated_device *)device;
    pthread_mutex_lock(&d->lock);
    tl_status status = d->lost == TL_OK ? TL_OK : tl_fail(diag, TL_DEVICE, "%s", d->why.text);
    pthread_mutex_unlock(&d->lock);
    return status;
}

static tl_status memory(tl_device *device, int64_t *free_bytes, int64_t *total_bytes, tl_diag *diag)
{
    (void)diag;
    *free_bytes = *total_bytes = device->facts.memory_bytes;
    return TL_OK;
}

/* What nobody has written is no number. */
static tl_status allocate(tl_device *device, int64_t size, void **out, tl_diag *diag)
{
    emulated_device *d = (emulated_device *)device;
    TL_TRY(check(device, diag));
    size_t bytes = size >= 0 && size < INT64_MAX - 512 ? ((size_t)size + 256) / 256 * 256 : 0;
    void *address = bytes > 0 ? aligned_alloc(256, bytes) : NULL;
    pthread_mutex_lock(&d->lock);
    bool good = address != NULL && TL_HEAP_ROOM(d->buffers, d->buffer_count, d->buffer_capacity);
    if (good)
        d->buffers[d->buffer_count++] = (tl_emulated_buffer){ address, size, true };
    pthread_mutex_unlock(&d->lock);
    if (!good) {
        free(address);
        return tl_fail(diag, TL_NO_MEMORY, "cuda-emulated: no memory for %lld bytes",
                       (long long)size);
    }
    memset(address, 0xff, bytes);
    *out = address;
    return TL_OK;
}

static void release(tl_device *device, void *address)
{
    emulated_device *d = (emulated_device *)device;
    pthread_mutex_lock(&d->lock);
    for (int i = 0; i < d->buffer_count && address != NULL; i++)
        if (d->buffers[i].base == address) {
            d->buffers[i] = d->buffers[--d->buffer_count];
            break;
        }
    pthread_mutex_unlock(&d->lock);
    free(address);
}

static tl_status allocate_host(tl_device *device, int64_t size, void **out, tl_diag *diag)
{
    (void)device;
    *out = size >= 0 && size < INT64_MAX ? malloc((size_t)size + 1) : NULL;
    return *out != NULL ? TL_OK
                        : tl_fail(diag, TL_NO_MEMORY, "cuda-emulated: no memory for %lld bytes",
                                  (long long)size);
}

static void release_host(tl_device *device, void *address)
{
    (void)device;
    free(address);
}

static void unload(tl_device_kernel *kernel)
{
    emulated_kernel *k = (emulated_kernel *)kernel;
    if (k == NULL)
        return;
    tl_emulated_unload(k->module);
    tl_arena_destroy(k->arena);
    free(k->phases);
    free(k);
}

static tl_status find_phases(emulated_kernel *k, const tl_descriptor *d, tl_diag *diag)
{
    k->phases = calloc((size_t)d->phase_count + 1, sizeof *k->phases);
    k->arena = tl_arena_create(0);
    if (k->phases == NULL || k->arena == NULL || TL_ARENA_GUARD(k->arena))
        return tl_fail(diag, TL_NO_MEMORY, "kernel %s: out of memory", d->name);
    tl_descriptor_copy(k->arena, d, &k->base.descriptor);
    for (int p = 0; p < d->phase_count; p++) {
        tl_function_name name = tl_descriptor_function(d, p);
        k->phases[p] = tl_emulated_find(k->module, name.text);
        if (k->phases[p] < 0)
            return tl_fail(diag, TL_BAD_ARGUMENT, "kernel %s: its module does not have %s", d->name,
                           name.text);
    }
    return TL_OK;
}

static tl_status load(tl_device *device, const tl_descriptor *d, const void *code, size_t size,
                      tl_device_kernel **out, tl_diag *diag)
{
    TL_TRY(check(device, diag));
    if (d->form != TL_FORM_LLVM)
        return tl_fail(diag, TL_UNSUPPORTED,
                       "kernel %s: an emulated GPU runs modules of LLVM, not %s", d->name,
                       tl_form_infos[d->form].text);
    emulated_kernel *k = calloc(1, sizeof *k);
    if (k == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "kernel %s: out of memory", d->name);
    k->base.device = device;
    tl_status status =
        tl_emulated_load(&((emulated_device *)device)->host, code, size, &k->module, diag);
    if (status == TL_OK)
        status = find_phases(k, d, diag);
    if (status != TL_OK) {
        unload(&k->base);
        return status;
    }
    *out = &k->base;
    return TL_OK;
}

static tl_status make_queue(tl_device *device, void *stream, tl_queue **out, tl_diag *diag)
{
    return tl_host_queue_make(device, stream, "an emulated GPU", out, diag);
}

static tl_status copy(tl_queue *queue, void *to, const void *from, int64_t size, tl_diag *diag)
{
    TL_TRY(check(queue->device, diag));
    return tl_host_copy(queue, to, from, size, diag);
}

static tl_status fill(tl_queue *queue, void *to, unsigned char byte, int64_t size, tl_diag *diag)
{
    TL_TRY(check(queue->device, diag));
    return tl_host_fill(queue, to, byte, size, diag);
}

/* ---- launches ---- */

enum { MOST_PARAMETERS = 512, MOST_MAPS = 16 };

static void encode_map(const tl_tensor_map *m, void *base, tl_emulated_map *out)
{
    *out = (tl_emulated_map){ .magic = TL_TENSOR_MAP_MAGIC,
                              .rank = (uint8_t)m->rank,
                              .element_bytes = (uint8_t)tl_dtype_size(m->dtype),
                              .swizzle_bytes = (uint8_t)m->swizzle,
                              .base = base };
    for (int i = 0; i < m->rank; i++) {
        out->extents[i] = (uint64_t)m->extents[i];
        out->box[i] = (uint16_t)m->box[i];
        if (i > 0)
            out->strides[i - 1] = (uint64_t)m->strides[i];
    }
}

static tl_status launch_phase(emulated_device *d, const emulated_kernel *k, int phase,
                              const tl_kernel_args *args, tl_diag *diag)
{
    const tl_descriptor *of = &k->base.descriptor;
    const tl_launch *l = &of->launches[phase];
    _Alignas(64) char maps[MOST_MAPS][128];
    void *parameters[MOST_PARAMETERS];
    int64_t grid[TL_LAUNCH_AXES];
    int count_parameters = 0;
    TL_TRY(tl_descriptor_grid(of, phase, args->dims, grid, diag));
    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0)
        return TL_OK;
    if (of->buffer_count + of->dim_count + of->map_count + 1 > MOST_PARAMETERS ||
        of->map_count > MOST_MAPS)
        return tl_fail(diag, TL_UNSUPPORTED, "kernel %s: more parameters than a GPU takes",
                       of->name);
    for (int i = 0; i < of->buffer_count; i++)
        parameters[count_parameters++] = (void *)(uintptr_t)&args->buffers[i];
    if (of->scratch_bytes > 0 || of->scratch_formula != NULL)
        parameters[count_parameters++] = (void *)(uintptr_t)&args->scratch;
    for (int i = 0; i < of->dim_count; i++)
        parameters[count_parameters++] = (void *)(uintptr_t)&args->dims[i];
    for (int i = 0; i < of->map_count; i++) {
        tl_emulated_map map;
        encode_map(&of->maps[i], tl_tensor_map_base(&of->maps[i], args), &map);
        memcpy(maps[i], &map, sizeof map);
        parameters[count_parameters++] = maps[i];
    }
    tl_emulated_launch launch = { .shared_bytes = l->dynamic_shared_bytes,
                                  .arguments = parameters,
                                  .argument_count = count_parameters,
                                  .buffers = d->buffers,
                                  .buffer_count = d->buffer_count };
    for (int a = 0; a < TL_LAUNCH_AXES; a++) {
        launch.grid[a] = (int)grid[a];
        launch.block[a] = l->block[a];
        launch.cluster[a] = l->cluster[a];
    }
    return tl_emulated_run(k->module, k->phases[phase], &launch, diag);
}

static tl_status launch(tl_queue *queue, const tl_device_kernel *kernel, int phase,
                        const tl_kernel_args *args, tl_diag *diag)
{
    emulated_device *d = (emulated_device *)queue->device;
    tl_diag own = { 0 };
    TL_TRY(check(queue->device, diag));
    pthread_mutex_lock(&d->lock); /* one launch at a time: no buffer goes while it runs */
    tl_status status = launch_phase(d, (const emulated_kernel *)kernel, phase, args, &own);
    if (status == TL_BAD_IR || status == TL_BUDGET) {
        d->lost = status;
        d->why = own;
    }
    pthread_mutex_unlock(&d->lock);
    return status == TL_OK
               ? TL_OK
               : tl_fail(diag, status == TL_BAD_IR ? TL_DEVICE : status, "%s", own.text);
}

static tl_status wait(tl_queue *queue, tl_diag *diag)
{
    return check(queue->device, diag);
}

const tl_device_type tl_device_type_emulated = {
    .name = "cuda-emulated",
    .form = TL_FORM_LLVM,
    .is_emulated = true,
    .count = count,
    .open = open_device,
    .close = close_device,
    .check = check,
    .memory = memory,
    .allocate = allocate,
    .release = release,
    .allocate_host = allocate_host,
    .release_host = release_host,
    .load = load,
    .unload = unload,
    .make_queue = make_queue,
    .drop_queue = tl_host_queue_drop,
    .copy_in = copy,
    .copy_out = copy,
    .copy_within = copy,
    .fill = fill,
    .launch = launch,
    .wait = wait,
    .make_event = tl_host_event_make,
    .drop_event = tl_host_event_drop,
    .record = tl_host_event_record,
    .elapsed = tl_host_event_elapsed,
};

void tl_emulated_device_add(void)
{
    tl_device_type_add(&tl_device_type_emulated);
}
