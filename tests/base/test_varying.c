/* tests/base/test_varying.c: numbers that depend on dims, found from their values at samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "runtime/base/random.h"
#include "runtime/base/varying.h"
#include "runtime/base/varying_text.h"

/* The corners of a box, and two points more. */
static tl_samples sample(int dims, const int64_t *low, const int64_t *high, int64_t *points)
{
    int corners = 1 << dims;
    for (int c = 0; c < corners + 2; c++)
        for (int d = 0; d < dims; d++)
            points[c * dims + d] = c >= corners        ? low[d] + 1 + c - corners
                                   : (c >> d & 1) != 0 ? high[d]
                                                       : low[d];
    return (tl_samples){ dims, corners + 2, points };
}

static void what_is_evaluated_is_found(void **state)
{
    (void)state;
    tl_random random = tl_random_make(7);
    for (int round = 0; round < 2000; round++) {
        int dims = (int)tl_random_below(&random, TL_MOST_DIMS + 1);
        int64_t low[TL_MOST_DIMS], high[TL_MOST_DIMS], points[64], numbers[16];
        tl_varying want = { { 0 } }, got;
        for (int d = 0; d < dims; d++) {
            low[d] = tl_random_below(&random, 50);
            high[d] = low[d] + 3 + tl_random_below(&random, 4000);
        }
        for (int s = 0; s < 1 << dims; s++)
            want.of[s] = tl_random_below(&random, 3) ? 0 : tl_random_below(&random, 99) - 40;
        tl_samples samples = sample(dims, low, high, points);
        for (int i = 0; i < samples.count; i++)
            assert_true(tl_varying_at(&want, dims, tl_sample(&samples, i), &numbers[i]));
        assert_true(tl_varying_fit(&samples, numbers, &got));
        assert_memory_equal(&got, &want, sizeof want);
        numbers[samples.count - 1]++;
        assert_true(dims == 0 || !tl_varying_fit(&samples, numbers, &got));
    }
}

static void what_is_no_such_number_is_refused(void **state)
{
    (void)state;
    int64_t low = 5, high = 12, points[4], halves[4], squares[4], least[4], huge[4];
    tl_samples samples = sample(1, &low, &high, points);
    tl_varying v;
    for (int i = 0; i < samples.count; i++) {
        int64_t at = points[i];
        halves[i] = at / 2;
        squares[i] = at * at;
        least[i] = at < 10 ? at : 10;
        huge[i] = i == 1 ? INT64_MIN : INT64_MAX;
    }
    assert_false(tl_varying_fit(&samples, halves, &v));
    assert_false(tl_varying_fit(&samples, squares, &v));
    assert_false(tl_varying_fit(&samples, least, &v));
    assert_false(tl_varying_fit(&samples, huge, &v));
    v = (tl_varying){ { 1, INT64_MAX / 2 } };
    assert_true(tl_varying_at(&v, 1, &(int64_t){ 2 }, &low));
    assert_false(tl_varying_at(&v, 1, &(int64_t){ 3 }, &low));
}

static void texts(void **state)
{
    (void)state;
    const char *const names[] = { "batch", "past", NULL };
    const struct {
        tl_varying v;
        const char *text;
    } cases[] = {
        { { { 0 } }, "0" },
        { { { -7 } }, "-7" },
        { { { 0, 1 } }, "batch" },
        { { { -1, 0, 1 } }, "past - 1" },
        { { { 64, 0, 64 } }, "64*past + 64" },
        { { { 0, -1, 0, 3 } }, "3*batch*past - batch" },
        { { { 0, 0, 0, 0, 2 } }, "2*?" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_text text = { 0 };
        tl_varying_print(&cases[i].v, 3, names, &text);
        assert_string_equal(tl_text_get(&text), cases[i].text);
        tl_text_free(&text);
        assert_int_equal(tl_varying_is_constant(&cases[i].v), i < 2);
    }
}

static void texts_are_joined(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const int64_t points[] = { 5, 12, 7 };
    tl_samples samples = { 1, 3, points };
    const char *const good[] = { "a_5: f32[5, 64]\nb 0.5 %5 10.0",
                                 "a_5: f32[12, 64]\nb 0.5 %5 24.0",
                                 "a_5: f32[7, 64]\nb 0.5 %5 14.0" };
    const char *const bad[][3] = {
        { "x 5\ny 3", "x 12\ny 6", "x 7\ny 3" },
        { "x 1.5", "x 1.12", "x 1.7" },
        { "x5", "x12", "x7" },
        { "x 5", "x 12", "x 7 y" },
        { "x 5 y", "x 12 y", "x 7 z" },
        { "x 5", "x -12", "x 7" },
        { "x 25", "x 144", "x 49" },
    };
    tl_varying_text t;
    tl_diag diag = { "" };
    assert_int_equal(tl_varying_text_join(arena, good, &samples, &t, &diag), TL_OK);
    assert_int_equal(t.hole_count, 2);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            assert_int_equal(tl_varying_text_is(&t, &points[i], good[k]), i == k);
    assert_true(tl_varying_text_is(&t, &(int64_t){ 100 }, "a_5: f32[100, 64]\nb 0.5 %5 2e+02"));
    assert_false(tl_varying_text_is(&t, &(int64_t){ 100 }, "a_5: f32[100, 64]\nb 0.5 %5 2000.0"));
    assert_false(tl_varying_text_is(&t, &(int64_t){ 100 }, "a_5: f32[100, 64]\nb 0.5 %5 200.0 "));
    assert_false(tl_varying_text_is(&t, &(int64_t){ 100 }, "a_5: f32["));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(tl_varying_text_join(arena, bad[i], &samples, &t, &diag), TL_UNSUPPORTED);
    assert_int_equal(tl_varying_text_join(arena, bad[0], &samples, &t, &diag), TL_UNSUPPORTED);
    assert_non_null(strstr(diag.text, "'y 3' or 'y 3'"));
    tl_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_evaluated_is_found),
        cmocka_unit_test(what_is_no_such_number_is_refused),
        cmocka_unit_test(texts),
        cmocka_unit_test(texts_are_joined),
    };
    return cmocka_run_group_tests_name("varying", tests, NULL, NULL);
}
