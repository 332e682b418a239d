/* frontend/lower/lower_reduce.c: reductions over axes: block `reduce` with the output's axes and reduce iters r0.. named
 * after the input's axes; ArgMax as a pair of value and index. */
#include "frontend/lower/lower.h"
#include <math.h>
#include <string.h>

static const char *const reduce_names[TL_MAX_RANK] = { "r0", "r1", "r2", "r3",
                                                       "r4", "r5", "r6", "r7" };

static void reduced_axes(const tl_node *n, bool reduced[TL_MAX_RANK], bool *keep)
{
    const tl_value *x = n->inputs[0];
    const int64_t *axes;
    int count = tl_attr_ints(n, "axes", &axes);
    memset(reduced, 0, sizeof(bool) * TL_MAX_RANK);
    if (n->op == TL_OP_GLOBAL_AVERAGE_POOL) {
        for (int i = 2; i < x->shape.rank; i++)
            reduced[i] = true;
        *keep = true;
        return;
    }
    if (n->op == TL_OP_ARGMAX)
        reduced[tl_attr_int(n, "axis", 0)] = true;
    for (int i = 0; i < count; i++)
        reduced[axes[i]] = true;
    *keep = tl_attr_int(n, "keepdims", 1) != 0;
}

/* The input's index: reduce iters on the reduced axes, the output's index on the others. */
static void input_index(tl_block_nest *nest, const tl_node *n, tl_index out,
                        const tl_expr *from[TL_MAX_RANK])
{
    bool reduced[TL_MAX_RANK], keep;
    const tl_value *x = n->inputs[0];
    reduced_axes(n, reduced, &keep);
    for (int i = 0, at = 0; i < x->shape.rank; i++) {
        from[i] = reduced[i]
                      ? tl_nest_iter(nest, TL_ITER_REDUCE, reduce_names[i], x->shape.dims[i].extent)
                      : out[at];
        at += !reduced[i] || keep;
    }
}

static tl_combiner combiner_of(tl_op op)
{
    return op == TL_OP_REDUCE_MAX    ? TL_COMBINER_MAX
           : op == TL_OP_REDUCE_MIN  ? TL_COMBINER_MIN
           : op == TL_OP_REDUCE_PROD ? TL_COMBINER_PROD
                                     : TL_COMBINER_SUM;
}

static bool is_mean(const tl_node *n)
{
    return n->op == TL_OP_REDUCE_MEAN || n->op == TL_OP_GLOBAL_AVERAGE_POOL;
}

void tl_stages_reduce(tl_lower *l, const tl_node *n)
{
    tl_arena *arena = tl_lower_arena(l);
    tl_combiner combiner = combiner_of(n->op);
    tl_dtype dtype = n->inputs[0]->dtype;
    if (combiner == TL_COMBINER_SUM || combiner == TL_COMBINER_PROD)
        dtype = tl_accumulate_dtype(dtype);
    if (n->op == TL_OP_GLOBAL_AVERAGE_POOL)
        tl_lower_name_window_axes(l, n->inputs[0]->shape.rank);
    tl_view acc = tl_lower_accumulator(l, n, dtype, !is_mean(n));
    tl_block_nest nest = tl_nest_begin(l, "reduce");
    const tl_expr *out[TL_MAX_RANK], *from[TL_MAX_RANK];
    tl_nest_over(&nest, &acc, out);
    input_index(&nest, n, out, from);
    const tl_expr *value = tl_cast(arena, dtype, tl_lower_read(l, n->inputs[0], from));
    if (combiner == TL_COMBINER_SUM)
        tl_nest_sum(&nest, &acc, out, value);
    else
        tl_nest_reduce(&nest, combiner, &acc, out, value);
    tl_lower_locals(l, n)->place[0] = acc;
}

const tl_expr *tl_value_reduce(tl_lower *l, const tl_node *n, tl_index index)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_value *x = n->inputs[0];
    const tl_expr *value = tl_view_load(l, &tl_lower_locals(l, n)->place[0], index);
    if (is_mean(n)) {
        bool reduced[TL_MAX_RANK], keep;
        int64_t count = 1;
        reduced_axes(n, reduced, &keep);
        for (int i = 0; i < x->shape.rank; i++)
            count *= reduced[i] ? x->shape.dims[i].extent : 1;
        value = tl_div(arena, value, tl_constant(arena, value->dtype, (double)count));
    }
    return tl_cast(arena, n->outputs[0]->dtype, value);
}

/* A NaN counts as an infinity, the largest there is: the pair that a reduction starts from would win over nothing but NaNs. */
const tl_expr *tl_ordered(tl_arena *arena, const tl_expr *value)
{
    if (!tl_dtype_is_float(value->dtype))
        return value;
    return tl_select(arena, tl_ne(arena, value, value), tl_float(arena, value->dtype, INFINITY),
                     value);
}

/* With select_last_index the axis is walked backwards: on a tie the combiner keeps the smaller index. */
void tl_stages_argmax(tl_lower *l, const tl_node *n)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_value *x = n->inputs[0], *y = n->outputs[0];
    int axis = (int)tl_attr_int(n, "axis", 0);
    bool last = tl_attr_int(n, "select_last_index", 0) != 0;
    tl_view pair[2] = { tl_lower_local(l, "best", x->dtype, &y->shape, &y->layout) };
    pair[1] = tl_lower_accumulator(l, n, TL_I64, !last && y->layout.plain);
    tl_block_nest nest = tl_nest_begin(l, "argmax");
    const tl_expr *out[TL_MAX_RANK], *from[TL_MAX_RANK];
    tl_nest_over(&nest, &pair[1], out);
    input_index(&nest, n, out, from);
    const tl_expr *values[2] = { NULL, from[axis] };
    if (last)
        from[axis] = tl_sub(arena, tl_int(arena, x->shape.dims[axis].extent - 1), from[axis]);
    values[0] = tl_ordered(arena, tl_lower_read(l, x, from));
    tl_nest_reduce_pair(&nest, TL_COMBINER_ARGMAX, pair, out, values);
    tl_lower_locals(l, n)->place[0] = pair[1];
}

const tl_expr *tl_value_argmax(tl_lower *l, const tl_node *n, tl_index index)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_expr *best = tl_view_load(l, &tl_lower_locals(l, n)->place[0], index);
    int64_t extent = n->inputs[0]->shape.dims[tl_attr_int(n, "axis", 0)].extent;
    if (tl_attr_int(n, "select_last_index", 0) != 0)
        best = tl_sub(arena, tl_int(arena, extent - 1), best);
    return best;
}
