/* tests/runtime/test_plan.c: no two buffers that are alive together overlap, whatever is asked
 * for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/random.h"
#include "runtime/executable/memory_plan.h"

static bool overlap(const tl_plan_buffer *a, const tl_plan_buffer *b)
{
    bool together = a->first <= b->last && b->first <= a->last;

    return together && a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

static void check(const tl_plan_buffer *b, int count, tl_plan_sizes sizes, uint64_t seed)
{
    for (int i = 0; i < count; i++) {
        if (b[i].offset < 0 || b[i].offset % TL_PLAN_ALIGNMENT != 0 ||
            b[i].offset + b[i].size > sizes.planned)
            fail_msg("seed %llu: buffer %d at %lld", (unsigned long long)seed, i,
                     (long long)b[i].offset);
        for (int j = 0; j < i; j++)
            if (overlap(&b[i], &b[j]))
                fail_msg("seed %llu: buffers %d and %d overlap", (unsigned long long)seed, i, j);
    }
    int64_t floor = 0;
    for (int i = 0; i < count; i++) {
        int64_t alive = 0; /* a maximum is reached where some life begins */
        for (int j = 0; j < count; j++)
            if (b[j].first <= b[i].first && b[i].first <= b[j].last)
                alive += (b[j].size + 63) / 64 * 64;
        floor = alive > floor ? alive : floor;
    }
    assert_int_equal(sizes.floor, floor);
    assert_true(sizes.floor <= sizes.planned && sizes.planned <= sizes.sum);
}

static void random_requests(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        tl_random r = tl_random_make(seed);
        int count = (int)tl_random_below(&r, 60), steps = 1 + (int)tl_random_below(&r, 40);
        tl_plan_buffer buffers[64], again[64];
        tl_plan_sizes sizes, sizes_again;
        for (int i = 0; i < count; i++) {
            int first = (int)tl_random_below(&r, steps);
            int last = first + (int)tl_random_below(&r, steps - first);
            int64_t size = tl_random_below(&r, 8) == 0 ? 0 : tl_random_below(&r, 5000);
            buffers[i] = (tl_plan_buffer){ size, first, last, -1 };
        }
        memcpy(again, buffers, sizeof again);
        assert_int_equal(tl_memory_plan(buffers, count, &sizes, NULL), TL_OK);
        check(buffers, count, sizes, seed);
        assert_int_equal(tl_memory_plan(again, count, &sizes_again, NULL), TL_OK);
        for (int i = 0; i < count; i++)
            assert_int_equal(buffers[i].offset, again[i].offset);
    }
}

/* A hundred thousand layers, and a value that is alive in all of them. */
static void long_chains_are_planned(void **state)
{
    enum { LAYERS = 100000 };
    (void)state;
    tl_plan_buffer *b = calloc(LAYERS + 1, sizeof *b);
    tl_plan_sizes sizes;
    assert_non_null(b);
    for (int i = 0; i < LAYERS; i++)
        b[i] = (tl_plan_buffer){ 1000 + i % 2, i, i + 1, 0 };
    b[LAYERS] = (tl_plan_buffer){ 64, 0, LAYERS, 0 };
    assert_int_equal(tl_memory_plan(b, LAYERS + 1, &sizes, NULL), TL_OK);
    assert_int_equal(sizes.floor, 2 * 1024 + 64);
    assert_int_equal(sizes.planned, sizes.floor);
    for (int i = 1; i < LAYERS; i++)
        assert_false(overlap(&b[i - 1], &b[i]) || overlap(&b[i], &b[LAYERS]));
    free(b);
}

/* A chain of layers needs room for two: this is what a network looks like. */
static void a_chain_reuses(void **state)
{
    (void)state;
    enum { LAYERS = 20 };
    tl_plan_buffer b[LAYERS];
    tl_plan_sizes sizes;

    for (int i = 0; i < LAYERS; i++)
        b[i] = (tl_plan_buffer){ 1000, i, i + 1, 0 };
    assert_int_equal(tl_memory_plan(b, LAYERS, &sizes, NULL), TL_OK);
    check(b, LAYERS, sizes, 0);
    assert_int_equal(sizes.sum, LAYERS * 1024);
    assert_int_equal(sizes.planned, 2 * 1024);
    assert_int_equal(sizes.floor, 2 * 1024);
}

static void nothing_to_plan(void **state)
{
    (void)state;
    tl_plan_sizes sizes = { 1, 1, 1 };
    assert_int_equal(tl_memory_plan(NULL, 0, &sizes, NULL), TL_OK);
    assert_int_equal(sizes.planned, 0);
    assert_int_equal(sizes.sum, 0);
}

static void bad_requests_are_refused(void **state)
{
    (void)state;
    tl_plan_buffer bad[][2] = {
        { { -1, 0, 0, 0 }, { 0 } },
        { { 8, 2, 1, 0 }, { 0 } },
        { { INT64_MAX, 0, 0, 0 }, { 0 } },
        { { INT64_MAX - 200, 0, 0, 0 }, { INT64_MAX - 200, 0, 0, 0 } },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tl_plan_sizes sizes;
        tl_diag diag = { 0 };
        assert_int_equal(tl_memory_plan(bad[i], 2, &sizes, &diag), TL_BAD_ARGUMENT);
        assert_non_null(strstr(diag.text, "memory plan: buffer"));
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_requests),          cmocka_unit_test(a_chain_reuses),
        cmocka_unit_test(long_chains_are_planned),  cmocka_unit_test(nothing_to_plan),
        cmocka_unit_test(bad_requests_are_refused),
    };
    return cmocka_run_group_tests_name("memory plan", tests, NULL, NULL);
}
