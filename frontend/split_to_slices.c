/* frontend/split_to_slices.c: Split(x) -> one Slice for each part that is read. */
#include "frontend/graph_passes.h"

static void make_slice(tl_graph *g, const tl_node *split, int part, int64_t start)
{
    tl_value *x = split->inputs[0], *y = split->outputs[part];
    int axis = (int)tl_attr_int(split, "axis", 0), rank = x->shape.rank;
    int64_t starts[TL_MAX_RANK], ends[TL_MAX_RANK], axes[TL_MAX_RANK], steps[TL_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        starts[i] = i == axis ? start : 0;
        ends[i] = starts[i] + y->shape.dims[i].extent;
        axes[i] = i;
        steps[i] = 1;
    }
    tl_node *slice =
        tl_graph_node(g, TL_OP_SLICE, tl_arena_format(g->arena, "%s.%d", split->name, part), 1, &x,
                      1, &y);
    tl_attr_set_ints(g, slice, "starts", starts, rank);
    tl_attr_set_ints(g, slice, "ends", ends, rank);
    tl_attr_set_ints(g, slice, "axes", axes, rank);
    tl_attr_set_ints(g, slice, "steps", steps, rank);
}

tl_status tl_split_to_slices(tl_graph *g, tl_diag *diag)
{
    (void)diag;
    int count = g->node_count;
    for (int i = 0; i < count; i++) {
        tl_node *n = g->nodes[i];
        const int64_t *sizes;
        if (n->dead || n->op != TL_OP_SPLIT)
            continue;
        int parts = tl_attr_ints(n, "split", &sizes);
        int64_t start = 0;
        for (int part = 0; part < parts; part++) {
            if (n->outputs[part] != NULL)
                make_slice(g, n, part, start);
            start += sizes[part];
        }
        n->dead = true;
    }
    return TL_OK;
}
