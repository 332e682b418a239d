/* driver/verb/verb_cost_model.c: tilth cost-model: models that guess how long a schedule takes: train, judge, update,
 * look at. */
#include <stdio.h>
#include <string.h>
#include "driver/cost/cost_run.h"
#include "driver/verb/verbs.h"

static const struct {
    const char *name;
    tl_status (*act)(const tl_cost_settings *settings, tl_diag *diag);
} actions[] = {
    { "train", tl_cost_train }, { "eval", tl_cost_eval },         { "update", tl_cost_update },
    { "info", tl_cost_info },   { "features", tl_cost_features },
};
enum { ACTIONS = sizeof actions / sizeof *actions };

static const char *action_word(int index)
{
    return index < ACTIONS ? actions[index].name : NULL;
}

static tl_status check(const tl_cost_settings *o, tl_diag *diag)
{
    const struct {
        const char *name;
        int64_t value, most;
    } limits[] = { { "--jobs", o->jobs, 256 },
                   { "--epochs", o->epochs, 100000 },
                   { "--batch", o->batch, 1000000 } };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].value < 0 || limits[i].value > limits[i].most)
            return tl_fail(diag, TL_BAD_ARGUMENT, "%s: %lld is not in 0..%lld", limits[i].name,
                           (long long)limits[i].value, (long long)limits[i].most);
    if (!(o->rate >= 0 && o->rate <= 1))
        return tl_fail(diag, TL_BAD_ARGUMENT, "--rate: %g is not in 0..1", o->rate);
    return TL_OK;
}

static tl_status run(const tl_cost_settings *o, const char *action, tl_diag *diag)
{
    TL_TRY(check(o, diag));
    for (int i = 0; i < ACTIONS; i++)
        if (strcmp(actions[i].name, action) == 0)
            return actions[i].act(o, diag);
    return tl_fail(diag, TL_BAD_ARGUMENT,
                   "'%s' is nothing it does: train, eval, update, info or features", action);
}

int tl_verb_cost_model(int argc, char **argv)
{
    enum { MOST_FILES = 256 };
    tl_cost_settings o = {
        .common.threads = 1, .test = 0.2, .check = 0.1, .seed = 1, .seeds = 1, .unmeasured = 64
    };
    const tl_option options[] = {
        { "--model", "-m", TL_OPTION_LIST, "FILE|TYPE",
          "which: a file, or TYPE[,SETTING=VALUE...][@tenset] (train: attention); eval: may be "
          "repeated",
          &o.models },
        { "--output", "-o", TL_OPTION_TEXT, "FILE", "train, update: where the model goes",
          &o.output },
        { "--split", NULL, TL_OPTION_TEXT, "within-task|task|model|machine",
          "what is held out, by digests of workloads (train: nothing; with --hold-out: model)",
          &o.split },
        { "--hold-out", NULL, TL_OPTION_LIST, "FILE.onnx|KERNEL.tk",
          "a network of which no workload is learned from, or a kernel; may be repeated",
          &o.held_out },
        { "--network", NULL, TL_OPTION_LIST, "FILE.onnx",
          "a network whose tasks count by their share of its time; those held out do; may be "
          "repeated",
          &o.networks },
        { "--machine-out", NULL, TL_OPTION_TEXT, "NAME",
          "the machine that is held out: of its name, target or profile a part (the last one)",
          &o.machine },
        { "--share", NULL, TL_OPTION_REAL, "X", "of programs or workloads to be judged on (0.2)",
          &o.test },
        { "--check", NULL, TL_OPTION_REAL, "X", "of the rest, to tell when to stop (0.1)",
          &o.check },
        { "--again", NULL, TL_OPTION_TEXT, "FILE",
          "eval: a second measurement of the same programs: the ceiling as it was measured",
          &o.again },
        { "--guard", NULL, TL_OPTION_LIST, "FILE",
          "update: data on which the model must not become worse; may be repeated", &o.guards },
        { "--force", NULL, TL_OPTION_FLAG, NULL, "update: keep what came of it in any case",
          &o.force },
        { "--without", NULL, TL_OPTION_TEXT, "WHAT,...",
          "for ablations: rows, decisions, workload, machine", &o.without },
        { "--epochs", NULL, TL_OPTION_INT, "N", "passes over the data (the model's own number)",
          &o.epochs },
        { "--batch", NULL, TL_OPTION_INT, "N", "programs a step", &o.batch },
        { "--rate", NULL, TL_OPTION_REAL, "X", "of learning", &o.rate },
        { "--seed", NULL, TL_OPTION_INT, "S", "of weights, splits and pools (1)", &o.seed },
        { "--seeds", NULL, TL_OPTION_INT, "N", "eval: train each type so often, from --seed on (1)",
          &o.seeds },
        { "--teacher", NULL, TL_OPTION_TEXT, "FILE",
          "train: a model that says what nobody measured: of --unmeasured points of each task",
          &o.teacher },
        { "--unmeasured", NULL, TL_OPTION_INT, "N", "train: with a teacher, so many points (64)",
          &o.unmeasured },
        { "--checkpoint", NULL, TL_OPTION_TEXT, "FILE",
          "train: where an interrupted training goes on from (OUTPUT.checkpoint)", &o.checkpoint },
        { "--plot", NULL, TL_OPTION_TEXT, "FILE.svg",
          "eval: draw expected deviations against those that were made", &o.plot },
        { "--jobs", "-j", TL_OPTION_INT, "N", "threads that compute rows (all cores)", &o.jobs },
        { "--kind", NULL, TL_OPTION_TEXT, "tilth|tenset|tokens",
          "features: which: ours, TenSet's 164, or tokens of decisions, workload, machine (tilth)",
          &o.kind },
        { "--space", NULL, TL_OPTION_TEXT, "full|plain", "features: of which space (full)",
          &o.space },
        { "--answers", NULL, TL_OPTION_TEXT, "NAME=N ...",
          "features: decisions that are taken otherwise than by default", &o.answers },
        { "--lowering", NULL, TL_OPTION_TEXT, "NAME",
          "features: of that lowering (the one that an untuned compile takes)", &o.lowering },
        { "--kernel", NULL, TL_OPTION_TEXT, "PATTERN", "features: of kernels named like that only",
          &o.pattern },
        { "--set", NULL, TL_OPTION_LIST, "DIM=N", "features: a dim of a kernel; may be repeated",
          &o.sets },
        { "--rates", NULL, TL_OPTION_FLAG, NULL,
          "features: how many rows a second of a core each kind computes", &o.rates },
        TL_SESSION_OPTIONS(o.common),
        { 0 },
    };
    const tl_verb_help help = {
        "cost-model",
        "ACTION [FILE ...]",
        "Models that guess how long a schedule takes, learned from measured points.",
        "train     a new model from data sets or databases (tilth dataset); interrupted, the same "
        "command goes on\n"
        "eval      judges models on what they did not see: pairs in the right order, the best of "
        "those they take, ranks,\n"
        "          deviations; each beside what measuring once more would get; -v: by families of "
        "kernels. Types are trained\n"
        "          first, on the other side; --machine: as if all of it had run on a machine of "
        "that "
        "profile\n"
        "update    a model's FILE learns from new data, and stays what it was unless that made it "
        "better\n"
        "info      what is in a model's file; without one, the types that there are\n"
        "features  what a model sees of a kernel's or a model's schedules\n\n"
        "Splits are by digests of workloads, so that nothing leaks, on whatever machine it was "
        "measured. tuner/COSTMODEL.md has\n"
        "the definitions.",
        "  tilth cost-model train points.tld -o cost.tlm\n"
        "  tilth cost-model train points.tld -o cost.tlm --hold-out resnet50.onnx --hold-out "
        "gpt2.onnx\n"
        "  tilth cost-model eval points.tld --split task -m attention -m mlp@tenset -m trees -m "
        "analytic --seeds 3\n"
        "  tilth cost-model eval more.tld -m cost.tlm --plot calibration.svg\n"
        "  tilth cost-model update cost.tlm new.db --guard points.tld\n"
        "  tilth cost-model features gemm.tk --kind tenset",
        options,
        1,
        MOST_FILES,
        action_word,
    };
    int positional_count, code;
    const char *positional[MOST_FILES];
    if (!tl_verb_begin(&help, argc, argv, positional, &positional_count, &code))
        return code;
    tl_diag diag = { 0 };
    o.files = positional + 1;
    o.file_count = positional_count - 1;
    tl_status status = run(&o, positional[0], &diag);
    return status != TL_OK ? tl_report_failure("cost-model", status, &diag) : 0;
}
