/* driver/tune/tuned_right.c: schedules with which a model's outputs are those of the untuned one.
 *
 * Each kernel was compared when its schedule was found. But a network may make much of little: in efficientnet_b4, with random
 * inputs, one pooled sum in another order changes outputs by their own size. Whatever of this kind there is falls back, and
 * nothing else: sets whose outputs differ are halved. */
#include <math.h>
#include <string.h>
#include "driver/tune/tuned_private.h"
#include "runtime/base/clock.h"

/* Of the time for measuring. */
#define SHARE_SIFTING 0.5

tl_status tl_tuned_agree(tl_tuned_state *s, const tl_tuned_side *with, bool *out, tl_diag *diag)
{
    const tl_executable_spec *spec = tl_tuned_spec(&s->base);
    tl_tensor *expected = TL_NEW_ARRAY(s->arena, tl_tensor, spec->output_count);
    *out = true;
    s->out->max_error = 0;
    tl_status status = TL_OK;
    for (int set = 0; set < TL_TUNED_INPUT_SETS && status == TL_OK; set++) {
        tl_bindings *b = &s->sets[set];
        status = tl_tuned_run(&s->base, b, NULL, diag);
        for (int i = 0; status == TL_OK && i < spec->output_count; i++) {
            const tl_tensor *t = &b->outputs[i];
            if (expected[i].data == NULL)
                status = tl_tensor_create(t->dtype, t->rank, t->shape, &expected[i], diag);
            if (status == TL_OK && t->size > 0)
                memcpy(expected[i].data, t->data, (size_t)t->size);
        }
        if (status == TL_OK)
            status = tl_tuned_run(with, b, NULL, diag);
        for (int i = 0; status == TL_OK && i < spec->output_count; i++) {
            tl_comparison c;
            status = tl_tensor_compare(&b->outputs[i], &expected[i], TL_OUTPUT_RTOL, TL_OUTPUT_TTOL,
                                       &c, diag);
            if (status != TL_OK)
                break;
            double error = c.max_expected > 0 ? c.max_error / c.max_expected : c.max_error;
            s->out->max_error = fmax(s->out->max_error, error);
            *out &= c.wrong == 0;
        }
    }
    for (int i = 0; i < spec->output_count; i++)
        tl_tensor_free(&expected[i]);
    return status;
}

/* --- halving ------------------------------------------------------------------------------------------------------------ */

/* Adds of first, ..., first + count - 1 what goes with the members that there are. */
static tl_status add(tl_tuned_sieve *sieve, int first, int count, bool is_new, tl_diag *diag)
{
    if (count == 0)
        return TL_OK;
    for (int i = 0; i < count; i++)
        sieve->members[sieve->member_count + i] = first + i;
    bool right = false;
    if (is_new && tl_clock_ns() < sieve->end_ns)
        TL_TRY(
            sieve->judge(sieve->user, sieve->members, sieve->member_count + count, &right, diag));
    if (right)
        sieve->member_count += count;
    if (right || count == 1 || tl_clock_ns() >= sieve->end_ns)
        return TL_OK;
    TL_TRY(add(sieve, first, count / 2, true, diag));
    return add(sieve, first + count / 2, count - count / 2, true, diag);
}

tl_status tl_tuned_sift(tl_tuned_sieve *sieve, int count, tl_diag *diag)
{
    sieve->member_count = 0;
    return add(sieve, 0, count, false, diag); /* all of them were wrong: that is why */
}

/* --- schedules ---------------------------------------------------------------------------------------------------------- */

typedef struct {
    tl_tuned_state *state;
    tl_pick *all;
} judged;

static tl_status judge(void *user, const int *members, int count, bool *right, tl_diag *diag)
{
    const judged *j = user;
    for (int i = 0; i < count; i++)
        j->state->picks[i] = j->all[members[i]];
    j->state->pick_count = count;
    TL_TRY(tl_tuned_build(j->state, diag));
    return tl_tuned_agree(j->state, &j->state->tuned, right, diag);
}

/* The picks, those of lowerings other than the default's last: they change the arithmetic most, and so share a half. */
static tl_pick *order(const tl_tuned_state *s)
{
    const tl_model_facts *facts = tl_model_get_facts(s->base.model);
    tl_pick *all = TL_NEW_ARRAY(s->arena, tl_pick, s->pick_count);
    int count = 0;
    for (int other = 0; other < 2; other++)
        for (int i = 0; i < s->pick_count; i++) {
            bool same = true;
            for (int k = 0; k < facts->kernel_count; k++)
                if (strcmp(facts->kernels[k].workload, s->picks[i].workload) == 0)
                    same = strcmp(facts->kernels[k].lowering, s->picks[i].lowering) == 0;
            if (same == (other == 0))
                all[count++] = s->picks[i];
        }
    return all;
}

tl_status tl_tuned_make_right(tl_tuned_state *s, tl_diag *diag)
{
    bool right;
    TL_TRY(tl_tuned_agree(s, &s->tuned, &right, diag));
    if (right)
        return TL_OK;
    judged j = { s, order(s) };
    int count = s->pick_count;
    tl_tuned_sieve sieve = { .judge = judge,
                             .user = &j,
                             .members = TL_NEW_ARRAY(s->arena, int, count),
                             .end_ns =
                                 tl_clock_ns() + (int64_t)(SHARE_SIFTING * 1e9 * s->seconds) };
    TL_TRY(tl_tuned_sift(&sieve, count, diag));
    for (int i = 0; i < count; i++)
        tl_tuned_find(s, j.all[i].workload)->fate = TL_TUNED_WRONG;
    for (int i = 0; i < sieve.member_count; i++)
        tl_tuned_find(s, j.all[sieve.members[i]].workload)->fate = TL_TUNED_KEPT;
    TL_TRY(judge(&j, sieve.members, sieve.member_count, &right, diag));
    return right
               ? TL_OK
               : tl_fail(diag, TL_INTERNAL, "%s: untuned outputs differ from run to run", s->path);
}
