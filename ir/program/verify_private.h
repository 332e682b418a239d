/* ir/program/verify_private.h: the verifier's state: what is around the statement being looked at. */
#ifndef TL_IR_PROGRAM_VERIFY_PRIVATE_H
#define TL_IR_PROGRAM_VERIFY_PRIVATE_H
#include "ir/program/program.h"
#include "runtime/base/map.h"

enum { TL_VERIFY_DEPTH = 256 };

typedef struct {
    const tl_program *program;
    tl_arena *arena;
    tl_diag *diag;
    tl_map *blocks; /* names seen */
    bool in_prepare;
    bool is_lowered; /* tl_program_verify_lowered */
    int loop_count, buffer_count;
    const tl_stmt *loops[TL_VERIFY_DEPTH]; /* around the statement, outermost first */
    /* Allocs around it, and how many loops are around each. */
    const tl_buffer *buffers[TL_VERIFY_DEPTH];
    int loops_around[TL_VERIFY_DEPTH];
} tl_verifier;

/* ir/program/verify_points.c: runs the block for some values of the loops around it: corners of their
 * ranges and a few points between. What goes wrong there is wrong: iters that leave their domains,
 * accesses that leave their buffers. */
tl_status tl_verify_points(tl_verifier *v, const tl_block *block);

#endif
