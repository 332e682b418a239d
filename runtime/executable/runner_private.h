/* runtime/executable/runner_private.h: a runner, for the files that make it (runner.c) and walk its steps (runner_walk.c). */
#ifndef TL_RUNTIME_EXECUTABLE_RUNNER_PRIVATE_H
#define TL_RUNTIME_EXECUTABLE_RUNNER_PRIVATE_H
#include "runtime/executable/device_run.h"
#include "runtime/executable/executable_private.h"
#include "runtime/executable/regions.h"

/* One phase of one step. */
typedef struct {
    tl_phase_fn *fn;
    const tl_kernel_args *args;
    int64_t extent;
    bool meet; /* all threads wait for each other afterwards */
    /* How it is shared out while it runs: in pieces of so many iterations; 0: each thread has its part (tl_runner.ranges). */
    int64_t piece;
    double least_ns; /* that an iteration was seen to take; 0: not seen yet */
} tl_phase_call;

/* A place in `slots` that gets the caller's pointer for a port. */
typedef struct {
    void **slot;
    int port;
    int64_t offset; /* of a window */
} tl_port_patch;

/* What the kernels say of themselves, for the dims of each step. */
typedef struct {
    int64_t *extents;                  /* of all phases, in the order of the calls */
    int64_t *scratch, *thread_scratch; /* one a step */
    /* two a step that is no kernel: bytes of what it copies, how many such the whole has */
    int64_t *own;
} tl_step_sizes;

/* How far a loop or a choice is: thread 0 of the team writes, between two meetings of all. */
typedef struct {
    int64_t turn,
        most;     /* its number; of a loop: how many it may take for the dims that the runner has */
    bool goes_on; /* into another turn; of a choice: into its first branch */
} tl_turns;

struct tl_runner {
    /* of an executable for a device: has all that follows `threads` in its own way; else NULL */
    tl_device_run *device;
    const tl_executable *executable;
    const tl_executable_step *steps;
    int step_count;
    bool is_whole; /* these are the executable's steps, not the prepare steps */
    tl_pool *pool;
    int threads;
    tl_arena *arena;      /* of this structure's lists */
    tl_kernel_args *args; /* one a step */
    void **slots;         /* the buffers of all steps, one after another */
    int *first_slot;      /* one a step */
    int *first_call;      /* one a step, and the end */
    tl_phase_call *calls;
    tl_part *ranges; /* call c, thread t: [c*threads + t] */
    tl_port_patch *inputs, *outputs;
    int input_patches, output_patches;
    /* the values that have the storage of what the steps use, in order: a runner of one step costs nothing for the
     * executable's others */
    int *storages;
    int storage_count;
    /* one a storage: an aligned copy of a constant for the prepare steps, or NULL */
    void **copies;
    int64_t dims[TL_MOST_DIMS];
    tl_step_sizes sizes;
    tl_plan_buffer *buffers; /* of the plan: one a storage, then two a step */
    unsigned char *memory;   /* what the plan places */
    int64_t memory_size;
    tl_plan_sizes plan;
    atomic_flag busy;
    unsigned runs; /* so far */
    int *owner; /* one a step: the loop or choice that owns it, -1: none; NULL: there is neither */
    tl_turns *turns; /* one a step: of loops and choices */
    int stopped;     /* the loop that would have taken more turns than it may; -1: none */
    /* output o, axis a: where its extent is found, [o*TL_TENSOR_MAX_RANK + a]; NULL: it is the port's */
    int64_t **counts;
    int64_t *shapes; /* of outputs after the latest run, as `counts`; NULL: no extent is computed */
};

#endif
