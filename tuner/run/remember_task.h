/* tuner/run/remember_task.h: what the records of a task refer to, so that each can be rebuilt from the database alone. */
#ifndef TL_TUNER_RUN_REMEMBER_TASK_H
#define TL_TUNER_RUN_REMEMBER_TASK_H
#include "ir/program/machine.h"
#include "tuner/run/tune.h"

/* The workload, the program of each lowering, and the machine's profile (NULL: none). What is there stays; a store that cannot be
 * written now lacks them until the next run. */
void tl_remember_task(tl_records *store, const tl_tune_task *task, const tl_machine *profile);

#endif
