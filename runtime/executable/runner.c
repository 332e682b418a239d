/* runtime/executable/runner.c: running the steps of an executable.
 *
 * What can be decided once is decided when the runner is made, and again where the executable's dims
 * change: extents and scratch of every kernel, the memory plan, every pointer that does not belong to
 * the caller, and each thread's share of each phase. A run fills in the caller's pointers; then the threads walk the list of
 * phases together. Two neighbouring phases of one iteration each run on the same thread and need
 * no meeting between them. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/checked.h"
#include "runtime/base/pages.h"
#include "runtime/base/clock.h"
#include "runtime/executable/executable_private.h"
#include "runtime/base/float_mode.h"

enum { COPY_BLOCK = 4096 };

/* One phase of one step. */
typedef struct {
    tl_phase_fn *fn;
    const tl_kernel_args *args;
    int64_t extent;
    bool meet; /* all threads wait for each other afterwards */
} phase_call;

/* A place in `slots` that gets the caller's pointer for a port. */
typedef struct {
    void **slot;
    int port;
    int64_t offset; /* of a window */
} patch;

/* What the kernels say of themselves, for the dims of each step. */
typedef struct {
    int64_t *extents;                  /* of all phases, in the order of the calls */
    int64_t *scratch, *thread_scratch; /* one a step */
    int64_t *copied;                   /* one a step: the bytes of a copy */
} step_sizes;

struct tl_runner {
    const tl_executable *executable;
    const tl_executable_step *steps;
    int step_count;
    tl_pool *pool;
    int threads;
    tl_arena *arena;      /* of this structure's lists */
    tl_kernel_args *args; /* one a step */
    void **slots;         /* the buffers of all steps, one after another */
    int *first_slot;      /* one a step */
    int *first_call;      /* one a step, and the end */
    phase_call *calls;
    tl_part *ranges; /* call c, thread t: [c*threads + t] */
    patch *inputs, *outputs;
    int input_patches, output_patches;
    /* the values that have the storage of what the steps use, in order: a runner of one step costs nothing for the
     * executable's others */
    int *storages;
    int storage_count;
    /* one a storage: an aligned copy of a constant for the prepare steps, or NULL */
    void **copies;
    int64_t dims[TL_MOST_DIMS];
    step_sizes sizes;
    tl_plan_buffer *buffers; /* of the plan: one a storage, then two a step */
    unsigned char *memory;   /* what the plan places */
    int64_t memory_size;
    tl_plan_sizes plan;
    atomic_flag busy;
};

/* The built-in kernel of TL_STEP_COPY; its dim is the size. */
static void copy_phase(const tl_kernel_args *args, int64_t begin, int64_t end, int thread)
{
    int64_t from = begin * COPY_BLOCK, to = tl_min64(end * COPY_BLOCK, args->dims[0]);

    (void)thread;
    memcpy((char *)args->buffers[1] + from, (const char *)args->buffers[0] + from,
           (size_t)(to - from));
}

static int phase_count(const tl_runner *r, int step)
{
    int kernel = r->steps[step].kernel;

    return kernel == TL_STEP_COPY ? 1 : r->executable->kernels[kernel].descriptor.phase_count;
}

/* Of a value for the dims that the runner has; -1: it overflows. */
static int64_t value_size(const tl_runner *r, const tl_executable_value *v)
{
    int64_t size;
    return tl_executable_size_at(v, r->executable->spec.dim_count, r->dims, &size) ? size : -1;
}

static const int64_t *step_dims(const tl_runner *r, int step)
{
    return r->steps[step].dims != NULL ? r->steps[step].dims : r->dims;
}

static void measure_step(tl_runner *r, int step)
{
    assert(step >= 0 && step < r->step_count);
    const tl_executable_step *s = &r->steps[step];
    step_sizes *sizes = &r->sizes;
    int64_t *extents = &sizes->extents[r->first_call[step]];

    if (s->kernel == TL_STEP_COPY) {
        sizes->copied[step] = value_size(r, &r->executable->spec.values[s->values[0]]);
        extents[0] = tl_ceildiv(sizes->copied[step], COPY_BLOCK);
        return;
    }
    const tl_executable_kernel *k = &r->executable->kernels[s->kernel];
    const tl_descriptor *d = &k->descriptor;
    if (d->has_sizes) {
        k->sizes(step_dims(r, step), extents, &sizes->scratch[step], &sizes->thread_scratch[step]);
        return;
    }
    for (int i = 0; i < d->phase_count; i++)
        extents[i] = d->extents[i];
    sizes->scratch[step] = d->scratch_bytes;
    sizes->thread_scratch[step] = d->thread_scratch_bytes;
}

/* Scratch of one thread, rounded so that no two threads share a line. */
static int64_t thread_stride(int64_t bytes)
{
    return tl_ceildiv(bytes, TL_DATA_ALIGNMENT) * TL_DATA_ALIGNMENT;
}

static int by_number(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

/* Where a value that has storage of its own stands among those that the steps use. */
static int position_of(const tl_runner *r, int value)
{
    const int *at = bsearch(&value, r->storages, (size_t)r->storage_count, sizeof value, by_number);

    assert(at != NULL);
    return (int)(at - r->storages);
}

/* The buffers of the plan: arena values (alive from the first to the last step that uses them or a window of theirs), then
 * each step's scratch and thread scratch. */
static tl_status fill_plan(const tl_runner *r, tl_diag *diag)
{
    const step_sizes *sizes = &r->sizes;
    tl_plan_buffer *buffers = r->buffers;
    int values = r->storage_count;

    for (int i = 0; i < values; i++)
        buffers[i] = (tl_plan_buffer){ .first = -1, .last = -1 };
    for (int s = 0; s < r->step_count; s++) {
        const tl_executable_step *step = &r->steps[s];
        for (int i = 0; i < step->value_count; i++) {
            if (step->values[i] == TL_NO_VALUE)
                continue;
            int value = tl_executable_storage(&r->executable->spec, step->values[i]);
            const tl_executable_value *v = &r->executable->spec.values[value];
            tl_plan_buffer *b = &buffers[position_of(r, value)];
            if (v->place != TL_PLACE_ARENA)
                continue;
            b->size = value_size(r, v);
            b->first = b->first < 0 ? s : b->first;
            b->last = s;
        }
        int64_t all_threads;
        if (sizes->scratch[s] < 0 || sizes->thread_scratch[s] < 0 ||
            sizes->thread_scratch[s] > INT64_MAX - TL_DATA_ALIGNMENT ||
            tl_mul_overflows(thread_stride(sizes->thread_scratch[s]), r->threads, &all_threads))
            return tl_fail(diag, TL_BAD_ARGUMENT, "step %s: its scratch is too large", step->name);
        buffers[values + 2 * s] = (tl_plan_buffer){ sizes->scratch[s], s, s, 0 };
        buffers[values + 2 * s + 1] = (tl_plan_buffer){ all_threads, s, s, 0 };
    }
    return TL_OK;
}

/* Memory for a plan of that many bytes. What a runner has is kept where it is large enough; where sizes vary and it has to
 * grow, it grows by a quarter at least, for the next call may be a little larger again. */
static tl_status take_memory(tl_runner *r, int64_t planned, tl_diag *diag)
{
    int64_t size = planned;

    if (planned <= r->memory_size)
        return TL_OK;
    if (r->memory_size > 0)
        size = tl_max64(planned, r->memory_size + r->memory_size / 4);
    unsigned char *memory = tl_pages_take((size_t)size);
    if (memory == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "no memory for %lld bytes of temporaries of %s",
                       (long long)planned, r->executable->spec.model);
    tl_pages_give(r->memory, (size_t)r->memory_size);
    r->memory = memory;
    r->memory_size = size;
    return TL_OK;
}

/* An aligned copy of a constant that only prepare steps use; lives as long as this runner. */
static tl_status constant_pointer(tl_runner *r, int value, void **out, tl_diag *diag)
{
    assert(value >= 0 && value < r->executable->spec.value_count);
    const tl_executable_value *v = &r->executable->spec.values[value];
    const void *data = r->executable->data[value];

    if (tl_constant_is_aligned(data, v->size)) {
        *out = (void *)data;
        return TL_OK;
    }
    void **copy = &r->copies[position_of(r, value)];
    if (*copy == NULL) {
        *copy = aligned_alloc(TL_DATA_ALIGNMENT, (size_t)thread_stride(v->size));
        if (*copy == NULL)
            return tl_fail(diag, TL_NO_MEMORY, "no memory for constant %s", v->name);
        memcpy(*copy, data, (size_t)v->size);
    }
    *out = *copy;
    return TL_OK;
}

static tl_status bind_value(tl_runner *r, int value, void **slot, tl_diag *diag)
{
    assert(value == TL_NO_VALUE || (value >= 0 && value < r->executable->spec.value_count));
    if (value == TL_NO_VALUE)
        return TL_OK;
    const tl_executable *x = r->executable;
    const tl_executable_value *window = &x->spec.values[value];
    int64_t offset = window->place == TL_PLACE_WINDOW ? window->offset : 0;
    value = tl_executable_storage(&x->spec, value);
    const tl_executable_value *v = &x->spec.values[value];
    switch (v->place) {
    case TL_PLACE_INPUT:
        r->inputs[r->input_patches++] = (patch){ slot, v->port, offset };
        return TL_OK;
    case TL_PLACE_OUTPUT:
        r->outputs[r->output_patches++] = (patch){ slot, v->port, offset };
        return TL_OK;
    case TL_PLACE_ARENA:
        /* not NULL, even when the value and the whole plan are empty */
        *slot = r->memory != NULL ? r->memory + r->buffers[position_of(r, value)].offset + offset
                                  : (unsigned char *)slot;
        return TL_OK;
    case TL_PLACE_CONSTANT:
        return constant_pointer(r, value, slot, diag);
    case TL_PLACE_PREPARED:
        *slot = x->prepared + x->prepared_offset[value];
        return TL_OK;
    case TL_PLACE_WINDOW:
    case TL_PLACE_COUNT:
        break;
    }
    return TL_OK;
}

static tl_status bind_steps(tl_runner *r, tl_diag *diag)
{
    const tl_executable *x = r->executable;
    const step_sizes *sizes = &r->sizes;

    r->input_patches = r->output_patches = 0;
    for (int s = 0; s < r->step_count; s++) {
        const tl_executable_step *step = &r->steps[s];
        const tl_plan_buffer *scratch = &r->buffers[r->storage_count + 2 * s];
        void **slots = &r->slots[r->first_slot[s]];
        bool is_copy = step->kernel == TL_STEP_COPY;
        for (int i = 0; i < step->value_count; i++)
            TL_TRY(bind_value(r, step->values[i], &slots[i], diag));
        r->args[s] = (tl_kernel_args){
            .buffers = slots,
            .dims = is_copy ? &sizes->copied[s] : step_dims(r, s),
            .scratch = scratch[0].size > 0 ? r->memory + scratch[0].offset : NULL,
            .thread_scratch = scratch[1].size > 0 ? r->memory + scratch[1].offset : NULL,
            .thread_scratch_stride = thread_stride(sizes->thread_scratch[s]),
        };
        for (int c = r->first_call[s]; c < r->first_call[s + 1]; c++)
            r->calls[c] = (phase_call){
                .fn = is_copy ? copy_phase : x->kernels[step->kernel].phases[c - r->first_call[s]],
                .args = &r->args[s],
                .extent = sizes->extents[c],
            };
    }
    return TL_OK;
}

static void divide_calls(tl_runner *r)
{
    int count = r->first_call[r->step_count];

    for (int c = 0; c < count; c++) {
        for (int t = 0; t < r->threads; t++)
            r->ranges[(size_t)c * (size_t)r->threads + (size_t)t] =
                tl_team_range(r->calls[c].extent, t, r->threads);
        r->calls[c].meet = c + 1 < count && (r->calls[c].extent > 1 || r->calls[c + 1].extent > 1);
    }
}

/* `slots` values are used by the steps, some more than once. */
static void list_storages(tl_runner *r, size_t slots)
{
    int count = 0;

    r->storages = TL_NEW_ARRAY(r->arena, int, slots);
    for (int s = 0; s < r->step_count; s++)
        for (int i = 0; i < r->steps[s].value_count; i++)
            if (r->steps[s].values[i] != TL_NO_VALUE)
                r->storages[count++] =
                    tl_executable_storage(&r->executable->spec, r->steps[s].values[i]);
    qsort(r->storages, (size_t)count, sizeof *r->storages, by_number);
    for (int i = 0; i < count; i++)
        if (i == 0 || r->storages[i] != r->storages[r->storage_count - 1])
            r->storages[r->storage_count++] = r->storages[i];
}

/* The lists, in the runner's arena: all of its allocation. */
static void make_lists(tl_runner *r)
{
    size_t slots = 0, calls = 0, steps = (size_t)r->step_count;

    r->first_slot = TL_NEW_ARRAY(r->arena, int, steps);
    r->first_call = TL_NEW_ARRAY(r->arena, int, steps + 1);
    for (int s = 0; s < r->step_count; s++) {
        r->first_slot[s] = (int)slots;
        r->first_call[s] = (int)calls;
        slots += (size_t)r->steps[s].value_count;
        calls += (size_t)phase_count(r, s);
    }
    r->first_call[steps] = (int)calls;
    r->args = TL_NEW_ARRAY(r->arena, tl_kernel_args, steps);
    r->slots = TL_NEW_ARRAY(r->arena, void *, slots);
    r->inputs = TL_NEW_ARRAY(r->arena, patch, slots);
    r->outputs = TL_NEW_ARRAY(r->arena, patch, slots);
    r->calls = TL_NEW_ARRAY(r->arena, phase_call, calls);
    r->ranges = TL_NEW_ARRAY(r->arena, tl_part, calls * (size_t)r->threads);
    list_storages(r, slots);
    size_t values = (size_t)r->storage_count;
    r->copies = TL_NEW_ARRAY(r->arena, void *, values);
    r->sizes.extents = TL_NEW_ARRAY(r->arena, int64_t, calls);
    r->sizes.scratch = TL_NEW_ARRAY(r->arena, int64_t, steps);
    r->sizes.thread_scratch = TL_NEW_ARRAY(r->arena, int64_t, steps);
    r->sizes.copied = TL_NEW_ARRAY(r->arena, int64_t, steps);
    r->buffers = TL_NEW_ARRAY(r->arena, tl_plan_buffer, values + 2 * steps);
}

static tl_status make_lists_guarded(tl_runner *r, tl_diag *diag)
{
    r->arena = tl_arena_create(0);
    if (r->arena == NULL || TL_ARENA_GUARD(r->arena))
        return tl_fail(diag, TL_NO_MEMORY, "runner: out of memory");
    make_lists(r);
    return TL_OK;
}

/* No value is larger than the port that it is. */
static tl_status check_port_values(const tl_runner *r, tl_diag *diag)
{
    const tl_executable_spec *spec = &r->executable->spec;
    int64_t shape[TL_TENSOR_MAX_RANK];

    for (int i = 0; i < r->storage_count && spec->dim_count > 0; i++) {
        const tl_executable_value *v = &spec->values[r->storages[i]];
        size_t size;
        if (v->place != TL_PLACE_INPUT && v->place != TL_PLACE_OUTPUT)
            continue;
        const tl_port *port =
            v->place == TL_PLACE_INPUT ? &spec->inputs[v->port] : &spec->outputs[v->port];
        if (!tl_port_at(port, spec->dim_count, r->dims, shape, &size) || value_size(r, v) < 0 ||
            (size_t)value_size(r, v) > size)
            return tl_fail(diag, TL_BAD_ARGUMENT, "%s has no shape, or none that holds it",
                           port->name);
    }
    return TL_OK;
}

/* All that depends on the dims. */
static tl_status bind(tl_runner *r, tl_diag *diag)
{
    TL_TRY(check_port_values(r, diag));
    for (int s = 0; s < r->step_count; s++)
        measure_step(r, s);
    TL_TRY(fill_plan(r, diag));
    TL_TRY(tl_memory_plan(r->buffers, r->storage_count + 2 * r->step_count, &r->plan, diag));
    TL_TRY(take_memory(r, r->plan.planned, diag));
    TL_TRY(bind_steps(r, diag));
    divide_calls(r);
    return TL_OK;
}

static tl_status build(tl_runner *r, tl_diag *diag)
{
    const tl_executable_spec *spec = &r->executable->spec;

    for (int i = 0; i < spec->dim_count; i++)
        r->dims[i] = spec->dims[i].start;
    TL_TRY(make_lists_guarded(r, diag));
    return bind(r, diag);
}

tl_status tl_runner_set_dims(tl_runner *r, const int64_t *dims, tl_diag *diag)
{
    const tl_executable_spec *spec = &r->executable->spec;
    int64_t before[TL_MOST_DIMS];
    size_t size = sizeof *dims * (size_t)spec->dim_count;

    if (spec->dim_count == 0 || memcmp(dims, r->dims, size) == 0)
        return TL_OK;
    for (int i = 0; i < spec->dim_count; i++) {
        const tl_executable_dim *d = &spec->dims[i];
        if (dims[i] < d->min || dims[i] > d->max)
            return tl_fail(diag, TL_BAD_ARGUMENT, "%s: %lld is not in %lld..%lld", d->name,
                           (long long)dims[i], (long long)d->min, (long long)d->max);
    }
    if (atomic_flag_test_and_set(&r->busy))
        return tl_fail(diag, TL_BAD_ARGUMENT, "this runner of %s is running already", spec->model);
    memcpy(before, r->dims, size);
    memcpy(r->dims, dims, size);
    tl_status status = bind(r, diag);
    if (status != TL_OK) { /* what was fits into the memory that is there */
        memcpy(r->dims, before, size);
        tl_status again = bind(r, NULL);
        status = again == TL_OK ? status : again;
    }
    atomic_flag_clear(&r->busy);
    return status;
}

const int64_t *tl_runner_dims(const tl_runner *r)
{
    return r->dims;
}

tl_status tl_runner_build(const tl_executable *executable, const tl_executable_step *steps,
                          int step_count, tl_pool *pool, int threads, tl_runner **out,
                          tl_diag *diag)
{
    TL_TRY(tl_pool_check(pool, threads, diag));
    tl_runner *r = calloc(1, sizeof *r);

    if (r == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "runner: out of memory");
    r->executable = executable;
    r->steps = steps;
    r->step_count = step_count;
    r->pool = pool;
    r->threads = tl_pool_threads(pool);
    if (threads > 0 && threads < r->threads)
        r->threads = threads;
    atomic_flag_clear(&r->busy);
    tl_status status = build(r, diag);
    if (status != TL_OK) {
        tl_runner_destroy(r);
        return status;
    }
    *out = r;
    return TL_OK;
}

tl_status tl_runner_create(const tl_executable *executable, tl_pool *pool, int threads,
                           tl_runner **out, tl_diag *diag)
{
    if (!tl_executable_is_prepared(executable))
        return tl_fail(diag, TL_BAD_ARGUMENT, "the executable of %s is not prepared",
                       executable->spec.model);
    return tl_runner_build(executable, executable->spec.steps, executable->spec.step_count, pool,
                           threads, out, diag);
}

void tl_runner_destroy(tl_runner *r)
{
    if (r == NULL)
        return;
    for (int i = 0; r->copies != NULL && i < r->storage_count; i++)
        free(r->copies[i]);
    tl_pages_give(r->memory, (size_t)r->memory_size);
    tl_arena_destroy(r->arena);
    free(r);
}

tl_plan_sizes tl_runner_memory(const tl_runner *r)
{
    return r->plan;
}

const tl_executable *tl_runner_executable(const tl_runner *r)
{
    return r->executable;
}

int tl_runner_threads(const tl_runner *r)
{
    return r->threads;
}

static void run_call(const tl_runner *r, int c, const tl_team *team)
{
    assert(c >= 0 && team->thread < team->threads);
    const phase_call *call = &r->calls[c];
    tl_part range = team->threads == r->threads
                        ? r->ranges[(size_t)c * (size_t)r->threads + (size_t)team->thread]
                        : tl_team_range(call->extent, team->thread, team->threads);

    if (range.begin < range.end)
        call->fn(call->args, range.begin, range.end, team->thread);
}

static void walk(tl_team *team, void *context)
{
    const tl_runner *r = context;
    int count = r->first_call[r->step_count];
    uint64_t mode = tl_float_mode_enter();

    for (int c = 0; c < count; c++) {
        run_call(r, c, team);
        if (r->calls[c].meet)
            tl_team_barrier(team);
    }
    tl_float_mode_leave(mode);
}

/* Some steps, a meeting after every phase, and the time of each step as thread 0 sees it. */
typedef struct {
    const tl_runner *runner;
    int first, end;
    int64_t *step_ns; /* [step], or NULL */
} timed_walk;

static void walk_timed(tl_team *team, void *context)
{
    const timed_walk *w = context;
    const tl_runner *r = w->runner;
    assert(w->first >= 0 && w->first <= w->end && w->end <= r->step_count);
    uint64_t mode = tl_float_mode_enter();

    tl_team_barrier(team); /* waking the others up is not part of the first step */
    int64_t before = tl_clock_ns();
    for (int s = w->first; s < w->end; s++) {
        for (int c = r->first_call[s]; c < r->first_call[s + 1]; c++) {
            run_call(r, c, team);
            tl_team_barrier(team);
        }
        if (team->thread == 0 && w->step_ns != NULL) {
            int64_t now = tl_clock_ns();
            w->step_ns[s] = now - before;
            before = now;
        }
    }
    tl_float_mode_leave(mode);
}

static double element(tl_dtype dtype, const void *data, size_t at)
{
    tl_number n = tl_number_load(dtype, data, at);
    return tl_dtype_is_float(dtype) ? n.f : (double)n.i;
}

/* Whether an input on whose value the code depends has that value. */
static tl_status check_fixed(const tl_port *port, const void *data, tl_diag *diag)
{
    size_t size = port->fixed != NULL ? tl_port_size(port) : 0;
    if (size == 0 || memcmp(port->fixed, data, size) == 0)
        return TL_OK;
    size_t at = 0, step = tl_dtype_size(port->dtype);
    while (memcmp((const char *)port->fixed + at * step, (const char *)data + at * step, step) == 0)
        at++;
    return tl_fail(diag, TL_BAD_ARGUMENT,
                   "shapes of the model depend on the value of input %s, and it was compiled for "
                   "another: element %zu was %.6g, but is %.6g",
                   port->name, at, element(port->dtype, port->fixed, at),
                   element(port->dtype, data, at));
}

static tl_status check_pointer(const tl_port *port, const void *pointer, tl_diag *diag)
{
    if (pointer == NULL || (uintptr_t)pointer % TL_DATA_ALIGNMENT != 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "the buffer of %s at %p is not aligned to %d bytes",
                       port->name, pointer, TL_DATA_ALIGNMENT);
    return TL_OK;
}

/* Takes the runner for this run and fills in the caller's pointers. */
static tl_status begin_run(tl_runner *r, const void *const *inputs, void *const *outputs,
                           tl_diag *diag)
{
    const tl_executable_spec *spec = &r->executable->spec;

    TL_TRY(tl_pool_check(r->pool, r->threads, diag));
    for (int i = 0; i < spec->input_count; i++) {
        TL_TRY(check_pointer(&spec->inputs[i], inputs[i], diag));
        TL_TRY(check_fixed(&spec->inputs[i], inputs[i], diag));
    }
    for (int i = 0; i < spec->output_count; i++)
        TL_TRY(check_pointer(&spec->outputs[i], outputs[i], diag));
    if (atomic_flag_test_and_set(&r->busy))
        return tl_fail(diag, TL_BAD_ARGUMENT, "this runner of %s is running already", spec->model);
    for (int i = 0; i < r->input_patches; i++)
        *r->inputs[i].slot = (char *)inputs[r->inputs[i].port] + r->inputs[i].offset;
    for (int i = 0; i < r->output_patches; i++)
        *r->outputs[i].slot = (char *)outputs[r->outputs[i].port] + r->outputs[i].offset;
    return TL_OK;
}

tl_status tl_runner_run(tl_runner *r, const void *const *inputs, void *const *outputs,
                        int64_t *step_ns, tl_diag *diag)
{
    TL_TRY(begin_run(r, inputs, outputs, diag));
    if (step_ns == NULL) {
        tl_pool_run(r->pool, r->threads, walk, r);
    } else {
        timed_walk w = { r, 0, r->step_count, step_ns };
        tl_pool_run(r->pool, r->threads, walk_timed, &w);
    }
    atomic_flag_clear(&r->busy);
    return TL_OK;
}

/* A walk that keeps the time of every call: [call*threads + thread]; end_ns 0: that thread had no part in it. */
typedef struct {
    const tl_runner *runner;
    tl_run_event *events;
} traced_walk;

static void walk_traced(tl_team *team, void *context)
{
    const traced_walk *w = context;
    const tl_runner *r = w->runner;
    uint64_t mode = tl_float_mode_enter();

    for (int s = 0; s < r->step_count; s++)
        for (int c = r->first_call[s]; c < r->first_call[s + 1]; c++) {
            tl_part part = tl_team_range(r->calls[c].extent, team->thread, team->threads);
            int64_t begun = tl_clock_ns();
            run_call(r, c, team);
            if (part.begin < part.end)
                w->events[(size_t)c * (size_t)r->threads + (size_t)team->thread] =
                    (tl_run_event){ s, c - r->first_call[s], team->thread, begun, tl_clock_ns() };
            if (r->calls[c].meet)
                tl_team_barrier(team);
        }
    tl_float_mode_leave(mode);
}

int tl_runner_event_limit(const tl_runner *r)
{
    return r->first_call[r->step_count] * r->threads;
}

tl_status tl_runner_run_traced(tl_runner *r, const void *const *inputs, void *const *outputs,
                               tl_run_event *events, int *count, tl_diag *diag)
{
    int limit = tl_runner_event_limit(r);
    traced_walk w = { r, events };

    *count = 0;
    memset(events, 0, sizeof *events * (size_t)limit);
    TL_TRY(begin_run(r, inputs, outputs, diag));
    tl_pool_run(r->pool, r->threads, walk_traced, &w);
    atomic_flag_clear(&r->busy);
    for (int i = 0; i < limit; i++)
        if (events[i].end_ns != 0)
            events[(*count)++] = events[i];
    return TL_OK;
}

void tl_runner_run_all(tl_runner *r)
{
    tl_pool_run(r->pool, r->threads, walk, r);
}

tl_status tl_runner_run_hooked(tl_runner *r, const void *const *inputs, void *const *outputs,
                               tl_step_hook *hook, void *user, tl_diag *diag)
{
    TL_TRY(begin_run(r, inputs, outputs, diag));
    for (int s = 0; s < r->step_count; s++) {
        timed_walk w = { r, s, s + 1, NULL };
        hook(user, s, false, &r->slots[r->first_slot[s]]);
        tl_pool_run(r->pool, r->threads, walk_timed, &w);
        hook(user, s, true, &r->slots[r->first_slot[s]]);
    }
    atomic_flag_clear(&r->busy);
    return TL_OK;
}
