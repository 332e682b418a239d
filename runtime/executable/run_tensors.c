/* runtime/executable/run_tensors.c: running on tensors: checked against the ports, aligned where they are
 * not. */
#include <stdlib.h>
#include <string.h>
#include "runtime/executable/executable_private.h"

/* The port's shape for the dims that the runner has; they were checked when they were set. */
static void port_shape(const tl_runner *r, const tl_port *port, int64_t *shape)
{
    size_t size;
    tl_port_at(port, tl_executable_info(tl_runner_executable(r))->dim_count, tl_runner_dims(r),
               shape, &size);
}

static tl_status check_tensor(const tl_runner *r, const tl_port *port, const tl_tensor *t,
                              tl_diag *diag)
{
    int64_t shape[TL_TENSOR_MAX_RANK];
    port_shape(r, port, shape);
    if (t->dtype == port->dtype && t->rank == port->rank &&
        memcmp(t->shape, shape, sizeof *shape * (size_t)port->rank) == 0)
        return TL_OK;
    tl_text got = { 0 }, want = { 0 };
    tl_tensor_describe(t, &got);
    tl_shape_describe(port->dtype, port->rank, shape, &want);
    tl_status status = tl_fail(diag, TL_BAD_ARGUMENT, "%s is %s; the model wants %s", port->name,
                               tl_text_get(&got), tl_text_get(&want));
    tl_text_free(&got);
    tl_text_free(&want);
    return status;
}

/* What a run uses instead of tensors that are not aligned. */
typedef struct {
    const tl_runner *runner;
    const tl_executable_spec *spec;
    tl_tensor *tensors; /* inputs, then outputs; empty where the caller's own serves */
    const void **inputs;
    void **outputs;
} stand_ins;

static bool is_aligned(const void *pointer)
{
    return pointer != NULL && (uintptr_t)pointer % TL_DATA_ALIGNMENT == 0;
}

static tl_status prepare_inputs(stand_ins *s, const tl_tensor *inputs, tl_diag *diag)
{
    for (int i = 0; i < s->spec->input_count; i++) {
        const tl_tensor *t = &inputs[i];
        TL_TRY(check_tensor(s->runner, &s->spec->inputs[i], t, diag));
        s->inputs[i] = t->data;
        if (is_aligned(t->data))
            continue;
        TL_TRY(tl_tensor_create(t->dtype, t->rank, t->shape, &s->tensors[i], diag));
        if (t->size > 0)
            memcpy(s->tensors[i].data, t->data, (size_t)t->size);
        s->inputs[i] = s->tensors[i].data;
    }
    return TL_OK;
}

static tl_status prepare_outputs(stand_ins *s, tl_tensor *outputs, tl_diag *diag)
{
    for (int i = 0; i < s->spec->output_count; i++) {
        const tl_port *port = &s->spec->outputs[i];
        tl_tensor *t = &outputs[i], *own = &s->tensors[s->spec->input_count + i];
        int64_t shape[TL_TENSOR_MAX_RANK];
        port_shape(s->runner, port, shape);
        if (t->data == NULL && t->size == 0)
            TL_TRY(tl_tensor_create(port->dtype, port->rank, shape, t, diag));
        TL_TRY(check_tensor(s->runner, port, t, diag));
        s->outputs[i] = t->data;
        if (is_aligned(t->data))
            continue;
        TL_TRY(tl_tensor_create(t->dtype, t->rank, t->shape, own, diag));
        s->outputs[i] = own->data;
    }
    return TL_OK;
}

static void copy_back(const stand_ins *s, tl_tensor *outputs)
{
    for (int i = 0; i < s->spec->output_count; i++) {
        const tl_tensor *own = &s->tensors[s->spec->input_count + i];
        if (own->data != NULL && own->size > 0)
            memcpy(outputs[i].data, own->data, (size_t)own->size);
    }
}

/* An output may be smaller than its port. */
static void shape_outputs(const tl_runner *r, const tl_executable_spec *spec, tl_tensor *outputs)
{
    for (int i = 0; i < spec->output_count; i++) {
        const tl_port *port = &spec->outputs[i];
        if (port->counts == NULL)
            continue;
        memcpy(outputs[i].shape, tl_runner_output_shape(r, i),
               sizeof outputs[i].shape[0] * (size_t)port->rank);
        (void)tl_tensor_bytes(port->dtype, port->rank, outputs[i].shape, &outputs[i].size, NULL);
    }
}

tl_status tl_runner_run_tensors(tl_runner *r, const tl_tensor *inputs, tl_tensor *outputs,
                                int64_t *step_ns, tl_diag *diag)
{
    const tl_executable_spec *spec = tl_executable_info(tl_runner_executable(r));
    size_t input_count = (size_t)spec->input_count, output_count = (size_t)spec->output_count;
    stand_ins s = { .runner = r, .spec = spec };
    tl_status status = TL_OK;

    s.tensors = calloc(input_count + output_count + 1, sizeof *s.tensors);
    s.inputs = calloc(input_count + 1, sizeof *s.inputs);
    s.outputs = calloc(output_count + 1, sizeof *s.outputs);
    if (s.tensors == NULL || s.inputs == NULL || s.outputs == NULL)
        status = tl_fail(diag, TL_NO_MEMORY, "runner: out of memory");
    if (status == TL_OK)
        status = prepare_inputs(&s, inputs, diag);
    if (status == TL_OK)
        status = prepare_outputs(&s, outputs, diag);
    if (status == TL_OK)
        status = tl_runner_run(r, s.inputs, s.outputs, step_ns, diag);
    if (status == TL_OK)
        copy_back(&s, outputs);
    if (status == TL_OK)
        shape_outputs(r, spec, outputs);
    for (size_t i = 0; s.tensors != NULL && i < input_count + output_count; i++)
        tl_tensor_free(&s.tensors[i]);
    free(s.tensors);
    free(s.inputs);
    free(s.outputs);
    return status;
}
