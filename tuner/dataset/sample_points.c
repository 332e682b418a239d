/* tuner/dataset/sample_points.c: draws the points of a task: walks from the default schedules, and
 * uniformly. */
#include "tuner/dataset/sample_points.h"
#include <string.h>

enum { STRATA = 5, MOST_STEPS = 4 };

tl_sampler tl_sampler_at(int number)
{
    static const tl_sampler strata[STRATA] = { TL_SAMPLER_WALK, TL_SAMPLER_PLAIN, TL_SAMPLER_WALK,
                                               TL_SAMPLER_PLAIN, TL_SAMPLER_TRAIL };
    return strata[number % STRATA];
}

tl_space_kind tl_sampler_space(tl_sampler sampler)
{
    return sampler == TL_SAMPLER_PLAIN ? TL_SPACE_PLAIN : TL_SPACE_FULL;
}

static tl_wish *wishes_of(tl_arena *arena, const tl_point *point)
{
    tl_wish *wishes = TL_NEW_ARRAY(arena, tl_wish, point->count);
    for (int i = 0; i < point->count; i++) {
        const tl_decision *d = &point->decisions[i];
        wishes[i] = (tl_wish){ d->name, d->options[d->taken] };
    }
    return wishes;
}

/* Another answer to one decision of the point; false: it has none to change. */
static bool step(tl_arena *arena, tl_random *random, const tl_point *point, tl_wish **wishes,
                 double *probability)
{
    if (point->count == 0)
        return false;
    int at = (int)tl_random_below(random, point->count);
    const tl_decision *d = &point->decisions[at];
    if (d->count < 2)
        return false;
    int option = (int)tl_random_below(random, d->count - 1);
    *wishes = wishes_of(arena, point);
    (*wishes)[at].value = d->options[option + (option >= d->taken)];
    *probability /= (double)point->count * (d->count - 1);
    return true;
}

/* Each step begins at what the last one came to: an answer may open other decisions. */
static tl_status walk(const tl_space *space, tl_arena *arena, tl_random *random, tl_variant *out,
                      double *probability, tl_diag *diag)
{
    int lowerings = tl_space_task(space)->lowering_count;
    int lowering = (int)tl_random_below(random, lowerings);
    int steps = 1 + (int)tl_random_below(random, MOST_STEPS);
    *probability = 1.0 / lowerings / MOST_STEPS;
    TL_TRY(tl_space_build(space, arena, lowering, NULL, 0, out, diag));
    for (int i = 0; i < steps; i++) {
        tl_wish *wishes;
        if (step(arena, random, &out->point, &wishes, probability))
            TL_TRY(tl_space_build(space, arena, lowering, wishes, out->point.count, out, diag));
    }
    return TL_OK;
}

tl_status tl_sample_point(const tl_space *space, tl_arena *arena, tl_sampler sampler, int number,
                          uint64_t seed, tl_variant *out, double *probability, tl_diag *diag)
{
    const char *workload = tl_space_task(space)->workload;
    uint64_t own = tl_hash_bytes(workload, strlen(workload), seed);
    tl_random random = tl_random_make(own + (uint64_t)number * 0x9e3779b97f4a7c15u);
    if (sampler == TL_SAMPLER_WALK)
        return walk(space, arena, &random, out, probability, diag);
    TL_TRY(tl_space_sample(space, arena, &random, out, diag));
    *probability = 1.0 / tl_space_task(space)->lowering_count;
    for (int i = 0; i < out->point.count; i++)
        *probability /= out->point.decisions[i].count;
    return TL_OK;
}
