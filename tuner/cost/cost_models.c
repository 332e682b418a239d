/* tuner/cost/cost_models.c: the table of cost models. */
#include <string.h>
#include "tuner/cost/cost_private.h"

const tl_cost_model_type *const tl_cost_models[] = {
#define COST_MODEL(name, words) &tl_cost_##name,
#include "tuner/cost/cost_models.def"
#undef COST_MODEL
};
const char *const tl_cost_model_words[] = {
#define COST_MODEL(name, words) words,
#include "tuner/cost/cost_models.def"
#undef COST_MODEL
};
const int tl_cost_model_count = sizeof tl_cost_models / sizeof *tl_cost_models;

const tl_cost_model_type *tl_cost_model_find(const char *name)
{
    for (int i = 0; i < tl_cost_model_count; i++)
        if (strcmp(tl_cost_models[i]->name, name) == 0)
            return tl_cost_models[i];
    return NULL;
}

tl_status tl_cost_model_create(const char *name, const char *settings, uint64_t seed,
                               tl_cost_model **out, tl_diag *diag)
{
    const tl_cost_model_type *type = tl_cost_model_find(name);
    if (type == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "there is no cost model \"%.60s\"", name);
    return type->create(settings, seed, out, diag);
}
