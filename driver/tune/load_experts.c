/* driver/tune/load_experts.c: cost models from files, and those that come with tilth. */
#include "driver/tune/load_experts.h"
#include <string.h>
#include "tuner/search/tokens.h"

/* Takes the model over. */
static tl_status add(tl_expert_list *list, tl_cost_model *model, const char *name, tl_diag *diag)
{
    tl_sample_shape shape = tl_sample_shape_of_points();
    if (list->count == TL_MOST_EXPERTS) {
        tl_cost_model_destroy(model);
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "--cost-model %s: there are more than %d models (default is two)", name,
                       TL_MOST_EXPERTS);
    }
    list->models[list->count++] = model;
    tl_status status = tl_cost_model_fits(model, &shape, diag);
    if (status != TL_OK)
        tl_context(diag, "--cost-model %s", name);
    return status;
}

/* What does not fit this tilth is left out. */
static tl_status add_defaults(tl_expert_list *list, tl_diag *diag)
{
    const tl_sample_shape shape = tl_sample_shape_of_points();
    for (int i = 0; i < TL_DEFAULT_COUNT; i++) {
        tl_cost_model *model;
        if (tl_cost_model_default((tl_default_model)i, &model) != TL_OK || model == NULL)
            continue;
        if (tl_cost_model_fits(model, &shape, NULL) != TL_OK)
            tl_cost_model_destroy(model);
        else
            TL_TRY(add(list, model, "default", diag));
    }
    return TL_OK;
}

tl_status tl_experts_load(const tl_text_list *names, tl_expert_list *out, tl_diag *diag)
{
    *out = (tl_expert_list){ 0 };
    if (names->count == 0)
        return add_defaults(out, diag);
    for (int i = 0; i < names->count; i++) {
        tl_cost_model *model;
        const char *name = names->items[i];
        if (strcmp(name, "none") == 0 && names->count > 1)
            return tl_fail(diag, TL_BAD_ARGUMENT, "--cost-model: none goes by itself");
        if (strcmp(name, "none") == 0)
            break;
        if (strcmp(name, "default") == 0) {
            TL_TRY(add_defaults(out, diag));
            continue;
        }
        TL_TRY(tl_cost_model_load(name, &model, diag));
        TL_TRY(add(out, model, name, diag));
    }
    return TL_OK;
}

void tl_experts_unload(tl_expert_list *experts)
{
    for (int i = 0; i < experts->count; i++)
        tl_cost_model_destroy(experts->models[i]);
    experts->count = 0;
}
