/* driver/report/report_data.c: records sorted into tasks, sessions and failures. */
#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "driver/report/report.h"
#include "runtime/base/array.h"
#include "runtime/base/map.h"
#include "tuner/run/environment.h"

#define LARGEST_GAIN 1e6 /* what is beyond is no measurement */

/* A task in one session. */
typedef struct {
    tl_record first, best;
    bool has_best;
} visit;

typedef struct {
    tl_report_task task;
    tl_map *visits; /* by session */
} collected_task;

typedef struct {
    tl_report *report;
    tl_arena *arena;
    tl_map *tasks, *sessions, *reasons, *choices, *environments;
    int64_t newest_us;
} collector;

static collected_task *task_of(collector *c, const tl_record *r)
{
    const char *key = tl_arena_format(c->arena, "%s\n%s\n%s\n%d %d", r->workload, r->target,
                                      r->numerics, r->threads, r->cold);
    collected_task *found = tl_map_find(c->tasks, key);
    if (found != NULL)
        return found;
    found = TL_NEW(c->arena, collected_task);
    tl_report_task *task = &found->task;
    *task = (tl_report_task){ .workload = tl_arena_strdup(c->arena, r->workload),
                              .target = tl_arena_strdup(c->arena, r->target),
                              .numerics = tl_arena_strdup(c->arena, r->numerics),
                              .family = tl_arena_strdup(c->arena, r->family),
                              .threads = r->threads,
                              .cold = r->cold,
                              .gain = 1 };
    task->name = task->family;
    found->visits = tl_map_create(c->arena);
    tl_map_put(c->tasks, key, found);
    return found;
}

static visit *visit_of(collector *c, collected_task *task, const tl_record *r)
{
    visit *v = tl_map_find(task->visits, r->session);
    if (v == NULL) {
        v = TL_NEW(c->arena, visit);
        tl_map_put(task->visits, r->session, v);
    }
    return v;
}

static int policy_of(collector *c, const char *session)
{
    const tl_policy_type *policy = tl_session_policy(session);
    int i = 0;
    if (policy == NULL)
        return -1;
    while (i < c->report->policy_count && strcmp(c->report->policies[i], policy->name) != 0)
        i++;
    if (i == c->report->policy_count)
        c->report->policies[c->report->policy_count++] = policy->name;
    return i;
}

static tl_report_session *session_of(collector *c, const tl_record *r)
{
    tl_report_session *s = tl_map_find(c->sessions, r->session);
    if (s == NULL) {
        s = TL_NEW(c->arena, tl_report_session);
        s->name = tl_arena_strdup(c->arena, r->session);
        s->index = (int)tl_map_count(c->sessions);
        s->policy = policy_of(c, s->name);
        s->first_us = s->last_us = r->created_us;
        tl_map_put(c->sessions, r->session, s);
    }
    s->first_us = r->created_us < s->first_us ? r->created_us : s->first_us;
    s->last_us = r->created_us > s->last_us ? r->created_us : s->last_us;
    s->trials++;
    return s;
}

static void add_trial(collector *c, tl_report_task *task, tl_report_trial trial)
{
    TL_ROOM(c->arena, task->trials, task->count, task->capacity);
    task->trials[task->count++] = trial;
}

/* The sentence with its numbers folded, so that those that say the same are one. */
static const char *fold(tl_arena *arena, const char *text)
{
    char *out = tl_arena_alloc(arena, strlen(text) + 1, 1), *to = out;
    while (*text) {
        if (isdigit((unsigned char)*text)) {
            *to++ = 'N';
            while (isxdigit((unsigned char)*text) || *text == '.' || *text == 'x')
                text++;
        } else {
            *to++ = *text++;
        }
    }
    return out;
}

static void count_reason(collector *c, const tl_record *r)
{
    const char *text = fold(c->arena, r->reason);
    const char *key = tl_arena_format(c->arena, "%d %s", (int)r->status, text);
    tl_report_reason *reason = tl_map_find(c->reasons, key);
    if (reason == NULL) {
        reason = TL_NEW(c->arena, tl_report_reason);
        *reason = (tl_report_reason){ r->status, text, 0 };
        tl_map_put(c->reasons, key, reason);
    }
    reason->count++;
}

static double number_of(const json_t *object, const char *name)
{
    double value = json_number_value(json_object_get(object, name));
    return isfinite(value) && value > 0 ? value : 0;
}

static void take_environment(collector *c, const tl_record *r)
{
    tl_report *out = c->report;
    if (r->created_us >= c->newest_us) {
        c->newest_us = r->created_us;
        if (strcmp(out->environment, r->environment) != 0)
            out->environment = tl_arena_strdup(c->arena, r->environment);
    }
    if (tl_map_has(c->environments, r->environment))
        return;
    tl_map_put(c->environments, r->environment, c);
    json_t *root = json_loads(r->environment, 0, NULL);
    out->peak_gflops = fmax(out->peak_gflops, number_of(root, "peak_gflops"));
    out->copy_gbs = fmax(out->copy_gbs, number_of(root, "copy_gbs"));
    json_decref(root);
}

static bool is_earlier(const tl_record *a, const tl_record *b)
{
    return a->created_us != b->created_us ? a->created_us < b->created_us
                                          : a->sequence < b->sequence;
}

static bool collect_record(void *user, const tl_record *r)
{
    collector *c = user;
    tl_report *out = c->report;
    if (r->revision != out->revision) {
        out->stale++;
        return true;
    }
    collected_task *found = task_of(c, r);
    tl_report_task *task = &found->task;
    visit *v = visit_of(c, found, r);
    const tl_report_session *session = session_of(c, r);
    bool right = r->status == TL_RECORD_OK && r->score_ns > 0;
    out->trials++;
    out->by_status[r->status]++;
    out->build_ns += r->build_ns;
    out->run_ns += r->run_ns;
    out->first_us =
        out->trials == 1 || r->created_us < out->first_us ? r->created_us : out->first_us;
    out->last_us = r->created_us > out->last_us ? r->created_us : out->last_us;
    take_environment(c, r);
    if (r->status != TL_RECORD_OK) {
        task->failed++;
        count_reason(c, r);
    }
    add_trial(c, task,
              (tl_report_trial){ .created_us = r->created_us,
                                 .sequence = r->sequence,
                                 .session = session->index,
                                 .policy = session->policy,
                                 .score_ns = right ? r->score_ns : 0,
                                 .first = &v->first });
    if (!right)
        return true;
    if (!v->has_best || is_earlier(r, &v->first))
        tl_record_copy(c->arena, r, &v->first);
    if (!v->has_best || (!r->hopeless && r->score_ns < v->best.score_ns))
        tl_record_copy(c->arena, r, &v->best);
    v->has_best = true;
    return true;
}

static bool find_revision(void *user, const tl_record *r)
{
    int *newest = user;
    *newest = r->revision > *newest ? r->revision : *newest;
    return true;
}

static bool collect_choice(void *user, const tl_choice *choice)
{
    collector *c = user;
    const char *key = tl_arena_format(c->arena, "%s\n%s\n%s\n%d", choice->model, choice->target,
                                      choice->numerics, choice->threads);
    if (tl_map_has(c->choices, key)) /* the newest comes first */
        return true;
    tl_choice *kept = TL_NEW(c->arena, tl_choice);
    *kept = *choice;
    const char **texts[] = { &kept->model, &kept->name,  &kept->target,      &kept->numerics,
                             &kept->form,  &kept->picks, &kept->environment, &kept->session };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = tl_arena_strdup(c->arena, *texts[i]);
    tl_map_put(c->choices, key, kept);
    return true;
}

static int by_creation(const void *a, const void *b)
{
    const tl_report_trial *x = a, *y = b;
    if (x->created_us != y->created_us)
        return x->created_us < y->created_us ? -1 : 1;
    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

static int by_start(const void *a, const void *b)
{
    const tl_report_session *const *x = a, *const *y = b;
    return (*x)->first_us < (*y)->first_us ? -1 : (*x)->first_us > (*y)->first_us;
}

static int by_untuned(const void *a, const void *b)
{
    const tl_report_task *x = a, *y = b;
    double difference = y->first.score_ns - x->first.score_ns;
    return difference > 0 ? 1 : difference < 0 ? -1 : strcmp(x->workload, y->workload);
}

static int by_count(const void *a, const void *b)
{
    const tl_report_reason *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1) : strcmp(x->text, y->text);
}

/* Sessions one after another, without the time between them. */
static void place_sessions(collector *c)
{
    tl_report *out = c->report;
    int count = (int)tl_map_count(c->sessions);
    tl_report_session **order = TL_NEW_ARRAY(c->arena, tl_report_session *, count);
    for (int i = 0; i < count; i++)
        order[i] = tl_map_at(c->sessions, (size_t)i).value;
    if (count > 0)
        qsort(order, (size_t)count, sizeof(tl_report_session *), by_start);
    for (int i = 0; i < count; i++) {
        order[i]->offset_s = out->seconds;
        out->seconds += ((double)order[i]->last_us - (double)order[i]->first_us) * 1e-6;
    }
    for (int t = 0; t < out->task_count; t++)
        for (int i = 0; i < out->tasks[t].count; i++) {
            tl_report_trial *trial = &out->tasks[t].trials[i];
            const tl_report_session *s = tl_map_at(c->sessions, (size_t)trial->session).value;
            trial->seconds = s->offset_s + ((double)trial->created_us - (double)s->first_us) * 1e-6;
        }
    out->session_count = count;
    out->sessions = TL_NEW_ARRAY(c->arena, tl_report_session, count);
    for (int i = 0; i < count; i++)
        out->sessions[i] = *order[i];
}

/* The session that gained most; of equal ones the first. */
static void choose_visit(tl_report_task *task, const tl_map *visits)
{
    for (size_t i = 0; i < tl_map_count(visits); i++) {
        const visit *v = tl_map_at(visits, i).value;
        if (!v->has_best)
            continue;
        double gain = fmin(v->first.score_ns / v->best.score_ns, LARGEST_GAIN);
        bool is_most =
            gain > task->gain || (gain == task->gain && is_earlier(&v->first, &task->first));
        if (task->has_best && !is_most)
            continue;
        task->first = v->first;
        task->best = v->best;
        task->gain = gain;
        task->has_best = true;
    }
}

static void finish_tasks(collector *c, tl_records *store)
{
    tl_report *out = c->report;
    double sum = 0;
    int gains = 0;
    out->task_count = (int)tl_map_count(c->tasks);
    out->tasks = TL_NEW_ARRAY(c->arena, tl_report_task, out->task_count);
    for (int i = 0; i < out->task_count; i++) {
        tl_workload_info info;
        tl_report_task *task = &out->tasks[i];
        const collected_task *found = tl_map_at(c->tasks, (size_t)i).value;
        *task = found->task;
        choose_visit(task, found->visits);
        qsort(task->trials, (size_t)task->count, sizeof *task->trials, by_creation);
        if (tl_records_find_workload(store, c->arena, task->workload, &info)) {
            if (info.name[0] != '\0')
                task->name = info.name;
            task->flops = info.flops;
            task->bytes = info.bytes;
        }
        if (!task->has_best)
            continue;
        sum += log(task->gain);
        gains++;
    }
    out->mean_gain = gains > 0 ? exp(sum / gains) : 1;
    if (out->task_count > 0)
        qsort(out->tasks, (size_t)out->task_count, sizeof *out->tasks, by_untuned);
}

tl_status tl_report_collect(tl_arena *arena, tl_records *store, const tl_query *query,
                            tl_report *out, tl_diag *diag)
{
    collector c = { .report = out,
                    .arena = arena,
                    .tasks = tl_map_create(arena),
                    .sessions = tl_map_create(arena),
                    .reasons = tl_map_create(arena),
                    .choices = tl_map_create(arena),
                    .environments = tl_map_create(arena),
                    .newest_us = INT64_MIN };
    tl_query all = *query;
    *out = (tl_report){ .arena = arena, .path = tl_records_path(store), .environment = "" };
    out->policies = TL_NEW_ARRAY(arena, const char *, tl_policy_count);
    all.order = TL_ORDER_STORED;
    all.limit = 0;
    all.revision = 0;
    TL_TRY(tl_records_visit(store, &all, find_revision, &out->revision, diag));
    TL_TRY(tl_records_visit(store, &all, collect_record, &c, diag));
    TL_TRY(tl_records_visit_choices(store,
                                    &(tl_choice_query){ .target = query->target,
                                                        .numerics = query->numerics },
                                    collect_choice, &c, diag));
    finish_tasks(&c, store);
    place_sessions(&c);
    out->reason_count = (int)tl_map_count(c.reasons);
    out->reasons = TL_NEW_ARRAY(arena, tl_report_reason, out->reason_count);
    for (int i = 0; i < out->reason_count; i++)
        out->reasons[i] = *(tl_report_reason *)tl_map_at(c.reasons, (size_t)i).value;
    if (out->reason_count > 0)
        qsort(out->reasons, (size_t)out->reason_count, sizeof *out->reasons, by_count);
    out->choice_count = (int)tl_map_count(c.choices);
    out->choices = TL_NEW_ARRAY(arena, tl_choice, out->choice_count);
    for (int i = 0; i < out->choice_count; i++)
        out->choices[i] = *(tl_choice *)tl_map_at(c.choices, (size_t)i).value;
    return TL_OK;
}
