/* runtime/executable/runner_walk.c: running the steps of an executable: the threads of a team walk its regions together.
 *
 * A flat list is a list of phases, with a meeting behind those that another thread waits for: two neighbouring phases of one
 * iteration each run on the same thread and need none. At a loop or a choice all meet, the first thread decides where to go,
 * and all meet again to learn it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/checked.h"
#include "runtime/base/clock.h"
#include "runtime/base/float_mode.h"
#include "runtime/executable/runner_private.h"

/* This thread's part of a call: so many iterations. */
static int64_t run_call(const tl_runner *r, int c, tl_team *team)
{
    assert(c >= 0 && team->thread < team->threads);
    const tl_phase_call *call = &r->calls[c];
    int64_t done = 0;

    if (call->piece > 0) {
        tl_shared shared = tl_team_share(team, call->extent, call->piece);
        for (tl_part part; tl_team_take(team, &shared, &part); done += part.end - part.begin)
            call->fn(call->args, part.begin, part.end, team->thread);
        return done;
    }
    tl_part part = team->threads == r->threads
                       ? r->ranges[(size_t)c * (size_t)r->threads + (size_t)team->thread]
                       : tl_team_range(call->extent, team->thread, team->threads);
    if (part.begin < part.end)
        call->fn(call->args, part.begin, part.end, team->thread);
    return part.end - part.begin;
}

/* The same, and the time that an iteration takes is remembered. */
static void watch_call(tl_runner *r, int c, tl_team *team)
{
    tl_phase_call *call = &r->calls[c];
    int64_t before = tl_clock_ns(), done = run_call(r, c, team);
    double each = done > 0 ? (double)(tl_clock_ns() - before) / (double)done : 0;

    if (each > 0 && (call->least_ns == 0 || each < call->least_ns))
        call->least_ns = each;
}

/* ---- the tree ---- */

/* One walk, by a team or, without one, by a caller who has a team run each step. */
typedef struct walk walk;
struct walk {
    tl_runner *runner;
    void (*run_step)(walk *w, tl_team *team, int step);
    int64_t *step_ns;     /* [step], or NULL */
    int64_t before;       /* of thread 0: the end of what was timed last */
    tl_run_event *events; /* [call*threads + thread]; end_ns 0: that thread had no part in it */
    tl_step_hook *hook;
    void *user;
    bool is_watched; /* how long iterations take is remembered */
};

static void walk_calls(walk *w, tl_team *team, int from, int to)
{
    tl_runner *r = w->runner;

    for (int c = from; c < to; c++) {
        if (w->is_watched && team->thread == 0)
            watch_call(r, c, team);
        else
            run_call(r, c, team);
        if (r->calls[c].meet)
            tl_team_barrier(team);
    }
}

static void meet(tl_team *team)
{
    if (team != NULL)
        tl_team_barrier(team);
}

static bool leads(const tl_team *team)
{
    return team == NULL || team->thread == 0;
}

static bool holds(const void *truth)
{
    return truth == NULL || *(const unsigned char *)truth != 0;
}

static int64_t number_at(const void *data)
{
    int64_t number;
    memcpy(&number, data, sizeof number);
    return number;
}

/* Whether a loop takes the turn that its counter is at. */
static bool wants_turn(tl_runner *r, int s)
{
    void **values = &r->slots[r->first_slot[s]];
    const tl_turns *t = &r->turns[s];
    bool goes_on = holds(values[t->turn == 0 ? TL_LOOP_ENTERS : TL_LOOP_AGAIN]) &&
                   (values[TL_LOOP_WANTED] == NULL || t->turn < number_at(values[TL_LOOP_WANTED]));
    if (goes_on && t->turn >= t->most)
        r->stopped = s;
    return goes_on && r->stopped < 0;
}

static void decide_turn(tl_runner *r, int s)
{
    void **values = &r->slots[r->first_slot[s]];
    tl_turns *t = &r->turns[s];

    t->goes_on = wants_turn(r, s);
    memcpy(values[TL_LOOP_TURN], &t->turn, sizeof t->turn);
    if (!t->goes_on && values[TL_LOOP_TAKEN] != NULL)
        memcpy(values[TL_LOOP_TAKEN], &t->turn, sizeof t->turn);
}

static void charge(walk *w, tl_team *team, int s)
{
    if (w->step_ns == NULL || !leads(team))
        return;
    int64_t now = tl_clock_ns();
    w->step_ns[s] += now - w->before;
    w->before = now;
}

static bool walk_list(walk *w, tl_team *team, int from, int to);

static bool walk_loop(walk *w, tl_team *team, int s)
{
    tl_runner *r = w->runner;
    tl_turns *t = &r->turns[s];

    for (bool first = true;; first = false) {
        meet(team);
        if (leads(team)) {
            t->turn = first ? 0 : t->turn + 1;
            decide_turn(r, s);
        }
        meet(team);
        charge(w, team, s);
        if (r->stopped >= 0)
            return false;
        if (!t->goes_on)
            return true;
        if (!walk_list(w, team, s + 1, s + 1 + r->steps[s].body))
            return false;
    }
}

static bool walk_choice(walk *w, tl_team *team, int s)
{
    tl_runner *r = w->runner;
    int body = s + 1 + r->steps[s].body;

    meet(team);
    if (leads(team))
        r->turns[s].goes_on = holds(r->slots[r->first_slot[s]]);
    meet(team);
    charge(w, team, s);
    if (!(r->turns[s].goes_on ? walk_list(w, team, s + 1, body)
                              : walk_list(w, team, body, body + r->steps[s].other)))
        return false;
    meet(team); /* the next step may write what this branch still reads */
    return true;
}

/* False: a loop was stopped. As deep as the tree is (TL_REGION_DEPTH). */
static bool walk_list(walk *w, tl_team *team, int from, int to)
{
    const tl_executable_step *steps = w->runner->steps;

    for (int s = from; s < to; s = tl_step_end(steps, s)) {
        if (steps[s].kernel == TL_STEP_LOOP     ? !walk_loop(w, team, s)
            : steps[s].kernel == TL_STEP_CHOICE ? !walk_choice(w, team, s)
                                                : false)
            return false;
        if (!tl_step_has_region(&steps[s]))
            w->run_step(w, team, s);
    }
    return true;
}

static void walk_tree(tl_team *team, void *context)
{
    walk *w = context;
    uint64_t mode = tl_float_mode_enter();

    if (w->step_ns != NULL) {
        meet(team); /* waking the others up is not part of the first step */
        if (leads(team))
            w->before = tl_clock_ns();
    }
    walk_list(w, team, 0, w->runner->step_count);
    tl_float_mode_leave(mode);
}

/* The steps without loops and choices: nothing is decided. */
static void walk_flat(tl_team *team, void *context)
{
    walk *w = context;
    uint64_t mode = tl_float_mode_enter();

    walk_calls(w, team, 0, w->runner->first_call[w->runner->step_count]);
    tl_float_mode_leave(mode);
}

/* ---- what a walk does at a step ---- */

static void run_plain(walk *w, tl_team *team, int s)
{
    walk_calls(w, team, w->runner->first_call[s], w->runner->first_call[s + 1]);
}

/* A meeting after every phase, and the time of the step as thread 0 sees it. */
static void run_timed(walk *w, tl_team *team, int s)
{
    const tl_runner *r = w->runner;

    for (int c = r->first_call[s]; c < r->first_call[s + 1]; c++) {
        run_call(r, c, team);
        tl_team_barrier(team);
    }
    charge(w, team, s);
}

static void run_traced(walk *w, tl_team *team, int s)
{
    const tl_runner *r = w->runner;

    for (int c = r->first_call[s]; c < r->first_call[s + 1]; c++) {
        int64_t begun = tl_clock_ns();
        if (run_call(r, c, team) > 0)
            w->events[(size_t)c * (size_t)r->threads + (size_t)team->thread] =
                (tl_run_event){ s, c - r->first_call[s], team->thread, begun, tl_clock_ns() };
        if (r->calls[c].meet)
            tl_team_barrier(team);
    }
}

typedef struct {
    walk *walk;
    int step;
} hooked_step;

static void run_one(tl_team *team, void *context)
{
    const hooked_step *h = context;
    uint64_t mode = tl_float_mode_enter();

    run_timed(h->walk, team, h->step);
    tl_float_mode_leave(mode);
}

/* The caller walks, and a team runs the step. */
static void run_hooked(walk *w, tl_team *team, int s)
{
    const tl_runner *r = w->runner;
    void *const *buffers = &r->slots[r->first_slot[s]];
    hooked_step h = { w, s };

    (void)team;
    w->hook(w->user, s, false, buffers);
    tl_pool_run(r->pool, r->threads, run_one, &h);
    w->hook(w->user, s, true, buffers);
}

/* ---- a run ---- */

static double element(tl_dtype dtype, const void *data, size_t at)
{
    tl_number n = tl_number_load(dtype, data, at);
    return tl_dtype_is_float(dtype) ? n.f : (double)n.i;
}

/* Whether an input on whose value the code depends has that value. */
static tl_status check_fixed(const tl_port *port, const void *data, tl_diag *diag)
{
    size_t size = port->fixed != NULL ? tl_port_size(port) : 0;
    if (size == 0 || memcmp(port->fixed, data, size) == 0)
        return TL_OK;
    size_t at = 0, step = tl_dtype_size(port->dtype);
    while (memcmp((const char *)port->fixed + at * step, (const char *)data + at * step, step) == 0)
        at++;
    return tl_fail(diag, TL_BAD_ARGUMENT,
                   "shapes of the model depend on the value of input %s, and it was compiled for "
                   "another: element %zu was %.6g, but is %.6g",
                   port->name, at, element(port->dtype, port->fixed, at),
                   element(port->dtype, data, at));
}

static tl_status check_pointer(const tl_port *port, const void *pointer, tl_diag *diag)
{
    if (pointer == NULL || (uintptr_t)pointer % TL_DATA_ALIGNMENT != 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "the buffer of %s at %p is not aligned to %d bytes",
                       port->name, pointer, TL_DATA_ALIGNMENT);
    return TL_OK;
}

/* Takes the runner for this run and fills in the caller's pointers. `on_device` (or NULL): which of them, inputs first, are
 * the device's. */
static tl_status begin_run(tl_runner *r, const void *const *inputs, void *const *outputs,
                           const bool *on_device, tl_diag *diag)
{
    const tl_executable_spec *spec = &r->executable->spec;

    TL_TRY(tl_pool_check(r->pool, r->threads, diag));
    for (int i = 0; i < spec->input_count; i++) {
        TL_TRY(check_pointer(&spec->inputs[i], inputs[i], diag));
        if (on_device == NULL || !on_device[i])
            TL_TRY(check_fixed(&spec->inputs[i], inputs[i], diag));
        else if (spec->inputs[i].fixed != NULL)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "shapes of the model depend on the value of input %s, which therefore "
                           "has to be in the host's memory",
                           spec->inputs[i].name);
    }
    for (int i = 0; i < spec->output_count; i++)
        TL_TRY(check_pointer(&spec->outputs[i], outputs[i], diag));
    if (atomic_flag_test_and_set(&r->busy))
        return tl_fail(diag, TL_BAD_ARGUMENT, "this runner of %s is running already", spec->model);
    r->stopped = -1;
    for (int i = 0; i < r->input_patches; i++)
        *r->inputs[i].slot = (char *)inputs[r->inputs[i].port] + r->inputs[i].offset;
    for (int i = 0; i < r->output_patches; i++)
        *r->outputs[i].slot = (char *)outputs[r->outputs[i].port] + r->outputs[i].offset;
    return TL_OK;
}

/* Packs an output of the largest shape into the shape that it has: rows move to the front. */
static void pack_output(const tl_port *port, const int64_t *most, const int64_t *shape,
                        unsigned char *data)
{
    int64_t element = (int64_t)tl_dtype_size(port->dtype), run = element;
    int axis = port->rank - 1;

    for (; axis > 0 && shape[axis] == most[axis]; axis--)
        run *= shape[axis];
    if (axis <= 0) /* its rows are whole, and those that count come first */
        return;
    int64_t stride = run * most[axis], rows = 1;
    run *= shape[axis];
    for (int a = 0; a < axis; a++)
        rows *= shape[a];
    for (int64_t row = 0; row < rows; row++) {
        int64_t from = 0, rest = row, size = 1;
        for (int a = axis - 1; a >= 0; a--) {
            from += rest % shape[a] * size;
            rest /= shape[a];
            size *= most[a];
        }
        memmove(data + row * run, data + from * stride, (size_t)run);
    }
}

/* Outputs whose extents steps have computed get their shape. */
static void shape_outputs(tl_runner *r, void *const *outputs)
{
    const tl_executable_spec *spec = &r->executable->spec;

    for (int i = 0; r->counts != NULL && i < spec->output_count; i++) {
        const tl_port *port = &spec->outputs[i];
        int64_t *shape = &r->shapes[i * TL_TENSOR_MAX_RANK], most[TL_TENSOR_MAX_RANK];
        size_t size;
        if (!tl_port_at(port, spec->dim_count, r->dims, most, &size))
            continue; /* checked when the dims were set */
        memcpy(shape, most, sizeof *shape * (size_t)port->rank);
        if (port->counts == NULL)
            continue;
        for (int a = 0; a < port->rank; a++) {
            const int64_t *count = r->counts[i * TL_TENSOR_MAX_RANK + a];
            int64_t extent = count != NULL ? number_at(count) : most[a];
            shape[a] = extent < 0 ? 0 : tl_min64(extent, most[a]);
        }
        pack_output(port, most, shape, outputs[i]);
    }
}

/* Gives the runner back, and says what became of the run. */
static tl_status end_run(tl_runner *r, void *const *outputs, tl_diag *diag)
{
    tl_status status = TL_OK;

    if (r->stopped >= 0)
        status = tl_fail(diag, TL_UNSUPPORTED,
                         "loop %s goes on after %lld turns, the most that it may take",
                         r->steps[r->stopped].name, (long long)r->turns[r->stopped].most);
    else
        shape_outputs(r, outputs);
    atomic_flag_clear(&r->busy);
    return status;
}

/* How a call is shared out, from the time that its iterations take: each thread's part in as many pieces as are worth it. */
static int64_t piece_of(const tl_phase_call *call, int threads)
{
    enum { LEAST_PIECE_NS = 5000, MOST_PIECES = 16 }; /* of a thread's part */
    int64_t part = call->extent / threads;
    double pieces = (double)part * call->least_ns / LEAST_PIECE_NS;

    if (pieces < 2 || part < 2)
        return 0;
    return tl_ceildiv(part, pieces < MOST_PIECES ? (int64_t)pieces : MOST_PIECES);
}

static void share_calls(tl_runner *r)
{
    for (int c = 0; c < r->first_call[r->step_count]; c++)
        r->calls[c].piece = piece_of(&r->calls[c], r->threads);
}

static void run_walk(walk *w)
{
    /* The first run comes to cold caches, and any may be disturbed: the least of some counts, and now and then of one more. */
    enum { FIRST_WATCHED = 4, WATCHED_EACH = 64 };
    tl_runner *r = w->runner;
    bool is_plain = w->step_ns == NULL && w->events == NULL;

    r->stopped = -1;
    w->is_watched =
        is_plain && r->threads > 1 && (r->runs < FIRST_WATCHED || r->runs % WATCHED_EACH == 0);
    tl_pool_run(r->pool, r->threads, r->owner == NULL && is_plain ? walk_flat : walk_tree, w);
    if (w->is_watched)
        share_calls(r);
    r->runs += is_plain;
}

/* What became of a run on a device, once the runner is given back. */
static tl_status end_device_run(tl_runner *r, tl_status status)
{
    atomic_flag_clear(&r->busy);
    return status;
}

tl_status tl_runner_run_device(tl_runner *r, const void *const *inputs, void *const *outputs,
                               const bool *on_device, tl_diag *diag)
{
    if (r->device == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s runs on the CPU: its buffers lie on no device",
                       r->executable->spec.model);
    TL_TRY(begin_run(r, inputs, outputs, on_device, diag));
    return end_device_run(r, tl_device_run_go(r->device, inputs, outputs, on_device, NULL, diag));
}

tl_status tl_runner_time_device(tl_runner *r, const void *const *inputs, void *const *outputs,
                                int runs, double *ns, tl_diag *diag)
{
    if (r->device == NULL || runs < 1)
        return tl_fail(diag, TL_BAD_ARGUMENT, "%s: %s", r->executable->spec.model,
                       r->device == NULL ? "it runs on the CPU: no device has times of it"
                                         : "less than one run takes no time");
    TL_TRY(begin_run(r, inputs, outputs, NULL, diag));
    return end_device_run(r, tl_device_run_time(r->device, inputs, outputs, runs, ns, diag));
}

/* Steps of a device one after another, from the time when they were begun. */
static tl_status trace_device(tl_runner *r, const void *const *inputs, void *const *outputs,
                              tl_run_event *events, int *count, tl_diag *diag)
{
    int64_t *step_ns = calloc((size_t)r->step_count + 1, sizeof *step_ns), now = tl_clock_ns();
    if (step_ns == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "runner: out of memory");
    tl_status status = tl_device_run_go(r->device, inputs, outputs, NULL, step_ns, diag);
    for (int s = 0; status == TL_OK && s < r->step_count; s++) {
        events[(*count)++] = (tl_run_event){ s, 0, 0, now, now + step_ns[s] };
        now += step_ns[s];
    }
    free(step_ns);
    return status;
}

tl_status tl_runner_run(tl_runner *r, const void *const *inputs, void *const *outputs,
                        int64_t *step_ns, tl_diag *diag)
{
    walk w = { .runner = r,
               .run_step = step_ns != NULL ? run_timed : run_plain,
               .step_ns = step_ns };

    TL_TRY(begin_run(r, inputs, outputs, NULL, diag));
    if (r->device != NULL)
        return end_device_run(r, tl_device_run_go(r->device, inputs, outputs, NULL, step_ns, diag));
    if (step_ns != NULL)
        memset(step_ns, 0, sizeof *step_ns * (size_t)r->step_count);
    run_walk(&w);
    return end_run(r, outputs, diag);
}

int tl_runner_event_limit(const tl_runner *r)
{
    return r->device != NULL ? r->step_count : r->first_call[r->step_count] * r->threads;
}

tl_status tl_runner_run_traced(tl_runner *r, const void *const *inputs, void *const *outputs,
                               tl_run_event *events, int *count, tl_diag *diag)
{
    int limit = tl_runner_event_limit(r);
    walk w = { .runner = r, .run_step = run_traced, .events = events };

    *count = 0;
    memset(events, 0, sizeof *events * (size_t)limit);
    TL_TRY(begin_run(r, inputs, outputs, NULL, diag));
    if (r->device != NULL)
        return end_device_run(r, trace_device(r, inputs, outputs, events, count, diag));
    run_walk(&w);
    for (int i = 0; i < limit; i++)
        if (events[i].end_ns != 0)
            events[(*count)++] = events[i];
    return end_run(r, outputs, diag);
}

void tl_runner_run_all(tl_runner *r)
{
    walk w = { .runner = r, .run_step = run_plain };
    run_walk(&w);
}

tl_status tl_runner_run_hooked(tl_runner *r, const void *const *inputs, void *const *outputs,
                               tl_step_hook *hook, void *user, tl_diag *diag)
{
    walk w = { .runner = r, .run_step = run_hooked, .hook = hook, .user = user };

    TL_TRY(begin_run(r, inputs, outputs, NULL, diag));
    if (r->device != NULL)
        return end_device_run(r,
                              tl_device_run_hooked(r->device, inputs, outputs, hook, user, diag));
    walk_list(&w, NULL, 0, r->step_count);
    return end_run(r, outputs, diag);
}
