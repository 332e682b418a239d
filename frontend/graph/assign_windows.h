/* frontend/graph/assign_windows.h: values that lie inside another value's storage. */
#ifndef TL_FRONTEND_GRAPH_ASSIGN_WINDOWS_H
#define TL_FRONTEND_GRAPH_ASSIGN_WINDOWS_H
#include "ir/graph/graph.h"

/* Concat(Concat(a, b), c) for each Concat(a, b, c) beside a Concat(a, b), where both can be one piece of memory: DenseNet's
 * layers each concatenate everything before them. Keeps the topological order. */
void tl_nest_concats(tl_graph *g);
/* Sets `whole`, `whole_start` and `is_view` (frontend/value_notes.h) of all values, and gives those of one storage the same halo. They are unset,
 * and the other parts of the layouts known. */
void tl_assign_windows(tl_graph *g);

#endif
