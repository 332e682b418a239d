/* frontend/call/onnx_count_operands.c: operands of which data decide extents, before a node takes them: they meet in one extent.
 *
 *     Add(x, y), x: [12] counted by n, y: [5]     ->  Add(x', y), x' of 5: n is 5, or 1 and broadcasts
 *     Add(x, y), counted by n and by m            ->  room for the larger in both, counted by n, or by m where n is 1
 *     Conv(x, w), x: [1, 12, 8] counted by n      ->  Conv(x', w), x' of as many channels as w: [4, 3, 3] is for */
#include "frontend/call/onnx_counts.h"
#include "frontend/call/onnx_emit.h"
#include "frontend/call/onnx_scope.h"
#include "frontend/node/shape_rules.h"
#include "runtime/base/checked.h"

/* An operand's axis, counted from the last one; -1: it has none there. */
static int axis_from_end(const tl_value *x, int from_end)
{
    return x != NULL ? x->shape.rank - from_end : -1;
}

/* What is known of an axis of operands that meet. */
typedef struct {
    /* An extent that no count is of, and none that broadcasts; -1: none has one. */
    int64_t known;
    /* Else how many there are, and room for the most: where counts differ they are the same when they run, or 1. */
    tl_value *count;
    int64_t most;
    bool differs; /* not all operands are of that extent, or that count, already */
} met_axis;

/* `broadcasts`: an extent of 1 says nothing. */
static met_axis meet(tl_onnx_call *c, const tl_node *n, int from_end, bool broadcasts)
{
    met_axis m = { .known = -1 };
    for (int i = 0; i < n->input_count; i++) {
        const tl_value *x = n->inputs[i];
        int axis = axis_from_end(x, from_end);
        tl_value *own = axis >= 0 ? tl_count_at(c->import, x, axis) : NULL;
        int64_t extent = axis >= 0 ? x->shape.dims[axis].extent : 1;
        if (own == NULL) {
            m.known = axis >= 0 && !(broadcasts && extent == 1) ? extent : m.known;
            continue;
        }
        if (m.count != NULL && (extent != m.most || !tl_counts_are_same(c->import, own, m.count))) {
            m.differs = true;
            c->import->plain_nodes++;
            tl_value *is_one = tl_onnx_emit_with(c, TL_OP_EQUAL, tl_onnx_emit_count(c, m.count), 1);
            m.count = tl_onnx_emit_where(c, is_one, tl_onnx_emit_count(c, own),
                                         tl_onnx_emit_count(c, m.count));
            c->import->plain_nodes--;
        } else {
            m.count = own;
        }
        m.most = tl_max64(m.most, extent);
    }
    m.differs = m.count != NULL && (m.differs || m.known >= 0);
    return m;
}

static void align_axis(tl_onnx_call *c, tl_node *n, int from_end, bool broadcasts)
{
    met_axis m = meet(c, n, from_end, broadcasts);
    for (int i = 0; m.differs && i < n->input_count; i++) {
        tl_value *x = n->inputs[i];
        int axis = axis_from_end(x, from_end);
        if (axis < 0 || tl_count_at(c->import, x, axis) == NULL || x->shape.dims[axis].extent == 0)
            continue;
        x = tl_onnx_emit_spread(c, x, axis, m.known >= 0 ? m.known : m.most);
        if (m.known < 0)
            tl_set_count(c->import, x, axis, m.count);
        tl_node_set_input(n, i, x);
    }
}

/* All axes but that along which parts stand one after another. */
static void align_parts(tl_onnx_call *c, tl_node *n)
{
    int rank = n->inputs[0] != NULL ? n->inputs[0]->shape.rank : 0, axis = tl_axis_of(n, 0, rank);
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i] == NULL || n->inputs[i]->shape.rank != rank)
            return;
    for (int i = 0; i < rank; i++)
        if (i != axis)
            align_axis(c, n, rank - i, false);
}

/* The operand with room for `extent` elements of an axis, of which as many count as before (NULL: all). */
static void give_room(tl_onnx_call *c, tl_node *n, int input, int axis, int64_t extent,
                      tl_value *count)
{
    tl_value *x = n->inputs[input], *const *counts = tl_counts_of(c->import, x);
    if (counts == NULL || counts[axis] == NULL || x->shape.dims[axis].extent == extent)
        return;
    tl_value *y = tl_onnx_emit_first(c, x, axis, extent);
    for (int i = 0; i < x->shape.rank; i++)
        tl_set_count(c->import, y, i, i != axis ? counts[i] : count);
    tl_node_set_input(n, input, y);
}

/* The axis that sums go along: as many in both, whoever counts them. */
static void align_product(tl_onnx_call *c, tl_node *n)
{
    const tl_value *a = n->inputs[0], *b = n->inputs[1];
    if (a->shape.rank < 1 || b->shape.rank < 1)
        return;
    int axes[2] = { a->shape.rank - 1, b->shape.rank > 1 ? b->shape.rank - 2 : 0 };
    tl_value *own = tl_count_at(c->import, a, axes[0]), *other = tl_count_at(c->import, b, axes[1]);
    int64_t extents[2] = { a->shape.dims[axes[0]].extent, b->shape.dims[axes[1]].extent };
    if ((own == NULL && other == NULL) || extents[0] == extents[1])
        return;
    int64_t extent = own == NULL     ? extents[0]
                     : other == NULL ? extents[1]
                                     : tl_max64(extents[0], extents[1]);
    give_room(c, n, 0, axes[0], extent, other != NULL ? own : NULL);
    give_room(c, n, 1, axes[1], extent, own != NULL ? other : NULL);
}

/* Weights say how many channels there are. */
static void align_channels(tl_onnx_call *c, tl_node *n)
{
    tl_value *x = n->inputs[0];
    const tl_value *weights = n->inputs[1];
    tl_value *const *counts = tl_counts_of(c->import, x);
    int64_t channels;
    if (x->shape.rank < 2 || weights->shape.rank < 2 || counts == NULL || counts[1] == NULL ||
        tl_mul_overflows(weights->shape.dims[1].extent, tl_attr_int(n, "group", 1), &channels) ||
        channels < 1)
        return;
    tl_value *y = tl_onnx_emit_first(c, x, 1, channels);
    if (y == x) { /* as many as there are at most */
        c->import->plain_nodes++;
        y = tl_emit1(c, TL_OP_IDENTITY, y);
        c->import->plain_nodes--;
    }
    for (int i = 0; i < x->shape.rank; i++)
        tl_set_count(c->import, y, i, i != 1 ? counts[i] : NULL);
    tl_node_set_input(n, 0, y);
}

void tl_count_operands(tl_onnx_call *c, tl_node *n)
{
    bool counted = false;
    if (c->status != TL_OK || c->import->counts == NULL || c->import->plain_nodes > 0)
        return;
    for (int i = 0; i < n->input_count; i++) {
        const tl_value *v = n->inputs[i];
        if (v != NULL && (!v->dtype_known || !tl_shape_is_static(&v->shape)))
            return;
        counted |= tl_counts_of(c->import, v) != NULL;
    }
    bool is_product = n->op == TL_OP_MATMUL;
    if (!counted || n->input_count < 2)
        return;
    if (n->op == TL_OP_CONCAT)
        align_parts(c, n);
    else if (is_product || tl_is_elementwise(n)) /* of a product: its batches */
        for (int from_end = is_product ? 3 : 1; from_end <= TL_MAX_RANK; from_end++)
            align_axis(c, n, from_end, true);
    if (is_product)
        align_product(c, n);
    if (n->op == TL_OP_CONV)
        align_channels(c, n);
}
