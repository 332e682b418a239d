/* tuner/search/policy_evolution.c: Ansor's search with its constants, the baseline that others are compared with: rounds of a
 * batch; a model of boosted trees that learns all that was measured anew before each round; random scores until most
 * of the first batch is in. */
#include "tuner/search/policy_private.h"

enum { BATCH = 64 };

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

static const tl_method method = { choose, "trees", BATCH / 2, BATCH / 2, 0 };

static tl_status create(const tl_search *search, tl_policy **out, tl_diag *diag)
{
    return tl_explorer_create(search, &tl_policy_evolution, &method, out, diag);
}

const tl_policy_type tl_policy_evolution = {
    "evolution", BATCH, create, tl_explorer_destroy, tl_explorer_propose, tl_explorer_learn
};
