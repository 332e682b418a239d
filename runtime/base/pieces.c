/* runtime/base/pieces.c: bytes that lie in many places and go to one. */
#include "runtime/base/pieces.h"
#include <assert.h>
#include "runtime/base/checked.h"
#include "runtime/base/pages.h"

tl_pieces tl_pieces_make(tl_arena *arena, int capacity)
{
    return (tl_pieces){ .items = TL_NEW_ARRAY(arena, tl_piece, capacity), .capacity = capacity };
}

int64_t tl_pieces_add(tl_pieces *pieces, const void *data, int64_t size, int64_t alignment)
{
    int64_t offset = tl_ceildiv(pieces->size, alignment) * alignment;

    assert(pieces->count < pieces->capacity);
    pieces->items[pieces->count++] = (tl_piece){ .data = data, .size = size, .offset = offset };
    pieces->size = offset + size;
    return offset;
}

/* What is written at once the system may keep on one large page; then whoever reads a row of a table has all of that page
 * (128 rows of 93 MB: 80 MB resident, and 8 in such pieces). */
enum { SMALL_PIECE = 64 << 10 };

static tl_status append(const tl_piece *p, tl_file *file, tl_diag *diag)
{
    const int64_t most = p->is_mapped ? SMALL_PIECE : INT64_MAX;
    int64_t size;

    if (p->size == 0)
        return tl_file_append(file, p->data, 0, diag);
    for (int64_t at = 0; at < p->size; at += size) {
        const char *bytes = (const char *)p->data + at;
        size = tl_min64(p->size - at, most);
        TL_TRY(tl_file_append(file, bytes, (size_t)size, diag));
        if (p->is_mapped)
            tl_pages_rest(bytes, (size_t)size);
    }
    return TL_OK;
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
        TL_TRY(append(p, file, diag));
        at = p->offset + p->size;
    }
    return TL_OK;
}
