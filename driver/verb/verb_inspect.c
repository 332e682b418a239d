/* driver/verb/verb_inspect.c: tilth inspect MODEL: what a model is made of. */
#include <stdio.h>
#include <string.h>
#include "driver/verb/verbs.h"
#include "driver/inspect/inspect.h"
#include "runtime/base/file.h"

typedef struct {
    tl_session_options common;
    bool kernels, graph, dot, scheduled, trace, quick, space, operators, markdown, axes;
    const char *extract, *output;
} inspect_options;

/* The text of one kernel: its program, or its schedule. */
static tl_status extract(const tl_model_facts *facts, const inspect_options *o, tl_text *out,
                         tl_diag *diag)
{
    for (int i = 0; i < facts->kernel_count; i++) {
        const tl_model_kernel *k = &facts->kernels[i];
        if (strcmp(k->kernel->name, o->extract) != 0)
            continue;
        if (o->trace)
            tl_text_add(out, k->trace);
        else
            tl_program_print(o->scheduled ? k->scheduled : k->naive, out);
        return TL_OK;
    }
    return tl_fail(diag, TL_BAD_ARGUMENT,
                   "no kernel is named %s: tilth inspect MODEL --kernels lists them", o->extract);
}

/* A text goes to the file asked for, or to stdout (with --json, as a record). */
static tl_status deliver(const char *record, const tl_text *text, const inspect_options *o,
                         tl_diag *diag)
{
    if (text->failed)
        return tl_fail(diag, TL_NO_MEMORY, "no memory for the text");
    if (o->output != NULL) {
        TL_TRY(tl_file_write(o->output, text->data, text->size, diag));
        if (tl_is_stdout(o->output))
            return TL_OK;
        if (!o->common.json)
            printf("wrote %s\n", o->output);
    } else if (!o->common.json) {
        fputs(tl_text_get(text), stdout);
        return TL_OK;
    }
    if (o->common.json) {
        printf("{\"record\":\"%s\",\"%s\":", record, o->output ? "file" : "text");
        tl_print_json_text(o->output ? o->output : tl_text_get(text));
        printf("}\n");
    }
    return TL_OK;
}

static tl_status inspect(tl_session *session, const char *path, const inspect_options *o,
                         tl_diag *diag)
{
    const tl_model_facts *facts = tl_model_get_facts(session->model);
    tl_text text = { 0 };
    tl_status status = TL_OK;
    tl_inspection in;
    if (o->extract != NULL) {
        status = extract(facts, o, &text, diag);
        if (status == TL_OK)
            status = deliver(o->trace ? "trace" : "program", &text, o, diag);
    } else if (o->space) {
        tl_numerics numerics;
        status = tl_numerics_parse(o->common.numerics, &numerics, diag);
        if (status == TL_OK)
            status = tl_inspect_space(session, numerics, o->common.json, &text, diag);
        if (status == TL_OK && o->output != NULL)
            status = tl_file_write(o->output, text.data, text.size, diag);
        else if (status == TL_OK)
            fputs(tl_text_get(&text), stdout);
    } else if (o->graph) {
        status = tl_inspect_graph(session, &text, diag);
        if (status == TL_OK)
            status = deliver("graph", &text, o, diag);
    } else if (o->dot) {
        status = tl_inspect(session, path, true, &in, diag);
        if (status == TL_OK)
            tl_inspect_dot(&in, &text);
        if (status == TL_OK)
            status = deliver("dot", &text, o, diag);
    } else {
        status = tl_inspect(session, path, o->quick, &in, diag);
        if (status == TL_OK && o->common.json)
            tl_inspect_print_json(&in);
        else if (status == TL_OK)
            tl_inspect_print(&in, o->kernels);
    }
    tl_text_free(&text);
    return status;
}

/* What tilth reads; no model is needed for it. */
static tl_status list_operators(const inspect_options *o, tl_diag *diag)
{
    tl_text text = { 0 };
    tl_inspect_operators(o->common.json ? TL_OPERATORS_JSON
                         : o->markdown  ? TL_OPERATORS_MARKDOWN
                                        : TL_OPERATORS_TEXT,
                         &text);
    tl_status status = text.failed         ? tl_fail(diag, TL_NO_MEMORY, "no memory for the text")
                       : o->output != NULL ? tl_file_write(o->output, text.data, text.size, diag)
                                           : TL_OK;
    if (status == TL_OK && o->output == NULL)
        fputs(tl_text_get(&text), stdout);
    tl_text_free(&text);
    return status;
}

/* The model is read for several shapes, and not opened as one. */
static tl_status show_axes(tl_session *session, const char *path, const inspect_options *o,
                           tl_diag *diag)
{
    tl_model_options options = { .no_cache = true };
    tl_text text = { 0 };
    TL_TRY(tl_session_start(session, &o->common, diag));
    TL_TRY(tl_session_model_options(session, &o->common, &options, diag));
    tl_status status = tl_inspect_axes(session, path, &options, o->common.json, &text, diag);
    if (status == TL_OK && o->output != NULL)
        status = tl_file_write(o->output, text.data, text.size, diag);
    else if (status == TL_OK)
        fputs(tl_text_get(&text), stdout);
    tl_text_free(&text);
    return status;
}

/* What there is to show of a model before its open axes have extents. `unbound` says what is missing; it stays the failure
 * where that is not all. */
static tl_status show_open(tl_session *session, const char *path, const inspect_options *o,
                           tl_diag *unbound)
{
    tl_diag diag = { 0 };
    if (show_axes(session, path, o, &diag) != TL_OK)
        return TL_UNBOUND;
    if (!o->common.json)
        printf("operators, kernels, memory and roofline are those of one shape:\n  %s\n",
               unbound->text);
    return TL_OK;
}

static tl_status check(const inspect_options *o, const char *model, tl_diag *diag)
{
    if (o->operators && model != NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--operators goes without a model");
    if (!o->operators && model == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "an argument is missing (usage: tilth inspect MODEL.onnx)");
    if (o->markdown && (!o->operators || o->common.json))
        return tl_fail(diag, TL_BAD_ARGUMENT, "--markdown goes with --operators, without --json");
    int wanted = (o->extract != NULL) + o->graph + o->dot + o->space + o->operators + o->axes;
    if (wanted > 1)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "--extract, --graph, --dot, --space, --axes and --operators: one at a time");
    if ((o->scheduled || o->trace) && o->extract == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s goes with --extract KERNEL",
                       o->trace ? "--trace" : "--scheduled");
    if (o->scheduled && o->trace)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--scheduled and --trace: one at a time");
    if (o->output != NULL && wanted == 0)
        return tl_fail(
            diag, TL_BAD_ARGUMENT,
            "--output goes with --extract, --graph, --dot, --space, --axes or --operators");
    return TL_OK;
}

int tl_verb_inspect(int argc, char **argv)
{
    inspect_options o = { 0 };
    const tl_option options[] = {
        { "--kernels", "-k", TL_OPTION_FLAG, NULL, "a line for each kernel", &o.kernels },
        { "--extract", NULL, TL_OPTION_TEXT, "KERNEL", "the program of one kernel, as text",
          &o.extract },
        { "--scheduled", NULL, TL_OPTION_FLAG, NULL, "with --extract: after its schedule",
          &o.scheduled },
        { "--trace", NULL, TL_OPTION_FLAG, NULL,
          "with --extract: the schedule itself, default or from the records", &o.trace },
        { "--graph", NULL, TL_OPTION_FLAG, NULL, "the graph after all rewrites, as text",
          &o.graph },
        { "--dot", NULL, TL_OPTION_FLAG, NULL, "the graph cut into kernels, for Graphviz", &o.dot },
        { "--space", NULL, TL_OPTION_FLAG, NULL,
          "what a tuner may decide: lowerings, sketches, decisions, points", &o.space },
        { "--axes", NULL, TL_OPTION_FLAG, NULL,
          "open axes: of which one code serves all extents, and why not of others", &o.axes },
        { "--operators", NULL, TL_OPTION_FLAG, NULL,
          "the operators that tilth reads, with their opsets; no model", &o.operators },
        { "--markdown", NULL, TL_OPTION_FLAG, NULL, "with --operators: as a page", &o.markdown },
        { "--output", "-o", TL_OPTION_TEXT, "FILE",
          "where --extract, --graph, --dot, --space, --axes and --operators write (default: "
          "stdout)",
          &o.output },
        { "--quick", NULL, TL_OPTION_FLAG, NULL, "estimate the machine instead of measuring it",
          &o.quick },
        TL_SESSION_OPTIONS(o.common),
        { 0 },
    };
    const tl_verb_help help = {
        "inspect",
        "MODEL.onnx",
        "Shows what a model is made of: operators, kernels, classes, layouts, FLOPs, memory.",
        "Everything that is not supported is listed at once (exit status 3). Nothing is compiled "
        "or run.\n"
        "A model with open axes that has no --shape is shown as by --axes.\n"
        "The roofline is the time of a run in which every kernel reached the peak or the bandwidth "
        "of this machine,\n"
        "whichever limits it, and nothing stayed in a cache.",
        "  tilth inspect resnet18.onnx --kernels\n"
        "  tilth inspect resnet18.onnx --extract conv_relu_2 -o conv.tk\n"
        "  tilth inspect resnet18.onnx --extract conv_relu_2 --trace -o conv.tr\n"
        "  tilth inspect resnet18.onnx --space\n"
        "  tilth inspect resnet18.onnx --dot | dot -Tsvg > resnet18.svg\n"
        "  tilth inspect --operators",
        options,
        0,
        1,
        NULL,
    };
    int positional_count, code;
    const char *positional[1] = { NULL };
    if (!tl_verb_begin(&help, argc, argv, positional, &positional_count, &code))
        return code;

    tl_diag diag = { 0 };
    tl_session session = { 0 };
    tl_model_options extra = { .inspect_only = true };
    tl_status status = check(&o, positional[0], &diag);
    if (status == TL_OK && o.common.json)
        tl_print_env_json();
    if (status == TL_OK && o.operators)
        status = list_operators(&o, &diag);
    else if (status == TL_OK && o.axes)
        status = show_axes(&session, positional[0], &o, &diag);
    else if (status == TL_OK)
        status = tl_session_has_ranges(&o.common)
                     ? tl_session_open_ranges(&session, positional[0], &o.common, &extra, &diag)
                     : tl_session_open(&session, positional[0], &o.common, &extra, &diag);
    bool shows_all = o.extract == NULL && !o.graph && !o.dot && !o.space && !o.axes;
    bool is_unbound = status == TL_UNBOUND && shows_all;
    if (is_unbound) {
        tl_session_close(&session); /* it is opened with other options */
        session = (tl_session){ 0 };
        status = show_open(&session, positional[0], &o, &diag);
    }
    if (status == TL_UNSUPPORTED && o.common.json)
        tl_inspect_print_unsupported(&diag);
    if (status == TL_OK && !o.operators && !o.axes && !is_unbound)
        status = inspect(&session, positional[0], &o, &diag);
    if (status != TL_OK)
        code = tl_report_failure("inspect", status, &diag);
    tl_session_close(&session);
    return code;
}
