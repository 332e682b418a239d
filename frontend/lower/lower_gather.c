/* frontend/lower/lower_gather.c: elements chosen by the values of an index tensor, and Range. */
#include "frontend/lower/lower.h"
#include <string.h>
#include "ir/expr/index.h"

static bool is_never_negative(const tl_value *indices)
{
    int64_t count = indices->data != NULL ? tl_shape_elements(&indices->shape) : -1;
    for (int64_t i = 0; i < count; i++)
        if (tl_number_load(indices->dtype, indices->data, (size_t)i).i < 0)
            return false;
    return count >= 0;
}

/* A stored index as a position: negative ones count from the end. Whatever reads memory is clamped where it is used as an
 * index (codegen); an index that turned out to be computed from loop variables and literals alone is clamped here. */
static const tl_expr *position(tl_arena *arena, const tl_value *indices, const tl_expr *stored,
                               int64_t extent)
{
    const tl_expr *at = tl_cast(arena, TL_I64, stored);
    if (!is_never_negative(indices))
        at = tl_select(arena, tl_lt(arena, at, tl_int(arena, 0)), tl_addi(arena, at, extent), at);
    tl_range range = tl_expr_range(at);
    if (!tl_expr_has_load(at) && (range.min < 0 || range.max >= extent))
        at = tl_min(arena, tl_max(arena, at, tl_int(arena, 0)), tl_int(arena, extent - 1));
    return at;
}

const tl_expr *tl_lower_position(tl_lower *l, const tl_value *indices, tl_index index,
                                 int64_t extent)
{
    return position(tl_lower_arena(l), indices, tl_lower_read(l, indices, index), extent);
}

const tl_expr *tl_value_gather(tl_lower *l, const tl_node *n, tl_index index)
{
    const tl_value *table = n->inputs[0], *indices = n->inputs[1];
    int axis = (int)tl_attr_int(n, "axis", 0);
    const tl_expr *from[TL_MAX_RANK];
    for (int i = 0; i < table->shape.rank; i++)
        if (i != axis)
            from[i] = index[i < axis ? i : i + indices->shape.rank - 1];
    from[axis] = tl_lower_position(l, indices, index + axis, table->shape.dims[axis].extent);
    return tl_lower_read(l, table, from);
}

const tl_expr *tl_value_gather_elements(tl_lower *l, const tl_node *n, tl_index index)
{
    const tl_value *table = n->inputs[0], *indices = n->inputs[1];
    int axis = (int)tl_attr_int(n, "axis", 0);
    const tl_expr *from[TL_MAX_RANK];
    memcpy(from, index, sizeof *from * (size_t)table->shape.rank);
    from[axis] = tl_lower_position(l, indices, index, table->shape.dims[axis].extent);
    return tl_lower_read(l, table, from);
}

/* The last axis of the indices holds tuples: positions along the axes behind the batch axes. */
const tl_expr *tl_value_gather_nd(tl_lower *l, const tl_node *n, tl_index index)
{
    const tl_value *table = n->inputs[0], *indices = n->inputs[1];
    int batch = (int)tl_attr_int(n, "batch_dims", 0), last = indices->shape.rank - 1;
    int tuple = (int)indices->shape.dims[last].extent;
    const tl_expr *from[TL_MAX_RANK], *at[TL_MAX_RANK];
    memcpy(at, index, sizeof *at * (size_t)last);
    for (int i = 0; i < table->shape.rank; i++) {
        if (i < batch || i >= batch + tuple) {
            from[i] = index[i < batch ? i : i - batch - tuple + last];
            continue;
        }
        at[last] = tl_int(tl_lower_arena(l), i - batch);
        from[i] = tl_lower_position(l, indices, at, table->shape.dims[i].extent);
    }
    return tl_lower_read(l, table, from);
}

const tl_expr *tl_value_range(tl_lower *l, const tl_node *n, tl_index index)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_expr *zero[TL_MAX_RANK], *part[3];
    for (int i = 0; i < TL_MAX_RANK; i++)
        zero[i] = tl_int(arena, 0);
    for (int i = 0; i < 3; i++)
        part[i] = tl_lower_read(l, n->inputs[i], zero);
    return tl_add(arena, part[0], tl_mul(arena, tl_cast(arena, part[0]->dtype, index[0]), part[2]));
}
