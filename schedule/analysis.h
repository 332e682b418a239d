/* schedule/analysis.h: what sketch rules ask of a block: which iters an access moves with, by how much.
 * Everything is answered from the block's signature, never from an operator's name. */
#ifndef TL_SCHEDULE_ANALYSIS_H
#define TL_SCHEDULE_ANALYSIS_H
#include "ir/expr/index.h"
#include "ir/program/program.h"

#define TL_NOT_AFFINE INT64_MIN

/* Elements of the row-major buffer that the access moves by when `iter` grows by one; 0 when it does
 * not depend on it; TL_NOT_AFFINE when that is no constant (a gather, a floordiv, a dim in a stride). */
int64_t tl_access_stride(tl_arena *arena, const tl_buffer *buffer, const tl_expr *const *indices,
                         const tl_var *iter);

/* The loads of an expression, each distinct one once, in order of appearance; at most `capacity`. */
int tl_collect_loads(const tl_expr *e, const tl_expr **out, int capacity);

/* The last spatial iter that runs more than once and moves the first store by one element; NULL when there is none. */
const tl_var *tl_contiguous_iter(tl_arena *arena, const tl_block *block);

/* A sum over products of two operands, each from one buffer: C[..] = sum(A[..]*B[..]), casts allowed around
 * the loads. `panel` is the operand whose elements move with the vector iter, `stream` the other.  */
typedef struct {
    const tl_block *block;
    const tl_expr *panel, *stream; /* LOADs over the iters */
    const tl_var *vector;          /* the spatial iter with stride 1 in the result */
    /* A reduce iter whose steps are written out in the tile; NULL: none. Never found, only set. */
    const tl_var *tap;
} tl_contraction;
bool tl_find_contraction(tl_arena *arena, const tl_block *block, tl_contraction *out);

/* Instances of a block: the product of its iters' largest extents; saturates. */
int64_t tl_block_instances(const tl_block *block);
/* Largest value of an extent. */
int64_t tl_max_extent(const tl_expr *extent);

/* A block all of whose iters are spatial, with plain stores. */
bool tl_block_is_spatial(const tl_block *block);
bool tl_block_is_reduction(const tl_block *block);

#endif
