/* schedule/trace.h: a schedule written down: the same trace on the same program gives the same loops.
 *
 * The text has a primitive a line, as in ARCHITECTURE.md section 3:
 *
 *     lowering(direct)                      # optional first line: which lowering it belongs to
 *     n, m, k = loops(C)                    # results get names; blocks and buffers are named as in the program
 *     m0, m1 = split(m, [_, 2*V])           # _ is inferred; V: lanes of the target's f32 vector
 *     reorder(n, m0, k, m1)
 *     vectorize(m1)
 *
 * Names in a trace are the trace's own; a printed trace names loops after their variables, made unique. */
#ifndef TL_SCHEDULE_TRACE_H
#define TL_SCHEDULE_TRACE_H
#include "runtime/base/random.h"
#include "schedule/schedule.h"

typedef struct {
    tl_prim prim;
    int arg_count, out_count;
    /* Loop refs here are the trace's own numbering: 1, 2, ... in order of appearance, `word` their
     * names; blocks are named by `word` alone. */
    tl_arg *args, *outs;
} tl_step;

typedef struct {
    const char *lowering; /* NULL when not named */
    int count, capacity;
    tl_step *steps;
} tl_trace;

/* Results that nobody uses may be called _, or the whole list left out. An argument that is a loop may be a call that
 * gives one: parallel(fuse(n0, m0)). A number may be a sum or product of numbers, V (lanes of the target's f32 vector)
 * and cores; V and cores stand for their numbers in an index map, too. */

/* What was applied so far (owned by the schedule). */
const tl_trace *tl_schedule_trace(const tl_schedule *s);
/* Replays on a schedule; TL_ILLEGAL_SCHEDULE with the step's number and text as context. */
tl_status tl_trace_apply(const tl_trace *trace, tl_schedule *s, tl_diag *diag);
/* The same with stops on the way: replays the first `step_count` steps of the trace, as far as they are not done yet.
 * The replay lives in the schedule's arena; after a failure it stands before the step that failed. */
typedef struct tl_replay tl_replay;
tl_replay *tl_replay_start(const tl_trace *trace, tl_schedule *s);
tl_status tl_replay_to(tl_replay *replay, int step_count, tl_diag *diag);
/* The loop that the trace calls so by now; id 0: none. It may be gone. */
tl_loop_ref tl_replay_loop(const tl_replay *replay, const char *name);
/* What the trace calls the loop of this variable by now; NULL: it has no name for it. */
const char *tl_replay_name(const tl_replay *replay, const tl_var *var);
/* Replays on another kernel of the same class, with other factors and decisions where the trace's own do not fit
 * (trace_adapt.c has the order of trying); `report` (may be NULL) gets a line for each step that was changed. When
 * nothing fits, TL_ILLEGAL_SCHEDULE says how far it came, and the schedule is as it was. */
tl_status tl_trace_adapt(const tl_trace *trace, tl_schedule *s, tl_text *report, tl_diag *diag);
/* The trace with one of its decisions left open, which a replay draws anew from the schedule's seed; NULL: it has
 * none. */
tl_trace *tl_trace_mutate(tl_arena *arena, const tl_trace *trace, tl_random *random);
void tl_trace_print(const tl_trace *trace, tl_text *out);
const char *tl_trace_text(tl_arena *arena, const tl_trace *trace);
tl_status tl_trace_parse(tl_arena *arena, const char *text, const char *file,
                         const tl_target *target, tl_trace **out, tl_diag *diag);

#endif
