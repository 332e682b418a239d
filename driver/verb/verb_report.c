/* driver/verb/verb_report.c: tilth report: what a run of the tuner did, as one page. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "driver/verb/verbs.h"
#include "driver/report/report.h"
#include "driver/cli/session.h"
#include "runtime/base/file.h"

typedef struct {
    const char *database, *output, *session, *workload, *family, *target;
    bool json;
} report_options;

static tl_status write_page(tl_arena *arena, tl_records *store, const report_options *o,
                            tl_report *report, tl_diag *diag)
{
    const tl_query query = {
        .session = o->session, .workload = o->workload, .family = o->family, .target = o->target
    };
    tl_text page = { 0 };
    if (TL_ARENA_GUARD(arena))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    TL_TRY(tl_report_collect(arena, store, &query, report, diag));
    if (report->trials == 0 && report->choice_count == 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s has no such records: there is nothing to report",
                       tl_records_path(store));
    tl_report_page(report, &page);
    tl_status status = page.failed ? tl_fail(diag, TL_NO_MEMORY, "no memory for the page")
                                   : tl_file_write(o->output, page.data, page.size, diag);
    tl_text_free(&page);
    return status;
}

static tl_status run(const report_options *o, tl_diag *diag)
{
    tl_records *store;
    tl_report report;
    if (o->output == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "give the page a name: -o report.html");
    tl_arena *arena = tl_arena_create(0);
    if (arena == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    tl_status status = tl_records_open_default(o->database, TL_RECORDS_READ_ONLY, &store, diag);
    if (status == TL_OK) {
        status = write_page(arena, store, o, &report, diag);
        bool shown = status == TL_OK && !tl_is_stdout(o->output);
        if (shown && o->json) {
            printf("{\"record\":\"report\",\"file\":");
            tl_print_json_text(o->output);
            printf(",\"tasks\":%d,\"trials\":%" PRId64 ",\"mean_gain\":%.4f}\n", report.task_count,
                   report.trials, report.mean_gain);
        } else if (shown) {
            printf("wrote %s: %d tasks, %" PRId64 " trials, mean gain %.2fx\n", o->output,
                   report.task_count, report.trials, report.mean_gain);
        }
        tl_records_close(store, NULL);
    }
    tl_arena_destroy(arena);
    return status;
}

int tl_verb_report(int argc, char **argv)
{
    report_options o = { 0 };
    const tl_option options[] = {
        { "--db", NULL, TL_OPTION_TEXT, "FILE",
          "the database (default: $XDG_DATA_HOME/tilth/records.db, over the system's)",
          &o.database },
        { "--output", "-o", TL_OPTION_TEXT, "FILE", "the page to write", &o.output },
        { "--session", NULL, TL_OPTION_TEXT, "NAME", "only that run of the tuner", &o.session },
        { "--workload", NULL, TL_OPTION_TEXT, "KEY", "only that workload", &o.workload },
        { "--family", NULL, TL_OPTION_TEXT, "NAME", "only kernels of that family", &o.family },
        { "--fingerprint", NULL, TL_OPTION_TEXT, "TEXT", "only records of that target", &o.target },
        { "--json", NULL, TL_OPTION_FLAG, NULL, "one JSON object a line", &o.json },
        { 0 },
    };
    const tl_verb_help help = {
        "report",
        "",
        "Writes a page about what was tuned: curves, tasks, roofline, failures, schedules.",
        "One file of HTML without scripts, with nothing loaded from elsewhere. Of records of "
        "several revisions of the\ncode generator only the newest are shown: times of others do "
        "not compare.",
        "  tilth report -o report.html\n"
        "  tilth report --db resnet18.db --family conv_relu -o conv.html",
        options,
        0,
        0,
        NULL,
    };
    int positional_count, code;
    if (!tl_verb_begin(&help, argc, argv, NULL, &positional_count, &code))
        return code;

    tl_diag diag = { 0 };
    if (o.json && (o.output == NULL || !tl_is_stdout(o.output)))
        tl_print_env_json();
    tl_status status = run(&o, &diag);
    if (status != TL_OK)
        code = tl_report_failure("report", status, &diag);
    return code;
}
