/* driver/dataset/collect_run.c: opens what is measured and where it goes, collects, says what came of it. */
#include "driver/dataset/collect_run.h"
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include "driver/pipeline/host_target.h"
#include "runtime/base/file.h"
#include "runtime/base/program_path.h"
#include "tuner/run/environment.h"

#define LINE_S 5.0

typedef struct {
    const tl_collect_settings *o;
    tl_session session;
    tl_target target;
    tl_target_place place;
    tl_numerics numerics;
    const tl_tune_task *tasks;
    int task_count;
    int64_t constant_bytes;
    tl_records *store;
    tl_measurer *measurer;
    double next_line_s;
    cpu_set_t cores;
} collect_run;

static volatile sig_atomic_t stop;

bool tl_dataset_default_path(tl_text *out)
{
    if (!tl_data_folder(out))
        return false;
    tl_text_add(out, "/dataset.db");
    return !out->failed;
}

/* What is uncertain or censored of those that have a ratio. */
static double share(int64_t part, const tl_collect_totals *t)
{
    int64_t ok = t->measured - t->failed;
    return ok > 0 ? 100.0 * (double)part / (double)ok : 0;
}

static void show(void *user, const tl_collect_totals *t)
{
    collect_run *run = user;
    enum { BAR = 20 };
    bool is_live = tl_progress_is_live();
    if (!is_live && (tl_quiet || t->elapsed_s < run->next_line_s))
        return;
    run->next_line_s = t->elapsed_s + LINE_S;
    double rate = t->elapsed_s > 0 ? (double)t->measured / t->elapsed_s : 0;
    int64_t there = t->known + t->measured, left = t->planned - there;
    double part = t->planned > 0 ? (double)there / (double)t->planned : 1;
    double left_s = rate > 0 ? (double)left / rate : 0;
    const double limit = run->o->seconds;
    if (limit > 0 && limit - t->elapsed_s < left_s)
        left_s = limit - t->elapsed_s;
    if (limit > 0 && t->elapsed_s / limit > part)
        part = t->elapsed_s / limit;
    int filled = (int)((part < 1 ? part : 1) * BAR);
    char line[200];
    snprintf(line, sizeof line,
             "[%.*s%.*s] %d of %d tasks, %" PRId64 " records, %.1f a second, %.1f %% above the "
             "wanted error, %d:%02d left",
             filled, "####################", BAR - filled, "....................", t->tasks_done,
             t->tasks, there, rate, share(t->uncertain, t), (int)left_s / 60, (int)left_s % 60);
    if (is_live)
        tl_progress("%s", line);
    else
        fprintf(stderr, "tilth dataset: %s\n", line);
}

static void print(const collect_run *run, const tl_collect_totals *t)
{
    double rate = t->elapsed_s > 0 ? (double)t->measured / t->elapsed_s : 0;
    if (run->o->common.json) {
        printf("{\"record\":\"collected\",\"file\":");
        tl_print_json_text(tl_records_path(run->store));
        printf(",\"tasks\":%d,\"tasks_done\":%d,\"known\":%" PRId64 ",\"measured\":%" PRId64
               ",\"failed\":%" PRId64 ",\"uncertain\":%" PRId64 ",\"censored\":%" PRId64
               ",\"elapsed_s\":%.3f,\"per_second\":%.3f}\n",
               t->tasks, t->tasks_done, t->known, t->measured, t->failed, t->uncertain, t->censored,
               t->elapsed_s, rate);
        return;
    }
    printf("%" PRId64 " records measured in %.0f s (%.1f a second), %" PRId64
           " were there; %d of %d tasks are complete\n",
           t->measured, t->elapsed_s, rate, t->known, t->tasks_done, t->tasks);
    printf("%" PRId64 " failed; of the others %.1f %% are above the wanted error, %.1f %% ended "
           "early\n",
           t->failed, share(t->uncertain, t), share(t->censored, t));
    printf("kept in %s (tilth dataset export makes a file of it)\n", tl_records_path(run->store));
}

static tl_status collect(collect_run *run, tl_diag *diag)
{
    const tl_collect_settings *o = run->o;
    char session[TL_SESSION_NAME];
    tl_text environment = { 0 };
    tl_collect_totals totals;
    tl_session_name("collect", session);
    tl_environment_text(NULL, &environment);
    const tl_collect_options options = {
        .tasks = run->tasks,
        .task_count = run->task_count,
        .per_task = (int)o->per_task,
        .measurer = run->measurer,
        .store = run->store,
        .target = &run->target,
        .threads = run->session.threads,
        .cold = o->cold,
        .numerics = tl_numerics_text(run->numerics),
        .session = session,
        .environment = tl_text_get(&environment),
        .profile = tl_machine_probed(run->session.arena, &run->target),
        .seed = o->sources.seed,
        .seconds = o->seconds,
        .stop = &stop,
        .listen = show,
        .user = run,
    };
    tl_status status = tl_collect(&options, &totals, diag);
    tl_progress_done();
    print(run, &totals);
    tl_text_free(&environment);
    return status;
}

static tl_status open_store(collect_run *run, tl_diag *diag)
{
    tl_text path = { 0 };
    const char *named = run->o->common.database;
    tl_status status = TL_OK;
    if (named == NULL && !tl_dataset_default_path(&path))
        status = tl_fail(diag, TL_BAD_ARGUMENT,
                         "no place for the records: neither XDG_DATA_HOME nor HOME is set (--db)");
    if (status == TL_OK)
        status = tl_records_open(named != NULL ? named : tl_text_get(&path),
                                 TL_RECORDS_CREATE | TL_RECORDS_REPAIR, &run->store, diag);
    if (status == TL_OK && *tl_records_repaired(run->store) && !tl_quiet)
        fprintf(stderr, "tilth dataset: note: %s\n", tl_records_repaired(run->store));
    tl_text_free(&path);
    return status;
}

static tl_status run_all(collect_run *run, tl_diag *diag)
{
    const tl_collect_settings *o = run->o;
    TL_TRY(tl_session_start(&run->session, &o->common, diag));
    if (TL_ARENA_GUARD(run->session.arena))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    if (o->common.numerics != NULL && strcmp(o->common.numerics, "strict") == 0)
        run->numerics = TL_NUMERICS_STRICT;
    TL_TRY(tl_target_resolve(o->common.target, &run->target, diag));
    run->target.machine = run->session.machine;
    TL_TRY(tl_target_find_place(o->common.target, &run->target, &run->place, diag));
    TL_TRY(open_store(run, diag));
    TL_TRY(tl_data_tasks(&o->sources, &o->common, &run->session, run->numerics, &run->tasks,
                         &run->task_count, &run->constant_bytes, diag));
    const tl_measure_options options = { .worker = tl_program_path(),
                                         .target = &run->target,
                                         .device = run->place.device[0] != '\0' ? run->place.device
                                                                                : NULL,
                                         .host = &run->place.host,
                                         .threads = run->session.threads,
                                         .constant_bytes = run->constant_bytes,
                                         .run_limit_s = 5,
                                         .seed = o->sources.seed };
    TL_TRY(tl_measurer_create(&options, &run->measurer, diag));
    tl_measurer_leave_core(run->measurer);
    tl_interrupt_catch(&stop);
    return collect(run, diag);
}

tl_status tl_collect_run(const tl_collect_settings *settings, tl_diag *diag)
{
    collect_run run = { .o = settings, .next_line_s = LINE_S };
    int64_t lost = 0;
    sched_getaffinity(0, sizeof run.cores, &run.cores);
    tl_status status = run_all(&run, diag);
    tl_measurer_destroy(run.measurer);
    sched_setaffinity(0, sizeof run.cores, &run.cores);
    tl_records_close(run.store, &lost);
    tl_session_close(&run.session);
    if (lost > 0)
        fprintf(stderr, "tilth dataset: %" PRId64 " records could not be written\n", lost);
    if (stop && !tl_quiet)
        fprintf(stderr, "tilth dataset: interrupted; the same command goes on there\n");
    return stop ? TL_INTERRUPTED : status;
}
