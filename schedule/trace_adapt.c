/* schedule/trace_adapt.c: a trace on another kernel of its class.
 *
 * The steps are applied one by one. Where one does not fit, or one after it does not because of it, the other ways to
 * take it are tried in this order, the latest step first:
 *
 *   split, tile              the same factors, the outermost inferred: what does not divide gets a guard, for
 *                            loop_partition to peel; each factor the nearest divisor of what it divides; each factor the
 *                            next smaller power of two
 *   sample_perfect_tile      each factor the nearest divisor; the decision drawn anew
 *   other sampling steps     the decision drawn anew
 *   loop_partition, unroll,  left out: they change no result of a later step
 *   prefetch, annotate
 */
#include <assert.h>
#include <string.h>
#include "schedule/schedule_private.h"

enum { MOST_TRIES = 1000, MOST_WAYS = 4 };

typedef struct {
    tl_replay *replay;
    tl_schedule *schedule;
    int tries;
    const char **changes; /* a step each; NULL: as it was */
    int deepest;          /* the step that failed furthest on, and why */
    tl_diag why;
} adapter;

/* One way to take a step; NULL: there is no such way. `step` has its own arguments. */

static tl_step *copy_step(tl_arena *arena, const tl_step *step)
{
    tl_step *copy = TL_NEW(arena, tl_step);
    *copy = *step;
    copy->args = tl_arena_copy(arena, step->args, sizeof(tl_arg) * (size_t)step->arg_count,
                               _Alignof(tl_arg));
    return copy;
}

static int64_t nearest_divisor(int64_t of, int64_t to)
{
    assert(of > 0 && to > 0);
    for (int64_t away = 0; away < of + to; away++) {
        if (to - away >= 1 && of % (to - away) == 0)
            return to - away;
        if (to + away <= of && of % (to + away) == 0)
            return to + away;
    }
    return 1;
}

static int64_t smaller_power(int64_t factor)
{
    int64_t power = 1;
    while (2 * power < factor)
        power *= 2;
    return power;
}

/* The extent of the loop that the step's argument is, 0: not known. */
static int64_t extent_of(const adapter *a, const tl_arg *arg)
{
    int64_t extent = 0;
    tl_loop_ref ref = arg->loop.id > 0 ? a->replay->loops[arg->loop.id - 1] : (tl_loop_ref){ 0 };
    const tl_stmt *loop = tl_schedule_get_loop(a->schedule, ref);
    if (loop == NULL || !tl_const_int(loop->u.loop.extent, &extent))
        return 0;
    return extent;
}

static const tl_step *with_factors(const adapter *a, const tl_step *step, int at,
                                   const int64_t *factors)
{
    tl_step *other = copy_step(a->schedule->arena, step);
    other->args[at].factors = factors;
    return other;
}

/* Divisors of the extent from the innermost factor outwards; the outermost takes what is left. */
static bool divide(int64_t extent, const int64_t *from, int count, int64_t *to)
{
    assert(count > 0);
    if (extent < 1)
        return false;
    for (int i = count - 1; i > 0; i--) {
        to[i] = nearest_divisor(extent, from[i] > 0 ? from[i] : 1);
        extent /= to[i];
    }
    to[0] = extent;
    return true;
}

static const tl_step *split_way(const adapter *a, const tl_step *step, int way)
{
    const tl_arg *list = &step->args[1];
    int64_t *factors = TL_NEW_ARRAY(a->schedule->arena, int64_t, list->count);
    memcpy(factors, list->factors, sizeof *factors * (size_t)list->count);
    if (way == 1) {
        for (int i = 0; i < list->count; i++)
            if (factors[i] == 0)
                return NULL; /* inferred already */
        factors[0] = 0;
    } else if (way == 2) {
        if (!divide(extent_of(a, &step->args[0]), list->factors, list->count, factors))
            return NULL;
    } else {
        for (int i = 0; i < list->count; i++)
            factors[i] = i == 0 ? 0 : smaller_power(factors[i] ? factors[i] : 1);
    }
    return with_factors(a, step, 1, factors);
}

static const tl_step *tile_way(const adapter *a, const tl_step *step, int way)
{
    int at = step->arg_count - 1;
    const tl_arg *list = &step->args[at];
    int64_t *factors = TL_NEW_ARRAY(a->schedule->arena, int64_t, list->count);
    for (int i = 0; i < list->count; i++) {
        int64_t extent = i < at ? extent_of(a, &step->args[i]) : 0;
        factors[i] = way == 2 && extent > 0 ? nearest_divisor(extent, list->factors[i])
                                            : smaller_power(list->factors[i]);
    }
    return way == 1 ? NULL : with_factors(a, step, at, factors);
}

static const tl_step *undecided(const adapter *a, const tl_step *step)
{
    size_t letters = strcspn(tl_prim_infos[step->prim].in, "?") - 1; /* those before the decision */
    if (step->arg_count <= (int)letters)
        return NULL;
    tl_step *open = copy_step(a->schedule->arena, step);
    open->arg_count = (int)letters;
    return open;
}

static const tl_step *sample_way(const adapter *a, const tl_step *step, int way)
{
    if (way == 1 || step->prim != TL_PRIM_sample_perfect_tile)
        return way == 3 ? undecided(a, step) : NULL;
    if (way == 3)
        return undecided(a, step);
    if (step->arg_count < 4)
        return NULL;
    const tl_arg *list = &step->args[3];
    int64_t *factors = TL_NEW_ARRAY(a->schedule->arena, int64_t, list->count);
    if (!divide(extent_of(a, &step->args[0]), list->factors, list->count, factors))
        return NULL;
    return with_factors(a, step, 3, factors);
}

static bool may_be_left_out(tl_prim prim)
{
    return prim == TL_PRIM_loop_partition || prim == TL_PRIM_unroll || prim == TL_PRIM_prefetch ||
           prim == TL_PRIM_annotate;
}

/* Way 0 is the step as it stands. */
static const tl_step *way_of(const adapter *a, const tl_step *step, int way, bool *left_out)
{
    *left_out = way == 1 && may_be_left_out(step->prim);
    if (way == 0 || *left_out)
        return step;
    if (step->prim == TL_PRIM_split && step->args[1].word == NULL)
        return split_way(a, step, way);
    if (step->prim == TL_PRIM_tile && step->args[step->arg_count - 1].word == NULL)
        return tile_way(a, step, way);
    if (strchr(tl_prim_infos[step->prim].in, '?'))
        return sample_way(a, step, way);
    return NULL;
}

/* The replay's tables as they were. */
typedef struct {
    int block_count, value_count;
} tables;

static void note_failure(adapter *a, int at, const tl_diag *diag)
{
    if (at < a->deepest)
        return;
    a->deepest = at;
    a->why = *diag;
}

static bool adapt_from(adapter *a, int at)
{
    assert(at >= 0 && at <= a->replay->trace->count);
    tl_replay *r = a->replay;
    if (at == r->trace->count)
        return true;
    const tl_step *step = &r->trace->steps[at];
    for (int way = 0; way < MOST_WAYS && a->tries < MOST_TRIES; way++) {
        bool left_out;
        const tl_step *taken = way_of(a, step, way, &left_out);
        if (taken == NULL)
            continue;
        a->tries++;
        tl_schedule_state state = tl_schedule_save(a->schedule);
        tables before = { r->block_count, r->value_count };
        tl_diag diag = { 0 };
        if (left_out || tl_replay_step(r, a->schedule, taken, &diag) == TL_OK) {
            tl_arena *arena = a->schedule->arena;
            a->changes[at] = NULL;
            if (left_out)
                a->changes[at] = "left out";
            else if (way > 0)
                a->changes[at] = tl_step_text(arena, r->trace, taken);
            if (adapt_from(a, at + 1))
                return true;
        } else {
            note_failure(a, at, &diag);
        }
        tl_schedule_restore(a->schedule, &state);
        r->block_count = before.block_count;
        r->value_count = before.value_count;
    }
    return false;
}

tl_status tl_trace_adapt(const tl_trace *trace, tl_schedule *s, tl_text *report, tl_diag *diag)
{
    adapter a = { .replay = tl_replay_start(trace, s), .schedule = s, .deepest = -1 };
    a.changes = TL_NEW_ARRAY(s->arena, const char *, trace->count);
    if (!adapt_from(&a, 0)) {
        if (diag && a.deepest >= 0) {
            *diag = a.why;
            tl_context(diag, "adapting trace step %d: %.400s", a.deepest + 1,
                       tl_step_text(s->arena, trace, &trace->steps[a.deepest]));
        }
        return TL_ILLEGAL_SCHEDULE;
    }
    for (int i = 0; report && i < trace->count; i++)
        if (a.changes[i])
            tl_text_format(report, "step %d: %s: %s\n", i + 1,
                           tl_step_text(s->arena, trace, &trace->steps[i]), a.changes[i]);
    return TL_OK;
}

/* Mutation. */

static bool is_decided(const tl_step *step)
{
    const char *in = tl_prim_infos[step->prim].in, *open = strchr(in, '?');
    return open != NULL && step->arg_count == (int)(open - in);
}

tl_trace *tl_trace_mutate(tl_arena *arena, const tl_trace *trace, tl_random *random)
{
    int decisions = 0;
    for (int i = 0; i < trace->count; i++)
        decisions += is_decided(&trace->steps[i]);
    if (decisions == 0)
        return NULL;
    int64_t chosen = tl_random_below(random, decisions);
    tl_trace *other = TL_NEW(arena, tl_trace);
    other->lowering = trace->lowering;
    for (int i = 0; i < trace->count; i++) {
        const tl_step *step = &trace->steps[i];
        bool open = is_decided(step) && chosen-- == 0;
        tl_trace_append(arena, other, step->prim, step->args, step->arg_count - open, step->outs,
                        step->out_count);
    }
    return other;
}
