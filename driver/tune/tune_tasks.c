/* driver/tune/tune_tasks.c: kernels as tasks of the tuner. */
#include "driver/tune/tune_tasks.h"
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/checked.h"
#include "runtime/base/map.h"

static bool is_wanted(const tl_tune_filter *filter, const tl_kernel *kernel)
{
    return filter->pattern == NULL || fnmatch(filter->pattern, kernel->name, 0) == 0 ||
           fnmatch(filter->pattern, kernel->family, 0) == 0;
}

tl_status tl_tune_task_of_kernel(tl_arena *arena, const tl_kernel *kernel, const tl_target *target,
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

static double size_of(const tl_tune_task *t)
{
    return t->weight * (double)(t->workload->flops > t->workload->bytes ? t->workload->flops
                                                                        : t->workload->bytes);
}

static int heaviest_first(const void *a, const void *b)
{
    double x = size_of(a), y = size_of(b);
    return x != y ? (x < y ? 1 : -1)
                  : strcmp(((const tl_tune_task *)a)->workload->workload,
                           ((const tl_tune_task *)b)->workload->workload);
}

tl_status tl_tune_tasks_of_model(const tl_session *session, tl_numerics numerics,
                                 const tl_tune_filter *filter, tl_tune_list *out, tl_diag *diag)
{
    const tl_model_facts *facts = tl_model_get_facts(session->model);
    tl_tune_task *tasks = TL_NEW_ARRAY(session->arena, tl_tune_task, facts->kernel_count);
    int *task_of = TL_NEW_ARRAY(session->arena, int, facts->kernel_count);
    *out = (tl_tune_list){ .tasks = tasks, .flops = facts->flops };
    for (int i = 0; i < facts->kernel_count; i++) {
        const tl_model_kernel *k = &facts->kernels[i];
        task_of[i] = k->same_as < i ? task_of[k->same_as] : -1;
        if (k->same_as == i && is_wanted(filter, k->kernel)) {
            task_of[i] = out->count;
            TL_TRY(tl_tune_task_of_kernel(session->arena, k->kernel, facts->target, numerics,
                                          &tasks[out->count++], diag));
        } else if (k->same_as == i) {
            out->left_out++;
        }
        out->constant_bytes += constant_bytes(k->scheduled);
        if (task_of[i] >= 0)
            tasks[task_of[i]].weight++;
    }
    qsort(tasks, (size_t)out->count, sizeof *tasks, heaviest_first);
    return TL_OK;
}

tl_status tl_tune_tasks_join(tl_arena *arena, const tl_tune_list *const *lists, int list_count,
                             const tl_tune_filter *filter, tl_tune_list *out, tl_diag *diag)
{
    int most = 0;
    tl_map *seen = tl_map_create(arena);
    *out = (tl_tune_list){ 0 };
    for (int i = 0; i < list_count; i++) {
        most += lists[i]->count;
        out->left_out += lists[i]->left_out;
        out->flops += lists[i]->flops;
        out->constant_bytes = tl_max64(out->constant_bytes, lists[i]->constant_bytes);
    }
    if (most == 0)
        return tl_fail(
            diag, TL_BAD_ARGUMENT,
            "--tasks: '%s' matches none of the %d different kernels nor a family of them",
            filter->pattern != NULL ? filter->pattern : "*", out->left_out);
    tl_tune_task *tasks = TL_NEW_ARRAY(arena, tl_tune_task, most);
    out->tasks = tasks;
    for (int i = 0; i < list_count; i++)
        for (int k = 0; k < lists[i]->count; k++) {
            const tl_tune_task *task = &lists[i]->tasks[k];
            tl_tune_task *same = tl_map_find(seen, task->workload->workload);
            if (same != NULL) {
                same->weight += task->weight;
                continue;
            }
            tasks[out->count] = *task;
            tl_map_put(seen, task->workload->workload, &tasks[out->count++]);
        }
    qsort(tasks, (size_t)out->count, sizeof *tasks, heaviest_first);
    if (filter->top > 0 && filter->top < out->count) {
        out->left_out += out->count - (int)filter->top;
        out->count = (int)filter->top;
    }
    return TL_OK;
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
                                .family = study->naive->name,
                                .name = study->naive->name,
                                .program = lowering->program,
                                .flops = study->flops,
                                .bytes = tl_program_bytes(study->naive) };
    *task = (tl_tune_task){ .measure = measure, .workload = info, .weight = 1 };
    *out = (tl_tune_list){ .count = 1, .tasks = task, .flops = study->flops };
}
