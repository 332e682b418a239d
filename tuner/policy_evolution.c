/* tuner/policy_evolution.c: Ansor's search with its constants, the baseline that others are compared with: rounds of a
 * batch, scores of the cost model, random ones
 * until the first 64 results are in. */
#include "tuner/policy_private.h"

enum { BATCH = 64, WARM_UP = 64 };

static const tl_evolution ansor = {
    .population = 2048, .generations = 4, .mutation = 0.85, .measured_part = 0.2, .epsilon = 0.05
};

static void choose(tl_explorer *x, int count)
{
    int taken = tl_explorer_take_planned(x, count);
    while (taken < count) {
        tl_explorer_evolve(x, &ansor, BATCH, &x->plan);
        int more = tl_explorer_take_planned(x, count - taken);
        if (more == 0)
            return;
        taken += more;
    }
}

static tl_status create(const tl_search *search, tl_policy **out, tl_diag *diag)
{
    return tl_explorer_create(search, &tl_policy_evolution, choose, out, diag);
}

const tl_policy_type tl_policy_evolution = {
    "evolution", 64, create, tl_explorer_destroy, tl_explorer_propose, tl_explorer_learn
};
