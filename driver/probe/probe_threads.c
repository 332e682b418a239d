/* driver/probe/probe_threads.c: what it costs that threads meet. */
#include <stdatomic.h>
#include "driver/probe/probe_private.h"
#include "runtime/base/clock.h"

enum { SLICES = 40, MEETINGS = 200, FORKS = 40, NAP_NS = 100000 };

typedef struct {
    double least_ns;
} meeting_job;

static void meet(tl_team *team, void *context)
{
    meeting_job *job = context;
    for (int s = 0; s < SLICES; s++) {
        tl_team_barrier(team);
        int64_t start = tl_clock_ns();
        for (int i = 0; i < MEETINGS; i++)
            tl_team_barrier(team);
        if (team->thread == 0)
            tl_probe_keep_least(&job->least_ns, (double)(tl_clock_ns() - start) / MEETINGS);
    }
}

static void do_nothing(tl_team *team, void *context)
{
    (void)team;
    (void)context;
}

tl_status tl_probe_threads(const tl_probe_options *o, tl_machine *m, tl_diag *diag)
{
    if (tl_pool_threads(o->pool) < 2)
        return TL_OK; /* nobody to meet */
    TL_TRY(tl_pool_check(o->pool, 0, diag));
    meeting_job job = { 0 };
    tl_pool_run(o->pool, 0, meet, &job);
    tl_probe_keep_least(&m->barrier_ns, job.least_ns);
    for (int i = 0; i < FORKS;
         i++) { /* of threads that still look, as between two runs of a model */
        tl_clock_sleep_ns(NAP_NS);
        int64_t start = tl_clock_ns();
        tl_pool_run(o->pool, 0, do_nothing, NULL);
        tl_probe_keep_least(&m->fork_ns, (double)(tl_clock_ns() - start));
    }
    return TL_OK;
}
