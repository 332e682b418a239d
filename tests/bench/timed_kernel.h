/* tests/bench/timed_kernel.h: a scheduled program compiled, called again and again, its best time kept. */
#ifndef TL_TESTS_TIMED_KERNEL_H
#define TL_TESTS_TIMED_KERNEL_H
#include "codegen/codegen.h"
#include "runtime/device/pool.h"

enum { TIMED_BUFFERS = 32 };

/* What all kernels of a benchmark share. */
typedef struct {
    tl_target target;
    tl_pool *pool;
    tl_jit *jit;
    int threads;
} timed_machine;

/* A kernel compiled, with all that it is called with. */
typedef struct {
    const tl_program *program;
    tl_jit_kernel *body;
    tl_descriptor descriptor;
    void *buffers[TIMED_BUFFERS];
    int first_prepared, buffer_count;
    void *scratch, *thread_scratch;
    tl_kernel_args args;
    double best_ns;
} timed_kernel;

/* A benchmark ends at the first error: prints the sentence and exits. */
void timed_must(tl_status status, const tl_diag *diag);
/* Bytes from malloc, on a cache line. */
void *timed_alloc(int64_t bytes);

/* `target` NULL: this machine. With one thread the caller stays on one core. */
void timed_machine_make(const char *target, int threads, timed_machine *out);
void timed_machine_free(timed_machine *m);

/* Compiles what was scheduled and prepares its constants; `arguments` has the data of each param. */
void timed_kernel_make(timed_machine *m, tl_arena *arena, const tl_program *program,
                       void *const *arguments, timed_kernel *out);
void timed_kernel_run(timed_machine *m, timed_kernel *k);
/* Runs it for about `seconds`. */
void timed_kernel_slice(timed_machine *m, timed_kernel *k, double seconds);
void timed_kernel_free(timed_kernel *k);

#endif
