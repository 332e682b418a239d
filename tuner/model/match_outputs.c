/* tuner/model/match_outputs.c: schedules with which a model's outputs are those of the untuned one.
 *
 * Each kernel was compared when its schedule was found. But a network may make much of little: in efficientnet_b4, with random
 * inputs, one pooled sum in another order changes outputs by their own size. Whatever of this kind there is falls back, and
 * nothing else: sets whose outputs differ are halved. */
#include <math.h>
#include <string.h>
#include "runtime/executable/bindings.h"
#include "tuner/model/sieve.h"
#include "tuner/model/verdict_private.h"

/* Of the time for measuring. */
#define SHARE_SIFTING 0.5

/* Copies what the untuned build gave on the set. */
static tl_status copy_outputs(const tl_tensor *outputs, int count, tl_tensor *out, tl_diag *diag)
{
    for (int i = 0; i < count; i++) {
        const tl_tensor *t = &outputs[i];
        if (out[i].data == NULL)
            TL_TRY(tl_tensor_create(t->dtype, t->rank, t->shape, &out[i], diag));
        if (t->size > 0)
            memcpy(out[i].data, t->data, (size_t)t->size);
    }
    return TL_OK;
}

static tl_status compare_outputs(tl_verdict_state *s, const tl_tensor *outputs,
                                 const tl_tensor *expected, int count, bool *right, tl_diag *diag)
{
    for (int i = 0; i < count; i++) {
        tl_comparison c;
        TL_TRY(
            tl_tensor_compare(&outputs[i], &expected[i], TL_OUTPUT_RTOL, TL_OUTPUT_TTOL, &c, diag));
        double error = c.max_expected > 0 ? c.max_error / c.max_expected : c.max_error;
        s->out->max_error = fmax(s->out->max_error, error);
        *right &= c.wrong == 0;
    }
    return TL_OK;
}

/* On one set; `expected` is room for the outputs, made when there is none yet. */
static tl_status match_set(tl_verdict_state *s, tl_tunable_build *with, int set,
                           tl_tensor **expected, int *count, bool *right, tl_diag *diag)
{
    const tl_tunable_type *type = s->model->type;
    TL_TRY(tl_verdict_run(s, s->base, set, NULL, diag));
    const tl_tensor *outputs = type->outputs(s->model, set, count);
    if (*expected == NULL)
        *expected = TL_NEW_ARRAY(s->arena, tl_tensor, *count);
    TL_TRY(copy_outputs(outputs, *count, *expected, diag));
    TL_TRY(tl_verdict_run(s, with, set, NULL, diag));
    return compare_outputs(s, type->outputs(s->model, set, count), *expected, *count, right, diag);
}

tl_status tl_verdict_match(tl_verdict_state *s, tl_tunable_build *with, bool *out, tl_diag *diag)
{
    tl_tensor *expected = NULL;
    tl_status status = TL_OK;
    int count = 0;
    *out = true;
    s->out->max_error = 0;
    for (int set = 0; set < TL_VERDICT_INPUT_SETS && status == TL_OK; set++)
        status = match_set(s, with, set, &expected, &count, out, diag);
    for (int i = 0; expected != NULL && i < count; i++)
        tl_tensor_free(&expected[i]);
    return status;
}

typedef struct {
    tl_verdict_state *state;
    tl_pick *all;
    int64_t end_ns; /* of the clock */
} judged;

static bool is_over(void *user)
{
    const judged *j = user;
    return tl_verdict_clock_ns(j->state) >= j->end_ns;
}

static tl_status judge(void *user, const int *members, int count, bool *right, tl_diag *diag)
{
    const judged *j = user;
    for (int i = 0; i < count; i++)
        j->state->picks[i] = j->all[members[i]];
    j->state->pick_count = count;
    TL_TRY(tl_verdict_build_tuned(j->state, diag));
    return tl_verdict_match(j->state, j->state->tuned, right, diag);
}

/* The picks, those of lowerings other than the default's last: they change the arithmetic most, and so share a half. */
static tl_pick *order(const tl_verdict_state *s)
{
    tl_pick *all = TL_NEW_ARRAY(s->arena, tl_pick, s->pick_count);
    int count = 0;
    for (int other = 0; other < 2; other++)
        for (int i = 0; i < s->pick_count; i++) {
            bool same = true;
            for (int k = 0; k < s->base->step_count; k++) {
                const tl_tunable_step *step = &s->base->steps[k];
                if (step->workload != NULL && strcmp(step->workload, s->picks[i].workload) == 0)
                    same = strcmp(step->lowering, s->picks[i].lowering) == 0;
            }
            if (same == (other == 0))
                all[count++] = s->picks[i];
        }
    return all;
}

tl_status tl_verdict_make_right(tl_verdict_state *s, tl_diag *diag)
{
    bool right;
    TL_TRY(tl_verdict_match(s, s->tuned, &right, diag));
    if (right)
        return TL_OK;
    judged j = { .state = s, .all = order(s) };
    int count = s->pick_count;
    tl_sieve sieve = { .judge = judge,
                       .is_over = is_over,
                       .user = &j,
                       .members = TL_NEW_ARRAY(s->arena, int, count) };
    j.end_ns = tl_verdict_clock_ns(s) + (int64_t)(SHARE_SIFTING * 1e9 * s->seconds);
    TL_TRY(tl_sieve_sift(&sieve, count, diag));
    for (int i = 0; i < count; i++)
        tl_verdict_find(s, j.all[i].workload)->fate = TL_VERDICT_WRONG;
    for (int i = 0; i < sieve.member_count; i++)
        tl_verdict_find(s, j.all[sieve.members[i]].workload)->fate = TL_VERDICT_KEPT;
    TL_TRY(judge(&j, sieve.members, sieve.member_count, &right, diag));
    return right ? TL_OK
                 : tl_fail(diag, TL_INTERNAL, "%s: untuned outputs differ from run to run",
                           s->model->path);
}
