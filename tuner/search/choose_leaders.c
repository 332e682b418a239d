/* tuner/search/choose_leaders.c: around whom the search goes on: the best whose loops differ, and the best of each lowering.
 *
 * Of ten that are as good as the best, most have its loops and only fetch ahead or unroll otherwise. Were they the leaders,
 * no other tile were ever two steps away: conv_relu_3's best tile is wider and lower than the default's, and the wide
 * one alone is no better. */
#include "tuner/search/decision_kind.h"
#include "tuner/search/policy_private.h"

typedef bool alike(const tl_point *a, const tl_point *b);

/* The catalog keeps a decision once: whoever has the same one has its options. */
static bool has_answer(const tl_point *point, const tl_decision *d)
{
    for (int i = 0; i < point->count; i++)
        if (point->decisions[i].options == d->options)
            return point->decisions[i].taken == d->taken;
    return false;
}

/* Whether b has all answers of a that shape loops. */
static bool has_loops(const tl_point *b, const tl_point *a)
{
    for (int i = 0; i < a->count; i++)
        if (tl_decision_kind_of(&a->decisions[i]) != TL_DECISION_UNROLL &&
            !has_answer(b, &a->decisions[i]))
            return false;
    return true;
}

static bool same_lowering(const tl_point *a, const tl_point *b)
{
    return a->lowering == b->lowering;
}

static bool same_loops(const tl_point *a, const tl_point *b)
{
    return same_lowering(a, b) && has_loops(a, b) && has_loops(b, a);
}

static bool is_among(tl_explorer *x, int entry, alike *like, const int *leaders, int count)
{
    tl_point point = tl_catalog_at(x->catalog, entry)->point;
    for (int i = 0; i < count; i++)
        if (like(&tl_catalog_at(x->catalog, leaders[i])->point, &point))
            return true;
    return false;
}

int tl_explorer_lead(tl_explorer *x, int overall, int most, int *out)
{
    int best[TL_SURROGATE_POINTS], found = 0;
    int count = tl_explorer_leaders(x, TL_SURROGATE_POINTS, best);
    for (int i = 0; i < count && found < overall; i++)
        if (!is_among(x, best[i], same_loops, out, found))
            out[found++] = best[i];
    for (int i = 0; i < count && found < most; i++)
        if (!is_among(x, best[i], same_lowering, out, found))
            out[found++] = best[i];
    return found;
}
