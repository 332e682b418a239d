/* frontend/node/axis_rules.c: which positions of its inputs an operator needs for one position on an axis of its output: the
 * column `axes` of frontend/operators.def. */
#include "frontend/node/axis_rules.h"
#include "frontend/node/graph_questions.h"

static int rank_of(const tl_node *n)
{
    return n->outputs[0]->shape.rank;
}

/* The axis of v that lies on `axis` of `rank`, aligned on the right; -1 where v broadcasts. */
static int aligned(const tl_value *v, int rank, int axis)
{
    int own = v != NULL ? axis - (rank - v->shape.rank) : -1;
    return own >= 0 && v->shape.dims[own].extent != 1 ? own : -1;
}

/* An axis is that of every input which does not broadcast there. */
bool tl_axes_broadcast(const tl_node *n, int axis, int *of)
{
    for (int i = 0; i < n->input_count; i++)
        of[i] = aligned(n->inputs[i], rank_of(n), axis);
    return true;
}

/* Rows: those of the first; columns: those of the second. */
bool tl_axes_product(const tl_node *n, int axis, int *of)
{
    const tl_value *a = n->inputs[0], *b = n->inputs[1];
    int rank = rank_of(n);
    if (a->shape.rank < 2 || b->shape.rank < 2)
        return false;
    of[0] = axis == rank - 1 ? -1 : aligned(a, rank, axis);
    of[1] = axis == rank - 2 ? -1 : aligned(b, rank, axis);
    return true;
}

bool tl_axes_gemm(const tl_node *n, int axis, int *of)
{
    of[0] = axis != 0 ? -1 : tl_attr_int(n, "transA", 0) != 0;
    of[1] = axis != 1 ? -1 : tl_attr_int(n, "transB", 0) == 0;
    if (n->input_count > 2)
        of[2] = aligned(n->inputs[2], 2, axis);
    return true;
}

/* Rows: those of Q; all of K and V. */
bool tl_axes_attention(const tl_node *n, int axis, int *of)
{
    if (axis == 2)
        return false; /* heads side by side */
    of[0] = axis;
    of[1] = of[2] = axis == 0 ? 0 : -1;
    if (n->input_count > 3)
        of[3] = aligned(n->inputs[3], 4, axis == 0 ? 0 : 2);
    return true;
}

/* Of the first input, but for channels. */
bool tl_axes_first(const tl_node *n, int axis, int *of)
{
    for (int i = 0; i < n->input_count; i++)
        of[i] = i == 0 ? axis : -1;
    return axis != 1;
}

/* Softmax and layer normalisation: the axis, or all from it on; scale and bias lie on what is normalised. */
bool tl_axes_normalized(const tl_node *n, int axis, int *of)
{
    int from = (int)tl_attr_int(n, "axis", -1);
    for (int i = 0; i < n->input_count; i++)
        of[i] = i == 0 ? axis : -1;
    return n->op == TL_OP_SOFTMAX ? axis != from : axis < from;
}

bool tl_axes_reduced(const tl_node *n, int axis, int *of)
{
    const int64_t *axes;
    int count = tl_attr_ints(n, "axes", &axes);
    bool keeps = tl_attr_int(n, "keepdims", 1) != 0;
    if (count <= 0)
        return false;
    for (int i = 0; i < n->input_count; i++)
        of[i] = -1;
    for (int own = 0, out = 0; own < n->inputs[0]->shape.rank; own++) {
        bool sums = false;
        for (int k = 0; k < count; k++)
            sums |= axes[k] == own;
        if (!sums && out == axis)
            of[0] = own;
        out += keeps || !sums;
    }
    return of[0] >= 0;
}

bool tl_axes_transposed(const tl_node *n, int axis, int *of)
{
    const int64_t *perm;
    tl_attr_ints(n, "perm", &perm);
    of[0] = (int)perm[axis];
    return true;
}

/* An axis that the Reshape keeps as it is. */
bool tl_axes_reshaped(const tl_node *n, int axis, int *of)
{
    const tl_shape *in = &n->inputs[0]->shape, *out = &n->outputs[0]->shape;
    int64_t before = 1, seen = 1;
    for (int i = 0; i < axis; i++)
        before *= out->dims[i].extent;
    for (int i = 0; i < in->rank; i++) {
        if (seen == before && in->dims[i].extent == out->dims[axis].extent) {
            of[0] = i;
            return true;
        }
        seen *= in->dims[i].extent;
    }
    return false;
}

/* Of all parts. */
bool tl_axes_concatenated(const tl_node *n, int axis, int *of)
{
    for (int i = 0; i < n->input_count; i++)
        of[i] = axis;
    return axis != tl_attr_int(n, "axis", 0);
}

/* Of the index, or of the table. */
bool tl_axes_gathered(const tl_node *n, int axis, int *of)
{
    int at = (int)tl_attr_int(n, "axis", 0), count = n->inputs[1]->shape.rank;
    bool indexed = axis >= at && axis < at + count;
    of[0] = indexed ? -1 : axis < at ? axis : axis - count + 1;
    of[1] = indexed ? axis - at : -1;
    return true;
}

/* An axis that is read whole. */
bool tl_axes_sliced(const tl_node *n, int axis, int *of)
{
    const int64_t *steps;
    of[0] = axis;
    return tl_attr_ints(n, "steps", &steps) > axis && steps[axis] == 1 &&
           n->inputs[0]->shape.dims[axis].extent == n->outputs[0]->shape.dims[axis].extent;
}

/* Nothing is known: a position may need any. */
bool tl_axes_none(const tl_node *n, int axis, int *of)
{
    (void)n;
    (void)axis;
    (void)of;
    return false;
}

bool tl_axis_of_inputs(const tl_node *n, int axis, int *of)
{
    return tl_operators[n->op].axes(n, axis, of);
}
