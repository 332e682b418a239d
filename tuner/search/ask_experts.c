/* tuner/search/ask_experts.c: what cost models that were trained before expect of entries: the prior of the Gaussian process
 * that chooses among them (expected_gain.c), which believes each as far as it is right about what was measured. */
#include <math.h>
#include <stdlib.h>
#include "tuner/search/entry_table.h"

static bool is_screener(const tl_cost_model *model)
{
    return model->shape.row.width == 0 && model->shape.decision.width > 0;
}

static void sort_experts(tl_explorer *x)
{
    const tl_search *s = &x->search;
    int count = s->expert_count < TL_MOST_EXPERTS ? s->expert_count : TL_MOST_EXPERTS;
    for (int i = 0; i < count; i++)
        if (is_screener(s->experts[i]))
            x->experts.screeners[x->experts.screener_count++] = s->experts[i];
        else
            x->experts.models[x->experts.count++] = s->experts[i];
}

void tl_experts_begin(tl_explorer *x)
{
    const tl_search *s = &x->search;
    const tl_workload_info *w = s->workload;
    if (s->expert_count == 0 || w == NULL)
        return;
    sort_experts(x);
    x->experts.shape = tl_sample_shape_of_points();
    x->experts.tokens = tl_tokens_create(x->arena, s->space);
    x->experts.workload =
        TL_NEW_ARRAY(x->arena, float, tl_cost_token_width(TL_COST_TOKEN_WORKLOAD));
    x->experts.machine = TL_NEW_ARRAY(x->arena, float, tl_cost_token_width(TL_COST_TOKEN_MACHINE));
    tl_cost_token_of_workload(x->experts.tokens, w->family, (double)w->flops, (double)w->bytes,
                              x->experts.workload);
    tl_cost_token_of_machine(s->target, x->experts.machine);
}

/* One that cannot say (it is of other features, or says what is no number) says the same of all. */
static void ask(tl_explorer *x, int expert, const int *entries, const tl_entry_table *t,
                float *mean)
{
    bool knows = tl_cost_model_predict(x->experts.models[expert], &t->programs, mean, NULL);
    for (int i = 0; i < t->programs.count; i++)
        tl_catalog_at(x->catalog, entries[i])->expected[expert] = knows ? mean[i] : 0;
}

void tl_experts_expect(tl_explorer *x, const int *entries, int count)
{
    tl_entry_table t;
    int *asked = malloc(sizeof *asked * (size_t)(count + 1)), asked_count = 0;
    float *mean = malloc(sizeof *mean * (size_t)(count + 1));
    bool done = asked != NULL && mean != NULL;
    for (int i = 0; i < count && done; i++) {
        tl_entry *e = tl_catalog_at(x->catalog, entries[i]);
        if (!e->is_expected)
            asked[asked_count++] = entries[i];
        e->is_expected = true;
    }
    if (done && asked_count > 0) {
        done = tl_entry_table_make(x, asked, asked_count, &t);
        for (int k = 0; k < x->experts.count && done; k++)
            ask(x, k, asked, &t, mean);
        tl_entry_table_free(&t);
    }
    x->failed |= !done;
    free(asked);
    free(mean);
}
