/* runtime/cuda/cuda_private.h: the driver as it was loaded, and what devices, queues and kernels of it hold. */
#ifndef TL_RUNTIME_CUDA_CUDA_PRIVATE_H
#define TL_RUNTIME_CUDA_CUDA_PRIVATE_H
#include <pthread.h>
#include <stdatomic.h>
#include "runtime/base/arena.h"
#include "runtime/cuda/cuda_abi.h"
#include "runtime/device/device.h"

typedef struct {
    void *library;
    int version, devices; /* 12080: CUDA 12.8 */
#define ENTRY(field, symbol, needed, arguments) cu_result(*field) arguments;
#include "runtime/cuda/cuda_driver.def"
#undef ENTRY
} cuda_driver;

/* runtime/cuda/cuda_driver.c: the driver, loaded and started by the first who asks, and kept while the process lives: it cannot
 * be started again in a child of it. TL_DEVICE says why there is none. */
tl_status tl_cuda_driver(const cuda_driver **out, tl_diag *diag);
/* "cuInit: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected". */
tl_status tl_cuda_failed(const cuda_driver *driver, cu_result result, const char *call,
                         tl_diag *diag);

typedef struct cuda_block cuda_block; /* runtime/cuda/cuda_memory.c */

typedef struct {
    tl_device base;
    const cuda_driver *driver;
    cu_device handle;
    cu_context context;
    int major, minor;
    pthread_mutex_t lock; /* of what follows */
    cuda_block *blocks;
    atomic_bool is_lost;
    tl_diag loss; /* the sentence with which it was lost; written once, before is_lost */
} cuda_device;

typedef struct {
    tl_queue base;
    cu_stream stream;
    bool is_ours;
} cuda_queue;

typedef struct {
    tl_device_kernel base;
    tl_arena *arena; /* of the descriptor and the functions */
    cu_module module;
    cu_function *functions; /* one a phase */
} cuda_kernel;

static inline cuda_device *tl_cuda_device_of(const tl_queue *queue)
{
    return (cuda_device *)queue->device;
}

/* runtime/cuda/cuda_context.c: TL_DEVICE, and why, of a device that is lost. */
tl_status tl_cuda_device_check(tl_device *device, tl_diag *diag);
/* Our context for the calling thread; what it had comes back with leave. Fails when the device is
 * lost. */
tl_status tl_cuda_enter(cuda_device *device, cu_context *before, tl_diag *diag);
/* Gives the thread its context back; the call's result as a status, which also notes a loss. */
tl_status tl_cuda_leave(cuda_device *device, cu_context before, cu_result result, const char *call,
                        tl_diag *diag);

/* runtime/cuda/cuda_memory.c */
tl_status tl_cuda_allocate(tl_device *device, int64_t size, void **out, tl_diag *diag);
void tl_cuda_release(tl_device *device, void *address);
tl_status tl_cuda_allocate_host(tl_device *device, int64_t size, void **out, tl_diag *diag);
void tl_cuda_release_host(tl_device *device, void *address);
void tl_cuda_free_blocks(cuda_device *device); /* all that is kept, whether it is used or not */

/* runtime/cuda/cuda_code.c */
tl_status tl_cuda_compile(tl_device *device, const tl_descriptor *descriptor, const void *code,
                          size_t size, tl_text *out, tl_diag *diag);
tl_status tl_cuda_load(tl_device *device, const tl_descriptor *descriptor, const void *code,
                       size_t size, tl_device_kernel **out, tl_diag *diag);
void tl_cuda_unload(tl_device_kernel *kernel);

/* runtime/cuda/cuda_queue.c */
tl_status tl_cuda_make_queue(tl_device *device, void *stream, tl_queue **out, tl_diag *diag);
void tl_cuda_drop_queue(tl_queue *queue);
tl_status tl_cuda_copy_in(tl_queue *queue, void *to, const void *host, int64_t size, tl_diag *diag);
tl_status tl_cuda_copy_out(tl_queue *queue, void *host, const void *from, int64_t size,
                           tl_diag *diag);
tl_status tl_cuda_copy_within(tl_queue *queue, void *to, const void *from, int64_t size,
                              tl_diag *diag);
tl_status tl_cuda_fill(tl_queue *queue, void *to, unsigned char byte, int64_t size, tl_diag *diag);
tl_status tl_cuda_wait(tl_queue *queue, tl_diag *diag);
tl_status tl_cuda_make_event(tl_device *device, tl_device_event **out, tl_diag *diag);
void tl_cuda_drop_event(tl_device_event *event);
tl_status tl_cuda_record(tl_queue *queue, tl_device_event *event, tl_diag *diag);
tl_status tl_cuda_elapsed(const tl_device_event *first, const tl_device_event *last, double *ns,
                          tl_diag *diag);
tl_status tl_cuda_begin_graph(tl_queue *queue, tl_diag *diag);
tl_status tl_cuda_end_graph(tl_queue *queue, tl_device_graph **out, tl_diag *diag);
tl_status tl_cuda_run_graph(tl_queue *queue, tl_device_graph *graph, tl_diag *diag);
void tl_cuda_drop_graph(tl_device_graph *graph);

/* runtime/cuda/cuda_launch.c */
tl_status tl_cuda_launch(tl_queue *queue, const tl_device_kernel *kernel, int phase,
                         const tl_kernel_args *args, tl_diag *diag);
/* Whether its parameters can be handed over at all. */
tl_status tl_cuda_check_parameters(const tl_descriptor *descriptor, tl_diag *diag);

#endif
