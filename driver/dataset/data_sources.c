/* driver/dataset/data_sources.c: models, one after the other, as tasks that outlive them. */
#include "driver/dataset/data_sources.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "driver/dataset/random_layers.h"
#include "driver/pipeline/model_tasks.h"
#include "driver/study/study.h"
#include "driver/tune/kernel_task.h"
#include "driver/tune/tune_run.h"
#include "models/zoo.h"
#include "runtime/base/array.h"
#include "runtime/base/map.h"
#include "runtime/base/random.h"

typedef struct {
    const tl_data_sources *sources;
    const tl_session_options *options;
    tl_session *session;
    tl_numerics numerics;
    tl_map *known; /* workloads */
    tl_tune_task *tasks;
    int count, capacity;
    int64_t constant_bytes;
} gathering;

static void add_task(gathering *g, const tl_tune_task *from)
{
    if (tl_map_has(g->known, from->measure->workload))
        return;
    tl_map_put(g->known, from->measure->workload, g);
    TL_ROOM(g->session->arena, g->tasks, g->count, g->capacity);
    g->tasks[g->count++] = *from;
}

/* Texts that are the model's are copied: it goes. */
static void copy_texts(tl_arena *arena, tl_tune_task *task)
{
    tl_measure_task *measure =
        tl_arena_copy(arena, task->measure, sizeof *measure, _Alignof(tl_measure_task));
    tl_workload_info *info =
        tl_arena_copy(arena, task->workload, sizeof *info, _Alignof(tl_workload_info));
    measure->name = tl_arena_strdup(arena, measure->name);
    info->name = tl_arena_strdup(arena, info->name);
    info->family = tl_arena_strdup(arena, info->family);
    task->measure = measure;
    task->workload = info;
}

static tl_status tasks_of_kernel(tl_session *session, const tl_session_options *common,
                                 const char *path, tl_tune_list *out, tl_diag *diag)
{
    tl_study study = { .arena = session->arena };
    tl_study_options options = { .kernel = path,
                                 .target = common->target,
                                 .machine = session->machine,
                                 .threads = common->threads };
    tl_status status = tl_study_open(&study, &options, diag);
    if (status == TL_OK)
        tl_tune_tasks_of_kernel(&study, out);
    tl_study_close(&study);
    return status;
}

tl_status tl_data_model_tasks(tl_session *session, const tl_session_options *common,
                              const char *path, tl_numerics numerics, tl_tune_list *out,
                              tl_diag *diag)
{
    tl_session_options untuned = *common;
    tl_model_options options = { .inspect_only = true, .no_cache = true, .no_database = true };
    tl_model *model = NULL;
    const tl_tune_filter all = { 0 };
    untuned.database = NULL;
    *out = (tl_tune_list){ 0 };
    if (tl_tune_is_kernel(path))
        return tasks_of_kernel(session, common, path, out, diag);
    TL_TRY(tl_session_model_options(session, &untuned, &options, diag));
    options.progress = NULL;
    tl_status status = tl_model_load(path, &options, &model, diag);
    if (status == TL_UNBOUND) {
        TL_TRY(tl_session_bind_shapes(session, path, &untuned, &options, diag));
        status = tl_model_load(path, &options, &model, diag);
    }
    if (status == TL_OK)
        status = tl_model_tasks(session->arena, model, numerics, &all, out, diag);
    tl_tune_task *tasks = TL_NEW_ARRAY(session->arena, tl_tune_task, out->count);
    for (int i = 0; status == TL_OK && i < out->count; i++) {
        tasks[i] = out->tasks[i];
        copy_texts(session->arena, &tasks[i]);
    }
    out->tasks = tasks;
    tl_model_destroy(model);
    return status;
}

static tl_status add_model(gathering *g, const char *path, tl_diag *diag)
{
    tl_tune_list list;
    TL_TRY(tl_data_model_tasks(g->session, g->options, path, g->numerics, &list, diag));
    for (int i = 0; i < list.count; i++)
        add_task(g, &list.tasks[i]);
    if (list.constant_bytes > g->constant_bytes)
        g->constant_bytes = list.constant_bytes;
    return TL_OK;
}

/* The network as it is, at three quarters of its size, and at half of it four at a time. */
static tl_status add_zoo(gathering *g, const tl_zoo_model *model, const char *path, tl_diag *diag)
{
    static const struct {
        int64_t quarters, batch;
    } sizes[] = { { 4, 1 }, { 3, 1 }, { 2, 4 } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t step = model->multiple > 1 ? model->multiple : 1;
        int64_t size = model->size * sizes[i].quarters / 4 / step * step;
        size = size < model->least ? model->least : size;
        const tl_zoo_size chosen = {
            .batch = sizes[i].batch, .height = size, .width = size, .length = size
        };
        tl_onnx_build *b = tl_onnx_build_create(model->name, 17, 1);
        if (b == NULL)
            return tl_fail(diag, TL_NO_MEMORY, "out of memory");
        model->build(b, model->name, &chosen);
        tl_status status = tl_onnx_build_write(b, path, diag);
        tl_onnx_build_destroy(b);
        if (status == TL_OK)
            status = add_model(g, path, diag);
        TL_TRY(status);
        tl_progress("tasks: %d, %s at %lld", g->count, model->name, (long long)size);
    }
    return TL_OK;
}

/* Models that are made here go through a file that is gone afterwards. */
static tl_status add_made(gathering *g, tl_diag *diag)
{
    const char *folder = getenv("TMPDIR");
    tl_text path = { 0 };
    tl_text_format(&path, "%s/tilth-data-XXXXXX", folder != NULL && folder[0] ? folder : "/tmp");
    if (path.failed || mkdtemp(path.data) == NULL) {
        tl_text_free(&path);
        return tl_fail(diag, TL_IO, "no folder can be made in %s",
                       folder != NULL && folder[0] ? folder : "/tmp");
    }
    tl_text file = { 0 };
    tl_text_format(&file, "%s/model.onnx", path.data);
    tl_status status = TL_OK;
    for (int i = 0; g->sources->zoo && i < tl_zoo_count && status == TL_OK; i++)
        status = add_zoo(g, &tl_zoo[i], tl_text_get(&file), diag);
    for (int i = 0; i < g->sources->layers && status == TL_OK; i++) {
        status = tl_random_layers_write(g->sources->seed, i, tl_text_get(&file), diag);
        if (status == TL_OK)
            status = add_model(g, tl_text_get(&file), diag);
        tl_progress("tasks: %d, layers of random shapes", g->count);
    }
    unlink(tl_text_get(&file));
    rmdir(path.data);
    tl_text_free(&file);
    tl_text_free(&path);
    return status;
}

static void shuffle(gathering *g)
{
    tl_random random = tl_random_make(g->sources->seed ^ 0x7461736b73u);
    for (int i = g->count - 1; i > 0; i--) {
        int k = (int)tl_random_below(&random, i + 1);
        tl_tune_task was = g->tasks[i];
        g->tasks[i] = g->tasks[k];
        g->tasks[k] = was;
    }
}

tl_status tl_data_tasks(const tl_data_sources *sources, const tl_session_options *options,
                        tl_session *session, tl_numerics numerics, const tl_tune_task **out,
                        int *count, int64_t *constant_bytes, tl_diag *diag)
{
    gathering g = { .sources = sources,
                    .options = options,
                    .session = session,
                    .numerics = numerics,
                    .known = tl_map_create(session->arena) };
    for (int i = 0; i < sources->path_count; i++) {
        tl_progress("tasks: %d, %s", g.count, sources->paths[i]);
        TL_TRY(add_model(&g, sources->paths[i], diag));
    }
    if (sources->zoo || sources->layers > 0)
        TL_TRY(add_made(&g, diag));
    tl_progress_done();
    shuffle(&g);
    *out = g.tasks;
    *count = g.count;
    *constant_bytes = g.constant_bytes;
    return TL_OK;
}
