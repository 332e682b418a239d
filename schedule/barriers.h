/* schedule/barriers.h: where the threads of a GPU block must wait for each other. */
#ifndef TL_SCHEDULE_BARRIERS_H
#define TL_SCHEDULE_BARRIERS_H
#include "ir/program/program.h"

/* The body with the barriers that it needs and does not have; the same pointer when there are none, as on a CPU.
 * TL_ILLEGAL_SCHEDULE where one is needed that not all threads would reach. */
tl_status tl_place_barriers(tl_arena *arena, const tl_stmt *body, const tl_stmt **out,
                            tl_diag *diag);
/* TL_ILLEGAL_SCHEDULE when not all threads of a block reach a barrier that is there; `prim` is who asks. */
tl_status tl_check_barriers(tl_arena *arena, const char *prim, const tl_stmt *body, tl_diag *diag);

#endif
