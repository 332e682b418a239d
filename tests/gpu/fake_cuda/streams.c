/* tests/gpu/fake_cuda/streams.c: streams, the copies and fills that are put into them, and events. */
#include "tests/gpu/fake_cuda/fake_private.h"
#include <stdlib.h>
#include <string.h>

EXPORT(cuStreamCreate, (cu_stream * out, unsigned flags))
{
    (void)flags;
    BEGIN
    *out = fake_make(sizeof **out);
    END;
}

EXPORT(cuStreamDestroy_v2, (cu_stream s))
{
    BEGIN
    result = fake_run(s);
    fake_drop(s);
    END;
}

EXPORT(cuStreamSynchronize, (cu_stream s))
{
    BEGIN
    result = s->is_capturing ? CAPTURE_UNSUPPORTED : fake_run(s);
    END;
}

/* Of memory that the system may move, a copy has read its source before the call returns, and has written its target. */
EXPORT(cuMemcpyHtoDAsync_v2, (cu_address to, const void *from, size_t size, cu_stream s))
{
    BEGIN
    fake_operation o = { .kind = COPY, .to = to, .from = (uintptr_t)from, .size = size };
    fake.count.copies_in++;
    if (fake_reach(to, size) == NULL || fake_is_device((uintptr_t)from)) {
        result = INVALID_VALUE;
        goto end;
    }
    if (!fake_is_pinned(from)) {
        if (s->is_capturing) {
            result = CAPTURE_UNSUPPORTED;
            goto end;
        }
        o.snapshot = malloc(size + 1);
        memcpy(o.snapshot, from, size);
    }
    fake_add(&s->work, o);
    END;
}

EXPORT(cuMemcpyDtoHAsync_v2, (void *to, cu_address from, size_t size, cu_stream s))
{
    BEGIN
    fake.count.copies_out++;
    if (fake_reach(from, size) == NULL || fake_is_device((uintptr_t)to)) {
        result = INVALID_VALUE;
        goto end;
    }
    if (s->is_capturing && !fake_is_pinned(to)) {
        result = CAPTURE_UNSUPPORTED;
        goto end;
    }
    fake_add(&s->work,
             (fake_operation){ .kind = COPY, .to = (uintptr_t)to, .from = from, .size = size });
    if (!fake_is_pinned(to))
        result = fake_run(s);
    END;
}

EXPORT(cuMemcpyDtoDAsync_v2, (cu_address to, cu_address from, size_t size, cu_stream s))
{
    BEGIN
    if (fake_reach(from, size) == NULL || fake_reach(to, size) == NULL)
        result = INVALID_VALUE;
    else
        fake_add(&s->work, (fake_operation){ .kind = COPY, .to = to, .from = from, .size = size });
    END;
}

EXPORT(cuMemsetD8Async, (cu_address to, unsigned char byte, size_t size, cu_stream s))
{
    BEGIN
    if (fake_reach(to, size) == NULL)
        result = INVALID_VALUE;
    else
        fake_add(&s->work, (fake_operation){ .kind = FILL, .to = to, .byte = byte, .size = size });
    END;
}

EXPORT(cuEventCreate, (cu_event * out, unsigned flags))
{
    (void)flags;
    BEGIN
    *out = fake_make(sizeof **out);
    END;
}

EXPORT(cuEventDestroy_v2, (cu_event event))
{
    BEGIN
    fake_drop(event);
    END;
}

EXPORT(cuEventRecord, (cu_event event, cu_stream s))
{
    BEGIN
    event->is_recorded = false;
    fake_add(&s->work, (fake_operation){ .kind = RECORD, .event = event });
    END;
}

EXPORT(cuEventElapsedTime, (float *ms, cu_event first, cu_event last))
{
    BEGIN
    if (!first->is_recorded || !last->is_recorded)
        result = CU_NOT_READY;
    *ms = (float)((last->ns - first->ns) * 1e-6);
    END;
}
