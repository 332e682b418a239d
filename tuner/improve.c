/* tuner/improve.c: candidates around the leaders, chosen by what a Gaussian process expects to gain.
 *
 * Points are made by changing answers of a leader: every single step, a few steps at once, answers of another leader.
 * None is built before it is chosen: the process looks at decisions only. After each choice the process assumes that it
 * comes out as expected, so that a batch is not eight times the same idea. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tuner/policy_private.h"

/* LEADERS overall, and the best of each lowering; of each, JUMPS points with a few decisions changed and CROSSES with
 * another leader; SHORTLIST of those that promise most are looked at again after each choice. ROOM is left in the process for
 * what is being measured. */
enum { LEADERS = 6, MOST_LEADERS = 16, JUMPS = 128, CROSSES = 24, SHORTLIST = 96, ROOM = 64 };
enum { MOST_DECISIONS = 64 };

typedef struct {
    double gain;
    int lowering, count;
    tl_decision decisions[MOST_DECISIONS]; /* names and options are the catalog's */
} idea;

typedef struct {
    int count;
    idea ideas[SHORTLIST]; /* largest gain first */
} shortlist;

/* --- what is known ---------------------------------------------------------------------------------------------------- */

static void add_measured(tl_explorer *x, int entry)
{
    const tl_entry *e = tl_catalog_at(x->catalog, entry);
    double best = x->best != TL_NO_ENTRY ? tl_catalog_at(x->catalog, x->best)->score_ns : 1;
    double time = e->state == TL_ENTRY_RIGHT ? e->score_ns : 1e3 * best; /* it is cut to "bad" */
    tl_surrogate_add(x->surrogate, &e->point, log(time));
}

/* All that was measured, or the best and the newest of it. */
static bool recall(tl_explorer *x)
{
    enum { MOST = TL_SURROGATE_POINTS - ROOM };
    if (x->surrogate == NULL)
        x->surrogate = tl_surrogate_create();
    if (x->surrogate == NULL)
        return false;
    tl_surrogate_clear(x->surrogate);
    int chosen[MOST], count = 0;
    if (x->measured_count > MOST)
        count = tl_explorer_leaders(x, MOST / 2, chosen);
    for (int i = x->measured_count - 1; i >= 0 && count < MOST; i--) {
        bool again = false;
        for (int j = 0; j < count && !again; j++)
            again = chosen[j] == x->measured[i];
        if (!again)
            chosen[count++] = x->measured[i];
    }
    for (int i = 0; i < count; i++)
        add_measured(x, chosen[i]);
    if (x->measured_count > x->fitted_count + x->fitted_count / 6 + 3) {
        tl_surrogate_fit_weights(x->surrogate);
        x->fitted_count = x->measured_count;
    }
    bool known = tl_surrogate_solve(x->surrogate);
    for (int i = 0; i < tl_catalog_count(x->catalog); i++) {
        const tl_entry *e = tl_catalog_at(x->catalog, i);
        if (e->state == TL_ENTRY_PROPOSED && known)
            tl_surrogate_expect(x->surrogate, &e->point);
        else if (e->state == TL_ENTRY_PROPOSED) /* no result yet: all alike */
            tl_surrogate_add(x->surrogate, &e->point, 0);
    }
    return known || tl_surrogate_solve(x->surrogate);
}

/* --- ideas ------------------------------------------------------------------------------------------------------------- */

static tl_point point_of(const idea *i)
{
    return (tl_point){ i->lowering, i->count, i->decisions };
}

static bool same_answers(const idea *a, const idea *b)
{
    if (a->lowering != b->lowering || a->count != b->count)
        return false;
    for (int i = 0; i < a->count; i++)
        if (a->decisions[i].taken != b->decisions[i].taken)
            return false;
    return true;
}

static void insert(shortlist *list, const idea *new)
{
    int at = list->count;
    for (int i = 0; i < list->count; i++)
        if (list->ideas[i].gain == new->gain && same_answers(&list->ideas[i], new))
            return;
    if (list->count < SHORTLIST)
        list->count++;
    else if (list->ideas[--at].gain >= new->gain)
        return;
    for (; at > 0 && list->ideas[at - 1].gain < new->gain; at--)
        list->ideas[at] = list->ideas[at - 1];
    list->ideas[at] = *new;
}

static void judge(const tl_explorer *x, shortlist *list, idea *new)
{
    double mean;
    tl_point point = point_of(new);
    new->gain = tl_surrogate_gain(x->surrogate, &point, &mean);
    if (new->gain > 0)
        insert(list, new);
}

static idea idea_of(tl_explorer *x, int entry)
{
    const tl_point *point = &tl_catalog_at(x->catalog, entry)->point;
    idea out = { .lowering = point->lowering,
                 .count = point->count < MOST_DECISIONS ? point->count : MOST_DECISIONS };
    memcpy(out.decisions, point->decisions, sizeof *out.decisions * (size_t)out.count);
    return out;
}

static void judge_steps(tl_explorer *x, int leader, shortlist *list)
{
    idea base = idea_of(x, leader);
    for (int d = 0; d < base.count; d++) {
        int taken = base.decisions[d].taken;
        for (int o = 0; o < base.decisions[d].count; o++) {
            base.decisions[d].taken = o;
            if (o != taken)
                judge(x, list, &base);
        }
        base.decisions[d].taken = taken;
    }
}

/* A decision to an option near it, or any. */
static void jump(tl_explorer *x, tl_decision *d)
{
    int far = tl_random_below(&x->random, 3) == 0 ? d->count : 2;
    int to = d->taken + 1 + (int)tl_random_below(&x->random, far);
    if (tl_random_below(&x->random, 2) == 0)
        to = d->taken - 1 - (int)tl_random_below(&x->random, far);
    d->taken = to < 0 ? 0 : to >= d->count ? d->count - 1 : to;
}

static void judge_jumps(tl_explorer *x, int leader, shortlist *list)
{
    idea base = idea_of(x, leader);
    int open[MOST_DECISIONS], count = 0;
    for (int d = 0; d < base.count; d++)
        if (base.decisions[d].count > 1)
            open[count++] = d;
    for (int i = 0; i < JUMPS && count > 1; i++) {
        idea new = base;
        int64_t changes = 2 + tl_random_below(&x->random, 3);
        for (int64_t c = 0; c < changes; c++)
            jump(x, &new.decisions[open[tl_random_below(&x->random, count)]]);
        judge(x, list, &new);
    }
}

/* Half of the answers in which they differ come from the other. */
static void judge_crosses(tl_explorer *x, int leader, int other, shortlist *list)
{
    idea base = idea_of(x, leader), from = idea_of(x, other);
    for (int i = 0; i < CROSSES && base.lowering == from.lowering; i++) {
        idea new = base;
        for (int d = 0; d < new.count; d++)
            for (int o = 0; o < from.count; o++)
                if (new.decisions[d].name == from.decisions[o].name &&new.decisions[d].options ==
                        from.decisions[o].options &&
                    tl_random_below(&x->random, 2) == 0)
                    new.decisions[d].taken = from.decisions[o].taken;
        judge(x, list, &new);
    }
}

/* The best overall, and the best of each lowering that is not among them; before the first result, what was proposed. */
static int find_leaders(tl_explorer *x, int *leaders)
{
    int all[TL_SURROGATE_POINTS], count = tl_explorer_leaders(x, TL_SURROGATE_POINTS, all);
    int found = 0;
    for (int i = 0; count == 0 && i < tl_catalog_count(x->catalog) && found < LEADERS; i++)
        if (tl_catalog_at(x->catalog, i)->state == TL_ENTRY_PROPOSED)
            leaders[found++] = i;
    for (int i = 0; i < count && found < MOST_LEADERS; i++) {
        bool wanted = found < LEADERS;
        if (!wanted) {
            wanted = true;
            for (int j = 0; j < found && wanted; j++)
                wanted = tl_catalog_at(x->catalog, leaders[j])->point.lowering !=
                         tl_catalog_at(x->catalog, all[i])->point.lowering;
        }
        if (wanted)
            leaders[found++] = all[i];
    }
    return found;
}

static void gather(tl_explorer *x, shortlist *list)
{
    int leaders[MOST_LEADERS], count = find_leaders(x, leaders);
    list->count = 0;
    for (int i = 0; i < count; i++) {
        judge_steps(x, leaders[i], list);
        judge_jumps(x, leaders[i], list);
        if (count > 1)
            judge_crosses(x, leaders[i], leaders[tl_random_below(&x->random, count)], list);
    }
}

/* --- choosing ----------------------------------------------------------------------------------------------------------- */

static int build(tl_explorer *x, const idea *i)
{
    tl_wish wishes[MOST_DECISIONS];
    for (int d = 0; d < i->count; d++)
        wishes[d] =
            (tl_wish){ i->decisions[d].name, i->decisions[d].options[i->decisions[d].taken] };
    return tl_catalog_build(x->catalog, i->lowering, wishes, i->count);
}

/* Takes the first out and judges the rest again. */
static void drop_first(tl_explorer *x, shortlist *list, bool again)
{
    list->count--;
    memmove(list->ideas, list->ideas + 1, sizeof *list->ideas * (size_t)list->count);
    if (!again)
        return;
    int count = list->count;
    idea *rest = malloc(sizeof *rest * (size_t)(count + 1));
    if (rest == NULL) {
        x->failed = true;
        return;
    }
    memcpy(rest, list->ideas, sizeof *rest * (size_t)count);
    list->count = 0;
    for (int i = 0; i < count; i++)
        judge(x, list, &rest[i]);
    free(rest);
}

void tl_explorer_improve(tl_explorer *x, int count)
{
    shortlist *list = malloc(sizeof *list);
    if (list == NULL)
        x->failed = true;
    if (list == NULL || !recall(x)) {
        free(list);
        return;
    }
    gather(x, list);
    for (int taken = 0; taken < count && list->count > 0;) {
        double gain = list->ideas[0].gain;
        int entry = build(x, &list->ideas[0]);
        bool took = tl_explorer_take(x, entry, gain, "model");
        if (took)
            tl_surrogate_expect(x->surrogate, &tl_catalog_at(x->catalog, entry)->point);
        taken += took;
        drop_first(x, list, took);
    }
    free(list);
}
