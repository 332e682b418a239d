/* driver/verb/verb_bench.c: tilth bench MODEL.onnx, tilth bench KERNEL.tk [TRACE.tr]: how fast is it, what takes the time, and
 * has it changed? */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "driver/verb/verbs.h"
#include "driver/bench/bench.h"
#include "runtime/base/file.h"
#include "runtime/base/clock.h"

typedef struct {
    tl_session_options common;
    tl_text_list given, dims;
    const char *data, *baseline, *trace, *history, *commit;
    int64_t seed, top;
    double seconds, threshold;
} bench_options;

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* What would fail only after the measuring is asked for before it. */
static tl_status check_files(const bench_options *o, tl_diag *diag)
{
    tl_file *file;
    if (o->seconds > 3600)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--seconds: %g is more than an hour", o->seconds);
    if (o->top < -1 || o->top > 1000000)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--top: %lld is not in 0..1000000",
                       (long long)o->top);
    if (o->commit != NULL && o->history == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--commit goes with --history");
    if (o->trace != NULL) {
        TL_TRY(tl_file_create(o->trace, &file, diag));
        tl_file_abandon(file);
    }
    struct stat info;
    if (o->history != NULL && stat(o->history, &info) == 0 && !S_ISREG(info.st_mode))
        return tl_fail(diag, TL_BAD_ARGUMENT, "--history %s: %s", o->history,
                       S_ISDIR(info.st_mode) ? strerror(EISDIR) : "not a regular file");
    int fd =
        o->history != NULL ? open(o->history, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (o->history != NULL && fd < 0)
        return tl_fail(diag, TL_IO, "--history %s: %s", o->history, strerror(errno));
    if (fd >= 0)
        close(fd);
    return TL_OK;
}

/* Measures and reports; *regressed when a baseline says so. */
static tl_status bench(tl_session *session, const tl_subject *subject, const bench_options *o,
                       bool *regressed, tl_diag *diag)
{
    tl_runner *runner = NULL;
    tl_bindings bindings = { 0 };
    tl_timing t;
    tl_baseline *baseline = NULL;
    bool json = o->common.json;
    tl_status status = tl_session_bindings(session, subject->executable, NULL, &o->given, o->data,
                                           o->seed, &bindings, diag);
    if (status == TL_OK)
        status =
            tl_runner_create(subject->executable, session->pool, session->threads, &runner, diag);
    if (status == TL_OK && o->baseline != NULL)
        status = tl_baseline_read(o->baseline, subject, runner, &baseline, diag);
    if (status == TL_OK)
        status = tl_bench_measure(session, subject, runner, &bindings, o->seconds, &t, diag);
    if (status == TL_OK && json)
        tl_bench_print_json(session, subject, runner, &t);
    else if (status == TL_OK)
        tl_bench_print(session, subject, runner, &t, o->top < 0 ? 30 : (int)o->top);
    if (status == TL_OK && o->trace != NULL)
        status = tl_bench_trace(o->trace, subject, runner, &bindings, diag);
    if (status == TL_OK && o->history != NULL)
        status = tl_bench_history(o->history, o->commit, subject, runner, &t, json, diag);
    if (status == TL_OK && baseline != NULL) {
        tl_change change = tl_baseline_compare(baseline, &t, o->threshold / 100);
        tl_change_print(&change, o->baseline, json);
        *regressed = change.slower;
    }
    tl_baseline_free(baseline);
    tl_runner_destroy(runner);
    tl_bindings_free(&bindings);
    return status;
}

/* What goes with the numbers of one shape. */
static tl_status check_ranges(const bench_options *o, tl_diag *diag)
{
    if (o->data != NULL || o->baseline != NULL || o->trace != NULL || o->history != NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "ranges of --shape do not go with --data, --baseline, --trace or --history");
    return TL_OK;
}

/* Of a model for ranges of extents: beside models for each. */
static tl_status bench_ranges(tl_session *session, const char *path, const bench_options *o,
                              tl_diag *diag)
{
    tl_model_options exact = { 0 };
    tl_session_options shapeless = o->common;
    const tl_bench_varying request = { .given = &o->given,
                                       .seed = o->seed,
                                       .seconds = o->seconds,
                                       .top = o->top < 0    ? 5
                                              : o->top == 0 ? 1 << 20
                                                            : (int)o->top,
                                       .json = o->common.json };
    shapeless.shapes.count = 0;
    TL_TRY(check_ranges(o, diag));
    TL_TRY(tl_session_open_ranges(session, path, &o->common, NULL, diag));
    TL_TRY(tl_session_model_options(session, &shapeless, &exact, diag));
    return tl_bench_varying_shapes(session, path, &exact, &request, diag);
}

static tl_status bench_model(tl_session *session, const char *path, const bench_options *o,
                             bool *regressed, tl_diag *diag)
{
    if (o->dims.count > 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--dim is for kernels (.tk); models take --shape");
    if (tl_session_has_ranges(&o->common))
        return bench_ranges(session, path, o, diag);
    tl_session_options common = o->common;
    common.given = &o->given;
    common.data = o->data;
    TL_TRY(tl_session_open(session, path, &common, NULL, diag));
    const tl_model_facts *facts = tl_model_get_facts(session->model);
    const tl_subject subject = { .name = path,
                                 .executable = tl_model_executable(session->model),
                                 .facts = facts,
                                 .flops = facts->flops,
                                 .ready_s = facts->total_s };
    return bench(session, &subject, o, regressed, diag);
}

static tl_status bench_kernel(tl_session *session, const char *path, const char *trace,
                              const bench_options *o, bool *regressed, tl_diag *diag)
{
    tl_kernel_file *kernel;
    int64_t start = tl_clock_ns();
    if (o->common.shapes.count > 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--shape is for models; kernels take --dim");
    TL_TRY(tl_session_start(session, &o->common, diag));
    TL_TRY(tl_kernel_file_load(session, path, trace, o->common.target, &o->dims, &kernel, diag));
    const tl_executable *executable = tl_kernel_file_executable(kernel);
    tl_jit_symbols *symbols = tl_jit_symbols_publish(executable);
    const tl_subject subject = { .name = path,
                                 .executable = executable,
                                 .flops = tl_executable_info(executable)->steps[0].flops,
                                 .ready_s = (double)(tl_clock_ns() - start) * 1e-9 };
    tl_status status = bench(session, &subject, o, regressed, diag);
    tl_jit_symbols_withdraw(symbols);
    tl_kernel_file_close(kernel);
    return status;
}

int tl_verb_bench(int argc, char **argv)
{
    bench_options o = { .seconds = 2, .threshold = 2, .top = -1 };
    const tl_option options[] = {
        { "--seconds", "-s", TL_OPTION_REAL, "S", "how long to measure (2)", &o.seconds },
        { "--baseline", NULL, TL_OPTION_TEXT, "FILE",
          "compare with an earlier --json output; exit 1 on a regression", &o.baseline },
        { "--threshold", NULL, TL_OPTION_REAL, "PERCENT",
          "with --baseline: changes below it do not count (2)", &o.threshold },
        { "--history", NULL, TL_OPTION_TEXT, "FILE",
          "append the result; show the change against the last ones of this CPU", &o.history },
        { "--commit", NULL, TL_OPTION_TEXT, "TEXT", "with --history: what was measured",
          &o.commit },
        { "--trace", NULL, TL_OPTION_TEXT, "FILE",
          "write a timeline by thread for chrome://tracing or ui.perfetto.dev", &o.trace },
        { "--top", NULL, TL_OPTION_INT, "N",
          "show the N hottest kernels (30; of ranges those that lose most, 5; 0: all)", &o.top },
        { "--data", NULL, TL_OPTION_TEXT, "DIR", "inputs input_NAME.npy (or as its names.txt says)",
          &o.data },
        { "--input", "-i", TL_OPTION_LIST, "NAME=FILE", "as for run; may be repeated", &o.given },
        { "--seed", NULL, TL_OPTION_INT, "S", "of inputs that are not given", &o.seed },
        { "--dim", NULL, TL_OPTION_LIST, "NAME=N", "a dim of a kernel (default: its largest)",
          &o.dims },
        TL_SESSION_OPTIONS(o.common),
        { 0 },
    };
    const tl_verb_help help = {
        "bench",
        "MODEL.onnx|KERNEL.tk [TRACE.tr]",
        "Measures the latency of a model and of each of its kernels, or of one kernel.",
        "Rounds of runs alternate with samples of a loop of multiply-adds on registers, on as many "
        "threads: percent of\n"
        "peak compares with the best of them, and rounds in which the loop fell by a tenth count "
        "as "
        "disturbed. A kernel's\n"
        "time is the shortest seen. The work of the direct lowering counts: one that multiplies "
        "less may exceed 100 %.\n"
        "On a GPU the latency is with copies; the device's own time of a run, of many in a row, is "
        "beside it, and the time\n"
        "of a kernel's text.\n"
        "A kernel's text is scheduled by default or by a trace.\n"
        "With ranges (--shape x=1,16..512) one code for all shapes in them runs in turns with code "
        "for each of five.\n"
        "A change is significant when Mann and Whitney's rank test (1947) over the medians of "
        "undisturbed rounds gives\n"
        "p < 0.01 and both the minimum and the median moved by more than the threshold.\n"
        "gdb knows the kernels by name (a kernel that several steps share by the first of them); "
        "perf does when\n"
        "TILTH_PERF is set: TILTH_PERF=1 perf record tilth bench ...; perf report.",
        "  tilth bench resnet18.onnx --threads 1\n"
        "  tilth bench bert.onnx --json > before.jsonl\n"
        "  tilth bench bert.onnx --baseline before.jsonl\n"
        "  tilth bench resnet18.onnx --trace timeline.json\n"
        "  tilth bench bert.onnx --shape input_ids=1,16..128\n"
        "  tilth bench gemm.tk gemm.tr",
        options,
        1,
        2,
        NULL,
    };
    int positional_count, code;
    const char *positional[2] = { NULL, NULL };
    if (!tl_verb_begin(&help, argc, argv, positional, &positional_count, &code))
        return code;

    tl_diag diag = { 0 };
    tl_session session = { 0 };
    bool regressed = false;
    tl_status status = check_files(&o, &diag);
    if (status == TL_OK && o.common.json)
        tl_print_env_json();
    if (status == TL_OK && ends_with(positional[0], ".tk"))
        status = bench_kernel(&session, positional[0], positional[1], &o, &regressed, &diag);
    else if (status == TL_OK && positional_count > 1)
        status = tl_fail(&diag, TL_BAD_ARGUMENT,
                         ends_with(positional[1], ".tk")
                             ? "'%s' is a kernel's text and %s is none: the kernel comes first"
                             : "'%s': a trace goes with a kernel's text (.tk), and %s is none",
                         positional[1], positional[0]);
    else if (status == TL_OK)
        status = bench_model(&session, positional[0], &o, &regressed, &diag);
    if (status != TL_OK)
        code = tl_report_failure("bench", status, &diag);
    else if (regressed)
        code = tl_status_exit_code(TL_WRONG_RESULT);
    tl_session_close(&session);
    return code;
}
