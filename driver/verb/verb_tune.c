/* driver/verb/verb_tune.c: tilth tune MODEL.onnx ..., tilth tune KERNEL.tk: finds faster schedules and keeps them. */
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "driver/verb/verbs.h"
#include "driver/tune/tune_run.h"

/* What still has to be read. */
typedef struct {
    const char *budget, *policy, *cold, *space;
} words;

static tl_status check_counts(const tl_tune_settings *o, tl_diag *diag)
{
    static const struct {
        const char *name;
        size_t at;
    } counts[] = { { "--trials", offsetof(tl_tune_settings, trials) },
                   { "--trials-per-task", offsetof(tl_tune_settings, trials_per_task) },
                   { "--batch", offsetof(tl_tune_settings, batch) },
                   { "--transfer", offsetof(tl_tune_settings, donors.per_kernel) },
                   { "--top", offsetof(tl_tune_settings, filter.top) } };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int64_t value = *(const int64_t *)(const void *)((const char *)o + counts[i].at);
        if (value < 0 || value > 1000000000)
            return tl_fail(diag, TL_BAD_ARGUMENT, "%s: %" PRId64 " is not in 0..1000000000",
                           counts[i].name, value);
    }
    return TL_OK;
}

/* What does not go with what is tuned. */
static tl_status check_subjects(const tl_tune_settings *o, const char *const *paths, int count,
                                tl_diag *diag)
{
    bool is_kernel = tl_tune_is_kernel(paths[0]);
    TL_TRY(tl_session_check(&o->common, diag));
    for (int i = 0; i < count; i++)
        if (count > 1 && tl_tune_is_kernel(paths[i]))
            return tl_fail(diag, TL_BAD_ARGUMENT, "%s: a kernel is tuned by itself", paths[i]);
    if (o->record != NULL && o->replay != NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--record and --replay: one of them");
    if (is_kernel && (o->filter.pattern != NULL || o->filter.top > 0))
        return tl_fail(diag, TL_BAD_ARGUMENT, "--tasks and --top are for models");
    if (is_kernel && o->common.shapes.count > 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--shape is for models; kernels take --set");
    if (!is_kernel && o->sets.count > 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--set is for kernels (.tk); models take --shape");
    if (count > 1 && o->common.shapes.count > 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--shape is for one model, not for %d", count);
    return TL_OK;
}

static tl_status read_words(const words *w, bool is_kernel, tl_tune_settings *o, tl_diag *diag)
{
    o->policy = tl_policy_find(w->policy);
    if (o->policy == NULL) {
        tl_text names = { 0 };
        for (int i = 0; i < tl_policy_count; i++)
            tl_text_format(&names, "%s%s", i ? ", " : "", tl_policies[i]->name);
        tl_fail(diag, TL_BAD_ARGUMENT, "--policy: '%s' is none: %s", w->policy,
                tl_text_get(&names));
        tl_text_free(&names);
        return TL_BAD_ARGUMENT;
    }
    if (w->space != NULL && !tl_space_kind_from_text(w->space, &o->space))
        return tl_fail(diag, TL_BAD_ARGUMENT, "--space: '%s' is neither full nor plain", w->space);
    if (o->space == TL_SPACE_PLAIN && o->common.database == NULL && !o->common.no_database)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "--space plain: its schedules are for studies; name a database for them "
                       "(--db FILE), or --no-db");
    o->cold = is_kernel ? TL_COLD_NOTHING : TL_COLD_CONSTANTS;
    if (w->cold != NULL && !tl_cold_from_text(w->cold, &o->cold))
        return tl_fail(diag, TL_BAD_ARGUMENT, "--cold: '%s' is neither nothing, all nor constants",
                       w->cold);
    return w->budget != NULL ? tl_duration_parse("--budget", w->budget, &o->budget_s, diag) : TL_OK;
}

int tl_verb_tune(int argc, char **argv)
{
    words w = { .policy = "auto" };
    tl_tune_settings o = { .donors = { .from = "pool", .rank = "analytic", .per_kernel = 2 } };
    const tl_option options[] = {
        { "--budget", "-b", TL_OPTION_TEXT, "TIME", "how long to search: 60s, 5m, 1h (2m)",
          &w.budget },
        { "--trials", "-n", TL_OPTION_INT, "N", "how many candidates to measure, of all kernels",
          &o.trials },
        { "--trials-per-task", NULL, TL_OPTION_INT, "N", "and of each kernel at most",
          &o.trials_per_task },
        { "--policy", NULL, TL_OPTION_TEXT, "NAME", "how to search, as above (auto)", &w.policy },
        { "--space", NULL, TL_OPTION_TEXT, "NAME", "which schedules there are, as above (full)",
          &w.space },
        { "--batch", NULL, TL_OPTION_INT, "N",
          "candidates proposed at once (what the policy likes)", &o.batch },
        { "--tasks", NULL, TL_OPTION_TEXT, "PATTERN",
          "only kernels whose name or family matches, as in 'conv_*'", &o.filter.pattern },
        { "--top", NULL, TL_OPTION_INT, "N", "only the N heaviest kernels", &o.filter.top },
        { "--set", NULL, TL_OPTION_LIST, "NAME=N", "a dim of a kernel (default: its largest)",
          &o.sets },
        { "--transfer", NULL, TL_OPTION_INT, "K",
          "begin with so many schedules of other kernels of the same class, of each kernel (2)",
          &o.donors.per_kernel },
        { "--cost-model", NULL, TL_OPTION_LIST, "FILE",
          "a trained model (tilth cost-model train) whose expectations the search begins with and "
          "believes as far as they are right; up to 4; none: without (default: the two that come "
          "with tilth)",
          &o.cost_models },
        { "--candidate", NULL, TL_OPTION_REAL, "S",
          "seconds in which one must be checked and timed, else it counts for nothing (10)",
          &o.candidate_s },
        { "--seed", NULL, TL_OPTION_INT, "S", "of the search and of inputs (0)", &o.seed },
        { "--cold", NULL, TL_OPTION_TEXT, "WHAT",
          "what is in no cache when a kernel is timed: nothing, all, or constants, as far as a run "
          "of the model evicts them (models: constants; kernels: nothing)",
          &w.cold },
        { "--check", NULL, TL_OPTION_REAL, "S",
          "seconds for comparing each tuned model with the untuned one (a twentieth of the budget, "
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
        "MODEL.onnx...|KERNEL.tk",
        "Searches for faster schedules of the kernels of models, or of one kernel, and keeps them.",
        "Candidates are built in processes of their own, compared with the naive kernel on random "
        "and adversarial inputs,\n"
        "and timed in turns with the best so far. Every trial is kept in the database (--db) the "
        "moment it is measured:\n"
        "whenever a run ends, the next one goes on from there. run, bench and compile take the "
        "best schedules from it.\n"
        "Several models share the budget: the next trials go to the kernel that promises most for "
        "the sum of their latencies.\n"
        "A tenth of the budget goes to kernels that the model would have if it were cut or laid "
        "out otherwise.\n"
        "At the end each tuned model is compared with the untuned one, runs in turn; a schedule "
        "that is not faster inside\n"
        "the model falls back to the default. Without a budget it ends after two minutes, or when "
        "nothing gains any more.\n"
        "Percent of peak counts the work of the direct lowering: one that multiplies less may "
        "exceed 100 %.\n"
        "Wrong or crashing candidates leave a reproducer for tilth schedule in defects/ beside the "
        "database.\n"
        "Policies, the default one first:"
#define POLICY(name, words) "\n  " #name ": " words
#include "tuner/search/policies.def"
#undef POLICY
        "\nSpaces:"
#define SPACE(name, text, schedule, mark, revision, words) "\n  " text ": " words
#include "tuner/search/spaces.def"
#undef SPACE
        ,
        "  tilth tune resnet18.onnx --budget 60s --threads 1\n"
        "  tilth tune resnet18.onnx resnet50.onnx --budget 10m\n"
        "  tilth tune bert.onnx --budget 10m --tasks 'gemm*'\n"
        "  tilth tune gemm.tk --trials 200 --policy random --seed 1\n"
        "  tilth tune gemm.tk --record trials.jsonl; tilth tune gemm.tk --replay trials.jsonl",
        options,
        1,
        TL_TUNE_MODELS,
        NULL,
    };
    int positional_count, code;
    const char *paths[TL_TUNE_MODELS];
    if (!tl_verb_begin(&help, argc, argv, paths, &positional_count, &code))
        return code;

    tl_diag diag = { 0 };
    int64_t lost = 0;
    signal(SIGXFSZ, SIG_IGN); /* a full disk is an error of its write */
    if (o.common.json)
        tl_print_env_json();
    tl_status status = check_counts(&o, &diag);
    if (status == TL_OK)
        status = check_subjects(&o, paths, positional_count, &diag);
    if (status == TL_OK)
        status = read_words(&w, tl_tune_is_kernel(paths[0]), &o, &diag);
    if (status == TL_OK)
        status = tl_tune_run(&o, paths, positional_count, &lost, &diag);
    if (status == TL_INTERRUPTED)
        return tl_status_exit_code(status);
    if (status != TL_OK)
        return tl_report_failure("tune", status, &diag);
    return tl_status_exit_code(lost > 0 ? TL_IO : TL_OK);
}
