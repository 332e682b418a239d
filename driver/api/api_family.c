/* driver/api/api_family.c: families of the C API: driver/pipeline/family.h behind a handle. */
#include <stdlib.h>
#include <string.h>
#include "driver/api/family_private.h"

_Static_assert((int)TILTH_FAMILY_LIMIT == (int)TL_FAMILY_LIMIT, "it is told what is kept");

void tl_api_family_release(tilth_family *f)
{
    if (!tl_handle_release(&f->handle))
        return;
    tl_family_destroy(f->family);
    tl_pool_destroy(f->compile_pool);
    if (f->pool != NULL)
        tl_api_pool_release(f->pool);
    tl_handle_free(f);
}

static tl_status fill(tilth_family *f, const tl_load_request *r, const tilth_load_options *options,
                      tl_diag *diag)
{
    tl_model_options model;
    const tl_family_source source = {
        .path = r->path, .bytes = r->bytes, .size = r->size, .folder = r->folder
    };
    if (options->pool != NULL) {
        f->pool = options->pool;
        tl_handle_retain(&f->pool->handle);
    } else {
        TL_TRY(tl_api_pool_make(&(tl_pool_options){ .threads = options->threads }, &f->pool, diag));
    }
    TL_TRY(tl_load_options(options, f->pool, &model, &f->compile_pool, diag));
    return tl_family_create(&source, &model, &f->family, diag);
}

static tl_status create(const tl_load_request *r, const tilth_load_options *given,
                        tilth_family **out, tl_diag *diag)
{
    tilth_load_options options;
    if (out == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is nowhere to put the family", r->call);
    *out = NULL;
    TL_TRY(tl_load_check(r, given, &options, diag));
    if (options.shape_count > 0)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "%s: options give shapes; those of a family come with each call", r->call);
    tilth_family *f = calloc(1, sizeof *f);
    if (f == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", r->call);
    tl_handle_start(&f->handle, TL_HANDLE_FAMILY);
    tl_status status = fill(f, r, &options, diag);
    if (status != TL_OK) {
        (void)tl_handle_kill(&f->handle, TL_HANDLE_FAMILY);
        tl_api_family_release(f);
        return status;
    }
    *out = f;
    return TL_OK;
}

tilth_status tilth_family_load(const char *path, const tilth_load_options *options,
                               tilth_family **out, tilth_error *error)
{
    tl_load_request r = { .call = __func__, .path = path };
    TL_API_DIAG(diag);
    return tl_api_return(create(&r, options, out, &diag), &diag, error);
}

tilth_status tilth_family_load_memory(const void *bytes, size_t size, const char *folder,
                                      const tilth_load_options *options, tilth_family **out,
                                      tilth_error *error)
{
    tl_load_request r = { .call = __func__, .bytes = bytes, .size = size, .folder = folder };
    TL_API_DIAG(diag);
    return tl_api_return(create(&r, options, out, &diag), &diag, error);
}

tilth_status tilth_family_destroy(tilth_family *family)
{
    if (family == NULL)
        return TILTH_OK;
    if (!tl_handle_kill(&family->handle, TL_HANDLE_FAMILY))
        return TILTH_BAD_ARGUMENT;
    tl_api_family_release(family);
    return TILTH_OK;
}

/* ---- what it is called with ---- */

static bool is_family(const tilth_family *family)
{
    return tl_handle_check(family, TL_HANDLE_FAMILY, "", NULL) == TL_OK;
}

int tilth_family_input_count(const tilth_family *family)
{
    return is_family(family) ? tl_family_signature(family->family)->input_count : 0;
}

int tilth_family_find_input(const tilth_family *family, const char *name)
{
    int count = name != NULL ? tilth_family_input_count(family) : 0;
    for (int i = 0; i < count; i++)
        if (strcmp(tl_family_signature(family->family)->inputs[i].name, name) == 0)
            return i;
    return -1;
}

int64_t tilth_family_compiled(const tilth_family *family)
{
    return is_family(family) ? tl_family_compiled(family->family) : 0;
}

int tilth_family_axis_count(const tilth_family *family)
{
    return is_family(family) ? tl_family_axis_count(family->family) : 0;
}

static tl_status describe_axis(const tilth_family *f, int index, tilth_axis_info *out,
                               const char *call, tl_diag *diag)
{
    TL_TRY(tl_handle_check(f, TL_HANDLE_FAMILY, call, diag));
    if (out == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is nowhere to put the answer", call);
    int count = tl_family_axis_count(f->family);
    if (index < 0 || index >= count)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is no axis %d; the model has %d open ones",
                       call, index, count);
    bool is_dim;
    tl_open_axis axis = tl_family_axis(f->family, index, &is_dim);
    *out = (tilth_axis_info){ .name = axis.name,
                              .input = axis.input,
                              .axis = axis.axis,
                              .is_dim = is_dim,
                              .specialised = axis.specialised };
    return TL_OK;
}

tilth_status tilth_family_axis(const tilth_family *family, int index, tilth_axis_info *out,
                               tilth_error *error)
{
    TL_API_DIAG(diag);
    return tl_api_return(describe_axis(family, index, out, __func__, &diag), &diag, error);
}

static tl_status describe(const tilth_family *family, int index, tilth_tensor_info *out,
                          const char *call, tl_diag *diag)
{
    TL_TRY(tl_handle_check(family, TL_HANDLE_FAMILY, call, diag));
    if (out == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is nowhere to put the answer", call);
    const tl_onnx_signature *signature = tl_family_signature(family->family);
    if (index < 0 || index >= signature->input_count)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is no input %d; the model has %d", call,
                       index, signature->input_count);
    const tl_onnx_input *input = &signature->inputs[index];
    *out = (tilth_tensor_info){ .name = input->name,
                                .dtype = (tilth_dtype)tl_dtype_infos[input->dtype].onnx,
                                .rank = input->shape.rank };
    for (int i = 0; i < input->shape.rank; i++)
        out->shape[i] = input->shape.dims[i].extent;
    int64_t elements = input->shape.rank >= 0 ? tl_shape_elements(&input->shape) : -1;
    if (elements >= 0)
        out->size = (size_t)tl_storage_bytes(input->dtype, elements);
    return TL_OK;
}

tilth_status tilth_family_input(const tilth_family *family, int index, tilth_tensor_info *out,
                                tilth_error *error)
{
    TL_API_DIAG(diag);
    return tl_api_return(describe(family, index, out, __func__, &diag), &diag, error);
}
