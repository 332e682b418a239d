/* driver/study/inner_loop.h: the loop of an assembly text in which the time goes. */
#ifndef TL_DRIVER_STUDY_INNER_LOOP_H
#define TL_DRIVER_STUDY_INNER_LOOP_H
#include "runtime/base/arena.h"

/* The lines of the innermost loop with the most arithmetic (a loop: from a label to a jump back to it; innermost: no
 * other is inside), directives and comments left out; "" when the text has no loop. In the arena. */
const char *tl_inner_loop(tl_arena *arena, const char *assembly);

#endif
