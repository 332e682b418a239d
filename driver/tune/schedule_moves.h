/* driver/tune/schedule_moves.h: what can be done next with a kernel and a trace: `tilth schedule --moves`. */
#ifndef TL_DRIVER_TUNE_SCHEDULE_MOVES_H
#define TL_DRIVER_TUNE_SCHEDULE_MOVES_H
#include "driver/study/schedule_verb.h"

/* Prints the moves, what is expected of each, and of the first few what was measured. */
tl_status tl_schedule_moves(const tl_study *study, const tl_walk *walk,
                            const tl_schedule_options *options, tl_diag *diag);
/* TL_BAD_ARGUMENT names an option that cannot be. */
tl_status tl_schedule_moves_check(const tl_schedule_options *options, tl_diag *diag);

#endif
