/* driver/verb/verb_verify.c: tilth verify MODEL: are the numbers right? */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "driver/verb/verbs.h"
#include "driver/verify/bisect.h"
#include "driver/verify/check_kernels.h"
#include "driver/verify/moved_outputs.h"

typedef struct {
    double rtol, tolerance;
    int wrong, compared;
    bool json;
} verdict;

/* What is verified, and how. */
typedef struct {
    const char *model, *without;
    tl_session_options common;
    const tl_data_folders *data;
    int64_t seed;
    bool per_node;
} subject;

/* A call that has been run. */
typedef struct {
    tl_runner *runner;
    tl_bindings *bound;
    bool is_moved; /* it has been run with inputs that are off: */
    double **moved;
} finished_call;

static void show_output(const tl_port *port, const tl_tensor *actual, const tl_tensor *expected,
                        const tl_comparison *c, int64_t excused, const verdict *v)
{
    double relative = c->max_expected > 0 ? c->max_error / c->max_expected : c->max_error;
    if (v->json) {
        printf("{\"record\":\"output\",\"name\":");
        tl_print_json_text(port->name);
        printf(",\"max_error\":%.9g,\"relative_error\":%.9g,\"wrong\":%lld,"
               "\"ill_conditioned\":%lld,\"elements\":%lld,\"ok\":%s}\n",
               c->max_error, relative, (long long)c->wrong, (long long)excused,
               (long long)c->elements, c->wrong ? "false" : "true");
        return;
    }
    printf("%s: largest error %.3g, over the largest magnitude %.3g: %s", port->name, c->max_error,
           relative, c->wrong ? "WRONG" : "ok");
    if (c->wrong > 0)
        printf(" (%lld of %lld elements, first at %lld: %.9g instead of %.9g)", (long long)c->wrong,
               (long long)c->elements, (long long)c->first_wrong,
               tl_tensor_get(actual, c->first_wrong), tl_tensor_get(expected, c->first_wrong));
    else if (excused > 0)
        printf(" (%lld of %lld elements differ by more, which inputs that are off by %.3g of their "
               "largest magnitude do, too)",
               (long long)excused, (long long)c->elements, v->tolerance);
    printf("\n");
}

/* What is wrong may be so in any program that rounds: the call is run with inputs that are off by what outputs may be. */
static tl_status excuse(finished_call *f, int index, const tl_tensor *expected, verdict *v,
                        tl_comparison *c, int64_t *excused, tl_diag *diag)
{
    int64_t wrong = c->wrong;
    if (!f->is_moved)
        TL_TRY(tl_move_outputs(f->runner, f->bound, v->tolerance, &f->moved, diag));
    f->is_moved = true;
    if (f->moved == NULL)
        return TL_OK;
    TL_TRY(tl_tensor_compare_allowing(&f->bound->outputs[index], expected, v->rtol, v->tolerance,
                                      f->moved[index], c, diag));
    *excused = wrong - c->wrong;
    return TL_OK;
}

static tl_status check_output(const char *folder, const tl_port *port, int index, finished_call *f,
                              verdict *v, tl_diag *diag)
{
    const tl_tensor *actual = &f->bound->outputs[index];
    tl_text path = { 0 };
    tl_tensor expected = { 0 };
    tl_comparison c;
    int64_t excused = 0;
    tl_status status = TL_OK;
    if (!tl_data_file(folder, "output", port->name, index, &path))
        status = tl_fail(diag, TL_BAD_ARGUMENT,
                         "%s: no file for output %s (neither output_%s.npy nor output_%d.pb nor a "
                         "line in names.txt)",
                         folder, port->name, port->name, index);
    if (status == TL_OK)
        status = tl_read_tensor(tl_text_get(&path), &expected, diag);
    if (status == TL_OK) {
        status = tl_tensor_compare(actual, &expected, v->rtol, v->tolerance, &c, diag);
        if (status != TL_OK)
            tl_context(diag, "output %s against %s", port->name, tl_text_get(&path));
    }
    if (status == TL_OK && c.wrong > 0)
        status = excuse(f, index, &expected, v, &c, &excused, diag);
    if (status == TL_OK) {
        v->compared++;
        v->wrong += c.wrong > 0;
        show_output(port, actual, &expected, &c, excused, v);
    }
    tl_tensor_free(&expected);
    tl_text_free(&path);
    return status;
}

/* Which data are compared, and which code runs on them, where there are several. */
static void show_call(const tl_session_call *call, const char *data, bool json)
{
    tl_text dims = { 0 };
    tl_session_describe_call(call, json, &dims);
    if (json) {
        printf("{\"record\":\"call\",\"data\":");
        tl_print_json_text(data);
        printf(",\"dims\":{%s}}\n", tl_text_get(&dims));
    } else {
        printf("%s: code for %s%s\n", data, dims.size > 0 ? "all shapes, here " : "its shapes",
               tl_text_get(&dims));
    }
    tl_text_free(&dims);
}

static tl_status verify_call(tl_session *session, const tl_session_options *common,
                             const subject *s, verdict *v, tl_diag *diag)
{
    tl_session_call call;
    tl_bindings bound = { 0 };
    tl_runner *runner = NULL;
    tl_status status = tl_session_begin_call(session, common, &call, diag);
    if (status == TL_OK && s->data->count > 1)
        show_call(&call, common->data, v->json);
    if (status == TL_OK)
        status = tl_session_call_bindings(session, &call, common, s->seed, &bound, diag);
    if (status == TL_OK)
        status = tl_session_call_runner(session, &call, &runner, diag);
    if (status == TL_OK)
        status = tl_runner_run(runner, bound.in, bound.out, NULL, diag);
    if (status == TL_OK)
        tl_bindings_shape_outputs(&bound, runner);
    finished_call finished = { .runner = runner, .bound = &bound };
    for (int i = 0; status == TL_OK && common->data != NULL && i < bound.output_count; i++)
        status = check_output(common->data, &tl_executable_info(call.executable)->outputs[i], i,
                              &finished, v, diag);
    if (status == TL_OK && s->per_node)
        status = tl_check_kernels(session, runner, &bound, v->rtol, v->tolerance, v->json,
                                  &v->wrong, diag);
    tl_moved_outputs_free(finished.moved, bound.output_count);
    tl_runner_destroy(runner);
    tl_bindings_free(&bound);
    tl_session_end_call(&call);
    return status;
}

/* One loaded model for all calls. */
static tl_status verify_calls(const subject *s, verdict *v, tl_diag *diag)
{
    tl_session session;
    const tl_model_options extra = { .without = s->without };
    tl_status status = tl_session_open_calls(&session, s->model, &s->common, &extra, diag);
    for (int i = 0; status == TL_OK && i < s->data->count; i++) {
        tl_session_options common = s->common;
        common.data = s->data->folders[i];
        status = verify_call(&session, &common, s, v, diag);
    }
    if (status == TL_OK && v->json)
        printf("{\"record\":\"calls\",\"calls\":%d,\"compiled\":%lld}\n", s->data->count,
               (long long)tl_family_compiled(session.family));
    else if (status == TL_OK)
        printf("%d calls, the model compiled %lld times\n", s->data->count,
               (long long)tl_family_compiled(session.family));
    tl_session_close(&session);
    return status;
}

/* A model for each call: kernels are compared with their programs for its shapes. */
static tl_status verify_each(const subject *s, verdict *v, tl_diag *diag)
{
    const tl_model_options extra = { .keep_programs = s->per_node, .without = s->without };
    tl_status status = TL_OK;
    for (int i = 0; status == TL_OK && i < (s->data->count > 0 ? s->data->count : 1); i++) {
        tl_session session;
        tl_session_options common = s->common;
        common.data = i < s->data->count ? s->data->folders[i] : NULL;
        status = tl_session_open(&session, s->model, &common, &extra, diag);
        if (status == TL_OK)
            status = verify_call(&session, &common, s, v, diag);
        tl_session_close(&session);
    }
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
    verdict v = { .rtol = TL_OUTPUT_RTOL, .tolerance = NAN };
    tl_text_list data = { 0 };
    bool per_node = false, bisect = false;
    const char *without = NULL;
    int64_t seed = 0;
    const tl_option options[] = {
        { "--data", NULL, TL_OPTION_LIST, "DIR",
          "inputs and expected outputs: input_NAME.npy, output_NAME.npy; may be repeated", &data },
        { "--rtol", NULL, TL_OPTION_REAL, "R", "error allowed over the element's magnitude (1e-3)",
          &v.rtol },
        { "--tolerance", NULL, TL_OPTION_REAL, "T",
          "error allowed over the largest magnitude (1e-4; of tf32 2e-3)", &v.tolerance },
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
        "An element is right when |actual - expected| <= R |expected| + T max|expected|, or where "
        "inputs that are off by\n"
        "T of their largest magnitude move it by what is more: any program that rounds may be off "
        "by as much there.\n"
        "A model whose shapes vary is loaded once for several --data; a folder of test_data_set_0, "
        "test_data_set_1, ...\n"
        "stands for these.\n"
        "Without --data every kernel is compared (--per-node): it runs on the values the model "
        "computes, and so does\n"
        "the program its lowering wrote, compiled without any schedule; the first that differs is "
        "named.\n"
        "--bisect compares outputs with those of --data, or of the model without any pass, fusion, "
        "lowering or schedule\n"
        "that it can do without, and names what makes them differ; --without leaves that out. Both "
        "do without records.",
        "  tilth verify resnet18.onnx --data resnet18 --rtol 1e-4 --tolerance 2e-5\n"
        "  tilth verify bert.onnx --data short --data long\n"
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
    tl_data_folders *folders = calloc(1, sizeof *folders);
    tl_arena *arena = tl_arena_create(0);
    tl_status status = folders != NULL && arena != NULL
                           ? tl_data_folders_find(arena, &data, folders, &diag)
                           : tl_fail(&diag, TL_NO_MEMORY, "out of memory");
    v.json = common.json;
    if (isnan(v.tolerance))
        v.tolerance = common.numerics != NULL && strcmp(common.numerics, "tf32") == 0
                          ? TL_OUTPUT_TTOL_TF32
                          : TL_OUTPUT_TTOL;
    common.given = &given;
    if (status == TL_OK)
        status = tl_model_check_without(without, &diag);
    if (status == TL_OK && bisect && without != NULL)
        status = tl_fail(&diag, TL_BAD_ARGUMENT, "--bisect and --without: one of them");
    if (status == TL_OK && bisect && folders->count > 1)
        status = tl_fail(&diag, TL_BAD_ARGUMENT, "--bisect takes the --data of one call");
    if (status == TL_OK && v.json)
        tl_print_env_json();
    if (status == TL_OK && bisect) {
        const tl_bisect_options b = { .model = positional[0],
                                      .session = &common,
                                      .given = &given,
                                      .data = folders->count > 0 ? folders->folders[0] : NULL,
                                      .seed = seed,
                                      .rtol = v.rtol,
                                      .ttol = v.tolerance };
        common.data = b.data;
        code = run_bisect(&b);
    } else if (status == TL_OK) {
        const subject s = { .model = positional[0],
                            .without = without,
                            .common = common,
                            .data = folders,
                            .seed = seed,
                            .per_node = per_node || folders->count == 0 };
        status = s.per_node || folders->count == 1 ? verify_each(&s, &v, &diag)
                                                   : verify_calls(&s, &v, &diag);
        if (status == TL_OK && v.wrong > 0)
            code = tl_status_exit_code(TL_WRONG_RESULT);
    }
    if (status != TL_OK)
        code = tl_report_failure("verify", status, &diag);
    tl_arena_destroy(arena);
    free(folders);
    return code;
}
