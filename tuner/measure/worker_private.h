/* tuner/measure/worker_private.h: what the parts of a worker process share.
 *
 * A worker is a process of its own that forks a child for the jobs. The child inherits what the worker prepared; when a
 * job kills it, the worker says so and forks the next one, in about a millisecond. A job that takes too long is ended
 * by an alarm that kills its child.
 *
 *   builder    stateless: BUILD carries the program and the trace, BUILT the object
 *   runner     PREPARE: inputs, expected outputs (of the reference) in memory that jobs can only read; RUN: checks, times */
#ifndef TL_TUNER_MEASURE_WORKER_PRIVATE_H
#define TL_TUNER_MEASURE_WORKER_PRIVATE_H
#include "codegen/codegen.h"
#include "ir/program/program.h"
#include "ir/program/target.h"
#include "runtime/device/pool.h"
#include "tuner/measure/contest.h"
#include "tuner/measure/worker_message.h"
#include "tuner/measure/measure.h"
#include "tuner/measure/witness.h"

/* Exit status of a child whose device is lost. */
enum { TL_CHILD_LOST_DEVICE = 70 };

enum { TL_INPUT_SETS = 2, TL_MAX_PARAMS = 64, TL_MAX_LOWERINGS = 16 };

/* What the tuner tells a worker once. */
typedef struct {
    tl_target target;
    /* of the reference and of what packs constants: the target, but where that is a device's */
    tl_target host;
    char device[32]; /* where candidates run; "": on this CPU */
    int threads, repeats;
    bool in_gaps;           /* runs only while nobody else wants its core */
    int core;               /* processor to stay on; -1: any but `not_core` */
    int not_core;           /* -1: none */
    double limit_s;         /* for a job */
    int64_t memory_bytes;   /* for a child, beyond what it starts with */
    int64_t constant_bytes; /* of the whole model */
    uint64_t seed;
    bool verify;
} tl_worker_config;
void tl_worker_config_pack(const tl_worker_config *config, tl_text *out);
bool tl_worker_config_unpack(tl_unpacker *u, tl_worker_config *out);

/* A built candidate: what BUILT carries and RUN sends on. */
typedef struct {
    const void *object, *prepare_object;
    size_t object_size, prepare_size; /* prepare_size 0: no prepare part */
    const char *descriptor, *prepare_descriptor;
    int prepared_count;
    int64_t prepared_bytes[TL_MAX_PARAMS];
} tl_built;
void tl_built_pack(const tl_built *built, tl_text *out);
bool tl_built_unpack(tl_unpacker *u, tl_built *out); /* points into the body */

/* The builder's job: BUILD (whether it is a reference, program, trace or "") -> BUILT (status, reason, hash, nanoseconds,
 * built). */
void tl_worker_build(const tl_worker_config *config, const tl_worker_options *options,
                     const tl_text *body, tl_text *reply);

/* Memory for arrays between pages that cannot be touched: what runs over the end of one dies there. */
typedef struct {
    unsigned char *data; /* 64-byte aligned, ends at most 63 bytes before the guard */
    size_t size;
    void *base;
    size_t mapped;
} tl_guarded;
bool tl_guarded_create(size_t size, tl_guarded *out); /* zeroed; false: no memory */
/* Without pages around it, at the beginning of a huge page where the system has them, as a model's arrays are: its lines meet
 * in the same sets of L2 every time, while pages of 4096 bytes are anywhere, and the same program is some percent faster
 * or slower with each set of them. Zeroed; free it like the others. */
bool tl_huge_create(size_t size, tl_guarded *out);
void tl_guarded_free(tl_guarded *g);
void tl_guarded_protect(const tl_guarded *g); /* read-only from now on */
/* Which params a call reads, and which it writes. */
bool tl_param_is_read(const tl_buffer *param);
bool tl_param_is_written(const tl_buffer *param);

/* Copies of buffers through which calls rotate, so that each finds cold ones; count 0: not made yet. */
typedef struct {
    tl_guarded memory;
    int count, next;
    int64_t bytes;                 /* of one copy of all */
    int64_t offset[TL_MAX_PARAMS]; /* in a copy; -1: this buffer is not copied */
} tl_copies;

typedef struct tl_bench_device tl_bench_device; /* tuner/measure/run_device.h */
typedef struct tl_bench_kernel tl_bench_kernel;

/* A kernel that can be called, with its prepared buffers filled. */
typedef struct {
    /* of one that runs on a device; then `code` and what belongs to it is not there */
    tl_bench_kernel *bench;
    tl_arena *arena;                    /* of the descriptors */
    tl_jit_kernel *code, *prepare_code; /* linked as a model's kernels are */
    tl_descriptor descriptor, prepare_descriptor;
    int64_t *extents;
    tl_guarded scratch, thread_scratch; /* without a base: elsewhere */
    int64_t thread_stride;
    int prepared_count;
    tl_guarded prepared[TL_MAX_PARAMS];
    int calls;        /* in a sample */
    double best_ns;   /* least time seen lately; 0: none */
    tl_copies copies; /* of the prepared buffers, for cold runs */
} tl_runnable;
/* `bench`: the device that it runs on; NULL: the CPU. `consts[i]` is the place of param i (NULL where the kernel does not need
 * it to prepare). TL_NO_MEMORY: scratch or
 * prepared buffers beyond the limit. It is destroyed before the session is. */
tl_status tl_runnable_create(tl_jit *jit, tl_bench_device *bench, const tl_built *built,
                             const int64_t *dims, void *const *params, int param_count, int threads,
                             int64_t memory_bytes, tl_runnable **out, tl_diag *diag);
void tl_runnable_destroy(tl_runnable *r);
/* Its scratch is there from now on: so many bytes of the caller's. */
int64_t tl_runnable_scratch_bytes(const tl_runnable *r);
void tl_runnable_use_scratch(tl_runnable *r, unsigned char *data);
/* buffers: params, then prepared ones. */
void tl_runnable_call(const tl_runnable *r, tl_pool *pool, int threads, void *const *buffers,
                      const int64_t *dims);

/* A task as the runner keeps it. */
typedef struct {
    int id;
    int64_t bytes; /* of its memory */
    int64_t used;  /* when, for throwing out the least recently used */
    tl_arena *arena;
    tl_jit *jit;         /* of the reference and of candidates: children inherit it */
    tl_program *program; /* the reference */
    int lowering_count;
    double rtol[TL_MAX_LOWERINGS], ttol[TL_MAX_LOWERINGS];
    int64_t *dims;
    int64_t elements[TL_MAX_PARAMS], sizes[TL_MAX_PARAMS]; /* of the params, for these dims */
    tl_guarded inputs[TL_INPUT_SETS][TL_MAX_PARAMS];   /* constants: the same memory in all sets */
    tl_guarded expected[TL_INPUT_SETS][TL_MAX_PARAMS]; /* of outputs */
    double reference_ns;
} tl_run_task;
/* Reads a PREPARE body, makes inputs, runs the reference. NULL with a sentence: it cannot be had. */
tl_run_task *tl_run_task_create(const tl_worker_config *config, tl_unpacker *u, tl_diag *diag);
void tl_run_task_destroy(tl_run_task *task);

/* The state of a runner's child. */
typedef struct {
    const tl_worker_config *config;
    const tl_run_task *task;
    tl_pool *pool;
    tl_guarded outputs[TL_MAX_PARAMS]; /* of written params */
    void *buffers[TL_INPUT_SETS][2 * TL_MAX_PARAMS];
    tl_guarded scratch;     /* of all kernels that are timed */
    tl_cold cold;           /* as the first one was timed */
    tl_runnable *incumbent; /* NULL: none was right yet */
    double incumbent_score;
    double incumbent_ratio; /* its time over that of the first that was right */
    tl_bench_device *bench; /* NULL: candidates run on the CPU */
    tl_witness *witness;
    bool is_alone;       /* on the core, at the witness's last look */
    int64_t patience_ns; /* for solitude, of all that is left of this run of the tuner */
    tl_copies copies[TL_COLD_COUNT][2]; /* of params; [1]: for kernels that pack their constants */
} tl_run_state;
bool tl_run_state_create(const tl_worker_config *config, const tl_run_task *task,
                         tl_run_state *out);
/* Whether its device is lost, so that nothing more can run in this process. */
bool tl_run_is_lost(const tl_run_state *state);
/* The runner's job: RUN (flags, cold, lowering, incumbent's score and ratio, solitude, patience, trace, built) -> RAN (the
 * fields of tl_result). */
enum { TL_RUN_CAREFUL = 1, TL_RUN_INCUMBENT = 2, TL_RUN_CHECK = 4, TL_RUN_LABEL = 8 };
void tl_worker_run(tl_run_state *state, const tl_worker_options *options, const tl_text *body,
                   tl_text *reply);

/* tuner/measure/run_check.c: runs the kernel on so many input sets and compares. TL_WRONG_RESULT says where. *least_ns:
 * the quickest of these runs. */
tl_status tl_run_check(tl_run_state *state, tl_runnable *r, int lowering, int sets,
                       double *max_error, double *least_ns, tl_diag *diag);
/* tuner/measure/run_caches.c: makes what timing `r` takes when that much is cold; false: no memory. */
bool tl_caches_prepare(tl_run_state *state, tl_runnable *r, tl_cold cold);
/* The buffers of the next call of `r`, which was prepared: params, then prepared ones. */
void tl_caches_set_up(tl_run_state *state, tl_runnable *r, tl_cold cold, void **buffers);
/* tuner/measure/run_time.c: times the kernel in alternation with the incumbent. */
typedef struct {
    tl_contest_result contest;
    double median_ns;
    tl_cold cold;
} tl_run_times;
void tl_run_time(tl_run_state *state, tl_runnable *r, bool careful, tl_cold cold, double checked_ns,
                 tl_run_times *out);
/* The same for a label: against the incumbent, which stays. */
void tl_run_label(tl_run_state *state, tl_runnable *r, tl_cold cold, double checked_ns,
                  tl_run_times *out);

#endif
