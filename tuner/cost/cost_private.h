/* tuner/cost/cost_private.h: what the cost models share. */
#ifndef TL_TUNER_COST_COST_PRIVATE_H
#define TL_TUNER_COST_COST_PRIVATE_H
#include "runtime/base/text.h"
#include "tuner/cost/cost_model.h"

#define COST_MODEL(name, words) extern const tl_cost_model_type tl_cost_##name;
#include "tuner/cost/cost_models.def"
#undef COST_MODEL

/* What a model lets be set: "hidden=128 layers=2". */
typedef struct {
    const char *name;
    int *value; /* what it is unless it is set */
    int least, most;
} tl_cost_setting;
/* tuner/cost/cost_settings.c. TL_BAD_ARGUMENT, with the name and what there is. NULL sets nothing. */
tl_status tl_cost_settings_read(const char *model, const char *settings,
                                const tl_cost_setting *table, int count, tl_diag *diag);
void tl_cost_settings_print(const tl_cost_setting *table, int count, tl_text *out);

/* For models that are not trained, have no parameters, or keep nothing. */
tl_status tl_cost_train_nothing(tl_cost_model *model, const tl_cost_samples *samples,
                                const tl_cost_samples *held_out, const tl_train_options *options,
                                tl_diag *diag);
tl_status tl_cost_adapt_nothing(tl_cost_model *model, const tl_cost_samples *samples,
                                const tl_train_options *options, tl_diag *diag);
tl_status tl_cost_no_gradients(tl_cost_model *model, const tl_cost_samples *samples,
                               const tl_train_options *options, double *loss, tl_diag *diag);
int tl_cost_no_parameters(tl_cost_model *model, const tl_parameter **out);
void tl_cost_no_settings(const tl_cost_model *model, tl_text *out);
tl_status tl_cost_write_nothing(const tl_cost_model *model, tl_text *out, tl_diag *diag);
tl_status tl_cost_read_nothing(tl_cost_model *model, const void *bytes, size_t size, tl_diag *diag);

/* The machine of a program's task; never NULL. */
const tl_machine *tl_cost_samples_machine(const tl_cost_samples *samples, int program);

#endif
