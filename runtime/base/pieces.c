/* runtime/base/pieces.c: bytes that lie in many places and go to one. */
#include "runtime/base/pieces.h"
#include <assert.h>
#include "runtime/base/checked.h"

tl_pieces tl_pieces_make(tl_arena *arena, int capacity)
{
    return (tl_pieces){ .items = TL_NEW_ARRAY(arena, tl_piece, capacity), .capacity = capacity };
}

int64_t tl_pieces_add(tl_pieces *pieces, const void *data, int64_t size, int64_t alignment)
{
    int64_t offset = tl_ceildiv(pieces->size, alignment) * alignment;

    assert(pieces->count < pieces->capacity);
    pieces->items[pieces->count++] = (tl_piece){ data, size, offset };
    pieces->size = offset + size;
    return offset;
}

tl_status tl_pieces_append(const tl_pieces *pieces, tl_file *file, tl_diag *diag)
{
    static const char zeros[4096];
    int64_t at = 0;

    for (int i = 0; i < pieces->count; i++) {
        const tl_piece *p = &pieces->items[i];
        for (; at < p->offset; at += tl_min64(p->offset - at, sizeof zeros))
            TL_TRY(
                tl_file_append(file, zeros, (size_t)tl_min64(p->offset - at, sizeof zeros), diag));
        TL_TRY(tl_file_append(file, p->data, (size_t)p->size, diag));
        at = p->offset + p->size;
    }
    return TL_OK;
}
