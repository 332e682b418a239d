/* frontend/onnx/onnx_bind_shapes.c: the shapes of a call, from those of some of its inputs.
 *
 *     x: [batch, 3, h, w], mask: [batch]     given x = [4, 3, 32, 48]  ->  batch 4, h 32, w 48; mask = [4] */
#include <string.h>
#include "frontend/frontend.h"
#include "runtime/base/map.h"

/* What an axis name stands for, and which axis said so. */
typedef struct {
    int64_t extent;
    const char *input;
    int axis;
} axis_value;

static const tl_onnx_input *find_input(const tl_onnx_signature *signature, const char *name)
{
    for (int i = 0; i < signature->input_count; i++)
        if (strcmp(signature->inputs[i].name, name) == 0)
            return &signature->inputs[i];
    return NULL;
}

static const tl_shape_override *find_given(const tl_shape_override *given, int count,
                                           const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(given[i].name, name) == 0)
            return &given[i];
    return NULL;
}

/* What a given shape says of names; whether it is one that the file allows. */
static tl_status learn(tl_arena *arena, const tl_onnx_input *input, const tl_shape *given,
                       tl_map *names, tl_diag *diag)
{
    const tl_shape *declared = &input->shape;
    if (!tl_shape_is_static(given))
        return tl_fail(diag, TL_BAD_ARGUMENT, "the shape given for input '%.120s' is not static",
                       input->name);
    if (declared->rank >= 0 && declared->rank != given->rank)
        return tl_fail(diag, TL_BAD_ARGUMENT, "input '%.120s' has %d axes, but %d were given",
                       input->name, declared->rank, given->rank);
    for (int a = 0; a < declared->rank; a++) {
        const tl_dim *dim = &declared->dims[a];
        int64_t extent = given->dims[a].extent;
        if (dim->extent >= 0 && dim->extent != extent)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "axis %d of input '%.120s' is %lld in the model, but %lld was given", a,
                           input->name, (long long)dim->extent, (long long)extent);
        if (dim->extent >= 0 || dim->name == NULL)
            continue;
        const axis_value *known = tl_map_find(names, dim->name);
        if (known != NULL && known->extent != extent)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "axis '%.80s' is %lld in input '%.120s' (axis %d), but %lld in input "
                           "'%.120s' (axis %d)",
                           dim->name, (long long)known->extent, known->input, known->axis,
                           (long long)extent, input->name, a);
        if (known != NULL)
            continue;
        axis_value *value = TL_NEW(arena, axis_value);
        *value = (axis_value){ extent, input->name, a };
        tl_map_put(names, dim->name, value);
    }
    return TL_OK;
}

/* "x=1,3,h,w": the option that would say it, open axes by their names. */
static void add_way_out(const tl_onnx_input *input, tl_text *out)
{
    tl_text_format(out, "--shape %.120s=", input->name);
    for (int a = 0; a < input->shape.rank; a++) {
        const tl_dim *dim = &input->shape.dims[a];
        tl_text_add(out, a > 0 ? "," : "");
        if (dim->extent >= 0)
            tl_text_format(out, "%lld", (long long)dim->extent);
        else
            tl_text_format(out, "%.40s", dim->name != NULL ? dim->name : "N");
    }
    if (input->shape.rank < 0)
        tl_text_add(out, "N,...");
}

static tl_status fail_open(const tl_onnx_input *input, int axis, tl_diag *diag)
{
    tl_text way = { 0 };
    add_way_out(input, &way);
    tl_status status =
        axis < 0
            ? tl_fail(diag, TL_UNBOUND,
                      "input '%.120s' may have any number of axes: give its shape (%s), or data "
                      "for it",
                      input->name, tl_text_get(&way))
            : tl_fail(diag, TL_UNBOUND,
                      "axis %d of input '%.120s' (%.80s) is open: give its shape (%s), or data "
                      "for it",
                      axis, input->name,
                      input->shape.dims[axis].name != NULL ? input->shape.dims[axis].name
                                                           : "without a name",
                      tl_text_get(&way));
    tl_text_free(&way);
    return status;
}

static tl_status fill(const tl_onnx_input *input, const tl_map *names, tl_shape *out, tl_diag *diag)
{
    *out = input->shape;
    if (input->shape.rank < 0)
        return fail_open(input, -1, diag);
    for (int a = 0; a < out->rank; a++) {
        tl_dim *dim = &out->dims[a];
        const axis_value *known =
            dim->extent < 0 && dim->name != NULL ? tl_map_find(names, dim->name) : NULL;
        if (dim->extent < 0 && known == NULL)
            return fail_open(input, a, diag);
        *dim = (tl_dim){ .extent = known != NULL ? known->extent : dim->extent };
    }
    return TL_OK;
}

bool tl_onnx_signature_is_open(const tl_onnx_signature *signature)
{
    for (int i = 0; i < signature->input_count; i++)
        if (!tl_shape_is_static(&signature->inputs[i].shape))
            return true;
    return false;
}

tl_status tl_onnx_bind_shapes(tl_arena *arena, const tl_onnx_signature *signature,
                              const tl_shape_override *given, int given_count,
                              const tl_shape_override **out, int *out_count, tl_diag *diag)
{
    tl_map *names = tl_map_create(arena);
    tl_shape_override *shapes = TL_NEW_ARRAY(arena, tl_shape_override, signature->input_count);
    *out = shapes;
    *out_count = 0;
    for (int i = 0; i < given_count; i++) {
        const tl_onnx_input *input = find_input(signature, given[i].name);
        if (input == NULL)
            return tl_fail(diag, TL_BAD_ARGUMENT, "the model has no input called '%.120s'",
                           given[i].name);
        TL_TRY(learn(arena, input, &given[i].shape, names, diag));
    }
    for (int i = 0; i < signature->input_count; i++) {
        const tl_onnx_input *input = &signature->inputs[i];
        const tl_shape_override *known = find_given(given, given_count, input->name);
        bool is_offered = known != NULL && known->value != NULL;
        if (tl_shape_is_static(&input->shape) && !is_offered)
            continue;
        tl_shape_override *shape = &shapes[(*out_count)++];
        if (known != NULL)
            *shape = *known;
        else
            TL_TRY(fill(input, names, &shape->shape, diag));
        shape->name = input->name;
    }
    return TL_OK;
}
