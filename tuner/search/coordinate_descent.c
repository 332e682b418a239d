/* tuner/search/coordinate_descent.c: coordinate descent: the neighbours of the best, and the way on in the direction
 * that was good. */
#include <string.h>
#include "tuner/search/policy_private.h"

enum { MOST_CENTERS = 32, MOST_STEPS = 2048 };

/* Neighbours found, in the order in which they are to be tried. */
typedef struct {
    int count;
    int entries[MOST_STEPS];
} steps;

static bool has(const steps *found, int entry)
{
    for (int i = 0; i < found->count; i++)
        if (found->entries[i] == entry)
            return true;
    return false;
}

/* The neighbour `by` options away in that decision joins when it is new; the first step that leads to an entry names its
 * direction. */
static void look(tl_explorer *x, int center, int decision, int by, steps *found)
{
    const tl_decision *d = &tl_catalog_at(x->catalog, center)->point.decisions[decision];
    int to = d->taken + by;
    if (to < 0 || to >= d->count)
        return;
    const char *name = d->name;
    int entry = tl_catalog_step(x->catalog, center, decision, d->options[to]);
    if (!tl_explorer_is_new(x, entry) || found->count == MOST_STEPS || has(found, entry))
        return;
    tl_entry *e = tl_catalog_at(x->catalog, entry);
    e->axis = name;
    e->direction = by < 0 ? -1 : 1;
    found->entries[found->count++] = entry;
}

/* On along the line that led to the centre. */
static void look_ahead(tl_explorer *x, int center, int widest, steps *found)
{
    const char *axis = tl_catalog_at(x->catalog, center)->axis;
    int direction = tl_catalog_at(x->catalog, center)->direction;
    int count = tl_catalog_at(x->catalog, center)->point.count;
    for (int i = 0; axis != NULL && i < count; i++)
        if (strcmp(tl_catalog_at(x->catalog, center)->point.decisions[i].name, axis) == 0)
            for (int by = 1; by <= widest; by *= 2)
                look(x, center, i, direction * by, found);
}

static void look_around(tl_explorer *x, int center, int by, steps *found)
{
    int count = tl_catalog_at(x->catalog, center)->point.count;
    for (int i = 0; i < count; i++) {
        look(x, center, i, by, found);
        look(x, center, i, -by, found);
    }
}

/* The same answers for the other lowerings. */
static void look_across(tl_explorer *x, int center, steps *found)
{
    for (int l = 0; l < x->search.task->lowering_count; l++) {
        int entry = tl_catalog_step(x->catalog, center, -1, l);
        if (tl_explorer_is_new(x, entry) && found->count < MOST_STEPS && !has(found, entry))
            found->entries[found->count++] = entry;
    }
}

static void take_all(tl_explorer *x, steps *found, bool ranked)
{
    float score[MOST_STEPS] = { 0 };
    if (ranked && tl_explorer_score(x, found->entries, found->count, score))
        tl_explorer_rank(x, found->entries, score, found->count);
    for (int i = 0; i < found->count; i++)
        if (!tl_explorer_take(x, found->entries[i], score[i], "descent"))
            break;
}

static bool is_full(const tl_explorer *x)
{
    return x->choice_count == x->choice_capacity;
}

void tl_explorer_descend(tl_explorer *x, int widest, bool ranked)
{
    int centers[MOST_CENTERS];
    int center_count = tl_explorer_leaders(x, MOST_CENTERS, centers);
    for (int c = 0; c < center_count && !is_full(x); c++) {
        steps found = { .count = 0 };
        look_ahead(x, centers[c], widest, &found);
        look_around(x, centers[c], 1, &found);
        take_all(x, &found, ranked);
        for (int by = 2; by <= widest && !is_full(x); by *= 2) {
            found.count = 0;
            look_around(x, centers[c], by, &found);
            take_all(x, &found, ranked);
        }
        found.count = 0;
        if (!is_full(x))
            look_across(x, centers[c], &found);
        take_all(x, &found, ranked);
    }
}
