/* codegen/emulate/emulate.h: runs kernels of a GPU on this CPU: the very LLVM module that NVPTX would get.
 *
 * Every function that only a GPU has (llvm.nvvm.*, dev_*: device_calls.def) is given a body that calls into C, every
 * access of memory that others see is checked, and the module is compiled for this machine. Each thread of a GPU block
 * is a fiber; barriers and what a warp does together are places where fibers meet. It is slow, and it is strict: what a
 * GPU would do by chance is a mistake here, which ends the launch with a sentence that names kernel, block and thread:
 *
 *   - an access outside of the buffers given, of shared memory, or not aligned as it says
 *   - a race on shared memory that no barrier, mbarrier or bar.warp.sync orders
 *   - shared memory read while an asynchronous copy still fills it, or written while one still reads it
 *   - threads of a warp or warpgroup that do different things where they must do one, arrivals too many, deadlock
 *
 * Not checked: races on global memory, the order in which other blocks see it. Results do not depend on how many threads
 * of the CPU work, but for atomic sums of floats. */
#ifndef TL_CODEGEN_EMULATE_EMULATE_H
#define TL_CODEGEN_EMULATE_EMULATE_H
#include "codegen/codegen.h"

typedef struct tl_emulated
    tl_emulated; /* a module, ready to run; several threads may launch its kernels at once */

/* `host` is this machine's target, `ir` the text of the module. */
tl_status tl_emulated_load(const tl_target *host, const char *ir, size_t size, tl_emulated **out,
                           tl_diag *diag);
void tl_emulated_unload(tl_emulated *module);

/* Kernels of the module, in its order; -1 and NULL: there is none. */
int tl_emulated_find(const tl_emulated *module, const char *kernel);
const char *tl_emulated_name(const tl_emulated *module, int kernel);

/* Memory of the device that the kernel may use. */
typedef struct {
    const void *base;
    int64_t bytes;
    bool writable;
} tl_emulated_buffer;

typedef struct {
    int grid[3], block[3];
    int cluster[3];       /* blocks that share; zeros count as ones */
    int64_t shared_bytes; /* dynamic shared memory */
    /* As for cuLaunchKernel: each points at a value of the size of the kernel's parameter. */
    void *const *arguments;
    int argument_count;
    const tl_emulated_buffer *buffers;
    int buffer_count;
    int cpu_threads;   /* that blocks are spread over; 0: as many as there are cores, at most 16 */
    int64_t max_steps; /* accesses and calls of one thread before TL_BUDGET; 0: 2^32 */
} tl_emulated_launch;

tl_status tl_emulated_run(tl_emulated *module, int kernel, const tl_emulated_launch *launch,
                          tl_diag *diag);

/* What stands in the 128 bytes of a CUtensorMap here; a driver's are its own secret. Axis 0 is the contiguous one. */
enum { TL_TENSOR_MAP_MAGIC = 0x74656e73, TL_TENSOR_MAP_AXES = 5 };
typedef struct {
    uint32_t magic;
    uint8_t rank, element_bytes;
    uint8_t swizzle_bytes; /* 0, 32, 64, 128 */
    uint8_t fills_nan;     /* elements outside are NaN, not zero */
    void *base;
    uint64_t extents[TL_TENSOR_MAP_AXES];
    uint64_t strides[TL_TENSOR_MAP_AXES - 1]; /* bytes, of axes 1.. */
    uint16_t box[TL_TENSOR_MAP_AXES];         /* elements, 1..256 */
} tl_emulated_map;

#endif
