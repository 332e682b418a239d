/* driver/verb_bench.c: tilth bench MODEL: latency of a model and of each of its kernels, in percent of the peak that this
 * machine shows in the same rounds.
 *
 * Rounds alternate a sample of the peak loop with runs of the model, so that a disturbed second shows in both. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "driver/session.h"
#include "runtime/clock.h"
#include "runtime/peak.h"

enum { MAX_RUNS = 100000 };

typedef struct {
    int64_t *runs, *step_min;
    int run_count, step_count;
    double peak_gflops;
} timing;

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static tl_status measure(tl_session *session, tl_runner *runner, const tl_tensor *inputs,
                         tl_tensor *outputs, double seconds, timing *t, tl_diag *diag)
{
    const tl_executable_spec *spec = tl_executable_info(tl_model_executable(session->model));
    const void **in = TL_NEW_ARRAY(session->arena, const void *, spec->input_count);
    void **out = TL_NEW_ARRAY(session->arena, void *, spec->output_count);
    int64_t *step_ns = TL_NEW_ARRAY(session->arena, int64_t, spec->step_count);
    t->step_count = spec->step_count;
    t->step_min = TL_NEW_ARRAY(session->arena, int64_t, spec->step_count);
    t->runs = TL_NEW_ARRAY(session->arena, int64_t, MAX_RUNS);
    for (int i = 0; i < spec->input_count; i++)
        in[i] = inputs[i].data;
    for (int i = 0; i < spec->output_count; i++)
        out[i] = outputs[i].data;
    for (int i = 0; i < t->step_count; i++)
        t->step_min[i] = INT64_MAX;

    TL_TRY(tl_runner_run(runner, in, out, NULL, diag)); /* warm: pages, caches, clocks */
    int64_t start = tl_clock_ns(), limit = (int64_t)(seconds * 1e9);
    do {
        double peak = tl_peak_gflops(session->pool, session->threads, 0.01);
        t->peak_gflops = peak > t->peak_gflops ? peak : t->peak_gflops;
        int64_t round = tl_clock_ns();
        do {
            int64_t before = tl_clock_ns();
            TL_TRY(tl_runner_run(runner, in, out, NULL, diag));
            t->runs[t->run_count++] = tl_clock_ns() - before;
            TL_TRY(tl_runner_run(runner, in, out, step_ns, diag));
            for (int i = 0; i < t->step_count; i++)
                t->step_min[i] = step_ns[i] < t->step_min[i] ? step_ns[i] : t->step_min[i];
        } while (tl_clock_ns() - round < 100000000 && t->run_count < MAX_RUNS);
    } while (tl_clock_ns() - start < limit && t->run_count < MAX_RUNS);
    qsort(t->runs, (size_t)t->run_count, sizeof *t->runs, by_value);
    return TL_OK;
}

static double percent(int64_t flops, int64_t ns, double peak)
{
    return ns > 0 && peak > 0 ? 100.0 * (double)flops / (double)ns / peak : 0;
}

static int64_t peak_memory(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (int64_t)usage.ru_maxrss * 1024;
}

static void print_json(const tl_session *session, const tl_runner *runner, const char *path,
                       const timing *t)
{
    const tl_executable_spec *spec = tl_executable_info(tl_model_executable(session->model));
    const tl_model_facts *facts = tl_model_get_facts(session->model);
    tl_plan_sizes plan = tl_runner_memory(runner);
    for (int i = 0; i < spec->step_count; i++) {
        const tl_executable_step *s = &spec->steps[i];
        printf("{\"record\":\"kernel\",\"name\":");
        tl_print_json_text(s->name);
        printf(
            ",\"class\":\"%s\",\"workload\":\"%s\",\"flops\":%lld,\"bytes\":%lld,\"min_ns\":%lld,"
            "\"percent_of_peak\":%.2f}\n",
            s->class_key ? s->class_key : "", s->workload ? s->workload : "", (long long)s->flops,
            (long long)s->bytes, (long long)t->step_min[i],
            percent(s->flops, t->step_min[i], t->peak_gflops));
    }
    printf("{\"record\":\"model\",\"model\":");
    tl_print_json_text(path);
    printf(",\"threads\":%d,\"compile_s\":%.4f,\"from_cache\":%s,\"runs\":%d,\"min_ns\":%lld,"
           "\"median_ns\":%lld,"
           "\"p90_ns\":%lld,\"p99_ns\":%lld,\"peak_gflops\":%.1f,\"flops\":%lld,\"percent_of_"
           "peak\":%.2f,"
           "\"plan_bytes\":%lld,\"tensor_bytes\":%lld,\"max_rss_bytes\":%lld}\n",
           tl_runner_threads(runner), facts->total_s, facts->from_cache ? "true" : "false",
           t->run_count, (long long)t->runs[0], (long long)t->runs[t->run_count / 2],
           (long long)t->runs[t->run_count * 9 / 10], (long long)t->runs[t->run_count * 99 / 100],
           t->peak_gflops, (long long)facts->flops,
           percent(facts->flops, t->runs[0], t->peak_gflops), (long long)plan.planned,
           (long long)plan.sum, (long long)peak_memory());
}

static const timing *sort_timing;
static int hottest_first(const void *a, const void *b)
{
    int64_t x = sort_timing->step_min[*(const int *)a], y = sort_timing->step_min[*(const int *)b];
    return x < y ? 1 : x > y ? -1 : *(const int *)a - *(const int *)b;
}

static void print_text(const tl_session *session, const tl_runner *runner, const timing *t)
{
    const tl_executable_spec *spec = tl_executable_info(tl_model_executable(session->model));
    const tl_model_facts *facts = tl_model_get_facts(session->model);
    tl_plan_sizes plan = tl_runner_memory(runner);
    tl_executable_sizes sizes = tl_executable_measure(tl_model_executable(session->model));
    int *order = TL_NEW_ARRAY(session->arena, int, spec->step_count);
    int64_t total = 0;
    for (int i = 0; i < spec->step_count; i++) {
        order[i] = i;
        total += t->step_min[i];
    }
    sort_timing = t;
    qsort(order, (size_t)spec->step_count, sizeof *order, hottest_first);
    printf("%-40s %10s %7s %9s %8s %8s\n", "kernel", "us", "share", "GFLOP/s", "% peak", "GB/s");
    for (int k = 0; k < spec->step_count; k++) {
        const tl_executable_step *s = &spec->steps[order[k]];
        int64_t ns = t->step_min[order[k]] > 0 ? t->step_min[order[k]] : 1;
        printf("%-40s %10.1f %6.1f%% %9.1f %7.1f%% %8.1f\n", s->name, (double)ns * 1e-3,
               100.0 * (double)ns / (double)(total > 0 ? total : 1), (double)s->flops / (double)ns,
               percent(s->flops, ns, t->peak_gflops), (double)s->bytes / (double)ns);
    }
    printf("\n%d runs on %d thread%s: min %.3f ms, median %.3f, p90 %.3f, p99 %.3f\n", t->run_count,
           tl_runner_threads(runner), tl_runner_threads(runner) == 1 ? "" : "s",
           (double)t->runs[0] * 1e-6, (double)t->runs[t->run_count / 2] * 1e-6,
           (double)t->runs[t->run_count * 9 / 10] * 1e-6,
           (double)t->runs[t->run_count * 99 / 100] * 1e-6);
    printf(
        "%.3f GFLOP: %.1f %% of the %.0f GFLOP/s that a register loop reached in the same rounds\n",
        (double)facts->flops * 1e-9, percent(facts->flops, t->runs[0], t->peak_gflops),
        t->peak_gflops);
    printf("ready in %.3f s%s", facts->total_s, facts->from_cache ? " (from the cache)\n" : "");
    if (!facts->from_cache)
        printf(" (read %.3f, graph %.3f, compile %.3f, pack %.3f; %d kernels, %d workloads, %d "
               "objects cached)\n",
               facts->read_s, facts->graph_s, facts->compile_s, facts->prepare_s,
               facts->kernel_count, facts->workload_count, facts->objects_cached);
    printf("memory: plan %.1f MB (all tensors %.1f MB), packed constants %.1f MB, other constants "
           "%.1f MB, "
           "code %.2f MB; process %.1f MB\n",
           (double)plan.planned * 1e-6, (double)plan.sum * 1e-6,
           (double)sizes.prepared_bytes * 1e-6,
           (double)(sizes.constant_bytes + sizes.external_bytes) * 1e-6,
           (double)sizes.code_bytes * 1e-6, (double)peak_memory() * 1e-6);
}

static tl_status bench(tl_session *session, const char *path, const tl_text_list *given,
                       const char *data, int64_t seed, double seconds, bool json, tl_diag *diag)
{
    const tl_executable *executable = tl_model_executable(session->model);
    const tl_executable_spec *spec = tl_executable_info(executable);
    tl_tensor *inputs = TL_NEW_ARRAY(session->arena, tl_tensor, spec->input_count);
    tl_tensor *outputs = TL_NEW_ARRAY(session->arena, tl_tensor, spec->output_count);
    tl_runner *runner = NULL;
    timing t = { 0 };
    tl_status status = tl_session_inputs(spec, given, data, seed, inputs, diag);
    for (int i = 0; status == TL_OK && i < spec->output_count; i++)
        status = tl_tensor_create(spec->outputs[i].dtype, spec->outputs[i].rank,
                                  spec->outputs[i].shape, &outputs[i], diag);
    if (status == TL_OK)
        status = tl_runner_create(executable, session->pool, session->threads, &runner, diag);
    tl_progress("measuring for %.1f s", seconds);
    if (status == TL_OK)
        status = measure(session, runner, inputs, outputs, seconds, &t, diag);
    tl_progress_done();
    if (status == TL_OK && json)
        print_json(session, runner, path, &t);
    else if (status == TL_OK)
        print_text(session, runner, &t);
    tl_runner_destroy(runner);
    for (int i = 0; i < spec->input_count; i++)
        tl_tensor_free(&inputs[i]);
    for (int i = 0; i < spec->output_count; i++)
        tl_tensor_free(&outputs[i]);
    return status;
}

int tl_verb_bench(int argc, char **argv)
{
    tl_session_options common = { 0 };
    tl_text_list given = { 0 };
    const char *data = NULL;
    int64_t seed = 0;
    double seconds = 2;
    const tl_option options[] = {
        { "--seconds", "-s", TL_OPTION_REAL, "S", "how long to measure (2)", &seconds },
        { "--data", NULL, TL_OPTION_TEXT, "DIR", "inputs input_NAME.npy (or as its names.txt says)",
          &data },
        { "--input", "-i", TL_OPTION_LIST, "NAME=FILE", "as for run; may be repeated", &given },
        { "--seed", NULL, TL_OPTION_INT, "S", "of inputs that are not given", &seed },
        TL_SESSION_OPTIONS(common),
        { 0 },
    };
    const tl_verb_help help = {
        "bench",
        "MODEL.onnx",
        "Measures the latency of a model and of each of its kernels.",
        "Percent of peak compares with a register-only loop of multiply-adds sampled between the "
        "runs, on as many\n"
        "threads. A kernel's time is the shortest seen.",
        "  tilth bench resnet18.onnx --threads 1\n  tilth bench bert.onnx --seconds 10 --json > "
        "bench.jsonl",
        options,
        1,
        1,
        NULL,
    };
    int positional_count, code;
    const char *positional[1];
    if (!tl_verb_begin(&help, argc, argv, positional, &positional_count, &code))
        return code;

    tl_diag diag = { 0 };
    tl_session session;
    if (common.json)
        tl_print_env_json();
    tl_status status = tl_session_open(&session, positional[0], &common, NULL, &diag);
    if (status == TL_OK)
        status = bench(&session, positional[0], &given, data, seed, seconds, common.json, &diag);
    if (status != TL_OK)
        code = tl_report_failure("bench", status, &diag);
    tl_session_close(&session);
    return code;
}
