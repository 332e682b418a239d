/* tuner/measure/measure_ledger.h: what recorder and replayer remember of their tasks and of what they were asked. */
#ifndef TL_TUNER_MEASURE_MEASURE_LEDGER_H
#define TL_TUNER_MEASURE_MEASURE_LEDGER_H
#include "tuner/measure/measure.h"

typedef struct {
    char *workload;
    int lowering_count;
    char (*lowerings)[64];
} tl_asked_task;

typedef struct tl_asked {
    struct tl_asked *next;
    int64_t ticket;
    int task;
    char key[33];
} tl_asked;

typedef struct {
    tl_asked_task *tasks;
    int count, capacity;
    tl_asked *first, **last;
    int64_t queued;
} tl_ledger;

/* Its number is how many there were before. */
tl_status tl_ledger_add_task(tl_ledger *l, const tl_measure_task *spec, tl_diag *diag);
/* Appends questions; the key of each is a digest of workload, lowering, trace (or program) and mode. */
tl_status tl_ledger_ask(tl_ledger *l, int task, const tl_candidate *candidates, int count,
                        int64_t ticket, tl_diag *diag);
void tl_ledger_drop_first(tl_ledger *l);
void tl_ledger_forget(tl_ledger *l, int task); /* -1: all tasks */
void tl_ledger_free(tl_ledger *l);

#endif
