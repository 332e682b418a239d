/* driver/verb/verb_run.c: tilth run MODEL: compile and run once. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "driver/verb/verbs.h"
#include "driver/cli/session.h"
#include "runtime/base/file.h"
#include "runtime/base/limits.h"
#include "runtime/base/printable.h"
#include "runtime/base/clock.h"
#include "runtime/tensor/npy.h"

static void file_name(const char *folder, const char *name, tl_text *out)
{
    tl_text_format(out, "%s/output_", folder);
    /* names come from the model: nothing of them becomes a path, or a name that does not show */
    for (size_t left = strlen(name); left > 0;) {
        uint32_t code;
        int size = tl_utf8_read(name, left, &code);
        bool stays = size > 0 && tl_is_printable(code) && strchr("/: ", *name) == NULL;
        tl_text_add_bytes(out, stays ? name : "_", stays ? (size_t)size : 1);
        name += size > 0 ? size : 1;
        left -= size > 0 ? (size_t)size : 1;
    }
    tl_text_add(out, ".npy");
}

static tl_status write_outputs(const char *folder, const tl_executable_spec *spec,
                               const tl_tensor *outputs, bool json, tl_diag *diag)
{
    for (int i = 0; i < spec->output_count; i++) {
        tl_text path = { 0 };
        file_name(folder, spec->outputs[i].name, &path);
        tl_status status = tl_npy_write(tl_text_get(&path), &outputs[i], diag);
        if (status == TL_OK && json) {
            printf("{\"record\":\"file\",\"output\":");
            tl_print_json_text(spec->outputs[i].name);
            printf(",\"path\":");
            tl_print_json_text(tl_text_get(&path));
            printf("}\n");
        } else if (status == TL_OK) {
            printf("wrote %s\n", tl_text_get(&path));
        }
        tl_text_free(&path);
        TL_TRY(status);
    }
    return TL_OK;
}

/* A classifier gives one row of scores for many classes. */
static void show_top_five(const tl_tensor *t)
{
    int64_t classes = t->rank == 2 && t->shape[0] == 1 ? t->shape[1] : 0, best[5];
    int count = 0;
    for (int64_t i = 0; i < classes; i++) {
        int at = count < 5 ? count++ : 5;
        while (at > 0 && tl_tensor_get(t, i) > tl_tensor_get(t, best[at - 1])) {
            if (at < 5)
                best[at] = best[at - 1];
            at--;
        }
        if (at < 5)
            best[at] = i;
    }
    double largest = tl_tensor_get(t, best[0]), sum = 0;
    for (int64_t i = 0; i < classes; i++)
        sum += exp(tl_tensor_get(t, i) - largest);
    printf("  top five of %lld classes:\n    class      score  softmax\n", (long long)classes);
    for (int k = 0; k < count; k++) {
        double score = tl_tensor_get(t, best[k]);
        printf("    %5lld %10.4f  %6.2f %%\n", (long long)best[k], score,
               100 * exp(score - largest) / sum);
    }
}

/* A number as JSON has it: no NaN, no infinities. */
static void print_number(const char *key, double x)
{
    if (isfinite(x))
        printf(",\"%s\":%.9g", key, x);
    else
        printf(",\"%s\":null", key);
}

static void show_output(const tl_port *port, const tl_tensor *t, bool json)
{
    tl_text shape = { 0 };
    tl_shape_describe(t->dtype, t->rank, t->shape, &shape);
    int64_t n = tl_tensor_elements(t);
    double least = INFINITY, largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = tl_tensor_get(t, i);
        least = x < least ? x : least;
        largest = x > largest ? x : largest;
        sum += x;
    }
    if (json) {
        printf("{\"record\":\"output\",\"name\":");
        tl_print_json_text(port->name);
        printf(",\"type\":\"%s\"", tl_text_get(&shape));
        print_number("least", least);
        print_number("largest", largest);
        print_number("mean", sum / (double)n);
        printf("}\n");
        tl_text_free(&shape);
        return;
    }
    printf("%s: %s", port->name, tl_text_get(&shape));
    if (n > 0)
        printf(", least %.6g, largest %.6g, mean %.6g", least, largest, sum / (double)n);
    printf("\n");
    tl_text_free(&shape);
    if (tl_dtype_is_float(t->dtype) && t->rank == 2 && t->shape[0] == 1 && t->shape[1] >= 10)
        show_top_five(t);
}

/* What `inspect` foretells, and what it came to. */
static void print_memory_json(const tl_executable *executable, const tl_runner *runner)
{
    tl_executable_sizes sizes = tl_executable_measure(executable);
    printf("{\"record\":\"memory\",\"prepared_bytes\":%lld,\"constant_bytes\":%lld,"
           "\"external_bytes\":%lld,\"code_bytes\":%lld,\"plan_bytes\":%lld,"
           "\"peak_bytes\":%lld}\n",
           (long long)sizes.prepared_bytes, (long long)sizes.constant_bytes,
           (long long)sizes.external_bytes, (long long)sizes.code_bytes,
           (long long)tl_runner_memory(runner).planned, (long long)tl_peak_memory());
}

static tl_status run(tl_session *session, const tl_text_list *given, const char *data, int64_t seed,
                     const char *output, bool json, tl_diag *diag)
{
    const tl_executable *executable = tl_model_executable(session->model);
    const tl_executable_spec *spec = tl_executable_info(executable);
    tl_bindings bound = { 0 };
    tl_runner *runner = NULL;
    tl_status status = output != NULL ? tl_folder_make(output, diag) : TL_OK;
    if (status == TL_OK)
        status = tl_session_bindings(session, executable, given, data, seed, &bound, diag);
    if (status == TL_OK)
        status = tl_runner_create(executable, session->pool, session->threads, &runner, diag);
    int64_t start = tl_clock_ns();
    if (status == TL_OK)
        status = tl_runner_run(runner, bound.in, bound.out, NULL, diag);
    if (status == TL_OK)
        tl_bindings_shape_outputs(&bound, runner);
    double ms = (double)(tl_clock_ns() - start) * 1e-6;
    if (status == TL_OK) {
        const tl_model_facts *facts = tl_model_get_facts(session->model);
        if (json)
            printf("{\"record\":\"run\",\"ready_s\":%.4f,\"from_cache\":%s,\"first_run_ns\":%.0f,"
                   "\"threads\":%d,\"kernels\":%d,\"tuned_kernels\":%d}\n",
                   facts->total_s, facts->from_cache ? "true" : "false", ms * 1e6,
                   tl_runner_threads(runner), facts->kernel_count, facts->tuned_count);
        else
            printf("ready in %.3f s%s%s, first run %.2f ms on %d thread%s\n", facts->total_s,
                   facts->from_cache ? " (from the cache)" : "",
                   facts->tuned_count > 0 ? ", tuned" : "", ms, tl_runner_threads(runner),
                   tl_runner_threads(runner) == 1 ? "" : "s");
        for (int i = 0; i < spec->output_count; i++)
            show_output(&spec->outputs[i], &bound.outputs[i], json);
        if (json)
            print_memory_json(executable, runner);
        if (output != NULL)
            status = write_outputs(output, spec, bound.outputs, json, diag);
    }
    tl_runner_destroy(runner);
    tl_bindings_free(&bound);
    return status;
}

int tl_verb_run(int argc, char **argv)
{
    tl_session_options common = { 0 };
    tl_text_list given = { 0 };
    const char *data = NULL, *output = NULL;
    int64_t seed = 0;
    const tl_option options[] = {
        { "--input", "-i", TL_OPTION_LIST, "NAME=FILE",
          "FILE.npy, FILE.pb or random:SEED; may be repeated", &given },
        { "--data", NULL, TL_OPTION_TEXT, "DIR", "inputs input_NAME.npy (or as its names.txt says)",
          &data },
        { "--output", "-o", TL_OPTION_TEXT, "DIR", "write every output as DIR/output_NAME.npy",
          &output },
        { "--seed", NULL, TL_OPTION_INT, "S", "of inputs that are not given", &seed },
        TL_SESSION_OPTIONS(common),
        { 0 },
    };
    const tl_verb_help help = {
        "run",
        "MODEL.onnx",
        "Compiles a model and runs it once.",
        "Inputs that are not given are random. A classifier's five best classes are shown.",
        "  tilth run resnet18.onnx --input input=image.npy --output out\n"
        "  tilth run bert.onnx --input input_ids=random:7 --threads 1",
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
    tl_session session;
    common.given = &given;
    common.data = data;
    if (common.json)
        tl_print_env_json();
    tl_status status = tl_session_open(&session, positional[0], &common, NULL, &diag);
    if (status == TL_OK)
        status = run(&session, &given, data, seed, output, common.json, &diag);
    if (status != TL_OK)
        code = tl_report_failure("run", status, &diag);
    tl_session_close(&session);
    return code;
}
