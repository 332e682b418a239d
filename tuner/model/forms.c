/* tuner/model/forms.c: other forms of a model, compared by recorded costs. */
#include "tuner/model/forms.h"
#include <stdlib.h>
#include <string.h>
#include "runtime/base/map.h"

/* An alternative must promise so much of the model to be looked at: records are measurements. */
#define LEAST_GAIN 0.003

/* The sum so far, and the best record of each workload that was asked for: a double, 0 for none. */
typedef struct {
    tl_arena *arena;
    tl_tunable *model;
    tl_records *store;
    tl_map *known, *missed;
    double sum;
} ledger;

static double best_of(ledger *l, const char *workload)
{
    double *best = tl_map_find(l->known, workload);
    if (best == NULL) {
        tl_picks picks;
        best = TL_NEW(l->arena, double);
        tl_picks_best(l->store, l->arena, &l->model->query, &workload, 1, &picks);
        *best = picks.count > 0 ? picks.picks[0].score_ns : 0;
        tl_map_put(l->known, workload, best);
    }
    return *best;
}

static tl_status add_cost(void *user, const tl_form_kernel *kernel, tl_diag *diag)
{
    ledger *l = user;
    (void)diag;
    double best = best_of(l, kernel->workload);
    if (best == 0)
        tl_map_put(l->missed, kernel->workload, l);
    l->sum += best;
    return TL_OK;
}

static tl_status cost_with(ledger *l, const char *form, double *cost_ns, int *missing,
                           tl_diag *diag)
{
    l->sum = 0;
    l->missed = tl_map_create(l->arena);
    TL_TRY(l->model->type->visit_form(l->model, form, add_cost, l, diag));
    *missing = (int)tl_map_count(l->missed);
    *cost_ns = *missing == 0 ? l->sum : 0;
    return TL_OK;
}

static ledger open_ledger(tl_arena *arena, tl_tunable *model, tl_records *store)
{
    return (
        ledger){ .arena = arena, .model = model, .store = store, .known = tl_map_create(arena) };
}

static tl_status list_with(ledger *costs, tl_form **out, int *count, tl_diag *diag)
{
    const tl_form *found;
    costs->model->type->find_forms(costs->model, costs->arena, &found, count);
    *out = TL_NEW_ARRAY(costs->arena, tl_form, *count);
    for (int i = 0; i < *count; i++) {
        tl_form *form = &(*out)[i];
        *form = found[i];
        TL_TRY(cost_with(costs, form->form, &form->cost_ns, &form->missing, diag));
    }
    return TL_OK;
}

tl_status tl_forms_list(tl_arena *arena, tl_tunable *model, tl_records *store, const tl_form **out,
                        int *count, tl_diag *diag)
{
    tl_form *forms;
    ledger costs = open_ledger(arena, model, store);
    TL_TRY(list_with(&costs, &forms, count, diag));
    *out = forms;
    return TL_OK;
}

static int by_cost(const void *a, const void *b)
{
    const tl_form *x = a, *y = b;
    if (x->cost_ns != y->cost_ns)
        return x->cost_ns < y->cost_ns ? -1 : 1;
    return strcmp(x->form, y->form);
}

const char *tl_forms_join(tl_arena *arena, const tl_form *forms, int count)
{
    const char *form = "";
    for (int i = 0; i < count; i++)
        form = tl_arena_format(arena, "%s%s", form, forms[i].form);
    return form;
}

tl_status tl_forms_choose(tl_arena *arena, tl_tunable *model, tl_records *store,
                          const tl_form **out, int *out_count, double *default_ns, double *cost_ns,
                          tl_diag *diag)
{
    tl_form *forms;
    int count, missing, chosen = 0;
    ledger costs = open_ledger(arena, model, store);
    *out_count = 0;
    TL_TRY(cost_with(&costs, "", default_ns, &missing, diag));
    *cost_ns = *default_ns;
    if (missing > 0)
        return TL_OK;
    TL_TRY(list_with(&costs, &forms, &count, diag));
    if (count > 0)
        qsort(forms, (size_t)count, sizeof *forms, by_cost);
    for (int i = 0; i < count; i++) {
        if (forms[i].missing > 0 || forms[i].cost_ns >= *default_ns * (1 - LEAST_GAIN))
            continue;
        double cost;
        forms[chosen] = forms[i]; /* those before were looked at */
        TL_TRY(cost_with(&costs, tl_forms_join(arena, forms, chosen + 1), &cost, &missing, diag));
        if (missing > 0 || cost >= *cost_ns * (1 - LEAST_GAIN))
            continue;
        chosen++;
        *cost_ns = cost;
    }
    *out = forms;
    *out_count = chosen;
    return TL_OK;
}
