/* tests/runtime/c_objects.h: objects made by a C compiler, in a folder of the test's own. */
#ifndef TL_TESTS_RUNTIME_C_OBJECTS_H
#define TL_TESTS_RUNTIME_C_OBJECTS_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/runtime/kernels.h"

static char *folder;

static inline int make_folder(void **state)
{
    (void)state;
    folder = temp_folder_make();
    return 0;
}

static inline int remove_folder(void **state)
{
    (void)state;
    temp_folder_remove(folder);
    return 0;
}

/* Skips the test where there is no compiler, or no loader. */
static inline void need_c_object(const char *source, const char *options, tl_text *object)
{
#if !defined(__x86_64__)
    print_message("skip: the code loader is for x86-64\n");
    skip();
#endif
    if (!compile_kernel(folder, source, options, object)) {
        print_message("skip: no C compiler to make a kernel with\n");
        skip();
    }
}

#endif
