/* tuner/model/tune_list.h: what there is to tune: the kernels of one or several models as tasks. */
#ifndef TL_TUNER_MODEL_TUNE_LIST_H
#define TL_TUNER_MODEL_TUNE_LIST_H
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

bool tl_tune_filter_passes(const tl_tune_filter *filter, const char *name, const char *family);
void tl_tune_tasks_sort(tl_tune_task *tasks, int count); /* the heaviest first */
/* The tasks of one or several models: a workload that they share is one task with the sum of its weights, so that the sum of the
 * models' latencies is what becomes less (f1 of Ansor, section 6). Then the filter's `top`. Texts stay where they are.
 * TL_BAD_ARGUMENT when the pattern left nothing. */
tl_status tl_tune_tasks_join(tl_arena *arena, const tl_tune_list *const *lists, int list_count,
                             const tl_tune_filter *filter, tl_tune_list *out, tl_diag *diag);

/* The same with a task for each lowering, whose reference is that lowering's own naive program: as in Ansor, where they are
 * different kernels. */
void tl_tune_tasks_split(tl_arena *arena, const tl_tune_list *list, tl_tune_list *out);

#endif
