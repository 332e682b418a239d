/* runtime/base/array.h: arrays that grow.
 *
 * An array is three variables or fields with names of their own: the items, how many there are, and how many there is
 * room for. All zero is an empty one. What is added goes where the room is:
 *
 *     TL_ROOM(arena, list->blocks, list->count, list->capacity);
 *     list->blocks[list->count++] = block;
 *
 * Room doubles, so that n additions cost n copies at most; items move when it does, and what pointed at them stays
 * behind: in an arena it is still readable, on the heap it is gone. */
#ifndef TL_RUNTIME_BASE_ARRAY_H
#define TL_RUNTIME_BASE_ARRAY_H
#include <stdbool.h>
#include <stddef.h>
#include "runtime/base/arena.h"

/* Room for one more item in an array of an arena; the arena's guard hears when there is no memory. What is new is zero. */
#define TL_ROOM(arena, items, count, capacity) \
    ((void)((items) = tl_array_room((arena), (items), (count), &(capacity), sizeof *(items))))

/* The same of an array on the heap, whose owner frees `items`: false, and nothing has changed, when there is no memory. */
#define TL_HEAP_ROOM(items, count, capacity)                                       \
    ((items) = tl_array_heap_room((items), (count), &(capacity), sizeof *(items)), \
     (count) < (capacity))

/* What the macros call. `items` itself, or the larger copy; on the heap `items` also when there is none. */
void *tl_array_room(tl_arena *arena, void *items, int count, int *capacity, size_t item_size);
void *tl_array_heap_room(void *items, int count, int *capacity, size_t item_size);

#endif
