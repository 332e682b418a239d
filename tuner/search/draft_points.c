/* tuner/search/draft_points.c: the best of many random points by the model's word. */
#include <stdlib.h>
#include "tuner/search/policy_private.h"

void tl_explorer_draft(tl_explorer *x, int samples, int count, tl_search_plan *plan)
{
    int *entries = malloc(sizeof *entries * (size_t)samples), found = 0;
    float *score = malloc(sizeof *score * (size_t)samples);
    plan->count = plan->at = 0;
    if (entries == NULL || score == NULL) {
        x->failed = true;
    } else {
        for (int i = 0; i < samples; i++)
            tl_catalog_sample(x->catalog, &x->random);
        /* new ones that were met in a round before are as good */
        for (int i = tl_catalog_count(x->catalog) - 1; i >= 0 && found < samples; i--)
            if (tl_explorer_is_new(x, i))
                entries[found++] = i;
        tl_explorer_score(x, entries, found, score);
        tl_explorer_rank(x, entries, score, found);
        for (int i = 0; i < found && i < count; i++)
            tl_plan_add(plan, entries[i], (double)score[i], "draft");
    }
    free(entries);
    free(score);
}
