/* tests/support/sketch_programs.h: the programs of tests/golden/sketch, one after the other: small ones of every kind that
 * sketches treat differently. */
#ifndef TL_TESTS_SKETCH_PROGRAMS_H
#define TL_TESTS_SKETCH_PROGRAMS_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include "runtime/base/file.h"

#define SKETCH_PROGRAMS "tests/golden/sketch"

/* Those whose file name contains `only`; NULL: all. Too few of all fail the test. */
static inline void sketch_programs_visit(const char *only,
                                         void (*visit)(const char *name, const char *text))
{
    DIR *dir = opendir(SKETCH_PROGRAMS);
    assert_non_null(dir);
    int files = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[512];
        tl_text text = { 0 };
        if (strstr(entry->d_name, ".tk") == NULL ||
            (only != NULL && strstr(entry->d_name, only) == NULL))
            continue;
        snprintf(path, sizeof path, "%s/%s", SKETCH_PROGRAMS, entry->d_name);
        assert_int_equal(tl_file_read(path, &text, NULL), TL_OK);
        visit(entry->d_name, tl_text_get(&text));
        tl_text_free(&text);
        files++;
    }
    closedir(dir);
    assert_true(files >= 10 || only != NULL);
}

#endif
