/* tests/bench/policy_trials.c: what comes of a proposal: a record's answer, a measurement, or an estimate. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "runtime/base/map.h"
#include "runtime/base/clock.h"
#include "tests/bench/policy_study.h"
#include "tuner/cost/features.h"

/* A program's time against that of its session's first trial, the default schedule of the first lowering. */
typedef struct {
    double log_sum;
    int count; /* of sessions with a time; 0: it failed */
    tl_candidate candidate;
} knowledge;

struct answers {
    study *study;
    study_run *run;
    const char *session;
    tl_map *known;    /* by program */
    double base_ns;   /* of the first trial: what ratios are multiplied with */
    int64_t sequence; /* of the last trial in the database */

    tl_measurer *measurer;
    int task, waiting; /* waiting: how many are being measured */
    bool is_on;        /* the session's incumbents are known to the measurer */
    double scale;      /* from the measurer's scores to the session's */
    int lock;          /* a file: one process measures at a time */

    tl_space *space; /* offline */
    tl_cost_model *model;
    double least; /* ratio */
};

/* "auto-1"; of the plain space, where a kernel is a task a lowering, "plain-auto-1-winograd_f4" */
static const char *session_of(study *s, const study_run *run)
{
    if (s->options.space == TL_SPACE_PLAIN)
        return tl_arena_format(s->arena, "plain-%s-%d-%s", run->arm->name, run->seed,
                               run->subject->task.measure->lowerings[0].name);
    return tl_arena_format(s->arena, "%s-%d", run->arm->name, run->seed);
}

/* --- what is recorded ------------------------------------------------------------------------------------------------- */

typedef struct {
    answers *answers;
    tl_map *bases; /* times of first trials, by session */
    tl_map *least; /* logarithms of ratios, by session and program */
} reading;

static bool read_base(void *user, const tl_record *r)
{
    reading *to = user;
    if (r->sequence != 1 || r->status != TL_RECORD_OK)
        return true;
    double *base = TL_NEW(to->answers->study->arena, double);
    *base = r->score_ns;
    tl_map_put(to->bases, r->session, base);
    return true;
}

static int find_lowering(const tl_measure_task *task, const char *name)
{
    int i = 0;
    while (i + 1 < task->lowering_count && strcmp(task->lowerings[i].name, name) != 0)
        i++;
    return i;
}

/* Of a program that a session tried again the lesser time counts, as for the policy. */
static void read_ratio(reading *to, knowledge *k, const tl_record *r, double ratio)
{
    tl_arena *arena = to->answers->study->arena;
    const char *key = tl_arena_format(arena, "%s %s", r->session, r->program);
    double *least = tl_map_find(to->least, key), now = log(ratio);
    if (least == NULL) {
        least = TL_NEW(arena, double);
        *least = now;
        tl_map_put(to->least, key, least);
        k->log_sum += now;
        k->count++;
    } else if (now < *least) {
        k->log_sum += now - *least;
        *least = now;
    }
}

static bool read_trial(void *user, const tl_record *r)
{
    reading *to = user;
    answers *a = to->answers;
    const double *base = tl_map_find(to->bases, r->session);
    if (base == NULL)
        return true;
    knowledge *k = tl_map_find(a->known, r->program);
    if (k == NULL) {
        k = TL_NEW(a->study->arena, knowledge);
        k->candidate.lowering = find_lowering(a->run->subject->task.measure, r->lowering);
        k->candidate.trace = tl_arena_strdup(a->study->arena, r->trace);
        tl_map_put(a->known, r->program, k);
    }
    if (r->status == TL_RECORD_OK)
        read_ratio(to, k, r, r->score_ns / *base);
    a->base_ns = a->base_ns > 0 ? a->base_ns : *base;
    a->sequence = r->sequence > a->sequence ? r->sequence : a->sequence;
    return true;
}

/* Of any revision of the code generator: a gain is one inside a session. */
static tl_query query_of(study *s, const study_run *run)
{
    return (tl_query){ .workload = run->subject->task.workload->workload,
                       .threads = (int)s->options.threads,
                       .any_revision = true,
                       .session = s->options.offline ? NULL : session_of(s, run) };
}

static void read_records(answers *a)
{
    tl_diag diag = { 0 };
    tl_arena *arena = a->study->arena;
    reading to = { a, tl_map_create(arena), tl_map_create(arena) };
    tl_query query = query_of(a->study, a->run);
    bench_must(tl_records_visit(a->study->records, &query, read_base, &to, &diag), &diag);
    bench_must(tl_records_visit(a->study->records, &query, read_trial, &to, &diag), &diag);
}

static double ratio_of(const knowledge *k)
{
    return exp(k->log_sum / k->count);
}

typedef struct {
    study *study;
    study_run *run;
} recalling;

static bool recall(void *user, const tl_record *r)
{
    const recalling *to = user;
    const tl_measure_task *task = to->run->subject->task.measure;
    if (r->sequence < 1 || r->sequence > to->run->wanted)
        return true;
    study_trial *t = &to->run->trials[r->sequence - 1];
    to->run->count += t->program[0] == '\0';
    *t = (study_trial){ .candidate = { .lowering = find_lowering(task, r->lowering),
                                       .trace = tl_arena_strdup(to->study->arena, r->trace) },
                        .score_ns = r->status == TL_RECORD_OK ? r->score_ns : 0,
                        .is_default = r->sequence <= task->lowering_count };
    snprintf(t->program, sizeof t->program, "%s", r->program);
    return true;
}

bool study_recall(study *s, study_run *run)
{
    tl_diag diag = { 0 };
    recalling to = { s, run };
    tl_query query = query_of(s, run);
    if (s->options.offline)
        return false;
    bench_must(tl_records_visit(s->records, &query, recall, &to, &diag), &diag);
    return run->is_done = run->count == run->wanted;
}

/* --- measuring -------------------------------------------------------------------------------------------------------- */

static void submit(answers *a, const tl_candidate *candidate)
{
    tl_diag diag = { 0 };
    int64_t ticket;
    tl_candidate asked = *candidate;
    asked.cold = a->run->subject->cold;
    bench_must(tl_measurer_submit(a->measurer, a->task, &asked, 1, &ticket, &diag), &diag);
}

static void measure_one(answers *a, const tl_candidate *candidate, tl_result *out)
{
    tl_diag diag = { 0 };
    submit(a, candidate);
    bench_must(tl_measurer_next(a->measurer, -1, out, &diag), &diag);
}

/* A session that goes on: its default schedule is the first incumbent again, then its best. */
static void go_on(answers *a)
{
    static tl_result result;
    const knowledge *first = tl_map_at(a->known, 0).value, *best = first;
    for (size_t i = 0; i < tl_map_count(a->known); i++) {
        const knowledge *k = tl_map_at(a->known, i).value;
        if (k->count > 0 && ratio_of(k) < ratio_of(best))
            best = k;
    }
    measure_one(a, &first->candidate, &result);
    if (result.status == TL_RECORD_OK)
        a->scale = a->base_ns / result.score_ns;
    if (best != first)
        measure_one(a, &best->candidate, &result);
}

static void start_measurer(answers *a)
{
    const study_options *o = &a->study->options;
    tl_diag diag = { 0 };
    tl_measure_options with = { .worker = o->worker,
                                .target = &a->study->target,
                                .threads = (int)o->threads,
                                .constant_bytes = a->run->subject->constant_bytes,
                                .seed = 1 };
    bench_must(tl_measurer_create(&with, &a->measurer, &diag), &diag);
    tl_measurer_leave_core(a->measurer);
    const tl_measure_task *task = a->run->subject->task.measure;
    tl_workload_info info = *a->run->subject->task.workload;
    tl_workload_seal(&info);
    bench_must(tl_records_add_workload(a->study->records, &info, &diag), &diag);
    bench_must(tl_measurer_add_task(a->measurer, task, &a->task, &diag), &diag);
    a->scale = 1;
    /* what thinks from here on gives way to what builds, in whichever process */
    setpriority(PRIO_PROCESS, 0, 10);
}

static void take_turn(answers *a)
{
    const char *path = tl_arena_format(a->study->arena, "%s.turn", a->study->options.database);
    if (a->lock < 0)
        a->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    int64_t begun = tl_clock_ns();
    flock(a->lock, LOCK_EX);
    a->run->wall_ns -= (double)(tl_clock_ns() - begun);
    if (!a->is_on && tl_map_count(a->known) > 0)
        go_on(a);
    a->is_on = true;
}

static int64_t wall_clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void record(answers *a, const tl_candidate *candidate, const tl_result *result)
{
    study *s = a->study;
    const tl_tune_task *task = &a->run->subject->task;
    tl_diag diag = { 0 };
    tl_record r;
    char fingerprint[160];
    tl_target_fingerprint(&s->target, (int)s->options.threads, fingerprint);
    tl_result_to_record(task->measure, candidate, result, &r);
    r.class_key = task->workload->class_key;
    r.family = task->workload->family;
    r.target = fingerprint;
    r.numerics = "relaxed";
    r.threads = (int)s->options.threads;
    r.environment = s->environment;
    r.session = a->session;
    r.sequence = ++a->sequence;
    r.created_us = wall_clock_us();
    tl_record_seal(&r);
    bench_must(tl_records_add(s->records, &r, &diag), &diag);
}

/* --- estimates -------------------------------------------------------------------------------------------------------- */

typedef struct {
    int count;
    int *first_row, *row_count, *task;
    float *rows, *labels;
} lessons;

/* Rows of a program; -1: its point cannot be built any more. */
static int rows_of(answers *a, tl_arena *arena, const tl_candidate *candidate, const float **rows)
{
    tl_wish *wishes;
    int lowering, count;
    tl_variant v;
    tl_target target = a->study->target;
    target.cores = (int)a->study->options.threads;
    if (!tl_point_read(a->space, arena, candidate->trace, &lowering, &wishes, &count) ||
        tl_space_build(a->space, arena, lowering, wishes, count, &v, NULL) != TL_OK)
        return -1;
    return tl_features_of(arena, v.program, &target, rows);
}

static void add_lesson(answers *a, lessons *l, tl_arena *arena, const knowledge *k)
{
    const float *rows;
    int count = rows_of(a, arena, &k->candidate, &rows), first = l->first_row[l->count];
    if (count < 0)
        return;
    l->rows = realloc(l->rows, sizeof *rows * TL_FEATURE_WIDTH * (size_t)(first + count));
    if (l->rows == NULL)
        exit(1);
    memcpy(l->rows + (size_t)first * TL_FEATURE_WIDTH, rows,
           sizeof *rows * TL_FEATURE_WIDTH * (size_t)count);
    l->row_count[l->count] = count;
    l->labels[l->count++] = k->count > 0 ? (float)log(ratio_of(k) / a->least) : INFINITY;
    l->first_row[l->count] = first + count;
}

/* Trees learn from all that is recorded of the task. */
static void learn_to_estimate(answers *a)
{
    tl_diag diag = { 0 };
    size_t most = tl_map_count(a->known);
    lessons l = { .first_row = TL_NEW_ARRAY(a->study->arena, int, most + 1),
                  .row_count = TL_NEW_ARRAY(a->study->arena, int, most),
                  .task = TL_NEW_ARRAY(a->study->arena, int, most),
                  .labels = TL_NEW_ARRAY(a->study->arena, float, most) };
    bench_must(tl_space_create(a->study->arena, a->run->subject->task.measure, &a->study->target,
                               (int)a->study->options.threads, a->study->options.space, &a->space,
                               &diag),
               &diag);
    a->least = 1;
    for (size_t i = 0; i < most; i++) {
        const knowledge *k = tl_map_at(a->known, i).value;
        a->least = k->count > 0 ? fmin(a->least, ratio_of(k)) : a->least;
    }
    for (size_t i = 0; i < most; i++) {
        tl_arena *arena = tl_arena_create(0);
        add_lesson(a, &l, arena, tl_map_at(a->known, i).value);
        tl_arena_destroy(arena);
    }
    const tl_cost_samples samples = { .shape = tl_sample_shape_of_rows(),
                                      .count = l.count,
                                      .task_count = 1,
                                      .domain_count = 1,
                                      .first_row = l.first_row,
                                      .row_count = l.row_count,
                                      .rows = l.rows,
                                      .task = l.task,
                                      .label = l.labels };
    bench_must(tl_cost_model_create("trees", NULL, 1, &a->model, &diag), &diag);
    bench_must(tl_cost_model_train(a->model, &samples, NULL, NULL, &diag), &diag);
    free(l.rows);
}

/* Never better than the best that was measured. */
static double estimate(answers *a, const tl_candidate *candidate)
{
    tl_arena *arena = tl_arena_create(0);
    const float *rows;
    float mean = INFINITY;
    const int first_row = 0, row_count = rows_of(a, arena, candidate, &rows), task = 0;
    const tl_cost_samples program = { .shape = tl_sample_shape_of_rows(),
                                      .count = 1,
                                      .task_count = 1,
                                      .domain_count = 1,
                                      .first_row = &first_row,
                                      .row_count = &row_count,
                                      .rows = rows,
                                      .task = &task };
    if (row_count > 0)
        tl_cost_model_predict(a->model, &program, &mean, NULL);
    tl_arena_destroy(arena);
    return a->least * fmin(fmax(exp((double)mean), 1), 100);
}

/* --- answering -------------------------------------------------------------------------------------------------------- */

answers *answers_create(study *s, study_run *run)
{
    answers *a = TL_NEW(s->arena, answers);
    *a = (answers){ .study = s,
                    .run = run,
                    .session = session_of(s, run),
                    .known = tl_map_create(s->arena),
                    .lock = -1 };
    read_records(a);
    if (s->options.offline && tl_map_count(a->known) > 0)
        learn_to_estimate(a);
    return a;
}

void answers_destroy(answers *a)
{
    if (a->measurer != NULL)
        tl_measurer_destroy(a->measurer);
    if (a->lock >= 0)
        close(a->lock);
    if (a->model != NULL)
        tl_cost_model_destroy(a->model);
}

void answers_ask(answers *a, const tl_proposal *proposal)
{
    if (tl_map_has(a->known, proposal->program) || a->study->options.offline)
        return;
    if (a->measurer == NULL)
        start_measurer(a);
    if (a->waiting++ == 0)
        take_turn(a);
    submit(a, &proposal->candidate);
}

void answers_next(answers *a, const tl_proposal *proposal, tl_result *out)
{
    tl_diag diag = { 0 };
    const knowledge *k = tl_map_find(a->known, proposal->program);
    double ratio = k != NULL && k->count > 0 ? ratio_of(k) : 0;
    *out = (tl_result){ .status = TL_RECORD_WORKER };
    if (k == NULL && a->model != NULL)
        ratio = estimate(a, &proposal->candidate);
    if (ratio > 0) {
        out->status = TL_RECORD_OK;
        out->time_ns = out->score_ns = ratio * a->base_ns;
    }
    if (k != NULL || a->study->options.offline)
        return;
    bench_must(tl_measurer_next(a->measurer, -1, out, &diag), &diag);
    if (--a->waiting == 0)
        flock(a->lock, LOCK_UN);
    a->run->measured++;
    if (out->program[0] == '\0') /* it was never built: the policy knows what it would have been */
        memcpy(out->program, proposal->program, sizeof out->program);
    out->score_ns *= a->scale;
    record(a, &proposal->candidate, out);
}
