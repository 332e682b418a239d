/* schedule/legal_steps.h: what can be done with a loop, and why the rest cannot: for people at a prompt. */
#ifndef TL_SCHEDULE_LEGAL_STEPS_H
#define TL_SCHEDULE_LEGAL_STEPS_H
#include "schedule/trace.h"

/* The name of a primitive, its arguments' and results' letters as in primitives.def; NULL after the last. */
const char *tl_prim_name(int index);
const char *tl_prim_arguments(int index);

/* Writes what the loop is and drives, how the accesses under it move with it, and of every primitive that takes a loop
 * whether it applies: with which arguments, or the sentence that refuses it. Every answer is got by trying on a copy;
 * `s` stays as it is. Loops are called as in `replay` (NULL: as in the program). */
void tl_schedule_why(const tl_schedule *s, const tl_replay *replay, const tl_stmt *loop,
                     tl_text *out);

#endif
