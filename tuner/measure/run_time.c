/* tuner/measure/run_time.c: times a candidate against the incumbent (tuner/measure/contest.h), with the machine's clock.
 *
 * A sample is as many calls as fill 30 microseconds. What happened while a witness was disturbed does not count. */
#include "runtime/base/clock.h"
#include "tuner/measure/contest.h"
#include "tuner/measure/run_device.h"

enum { SAMPLE_NS = 30000, COLD_START_NS = 100000, MAX_WAITS = 4, MAX_CALLS = 1000 };
#define LOST              10.0 /* seen when it was checked */
#define WITNESS_AGE       200000000
#define PAUSE_NS          10000000
#define NAP_NS            1000000
#define FIRST_PATIENCE_NS 500000000
#define CROWN_PATIENCE_NS 1000000000
#define MOST_OF_LIMIT     0.1
#define SERIES_OF_LIMIT   0.35 /* there are two that decide */
#define LABEL_NS          150000000
#define LONG_NS           20000000.0 /* of a run: once is enough where it is lost */

typedef struct {
    tl_run_state *state;
    tl_cold cold;
} timing;

static double sample(void *user, void *kernel, bool *is_alone)
{
    const timing *t = user;
    tl_run_state *state = t->state;
    tl_runnable *r = kernel;
    void *buffers[2 * TL_MAX_PARAMS];
    if (r->bench != NULL) {
        *is_alone = true;
        return tl_bench_kernel_time(r->bench, state->task, r->calls, t->cold);
    }
    tl_caches_set_up(state, r, t->cold, buffers);
    int64_t start = tl_clock_ns();
    for (int i = 0; i < r->calls; i++)
        tl_runnable_call(r, state->pool, state->config->threads, buffers, state->task->dims);
    double ns = (double)(tl_clock_ns() - start) / r->calls;
    bool was_alone = state->is_alone;
    state->is_alone = tl_witness_is_alone(state->witness);
    *is_alone = was_alone && state->is_alone;
    return ns;
}

/* Naps are longer than they should be, on a busy host by a lot: what counts is the clock. */
static void wait_for_solitude(void *user, int64_t *patience_ns)
{
    tl_run_state *state = ((const timing *)user)->state;
    while (*patience_ns > 0 && state->patience_ns > 0 && !state->is_alone) {
        int64_t start = tl_clock_ns();
        tl_clock_sleep_ns(NAP_NS);
        state->is_alone = tl_witness_is_alone(state->witness);
        int64_t waited = tl_clock_ns() - start;
        *patience_ns -= waited;
        state->patience_ns -= waited;
    }
}

static void rest(void *user)
{
    (void)user;
    tl_clock_sleep_ns(PAUSE_NS);
}

static int64_t now(void *user)
{
    (void)user;
    return tl_clock_ns();
}

/* Warms up, and finds out how many calls make a sample. */
static void calibrate(timing *t, tl_runnable *r)
{
    bool is_alone;
    r->calls = 1;
    double ns = sample(t, r, &is_alone);
    if (t->cold == TL_COLD_NOTHING && ns < SAMPLE_NS)
        r->calls = ns > 0 && SAMPLE_NS / ns < MAX_CALLS ? (int)(SAMPLE_NS / ns) + 1 : MAX_CALLS;
}

static bool is_calm(tl_run_state *state, int64_t age_ns)
{
    return state->bench != NULL ? tl_bench_device_is_calm(state->bench, age_ns)
                                : tl_witness_is_calm(state->witness, state->pool, age_ns);
}

/* False: nothing helped, and the machine is taken as it is. */
static bool wait_for_calm(tl_run_state *state)
{
    for (int i = 0; !is_calm(state, i == 0 ? WITNESS_AGE : 0); i++) {
        if (i == MAX_WAITS) {
            if (state->bench != NULL)
                state->bench->best_peak_ns = 0;
            else
                tl_witness_accept(state->witness);
            return false;
        }
        tl_clock_sleep_ns(PAUSE_NS);
    }
    return true;
}

/* Waiting counts for the limit of the job, too. */
static int64_t patience_of(const tl_run_state *state)
{
    int64_t most = (int64_t)(state->config->limit_s * 1e9 * MOST_OF_LIMIT);
    int64_t wanted = state->incumbent == NULL ? FIRST_PATIENCE_NS : CROWN_PATIENCE_NS;
    return wanted < most ? wanted : most;
}

/* A candidate that took ten times as long as the incumbent while it was checked is not run again. */
static bool is_lost(const tl_run_state *state, double checked_ns, tl_contest_result *out)
{
    double best = state->incumbent != NULL ? state->incumbent->best_ns : 0;
    if (best <= 0 || checked_ns < LOST * best + COLD_START_NS)
        return false;
    out->times_ns[out->count++] = out->time_ns = checked_ns;
    out->incumbent_ns = best;
    out->score_ns = checked_ns * state->incumbent_score / best;
    out->ratio = checked_ns / best;
    out->censored = TL_CENSORED_LOST;
    out->hopeless = true;
    return true;
}

/* Of an emulated device what it computes is looked at: the time of the check has to do, and the lesser one wins. */
static void take_as_checked(const tl_run_state *state, double checked_ns, bool may_win,
                            tl_contest_result *out)
{
    double best = state->incumbent != NULL ? state->incumbent_score : 0;
    out->times_ns[out->count++] = out->time_ns = out->score_ns = checked_ns;
    out->incumbent_ns = best;
    out->ratio = best > 0 ? checked_ns / best : 1;
    out->turns = best > 0;
    out->crowned = best == 0 || (may_win && checked_ns < best);
}

static bool prepare(tl_run_state *state, tl_runnable *r, tl_cold cold)
{
    if (r->bench != NULL)
        return cold == TL_COLD_NOTHING || state->bench->flush != NULL ||
               tl_bench_device_is_emulated(state->bench);
    return tl_caches_prepare(state, r, cold) &&
           (state->incumbent == NULL || tl_caches_prepare(state, state->incumbent, cold));
}

static tl_stopwatch stopwatch(timing *t)
{
    return (tl_stopwatch){
        .user = t, .sample = sample, .wait = wait_for_solitude, .rest = rest, .now = now
    };
}

static void hold_contest(timing *t, tl_runnable *r, const tl_contest_rules *rules,
                         tl_contest_result *out)
{
    tl_run_state *state = t->state;
    const tl_stopwatch own = stopwatch(t);
    tl_runnable *incumbent = state->incumbent;
    tl_contender contenders[] = { { .kernel = r, .best_ns = r->best_ns }, { 0 } };
    if (incumbent != NULL)
        contenders[1] = (tl_contender){ incumbent, incumbent->best_ns, state->incumbent_score };
    for (int i = 0; i < 2; i++)
        if (contenders[i].kernel != NULL)
            calibrate(t, contenders[i].kernel);
    tl_contest(&own, rules, &contenders[0], &contenders[1], out);
    if (incumbent != NULL)
        incumbent->best_ns = contenders[1].best_ns;
}

void tl_run_time(tl_run_state *state, tl_runnable *r, bool careful, tl_cold cold, double checked_ns,
                 tl_run_times *out)
{
    timing t = { state, prepare(state, r, cold) ? cold : TL_COLD_NOTHING };
    const tl_contest_rules rules = { .repeats = (careful ? 3 : 1) * state->config->repeats,
                                     .is_careful = careful,
                                     .may_win = state->incumbent == NULL || t.cold == state->cold,
                                     .patience_ns = patience_of(state),
                                     .longest_ns = (int64_t)(state->config->limit_s * 1e9 *
                                                             SERIES_OF_LIMIT) };
    tl_contest_result result = { 0 };
    if (tl_bench_device_is_emulated(state->bench)) {
        take_as_checked(state, checked_ns, rules.may_win, &result);
    } else if (careful || !rules.may_win || !is_lost(state, checked_ns, &result)) {
        bool was_calm = wait_for_calm(state);
        hold_contest(&t, r, &rules, &result);
        result.disturbed |= !was_calm;
    }
    *out = (tl_run_times){ .contest = result,
                           .median_ns = tl_contest_median(result.times_ns, result.count),
                           .cold = t.cold };
}

void tl_run_label(tl_run_state *state, tl_runnable *r, tl_cold cold, double checked_ns,
                  tl_run_times *out)
{
    static const tl_label_rules rules = {
        .error = 0.02, .slow_error = 0.05, .slow = 3, .longest_ns = LABEL_NS
    };
    timing t = { state, prepare(state, r, cold) ? cold : TL_COLD_NOTHING };
    tl_runnable *standard = state->incumbent;
    tl_contest_result result = { 0 };
    if (tl_bench_device_is_emulated(state->bench)) {
        take_as_checked(state, checked_ns, false, &result);
    } else if (checked_ns < LONG_NS || !is_lost(state, checked_ns, &result)) {
        const tl_stopwatch own = stopwatch(&t);
        tl_contender contenders[] = { { .kernel = r, .best_ns = r->best_ns },
                                      { standard, standard->best_ns, state->incumbent_score } };
        bool is_calm = wait_for_calm(state);
        calibrate(&t, r);
        if (standard->calls == 0)
            calibrate(&t, standard);
        tl_label(&own, &rules, &contenders[0], &contenders[1], &result);
        result.disturbed |= !is_calm;
        if (standard->best_ns == 0 || result.incumbent_ns < standard->best_ns)
            standard->best_ns = result.incumbent_ns;
    }
    *out = (tl_run_times){ .contest = result,
                           .median_ns = tl_contest_median(result.times_ns, result.count),
                           .cold = t.cold };
}
