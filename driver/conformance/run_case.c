/* driver/conformance/run_case.c: one case in this process: compiled as any model is, run on each of its sets of data. */
#include <dirent.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "driver/conformance/compare_output.h"
#include "driver/conformance/conformance.h"

/* The tensors of a set: input_K.pb or output_K.pb, in the order of their numbers. */
typedef struct {
    int count;
    tl_tensor *tensors;
} tensor_files;

typedef struct {
    const tl_case *c;
    tl_session session; /* arena, pool and model are ours */
    tl_model_options options;
    const char *model_path;
    bool is_bound; /* the loaded model is for the shapes and values of one set */
    double rtol, atol;
    tl_case_result *result;
} case_run;

/* PREFIX_K.pb has number K; -1: it is none of them. */
static long number_of(const char *file, const char *prefix, const char *suffix)
{
    size_t size = strlen(prefix);
    char *end;
    if (strncmp(file, prefix, size) != 0 || file[size] < '0' || file[size] > '9')
        return -1;
    long number = strtol(file + size, &end, 10);
    return strcmp(end, suffix) == 0 && number < 1000000 ? number : -1;
}

/* How many entries of the folder are PREFIX_K, and the largest K. */
static void count_numbered(const char *folder, const char *prefix, const char *suffix, long *count,
                           long *largest)
{
    DIR *dir = opendir(folder);
    *count = 0;
    *largest = -1;
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        long number = number_of(entry->d_name, prefix, suffix);
        *count += number >= 0;
        *largest = number > *largest ? number : *largest;
    }
    if (dir != NULL)
        closedir(dir);
}

static tl_status read_files(tl_arena *arena, const char *folder, const char *prefix,
                            tensor_files *out, tl_diag *diag)
{
    long count, largest;
    count_numbered(folder, prefix, ".pb", &count, &largest);
    *out = (tensor_files){ (int)count, TL_NEW_ARRAY(arena, tl_tensor, count) };
    if (largest + 1 != count)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "%s: %ld files %s0.pb and so on, but one of them is %s%ld.pb", folder, count,
                       prefix, prefix, largest);
    for (long k = 0; k < count; k++)
        TL_TRY(tl_read_tensor(tl_arena_format(arena, "%s/%s%ld.pb", folder, prefix, k),
                              &out->tensors[k], diag));
    return TL_OK;
}

static void free_files(tensor_files *files)
{
    for (int i = 0; i < files->count; i++)
        tl_tensor_free(&files->tensors[i]);
}

/* Loads the model, as `tilth verify` does: bound to the shapes and values of the set where it asks for them. `signature`: what
 * the files are for; NULL when the file does not tell. */
static tl_status load_model(case_run *r, const tl_onnx_signature *signature,
                            const tensor_files *inputs, tl_diag *diag)
{
    tl_arena *arena = r->session.arena;
    tl_diag unbound = { 0 };
    if (r->session.model != NULL && !r->is_bound)
        return TL_OK;
    tl_model_destroy(r->session.model);
    r->session.model = NULL;
    tl_model_options options = r->options;
    tl_status status = tl_model_load(r->model_path, &options, &r->session.model, &unbound);
    if (status != TL_UNBOUND || signature == NULL) {
        *diag = unbound;
        return status;
    }
    r->is_bound = true;
    int count = 0;
    tl_shape_override *given = TL_NEW_ARRAY(arena, tl_shape_override, signature->input_count);
    for (int i = 0; i < signature->input_count && i < inputs->count; i++) {
        const tl_tensor *t = &inputs->tensors[i];
        if (t->data == NULL)
            continue;
        given[count++] = (tl_shape_override){
            .name = signature->inputs[i].name,
            .shape = tl_shape_of(t->rank, t->shape),
            .dtype = t->dtype,
            .value = tl_tensor_elements(t) <= TL_DECIDING_ELEMENTS ? t->data : NULL,
        };
    }
    TL_TRY(tl_onnx_bind_shapes(arena, signature, given, count, &options.shapes,
                               &options.shape_count, diag));
    return tl_model_load(r->model_path, &options, &r->session.model, diag);
}

static tl_status compare(case_run *r, const tl_port *port, int output, const tl_tensor *actual,
                         const tl_tensor *expected, tl_diag *diag)
{
    tl_case_result *result = r->result;
    tl_output_difference d;
    tl_status status = tl_compare_output(actual, expected, r->rtol, r->atol, &d, diag);
    if (status != TL_OK) {
        tl_context(diag, "output %d (%s)", output, port->name);
        return status;
    }
    if (d.max_ulp > result->max_ulp)
        result->max_ulp = d.max_ulp;
    if (d.wrong == 0)
        return TL_OK;
    result->output = output;
    result->wrong = d.wrong;
    result->elements = tl_tensor_elements(expected);
    tl_element_index_text(actual, d.first_wrong, result->index, sizeof result->index);
    tl_element_text(actual, d.first_wrong, result->got, sizeof result->got);
    tl_element_text(expected, d.first_wrong, result->expected, sizeof result->expected);
    return tl_fail(diag, TL_WRONG_RESULT,
                   "output %d (%.80s): element %s is %s instead of %s; %lld of %lld differ", output,
                   port->name, result->index, result->got, result->expected, (long long)d.wrong,
                   (long long)result->elements);
}

/* Which of the inputs' files is a port's: they are in the order of the inputs of the file. */
static int file_of(const tl_onnx_signature *signature, const char *name)
{
    for (int i = 0; i < signature->input_count; i++)
        if (strcmp(signature->inputs[i].name, name) == 0)
            return i;
    return -1;
}

static tl_status run_model(case_run *r, const tl_onnx_signature *signature,
                           const tensor_files *inputs, const tensor_files *expected, tl_diag *diag)
{
    tl_arena *arena = r->session.arena;
    const tl_executable *executable = tl_model_executable(r->session.model);
    const tl_executable_spec *spec = tl_executable_info(executable);
    if (inputs->count != signature->input_count)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%d files of inputs, but the model has %d inputs",
                       inputs->count, signature->input_count);
    if (expected->count != spec->output_count)
        return tl_fail(diag, TL_WRONG_RESULT, "%d files of outputs, but the model has %d outputs",
                       expected->count, spec->output_count);

    tl_tensor *in = TL_NEW_ARRAY(arena, tl_tensor, spec->input_count);
    tensor_files out = { spec->output_count, TL_NEW_ARRAY(arena, tl_tensor, spec->output_count) };
    for (int i = 0; i < spec->input_count; i++) {
        int file = file_of(signature, spec->inputs[i].name);
        if (file < 0)
            return tl_fail(diag, TL_INTERNAL, "input %s is none of the file's",
                           spec->inputs[i].name);
        in[i] = inputs->tensors[file];
    }
    tl_runner *runner = NULL;
    tl_status status =
        tl_runner_create(executable, r->session.pool, r->session.threads, &runner, diag);
    if (status == TL_OK)
        status = tl_runner_run_tensors(runner, in, out.tensors, NULL, diag);
    for (int i = 0; status == TL_OK && i < out.count; i++)
        status = compare(r, &spec->outputs[i], i, &out.tensors[i], &expected->tensors[i], diag);
    tl_runner_destroy(runner);
    free_files(&out);
    return status;
}

static void note_dtypes(case_run *r, const tensor_files *files)
{
    for (int i = 0; i < files->count; i++)
        if (files->tensors[i].data != NULL || files->tensors[i].size > 0)
            r->result->dtypes |= UINT32_C(1) << files->tensors[i].dtype;
}

/* That the model is refused counts before anything that is wrong with its data: data of kinds that tilth does not have cannot
 * be read either. */
static tl_status run_set(case_run *r, const char *folder, tl_diag *diag)
{
    tl_arena *arena = r->session.arena;
    tl_diag broken = { 0 };
    tl_onnx_signature signature;
    tensor_files inputs = { 0 }, expected = { 0 };
    bool is_read = tl_onnx_read_signature(arena, r->model_path, &signature, NULL) == TL_OK;
    tl_status data = read_files(arena, folder, "input_", &inputs, &broken);
    if (data == TL_OK)
        data = read_files(arena, folder, "output_", &expected, &broken);
    note_dtypes(r, &inputs);
    note_dtypes(r, &expected);
    tl_status status = load_model(r, is_read ? &signature : NULL, &inputs, diag);
    if (data != TL_OK && (status == TL_OK || status == TL_UNBOUND)) {
        *diag = broken;
        status = data == TL_UNSUPPORTED ? TL_BAD_ARGUMENT : data;
    }
    if (status == TL_OK)
        status = run_model(r, &signature, &inputs, &expected, diag);
    free_files(&inputs);
    free_files(&expected);
    return status;
}

/* data.json beside the model may say how exact the case is: {"rtol": 2e-3, "atol": 1e-5}. */
static tl_status read_tolerance(case_run *r, tl_diag *diag)
{
    json_error_t error;
    const char *path = tl_arena_format(r->session.arena, "%s/data.json", r->c->folder);
    r->rtol = r->c->rtol;
    r->atol = r->c->atol;
    json_t *root = json_load_file(path, 0, &error);
    if (root == NULL && json_error_code(&error) == json_error_cannot_open_file)
        return TL_OK;
    if (root == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: line %d: %s", path, error.line, error.text);
    const json_t *rtol = json_object_get(root, "rtol"), *atol = json_object_get(root, "atol");
    if (json_is_number(rtol))
        r->rtol = json_number_value(rtol);
    if (json_is_number(atol))
        r->atol = json_number_value(atol);
    json_decref(root);
    return TL_OK;
}

static void list_operators(case_run *r)
{
    const char *const *names;
    int count = 0;
    char *out = r->result->operators;
    size_t left = sizeof r->result->operators;
    if (tl_onnx_read_operators(r->session.arena, r->model_path, &names, &count, &r->result->opset,
                               NULL) != TL_OK)
        return;
    for (int i = 0; i < count; i++) {
        size_t size = strlen(names[i]) + (i > 0);
        if (size + 1 > left)
            return;
        left -= size;
        out = stpcpy(stpcpy(out, i > 0 ? " " : ""), names[i]);
    }
}

static tl_status run_sets(case_run *r, const tl_session_options *options,
                          void (*note)(const tl_case_result *), tl_diag *diag)
{
    tl_arena *arena = r->session.arena;
    long count, largest;
    r->model_path = tl_arena_format(arena, "%s/model.onnx", r->c->folder);
    list_operators(r);
    note(r->result);
    TL_TRY(tl_session_model_options(&r->session, options, &r->options, diag));
    r->options.progress = NULL;
    TL_TRY(read_tolerance(r, diag));
    count_numbered(r->c->folder, "test_data_set_", "", &count, &largest);
    if (count == 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: no test_data_set_0", r->c->folder);
    for (long k = 0; k <= largest; k++) {
        r->result->data_set = (int)k;
        tl_status status =
            run_set(r, tl_arena_format(arena, "%s/test_data_set_%ld", r->c->folder, k), diag);
        if (status != TL_OK) {
            if (count > 1)
                tl_context(diag, "test_data_set_%ld", k);
            return status;
        }
    }
    return TL_OK;
}

static tl_status guarded(case_run *r, const tl_session_options *options,
                         void (*note)(const tl_case_result *), tl_diag *diag)
{
    tl_session *s = &r->session;
    s->threads = options->threads > 0 ? (int)options->threads : 1;
    s->arena = tl_arena_create(0);
    if (s->arena == NULL || TL_ARENA_GUARD(s->arena))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    TL_TRY(tl_pool_create(&(tl_pool_options){ .threads = s->threads }, &s->pool, diag));
    return run_sets(r, options, note, diag);
}

void tl_run_case(const tl_case *c, const tl_session_options *options, tl_case_result *result,
                 void (*note)(const tl_case_result *))
{
    case_run r = { .c = c, .result = result };
    tl_diag diag = { 0 };
    *result = (tl_case_result){ .verdict = TL_CASE_FAILED, .output = -1 };
    tl_status status = guarded(&r, options, note, &diag);
    result->verdict = status == TL_OK                                    ? TL_CASE_PASSED
                      : status == TL_UNSUPPORTED || status == TL_UNBOUND ? TL_CASE_SKIPPED
                                                                         : TL_CASE_FAILED;
    if (status != TL_OK)
        snprintf(result->reason, sizeof result->reason, "%s",
                 diag.text[0] != '\0' ? diag.text : tl_status_text(status));
    result->is_final = true;
    tl_session_close(&r.session);
}
