/* driver/bench/bench_report.c: what was measured, for people and as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "runtime/base/limits.h"
#include "runtime/base/statistics.h"
#include "driver/bench/bench.h"
#include "driver/bench/bench_private.h"

typedef struct {
    int step;
    int64_t ns;
} step_time;

static int hottest_first(const void *a, const void *b)
{
    const step_time *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : x->step - y->step;
}

static step_time *sort_steps(const tl_session *session, const tl_timing *t, int64_t *total)
{
    step_time *order = TL_NEW_ARRAY(session->arena, step_time, t->step_count);
    *total = 0;
    for (int i = 0; i < t->step_count; i++) {
        order[i] = (step_time){ i, t->step_ns[i] > 0 ? t->step_ns[i] : 1 };
        *total += order[i].ns;
    }
    qsort(order, (size_t)t->step_count, sizeof *order, hottest_first);
    return order;
}

void tl_bench_print_json(const tl_session *session, const tl_subject *subject,
                         const tl_runner *runner, const tl_timing *t)
{
    const tl_executable_spec *spec = tl_executable_info(subject->executable);
    int64_t total;
    const step_time *order = sort_steps(session, t, &total);
    for (int k = 0; k < t->step_count; k++) {
        const tl_executable_step *s = &spec->steps[order[k].step];
        int64_t ns = order[k].ns;
        printf("{\"record\":\"kernel\",\"step\":%d,\"name\":", order[k].step);
        tl_print_json_text(s->name);
        printf(",\"class\":\"%s\",\"workload\":\"%s\",\"flops\":%" PRId64 ",\"bytes\":%" PRId64
               ",\"min_ns\":%" PRId64 ",\"share\":%.4f,\"percent_of_peak\":%.2f}\n",
               s->class_key ? s->class_key : "", s->workload ? s->workload : "", s->flops, s->bytes,
               ns, (double)ns / (double)total, tl_percent_of_peak(s->flops, ns, t->peak_gflops));
    }
    tl_text record = { 0 };
    tl_bench_record(subject, runner, t, NULL, &record);
    fputs(tl_text_get(&record), stdout);
    tl_text_free(&record);
}

static void print_kernels(const tl_session *session, const tl_subject *subject, const tl_timing *t,
                          int top)
{
    const tl_executable_spec *spec = tl_executable_info(subject->executable);
    int64_t total;
    const step_time *order = sort_steps(session, t, &total);
    tl_print_styled(stdout, TL_STYLE_BOLD, "%-36s %10s %7s %9s %8s %8s", "kernel", "us", "share",
                    "GFLOP/s", "% peak", "GB/s");
    printf("\n");
    int shown = top > 0 && top < t->step_count ? top : t->step_count;
    int64_t rest = 0;
    for (int k = shown; k < t->step_count; k++)
        rest += order[k].ns;
    for (int k = 0; k < shown; k++) {
        const tl_executable_step *s = &spec->steps[order[k].step];
        double ns = (double)order[k].ns;
        printf("%-36s %10.1f %6.1f%% %9.1f %7.1f%% %8.1f\n", s->name, ns * 1e-3,
               100.0 * ns / (double)total, (double)s->flops / ns,
               tl_percent_of_peak(s->flops, order[k].ns, t->peak_gflops), (double)s->bytes / ns);
    }
    if (shown < t->step_count)
        printf("%d more (--top 0 shows them) %8s %10.1f %6.1f%%\n", t->step_count - shown, "",
               (double)rest * 1e-3, 100.0 * (double)rest / (double)total);
}

static void print_ready(const tl_subject *subject)
{
    const tl_model_facts *f = subject->facts;
    printf("ready     %.3f s", subject->ready_s);
    if (f == NULL || f->from_cache)
        printf("%s\n", f ? " (from the cache)" : "");
    else
        printf(" (read %.3f, graph %.3f, compile %.3f, pack %.3f; %d kernels, %d workloads, %d "
               "objects cached)\n",
               f->read_s, f->graph_s, f->compile_s, f->prepare_s, f->kernel_count,
               f->workload_count, f->objects_cached);
}

static void print_tuned(const tl_subject *subject)
{
    const tl_model_facts *f = subject->facts;
    if (f != NULL && f->tuned_count > 0)
        printf("tuned     %d of %d kernels have a recorded schedule\n", f->tuned_count,
               f->kernel_count);
}

static void print_memory(const tl_subject *subject, const tl_runner *runner)
{
    tl_plan_sizes plan = tl_runner_memory(runner);
    tl_executable_sizes sizes = tl_executable_measure(subject->executable);
    printf(
        "memory    plan %.1f MB (all tensors %.1f), packed constants %.1f, other constants %.1f, "
        "code %.2f; process %.1f MB\n",
        (double)plan.planned * 1e-6, (double)plan.sum * 1e-6, (double)sizes.prepared_bytes * 1e-6,
        (double)(sizes.constant_bytes + sizes.external_bytes) * 1e-6,
        (double)sizes.code_bytes * 1e-6, (double)tl_peak_memory() * 1e-6);
}

static void print_work(const tl_subject *subject, const tl_timing *t)
{
    const tl_device *device = tl_executable_device(subject->executable);
    double least = t->peak_gflops;
    for (int i = 0; i < t->round_count; i++)
        least = t->rounds[i].peak_gflops < least ? t->rounds[i].peak_gflops : least;
    printf("work      %.3f GFLOP: %.1f %% of the %.0f GFLOP/s ", (double)subject->flops * 1e-9,
           tl_percent_of_peak(subject->flops, t->runs[0], t->peak_gflops), t->peak_gflops);
    if (device != NULL)
        printf("of f32 that %s has at %d MHz\n", device->facts.name, device->facts.clock_mhz);
    else
        printf("that a register loop reached in the same rounds (%.0f at worst)\n", least);
}

void tl_bench_print(const tl_session *session, const tl_subject *subject, const tl_runner *runner,
                    const tl_timing *t, int top)
{
    print_kernels(session, subject, t, top);
    int64_t median = tl_quantile(t->runs, t->run_count, 0.5);
    const char *unit = median < 100000 ? "us" : "ms";
    double scale = median < 100000 ? 1e-3 : 1e-6;
    printf("\nlatency   min %.3f %s, median %.3f, mean %.3f (deviation %.3f), p90 %.3f, p99 %.3f\n",
           (double)t->runs[0] * scale, unit, (double)median * scale, t->mean_ns * scale,
           t->deviation_ns * scale, (double)tl_quantile(t->runs, t->run_count, 0.9) * scale,
           (double)tl_quantile(t->runs, t->run_count, 0.99) * scale);
    if (t->device_ns > 0) {
        int64_t steps = 0;
        for (int i = 0; i < t->step_count; i++)
            steps += t->step_ns[i];
        printf("device    %.3f %s without copies, its kernels %.3f\n", t->device_ns * scale, unit,
               (double)steps * scale);
    }
    printf("runs      %d on %d thread%s in %d round%s; %d outlier%s, the slowest %.3f %s\n",
           t->run_count, tl_runner_threads(runner), tl_runner_threads(runner) == 1 ? "" : "s",
           t->round_count, t->round_count == 1 ? "" : "s", t->outlier_count,
           t->outlier_count == 1 ? "" : "s", (double)t->runs[t->run_count - 1] * scale, unit);
    print_work(subject, t);
    print_ready(subject);
    print_tuned(subject);
    print_memory(subject, runner);
    if (t->disturbed_count > 0) {
        tl_print_styled(stdout, TL_STYLE_RED,
                        "warning   this machine is disturbed: in %d of %d rounds its peak fell by "
                        "more than a tenth; believe the minimum",
                        t->disturbed_count, t->round_count);
        printf("\n");
    }
}

void tl_change_print(const tl_change *c, const char *against, bool json)
{
    const char *verdict = c->slower    ? "SLOWER"
                          : c->faster  ? "faster"
                          : !c->enough ? "too few undisturbed rounds to say: use --seconds"
                                       : "no significant change";
    if (json) {
        printf("{\"record\":\"comparison\",\"baseline\":");
        tl_print_json_text(against);
        printf(",\"min_ratio\":%.4f,\"median_ratio\":%.4f,\"p\":%.3g,\"peak_ratio\":%.3f,"
               "\"enough\":%s,\"slower\":%s,\"faster\":%s}\n",
               c->min_ratio, c->median_ratio, c->p, c->peak_ratio, c->enough ? "true" : "false",
               c->slower ? "true" : "false", c->faster ? "true" : "false");
        return;
    }
    printf("baseline  %s: min %+.1f %%, median %+.1f %%, p = %.2g: ", against,
           100 * (c->min_ratio - 1), 100 * (c->median_ratio - 1), c->p);
    tl_print_styled(stdout, c->slower ? TL_STYLE_RED : TL_STYLE_GREEN, "%s", verdict);
    printf("\n");
    if (c->peak_ratio < 0.9 || c->peak_ratio > 1.1) {
        tl_print_styled(stdout, TL_STYLE_RED,
                        "warning   the machine's peak is %.2f of what it was then: times do not "
                        "compare well",
                        c->peak_ratio);
        printf("\n");
    }
}
