/* runtime/base/array.c: see array.h. */
#include "runtime/base/array.h"
#include <assert.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 8 };

/* Twice as many; 0 when an int does not hold that. */
static int wider(int capacity)
{
    if (capacity > INT_MAX / 2)
        return 0;
    return capacity < FIRST ? FIRST : 2 * capacity;
}

void *tl_array_room(tl_arena *arena, void *items, int count, int *capacity, size_t item_size)
{
    assert(count >= 0 && count <= *capacity && item_size > 0 && (items != NULL || count == 0));
    if (count < *capacity)
        return items;
    int wanted = wider(*capacity);
    size_t most = wanted > 0 ? (size_t)wanted : SIZE_MAX; /* the arena refuses the latter */
    void *larger = tl_arena_alloc_array(arena, item_size, most, _Alignof(max_align_t));
    if (count > 0)
        memcpy(larger, items, item_size * (size_t)count);
    *capacity = wanted;
    return larger;
}

void *tl_array_heap_room(void *items, int count, int *capacity, size_t item_size)
{
    size_t bytes;
    assert(count >= 0 && count <= *capacity && item_size > 0 && (items != NULL || count == 0));
    if (count < *capacity)
        return items;
    int wanted = wider(*capacity);
    if (wanted == 0 || __builtin_mul_overflow(item_size, (size_t)wanted, &bytes))
        return items;
    void *larger = realloc(items, bytes);
    if (larger == NULL)
        return items;
    *capacity = wanted;
    return larger;
}
