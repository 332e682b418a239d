/* frontend/import/import_constant.c: nodes that are constants. */
#include <math.h>
#include <string.h>
#include "frontend/import/import_rules.h"

static tl_value *numbers(tl_onnx_call *c, tl_dtype dtype, const void *data, int count, bool scalar)
{
    int64_t extent = count;
    tl_shape shape = tl_shape_of(scalar ? 0 : 1, &extent);
    const void *copy = tl_arena_copy(c->arena, data != NULL ? data : "",
                                     (size_t)tl_storage_bytes(dtype, count), 8);
    return tl_graph_constant(c->graph, c->name, dtype, &shape, copy);
}

tl_status tl_import_constant_node(tl_onnx_call *c)
{
    if (c->attr_count != 1)
        return tl_call_bad(c, "it has %d attributes, not the one that holds its value",
                           c->attr_count);
    Onnx__AttributeProto *a = c->attrs[0];
    tl_value *v;
    if (strcmp(a->name, "value") == 0) {
        TL_TRY(tl_import_constant(c, a->t, &v));
    } else if (strcmp(a->name, "value_float") == 0) {
        v = numbers(c, TL_F32, &a->f, 1, true);
    } else if (strcmp(a->name, "value_floats") == 0) {
        v = numbers(c, TL_F32, a->floats, (int)a->n_floats, false);
    } else if (strcmp(a->name, "value_int") == 0) {
        v = numbers(c, TL_I64, &a->i, 1, true);
    } else if (strcmp(a->name, "value_ints") == 0) {
        v = numbers(c, TL_I64, a->ints, (int)a->n_ints, false);
    } else {
        bool sparse = strcmp(a->name, "sparse_value") == 0;
        return tl_call_unsupported(c, sparse ? "a sparse value" : "strings");
    }
    tl_result(c, 0, v);
    return TL_OK;
}

/* The value is kept as a number where it is one (the attribute is a double), else it is expanded. */
tl_status tl_import_constant_of_shape(tl_onnx_call *c)
{
    tl_value *value;
    if (tl_call_has(c, "value"))
        TL_TRY(tl_import_constant(c, tl_call_tensor(c, "value"), &value));
    else
        value = tl_onnx_emit_scalar(c, TL_F32, 0);
    double number;
    if (!tl_constant_number(value, &number))
        return tl_call_bad(c, "attribute 'value' has %lld elements, not 1",
                           (long long)tl_shape_elements(&value->shape));
    tl_dtype dtype = value->dtype;
    if (tl_dtype_is_int(dtype) && fabs(number) >= 9007199254740992.0) {
        tl_shape scalar = tl_shape_of(0, NULL);
        value = tl_graph_constant(c->graph, c->name, dtype, &scalar, value->data);
        tl_value *inputs[] = { value, c->inputs[0] };
        tl_result(c, 0, tl_emitted(c, tl_onnx_emit_node(c, TL_OP_EXPAND, 2, inputs)));
        return TL_OK;
    }
    tl_node *n = tl_onnx_emit_node(c, TL_OP_CONSTANT_OF_SHAPE, 1, c->inputs);
    tl_attr_set_float(c->graph, n, "value", number);
    tl_attr_set_int(c->graph, n, "dtype", dtype);
    tl_result(c, 0, tl_emitted(c, n));
    return TL_OK;
}
