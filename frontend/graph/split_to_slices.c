/* frontend/graph/split_to_slices.c: Split(x) -> one Slice for each part that is read. */
#include "frontend/graph/graph_passes.h"
#include "frontend/node/graph_questions.h"

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
        int axis = (int)tl_attr_int(n, "axis", 0);
        int64_t start = 0;
        for (int part = 0; part < parts; part++) {
            if (n->outputs[part] != NULL)
                tl_slice_node(g, tl_arena_format(g->arena, "%s.%d", n->name, part), n->inputs[0],
                              n->outputs[part], axis, start);
            start += sizes[part];
        }
        tl_node_kill(n);
    }
    return TL_OK;
}
