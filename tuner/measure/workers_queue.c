/* tuner/measure/workers_queue.c: the measurer that uses worker processes: its tasks, its queue, its results. */
#include <assert.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ir/program/program.h"
#include "runtime/base/array.h"
#include "runtime/base/clock.h"
#include "schedule/sketch/sketch.h"
#include "schedule/trace.h"
#include "tuner/measure/workers_private.h"

enum { DEFAULT_REPEATS = 11, DEFAULT_LIMIT_S = 10 };
/* Sums of so many terms are reordered for the reference: the naive program would take 25 ms, up to a second when it misses the
 * caches. Smaller ones are trusted more as they are. */
enum { MANY_TERMS = 1 << 24 };
#define DEFAULT_MEMORY ((int64_t)4 << 30)

static const char *const default_args[] = { "worker", NULL };

void tl_pump_finish(tl_pump *m, tl_job *job, tl_record_status status, const char *reason)
{
    assert(status < TL_RECORD_STATUS_COUNT);
    tl_result *r = &job->result;
    if (job->state == TL_JOB_DONE)
        return;
    job->state = TL_JOB_DONE;
    r->status = status;
    size_t n = 0;
    for (; *reason && n + 1 < sizeof r->reason; reason++)
        r->reason[n++] =
            (char)(*reason == '\n' || (*reason >= ' ' && *reason <= '~') ? *reason : '?');
    r->reason[n] = '\0';
    r->finished_ns = tl_clock_ns() - m->start_ns;
    m->stats.results++;
    m->stats.by_status[status]++;
    m->stats.check_ns += r->check_ns;
    m->stats.run_ns += r->run_ns;
    tl_text_free(&job->built);
}

void tl_pump_fail_task(tl_pump *m, int task, const char *reason)
{
    tl_task_state *t = m->tasks[task];
    t->state = TL_REFERENCE_BAD;
    snprintf(t->reason, sizeof t->reason, "the reference of the task cannot be had: %.340s",
             reason);
}

tl_record_status tl_pump_cause(const tl_pump *m, int signal_number, int code, int64_t bytes,
                               char *reason, size_t size)
{
    int64_t limit = m->options.memory_bytes;
    if (signal_number == SIGALRM || signal_number == SIGXCPU) {
        snprintf(reason, size, "it took longer than the limit");
        return TL_RECORD_TIMEOUT;
    }
    if (code == TL_CHILD_LOST_DEVICE) {
        snprintf(reason, size,
                 "the device was lost while it ran: an access to memory that is not there, or a "
                 "fault of hardware");
        return TL_RECORD_CRASH;
    }
    /* a driver takes address space and memory of its own */
    bool took_much = m->options.device == NULL && bytes > limit - limit / 4;
    if (took_much || signal_number == SIGKILL) {
        snprintf(reason, size, "it took %lld MB of memory (limit %lld) and died of signal %d",
                 (long long)(bytes >> 20), (long long)(limit >> 20), signal_number);
        return TL_RECORD_MEMORY;
    }
    if (signal_number == SIGILL) {
        snprintf(reason, size, "the processor does not know an instruction (SIGILL)");
        return TL_RECORD_ILLEGAL_INSTRUCTION;
    }
    if (signal_number == 0)
        snprintf(reason, size, "its process ended by itself with status %d", code);
    else
        snprintf(reason, size, "its process died of signal %d (%s)", signal_number,
                 strsignal(signal_number));
    return TL_RECORD_CRASH;
}

static tl_status trace_reference(tl_task_state *t, const tl_program *program,
                                 const tl_target *target, tl_diag *diag)
{
    tl_schedule *s = tl_schedule_create(t->arena, program, target, false);
    TL_TRY(tl_schedule_reference(s, MANY_TERMS, diag));
    t->reference_trace = tl_trace_text(t->arena, tl_schedule_trace(s));
    return TL_OK;
}

static tl_status copy_task(tl_task_state *t, const tl_measure_task *spec, const tl_target *target,
                           tl_diag *diag)
{
    assert(spec->lowering_count > 0 && spec->lowering_count <= TL_MAX_LOWERINGS);
    t->spec = *spec;
    t->spec.name = tl_arena_strdup(t->arena, spec->name != NULL ? spec->name : "kernel");
    t->spec.workload = tl_arena_strdup(t->arena, spec->workload != NULL ? spec->workload : "");
    tl_measure_lowering *lowerings =
        TL_NEW_ARRAY(t->arena, tl_measure_lowering, spec->lowering_count);
    for (int i = 0; i < spec->lowering_count; i++) {
        tl_program *program;
        lowerings[i] = spec->lowerings[i];
        lowerings[i].name = tl_arena_strdup(t->arena, spec->lowerings[i].name);
        lowerings[i].program = tl_arena_strdup(t->arena, spec->lowerings[i].program);
        TL_TRY(tl_program_parse(t->arena, lowerings[i].program, lowerings[i].name, &program, diag));
        if (program->dim_count != spec->dim_count)
            return tl_fail(diag, TL_BAD_ARGUMENT, "task %s: its program has %d dims, %d are given",
                           t->spec.name, program->dim_count, spec->dim_count);
        if (lowerings[i].rtol == 0 && lowerings[i].ttol == 0)
            tl_measure_bound(lowerings[i].program, &lowerings[i].rtol, &lowerings[i].ttol);
        if (i == 0)
            TL_TRY(trace_reference(t, program, target, diag));
    }
    t->spec.lowerings = lowerings;
    t->spec.dims = tl_arena_copy(t->arena, spec->dims, (size_t)spec->dim_count * sizeof(int64_t),
                                 _Alignof(int64_t));
    return TL_OK;
}

static void free_task(tl_task_state *t)
{
    tl_text_free(&t->reference);
    for (int i = 0; i < TL_STANDARDS; i++)
        tl_text_free(&t->standards[i].built);
    tl_arena_destroy(t->arena);
    free(t);
}

static tl_status add_task(tl_measurer *self, const tl_measure_task *spec, int *out, tl_diag *diag)
{
    tl_pump *m = (tl_pump *)self;
    if (spec->lowering_count < 1 || spec->lowering_count > TL_MAX_LOWERINGS)
        return tl_fail(diag, TL_BAD_ARGUMENT, "a task has 1 to %d lowerings, not %d",
                       TL_MAX_LOWERINGS, spec->lowering_count);
    tl_task_state *volatile t = calloc(1, sizeof *t);
    tl_arena *arena = tl_arena_create(0);
    bool has_room = TL_HEAP_ROOM(m->tasks, m->task_count, m->task_capacity);
    if (t == NULL || !has_room || arena == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        free(t);
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    }
    t->arena = arena;
    tl_status status = copy_task(t, spec, &m->host, diag);
    if (status != TL_OK) {
        free_task(t);
        return status;
    }
    *out = m->task_count;
    m->tasks[m->task_count++] = t;
    return TL_OK;
}

static void free_job(tl_job *job)
{
    free((char *)job->candidate.trace);
    free((char *)job->candidate.program);
    tl_text_free(&job->built);
    free(job);
}

static tl_job *make_job(const tl_candidate *c)
{
    tl_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return NULL;
    job->candidate = *c;
    job->candidate.trace = c->trace != NULL ? strdup(c->trace) : NULL;
    job->candidate.program = c->program != NULL ? strdup(c->program) : NULL;
    if ((c->trace != NULL && job->candidate.trace == NULL) ||
        (c->program != NULL && job->candidate.program == NULL)) {
        free_job(job);
        return NULL;
    }
    return job;
}

static tl_status submit(tl_measurer *self, int task, const tl_candidate *candidates, int count,
                        int64_t *ticket, tl_diag *diag)
{
    tl_pump *m = (tl_pump *)self;
    if (task < 0 || task >= m->task_count)
        return tl_fail(diag, TL_BAD_ARGUMENT, "there is no task %d", task);
    for (int i = 0; i < count; i++)
        if (candidates[i].lowering < 0 ||
            candidates[i].lowering >= m->tasks[task]->spec.lowering_count ||
            (candidates[i].trace == NULL && candidates[i].program == NULL))
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "candidate %d of task %d: no such lowering, or no trace", i, task);
    *ticket = m->next_ticket;
    for (int i = 0; i < count; i++) {
        tl_job *job = make_job(&candidates[i]);
        if (job == NULL)
            return tl_fail(diag, TL_NO_MEMORY, "out of memory");
        job->result.ticket = m->next_ticket++;
        job->result.task = task;
        job->result.cold = candidates[i].cold; /* of one that fails before it is timed, too */
        *m->last = job;
        m->last = &job->next;
        m->queued++;
    }
    return TL_OK;
}

/* Takes the first job off the queue. */
static tl_job *pop(tl_pump *m)
{
    assert(m->first != NULL);
    tl_job *job = m->first;
    m->first = job->next;
    if (m->first == NULL)
        m->last = &m->first;
    m->queued -= !job->is_dropped;
    return job;
}

static tl_status next(tl_measurer *self, double timeout_s, tl_result *out, tl_diag *diag)
{
    tl_pump *m = (tl_pump *)self;
    int64_t end = tl_clock_ns() + (timeout_s < 1e9 ? (int64_t)(timeout_s * 1e9) : (int64_t)1e18);
    for (;;) {
        while (m->first != NULL && m->first->state == TL_JOB_DONE) {
            tl_job *job = pop(m);
            bool is_wanted = !job->is_dropped;
            *out = job->result;
            free_job(job);
            if (is_wanted)
                return TL_OK;
        }
        if (m->is_dead)
            return tl_fail(diag, TL_DEVICE, "worker %s ends at once, whenever it is started",
                           m->worker);
        if (m->queued == 0)
            return tl_fail(diag, TL_BUDGET, "nothing is queued");
        int64_t left = timeout_s < 0 ? -1 : end - tl_clock_ns();
        if (timeout_s >= 0 && left <= 0) {
            tl_pump_step(m, 0);
            if (m->first == NULL || m->first->state != TL_JOB_DONE)
                return tl_fail(diag, TL_BUDGET, "no result in %.3f s", timeout_s);
            continue;
        }
        tl_pump_step(m, left);
    }
}

static void pump(tl_measurer *self)
{
    tl_pump *m = (tl_pump *)self;
    if (!m->is_dead && m->first != NULL)
        tl_pump_step(m, 0);
}

static int64_t queued(const tl_measurer *self)
{
    return ((const tl_pump *)self)->queued;
}

/* What no worker has goes at once; the rest is thrown away when it comes. */
static void forget(tl_measurer *self, int task)
{
    tl_pump *m = (tl_pump *)self;
    tl_job **link = &m->first;
    while (*link != NULL) {
        tl_job *job = *link;
        bool is_free = job->state != TL_JOB_BUILDING && job->state != TL_JOB_RUNNING;
        if (job->is_dropped || (task >= 0 && job->result.task != task)) {
            link = &job->next;
            continue;
        }
        m->queued--;
        if (is_free) {
            *link = job->next;
            free_job(job);
        } else {
            job->is_dropped = true;
            link = &job->next;
        }
    }
    m->last = link;
}

static void leave_core(const tl_measurer *self)
{
    const tl_pump *m = (const tl_pump *)self;
    cpu_set_t set;
    if (m->timer_core < 0 || m->options.threads > 1 ||
        sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) < 2)
        return;
    CPU_CLR((size_t)m->timer_core, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static int64_t read_clock(const tl_measurer *self)
{
    return tl_clock_ns() - ((const tl_pump *)self)->start_ns;
}

static void get_stats(const tl_measurer *self, tl_measure_stats *out)
{
    *out = ((const tl_pump *)self)->stats;
}

static void destroy(tl_measurer *self)
{
    tl_pump *m = (tl_pump *)self;
    tl_pump_stop(m);
    while (m->first != NULL)
        free_job(pop(m));
    for (int i = 0; i < m->task_count; i++)
        free_task(m->tasks[i]);
    free(m->tasks);
    free(m->worker);
    free(m->defects);
    tl_text_free(&m->message);
    tl_text_free(&m->reply);
    free(m);
}

static const tl_measurer_type pump_type = {
    .destroy = destroy,
    .add_task = add_task,
    .submit = submit,
    .next = next,
    .pump = pump,
    .queued = queued,
    .forget = forget,
    .leave_core = leave_core,
    .clock = read_clock,
    .stats = get_stats,
};

tl_status tl_measurer_create(const tl_measure_options *options, tl_measurer **out, tl_diag *diag)
{
    *out = NULL;
    if (options->worker == NULL || options->target == NULL || options->threads < 0 ||
        options->threads > TL_MAX_THREADS || options->repeats < 0 || options->repeats > 20)
        return tl_fail(
            diag, TL_BAD_ARGUMENT,
            "a measurer needs a worker, a target, 1 to %d threads and at most 20 repeats",
            TL_MAX_THREADS);
    tl_pump *m = calloc(1, sizeof *m);
    if (m == NULL || (m->worker = strdup(options->worker)) == NULL ||
        (options->defects != NULL && (m->defects = strdup(options->defects)) == NULL)) {
        if (m != NULL)
            free(m->worker);
        free(m);
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    }
    m->base.type = &pump_type;
    m->options = *options;
    m->target = *options->target;
    m->host = options->host != NULL ? *options->host : *options->target;
    m->args = options->worker_args != NULL ? options->worker_args : default_args;
    m->last = &m->first;
    m->start_ns = tl_clock_ns();
    m->runner.task = m->runner.ordered = -1;
    tl_measure_options *o = &m->options;
    o->threads = o->threads > 0 ? o->threads : 1;
    o->repeats = o->repeats > 0 ? o->repeats : DEFAULT_REPEATS;
    o->build_limit_s = o->build_limit_s > 0 ? o->build_limit_s : DEFAULT_LIMIT_S;
    o->run_limit_s = o->run_limit_s > 0 ? o->run_limit_s : DEFAULT_LIMIT_S;
    o->memory_bytes = o->memory_bytes > 0 ? o->memory_bytes : DEFAULT_MEMORY;
    tl_status status = tl_pump_start(m, diag);
    if (status != TL_OK) {
        destroy(&m->base);
        return status;
    }
    *out = &m->base;
    return TL_OK;
}
