/* runtime/device/host_queue.c: queues that are done with what they get. */
#include "runtime/device/host_queue.h"
#include <stdlib.h>
#include <string.h>

tl_status tl_host_queue_make(tl_device *device, void *stream, const char *what, tl_queue **out,
                             tl_diag *diag)
{
    if (stream != NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s has no streams", what);
    *out = malloc(sizeof **out);
    if (*out == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", device->type->name);
    (*out)->device = device;
    return TL_OK;
}

void tl_host_queue_drop(tl_queue *queue)
{
    free(queue);
}

tl_status tl_host_copy(tl_queue *queue, void *to, const void *from, int64_t size, tl_diag *diag)
{
    (void)queue, (void)diag;
    if (size > 0)
        memmove(to, from, (size_t)size);
    return TL_OK;
}

tl_status tl_host_fill(tl_queue *queue, void *to, unsigned char byte, int64_t size, tl_diag *diag)
{
    (void)queue, (void)diag;
    if (size > 0)
        memset(to, byte, (size_t)size);
    return TL_OK;
}
