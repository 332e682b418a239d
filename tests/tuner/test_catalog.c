/* tests/tuner/test_catalog.c: what was built before is known without building it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/tuner/small_gemm.h"
#include "tuner/search/catalog.h"

static void points_are_met_once(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_target target;
    tl_space *space;
    tl_diag diag = { 0 };
    assert_int_equal(tl_target_named("x86-64-v4", &target, &diag), TL_OK);
    assert_int_equal(tl_space_create(arena, &gemm, &target, 1, TL_SPACE_FULL, &space, &diag),
                     TL_OK);
    tl_catalog *catalog = tl_catalog_create(space, false);
    static const int64_t values[] = { 2, 3, 7 };
    const tl_decision rows_2 = { "gemm.rows", 3, values, 0, 0 },
                      more[] = { { "gemm.rows", 3, values, 0, 1 },
                                 { "gemm.of_nobody", 3, values, 0, 2 } };
    const tl_point two = { 0, 1, &rows_2 }, none = { 0, 0, NULL }, three = { 0, 1, more },
                   far = { 0, 2, more };
    int entry = 99;
    assert_false(tl_catalog_met(catalog, &two, &entry));
    int first = tl_catalog_build_point(catalog, &two);
    assert_true(first != TL_NO_ENTRY);
    assert_true(tl_catalog_met(catalog, &two, &entry));
    assert_int_equal(entry, first);
    assert_false(tl_catalog_met(catalog, &three, &entry));
    assert_false(tl_catalog_met(catalog, &none, &entry));
    /* asking builds nothing; what asks for more than there is comes to the same program */
    assert_int_equal(tl_catalog_builds(catalog), 1);
    int second = tl_catalog_build_point(catalog, &three);
    assert_true(second != first);
    assert_int_equal(tl_catalog_build_point(catalog, &far), second);
    assert_int_equal(tl_catalog_builds(catalog), 3);
    assert_true(tl_catalog_met(catalog, &far, &entry));
    assert_int_equal(entry, second);
    assert_int_equal(tl_catalog_count(catalog), 2);
    tl_catalog_destroy(catalog);
    tl_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_are_met_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
