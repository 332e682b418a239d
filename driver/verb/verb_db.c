/* driver/verb/verb_db.c: tilth db: the records of what was measured. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "driver/verb/verbs.h"
#include "driver/report/db_list.h"
#include "driver/cli/session.h"
#include "runtime/base/file.h"
#include "tuner/transfer/transfer.h"

enum { MAX_FILES = 64, DEFAULT_TOP = 10 };

typedef struct {
    const char *path, *output, *workload, *family, *target, *lowering, *session;
    int64_t limit, keep_best, days;
    bool json, failed, ok, stale, dry, always, winners;
    const char *action;
    int file_count;
    const char *const *files;
} db_options;

static const char *const actions[] = { "ls",    "top",    "show",  "export",  "import", "merge",
                                       "prune", "repair", "stats", "choices", NULL };

static const char *action_word(int index)
{
    return actions[index];
}

static tl_query query_of(const db_options *o)
{
    return (tl_query){ .workload = o->workload,
                       .family = o->family,
                       .target = o->target,
                       .lowering = o->lowering,
                       .session = o->session,
                       .only_ok = o->ok,
                       .only_failed = o->failed,
                       .limit = o->limit };
}

static bool put_line(void *user, const char *line, size_t size)
{
    return fwrite(line, 1, size, user) == size;
}

static bool put_in_file(void *user, const char *line, size_t size)
{
    return tl_file_append(user, line, size, NULL) == TL_OK;
}

/* Of each workload, target and lowering the best, where it beat the default schedule: what transfer gives to others. */
static tl_status put_winners(tl_records *store, const db_options *o, tl_line_sink *put, void *user,
                             tl_copy_counts *out, tl_diag *diag)
{
    const tl_donor_filter filter = { .session = o->session, .only_winners = true };
    tl_arena *arena = tl_arena_create(0);
    tl_donors winners = { 0 };
    tl_text lines = { 0 };
    tl_status status = tl_donors_find(store, arena, &filter, &winners, diag);
    *out = (tl_copy_counts){ .added = winners.count };
    tl_donors_print(&winners, &lines);
    if (status == TL_OK && (lines.failed || !put(user, tl_text_get(&lines), lines.size)))
        status = tl_fail(diag, TL_IO, "the winners cannot be written");
    tl_text_free(&lines);
    tl_arena_destroy(arena);
    return status;
}

static tl_status put_records(tl_records *store, const db_options *o, tl_line_sink *put, void *user,
                             tl_copy_counts *out, tl_diag *diag)
{
    tl_query query = query_of(o);
    return o->winners ? put_winners(store, o, put, user, out, diag)
                      : tl_records_export(store, &query, put, user, out, diag);
}

static tl_status export_records(tl_records *store, const db_options *o, tl_diag *diag)
{
    tl_copy_counts t;
    if (o->output == NULL)
        return put_records(store, o, put_line, stdout, &t, diag);
    tl_file *file;
    TL_TRY(tl_file_create(o->output, &file, diag));
    tl_status status = put_records(store, o, put_in_file, file, &t, diag);
    if (status != TL_OK) {
        tl_file_abandon(file);
        return status;
    }
    TL_TRY(tl_file_commit(file, diag));
    if (tl_is_stdout(o->output))
        return TL_OK;
    if (o->json)
        printf("{\"record\":\"exported\",\"trials\":%" PRId64 "}\n", t.added);
    else
        printf("%" PRId64 " records written to %s\n", t.added, o->output);
    return TL_OK;
}

static void print_transfer(const db_options *o, const char *file, const tl_copy_counts *t)
{
    if (o->json) {
        printf("{\"record\":\"transfer\",\"file\":");
        tl_print_json_text(file);
        printf(",\"read\":%" PRId64 ",\"added\":%" PRId64 ",\"refused\":%" PRId64 "}\n", t->read,
               t->added, t->refused);
    } else {
        printf("%s: %" PRId64 " records read, %" PRId64 " new", file, t->read, t->added);
        if (t->refused > 0)
            printf(", %" PRId64 " refused (damaged, or no records)", t->refused);
        printf("\n");
    }
}

static tl_status bring_in(tl_records *store, const db_options *o, tl_diag *diag)
{
    if (o->file_count == 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s needs a file", o->action);
    for (int i = 0; i < o->file_count; i++) {
        tl_copy_counts t;
        if (strcmp(o->action, "import") == 0) {
            TL_TRY(tl_records_import(store, o->files[i], &t, diag));
        } else {
            tl_records *from;
            TL_TRY(tl_records_open(o->files[i], TL_RECORDS_READ_ONLY, &from, diag));
            tl_status status = tl_records_merge(store, from, &t, diag);
            tl_records_close(from, NULL);
            TL_TRY(status);
        }
        print_transfer(o, o->files[i], &t);
    }
    return TL_OK;
}

static tl_status prune(tl_records *store, const db_options *o, tl_diag *diag)
{
    int64_t removed;
    tl_prune what = { .keep_best = o->keep_best,
                      .failed = o->failed,
                      .stale = o->stale,
                      .workload = o->workload,
                      .target = o->target,
                      .dry = o->dry };
    if (o->days > 0)
        what.before_us = ((int64_t)time(NULL) - o->days * 86400) * 1000000;
    if (what.keep_best <= 0 && what.before_us == 0 && !what.failed && !what.stale &&
        what.workload == NULL && what.target == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "prune needs to know what may go: --keep-best, --older-than, --failed, "
                       "--stale, --workload or --fingerprint");
    TL_TRY(tl_records_prune(store, &what, &removed, diag));
    if (o->json)
        printf("{\"record\":\"pruned\",\"trials\":%" PRId64 ",\"dry\":%s}\n", removed,
               o->dry ? "true" : "false");
    else
        printf("%" PRId64 " records %s\n", removed, o->dry ? "would go" : "removed");
    return TL_OK;
}

static void print_stats(const tl_records *store, const tl_records_stats *s)
{
    printf("file        %s\n", tl_records_path(store));
    printf("size        %.2f MB\n", (double)s->bytes / 1048576);
    printf("records     %" PRId64 " of %" PRId64 " workloads, %" PRId64 " sessions, %" PRId64
           " targets\n",
           s->records, s->workloads, s->sessions, s->targets);
    for (int i = 0; i < TL_RECORD_STATUS_COUNT; i++)
        if (s->by_status[i] > 0)
            printf("  %-19s %8" PRId64 "  %s\n", tl_record_status_infos[i].text, s->by_status[i],
                   tl_record_status_infos[i].words);
    if (s->choices > 0)
        printf("choices     %" PRId64 " for whole models\n", s->choices);
    printf("stale       %" PRId64 " timed with another revision of the code generator\n", s->stale);
    if (s->broken > 0)
        printf("broken      %" PRId64 " rows do not match their digest and are ignored\n",
               s->broken);
    printf("spent       building %.1f s, checking and timing %.1f s\n", s->build_ns * 1e-9,
           s->run_ns * 1e-9);
}

static tl_status stats(tl_records *store, const db_options *o, tl_diag *diag)
{
    tl_records_stats s;
    TL_TRY(tl_records_measure(store, &s, diag));
    if (!o->json) {
        print_stats(store, &s);
        return TL_OK;
    }
    printf("{\"record\":\"stats\",\"file\":");
    tl_print_json_text(tl_records_path(store));
    printf(",\"bytes\":%" PRId64 ",\"trials\":%" PRId64 ",\"workloads\":%" PRId64
           ",\"choices\":%" PRId64 ",\"sessions\":%" PRId64 ",\"targets\":%" PRId64
           ",\"stale\":%" PRId64 ",\"broken\":%" PRId64
           ",\"build_ns\":%.0f,\"run_ns\":%.0f,\"by_status\":{",
           s.bytes, s.records, s.workloads, s.choices, s.sessions, s.targets, s.stale, s.broken,
           s.build_ns, s.run_ns);
    for (int i = 0; i < TL_RECORD_STATUS_COUNT; i++)
        printf("%s\"%s\":%" PRId64, i ? "," : "", tl_record_status_infos[i].text, s.by_status[i]);
    printf("}}\n");
    return TL_OK;
}

static tl_status repair(const db_options *o, tl_diag *diag)
{
    tl_text path = { 0 };
    tl_repair r;
    if (o->path != NULL)
        tl_text_add(&path, o->path);
    else if (!tl_records_default_path(&path))
        return tl_fail(diag, TL_BAD_ARGUMENT, "no place for the records: give --db");
    tl_status status = tl_records_repair(tl_text_get(&path), o->always, &r, diag);
    if (status == TL_OK && o->json) {
        printf("{\"record\":\"repair\",\"damaged\":%s,\"recovered\":%" PRId64 ",\"kept_as\":",
               r.was_damaged ? "true" : "false", r.recovered);
        tl_print_json_text(r.kept_as);
        printf(",\"problem\":");
        tl_print_json_text(r.problem);
        printf("}\n");
    } else if (status == TL_OK && r.kept_as[0]) {
        printf("%s\n%" PRId64 " records recovered; the damaged file is kept as %s\n", r.problem,
               r.recovered, r.kept_as);
    } else if (status == TL_OK) {
        printf("%s is sound\n", tl_text_get(&path));
    }
    tl_text_free(&path);
    return status;
}

static tl_status act(tl_records *store, const db_options *o, tl_diag *diag)
{
    tl_query query = query_of(o);
    if (strcmp(o->action, "ls") == 0)
        return tl_db_list(store, &query, o->json, diag);
    if (strcmp(o->action, "top") == 0) {
        bool each = o->workload == NULL && o->limit == 0;
        query.only_ok = !o->failed;
        query.order = TL_ORDER_TIME;
        query.limit = o->limit > 0 ? o->limit : DEFAULT_TOP;
        return tl_db_top(store, &query, each, o->json, diag);
    }
    if (strcmp(o->action, "show") == 0) {
        if (o->file_count == 0)
            return tl_fail(diag, TL_BAD_ARGUMENT, "show needs the beginning of a uid or workload");
        for (int i = 0; i < o->file_count; i++)
            TL_TRY(tl_db_show(store, o->files[i], o->json, diag));
        return TL_OK;
    }
    if (strcmp(o->action, "choices") == 0)
        return tl_db_choices(store, o->json, diag);
    if (strcmp(o->action, "export") == 0)
        return export_records(store, o, diag);
    if (strcmp(o->action, "prune") == 0)
        return prune(store, o, diag);
    if (strcmp(o->action, "stats") == 0)
        return stats(store, o, diag);
    return bring_in(store, o, diag);
}

static tl_status check_counts(const db_options *o, tl_diag *diag)
{
    enum { MOST = 1000000000 };
    const struct {
        const char *name;
        int64_t value, most;
    } counts[] = { { "--limit", o->limit, MOST },
                   { "--keep-best", o->keep_best, MOST },
                   { "--older-than", o->days, 36500 } };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].value < 0 || counts[i].value > counts[i].most)
            return tl_fail(diag, TL_BAD_ARGUMENT, "%s: %" PRId64 " is not in 0..%" PRId64,
                           counts[i].name, counts[i].value, counts[i].most);
    return TL_OK;
}

static tl_status run(const db_options *o, tl_diag *diag)
{
    bool brings = strcmp(o->action, "import") == 0 || strcmp(o->action, "merge") == 0;
    bool writes = brings || (strcmp(o->action, "prune") == 0 && !o->dry);
    bool is_known = false;
    for (int i = 0; actions[i] != NULL; i++)
        is_known |= strcmp(actions[i], o->action) == 0;
    if (!is_known)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "'%s' is nothing it does: ls, top, show, export, import, merge, prune, "
                       "repair, stats or choices",
                       o->action);
    TL_TRY(check_counts(o, diag));
    if (strcmp(o->action, "repair") == 0)
        return repair(o, diag);
    if (!brings && strcmp(o->action, "show") != 0 && o->file_count > 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s takes no argument: '%s'", o->action, o->files[0]);
    tl_records *store;
    TL_TRY(tl_records_open_default(o->path,
                                   brings   ? TL_RECORDS_CREATE
                                   : writes ? 0
                                            : TL_RECORDS_READ_ONLY,
                                   &store, diag));
    tl_status status = act(store, o, diag);
    tl_records_close(store, NULL);
    return status;
}

int tl_verb_db(int argc, char **argv)
{
    db_options o = { .action = "ls" };
    const tl_option options[] = {
        { "--db", NULL, TL_OPTION_TEXT, "FILE",
          "the database (default: $XDG_DATA_HOME/tilth/records.db, over the system's)", &o.path },
        { "--workload", NULL, TL_OPTION_TEXT, "KEY", "only records of that workload", &o.workload },
        { "--family", NULL, TL_OPTION_TEXT, "NAME", "only kernels of that family", &o.family },
        { "--fingerprint", NULL, TL_OPTION_TEXT, "TEXT", "only records of that target", &o.target },
        { "--lowering", NULL, TL_OPTION_TEXT, "NAME", "only that lowering", &o.lowering },
        { "--session", NULL, TL_OPTION_TEXT, "NAME", "only that run of the tuner", &o.session },
        { "--ok", NULL, TL_OPTION_FLAG, NULL, "only records with a full measurement", &o.ok },
        { "--failed", NULL, TL_OPTION_FLAG, NULL, "only candidates that failed", &o.failed },
        { "--limit", "-n", TL_OPTION_INT, "N", "at most so many records (0: all)", &o.limit },
        { "--output", "-o", TL_OPTION_TEXT, "FILE", "with export: where to (default: stdout)",
          &o.output },
        { "--winners", NULL, TL_OPTION_FLAG, NULL,
          "with export: of each workload, target and lowering only the best, where it beat the "
          "default "
          "schedule",
          &o.winners },
        { "--keep-best", NULL, TL_OPTION_INT, "N", "with prune: but the best N of each workload",
          &o.keep_best },
        { "--older-than", NULL, TL_OPTION_INT, "DAYS", "with prune: only older ones", &o.days },
        { "--stale", NULL, TL_OPTION_FLAG, NULL,
          "with prune: only those of another revision of the code generator", &o.stale },
        { "--force", NULL, TL_OPTION_FLAG, NULL, "with repair: though the file looks sound",
          &o.always },
        { "--dry-run", NULL, TL_OPTION_FLAG, NULL, "with prune: only count", &o.dry },
        { "--json", NULL, TL_OPTION_FLAG, NULL, "one JSON object a line", &o.json },
        { 0 },
    };
    const tl_verb_help help = {
        "db",
        "[ACTION] [FILE|UID...]",
        "Looks at and tends the records of everything that was ever measured here.",
        "ls (the default): a line a workload. top: the fastest record of each workload, or the N "
        "fastest of one.\n"
        "show: all about records whose uid, or a workload whose key, begins so. stats: counts, "
        "failures by reason, size.\n"
        "choices: what was kept for whole models, the newest first; later compiles follow the "
        "newest of each.\n"
        "export, import: records as lines of JSON. merge: what other databases have and this one "
        "lacks.\n"
        "prune: removes what its options name, and nothing without them. repair: saves what can be "
        "read of a damaged file.",
        "  tilth db\n  tilth db top --workload 1c0ffee...\n  tilth db export -o records.jsonl\n"
        "  tilth db merge colleague.db\n  tilth db prune --failed --older-than 30 --dry-run",
        options,
        0,
        MAX_FILES,
        action_word,
    };
    int positional_count, code;
    const char *positional[MAX_FILES];
    if (!tl_verb_begin(&help, argc, argv, positional, &positional_count, &code))
        return code;

    tl_diag diag = { 0 };
    if (positional_count > 0)
        o.action = positional[0];
    o.files = positional + 1;
    o.file_count = positional_count > 0 ? positional_count - 1 : 0;
    signal(SIGXFSZ, SIG_IGN); /* a full disk is an error of its write */
    bool is_data = strcmp(o.action, "export") == 0 && (o.output == NULL || tl_is_stdout(o.output));
    if (o.json && !is_data)
        tl_print_env_json();
    tl_status status = run(&o, &diag);
    if (status != TL_OK)
        code = tl_report_failure("db", status, &diag);
    return code;
}
