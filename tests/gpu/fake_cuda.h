/* tests/gpu/fake_cuda.h: a CUDA driver without a GPU, as a library with the entry points that the runtime uses
 * (build/VARIANT/tests/gpu/libcuda_fake.so; TILTH_CUDA_LIBRARY names it).
 *
 * What is put into a stream happens when it is waited for, in order; memory of the device is not the host's: its addresses
 * cannot be followed, and copies are checked against what was allocated. PTX is read as far as its version, its target and
 * its entries with their parameters go. Kernels are executed by functions of the same name that a test registers, or by an
 * executor that gets the PTX. What goes wrong is said by FAKE_CUDA, words with a comma between:
 *
 *     no-device  devices=2  version=10020  sm=80  memory=BYTES   what there is
 *     fail-init=803                                              cuInit fails with a number
 *     fail-alloc=N                                               the N-th allocation finds no memory (and all after it)
 *     fail-load=N                                                the N-th module (and all after it) does not compile, with a log
 *     lose-launch=N                                              the N-th launch that is executed is an illegal address
 *     wrong-launch=N                                             the N-th computes something else (and all after it)
 *     hang-launch=N                                              the N-th never ends
 *     slow-launch=MILLISECONDS                                   how long every launch takes by the events
 *     nothing                                                    kernels that nobody registered do nothing              */
#ifndef TL_TESTS_GPU_FAKE_CUDA_H
#define TL_TESTS_GPU_FAKE_CUDA_H
#include <stdbool.h>
#include <stddef.h>

typedef struct {
    void *base;
    size_t size;
} fake_buffer;

/* What a tensor map is here; it lies in the 128 bytes of a parameter. Axis 0 is the innermost. */
typedef struct {
    void *base;                                /* of host memory, when an executor sees it */
    int type, rank, swizzle;                   /* the driver's numbers */
    unsigned long long extents[5], strides[5]; /* strides of axes 1.. in bytes */
    unsigned short box[5];
} fake_map;

/* One launch as its executor sees it. Addresses among the parameters are those of host memory. */
typedef struct {
    const char *ptx;  /* of the module */
    const char *name; /* of the entry */
    unsigned grid[3], block[3], cluster[3], dynamic_shared;
    int parameter_count;
    void **parameters; /* each a pointer to its value */
    const size_t *sizes;
    /* All memory of the device that is allocated. */
    int buffer_count;
    const fake_buffer *buffers;
} fake_launch;
/* A cu_result: 0, or how it failed. */
typedef int fake_kernel(const fake_launch *launch);

/* All of these are found by dlsym. A kernel of that name (until another is registered); NULL executes what has no kernel. */
typedef void fake_cuda_register_fn(const char *name, fake_kernel *kernel);
/* Reads FAKE_CUDA again and forgets what was counted, lost and counted as leaked. */
typedef void fake_cuda_reset_fn(void);
/* What is not given back: allocations, modules, streams, events and graphs. */
typedef int fake_cuda_alive_fn(void);
/* Launches and graph launches since the reset. */
typedef void fake_cuda_counts_fn(int *launches, int *graph_launches, int *copies_in,
                                 int *copies_out);

#endif
