/* codegen/emit/emit_fragment_llvm.c: buffers that the threads of a warp, or of a warpgroup, hold together in registers.
 *
 * The last two axes of such a buffer are rows and columns of tiles, 16 by 8 elements of a warp, and of a warpgroup 64 by 8, 16
 * rows a warp. A thread of lane l = 4g + t holds of a tile, of the 16 rows of its warp,
 *     register 0, 1: row g, columns 2t and 2t + 1        register 2, 3: the same columns of row g + 8
 * and each thread has its registers of every tile. */
#include <assert.h>
#include "codegen/emit/emit_private.h"

enum { WARP_ROWS = 16, TILE_COLUMNS = 8, TILE_REGISTERS = 4, MOST_RANK = 16 };

int64_t tl_warp_registers(const tl_buffer *buffer)
{
    int64_t count = 1, extent = 0;
    for (int a = 0; a < buffer->rank; a++) {
        tl_const_int(buffer->shape[a], &extent);
        count *= extent;
    }
    return count / tl_scope_threads[buffer->scope];
}

/* Which thread along x and register of it hold an element. */
static void place_of(const tl_buffer *buffer, const int64_t *index, int64_t *thread, int64_t *reg)
{
    assert(buffer->rank >= 2);
    int64_t tile = 0, extent = 0;
    int row_axis = buffer->rank - 2, rows = tl_scope_threads[buffer->scope] / 2;
    for (int a = 0; a < buffer->rank; a++) {
        tl_const_int(buffer->shape[a], &extent);
        int64_t size = a == row_axis ? rows : a > row_axis ? TILE_COLUMNS : 1;
        tile = tile * (extent / size) + index[a] / size;
    }
    int64_t row = index[row_axis] % rows, column = index[row_axis + 1] % TILE_COLUMNS;
    *thread = row / WARP_ROWS * TL_WARP_LANES + row % 8 * 4 + column / 2;
    *reg = tile * TILE_REGISTERS + row % WARP_ROWS / 8 * 2 + column % 2;
}

/* The index with the number of the thread and the lane of a vector filled in; false when something else is left in it. */
static bool fill(tl_emitter *em, const tl_expr *const *indices, int rank, int thread,
                 int vector_lane, int64_t *out)
{
    tl_binding bindings[TL_MAX_BOUND + 1];
    int count = 0;
    for (int i = 0; i < em->bound_count; i++)
        if (em->bound[i].kind == TL_BOUND_VALUE && em->bound[i].value == em->gpu.thread[0])
            bindings[count++] = (tl_binding){ em->bound[i].var, tl_int(em->arena, thread) };
    if (em->lane_var != NULL)
        bindings[count++] = (tl_binding){ em->lane_var, tl_int(em->arena, vector_lane) };
    for (int a = 0; a < rank; a++)
        if (!tl_const_int(tl_substitute(em->arena, indices[a], bindings, count), &out[a]))
            return false;
    return true;
}

bool tl_emit_warp_register(tl_emitter *em, const tl_buffer *buffer, const tl_expr *const *indices,
                           int64_t *out)
{
    int64_t index[MOST_RANK], thread, reg;
    const tl_expr *filled[MOST_RANK];
    bool in_row = (em->gpu.loops & 1u) != 0, fits = buffer->rank <= MOST_RANK && in_row;
    for (int a = 0; fits && a < buffer->rank; a++)
        filled[a] = tl_emit_substitute(em, indices[a]);
    int threads = tl_scope_threads[buffer->scope];
    for (int l = 0; fits && l < threads; l++)
        for (int v = 0; fits && v < em->lanes; v++) {
            fits = fill(em, filled, buffer->rank, l, v, index);
            if (!fits)
                break;
            place_of(buffer, index, &thread, &reg);
            if (l == 0 && v == 0)
                *out = reg;
            fits = thread == l && reg == *out + (em->lanes > 1 && v > 0 ? v : 0);
        }
    if (!fits)
        tl_emit_fail(
            em, em->i64, TL_UNSUPPORTED,
            "buffer %s is held by a %s: inside a threadIdx.x loop of %d a thread touches "
            "its own elements, of a tile of 16 by 8%s those of rows x%s//4 and x%s//4 + 8, columns "
            "x%%4*2 and x%%4*2 + 1, and loops over tiles and registers are unrolled",
            buffer->name, tl_scope_texts[buffer->scope], threads,
            threads > TL_WARP_LANES ? ", number x//32 of 64 rows," : "",
            threads > TL_WARP_LANES ? "%32" : "", threads > TL_WARP_LANES ? "%32" : "");
    return fits;
}

bool tl_emit_warp_tile(tl_emitter *em, const tl_buffer *buffer, const tl_expr *const *begin,
                       LLVMValueRef *base, int64_t *first)
{
    int64_t index[MOST_RANK], thread = -1;
    bool fits = buffer->rank >= 2 && buffer->rank <= MOST_RANK;
    for (int a = 0; fits && a < buffer->rank; a++)
        fits = tl_const_int(tl_emit_substitute(em, begin[a]), &index[a]);
    if (fits) {
        place_of(buffer, index, &thread, first);
        fits = thread == 0 && *first % TILE_REGISTERS == 0;
    }
    const tl_buffer_storage *storage = fits ? tl_emit_find_storage(em, buffer) : NULL;
    if (storage == NULL) {
        tl_emit_fail(em, em->i64, TL_UNSUPPORTED,
                     "buffer %s is held by a %s: what a product takes of it is tiles of %d by 8 at "
                     "multiples of these, and loops over tiles are unrolled",
                     buffer->name, tl_scope_texts[buffer->scope],
                     tl_scope_threads[buffer->scope] / 2);
        return false;
    }
    *base = storage->base;
    return true;
}
