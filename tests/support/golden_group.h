/* tests/support/golden_group.h: a test for each file of a folder of goldens. */
#ifndef TL_TESTS_SUPPORT_GOLDEN_GROUP_H
#define TL_TESTS_SUPPORT_GOLDEN_GROUP_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

/* `check` gets the file's path as its state. Returns what main returns. */
static inline int run_golden_group(const char *name, const char *pattern, CMUnitTestFunction check)
{
    glob_t files;
    if (glob(pattern, 0, NULL, &files) != 0)
        return 1;
    struct CMUnitTest *tests = calloc(files.gl_pathc, sizeof *tests);
    if (tests == NULL)
        return 1;
    for (size_t i = 0; i < files.gl_pathc; i++)
        tests[i] = (struct CMUnitTest){ .name = strrchr(files.gl_pathv[i], '/') + 1,
                                        .test_func = check,
                                        .initial_state = files.gl_pathv[i] };
    int failed = _cmocka_run_group_tests(name, tests, files.gl_pathc, NULL, NULL);
    free(tests);
    globfree(&files);
    return failed;
}

#endif
