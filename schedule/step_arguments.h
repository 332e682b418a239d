/* schedule/step_arguments.h: every set of arguments that a primitive may be tried with, made from the letters of
 * primitives.def, so that a new primitive takes part without being named here. */
#ifndef TL_SCHEDULE_STEP_ARGUMENTS_H
#define TL_SCHEDULE_STEP_ARGUMENTS_H
#include "schedule/schedule_private.h"
#include "schedule/trace.h"

enum { TL_STEP_BLOCKS = 32, TL_STEP_BUFFERS = 32, TL_STEP_TRIALS = 128 };

/* An argument. A loop or block stands in `var` or `word` until the copy that it is tried on has a handle for it. */
typedef struct {
    tl_arg arg;
    const tl_var *var;
} tl_step_choice;

typedef struct tl_step_trials tl_step_trials;
/* A step was tried on `after`, a copy of the schedule; `why` is the sentence when the status says that it was refused. */
typedef void tl_step_tried(tl_step_trials *trials, const tl_step_choice *choices, int count,
                           const tl_schedule *after, tl_status status, const char *why);

struct tl_step_trials {
    const tl_schedule *schedule;
    const tl_replay *replay; /* how its trace calls loops; NULL: as the program does */
    const tl_stmt *loop;     /* what each L is, or one of each L* */
    /* numbers for an i; for an F of a single loop, the inner part: 0 is a small divisor of the loop's extent */
    const int64_t *numbers, *factors;
    int number_count, factor_count;
    tl_step_tried *tried;
    void *user;
    /* filled by tl_step_trials_begin */
    const tl_stmt *outside, *inside; /* the next loops of the loop's nest, or NULL */
    int block_count, buffer_count;
    const tl_block *blocks[TL_STEP_BLOCKS]; /* those under the loop first */
    const tl_buffer *buffers[TL_STEP_BUFFERS];
    /* of the primitive that is tried */
    int prim, trials, legal;
    bool word_is_free; /* the last word that was tried is one of the user's own */
};

/* Looks around: `loop` may be NULL, then no primitive that wants one can be tried. */
void tl_step_trials_begin(tl_step_trials *trials);
/* At most TL_STEP_TRIALS sets of arguments of a primitive, each on a copy. */
void tl_step_trials_run(tl_step_trials *trials, int prim);

const char *tl_step_loop_name(const tl_step_trials *trials, const tl_var *var);
/* "split(k, [_, 16])" */
void tl_step_print(const tl_step_trials *trials, const tl_step_choice *choices, int count,
                   tl_text *out);

#endif
