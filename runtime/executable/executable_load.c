/* runtime/executable/executable_load.c: an executable from its folder (executable_save.c), or from the program that it
 * is linked into (linked.h); executable_pack.c has the text.
 *
 * The checksum of line 2 stands for the structure, those in it for the bulk; every number is
 * checked nevertheless. Bulk is mapped, not read; the JSON becomes a spec whose texts still
 * belong to the JSON, and the executable copies what it keeps. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "runtime/base/checksum.h"
#include "runtime/executable/executable_private.h"
#include "runtime/executable/regions.h"
#include "runtime/executable/linked.h"

enum { MAX_COUNT = 1 << 24 };

/* Everything that is held while loading; released in one place. */
typedef struct {
    const char *folder;                /* or what takes its place in sentences */
    const struct tilth_linked *linked; /* NULL: from a folder */
    uint64_t functions_used;
    tl_diag *diag;
    tl_arena *arena;
    json_t *root;
    tl_mapping json, objects, constants; /* of a linked model: nothing to unmap */
    tl_mapping *files;
    int file_count;
    uint64_t identity;
    tl_executable_spec spec;
} loader;

static tl_status damaged(const loader *l, const char *what)
{
    return tl_fail(l->diag, TL_IO, "%s: %s", l->folder, what);
}

static tl_status get_integer(const loader *l, const json_t *object, const char *key, int64_t low,
                             int64_t high, int64_t *out)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_integer(value) || json_integer_value(value) < low ||
        json_integer_value(value) > high)
        return tl_fail(l->diag, TL_IO, "%s: \"%s\" is not an integer in %lld..%lld", l->folder, key,
                       (long long)low, (long long)high);
    *out = json_integer_value(value);
    return TL_OK;
}

static tl_status get_int(const loader *l, const json_t *object, const char *key, int low, int high,
                         int *out)
{
    int64_t wide;

    TL_TRY(get_integer(l, object, key, low, high, &wide));
    *out = (int)wide;
    return TL_OK;
}

static tl_status get_text(const loader *l, const json_t *object, const char *key, const char **out)
{
    *out = json_string_value(json_object_get(object, key));
    if (*out == NULL)
        return tl_fail(l->diag, TL_IO, "%s: \"%s\" is not a text", l->folder, key);
    return TL_OK;
}

static tl_status get_list(const loader *l, const json_t *object, const char *key,
                          const json_t **out, int *count)
{
    *out = json_object_get(object, key);
    if (!json_is_array(*out) || json_array_size(*out) > MAX_COUNT)
        return tl_fail(l->diag, TL_IO, "%s: \"%s\" is not a list", l->folder, key);
    *count = (int)json_array_size(*out);
    return TL_OK;
}

/* `is_mapped`: of a file; of a large table a run reads a few rows, and what was only looked at need not be resident. */
static bool checksum_matches(const json_t *object, const void *bytes, size_t size, bool is_mapped)
{
    const char *text = json_string_value(json_object_get(object, "checksum"));
    char *end;

    if (text == NULL || strlen(text) != 16)
        return false;
    uint64_t want = strtoull(text, &end, 16);
    return *end == '\0' &&
           (is_mapped ? tl_checksum_mapped(bytes, size) : tl_checksum(bytes, size)) == want;
}

/* Line 1, and whether line 2 is what it says. */
static tl_status read_json(loader *l)
{
    const char *text = l->json.data;
    const char *newline = text != NULL ? memchr(text, '\n', l->json.size) : NULL;
    int64_t version, size;

    if (newline == NULL)
        return damaged(l, "executable.json has no two lines");
    const char *body = newline + 1;
    size_t body_size = l->json.size - (size_t)(body - text);
    json_t *head = json_loadb(text, (size_t)(newline - text), JSON_REJECT_DUPLICATES, NULL);
    const char *format = json_string_value(json_object_get(head, "format"));
    tl_status status = TL_OK;
    if (format == NULL || strcmp(format, "tilth executable") != 0)
        status = damaged(l, "executable.json is not an executable's");
    if (status == TL_OK)
        status = get_integer(l, head, "version", 0, INT32_MAX, &version);
    if (status == TL_OK && version != TL_EXECUTABLE_VERSION)
        status =
            tl_fail(l->diag, TL_IO,
                    "%s: executable.json is of another version of tilth (format %lld, this one "
                    "reads %d): compile the model again",
                    l->folder, (long long)version, TL_EXECUTABLE_VERSION);
    if (status == TL_OK)
        status = get_integer(l, head, "size", 0, INT64_MAX, &size);
    if (status == TL_OK &&
        ((uint64_t)size != body_size || !checksum_matches(head, body, body_size, false)))
        status = damaged(l, "executable.json is damaged (checksum)");
    json_decref(head);
    TL_TRY(status);

    l->identity = tl_checksum(body, body_size);
    l->root = json_loadb(body, body_size, JSON_REJECT_DUPLICATES, NULL);
    return json_is_object(l->root) ? TL_OK : damaged(l, "executable.json is not JSON");
}

/* Numbers that a runner is told; executable_check.c says whether they are what they should be. */
static tl_status read_dims(loader *l)
{
    const json_t *list;

    if (json_object_get(l->root, "dims") == NULL)
        return TL_OK;
    TL_TRY(get_list(l, l->root, "dims", &list, &l->spec.dim_count));
    if (l->spec.dim_count > TL_MOST_DIMS)
        return damaged(l, "it has too many dims");
    tl_executable_dim *dims = TL_NEW_ARRAY(l->arena, tl_executable_dim, l->spec.dim_count);
    for (int i = 0; i < l->spec.dim_count; i++) {
        const json_t *entry = json_array_get(list, (size_t)i);
        TL_TRY(get_text(l, entry, "name", &dims[i].name));
        TL_TRY(get_integer(l, entry, "min", 0, INT64_MAX, &dims[i].min));
        TL_TRY(get_integer(l, entry, "max", 0, INT64_MAX, &dims[i].max));
        TL_TRY(get_integer(l, entry, "start", 0, INT64_MAX, &dims[i].start));
    }
    l->spec.dims = dims;
    return TL_OK;
}

/* Functions of the dims, as many as there are things that they are of; -1: any. */
static tl_status read_varying(const loader *l, const json_t *object, const char *key, int wanted,
                              const tl_varying **out, int *count)
{
    const json_t *list;

    TL_TRY(get_list(l, object, key, &list, count));
    if (wanted >= 0 && *count != wanted)
        return damaged(l, "there is another number of functions of dims than of what they are of");
    tl_varying *functions = TL_NEW_ARRAY(l->arena, tl_varying, *count);
    for (int i = 0; i < *count; i++) {
        const json_t *terms = json_array_get(list, (size_t)i);
        if (!json_is_array(terms) || json_array_size(terms) != (size_t)1 << l->spec.dim_count)
            return damaged(l, "a function of dims has another number of terms");
        for (size_t s = 0; s < json_array_size(terms); s++)
            functions[i].of[s] = json_integer_value(json_array_get(terms, s));
    }
    *out = functions;
    return TL_OK;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The value that an input must have: as many bytes as its tensor. */
static tl_status read_fixed(const loader *l, const json_t *entry, tl_port *port)
{
    const char *text;
    int64_t size;

    TL_TRY(get_text(l, entry, "fixed", &text));
    if (tl_tensor_bytes(port->dtype, port->rank, port->shape, &size, NULL) != TL_OK ||
        strlen(text) != 2 * (size_t)size)
        return damaged(l, "the value of an input has another size than the input");
    unsigned char *bytes = tl_arena_alloc(l->arena, (size_t)size + 1, 8);
    for (int64_t i = 0; i < size; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return damaged(l, "the value of an input is no hexadecimal number");
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    port->fixed = bytes;
    return TL_OK;
}

/* Numbers of values; executable_check.c says whether these are what they should be. */
static tl_status read_counts(const loader *l, const json_t *entry, tl_port *port)
{
    const json_t *list;
    int count;

    TL_TRY(get_list(l, entry, "counts", &list, &count));
    if (count != port->rank)
        return damaged(l, "a port has not as many counts as axes");
    int *counts = TL_NEW_ARRAY(l->arena, int, count);
    for (int i = 0; i < count; i++) {
        json_int_t value = json_integer_value(json_array_get(list, (size_t)i));
        if (value < TL_NO_VALUE || value > MAX_COUNT)
            return damaged(l, "a port is counted by a value that does not exist");
        counts[i] = (int)value;
    }
    port->counts = counts;
    return TL_OK;
}

static tl_status read_ports(const loader *l, const char *key, const tl_port **out, int *count)
{
    const json_t *list, *shape;
    const char *dtype;

    TL_TRY(get_list(l, l->root, key, &list, count));
    tl_port *ports = TL_NEW_ARRAY(l->arena, tl_port, *count);
    for (int i = 0; i < *count; i++) {
        const json_t *entry = json_array_get(list, (size_t)i);
        TL_TRY(get_text(l, entry, "name", &ports[i].name));
        TL_TRY(get_text(l, entry, "dtype", &dtype));
        if (!tl_dtype_from_text(dtype, &ports[i].dtype))
            return damaged(l, "a port has an unknown dtype");
        TL_TRY(get_list(l, entry, "shape", &shape, &ports[i].rank));
        if (ports[i].rank > TL_TENSOR_MAX_RANK)
            return damaged(l, "a port has too many axes");
        for (int k = 0; k < ports[i].rank; k++)
            ports[i].shape[k] = json_integer_value(json_array_get(shape, (size_t)k));
        if (json_object_get(entry, "varying") != NULL) {
            int functions;
            TL_TRY(read_varying(l, entry, "varying", ports[i].rank, &ports[i].varying, &functions));
        }
        if (json_object_get(entry, "fixed") != NULL)
            TL_TRY(read_fixed(l, entry, &ports[i]));
        if (json_object_get(entry, "counts") != NULL)
            TL_TRY(read_counts(l, entry, &ports[i]));
    }
    *out = ports;
    return TL_OK;
}

/* Maps the model's own files, if they are what they were when the executable was saved. */
static tl_status read_model_files(loader *l)
{
    const json_t *list;
    int count;

    TL_TRY(get_list(l, l->root, "model_files", &list, &count));
    l->files = calloc((size_t)count + 1, sizeof *l->files);
    if (l->files == NULL)
        return tl_fail(l->diag, TL_NO_MEMORY, "%s: out of memory", l->folder);
    for (; l->file_count < count; l->file_count++) {
        const json_t *entry = json_array_get(list, (size_t)l->file_count);
        const char *path;
        struct stat info;
        int64_t size, mtime;
        TL_TRY(get_text(l, entry, "path", &path));
        TL_TRY(get_integer(l, entry, "size", 0, INT64_MAX, &size));
        TL_TRY(get_integer(l, entry, "mtime_ns", INT64_MIN, INT64_MAX, &mtime));
        if (stat(path, &info) != 0 || info.st_size != size ||
            (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec != mtime)
            return tl_fail(l->diag, TL_IO, "%s: the model's file %s has changed", l->folder, path);
        tl_mapping *mapping = &l->files[l->file_count];
        TL_TRY(tl_file_map(path, mapping, l->diag));
        if (mapping->size != (uint64_t)size) {
            l->file_count++; /* it is mapped */
            return tl_fail(l->diag, TL_IO, "%s: the model's file %s has changed", l->folder, path);
        }
    }
    return TL_OK;
}

/* `size` bytes at an offset of a mapping; NULL: outside. */
static const void *bytes_at(const tl_mapping *mapping, int64_t offset, int64_t size)
{
    if ((uint64_t)offset > mapping->size || (uint64_t)size > mapping->size - (uint64_t)offset)
        return NULL;
    return (const char *)mapping->data + offset;
}

static tl_status read_constant(const loader *l, const json_t *entry, tl_executable_value *v)
{
    int64_t offset;
    int file;

    TL_TRY(get_integer(l, entry, "offset", 0, INT64_MAX, &offset));
    if (json_object_get(entry, "file") != NULL) {
        TL_TRY(get_int(l, entry, "file", 0, l->file_count - 1, &file));
        const json_t *files = json_object_get(l->root, "model_files");
        v->data = bytes_at(&l->files[file], offset, v->size);
        v->file = json_string_value(json_object_get(json_array_get(files, (size_t)file), "path"));
        v->file_offset = offset;
    } else {
        v->data = bytes_at(&l->constants, offset, v->size);
        if (v->data != NULL && l->linked == NULL &&
            !checksum_matches(entry, v->data, (size_t)v->size, true))
            v->data = NULL;
    }
    if (v->data == NULL && v->size > 0)
        return damaged(l, "the constants are damaged or absent");
    return TL_OK;
}

static tl_status read_values(loader *l)
{
    const json_t *list;
    const char *place;

    TL_TRY(get_list(l, l->root, "values", &list, &l->spec.value_count));
    tl_executable_value *values = TL_NEW_ARRAY(l->arena, tl_executable_value, l->spec.value_count);
    for (int i = 0; i < l->spec.value_count; i++) {
        const json_t *entry = json_array_get(list, (size_t)i);
        tl_executable_value *v = &values[i];
        TL_TRY(get_text(l, entry, "name", &v->name));
        TL_TRY(get_text(l, entry, "place", &place));
        TL_TRY(get_integer(l, entry, "size", 0, INT64_MAX, &v->size));
        if (json_object_get(entry, "factors") != NULL) {
            TL_TRY(get_integer(l, entry, "unit", 0, INT64_MAX, &v->unit));
            TL_TRY(read_varying(l, entry, "factors", -1, &v->factors, &v->factor_count));
        }
        for (v->place = 0; v->place < TL_PLACE_COUNT; v->place++)
            if (strcmp(place, tl_place_texts[v->place]) == 0)
                break;
        if (v->place == TL_PLACE_INPUT || v->place == TL_PLACE_OUTPUT)
            TL_TRY(get_int(l, entry, "port", 0, MAX_COUNT, &v->port));
        if (v->place == TL_PLACE_WINDOW) {
            TL_TRY(get_int(l, entry, "whole", 0, MAX_COUNT, &v->whole));
            TL_TRY(get_integer(l, entry, "offset", 0, INT64_MAX, &v->offset));
        }
        if (v->place == TL_PLACE_CONSTANT)
            TL_TRY(read_constant(l, entry, v));
    }
    l->spec.values = values;
    return TL_OK;
}

static tl_status read_object(const loader *l, const json_t *entry, tl_executable_kernel *k)
{
    int64_t offset;

    bool is_data = tl_descriptor_is_gpu(&k->descriptor);
    TL_TRY(get_integer(l, entry, "offset", 0, INT64_MAX, &offset));
    k->object = bytes_at(is_data ? &l->constants : &l->objects, offset, (int64_t)k->object_size);
    if (k->object == NULL ||
        (l->linked == NULL && !checksum_matches(entry, k->object, k->object_size, true)))
        return damaged(l, "the code of a kernel is damaged or absent");
    return TL_OK;
}

/* What a device's compiler made of the object: absent it is made again. */
static tl_status read_native(const loader *l, const json_t *entry, tl_executable_kernel *k)
{
    const json_t *native = json_object_get(entry, "native");
    int64_t offset, size;

    if (native == NULL)
        return TL_OK;
    TL_TRY(get_text(l, native, "arch", &k->native_arch));
    TL_TRY(get_integer(l, native, "offset", 0, INT64_MAX, &offset));
    TL_TRY(get_integer(l, native, "size", 0, INT64_MAX, &size));
    k->native = bytes_at(&l->constants, offset, size);
    k->native_size = (size_t)size;
    if (k->native == NULL ||
        (l->linked == NULL && !checksum_matches(native, k->native, k->native_size, true)))
        return damaged(l, "the code of a device is damaged or absent");
    return TL_OK;
}

/* The next functions of the table are the kernel's. */
static tl_status take_functions(loader *l, tl_executable_kernel *k)
{
    const tl_descriptor *d = &k->descriptor;
    uint64_t needed = (uint64_t)tl_descriptor_function_count(d);

    if (needed > l->linked->function_count - l->functions_used)
        return damaged(l, "it has not as many functions as its kernels");
    tl_linked_function *const *functions = l->linked->functions + l->functions_used;
    tl_phase_fn **phases = TL_NEW_ARRAY(l->arena, tl_phase_fn *, d->phase_count);
    for (int i = 0; i < d->phase_count; i++)
        phases[i] = (tl_phase_fn *)functions[i];
    k->phases = phases;
    k->sizes = d->has_sizes ? (tl_sizes_fn *)functions[d->phase_count] : NULL;
    l->functions_used += needed;
    return TL_OK;
}

static tl_status read_kernels(loader *l)
{
    const json_t *list;
    const char *descriptor;
    int64_t size;

    TL_TRY(get_list(l, l->root, "kernels", &list, &l->spec.kernel_count));
    tl_executable_kernel *kernels =
        TL_NEW_ARRAY(l->arena, tl_executable_kernel, l->spec.kernel_count);
    for (int i = 0; i < l->spec.kernel_count; i++) {
        const json_t *entry = json_array_get(list, (size_t)i);
        tl_executable_kernel *k = &kernels[i];
        TL_TRY(get_text(l, entry, "descriptor", &descriptor));
        TL_TRY(tl_descriptor_parse(l->arena, descriptor, &k->descriptor, l->diag));
        TL_TRY(get_integer(l, entry, "size", 0, INT64_MAX, &size));
        k->key = json_string_value(json_object_get(entry, "key"));
        k->object_size = (size_t)size;
        TL_TRY(l->linked != NULL && !tl_descriptor_is_gpu(&k->descriptor)
                   ? take_functions(l, k)
                   : read_object(l, entry, k));
        TL_TRY(read_native(l, entry, k));
    }
    l->spec.kernels = kernels;
    return TL_OK;
}

static tl_status read_step(const loader *l, const json_t *entry, tl_executable_step *step)
{
    const json_t *values, *dims;
    int dim_count;

    TL_TRY(get_text(l, entry, "name", &step->name));
    TL_TRY(get_int(l, entry, "kernel", TL_STEP_FIRST, l->spec.kernel_count - 1, &step->kernel));
    TL_TRY(get_list(l, entry, "values", &values, &step->value_count));
    TL_TRY(get_list(l, entry, "dims", &dims, &dim_count));
    int wanted = step->kernel < 0 ? 0 : l->spec.kernels[step->kernel].descriptor.dim_count;
    bool takes_all = l->spec.dim_count > 0 && dim_count == 0; /* the executable's */
    if (step->kernel >= 0 && dim_count != wanted && !takes_all)
        return damaged(l, "a step has not as many dims as its kernel");
    step->class_key = json_string_value(json_object_get(entry, "class"));
    step->workload = json_string_value(json_object_get(entry, "workload"));
    TL_TRY(get_integer(l, entry, "flops", INT64_MIN, INT64_MAX, &step->flops));
    TL_TRY(get_integer(l, entry, "bytes", INT64_MIN, INT64_MAX, &step->bytes));
    if (tl_step_has_region(step)) {
        TL_TRY(get_int(l, entry, "body", 0, MAX_COUNT, &step->body));
        TL_TRY(get_int(l, entry, "other", 0, MAX_COUNT, &step->other));
        TL_TRY(get_integer(l, entry, "most", 0, INT64_MAX, &step->most));
    }
    if (step->kernel == TL_STEP_LOOP && json_object_get(entry, "varying_most") != NULL) {
        int functions;
        TL_TRY(read_varying(l, entry, "varying_most", 1, &step->varying_most, &functions));
    }

    int *numbers = TL_NEW_ARRAY(l->arena, int, step->value_count);
    for (int i = 0; i < step->value_count; i++) {
        const json_t *number = json_array_get(values, (size_t)i);
        if (!json_is_integer(number) || json_integer_value(number) < TL_NO_VALUE ||
            json_integer_value(number) >= l->spec.value_count)
            return damaged(l, "a step uses a value that does not exist");
        numbers[i] = (int)json_integer_value(number);
    }
    int64_t *dim_values = TL_NEW_ARRAY(l->arena, int64_t, dim_count);
    for (int i = 0; i < dim_count; i++)
        dim_values[i] = json_integer_value(json_array_get(dims, (size_t)i));
    step->values = numbers;
    step->dims = takes_all ? NULL : dim_values;
    return TL_OK;
}

static tl_status read_steps(const loader *l, const char *key, const tl_executable_step **out,
                            int *count)
{
    const json_t *list;

    TL_TRY(get_list(l, l->root, key, &list, count));
    tl_executable_step *steps = TL_NEW_ARRAY(l->arena, tl_executable_step, *count);
    for (int i = 0; i < *count; i++)
        TL_TRY(read_step(l, json_array_get(list, (size_t)i), &steps[i]));
    *out = steps;
    return TL_OK;
}

static tl_status read_cpu(loader *l)
{
    const char *machine, *features;

    TL_TRY(get_text(l, l->root, "machine", &machine));
    TL_TRY(get_text(l, l->root, "features", &features));
    if (!tl_cpu_parse(machine, features, &l->spec.cpu) || machine[0] == '\0')
        return damaged(l, "it is for an unknown processor");
    if (!tl_cpu_runs(tl_cpu_host(), &l->spec.cpu))
        return tl_fail(l->diag, TL_UNSUPPORTED,
                       "%s: it is compiled for a %s processor with more than this one has (%s)",
                       l->folder, machine, features);
    return TL_OK;
}

static tl_status read_spec(loader *l)
{
    TL_TRY(read_cpu(l));
    TL_TRY(get_text(l, l->root, "model", &l->spec.model));
    l->spec.note = json_string_value(json_object_get(l->root, "note"));
    l->spec.device = json_string_value(json_object_get(l->root, "device"));
    TL_TRY(read_dims(l));
    TL_TRY(read_ports(l, "inputs", &l->spec.inputs, &l->spec.input_count));
    TL_TRY(read_ports(l, "outputs", &l->spec.outputs, &l->spec.output_count));
    TL_TRY(read_model_files(l));
    TL_TRY(read_values(l));
    TL_TRY(read_kernels(l));
    TL_TRY(read_steps(l, "prepare", &l->spec.prepare, &l->spec.prepare_count));
    return read_steps(l, "steps", &l->spec.steps, &l->spec.step_count);
}

static tl_status read_spec_guarded(loader *l)
{
    l->arena = tl_arena_create(0);
    if (l->arena == NULL || TL_ARENA_GUARD(l->arena))
        return tl_fail(l->diag, TL_NO_MEMORY, "%s: out of memory", l->folder);
    return read_spec(l);
}

static tl_status map_in(const loader *l, const char *name, tl_mapping *out, tl_diag *diag)
{
    char *path;

    if (asprintf(&path, "%s/%s", l->folder, name) < 0)
        return tl_fail(l->diag, TL_NO_MEMORY, "%s: out of memory", l->folder);
    tl_status status = tl_file_map(path, out, diag);
    free(path);
    return status;
}

/* The executable owns the mappings from here on. */
static void hand_over(loader *l, tl_executable *x)
{
    x->objects_file = l->objects;
    x->constants_file = l->constants;
    x->model_files = l->files;
    x->model_file_count = l->file_count;
    x->identity = l->identity;
    l->objects = l->constants = (tl_mapping){ 0 };
    l->files = NULL;
    l->file_count = 0;
    if (x->objects_file.data != NULL) /* the code was copied out */
        madvise((void *)x->objects_file.data, x->objects_file.size, MADV_DONTNEED);
}

static tl_status take_prepared(const loader *l, tl_executable *x)
{
    const unsigned char *data;

    if (x->prepared_size == 0)
        return TL_OK;
    if (tl_prepared_map(l->folder, l->identity, x->prepared_size, &x->prepared_file, &data)) {
        x->prepared = (unsigned char *)data;
        atomic_store(&x->is_prepared, true);
    } else if (x->spec.prepare_count == 0) {
        return damaged(l, "prepared.bin is damaged or absent");
    }
    return TL_OK;
}

static tl_status load(loader *l, tl_executable **out)
{
    tl_executable *x;

    TL_TRY(read_json(l));
    (void)map_in(l, "objects.bin", &l->objects, NULL); /* missed where something should be in it */
    (void)map_in(l, "constants.bin", &l->constants, NULL);
    TL_TRY(read_spec_guarded(l));
    TL_TRY(tl_executable_build(&l->spec, true, &x, l->diag));
    hand_over(l, x);
    tl_status status = take_prepared(l, x);
    x->folder = strdup(l->folder);
    if (status == TL_OK && x->folder == NULL)
        status = tl_fail(l->diag, TL_NO_MEMORY, "%s: out of memory", l->folder);
    if (status != TL_OK) {
        tl_executable_destroy(x);
        return status;
    }
    *out = x;
    return TL_OK;
}

static void release(loader *l)
{
    for (int i = 0; i < l->file_count; i++)
        tl_file_unmap(&l->files[i]);
    free(l->files);
    json_decref(l->root);
    tl_arena_destroy(l->arena);
}

/* Whatever does not hold in what we wrote is damage. */
static tl_status damage(tl_status status)
{
    return status == TL_OK || status == TL_NO_MEMORY || status == TL_UNSUPPORTED ? status : TL_IO;
}

tl_status tl_executable_load(const char *folder, tl_executable **out, tl_diag *diag)
{
    if (folder[0] == '\0')
        return tl_fail(diag, TL_BAD_ARGUMENT, "the name of a folder is empty");
    loader l = { .folder = folder, .diag = diag };
    tl_status status = map_in(&l, "executable.json", &l.json, diag);

    if (status == TL_OK)
        status = damage(load(&l, out));
    tl_file_unmap(&l.json);
    tl_file_unmap(&l.objects);
    tl_file_unmap(&l.constants);
    release(&l);
    if (status != TL_OK)
        tl_context(diag, "loading the executable in %s", folder);
    return status;
}

static tl_status open_linked(loader *l, tl_executable **out)
{
    const struct tilth_linked *linked = l->linked;
    tl_executable *x;

    if (memcmp(linked->magic, TL_LINKED_MAGIC, sizeof linked->magic) != 0)
        return damaged(l, "this is not what `tilth compile` of this version writes");
    l->json = (tl_mapping){ linked->text, linked->text_size };
    l->constants = (tl_mapping){ linked->constants, linked->constants_size };
    TL_TRY(read_json(l));
    TL_TRY(read_spec_guarded(l));
    TL_TRY(tl_executable_build(&l->spec, true, &x, l->diag));
    x->identity = l->identity;
    if (linked->prepared_size > 0 && linked->prepared_size == (uint64_t)x->prepared_size) {
        x->prepared = (unsigned char *)linked->prepared;
        x->prepared_is_borrowed = true;
        atomic_store(&x->is_prepared, true);
    } else if (x->prepared_size > 0 && x->spec.prepare_count == 0) {
        tl_executable_destroy(x);
        return damaged(l, "its prepared constants are absent");
    }
    *out = x;
    return TL_OK;
}

tl_status tl_executable_open_linked(const struct tilth_linked *linked, tl_executable **out,
                                    tl_diag *diag)
{
    loader l = { .folder = "the linked model", .linked = linked, .diag = diag };
    tl_status status = damage(open_linked(&l, out));

    release(&l);
    return status;
}
