/* tests/tuner/test_catalog.c: what was built before is known without building it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/tuner/small_gemm.h"
#include "tuner/catalog.h"

static void wishes_are_met_once(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_target target;
    tl_space *space;
    tl_diag diag = { 0 };
    assert_int_equal(tl_target_named("x86-64-v4", &target, &diag), TL_OK);
    assert_int_equal(tl_space_create(arena, &gemm, &target, 1, &space, &diag), TL_OK);
    tl_catalog *catalog = tl_catalog_create(space, false);
    tl_wish two[] = { { "gemm.rows", 2 } }, three[] = { { "gemm.rows", 3 } },
            far[] = { { "gemm.rows", 3 }, { "gemm.of_nobody", 7 } };
    int entry = 99;
    assert_false(tl_catalog_met(catalog, 0, two, 1, &entry));
    int first = tl_catalog_build(catalog, 0, two, 1);
    assert_true(first != TL_NO_ENTRY);
    assert_true(tl_catalog_met(catalog, 0, two, 1, &entry));
    assert_int_equal(entry, first);
    assert_false(tl_catalog_met(catalog, 0, three, 1, &entry));
    assert_false(tl_catalog_met(catalog, 0, two, 0, &entry));
    /* asking builds nothing; what asks for more than there is comes to the same program */
    assert_int_equal(tl_catalog_builds(catalog), 1);
    int second = tl_catalog_build(catalog, 0, three, 1);
    assert_true(second != first);
    assert_int_equal(tl_catalog_build(catalog, 0, far, 2), second);
    assert_int_equal(tl_catalog_builds(catalog), 3);
    assert_true(tl_catalog_met(catalog, 0, far, 2, &entry));
    assert_int_equal(entry, second);
    assert_int_equal(tl_catalog_count(catalog), 2);
    tl_catalog_destroy(catalog);
    tl_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wishes_are_met_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
