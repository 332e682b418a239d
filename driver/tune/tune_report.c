/* driver/tune/tune_report.c: progress and results of a run of the tuner. */
#include "driver/tune/tune_report.h"
#include <inttypes.h>
#include <string.h>
#include "driver/bench/bench.h"
#include "runtime/base/map.h"

#define LINE_S 5.0

static double peak_of(const tl_tune_report *report)
{
    tl_measure_stats stats;
    tl_measurer_stats(report->measurer, &stats);
    return stats.peak_gflops;
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
    double used = tl_percent_of_peak(measured_flops(tuning), t.best_ns, peak_of(report));
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
        fprintf(stderr, "tilth %s: %s\n", report->verb, tl_text_get(&text));
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

static void tell(const tl_tune_report *report, const tl_tuning *tuning, const tl_tune_event *event)
{
    const tl_tuned *t = tl_tuning_task(tuning, event->task);
    const char *name = t->task->workload->name;
    tl_progress_done();
    if (event->kind == TL_TUNE_RETIRED)
        fprintf(stderr, "tilth %s: %s: %s%s%s\n", report->verb, name, life_text(t->life),
                t->life == TL_TASK_FAILED ? ": " : "", t->life == TL_TASK_FAILED ? t->reason : "");
    else if (event->is_best)
        fprintf(stderr, "tilth %s: %s: %.2f us (untuned %.2f) at trial %" PRId64 ", %s, %s\n",
                report->verb, name, t->best_ns * 1e-3, t->untuned_ns * 1e-3, t->trials,
                t->best->lowering, event->proposal->origin);
}

void tl_tune_report_event(void *user, const tl_tuning *tuning, const tl_tune_event *event)
{
    tl_tune_report *report = user;
    if (tl_verbose && !tl_quiet && event->task >= 0 &&
        (event->kind == TL_TUNE_RETIRED || event->is_best))
        tell(report, tuning, event);
    show_line(report, tuning, event->task);
    if (event->kind == TL_TUNE_TRIAL && event->result->reproducer[0] && !tl_quiet) {
        tl_progress_done();
        fprintf(stderr, "tilth %s: %s: %s candidate: tilth schedule %s\n", report->verb,
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
               tl_percent_of_peak((double)w->flops, t->best_ns, peak), t->trials, t->ok, t->known,
               t->rounds);
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

/* A column; a dash in place of nothing. */
static void print_number(int width, int digits, double value, const char *unit)
{
    if (value > 0)
        printf("%*.*f%s ", width - (int)strlen(unit), digits, value, unit);
    else
        printf("%*s ", width, "-");
}

static void print_tasks(const tl_tune_report *report, const tl_tuning *tuning)
{
    double peak = peak_of(report);
    tl_print_styled(stdout, TL_STYLE_BOLD, "%-32s %-8s %5s %11s %11s %7s %7s %7s %6s  %s", "kernel",
                    "class", "times", "untuned us", "best us", "gain", "% peak", "trials", "failed",
                    "lowering");
    printf("\n");
    for (int i = 0; i < tl_tuning_count(tuning); i++) {
        const tl_tuned *t = tl_tuning_task(tuning, i);
        const tl_workload_info *w = t->task->workload;
        double gain = t->best_ns > 0 && t->untuned_ns > 0 ? t->untuned_ns / t->best_ns : 0;
        printf("%-32.32s %-8.8s %5g ", w->name, w->class_key, t->task->weight);
        print_number(11, 2, t->untuned_ns * 1e-3, "");
        print_number(11, 2, t->best_ns * 1e-3, "");
        if (gain > 0)
            tl_print_styled(stdout, gain > 1.005 ? TL_STYLE_GREEN : TL_STYLE_PLAIN, "%7.3f", gain);
        else
            printf("%7s", "-");
        printf(" ");
        print_number(7, 1, tl_percent_of_peak((double)w->flops, t->best_ns, peak), "%");
        printf("%7" PRId64 " %6" PRId64 "  %s%s%s\n", t->trials, t->trials - t->ok,
               t->best != NULL ? t->best->lowering : "",
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
    double used = tl_percent_of_peak(measured_flops(tuning), t.best_ns, peak_of(report));
    if (t.best_ns > 0)
        printf("\nkernels   %.3f ms, untuned %.3f: %.3f times as fast", t.best_ns * 1e-6,
               t.untuned_ns * 1e-6, t.untuned_ns / t.best_ns);
    else
        printf("\nkernels   nothing was measured");
    if (used > 0)
        printf("; %.1f %% of the %.0f GFLOP/s that a register loop reached", used, peak_of(report));
    printf("\n");
    printf("trials    %" PRId64 " in %.1f s (%.1f a second; the search itself took %.1f %%)",
           t.trials, t.elapsed_s, (double)t.trials / (t.elapsed_s > 0 ? t.elapsed_s : 1),
           100 * t.search_s / (t.elapsed_s > 0 ? t.elapsed_s : 1));
    for (int i = 1; i < TL_RECORD_STATUS_COUNT; i++)
        if (t.by_status[i] > 0)
            printf(", %" PRId64 " %s", t.by_status[i], tl_record_status_infos[i].text);
    printf("\n");
}

/* ---- other forms ---- */

static void print_form_json(const tl_tune_form *form, const char *path, double out, double in)
{
    printf("{\"record\":\"form\",\"what\":");
    tl_print_json_text(form->what);
    printf(",\"model\":");
    tl_print_json_text(path);
    printf(",\"fate\":\"%s\",\"replaced_ns\":%.1f,\"brought_ns\":%.1f}\n",
           tl_form_fate_text(form->fate), out, in);
}

static void print_form(const tl_tune_form *form, double out, double in)
{
    printf("          %-40s %9.2f us in place of %9.2f (x%.3f)%s\n", form->what, in * 1e-3,
           out * 1e-3, in / out, form->fate == TL_FORM_BEYOND ? ", default schedules" : "");
}

void tl_tune_report_forms(const tl_tune_report *report, const char *path,
                          const tl_tune_forms *forms, int64_t trials)
{
    int with[TL_FORM_FATE_COUNT] = { 0 };
    for (int i = 0; i < forms->count; i++)
        with[forms->forms[i].fate]++;
    if (report->json) {
        printf("{\"record\":\"forms\",\"count\":%d,\"unseen\":%d,\"beyond\":%d,\"within\":%d,"
               "\"model\":",
               forms->count, with[TL_FORM_UNSEEN], with[TL_FORM_BEYOND], with[TL_FORM_WITHIN]);
        tl_print_json_text(path);
        printf(",\"trials\":%" PRId64 "}\n", trials);
    } else {
        printf(
            "forms     %d other ways to cut the model and lay it out: %d within reach, %d beyond, "
            "%d not measured; %" PRId64 " trials\n",
            forms->count, with[TL_FORM_WITHIN], with[TL_FORM_BEYOND], with[TL_FORM_UNSEEN], trials);
    }
    for (int i = 0; i < forms->count; i++) {
        const tl_tune_form *form = &forms->forms[i];
        double out, in;
        tl_tune_form_change_ns(form,
                               form->fate == TL_FORM_WITHIN ? forms->best_ns : forms->first_ns,
                               &out, &in);
        if (report->json)
            print_form_json(form, path, out, in);
        else if (form->fate == TL_FORM_WITHIN || (form->fate == TL_FORM_BEYOND && tl_verbose))
            print_form(form, out, in);
    }
}

/* ---- the whole model ---- */

static void print_timed(const tl_model_verdict *v)
{
    if (v->pairs == 0)
        printf("model     nothing to compare: no schedule was faster inside the model\n");
    else
        printf("model     untuned %.3f ms, tuned %.3f: %.3f times as fast (95 %% between %.3f and "
               "%.3f, %d pairs of runs); outputs agree within %.2g\n",
               v->untuned_ns * 1e-6, v->tuned_ns * 1e-6, 1 / v->ratio, 1 / v->ratio_high,
               1 / v->ratio_low, v->pairs, v->max_error);
    if (v->pairs > 0)
        printf("          the kernels that differ: %.3f times as fast (between %.3f and %.3f)\n",
               1 / v->part.median, 1 / v->part.high, 1 / v->part.low);
    if (v->form_ratio.median > 0)
        printf("form      another way to cut and lay out the model: %.3f times as fast as the best "
               "before (95 %% between %.3f and %.3f): %s\n",
               1 / v->form_ratio.median, 1 / v->form_ratio.high, 1 / v->form_ratio.low,
               v->forms_kept > 0 ? "taken" : "left out");
    else if (v->forms_tried > 0)
        printf(
            "form      %d other ways to cut and lay out the model promised a gain: none is faster "
            "inside it\n",
            v->forms_tried);
    printf("kept      %s",
           v->kept ? "" : "the default schedules: nothing was faster beyond doubt\n");
    if (v->kept)
        printf("%d schedules; %d that are no faster inside the model fell back\n", v->kept_count,
               v->fallback_count - v->wrong_count);
}

/* Of what was checked and not timed. */
static void print_untimed(const tl_model_verdict *v)
{
    if (v->kept)
        printf("model     its outputs are right with them; nothing was timed\n"
               "kept      %d schedules, faster or not\n",
               v->kept_count);
    else
        printf("kept      the default schedules: there is no other\n");
}

void tl_tune_report_verdict(const tl_model_verdict *v, const char *path, bool untimed, bool json)
{
    if (json) {
        printf("{\"record\":\"verdict\",\"kept\":%s,\"untuned_ns\":%.1f,\"tuned_ns\":%.1f,"
               "\"ratio\":%.4f,\"ratio_low\":%.4f,\"ratio_high\":%.4f,\"part_ratio\":%.4f,"
               "\"pairs\":%d,"
               "\"max_error\":%.3g,\"model\":",
               v->kept ? "true" : "false", v->untuned_ns, v->tuned_ns, v->ratio, v->ratio_low,
               v->ratio_high, v->part.median, v->pairs, v->max_error);
        tl_print_json_text(path);
        printf(",\"form\":");
        tl_print_json_text(v->form);
        printf(",\"forms_tried\":%d,\"forms_kept\":%d,\"form_ratio\":%.4f,\"workloads_kept\":%d,"
               "\"workloads_fallen_back\":%d,\"workloads_wrong\":%d}\n",
               v->forms_tried, v->forms_kept, v->form_ratio.median, v->kept_count,
               v->fallback_count, v->wrong_count);
        return;
    }
    for (int i = 0; i < v->workload_count; i++)
        if (v->workloads[i].fate != TL_VERDICT_KEPT && tl_verbose)
            printf("default   %s: %s\n", v->workloads[i].kernel,
                   tl_verdict_fate_text(v->workloads[i].fate));
    if (untimed)
        print_untimed(v);
    else
        print_timed(v);
    if (v->wrong_count > 0)
        printf("          %d more fell back since the model's outputs differ with them\n",
               v->wrong_count);
}
