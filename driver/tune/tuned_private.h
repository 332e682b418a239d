/* driver/tune/tuned_private.h: what the comparisons of a whole model share. */
#ifndef TL_DRIVER_TUNE_TUNED_PRIVATE_H
#define TL_DRIVER_TUNE_TUNED_PRIVATE_H
#include "runtime/base/statistics.h"
#include "driver/bench/bench.h"
#include "runtime/executable/bindings.h"
#include "driver/tune/tuned.h"

enum { TL_TUNED_INPUT_SETS = 2 };
/* of the measuring: comparing kernels, the first comparison of the whole; of another form's as much */
#define TL_TUNED_SHARE_KERNELS 0.3
#define TL_TUNED_SHARE_WHOLE   0.3
/* a kernel is faster inside the model when it gains more than clocks and caches make of nothing */
#define TL_TUNED_LEAST_GAIN    0.003

/* A compiled model with a runner of its own. */
typedef struct {
    tl_model *model;
    tl_runner *runner;
} tl_tuned_side;

typedef struct {
    tl_arena *arena;
    const char *path;
    const tl_model_options *options;
    const tl_tuned_options *o;
    tl_tuned_verdict *out;
    tl_records *store;
    int threads;
    double seconds;
    int64_t deadline_ns;               /* of all measuring */
    tl_tuned_side base, tuned, shaped; /* shaped: tuned, with another form */
    tl_pick *picks;                    /* those that are left, beside their workloads */
    int pick_count;
    tl_tuned_workload *workloads;
    tl_bindings sets[TL_TUNED_INPUT_SETS];
} tl_tuned_state;

typedef struct {
    tl_interval ratio; /* of the second to the first */
    tl_interval part;  /* the same of those steps alone that are not the same code on both sides */
    double ns[2];      /* medians of the whole */
    int pairs;
} tl_tuned_comparison;

/* ---- tuned.c ---- */

void tl_tuned_tell(const tl_tuned_state *s, const char *stage);
/* Compiles with exactly these picks, in that form; what `out` held before is closed. */
tl_status tl_tuned_open(const tl_tuned_state *s, const tl_pick *picks, int count, const char *form,
                        tl_tuned_side *out, tl_diag *diag);
const tl_executable_spec *tl_tuned_spec(const tl_tuned_side *side);
/* Opens the tuned side anew, with the picks that are left. */
tl_status tl_tuned_build(tl_tuned_state *s, tl_diag *diag);
/* One run; `step_ns` gets the time of each step and may be NULL. */
tl_status tl_tuned_run(const tl_tuned_side *side, const tl_bindings *b, int64_t *step_ns,
                       tl_diag *diag);
/* Two sides in pairs, each first in every other one, for so many seconds. */
tl_status tl_tuned_compare(const tl_tuned_state *s, const tl_tuned_side *a, const tl_tuned_side *b,
                           double seconds, tl_tuned_comparison *out, tl_diag *diag);
/* Whether the second is, beyond doubt: the whole; or, where the noise of what is the same on both sides hides it, those steps
 * that differ, and the whole more likely than not. */
bool tl_tuned_is_faster(const tl_tuned_comparison *c);
/* The untuned side against another: the verdict's numbers. */
tl_status tl_tuned_compare_whole(tl_tuned_state *s, const tl_tuned_side *with, double seconds,
                                 bool *is_faster, tl_diag *diag);
/* Times every step of two sides in alternating runs for so many seconds: the shortest of each, in the state's arena. */
tl_status tl_tuned_time_steps(tl_tuned_state *s, const tl_tuned_side *const sides[2],
                              double seconds, int64_t *least[2], tl_diag *diag);
tl_tuned_workload *tl_tuned_find(const tl_tuned_state *s, const char *key); /* NULL: none */

/* ---- tuned_right.c ---- */

/* Whether the outputs of a side are those of the untuned one, on every set of inputs; the verdict's max_error. */
tl_status tl_tuned_agree(tl_tuned_state *s, const tl_tuned_side *with, bool *out, tl_diag *diag);
/* Takes picks away until they are those of the untuned side. */
tl_status tl_tuned_make_right(tl_tuned_state *s, tl_diag *diag);

/* Which of some things, in ascending order, go together. */
typedef struct {
    tl_status (*judge)(void *user, const int *members, int count, bool *right, tl_diag *diag);
    void *user;
    int *members; /* room for all */
    int member_count;
    int64_t end_ns; /* of the clock: what was not judged by then is no member */
} tl_tuned_sieve;
/* Of the things 0, ..., count - 1, which are wrong together: k wrong ones of n are found in at most about 2 k log2 n
 * judgements. */
tl_status tl_tuned_sift(tl_tuned_sieve *sieve, int count, tl_diag *diag);

/* ---- tuned_form.c ---- */

/* Another form, when the records say that it costs less: tried against the best so far, then against untuned. */
tl_status tl_tuned_try_form(tl_tuned_state *s, tl_diag *diag);

#endif
