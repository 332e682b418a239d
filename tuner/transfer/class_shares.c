/* tuner/transfer/class_shares.c: how the untuned time of a model is shared among the classes of its kernels, as the analytic cost
 * model expects it. */
#include <math.h>
#include "runtime/base/map.h"
#include "tuner/cost/features.h"
#include "tuner/transfer/transfer.h"

/* Cycles of the task's default schedule; 0: it cannot be made. */
static tl_status expect_cycles(tl_cost_model *model, tl_arena *arena, const tl_weighted_task *task,
                               const tl_target *target, int threads, tl_space_kind kind,
                               double *out, tl_diag *diag)
{
    tl_space *space;
    tl_variant v;
    const float *rows;
    float score = 0;
    *out = 0;
    TL_TRY(tl_space_create(arena, task->measure, target, threads, kind, &space, diag));
    tl_status status = tl_space_build(space, arena, task->untuned, NULL, 0, &v, diag);
    if (status != TL_OK)
        return status == TL_ILLEGAL_SCHEDULE ? TL_OK : status;
    const int first_row[2] = { 0, tl_features_of(arena, v.program, target, &rows) }, own = 0;
    const tl_feature_set set = {
        .count = 1, .width = TL_FEATURE_WIDTH, .first_row = first_row, .rows = rows, .task = &own
    };
    if (model->type->predict(model, &set, &score))
        *out = exp2(-score);
    return TL_OK;
}

tl_status tl_transfer_shares(tl_arena *arena, const tl_weighted_task *tasks, int count,
                             const tl_target *target, int threads, tl_space_kind kind,
                             tl_class_share **out, int *out_count, tl_diag *diag)
{
    tl_cost_model *model;
    tl_map *seen = tl_map_create(arena);
    tl_class_share *shares = TL_NEW_ARRAY(arena, tl_class_share, count);
    double all = 0;
    tl_status status = TL_OK;
    *out = shares;
    *out_count = 0;
    TL_TRY(tl_cost_model_find("analytic")->create(0, &model, diag));
    for (int i = 0; i < count && status == TL_OK; i++) {
        double cycles;
        status = expect_cycles(model, arena, &tasks[i], target, threads, kind, &cycles, diag);
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
    model->type->destroy(model);
    return status;
}
