/* tuner/search/entry_table.c: entries of a catalog as samples for a cost model. */
#include "tuner/search/entry_table.h"
#include <stdlib.h>
#include <string.h>
#include "tuner/cost/features.h"

void tl_entry_table_free(tl_entry_table *t)
{
    free(t->first_row);
    free(t->row_count);
    free(t->task);
    free(t->first_decision);
    free(t->decision_count);
    free(t->rows);
    free(t->decisions);
}

static bool add_rows(tl_explorer *x, const int *entries, int count, tl_entry_table *t)
{
    t->first_row = calloc((size_t)count + 1, sizeof(int));
    t->row_count = calloc((size_t)count + 1, sizeof(int));
    t->task = calloc((size_t)count + 1, sizeof(int));
    if (t->first_row == NULL || t->row_count == NULL || t->task == NULL)
        return false;
    for (int i = 0; i < count; i++) {
        if (!tl_catalog_rows(x->catalog, entries[i]))
            return false;
        t->row_count[i] = tl_catalog_at(x->catalog, entries[i])->row_count;
        t->first_row[i + 1] = t->first_row[i] + t->row_count[i];
    }
    t->rows = malloc(sizeof(float) * TL_FEATURE_WIDTH * (size_t)t->first_row[count] + 1);
    if (t->rows == NULL)
        return false;
    for (int i = 0; i < count; i++) {
        const tl_entry *e = tl_catalog_at(x->catalog, entries[i]);
        memcpy(t->rows + (size_t)t->first_row[i] * TL_FEATURE_WIDTH, e->rows,
               sizeof(float) * TL_FEATURE_WIDTH * (size_t)e->row_count);
    }
    return true;
}

static bool add_decisions(tl_explorer *x, const int *entries, int count, tl_entry_table *t)
{
    const size_t width = (size_t)tl_cost_token_width(TL_COST_TOKEN_DECISION);
    int all = 0;
    t->first_decision = calloc((size_t)count + 1, sizeof(int));
    t->decision_count = calloc((size_t)count + 1, sizeof(int));
    for (int i = 0; i < count; i++)
        all +=
            tl_catalog_at(x->catalog, entries[i])->point.count + 1; /* the lowering is one, too */
    t->decisions = malloc(sizeof(float) * width * (size_t)all + 1);
    tl_arena *arena = tl_arena_create(0);
    if (arena == NULL || t->first_decision == NULL || t->decision_count == NULL ||
        t->decisions == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        return false;
    }
    for (int i = 0; i < count; i++) {
        const float *tokens;
        const tl_entry *e = tl_catalog_at(x->catalog, entries[i]);
        t->decision_count[i] = tl_tokens_of_point(x->experts.tokens, arena, &e->point, &tokens);
        t->first_decision[i + 1] = t->first_decision[i] + t->decision_count[i];
        memcpy(t->decisions + (size_t)t->first_decision[i] * width, tokens,
               sizeof(float) * width * (size_t)t->decision_count[i]);
    }
    tl_arena_destroy(arena);
    return true;
}

bool tl_entry_table_make(tl_explorer *x, const int *entries, int count, tl_entry_table *t)
{
    bool with_tokens = x->experts.tokens != NULL;
    *t = (tl_entry_table){ 0 };
    if (!add_rows(x, entries, count, t) || (with_tokens && !add_decisions(x, entries, count, t)))
        return false;
    t->programs = (tl_cost_samples){
        .shape = with_tokens ? tl_sample_shape_of_points() : tl_sample_shape_of_rows(),
        .count = count,
        .task_count = 1,
        .domain_count = 1,
        .first_row = t->first_row,
        .row_count = t->row_count,
        .rows = t->rows,
        .first_decision = t->first_decision,
        .decision_count = t->decision_count,
        .decisions = t->decisions,
        .task = t->task,
        .workloads = x->experts.workload,
        .machines = x->experts.machine,
        .profiles = &x->search.target->machine,
    };
    return true;
}
