/* driver/verify/bisect.c: the model is compiled with the first k of all that it could do without, in the order of the pipeline:
 * with none its outputs are right, with all of it they are not, and half the way between is asked until two that follow
 * each other differ. */
#include "driver/verify/bisect.h"
#include <stdio.h>
#include <string.h>
#include "runtime/executable/bindings.h"

/* One compiled form of the model, and its outputs. */
typedef struct {
    tl_session session;
    tl_bindings bound;
} form;

typedef struct {
    const tl_bisect_options *o;
    form first; /* without anything; is_open: what others are compared with */
    bool is_open;
    int trials;
    char output[128]; /* that differed at last */
} bisection;

static void close_form(form *f)
{
    tl_bindings_free(&f->bound);
    tl_session_close(&f->session);
}

/* All switches from `from` on, a comma between. */
static void list_from(int from, tl_text *out)
{
    const char *name;
    for (int i = from; (name = tl_model_switch(i)) != NULL; i++)
        tl_text_format(out, "%s%s", out->size > 0 ? "," : "", name);
}

static tl_status run_form(const tl_bisect_options *o, const char *without, form *f, tl_diag *diag)
{
    tl_model_options extra = { .without = *without != '\0' ? without : NULL };
    tl_runner *runner = NULL;
    tl_session_options session = *o->session;
    session.no_database = true;
    session.database = NULL;
    *f = (form){ 0 };
    TL_TRY(tl_session_open(&f->session, o->model, &session, &extra, diag));
    const tl_executable *executable = tl_model_executable(f->session.model);
    tl_status status = tl_session_bindings(&f->session, executable, NULL, o->given, o->data,
                                           o->seed, &f->bound, diag);
    if (status == TL_OK)
        status = tl_runner_create(executable, f->session.pool, f->session.threads, &runner, diag);
    if (status == TL_OK)
        status = tl_runner_run(runner, f->bound.in, f->bound.out, NULL, diag);
    if (status == TL_OK)
        tl_bindings_shape_outputs(&f->bound, runner);
    tl_runner_destroy(runner);
    return status;
}

static tl_status compare_output(bisection *b, const form *f, int i, bool *differs, tl_diag *diag)
{
    const char *name = tl_executable_info(tl_model_executable(f->session.model))->outputs[i].name;
    tl_tensor expected = { 0 };
    tl_text path = { 0 };
    tl_comparison c = { 0 };
    tl_status status = TL_OK;
    if (b->o->data != NULL && !tl_data_file(b->o->data, "output", name, i, &path))
        status = tl_fail(diag, TL_BAD_ARGUMENT, "%s: no file for output %s", b->o->data, name);
    if (status == TL_OK && b->o->data != NULL)
        status = tl_read_tensor(tl_text_get(&path), &expected, diag);
    if (status == TL_OK)
        status = tl_tensor_compare(&f->bound.outputs[i],
                                   b->o->data != NULL ? &expected : &b->first.bound.outputs[i],
                                   b->o->rtol, b->o->ttol, &c, diag);
    if (status == TL_OK && c.wrong > 0) {
        *differs = true;
        snprintf(b->output, sizeof b->output, "%s", name);
    }
    tl_tensor_free(&expected);
    tl_text_free(&path);
    return status;
}

static tl_status try_without(bisection *b, const char *without, bool *differs, tl_diag *diag)
{
    form f;
    *differs = false;
    b->trials++;
    tl_progress("trial %d", b->trials);
    tl_status status = run_form(b->o, without, &f, diag);
    int outputs = 0;
    if (status == TL_OK)
        outputs = tl_executable_info(tl_model_executable(f.session.model))->output_count;
    for (int i = 0; status == TL_OK && i < outputs && !*differs; i++)
        status = compare_output(b, &f, i, differs, diag);
    if (status != TL_OK && *without != '\0')
        tl_context(diag, "the model without %.300s", without);
    if (status == TL_OK && tl_verbose)
        fprintf(stderr, "without %s: %s\n", *without != '\0' ? without : "nothing",
                *differs ? "differs" : "right");
    close_form(&f);
    return status;
}

/* With the first `count` of all switches. */
static tl_status try_first(bisection *b, int count, bool *differs, tl_diag *diag)
{
    tl_text without = { 0 };
    list_from(count, &without);
    tl_status status = try_without(b, tl_text_get(&without), differs, diag);
    tl_text_free(&without);
    return status;
}

static void print_found(const bisection *b, const char *name, bool is_alone)
{
    tl_progress_done();
    if (b->o->session->json) {
        printf("{\"record\":\"bisect\",\"output\":");
        tl_print_json_text(b->output);
        printf(",\"found\":\"%s\",\"right_without_it\":%s,\"trials\":%d}\n", name,
               is_alone ? "true" : "false", b->trials);
        return;
    }
    printf("%s differs from %s on (%d trials)\n", b->output, name, b->trials);
    if (is_alone)
        printf("  it is right --without %s\n", name);
    else
        printf("  it differs --without %s, too: something behind it does the same\n", name);
}

static void print_nothing(const bisection *b, const char *found, const char *sentence)
{
    tl_progress_done();
    if (b->o->session->json)
        printf("{\"record\":\"bisect\",\"found\":%s,\"trials\":%d}\n", found, b->trials);
    else
        printf("%s\n", sentence);
}

static tl_status find(bisection *b, bool *differs, tl_diag *diag)
{
    int right = 0, wrong = 0;
    bool differs_now;
    while (tl_model_switch(wrong) != NULL)
        wrong++;
    if (b->o->data == NULL) {
        tl_text all = { 0 };
        list_from(0, &all);
        tl_status status = run_form(b->o, tl_text_get(&all), &b->first, diag);
        tl_text_free(&all);
        b->is_open = true;
        b->trials++;
        TL_TRY(status);
    } else {
        TL_TRY(try_first(b, 0, differs, diag));
        if (*differs) {
            print_nothing(b, "\"operators\"",
                          "the outputs differ without any of it: it is how the operators are read "
                          "or computed, or the data");
            return TL_OK;
        }
    }
    TL_TRY(try_first(b, wrong, differs, diag));
    if (!*differs) {
        print_nothing(b, "null", "no output differs");
        return TL_OK;
    }
    while (wrong - right > 1) {
        int middle = right + (wrong - right) / 2;
        TL_TRY(try_first(b, middle, &differs_now, diag));
        *(differs_now ? &wrong : &right) = middle;
    }
    const char *name = tl_model_switch(right);
    TL_TRY(try_without(b, name, &differs_now, diag));
    print_found(b, name, !differs_now);
    return TL_OK;
}

tl_status tl_bisect(const tl_bisect_options *options, bool *differs, tl_diag *diag)
{
    bisection b = { .o = options };
    *differs = false;
    tl_status status = find(&b, differs, diag);
    tl_progress_done();
    if (b.is_open)
        close_form(&b.first);
    return status;
}
