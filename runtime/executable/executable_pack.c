/* runtime/executable/executable_pack.c: an executable in writing, as a folder (executable_save.c) or an object file holds it.
 *
 *     line 1: format, version, size and checksum of line 2
 *     line 2: everything that is not bulk, as JSON
 *
 * Every piece of bulk is named in line 2 with offset, size and checksum. What only prepare steps
 * need is left out once they have run. Kernels and values are numbered anew. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "runtime/base/checksum.h"
#include "runtime/executable/executable_private.h"
#include "runtime/executable/regions.h"

typedef struct {
    const tl_executable *x;
    tl_packed *out;
    bool whole, with_prepare;
    bool *value_used, *kernel_used;
    int *value_number, *kernel_number; /* in the saved executable */
    json_t *root;
    json_t *model_files; /* [{path, size, mtime_ns}] */
    bool failed;         /* JSON could not be built: no memory, or a name is not UTF-8 */
    tl_diag *diag;
} packer;

/* Adds a member; takes `value`. */
static void set(packer *p, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        p->failed = true;
}

static void push(packer *p, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0)
        p->failed = true;
}

static void set_text(packer *p, json_t *object, const char *key, const char *text)
{
    if (text != NULL)
        set(p, object, key, json_string(text));
}

static void set_checksum(packer *p, json_t *object, const void *bytes, size_t size, bool is_mapped)
{
    char text[17];
    uint64_t sum = is_mapped ? tl_checksum_mapped(bytes, size) : tl_checksum(bytes, size);

    snprintf(text, sizeof text, "%016llx", (unsigned long long)sum);
    set(p, object, "checksum", json_string(text));
}

static int number(bool *used, int count, int *numbers)
{
    int next = 0;

    for (int i = 0; i < count; i++)
        numbers[i] = used[i] ? next++ : -1;
    return next;
}

static void mark_kernels(const tl_executable_step *steps, int count, bool *used)
{
    for (int i = 0; i < count; i++)
        if (steps[i].kernel >= 0)
            used[steps[i].kernel] = true;
}

/* Prepared values keep their places in prepared.bin only when all of them are there. */
static void choose(packer *p)
{
    const tl_executable_spec *spec = &p->x->spec;

    tl_executable_mark(spec, spec->steps, spec->step_count, p->value_used);
    tl_executable_mark_counts(spec, p->value_used);
    mark_kernels(spec->steps, spec->step_count, p->kernel_used);
    if (p->with_prepare) {
        tl_executable_mark(spec, spec->prepare, spec->prepare_count, p->value_used);
        mark_kernels(spec->prepare, spec->prepare_count, p->kernel_used);
    }
    for (int i = 0; i < spec->value_count; i++)
        if (spec->values[i].place == TL_PLACE_PREPARED)
            p->value_used[i] = true;
    number(p->value_used, spec->value_count, p->value_number);
    number(p->kernel_used, spec->kernel_count, p->kernel_number);
}

/* Bytes, two hexadecimal digits each. */
static void set_hex(packer *p, json_t *object, const char *key, const void *bytes, size_t size)
{
    tl_text text = { 0 };
    for (size_t i = 0; i < size; i++)
        tl_text_format(&text, "%02x", ((const unsigned char *)bytes)[i]);
    p->failed |= text.failed;
    set_text(p, object, key, tl_text_get(&text));
    tl_text_free(&text);
}

/* A function of the dims: a number for each set of them (tl_varying). */
static json_t *varying_json(packer *p, const tl_varying *v)
{
    json_t *list = json_array();

    for (int s = 0; s < 1 << p->x->spec.dim_count; s++)
        push(p, list, json_integer(v->of[s]));
    return list;
}

static void set_varying(packer *p, json_t *object, const char *key, const tl_varying *of, int count)
{
    json_t *list = json_array();

    for (int i = 0; i < count; i++)
        push(p, list, varying_json(p, &of[i]));
    set(p, object, key, list);
}

static json_t *dims_json(packer *p)
{
    json_t *list = json_array();

    for (int i = 0; i < p->x->spec.dim_count; i++) {
        const tl_executable_dim *d = &p->x->spec.dims[i];
        json_t *dim = json_object();
        set_text(p, dim, "name", d->name);
        set(p, dim, "min", json_integer(d->min));
        set(p, dim, "max", json_integer(d->max));
        set(p, dim, "start", json_integer(d->start));
        push(p, list, dim);
    }
    return list;
}

static int value_number(const packer *p, int value)
{
    return value == TL_NO_VALUE ? TL_NO_VALUE : p->value_number[value];
}

static json_t *ports_json(packer *p, const tl_port *ports, int count)
{
    json_t *list = json_array();

    for (int i = 0; i < count; i++) {
        json_t *port = json_object(), *shape = json_array();
        set_text(p, port, "name", ports[i].name);
        set_text(p, port, "dtype", tl_dtype_infos[ports[i].dtype].text);
        for (int k = 0; k < ports[i].rank; k++)
            push(p, shape, json_integer(ports[i].shape[k]));
        set(p, port, "shape", shape);
        if (ports[i].varying != NULL)
            set_varying(p, port, "varying", ports[i].varying, ports[i].rank);
        if (ports[i].fixed != NULL)
            set_hex(p, port, "fixed", ports[i].fixed, tl_port_size(&ports[i]));
        json_t *counts = json_array();
        for (int k = 0; ports[i].counts != NULL && k < ports[i].rank; k++)
            push(p, counts, json_integer(value_number(p, ports[i].counts[k])));
        if (ports[i].counts != NULL)
            set(p, port, "counts", counts);
        else
            json_decref(counts);
        push(p, list, port);
    }
    return list;
}

/* The number of a model's file in the list, by its absolute path; what it is now is written
 * down. */
static tl_status model_file(packer *p, const char *file, int *out)
{
    char path[PATH_MAX];
    struct stat info;
    size_t count = json_array_size(p->model_files);

    if (realpath(file, path) == NULL || stat(path, &info) != 0)
        return tl_fail(p->diag, TL_IO, "%s: %s", file, strerror(errno));
    for (size_t i = 0; i < count; i++) {
        const json_t *entry = json_array_get(p->model_files, i);
        if (strcmp(json_string_value(json_object_get(entry, "path")), path) == 0) {
            *out = (int)i;
            return TL_OK;
        }
    }
    json_t *text = json_string(path), *entry = json_object();
    if (text == NULL) {
        json_decref(entry);
        return tl_fail(p->diag, TL_BAD_ARGUMENT, "the path of the model's file is not UTF-8");
    }
    set(p, entry, "path", text);
    set(p, entry, "size", json_integer(info.st_size));
    set(p, entry, "mtime_ns",
        json_integer((json_int_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec));
    push(p, p->model_files, entry);
    *out = (int)count;
    return TL_OK;
}

static tl_status constant_json(packer *p, const tl_executable_value *v, json_t *value)
{
    if (v->file != NULL && !p->whole) {
        int file;
        TL_TRY(model_file(p, v->file, &file));
        set(p, value, "file", json_integer(file));
        set(p, value, "offset", json_integer(v->file_offset));
        return TL_OK;
    }
    set(p, value, "offset",
        json_integer(tl_pieces_add(&p->out->constants, v->data, v->size, TL_DATA_ALIGNMENT)));
    p->out->constants.items[p->out->constants.count - 1].is_mapped = v->is_mapped;
    set_checksum(p, value, v->data, (size_t)v->size, v->is_mapped);
    return TL_OK;
}

static tl_status values_json(packer *p, json_t *list)
{
    for (int i = 0; i < p->x->spec.value_count; i++) {
        const tl_executable_value *v = &p->x->spec.values[i];
        if (!p->value_used[i])
            continue;
        json_t *value = json_object();
        set_text(p, value, "name", v->name);
        set_text(p, value, "place", tl_place_texts[v->place]);
        set(p, value, "size", json_integer(v->size));
        if (v->factor_count > 0) {
            set(p, value, "unit", json_integer(v->unit));
            set_varying(p, value, "factors", v->factors, v->factor_count);
        }
        if (v->place == TL_PLACE_INPUT || v->place == TL_PLACE_OUTPUT)
            set(p, value, "port", json_integer(v->port));
        if (v->place == TL_PLACE_WINDOW) {
            set(p, value, "whole", json_integer(p->value_number[v->whole]));
            set(p, value, "offset", json_integer(v->offset));
        }
        push(p, list, value);
        if (v->place == TL_PLACE_CONSTANT)
            TL_TRY(constant_json(p, v, value));
    }
    return TL_OK;
}

static void set_native(packer *p, json_t *kernel, const tl_executable_kernel *k)
{
    json_t *native = json_object();
    set_text(p, native, "arch", k->native_arch);
    set(p, native, "offset",
        json_integer(tl_pieces_add(&p->out->constants, k->native, (int64_t)k->native_size,
                                   TL_DATA_ALIGNMENT)));
    set(p, native, "size", json_integer((json_int_t)k->native_size));
    set_checksum(p, native, k->native, k->native_size, false);
    set(p, kernel, "native", native);
}

/* Code of a CPU is what a linker takes; code of a device is data, which lies among the constants. */
static int64_t add_code(packer *p, const tl_executable_kernel *k)
{
    bool is_data = tl_descriptor_is_gpu(&k->descriptor);
    int64_t offset = tl_pieces_add(is_data ? &p->out->constants : &p->out->objects, k->object,
                                   (int64_t)k->object_size, TL_DATA_ALIGNMENT);
    if (!is_data)
        p->out->descriptors[p->out->objects.count - 1] = &k->descriptor;
    return offset;
}

static tl_status kernels_json(packer *p, json_t *list)
{
    for (int i = 0; i < p->x->spec.kernel_count; i++) {
        const tl_executable_kernel *k = &p->x->spec.kernels[i];
        tl_text descriptor = { 0 };
        if (!p->kernel_used[i])
            continue;
        if (k->object == NULL)
            return tl_fail(p->diag, TL_BAD_ARGUMENT,
                           "kernel %s has no object: this executable cannot be saved",
                           k->descriptor.name);
        int64_t offset = add_code(p, k);
        json_t *kernel = json_object();
        tl_descriptor_print(&k->descriptor, &descriptor);
        p->failed = p->failed || descriptor.failed;
        set_text(p, kernel, "descriptor", tl_text_get(&descriptor));
        tl_text_free(&descriptor);
        set_text(p, kernel, "key", k->key);
        set(p, kernel, "offset", json_integer(offset));
        set(p, kernel, "size", json_integer((json_int_t)k->object_size));
        set_checksum(p, kernel, k->object, k->object_size, false);
        if (k->native != NULL)
            set_native(p, kernel, k);
        push(p, list, kernel);
    }
    return TL_OK;
}

static json_t *steps_json(packer *p, const tl_executable_step *steps, int count)
{
    json_t *list = json_array();

    for (int i = 0; i < count; i++) {
        const tl_executable_step *step = &steps[i];
        bool is_kernel = step->kernel >= 0;
        int dims = !is_kernel ? 0 : p->x->spec.kernels[step->kernel].descriptor.dim_count;
        json_t *entry = json_object(), *values = json_array(), *dim_list = json_array();
        set_text(p, entry, "name", step->name);
        set(p, entry, "kernel",
            json_integer(is_kernel ? p->kernel_number[step->kernel] : step->kernel));
        for (int k = 0; k < step->value_count; k++)
            push(p, values, json_integer(value_number(p, step->values[k])));
        for (int k = 0; step->dims != NULL && k < dims; k++) /* else: the executable's */
            push(p, dim_list, json_integer(step->dims[k]));
        set(p, entry, "values", values);
        set(p, entry, "dims", dim_list);
        set_text(p, entry, "class", step->class_key);
        set_text(p, entry, "workload", step->workload);
        set(p, entry, "flops", json_integer(step->flops));
        set(p, entry, "bytes", json_integer(step->bytes));
        if (tl_step_has_region(step)) {
            set(p, entry, "body", json_integer(step->body));
            set(p, entry, "other", json_integer(step->other));
            set(p, entry, "most", json_integer(step->most));
            if (step->varying_most != NULL)
                set_varying(p, entry, "varying_most", step->varying_most, 1);
        }
        push(p, list, entry);
    }
    return list;
}

static tl_status body_json(packer *p)
{
    const tl_executable_spec *spec = &p->x->spec;
    tl_text features = { 0 };
    json_t *values = json_array(), *kernels = json_array();

    tl_cpu_print(&spec->cpu, &features);
    p->failed = p->failed || features.failed;
    set_text(p, p->root, "model", spec->model);
    set_text(p, p->root, "note", spec->note);
    set_text(p, p->root, "device", spec->device);
    set_text(p, p->root, "machine", spec->cpu.machine);
    set_text(p, p->root, "features", tl_text_get(&features));
    tl_text_free(&features);
    if (spec->dim_count > 0)
        set(p, p->root, "dims", dims_json(p));
    set(p, p->root, "inputs", ports_json(p, spec->inputs, spec->input_count));
    set(p, p->root, "outputs", ports_json(p, spec->outputs, spec->output_count));
    set(p, p->root, "prepare",
        steps_json(p, spec->prepare, p->with_prepare ? spec->prepare_count : 0));
    set(p, p->root, "steps", steps_json(p, spec->steps, spec->step_count));
    if (json_object_set(p->root, "model_files", p->model_files) != 0)
        p->failed = true;
    set(p, p->root, "values", values);
    set(p, p->root, "kernels", kernels);
    TL_TRY(values_json(p, values));
    return kernels_json(p, kernels);
}

/* Both lines. */
static tl_status write_text(packer *p)
{
    tl_text *text = &p->out->text;
    char *body = p->failed ? NULL : json_dumps(p->root, JSON_COMPACT);
    if (body == NULL)
        return tl_fail(p->diag, TL_BAD_ARGUMENT,
                       "the executable's names are not UTF-8, or there is no memory");

    size_t size = strlen(body);
    p->out->identity = tl_checksum(body, size);
    tl_text_format(text,
                   TL_EXECUTABLE_START "\"version\":%d,\"size\":%zu,"
                                       "\"checksum\":\"%016llx\"}\n",
                   TL_EXECUTABLE_VERSION, size, (unsigned long long)p->out->identity);
    tl_text_add_bytes(text, body, size);
    free(body);
    return text->failed ? tl_fail(p->diag, TL_NO_MEMORY, "executable: out of memory") : TL_OK;
}

static tl_status pack(packer *p)
{
    const tl_executable *x = p->x;

    p->root = json_object();
    p->model_files = json_array();
    if (p->root == NULL || p->model_files == NULL)
        return tl_fail(p->diag, TL_NO_MEMORY, "executable: out of memory");
    choose(p);
    TL_TRY(body_json(p));
    if (!p->with_prepare) {
        p->out->prepared = x->prepared;
        p->out->prepared_size = x->prepared_size;
    }
    return write_text(p);
}

/* All that is allocated, so that nothing fails while JSON is held. */
static tl_status take_memory(packer *p)
{
    const tl_executable_spec *spec = &p->x->spec;
    tl_arena *arena = p->out->arena = tl_arena_create(0);

    if (arena == NULL || TL_ARENA_GUARD(arena))
        return tl_fail(p->diag, TL_NO_MEMORY, "executable: out of memory");
    p->value_used = TL_NEW_ARRAY(arena, bool, spec->value_count);
    p->kernel_used = TL_NEW_ARRAY(arena, bool, spec->kernel_count);
    p->value_number = TL_NEW_ARRAY(arena, int, spec->value_count);
    p->kernel_number = TL_NEW_ARRAY(arena, int, spec->kernel_count);
    p->out->descriptors = TL_NEW_ARRAY(arena, const tl_descriptor *, spec->kernel_count);
    p->out->objects = tl_pieces_make(arena, spec->kernel_count);
    p->out->constants = tl_pieces_make(arena, spec->value_count + 2 * spec->kernel_count);
    return TL_OK;
}

tl_status tl_executable_pack(const tl_executable *x, bool whole, tl_packed *out, tl_diag *diag)
{
    packer p = { .x = x, .out = out, .whole = whole, .diag = diag };

    *out = (tl_packed){ 0 };
    p.with_prepare = !tl_executable_is_prepared(x);
    tl_status status = take_memory(&p);
    if (status == TL_OK)
        status = pack(&p);
    json_decref(p.model_files);
    json_decref(p.root);
    if (status != TL_OK)
        tl_packed_free(out);
    return status;
}

void tl_packed_free(tl_packed *packed)
{
    tl_text_free(&packed->text);
    tl_arena_destroy(packed->arena);
    *packed = (tl_packed){ 0 };
}
