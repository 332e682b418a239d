/* driver/verb/verb_compile.c: tilth compile MODEL -o FILE: a compiled model as a file, in one of the forms of outputs.def. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "driver/verb/verbs.h"
#include "driver/output/output.h"
#include "driver/cli/session.h"
#include "driver/output/symbol.h"
#include "driver/pipeline/host_target.h"
#include "runtime/base/file.h"

const tl_output_format tl_output_formats[] = {
#define OUTPUT(name, source, write, summary) { #name, TL_OUTPUT_##source, write, summary },
#include "driver/output/outputs.def"
#undef OUTPUT
};
const int tl_output_format_count = sizeof tl_output_formats / sizeof *tl_output_formats;

typedef struct {
    tl_session_options common;
    const char *output, *format, *symbol, *prepare;
} compile_options;

/* What the options come to. */
typedef struct {
    const tl_output_format *format;
    char path[1024], symbol[256];
    bool prepare_later;
} compile_plan;

static const tl_output_format *find_format(const char *name)
{
    for (int i = 0; i < tl_output_format_count; i++)
        if (strcmp(tl_output_formats[i].name, name) == 0)
            return &tl_output_formats[i];
    return NULL;
}

static tl_status unknown_format(const char *what, const char *name, tl_diag *diag)
{
    tl_text known = { 0 };
    for (int i = 0; i < tl_output_format_count; i++)
        tl_text_format(&known, "%s%s", i > 0 ? ", " : "", tl_output_formats[i].name);
    tl_status status =
        tl_fail(diag, TL_BAD_ARGUMENT, "%s '%s' names no form of output; known are %s", what, name,
                tl_text_get(&known));
    tl_text_free(&known);
    return status;
}

static tl_status choose_format(const compile_options *o, compile_plan *plan, tl_diag *diag)
{
    const char *dot = strrchr(tl_output_base(plan->path), '.');
    const char *name = o->format != NULL ? o->format : dot != NULL ? dot + 1 : "";

    plan->format = find_format(name);
    if (plan->format == NULL && o->format == NULL)
        return unknown_format("-o: the suffix", name, diag);
    if (plan->format == NULL)
        return unknown_format("--format:", name, diag);
    if (plan->format->write == NULL)
        return tl_fail(diag, TL_UNSUPPORTED, "%s: %s", plan->format->name, plan->format->summary);
    return TL_OK;
}

/* A name for C: the one that is asked for, or one made of the file's. */
static tl_status choose_symbol(const compile_options *o, compile_plan *plan, tl_diag *diag)
{
    if (o->symbol == NULL) {
        tl_symbol_of_path(plan->path, plan->symbol, sizeof plan->symbol);
        return TL_OK;
    }
    TL_TRY(tl_symbol_check(o->symbol, sizeof plan->symbol, diag));
    strcpy(plan->symbol, o->symbol);
    return TL_OK;
}

/* Texts are for any processor; what is opened is for those that libtilth_rt loads code on. */
static tl_status check_target(const compile_options *o, const compile_plan *plan, tl_diag *diag)
{
    tl_target target;

    TL_TRY(tl_target_any(o->common.target, NULL, &target, diag));
    if (plan->format->source == TL_OUTPUT_EXECUTABLE && !tl_target_is_gpu(&target) &&
        strncmp(target.triple, "x86_64-", 7) != 0)
        return tl_fail(diag, TL_UNSUPPORTED,
                       "target %s: libtilth_rt runs code of x86-64 only; -o NAME.s and -o NAME.ll "
                       "can be had",
                       o->common.target != NULL ? o->common.target : "cpu");
    return TL_OK;
}

static tl_status choose_prepare(const compile_options *o, compile_plan *plan, tl_diag *diag)
{
    bool here = tl_target_runs_here(o->common.target);

    if (o->prepare != NULL && strcmp(o->prepare, "now") != 0 && strcmp(o->prepare, "later") != 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--prepare: '%s' is neither now nor later",
                       o->prepare);
    plan->prepare_later = o->prepare != NULL ? strcmp(o->prepare, "later") == 0 : !here;
    if (!plan->prepare_later && !here)
        return tl_fail(diag, TL_UNSUPPORTED,
                       "--prepare now: this processor cannot run what packs the weights for %s",
                       o->common.target);
    return TL_OK;
}

/* Now, and not when all is compiled. */
static tl_status check_place(const compile_plan *plan, tl_diag *diag)
{
    struct stat info;
    tl_file *file;
    bool is_folder = plan->format->write == tl_output_folder;

    if (stat(plan->path, &info) == 0 && S_ISDIR(info.st_mode) != is_folder)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: this is a %s, and a .%s is a %s", plan->path,
                       is_folder ? "file" : "folder", plan->format->name,
                       is_folder ? "folder" : "file");
    if (is_folder)
        return tl_output_check_folder(plan->path, diag);
    TL_TRY(tl_file_create(plan->path, &file, diag));
    tl_file_abandon(file);
    return TL_OK;
}

static tl_status make_plan(const compile_options *o, compile_plan *plan, tl_diag *diag)
{
    if (o->output == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "give the result a name: -o model.tilth, -o model.so");
    size_t size = strlen(o->output);
    while (size > 1 && o->output[size - 1] == '/')
        size--;
    if (size == 0 || size >= sizeof plan->path)
        return tl_fail(diag, TL_BAD_ARGUMENT, "-o: a name of %zu characters is not in 1..%zu", size,
                       sizeof plan->path - 1);
    memcpy(plan->path, o->output, size);
    plan->path[size] = '\0';
    TL_TRY(choose_format(o, plan, diag));
    TL_TRY(check_target(o, plan, diag));
    TL_TRY(choose_symbol(o, plan, diag));
    TL_TRY(choose_prepare(o, plan, diag));
    return check_place(plan, diag);
}

/* Of a file, or of the files in a folder. */
static int64_t bytes_at(const char *path)
{
    struct stat info;
    int64_t bytes = 0;
    DIR *dir = opendir(path);
    struct dirent *entry;
    if (dir == NULL)
        return stat(path, &info) == 0 ? (int64_t)info.st_size : 0;
    while ((entry = readdir(dir)) != NULL)
        if (fstatat(dirfd(dir), entry->d_name, &info, 0) == 0 && S_ISREG(info.st_mode))
            bytes += info.st_size;
    closedir(dir);
    return bytes;
}

static void print_dims_json(const tl_executable_spec *spec)
{
    printf(",\"dims\":[");
    for (int i = 0; i < spec->dim_count; i++) {
        printf("%s{\"name\":", i > 0 ? "," : "");
        tl_print_json_text(spec->dims[i].name);
        printf(",\"min\":%lld,\"max\":%lld}", (long long)spec->dims[i].min,
               (long long)spec->dims[i].max);
    }
    printf("]");
}

static void print_json(const tl_output *out, const tl_output_format *format)
{
    const tl_model_facts *facts = tl_model_get_facts(out->model);
    const tl_executable *x = tl_model_executable(out->model);

    printf("{\"record\":\"compile\",\"path\":");
    tl_print_json_text(out->path);
    printf(",\"format\":\"%s\",\"target\":", format->name);
    tl_print_json_text(facts->target->cpu);
    printf(",\"bytes\":%" PRId64 ",\"kernels\":%d,\"tuned_kernels\":%d,\"from_cache\":%s",
           bytes_at(out->path), facts->kernel_count, facts->tuned_count,
           facts->from_cache ? "true" : "false");
    if (x != NULL)
        printf(",\"prepared\":%s,\"code_bytes\":%" PRId64,
               tl_executable_is_prepared(x) ? "true" : "false",
               tl_executable_measure(x).code_bytes);
    if (x != NULL && tl_executable_info(x)->dim_count > 0)
        print_dims_json(tl_executable_info(x));
    if (out->header.data != NULL) {
        printf(",\"symbol\":\"%s\",\"header\":", out->symbol);
        tl_print_json_text(out->header.data);
    }
    printf("}\n");
}

static void print_dims(const tl_executable_spec *spec)
{
    for (int i = 0; i < spec->dim_count; i++)
        printf("%s%s in %lld..%lld", i > 0 ? ", " : "; for any ", spec->dims[i].name,
               (long long)spec->dims[i].min, (long long)spec->dims[i].max);
}

static void print_text(const tl_output *out)
{
    const tl_model_facts *facts = tl_model_get_facts(out->model);
    const tl_executable *x = tl_model_executable(out->model);

    printf("wrote %s, %.1f MB: %d kernels%s for %s", out->path, (double)bytes_at(out->path) * 1e-6,
           facts->kernel_count, facts->tuned_count > 0 ? ", tuned," : "", facts->target->cpu);
    if (x != NULL)
        print_dims(tl_executable_info(x));
    if (x != NULL && !tl_executable_is_prepared(x))
        printf("; its weights are packed when it is opened");
    printf("\n");
    if (out->header.data != NULL)
        printf("wrote %s: it declares %s\n", out->header.data, out->symbol);
}

static tl_status compile(const char *model, const compile_options *o, tl_diag *diag)
{
    compile_plan plan;
    tl_session session = { 0 };
    TL_TRY(make_plan(o, &plan, diag));

    bool programs = plan.format->source == TL_OUTPUT_PROGRAMS;
    tl_model_options extra = { .foreign = true,
                               .inspect_only = programs,
                               .compile_only = plan.prepare_later,
                               .keep_programs = plan.prepare_later };
    tl_status status = tl_session_has_ranges(&o->common)
                           ? tl_session_open_ranges(&session, model, &o->common, &extra, diag)
                           : tl_session_open(&session, model, &o->common, &extra, diag);
    if (status == TL_OK) {
        tl_output out = { .model = session.model, .path = plan.path, .symbol = plan.symbol };
        tl_progress("writing %s", plan.path);
        status = plan.format->write(&out, diag);
        tl_progress_done();
        bool shown = status == TL_OK && !tl_is_stdout(plan.path);
        if (shown && o->common.json)
            print_json(&out, plan.format);
        else if (shown)
            print_text(&out);
        tl_text_free(&out.header);
    }
    tl_session_close(&session);
    return status;
}

int tl_verb_compile(int argc, char **argv)
{
    compile_options o = { 0 };
    const tl_option options[] = {
        { "--output", "-o", TL_OPTION_TEXT, "FILE", "the result; its suffix says the form",
          &o.output },
        { "--format", NULL, TL_OPTION_TEXT, "tilth|so|o|ll|s|ptx", "the form, whatever the suffix",
          &o.format },
        { "--symbol", NULL, TL_OPTION_TEXT, "NAME",
          "what an object calls the model: a name that is free in C (model_ and the file's name)",
          &o.symbol },
        { "--prepare", NULL, TL_OPTION_TEXT, "now|later",
          "when weights are packed: here, or when the result is opened (now, where this machine "
          "runs the target)",
          &o.prepare },
        TL_SESSION_OPTIONS(o.common),
        { 0 },
    };
    const tl_verb_help help = {
        "compile",
        "MODEL.onnx",
        "Compiles a model into a file that runs without tilth's compiler, and without LLVM.",
        "The suffix of -o says what it becomes:\n"
        "  .tilth  a folder that tilth_model_open of libtilth_rt opens\n"
        "  .so     a shared library that it opens, too; made by the system's linker\n"
        "  .o      an object to link into a program with libtilth_rt; NAME.h beside it declares "
        "it\n"
        "          for tilth_model_open_linked, and says what goes in and out\n"
        "  .ll .s  the LLVM IR or assembly of all kernels, to read or to build upon\n"
        "  .ptx    the PTX of all kernels of a GPU (--target cuda,sm_90)\n"
        "Where --shape gives ranges (x=1,2..512) it serves every extent in them: "
        "tilth_runner_set_shapes.\n"
        "All weights are in it. It runs on processors that have what the target has: --target "
        "x86-64-v3 is\nfor nearly all of today's, cpu for this one and its like.",
        "  tilth compile resnet18.onnx -o resnet18.so\n"
        "  tilth compile bert.onnx -o bert.tilth --shape input_ids=2..8,2..512\n"
        "  tilth compile resnet18.onnx -o resnet18.o --target x86-64-v3 --no-db",
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
    if (o.common.json && (o.output == NULL || !tl_is_stdout(o.output)))
        tl_print_env_json();
    tl_status status = compile(positional[0], &o, &diag);
    return status == TL_OK ? code : tl_report_failure("compile", status, &diag);
}
