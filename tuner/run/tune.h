/* tuner/run/tune.h: a run of the tuner: many tasks, one budget.
 *
 *     tl_tuning_create(&options, tasks, count, &t)
 *     tl_tuning_run(t)                              until the budget ends, nothing is left to try, or *options.stop
 *     tl_tuning_task(t, i)                          the best so far, at any moment
 *
 * What happens: the default schedule of each task is measured, then the best that earlier records know of it; both are
 * what candidates are compared with. Then the task scheduler (tuner/run/task_scheduler.h) gives batches to tasks; the policy
 * (tuner/search/search.h) fills them. The next batch, of whichever task, is submitted while the last one is still being built
 * and timed, and workers are served while the policy thinks. Every result goes into the store at once.
 *
 * What is known is used: records of the same workload, numerics, threads and mode are handed to the policy as seeds and
 * are not measured again; so a run that was interrupted goes on where it was. Their times count when target and
 * revision of the code generator are the same, scaled by what the default schedule takes now.
 *
 * Decisions depend on seed, records and results only, in the order of the results: with the same records, a replayed
 * recording gives the same decisions, bit for bit. No clock decides but the results' own (finished_ns). Steps of that
 * clock that go back, or that are longer than five minutes (a machine that slept), count as a fiftieth of a second. */
#ifndef TL_TUNER_RUN_TUNE_H
#define TL_TUNER_RUN_TUNE_H
#include <signal.h>
#include "tuner/search/search.h"
#include "tuner/transfer/transfer.h"
#include "tuner/records/store.h"

typedef struct tl_tuning tl_tuning;

typedef struct {
    const tl_measure_task *measure;   /* lowerings, the first the reference */
    const tl_workload_info *workload; /* names, keys, flops; goes into the store */
    int untuned;   /* index of the lowering whose default schedule an untuned compile takes */
    double weight; /* how often one run of the model computes it: occurrences */
} tl_tune_task;

/* What a run tells while it runs. */
typedef enum {
    TL_TUNE_TRIAL,   /* a result is there, and in the store */
    TL_TUNE_ROUND,   /* the policy has learned a batch of `task` */
    TL_TUNE_RETIRED, /* `task` gets no more batches; tl_tuned.life says why */
    TL_TUNE_TICK,    /* a tenth of a second went by without a result */
} tl_tune_event_kind;
typedef struct {
    tl_tune_event_kind kind;
    int task;                    /* -1: none */
    const tl_proposal *proposal; /* of a trial, and what came of it */
    const tl_result *result;
    bool is_best; /* of a trial: the task's best now */
} tl_tune_event;
typedef void tl_tune_listener(void *user, const tl_tuning *tuning, const tl_tune_event *event);

typedef struct {
    const tl_policy_type *policy;
    tl_cost_model *model; /* for the policy; NULL: none */
    tl_cost_model *const
        *experts; /* trained before, for the policy (tuner/search/search.h); the caller's */
    int expert_count;
    tl_measurer *measurer;  /* of these tasks alone; stays the caller's */
    tl_records *store;      /* where results go; NULL: nowhere. Stays the caller's */
    const tl_record *known; /* already (tl_tune_known); copied as far as it is needed */
    int known_count;
    const tl_target *target;
    int threads;         /* that kernels run on; 0: 1 */
    tl_space_kind space; /* whose points are candidates */
    tl_cold cold;
    const char *numerics; /* of the records: "strict" or "relaxed" */
    uint64_t seed;
    /* Schedules of other kernels of each task's class, measured right after its default schedule; NULL: none. */
    const tl_transfer *transfer;
    /* Nothing beyond what a task starts with: its default schedule, the best that is known of it, what is transferred. */
    bool starts_only;
    /* Checked, and not timed: of each task the first transferred schedule that is right, with a best_ns of 0. */
    bool checks_only;
    double budget_s;         /* 0: no limit */
    int64_t trials;          /* of all tasks; 0: no limit */
    int64_t trials_per_task; /* 0: no limit */
    bool starts_in_order;    /* of the tasks; else the largest task first */
    bool ends_at_rest;       /* else tasks that rest go on as long as the budget does */
    int batch;               /* candidates asked of the policy at once; 0: what the policy likes */
    const char *session;     /* tl_session_name; "" */
    /* of the machine that measures, for the records; NULL: there is none */
    const tl_machine *profile;
    const char *environment; /* tl_environment_text; NULL: as it is when the first result comes */
    const volatile sig_atomic_t *stop; /* not 0: end now, within a tenth of a second. May be NULL */
    tl_tune_listener *listen;          /* may be NULL */
    void *user;
} tl_tune_options;

typedef enum {
    TL_TASK_OPEN,
    TL_TASK_RESTING,   /* gained nothing for long; goes on when no other task is open */
    TL_TASK_EXHAUSTED, /* no more candidates, or as many trials as a task may have */
    TL_TASK_FAILED,    /* no valid schedule, or the policy failed: `reason` */
} tl_task_life;

/* One task of the run, so far. Times are scores: comparable inside a task and a run. */
typedef struct {
    const tl_tune_task *task;
    tl_task_life life;
    double untuned_ns;     /* the default schedule; 0: not measured (yet), or it failed */
    const tl_record *best; /* the fastest that is right; NULL: none. Until the next event */
    double best_ns;        /* 0: none */
    int64_t trials, ok;    /* of this run; what is neither right nor in flight failed */
    int64_t known;         /* records of earlier runs */
    const tl_transferred *transfers; /* that it was given, the best guess first */
    int transfer_count;
    int rounds;       /* batches learned */
    char reason[256]; /* why it failed, or what the last failed trial said; "" */
} tl_tuned;

typedef struct {
    double elapsed_s, left_s; /* left_s < 0: no limit in seconds */
    int64_t trials, ok, failed, by_status[TL_RECORD_STATUS_COUNT];
    int64_t unwritten;          /* records that wait for the store */
    double untuned_ns, best_ns; /* of one run of the model: over all tasks that have both */
    double flops;               /* of these tasks */
    int missing;                /* tasks that lack one */
    double search_s;            /* of processor time, spent in the policy */
    bool stopped;               /* by *stop */
    bool all_rest;              /* no task is open */
} tl_tune_totals;

/* Everything that is pointed to outlives the run. TL_BAD_ARGUMENT when an option is wrong, what tl_measurer_add_task says
 * when a task is. */
tl_status tl_tuning_create(const tl_tune_options *options, const tl_tune_task *tasks, int count,
                           tl_tuning **out, tl_diag *diag);
/* Once. TL_OK when the budget ended, nothing is left to try, or it was stopped; TL_BUDGET when no task has a valid
 * schedule; TL_DEVICE when no worker can be started any more, TL_NO_MEMORY: what was measured is kept all the same.
 * With neither budget nor trials, too, it ends when all tasks rest. */
tl_status tl_tuning_run(tl_tuning *tuning, tl_diag *diag);
void tl_tuning_destroy(tl_tuning *tuning);

int tl_tuning_count(const tl_tuning *tuning);
const tl_tuned *tl_tuning_task(const tl_tuning *tuning, int index);
void tl_tuning_totals(const tl_tuning *tuning, tl_tune_totals *out);

/* All records of the tasks' workloads in the order in which they were stored, in `arena`. A store that cannot be read
 * knows nothing. */
void tl_tune_known(tl_records *store, const tl_tune_task *tasks, int count, tl_arena *arena,
                   const tl_record **out, int *out_count);
/* The best time in nanoseconds among options->known of a workload, on this target with these numerics, threads, caches and
 * code generator, in the time of the newest session (tuner/records/session_scale.h); 0: there is none. */
double tl_tune_best_known(const tl_tune_options *options, const char *workload);
/* The records that tl_recorder_note put into a recording: what was known when it was made. */
tl_status tl_tune_known_of_recording(const char *path, tl_arena *arena, const tl_record **out,
                                     int *out_count, tl_diag *diag);

#endif
