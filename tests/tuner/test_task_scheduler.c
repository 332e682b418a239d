/* tests/tuner/test_task_scheduler.c: the gradient as it is written down, warm-up, rest, retirement, ties. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "tuner/run/task_scheduler.h"

static tl_task_scheduler *make(tl_arena *arena, const tl_scheduled_task *tasks, int count)
{
    return tl_task_scheduler_create(arena, tasks, count, 1);
}

static void near(double actual, double expected)
{
    if (!(fabs(actual - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.12g instead of %.12g", actual, expected);
}

/* One round of the task, with that result. */
static bool round_of(tl_task_scheduler *s, int task, double best)
{
    assert_int_equal(tl_task_scheduler_next(s), task);
    return tl_task_scheduler_finish(s, task, best);
}

static void the_gradient_is_ansors(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const tl_scheduled_task tasks[] = { { 3, 1000, "conv" } };
    tl_task_scheduler *s = make(arena, tasks, 1);
    assert_int_equal(tl_task_scheduler_next(s), -1);
    tl_task_scheduler_open(s, 0, 100);
    static const double best[] = { 90, 80, 75, 72 };
    for (int i = 0; i < 4; i++)
        round_of(s, 0, best[i]);
    /* t = 4, g(4) = 72, g(1) = 90 */
    near(tl_task_scheduler_gradient(s, 0), 3 * (0.2 * (72 - 90) / 3 + 0.8 * (72 - 72.0 / 4 - 72)));
    assert_int_equal(tl_task_scheduler_next(s), 0); /* in flight: counts as a round */
    near(tl_task_scheduler_gradient(s, 0), 3 * (0.2 * (72 - 90) / 3 + 0.8 * (72 - 72.0 / 5 - 72)));
    tl_arena_destroy(arena);
}

static void a_group_promises_what_its_best_reaches(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const tl_scheduled_task tasks[] = { { 1, 1000, "conv" },
                                        { 1, 1100, "conv" },
                                        { 1, 1000, "gemm" } };
    tl_task_scheduler *s = make(arena, tasks, 3);
    tl_task_scheduler_open(s, 0, 1000); /* 1 flop a ns */
    tl_task_scheduler_open(s, 1, 110);  /* 10 of them */
    tl_task_scheduler_open(s, 2, 1000); /* no part of the group */
    round_of(s, 0, 1000);
    round_of(s, 2, 1000);
    assert_int_equal(tl_task_scheduler_next(s), 1);
    tl_task_scheduler_finish(s, 1, 110);
    for (int i = 0; i < 3; i++) { /* t grows: what g - g/t promises shrinks */
        int next = tl_task_scheduler_next(s);
        tl_task_scheduler_finish(s, next, next == 1 ? 110 : 1000);
    }
    int again = tl_task_scheduler_next(s);
    tl_task_scheduler_finish(s, again, again == 1 ? 110 : 1000);
    /* 2*1000/10 = 200 is less than 1000 - 1000/t for t >= 2 */
    near(tl_task_scheduler_gradient(s, 0), 0.8 * (200 - 1000));
    assert_true(tl_task_scheduler_gradient(s, 2) > -0.8 * 500 - 1e-9);
    tl_arena_destroy(arena);
}

static void each_task_once_and_the_largest_first(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const tl_scheduled_task tasks[] = {
        { 1, 10, "a" }, { 5, 10, "b" }, { 1, 10, "c" }, { 1, 10, "d" }
    };
    tl_task_scheduler *s = make(arena, tasks, 4);
    tl_task_scheduler_open(s, 0, 100);
    tl_task_scheduler_open(s, 1, 100);
    tl_task_scheduler_open(s, 2, 300);
    tl_task_scheduler_open(s, 3, 0.01); /* negligible: waits */
    assert_int_equal(tl_task_scheduler_next(s), 1);
    assert_int_equal(tl_task_scheduler_next(s), 2);
    assert_int_equal(tl_task_scheduler_next(s), 0);
    for (int i = 0; i < 3; i++)
        assert_int_not_equal(tl_task_scheduler_next(s), 3);
    tl_task_scheduler_retire(s, 0);
    tl_task_scheduler_retire(s, 1);
    tl_task_scheduler_retire(s, 2);
    assert_int_equal(tl_task_scheduler_next(s), 3);
    tl_task_scheduler_retire(s, 3);
    assert_int_equal(tl_task_scheduler_next(s), -1);
    tl_arena_destroy(arena);
}

static void without_a_gain_it_rests(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const tl_scheduled_task tasks[] = { { 1, 10, "a" } };
    tl_task_scheduler *s = make(arena, tasks, 1);
    tl_task_scheduler_open(s, 0, 100);
    for (int i = 0; i < 5; i++)
        assert_false(round_of(s, 0, 100 - 0.01 * i)); /* noise is no gain */
    assert_true(round_of(s, 0, 99.9));
    assert_true(tl_task_scheduler_rests(s, 0));
    assert_int_equal(tl_task_scheduler_next(s), -1);
    tl_task_scheduler_wake(s); /* twice as patient */
    assert_false(round_of(s, 0, 90));
    for (int i = 0; i < 11; i++)
        assert_false(round_of(s, 0, 90));
    assert_true(round_of(s, 0, 90));
    tl_arena_destroy(arena);
}

static void what_has_nothing_to_offer_waits_or_goes(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const tl_scheduled_task tasks[] = { { 1, 10, "a" } };
    tl_task_scheduler *s = make(arena, tasks, 1);
    tl_task_scheduler_open(s, 0, 100);
    assert_int_equal(tl_task_scheduler_next(s), 0);
    assert_int_equal(tl_task_scheduler_next(s), 0);
    tl_task_scheduler_defer(s, 0);
    assert_int_equal(tl_task_scheduler_next(s), -1);
    tl_task_scheduler_finish(s, 0, 100);
    assert_int_equal(tl_task_scheduler_next(s), 0);
    tl_task_scheduler_defer(s, 0); /* nothing is in flight: it is over */
    assert_int_equal(tl_task_scheduler_next(s), -1);
    tl_task_scheduler_wake(s);
    assert_int_equal(tl_task_scheduler_next(s), -1);
    tl_arena_destroy(arena);
}

/* Ties go by the seed, and the same seed decides the same. */
static void ties_are_drawn(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const tl_scheduled_task tasks[] = { { 1, 10, "a" }, { 1, 10, "b" }, { 1, 10, "c" } };
    int first[3] = { 0 };
    for (uint64_t seed = 0; seed < 60; seed++) {
        int got[2];
        for (int again = 0; again < 2; again++) {
            tl_task_scheduler *s = tl_task_scheduler_create(arena, tasks, 3, seed);
            for (int i = 0; i < 3; i++)
                tl_task_scheduler_open(s, i, 100);
            got[again] = tl_task_scheduler_next(s);
        }
        assert_int_equal(got[0], got[1]);
        first[got[0]]++;
    }
    for (int i = 0; i < 3; i++)
        assert_true(first[i] > 5);
    tl_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gradient_is_ansors),
        cmocka_unit_test(a_group_promises_what_its_best_reaches),
        cmocka_unit_test(each_task_once_and_the_largest_first),
        cmocka_unit_test(without_a_gain_it_rests),
        cmocka_unit_test(what_has_nothing_to_offer_waits_or_goes),
        cmocka_unit_test(ties_are_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
