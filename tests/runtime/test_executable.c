/* tests/runtime/test_executable.c: a small model of compiled kernels is made, prepared and run. */
#include <float.h>
#include <pthread.h>
#include "runtime/device/code_loader.h"
#include "tests/runtime/small_model.h"

static void makes_prepares_and_runs(void **state)
{
    (void)state;
    tl_executable *x = make();
    tl_runner *r;
    tl_diag diag = { 0 };

    assert_false(tl_executable_is_prepared(x));
    assert_int_equal(tl_runner_create(x, pool, 1, &r, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "not prepared"));
    assert_int_equal(tl_executable_prepare(x, pool, 0, &diag), TL_OK);
    assert_int_equal(tl_executable_prepare(x, pool, 0, &diag), TL_OK);
    check_all(x);
    assert_int_equal(tl_executable_find_input(x, "x"), 0);
    assert_int_equal(tl_executable_find_output(x, "y2"), 1);
    assert_int_equal(tl_executable_find_output(x, "z"), -1);

    tl_executable_sizes sizes = tl_executable_measure(x);
    assert_int_equal(sizes.constant_bytes, 2 * 4 * N);
    assert_true(sizes.prepared_bytes >= 4 * N && sizes.code_bytes > 0);
    r = make_runner(x, 2);
    tl_plan_sizes plan = tl_runner_memory(r);
    assert_true(plan.floor <= plan.planned && plan.planned <= plan.sum && plan.planned >= 8 * N);
    tl_runner_destroy(r);
    tl_executable_destroy(x);
}

/* W is packed into a temporary, and that again: P is 4*W, and a is twice what it was. */
static void prepare_steps_hand_on(void **state)
{
    static const int first[3] = { TL_NO_VALUE, V_W, VALUES },
                     second[3] = { TL_NO_VALUE, VALUES, V_P };
    tl_executable_value values[VALUES + 1];
    tl_executable_step prepare[2] = { m->prepare[0], m->prepare[0] };

    (void)state;
    memcpy(values, m->values, sizeof m->values);
    values[VALUES] =
        (tl_executable_value){ .name = "t", .place = TL_PLACE_ARENA, .size = sizeof(float[N]) };
    prepare[0].values = first;
    prepare[1].values = second;
    m->spec.values = values;
    m->spec.value_count = VALUES + 1;
    m->spec.prepare = prepare;
    m->spec.prepare_count = 2;
    for (int i = 0; i < N; i++)
        m->w[i] *= 2; /* what the check computes with; the constant itself is in the storage */
    tl_executable *x = make();
    assert_int_equal(tl_executable_prepare(x, pool, 0, NULL), TL_OK);
    check_all(x);
    tl_executable_destroy(x);
}

static void given_functions_run_too(void **state)
{
    (void)state;
    need_object();
    tl_code *code;
    tl_phase_fn *phases[KERNELS][2];
    assert_int_equal(tl_code_load(m->object.data, m->object.size, &code, NULL), TL_OK);
    for (int i = 0; i < KERNELS; i++) {
        assert_int_equal(tl_code_kernel(code, &m->kernels[i].descriptor, phases[i],
                                        &m->kernels[i].sizes, NULL),
                         TL_OK);
        m->kernels[i].phases = phases[i];
        m->kernels[i].object = NULL;
        m->kernels[i].object_size = 0;
    }
    tl_executable *x = make();
    tl_diag diag = { 0 };
    assert_int_equal(tl_executable_prepare(x, pool, 2, NULL), TL_OK);
    check_all(x);
    char *path = path_in(folder, "functions");
    assert_int_equal(tl_executable_save(x, 0, path, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "has no object"));
    free(path);
    tl_executable_destroy(x);
    tl_code_unload(code);
}

static volatile float smallest = FLT_MIN, half_of_it;

static void halve(const tl_kernel_args *args, int64_t begin, int64_t end, int thread)
{
    (void)args, (void)begin, (void)end, (void)thread;
    half_of_it = smallest * 0.5f;
}

static void subnormal_numbers_are_zero_in_a_run_only(void **state)
{
    (void)state;
    tl_phase_fn *phases[2] = { halve, halve };
    const void *inputs[1] = { NULL };
    void *outputs[2];
    for (int i = 0; i < KERNELS; i++) {
        m->kernels[i].phases = phases;
        m->kernels[i].object = NULL;
        m->kernels[i].object_size = 0;
        m->kernels[i].descriptor.has_sizes = false;
    }
    tl_executable *x = make();
    half_of_it = 1;
    assert_int_equal(tl_executable_prepare(x, pool, 1, NULL), TL_OK);
    assert_true(half_of_it == 0);
    tl_runner *r = make_runner(x, 1);
    inputs[0] = aligned_alloc(64, (N * sizeof(float) + 63) / 64 * 64);
    for (int i = 0; i < 2; i++)
        outputs[i] = aligned_alloc(64, (N * sizeof(float) + 63) / 64 * 64);
    half_of_it = 1;
    assert_int_equal(tl_runner_run(r, inputs, outputs, NULL, NULL), TL_OK);
    assert_true(half_of_it == 0);
    halve(NULL, 0, 0, 0);
    assert_true(half_of_it > 0);
    free((void *)(uintptr_t)inputs[0]);
    free(outputs[0]);
    free(outputs[1]);
    tl_runner_destroy(r);
    tl_executable_destroy(x);
}

static void copy_16(const tl_kernel_args *args, int64_t begin, int64_t end, int thread)
{
    (void)begin, (void)end, (void)thread;
    memcpy(args->buffers[1], args->buffers[0], sizeof(float[16]));
}

/* x = (p, q) becomes y = (q, p): t = (q, ?), u = p, t = (q, u), and y from t, half by half: u comes and goes while t waits
 * for its second half. Nothing but windows of x, t and y is used. */
static void windows_lie_in_ports_and_live_as_long_as_the_whole(void **state)
{
    enum { X, Y, T, U, X0, X1, Y0, Y1, T0, T1, COUNT };
    static const int pairs[5][2] = { { X1, T0 }, { X0, U }, { U, T1 }, { T0, Y0 }, { T1, Y1 } };
    static const int wholes[3] = { X, Y, T };
    static const int64_t extent = 1;
    tl_executable_value values[COUNT] = { { .name = "x", .place = TL_PLACE_INPUT, .size = 128 },
                                          { .name = "y", .place = TL_PLACE_OUTPUT, .size = 128 },
                                          { .name = "t", .place = TL_PLACE_ARENA, .size = 128 },
                                          { .name = "u", .place = TL_PLACE_ARENA, .size = 64 } };
    tl_phase_fn *phases[1] = { copy_16 };
    const tl_executable_kernel kernel = {
        .key = "copy",
        .descriptor = { .name = "copy", .phase_count = 1, .extents = &extent, .buffer_count = 2 },
        .phases = phases
    };
    const tl_port ports[2] = { { .name = "x", .dtype = TL_F32, .rank = 1, .shape = { 32 } },
                               { .name = "y", .dtype = TL_F32, .rank = 1, .shape = { 32 } } };
    tl_executable_step steps[5];
    (void)state;
    for (int i = 0; i < 6; i++)
        values[X0 + i] = (tl_executable_value){ .name = "window",
                                                .place = TL_PLACE_WINDOW,
                                                .size = 64,
                                                .whole = wholes[i / 2],
                                                .offset = i % 2 * 64 };
    for (int i = 0; i < 5; i++)
        steps[i] = (tl_executable_step){ .name = "copy", .value_count = 2, .values = pairs[i] };
    m->spec = (tl_executable_spec){ .model = "windows",
                                    .input_count = 1,
                                    .output_count = 1,
                                    .value_count = COUNT,
                                    .kernel_count = 1,
                                    .step_count = 5,
                                    .inputs = &ports[0],
                                    .outputs = &ports[1],
                                    .values = values,
                                    .kernels = &kernel,
                                    .steps = steps };
    tl_executable *x;
    tl_diag diag = { 0 };
    if (tl_executable_create(&m->spec, &x, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_runner *r = make_runner(x, 1);
    assert_int_equal(tl_runner_memory(r).planned, 192);
    float in[32] __attribute__((aligned(64))), out[32] __attribute__((aligned(64)));
    for (int i = 0; i < 32; i++)
        in[i] = (float)i;
    assert_int_equal(tl_runner_run(r, (const void *[]){ in }, (void *[]){ out }, NULL, NULL),
                     TL_OK);
    for (int i = 0; i < 32; i++)
        assert_true(out[i] == in[(i + 16) % 32]);
    tl_runner_destroy(r);
    tl_executable_destroy(x);
}

static void *run_often(void *executable)
{
    tl_runner *r;

    if (tl_runner_create(executable, pool, 0, &r, NULL) != TL_OK)
        return executable;
    bool right = true;
    for (int i = 0; i < 100 && right; i++)
        right = run_is_right(r, i);
    tl_runner_destroy(r);
    return right ? NULL : executable;
}

static void several_callers_run_at_once(void **state)
{
    (void)state;
    enum { CALLERS = 3 };
    pthread_t callers[CALLERS];
    tl_executable *x = make();

    assert_int_equal(tl_executable_prepare(x, pool, 0, NULL), TL_OK);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, run_often, x), 0);
    for (int i = 0; i < CALLERS; i++) {
        void *wrong;
        pthread_join(callers[i], &wrong);
        assert_null(wrong);
    }
    tl_executable_destroy(x);
}

static void count_hook(void *user, int step, bool after, void *const *buffers)
{
    int *calls = user;

    assert_int_equal(step, *calls / 2);
    assert_int_equal(after, *calls % 2);
    assert_non_null(buffers[0]);
    ++*calls;
}

static void tensors_hooks_and_times(void **state)
{
    (void)state;
    tl_executable *x = make();
    tl_diag diag = { 0 };
    int64_t step_ns[4] = { -1, -1, -1, -1 };
    tl_tensor input, outputs[2];

    assert_int_equal(tl_executable_prepare(x, pool, 0, NULL), TL_OK);
    tl_runner *r = make_runner(x, 2);
    const tl_executable_spec *spec = tl_executable_info(x);
    const int64_t shape[] = { 2, N / 2 };
    assert_int_equal(tl_tensor_create(TL_F32, 2, shape, &input, NULL), TL_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(tl_tensor_create(spec->outputs[i].dtype, spec->outputs[i].rank,
                                          spec->outputs[i].shape, &outputs[i], NULL),
                         TL_OK);
    for (int i = 0; i < N; i++)
        ((float *)input.data)[i] = (float)i;
    const void *in[1] = { input.data };
    void *out[2] = { outputs[0].data, outputs[1].data };
    if (tl_runner_run(r, in, out, step_ns, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    for (int i = 0; i < N; i++)
        assert_true(((float *)outputs[1].data)[i] == (float)(N - 1 - i) * 2 * m->w[N - 1 - i]);
    for (int i = 0; i < 4; i++)
        assert_true(step_ns[i] >= 0);

    int calls = 0;
    assert_int_equal(tl_runner_run_hooked(r, in, out, count_hook, &calls, NULL), TL_OK);
    assert_int_equal(calls, 8);

    in[0] = (float *)input.data + 1;
    assert_int_equal(tl_runner_run(r, in, out, NULL, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "the buffer of x"));

    tl_tensor_free(&outputs[0]);
    tl_tensor_free(&outputs[1]);
    tl_tensor_free(&input);
    tl_runner_destroy(r);
    tl_executable_destroy(x);
}

static void refused(const char *says)
{
    tl_executable *x;
    tl_diag diag = { 0 };

    assert_int_equal(tl_executable_create(&m->spec, &x, &diag), TL_BAD_ARGUMENT);
    if (strstr(diag.text, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", diag.text, says);
    fill_model();
}

static void bad_specs_are_refused(void **state)
{
    static const int wild[3] = { V_X, VALUES, V_A }, port[3] = { V_X, V_W, V_P },
                     shared[3] = { TL_NO_VALUE, V_A, V_P };
    (void)state;
    need_object();
    m->steps[0].values = wild;
    refused("step scale_1: value 8 of 8");
    m->prepare[0].values = port;
    refused("prepare step pack_w uses x, which is an input");
    m->prepare[0].values = shared;
    refused("arena value a is used by prepare steps and by steps");
    m->steps[0].dims = NULL;
    refused("no values for the 1 dims");
    m->steps[1].value_count = 1;
    refused("1 values for the 2 buffers of kernel rev");
    m->steps[1].kernel = 4;
    refused("kernel 4 of 4");
    m->values[V_Y].port = 2;
    refused("output 2 of 2");
    m->values[V_Y].size = 4 * N + 1;
    refused("do not fit");
    m->values[V_A].size = -1;
    refused("negative");
    m->values[V_W].data = NULL;
    refused("constant W has no data");
    m->values[V_B].size = 8;
    refused("copy copy_4");
    m->spec.step_count = 3;
    refused("no step writes output y2");
    m->kernels[K_ADD].object = "not an object";
    m->kernels[K_ADD].object_size = 13;
    refused("kernel add");
    m->kernels[K_ADD].object = NULL;
    refused("kernel add has no code");
    m->spec.prepare_count = 0;
    refused("prepared values but no prepare steps");
    m->outputs[0].shape[0] = -2;
    refused("output y");
    in_one_value()[V_A].offset += 4;
    refused("no aligned window");
    in_one_value()[V_A].offset += 64;
    refused("no aligned window");
    in_one_value()[V_A].offset = -64;
    refused("no aligned window");
    in_one_value()[V_A].whole = VALUES + 1;
    refused("a window of value 9 of 9");
    in_one_value()[V_A].whole = V_B;
    refused("a window of a value that is no input, output or arena value");
    in_one_value()[V_A] = (tl_executable_value){
        .name = "a", .place = TL_PLACE_WINDOW, .size = sizeof(float[N]), .whole = V_X
    };
    m->prepare[0].values = (const int[]){ TL_NO_VALUE, V_A, V_P };
    refused("prepare step pack_w uses a, which is an input");
}

#define TEST(name) cmocka_unit_test_setup(name, fresh)
int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(makes_prepares_and_runs),
        TEST(prepare_steps_hand_on),
        TEST(given_functions_run_too),
        TEST(subnormal_numbers_are_zero_in_a_run_only),
        TEST(windows_lie_in_ports_and_live_as_long_as_the_whole),
        TEST(several_callers_run_at_once),
        TEST(tensors_hooks_and_times),
        TEST(bad_specs_are_refused),
    };
    return cmocka_run_group_tests_name("executable", tests, start, finish);
}
