/* schedule/padding.h: a block whose iters run up to multiples, for pad and pad_einsum. */
#ifndef TL_SCHEDULE_PADDING_H
#define TL_SCHEDULE_PADDING_H
#include "schedule/nest.h"

typedef struct {
    const char *prim;
    const tl_block *block;
    tl_path path;
    int top;                   /* of the outermost own loop */
    const tl_expr **extents;   /* new ones, an iter each */
    const tl_stmt **loops;     /* of the iters */
    const tl_buffer **results; /* padded, one a store */
} tl_padding;

/* What the primitive's arguments, a block and a factor for each of its iters, come to; all that pad requires of the block is
 * checked. */
tl_status tl_padding_plan(tl_schedule *s, const char *prim, const tl_arg *args, tl_padding *out,
                          tl_diag *diag);
/* The block over its padded domain, writing the padded results. `selects`: nothing is loaded outside of the old domain; the
 * value is the combiner's identity there, or 0. */
const tl_stmt *tl_padded_nest(tl_schedule *s, const tl_padding *p, bool selects);
/* Puts the statement, which has the padded block in it, in the place of the block, and behind it a copy of the old domain, the
 * primitive's result. */
void tl_padding_settle(tl_schedule *s, const tl_padding *p, const tl_stmt *with, tl_arg *out,
                       int *out_count);

#endif
