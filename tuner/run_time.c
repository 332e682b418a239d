/* tuner/run_time.c: times a candidate against the incumbent.
 *
 * Candidate and incumbent take turns, two samples each (the second one warm), so that whatever the machine does happens
 * to both; minima are compared. A sample is as many calls as fill 30 microseconds. A series in which the incumbent is
 * much slower than it was of late is thrown away; so is what happened while a witness was disturbed. */
#include <stdlib.h>
#include <string.h>
#include "runtime/clock.h"
#include "tuner/worker_private.h"

enum {
    SAMPLE_NS = 30000,
    COLD_START_NS = 100000,
    EARLY = 3,
    MAX_SERIES = 3,
    MAX_WAITS = 4,
    MAX_CALLS = 1000
};
#define HOPELESS    1.2
#define FAR_OFF     3.0 /* seen at the first look */
#define NEAR_BEST   0.85
#define WIN         0.99  /* of a first series: worth a second one */
#define SURE_WIN    0.995 /* of the second series */
#define CLEAR_WIN   0.95  /* of a disturbed one */
#define LOST        10.0  /* seen when it was checked */
#define WITNESS_AGE 200000000
#define PAUSE_NS    10000000

typedef struct {
    tl_run_state *state;
    tl_runnable *r;
    bool cold;
    int calls;    /* in a sample */
    double least; /* of the series */
} subject;

/* The buffers of a call: the random inputs, or in a cold series the next copy of them all, which neither candidate nor
 * incumbent has touched for a whole turn. */
static void get_buffers(subject *s, void **buffers)
{
    tl_run_state *state = s->state;
    int params = state->task->program->param_count;
    int64_t copy = s->cold ? state->next_copy++ % state->copies : -1;
    for (int i = 0; i < params; i++)
        buffers[i] = copy < 0 ? state->buffers[0][i]
                              : state->rotating.data + copy * state->copy_bytes + state->offset[i];
    for (int i = 0; i < s->r->prepared_count; i++)
        buffers[params + i] =
            copy < 0 ? s->r->prepared[i].data
                     : s->r->rotating.data + copy * s->r->copy_bytes + s->r->prepared_offset[i];
}

static double sample(subject *s)
{
    void *buffers[2 * TL_MAX_PARAMS];
    const tl_run_state *state = s->state;
    get_buffers(s, buffers);
    int64_t start = tl_clock_ns();
    for (int i = 0; i < s->calls; i++)
        tl_runnable_call(s->r, state->pool, state->config->threads, buffers, state->task->dims);
    double ns = (double)(tl_clock_ns() - start) / s->calls;
    s->least = ns < s->least ? ns : s->least;
    return ns;
}

/* Warms up, and finds out how many calls make a sample. */
static void calibrate(subject *s)
{
    s->calls = 1;
    s->least = 1e300;
    double ns = sample(s);
    if (!s->cold && ns < SAMPLE_NS)
        s->calls = ns > 0 && SAMPLE_NS / ns < MAX_CALLS ? (int)(SAMPLE_NS / ns) + 1 : MAX_CALLS;
    s->least = 1e300;
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

/* One series; false: the incumbent was disturbed. */
static bool run_series(subject *candidate, subject *incumbent, int repeats, bool early,
                       tl_run_times *out)
{
    const int most = (int)(sizeof out->times_ns / sizeof *out->times_ns);
    candidate->least = 1e300;
    out->count = 0;
    out->hopeless = false;
    repeats = repeats < most ? repeats : most;
    if (incumbent->r != NULL)
        incumbent->least = 1e300;
    while (out->count < repeats) {
        for (int twice = 0; twice < 2; twice++) {
            double ns = sample(candidate);
            if (out->count < most)
                out->times_ns[out->count++] = ns;
        }
        if (incumbent->r == NULL)
            continue;
        sample(incumbent);
        sample(incumbent);
        double ratio = candidate->least / incumbent->least;
        if (early && ratio > (out->count >= EARLY ? HOPELESS : FAR_OFF)) {
            out->hopeless = true;
            break;
        }
    }
    if (incumbent->r == NULL)
        return true;
    double best = incumbent->r->best_ns;
    if (out->hopeless && candidate->least > FAR_OFF * incumbent->least) {
        /* so long a run leaves the incumbent cold caches: that is no disturbance, and no time of its own */
        if (best > 0 && !incumbent->cold && best < incumbent->least)
            incumbent->least = best;
        return true;
    }
    if (!incumbent->cold && (best == 0 || incumbent->least < best))
        incumbent->r->best_ns = incumbent->least;
    return incumbent->cold || best == 0 || incumbent->least <= best / NEAR_BEST;
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

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* `score` is the incumbent's. */
static void summarize(const subject *candidate, const subject *incumbent, double score,
                      tl_run_times *out)
{
    double sorted[64];
    memcpy(sorted, out->times_ns, (size_t)out->count * sizeof *sorted);
    qsort(sorted, (size_t)out->count, sizeof *sorted, by_value);
    out->time_ns = candidate->least;
    out->median_ns = sorted[out->count / 2];
    out->incumbent_ns = incumbent->r != NULL ? incumbent->least : 0;
    out->score_ns = out->time_ns;
    if (incumbent->r != NULL && score > 0)
        out->score_ns *= score / out->incumbent_ns;
}

/* A copy of what the caller may rotate through, for a kernel's packed constants. False: no memory. */
static bool rotate_prepared(const tl_run_state *state, tl_runnable *r)
{
    int64_t bytes = 0;
    if (r->rotating.base != NULL || r->prepared_count == 0)
        return true;
    for (int i = 0; i < r->prepared_count; i++) {
        r->prepared_offset[i] = bytes;
        bytes += ((int64_t)r->prepared[i].size + 63) / 64 * 64;
    }
    r->copy_bytes = bytes;
    if (!tl_guarded_create((size_t)(bytes * state->copies), &r->rotating))
        return false;
    for (int c = 0; c < state->copies; c++)
        for (int i = 0; i < r->prepared_count; i++)
            memcpy(r->rotating.data + c * bytes + r->prepared_offset[i], r->prepared[i].data,
                   r->prepared[i].size);
    return true;
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
    subject first = { .state = state, .r = state->first, .calls = 1 };
    if (state->first == NULL || state->first == state->incumbent)
        return;
    calibrate(&first);
    measure(candidate, &first, repeats, false, out);
    summarize(candidate, &first, state->first_score, out);
}

void tl_run_time(tl_run_state *state, tl_runnable *r, int flags, double checked_ns,
                 tl_run_times *out)
{
    bool careful = flags & TL_RUN_CAREFUL, cold = flags & TL_RUN_COLD;
    int repeats = careful ? 3 * state->config->repeats : state->config->repeats;
    cold = cold && tl_run_state_rotate(state) && rotate_prepared(state, r) &&
           (state->incumbent == NULL || rotate_prepared(state, state->incumbent));
    subject candidate = { .state = state, .r = r, .cold = cold, .calls = 1 };
    subject incumbent = { .state = state, .r = state->incumbent, .cold = cold, .calls = 1 };
    *out = (tl_run_times){ .cold = cold };
    if (!careful && !cold && is_lost(state, checked_ns, out))
        return;
    wait_for_calm(state, out);
    calibrate(&candidate);
    if (incumbent.r != NULL)
        calibrate(&incumbent);
    measure(&candidate, &incumbent, repeats, !careful, out);
    summarize(&candidate, &incumbent, state->incumbent_score, out);
    if (state->incumbent == NULL) {
        out->crowned = !cold;
    } else if (!cold && !out->hopeless && candidate.least < WIN * incumbent.least) {
        wait_for_calm(state, out);
        measure(&candidate, &incumbent, 2 * repeats, false, out);
        summarize(&candidate, &incumbent, state->incumbent_score, out);
        /* what a disturbed series says must be clear to be believed */
        out->crowned = candidate.least < (out->disturbed ? CLEAR_WIN : SURE_WIN) * incumbent.least;
        if (out->crowned)
            score_crowned(&candidate, 2 * repeats, out);
    }
}
