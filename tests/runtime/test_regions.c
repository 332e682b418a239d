/* Loops and choices among the steps of an executable, on a model of compiled C kernels:
 *
 *     s = x
 *     loop (n turns at most, while s[0] < limit[0]; `parity` is its turn's)
 *         t = s + 1
 *         choice (odd) t2 = t * 2, or t2 = t
 *         stack[turn] = t2
 *         s = t2
 *     y = s
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "runtime/executable/executable.h"
#include "tests/runtime/kernels.h"

enum { N = 300, MOST = 16 };

static const char source[] = KERNEL_START
    "void inc_0(const args *a, int64_t b, int64_t e, int thread) {\n"
    "  const float *x = a->buffers[0]; float *y = a->buffers[1]; (void)thread;\n"
    "  for (int64_t i = b; i < e; i++) y[i] = x[i] + 1;\n}\n"
    "void dbl_0(const args *a, int64_t b, int64_t e, int thread) {\n"
    "  const float *x = a->buffers[0]; float *y = a->buffers[1]; (void)thread;\n"
    "  for (int64_t i = b; i < e; i++) y[i] = x[i] * 2;\n}\n"
    "void odd_0(const args *a, int64_t b, int64_t e, int thread) {\n"
    "  const int64_t *x = a->buffers[0]; unsigned char *y = a->buffers[1]; (void)thread;\n"
    "  if (b < e) y[0] = x[0] % 2 != 0;\n}\n"
    "void less_0(const args *a, int64_t b, int64_t e, int thread) {\n"
    "  const float *x = a->buffers[0], *y = a->buffers[1]; unsigned char *z = a->buffers[2];\n"
    "  (void)thread; if (b < e) z[0] = x[0] < y[0];\n}\n";

enum { K_INC, K_DBL, K_ODD, K_LESS, KERNELS };
enum {
    V_X,
    V_WANTED,
    V_LIMIT,
    V_S,
    V_T,
    V_T2,
    V_ODD,
    V_ENTERS,
    V_AGAIN,
    V_TURN,
    V_TAKEN,
    V_Y,
    V_STACK,
    VALUES
};
enum {
    S_COPY,
    S_ENTERS,
    S_LOOP,
    S_INC,
    S_ODD,
    S_CHOICE,
    S_DBL,
    S_SAME,
    S_PUT,
    S_NEXT,
    S_AGAIN,
    S_Y,
    STEPS
};

typedef struct {
    tl_text object;
    tl_port inputs[3], outputs[2];
    int counts[2];
    tl_executable_value values[VALUES];
    tl_executable_kernel kernels[KERNELS];
    tl_executable_step steps[STEPS];
    tl_executable_spec spec;
} model;

static char *folder;
static tl_pool *pool;
static model m;

static const int step_values[STEPS][TL_LOOP_VALUE_COUNT] = {
    [S_COPY] = { V_X, V_S },
    [S_ENTERS] = { V_S, V_LIMIT, V_ENTERS },
    [S_LOOP] = { V_WANTED, V_ENTERS, V_AGAIN, V_TURN, V_TAKEN },
    [S_INC] = { V_S, V_T },
    [S_ODD] = { V_TURN, V_ODD },
    [S_CHOICE] = { V_ODD },
    [S_DBL] = { V_T, V_T2 },
    [S_SAME] = { V_T, V_T2 },
    [S_PUT] = { V_T2, V_STACK, V_TURN },
    [S_NEXT] = { V_T2, V_S },
    [S_AGAIN] = { V_S, V_LIMIT, V_AGAIN },
    [S_Y] = { V_S, V_Y },
};

static void fill(void)
{
    static const int64_t whole[1] = { N }, one[1] = { 1 };
    static const char *const kernels[KERNELS] = { "inc", "dbl", "odd", "less" };
    static const struct {
        const char *name;
        tl_place place;
        int port;
        int64_t size;
    } values[VALUES] = {
        { "x", TL_PLACE_INPUT, 0, 4 * N },
        { "wanted", TL_PLACE_INPUT, 1, 8 },
        { "limit", TL_PLACE_INPUT, 2, 4 },
        { "s", TL_PLACE_ARENA, 0, 4 * N },
        { "t", TL_PLACE_ARENA, 0, 4 * N },
        { "t2", TL_PLACE_ARENA, 0, 4 * N },
        { "odd", TL_PLACE_ARENA, 0, 1 },
        { "enters", TL_PLACE_ARENA, 0, 1 },
        { "again", TL_PLACE_ARENA, 0, 1 },
        { "turn", TL_PLACE_ARENA, 0, 8 },
        { "taken", TL_PLACE_ARENA, 0, 8 },
        { "y", TL_PLACE_OUTPUT, 0, 4 * N },
        { "stack", TL_PLACE_OUTPUT, 1, 4 * N * MOST },
    };
    static const struct {
        const char *name;
        int kernel, count, body, other;
    } steps[STEPS] = {
        { "copy", TL_STEP_COPY, 2, 0, 0 }, { "enters", K_LESS, 3, 0, 0 },
        { "loop", TL_STEP_LOOP, 5, 8, 0 }, { "inc", K_INC, 2, 0, 0 },
        { "odd", K_ODD, 2, 0, 0 },         { "choice", TL_STEP_CHOICE, 1, 1, 1 },
        { "dbl", K_DBL, 2, 0, 0 },         { "same", TL_STEP_COPY, 2, 0, 0 },
        { "put", TL_STEP_PUT, 3, 0, 0 },   { "next", TL_STEP_COPY, 2, 0, 0 },
        { "again", K_LESS, 3, 0, 0 },      { "y", TL_STEP_COPY, 2, 0, 0 },
    };
    m.inputs[0] = (tl_port){ .name = "x", .dtype = TL_F32, .rank = 1, .shape = { N } };
    m.inputs[1] = (tl_port){ .name = "wanted", .dtype = TL_I64, .rank = 0 };
    m.inputs[2] = (tl_port){ .name = "limit", .dtype = TL_F32, .rank = 0 };
    m.outputs[0] = (tl_port){ .name = "y", .dtype = TL_F32, .rank = 1, .shape = { N } };
    m.counts[0] = V_TAKEN;
    m.counts[1] = TL_NO_VALUE;
    m.outputs[1] = (tl_port){
        .name = "stack", .dtype = TL_F32, .rank = 2, .shape = { MOST, N }, .counts = m.counts
    };
    for (int i = 0; i < VALUES; i++)
        m.values[i] = (tl_executable_value){ .name = values[i].name,
                                             .place = values[i].place,
                                             .port = values[i].port,
                                             .size = values[i].size };
    for (int i = 0; i < KERNELS; i++)
        m.kernels[i] =
            (tl_executable_kernel){ .key = kernels[i],
                                    .descriptor = { .name = kernels[i],
                                                    .phase_count = 1,
                                                    .extents = i < K_ODD ? whole : one,
                                                    .buffer_count = i == K_LESS ? 3 : 2 },
                                    .object = m.object.data,
                                    .object_size = m.object.size };
    for (int i = 0; i < STEPS; i++)
        m.steps[i] = (tl_executable_step){ .name = steps[i].name,
                                           .kernel = steps[i].kernel,
                                           .value_count = steps[i].count,
                                           .values = step_values[i],
                                           .body = steps[i].body,
                                           .other = steps[i].other,
                                           .most = i == S_LOOP ? MOST : 0 };
    m.spec = (tl_executable_spec){ .model = "regions",
                                   .input_count = 3,
                                   .output_count = 2,
                                   .value_count = VALUES,
                                   .kernel_count = KERNELS,
                                   .step_count = STEPS,
                                   .inputs = m.inputs,
                                   .outputs = m.outputs,
                                   .values = m.values,
                                   .kernels = m.kernels,
                                   .steps = m.steps };
}

static int start(void **state)
{
    tl_pool_options options = { .threads = 3, .pin = TL_PIN_NEVER };

    (void)state;
    folder = temp_folder_make();
    if (tl_pool_create(&options, &pool, NULL) != TL_OK)
        return -1;
#if defined(__x86_64__)
    compile_kernel(folder, source, "", &m.object);
#endif
    return 0;
}

static int finish(void **state)
{
    (void)state;
    tl_text_free(&m.object);
    tl_pool_destroy(pool);
    temp_folder_remove(folder);
    return 0;
}

static int fresh(void **state)
{
    (void)state;
    fill();
    return 0;
}

static tl_executable *make(void)
{
    tl_executable *x;
    tl_diag diag = { 0 };

    if (m.object.size == 0) {
        print_message("skip: no x86-64 C compiler to make kernels with\n");
        skip();
    }
    if (tl_executable_create(&m.spec, &x, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return x;
}

typedef struct {
    float x[N] __attribute__((aligned(64)));
    int64_t wanted __attribute__((aligned(64)));
    float limit __attribute__((aligned(64)));
    float y[N] __attribute__((aligned(64)));
    float stack[MOST * N] __attribute__((aligned(64)));
} buffers;

/* What the model is to compute; turns that it takes. */
static int expect(const buffers *b, float *y, float *stack)
{
    int turn = 0;

    memcpy(y, b->x, sizeof b->x);
    for (; turn < b->wanted && y[0] < b->limit; turn++)
        for (int i = 0; i < N; i++) {
            y[i] = (y[i] + 1) * (turn % 2 != 0 ? 2 : 1);
            if (turn < MOST)
                stack[turn * N + i] = y[i];
        }
    return turn;
}

static tl_status run(tl_runner *r, buffers *b, int64_t wanted, float limit, tl_diag *diag)
{
    const void *inputs[3] = { b->x, &b->wanted, &b->limit };
    void *outputs[2] = { b->y, b->stack };

    b->wanted = wanted;
    b->limit = limit;
    for (int i = 0; i < N; i++)
        b->x[i] = (float)(i % 17) / 4;
    memset(b->stack, 0, sizeof b->stack);
    return tl_runner_run(r, inputs, outputs, NULL, diag);
}

static void check_run(tl_runner *r, int64_t wanted, float limit)
{
    static buffers b;
    static float y[N], stack[MOST * N];
    tl_diag diag = { 0 };

    if (run(r, &b, wanted, limit, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    memset(stack, 0, sizeof stack);
    int turns = expect(&b, y, stack);
    assert_memory_equal(b.y, y, sizeof y);
    assert_memory_equal(b.stack, stack, sizeof stack);
    assert_int_equal(tl_runner_output_shape(r, 1)[0], turns);
    assert_int_equal(tl_runner_output_shape(r, 1)[1], N);
    assert_int_equal(tl_runner_output_shape(r, 0)[0], N);
}

static void check_all(const tl_executable *x)
{
    for (int threads = 1; threads <= 3; threads++) {
        tl_runner *r;
        assert_int_equal(tl_runner_create(x, pool, threads, &r, NULL), TL_OK);
        for (int wanted = 0; wanted <= MOST; wanted++)
            check_run(r, wanted, 1e9f);
        check_run(r, -1, 1e9f);
        check_run(r, INT64_MIN, 1e9f);
        check_run(r, INT64_MAX, 20);
        check_run(r, INT64_MAX, 0); /* forbidden before the first turn */
        check_run(r, 3, 20);
        tl_runner_destroy(r);
    }
}

static void loops_and_choices_run(void **state)
{
    (void)state;
    tl_executable *x = make();
    check_all(x);
    tl_executable_destroy(x);
}

static void an_endless_loop_is_stopped(void **state)
{
    static buffers b;
    tl_executable *x = make();
    tl_runner *r;
    tl_diag diag = { 0 };

    (void)state;
    assert_int_equal(tl_runner_create(x, pool, 2, &r, NULL), TL_OK);
    assert_int_equal(run(r, &b, INT64_MAX, 1e30f, &diag), TL_UNSUPPORTED);
    assert_non_null(strstr(diag.text, "loop loop goes on after 16 turns"));
    check_run(r, 5, 1e9f); /* the runner is as good as before */
    tl_runner_destroy(r);
    tl_executable_destroy(x);
}

static long resident_pages(void)
{
    long total = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld", &total, &resident), 2);
    fclose(f);
    return resident;
}

static void ten_thousand_turns_leak_nothing(void **state)
{
    static buffers b;
    tl_runner *r;
    tl_diag diag = { 0 };

    (void)state;
    m.steps[S_LOOP].most = 100000; /* parts that the stack has no room for are left out */
    tl_executable *x = make();
    assert_int_equal(tl_runner_create(x, pool, 2, &r, NULL), TL_OK);
    assert_int_equal(run(r, &b, 10000, 1e38f, &diag), TL_OK);
    long before = resident_pages();
    for (int i = 0; i < 3; i++)
        if (run(r, &b, 10000, INFINITY, &diag) != TL_OK)
            fail_msg("%s", diag.text);
    assert_in_range(resident_pages(), 0, before + 16);
    assert_int_equal(tl_runner_output_shape(r, 1)[0], MOST); /* as many as there is room for */
    tl_runner_destroy(r);
    tl_executable_destroy(x);
}

/* A value that lives from turn to turn has memory of its own; values of one turn share theirs. */
static void the_plan_knows_turns(void **state)
{
    tl_runner *r;

    (void)state;
    tl_executable *x = make();
    assert_int_equal(tl_runner_create(x, pool, 1, &r, NULL), TL_OK);
    tl_plan_sizes plan = tl_runner_memory(r);
    assert_in_range(plan.planned, 3 * 4 * N, 3 * (4 * N + 64) + 8 * 64);
    tl_runner_destroy(r);
    tl_executable_destroy(x);
}

static void saved_ones_are_the_same(void **state)
{
    char *path = path_in(folder, "saved");
    tl_executable *x = make(), *y;
    tl_diag diag = { 0 };

    (void)state;
    if (tl_executable_save(x, 0, path, &diag) != TL_OK ||
        tl_executable_load(path, &y, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    check_all(y);
    tl_executable_destroy(y);
    tl_executable_destroy(x);
    free(path);
}

static void count_steps(void *user, int step, bool after, void *const *slots)
{
    int *counts = user;

    assert_non_null(slots[0]);
    counts[step] += after;
}

static void hooks_times_and_traces_know_turns(void **state)
{
    static buffers b;
    int counts[STEPS] = { 0 }, event_count;
    int64_t step_ns[STEPS];
    tl_executable *x = make();
    tl_runner *r;

    (void)state;
    assert_int_equal(tl_runner_create(x, pool, 2, &r, NULL), TL_OK);
    assert_int_equal(run(r, &b, 5, 1e9f, NULL), TL_OK);
    const void *inputs[3] = { b.x, &b.wanted, &b.limit };
    void *outputs[2] = { b.y, b.stack };
    assert_int_equal(tl_runner_run_hooked(r, inputs, outputs, count_steps, counts, NULL), TL_OK);
    assert_int_equal(counts[S_COPY], 1);
    assert_int_equal(counts[S_INC], 5);
    assert_int_equal(counts[S_DBL], 2);
    assert_int_equal(counts[S_SAME], 3);
    assert_int_equal(counts[S_Y], 1);
    assert_int_equal(counts[S_LOOP], 0);

    assert_int_equal(tl_runner_run(r, inputs, outputs, step_ns, NULL), TL_OK);
    for (int i = 0; i < STEPS; i++)
        assert_true(step_ns[i] >= 0);
    assert_true(step_ns[S_INC] > 0);

    tl_run_event *events = calloc((size_t)tl_runner_event_limit(r), sizeof *events);
    assert_int_equal(tl_runner_run_traced(r, inputs, outputs, events, &event_count, NULL), TL_OK);
    assert_true(event_count >= STEPS - 2);
    free(events);
    tl_runner_destroy(r);
    tl_executable_destroy(x);
}

static void refused(const char *says)
{
    tl_executable *x;
    tl_diag diag = { 0 };

    assert_int_equal(tl_executable_create(&m.spec, &x, &diag), TL_BAD_ARGUMENT);
    if (strstr(diag.text, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", diag.text, says);
    fill();
}

static void bad_specs_are_refused(void **state)
{
    int values[TL_LOOP_VALUE_COUNT];

    (void)state;
    tl_executable_destroy(make());
    m.steps[S_LOOP].body = 10;
    refused("step loop owns 10 and 0 steps, but only 9 are left");
    m.steps[S_LOOP].body = INT32_MAX;
    refused("only 9 are left");
    m.steps[S_LOOP].body = -1;
    refused("owns -1");
    m.steps[S_CHOICE].other = 6;
    refused("step choice owns 1 and 6 steps, but only 5 are left");
    m.steps[S_LOOP].other = 1;
    refused("step loop owns 8 and 1");
    m.steps[S_INC].body = 1;
    refused("step inc owns");
    m.steps[S_LOOP].most = -1;
    refused("-1 turns");
    m.steps[S_LOOP].value_count = 4;
    refused("loop loop has 4 values");
    memcpy(values, step_values[S_LOOP], sizeof values);
    values[TL_LOOP_TURN] = TL_NO_VALUE;
    m.steps[S_LOOP].values = values;
    refused("loop: value -1 is not one of 8 bytes");
    values[TL_LOOP_TURN] = V_WANTED;
    m.steps[S_LOOP].values = values;
    refused("it writes wanted, which is an input");
    values[TL_LOOP_TURN] = V_TURN;
    values[TL_LOOP_AGAIN] = V_S;
    m.steps[S_LOOP].values = values;
    refused("is not one of 1 bytes");
    values[0] = V_T;
    m.steps[S_CHOICE].values = values;
    refused("choice: value 4 is not one of 1 bytes");
    m.values[V_T2].size = 4 * N - 4;
    m.steps[S_SAME].kernel = m.steps[S_NEXT].kernel = K_INC;
    refused("no whole number of parts");
    m.counts[0] = V_T;
    refused("stack: value 4 is not one of 8 bytes");
    m.counts[1] = VALUES;
    refused("stack: value 13 is not");
    m.steps[S_LOOP].kernel = -5;
    refused("kernel -5");
    m.spec.prepare = &m.steps[S_LOOP];
    m.spec.prepare_count = 1;
    refused("prepare step loop");
}

static void depth_is_bounded(void **state)
{
    enum { DEPTH = 100 };
    tl_executable_step *steps = calloc(DEPTH, sizeof *steps);
    tl_executable *x;
    tl_diag diag = { 0 };

    (void)state;
    tl_executable_destroy(make());
    for (int i = 0; i < DEPTH; i++)
        steps[i] = (tl_executable_step){ .name = "deep",
                                         .kernel = TL_STEP_LOOP,
                                         .value_count = TL_LOOP_VALUE_COUNT,
                                         .values = step_values[S_LOOP],
                                         .body = DEPTH - 1 - i,
                                         .most = 1 };
    m.spec.steps = steps;
    m.spec.step_count = DEPTH;
    assert_int_equal(tl_executable_create(&m.spec, &x, &diag), TL_BAD_ARGUMENT);
    assert_non_null(strstr(diag.text, "too many loops and choices"));
    free(steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(loops_and_choices_run, fresh),
        cmocka_unit_test_setup(an_endless_loop_is_stopped, fresh),
        cmocka_unit_test_setup(ten_thousand_turns_leak_nothing, fresh),
        cmocka_unit_test_setup(the_plan_knows_turns, fresh),
        cmocka_unit_test_setup(saved_ones_are_the_same, fresh),
        cmocka_unit_test_setup(hooks_times_and_traces_know_turns, fresh),
        cmocka_unit_test_setup(bad_specs_are_refused, fresh),
        cmocka_unit_test_setup(depth_is_bounded, fresh),
    };
    return cmocka_run_group_tests(tests, start, finish);
}
