/* driver/verb_tune.c: tilth tune MODEL.onnx, tilth tune KERNEL.tk: finds faster schedules and keeps them. */
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "driver/tune_forms.h"
#include "driver/tune_report.h"
#include "driver/tuned.h"
#include "runtime/base/file.h"
#include "tuner/environment.h"

#define DEFAULT_BUDGET_S 120
#define FIRST_LINE_S     5
/* of seconds and trials: for kernels of other forms of the model; and of that, at most, for their default schedules */
#define SHARE_FORMS      0.1
#define SHARE_FIRST      0.5
/* of comparing the tuned model with the untuned one: large models make few runs in ten seconds */
#define SHARE_CHECK      0.05

typedef struct {
    tl_session_options common;
    tl_tune_filter filter;
    tl_text_list sets;
    const char *budget, *policy, *cold, *record, *replay;
    int64_t trials, trials_per_task, batch, seed;
    double check_s;
    bool no_check;
} tune_options;

/* All that a run holds. */
typedef struct {
    const tune_options *o;
    const char *path;
    bool is_kernel;
    tl_session session;
    tl_study study;
    tl_model_options model;
    tl_target target;
    int threads;
    tl_tune_list list;
    tl_tune_forms forms;
    tl_records *store;
    tl_measurer *measurer;
    tl_tuning *tuning;
    int64_t form_trials; /* what the other forms' kernels got, besides, */
    double form_s;       /* and how long that took */
    tl_text defects;
    char session_name[TL_SESSION_NAME];
    double budget_s;
    tl_cold cold;
    cpu_set_t cores; /* as they were: the measurer keeps one for itself */
} tune_run;

static volatile sig_atomic_t stop;

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* "90", "90s", "5m", "1h" */
static tl_status parse_budget(const char *text, double *seconds, tl_diag *diag)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = { { "", 1 }, { "s", 1 }, { "m", 60 }, { "h", 3600 } };
    char *end;
    double number = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (end != text && strcmp(end, units[i].unit) == 0 && number > 0 &&
            number * units[i].seconds <= 1e7) {
            *seconds = number * units[i].seconds;
            return TL_OK;
        }
    return tl_fail(diag, TL_BAD_ARGUMENT,
                   "--budget: '%s' is no time: a positive number and s, m or h, as in 60s or 5m",
                   text);
}

static tl_status check_options(const tune_options *o, tune_run *run, tl_diag *diag)
{
    static const struct {
        const char *name;
        size_t at;
    } counts[] = { { "--trials", offsetof(tune_options, trials) },
                   { "--trials-per-task", offsetof(tune_options, trials_per_task) },
                   { "--batch", offsetof(tune_options, batch) },
                   { "--top", offsetof(tune_options, filter.top) } };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int64_t value = *(const int64_t *)(const void *)((const char *)o + counts[i].at);
        if (value < 0 || value > 1000000000)
            return tl_fail(diag, TL_BAD_ARGUMENT, "%s: %" PRId64 " is not in 0..1000000000",
                           counts[i].name, value);
    }
    if (tl_policy_find(o->policy) == NULL) {
        tl_text names = { 0 };
        for (int i = 0; i < tl_policy_count; i++)
            tl_text_format(&names, "%s%s", i ? ", " : "", tl_policies[i]->name);
        tl_fail(diag, TL_BAD_ARGUMENT, "--policy: '%s' is none: %s", o->policy,
                tl_text_get(&names));
        tl_text_free(&names);
        return TL_BAD_ARGUMENT;
    }
    run->cold = run->is_kernel ? TL_COLD_NOTHING : TL_COLD_CONSTANTS;
    if (o->cold != NULL && !tl_cold_from_text(o->cold, &run->cold))
        return tl_fail(diag, TL_BAD_ARGUMENT, "--cold: '%s' is neither nothing, all nor constants",
                       o->cold);
    if (o->record != NULL && o->replay != NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--record and --replay: one of them");
    if (run->is_kernel && (o->filter.pattern != NULL || o->filter.top > 0))
        return tl_fail(diag, TL_BAD_ARGUMENT, "--tasks and --top are for models");
    if (run->is_kernel && o->common.shapes.count > 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--shape is for models; kernels take --set");
    if (!run->is_kernel && o->sets.count > 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--set is for kernels (.tk); models take --shape");
    if (o->budget != NULL)
        return parse_budget(o->budget, &run->budget_s, diag);
    return TL_OK;
}

/* ---- what is tuned ---- */

static tl_status open_kernel(tune_run *run, tl_diag *diag)
{
    const tune_options *o = run->o;
    if (o->common.numerics != NULL && strcmp(o->common.numerics, "relaxed") != 0) {
        if (strcmp(o->common.numerics, "strict") != 0)
            return tl_fail(diag, TL_BAD_ARGUMENT, "--numerics: '%s' is neither relaxed nor strict",
                           o->common.numerics);
        run->model.numerics = TL_NUMERICS_STRICT;
    }
    tl_study_options study = { .kernel = run->path,
                               .target = o->common.target,
                               .threads = o->common.threads,
                               .sets = o->sets };
    TL_TRY(tl_study_open(&run->study, &study, diag));
    tl_tune_tasks_of_kernel(&run->study, &run->list);
    run->target = run->study.target;
    run->threads = run->study.threads;
    return TL_OK;
}

/* Other forms are compared in the model, at the end, with the kernels of the whole. */
static bool wants_forms(const tune_options *o)
{
    return !o->no_check && !o->common.no_database && o->filter.pattern == NULL &&
           o->filter.top == 0;
}

static tl_status open_model(tune_run *run, tl_diag *diag)
{
    tl_session_options untuned = run->o->common;
    tl_model_options extra = { .inspect_only = true, .no_cache = true, .no_database = true };
    untuned.database = NULL;
    TL_TRY(tl_session_open(&run->session, run->path, &untuned, &extra, diag));
    TL_TRY(tl_session_model_options(&run->session, &run->o->common, &run->model, diag));
    run->target = *tl_model_get_facts(run->session.model)->target;
    run->threads = run->session.threads;
    TL_TRY(tl_tune_tasks_of_model(&run->session, run->model.numerics, &run->o->filter, &run->list,
                                  diag));
    if (!wants_forms(run->o))
        return TL_OK;
    return tl_tune_forms_find(&run->session, run->model.numerics, &run->list, &run->forms, diag);
}

/* ---- records ---- */

static tl_status open_store(tune_run *run, tl_diag *diag)
{
    const tune_options *o = run->o;
    if (o->common.no_database || o->replay != NULL)
        return TL_OK;
    TL_TRY(tl_records_open_default(o->common.database, TL_RECORDS_CREATE | TL_RECORDS_REPAIR,
                                   &run->store, diag));
    if (*tl_records_repaired(run->store) && !tl_quiet)
        fprintf(stderr, "tilth tune: note: %s\n", tl_records_repaired(run->store));
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

static tl_status make_measurer(tune_run *run, tl_diag *diag)
{
    const tune_options *o = run->o;
    if (o->replay != NULL)
        return tl_replayer_create(o->replay, &run->measurer, diag);
    tl_measure_options options = { .worker = "/proc/self/exe",
                                   .target = &run->target,
                                   .threads = run->threads,
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

static tl_status ask_known(tune_run *run, tl_arena *arena, tl_tune_options *options, tl_diag *diag)
{
    const tune_options *o = run->o;
    if (o->replay != NULL)
        return tl_tune_known_of_recording(o->replay, arena, &options->known, &options->known_count,
                                          diag);
    const bool has_forms = run->forms.count > 0;
    tl_tune_known(run->store, has_forms ? run->forms.tasks : run->list.tasks,
                  has_forms ? run->forms.task_count : run->list.count, arena, &options->known,
                  &options->known_count);
    return o->record != NULL ? note_known(run, options, diag) : TL_OK;
}

/* Measures kernels that only other forms have, with a part of what the own kernels may cost. */
static tl_status tune_some(tune_run *run, tl_tune_report *report, tl_tune_options *options,
                           const tl_tune_task *tasks, int count, tl_diag *diag)
{
    tl_tuning *tuning;
    tl_tune_totals totals;
    options->starts_in_order = true;
    report->next_line_s = FIRST_LINE_S;
    TL_TRY(tl_tuning_create(options, tasks, count, &tuning, diag));
    tl_status status = tl_tuning_run(tuning, diag);
    tl_tune_forms_learn(&run->forms, tuning);
    tl_tuning_totals(tuning, &totals);
    run->form_trials += totals.trials;
    run->form_s += totals.elapsed_s;
    tl_tuning_destroy(tuning);
    return status == TL_BUDGET ? TL_OK
                               : status; /* no form's kernel was right: none is within reach */
}

static tl_status tune_forms(tune_run *run, tl_arena *arena, tl_tune_report *report,
                            const tl_tune_options *all, int64_t trials, tl_diag *diag)
{
    tl_tune_forms *forms = &run->forms;
    tl_tune_task *tasks = TL_NEW_ARRAY(arena, tl_tune_task, forms->task_count);
    tl_tune_options options = *all;
    int most = (int)fmin((double)forms->task_count, SHARE_FIRST * (double)trials);
    report->stage = "other forms: ";
    tl_tune_forms_learn(forms, run->tuning);
    tl_tune_forms_recall(forms, all);
    int count = tl_tune_forms_unseen(arena, forms, &run->target, most, tasks);
    options.trials_per_task = 1;
    options.trials = trials;
    options.budget_s = SHARE_FIRST * all->budget_s;
    if (count > 0)
        TL_TRY(tune_some(run, report, &options, tasks, count, diag));
    count = tl_tune_forms_within(forms, tasks);
    options.trials_per_task = all->trials_per_task;
    options.trials = trials - run->form_trials;
    if (all->budget_s > 0)
        options.budget_s = fmax(all->budget_s - run->form_s, 1e-3);
    if (count > 0 && options.trials > 0 && !stop)
        TL_TRY(tune_some(run, report, &options, tasks, count, diag));
    return TL_OK;
}

static tl_status tune(tune_run *run, tl_arena *arena, tl_diag *diag)
{
    const tune_options *o = run->o;
    const double share = run->forms.count > 0 ? SHARE_FORMS : 0;
    tl_tune_report report = { .list = &run->list,
                              .policy = o->policy,
                              .json = o->common.json,
                              .stage = "",
                              .next_line_s = FIRST_LINE_S };
    tl_tune_totals totals;
    tl_session_name(o->policy, run->session_name);
    TL_TRY(make_measurer(run, diag));
    report.measurer = run->measurer;
    bool is_limited = o->budget != NULL || o->trials > 0 || o->trials_per_task > 0;
    double budget_s = is_limited ? run->budget_s : DEFAULT_BUDGET_S;
    tl_tune_options options = {
        .policy = tl_policy_find(o->policy),
        .measurer = run->measurer,
        .store = run->store,
        .target = &run->target,
        .threads = run->threads,
        .cold = run->cold,
        .numerics = tl_numerics_text(run->model.numerics),
        .seed = (uint64_t)o->seed,
        .budget_s = (1 - share) * budget_s,
        .ends_at_rest = !is_limited,
        .trials = o->trials - (int64_t)(share * (double)o->trials),
        .trials_per_task = o->trials_per_task,
        .batch = (int)o->batch,
        .session = run->session_name,
        .stop = &stop,
        .listen = tl_tune_report_event,
        .user = &report,
    };
    TL_TRY(ask_known(run, arena, &options, diag));
    TL_TRY(tl_tuning_create(&options, run->list.tasks, run->list.count, &run->tuning, diag));
    tl_status status = tl_tuning_run(run->tuning, diag);
    tl_tuning_totals(run->tuning, &totals);
    options.budget_s = share * budget_s;
    if (status == TL_OK && run->forms.count > 0 && !stop)
        status = tune_forms(run, arena, &report, &options,
                            (int64_t)(share / (1 - share) * (double)totals.trials), diag);
    tl_tune_report_print(&report, run->tuning);
    if (status == TL_OK && run->forms.count > 0)
        tl_tune_report_forms(&report, &run->forms, run->form_trials);
    return status;
}

static void show_check(void *user, const char *stage, double seconds_left)
{
    (void)user;
    tl_progress("%s: %.0f s left", stage, seconds_left);
}

static void print_verdict(const tl_tuned_verdict *v, bool json)
{
    if (json) {
        printf("{\"record\":\"verdict\",\"kept\":%s,\"untuned_ns\":%.1f,\"tuned_ns\":%.1f,"
               "\"ratio\":%.4f,\"ratio_low\":%.4f,\"ratio_high\":%.4f,\"part_ratio\":%.4f,"
               "\"pairs\":%d,"
               "\"max_error\":%.3g,\"form\":",
               v->kept ? "true" : "false", v->untuned_ns, v->tuned_ns, v->ratio, v->ratio_low,
               v->ratio_high, v->part.median, v->pairs, v->max_error);
        tl_print_json_text(v->form);
        printf(",\"forms_tried\":%d,\"forms_kept\":%d,\"form_ratio\":%.4f,\"workloads_kept\":%d,"
               "\"workloads_fallen_back\":%d}\n",
               v->forms_tried, v->forms_kept, v->form_ratio.median, v->kept_count,
               v->fallback_count);
        return;
    }
    for (int i = 0; i < v->workload_count; i++)
        if (v->workloads[i].fate != TL_TUNED_KEPT && tl_verbose)
            printf("default   %s: %s\n", v->workloads[i].kernel,
                   tl_tuned_fate_text(v->workloads[i].fate));
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
               v->fallback_count);
}

/* Whether what was found makes the whole model faster is found out in the model, with the machine to itself. */
static tl_status check_model(tune_run *run, tl_diag *diag)
{
    tl_tuned_verdict verdict;
    double seconds = fmax(TL_TUNED_SECONDS, SHARE_CHECK * run->budget_s);
    tl_tuned_options options = { .seconds = run->o->check_s > 0 ? run->o->check_s : seconds,
                                 .seed = (uint64_t)run->o->seed,
                                 .session = run->session_name,
                                 .stop = &stop,
                                 .progress = show_check };
    sched_setaffinity(0, sizeof run->cores, &run->cores);
    tl_status status = tl_tuned_settle(run->session.arena, run->path, &run->model, run->store,
                                       &options, &verdict, diag);
    tl_progress_done();
    if (status == TL_OK)
        print_verdict(&verdict, run->o->common.json);
    return status;
}

static tl_status run_all(tune_run *run, tl_diag *diag)
{
    TL_TRY(check_options(run->o, run, diag));
    TL_TRY(run->is_kernel ? open_kernel(run, diag) : open_model(run, diag));
    TL_TRY(open_store(run, diag));
    tl_interrupt_catch(&stop);
    tl_status status = tune(run, run->is_kernel ? run->study.arena : run->session.arena, diag);
    tl_measurer_destroy(run->measurer); /* its workers would disturb what comes */
    run->measurer = NULL;
    bool is_checked = !run->is_kernel && run->store != NULL && !run->o->no_check;
    if (status == TL_OK && is_checked && !stop)
        status = check_model(run, diag);
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
    totals.trials += run->form_trials;
    if (run->store != NULL)
        tl_text_add(&path, tl_records_path(run->store));
    tl_records_close(run->store, &lost);
    if (lost > 0)
        fprintf(stderr, "tilth tune: %" PRId64 " trials could not be written to %s\n", lost,
                tl_text_get(&path));
    if (stop && !tl_quiet) {
        tl_progress_done();
        fprintf(stderr, "tilth tune: interrupted; ");
        if (run->store != NULL)
            fprintf(stderr, "%" PRId64 " trials are kept in %s: the same command goes on there\n",
                    totals.trials - lost, tl_text_get(&path));
        else
            fprintf(stderr, "nothing is kept\n");
    }
    tl_text_free(&path);
    return lost;
}

int tl_verb_tune(int argc, char **argv)
{
    tune_options o = { .policy = "auto" };
    const tl_option options[] = {
        { "--budget", "-b", TL_OPTION_TEXT, "TIME", "how long to search: 60s, 5m, 1h (2m)",
          &o.budget },
        { "--trials", "-n", TL_OPTION_INT, "N", "how many candidates to measure, of all kernels",
          &o.trials },
        { "--trials-per-task", NULL, TL_OPTION_INT, "N", "and of each kernel at most",
          &o.trials_per_task },
        { "--policy", NULL, TL_OPTION_TEXT, "NAME", "how to search (auto)", &o.policy },
        { "--batch", NULL, TL_OPTION_INT, "N",
          "candidates proposed at once (what the policy likes)", &o.batch },
        { "--tasks", NULL, TL_OPTION_TEXT, "PATTERN",
          "only kernels whose name or family matches, as in 'conv_*'", &o.filter.pattern },
        { "--top", NULL, TL_OPTION_INT, "N", "only the N heaviest kernels", &o.filter.top },
        { "--set", NULL, TL_OPTION_LIST, "NAME=N", "a dim of a kernel (default: its largest)",
          &o.sets },
        { "--seed", NULL, TL_OPTION_INT, "S", "of the search and of inputs (0)", &o.seed },
        { "--cold", NULL, TL_OPTION_TEXT, "WHAT",
          "what is in no cache when a kernel is timed: nothing, all, or constants, as far as a run "
          "of the model evicts them (models: constants; kernels: nothing)",
          &o.cold },
        { "--check", NULL, TL_OPTION_REAL, "S",
          "seconds for comparing the tuned model with the untuned one (a twentieth of the budget, "
          "at least 10)",
          &o.check_s },
        { "--no-check", NULL, TL_OPTION_FLAG, NULL, "leave that out", &o.no_check },
        { "--record", NULL, TL_OPTION_TEXT, "FILE", "write every measurement down", &o.record },
        { "--replay", NULL, TL_OPTION_TEXT, "FILE",
          "take measurements from such a file: the same decisions again, nothing is timed or kept",
          &o.replay },
        TL_SESSION_OPTIONS(o.common),
        { 0 },
    };
    const tl_verb_help help = {
        "tune",
        "MODEL.onnx|KERNEL.tk",
        "Searches for faster schedules of a model's kernels, or of one kernel, and keeps them.",
        "Candidates are built in processes of their own, compared with the naive kernel on random "
        "and adversarial inputs,\n"
        "and timed in turns with the best so far. Every trial is kept in the database (--db) the "
        "moment it is measured:\n"
        "whenever a run ends, the next one goes on from there. run, bench and compile take the "
        "best schedules from it.\n"
        "A tenth of the budget goes to kernels that the model would have if it were cut or laid "
        "out otherwise.\n"
        "At the end the tuned model is compared with the untuned one, runs in turn; a schedule "
        "that is not faster inside\n"
        "the model falls back to the default. Without a budget it ends after two minutes, or when "
        "nothing gains any more.\n"
        "Wrong or crashing candidates leave a reproducer for tilth schedule in defects/ beside the "
        "database.",
        "  tilth tune resnet18.onnx --budget 60s --threads 1\n"
        "  tilth tune bert.onnx --budget 10m --tasks 'gemm*'\n"
        "  tilth tune gemm.tk --trials 200 --policy random --seed 1\n"
        "  tilth tune gemm.tk --record trials.jsonl; tilth tune gemm.tk --replay trials.jsonl",
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
    tune_run run = { .o = &o, .path = positional[0], .is_kernel = ends_with(positional[0], ".tk") };
    signal(SIGXFSZ, SIG_IGN); /* a full disk is an error of its write */
    sched_getaffinity(0, sizeof run.cores, &run.cores);
    tl_status status = TL_OK;
    run.study.arena = tl_arena_create(0);
    if (run.study.arena == NULL || TL_ARENA_GUARD(run.study.arena))
        status = tl_fail(&diag, TL_NO_MEMORY, "out of memory");
    if (status == TL_OK && o.common.json)
        tl_print_env_json();
    if (status == TL_OK)
        status = run_all(&run, &diag);
    tl_measurer_destroy(run.measurer);
    int64_t lost = close_store(&run);
    if (stop)
        code = tl_status_exit_code(TL_INTERRUPTED);
    else if (status != TL_OK)
        code = tl_report_failure("tune", status, &diag);
    else if (lost > 0)
        code = tl_status_exit_code(TL_IO);
    tl_tuning_destroy(run.tuning);
    tl_session_close(&run.session);
    tl_study_close(&run.study);
    tl_arena_destroy(run.study.arena);
    tl_text_free(&run.defects);
    return code;
}
