/* frontend/import/import_slice.c: operators that take a part of a tensor or add to it, and those that speak of shapes. */
#include <string.h>
#include "frontend/import/import_rules.h"

tl_status tl_import_slice_old(tl_onnx_call *c)
{
    if (!tl_call_has(c, "starts") || !tl_call_has(c, "ends"))
        return tl_call_bad(c, "attributes 'starts' and 'ends' are required");
    return tl_import_as(c, TL_OP_SLICE, 1);
}

/* All outputs of one node; an output that nobody wants stays out, but counts. */
static tl_status split(tl_onnx_call *c, int inputs)
{
    tl_graph *g = c->graph;
    tl_value **outputs = TL_NEW_ARRAY(c->arena, tl_value *, c->output_count);
    for (int i = 0; i < c->output_count; i++)
        if (tl_call_wants(c, i))
            outputs[i] = tl_graph_value(g, c->output_names[i], TL_DTYPE_COUNT, NULL);
    int count = c->input_count < inputs ? c->input_count : inputs;
    tl_node *n = tl_graph_node(g, TL_OP_SPLIT, c->name, count, c->inputs, c->output_count, outputs);
    tl_copy_attributes(c, n);
    tl_emitted(c, n);
    for (int i = 0; i < c->output_count; i++)
        if (outputs[i] != NULL)
            tl_result(c, i, outputs[i]);
    return TL_OK;
}

tl_status tl_import_split_old(tl_onnx_call *c)
{
    if (c->output_count == 0)
        return tl_call_bad(c, "it has no outputs");
    if (c->input_count == 2)
        return tl_call_unsupported(c, "sizes as an input of opset 1");
    return split(c, 1);
}

tl_status tl_import_split(tl_onnx_call *c)
{
    int64_t parts = tl_call_int(c, "num_outputs", c->output_count);
    if (c->output_count == 0 || parts != c->output_count)
        return tl_call_bad(c, "it has %d outputs and num_outputs is %lld", c->output_count,
                           (long long)parts);
    return split(c, 2);
}

static tl_status check_pad_mode(tl_onnx_call *c)
{
    static const struct {
        const char *mode;
        int since;
    } modes[] = { { "constant", 1 }, { "reflect", 1 }, { "edge", 1 }, { "wrap", 19 } };
    const char *mode = tl_call_string(c, "mode", "constant");
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(modes[i].mode, mode) == 0 && c->version >= modes[i].since)
            return TL_OK;
    return tl_call_bad(c, "mode '%.40s' does not exist in opset %d", mode, c->version);
}

tl_status tl_import_pad(tl_onnx_call *c)
{
    TL_TRY(check_pad_mode(c));
    return tl_import_as(c, TL_OP_PAD, 4);
}

tl_status tl_import_pad_old(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    const int64_t *pads;
    int count = tl_call_ints(c, c->version == 1 ? "paddings" : "pads", &pads);
    TL_TRY(check_pad_mode(c));
    TL_TRY(tl_need_dtype(c, x));
    if (count < 0)
        return tl_call_bad(c, "attribute 'pads' is required");
    tl_value *inputs[] = { x, NULL,
                           tl_onnx_emit_scalar(c, x->dtype, tl_call_float(c, "value", 0)) };
    tl_node *n = tl_onnx_emit_node(c, TL_OP_PAD, 3, inputs);
    tl_attr_set_ints(c->graph, n, "pads", pads, count);
    tl_attr_set_string(c->graph, n, "mode", tl_call_string(c, "mode", "constant"));
    tl_result(c, 0, tl_emitted(c, n));
    return TL_OK;
}

/* Gather and GatherElements. */
tl_status tl_import_gather(tl_onnx_call *c)
{
    tl_node *n = tl_onnx_emit_node(c, (tl_op)c->rule->op, 2, c->inputs);
    tl_attr_set_int(c->graph, n, "axis", tl_call_int(c, "axis", 0));
    tl_result(c, 0, tl_emitted(c, n));
    return TL_OK;
}

tl_status tl_import_gather_nd(tl_onnx_call *c)
{
    tl_node *n = tl_onnx_emit_node(c, TL_OP_GATHER_ND, 2, c->inputs);
    tl_attr_set_int(c->graph, n, "batch_dims", tl_call_int(c, "batch_dims", 0));
    tl_result(c, 0, tl_emitted(c, n));
    return TL_OK;
}

tl_status tl_import_size(tl_onnx_call *c)
{
    TL_TRY(tl_need_shape(c, c->inputs[0]));
    tl_value *size = tl_onnx_emit_scalar(c, TL_I64, 0);
    *(int64_t *)(uintptr_t)size->data = tl_shape_elements(&c->inputs[0]->shape);
    tl_result(c, 0, size);
    return TL_OK;
}
