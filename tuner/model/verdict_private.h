/* tuner/model/verdict_private.h: what the comparisons of a whole model share: file by file, each calling those before it. */
#ifndef TL_TUNER_MODEL_VERDICT_PRIVATE_H
#define TL_TUNER_MODEL_VERDICT_PRIVATE_H
#include "tuner/model/verdict.h"

enum { TL_VERDICT_INPUT_SETS = 2 };
/* of the measuring: comparing kernels, the first comparison of the whole; of another form's as much */
#define TL_VERDICT_SHARE_KERNELS 0.3
#define TL_VERDICT_SHARE_WHOLE   0.3
/* a kernel is faster inside the model when it gains more than clocks and caches make of nothing */
#define TL_VERDICT_LEAST_GAIN    0.003

typedef struct {
    tl_arena *arena;
    tl_tunable *model;
    const tl_verdict_options *o;
    tl_model_verdict *out;
    tl_records *store;
    double seconds;
    int64_t deadline_ns;                     /* of all measuring */
    tl_tunable_build *base, *tuned, *shaped; /* shaped: tuned, with another form */
    tl_pick *picks;                          /* those that are left, beside their workloads */
    int pick_count;
    tl_verdict_workload *workloads;
} tl_verdict_state;

/* ---- verdict_state.c ---- */

int64_t tl_verdict_clock_ns(const tl_verdict_state *s);
void tl_verdict_tell(const tl_verdict_state *s, const char *stage);
tl_status tl_verdict_check_stop(const tl_verdict_state *s, tl_diag *diag);
/* Builds with exactly these picks, in that form; what `*out` was before is closed. */
tl_status tl_verdict_build(const tl_verdict_state *s, const tl_pick *picks, int count,
                           const char *form, tl_tunable_build **out, tl_diag *diag);
/* Builds the tuned side anew, with the picks that are left. */
tl_status tl_verdict_build_tuned(tl_verdict_state *s, tl_diag *diag);
void tl_verdict_close(const tl_verdict_state *s, tl_tunable_build **build);
/* One run on a set of inputs; `step_ns` gets the time of each step and may be NULL. */
tl_status tl_verdict_run(const tl_verdict_state *s, tl_tunable_build *build, int set,
                         int64_t *step_ns, tl_diag *diag);
tl_verdict_workload *tl_verdict_find(const tl_verdict_state *s, const char *key); /* NULL: none */

/* ---- compare_builds.c ---- */

typedef struct {
    tl_interval ratio; /* of the second to the first */
    tl_interval part;  /* the same of those steps alone that are not the same code on both sides */
    double ns[2];      /* medians of the whole */
    int pairs;
} tl_verdict_comparison;

/* Two builds in pairs, each first in every other one, for so many seconds. */
tl_status tl_verdict_compare(const tl_verdict_state *s, tl_tunable_build *a, tl_tunable_build *b,
                             double seconds, tl_verdict_comparison *out, tl_diag *diag);
/* Whether the second is, beyond doubt: the whole; or, where the noise of what is the same on both sides hides it, those steps
 * that differ, and the whole more likely than not. */
bool tl_verdict_is_faster(const tl_verdict_comparison *c);
/* The untuned build against another: the verdict's numbers. */
tl_status tl_verdict_compare_whole(tl_verdict_state *s, tl_tunable_build *with, double seconds,
                                   bool *is_faster, tl_diag *diag);
/* Times every step of two builds in alternating runs for so many seconds: the shortest of each, in the state's arena. */
tl_status tl_verdict_time_steps(const tl_verdict_state *s, tl_tunable_build *const builds[2],
                                double seconds, int64_t *least[2], tl_diag *diag);

/* ---- match_outputs.c ---- */

/* Whether the outputs of a build are those of the untuned one, on every set of inputs; the verdict's max_error. */
tl_status tl_verdict_match(tl_verdict_state *s, tl_tunable_build *with, bool *out, tl_diag *diag);
/* Takes picks away until they are those of the untuned build. */
tl_status tl_verdict_make_right(tl_verdict_state *s, tl_diag *diag);

/* ---- verdict_form.c ---- */

/* Another form, when the records say that it costs less: tried against the best so far, then against untuned. */
tl_status tl_verdict_try_form(tl_verdict_state *s, tl_diag *diag);

#endif
