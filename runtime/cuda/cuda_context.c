/* runtime/cuda/cuda_context.c: entering and leaving a device's context, and losing it.
 *
 * Some errors are the end of a context, whatever call reports them: those of addresses, time and hardware. The device is
 * then lost, and says so with the same sentence to all who ask. */
#include <stdio.h>
#include "runtime/cuda/cuda_private.h"

static bool ends_context(cu_result result)
{
    return result == CU_ILLEGAL_ADDRESS || result == CU_LAUNCH_TIMEOUT ||
           (result >= CU_HARDWARE_STACK_ERROR && result <= CU_LAUNCH_FAILED);
}

static void note_loss(cuda_device *d, cu_result result, const char *call)
{
    pthread_mutex_lock(&d->lock);
    if (!atomic_load(&d->is_lost)) {
        tl_diag why = { 0 };
        tl_cuda_failed(d->driver, result, call, &why);
        snprintf(d->loss.text, sizeof d->loss.text,
                 "%s is lost until another process opens it: %.700s", d->base.facts.name, why.text);
        atomic_store(&d->is_lost, true);
    }
    pthread_mutex_unlock(&d->lock);
}

tl_status tl_cuda_device_check(tl_device *device, tl_diag *diag)
{
    const cuda_device *d = (const cuda_device *)device;
    return atomic_load(&d->is_lost) ? tl_fail(diag, TL_DEVICE, "%s", d->loss.text) : TL_OK;
}

tl_status tl_cuda_enter(cuda_device *d, cu_context *before, tl_diag *diag)
{
    TL_TRY(tl_cuda_device_check(&d->base, diag));
    *before = NULL;
    cu_result result = d->driver->context_get(before);
    if (result == CU_SUCCESS && *before != d->context)
        result = d->driver->context_set(d->context);
    return result == CU_SUCCESS ? TL_OK
                                : tl_cuda_failed(d->driver, result, "cuCtxSetCurrent", diag);
}

tl_status tl_cuda_leave(cuda_device *d, cu_context before, cu_result result, const char *call,
                        tl_diag *diag)
{
    if (ends_context(result))
        note_loss(d, result, call);
    if (before != d->context)
        d->driver->context_set(before);
    TL_TRY(tl_cuda_device_check(&d->base, diag));
    return result == CU_SUCCESS ? TL_OK : tl_cuda_failed(d->driver, result, call, diag);
}
