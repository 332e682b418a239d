/* runtime/executable/device_part.c: what an executable has on its device: loaded kernels, and the constants that its steps
 * read, which are copied there once.
 *
 *     host     constants | prepared           (computed by prepare steps, or read from prepared.bin)
 *                  |           |
 *     device   constants   prepared  <- steps read both here */
#include <assert.h>
#include "runtime/base/checked.h"
#include "runtime/executable/device_run.h"
#include "runtime/executable/executable_private.h"

bool tl_step_is_on_device(const tl_executable_spec *spec, const tl_executable_step *step)
{
    return step->kernel >= 0 && tl_descriptor_is_gpu(&spec->kernels[step->kernel].descriptor);
}

/* The driver's result for this very generation, else what it is made of: a driver may not know an older one's any more. */
static tl_status load_kernel(tl_executable *x, int index, tl_diag *diag)
{
    const tl_executable_kernel *k = &x->kernels[index];
    tl_device *device = x->device;
    tl_descriptor native = k->descriptor;

    native.form = TL_FORM_CUBIN;
    native.arch = k->native_arch;
    if (k->native != NULL && device->type->load(device, &native, k->native, k->native_size,
                                                &x->device_kernels[index], NULL) == TL_OK)
        return TL_OK;
    return device->type->load(device, &k->descriptor, k->object, k->object_size,
                              &x->device_kernels[index], diag);
}

static tl_status load_kernels(tl_executable *x, tl_diag *diag)
{
    for (int i = 0; i < x->spec.kernel_count; i++)
        if (tl_descriptor_is_gpu(&x->kernels[i].descriptor))
            TL_TRY(load_kernel(x, i, diag));
    return TL_OK;
}

/* Where the constants of steps lie in one piece of memory; their sum. */
static tl_status place_constants(const tl_executable *x, int64_t *offsets, int64_t *sum,
                                 tl_diag *diag)
{
    *sum = 0;
    for (int i = 0; i < x->spec.value_count; i++) {
        const tl_executable_value *v = &x->spec.values[i];
        if (v->place != TL_PLACE_CONSTANT || !x->in_steps[i])
            continue;
        offsets[i] = *sum;
        int64_t size;
        if (v->size > INT64_MAX - TL_DEVICE_ALIGNMENT ||
            tl_add_overflows(*sum, tl_device_aligned(v->size), &size))
            return tl_fail(diag, TL_BAD_ARGUMENT, "executable: constant %s is too large", v->name);
        *sum = size;
    }
    return TL_OK;
}

static tl_status copy_constants(tl_executable *x, tl_queue *queue, const int64_t *offsets,
                                tl_diag *diag)
{
    for (int i = 0; i < x->spec.value_count; i++) {
        const tl_executable_value *v = &x->spec.values[i];
        if (v->place != TL_PLACE_CONSTANT || !x->in_steps[i])
            continue;
        x->device_data[i] = (char *)x->device_constants + offsets[i];
        TL_TRY(queue->device->type->copy_in(queue, x->device_data[i], v->data, v->size, diag));
    }
    return TL_OK;
}

/* Of a block; `what` it is for, when there is no memory. */
static tl_status allocate(tl_executable *x, int64_t size, const char *what, void **out,
                          tl_diag *diag)
{
    tl_status status = x->device->type->allocate(x->device, size, out, diag);
    if (status != TL_OK)
        tl_context(diag, "%lld bytes of %s of %s", (long long)size, what, x->spec.model);
    return status;
}

tl_status tl_executable_upload_prepared(tl_executable *x, tl_diag *diag)
{
    const tl_device_type *type = x->device->type;
    tl_queue *queue;

    if (x->prepared_size == 0)
        return TL_OK;
    TL_TRY(type->make_queue(x->device, NULL, &queue, diag));
    tl_status status =
        type->copy_in(queue, x->device_prepared, x->prepared, x->prepared_size, diag);
    if (status == TL_OK)
        status = type->wait(queue, diag);
    type->drop_queue(queue);
    return status;
}

static tl_status upload(tl_executable *x, tl_diag *diag)
{
    const tl_device_type *type = x->device->type;
    int64_t *offsets = TL_NEW_ARRAY(x->arena, int64_t, x->spec.value_count), sum;
    tl_queue *queue;

    TL_TRY(place_constants(x, offsets, &sum, diag));
    if (x->prepared_size > 0)
        TL_TRY(allocate(x, x->prepared_size, "prepared constants", &x->device_prepared, diag));
    for (int i = 0; i < x->spec.value_count; i++)
        if (x->spec.values[i].place == TL_PLACE_PREPARED)
            x->device_data[i] = (char *)x->device_prepared + x->prepared_offset[i];
    if (sum == 0)
        return TL_OK;
    TL_TRY(allocate(x, sum, "constants", &x->device_constants, diag));
    TL_TRY(type->make_queue(x->device, NULL, &queue, diag));
    tl_status status = copy_constants(x, queue, offsets, diag);
    if (status == TL_OK)
        status = type->wait(queue, diag);
    type->drop_queue(queue);
    return status;
}

static tl_status attach(tl_executable *x, tl_diag *diag)
{
    if (TL_ARENA_GUARD(x->arena))
        return tl_fail(diag, TL_NO_MEMORY, "executable: out of memory");
    x->device_kernels = TL_NEW_ARRAY(x->arena, tl_device_kernel *, x->spec.kernel_count);
    x->device_data = TL_NEW_ARRAY(x->arena, void *, x->spec.value_count);
    TL_TRY(load_kernels(x, diag));
    TL_TRY(upload(x, diag));
    return tl_executable_is_prepared(x) ? tl_executable_upload_prepared(x, diag) : TL_OK;
}

tl_status tl_executable_attach(tl_executable *x, tl_device *device, tl_diag *diag)
{
    assert(x->device == NULL);
    if (x->spec.device == NULL || tl_device_type_named(x->spec.device) != device->type)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s is compiled for %s, not for a device of type %s",
                       x->spec.model, x->spec.device != NULL ? x->spec.device : "the CPU",
                       device->type->name);
    x->device = device;
    tl_status status = attach(x, diag);
    if (status != TL_OK) {
        tl_context(diag, "putting %s on %s", x->spec.model, device->facts.name);
        tl_executable_detach(x);
    }
    return status;
}

void tl_executable_detach(tl_executable *x)
{
    if (x->device == NULL)
        return;
    const tl_device_type *type = x->device->type;
    for (int i = 0; x->device_kernels != NULL && i < x->spec.kernel_count; i++)
        type->unload(x->device_kernels[i]);
    type->release(x->device, x->device_constants);
    type->release(x->device, x->device_prepared);
    x->device_kernels = NULL;
    x->device_data = NULL;
    x->device_constants = x->device_prepared = NULL;
    x->device = NULL;
}

tl_device *tl_executable_device(const tl_executable *x)
{
    return x->device;
}

const tl_descriptor *tl_executable_loaded(const tl_executable *x, int kernel)
{
    return x->device_kernels != NULL && x->device_kernels[kernel] != NULL
               ? &x->device_kernels[kernel]->descriptor
               : &x->kernels[kernel].descriptor;
}
