/* runtime/device/cpu_device.c: the threads of this process as a device: what is put into a queue is done at once. Models
 * for a CPU are not run by it but by a runner's walk, in which threads stay together over all steps (runner.c); it is the
 * measure of what a device is, and tests run every other row against it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/float_mode.h"
#include "runtime/base/pages.h"
#include "runtime/device/code_loader.h"
#include "runtime/device/cpu.h"
#include "runtime/device/device.h"
#include "runtime/device/host_event.h"
#include "runtime/device/host_queue.h"
#include "runtime/device/pool.h"
#include "runtime/device/topology.h"

typedef struct {
    tl_device base;
    tl_pool *pool;
} cpu_device;

typedef struct {
    tl_device_kernel base;
    tl_arena *arena; /* of the descriptor */
    tl_code *code;
    tl_phase_fn **phases;
    tl_sizes_fn *sizes;
} cpu_kernel;

static tl_status count(int *out, tl_diag *diag)
{
    (void)diag;
    *out = 1;
    return TL_OK;
}

static void close_device(tl_device *device)
{
    cpu_device *d = (cpu_device *)device;
    tl_pool_destroy(d->pool);
    free(d);
}

static tl_status open_device(int number, tl_device **out, tl_diag *diag)
{
    const tl_topology *machine = tl_topology_get();
    cpu_device *d = calloc(1, sizeof *d);
    if (d == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "cpu: out of memory");
    tl_status status = tl_pool_create(NULL, &d->pool, diag);
    if (status != TL_OK) {
        free(d);
        return status;
    }
    d->base.type = &tl_device_type_cpu;
    tl_device_facts *f = &d->base.facts;
    snprintf(f->name, sizeof f->name, "%s", machine->cpu_name);
    snprintf(f->arch, sizeof f->arch, "%s", tl_cpu_host_level());
    f->number = number;
    f->multiprocessors = tl_pool_threads(d->pool);
    f->memory_bytes = machine->memory_bytes;
    f->l2_bytes = machine->l2_bytes;
    *out = &d->base;
    return TL_OK;
}

static tl_status check(tl_device *device, tl_diag *diag)
{
    return tl_pool_check(((cpu_device *)device)->pool, 0, diag);
}

static tl_status memory(tl_device *device, int64_t *free_bytes, int64_t *total_bytes, tl_diag *diag)
{
    (void)diag;
    *free_bytes = *total_bytes = device->facts.memory_bytes;
    return TL_OK;
}

static tl_status allocate(tl_device *device, int64_t size, void **out, tl_diag *diag)
{
    (void)device;
    *out = size >= 0 && size < INT64_MAX - 256
               ? aligned_alloc(256, ((size_t)size + 256) / 256 * 256)
               : NULL;
    return *out != NULL
               ? TL_OK
               : tl_fail(diag, TL_NO_MEMORY, "cpu: no memory for %lld bytes", (long long)size);
}

static void release(tl_device *device, void *address)
{
    (void)device;
    free(address);
}

static void unload(tl_device_kernel *kernel)
{
    cpu_kernel *k = (cpu_kernel *)kernel;
    if (k == NULL)
        return;
    tl_code_unload(k->code);
    tl_arena_destroy(k->arena);
    free(k->phases);
    free(k);
}

static tl_status copy_descriptor(cpu_kernel *k, const tl_descriptor *d, tl_diag *diag)
{
    k->arena = tl_arena_create(0);
    if (k->arena == NULL || TL_ARENA_GUARD(k->arena))
        return tl_fail(diag, TL_NO_MEMORY, "kernel %s: out of memory", d->name);
    tl_descriptor_copy(k->arena, d, &k->base.descriptor);
    return TL_OK;
}

static tl_status load(tl_device *device, const tl_descriptor *d, const void *code, size_t size,
                      tl_device_kernel **out, tl_diag *diag)
{
    if (d->form != TL_FORM_OBJECT)
        return tl_fail(diag, TL_UNSUPPORTED, "kernel %s: a CPU does not run %s", d->name,
                       tl_form_infos[d->form].text);
    cpu_kernel *k = calloc(1, sizeof *k);
    if (k != NULL)
        k->phases = calloc((size_t)d->phase_count + 1, sizeof *k->phases);
    tl_status status = k == NULL || k->phases == NULL
                           ? tl_fail(diag, TL_NO_MEMORY, "kernel %s: out of memory", d->name)
                           : copy_descriptor(k, d, diag);
    if (status == TL_OK)
        status = tl_code_load(code, size, &k->code, diag);
    if (status == TL_OK)
        status = tl_code_kernel(k->code, d, k->phases, &k->sizes, diag);
    if (status != TL_OK) {
        unload((tl_device_kernel *)k);
        return status;
    }
    k->base.device = device;
    *out = &k->base;
    return TL_OK;
}

static tl_status make_queue(tl_device *device, void *stream, tl_queue **out, tl_diag *diag)
{
    return tl_host_queue_make(device, stream, "a CPU", out, diag);
}

typedef struct {
    tl_phase_fn *fn;
    const tl_kernel_args *args;
    int64_t extent;
} phase_run;

static void run_phase(tl_team *team, void *context)
{
    const phase_run *r = context;
    tl_part part = tl_team_range(r->extent, team->thread, team->threads);
    uint64_t mode = tl_float_mode_enter();
    if (part.begin < part.end)
        r->fn(r->args, part.begin, part.end, team->thread);
    tl_float_mode_leave(mode);
}

static tl_status launch(tl_queue *queue, const tl_device_kernel *kernel, int phase,
                        const tl_kernel_args *args, tl_diag *diag)
{
    const cpu_kernel *k = (const cpu_kernel *)kernel;
    const tl_descriptor *d = &k->base.descriptor;
    tl_pool *pool = ((cpu_device *)queue->device)->pool;
    int64_t *extents = NULL, scratch, thread_scratch;

    TL_TRY(tl_pool_check(pool, 0, diag));
    phase_run r = { k->phases[phase], args, d->has_sizes ? 0 : d->extents[phase] };
    if (d->has_sizes) {
        extents = calloc((size_t)d->phase_count, sizeof *extents);
        if (extents == NULL)
            return tl_fail(diag, TL_NO_MEMORY, "kernel %s: out of memory", d->name);
        k->sizes(args->dims, extents, &scratch, &thread_scratch);
        r.extent = extents[phase];
        free(extents);
    }
    tl_pool_run(pool, 0, run_phase, &r);
    return TL_OK;
}

static tl_status wait(tl_queue *queue, tl_diag *diag)
{
    (void)queue, (void)diag;
    return TL_OK;
}

const tl_device_type tl_device_type_cpu = {
    .name = "cpu",
    .form = TL_FORM_OBJECT,
    .count = count,
    .open = open_device,
    .close = close_device,
    .check = check,
    .memory = memory,
    .allocate = allocate,
    .release = release,
    .allocate_host = allocate,
    .release_host = release,
    .load = load,
    .unload = unload,
    .make_queue = make_queue,
    .drop_queue = tl_host_queue_drop,
    .copy_in = tl_host_copy,
    .copy_out = tl_host_copy,
    .copy_within = tl_host_copy,
    .fill = tl_host_fill,
    .launch = launch,
    .wait = wait,
    .make_event = tl_host_event_make,
    .drop_event = tl_host_event_drop,
    .record = tl_host_event_record,
    .elapsed = tl_host_event_elapsed,
};
