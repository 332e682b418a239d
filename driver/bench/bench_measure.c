/* driver/bench/bench_measure.c: rounds of runs, each with a sample of the peak. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/statistics.h"
#include "driver/bench/bench.h"
#include "runtime/base/clock.h"
#include "runtime/device/peak.h"

enum { MAX_RUNS = 200000, MAX_ROUNDS = 2000, MAX_DEVICE_RUNS = 1000, DEVICE_NS = 10000000 };
#define DISTURBED 0.9

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

double tl_percent_of_peak(double flops, double ns, double peak_gflops)
{
    return ns > 0 && peak_gflops > 0 ? 100 * flops / (ns * peak_gflops) : 0;
}

typedef struct {
    tl_runner *runner;
    const tl_bindings *bindings;
    int64_t *step_ns;
    int64_t length_ns; /* of a round */
    int round_runs;    /* at most in a round */
    int device_runs;   /* in a row, for the device's own time; 0: not known yet */
    tl_timing *t;
} measurement;

/* The device's own time of a run, of so many in a row that launches and clocks do not count, in a third of the round. Of a kernel
 * alone that is its time: between two runs with their copies a device rests. */
static tl_status measure_device(measurement *m, tl_diag *diag)
{
    tl_timing *t = m->t;
    bool is_first = m->device_runs == 0;
    int64_t before = tl_clock_ns();
    double ns;
    TL_TRY(tl_runner_time_device(m->runner, m->bindings->in, m->bindings->out,
                                 is_first ? 1 : m->device_runs, &ns, diag));
    if (is_first) {
        double one = (double)(tl_clock_ns() - before) / 3; /* two that do not count go before */
        double fits = (double)m->length_ns / 3 / (one > 1 ? one : 1);
        double wanted = ns > 0 ? DEVICE_NS / ns : MAX_DEVICE_RUNS;
        double runs = fits < wanted ? fits : wanted;
        m->device_runs = runs > MAX_DEVICE_RUNS ? MAX_DEVICE_RUNS : runs > 1 ? (int)runs : 1;
        if (m->device_runs > 1)
            return measure_device(m, diag);
    }
    if (t->device_ns <= 0 || ns < t->device_ns)
        t->device_ns = ns;
    if (t->step_count == 1 && (int64_t)ns < t->step_ns[0])
        t->step_ns[0] = (int64_t)ns;
    return TL_OK;
}

/* At least one run, then as many as fit. Runs alternate with ones whose steps are timed, which costs some meetings of
 * the threads and counts for the steps only. */
static tl_status measure_round(measurement *m, tl_diag *diag)
{
    tl_timing *t = m->t;
    int first = t->run_count;
    int64_t start = tl_clock_ns();
    do {
        int64_t before = tl_clock_ns();
        TL_TRY(tl_runner_run(m->runner, m->bindings->in, m->bindings->out, NULL, diag));
        t->runs[t->run_count++] = tl_clock_ns() - before;
        TL_TRY(tl_runner_run(m->runner, m->bindings->in, m->bindings->out, m->step_ns, diag));
        for (int i = 0; i < t->step_count; i++)
            if (m->step_ns[i] < t->step_ns[i])
                t->step_ns[i] = m->step_ns[i];
    } while (tl_clock_ns() - start < m->length_ns && t->run_count - first < m->round_runs &&
             t->run_count < MAX_RUNS);
    qsort(t->runs + first, (size_t)(t->run_count - first), sizeof *t->runs, by_value);
    t->rounds[t->round_count].median_ns = tl_quantile(t->runs + first, t->run_count - first, 0.5);
    return TL_OK;
}

static void summarise(tl_timing *t)
{
    double sum = 0, squares = 0;
    qsort(t->runs, (size_t)t->run_count, sizeof *t->runs, by_value);
    for (int i = 0; i < t->run_count; i++)
        sum += (double)t->runs[i];
    t->mean_ns = sum / t->run_count;
    for (int i = 0; i < t->run_count; i++)
        squares += ((double)t->runs[i] - t->mean_ns) * ((double)t->runs[i] - t->mean_ns);
    t->deviation_ns = t->run_count > 1 ? sqrt(squares / (t->run_count - 1)) : 0;

    /* Tukey's far fence: three interquartile ranges above the third quartile */
    int64_t q1 = tl_quantile(t->runs, t->run_count, 0.25),
            q3 = tl_quantile(t->runs, t->run_count, 0.75);
    for (int i = 0; i < t->run_count; i++)
        t->outlier_count += t->runs[i] > q3 + 3 * (q3 - q1);
    for (int i = 0; i < t->round_count; i++) {
        t->rounds[i].disturbed = t->rounds[i].peak_gflops < DISTURBED * t->peak_gflops;
        t->disturbed_count += t->rounds[i].disturbed;
    }
}

tl_status tl_bench_measure(const tl_session *session, const tl_subject *subject, tl_runner *runner,
                           const tl_bindings *bindings, double seconds, tl_timing *t, tl_diag *diag)
{
    const tl_executable_spec *spec = tl_executable_info(subject->executable);
    *t = (tl_timing){ .step_count = spec->step_count };
    t->step_ns = TL_NEW_ARRAY(session->arena, int64_t, spec->step_count);
    t->runs = TL_NEW_ARRAY(session->arena, int64_t, MAX_RUNS);
    t->rounds = TL_NEW_ARRAY(session->arena, tl_round, MAX_ROUNDS);
    for (int i = 0; i < t->step_count; i++)
        t->step_ns[i] = INT64_MAX;
    /* two dozen rounds or more, of a tenth of a second where there is time */
    int64_t limit = (int64_t)(seconds * 1e9), length = limit / 24;
    length = length > 100000000 ? 100000000 : length;
    length = length < limit / 1000 ? limit / 1000 : length;
    measurement m = {
        .runner = runner,
        .bindings = bindings,
        .step_ns = TL_NEW_ARRAY(session->arena, int64_t, spec->step_count),
        .length_ns = length,
        .round_runs = MAX_RUNS / (limit > length && length > 0 ? (int)(limit / length) : 1),
        .t = t,
    };

    const tl_device *device = tl_executable_device(subject->executable);
    /* warm: pages, caches, clocks */
    TL_TRY(tl_runner_run(runner, bindings->in, bindings->out, NULL, diag));
    TL_TRY(tl_runner_run(runner, bindings->in, bindings->out, NULL, diag));
    int64_t start = tl_clock_ns();
    do {
        double peak = device != NULL
                          ? device->facts.f32_gflops
                          : tl_peak_gflops(session->pool, tl_runner_threads(runner), 0, 0.01);
        t->rounds[t->round_count].peak_gflops = peak;
        if (peak > t->peak_gflops)
            t->peak_gflops = peak;
        TL_TRY(measure_round(&m, diag));
        if (device != NULL)
            TL_TRY(measure_device(&m, diag));
        t->round_count++;
        tl_progress("measuring: %.1f of %.1f s", (double)(tl_clock_ns() - start) * 1e-9, seconds);
    } while (tl_clock_ns() - start < limit && t->run_count < MAX_RUNS &&
             t->round_count < MAX_ROUNDS);
    tl_progress_done();
    summarise(t);
    return TL_OK;
}
