/* tests/runtime/test_executable_dims.c: one executable for shapes that vary.
 *
 *     x [batch, n + 1] --twice: two phases, scratch--> a [batch, n + 1] --add(a)--> y         a --copy--> y2 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/random.h"
#include "runtime/executable/executable.h"

enum { V_X, V_A, V_Y, V_Y2, VALUES, MOST = 600 };

static int64_t elements(const int64_t *dims)
{
    return dims[0] * (dims[1] + 1);
}

static void twice_0(const tl_kernel_args *args, int64_t begin, int64_t end, int thread)
{
    const float *x = args->buffers[0];
    float *scratch = (float *)args->scratch, *mine;
    mine = (float *)(args->thread_scratch + thread * args->thread_scratch_stride);
    for (int64_t i = begin; i < end; i++) {
        mine[i % args->dims[0]] = x[i];
        scratch[i] = 2 * mine[i % args->dims[0]];
    }
}

static void twice_1(const tl_kernel_args *args, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        ((float *)args->buffers[1])[i] = ((float *)args->scratch)[elements(args->dims) - 1 - i];
}

static void twice_sizes(const int64_t *dims, int64_t *extents, int64_t *scratch,
                        int64_t *thread_scratch)
{
    extents[0] = extents[1] = elements(dims);
    *scratch = 4 * elements(dims);
    *thread_scratch = 4 * dims[0];
}

static void add_0(const tl_kernel_args *args, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        ((float *)args->buffers[1])[i] = ((float *)args->buffers[0])[i] + 1;
}

static void add_sizes(const int64_t *dims, int64_t *extents, int64_t *scratch,
                      int64_t *thread_scratch)
{
    extents[0] = elements(dims);
    *scratch = *thread_scratch = 0;
}

static const tl_executable_dim dims[2] = { { "batch", 1, 8, 2 }, { "n", 0, MOST, 3 } };
static const tl_varying extents[2] = { { { 0, 1 } }, { { 1, 0, 1 } } };
static tl_pool *pool;

static tl_executable_value value(const char *name, tl_place place, int port)
{
    return (tl_executable_value){ .name = name,
                                  .place = place,
                                  .port = port,
                                  .size = 4 * 2 * 4,
                                  .factor_count = 2,
                                  .factors = extents,
                                  .unit = 4 };
}

static tl_status make(const tl_varying *shape, tl_executable **out, tl_diag *diag)
{
    static tl_phase_fn *const twice[2] = { twice_0, twice_1 }, *const add[1] = { add_0 };
    static const int first[2] = { V_X, V_A }, second[2] = { V_A, V_Y }, copy[2] = { V_A, V_Y2 };
    tl_port ports[3];
    for (int i = 0; i < 3; i++)
        ports[i] = (tl_port){ .name = i == 0   ? "x"
                                      : i == 1 ? "y"
                                               : "y2",
                              .dtype = TL_F32,
                              .rank = 2,
                              .shape = { 2, 4 },
                              .varying = shape };
    tl_executable_value values[VALUES] = { value("x", TL_PLACE_INPUT, 0),
                                           value("a", TL_PLACE_ARENA, -1),
                                           value("y", TL_PLACE_OUTPUT, 0),
                                           value("y2", TL_PLACE_OUTPUT, 1) };
    tl_executable_kernel kernels[2] = {
        { .descriptor = { "twice", 2, NULL, 0, 0, true, 2, 2 },
          .phases = twice,
          .sizes = twice_sizes },
        { .descriptor = { "add", 1, NULL, 0, 0, true, 2, 2 }, .phases = add, .sizes = add_sizes },
    };
    tl_executable_step steps[3] = {
        { .name = "twice", .kernel = 0, .value_count = 2, .values = first },
        { .name = "add", .kernel = 1, .value_count = 2, .values = second },
        { .name = "copy", .kernel = TL_STEP_COPY, .value_count = 2, .values = copy }
    };
    tl_executable_spec spec = { .model = "varying",
                                .dim_count = 2,
                                .dims = dims,
                                .input_count = 1,
                                .output_count = 2,
                                .value_count = VALUES,
                                .kernel_count = 2,
                                .step_count = 3,
                                .inputs = ports,
                                .outputs = ports + 1,
                                .values = values,
                                .kernels = kernels,
                                .steps = steps };
    return tl_executable_create(&spec, out, diag);
}

static void check_run(tl_runner *r, int64_t batch, int64_t n)
{
    int64_t at[2] = { batch, n }, count = elements(at);
    tl_tensor x, y[2] = { { 0 } };
    assert_int_equal(tl_runner_set_dims(r, at, NULL), TL_OK);
    assert_memory_equal(tl_runner_dims(r), at, sizeof at);
    assert_int_equal(tl_tensor_create(TL_F32, 2, (int64_t[]){ batch, n + 1 }, &x, NULL), TL_OK);
    for (int64_t i = 0; i < count; i++)
        ((float *)x.data)[i] = (float)i;
    assert_int_equal(tl_runner_run_tensors(r, &x, y, NULL, NULL), TL_OK);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(y[k].shape[0], batch);
        assert_int_equal(y[k].shape[1], n + 1);
        for (int64_t i = 0; i < count; i++)
            assert_true(((float *)y[k].data)[i] == (float)(2 * (count - 1 - i) + (k == 0)));
        tl_tensor_free(&y[k]);
    }
    tl_tensor_free(&x);
}

static void every_shape_runs(void **state)
{
    (void)state;
    tl_executable *x;
    tl_runner *r;
    tl_random random = tl_random_make(3);
    assert_int_equal(make(extents, &x, NULL), TL_OK);
    for (int threads = 1; threads <= 3; threads++) {
        assert_int_equal(tl_runner_create(x, pool, threads, &r, NULL), TL_OK);
        assert_int_equal(tl_runner_dims(r)[1], 3);
        for (int i = 0; i < 100; i++)
            check_run(r, 1 + tl_random_below(&random, 8), tl_random_below(&random, MOST + 1));
        tl_runner_destroy(r);
    }
    tl_executable_destroy(x);
}

/* What was large enough is kept; the plan says what is used of it. */
static void memory_grows_where_it_must(void **state)
{
    (void)state;
    tl_executable *x;
    tl_runner *r;
    assert_int_equal(make(extents, &x, NULL), TL_OK);
    assert_int_equal(tl_runner_create(x, pool, 2, &r, NULL), TL_OK);
    int64_t small = tl_runner_memory(r).planned;
    check_run(r, 8, MOST);
    int64_t large = tl_runner_memory(r).planned;
    assert_true(large >= 2 * 4 * 8 * (MOST + 1) && large > small);
    check_run(r, 2, 3);
    assert_int_equal(tl_runner_memory(r).planned, small);
    tl_runner_destroy(r);
    tl_executable_destroy(x);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    tl_executable *x;
    tl_runner *r;
    tl_diag diag = { 0 };
    tl_packed packed;
    const tl_varying other[2] = { { { 0, 1 } }, { { 0, 0, 1 } } };
    assert_int_equal(make(other, &x, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "the shape of x is another than its dims make"));
    assert_int_equal(make(extents, &x, NULL), TL_OK);
    assert_int_equal(tl_executable_pack(x, true, &packed, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "has no object"));
    assert_int_equal(tl_runner_create(x, pool, 2, &r, NULL), TL_OK);
    assert_int_equal(tl_runner_set_dims(r, (int64_t[]){ 9, 3 }, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "batch: 9 is not in 1..8"));
    assert_int_equal(tl_runner_set_dims(r, (int64_t[]){ 1, MOST + 1 }, &diag), TL_BAD_ARGUMENT);
    check_run(r, 3, 0); /* they stayed what they were */
    tl_tensor input, outputs[2] = { { 0 } };
    assert_int_equal(tl_tensor_create(TL_F32, 2, (int64_t[]){ 3, 2 }, &input, NULL), TL_OK);
    assert_int_equal(tl_runner_run_tensors(r, &input, outputs, NULL, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "the model wants f32[3, 1]"));
    tl_tensor_free(&input);
    tl_runner_destroy(r);
    tl_executable_destroy(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape_runs),
        cmocka_unit_test(memory_grows_where_it_must),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    tl_pool_options options = { .threads = 3, .pin = TL_PIN_NEVER };
    if (tl_pool_create(&options, &pool, NULL) != TL_OK)
        return 1;
    int failed = cmocka_run_group_tests_name("executables with dims", tests, NULL, NULL);
    tl_pool_destroy(pool);
    return failed;
}
