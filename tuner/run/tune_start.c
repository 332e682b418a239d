/* tuner/run/tune_start.c: what a task is compared with: its default schedule, and the best of what is known. */
#include <stdio.h>
#include <string.h>
#include "runtime/base/map.h"
#include "tuner/run/tune_private.h"

static int find_lowering(const tl_measure_task *task, const char *name)
{
    for (int i = 0; i < task->lowering_count; i++)
        if (strcmp(task->lowerings[i].name, name) == 0)
            return i;
    return -1;
}

static void add_record(const tl_tuning_slot *slot, tl_batch *batch, const tl_record *record)
{
    int lowering = find_lowering(slot->spec->measure, record->lowering);
    if (lowering < 0 || strcmp(record->program, slot->untuned) == 0)
        return;
    tl_proposal *p = &batch->proposals[batch->count++];
    *p = (tl_proposal){ .origin = "record" };
    p->candidate.lowering = lowering;
    p->candidate.trace = record->trace;
    snprintf(p->program, sizeof p->program, "%s", record->program);
}

static bool is_in_batch(const tl_batch *batch, const char *program)
{
    for (int i = 0; i < batch->count; i++)
        if (strcmp(batch->proposals[i].program, program) == 0)
            return true;
    return false;
}

/* What was transferred and is not measured yet. */
static void add_transfers(const tl_tuning_slot *slot, tl_batch *batch)
{
    for (int i = 0; i < slot->shown.transfer_count; i++) {
        const tl_transferred *from = &slot->shown.transfers[i];
        if (is_in_batch(batch, from->program) || tl_tuning_is_known(slot, from->program))
            continue;
        tl_proposal *p = &batch->proposals[batch->count++];
        *p = (tl_proposal){ .origin = "transfer" };
        p->candidate.lowering = from->lowering;
        p->candidate.trace = from->trace;
        memcpy(p->program, from->program, sizeof p->program);
    }
}

/* Of what was transferred the best guess, which is checked and not timed. */
static void add_check(const tl_tuning_slot *slot, tl_batch *batch)
{
    add_transfers(slot, batch);
    batch->count = batch->count > 0;
    batch->proposals[0].candidate.checks_only = true;
}

static tl_status find_transfers(const tl_tuning *t, tl_tuning_slot *slot, tl_diag *diag)
{
    const tl_workload_info *w = slot->spec->workload;
    if (t->options.transfer == NULL)
        return TL_OK;
    return tl_transfer_to(t->options.transfer, slot->space, w, slot->spec->untuned, slot->arena,
                          &slot->shown.transfers, &slot->shown.transfer_count, diag);
}

tl_status tl_tuning_make_start(tl_tuning *t, tl_tuning_slot *slot, tl_batch *batch, tl_diag *diag)
{
    const int stale_most = (int)(sizeof slot->stale / sizeof *slot->stale);
    tl_variant variant;
    batch->is_start = true;
    TL_TRY(tl_space_create(slot->arena, slot->spec->measure, t->options.target, t->options.threads,
                           t->options.space, &slot->space, diag));
    TL_TRY(find_transfers(t, slot, diag));
    batch->proposals =
        TL_NEW_ARRAY(batch->arena, tl_proposal, 2 + stale_most + slot->shown.transfer_count);
    if (t->options.checks_only) {
        add_check(slot, batch);
        return TL_OK;
    }
    TL_TRY(tl_space_build(slot->space, batch->arena, slot->spec->untuned, NULL, 0, &variant, diag));
    tl_proposal *p = &batch->proposals[batch->count++];
    *p = (tl_proposal){ .origin = "default" };
    p->candidate.lowering = slot->spec->untuned;
    p->candidate.trace = variant.trace;
    snprintf(p->program, sizeof p->program, "%s", variant.hash);
    snprintf(slot->untuned, sizeof slot->untuned, "%s", variant.hash);
    tl_tuning_sort_known(t, slot);
    const tl_record *best = tl_tuning_best_known(slot);
    if (best != NULL)
        add_record(slot, batch, best);
    add_transfers(slot, batch);
    for (int i = 0; i < slot->stale_count && !t->options.starts_only; i++)
        if (!tl_tuning_is_known(slot, slot->stale[i].program))
            add_record(slot, batch, &slot->stale[i]);
    return TL_OK;
}

/* The start's own results join the known. */
static void extend_known(const tl_tuning *t, tl_tuning_slot *slot, const tl_batch *batch)
{
    tl_record *known = TL_NEW_ARRAY(slot->arena, tl_record, slot->known_count + batch->count);
    if (slot->known_count > 0)
        memcpy(known, slot->known, (size_t)slot->known_count * sizeof *known);
    for (int i = 0; i < batch->count; i++) {
        tl_record record;
        if (batch->results[i].status == TL_RECORD_WORKER)
            continue;
        tl_tuning_record(t, slot, &batch->proposals[i], &batch->results[i], &record);
        tl_record_copy(slot->arena, &record, &known[slot->known_count++]);
    }
    slot->known = known;
}

tl_status tl_tuning_end_start(tl_tuning *t, tl_tuning_slot *slot, const tl_batch *batch,
                              tl_diag *diag)
{
    const char *workload = slot->spec->measure->workload;
    if (slot->shown.untuned_ns > 0 && slot->known_count > 0)
        tl_tuning_scale_known(slot, slot->shown.untuned_ns);
    extend_known(t, slot, batch);
    tl_search search = { .task = slot->spec->measure,
                         .space = slot->space,
                         .target = t->options.target,
                         .model = t->options.model,
                         .experts = t->options.experts,
                         .expert_count = t->options.expert_count,
                         .workload = slot->spec->workload,
                         .seed = tl_hash_bytes(workload, strlen(workload), t->options.seed),
                         .known_count = slot->known_count,
                         .known = slot->known };
    int64_t start = tl_tuning_begin_thinking(t);
    tl_status status = t->options.policy->create(&search, &slot->policy, diag);
    tl_tuning_end_thinking(t, start);
    return status;
}
