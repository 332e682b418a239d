/* driver/verb/verb_run.c: tilth run MODEL: compile and run once. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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

typedef struct {
    const char *model, *output;
    tl_session_options common;
    const tl_data_folders *data;
    int64_t seed;
} run_request;

/* Where the outputs of a call go: of one of several into a folder of its own, called as its data. */
static tl_status output_folder(const run_request *r, const char *data, tl_text *out, tl_diag *diag)
{
    if (r->output == NULL)
        return TL_OK;
    tl_text_add(out, r->output);
    TL_TRY(tl_folder_make(r->output, diag));
    if (r->data->count < 2)
        return TL_OK;
    const char *slash = strrchr(data, '/');
    tl_text_format(out, "/%s", slash != NULL ? slash + 1 : data);
    return tl_folder_make(tl_text_get(out), diag);
}

/* Several calls write into folders that are told apart. */
static tl_status check_names(const run_request *r, tl_diag *diag)
{
    const tl_data_folders *f = r->data;
    for (int i = 0; r->output != NULL && i < f->count; i++)
        for (int k = 0; k < i; k++) {
            const char *a = strrchr(f->folders[i], '/'), *b = strrchr(f->folders[k], '/');
            if (strcmp(a != NULL ? a + 1 : f->folders[i], b != NULL ? b + 1 : f->folders[k]) == 0)
                return tl_fail(diag, TL_BAD_ARGUMENT,
                               "--data %s and %s: their outputs would go into one folder",
                               f->folders[k], f->folders[i]);
        }
    return TL_OK;
}

static void show_run(const run_request *r, const tl_session_call *call, const char *data,
                     const tl_runner *runner, double ms)
{
    const tl_model_facts *facts = tl_model_get_facts(call->model);
    tl_text dims = { 0 };
    tl_session_describe_call(call, r->common.json, &dims);
    if (r->common.json) {
        printf("{\"record\":\"run\",");
        if (r->data->count > 1) {
            printf("\"data\":");
            tl_print_json_text(data);
            printf(",\"dims\":{%s},", tl_text_get(&dims));
        }
        printf("\"ready_s\":%.4f,\"from_cache\":%s,\"first_run_ns\":%.0f,"
               "\"threads\":%d,\"kernels\":%d,\"tuned_kernels\":%d}\n",
               facts->total_s, facts->from_cache ? "true" : "false", ms * 1e6,
               tl_runner_threads(runner), facts->kernel_count, facts->tuned_count);
    } else {
        if (r->data->count > 1)
            printf("%s: ", data);
        printf("ready in %.3f s%s%s%s%s%s, first run %.2f ms on %d thread%s\n", facts->total_s,
               facts->from_cache ? " (from the cache)" : "",
               facts->tuned_count > 0 ? ", tuned" : "", dims.size > 0 ? " for all shapes (" : "",
               tl_text_get(&dims), dims.size > 0 ? ")" : "", ms, tl_runner_threads(runner),
               tl_runner_threads(runner) == 1 ? "" : "s");
    }
    tl_text_free(&dims);
}

static tl_status run_call(tl_session *session, const tl_session_options *common,
                          const run_request *r, tl_diag *diag)
{
    tl_session_call call;
    tl_bindings bound = { 0 };
    tl_runner *runner = NULL;
    tl_text folder = { 0 };
    bool json = common->json;
    tl_status status = output_folder(r, common->data, &folder, diag);
    call = (tl_session_call){ 0 };
    if (status == TL_OK)
        status = tl_session_begin_call(session, common, &call, diag);
    if (status == TL_OK)
        status = tl_session_call_bindings(session, &call, common, r->seed, &bound, diag);
    if (status == TL_OK)
        status = tl_session_call_runner(session, &call, &runner, diag);
    int64_t start = tl_clock_ns();
    if (status == TL_OK)
        status = tl_runner_run(runner, bound.in, bound.out, NULL, diag);
    double ms = (double)(tl_clock_ns() - start) * 1e-6;
    if (status == TL_OK) {
        const tl_executable_spec *spec = tl_executable_info(call.executable);
        tl_bindings_shape_outputs(&bound, runner);
        show_run(r, &call, common->data, runner, ms);
        for (int i = 0; i < spec->output_count; i++)
            show_output(&spec->outputs[i], &bound.outputs[i], json);
        if (json)
            print_memory_json(call.executable, runner);
        if (r->output != NULL)
            status = write_outputs(tl_text_get(&folder), spec, bound.outputs, json, diag);
    }
    tl_text_free(&folder);
    tl_runner_destroy(runner);
    tl_bindings_free(&bound);
    tl_session_end_call(&call);
    return status;
}

/* Several calls share one loaded model. */
static tl_status run(const run_request *r, tl_diag *diag)
{
    tl_session session;
    tl_session_options common = r->common;
    int count = r->data->count;
    TL_TRY(check_names(r, diag));
    common.data = count > 0 ? r->data->folders[0] : NULL;
    tl_status status = count > 1 ? tl_session_open_calls(&session, r->model, &common, NULL, diag)
                                 : tl_session_open(&session, r->model, &common, NULL, diag);
    for (int i = 0; status == TL_OK && (i < count || i == 0); i++) {
        common.data = i < count ? r->data->folders[i] : NULL;
        status = run_call(&session, &common, r, diag);
    }
    tl_session_close(&session);
    return status;
}

int tl_verb_run(int argc, char **argv)
{
    tl_session_options common = { 0 };
    tl_text_list given = { 0 };
    tl_text_list data = { 0 };
    const char *output = NULL;
    int64_t seed = 0;
    const tl_option options[] = {
        { "--input", "-i", TL_OPTION_LIST, "NAME=FILE",
          "FILE.npy, FILE.pb or random:SEED; may be repeated", &given },
        { "--data", NULL, TL_OPTION_LIST, "DIR",
          "inputs input_NAME.npy (or as its names.txt says); may be repeated", &data },
        { "--output", "-o", TL_OPTION_TEXT, "DIR", "write every output as DIR/output_NAME.npy",
          &output },
        { "--seed", NULL, TL_OPTION_INT, "S", "of inputs that are not given", &seed },
        TL_SESSION_OPTIONS(common),
        { 0 },
    };
    const tl_verb_help help = {
        "run",
        "MODEL.onnx",
        "Compiles a model and runs it once, or once for each --data.",
        "Inputs that are not given are random. A classifier's five best classes are shown. Several "
        "--data are calls of\n"
        "one loaded model, whose shapes may vary; their outputs go to DIR/DATA.",
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
    tl_data_folders *folders = calloc(1, sizeof *folders);
    tl_arena *arena = tl_arena_create(0);
    common.given = &given;
    if (common.json)
        tl_print_env_json();
    tl_status status = folders != NULL && arena != NULL
                           ? tl_data_folders_find(arena, &data, folders, &diag)
                           : tl_fail(&diag, TL_NO_MEMORY, "out of memory");
    const run_request r = {
        .model = positional[0], .output = output, .common = common, .data = folders, .seed = seed
    };
    if (status == TL_OK)
        status = run(&r, &diag);
    if (status != TL_OK)
        code = tl_report_failure("run", status, &diag);
    tl_arena_destroy(arena);
    free(folders);
    return code;
}
