/* driver/tune/tune_run.c: opens what is tuned, searches, compares each model with the untuned one. */
#include "driver/tune/tune_run.h"
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <string.h>
#include "driver/pipeline/host_target.h"
#include "driver/pipeline/model_tasks.h"
#include "driver/pipeline/tunable_model.h"
#include "driver/tune/kernel_task.h"
#include "driver/tune/load_experts.h"
#include "driver/tune/transfer_report.h"
#include "driver/tune/tune_report.h"
#include "tuner/model/tune_models.h"
#include "tuner/run/environment.h"
#include "runtime/base/program_path.h"

#define DEFAULT_BUDGET_S 120
#define FIRST_LINE_S     5
/* of comparing tuned models with untuned ones: large models make few runs in ten seconds */
#define SHARE_CHECK      0.05

/* One of the models. */
typedef struct {
    const char *path;
    tl_session session;
    tl_model_options options; /* that it is compiled with */
    tl_tunable *tunable;
    tl_tune_list list; /* its kernels */
} subject;

/* All that a run holds. */
typedef struct {
    const tl_tune_settings *o;
    subject *models;
    tl_tune_model *tuned; /* one a model */
    int model_count;
    tl_study study; /* of a kernel; its arena is the run's in any case */
    tl_numerics numerics;
    tl_target target;
    tl_target_place place;
    int threads;
    tl_tune_list list; /* of all of them */
    tl_records *store;
    tl_measurer *measurer;
    tl_donor_report donors;
    tl_expert_list experts;
    tl_tuning *tuning;
    tl_text defects;
    char session_name[TL_SESSION_NAME];
    cpu_set_t cores; /* as they were: the measurer keeps one for itself */
} tune_run;

static volatile sig_atomic_t stop;

bool tl_tune_is_kernel(const char *path)
{
    size_t n = strlen(path);
    return n >= 3 && strcmp(path + n - 3, ".tk") == 0;
}

static const char *verb_of(const tl_tune_settings *o)
{
    return o->is_transfer ? "transfer" : "tune";
}

/* ---- what is tuned ---- */

static tl_status open_kernel(tune_run *run, const char *path, tl_diag *diag)
{
    const tl_session_options *o = &run->o->common;
    TL_TRY(tl_numerics_parse(o->numerics, &run->numerics, diag));
    tl_study_options study = {
        .kernel = path, .target = o->target, .threads = o->threads, .sets = run->o->sets
    };
    TL_TRY(tl_session_machine(run->study.arena, o->machine, &study.machine, diag));
    TL_TRY(tl_study_open(&run->study, &study, diag));
    tl_tune_tasks_of_kernel(&run->study, &run->list);
    run->target = run->study.target;
    run->threads = run->study.threads;
    return TL_OK;
}

/* Other forms are compared in the model, at the end, with the kernels of the whole. */
static bool wants_forms(const tl_tune_settings *o)
{
    return !o->is_transfer && !o->no_check && !o->common.no_database && o->filter.pattern == NULL &&
           o->filter.top == 0 && o->space == TL_SPACE_FULL;
}

static tl_status open_model(tune_run *run, subject *m, tl_tune_forms *forms, tl_diag *diag)
{
    tl_session_options untuned = run->o->common;
    tl_model_options extra = { .inspect_only = true, .no_cache = true, .no_database = true };
    untuned.database = NULL;
    TL_TRY(tl_session_open(&m->session, m->path, &untuned, &extra, diag));
    TL_TRY(tl_session_model_options(&m->session, &run->o->common, &m->options, diag));
    run->numerics = m->options.numerics;
    run->target = *tl_model_get_facts(m->session.model)->target;
    run->threads = m->session.threads;
    TL_TRY(tl_model_tasks(m->session.arena, m->session.model, run->numerics, &run->o->filter,
                          &m->list, diag));
    m->tunable = tl_tunable_model_create(m->session.arena, m->path, m->session.model, &m->options);
    if (!wants_forms(run->o))
        return TL_OK;
    return tl_tune_forms_find(m->session.arena, m->tunable, &m->list, forms, diag);
}

static tl_status open_models(tune_run *run, tl_diag *diag)
{
    const tl_tune_list **lists =
        TL_NEW_ARRAY(run->study.arena, const tl_tune_list *, run->model_count);
    for (int i = 0; i < run->model_count; i++) {
        TL_TRY(open_model(run, &run->models[i], &run->tuned[i].forms, diag));
        lists[i] = &run->models[i].list;
    }
    return tl_tune_tasks_join(run->study.arena, lists, run->model_count, &run->o->filter,
                              &run->list, diag);
}

/* ---- records ---- */

static tl_status open_store(tune_run *run, tl_diag *diag)
{
    const tl_tune_settings *o = run->o;
    if (o->common.no_database || o->replay != NULL)
        return TL_OK;
    TL_TRY(tl_records_open_default(o->common.database, TL_RECORDS_CREATE | TL_RECORDS_REPAIR,
                                   &run->store, diag));
    if (*tl_records_repaired(run->store) && !tl_quiet)
        fprintf(stderr, "tilth %s: note: %s\n", verb_of(o), tl_records_repaired(run->store));
    const char *path = tl_records_path(run->store), *slash = strrchr(path, '/');
    tl_text_format(&run->defects, "%.*sdefects", slash != NULL ? (int)(slash + 1 - path) : 0, path);
    return TL_OK;
}

static tl_status note_known(tune_run *run, const tl_tune_options *options, tl_diag *diag)
{
    for (int i = 0; i < options->known_count; i++) {
        tl_text line = { 0 };
        tl_record_print(&options->known[i], &line);
        tl_status status = tl_recorder_note(run->measurer, tl_text_get(&line), diag);
        tl_text_free(&line);
        TL_TRY(status);
    }
    return TL_OK;
}

static tl_status note_lines(tune_run *run, const char *lines, tl_diag *diag)
{
    while (*lines) {
        size_t size = strcspn(lines, "\n");
        TL_TRY(
            tl_recorder_note(run->measurer, tl_arena_strndup(run->study.arena, lines, size), diag));
        lines += size + (lines[size] == '\n');
    }
    return TL_OK;
}

static tl_status make_measurer(tune_run *run, tl_diag *diag)
{
    const tl_tune_settings *o = run->o;
    if (o->replay != NULL)
        return tl_replayer_create(o->replay, &run->measurer, diag);
    TL_TRY(tl_target_find_place(o->common.target, &run->target, &run->place, diag));
    tl_measure_options options = { .worker = tl_program_path(),
                                   .target = &run->target,
                                   .device =
                                       run->place.device[0] != '\0' ? run->place.device : NULL,
                                   .host = &run->place.host,
                                   .threads = run->threads,
                                   .run_limit_s = o->candidate_s,
                                   .constant_bytes = run->list.constant_bytes,
                                   .seed = (uint64_t)o->seed,
                                   .defects =
                                       run->defects.size > 0 ? tl_text_get(&run->defects) : NULL };
    TL_TRY(tl_measurer_create(&options, &run->measurer, diag));
    tl_measurer_leave_core(run->measurer);
    if (o->record == NULL)
        return TL_OK;
    tl_measurer *recorder;
    TL_TRY(tl_recorder_create(run->measurer, o->record, &recorder, diag));
    run->measurer = recorder;
    return TL_OK;
}

/* ---- the run ---- */

static tl_status ask_known(tune_run *run, const tl_tune_models *models, tl_tune_options *options,
                           tl_diag *diag)
{
    const tl_tune_settings *o = run->o;
    tl_arena *arena = run->study.arena;
    const tl_tune_task *tasks;
    if (o->replay != NULL)
        return tl_tune_known_of_recording(o->replay, arena, &options->known, &options->known_count,
                                          diag);
    if (o->is_transfer && o->donors.others_only)
        return TL_OK;
    int count = tl_tune_models_tasks(arena, models, &tasks);
    tl_tune_known(run->store, tasks, count, arena, &options->known, &options->known_count);
    return o->record != NULL ? note_known(run, options, diag) : TL_OK;
}

/* Schedules of other kernels of the tasks' classes. A recording has those that it was made with. */
static tl_status ask_donors(tune_run *run, tl_tune_options *options, tl_diag *diag)
{
    const tl_tune_settings *o = run->o;
    tl_donor_settings settings = o->donors;
    settings.donors = o->replay != NULL ? o->replay : settings.donors;
    settings.may_be_empty = o->replay != NULL;
    if (o->donors.per_kernel == 0 && !o->is_transfer)
        return TL_OK;
    settings.per_kernel = o->donors.per_kernel > 0 ? o->donors.per_kernel : 1;
    TL_TRY(tl_donors_for(run->study.arena, &settings, &o->common, &run->list, run->store,
                         &run->target, run->threads, run->numerics, o->space, &run->donors, diag));
    if (run->donors.donors.count > 0 || o->is_transfer)
        options->transfer = &run->donors.transfer;
    tl_text lines = { 0 };
    if (o->record != NULL)
        tl_donors_print(&run->donors.donors, &lines);
    tl_status status = lines.size > 0 ? note_lines(run, tl_text_get(&lines), diag) : TL_OK;
    tl_text_free(&lines);
    return status;
}

static bool is_untimed(const tl_tune_settings *o)
{
    return o->is_transfer && o->donors.per_kernel == 0;
}

static void begin_forms(void *user)
{
    tl_tune_report *report = user;
    report->stage = "other forms: ";
    report->next_line_s = FIRST_LINE_S;
}

/* With several models, whose what follows is. */
static void print_heading(const tune_run *run, const subject *m)
{
    if (run->model_count > 1 && !run->o->common.json)
        printf("\n%s\n", m->path);
}

static tl_status tune(tune_run *run, tl_diag *diag)
{
    const tl_tune_settings *o = run->o;
    tl_tune_report report = { .list = &run->list,
                              .verb = verb_of(o),
                              .policy = o->is_transfer ? "transfer" : o->policy->name,
                              .json = o->common.json,
                              .stage = "",
                              .next_line_s = FIRST_LINE_S };
    tl_session_name(o->is_transfer ? "transfer" : o->policy->name, run->session_name);
    if (!o->is_transfer)
        TL_TRY(tl_experts_load(&o->cost_models, &run->experts, diag));
    TL_TRY(make_measurer(run, diag));
    report.measurer = run->measurer;
    bool is_limited = o->is_transfer || o->budget_s > 0 || o->trials > 0 || o->trials_per_task > 0;
    tl_tune_options options = {
        .policy = o->policy,
        .experts = run->experts.models,
        .expert_count = run->experts.count,
        .measurer = run->measurer,
        .store = run->store,
        .target = &run->target,
        .threads = run->threads,
        .space = o->space,
        .cold = o->cold,
        .numerics = tl_numerics_text(run->numerics),
        .seed = (uint64_t)o->seed,
        .budget_s = is_limited ? o->budget_s : DEFAULT_BUDGET_S,
        .ends_at_rest = !is_limited,
        .trials = o->trials,
        .trials_per_task = o->trials_per_task,
        .starts_only = o->is_transfer,
        .checks_only = is_untimed(o),
        .batch = (int)o->batch,
        .session = run->session_name,
        .profile = o->replay == NULL ? tl_machine_probed(run->study.arena, &run->target) : NULL,
        .stop = &stop,
        .listen = tl_tune_report_event,
        .user = &report,
    };
    const tl_tune_models models = { .options = &options,
                                    .list = &run->list,
                                    .models = run->tuned,
                                    .model_count = run->model_count,
                                    .begin_forms = begin_forms };
    TL_TRY(ask_known(run, &models, &options, diag));
    TL_TRY(ask_donors(run, &options, diag));
    if (o->is_transfer)
        tl_transfer_report_donors(&run->donors, &run->list, o->common.json);
    tl_status status = tl_tune_models_run(run->study.arena, &models, &run->tuning, diag);
    if (run->tuning == NULL)
        return status;
    if (o->is_transfer)
        tl_transfer_report_print(&report, &run->donors, run->tuning, is_untimed(o));
    else
        tl_tune_report_print(&report, run->tuning);
    for (int i = 0; i < run->model_count && status == TL_OK; i++)
        if (run->tuned[i].forms.count > 0) {
            print_heading(run, &run->models[i]);
            tl_tune_report_forms(&report, run->models[i].path, &run->tuned[i].forms,
                                 run->tuned[i].form_trials);
        }
    return status;
}

static void show_check(void *user, const char *stage, double seconds_left)
{
    (void)user;
    tl_progress("%s: %.0f s left", stage, seconds_left);
}

/* Plain schedules have no default to be compared with. */
static bool wants_check(const tune_run *run)
{
    return run->store != NULL && !run->o->no_check && run->o->space == TL_SPACE_FULL;
}

/* What was transferred and checked, of all kernels. */
static int take_picks(const tune_run *run, tl_pick *picks)
{
    int count = 0;
    for (int i = 0; i < tl_tuning_count(run->tuning); i++) {
        const tl_record *best = tl_tuning_task(run->tuning, i)->best;
        if (best != NULL)
            picks[count++] = (tl_pick){ .workload = best->workload,
                                        .uid = best->uid,
                                        .lowering = best->lowering,
                                        .trace = best->trace };
    }
    return count;
}

/* Whether what was found makes the whole model faster is found out in the model, with the machine to itself. */
static tl_status check_model(tune_run *run, subject *m, tl_diag *diag)
{
    tl_model_verdict verdict;
    double seconds = fmax(TL_VERDICT_SECONDS, SHARE_CHECK * run->o->budget_s / run->model_count);
    tl_pick *picks = TL_NEW_ARRAY(m->session.arena, tl_pick, tl_tuning_count(run->tuning));
    tl_verdict_options options = { .picks = is_untimed(run->o) ? picks : NULL,
                                   .pick_count = is_untimed(run->o) ? take_picks(run, picks) : 0,
                                   .untimed = is_untimed(run->o),
                                   .seconds = run->o->check_s > 0 ? run->o->check_s : seconds,
                                   .seed = (uint64_t)run->o->seed,
                                   .session = run->session_name,
                                   .stop = &stop,
                                   .progress = show_check };
    tl_status status =
        tl_verdict_reach(m->session.arena, m->tunable, run->store, &options, &verdict, diag);
    tl_progress_done();
    if (status != TL_OK)
        return status;
    print_heading(run, m);
    tl_tune_report_verdict(&verdict, m->path, is_untimed(run->o), run->o->common.json);
    return TL_OK;
}

static tl_status run_all(tune_run *run, const char *kernel, tl_diag *diag)
{
    if (run->study.arena == NULL || TL_ARENA_GUARD(run->study.arena))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    TL_TRY(kernel != NULL ? open_kernel(run, kernel, diag) : open_models(run, diag));
    if (run->o->space == TL_SPACE_PLAIN) {
        tl_tune_list whole = run->list;
        tl_tune_tasks_split(run->study.arena, &whole, &run->list);
    }
    TL_TRY(open_store(run, diag));
    tl_interrupt_catch(&stop);
    tl_status status = tune(run, diag);
    tl_measurer_destroy(run->measurer); /* its workers would disturb what comes */
    run->measurer = NULL;
    sched_setaffinity(0, sizeof run->cores, &run->cores);
    for (int i = 0; i < run->model_count && wants_check(run); i++)
        if (status == TL_OK && !stop)
            status = check_model(run, &run->models[i], diag);
    return status;
}

/* Waits for what is not written yet; says what was kept. */
static int64_t close_store(tune_run *run)
{
    tl_tune_totals totals = { 0 };
    tl_text path = { 0 };
    int64_t lost = 0;
    if (run->tuning != NULL)
        tl_tuning_totals(run->tuning, &totals);
    for (int i = 0; i < run->model_count; i++)
        totals.trials += run->tuned[i].form_trials;
    if (run->store != NULL)
        tl_text_add(&path, tl_records_path(run->store));
    tl_records_close(run->store, &lost);
    if (lost > 0)
        fprintf(stderr, "tilth %s: %" PRId64 " trials could not be written to %s\n",
                verb_of(run->o), lost, tl_text_get(&path));
    if (stop && !tl_quiet) {
        tl_progress_done();
        fprintf(stderr, "tilth %s: interrupted; ", verb_of(run->o));
        if (run->store != NULL)
            fprintf(stderr, "%" PRId64 " trials are kept in %s: the same command goes on there\n",
                    totals.trials - lost, tl_text_get(&path));
        else
            fprintf(stderr, "nothing is kept\n");
    }
    tl_text_free(&path);
    return lost;
}

tl_status tl_tune_run(const tl_tune_settings *settings, const char *const *paths, int count,
                      int64_t *lost, tl_diag *diag)
{
    subject models[TL_TUNE_MODELS] = { 0 };
    tl_tune_model tuned[TL_TUNE_MODELS] = { 0 };
    tune_run run = {
        .o = settings, .models = models, .tuned = tuned, .study.arena = tl_arena_create(0)
    };
    const char *kernel = tl_tune_is_kernel(paths[0]) ? paths[0] : NULL;
    run.model_count = kernel != NULL ? 0 : count;
    for (int i = 0; i < run.model_count; i++)
        models[i].path = paths[i];
    sched_getaffinity(0, sizeof run.cores, &run.cores);
    tl_status status = run_all(&run, kernel, diag);
    tl_measurer_destroy(run.measurer);
    *lost = close_store(&run);
    tl_tuning_destroy(run.tuning);
    tl_experts_unload(&run.experts);
    tl_cost_model_destroy(run.donors.ranking);
    for (int i = 0; i < run.model_count; i++) {
        tl_tunable_model_destroy(models[i].tunable);
        tl_session_close(&models[i].session);
    }
    tl_study_close(&run.study);
    tl_arena_destroy(run.study.arena);
    tl_text_free(&run.defects);
    return stop ? TL_INTERRUPTED : status;
}
