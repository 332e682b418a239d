/* driver/report/db_list.c: lists of records, for people and as JSON. */
#include "driver/report/db_list.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "driver/cli/session.h"
#include "runtime/base/map.h"

/* What is known of one workload on one target. */
typedef struct {
    const char *workload, *family, *target;
    int64_t trials, failed;
    bool is_known;
    tl_record best;
    double best_ns; /* its score (tl_records_best) */
} summary;

typedef struct {
    tl_arena *arena;
    tl_map *summaries;
    bool json;
    int64_t printed;
} lister;

/* "12.3 us", "1.234 ms"; "-" for none. */
static const char *time_text(double ns, char *out, size_t size)
{
    if (ns <= 0)
        snprintf(out, size, "-");
    else if (ns < 1e6)
        snprintf(out, size, "%.2f us", ns * 1e-3);
    else
        snprintf(out, size, "%.3f ms", ns * 1e-6);
    return out;
}

static const char *date_text(int64_t us, char *out, size_t size)
{
    time_t t = (time_t)(us / 1000000);
    struct tm local;
    if (localtime_r(&t, &local) == NULL || strftime(out, size, "%Y-%m-%d %H:%M:%S", &local) == 0)
        snprintf(out, size, "-");
    return out;
}

static void print_record_json(const tl_record *record)
{
    tl_text line = { 0 };
    tl_record_print(record, &line);
    puts(tl_text_get(&line));
    tl_text_free(&line);
}

static bool summarize(void *user, const tl_record *record)
{
    lister *l = user;
    const char *key = tl_arena_format(l->arena, "%s %s", record->workload, record->target);
    summary *s = tl_map_find(l->summaries, key);
    if (s == NULL) {
        s = TL_NEW(l->arena, summary);
        s->workload = tl_arena_strdup(l->arena, record->workload);
        s->family = tl_arena_strdup(l->arena, record->family);
        s->target = tl_arena_strdup(l->arena, record->target);
        tl_map_put(l->summaries, key, s);
    }
    s->trials++;
    s->failed += record->status != TL_RECORD_OK;
    return true;
}

/* What the workloads are that the query finds, and the best record of each. */
static tl_status summarize_all(tl_records *store, const tl_query *query, lister *l, tl_diag *diag)
{
    tl_query all = *query;
    all.limit = 0;
    all.order = TL_ORDER_STORED;
    TL_TRY(tl_records_visit(store, &all, summarize, l, diag));
    for (size_t i = 0; i < tl_map_count(l->summaries); i++) {
        summary *s = tl_map_at(l->summaries, i).value;
        all.workload = s->workload;
        all.target = s->target;
        s->is_known =
            !query->only_failed && tl_records_best(store, l->arena, &all, &s->best, &s->best_ns);
    }
    return TL_OK;
}

static const char *find_name(tl_records *store, tl_arena *arena, const char *workload)
{
    tl_workload_info info;
    return tl_records_find_workload(store, arena, workload, &info) ? info.name : "";
}

static void print_summary(tl_records *store, const lister *l, const summary *s)
{
    char best[32];
    const char *name = find_name(store, l->arena, s->workload);
    if (l->json) {
        printf("{\"record\":\"summary\",\"workload\":\"%s\",\"family\":", s->workload);
        tl_print_json_text(s->family);
        printf(",\"name\":");
        tl_print_json_text(name);
        printf(",\"target\":");
        tl_print_json_text(s->target);
        printf(",\"trials\":%" PRId64 ",\"failed\":%" PRId64 ",\"best_ns\":%.3f,\"best\":\"%s\"}\n",
               s->trials, s->failed, s->best_ns, s->is_known ? s->best.uid : "");
        return;
    }
    printf("%-12.12s %7" PRId64 " %7" PRId64 " %12s  %-28.28s %s\n", s->workload, s->trials,
           s->failed, time_text(s->best_ns, best, sizeof best), name[0] ? name : s->family,
           s->target);
}

/* An arena of its own for `act`, and the answer when memory runs out. */
static tl_status list(tl_records *store, const tl_query *query, bool json, tl_arena *arena,
                      tl_diag *diag)
{
    lister l = { .arena = arena, .summaries = tl_map_create(arena), .json = json };
    TL_TRY(summarize_all(store, query, &l, diag));
    if (!json && tl_map_count(l.summaries) == 0)
        printf("no records\n");
    else if (!json)
        printf("%-12s %7s %7s %12s  %-28s %s\n", "workload", "trials", "failed", "best", "kernel",
               "target");
    for (size_t i = 0; i < tl_map_count(l.summaries); i++)
        print_summary(store, &l, tl_map_at(l.summaries, i).value);
    return TL_OK;
}

tl_status tl_db_list(tl_records *store, const tl_query *query, bool json, tl_diag *diag)
{
    tl_arena *arena = tl_arena_create(0);
    tl_status status;
    if (arena == NULL || TL_ARENA_GUARD(arena))
        status = tl_fail(diag, TL_NO_MEMORY, "out of memory");
    else
        status = list(store, query, json, arena, diag);
    tl_arena_destroy(arena);
    return status;
}

static bool print_row(void *user, const tl_record *record)
{
    lister *l = user;
    char time[32], incumbent[32];
    if (l->json) {
        print_record_json(record);
        return true;
    }
    if (l->printed++ == 0)
        printf("%-10s %12s %12s %5s %-12s %-12s %s\n", "record", "score", "time", "n", "lowering",
               "workload", "remarks");
    printf("%-10.10s %12s %12s %5d %-12.12s %-12.12s %s%s%s%s%s\n", record->uid,
           time_text(record->score_ns, time, sizeof time),
           time_text(record->time_ns, incumbent, sizeof incumbent), record->time_count,
           record->lowering, record->workload, record->hopeless ? "hopeless " : "",
           record->disturbed ? "disturbed " : "", record->cold != TL_COLD_NOTHING ? "cold " : "",
           record->cold != TL_COLD_NOTHING ? tl_cold_infos[record->cold].text : "",
           record->status != TL_RECORD_OK ? tl_record_status_infos[record->status].text : "");
    return true;
}

static tl_status top_of_each(tl_records *store, const tl_query *query, bool json, tl_arena *arena,
                             tl_diag *diag)
{
    lister l = { .arena = arena, .summaries = tl_map_create(arena), .json = json };
    TL_TRY(summarize_all(store, query, &l, diag));
    for (size_t i = 0; i < tl_map_count(l.summaries); i++) {
        const summary *s = tl_map_at(l.summaries, i).value;
        if (s->is_known)
            print_row(&l, &s->best);
    }
    if (!json && l.printed == 0)
        printf("no records\n");
    return TL_OK;
}

tl_status tl_db_top(tl_records *store, const tl_query *query, bool each, bool json, tl_diag *diag)
{
    lister l = { .json = json };
    tl_status status;
    if (!each) {
        status = tl_records_visit(store, query, print_row, &l, diag);
        if (status == TL_OK && !json && l.printed == 0)
            printf("no records\n");
        return status;
    }
    tl_arena *arena = tl_arena_create(0);
    if (arena == NULL || TL_ARENA_GUARD(arena))
        status = tl_fail(diag, TL_NO_MEMORY, "out of memory");
    else
        status = top_of_each(store, query, json, arena, diag);
    tl_arena_destroy(arena);
    return status;
}

/* Text that came from a file, its lines set in. */
static void print_inside(const char *text)
{
    while (*text) {
        size_t size = strcspn(text, "\n");
        printf("  %.*s\n", (int)size, text);
        text += size + (text[size] == '\n');
    }
}

static void print_record(const tl_record *r)
{
    char a[32], b[32];
    const char *const texts[][2] = {
        { "workload", r->workload }, { "class", r->class_key },         { "family", r->family },
        { "target", r->target },     { "numerics", r->numerics },       { "lowering", r->lowering },
        { "program", r->program },   { "environment", r->environment },
    };
    printf("record      %s\n", r->uid);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        printf("%-11s %s\n", texts[i][0], texts[i][1]);
    printf("session     %s, trial %" PRId64 ", %s\n", r->session, r->sequence,
           date_text(r->created_us, a, sizeof a));
    printf("result      %s: %s%s%s\n", tl_record_status_infos[r->status].text,
           r->reason[0] ? r->reason : tl_record_status_infos[r->status].words,
           r->hopeless ? " (stopped early: hopeless)" : "", r->disturbed ? " (disturbed)" : "");
    printf("caches      %s\n", tl_cold_infos[r->cold].words);
    if (r->status == TL_RECORD_OK) {
        printf("time        %s (median %s, %d repeats, %d thread%s)\n",
               time_text(r->time_ns, a, sizeof a), time_text(r->median_ns, b, sizeof b),
               r->time_count, r->threads, r->threads == 1 ? "" : "s");
        printf("incumbent   %s in the same rounds; score %s\n",
               time_text(r->incumbent_ns, a, sizeof a), time_text(r->score_ns, b, sizeof b));
        printf("error       %.3g of the largest magnitude\n", r->max_error);
    }
    printf("cost        build %s, ", time_text(r->build_ns, a, sizeof a));
    printf("check and time %s; code generator %d\n", time_text(r->run_ns, a, sizeof a),
           r->revision);
    printf("trace\n");
    print_inside(r->trace[0] ? r->trace : "(empty)");
}

static int count_lines(const char *text)
{
    int lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static bool print_choice(void *user, const tl_choice *c)
{
    lister *l = user;
    char before[32], after[32], date[32];
    if (l->json) {
        tl_text line = { 0 };
        tl_choice_print(c, &line);
        puts(tl_text_get(&line));
        tl_text_free(&line);
        return true;
    }
    if (l->printed++ == 0)
        printf("%-12s %-24s %-7s %7s %12s %12s  %-24s %3s %4s  %s\n", "model", "file", "kept",
               "kernels", "untuned", "tuned", "ratio (95 %)", "thr", "rev", "date");
    printf("%-12.12s %-24.24s %-7s %7d %12s %12s  %.4f (%.4f .. %.4f) %3d %4d  %s\n", c->model,
           c->name, c->kept ? "tuned" : "default", count_lines(c->picks),
           time_text(c->untuned_ns, before, sizeof before),
           time_text(c->tuned_ns, after, sizeof after), c->ratio, c->ratio_low, c->ratio_high,
           c->threads, c->revision, date_text(c->created_us, date, sizeof date));
    return true;
}

tl_status tl_db_choices(tl_records *store, bool json, tl_diag *diag)
{
    lister l = { .json = json };
    TL_TRY(tl_records_visit_choices(store, NULL, print_choice, &l, diag));
    if (!json && l.printed == 0)
        printf("no choices\n");
    return TL_OK;
}

typedef struct {
    const char *name;
    bool json;
    int64_t found;
    char workload[33];
} shower;

static bool show_record(void *user, const tl_record *record)
{
    shower *s = user;
    if (s->json)
        print_record_json(record);
    else
        print_record(record);
    snprintf(s->workload, sizeof s->workload, "%s", record->workload);
    s->found++;
    return true;
}

static bool show_workload(void *user, const tl_workload_info *info)
{
    shower *s = user;
    if (strncmp(info->workload, s->name, strlen(s->name)) != 0)
        return true;
    s->found++;
    if (s->json) {
        tl_text line = { 0 };
        tl_workload_print(info, &line);
        puts(tl_text_get(&line));
        tl_text_free(&line);
        return true;
    }
    printf("workload    %s\nclass       %s\nkernel      %s (%s)\nwork        %.6f GFLOP, %.3f MB\n"
           "program\n",
           info->workload, info->class_key, info->name, info->family, (double)info->flops * 1e-9,
           (double)info->bytes * 1e-6);
    print_inside(info->program);
    return true;
}

tl_status tl_db_show(tl_records *store, const char *name, bool json, tl_diag *diag)
{
    shower s = { .name = name, .json = json };
    TL_TRY(tl_records_visit(store, &(tl_query){ .uid = name, .limit = 20 }, show_record, &s, diag));
    if (s.found > 0)
        s.name = s.workload;
    TL_TRY(tl_records_visit_workloads(store, show_workload, &s, diag));
    if (s.found == 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "no record and no workload begins with '%s'", name);
    return TL_OK;
}
