/* driver/cli/session_ranges.c: a model that is compiled for ranges of its extents: --shape NAME=1,16..512. */
#include <string.h>
#include "driver/cli/session.h"
#include "driver/cli/shape_option.h"

bool tl_session_has_ranges(const tl_session_options *options)
{
    return tl_shape_options_have_range(&options->shapes);
}

/* The shapes of all inputs at one end of the ranges, from those that are said. */
static tl_status bind_end(tl_arena *arena, const tl_onnx_signature *signature,
                          const tl_shape_override *said, int count, const tl_shape_override **out,
                          tl_diag *diag)
{
    const tl_shape_override *bound;
    int bound_count;
    tl_shape_override *all = TL_NEW_ARRAY(arena, tl_shape_override, signature->input_count);
    TL_TRY(tl_onnx_bind_shapes(arena, signature, said, count, &bound, &bound_count, diag));
    for (int i = 0; i < signature->input_count; i++) {
        const tl_onnx_input *input = &signature->inputs[i];
        all[i] = (tl_shape_override){ .name = input->name,
                                      .shape = input->shape,
                                      .dtype = input->dtype };
        for (int k = 0; k < bound_count; k++)
            if (strcmp(bound[k].name, input->name) == 0)
                all[i].shape = bound[k].shape;
    }
    *out = all;
    return TL_OK;
}

static tl_status join(tl_session *session, const char *path, const tl_session_options *options,
                      const tl_model_options *model, tl_diag *diag)
{
    tl_onnx_signature signature;
    const tl_shape_override *said[2], *ends[2];
    tl_arena *arena = session->arena;
    TL_TRY(tl_shape_ranges_parse(arena, &options->shapes, &said[0], &said[1], diag));
    TL_TRY(tl_onnx_read_signature(arena, path, &signature, diag));
    for (int i = 0; i < 2; i++)
        TL_TRY(bind_end(arena, &signature, said[i], options->shapes.count, &ends[i], diag));
    TL_TRY(tl_onnx_open(path, &session->onnx, diag));
    tl_onnx_limit_turns(session->onnx, options->most_turns);
    TL_TRY(tl_join_ranges(arena, session->onnx, &signature, ends[0], ends[1], model, &session->join,
                          diag));
    return tl_join_compile(session->join, model, &session->model, diag);
}

tl_status tl_session_open_ranges(tl_session *session, const char *path,
                                 const tl_session_options *options, const tl_model_options *extra,
                                 tl_diag *diag)
{
    tl_session_options shapeless = *options;
    tl_model_options model = extra ? *extra : (tl_model_options){ 0 };
    shapeless.shapes.count = 0;
    TL_TRY(tl_session_start(session, options, diag));
    TL_TRY(tl_session_model_options(session, &shapeless, &model, diag));
    tl_status status = join(session, path, options, &model, diag);
    tl_progress_done();
    if (status != TL_OK)
        tl_context(diag, "%s", path);
    else if (tl_model_executable(session->model) != NULL)
        session->symbols = tl_jit_symbols_publish(tl_model_executable(session->model));
    return status;
}
