/* frontend/graph/remove_identities.c: nodes whose output is their input, or can be had from further back.
 *
 *     Identity, Cast to the same dtype, Reshape and Expand to the same shape, Transpose that moves no axis,
 *     whole Slice, Concat of one part, Pad by nothing                                       y -> x
 *     Add 0, Sub 0, Mul 1, Div 1, And true, Or false (constant, no broadcast of x)          y -> x
 *     Reshape(Reshape(x)) -> Reshape(x)            Transpose(Transpose(x)) -> Transpose(x)
 *     Gather of 0, 1, 2, ...; Transpose that only moves axes of extent 1  ->  Reshape
 *     empty parts of a Concat go */
#include "frontend/graph/graph_passes.h"
#include <string.h>
#include "frontend/node/graph_questions.h"

static bool moves_no_axis(const tl_node *n)
{
    const int64_t *perm;
    int count = tl_attr_ints(n, "perm", &perm), last = -1;
    for (int i = 0; i < count; i++) { /* axes of extent 1 may go anywhere */
        if (n->inputs[0]->shape.dims[perm[i]].extent == 1)
            continue;
        if ((int)perm[i] < last)
            return false;
        last = (int)perm[i];
    }
    return tl_same_shape(n->inputs[0], n->outputs[0]);
}

static bool all_ints(const tl_node *n, const char *name, int64_t value)
{
    const int64_t *ints;
    int count = tl_attr_ints(n, name, &ints);
    for (int i = 0; i < count; i++)
        if (ints[i] != value)
            return false;
    return count >= 0;
}

static bool is_constant_of(const tl_value *v, int64_t number)
{
    if (v->data == NULL || tl_shape_elements(&v->shape) > 65536)
        return false;
    for (int64_t i = 0; i < tl_shape_elements(&v->shape); i++) {
        tl_number x = tl_number_load(v->dtype, v->data, (size_t)i);
        if (tl_dtype_is_float(v->dtype) ? x.f != (double)number : x.i != number)
            return false;
    }
    return true;
}

/* The input that a two-operand node leaves as it is; NULL when there is none. */
static tl_value *neutral(const tl_node *n, int64_t number, bool commutes)
{
    const tl_value *y = n->outputs[0];
    for (int i = 0; i < (commutes ? 2 : 1); i++)
        if (is_constant_of(n->inputs[1 - i], number) && tl_same_shape(n->inputs[i], y) &&
            n->inputs[i]->dtype == y->dtype)
            return n->inputs[i];
    return NULL;
}

/* --- the column `equals` of frontend/operators.def ------------------------------------------------------------------ */

tl_value *tl_equals_none(const tl_node *n)
{
    (void)n;
    return NULL;
}

tl_value *tl_equals_operand(const tl_node *n)
{
    return n->inputs[0];
}

tl_value *tl_equals_same_dtype(const tl_node *n)
{
    return n->inputs[0]->dtype == n->outputs[0]->dtype ? n->inputs[0] : NULL;
}

tl_value *tl_equals_same_shape(const tl_node *n)
{
    return tl_same_shape(n->inputs[0], n->outputs[0]) ? n->inputs[0] : NULL;
}

tl_value *tl_equals_unmoved(const tl_node *n)
{
    return moves_no_axis(n) ? n->inputs[0] : NULL;
}

tl_value *tl_equals_whole(const tl_node *n)
{
    return all_ints(n, "steps", 1) ? tl_equals_same_shape(n) : NULL;
}

tl_value *tl_equals_unpadded(const tl_node *n)
{
    return all_ints(n, "pads", 0) ? n->inputs[0] : NULL;
}

tl_value *tl_equals_sole_part(const tl_node *n)
{
    return n->input_count == 1 ? n->inputs[0] : NULL;
}

tl_value *tl_equals_plus_0(const tl_node *n)
{
    return neutral(n, 0, true);
}

tl_value *tl_equals_minus_0(const tl_node *n)
{
    return neutral(n, 0, false);
}

tl_value *tl_equals_times_1(const tl_node *n)
{
    return neutral(n, 1, true);
}

tl_value *tl_equals_over_1(const tl_node *n)
{
    return neutral(n, 1, false);
}

/* --- the pass ------------------------------------------------------------------------------------------------------- */

static void drop_empty_parts(tl_graph *g, tl_node *n)
{
    int axis = (int)tl_attr_int(n, "axis", 0), kept = 0;
    if (n->op != TL_OP_CONCAT || n->outputs[0]->shape.dims[axis].extent == 0)
        return;
    tl_value **parts = TL_NEW_ARRAY(g->arena, tl_value *, n->input_count);
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i]->shape.dims[axis].extent > 0)
            parts[kept++] = n->inputs[i];
    if (kept < n->input_count)
        tl_node_set_inputs(g, n, kept, parts);
}

/* Reads past an equal operator before it. */
static void join_with_producer(tl_graph *g, tl_node *n)
{
    tl_node *before = n->input_count > 0 ? tl_producer(n->inputs[0], n->op) : NULL;
    if (before == NULL)
        return;
    if (n->op == TL_OP_RESHAPE)
        tl_node_set_input(n, 0, before->inputs[0]);
    if (n->op != TL_OP_TRANSPOSE)
        return;
    const int64_t *first, *second;
    int64_t perm[TL_MAX_RANK];
    int count = tl_attr_ints(n, "perm", &second);
    tl_attr_ints(before, "perm", &first);
    for (int i = 0; i < count; i++)
        perm[i] = first[second[i]];
    tl_node_set_input(n, 0, before->inputs[0]);
    tl_attr_set_ints(g, n, "perm", perm, count);
}

/* A Transpose that only moves axes of extent 1 is a Reshape. */
static void transpose_to_reshape(tl_graph *g, tl_node *n)
{
    if (n->op != TL_OP_TRANSPOSE)
        return;
    const int64_t *perm;
    int count = tl_attr_ints(n, "perm", &perm), last = -1;
    int64_t extents[TL_MAX_RANK];
    for (int i = 0; i < count; i++) {
        extents[i] = n->outputs[0]->shape.dims[i].extent;
        if (extents[i] == 1)
            continue;
        if ((int)perm[i] < last)
            return;
        last = (int)perm[i];
    }
    n->op = TL_OP_RESHAPE;
    n->attr_count = 0;
    tl_attr_set_ints(g, n, "shape", extents, count);
}

/* A Gather of all positions in order is a Reshape. */
static void gather_to_reshape(tl_graph *g, tl_node *n)
{
    const tl_value *indices = n->op == TL_OP_GATHER ? n->inputs[1] : NULL;
    int64_t count = indices != NULL ? tl_shape_elements(&indices->shape) : -1;
    if (count < 0 || indices->data == NULL ||
        count != n->inputs[0]->shape.dims[tl_attr_int(n, "axis", 0)].extent)
        return;
    for (int64_t i = 0; i < count; i++)
        if (tl_number_load(indices->dtype, indices->data, (size_t)i).i != i)
            return;
    int64_t extents[TL_MAX_RANK];
    int rank = n->outputs[0]->shape.rank;
    for (int i = 0; i < rank; i++)
        extents[i] = n->outputs[0]->shape.dims[i].extent;
    n->op = TL_OP_RESHAPE;
    tl_node_keep_inputs(n, 1);
    n->attr_count = 0;
    tl_attr_set_ints(g, n, "shape", extents, rank);
}

tl_status tl_remove_identities(tl_graph *g, tl_diag *diag)
{
    (void)diag;
    for (int i = 0; i < g->node_count; i++) {
        tl_node *n = g->nodes[i];
        if (n->dead || n->output_count != 1 || n->outputs[0] == NULL)
            continue;
        transpose_to_reshape(g, n);
        gather_to_reshape(g, n);
        join_with_producer(g, n);
        drop_empty_parts(g, n);
        tl_value *x = tl_operators[n->op].equals(n), *y = n->outputs[0];
        if (x == NULL || (y->is_output && (x->is_input || x->is_output || x->data != NULL)))
            continue; /* a copy to a graph output stays an Identity */
        tl_node_kill(n);
        y->producer = NULL;
        tl_graph_replace_value(g, y, x);
    }
    return TL_OK;
}
