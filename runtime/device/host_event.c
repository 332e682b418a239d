/* runtime/device/host_event.c: events that are times of the host's clock. */
#include <stdlib.h>
#include "runtime/base/clock.h"
#include "runtime/device/host_event.h"

typedef struct {
    tl_device_event base;
    int64_t ns;
} host_event;

tl_status tl_host_event_make(tl_device *device, tl_device_event **out, tl_diag *diag)
{
    host_event *e = calloc(1, sizeof *e);
    if (e == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", device->type->name);
    e->base.device = device;
    *out = &e->base;
    return TL_OK;
}

void tl_host_event_drop(tl_device_event *event)
{
    free(event);
}

tl_status tl_host_event_record(tl_queue *queue, tl_device_event *event, tl_diag *diag)
{
    (void)queue, (void)diag;
    ((host_event *)event)->ns = tl_clock_ns();
    return TL_OK;
}

tl_status tl_host_event_elapsed(const tl_device_event *first, const tl_device_event *last,
                                double *ns, tl_diag *diag)
{
    (void)diag;
    *ns = (double)(((const host_event *)last)->ns - ((const host_event *)first)->ns);
    return TL_OK;
}
