/* tests/runtime/test_tensor.c: sizes that overflow, and what counts as right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "runtime/tensor/tensor.h"

static void sizes_are_checked(void **state)
{
    static const struct {
        int rank;
        int64_t shape[3];
        tl_status status;
        int64_t bytes;
    } cases[] = {
        { 0, { 0 }, TL_OK, 4 },
        { 2, { 3, 5 }, TL_OK, 60 },
        { 2, { 3, 0 }, TL_OK, 0 },
        { 1, { -1 }, TL_BAD_ARGUMENT, 0 },
        { -1, { 0 }, TL_BAD_ARGUMENT, 0 },
        { 9, { 0 }, TL_BAD_ARGUMENT, 0 },
        { 2, { INT64_MAX, 2 }, TL_BAD_ARGUMENT, 0 },
        { 1, { INT64_MAX / 4 }, TL_BAD_ARGUMENT, 0 },
        { 3, { INT64_MAX, INT64_MAX, 0 }, TL_BAD_ARGUMENT, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t bytes = -1;
        tl_status status = tl_tensor_bytes(TL_F32, cases[i].rank, cases[i].shape, &bytes, NULL);
        assert_int_equal(status, cases[i].status);
        if (status == TL_OK)
            assert_int_equal(bytes, cases[i].bytes);
    }
}

static void describes_itself(void **state)
{
    (void)state;
    tl_tensor t;
    tl_text text = { 0 };
    assert_int_equal(tl_tensor_create(TL_BF16, 2, (int64_t[]){ 1, 768 }, &t, NULL), TL_OK);
    tl_tensor_describe(&t, &text);
    assert_string_equal(tl_text_get(&text), "bf16[1, 768]");
    assert_int_equal(tl_tensor_elements(&t), 768);
    tl_text_free(&text);
    tl_tensor_free(&t);
    assert_null(t.data);
}

static tl_comparison compare(const float *a, const float *e, int64_t count, double rtol,
                             double ttol)
{
    tl_tensor actual, expected;
    tl_comparison c;

    assert_int_equal(tl_tensor_borrow(TL_F32, 1, &count, (void *)a, &actual, NULL), TL_OK);
    assert_int_equal(tl_tensor_borrow(TL_F32, 1, &count, (void *)e, &expected, NULL), TL_OK);
    assert_int_equal(tl_tensor_compare(&actual, &expected, rtol, ttol, &c, NULL), TL_OK);
    return c;
}

static void compares_as_stated(void **state)
{
    (void)state;
    static const float e[4] = { 100, 1, 0, -2 };
    static const float close[4] = { 100.05f, 1.005f, 0.009f, -2 };
    tl_comparison c = compare(close, e, 4, 1e-3, 1e-4);
    assert_int_equal(c.wrong, 0);
    assert_true(fabs(c.max_error - 0.05) < 1e-4 && c.max_expected == 100);

    static const float far[4] = { 100, 1.02f, 0.011f, -2 };
    c = compare(far, e, 4, 1e-3, 1e-4);
    assert_int_equal(c.wrong, 2);
    assert_int_equal(c.first_wrong, 1);

    static const float odd[4] = { NAN, INFINITY, -INFINITY, 1 };
    assert_int_equal(compare(odd, odd, 4, 0, 0).wrong, 0);
    static const float other[4] = { 1, -INFINITY, NAN, 1 };
    c = compare(other, odd, 4, 1, 1);
    assert_int_equal(c.wrong, 3);
    assert_true(isinf(c.max_error));
    assert_int_equal(compare(e, e, 0, 0, 0).first_wrong, -1);
}

static void different_types_do_not_compare(void **state)
{
    (void)state;
    float zeros[6] = { 0 };
    tl_tensor a, b;
    tl_comparison c;
    tl_diag diag = { 0 };
    assert_int_equal(tl_tensor_borrow(TL_F32, 2, (int64_t[]){ 2, 3 }, zeros, &a, NULL), TL_OK);
    assert_int_equal(tl_tensor_borrow(TL_F32, 2, (int64_t[]){ 3, 2 }, zeros, &b, NULL), TL_OK);
    assert_int_equal(tl_tensor_compare(&a, &b, 0, 0, &c, &diag), TL_BAD_ARGUMENT);
    assert_string_equal(diag.text, "the result is f32[2, 3] where f32[3, 2] is expected");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(describes_itself),
        cmocka_unit_test(compares_as_stated),
        cmocka_unit_test(different_types_do_not_compare),
    };
    return cmocka_run_group_tests_name("tensor", tests, NULL, NULL);
}
