/* driver/pipeline/model_forms.h: other ways to cut a model's graph into kernels and to lay its values out.
 *
 * The partition fuses greedily and convolutions make blocked values; both are right nearly always, and cannot be known
 * to be. The alternatives (one decision for all kernels of a workload each):
 *
 *     cut     behind a convolution, product or reduction, whose epilogue becomes another kernel, or before one that its
 *             operand was computed in
 *     plain   what the kernel of a convolution makes is not laid out in blocks
 *
 * What they cost, and whether one is taken, is the tuner's to say (tuner/model/forms.h). */
#ifndef TL_DRIVER_PIPELINE_MODEL_FORMS_H
#define TL_DRIVER_PIPELINE_MODEL_FORMS_H
#include "driver/pipeline/model.h"
#include "tuner/model/tunable.h"

/* The alternatives there are, in `arena`; their costs are not asked for. */
void tl_model_find_forms(tl_arena *arena, tl_model *model, const tl_form **out, int *count);
/* Calls `visit` with each kernel that the model has under a form, while the graph is cut and laid out so: what
 * tl_kernel_lowerings says of it later would be of another layout. The graph of the model (compiled here, not taken from
 * the cache whole) is cut anew for the form, and is as it was afterwards. */
typedef tl_status tl_kernel_visitor(void *user, const tl_kernel *kernel, tl_diag *diag);
tl_status tl_model_visit_form(tl_arena *arena, tl_model *model, const char *form,
                              tl_kernel_visitor *visit, void *user, tl_diag *diag);

#endif
