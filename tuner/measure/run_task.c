/* tuner/measure/run_task.c: the inputs of a task and what the reference makes of them.
 *
 * Two sets of inputs. The first is normally distributed. The second is meant to break things: magnitudes over nine
 * powers of ten, many equal values, zeros, one input all negative (a maximum over padding that counts as zero shows).
 * Where the reference itself leaves its domain on these (the square root of a negative number), positive inputs are
 * used instead. Integers may be indices: they stay below every extent. */
#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "ir/expr/index.h"
#include "runtime/base/checked.h"
#include "runtime/base/random.h"
#include "runtime/base/clock.h"
#include "runtime/device/topology.h"
#include "tuner/measure/worker_private.h"

enum { PERIOD = 1048583 }; /* prime: no other row, block or image begins so far away */

typedef enum { FILL_NORMAL, FILL_WILD, FILL_NEGATIVE, FILL_POSITIVE, FILL_POSITIVE_WILD } fill_kind;

static double draw(tl_random *random, fill_kind kind)
{
    double unit = tl_random_unit(random);
    switch (kind) {
    case FILL_NORMAL:
        return tl_random_normal(random);
    case FILL_WILD:
        if (unit < 0.1)
            return 0;
        if (unit < 0.4) /* ties */
            return (double)(tl_random_below(random, 5) - 2);
        return (unit < 0.7 ? 1 : -1) * exp2(18 * tl_random_unit(random) - 12);
    case FILL_NEGATIVE:
        return -0.25 - (unit < 0.3 ? 1 : tl_random_unit(random));
    case FILL_POSITIVE:
        return 0.5 + unit;
    case FILL_POSITIVE_WILD:
        return unit < 0.3 ? 1 : exp2(6 * tl_random_unit(random) - 3);
    }
    return 0;
}

static void fill_drawn(void *data, tl_dtype dtype, int64_t count, fill_kind kind, int64_t limit,
                       uint64_t seed)
{
    assert(count >= 0 && (data != NULL || count == 0));
    tl_random random = tl_random_make(seed);
    if (dtype == TL_F32) {
        float *values = data;
        for (int64_t i = 0; i < count; i++)
            values[i] = (float)draw(&random, kind);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        tl_number value;
        if (tl_dtype_is_float(dtype))
            value.f = draw(&random, kind);
        else
            value.i = tl_random_below(&random, dtype == TL_BOOL ? 2 : limit);
        tl_number_store(dtype, data, (size_t)i, value);
    }
}

/* What was drawn comes again after PERIOD elements: a hundred million weights would take seconds. */
static void fill(void *data, tl_dtype dtype, int64_t count, fill_kind kind, int64_t limit,
                 uint64_t seed)
{
    size_t size = tl_dtype_size(dtype);
    fill_drawn(data, dtype, tl_min64(count, PERIOD), kind, limit, seed);
    for (int64_t at = PERIOD; at < count; at += PERIOD)
        memcpy((char *)data + (size_t)at * size, data, (size_t)tl_min64(count - at, PERIOD) * size);
}

/* Below every extent, so that an integer may index any axis. */
static int64_t index_limit(const tl_run_task *t)
{
    int64_t limit = 64;
    for (int i = 0; i < t->program->param_count; i++) {
        const tl_buffer *b = t->program->params[i];
        for (int a = 0; a < b->rank; a++) {
            int64_t extent = tl_expr_range(b->shape[a]).min;
            if (extent > 1 && extent < limit)
                limit = extent;
        }
    }
    return limit;
}

static void fill_inputs(tl_run_task *t, uint64_t seed, bool positive)
{
    int64_t limit = index_limit(t);
    bool has_negative = false;
    for (int i = 0; i < t->program->param_count; i++) {
        const tl_buffer *b = t->program->params[i];
        if (!tl_param_is_read(b))
            continue;
        for (int s = 0; s < TL_INPUT_SETS; s++) {
            fill_kind kind = s == 0 ? FILL_NORMAL : FILL_WILD;
            if (s > 0 && b->role == TL_ROLE_CONST)
                break;
            if (s > 0 && !has_negative && tl_dtype_is_float(b->dtype)) {
                kind = FILL_NEGATIVE;
                has_negative = true;
            }
            if (positive)
                kind = s == 0 ? FILL_POSITIVE : FILL_POSITIVE_WILD;
            fill(t->inputs[s][i].data, b->dtype, t->elements[i], kind, limit,
                 seed + (uint64_t)(1000 * s + i + 1) * 0x9e3779b97f4a7c15u);
        }
    }
}

/* Extents of a param for the dims given. */
static tl_status count_elements(tl_run_task *t, int i, tl_diag *diag)
{
    assert(i >= 0 && i < t->program->param_count);
    const tl_buffer *b = t->program->params[i];
    tl_binding bindings[16];
    int64_t elements = 1, extent;
    if (b->strides != NULL || t->program->dim_count > 16)
        return tl_fail(diag, TL_UNSUPPORTED, "param %s: strides are not measured", b->name);
    for (int d = 0; d < t->program->dim_count; d++)
        bindings[d] = (tl_binding){ t->program->dims[d], tl_int(t->arena, t->dims[d]) };
    for (int a = 0; a < b->rank; a++) {
        const tl_expr *shape =
            tl_substitute(t->arena, b->shape[a], bindings, t->program->dim_count);
        if (!tl_const_int(shape, &extent) || extent < 0 ||
            tl_mul_overflows(elements, extent, &elements))
            return tl_fail(diag, TL_UNSUPPORTED, "param %s: its extents are not known", b->name);
    }
    t->elements[i] = elements;
    t->sizes[i] = tl_storage_bytes(b->dtype, elements);
    if (t->sizes[i] < 0)
        return tl_fail(diag, TL_UNSUPPORTED, "param %s: its size overflows", b->name);
    return TL_OK;
}

static tl_status get_memory(tl_run_task *t, tl_diag *diag)
{
    for (int i = 0; i < t->program->param_count; i++) {
        const tl_buffer *b = t->program->params[i];
        TL_TRY(count_elements(t, i, diag));
        for (int s = 0; s < TL_INPUT_SETS; s++) {
            bool is_shared = b->role == TL_ROLE_CONST && s > 0;
            bool ok = true;
            if (is_shared)
                t->inputs[s][i] = (tl_guarded){ .data = t->inputs[0][i].data };
            else if (tl_param_is_read(b))
                ok = tl_guarded_create((size_t)t->sizes[i], &t->inputs[s][i]);
            if (ok && tl_param_is_written(b))
                ok = tl_guarded_create((size_t)t->sizes[i], &t->expected[s][i]);
            if (!ok)
                return tl_fail(diag, TL_NO_MEMORY, "no memory for param %s (%lld bytes)", b->name,
                               (long long)t->sizes[i]);
            t->bytes += is_shared ? 0 : t->sizes[i];
        }
    }
    return TL_OK;
}

/* Whether at least seven eighths of what came out are finite numbers. */
static bool is_in_domain(const tl_run_task *t, int set)
{
    assert(set >= 0 && set < TL_INPUT_SETS);
    for (int i = 0; i < t->program->param_count; i++) {
        const tl_buffer *b = t->program->params[i];
        int64_t finite = 0;
        if (!tl_param_is_written(b) || !tl_dtype_is_float(b->dtype))
            continue;
        for (int64_t k = 0; k < t->elements[i]; k++)
            finite +=
                isfinite(tl_number_load(b->dtype, t->expected[set][i].data, (size_t)k).f) != 0;
        if (finite < t->elements[i] - t->elements[i] / 8)
            return false;
    }
    return true;
}

/* One set of inputs through a reference of its own (they have scratch), on its share of the cores. */
typedef struct {
    tl_run_task *task;
    tl_runnable *reference;
    tl_pool *pool; /* NULL: it has one core */
    int set;
    pthread_t thread;
    bool has_thread;
} reference_run;

static int threads_of(const reference_run *r)
{
    return r->pool != NULL ? tl_pool_threads(r->pool) : 1;
}

static void *run_reference(void *context)
{
    const reference_run *r = context;
    tl_run_task *t = r->task;
    void *buffers[2 * TL_MAX_PARAMS];
    for (int i = 0; i < t->program->param_count; i++) {
        bool is_written = tl_param_is_written(t->program->params[i]);
        buffers[i] = is_written ? t->expected[r->set][i].data : t->inputs[r->set][i].data;
        if (is_written && tl_param_is_read(t->program->params[i]))
            memcpy(t->expected[r->set][i].data, t->inputs[r->set][i].data, (size_t)t->sizes[i]);
    }
    for (int i = 0; i < r->reference->prepared_count; i++)
        buffers[t->program->param_count + i] = r->reference->prepared[i].data;
    tl_runnable_call(r->reference, r->pool, threads_of(r), buffers, t->dims);
    return NULL;
}

/* All sets at once: nothing is timed meanwhile, and naive code takes its time. */
static tl_status run_references(tl_run_task *t, const tl_worker_config *config,
                                const tl_built *built, tl_diag *diag)
{
    reference_run runs[TL_INPUT_SETS] = { 0 };
    void *params[TL_MAX_PARAMS];
    tl_status status = TL_OK;
    tl_topology machine;
    tl_topology_probe(&machine);
    tl_pool_options size = { .threads = machine.usable_cores / TL_INPUT_SETS, .pin = TL_PIN_NEVER };
    for (int i = 0; i < t->program->param_count; i++)
        params[i] = t->inputs[0][i].data;
    for (int s = 0; s < TL_INPUT_SETS && status == TL_OK; s++) {
        if (size.threads > 1 && tl_pool_create(&size, &runs[s].pool, NULL) != TL_OK)
            runs[s].pool = NULL;
        runs[s].task = t;
        runs[s].set = s;
        status = tl_runnable_create(t->jit, NULL, built, t->dims, params, t->program->param_count,
                                    threads_of(&runs[s]), config->memory_bytes, &runs[s].reference,
                                    diag);
    }
    for (int s = 1; s < TL_INPUT_SETS && status == TL_OK; s++)
        runs[s].has_thread = pthread_create(&runs[s].thread, NULL, run_reference, &runs[s]) == 0;
    for (int s = 0; s < TL_INPUT_SETS && status == TL_OK; s++)
        if (!runs[s].has_thread)
            run_reference(&runs[s]);
    for (int s = 0; s < TL_INPUT_SETS; s++) {
        if (runs[s].has_thread)
            pthread_join(runs[s].thread, NULL);
        tl_runnable_destroy(runs[s].reference);
        tl_pool_destroy(runs[s].pool);
    }
    return status;
}

static tl_status find_expected(tl_run_task *t, const tl_worker_config *config,
                               const tl_built *built, tl_diag *diag)
{
    int64_t start = tl_clock_ns();
    TL_TRY(tl_jit_create(&config->host, &t->jit, diag));
    for (int attempt = 0; attempt < 2; attempt++) {
        bool is_good = true;
        fill_inputs(t, config->seed, attempt > 0);
        TL_TRY(run_references(t, config, built, diag));
        for (int s = 0; s < TL_INPUT_SETS && is_good; s++)
            is_good = attempt > 0 || is_in_domain(t, s);
        if (is_good)
            break;
    }
    t->reference_ns = (double)(tl_clock_ns() - start);
    for (int i = 0; i < t->program->param_count; i++)
        for (int s = 0; s < TL_INPUT_SETS; s++) {
            tl_guarded_protect(&t->inputs[s][i]);
            tl_guarded_protect(&t->expected[s][i]);
        }
    return TL_OK;
}

static tl_status read_task(tl_run_task *t, const tl_worker_config *config, tl_unpacker *u,
                           tl_diag *diag)
{
    const char *text = tl_unpack_text(u);
    TL_TRY(tl_program_parse(t->arena, text, "reference", &t->program, diag));
    int64_t lowerings = tl_unpack_int(u), dims;
    if (lowerings < 1 || lowerings > TL_MAX_LOWERINGS || t->program->param_count > TL_MAX_PARAMS)
        return tl_fail(diag, TL_UNSUPPORTED, "more than %d lowerings or %d parameters",
                       TL_MAX_LOWERINGS, TL_MAX_PARAMS);
    t->lowering_count = (int)lowerings;
    for (int i = 0; i < t->lowering_count; i++) {
        t->rtol[i] = tl_unpack_real(u);
        t->ttol[i] = tl_unpack_real(u);
    }
    dims = tl_unpack_int(u);
    if (u->failed || dims != t->program->dim_count)
        return tl_fail(diag, TL_BAD_ARGUMENT, "the kernel has %d dims, the task gives %lld",
                       t->program->dim_count, (long long)dims);
    t->dims = TL_NEW_ARRAY(t->arena, int64_t, dims);
    for (int64_t i = 0; i < dims; i++)
        t->dims[i] = tl_unpack_int(u);
    tl_built built;
    if (!tl_built_unpack(u, &built))
        return tl_fail(diag, TL_INTERNAL, "a message was damaged");
    TL_TRY(get_memory(t, diag));
    return find_expected(t, config, &built, diag);
}

tl_run_task *tl_run_task_create(const tl_worker_config *config, tl_unpacker *u, tl_diag *diag)
{
    tl_run_task *volatile t = calloc(1, sizeof *t);
    tl_arena *arena = tl_arena_create(0);
    if (t == NULL || arena == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        free(t);
        tl_fail(diag, TL_NO_MEMORY, "out of memory");
        return NULL;
    }
    t->arena = arena;
    if (read_task(t, config, u, diag) == TL_OK)
        return t;
    tl_run_task_destroy(t);
    return NULL;
}

void tl_run_task_destroy(tl_run_task *t)
{
    for (int i = 0; i < TL_MAX_PARAMS; i++)
        for (int s = 0; s < TL_INPUT_SETS; s++) {
            tl_guarded_free(&t->inputs[s][i]); /* shared memory has no base here */
            tl_guarded_free(&t->expected[s][i]);
        }
    tl_jit_destroy(t->jit);
    tl_arena_destroy(t->arena);
    free(t);
}
