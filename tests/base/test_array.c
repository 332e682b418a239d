/* tests/base/test_array.c: arrays that grow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <limits.h>
#include <stdlib.h>
#include "runtime/base/array.h"

typedef struct {
    int64_t value;
    char tail; /* a size that is no power of two */
} pair;

static void an_array_of_an_arena_keeps_what_was_added(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    pair *items = NULL;
    const char **names = NULL; /* another array between the pieces of the first */
    int count = 0, capacity = 0, name_count = 0, name_capacity = 0;
    for (int i = 0; i < 1000; i++) {
        TL_ROOM(arena, items, count, capacity);
        assert_true(count < capacity);
        assert_int_equal((uintptr_t)items % _Alignof(pair), 0);
        assert_int_equal(items[count].value, 0); /* what is new is zero */
        items[count++] = (pair){ i * 7919, (char)i };
        TL_ROOM(arena, names, name_count, name_capacity);
        names[name_count++] = "name";
    }
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(items[i].value, i * 7919);
        assert_int_equal(items[i].tail, (char)i);
        assert_string_equal(names[i], "name");
    }
    assert_in_range(capacity, 1000, 2000);
    tl_arena_destroy(arena);
}

static void an_array_on_the_heap_keeps_what_was_added(void **state)
{
    (void)state;
    pair *items = NULL;
    int count = 0, capacity = 0;
    for (int i = 0; i < 1000; i++) {
        assert_true(TL_HEAP_ROOM(items, count, capacity));
        items[count++] = (pair){ i, 1 };
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(items[i].value, i);
    free(items);
}

static void room_that_is_there_is_not_moved(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    int *items = NULL, count = 0, capacity = 0;
    TL_ROOM(arena, items, count, capacity);
    int *before = items, first = capacity;
    while (count < first - 1) {
        items[count++] = 1;
        TL_ROOM(arena, items, count, capacity);
        assert_ptr_equal(items, before);
    }
    items[count++] = 2;
    TL_ROOM(arena, items, count, capacity);
    assert_ptr_not_equal(items, before);
    assert_int_equal(before[first - 1], 2); /* the old place of an arena is still readable */
    tl_arena_destroy(arena);
}

/* True: the guard heard. */
static bool runs_out(size_t limit, size_t item_size, int capacity)
{
    static char some[8];
    tl_arena *arena = tl_arena_create(limit);
    if (arena == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        return true;
    }
    int wider = capacity;
    tl_array_room(arena, some, capacity, &wider, item_size);
    tl_arena_destroy(arena);
    return false;
}

static void no_memory_is_told(void **state)
{
    (void)state;
    assert_true(runs_out(1 << 12, 1 << 10, 8));
    assert_true(runs_out(0, (size_t)-1 / 8, 8)); /* more bytes than a size_t holds */
    assert_true(runs_out(0, 1, INT_MAX));        /* more items than an int holds */

    int some = 3, *items = &some, capacity = 1 << 30;
    assert_false(TL_HEAP_ROOM(items, capacity, capacity));
    assert_ptr_equal(items, &some);
    assert_int_equal(capacity, 1 << 30);
    char wide[8], *kept = wide;
    capacity = 8;
    assert_ptr_equal(tl_array_heap_room(kept, 8, &capacity, (size_t)-1 / 8), kept);
    assert_int_equal(capacity, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_of_an_arena_keeps_what_was_added),
        cmocka_unit_test(an_array_on_the_heap_keeps_what_was_added),
        cmocka_unit_test(room_that_is_there_is_not_moved),
        cmocka_unit_test(no_memory_is_told),
    };
    return cmocka_run_group_tests_name("array", tests, NULL, NULL);
}
