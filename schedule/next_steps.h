/* schedule/next_steps.h: every step that is legal from here, for programs that look for schedules. */
#ifndef TL_SCHEDULE_NEXT_STEPS_H
#define TL_SCHEDULE_NEXT_STEPS_H
#include "schedule/trace.h"

typedef struct {
    const char *primitive; /* its name */
    /* Lines to add to the trace: loops that have no name in it get one from a line loops(BLOCK) before the step. */
    const char *text;
    const tl_program *program; /* what becomes of it */
} tl_next_step;

enum { TL_NEXT_STEPS_TRIED = 8192 };

/* The steps that apply to `s`, got by trying them on copies of it: for arguments that are loops, blocks and buffers of its
 * program; small powers of two and the lanes of `target` as factors; 1, 2 and 8 as numbers; the words that there are. What a
 * person has to think of, index maps and remarks, is not among them, neither are draws. Steps that come to the same program as
 * one before, or as `s` itself, are left out. `trace` is the text that led to `s`, and `replay` its replay; they say how loops
 * are called, and which names are taken. All in the schedule's arena. `complete` (may be NULL): false when the search ended
 * after TL_NEXT_STEPS_TRIED trials. */
int tl_next_steps(const tl_schedule *s, const tl_replay *replay, const char *trace,
                  const tl_target *target, const tl_next_step **out, bool *complete);

#endif
