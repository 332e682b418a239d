/* runtime/base/pieces.h: bytes that lie in many places and go to one: what a file or a section of it will hold. */
#ifndef TL_RUNTIME_BASE_PIECES_H
#define TL_RUNTIME_BASE_PIECES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "runtime/base/arena.h"
#include "runtime/base/file.h"

typedef struct {
    const void *data; /* borrowed */
    int64_t size, offset;
    /* of a file's mapping: its pages leave memory once they are written (tl_pages_rest) */
    bool is_mapped;
} tl_piece;

/* In order of their offsets; what lies between two of them is zero. */
typedef struct {
    tl_piece *items; /* room for `capacity`, in the arena */
    int count, capacity;
    int64_t size; /* where the last one ends */
} tl_pieces;

tl_pieces tl_pieces_make(tl_arena *arena, int capacity);
/* Puts a piece behind the others, at a multiple of `alignment`; returns its offset. There must be room. */
int64_t tl_pieces_add(tl_pieces *pieces, const void *data, int64_t size, int64_t alignment);
tl_status tl_pieces_append(const tl_pieces *pieces, tl_file *file, tl_diag *diag);

#endif
