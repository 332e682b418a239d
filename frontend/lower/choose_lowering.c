/* frontend/lower/choose_lowering.c: which lowering a kernel gets before anything was measured.
 *
 * Winograd multiplies less and reads more: the weights of m = 2 are 16/9 as large, those of m = 4 four times. Each
 * form's cycles are estimated, and the least wins. For C channels summed up for K, L lanes, p places (of the results of
 * all images, or tiles), a sums of products (9, 16 or 36 for each):
 *
 *     cycles = a*C*K/L * max(p / multiply-adds a cycle / e, cycles of a line of weights from memory)
 *              + p*(C*i + K*o)/L                            transforms of m = 2 and 4 alone
 *
 * In a network weights are cold. e is the part of the peak that products reach, i and o what the transforms of a vector
 * take for each tile (fitted on a Zen 5 to what 61 convolutions take in all three forms: what the choice loses fell from
 * 12 % to 1 %). It says m = 4 from 28x28 up, m = 2 at 14x14, neither at 7x7 of a Cascade Lake, as was measured there; of
 * a core with more bandwidth m = 4 at 14x14 and m = 2 at 7x7.
 *
 * Groups of channels that end within blocks of the result, results that lie plain behind blocks, and plain ones whose rows
 * are short or read in steps (transforms of frames) are summed up with the channels of a group side by side
 * (channels_last), small groups in planes (planes): the same sums in the same order, for strict numerics as well. So are
 * concatenations of blocks to a plain result made part by part.
 *
 * A maximum over windows that overlap is that of the largest of their columns (by_columns), where these stay in L2.
 *
 * A cell over time runs its steps one after the other on the core that has its direction; where cores are left, rows are
 * shared out.
 *
 * Attention over long rows goes block by block (online): whole rows of scores leave room for few of them in L2, and each few
 * read all keys and values of the head, which no longer stay there. Measured on an Ice Lake with 1.25 MB of L2, one
 * thread, 64 features: 1.1 times the direct one's time up to 1,024 keys, 0.9 of it at 2,048, 0.75 at 4,096.
 *
 * On a GPU with tensor cores attention of f16 and bf16 has its weights in that dtype (halves): no product takes another. Where
 * shared memory does not hold 32 rows of scores it goes block by block on a Hopper, all of it in registers (fragments). */
#include "frontend/lower/attention.h"
#include "frontend/lower/lower_private.h"
#include "frontend/lower/recurrent.h"
#include "ir/program/machine.h"
#include "runtime/base/checked.h"

enum { LEAST_ROWS = 64, LINE_BYTES = 64, LEAST_LANES = 4, TENSOR_CORES_SM = 80 };

/* A second pass has to be worth it: so many times the comparisons. */
static const double least_compared = 1.25;

/* Winograd's results are less exact: it has to be worth it. */
static const double least_gain = 0.85;

bool tl_lowers_any(const tl_node *n)
{
    (void)n;
    return true;
}

bool tl_lowers_winograd(const tl_node *n)
{
    const int64_t *strides, *dilations;
    if (n->op != TL_OP_CONV)
        return false;
    const tl_value *x = n->inputs[0], *weight = n->inputs[1];
    if (x->shape.rank != 4 || x->dtype != TL_F32 || weight->data == NULL || weight->dtype != TL_F32)
        return false;
    return tl_attr_int(n, "group", 1) == 1 && weight->shape.dims[2].extent == 3 &&
           weight->shape.dims[3].extent == 3 && tl_attr_ints(n, "strides", &strides) == 2 &&
           strides[0] == 1 && strides[1] == 1 && tl_attr_ints(n, "dilations", &dilations) == 2 &&
           dilations[0] == 1 && dilations[1] == 1;
}

/* The same on channels in blocks of whole vectors, which the schedule of its stages needs, and of a known size. */
static bool suits_winograd(const tl_node *n, const tl_target *target)
{
    const tl_value *x = n->inputs[0], *y = n->outputs[0];
    int lanes = tl_target_lanes(target, TL_F32);
    return tl_lowers_winograd(n) && !x->layout.plain && !y->layout.plain &&
           x->layout.block[1] % lanes == 0 && y->layout.block[1] % lanes == 0 &&
           y->shape.dims[2].extent > 0 && y->shape.dims[3].extent > 0;
}

/* One of the forms of a 3x3 convolution. */
typedef struct {
    const char *name;
    int64_t tile;   /* places across and down */
    double sums;    /* of products for each channel, for one tile */
    double part;    /* of the peak that they reach */
    double in, out; /* cycles of the transforms of a vector of a tile */
} conv_form;

static const conv_form direct_form = { "direct", 1, 9, 0.92, 0, 0 };
static const conv_form winograd_forms[] = {
    { "winograd_f2", 2, 16, 0.86, 100, 30 },
    { "winograd_f4", 4, 36, 0.86, 540, 100 },
};

static double conv_cycles(const tl_node *n, const tl_target *target, const conv_form *form)
{
    const tl_shape *y = &n->outputs[0]->shape;
    const tl_machine *machine = tl_machine_of(target);
    double lanes = tl_target_lanes(target, TL_F32), cores = target->cores > 1 ? target->cores : 1;
    double from = (double)n->inputs[1]->shape.dims[1].extent, to = (double)y->dims[1].extent;
    double images = y->dims[0].extent > 1 ? (double)y->dims[0].extent : 1;
    double places = images * (double)(tl_ceildiv(y->dims[2].extent, form->tile) *
                                      tl_ceildiv(y->dims[3].extent, form->tile));
    double compute = places / tl_machine_unit_of(target)->fma_per_cycle / form->part / cores;
    double weights = machine->memory_line_cycles / cores * lanes * sizeof(float) / LINE_BYTES;
    double transforms = places * (from * form->in + to * form->out) / lanes / cores;
    return form->sums * from * to / lanes * (compute > weights ? compute : weights) + transforms;
}

static const conv_form *choose_conv(const tl_node *n, const tl_target *target)
{
    const conv_form *best = &direct_form;
    double least = least_gain * conv_cycles(n, target, best);
    for (size_t i = 0; i < sizeof winograd_forms / sizeof *winograd_forms; i++) {
        double cycles = conv_cycles(n, target, &winograd_forms[i]);
        if (cycles < least) {
            least = cycles;
            best = &winograd_forms[i];
        }
    }
    return best;
}

/* Whether the keys and values of a head take more than half of L2, and many rows read a block of them. */
static bool suits_online(const tl_node *n, const tl_target *target)
{
    if (n->op != TL_OP_ATTENTION || !tl_lowers_online(n) || tl_online_rows(n) < LEAST_ROWS)
        return false;
    tl_attention_sizes z = tl_attention_sizes_of(n);
    int64_t key_bytes = tl_storage_bytes(n->inputs[1]->dtype, z.depth + z.width);
    return z.columns > target->l2_bytes / 2 / key_bytes;
}

static bool suits_halves(const tl_node *n, const tl_target *target)
{
    return tl_target_is_gpu(target) && target->gpu.sm >= TENSOR_CORES_SM && tl_lowers_halves(n);
}

/* Whether shared memory of a block does not hold 32 rows of scores, twice in f32 and once in the operands' dtype. */
static bool suits_fragments(const tl_node *n, const tl_target *target)
{
    enum { ROWS = 32, SM = 90 };
    if (n->op != TL_OP_ATTENTION || !tl_target_is_gpu(target) || target->gpu.sm != SM ||
        !target->gpu.is_exact || !tl_lowers_fragments(n))
        return false;
    int64_t element =
        2 * (int64_t)tl_dtype_size(TL_F32) + (int64_t)tl_dtype_size(n->inputs[0]->dtype);
    return ROWS * element * tl_attention_sizes_of(n).columns > target->gpu.shared_block;
}

static bool suits_rows(const tl_node *n, const tl_target *target)
{
    return n->op == TL_OP_RECURRENT && tl_lowers_rows(n) &&
           tl_recurrent_sizes_of(n).directions < target->cores;
}

/* Whether lanes along a row of the plain result, its innermost axis of more than one place, read neighbours of the plain input,
 * at least so many at a time. Where there is one place, lanes go along its channels. */
static bool has_row_of_neighbours(const tl_node *n, int64_t least)
{
    const tl_shape *x = &n->inputs[0]->shape, *y = &n->outputs[0]->shape;
    const int64_t *strides;
    int axis = y->rank - 1;
    int64_t apart = 1; /* elements of the input inside of a place of the row */
    tl_attr_ints(n, "strides", &strides);
    for (; axis >= 2 && y->dims[axis].extent == 1; axis--)
        apart = tl_max64(apart, x->dims[axis].extent);
    return axis < 2 || (apart == 1 && strides[axis - 2] == 1 && y->dims[axis].extent >= least);
}

/* Whether groups are within a vector, which is shuffled for them (sketch_window.c). */
static bool shares_vectors(const tl_node *n, int64_t lanes)
{
    const int64_t from = tl_layout_block(&n->inputs[0]->layout, 1),
                  to = tl_layout_block(&n->outputs[0]->layout, 1);
    const int64_t inputs = n->inputs[1]->shape.dims[1].extent;
    const int64_t outputs = tl_lower_outputs_of_group(n);
    return inputs <= outputs && lanes % outputs == 0 && to % outputs == 0 &&
           from % (to / outputs * inputs) == 0;
}

/* Whether lanes along the result's own axes would gather what they read, while those along the channels of a group are many
 * enough. */
static bool suits_channels_last(const tl_node *n, const tl_target *target)
{
    if (tl_target_is_gpu(target) || !tl_lowers_channels_last(n))
        return false;
    const tl_value *x = n->inputs[0], *y = n->outputs[0];
    int64_t lanes = tl_target_lanes(target, TL_F32), from = tl_layout_block(&x->layout, 1),
            to = tl_layout_block(&y->layout, 1);
    int64_t outputs = tl_lower_outputs_of_group(n);
    if (to == 1 && from == 1)
        return 2 * outputs >= lanes && !has_row_of_neighbours(n, tl_min64(lanes, outputs));
    if (to == 1 && outputs == 1)
        return from > 1;
    if (outputs < LEAST_LANES)
        return false;
    if (to == 1)
        return true;
    return outputs % to != 0 && !shares_vectors(n, lanes); /* no block within a group */
}

/* Whether lanes along the channels of a group would be few, and gather what they read, while those along rows are neighbours in
 * a plain input, or in a copy of one in blocks, for which a window of several places pays. Where terms lie side by side, lanes go
 * along these for fewer outputs than four (sketch_reduce_lanes.c). */
static bool suits_planes(const tl_node *n, const tl_target *target)
{
    if (tl_target_is_gpu(target) || !tl_lowers_planes(n))
        return false;
    const tl_shape *weight = &n->inputs[1]->shape;
    int64_t lanes = tl_target_lanes(target, TL_F32),
            from = tl_layout_block(&n->inputs[0]->layout, 1);
    int64_t outputs = tl_lower_outputs_of_group(n), taps = 1;
    const bool has_rows = has_row_of_neighbours(n, tl_max64(lanes / 2, 2));
    for (int axis = 2; axis < weight->rank; axis++)
        taps *= weight->dims[axis].extent;
    if (from == 1)
        return outputs <= LEAST_LANES || (2 * outputs <= lanes && has_rows);
    if (shares_vectors(n, lanes) || (outputs < LEAST_LANES && weight->dims[1].extent % from == 0))
        return false;
    return outputs < LEAST_LANES || (outputs == LEAST_LANES && taps > 1 && has_rows);
}

/* Whether columns of windows are compared once, not in every window that they are part of, or, of plain rows in steps, before
 * lanes are shuffled; and stay in L2 between. */
static bool suits_by_columns(const tl_node *n, const tl_target *target)
{
    const int64_t *kernel, *strides;
    if (tl_target_is_gpu(target) || !tl_lowers_by_columns(n))
        return false;
    tl_attr_ints(n, "kernel_shape", &kernel);
    tl_attr_ints(n, "strides", &strides);
    const tl_shape *x = &n->inputs[0]->shape, *y = &n->outputs[0]->shape;
    int64_t bytes = (int64_t)tl_dtype_size(n->inputs[0]->dtype);
    for (int i = 0; i < 4; i++)
        if (tl_mul_overflows(bytes, (i == 3 ? x : y)->dims[i].extent, &bytes) || bytes < 1)
            return false;
    bool is_shuffled = tl_layout_block(&n->inputs[0]->layout, 1) == 1 && kernel[0] > strides[0] &&
                       strides[1] > 1 && kernel[1] > strides[1];
    return bytes <= target->l2_bytes &&
           (is_shuffled || least_compared * (double)(kernel[0] * strides[1] + kernel[1]) <=
                               (double)(kernel[0] * kernel[1]));
}

const char *tl_choose_lowering(const tl_kernel *kernel, const tl_target *target,
                               tl_numerics numerics)
{
    for (int i = 0; i < kernel->node_count; i++) {
        const tl_node *n = kernel->nodes[i];
        if (suits_planes(n, target))
            return "planes";
        if (suits_channels_last(n, target))
            return "channels_last";
        if (suits_by_columns(n, target))
            return "by_columns";
        if (tl_lowers_parts(n) && !tl_target_is_gpu(target))
            return "parts";
        if (numerics == TL_NUMERICS_STRICT)
            continue;
        if (suits_fragments(n, target))
            return "fragments";
        if (suits_halves(n, target))
            return "halves";
        if (suits_online(n, target))
            return "online";
        if (suits_rows(n, target))
            return "rows";
        if (suits_winograd(n, target) && choose_conv(n, target) != &direct_form)
            return choose_conv(n, target)->name;
    }
    return "direct";
}
