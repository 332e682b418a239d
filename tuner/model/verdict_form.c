/* tuner/model/verdict_form.c: whether the model is faster in another form. */
#include <string.h>
#include "runtime/base/map.h"
#include "tuner/model/forms.h"
#include "tuner/model/verdict_private.h"

/* What the search looks at of a form: how many kernels it has of each workload, and what they take in the model. */
typedef struct {
    int kernels;
    double ns; /* of all of them; 0: not timed */
} share;

typedef struct {
    tl_arena *arena;
    tl_map *of; /* workload -> share */
} shares;

static share *share_of(const shares *all, const char *workload)
{
    share *found = tl_map_find(all->of, workload);
    if (found == NULL) {
        found = TL_NEW(all->arena, share);
        tl_map_put(all->of, workload, found);
    }
    return found;
}

static tl_status count_kernel(void *user, const tl_form_kernel *kernel, tl_diag *diag)
{
    shares *all = user;
    (void)diag;
    share_of(all, kernel->workload)->kernels++;
    return TL_OK;
}

static tl_status count_kernels(tl_verdict_state *s, const char *form, shares *out, tl_diag *diag)
{
    *out = (shares){ .arena = s->arena, .of = tl_map_create(s->arena) };
    return s->model->type->visit_form(s->model, form, count_kernel, out, diag);
}

/* The form with the best records of its workloads, but for those that fell back in the default form. */
static tl_status build(tl_verdict_state *s, const char *form, tl_picks *picks, tl_diag *diag)
{
    shares all;
    int wanted = 0;
    tl_verdict_tell(s, "building another form");
    TL_TRY(count_kernels(s, form, &all, diag));
    const char **keys = TL_NEW_ARRAY(s->arena, const char *, tl_map_count(all.of));
    for (size_t i = 0; i < tl_map_count(all.of); i++) {
        const char *key = tl_map_at(all.of, i).key;
        const tl_verdict_workload *w = tl_verdict_find(s, key);
        if (w == NULL || w->fate == TL_VERDICT_KEPT)
            keys[wanted++] = key;
    }
    tl_picks_best(s->store, s->arena, &s->model->query, keys, wanted, picks);
    return tl_verdict_build(s, picks->picks, picks->count, form, &s->shaped, diag);
}

/* What the kernels of each workload take in a model whose steps were timed. */
static void sum_steps(const tl_tunable_build *build, const int64_t *least, shares *out)
{
    for (int i = 0; i < build->step_count; i++)
        if (build->steps[i].workload != NULL) {
            share *of = share_of(out, build->steps[i].workload);
            of->kernels++;
            of->ns += (double)least[i];
        }
}

/* Time of one kernel of a workload, as it was in the model. */
static double mean_ns(const shares *all, const char *workload)
{
    const share *of = tl_map_find(all->of, workload);
    return of != NULL ? of->ns / of->kernels : 0;
}

/* Whether what the alternative brings takes less time inside the shaped model than what it takes out of the other. */
static bool is_faster(const shares *own, const shares *with, const shares *before,
                      const shares *shaped)
{
    double out = 0, in = 0;
    for (size_t i = 0; i < tl_map_count(own->of); i++) {
        const tl_map_entry e = tl_map_at(own->of, i);
        const share *now = tl_map_find(with->of, e.key);
        int fewer = ((const share *)e.value)->kernels - (now != NULL ? now->kernels : 0);
        if (fewer > 0)
            out += fewer * mean_ns(before, e.key);
    }
    for (size_t i = 0; i < tl_map_count(with->of); i++) {
        const tl_map_entry e = tl_map_at(with->of, i);
        const share *was = tl_map_find(own->of, e.key);
        int more = ((const share *)e.value)->kernels - (was != NULL ? was->kernels : 0);
        if (more > 0)
            in += more * mean_ns(shaped, e.key);
    }
    return in < out * (1 - TL_VERDICT_LEAST_GAIN);
}

/* Leaves out the alternatives that are no faster inside the model; how many are left. */
static tl_status drop_slower(tl_verdict_state *s, tl_tunable_build *best, tl_form *forms,
                             int *count, tl_diag *diag)
{
    tl_tunable_build *const builds[2] = { best, s->shaped };
    int64_t *least[2];
    int left = 0;
    shares own, before = { s->arena, tl_map_create(s->arena) },
                shaped = { s->arena, tl_map_create(s->arena) };
    TL_TRY(tl_verdict_time_steps(s, builds, TL_VERDICT_SHARE_KERNELS * s->seconds, least, diag));
    sum_steps(best, least[0], &before);
    sum_steps(s->shaped, least[1], &shaped);
    TL_TRY(count_kernels(s, "", &own, diag));
    for (int i = 0; i < *count; i++) {
        shares with;
        TL_TRY(count_kernels(s, forms[i].form, &with, diag));
        if (is_faster(&own, &with, &before, &shaped))
            forms[left++] = forms[i];
    }
    *count = left;
    return TL_OK;
}

/* Compares what was built. False in *is_best: it is not faster than the best so far and than untuned. */
static tl_status decide(tl_verdict_state *s, tl_tunable_build *best, bool *is_best, tl_diag *diag)
{
    tl_model_verdict *v = s->out, before = *v;
    tl_verdict_comparison c;
    bool right;
    TL_TRY(tl_verdict_match(s, s->shaped, &right, diag));
    *is_best = false;
    if (right) {
        const double seconds = TL_VERDICT_SHARE_WHOLE * s->seconds;
        TL_TRY(tl_verdict_compare(s, best, s->shaped, seconds, &c, diag));
        before.form_ratio = c.ratio;
        if (tl_verdict_is_faster(&c))
            TL_TRY(tl_verdict_compare_whole(s, s->shaped, seconds, is_best, diag));
    }
    if (*is_best)
        v->form_ratio = c.ratio;
    else
        *v = before;
    return TL_OK;
}

tl_status tl_verdict_try_form(tl_verdict_state *s, tl_diag *diag)
{
    tl_model_verdict *v = s->out;
    tl_tunable_build *best = v->kept ? s->tuned : s->base;
    const tl_form *chosen;
    double default_ns, cost_ns;
    tl_picks picks;
    int count;
    bool is_best;
    TL_TRY(tl_forms_choose(s->arena, s->model, s->store, &chosen, &count, &default_ns, &cost_ns,
                           diag));
    v->forms_tried = count;
    if (count == 0)
        return TL_OK;
    TL_TRY(build(s, tl_forms_join(s->arena, chosen, count), &picks, diag));
    tl_form *left = TL_NEW_ARRAY(s->arena, tl_form, count);
    memcpy(left, chosen, sizeof *left * (size_t)count);
    TL_TRY(drop_slower(s, best, left, &count, diag));
    if (count == 0)
        return TL_OK;
    const char *form = tl_forms_join(s->arena, left, count);
    if (count < v->forms_tried)
        TL_TRY(build(s, form, &picks, diag));
    TL_TRY(decide(s, best, &is_best, diag));
    if (!is_best)
        return TL_OK;
    v->kept = true;
    v->form = form;
    v->forms_kept = count;
    s->picks = tl_arena_copy(s->arena, picks.picks, sizeof *s->picks * (size_t)picks.count,
                             _Alignof(tl_pick));
    s->pick_count = picks.count;
    return TL_OK;
}
