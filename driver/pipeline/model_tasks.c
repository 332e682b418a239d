/* driver/pipeline/model_tasks.c: the kernels of a model as tasks of the tuner. */
#include "driver/pipeline/model_tasks.h"
#include <string.h>

tl_status tl_model_task_of_kernel(tl_arena *arena, const tl_kernel *kernel, const tl_target *target,
                                  tl_numerics numerics, tl_tune_task *out, tl_diag *diag)
{
    const tl_kernel_lowering *found;
    int count;
    TL_TRY(tl_kernel_lowerings(arena, kernel, numerics, &found, &count, diag));
    tl_measure_lowering *lowerings = TL_NEW_ARRAY(arena, tl_measure_lowering, count);
    tl_measure_task *measure = TL_NEW(arena, tl_measure_task);
    tl_workload_info *info = TL_NEW(arena, tl_workload_info);
    char *keys = tl_arena_alloc(arena, 2 * 33, 1);
    const char *chosen = tl_choose_lowering(kernel, target, numerics);
    *out = (tl_tune_task){ .measure = measure, .workload = info };
    for (int i = 0; i < count; i++) {
        lowerings[i] = (tl_measure_lowering){ .name = found[i].name,
                                              .program = found[i].text,
                                              .rtol = found[i].rtol,
                                              .ttol = found[i].ttol };
        if (strcmp(found[i].name, chosen) == 0)
            out->untuned = i;
    }
    tl_workload_key(arena, found[0].program, keys);
    tl_class_key(arena, found[0].program, keys + 33);
    *measure = (tl_measure_task){
        .name = kernel->name, .workload = keys, .lowering_count = count, .lowerings = lowerings
    };
    *info = (tl_workload_info){ .workload = keys,
                                .class_key = keys + 33,
                                .family = kernel->family,
                                .name = kernel->name,
                                .program = found[0].text,
                                .flops = tl_program_flops(found[0].program),
                                .bytes = tl_program_bytes(found[0].program) };
    return TL_OK;
}

static int64_t size_in_bytes(const tl_buffer *b)
{
    return tl_buffer_max_bytes(b);
}

/* What a run of the program reads of constants: packed ones where it packs them. */
static int64_t constant_bytes(const tl_program *program)
{
    int64_t bytes = 0;
    for (int i = 0; i < program->prepared_count; i++)
        bytes += size_in_bytes(program->prepared[i]);
    for (int i = 0; i < program->param_count && program->prepared_count == 0; i++)
        if (program->params[i]->role == TL_ROLE_CONST)
            bytes += size_in_bytes(program->params[i]);
    return bytes;
}

tl_status tl_model_tasks(tl_arena *arena, const tl_model *model, tl_numerics numerics,
                         const tl_tune_filter *filter, tl_tune_list *out, tl_diag *diag)
{
    const tl_model_facts *facts = tl_model_get_facts(model);
    tl_tune_task *tasks = TL_NEW_ARRAY(arena, tl_tune_task, facts->kernel_count);
    int *task_of = TL_NEW_ARRAY(arena, int, facts->kernel_count);
    *out = (tl_tune_list){ .tasks = tasks, .flops = facts->flops };
    for (int i = 0; i < facts->kernel_count; i++) {
        const tl_model_kernel *k = &facts->kernels[i];
        task_of[i] = k->same_as < i ? task_of[k->same_as] : -1;
        if (k->same_as == i && tl_tune_filter_passes(filter, k->kernel->name, k->kernel->family)) {
            task_of[i] = out->count;
            TL_TRY(tl_model_task_of_kernel(arena, k->kernel, facts->target, numerics,
                                           &tasks[out->count++], diag));
        } else if (k->same_as == i) {
            out->left_out++;
        }
        out->constant_bytes += constant_bytes(k->scheduled);
        if (task_of[i] >= 0)
            tasks[task_of[i]].weight++;
    }
    tl_tune_tasks_sort(tasks, out->count);
    return TL_OK;
}
