/* tuner/run/tune.c: a run of the tuner: keeps the measurer busy, hands results on, ends in time. */
#include "tuner/run/tune.h"
#include <stdlib.h>
#include <string.h>
#include "runtime/base/text.h"
#include "tuner/run/environment.h"
#include "tuner/run/remember_task.h"
#include "tuner/run/tune_private.h"

enum {
    USUAL_BATCH = 16,
    AHEAD = 8,       /* with so few candidates in flight the next batch is submitted */
    HOPELESS_AT = 3, /* rounds without one right candidate */
};
enum { LOCK_PATIENCE_MS = 100 }; /* records can wait in memory, workers and people cannot */
#define TICK_S         0.1
#define JUMP_NS        ((int64_t)300 * 1000000000) /* a step of the clock that is no waiting any more */
#define JUMP_COUNTS_NS 20000000 /* about a trial: a clock that always jumps ends a run, too */

/* ---- making and ending ---- */

static tl_status check(const tl_tune_options *o, const tl_tune_task *tasks, int count,
                       tl_diag *diag)
{
    if (o->policy == NULL || o->measurer == NULL || o->target == NULL || o->numerics == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "a run of the tuner needs a policy, a measurer, a "
                       "target and the name of its numerics");
    if (count < 1 || count > TL_MAX_SCHEDULED_TASKS)
        return tl_fail(diag, TL_BAD_ARGUMENT, "a run of the tuner has 1 to %d tasks, not %d",
                       TL_MAX_SCHEDULED_TASKS, count);
    if (!(o->budget_s >= 0) || o->trials < 0 || o->trials_per_task < 0 || o->batch < 0)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "a budget is not negative: %g s, %lld trials, %lld trials a task, batches "
                       "of %d",
                       o->budget_s, (long long)o->trials, (long long)o->trials_per_task, o->batch);
    for (int i = 0; i < count; i++)
        if (tasks[i].untuned < 0 || tasks[i].untuned >= tasks[i].measure->lowering_count ||
            !(tasks[i].weight > 0))
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "task %s: lowering %d of %d, weight %g: a weight is positive",
                           tasks[i].measure->name, tasks[i].untuned,
                           tasks[i].measure->lowering_count, tasks[i].weight);
    return TL_OK;
}

static double size_of(const tl_tune_task *task)
{
    const tl_workload_info *w = task->workload;
    return task->weight * (double)(w->flops > w->bytes ? w->flops : w->bytes);
}

/* The starts of large tasks come first: a budget that ends early ends among the small ones. */
static const int *order_starts(const tl_tuning *t, const tl_tune_task *tasks, int count)
{
    int *order = TL_NEW_ARRAY(t->arena, int, count);
    for (int i = 0; i < count; i++) {
        int at = i;
        for (; !t->options.starts_in_order && at > 0 &&
               size_of(&tasks[order[at - 1]]) < size_of(&tasks[i]);
             at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return order;
}

static int batch_size(const tl_tune_options *o, int tasks)
{
    int batch = o->batch > 0 ? o->batch : o->policy->batch > 0 ? o->policy->batch : USUAL_BATCH;
    int64_t share = o->trials > 0 ? o->trials / tasks : batch;
    if (share < 1)
        share = 1;
    return share < batch ? (int)share : batch;
}

static tl_status set_up(tl_tuning *t, const tl_tune_task *tasks, tl_diag *diag)
{
    tl_scheduled_task *scheduled = TL_NEW_ARRAY(t->arena, tl_scheduled_task, t->count);
    t->slots = TL_NEW_ARRAY(t->arena, tl_tuning_slot, t->count);
    t->order = order_starts(t, tasks, t->count);
    for (int i = 0; i < t->count; i++) {
        tl_tuning_slot *slot = &t->slots[i];
        slot->spec = slot->shown.task = &tasks[i];
        slot->arena = t->arena;
        scheduled[i] = (tl_scheduled_task){ .weight = tasks[i].weight,
                                            .flops = (double)tasks[i].workload->flops,
                                            .operators = tasks[i].workload->family };
        t->totals.flops += tasks[i].weight * (double)tasks[i].workload->flops;
        TL_TRY(tl_measurer_add_task(t->options.measurer, tasks[i].measure, &slot->number, diag));
    }
    t->scheduler = tl_task_scheduler_create(t->arena, scheduled, t->count, t->options.seed);
    return TL_OK;
}

tl_status tl_tuning_create(const tl_tune_options *options, const tl_tune_task *tasks, int count,
                           tl_tuning **out, tl_diag *diag)
{
    *out = NULL;
    TL_TRY(check(options, tasks, count, diag));
    tl_arena *arena = tl_arena_create(0);
    tl_tuning *t = calloc(1, sizeof *t);
    if (arena == NULL || t == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        free(t);
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    }
    t->arena = arena;
    t->options = *options;
    t->count = count;
    t->last = &t->first;
    t->batch = batch_size(options, count);
    t->options.threads = options->threads > 0 ? options->threads : 1;
    t->options.session = options->session != NULL ? options->session : "";
    tl_target_fingerprint(options->target, t->options.threads, t->fingerprint);
    tl_status status = set_up(t, tasks, diag);
    if (status != TL_OK) {
        tl_tuning_destroy(t);
        return status;
    }
    *out = t;
    return TL_OK;
}

static void free_batch(tl_batch *batch)
{
    tl_arena_destroy(batch->arena);
    free(batch);
}

static void drop_batches(tl_tuning *t)
{
    while (t->first != NULL) {
        tl_batch *batch = t->first;
        t->first = batch->next;
        free_batch(batch);
    }
    t->last = &t->first;
    t->in_flight = 0;
}

void tl_tuning_destroy(tl_tuning *t)
{
    if (t == NULL)
        return;
    tl_server_destroy(t->server);
    drop_batches(t);
    for (int i = 0; i < t->count && t->slots != NULL; i++)
        if (t->slots[i].policy != NULL)
            t->slots[i].policy->type->destroy(t->slots[i].policy);
    tl_arena_destroy(t->arena);
    free(t);
}

int tl_tuning_count(const tl_tuning *t)
{
    return t->count;
}

const tl_tuned *tl_tuning_task(const tl_tuning *t, int index)
{
    return &t->slots[index].shown;
}

void tl_tuning_totals(const tl_tuning *t, tl_tune_totals *out)
{
    *out = t->totals;
    out->elapsed_s = (double)t->elapsed_ns * 1e-9;
    out->left_s = t->options.budget_s > 0 ? t->options.budget_s - out->elapsed_s : -1;
    if (t->options.budget_s > 0 && out->left_s < 0)
        out->left_s = 0;
    out->search_s = t->search_ns * 1e-9;
    out->all_rest = true;
    for (int i = 0; i < t->count; i++) {
        const tl_tuned *shown = &t->slots[i].shown;
        out->all_rest &= shown->life != TL_TASK_OPEN;
        if (shown->untuned_ns <= 0 || shown->best_ns <= 0) {
            out->missing++;
            continue;
        }
        out->untuned_ns += shown->task->weight * shown->untuned_ns;
        out->best_ns += shown->task->weight * shown->best_ns;
    }
}

/* ---- time ---- */

static void look(tl_tuning *t)
{
    int64_t now = tl_measurer_clock(t->options.measurer), step = now - t->clock_ns;
    t->clock_ns = now;
    t->elapsed_ns += step >= 0 && step < JUMP_NS ? step : JUMP_COUNTS_NS;
}

static bool is_over(tl_tuning *t)
{
    const tl_tune_options *o = &t->options;
    t->totals.stopped = o->stop != NULL && *o->stop != 0;
    return t->totals.stopped || (o->budget_s > 0 && (double)t->elapsed_ns >= o->budget_s * 1e9);
}

/* ---- batches ---- */

static tl_batch *new_batch(tl_tuning *t, int task)
{
    tl_batch *batch = calloc(1, sizeof *batch);
    tl_arena *arena = batch == NULL ? NULL : tl_arena_create(0);
    if (arena == NULL) {
        free(batch);
        return NULL;
    }
    batch->arena = arena;
    batch->task = task;
    *t->last = batch;
    t->last = &batch->next;
    return batch;
}

/* Takes the newest batch, which was not submitted, off again. */
static void undo_batch(tl_tuning *t, tl_batch *batch)
{
    tl_batch **link = &t->first;
    while (*link != batch)
        link = &(*link)->next;
    *link = NULL;
    t->last = link;
    free_batch(batch);
}

static tl_status ask_policy(tl_tuning *t, tl_batch *batch, int count, tl_diag *diag)
{
    tl_policy *policy = t->slots[batch->task].policy;
    if (TL_ARENA_GUARD(batch->arena))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    batch->proposals = TL_NEW_ARRAY(batch->arena, tl_proposal, count);
    int64_t start = tl_tuning_begin_thinking(t);
    tl_status status =
        policy->type->propose(policy, batch->arena, count, batch->proposals, &batch->count, diag);
    tl_tuning_end_thinking(t, start);
    return status;
}

static tl_status ask_start(tl_tuning *t, tl_batch *batch, tl_diag *diag)
{
    if (TL_ARENA_GUARD(batch->arena))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    return tl_tuning_make_start(t, &t->slots[batch->task], batch, diag);
}

static tl_status submit(tl_tuning *t, tl_batch *batch, tl_diag *diag)
{
    tl_tuning_slot *slot = &t->slots[batch->task];
    if (TL_ARENA_GUARD(batch->arena))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    batch->results = TL_NEW_ARRAY(batch->arena, tl_result, batch->count);
    for (int i = 0; i < batch->count; i++) {
        tl_candidate *c = &batch->proposals[i].candidate;
        c->cold = t->options.cold;
        TL_TRY(tl_measurer_submit(t->options.measurer, slot->number, c, 1, NULL, diag));
        t->in_flight++;
        t->submitted++;
        slot->submitted++;
        slot->in_flight++;
    }
    return TL_OK;
}

static void end_task(tl_tuning *t, int number, tl_task_life life)
{
    t->slots[number].shown.life = life;
    tl_tuning_tell(t, &(tl_tune_event){ TL_TUNE_RETIRED, number, NULL, NULL, false });
}

/* The start of the next task. A task whose default schedule cannot even be made has failed; the others go on. */
static tl_status submit_start(tl_tuning *t, tl_diag *diag)
{
    int number = t->order[t->started++];
    tl_tuning_slot *slot = &t->slots[number];
    tl_diag why = { 0 };
    tl_batch *batch = new_batch(t, number);
    if (batch == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    if (t->options.store != NULL)
        tl_remember_task(t->options.store, slot->spec, t->options.profile);
    tl_status status = ask_start(t, batch, &why);
    if (t->options.trials > 0 && t->options.trials - t->submitted < batch->count)
        batch->count = (int)(t->options.trials - t->submitted);
    if (status == TL_OK && batch->count > 0)
        return submit(t, batch, diag);
    undo_batch(t, batch);
    if (status != TL_OK)
        tl_tuning_fail_task(t, slot, why.text);
    else /* nothing was transferred, or no trial is left */
        end_task(t, number, TL_TASK_EXHAUSTED);
    return TL_OK;
}

static int trials_left(const tl_tuning *t, const tl_tuning_slot *slot)
{
    int64_t left = t->batch, most = t->options.trials, most_of_task = t->options.trials_per_task;
    if (most > 0 && most - t->submitted < left)
        left = most - t->submitted;
    if (slot != NULL && most_of_task > 0 && most_of_task - slot->submitted < left)
        left = most_of_task - slot->submitted;
    return left > 0 ? (int)left : 0;
}

/* A batch of the task that the scheduler chooses; *idle: there is none for now. */
static tl_status submit_next(tl_tuning *t, bool *idle, tl_diag *diag)
{
    int number = tl_task_scheduler_next(t->scheduler);
    *idle = number < 0;
    if (number < 0)
        return TL_OK;
    tl_tuning_slot *slot = &t->slots[number];
    tl_diag why = { 0 };
    int count = trials_left(t, slot);
    if (count == 0) {
        tl_task_scheduler_retire(t->scheduler, number);
        end_task(t, number, TL_TASK_EXHAUSTED);
        return TL_OK;
    }
    tl_batch *batch = new_batch(t, number);
    if (batch == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    tl_status status = ask_policy(t, batch, count, &why);
    if (status == TL_OK && batch->count > 0)
        return submit(t, batch, diag);
    undo_batch(t, batch);
    if (status != TL_OK) {
        tl_tuning_fail_task(t, slot, why.text);
        return TL_OK;
    }
    tl_task_scheduler_defer(t->scheduler, number);
    if (slot->in_flight == 0)
        end_task(t, number, TL_TASK_EXHAUSTED);
    return TL_OK;
}

/* Tasks that rest are woken when there is a budget to be used and nothing else to do. */
static bool wake(tl_tuning *t)
{
    const tl_tune_options *o = &t->options;
    bool any = false, has_budget = !o->ends_at_rest &&
                                   (o->budget_s > 0 || o->trials > 0 || o->trials_per_task > 0);
    for (int i = 0; i < t->count && has_budget; i++)
        if (t->slots[i].shown.life == TL_TASK_RESTING) {
            t->slots[i].shown.life = TL_TASK_OPEN;
            any = true;
        }
    if (any)
        tl_task_scheduler_wake(t->scheduler);
    return any;
}

static tl_status fill(tl_tuning *t, tl_diag *diag)
{
    bool idle = false;
    while (t->in_flight < AHEAD && !idle && trials_left(t, NULL) > 0) {
        if (t->started < t->count) {
            TL_TRY(submit_start(t, diag));
            continue;
        }
        TL_TRY(submit_next(t, &idle, diag));
        if (idle && t->in_flight == 0 && wake(t))
            idle = false;
    }
    return TL_OK;
}

/* What the scheduler is told of a task of which nothing is right yet: a slow guess, one flop a nanosecond. */
static double time_of(const tl_tuning_slot *slot)
{
    double guess = (double)slot->spec->workload->flops + (double)slot->spec->workload->bytes;
    return slot->shown.best != NULL ? slot->shown.best_ns : guess + 1;
}

static void end_start(tl_tuning *t, tl_batch *batch)
{
    tl_tuning_slot *slot = &t->slots[batch->task];
    tl_diag why = { 0 };
    if (slot->shown.best == NULL && batch->results[0].status == TL_RECORD_WORKER) {
        tl_tuning_fail_task(t, slot, batch->results[0].reason);
        return;
    }
    if (t->options.starts_only) {
        end_task(t, batch->task, TL_TASK_EXHAUSTED);
        return;
    }
    tl_status status = tl_tuning_end_start(t, slot, batch, &why);
    if (status != TL_OK) {
        tl_tuning_fail_task(t, slot, why.text);
        return;
    }
    tl_task_scheduler_open(t->scheduler, batch->task, time_of(slot));
}

static void end_round(tl_tuning *t, tl_batch *batch)
{
    tl_tuning_slot *slot = &t->slots[batch->task];
    tl_diag why = { 0 };
    int64_t start = tl_tuning_begin_thinking(t);
    tl_status status = slot->policy->type->learn(slot->policy, batch->proposals, batch->results,
                                                 batch->count, &why);
    tl_tuning_end_thinking(t, start);
    slot->shown.rounds++;
    bool rests = tl_task_scheduler_finish(t->scheduler, batch->task, time_of(slot));
    if (status != TL_OK && slot->shown.life == TL_TASK_OPEN)
        tl_tuning_fail_task(t, slot, why.text);
    else if (slot->shown.best == NULL && slot->shown.rounds >= HOPELESS_AT &&
             slot->shown.life == TL_TASK_OPEN)
        tl_tuning_fail_task(t, slot, slot->shown.reason);
    else if (rests)
        end_task(t, batch->task, TL_TASK_RESTING);
    tl_tuning_tell(t, &(tl_tune_event){ TL_TUNE_ROUND, batch->task, NULL, NULL, false });
}

/* What records say of the machine, where the caller does not: anew when a witness saw it do clearly better, for the first
 * look may have met it busy. */
static void describe_environment(tl_tuning *t)
{
    tl_text text = { 0 };
    tl_measure_stats stats;
    if (t->options.environment != NULL && !t->describes)
        return;
    tl_measurer_stats(t->options.measurer, &stats);
    if (t->describes && stats.peak_gflops <= 1.02 * t->described_gflops)
        return;
    tl_environment_text(&stats, &text);
    t->options.environment = tl_arena_strdup(t->arena, tl_text_get(&text));
    t->describes = true;
    t->described_gflops = stats.peak_gflops;
    tl_text_free(&text);
}

static tl_status take(tl_tuning *t, const tl_result *result, tl_diag *diag)
{
    tl_batch *batch = t->first;
    if (batch == NULL || result->task != t->slots[batch->task].number)
        return tl_fail(diag, TL_INTERNAL, "a result of task %d came, which nobody asked for",
                       result->task);
    describe_environment(t);
    t->in_flight--;
    t->slots[batch->task].in_flight--;
    tl_tuning_take(t, batch, result);
    if (batch->done < batch->count)
        return TL_OK;
    if (batch->is_start)
        end_start(t, batch);
    else
        end_round(t, batch);
    t->first = batch->next;
    if (t->first == NULL)
        t->last = &t->first;
    free_batch(batch);
    return TL_OK;
}

static tl_status drive(tl_tuning *t, tl_diag *diag)
{
    static const tl_tune_event tick = { TL_TUNE_TICK, -1, NULL, NULL, false };
    tl_result result;
    for (look(t); !is_over(t); look(t)) {
        TL_TRY(fill(t, diag));
        if (t->in_flight == 0)
            return TL_OK;
        tl_diag why = { 0 };
        tl_status status = tl_measurer_next(t->options.measurer, TICK_S, &result, &why);
        if (status == TL_OK) {
            TL_TRY(take(t, &result, diag));
        } else if (status == TL_INTERRUPTED) {
            return TL_OK; /* a recording ends here: so did its run */
        } else if (status != TL_BUDGET || tl_measurer_queued(t->options.measurer) == 0) {
            return tl_fail(diag, status == TL_BUDGET ? TL_INTERNAL : status, "%s", why.text);
        } else {
            look(t);
            tl_tuning_tell(t, &tick);
        }
    }
    return TL_OK;
}

static tl_status run(tl_tuning *t, tl_diag *diag)
{
    if (TL_ARENA_GUARD(t->arena))
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    return drive(t, diag);
}

tl_status tl_tuning_run(tl_tuning *t, tl_diag *diag)
{
    t->clock_ns = tl_measurer_clock(t->options.measurer);
    if (t->options.store != NULL)
        tl_records_set_patience(t->options.store, LOCK_PATIENCE_MS);
    t->server = tl_server_create(t->options.measurer);
    tl_status status = run(t, diag);
    tl_server_destroy(t->server);
    t->server = NULL;
    tl_measurer_forget(t->options.measurer, -1);
    drop_batches(t);
    if (t->options.store != NULL)
        t->totals.unwritten = tl_records_flush(t->options.store);
    if (status != TL_OK)
        return status;
    bool any =
        t->totals.stopped || t->options.checks_only; /* then the default schedules are right */
    for (int i = 0; i < t->count; i++)
        any |= t->slots[i].shown.best != NULL;
    return any ? TL_OK
               : tl_fail(diag, TL_BUDGET, "no valid schedule was found: %s",
                         *t->slots[t->order[0]].shown.reason ? t->slots[t->order[0]].shown.reason
                                                             : "the budget ended before");
}
