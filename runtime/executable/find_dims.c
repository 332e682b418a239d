/* runtime/executable/find_dims.c: what an executable's dims are where its inputs have given shapes. */
#include <string.h>
#include "runtime/executable/executable.h"

/* An axis whose extent is the dim itself; false: no input with a shape has one. */
static bool find_axis(const tl_executable_spec *spec, const int64_t *const *shapes, int dim,
                      int *input, int *axis)
{
    tl_varying bare = { { 0 } };

    bare.of[1 << dim] = 1;
    for (int i = 0; i < spec->input_count; i++)
        for (int a = 0; a < spec->inputs[i].rank; a++)
            if (shapes[i] != NULL && spec->inputs[i].varying != NULL &&
                memcmp(&spec->inputs[i].varying[a], &bare, sizeof bare) == 0) {
                *input = i;
                *axis = a;
                return true;
            }
    return false;
}

/* "input mask: axis 1 is 18, not 17 (tokens + 1)" */
static tl_status refuse_axis(const tl_executable_spec *spec, int input, int axis, int64_t extent,
                             int64_t wanted, tl_diag *diag)
{
    const tl_port *port = &spec->inputs[input];
    const char *names[TL_MOST_DIMS] = { NULL };
    tl_text function = { 0 };

    for (int d = 0; d < spec->dim_count; d++)
        names[d] = spec->dims[d].name;
    if (port->varying != NULL && !tl_varying_is_constant(&port->varying[axis]))
        tl_varying_print(&port->varying[axis], spec->dim_count, names, &function);
    tl_status status =
        tl_fail(diag, TL_BAD_ARGUMENT, "input %s: axis %d is %lld, not %lld%s%s%s", port->name,
                axis, (long long)extent, (long long)wanted, function.size > 0 ? " (" : "",
                tl_text_get(&function), function.size > 0 ? ")" : "");
    tl_text_free(&function);
    return status;
}

static tl_status find(const tl_executable_spec *spec, const int64_t *const *shapes, int64_t *dims,
                      tl_diag *diag)
{
    for (int d = 0; d < spec->dim_count; d++) {
        const tl_executable_dim *dim = &spec->dims[d];
        int input, axis;
        if (!find_axis(spec, shapes, d, &input, &axis))
            return tl_fail(diag, TL_BAD_ARGUMENT, "no shape that is given says what %s is",
                           dim->name);
        dims[d] = shapes[input][axis];
        if (dims[d] < dim->min || dims[d] > dim->max)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "input %s: axis %d (%s) is %lld, not in %lld..%lld",
                           spec->inputs[input].name, axis, dim->name, (long long)dims[d],
                           (long long)dim->min, (long long)dim->max);
    }
    return TL_OK;
}

tl_status tl_executable_dims_of(const tl_executable_spec *spec, const int64_t *const *shapes,
                                int64_t *dims, tl_diag *diag)
{
    TL_TRY(find(spec, shapes, dims, diag));
    for (int i = 0; i < spec->input_count; i++)
        for (int a = 0; shapes[i] != NULL && a < spec->inputs[i].rank; a++) {
            const tl_port *port = &spec->inputs[i];
            int64_t wanted = port->shape[a];
            bool is_number = port->varying == NULL ||
                             tl_varying_at(&port->varying[a], spec->dim_count, dims, &wanted);
            if (!is_number || wanted != shapes[i][a])
                return refuse_axis(spec, i, a, shapes[i][a], wanted, diag);
        }
    return TL_OK;
}
