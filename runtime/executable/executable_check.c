/* runtime/executable/executable_check.c: whether a spec holds together. It may come from a file. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/executable/executable_private.h"
#include "runtime/executable/regions.h"

enum { MAX_THINGS = 1 << 24 };

static tl_status check_count(const char *what, int count, tl_diag *diag)
{
    if (count < 0 || count > MAX_THINGS)
        return tl_fail(diag, TL_BAD_ARGUMENT, "executable: %d %s", count, what);
    return TL_OK;
}

static tl_status check_dims(const tl_executable_spec *spec, tl_diag *diag)
{
    if (spec->dim_count < 0 || spec->dim_count > TL_MOST_DIMS)
        return tl_fail(diag, TL_BAD_ARGUMENT, "executable: %d dims, not 0..%d", spec->dim_count,
                       TL_MOST_DIMS);
    for (int i = 0; i < spec->dim_count; i++) {
        const tl_executable_dim *d = &spec->dims[i];
        if (d->name == NULL || d->min < 0 || d->start < d->min || d->max < d->start)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "executable: dim %d has no name, or starts outside of its range", i);
    }
    return TL_OK;
}

/* The extents that vary are what the shape says where all dims are at their start. */
static tl_status check_varying(const tl_port *port, const int64_t *starts, int dim_count,
                               tl_diag *diag)
{
    int64_t shape[TL_TENSOR_MAX_RANK];
    size_t size;

    if (port->varying == NULL)
        return TL_OK;
    if (!tl_port_at(port, dim_count, starts, shape, &size) ||
        memcmp(shape, port->shape, sizeof *shape * (size_t)port->rank) != 0)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "executable: the shape of %s is another than its dims make", port->name);
    if (port->fixed != NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "executable: %s has a fixed value, and varies",
                       port->name);
    return TL_OK;
}

static tl_status check_ports(const char *what, const tl_port *ports, int count,
                             const int64_t *starts, int dim_count, tl_diag *diag)
{
    int64_t bytes;

    for (int i = 0; i < count; i++) {
        if (ports[i].name == NULL || (unsigned)ports[i].dtype >= TL_DTYPE_COUNT)
            return tl_fail(diag, TL_BAD_ARGUMENT, "executable: %s %d has no name or dtype", what,
                           i);
        tl_status status =
            tl_tensor_bytes(ports[i].dtype, ports[i].rank, ports[i].shape, &bytes, diag);
        if (status != TL_OK) {
            tl_context(diag, "%s %s", what, ports[i].name);
            return status;
        }
        TL_TRY(check_varying(&ports[i], starts, dim_count, diag));
    }
    return TL_OK;
}

static tl_status check_port_value(const tl_executable_value *v, const tl_port *ports, int count,
                                  tl_diag *diag)
{
    assert(count >= 0);
    int64_t bytes = 0;

    if (v->port < 0 || v->port >= count)
        return tl_fail(diag, TL_BAD_ARGUMENT, "executable: value %s: %s %d of %d", v->name,
                       tl_place_texts[v->place], v->port, count);
    const tl_port *port = &ports[v->port];
    TL_TRY(tl_tensor_bytes(port->dtype, port->rank, port->shape, &bytes, diag));
    if (v->size > bytes)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "executable: value %s: %lld bytes do not fit in the %lld of %s %s", v->name,
                       (long long)v->size, (long long)bytes, tl_place_texts[v->place], port->name);
    return TL_OK;
}

static tl_status check_window(const tl_executable_spec *spec, const tl_executable_value *v,
                              tl_diag *diag)
{
    if (v->whole < 0 || v->whole >= spec->value_count)
        return tl_fail(diag, TL_BAD_ARGUMENT, "executable: value %s: a window of value %d of %d",
                       v->name, v->whole, spec->value_count);
    const tl_executable_value *whole = &spec->values[v->whole];
    if (whole->place != TL_PLACE_INPUT && whole->place != TL_PLACE_OUTPUT &&
        whole->place != TL_PLACE_ARENA)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "executable: value %s: a window of a value that is no input, output or "
                       "arena value",
                       v->name);
    if (whole->factor_count > 0)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "executable: value %s: a window of a value whose size varies", v->name);
    if (v->offset < 0 || v->offset % TL_DATA_ALIGNMENT != 0 || v->offset > whole->size ||
        v->size > whole->size - v->offset)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "executable: value %s: %lld bytes from byte %lld on are no aligned window "
                       "of the %lld of its whole",
                       v->name, (long long)v->size, (long long)v->offset, (long long)whole->size);
    return TL_OK;
}

static tl_status check_factors(const tl_executable_value *v, const int64_t *starts, int dim_count,
                               tl_diag *diag)
{
    int64_t size;

    if (v->place != TL_PLACE_INPUT && v->place != TL_PLACE_OUTPUT && v->place != TL_PLACE_ARENA)
        return tl_fail(diag, TL_BAD_ARGUMENT, "executable: value %s: a %s does not vary", v->name,
                       tl_place_texts[v->place]);
    if (!tl_executable_size_at(v, dim_count, starts, &size) || size != v->size)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "executable: value %s: %lld bytes are not what its dims make", v->name,
                       (long long)v->size);
    return TL_OK;
}

static tl_status check_value(const tl_executable_spec *spec, const tl_executable_value *v,
                             const int64_t *starts, tl_diag *diag)
{
    if (v->name == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "executable: value %d has no name",
                       (int)(v - spec->values));
    if (v->size < 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "executable: value %s: size %lld is negative",
                       v->name, (long long)v->size);
    if (v->factor_count > 0)
        TL_TRY(check_factors(v, starts, spec->dim_count, diag));
    switch (v->place) {
    case TL_PLACE_INPUT:
        return check_port_value(v, spec->inputs, spec->input_count, diag);
    case TL_PLACE_OUTPUT:
        return check_port_value(v, spec->outputs, spec->output_count, diag);
    case TL_PLACE_CONSTANT:
        if (v->data == NULL && v->size > 0)
            return tl_fail(diag, TL_BAD_ARGUMENT, "executable: constant %s has no data", v->name);
        if (v->file != NULL && v->file_offset < 0)
            return tl_fail(diag, TL_BAD_ARGUMENT, "executable: constant %s: offset %lld in %s",
                           v->name, (long long)v->file_offset, v->file);
        return TL_OK;
    case TL_PLACE_WINDOW:
        return check_window(spec, v, diag);
    case TL_PLACE_ARENA:
    case TL_PLACE_PREPARED:
        return TL_OK;
    case TL_PLACE_COUNT:
        break;
    }
    return tl_fail(diag, TL_BAD_ARGUMENT, "executable: value %s is in no place", v->name);
}

static tl_status check_kernel(const tl_executable_kernel *k, int index, tl_diag *diag)
{
    const tl_descriptor *d = &k->descriptor;

    if (d->name == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "executable: kernel %d has no name", index);
    if (d->phase_count < 0 || d->dim_count < 0 || d->buffer_count < 0 || d->scratch_bytes < 0 ||
        d->thread_scratch_bytes < 0 || (unsigned)d->form >= TL_FORM_COUNT ||
        (tl_descriptor_is_gpu(d) ? d->arch == NULL || (d->launches == NULL && d->phase_count > 0)
                                 : !d->has_sizes && d->extents == NULL && d->phase_count > 0))
        return tl_fail(diag, TL_BAD_ARGUMENT, "executable: kernel %s: its descriptor is malformed",
                       d->name);
    for (int i = 0; !d->has_sizes && !tl_descriptor_is_gpu(d) && i < d->phase_count; i++)
        if (d->extents[i] < 0)
            return tl_fail(diag, TL_BAD_ARGUMENT, "executable: kernel %s: extent %lld", d->name,
                           (long long)d->extents[i]);
    if ((k->phases == NULL || tl_descriptor_is_gpu(d)) && k->object == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "executable: kernel %s has no code", d->name);
    if (k->phases != NULL && !tl_descriptor_is_gpu(d) && d->has_sizes && k->sizes == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "executable: kernel %s has no sizes function",
                       d->name);
    return TL_OK;
}

static tl_status check_copy(const tl_executable_spec *spec, const tl_executable_step *s,
                            tl_diag *diag)
{
    if (s->value_count != 2 || s->values[0] < 0 || s->values[1] < 0 ||
        spec->values[s->values[0]].size != spec->values[s->values[1]].size)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "executable: copy %s is not from one value to another of the same size",
                       s->name);
    return TL_OK;
}

/* One number or truth value that the runtime itself reads, or writes. TL_NO_VALUE is fine where it is `optional`. */
static tl_status check_scalar(const tl_executable_spec *spec, const char *name, int value,
                              int64_t size, bool is_written, bool optional, tl_diag *diag)
{
    if (value == TL_NO_VALUE && optional)
        return TL_OK;
    if (value < 0 || value >= spec->value_count || spec->values[value].size != size ||
        spec->values[value].factor_count > 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "executable: %s: value %d is not one of %d bytes",
                       name, value, (int)size);
    tl_place place = spec->values[tl_executable_storage(spec, value)].place;
    if (is_written && place != TL_PLACE_ARENA && place != TL_PLACE_OUTPUT)
        return tl_fail(diag, TL_BAD_ARGUMENT, "executable: %s: it writes %s, which is an %s", name,
                       spec->values[value].name, tl_place_texts[place]);
    return TL_OK;
}

static tl_status check_put(const tl_executable_spec *spec, const tl_executable_step *s,
                           tl_diag *diag)
{
    if (s->value_count != 3 || s->values[0] < 0 || s->values[1] < 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "executable: put %s has no three values", s->name);
    const tl_executable_value *part = &spec->values[s->values[0]];
    const tl_executable_value *whole = &spec->values[s->values[1]];
    tl_place place = spec->values[tl_executable_storage(spec, s->values[1])].place;
    if (place != TL_PLACE_ARENA && place != TL_PLACE_OUTPUT)
        return tl_fail(diag, TL_BAD_ARGUMENT, "executable: put %s writes %s, which is an %s",
                       s->name, whole->name, tl_place_texts[place]);
    if (part->size == 0 ? whole->size != 0 : whole->size % part->size != 0)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "executable: put %s: %lld bytes are no whole number of parts of %lld",
                       s->name, (long long)whole->size, (long long)part->size);
    return check_scalar(spec, s->name, s->values[2], sizeof(int64_t), false, false, diag);
}

static tl_status check_loop(const tl_executable_spec *spec, const tl_executable_step *s,
                            tl_diag *diag)
{
    if (s->value_count != TL_LOOP_VALUE_COUNT || s->most < 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "executable: loop %s has %d values, %lld turns",
                       s->name, s->value_count, (long long)s->most);
    for (int i = 0; i < TL_LOOP_VALUE_COUNT; i++) {
        bool is_truth = i == TL_LOOP_ENTERS || i == TL_LOOP_AGAIN;
        bool is_written = i == TL_LOOP_TURN || i == TL_LOOP_TAKEN;
        TL_TRY(check_scalar(spec, s->name, s->values[i],
                            is_truth ? (int64_t)tl_dtype_size(TL_BOOL) : (int64_t)sizeof(int64_t),
                            is_written, i != TL_LOOP_TURN, diag));
    }
    return TL_OK;
}

static tl_status check_choice(const tl_executable_spec *spec, const tl_executable_step *s,
                              tl_diag *diag)
{
    if (s->value_count != 1)
        return tl_fail(diag, TL_BAD_ARGUMENT, "executable: choice %s has %d values, not one",
                       s->name, s->value_count);
    return check_scalar(spec, s->name, s->values[0], (int64_t)tl_dtype_size(TL_BOOL), false, false,
                        diag);
}

static tl_status check_step(const tl_executable_spec *spec, const tl_executable_step *s,
                            bool is_prepare, tl_diag *diag)
{
    if (s->name == NULL || s->kernel < TL_STEP_FIRST || s->kernel >= spec->kernel_count)
        return tl_fail(diag, TL_BAD_ARGUMENT, "executable: step %s: kernel %d of %d",
                       s->name != NULL ? s->name : "without a name", s->kernel, spec->kernel_count);
    TL_TRY(check_count("values of a step", s->value_count, diag));
    for (int i = 0; i < s->value_count; i++) {
        int value = s->values[i];
        if (value >= spec->value_count || value < TL_NO_VALUE)
            return tl_fail(diag, TL_BAD_ARGUMENT, "executable: step %s: value %d of %d", s->name,
                           value, spec->value_count);
        if (value == TL_NO_VALUE || !is_prepare)
            continue;
        tl_place place = spec->values[tl_executable_storage(spec, value)].place;
        if (place == TL_PLACE_INPUT || place == TL_PLACE_OUTPUT)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "executable: prepare step %s uses %s, which is an %s", s->name,
                           spec->values[value].name, tl_place_texts[place]);
    }
    if (s->kernel == TL_STEP_COPY)
        return check_copy(spec, s, diag);
    if (s->kernel < 0 && is_prepare)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "executable: prepare step %s is neither a kernel nor a copy", s->name);
    if (s->kernel == TL_STEP_PUT)
        return check_put(spec, s, diag);
    if (s->kernel == TL_STEP_LOOP)
        return check_loop(spec, s, diag);
    if (s->kernel == TL_STEP_CHOICE)
        return check_choice(spec, s, diag);

    const tl_descriptor *d = &spec->kernels[s->kernel].descriptor;
    if (s->value_count != d->buffer_count)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "executable: step %s: %d values for the %d buffers of kernel %s", s->name,
                       s->value_count, d->buffer_count, d->name);
    if (d->dim_count > 0 && s->dims == NULL && d->dim_count != spec->dim_count)
        return tl_fail(diag, TL_BAD_ARGUMENT, "executable: step %s: no values for the %d dims",
                       s->name, d->dim_count);
    return TL_OK;
}

/* Steps of an executable for a device run there, all of them. */
static tl_status check_device(const tl_executable_spec *spec, tl_diag *diag)
{
    const tl_device_type *type = spec->device != NULL ? tl_device_type_named(spec->device) : NULL;

    if (spec->device != NULL && type == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "executable: there are no devices of type %.40s",
                       spec->device);
    if (spec->device != NULL && spec->dim_count > 0)
        return tl_fail(diag, TL_UNSUPPORTED,
                       "executable: shapes that vary, which kernels for %s do not take yet",
                       spec->device);
    for (int i = 0; spec->device != NULL && i < spec->output_count; i++)
        if (spec->outputs[i].counts != NULL)
            return tl_fail(diag, TL_UNSUPPORTED,
                           "executable: steps compute the shape of output %s, which those on %s do "
                           "not take yet",
                           spec->outputs[i].name, spec->device);
    for (int i = 0; i < spec->step_count; i++) {
        const tl_executable_step *s = &spec->steps[i];
        if (spec->device != NULL && s->kernel < TL_STEP_COPY)
            return tl_fail(diag, TL_UNSUPPORTED,
                           "executable: step %s is a loop or a choice, which run on the CPU only",
                           s->name);
        if (s->kernel >= 0 && tl_step_is_on_device(spec, s) != (spec->device != NULL))
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "executable: step %s has code of the form %s and is to run on %s",
                           s->name, tl_form_infos[spec->kernels[s->kernel].descriptor.form].text,
                           spec->device != NULL ? spec->device : "the CPU");
    }
    for (int i = 0; i < spec->prepare_count; i++)
        if (tl_step_is_on_device(spec, &spec->prepare[i]) && spec->device == NULL)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "executable: prepare step %s is for a device, and there is none",
                           spec->prepare[i].name);
    return TL_OK;
}

static tl_status check_counts(const tl_executable_spec *spec, tl_diag *diag)
{
    for (int i = 0; i < spec->output_count; i++)
        for (int a = 0; spec->outputs[i].counts != NULL && a < spec->outputs[i].rank; a++)
            TL_TRY(check_scalar(spec, spec->outputs[i].name, spec->outputs[i].counts[a],
                                sizeof(int64_t), false, true, diag));
    return TL_OK;
}

/* An output that no step touches would leave the caller's buffer as it was. */
static tl_status check_outputs(const tl_executable_spec *spec, tl_diag *diag)
{
    bool *bound = calloc((size_t)spec->output_count + 1, sizeof *bound);
    if (bound == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "executable: no memory for %d outputs",
                       spec->output_count);
    for (int s = 0; s < spec->step_count; s++)
        for (int i = 0; i < spec->steps[s].value_count; i++) {
            int value = spec->steps[s].values[i];
            if (value == TL_NO_VALUE)
                continue;
            const tl_executable_value *v = &spec->values[tl_executable_storage(spec, value)];
            if (v->place == TL_PLACE_OUTPUT)
                bound[v->port] = true;
        }
    int port = 0;
    while (port < spec->output_count && bound[port])
        port++;
    free(bound);
    if (port == spec->output_count)
        return TL_OK;
    return tl_fail(diag, TL_BAD_ARGUMENT, "executable: no step writes output %s",
                   spec->outputs[port].name);
}

tl_status tl_executable_check(const tl_executable_spec *spec, tl_diag *diag)
{
    TL_TRY(check_count("inputs", spec->input_count, diag));
    TL_TRY(check_count("outputs", spec->output_count, diag));
    TL_TRY(check_count("values", spec->value_count, diag));
    TL_TRY(check_count("kernels", spec->kernel_count, diag));
    TL_TRY(check_count("prepare steps", spec->prepare_count, diag));
    TL_TRY(check_count("steps", spec->step_count, diag));
    TL_TRY(check_dims(spec, diag));
    int64_t starts[TL_MOST_DIMS];
    for (int i = 0; i < spec->dim_count; i++)
        starts[i] = spec->dims[i].start;
    TL_TRY(check_ports("input", spec->inputs, spec->input_count, starts, spec->dim_count, diag));
    TL_TRY(check_ports("output", spec->outputs, spec->output_count, starts, spec->dim_count, diag));
    for (int i = 0; i < spec->value_count; i++)
        TL_TRY(check_value(spec, &spec->values[i], starts, diag));
    for (int i = 0; i < spec->kernel_count; i++)
        TL_TRY(check_kernel(&spec->kernels[i], i, diag));
    for (int i = 0; i < spec->prepare_count; i++)
        TL_TRY(check_step(spec, &spec->prepare[i], true, diag));
    for (int i = 0; i < spec->step_count; i++)
        TL_TRY(check_step(spec, &spec->steps[i], false, diag));
    TL_TRY(tl_regions_check(spec->prepare, spec->prepare_count, diag));
    TL_TRY(tl_regions_check(spec->steps, spec->step_count, diag));
    TL_TRY(check_device(spec, diag));
    TL_TRY(check_counts(spec, diag));
    return check_outputs(spec, diag);
}
