/* tuner/screen.c: what is tried right after the default schedules, whatever comes of it.
 *
 * Whether to fetch ahead and how far to unroll is worth a few percent together and may lose alone: single steps from the
 * best do not see it. So these switches are turned in all combinations, each in all stages: a full factorial design. */
#include <string.h>
#include "tuner/decision_kind.h"
#include "tuner/policy_private.h"

/* Decisions that leave the loops as they are, the switch that turns them, and to which end: the least amount or the
 * largest. */
static const struct {
    const char *role;
    int number;
    bool to_largest;
} rows[] = {
    { "prefetch", 0, false },
    { "unroll", 1, true },
    { "next_panel", 2, false },
    { "next_plane", 2, false },
};
enum { SWITCHES = 3, ROWS = sizeof rows / sizeof *rows };
enum { MOST_DECISIONS = 64 };

static int64_t end_of(const tl_decision *d, bool is_largest)
{
    int64_t end = d->options[0];
    for (int i = 1; i < d->count; i++)
        if (is_largest == (d->options[i] > end))
            end = d->options[i];
    return end;
}

/* The answer after the switches have been turned whose bits, by their numbers, are set. */
static int64_t turn(const tl_decision *d, unsigned switches)
{
    for (int i = 0; i < ROWS; i++)
        if ((switches >> rows[i].number & 1) != 0 && strcmp(tl_decision_role(d), rows[i].role) == 0)
            return end_of(d, rows[i].to_largest);
    return d->options[d->taken];
}

static int build_corner(tl_explorer *x, const tl_point *center, unsigned switches)
{
    tl_wish wishes[MOST_DECISIONS];
    int count = center->count < MOST_DECISIONS ? center->count : MOST_DECISIONS;
    for (int i = 0; i < count; i++) {
        const tl_decision *d = &center->decisions[i];
        wishes[i] = (tl_wish){ d->name, turn(d, switches) };
    }
    return tl_catalog_build(x->catalog, center->lowering, wishes, count);
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
        for (unsigned switches = 1; switches < 1U << SWITCHES; switches++)
            tl_plan_add(&x->plan, build_corner(x, &point, switches), 0, "screen");
        x->is_screened = true;
    }
    return tl_explorer_take_planned(x, count);
}
