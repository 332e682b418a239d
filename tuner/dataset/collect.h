/* tuner/dataset/collect.h: measures points of many tasks for a data set.
 *
 * The standard of a task is its default schedule, measured first and in each session anew; every other point takes turns with it
 * (tl_candidate.label). Builders work ahead, across tasks: while the points of one task are timed those of the next are built.
 * Every result is in the store when the next is asked for, so that a collection that dies has lost nothing; what the store has is
 * not measured again. */
#ifndef TL_TUNER_DATASET_COLLECT_H
#define TL_TUNER_DATASET_COLLECT_H
#include <signal.h>
#include "tuner/dataset/dataset.h"
#include "tuner/run/tune.h"

typedef struct {
    int tasks, tasks_done; /* done: all of their records are there */
    int64_t planned;       /* of the tasks, as far as their spaces have them */
    int64_t known;         /* from before */
    int64_t measured, failed, uncertain, censored;
    double elapsed_s;
} tl_collect_totals;

typedef struct {
    const tl_tune_task *tasks;
    int task_count;
    int per_task;          /* records of a task; the standard is one of them */
    tl_measurer *measurer; /* of these tasks alone; stays the caller's */
    tl_records *store;     /* stays the caller's */
    const tl_target *target;
    int threads;
    tl_cold cold;
    const char *numerics, *session, *environment;
    const tl_machine *profile; /* of the machine; NULL: there is none */
    uint64_t seed;
    double seconds; /* 0: until all is there */
    const volatile sig_atomic_t *stop;
    void (*listen)(void *user,
                   const tl_collect_totals *totals); /* after each result; may be NULL */
    void *user;
} tl_collect_options;

/* TL_OK also when it was stopped or the time was over; TL_DEVICE: no worker can be started any more, or none could measure
 * anything (there is no such device), and why; TL_NO_MEMORY. */
tl_status tl_collect(const tl_collect_options *options, tl_collect_totals *totals, tl_diag *diag);

#endif
