/* schedule/nest.h: the loops that run one block and nothing else, taken out of one place and built anew in another.
 *
 * What a block computes for given values of its iters does not depend on the loops that drive it: a primitive that
 * moves a block throws its own loops away and makes new ones, one an iter and in their order, over the values needed
 * in the new place. */
#ifndef TL_SCHEDULE_NEST_H
#define TL_SCHEDULE_NEST_H
#include "schedule/region_at.h"
#include "schedule/schedule_private.h"

typedef struct {
    const tl_block *block;
    tl_path path; /* from the body down to the block */
    int top;      /* position in path of the outermost statement that runs only this block */
    const tl_expr *condition; /* what the predicate asks beyond the iters' domains; NULL: nothing */
} tl_nest;

/* Refuses a block that is not in the body, calls an intrinsic, only updates, or has loops of its own that were
 * split, fused or given a kind; under strict numerics also a sum of floats whose loops are not in the order of its iters. */
tl_status tl_nest_of(tl_schedule *s, const char *prim, const tl_block *block, tl_nest *out,
                     tl_diag *diag);

/* New loops around the block: iter i runs over spans[i] where that is known and it is spatial, otherwise as before
 * (where the loops of its binding are also around `place`, the path to the new place, NULL: the root) or over all its
 * domain. */
const tl_stmt *tl_nest_build(tl_arena *arena, const tl_nest *nest, const tl_span *spans,
                             const tl_path *place);

/* The body with `added` before the first (after the last) part that contains one of the blocks, in the body of the
 * path's last statement, a loop. */
const tl_stmt *tl_insert_before(tl_arena *arena, const tl_path *loop, const tl_stmt *added,
                                const tl_block *const *blocks, int count);
const tl_stmt *tl_insert_after(tl_arena *arena, const tl_path *loop, const tl_stmt *added,
                               const tl_block *const *blocks, int count);

/* Whether a block that moves from where it is under `loop` reads the same elements of the buffer there: nothing from the
 * one place to the other, both ends with all their loops included, writes the buffer. Who writes it elsewhere, before or
 * after, in a loop around both, does so for either place alike. */
bool tl_keeps_on_the_way(tl_schedule *s, const char *block, const tl_stmt *loop,
                         const tl_buffer *buffer);
/* Whether the block, in each iteration of the loops around it in the schedule's body and in `root`, runs in `root` for no
 * instances that it does not run for in the body. */
bool tl_runs_no_more(tl_schedule *s, const tl_stmt *root, const char *block);
/* Whether the block may stand where it stands in `root`: its buffers are visible, all that it reads is written before
 * it, and inside a loop that it shares with a writer it reads no more than that writes in one iteration. What it reads
 * alike in both places, when all of it moved under the loop `moved_to` of the schedule's body (NULL: it did not), is
 * not asked about. */
tl_status tl_check_placed(tl_schedule *s, const char *prim, const tl_stmt *root, const char *block,
                          const tl_stmt *moved_to, tl_diag *diag);

/* Whether what the block reads stays as it is when it leaves the loops of `old` that are not around `place`. */
tl_status tl_check_leaves(tl_schedule *s, const char *prim, const tl_block *block,
                          const tl_path *old, const tl_path *place, tl_diag *diag);

/* Whether the loops on the path start the block's reductions, which initialises what it writes; not so in a tail. */
tl_status tl_check_begins(tl_schedule *s, const char *prim, const tl_path *path,
                          const tl_block *block, tl_diag *diag);

/* The first conjunct of the predicate that leaves out more than what is outside the iters' domains, and that `than`
 * (NULL: nobody) does not say as well: instances that the bounds of the bindings do not tell of. NULL: none. */
const tl_expr *tl_narrowing_condition(tl_arena *arena, const tl_block *block, const tl_block *than);
/* The first conjunct of the predicate that may keep the block from writing an element of its domain: not one that
 * follows from the iters' domains, nor one that the first instance of its reduce iters, which sets the element, always
 * fulfils. NULL: none. `path` leads to the block. */
const tl_expr *tl_cutting_condition(tl_arena *arena, const tl_path *path, const tl_block *block);
/* The conjuncts of the block's predicate that speak only of loops among the first `count` statements of its path;
 * NULL: none. */
const tl_expr *tl_outer_condition(tl_arena *arena, const tl_path *path, int count);

/* The end of a move: allocs sink, no parallel loop around the block may have got iterations that conflict, and the
 * schedule takes the new body. */
tl_status tl_settle(tl_schedule *s, const char *prim, const tl_stmt *root, const char *block,
                    tl_diag *diag);

/* Position of a block in the order of the text; -1: not there. */
int tl_block_position(const tl_stmt *root, const char *block);
bool tl_stmt_has_block(const tl_stmt *stmt, const char *block);
/* The names of the loops that are around all of the blocks, "none" when there is none; for refusals. */
const char *tl_common_loops_text(tl_arena *arena, const tl_stmt *root,
                                 const tl_block *const *blocks, int count);
/* The distinct buffers that a block reads. */
int tl_buffers_read(tl_arena *arena, const tl_block *block, const tl_buffer ***out);
/* Whether some variable occurs in both. */
bool tl_share_vars(const tl_expr *a, const tl_expr *b);
/* The conjuncts of a condition. */
int tl_conjuncts(tl_arena *arena, const tl_expr *condition, const tl_expr ***out);

#endif
