/* tests/runtime/test_shared_phases.c: phases that are long enough are shared out while they run, and the results are the same
 * bits whoever takes what; a model of no phase, and of ten thousand tiny ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/clock.h"
#include "runtime/executable/runner_private.h"
#include "tests/support/patience.h"

enum { CELLS = 64, STEPS = 6, TINY = 10000 };

/* y[i] from x[i] and its neighbour, exact in none of its steps: another order would be other bits. */
static void blend(const tl_kernel_args *args, int64_t begin, int64_t end, int64_t each_ns)
{
    const float *x = args->buffers[0];
    float *y = args->buffers[1];

    for (int64_t i = begin; i < end; i++) {
        int64_t until = each_ns > 0 ? tl_clock_ns() + each_ns : 0;
        y[i] = x[i] * 1.37f + x[(i + 1) % CELLS] / 3;
        while (until > 0 && tl_clock_ns() < until)
            ;
    }
}

static void long_phase(const tl_kernel_args *args, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    blend(args, begin, end, 4000);
}

static void short_phase(const tl_kernel_args *args, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    blend(args, begin, end, 0);
}

static void tiny_phase(const tl_kernel_args *args, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        ((float *)args->buffers[1])[i] = ((const float *)args->buffers[0])[i] + 1;
}

enum { LONG, SHORT, PAIR, KERNELS };
enum { X, Y, A, B, VALUES };

/* x through `count` steps, a and b by turns between. */
static tl_executable *make(const int *kinds, int count)
{
    static const int64_t cells = CELLS, two = 2;
    static tl_phase_fn *phases[KERNELS] = { long_phase, short_phase, tiny_phase };
    static const tl_port ports[2] = {
        { .name = "x", .dtype = TL_F32, .rank = 1, .shape = { CELLS } },
        { .name = "y", .dtype = TL_F32, .rank = 1, .shape = { CELLS } }
    };
    static const tl_executable_value values[VALUES] = {
        [X] = { .name = "x", .place = TL_PLACE_INPUT, .size = 4 * CELLS },
        [Y] = { .name = "y", .place = TL_PLACE_OUTPUT, .size = 4 * CELLS },
        [A] = { .name = "a", .place = TL_PLACE_ARENA, .size = 4 * CELLS },
        [B] = { .name = "b", .place = TL_PLACE_ARENA, .size = 4 * CELLS },
    };
    tl_executable_kernel kernels[KERNELS];
    tl_executable_step *steps = calloc((size_t)count + 1, sizeof *steps);
    int(*uses)[2] = calloc((size_t)count + 1, sizeof *uses);
    tl_executable *x;
    tl_diag diag = { 0 };

    for (int k = 0; k < KERNELS; k++)
        kernels[k] = (tl_executable_kernel){
            .key = "k",
            .descriptor = { .name = "k",
                            .phase_count = 1,
                            .extents = k == PAIR ? &two : &cells,
                            .buffer_count = 2 },
            .phases = &phases[k],
        };
    for (int s = 0; s < count; s++) {
        uses[s][0] = s == 0 ? X : s % 2 == 1 ? A : B;
        uses[s][1] = s == count - 1 ? Y : s % 2 == 0 ? A : B;
        steps[s] = (tl_executable_step){
            .name = "s", .kernel = kinds[s], .value_count = 2, .values = uses[s]
        };
    }
    tl_executable_spec spec = { .model = "chain",
                                .input_count = count > 0,
                                .output_count = count > 0,
                                .value_count = VALUES,
                                .kernel_count = KERNELS,
                                .step_count = count,
                                .inputs = &ports[0],
                                .outputs = &ports[1],
                                .values = values,
                                .kernels = kernels,
                                .steps = steps };
    if (count == 0)
        spec.value_count = 0;
    if (tl_executable_create(&spec, &x, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    free(steps);
    free(uses);
    return x;
}

static tl_runner *make_runner(const tl_executable *x, tl_pool *pool, int threads)
{
    tl_runner *r;
    tl_diag diag = { 0 };

    if (tl_runner_create(x, pool, threads, &r, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return r;
}

static float in[CELLS] __attribute__((aligned(64))), out[CELLS] __attribute__((aligned(64)));

static void run(tl_runner *r)
{
    tl_diag diag = { 0 };

    memset(out, 0, sizeof out);
    if (tl_runner_run(r, (const void *[]){ in }, (void *[]){ out }, NULL, &diag) != TL_OK)
        fail_msg("%s", diag.text);
}

static tl_pool *make_pool(int threads)
{
    tl_pool *pool;
    assert_int_equal(tl_pool_create(&(tl_pool_options){ .threads = threads }, &pool, NULL), TL_OK);
    return pool;
}

static void the_same_bits(void **state)
{
    static const int kinds[STEPS] = { LONG, SHORT, LONG, LONG, SHORT, LONG };
    float want[CELLS];

    (void)state;
    for (int i = 0; i < CELLS; i++)
        in[i] = (float)(i * 37 % 101) / 7;
    tl_pool *pool = make_pool(4);
    tl_executable *x = make(kinds, STEPS);
    tl_runner *alone = make_runner(x, pool, 1);
    run(alone);
    memcpy(want, out, sizeof want);
    for (int threads = 2; threads <= 4; threads++) {
        tl_runner *r = make_runner(x, pool, threads);
        for (int i = 0; i < 70; i++) {
            run(r);
            assert_memory_equal(out, want, sizeof want);
        }
        for (int c = 0; c < STEPS; c++)
            if (kinds[c] == LONG)
                assert_true(r->calls[c].piece > 0 && r->calls[c].piece < CELLS / threads);
            else if (PATIENCE == 1)
                assert_int_equal(r->calls[c].piece, 0);
        tl_runner_destroy(r);
    }
    for (int c = 0; c < STEPS; c++)
        assert_int_equal(alone->calls[c].piece, 0);
    tl_runner_destroy(alone);
    tl_executable_destroy(x);
    tl_pool_destroy(pool);
}

static void no_phase(void **state)
{
    (void)state;
    tl_pool *pool = make_pool(2);
    tl_executable *x = make(NULL, 0);
    tl_runner *r = make_runner(x, pool, 2);
    for (int i = 0; i < 100; i++)
        assert_int_equal(tl_runner_run(r, NULL, NULL, NULL, NULL), TL_OK);
    tl_runner_destroy(r);
    tl_executable_destroy(x);
    tl_pool_destroy(pool);
}

static void ten_thousand_tiny_phases(void **state)
{
    (void)state;
    int *kinds = calloc(TINY, sizeof *kinds);
    for (int s = 0; s < TINY; s++)
        kinds[s] = PAIR;
    tl_pool *pool = make_pool(2);
    tl_executable *x = make(kinds, TINY);
    tl_runner *r = make_runner(x, pool, 2);
    for (int i = 0; i < CELLS; i++)
        in[i] = (float)i;
    for (int i = 0; i < 6; i++) {
        run(r);
        assert_true(out[0] == TINY && out[1] == TINY + 1);
    }
    tl_runner_destroy(r);
    tl_executable_destroy(x);
    tl_pool_destroy(pool);
    free(kinds);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bits),
        cmocka_unit_test(no_phase),
        cmocka_unit_test(ten_thousand_tiny_phases),
    };
    return cmocka_run_group_tests_name("shared phases", tests, NULL, NULL);
}
