/* runtime/cuda/cuda_queue.c: queues are streams: copies, waiting, events, and graphs of what was put into one. */
#include <stdlib.h>
#include "runtime/cuda/cuda_private.h"

typedef struct {
    tl_device_event base;
    cu_event event;
} cuda_event;

typedef struct {
    tl_device_graph base;
    cu_graph graph;
    cu_graph_exec exec;
} cuda_graph;

static cu_stream stream_of(const tl_queue *queue)
{
    return ((const cuda_queue *)queue)->stream;
}

static cu_address address_of(const void *address)
{
    return (cu_address)(uintptr_t)address;
}

tl_status tl_cuda_make_queue(tl_device *device, void *stream, tl_queue **out, tl_diag *diag)
{
    cuda_device *d = (cuda_device *)device;
    cuda_queue *q = calloc(1, sizeof *q);
    cu_context before;
    tl_status status;

    if (q == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "cuda: out of memory");
    q->base.device = device;
    q->stream = stream;
    q->is_ours = stream == NULL;
    status = tl_cuda_enter(d, &before, diag);
    if (status == TL_OK)
        status =
            tl_cuda_leave(d, before,
                          q->is_ours ? d->driver->stream_create(&q->stream, CU_STREAM_NON_BLOCKING)
                                     : CU_SUCCESS,
                          "cuStreamCreate", diag);
    if (status != TL_OK) {
        free(q);
        return status;
    }
    *out = &q->base;
    return TL_OK;
}

void tl_cuda_drop_queue(tl_queue *queue)
{
    cuda_queue *q = (cuda_queue *)queue;
    cu_context before;

    if (q == NULL)
        return;
    cuda_device *d = tl_cuda_device_of(queue);
    if (tl_cuda_enter(d, &before, NULL) == TL_OK) {
        cu_result result = d->driver->stream_wait(q->stream);
        if (q->is_ours)
            d->driver->stream_destroy(q->stream);
        tl_cuda_leave(d, before, result, "cuStreamSynchronize", NULL);
    }
    free(q);
}

/* What every call on a queue's stream is: in our context, with its result as a status. */
#define CALL(queue, field, symbol, ...)                                                         \
    do {                                                                                        \
        cuda_device *call_device = tl_cuda_device_of(queue);                                    \
        cu_context call_before;                                                                 \
        TL_TRY(tl_cuda_enter(call_device, &call_before, diag));                                 \
        return tl_cuda_leave(call_device, call_before, call_device->driver->field(__VA_ARGS__), \
                             symbol, diag);                                                     \
    } while (0)

tl_status tl_cuda_copy_in(tl_queue *queue, void *to, const void *host, int64_t size, tl_diag *diag)
{
    if (size == 0)
        return TL_OK;
    CALL(queue, copy_in, "cuMemcpyHtoDAsync", address_of(to), host, (size_t)size, stream_of(queue));
}

tl_status tl_cuda_copy_out(tl_queue *queue, void *host, const void *from, int64_t size,
                           tl_diag *diag)
{
    if (size == 0)
        return TL_OK;
    CALL(queue, copy_out, "cuMemcpyDtoHAsync", host, address_of(from), (size_t)size,
         stream_of(queue));
}

tl_status tl_cuda_copy_within(tl_queue *queue, void *to, const void *from, int64_t size,
                              tl_diag *diag)
{
    if (size == 0)
        return TL_OK;
    CALL(queue, copy_within, "cuMemcpyDtoDAsync", address_of(to), address_of(from), (size_t)size,
         stream_of(queue));
}

tl_status tl_cuda_fill(tl_queue *queue, void *to, unsigned char byte, int64_t size, tl_diag *diag)
{
    if (size == 0)
        return TL_OK;
    CALL(queue, fill, "cuMemsetD8Async", address_of(to), byte, (size_t)size, stream_of(queue));
}

tl_status tl_cuda_wait(tl_queue *queue, tl_diag *diag)
{
    CALL(queue, stream_wait, "cuStreamSynchronize", stream_of(queue));
}

tl_status tl_cuda_make_event(tl_device *device, tl_device_event **out, tl_diag *diag)
{
    cuda_device *d = (cuda_device *)device;
    cuda_event *e = calloc(1, sizeof *e);
    cu_context before;

    if (e == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "cuda: out of memory");
    e->base.device = device;
    tl_status status = tl_cuda_enter(d, &before, diag);
    if (status == TL_OK)
        status =
            tl_cuda_leave(d, before, d->driver->event_create(&e->event, 0), "cuEventCreate", diag);
    if (status != TL_OK) {
        free(e);
        return status;
    }
    *out = &e->base;
    return TL_OK;
}

void tl_cuda_drop_event(tl_device_event *event)
{
    cuda_event *e = (cuda_event *)event;
    cu_context before;

    if (e == NULL)
        return;
    cuda_device *d = (cuda_device *)e->base.device;
    if (tl_cuda_enter(d, &before, NULL) == TL_OK)
        tl_cuda_leave(d, before, d->driver->event_destroy(e->event), "cuEventDestroy", NULL);
    free(e);
}

tl_status tl_cuda_record(tl_queue *queue, tl_device_event *event, tl_diag *diag)
{
    CALL(queue, event_record, "cuEventRecord", ((cuda_event *)event)->event, stream_of(queue));
}

tl_status tl_cuda_elapsed(const tl_device_event *first, const tl_device_event *last, double *ns,
                          tl_diag *diag)
{
    cuda_device *d = (cuda_device *)first->device;
    cu_context before;
    float ms = 0;

    TL_TRY(tl_cuda_enter(d, &before, diag));
    cu_result result = d->driver->event_elapsed(&ms, ((const cuda_event *)first)->event,
                                                ((const cuda_event *)last)->event);
    *ns = (double)ms * 1e6;
    return tl_cuda_leave(d, before, result, "cuEventElapsedTime", diag);
}

tl_status tl_cuda_begin_graph(tl_queue *queue, tl_diag *diag)
{
    if (!queue->device->facts.has_graphs)
        return tl_fail(diag, TL_UNSUPPORTED, "the driver of %s has no graphs",
                       queue->device->facts.name);
    CALL(queue, capture_begin, "cuStreamBeginCapture", stream_of(queue), CU_CAPTURE_THREAD_LOCAL);
}

tl_status tl_cuda_end_graph(tl_queue *queue, tl_device_graph **out, tl_diag *diag)
{
    cuda_device *d = tl_cuda_device_of(queue);
    cuda_graph *g = calloc(1, sizeof *g);
    cu_graph graph = NULL;
    cu_context before;

    tl_status status = tl_cuda_enter(d, &before, diag);
    if (status != TL_OK) {
        free(g);
        return status;
    }
    const char *call = "cuStreamEndCapture";
    cu_result result = d->driver->capture_end(stream_of(queue), &graph);
    if (result == CU_SUCCESS && g != NULL) {
        g->base.device = queue->device;
        g->graph = graph;
        call = "cuGraphInstantiateWithFlags";
        result = d->driver->graph_instantiate(&g->exec, graph, 0);
    }
    if (graph != NULL && (g == NULL || result != CU_SUCCESS)) {
        d->driver->graph_destroy(graph);
    }
    status = tl_cuda_leave(d, before, result, call, diag);
    if (status == TL_OK && g == NULL)
        status = tl_fail(diag, TL_NO_MEMORY, "cuda: out of memory");
    if (status != TL_OK) {
        free(g);
        return status;
    }
    *out = &g->base;
    return TL_OK;
}

tl_status tl_cuda_run_graph(tl_queue *queue, tl_device_graph *graph, tl_diag *diag)
{
    CALL(queue, graph_launch, "cuGraphLaunch", ((cuda_graph *)graph)->exec, stream_of(queue));
}

void tl_cuda_drop_graph(tl_device_graph *graph)
{
    cuda_graph *g = (cuda_graph *)graph;
    cu_context before;

    if (g == NULL)
        return;
    cuda_device *d = (cuda_device *)g->base.device;
    if (tl_cuda_enter(d, &before, NULL) == TL_OK) {
        d->driver->graph_exec_destroy(g->exec);
        tl_cuda_leave(d, before, d->driver->graph_destroy(g->graph), "cuGraphDestroy", NULL);
    }
    free(g);
}
