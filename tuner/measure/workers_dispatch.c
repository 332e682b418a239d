/* tuner/measure/workers_dispatch.c: hands orders to builders and runner, takes their answers, and starts them again
 * when they die. 
 * Builders work ahead of the runner. One of them has the lowest priority (SCHED_IDLE) on the runner's own core: it works while
 * the runner waits for something to time, and no longer. Where builder and runner would share cores (kernels on all cores,
 * or one core only), they take turns instead: a batch is built, then timed. */
#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include "runtime/base/clock.h"
#include "runtime/device/topology.h"
#include "tuner/measure/defect.h"
#include "tuner/measure/workers_private.h"

#define PREPARE_LIMIT_NS ((int64_t)180 * 1000000000)
#define GRACE_NS         ((int64_t)5 * 1000000000)
#define FORGETTING \
    1.001 /* a machine that became slower for good is believed after some hundred candidates */
enum { TURN = 16 }; /* built in one go when builder and runner take turns */

static int64_t in_time(double limit_s)
{
    return tl_clock_ns() + (int64_t)(limit_s * 1.5e9) + GRACE_NS;
}

/* `builder` NULL: to the runner. */
static bool send_config(tl_pump *m, tl_process *process, const tl_builder *builder)
{
    bool is_runner = builder == NULL, in_gaps = !is_runner && builder->in_gaps;
    tl_worker_config config = {
        .target = m->target,
        .host = m->host,
        .threads = m->options.threads,
        .repeats = m->options.repeats,
        .in_gaps = in_gaps,
        .core = in_gaps || (is_runner && m->options.threads == 1) ? m->timer_core : -1,
        .not_core = is_runner ? -1 : m->timer_core,
        .limit_s = is_runner ? m->options.run_limit_s : m->options.build_limit_s,
        .memory_bytes = m->options.memory_bytes,
        .constant_bytes = m->options.constant_bytes,
        .seed = m->options.seed,
        .verify = m->options.verify,
    };
    snprintf(config.device, sizeof config.device, "%s",
             m->options.device != NULL ? m->options.device : "");
    m->message.size = 0;
    tl_worker_config_pack(&config, &m->message);
    return tl_frame_send(process->fd, TL_FRAME_CONFIG, &m->message);
}

static tl_status start_builder(tl_pump *m, tl_builder *b, tl_diag *diag)
{
    b->count = 0;
    TL_TRY(tl_process_start(m->worker, m->args, "builder", &b->process, diag));
    if (!send_config(m, &b->process, b) || !tl_frame_send(b->process.fd, TL_FRAME_START, NULL)) {
        tl_process_end(&b->process);
        return tl_fail(diag, TL_DEVICE, "worker %s ends at once", m->worker);
    }
    return TL_OK;
}

static tl_status start_runner(tl_pump *m, tl_diag *diag)
{
    tl_runner_state *r = &m->runner;
    *r = (tl_runner_state){ .task = -1, .ordered = -1 };
    TL_TRY(tl_process_start(m->worker, m->args, "runner", &r->process, diag));
    if (!send_config(m, &r->process, NULL)) {
        tl_process_end(&r->process);
        return tl_fail(diag, TL_DEVICE, "worker %s ends at once", m->worker);
    }
    return TL_OK;
}

tl_status tl_pump_start(tl_pump *m, tl_diag *diag)
{
    tl_topology machine; /* now: cores may have been taken away since the process started */
    tl_topology_probe(&machine);
    int cores = machine.usable_cores;
    m->overlaps = cores > m->options.threads;
    m->timer_core = cores > 1 ? machine.core_processor[cores - 1] : -1;
    m->builder_count = m->options.builders;
    if (m->builder_count > TL_MAX_BUILDERS)
        m->builder_count = TL_MAX_BUILDERS;
    if (m->builder_count < 1) {
        m->builder_count = 1;
        if (m->overlaps && m->timer_core >= 0 && m->options.threads == 1)
            m->builders[m->builder_count++].in_gaps = true;
    }
    for (int i = 0; i < m->builder_count; i++)
        TL_TRY(start_builder(m, &m->builders[i], diag));
    return start_runner(m, diag);
}

void tl_pump_stop(tl_pump *m)
{
    for (int i = 0; i < m->builder_count; i++)
        if (m->builders[i].process.pid != 0)
            tl_process_end(&m->builders[i].process);
    if (m->runner.process.pid != 0)
        tl_process_end(&m->runner.process);
}

static void count_restart(tl_pump *m)
{
    m->stats.restarts++;
    if (++m->restarts > TL_MAX_RESTARTS)
        m->is_dead = true;
}

/* Its orders go back into the queue; one that was there before is given up. */
static void restart_builder(tl_pump *m, tl_builder *b)
{
    for (int i = 0; i < b->count; i++) {
        tl_job *job = b->orders[i].job;
        if (job == NULL)
            m->tasks[b->orders[i].task]->state = TL_REFERENCE_NONE;
        else if (i == 0 && m->has_answered && ++job->attempts >= TL_MAX_ATTEMPTS)
            tl_pump_finish(m, job, TL_RECORD_WORKER, "its builder died again and again");
        else
            job->state = TL_JOB_QUEUED;
    }
    tl_process_end(&b->process);
    count_restart(m);
    if (!m->is_dead && start_builder(m, b, NULL) != TL_OK)
        m->is_dead = true;
}

static void restart_runner(tl_pump *m)
{
    tl_runner_state *r = &m->runner;
    tl_job *job = r->job;
    if (r->is_preparing)
        tl_pump_fail_task(m, r->task, "running the reference ended the worker");
    if (job != NULL && ++job->attempts >= TL_MAX_ATTEMPTS)
        tl_pump_finish(m, job, TL_RECORD_WORKER, "its runner died again and again");
    else if (job != NULL)
        job->state = TL_JOB_BUILT;
    tl_process_end(&r->process);
    count_restart(m);
    if (!m->is_dead && start_runner(m, NULL) != TL_OK)
        m->is_dead = true;
}

/* ---- orders ---- */

static void order_build(tl_pump *m, tl_builder *b, tl_job *job, int task)
{
    assert(task >= 0 && task < m->task_count);
    tl_task_state *t = m->tasks[task];
    const char *program = t->spec.lowerings[0].program, *trace = t->reference_trace;
    if (job != NULL) {
        trace = job->candidate.trace != NULL ? job->candidate.trace : "";
        program = job->candidate.trace != NULL ? t->spec.lowerings[job->candidate.lowering].program
                                               : job->candidate.program;
        job->state = TL_JOB_BUILDING;
    } else {
        t->state = TL_REFERENCE_ASKED;
    }
    m->message.size = 0;
    tl_pack_int(&m->message, job == NULL);
    tl_pack_text(&m->message, program);
    tl_pack_text(&m->message, trace);
    if (b->count == 0)
        b->deadline_ns = in_time(m->options.build_limit_s);
    b->orders[b->count++] = (tl_order){ job, task };
    if (!tl_frame_send(b->process.fd, TL_FRAME_BUILD, &m->message))
        restart_builder(m, b);
}

/* One that works in gaps gets no order ahead: another might be done with it sooner. */
static tl_builder *least_busy(tl_pump *m, int most)
{
    tl_builder *best = NULL;
    for (int i = 0; i < m->builder_count; i++)
        if (m->builders[i].count < (m->builders[i].in_gaps ? 1 : most) &&
            (best == NULL || m->builders[i].count < best->count))
            best = &m->builders[i];
    return best;
}

/* Results go out in order: who works in gaps takes long and gets what is wanted last. */
static tl_job *next_to_build(const tl_pump *m, const tl_builder *b)
{
    tl_job *found = NULL;
    for (tl_job *job = m->first; job != NULL && (found == NULL || b->in_gaps); job = job->next)
        if (job->state == TL_JOB_QUEUED)
            found = job;
    return found;
}

static void feed_builders(tl_pump *m)
{
    assert(m->builder_count > 0 && m->builder_count <= TL_MAX_BUILDERS);
    int waiting = 0, ahead = m->overlaps ? TL_BUILD_AHEAD : TURN;
    for (tl_job *job = m->first; job != NULL; job = job->next)
        waiting += job->state == TL_JOB_BUILT || job->state == TL_JOB_BUILDING;
    while (waiting < TL_MAX_BUILT && !m->is_dead) {
        tl_builder *b = least_busy(m, ahead);
        tl_job *job = b != NULL ? next_to_build(m, b) : NULL;
        if (job == NULL)
            return;
        tl_task_state *t = m->tasks[job->result.task];
        if (t->state == TL_REFERENCE_BAD) {
            tl_pump_finish(m, job, TL_RECORD_WORKER, t->reason);
        } else if (t->state == TL_REFERENCE_NONE) {
            order_build(m, b, NULL, job->result.task);
        } else {
            order_build(m, b, job, job->result.task);
            waiting++;
        }
    }
}

/* What a child is to have; -1: there is none. */
static int standard_of(const tl_task_state *t)
{
    int i = TL_STANDARDS - 1;
    while (i >= 0 && t->standards[i].built.size == 0)
        i--;
    return i;
}

/* A new child has no standard. */
static void want_standard(tl_pump *m)
{
    tl_runner_state *r = &m->runner;
    r->lacks_standard = r->task >= 0 && standard_of(m->tasks[r->task]) >= 0;
}

static void order_task(tl_pump *m, int task)
{
    assert(task >= 0 && task < m->task_count);
    tl_runner_state *r = &m->runner;
    const tl_task_state *t = m->tasks[task];
    bool ok = !r->is_serving || tl_frame_send(r->process.fd, TL_FRAME_QUIT, NULL);
    m->message.size = 0;
    tl_pack_int(&m->message, task);
    tl_pack_text(&m->message, t->spec.lowerings[0].program);
    tl_pack_int(&m->message, t->spec.lowering_count);
    for (int i = 0; i < t->spec.lowering_count; i++) {
        tl_pack_real(&m->message, t->spec.lowerings[i].rtol);
        tl_pack_real(&m->message, t->spec.lowerings[i].ttol);
    }
    tl_pack_int(&m->message, t->spec.dim_count);
    for (int i = 0; i < t->spec.dim_count; i++)
        tl_pack_int(&m->message, t->spec.dims[i]);
    tl_text_add_bytes(&m->message, t->reference.data, t->reference.size);
    r->task = task;
    r->is_serving = r->is_preparing = true;
    want_standard(m);
    r->deadline_ns = tl_clock_ns() + PREPARE_LIMIT_NS;
    if (!ok || !tl_frame_send(r->process.fd, TL_FRAME_PREPARE, &m->message) ||
        !tl_frame_send(r->process.fd, TL_FRAME_START, NULL))
        restart_runner(m);
}

/* `job` NULL: the standard that the child lacks. */
static void order_run(tl_pump *m, tl_job *job)
{
    tl_runner_state *r = &m->runner;
    const tl_task_state *t = m->tasks[r->task];
    const int number = standard_of(t);
    const tl_standard *standard = &t->standards[number >= 0 ? number : TL_FIRST];
    const tl_text *built = job != NULL ? &job->built : &standard->built;
    int flags = job == NULL ? TL_RUN_INCUMBENT : 0;
    if (job != NULL) {
        flags |= job->candidate.careful ? TL_RUN_CAREFUL : 0;
        flags |= job->candidate.label ? TL_RUN_LABEL : 0;
        snprintf(job->result.standard, sizeof job->result.standard, "%s",
                 number >= 0 ? standard->program : "");
        flags |= job->candidate.checks_only ? TL_RUN_CHECK : 0;
        job->state = TL_JOB_RUNNING;
    }
    m->message.size = 0;
    tl_pack_int(&m->message, flags);
    tl_pack_int(&m->message, job != NULL ? job->candidate.cold : standard->cold);
    tl_pack_int(&m->message, job != NULL ? job->candidate.lowering : 0);
    tl_pack_real(&m->message, standard->score);
    tl_pack_real(&m->message, standard->ratio);
    tl_pack_real(&m->message, m->solitude * FORGETTING);
    tl_pack_int(&m->message, tl_contest_patience(tl_clock_ns() - m->start_ns, m->waited_ns));
    tl_pack_text(&m->message, job != NULL ? job->candidate.trace : "");
    tl_text_add_bytes(&m->message, built->data, built->size);
    r->job = job;
    r->ordered = job != NULL ? -1 : number;
    if (job == NULL)
        r->lacks_standard = false;
    r->deadline_ns = in_time(m->options.run_limit_s);
    if (!tl_frame_send(r->process.fd, TL_FRAME_RUN, &m->message))
        restart_runner(m);
}

/* The job whose turn it is to run: the first that is not done, once it is built. */
static tl_job *next_to_run(const tl_pump *m)
{
    for (tl_job *job = m->first; job != NULL; job = job->next)
        if (job->state != TL_JOB_DONE)
            return job->state == TL_JOB_BUILT ? job : NULL;
    return NULL;
}

static bool is_running(const tl_runner_state *r)
{
    return r->is_preparing || r->ordered >= 0 || r->job != NULL;
}

static void feed_runner(tl_pump *m)
{
    tl_runner_state *r = &m->runner;
    tl_job *job;
    while (!m->is_dead && !is_running(r) && (job = next_to_run(m)) != NULL) {
        tl_task_state *t = m->tasks[job->result.task];
        if (job->is_dropped || t->state == TL_REFERENCE_BAD)
            tl_pump_finish(m, job, TL_RECORD_WORKER, t->reason);
        else if (t->state != TL_REFERENCE_BUILT)
            return; /* its builder died: it comes again */
        else if (r->task != job->result.task)
            order_task(m, job->result.task);
        else
            order_run(m, r->lacks_standard ? NULL : job);
    }
}

static void feed(tl_pump *m)
{
    if (m->overlaps) {
        feed_builders(m);
        feed_runner(m);
        return;
    }
    bool is_building = false;
    for (int i = 0; i < m->builder_count; i++)
        is_building |= m->builders[i].count > 0;
    if (m->is_timing && !is_running(&m->runner) && next_to_run(m) == NULL)
        m->is_timing = false;
    if (!m->is_timing && !is_building) {
        if (next_to_run(m) != NULL)
            m->is_timing = true;
        else
            feed_builders(m);
    }
    if (m->is_timing)
        feed_runner(m);
}

/* ---- answers ---- */

static tl_order take_order(tl_pump *m, tl_builder *b)
{
    tl_order order = b->orders[0];
    memmove(b->orders, b->orders + 1, (size_t)--b->count * sizeof *b->orders);
    b->deadline_ns = in_time(m->options.build_limit_s);
    return order;
}

static void take_built(tl_pump *m, tl_builder *b)
{
    tl_unpacker u = tl_unpack(&m->reply);
    int64_t status = tl_unpack_int(&u);
    const char *reason = tl_unpack_text(&u), *hash = tl_unpack_text(&u);
    double ns = tl_unpack_real(&u);
    if (u.failed || status < 0 || status >= TL_RECORD_STATUS_COUNT || b->count == 0) {
        restart_builder(m, b);
        return;
    }
    tl_order order = take_order(m, b);
    tl_text *built = order.job != NULL ? &order.job->built : &m->tasks[order.task]->reference;
    m->stats.build_ns += ns;
    built->size = 0;
    tl_text_add_bytes(built, u.data + u.at, u.size - u.at);
    if (order.job == NULL) {
        if (status == TL_RECORD_OK)
            m->tasks[order.task]->state = TL_REFERENCE_BUILT;
        else
            tl_pump_fail_task(m, order.task, reason);
        return;
    }
    order.job->result.build_ns = ns;
    snprintf(order.job->result.program, sizeof order.job->result.program, "%.16s", hash);
    if (status == TL_RECORD_OK)
        order.job->state = TL_JOB_BUILT;
    else
        tl_pump_finish(m, order.job, (tl_record_status)status, reason);
}

static bool read_times(tl_unpacker *u, tl_result *result)
{
    size_t size;
    const void *times = tl_unpack_bytes(u, &size);
    if (u->failed || size > sizeof result->times_ns)
        return false;
    result->time_count = (int)(size / sizeof *result->times_ns);
    if (size > 0)
        memcpy(result->times_ns, times, size);
    return true;
}

/* Each child looks at the machine anew; the best that any saw counts. */
static void raise_to(double *best, double seen)
{
    if (seen > *best)
        *best = seen;
}

static bool read_result(tl_pump *m, tl_result *result, tl_record_status *status,
                        const char **reason)
{
    tl_unpacker u = tl_unpack(&m->reply);
    int64_t word = tl_unpack_int(&u);
    *reason = tl_unpack_text(&u);
    result->max_error = tl_unpack_real(&u);
    result->check_ns = tl_unpack_real(&u);
    result->run_ns = tl_unpack_real(&u);
    result->time_ns = tl_unpack_real(&u);
    result->median_ns = tl_unpack_real(&u);
    result->incumbent_ns = tl_unpack_real(&u);
    result->score_ns = tl_unpack_real(&u);
    result->promise = tl_unpack_real(&u);
    result->alone = tl_unpack_real(&u);
    result->hopeless = tl_unpack_int(&u) != 0;
    result->disturbed = tl_unpack_int(&u) != 0;
    result->crowned = tl_unpack_int(&u) != 0;
    int64_t cold = tl_unpack_int(&u);
    m->stats.discarded += tl_unpack_int(&u);
    result->ratio = tl_unpack_real(&u);
    result->ratio_error = tl_unpack_real(&u);
    result->turns = (int)tl_unpack_int(&u);
    int64_t censored = tl_unpack_int(&u);
    raise_to(&m->stats.peak_gflops, tl_unpack_real(&u));
    raise_to(&m->stats.l2_gflops, tl_unpack_real(&u));
    raise_to(&m->stats.copy_gbs, tl_unpack_real(&u));
    m->solitude = tl_unpack_real(&u);
    m->waited_ns += tl_unpack_int(&u);
    *status = (tl_record_status)word;
    result->cold = (tl_cold)cold;
    result->censored = censored >= 0 && censored < TL_CENSORED_COUNT ? (tl_censored)censored : 0;
    return read_times(&u, result) && word >= 0 && word < TL_RECORD_STATUS_COUNT && cold >= 0 &&
           cold < TL_COLD_COUNT && censored >= 0 && censored < TL_CENSORED_COUNT;
}

static void finish_run(tl_pump *m, tl_job *job, tl_record_status status, const char *reason)
{
    tl_task_state *t = m->tasks[job->result.task];
    if (job->result.crowned) {
        tl_standard *s =
            &t->standards[t->standards[TL_FIRST].built.size > 0 ? TL_INCUMBENT : TL_FIRST];
        s->built.size = 0;
        tl_text_add_bytes(&s->built, job->built.data, job->built.size);
        s->score = job->result.score_ns;
        s->ratio = job->result.ratio;
        memcpy(s->program, job->result.program, sizeof s->program);
        s->cold = job->result.cold;
    }
    tl_pump_finish(m, job, status, reason);
    bool is_defect = status == TL_RECORD_WRONG || status == TL_RECORD_CRASH ||
                     status == TL_RECORD_ILLEGAL_INSTRUCTION;
    if (is_defect && m->defects != NULL)
        tl_defect_write(m->defects, &t->spec, &job->candidate, &job->result);
}

/* The standard that was sent ran before, and something is wrong with it now. */
static void drop_standard(tl_pump *m)
{
    m->tasks[m->runner.task]->standards[m->runner.ordered].built.size = 0;
    want_standard(m);
}

static void take_ran(tl_pump *m)
{
    tl_runner_state *r = &m->runner;
    tl_job *job = r->job;
    tl_result ignored = { 0 };
    tl_record_status status;
    const char *reason;
    if (!is_running(r) ||
        !read_result(m, job != NULL ? &job->result : &ignored, &status, &reason)) {
        restart_runner(m);
        return;
    }
    r->job = NULL;
    if (job != NULL)
        finish_run(m, job, status, reason);
    else if (status != TL_RECORD_OK)
        drop_standard(m);
    r->ordered = -1;
}

static void take_ready(tl_pump *m)
{
    tl_unpacker u = tl_unpack(&m->reply);
    bool is_ready = tl_unpack_int(&u) != 0;
    const char *reason = tl_unpack_text(&u);
    m->runner.is_preparing = false;
    m->stats.reference_ns += tl_unpack_real(&u);
    if (!is_ready || u.failed) {
        tl_pump_fail_task(m, m->runner.task, u.failed ? "its answer was damaged" : reason);
        m->runner.task = -1;
    }
}

/* A child died in its job; the worker has forked the next one already. */
static void take_death(tl_pump *m, tl_builder *b)
{
    char reason[300];
    tl_unpacker u = tl_unpack(&m->reply);
    int signal = (int)tl_unpack_int(&u), code = (int)tl_unpack_int(&u);
    int64_t bytes = tl_unpack_int(&u);
    tl_record_status status = tl_pump_cause(m, signal, code, bytes, reason, sizeof reason);
    m->stats.deaths++;
    if (b != NULL) {
        if (b->count == 0)
            return;
        tl_order order = take_order(m, b);
        if (order.job != NULL)
            tl_pump_finish(m, order.job, status, reason);
        else
            tl_pump_fail_task(m, order.task, reason);
        return;
    }
    tl_runner_state *r = &m->runner;
    tl_job *job = r->job;
    if (r->ordered >= 0)
        drop_standard(m);
    r->job = NULL;
    r->ordered = -1;
    want_standard(m);
    if (job != NULL)
        finish_run(m, job, status, reason);
}

static void take_answer(tl_pump *m, tl_builder *b)
{
    tl_frame_kind kind;
    int fd = b != NULL ? b->process.fd : m->runner.process.fd;
    bool ok = tl_frame_receive(fd, &kind, &m->reply);
    if (ok) {
        m->has_answered = true;
        m->restarts = 0;
    }
    if (ok && kind == TL_FRAME_DIED)
        take_death(m, b);
    else if (ok && kind == TL_FRAME_BUILT && b != NULL)
        take_built(m, b);
    else if (ok && kind == TL_FRAME_RAN && b == NULL)
        take_ran(m);
    else if (ok && kind == TL_FRAME_READY && b == NULL)
        take_ready(m);
    else if (b != NULL)
        restart_builder(m, b);
    else
        restart_runner(m);
}

/* A worker whose own alarm did not help. */
static void enforce_deadlines(tl_pump *m)
{
    static const char reason[] = "it hung, and its worker with it";
    int64_t now = tl_clock_ns();
    for (int i = 0; i < m->builder_count; i++) {
        tl_builder *b = &m->builders[i];
        if (b->count == 0 || now < b->deadline_ns)
            continue;
        tl_order order = take_order(m, b);
        if (order.job != NULL)
            tl_pump_finish(m, order.job, TL_RECORD_TIMEOUT, reason);
        else
            tl_pump_fail_task(m, order.task, reason);
        restart_builder(m, b);
    }
    tl_runner_state *r = &m->runner;
    if (!is_running(r) || now < r->deadline_ns)
        return;
    if (r->job != NULL)
        tl_pump_finish(m, r->job, TL_RECORD_TIMEOUT, reason);
    r->job = NULL;
    restart_runner(m);
}

static int64_t time_left(const tl_pump *m, int64_t timeout_ns)
{
    int64_t now = tl_clock_ns(), left = timeout_ns;
    for (int i = 0; i <= m->builder_count; i++) {
        bool is_busy = i < m->builder_count ? m->builders[i].count > 0 : is_running(&m->runner);
        int64_t deadline =
            (i < m->builder_count ? m->builders[i].deadline_ns : m->runner.deadline_ns) - now;
        if (is_busy && (left < 0 || deadline < left))
            left = deadline > 0 ? deadline : 0;
    }
    return left;
}

void tl_pump_step(tl_pump *m, int64_t timeout_ns)
{
    assert(m->builder_count <= TL_MAX_BUILDERS);
    struct pollfd fds[TL_MAX_BUILDERS + 1];
    feed(m);
    if (m->is_dead)
        return;
    for (int i = 0; i < m->builder_count; i++)
        fds[i] = (struct pollfd){ .fd = m->builders[i].process.fd, .events = POLLIN };
    fds[m->builder_count] = (struct pollfd){ .fd = m->runner.process.fd, .events = POLLIN };
    int64_t left = time_left(m, timeout_ns);
    struct timespec wait = { .tv_sec = left / 1000000000, .tv_nsec = left % 1000000000 };
    int ready = ppoll(fds, (nfds_t)m->builder_count + 1, left < 0 ? NULL : &wait, NULL);
    for (int i = 0; ready > 0 && i <= m->builder_count && !m->is_dead; i++)
        if (fds[i].revents != 0)
            take_answer(m, i < m->builder_count ? &m->builders[i] : NULL);
    enforce_deadlines(m);
    if (!m->is_dead)
        feed(m);
}
