/* driver/cli/session_calls.c: a model that is called several times, with the data of a folder each: one loaded model for all of
 * them, whatever their shapes. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "driver/cli/session.h"
#include "driver/cli/shape_option.h"

/* ---- folders ---- */

static int is_data_set(const struct dirent *entry)
{
    return strncmp(entry->d_name, "test_data_set_", 14) == 0;
}

/* Adds the folder, or, where it holds no tensors itself but folders as those beside ONNX models, these in their order. */
static tl_status add_folder(tl_arena *arena, const char *folder, tl_data_folders *out,
                            tl_diag *diag)
{
    struct dirent **entries = NULL;
    struct stat info;
    size_t size = strlen(folder);
    while (size > 1 && folder[size - 1] == '/')
        size--;
    folder = tl_arena_strndup(arena, folder, size);
    const char *listed = tl_arena_format(arena, "%s/names.txt", folder);
    int count = stat(listed, &info) == 0 ? 0 : scandir(folder, &entries, is_data_set, versionsort);
    tl_status status = TL_OK;
    if (out->count + (count > 0 ? count : 1) > TL_MOST_CALLS)
        status =
            tl_fail(diag, TL_BAD_ARGUMENT, "--data %s: more than %d calls", folder, TL_MOST_CALLS);
    for (int i = 0; i < count; i++) {
        if (status == TL_OK)
            out->folders[out->count++] =
                tl_arena_format(arena, "%s/%s", folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    if (status == TL_OK && count <= 0)
        out->folders[out->count++] = folder;
    return status;
}

tl_status tl_data_folders_find(tl_arena *arena, const tl_text_list *given, tl_data_folders *out,
                               tl_diag *diag)
{
    *out = (tl_data_folders){ 0 };
    for (int i = 0; i < given->count; i++)
        TL_TRY(add_folder(arena, given->items[i], out, diag));
    return TL_OK;
}

/* ---- calls ---- */

tl_status tl_session_open_calls(tl_session *session, const char *path,
                                const tl_session_options *options, const tl_model_options *extra,
                                tl_diag *diag)
{
    const tl_family_source source = { .path = path };
    tl_model_options model = extra ? *extra : (tl_model_options){ 0 };
    TL_TRY(tl_session_start(session, options, diag));
    TL_TRY(tl_session_model_options(session, options, &model, diag));
    model.shapes = NULL; /* they come with each call */
    model.shape_count = 0;
    tl_status status = tl_family_create(&source, &model, &session->family, diag);
    if (status != TL_OK)
        tl_context(diag, "%s", path);
    return status;
}

/* What the call's inputs are: of the files that are given, of --shape, and what those say of axes with the same name. */
static tl_status describe_call(const tl_session *session, const tl_session_options *options,
                               tl_family_given *given, tl_diag *diag)
{
    const tl_onnx_signature *signature = tl_family_signature(session->family);
    tl_model_options known = { 0 };
    TL_TRY(tl_shape_options_parse(session->arena, &options->shapes, &known.shapes, diag));
    known.shape_count = options->shapes.count;
    TL_TRY(tl_session_bind_signature(session, signature, options, &known, diag));
    for (int i = 0; i < signature->input_count; i++) {
        const tl_onnx_input *input = &signature->inputs[i];
        given[i] = (tl_family_given){ .shape = input->shape };
        for (int k = 0; k < known.shape_count; k++) {
            const tl_shape_override *o = &known.shapes[k];
            if (strcmp(o->name, input->name) != 0)
                continue;
            given[i].shape = o->shape;
            if (o->value == NULL || o->dtype != input->dtype)
                continue;
            given[i].data = o->value;
            given[i].size = (size_t)tl_storage_bytes(o->dtype, tl_shape_elements(&given[i].shape));
        }
    }
    return TL_OK;
}

tl_status tl_session_begin_call(const tl_session *session, const tl_session_options *options,
                                tl_session_call *out, tl_diag *diag)
{
    *out = (tl_session_call){ .model = session->model };
    if (session->family != NULL) {
        int inputs = tl_family_signature(session->family)->input_count;
        tl_family_given *given = TL_NEW_ARRAY(session->arena, tl_family_given, inputs);
        tl_status status = describe_call(session, options, given, diag);
        if (status == TL_OK)
            status = tl_family_find(session->family, given, &out->code, diag);
        tl_progress_done();
        if (status != TL_OK && options->data != NULL)
            tl_context(diag, "--data %s", options->data);
        TL_TRY(status);
        out->model = tl_family_model(out->code.member);
        out->dims = out->code.spec->dim_count > 0 ? out->code.dims : NULL;
    }
    out->executable = tl_model_executable(out->model);
    return TL_OK;
}

void tl_session_end_call(tl_session_call *call)
{
    tl_family_release(call->code.member);
    *call = (tl_session_call){ 0 };
}

tl_status tl_session_call_bindings(const tl_session *session, const tl_session_call *call,
                                   const tl_session_options *options, int64_t seed,
                                   tl_bindings *out, tl_diag *diag)
{
    return tl_session_bindings(session, call->executable, call->dims, options->given, options->data,
                               seed, out, diag);
}

tl_status tl_session_call_runner(const tl_session *session, const tl_session_call *call,
                                 tl_runner **out, tl_diag *diag)
{
    TL_TRY(tl_runner_create(call->executable, session->pool, session->threads, out, diag));
    return call->dims != NULL ? tl_runner_set_dims(*out, call->dims, diag) : TL_OK;
}

void tl_session_describe_call(const tl_session_call *call, bool json, tl_text *out)
{
    const tl_executable_spec *spec = tl_executable_info(call->executable);
    for (int d = 0; call->dims != NULL && d < spec->dim_count; d++) {
        tl_text_add(out, d > 0 ? (json ? "," : ", ") : "");
        if (json)
            tl_json_add_text(out, spec->dims[d].name);
        else
            tl_text_add(out, spec->dims[d].name);
        tl_text_format(out, json ? ":%lld" : " = %lld", (long long)call->dims[d]);
    }
}
