/* tuner/cost/cost_private.h: what the cost models share. */
#ifndef TL_TUNER_COST_COST_PRIVATE_H
#define TL_TUNER_COST_COST_PRIVATE_H
#include "runtime/base/text.h"
#include "tuner/cost/cost_model.h"

#define COST_MODEL(name, words) extern const tl_cost_model_type tl_cost_##name;
#include "tuner/cost/cost_models.def"
#undef COST_MODEL

/* tuner/cost/cost_file.c: a model in a file: a line that names type, features and the digest of the rest, and the rest, which
 * is the model's own. */
tl_status tl_cost_file_write(const char *path, const char *type, const void *bytes, size_t size,
                             tl_diag *diag);
/* *bytes is in `file`, which the caller frees. */
tl_status tl_cost_file_read(const char *path, const char *type, tl_text *file, const void **bytes,
                            size_t *size, tl_diag *diag);
/* save and load of models that keep nothing. */
tl_status tl_cost_save_nothing(const tl_cost_model *model, const char *path, tl_diag *diag);
tl_status tl_cost_load_nothing(tl_cost_model *model, const char *path, tl_diag *diag);
tl_status tl_cost_learn_nothing(tl_cost_model *model, const tl_feature_set *programs,
                                const float *label, tl_diag *diag);

#endif
