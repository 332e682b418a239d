/* driver/tune/kernel_task.c: a kernel's text as a task of the tuner. */
#include "driver/tune/kernel_task.h"
#include <string.h>
#include "frontend/frontend.h"

/* A kernel that `inspect` printed of a model is named after its family and its workload (driver/pipeline/model.c): it is of that
 * family still. */
static const char *family_of(tl_arena *arena, const char *name, const char *workload)
{
    enum { DIGITS = 8 };
    const size_t size = strlen(name);
    if (size <= DIGITS + 1 || name[size - DIGITS - 1] != '_' ||
        strncmp(name + size - DIGITS, workload, DIGITS) != 0)
        return name;
    return tl_arena_strndup(arena, name, size - DIGITS - 1);
}

void tl_tune_tasks_of_kernel(const tl_study *study, tl_tune_list *out)
{
    tl_arena *arena = study->arena;
    tl_tune_task *task = TL_NEW(arena, tl_tune_task);
    tl_measure_lowering *lowering = TL_NEW(arena, tl_measure_lowering);
    tl_measure_task *measure = TL_NEW(arena, tl_measure_task);
    tl_workload_info *info = TL_NEW(arena, tl_workload_info);
    char *keys = tl_arena_alloc(arena, 2 * 33, 1);
    double bound = tl_program_error_bound(study->naive);
    tl_workload_key(arena, study->naive, keys);
    tl_class_key(arena, study->naive, keys + 33);
    *lowering = (tl_measure_lowering){ .name = "direct",
                                       .program = tl_program_text(arena, study->naive),
                                       .rtol = bound,
                                       .ttol = bound };
    *measure = (tl_measure_task){ .name = study->naive->name,
                                  .workload = keys,
                                  .lowering_count = 1,
                                  .lowerings = lowering,
                                  .dim_count = study->naive->dim_count,
                                  .dims = study->dims };
    *info = (tl_workload_info){ .workload = keys,
                                .class_key = keys + 33,
                                .family = family_of(arena, study->naive->name, keys),
                                .name = study->naive->name,
                                .program = lowering->program,
                                .flops = study->flops,
                                .bytes = tl_program_bytes(study->naive) };
    *task = (tl_tune_task){ .measure = measure, .workload = info, .weight = 1 };
    *out = (tl_tune_list){ .count = 1, .tasks = task, .flops = study->flops };
}
