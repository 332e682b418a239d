/* models/zoo.c: the table of models. */
#include "models/zoo.h"
#include <stdio.h>
#include <string.h>
#include "models/builders.h"

enum { BATCH_MOST = 1024 };

const tl_zoo_model tl_zoo[] = {
#define ZOO(name, builder, input, size, least, multiple, most, description) \
    { name, tl_zoo_##builder, TL_ZOO_##input, size, least, multiple, most, description },
#include "models/zoo.def"
#undef ZOO
};
const int tl_zoo_count = sizeof tl_zoo / sizeof tl_zoo[0];

const tl_zoo_model *tl_zoo_find(const char *name)
{
    for (int i = 0; i < tl_zoo_count; i++)
        if (strcmp(tl_zoo[i].name, name) == 0)
            return &tl_zoo[i];
    return NULL;
}

tl_zoo_size tl_zoo_default_size(const tl_zoo_model *model)
{
    return (tl_zoo_size){
        .batch = 1, .height = model->size, .width = model->size, .length = model->size
    };
}

static tl_status fail_unknown(const char *name, tl_diag *diag)
{
    char names[512] = "";
    size_t used = 0;
    for (int i = 0; i < tl_zoo_count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "",
                                 tl_zoo[i].name);
    return tl_fail(diag, TL_BAD_ARGUMENT, "no model is called '%.100s'; there are %s", name, names);
}

static const struct {
    /* Axis 0 is the batch; then, behind the fixed channels of an image, the sizes. */
    int rank, size_axes;
    int first_size;
    const char *text;
} inputs[] = {
    [TL_ZOO_IMAGE] = { 4, 2, 2, "[batch, channels, height, width]" },
    [TL_ZOO_TOKENS] = { 2, 1, 1, "[batch, tokens]" },
    [TL_ZOO_SEQUENCE] = { 3, 1, 1, "[batch, steps, features]" },
};

static tl_status check_extent(const char *input, int axis, int64_t extent, int64_t least,
                              int64_t multiple, int64_t most, tl_diag *diag)
{
    if (extent >= least && extent <= most && extent % multiple == 0)
        return TL_OK;
    if (multiple > 1)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "extent %lld of axis %d of input '%.100s' is not a multiple of %lld from "
                       "%lld to %lld",
                       (long long)extent, axis, input, (long long)multiple, (long long)least,
                       (long long)most);
    return tl_fail(diag, TL_BAD_ARGUMENT,
                   "extent %lld of axis %d of input '%.100s' is not from %lld to %lld",
                   (long long)extent, axis, input, (long long)least, (long long)most);
}

/* The sizes that one shape asks for; its name and fixed axes are compared when the model is built. */
static tl_status take_size(const tl_zoo_model *model, const tl_shape_override *wanted,
                           tl_zoo_size *size, tl_diag *diag)
{
    const tl_shape *s = &wanted->shape;
    int first = inputs[model->input].first_size;
    if (s->rank != inputs[model->input].rank)
        return tl_fail(diag, TL_BAD_ARGUMENT, "the shape of input '%.100s' has %d axes, not %d: %s",
                       wanted->name, s->rank, inputs[model->input].rank, inputs[model->input].text);
    TL_TRY(check_extent(wanted->name, 0, s->dims[0].extent, 1, 1, BATCH_MOST, diag));
    for (int i = first; i < first + inputs[model->input].size_axes; i++)
        TL_TRY(check_extent(wanted->name, i, s->dims[i].extent, model->least, model->multiple,
                            model->most, diag));
    size->batch = s->dims[0].extent;
    size->length = size->height = s->dims[first].extent;
    size->width = s->dims[first + inputs[model->input].size_axes - 1].extent;
    return TL_OK;
}

/* The inputs of the model that was built must have the shapes that were asked for. */
static tl_status check_input(const tl_onnx_build *b, const tl_shape_override *wanted, tl_diag *diag)
{
    if (tl_build_input_extent(b, wanted->name, 0) < 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "the model has no input '%.100s'; its first is '%s'",
                       wanted->name, tl_build_input_name(b, 0));
    for (int i = 0; i < wanted->shape.rank; i++) {
        int64_t extent = tl_build_input_extent(b, wanted->name, i);
        if (extent != wanted->shape.dims[i].extent)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "axis %d of input '%.100s' is %lld in this model and with the other "
                           "shapes given, not %lld",
                           i, wanted->name, (long long)extent,
                           (long long)wanted->shape.dims[i].extent);
    }
    return TL_OK;
}

static tl_status build_and_write(tl_onnx_build *b, const tl_zoo_model *model,
                                 const tl_shape_override *shapes, int shape_count, const char *path,
                                 tl_diag *diag)
{
    tl_zoo_size size = tl_zoo_default_size(model);
    for (int i = 0; i < shape_count; i++)
        TL_TRY(take_size(model, &shapes[i], &size, diag));
    model->build(b, model->name, &size);
    for (int i = 0; i < shape_count && !tl_onnx_build_failed(b); i++)
        TL_TRY(check_input(b, &shapes[i], diag));
    return tl_onnx_build_write(b, path, diag);
}

tl_status tl_zoo_write(const char *name, const tl_shape_override *shapes, int shape_count,
                       uint64_t seed, bool external, const char *path, tl_diag *diag)
{
    const tl_zoo_model *model = tl_zoo_find(name);
    if (model == NULL)
        return fail_unknown(name, diag);
    tl_onnx_build *b = tl_onnx_build_create(name, 17, seed);
    if (b == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory while building the model");
    tl_onnx_build_external(b, external);
    tl_status status = build_and_write(b, model, shapes, shape_count, path, diag);
    tl_onnx_build_destroy(b);
    return status;
}
