/* tuner/search/expected_gain.c: candidates around the leaders, chosen by what Gaussian processes expect to gain.
 *
 * Points are made by changing answers of a leader: every single step, answers of another leader, a few steps at once.
 * Of the latter, while a screener has a say (screen_points.c), one of two is the best of several. A process that looks at
 * decisions only judges all of them, unbuilt. The best are built; a second process, which also knows what the cost model
 * guesses of a program, chooses among those and the ones that were left over before. After each choice it assumes that it
 * comes out as expected, so that a batch is not eight times the same idea. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tuner/search/decision_kind.h"
#include "tuner/search/policy_private.h"

/* LEADERS with different loops, and the best of each lowering; of each, JUMPS points with a few decisions changed and
 * CROSSES with another leader; a SHORTLIST of those that promise most, of which BUILT for each that is wanted are built.
 * BUILT_FOR_EXPERTS: as many when models that were trained before have a say, for they know programs and not points.
 * POOL: how many built ones are chosen from; DRAFTS: random ones among them from the beginning. ROOM is left in the
 * processes for what is being measured. */
enum { LEADERS = 6, MOST_LEADERS = 16, JUMPS = 40, CROSSES = 12, SHORTLIST = 64 };
/* Of so many jumps a screener chooses one. Were all of them judged, they would take the shortlist from the single steps, for the
 * less is known of a point, the more it may gain: simulated searches then took 1.3 times the trials. */
enum { SCREENED = 6 };
enum {
    BUILT = 2,
    BUILT_FOR_EXPERTS = 8,
    POOL = 256,
    DRAFTS = 24,
    ROOM = 64,
    KNOWN = TL_SURROGATE_POINTS - ROOM
};
/* An idea that keeps less of what it promised, once it is built, does not count as built; so many times more are at most, and
 * fewer when the processes are full: by then many are left over. */
#define KEPT            0.5
#define MOST_BUILT      2
#define MOST_BUILT_LATE 1.25
enum { MOST_DECISIONS = 64 };

typedef struct {
    double gain;
    int lowering, count;
    tl_decision decisions[MOST_DECISIONS]; /* names and options are the catalog's */
} idea;

typedef struct {
    int count;
    idea ideas[SHORTLIST];
    idea *best[SHORTLIST]; /* of them, largest gain first */
} shortlist;

/* --- what is known ---------------------------------------------------------------------------------------------------- */

/* What models say of an entry, each as something like the logarithm of a time: the method's own, then the experts. */
typedef double guesses[TL_SURROGATE_GUESSES];

static void guess(tl_explorer *x, const int *entries, int count, guesses *out)
{
    float score[POOL];
    bool known = tl_explorer_score(x, entries, count, score);
    if (x->experts.count > 0)
        tl_experts_expect(x, entries, count);
    for (int i = 0; i < count; i++) {
        out[i][0] = known ? -(double)score[i] : 0;
        for (int k = 0; k < x->experts.count; k++)
            out[i][k + 1] = (double)tl_catalog_at(x->catalog, entries[i])->expected[k];
    }
}

static double log_time(tl_explorer *x, int entry)
{
    const tl_entry *e = tl_catalog_at(x->catalog, entry);
    double best = x->best != TL_NO_ENTRY ? tl_catalog_at(x->catalog, x->best)->score_ns : 1;
    return log(e->state == TL_ENTRY_RIGHT ? e->score_ns : 1e3 * best); /* it is cut to "bad" */
}

/* All that was measured, or the best and the newest of it. */
static int choose_known(tl_explorer *x, int most, int *chosen)
{
    int count = 0;
    if (x->measured_count > most)
        count = tl_explorer_leaders(x, most / 2, chosen);
    for (int i = x->measured_count - 1; i >= 0 && count < most; i--) {
        bool again = false;
        for (int j = 0; j < count && !again; j++)
            again = chosen[j] == x->measured[i];
        if (!again)
            chosen[count++] = x->measured[i];
    }
    return count;
}

static int find_pending(tl_explorer *x, int most, int *out)
{
    int count = 0;
    for (int i = tl_catalog_count(x->catalog) - 1; i >= 0 && count < most; i--)
        if (tl_catalog_at(x->catalog, i)->state == TL_ENTRY_PROPOSED)
            out[count++] = i;
    return count;
}

static void expect(tl_explorer *x, int entry, const double *what)
{
    tl_point point = tl_catalog_at(x->catalog, entry)->point;
    tl_surrogate_expect(x->surrogate, &point, NULL);
    tl_surrogate_expect(x->informed, &point, what);
}

static void remember(tl_explorer *x, int entry, double time, const double *what)
{
    tl_point point = tl_catalog_at(x->catalog, entry)->point;
    tl_surrogate_add(x->surrogate, &point, time, NULL);
    tl_surrogate_add(x->informed, &point, time, what);
}

/* Weights are fitted again when there is a sixth more to learn from; once there is more than the processes hold, they
 * change little: when there is half more. */
static bool is_time_to_fit(const tl_explorer *x)
{
    int before = x->fitted_count;
    return x->measured_count > before + before / (before < KNOWN ? 6 : 2) + 3;
}

static bool recall(tl_explorer *x)
{
    int known[KNOWN], pending[ROOM / 2];
    guesses said[KNOWN];
    x->surrogate = x->surrogate != NULL ? x->surrogate : tl_surrogate_create(0);
    x->informed = x->informed != NULL ? x->informed : tl_surrogate_create(1 + x->experts.count);
    if (x->surrogate == NULL || x->informed == NULL) {
        x->failed = true;
        return false;
    }
    tl_surrogate_clear(x->surrogate);
    tl_surrogate_clear(x->informed);
    int count = choose_known(x, KNOWN, known), waiting = find_pending(x, ROOM / 2, pending);
    guess(x, known, count, said);
    for (int i = 0; i < count; i++)
        remember(x, known[i], log_time(x, known[i]), said[i]);
    if (is_time_to_fit(x)) {
        tl_surrogate_fit_weights(x->surrogate);
        tl_surrogate_fit_weights(x->informed);
        x->fitted_count = x->measured_count;
    }
    guess(x, pending, waiting, said);
    for (int i = 0; i < waiting && count == 0; i++)
        remember(x, pending[i], 0, said[i]); /* no result yet: all alike */
    if (!tl_surrogate_solve(x->surrogate) || !tl_surrogate_solve(x->informed))
        return false;
    for (int i = 0; i < waiting && count > 0; i++)
        expect(x, pending[i], said[i]);
    return true;
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
    for (int i = 0; i < list->count; i++)
        if (list->best[i]->gain == new->gain && same_answers(list->best[i], new))
            return;
    idea *place;
    if (list->count < SHORTLIST)
        place = &list->ideas[list->count++];
    else if ((place = list->best[SHORTLIST - 1])->gain >= new->gain)
        return;
    int at = list->count - 1;
    for (; at > 0 && list->best[at - 1]->gain < new->gain; at--)
        list->best[at] = list->best[at - 1];
    list->best[at] = place;
    *place = *new;
}

/* What an idea promises. When it was built before, that is what came of it, and nothing when that was tried: else the same
 * few, which look good and are not, would fill the list again and again. */
static double promise_of(const tl_explorer *x, const idea *i, double least)
{
    tl_point point = point_of(i);
    int entry;
    double hope = tl_surrogate_hope(x->surrogate, &point, least);
    if (hope <= least)
        return 0;
    if (!tl_catalog_met(x->catalog, &point, &entry))
        return hope;
    if (!tl_explorer_is_new(x, entry))
        return 0;
    point = tl_catalog_at(x->catalog, entry)->point;
    return tl_surrogate_gain(x->surrogate, &point, NULL, least);
}

static void judge(const tl_explorer *x, shortlist *list, idea *new)
{
    double least = list->count == SHORTLIST ? list->best[SHORTLIST - 1]->gain : 0;
    new->gain = promise_of(x, new, least);
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

/* A leader, and the decisions that jumps from it change. */
typedef struct {
    idea base;
    int open[MOST_DECISIONS], count;
} springboard;

static idea make_jump(tl_explorer *x, const springboard *from)
{
    idea new = from->base;
    int64_t changes = 2 + tl_random_below(&x->random, 3);
    for (int64_t c = 0; c < changes; c++)
        jump(x, &new.decisions[from->open[tl_random_below(&x->random, from->count)]]);
    return new;
}

/* Of several jumps the one that the screener takes for the fastest. */
static idea make_screened_jump(tl_explorer *x, const springboard *from)
{
    idea drawn[SCREENED];
    tl_point points[SCREENED];
    double said[SCREENED];
    int best = 0;
    for (int i = 0; i < SCREENED; i++) {
        drawn[i] = make_jump(x, from);
        points[i] = point_of(&drawn[i]);
    }
    tl_experts_screen(x, points, SCREENED, said);
    for (int i = 1; i < SCREENED; i++)
        best = said[i] < said[best] ? i : best;
    return drawn[best];
}

static void judge_jumps(tl_explorer *x, int leader, shortlist *list)
{
    springboard from = { .base = idea_of(x, leader) };
    for (int d = 0; d < from.base.count; d++)
        if (from.base.decisions[d].count > 1 &&
            tl_decision_kind_of(&from.base.decisions[d]) != TL_DECISION_SKETCH)
            from.open[from.count++] = d;
    for (int i = 0; i < JUMPS && from.count > 1; i++) {
        bool is_screened = x->experts.screener != NULL && i % 2 == 0;
        idea new = is_screened ? make_screened_jump(x, &from) : make_jump(x, &from);
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

/* Before the first result, what was proposed. */
static int find_leaders(tl_explorer *x, int *leaders)
{
    int found = tl_explorer_lead(x, LEADERS, MOST_LEADERS, leaders);
    for (int i = 0; x->right_count == 0 && i < tl_catalog_count(x->catalog) && found < LEADERS; i++)
        if (tl_catalog_at(x->catalog, i)->state == TL_ENTRY_PROPOSED)
            leaders[found++] = i;
    return found;
}

static void gather(tl_explorer *x, shortlist *list)
{
    int leaders[MOST_LEADERS], count = find_leaders(x, leaders);
    list->count = 0;
    tl_experts_choose_screener(x);
    for (int i = 0; i < count; i++) {
        judge_steps(x, leaders[i], list);
        judge_jumps(x, leaders[i], list);
        if (count > 1)
            judge_crosses(x, leaders[i], leaders[tl_random_below(&x->random, count)], list);
    }
}

/* --- choosing ----------------------------------------------------------------------------------------------------------- */

/* Built ones that nobody tried yet. */
typedef struct {
    int count;
    int entries[POOL];
    guesses said[POOL];
    double gains[POOL];
    int judged[POOL]; /* how many were taken when its gain was asked for */
} pool;

static void put(pool *p, int entry)
{
    for (int i = 0; i < p->count; i++)
        if (p->entries[i] == entry)
            return;
    if (p->count < POOL)
        p->entries[p->count++] = entry;
}

/* Builds the best of the shortlist, and adds the newest of those that were left over. */
static void fill(tl_explorer *x, const shortlist *list, int wanted, pool *p)
{
    int before = tl_catalog_count(x->catalog);
    double most = wanted * (x->measured_count < KNOWN ? MOST_BUILT : MOST_BUILT_LATE);
    p->count = 0;
    for (int i = 0; before < DRAFTS && i < DRAFTS; i++)
        tl_catalog_sample(x->catalog, &x->random);
    for (int i = 0, built = 0, good = 0; i < list->count && good < wanted && built < most; i++) {
        int64_t builds = tl_catalog_builds(x->catalog);
        tl_point point = point_of(list->best[i]);
        int entry = tl_catalog_build_point(x->catalog, &point);
        built += tl_catalog_builds(x->catalog) > builds;
        if (!tl_explorer_is_new(x, entry))
            continue;
        put(p, entry);
        point = tl_catalog_at(x->catalog, entry)->point;
        good += tl_surrogate_gain(x->surrogate, &point, NULL, 0) >= KEPT * list->best[i]->gain;
    }
    for (int i = tl_catalog_count(x->catalog) - 1; i >= 0 && p->count < POOL; i--)
        if (tl_explorer_is_new(x, i))
            put(p, i);
    guess(x, p->entries, p->count, p->said);
}

/* The one that promises most; ties go to the newest. An expectation only lowers what others promise: those whose promise is
 * of before the last one are looked at again when it is their turn. */
static int find_best(tl_explorer *x, pool *p, int round)
{
    for (;;) {
        int best = -1;
        for (int i = 0; i < p->count; i++)
            if (tl_explorer_is_new(x, p->entries[i]) && (best < 0 || p->gains[i] > p->gains[best]))
                best = i;
        if (best < 0 || p->judged[best] == round)
            return best;
        tl_point point = tl_catalog_at(x->catalog, p->entries[best])->point;
        p->gains[best] = tl_surrogate_gain(x->informed, &point, p->said[best], 0);
        p->judged[best] = round;
    }
}

static void choose_from(tl_explorer *x, int count, pool *p)
{
    for (int i = 0; i < p->count; i++) {
        p->gains[i] = INFINITY;
        p->judged[i] = -1;
    }
    for (int taken = 0; taken < count; taken++) {
        int best = find_best(x, p, taken);
        if (best < 0 || !tl_explorer_take(x, p->entries[best], p->gains[best], "model"))
            return;
        expect(x, p->entries[best], p->said[best]);
    }
}

void tl_explorer_improve(tl_explorer *x, int count)
{
    shortlist *list = malloc(sizeof *list);
    pool *p = malloc(sizeof *p);
    if (list == NULL || p == NULL) {
        x->failed = true;
    } else if (recall(x)) {
        gather(x, list);
        fill(x, list, (x->experts.count > 0 ? BUILT_FOR_EXPERTS : BUILT) * count, p);
        choose_from(x, count, p);
    }
    free(list);
    free(p);
}
