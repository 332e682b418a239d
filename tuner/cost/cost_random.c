/* tuner/cost/cost_random.c: the cost model that knows nothing: random times. */
#include <stdlib.h>
#include "runtime/base/random.h"
#include "tuner/cost/cost_private.h"

typedef struct {
    tl_cost_model model; /* first */
    tl_random random;
} random_model;

static tl_status create(const char *settings, uint64_t seed, tl_cost_model **out, tl_diag *diag)
{
    TL_TRY(tl_cost_settings_read("random", settings, NULL, 0, diag));
    random_model *m = calloc(1, sizeof *m);
    if (m == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    m->model.type = &tl_cost_random;
    m->model.seed = seed;
    m->random = tl_random_make(seed);
    *out = &m->model;
    return TL_OK;
}

static bool predict(tl_cost_model *model, const tl_cost_samples *programs, float *mean,
                    float *variance)
{
    random_model *m = (random_model *)model;
    for (int i = 0; i < programs->count; i++) {
        mean[i] = -(float)tl_random_unit(&m->random);
        variance[i] = 1;
    }
    return true;
}

static void destroy(tl_cost_model *model)
{
    free(model);
}

static void describe(const tl_cost_model *model, tl_text *out)
{
    (void)model;
    tl_text_add(out, "draws numbers; what it is trained with does not matter\n");
}

const tl_cost_model_type tl_cost_random = {
    .name = "random",
    .create = create,
    .destroy = destroy,
    .train = tl_cost_train_nothing,
    .adapt = tl_cost_adapt_nothing,
    .predict = predict,
    .gradients = tl_cost_no_gradients,
    .parameters = tl_cost_no_parameters,
    .write = tl_cost_write_nothing,
    .read = tl_cost_read_nothing,
    .describe = describe,
    .settings = tl_cost_no_settings,
};
