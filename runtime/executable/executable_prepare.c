/* runtime/executable/executable_prepare.c: computing the PREPARED values, once. */
#include <sys/mman.h>
#include <unistd.h>
#include "runtime/base/pages.h"
#include "runtime/executable/device_run.h"
#include "runtime/executable/executable_private.h"

static tl_status take_memory(tl_executable *x, tl_diag *diag)
{
    if (x->prepared_size == 0)
        return TL_OK;
    x->prepared = tl_pages_take((size_t)x->prepared_size);
    if (x->prepared == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "no memory for %lld bytes of prepared constants",
                       (long long)x->prepared_size);
    return TL_OK;
}

static tl_status run_steps(tl_executable *x, const tl_executable_step *steps, int count,
                           tl_pool *pool, int threads, tl_diag *diag)
{
    tl_runner *runner;
    tl_device_run *run;

    for (int i = 1; i < count; i++)
        if (tl_step_is_on_device(&x->spec, &steps[i]) != tl_step_is_on_device(&x->spec, &steps[0]))
            return tl_fail(diag, TL_UNSUPPORTED,
                           "prepare steps %s and %s share memory, one on the CPU and one on %s",
                           steps[0].name, steps[i].name, x->spec.device);
    if (tl_step_is_on_device(&x->spec, &steps[0])) {
        TL_TRY(tl_device_run_make(x, steps, count, NULL, &run, diag));
        tl_status status = tl_device_run_prepare(run, x->prepared, diag);
        tl_device_run_drop(run);
        return status;
    }
    TL_TRY(tl_runner_build(x, steps, count, pool, threads, &runner, diag));
    tl_runner_run_all(runner);
    tl_runner_destroy(runner);
    return TL_OK;
}

static bool uses_arena(const tl_executable *x)
{
    for (int i = 0; i < x->spec.value_count; i++)
        if (x->in_prepare[i] && x->spec.values[i].place == TL_PLACE_ARENA)
            return true;
    return false;
}

/* A weight that was packed is not read again soon: its pages of the model's file leave our memory, so that the file and
 * its packed copy are not both there as a whole. They stay in the system's cache, for the next load and in case a step
 * does read them (MADV_PAGEOUT would drop them there, too: the next cold load of a ResNet-50 then reads 100 MB from disk). */
static void let_go(const tl_executable *x, const tl_executable_step *step)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < step->value_count; i++) {
        const tl_executable_value *v =
            step->values[i] == TL_NO_VALUE ? NULL : &x->spec.values[step->values[i]];
        if (v == NULL || v->place != TL_PLACE_CONSTANT || v->file == NULL || v->size <= 0)
            continue;
        uintptr_t begin = ((uintptr_t)v->data + page - 1) / page * page;
        uintptr_t end = ((uintptr_t)v->data + (uintptr_t)v->size) / page * page;
        if (begin < end)
            madvise((void *)begin, end - begin, MADV_DONTNEED);
    }
}

/* One after another when they do not hand anything on: no more than one constant is then copied,
 * and one kernel's scratch there, at a time. */
static tl_status run_prepare_steps(tl_executable *x, tl_pool *pool, int threads, tl_diag *diag)
{
    if (uses_arena(x))
        return run_steps(x, x->spec.prepare, x->spec.prepare_count, pool, threads, diag);
    for (int i = 0; i < x->spec.prepare_count; i++) {
        TL_TRY(run_steps(x, &x->spec.prepare[i], 1, pool, threads, diag));
        let_go(x, &x->spec.prepare[i]);
    }
    return TL_OK;
}

/* The model's own files were read for the last time when no step uses them: their pages may go. */
static void forget_model_files(const tl_executable *x)
{
    for (int i = 0; i < x->spec.value_count; i++)
        if (x->in_steps[i] && x->spec.values[i].file != NULL && x->copies[i] == NULL)
            return;
    for (int i = 0; i < x->model_file_count; i++)
        madvise((void *)x->model_files[i].data, x->model_files[i].size, MADV_DONTNEED);
}

static tl_status prepare(tl_executable *x, tl_pool *pool, int threads, tl_diag *diag)
{
    if (atomic_load(&x->is_prepared))
        return TL_OK;
    TL_TRY(take_memory(x, diag));
    tl_status status = run_prepare_steps(x, pool, threads, diag);
    if (status != TL_OK) {
        tl_pages_give(x->prepared, (size_t)x->prepared_size);
        x->prepared = NULL;
        return status;
    }
    if (x->device != NULL && (status = tl_executable_upload_prepared(x, diag)) != TL_OK)
        return status;
    if (x->prepared != NULL)
        mprotect(x->prepared, (size_t)x->prepared_size, PROT_READ);
    atomic_store(&x->is_prepared, true);
    forget_model_files(x);
    if (x->folder != NULL) /* a folder that cannot be written: the next load prepares again */
        (void)tl_prepared_write(x->folder, x->identity, x->prepared, x->prepared_size, false, NULL);
    return TL_OK;
}

tl_status tl_executable_prepare(tl_executable *x, tl_pool *pool, int threads, tl_diag *diag)
{
    pthread_mutex_lock(&x->lock);
    tl_status status = prepare(x, pool, threads, diag);
    pthread_mutex_unlock(&x->lock);
    if (status != TL_OK)
        tl_context(diag, "preparing the constants of %s", x->spec.model);
    return status;
}
