/* driver/verb/verb_reduce.c: tilth reduce MODEL: the smallest model that is still bad. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "driver/reduce/reduce.h"
#include "driver/verb/verbs.h"

static void show_progress(const tl_reduce_step *step, void *user)
{
    (void)user;
    if (tl_progress_is_live())
        tl_progress("check %d, round %d, %s: %d nodes, %lld bytes", step->checks, step->round,
                    step->pass != NULL ? step->pass : "types", step->size.nodes,
                    (long long)step->size.bytes);
}

static void print_size(const char *prefix, const tl_reduce_size *size)
{
    printf("\"%snodes\":%d,\"%sinputs\":%d,\"%soutputs\":%d,\"%sweights\":%d,\"%sbytes\":%lld",
           prefix, size->nodes, prefix, size->inputs, prefix, size->outputs, prefix, size->weights,
           prefix, (long long)size->bytes);
}

static void show_pass(const tl_reduce_step *step, void *user)
{
    if (!*(const bool *)user) {
        tl_progress_done();
        printf("round %-2d %-10s %5d nodes %4d inputs %4d outputs %5d weights %11lld bytes\n",
               step->round, step->pass, step->size.nodes, step->size.inputs, step->size.outputs,
               step->size.weights, (long long)step->size.bytes);
    } else {
        printf("{\"record\":\"pass\",\"round\":%d,\"pass\":\"%s\",\"checks\":%d,", step->round,
               step->pass, step->checks);
        print_size("", &step->size);
        printf("}\n");
    }
    fflush(stdout);
}

static void show_result(const tl_reduce_options *o, const tl_reduce_result *r)
{
    if (o->session->json) {
        printf("{\"record\":\"reduced\",\"output\":");
        tl_print_json_text(o->output);
        printf(",\"bad\":\"%s\",\"checks\":%d,\"seconds\":%.3f,\"complete\":%s,", r->how, r->checks,
               r->seconds, r->is_complete ? "true" : "false");
        print_size("before_", &r->before);
        printf(",");
        print_size("", &r->after);
        printf("}\n");
        return;
    }
    printf("%s: %d of %d nodes, %lld of %lld bytes, bad as before (%s); %d checks%s\n", o->output,
           r->after.nodes, r->before.nodes, (long long)r->after.bytes, (long long)r->before.bytes,
           r->how, r->checks,
           r->is_complete      ? ""
           : r->is_interrupted ? "; interrupted before it was smallest"
                               : "; the time was over before it was smallest");
}

/* MODEL.onnx -> MODEL.reduced.onnx; NULL: no memory. */
static char *default_output(const char *model)
{
    size_t size = strlen(model);
    char *out = NULL;
    if (size > 5 && strcmp(model + size - 5, ".onnx") == 0)
        size -= 5;
    return asprintf(&out, "%.*s.reduced.onnx", (int)size, model) >= 0 ? out : NULL;
}

static tl_status check(const tl_reduce_options *o, tl_diag *diag)
{
    if (o->check == NULL || *o->check == '\0')
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "--check is missing: wrong, crash, or a command that ends with 0 as long as "
                       "the model is bad");
    if (o->output == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    return tl_session_check(o->session, diag);
}

int tl_verb_reduce(int argc, char **argv)
{
    tl_session_options session = { 0 };
    tl_reduce_options o = { .session = &session,
                            .limit_s = 60,
                            .memory_gb = 8,
                            .progress = show_progress,
                            .passed = show_pass,
                            .user = &session.json };
    const tl_option options[] = {
        { "--check", NULL, TL_OPTION_TEXT, "wrong|crash|COMMAND",
          "what is bad about the model; COMMAND gets its path", &o.check },
        { "--output", "-o", TL_OPTION_TEXT, "FILE", "(default: MODEL.reduced.onnx)", &o.output },
        { "--seconds", NULL, TL_OPTION_REAL, "S", "stop after this time (0: when it is smallest)",
          &o.seconds },
        { "--time-limit", NULL, TL_OPTION_REAL, "S", "for one check, in seconds (60; 0: none)",
          &o.limit_s },
        { "--memory-limit", NULL, TL_OPTION_REAL, "GB", "address space for one check (8; 0: any)",
          &o.memory_gb },
        { "--seed", NULL, TL_OPTION_INT, "S", "of the inputs", &o.seed },
        TL_SESSION_OPTIONS(session),
        { 0 },
    };
    const tl_verb_help help = {
        "reduce",
        "MODEL.onnx",
        "Shrinks a model that crashes, is wrong or is slow to the smallest that still is.",
        "--check crash: `tilth run` dies by a signal or ends with 4. --check wrong: `tilth verify` "
        "finds a kernel that\n"
        "differs from its naive program. A command is one of the shell: the candidate's path "
        "follows it, and it ends\n"
        "with 0 as long as the candidate is bad. Every check is a process of its own with limits "
        "of time and memory;\n"
        "what does not keep them, or is bad in another way than the model was, is not taken.\n"
        "Outputs and nodes go, extents shrink, weights become numbers that anybody can make. "
        "Ctrl-C keeps the best so far.",
        "  tilth reduce net.onnx --check crash\n"
        "  tilth reduce net.onnx --check wrong --threads 1 -o small.onnx\n"
        "  tilth reduce net.onnx --check 'grep -q Softmax'",
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
    tl_reduce_result result;
    char *made = o.output == NULL ? default_output(positional[0]) : NULL;
    o.model = positional[0];
    o.output = o.output != NULL ? o.output : made;
    tl_status status = check(&o, &diag);
    if (status == TL_OK && session.json)
        tl_print_env_json();
    if (status == TL_OK)
        status = tl_reduce(&o, &result, &diag);
    tl_progress_done();
    if (status != TL_OK)
        code = tl_report_failure("reduce", status, &diag);
    else
        show_result(&o, &result);
    if (status == TL_OK && result.is_interrupted)
        code = tl_status_exit_code(TL_INTERRUPTED);
    free(made);
    return code;
}
