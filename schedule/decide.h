/* schedule/decide.h: what a sketch leaves open.
 *
 * A sketch rule (sketch_*.c) asks for each of its decisions: how many rows a register tile has, how far ahead weights are
 * fetched, which way a sum is computed. When nobody answers, it takes what the analytic model of the target says: that is
 * the default schedule. A decider answers otherwise; so the same rules span the space that the tuner searches
 * (tuner/search/space.h), and the default schedule is one of its points. A decision has a name, block and role ("conv.rows"),
 * which it keeps from point to point. */
#ifndef TL_SCHEDULE_DECIDE_H
#define TL_SCHEDULE_DECIDE_H
#include "schedule/schedule.h"

typedef struct {
    const char *name;
    int count;              /* of options, at least 1 */
    const int64_t *options; /* distinct, in an order in which neighbours are alike */
    int initial;            /* which of them the analytic model takes */
    int taken;
} tl_decision;

/* Which option is taken; what is none takes the initial one. TL_DECIDE_CLOSED: the initial one, and it is no decision.
 * `open` and its texts live as long as the schedule. */
enum { TL_DECIDE_CLOSED = -1 };
typedef int tl_decider(void *user, const tl_decision *open);

void tl_schedule_set_decider(tl_schedule *s, tl_decider *decide, void *user);
/* The decisions that led to what the schedule is now, in the order in which they were met. */
int tl_schedule_decisions(const tl_schedule *s, const tl_decision **out);

#endif
