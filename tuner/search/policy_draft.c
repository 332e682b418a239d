/* tuner/search/policy_draft.c: a cheap model proposes, few are measured: of many random points those that the analytic
 * model likes best. What it says is never corrected by measurements: how far it gets shows what the model is worth. */
#include <stdlib.h>
#include "tuner/search/policy_private.h"

/* Points sampled for one that is measured, of which there is a round. */
enum { ROUND = 32, SAMPLES = 16 * ROUND };

static void choose(tl_explorer *x, int count)
{
    int taken = tl_explorer_take_planned(x, count);
    while (taken < count) {
        tl_explorer_draft(x, SAMPLES, ROUND, &x->plan);
        int more = tl_explorer_take_planned(x, count - taken);
        if (more == 0)
            return;
        taken += more;
    }
}

static const tl_method method = { choose, "analytic", 0, 1 << 30, 0 };

static tl_status create(const tl_search *search, tl_policy **out, tl_diag *diag)
{
    return tl_explorer_create(search, &tl_policy_draft, &method, out, diag);
}

const tl_policy_type tl_policy_draft = {
    "draft", ROUND / 2, create, tl_explorer_destroy, tl_explorer_propose, tl_explorer_learn
};
