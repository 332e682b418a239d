/* tuner/model/compare_builds.c: two builds of a model side by side: pairs of runs, and the times of their steps. */
#include <math.h>
#include <string.h>
#include "runtime/base/statistics.h"
#include "tuner/model/verdict_private.h"

enum { MAX_PAIRS = 400, LEAST_PAIRS = 12, LEAST_RUNS = 2, STEP_RUNS = 400 };
#define BLOCK_NS 20000000 /* a sample is the shortest of as many runs as fill this */

/* One flag a step of `x`: not the same code as in `y`. Where the steps are not the same ones, all differ. */
static const bool *find_differing(const tl_verdict_state *s, const tl_tunable_build *x,
                                  const tl_tunable_build *y)
{
    bool *differs = TL_NEW_ARRAY(s->arena, bool, x->step_count);
    for (int i = 0; i < x->step_count; i++)
        differs[i] =
            x->step_count != y->step_count || strcmp(x->steps[i].code, y->steps[i].code) != 0;
    return differs;
}

/* The shortest of the runs that fill a block of time, of two at least: the whole, and the steps that differ alone. */
static tl_status sample(const tl_verdict_state *s, tl_tunable_build *x, const bool *differs,
                        int64_t *step_ns, double *whole, double *part, tl_diag *diag)
{
    int64_t start = tl_verdict_clock_ns(s), end = start;
    *whole = *part = INFINITY;
    for (int n = 0; n < LEAST_RUNS || end - start < BLOCK_NS; n++) {
        int64_t before = tl_verdict_clock_ns(s);
        double sum = 0;
        TL_TRY(tl_verdict_run(s, x, 0, step_ns, diag));
        end = tl_verdict_clock_ns(s);
        for (int i = 0; i < x->step_count; i++)
            sum += differs[i] ? (double)step_ns[i] : 0;
        *whole = fmin(*whole, (double)(end - before));
        *part = fmin(*part, sum);
    }
    return TL_OK;
}

tl_status tl_verdict_compare(const tl_verdict_state *s, tl_tunable_build *a, tl_tunable_build *b,
                             double seconds, tl_verdict_comparison *out, tl_diag *diag)
{
    tl_tunable_build *const builds[2] = { a, b };
    const bool *differs[2] = { find_differing(s, a, b), find_differing(s, b, a) };
    int64_t *step_ns[2];
    double *ratios = TL_NEW_ARRAY(s->arena, double, MAX_PAIRS), *whole[2];
    double *part_ratios = TL_NEW_ARRAY(s->arena, double, MAX_PAIRS), part[2], unused;
    int64_t end = tl_verdict_clock_ns(s) + (int64_t)(seconds * 1e9);
    int n = 0;
    for (int k = 0; k < 2; k++) {
        whole[k] = TL_NEW_ARRAY(s->arena, double, MAX_PAIRS);
        step_ns[k] = TL_NEW_ARRAY(s->arena, int64_t, builds[k]->step_count);
        TL_TRY(sample(s, builds[k], differs[k], step_ns[k], &unused, &unused, diag)); /* warm */
    }
    while (n < MAX_PAIRS && (n < LEAST_PAIRS || tl_verdict_clock_ns(s) < end)) {
        TL_TRY(tl_verdict_check_stop(s, diag));
        for (int k = 0; k < 2; k++) {
            int i = (k + n) % 2;
            TL_TRY(sample(s, builds[i], differs[i], step_ns[i], &whole[i][n], &part[i], diag));
        }
        ratios[n] = whole[1][n] / whole[0][n];
        part_ratios[n] = part[1] / part[0];
        n++;
        tl_verdict_tell(s, "comparing the model");
    }
    out->ratio = tl_median_interval(ratios, n);
    out->part = tl_median_interval(part_ratios, n);
    out->ns[0] = tl_median_interval(whole[0], n).median;
    out->ns[1] = tl_median_interval(whole[1], n).median;
    out->pairs = n;
    return TL_OK;
}

bool tl_verdict_is_faster(const tl_verdict_comparison *c)
{
    return c->ratio.high < 1 || (c->ratio.median < 1 && c->part.high < 1);
}

tl_status tl_verdict_compare_whole(tl_verdict_state *s, tl_tunable_build *with, double seconds,
                                   bool *is_faster, tl_diag *diag)
{
    tl_verdict_comparison c;
    TL_TRY(tl_verdict_compare(s, s->base, with, seconds, &c, diag));
    s->out->ratio = c.ratio.median;
    s->out->ratio_low = c.ratio.low;
    s->out->ratio_high = c.ratio.high;
    s->out->part = c.part;
    s->out->untuned_ns = c.ns[0];
    s->out->tuned_ns = c.ns[1];
    s->out->pairs = c.pairs;
    *is_faster = tl_verdict_is_faster(&c);
    return TL_OK;
}

tl_status tl_verdict_time_steps(const tl_verdict_state *s, tl_tunable_build *const builds[2],
                                double seconds, int64_t *least[2], tl_diag *diag)
{
    int64_t *now[2];
    for (int k = 0; k < 2; k++) {
        int count = builds[k]->step_count;
        now[k] = TL_NEW_ARRAY(s->arena, int64_t, count);
        least[k] = TL_NEW_ARRAY(s->arena, int64_t, count);
        for (int i = 0; i < count; i++)
            least[k][i] = INT64_MAX;
        TL_TRY(tl_verdict_run(s, builds[k], 0, NULL, diag));
    }
    int64_t end = tl_verdict_clock_ns(s) + (int64_t)(seconds * 1e9);
    for (int n = 0; n < STEP_RUNS && (n < LEAST_PAIRS || tl_verdict_clock_ns(s) < end); n++) {
        TL_TRY(tl_verdict_check_stop(s, diag));
        tl_verdict_tell(s, "comparing kernels");
        for (int k = 0; k < 2; k++) {
            int which = (k + n) % 2;
            TL_TRY(tl_verdict_run(s, builds[which], 0, now[which], diag));
            for (int i = 0; i < builds[which]->step_count; i++)
                if (now[which][i] < least[which][i])
                    least[which][i] = now[which][i];
        }
    }
    return TL_OK;
}
