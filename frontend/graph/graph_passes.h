/* frontend/graph/graph_passes.h: the passes of graph_passes.def. Each expects and leaves dtypes and static shapes on every
 * value; the driver (run_graph_passes.c) tidies and verifies the graph after each. */
#ifndef TL_FRONTEND_GRAPH_GRAPH_PASSES_H
#define TL_FRONTEND_GRAPH_GRAPH_PASSES_H
#include "ir/graph/graph.h"
#include "ir/program/target.h"

typedef tl_status tl_graph_pass(tl_graph *g, tl_diag *diag);
typedef tl_status tl_target_pass(tl_graph *g, const tl_target *target, tl_diag *diag);
#define GRAPH_PASS(stage, name, rounding, needed, leaves)  tl_graph_pass tl_##name;
#define TARGET_PASS(stage, name, rounding, needed, leaves) tl_target_pass tl_##name;
#include "frontend/graph/graph_passes.def"
#undef GRAPH_PASS
#undef TARGET_PASS

/* Parts of a Concat, and of several that one kernel computes (narrow_concats.c). */
enum { TL_MOST_CONCAT_PARTS = 32 };

/* One pass by its name, with what the driver does around it (for tests and for looking). `target` may be NULL where the pass
 * asks none. */
tl_status tl_graph_run_pass(tl_graph *g, const char *name, const tl_target *target, tl_diag *diag);

#endif
