/* runtime/executable/bindings.c: tensors for every port of an executable. */
#include "runtime/executable/bindings.h"
#include <string.h>
#include "runtime/base/map.h"
#include "runtime/base/random.h"

tl_status tl_port_random(const tl_port *port, uint64_t seed, tl_tensor *out, tl_diag *diag)
{
    tl_random random = tl_random_make(seed ^ tl_hash_bytes(port->name, strlen(port->name), 0));
    bool mask = strstr(port->name, "mask") != NULL;
    TL_TRY(tl_tensor_create(port->dtype, port->rank, port->shape, out, diag));
    if (port->fixed != NULL) {
        memcpy(out->data, port->fixed, tl_port_size(port));
        return TL_OK;
    }
    for (int64_t i = 0; i < tl_tensor_elements(out); i++) {
        tl_number value;
        if (tl_dtype_is_float(out->dtype))
            value.f = tl_random_normal(&random);
        else if (mask || out->dtype == TL_BOOL)
            value.i = 1;
        else
            value.i = tl_random_below(&random, 100);
        tl_number_store(out->dtype, out->data, (size_t)i, value);
    }
    return TL_OK;
}

void tl_bindings_free(tl_bindings *b)
{
    for (int i = 0; i < b->input_count; i++)
        tl_tensor_free(&b->inputs[i]);
    for (int i = 0; i < b->output_count; i++)
        tl_tensor_free(&b->outputs[i]);
    *b = (tl_bindings){ 0 };
}

/* The ports of a runner with these dims. */
static tl_status ports_at(tl_arena *arena, const tl_executable_spec *spec, const int64_t *dims,
                          const tl_port *ports, int count, const tl_port **out, tl_diag *diag)
{
    tl_port *fixed = TL_NEW_ARRAY(arena, tl_port, count);
    *out = dims != NULL ? fixed : ports;
    return dims == NULL || tl_ports_at(ports, count, spec->dim_count, dims, fixed)
               ? TL_OK
               : tl_fail(diag, TL_BAD_ARGUMENT, "%s: a tensor has no shape for these extents",
                         spec->model);
}

tl_status tl_bindings_make(tl_arena *arena, const tl_executable *executable, const int64_t *dims,
                           tl_tensor *inputs, uint64_t seed, tl_bindings *out, tl_diag *diag)
{
    const tl_executable_spec *spec = tl_executable_info(executable);
    const tl_port *in_ports = NULL, *out_ports = NULL;
    *out = (tl_bindings){ .input_count = spec->input_count,
                          .output_count = spec->output_count,
                          .inputs = inputs,
                          .outputs = TL_NEW_ARRAY(arena, tl_tensor, spec->output_count),
                          .in = TL_NEW_ARRAY(arena, const void *, spec->input_count),
                          .out = TL_NEW_ARRAY(arena, void *, spec->output_count) };
    if (inputs == NULL)
        out->inputs = TL_NEW_ARRAY(arena, tl_tensor, spec->input_count);
    TL_TRY(ports_at(arena, spec, dims, spec->inputs, spec->input_count, &in_ports, diag));
    TL_TRY(ports_at(arena, spec, dims, spec->outputs, spec->output_count, &out_ports, diag));
    for (int i = 0; i < spec->input_count; i++) {
        if (inputs == NULL)
            TL_TRY(tl_port_random(&in_ports[i], seed, &out->inputs[i], diag));
        out->in[i] = out->inputs[i].data;
    }
    for (int i = 0; i < spec->output_count; i++) {
        const tl_port *port = &out_ports[i];
        TL_TRY(tl_tensor_create(port->dtype, port->rank, port->shape, &out->outputs[i], diag));
        out->out[i] = out->outputs[i].data;
    }
    return TL_OK;
}

void tl_bindings_shape_outputs(tl_bindings *b, const tl_runner *runner)
{
    for (int i = 0; i < b->output_count; i++) {
        tl_tensor *t = &b->outputs[i];
        if (t->rank > 0)
            memcpy(t->shape, tl_runner_output_shape(runner, i),
                   sizeof t->shape[0] * (size_t)t->rank);
        (void)tl_tensor_bytes(t->dtype, t->rank, t->shape, &t->size, NULL);
    }
}
