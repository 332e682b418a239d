/* tuner/search/policy_auto.c: the default policy, made for a hundred trials rather than a thousand.
 *
 * The default schedules come first and are near the top of their spaces: random points hardly ever beat them. The best
 * of them has its switches turned (screen_switches.c), and the search goes on around the best that is known. Gaussian processes
 * choose among thousands of points there (expected_gain.c); when they see nothing that is worth a trial, coordinate descent
 * tries what is left around the best. What was ahead in unbroken company is heard again when the core is calmer. */
#include "tuner/search/policy_private.h"

enum { WIDEST = 4, APPEALS = 2 };

static void choose(tl_explorer *x, int count)
{
    /* those who were trained before may know what the switches would show */
    count -= tl_explorer_screen(x, x->experts.count > 0 ? (count + 1) / 2 : count);
    if (count > 0)
        tl_explorer_improve(x, count);
    tl_explorer_descend(x, WIDEST, false);
}

static const tl_method method = { choose, "analytic", 0, 1 << 30, APPEALS };

static tl_status create(const tl_search *search, tl_policy **out, tl_diag *diag)
{
    return tl_explorer_create(search, &tl_policy_auto, &method, out, diag);
}

const tl_policy_type tl_policy_auto = {
    "auto", 8, create, tl_explorer_destroy, tl_explorer_propose, tl_explorer_learn
};
