/* driver/tune/forms.h: other ways to cut a model's graph into kernels and to lay its values out, compared by what the records
 * say that their kernels cost.
 *
 * The partition fuses greedily and convolutions make blocked values; both are right nearly always, and cannot be known
 * to be. The alternatives (one decision for all kernels of a workload each):
 *
 *     cut     behind a convolution, product or reduction, whose epilogue becomes another kernel, or before one that its
 *             operand was computed in
 *     plain   what the kernel of a convolution makes is not laid out in blocks
 *
 * The cost of a form (frontend/frontend.h) is the sum of the best records of all kernels it leads to; it has none as long
 * as one of them was never measured. A tuner that wants to compare asks tl_form_visit for the kernels. */
#ifndef TL_DRIVER_TUNE_FORMS_H
#define TL_DRIVER_TUNE_FORMS_H
#include "driver/pipeline/model.h"

typedef struct {
    const char *form; /* text */
    const char *what; /* for people: "conv_relu_3: cut behind Conv" */
    double cost_ns;   /* of the whole model; 0: not known */
    int missing;      /* workloads without a record */
} tl_form;

/* Calls `visit` with each kernel that the model has under a form, while the graph is cut and laid out so: what
 * tl_kernel_lowerings says of it later would be of another layout. The graph of the model (compiled here, not taken from
 * the cache whole) is cut anew for the form, and is as it was afterwards. */
typedef tl_status tl_form_visitor(void *user, const tl_kernel *kernel, tl_diag *diag);
tl_status tl_form_visit(tl_arena *arena, tl_model *model, const char *form, tl_form_visitor *visit,
                        void *user, tl_diag *diag);
/* The alternatives there are, their costs not asked for. */
void tl_forms_find(tl_arena *arena, tl_model *model, const tl_form **out, int *count);
/* The same, each with its cost. */
tl_status tl_forms_list(tl_arena *arena, tl_model *model, tl_records *store,
                        const tl_picks_query *query, const tl_form **out, int *count,
                        tl_diag *diag);
/* The form of least cost that taking alternatives one after another, the most promising first, leads to: those that were
 * taken; none when nothing is known to be cheaper than the default. */
tl_status tl_forms_choose(tl_arena *arena, tl_model *model, tl_records *store,
                          const tl_picks_query *query, const tl_form **out, int *out_count,
                          double *default_ns, double *cost_ns, tl_diag *diag);
/* All of them as one form. */
const char *tl_forms_join(tl_arena *arena, const tl_form *forms, int count);

#endif
