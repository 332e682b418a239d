/* frontend/lower/choose_lowering.c: which lowering a kernel gets before anything was measured.
 *
 * Winograd pays where the transforms are small beside the products they save (many channels on both sides) and the
 * transformed weights, 16/9 (m = 2) or 4 times (m = 4) as large, do not take longer to read than the direct sum takes
 * to compute. Measured with cold weights on a Cascade Lake: m = 4 from 28x28 up, m = 2 at 14x14, neither at 7x7.
 *
 * A cell over time runs its steps one after the other on the core that has its direction; where cores are left, rows are
 * shared out.
 *
 * Attention over long rows goes block by block (online): whole rows of scores leave room for few of them in L2, and each few
 * read all keys and values of the head, which no longer stay there. Measured on an Ice Lake with 1.25 MB of L2, one
 * thread, 64 features: 1.1 times the direct one's time up to 1,024 keys, 0.9 of it at 2,048, 0.75 at 4,096. */
#include "frontend/lower/attention.h"
#include "frontend/lower/lower_private.h"
#include "frontend/lower/recurrent.h"

enum { LEAST_CHANNELS = 32, LEAST_F4 = 24, LEAST_F2 = 12, LEAST_ROWS = 64 };

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

/* The same on blocked channels, and enough of them. */
static bool suits_winograd(const tl_node *n)
{
    return tl_lowers_winograd(n) && !n->inputs[0]->layout.plain && !n->outputs[0]->layout.plain &&
           n->inputs[0]->shape.dims[1].extent >= LEAST_CHANNELS &&
           n->inputs[1]->shape.dims[0].extent >= LEAST_CHANNELS;
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

static bool suits_rows(const tl_node *n, const tl_target *target)
{
    return n->op == TL_OP_RECURRENT && tl_lowers_rows(n) &&
           tl_recurrent_sizes_of(n).directions < target->cores;
}

const char *tl_choose_lowering(const tl_kernel *kernel, const tl_target *target,
                               tl_numerics numerics)
{
    if (numerics == TL_NUMERICS_STRICT)
        return "direct";
    for (int i = 0; i < kernel->node_count; i++) {
        const tl_node *n = kernel->nodes[i];
        if (suits_online(n, target))
            return "online";
        if (suits_rows(n, target))
            return "rows";
        if (!suits_winograd(n))
            continue;
        int64_t down = n->outputs[0]->shape.dims[2].extent;
        int64_t across = n->outputs[0]->shape.dims[3].extent;
        int64_t least = down < across ? down : across;
        if (least >= LEAST_F4)
            return "winograd_f4";
        if (least >= LEAST_F2)
            return "winograd_f2";
    }
    return "direct";
}
