/* driver/pipeline/compile_works.c: schedules and compiles the distinct workloads of a model, several at once. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "driver/pipeline/model_private.h"
#include "runtime/base/map.h"
#include "schedule/sketch/sketch.h"
#include "schedule/trace.h"

typedef struct {
    tl_model *model;
    const tl_model_options *options;
    atomic_int next, done;
    pthread_mutex_t progress;
} compile_job;

/* A device that runs modules of LLVM gets the code before its last step. */
static bool wants_module(const tl_model *model)
{
    return model->device != NULL && model->device->type->form == TL_FORM_LLVM;
}

static void module_key(char key[33])
{
    tl_digest digest;
    tl_digest_start(&digest);
    tl_digest_add(&digest, key, 32);
    tl_digest_add(&digest, "module", 6);
    tl_digest_text(&digest, key);
}

/* The object of a program (its body or its prepare part): from the cache, or compiled and put there. */
static tl_status get_object(tl_model *model, tl_work *work, bool prepare, bool use_cache,
                            tl_text *object, tl_descriptor *descriptor, char key[33])
{
    const tl_target *target = prepare ? &model->prepare_target : &model->target;
    bool as_module = !prepare && wants_module(model);
    tl_codegen_key(work->scheduled, prepare, target, key);
    if (as_module)
        module_key(key);
    tl_cached cached;
    if (use_cache && tl_cache_find(model->cache, key, &cached)) {
        tl_text_add_bytes(object, cached.object, cached.object_size);
        tl_status status = tl_descriptor_parse(work->arena, cached.descriptor, descriptor, NULL);
        tl_cached_free(&cached);
        if (status == TL_OK && !object->failed) {
            work->cached = true;
            return TL_OK;
        }
        tl_text_free(object); /* an entry that does not read is a miss */
    }
    TL_TRY(tl_codegen_compile(work->arena, work->scheduled, prepare, target,
                              as_module ? TL_EMIT_LLVM : TL_EMIT_OBJECT, object, descriptor,
                              &work->diag));
    if (use_cache) {
        tl_text json = { 0 };
        tl_descriptor_print(descriptor, &json);
        tl_cache_store(model->cache, key, object->data, object->size, tl_text_get(&json));
        tl_text_free(&json);
    }
    return TL_OK;
}

/* The recorded schedule (or the default one, without a pick) on the naive program. */
static tl_status schedule(const tl_model_options *options, const tl_work *work,
                          const tl_target *target, tl_schedule *s, tl_diag *diag)
{
    tl_trace *trace;
    if (work->pick == NULL)
        return options->naive || tl_graph_leaves_out(options->without, "schedule")
                   ? TL_OK
                   : tl_schedule_default(s, diag);
    TL_TRY(tl_trace_parse(work->arena, work->pick->trace, "the record", target, &trace, diag));
    return tl_trace_apply(trace, s, diag);
}

/* With the pick that the work has by now. */
static tl_status compile_once(tl_model *model, const tl_model_options *options, tl_work *work)
{
#ifdef NDEBUG
    const bool verify = false;
#else
    const bool verify = true;
#endif
    tl_schedule *s = tl_schedule_create(work->arena, work->naive, &model->target, verify);
    TL_TRY(schedule(options, work, &model->target, s, &work->diag));
    tl_text trace = { 0 };
    tl_trace_print(tl_schedule_trace(s), &trace);
    work->trace = tl_arena_strdup(work->arena, tl_text_get(&trace));
    tl_text_free(&trace);
    work->scheduled = tl_schedule_program(s);
    TL_TRY(tl_program_verify(work->scheduled, &work->diag));
    if (options->inspect_only)
        return TL_OK;

    bool use_cache = !options->no_cache;
    work->has_prepare = work->scheduled->prepare != NULL;
    TL_TRY(get_object(model, work, false, use_cache, &work->object, &work->descriptor, work->key));
    if (work->has_prepare)
        TL_TRY(get_object(model, work, true, use_cache, &work->prepare_object,
                          &work->prepare_descriptor, work->prepare_key));
    return TL_OK;
}

/* The naive program of the lowering that the record is about: one of those that are legal for the kernel. */
static tl_status lower(const tl_model *model, tl_work *work, tl_diag *diag)
{
    const tl_kernel_lowering *all;
    int count;
    if (strcmp(work->pick->lowering, work->lowering) == 0)
        return TL_OK;
    TL_TRY(tl_kernel_lowerings(work->arena, work->kernel, model->numerics, &all, &count, diag));
    for (int i = 0; i < count; i++)
        if (strcmp(all[i].name, work->pick->lowering) == 0) {
            work->naive = all[i].program;
            work->lowering = all[i].name;
            return TL_OK;
        }
    return tl_fail(diag, TL_UNSUPPORTED,
                   "record %s: '%.80s' is no lowering of it under %s numerics", work->pick->uid,
                   work->pick->lowering, tl_numerics_text(model->numerics));
}

/* A record that does not fit this compiler any more is a miss: the default schedule takes its place. */
static tl_status compile(tl_model *model, const tl_model_options *options, tl_work *work)
{
    work->arena = tl_arena_create(0);
    if (work->arena == NULL || TL_ARENA_GUARD(work->arena))
        return tl_fail(&work->diag, TL_NO_MEMORY, "out of memory");
    if (work->pick == NULL)
        return compile_once(model, options, work);

    const tl_program *naive = work->naive;
    const char *lowering = work->lowering;
    tl_status status = lower(model, work, &work->diag);
    if (status == TL_OK)
        status = compile_once(model, options, work);
    if (status == TL_OK)
        return TL_OK;
    work->miss = work->diag;
    work->diag.text[0] = '\0';
    work->naive = naive;
    work->lowering = lowering;
    work->pick = NULL;
    work->cached = false;
    tl_text_free(&work->object);
    tl_text_free(&work->prepare_object);
    return compile_once(model, options, work);
}

static void worker(tl_team *team, void *context)
{
    compile_job *job = context;
    (void)team;
    for (;;) {
        int i = atomic_fetch_add(&job->next, 1);
        if (i >= job->model->work_count)
            return;
        tl_work *work = &job->model->works[i];
        work->status = compile(job->model, job->options, work);
        int done = atomic_fetch_add(&job->done, 1) + 1;
        if (job->options->progress != NULL) {
            pthread_mutex_lock(&job->progress);
            job->options->progress(job->options->user, "compiling kernels", done,
                                   job->model->work_count);
            pthread_mutex_unlock(&job->progress);
        }
    }
}

/* What runs on this machine becomes callable: all of a CPU's, what packs constants of a device's. */
static tl_status link_works(tl_model *model, tl_diag *diag)
{
    bool is_device = tl_target_is_gpu(&model->target);
    TL_TRY(tl_jit_create(&model->prepare_target, &model->jit, diag));
    for (int i = 0; i < model->work_count; i++) {
        tl_work *work = &model->works[i];
        if (!is_device)
            TL_TRY(tl_jit_add(model->jit, work->object.data, work->object.size, &work->descriptor,
                              &work->jit, diag));
        if (work->has_prepare)
            TL_TRY(tl_jit_add(model->jit, work->prepare_object.data, work->prepare_object.size,
                              &work->prepare_descriptor, &work->prepare_jit, diag));
    }
    return TL_OK;
}

tl_status tl_compile_works(tl_model *model, const tl_model_options *options, tl_diag *diag)
{
    compile_job job = { .model = model, .options = options };
    pthread_mutex_init(&job.progress, NULL);
    tl_pool_run(options->pool, 0, worker, &job);
    pthread_mutex_destroy(&job.progress);

    for (int i = 0; i < model->work_count; i++) {
        tl_work *work = &model->works[i];
        if (work->status != TL_OK) {
            tl_fail(diag, work->status, "%s", work->diag.text);
            tl_context(diag, "kernel %s", work->naive->name);
            return work->status;
        }
        model->facts.objects_cached += work->cached;
        if (work->miss.text[0] != '\0' && options->note != NULL) {
            tl_diag note;
            snprintf(note.text, sizeof note.text, "kernel %s keeps its default schedule: %.800s",
                     work->name, work->miss.text);
            options->note(options->user, note.text);
        }
    }
    if (options->inspect_only)
        return TL_OK;

    return link_works(model, diag);
}
