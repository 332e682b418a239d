/* tuner/search/screen_points.c: experts that read no program judge points, which need not be built for it: building one costs as
 * much as judging a hundred. Such an expert, a screener, has a say only while it orders most of what was measured here rightly:
 * what a wrong one keeps from being built is never seen by the models of programs, which would know better. */
#include <math.h>
#include <string.h>
#include "tuner/search/policy_private.h"

/* Samples of the points; everything in `arena`. */
static tl_cost_samples describe(const tl_explorer *x, tl_arena *arena, const tl_point *points,
                                int count)
{
    const size_t width = (size_t)tl_cost_token_width(TL_COST_TOKEN_DECISION);
    int *first = TL_NEW_ARRAY(arena, int, count), *length = TL_NEW_ARRAY(arena, int, count);
    int all = 0, at = 0;
    for (int i = 0; i < count; i++)
        all += points[i].count + 1; /* the lowering is one, too */
    float *decisions = TL_NEW_ARRAY(arena, float, all *(int)width);
    for (int i = 0; i < count; i++, at += length[i - 1]) {
        const float *tokens;
        first[i] = at;
        length[i] = tl_tokens_of_point(x->experts.tokens, arena, &points[i], &tokens);
        memcpy(decisions + (size_t)at * width, tokens, sizeof(float) * width * (size_t)length[i]);
    }
    return (tl_cost_samples){ .shape = x->experts.shape,
                              .count = count,
                              .task_count = 1,
                              .domain_count = 1,
                              .first_decision = first,
                              .decision_count = length,
                              .decisions = decisions,
                              .task = TL_NEW_ARRAY(arena, int, count),
                              .workloads = x->experts.workload,
                              .machines = x->experts.machine,
                              .profiles = &x->search.target->machine };
}

static void screen(tl_explorer *x, tl_arena *arena, const tl_point *points, int count, double *said)
{
    const tl_cost_samples samples = describe(x, arena, points, count);
    float *mean = TL_NEW_ARRAY(arena, float, count);
    if (tl_cost_model_predict(x->experts.screener, &samples, mean, NULL))
        for (int i = 0; i < count; i++)
            said[i] = (double)mean[i];
}

void tl_experts_screen(tl_explorer *x, const tl_point *points, int count, double *said)
{
    memset(said, 0, sizeof *said * (size_t)count);
    if (x->experts.screener == NULL || count == 0)
        return;
    tl_arena *arena = tl_arena_create(0);
    if (arena == NULL || TL_ARENA_GUARD(arena))
        x->failed = true;
    else
        screen(x, arena, points, count, said);
    tl_arena_destroy(arena);
}

/* --- who has a say -------------------------------------------------------------------------------------------------------- */

/* The newest of what was measured, which is most like what comes next. */
enum { JUDGED = 96, LEAST_JUDGED = 16 };
/* Times that are closer say nothing of who is right; below LEAST_TRUST, which is seven pairs of ten, nobody has a say: one that
 * says anything gets as far with sixteen points once in seventy times. */
static const double closest = 0.02, least_trust = 0.4;

/* Of pairs: how many are in the right order less those in the wrong one, over all. */
static double agreement(const double *time, const double *said, int count)
{
    int pairs = 0, right = 0;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++) {
            const double apart = time[i] - time[j], as_said = said[i] - said[j];
            if (fabs(apart) < closest)
                continue;
            pairs++;
            right += as_said * apart > 0 ? 1 : as_said * apart < 0 ? -1 : 0;
        }
    return pairs > 0 ? (double)right / pairs : 0;
}

void tl_experts_choose_screener(tl_explorer *x)
{
    tl_experts *e = &x->experts;
    tl_cost_model *best = NULL;
    tl_point points[JUDGED];
    double time[JUDGED], said[JUDGED];
    int count = 0;
    for (int i = x->measured_count - 1; i >= 0 && count < JUDGED && e->screener_count > 0; i--) {
        const tl_entry *entry = tl_catalog_at(x->catalog, x->measured[i]);
        if (entry->state != TL_ENTRY_RIGHT)
            continue;
        points[count] = entry->point;
        time[count++] = log(entry->score_ns);
    }
    e->trust = 0;
    for (int k = 0; k < e->screener_count && count >= LEAST_JUDGED; k++) {
        e->screener = e->screeners[k];
        tl_experts_screen(x, points, count, said);
        const double trust = agreement(time, said, count);
        if (trust > fmax(e->trust, least_trust)) {
            e->trust = trust;
            best = e->screener;
        }
    }
    e->screener = best;
}
