/* runtime/api/api_runner.c: running a model through the C API.
 *
 * Each port has a place: the caller's buffer, or one of the runner's own, made when it is first
 * needed. `busy` is held for the length of every call, so that a second thread is told. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/api/api_private.h"

/* What a port of no bytes points to; nobody reads or writes it. */
static const _Alignas(TILTH_ALIGNMENT) unsigned char empty[TILTH_ALIGNMENT];

typedef struct {
    const void *data; /* read, and for outputs written; NULL: no place yet */
    void *own;        /* the runner's buffer, or NULL */
    size_t own_size;
    size_t size;
    bool is_current; /* an output that the latest run wrote */
    bool on_device;  /* `data` is an address of the model's GPU */
} place;

struct tilth_runner {
    tl_handle handle;
    atomic_flag busy;
    tilth_model *model;
    const tl_executable_spec *spec;
    tl_runner *runner;
    place *inputs, *outputs;
    const void **input_data; /* as tl_runner_run takes them */
    void **output_data;
    bool *on_device; /* one a port, inputs first; NULL: none is */
    bool is_checked; /* places are complete and do not overlap, and are in *_data */
};

/* The sizes of places for the dims that the runner has; what they were bound to is forgotten. */
static tl_status size_places(const tilth_runner *r, const tl_port *ports, int count, place *places,
                             tl_diag *diag)
{
    for (int i = 0; i < count; i++) {
        int64_t shape[TILTH_MAX_RANK];
        size_t size;
        if (!tl_port_at(&ports[i], r->spec->dim_count, tl_runner_dims(r->runner), shape, &size))
            return tl_fail(diag, TL_BAD_ARGUMENT, "%s has no shape", ports[i].name);
        places[i].size = size;
        places[i].data = size == 0 ? empty : NULL;
        places[i].is_current = false;
    }
    return TL_OK;
}

static tl_status size_all_places(tilth_runner *r, tl_diag *diag)
{
    r->is_checked = false;
    TL_TRY(size_places(r, r->spec->inputs, r->spec->input_count, r->inputs, diag));
    return size_places(r, r->spec->outputs, r->spec->output_count, r->outputs, diag);
}

tl_status tl_api_runner_set_dims(tilth_runner *r, const int64_t *dims, tl_diag *diag)
{
    if (memcmp(dims, tl_runner_dims(r->runner), sizeof *dims * (size_t)r->spec->dim_count) == 0)
        return TL_OK;
    TL_TRY(tl_runner_set_dims(r->runner, dims, diag));
    return size_all_places(r, diag);
}

static tl_status set_shapes(tilth_runner *r, const int64_t *const *shapes, const char *call,
                            tl_diag *diag)
{
    int64_t dims[TL_MOST_DIMS];

    if (shapes == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: the shapes are NULL", call);
    tl_status status = tl_executable_dims_of(r->spec, shapes, dims, diag);
    if (status == TL_OK)
        status = r->spec->dim_count > 0 ? tl_api_runner_set_dims(r, dims, diag) : TL_OK;
    if (status != TL_OK)
        tl_context(diag, "%s", call);
    return status;
}

static tl_status describe(const tilth_runner *r, bool input, int index, tilth_tensor_info *out,
                          const char *call, tl_diag *diag)
{
    int count = input ? r->spec->input_count : r->spec->output_count;

    if (out == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is nowhere to put the answer", call);
    if (index < 0 || index >= count)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is no %s %d; the model has %d", call,
                       input ? "input" : "output", index, count);
    const tl_port *port = input ? &r->spec->inputs[index] : &r->spec->outputs[index];
    *out = (tilth_tensor_info){ .name = port->name,
                                .dtype = (tilth_dtype)tl_dtype_infos[port->dtype].onnx,
                                .rank = port->rank };
    const int64_t *dims = r->spec->dim_count > 0 ? tl_runner_dims(r->runner) : NULL;
    return tl_port_at(port, r->spec->dim_count, dims, out->shape, &out->size)
               ? TL_OK
               : tl_fail(diag, TL_INTERNAL, "%s has no shape", port->name);
}

static void free_runner(tilth_runner *r)
{
    tl_runner_destroy(r->runner);
    for (int i = 0; r->inputs != NULL && i < r->spec->input_count; i++)
        free(r->inputs[i].own);
    for (int i = 0; r->outputs != NULL && i < r->spec->output_count; i++)
        free(r->outputs[i].own);
    free(r->inputs);
    free(r->outputs);
    free(r->input_data);
    free(r->output_data);
    free(r->on_device);
    tl_api_model_release(r->model);
    tl_handle_free(r);
}

/* How a runner is made: on threads, or in a stream of a GPU. */
typedef struct {
    const char *call;
    int threads;
    bool in_stream;
    void *stream;
} making;

static tl_status fill(tilth_runner *r, const making *how, tl_diag *diag)
{
    r->inputs = calloc((size_t)r->spec->input_count + 1, sizeof *r->inputs);
    r->outputs = calloc((size_t)r->spec->output_count + 1, sizeof *r->outputs);
    r->input_data = calloc((size_t)r->spec->input_count + 1, sizeof *r->input_data);
    r->output_data = calloc((size_t)r->spec->output_count + 1, sizeof *r->output_data);
    if (r->inputs == NULL || r->outputs == NULL || r->input_data == NULL || r->output_data == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "runner: out of memory");
    tl_pool *pool = r->model->pool->pool;
    TL_TRY(
        how->in_stream
            ? tl_runner_create_in_stream(r->model->executable, pool, how->stream, &r->runner, diag)
            : tl_runner_create(r->model->executable, pool, how->threads, &r->runner, diag));
    return size_all_places(r, diag);
}

static tl_status create(tilth_model *model, const making *how, tilth_runner **out, tl_diag *diag)
{
    const char *call = how->call;

    if (out == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is nowhere to put the runner", call);
    *out = NULL;
    TL_TRY(tl_handle_check(model, TL_HANDLE_MODEL, call, diag));
    if (how->threads < 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: %d threads are below 0", call, how->threads);
    tilth_runner *r = calloc(1, sizeof *r);
    if (r == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "runner: out of memory");
    atomic_flag_clear(&r->busy);
    r->model = model;
    r->spec = tl_executable_info(model->executable);
    tl_handle_retain(&model->handle);
    tl_handle_start(&r->handle, TL_HANDLE_RUNNER);
    tl_status status = fill(r, how, diag);
    if (status != TL_OK) {
        (void)tl_handle_kill(&r->handle, TL_HANDLE_RUNNER);
        free_runner(r);
        return status;
    }
    *out = r;
    return TL_OK;
}

tilth_status tilth_runner_create(tilth_model *model, int threads, tilth_runner **out,
                                 tilth_error *error)
{
    const making how = { .call = __func__, .threads = threads };
    TL_API_DIAG(diag);
    return tl_api_return(create(model, &how, out, &diag), &diag, error);
}

tilth_status tilth_runner_create_in_stream(tilth_model *model, void *stream, tilth_runner **out,
                                           tilth_error *error)
{
    const making how = { .call = __func__, .in_stream = true, .stream = stream };
    TL_API_DIAG(diag);
    return tl_api_return(create(model, &how, out, &diag), &diag, error);
}

/* Takes the runner for one call. */
static tilth_status enter(tilth_runner *r, const char *call, tilth_error *error)
{
    TL_API_DIAG(diag);
    tl_status status = tl_handle_check(r, TL_HANDLE_RUNNER, call, &diag);

    if (status != TL_OK)
        return tl_api_return(status, &diag, error);
    if (!atomic_flag_test_and_set_explicit(&r->busy, memory_order_acquire))
        return TILTH_OK;
    tl_fail(&diag, TL_BAD_ARGUMENT, "%s: another thread is using this runner of %s", call,
            r->spec->model != NULL ? r->spec->model : "a model");
    tl_api_return(TL_BAD_ARGUMENT, &diag, error);
    return TILTH_BUSY;
}

static tilth_status leave(tilth_runner *r, tl_status status, const tl_diag *diag,
                          tilth_error *error)
{
    atomic_flag_clear_explicit(&r->busy, memory_order_release);
    return tl_api_return(status, diag, error);
}

tilth_status tilth_runner_destroy(tilth_runner *r)
{
    if (r == NULL)
        return TILTH_OK;
    tilth_status status = enter(r, __func__, NULL);
    if (status != TILTH_OK)
        return status;
    if (!tl_handle_kill(&r->handle, TL_HANDLE_RUNNER))
        return TILTH_BAD_ARGUMENT;
    free_runner(r);
    return TILTH_OK;
}

size_t tilth_runner_memory(const tilth_runner *r)
{
    return tl_handle_check(r, TL_HANDLE_RUNNER, __func__, NULL) == TL_OK
               ? (size_t)tl_runner_memory(r->runner).planned
               : 0;
}

/* The place of a port whose tensor has `size` bytes. */
static tl_status find_place(tilth_runner *r, bool input, int index, size_t size, const char *call,
                            place **out, tl_diag *diag)
{
    int count = input ? r->spec->input_count : r->spec->output_count;
    const char *word = input ? "input" : "output";

    if (index < 0 || index >= count)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is no %s %d; the model has %d", call, word,
                       index, count);
    *out = input ? &r->inputs[index] : &r->outputs[index];
    if (size == (*out)->size)
        return TL_OK;
    const tl_port *port = input ? &r->spec->inputs[index] : &r->spec->outputs[index];
    tl_text shape = { 0 };
    tl_shape_describe(port->dtype, port->rank, port->shape, &shape);
    tl_status status =
        tl_fail(diag, TL_BAD_ARGUMENT, "%s: %s %s is %s, %zu bytes; the buffer has %zu", call, word,
                port->name, tl_text_get(&shape), (*out)->size, size);
    tl_text_free(&shape);
    return status;
}

static tl_status bind_place(tilth_runner *r, bool input, int index, const void *data, size_t size,
                            bool on_device, const char *call, tl_diag *diag)
{
    place *p;

    if (on_device && tl_executable_device(r->model->executable) == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: the model runs on the CPU", call);

    if (data == NULL && size == 0) { /* undone, when there is such a port */
        size_t whole = 0;
        int count = input ? r->spec->input_count : r->spec->output_count;
        if (index >= 0 && index < count)
            whole = (input ? r->inputs : r->outputs)[index].size;
        TL_TRY(find_place(r, input, index, whole, call, &p, diag));
        r->is_checked = p->is_current = false;
        p->data = p->size == 0 ? empty : NULL;
        p->on_device = false;
        return TL_OK;
    }
    TL_TRY(find_place(r, input, index, size, call, &p, diag));
    const tl_port *port = input ? &r->spec->inputs[index] : &r->spec->outputs[index];
    if (data == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: the buffer for %s is NULL", call, port->name);
    if ((uintptr_t)data % TILTH_ALIGNMENT != 0)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "%s: the buffer for %s at %p is not aligned to %d bytes", call, port->name,
                       data, TILTH_ALIGNMENT);
    r->is_checked = p->is_current = false;
    p->data = data;
    p->on_device = on_device && p->size > 0;
    return TL_OK;
}

tilth_status tilth_runner_bind_input(tilth_runner *r, int index, const void *data, size_t size,
                                     tilth_error *error)
{
    TL_API_DIAG(diag);
    tilth_status status = enter(r, __func__, error);

    if (status != TILTH_OK)
        return status;
    return leave(r, bind_place(r, true, index, data, size, false, __func__, &diag), &diag, error);
}

tilth_status tilth_runner_bind_output(tilth_runner *r, int index, void *data, size_t size,
                                      tilth_error *error)
{
    TL_API_DIAG(diag);
    tilth_status status = enter(r, __func__, error);

    if (status != TILTH_OK)
        return status;
    return leave(r, bind_place(r, false, index, data, size, false, __func__, &diag), &diag, error);
}

tilth_status tilth_runner_bind_device_input(tilth_runner *r, int index, const void *address,
                                            size_t size, tilth_error *error)
{
    TL_API_DIAG(diag);
    tilth_status status = enter(r, __func__, error);

    if (status != TILTH_OK)
        return status;
    return leave(r, bind_place(r, true, index, address, size, true, __func__, &diag), &diag, error);
}

tilth_status tilth_runner_bind_device_output(tilth_runner *r, int index, void *address, size_t size,
                                             tilth_error *error)
{
    TL_API_DIAG(diag);
    tilth_status status = enter(r, __func__, error);

    if (status != TILTH_OK)
        return status;
    return leave(r, bind_place(r, false, index, address, size, true, __func__, &diag), &diag,
                 error);
}

/* Makes the runner's own buffer the place. */
static tl_status use_own(tilth_runner *r, place *p, const tl_port *port, tl_diag *diag)
{
    if (p->own_size < p->size) {
        free(p->own);
        p->own = NULL;
        p->own_size = 0;
    }
    if (p->own == NULL)
        p->own = tilth_buffer_create(p->size);
    if (p->own == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "no memory for %zu bytes of %s", p->size, port->name);
    p->own_size = p->own_size > p->size ? p->own_size : p->size;
    if (p->data != p->own)
        r->is_checked = false;
    p->data = p->own;
    p->on_device = false;
    return TL_OK;
}

static tl_status write_input(tilth_runner *r, int index, const void *data, size_t size,
                             const char *call, tl_diag *diag)
{
    place *p;

    TL_TRY(find_place(r, true, index, size, call, &p, diag));
    if (size == 0)
        return TL_OK;
    const tl_port *port = &r->spec->inputs[index];
    if (data == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: the data for %s is NULL", call, port->name);
    TL_TRY(use_own(r, p, port, diag));
    memcpy(p->own, data, size);
    return TL_OK;
}

tilth_status tilth_runner_write_input(tilth_runner *r, int index, const void *data, size_t size,
                                      tilth_error *error)
{
    TL_API_DIAG(diag);
    tilth_status status = enter(r, __func__, error);

    if (status != TILTH_OK)
        return status;
    return leave(r, write_input(r, index, data, size, __func__, &diag), &diag, error);
}

/* Bytes of an output in the shape that the latest run gave it. */
static size_t current_size(const tilth_runner *r, int index)
{
    const tl_port *port = &r->spec->outputs[index];
    int64_t size = 0;

    (void)tl_tensor_bytes(port->dtype, port->rank, tl_runner_output_shape(r->runner, index), &size,
                          NULL);
    return (size_t)size;
}

static tl_status read_output(tilth_runner *r, int index, void *data, size_t size, const char *call,
                             tl_diag *diag)
{
    place *p;
    bool is_known = index >= 0 && index < r->spec->output_count;
    bool is_part = is_known && r->outputs[index].is_current && size == current_size(r, index);

    TL_TRY(find_place(r, false, index, is_part ? r->outputs[index].size : size, call, &p, diag));
    const tl_port *port = &r->spec->outputs[index];
    if (!p->is_current)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: no run has written %s yet", call, port->name);
    if (p->on_device)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: %s is bound to memory of a GPU", call,
                       port->name);
    if (size == 0)
        return TL_OK;
    if (data == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: the buffer for %s is NULL", call, port->name);
    memmove(data, p->data, size); /* it may be the very buffer that is bound */
    return TL_OK;
}

const int64_t *tl_api_output_shape(const tilth_runner *r, int output)
{
    return tl_runner_output_shape(r->runner, output);
}

tilth_status tilth_runner_read_output(tilth_runner *r, int index, void *data, size_t size,
                                      tilth_error *error)
{
    TL_API_DIAG(diag);
    tilth_status status = enter(r, __func__, error);

    if (status != TILTH_OK)
        return status;
    return leave(r, read_output(r, index, data, size, __func__, &diag), &diag, error);
}

static tl_status get_output(tilth_runner *r, int index, tilth_tensor_info *out, const char *call,
                            tl_diag *diag)
{
    if (out == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is nowhere to put the answer", call);
    if (index < 0 || index >= r->spec->output_count)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is no output %d; the model has %d", call,
                       index, r->spec->output_count);
    const tl_port *port = &r->spec->outputs[index];
    if (!r->outputs[index].is_current)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: no run has written %s yet", call, port->name);
    *out = (tilth_tensor_info){ .name = port->name,
                                .dtype = (tilth_dtype)tl_dtype_infos[port->dtype].onnx,
                                .rank = port->rank,
                                .size = current_size(r, index) };
    memcpy(out->shape, tl_runner_output_shape(r->runner, index),
           sizeof *port->shape * (size_t)port->rank);
    return TL_OK;
}

tilth_status tilth_runner_output(tilth_runner *r, int index, tilth_tensor_info *out,
                                 tilth_error *error)
{
    TL_API_DIAG(diag);
    tilth_status status = enter(r, __func__, error);

    if (status != TILTH_OK)
        return status;
    return leave(r, get_output(r, index, out, __func__, &diag), &diag, error);
}

static bool overlap(const place *a, const place *b)
{
    uintptr_t p = (uintptr_t)a->data, q = (uintptr_t)b->data;

    return a->size > 0 && b->size > 0 && p < q + b->size && q < p + a->size;
}

static tl_status check_overlap(const tilth_runner *r, int output, tl_diag *diag)
{
    const place *p = &r->outputs[output];
    const char *other = NULL;

    for (int i = 0; i < r->spec->input_count; i++)
        if (overlap(p, &r->inputs[i]))
            other = r->spec->inputs[i].name;
    for (int i = 0; i < output; i++)
        if (overlap(p, &r->outputs[i]))
            other = r->spec->outputs[i].name;
    if (other == NULL)
        return TL_OK;
    return tl_fail(diag, TL_BAD_ARGUMENT,
                   "tilth_runner_run: the buffer of output %s overlaps that of %s",
                   r->spec->outputs[output].name, other);
}

/* Which places are on the device. */
static tl_status note_devices(tilth_runner *r, tl_diag *diag)
{
    const int inputs = r->spec->input_count, count = inputs + r->spec->output_count;
    bool any = false;

    for (int i = 0; i < count; i++)
        any |= i < inputs ? r->inputs[i].on_device : r->outputs[i - inputs].on_device;
    free(r->on_device);
    r->on_device = NULL;
    if (!any)
        return TL_OK;
    r->on_device = calloc((size_t)count, sizeof *r->on_device);
    if (r->on_device == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "runner: out of memory");
    for (int i = 0; i < count; i++)
        r->on_device[i] = i < inputs ? r->inputs[i].on_device : r->outputs[i - inputs].on_device;
    return TL_OK;
}

static tl_status check_places(tilth_runner *r, tl_diag *diag)
{
    for (int i = 0; i < r->spec->input_count; i++)
        if (r->inputs[i].data == NULL)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "tilth_runner_run: input %s was neither bound nor written",
                           r->spec->inputs[i].name);
    for (int i = 0; i < r->spec->output_count; i++)
        if (r->outputs[i].data == NULL)
            TL_TRY(use_own(r, &r->outputs[i], &r->spec->outputs[i], diag));
    for (int i = 0; i < r->spec->output_count; i++)
        TL_TRY(check_overlap(r, i, diag));
    for (int i = 0; i < r->spec->input_count; i++)
        r->input_data[i] = r->inputs[i].data;
    for (int i = 0; i < r->spec->output_count; i++)
        r->output_data[i] = (void *)r->outputs[i].data; /* given as a plain void * */
    TL_TRY(note_devices(r, diag));
    r->is_checked = true;
    return TL_OK;
}

static tl_status run(tilth_runner *r, tl_diag *diag)
{
    if (!r->is_checked)
        TL_TRY(check_places(r, diag));
    if (r->on_device != NULL)
        TL_TRY(tl_runner_run_device(r->runner, r->input_data, r->output_data, r->on_device, diag));
    else
        TL_TRY(tl_runner_run(r->runner, r->input_data, r->output_data, NULL, diag));
    for (int i = 0; i < r->spec->output_count; i++)
        r->outputs[i].is_current = true;
    return TL_OK;
}

tilth_status tilth_runner_run(tilth_runner *r, tilth_error *error)
{
    TL_API_DIAG(diag);
    tilth_status status = enter(r, __func__, error);

    if (status != TILTH_OK)
        return status;
    return leave(r, run(r, &diag), &diag, error);
}

/* ---- shapes ---- */

tilth_status tilth_runner_set_shapes(tilth_runner *r, const int64_t *const *shapes,
                                     tilth_error *error)
{
    TL_API_DIAG(diag);
    tilth_status status = enter(r, __func__, error);

    return status != TILTH_OK ? status
                              : leave(r, set_shapes(r, shapes, __func__, &diag), &diag, error);
}

tilth_status tilth_runner_input(tilth_runner *r, int index, tilth_tensor_info *out,
                                tilth_error *error)
{
    TL_API_DIAG(diag);
    tilth_status status = enter(r, __func__, error);

    return status != TILTH_OK
               ? status
               : leave(r, describe(r, true, index, out, __func__, &diag), &diag, error);
}

tilth_status tilth_runner_output_most(tilth_runner *r, int index, tilth_tensor_info *out,
                                      tilth_error *error)
{
    TL_API_DIAG(diag);
    tilth_status status = enter(r, __func__, error);

    return status != TILTH_OK
               ? status
               : leave(r, describe(r, false, index, out, __func__, &diag), &diag, error);
}
