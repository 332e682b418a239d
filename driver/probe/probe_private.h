/* driver/probe/probe_private.h: what the parts of the probe share. */
#ifndef TL_DRIVER_PROBE_PROBE_PRIVATE_H
#define TL_DRIVER_PROBE_PROBE_PRIVATE_H
#include "driver/probe/probe.h"

/* A loop whose rounds all take the same. */
typedef void tl_probe_loop(int64_t rounds, void *memory);

/* driver/probe/probe_cycles.c. What a round takes, the best tenth of many short samples; 0: the clock does not say. */
typedef struct {
    double cycles, ns;
} tl_probe_time;
tl_probe_time tl_probe_loop_time(tl_probe_loop *loop, void *memory);
/* The same of a loop that is run for so many rounds at a time, neither more nor fewer. */
tl_probe_time tl_probe_rounds(tl_probe_loop *loop, int64_t rounds, void *memory);
double tl_probe_clock_ghz(void);

enum { TL_PROBE_LOOP_BYTES = 1 << 12 };
/* driver/probe/probe_loops.c. What a round of each does; memory of TL_PROBE_LOOP_BYTES is enough for
 * those that do not say otherwise. */
typedef struct {
    tl_probe_loop *multiply_add;   /* 24 that do not wait for each other */
    tl_probe_loop *multiply_chain; /* 8 that do */
    tl_probe_loop *add_chain;      /* 8 additions that do */
    tl_probe_loop *load, *store;   /* 16 of whole vectors, in L1 */
    tl_probe_loop *broadcast; /* 12 multiply-adds, each with an element of memory in all lanes */
    tl_probe_loop *divide;    /* 8 */
    /* Of the next four lines of 64 bytes from `memory` on: loads; the same and eight multiply-adds a line; the same and
     * prefetches of the lines eight further on. */
    tl_probe_loop *stream, *work, *work_ahead;
} tl_probe_loops;
/* False: this processor has no such instructions, or there are no loops for them. */
bool tl_probe_loops_of(tl_isa isa, tl_probe_loops *out);
/* Of any instruction set: 8 pairs of a store and the load that waits for it. */
tl_probe_loop tl_probe_forward;
/* A branch by the lowest bit of the next byte of `memory`. */
tl_probe_loop tl_probe_branch;
/* 8 steps, each to the address that lies where the one before led; the first from where `memory` points to, which is moved
 * on. */
tl_probe_loop tl_probe_chase;

/* driver/probe/probe_memory.c, probe_threads.c: fill their part of the profile, where they do better than what is there. */
tl_status tl_probe_memory(const tl_probe_options *o, const tl_probe_loops *loops, tl_machine *m,
                          tl_diag *diag);
tl_status tl_probe_threads(const tl_probe_options *o, tl_machine *m, tl_diag *diag);
/* driver/probe/probe_function.c. Cycles of a vector of exponentials as a kernel computes them; 0: not known. */
double tl_probe_exp(const tl_target *target);

/* The lower of what is there (0: nothing) and what was measured now (0 or less: nothing). */
void tl_probe_keep_least(double *value, double now);

#endif
