/* tests/base/test_statistics.c: intervals of medians. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "runtime/base/random.h"
#include "runtime/base/statistics.h"

/* Median and interval of known samples. For 20 values the interval is that of the order statistics 6 and 15 (96.1 %), for
 * 6 all of them (96.9 %), for 5 nothing can be said. */
static void intervals(void **state)
{
    (void)state;
    double values[20];
    for (int i = 0; i < 20; i++)
        values[i] = (i * 7) % 20 + 1; /* 1..20 in disorder */
    tl_interval i = tl_median_interval(values, 20);
    assert_true(i.median == 10.5 && i.low == 6 && i.high == 15);
    double six[] = { 6, 5, 4, 3, 2, 1 };
    i = tl_median_interval(six, 6);
    assert_true(i.median == 3.5 && i.low == 1 && i.high == 6);
    i = tl_median_interval(six, 5);
    assert_true(i.median == 3 && isinf(i.low) && isinf(i.high) && i.low < 0);
    assert_true(isnan(tl_median_interval(six, 0).median));
}

/* The interval of samples of one distribution misses its median about as often as it says: 5 % or less. */
static void intervals_keep_their_word(void **state)
{
    (void)state;
    tl_random random = tl_random_make(11);
    int missed = 0;
    for (int trial = 0; trial < 2000; trial++) {
        double values[25];
        for (int i = 0; i < 25; i++) {
            double u = tl_random_unit(&random);
            values[i] = u * u * u; /* skewed; the median is 1/8 */
        }
        tl_interval i = tl_median_interval(values, 25);
        missed += i.low > 0.125 || i.high < 0.125;
    }
    assert_in_range(missed, 20, 120);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals),
        cmocka_unit_test(intervals_keep_their_word),
    };
    return cmocka_run_group_tests_name("base statistics", tests, NULL, NULL);
}
