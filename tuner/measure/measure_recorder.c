/* tuner/measure/measure_recorder.c: writes down the answers of another measurer: a line of JSON each, flushed at once. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tuner/measure/measure_ledger.h"
#include "tuner/measure/measure_private.h"
#include "tuner/records/record_private.h"

typedef struct {
    tl_measurer base;
    tl_measurer *inner;
    tl_ledger ledger;
    FILE *file;
    bool failed;
    /* Something was submitted since it was made or everything forgotten: a part of the recording. */
    bool began;
} recorder;

static void print_result(const char *key, const char *workload, const tl_result *r, tl_text *out)
{
    assert(key[0] != '\0');
    tl_text_format(out, "{\"record\":\"measurement\",\"key\":\"%s\",\"workload\":", key);
    tl_json_print(workload, out);
    tl_text_format(out, ",\"status\":\"%s\",\"reason\":", tl_record_status_infos[r->status].text);
    tl_json_print(r->reason, out);
    tl_text_format(out, ",\"program\":\"%s\"", r->program);
    const struct {
        const char *name;
        double value;
    } numbers[] = { { "time_ns", r->time_ns },
                    { "median_ns", r->median_ns },
                    { "incumbent_ns", r->incumbent_ns },
                    { "score_ns", r->score_ns },
                    { "max_error", r->max_error },
                    { "build_ns", r->build_ns },
                    { "check_ns", r->check_ns },
                    { "run_ns", r->run_ns },
                    { "promise", r->promise },
                    { "alone", r->alone },
                    { "ratio", r->ratio },
                    { "ratio_error", r->ratio_error } };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        tl_text_format(out, ",\"%s\":", numbers[i].name);
        tl_real_print(numbers[i].value < 1e300 ? numbers[i].value : 1e300, out);
    }
    tl_text_format(out, ",\"turns\":%d,\"standard\":\"%s\",\"censored\":\"%s\"", r->turns,
                   r->standard, tl_censored_texts[r->censored]);
    tl_text_add(out, ",\"times_ns\":[");
    for (int i = 0; i < r->time_count; i++) {
        if (i > 0)
            tl_text_add(out, ",");
        tl_real_print(r->times_ns[i], out);
    }
    tl_text_format(out,
                   "],\"hopeless\":%s,\"disturbed\":%s,\"cold\":\"%s\",\"crowned\":%s,"
                   "\"finished_ns\":%lld}\n",
                   r->hopeless ? "true" : "false", r->disturbed ? "true" : "false",
                   tl_cold_infos[r->cold].text, r->crowned ? "true" : "false",
                   (long long)r->finished_ns);
}

static void recorder_destroy(tl_measurer *self)
{
    recorder *m = (recorder *)self;
    tl_measurer_destroy(m->inner);
    tl_ledger_free(&m->ledger);
    fclose(m->file);
    free(m);
}

static tl_status recorder_add_task(tl_measurer *self, const tl_measure_task *spec, int *out,
                                   tl_diag *diag)
{
    recorder *m = (recorder *)self;
    TL_TRY(tl_measurer_add_task(m->inner, spec, out, diag));
    return tl_ledger_add_task(&m->ledger, spec, diag);
}

static tl_status write_line(recorder *m, const tl_text *line, tl_diag *diag)
{
    if (!m->failed && (line->failed || fwrite(line->data, 1, line->size, m->file) != line->size ||
                       fflush(m->file) != 0))
        m->failed = true;
    if (m->failed)
        return tl_fail(diag, TL_IO, "the recording cannot be written: %s", strerror(errno));
    return TL_OK;
}

/* Where a run begins, and when: what comes before it on the measurer's clock is no time of it. */
static tl_status begin_part(recorder *m, tl_diag *diag)
{
    tl_text line = { 0 };
    tl_text_format(&line, "{\"record\":\"part\",\"clock_ns\":%lld}\n",
                   (long long)tl_measurer_clock(m->inner));
    tl_status status = write_line(m, &line, diag);
    tl_text_free(&line);
    m->began = true;
    return status;
}

static tl_status recorder_submit(tl_measurer *self, int task, const tl_candidate *candidates,
                                 int count, int64_t *ticket, tl_diag *diag)
{
    recorder *m = (recorder *)self;
    if (!m->began)
        TL_TRY(begin_part(m, diag));
    TL_TRY(tl_measurer_submit(m->inner, task, candidates, count, ticket, diag));
    return tl_ledger_ask(&m->ledger, task, candidates, count, *ticket, diag);
}

tl_status tl_recorder_note(tl_measurer *self, const char *line, tl_diag *diag)
{
    tl_text text = { 0 };
    tl_text_format(&text, "%s\n", line);
    tl_status status = write_line((recorder *)self, &text, diag);
    tl_text_free(&text);
    return status;
}

static tl_status recorder_next(tl_measurer *self, double timeout_s, tl_result *out, tl_diag *diag)
{
    recorder *m = (recorder *)self;
    TL_TRY(tl_measurer_next(m->inner, timeout_s, out, diag));
    while (m->ledger.first != NULL && m->ledger.first->ticket < out->ticket)
        tl_ledger_drop_first(&m->ledger);
    tl_asked *a = m->ledger.first;
    if (a == NULL || a->ticket != out->ticket)
        return TL_OK;
    tl_text line = { 0 };
    print_result(a->key, m->ledger.tasks[out->task].workload, out, &line);
    tl_status status = write_line(m, &line, diag);
    tl_text_free(&line);
    tl_ledger_drop_first(&m->ledger);
    return status;
}

static void recorder_pump(tl_measurer *self)
{
    tl_measurer_pump(((recorder *)self)->inner);
}

static int64_t recorder_queued(const tl_measurer *self)
{
    return tl_measurer_queued(((const recorder *)self)->inner);
}

static void recorder_forget(tl_measurer *self, int task)
{
    recorder *m = (recorder *)self;
    tl_measurer_forget(m->inner, task);
    tl_ledger_forget(&m->ledger, task);
    m->began &= task >= 0;
}

static void recorder_leave_core(const tl_measurer *self)
{
    tl_measurer_leave_core(((const recorder *)self)->inner);
}

static int64_t recorder_clock(const tl_measurer *self)
{
    return tl_measurer_clock(((const recorder *)self)->inner);
}

static void recorder_stats(const tl_measurer *self, tl_measure_stats *out)
{
    tl_measurer_stats(((const recorder *)self)->inner, out);
}

static const tl_measurer_type recorder_type = {
    .destroy = recorder_destroy,
    .add_task = recorder_add_task,
    .submit = recorder_submit,
    .next = recorder_next,
    .pump = recorder_pump,
    .queued = recorder_queued,
    .forget = recorder_forget,
    .leave_core = recorder_leave_core,
    .clock = recorder_clock,
    .stats = recorder_stats,
};

tl_status tl_recorder_create(tl_measurer *inner, const char *path, tl_measurer **out, tl_diag *diag)
{
    recorder *m = calloc(1, sizeof *m);
    *out = NULL;
    if (m == NULL || (m->file = fopen(path, "w")) == NULL) {
        tl_status status = m == NULL ? tl_fail(diag, TL_NO_MEMORY, "out of memory")
                                     : tl_fail(diag, TL_IO, "%s: %s", path, strerror(errno));
        free(m);
        return status;
    }
    m->base.type = &recorder_type;
    m->inner = inner;
    m->ledger.last = &m->ledger.first;
    *out = &m->base;
    return TL_OK;
}
