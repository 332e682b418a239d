/* tuner/search/screen_switches.c: what is tried right after the default schedules, whatever comes of it.
 *
 * Whether to fetch ahead and how far to unroll is worth a few percent together and may lose alone: single steps from the
 * best do not see it. So these switches are turned together, each in all stages, by a two-level design of eight runs, one
 * of which is the default: all combinations of three switches; with more, the others follow from those (Box, Hunter and
 * Hunter, "Statistics for Experimenters", 1978, chapter 12). */
#include <string.h>
#include "tuner/search/decision_kind.h"
#include "tuner/search/policy_private.h"

/* Decisions that leave the loops as they are, and the end to which they are turned: the least amount or the largest. */
static const struct {
    const char *role;
    bool to_largest;
} switches[] = {
    { "prefetch", false },   { "unroll", true },      { "vectors", true },
    { "next_panel", false }, { "next_plane", false },
};
enum { SWITCHES = sizeof switches / sizeof *switches, RUNS = 8, MOST_DECISIONS = 64 };
/* Of the first switch that changes anything, the second, and so on. One is turned in the runs whose number has an odd part
 * of these bits. */
static const unsigned columns[] = { 1, 2, 4, 7, 3 };
_Static_assert(SWITCHES <= sizeof columns / sizeof *columns, "every switch has a column");

/* The option that is least or largest. */
static int end_of(const tl_decision *d, bool is_largest)
{
    int end = 0;
    for (int i = 1; i < d->count; i++)
        if (is_largest == (d->options[i] > d->options[end]))
            end = i;
    return end;
}

static bool is_of(const tl_decision *d, int number)
{
    return strcmp(tl_decision_role(d), switches[number].role) == 0;
}

static bool changes_anything(const tl_point *center, int number)
{
    for (int i = 0; i < center->count; i++) {
        const tl_decision *d = &center->decisions[i];
        if (is_of(d, number) && end_of(d, switches[number].to_largest) != d->taken)
            return true;
    }
    return false;
}

static void turn(tl_decision *decisions, int count, int number)
{
    for (int i = 0; i < count; i++)
        if (is_of(&decisions[i], number))
            decisions[i].taken = end_of(&decisions[i], switches[number].to_largest);
}

static int build_run(tl_explorer *x, const tl_point *center, unsigned run)
{
    tl_decision decisions[MOST_DECISIONS];
    int count = center->count < MOST_DECISIONS ? center->count : MOST_DECISIONS;
    memcpy(decisions, center->decisions, sizeof *decisions * (size_t)count);
    for (int number = 0, used = 0; number < SWITCHES; number++)
        if (changes_anything(center, number) && __builtin_parity(run & columns[used++]))
            turn(decisions, count, number);
    tl_point point = { center->lowering, count, decisions };
    return tl_catalog_build_point(x->catalog, &point);
}

/* The best default schedule once all have a result, or the only one. TL_NO_ENTRY: not known yet. */
static int find_center(tl_explorer *x)
{
    int count = x->search.task->lowering_count;
    if (count == 1)
        return tl_catalog_build(x->catalog, 0, NULL, 0);
    for (int l = 0; l < count; l++) {
        int entry = tl_catalog_build(x->catalog, l, NULL, 0);
        if (entry != TL_NO_ENTRY && tl_catalog_at(x->catalog, entry)->state == TL_ENTRY_PROPOSED)
            return TL_NO_ENTRY;
    }
    return x->best;
}

int tl_explorer_screen(tl_explorer *x, int count)
{
    int center = x->is_screened ? TL_NO_ENTRY : find_center(x);
    if (center != TL_NO_ENTRY) {
        tl_point point = tl_catalog_at(x->catalog, center)->point;
        for (unsigned run = 1; run < RUNS; run++)
            tl_plan_add(&x->plan, build_run(x, &point, run), 0, "screen");
        x->is_screened = true;
    }
    return tl_explorer_take_planned(x, count);
}
