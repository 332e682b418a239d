/* frontend/graph/run_graph_passes.c: runs the passes of graph_passes.def; knows nothing about any of them. */
#include "frontend/graph/graph_passes.h"
#include <string.h>
#include "frontend/frontend.h"

typedef enum { STAGE_MODEL, STAGE_TARGET, STAGE_LAYOUT } pass_stage;

static const struct {
    const char *name;
    pass_stage stage;
    enum { ROUNDING_same, ROUNDING_other } rounding;
    bool is_needed;
    tl_graph_pass *run; /* NULL: it asks the target */
    tl_target_pass *run_for;
} passes[] = {
#define GRAPH_PASS(stage, name, rounding, needed, leaves) \
    { #name, STAGE_##stage, ROUNDING_##rounding, needed, tl_##name, NULL },
#define TARGET_PASS(stage, name, rounding, needed, leaves) \
    { #name, STAGE_##stage, ROUNDING_##rounding, needed, NULL, tl_##name },
#include "frontend/graph/graph_passes.def"
#undef GRAPH_PASS
#undef TARGET_PASS
};
enum { PASS_COUNT = sizeof passes / sizeof passes[0] };

static tl_status run(tl_graph *g, int i, const tl_target *target, tl_diag *diag)
{
    tl_status status =
        passes[i].run != NULL ? passes[i].run(g, diag) : passes[i].run_for(g, target, diag);
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

bool tl_graph_leaves_out(const char *without, const char *name)
{
    size_t size = strlen(name);
    while (without != NULL && *without != '\0') {
        size_t length = strcspn(without, ",");
        if (length == size && memcmp(without, name, size) == 0)
            return true;
        without += length + (without[length] == ',');
    }
    return false;
}

/* On a graph, then on the bodies of those of its nodes that are left. As deep as graphs are nested. */
static tl_status run_stage(tl_graph *g, pass_stage stage, const tl_target *target,
                           tl_numerics numerics, tl_diag *diag)
{
    TL_TRY(tl_graph_tidy(g, diag));
    for (int i = 0; i < PASS_COUNT; i++)
        if (passes[i].stage == stage &&
            (numerics != TL_NUMERICS_STRICT || passes[i].rounding == ROUNDING_same) &&
            !tl_graph_leaves_out(g->without, passes[i].name))
            TL_TRY(run(g, i, target, diag));
    for (int i = 0; i < g->node_count; i++)
        for (int k = 0; k < tl_op_bodies(g->nodes[i]->op); k++) {
            g->nodes[i]->bodies[k]->without = g->without;
            TL_TRY(run_stage(g->nodes[i]->bodies[k], stage, target, numerics, diag));
        }
    return TL_OK;
}

tl_status tl_graph_run_pass(tl_graph *g, const char *name, const tl_target *target, tl_diag *diag)
{
    TL_TRY(tl_graph_tidy(g, diag));
    for (int i = 0; i < PASS_COUNT; i++)
        if (strcmp(passes[i].name, name) == 0)
            return passes[i].run == NULL && target == NULL
                       ? tl_fail(diag, TL_BAD_ARGUMENT, "graph pass '%s' asks the target", name)
                       : run(g, i, target, diag);
    return tl_fail(diag, TL_BAD_ARGUMENT, "there is no graph pass '%.80s'", name);
}

const char *tl_graph_optional_pass(int index)
{
    for (int i = 0; i < PASS_COUNT; i++)
        if (!passes[i].is_needed && index-- == 0)
            return passes[i].name;
    return NULL;
}

tl_status tl_graph_prepare(tl_graph *g, tl_numerics numerics, tl_diag *diag)
{
    TL_TRY(tl_infer_shapes(g, diag));
    TL_TRY(run_stage(g, STAGE_MODEL, NULL, numerics, diag));
    return tl_graph_verify(g, diag);
}

tl_status tl_graph_fit(tl_graph *g, const tl_target *target, tl_numerics numerics, tl_diag *diag)
{
    return run_stage(g, STAGE_TARGET, target, numerics, diag);
}

tl_status tl_assign_layouts(tl_graph *g, const tl_target *target, tl_diag *diag)
{
    return run_stage(g, STAGE_LAYOUT, target, TL_NUMERICS_STRICT, diag);
}
