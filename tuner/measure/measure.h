/* tuner/measure/measure.h: candidates in, trustworthy results out.
 *
 *     tl_measurer_create(&options, &m)             worker processes start
 *     tl_measurer_add_task(m, &spec, &task)        what is tuned: reference, lowerings, error bounds
 *     tl_measurer_submit(m, task, candidates, n)   queued; nothing waits
 *     tl_measurer_next(m, timeout, &result)        works the queue until a result is there
 *
 * Results come in the order of submission. While the caller does not wait, workers go on with what they were given;
 * tl_measurer_pump hands on finished work in between (call it now and then in a long search).
 *
 * What happens to a candidate: a builder process replays its trace on its lowering's naive program and compiles it; a
 * runner process on another core runs it on random and on adversarial inputs and compares every output with the
 * reference (the first lowering's naive program, large sums reordered) within the lowering's bound; then
 * times it in turns with the task's incumbent, gives up after two when it is 1.2 times slower in both, and crowns it only
 * when it wins a second, longer series and a third one, which is its score (tuner/measure/contest.h). A series in which
 * the incumbent or a witness (a peak loop, an L2-resident product, a copy) is below 85 % of its best is discarded and
 * run again. The first right candidate of a task becomes its incumbent: submit the default schedule first.
 *
 * A crash, a hang, an illegal instruction, an LLVM failure or too much memory costs that candidate and about a
 * millisecond: jobs run in children forked from a worker that has everything prepared.
 *
 * There are three measurers behind the interface: processes; a recorder around another one; and a replayer that
 * answers from a recording, for searches that must decide the same every time. Use from one thread. */
#ifndef TL_TUNER_MEASURE_MEASURE_H
#define TL_TUNER_MEASURE_MEASURE_H
#include "tuner/measure/contest.h"
#include "tuner/records/record.h"

typedef struct tl_measurer tl_measurer;

typedef struct {
    const char *worker; /* path of the program that is a worker: `WORKER worker ROLE FD` must end in
                                     * tl_worker_main (the driver: this tilth) */
    /* Instead of "worker": further words, NULL at the end; NULL: as above. */
    const char *const *worker_args;
    const tl_target *target;
    /* Where candidates run: "cuda:1"; NULL: on this CPU. Then `host` is the target of what runs on this machine all the same,
     * the reference and what packs constants. */
    const char *device;
    const tl_target *host;
    int threads;          /* that a kernel runs on; 0: 1 */
    int repeats;          /* of a promising candidate; 0: 11 */
    double build_limit_s; /* 0: 10 */
    double run_limit_s;   /* for checking and timing one candidate; 0: 10 */
    /* Address space of a worker's child beyond what it starts with; 0: 4 GiB. */
    int64_t memory_bytes;
    uint64_t seed; /* of the inputs */
    /* Folder for reproducers (KERNEL.tk, KERNEL.tr) of wrong results and crashes; NULL: none. */
    const char *defects;
    /* Of the whole model: where its constants come from (TL_COLD_CONSTANTS). */
    int64_t constant_bytes;
    /* Builder processes; 0: one, and where a core is for timing alone another that works in its gaps. */
    int builders;
    bool verify; /* run the verifier after every step of a trace */
} tl_measure_options;

/* One way to compute the task's kernel; params of all are the same, in the same order. */
typedef struct {
    const char *name;    /* "direct" */
    const char *program; /* text of the naive program */
    double rtol, ttol;   /* right: |a-e| <= rtol*|e| + ttol*max|e|; both 0: tl_measure_bound */
} tl_measure_lowering;
typedef struct {
    const char *name;     /* for messages */
    const char *workload; /* key */
    int lowering_count;
    const tl_measure_lowering *lowerings; /* the first is the reference, and is trusted */
    int dim_count;
    const int64_t *dims; /* values of the program's dims */
} tl_measure_task;

typedef struct {
    int lowering;      /* index in the task's */
    const char *trace; /* applied to the lowering's program; NULL: `program` is scheduled already */
    const char *program;
    bool careful;     /* three times the repeats, never stopped early: for final comparisons */
    bool checks_only; /* its outputs are compared and nothing is timed: the result has no times */
    /* Of what is no contest but a fact to learn from: its outputs are checked on one set of inputs, and it takes turns with
     * the incumbent, which stays what it is, until the ratio is known (tl_label). The first right one of a task is its
     * incumbent in any case. */
    bool label;
    /* Of one task's all the same: what is timed otherwise than the first is not crowned. */
    tl_cold cold;
} tl_candidate;

typedef struct {
    int64_t ticket; /* what tl_measurer_submit gave it */
    int task;
    tl_record_status status;
    char reason[512];
    char program
        [17]; /* hex digits of the scheduled program's structural hash; "" when it was never built */
    double time_ns, median_ns, incumbent_ns, score_ns; /* as in a record */
    int time_count;
    double times_ns[TL_CONTEST_SAMPLES];
    bool hopeless, disturbed;
    tl_cold cold;          /* NOTHING, whatever was asked for, when memory was short */
    bool crowned;          /* it is the task's incumbent now */
    double promise, alone; /* as in a tl_contest_result; promise in no record */
    /* As in a tl_contest_result, but over the first program of the task that was right; against what it took turns. */
    double ratio, ratio_error;
    int turns;
    tl_censored censored;
    char standard[17];
    double max_error; /* over the largest magnitude expected */
    double build_ns, check_ns, run_ns;
    int64_t finished_ns;  /* on the measurer's clock */
    char reproducer[256]; /* path of the .tk of a defect; "" when none was written */
} tl_result;

tl_status tl_measurer_create(const tl_measure_options *options, tl_measurer **out, tl_diag *diag);
void tl_measurer_destroy(tl_measurer *m); /* ends the workers; what is queued is forgotten */

/* The task is copied. TL_BAD_TEXT and the like when a program does not parse. That the reference cannot be built or
 * run shows in the results (TL_RECORD_WORKER). */
tl_status tl_measurer_add_task(tl_measurer *m, const tl_measure_task *task, int *out,
                               tl_diag *diag);
/* Candidates are copied; the first gets *ticket, the others follow on. */
tl_status tl_measurer_submit(tl_measurer *m, int task, const tl_candidate *candidates, int count,
                             int64_t *ticket, tl_diag *diag);
/* The next result. TL_OK; TL_BUDGET: none within `timeout_s` (< 0: as long as it takes) or nothing is queued;
 * TL_DEVICE: no worker can be started any more. */
tl_status tl_measurer_next(tl_measurer *m, double timeout_s, tl_result *out, tl_diag *diag);
void tl_measurer_pump(tl_measurer *m);
int64_t tl_measurer_queued(const tl_measurer *m); /* submitted and not yet returned */
/* Drops what is queued for a task (-1: all); no result comes. */
void tl_measurer_forget(tl_measurer *m, int task);
/* Moves the calling thread away from the core on which candidates are timed, when there is another one. Call it once in
 * the thread that searches. */
void tl_measurer_leave_core(const tl_measurer *m);
/* Nanoseconds since it was made; of a replayer: of the recording. Budgets go by it. */
int64_t tl_measurer_clock(const tl_measurer *m);

/* What the candidates cost, and what disturbed them. */
typedef struct {
    int64_t results, by_status[TL_RECORD_STATUS_COUNT];
    int64_t deaths;    /* of children */
    int64_t restarts;  /* of workers */
    int64_t discarded; /* series that were thrown away */
    double build_ns, check_ns, run_ns;
    double reference_ns;
    double peak_gflops, l2_gflops, copy_gbs; /* best of the witnesses */
} tl_measure_stats;
void tl_measurer_stats(const tl_measurer *m, tl_measure_stats *out);

/* Sends every result of `inner` (taken over) to the file at `path` as well: JSON lines. */
tl_status tl_recorder_create(tl_measurer *inner, const char *path, tl_measurer **out,
                             tl_diag *diag);
/* Adds a line of JSON that is no measurement (`recorder` is what tl_recorder_create made): replayers pass over it. */
tl_status tl_recorder_note(tl_measurer *recorder, const char *line, tl_diag *diag);
/* Answers from such a file: by workload, lowering, trace, careful and cold; the n-th time the same is asked, with the
 * n-th answer (the last one again when there are no more). What is not in it is TL_RECORD_WORKER; tl_measurer_next says
 * TL_INTERRUPTED when it was asked for everything that is in it, and then for something else, or for 257 things in a row
 * that are not in it: here the recording ends. */
tl_status tl_replayer_create(const char *path, tl_measurer **out, tl_diag *diag);

/* tl_program_error_bound of a program that is a text; 1e-5 when it does not parse. */
void tl_measure_bound(const char *program_text, double *rtol, double *ttol);

/* Makes the record of a result. Texts of the result and of `task` are used, not copied. The caller adds target,
 * class_key, family, numerics, threads, environment, session, sequence and created_us, and seals. */
void tl_result_to_record(const tl_measure_task *task, const tl_candidate *candidate,
                         const tl_result *result, tl_record *out);

/* The worker's side: argv of the process after its first word, e.g. { "builder", "3" }. Returns its exit status. */
typedef struct {
    /* for tests: called in the child before a job is done, with "build" or "run" and the trace */
    void (*hook)(const char *job, const char *trace);
} tl_worker_options;
int tl_worker_main(int argc, char **argv, const tl_worker_options *options);

#endif
