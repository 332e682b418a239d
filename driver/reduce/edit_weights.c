/* driver/reduce/edit_weights.c: weights that nobody has to hand on: numbers that their names give, or one number. */
#include <math.h>
#include "driver/reduce/edits.h"

enum { LEAST_LEVELLED = 16, ATTR_TENSOR = 4, ONNX_I64 = 7 };

/* A weight whose numbers can be read as floats, which are not empty. */
static const void *float_numbers(const Onnx__TensorProto *t, tl_draft_type *type)
{
    if (!tl_draft_weight_type(t, type) || type->dtype == TL_DTYPE_COUNT ||
        !tl_dtype_is_float(type->dtype))
        return NULL;
    return tl_draft_numbers(t, type);
}

static int find_weight(const tl_draft *d, int index)
{
    tl_draft_type type;
    for (size_t i = 0; i < d->graph->n_initializer; i++)
        if (float_numbers(d->graph->initializer[i], &type) != NULL && index-- == 0)
            return (int)i;
    return -1;
}

int tl_count_weights(const tl_draft *d)
{
    tl_draft_type type;
    int count = 0;
    for (size_t i = 0; i < d->graph->n_initializer; i++)
        count += float_numbers(d->graph->initializer[i], &type) != NULL;
    return count;
}

/* Over the numbers that are finite. */
static void measure(const void *numbers, const tl_draft_type *type, double *mean, double *deviation,
                    bool *positive)
{
    double sum = 0, squares = 0, count = 0;
    *positive = true;
    for (int64_t i = 0; i < type->elements; i++) {
        double x = tl_number_load(type->dtype, numbers, (size_t)i).f;
        if (!isfinite(x))
            continue;
        sum += x;
        squares += x * x;
        count++;
        *positive &= x >= 0;
    }
    *mean = count > 0 ? sum / count : 0;
    double variance = count > 0 ? squares / count - *mean * *mean : 0;
    *deviation = variance > 0 ? sqrt(variance) : 0;
}

bool tl_seed_weights(tl_draft *d, int first, int end, int way)
{
    (void)way;
    for (int i = first; i < end; i++) {
        Onnx__TensorProto **at = &d->graph->initializer[find_weight(d, i)];
        tl_draft_type type;
        double mean, deviation;
        bool positive;
        measure(float_numbers(*at, &type), &type, &mean, &deviation, &positive);
        *at = tl_draft_tensor(d, (*at)->name, &type);
        tl_draft_fill(*at, &type, mean, deviation, positive);
    }
    return true;
}

/* NAME = ConstantOfShape(NAME/shape), whose attribute is the mean of the numbers. */
static void level(tl_draft *d, int index)
{
    Onnx__GraphProto *g = d->graph;
    Onnx__TensorProto *weight = g->initializer[index];
    tl_draft_type type, shape = { .elem_type = ONNX_I64, .dtype = TL_I64, .rank = 1 };
    double mean, deviation;
    bool positive;
    measure(float_numbers(weight, &type), &type, &mean, &deviation, &positive);
    const char *name = tl_arena_format(d->arena, "%s/shape", weight->name);
    shape.dims[0] = shape.elements = type.rank;
    Onnx__TensorProto *dims = tl_draft_tensor(d, name, &shape);
    for (int i = 0; i < type.rank; i++)
        tl_number_store(TL_I64, dims->raw_data.data, (size_t)i, (tl_number){ .i = type.dims[i] });
    g->initializer[index] = dims;

    tl_draft_type one = { .elem_type = type.elem_type, .dtype = type.dtype, .rank = 1 };
    one.dims[0] = one.elements = 1;
    Onnx__AttributeProto *value = TL_NEW(d->arena, Onnx__AttributeProto);
    onnx__attribute_proto__init(value);
    value->name = tl_arena_strdup(d->arena, "value");
    value->has_type = true;
    value->type = ATTR_TENSOR;
    value->t = tl_draft_tensor(d, "", &one);
    tl_number_store(type.dtype, value->t->raw_data.data, 0,
                    (tl_number){ .f = mean != 0 ? mean : deviation });

    Onnx__NodeProto *node = TL_NEW(d->arena, Onnx__NodeProto);
    onnx__node_proto__init(node);
    node->op_type = tl_arena_strdup(d->arena, "ConstantOfShape");
    node->name = weight->name;
    TL_DRAFT_APPEND(d, node->input, node->n_input, dims->name);
    TL_DRAFT_APPEND(d, node->output, node->n_output, weight->name);
    TL_DRAFT_APPEND(d, node->attribute, node->n_attribute, value);
    TL_DRAFT_APPEND(d, g->node, g->n_node, node);
    for (size_t i = g->n_node - 1; i > 0; i--)
        g->node[i] = g->node[i - 1];
    g->node[0] = node;
}

bool tl_level_weights(tl_draft *d, int first, int end, int way)
{
    bool any = false;
    (void)way;
    for (int i = end - 1; i >= first; i--) {
        int index = find_weight(d, i);
        tl_draft_type type;
        if (float_numbers(d->graph->initializer[index], &type) != NULL &&
            type.elements >= LEAST_LEVELLED) {
            level(d, index);
            any = true;
        }
    }
    return any;
}
