/* driver/pipeline/build_executable.c: graph, kernels and objects put together as data that the runtime runs. */
#include <string.h>
#include "driver/pipeline/model_private.h"
#include "runtime/base/array.h"
#include "runtime/base/checked.h"

typedef struct {
    tl_model *model;
    tl_arena *arena;
    int *place_of;                 /* graph value index -> executable value, or -1 */
    int *input_port, *output_port; /* graph value index -> the first port that it is, or -1 */
    int value_count, value_capacity;
    tl_executable_value *values;
    int prepare_count, step_count;
    tl_executable_step *prepare, *steps;
    int *kernel_of, *prepare_kernel_of; /* work -> executable kernel */
    int kernel_count;
    tl_executable_kernel *kernels;
} builder;

static int64_t value_bytes(const tl_value *v)
{
    int64_t extents[2 * TL_MAX_RANK], elements = 1;
    int rank = tl_layout_physical(&v->layout, &v->shape, extents);
    for (int i = 0; i < rank; i++)
        if (tl_mul_overflows(elements, extents[i], &elements))
            return -1;
    return tl_storage_bytes(v->dtype, elements);
}

static int add_value(builder *b, tl_executable_value value)
{
    TL_ROOM(b->arena, b->values, b->value_count, b->value_capacity);
    b->values[b->value_count] = value;
    return b->value_count++;
}

/* By a value's index the first of the ports that it is, -1: none. */
static int *first_ports(const builder *b, tl_value *const *ports, int count)
{
    int *first = TL_NEW_ARRAY(b->arena, int, b->model->graph->value_count);
    for (int i = 0; i < b->model->graph->value_count; i++)
        first[i] = -1;
    for (int i = count - 1; i >= 0; i--)
        first[ports[i]->index] = i;
    return first;
}

static int place_value(builder *b, const tl_value *v)
{
    if (b->place_of[v->index] >= 0)
        return b->place_of[v->index];
    tl_executable_value value = {
        .name = v->name, .place = TL_PLACE_ARENA, .size = value_bytes(v), .port = -1
    };
    if (v->whole != NULL) {
        value.place = TL_PLACE_WINDOW;
        value.whole = place_value(b, v->whole);
        value.offset = tl_storage_bytes(v->dtype, v->whole_start);
    } else if (v->data != NULL) {
        value.place = TL_PLACE_CONSTANT;
        value.data = v->data;
        const char *location;
        if (tl_onnx_locate(b->model->onnx, v->data, (size_t)value.size, &location,
                           &value.file_offset))
            value.file = tl_arena_format(b->arena, "%s/%s", b->model->folder, location);
    } else if (v->is_input) {
        value.place = TL_PLACE_INPUT;
        value.port = b->input_port[v->index];
    } else if (v->is_output) {
        value.place = TL_PLACE_OUTPUT;
        value.port = b->output_port[v->index];
    }
    return b->place_of[v->index] = add_value(b, value);
}

static int add_kernel(builder *b, tl_work *work, bool prepare)
{
    const tl_descriptor *d = prepare ? &work->prepare_descriptor : &work->descriptor;
    const tl_text *object = prepare ? &work->prepare_object : &work->object;
    const tl_jit_kernel *jit = prepare ? work->prepare_jit : work->jit;
    tl_phase_fn **phases =
        jit != NULL ? TL_NEW_ARRAY(b->arena, tl_phase_fn *, d->phase_count) : NULL;
    bool has_native = !prepare && work->native.size > 0;
    for (int p = 0; jit != NULL && p < d->phase_count; p++)
        phases[p] = tl_jit_phase(jit, p);
    b->kernels[b->kernel_count] = (tl_executable_kernel){
        .key = prepare ? work->prepare_key : work->key,
        .descriptor = *d,
        .object = object->data,
        .object_size = object->size,
        .phases = phases,
        .sizes = jit != NULL ? tl_jit_sizes(jit) : NULL,
        .native = has_native ? work->native.data : NULL,
        .native_size = work->native.size,
        .native_arch = has_native ? b->model->device->facts.arch : NULL,
    };
    return b->kernel_count++;
}

static int64_t buffer_bytes(const tl_buffer *buffer)
{
    return tl_buffer_max_bytes(buffer);
}

typedef struct {
    tl_arena *arena;
    const tl_buffer *buffer;
    bool found;
} use;

static bool find_use(const tl_stmt *stmt, void *context)
{
    use *u = context;
    const tl_region *reads;
    tl_arena *arena = u->arena;
    if (stmt->kind == TL_STMT_BLOCK)
        for (int i = tl_block_reads(arena, stmt->u.block, &reads) - 1; i >= 0; i--)
            u->found |= reads[i].buffer == u->buffer;
    return !u->found;
}

/* Whether the body (not the prepare part) still reads a parameter. */
static bool body_uses(tl_arena *arena, const tl_program *program, const tl_buffer *buffer)
{
    use u = { arena, buffer, false };
    tl_stmt_visit(program->body, find_use, &u);
    return u.found;
}

/* The step of one kernel, and the prepare step that packs its constants. */
static void add_steps(builder *b, int index)
{
    tl_model_kernel *facts = &b->model->kernels[index];
    const tl_kernel *kernel = facts->kernel;
    int w = b->model->work_of[index];
    tl_work *work = &b->model->works[w];
    int params = kernel->input_count + kernel->output_count,
        prepared = work->scheduled->prepared_count;
    int *values = TL_NEW_ARRAY(b->arena, int, params + prepared);
    int *prepare_values = TL_NEW_ARRAY(b->arena, int, params + prepared);

    for (int i = 0; i < kernel->input_count; i++)
        values[i] = place_value(b, kernel->inputs[i]);
    for (int i = 0; i < kernel->output_count; i++)
        values[kernel->input_count + i] = place_value(b, kernel->outputs[i]);
    for (int i = 0; i < params; i++) {
        bool constant = b->values[values[i]].place == TL_PLACE_CONSTANT;
        prepare_values[i] = constant ? values[i] : TL_NO_VALUE;
    }
    for (int i = 0; i < prepared; i++) {
        tl_executable_value value = {
            .name = tl_arena_format(b->arena, "%s.%s", kernel->name,
                                    work->scheduled->prepared[i]->name),
            .place = TL_PLACE_PREPARED,
            .size = buffer_bytes(work->scheduled->prepared[i]),
            .port = -1,
        };
        values[params + i] = prepare_values[params + i] = add_value(b, value);
    }

    if (b->kernel_of[w] < 0)
        b->kernel_of[w] = add_kernel(b, work, false);
    b->steps[b->step_count++] = (tl_executable_step){
        .name = kernel->name,
        .kernel = b->kernel_of[w],
        .value_count = params + prepared,
        .values = values,
        .class_key = facts->class_key,
        .workload = facts->workload,
        .flops = facts->flops,
        .bytes = facts->bytes,
    };
    if (!work->has_prepare)
        return;
    /* a constant that the body no longer reads need not be there when the model runs */
    for (int i = 0; i < params; i++)
        if (work->scheduled->params[i]->role == TL_ROLE_CONST &&
            !body_uses(b->arena, work->scheduled, work->scheduled->params[i]))
            values[i] = TL_NO_VALUE;
    if (b->prepare_kernel_of[w] < 0)
        b->prepare_kernel_of[w] = add_kernel(b, work, true);
    b->prepare[b->prepare_count++] = (tl_executable_step){
        .name = kernel->name,
        .kernel = b->prepare_kernel_of[w],
        .value_count = params + prepared,
        .values = prepare_values,
    };
}

/* An output that no kernel writes: a constant, an input, or another output under a second name. */
static void add_copies(builder *b, const tl_graph *g)
{
    for (int i = 0; i < g->output_count; i++) {
        const tl_value *v = g->outputs[i];
        if (v->data == NULL && !v->is_input && b->output_port[v->index] == i)
            continue;
        int *values = TL_NEW_ARRAY(b->arena, int, 2);
        values[0] = place_value(b, v);
        values[1] = add_value(b, (tl_executable_value){ .name = v->name,
                                                        .place = TL_PLACE_OUTPUT,
                                                        .size = value_bytes(v),
                                                        .port = i });
        b->steps[b->step_count++] = (tl_executable_step){
            .name = v->name, .kernel = TL_STEP_COPY, .value_count = 2, .values = values
        };
    }
}

static tl_port *make_ports(tl_arena *arena, tl_value *const *values, int count)
{
    tl_port *ports = TL_NEW_ARRAY(arena, tl_port, count);
    for (int i = 0; i < count; i++) {
        ports[i].name = values[i]->name;
        ports[i].dtype = values[i]->dtype;
        ports[i].rank = values[i]->shape.rank;
        for (int a = 0; a < values[i]->shape.rank; a++)
            ports[i].shape[a] = values[i]->shape.dims[a].extent;
    }
    return ports;
}

/* Inputs that the graph is bound to a value of are fixed. */
static const tl_port *bind_ports(tl_arena *arena, const tl_onnx *onnx, tl_port *ports, int count)
{
    for (int k = 0; onnx != NULL && k < tl_onnx_bound_count(onnx); k++) {
        const void *data;
        const char *name = tl_onnx_bound(onnx, k, &data);
        for (int i = 0; i < count; i++)
            if (strcmp(ports[i].name, name) == 0)
                ports[i].fixed = tl_arena_copy(arena, data, tl_port_size(&ports[i]), 8);
    }
    return ports;
}

tl_status tl_build_executable(tl_model *model, tl_diag *diag)
{
    const tl_graph *g = model->graph;
    builder b = { .model = model, .arena = model->arena };
    b.place_of = TL_NEW_ARRAY(b.arena, int, g->value_count);
    b.input_port = first_ports(&b, g->inputs, g->input_count);
    b.output_port = first_ports(&b, g->outputs, g->output_count);
    b.kernel_of = TL_NEW_ARRAY(b.arena, int, model->work_count);
    b.prepare_kernel_of = TL_NEW_ARRAY(b.arena, int, model->work_count);
    memset(b.place_of, -1, sizeof(int) * (size_t)g->value_count);
    memset(b.kernel_of, -1, sizeof(int) * (size_t)model->work_count);
    memset(b.prepare_kernel_of, -1, sizeof(int) * (size_t)model->work_count);
    b.kernels = TL_NEW_ARRAY(b.arena, tl_executable_kernel, 2 * model->work_count);
    b.steps = TL_NEW_ARRAY(b.arena, tl_executable_step, model->partition.count + g->output_count);
    b.prepare = TL_NEW_ARRAY(b.arena, tl_executable_step, model->partition.count);

    for (int i = 0; i < model->partition.count; i++)
        add_steps(&b, i);
    add_copies(&b, g);

    tl_executable_spec spec = {
        .model = g->name,
        .device = tl_target_is_gpu(&model->target) ? "cuda" : NULL,
        .note = tl_arena_format(b.arena, "tuned %d", model->facts.tuned_count),
        .input_count = g->input_count,
        .output_count = g->output_count,
        .value_count = b.value_count,
        .kernel_count = b.kernel_count,
        .prepare_count = b.prepare_count,
        .step_count = b.step_count,
        .inputs = bind_ports(b.arena, model->onnx, make_ports(b.arena, g->inputs, g->input_count),
                             g->input_count),
        .outputs = make_ports(b.arena, g->outputs, g->output_count),
        .values = b.values,
        .kernels = b.kernels,
        .prepare = b.prepare,
        .steps = b.steps,
    };
    tl_cpu_features needed; /* of a target by name; else those of this machine */
    if (tl_cpu_level(model->prepare_target.cpu, &needed))
        spec.cpu = needed;
    return tl_executable_create(&spec, &model->executable, diag);
}
