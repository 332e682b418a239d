/* driver/verb/verb_transfer.c: tilth transfer MODEL.onnx ..., tilth transfer KERNEL.tk: schedules of other kernels, without a
 * search. */
#include <signal.h>
#include <string.h>
#include "driver/verb/verbs.h"
#include "driver/tune/tune_run.h"

static tl_status check(const tl_tune_settings *o, const char *space, const char *const *paths,
                       int count, tl_diag *diag)
{
    TL_TRY(tl_session_check(&o->common, diag));
    if (o->donors.per_kernel < 0 || o->donors.per_kernel > 64)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--trials-per-kernel: %lld is not in 0..64",
                       (long long)o->donors.per_kernel);
    if (space != NULL && o->space == TL_SPACE_FULL && strcmp(space, "full") != 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--space: '%s' is neither full nor plain", space);
    if (o->space == TL_SPACE_PLAIN && o->common.database == NULL && !o->common.no_database)
        return tl_fail(
            diag, TL_BAD_ARGUMENT,
            "--space plain: its schedules are for studies; name a database for them (--db FILE), "
            "or --no-db");
    if (o->common.no_database && o->donors.donors == NULL && strcmp(o->donors.from, "starter") != 0)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "--no-db: then the donors need a file (--donors FILE), or --from starter");
    for (int i = 0; i < count && count > 1; i++)
        if (tl_tune_is_kernel(paths[i]))
            return tl_fail(diag, TL_BAD_ARGUMENT, "%s: a kernel goes by itself", paths[i]);
    if (count > 1 && o->common.shapes.count > 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--shape is for one model, not for %d", count);
    return TL_OK;
}

int tl_verb_transfer(int argc, char **argv)
{
    const char *space = NULL;
    tl_tune_settings o = {
        .is_transfer = true,
        .policy = tl_policy_find("random"), /* it is never asked */
        .donors = { .from = "pool", .or_starter = true, .rank = "analytic", .per_kernel = 3 },
    };
    bool class_only = false;
    const tl_option options[] = {
        { "--from", NULL, TL_OPTION_TEXT, "MODEL|auto|pool|starter",
          "whose schedules: those of one model's kernels, of the run of the tuner that promises "
          "most, of all (pool), or those that come with tilth (starter), which pool takes where "
          "nothing has won",
          &o.donors.from },
        { "--donors", NULL, TL_OPTION_TEXT, "FILE",
          "take them from such records (tilth db export) instead of the database",
          &o.donors.donors },
        { "--trials-per-kernel", "-k", TL_OPTION_INT, "K",
          "how many of each kernel are measured beside its default schedule; 0: the best guess is "
          "checked and not timed (3)",
          &o.donors.per_kernel },
        { "--rank", NULL, TL_OPTION_TEXT, "NAME|FILE",
          "which comes first: what a cost model likes best, by its name, default (what comes with "
          "tilth) or its file; or shape, the nearest (analytic)",
          &o.donors.rank },
        { "--others-only", NULL, TL_OPTION_FLAG, NULL,
          "as if nothing were known of the model's own kernels: for studies",
          &o.donors.others_only },
        { "--class-only", NULL, TL_OPTION_FLAG, NULL,
          "donors of the kernel's class alone, as in the paper, and not of its kin, whose sums are "
          "the same",
          &class_only },
        { "--trace-only", NULL, TL_OPTION_FLAG, NULL,
          "replay traces, no answers by name: for studies", &o.donors.only_trace },
        { "--tasks", NULL, TL_OPTION_TEXT, "PATTERN",
          "only kernels whose name or family matches, as in 'conv_*'", &o.filter.pattern },
        { "--top", NULL, TL_OPTION_INT, "N", "only the N heaviest kernels", &o.filter.top },
        { "--set", NULL, TL_OPTION_LIST, "NAME=N", "a dim of a kernel (default: its largest)",
          &o.sets },
        { "--space", NULL, TL_OPTION_TEXT, "NAME", "full or plain, as in tilth tune (full)",
          &space },
        { "--seed", NULL, TL_OPTION_INT, "S", "of inputs and of the ranking (0)", &o.seed },
        { "--check", NULL, TL_OPTION_REAL, "S",
          "seconds for comparing each model with the untuned one (10)", &o.check_s },
        { "--no-check", NULL, TL_OPTION_FLAG, NULL, "leave that out", &o.no_check },
        TL_SESSION_OPTIONS(o.common),
        { 0 },
    };
    const tl_verb_help help = {
        "transfer",
        "MODEL.onnx...|KERNEL.tk",
        "Gives kernels the schedules of other kernels of their class or kin, without a search.",
        "Kernels of one class are the same program but for their extents, those of one kin have "
        "the same sums; what was found\n"
        "for one, on whatever shape, model or machine, is tried on the others: its answers by "
        "name, the nearest that is on\n"
        "offer; or its trace, with factors adapted. Donors are ranked, the first few are built, "
        "checked and measured in turns\n"
        "with the default schedule, and each model is compared with the untuned one at the end, "
        "as tilth tune does it. It takes\n"
        "seconds where a search takes minutes; tilth tune goes on from there. With "
        "--trials-per-kernel 0 nothing is timed: the\n"
        "best guess for each kernel is checked, alone and in the model, and used from then on, "
        "faster or not.",
        "  tilth transfer resnet18.onnx\n"
        "  tilth transfer resnet18.onnx --from resnet50.onnx --trials-per-kernel 5\n"
        "  tilth transfer bert.onnx --from auto -k 0\n"
        "  tilth transfer mnasnet.onnx --donors colleague.jsonl",
        options,
        1,
        TL_TUNE_MODELS,
        NULL,
    };
    int count, code;
    const char *paths[TL_TUNE_MODELS];
    if (!tl_verb_begin(&help, argc, argv, paths, &count, &code))
        return code;

    tl_diag diag = { 0 };
    int64_t lost = 0;
    o.donors.kin = !class_only;
    signal(SIGXFSZ, SIG_IGN); /* a full disk is an error of its write */
    if (space != NULL)
        tl_space_kind_from_text(space, &o.space);
    o.cold = tl_tune_is_kernel(paths[0]) ? TL_COLD_NOTHING : TL_COLD_CONSTANTS;
    o.donors.seed = (uint64_t)o.seed;
    if (o.common.json)
        tl_print_env_json();
    tl_status status = check(&o, space, paths, count, &diag);
    if (status == TL_OK)
        status = tl_tune_run(&o, paths, count, &lost, &diag);
    if (status == TL_INTERRUPTED)
        return tl_status_exit_code(status);
    if (status != TL_OK)
        return tl_report_failure("transfer", status, &diag);
    return tl_status_exit_code(lost > 0 ? TL_IO : TL_OK);
}
