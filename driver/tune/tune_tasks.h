/* driver/tune/tune_tasks.h: what there is to tune: the kernels of a model, or a kernel's text, as tasks. */
#ifndef TL_DRIVER_TUNE_TUNE_TASKS_H
#define TL_DRIVER_TUNE_TUNE_TASKS_H
#include "driver/cli/session.h"
#include "driver/study/study.h"
#include "tuner/run/tune.h"

typedef struct {
    int count;
    const tl_tune_task *tasks; /* the heaviest first */
    int left_out;              /* workloads that the pattern, or the number of tasks, leaves out */
    /* of a run of the whole model: what it computes, and the constants that it reads; of several models all that they
     * compute, and the most constants that one of them reads */
    int64_t flops, constant_bytes;
} tl_tune_list;

typedef struct {
    const char *pattern; /* of the shell's kind, for names and families of kernels; NULL: all */
    int64_t top;         /* the heaviest of all models only; 0: all */
} tl_tune_filter;

/* One kernel as a task of weight 0; in `arena`, with its own texts but for the kernel's name and family. */
tl_status tl_tune_task_of_kernel(tl_arena *arena, const tl_kernel *kernel, const tl_target *target,
                                 tl_numerics numerics, tl_tune_task *out, tl_diag *diag);
/* A task for each workload of the session's model (inspect_only is enough) that the filter's pattern leaves, weighed by how
 * many kernels share it. All in the session's arena. */
tl_status tl_tune_tasks_of_model(const tl_session *session, tl_numerics numerics,
                                 const tl_tune_filter *filter, tl_tune_list *out, tl_diag *diag);
/* The tasks of one or several models: a workload that they share is one task with the sum of its weights, so that the sum of the
 * models' latencies is what becomes less (f1 of Ansor, section 6). Then the filter's `top`. Texts stay where they are.
 * TL_BAD_ARGUMENT when the pattern left nothing. */
tl_status tl_tune_tasks_join(tl_arena *arena, const tl_tune_list *const *lists, int list_count,
                             const tl_tune_filter *filter, tl_tune_list *out, tl_diag *diag);
/* One task: the kernel for the study's dims; in the study's arena. */
void tl_tune_tasks_of_kernel(const tl_study *study, tl_tune_list *out);

#endif
