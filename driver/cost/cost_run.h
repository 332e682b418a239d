/* driver/cost/cost_run.h: what `tilth cost-model` does: cost models trained, judged, brought up to date, looked at,
 * and what they see. */
#ifndef TL_DRIVER_COST_COST_RUN_H
#define TL_DRIVER_COST_COST_RUN_H
#include "driver/cli/session.h"
#include "tuner/cost/cost_model.h"

typedef struct {
    tl_session_options common;
    const char *const *files;
    int file_count;
    tl_text_list models;   /* --model: a type with settings and rows, or a file */
    tl_text_list held_out; /* networks that no model may see */
    tl_text_list networks; /* whose time weighs tasks */
    tl_text_list guards;   /* data that an update must not forget */
    const char *output, *split, *machine, *without, *plot, *again, *checkpoint;
    const char *teacher; /* a model's file */
    double test, check, rate;
    int64_t jobs, seed, seeds, epochs, batch, unmeasured;
    bool force;
    /* of `features` */
    const char *kind, *space, *lowering, *answers, *pattern;
    tl_text_list sets; /* of a kernel's dims */
    bool rates;
} tl_cost_settings;

/* Results go to stdout, progress to stderr. TL_INTERRUPTED after SIGINT or SIGTERM. */
tl_status tl_cost_train(const tl_cost_settings *settings, tl_diag *diag);
tl_status tl_cost_eval(const tl_cost_settings *settings, tl_diag *diag);
tl_status tl_cost_update(const tl_cost_settings *settings, tl_diag *diag);
tl_status tl_cost_info(const tl_cost_settings *settings, tl_diag *diag);
tl_status tl_cost_features(const tl_cost_settings *settings, tl_diag *diag);

#endif
