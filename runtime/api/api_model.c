/* runtime/api/api_model.c: compiled models of the C API: saving, what is known of them, their end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/api/api_private.h"
#include "runtime/executable/regions.h"

_Static_assert(TILTH_MAX_RANK == TL_TENSOR_MAX_RANK, "a shape fits");

tl_status tl_api_model_make(tl_executable *executable, void *owner,
                            void (*destroy_owner)(void *owner), tilth_pool *pool, bool from_disk,
                            tilth_model **out, tl_diag *diag)
{
    tilth_model *model = calloc(1, sizeof *model);

    if (model == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "model: out of memory");
    model->executable = executable;
    model->owner = owner;
    model->destroy_owner = destroy_owner;
    model->pool = pool;
    model->from_disk = from_disk;
    const tl_device *device = tl_executable_device(executable);
    if (device != NULL)
        snprintf(model->device_name, sizeof model->device_name, "%s:%d", device->type->name,
                 device->facts.number);
    else
        strcpy(model->device_name, "cpu");
    tl_handle_retain(&pool->handle);
    tl_handle_start(&model->handle, TL_HANDLE_MODEL);
    *out = model;
    return TL_OK;
}

static tl_status save(const tilth_model *model, const char *folder, tl_diag *diag)
{
    static const char call[] = "tilth_model_save";

    TL_TRY(tl_handle_check(model, TL_HANDLE_MODEL, call, diag));
    if (folder == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: the folder is NULL", call);
    tl_status status = tl_executable_check_place(folder, diag);
    if (status != TL_OK) {
        tl_context(diag, "%s", call);
        return status;
    }
    return tl_executable_save(model->executable, 0, folder, diag);
}

tilth_status tilth_model_save(const tilth_model *model, const char *folder, tilth_error *error)
{
    TL_API_DIAG(diag);
    return tl_api_return(save(model, folder, &diag), &diag, error);
}

void tl_api_model_release(tilth_model *model)
{
    if (!tl_handle_release(&model->handle))
        return;
    if (model->owner != NULL)
        model->destroy_owner(model->owner);
    else
        tl_executable_destroy(model->executable);
    tl_device_close(model->device);
    tl_api_pool_release(model->pool);
    tl_handle_free(model);
}

tilth_status tilth_model_destroy(tilth_model *model)
{
    if (model == NULL)
        return TILTH_OK;
    if (!tl_handle_kill(&model->handle, TL_HANDLE_MODEL))
        return TILTH_BAD_ARGUMENT;
    tl_api_model_release(model);
    return TILTH_OK;
}

/* NULL for what is no model. */
static const tl_executable_spec *spec_of(const tilth_model *model)
{
    if (tl_handle_check(model, TL_HANDLE_MODEL, "", NULL) != TL_OK)
        return NULL;
    return tl_executable_info(model->executable);
}

const char *tilth_model_device(const tilth_model *model)
{
    return spec_of(model) != NULL ? model->device_name : NULL;
}

int tilth_model_input_count(const tilth_model *model)
{
    const tl_executable_spec *spec = spec_of(model);

    return spec != NULL ? spec->input_count : 0;
}

int tilth_model_output_count(const tilth_model *model)
{
    const tl_executable_spec *spec = spec_of(model);

    return spec != NULL ? spec->output_count : 0;
}

static tl_status describe(const tilth_model *model, bool input, int index, tilth_tensor_info *out,
                          const char *call, tl_diag *diag)
{
    int64_t size;

    TL_TRY(tl_handle_check(model, TL_HANDLE_MODEL, call, diag));
    const tl_executable_spec *spec = tl_executable_info(model->executable);
    int count = input ? spec->input_count : spec->output_count;
    if (out == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is nowhere to put the answer", call);
    if (index < 0 || index >= count)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is no %s %d; the model has %d", call,
                       input ? "input" : "output", index, count);
    const tl_port *port = input ? &spec->inputs[index] : &spec->outputs[index];
    TL_TRY(tl_tensor_bytes(port->dtype, port->rank, port->shape, &size, diag));
    *out = (tilth_tensor_info){
        .name = port->name,
        .dtype = (tilth_dtype)tl_dtype_infos[port->dtype].onnx,
        .rank = port->rank,
        .size = (size_t)size,
    };
    for (int a = 0; a < port->rank; a++) {
        bool varies = port->varying != NULL && !tl_varying_is_constant(&port->varying[a]);
        out->shape[a] = varies ? -1 : port->shape[a];
        out->size = varies ? 0 : out->size;
    }
    return TL_OK;
}

int tilth_model_dim_count(const tilth_model *model)
{
    const tl_executable_spec *spec = spec_of(model);

    return spec != NULL ? spec->dim_count : 0;
}

static tl_status describe_dim(const tilth_model *model, int index, tilth_dim_info *out,
                              const char *call, tl_diag *diag)
{
    TL_TRY(tl_handle_check(model, TL_HANDLE_MODEL, call, diag));
    const tl_executable_spec *spec = tl_executable_info(model->executable);
    if (out == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is nowhere to put the answer", call);
    if (index < 0 || index >= spec->dim_count)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is no dim %d; the model has %d", call,
                       index, spec->dim_count);
    const tl_executable_dim *dim = &spec->dims[index];
    *out = (tilth_dim_info){ .name = dim->name, .min = dim->min, .max = dim->max };
    return TL_OK;
}

tilth_status tilth_model_dim(const tilth_model *model, int index, tilth_dim_info *out,
                             tilth_error *error)
{
    TL_API_DIAG(diag);
    return tl_api_return(describe_dim(model, index, out, __func__, &diag), &diag, error);
}

tilth_status tilth_model_input(const tilth_model *model, int index, tilth_tensor_info *out,
                               tilth_error *error)
{
    TL_API_DIAG(diag);
    return tl_api_return(describe(model, true, index, out, __func__, &diag), &diag, error);
}

tilth_status tilth_model_output(const tilth_model *model, int index, tilth_tensor_info *out,
                                tilth_error *error)
{
    TL_API_DIAG(diag);
    return tl_api_return(describe(model, false, index, out, __func__, &diag), &diag, error);
}

int tilth_model_find_input(const tilth_model *model, const char *name)
{
    return name != NULL && spec_of(model) != NULL
               ? tl_executable_find_input(model->executable, name)
               : -1;
}

int tilth_model_find_output(const tilth_model *model, const char *name)
{
    return name != NULL && spec_of(model) != NULL
               ? tl_executable_find_output(model->executable, name)
               : -1;
}

static tl_status get_facts(const tilth_model *model, tilth_model_facts *out, tl_diag *diag)
{
    static const char call[] = "tilth_model_get_facts";

    TL_TRY(tl_handle_check(model, TL_HANDLE_MODEL, call, diag));
    if (out == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: there is nowhere to put the answer", call);
    const tl_executable_spec *spec = tl_executable_info(model->executable);
    tl_executable_sizes sizes = tl_executable_measure(model->executable);
    *out = (tilth_model_facts){
        .name = spec->model != NULL ? spec->model : "",
        .from_disk = model->from_disk,
        .constant_bytes = sizes.prepared_bytes,
        .code_bytes = sizes.code_bytes,
    };
    for (int i = 0; i < spec->step_count; i++) {
        out->flops += spec->steps[i].flops;
        out->kernel_count += !tl_step_has_region(&spec->steps[i]);
    }
    bool *used = calloc((size_t)spec->value_count + 1, sizeof *used);
    if (used == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", call);
    for (int i = 0; i < spec->step_count; i++)
        for (int v = 0; v < spec->steps[i].value_count; v++)
            if (spec->steps[i].values[v] != TL_NO_VALUE)
                used[spec->steps[i].values[v]] = true;
    for (int i = 0; i < spec->value_count; i++)
        if (used[i] && spec->values[i].place == TL_PLACE_CONSTANT)
            out->constant_bytes += spec->values[i].size;
    free(used);
    return TL_OK;
}

tilth_status tilth_model_get_facts(const tilth_model *model, tilth_model_facts *out,
                                   tilth_error *error)
{
    TL_API_DIAG(diag);
    return tl_api_return(get_facts(model, out, &diag), &diag, error);
}
