/* tuner/search/explorer.c: what all policies do alike: defaults first, nothing twice but appeals, results kept. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"
#include "runtime/base/array.h"
#include "tuner/search/policy_private.h"

/* Of the records, so many of the best become entries at the start. */
enum { MOST_SEEDS = 256 };
/* Features kept from batch to batch, beside those of what was measured. */
enum { MOST_ROW_BYTES = 8 << 20 };

/* --- what was known before ------------------------------------------------------------------------------------------ */

/* Whether the record's time is one of this machine and this code generator. */
static bool counts_here(const tl_explorer *x, const tl_record *record)
{
    char fingerprint[160];
    tl_target_fingerprint(x->search.target, record->threads, fingerprint);
    return record->revision == TL_CODEGEN_REVISION && strcmp(record->target, fingerprint) == 0;
}

static void compare_with_best(tl_explorer *x, int entry)
{
    const tl_entry *e = tl_catalog_at(x->catalog, entry);
    if (x->best == TL_NO_ENTRY || e->score_ns < tl_catalog_at(x->catalog, x->best)->score_ns)
        x->best = entry;
}

static void add_measured(tl_explorer *x, int entry)
{
    assert(entry >= 0 && entry < tl_catalog_count(x->catalog));
    if (!TL_HEAP_ROOM(x->measured, x->measured_count, x->measured_capacity)) {
        x->failed = true;
        return;
    }
    x->measured[x->measured_count++] = entry;
    if (tl_catalog_at(x->catalog, entry)->state != TL_ENTRY_RIGHT)
        return;
    x->right_count++;
    compare_with_best(x, entry);
}

static int by_score(const void *a, const void *b)
{
    const tl_record *x = *(const tl_record *const *)a, *y = *(const tl_record *const *)b;
    double s = x->status == TL_RECORD_OK ? x->score_ns : 1e300;
    double t = y->status == TL_RECORD_OK ? y->score_ns : 1e300;
    return s != t ? (s < t ? -1 : 1) : strcmp(x->uid, y->uid);
}

static int entry_of_record(tl_explorer *x, const tl_record *record, tl_arena *arena)
{
    int lowering, count;
    tl_wish *wishes;
    if (!tl_point_read(x->search.space, arena, record->trace, &lowering, &wishes, &count))
        return TL_NO_ENTRY;
    return tl_catalog_build(x->catalog, lowering, wishes, count);
}

/* Records that count are results; the others' points are tried early, the best first. */
static void read_records(tl_explorer *x)
{
    int count = x->search.known_count;
    const tl_record **sorted = TL_NEW_ARRAY(x->arena, const tl_record *, count);
    for (int i = 0; i < count; i++) {
        const tl_record *r = sorted[i] = &x->search.known[i];
        if (r->program[0] == '\0' || !counts_here(x, r) || tl_record_status_infos[r->status].again)
            continue;
        tl_catalog_know(x->catalog, strtoull(r->program, NULL, 16),
                        r->status == TL_RECORD_OK ? TL_ENTRY_RIGHT : TL_ENTRY_WRONG, r->score_ns);
    }
    qsort(sorted, (size_t)count, sizeof *sorted, by_score);
    x->seeds = TL_NEW_ARRAY(x->arena, int, MOST_SEEDS);
    for (int i = 0; i < count && i < MOST_SEEDS; i++) {
        int entry = entry_of_record(x, sorted[i], x->arena);
        if (entry == TL_NO_ENTRY)
            continue;
        tl_entry *e = tl_catalog_at(x->catalog, entry);
        if (e->state == TL_ENTRY_NEW && sorted[i]->status == TL_RECORD_OK)
            x->seeds[x->seed_count++] = entry;
        else if (e->state != TL_ENTRY_NEW && !e->recorded)
            add_measured(x, entry);
        e->recorded = true;
    }
}

/* --- making and ending ------------------------------------------------------------------------------------------------ */

tl_status tl_explorer_create(const tl_search *search, const tl_policy_type *type,
                             const tl_method *method, tl_policy **out, tl_diag *diag)
{
    tl_explorer *x = calloc(1, sizeof *x);
    if (x == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    x->policy.type = type;
    x->search = *search;
    x->method = method;
    x->model = search->model;
    x->random = tl_random_make(search->seed);
    x->best = TL_NO_ENTRY;
    x->arena = tl_arena_create(0);
    x->catalog = tl_catalog_create(search->space, x->model != NULL || method->model != NULL ||
                                                      search->expert_count > 0);
    if (x->arena == NULL || x->catalog == NULL || TL_ARENA_GUARD(x->arena)) {
        tl_explorer_destroy(&x->policy);
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    }
    tl_status status = TL_OK;
    if (x->model == NULL && method->model != NULL)
        status = tl_cost_model_create(method->model, NULL, search->seed, &x->model, diag);
    if (status != TL_OK) {
        tl_explorer_destroy(&x->policy);
        return status;
    }
    tl_experts_begin(x);
    read_records(x);
    *out = &x->policy;
    return TL_OK;
}

void tl_explorer_destroy(tl_policy *policy)
{
    tl_explorer *x = (tl_explorer *)policy;
    if (x == NULL)
        return;
    if (x->model != NULL && x->model != x->search.model)
        tl_cost_model_destroy(x->model);
    tl_surrogate_destroy(x->surrogate);
    tl_surrogate_destroy(x->informed);
    tl_catalog_destroy(x->catalog);
    tl_arena_destroy(x->arena);
    free(x->measured);
    free(x->choices);
    free(x);
}

/* --- choosing --------------------------------------------------------------------------------------------------------- */

bool tl_explorer_is_new(const tl_explorer *x, int entry)
{
    return entry != TL_NO_ENTRY && tl_catalog_at(x->catalog, entry)->state == TL_ENTRY_NEW;
}

static bool add_choice(tl_explorer *x, int entry, double prediction, const char *origin)
{
    if (x->choice_count == x->choice_capacity)
        return false;
    x->choices[x->choice_count++] = (tl_taken){ entry, prediction, origin };
    return true;
}

bool tl_explorer_take(tl_explorer *x, int entry, double prediction, const char *origin)
{
    if (!tl_explorer_is_new(x, entry) || !add_choice(x, entry, prediction, origin))
        return false;
    tl_catalog_at(x->catalog, entry)->state = TL_ENTRY_PROPOSED;
    return true;
}

bool tl_explorer_take_again(tl_explorer *x, int entry, double prediction, const char *origin)
{
    return tl_catalog_at(x->catalog, entry)->state == TL_ENTRY_RIGHT &&
           add_choice(x, entry, prediction, origin);
}

void tl_plan_add(tl_search_plan *plan, int entry, double prediction, const char *origin)
{
    if (plan->count < TL_MOST_PLANNED)
        plan->choices[plan->count++] = (tl_taken){ entry, prediction, origin };
}

int tl_explorer_take_planned(tl_explorer *x, int count)
{
    int taken = 0;
    for (; taken < count && x->plan.at < x->plan.count; x->plan.at++) {
        const tl_taken *c = &x->plan.choices[x->plan.at];
        taken += tl_explorer_take(x, c->entry, c->prediction, c->origin);
    }
    return taken;
}

/* Random points while at least one in so many is new. */
enum { TRIES = 32 };

int tl_explorer_any(tl_explorer *x)
{
    for (int i = 0; i < TRIES && x->expand_at == 0; i++) {
        int entry = tl_catalog_sample(x->catalog, &x->random);
        if (tl_explorer_is_new(x, entry))
            return entry;
    }
    for (;;) {
        for (int i = 0; i < tl_catalog_count(x->catalog); i++)
            if (tl_explorer_is_new(x, i))
                return i;
        if (x->expand_at >= tl_catalog_count(x->catalog) || tl_catalog_failed(x->catalog))
            return TL_NO_ENTRY;
        tl_catalog_expand(x->catalog, x->expand_at++);
    }
}

int tl_explorer_leaders(const tl_explorer *x, int count, int *out)
{
    int found = 0;
    for (int i = 0; i < x->measured_count; i++) {
        const tl_entry *e = tl_catalog_at(x->catalog, x->measured[i]);
        if (e->state != TL_ENTRY_RIGHT)
            continue;
        int at = found < count ? found++ : count;
        while (at > 0 && tl_catalog_at(x->catalog, out[at - 1])->score_ns > e->score_ns) {
            if (at < count)
                out[at] = out[at - 1];
            at--;
        }
        if (at < count)
            out[at] = x->measured[i];
    }
    return found;
}

static bool reserve_choices(tl_explorer *x, int count)
{
    assert(count >= 0);
    if (count <= x->choice_capacity)
        return true;
    tl_taken *grown = realloc(x->choices, sizeof *grown * (size_t)count);
    if (grown == NULL)
        return false;
    x->choices = grown;
    return true;
}

static void choose_defaults(tl_explorer *x)
{
    for (; x->default_at < x->search.task->lowering_count && x->choice_count < x->choice_capacity;
         x->default_at++)
        tl_explorer_take(x, tl_catalog_build(x->catalog, x->default_at, NULL, 0), 0, "default");
}

static void choose_seeds(tl_explorer *x)
{
    for (; x->seed_at < x->seed_count && x->choice_count < x->choice_capacity; x->seed_at++)
        tl_explorer_take(x, x->seeds[x->seed_at], 0, "record");
}

static void choose(tl_explorer *x, int count)
{
    assert(count >= 0);
    x->choice_count = 0;
    x->choice_capacity = count;
    choose_defaults(x);
    choose_seeds(x);
    tl_explorer_take_appeal(x);
    if (x->choice_count < count)
        x->method->choose(x, count - x->choice_count);
    while (x->choice_count < count) {
        int any = tl_explorer_any(x);
        if (any == TL_NO_ENTRY)
            return;
        tl_explorer_take(x, any, 0, "random");
    }
}

tl_status tl_explorer_propose(tl_policy *policy, tl_arena *arena, int count, tl_proposal *out,
                              int *out_count, tl_diag *diag)
{
    tl_explorer *x = (tl_explorer *)policy;
    *out_count = 0;
    if (count < 1 || !reserve_choices(x, count))
        return count < 1 ? TL_OK : tl_fail(diag, TL_NO_MEMORY, "out of memory");
    choose(x, count);
    tl_catalog_forget(x->catalog, MOST_ROW_BYTES);
    for (int i = 0; i < x->choice_count; i++) {
        const tl_taken *c = &x->choices[i];
        const tl_entry *e = tl_catalog_at(x->catalog, c->entry);
        tl_proposal *p = &out[i];
        *p = (tl_proposal){ .prediction = c->prediction, .origin = c->origin };
        snprintf(p->program, sizeof p->program, "%016" PRIx64, e->program);
        p->candidate.lowering = e->point.lowering;
        TL_TRY(tl_catalog_trace(x->catalog, c->entry, arena, &p->candidate.trace, diag));
    }
    *out_count = x->choice_count;
    return x->failed || tl_catalog_failed(x->catalog) ? tl_fail(diag, TL_NO_MEMORY, "out of memory")
                                                      : TL_OK;
}

static bool is_right(const tl_result *result)
{
    return result->status == TL_RECORD_OK && result->score_ns > 0;
}

static void learn_first(tl_explorer *x, int entry, const tl_result *result)
{
    tl_entry *e = tl_catalog_at(x->catalog, entry);
    e->state = is_right(result) ? TL_ENTRY_RIGHT : TL_ENTRY_WRONG;
    e->score_ns = is_right(result) ? result->score_ns : 0;
    add_measured(x, entry);
}

/* It was right before: a failure is no fault of it, nor does it become slower. */
static void learn_again(tl_explorer *x, int entry, const tl_result *result)
{
    tl_entry *e = tl_catalog_at(x->catalog, entry);
    if (!is_right(result) || result->score_ns >= e->score_ns)
        return;
    e->score_ns = result->score_ns;
    compare_with_best(x, entry);
}

tl_status tl_explorer_learn(tl_policy *policy, const tl_proposal *proposals,
                            const tl_result *results, int count, tl_diag *diag)
{
    tl_explorer *x = (tl_explorer *)policy;
    for (int i = 0; i < count; i++) {
        int entry = tl_catalog_find(x->catalog, strtoull(proposals[i].program, NULL, 16));
        if (entry == TL_NO_ENTRY)
            return tl_fail(diag, TL_BAD_ARGUMENT, "program %s was not proposed",
                           proposals[i].program);
        if (tl_catalog_at(x->catalog, entry)->state == TL_ENTRY_PROPOSED)
            learn_first(x, entry, &results[i]);
        else if (tl_explorer_is_heard_again(x, entry))
            learn_again(x, entry, &results[i]);
        else
            continue; /* its result came before */
        double promise = is_right(&results[i]) ? results[i].promise : 0;
        tl_explorer_note_result(x, entry, promise, results[i].alone);
    }
    return x->failed ? tl_fail(diag, TL_NO_MEMORY, "out of memory") : TL_OK;
}
