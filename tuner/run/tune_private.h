/* tuner/run/tune_private.h: what the parts of a tuning run share. */
#ifndef TL_TUNER_RUN_TUNE_PRIVATE_H
#define TL_TUNER_RUN_TUNE_PRIVATE_H
#include "tuner/run/task_scheduler.h"
#include "tuner/run/tune.h"

/* tuner/run/tune_serve.c: a thread that serves the measurer's workers while the run's own thread is busy with other things.
 * The measurer is used by one of the two at a time. */
typedef struct tl_server tl_server;
tl_server *tl_server_create(tl_measurer *measurer); /* NULL: no thread; everything works without */
void tl_server_destroy(tl_server *server);
void tl_server_begin(tl_server *server); /* the measurer is the server's from here */
void tl_server_end(tl_server *server);   /* and ours again */

/* Candidates that were submitted together. Results come in this order. */
typedef struct tl_batch {
    struct tl_batch *next;
    tl_arena *arena; /* owns all of it */
    int task, count, done;
    bool is_start; /* what the task is compared with: no round of the policy's */
    tl_proposal *proposals;
    tl_result *results;
} tl_batch;

typedef struct {
    tl_arena *arena;
    const tl_tune_task *spec;
    tl_tuned shown;
    int number; /* the measurer's */
    tl_space *space;
    tl_policy *policy;
    tl_record *known; /* of earlier runs, then the start's own; times are those of now */
    int known_count;
    char untuned[17]; /* structural hash of the default schedule's program */
    tl_record best;
    tl_record stale[4]; /* of other revisions and targets: to be measured again */
    int stale_count, in_flight, fruitless;
    int64_t submitted;
    bool is_ready; /* the start is measured */
} tl_tuning_slot;

struct tl_tuning {
    tl_arena *arena;
    tl_tune_options options;
    int count, batch;
    char fingerprint[160];
    bool describes; /* options.environment is made here, from witnesses up to this peak */
    double described_gflops;
    tl_tuning_slot *slots;
    const int *order; /* in which the starts are measured */
    int started;
    tl_task_scheduler *scheduler;
    tl_server *server;
    tl_batch *first, **last;
    int64_t in_flight, submitted, sequence;
    int64_t clock_ns, elapsed_ns; /* the measurer's clock at the last look */
    double search_ns;
    tl_tune_totals totals;
};

/* tuner/run/tune_serve.c: around the policy's turn, in which workers are served and nothing is allocated from the run's arena. */
int64_t tl_tuning_begin_thinking(tl_tuning *t);
void tl_tuning_end_thinking(tl_tuning *t, int64_t start);

/* tuner/run/tune_known.c: sorts records of the slot's workload into known and stale, once slot->untuned is known. */
void tl_tuning_sort_known(const tl_tuning *t, tl_tuning_slot *slot);
/* Every session's scores are on a scale of its own, but each begins with the default schedule: scales them all so that
 * it takes `untuned_ns`. */
void tl_tuning_scale_known(tl_tuning_slot *slot, double untuned_ns);
const tl_record *tl_tuning_best_known(const tl_tuning_slot *slot); /* NULL: none is right */
bool tl_tuning_is_known(const tl_tuning_slot *slot, const char *program);

/* tuner/run/tune_start.c: the default schedule, the best that is known, the best of what is stale. */
tl_status tl_tuning_make_start(tl_tuning *t, tl_tuning_slot *slot, tl_batch *batch, tl_diag *diag);
/* They are measured: makes the policy. */
tl_status tl_tuning_end_start(tl_tuning *t, tl_tuning_slot *slot, const tl_batch *batch,
                              tl_diag *diag);

/* tuner/run/tune_result.c: one result, as record into the store and as news to the listener. */
void tl_tuning_take(tl_tuning *t, tl_batch *batch, const tl_result *result);
void tl_tuning_tell(tl_tuning *t, const tl_tune_event *event);
/* The record of a result of this run, not sealed; texts are not copied. */
void tl_tuning_record(const tl_tuning *t, const tl_tuning_slot *slot, const tl_proposal *proposal,
                      const tl_result *result, tl_record *out);
void tl_tuning_fail_task(tl_tuning *t, tl_tuning_slot *slot, const char *reason);

#endif
