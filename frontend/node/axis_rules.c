/* frontend/node/axis_rules.c: the rules of axis_rules.def. */
#include "frontend/node/axis_rules.h"
#include "frontend/node/graph_questions.h"

typedef bool tl_axis_rule(const tl_node *n, int axis, int *of);

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

static bool broadcast(const tl_node *n, int axis, int *of)
{
    for (int i = 0; i < n->input_count; i++)
        of[i] = aligned(n->inputs[i], rank_of(n), axis);
    return true;
}

static bool product(const tl_node *n, int axis, int *of)
{
    const tl_value *a = n->inputs[0], *b = n->inputs[1];
    int rank = rank_of(n);
    if (a->shape.rank < 2 || b->shape.rank < 2)
        return false;
    of[0] = axis == rank - 1 ? -1 : aligned(a, rank, axis);
    of[1] = axis == rank - 2 ? -1 : aligned(b, rank, axis);
    return true;
}

static bool gemm(const tl_node *n, int axis, int *of)
{
    of[0] = axis != 0 ? -1 : tl_attr_int(n, "transA", 0) != 0;
    of[1] = axis != 1 ? -1 : tl_attr_int(n, "transB", 0) == 0;
    if (n->input_count > 2)
        of[2] = aligned(n->inputs[2], 2, axis);
    return true;
}

static bool attention(const tl_node *n, int axis, int *of)
{
    if (axis == 2)
        return false; /* heads side by side */
    of[0] = axis;
    of[1] = of[2] = axis == 0 ? 0 : -1;
    if (n->input_count > 3)
        of[3] = aligned(n->inputs[3], 4, axis == 0 ? 0 : 2);
    return true;
}

static bool first(const tl_node *n, int axis, int *of)
{
    for (int i = 0; i < n->input_count; i++)
        of[i] = i == 0 ? axis : -1;
    return axis != 1;
}

/* Softmax and layer normalisation: the axis, or all from it on; scale and bias lie on what is normalised. */
static bool normalized(const tl_node *n, int axis, int *of)
{
    int from = (int)tl_attr_int(n, "axis", -1);
    for (int i = 0; i < n->input_count; i++)
        of[i] = i == 0 ? axis : -1;
    return n->op == TL_OP_SOFTMAX ? axis != from : axis < from;
}

static bool reduced(const tl_node *n, int axis, int *of)
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

static bool transposed(const tl_node *n, int axis, int *of)
{
    const int64_t *perm;
    tl_attr_ints(n, "perm", &perm);
    of[0] = (int)perm[axis];
    return true;
}

static bool reshaped(const tl_node *n, int axis, int *of)
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

static bool concatenated(const tl_node *n, int axis, int *of)
{
    for (int i = 0; i < n->input_count; i++)
        of[i] = axis;
    return axis != tl_attr_int(n, "axis", 0);
}

static bool gathered(const tl_node *n, int axis, int *of)
{
    int at = (int)tl_attr_int(n, "axis", 0), count = n->inputs[1]->shape.rank;
    bool indexed = axis >= at && axis < at + count;
    of[0] = indexed ? -1 : axis < at ? axis : axis - count + 1;
    of[1] = indexed ? axis - at : -1;
    return true;
}

static bool sliced(const tl_node *n, int axis, int *of)
{
    const int64_t *steps;
    of[0] = axis;
    return tl_attr_ints(n, "steps", &steps) > axis && steps[axis] == 1 &&
           n->inputs[0]->shape.dims[axis].extent == n->outputs[0]->shape.dims[axis].extent;
}

static const struct {
    tl_op op;
    tl_axis_rule *rule;
} rules[] = {
#define AXIS_RULE(op, rule) { TL_OP_##op, rule },
#include "frontend/node/axis_rules.def"
#undef AXIS_RULE
};

bool tl_axis_of_inputs(const tl_node *n, int axis, int *of)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].op == n->op)
            return rules[i].rule(n, axis, of);
    return tl_is_elementwise(n) && broadcast(n, axis, of);
}
