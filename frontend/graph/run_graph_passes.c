/* frontend/graph/run_graph_passes.c: runs the passes of graph_passes.def; knows nothing about any of them. */
#include "frontend/graph/graph_passes.h"
#include <string.h>
#include "frontend/frontend.h"

static const struct {
    const char *name;
    tl_graph_pass *run;
    enum { ROUNDING_same, ROUNDING_other } rounding;
} passes[] = {
#define GRAPH_PASS(name, rounding, leaves) { #name, tl_##name, ROUNDING_##rounding },
#include "frontend/graph/graph_passes.def"
#undef GRAPH_PASS
};
enum { PASS_COUNT = sizeof passes / sizeof passes[0] };

static tl_status run(tl_graph *g, int i, tl_diag *diag)
{
    tl_status status = passes[i].run(g, diag);
    if (status == TL_OK)
        status = tl_graph_tidy(g, diag);
#ifndef NDEBUG
    if (status == TL_OK)
        status = tl_graph_verify(g, diag);
#endif
    if (status != TL_OK)
        tl_context(diag, "pass %s of graph %.200s", passes[i].name, g->name);
    return status;
}

tl_status tl_graph_run_pass(tl_graph *g, const char *name, tl_diag *diag)
{
    for (int i = 0; i < PASS_COUNT; i++)
        if (strcmp(passes[i].name, name) == 0)
            return run(g, i, diag);
    return tl_fail(diag, TL_BAD_ARGUMENT, "there is no graph pass '%.80s'", name);
}

tl_status tl_graph_prepare(tl_graph *g, tl_numerics numerics, tl_diag *diag)
{
    TL_TRY(tl_infer_shapes(g, diag));
    for (int i = 0; i < PASS_COUNT; i++)
        if (numerics == TL_NUMERICS_RELAXED || passes[i].rounding == ROUNDING_same)
            TL_TRY(run(g, i, diag));
    return tl_graph_verify(g, diag);
}
