/* frontend/lower/lower_conv.c: direct convolution of 1 to 3 spatial axes, with groups, strides and dilations.
 *
 *     acc[n, o, h, w] = sum over c, kh, kw of  padded[n, g*Cg + c, h*sh + kh*dh, w*sw + kw*dw] * w[o, c, kh, kw]
 *
 * where g = o // Og. Spatial iters follow the physical order of the output ("n co oh ow", and "ci" when channels
 * are blocked); reduce iters are "rc kh kw", and "rl" when the input's channels are blocked. A depthwise
 * convolution (one input channel a group) has no rc.
 *
 * The lowering channels_last makes the sums of all channels of a place side by side, acc[n, h, w, g, o]. Lanes go along the
 * channels of a group then: where groups end within a block of the result, and where lanes along a row of a plain result
 * would gather one element each (of an input in blocks, or in steps) or be more than the row has places. A depthwise
 * convolution's sums lie as the blocks of its input do then. A transform of frames (one input channel, a long kernel, a
 * long step) is a product of overlapping rows:
 *
 *     acc[n, w, o] = sum over k of  x[n, w*step + k] * w[o, k]
 *
 * The lowering planes makes the sums of small groups plain, acc[n, o, h, w], of an input or for a result in blocks, or both:
 * lanes go along a row; an input in blocks is copied out of them before, and whole sums are put into blocks. */
#include "frontend/lower/lower_private.h"
#include <string.h>
#include "frontend/value_notes.h"

enum { MAX_SPATIAL = 3 };
static const char *const output_axes[MAX_SPATIAL] = { "od", "oh", "ow" };
static const char *const kernel_axes[MAX_SPATIAL] = { "kd", "kh", "kw" };

void tl_lower_name_window_axes(tl_lower *l, int rank)
{
    const char *names[TL_MAX_RANK] = { "n", "co" };
    for (int i = 2; i < rank; i++)
        names[i] = output_axes[MAX_SPATIAL - (rank - i)];
    tl_lower_name_axes(l, rank, names, "ci");
}

/* The input channel inside its group: one reduce iter, or a block and a lane when the input is blocked and
 * groups do not cut through blocks. */
typedef struct {
    const tl_expr *channel, *lane;
    int64_t block;
} channel_iters;

static channel_iters begin_channel(tl_block_nest *nest, int64_t per_group, const tl_layout *layout)
{
    tl_arena *arena = tl_lower_arena(nest->lower);
    channel_iters c = { .channel = tl_int(arena, 0), .block = 1 };
    if (per_group == 1)
        return c;
    int64_t block = tl_layout_block(layout, 1);
    c.block = per_group % block == 0 ? block : 1;
    c.channel = tl_nest_iter(nest, TL_ITER_REDUCE, "rc", per_group / c.block);
    return c;
}

static void end_channel(tl_block_nest *nest, channel_iters *c)
{
    tl_arena *arena = tl_lower_arena(nest->lower);
    if (c->block == 1)
        return;
    c->lane = tl_nest_iter(nest, TL_ITER_REDUCE, "rl", c->block);
    c->channel = tl_add(arena, tl_muli(arena, c->channel, c->block), c->lane);
}

int64_t tl_lower_outputs_of_group(const tl_node *n)
{
    return n->inputs[1]->shape.dims[0].extent / tl_attr_int(n, "group", 1);
}

/* The sums of a place side by side, group after group; of one channel a group, as the input's blocks. */
static tl_layout channels_last(const tl_node *n)
{
    tl_layout layout = tl_layout_plain();
    const tl_layout *from = &n->inputs[0]->layout;
    int rank = n->outputs[0]->shape.rank;
    layout.plain = false;
    if (tl_lower_outputs_of_group(n) == 1) {
        layout.block[1] = tl_layout_block(from, 1);
        return layout;
    }
    for (int i = 1; i + 1 < rank; i++)
        layout.order[i] = i + 1;
    layout.order[rank - 1] = 1;
    if (tl_attr_int(n, "group", 1) > 1)
        layout.block[1] = tl_lower_outputs_of_group(n);
    return layout;
}

bool tl_lowers_channels_last(const tl_node *n)
{
    if (n->op != TL_OP_CONV || tl_notes_of(n->outputs[0])->is_inside)
        return false;
    bool has_blocks = tl_layout_block(&n->outputs[0]->layout, 1) > 1;
    if (tl_lower_outputs_of_group(n) == 1)
        return !has_blocks && tl_layout_block(&n->inputs[0]->layout, 1) > 1 &&
               n->inputs[1]->shape.dims[1].extent == 1;
    return tl_attr_int(n, "group", 1) > 1 || !has_blocks;
}

bool tl_lowers_planes(const tl_node *n)
{
    return n->op == TL_OP_CONV && !tl_notes_of(n->outputs[0])->is_inside &&
           tl_attr_int(n, "group", 1) > 1 && n->inputs[1]->shape.dims[1].extent > 1 &&
           (tl_layout_block(&n->inputs[0]->layout, 1) > 1 ||
            tl_layout_block(&n->outputs[0]->layout, 1) > 1);
}

/* `sums`: how they lie; NULL: as the result. */
static void add_stages(tl_lower *l, const tl_node *n, const tl_layout *sums)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_value *x = n->inputs[0], *weight = n->inputs[1];
    int rank = x->shape.rank, axes = rank - 2;
    const int64_t *strides, *dilations, *pads;
    tl_attr_ints(n, "strides", &strides);
    tl_attr_ints(n, "dilations", &dilations);
    tl_attr_ints(n, "pads", &pads);
    int64_t per_group = weight->shape.dims[1].extent;
    int64_t outputs_per_group = tl_lower_outputs_of_group(n);
    tl_dtype dtype = tl_accumulate_dtype(x->dtype);

    tl_lower_name_window_axes(l, rank);
    int64_t before[TL_MAX_RANK] = { 0 }, after[TL_MAX_RANK] = { 0 };
    for (int i = 0; i < axes; i++) {
        before[2 + i] = pads[i];
        after[2 + i] = pads[axes + i];
    }
    tl_view in = tl_lower_padded(l, x, before, after);
    if (sums != NULL && sums->plain && tl_layout_block(&in.layout, 1) > 1)
        in = tl_lower_unblocked(l, &in);
    tl_view weights = tl_lower_materialize(l, weight);
    bool bare = n->input_count < 3 || n->inputs[2] == NULL;
    const tl_value *y = n->outputs[0];
    bool is_inside = tl_notes_of(y)->is_inside;
    tl_view acc = is_inside ? tl_lower_local_with_halo(l, "acc", dtype, &y->shape, &y->layout)
                  : sums    ? tl_lower_local(l, "acc", dtype, &y->shape, sums)
                            : tl_lower_accumulator(l, n, dtype, bare);

    tl_block_nest nest = tl_nest_begin(l, "conv");
    const tl_expr *out[TL_MAX_RANK], *from[TL_MAX_RANK], *tap[TL_MAX_RANK];
    if (is_inside)
        tl_nest_over_halo(&nest, &acc, out);
    else
        tl_nest_over(&nest, &acc, out);
    channel_iters c = begin_channel(&nest, per_group, &in.layout);
    for (int i = 0; i < axes; i++) {
        const char *name = kernel_axes[MAX_SPATIAL - axes + i];
        tap[2 + i] = tl_nest_iter(&nest, TL_ITER_REDUCE, name, weight->shape.dims[2 + i].extent);
        from[2 + i] = tl_add(arena, tl_muli(arena, out[2 + i], strides[i]),
                             tl_muli(arena, tap[2 + i], dilations[i]));
        from[2 + i] = tl_addi(arena, from[2 + i], -pads[i]);
    }
    end_channel(&nest, &c);
    tap[0] = out[1];
    tap[1] = c.channel;
    const tl_expr *group = tl_floordiv_expr(arena, out[1], tl_int(arena, outputs_per_group));
    from[0] = out[0];
    from[1] = tl_add(arena, tl_muli(arena, group, per_group), c.channel);
    const tl_expr *product = tl_mul(arena, tl_cast(arena, dtype, tl_view_load(l, &in, from)),
                                    tl_cast(arena, dtype, tl_view_load(l, &weights, tap)));
    tl_nest_reduce(&nest, TL_COMBINER_SUM, &acc, out, product);
    tl_lower_locals(l, n)->place[0] = acc;
}

void tl_stages_conv(tl_lower *l, const tl_node *n)
{
    add_stages(l, n, NULL);
}

void tl_stages_channels_last(tl_lower *l, const tl_node *n)
{
    tl_layout layout = channels_last(n);
    add_stages(l, n, &layout);
}

void tl_stages_planes(tl_lower *l, const tl_node *n)
{
    tl_layout layout = tl_layout_plain();
    add_stages(l, n, &layout);
}

const tl_expr *tl_value_conv(tl_lower *l, const tl_node *n, tl_index index)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_expr *sum = tl_view_load(l, &tl_lower_locals(l, n)->place[0], index);
    if (n->input_count > 2 && n->inputs[2] != NULL)
        sum = tl_add(arena, sum,
                     tl_cast(arena, sum->dtype, tl_lower_read(l, n->inputs[2], &index[1])));
    return tl_cast(arena, n->outputs[0]->dtype, sum);
}
