/* tuner/search/policy_droplet.c: coordinate descent around the best ("Explore as a Storm, Exploit as a Raindrop", arXiv
 * 2406.20037). From the best program measured so far every decision is moved by one option, either way; steps of 2, 4
 * and 8 options fill the batch, so that a long way is found at once; what is better is the new centre, and
 * the decision that led there goes on first. When no step is left around the best, the paper's search ends; this one goes on from
 * the best of those around which there are steps, and with random points after that. */
#include "tuner/search/policy_private.h"

enum { WIDEST = 8 };

static void choose(tl_explorer *x, int count)
{
    (void)count;
    tl_explorer_descend(x, WIDEST, false);
}

static const tl_method method = { choose, NULL, 0, 0, 0 };

static tl_status create(const tl_search *search, tl_policy **out, tl_diag *diag)
{
    return tl_explorer_create(search, &tl_policy_droplet, &method, out, diag);
}

const tl_policy_type tl_policy_droplet = {
    "droplet", 16, create, tl_explorer_destroy, tl_explorer_propose, tl_explorer_learn
};
