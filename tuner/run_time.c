/* tuner/run_time.c: times a candidate against the incumbent.
 *
 * Candidate and incumbent take turns, two samples each (the second one warm), so that whatever the machine does happens
 * to both; minima are compared. A sample is as many calls as fill 30 microseconds. A series goes on until both were seen
 * with the core to themselves (another hyperthread of it, that is somebody else's, costs them up to half of their speed). A
 * series in which the incumbent is much slower than it was of late, though alone, is thrown away; so is what happened while
 * a witness was disturbed. */
#include <string.h>
#include "runtime/base/sort.h"
#include "runtime/clock.h"
#include "tuner/worker_private.h"

enum {
    SAMPLE_NS = 30000,
    COLD_START_NS = 100000,
    EARLY = 3,
    SURE = 6,
    LEAST_CALM =
        3, /* samples of a series with the core to itself, and for how many times its length they are awaited */
    PATIENCE = 2,
    MAX_SERIES = 3,
    MAX_WAITS = 4,
    MAX_CALLS = 1000
};
#define HOPELESS          1.2
#define BEHIND            1.03
#define FAR_OFF           3.0 /* seen at the first look */
#define NEAR_BEST         0.85
#define WIN               0.99  /* of a first series: worth a second one */
#define SURE_WIN          0.995 /* of the second series */
#define CLEAR_WIN         0.95  /* of a disturbed one */
#define LOST              10.0  /* seen when it was checked */
#define WITNESS_AGE       200000000
#define PAUSE_NS          10000000
#define NAP_NS            1000000
#define FIRST_PATIENCE_NS 500000000
#define CROWN_PATIENCE_NS 100000000
#define MOST_OF_LIMIT     0.05

typedef struct {
    tl_run_state *state;
    tl_runnable *r;
    tl_cold cold;
    int calls;    /* in a sample */
    int calm;     /* samples of the series during which nobody else was on the core */
    double least; /* of the series */
} subject;

static double sample(subject *s)
{
    void *buffers[2 * TL_MAX_PARAMS];
    tl_run_state *state = s->state;
    tl_caches_set_up(state, s->r, s->cold, buffers);
    int64_t start = tl_clock_ns();
    for (int i = 0; i < s->calls; i++)
        tl_runnable_call(s->r, state->pool, state->config->threads, buffers, state->task->dims);
    double ns = (double)(tl_clock_ns() - start) / s->calls;
    bool was_calm = state->was_calm;
    state->was_calm = tl_witness_is_alone(state->witness);
    s->calm += was_calm && state->was_calm;
    s->least = ns < s->least ? ns : s->least;
    return ns;
}

static void begin(subject *s)
{
    s->calm = 0;
    s->least = 1e300;
}

/* Warms up, and finds out how many calls make a sample. */
static void calibrate(subject *s)
{
    s->calls = 1;
    begin(s);
    double ns = sample(s);
    if (s->cold == TL_COLD_NOTHING && ns < SAMPLE_NS)
        s->calls = ns > 0 && SAMPLE_NS / ns < MAX_CALLS ? (int)(SAMPLE_NS / ns) + 1 : MAX_CALLS;
}

static void wait_for_calm(tl_run_state *state, tl_run_times *out)
{
    for (int i = 0; !tl_witness_is_calm(state->witness, state->pool, i == 0 ? WITNESS_AGE : 0);
         i++) {
        if (i == MAX_WAITS) {
            tl_witness_accept(state->witness);
            out->disturbed = true;
            return;
        }
        tl_clock_sleep_ns(PAUSE_NS);
    }
}

/* Until nobody else is on the core, as far as `patience` (nanoseconds, for a whole series) goes. */
static void wait_for_solitude(tl_run_state *state, int64_t *patience)
{
    while (*patience > 0 && !state->was_calm) {
        tl_clock_sleep_ns(NAP_NS);
        *patience -= NAP_NS;
        state->was_calm = tl_witness_is_alone(state->witness);
    }
}

/* Both were seen without company, or neither: their minima may be compared. */
static bool are_alike(const subject *a, const subject *b)
{
    return (a->calm >= LEAST_CALM) == (b->calm >= LEAST_CALM);
}

/* A candidate that may win is looked at as often as was asked for, and longer as long as there was company; what is behind
 * only so often that it is sure. */
static bool has_enough(const subject *candidate, const subject *incumbent, int count, int repeats,
                       bool early)
{
    bool is_calm =
        candidate->calm >= LEAST_CALM && (incumbent->r == NULL || incumbent->calm >= LEAST_CALM);
    if (early && count >= SURE && candidate->least > BEHIND * incumbent->least &&
        are_alike(candidate, incumbent))
        return true;
    return count >= (is_calm ? repeats : PATIENCE * repeats);
}

static bool is_hopeless(const subject *candidate, const subject *incumbent, int count)
{
    double ratio = candidate->least / incumbent->least;
    return ratio > FAR_OFF ||
           (count >= EARLY && ratio > HOPELESS && are_alike(candidate, incumbent));
}

/* Waiting counts for the limit of the job, too. */
static int64_t patience_of(const tl_run_state *state, bool is_first)
{
    int64_t most = (int64_t)(state->config->limit_s * 1e9 * MOST_OF_LIMIT);
    int64_t wanted = is_first ? FIRST_PATIENCE_NS : CROWN_PATIENCE_NS;
    return wanted < most ? wanted : most;
}

/* One series; false: the incumbent was disturbed. One that may end early does not wait for anything. */
static bool run_series(subject *candidate, subject *incumbent, int repeats, bool early,
                       tl_run_times *out)
{
    const int most = (int)(sizeof out->times_ns / sizeof *out->times_ns);
    int64_t patience = early ? 0 : patience_of(candidate->state, incumbent->r == NULL);
    begin(candidate);
    begin(incumbent);
    out->count = 0;
    out->hopeless = false;
    while (out->count < most && !has_enough(candidate, incumbent, out->count, repeats, early)) {
        wait_for_solitude(candidate->state, &patience);
        for (int twice = 0; twice < 2; twice++) {
            double ns = sample(candidate);
            if (out->count < most)
                out->times_ns[out->count++] = ns;
        }
        if (incumbent->r == NULL)
            continue;
        wait_for_solitude(candidate->state, &patience);
        sample(incumbent);
        sample(incumbent);
        if (early && is_hopeless(candidate, incumbent, out->count)) {
            out->hopeless = true;
            break;
        }
    }
    if (incumbent->r == NULL)
        return true;
    double best = incumbent->r->best_ns;
    if (out->hopeless && candidate->least > FAR_OFF * incumbent->least) {
        /* so long a run leaves the incumbent cold caches: that is no disturbance, and no time of its own */
        if (best > 0 && best < incumbent->least)
            incumbent->least = best;
        return true;
    }
    if (best == 0 || incumbent->least < best)
        incumbent->r->best_ns = incumbent->least;
    return incumbent->calm < LEAST_CALM || best == 0 || incumbent->least <= best / NEAR_BEST;
}

/* Series until one is undisturbed. */
static void measure(subject *candidate, subject *incumbent, int repeats, bool early,
                    tl_run_times *out)
{
    for (int i = 0; !run_series(candidate, incumbent, repeats, early, out); i++) {
        if (i + 1 == MAX_SERIES) { /* the machine became slower: believe it */
            incumbent->r->best_ns = incumbent->least;
            out->disturbed = true;
            return;
        }
        out->discarded++;
        tl_clock_sleep_ns(PAUSE_NS);
    }
}

/* `score` is the incumbent's. */
static void summarize(const subject *candidate, const subject *incumbent, double score,
                      tl_run_times *out)
{
    double sorted[64];
    memcpy(sorted, out->times_ns, (size_t)out->count * sizeof *sorted);
    tl_sort_doubles(sorted, out->count);
    out->time_ns = candidate->least;
    out->median_ns = sorted[out->count / 2];
    out->incumbent_ns = incumbent->r != NULL ? incumbent->least : 0;
    out->score_ns = out->time_ns;
    if (incumbent->r != NULL && score > 0)
        out->score_ns *= score / out->incumbent_ns;
}

/* A candidate that took ten times as long as the incumbent while it was checked is not run again. */
static bool is_lost(const tl_run_state *state, double checked_ns, tl_run_times *out)
{
    double best = state->incumbent != NULL ? state->incumbent->best_ns : 0;
    if (best <= 0 || checked_ns < LOST * best + COLD_START_NS)
        return false;
    out->times_ns[out->count++] = out->time_ns = out->median_ns = checked_ns;
    out->incumbent_ns = best;
    out->score_ns = checked_ns * state->incumbent_score / best;
    out->hopeless = true;
    return true;
}

/* A new incumbent's score comes from a series against the first: along a chain of winners, each of whom owed a little to
 * luck, the luck would multiply. */
static void score_crowned(subject *candidate, int repeats, tl_run_times *out)
{
    tl_run_state *state = candidate->state;
    subject first = { .state = state, .r = state->first, .cold = state->cold };
    if (state->first == NULL || state->first == state->incumbent ||
        !tl_caches_prepare(state, state->first, state->cold))
        return;
    calibrate(&first);
    measure(candidate, &first, repeats, false, out);
    summarize(candidate, &first, state->first_score, out);
}

void tl_run_time(tl_run_state *state, tl_runnable *r, bool careful, tl_cold cold, double checked_ns,
                 tl_run_times *out)
{
    int repeats = careful ? 3 * state->config->repeats : state->config->repeats;
    bool has_memory =
        tl_caches_prepare(state, r, cold) &&
        (state->incumbent == NULL || tl_caches_prepare(state, state->incumbent, cold));
    cold = has_memory ? cold : TL_COLD_NOTHING;
    subject candidate = { .state = state, .r = r, .cold = cold };
    subject incumbent = { .state = state, .r = state->incumbent, .cold = cold };
    bool may_win = state->incumbent == NULL || cold == state->cold;
    *out = (tl_run_times){ .cold = cold };
    if (!careful && may_win && is_lost(state, checked_ns, out))
        return;
    wait_for_calm(state, out);
    calibrate(&candidate);
    if (incumbent.r != NULL)
        calibrate(&incumbent);
    measure(&candidate, &incumbent, repeats, !careful && incumbent.r != NULL, out);
    summarize(&candidate, &incumbent, state->incumbent_score, out);
    if (state->incumbent == NULL) {
        out->crowned = true;
    } else if (may_win && !out->hopeless && candidate.least < WIN * incumbent.least) {
        wait_for_calm(state, out);
        measure(&candidate, &incumbent, 2 * repeats, false, out);
        summarize(&candidate, &incumbent, state->incumbent_score, out);
        out->disturbed |= !are_alike(&candidate, &incumbent);
        /* what a disturbed series says must be clear to be believed */
        out->crowned = candidate.least < (out->disturbed ? CLEAR_WIN : SURE_WIN) * incumbent.least;
        if (out->crowned)
            score_crowned(&candidate, 2 * repeats, out);
    }
}
