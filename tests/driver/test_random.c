/* tests/driver/test_random.c: random numbers that models make: how they are distributed, and that runs agree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "tests/driver/run_text.h"

enum { MANY = 20000 };

typedef struct {
    double mean, deviation, least, most;
} facts;

static facts facts_of(const tl_tensor *t)
{
    facts f = { 0, 0, INFINITY, -INFINITY };
    for (int64_t i = 0; i < tl_tensor_elements(t); i++) {
        double x = tl_tensor_get(t, i);
        f.mean += x;
        f.deviation += x * x;
        f.least = fmin(f.least, x);
        f.most = fmax(f.most, x);
    }
    f.mean /= (double)tl_tensor_elements(t);
    f.deviation = sqrt(f.deviation / (double)tl_tensor_elements(t) - f.mean * f.mean);
    return f;
}

static facts run_once(running *r, const double *const *inputs, int output, tl_tensor *outputs)
{
    tl_diag diag;
    if (run(r, inputs, outputs, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return facts_of(&outputs[output]);
}

static void free_all(running *r, tl_tensor *outputs)
{
    for (int i = 0; i < r->spec->output_count; i++)
        tl_tensor_free(&outputs[i]);
}

static void random_numbers_are_distributed(void **state)
{
    (void)state;
    tl_tensor out[4];
    static double half[MANY];
    for (int i = 0; i < MANY; i++)
        half[i] = 0.25;
    running r = load("opset 22; input x f32 20000; node RandomUniformLike x -> u low=-1.0 high=3.0;"
                     "node RandomNormalLike x -> n mean=5.0 scale=2.0;"
                     "node RandomNormal -> m shape=[100,200] seed=7.0 dtype=11;"
                     "node Bernoulli x -> b; output u; output n; output m; output b");
    facts u = run_once(&r, GIVEN(half), 0, out);
    assert_true(u.least >= -1 && u.most < 3 && u.most > 2.99 && u.least < -0.99);
    assert_true(fabs(u.mean - 1) < 0.04 && fabs(u.deviation - 4 / sqrt(12)) < 0.02);
    facts n = facts_of(&out[1]), m = facts_of(&out[2]), b = facts_of(&out[3]);
    assert_true(fabs(n.mean - 5) < 0.07 && fabs(n.deviation - 2) < 0.05);
    assert_true(fabs(m.mean) < 0.035 && fabs(m.deviation - 1) < 0.025 && m.most > 3);
    assert_int_equal(out[2].dtype, TL_F64);
    assert_true(fabs(b.mean - 0.25) < 0.015);
    free_all(&r, out);
    facts again = run_once(&r, GIVEN(half), 1, out);
    assert_true(again.mean == n.mean && again.most == n.most);
    free_all(&r, out);
    unload(&r);
}

static void seeds_decide(void **state)
{
    (void)state;
    tl_tensor out[4];
    running r = load("opset 13; input x f32 50; node RandomNormalLike x -> a seed=3.0;"
                     "node RandomNormalLike x -> b seed=3.0; node RandomNormalLike x -> c seed=4.0;"
                     "node RandomNormalLike x -> d; output a; output b; output c; output d");
    static double x[50];
    run_once(&r, GIVEN(x), 0, out);
    int same = 0;
    for (int i = 0; i < 50; i++) {
        assert_true(tl_tensor_get(&out[0], i) == tl_tensor_get(&out[1], i));
        same += tl_tensor_get(&out[0], i) == tl_tensor_get(&out[2], i);
        same += tl_tensor_get(&out[0], i) == tl_tensor_get(&out[3], i);
    }
    assert_int_equal(same, 0);
    free_all(&r, out);
    unload(&r);
}

static void classes_are_drawn(void **state)
{
    (void)state;
    tl_tensor out[1];
    running r = load("opset 13; input x f32 2,3; node Multinomial x -> y sample_size=10000 dtype=7;"
                     "output y");
    run_once(&r, GIVEN(LIST(log(0.2), log(0.5), log(0.3), -100, -100, 0)), 0, out);
    double counts[3] = { 0 };
    for (int i = 0; i < 10000; i++) {
        counts[(int)tl_tensor_get(&out[0], i)]++;
        assert_true(tl_tensor_get(&out[0], 10000 + i) == 2);
    }
    assert_true(fabs(counts[0] - 2000) < 200 && fabs(counts[1] - 5000) < 250 &&
                fabs(counts[2] - 3000) < 220);
    free_all(&r, out);
    unload(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_numbers_are_distributed),
        cmocka_unit_test(seeds_decide),
        cmocka_unit_test(classes_are_drawn),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
