/* codegen/emit/emit_fragment_llvm.c: buffers that the threads of a warp, or of a warpgroup, hold together in registers.
 *
 * The last two axes of such a buffer are rows and columns of tiles, 16 by 8 elements of a warp, and of a warpgroup 64 by 8, 16
 * rows a warp. A thread of lane l = 4g + t holds of a tile, of the 16 rows of its warp,
 *     register 0, 1: row g, columns 2t and 2t + 1        register 2, 3: the same columns of row g + 8
 * and each thread has its registers of every tile. A buffer whose last axis has 4 elements has tiles of 4 columns, what the four
 * threads of a row have of its own each:
 *     register 0: row g, column t                        register 1: row g + 8
 * They read each other's by a shuffle. */
#include <assert.h>
#include "codegen/emit/emit_private.h"

enum { WARP_ROWS = 16, TILE_COLUMNS = 8, TILE_REGISTERS = 4, MOST_RANK = 16, ROW_THREADS = 4 };

int64_t tl_warp_registers(const tl_buffer *buffer)
{
    int64_t count = 1, extent = 0;
    for (int a = 0; a < buffer->rank; a++) {
        tl_const_int(buffer->shape[a], &extent);
        count *= extent;
    }
    return count / tl_scope_threads[buffer->scope];
}

static bool holds_rows(const tl_buffer *buffer)
{
    return buffer->rank >= 2 && tl_is_int(buffer->shape[buffer->rank - 1], ROW_THREADS);
}

/* Which thread along x and register of it hold an element. */
static void place_of(const tl_buffer *buffer, const int64_t *index, int64_t *thread, int64_t *reg)
{
    assert(buffer->rank >= 2);
    int64_t tile = 0, extent = 0;
    int row_axis = buffer->rank - 2, rows = tl_scope_threads[buffer->scope] / 2;
    int columns = holds_rows(buffer) ? ROW_THREADS : TILE_COLUMNS;
    for (int a = 0; a < buffer->rank; a++) {
        tl_const_int(buffer->shape[a], &extent);
        int64_t size = a == row_axis ? rows : a > row_axis ? columns : 1;
        tile = tile * (extent / size) + index[a] / size;
    }
    int64_t row = index[row_axis] % rows, column = index[row_axis + 1] % columns;
    int64_t own = columns / ROW_THREADS; /* columns of a thread */
    *thread = row / WARP_ROWS * TL_WARP_LANES + row % 8 * ROW_THREADS + column / own;
    *reg = (tile * 2 + row % WARP_ROWS / 8) * own + column % own;
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

/* Whether each thread touches the same register: its own (`lane` -1), or that of the lane of the four of its row. Lanes of a
 * vector go from register to register, or stay. */
static bool touches(tl_emitter *em, const tl_buffer *buffer, const tl_expr *const *filled, int lane,
                    int64_t *out)
{
    int64_t index[MOST_RANK], thread, reg, step = 0;
    for (int l = 0; l < tl_scope_threads[buffer->scope]; l++)
        for (int v = 0; v < em->lanes; v++) {
            if (!fill(em, filled, buffer->rank, l, v, index))
                return false;
            place_of(buffer, index, &thread, &reg);
            if (l == 0 && v == 0)
                *out = reg;
            if (l == 0 && v == 1 && lane < 0)
                step = reg - *out;
            int from = lane < 0 ? l : l / ROW_THREADS * ROW_THREADS + lane;
            if (thread != from || reg != *out + v * step || step < 0 || step > 1)
                return false;
        }
    return true;
}

bool tl_emit_warp_register(tl_emitter *em, const tl_buffer *buffer, const tl_expr *const *indices,
                           bool reads, int64_t *out, int *lane)
{
    const tl_expr *filled[MOST_RANK];
    bool in_row = (em->gpu.loops & 1u) != 0, fits = buffer->rank <= MOST_RANK && in_row;
    for (int a = 0; fits && a < buffer->rank; a++)
        filled[a] = tl_emit_substitute(em, indices[a]);
    for (*lane = -1; fits && *lane < (reads ? ROW_THREADS : 0); ++*lane)
        if (touches(em, buffer, filled, *lane, out))
            return true;
    int threads = tl_scope_threads[buffer->scope];
    tl_emit_fail(em, em->i64, TL_UNSUPPORTED,
                 "buffer %s is held by a %s: inside a threadIdx.x loop of %d a thread touches "
                 "its own elements, of a tile of 16 by 8%s those of rows x%s//4 and x%s//4 + 8, "
                 "columns x%%4*2 and x%%4*2 + 1, and loops over tiles and registers are unrolled",
                 buffer->name, tl_scope_texts[buffer->scope], threads,
                 threads > TL_WARP_LANES ? ", number x//32 of 64 rows," : "",
                 threads > TL_WARP_LANES ? "%32" : "", threads > TL_WARP_LANES ? "%32" : "");
    return false;
}

/* The word of 32 bits that another of the four threads of a row has. */
LLVMValueRef tl_emit_from_row(tl_emitter *em, LLVMValueRef v, int lane)
{
    LLVMBuilderRef b = em->builder;
    LLVMTypeRef type = LLVMTypeOf(v);
    LLVMValueRef x = LLVMBuildTrunc(b, em->gpu.thread[0], em->i32, "");
    x = LLVMBuildAnd(b, x, LLVMConstInt(em->i32, TL_WARP_LANES - ROW_THREADS, false), "");
    LLVMValueRef args[4] = { LLVMConstAllOnes(em->i32), LLVMBuildBitCast(b, v, em->i32, ""),
                             LLVMBuildOr(b, x, LLVMConstInt(em->i32, (unsigned)lane, false), ""),
                             LLVMConstInt(em->i32, TL_WARP_LANES - 1, false) };
    v = tl_emit_convergent(em,
                           tl_emit_intrinsic(em, "llvm.nvvm.shfl.sync.idx.i32", NULL, 0, args, 4));
    return LLVMBuildBitCast(b, v, type, "");
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
