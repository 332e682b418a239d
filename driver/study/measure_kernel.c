/* driver/study/measure_kernel.c: compiles a program, gives it arguments, runs it on the pool's threads and times it. */
#include "driver/study/measure_kernel.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "codegen/codegen.h"
#include "runtime/base/checked.h"
#include "runtime/base/random.h"
#include "runtime/base/clock.h"
#include "runtime/device/peak.h"

struct tl_version {
    tl_pool *pool;
    int threads;
    double flops;
    tl_jit *jit;
    tl_jit_kernel *code;
    tl_descriptor descriptor;
    int64_t *extents;
    void **buffers; /* arguments, then prepared ones, which are its own */
    int first_prepared, buffer_count;
    void *scratch, *thread_scratch;
    tl_kernel_args args;
};

static void *aligned(int64_t bytes)
{
    return aligned_alloc(64, ((size_t)(bytes > 0 ? bytes : 1) + 127) / 64 * 64);
}

/* Arguments. */

static void fill(const tl_buffer *b, void *data, int64_t elements, uint64_t seed)
{
    tl_random random = tl_random_make(seed);
    for (int64_t i = 0; i < elements; i++) {
        tl_number value;
        if (tl_dtype_is_float(b->dtype))
            value.f = tl_random_unit(&random) - 0.5;
        else
            value.i = tl_random_below(&random, 5);
        tl_number_store(b->dtype, data, (size_t)i, value);
    }
}

void tl_arguments_reset(const tl_study *study, tl_arguments *arguments)
{
    for (int i = 0; i < arguments->count; i++) {
        const tl_buffer *b = study->naive->params[i];
        size_t bytes = (size_t)tl_storage_bytes(b->dtype, arguments->elements[i]);
        if (b->role == TL_ROLE_OUTPUT)
            memset(arguments->data[i], 0xFF, bytes); /* NaN, or -1: what nobody writes shows */
        else if (b->role == TL_ROLE_INOUT)
            fill(b, arguments->data[i], arguments->elements[i], (uint64_t)i + 1);
    }
}

tl_status tl_arguments_make(const tl_study *study, uint64_t seed, tl_arguments *out, tl_diag *diag)
{
    const tl_program *p = study->naive;
    *out = (tl_arguments){ .count = p->param_count };
    /* three sets at once while verifying; a machine that swaps answers nobody */
    int64_t most = (int64_t)sysconf(_SC_PHYS_PAGES) / 4 * sysconf(_SC_PAGESIZE), total = 0;
    out->data = TL_NEW_ARRAY(study->arena, void *, p->param_count);
    out->elements = TL_NEW_ARRAY(study->arena, int64_t, p->param_count);
    for (int i = 0; i < p->param_count; i++) {
        const tl_buffer *b = p->params[i];
        out->elements[i] = tl_study_elements(study, b);
        int64_t bytes = tl_storage_bytes(b->dtype, out->elements[i]);
        if (bytes < 0 || tl_add_overflows(total, bytes, &total) || total > most)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "parameter %s is too large to be run: arguments may take %lld MiB, a "
                           "quarter of this machine's memory",
                           b->name, (long long)(most >> 20));
        out->data[i] = aligned(bytes);
        if (out->data[i] == NULL)
            return tl_fail(diag, TL_NO_MEMORY, "no memory for the %lld bytes of %s",
                           (long long)bytes, b->name);
        if (b->role != TL_ROLE_OUTPUT)
            fill(b, out->data[i], out->elements[i], seed + (uint64_t)i);
    }
    tl_arguments_reset(study, out);
    return TL_OK;
}

void tl_arguments_free(tl_arguments *arguments)
{
    for (int i = 0; i < arguments->count; i++)
        free(arguments->data[i]);
    *arguments = (tl_arguments){ 0 };
}

/* Versions. */

static void run_team(tl_team *team, void *context)
{
    const tl_version *v = context;
    for (int p = 0; p < v->descriptor.phase_count; p++) {
        tl_part part = tl_team_range(v->extents[p], team->thread, team->threads);
        if (p > 0)
            tl_team_barrier(team);
        if (part.begin < part.end)
            tl_jit_phase(v->code, p)(&v->args, part.begin, part.end, team->thread);
    }
}

void tl_version_run(tl_version *v)
{
    tl_pool_run(v->pool, v->threads, run_team, v);
}

/* One part of the program (the body, or what is prepared) ready to run. */
static tl_status load_part(const tl_study *study, const tl_program *program, bool prepare,
                           tl_version *v, tl_diag *diag)
{
    tl_text object = { 0 };
    tl_descriptor *d = &v->descriptor;
    tl_status status = tl_codegen_compile(study->arena, program, prepare, &study->target,
                                          TL_EMIT_OBJECT, &object, d, diag);
    if (status == TL_OK)
        status = tl_jit_add(v->jit, object.data, object.size, d, &v->code, diag);
    tl_text_free(&object);
    TL_TRY(status);

    int64_t shared = d->scratch_bytes, own = d->thread_scratch_bytes, all;
    v->extents = TL_NEW_ARRAY(study->arena, int64_t, d->phase_count);
    if (d->has_sizes)
        tl_jit_sizes(v->code)(study->dims, v->extents, &shared, &own);
    for (int p = 0; p < d->phase_count && !d->has_sizes; p++)
        v->extents[p] = d->extents[p];
    if (shared < 0 || own < 0 || own > INT64_MAX / 2 ||
        tl_mul_overflows(own = (own + 63) / 64 * 64, v->threads, &all))
        return tl_fail(diag, TL_BAD_ARGUMENT, "kernel %s: its temporaries are too large",
                       program->name);
    v->scratch = aligned(shared);
    v->thread_scratch = aligned(all);
    if (v->scratch == NULL || v->thread_scratch == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "no memory for temporaries of %lld bytes",
                       (long long)(shared + all));
    v->args = (tl_kernel_args){ v->buffers, study->dims, v->scratch, v->thread_scratch, own };
    return TL_OK;
}

static void unload_part(tl_version *v)
{
    free(v->scratch);
    free(v->thread_scratch);
    v->scratch = v->thread_scratch = NULL;
    if (v->code != NULL)
        tl_jit_remove(v->code);
    v->code = NULL;
}

static tl_status make_version(const tl_study *study, const tl_program *program,
                              const tl_arguments *arguments, tl_version *v, tl_diag *diag)
{
    v->buffers = TL_NEW_ARRAY(study->arena, void *, arguments->count + program->prepared_count);
    for (int i = 0; i < arguments->count; i++)
        v->buffers[i] = arguments->data[i];
    v->first_prepared = v->buffer_count = arguments->count;
    for (int i = 0; i < program->prepared_count; i++) {
        const tl_buffer *b = program->prepared[i];
        int64_t bytes = tl_storage_bytes(b->dtype, tl_study_elements(study, b));
        if (bytes < 0 || bytes > INT64_MAX / 2)
            return tl_fail(diag, TL_BAD_ARGUMENT, "prepared buffer %s is too large", b->name);
        v->buffers[v->buffer_count] = aligned(bytes);
        if (v->buffers[v->buffer_count++] == NULL)
            return tl_fail(diag, TL_NO_MEMORY, "no memory for the %lld bytes of %s",
                           (long long)bytes, b->name);
    }
    TL_TRY(tl_jit_create(&study->target, &v->jit, diag));
    if (program->prepare != NULL) {
        TL_TRY(load_part(study, program, true, v, diag));
        tl_version_run(v);
        unload_part(v);
    }
    return load_part(study, program, false, v, diag);
}

tl_status tl_version_make(const tl_study *study, const tl_program *program,
                          const tl_arguments *arguments, tl_version **out, tl_diag *diag)
{
    tl_version *v = TL_NEW(study->arena, tl_version);
    v->pool = study->pool;
    v->threads = study->threads;
    v->flops = (double)study->flops;
    tl_status status = make_version(study, program, arguments, v, diag);
    if (status != TL_OK)
        tl_version_free(v);
    else
        *out = v;
    return status;
}

void tl_version_free(tl_version *v)
{
    if (v == NULL)
        return;
    unload_part(v);
    for (int i = v->first_prepared; i < v->buffer_count; i++)
        free(v->buffers[i]);
    v->buffer_count = v->first_prepared;
    tl_jit_destroy(v->jit);
    v->jit = NULL;
}

/* Time. */

/* Runs for about `seconds`, at least once, in rounds with a sample of the peak on as many threads: the least of the times
 * over the largest peak, so that a disturbed sample makes nothing look better. Up to four times as long while the least
 * time still falls by percents: the machine is busy then. */
static void time_version(tl_version *v, double seconds, tl_speed *out)
{
    int64_t start = tl_clock_ns(), limit = (int64_t)(seconds * 1e9), slice = limit / 16;
    int64_t improved = start, now;
    *out = (tl_speed){ .ns = 1e30 };
    tl_version_run(v); /* warm: pages, caches */
    do {
        double peak = tl_peak_gflops(v->pool, v->threads, 0, 0.005);
        out->peak_gflops = peak > out->peak_gflops ? peak : out->peak_gflops;
        int64_t begin = tl_clock_ns(), before = begin, after;
        do {
            tl_version_run(v);
            after = tl_clock_ns();
            if ((double)(after - before) < 0.99 * out->ns)
                improved = after;
            out->ns = (double)(after - before) < out->ns ? (double)(after - before) : out->ns;
            before = after;
            out->runs++;
        } while (after - begin < slice);
        now = tl_clock_ns();
    } while (now - start < limit || (now - start < 4 * limit && now - improved < limit / 2));
    out->ns = out->ns > 1 ? out->ns : 1;
    out->gflops = v->flops / out->ns;
    if (out->peak_gflops > 0)
        out->percent_of_peak = 100 * out->gflops / out->peak_gflops;
}

enum { MOST_TURNS = 512 };

/* The least time of a run, of as many as `slice` has room for, at least one. */
static double time_slice(tl_version *v, int64_t slice)
{
    int64_t begin = tl_clock_ns(), before = begin, after;
    double least = 1e30;
    do {
        tl_version_run(v);
        after = tl_clock_ns();
        least = fmin(least, (double)(after - before));
        before = after;
    } while (after - begin < slice);
    return least > 1 ? least : 1;
}

static void time_turns(tl_version *standard, tl_version *v, double seconds, tl_beside *out)
{
    double ratios[MOST_TURNS];
    int64_t start = tl_clock_ns(), limit = (int64_t)(seconds * 1e9), slice = limit / 64;
    *out = (tl_beside){ .ns = 1e30, .standard_ns = 1e30 };
    tl_version_run(standard); /* warm: pages, caches */
    tl_version_run(v);
    do {
        double first = time_slice(standard, slice), second = time_slice(v, slice);
        ratios[out->turns++] = first / second;
        out->standard_ns = fmin(out->standard_ns, first);
        out->ns = fmin(out->ns, second);
    } while (tl_clock_ns() - start < limit && out->turns < MOST_TURNS);
    out->speedup = tl_median_interval(ratios, out->turns);
}

tl_status tl_measure_beside(const tl_study *study, const tl_program *standard,
                            const tl_program *program, double seconds, tl_beside *out,
                            tl_diag *diag)
{
    tl_arguments arguments;
    tl_version *first = NULL, *second = NULL;
    tl_status status = tl_arguments_make(study, 1, &arguments, diag);
    if (status == TL_OK)
        status = tl_version_make(study, standard, &arguments, &first, diag);
    if (status == TL_OK)
        status = tl_version_make(study, program, &arguments, &second, diag);
    if (status == TL_OK)
        time_turns(first, second, seconds, out);
    tl_version_free(first);
    tl_version_free(second);
    tl_arguments_free(&arguments);
    return status;
}

tl_status tl_measure_program(const tl_study *study, const tl_program *program, double seconds,
                             tl_speed *out, tl_diag *diag)
{
    tl_arguments arguments;
    tl_version *version = NULL;
    tl_status status = tl_arguments_make(study, 1, &arguments, diag);
    if (status == TL_OK)
        status = tl_version_make(study, program, &arguments, &version, diag);
    if (status == TL_OK)
        time_version(version, seconds, out);
    tl_version_free(version);
    tl_arguments_free(&arguments);
    return status;
}
