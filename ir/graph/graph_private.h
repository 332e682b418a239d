/* ir/graph/graph_private.h: what the files of graphs share. */
#ifndef TL_IR_GRAPH_GRAPH_PRIVATE_H
#define TL_IR_GRAPH_GRAPH_PRIVATE_H
#include "ir/graph/graph.h"

enum {
    TL_GRAPH_PARSED_ELEMENTS =
        1 << 24, /* the most zeros that `...` may stand for: the text itself is no measure of it */
};

/* Makes the uses of all values anew, in the order of the nodes. */
void tl_graph_sort_uses(tl_graph *g);

#endif
