/* tests/driver/test_family.c: one loaded model for all shapes of its inputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "driver/api/tilth.h"
#include "tests/frontend/onnx_text.h"
#include "tests/support/resident.h"

static tilth_error error;

static tilth_family *load(const char *text)
{
    const tilth_load_options options = {
        .struct_size = sizeof options, .threads = 2, .no_cache = 1, .no_database = 1
    };
    tl_text file = text_model(text);
    tilth_family *family;
    if (tilth_family_load_memory(file.data, file.size, NULL, &options, &family, &error) != TILTH_OK)
        fail_msg("%s", error.text);
    tl_text_free(&file);
    return family;
}

static tilth_caller *make_caller(tilth_family *family)
{
    tilth_caller *caller;
    if (tilth_caller_create(family, 0, &caller, &error) != TILTH_OK)
        fail_msg("%s", error.text);
    return caller;
}

/* x [n, 3] and y [n, m] of one n: z = Concat of x and y along axis 1, doubled. */
#define MODEL                                                       \
    "opset 13; input x f32 n,3; input y f32 n,m; init two f32 = 2;" \
    "node Concat x,y -> c axis=1; node Mul c,two -> z; output z"

static tilth_status call(tilth_caller *caller, int64_t n, int64_t other, int64_t m, const float *x,
                         const float *y)
{
    const int64_t first[] = { n, 3 }, second[] = { other, m };
    tilth_status status =
        tilth_caller_set_input(caller, 0, 2, first, x, sizeof *x * (size_t)(n * 3), &error);
    if (status == TILTH_OK)
        status = tilth_caller_set_input(caller, 1, 2, second, y, sizeof *y * (size_t)(other * m),
                                        &error);
    return status == TILTH_OK ? tilth_caller_run(caller, &error) : status;
}

/* Elements are counted from 0; buffers begin anywhere. */
static void check_call(tilth_caller *caller, int64_t n, int64_t m)
{
    static _Alignas(64) float x[1024], y[4096];
    static bool are_filled;
    for (int i = 0; !are_filled && i < 4096; i++) {
        x[i % 1024] = (float)(i % 1024);
        y[i] = (float)i + 0.5f;
    }
    are_filled = true;
    int offset = (int)(n + m) % 2;
    if (call(caller, n, n, m, x + offset, y + offset) != TILTH_OK)
        fail_msg("%lld, %lld: %s", (long long)n, (long long)m, error.text);
    tilth_tensor_info info;
    const void *data;
    assert_int_equal(tilth_caller_output_count(caller), 1);
    assert_int_equal(tilth_caller_output(caller, 0, &info, &data, &error), TILTH_OK);
    assert_int_equal(info.rank, 2);
    assert_int_equal(info.shape[0], n);
    assert_int_equal(info.shape[1], 3 + m);
    const float *z = data;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < 3 + m; k++) {
            float want = k < 3 ? x[offset + i * 3 + k] : y[offset + i * m + k - 3];
            assert_true(z[i * (3 + m) + k] == 2 * want);
        }
}

static void it_tells_its_inputs(void **state)
{
    (void)state;
    tilth_family *family = load(MODEL);
    tilth_tensor_info info;
    assert_int_equal(tilth_family_input_count(family), 2);
    assert_int_equal(tilth_family_find_input(family, "y"), 1);
    assert_int_equal(tilth_family_find_input(family, "z"), -1);
    assert_int_equal(tilth_family_input(family, 0, &info, &error), TILTH_OK);
    assert_string_equal(info.name, "x");
    assert_int_equal(info.shape[0], -1);
    assert_int_equal(info.shape[1], 3);
    assert_int_equal(info.size, 0);
    assert_int_equal(tilth_family_input(family, 2, &info, &error), TILTH_BAD_ARGUMENT);
    assert_int_equal(tilth_family_compiled(family), 0);
    assert_int_equal(tilth_family_destroy(family), TILTH_OK);
    assert_int_equal(tilth_family_destroy(NULL), TILTH_OK);
}

/* The first combination, and with the second code for all of them; an extent of 0 is special. */
static void two_codes_serve_all_shapes(void **state)
{
    (void)state;
    tilth_family *family = load(MODEL);
    tilth_caller *caller = make_caller(family);
    tilth_axis_info axis;
    for (int round = 0; round < 3; round++)
        for (int64_t n = 1; n <= 4; n++)
            check_call(caller, n, 7 - n);
    assert_int_equal(tilth_family_compiled(family), 2);
    check_call(caller, 0, 2); /* nothing is a shape, too */
    check_call(caller, 2, 0);
    tilth_caller *other = make_caller(family); /* shares what was compiled */
    check_call(other, 3, 4);
    assert_int_equal(tilth_family_compiled(family), 4);
    assert_int_equal(tilth_family_axis_count(family), 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tilth_family_axis(family, i, &axis, &error), TILTH_OK);
        assert_string_equal(axis.name, i == 0 ? "n" : "m");
        assert_int_equal(axis.input, i);
        assert_int_equal(axis.axis, i);
        assert_true(axis.is_dim);
        assert_null(axis.specialised);
    }
    assert_int_equal(tilth_family_axis(family, 2, &axis, &error), TILTH_BAD_ARGUMENT);
    tilth_family_destroy(family); /* callers keep what they need */
    check_call(caller, 4, 3);
    tilth_caller_destroy(other);
    tilth_caller_destroy(caller);
}

/* What comes again and again gets code of its own. */
static void what_recurs_is_specialised(void **state)
{
    (void)state;
    tilth_family *family = load(MODEL);
    tilth_caller *caller = make_caller(family);
    check_call(caller, 2, 3);
    check_call(caller, 3, 4);
    assert_int_equal(tilth_family_compiled(family), 2);
    for (int i = 0; i < 200; i++) {
        check_call(caller, 5, 6);
        check_call(caller, 2 + i % 40, 7 + i % 11);
    }
    assert_int_equal(tilth_family_compiled(family), 3);
    tilth_caller_destroy(caller);
    tilth_family_destroy(family);
}

/* Every second row: how many these are is no sum of products. */
static void call_second_rows(tilth_caller *caller, int64_t n)
{
    static float x[256];
    const int64_t shape[] = { n, 3 };
    tilth_tensor_info info;
    const void *data;
    for (int i = 0; i < 256; i++)
        x[i] = (float)i;
    assert_int_equal(tilth_caller_set_input(caller, 0, 2, shape, x, sizeof *x * (size_t)(n * 3),
                                            &error),
                     TILTH_OK);
    if (tilth_caller_run(caller, &error) != TILTH_OK)
        fail_msg("%s", error.text);
    assert_int_equal(tilth_caller_output(caller, 0, &info, &data, &error), TILTH_OK);
    assert_int_equal(info.shape[0], (n + 1) / 2);
    for (int64_t i = 0; i < info.shape[0] * 3; i++)
        assert_true(((const float *)data)[i] == 2 * x[i / 3 * 6 + i % 3]);
}

static void the_latest_are_kept(void **state)
{
    (void)state;
    tilth_family *family =
        load("opset 13; input x f32 n,3; init two f32 = 2; init from i64 1 = 0;"
             "init to i64 1 = 10000; init axis i64 1 = 0; init step i64 1 = 2;"
             "node Slice x,from,to,axis,step -> c; node Mul c,two -> z; output z");
    tilth_caller *caller = make_caller(family);
    tilth_axis_info axis;
    for (int64_t n = 1; n <= TILTH_FAMILY_LIMIT + 4; n++) {
        call_second_rows(caller, n);
        call_second_rows(caller, 1); /* in use all the time */
    }
    int64_t compiled = tilth_family_compiled(family);
    assert_int_equal(compiled, TILTH_FAMILY_LIMIT + 4);
    call_second_rows(caller, TILTH_FAMILY_LIMIT + 4);
    assert_int_equal(tilth_family_compiled(family), compiled);
    call_second_rows(caller, 2); /* gone long since */
    assert_int_equal(tilth_family_compiled(family), compiled + 1);
    assert_int_equal(tilth_family_axis(family, 0, &axis, &error), TILTH_OK);
    assert_false(axis.is_dim);
    assert_non_null(strstr(axis.specialised, "Slice(x)"));
    tilth_caller_destroy(caller);
    tilth_family_destroy(family);
}

static void wrong_calls_are_named(void **state)
{
    (void)state;
    static float x[64], y[64];
    const int64_t three[] = { 2, 3, 1 }, wide[] = { 2, 4 }, fine[] = { 2, 3 };
    tilth_family *family = load(MODEL);
    tilth_caller *caller = make_caller(family);
    tilth_tensor_info info;
    const void *data;
    assert_int_equal(tilth_caller_run(caller, &error), TILTH_BAD_ARGUMENT);
    assert_non_null(strstr(error.text, "input x is not set"));
    assert_int_equal(tilth_caller_output(caller, 0, &info, &data, &error), TILTH_BAD_ARGUMENT);
    assert_int_equal(tilth_caller_set_input(caller, 0, 3, three, x, 24, &error),
                     TILTH_BAD_ARGUMENT);
    assert_non_null(strstr(error.text, "input x has 2 axes, but 3 were given"));
    assert_int_equal(tilth_caller_set_input(caller, 0, 2, wide, x, 32, &error), TILTH_BAD_ARGUMENT);
    assert_non_null(strstr(error.text, "axis 1 of input x is 3 in the model, but 4 was given"));
    assert_int_equal(tilth_caller_set_input(caller, 0, 2, fine, x, 20, &error), TILTH_BAD_ARGUMENT);
    assert_non_null(strstr(error.text, "has 24 bytes, not 20"));
    assert_int_equal(tilth_caller_set_input(caller, 2, 2, fine, x, 24, &error), TILTH_BAD_ARGUMENT);
    assert_int_equal(call(caller, 2, 3, 2, x, y), TILTH_BAD_ARGUMENT);
    assert_non_null(strstr(error.text, "axis 'n' is 2 in input 'x' (axis 0), but 3 in input 'y'"));
    assert_int_equal(tilth_caller_output_count(caller), 0);
    check_call(caller, 2, 2); /* and it goes on */
    tilth_caller_destroy(caller);
    assert_int_equal(tilth_caller_destroy(NULL), TILTH_OK);
    const tilth_input_shape shape = { .name = "x", .rank = 2, .shape = { 2, 3 } };
    const tilth_load_options options = { .struct_size = sizeof options,
                                         .shapes = &shape,
                                         .shape_count = 1 };
    tilth_family *none;
    assert_int_equal(tilth_family_load("x.onnx", &options, &none, &error), TILTH_BAD_ARGUMENT);
    assert_int_equal(tilth_family_load("/nowhere/x.onnx", NULL, &none, &error), TILTH_BAD_ARGUMENT);
    tilth_family_destroy(family);
}

/* A value that decides a shape is part of the combination; one that does not is no reason to compile. */
static void values_decide(void **state)
{
    (void)state;
    tilth_family *family = load(
        "opset 13; input x f32 12; input rows i64 1; input add f32 1; init less i64 1 = -1;"
        "node Concat rows,less -> s axis=0; node Reshape x,s -> r; node Add r,add -> y; output y");
    tilth_caller *caller = make_caller(family);
    float x[12], add;
    int64_t rows;
    const int64_t twelve = 12, one = 1;
    for (int i = 0; i < 12; i++)
        x[i] = (float)i;
    tilth_caller_set_input(caller, 0, 1, &twelve, x, sizeof x, &error);
    tilth_caller_set_input(caller, 1, 1, &one, &rows, sizeof rows, &error);
    tilth_caller_set_input(caller, 2, 1, &one, &add, sizeof add, &error);
    for (int i = 0; i < 20; i++) {
        tilth_tensor_info info;
        const void *data;
        rows = 1 + i % 4;
        add = (float)i;
        if (tilth_caller_run(caller, &error) != TILTH_OK)
            fail_msg("%s", error.text);
        assert_int_equal(tilth_caller_output(caller, 0, &info, &data, &error), TILTH_OK);
        assert_int_equal(info.shape[0], rows);
        assert_int_equal(info.shape[1], 12 / rows);
        assert_true(((const float *)data)[11] == 11 + (float)i);
    }
    assert_int_equal(tilth_family_compiled(family), 4);
    tilth_caller_destroy(caller);
    tilth_family_destroy(family);
}

static void *call_often(void *family)
{
    tilth_caller *caller = NULL;
    tilth_error local;
    static float x[64], y[64];
    void *wrong = NULL;
    if (tilth_caller_create(family, 1, &caller, &local) != TILTH_OK)
        return caller;
    for (int i = 0; i < 300; i++) {
        const int64_t n = 1 + i % 5, first[] = { n, 3 }, second[] = { n, 2 };
        tilth_caller_set_input(caller, 0, 2, first, x, sizeof *x * (size_t)(n * 3), &local);
        tilth_caller_set_input(caller, 1, 2, second, y, sizeof *y * (size_t)(n * 2), &local);
        if (tilth_caller_run(caller, &local) != TILTH_OK)
            wrong = family;
    }
    tilth_caller_destroy(caller);
    return wrong;
}

static void callers_in_threads_share(void **state)
{
    (void)state;
    tilth_family *family = load(MODEL);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, family), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    assert_in_range(tilth_family_compiled(family), 2, 6); /* some come often */
    tilth_family_destroy(family);
}

/* 10,000 calls of any shapes: two codes serve them, memory does not grow. */
static void many_calls_take_no_memory(void **state)
{
    (void)state;
    tilth_family *family = load(MODEL);
    tilth_caller *caller = make_caller(family);
    uint32_t seed = 1;
    long before = 0;
    check_call(caller, 40, 60);
    for (int i = 0; i < 10000; i++) {
        seed = seed * 1664525u + 1013904223u;
        check_call(caller, 2 + (seed >> 16) % 39, 2 + (seed >> 23) % 59);
        if (i == 1000)
            before = resident_kb();
    }
    assert_int_equal(tilth_family_compiled(family), 2);
    if (!is_sanitized)
        assert_true(resident_kb() <= before + before / 100);
    tilth_caller_destroy(caller);
    tilth_family_destroy(family);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_tells_its_inputs),        cmocka_unit_test(two_codes_serve_all_shapes),
        cmocka_unit_test(what_recurs_is_specialised), cmocka_unit_test(the_latest_are_kept),
        cmocka_unit_test(wrong_calls_are_named),      cmocka_unit_test(values_decide),
        cmocka_unit_test(callers_in_threads_share),   cmocka_unit_test(many_calls_take_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
