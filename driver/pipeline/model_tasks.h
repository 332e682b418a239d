/* driver/pipeline/model_tasks.h: the kernels of a model as tasks of the tuner. */
#ifndef TL_DRIVER_PIPELINE_MODEL_TASKS_H
#define TL_DRIVER_PIPELINE_MODEL_TASKS_H
#include "driver/pipeline/model.h"
#include "tuner/model/tune_list.h"

/* One kernel as a task of weight 0; in `arena`, with its own texts but for the kernel's name and family. */
tl_status tl_model_task_of_kernel(tl_arena *arena, const tl_kernel *kernel, const tl_target *target,
                                  tl_numerics numerics, tl_tune_task *out, tl_diag *diag);
/* A task for each workload of the model (inspect_only is enough) that the filter's pattern leaves, weighed by how many kernels
 * share it. All in `arena`, but for names and families, which are the model's. */
tl_status tl_model_tasks(tl_arena *arena, const tl_model *model, tl_numerics numerics,
                         const tl_tune_filter *filter, tl_tune_list *out, tl_diag *diag);

#endif
