/* schedule/strided_reads.h: elements that a block never reads, because its indices walk in steps.
 *
 * A[2*i + 1] reads the elements 1, 3, 5, ... of its axis: a copy of what is read needs half of them. */
#ifndef TL_SCHEDULE_STRIDED_READS_H
#define TL_SCHEDULE_STRIDED_READS_H
#include "ir/expr/index.h"
#include "ir/program/program.h"

/* Of an axis: first, first + step, first + 2*step, ..., with 0 <= first < step; step 1: any element. */
typedef struct {
    int64_t step, first;
} tl_read_step;

/* What the block reads of each axis of the buffer. */
const tl_read_step *tl_read_steps(tl_arena *arena, const tl_stmt *block, const tl_buffer *buffer);
/* How many elements an axis of that extent has at those places. */
const tl_expr *tl_step_count(tl_arena *arena, tl_read_step step, const tl_expr *extent);
/* The block with every load of the buffer at the position of its element among those of the steps. */
const tl_stmt *tl_skip_steps(tl_arena *arena, const tl_stmt *block, const tl_buffer *buffer,
                             const tl_read_step *steps);

#endif
