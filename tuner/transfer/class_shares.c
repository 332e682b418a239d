/* tuner/transfer/class_shares.c: how the untuned time of a model is shared among the classes of its kernels, as the analytic cost
 * model expects it. */
#include "runtime/base/map.h"
#include "tuner/cost/features.h"
#include "tuner/transfer/transfer.h"

/* Cycles of the task's default schedule; 0: it cannot be made. */
static tl_status expect_cycles(tl_arena *arena, const tl_weighted_task *task,
                               const tl_target *target, int threads, tl_space_kind kind,
                               double *out, tl_diag *diag)
{
    tl_space *space;
    tl_variant v;
    const float *rows;
    *out = 0;
    TL_TRY(tl_space_create(arena, task->measure, target, threads, kind, &space, diag));
    tl_status status = tl_space_build(space, arena, task->untuned, NULL, 0, &v, diag);
    if (status != TL_OK)
        return status == TL_ILLEGAL_SCHEDULE ? TL_OK : status;
    const int count = tl_features_of(arena, v.program, target, &rows);
    *out = tl_analytic_cycles(NULL, rows, count);
    return TL_OK;
}

tl_status tl_transfer_shares(tl_arena *arena, const tl_weighted_task *tasks, int count,
                             const tl_target *target, int threads, tl_space_kind kind,
                             tl_class_share **out, int *out_count, tl_diag *diag)
{
    tl_map *seen = tl_map_create(arena);
    tl_class_share *shares = TL_NEW_ARRAY(arena, tl_class_share, count);
    double all = 0;
    tl_status status = TL_OK;
    *out = shares;
    *out_count = 0;
    for (int i = 0; i < count && status == TL_OK; i++) {
        double cycles;
        status = expect_cycles(arena, &tasks[i], target, threads, kind, &cycles, diag);
        tl_class_share *share = tl_map_find(seen, tasks[i].class_key);
        if (share == NULL) {
            share = &shares[(*out_count)++];
            *share = (tl_class_share){ .class_key = tasks[i].class_key };
            tl_map_put(seen, tasks[i].class_key, share);
        }
        share->share += tasks[i].weight * cycles;
        all += tasks[i].weight * cycles;
    }
    for (int c = 0; c < *out_count && all > 0; c++)
        shares[c].share /= all;
    return status;
}
