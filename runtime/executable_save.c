/* runtime/executable_save.c: an executable as a folder.
 *
 *     executable.json   line 1: format, version, size and checksum of line 2
 *                       line 2: everything that is not bulk
 *     objects.bin       the kernels' objects, one after another
 *     constants.bin     the constants that are in no file of the model's
 *     prepared.bin      the prepared constants
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
#include "runtime/checksum.h"
#include "runtime/executable_private.h"

typedef struct {
    const tl_executable *x;
    const char *folder;
    bool with_prepare;
    bool *value_used, *kernel_used;
    int *value_number, *kernel_number; /* in the saved executable */
    json_t *root;
    json_t *model_files; /* [{path, size, mtime_ns}] */
    bool failed;         /* JSON could not be built: no memory, or a name is not UTF-8 */
    tl_diag *diag;
} saver;

/* Adds a member; takes `value`. */
static void set(saver *s, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        s->failed = true;
}

static void push(saver *s, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0)
        s->failed = true;
}

static void set_text(saver *s, json_t *object, const char *key, const char *text)
{
    if (text != NULL)
        set(s, object, key, json_string(text));
}

static void set_checksum(saver *s, json_t *object, const void *bytes, size_t size)
{
    char text[17];

    snprintf(text, sizeof text, "%016llx", (unsigned long long)tl_checksum(bytes, size));
    set(s, object, "checksum", json_string(text));
}

/* A file of pieces, each aligned; made when the first piece comes. */
typedef struct {
    char *path;
    tl_file *file;
    int64_t size;
} bulk;

static tl_status bulk_open(bulk *b, const char *folder, const char *name, tl_diag *diag)
{
    *b = (bulk){ 0 };
    if (asprintf(&b->path, "%s/%s", folder, name) < 0) {
        b->path = NULL;
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", folder);
    }
    return TL_OK;
}

static tl_status bulk_add(bulk *b, const void *bytes, size_t size, int64_t *offset, tl_diag *diag)
{
    static const char zeros[TL_DATA_ALIGNMENT];
    size_t padding = (size_t)(-b->size % TL_DATA_ALIGNMENT + TL_DATA_ALIGNMENT) % TL_DATA_ALIGNMENT;

    if (b->file == NULL)
        TL_TRY(tl_file_create(b->path, &b->file, diag));
    TL_TRY(tl_file_append(b->file, zeros, padding, diag));
    TL_TRY(tl_file_append(b->file, bytes, size, diag));
    *offset = b->size + (int64_t)padding;
    b->size = *offset + (int64_t)size;
    return TL_OK;
}

static tl_status bulk_close(bulk *b, tl_status status, tl_diag *diag)
{
    if (b->file != NULL && status == TL_OK)
        status = tl_file_commit_unsynced(b->file, diag);
    else
        tl_file_abandon(b->file);
    free(b->path);
    return status;
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
        if (steps[i].kernel != TL_STEP_COPY)
            used[steps[i].kernel] = true;
}

/* Prepared values keep their places in prepared.bin only when all of them are there. */
static void choose(saver *s)
{
    const tl_executable_spec *spec = &s->x->spec;

    tl_executable_mark(spec, spec->steps, spec->step_count, s->value_used);
    mark_kernels(spec->steps, spec->step_count, s->kernel_used);
    if (s->with_prepare) {
        tl_executable_mark(spec, spec->prepare, spec->prepare_count, s->value_used);
        mark_kernels(spec->prepare, spec->prepare_count, s->kernel_used);
    }
    for (int i = 0; i < spec->value_count; i++)
        if (spec->values[i].place == TL_PLACE_PREPARED)
            s->value_used[i] = true;
    number(s->value_used, spec->value_count, s->value_number);
    number(s->kernel_used, spec->kernel_count, s->kernel_number);
}

static json_t *ports_json(saver *s, const tl_port *ports, int count)
{
    json_t *list = json_array();

    for (int i = 0; i < count; i++) {
        json_t *port = json_object(), *shape = json_array();
        set_text(s, port, "name", ports[i].name);
        set_text(s, port, "dtype", tl_dtype_infos[ports[i].dtype].text);
        for (int k = 0; k < ports[i].rank; k++)
            push(s, shape, json_integer(ports[i].shape[k]));
        set(s, port, "shape", shape);
        push(s, list, port);
    }
    return list;
}

/* The number of a model's file in the list, by its absolute path; what it is now is written
 * down. */
static tl_status model_file(saver *s, const char *file, int *out)
{
    char path[PATH_MAX];
    struct stat info;
    size_t count = json_array_size(s->model_files);

    if (realpath(file, path) == NULL || stat(path, &info) != 0)
        return tl_fail(s->diag, TL_IO, "%s: %s", file, strerror(errno));
    for (size_t i = 0; i < count; i++) {
        const json_t *entry = json_array_get(s->model_files, i);
        if (strcmp(json_string_value(json_object_get(entry, "path")), path) == 0) {
            *out = (int)i;
            return TL_OK;
        }
    }
    json_t *text = json_string(path), *entry = json_object();
    if (text == NULL) {
        json_decref(entry);
        return tl_fail(s->diag, TL_BAD_ARGUMENT, "the path of the model's file is not UTF-8");
    }
    set(s, entry, "path", text);
    set(s, entry, "size", json_integer(info.st_size));
    set(s, entry, "mtime_ns",
        json_integer((json_int_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec));
    push(s, s->model_files, entry);
    *out = (int)count;
    return TL_OK;
}

static tl_status constant_json(saver *s, const tl_executable_value *v, json_t *value,
                               bulk *constants)
{
    if (v->file != NULL) {
        int file;
        TL_TRY(model_file(s, v->file, &file));
        set(s, value, "file", json_integer(file));
        set(s, value, "offset", json_integer(v->file_offset));
        return TL_OK;
    }
    int64_t offset;
    TL_TRY(bulk_add(constants, v->data, (size_t)v->size, &offset, s->diag));
    set(s, value, "offset", json_integer(offset));
    set_checksum(s, value, v->data, (size_t)v->size);
    return TL_OK;
}

static tl_status values_json(saver *s, json_t *list, bulk *constants)
{
    for (int i = 0; i < s->x->spec.value_count; i++) {
        const tl_executable_value *v = &s->x->spec.values[i];
        if (!s->value_used[i])
            continue;
        json_t *value = json_object();
        set_text(s, value, "name", v->name);
        set_text(s, value, "place", tl_place_texts[v->place]);
        set(s, value, "size", json_integer(v->size));
        if (v->place == TL_PLACE_INPUT || v->place == TL_PLACE_OUTPUT)
            set(s, value, "port", json_integer(v->port));
        if (v->place == TL_PLACE_WINDOW) {
            set(s, value, "whole", json_integer(s->value_number[v->whole]));
            set(s, value, "offset", json_integer(v->offset));
        }
        push(s, list, value);
        if (v->place == TL_PLACE_CONSTANT)
            TL_TRY(constant_json(s, v, value, constants));
    }
    return TL_OK;
}

static tl_status kernels_json(saver *s, json_t *list, bulk *objects)
{
    for (int i = 0; i < s->x->spec.kernel_count; i++) {
        const tl_executable_kernel *k = &s->x->spec.kernels[i];
        tl_text descriptor = { 0 };
        int64_t offset;
        if (!s->kernel_used[i])
            continue;
        if (k->object == NULL)
            return tl_fail(s->diag, TL_BAD_ARGUMENT,
                           "kernel %s has no object: this executable cannot be saved",
                           k->descriptor.name);
        TL_TRY(bulk_add(objects, k->object, k->object_size, &offset, s->diag));
        json_t *kernel = json_object();
        tl_descriptor_print(&k->descriptor, &descriptor);
        s->failed = s->failed || descriptor.failed;
        set_text(s, kernel, "descriptor", tl_text_get(&descriptor));
        tl_text_free(&descriptor);
        set_text(s, kernel, "key", k->key);
        set(s, kernel, "offset", json_integer(offset));
        set(s, kernel, "size", json_integer((json_int_t)k->object_size));
        set_checksum(s, kernel, k->object, k->object_size);
        push(s, list, kernel);
    }
    return TL_OK;
}

static json_t *steps_json(saver *s, const tl_executable_step *steps, int count)
{
    json_t *list = json_array();

    for (int i = 0; i < count; i++) {
        const tl_executable_step *step = &steps[i];
        bool is_copy = step->kernel == TL_STEP_COPY;
        int dims = is_copy ? 0 : s->x->spec.kernels[step->kernel].descriptor.dim_count;
        json_t *entry = json_object(), *values = json_array(), *dim_list = json_array();
        set_text(s, entry, "name", step->name);
        set(s, entry, "kernel",
            json_integer(is_copy ? TL_STEP_COPY : s->kernel_number[step->kernel]));
        for (int k = 0; k < step->value_count; k++)
            push(s, values,
                 json_integer(step->values[k] == TL_NO_VALUE ? TL_NO_VALUE
                                                             : s->value_number[step->values[k]]));
        for (int k = 0; k < dims; k++)
            push(s, dim_list, json_integer(step->dims[k]));
        set(s, entry, "values", values);
        set(s, entry, "dims", dim_list);
        set_text(s, entry, "class", step->class_key);
        set_text(s, entry, "workload", step->workload);
        set(s, entry, "flops", json_integer(step->flops));
        set(s, entry, "bytes", json_integer(step->bytes));
        push(s, list, entry);
    }
    return list;
}

static tl_status body_json(saver *s, bulk *objects, bulk *constants)
{
    const tl_executable_spec *spec = &s->x->spec;
    tl_text features = { 0 };
    json_t *values = json_array(), *kernels = json_array();

    tl_cpu_print(&spec->cpu, &features);
    s->failed = s->failed || features.failed;
    set_text(s, s->root, "model", spec->model);
    set_text(s, s->root, "note", spec->note);
    set_text(s, s->root, "machine", spec->cpu.machine);
    set_text(s, s->root, "features", tl_text_get(&features));
    tl_text_free(&features);
    set(s, s->root, "inputs", ports_json(s, spec->inputs, spec->input_count));
    set(s, s->root, "outputs", ports_json(s, spec->outputs, spec->output_count));
    set(s, s->root, "prepare",
        steps_json(s, spec->prepare, s->with_prepare ? spec->prepare_count : 0));
    set(s, s->root, "steps", steps_json(s, spec->steps, spec->step_count));
    if (json_object_set(s->root, "model_files", s->model_files) != 0)
        s->failed = true;
    set(s, s->root, "values", values);
    set(s, s->root, "kernels", kernels);
    TL_TRY(values_json(s, values, constants));
    return kernels_json(s, kernels, objects);
}

static tl_status save_bulk(saver *s)
{
    bulk objects = { 0 }, constants = { 0 };
    tl_status status = bulk_open(&objects, s->folder, "objects.bin", s->diag);

    if (status == TL_OK)
        status = bulk_open(&constants, s->folder, "constants.bin", s->diag);
    if (status == TL_OK)
        status = body_json(s, &objects, &constants);
    status = bulk_close(&objects, status, s->diag);
    return bulk_close(&constants, status, s->diag);
}

static tl_status save_json(const saver *s, const char *body, size_t size)
{
    char *path, head[200];
    tl_file *file;

    snprintf(head, sizeof head,
             "{\"format\":\"tilth executable\",\"version\":%d,\"size\":%zu,"
             "\"checksum\":\"%016llx\"}\n",
             TL_EXECUTABLE_VERSION, size, (unsigned long long)tl_checksum(body, size));
    if (asprintf(&path, "%s/executable.json", s->folder) < 0)
        return tl_fail(s->diag, TL_NO_MEMORY, "%s: out of memory", s->folder);
    tl_status status = tl_file_create(path, &file, s->diag);
    free(path);
    TL_TRY(status);
    status = tl_file_append(file, head, strlen(head), s->diag);
    if (status == TL_OK)
        status = tl_file_append(file, body, size, s->diag);
    if (status == TL_OK)
        return tl_file_commit_unsynced(file, s->diag);
    tl_file_abandon(file);
    return status;
}

static tl_status save(saver *s)
{
    const tl_executable *x = s->x;

    TL_TRY(tl_folder_make(s->folder, s->diag));
    choose(s);
    TL_TRY(save_bulk(s));
    char *body = s->failed ? NULL : json_dumps(s->root, JSON_COMPACT);
    if (body == NULL)
        return tl_fail(s->diag, TL_BAD_ARGUMENT,
                       "%s: it cannot be written as JSON (out of memory, or a name in the model "
                       "is not UTF-8)",
                       s->folder);
    size_t size = strlen(body);
    tl_status status = TL_OK;
    if (!s->with_prepare)
        status = tl_prepared_write(s->folder, tl_checksum(body, size), x->prepared,
                                   x->prepared_size, s->diag);
    if (status == TL_OK)
        status = save_json(s, body, size);
    free(body);
    return status;
}

tl_status tl_executable_save(const tl_executable *x, const char *folder, tl_diag *diag)
{
    saver s = { .x = x, .folder = folder, .diag = diag };
    size_t values = (size_t)x->spec.value_count + 1, kernels = (size_t)x->spec.kernel_count + 1;
    tl_status status = TL_OK;

    s.with_prepare = !tl_executable_is_prepared(x);
    s.value_used = calloc(values, sizeof(bool));
    s.kernel_used = calloc(kernels, sizeof(bool));
    s.value_number = calloc(values, sizeof(int));
    s.kernel_number = calloc(kernels, sizeof(int));
    s.root = json_object();
    s.model_files = json_array();
    if (s.value_used == NULL || s.kernel_used == NULL || s.value_number == NULL ||
        s.kernel_number == NULL || s.root == NULL || s.model_files == NULL) {
        status = tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", folder);
    } else {
        status = save(&s);
    }
    json_decref(s.model_files);
    json_decref(s.root);
    free(s.value_used);
    free(s.kernel_used);
    free(s.value_number);
    free(s.kernel_number);
    if (status != TL_OK)
        tl_context(diag, "saving the executable of %s", x->spec.model);
    return status;
}
