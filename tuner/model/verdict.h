/* tuner/model/verdict.h: whether what the tuner found makes the whole model faster, and which of it is kept.
 *
 * A schedule that wins alone may lose beside others (caches, memory that is shared, clocks). So the model is compiled
 * with its default schedules and with the best recorded ones, both run in alternation, and
 *
 *   1. the outputs agree within the model's tolerance, or the suspects fall back;
 *   2. every workload whose kernels are not faster inside the model falls back to the default schedule;
 *   3. what is left is compared again with the untuned model, twice, and kept when the confidence interval of the ratio
 *      excludes that it is slower; or when that of the kernels that differ does, and the whole is no slower for all that can
 *      be seen; otherwise the default set is kept;
 *   4. another way to cut and lay out the graph, where the records say it costs less (tuner/model/forms.h), is tried against the
 *      best so far and against untuned, and kept when it is faster than both.
 *
 * The outcome goes into the store as a choice (tuner/records/record.h), which every later compile of the model follows. */
#ifndef TL_TUNER_MODEL_VERDICT_H
#define TL_TUNER_MODEL_VERDICT_H
#include <signal.h>
#include "runtime/base/statistics.h"
#include "tuner/model/tunable.h"

#define TL_VERDICT_SECONDS 10.0

typedef struct {
    double seconds;      /* of measuring, in all; 0: TL_VERDICT_SECONDS */
    uint64_t seed;       /* of the inputs */
    const char *session; /* of the tuner; may be NULL */
    bool dry;            /* nothing is written */
    /* Instead of the best records: exactly these. */
    const tl_pick *picks;
    int pick_count;
    bool untimed; /* outputs are compared, nothing is timed: what is right is kept */
    /* Not 0: end now, with TL_INTERRUPTED and nothing written. May be NULL. */
    const volatile sig_atomic_t *stop;
    void (*progress)(void *user, const char *stage, double seconds_left); /* may be NULL */
    void *user;
} tl_verdict_options;

/* What became of one workload that has a record. */
typedef enum {
    TL_VERDICT_KEPT,
    TL_VERDICT_SAME,   /* its best schedule compiles to what the default does */
    TL_VERDICT_SLOWER, /* not faster inside the model */
    TL_VERDICT_WRONG,  /* the outputs only agree without it */
    TL_VERDICT_MISS,   /* the record does not fit any more */
    TL_VERDICT_FATE_COUNT
} tl_verdict_fate;
const char *tl_verdict_fate_text(tl_verdict_fate fate);
typedef struct {
    const char *workload, *kernel; /* `kernel`: the first that has it */
    int occurrences;
    double untuned_ns, tuned_ns; /* of all occurrences, inside the model; 0: not compared */
    double alone_ns;             /* the record's score, times occurrences */
    tl_verdict_fate fate;
} tl_verdict_workload;

typedef struct {
    bool kept; /* else the default schedules stay, in which case the ratios say why */
    double untuned_ns, tuned_ns; /* medians of the last comparison */
    /* Tuned / untuned: median and 95 % interval; 1 when nothing was compared. */
    double ratio, ratio_low, ratio_high;
    /* The same of the kernels that differ alone: what is the same on both sides is noise. */
    tl_interval part;
    int pairs;
    double max_error; /* of the outputs, over the largest magnitude */
    const char *form; /* how the graph is cut and laid out; "" as without tuning */
    /* Alternatives that the records liked, and those that are in `form`. */
    int forms_tried, forms_kept;
    tl_interval form_ratio; /* of the form tried to the best before it; 0: it was not compared */
    int workload_count, kept_count, fallback_count;
    int wrong_count;                      /* of those that fell back */
    const tl_verdict_workload *workloads; /* those that have a record, the heaviest first */
} tl_model_verdict;

/* Builds the model in both ways and decides. Everything in `out` lives in `arena`. TL_OK also when the default is kept.
 * Untimed, ratios are 1 and times 0. */
tl_status tl_verdict_reach(tl_arena *arena, tl_tunable *model, tl_records *store,
                           const tl_verdict_options *options, tl_model_verdict *out, tl_diag *diag);

#endif
