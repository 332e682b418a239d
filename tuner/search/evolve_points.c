/* tuner/search/evolve_points.c: evolution as in Ansor's sketch policy, on the decisions of our space.
 *
 * The first population is random points and the best measured ones. A generation is as many children: parents by
 * roulette, each mutated in one decision (or copied). What counts is a heap of the best unmeasured ones of all
 * generations. Ansor's roulette takes scores for weights, which a score of any sign and scale breaks; ours takes
 * ranks: the best is drawn twice as often as the middle, the worst hardly ever. There is no crossover. With an expert that
 * needs no program, a child may be the best of several mutations, of which that one alone is built: as often as the expert
 * proves right about what was measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tuner/search/decision_kind.h"
#include "tuner/search/policy_private.h"

static const double weights[TL_DECISION_KIND_COUNT] = {
#define KIND(name, weight) [TL_DECISION_##name] = weight,
#define ROLE(role, kind)
#include "tuner/search/decision_roles.def"
#undef KIND
#undef ROLE
};

/* --- mutation ----------------------------------------------------------------------------------------------------- */

/* How often the n-th decision is drawn: its kind's weight, shared by the open decisions of that kind. */
static int draw_decision(tl_explorer *x, const tl_point *point)
{
    int open[TL_DECISION_KIND_COUNT] = { 0 };
    for (int i = 0; i < point->count; i++)
        if (point->decisions[i].count > 1)
            open[tl_decision_kind_of(&point->decisions[i])]++;
    double total = 0;
    for (int k = 0; k < TL_DECISION_KIND_COUNT; k++)
        total += open[k] > 0 ? weights[k] : 0;
    double draw = tl_random_unit(&x->random) * total;
    int kind = -1;
    for (int k = 0; k < TL_DECISION_KIND_COUNT && (kind < 0 || draw >= 0); k++)
        if (open[k] > 0 && weights[k] > 0) {
            kind = k;
            draw -= weights[k];
        }
    if (kind < 0)
        return -1;
    int64_t nth = tl_random_below(&x->random, open[kind]);
    for (int i = 0; i < point->count; i++)
        if (point->decisions[i].count > 1 &&
            (int)tl_decision_kind_of(&point->decisions[i]) == kind && nth-- == 0)
            return i;
    return -1;
}

static int64_t value_of(const tl_decision *d)
{
    return d->options[d->taken];
}

/* Whether two decisions are parts of one axis: "gemm.i.1" and "gemm.i.3". */
static bool share_axis(const tl_decision *a, const tl_decision *b)
{
    size_t size = (size_t)(tl_decision_role(a) - a->name);
    return size == (size_t)(tl_decision_role(b) - b->name) && memcmp(a->name, b->name, size) == 0;
}

/* A divisor of the number above 1, with equal chances; 1: it has none. */
static int64_t draw_factor(tl_explorer *x, int64_t number)
{
    int64_t drawn = 1, seen = 0;
    for (int64_t f = 2; f <= number; f++)
        if (number % f == 0 && tl_random_below(&x->random, ++seen) == 0)
            drawn = f;
    return drawn;
}

enum { MOST_DECISIONS = 256, MOST_PARTS = 8, MOST_CHANGES = 2 };

/* A child before it is built: of the parent's answers some become other values. */
typedef struct {
    int parent, count;
    struct {
        int decision;
        int64_t value;
    } changes[MOST_CHANGES];
} mutation;

static mutation make_step(int parent, int decision, int64_t value)
{
    return (mutation){ parent, 1, { { decision, value } } };
}

/* Ansor's mutation of a tile: a factor of one part of an axis goes to another. The outermost part is what the others leave:
 * with it a part takes another size alone. */
static mutation move_factor(tl_explorer *x, int parent, const tl_point *point, int decision)
{
    const tl_decision *d = &point->decisions[decision];
    int others[MOST_PARTS], count = 0;
    for (int i = 0; i < point->count && i < MOST_DECISIONS; i++)
        if (i != decision && share_axis(d, &point->decisions[i]) && count < MOST_PARTS)
            others[count++] = i;
    int64_t partner = tl_random_below(&x->random, count + 1);
    if (partner < count) {
        bool gives = tl_random_below(&x->random, 2) == 0;
        int from = gives ? decision : others[partner], to = gives ? others[partner] : decision;
        int64_t given = value_of(&point->decisions[from]), got = value_of(&point->decisions[to]);
        int64_t factor = draw_factor(x, given);
        if (factor > 1)
            return (mutation){ parent, 2, { { from, given / factor }, { to, got * factor } } };
    }
    int64_t to = tl_random_below(&x->random, d->count - 1);
    to += to >= d->taken;
    return make_step(parent, decision, d->options[to]);
}

/* Another option of one decision; in the plain space a tile's parts change together. A lowering is, to Ansor, a task of its own:
 * it is kept. Of a parent without open decisions nothing changes. */
static mutation draw_mutation(tl_explorer *x, int parent)
{
    tl_point point = tl_catalog_at(x->catalog, parent)->point;
    int decision = draw_decision(x, &point);
    if (decision < 0)
        return (mutation){ .parent = parent };
    if (tl_space_kind_of(x->search.space) == TL_SPACE_PLAIN &&
        tl_decision_kind_of(&point.decisions[decision]) == TL_DECISION_TILE)
        return move_factor(x, parent, &point, decision);
    const tl_decision *d = &point.decisions[decision];
    int64_t to = tl_random_below(&x->random, d->count - 1);
    to += to >= d->taken;
    return make_step(parent, decision, d->options[to]);
}

static int build(tl_explorer *x, const mutation *m)
{
    tl_wish wishes[MOST_DECISIONS];
    tl_point point = tl_catalog_at(x->catalog, m->parent)->point;
    int count = point.count < MOST_DECISIONS ? point.count : MOST_DECISIONS;
    if (m->count == 0)
        return TL_NO_ENTRY;
    for (int i = 0; i < count; i++)
        wishes[i] = (tl_wish){ point.decisions[i].name, value_of(&point.decisions[i]) };
    for (int i = 0; i < m->count; i++)
        if (m->changes[i].decision < count)
            wishes[m->changes[i].decision].value = m->changes[i].value;
    return tl_catalog_build(x->catalog, point.lowering, wishes, count);
}

/* --- mutations that a screener likes -------------------------------------------------------------------------------------- */

/* So many mutations are drawn, and the best of them is built. */
enum { DRAWN = 4 };

/* The option that is nearest, by its logarithm. */
static int find_option(const tl_decision *d, int64_t value)
{
    int nearest = d->taken;
    double least = INFINITY;
    for (int o = 0; o < d->count; o++) {
        double far = fabs(log2(fabs((double)d->options[o]) + 1) - log2(fabs((double)value) + 1));
        nearest = far < least ? o : nearest;
        least = fmin(far, least);
    }
    return nearest;
}

static tl_point preview(tl_explorer *x, const mutation *m, tl_decision decisions[MOST_DECISIONS])
{
    tl_point point = tl_catalog_at(x->catalog, m->parent)->point;
    point.count = point.count < MOST_DECISIONS ? point.count : MOST_DECISIONS;
    memcpy(decisions, point.decisions, sizeof *decisions * (size_t)point.count);
    for (int i = 0; i < m->count; i++) {
        int d = m->changes[i].decision;
        if (d < point.count)
            decisions[d].taken = find_option(&decisions[d], m->changes[i].value);
    }
    point.decisions = decisions;
    return point;
}

/* Of several mutations of the parent the one that the screener takes for the fastest. */
static mutation draw_screened(tl_explorer *x, int parent)
{
    mutation drawn[DRAWN];
    tl_decision decisions[DRAWN][MOST_DECISIONS];
    tl_point points[DRAWN];
    double said[DRAWN];
    int best = 0;
    for (int i = 0; i < DRAWN; i++) {
        drawn[i] = draw_mutation(x, parent);
        points[i] = preview(x, &drawn[i], decisions[i]);
    }
    tl_experts_screen(x, points, DRAWN, said);
    for (int i = 1; i < DRAWN; i++)
        if (said[i] < said[best])
            best = i;
    return drawn[best];
}

/* Screened as often as the screener was right. */
static int mutate(tl_explorer *x, int parent)
{
    const tl_experts *e = &x->experts;
    bool is_screened = e->screener != NULL && tl_random_unit(&x->random) < e->trust;
    mutation m = is_screened ? draw_screened(x, parent) : draw_mutation(x, parent);
    return build(x, &m);
}

/* --- populations --------------------------------------------------------------------------------------------------- */

typedef struct {
    int count, capacity;
    int *entries;
    float *score;
} population;

static bool make(population *p, int capacity)
{
    *p = (population){ .capacity = capacity };
    p->entries = calloc((size_t)capacity, sizeof *p->entries);
    p->score = calloc((size_t)capacity, sizeof *p->score);
    return p->entries != NULL && p->score != NULL;
}

static void end(population *p)
{
    free(p->entries);
    free(p->score);
}

static void add(population *p, int entry)
{
    if (entry != TL_NO_ENTRY && p->count < p->capacity)
        p->entries[p->count++] = entry;
}

/* Samples that are refused or known are not drawn again; a space in which none of the last so many was new is as good as
 * sampled. */
enum { STALE = 256 };

static void begin(tl_explorer *x, const tl_evolution *how, population *p)
{
    int most = (int)(how->measured_part * how->population);
    p->count = tl_explorer_leaders(x, most, p->entries);
    int stale = 0;
    for (int i = p->count; i < how->population && stale < STALE; i++) {
        int before = tl_catalog_count(x->catalog);
        int entry = tl_catalog_sample(x->catalog, &x->random);
        stale = tl_catalog_count(x->catalog) > before ? 0 : stale + 1;
        add(p, entry);
    }
}

/* The rank of a parent: linear roulette over a population that is in order. */
static int draw_parent(tl_explorer *x, const population *p)
{
    int64_t a = tl_random_below(&x->random, p->count), b = tl_random_below(&x->random, p->count);
    return p->entries[a < b ? a : b];
}

static void breed(tl_explorer *x, const tl_evolution *how, const population *parents,
                  population *children)
{
    children->count = 0;
    for (int i = 0; i < how->population; i++) {
        int parent = draw_parent(x, parents);
        bool changed = tl_random_unit(&x->random) < how->mutation;
        add(children, changed ? mutate(x, parent) : parent);
    }
}

/* The best new ones of all generations, in order, each once. */
static void keep_best(tl_explorer *x, population *best, const population *p)
{
    for (int i = 0; i < p->count; i++) {
        bool known = !tl_explorer_is_new(x, p->entries[i]);
        for (int j = 0; j < best->count && !known; j++)
            known = best->entries[j] == p->entries[i];
        if (known || (best->count == best->capacity && best->score[best->count - 1] >= p->score[i]))
            continue;
        int at = best->count < best->capacity ? best->count++ : best->count - 1;
        for (; at > 0 && best->score[at - 1] < p->score[i]; at--) {
            best->entries[at] = best->entries[at - 1];
            best->score[at] = best->score[at - 1];
        }
        best->entries[at] = p->entries[i];
        best->score[at] = p->score[i];
    }
}

static void evolve(tl_explorer *x, const tl_evolution *how, population *p, population *children,
                   population *best)
{
    tl_experts_choose_screener(x);
    begin(x, how, p);
    for (int g = 0;; g++) {
        tl_explorer_score(x, p->entries, p->count, p->score);
        tl_explorer_rank(x, p->entries, p->score, p->count);
        keep_best(x, best, p);
        if (g == how->generations || p->count == 0)
            return;
        breed(x, how, p, children);
        population swap = *p;
        *p = *children;
        *children = swap;
    }
}

void tl_explorer_evolve(tl_explorer *x, const tl_evolution *how, int count, tl_search_plan *plan)
{
    population p = { 0 }, children = { 0 }, best = { 0 };
    plan->count = plan->at = 0;
    if (!make(&p, how->population) || !make(&children, how->population) ||
        !make(&best, 2 * count)) {
        x->failed = true;
    } else {
        evolve(x, how, &p, &children, &best);
        int random = (int)(how->epsilon * count);
        for (int i = 0; i < best.count && plan->count < count - random; i++)
            tl_plan_add(plan, best.entries[i], best.score[i], "mutation");
        for (int i = 0; i < random; i++)
            tl_plan_add(plan, tl_catalog_sample(x->catalog, &x->random), 0, "random");
    }
    end(&p);
    end(&children);
    end(&best);
}
