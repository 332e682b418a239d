/* tests/driver/test_long_models.c: long chains and wide nodes, through the whole compiler. The lengths are such that what
 * grows with the square of them, or faster, does not end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "driver/pipeline/model.h"
#include "tests/support/long_models.h"

static tl_pool *pool;

static int set_up(void **state)
{
    (void)state;
    return tl_pool_create(&(tl_pool_options){ .threads = 2 }, &pool, NULL) == TL_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    tl_pool_destroy(pool);
    return 0;
}

static tl_model *load(const char *name, int length, bool inspect_only)
{
    const tl_model_options options = { .no_cache = true,
                                       .no_database = true,
                                       .threads = 2,
                                       .inspect_only = inspect_only,
                                       .pool = pool };
    tl_text file = long_model(name, length);
    tl_model *model;
    tl_diag diag = { 0 };
    if (tl_model_load_memory(file.data, file.size, NULL, &options, &model, &diag) != TL_OK)
        fail_msg("%s of %d: %s", name, length, diag.text);
    tl_text_free(&file);
    return model;
}

/* As long as makes what is not linear plain, and its kernels are scheduled in seconds. */
static const struct {
    const char *name;
    int length, kernels; /* at most */
} cases[] = {
    { "add", 10000, 170 },
    { "mul_sigmoid", 10000, 340 },
    { "add_tanh_mul", 3000, 3000 },
    { "fibonacci", 10000, 10000 },
    { "where", 10000, 340 },
    { "relu", 20000, 340 },
    { "one_reader_each", 20000, 340 },
    { "identity", 20000, 1 },
    { "transpose", 20000, 1 },
    { "reshape", 300, 12 },
    { "conv", 3000, 3000 },
    { "matmul", 10000, 10000 },
    { "layer_norm", 3000, 3001 },
    { "constants", 10000, 170 },
    { "inputs", 10000, 170 },
    { "outputs", 10000, 10001 },
    { "concat", 5000, 170 },
    { "concat_each", 20000, 700 },
    { "sum", 10000, 170 },
    { "split", 20000, 1 },
};

static void every_model_has_a_case(void **state)
{
    (void)state;
    for (int i = 0; long_model_name(i) != NULL; i++) {
        size_t k = 0;
        while (k < sizeof cases / sizeof cases[0] && strcmp(cases[k].name, long_model_name(i)) != 0)
            k++;
        if (k == sizeof cases / sizeof cases[0])
            fail_msg("%s has no case", long_model_name(i));
    }
}

static void long_models_are_scheduled(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        tl_model *model = load(cases[k].name, cases[k].length, true);
        int kernels = tl_model_get_facts(model)->kernel_count;
        if (kernels < 1 || kernels > cases[k].kernels)
            fail_msg("%s of %d: %d kernels", cases[k].name, cases[k].length, kernels);
        tl_model_destroy(model);
    }
}

/* y of an x of ones, which is a chain of doublings, of exchanges, or x again and again. */
static void expect_result(const char *name, int length, int count, const float *want, int wanted)
{
    tl_model *model = load(name, length, false);
    tl_runner *runner;
    tl_diag diag = { 0 };
    float *x = aligned_alloc(64, 64 * 16),
          *y = aligned_alloc(64, ((size_t)count * 4 + 63) / 64 * 64);
    for (int i = 0; i < 16 * 16; i++)
        x[i] = (float)(1 + i % 4);
    if (tl_runner_create(tl_model_executable(model), pool, 2, &runner, &diag) != TL_OK ||
        tl_runner_run(runner, (const void *const[]){ x }, (void *const[]){ y }, NULL, &diag) !=
            TL_OK)
        fail_msg("%s of %d: %s", name, length, diag.text);
    for (int i = 0; i < count; i++)
        if (y[i] != want[i % wanted])
            fail_msg("%s of %d: element %d is %g, should be %g", name, length, i, (double)y[i],
                     (double)want[i % wanted]);
    free(x);
    free(y);
    tl_runner_destroy(runner);
    tl_model_destroy(model);
}

static void long_models_run(void **state)
{
    (void)state;
    expect_result("add", 100, 4, (float[]){ 0x1p100f, 0x2p100f, 0x3p100f, 0x4p100f }, 4);
    expect_result("relu", 2000, 4, (float[]){ 1, 2, 3, 4 }, 4);
    expect_result("one_reader_each", 999, 4, (float[]){ 1000, 2000, 3000, 4000 }, 4);
    expect_result("matmul", 301, 4, (float[]){ 2, 1, 4, 3 }, 4);
    expect_result("concat", 100, 1200, (float[]){ 1, 2, 3, 4 }, 4);
    expect_result("sum", 1000, 12, (float[]){ 1000, 2000, 3000, 4000 }, 4);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_has_a_case),
        cmocka_unit_test(long_models_are_scheduled),
        cmocka_unit_test(long_models_run),
    };
    return cmocka_run_group_tests_name("long models", tests, set_up, tear_down);
}
