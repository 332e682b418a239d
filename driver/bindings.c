/* driver/bindings.c: tensors for every port of an executable. */
#include "driver/bindings.h"

void tl_bindings_free(tl_bindings *b)
{
    for (int i = 0; i < b->input_count; i++)
        tl_tensor_free(&b->inputs[i]);
    for (int i = 0; i < b->output_count; i++)
        tl_tensor_free(&b->outputs[i]);
    *b = (tl_bindings){ 0 };
}

tl_status tl_bindings_make(tl_arena *arena, const tl_executable *executable,
                           const tl_text_list *given, const char *data, int64_t seed,
                           tl_bindings *out, tl_diag *diag)
{
    const tl_executable_spec *spec = tl_executable_info(executable);
    *out = (tl_bindings){ .input_count = spec->input_count,
                          .output_count = spec->output_count,
                          .inputs = TL_NEW_ARRAY(arena, tl_tensor, spec->input_count),
                          .outputs = TL_NEW_ARRAY(arena, tl_tensor, spec->output_count),
                          .in = TL_NEW_ARRAY(arena, const void *, spec->input_count),
                          .out = TL_NEW_ARRAY(arena, void *, spec->output_count) };
    TL_TRY(tl_session_inputs(spec, given, data, seed, out->inputs, diag));
    for (int i = 0; i < spec->input_count; i++)
        out->in[i] = out->inputs[i].data;
    for (int i = 0; i < spec->output_count; i++) {
        const tl_port *port = &spec->outputs[i];
        TL_TRY(tl_tensor_create(port->dtype, port->rank, port->shape, &out->outputs[i], diag));
        out->out[i] = out->outputs[i].data;
    }
    return TL_OK;
}
