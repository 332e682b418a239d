/* driver/inspect/inspect_axes.c: tilth inspect MODEL --axes: which open axes code takes as dims, and why it does not take others.
 * Each axis is changed in turn, as a second call would change it; nothing is compiled. */
#include <string.h>
#include "driver/inspect/inspect.h"
#include "driver/pipeline/open_axes.h"
#include "runtime/base/map.h"

/* Extents that nobody has given: primes that no model has, and where an axis is changed, a step further. */
static const int64_t extents[] = { 37, 41, 43, 47, 53, 59, 61, 67 };
enum { STEP = 12 };

/* Shapes of all inputs: those given, and any for open axes of the others; axes of one name have one extent. */
static tl_status choose_shapes(tl_arena *arena, const tl_onnx_signature *signature,
                               const tl_open_axes *axes, const tl_model_options *options,
                               tl_shape_override *out, tl_diag *diag)
{
    int64_t *chosen = TL_NEW_ARRAY(arena, int64_t, axes->count);
    for (int i = 0; i < axes->count; i++)
        chosen[i] = extents[i % (int)(sizeof extents / sizeof *extents)];
    for (int i = 0; i < signature->input_count; i++)
        for (int k = 0; k < options->shape_count; k++)
            for (int a = 0; a < options->shapes[k].shape.rank; a++)
                if (strcmp(options->shapes[k].name, signature->inputs[i].name) == 0 &&
                    axes->place[i * TL_MAX_RANK + a] >= 0)
                    chosen[axes->place[i * TL_MAX_RANK + a]] =
                        options->shapes[k].shape.dims[a].extent;
    for (int i = 0; i < signature->input_count; i++) {
        const tl_onnx_input *input = &signature->inputs[i];
        if (input->shape.rank < 0)
            return tl_fail(diag, TL_UNSUPPORTED,
                           "input '%.120s' may have any number of axes: every shape is compiled",
                           input->name);
        out[i] = (tl_shape_override){ .name = input->name,
                                      .shape = input->shape,
                                      .dtype = input->dtype };
        for (int a = 0; a < input->shape.rank; a++)
            if (axes->place[i * TL_MAX_RANK + a] >= 0)
                out[i].shape.dims[a] =
                    (tl_dim){ .extent = chosen[axes->place[i * TL_MAX_RANK + a]] };
    }
    return TL_OK;
}

static void print_places(const tl_onnx_signature *signature, const tl_open_axes *axes, int axis,
                         tl_text *out)
{
    const char *between = "";
    for (int i = 0; i < signature->input_count; i++)
        for (int a = 0; a < signature->inputs[i].shape.rank; a++)
            if (axes->place[i * TL_MAX_RANK + a] == axis) {
                tl_text_format(out, "%s%s.%d", between, signature->inputs[i].name, a);
                between = ", ";
            }
}

/* "input       x f32[n, 3, ?]": what a file says of an input, extents by their names. */
static void print_inputs(const tl_onnx_signature *signature, bool json, tl_text *out)
{
    for (int i = 0; i < signature->input_count; i++) {
        const tl_onnx_input *input = &signature->inputs[i];
        tl_text type = { 0 };
        tl_text_format(&type, "%s[", input->dtype_known ? tl_dtype_infos[input->dtype].text : "?");
        for (int a = 0; a < input->shape.rank; a++) {
            const tl_dim *dim = &input->shape.dims[a];
            tl_text_add(&type, a > 0 ? ", " : "");
            if (dim->extent >= 0)
                tl_text_format(&type, "%lld", (long long)dim->extent);
            else
                tl_text_add(&type, dim->name != NULL ? dim->name : "?");
        }
        tl_text_add(&type, input->shape.rank < 0 ? "...]" : "]");
        if (json) {
            tl_text_add(out, "{\"record\":\"input\",\"name\":");
            tl_json_add_text(out, input->name);
            tl_text_add(out, ",\"type\":");
            tl_json_add_text(out, tl_text_get(&type));
            tl_text_add(out, "}\n");
        } else {
            tl_text_format(out, "%-11s %s %s\n", "input", input->name, tl_text_get(&type));
        }
        tl_text_free(&type);
    }
}

static void print_axes(const tl_onnx_signature *signature, const tl_open_axes *axes, bool json,
                       tl_text *out)
{
    for (int i = 0; i < axes->count; i++) {
        const tl_open_axis *axis = &axes->axes[i];
        tl_text places = { 0 };
        print_places(signature, axes, i, &places);
        if (json) {
            tl_text_add(out, "{\"record\":\"axis\",\"name\":");
            tl_json_add_text(out, axis->name);
            tl_text_add(out, ",\"places\":");
            tl_json_add_text(out, tl_text_get(&places));
            tl_text_format(out, ",\"dim\":%s", axis->is_dim ? "true" : "false");
            if (axis->specialised != NULL) {
                tl_text_add(out, ",\"specialised\":");
                tl_json_add_text(out, axis->specialised);
            }
            tl_text_add(out, "}\n");
        } else {
            tl_text_format(out, "%-16s %s\n    %s%s\n", axis->name, tl_text_get(&places),
                           axis->is_dim ? "one code for all extents" : "specialised: ",
                           axis->is_dim                ? ""
                           : axis->specialised != NULL ? axis->specialised
                                                       : "together with the others it is no dim");
        }
        tl_text_free(&places);
    }
}

/* Changes each axis in turn; the last join is of all that can be dims together, as far as there are few of them. */
static tl_status try_axes(tl_arena *arena, tl_onnx *onnx, const tl_onnx_signature *signature,
                          tl_open_axes *axes, const tl_model_options *options,
                          tl_shape_override *shapes, tl_join **last, tl_diag *diag)
{
    int64_t *before = TL_NEW_ARRAY(arena, int64_t, axes->count);
    tl_open_axes_read(axes, shapes, before);
    for (int i = 0; i < axes->count; i++) {
        tl_join *join = NULL;
        for (int p = 0; p < signature->input_count * TL_MAX_RANK; p++)
            if (axes->place[p] == i)
                shapes[p / TL_MAX_RANK].shape.dims[p % TL_MAX_RANK].extent = before[i] + STEP;
        tl_status status =
            tl_join_axes(arena, onnx, signature, axes, before, shapes, options, &join, diag);
        for (int p = 0; p < signature->input_count * TL_MAX_RANK; p++)
            if (axes->place[p] == i)
                shapes[p / TL_MAX_RANK].shape.dims[p % TL_MAX_RANK].extent = before[i];
        if (status != TL_OK && status != TL_UNSUPPORTED)
            return status;
        if (status == TL_OK) {
            tl_join_destroy(*last);
            *last = join;
        }
    }
    return TL_OK;
}

tl_status tl_inspect_axes(const tl_session *session, const char *path,
                          const tl_model_options *options, bool json, tl_text *out, tl_diag *diag)
{
    tl_arena *arena = session->arena;
    tl_onnx_signature signature;
    tl_join *last = NULL;
    tl_onnx *onnx;
    TL_TRY(tl_onnx_read_signature(arena, path, &signature, diag));
    tl_open_axes axes = tl_open_axes_of(arena, &signature);
    tl_shape_override *shapes = TL_NEW_ARRAY(arena, tl_shape_override, signature.input_count);
    print_inputs(&signature, json, out);
    if (axes.count == 0 && !json)
        tl_text_add(out, "no axis is open\n");
    TL_TRY(choose_shapes(arena, &signature, &axes, options, shapes, diag));
    TL_TRY(tl_onnx_open(path, &onnx, diag));
    tl_status status = try_axes(arena, onnx, &signature, &axes, options, shapes, &last, diag);
    if (status == TL_OK) {
        print_axes(&signature, &axes, json, out);
        if (last != NULL && !json)
            tl_join_describe(last, out);
    }
    tl_join_destroy(last);
    tl_onnx_close(onnx);
    return status;
}
