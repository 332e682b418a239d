/* tuner/model/forms.h: other forms of a model, compared by what the records say that their kernels cost.
 *
 * The cost of a form is the sum of the best records of all kernels it leads to; it has none as long as one of them was never
 * measured. */
#ifndef TL_TUNER_MODEL_FORMS_H
#define TL_TUNER_MODEL_FORMS_H
#include "tuner/model/tunable.h"

/* The alternatives that the model has, each with its cost. */
tl_status tl_forms_list(tl_arena *arena, tl_tunable *model, tl_records *store, const tl_form **out,
                        int *count, tl_diag *diag);
/* The form of least cost that taking alternatives one after another, the most promising first, leads to: those that were
 * taken; none when nothing is known to be cheaper than the default. */
tl_status tl_forms_choose(tl_arena *arena, tl_tunable *model, tl_records *store,
                          const tl_form **out, int *out_count, double *default_ns, double *cost_ns,
                          tl_diag *diag);
/* All of them as one form. */
const char *tl_forms_join(tl_arena *arena, const tl_form *forms, int count);

#endif
