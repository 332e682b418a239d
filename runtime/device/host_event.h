/* runtime/device/host_event.h: the events of a device that has done what is put into a queue before the call returns: the
 * host's clock. Callbacks for the row of its tl_device_type (device.h). */
#ifndef TL_RUNTIME_DEVICE_HOST_EVENT_H
#define TL_RUNTIME_DEVICE_HOST_EVENT_H
#include "runtime/device/device.h"

tl_status tl_host_event_make(tl_device *device, tl_device_event **out, tl_diag *diag);
void tl_host_event_drop(tl_device_event *event);
tl_status tl_host_event_record(tl_queue *queue, tl_device_event *event, tl_diag *diag);
tl_status tl_host_event_elapsed(const tl_device_event *first, const tl_device_event *last,
                                double *ns, tl_diag *diag);

#endif
