/* tests/support/resident.h: how much memory this process has in use, for tests that bound it. */
#ifndef TL_TESTS_SUPPORT_RESIDENT_H
#define TL_TESTS_SUPPORT_RESIDENT_H
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include "tests/support/sanitized.h"

static inline long resident_kb(void)
{
    long pages = 0, total;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &total, &pages), 2);
    fclose(file);
    return pages * 4;
}

#endif
