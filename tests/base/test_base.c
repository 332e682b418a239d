/* tests/base/test_base.c: the C library we wish we had. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "runtime/base/arena.h"
#include "runtime/base/checked.h"
#include "runtime/base/dtype.h"
#include "runtime/base/file.h"
#include "runtime/base/map.h"
#include "runtime/base/pages.h"
#include "runtime/base/pieces.h"
#include "runtime/base/random.h"
#include "runtime/base/sort.h"
#include "runtime/base/status.h"
#include "runtime/base/text.h"

static void arena_aligns_and_zeroes(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_random random = tl_random_make(1);
    for (int i = 0; i < 2000; i++) {
        size_t size = (size_t)tl_random_below(&random, 3000),
               align = (size_t)1 << tl_random_below(&random, 8);
        unsigned char *p = tl_arena_alloc(arena, size, align);
        assert_int_equal((uintptr_t)p % align, 0);
        for (size_t b = 0; b < size; b++)
            assert_int_equal(p[b], 0);
        memset(p, 0xff, size);
    }
    assert_string_equal(tl_arena_format(arena, "%d-%s", 7, "x"), "7-x");
    tl_arena_destroy(arena);
}

static tl_status use_memory(size_t limit, size_t fail_at, tl_diag *diag)
{
    tl_arena *arena = tl_arena_create(limit);
    if (arena == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        return tl_fail(diag, TL_NO_MEMORY, "limit of %zu bytes", limit);
    }
    tl_arena_fail_at(arena, fail_at);
    for (int i = 0; i < 100; i++)
        TL_NEW_ARRAY(arena, int, 1000);
    tl_arena_destroy(arena);
    return TL_OK;
}

static void arena_running_out_is_a_status(void **state)
{
    (void)state;
    tl_diag diag = { 0 };
    assert_int_equal(use_memory(100000, 0, &diag), TL_NO_MEMORY);
    assert_string_equal(diag.text, "limit of 100000 bytes");
    assert_int_equal(use_memory(0, 0, NULL), TL_OK);
    for (size_t n = 1; n <= 100; n++)
        assert_int_equal(use_memory(0, n, NULL), TL_NO_MEMORY);
    assert_int_equal(use_memory(0, 101, NULL), TL_OK);
}

static tl_status huge_array(void)
{
    tl_arena *arena = tl_arena_create(0);
    if (arena == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        return TL_NO_MEMORY;
    }
    volatile size_t count = SIZE_MAX / 4;
    TL_NEW_ARRAY(arena, double, count);
    tl_arena_destroy(arena);
    return TL_OK;
}

static void arena_refuses_sizes_that_overflow(void **state)
{
    (void)state;
    assert_int_equal(huge_array(), TL_NO_MEMORY);
}

static void diag_gathers_context(void **state)
{
    (void)state;
    tl_diag diag = { 0 };
    assert_int_equal(tl_fail(&diag, TL_BAD_MODEL, "axis %d", 3), TL_BAD_MODEL);
    tl_context(&diag, "node %s", "conv1");
    tl_context(&diag, "model %s", "m.onnx");
    assert_string_equal(diag.text, "axis 3\n  in node conv1\n  in model m.onnx");
    for (int i = 0; i < 1000; i++)
        tl_context(&diag, "filling up %d", i);
    assert_true(strlen(diag.text) < sizeof diag.text);
    tl_context(NULL, "nobody reads");
    assert_int_equal(tl_status_exit_code(TL_BAD_ARGUMENT), 2);
}

static void map_keeps_insertion_order(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_map *map = tl_map_create(arena);
    int values[1000];
    for (int i = 0; i < 1000; i++)
        tl_map_put(map, tl_arena_format(arena, "key%d", i * 7919 % 1000), &values[i]);
    assert_int_equal(tl_map_count(map), 1000);
    for (int i = 0; i < 1000; i++) {
        char key[16];
        snprintf(key, sizeof key, "key%d", i * 7919 % 1000);
        assert_string_equal(tl_map_at(map, (size_t)i).key, key);
        assert_ptr_equal(tl_map_find(map, key), &values[i]);
    }
    assert_null(tl_map_find(map, "absent"));
    tl_map_put(map, "key0", NULL);
    assert_true(tl_map_has(map, "key0"));
    assert_int_equal(tl_map_count(map), 1000);
    tl_arena_destroy(arena);
}

static void digest_depends_on_every_byte(void **state)
{
    (void)state;
    unsigned char bytes[100] = { 0 };
    char first[33], other[33];
    tl_digest d;
    tl_digest_start(&d);
    tl_digest_add(&d, bytes, sizeof bytes);
    tl_digest_text(&d, first);
    assert_int_equal(strlen(first), 32);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = 1;
        tl_digest_start(&d);
        tl_digest_add(&d, bytes, sizeof bytes);
        tl_digest_text(&d, other);
        assert_string_not_equal(first, other);
        bytes[i] = 0;
    }
    tl_digest_start(&d);
    tl_digest_add(&d, bytes, sizeof bytes - 1);
    tl_digest_text(&d, other);
    assert_string_not_equal(first, other);
}

static void f16_round_trips_and_rounds_to_even(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 65536; bits++) {
        float f = tl_f16_to_f32((uint16_t)bits);
        if (isnan(f))
            assert_true(isnan(tl_f16_to_f32(tl_f32_to_f16(f))));
        else
            assert_int_equal(tl_f32_to_f16(f), bits);
        float b = tl_bf16_to_f32((uint16_t)bits);
        if (!isnan(b))
            assert_int_equal(tl_f32_to_bf16(b), bits);
    }
    assert_int_equal(tl_f32_to_f16(65519.996f), 0x7bff);
    assert_int_equal(tl_f32_to_f16(65520.0f), 0x7c00);
    assert_int_equal(tl_f32_to_f16(1.0f + 0x1p-11f), 0x3c00);
    assert_int_equal(tl_f32_to_f16(1.0f + 3 * 0x1p-11f), 0x3c02);
    assert_int_equal(tl_f32_to_f16(0x1p-25f), 0);
    assert_int_equal(tl_f32_to_f16(0x1.8p-24f), 2);
    uint16_t cell;
    tl_number_store(TL_F16, &cell, 0, (tl_number){ .f = 1.0 + 0x1p-11 + 0x1p-40 });
    assert_int_equal(cell, 0x3c01); /* rounding to float first would give 0x3c00 */
}

static void casts_follow_onnx(void **state)
{
    (void)state;
    static const struct {
        tl_dtype from;
        double value;
        tl_dtype to;
        double want;
    } rows[] = {
        { TL_F32, 3.9, TL_I32, 3 },
        { TL_F32, -3.9, TL_I8, -3 },
        { TL_F32, 300, TL_I8, 127 },
        { TL_F32, -300, TL_I8, -128 },
        { TL_F32, -1, TL_U8, 0 },
        { TL_F32, 1e30, TL_U8, 255 },
        { TL_F32, 1e30, TL_I64, 9223372036854775807.0 },
        { TL_F32, NAN, TL_I32, 0 },
        { TL_I32, 300, TL_I8, 44 },
        { TL_I32, -1, TL_U8, 255 },
        { TL_F32, NAN, TL_BOOL, 1 },
        { TL_F32, -0.0, TL_BOOL, 0 },
        { TL_I64, 16777217, TL_F32, 16777216 },
        { TL_F64, 65520, TL_F16, INFINITY },
        { TL_BOOL, 1, TL_F32, 1 },
        { TL_F64, 1.00390625, TL_BF16, 1.0 },
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        tl_number v, got;
        if (tl_dtype_is_float(rows[r].from))
            v.f = rows[r].value;
        else
            v.i = (int64_t)rows[r].value;
        got = tl_number_cast(rows[r].to, rows[r].from, v);
        double number = tl_dtype_is_float(rows[r].to) ? got.f : (double)got.i;
        if (number != rows[r].want)
            fail_msg("row %zu: %s %g to %s gave %g, not %g", r, tl_dtype_infos[rows[r].from].text,
                     rows[r].value, tl_dtype_infos[rows[r].to].text, number, rows[r].want);
    }
}

/* What the table says of a dtype is what its elements do in memory. */
static void dtypes_have_their_ranges(void **state)
{
    (void)state;
    for (int d = 0; d < TL_DTYPE_COUNT; d++) {
        const tl_dtype_info *info = &tl_dtype_infos[d];
        unsigned char cell[8];
        tl_number least = { .i = info->least }, largest = { .i = (int64_t)info->largest };
        assert_in_range(info->digits, 1, info->bits);
        if (tl_dtype_is_float(
                (tl_dtype)d)) { /* 1 + 2^(1 - digits) is a number, half of that is not */
            tl_number_store((tl_dtype)d, cell, 0,
                            (tl_number){ .f = 1 + ldexp(1, 1 - info->digits) });
            assert_true(tl_number_load((tl_dtype)d, cell, 0).f > 1);
            tl_number_store((tl_dtype)d, cell, 0, (tl_number){ .f = 1 + ldexp(1, -info->digits) });
            assert_true(tl_number_load((tl_dtype)d, cell, 0).f == 1);
            continue;
        }
        tl_number_store((tl_dtype)d, cell, 0, least);
        assert_int_equal(tl_number_load((tl_dtype)d, cell, 0).i, least.i);
        tl_number_store((tl_dtype)d, cell, 0, largest);
        assert_int_equal(tl_number_load((tl_dtype)d, cell, 0).i, largest.i);
        assert_true(info->largest - (uint64_t)info->least == UINT64_MAX >> (64 - info->digits));
        if (d == TL_BOOL)
            continue;           /* a number is false or true, and saturates to neither */
        if (info->digits < 8) { /* and of four bits the low ones are kept */
            assert_int_equal(tl_number_cast((tl_dtype)d, TL_F64, (tl_number){ .f = 17.5 }).i, 1);
            assert_int_equal(tl_number_cast((tl_dtype)d, TL_F64, (tl_number){ .f = -9 }).i, 7);
            assert_int_equal(tl_number_cast((tl_dtype)d, TL_I64, (tl_number){ .i = 8 }).i,
                             d == TL_I4 ? -8 : 8);
            continue;
        }
        least = tl_number_cast((tl_dtype)d, TL_F64, (tl_number){ .f = -1e300 });
        largest = tl_number_cast((tl_dtype)d, TL_F64, (tl_number){ .f = 1e300 });
        assert_int_equal(least.i, info->least);
        assert_int_equal(largest.i, (int64_t)info->largest);
    }
}

static void storage_is_counted_in_bits(void **state)
{
    static const struct {
        int bits;
        int64_t elements, bytes;
    } rows[] = {
        { 4, 0, 0 },
        { 4, 1, 1 },
        { 4, 2, 1 },
        { 4, 3, 2 },
        { 4, 17, 9 },
        { 8, 17, 17 },
        { 16, 3, 6 },
        { 32, 5, 20 },
        { 64, 7, 56 },
        { 8, INT64_MAX, INT64_MAX },
        { 4, INT64_MAX, INT64_C(1) << 62 },
        { 16, INT64_MAX / 2, INT64_MAX - 1 },
        { 16, INT64_MAX / 2 + 1, -1 },
        { 64, INT64_MAX / 8 + 1, -1 },
        { 32, -1, -1 },
    };
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        assert_int_equal(tl_packed_bytes(rows[r].bits, rows[r].elements), rows[r].bytes);
    assert_int_equal(tl_storage_bytes(TL_BF16, 21), 42);
}

static void division_rounds_down(void **state)
{
    (void)state;
    for (int64_t a = -20; a <= 20; a++)
        for (int64_t b = -7; b <= 7; b++) {
            if (b == 0)
                continue;
            assert_int_equal(tl_floordiv(a, b), (int64_t)floor((double)a / (double)b));
            assert_int_equal(tl_ceildiv(a, b), (int64_t)ceil((double)a / (double)b));
            assert_int_equal(tl_floordiv(a, b) * b + tl_floormod(a, b), a);
        }
    int64_t out = 5;
    assert_true(tl_mul_overflows(INT64_MAX, 2, &out));
    assert_int_equal(out, 5);
    assert_false(tl_mul_overflows(-4, 2, &out));
    assert_int_equal(out, -8);
}

static void random_numbers_are_uniform(void **state)
{
    (void)state;
    tl_random r = tl_random_make(42), again = tl_random_make(42);
    int counts[7] = { 0 };
    double sum = 0, squares = 0;
    for (int i = 0; i < 70000; i++)
        counts[tl_random_below(&r, 7)]++;
    for (int i = 0; i < 7; i++)
        assert_in_range(counts[i], 9500, 10500);
    for (int i = 0; i < 10000; i++) {
        double x = tl_random_normal(&r);
        sum += x;
        squares += x * x;
    }
    assert_true(fabs(sum / 10000) < 0.05 && fabs(squares / 10000 - 1) < 0.05);
    assert_int_equal(tl_random_next(&again),
                     UINT64_C(0xbdd732262feb6e95)); /* splitmix64's first for 42 */
}

static void a_file_is_whole_or_absent(void **state)
{
    (void)state;
    char folder[] = "/tmp/tilth-base-XXXXXX", path[64], inner[80];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.bin", folder);
    tl_diag diag = { 0 };
    tl_file *file;
    assert_int_equal(tl_file_create(path, &file, &diag), TL_OK);
    assert_int_equal(tl_file_append(file, "half", 4, &diag), TL_OK);
    assert_int_not_equal(access(path, F_OK), 0);
    tl_file_abandon(file);
    assert_int_equal(rmdir(folder), 0); /* nothing is left */

    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(tl_file_write(path, "hello", 5, &diag), TL_OK);
    tl_mapping mapping;
    assert_int_equal(tl_file_map(path, &mapping, &diag), TL_OK);
    assert_int_equal(mapping.size, 5);
    assert_memory_equal(mapping.data, "hello", 5);
    tl_file_unmap(&mapping);
    assert_int_equal(tl_file_map(folder, &mapping, &diag), TL_BAD_ARGUMENT);
    snprintf(inner, sizeof inner, "%s/none/x", folder);
    assert_int_equal(tl_file_map(inner, &mapping, &diag), TL_BAD_ARGUMENT);
    assert_int_equal(tl_file_write(inner, "x", 1, &diag), TL_IO);
    /* more than is written at once */
    tl_text large = { 0 }, back = { 0 };
    for (int i = 0; i < 400000; i++)
        tl_text_format(&large, "%d,", i);
    assert_int_equal(tl_file_write(path, large.data, large.size, &diag), TL_OK);
    assert_int_equal(tl_file_read(path, &back, &diag), TL_OK);
    assert_true(back.size == large.size && memcmp(back.data, large.data, large.size) == 0);
    tl_text_free(&large);
    tl_text_free(&back);
    assert_non_null(strstr(diag.text, inner));
    snprintf(inner, sizeof inner, "%s/p/q", folder);
    assert_int_equal(tl_folder_make(inner, &diag), TL_OK);
    assert_int_equal(tl_folder_make(inner, &diag), TL_OK);
    rmdir(inner);
    snprintf(inner, sizeof inner, "%s/p", folder);
    rmdir(inner);
    assert_int_equal(tl_file_write("/dev/full/x", "x", 1, &diag), TL_IO);
    unlink(path);
    rmdir(folder);
}

static void text_grows(void **state)
{
    (void)state;
    tl_text text = { 0 };
    assert_string_equal(tl_text_get(&text), "");
    for (int i = 0; i < 1000; i++)
        tl_text_format(&text, "%d,", i);
    tl_text_indent(&text, 3);
    tl_text_add(&text, "end");
    assert_int_equal(text.size, strlen(text.data));
    assert_string_equal(text.data + text.size - 10, "998,999,   end" + 4);
    tl_text_free(&text);
}

static void edits_are_counted(void **state)
{
    (void)state;
    assert_int_equal(tl_text_edits("split", "split"), 0);
    assert_int_equal(tl_text_edits("vectorise", "vectorize"), 1);
    assert_int_equal(tl_text_edits("", "abc"), 3);
    assert_int_equal(tl_text_edits("kitten", "sitting"), 3);
    char longer[80] = { 0 };
    memset(longer, 'a', sizeof longer - 1);
    assert_int_equal(tl_text_edits(longer, "a"), 64);
}

static void pieces_keep_their_distance(void **state)
{
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "/tmp/tilth-pieces-%d", (int)getpid());
    tl_arena *arena = tl_arena_create(0);
    tl_pieces pieces = tl_pieces_make(arena, 3);
    assert_int_equal(tl_pieces_add(&pieces, "abc", 3, 64), 0);
    assert_int_equal(tl_pieces_add(&pieces, "de", 2, 8192), 8192);
    assert_int_equal(tl_pieces_add(&pieces, NULL, 0, 4), 8196);
    assert_int_equal(pieces.size, 8196);

    tl_file *file;
    tl_mapping mapping;
    char want[8196] = "abc";
    memcpy(want + 8192, "de", 2);
    assert_int_equal(tl_file_create(path, &file, NULL), TL_OK);
    assert_int_equal(tl_pieces_append(&pieces, file, NULL), TL_OK);
    assert_int_equal(tl_file_commit_unsynced(file, NULL), TL_OK);
    assert_int_equal(tl_file_map(path, &mapping, NULL), TL_OK);
    assert_int_equal(mapping.size, sizeof want);
    assert_memory_equal(mapping.data, want, sizeof want);
    tl_file_unmap(&mapping);
    unlink(path);
    tl_arena_destroy(arena);
}

static void doubles_are_sorted(void **state)
{
    (void)state;
    double values[] = { 2, -1, 1e300, 0, -1, -1e300 };
    const double sorted[] = { -1e300, -1, -1, 0, 2, 1e300 };
    tl_sort_doubles(values, 6);
    assert_memory_equal(values, sorted, sizeof sorted);
    tl_sort_doubles(values, 0);
    tl_sort_doubles(NULL, -1);
}

/* Whole of what was asked for can be used, from one byte to several large pages and some more, and nothing behind. */
static void pages_are_zero_and_aligned(void **state)
{
    (void)state;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), large = (size_t)2 << 20;
    const size_t sizes[] = { 1, page, large - 1, large, large + 1, 3 * large + page + 5 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i], mapped = (size + page - 1) / page * page;
        unsigned char *memory = tl_pages_take(size), resident;
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % (size < large ? page : large), 0);
        for (size_t at = 0; at < size; at += page)
            assert_int_equal(memory[at], 0);
        memset(memory, 1, size);
        tl_pages_give(memory, size);
        for (size_t at = 0; at < mapped;
             at += page) { /* mincore knows nothing of what is not mapped */
            assert_int_equal(mincore(memory + at, page, &resident), -1);
            assert_int_equal(errno, ENOMEM);
        }
    }
    assert_null(tl_pages_take(SIZE_MAX / 2));
    assert_null(tl_pages_take(SIZE_MAX));
    tl_pages_give(NULL, 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_keep_their_distance),
        cmocka_unit_test(edits_are_counted),
        cmocka_unit_test(arena_aligns_and_zeroes),
        cmocka_unit_test(arena_running_out_is_a_status),
        cmocka_unit_test(arena_refuses_sizes_that_overflow),
        cmocka_unit_test(diag_gathers_context),
        cmocka_unit_test(map_keeps_insertion_order),
        cmocka_unit_test(digest_depends_on_every_byte),
        cmocka_unit_test(f16_round_trips_and_rounds_to_even),
        cmocka_unit_test(casts_follow_onnx),
        cmocka_unit_test(dtypes_have_their_ranges),
        cmocka_unit_test(storage_is_counted_in_bits),
        cmocka_unit_test(division_rounds_down),
        cmocka_unit_test(random_numbers_are_uniform),
        cmocka_unit_test(a_file_is_whole_or_absent),
        cmocka_unit_test(text_grows),
        cmocka_unit_test(doubles_are_sorted),
        cmocka_unit_test(pages_are_zero_and_aligned),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
