/* tuner/model/verdict_state.c: what the comparisons of a whole model share: its builds, the clock, the end. */
#include <string.h>
#include "tuner/model/verdict_private.h"

int64_t tl_verdict_clock_ns(const tl_verdict_state *s)
{
    return s->model->type->clock_ns(s->model);
}

void tl_verdict_tell(const tl_verdict_state *s, const char *stage)
{
    double left = (double)(s->deadline_ns - tl_verdict_clock_ns(s)) * 1e-9;
    if (s->o->progress != NULL)
        s->o->progress(s->o->user, stage, left > 0 ? left : 0);
}

tl_status tl_verdict_check_stop(const tl_verdict_state *s, tl_diag *diag)
{
    return s->o->stop != NULL && *s->o->stop != 0
               ? tl_fail(diag, TL_INTERRUPTED, "stopped before the model was compared")
               : TL_OK;
}

tl_status tl_verdict_build(const tl_verdict_state *s, const tl_pick *picks, int count,
                           const char *form, tl_tunable_build **out, tl_diag *diag)
{
    tl_verdict_close(s, out);
    return s->model->type->build(s->model, picks, count, form, out, diag);
}

tl_status tl_verdict_build_tuned(tl_verdict_state *s, tl_diag *diag)
{
    tl_verdict_tell(s, "building");
    TL_TRY(tl_verdict_check_stop(s, diag));
    return tl_verdict_build(s, s->picks, s->pick_count, "", &s->tuned, diag);
}

void tl_verdict_close(const tl_verdict_state *s, tl_tunable_build **build)
{
    s->model->type->close(*build);
    *build = NULL;
}

tl_status tl_verdict_run(const tl_verdict_state *s, tl_tunable_build *build, int set,
                         int64_t *step_ns, tl_diag *diag)
{
    return s->model->type->run(build, set, step_ns, diag);
}

tl_verdict_workload *tl_verdict_find(const tl_verdict_state *s, const char *key)
{
    for (int i = 0; i < s->out->workload_count; i++)
        if (key != NULL && strcmp(s->workloads[i].workload, key) == 0)
            return &s->workloads[i];
    return NULL;
}
