/* tests/base/test_spill.c: memory in a file without a name: what is dropped comes back, what cannot be is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "runtime/base/arena.h"
#include "runtime/base/pages.h"
#include "runtime/base/spill.h"

static const char folder[] = "build"; /* on a disk; /tmp may be memory */
enum { SIZE = 3 << 20 };

static void fill(unsigned char *data, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++)
        data[i] = (unsigned char)(i * 31 + i / 4096 + seed);
}

static bool is_filled(const unsigned char *data, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++)
        if (data[i] != (unsigned char)(i * 31 + i / 4096 + seed))
            return false;
    return true;
}

static size_t resident_pages(const void *data, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), count = 0, pages = size / page;
    unsigned char *in = calloc(pages, 1);
    assert_non_null(in);
    assert_int_equal(mincore((void *)(uintptr_t)data, size, in), 0);
    for (size_t i = 0; i < pages; i++)
        count += in[i] & 1;
    free(in);
    return count;
}

static void what_rests_comes_back(void **state)
{
    (void)state;
    tl_spill *spill = tl_spill_create(folder);
    if (spill == NULL)
        skip(); /* this disk has no files without names */
    unsigned char *first = tl_spill_take(spill, SIZE), *second = tl_spill_take(spill, 5000);
    assert_non_null(first);
    assert_non_null(second);
    assert_int_equal(first[SIZE - 1], 0);
    fill(first, SIZE, 1);
    fill(second, 5000, 2);
    assert_non_null(tl_spill_take(spill, SIZE));
    tl_pages_rest(first, SIZE);
    assert_true(resident_pages(first, SIZE) > 0); /* in the system's cache */
    assert_true(is_filled(first, SIZE, 1));
    assert_true(is_filled(second, 5000, 2));
    assert_true(tl_spill_has(spill, first + 100, SIZE - 100));
    assert_false(tl_spill_has(spill, first + 100, 2 * SIZE));
    assert_false(tl_spill_has(spill, &spill, 8));
    tl_spill_destroy(spill);
}

static void what_cannot_be_is_null(void **state)
{
    (void)state;
    assert_null(tl_spill_create("/nowhere/at/all"));
    assert_null(tl_spill_create("/proc"));
    tl_spill_destroy(NULL);
    tl_spill *spill = tl_spill_create(folder);
    if (spill == NULL)
        skip();
    assert_null(tl_spill_take(spill, 0));
    assert_null(tl_spill_take(spill, SIZE_MAX));
    assert_null(tl_spill_take(spill, (size_t)1 << 60)); /* no disk is as large */
    assert_non_null(tl_spill_take(spill, 1));
    tl_spill_destroy(spill);
}

/* An arena that spills gives what one does that does not, and keeps its limit. */
static void arenas_spill_what_is_large(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create((size_t)16 << 20);
    tl_arena_spill_into(arena, folder);
    unsigned char *small = tl_arena_alloc(arena, 1000, 64),
                  *large = tl_arena_alloc(arena, SIZE, 64);
    assert_int_equal((uintptr_t)large % 64, 0);
    assert_int_equal(large[0] | large[SIZE - 1] | small[0], 0);
    fill(large, SIZE, 3);
    assert_false(tl_arena_is_spilled(arena, small, 1000));
    if (tl_arena_is_spilled(arena, large, SIZE))
        tl_pages_rest(large, SIZE);
    assert_true(is_filled(large, SIZE, 3));
    if (TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        return;
    }
    tl_arena_alloc(arena, (size_t)15 << 20, 64);
    fail_msg("the arena gave more than its limit");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_rests_comes_back),
        cmocka_unit_test(what_cannot_be_is_null),
        cmocka_unit_test(arenas_spill_what_is_large),
    };
    return cmocka_run_group_tests_name("spill", tests, NULL, NULL);
}
