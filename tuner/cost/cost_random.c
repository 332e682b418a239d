/* tuner/cost/cost_random.c: the cost model that knows nothing: random scores. */
#include <stdlib.h>
#include "runtime/base/random.h"
#include "tuner/cost/cost_private.h"

typedef struct {
    tl_cost_model model; /* first */
    tl_random random;
} random_model;

static tl_status create(uint64_t seed, tl_cost_model **out, tl_diag *diag)
{
    random_model *m = calloc(1, sizeof *m);
    if (m == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    m->model.type = &tl_cost_random;
    m->random = tl_random_make(seed);
    *out = &m->model;
    return TL_OK;
}

static bool predict(tl_cost_model *model, const tl_feature_set *programs, float *score)
{
    random_model *m = (random_model *)model;
    for (int i = 0; i < programs->count; i++)
        score[i] = (float)tl_random_unit(&m->random);
    return true;
}

static void destroy(tl_cost_model *model)
{
    free(model);
}

const tl_cost_model_type tl_cost_random = {
    "random", create, predict, tl_cost_learn_nothing, tl_cost_save_nothing, tl_cost_load_nothing,
    destroy
};
