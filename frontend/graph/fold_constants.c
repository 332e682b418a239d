/* frontend/graph/fold_constants.c: nodes that depend on constants and shapes alone become constants.
 *
 *     Shape(x) -> [1, 3, 224, 224]        Gather([1, 3, 224, 224], 1) -> 3        Add(2, 3) -> 5 */
#include "frontend/node/fold_node.h"
#include "frontend/graph/graph_passes.h"

tl_status tl_fold_constants(tl_graph *g, tl_diag *diag)
{
    for (int i = 0; i < g->node_count; i++) { /* topological: one walk is enough */
        TL_TRY(tl_check_constants(g, g->nodes[i], diag));
        if (tl_node_is_foldable(g, g->nodes[i]))
            TL_TRY(tl_fold_node(g, g->nodes[i], diag));
    }
    return TL_OK;
}

tl_status tl_fold_again(tl_graph *g, tl_diag *diag)
{
    TL_TRY(tl_fold_constants(g, diag));
    TL_TRY(tl_graph_tidy(g, diag));
    return tl_remove_identities(g, diag);
}
