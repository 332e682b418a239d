/* runtime/abi/kernel_abi.h: what compiled code and its caller agree on (ARCHITECTURE.md section 4).
 *
 * A kernel is a list of phases with a barrier between two. A phase runs iterations begin..end-1
 * of its parallel loop on the calling thread; phases without a parallel loop have one iteration.
 * The compiled object defines, for kernel NAME: NAME_0, NAME_1, ... (tl_phase_fn), and, when
 * something depends on dims, NAME_sizes (tl_sizes_fn). It allocates nothing and refers to
 * nothing outside but memcpy, memset and memmove.
 *
 * Include nothing here: codegen and libtilth_rt share it. */
#ifndef TL_RUNTIME_ABI_KERNEL_ABI_H
#define TL_RUNTIME_ABI_KERNEL_ABI_H
#include <stdint.h>

typedef struct {
    void *const *buffers;          /* params in order, then prepared buffers in order */
    const int64_t *dims;           /* in the program's order */
    unsigned char *scratch;        /* shared by all threads, 64-byte aligned */
    unsigned char *thread_scratch; /* thread t has thread_scratch + t*thread_scratch_stride */
    int64_t thread_scratch_stride;
} tl_kernel_args;

typedef void tl_phase_fn(const tl_kernel_args *args, int64_t begin, int64_t end, int thread);
/* Fills extents[phases], *scratch and *thread_scratch (bytes) for given dims. */
typedef void tl_sizes_fn(const int64_t *dims, int64_t *extents, int64_t *scratch,
                         int64_t *thread_scratch);

#endif
