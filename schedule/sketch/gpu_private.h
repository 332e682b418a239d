/* schedule/sketch/gpu_private.h: what the rules for contractions on a GPU share: a tile of results that a block of threads
 * makes, from slices of both operands in shared memory.
 *
 *     for <tiles>  blockIdx.x
 *       for <warps>  threadIdx.y              each a part of the tile
 *         ...                                 what 32 threads make of it: gpu_tile.c, gpu_mma.c
 *           for <slices>
 *             panel, stream                   copied by all threads together, while they compute on the slice before
 */
#ifndef TL_SCHEDULE_SKETCH_GPU_PRIVATE_H
#define TL_SCHEDULE_SKETCH_GPU_PRIVATE_H
#include "runtime/base/checked.h"
#include "schedule/sketch/sketch_private.h"

enum { TL_GPU_ITERS = 32 };

/* How a loop over results is cut: tiles, warps, lanes of a warp, what a thread (or warp) has of its own. */
typedef struct {
    int64_t warps, lanes, own;
} tl_gpu_cut;
static inline int64_t tl_gpu_cut_size(const tl_gpu_cut *cut)
{
    return cut->warps * cut->lanes * cut->own;
}

/* A contraction, its axes as places among the block's iters. */
typedef struct {
    tl_contraction c;
    int row;                       /* the longest spatial iter that moves the stream alone */
    int column;                    /* the contiguous one, which moves the panel alone */
    int line;                      /* another one that moves the panel alone; -1: none */
    int64_t extents[TL_GPU_ITERS]; /* of the iters, as far as this tile's block goes */
    tl_gpu_cut cuts[TL_GPU_ITERS]; /* of spatial iters; 1 each: one result at a time */
    int64_t depth[TL_GPU_ITERS];   /* of reduce iters: steps of a slice */
    int64_t warps;                 /* of a block */
    bool keeps_tiles;              /* the loops over tiles stay apart */
} tl_gpu_product;

/* How a product's rows, columns and lines are cut. */
typedef struct {
    tl_gpu_cut row, column, line;
} tl_gpu_tiling;
static inline void tl_gpu_take_tiling(tl_gpu_product *p, const tl_gpu_tiling *t)
{
    p->warps = t->row.warps * t->column.warps * t->line.warps;
    p->cuts[p->row] = t->row;
    p->cuts[p->column] = t->column;
    if (p->line >= 0)
        p->cuts[p->line] = t->line;
}

/* Refuses what is no product of two buffers with rows and columns of constant extents. */
tl_status tl_gpu_find_product(tl_schedule *s, const tl_block *block, tl_gpu_product *out,
                              tl_diag *diag);
/* The reduce iter that a product of tensor cores runs along: the longest that moves an axis of each operand; -1: none. */
int tl_gpu_find_term(tl_schedule *s, const tl_gpu_product *p);
/* Whether the expression is a multiple of `step`, its variables being whole numbers; `but` need not be one. */
bool tl_gpu_is_multiple(tl_arena *arena, const tl_expr *e, const tl_var *but, int64_t step);
/* Whether the iter may run beyond its extent, where pad_einsum finds zeroes. */
bool tl_gpu_can_pad(const tl_gpu_product *p, int iter);
/* Bytes of both operands' slices. */
int64_t tl_gpu_slice_bytes(tl_schedule *s, const tl_gpu_product *p);
/* Decides how many steps of each reduce iter a slice has: of a product with one of them that is longer than 1 about `steps`,
 * else all of the short ones; `unit`: of iter `of` (-1: none) a multiple of so many. `bytes`: for both slices. */
tl_status tl_gpu_decide_depth(tl_schedule *s, tl_gpu_product *p, int64_t steps, int of,
                              int64_t unit, int64_t bytes, tl_diag *diag);
/* Whole tiles and slices: pads the block where its extents do not come out even. `out` reads what is padded then, and *p is of
 * the padded block. */
tl_status tl_gpu_pad(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_gpu_product *p,
                     tl_diag *diag);

/* The loops of `out`, cut: one list a part, the loops over rows, lines and columns in that order, behind all others. */
typedef struct {
    tl_loop_ref tiles, warps, lanes; /* each fused; warps, lanes: id 0 where there is one */
    tl_loop_list apart;              /* what `tiles` would be of, where they stay apart */
    tl_loop_ref tile_row;            /* the one of them over rows */
    tl_loop_ref row, line, column;   /* what is a thread's or a warp's own; id 0: none */
} tl_gpu_loops;
tl_status tl_gpu_cut_results(tl_schedule *s, tl_block_ref out, int first, const tl_gpu_product *p,
                             tl_gpu_loops *loops, tl_diag *diag);

/* The contraction's own loops, from position `first` of its nest on. */
typedef struct {
    tl_loop_list outer, inner; /* over slices, and inside of one; each at least one */
    tl_loop_ref row, line, column;
    tl_loop_list others; /* spatial, of one iteration */
} tl_gpu_terms;
tl_status tl_gpu_cut_terms(tl_schedule *s, tl_block_ref anchor, int first, const tl_gpu_product *p,
                           tl_gpu_terms *terms, tl_diag *diag);

/* An operand in shared memory: filled by the stage that makes it for this contraction alone, else by a copy; always by a copy. */
typedef struct {
    const char *buffer; /* its name */
    tl_block_ref copy;
} tl_gpu_slice;
tl_status tl_gpu_take_slice(tl_schedule *s, tl_block_ref anchor, const tl_expr *load,
                            tl_gpu_slice *out, tl_diag *diag);
tl_status tl_gpu_copy_slice(tl_schedule *s, tl_block_ref anchor, const tl_expr *load,
                            tl_gpu_slice *out, tl_diag *diag);
/* Moves the blocks that fill operands to where a slice begins. The loops over threads are bound by then. */
tl_status tl_gpu_place_slices(tl_schedule *s, const tl_gpu_slice *slices, int count, tl_loop_ref at,
                              tl_diag *diag);
/* Shares the work of those blocks, of the operands of `block`, among the warps of threads. They run ahead of what is computed
 * from them, as far as `bytes` of a slice leave room for several in `staged` bytes. */
enum { TL_GPU_STAGED_BYTES = 96 << 10 }; /* two such blocks run on a multiprocessor */
tl_status tl_gpu_fill_slices(tl_schedule *s, const char *block, const tl_gpu_slice *slices,
                             int count, tl_loop_ref at, int64_t warps, int64_t bytes,
                             int64_t staged, tl_diag *diag);
/* Its rows begin `step` bytes further on than at a multiple of all banks, so that a column's elements lie in different ones;
 * nothing where an element is larger. */
tl_status tl_gpu_pitch(tl_schedule *s, const char *buffer, int64_t step, tl_diag *diag);
/* The buffer's axes in another order: `last` (one or two of them) behind the others; `group` > 1: the last axis in groups of so
 * many, the number of the group first. */
tl_status tl_gpu_arrange(tl_schedule *s, const char *buffer, const int *last, int count,
                         int64_t group, tl_diag *diag);
/* A slice that lies across, turned by `groups` times `threads` threads (gpu_turn.c). Whether they can, `lines` of `rows` of
 * `depth` elements of `size` bytes; a stage in registers in front of the copy, made before loops are cut; and that copy, inside
 * of `inside` loops. */
bool tl_gpu_can_turn(int64_t rows, int64_t lines, int64_t depth, int64_t size, int64_t threads);
tl_status tl_gpu_take_turned(tl_schedule *s, tl_gpu_slice *slice, tl_block_ref *held,
                             tl_diag *diag);
tl_status tl_gpu_turn_slice(tl_schedule *s, tl_block_ref copy, tl_block_ref held, int inside,
                            int64_t groups, int64_t threads, tl_diag *diag);
/* Of a copy, inside of `inside` loops: the loops over rows of what it fills, over places in them, and, in front, all others; what
 * a thread loads of a tile that it turns, along the source's rows. */
tl_status tl_gpu_find_rows(tl_schedule *s, tl_block_ref ref, int inside, tl_loop_list *others,
                           tl_loop_ref *row, tl_loop_ref *last, tl_diag *diag);
tl_status tl_gpu_load_tile(tl_schedule *s, tl_block_ref held, int inside, tl_diag *diag);
/* The same of a whole operand, in a launch of its own (gpu_turn_ahead.c), from axis `row`, its last one, to axis `last` behind
 * it: whether it is possible, what it takes of a multiprocessor's cycles, and the launch, whose result `anchor` reads. */
bool tl_gpu_can_turn_ahead(const tl_buffer *buffer, int row, int last);
double tl_gpu_cycles_ahead(const tl_target *target, const tl_buffer *buffer);
tl_status tl_gpu_turn_ahead(tl_schedule *s, tl_block_ref anchor, const tl_expr *load, int row,
                            int last, tl_diag *diag);
/* The loop of the copy that moves an axis of what it fills; id 0: none of `own`. */
tl_loop_ref tl_gpu_loop_of_axis(tl_schedule *s, const tl_block *block, int axis,
                                const tl_loop_list *own);
/* gpu_model.c: cycles that a multiprocessor's share of `blocks` blocks takes, of `warps` warps each, `resident` of them at a
 * time, which compute for so many cycles and load from shared memory for so many. */
typedef struct {
    int64_t blocks, warps, resident;
    double compute, loads;
} tl_gpu_work;
double tl_gpu_cycles(const tl_target *target, const tl_gpu_work *work);
/* How many blocks of so many threads, registers a thread and bytes of shared memory run on a multiprocessor; 0: none can. */
int64_t tl_gpu_resident(const tl_target *target, int64_t threads, int64_t registers,
                        int64_t shared);

/* A contraction by the threads' multiply-adds (gpu_tile.c), inside of `first` loops around `out`. `rows` 0: padded, in blocks of
 * its own; else in tiles that come out even of so many rows, one after the other, by all TL_GPU_SHARED_WARPS warps of a block
 * that has other stages; TL_GPU_OWN_LOOPS: the same over what the block's loops inside of `first` have, in a launch written block
 * by block. *tiles: the loop over tiles. */
enum { TL_GPU_SHARED_WARPS = 8, TL_GPU_OWN_LOOPS = -1 };
tl_status tl_gpu_tile_in(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, int first,
                         int64_t rows, tl_loop_ref *tiles, tl_diag *diag);
/* A contraction with few results and long sums becomes two: of pieces of the sum, `*part`, and of what they come to
 * (gpu_split.c). Refused where it has results enough. */
tl_status tl_gpu_split_sum(tl_schedule *s, tl_block_ref anchor, tl_block_ref *part, tl_diag *diag);
/* A stage inside of `depth` loops, shared among `threads` threads along x (gpu_rows.c). */
tl_status tl_gpu_share_stage(tl_schedule *s, tl_block_ref stage, int depth, int64_t threads,
                             tl_diag *diag);
/* A product of what row-wise stages make of another product, all in one launch (gpu_attention.c); what it schedules is added to
 * `done`. */
tl_status tl_gpu_attention(tl_schedule *s, tl_block_ref anchor, tl_map *done, tl_diag *diag);
/* The same of a launch that is written block by block of keys, its stages in shared memory (gpu_online.c) or all of it in
 * registers (gpu_fragments.c). */
tl_status tl_gpu_online(tl_schedule *s, tl_block_ref anchor, tl_map *done, tl_diag *diag);
tl_status tl_gpu_fragments(tl_schedule *s, tl_block_ref anchor, tl_map *done, tl_diag *diag);
/* Takes extents from the loops of the product's own inside of `first`; rows > 0: as many rows. */
tl_status tl_gpu_take_extents(tl_schedule *s, tl_block_ref anchor, int first, int64_t rows,
                              tl_gpu_product *p, tl_diag *diag);
/* The same by tensor cores (gpu_mma.c), from slices of at most TL_GPU_SHARED_SLICE bytes. `held` names the stream's buffer
 * where a stage of the block leaves it in shared memory: it is read from there. NULL: it comes by slices, too. */
enum { TL_GPU_SHARED_SLICE = 12 << 10 };
tl_status tl_gpu_mma_in(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, int first,
                        int64_t rows, const char *held, tl_loop_ref *tiles, tl_diag *diag);
/* A contraction by tensor cores, by products of a warp (gpu_mma.c) or of a warpgroup (gpu_wgmma.c). */
tl_status tl_gpu_mma(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_diag *diag);
tl_status tl_gpu_wgmma(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_diag *diag);
/* How a slice lies in shared memory that is copied as boxes: its rows, and what is along them, are the operand's last axes. */
typedef struct {
    int row, last;     /* axes of the operand's buffer */
    int64_t row_bytes; /* in shared memory */
    int64_t block;     /* elements along rows; more than 1: longer rows are cut */
} tl_gpu_boxes;
/* Refuses a copy that is none of boxes: what it reads has to be an argument, or to be left by a launch in front that has its
 * schedule; its rows begin at multiples of 16 bytes, and those of the slice lie along them. */
tl_status tl_gpu_check_boxes(tl_schedule *s, tl_block_ref copy, const tl_gpu_boxes *l,
                             tl_diag *diag);
tl_status tl_gpu_lay_boxes(tl_schedule *s, const char *buffer, const tl_gpu_boxes *l,
                           tl_diag *diag);
/* A slice as boxes: rows of at most as many elements as lie side by side, a box a line and a block of columns; `inside` of so
 * many loops. `groups` > 1: all of them need all of it, and each asks for a part. */
tl_status tl_gpu_copy_boxes(tl_schedule *s, tl_block_ref copy, int inside, const tl_gpu_boxes *l,
                            int64_t groups, tl_diag *diag);
/* The product of a warpgroup of those types, C, A and B; NULL: there is none. */
const char *tl_gpu_group_product(tl_dtype c, tl_dtype a, tl_dtype b, int64_t columns, bool is_nk);
/* What both do with sums in threads' registers: their rows and columns last, in tiles; loops over the elements of tiles of
 * `rows` (16: a warp's; 64: a warpgroup's) shared out among the threads that hold them. `line` may be NULL. */
tl_status tl_gpu_lay_result(tl_schedule *s, const tl_gpu_product *p, const char **result,
                            tl_diag *diag);
tl_status tl_gpu_share_tiles(tl_schedule *s, tl_loop_ref row, tl_loop_ref column, tl_loop_ref *line,
                             int64_t rows, tl_diag *diag);

#endif
