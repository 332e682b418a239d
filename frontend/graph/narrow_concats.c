/* frontend/graph/narrow_concats.c: a Concat of many parts becomes a tree of Concats of few.
 *
 *     Concat(x0, ..., x999)  ->  Concat(Concat(x0, ..., x31), Concat(x32, ..., x63), ...)
 *
 * A Concat's kernel asks for each element which part it is from, one test after the other, and has a parameter for each
 * part: its work, its code and the time to compile it would grow with the square of their number, or faster. In a tree an element
 * is copied once a level; kernels that concatenate alike shapes share their code. */
#include "frontend/graph/graph_passes.h"

/* Parts first..first + count of a Concat, as a value of their own. */
static tl_value *concat_of(tl_graph *g, const tl_node *n, tl_value *const *parts, int count,
                           int number)
{
    int axis = (int)tl_attr_int(n, "axis", 0);
    tl_shape shape = parts[0]->shape;
    for (int i = 1; i < count; i++)
        shape.dims[axis].extent += parts[i]->shape.dims[axis].extent;
    const char *name = tl_arena_format(g->arena, "%s.%d", n->outputs[0]->name, number);
    tl_value *y = tl_graph_value(g, name, n->outputs[0]->dtype, &shape);
    tl_node *concat = tl_graph_node(g, TL_OP_CONCAT, n->name, count, parts, 1, &y);
    tl_attr_set_int(g, concat, "axis", axis);
    return y;
}

tl_status tl_narrow_concats(tl_graph *g, tl_diag *diag)
{
    (void)diag;
    int node_count = g->node_count;
    for (int i = 0; i < node_count; i++) {
        tl_node *n = g->nodes[i];
        if (n->dead || n->op != TL_OP_CONCAT)
            continue;
        for (int number = 0; n->input_count > TL_MOST_CONCAT_PARTS;) {
            int count = 0;
            tl_value **joined = TL_NEW_ARRAY(g->arena, tl_value *, n->input_count);
            for (int first = 0; first < n->input_count; first += TL_MOST_CONCAT_PARTS) {
                int rest = n->input_count - first;
                tl_value *const *parts = n->inputs + first;
                joined[count++] =
                    rest == 1 ? parts[0]
                              : concat_of(g, n, parts,
                                          rest < TL_MOST_CONCAT_PARTS ? rest : TL_MOST_CONCAT_PARTS,
                                          number++);
            }
            tl_node_set_inputs(g, n, count, joined);
        }
    }
    return TL_OK;
}
