/* runtime/device/host_queue.h: the queues of a device that is this process itself: what is put into one is done before the call
 * returns. For the callbacks of its tl_device_type (device.h), behind whatever the device checks first. */
#ifndef TL_RUNTIME_DEVICE_HOST_QUEUE_H
#define TL_RUNTIME_DEVICE_HOST_QUEUE_H
#include "runtime/device/device.h"

/* `what`: the device in a sentence, "a CPU". TL_BAD_ARGUMENT: a stream; there are none. */
tl_status tl_host_queue_make(tl_device *device, void *stream, const char *what, tl_queue **out,
                             tl_diag *diag);
void tl_host_queue_drop(tl_queue *queue);
/* Nothing when size is not positive. */
tl_status tl_host_copy(tl_queue *queue, void *to, const void *from, int64_t size, tl_diag *diag);
tl_status tl_host_fill(tl_queue *queue, void *to, unsigned char byte, int64_t size, tl_diag *diag);

#endif
