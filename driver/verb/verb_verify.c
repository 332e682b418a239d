/* driver/verb/verb_verify.c: tilth verify MODEL: are the numbers right? */
#include <stdio.h>
#include <string.h>
#include "driver/verb/verbs.h"
#include "driver/verify/bisect.h"
#include "driver/verify/check_kernels.h"

typedef struct {
    double rtol, tolerance;
    int wrong, compared;
    bool json;
} verdict;

static tl_status check_output(const char *folder, const tl_port *port, const tl_tensor *actual,
                              verdict *v, tl_diag *diag)
{
    tl_text path = { 0 };
    tl_tensor expected = { 0 };
    tl_comparison c;
    tl_status status = TL_OK;
    if (!tl_data_file(folder, "output", port->name, &path))
        status =
            tl_fail(diag, TL_BAD_ARGUMENT,
                    "%s: no file for output %s (neither output_%s.npy nor a line in names.txt)",
                    folder, port->name, port->name);
    if (status == TL_OK)
        status = tl_read_tensor(tl_text_get(&path), &expected, diag);
    if (status == TL_OK) {
        status = tl_tensor_compare(actual, &expected, v->rtol, v->tolerance, &c, diag);
        if (status != TL_OK)
            tl_context(diag, "output %s against %s", port->name, tl_text_get(&path));
    }
    if (status == TL_OK) {
        double relative = c.max_expected > 0 ? c.max_error / c.max_expected : c.max_error;
        v->compared++;
        v->wrong += c.wrong > 0;
        if (v->json) {
            printf("{\"record\":\"output\",\"name\":");
            tl_print_json_text(port->name);
            printf(",\"max_error\":%.9g,\"relative_error\":%.9g,\"wrong\":%lld,\"elements\":%lld,"
                   "\"ok\":%s}\n",
                   c.max_error, relative, (long long)c.wrong, (long long)c.elements,
                   c.wrong ? "false" : "true");
        } else {
            printf("%s: largest error %.3g, over the largest magnitude %.3g: %s", port->name,
                   c.max_error, relative, c.wrong ? "WRONG" : "ok");
            if (c.wrong > 0)
                printf(" (%lld of %lld elements, first at %lld: %.9g instead of %.9g)",
                       (long long)c.wrong, (long long)c.elements, (long long)c.first_wrong,
                       tl_tensor_get(actual, c.first_wrong),
                       tl_tensor_get(&expected, c.first_wrong));
            printf("\n");
        }
    }
    tl_tensor_free(&expected);
    tl_text_free(&path);
    return status;
}

static tl_status verify(tl_session *session, const char *data, const tl_text_list *given,
                        int64_t seed, bool per_node, verdict *v, tl_diag *diag)
{
    const tl_executable *executable = tl_model_executable(session->model);
    const tl_executable_spec *spec = tl_executable_info(executable);
    tl_bindings bound;
    tl_runner *runner = NULL;
    tl_status status = tl_session_bindings(session, executable, given, data, seed, &bound, diag);
    if (status == TL_OK)
        status = tl_runner_create(executable, session->pool, session->threads, &runner, diag);
    if (status == TL_OK)
        status = tl_runner_run(runner, bound.in, bound.out, NULL, diag);
    if (status == TL_OK)
        tl_bindings_shape_outputs(&bound, runner);
    for (int i = 0; status == TL_OK && data != NULL && i < spec->output_count; i++)
        status = check_output(data, &spec->outputs[i], &bound.outputs[i], v, diag);
    if (status == TL_OK && per_node)
        status = tl_check_kernels(session, runner, &bound, v->rtol, v->tolerance, v->json,
                                  &v->wrong, diag);
    tl_runner_destroy(runner);
    tl_bindings_free(&bound);
    return status;
}

static int run_bisect(const tl_bisect_options *options)
{
    tl_diag diag = { 0 };
    bool differs = false;
    tl_status status = tl_bisect(options, &differs, &diag);
    if (status != TL_OK)
        return tl_report_failure("verify", status, &diag);
    return differs ? tl_status_exit_code(TL_WRONG_RESULT) : 0;
}

int tl_verb_verify(int argc, char **argv)
{
    tl_session_options common = { 0 };
    tl_text_list given = { 0 };
    verdict v = { .rtol = TL_OUTPUT_RTOL, .tolerance = TL_OUTPUT_TTOL };
    const char *data = NULL;
    bool per_node = false, bisect = false;
    const char *without = NULL;
    int64_t seed = 0;
    const tl_option options[] = {
        { "--data", NULL, TL_OPTION_TEXT, "DIR",
          "inputs and expected outputs: input_NAME.npy, output_NAME.npy", &data },
        { "--rtol", NULL, TL_OPTION_REAL, "R", "error allowed over the element's magnitude (1e-3)",
          &v.rtol },
        { "--tolerance", NULL, TL_OPTION_REAL, "T",
          "error allowed over the largest magnitude (1e-4)", &v.tolerance },
        { "--per-node", NULL, TL_OPTION_FLAG, NULL, "compare every kernel with its naive program",
          &per_node },
        { "--bisect", NULL, TL_OPTION_FLAG, NULL,
          "name the pass, fusion, lowering or schedule that makes an output differ", &bisect },
        { "--without", NULL, TL_OPTION_TEXT, "NAME,..", "leave these out, as --bisect names them",
          &without },
        { "--input", "-i", TL_OPTION_LIST, "NAME=FILE", "as for run; may be repeated", &given },
        { "--seed", NULL, TL_OPTION_INT, "S", "of inputs that are not given", &seed },
        TL_SESSION_OPTIONS(common),
        { 0 },
    };
    const tl_verb_help help = {
        "verify",
        "MODEL.onnx",
        "Compares a model's results with given outputs, or every kernel with its naive program.",
        "An element is right when |actual - expected| <= R |expected| + T max|expected|.\n"
        "Without --data every kernel is compared (--per-node): it runs on the values the model "
        "computes, and so does\n"
        "the program its lowering wrote, compiled without any schedule; the first that differs is "
        "named.\n"
        "--bisect compares outputs with those of --data, or of the model without any pass, fusion, "
        "lowering or schedule\n"
        "that it can do without, and names what makes them differ; --without leaves that out. Both "
        "do without records.",
        "  tilth verify resnet18.onnx --data resnet18 --rtol 1e-4 --tolerance 2e-5\n"
        "  tilth verify resnet18.onnx --per-node\n"
        "  tilth verify resnet18.onnx --bisect\n"
        "  tilth verify resnet18.onnx --without fusion,schedule",
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
    v.json = common.json;
    common.given = &given;
    common.data = data;
    if (data == NULL)
        per_node = true;
    tl_model_options extra = { .keep_programs = per_node, .without = without };
    tl_status status = tl_model_check_without(without, &diag);
    if (status == TL_OK && bisect && without != NULL)
        status = tl_fail(&diag, TL_BAD_ARGUMENT, "--bisect and --without: one of them");
    if (status != TL_OK)
        return tl_report_failure("verify", status, &diag);
    if (v.json)
        tl_print_env_json();
    if (bisect) {
        const tl_bisect_options b = { positional[0], &common, &given,     data,
                                      seed,          v.rtol,  v.tolerance };
        return run_bisect(&b);
    }
    status = tl_session_open(&session, positional[0], &common, &extra, &diag);
    if (status == TL_OK)
        status = verify(&session, data, &given, seed, per_node, &v, &diag);
    if (status != TL_OK)
        code = tl_report_failure("verify", status, &diag);
    else if (v.wrong > 0)
        code = tl_status_exit_code(TL_WRONG_RESULT);
    tl_session_close(&session);
    return code;
}
