/* driver/verify/check_kernels.c: every kernel of a model against its naive Program: the scheduled one wrote its outputs; the
 * naive one, compiled as its lowering wrote it, runs on the same inputs into buffers of its own. */
#include "driver/verify/check_kernels.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"
#include "runtime/base/float_mode.h"
#include "runtime/tensor/tensor.h"

typedef struct {
    const tl_model_facts *facts;
    const tl_target *target;
    tl_jit *jit;
    double rtol, ttol;
    bool json;
    int wrong, checked;
    tl_status status;
    tl_diag *diag;
    tl_arena *arena;
    const int *kernel_of; /* one a step: of the model's kernels, or -1 */
    int *runs_of;         /* one a kernel */
} checker;

enum { MOST_TURNS = 2 }; /* of a loop in which a kernel is checked */

static void *aligned(int64_t bytes)
{
    return aligned_alloc(64, ((size_t)(bytes > 0 ? bytes : 1) + 63) / 64 * 64);
}

static void report(checker *c, const tl_model_kernel *kernel, const tl_buffer *output,
                   const tl_comparison *r)
{
    double relative = r->max_expected > 0 ? r->max_error / r->max_expected : r->max_error;
    if (c->json) {
        printf("{\"record\":\"kernel\",\"name\":\"%s\",\"output\":\"%s\",\"max_error\":%.9g,"
               "\"relative_error\":%.9g,"
               "\"ok\":%s}\n",
               kernel->kernel->name, output->name, r->max_error, relative,
               r->wrong ? "false" : "true");
    } else if (r->wrong > 0) {
        printf("%s: %s differs from the naive program: largest error %.3g, over the largest "
               "magnitude %.3g, "
               "%lld of %lld elements, first at %lld: WRONG\n",
               kernel->kernel->name, output->name, r->max_error, relative, (long long)r->wrong,
               (long long)r->elements, (long long)r->first_wrong);
        if (c->wrong == 0)
            printf("  its nodes: %s ...; its schedule:\n%s", kernel->kernel->nodes[0]->name,
                   kernel->trace);
    }
}

/* Runs the body or the prepare part of a program: `buffers` are its parameters, then what it prepares. */
static tl_status run_part(checker *c, const tl_program *naive, bool prepare, void *const *buffers)
{
    tl_text object = { 0 };
    tl_descriptor d = { 0 };
    tl_jit_kernel *code = NULL;
    tl_status status = tl_codegen_compile(c->arena, naive, prepare, c->target, TL_EMIT_OBJECT,
                                          &object, &d, c->diag);
    if (status == TL_OK)
        status = tl_jit_add(c->jit, object.data, object.size, &d, &code, c->diag);
    void *scratch = aligned(d.scratch_bytes), *thread_scratch = aligned(d.thread_scratch_bytes);
    if (status == TL_OK && (scratch == NULL || thread_scratch == NULL))
        status = tl_fail(c->diag, TL_NO_MEMORY, "out of memory");
    if (status == TL_OK) {
        tl_kernel_args args = { .buffers = buffers,
                                .scratch = scratch,
                                .thread_scratch = thread_scratch };
        uint64_t mode = tl_float_mode_enter(); /* as the model's own kernels run */
        for (int p = 0; p < d.phase_count; p++)
            tl_jit_phase(code, p)(&args, 0, d.extents[p], 0);
        tl_float_mode_leave(mode);
    }
    free(scratch);
    free(thread_scratch);
    if (code != NULL)
        tl_jit_remove(code);
    tl_text_free(&object);
    return status;
}

static tl_status run_naive(checker *c, const tl_program *naive, void **buffers)
{
    tl_status status = TL_OK;
    void **prepared = &buffers[naive->param_count];
    for (int i = 0; i < naive->prepared_count; i++) {
        const tl_buffer *b = naive->prepared[i];
        prepared[i] = aligned(tl_buffer_max_bytes(b));
        if (prepared[i] == NULL)
            status = tl_fail(c->diag, TL_NO_MEMORY, "out of memory");
    }
    if (status == TL_OK && naive->prepare != NULL)
        status = run_part(c, naive, true, buffers);
    if (status == TL_OK)
        status = run_part(c, naive, false, buffers);
    for (int i = 0; i < naive->prepared_count; i++)
        free(prepared[i]);
    return status;
}

static tl_status check(checker *c, const tl_model_kernel *kernel, void *const *buffers)
{
    const tl_program *naive = kernel->naive;
    void *copies[64];
    if (naive->param_count + naive->prepared_count > 64)
        return TL_OK;
    tl_status status = TL_OK;
    for (int i = 0; i < naive->param_count; i++) {
        bool output = naive->params[i]->role == TL_ROLE_OUTPUT;
        int64_t bytes = tl_buffer_max_bytes(naive->params[i]);
        copies[i] = output ? aligned(bytes) : buffers[i];
        if (copies[i] == NULL &&
            i < kernel->kernel->input_count) /* packed: the model reads only that */
            copies[i] = (void *)kernel->kernel->inputs[i]->data;
        if (copies[i] == NULL)
            status =
                tl_fail(c->diag, output ? TL_NO_MEMORY : TL_INTERNAL, "kernel %s: no buffer for %s",
                        kernel->kernel->name, naive->params[i]->name);
    }
    if (status == TL_OK)
        status = run_naive(c, naive, copies);
    for (int i = 0; i < naive->param_count; i++) {
        const tl_buffer *b = naive->params[i];
        if (b->role != TL_ROLE_OUTPUT)
            continue;
        int64_t elements = tl_buffer_max_elements(b);
        tl_tensor actual, expected;
        tl_comparison r;
        if (status == TL_OK)
            status = tl_tensor_borrow(b->dtype, 1, &elements, buffers[i], &actual, c->diag);
        if (status == TL_OK)
            status = tl_tensor_borrow(b->dtype, 1, &elements, copies[i], &expected, c->diag);
        if (status == TL_OK)
            status = tl_tensor_compare(&actual, &expected, c->rtol, c->ttol, &r, c->diag);
        if (status == TL_OK) {
            report(c, kernel, b, &r);
            c->wrong += r.wrong > 0;
        }
        free(copies[i]);
    }
    c->checked++;
    return status;
}

static void after_step(void *user, int step, bool after, void *const *buffers)
{
    checker *c = user;
    int kernel = c->kernel_of[step];
    if (!after || c->status != TL_OK || kernel < 0 || c->runs_of[kernel]++ >= MOST_TURNS)
        return;
    tl_progress("checking kernel %d of %d", kernel + 1, c->facts->kernel_count);
    c->status = check(c, &c->facts->kernels[kernel], buffers);
}

tl_status tl_check_kernels(tl_session *session, tl_runner *runner, const tl_bindings *bindings,
                           double rtol, double ttol, bool json, int *wrong, tl_diag *diag)
{
    checker c = { .facts = tl_model_get_facts(session->model),
                  .rtol = rtol,
                  .ttol = ttol,
                  .json = json,
                  .diag = diag,
                  .arena = session->arena };
    c.kernel_of = tl_model_kernel_of_steps(session->arena, session->model);
    c.runs_of = TL_NEW_ARRAY(session->arena, int, c.facts->kernel_count);
    c.target = c.facts->host;
    TL_TRY(tl_jit_create(c.target, &c.jit, diag));
    tl_status status =
        tl_runner_run_hooked(runner, bindings->in, bindings->out, after_step, &c, diag);
    if (c.status == TL_OK)
        c.status = status;
    tl_progress_done();
    tl_jit_destroy(c.jit);
    *wrong += c.wrong;
    if (c.status == TL_OK && !json)
        printf("%d kernels checked against their naive programs, %d differ: %s\n", c.checked,
               c.wrong, c.wrong ? "WRONG" : "ok");
    return c.status;
}
