/* frontend/graph/assign_blocks.c: how values lie in memory on a CPU whose vectors have L lanes of f32.
 *
 * Values that 2-D convolutions make get their channels in blocks, [N, C/B, H, W, B]; pools, global pools, reductions
 * over space, elementwise operators and concatenations over channels hand the block on. B is L; where only L/2 divides
 * C it is C, when that is more than a vector, or L/2 (which long rows of long sums do without: their vectors go along
 * the rows); where neither does the value stays plain: a block is always full. What is concatenated along channels of
 * several images has blocks first, [C/B, N, H, W, B], so that a part is one piece (assign_windows.c). A value that a
 * convolution with padding reads gets that padding as a halo of zeros around H and W, the largest of its readers',
 * which its producer writes on every run. Graph inputs, outputs, constants and what goes into or comes out of a loop or
 * a choice stay plain: the first convolution copies its input into a padded local. So do values that the form wants
 * plain (tl_graph_set_form). Kernels read any layout, so nothing is converted. */
#include "frontend/value_notes.h"
#include "frontend/frontend.h"
#include "frontend/graph/graph_passes.h"
#include "frontend/node/graph_questions.h"
#include "frontend/operators.h"
#include "runtime/base/checked.h"

enum {
    LEAST_ROWS =
        28, /* of a value that is computed by bands: lower ones stay in cache as they are */
    LEAST_STEPS =
        128, /* of a sum whose rows are worth another layout than their readers would have */
};

static bool is_fixed(const tl_value *v)
{
    return v->is_input || v->is_output || v->data != NULL || v->shape.rank != 4 ||
           tl_value_crosses_regions(v);
}

static int64_t block_of(const tl_value *v)
{
    return v->shape.rank == 4 ? tl_layout_block(&v->layout, 1) : 1;
}

static bool keeps_channels(const tl_node *n)
{
    const tl_value *x = n->inputs[0], *y = n->outputs[0];
    return x->shape.rank == 4 && y->shape.rank == 4 &&
           x->shape.dims[0].extent == y->shape.dims[0].extent &&
           x->shape.dims[1].extent == y->shape.dims[1].extent;
}

/* --- the column `block` of frontend/operators.def ------------------------------------------------------------------- */

int64_t tl_block_none(const tl_node *n, int lanes)
{
    (void)n;
    (void)lanes;
    return 1;
}

/* Whether the convolution makes long rows of long sums out of plain ones: vectors along a row cost it nothing but a few
 * unaligned loads. */
static bool makes_long_rows(const tl_node *n, int lanes)
{
    const int64_t *strides;
    const tl_shape *y = &n->outputs[0]->shape, *w = &n->inputs[1]->shape;
    return block_of(n->inputs[0]) == 1 && y->rank == 4 &&
           tl_attr_ints(n, "strides", &strides) == 2 && strides[1] == 1 &&
           y->dims[3].extent >= 2 * lanes && w->dims[0].extent > 0 &&
           tl_shape_elements(w) / w->dims[0].extent >= LEAST_STEPS;
}

/* A convolution's own. Half a vector of channels is none where rows have whole ones. */
int64_t tl_block_of_channels(const tl_node *n, int lanes)
{
    int64_t channels = n->outputs[0]->shape.dims[1].extent;
    if (lanes >= 4 && channels % lanes == 0)
        return lanes;
    if (lanes >= 8 && channels == lanes / 2 && makes_long_rows(n, lanes))
        return 1;
    if (lanes >= 8 && channels % (lanes / 2) == 0)
        return channels > lanes ? channels : lanes / 2;
    return 1;
}

/* The operand's, whose channels are those of the result. */
int64_t tl_block_kept(const tl_node *n, int lanes)
{
    (void)lanes;
    return block_of(n->inputs[0]);
}

/* The same where that is so. */
int64_t tl_block_with_channels(const tl_node *n, int lanes)
{
    return keeps_channels(n) ? tl_block_kept(n, lanes) : 1;
}

/* The largest of those operands that have the result's channels. */
int64_t tl_block_shared(const tl_node *n, int lanes)
{
    const tl_value *y = n->outputs[0];
    int64_t block = 1;
    (void)lanes;
    for (int i = 0; i < n->input_count; i++) {
        const tl_value *v = n->inputs[i];
        if (v != NULL && v->shape.rank == 4 && v->shape.dims[1].extent == y->shape.dims[1].extent)
            block = tl_max64(block, block_of(v));
    }
    return block;
}

/* The largest block among the parts of a concatenation, when all parts are whole blocks of it. Plain parts
 * are brought into it by the copy. */
int64_t tl_block_of_parts(const tl_node *n, int lanes)
{
    int64_t block = 1;
    (void)lanes;
    for (int i = 0; i < n->input_count; i++)
        block = tl_max64(block, block_of(n->inputs[i]));
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i]->shape.rank != 4 || n->inputs[i]->shape.dims[1].extent % block != 0)
            return 1;
    return block;
}

/* The input's block, when the part is of whole blocks of it. */
int64_t tl_block_of_slice(const tl_node *n, int lanes)
{
    const int64_t *starts, *steps;
    const tl_value *x = n->inputs[0], *y = n->outputs[0];
    int64_t block = block_of(x);
    bool has_attributes = tl_attr_ints(n, "starts", &starts) == y->shape.rank &&
                          tl_attr_ints(n, "steps", &steps) == y->shape.rank;
    (void)lanes;
    return has_attributes && y->shape.rank == 4 && steps[1] == 1 && starts[1] % block == 0 &&
                   y->shape.dims[1].extent % block == 0
               ? block
               : 1;
}

/* --- layouts -------------------------------------------------------------------------------------------------------- */

static void set_block(tl_value *v, int64_t block)
{
    if (block == 1 || tl_notes_of(v)->is_plain)
        return;
    v->layout = tl_layout_plain();
    v->layout.plain = false;
    v->layout.block[1] = block;
}

/* Of several images a part of a concatenation is one piece when blocks of channels come first. */
static void put_channels_first(const tl_node *concat)
{
    const tl_value *y = concat->outputs[0];
    bool is_alike = y->shape.rank == 4 && tl_attr_int(concat, "axis", 0) == 1 &&
                    y->shape.dims[0].extent > 1 && block_of(y) > 1 && !is_fixed(y);
    for (int i = 0; i < concat->input_count && is_alike; i++)
        is_alike = !is_fixed(concat->inputs[i]) && block_of(concat->inputs[i]) == block_of(y);
    for (int i = is_alike ? -1 : concat->input_count; i < concat->input_count; i++) {
        tl_value *v = i < 0 ? concat->outputs[0] : concat->inputs[i];
        v->layout.order[0] = 1;
        v->layout.order[1] = 0;
    }
}

static void set_halo(const tl_node *conv)
{
    tl_value *x = conv->inputs[0];
    const int64_t *pads;
    if (is_fixed(x) || tl_attr_ints(conv, "pads", &pads) != 4)
        return;
    for (int i = 0; i < 2; i++) {
        if (pads[i] == 0 && pads[2 + i] == 0)
            continue;
        if (x->layout.plain) {
            x->layout = tl_layout_plain();
            x->layout.plain = false;
        }
        int64_t *before = &x->layout.halo_before[2 + i], *after = &x->layout.halo_after[2 + i];
        *before = tl_max64(*before, pads[i]);
        *after = tl_max64(*after, pads[2 + i]);
    }
}

/* --- values that are computed by bands ---------------------------------------------------------------------------- */

enum { MOST_CHAIN = 8 };

/* The values from a convolution's result to `v`, elementwise all the way; nobody else reads one of them. */
typedef struct {
    tl_node *conv;
    int count, reads; /* reads: by nodes of the chain */
    tl_value *values[MOST_CHAIN];
} chain;

static bool collect_chain(tl_value *v, chain *c)
{
    for (int i = 0; i < c->count; i++)
        if (c->values[i] == v)
            return true;
    tl_node *n = v->producer;
    if (n == NULL || c->count == MOST_CHAIN || v->is_output || n->output_count != 1)
        return false;
    c->values[c->count++] = v;
    if (n->op == TL_OP_CONV) {
        c->conv = n;
        return true;
    }
    if (!tl_is_injective(n) || !keeps_channels(n))
        return false;
    for (int i = 0; i < n->input_count; i++) {
        tl_value *x = n->inputs[i];
        if (x == NULL || (x->data != NULL && tl_shape_elements(&x->shape) == 1))
            continue;
        if (!tl_shape_equal(&x->shape, &v->shape) || !collect_chain(x, c))
            return false;
        c->reads++;
    }
    return true;
}

static bool is_pointwise(const tl_node *n)
{
    const tl_shape *w = &n->inputs[1]->shape;
    return tl_attr_int(n, "group", 1) == 1 && w->rank == 4 && w->dims[2].extent == 1 &&
           w->dims[3].extent == 1 && tl_attr_all_are(n, "strides", 1) &&
           tl_attr_all_are(n, "pads", 0);
}

static bool is_depthwise(const tl_node *n)
{
    const tl_shape *x = &n->inputs[0]->shape, *w = &n->inputs[1]->shape;
    return x->rank == 4 && tl_attr_int(n, "group", 1) == x->dims[1].extent &&
           w->dims[1].extent == 1 && w->dims[0].extent == x->dims[1].extent &&
           tl_attr_all_are(n, "dilations", 1);
}

/* Whether the convolution's kernel can compute its input by bands, nobody else reads it, and there is more than half of L2
 * of it, so that it does not stay there from one kernel to the next. `c` gets the chain that makes it. */
static bool can_keep_inside(const tl_target *target, const tl_node *reader, chain *c)
{
    tl_value *t = reader->inputs[0];
    *c = (chain){ 0 };
    if (t->layout.plain || t->dtype != TL_F32 || !collect_chain(t, c) || c->conv == NULL)
        return false;
    int users = 0;
    bool is_cut = false;
    for (int i = 0; i < c->count; i++) {
        users += tl_graph_users(c->values[i]);
        is_cut |= tl_notes_of(c->values[i])->is_cut;
    }
    return !is_cut && users == c->reads + 1 && block_of(t) == tl_target_lanes(target, TL_F32) &&
           c->conv->inputs[1]->data != NULL && reader->inputs[1]->data != NULL &&
           t->shape.dims[2].extent >= LEAST_ROWS &&
           2 * (int64_t)sizeof(float) * tl_shape_elements(&t->shape) > target->l2_bytes;
}

static void mark_inside(tl_graph *g, const chain *c, const tl_layout *layout)
{
    const tl_layout kept = *layout; /* may be that of a value of the chain */
    for (int i = 0; i < c->count; i++)
        tl_notes_make(g, c->values[i])->is_inside = true;
    c->conv->outputs[0]->layout = kept;
}

/* A pointwise convolution in front of a depthwise one makes several times the channels it reads. Where that many do not
 * stay in L2 from the one kernel to the next, the depthwise convolution's kernel makes them itself, a band of rows at a
 * time. For the halo it computes the pointwise convolution of a halo of its input, and takes zeros instead. */
static void keep_inside(tl_graph *g, const tl_target *target, tl_node *depthwise)
{
    tl_value *t = depthwise->inputs[0];
    chain c;
    if (!is_depthwise(depthwise) || !can_keep_inside(target, depthwise, &c) ||
        !is_pointwise(c.conv))
        return;
    tl_value *x = c.conv->inputs[0];
    if (is_fixed(x) || x->layout.plain ||
        tl_shape_elements(&t->shape) < tl_shape_elements(&x->shape))
        return;
    for (int axis = 2; axis < 4; axis++) {
        x->layout.halo_before[axis] =
            tl_max64(x->layout.halo_before[axis], t->layout.halo_before[axis]);
        x->layout.halo_after[axis] =
            tl_max64(x->layout.halo_after[axis], t->layout.halo_after[axis]);
    }
    mark_inside(g, &c, &t->layout);
}

/* So does the pointwise convolution behind a depthwise one with what that makes, where it is no part of such a kernel itself. */
static void keep_sum_inside(tl_graph *g, const tl_target *target, tl_node *pointwise)
{
    chain c;
    const tl_value *y = pointwise->outputs[0];
    if (is_pointwise(pointwise) && !y->layout.plain && !tl_notes_of(y)->is_inside &&
        can_keep_inside(target, pointwise, &c) && is_depthwise(c.conv))
        mark_inside(g, &c, &pointwise->inputs[0]->layout);
}

/* Forgets what a form before this one has led to, in the windows too. */
tl_status tl_assign_blocks(tl_graph *g, const tl_target *target, tl_diag *diag)
{
    (void)diag;
    for (int i = 0; i < g->value_count; i++) {
        tl_value *v = g->values[i];
        v->layout = tl_layout_plain();
        tl_notes_make(g, v)->is_inside = tl_notes_make(g, v)->is_view = false;
        v->whole = NULL;
        v->whole_start = 0;
    }
    if (tl_target_is_gpu(target))
        return TL_OK;

    int lanes = tl_target_lanes(target, TL_F32);
    for (int i = 0; i < g->node_count; i++) {
        const tl_node *n = g->nodes[i];
        tl_value *y = n->output_count == 1 ? n->outputs[0] : NULL;
        if (y == NULL || is_fixed(y))
            continue;
        set_block(y, tl_operators[n->op].block(n, lanes));
    }
    for (int i = 0; i < g->node_count; i++)
        if (g->nodes[i]->op == TL_OP_CONCAT)
            put_channels_first(g->nodes[i]);
    for (int i = 0; i < g->node_count; i++)
        if (g->nodes[i]->op == TL_OP_CONV)
            set_halo(g->nodes[i]);
    for (int i = 0; i < g->node_count; i++)
        if (g->nodes[i]->op == TL_OP_CONV)
            keep_inside(g, target, g->nodes[i]);
    for (int i = 0; i < g->node_count; i++)
        if (g->nodes[i]->op == TL_OP_CONV)
            keep_sum_inside(g, target, g->nodes[i]);
    return TL_OK;
}
