/* driver/api/caller.c: calling a model whose shapes vary: a runner for each code that was called lately. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "driver/api/family_private.h"

/* A runner with buffers for its outputs. */
typedef struct {
    tilth_runner *runner;
    const tl_executable_spec *spec;
    void **outputs;
    size_t *sizes;              /* of these buffers */
    int64_t dims[TL_MOST_DIMS]; /* of the executable, for which the outputs are bound */
    uint64_t used;
} entry;

struct tilth_caller {
    tl_handle handle;
    atomic_flag busy;
    tilth_family *family;
    int threads;
    tl_family_given *given;
    entry entries[TILTH_FAMILY_LIMIT];
    int count;
    uint64_t clock;
    const entry *latest; /* whose outputs are the latest run's */
};

static void free_entry(entry *e)
{
    (void)tilth_runner_destroy(e->runner); /* first: it needs the model, and so the spec */
    for (int i = 0; e->outputs != NULL && e->outputs[i] != NULL; i++)
        tilth_buffer_destroy(e->outputs[i]);
    free(e->outputs);
    free(e->sizes);
    *e = (entry){ 0 };
}

static tl_status create(tilth_family *family, int threads, tilth_caller **out, tl_diag *diag)
{
    static const char call[] = "tilth_caller_create";
    if (out == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is nowhere to put the caller", call);
    *out = NULL;
    TL_TRY(tl_handle_check(family, TL_HANDLE_FAMILY, call, diag));
    if (threads < 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: %d threads are below 0", call, threads);
    tilth_caller *c = calloc(1, sizeof *c);
    int inputs = tl_family_signature(family->family)->input_count;
    tl_family_given *given = calloc((size_t)inputs + 1, sizeof *given);
    if (c == NULL || given == NULL) {
        free(c);
        free(given);
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", call);
    }
    atomic_flag_clear(&c->busy);
    c->family = family;
    c->threads = threads;
    c->given = given;
    tl_handle_retain(&family->handle);
    tl_handle_start(&c->handle, TL_HANDLE_CALLER);
    *out = c;
    return TL_OK;
}

tilth_status tilth_caller_create(tilth_family *family, int threads, tilth_caller **out,
                                 tilth_error *error)
{
    TL_API_DIAG(diag);
    return tl_api_return(create(family, threads, out, &diag), &diag, error);
}

/* Takes the caller for one call. */
static tilth_status enter(tilth_caller *c, const char *call, tilth_error *error)
{
    TL_API_DIAG(diag);
    tl_status status = tl_handle_check(c, TL_HANDLE_CALLER, call, &diag);
    if (status != TL_OK)
        return tl_api_return(status, &diag, error);
    if (!atomic_flag_test_and_set_explicit(&c->busy, memory_order_acquire))
        return TILTH_OK;
    tl_fail(&diag, TL_BAD_ARGUMENT, "%s: another thread is using this caller", call);
    tl_api_return(TL_BAD_ARGUMENT, &diag, error);
    return TILTH_BUSY;
}

static tilth_status leave(tilth_caller *c, tilth_status status)
{
    atomic_flag_clear_explicit(&c->busy, memory_order_release);
    return status;
}

tilth_status tilth_caller_destroy(tilth_caller *c)
{
    if (c == NULL)
        return TILTH_OK;
    tilth_status status = enter(c, __func__, NULL);
    if (status != TILTH_OK)
        return status;
    if (!tl_handle_kill(&c->handle, TL_HANDLE_CALLER))
        return TILTH_BAD_ARGUMENT;
    for (int i = 0; i < c->count; i++)
        free_entry(&c->entries[i]);
    tl_api_family_release(c->family);
    free(c->given);
    tl_handle_free(c);
    return TILTH_OK;
}

static tl_status set_input(tilth_caller *c, int index, int rank, const int64_t *shape,
                           const void *data, size_t size, tl_diag *diag)
{
    static const char call[] = "tilth_caller_set_input";
    const tl_onnx_signature *signature = tl_family_signature(c->family->family);
    int64_t bytes;
    if (index < 0 || index >= signature->input_count)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is no input %d; the model has %d", call,
                       index, signature->input_count);
    const tl_onnx_input *input = &signature->inputs[index];
    if (rank < 0 || rank > TILTH_MAX_RANK || (rank > 0 && shape == NULL) ||
        (input->shape.rank >= 0 && input->shape.rank != rank))
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: input %s has %d axes, but %d were given", call,
                       input->name, input->shape.rank, rank);
    for (int a = 0; a < input->shape.rank; a++)
        if (input->shape.dims[a].extent >= 0 && input->shape.dims[a].extent != shape[a])
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "%s: axis %d of input %s is %lld in the model, but %lld was given", call,
                           a, input->name, (long long)input->shape.dims[a].extent,
                           (long long)shape[a]);
    TL_TRY(tl_tensor_bytes(input->dtype, rank, shape, &bytes, diag));
    if (size != (size_t)bytes || (data == NULL && bytes > 0))
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "%s: input %s of this shape has %lld bytes, not %zu%s", call, input->name,
                       (long long)bytes, size, data == NULL ? " at NULL" : "");
    c->given[index] = (tl_family_given){ .shape = tl_shape_of(rank, shape),
                                         .data = data != NULL ? data : "",
                                         .size = size };
    return TL_OK;
}

tilth_status tilth_caller_set_input(tilth_caller *c, int index, int rank, const int64_t *shape,
                                    const void *data, size_t size, tilth_error *error)
{
    TL_API_DIAG(diag);
    tilth_status status = enter(c, __func__, error);
    if (status != TILTH_OK)
        return status;
    tl_status set = set_input(c, index, rank, shape, data, size, &diag);
    return leave(c, tl_api_return(set, &diag, error));
}

/* ---- running ---- */

/* Binds output `i` to a buffer of at least so many bytes: the one that is there, or one that is a quarter larger. */
static tl_status bind_output(entry *e, int i, size_t size, tl_diag *diag)
{
    tilth_error error;
    if (e->outputs[i] == NULL || e->sizes[i] < size) {
        size_t wanted = e->outputs[i] == NULL ? size : size + size / 4;
        void *buffer = tilth_buffer_create(wanted > 0 ? wanted : 1);
        if (buffer == NULL)
            return tl_fail(diag, TL_NO_MEMORY, "no memory for %zu bytes of %s", size,
                           e->spec->outputs[i].name);
        tilth_buffer_destroy(e->outputs[i]);
        e->outputs[i] = buffer;
        e->sizes[i] = wanted;
    }
    if (size > 0 && tilth_runner_bind_output(e->runner, i, e->outputs[i], size, &error) != TILTH_OK)
        return tl_fail(diag, TL_INTERNAL, "%s", error.text);
    return TL_OK;
}

static tl_status bind_outputs(entry *e, tl_diag *diag)
{
    for (int i = 0; i < e->spec->output_count; i++) {
        int64_t shape[TILTH_MAX_RANK];
        size_t size;
        if (!tl_port_at(&e->spec->outputs[i], e->spec->dim_count, e->dims, shape, &size))
            return tl_fail(diag, TL_BAD_ARGUMENT, "output %s has no shape",
                           e->spec->outputs[i].name);
        TL_TRY(bind_output(e, i, size, diag));
    }
    return TL_OK;
}

static void release_member(void *member)
{
    tl_family_release(member);
}

/* A runner of the code; takes over its part of it, whether there is one then or not. */
static tl_status make_runner(const tilth_family *family, const tl_family_code *code, int threads,
                             tilth_runner **out, tl_diag *diag)
{
    tilth_model *model;
    tilth_error error;
    const tl_model *code_model = tl_family_model(code->member);
    tl_status status =
        tl_api_model_make(tl_model_executable(code_model), code->member, release_member,
                          family->pool, tl_model_get_facts(code_model)->from_cache, &model, diag);
    if (status != TL_OK) {
        tl_family_release(code->member);
        return status;
    }
    if (tilth_runner_create(model, threads, out, &error) != TILTH_OK)
        status = tl_fail(diag, TL_NO_MEMORY, "%s", error.text);
    (void)tilth_model_destroy(model); /* the runner has it from here on */
    return status;
}

static tl_status fill_entry(entry *e, const tilth_caller *c, const tl_family_code *code,
                            tl_diag *diag)
{
    size_t count = (size_t)code->spec->output_count + 1;
    e->spec = code->spec;
    memcpy(e->dims, code->dims, sizeof e->dims);
    TL_TRY(make_runner(c->family, code, c->threads, &e->runner, diag));
    TL_TRY(tl_api_runner_set_dims(e->runner, e->dims, diag));
    e->outputs = calloc(count, sizeof *e->outputs);
    e->sizes = calloc(count, sizeof *e->sizes);
    if (e->outputs == NULL || e->sizes == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "caller: out of memory");
    return bind_outputs(e, diag);
}

/* Makes the entry's dims those of the call. */
static tl_status set_dims(entry *e, const int64_t *dims, tl_diag *diag)
{
    size_t size = sizeof *dims * (size_t)e->spec->dim_count;
    if (memcmp(e->dims, dims, size) == 0)
        return TL_OK;
    TL_TRY(tl_api_runner_set_dims(e->runner, dims, diag));
    memcpy(e->dims, dims, size);
    return bind_outputs(e, diag);
}

/* A place for one more: the oldest one's where all are taken. */
static entry *make_room(tilth_caller *c)
{
    if (c->count < TILTH_FAMILY_LIMIT)
        return &c->entries[c->count++];
    entry *oldest = &c->entries[0];
    for (int i = 1; i < c->count; i++)
        if (c->entries[i].used < oldest->used)
            oldest = &c->entries[i];
    free_entry(oldest);
    return oldest;
}

static tl_status make_entry(tilth_caller *c, const tl_family_code *code, entry **out, tl_diag *diag)
{
    entry new = { 0 };
    tl_status status = fill_entry(&new, c, code, diag);
    if (status != TL_OK) {
        free_entry(&new);
        return status;
    }
    *out = make_room(c);
    **out = new;
    return TL_OK;
}

/* The entry for the call. Code for one combination is known here; about code for several the family is asked, which knows
 * whether it may be used. */
static tl_status find_entry(tilth_caller *c, entry **out, tl_diag *diag)
{
    tl_family_code code = { 0 };
    for (int i = 0; i < c->count; i++)
        if (c->entries[i].spec->dim_count == 0 &&
            tl_family_fits(c->entries[i].spec, c->given, code.dims)) {
            *out = &c->entries[i];
            return TL_OK;
        }
    TL_TRY(tl_family_find(c->family->family, c->given, &code, diag));
    *out = NULL;
    for (int i = 0; i < c->count && *out == NULL; i++)
        if (c->entries[i].spec == code.spec)
            *out = &c->entries[i];
    if (*out == NULL)
        return make_entry(c, &code, out, diag);
    tl_status status = set_dims(*out, code.dims, diag);
    tl_family_release(code.member);
    return status;
}

static tilth_status run_entry(tilth_caller *c, entry *e, tilth_error *error)
{
    tilth_status status = TILTH_OK;
    for (int i = 0; status == TILTH_OK && i < e->spec->input_count; i++) {
        const tl_family_given *given = &c->given[i];
        bool aligned = (uintptr_t)given->data % TILTH_ALIGNMENT == 0;
        if (given->size == 0)
            continue;
        status = aligned ? tilth_runner_bind_input(e->runner, i, given->data, given->size, error)
                         : tilth_runner_write_input(e->runner, i, given->data, given->size, error);
    }
    return status == TILTH_OK ? tilth_runner_run(e->runner, error) : status;
}

static tilth_status run(tilth_caller *c, tilth_error *error)
{
    TL_API_DIAG(diag);
    const tl_onnx_signature *signature = tl_family_signature(c->family->family);
    entry *e;
    c->latest = NULL;
    for (int i = 0; i < signature->input_count; i++)
        if (c->given[i].data == NULL) {
            tl_fail(&diag, TL_BAD_ARGUMENT, "tilth_caller_run: input %s is not set",
                    signature->inputs[i].name);
            return tl_api_return(TL_BAD_ARGUMENT, &diag, error);
        }
    tl_status found = find_entry(c, &e, &diag);
    if (found != TL_OK)
        return tl_api_return(found, &diag, error);
    e->used = ++c->clock;
    tilth_status status = run_entry(c, e, error);
    if (status == TILTH_OK)
        c->latest = e;
    return status;
}

tilth_status tilth_caller_run(tilth_caller *c, tilth_error *error)
{
    tilth_status status = enter(c, __func__, error);
    return status != TILTH_OK ? status : leave(c, run(c, error));
}

int tilth_caller_output_count(const tilth_caller *c)
{
    return tl_handle_check(c, TL_HANDLE_CALLER, "", NULL) == TL_OK && c->latest != NULL
               ? c->latest->spec->output_count
               : 0;
}

static tl_status get_output(const tilth_caller *c, int index, tilth_tensor_info *out,
                            const void **data, tl_diag *diag)
{
    static const char call[] = "tilth_caller_output";
    TL_TRY(tl_handle_check(c, TL_HANDLE_CALLER, call, diag));
    if (out == NULL || data == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is nowhere to put the answer", call);
    if (c->latest == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there was no run yet, or it failed", call);
    const tl_executable_spec *spec = c->latest->spec;
    if (index < 0 || index >= spec->output_count)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is no output %d; the model has %d", call,
                       index, spec->output_count);
    const tl_port *port = &spec->outputs[index];
    *out = (tilth_tensor_info){ .name = port->name,
                                .dtype = (tilth_dtype)tl_dtype_infos[port->dtype].onnx,
                                .rank = port->rank };
    if (!tl_port_at(port, spec->dim_count, c->latest->dims, out->shape, &out->size))
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: output %s has no shape", call, port->name);
    if (port->counts != NULL) { /* extents that the run has computed */
        int64_t size;
        memcpy(out->shape, tl_api_output_shape(c->latest->runner, index),
               sizeof *out->shape * (size_t)port->rank);
        TL_TRY(tl_tensor_bytes(port->dtype, port->rank, out->shape, &size, diag));
        out->size = (size_t)size;
    }
    *data = c->latest->outputs[index];
    return TL_OK;
}

tilth_status tilth_caller_output(const tilth_caller *c, int index, tilth_tensor_info *out,
                                 const void **data, tilth_error *error)
{
    TL_API_DIAG(diag);
    return tl_api_return(get_output(c, index, out, data, &diag), &diag, error);
}
