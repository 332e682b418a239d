/* schedule/region_at.h: which part of a buffer is touched under a loop, as a function of the loops outside it.
 *
 * The loops inside a statement are free: an index is bounded over all their values, and what is left speaks of
 * the loops outside. With i = i0*8 + i1 and i1 inside, A[i] touches i0*8 .. i0*8 + 7. */
#ifndef TL_SCHEDULE_REGION_AT_H
#define TL_SCHEDULE_REGION_AT_H
#include "ir/expr/index.h"
#include "ir/program/program.h"

/* The values an index takes: min..max, both included, over the variables that are not free. */
typedef struct {
    const tl_expr *min, *max; /* NULL: nothing is known */
    int64_t width;            /* max - min at most; -1: no constant bounds it */
} tl_span;

typedef struct {
    const tl_var *var;
    const tl_expr *extent;
} tl_free_var;

tl_span tl_span_of(tl_arena *arena, const tl_expr *e, const tl_free_var *free_vars, int count);
tl_span tl_span_union(tl_arena *arena, tl_span a, tl_span b);
/* The extent, or 0 where it is not seen to be 0 or more. */
const tl_expr *tl_not_negative(tl_arena *arena, const tl_expr *extent);
/* begin and extent of a loop over the span, inside 0..domain-1; the extent is a constant where one is known and
 * never depends on a loop. The whole domain when nothing better is known. */
void tl_span_loop(tl_arena *arena, tl_span span, const tl_expr *domain, const tl_expr **begin,
                  const tl_expr **extent);

/* A span an axis. */
typedef struct {
    const tl_buffer *buffer;
    const tl_span *axes;
} tl_box;

typedef enum { TL_BOX_READS, TL_BOX_WRITES } tl_box_kind;

/* The box of all reads (or writes) of `buffer` under `stmt`, its loops free; `only` names the one block to look
 * at, NULL: all. What a reduction reads of its own result is no read. False when there is none. */
bool tl_box_at(tl_arena *arena, const tl_stmt *stmt, const tl_buffer *buffer, tl_box_kind kind,
               const char *only, tl_box *out);
/* Whether `inner`, cut to the buffer's shape, provably lies in `outer`. */
bool tl_box_covers(tl_arena *arena, const tl_box *outer, const tl_box *inner);

/* The values of every iter for which `indices` (of an access of box->buffer, over the block's iters) lie in the
 * box; spans[i].min is NULL where the indices do not decide it. */
void tl_iters_in_box(tl_arena *arena, const tl_block *block, const tl_expr *const *indices,
                     const tl_box *box, tl_span *spans);

/* The loops on the way from the root of a tree down to a block, outermost first. */
int tl_loops_around(tl_arena *arena, const tl_stmt *root, const char *block, const tl_stmt ***out);

/* The condition that `binding` lies in 0..domain-1; NULL when it always does. */
const tl_expr *tl_domain_guard(tl_arena *arena, const tl_expr *binding, const tl_expr *domain);
/* The same for a binding begin + v with v in 0..extent-1, told from begin and extent where they tell more. */
const tl_expr *tl_loop_guard(tl_arena *arena, const tl_expr *begin, const tl_expr *extent,
                             const tl_expr *binding, const tl_expr *domain);

#endif
