/* driver/tune/tune_run.h: a run of `tilth tune`: the kernels of one or several models, or one kernel, within one budget. */
#ifndef TL_DRIVER_TUNE_TUNE_RUN_H
#define TL_DRIVER_TUNE_TUNE_RUN_H
#include "driver/cli/session.h"
#include "driver/tune/find_donors.h"
#include "tuner/model/tune_list.h"

typedef struct {
    tl_session_options common;
    tl_tune_filter filter;
    tl_text_list sets; /* of a kernel: "M=512" */
    const tl_policy_type *policy;
    tl_space_kind space; /* plain: each lowering by itself, nothing is compared in the model */
    tl_cold cold;        /* what is in no cache when a kernel is timed */
    const char *record, *replay; /* files of measurements; NULL: none */
    /* limits of the search; with none: two minutes, or until nothing gains any more */
    double budget_s;
    int64_t trials, trials_per_task;
    int64_t batch; /* 0: what the policy likes */
    int64_t seed;
    /* tilth transfer: no search, only schedules of other kernels, and of each kernel so many; with none they are checked and
     * not timed. Else: what the search begins with, beside the default schedules. */
    bool is_transfer;
    tl_donor_settings donors;
    /* that the policy asks: files, "default", "none" (driver/tune/load_experts.h) */
    tl_text_list cost_models;
    double check_s; /* of comparing each model with the untuned one; 0: by the budget */
    bool no_check;
    double candidate_s; /* for checking and timing one of them; 0: as the measurer likes */
} tl_tune_settings;

enum { TL_TUNE_MODELS = 32 }; /* at once */

bool tl_tune_is_kernel(const char *path); /* by its name: a .tk */

/* Tunes the models at `paths` together, or the one kernel: writes what it finds to the records, what it says to stdout and
 * stderr. TL_INTERRUPTED after SIGINT or SIGTERM, of which the user was told. `lost` gets the trials that could not be
 * written. */
tl_status tl_tune_run(const tl_tune_settings *settings, const char *const *paths, int count,
                      int64_t *lost, tl_diag *diag);

#endif
