/* tests/tuner/test_surrogate.c: what a Gaussian process expects of points. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "tuner/search/surrogate.h"

static const int64_t options[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
enum { NAMES = 3, OPTIONS = 8 };

/* A point with these places; the last decision matters to nobody. */
static tl_point make(tl_decision decisions[NAMES], int a, int b, int c)
{
    static const char *const names[NAMES] = { "x.a", "x.b", "x.c" };
    int taken[NAMES] = { a, b, c };
    for (int i = 0; i < NAMES; i++)
        decisions[i] = (tl_decision){ names[i], OPTIONS, options, 0, taken[i] };
    return (tl_point){ 0, NAMES, decisions };
}

static double truth(int a, int b)
{
    return 0.2 * fabs(a - 5.0) + 0.1 * fabs(b - 2.0);
}

static tl_surrogate *taught(bool guesses)
{
    tl_surrogate *s = tl_surrogate_create(guesses);
    assert_non_null(s);
    for (int i = 0; i < 40; i++) {
        tl_decision decisions[NAMES];
        int a = i * 5 % OPTIONS, b = i * 3 % 7, c = i % OPTIONS;
        if (a == 5 && b == 2)
            continue;
        tl_point point = make(decisions, a, b, c);
        double time = guesses ? 0.05 * (i % 4) + 0.8 * i : truth(a, b);
        const double guess = i;
        assert_true(tl_surrogate_add(s, &point, time, &guess));
    }
    tl_surrogate_fit_weights(s);
    assert_true(tl_surrogate_solve(s));
    return s;
}

static double gain_of(const tl_surrogate *s, int a, int b, int c, double guess)
{
    tl_decision decisions[NAMES];
    tl_point point = make(decisions, a, b, c);
    return tl_surrogate_gain(s, &point, &guess, 0);
}

static void the_bottom_promises_most(void **state)
{
    (void)state;
    tl_surrogate *s = taught(false);
    double best = gain_of(s, 5, 2, 3, 0);
    assert_true(best > 0);
    for (int a = 0; a < OPTIONS; a++)
        for (int b = 0; b < 7; b++)
            if (truth(a, b) > 0.3)
                assert_true(gain_of(s, a, b, 3, 0) < best);
    /* once it is expected, it promises less */
    tl_decision decisions[NAMES];
    tl_point point = make(decisions, 5, 2, 3);
    tl_surrogate_expect(s, &point, NULL);
    assert_true(gain_of(s, 5, 2, 3, 0) < best / 2);
    tl_surrogate_destroy(s);
}

/* Beside the first answer to a nobody is asked for b: an idea with both promises what the point without b does. */
static void answers_that_are_not_asked_for_do_not_count(void **state)
{
    (void)state;
    tl_surrogate *s = tl_surrogate_create(0);
    tl_decision decisions[NAMES];
    for (int i = 0; i < 24; i++) {
        tl_point point = make(decisions, i % 4, i % 5, i % 3);
        if (i % 4 == 0) {
            decisions[1] = decisions[2];
            point.count = 2;
        }
        assert_true(tl_surrogate_add(s, &point, i % 4 == 0 ? 0.7 : 0.1 * (i % 5), NULL));
    }
    assert_true(tl_surrogate_solve(s));
    tl_point idea = make(decisions, 0, 0, 1);
    double taken_as_it_is = tl_surrogate_gain(s, &idea, NULL, 0),
           hope = tl_surrogate_hope(s, &idea, 0);
    decisions[1] = decisions[2];
    idea.count = 2;
    assert_true(hope < taken_as_it_is);
    assert_true(hope == tl_surrogate_gain(s, &idea, NULL, 0));
    idea = make(decisions, 2, 0, 1); /* here it is asked for */
    assert_true(tl_surrogate_hope(s, &idea, 0) == tl_surrogate_gain(s, &idea, NULL, 0));
    tl_surrogate_destroy(s);
}

/* Times that follow the guesses: a better guess promises more, whatever the decisions. */
static void guesses_are_believed(void **state)
{
    (void)state;
    tl_surrogate *s = taught(true);
    assert_true(gain_of(s, 1, 1, 1, -3) > gain_of(s, 1, 1, 1, 0));
    assert_true(gain_of(s, 1, 1, 1, 0) >= gain_of(s, 1, 1, 1, 20));
    tl_surrogate_destroy(s);
}

/* Of several guesses each is believed as far as it is right: one that says the opposite, or anything, not at all, and what
 * two say alike is not counted twice. */
static void wrong_guesses_are_not_believed(void **state)
{
    (void)state;
    tl_surrogate *s = tl_surrogate_create(4);
    for (int i = 0; i < 60; i++) {
        tl_decision decisions[NAMES];
        tl_point point = make(decisions, i * 5 % OPTIONS, i * 3 % 7, i % OPTIONS);
        double time = 0.02 * (i * 7 % 17);
        const double guesses[] = { -time, 0.01 * (i * 11 % 29), time, time };
        assert_true(tl_surrogate_add(s, &point, time, guesses));
    }
    assert_true(tl_surrogate_solve(s));
    const double *slopes = tl_surrogate_slopes(s);
    assert_true(slopes[0] == 0);
    assert_true(slopes[1] < 0.15);
    assert_true(slopes[2] + slopes[3] > 0.6 && slopes[2] + slopes[3] < 1.2);
    assert_true(fabs(slopes[2] - slopes[3]) < 0.05);
    tl_surrogate_destroy(s);
}

/* What is known of one amount says as much of 0 as what is known of another. */
static double gain_of_nothing(int known)
{
    static const int64_t amounts[] = { 0, 1, 2, 32 };
    tl_surrogate *s = tl_surrogate_create(0);
    tl_decision fetch = { "x.fetch", 4, amounts, 0, known };
    tl_point point = { 0, 1, &fetch };
    for (int i = 0; i < 8; i++)
        assert_true(tl_surrogate_add(s, &point, 0.01 * i, NULL));
    assert_true(tl_surrogate_solve(s));
    fetch.taken = 0;
    double gain = tl_surrogate_gain(s, &point, NULL, 0);
    tl_surrogate_destroy(s);
    return gain;
}

static void nothing_is_no_amount(void **state)
{
    (void)state;
    assert_true(gain_of_nothing(1) > 0);
    assert_true(gain_of_nothing(1) == gain_of_nothing(2));
    assert_true(gain_of_nothing(1) == gain_of_nothing(3));
}

static void it_has_an_end(void **state)
{
    (void)state;
    tl_surrogate *s = tl_surrogate_create(0);
    assert_false(tl_surrogate_solve(s));
    tl_decision decisions[NAMES];
    tl_point point = make(decisions, 1, 1, 1);
    for (int i = 0; i < TL_SURROGATE_POINTS; i++)
        assert_true(tl_surrogate_add(s, &point, 1, NULL)); /* all the same: no trouble */
    assert_false(tl_surrogate_add(s, &point, 1, NULL));
    assert_true(tl_surrogate_solve(s));
    assert_true(isfinite(gain_of(s, 2, 2, 2, 0)));
    tl_surrogate_expect(s, &point, NULL);
    tl_surrogate_clear(s);
    assert_true(tl_surrogate_add(s, &point, 1, NULL));
    tl_surrogate_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bottom_promises_most),
        cmocka_unit_test(answers_that_are_not_asked_for_do_not_count),
        cmocka_unit_test(guesses_are_believed),
        cmocka_unit_test(wrong_guesses_are_not_believed),
        cmocka_unit_test(nothing_is_no_amount),
        cmocka_unit_test(it_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
