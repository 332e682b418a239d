/* tuner/cost/network_train.c: trains a network.
 *
 * A batch is some whole tasks, or pieces of such as have more programs than a batch may: programs are compared
 * inside their task only. Each epoch takes the tasks in another order, which the seed and the epoch's number say,
 * so that nothing but the state between two steps has to be kept. The rate rises for the first twentieth of all
 * steps, and falls as a cosine to a fiftieth. What is kept is the state after the epoch with the least held-out
 * loss; without held-out samples the last. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/clock.h"
#include "tuner/cost/network.h"
#include "tuner/learn/losses.h"

enum { EPOCHS = 16, BATCH = 256, MOST_BATCH = 4096, PATIENCE = 10, ADAPT_EPOCHS = 4 };
static const double decay = 0.02, clip = 1, rank = 1, even = 4, absolute = 0.05, adapt_rate = 0.1;
static const double last_rate = 0.02, warm_up = 0.05;
static const int64_t checkpoint_ns = 20000000000;

static double pick(double wanted, double usual)
{
    return wanted < 0 ? 0 : wanted > 0 ? wanted : usual;
}

/* --- batches ---------------------------------------------------------------------------------------------------------- */

/* The samples' programs that can be learned from, by task. */
typedef struct {
    int task_count;
    int *first;    /* by task: task_count + 1 */
    int *programs; /* of task t: programs[first[t]] ..; in the order of the samples */
} by_task;

static by_task sort_by_task(const tl_cost_samples *s, tl_arena *arena)
{
    by_task t = { .task_count = s->task_count,
                  .first = TL_NEW_ARRAY(arena, int, s->task_count + 2),
                  .programs = TL_NEW_ARRAY(arena, int, s->count) };
    for (int p = 0; p < s->count; p++)
        if (!isnan(s->label[p]))
            t.first[s->task[p] + 2]++;
    for (int i = 2; i < s->task_count + 2; i++)
        t.first[i] += t.first[i - 1];
    for (int p = 0; p < s->count; p++)
        if (!isnan(s->label[p]))
            t.programs[t.first[s->task[p] + 1]++] = p;
    return t;
}

/* What is to be learned, or judged: and an epoch of it: programs in the order in which they are taken, and where
 * batches begin. */
typedef struct {
    const tl_cost_samples *samples;
    by_task tasks;
    int count;       /* of programs */
    int *task_order; /* scratch of plan_epoch */
    int batch_count;
    int *first; /* batch_count + 1 */
    int *programs;
} course;

static course make_course(const tl_cost_samples *samples, tl_arena *arena)
{
    course c = { .samples = samples, .tasks = sort_by_task(samples, arena) };
    c.count = c.tasks.first[c.tasks.task_count];
    c.task_order = TL_NEW_ARRAY(arena, int, c.tasks.task_count);
    c.first = TL_NEW_ARRAY(arena, int, c.count + 2);
    c.programs = TL_NEW_ARRAY(arena, int, c.count);
    return c;
}

static void shuffle(int *items, int count, tl_random *random)
{
    for (int i = count - 1; i > 0; i--) {
        const int j = (int)tl_random_below(random, i + 1), kept = items[i];
        items[i] = items[j];
        items[j] = kept;
    }
}

/* `random` NULL: in the order of the samples. */
static void plan_epoch(course *c, int batch, tl_random *random)
{
    const by_task *tasks = &c->tasks;
    int *order = c->task_order, count = 0, in_batch = 0;
    c->batch_count = 0;
    for (int t = 0; t < tasks->task_count; t++)
        order[t] = t;
    if (random != NULL)
        shuffle(order, tasks->task_count, random);
    for (int i = 0; i < tasks->task_count; i++) {
        const int *from = tasks->programs + tasks->first[order[i]];
        const int size = tasks->first[order[i] + 1] - tasks->first[order[i]];
        int *to = c->programs + count;
        memcpy(to, from, sizeof *to * (size_t)size);
        if (random != NULL && size > batch)
            shuffle(to, size, random);
        for (int done = 0, piece; done < size; done += piece) {
            piece = size - done < batch ? size - done : batch;
            if (in_batch > 0 && in_batch + piece > batch) {
                c->first[++c->batch_count] = count;
                in_batch = 0;
            }
            in_batch += piece;
            count += piece;
        }
    }
    if (in_batch > 0)
        c->first[++c->batch_count] = count;
}

/* --- the loss of a batch ---------------------------------------------------------------------------------------------- */

typedef struct {
    double rank, absolute;
} loss_weights;

/* A task's mean, beside what it is in truth: quadratic, beyond 1 linear. */
static double absolute_loss(const tl_loss_group *g, double constant, double standard_ns,
                            double weight)
{
    const double off = constant + log(standard_ns);
    double all = 0, measured = 0;
    for (int i = 0; i < g->count; i++)
        all += isfinite(g->label[i]) ? (double)g->weight[i] : 0;
    for (int i = 0; i < g->count; i++)
        measured += isfinite(g->label[i]);
    const double slope = fabs(off) > 1 ? copysign(1, off) : off;
    for (int i = 0; i < g->count && all > 0; i++)
        if (isfinite(g->label[i]))
            g->d_mean[i] -= (float)(weight * measured * slope * (double)g->weight[i] / all);
    return weight * measured * (fabs(off) > 1 ? fabs(off) - 0.5 : 0.5 * off * off);
}

static double group_loss(const tl_cost_network *n, const tl_cost_samples *s, const tl_loss_group *g,
                         int task, const loss_weights *w)
{
    double constant, loss = tl_loss_likelihood(g, &constant);
    if (w->rank > 0)
        loss += tl_loss_rank(g, w->rank * rank, w->rank * even);
    if (w->absolute > 0 && n->has_base && s->standard_ns != NULL && s->standard_ns[task] > 0)
        loss += absolute_loss(g, constant, s->standard_ns[task], w->absolute);
    return loss;
}

/* A sum over the programs; fills d_mean and d_spread. */
static double batch_loss(const tl_cost_network *n, tl_cost_batch *b, const loss_weights *w)
{
    const tl_cost_samples *s = b->samples;
    float *label = tl_scratch_floats(b->scratch, (size_t)b->count);
    float *error = tl_scratch_floats(b->scratch, (size_t)b->count);
    float *weight = tl_scratch_floats(b->scratch, (size_t)b->count);
    double loss = 0;
    for (int i = 0; i < b->count; i++) {
        const int p = b->programs[i];
        label[i] = s->label[p];
        error[i] = s->error != NULL ? s->error[p] : 0;
        weight[i] = s->weight != NULL ? s->weight[p] : 1;
        b->d_mean[i] = b->d_spread[i] = 0;
    }
    for (int from = 0, to; from < b->count; from = to) {
        const int task = s->task[b->programs[from]];
        for (to = from; to < b->count && s->task[b->programs[to]] == task;)
            to++;
        const tl_loss_group group = { to - from,        b->mean + from,    b->spread + from,
                                      label + from,     error + from,      weight + from,
                                      b->d_mean + from, b->d_spread + from };
        loss += group_loss(n, s, &group, task, w);
    }
    return loss;
}

/* Loss of those programs, a sum; `share` above 0: the gradients of so much of it are added. */
static double run_batch(tl_cost_network *n, const tl_cost_samples *s, const int *programs,
                        int count, const loss_weights *w, tl_scratch *scratch, double share)
{
    tl_cost_batch b = { .samples = s, .scratch = scratch, .count = count, .programs = programs };
    tl_scratch_reset(scratch);
    tl_network_gather(n, &b);
    n->net->forward(n, &b);
    const double loss = batch_loss(n, &b, w);
    if (share > 0) {
        for (int i = 0; i < count; i++) {
            b.d_mean[i] *= (float)share;
            b.d_spread[i] *= (float)share;
        }
        n->net->backward(n, &b);
    }
    return loss;
}

static loss_weights weights_of(const tl_train_options *o)
{
    return (loss_weights){ pick(o->rank, 1), pick(o->absolute, absolute) };
}

/* Of all programs, in their order, a program. */
static double course_loss(tl_cost_network *n, course *c, int batch, const tl_train_options *o,
                          tl_scratch *scratch, bool learn)
{
    const loss_weights w = weights_of(o);
    double loss = 0;
    plan_epoch(c, batch, NULL);
    for (int b = 0; b < c->batch_count; b++)
        loss += run_batch(n, c->samples, c->programs + c->first[b], c->first[b + 1] - c->first[b],
                          &w, scratch, learn ? 1.0 / c->count : 0);
    return c->count > 0 ? loss / c->count : 0;
}

double tl_network_loss(tl_cost_network *n, const tl_cost_samples *s, const tl_train_options *o,
                       tl_scratch *scratch)
{
    course c = make_course(s, scratch->arena);
    return course_loss(n, &c, MOST_BATCH, o, scratch, true);
}

/* --- training --------------------------------------------------------------------------------------------------------- */

typedef struct {
    tl_cost_network *n;
    course learned, held_out;
    bool holds_out;
    const tl_train_options *o;
    bool adapting;
    int epochs, batch, patience;
    double rate, decay, clip;
    tl_arena *arena;
    tl_scratch scratch;
    tl_network_state state;
    uint64_t lesson;
    int64_t kept_ns; /* when the last checkpoint was written */
} training;

static double rate_at(const training *t, int batches)
{
    const double all = (double)t->epochs * batches, done = (double)t->state.step / fmax(all, 1);
    if (done < warm_up)
        return t->rate * (double)(t->state.step + 1) / fmax(warm_up * all, 1);
    const double part = (done - warm_up) / (1 - warm_up);
    return t->rate * (last_rate + (1 - last_rate) * 0.5 * (1 + cos(3.14159265358979 * part)));
}

static void tell(const training *t, int batches, double rate)
{
    const tl_network_state *s = &t->state;
    if (t->o->listen != NULL)
        t->o->listen(t->o->user, &(tl_train_progress){ .epoch = s->epoch,
                                                       .epochs = t->epochs,
                                                       .step = s->batch,
                                                       .steps = batches,
                                                       .loss = s->loss,
                                                       .held_out = s->held_out,
                                                       .least = s->least,
                                                       .rate = rate });
}

static void step(training *t)
{
    tl_cost_network *n = t->n;
    tl_network_state *s = &t->state;
    const course *plan = &t->learned;
    const loss_weights w = weights_of(t->o);
    const int first = plan->first[s->batch], count = plan->first[s->batch + 1] - first;
    const double rate = fmin(rate_at(t, plan->batch_count), t->rate);
    tl_weights_forget_gradients(&n->weights);
    s->sum +=
        run_batch(n, plan->samples, plan->programs + first, count, &w, &t->scratch, 1.0 / count);
    s->weight += count;
    tl_weights_clip(&n->weights, t->clip);
    if (t->o->before_step != NULL)
        t->o->before_step(t->o->user, n->parameters, n->parameter_count);
    tl_weights_step(&n->weights, ++s->step, rate, t->decay);
    s->batch++;
    tell(t, plan->batch_count, rate);
}

/* The epoch is over: is it the best so far? */
static void judge_epoch(training *t)
{
    tl_network_state *s = &t->state;
    s->loss = s->weight > 0 ? s->sum / s->weight : 0;
    s->sum = s->weight = 0;
    s->batch = 0;
    s->epoch++;
    const double now = t->holds_out
                           ? course_loss(t->n, &t->held_out, t->batch, t->o, &t->scratch, false)
                           : -(double)s->epoch;
    s->held_out = t->holds_out ? now : NAN;
    const bool better = now < s->least;
    s->stale = better ? 0 : s->stale + 1;
    if (better) {
        s->least = now;
        memcpy(s->best, t->n->weights.value, sizeof *s->best * t->n->weights.size);
    }
}

static tl_status keep_state(training *t, bool now, tl_diag *diag)
{
    if (t->o->checkpoint == NULL || (!now && tl_clock_ns() - t->kept_ns < checkpoint_ns))
        return TL_OK;
    t->kept_ns = tl_clock_ns();
    return tl_network_save_state(t->n, &t->state, t->lesson, t->o->checkpoint, diag);
}

static tl_status run_epoch(training *t, tl_diag *diag)
{
    tl_random random =
        tl_random_make(t->n->model.seed + 0x9e3779b97f4a7c15U * (uint64_t)(t->state.epoch + 1));
    tl_status status = TL_OK;
    plan_epoch(&t->learned, t->batch, &random);
    while (status == TL_OK && t->state.batch < t->learned.batch_count) {
        step(t);
        const bool stop = t->o->stop != NULL && *t->o->stop != 0;
        status = keep_state(t, stop, diag);
        if (status == TL_OK && stop)
            status = tl_fail(diag, TL_INTERRUPTED, "interrupted");
    }
    return status;
}

static tl_status run_epochs(training *t, tl_diag *diag)
{
    tl_network_state *s = &t->state;
    while (s->epoch < t->epochs && s->stale < t->patience) {
        TL_TRY(run_epoch(t, diag));
        judge_epoch(t);
        tell(t, 0, 0);
        TL_TRY(keep_state(t, true, diag));
    }
    memcpy(t->n->weights.value, s->best, sizeof *s->best * t->n->weights.size);
    t->n->held_out = t->holds_out ? s->least : NAN;
    t->n->trained_on = t->learned.count;
    return s->least < INFINITY && tl_weights_are_numbers(&t->n->weights)
               ? TL_OK
               : tl_fail(diag, TL_BAD_ARGUMENT,
                         "training came to weights that are no numbers: take a smaller rate");
}

static tl_status start(training *t, tl_diag *diag)
{
    tl_cost_network *n = t->n;
    tl_random random = tl_random_make(n->model.seed);
    bool found = false;
    if (t->learned.count == 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "the samples have no labels to learn from");
    t->state.best = TL_NEW_ARRAY(t->arena, float, n->weights.size);
    if (!t->adapting) {
        tl_weights_draw(&n->weights, &random);
        tl_network_fit_inputs(n, t->learned.samples);
    }
    if (!tl_weights_allocate_moments(&n->weights))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    if (t->o->checkpoint != NULL) {
        t->lesson = tl_network_lesson(n, t->learned.samples, t->o);
        TL_TRY(tl_network_load_state(n, &t->state, t->lesson, t->o->checkpoint, &found, diag));
    }
    if (!found)
        t->state = (tl_network_state){ .best = t->state.best, .held_out = NAN, .least = INFINITY };
    t->kept_ns = tl_clock_ns();
    return TL_OK;
}

tl_status tl_network_train(tl_cost_network *n, const tl_cost_samples *samples,
                           const tl_cost_samples *held_out, const tl_train_options *o,
                           bool adapting, tl_diag *diag)
{
    training t = {
        .n = n,
        .o = o,
        .adapting = adapting,
        .epochs = o->epochs > 0 ? o->epochs
                  : adapting    ? ADAPT_EPOCHS
                                : EPOCHS,
        .batch = o->batch > MOST_BATCH ? MOST_BATCH
                 : o->batch > 0        ? o->batch
                                       : BATCH,
        .patience = o->patience > 0 ? o->patience : PATIENCE,
        .rate = pick(o->rate, n->net->rate * (adapting ? adapt_rate : 1)),
        .decay = pick(o->decay, decay),
        .clip = o->clip > 0 ? o->clip : clip,
        .arena = tl_arena_create(0),
    };
    if (t.arena == NULL || TL_ARENA_GUARD(t.arena)) {
        tl_arena_destroy(t.arena);
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    }
    t.scratch.arena = t.arena;
    t.learned = make_course(samples, t.arena);
    if (held_out != NULL)
        t.held_out = make_course(held_out, t.arena);
    t.holds_out = t.held_out.count > 0;
    tl_status status = start(&t, diag);
    if (status == TL_OK)
        status = run_epochs(&t, diag);
    tl_arena_destroy(t.arena);
    return status;
}
