/* frontend/lower/lower.h: what the lowerings of operators (lower_*.c) share: the builder of one kernel's naive Program.
 *
 * A node has stages, loop nests that fill local buffers, and a value: the expression of one element of its output
 * over those buffers and the node's inputs. Elementwise and layout operators have no stages; what reads
 * them asks for the expression, so chains melt together without a buffer. The kernel's last value is written
 * to its output by one more nest, unless the last stage could write there itself. */
#ifndef TL_FRONTEND_LOWER_LOWER_H
#define TL_FRONTEND_LOWER_LOWER_H
#include "frontend/frontend.h"
#include "frontend/operators.h"

#define TL_MAX_ITERS 32

/* Of the lowerings beside the direct ones. */
#define LOWERING(op, name, when, error, stages, value) \
    tl_lowers_fn tl_lowers_##when;                     \
    tl_stages_fn tl_stages_##stages;                   \
    tl_value_fn tl_value_##value;
#include "frontend/lower/lowerings.def"
#undef LOWERING

/* A value in memory: a buffer, the logical shape, and how that lies in the buffer. A window of a larger value has its
 * first element at `start` of that value. */
typedef struct {
    const tl_buffer *buffer;
    tl_shape shape;
    tl_layout layout;
    int64_t start[TL_MAX_RANK];
} tl_view;

/* The buffers that a node's stages fill, for its value to read. */
enum { TL_MAX_LOCALS = 4 };
typedef struct {
    tl_view place[TL_MAX_LOCALS];
} tl_locals;
tl_locals *tl_lower_locals(tl_lower *l, const tl_node *n);

tl_arena *tl_lower_arena(const tl_lower *l);

/* Constants of one element become literals in the program and no parameters. */
bool tl_value_is_literal(const tl_value *v);

/* The distinct values that the kernel's nodes read from outside, literals aside, in the order of first use; what a window
 * looks at is an input of its own. `inputs` and `windows` have room for all node inputs. */
void tl_kernel_inputs(tl_kernel *kernel, tl_value **inputs, const tl_node **windows);

/* An element of a value: a literal, a load, or the producer's expression. */
const tl_expr *tl_lower_read(tl_lower *l, const tl_value *v, tl_index index);
/* The same where v broadcasts to `rank` axes. */
const tl_expr *tl_lower_read_broadcast(tl_lower *l, const tl_value *v, int rank, tl_index index);
/* The place of a value that will be read several times: writes it to a local first when it is an expression. */
tl_view tl_lower_materialize(tl_lower *l, const tl_value *v);
/* Whether the node is a window of its input: a Slice of neighbours, of a value without blocks and halo. */
bool tl_is_window(const tl_node *n);

/* The same with `before` and `after` zeros around each axis: the value's own place when its halo is at least that, else a
 * padded copy. */
tl_view tl_lower_padded(tl_lower *l, const tl_value *v, const int64_t *before,
                        const int64_t *after);
/* A copy of the place without blocks, with the zeros around it. */
tl_view tl_lower_unblocked(tl_lower *l, const tl_view *place);

/* A new local buffer of a shape under a layout (without its halo). */
tl_view tl_lower_local(tl_lower *l, const char *name, tl_dtype dtype, const tl_shape *shape,
                       const tl_layout *layout);
/* Where a node's last reduction goes: a new local, or, when `is_value` says that the node's value is the bare sum and
 * the kernel's output is that value, the output itself. */
tl_view tl_lower_accumulator(tl_lower *l, const tl_node *n, tl_dtype dtype, bool is_value);

/* Logical index to physical index: start and halo added, blocks split off. Returns the rank of the buffer. */
int tl_view_index(tl_lower *l, const tl_view *p, tl_index index,
                  const tl_expr *out[2 * TL_MAX_RANK]);
const tl_expr *tl_view_load(tl_lower *l, const tl_view *p, tl_index index);

/* A loop nest around one block in the making; iters in the order of the calls. */
typedef struct {
    tl_lower *lower;
    const char *name;
    int count;
    bool empty_reduce; /* a reduce iter without iterations: the block assigns the identity */
    tl_iter iters[TL_MAX_ITERS];
    const tl_var *loops[TL_MAX_ITERS]; /* NULL: a loop around the nest drives the iter */
    int64_t loop_extents[TL_MAX_ITERS];
} tl_block_nest;
tl_block_nest tl_nest_begin(tl_lower *l, const char *name);
const tl_expr *tl_nest_iter(tl_block_nest *nest, tl_iter_kind kind, const char *name,
                            int64_t extent);
/* An iter of an extent that runs from `from` on through a loop of `count`, where loops around the nest give `from`; count 0:
 * it is `from`, and has no loop of its own. */
const tl_expr *tl_nest_iter_at(tl_block_nest *nest, tl_iter_kind kind, const char *name,
                               int64_t extent, const tl_expr *from, int64_t count);
/* Spatial iters over the place in its physical order, a blocked axis as two; `out` gets the logical index. */
void tl_nest_over(tl_block_nest *nest, const tl_view *p, const tl_expr *out[TL_MAX_RANK]);
/* The same with the place's halo, where the index is below 0 or beyond the shape; the layout is not plain. */
void tl_nest_over_halo(tl_block_nest *nest, const tl_view *p, const tl_expr *out[TL_MAX_RANK]);
/* Ends the nest: place[index] = value, or place[index] = combiner(value). */
void tl_nest_store(tl_block_nest *nest, const tl_view *p, tl_index index, const tl_expr *value);
void tl_nest_reduce(tl_block_nest *nest, tl_combiner combiner, const tl_view *p, tl_index index,
                    const tl_expr *value);
/* place[index] = combiner(place[index], value), where something was stored there before. */
void tl_nest_update(tl_block_nest *nest, tl_combiner combiner, const tl_view *p, tl_index index,
                    const tl_expr *value);
/* tl_nest_reduce for a sum of terms that are no products of two operands, in a cascade (lower_sum.c). */
void tl_nest_sum(tl_block_nest *nest, const tl_view *p, tl_index index, const tl_expr *value);
/* Several stores, of which each says where: a block that assigns all of them. */
void tl_nest_stores(tl_block_nest *nest, int count, const tl_store *stores);
/* values[i] combined as a pair into places[i] (argmax). */
void tl_nest_reduce_pair(tl_block_nest *nest, tl_combiner combiner, const tl_view places[2],
                         tl_index index, const tl_expr *const values[2]);

/* What iters over the axes of the kernel's values are called: "n co oh ow" and the lane "ci". */
void tl_lower_name_axes(tl_lower *l, int rank, const char *const *names, const char *lane);
void tl_lower_name_window_axes(tl_lower *l, int rank); /* n co od oh ow, lane ci: lower_conv.c */
/* The last nest walks the output's last axis as two iters, outer and inner (extent `inner`): heads. */
void tl_lower_split_last_axis(tl_lower *l, const char *outer, const char *inner, int64_t extent);

/* Nests and locals between begin and end belong to the prepare part, which runs once, on constants; a prepared buffer
 * is what it leaves for the body. */
void tl_lower_prepare_begin(tl_lower *l);
void tl_lower_prepare_end(tl_lower *l);
tl_view tl_lower_prepared(tl_lower *l, const char *name, tl_dtype dtype, const tl_shape *shape);

/* A loop around all nests and locals up to its end; returns its variable. */
const tl_expr *tl_lower_loop_begin(tl_lower *l, const char *name, int64_t extent);
void tl_lower_loop_end(tl_lower *l);

/* A stored index as a position along an axis of `extent`: negative ones count from the end. */
const tl_expr *tl_lower_position(tl_lower *l, const tl_value *indices, tl_index index,
                                 int64_t extent);
/* The value as comparisons order it: a NaN is an infinity. */
const tl_expr *tl_ordered(tl_arena *arena, const tl_expr *value);

/* An index minus a start lies in 0..extent-1; NULL when that is always so. */
const tl_expr *tl_inside(tl_arena *arena, const tl_expr *condition, const tl_expr *index,
                         int64_t extent);

#endif
