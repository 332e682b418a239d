/* tuner/model/tune_models.h: a run over the kernels of models, then over those that only other forms of the models have, within
 * one budget. */
#ifndef TL_TUNER_MODEL_TUNE_MODELS_H
#define TL_TUNER_MODEL_TUNE_MODELS_H
#include "tuner/model/tune_forms.h"

/* One of the models. */
typedef struct {
    tl_tune_forms forms; /* none: they are not asked for */
    int64_t form_trials; /* what their kernels got, besides, */
    double form_s;       /* and how long that took */
} tl_tune_model;

typedef struct {
    /* with the budget and the trials of all; for forms, a tenth of them */
    const tl_tune_options *options;
    const tl_tune_list *list; /* the kernels of all models */
    tl_tune_model *models;
    int model_count;
    /* Called when a run over kernels of forms begins, with the `user` of the options. May be NULL. */
    void (*begin_forms)(void *user);
} tl_tune_models;

/* All that the run may measure, in `arena`: the kernels of the models, then those of their other forms. Returns how many. */
int tl_tune_models_tasks(tl_arena *arena, const tl_tune_models *models, const tl_tune_task **out);
/* `tuning` gets the run over the models' own kernels, which is the caller's to destroy, whatever is returned: that of it, or of
 * the forms'. NULL: it could not be made. */
tl_status tl_tune_models_run(tl_arena *arena, const tl_tune_models *models, tl_tuning **tuning,
                             tl_diag *diag);

#endif
