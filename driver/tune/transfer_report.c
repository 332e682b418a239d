/* driver/tune/transfer_report.c: what `tilth transfer` says: who the donors are, and what each kernel got of them. */
#include "driver/tune/transfer_report.h"
#include <inttypes.h>
#include <string.h>

void tl_transfer_report_donors(const tl_donor_report *d, const tl_tune_list *list, bool json)
{
    const char *name = d->source.session == NULL ? NULL
                       : *d->source.name         ? d->source.name
                                                 : d->source.session;
    bool all_starters = d->asked_starter && d->starters == d->donors.count;
    if (all_starters)
        name = "the starter database";
    if (json) {
        printf("{\"record\":\"donors\",\"schedules\":%d,\"starters\":%d,\"workloads\":%d,"
               "\"kernels\":%d,\"covered\":%d,\"covered_share\":%.4f,\"covered_by_kin\":%d,"
               "\"source\":",
               d->schedules, d->starters, d->workloads, list->count, d->covered, d->covered_share,
               d->covered_by_kin);
        tl_print_json_text(name != NULL ? name : "");
        printf("}\n");
        return;
    }
    printf("donors    %d schedules of %d other workloads", d->schedules, d->workloads);
    if (name != NULL)
        printf(all_starters ? ", of %s" : ", of the run for %s", name);
    else if (d->starters > 0)
        printf(", %d of them of the starter database", d->starters);
    printf("; %d of %d kernels have one of their class, %.1f %% of the expected time", d->covered,
           list->count, 100 * d->covered_share);
    if (d->covered_by_kin > 0)
        printf("; %d more of their kin", d->covered_by_kin);
    printf("\n");
    fflush(stdout);
}

/* Where the schedule that a kernel has now came from; NULL: it is its own. */
static const tl_transferred *origin_of(const tl_tuned *t)
{
    for (int i = 0; t->best != NULL && i < t->transfer_count; i++)
        if (strcmp(t->transfers[i].program, t->best->program) == 0)
            return &t->transfers[i];
    return NULL;
}

static double gain_of(const tl_tuned *t)
{
    return t->best_ns > 0 && t->untuned_ns > 0 ? t->untuned_ns / t->best_ns : 0;
}

static void print_json(const tl_tuned *t)
{
    const tl_transferred *from = origin_of(t);
    const tl_workload_info *w = t->task->workload;
    printf("{\"record\":\"transferred\",\"kernel\":");
    tl_print_json_text(w->name);
    printf(",\"workload\":\"%s\",\"class\":\"%s\",\"weight\":%g,\"offers\":%d,\"trials\":%" PRId64
           ",\"ok\":%" PRId64 ",\"untuned_ns\":%.1f,\"best_ns\":%.1f,\"gain\":%.4f,\"reason\":",
           w->workload, w->class_key, t->task->weight, t->transfer_count, t->trials, t->ok,
           t->untuned_ns, t->best_ns, gain_of(t));
    tl_print_json_text(t->reason);
    if (from != NULL) {
        printf(",\"route\":\"%s\",\"distance\":%.4f,\"kin\":%s,\"donor\":",
               tl_transfer_route_text(from->route), from->distance,
               from->is_kin ? "true" : "false");
        tl_print_json_text(from->donor->workload->name);
        printf(",\"donor_workload\":\"%s\",\"donor_uid\":\"%s\",\"donor_target\":",
               from->donor->workload->workload, from->donor->record->uid);
        tl_print_json_text(from->donor->record->target);
        printf(",\"donor_session\":");
        tl_print_json_text(from->donor->record->session);
        printf(",\"adapted\":");
        tl_print_json_text(from->adapted);
    }
    printf("}\n");
}

/* Why a kernel keeps its own. */
static const char *reason_of(const tl_donor_report *donors, const tl_tuned *t)
{
    if (t->life == TL_TASK_FAILED || (t->transfer_count > 0 && t->ok == 0 && *t->reason))
        return t->reason;
    if (t->transfer_count > 0)
        return "its own schedule is faster";
    return tl_donors_cover(donors, t->task->workload)
               ? "its donors come to its default schedule, or do not fit"
               : "no donor: its default schedule";
}

static void print_line(const tl_donor_report *donors, const tl_tuned *t, bool untimed)
{
    const tl_transferred *from = origin_of(t);
    const tl_workload_info *w = t->task->workload;
    double gain = gain_of(t);
    printf("%-32.32s %-8.8s %5g ", w->name, w->class_key, t->task->weight);
    if (untimed || gain == 0)
        printf("%7s ", "-");
    else
        printf("%7.3f ", gain);
    if (from != NULL)
        printf("%-8s %-28.28s %8.2f  %s\n", tl_transfer_route_text(from->route),
               from->donor->workload->name, from->distance, from->adapted);
    else
        printf("%s\n", reason_of(donors, t));
}

void tl_transfer_report_print(const tl_tune_report *report, const tl_donor_report *donors,
                              const tl_tuning *tuning, bool untimed)
{
    int transferred = 0, count = tl_tuning_count(tuning);
    tl_tune_totals totals;
    tl_tuning_totals(tuning, &totals);
    tl_progress_done();
    if (!report->json) {
        tl_print_styled(stdout, TL_STYLE_BOLD, "%-32s %-8s %5s %7s %-8s %-28s %8s  %s", "kernel",
                        "class", "times", "gain", "route", "from", "distance", "adapted");
        printf("\n");
    }
    for (int i = 0; i < count; i++) {
        const tl_tuned *t = tl_tuning_task(tuning, i);
        transferred += origin_of(t) != NULL;
        if (report->json)
            print_json(t);
        else
            print_line(donors, t, untimed);
    }
    if (report->json) {
        printf("{\"record\":\"transfer\",\"kernels\":%d,\"transferred\":%d,\"trials\":%" PRId64
               ",\"ok\":%" PRId64 ",\"elapsed_s\":%.3f,\"untuned_ns\":%.1f,\"best_ns\":%.1f}\n",
               count, transferred, totals.trials, totals.ok, totals.elapsed_s, totals.untuned_ns,
               totals.best_ns);
        return;
    }
    printf("\nkernels   %d of %d have the schedule of another", transferred, count);
    if (!untimed && totals.best_ns > 0)
        printf("; %.3f ms, untuned %.3f: %.3f times as fast", totals.best_ns * 1e-6,
               totals.untuned_ns * 1e-6, totals.untuned_ns / totals.best_ns);
    printf("\ntrials    %" PRId64 " in %.1f s, %" PRId64 " right%s\n", totals.trials,
           totals.elapsed_s, totals.ok, untimed ? "; nothing was timed" : "");
}
