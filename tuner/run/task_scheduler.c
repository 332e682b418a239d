/* tuner/run/task_scheduler.c: which task gets the next batch. */
#include "tuner/run/task_scheduler.h"
#include <math.h>
#include <string.h>

enum { WINDOW = 3, KEPT = WINDOW + 1, STRAY_ROUNDS = 5, PATIENCE = 6 };
#define ALPHA       0.2
#define BETA        2.0
#define GOLDEN      1.618
#define NEGLIGIBLE  1e-3
#define WORTH_WHILE 0.995 /* of the best time: a smaller gain is noise */

typedef enum { CLOSED, OPEN, DEFERRED, RESTING, RETIRED } task_state;

typedef struct {
    tl_scheduled_task spec;
    task_state state;
    int group; /* number of the first task that is like it */
    int asked, rounds;
    double best[KEPT]; /* after the last rounds, the latest first */
    double gain_best;  /* when it last gained, */
    int gain_round;    /* and in which round that was */
} task;

struct tl_task_scheduler {
    int count, patience;
    task *tasks;
    tl_random random;
};

static int size_class(double flops)
{
    return (int)floor(log(flops + 1) / log(GOLDEN));
}

static bool are_alike(const tl_scheduled_task *a, const tl_scheduled_task *b)
{
    return strcmp(a->operators, b->operators) == 0 && size_class(a->flops) == size_class(b->flops);
}

tl_task_scheduler *tl_task_scheduler_create(tl_arena *arena, const tl_scheduled_task *tasks,
                                            int count, uint64_t seed)
{
    tl_task_scheduler *s = TL_NEW(arena, tl_task_scheduler);
    *s = (tl_task_scheduler){ .count = count,
                              .patience = PATIENCE,
                              .tasks = TL_NEW_ARRAY(arena, task, count),
                              .random = tl_random_make(seed) };
    for (int i = 0; i < count; i++) {
        task *t = &s->tasks[i];
        t->spec = tasks[i];
        t->spec.operators = tl_arena_strdup(arena, tasks[i].operators);
        t->group = i;
        for (int k = i - 1; k >= 0; k--)
            if (are_alike(&t->spec, &s->tasks[k].spec))
                t->group = s->tasks[k].group;
    }
    return s;
}

void tl_task_scheduler_open(tl_task_scheduler *s, int number, double best_ns)
{
    task *t = &s->tasks[number];
    t->state = OPEN;
    t->gain_best = best_ns;
    for (int i = 0; i < KEPT; i++)
        t->best[i] = best_ns;
}

void tl_task_scheduler_retire(tl_task_scheduler *s, int number)
{
    s->tasks[number].state = RETIRED;
}

void tl_task_scheduler_defer(tl_task_scheduler *s, int number)
{
    task *t = &s->tasks[number];
    t->asked--;
    t->state = t->asked > t->rounds ? DEFERRED : RETIRED;
}

/* The rate of a task, in flops per nanosecond; that of the best of its group when `of_group`. */
static double rate(const tl_task_scheduler *s, int number, bool of_group, int *size)
{
    double best = s->tasks[number].spec.flops / s->tasks[number].best[0];
    *size = 0;
    for (int i = 0; i < s->count; i++) {
        const task *t = &s->tasks[i];
        if (t->group != s->tasks[number].group || t->state == CLOSED)
            continue;
        ++*size;
        if (of_group)
            best = fmax(best, t->spec.flops / t->best[0]);
    }
    return best;
}

double tl_task_scheduler_gradient(const tl_task_scheduler *s, int number)
{
    const task *t = &s->tasks[number];
    int rounds = t->asked > 0 ? t->asked : 1, alike;
    double now = t->best[0], before = t->rounds >= WINDOW ? t->best[WINDOW] : now;
    double expected = now - now / rounds;
    double fastest = rate(s, number, true, &alike);
    if (alike > 1 && fastest > 0)
        expected = fmin(expected, BETA * t->spec.flops / fastest);
    double gained = (now - before) / WINDOW;
    return t->spec.weight * (ALPHA * gained + (1 - ALPHA) * (expected - now));
}

/* The open task with the least value; ties are drawn. -1: none. */
static int draw_least(tl_task_scheduler *s, const double *value, const bool *may)
{
    int best = -1, ties = 0;
    for (int i = 0; i < s->count; i++) {
        if (!may[i] || (best >= 0 && value[i] > value[best]))
            continue;
        ties = best >= 0 && value[i] == value[best] ? ties + 1 : 1;
        if (ties == 1 || tl_random_below(&s->random, ties) == 0)
            best = i;
    }
    return best;
}

int tl_task_scheduler_next(tl_task_scheduler *s)
{
    double value[TL_MAX_SCHEDULED_TASKS], total = 0;
    bool may[TL_MAX_SCHEDULED_TASKS];
    for (int i = 0; i < s->count; i++)
        total += s->tasks[i].state == CLOSED ? 0 : s->tasks[i].spec.weight * s->tasks[i].best[0];
    for (int i = 0; i < s->count; i++) {
        const task *t = &s->tasks[i];
        value[i] = -t->spec.weight * t->best[0];
        may[i] = t->state == OPEN && t->asked == 0 && -value[i] >= NEGLIGIBLE * total;
    }
    int next = draw_least(s, value, may);
    if (next < 0) {
        for (int i = 0; i < s->count; i++) {
            may[i] = s->tasks[i].state == OPEN;
            value[i] = may[i] ? tl_task_scheduler_gradient(s, i) : 0;
        }
        next = draw_least(s, value, may);
    }
    if (next >= 0)
        s->tasks[next].asked++;
    return next;
}

/* A task that stays far behind its group with more rounds than the others is unlike them after all. */
static void leave_group(tl_task_scheduler *s, int number)
{
    task *t = &s->tasks[number];
    int alike, most = 0;
    double own = rate(s, number, false, &alike), fastest = rate(s, number, true, &alike);
    for (int i = 0; i < s->count; i++)
        if (i != number && s->tasks[i].group == t->group && s->tasks[i].rounds > most)
            most = s->tasks[i].rounds;
    if (alike < 2 || own >= fastest / BETA || t->rounds <= most + STRAY_ROUNDS)
        return;
    /* a group is named by a number that no other group has; beyond the tasks' own they are free */
    t->group = s->count + number;
}

bool tl_task_scheduler_finish(tl_task_scheduler *s, int number, double best_ns)
{
    task *t = &s->tasks[number];
    t->rounds++;
    memmove(t->best + 1, t->best, (KEPT - 1) * sizeof *t->best);
    t->best[0] = best_ns;
    if (best_ns < WORTH_WHILE * t->gain_best) {
        t->gain_best = best_ns;
        t->gain_round = t->rounds;
    }
    leave_group(s, number);
    if (t->state == DEFERRED)
        t->state = OPEN;
    int waited = t->rounds - t->gain_round;
    if (t->state != OPEN || waited < s->patience || 2 * waited < t->rounds)
        return false;
    t->state = RESTING;
    return true;
}

void tl_task_scheduler_wake(tl_task_scheduler *s)
{
    s->patience *= 2;
    for (int i = 0; i < s->count; i++)
        if (s->tasks[i].state == RESTING)
            s->tasks[i].state = OPEN;
}

bool tl_task_scheduler_rests(const tl_task_scheduler *s, int number)
{
    return s->tasks[number].state == RESTING;
}
