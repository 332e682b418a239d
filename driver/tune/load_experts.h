/* driver/tune/load_experts.h: the trained cost models that a search asks. */
#ifndef TL_DRIVER_TUNE_LOAD_EXPERTS_H
#define TL_DRIVER_TUNE_LOAD_EXPERTS_H
#include "driver/cli/cli.h"
#include "tuner/search/search.h"

typedef struct {
    int count;
    tl_cost_model *models[TL_MOST_EXPERTS];
} tl_expert_list;

/* Of --cost-model: paths of files; "default", what comes with tilth; or "none". No names: default. TL_BAD_ARGUMENT: too
 * many, none beside others, or a model that was trained with other features than this tilth's; what comes with tilth and
 * does not fit is left out. Unload it also on failure. */
tl_status tl_experts_load(const tl_text_list *names, tl_expert_list *out, tl_diag *diag);
void tl_experts_unload(tl_expert_list *experts);

#endif
