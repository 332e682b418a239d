/* runtime/abi/descriptor.c: a descriptor as one line of JSON,
 *     {"name":"gemm","phases":1,"extents":[16],"scratch":0,"thread_scratch":4096,"sizes":false,
 *      "dims":0,"buffers":3}
 * and back; what a GPU's has besides is in descriptor_gpu.c. The text comes from cache files and is checked in every
 * member. */
#include "runtime/abi/descriptor.h"
#include <assert.h>
#include "runtime/abi/descriptor_private.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PHASES = 1024, MAX_NAME = 255, MAX_COUNT = 4096 };

int tl_descriptor_function_count(const tl_descriptor *d)
{
    return d->phase_count + (d->has_sizes && !tl_descriptor_is_gpu(d));
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

void tl_descriptor_copy(tl_arena *arena, const tl_descriptor *from, tl_descriptor *out)
{
    *out = *from;
    out->name = tl_arena_strdup(arena, from->name);
    out->extents = NULL;
    if (tl_has_extents(from))
        out->extents =
            tl_arena_copy(arena, from->extents, sizeof *from->extents * (size_t)from->phase_count,
                          _Alignof(int64_t));
    if (tl_descriptor_is_gpu(from))
        tl_gpu_part_copy(arena, from, out);
}

void tl_descriptor_print(const tl_descriptor *d, tl_text *out)
{
    tl_text_format(out, "{\"name\":\"%s\",\"phases\":%d,\"extents\":[", d->name, d->phase_count);
    if (tl_has_extents(d))
        for (int i = 0; i < d->phase_count; i++)
            tl_text_format(out, "%s%lld", i > 0 ? "," : "", (long long)d->extents[i]);
    tl_text_format(out,
                   "],\"scratch\":%lld,\"thread_scratch\":%lld,\"sizes\":%s,\"dims\":%d,"
                   "\"buffers\":%d",
                   (long long)d->scratch_bytes, (long long)d->thread_scratch_bytes,
                   d->has_sizes ? "true" : "false", d->dim_count, d->buffer_count);
    if (tl_descriptor_is_gpu(d))
        tl_gpu_part_print(d, out);
    tl_text_add(out, "}");
}

static bool is_name(const char *text)
{
    size_t size = strlen(text);

    if (size == 0 || size > MAX_NAME)
        return false;
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$") ==
           size;
}

static tl_status read_extents(tl_arena *arena, const json_t *root, tl_descriptor *out,
                              tl_diag *diag)
{
    const json_t *list = json_object_get(root, "extents");
    size_t want = tl_has_extents(out) ? (size_t)out->phase_count : 0;

    if (!json_is_array(list) || json_array_size(list) != want)
        return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: \"extents\" is not a list of %zu",
                       want);
    int64_t *extents = TL_NEW_ARRAY(arena, int64_t, want);
    for (size_t i = 0; i < want; i++) {
        const json_t *extent = json_array_get(list, i);
        if (!json_is_integer(extent) || json_integer_value(extent) < 0)
            return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: extent %zu is not a count", i);
        extents[i] = json_integer_value(extent);
    }
    out->extents = tl_has_extents(out) ? extents : NULL;
    return TL_OK;
}

/* Older ones, from before there were others, are a CPU's. */
static tl_status read_form(const json_t *root, tl_descriptor *out, tl_diag *diag)
{
    const json_t *form = json_object_get(root, "code");
    const char *text = form == NULL ? tl_form_infos[TL_FORM_OBJECT].text : json_string_value(form);

    for (int i = 0; text != NULL && i < TL_FORM_COUNT; i++)
        if (strcmp(text, tl_form_infos[i].text) == 0) {
            out->form = (tl_code_form)i;
            return TL_OK;
        }
    return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: \"code\" is of no form that is known");
}

static tl_status read_all(tl_arena *arena, const json_t *root, tl_descriptor *out, tl_diag *diag)
{
    const char *name = json_string_value(json_object_get(root, "name"));
    const json_t *sizes = json_object_get(root, "sizes");
    int64_t phases, dims, buffers;

    if (name == NULL || !is_name(name))
        return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: \"name\" is not a kernel's name");
    if (!json_is_boolean(sizes))
        return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: \"sizes\" is not true or false");
    TL_TRY(tl_descriptor_integer(root, "phases", 0, MAX_PHASES, &phases, diag));
    TL_TRY(tl_descriptor_integer(root, "dims", 0, MAX_COUNT, &dims, diag));
    TL_TRY(tl_descriptor_integer(root, "buffers", 0, MAX_COUNT, &buffers, diag));
    TL_TRY(tl_descriptor_integer(root, "scratch", 0, INT64_MAX / 4, &out->scratch_bytes, diag));
    TL_TRY(tl_descriptor_integer(root, "thread_scratch", 0, INT64_MAX / 4 / 1024,
                                 &out->thread_scratch_bytes, diag));
    TL_TRY(read_form(root, out, diag));
    out->name = tl_arena_strdup(arena, name);
    out->has_sizes = json_is_true(sizes);
    out->phase_count = (int)phases;
    out->dim_count = (int)dims;
    out->buffer_count = (int)buffers;
    TL_TRY(read_extents(arena, root, out, diag));
    return tl_descriptor_is_gpu(out) ? tl_gpu_part_read(arena, root, out, diag) : TL_OK;
}

tl_status tl_descriptor_parse(tl_arena *arena, const char *json, tl_descriptor *out, tl_diag *diag)
{
    json_error_t error;
    tl_arena_guard outer;
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, &error);

    if (root == NULL)
        return tl_fail(diag, TL_BAD_TEXT, "kernel descriptor: not JSON (column %d: %s)",
                       error.column, error.text);
    *out = (tl_descriptor){ 0 };
    tl_arena_guard_save(arena, &outer);
    tl_status status = TL_ARENA_GUARD(arena)
                           ? tl_fail(diag, TL_NO_MEMORY, "kernel descriptor: out of memory")
                           : read_all(arena, root, out, diag);
    tl_arena_guard_restore(arena, &outer);
    json_decref(root);
    return status;
}
