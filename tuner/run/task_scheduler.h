/* tuner/run/task_scheduler.h: which task gets the next batch: the one that is expected to take most off the model's latency.
 *
 * The rule is Ansor's (Zheng et al., OSDI 2020, section 6 and appendix A; constants of its published code): with
 * f = sum of weight_i * g_i over the tasks, g_i the best time of task i and t_i the rounds it has had, take the task
 * where a further round changes f most:
 *
 *     weight_i * ( a * (g_i(t_i) - g_i(t_i - w)) / w                                what the last w rounds gained
 *              + (1 - a) * ( min(g_i - g_i/t_i, b * C_i / max_k(C_k/g_k)) - g_i ) ) what may still be gained
 *
 * C_i are the task's flops, k runs over the tasks of its group (same operators, similar flops); a = 0.2, b = 2, w = 3.
 * Ours: ties are drawn with the seed; rounds in flight count as rounds without a gain, so that no task is asked for
 * ever; a task that lacks a time, or gains nothing, is retired. */
#ifndef TL_TUNER_RUN_TASK_SCHEDULER_H
#define TL_TUNER_RUN_TASK_SCHEDULER_H
#include <stdbool.h>
#include <stdint.h>
#include "runtime/base/arena.h"
#include "runtime/base/random.h"

enum { TL_MAX_SCHEDULED_TASKS = 4096 };

typedef struct tl_task_scheduler tl_task_scheduler;

typedef struct {
    double weight;
    double flops;
    const char *operators; /* "conv_relu": tasks with the same and similar flops are alike */
} tl_scheduled_task;

/* At most TL_MAX_SCHEDULED_TASKS tasks. Lives in `arena`; only this call allocates. */
tl_task_scheduler *tl_task_scheduler_create(tl_arena *arena, const tl_scheduled_task *tasks,
                                            int count, uint64_t seed);
/* The task's first time (of the default schedule, or the best known): from now on it may be chosen. */
void tl_task_scheduler_open(tl_task_scheduler *s, int task, double best_ns);
/* It is never chosen again. */
void tl_task_scheduler_retire(tl_task_scheduler *s, int task);
/* The task for the next batch, which is in flight from now on. First each open task once, that with the largest part of
 * the latency first; tasks with less than a thousandth of it wait for the gradient. -1: none is open. */
int tl_task_scheduler_next(tl_task_scheduler *s);
/* There was nothing to fill that batch with: the task waits for the end of another of its own that is in flight; when
 * there is none, it is retired. */
void tl_task_scheduler_defer(tl_task_scheduler *s, int task);
/* The end of a batch: the task's best time now. True when it gained nothing for so long that it rests. */
bool tl_task_scheduler_finish(tl_task_scheduler *s, int task, double best_ns);
/* All that rest are open again, with twice the patience. */
void tl_task_scheduler_wake(tl_task_scheduler *s);
bool tl_task_scheduler_rests(const tl_task_scheduler *s, int task);
double tl_task_scheduler_gradient(const tl_task_scheduler *s, int task); /* of an open one; <= 0 */

#endif
