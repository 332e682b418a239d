/* tuner/model/tune_list.c: what there is to tune: the kernels of models as tasks. */
#include "tuner/model/tune_list.h"
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/checked.h"
#include "runtime/base/map.h"

bool tl_tune_filter_passes(const tl_tune_filter *filter, const char *name, const char *family)
{
    return filter->pattern == NULL || fnmatch(filter->pattern, name, 0) == 0 ||
           fnmatch(filter->pattern, family, 0) == 0;
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

void tl_tune_tasks_sort(tl_tune_task *tasks, int count)
{
    if (count > 0)
        qsort(tasks, (size_t)count, sizeof *tasks, heaviest_first);
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
    tl_tune_tasks_sort(tasks, out->count);
    if (filter->top > 0 && filter->top < out->count) {
        out->left_out += out->count - (int)filter->top;
        out->count = (int)filter->top;
    }
    return TL_OK;
}

void tl_tune_tasks_split(tl_arena *arena, const tl_tune_list *list, tl_tune_list *out)
{
    int count = 0;
    for (int i = 0; i < list->count; i++)
        count += list->tasks[i].measure->lowering_count;
    tl_tune_task *tasks = TL_NEW_ARRAY(arena, tl_tune_task, count);
    *out = *list;
    out->tasks = tasks;
    out->count = 0;
    for (int i = 0; i < list->count; i++)
        for (int k = 0; k < list->tasks[i].measure->lowering_count; k++) {
            tl_measure_task *measure = TL_NEW(arena, tl_measure_task);
            *measure = *list->tasks[i].measure;
            measure->lowerings += k;
            measure->lowering_count = 1;
            tasks[out->count] = list->tasks[i];
            tasks[out->count].measure = measure;
            tasks[out->count++].untuned = 0;
        }
}
