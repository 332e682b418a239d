/* driver/verify/moved_outputs.c: how far results move when inputs are a little off. */
#include "driver/verify/moved_outputs.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/random.h"

enum { RUNS = 8 };

/* ---- inputs that are off ---- */

static double largest_of(const tl_tensor *t)
{
    double largest = 0;
    for (int64_t i = 0; i < tl_tensor_elements(t); i++) {
        double x = fabs(tl_tensor_get(t, i));
        if (isfinite(x))
            largest = fmax(largest, x);
    }
    return largest;
}

static void shake(const tl_tensor *from, double by, tl_random *random, tl_tensor *to)
{
    for (int64_t i = 0; i < tl_tensor_elements(from); i++) {
        double x = tl_tensor_get(from, i);
        if (x != 0)
            x += tl_random_below(random, 2) == 0 ? by : -by;
        tl_number_store(to->dtype, to->data, (size_t)i,
                        tl_number_cast(to->dtype, TL_F64, (tl_number){ .f = x }));
    }
}

static bool has_floats(const tl_bindings *bound)
{
    bool has = false;
    for (int i = 0; i < bound->input_count; i++)
        has |= tl_dtype_is_float(bound->inputs[i].dtype);
    return has;
}

/* ---- outputs ---- */

static bool has_shapes_of(const tl_runner *runner, const tl_bindings *bound)
{
    bool same = true;
    for (int o = 0; o < bound->output_count; o++) {
        const tl_tensor *t = &bound->outputs[o];
        for (int a = 0; a < t->rank; a++)
            same &= tl_runner_output_shape(runner, o)[a] == t->shape[a];
    }
    return same;
}

static void note_moves(const tl_bindings *bound, void *const *before, double **moved)
{
    for (int o = 0; o < bound->output_count; o++) {
        tl_tensor old = bound->outputs[o];
        old.data = before[o];
        for (int64_t i = 0; i < tl_tensor_elements(&old); i++) {
            double by = fabs(tl_tensor_get(&bound->outputs[o], i) - tl_tensor_get(&old, i));
            moved[o][i] = isnan(by) ? moved[o][i] : fmax(moved[o][i], by);
        }
    }
}

/* ---- runs ---- */

typedef struct {
    tl_tensor *inputs;
    const void **in;
    void **before; /* the outputs as they were */
    double **moved;
} shaken;

static tl_status begin(const tl_bindings *bound, shaken *s, tl_diag *diag)
{
    size_t inputs = (size_t)bound->input_count + 1, outputs = (size_t)bound->output_count + 1;
    s->inputs = calloc(inputs, sizeof *s->inputs);
    s->in = calloc(inputs, sizeof *s->in);
    s->before = calloc(outputs, sizeof *s->before);
    s->moved = calloc(outputs, sizeof *s->moved);
    bool good = s->inputs != NULL && s->in != NULL && s->before != NULL && s->moved != NULL;
    for (int i = 0; good && i < bound->input_count; i++) {
        const tl_tensor *t = &bound->inputs[i];
        s->in[i] = bound->in[i];
        if (tl_dtype_is_float(t->dtype)) {
            TL_TRY(tl_tensor_create(t->dtype, t->rank, t->shape, &s->inputs[i], diag));
            s->in[i] = s->inputs[i].data;
        }
    }
    for (int o = 0; good && o < bound->output_count; o++) {
        const tl_tensor *t = &bound->outputs[o];
        s->before[o] = malloc(t->size + 1);
        s->moved[o] = calloc((size_t)tl_tensor_elements(t) + 1, sizeof **s->moved);
        good = s->before[o] != NULL && s->moved[o] != NULL;
        if (good)
            memcpy(s->before[o], t->data, t->size);
    }
    return good ? TL_OK : tl_fail(diag, TL_NO_MEMORY, "verify: out of memory");
}

static void end(tl_bindings *bound, shaken *s)
{
    for (int i = 0; s->inputs != NULL && i < bound->input_count; i++)
        tl_tensor_free(&s->inputs[i]);
    for (int o = 0; s->before != NULL && o < bound->output_count; o++) {
        if (s->before[o] != NULL)
            memcpy(bound->outputs[o].data, s->before[o], bound->outputs[o].size);
        free(s->before[o]);
    }
    free(s->inputs);
    free(s->in);
    free(s->before);
}

tl_status tl_move_outputs(tl_runner *runner, tl_bindings *bound, double off, double ***moved,
                          tl_diag *diag)
{
    shaken s = { 0 };
    tl_random random = tl_random_make(1);
    bool same = true;
    *moved = NULL;
    if (!has_floats(bound))
        return TL_OK;
    tl_status status = begin(bound, &s, diag);
    for (int r = 0; status == TL_OK && same && r < RUNS; r++) {
        for (int i = 0; i < bound->input_count; i++)
            if (s.inputs[i].data != NULL)
                shake(&bound->inputs[i], off * largest_of(&bound->inputs[i]), &random,
                      &s.inputs[i]);
        status = tl_runner_run(runner, s.in, bound->out, NULL, diag);
        same = status == TL_OK && has_shapes_of(runner, bound);
        if (same)
            note_moves(bound, s.before, s.moved);
    }
    end(bound, &s);
    if (status == TL_OK && same)
        *moved = s.moved;
    else
        tl_moved_outputs_free(s.moved, bound->output_count);
    return status;
}

void tl_moved_outputs_free(double **moved, int output_count)
{
    for (int o = 0; moved != NULL && o < output_count; o++)
        free(moved[o]);
    free(moved);
}
