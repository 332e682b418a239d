/* tests/tuner/test_experts.c: a search that asks cost models which were trained before: one that is right saves trials, one
 * that is wrong costs hardly any. The machine is a formula over the features of programs, which the right model knows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "schedule/trace.h"
#include "tuner/cost/features.h"
#include "tuner/search/policy_private.h"

static const tl_measure_lowering kernels[] = {
    { "direct",
      "kernel gemm(A: f32[64, 512], const B: f32[512, 512], out C: f32[64, 512])\n"
      "  gemm: C[i, j] = sum(A[i, k]*B[k, j])\n",
      0, 0 },
    { "direct",
      "kernel pointwise(X: f32[24, 14, 14, 16], const W: f32[96, 384], out Y: f32[6, 14, 14, 16])\n"
      "  conv: Y[co, h, w, ci] = sum(X[rc, h, w, rl]*W[co*16 + ci, rc*16 + rl])\n",
      0, 0 },
};
enum { KERNELS = sizeof kernels / sizeof *kernels, SEEDS = 4, LONG = 72, BATCH = 4 };

/* The logarithm of a program's time: what the analytic model says, and as much again that it does not know. */
static double log_time(const float *rows, int count)
{
    double cycles = log(tl_analytic_cycles(NULL, rows, count)), unknown = 0;
    for (int r = 0; r < count; r++)
        for (int c = 0; c < TL_FEATURE_WIDTH; c++)
            unknown += sin(1.7 * c) * (double)rows[r * TL_FEATURE_WIDTH + c];
    return cycles + 0.5 * sin(unknown / count / 8);
}

/* --- models ------------------------------------------------------------------------------------------------------------- */

typedef enum { RIGHT, INVERTED, SHUFFLED, NO_NUMBER } wrongness;

typedef struct {
    tl_cost_model base;
    wrongness how;
} formula;

static bool predict(tl_cost_model *model, const tl_cost_samples *s, float *mean, float *variance)
{
    const wrongness how = ((formula *)model)->how;
    for (int p = 0; p < s->count; p++) {
        const float *rows = s->rows + (size_t)s->first_row[p] * TL_FEATURE_WIDTH;
        double time = log_time(rows, s->row_count[p]);
        mean[p] = (float)(how == INVERTED    ? -time
                          : how == SHUFFLED  ? fmod(fabs(time) * 1e4, 1)
                          : how == NO_NUMBER ? (double)NAN
                                             : time);
        variance[p] = 0.01F;
    }
    return true;
}

static const tl_cost_model_type formula_type = { .name = "formula", .predict = predict };

/* --- searches ----------------------------------------------------------------------------------------------------------- */

static void need(tl_status status, const tl_diag *diag)
{
    if (status != TL_OK)
        fail_msg("%s", diag->text);
}

static double measure(tl_arena *arena, const tl_space *space, const tl_proposal *p)
{
    tl_diag diag = { 0 };
    tl_trace *trace;
    const float *rows;
    tl_target target = *tl_space_target(space);
    target.cores = 1;
    tl_schedule *s = tl_schedule_create(arena, tl_space_program(space, 0), &target, false);
    need(tl_trace_parse(arena, p->candidate.trace, "trace", &target, &trace, &diag), &diag);
    need(tl_trace_apply(trace, s, &diag), &diag);
    int count = tl_features_of(arena, tl_schedule_program(s), &target, &rows);
    return exp(log_time(rows, count));
}

/* The best time after each trial. */
static void search_with(const tl_measure_lowering *kernel, int seed, tl_cost_model *const *experts,
                        int expert_count, double best[LONG])
{
    tl_arena *arena = tl_arena_create(0);
    tl_target target;
    tl_diag diag = { 0 };
    tl_space *space;
    tl_policy *policy;
    const tl_measure_task task = { .name = "kernel",
                                   .workload = "0123456789abcdef0123456789abcdef",
                                   .lowering_count = 1,
                                   .lowerings = kernel };
    const tl_workload_info info = { .family = "gemm", .flops = 1000000, .bytes = 1000000 };
    need(tl_target_named("x86-64-v4", &target, &diag), &diag);
    need(tl_space_create(arena, &task, &target, 1, TL_SPACE_FULL, &space, &diag), &diag);
    const tl_search search = { .task = &task,
                               .space = space,
                               .target = &target,
                               .experts = experts,
                               .expert_count = expert_count,
                               .workload = &info,
                               .seed = (uint64_t)seed };
    need(tl_policy_auto.create(&search, &policy, &diag), &diag);
    for (int i = 0; i < LONG; i += BATCH) {
        tl_proposal batch[BATCH];
        tl_result results[BATCH];
        int count = 0;
        need(tl_policy_auto.propose(policy, arena, BATCH, batch, &count, &diag), &diag);
        assert_int_equal(count, BATCH);
        for (int k = 0; k < BATCH; k++) {
            double time = measure(arena, space, &batch[k]);
            results[k] = (tl_result){ .status = TL_RECORD_OK, .time_ns = time, .score_ns = time };
            best[i + k] = i + k > 0 ? fmin(best[i + k - 1], time) : time;
        }
        need(tl_policy_auto.learn(policy, batch, results, BATCH, &diag), &diag);
    }
    tl_policy_auto.destroy(policy);
    tl_arena_destroy(arena);
}

/* Trials until it is that good; all of them when it never is. */
static int trials_to(const double best[LONG], double goal)
{
    int trials = 1;
    while (trials < LONG && best[trials - 1] > goal * 1.0001)
        trials++;
    return trials;
}

static double blank[KERNELS][SEEDS][LONG];

static int search_blank(void **state)
{
    (void)state;
    for (int k = 0; k < KERNELS; k++)
        for (int s = 0; s < SEEDS; s++)
            search_with(&kernels[k], s + 1, NULL, 0, blank[k][s]);
    return 0;
}

/* Over all kernels and seeds, until each is as good as the blank search after two thirds of its trials. */
static int trials_of(tl_cost_model *const *experts, int count)
{
    int sum = 0;
    for (int k = 0; k < KERNELS; k++)
        for (int s = 0; s < SEEDS; s++) {
            double with[LONG];
            if (count > 0)
                search_with(&kernels[k], s + 1, experts, count, with);
            sum += trials_to(count > 0 ? with : blank[k][s], blank[k][s][LONG * 2 / 3 - 1]);
        }
    return sum;
}

static int trials_with(wrongness how)
{
    formula model = { .base = { .type = &formula_type }, .how = how };
    tl_cost_model *experts[] = { &model.base };
    return trials_of(experts, 1);
}

static void what_is_right_saves_trials(void **state)
{
    (void)state;
    int without = trials_of(NULL, 0), right = trials_with(RIGHT);
    print_message("trials: without %d, right %d\n", without, right);
    assert_true(right < 0.8 * without);
}

/* At most a tenth more trials to the same result. */
static void what_is_wrong_costs_little(void **state)
{
    (void)state;
    int without = trials_of(NULL, 0);
    static const wrongness wrong[] = { INVERTED, SHUFFLED, NO_NUMBER };
    for (int i = 0; i < 3; i++) {
        int trials = trials_with(wrong[i]);
        print_message("trials: without %d, wrong in way %d: %d\n", without, i, trials);
        assert_true(trials <= 1.1 * without);
    }
}

/* One of each: the right one is believed. */
static void the_right_one_is_heard_among_others(void **state)
{
    (void)state;
    formula models[TL_MOST_EXPERTS] = { { .base = { .type = &formula_type }, .how = INVERTED },
                                        { .base = { .type = &formula_type }, .how = RIGHT },
                                        { .base = { .type = &formula_type }, .how = SHUFFLED } };
    tl_cost_model *experts[TL_MOST_EXPERTS];
    for (int i = 0; i < TL_MOST_EXPERTS; i++)
        experts[i] = &models[i].base;
    int without = trials_of(NULL, 0), trials = trials_of(experts, TL_MOST_EXPERTS);
    print_message("trials: without %d, three models %d\n", without, trials);
    assert_true(trials < 0.9 * without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_right_saves_trials),
        cmocka_unit_test(what_is_wrong_costs_little),
        cmocka_unit_test(the_right_one_is_heard_among_others),
    };
    return cmocka_run_group_tests(tests, search_blank, NULL);
}
