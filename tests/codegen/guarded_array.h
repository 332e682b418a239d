/* tests/codegen/guarded_array.h: memory between two pages that nobody may touch, hard against one of them: what
 * compiled code reads or writes outside of its buffer ends the test. */
#ifndef TL_TESTS_GUARDED_ARRAY_H
#define TL_TESTS_GUARDED_ARRAY_H
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/mman.h>
#include "runtime/base/dtype.h"

typedef struct {
    tl_dtype dtype;
    int64_t count;
    void *start, *data; /* before the call; its own copy, see place() */
    unsigned char *pages;
} array;

#define GUARD    4096
#define MAX_SIZE (1 << 20)

static inline void place(array *a, bool at_end)
{
    size_t size = (size_t)a->count * tl_dtype_size(a->dtype),
           room = (size + GUARD - 1) / GUARD * GUARD;
    assert_true(size <= MAX_SIZE);
    if (a->pages == NULL) {
        a->pages = mmap(NULL, room + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(a->pages, MAP_FAILED);
        assert_int_equal(mprotect(a->pages + GUARD, room, PROT_READ | PROT_WRITE), 0);
    }
    a->data = a->pages + GUARD + (at_end ? room - size : 0);
}

static inline void unplace(array *a)
{
    size_t size = (size_t)a->count * tl_dtype_size(a->dtype),
           room = (size + GUARD - 1) / GUARD * GUARD;
    munmap(a->pages, room + 2 * GUARD);
}

#endif
