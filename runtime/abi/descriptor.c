/* runtime/abi/descriptor.c: a descriptor as one line of JSON,
 *     {"name":"gemm","phases":1,"extents":[16],"scratch":0,"thread_scratch":4096,"sizes":false,
 *      "dims":0,"buffers":3}
 * and back. The text comes from cache files and is checked in every member. */
#include "runtime/abi/descriptor.h"
#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PHASES = 1024, MAX_NAME = 255, MAX_COUNT = 4096 };

int tl_descriptor_function_count(const tl_descriptor *d)
{
    return d->phase_count + d->has_sizes;
}

tl_function_name tl_descriptor_function(const tl_descriptor *d, int index)
{
    assert(index >= 0 && index <= d->phase_count);
    tl_function_name name;

    if (index < d->phase_count)
        snprintf(name.text, sizeof name.text, "%s_%d", d->name, index);
    else
        snprintf(name.text, sizeof name.text, "%s_sizes", d->name);
    return name;
}

void tl_descriptor_print(const tl_descriptor *d, tl_text *out)
{
    tl_text_format(out, "{\"name\":\"%s\",\"phases\":%d,\"extents\":[", d->name, d->phase_count);
    if (!d->has_sizes)
        for (int i = 0; i < d->phase_count; i++)
            tl_text_format(out, "%s%lld", i > 0 ? "," : "", (long long)d->extents[i]);
    tl_text_format(out,
                   "],\"scratch\":%lld,\"thread_scratch\":%lld,\"sizes\":%s,\"dims\":%d,"
                   "\"buffers\":%d}",
                   (long long)d->scratch_bytes, (long long)d->thread_scratch_bytes,
                   d->has_sizes ? "true" : "false", d->dim_count, d->buffer_count);
}

/* What is read is gathered here first: the arena may only be touched once the JSON is released. */
typedef struct {
    char name[MAX_NAME + 1];
    int64_t extents[MAX_PHASES];
    tl_descriptor d;
} draft;

static tl_status read_integer(const json_t *object, const char *key, int64_t limit, int64_t *out,
                              tl_diag *diag)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_integer(value))
        return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: \"%s\" is not an integer", key);
    int64_t number = json_integer_value(value);
    if (number < 0 || number > limit)
        return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: \"%s\" is %lld, not in 0..%lld", key,
                       (long long)number, (long long)limit);
    *out = number;
    return TL_OK;
}

static bool is_name(const char *text)
{
    size_t size = strlen(text);

    if (size == 0 || size > MAX_NAME)
        return false;
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$") ==
           size;
}

static tl_status read_extents(const json_t *root, draft *out, tl_diag *diag)
{
    const json_t *extents = json_object_get(root, "extents");
    size_t want = out->d.has_sizes ? 0 : (size_t)out->d.phase_count;

    if (!json_is_array(extents) || json_array_size(extents) != want)
        return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: \"extents\" is not a list of %zu",
                       want);
    for (size_t i = 0; i < want; i++) {
        const json_t *extent = json_array_get(extents, i);
        if (!json_is_integer(extent) || json_integer_value(extent) < 0)
            return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: extent %zu is not a count", i);
        out->extents[i] = json_integer_value(extent);
    }
    return TL_OK;
}

static tl_status read_draft(const json_t *root, draft *out, tl_diag *diag)
{
    const char *name = json_string_value(json_object_get(root, "name"));
    const json_t *sizes = json_object_get(root, "sizes");
    int64_t phases, dims, buffers;

    if (name == NULL || !is_name(name))
        return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: \"name\" is not a kernel's name");
    if (!json_is_boolean(sizes))
        return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: \"sizes\" is not true or false");
    TL_TRY(read_integer(root, "phases", MAX_PHASES, &phases, diag));
    TL_TRY(read_integer(root, "dims", MAX_COUNT, &dims, diag));
    TL_TRY(read_integer(root, "buffers", MAX_COUNT, &buffers, diag));
    TL_TRY(read_integer(root, "scratch", INT64_MAX / 4, &out->d.scratch_bytes, diag));
    TL_TRY(read_integer(root, "thread_scratch", INT64_MAX / 4 / 1024, &out->d.thread_scratch_bytes,
                        diag));
    strcpy(out->name, name);
    out->d.has_sizes = json_is_true(sizes);
    out->d.phase_count = (int)phases;
    out->d.dim_count = (int)dims;
    out->d.buffer_count = (int)buffers;
    return read_extents(root, out, diag);
}

tl_status tl_descriptor_parse(tl_arena *arena, const char *json, tl_descriptor *out, tl_diag *diag)
{
    json_error_t error;
    draft d = { 0 };
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, &error);

    if (root == NULL)
        return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: not JSON (column %d: %s)",
                       error.column, error.text);
    tl_status status = read_draft(root, &d, diag);
    json_decref(root);
    TL_TRY(status);

    *out = d.d;
    out->name = tl_arena_strdup(arena, d.name);
    out->extents = NULL;
    if (!d.d.has_sizes)
        out->extents = tl_arena_copy(arena, d.extents, sizeof(int64_t) * (size_t)d.d.phase_count,
                                     _Alignof(int64_t));
    return TL_OK;
}
