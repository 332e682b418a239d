/* frontend/lower/lower_sort.c: the order in which the elements along an axis are sorted, equal ones as they stand.
 *
 *     rank    rank[i] = how many elements come before element i
 *     place   order[rank[i]] = i
 *
 * Every element is compared with every other: no branch depends on data, and rows of a thousand are sorted within the time
 * of a small product. A NaN counts as an infinity. */
#include "frontend/lower/lower.h"
#include <string.h>

void tl_stages_sort_order(tl_lower *l, const tl_node *n)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_value *x = n->inputs[0];
    int axis = (int)tl_attr_int(n, "axis", 0), rank = x->shape.rank;
    bool descending = tl_attr_int(n, "descending", 0) != 0;
    int64_t extent = x->shape.dims[axis].extent;
    tl_layout plain = tl_layout_plain();
    const tl_expr *at[TL_MAX_RANK], *other[TL_MAX_RANK];

    tl_view ranks = tl_lower_local(l, "rank", TL_I32, &x->shape, &plain);
    tl_block_nest nest = tl_nest_begin(l, "rank");
    tl_nest_over(&nest, &ranks, at);
    memcpy(other, at, sizeof at);
    other[axis] = tl_nest_iter(&nest, TL_ITER_REDUCE, "r", extent);
    const tl_expr *mine = tl_ordered(arena, tl_lower_read(l, x, at));
    const tl_expr *its = tl_ordered(arena, tl_lower_read(l, x, other));
    const tl_expr *before = descending ? tl_gt(arena, its, mine) : tl_lt(arena, its, mine);
    const tl_expr *same =
        tl_and(arena, tl_eq(arena, its, mine), tl_lt(arena, other[axis], at[axis]));
    tl_nest_reduce(&nest, TL_COMBINER_SUM, &ranks, at,
                   tl_cast(arena, TL_I32, tl_or(arena, before, same)));

    tl_view order = tl_lower_accumulator(l, n, TL_I64, true);
    nest = tl_nest_begin(l, "place");
    for (int i = 0; i < rank; i++)
        at[i] = tl_nest_iter(&nest, i == axis ? TL_ITER_ORDERED : TL_ITER_SPATIAL,
                             tl_arena_format(arena, "i%d", i), x->shape.dims[i].extent);
    memcpy(other, at, sizeof at);
    other[axis] = tl_cast(arena, TL_I64, tl_view_load(l, &ranks, at));
    tl_nest_store(&nest, &order, other, at[axis]);
    tl_lower_locals(l, n)->place[0] = order;
}
