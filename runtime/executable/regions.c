/* runtime/executable/regions.c: the tree that steps are. */
#include "runtime/executable/regions.h"
#include <assert.h>

tl_status tl_regions_check(const tl_executable_step *steps, int count, tl_diag *diag)
{
    int ends[2 * TL_REGION_DEPTH + 1],
        depth = 0; /* a choice has two: of its first branch, and of all */

    ends[0] = count;
    for (int s = 0; s < count; s++) {
        const tl_executable_step *step = &steps[s];
        while (depth > 0 && s >= ends[depth])
            depth--;
        if (step->body < 0 || step->other < 0 ||
            (!tl_step_has_region(step) && (step->body | step->other) != 0) ||
            (step->kernel == TL_STEP_LOOP && step->other != 0))
            return tl_fail(diag, TL_BAD_ARGUMENT, "executable: step %s owns %d and %d steps",
                           step->name, step->body, step->other);
        int left = ends[depth] - s - 1;
        if (step->body > left || step->other > left - step->body)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "executable: step %s owns %d and %d steps, but only %d are left",
                           step->name, step->body, step->other, left);
        if (!tl_step_has_region(step))
            continue;
        if (depth + 2 > 2 * TL_REGION_DEPTH)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "executable: step %s is inside of too many loops and choices",
                           step->name);
        ends[++depth] = tl_step_end(steps, s);
        ends[++depth] = s + 1 + step->body;
    }
    return TL_OK;
}

void tl_regions_owners(const tl_executable_step *steps, int count, int *owner)
{
    for (int s = 0; s < count; s++)
        owner[s] = -1;
    for (int s = 0; s < count; s++) {
        if (!tl_step_has_region(&steps[s]))
            continue;
        int end = tl_step_end(steps, s);
        assert(end <= count);
        for (int k = s + 1; k < end; k++) /* an inner one comes later, and overwrites */
            owner[k] = s;
    }
}
