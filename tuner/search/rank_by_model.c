/* tuner/search/rank_by_model.c: entries in the order of what the model expects of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tuner/search/entry_table.h"

static bool is_enough(const tl_explorer *x)
{
    bool any = x->right_count > 0 || x->method->warm_up == 0;
    return x->model != NULL && any && x->measured_count >= x->method->warm_up;
}

/* Teaches the model everything that was measured, when that is enough more than last time. */
static void learn(tl_explorer *x)
{
    if (!is_enough(x) ||
        (x->model_state > 0 && x->measured_count - x->trained_count < x->method->retrain))
        return;
    tl_entry_table t;
    float *label = malloc(sizeof *label * (size_t)(x->measured_count + 1));
    if (tl_entry_table_make(x, x->measured, x->measured_count, &t) && label != NULL) {
        double best = x->right_count > 0 ? tl_catalog_at(x->catalog, x->best)->score_ns : 0;
        for (int i = 0; i < x->measured_count; i++) {
            const tl_entry *e = tl_catalog_at(x->catalog, x->measured[i]);
            label[i] = e->state == TL_ENTRY_RIGHT ? (float)log(e->score_ns / best) : INFINITY;
        }
        t.programs.label = label;
        if (tl_cost_model_train(x->model, &t.programs, NULL, NULL, NULL) == TL_OK)
            x->model_state++;
        x->trained_count = x->measured_count;
    } else {
        x->failed = true;
    }
    free(label);
    tl_entry_table_free(&t);
}

/* Asks the model about those it has not seen since it learned last. */
static bool predict(tl_explorer *x, const int *entries, int count)
{
    tl_entry_table t;
    int *asked = malloc(sizeof *asked * (size_t)(count + 1)), asked_count = 0;
    float *mean = malloc(sizeof *mean * (size_t)(count + 1));
    bool done = asked != NULL && mean != NULL;
    for (int i = 0; i < count && done; i++) {
        tl_entry *e = tl_catalog_at(x->catalog, entries[i]);
        if (e->scored_by == x->model_state)
            continue;
        e->scored_by = x->model_state;
        asked[asked_count++] = entries[i];
    }
    if (done && asked_count > 0) {
        done = tl_entry_table_make(x, asked, asked_count, &t);
        x->failed |= !done;
        done = done && tl_cost_model_predict(x->model, &t.programs, mean, NULL);
        for (int i = 0; i < asked_count && done; i++)
            tl_catalog_at(x->catalog, asked[i])->score = -mean[i];
        tl_entry_table_free(&t);
    }
    free(asked);
    free(mean);
    return done;
}

bool tl_explorer_score(tl_explorer *x, const int *entries, int count, float *score)
{
    learn(x);
    bool known = x->model_state > 0 && predict(x, entries, count);
    for (int i = 0; i < count; i++)
        score[i] = known ? tl_catalog_at(x->catalog, entries[i])->score
                         : (float)tl_random_unit(&x->random);
    return known;
}

typedef struct {
    float score;
    int entry;
} scored;

/* Equal scores keep the older entry first, so that the order never depends on how it is sorted. */
static int best_first(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->entry < y->entry ? -1 : x->entry > y->entry;
}

void tl_explorer_rank(tl_explorer *x, int *entries, float *score, int count)
{
    scored *all = malloc(sizeof *all * (size_t)(count + 1));
    if (all == NULL) {
        x->failed = true;
        return;
    }
    for (int i = 0; i < count; i++)
        all[i] = (scored){ score[i], entries[i] };
    qsort(all, (size_t)count, sizeof *all, best_first);
    for (int i = 0; i < count; i++) {
        score[i] = all[i].score;
        entries[i] = all[i].entry;
    }
    free(all);
}
