/* driver/bench/bench_record.c: a measurement as one line of JSON, and comparing with such lines of earlier runs. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <time.h>
#include "runtime/base/statistics.h"
#include "driver/bench/bench.h"
#include "driver/bench/bench_private.h"
#include "runtime/base/file.h"
#include "runtime/base/limits.h"
#include "runtime/device/topology.h"

/* Rounds too few, or a p too large, prove nothing. */
enum { ENOUGH_ROUNDS = 8 };
#define SIGNIFICANT 0.01

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void tl_bench_record(const tl_subject *subject, const tl_runner *runner, const tl_timing *t,
                     const char *commit, tl_text *out)
{
    tl_plan_sizes plan = tl_runner_memory(runner);
    tl_text_format(out, "{\"record\":\"%s\",\"model\":", subject->facts ? "model" : "kernel_file");
    tl_json_add_text(out, subject->name);
    tl_text_add(out, ",\"cpu\":");
    tl_json_add_text(out, tl_topology_get()->cpu_name);
    if (commit != NULL) {
        tl_text_add(out, ",\"commit\":");
        tl_json_add_text(out, commit);
    }
    tl_text_format(out, ",\"time_s\":%" PRId64 ",\"threads\":%d,\"ready_s\":%.4f,\"from_cache\":%s",
                   (int64_t)time(NULL), tl_runner_threads(runner), subject->ready_s,
                   subject->facts && subject->facts->from_cache ? "true" : "false");
    if (subject->facts != NULL)
        tl_text_format(out, ",\"kernels\":%d,\"tuned_kernels\":%d", subject->facts->kernel_count,
                       subject->facts->tuned_count);
    tl_text_format(out,
                   ",\"runs\":%d,\"min_ns\":%" PRId64 ",\"median_ns\":%" PRId64
                   ",\"mean_ns\":%.0f,\"deviation_ns\":%.0f,\"p90_ns\":%" PRId64
                   ",\"p99_ns\":%" PRId64 ",\"max_ns\":%" PRId64 ",\"outliers\":%d",
                   t->run_count, t->runs[0], tl_quantile(t->runs, t->run_count, 0.5), t->mean_ns,
                   t->deviation_ns, tl_quantile(t->runs, t->run_count, 0.9),
                   tl_quantile(t->runs, t->run_count, 0.99), t->runs[t->run_count - 1],
                   t->outlier_count);
    if (t->device_ns > 0)
        tl_text_format(out, ",\"device_ns\":%.0f", t->device_ns);
    tl_text_format(out,
                   ",\"flops\":%" PRId64 ",\"peak_gflops\":%.1f,\"percent_of_peak\":%.2f"
                   ",\"plan_bytes\":%" PRId64 ",\"tensor_bytes\":%" PRId64
                   ",\"max_rss_bytes\":%" PRId64 ",\"rounds\":%d,\"disturbed_rounds\":%d",
                   subject->flops, t->peak_gflops,
                   tl_percent_of_peak(subject->flops, t->runs[0], t->peak_gflops), plan.planned,
                   plan.sum, tl_peak_memory(), t->round_count, t->disturbed_count);
    tl_text_add(out, ",\"round_ns\":[");
    bool first = true;
    for (int i = 0; i < t->round_count; i++) {
        if (t->rounds[i].disturbed)
            continue;
        tl_text_format(out, "%s%" PRId64, first ? "" : ",", t->rounds[i].median_ns);
        first = false;
    }
    tl_text_add(out, "]}\n");
}

/* A line's record when it is of this subject; NULL otherwise. */
static json_t *matching(const char *line, size_t size, const char *cpu, const tl_subject *subject,
                        const tl_runner *runner)
{
    json_t *record = json_loadb(line, size, 0, NULL);
    const char *model = json_string_value(json_object_get(record, "model")),
               *made_on = json_string_value(json_object_get(record, "cpu"));
    bool same =
        model != NULL && strcmp(base_name(model), base_name(subject->name)) == 0 &&
        json_integer_value(json_object_get(record, "threads")) == tl_runner_threads(runner) &&
        (cpu == NULL || (made_on != NULL && strcmp(cpu, made_on) == 0)) &&
        json_number_value(json_object_get(record, "min_ns")) > 0 &&
        json_number_value(json_object_get(record, "median_ns")) > 0;
    if (same)
        return record;
    json_decref(record);
    return NULL;
}

int tl_records_find(const char *text, size_t text_size, const char *cpu, const tl_subject *subject,
                    const tl_runner *runner, json_t **last, int limit)
{
    int count = 0;
    for (const char *p = text, *end = text + text_size; p < end;) {
        const char *line_end = memchr(p, '\n', (size_t)(end - p));
        size_t size = line_end ? (size_t)(line_end - p) : (size_t)(end - p);
        json_t *record = matching(p, size, cpu, subject, runner);
        if (record != NULL && count == limit) {
            json_decref(last[0]);
            memmove(last, last + 1, sizeof *last * (size_t)(limit - 1));
            count--;
        }
        if (record != NULL)
            last[count++] = record;
        p += size + 1;
    }
    return count;
}

tl_change tl_record_compare(const json_t *record, const tl_timing *t, double threshold)
{
    double now[2000], then[2000];
    int now_count = 0, then_count = 0;
    const json_t *rounds = json_object_get(record, "round_ns");
    for (size_t i = 0; i < json_array_size(rounds) && then_count < 2000; i++)
        then[then_count++] = json_number_value(json_array_get(rounds, i));
    for (int i = 0; i < t->round_count && now_count < 2000; i++)
        if (!t->rounds[i].disturbed)
            now[now_count++] = (double)t->rounds[i].median_ns;

    double then_peak = json_number_value(json_object_get(record, "peak_gflops"));
    tl_change c = {
        .min_ratio = (double)t->runs[0] / json_number_value(json_object_get(record, "min_ns")),
        .median_ratio = (double)tl_quantile(t->runs, t->run_count, 0.5) /
                        json_number_value(json_object_get(record, "median_ns")),
        .p = tl_mann_whitney(now, now_count, then, then_count),
        .peak_ratio = then_peak > 0 ? t->peak_gflops / then_peak : 1,
        .enough = now_count >= ENOUGH_ROUNDS && then_count >= ENOUGH_ROUNDS,
    };
    /* the best run and the usual run agree, and chance does not explain it */
    bool significant = c.enough && c.p < SIGNIFICANT;
    c.slower = significant && c.min_ratio > 1 + threshold && c.median_ratio > 1 + threshold;
    c.faster = significant && c.min_ratio < 1 - threshold && c.median_ratio < 1 - threshold;
    return c;
}

tl_status tl_baseline_read(const char *path, const tl_subject *subject, const tl_runner *runner,
                           tl_baseline **out, tl_diag *diag)
{
    tl_mapping file;
    json_t *record;
    TL_TRY(tl_file_map(path, &file, diag));
    int count =
        tl_records_find(file.data ? file.data : "", file.size, NULL, subject, runner, &record, 1);
    tl_file_unmap(&file);
    if (count == 0)
        return tl_fail(
            diag, TL_BAD_ARGUMENT,
            "--baseline %s: no record of %s on %d thread%s: tilth bench --json makes one", path,
            base_name(subject->name), tl_runner_threads(runner),
            tl_runner_threads(runner) == 1 ? "" : "s");
    *out = (tl_baseline *)record;
    return TL_OK;
}

void tl_baseline_free(tl_baseline *baseline)
{
    json_decref((json_t *)baseline);
}

tl_change tl_baseline_compare(const tl_baseline *baseline, const tl_timing *t, double threshold)
{
    return tl_record_compare((const json_t *)baseline, t, threshold);
}
