/* runtime/executable/device_run.c: running steps on a device (device_run.h). */
#include "runtime/executable/device_run.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/checked.h"
#include "runtime/executable/executable_private.h"

/* Larger inputs and outputs are not copied by way of pinned memory. */
enum { MAX_PINNED = 64 << 20 };

/* A port as this run sees it. */
typedef struct {
    int value;       /* that has the port's storage; -1: no step uses it */
    int64_t size;    /* bytes, of the value */
    void *own;       /* its place in the plan */
    void *current;   /* where the steps find it now */
    void *pinned;    /* of the host, or NULL */
    bool is_wrapped; /* the caller's buffer is on the device */
} device_port;

/* A place in `slots` that is a port's, `offset` bytes from its begin on. */
typedef struct {
    void **slot;
    int port; /* of inputs, then of outputs */
    int64_t offset;
} port_slot;

struct tl_device_run {
    const tl_executable *x;
    const tl_executable_step *steps;
    int step_count;
    tl_device *device;
    tl_queue *queue;
    bool is_own_stream;
    tl_arena *arena;      /* of the lists */
    tl_kernel_args *args; /* one a step */
    void **slots;
    int *first_slot;              /* one a step */
    tl_plan_buffer *plan_buffers; /* one a value, then one a step: its scratch */
    tl_plan_sizes plan;
    void *memory;   /* what the plan places */
    void **uploads; /* one a value: a constant that only these steps read, or NULL */
    int port_count;
    device_port *ports; /* inputs, then outputs */
    int port_slot_count;
    port_slot *port_slots;
    tl_device_event **events; /* one more than steps, made when times are asked for */
    tl_device_graph *graph;   /* of all steps, for the ports where they are now */
    bool graph_failed;        /* no use to try again */
    int direct_runs;          /* since the ports were last moved */
};

static const tl_device_type *type_of(const tl_device_run *r)
{
    return r->device->type;
}

/* ---- the plan ---- */

static device_port *port_of(const tl_device_run *r, const tl_executable_value *v)
{
    return &r->ports[v->port + (v->place == TL_PLACE_OUTPUT ? r->x->spec.input_count : 0)];
}

/* Inputs live from the begin, outputs to the end: there they are copied. */
static void note_use(tl_device_run *r, int value, int step)
{
    const tl_executable_value *v = &r->x->spec.values[value];
    tl_plan_buffer *b = &r->plan_buffers[value];
    bool is_new = b->first < 0;

    if (v->place != TL_PLACE_ARENA && v->place != TL_PLACE_INPUT && v->place != TL_PLACE_OUTPUT)
        return;
    b->size = tl_device_aligned(v->size);
    b->first = v->place == TL_PLACE_INPUT ? 0 : is_new ? step : b->first;
    b->last = v->place == TL_PLACE_OUTPUT ? r->step_count - 1 : step;
    if (v->place == TL_PLACE_ARENA)
        return;
    device_port *p = port_of(r, v);
    p->value = p->value < 0 || r->x->spec.values[p->value].size < v->size ? value : p->value;
    p->size = tl_max64(p->size, v->size);
}

static tl_status fill_plan(tl_device_run *r, tl_diag *diag)
{
    const tl_executable_spec *spec = &r->x->spec;

    for (int i = 0; i < spec->value_count; i++)
        r->plan_buffers[i] = (tl_plan_buffer){ .first = -1, .last = -1 };
    for (int s = 0; s < r->step_count; s++) {
        const tl_executable_step *step = &r->steps[s];
        tl_plan_buffer *scratch = &r->plan_buffers[spec->value_count + s];
        for (int i = 0; i < step->value_count; i++)
            if (step->values[i] != TL_NO_VALUE)
                note_use(r, tl_executable_storage(spec, step->values[i]), s);
        *scratch = (tl_plan_buffer){ .first = s, .last = s };
        if (step->kernel >= 0)
            TL_TRY(tl_descriptor_scratch(&spec->kernels[step->kernel].descriptor, step->dims,
                                         &scratch->size, diag));
        if (scratch->size > INT64_MAX - TL_DEVICE_ALIGNMENT)
            return tl_fail(diag, TL_BAD_ARGUMENT, "step %s: its scratch is too large", step->name);
        scratch->size = tl_device_aligned(scratch->size);
    }
    /* two values of one port share its place: that of the larger one */
    for (int i = 0; i < spec->value_count; i++)
        if ((spec->values[i].place == TL_PLACE_INPUT || spec->values[i].place == TL_PLACE_OUTPUT) &&
            r->plan_buffers[i].first >= 0 && port_of(r, &spec->values[i])->value != i) {
            tl_plan_buffer *kept = &r->plan_buffers[port_of(r, &spec->values[i])->value];
            kept->first =
                kept->first < r->plan_buffers[i].first ? kept->first : r->plan_buffers[i].first;
            kept->last =
                kept->last > r->plan_buffers[i].last ? kept->last : r->plan_buffers[i].last;
            r->plan_buffers[i].size = 0;
        }
    return tl_memory_plan(r->plan_buffers, spec->value_count + r->step_count, &r->plan, diag);
}

static tl_status take_memory(tl_device_run *r, tl_diag *diag)
{
    tl_status status =
        type_of(r)->allocate(r->device, r->plan.planned + TL_DEVICE_ALIGNMENT, &r->memory, diag);
    if (status != TL_OK)
        tl_context(diag, "%lld bytes of temporaries of %s", (long long)r->plan.planned,
                   r->x->spec.model);
    return status;
}

/* ---- where every step finds its values ---- */

/* A constant that only prepare steps read. */
static tl_status upload(tl_device_run *r, int value, void **out, tl_diag *diag)
{
    const tl_executable_value *v = &r->x->spec.values[value];

    if (r->uploads[value] == NULL) {
        TL_TRY(type_of(r)->allocate(r->device, v->size, &r->uploads[value], diag));
        TL_TRY(type_of(r)->copy_in(r->queue, r->uploads[value], v->data, v->size, diag));
    }
    *out = r->uploads[value];
    return TL_OK;
}

static tl_status bind_value(tl_device_run *r, int value, void **slot, tl_diag *diag)
{
    const tl_executable_spec *spec = &r->x->spec;
    const tl_executable_value *v = &spec->values[value];
    int64_t offset = v->place == TL_PLACE_WINDOW ? v->offset : 0;
    int storage = tl_executable_storage(spec, value);

    v = &spec->values[storage];
    switch (v->place) {
    case TL_PLACE_INPUT:
    case TL_PLACE_OUTPUT:
        r->port_slots[r->port_slot_count++] =
            (port_slot){ slot, (int)(port_of(r, v) - r->ports), offset };
        *slot = (char *)port_of(r, v)->own + offset;
        return TL_OK;
    case TL_PLACE_ARENA:
        *slot = (char *)r->memory + r->plan_buffers[storage].offset + offset;
        return TL_OK;
    case TL_PLACE_CONSTANT:
    case TL_PLACE_PREPARED:
        if (r->x->device_data[storage] == NULL)
            return upload(r, storage, slot, diag);
        *slot = r->x->device_data[storage];
        return TL_OK;
    case TL_PLACE_WINDOW:
    case TL_PLACE_COUNT:
        break;
    }
    return TL_OK;
}

static void place_ports(tl_device_run *r)
{
    for (int i = 0; i < r->port_count; i++) {
        device_port *p = &r->ports[i];
        if (p->value < 0)
            continue;
        p->own = p->current = (char *)r->memory + r->plan_buffers[p->value].offset;
        if (p->size > 0 && p->size <= MAX_PINNED) /* without it copies are slower, no more */
            (void)type_of(r)->allocate_host(r->device, p->size, &p->pinned, NULL);
    }
}

static tl_status bind_steps(tl_device_run *r, tl_diag *diag)
{
    const tl_executable_spec *spec = &r->x->spec;

    for (int s = 0; s < r->step_count; s++) {
        const tl_executable_step *step = &r->steps[s];
        const tl_plan_buffer *scratch = &r->plan_buffers[spec->value_count + s];
        void **slots = &r->slots[r->first_slot[s]];
        for (int i = 0; i < step->value_count; i++)
            if (step->values[i] != TL_NO_VALUE)
                TL_TRY(bind_value(r, step->values[i], &slots[i], diag));
        r->args[s] = (tl_kernel_args){
            .buffers = slots,
            .dims = step->dims,
            .scratch = (unsigned char *)r->memory + scratch->offset,
        };
    }
    return TL_OK;
}

static void make_lists(tl_device_run *r)
{
    const tl_executable_spec *spec = &r->x->spec;
    size_t slots = 0, values = (size_t)spec->value_count, steps = (size_t)r->step_count;

    r->first_slot = TL_NEW_ARRAY(r->arena, int, steps);
    for (int s = 0; s < r->step_count; s++) {
        r->first_slot[s] = (int)slots;
        slots += (size_t)r->steps[s].value_count;
    }
    r->args = TL_NEW_ARRAY(r->arena, tl_kernel_args, steps);
    r->slots = TL_NEW_ARRAY(r->arena, void *, slots);
    r->port_slots = TL_NEW_ARRAY(r->arena, port_slot, slots);
    r->plan_buffers = TL_NEW_ARRAY(r->arena, tl_plan_buffer, values + steps);
    r->uploads = TL_NEW_ARRAY(r->arena, void *, values);
    r->events = TL_NEW_ARRAY(r->arena, tl_device_event *, steps + 1);
    r->port_count = spec->input_count + spec->output_count;
    r->ports = TL_NEW_ARRAY(r->arena, device_port, r->port_count);
    for (int i = 0; i < r->port_count; i++)
        r->ports[i].value = -1;
}

static tl_status make_lists_guarded(tl_device_run *r, tl_diag *diag)
{
    r->arena = tl_arena_create(0);
    if (r->arena == NULL || TL_ARENA_GUARD(r->arena))
        return tl_fail(diag, TL_NO_MEMORY, "runner: out of memory");
    make_lists(r);
    return TL_OK;
}

static tl_status make(tl_device_run *r, void *stream, tl_diag *diag)
{
    TL_TRY(make_lists_guarded(r, diag));
    TL_TRY(type_of(r)->make_queue(r->device, stream, &r->queue, diag));
    TL_TRY(fill_plan(r, diag));
    TL_TRY(take_memory(r, diag));
    place_ports(r);
    return bind_steps(r, diag);
}

tl_status tl_device_run_make(const tl_executable *x, const tl_executable_step *steps,
                             int step_count, void *stream, tl_device_run **out, tl_diag *diag)
{
    if (x->device == NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "%s is compiled for %s, and was not put on such a device", x->spec.model,
                       x->spec.device);
    tl_device_run *r = calloc(1, sizeof *r);
    if (r == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "runner: out of memory");
    r->x = x;
    r->steps = steps;
    r->step_count = step_count;
    r->device = x->device;
    r->is_own_stream = stream == NULL;
    tl_status status = make(r, stream, diag);
    if (status != TL_OK) {
        tl_device_run_drop(r);
        return status;
    }
    *out = r;
    return TL_OK;
}

void tl_device_run_drop(tl_device_run *r)
{
    if (r == NULL)
        return;
    const tl_device_type *type = type_of(r);
    if (r->queue != NULL && !r->is_own_stream)
        (void)type->wait(r->queue, NULL);
    if (r->graph != NULL)
        type->drop_graph(r->graph);
    type->drop_queue(r->queue); /* waits */
    for (int i = 0; r->events != NULL && i <= r->step_count; i++)
        if (r->events[i] != NULL)
            type->drop_event(r->events[i]);
    for (int i = 0; r->uploads != NULL && i < r->x->spec.value_count; i++)
        type->release(r->device, r->uploads[i]);
    for (int i = 0; r->ports != NULL && i < r->port_count; i++)
        type->release_host(r->device, r->ports[i].pinned);
    type->release(r->device, r->memory);
    tl_arena_destroy(r->arena);
    free(r);
}

tl_plan_sizes tl_device_run_memory(const tl_device_run *r)
{
    return r->plan;
}

/* ---- running ---- */

static tl_status launch_step(tl_device_run *r, int s, tl_diag *diag)
{
    const tl_executable_step *step = &r->steps[s];
    const tl_executable_spec *spec = &r->x->spec;
    void **slots = &r->slots[r->first_slot[s]];
    tl_status status = TL_OK;

    if (step->kernel == TL_STEP_COPY)
        return type_of(r)->copy_within(r->queue, slots[1], slots[0],
                                       spec->values[step->values[0]].size, diag);
    const tl_device_kernel *kernel = r->x->device_kernels[step->kernel];
    for (int p = 0; status == TL_OK && p < kernel->descriptor.phase_count; p++)
        status = type_of(r)->launch(r->queue, kernel, p, &r->args[s], diag);
    if (status != TL_OK)
        tl_context(diag, "step %s", step->name);
    return status;
}

static tl_status launch_all(tl_device_run *r, tl_diag *diag)
{
    for (int s = 0; s < r->step_count; s++)
        TL_TRY(launch_step(r, s, diag));
    return TL_OK;
}

static void forget_graph(tl_device_run *r)
{
    if (r->graph != NULL)
        type_of(r)->drop_graph(r->graph);
    r->graph = NULL;
    r->direct_runs = 0;
}

/* The caller's addresses on the device take the place of ours in all steps that use the port. */
static void move_ports(tl_device_run *r, const void *const *inputs, void *const *outputs,
                       const bool *on_device)
{
    bool moved = false;

    for (int i = 0; i < r->port_count; i++) {
        device_port *p = &r->ports[i];
        const void *given =
            i < r->x->spec.input_count ? inputs[i] : outputs[i - r->x->spec.input_count];
        p->is_wrapped = on_device != NULL && on_device[i];
        void *now = p->is_wrapped ? (void *)given : p->own;
        moved |= now != p->current;
        p->current = now;
    }
    if (!moved)
        return;
    for (int i = 0; i < r->port_slot_count; i++)
        *r->port_slots[i].slot =
            (char *)r->ports[r->port_slots[i].port].current + r->port_slots[i].offset;
    forget_graph(r);
}

/* Ports that no step uses are not copied; an output is what a step writes (executable_check.c). */
static tl_status copy_in(tl_device_run *r, const void *const *inputs, tl_diag *diag)
{
    for (int i = 0; i < r->x->spec.input_count; i++) {
        const device_port *p = &r->ports[i];
        if (p->value < 0 || p->is_wrapped)
            continue;
        const void *from = inputs[i];
        if (p->pinned != NULL)
            from = memcpy(p->pinned, inputs[i], (size_t)p->size);
        TL_TRY(type_of(r)->copy_in(r->queue, p->current, from, p->size, diag));
    }
    return TL_OK;
}

static tl_status copy_out(tl_device_run *r, void *const *outputs, tl_diag *diag)
{
    const int first = r->x->spec.input_count;

    for (int i = first; i < r->port_count; i++) {
        const device_port *p = &r->ports[i];
        if (p->value >= 0 && !p->is_wrapped)
            TL_TRY(type_of(r)->copy_out(r->queue,
                                        p->pinned != NULL ? p->pinned : outputs[i - first],
                                        p->current, p->size, diag));
    }
    return TL_OK;
}

static void unpin(const tl_device_run *r, void *const *outputs)
{
    const int first = r->x->spec.input_count;

    for (int i = first; i < r->port_count; i++) {
        const device_port *p = &r->ports[i];
        if (p->value >= 0 && !p->is_wrapped && p->pinned != NULL)
            memcpy(outputs[i - first], p->pinned, (size_t)p->size);
    }
}

/* Of all steps; a driver that cannot is no error: then they are launched one by one. */
static void make_graph(tl_device_run *r)
{
    if (type_of(r)->begin_graph == NULL || !r->device->facts.has_graphs ||
        type_of(r)->begin_graph(r->queue, NULL) != TL_OK) {
        r->graph_failed = true;
        return;
    }
    tl_status launched = launch_all(r, NULL);
    tl_status made = type_of(r)->end_graph(r->queue, &r->graph, NULL);
    if (launched == TL_OK && made == TL_OK)
        return;
    if (made == TL_OK)
        forget_graph(r);
    r->graph_failed = true;
}

/* The first run is direct, so that what fails is said with its step; if the ports stay, the second is a graph. */
static tl_status run_steps(tl_device_run *r, tl_diag *diag)
{
    if (r->graph == NULL && !r->graph_failed && r->direct_runs > 0 && r->step_count > 1)
        make_graph(r);
    if (r->graph != NULL)
        return type_of(r)->run_graph(r->queue, r->graph, diag);
    r->direct_runs += r->direct_runs == 0;
    return launch_all(r, diag);
}

/* ---- times ---- */

static tl_status record(tl_device_run *r, int event, tl_diag *diag)
{
    if (r->events[event] == NULL)
        TL_TRY(type_of(r)->make_event(r->device, &r->events[event], diag));
    return type_of(r)->record(r->queue, r->events[event], diag);
}

static tl_status run_timed(tl_device_run *r, tl_diag *diag)
{
    for (int s = 0; s <= r->step_count; s++) {
        TL_TRY(record(r, s, diag));
        if (s < r->step_count)
            TL_TRY(launch_step(r, s, diag));
    }
    return TL_OK;
}

static tl_status read_times(const tl_device_run *r, int64_t *step_ns, tl_diag *diag)
{
    for (int s = 0; s < r->step_count; s++) {
        double ns;
        TL_TRY(type_of(r)->elapsed(r->events[s], r->events[s + 1], &ns, diag));
        step_ns[s] = (int64_t)ns;
    }
    return TL_OK;
}

static bool is_all_wrapped(const tl_device_run *r)
{
    for (int i = 0; i < r->port_count; i++)
        if (r->ports[i].value >= 0 && !r->ports[i].is_wrapped)
            return false;
    return true;
}

tl_status tl_device_run_go(tl_device_run *r, const void *const *inputs, void *const *outputs,
                           const bool *on_device, int64_t *step_ns, tl_diag *diag)
{
    TL_TRY(type_of(r)->check(r->device, diag));
    move_ports(r, inputs, outputs, on_device);
    TL_TRY(copy_in(r, inputs, diag));
    TL_TRY(step_ns != NULL ? run_timed(r, diag) : run_steps(r, diag));
    TL_TRY(copy_out(r, outputs, diag));
    if (!r->is_own_stream && step_ns == NULL && is_all_wrapped(r))
        return TL_OK;
    TL_TRY(type_of(r)->wait(r->queue, diag));
    unpin(r, outputs);
    return step_ns != NULL ? read_times(r, step_ns, diag) : TL_OK;
}

tl_status tl_device_run_time(tl_device_run *r, const void *const *inputs, void *const *outputs,
                             int runs, double *ns, tl_diag *diag)
{
    enum { WARM = 2 };
    *ns = 0;
    if (r->step_count == 0)
        return TL_OK;
    TL_TRY(type_of(r)->check(r->device, diag));
    move_ports(r, inputs, outputs, NULL);
    TL_TRY(copy_in(r, inputs, diag));
    for (int i = 0; i < WARM + runs; i++) {
        if (i == WARM)
            TL_TRY(record(r, 0, diag));
        TL_TRY(run_steps(r, diag));
    }
    TL_TRY(record(r, 1, diag));
    TL_TRY(type_of(r)->wait(r->queue, diag));
    TL_TRY(type_of(r)->elapsed(r->events[0], r->events[1], ns, diag));
    *ns /= runs;
    return TL_OK;
}

/* ---- step by step ---- */

/* Copies of the buffers of a step on the host; NULL where it has none. */
typedef struct {
    tl_device_run *run;
    int step;
    void **hosts;
} mirror;

static void free_mirror(mirror *m)
{
    for (int i = 0; m->hosts != NULL && i < m->run->steps[m->step].value_count; i++)
        free(m->hosts[i]);
    free(m->hosts);
}

static tl_status make_mirror(mirror *m, tl_diag *diag)
{
    const tl_executable_step *step = &m->run->steps[m->step];
    size_t count = (size_t)step->value_count;

    m->hosts = calloc(count + 1, sizeof *m->hosts);
    for (size_t i = 0; m->hosts != NULL && i < count; i++) {
        if (step->values[i] == TL_NO_VALUE)
            continue;
        int64_t size = m->run->x->spec.values[step->values[i]].size;
        m->hosts[i] = aligned_alloc(TL_DATA_ALIGNMENT, ((size_t)size + TL_DATA_ALIGNMENT) /
                                                           TL_DATA_ALIGNMENT * TL_DATA_ALIGNMENT);
        if (m->hosts[i] == NULL)
            return tl_fail(diag, TL_NO_MEMORY, "runner: out of memory");
    }
    return m->hosts != NULL ? TL_OK : tl_fail(diag, TL_NO_MEMORY, "runner: out of memory");
}

static tl_status read_mirror(const mirror *m, tl_diag *diag)
{
    tl_device_run *r = m->run;
    const tl_executable_step *step = &r->steps[m->step];

    for (int i = 0; i < step->value_count; i++)
        if (m->hosts[i] != NULL)
            TL_TRY(type_of(r)->copy_out(r->queue, m->hosts[i], r->slots[r->first_slot[m->step] + i],
                                        r->x->spec.values[step->values[i]].size, diag));
    return type_of(r)->wait(r->queue, diag);
}

static tl_status show_step(mirror *m, tl_step_hook *hook, void *user, tl_diag *diag)
{
    TL_TRY(make_mirror(m, diag));
    TL_TRY(read_mirror(m, diag));
    hook(user, m->step, false, m->hosts);
    TL_TRY(launch_step(m->run, m->step, diag));
    TL_TRY(read_mirror(m, diag));
    hook(user, m->step, true, m->hosts);
    return TL_OK;
}

tl_status tl_device_run_hooked(tl_device_run *r, const void *const *inputs, void *const *outputs,
                               tl_step_hook *hook, void *user, tl_diag *diag)
{
    TL_TRY(type_of(r)->check(r->device, diag));
    move_ports(r, inputs, outputs, NULL);
    TL_TRY(copy_in(r, inputs, diag));
    for (int s = 0; s < r->step_count; s++) {
        mirror m = { r, s, NULL };
        tl_status status = show_step(&m, hook, user, diag);
        free_mirror(&m);
        TL_TRY(status);
    }
    TL_TRY(copy_out(r, outputs, diag));
    TL_TRY(type_of(r)->wait(r->queue, diag));
    unpin(r, outputs);
    return TL_OK;
}

/* ---- prepare steps ---- */

tl_status tl_device_run_prepare(tl_device_run *r, unsigned char *prepared, tl_diag *diag)
{
    const tl_executable *x = r->x;

    TL_TRY(launch_all(r, diag));
    for (int s = 0; s < r->step_count; s++)
        for (int i = 0; i < r->steps[s].value_count; i++) {
            int value = r->steps[s].values[i];
            if (value == TL_NO_VALUE || x->spec.values[value].place != TL_PLACE_PREPARED)
                continue;
            TL_TRY(type_of(r)->copy_out(r->queue, prepared + x->prepared_offset[value],
                                        x->device_data[value], x->spec.values[value].size, diag));
        }
    return type_of(r)->wait(r->queue, diag);
}
