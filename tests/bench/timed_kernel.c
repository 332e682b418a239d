#include "tests/bench/timed_kernel.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include "driver/pipeline/host_target.h"
#include "runtime/base/clock.h"
#include "runtime/device/topology.h"

void timed_must(tl_status status, const tl_diag *diag)
{
    if (status == TL_OK)
        return;
    fprintf(stderr, "%s\n", diag->text);
    exit(1);
}

void *timed_alloc(int64_t bytes)
{
    void *data = aligned_alloc(64, ((size_t)bytes + 127) / 64 * 64);
    if (data == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return data;
}

/* One thread stays on one core; several are pinned by the pool. */
static void pin(int threads)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)tl_topology_get()->core_processor[0], &set);
    if (threads == 1)
        sched_setaffinity(0, sizeof set, &set);
}

void timed_machine_make(const char *target, int threads, timed_machine *out)
{
    tl_diag diag = { 0 };
    *out = (timed_machine){ .threads = threads };
    timed_must(tl_target_resolve(target, &out->target, &diag), &diag);
    timed_must(tl_pool_create(&(tl_pool_options){ .threads = threads }, &out->pool, &diag), &diag);
    timed_must(tl_jit_create(&out->target, &out->jit, &diag), &diag);
    pin(threads);
}

void timed_machine_free(timed_machine *m)
{
    tl_jit_destroy(m->jit);
    tl_pool_destroy(m->pool);
}

static void run_team(tl_team *team, void *context)
{
    const timed_kernel *k = context;
    for (int p = 0; p < k->descriptor.phase_count; p++) {
        tl_part part = tl_team_range(k->descriptor.extents[p], team->thread, team->threads);
        if (p > 0)
            tl_team_barrier(team);
        if (part.begin < part.end)
            tl_jit_phase(k->body, p)(&k->args, part.begin, part.end, team->thread);
    }
}

static tl_status compile(timed_machine *m, tl_arena *arena, const tl_program *program, bool prepare,
                         tl_descriptor *descriptor, tl_jit_kernel **out, tl_diag *diag)
{
    tl_text object = { 0 };
    tl_status status = tl_codegen_compile(arena, program, prepare, &m->target, TL_EMIT_OBJECT,
                                          &object, descriptor, diag);
    if (status == TL_OK)
        status = tl_jit_add(m->jit, object.data, object.size, descriptor, out, diag);
    tl_text_free(&object);
    if (status == TL_OK && descriptor->has_sizes)
        return tl_fail(diag, TL_UNSUPPORTED, "%s has dims, which have no values here",
                       program->name);
    return status;
}

static void allocate(timed_kernel *k, int threads)
{
    const tl_descriptor *d = &k->descriptor;
    int64_t stride = (d->thread_scratch_bytes + 63) / 64 * 64;
    k->scratch = timed_alloc(d->scratch_bytes);
    k->thread_scratch = timed_alloc(stride * threads);
    k->args = (tl_kernel_args){ k->buffers, NULL, k->scratch, k->thread_scratch, stride };
}

static int64_t buffer_bytes(const tl_buffer *b)
{
    return tl_buffer_max_bytes(b);
}

void timed_kernel_make(timed_machine *m, tl_arena *arena, const tl_program *program,
                       void *const *arguments, timed_kernel *out)
{
    tl_diag diag = { 0 };
    *out = (timed_kernel){ .program = program, .best_ns = 1e30 };
    if (program->param_count + program->prepared_count > TIMED_BUFFERS)
        timed_must(tl_fail(&diag, TL_UNSUPPORTED, "%s has more than %d buffers", program->name,
                           TIMED_BUFFERS),
                   &diag);
    for (int i = 0; i < program->param_count; i++)
        out->buffers[out->buffer_count++] = arguments[i];
    out->first_prepared = out->buffer_count;
    for (int i = 0; i < program->prepared_count; i++)
        out->buffers[out->buffer_count++] = timed_alloc(buffer_bytes(program->prepared[i]));
    if (program->prepare != NULL) {
        timed_must(compile(m, arena, program, true, &out->descriptor, &out->body, &diag), &diag);
        allocate(out, m->threads);
        tl_pool_run(m->pool, 1, run_team, out);
        tl_jit_remove(out->body);
        free(out->scratch);
        free(out->thread_scratch);
    }
    timed_must(compile(m, arena, program, false, &out->descriptor, &out->body, &diag), &diag);
    allocate(out, m->threads);
}

void timed_kernel_run(timed_machine *m, timed_kernel *k)
{
    tl_pool_run(m->pool, m->threads, run_team, k);
}

void timed_kernel_slice(timed_machine *m, timed_kernel *k, double seconds)
{
    int64_t until = tl_clock_ns() + (int64_t)(seconds * 1e9);
    for (int64_t start = tl_clock_ns(), end; start < until; start = end) {
        timed_kernel_run(m, k);
        end = tl_clock_ns();
        if ((double)(end - start) < k->best_ns)
            k->best_ns = (double)(end - start);
    }
}

void timed_kernel_free(timed_kernel *k)
{
    for (int i = k->first_prepared; i < k->buffer_count; i++)
        free(k->buffers[i]);
    free(k->scratch);
    free(k->thread_scratch);
    tl_jit_remove(k->body);
}
