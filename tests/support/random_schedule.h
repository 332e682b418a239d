/* tests/support/random_schedule.h: random primitives with random arguments on a schedule; most of them are refused. */
#ifndef TL_TESTS_RANDOM_SCHEDULE_H
#define TL_TESTS_RANDOM_SCHEDULE_H
#include "runtime/base/random.h"
#include "schedule/schedule.h"

typedef struct {
    tl_schedule *schedule;
    tl_random *random;
    bool may_bind;                /* also what only a GPU has: bind, shared buffers */
    int64_t tried[TL_PRIM_COUNT]; /* by primitive, summed over schedules */
    int64_t applied[TL_PRIM_COUNT];
    tl_prim prim;           /* of the step whose arguments are drawn */
    const char *last_block; /* that a step was about; NULL: none yet */
    tl_status status;       /* of the step that failed otherwise than by a refusal */
    tl_diag diag;
} random_steps;

extern const char *const random_prim_names[TL_PRIM_COUNT];

/* Applies 1 to `most` primitives and what follows from them. False: one of them failed otherwise than by a refusal, or took
 * a loop's kind away; the schedule's trace then ends with it, although it may not have been applied. */
bool random_steps_apply(random_steps *r, int most);

#endif
