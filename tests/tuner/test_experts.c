/* tests/tuner/test_experts.c: a search that asks cost models which were trained before: one that is right saves trials, one
 * that is wrong costs hardly any. The machine is a formula over the features of programs, which the right model knows; a
 * screener, which sees decisions alone, learns it from points of the space. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/sort.h"
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
enum { KERNELS = sizeof kernels / sizeof *kernels, SEEDS = 6, LONG = 72, BATCH = 4 };

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

/* Says what a trained screener says, or wrongly so. */
typedef struct {
    tl_cost_model base;
    tl_cost_model *trained;
    wrongness how;
} screener;

static bool screen(tl_cost_model *model, const tl_cost_samples *s, float *mean, float *variance)
{
    const screener *own = (screener *)model;
    if (!tl_cost_model_predict(own->trained, s, mean, variance))
        return false;
    for (int p = 0; p < s->count; p++) {
        float said = mean[p];
        mean[p] = own->how == INVERTED    ? -said
                  : own->how == SHUFFLED  ? (float)fmod(fabs((double)said) * 1e4, 1)
                  : own->how == NO_NUMBER ? NAN
                                          : said;
    }
    return true;
}

static const tl_cost_model_type screener_type = { .name = "screener", .predict = screen };

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

/* A task on a machine, with what asks for both. */
typedef struct {
    tl_arena *arena;
    tl_target target;
    tl_measure_task task;
    tl_space *space;
} bench;

static const tl_workload_info info = { .family = "gemm", .flops = 1000000, .bytes = 1000000 };

static void open_bench(bench *b, const tl_measure_lowering *kernel)
{
    tl_diag diag = { 0 };
    b->arena = tl_arena_create(0);
    b->task = (tl_measure_task){ .name = "kernel",
                                 .workload = "0123456789abcdef0123456789abcdef",
                                 .lowering_count = 1,
                                 .lowerings = kernel };
    need(tl_target_named("x86-64-v4", &b->target, &diag), &diag);
    need(tl_space_create(b->arena, &b->task, &b->target, 1, TL_SPACE_FULL, &b->space, &diag),
         &diag);
}

static void close_bench(bench *b)
{
    tl_arena_destroy(b->arena);
}

/* The time of each of `trials`. */
static void search_by(const tl_policy_type *type, const tl_measure_lowering *kernel, int seed,
                      tl_cost_model *const *experts, int expert_count, int trials, int batch_size,
                      double *times)
{
    enum { MOST_BATCH = 64 };
    bench b;
    tl_diag diag = { 0 };
    tl_policy *policy;
    open_bench(&b, kernel);
    const tl_search search = { .task = &b.task,
                               .space = b.space,
                               .target = &b.target,
                               .experts = experts,
                               .expert_count = expert_count,
                               .workload = &info,
                               .seed = (uint64_t)seed };
    need(type->create(&search, &policy, &diag), &diag);
    for (int i = 0; i < trials; i += batch_size) {
        tl_proposal batch[MOST_BATCH];
        tl_result results[MOST_BATCH];
        int count = 0;
        need(type->propose(policy, b.arena, batch_size, batch, &count, &diag), &diag);
        assert_int_equal(count, batch_size);
        for (int k = 0; k < batch_size; k++) {
            double time = measure(b.arena, b.space, &batch[k]);
            results[k] = (tl_result){ .status = TL_RECORD_OK, .time_ns = time, .score_ns = time };
            times[i + k] = time;
        }
        need(type->learn(policy, batch, results, batch_size, &diag), &diag);
    }
    type->destroy(policy);
    close_bench(&b);
}

/* The best time after each trial of `auto`. */
static void search_with(const tl_measure_lowering *kernel, int seed, tl_cost_model *const *experts,
                        int expert_count, double best[LONG])
{
    search_by(&tl_policy_auto, kernel, seed, experts, expert_count, LONG, BATCH, best);
    for (int i = 1; i < LONG; i++)
        best[i] = fmin(best[i], best[i - 1]);
}

/* Trials until it is that good; all of them when it never is. */
static int trials_to(const double best[LONG], double goal)
{
    int trials = 1;
    while (trials < LONG && best[trials - 1] > goal * 1.0001)
        trials++;
    return trials;
}

/* --- a screener that learned the machine ----------------------------------------------------------------------------------- */

static tl_cost_model *screeners[KERNELS];

enum { POINTS = 400, MOST_TOKENS = 64 };

/* Points of a space with their times. */
typedef struct {
    tl_catalog *catalog;
    const tl_tokens *tokens;
    int count, token_count, width;
    int first[POINTS], length[POINTS], task[POINTS];
    float label[POINTS], *decisions;
} lessons;

/* Any point, or a step away from one that was met. */
static int draw_point(tl_catalog *catalog, tl_random *random)
{
    if (tl_random_below(random, 2) == 0)
        return tl_catalog_sample(catalog, random);
    const int from = (int)tl_random_below(random, tl_catalog_count(catalog));
    const tl_point point = tl_catalog_at(catalog, from)->point;
    const int at = (int)tl_random_below(random, point.count);
    const tl_decision *d = &point.decisions[at];
    return tl_catalog_step(catalog, from, at, d->options[tl_random_below(random, d->count)]);
}

static void add_lesson(lessons *l, tl_arena *arena, int entry)
{
    const float *made;
    assert_true(tl_catalog_rows(l->catalog, entry));
    const tl_entry *e = tl_catalog_at(l->catalog, entry);
    const int count = tl_tokens_of_point(l->tokens, arena, &e->point, &made);
    assert_true(count <= MOST_TOKENS);
    memcpy(l->decisions + (size_t)l->token_count * (size_t)l->width, made,
           sizeof(float) * (size_t)count * (size_t)l->width);
    l->label[l->count] = (float)log_time(e->rows, e->row_count);
    l->first[l->count] = l->token_count;
    l->length[l->count++] = count;
    l->token_count += count;
}

static tl_cost_model *learn_from(const lessons *l, const bench *b)
{
    tl_diag diag = { 0 };
    tl_cost_model *model;
    float *workload = TL_NEW_ARRAY(b->arena, float, tl_cost_token_width(TL_COST_TOKEN_WORKLOAD));
    float *machine = TL_NEW_ARRAY(b->arena, float, tl_cost_token_width(TL_COST_TOKEN_MACHINE));
    tl_cost_token_of_workload(l->tokens, info.family, (double)info.flops, (double)info.bytes,
                              workload);
    tl_cost_token_of_machine(&b->target, machine);
    const tl_cost_samples samples = { .shape = tl_sample_shape_of_points(),
                                      .count = l->count,
                                      .task_count = 1,
                                      .domain_count = 1,
                                      .first_decision = l->first,
                                      .decision_count = l->length,
                                      .decisions = l->decisions,
                                      .task = l->task,
                                      .workloads = workload,
                                      .machines = machine,
                                      .label = l->label };
    const tl_train_options options = { .epochs = 200 };
    need(tl_cost_model_create("screener", NULL, 1, &model, &diag), &diag);
    need(tl_cost_model_train(model, &samples, NULL, &options, &diag), &diag);
    return model;
}

static tl_cost_model *train_screener(const tl_measure_lowering *kernel)
{
    bench b;
    tl_random random = tl_random_make(7);
    lessons *l = calloc(1, sizeof *l);
    assert_non_null(l);
    open_bench(&b, kernel);
    l->catalog = tl_catalog_create(b.space, true);
    l->tokens = tl_tokens_create(b.arena, b.space);
    l->width = tl_cost_token_width(TL_COST_TOKEN_DECISION);
    l->decisions = TL_NEW_ARRAY(b.arena, float, POINTS *MOST_TOKENS * l->width);
    tl_catalog_build(l->catalog, 0, NULL, 0);
    for (int i = 0; i < 8 * POINTS && l->count < POINTS; i++) {
        const int met = tl_catalog_count(l->catalog);
        const int entry = draw_point(l->catalog, &random);
        if (tl_catalog_count(l->catalog) > met)
            add_lesson(l, b.arena, entry);
    }
    tl_cost_model *model = learn_from(l, &b);
    tl_catalog_destroy(l->catalog);
    close_bench(&b);
    free(l);
    return model;
}

static screener screener_of(int kernel, wrongness how)
{
    return (screener){ .base = { .type = &screener_type, .shape = screeners[kernel]->shape },
                       .trained = screeners[kernel],
                       .how = how };
}

static double blank[KERNELS][SEEDS][LONG];
/* What half of the blank searches reach with two thirds of their trials. */
static double goal[KERNELS];

static int search_blank(void **state)
{
    (void)state;
    for (int k = 0; k < KERNELS; k++)
        screeners[k] = train_screener(&kernels[k]);
    for (int k = 0; k < KERNELS; k++) {
        double reached[SEEDS];
        for (int s = 0; s < SEEDS; s++) {
            search_with(&kernels[k], s + 1, NULL, 0, blank[k][s]);
            reached[s] = blank[k][s][LONG * 2 / 3 - 1];
        }
        tl_sort_doubles(reached, SEEDS);
        goal[k] = reached[SEEDS / 2];
    }
    return 0;
}

/* Over all kernels and seeds, until each is at the goal. */
static int trials_of(tl_cost_model *const *experts, int count)
{
    int sum = 0;
    for (int k = 0; k < KERNELS; k++)
        for (int s = 0; s < SEEDS; s++) {
            double with[LONG];
            if (count > 0)
                search_with(&kernels[k], s + 1, experts, count, with);
            sum += trials_to(count > 0 ? with : blank[k][s], goal[k]);
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

/* Over all kernels and seeds; `judge`: a wrong model of programs beside the screener, as one that was distilled from it is. */
static int trials_screened(wrongness how, bool judge)
{
    int sum = 0;
    for (int k = 0; k < KERNELS; k++)
        for (int s = 0; s < SEEDS; s++) {
            double with[LONG];
            screener own = screener_of(k, how);
            formula model = { .base = { .type = &formula_type }, .how = how };
            tl_cost_model *experts[] = { &own.base, &model.base };
            search_with(&kernels[k], s + 1, experts, judge ? 2 : 1, with);
            sum += trials_to(with, goal[k]);
        }
    return sum;
}

/* Of points near the leaders, which differ by a few percent, this one knows little; so it saves hardly a trial of `auto`: no
 * more is promised than that it does no harm. */
static void a_right_screener_does_no_harm(void **state)
{
    (void)state;
    int without = trials_of(NULL, 0), right = trials_screened(RIGHT, false);
    int both = trials_screened(RIGHT, true), model = trials_with(RIGHT);
    print_message("trials: without %d, right screener %d, with the right model %d, that alone %d\n",
                  without, right, both, model);
    assert_true(right <= 1.1 * without);
    assert_true(both < without);
}

/* At most a tenth more trials to the same result. */
static void a_wrong_screener_costs_little(void **state)
{
    (void)state;
    int without = trials_of(NULL, 0);
    static const wrongness wrong[] = { INVERTED, SHUFFLED, NO_NUMBER };
    for (int i = 0; i < 3; i++) {
        int alone = trials_screened(wrong[i], false), both = trials_screened(wrong[i], true);
        print_message(
            "trials: without %d, screener wrong in way %d: %d, with a model that is wrong "
            "alike: %d\n",
            without, i, alone, both);
        assert_true(alone <= 1.1 * without);
        assert_true(both <= 1.1 * without);
    }
}

/* Evolution draws several children for each that it builds, as far as the screener was right: one that is inverted, or says no
 * number, changes nothing at all. What a right one gains here is within chance. */
static void evolution_asks_a_screener_that_is_right(void **state)
{
    (void)state;
    enum { ROUND = 64, TRIALS = 2 * ROUND };
    double without[TRIALS], with[TRIALS], gain = 0;
    static const wrongness all[] = { INVERTED, NO_NUMBER, RIGHT };
    for (int k = 0; k < KERNELS; k++) {
        search_by(&tl_policy_evolution, &kernels[k], 1, NULL, 0, TRIALS, ROUND, without);
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            screener own = screener_of(k, all[i]);
            tl_cost_model *expert = &own.base;
            search_by(&tl_policy_evolution, &kernels[k], 1, &expert, 1, TRIALS, ROUND, with);
            if (all[i] != RIGHT)
                assert_memory_equal(with, without, sizeof with);
        }
        for (int i = ROUND; i < TRIALS; i++)
            gain += log(without[i] / with[i]) / ROUND / KERNELS;
    }
    print_message("children of the second round: %.3f times as fast\n", exp(gain));
    assert_true(exp(gain) > 0.95);
}

/* One of each: the right one is believed. */
static void the_right_one_is_heard_among_others(void **state)
{
    (void)state;
    enum { MODELS = 3 };
    formula models[MODELS] = { { .base = { .type = &formula_type }, .how = INVERTED },
                               { .base = { .type = &formula_type }, .how = RIGHT },
                               { .base = { .type = &formula_type }, .how = SHUFFLED } };
    tl_cost_model *experts[MODELS];
    for (int i = 0; i < MODELS; i++)
        experts[i] = &models[i].base;
    int without = trials_of(NULL, 0), trials = trials_of(experts, MODELS);
    print_message("trials: without %d, three models %d\n", without, trials);
    assert_true(trials < 0.9 * without);
}

static int destroy_screeners(void **state)
{
    (void)state;
    for (int k = 0; k < KERNELS; k++)
        tl_cost_model_destroy(screeners[k]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_right_saves_trials),
        cmocka_unit_test(what_is_wrong_costs_little),
        cmocka_unit_test(the_right_one_is_heard_among_others),
        cmocka_unit_test(a_right_screener_does_no_harm),
        cmocka_unit_test(a_wrong_screener_costs_little),
        cmocka_unit_test(evolution_asks_a_screener_that_is_right),
    };
    return cmocka_run_group_tests(tests, search_blank, destroy_screeners);
}
