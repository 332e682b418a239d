/* tuner/score.c: entries in the order of what the model expects of them. */
#include <stdlib.h>
#include <string.h>
#include "tuner/policy_private.h"

bool tl_explorer_score(tl_explorer *x, const int *entries, int count, float *score)
{
    (void)entries;
    for (int i = 0; i < count; i++)
        score[i] = (float)tl_random_unit(&x->random);
    return false;
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
