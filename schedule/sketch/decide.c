/* schedule/sketch/decide.c: asks for a decision and keeps what was taken. */
#include "schedule/decide.h"
#include <string.h>
#include "runtime/base/array.h"
#include "schedule/sketch/sketch_private.h"

void tl_schedule_set_decider(tl_schedule *s, tl_decider *decide, void *user)
{
    s->decide = decide;
    s->decide_user = user;
}

int tl_schedule_decisions(const tl_schedule *s, const tl_decision **out)
{
    *out = s->decisions;
    return s->decision_count;
}

static void append(tl_schedule *s, const tl_decision *made)
{
    TL_ROOM(s->arena, s->decisions, s->decision_count, s->decision_capacity);
    s->decisions[s->decision_count++] = *made;
}

static int64_t taken_value(const tl_decision *d)
{
    return d->options[d->taken];
}

static int64_t nearest(const int64_t *options, int count, int64_t value)
{
    int64_t best = options[0];
    for (int i = 1; i < count; i++) {
        int64_t a = options[i] - value, b = best - value;
        if ((a < 0 ? -a : a) < (b < 0 ? -b : b))
            best = options[i];
    }
    return best;
}

int64_t tl_decide(tl_schedule *s, const char *block, const char *role, const int64_t *options,
                  int count, int64_t initial)
{
    if (s->decide == NULL)
        return initial;
    int64_t *offered = TL_NEW_ARRAY(s->arena, int64_t, count + 1);
    int offered_count = 0, at = -1;
    for (int i = 0; i < count; i++) {
        if (at < 0 && options[i] >= initial) {
            at = offered_count;
            offered[offered_count++] = initial;
        }
        if (options[i] != initial)
            offered[offered_count++] = options[i];
    }
    if (at < 0) {
        at = offered_count;
        offered[offered_count++] = initial;
    }
    if (offered_count == 1)
        return initial;
    /* asked again, by a rule that comes after one that was refused: the answer is what it was, as near as may be */
    const char *name = tl_arena_format(s->arena, "%s.%s", block, role);
    for (int i = 0; i < s->decision_count; i++)
        if (strcmp(s->decisions[i].name, name) == 0)
            return nearest(offered, offered_count, taken_value(&s->decisions[i]));
    tl_decision made = {
        .name = name, .count = offered_count, .options = offered, .initial = at, .taken = at
    };
    int taken = s->decide(s->decide_user, &made);
    if (taken == TL_DECIDE_CLOSED)
        return initial;
    if (taken >= 0 && taken < offered_count)
        made.taken = taken;
    append(s, &made);
    return offered[made.taken];
}

int64_t tl_decide_range(tl_schedule *s, const char *block, const char *role, int64_t least,
                        int64_t most, int64_t initial)
{
    enum { MOST_OPTIONS = 64 };
    int64_t options[MOST_OPTIONS];
    int count = 0;
    for (int64_t value = least; value <= most && count < MOST_OPTIONS; value++)
        options[count++] = value;
    return tl_decide(s, block, role, options, count, initial);
}
