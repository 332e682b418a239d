/* runtime/device/device.h: a piece of hardware that runs kernels, as a table of functions.
 *
 *     tl_device_open("cuda:1") -> device --queue--> copy in, launch, launch, copy out, wait
 *                                    | load: code that its queues launch
 *
 * Rows of the table are in devices.def: the CPU, and NVIDIA GPUs by their driver (runtime/cuda). An address of a device's
 * memory is a `void *` that only the device may follow. What is put into a queue happens in order, some time before `wait`
 * returns; queues of one device know nothing of each other. A device serves any number of threads, a queue one at a time.
 *
 * Every failure is a status: TL_DEVICE when the device or its driver failed, TL_NO_MEMORY when the device has no more. A
 * device may be lost (an illegal address, a hardware error): from then on everything that it is asked fails with the first
 * sentence, for nothing that lay on it can be trusted, and only another process can use it again. */
#ifndef TL_RUNTIME_DEVICE_DEVICE_H
#define TL_RUNTIME_DEVICE_DEVICE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "runtime/abi/descriptor.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/base/status.h"
#include "runtime/base/text.h"

typedef struct tl_device_type tl_device_type;

/* What is known of a device without asking it anything more. */
typedef struct {
    char name[96];   /* "NVIDIA H200" */
    char arch[16];   /* what code has to be for: "sm_90" */
    char driver[64]; /* "CUDA 12.8", "" when there is none */
    char fingerprint
        [80];    /* the same for devices on which the same code is as fast: times belong to it */
    char id[40]; /* of this one device, "" when it has none */
    int number;  /* among those of its type */
    int multiprocessors, threads_sm, blocks_sm, registers_sm;
    int64_t memory_bytes, l2_bytes, shared_block, shared_sm;
    int clock_mhz, memory_mhz, memory_bits; /* 0: not known */
    double f32_gflops, memory_gbs;          /* that its clocks allow; 0: not known */
    bool has_graphs, has_clusters, has_tensor_maps;
} tl_device_facts;

/* The first members of every device, queue and so on; each type has more. */
typedef struct tl_device {
    const tl_device_type *type;
    tl_device_facts facts;
} tl_device;
typedef struct tl_queue {
    tl_device *device;
} tl_queue;
typedef struct tl_device_kernel {
    tl_device *device;
    tl_descriptor descriptor; /* with what the device knows of registers and spills; its own copy */
} tl_device_kernel;
typedef struct tl_device_event {
    tl_device *device;
} tl_device_event;
typedef struct tl_device_graph {
    tl_device *device;
} tl_device_graph;

struct tl_device_type {
    const char *name;  /* "cuda" */
    tl_code_form form; /* of the code that compilers make for it */
    bool is_emulated;  /* its times are this machine's, and say nothing of such a device */
    /* How many there are. TL_DEVICE says why there is none: no driver, none that it knows, too old a driver. */
    tl_status (*count)(int *out, tl_diag *diag);
    tl_status (*open)(int number, tl_device **out, tl_diag *diag);
    void (*close)(tl_device *device); /* after all that is its */
    /* TL_DEVICE with the sentence of the failure when it is lost; else TL_OK. */
    tl_status (*check)(tl_device *device, tl_diag *diag);
    tl_status (*memory)(tl_device *device, int64_t *free_bytes, int64_t *total_bytes,
                        tl_diag *diag);

    /* Aligned to 256 bytes. Released memory may be kept for the next that asks. */
    tl_status (*allocate)(tl_device *device, int64_t size, void **out, tl_diag *diag);
    void (*release)(tl_device *device, void *address); /* no queue uses it; NULL is fine */
    /* Memory of the host that copies reach without a detour. */
    tl_status (*allocate_host)(tl_device *device, int64_t size, void **out, tl_diag *diag);
    void (*release_host)(tl_device *device, void *address);

    /* What the device's own compiler makes of code in a text form (PTX), to be kept: load takes it in its place, as
     * TL_FORM_CUBIN, on this generation of devices. NULL: code is what it will be. */
    tl_status (*compile)(tl_device *device, const tl_descriptor *descriptor, const void *code,
                         size_t size, tl_text *out, tl_diag *diag);
    /* The code of a kernel in one of the forms that the device runs. TL_UNSUPPORTED: it is for another device, or
     * the driver does not take it, with what it says; TL_BAD_ARGUMENT: it lacks what the descriptor names. */
    tl_status (*load)(tl_device *device, const tl_descriptor *descriptor, const void *code,
                      size_t size, tl_device_kernel **out, tl_diag *diag);
    void (*unload)(tl_device_kernel *kernel); /* NULL is fine */

    /* `stream`: the caller's own of the driver (a CUstream), which then lives as long as the queue; NULL: a new one. */
    tl_status (*make_queue)(tl_device *device, void *stream, tl_queue **out, tl_diag *diag);
    void (*drop_queue)(tl_queue *queue); /* waits; NULL is fine */
    tl_status (*copy_in)(tl_queue *queue, void *to, const void *host, int64_t size, tl_diag *diag);
    tl_status (*copy_out)(tl_queue *queue, void *host, const void *from, int64_t size,
                          tl_diag *diag);
    tl_status (*copy_within)(tl_queue *queue, void *to, const void *from, int64_t size,
                             tl_diag *diag);
    tl_status (*fill)(tl_queue *queue, void *to, unsigned char byte, int64_t size, tl_diag *diag);
    /* One phase. `args` is read before the call returns; its pointers are the device's. */
    tl_status (*launch)(tl_queue *queue, const tl_device_kernel *kernel, int phase,
                        const tl_kernel_args *args, tl_diag *diag);
    tl_status (*wait)(tl_queue *queue, tl_diag *diag);

    tl_status (*make_event)(tl_device *device, tl_device_event **out, tl_diag *diag);
    void (*drop_event)(tl_device_event *event);
    tl_status (*record)(tl_queue *queue, tl_device_event *event, tl_diag *diag);
    /* Of two that were recorded in a queue that was waited for. */
    tl_status (*elapsed)(const tl_device_event *first, const tl_device_event *last, double *ns,
                         tl_diag *diag);

    /* What is put into the queue between begin and end becomes a graph and does not happen; run_graph then puts all of it
     * into a queue at once. NULL where facts.has_graphs is false. */
    tl_status (*begin_graph)(tl_queue *queue, tl_diag *diag);
    tl_status (*end_graph)(tl_queue *queue, tl_device_graph **out, tl_diag *diag);
    tl_status (*run_graph)(tl_queue *queue, tl_device_graph *graph, tl_diag *diag);
    void (*drop_graph)(tl_device_graph *graph);
};

#define DEVICE(name, text) extern const tl_device_type tl_device_type_##name;
#include "runtime/device/devices.def"
#undef DEVICE

/* "cuda", "cuda:1", "cpu". TL_BAD_ARGUMENT: no such type; TL_DEVICE: no such device, and why. */
tl_status tl_device_open(const char *name, tl_device **out, tl_diag *diag);
void tl_device_close(tl_device *device); /* NULL is fine */
/* The rows, and the one of that name ("cuda" of "cuda:1"); NULL behind the last, and for none. */
const tl_device_type *tl_device_type_at(int index);
const tl_device_type *tl_device_type_named(const char *name);
/* One more row, for a kind of device that needs more than a runtime (codegen/emulate). It lives as long as the process. */
void tl_device_type_add(const tl_device_type *type);

#endif
