/* tuner/measure/workers_private.h: the measurer that uses worker processes: its queue, and what its parts share. */
#ifndef TL_TUNER_MEASURE_WORKERS_PRIVATE_H
#define TL_TUNER_MEASURE_WORKERS_PRIVATE_H
#include "tuner/measure/measure_private.h"
#include "tuner/measure/process.h"
#include "tuner/measure/worker_private.h"

enum {
    TL_MAX_BUILDERS = 16,
    TL_BUILD_AHEAD = 3,  /* orders a builder has at once: one it works on, others in its socket */
    TL_MAX_BUILT = 24,   /* built candidates that wait for the runner */
    TL_MAX_ATTEMPTS = 2, /* of a job whose worker (not its child) died */
    TL_MAX_RESTARTS = 6, /* of workers, without one answer in between */
};

typedef enum {
    TL_JOB_QUEUED,
    TL_JOB_BUILDING,
    TL_JOB_BUILT,
    TL_JOB_RUNNING,
    TL_JOB_DONE
} tl_job_state;

typedef struct tl_job {
    struct tl_job *next; /* in the order of submission */
    tl_job_state state;
    bool is_dropped; /* nobody wants the result any more */
    int attempts;
    tl_candidate candidate; /* texts are heap memory of the job's */
    tl_text built;          /* a packed tl_built */
    tl_result result;
} tl_job;

typedef enum {
    TL_REFERENCE_NONE,
    TL_REFERENCE_ASKED,
    TL_REFERENCE_BUILT,
    TL_REFERENCE_BAD
} tl_reference_state;

/* What candidates are compared with: the incumbent (empty while it is the first that was right); the first, should a child
 * not get on with the incumbent. */
enum { TL_FIRST, TL_INCUMBENT, TL_STANDARDS };
typedef struct {
    tl_text built; /* a packed tl_built; empty: none */
    double score, ratio;
    char program[17];
    tl_cold cold;
} tl_standard;

typedef struct {
    tl_arena *arena;
    tl_measure_task spec;
    tl_reference_state state;
    const char *reference_trace; /* of tl_schedule_reference on the first lowering */
    tl_text reference;           /* a packed tl_built */
    char reason[400];            /* why it is bad */
    tl_standard standards[TL_STANDARDS];
} tl_task_state;

/* What a builder was asked for: a job, or (job NULL) the reference of a task. */
typedef struct {
    tl_job *job;
    int task;
} tl_order;

typedef struct {
    tl_process process;
    bool in_gaps; /* on the runner's core, while that waits */
    tl_order orders[TL_BUILD_AHEAD + 16];
    int count;
    /* For the first of the orders, which its own alarm should end long before. */
    int64_t deadline_ns;
} tl_builder;

typedef struct {
    tl_process process;
    int task;            /* prepared; -1: none */
    bool is_serving;     /* START was sent since */
    bool is_preparing;   /* READY is awaited */
    bool lacks_standard; /* its child has none yet, and there is one */
    int ordered;         /* the standard that it was sent; -1: none */
    tl_job *job;         /* being run */
    int64_t deadline_ns;
} tl_runner_state;

typedef struct {
    tl_measurer base;
    tl_measure_options options;
    const char *const *args;
    tl_target target, host;
    char *worker, *defects;
    int timer_core; /* -1: no core of its own */
    bool overlaps;  /* build while timing */
    bool is_timing; /* when not: which of the two it is now */
    tl_builder builders[TL_MAX_BUILDERS];
    int builder_count;
    tl_runner_state runner;
    tl_task_state **tasks;
    int task_count, task_capacity;
    tl_job *first, **last;
    int64_t queued, next_ticket;
    double solitude;   /* of the runner's witness */
    int64_t waited_ns; /* for solitude */
    int restarts;      /* in a row */
    bool has_answered; /* some worker, at some time: a death may be a candidate's doing */
    bool is_dead;
    int64_t start_ns;
    tl_measure_stats stats;
    tl_text message, reply; /* scratch */
} tl_pump;

/* tuner/measure/workers_queue.c */
void tl_pump_finish(tl_pump *m, tl_job *job, tl_record_status status, const char *reason);
void tl_pump_fail_task(tl_pump *m, int task, const char *reason);
/* What a child that died of `signal` (0: ended with `code`), `bytes` of memory large, says of its job. */
tl_record_status tl_pump_cause(const tl_pump *m, int signal, int code, int64_t bytes, char *reason,
                               size_t size);
/* tuner/measure/workers_dispatch.c */
tl_status tl_pump_start(tl_pump *m, tl_diag *diag);
void tl_pump_stop(tl_pump *m);
/* Gives workers what they can take, waits for at most `timeout_ns` (< 0: without limit) for an answer, and takes it. */
void tl_pump_step(tl_pump *m, int64_t timeout_ns);

#endif
