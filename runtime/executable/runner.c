/* runtime/executable/runner.c: making what one caller needs to run the steps of an executable.
 *
 * What can be decided once is decided when the runner is made, and again where the executable's dims change: extents and
 * scratch of every kernel, the memory plan, every pointer that does not belong to the caller, and each thread's part of
 * each phase. A run (runner_walk.c) fills in the caller's pointers. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/checked.h"
#include "runtime/base/pages.h"
#include "runtime/executable/runner_private.h"

enum { COPY_BLOCK = 4096 };

/* The built-in kernel of TL_STEP_COPY; its dim is the size. */
static void copy_phase(const tl_kernel_args *args, int64_t begin, int64_t end, int thread)
{
    int64_t from = begin * COPY_BLOCK, to = tl_min64(end * COPY_BLOCK, args->dims[0]);

    (void)thread;
    memcpy((char *)args->buffers[1] + from, (const char *)args->buffers[0] + from,
           (size_t)(to - from));
}

/* That of TL_STEP_PUT; its dims are the size of a part, and how many there are. A part beyond them is left out. */
static void put_phase(const tl_kernel_args *args, int64_t begin, int64_t end, int thread)
{
    int64_t size = args->dims[0], from = begin * COPY_BLOCK;
    int64_t to = tl_min64(end * COPY_BLOCK, size), part;

    (void)thread;
    memcpy(&part, args->buffers[2], sizeof part);
    if (part >= 0 && part < args->dims[1])
        memcpy((char *)args->buffers[1] + part * size + from, (const char *)args->buffers[0] + from,
               (size_t)(to - from));
}

static int phase_count(const tl_runner *r, int step)
{
    int kernel = r->steps[step].kernel;

    if (kernel >= 0)
        return r->executable->kernels[kernel].descriptor.phase_count;
    return kernel == TL_STEP_COPY || kernel == TL_STEP_PUT ? 1 : 0;
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
    tl_step_sizes *sizes = &r->sizes;
    int64_t *extents = &sizes->extents[r->first_call[step]];

    if (tl_step_has_region(s))
        return;
    if (s->kernel < 0) {
        int64_t *own = &sizes->own[2 * (size_t)step];
        own[0] = value_size(r, &r->executable->spec.values[s->values[0]]);
        own[1] = own[0] > 0 ? value_size(r, &r->executable->spec.values[s->values[1]]) / own[0] : 0;
        extents[0] = tl_ceildiv(own[0], COPY_BLOCK);
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

/* Each arena value lives from the first to the last step that uses it or a window of it. What steps of a loop use is alive in
 * all of its turns, unless none but steps of the loop use it: then a turn writes it before it reads it. */
static void find_lives(tl_runner *r)
{
    tl_plan_buffer *buffers = r->buffers;
    const tl_executable_spec *spec = &r->executable->spec;

    for (int i = 0; i < r->storage_count; i++)
        buffers[i] = (tl_plan_buffer){ .first = -1, .last = -1 };
    for (int pass = 0; pass < (r->owner != NULL ? 2 : 1); pass++)
        for (int s = 0; s < r->step_count; s++)
            for (int i = 0; i < r->steps[s].value_count; i++) {
                if (r->steps[s].values[i] == TL_NO_VALUE)
                    continue;
                int value = tl_executable_storage(spec, r->steps[s].values[i]);
                tl_plan_buffer *b = &buffers[position_of(r, value)];
                if (spec->values[value].place != TL_PLACE_ARENA)
                    continue;
                b->size = value_size(r, &spec->values[value]);
                if (pass == 0) {
                    b->first = b->first < 0 ? s : b->first;
                    b->last = tl_step_end(r->steps, s) -
                              1; /* a loop reads its numbers before each turn */
                    continue;
                }
                for (int loop = r->owner[s]; loop >= 0; loop = r->owner[loop]) {
                    int end = tl_step_end(r->steps, loop) - 1;
                    if (r->steps[loop].kernel != TL_STEP_LOOP ||
                        (b->first > loop && b->last <= end))
                        continue;
                    b->first = b->first < loop ? b->first : loop;
                    b->last = b->last > end ? b->last : end;
                }
            }
}

/* What holds the extent of an output is read behind the last step. */
static void keep_counts(tl_runner *r)
{
    tl_plan_buffer *buffers = r->buffers;
    const tl_executable_spec *spec = &r->executable->spec;

    for (int i = 0; r->counts != NULL && i < spec->output_count; i++)
        for (int a = 0; spec->outputs[i].counts != NULL && a < spec->outputs[i].rank; a++) {
            int value = spec->outputs[i].counts[a];
            if (value == TL_NO_VALUE)
                continue;
            value = tl_executable_storage(spec, value);
            tl_plan_buffer *b = &buffers[position_of(r, value)];
            if (spec->values[value].place != TL_PLACE_ARENA)
                continue;
            b->size = value_size(r, &spec->values[value]);
            b->first = b->first < 0 ? 0 : b->first;
            b->last = r->step_count;
        }
}

/* The buffers of the plan: arena values, then each step's scratch and thread scratch. */
static tl_status fill_plan(tl_runner *r, tl_diag *diag)
{
    const tl_step_sizes *sizes = &r->sizes;

    find_lives(r);
    keep_counts(r);
    for (int s = 0; s < r->step_count; s++) {
        int64_t all_threads;
        if (sizes->scratch[s] < 0 || sizes->thread_scratch[s] < 0 ||
            sizes->thread_scratch[s] > INT64_MAX - TL_DATA_ALIGNMENT ||
            tl_mul_overflows(thread_stride(sizes->thread_scratch[s]), r->threads, &all_threads))
            return tl_fail(diag, TL_BAD_ARGUMENT, "step %s: its scratch is too large",
                           r->steps[s].name);
        tl_plan_buffer *scratch = &r->buffers[r->storage_count + 2 * s];
        scratch[0] = (tl_plan_buffer){ sizes->scratch[s], s, s, 0 };
        scratch[1] = (tl_plan_buffer){ all_threads, s, s, 0 };
    }
    return TL_OK;
}

/* Memory for a plan of that many bytes. What a runner has is kept where it is large enough; where sizes vary and it has to
 * grow, it grows by a quarter at least, for the next call may be a little larger again. */
static tl_status take_memory(tl_runner *r, int64_t planned, tl_diag *diag)
{
    const tl_executable *x = r->executable;
    int64_t size = planned, sum;

    if (planned <= r->memory_size)
        return TL_OK;
    if (x->memory_limit > 0)
        TL_TRY(tl_executable_check_limit(
            x, tl_add_overflows(planned, x->prepared_size, &sum) ? INT64_MAX : sum,
            "temporaries and packed constants", diag));
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
        r->inputs[r->input_patches++] = (tl_port_patch){ slot, v->port, offset };
        return TL_OK;
    case TL_PLACE_OUTPUT:
        r->outputs[r->output_patches++] = (tl_port_patch){ slot, v->port, offset };
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
    const tl_step_sizes *sizes = &r->sizes;

    r->input_patches = r->output_patches = 0;
    for (int s = 0; s < r->step_count; s++) {
        const tl_executable_step *step = &r->steps[s];
        const tl_plan_buffer *scratch = &r->buffers[r->storage_count + 2 * s];
        void **slots = &r->slots[r->first_slot[s]];
        for (int i = 0; i < step->value_count; i++)
            TL_TRY(bind_value(r, step->values[i], &slots[i], diag));
        r->args[s] = (tl_kernel_args){
            .buffers = slots,
            .dims = step->kernel < 0 ? &sizes->own[2 * (size_t)s] : step_dims(r, s),
            .scratch = scratch[0].size > 0 ? r->memory + scratch[0].offset : NULL,
            .thread_scratch = scratch[1].size > 0 ? r->memory + scratch[1].offset : NULL,
            .thread_scratch_stride = thread_stride(sizes->thread_scratch[s]),
        };
        for (int c = r->first_call[s]; c < r->first_call[s + 1]; c++)
            r->calls[c] = (tl_phase_call){
                .fn = step->kernel == TL_STEP_COPY ? copy_phase
                      : step->kernel == TL_STEP_PUT
                          ? put_phase
                          : x->kernels[step->kernel].phases[c - r->first_call[s]],
                .args = &r->args[s],
                .extent = sizes->extents[c],
            };
    }
    return TL_OK;
}

/* How many turns loops may take. */
static tl_status bind_turns(tl_runner *r, tl_diag *diag)
{
    int dim_count = r->executable->spec.dim_count;

    for (int s = 0; s < r->step_count; s++) {
        const tl_executable_step *step = &r->steps[s];
        if (step->kernel != TL_STEP_LOOP)
            continue;
        int64_t most = step->most;
        if (step->varying_most != NULL &&
            (!tl_varying_at(step->varying_most, dim_count, r->dims, &most) || most < 0))
            return tl_fail(diag, TL_BAD_ARGUMENT, "loop %s has no number of turns", step->name);
        r->turns[s].most = most;
    }
    return TL_OK;
}

/* What outputs are before a run, and where it leaves the extents that it computes. */
static tl_status bind_outputs(tl_runner *r, tl_diag *diag)
{
    const tl_executable_spec *spec = &r->executable->spec;

    for (int i = 0; r->shapes != NULL && i < spec->output_count; i++) {
        const tl_port *port = &spec->outputs[i];
        size_t size;
        if (!tl_port_at(port, spec->dim_count, r->dims, &r->shapes[i * TL_TENSOR_MAX_RANK], &size))
            return tl_fail(diag, TL_BAD_ARGUMENT, "output %s has no shape", port->name);
        for (int a = 0; r->counts != NULL && a < port->rank; a++) {
            int value = port->counts != NULL ? port->counts[a] : TL_NO_VALUE;
            TL_TRY(bind_value(r, value, (void **)&r->counts[i * TL_TENSOR_MAX_RANK + a], diag));
        }
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

    const tl_executable_spec *spec = &r->executable->spec;
    r->storages = TL_NEW_ARRAY(r->arena, int, slots);
    for (int i = 0; r->counts != NULL && i < spec->output_count; i++)
        for (int a = 0; spec->outputs[i].counts != NULL && a < spec->outputs[i].rank; a++)
            if (spec->outputs[i].counts[a] != TL_NO_VALUE)
                r->storages[count++] = tl_executable_storage(spec, spec->outputs[i].counts[a]);
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

/* What only a tree of regions needs, and outputs whose extents are computed: `counted` axes. */
static size_t make_region_lists(tl_runner *r)
{
    const tl_executable_spec *spec = &r->executable->spec;
    size_t counted = 0;
    bool has_regions = false;

    r->stopped = -1;
    for (int s = 0; s < r->step_count; s++)
        has_regions |= tl_step_has_region(&r->steps[s]);
    if (has_regions) {
        r->owner = TL_NEW_ARRAY(r->arena, int, r->step_count);
        r->turns = TL_NEW_ARRAY(r->arena, tl_turns, r->step_count);
        tl_regions_owners(r->steps, r->step_count, r->owner);
    }
    for (int i = 0; r->is_whole && i < spec->output_count; i++)
        if (spec->outputs[i].counts != NULL)
            counted += (size_t)spec->outputs[i].rank;
    size_t room = (size_t)spec->output_count * TL_TENSOR_MAX_RANK;
    if (counted > 0)
        r->counts = TL_NEW_ARRAY(r->arena, int64_t *, room);
    if (counted > 0 || (r->is_whole && spec->dim_count > 0))
        r->shapes = TL_NEW_ARRAY(r->arena, int64_t, room);
    return counted;
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
    slots += make_region_lists(r);
    r->args = TL_NEW_ARRAY(r->arena, tl_kernel_args, steps);
    r->slots = TL_NEW_ARRAY(r->arena, void *, slots);
    r->inputs = TL_NEW_ARRAY(r->arena, tl_port_patch, slots);
    r->outputs = TL_NEW_ARRAY(r->arena, tl_port_patch, slots);
    r->calls = TL_NEW_ARRAY(r->arena, tl_phase_call, calls);
    r->ranges = TL_NEW_ARRAY(r->arena, tl_part, calls * (size_t)r->threads);
    list_storages(r, slots);
    size_t values = (size_t)r->storage_count;
    r->copies = TL_NEW_ARRAY(r->arena, void *, values);
    r->sizes.extents = TL_NEW_ARRAY(r->arena, int64_t, calls);
    r->sizes.scratch = TL_NEW_ARRAY(r->arena, int64_t, steps);
    r->sizes.thread_scratch = TL_NEW_ARRAY(r->arena, int64_t, steps);
    r->sizes.own = TL_NEW_ARRAY(r->arena, int64_t, 2 * steps);
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

/* What is copied has the size of what it is copied to, for these dims, too: functions may come from a file. */
static tl_status check_copies(const tl_runner *r, tl_diag *diag)
{
    const tl_executable_value *values = r->executable->spec.values;

    for (int s = 0; s < r->step_count && r->executable->spec.dim_count > 0; s++) {
        const tl_executable_step *step = &r->steps[s];
        if (step->kernel == TL_STEP_COPY &&
            value_size(r, &values[step->values[0]]) != value_size(r, &values[step->values[1]]))
            return tl_fail(diag, TL_BAD_ARGUMENT, "step %s copies to a value of another size",
                           step->name);
    }
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
    TL_TRY(check_copies(r, diag));
    for (int s = 0; s < r->step_count; s++)
        measure_step(r, s);
    TL_TRY(fill_plan(r, diag));
    TL_TRY(tl_memory_plan(r->buffers, r->storage_count + 2 * r->step_count, &r->plan, diag));
    TL_TRY(take_memory(r, r->plan.planned, diag));
    TL_TRY(bind_steps(r, diag));
    TL_TRY(bind_turns(r, diag));
    TL_TRY(bind_outputs(r, diag));
    divide_calls(r);
    r->runs = 0;
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

static tl_status build_in(const tl_executable *executable, const tl_executable_step *steps,
                          int step_count, tl_pool *pool, int threads, void *stream, tl_runner **out,
                          tl_diag *diag)
{
    TL_TRY(tl_pool_check(pool, threads, diag));
    tl_runner *r = calloc(1, sizeof *r);

    if (r == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "runner: out of memory");
    r->executable = executable;
    r->steps = steps;
    r->step_count = step_count;
    r->is_whole = steps == executable->spec.steps;
    r->pool = pool;
    r->threads = tl_pool_threads(pool);
    if (threads > 0 && threads < r->threads)
        r->threads = threads;
    atomic_flag_clear(&r->busy);
    tl_status status =
        executable->spec.device != NULL && r->is_whole
            ? tl_device_run_make(executable, steps, step_count, stream, &r->device, diag)
            : build(r, diag);
    if (status != TL_OK) {
        tl_runner_destroy(r);
        return status;
    }
    *out = r;
    return TL_OK;
}

tl_status tl_runner_build(const tl_executable *executable, const tl_executable_step *steps,
                          int step_count, tl_pool *pool, int threads, tl_runner **out,
                          tl_diag *diag)
{
    return build_in(executable, steps, step_count, pool, threads, NULL, out, diag);
}

static tl_status check_prepared(const tl_executable *executable, tl_diag *diag)
{
    if (tl_executable_is_prepared(executable))
        return TL_OK;
    return tl_fail(diag, TL_BAD_ARGUMENT, "the executable of %s is not prepared",
                   executable->spec.model);
}

tl_status tl_runner_create_in_stream(const tl_executable *executable, tl_pool *pool, void *stream,
                                     tl_runner **out, tl_diag *diag)
{
    TL_TRY(check_prepared(executable, diag));
    if (executable->spec.device == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s runs on the CPU, which has no streams",
                       executable->spec.model);
    return build_in(executable, executable->spec.steps, executable->spec.step_count, pool, 0,
                    stream, out, diag);
}

tl_status tl_runner_create(const tl_executable *executable, tl_pool *pool, int threads,
                           tl_runner **out, tl_diag *diag)
{
    TL_TRY(check_prepared(executable, diag));
    return tl_runner_build(executable, executable->spec.steps, executable->spec.step_count, pool,
                           threads, out, diag);
}

void tl_runner_destroy(tl_runner *r)
{
    if (r == NULL)
        return;
    tl_device_run_drop(r->device);
    for (int i = 0; r->copies != NULL && i < r->storage_count; i++)
        free(r->copies[i]);
    tl_pages_give(r->memory, (size_t)r->memory_size);
    tl_arena_destroy(r->arena);
    free(r);
}

tl_plan_sizes tl_runner_memory(const tl_runner *r)
{
    return r->device != NULL ? tl_device_run_memory(r->device) : r->plan;
}

const tl_executable *tl_runner_executable(const tl_runner *r)
{
    return r->executable;
}

int tl_runner_threads(const tl_runner *r)
{
    return r->threads;
}

const int64_t *tl_runner_output_shape(const tl_runner *r, int output)
{
    assert(output >= 0 && output < r->executable->spec.output_count);
    return r->shapes != NULL ? &r->shapes[output * TL_TENSOR_MAX_RANK]
                             : r->executable->spec.outputs[output].shape;
}
