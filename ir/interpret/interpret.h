/* ir/interpret/interpret.h: executes any Program, scheduled or not: the oracle.
 *
 * Every access is checked: bounds, uninitialised reads, races between iterations of parallel, vectorized and
 * thread-bound loops (two iterations touch one element, one of them writes, without a barrier between them), barriers
 * that not every thread reaches, declared regions of opaque blocks. Threads of a GPU block advance
 * together from barrier to barrier. A violation is TL_BAD_IR and a sentence with the two accesses.
 *
 * What runs beside what: iterations of parallel, vectorized and blockIdx loops are concurrent; loops one after the
 * other are ordered, and so are phases. Lanes of a vectorized loop that drives a reduce iter combine and are no race.
 * A loop over threadIdx forks one thread an iteration; two such loops one after the other are the same threads, so that
 * only a barrier (or being the same thread) orders them; one inside another over the same axis is the same thread, which
 * runs only its own iteration. What stands outside of the threadIdx.x loop is done once by its threads together (a warp,
 * or the whole GPU block): it is ordered with each of them. A shared buffer is allocated outside of the thread loops, a
 * warp buffer outside of the threadIdx.x loop; every other alloc inside of a thread loop is one for each thread.
 *
 * Arithmetic is that of the dtypes (f32 rounds to f32 after each operation), functions are libm's; numbers below the
 * smallest normal one count as zero, as in kernels (runtime/base/float_mode.h). */
#ifndef TL_IR_INTERPRET_INTERPRET_H
#define TL_IR_INTERPRET_INTERPRET_H
#include "ir/program/program.h"

typedef struct {
    const tl_buffer *buffer;
    void *data; /* packed row-major (buffer strides do not apply), at any address; caller-owned */
} tl_argument;

typedef struct {
    bool check; /* false: plain execution, several times faster */
    /* what nothing has written may be read where it is checked: it is any number */
    bool reads_unwritten;
    bool skip_prepare;     /* PREPARED buffers are given as arguments */
    int64_t max_instances; /* statement instances before TL_BUDGET; 0: no limit */
} tl_interpret_options;

/* Arguments: every param (and PREPARED ones if skip_prepare); dim values in the order of program->dims.
 * NULL options: checked, no limit. */
tl_status tl_interpret(const tl_program *program, const tl_argument *arguments, int argument_count,
                       const int64_t *dims, const tl_interpret_options *options, tl_diag *diag);

/* Evaluates single elements of one output of a *naive* (unscheduled, every buffer written by one block) program by
 * demand, without computing the rest: for layers too large to interpret. points: count*rank indices. */
tl_status tl_interpret_points(const tl_program *program, const tl_argument *arguments,
                              int argument_count, const int64_t *dims, const tl_buffer *output,
                              const int64_t *points, int64_t count, tl_number *out, tl_diag *diag);

#endif
