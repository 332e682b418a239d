/* tuner/dataset/collect.c: the loop that keeps the measurer busy with points of a data set.
 *
 *     task 1: standard, walks and plain points      task 2: the same      trail of task 1      task 3 ...
 *
 * A trail needs the labels of its task, so that it comes one task later: by then they are there, and no worker waited. */
#include "tuner/dataset/collect.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "codegen/codegen.h"
#include "runtime/base/array.h"
#include "runtime/base/clock.h"
#include "tuner/dataset/sample_points.h"
#include "tuner/run/environment.h"
#include "tuner/run/remember_task.h"

enum { AHEAD = 16, MISSES = 24, TRAIL_BATCH = 8 };
#define TICK_S 0.1
static const char trail_policy[] = "auto";

/* A task of which something is in flight, or whose trail is still to come. */
typedef struct {
    tl_arena *arena;
    const tl_tune_task *spec;
    int number; /* the measurer's */
    tl_space *spaces[TL_SPACE_KIND_COUNT];
    tl_map *known; /* programs that were submitted, or are in the store */
    char standard[17];
    int next;           /* point to draw */
    int wanted, trail;  /* records yet to come, without and with a trail */
    int misses;         /* points in a row that were known, or none */
    tl_policy *policy;  /* of the trail */
    tl_record *records; /* that it knows: of this task */
    int record_count, capacity;
    int in_flight;
    bool has_failed;
} subject;

/* A point in flight. */
typedef struct item {
    struct item *next;
    subject *of;
    tl_proposal proposal; /* its trace is heap memory of the item's */
    tl_sampler sampler;
    double probability;
} item;

typedef struct {
    const tl_collect_options *o;
    char fingerprint[160];
    subject *now, *before; /* `before`: its trail comes next */
    int started;
    item *first, **last;
    int in_flight;
    int64_t start_ns, sequence;
    tl_collect_totals totals;
    tl_diag *diag;
    tl_diag unable; /* the first reason why a worker could not measure at all */
} collection;

/* ---- tasks ---- */

typedef struct {
    tl_text programs; /* a line each */
} known_programs;

static bool note_known(void *user, const tl_record *record)
{
    known_programs *k = user;
    /* of searches those do not count of which a turn or two were seen, or none */
    bool is_label = tl_sampler_of(record->origin) != TL_SAMPLER_OTHER;
    tl_space_kind kind;
    size_t mark;
    if (is_label && tl_point_kind(record->trace, &kind, &mark) &&
        record->space == tl_space_infos[kind].revision && strlen(record->program) == 16)
        tl_text_format(&k->programs, "%s\n", record->program);
    return !k->programs.failed;
}

static tl_status look_up_known(const collection *c, subject *s, int64_t *count)
{
    const tl_collect_options *o = c->o;
    const tl_query query = { .workload = s->spec->measure->workload,
                             .target = c->fingerprint,
                             .numerics = o->numerics,
                             .threads = o->threads,
                             .revision = TL_CODEGEN_REVISION,
                             .only_cold = true,
                             .cold = o->cold };
    known_programs k = { 0 };
    tl_status status = tl_records_visit(o->store, &query, note_known, &k, c->diag);
    for (const char *p = tl_text_get(&k.programs); status == TL_OK && *p != '\0'; p += 17)
        tl_map_put(s->known, tl_arena_strndup(s->arena, p, 16), s);
    tl_text_free(&k.programs);
    *count = (int64_t)tl_map_count(s->known);
    return status;
}

static void free_item(item *it)
{
    free((char *)it->proposal.candidate.trace);
    free(it);
}

/* Has the proposal measured. A program that cannot even be submitted ends its task. */
static void submit(collection *c, subject *s, tl_sampler sampler, const tl_proposal *proposal,
                   double probability)
{
    item *it = calloc(1, sizeof *it);
    char *trace = strdup(proposal->candidate.trace);
    int64_t ticket;
    if (it == NULL || trace == NULL) {
        free(it);
        free(trace);
        s->has_failed = true;
        return;
    }
    *it = (item){ .of = s, .proposal = *proposal, .sampler = sampler, .probability = probability };
    tl_candidate *candidate = &it->proposal.candidate;
    candidate->trace = trace;
    candidate->cold = c->o->cold;
    candidate->label = sampler != TL_SAMPLER_DEFAULT;
    if (tl_measurer_submit(c->o->measurer, s->number, candidate, 1, &ticket, NULL) != TL_OK) {
        s->has_failed = true;
        free_item(it);
        return;
    }
    *c->last = it;
    c->last = &it->next;
    s->in_flight++;
    c->in_flight++;
}

/* False: the program was met before. From now on it was. */
static bool is_new(subject *s, const char *program)
{
    if (tl_map_has(s->known, program))
        return false;
    tl_map_put(s->known, program, s);
    return true;
}

static tl_proposal propose(const tl_variant *variant)
{
    tl_proposal p = { .candidate = { .lowering = variant->point.lowering,
                                     .trace = variant->trace } };
    memcpy(p.program, variant->hash, sizeof p.program);
    return p;
}

static void end_subject(subject *s)
{
    if (s == NULL)
        return;
    if (s->policy != NULL)
        s->policy->type->destroy(s->policy);
    tl_arena_destroy(s->arena);
}

static bool make_spaces(subject *s, const tl_collect_options *o)
{
    bool ok = true;
    for (int k = 0; k < TL_SPACE_KIND_COUNT && ok; k++)
        ok = tl_space_create(s->arena, s->spec->measure, o->target, o->threads, (tl_space_kind)k,
                             &s->spaces[k], NULL) == TL_OK;
    return ok;
}

/* Whether there is something to measure of the task, and it can be: then its standard is on its way. */
static tl_status open_task(collection *c, subject *s, tl_arena *scratch, bool *is_open)
{
    const tl_collect_options *o = c->o;
    const tl_measure_task *spec = s->spec->measure;
    int64_t known;
    tl_variant variant;
    *is_open = false;
    s->known = tl_map_create(s->arena);
    TL_TRY(look_up_known(c, s, &known));
    int missing = o->per_task - (int)(known < o->per_task ? known : o->per_task);
    c->totals.known += o->per_task - missing;
    c->totals.tasks_done += missing == 0;
    if (missing == 0 || spec->dim_count > 0 || !make_spaces(s, o) ||
        tl_space_build(s->spaces[TL_SPACE_FULL], scratch, s->spec->untuned, NULL, 0, &variant,
                       NULL) != TL_OK ||
        tl_measurer_add_task(o->measurer, spec, &s->number, NULL) != TL_OK)
        return TL_OK;
    tl_remember_task(o->store, s->spec, o->profile);
    s->trail = missing / 5;
    s->wanted = missing - s->trail - is_new(s, variant.hash);
    memcpy(s->standard, variant.hash, sizeof s->standard);
    tl_proposal standard = propose(&variant);
    submit(c, s, TL_SAMPLER_DEFAULT, &standard, 1);
    *is_open = true;
    return TL_OK;
}

/* The next task; NULL: it is none. */
static tl_status start_task(collection *c, const tl_tune_task *spec, subject **out)
{
    tl_arena *arena = tl_arena_create(0), *scratch = tl_arena_create(0);
    *out = NULL;
    if (arena == NULL || scratch == NULL || TL_ARENA_GUARD(arena) || TL_ARENA_GUARD(scratch)) {
        tl_arena_destroy(arena);
        tl_arena_destroy(scratch);
        return tl_fail(c->diag, TL_NO_MEMORY, "out of memory");
    }
    subject *s = TL_NEW(arena, subject);
    bool is_open;
    s->arena = arena;
    s->spec = spec;
    tl_status status = open_task(c, s, scratch, &is_open);
    tl_arena_destroy(scratch);
    if (status == TL_OK && is_open)
        *out = s;
    else
        tl_arena_destroy(arena);
    return status;
}

/* ---- points ---- */

/* A point that is drawn for the first time is on its way; false: it was met before, or is none. */
static bool draw_into(collection *c, subject *s, int number, tl_arena *scratch)
{
    tl_variant variant;
    double probability;
    tl_sampler sampler = tl_sampler_at(number);
    const tl_space *space = s->spaces[tl_sampler_space(sampler)];
    if (tl_sample_point(space, scratch, sampler, number, c->o->seed, &variant, &probability,
                        NULL) != TL_OK ||
        !is_new(s, variant.hash))
        return false;
    tl_proposal proposal = propose(&variant);
    submit(c, s, sampler, &proposal, probability);
    return true;
}

static bool draw_point(collection *c, subject *s, int number)
{
    tl_arena *scratch = tl_arena_create(0);
    if (scratch == NULL || TL_ARENA_GUARD(scratch) || TL_ARENA_GUARD(s->arena)) {
        tl_arena_destroy(scratch);
        s->has_failed = true;
        return false;
    }
    bool is_drawn = draw_into(c, s, number, scratch);
    tl_arena_destroy(scratch);
    return is_drawn;
}

/* The next walk or plain point; false: the task has no more. */
static bool draw(collection *c, subject *s)
{
    while (s->wanted > 0 && s->misses < MISSES && !s->has_failed) {
        int number = s->next++;
        if (tl_sampler_at(number) == TL_SAMPLER_TRAIL)
            continue;
        if (draw_point(c, s, number)) {
            s->misses = 0;
            s->wanted--;
            return true;
        }
        s->misses++;
    }
    return false;
}

static bool make_policy(collection *c, subject *s)
{
    const tl_policy_type *type = tl_policy_find(trail_policy);
    const char *workload = s->spec->measure->workload;
    tl_search search = { .task = s->spec->measure,
                         .space = s->spaces[TL_SPACE_FULL],
                         .target = c->o->target,
                         .seed = tl_hash_bytes(workload, strlen(workload), c->o->seed),
                         .known_count = s->record_count,
                         .known = s->records };
    return type->create(&search, &s->policy, NULL) == TL_OK;
}

/* Some points of the search; false: it has no more. */
static bool follow(collection *c, subject *s)
{
    tl_proposal proposals[TRAIL_BATCH];
    int got = 0;
    if (s->trail <= 0 || s->has_failed || s->record_count == 0 ||
        (s->policy == NULL && !make_policy(c, s)))
        return false;
    tl_arena *scratch = tl_arena_create(0);
    if (scratch == NULL || TL_ARENA_GUARD(scratch) || TL_ARENA_GUARD(s->arena)) {
        tl_arena_destroy(scratch);
        s->has_failed = true;
        return false;
    }
    int count = s->trail < TRAIL_BATCH ? s->trail : TRAIL_BATCH;
    if (s->policy->type->propose(s->policy, scratch, count, proposals, &got, NULL) != TL_OK)
        got = 0;
    for (int i = 0; i < got; i++) {
        is_new(s, proposals[i].program);
        submit(c, s, TL_SAMPLER_TRAIL, &proposals[i], 0);
    }
    tl_arena_destroy(scratch);
    s->trail = got > 0 ? s->trail - got : 0;
    return got > 0;
}

/* Makes sure that enough is in flight; *done: there is nothing left. */
static tl_status fill(collection *c, bool *done)
{
    *done = false;
    while (c->in_flight < AHEAD) {
        if (c->now != NULL && draw(c, c->now))
            continue;
        if (c->before != NULL && follow(c, c->before))
            continue;
        if (c->before != NULL && c->before->in_flight > 0)
            return TL_OK; /* its last labels are on their way */
        if (c->before != NULL) {
            c->totals.tasks_done++;
            end_subject(c->before);
            c->before = NULL;
        }
        if (c->started == c->o->task_count) {
            if (c->now == NULL) {
                *done = c->in_flight == 0;
                return TL_OK;
            }
            if (c->now->in_flight > 0)
                return TL_OK;
        }
        c->before = c->now;
        c->now = NULL;
        while (c->now == NULL && c->started < c->o->task_count)
            TL_TRY(start_task(c, &c->o->tasks[c->started++], &c->now));
    }
    return TL_OK;
}

/* ---- results ---- */

static int64_t wall_clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void make_record(collection *c, const item *it, const tl_result *result, tl_record *out)
{
    const tl_collect_options *o = c->o;
    const tl_tune_task *spec = it->of->spec;
    tl_result_to_record(spec->measure, &it->proposal.candidate, result, out);
    out->class_key = spec->workload->class_key;
    out->family = spec->workload->family;
    out->target = c->fingerprint;
    out->numerics = o->numerics;
    out->threads = o->threads;
    out->environment = o->environment;
    out->session = o->session;
    out->sequence = ++c->sequence;
    out->created_us = wall_clock_us();
    out->origin = tl_sampler_texts[it->sampler];
    out->probability = it->probability;
    out->machine = o->profile != NULL ? o->profile->digest : "";
    out->space = tl_space_infos[tl_sampler_space(it->sampler)].revision;
    out->program = it->proposal.program;
    out->standard = it->sampler == TL_SAMPLER_DEFAULT ? it->proposal.program : it->of->standard;
    if (it->sampler == TL_SAMPLER_DEFAULT && result->status == TL_RECORD_OK)
        out->turns = 1; /* with itself, so to say */
    tl_record_seal(out);
}

/* What a search of the task will know; once it is made it learns by itself. */
static void keep_record(subject *s, const tl_record *record)
{
    if (s->policy != NULL || TL_ARENA_GUARD(s->arena))
        return;
    TL_ROOM(s->arena, s->records, s->record_count, s->capacity);
    tl_record_copy(s->arena, record, &s->records[s->record_count++]);
}

static void count_result(tl_collect_totals *t, const tl_result *r)
{
    double wanted = r->ratio > 3 ? 0.05 : 0.02;
    t->measured++;
    t->failed += r->status != TL_RECORD_OK;
    t->censored += r->status == TL_RECORD_OK && r->censored != TL_CENSORED_NOTHING;
    t->uncertain += r->status == TL_RECORD_OK && r->standard[0] != '\0' &&
                    (r->turns < 2 || r->ratio_error > wanted);
}

static void take(collection *c, const tl_result *result)
{
    item *it = c->first;
    subject *s = it->of;
    tl_record record;
    c->first = it->next;
    if (c->first == NULL)
        c->last = &c->first;
    c->in_flight--;
    s->in_flight--;
    make_record(c, it, result, &record);
    /* what a worker could not do says nothing of the point */
    if (result->status != TL_RECORD_WORKER) {
        tl_records_add(c->o->store, &record, NULL); /* what cannot be written waits */
        count_result(&c->totals, result);
        keep_record(s, &record);
    } else if (c->unable.text[0] == '\0') {
        tl_fail(&c->unable, TL_DEVICE, "%s", result->reason);
    }
    if (it->sampler == TL_SAMPLER_DEFAULT && result->status != TL_RECORD_OK)
        s->has_failed = true; /* there is no standard */
    if (it->sampler == TL_SAMPLER_TRAIL && s->policy != NULL)
        s->policy->type->learn(s->policy, &it->proposal, result, 1, NULL);
    free_item(it);
}

static bool is_over(const collection *c)
{
    const tl_collect_options *o = c->o;
    return (o->stop != NULL && *o->stop) || (o->seconds > 0 && c->totals.elapsed_s >= o->seconds);
}

static tl_status drive(collection *c)
{
    const tl_collect_options *o = c->o;
    tl_result result;
    for (bool done = false; !is_over(c);) {
        TL_TRY(fill(c, &done));
        if (done)
            return c->totals.measured > 0 || c->unable.text[0] == '\0'
                       ? TL_OK
                       : tl_fail(c->diag, TL_DEVICE, "%s", c->unable.text);
        tl_status status = tl_measurer_next(o->measurer, TICK_S, &result, c->diag);
        c->totals.elapsed_s = (double)(tl_clock_ns() - c->start_ns) * 1e-9;
        if (status == TL_OK)
            take(c, &result);
        else if (status != TL_BUDGET)
            return status;
        if (o->listen != NULL)
            o->listen(o->user, &c->totals);
    }
    return TL_OK;
}

tl_status tl_collect(const tl_collect_options *o, tl_collect_totals *totals, tl_diag *diag)
{
    collection c = { .o = o, .start_ns = tl_clock_ns(), .diag = diag };
    c.last = &c.first;
    c.totals.tasks = o->task_count;
    c.totals.planned = (int64_t)o->task_count * o->per_task;
    tl_target_fingerprint(o->target, o->threads, c.fingerprint);
    tl_status status = drive(&c);
    tl_measurer_forget(o->measurer, -1);
    while (c.first != NULL) {
        item *it = c.first;
        c.first = it->next;
        free_item(it);
    }
    end_subject(c.before);
    end_subject(c.now);
    tl_records_flush(o->store);
    *totals = c.totals;
    return status;
}
