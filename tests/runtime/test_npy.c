/* tests/runtime/test_npy.c: arrays survive the round trip; hostile files get a sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "runtime/base/random.h"
#include "runtime/tensor/npy.h"
#include "tests/runtime/kernels.h"

static void round_trips(void **state)
{
    static const struct {
        int rank;
        int64_t shape[4];
    } shapes[] = { { 0, { 0 } },    { 1, { 1 } },    { 1, { 0 } },       { 1, { 17 } },
                   { 2, { 3, 5 } }, { 2, { 4, 0 } }, { 3, { 2, 3, 7 } }, { 4, { 1, 2, 3, 13 } } };
    char *folder = temp_folder_make(), *path = path_in(folder, "a.npy");
    tl_random r = tl_random_make(7);

    (void)state;
    for (int dtype = 0; dtype < TL_DTYPE_COUNT; dtype++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            if (dtype == TL_I4 || dtype == TL_U4)
                continue; /* which are bytes in such a file */
            tl_tensor a, b;
            tl_diag diag = { 0 };
            assert_int_equal(tl_tensor_create((tl_dtype)dtype, shapes[s].rank, shapes[s].shape, &a,
                                              &diag),
                             TL_OK);
            for (int64_t i = 0; i < a.size; i++)
                ((unsigned char *)a.data)[i] =
                    (unsigned char)(tl_random_next(&r) & (dtype == TL_BOOL ? 1 : 0xff));
            if (tl_npy_write(path, &a, &diag) != TL_OK || tl_npy_read(path, &b, &diag) != TL_OK)
                fail_msg("%s", diag.text);
            assert_int_equal(b.dtype, a.dtype);
            assert_int_equal(b.rank, a.rank);
            assert_memory_equal(b.shape, a.shape, sizeof a.shape);
            assert_int_equal((uintptr_t)b.data % 64, 0);
            assert_memory_equal(b.data, a.data, (size_t)a.size);
            tl_tensor_free(&a);
            tl_tensor_free(&b);
        }
    free(path);
    temp_folder_remove(folder);
}

/* A file of version 1 from its header and elements; returns the size. */
static size_t make_file(unsigned char *out, const char *header, const void *data, size_t size)
{
    size_t length = strlen(header);

    memcpy(out, "\x93NUMPY\1\0", 8);
    out[8] = (unsigned char)(length & 0xff);
    out[9] = (unsigned char)(length >> 8);
    memcpy(out + 10, header, length);
    if (size > 0)
        memcpy(out + 10 + length, data, size);
    return 10 + length + size;
}

static void both_orders_are_read(void **state)
{
    unsigned char file[512];
    tl_tensor t;
    tl_diag diag = { 0 };

    (void)state;
    /* [[1, 2, 3], [4, 5, 6]] column by column */
    static const int16_t columns[6] = { 1, 4, 2, 5, 3, 6 };
    size_t size = make_file(file, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }",
                            columns, sizeof columns);
    if (tl_npy_parse(file, size, "f", &t, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    for (int i = 0; i < 6; i++)
        assert_int_equal(((int16_t *)t.data)[i], i + 1);
    tl_tensor_free(&t);

    static const unsigned char big[8] = { 0, 0, 1, 2, 0x7f, 0xff, 0xff, 0xff };
    size = make_file(file, "{\"shape\": (2L,), \"fortran_order\": False, \"descr\": \">i4\"}\n",
                     big, 8);
    if (tl_npy_parse(file, size, "f", &t, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(((int32_t *)t.data)[0], 258);
    assert_int_equal(((int32_t *)t.data)[1], INT32_MAX);
    tl_tensor_free(&t);

    static const unsigned char truths[3] = { 0, 1, 200 };
    size = make_file(file, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", truths, 3);
    assert_int_equal(tl_npy_parse(file, size, "f", &t, &diag), TL_OK);
    assert_int_equal(((unsigned char *)t.data)[2], 1);
    tl_tensor_free(&t);
}

static void hostile_headers_are_refused(void **state)
{
    static const struct {
        const char *header, *says;
    } cases[] = {
        { "", "no dictionary" },
        { "{", "something other than" },
        { "{'descr': '<f4'", "does not end" },
        { "{'descr': '<f4', 'fortran_order': False}", "no descr, fortran_order or shape" },
        { "{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "dtype \"<c8\"" },
        { "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "dtype \"|O\"" },
        { "{'descr': 'f4', 'fortran_order': False, 'shape': (1,)}", "dtype \"f4\"" },
        { "{'descr': '', 'fortran_order': False, 'shape': (1,)}", "dtype \"\"" },
        { "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "plain one" },
        { "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}", "neither True nor False" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': 4}", "not a tuple" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "not counts" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}", "does not end" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,2", "does not end" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
          "not counts" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
          "overflows" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
          "more than 8 axes" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,)}", "but 4 follow" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "but 4 follow" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", "after its dictionary" },
        { "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", "one twice" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (), 'evil': 1}", "unknown key" },
    };
    unsigned char file[512];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_tensor t = { 0 };
        tl_diag diag = { 0 };
        size_t size = make_file(file, cases[i].header, "\0\0\0\0", 4);
        assert_int_equal(tl_npy_parse(file, size, "x.npy", &t, &diag), TL_BAD_ARGUMENT);
        if (strstr(diag.text, cases[i].says) == NULL || strstr(diag.text, "x.npy") == NULL)
            fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].header, diag.text, cases[i].says);
    }
}

static void damaged_files_are_refused(void **state)
{
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }   \n";
    static const float data[4] = { 1, 2, 3, 4 };
    unsigned char whole[256], copy[256];
    size_t size = make_file(whole, header, data, sizeof data);
    tl_random r = tl_random_make(3);
    tl_tensor t;

    (void)state;
    for (size_t cut = 0; cut < size; cut++) {
        unsigned char *exact = malloc(cut + 1); /* so that the sanitizer sees an overrun */
        memcpy(exact, whole, cut);
        assert_int_equal(tl_npy_parse(exact, cut, "f", &t, NULL), TL_BAD_ARGUMENT);
        free(exact);
    }
    for (int i = 0; i < 3000; i++) {
        memcpy(copy, whole, size);
        for (int64_t n = tl_random_below(&r, 3); n >= 0; n--)
            copy[tl_random_below(&r, (int64_t)size)] = (unsigned char)tl_random_next(&r);
        if (tl_npy_parse(copy, size, "f", &t, NULL) == TL_OK)
            tl_tensor_free(&t);
    }
}

static void files_that_are_not(void **state)
{
    char *folder = temp_folder_make(), *path = path_in(folder, "a.npy");
    tl_tensor t;
    tl_diag diag = { 0 };

    (void)state;
    assert_int_equal(tl_npy_read(path, &t, &diag), TL_BAD_ARGUMENT);
    assert_int_equal(tl_file_write(path, "", 0, NULL), TL_OK);
    assert_int_equal(tl_npy_read(path, &t, &diag), TL_BAD_ARGUMENT);
    assert_int_equal(tl_npy_read(folder, &t, &diag), TL_BAD_ARGUMENT);

    char *nowhere = path_in(folder, "absent/a.npy");
    float one = 1;
    assert_int_equal(tl_tensor_borrow(TL_F32, 0, NULL, &one, &t, NULL), TL_OK);
    assert_int_equal(tl_npy_write(nowhere, &t, &diag), TL_IO);
    free(nowhere);
    free(path);
    temp_folder_remove(folder);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips),
        cmocka_unit_test(both_orders_are_read),
        cmocka_unit_test(hostile_headers_are_refused),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(files_that_are_not),
    };
    return cmocka_run_group_tests_name("npy", tests, NULL, NULL);
}
