/* frontend/lower/lower_scatter.c: a copy of the data in which updates are put, or combined with what is there, at positions
 * that an index tensor names.
 *
 *     copy      y[i] = data[i]
 *     scatter   y[indices[u]] = updates[u]            in the order of the updates where two may meet: the last one stays
 *
 * A position that is computed is clamped into its axis where it is used (codegen). */
#include "frontend/lower/lower.h"
#include <string.h>

static tl_view copy_data(tl_lower *l, const tl_node *n)
{
    tl_view y = tl_lower_accumulator(l, n, n->outputs[0]->dtype, true);
    const tl_expr *index[TL_MAX_RANK];
    tl_block_nest nest = tl_nest_begin(l, "copy");
    tl_nest_over(&nest, &y, index);
    tl_nest_store(&nest, &y, index, tl_lower_read(l, n->inputs[0], index));
    tl_lower_locals(l, n)->place[0] = y;
    return y;
}

/* What an update leaves where `old` was. */
static const tl_expr *combine(tl_arena *arena, const char *reduction, const tl_expr *old,
                              const tl_expr *update)
{
    return strcmp(reduction, "add") == 0   ? tl_add(arena, old, update)
           : strcmp(reduction, "mul") == 0 ? tl_mul(arena, old, update)
           : strcmp(reduction, "max") == 0 ? tl_max(arena, old, update)
           : strcmp(reduction, "min") == 0 ? tl_min(arena, old, update)
                                           : update;
}

static void put(tl_lower *l, const tl_node *n, tl_block_nest *nest, const tl_view *y, tl_index at,
                tl_index from)
{
    const char *reduction = tl_attr_string(n, "reduction", "none");
    const tl_expr *old = tl_view_load(l, y, at), *update = tl_lower_read(l, n->inputs[2], from);
    tl_nest_store(nest, y, at, combine(tl_lower_arena(l), reduction, old, update));
}

/* Updates meet along the axis alone. */
void tl_stages_scatter_elements(tl_lower *l, const tl_node *n)
{
    const tl_value *indices = n->inputs[1];
    int axis = (int)tl_attr_int(n, "axis", 0);
    tl_view y = copy_data(l, n);
    const tl_expr *from[TL_MAX_RANK], *at[TL_MAX_RANK];
    tl_block_nest nest = tl_nest_begin(l, "scatter");
    for (int i = 0; i < indices->shape.rank; i++)
        from[i] = tl_nest_iter(&nest, i == axis ? TL_ITER_ORDERED : TL_ITER_SPATIAL,
                               tl_arena_format(tl_lower_arena(l), "u%d", i),
                               indices->shape.dims[i].extent);
    memcpy(at, from, sizeof at);
    at[axis] = tl_lower_position(l, indices, from, y.shape.dims[axis].extent);
    put(l, n, &nest, &y, at, from);
}

/* The last axis of the indices holds tuples: positions along the first axes; what an update puts there is a slice. */
void tl_stages_scatter_nd(tl_lower *l, const tl_node *n)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_value *indices = n->inputs[1], *updates = n->inputs[2];
    int last = indices->shape.rank - 1, tuple = (int)indices->shape.dims[last].extent;
    tl_view y = copy_data(l, n);
    const tl_expr *from[TL_MAX_RANK], *at[TL_MAX_RANK], *index[TL_MAX_RANK];
    tl_block_nest nest = tl_nest_begin(l, "scatter");
    for (int i = 0; i < updates->shape.rank; i++)
        from[i] = tl_nest_iter(&nest, i < last ? TL_ITER_ORDERED : TL_ITER_SPATIAL,
                               tl_arena_format(arena, "u%d", i), updates->shape.dims[i].extent);
    memcpy(index, from, sizeof *index * (size_t)last);
    for (int i = 0; i < y.shape.rank; i++) {
        index[last] = tl_int(arena, i);
        at[i] = i < tuple ? tl_lower_position(l, indices, index, y.shape.dims[i].extent)
                          : from[last + i - tuple];
    }
    put(l, n, &nest, &y, at, from);
}

const tl_expr *tl_value_local(tl_lower *l, const tl_node *n, tl_index index)
{
    return tl_view_load(l, &tl_lower_locals(l, n)->place[0], index);
}
