/* runtime/executable/executable.c: making an executable from its spec, asking about it, destroying it. */
#include "runtime/executable/executable.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/checked.h"
#include "runtime/base/pages.h"
#include "runtime/executable/executable_private.h"

static const char *copy_text(tl_arena *arena, const char *text)
{
    return text != NULL ? tl_arena_strdup(arena, text) : NULL;
}

static const tl_varying *copy_varying(tl_arena *arena, const tl_varying *from, int count)
{
    if (count == 0 || from == NULL)
        return NULL;
    return tl_arena_copy(arena, from, sizeof *from * (size_t)count, _Alignof(tl_varying));
}

static const tl_port *copy_ports(tl_arena *arena, const tl_port *from, int count)
{
    tl_port *ports = TL_NEW_ARRAY(arena, tl_port, count);

    for (int i = 0; i < count; i++) {
        ports[i] = from[i];
        ports[i].name = tl_arena_strdup(arena, from[i].name);
        ports[i].varying = copy_varying(arena, from[i].varying, from[i].rank);
        if (from[i].fixed != NULL)
            ports[i].fixed = tl_arena_copy(arena, from[i].fixed, tl_port_size(&from[i]), 8);
        if (from[i].counts != NULL)
            ports[i].counts = tl_arena_copy(arena, from[i].counts,
                                            sizeof(int) * (size_t)from[i].rank, _Alignof(int));
    }
    return ports;
}

static const tl_executable_value *copy_values(tl_arena *arena, const tl_executable_value *from,
                                              int count)
{
    tl_executable_value *values = TL_NEW_ARRAY(arena, tl_executable_value, count);

    for (int i = 0; i < count; i++) {
        values[i] = from[i];
        values[i].name = tl_arena_strdup(arena, from[i].name);
        values[i].file = copy_text(arena, from[i].file);
        values[i].factors = copy_varying(arena, from[i].factors, from[i].factor_count);
    }
    return values;
}

static const int64_t *copy_integers(tl_arena *arena, const int64_t *from, int count)
{
    if (count == 0 || from == NULL)
        return NULL;
    return tl_arena_copy(arena, from, sizeof *from * (size_t)count, _Alignof(int64_t));
}

static tl_executable_kernel *copy_kernels(tl_arena *arena, const tl_executable_kernel *from,
                                          int count, bool borrow)
{
    tl_executable_kernel *kernels = TL_NEW_ARRAY(arena, tl_executable_kernel, count);

    for (int i = 0; i < count; i++) {
        tl_descriptor *d = &kernels[i].descriptor;
        kernels[i] = from[i];
        kernels[i].key = copy_text(arena, from[i].key);
        tl_descriptor_copy(arena, &from[i].descriptor, d);
        kernels[i].native_arch = copy_text(arena, from[i].native_arch);
        if (from[i].object != NULL && !borrow)
            kernels[i].object = tl_arena_copy(arena, from[i].object, from[i].object_size, 16);
        if (from[i].native != NULL && !borrow)
            kernels[i].native = tl_arena_copy(arena, from[i].native, from[i].native_size, 16);
        if (from[i].phases != NULL)
            kernels[i].phases = tl_arena_copy(arena, from[i].phases,
                                              sizeof(tl_phase_fn *) * (size_t)d->phase_count, 16);
    }
    return kernels;
}

static const tl_executable_step *copy_steps(tl_arena *arena, const tl_executable_spec *spec,
                                            const tl_executable_step *from, int count)
{
    tl_executable_step *steps = TL_NEW_ARRAY(arena, tl_executable_step, count);

    for (int i = 0; i < count; i++) {
        int dims = from[i].kernel < 0 ? 0 : spec->kernels[from[i].kernel].descriptor.dim_count;
        steps[i] = from[i];
        steps[i].name = tl_arena_strdup(arena, from[i].name);
        steps[i].class_key = copy_text(arena, from[i].class_key);
        steps[i].workload = copy_text(arena, from[i].workload);
        steps[i].values = tl_arena_copy(arena, from[i].values,
                                        sizeof(int) * (size_t)from[i].value_count, _Alignof(int));
        steps[i].dims = copy_integers(arena, from[i].dims, dims);
        steps[i].varying_most = copy_varying(arena, from[i].varying_most, 1);
    }
    return steps;
}

static const tl_executable_dim *copy_dims(tl_arena *arena, const tl_executable_dim *from, int count)
{
    tl_executable_dim *dims = TL_NEW_ARRAY(arena, tl_executable_dim, count);

    for (int i = 0; i < count; i++) {
        dims[i] = from[i];
        dims[i].name = copy_text(arena, from[i].name);
    }
    return dims;
}

static void copy_spec(tl_executable *x, const tl_executable_spec *from, bool borrow)
{
    tl_arena *arena = x->arena;
    size_t values = (size_t)from->value_count;

    x->spec = *from;
    x->spec.model = tl_arena_strdup(arena, from->model != NULL ? from->model : "");
    x->spec.note = copy_text(arena, from->note);
    x->spec.device = copy_text(arena, from->device);
    if (from->cpu.machine[0] == '\0')
        x->spec.cpu = *tl_cpu_host();
    x->spec.dims = copy_dims(arena, from->dims, from->dim_count);
    x->spec.inputs = copy_ports(arena, from->inputs, from->input_count);
    x->spec.outputs = copy_ports(arena, from->outputs, from->output_count);
    x->spec.values = copy_values(arena, from->values, from->value_count);
    x->kernels = copy_kernels(arena, from->kernels, from->kernel_count, borrow);
    x->spec.kernels = x->kernels;
    x->spec.prepare = copy_steps(arena, from, from->prepare, from->prepare_count);
    x->spec.steps = copy_steps(arena, from, from->steps, from->step_count);

    x->codes = TL_NEW_ARRAY(arena, tl_code *, from->kernel_count);
    x->data = TL_NEW_ARRAY(arena, const void *, values);
    x->copies = TL_NEW_ARRAY(arena, void *, values);
    x->in_steps = TL_NEW_ARRAY(arena, bool, values);
    x->in_prepare = TL_NEW_ARRAY(arena, bool, values);
    x->prepared_offset = TL_NEW_ARRAY(arena, int64_t, values);
    for (int i = 0; i < from->kernel_count; i++)
        if (x->kernels[i].phases == NULL) /* filled by load_code */
            x->kernels[i].phases =
                TL_NEW_ARRAY(arena, tl_phase_fn *, x->kernels[i].descriptor.phase_count);
}

static tl_status copy_guarded(tl_executable *x, const tl_executable_spec *from, bool borrow,
                              tl_diag *diag)
{
    x->arena = tl_arena_create(0);
    if (x->arena == NULL || TL_ARENA_GUARD(x->arena))
        return tl_fail(diag, TL_NO_MEMORY, "executable: out of memory");
    copy_spec(x, from, borrow);
    return TL_OK;
}

static tl_status load_code(tl_executable *x, const tl_executable_spec *from, tl_diag *diag)
{
    for (int i = 0; i < x->spec.kernel_count; i++) {
        tl_executable_kernel *k = &x->kernels[i];
        if (from->kernels[i].phases != NULL || tl_descriptor_is_gpu(&k->descriptor))
            continue;
        tl_status status = tl_code_load(k->object, k->object_size, &x->codes[i], diag);
        if (status == TL_OK)
            status = tl_code_kernel(x->codes[i], &k->descriptor, (tl_phase_fn **)k->phases,
                                    &k->sizes, diag);
        if (status != TL_OK) {
            tl_context(diag, "kernel %s", k->descriptor.name);
            return status;
        }
    }
    return TL_OK;
}

bool tl_constant_is_aligned(const void *data, int64_t size)
{
    uintptr_t element = (uintptr_t)(size & -size);

    return (uintptr_t)data % (element > 8 || element == 0 ? 8 : element) == 0;
}

/* Bytes in a model's file lie anywhere. */
static tl_status align_constant(tl_executable *x, int index, tl_diag *diag)
{
    assert(index >= 0 && index < x->spec.value_count);
    const tl_executable_value *v = &x->spec.values[index];
    size_t rounded = ((size_t)v->size + TL_DATA_ALIGNMENT) / TL_DATA_ALIGNMENT * TL_DATA_ALIGNMENT;

    x->data[index] = v->data;
    if (!x->in_steps[index] || x->spec.device != NULL || tl_constant_is_aligned(v->data, v->size))
        return TL_OK;
    x->copies[index] = aligned_alloc(TL_DATA_ALIGNMENT, rounded);
    if (x->copies[index] == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "executable: no memory for constant %s", v->name);
    memcpy(x->copies[index], v->data, (size_t)v->size);
    x->data[index] = x->copies[index];
    return TL_OK;
}

static tl_status place_values(tl_executable *x, tl_diag *diag)
{
    tl_executable_mark(&x->spec, x->spec.steps, x->spec.step_count, x->in_steps);
    tl_executable_mark_counts(&x->spec, x->in_steps);
    tl_executable_mark(&x->spec, x->spec.prepare, x->spec.prepare_count, x->in_prepare);
    for (int i = 0; i < x->spec.value_count; i++) {
        const tl_executable_value *v = &x->spec.values[i];
        if (v->place == TL_PLACE_ARENA && x->in_steps[i] && x->in_prepare[i])
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "executable: arena value %s is used by prepare steps and by steps",
                           v->name);
        if (v->place == TL_PLACE_CONSTANT)
            TL_TRY(align_constant(x, i, diag));
        if (v->place != TL_PLACE_PREPARED)
            continue;
        x->prepared_offset[i] = x->prepared_size;
        int64_t size;
        if (tl_add_overflows(x->prepared_size, v->size, &size) ||
            size > INT64_MAX - TL_DATA_ALIGNMENT)
            return tl_fail(diag, TL_BAD_ARGUMENT, "executable: prepared value %s is too large",
                           v->name);
        x->prepared_size = (size + TL_DATA_ALIGNMENT - 1) / TL_DATA_ALIGNMENT * TL_DATA_ALIGNMENT;
    }
    return TL_OK;
}

static tl_status build(tl_executable *x, const tl_executable_spec *spec, bool borrow, tl_diag *diag)
{
    TL_TRY(tl_executable_check(spec, diag));
    TL_TRY(copy_guarded(x, spec, borrow, diag));
    TL_TRY(load_code(x, spec, diag));
    TL_TRY(place_values(x, diag));
    atomic_store(&x->is_prepared, x->spec.prepare_count == 0 && x->prepared_size == 0);
    return TL_OK;
}

tl_status tl_executable_build(const tl_executable_spec *spec, bool borrow, tl_executable **out,
                              tl_diag *diag)
{
    tl_executable *x = calloc(1, sizeof *x);

    if (x == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "executable: out of memory");
    pthread_mutex_init(&x->lock, NULL);
    tl_status status = build(x, spec, borrow, diag);
    if (status != TL_OK) {
        tl_context(diag, "the executable of %s", spec->model != NULL ? spec->model : "a model");
        tl_executable_destroy(x);
        return status;
    }
    *out = x;
    return TL_OK;
}

tl_status tl_executable_create(const tl_executable_spec *spec, tl_executable **out, tl_diag *diag)
{
    tl_executable *x;

    TL_TRY(tl_executable_build(spec, false, &x, diag));
    if (x->prepared_size > 0 && x->spec.prepare_count == 0) {
        tl_executable_destroy(x);
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "executable: it has prepared values but no prepare steps");
    }
    *out = x;
    return TL_OK;
}

void tl_executable_destroy(tl_executable *x)
{
    if (x == NULL)
        return;
    tl_executable_detach(x);
    for (int i = 0; x->codes != NULL && i < x->spec.kernel_count; i++)
        tl_code_unload(x->codes[i]);
    for (int i = 0; x->copies != NULL && i < x->spec.value_count; i++)
        free(x->copies[i]);
    if (x->prepared_file.data == NULL && !x->prepared_is_borrowed)
        tl_pages_give(x->prepared, (size_t)x->prepared_size);
    tl_file_unmap(&x->prepared_file);
    tl_file_unmap(&x->constants_file);
    tl_file_unmap(&x->objects_file);
    for (int i = 0; i < x->model_file_count; i++)
        tl_file_unmap(&x->model_files[i]);
    free(x->model_files);
    free(x->folder);
    pthread_mutex_destroy(&x->lock);
    tl_arena_destroy(x->arena);
    free(x);
}

void tl_executable_limit_memory(tl_executable *x, int64_t bytes)
{
    x->memory_limit = bytes;
}

tl_status tl_executable_check_limit(const tl_executable *x, int64_t bytes, const char *what,
                                    tl_diag *diag)
{
    tl_text most = { 0 }, all = { 0 };

    if (x->memory_limit <= 0 || bytes <= x->memory_limit)
        return TL_OK;
    tl_text_add_size(&most, x->memory_limit);
    tl_text_add_size(&all, bytes);
    tl_status status = tl_fail(diag, TL_NO_MEMORY,
                               "%s takes more memory than the limit of %s (max-memory): %s of %s",
                               x->spec.model, tl_text_get(&most), tl_text_get(&all), what);
    tl_text_free(&most);
    tl_text_free(&all);
    return status;
}

const tl_executable_spec *tl_executable_info(const tl_executable *x)
{
    return &x->spec;
}

static int find_port(const tl_port *ports, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(ports[i].name, name) == 0)
            return i;
    return -1;
}

int tl_executable_find_input(const tl_executable *x, const char *name)
{
    return find_port(x->spec.inputs, x->spec.input_count, name);
}

int tl_executable_find_output(const tl_executable *x, const char *name)
{
    return find_port(x->spec.outputs, x->spec.output_count, name);
}

tl_executable_sizes tl_executable_measure(const tl_executable *x)
{
    tl_executable_sizes sizes = { .prepared_bytes = x->prepared_size };

    for (int i = 0; i < x->spec.value_count; i++) {
        const tl_executable_value *v = &x->spec.values[i];
        if (v->place == TL_PLACE_CONSTANT)
            *(v->file != NULL ? &sizes.external_bytes : &sizes.constant_bytes) += v->size;
    }
    for (int i = 0; i < x->spec.kernel_count; i++)
        sizes.code_bytes += x->codes[i] != NULL ? (int64_t)tl_code_size(x->codes[i])
                                                : (int64_t)x->kernels[i].object_size;
    return sizes;
}
