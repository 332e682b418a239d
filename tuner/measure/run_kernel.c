/* tuner/measure/run_kernel.c: a built candidate made callable: code, scratch, prepared buffers. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/checked.h"
#include "tuner/measure/run_device.h"

static tl_status too_much(tl_diag *diag, const char *what, int64_t bytes)
{
    return tl_fail(diag, TL_NO_MEMORY, "its %s (%lld bytes) goes beyond the limit", what,
                   (long long)bytes);
}

static tl_status get_memory(int64_t bytes, int64_t *budget, const char *what, tl_guarded *out,
                            tl_diag *diag)
{
    if (bytes < 0 || bytes > *budget || !tl_guarded_create((size_t)bytes, out))
        return too_much(diag, what, bytes);
    *budget -= bytes;
    return TL_OK;
}

/* Scratch large enough for both parts of the kernel. */
static tl_status get_scratch(tl_runnable *r, const int64_t *dims, int threads, int64_t *budget,
                             tl_diag *diag)
{
    int64_t scratch = r->descriptor.scratch_bytes, own = r->descriptor.thread_scratch_bytes, all;
    if (tl_descriptor_is_gpu(&r->descriptor)) /* its own is on the device */
        scratch = own = 0;
    else if (r->descriptor.has_sizes)
        tl_jit_sizes(r->code)(dims, r->extents, &scratch, &own);
    else
        memcpy(r->extents, r->descriptor.extents,
               (size_t)r->descriptor.phase_count * sizeof *r->extents);
    scratch = tl_max64(scratch, r->prepare_descriptor.scratch_bytes);
    own = tl_max64(own, r->prepare_descriptor.thread_scratch_bytes);
    if (own < 0 || own > *budget)
        return too_much(diag, "scratch of a thread", own);
    r->thread_stride = tl_ceildiv(own, 64) * 64;
    if (tl_mul_overflows(r->thread_stride, threads, &all))
        return too_much(diag, "scratch of a thread", own);
    TL_TRY(get_memory(scratch, budget, "scratch", &r->scratch, diag));
    return get_memory(all, budget, "scratch of all threads", &r->thread_scratch, diag);
}

static tl_status load(tl_jit *jit, const void *object, size_t size, const char *json,
                      tl_arena *arena, tl_jit_kernel **code, tl_descriptor *descriptor,
                      tl_diag *diag)
{
    TL_TRY(tl_descriptor_parse(arena, json, descriptor, diag));
    return tl_jit_add(jit, object, size, descriptor, code, diag);
}

static tl_status prepare(tl_runnable *r, const tl_built *built, void *const *params,
                         int param_count, int64_t *budget, tl_diag *diag)
{
    assert(param_count >= 0 && param_count <= TL_MAX_PARAMS);
    void *buffers[2 * TL_MAX_PARAMS];
    memcpy(buffers, params, (size_t)param_count * sizeof *buffers);
    for (int i = 0; i < built->prepared_count; i++) {
        TL_TRY(
            get_memory(built->prepared_bytes[i], budget, "packed constant", &r->prepared[i], diag));
        r->prepared_count++;
        buffers[param_count + i] = r->prepared[i].data;
    }
    if (r->prepare_code == NULL)
        return TL_OK;
    const tl_descriptor *d = &r->prepare_descriptor;
    if (d->has_sizes)
        return tl_fail(diag, TL_UNSUPPORTED, "a prepare part that depends on dims");
    tl_kernel_args args = { .buffers = buffers,
                            .scratch = r->scratch.data,
                            .thread_scratch = r->thread_scratch.data,
                            .thread_scratch_stride = r->thread_stride };
    for (int p = 0; p < d->phase_count; p++)
        if (d->extents[p] > 0)
            tl_jit_phase(r->prepare_code, p)(&args, 0, d->extents[p], 0);
    for (int i = 0; i < r->prepared_count; i++)
        tl_guarded_protect(&r->prepared[i]);
    return TL_OK;
}

static tl_status set_up(tl_runnable *r, tl_jit *jit, tl_bench_device *bench, const tl_built *built,
                        const int64_t *dims, void *const *params, int param_count, int threads,
                        int64_t budget, tl_diag *diag)
{
    if (bench != NULL)
        TL_TRY(tl_descriptor_parse(r->arena, built->descriptor, &r->descriptor, diag));
    else
        TL_TRY(load(jit, built->object, built->object_size, built->descriptor, r->arena, &r->code,
                    &r->descriptor, diag));
    if (built->prepare_size > 0)
        TL_TRY(load(jit, built->prepare_object, built->prepare_size, built->prepare_descriptor,
                    r->arena, &r->prepare_code, &r->prepare_descriptor, diag));
    r->extents = TL_NEW_ARRAY(r->arena, int64_t, r->descriptor.phase_count);
    TL_TRY(get_scratch(r, dims, threads, &budget, diag));
    TL_TRY(prepare(r, built, params, param_count, &budget, diag));
    return bench == NULL ? TL_OK
                         : tl_bench_kernel_create(bench, built, &r->descriptor, dims, r->prepared,
                                                  r->prepared_count, &r->bench, diag);
}

tl_status tl_runnable_create(tl_jit *jit, tl_bench_device *bench, const tl_built *built,
                             const int64_t *dims, void *const *params, int param_count, int threads,
                             int64_t memory_bytes, tl_runnable **out, tl_diag *diag)
{
    tl_arena *arena = tl_arena_create(0);
    tl_runnable *r = calloc(1, sizeof *r);
    *out = NULL;
    if (arena == NULL || r == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        free(r);
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    }
    r->arena = arena;
    tl_status status =
        set_up(r, jit, bench, built, dims, params, param_count, threads, memory_bytes, diag);
    if (status != TL_OK) {
        tl_runnable_destroy(r);
        return status;
    }
    *out = r;
    return TL_OK;
}

void tl_runnable_destroy(tl_runnable *r)
{
    if (r == NULL)
        return;
    for (int i = 0; i < TL_MAX_PARAMS; i++)
        tl_guarded_free(&r->prepared[i]);
    tl_guarded_free(&r->copies.memory);
    tl_guarded_free(&r->scratch);
    tl_guarded_free(&r->thread_scratch);
    tl_bench_kernel_destroy(r->bench);
    tl_jit_remove(r->code);
    tl_jit_remove(r->prepare_code);
    tl_arena_destroy(r->arena);
    free(r);
}

static int64_t first_scratch_bytes(const tl_runnable *r)
{
    return tl_ceildiv((int64_t)r->scratch.size, 64) * 64;
}

int64_t tl_runnable_scratch_bytes(const tl_runnable *r)
{
    return first_scratch_bytes(r) + (int64_t)r->thread_scratch.size;
}

void tl_runnable_use_scratch(tl_runnable *r, unsigned char *data)
{
    size_t first = r->scratch.size, second = r->thread_scratch.size;
    tl_guarded_free(&r->scratch);
    tl_guarded_free(&r->thread_scratch);
    r->scratch = (tl_guarded){ .data = data, .size = first };
    r->thread_scratch = (tl_guarded){ .data = data + first_scratch_bytes(r), .size = second };
}

typedef struct {
    const tl_runnable *r;
    const tl_kernel_args *args;
} team_call;

static void run_team(tl_team *team, void *context)
{
    const team_call *call = context;
    const tl_runnable *r = call->r;
    for (int p = 0; p < r->descriptor.phase_count; p++) {
        tl_part part = tl_team_range(r->extents[p], team->thread, team->threads);
        if (p > 0)
            tl_team_barrier(team);
        if (part.begin < part.end)
            tl_jit_phase(r->code, p)(call->args, part.begin, part.end, team->thread);
    }
}

void tl_runnable_call(const tl_runnable *r, tl_pool *pool, int threads, void *const *buffers,
                      const int64_t *dims)
{
    assert(threads >= 0);
    tl_kernel_args args = { .buffers = buffers,
                            .dims = dims,
                            .scratch = r->scratch.data,
                            .thread_scratch = r->thread_scratch.data,
                            .thread_scratch_stride = r->thread_stride };
    team_call call = { r, &args };
    if (threads > 1) {
        tl_pool_run(pool, threads, run_team, &call);
        return;
    }
    for (int p = 0; p < r->descriptor.phase_count; p++)
        if (r->extents[p] > 0)
            tl_jit_phase(r->code, p)(&args, 0, r->extents[p], 0);
}
