/* tuner/measure/run_check.c: is the candidate's output what the reference says? */
#include <assert.h>
#include <math.h>
#include <string.h>
#include "runtime/base/clock.h"
#include "runtime/tensor/tensor.h"
#include "tuner/measure/run_device.h"

/* What nobody wrote must show: a NaN pattern in the outputs, noise in the scratch. */
static void poison(tl_run_state *state, tl_runnable *r)
{
    const tl_run_task *t = state->task;
    for (int i = 0; i < t->program->param_count; i++)
        if (tl_param_is_written(t->program->params[i]))
            memset(state->outputs[i].data, 0xff, (size_t)t->sizes[i]);
    memset(r->scratch.data, 0xff, r->scratch.size);
    memset(r->thread_scratch.data, 0xff, r->thread_scratch.size);
}

/* The quick way for f32: true when every element is within the bound. */
static bool is_near(const float *actual, const float *expected, int64_t count, double rtol,
                    double ttol, double *max_error)
{
    assert(count >= 0 && rtol >= 0 && ttol >= 0);
    float largest = 0, worst = 0;
    for (int64_t i = 0; i < count; i++) {
        float e = fabsf(expected[i]);
        largest = e > largest ? e : largest;
    }
    if (!isfinite(largest))
        return false;
    float absolute = (float)(ttol * (double)largest), relative = (float)rtol;
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; i++) {
        float error = fabsf(actual[i] - expected[i]);
        wrong += !(error <= absolute + relative * fabsf(expected[i]));
        worst = error > worst ? error : worst;
    }
    double relative_error = largest > 0 ? (double)worst / (double)largest : (double)worst;
    *max_error = relative_error > *max_error ? relative_error : *max_error;
    return wrong == 0;
}

static tl_status compare(const tl_run_state *state, int set, int i, int lowering, double *max_error,
                         tl_diag *diag)
{
    assert(set >= 0 && set < TL_INPUT_SETS && lowering >= 0);
    const tl_run_task *t = state->task;
    const tl_buffer *b = t->program->params[i];
    double rtol = t->rtol[lowering], ttol = t->ttol[lowering];
    if (b->dtype == TL_F32 && is_near((const float *)(const void *)state->outputs[i].data,
                                      (const float *)(const void *)t->expected[set][i].data,
                                      t->elements[i], rtol, ttol, max_error))
        return TL_OK;
    tl_tensor actual, expected;
    tl_comparison c;
    TL_TRY(tl_tensor_borrow(b->dtype, 1, &t->elements[i], state->outputs[i].data, &actual, diag));
    TL_TRY(
        tl_tensor_borrow(b->dtype, 1, &t->elements[i], t->expected[set][i].data, &expected, diag));
    TL_TRY(tl_tensor_compare(&actual, &expected, rtol, ttol, &c, diag));
    double relative = c.max_expected > 0 ? c.max_error / c.max_expected : c.max_error;
    *max_error = relative > *max_error ? relative : *max_error;
    if (c.wrong == 0)
        return TL_OK;
    return tl_fail(diag, TL_WRONG_RESULT,
                   "output %s differs on the %s inputs: %lld of %lld elements, the first is %lld "
                   "(%.9g instead of %.9g); largest error %.3g, largest magnitude %.3g",
                   b->name, set == 0 ? "random" : "adversarial", (long long)c.wrong,
                   (long long)c.elements, (long long)c.first_wrong,
                   tl_tensor_get(&actual, c.first_wrong), tl_tensor_get(&expected, c.first_wrong),
                   c.max_error, c.max_expected);
}

/* One call on an input set, on the CPU. */
static double call_once(tl_run_state *state, tl_runnable *r, int s)
{
    const tl_run_task *t = state->task;
    void *buffers[2 * TL_MAX_PARAMS];
    memcpy(buffers, state->buffers[s], sizeof buffers);
    for (int i = 0; i < r->prepared_count; i++)
        buffers[t->program->param_count + i] = r->prepared[i].data;
    poison(state, r);
    for (int i = 0; i < t->program->param_count; i++)
        if (t->program->params[i]->role == TL_ROLE_INOUT)
            memcpy(state->outputs[i].data, t->inputs[s][i].data, (size_t)t->sizes[i]);
    int64_t start = tl_clock_ns();
    tl_runnable_call(r, state->pool, state->config->threads, buffers, t->dims);
    return (double)(tl_clock_ns() - start);
}

tl_status tl_run_check(tl_run_state *state, tl_runnable *r, int lowering, int sets,
                       double *max_error, double *least_ns, tl_diag *diag)
{
    assert(sets > 0 && sets <= TL_INPUT_SETS);
    const tl_run_task *t = state->task;
    *max_error = 0;
    *least_ns = INFINITY;
    for (int s = 0; s < sets; s++) {
        double ns;
        if (r->bench != NULL)
            TL_TRY(tl_bench_kernel_check(r->bench, t, s, state->outputs, &ns, diag));
        else
            ns = call_once(state, r, s);
        *least_ns = fmin(*least_ns, ns);
        for (int i = 0; i < t->program->param_count; i++)
            if (tl_param_is_written(t->program->params[i]))
                TL_TRY(compare(state, s, i, lowering, max_error, diag));
    }
    return TL_OK;
}
