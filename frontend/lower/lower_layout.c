/* frontend/lower/lower_layout.c: operators that only move elements: an output element is an input element at a mapped
 * index. */
#include "frontend/lower/lower.h"
#include <string.h>

const tl_expr *tl_value_expand(tl_lower *l, const tl_node *n, tl_index index)
{
    return tl_lower_read_broadcast(l, n->inputs[0], n->outputs[0]->shape.rank, index);
}

const tl_expr *tl_value_transpose(tl_lower *l, const tl_node *n, tl_index index)
{
    const int64_t *perm;
    int rank = tl_attr_ints(n, "perm", &perm);
    const tl_expr *from[TL_MAX_RANK];
    for (int i = 0; i < rank; i++)
        from[perm[i]] = index[i];
    return tl_lower_read(l, n->inputs[0], from);
}

/* Runs of axes whose products agree are mapped by themselves, so that [2, 3, 8] -> [6, 8] keeps its last axis as it
 * is: within a run the output index is made linear and taken apart again. */
const tl_expr *tl_value_reshape(tl_lower *l, const tl_node *n, tl_index index)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_shape *in = &n->inputs[0]->shape, *out = &n->outputs[0]->shape;
    const tl_expr *from[TL_MAX_RANK];
    if (tl_shape_elements(out) == 0)
        return tl_constant(arena, n->outputs[0]->dtype, 0);
    int i = in->rank, o = out->rank;
    while (i > 0 || o > 0) {
        int first_in = i, first_out = o;
        int64_t ins = 1, outs = 1;
        do { /* from the right; axes of extent 1 at the very left join the last run */
            if ((ins <= outs && first_in > 0) || first_out == 0)
                ins *= in->dims[--first_in].extent;
            else
                outs *= out->dims[--first_out].extent;
        } while ((ins != outs || first_in == i) && (first_in > 0 || first_out > 0));

        const tl_expr *linear = tl_int(arena, 0);
        for (int k = first_out; k < o; k++)
            linear = tl_add(arena, tl_muli(arena, linear, out->dims[k].extent), index[k]);
        int64_t stride = 1;
        for (int k = i - 1; k >= first_in; k--) {
            int64_t extent = in->dims[k].extent;
            from[k] = tl_floordiv_expr(arena, linear, tl_int(arena, stride));
            if (k > first_in)
                from[k] = tl_floormod_expr(arena, from[k], tl_int(arena, extent > 0 ? extent : 1));
            if (extent == 1)
                from[k] = tl_int(arena, 0);
            stride *= extent > 0 ? extent : 1;
        }
        i = first_in;
        o = first_out;
    }
    return tl_lower_read(l, n->inputs[0], from);
}

const tl_expr *tl_value_slice(tl_lower *l, const tl_node *n, tl_index index)
{
    tl_arena *arena = tl_lower_arena(l);
    const int64_t *starts, *steps;
    int rank = tl_attr_ints(n, "starts", &starts);
    tl_attr_ints(n, "steps", &steps);
    const tl_expr *from[TL_MAX_RANK];
    for (int i = 0; i < rank; i++)
        from[i] = tl_addi(arena, tl_muli(arena, index[i], steps[i]), starts[i]);
    return tl_lower_read(l, n->inputs[0], from);
}

const tl_expr *tl_value_concat(tl_lower *l, const tl_node *n, tl_index index)
{
    tl_arena *arena = tl_lower_arena(l);
    int axis = (int)tl_attr_int(n, "axis", 0);
    const tl_expr *from[TL_MAX_RANK], *value = NULL;
    memcpy(from, index, sizeof *from * (size_t)n->outputs[0]->shape.rank);
    int64_t end = n->outputs[0]->shape.dims[axis].extent;
    for (int i = n->input_count - 1; i >= 0; i--) {
        int64_t extent = n->inputs[i]->shape.dims[axis].extent;
        if (extent == 0)
            continue;
        from[axis] = tl_addi(arena, index[axis], extent - end);
        const tl_expr *part = tl_lower_read(l, n->inputs[i], from);
        value = value == NULL
                    ? part
                    : tl_select(arena, tl_lt(arena, index[axis], tl_int(arena, end)), part, value);
        end -= extent;
    }
    return value != NULL ? value : tl_constant(arena, n->outputs[0]->dtype, 0);
}

/* The lowering `parts`: a nest a part, for parts in blocks of a plain result. A nest of all of them would choose between two
 * loads element by element, and lanes gather from each; of one part it turns a block around (sketch_turn_result.c). */
bool tl_lowers_parts(const tl_node *n)
{
    bool is_blocked = false;
    for (int i = 0; n->op == TL_OP_CONCAT && i < n->input_count; i++)
        is_blocked |= tl_layout_block(&n->inputs[i]->layout, 1) > 1;
    /* a halo is as good as none: its zeros are nests of their own */
    return is_blocked && tl_layout_block(&n->outputs[0]->layout, 1) == 1;
}

void tl_stages_parts(tl_lower *l, const tl_node *n)
{
    tl_arena *arena = tl_lower_arena(l);
    int axis = (int)tl_attr_int(n, "axis", 0), rank = n->outputs[0]->shape.rank;
    tl_view out = tl_lower_accumulator(l, n, n->outputs[0]->dtype, true);
    int64_t before = 0;
    for (int i = 0; i < n->input_count; i++) {
        const tl_shape *part = &n->inputs[i]->shape;
        const tl_expr *from[TL_MAX_RANK], *to[TL_MAX_RANK];
        if (part->dims[axis].extent == 0)
            continue;
        tl_block_nest nest = tl_nest_begin(l, "part");
        for (int a = 0; a < rank; a++) {
            const char *name = tl_arena_format(arena, "i%d", a);
            from[a] = tl_nest_iter(&nest, TL_ITER_SPATIAL, name, part->dims[a].extent);
            to[a] = a == axis ? tl_addi(arena, from[a], before) : from[a];
        }
        tl_nest_store(&nest, &out, to, tl_lower_read(l, n->inputs[i], from));
        before += part->dims[axis].extent;
    }
    tl_lower_locals(l, n)->place[0] = out;
}

const tl_expr *tl_value_parts(tl_lower *l, const tl_node *n, tl_index index)
{
    return tl_view_load(l, &tl_lower_locals(l, n)->place[0], index);
}

static const tl_expr *padded_index(tl_arena *arena, char mode, const tl_expr *at, int64_t extent)
{
    const tl_expr *zero = tl_int(arena, 0), *last = tl_int(arena, extent - 1);
    if (mode == 'e')
        return tl_min(arena, tl_max(arena, at, zero), last);
    if (mode == 'w')
        return tl_floormod_expr(arena, at, tl_int(arena, extent));
    const tl_expr *front = tl_max(arena, at, tl_sub(arena, zero, at)); /* |at| */
    return tl_min(arena, front, tl_sub(arena, tl_int(arena, 2 * extent - 2), front));
}

const tl_expr *tl_value_pad(tl_lower *l, const tl_node *n, tl_index index)
{
    tl_arena *arena = tl_lower_arena(l);
    const tl_value *x = n->inputs[0];
    const int64_t *pads;
    tl_attr_ints(n, "pads", &pads);
    char mode = tl_attr_string(n, "mode", "constant")[0];
    const tl_expr *from[TL_MAX_RANK], *inside = NULL;
    for (int i = 0; i < x->shape.rank; i++) {
        int64_t extent = x->shape.dims[i].extent;
        from[i] = tl_addi(arena, index[i], -pads[i]);
        if (mode == 'c')
            inside = tl_inside(arena, inside, from[i], extent);
        else if (pads[i] > 0 || pads[x->shape.rank + i] > 0)
            from[i] = padded_index(arena, mode, from[i], extent);
    }
    const tl_expr *value = tl_lower_read(l, x, from);
    if (inside == NULL)
        return value;
    const tl_expr *otherwise = tl_constant(arena, x->dtype, 0);
    if (n->input_count > 2 && n->inputs[2] != NULL) {
        const tl_expr *zero[TL_MAX_RANK];
        for (int i = 0; i < n->inputs[2]->shape.rank; i++)
            zero[i] = tl_int(arena, 0);
        otherwise = tl_lower_read(l, n->inputs[2], zero);
    }
    return tl_select(arena, inside, value, otherwise);
}
