/* tuner/measure/measure_replayer.c: answers from a recording: the same questions get the same answers, at the same times. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/file.h"
#include "runtime/base/map.h"
#include "tuner/measure/measure_ledger.h"
#include "tuner/measure/measure_private.h"

/* The answers to one question, in order. */
typedef struct answer {
    struct answer *next;
    tl_result result;
} answer;

typedef struct {
    answer *last, *turn; /* turn NULL: all were given */
} answers;

/* After so many questions in a row that are not in the recording it is of other decisions: its clock would stand still for
 * ever. */
enum { MOST_UNKNOWN = 256 };

/* What one run asked: from its first question until everything was forgotten. */
typedef struct part {
    struct part *next;
    tl_map *known;    /* key -> answers */
    int64_t unused;   /* answers that were not given yet */
    int unknown;      /* questions in a row that are not in it */
    int64_t clock_ns; /* when it began */
} part;

typedef struct {
    tl_measurer base;
    tl_ledger ledger;
    tl_arena *arena;
    part *last, *turn; /* read last; answered from */
    bool began;        /* this part was asked something */
    int64_t next_ticket, clock_ns;
    tl_measure_stats stats;
} replayer;

static part *new_part(tl_arena *arena, int64_t clock_ns)
{
    part *p = TL_NEW(arena, part);
    p->known = tl_map_create(arena);
    p->clock_ns = clock_ns;
    return p;
}

/* Nothing where they are missing: recordings were made before there were labels. */
static void read_label(const json_t *line, tl_result *r)
{
    const char *standard = json_string_value(json_object_get(line, "standard"));
    const char *censored = json_string_value(json_object_get(line, "censored"));
    json_int_t turns = json_integer_value(json_object_get(line, "turns"));
    r->ratio = json_number_value(json_object_get(line, "ratio"));
    r->ratio_error = json_number_value(json_object_get(line, "ratio_error"));
    r->turns = turns > 0 && turns <= TL_CONTEST_SAMPLES ? (int)turns : 0;
    snprintf(r->standard, sizeof r->standard, "%s", standard != NULL ? standard : "");
    for (int i = 0; i < TL_CENSORED_COUNT; i++)
        if (censored != NULL && strcmp(censored, tl_censored_texts[i]) == 0)
            r->censored = (tl_censored)i;
}

static bool read_numbers(const json_t *line, tl_result *r)
{
    const struct {
        const char *name;
        double *value;
    } numbers[] = { { "time_ns", &r->time_ns },           { "median_ns", &r->median_ns },
                    { "incumbent_ns", &r->incumbent_ns }, { "score_ns", &r->score_ns },
                    { "max_error", &r->max_error },       { "build_ns", &r->build_ns },
                    { "check_ns", &r->check_ns },         { "run_ns", &r->run_ns } };
    const struct {
        const char *name;
        bool *value;
    } flags[] = { { "hopeless", &r->hopeless },
                  { "disturbed", &r->disturbed },
                  { "crowned", &r->crowned } };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const json_t *number = json_object_get(line, numbers[i].name);
        if (!json_is_number(number))
            return false;
        *numbers[i].value = json_number_value(number);
    }
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        *flags[i].value = json_is_true(json_object_get(line, flags[i].name));
    /* 0 where they are missing: recordings were made before there were appeals */
    r->promise = json_number_value(json_object_get(line, "promise"));
    r->alone = json_number_value(json_object_get(line, "alone"));
    read_label(line, r);
    const char *cold = json_string_value(json_object_get(line, "cold"));
    const json_t *finished = json_object_get(line, "finished_ns");
    r->finished_ns = json_integer_value(finished);
    return json_is_integer(finished) && cold != NULL && tl_cold_from_text(cold, &r->cold);
}

static bool read_result(const json_t *line, const char **key, tl_result *r)
{
    const char *status = json_string_value(json_object_get(line, "status"));
    const char *reason = json_string_value(json_object_get(line, "reason"));
    const char *program = json_string_value(json_object_get(line, "program"));
    const json_t *times = json_object_get(line, "times_ns"), *time;
    size_t i;
    *r = (tl_result){ 0 };
    *key = json_string_value(json_object_get(line, "key"));
    if (*key == NULL || strlen(*key) != 32 || status == NULL || reason == NULL || program == NULL ||
        !json_is_array(times) ||
        json_array_size(times) > sizeof r->times_ns / sizeof *r->times_ns ||
        !tl_record_status_from_text(status, &r->status) || !read_numbers(line, r))
        return false;
    snprintf(r->reason, sizeof r->reason, "%s", reason);
    snprintf(r->program, sizeof r->program, "%s", program);
    json_array_foreach(times, i, time)
    {
        if (!json_is_number(time))
            return false;
        r->times_ns[r->time_count++] = json_number_value(time);
    }
    return true;
}

static void add_answer(replayer *m, const char *key, const tl_result *result)
{
    answers *all = tl_map_find(m->last->known, key);
    if (all == NULL) {
        all = TL_NEW(m->arena, answers);
        tl_map_put(m->last->known, key, all);
    }
    answer *a = TL_NEW(m->arena, answer);
    a->result = *result;
    m->last->unused++;
    if (all->last != NULL)
        all->last->next = a;
    else
        all->turn = a;
    all->last = a;
}

/* A last line that was not written to its end is no error: its recorder was killed. */
static tl_status read_recording(replayer *m, const tl_text *text, const char *path, tl_diag *diag)
{
    int number = 0;
    for (const char *p = text->data; p != NULL && *p;) {
        const char *end = strchr(p, '\n');
        json_error_t error;
        number++;
        if (end == NULL)
            break;
        json_t *line = json_loadb(p, (size_t)(end - p), 0, &error);
        const char *kind = json_string_value(json_object_get(line, "record")), *key;
        tl_result result;
        bool is_other = kind != NULL && strcmp(kind, "measurement") != 0;
        bool ok = is_other || (kind != NULL && read_result(line, &key, &result));
        char copy[33] = "";
        if (ok && !is_other)
            memcpy(copy, key, sizeof copy);
        if (ok && is_other && strcmp(kind, "part") == 0) {
            int64_t clock_ns = json_integer_value(json_object_get(line, "clock_ns"));
            m->last = m->last->next = new_part(m->arena, clock_ns);
        }
        json_decref(line);
        if (!ok)
            return tl_fail(diag, TL_BAD_TEXT, "%s:%d: no recorded measurement", path, number);
        if (!is_other)
            add_answer(m, copy, &result);
        p = end + 1;
    }
    return TL_OK;
}

static void replayer_destroy(tl_measurer *self)
{
    replayer *m = (replayer *)self;
    tl_ledger_free(&m->ledger);
    tl_arena_destroy(m->arena);
    free(m);
}

static tl_status replayer_add_task(tl_measurer *self, const tl_measure_task *spec, int *out,
                                   tl_diag *diag)
{
    replayer *m = (replayer *)self;
    *out = m->ledger.count;
    return tl_ledger_add_task(&m->ledger, spec, diag);
}

static tl_status replayer_submit(tl_measurer *self, int task, const tl_candidate *candidates,
                                 int count, int64_t *ticket, tl_diag *diag)
{
    replayer *m = (replayer *)self;
    for (int i = 0; i < count; i++)
        if (task < 0 || task >= m->ledger.count || candidates[i].lowering < 0 ||
            candidates[i].lowering >= m->ledger.tasks[task].lowering_count ||
            (candidates[i].trace == NULL && candidates[i].program == NULL))
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "candidate %d of task %d: no such lowering, or no trace", i, task);
    m->began = true;
    *ticket = m->next_ticket;
    m->next_ticket += count;
    return tl_ledger_ask(&m->ledger, task, candidates, count, *ticket, diag);
}

static tl_status replayer_next(tl_measurer *self, double timeout_s, tl_result *out, tl_diag *diag)
{
    replayer *m = (replayer *)self;
    tl_asked *a = m->ledger.first;
    (void)timeout_s;
    if (a == NULL)
        return tl_fail(diag, TL_BUDGET, "nothing is queued");
    answers *all = tl_map_find(m->turn->known, a->key);
    m->turn->unknown = all == NULL ? m->turn->unknown + 1 : 0;
    if (all == NULL && (m->turn->unused == 0 || m->turn->unknown > MOST_UNKNOWN))
        return tl_fail(diag, TL_INTERRUPTED, "the recording ends here");
    *out = (tl_result){ .status = TL_RECORD_WORKER, .reason = "it is not in the recording" };
    if (all != NULL) {
        answer *turn = all->turn != NULL ? all->turn : all->last;
        *out = turn->result;
        m->turn->unused -= all->turn != NULL;
        all->turn = turn->next;
    }
    out->ticket = a->ticket;
    out->task = a->task;
    if (out->finished_ns < m->clock_ns)
        out->finished_ns = m->clock_ns; /* time only moves forward */
    m->clock_ns = out->finished_ns;
    m->stats.results++;
    m->stats.by_status[out->status]++;
    m->stats.build_ns += out->build_ns;
    m->stats.check_ns += out->check_ns;
    m->stats.run_ns += out->run_ns;
    tl_ledger_drop_first(&m->ledger);
    return TL_OK;
}

static void replayer_pump(tl_measurer *self)
{
    (void)self;
}

static int64_t replayer_queued(const tl_measurer *self)
{
    return ((const replayer *)self)->ledger.queued;
}

static void next_part(replayer *m)
{
    if (m->turn->next != NULL)
        m->turn = m->turn->next;
    if (m->turn->clock_ns > m->clock_ns)
        m->clock_ns = m->turn->clock_ns;
    m->began = false;
}

static void replayer_forget(tl_measurer *self, int task)
{
    replayer *m = (replayer *)self;
    tl_ledger_forget(&m->ledger, task);
    if (task < 0 && m->began)
        next_part(m);
}

static void replayer_leave_core(const tl_measurer *self)
{
    (void)self;
}

static int64_t replayer_clock(const tl_measurer *self)
{
    return ((const replayer *)self)->clock_ns;
}

static void replayer_stats(const tl_measurer *self, tl_measure_stats *out)
{
    *out = ((const replayer *)self)->stats;
}

static const tl_measurer_type replayer_type = {
    .destroy = replayer_destroy,
    .add_task = replayer_add_task,
    .submit = replayer_submit,
    .next = replayer_next,
    .pump = replayer_pump,
    .queued = replayer_queued,
    .forget = replayer_forget,
    .leave_core = replayer_leave_core,
    .clock = replayer_clock,
    .stats = replayer_stats,
};

tl_status tl_replayer_create(const char *path, tl_measurer **out, tl_diag *diag)
{
    tl_text text = { 0 };
    *out = NULL;
    TL_TRY(tl_file_read(path, &text, diag));
    replayer *m = calloc(1, sizeof *m);
    tl_arena *arena = tl_arena_create(0);
    if (m == NULL || arena == NULL || TL_ARENA_GUARD(arena)) {
        tl_text_free(&text);
        tl_arena_destroy(arena);
        free(m);
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    }
    m->base.type = &replayer_type;
    m->arena = arena;
    m->ledger.last = &m->ledger.first;
    m->turn = m->last = new_part(arena, 0);
    tl_status status = read_recording(m, &text, path, diag);
    tl_text_free(&text);
    m->last->next = new_part(arena, 0); /* what is asked behind the last was never recorded */
    if (m->turn->unused == 0 &&
        m->turn->next != NULL) /* it begins with the mark of its first part */
        next_part(m);
    if (status != TL_OK) {
        replayer_destroy(&m->base);
        return status;
    }
    *out = &m->base;
    return TL_OK;
}
