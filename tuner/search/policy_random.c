/* tuner/search/policy_random.c: points of the space with equal chances, until there are no more. */
#include "tuner/search/policy_private.h"

static void choose(tl_explorer *x, int count)
{
    for (int i = 0; i < count; i++)
        tl_explorer_take(x, tl_explorer_any(x), 0, "random");
}

static const tl_method method = { choose, NULL, 0, 0, 0 };

static tl_status create(const tl_search *search, tl_policy **out, tl_diag *diag)
{
    return tl_explorer_create(search, &tl_policy_random, &method, out, diag);
}

const tl_policy_type tl_policy_random = {
    "random", 16, create, tl_explorer_destroy, tl_explorer_propose, tl_explorer_learn
};
