/* tests/tuner/test_judge.c: metrics against numbers that can be worked out by hand, ceilings, deviations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/random.h"
#include "tuner/dataset/dataset.h"
#include "tuner/judge/metrics.h"

static void is_near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-6 * fmax(1, fabs(expected))))
        fail_msg("%.9g is not %.9g", value, expected);
}

static tl_judgement judge(const tl_judged *judged, const float *mean)
{
    tl_judgement out;
    tl_diag diag = { 0 };
    if (tl_judge(judged, mean, &out, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return out;
}

/* One task of five programs, 1, 1.02, 1.2, 2 and 4 times the standard's time, the last two of another sampler. */
static void a_task_by_hand(void **state)
{
    (void)state;
    const float label[] = { 0, logf(1.02F), logf(1.2F), logf(2), logf(4), INFINITY };
    const int task[] = { 0, 0, 0, 0, 0, 0 };
    const uint8_t sampler[] = { TL_SAMPLER_WALK,  TL_SAMPLER_WALK,  TL_SAMPLER_WALK,
                                TL_SAMPLER_PLAIN, TL_SAMPLER_PLAIN, TL_SAMPLER_PLAIN };
    const float error[] = { 1e-6F, 1e-6F, 1e-6F, 1e-6F, 1e-6F, 1e-6F };
    const tl_judged judged = { .count = 6,
                               .task_count = 1,
                               .task = task,
                               .label = label,
                               .error = error,
                               .sampler = sampler };
    /* the second and the fourth are taken for the best: in the order of what is said 3, 1, 0, 2, 4 */
    const float said[] = { 0.2F, 0.1F, 0.3F, 0, 1, -9 };
    tl_judgement j = judge(&judged, said);
    /* inside: (0, 2), (1, 2) and (3, 4), all right; the first two are 2 % apart, what failed is no pair */
    assert_int_equal(j.pairs[TL_METRIC_PAIRS], 3);
    is_near(j.model.of[TL_METRIC_PAIRS].value, 1);
    /* across: 0, 1, 2 against 3 wrong, against 4 right */
    assert_int_equal(j.pairs[TL_METRIC_PAIRS_ACROSS], 6);
    is_near(j.model.of[TL_METRIC_PAIRS_ACROSS].value, 0.5);
    /* within 1.3 times the best: 0, 1, 2 */
    assert_int_equal(j.pairs[TL_METRIC_PAIRS_NEAR], 2);
    is_near(j.model.of[TL_METRIC_PAIRS_NEAR].value, 1);
    is_near(j.model.of[TL_METRIC_TOP_1].value, 0.5);
    is_near(j.model.of[TL_METRIC_TOP_5].value, 1);
    is_near(j.model.of[TL_METRIC_PEAK_5].value, (0.5 + 1 / 1.02 + 1 + 1 + 1) / 5);
    /* ranks 2 1 3 0 4 beside 0 1 2 3 4: 1 - 6 * (4 + 0 + 1 + 9 + 0) / (5 * 24) */
    is_near(j.model.of[TL_METRIC_RANKS].value, 1 - 6 * 14 / 120.0);
    for (int m = 0; m < TL_METRIC_COUNT; m++)
        assert_true(j.ceiling.of[m].value > 0.999);
    assert_int_equal(j.networks.of[0].units, 0);
}

/* What says nothing orders half of the pairs, and correlates with nothing. */
static void ties_are_half_right(void **state)
{
    (void)state;
    const float label[] = { 0, 0.5F, 1 }, said[] = { 3, 3, 3 };
    const int task[] = { 0, 0, 0 };
    const tl_judged judged = { .count = 3, .task_count = 1, .task = task, .label = label };
    tl_judgement j = judge(&judged, said);
    is_near(j.model.of[TL_METRIC_PAIRS].value, 0.5);
    is_near(j.model.of[TL_METRIC_RANKS].value, 0);
}

/* Task 0 takes nine tenths of the network's time. */
static void tasks_count_by_their_time(void **state)
{
    (void)state;
    const float label[] = { 0, 1, 0, 1 }, said[] = { 0, 1, 1, 0 };
    const int task[] = { 0, 0, 1, 1 };
    const double ns[] = { 3000, 1000 }, runs[] = { 3, 1 };
    double of_networks[TL_METRIC_COUNT];
    const tl_judged judged = { .count = 4,
                               .task_count = 2,
                               .task = task,
                               .label = label,
                               .task_ns = ns,
                               .network_count = 1,
                               .runs = runs,
                               .network_values = of_networks };
    tl_judgement j = judge(&judged, said);
    is_near(of_networks[TL_METRIC_PAIRS], 0.9);
    is_near(j.model.of[TL_METRIC_PAIRS].value, 0.5);
    is_near(j.networks.of[TL_METRIC_PAIRS].value, 0.9);
    is_near(j.model.of[TL_METRIC_TOP_1].value, exp(-0.5)); /* the geometric mean of 1 and 1/e */
    is_near(j.networks.of[TL_METRIC_TOP_1].value, 10000 / (9000 + 1000 * exp(1)));
    assert_int_equal(j.networks.of[TL_METRIC_PAIRS].units, 1);
}

enum { TASKS = 60, EACH = 64, ALL = TASKS * EACH };
typedef struct {
    float label[ALL], truth[ALL], error[ALL], again[ALL];
    int task[ALL];
    uint32_t program[ALL];
    double ns[TASKS];
    tl_judged judged;
} noisy;

/* Programs whose labels have an error of ten percent. */
static noisy *make_noisy(double error)
{
    noisy *n = calloc(1, sizeof *n);
    tl_random random = tl_random_make(4);
    assert_non_null(n);
    for (int p = 0; p < ALL; p++) {
        n->task[p] = p / EACH;
        n->ns[p / EACH] = 1000;
        n->program[p] = (uint32_t)p * 2654435761u >> 8;
        n->truth[p] = (float)(0.3 * tl_random_normal(&random));
        n->label[p] = n->truth[p] + (float)(error * tl_random_normal(&random));
        n->again[p] = n->truth[p] + (float)(error * tl_random_normal(&random));
        n->error[p] = (float)error;
    }
    n->judged = (tl_judged){ .count = ALL,
                             .task_count = TASKS,
                             .task = n->task,
                             .label = n->label,
                             .error = n->error,
                             .program = n->program,
                             .task_ns = n->ns,
                             .again = n->again };
    return n;
}

/* A second measurement that is simulated does as a second measurement does, and no better than the truth. */
static void ceilings_are_those_of_a_second_measurement(void **state)
{
    (void)state;
    noisy *n = make_noisy(0.1);
    tl_judgement j = judge(&n->judged, n->truth);
    assert_int_equal(j.twice_count, ALL);
    for (int m = 0; m < TL_METRIC_COUNT; m++) {
        if (m == TL_METRIC_PAIRS_ACROSS) /* all are of one sampler */
            continue;
        double simulated = j.ceiling.of[m].value, made = j.twice_ceiling.of[m].value;
        /* labels spread a little more than the truth, and so is what is simulated from them */
        if (!(fabs(simulated - made) < 0.03))
            fail_msg("%s: %.4f simulated, %.4f made", tl_metric_infos[m].text, simulated, made);
        assert_true(j.model.of[m].value > made - 0.005);
        assert_true(j.model.of[m].low <= j.model.of[m].value);
        assert_true(j.model.of[m].high >= j.model.of[m].value);
        assert_true(j.model.of[m].high - j.model.of[m].low < 0.1);
    }
    assert_true(j.ceiling.of[TL_METRIC_PAIRS].value < 0.95);
    assert_true(j.ceiling.of[TL_METRIC_PAIRS_NEAR].value < j.ceiling.of[TL_METRIC_PAIRS].value);
    free(n);
}

static void the_same_twice(void **state)
{
    (void)state;
    noisy *n = make_noisy(0.1);
    tl_judgement a = judge(&n->judged, n->truth), b = judge(&n->judged, n->truth);
    for (int m = 0; m < TL_METRIC_COUNT; m++) {
        const tl_score *x[] = { &a.model.of[m], &a.ceiling.of[m], &a.twice_ceiling.of[m] };
        const tl_score *y[] = { &b.model.of[m], &b.ceiling.of[m], &b.twice_ceiling.of[m] };
        for (int k = 0; k < 3; k++)
            assert_true(x[k]->units == 0 || (x[k]->value == y[k]->value && x[k]->low == y[k]->low &&
                                             x[k]->high == y[k]->high));
    }
    free(n);
}

/* Deviations that are right, and some that are half of what they should be; the offset of a task is nothing. */
static void deviations_are_compared_with_errors(void **state)
{
    (void)state;
    static float mean[ALL], variance[ALL];
    noisy *n = make_noisy(0.001);
    tl_random random = tl_random_make(8);
    tl_calibration c;
    tl_diag diag = { 0 };
    for (int half = 0; half < 2; half++) {
        for (int p = 0; p < ALL; p++) {
            double deviation = 0.05 + 0.2 * tl_random_unit(&random);
            mean[p] =
                n->label[p] + (float)(deviation * tl_random_normal(&random)) + (float)n->task[p];
            variance[p] = (float)(deviation * deviation / (half ? 4 : 1));
        }
        assert_int_equal(tl_calibrate(&n->judged, mean, variance, &c, &diag), TL_OK);
        assert_int_equal(c.count, ALL);
        assert_true(fabs(c.spread - (half ? 2 : 1)) < 0.05);
        assert_true(fabs(c.within_1 - (half ? 0.383 : 0.683)) < 0.03);
        for (int b = 0; b < TL_CALIBRATION_BINS; b++)
            assert_true(fabs(c.bins[b].made / c.bins[b].expected / (half ? 2 : 1) - 1) < 0.15);
        assert_true(c.bins[0].expected < c.bins[TL_CALIBRATION_BINS - 1].expected);
    }
    tl_text picture = { 0 }, svg = { 0 };
    tl_calibration_print(&c, &picture);
    tl_calibration_draw(&c, "a < b", &svg);
    assert_non_null(strstr(tl_text_get(&picture), "|"));
    assert_non_null(strstr(tl_text_get(&svg), "a &lt; b"));
    assert_non_null(strstr(tl_text_get(&svg), "</svg>"));
    tl_text_free(&picture);
    tl_text_free(&svg);
    free(n);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_by_hand),
        cmocka_unit_test(ties_are_half_right),
        cmocka_unit_test(tasks_count_by_their_time),
        cmocka_unit_test(ceilings_are_those_of_a_second_measurement),
        cmocka_unit_test(the_same_twice),
        cmocka_unit_test(deviations_are_compared_with_errors),
    };
    return cmocka_run_group_tests_name("judging", tests, NULL, NULL);
}
