/* driver/tune_report.c: progress and results of a run of the tuner. */
#include "driver/tune_report.h"
#include <inttypes.h>
#include <string.h>
#include "driver/bench.h"
#include "runtime/base/map.h"

#define LINE_S 5.0

static double peak_of(const tl_tune_report *report)
{
    tl_measure_stats stats;
    tl_measurer_stats(report->measurer, &stats);
    return stats.peak_gflops;
}

static double percent(double flops, double ns, double peak_gflops)
{
    return ns > 0 && peak_gflops > 0 ? 100 * flops / (ns * peak_gflops) : 0;
}

/* Of the tasks that have both times. */
static double measured_flops(const tl_tuning *tuning)
{
    double flops = 0;
    for (int i = 0; i < tl_tuning_count(tuning); i++) {
        const tl_tuned *t = tl_tuning_task(tuning, i);
        if (t->untuned_ns > 0 && t->best_ns > 0)
            flops += t->task->weight * (double)t->task->workload->flops;
    }
    return flops;
}

/* "0:42 left", "1:10" when there is no end. */
static void time_text(const tl_tune_totals *t, char out[32])
{
    int seconds = (int)((t->left_s >= 0 ? t->left_s : t->elapsed_s) + 0.5);
    snprintf(out, 32, "%d:%02d%s", seconds / 60, seconds % 60, t->left_s >= 0 ? " left" : "");
}

static void line_text(const tl_tune_report *report, const tl_tuning *tuning, int task, tl_text *out)
{
    tl_tune_totals t;
    char left[32];
    tl_tuning_totals(tuning, &t);
    time_text(&t, left);
    tl_text_format(out, "%s%s", report->stage, left);
    if (t.missing > 0)
        tl_text_format(out, "  untuned %d of %d", tl_tuning_count(tuning) - t.missing,
                       tl_tuning_count(tuning));
    else
        tl_text_format(out, "  %.3f ms, untuned %.3f (x%.3f)", t.best_ns * 1e-6,
                       t.untuned_ns * 1e-6, t.untuned_ns / t.best_ns);
    double used = percent(measured_flops(tuning), t.best_ns, peak_of(report));
    if (used > 0)
        tl_text_format(out, ", %.1f %% of peak", used);
    tl_text_format(out, "  %" PRId64 " ok, %" PRId64 " failed", t.ok, t.failed);
    if (t.unwritten > 0)
        tl_text_format(out, ", %" PRId64 " not yet written", t.unwritten);
    if (task >= 0)
        tl_text_format(out, "  %s", tl_tuning_task(tuning, task)->task->workload->name);
}

static void show_line(tl_tune_report *report, const tl_tuning *tuning, int task)
{
    tl_tune_totals totals;
    tl_text text = { 0 };
    tl_tuning_totals(tuning, &totals);
    bool is_live = tl_progress_is_live();
    if (!is_live && (tl_quiet || totals.elapsed_s < report->next_line_s))
        return;
    report->next_line_s = totals.elapsed_s + LINE_S;
    line_text(report, tuning, task, &text);
    if (is_live)
        tl_progress("%s", tl_text_get(&text));
    else
        fprintf(stderr, "tilth tune: %s\n", tl_text_get(&text));
    tl_text_free(&text);
}

static const char *life_text(tl_task_life life)
{
    static const char *const texts[] = { [TL_TASK_OPEN] = "",
                                         [TL_TASK_RESTING] = "gains nothing any more",
                                         [TL_TASK_EXHAUSTED] = "everything was tried",
                                         [TL_TASK_FAILED] = "failed" };
    return texts[life];
}

static void tell(const tl_tuning *tuning, const tl_tune_event *event)
{
    const tl_tuned *t = tl_tuning_task(tuning, event->task);
    const char *name = t->task->workload->name;
    tl_progress_done();
    if (event->kind == TL_TUNE_RETIRED)
        fprintf(stderr, "tilth tune: %s: %s%s%s\n", name, life_text(t->life),
                t->life == TL_TASK_FAILED ? ": " : "", t->life == TL_TASK_FAILED ? t->reason : "");
    else if (event->is_best)
        fprintf(stderr, "tilth tune: %s: %.2f us (untuned %.2f) at trial %" PRId64 ", %s, %s\n",
                name, t->best_ns * 1e-3, t->untuned_ns * 1e-3, t->trials, t->best->lowering,
                event->proposal->origin);
}

void tl_tune_report_event(void *user, const tl_tuning *tuning, const tl_tune_event *event)
{
    tl_tune_report *report = user;
    if (tl_verbose && !tl_quiet && event->task >= 0 &&
        (event->kind == TL_TUNE_RETIRED || event->is_best))
        tell(tuning, event);
    show_line(report, tuning, event->task);
    if (event->kind == TL_TUNE_TRIAL && event->result->reproducer[0] && !tl_quiet) {
        tl_progress_done();
        fprintf(stderr, "tilth tune: %s: %s candidate: tilth schedule %s\n",
                tl_tuning_task(tuning, event->task)->task->workload->name,
                tl_record_status_infos[event->result->status].text, event->result->reproducer);
    }
}

/* ---- at the end ---- */

static void print_json(const tl_tune_report *report, const tl_tuning *tuning)
{
    tl_tune_totals totals;
    tl_measure_stats stats;
    double peak = peak_of(report);
    tl_tuning_totals(tuning, &totals);
    tl_measurer_stats(report->measurer, &stats);
    for (int i = 0; i < tl_tuning_count(tuning); i++) {
        const tl_tuned *t = tl_tuning_task(tuning, i);
        const tl_workload_info *w = t->task->workload;
        printf("{\"record\":\"task\",\"name\":");
        tl_print_json_text(w->name);
        printf(",\"workload\":\"%s\",\"class\":\"%s\",\"occurrences\":%g,\"flops\":%" PRId64
               ",\"untuned_ns\":%.1f,\"best_ns\":%.1f,\"percent_of_peak\":%.2f,\"trials\":%" PRId64
               ",\"ok\":%" PRId64 ",\"known\":%" PRId64 ",\"rounds\":%d,\"life\":",
               w->workload, w->class_key, t->task->weight, w->flops, t->untuned_ns, t->best_ns,
               percent((double)w->flops, t->best_ns, peak), t->trials, t->ok, t->known, t->rounds);
        tl_print_json_text(t->life == TL_TASK_OPEN ? "open" : life_text(t->life));
        printf(",\"lowering\":");
        tl_print_json_text(t->best != NULL ? t->best->lowering : "");
        printf(",\"uid\":\"%s\",\"reason\":", t->best != NULL ? t->best->uid : "");
        tl_print_json_text(t->reason);
        printf("}\n");
    }
    printf("{\"record\":\"tuned\",\"policy\":\"%s\",\"elapsed_s\":%.3f,\"search_s\":%.3f,"
           "\"trials\":%" PRId64 ",\"untuned_ns\":%.1f,\"best_ns\":%.1f,\"missing\":%d,"
           "\"peak_gflops\":%.1f,\"build_ns\":%.0f,\"check_ns\":%.0f,\"run_ns\":%.0f,"
           "\"reference_ns\":%.0f,\"deaths\":%" PRId64 ",\"discarded\":%" PRId64 ",\"by_status\":{",
           report->policy, totals.elapsed_s, totals.search_s, totals.trials, totals.untuned_ns,
           totals.best_ns, totals.missing, peak, stats.build_ns, stats.check_ns, stats.run_ns,
           stats.reference_ns, stats.deaths, stats.discarded);
    for (int i = 0; i < TL_RECORD_STATUS_COUNT; i++)
        printf("%s\"%s\":%" PRId64, i ? "," : "", tl_record_status_infos[i].text,
               totals.by_status[i]);
    printf("}}\n");
}

static void print_tasks(const tl_tune_report *report, const tl_tuning *tuning)
{
    double peak = peak_of(report);
    printf("%s%-32s %-8s %5s %11s %11s %7s %7s %7s %6s  %s%s\n", tl_style_on(stdout, TL_STYLE_BOLD),
           "kernel", "class", "times", "untuned us", "best us", "gain", "% peak", "trials",
           "failed", "lowering", tl_style_on(stdout, TL_STYLE_PLAIN));
    for (int i = 0; i < tl_tuning_count(tuning); i++) {
        const tl_tuned *t = tl_tuning_task(tuning, i);
        const tl_workload_info *w = t->task->workload;
        double gain = t->best_ns > 0 && t->untuned_ns > 0 ? t->untuned_ns / t->best_ns : 0;
        printf("%-32.32s %-8.8s %5g ", w->name, w->class_key, t->task->weight);
        if (t->untuned_ns > 0)
            printf("%11.2f ", t->untuned_ns * 1e-3);
        else
            printf("%11s ", "-");
        if (t->best_ns > 0)
            printf("%11.2f ", t->best_ns * 1e-3);
        else
            printf("%11s ", "-");
        printf("%s%7.3f%s %6.1f%% %7" PRId64 " %6" PRId64 "  %s%s%s\n",
               tl_style_on(stdout, gain > 1.005 ? TL_STYLE_GREEN : TL_STYLE_PLAIN), gain,
               tl_style_on(stdout, TL_STYLE_PLAIN), percent((double)w->flops, t->best_ns, peak),
               t->trials, t->trials - t->ok, t->best != NULL ? t->best->lowering : "",
               t->life == TL_TASK_FAILED ? "failed: " : "",
               t->life == TL_TASK_FAILED ? t->reason : "");
    }
}

void tl_tune_report_print(const tl_tune_report *report, const tl_tuning *tuning)
{
    tl_tune_totals t;
    tl_progress_done();
    if (report->json) {
        print_json(report, tuning);
        return;
    }
    tl_tuning_totals(tuning, &t);
    print_tasks(report, tuning);
    if (report->list->left_out > 0)
        printf("%d more workload%s left out\n", report->list->left_out,
               report->list->left_out == 1 ? "" : "s");
    printf(
        "\nkernels   %.3f ms, untuned %.3f: %.3f times as fast; %.1f %% of the %.0f GFLOP/s that "
        "a register loop reached\n",
        t.best_ns * 1e-6, t.untuned_ns * 1e-6, t.best_ns > 0 ? t.untuned_ns / t.best_ns : 0,
        percent(measured_flops(tuning), t.best_ns, peak_of(report)), peak_of(report));
    printf("trials    %" PRId64 " in %.1f s (%.1f a second; the search itself took %.1f %%)",
           t.trials, t.elapsed_s, (double)t.trials / (t.elapsed_s > 0 ? t.elapsed_s : 1),
           100 * t.search_s / (t.elapsed_s > 0 ? t.elapsed_s : 1));
    for (int i = 1; i < TL_RECORD_STATUS_COUNT; i++)
        if (t.by_status[i] > 0)
            printf(", %" PRId64 " %s", t.by_status[i], tl_record_status_infos[i].text);
    printf("\n");
}

/* ---- other forms ---- */

static void print_form_json(const tl_tune_form *form, double out, double in)
{
    printf("{\"record\":\"form\",\"what\":");
    tl_print_json_text(form->what);
    printf(",\"fate\":\"%s\",\"replaced_ns\":%.1f,\"brought_ns\":%.1f}\n",
           tl_form_fate_text(form->fate), out, in);
}

static void print_form(const tl_tune_form *form, double out, double in)
{
    printf("          %-40s %9.2f us in place of %9.2f (x%.3f)%s\n", form->what, in * 1e-3,
           out * 1e-3, in / out, form->fate == TL_FORM_BEYOND ? ", default schedules" : "");
}

void tl_tune_report_forms(const tl_tune_report *report, const tl_tune_forms *forms, int64_t trials)
{
    int with[TL_FORM_FATE_COUNT] = { 0 };
    for (int i = 0; i < forms->count; i++)
        with[forms->forms[i].fate]++;
    if (report->json)
        printf("{\"record\":\"forms\",\"count\":%d,\"unseen\":%d,\"beyond\":%d,\"within\":%d,"
               "\"trials\":%" PRId64 "}\n",
               forms->count, with[TL_FORM_UNSEEN], with[TL_FORM_BEYOND], with[TL_FORM_WITHIN],
               trials);
    else
        printf(
            "forms     %d other ways to cut the model and lay it out: %d within reach, %d beyond, "
            "%d not measured; %" PRId64 " trials\n",
            forms->count, with[TL_FORM_WITHIN], with[TL_FORM_BEYOND], with[TL_FORM_UNSEEN], trials);
    for (int i = 0; i < forms->count; i++) {
        const tl_tune_form *form = &forms->forms[i];
        double out, in;
        tl_tune_form_change_ns(form,
                               form->fate == TL_FORM_WITHIN ? forms->best_ns : forms->first_ns,
                               &out, &in);
        if (report->json)
            print_form_json(form, out, in);
        else if (form->fate == TL_FORM_WITHIN || (form->fate == TL_FORM_BEYOND && tl_verbose))
            print_form(form, out, in);
    }
}
