/* driver/reduce/edit_shapes.c: smaller inputs. Which of them are legal only the model's operators know, and the check asks
 * them: what the model then refuses is no longer bad. */
#include <stdlib.h>
#include <string.h>
#include "driver/reduce/edits.h"

enum { MOST_EXTENTS = 256, ONNX_I64 = 7 };

static Onnx__TensorShapeProto *shape_of(const Onnx__ValueInfoProto *info)
{
    bool has = info->type != NULL && info->type->tensor_type != NULL;
    return has ? info->type->tensor_type->shape : NULL;
}

/* What was declared of tensors that the inputs decide. */
static void forget_shapes(tl_draft *d)
{
    d->graph->n_value_info = 0;
    for (size_t i = 0; i < d->graph->n_output; i++)
        if (shape_of(d->graph->output[i]) != NULL)
            d->graph->output[i]->type->tensor_type->shape = NULL;
}

/* The index-th axis of an input that is longer than 1. */
static Onnx__TensorShapeProto__Dimension *find_axis(const tl_draft *d, int index)
{
    for (size_t i = 0; i < d->graph->n_input; i++) {
        const Onnx__TensorShapeProto *shape = shape_of(d->graph->input[i]);
        for (size_t k = 0; shape != NULL && k < shape->n_dim; k++)
            if (shape->dim[k]->has_dim_value && shape->dim[k]->dim_value > 1 && index-- == 0)
                return shape->dim[k];
    }
    return NULL;
}

int tl_count_axes(const tl_draft *d)
{
    int count = 0;
    while (find_axis(d, count) != NULL)
        count++;
    return count;
}

bool tl_shrink_axes(tl_draft *d, int first, int end, int way)
{
    bool any = false;
    for (int i = end - 1; i >= first; i--) {
        Onnx__TensorShapeProto__Dimension *axis = find_axis(d, i);
        int64_t to = way == 0 ? 1 : axis->dim_value / 2 + axis->dim_value % 2;
        any |= way == 0 || axis->dim_value > 2;
        axis->dim_value = to;
    }
    forget_shapes(d);
    return any;
}

/* ---- the same extent wherever it is ---- */

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int list_extents(const tl_draft *d, int64_t out[MOST_EXTENTS])
{
    Onnx__TensorShapeProto__Dimension *axis;
    int count = 0;
    for (int i = 0; count < MOST_EXTENTS && (axis = find_axis(d, i)) != NULL; i++) {
        bool known = false;
        for (int k = 0; k < count; k++)
            known |= out[k] == axis->dim_value;
        if (!known)
            out[count++] = axis->dim_value;
    }
    qsort(out, (size_t)count, sizeof *out, compare);
    return count;
}

int tl_count_extents(const tl_draft *d)
{
    int64_t extents[MOST_EXTENTS];
    return list_extents(d, extents);
}

/* What an extent becomes: itself unless it is among those that shrink. */
typedef struct {
    int64_t extents[MOST_EXTENTS];
    int first, end, way;
} shrinking;

static int64_t shrunk(const shrinking *s, int64_t extent)
{
    for (int i = s->first; i < s->end; i++)
        if (s->extents[i] == extent)
            return s->way == 0 ? 1 : s->way == 1 ? 2 : extent / 2 + extent % 2;
    return extent;
}

/* The numbers at the beginning of every axis. Lists of i64 are operands, which hold extents: they stay. */
static Onnx__TensorProto *cropped(tl_draft *d, Onnx__TensorProto *t, const shrinking *s)
{
    tl_draft_type from, to;
    if (!tl_draft_weight_type(t, &from) || from.elem_type == ONNX_I64)
        return t;
    const char *numbers = tl_draft_numbers(t, &from);
    to = from;
    to.elements = 1;
    for (int i = 0; i < to.rank; i++) {
        to.dims[i] = shrunk(s, from.dims[i]);
        to.elements *= to.dims[i];
    }
    if (numbers == NULL || to.elements == from.elements || from.elements < to.elements)
        return t;
    Onnx__TensorProto *out = tl_draft_tensor(d, tl_draft_name(t->name), &to);
    size_t size = tl_dtype_size(to.dtype);
    for (int64_t i = 0; i < to.elements; i++) {
        int64_t rest = i, stride = 1, at = 0;
        for (int axis = to.rank - 1; axis >= 0; axis--) {
            at += rest % to.dims[axis] * stride;
            rest /= to.dims[axis];
            stride *= from.dims[axis];
        }
        memcpy(out->raw_data.data + (size_t)i * size, numbers + (size_t)at * size, size);
    }
    return out;
}

bool tl_shrink_extents(tl_draft *d, int first, int end, int way)
{
    shrinking s = { .first = first, .end = end, .way = way % 3 };
    bool any = false;
    list_extents(d, s.extents);
    for (size_t i = 0; i < d->graph->n_input; i++) {
        Onnx__TensorShapeProto *shape = shape_of(d->graph->input[i]);
        for (size_t k = 0; shape != NULL && k < shape->n_dim; k++) {
            int64_t *extent = &shape->dim[k]->dim_value, to = shrunk(&s, *extent);
            any |= to < *extent;
            *extent = to < *extent ? to : *extent;
        }
    }
    for (size_t i = 0; way >= 3 && i < d->graph->n_initializer; i++)
        d->graph->initializer[i] = cropped(d, d->graph->initializer[i], &s);
    forget_shapes(d);
    return any;
}
