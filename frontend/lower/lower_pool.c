/* frontend/lower/lower_pool.c: MaxPool and AveragePool: block `pool` with the output's axes and reduce kh, kw.
 *
 * Outside the input a maximum reads the least value and a sum reads 0, by select: the halo of a value holds zeros
 * and would be wrong for a maximum. From blocks of channels to a plain value the pool stays in blocks, whose lanes lie side by
 * side, and what reads it turns it around.
 *
 * The lowering by_columns has the largest of each column of a window first, then the largest of these: 6 instead of 9 for 3x3
 * places, and a third of what lanes in steps are shuffled for. */
#include "frontend/lower/lower.h"
#include <math.h>
#include "runtime/base/checked.h"

enum { MAX_SPATIAL = 3 };

typedef struct {
    int axes;
    const int64_t *kernel, *strides, *dilations, *pads;
} window;

static window window_of(const tl_node *n)
{
    window w = { .axes = n->inputs[0]->shape.rank - 2 };
    tl_attr_ints(n, "kernel_shape", &w.kernel);
    tl_attr_ints(n, "strides", &w.strides);
    tl_attr_ints(n, "dilations", &w.dilations);
    tl_attr_ints(n, "pads", &w.pads);
    return w;
}

/* A nest that reads the window along the spatial axes first..last-1; along the others it stays where it is. */
static void add_window(tl_lower *l, const char *name, const tl_view *in, const tl_view *to,
                       const window *w, int first, int last, bool largest)
{
    static const char *const kernel_axes[MAX_SPATIAL] = { "kd", "kh", "kw" };
    tl_arena *arena = tl_lower_arena(l);
    const tl_dtype dtype = to->buffer->dtype;
    tl_block_nest nest = tl_nest_begin(l, name);
    const tl_expr *out[TL_MAX_RANK], *from[TL_MAX_RANK], *inside = NULL;
    tl_nest_over(&nest, to, out);
    for (int axis = 0; axis < to->shape.rank; axis++)
        from[axis] = out[axis];
    for (int i = first; i < last; i++) {
        const tl_expr *tap = tl_nest_iter(&nest, TL_ITER_REDUCE,
                                          kernel_axes[MAX_SPATIAL - w->axes + i], w->kernel[i]);
        const tl_expr *at = tl_add(arena, tl_muli(arena, out[2 + i], w->strides[i]),
                                   tl_muli(arena, tap, w->dilations[i]));
        from[2 + i] = tl_addi(arena, at, -w->pads[i]);
        inside = tl_inside(arena, inside, from[2 + i], in->shape.dims[2 + i].extent);
    }
    const tl_expr *value = tl_cast(arena, dtype, tl_view_load(l, in, from));
    tl_combiner combiner = largest ? TL_COMBINER_MAX : TL_COMBINER_SUM;
    if (inside != NULL)
        value = tl_select(arena, inside, value, tl_combiner_identity(arena, combiner, dtype, 0));
    if (largest)
        tl_nest_reduce(&nest, combiner, to, out, value);
    else
        tl_nest_sum(&nest, to, out, value);
}

static void add_stages(tl_lower *l, const tl_node *n, bool by_columns)
{
    const tl_value *x = n->inputs[0], *y = n->outputs[0];
    const window w = window_of(n);
    const bool largest = n->op == TL_OP_MAX_POOL;
    const tl_dtype dtype = largest ? x->dtype : tl_accumulate_dtype(x->dtype);

    tl_lower_name_window_axes(l, x->shape.rank);
    tl_view in = tl_lower_materialize(l, x);
    const bool leaves_blocks = y->layout.plain && !x->layout.plain;
    tl_view acc = leaves_blocks ? tl_lower_local(l, "acc", dtype, &y->shape, &x->layout)
                                : tl_lower_accumulator(l, n, dtype, largest);
    if (by_columns) {
        tl_shape shape = y->shape;
        shape.dims[3] = x->shape.dims[3];
        tl_view columns = tl_lower_local(l, "columns", dtype, &shape, &acc.layout);
        add_window(l, "column", &in, &columns, &w, 0, 1, largest);
        add_window(l, "pool", &columns, &acc, &w, 1, 2, largest);
    } else {
        add_window(l, "pool", &in, &acc, &w, 0, w.axes, largest);
    }
    tl_lower_locals(l, n)->place[0] = acc;
}

void tl_stages_pool(tl_lower *l, const tl_node *n)
{
    add_stages(l, n, false);
}

void tl_stages_pool_by_columns(tl_lower *l, const tl_node *n)
{
    add_stages(l, n, true);
}

bool tl_lowers_by_columns(const tl_node *n)
{
    if (n->op != TL_OP_MAX_POOL || n->inputs[0]->shape.rank != 4)
        return false;
    const window w = window_of(n);
    return w.kernel[0] > 1 && w.kernel[1] > 1;
}

/* How many taps of the window at output position `out` lie in low..high-1 of the axis (low <= 0). */
static const tl_expr *taps_inside(tl_arena *arena, const window *w, int i, const tl_expr *out,
                                  int64_t low, int64_t high)
{
    int64_t d = w->dilations[i];
    const tl_expr *start = tl_addi(arena, tl_muli(arena, out, w->strides[i]), -w->pads[i]);
    const tl_expr *before = tl_addi(arena, tl_sub(arena, tl_int(arena, low), start), d - 1);
    const tl_expr *behind = tl_addi(arena, tl_sub(arena, tl_int(arena, high), start), d - 1);
    const tl_expr *first =
        tl_max(arena, tl_floordiv_expr(arena, before, tl_int(arena, d)), tl_int(arena, 0));
    const tl_expr *last = tl_min(arena, tl_floordiv_expr(arena, behind, tl_int(arena, d)),
                                 tl_int(arena, w->kernel[i]));
    return tl_sub(arena, last, first);
}

const tl_expr *tl_value_pool(tl_lower *l, const tl_node *n, tl_index index)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_expr *value = tl_view_load(l, &tl_lower_locals(l, n)->place[0], index);
    if (n->op == TL_OP_MAX_POOL)
        return value;
    window w = window_of(n);
    bool padding_counts = tl_attr_int(n, "count_include_pad", 0) != 0;
    const tl_expr *count = tl_int(arena, 1);
    for (int i = 0; i < w.axes; i++) {
        int64_t extent = n->inputs[0]->shape.dims[2 + i].extent;
        int64_t low = padding_counts ? -w.pads[i] : 0;
        int64_t high = padding_counts ? extent + w.pads[w.axes + i] : extent;
        count = tl_mul(arena, count, taps_inside(arena, &w, i, index[2 + i], low, high));
    }
    value = tl_div(arena, value, tl_cast(arena, value->dtype, count));
    return tl_cast(arena, n->outputs[0]->dtype, value);
}
