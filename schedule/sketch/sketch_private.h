/* schedule/sketch/sketch_private.h: what the sketch rules share. */
#ifndef TL_SCHEDULE_SKETCH_SKETCH_PRIVATE_H
#define TL_SCHEDULE_SKETCH_SKETCH_PRIVATE_H
#include "runtime/base/map.h"
#include "schedule/analysis.h"
#include "schedule/schedule_private.h"
#include "schedule/sketch/sketch.h"

#define TL_MAX_LOOPS 32
enum { TL_WHOLE_STEPS = 256 }; /* of a sum that stays in one register: sketch_cut_sum.c */

/* The end of a rule that was tried with the schedule as `before`, and came to `status` for the reason `why`. Refused
 * (TL_ILLEGAL_SCHEDULE), it leaves nothing: the schedule is as it was, and all is well. Else what it came to. */
tl_status tl_sketch_tried(tl_schedule *s, const tl_schedule_state *before, tl_status status,
                          const tl_diag *why, tl_diag *diag);

/* The loops around a block from position `first` on, outermost first. */
typedef struct {
    int count;
    tl_loop_ref loops[TL_MAX_LOOPS];
} tl_loop_list;
/* How many of the loops around a block have other blocks in them: those that the program was written with. */
int tl_sketch_shared_loops(tl_schedule *s, tl_block_ref block);
/* Nothing when the id is 0 or the list full. */
void tl_loop_push(tl_loop_list *list, tl_loop_ref loop);
static inline bool tl_same_loop(tl_loop_ref a, tl_loop_ref b)
{
    return a.id == b.id;
}
tl_status tl_sketch_loops(tl_schedule *s, tl_block_ref block, int first, tl_loop_list *out,
                          tl_diag *diag);

/* The innermost loop of the list that moves the iter by one; id 0 when there is none. */
tl_loop_ref tl_sketch_loop_of(tl_schedule *s, const tl_iter *iter, const tl_loop_list *loops);
int64_t tl_sketch_extent(const tl_schedule *s, tl_loop_ref loop); /* the largest */
bool tl_sketch_is_fixed(const tl_schedule *s, tl_loop_ref loop);  /* no dim decides its extent */
/* The product of the extents of the block's iters of a kind: spatial: its results; reduce: terms that one of them
 * combines. */
int64_t tl_sketch_points(const tl_block *block, tl_iter_kind kind);
/* Divisors of an extent, ascending, at most `capacity`. Returns how many. */
int tl_sketch_divisors(int64_t extent, int64_t *out, int capacity);
/* The block's iter that the variable is; NULL: it is none of them. */
const tl_iter *tl_sketch_iter_of(const tl_block *block, const tl_var *var);
/* Whether the loop moves a reduce iter of the block. */
bool tl_sketch_drives_reduce(const tl_schedule *s, const tl_block *block, tl_loop_ref loop);

/* Whether the loop moves an iter of the block that the load, one of the block's, moves with. */
bool tl_sketch_moves_load(const tl_schedule *s, const tl_block *block, const tl_expr *load,
                          tl_loop_ref loop);

/* Whether what is in the buffer is there before the body runs. */
static inline bool tl_sketch_is_constant(const tl_buffer *buffer)
{
    return buffer->role == TL_ROLE_CONST || buffer->role == TL_ROLE_PREPARED;
}

/* Whether the buffer stays in L2 beside what else passes through: when it takes half of it at most. */
static inline bool tl_sketch_stays_in_l2(const tl_target *target, const tl_buffer *buffer)
{
    return tl_buffer_max_bytes(buffer) <= target->l2_bytes / 2;
}

/* The axis of the load that the iter moves by one, the only one that it moves; -1: there is none. */
int tl_sketch_axis_of(tl_schedule *s, const tl_expr *load, const tl_var *iter);
/* Whether the load moves with the iter by one element, or not at all: lanes along it read what lies side by side, or the same. */
bool tl_sketch_reads_lines(tl_schedule *s, const tl_expr *load, const tl_var *lane);

/* Vectorizes a loop over `lanes`-wide pieces: itself when it is short enough, else the inner part of a split.
 * `outer` gets the outer part (id 0 when there is none). */
tl_status tl_sketch_vectorize(tl_schedule *s, tl_loop_ref loop, int lanes, tl_loop_ref *outer,
                              tl_diag *diag);

/* A reduction that was moved under `outside` loops: its reduce loops go outside, the rest of its own loops is written
 * out, the innermost loop of `vector` inside of them and vectorized, the init before the reduce loops. Reduce loops are
 * written out too when they run at most `unroll_limit` times together; that of `tap` (NULL: none) is always, inside of the
 * rows. `last_reduce` gets the innermost of the others that runs more than once (id 0: none). */
tl_status tl_sketch_reduction(tl_schedule *s, tl_block_ref anchor, int outside,
                              const tl_var *vector, const tl_var *tap, int64_t unroll_limit,
                              tl_loop_ref *last_reduce, tl_diag *diag);

/* Fuses the reduce loops around `innermost`, a reduce loop of the anchor, with it as long as every load just walks on
 * from one to the next; `innermost` becomes the fused loop. */
tl_status tl_sketch_fuse_reduction(tl_schedule *s, tl_block_ref anchor, tl_loop_ref *innermost,
                                   tl_diag *diag);

/* Steps of a reduction that are written out in the tile, because rows share elements of the stream: row r reads at tap t
 * what lies at row_step*r + tap_step*t. count 0: none are. */
typedef struct {
    int64_t count, row_step, tap_step;
} tl_taps;
/* The reduce iter of such steps for rows along `row`, a spatial iter of the contraction (sketch_taps.c); NULL: none. */
const tl_var *tl_sketch_find_taps(tl_schedule *s, const tl_contraction *c, const tl_var *row,
                                  tl_taps *taps);

/* Register tile of a contraction: rows (elements of the stream along its innermost loop), lines (several of its whole
 * rows, when a row is short), columns (vectors of the panel). */
typedef struct {
    int64_t rows, lines, columns;
} tl_register_tile;
/* What a tile is chosen for: rows x lines x vectors results, each a sum of `steps` products. */
typedef struct {
    int64_t rows, lines, vectors, steps;
    /* iterations of other loops around them, all shared out to the cores; 0: what is shared out does not depend on the
     * tile */
    int64_t outside;
    tl_taps taps;
    /* the panel comes from memory, once: each vector of a tile from a place of its own (`streams`), or each step from a row
     * that lies elsewhere (`scattered`) */
    bool streams, scattered;
    bool is_near; /* elements of the stream for neighbouring rows share lines */
} tl_tile_problem;
/* The tile with the least estimated cycles; see sketch_tile.c. */
tl_register_tile tl_choose_tile(const tl_target *target, const tl_tile_problem *problem);
/* What it estimates for a tile, in cycles a step. */
double tl_tile_cycles(const tl_target *target, const tl_tile_problem *problem, tl_register_tile t);
/* How many rows, of all lines, the register file holds beside so many columns; below 1: none. One register is kept free,
 * but where rows are near a tile one vector wide may fill all. */
int64_t tl_tile_room(const tl_target *target, const tl_tile_problem *problem, int64_t columns);
/* How many elements of the stream so many rows read in all taps. */
int64_t tl_tile_elements(int64_t rows, const tl_taps *taps);

/* The rules. Each schedules the nest of one block (with those that feed it), from loop number `first` of its nest
 * on; what is outside was scheduled by the caller. `whole`: tiles divide the rows of
 * the nest, after which the program has other blocks of rows: what sticks out would be read there before it is made. */
tl_status tl_sketch_contraction(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, int first,
                                bool whole, tl_diag *diag);
/* A contraction whose stream and result pass through transforms (sketch_staged.c); what it schedules is added to `done`. */
tl_status tl_sketch_staged(tl_schedule *s, tl_block_ref anchor, tl_map *done, tl_diag *diag);
/* A product that reads what row-wise stages make of another one (sketch_chained.c, gpu_attention.c). */
enum { TL_CHAIN_STAGES = 32 };
typedef struct {
    tl_contraction second;
    const tl_block *first, *out;             /* out: reads what the second product makes */
    const tl_block *stages[TL_CHAIN_STAGES]; /* between the products; execution order */
    int stage_count;
    int64_t columns; /* elements of a row between the products */
} tl_chain;
/* The loops of `out`: those that both operands of the second product move with, its rows, its columns. */
typedef struct {
    tl_loop_list batch, columns;
    tl_loop_ref row;
} tl_chain_loops;
/* All that the second product, `block`, and its reader need, back to another product: one, and not the second's own panel. */
bool tl_sketch_find_chain(tl_schedule *s, const tl_block *block, const tl_map *done, tl_chain *out);
bool tl_sketch_chain_loops(tl_schedule *s, const tl_chain *c, tl_chain_loops *out);
/* What reads the first product and nothing else does; else a copy made for the purpose (`copy`, id 0: none). */
tl_status tl_sketch_chain_epilogue(tl_schedule *s, const tl_chain *c, const char **epilogue,
                                   tl_block_ref *copy, tl_diag *diag);
/* A contraction that reads what row-wise stages make of another (sketch_chained.c); what it schedules is added to
 * `done`. */
tl_status tl_sketch_chained(tl_schedule *s, tl_block_ref anchor, tl_map *done, tl_diag *diag);
/* The same for a contraction whose panel is too large for L2 (sketch_split_sum.c); refused for others. */
tl_status tl_sketch_split_sum(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_diag *diag);
/* The sum of a contraction inside of `depth` loops in pieces (sketch_cut_sum.c), if it is long: then `sums` is the block that
 * makes them, inside of one loop more, and `c` its contraction. */
tl_status tl_sketch_cut_sum(tl_schedule *s, tl_block_ref anchor, tl_contraction *c, int *depth,
                            tl_block_ref *sums, tl_diag *diag);
tl_status tl_sketch_window(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_diag *diag);
/* Before it: a copy of what its lanes would have to gather, in the order of the lanes (sketch_turn_stream.c); blocks that it
 * makes are added to `done`. */
tl_status tl_sketch_turn_stream(tl_schedule *s, tl_block_ref block, tl_map *done, tl_diag *diag);
/* What it would copy: the load of which the lanes of the block's result lie apart and no packing brings together; NULL: none. */
const tl_expr *tl_sketch_gathered_load(tl_schedule *s, const tl_block *block);
/* The index map (x0, x1, x2) -> the same with `count` axes from `axis` on last. */
const char *tl_sketch_axes_last(tl_arena *arena, int rank, int axis, int count);
/* A sum of products whose terms lie side by side: those become lanes (sketch_reduce_lanes.c). What it schedules is added to
 * `done`; the block itself, which joins the lanes then, is left. */
bool tl_sketch_sums_terms(tl_schedule *s, const tl_block *block);
tl_status tl_sketch_reduce_lanes(tl_schedule *s, tl_block_ref sum, tl_map *done, tl_diag *diag);
/* Which two axes of a plane a copy goes through as through one: the two that begin at `axis`, or the last two. */
typedef enum { TL_NO_PLANE, TL_PLANE_ACROSS, TL_PLANE_ALONG } tl_turned_plane;
/* Elements: no further apart, lanes are shuffled out of few vectors. */
enum { TL_NEAR = 4 };
/* A copy of whole buffers inside of `first` loops, in squares: lanes along `axis`, as many elements of what was contiguous
 * written out; what does not divide is of its own. */
tl_status tl_sketch_turn_copy(tl_schedule *s, tl_block_ref copy, int first, int axis,
                              tl_turned_plane plane, int64_t across_lanes, int lanes,
                              tl_diag *diag);
/* A copy, for the reader, of what it reads of the buffer inside of `first` loops, of which `place` is the innermost (0: of all,
 * before it): that axis last, or both of a plane across, and the copy in squares. */
tl_status tl_sketch_copy_turned(tl_schedule *s, tl_block_ref reader, const tl_buffer *buffer,
                                int axis, tl_turned_plane plane, tl_loop_ref place, int first,
                                tl_block_ref *copy, tl_diag *diag);
/* Whether what is in the buffer comes from blocks that rules have scheduled. */
bool tl_sketch_is_settled(tl_schedule *s, const tl_buffer *buffer, const tl_map *done);
/* Loads of as many buffers whose lanes lie apart. */
enum { TL_MOST_GATHERED = 4 };
typedef struct {
    int count;
    const tl_expr *loads[TL_MOST_GATHERED];
} tl_gathered;
/* Those of the block; false where there are none, or some that no copy brings together. */
bool tl_sketch_find_gathered(tl_schedule *s, const tl_block *block, const tl_var *lane,
                             tl_gathered *g);
/* Copies of the inputs that the reader of a sum gathers, row by row inside of its loops `outer`, which are those from `first`
 * on (sketch_turn_operands.c). */
tl_status tl_sketch_turn_operands(tl_schedule *s, tl_block_ref out, int first,
                                  const tl_loop_list *outer);
/* A map whose lanes would gather what one of its loads reads: a copy of that in the order of the lanes, row by row
 * (sketch_turn_result.c); blocks that it makes are added to `done`. */
tl_status tl_sketch_turn_result(tl_schedule *s, tl_block_ref out, tl_map *done, tl_diag *diag);
/* Whether the map would gather what it reads of the buffer, and nothing else. */
bool tl_sketch_turns(tl_schedule *s, const tl_block *out, const tl_buffer *buffer);
/* Whether the epilogue reads `result` by its own axes: by a quotient of one (acc[x//3], of a reshaped result) no tile or row of
 * it finds its sums in registers of its own. */
bool tl_sketch_reads_by_axes(tl_schedule *s, const tl_block *out, const tl_buffer *result);
tl_status tl_sketch_window_from(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, int first,
                                tl_diag *diag);
/* A window over what a contraction makes, band by band (sketch_band.c); what feeds it is added to `done`. Inside of `first`
 * loops that the caller scheduled there is one band, of so many `rows`; 0: the rule decides how many. */
tl_status tl_sketch_band(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, int first,
                         int64_t rows, tl_map *done, tl_diag *diag);
/* How many rows of `out`, which reads the window, a band should have when `kept_bytes` for each of them stay in L2 with it;
 * 0: none fits. Returns false where the window is over no contraction. */
bool tl_sketch_band_rows(tl_schedule *s, const tl_block *window, const tl_block *out,
                         int64_t kept_bytes, int64_t *rows);
/* How many of the `rows` of a result a band takes: the decision "band" of the block of that name; refused when none fits. */
tl_status tl_sketch_decide_band(tl_schedule *s, const char *name, int64_t rows, int64_t suggested,
                                int64_t *band, tl_diag *diag);
/* Extent of iter `i` from the end of a block with rows: 0: lanes, 1: places of a row, 2: rows, 3: vectors of columns. */
int64_t tl_sketch_last_extent(const tl_block *block, int i);
/* A contraction over what a window makes, band by band (sketch_band_sum.c); what it schedules is added to `done`. */
tl_status tl_sketch_band_sum(tl_schedule *s, tl_block_ref anchor, tl_map *done, tl_diag *diag);
/* The one block that writes a local buffer which `reader` alone reads; NULL when there is none such. */
const tl_block *tl_sketch_only_writer(tl_schedule *s, const tl_buffer *buffer,
                                      const tl_block *reader);
/* Whether the block stands between a contraction and `reader`, a window over it. */
bool tl_sketch_is_between(tl_schedule *s, const tl_block *block, const tl_block *reader);
/* Whether the load is of a constant that tl_sketch_window can lay out so that it moves with `lane` by one. */
bool tl_sketch_can_pack_lanes(tl_schedule *s, const tl_expr *load, const tl_var *lane);
/* Whether groups of neighbouring lanes read one element each, all within one vector (a grouped convolution's input). */
bool tl_sketch_lanes_share(tl_schedule *s, const tl_expr *load, const tl_var *lane);
/* Blocks that feed `out` and are not in `done` move under its row loop, the one outside its innermost, or outside the loops of
 * its own sum; what moved is added to `done`. */
tl_status tl_sketch_rows(tl_schedule *s, tl_block_ref out, tl_map *done, tl_diag *diag);
/* The stages of a row-wise chain, last first. */
enum { TL_MOST_ROW_STAGES = 64 };
typedef struct {
    int count;
    const char *names[TL_MOST_ROW_STAGES];
} tl_row_stages;
/* Blocks that feed `out` and are not in `done`, but for the one of the name `own` (NULL: none), move under its loop `row`. */
void tl_sketch_bring_stages(tl_schedule *s, tl_block_ref out, const char *own, tl_loop_ref row,
                            const tl_map *done, tl_row_stages *moved);
/* What whole blocks of rows leave becomes a nest of its own; its stages, which nobody has scheduled yet. */
tl_status tl_sketch_cut_tail(tl_schedule *s, tl_loop_ref row, tl_row_stages *tails, tl_diag *diag);
/* As tl_sketch_rows, of short rows that lie the other way round in memory: lanes go along the rows (sketch_turned_rows.c).
 * Refused for others; `done` is as it was then. */
tl_status tl_sketch_turned_rows(tl_schedule *s, tl_block_ref out, tl_map *done, tl_diag *diag);
/* Whether the map turns rows around: lanes along what it makes lie apart in what it reads, neighbours along another iter. */
bool tl_sketch_turns_rows(tl_schedule *s, const tl_block *map);
/* Whether it is the beginning of a chain along such rows, which tl_sketch_turned_rows takes. */
bool tl_sketch_begins_turned_rows(tl_schedule *s, const tl_block *map);
/* Whether the stage makes one number for each short row that is turned around and that `reader` goes through: it is no part of
 * that, for lanes along rows would compute it again for each element. */
bool tl_sketch_is_of_turned_row(tl_schedule *s, const tl_block *block, const tl_block *reader);
/* The block that sums up the lanes of what `block` makes, partial sums of a row side by side (sketch_lane_sums.c); NULL when it
 * makes none such. */
const char *tl_sketch_lane_total(tl_schedule *s, const tl_block *block);
/* A sum of the nest inside of `first` loops in rows of registers, a window's, which are copied out. */
tl_status tl_sketch_sum_in_rows(tl_schedule *s, tl_block_ref sum, int first, tl_diag *diag);
/* The nests of these blocks inside of `first` loops that they share, each on its own but for partial sums in lanes. A block that
 * was scheduled as part of a sum is added to `summed`: so may be one that sums up lanes and is none of `blocks`. */
tl_status tl_sketch_nests(tl_schedule *s, const char *const *blocks, int count, int first,
                          tl_map *summed, tl_diag *diag);
/* A nest on its own, from loop `first` on: the contiguous loop innermost and vectorized. */
tl_status tl_sketch_nest(tl_schedule *s, tl_block_ref block, int first, tl_diag *diag);
/* Every phase that is worth it: its outer loops fused as far as they stay data-parallel, and made parallel: as many as come
 * to `goal` iterations, if no decider says otherwise. */
tl_status tl_sketch_parallel(tl_schedule *s, int64_t goal, tl_diag *diag);
/* The stage that reads what `anchor` computes, when it is one and no reduction; else a copy made for the purpose. */
tl_status tl_sketch_find_epilogue(tl_schedule *s, const tl_block *anchor, tl_block_ref *out,
                                  tl_diag *diag);
/* Tiling or rfactor, by the decision BLOCK.sketch, of every block that can have it (sketch_generic.c). What is scheduled goes to
 * `done`, blocks that others shall schedule to `known`. `exact`: as in the plain space. */
tl_status tl_sketch_generic(tl_schedule *s, bool exact, tl_map *done, tl_map *known, tl_diag *diag);

/* Multi-level tiling (sketch_tiling.c) of any block that needs it: a reduction or map that loads some element again and
 * again. `level`: of `out`'s tiling under which it moves (1, 2); 0: `out` is not touched. `exact`: as in the plain space. */
bool tl_sketch_needs_tiling(const tl_block *block);
tl_status tl_sketch_tiling(tl_schedule *s, tl_block_ref block, tl_block_ref out, int level,
                           bool exact, tl_diag *diag);
/* A reduction in two, by rfactor over a part of its longest reduce loop; the blocks are left to other rules. */
typedef enum { TL_RFACTOR_OUTER, TL_RFACTOR_INNER } tl_rfactor_part;
bool tl_sketch_needs_rfactor(const tl_schedule *s, const tl_block *block);
tl_status tl_sketch_rfactor(tl_schedule *s, tl_block_ref block, tl_rfactor_part part,
                            tl_block_ref *partial, tl_diag *diag);
/* rfactor over `factored`, one of the two parts of the loop `whole`; `own`: the loops of the block before it was split. With the
 * reduce loops outermost the two reductions become nests of their own. */
tl_status tl_sketch_factor(tl_schedule *s, tl_block_ref ref, const tl_loop_list *own,
                           tl_loop_ref whole, tl_loop_ref factored, tl_loop_ref rest,
                           tl_block_ref *partial, tl_diag *diag);
/* The primitive rfactor. */
tl_status tl_rfactor(tl_schedule *s, tl_block_ref block, tl_loop_ref loop, tl_block_ref *out,
                     tl_diag *diag);
/* Packs the panel of a contraction in tiles of `tile` elements, a multiple of `lanes` (sketch_pack.c); asks whether and
 * where it is copied when it is no constant. `depth`: how many loops stand around the register tile, of `rows` rows; a copy
 * may go into them. */
tl_status tl_sketch_pack_panel(tl_schedule *s, tl_block_ref anchor, const tl_contraction *c,
                               int64_t tile, int64_t lanes, int64_t rows, int depth, tl_diag *diag);
/* Copies the stream of a contraction, when it is no constant: where it is read in steps, only what is read; where its rows
 * lie side by side and its steps apart (a transposed factor), in strips of `rows` (0: none). `uses`: panels for which it is
 * read. */
tl_status tl_sketch_pack_stream(tl_schedule *s, tl_block_ref anchor, const tl_contraction *c,
                                int64_t rows, int64_t uses, tl_diag *diag);
/* A stage that copies a buffer with a constant around it into `stream`, which only a scheduled contraction reads, is
 * computed there instead (sketch_border.c). */
tl_status tl_sketch_inline_border(tl_schedule *s, const tl_buffer *stream);
/* The load of the block that moves with `vector`. */
const tl_expr *tl_sketch_panel_load(const tl_block *block, const tl_var *vector);
/* Packs every constant of the block whose lanes lie apart, in groups of `lanes`. */
tl_status tl_sketch_pack_constants(tl_schedule *s, tl_block_ref block, const tl_var *lane,
                                   int64_t lanes, tl_diag *diag);

/* A decision of the rule that schedules `block`: one of the options, which are ascending numbers (`initial`, what the
 * analytic model says, joins them when it is missing), or all numbers from `least` to `most`. One option
 * alone is no decision; a role of the block that was asked for before is answered as near to that as may be. */
int64_t tl_decide(tl_schedule *s, const char *block, const char *role, const int64_t *options,
                  int count, int64_t initial);
int64_t tl_decide_range(tl_schedule *s, const char *block, const char *role, int64_t least,
                        int64_t most, int64_t initial);

/* Spatial stages that one other stage reads are computed there, but not in a contraction, which reads an element many times. */
tl_status tl_sketch_inline_stages(tl_schedule *s);

/* Rules that schedule a block, `anchor`, with the stage that reads what it makes, or a copy for the purpose: `out`. What else a
 * rule schedules it adds to `done`. */
typedef bool tl_block_test(tl_schedule *s, const tl_block *block);
typedef tl_status tl_block_rule(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_map *done,
                                tl_diag *diag);
/* Applies such a rule to every block of `known` that fits and is not in `done`. Those that it refuses fall to the next. A stage
 * that belongs to another block already is nobody's `out`: the block gets a copy. */
tl_status tl_sketch_apply_anchored(tl_schedule *s, tl_block_test *fits, tl_block_rule *rule,
                                   tl_map *done, const tl_map *known, tl_diag *diag);

/* A rule for a block by itself, which may take others along: those that it schedules it adds to `done`. */
typedef tl_status tl_group_rule(tl_schedule *s, tl_block_ref anchor, tl_map *done, tl_diag *diag);
/* Tries such a rule on every block that fits, is not in `done`, and is in `known` (NULL: whichever). */
tl_status tl_sketch_apply_each(tl_schedule *s, tl_block_test *fits, tl_group_rule *rule,
                               tl_map *done, const tl_map *known, tl_diag *diag);

/* The rules for GPUs (gpu_default.c calls them). */
tl_status tl_gpu_default(tl_schedule *s, tl_diag *diag);
/* A contraction in tiles that a block of threads computes from shared memory (gpu_tile.c). */
tl_status tl_gpu_tile(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_diag *diag);
/* A nest of its own, or a reduction with the stage that reads it: a thread an element, or four neighbours (gpu_nest.c). */
tl_status tl_gpu_nest(tl_schedule *s, tl_block_ref block, tl_diag *diag);
tl_status tl_gpu_reduction(tl_schedule *s, tl_block_ref anchor, tl_block_ref out, tl_diag *diag);
/* A reduction of long rows: a warp a row, whose threads combine what they have (gpu_combine.c). */
tl_status tl_gpu_combine(tl_schedule *s, tl_block_ref block, tl_diag *diag);
/* The stages that feed `out` alone, all in one launch, some threads a row (gpu_rows.c); what it schedules is added to `done`. */
tl_status tl_gpu_rows(tl_schedule *s, tl_block_ref out, tl_map *done, const tl_map *known,
                      tl_diag *diag);
/* How many threads a block of a nest with so many iterations has. */
int64_t tl_gpu_threads(int64_t iterations);
/* Whether threads can take `wide` neighbours along the contiguous iter at once: every access goes along with it, or not at
 * all, and the elements are of 4 bytes. */
bool tl_gpu_is_wide(tl_schedule *s, const tl_block *block, int64_t wide);
/* The loops become one, which is cut in parts for blocks, threads and `inner` (1: none) neighbouring iterations; bound, but
 * for the loop over blocks where `blocks` is false. `parts`: blocks or steps, threads, inner (id 0: none). */
tl_status tl_gpu_spread(tl_schedule *s, const tl_loop_ref *loops, int count, int64_t threads,
                        int64_t inner, bool blocks, tl_loop_ref parts[3], tl_diag *diag);

/* Blocks of the body in execution order. */
int tl_sketch_blocks(tl_schedule *s, const tl_block ***out);

#endif
