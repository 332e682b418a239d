/* tuner/run/tune_result.c: what becomes of a result: a record in the store, a best time, news. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "ir/program/machine.h"
#include "tuner/run/tune_private.h"

static int64_t wall_clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void tl_tuning_record(const tl_tuning *t, const tl_tuning_slot *slot, const tl_proposal *proposal,
                      const tl_result *result, tl_record *out)
{
    const tl_tune_options *o = &t->options;
    tl_result_to_record(slot->spec->measure, &proposal->candidate, result, out);
    out->class_key = slot->spec->workload->class_key;
    out->family = slot->spec->workload->family;
    out->target = t->fingerprint;
    out->numerics = o->numerics;
    out->threads = o->threads;
    out->environment = o->environment;
    out->session = o->session;
    out->sequence = t->sequence;
    out->created_us = wall_clock_us();
    out->origin = proposal->origin != NULL ? proposal->origin : "";
    out->machine = o->profile != NULL ? o->profile->digest : "";
    out->space = tl_space_infos[o->space].revision;
    if (!*out->program) /* it was never built: the policy knows what it would have been */
        out->program = proposal->program;
}

void tl_tuning_tell(tl_tuning *t, const tl_tune_event *event)
{
    if (t->options.listen != NULL)
        t->options.listen(t->options.user, t, event);
}

void tl_tuning_fail_task(tl_tuning *t, tl_tuning_slot *slot, const char *reason)
{
    slot->shown.life = TL_TASK_FAILED;
    snprintf(slot->shown.reason, sizeof slot->shown.reason, "%.255s", reason);
    tl_task_scheduler_retire(t->scheduler, (int)(slot - t->slots));
    tl_tuning_tell(t,
                   &(tl_tune_event){ TL_TUNE_RETIRED, (int)(slot - t->slots), NULL, NULL, false });
}

/* The measurer crowns what won a second series; a time that is better by chance is not enough. */
static bool is_best(const tl_tuned *shown, const tl_result *r)
{
    if (r->status != TL_RECORD_OK || r->hopeless || r->score_ns <= 0)
        return false;
    return shown->best == NULL || (r->score_ns < shown->best_ns && r->crowned);
}

void tl_tuning_take(tl_tuning *t, tl_batch *batch, const tl_result *result)
{
    tl_tuning_slot *slot = &t->slots[batch->task];
    tl_tuned *shown = &slot->shown;
    const tl_proposal *proposal = &batch->proposals[batch->done];
    tl_tune_event event = { TL_TUNE_TRIAL, batch->task, proposal, result, false };
    tl_record record;
    batch->results[batch->done] = *result;
    t->sequence++;
    tl_tuning_record(t, slot, proposal, result, &record);
    tl_record_seal(&record);
    if (t->options.store != NULL) {
        tl_server_begin(t->server);
        tl_records_add(t->options.store, &record, NULL); /* what cannot be written waits */
        tl_server_end(t->server);
        t->totals.unwritten = tl_records_pending(t->options.store, NULL);
    }
    shown->trials++;
    shown->ok += result->status == TL_RECORD_OK;
    t->totals.trials++;
    t->totals.ok += result->status == TL_RECORD_OK;
    t->totals.failed += result->status != TL_RECORD_OK;
    t->totals.by_status[result->status]++;
    if (batch->is_start && batch->done == 0 && result->status == TL_RECORD_OK)
        shown->untuned_ns = result->score_ns;
    if (result->status != TL_RECORD_OK)
        snprintf(shown->reason, sizeof shown->reason, "%.255s", result->reason);
    bool is_checked =
        t->options.checks_only && result->status == TL_RECORD_OK && shown->best == NULL;
    if (is_checked || is_best(shown, result)) {
        tl_record_copy(slot->arena, &record, &slot->best);
        shown->best = &slot->best;
        shown->best_ns = result->score_ns;
        event.is_best = true;
    }
    batch->done++;
    tl_tuning_tell(t, &event);
}
