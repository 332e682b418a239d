/* driver/pipeline/build_executable.c: graph, kernels and objects put together as data that the runtime runs.
 *
 * A node with bodies becomes a step that owns those of its bodies. A body's inputs are the values that its node hands it; a
 * branch writes the node's results where they lie, a turn of a loop its next state beside the state, which is copied when
 * all of the turn is done. */
#include <string.h>
#include "driver/pipeline/model_private.h"
#include "frontend/value_notes.h"
#include "runtime/base/array.h"
#include "runtime/base/checked.h"
#include "runtime/base/pages.h"

typedef struct {
    tl_model *model;
    tl_arena *arena;
    int *place_of; /* of the graph at hand: value index -> executable value, or -1 */
    int *input_port,
        *output_port; /* of the model's: value index -> the first port that it is, or -1 */
    int value_count, value_capacity;
    tl_executable_value *values;
    int prepare_count, step_count, step_capacity;
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

/* Of a value that varies: its size as a product. */
static void set_factors(const builder *b, const tl_value *v, tl_executable_value *out)
{
    const tl_joined_value *joined = tl_notes_of(v)->joined;
    if (b->model->join == NULL || joined == NULL || !joined->varies)
        return;
    out->unit = tl_storage_bytes(v->dtype, 1);
    out->factor_count = joined->rank;
    out->factors = joined->extents;
}

static tl_executable_step *add_step(builder *b, tl_executable_step step)
{
    TL_ROOM(b->arena, b->steps, b->step_count, b->step_capacity);
    b->steps[b->step_count] = step;
    return &b->steps[b->step_count++];
}

static void add_copy(builder *b, const char *name, int from, int to)
{
    int *values = TL_NEW_ARRAY(b->arena, int, 2);
    values[0] = from;
    values[1] = to;
    add_step(b, (tl_executable_step){
                    .name = name, .kernel = TL_STEP_COPY, .value_count = 2, .values = values });
}

static int place_value(builder *b, const tl_value *v);

/* The whole may be what a node hands its body: a window itself, or a constant. */
static void place_window(builder *b, const tl_value *v, tl_executable_value *out)
{
    int index = place_value(b, v->whole);
    const tl_executable_value *whole = &b->values[index];
    int64_t offset = tl_storage_bytes(v->dtype, v->whole_start);
    out->place = TL_PLACE_WINDOW;
    out->whole = whole->place == TL_PLACE_WINDOW ? whole->whole : index;
    out->offset = whole->place == TL_PLACE_WINDOW ? whole->offset + offset : offset;
    if (whole->place != TL_PLACE_CONSTANT)
        return;
    out->place = TL_PLACE_CONSTANT;
    out->data = (const char *)whole->data + offset;
    out->file = whole->file;
    out->file_offset = whole->file_offset + offset;
}

static int place_value(builder *b, const tl_value *v)
{
    if (b->place_of[v->index] >= 0)
        return b->place_of[v->index];
    tl_executable_value value = {
        .name = v->name, .place = TL_PLACE_ARENA, .size = value_bytes(v), .port = -1
    };
    if (v->whole != NULL) {
        place_window(b, v, &value);
    } else if (v->data != NULL) {
        value.place = TL_PLACE_CONSTANT;
        value.data = v->data;
        const char *location;
        if (tl_onnx_locate(b->model->onnx, v->data, (size_t)value.size, &location,
                           &value.file_offset))
            value.file = tl_arena_format(b->arena, "%s/%s", b->model->folder, location);
        value.is_mapped = tl_arena_is_spilled(b->model->arena, v->data, (size_t)value.size) ||
                          tl_onnx_is_mapped(b->model->onnx, v->data, (size_t)value.size);
    } else if (v->is_input) {
        value.place = TL_PLACE_INPUT;
        value.port = b->input_port[v->index];
    } else if (v->is_output && b->output_port[v->index] >= 0) {
        value.place = TL_PLACE_OUTPUT;
        value.port = b->output_port[v->index];
    }
    set_factors(b, v, &value);
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
    add_step(b, (tl_executable_step){
                    .name = kernel->name,
                    .kernel = b->kernel_of[w],
                    .value_count = params + prepared,
                    .values = values,
                    .class_key = facts->class_key,
                    .workload = facts->workload,
                    .flops = facts->flops,
                    .bytes = facts->bytes,
                });
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

/* An output that no step writes: a constant, an input, or another output under a second name. */
static void add_copies(builder *b, const tl_graph *g)
{
    for (int i = 0; i < g->shown_count; i++) {
        const tl_value *v = g->outputs[i];
        if (v->data == NULL && !v->is_input && b->output_port[v->index] == i)
            continue;
        int from = place_value(b, v);
        tl_executable_value copy = {
            .name = v->name, .place = TL_PLACE_OUTPUT, .size = value_bytes(v), .port = i
        };
        set_factors(b, v, &copy);
        add_copy(b, v->name, from, add_value(b, copy));
    }
}

/* ---- nodes with bodies ---- */

static int temporary(builder *b, const tl_value *like)
{
    tl_executable_value value = {
        .name = like->name, .place = TL_PLACE_ARENA, .size = value_bytes(like), .port = -1
    };
    set_factors(b, like, &value);
    return add_value(b, value);
}

/* The builder's view of a body: its values, of which none is placed yet. */
static builder *enter_body(builder *b, const tl_graph *body, int **outer)
{
    *outer = b->place_of;
    b->place_of = TL_NEW_ARRAY(b->arena, int, body->value_count);
    for (int i = 0; i < body->value_count; i++)
        b->place_of[i] = -1;
    return b;
}

static int place_or_none(builder *b, const tl_value *v)
{
    return v != NULL ? place_value(b, v) : TL_NO_VALUE;
}

/* Whether a step of the body itself writes its output `i`, and none before it is the same value. */
static bool is_made(const tl_graph *body, int i)
{
    const tl_value *v = body->outputs[i];
    for (int k = 0; k < i; k++)
        if (body->outputs[k] == v)
            return false;
    return v->data == NULL && !v->is_input && v->whole == NULL;
}

static void add_list(builder *b, const tl_item_list *list);

static void add_choice(builder *b, const tl_item *item)
{
    const tl_node *n = item->node;
    int *condition = TL_NEW_ARRAY(b->arena, int, 1), step = b->step_count, owned[2], *outer;
    int *inputs = TL_NEW_ARRAY(b->arena, int, n->input_count);
    int *results = TL_NEW_ARRAY(b->arena, int, n->output_count);
    for (int i = 0; i < n->input_count; i++)
        inputs[i] = place_value(b, n->inputs[i]);
    for (int i = 0; i < n->output_count; i++)
        results[i] = n->outputs[i] != NULL ? place_value(b, n->outputs[i])
                                           : temporary(b, n->bodies[0]->outputs[i]);
    condition[0] = inputs[0];
    add_step(b, (tl_executable_step){ .name = n->name,
                                      .kernel = TL_STEP_CHOICE,
                                      .value_count = 1,
                                      .values = condition });
    for (int k = 0; k < 2; k++) {
        const tl_graph *body = n->bodies[k];
        int first = b->step_count;
        enter_body(b, body, &outer);
        for (int i = 0; i < body->input_count; i++)
            b->place_of[body->inputs[i]->index] = inputs[1 + i];
        for (int i = 0; i < body->output_count; i++)
            if (is_made(body, i))
                b->place_of[body->outputs[i]->index] = results[i];
        add_list(b, &item->bodies[k]);
        for (int i = 0; i < body->output_count; i++)
            if (!is_made(body, i))
                add_copy(b, n->name, place_value(b, body->outputs[i]), results[i]);
        owned[k] = b->step_count - first;
        b->place_of = outer;
    }
    b->steps[step].body = owned[0];
    b->steps[step].other = owned[1];
}

/* What a turn has made becomes the state of the next. A state that goes into another's place is read before any is written. */
static void add_next_states(builder *b, const tl_node *n, int first, int count, const int *states)
{
    const tl_graph *body = n->bodies[0];
    int *from = TL_NEW_ARRAY(b->arena, int, count);
    for (int i = 0; i < count; i++) {
        const tl_value *v = body->outputs[first + i];
        from[i] = place_value(b, v);
        bool is_state = false;
        for (int k = 0; k < count; k++)
            is_state |= from[i] == states[k];
        if (!is_state || from[i] == states[i])
            continue;
        int kept = temporary(b, v);
        add_copy(b, n->name, from[i], kept);
        from[i] = kept;
    }
    for (int i = 0; i < count; i++)
        if (from[i] != states[i])
            add_copy(b, n->name, from[i], states[i]);
}

/* How many turns a loop takes at most, where that is a function of the dims; NULL: it is a constant. */
static const tl_varying *varying_most(const builder *b, const tl_node *n)
{
    const tl_join *join = b->model->join;
    for (int i = 0; join != NULL && i < join->loop_count; i++)
        if (join->loops[i].node == n)
            return tl_varying_is_constant(&join->loops[i].most) ? NULL : &join->loops[i].most;
    return NULL;
}

static void add_loop(builder *b, const tl_item *item)
{
    const tl_node *n = item->node;
    const tl_graph *body = n->bodies[0];
    int count = (int)tl_attr_int(n, "states", 0), again = tl_attr_int(n, "again", 0) != 0, *outer;
    int *values = TL_NEW_ARRAY(b->arena, int, TL_LOOP_VALUE_COUNT);
    int *states = TL_NEW_ARRAY(b->arena, int, count);
    int *captured = TL_NEW_ARRAY(b->arena, int, n->input_count);
    int *stacks = TL_NEW_ARRAY(b->arena, int, body->output_count);
    for (int i = 0; i < count; i++) {
        states[i] =
            n->outputs[i] != NULL ? place_value(b, n->outputs[i]) : temporary(b, n->inputs[2 + i]);
        add_copy(b, n->name, place_value(b, n->inputs[2 + i]), states[i]);
    }
    for (int i = 2 + count; i < n->input_count; i++)
        captured[i] = place_value(b, n->inputs[i]);
    for (int i = again + count; i < body->output_count; i++)
        stacks[i] = place_or_none(b, n->outputs[i - again]);
    values[TL_LOOP_WANTED] = place_or_none(b, n->inputs[0]);
    values[TL_LOOP_ENTERS] = place_or_none(b, n->inputs[1]);
    values[TL_LOOP_TURN] = temporary(b, body->inputs[0]);
    values[TL_LOOP_TAKEN] = place_or_none(b, n->outputs[n->output_count - 1]);

    int step = b->step_count;
    add_step(b, (tl_executable_step){ .name = n->name,
                                      .kernel = TL_STEP_LOOP,
                                      .value_count = TL_LOOP_VALUE_COUNT,
                                      .values = values,
                                      .most = tl_attr_int(n, "most", 0),
                                      .varying_most = varying_most(b, n) });
    enter_body(b, body, &outer);
    b->place_of[body->inputs[0]->index] = values[TL_LOOP_TURN];
    for (int i = 1; i < body->input_count; i++)
        b->place_of[body->inputs[i]->index] = i <= count ? states[i - 1] : captured[i + 1];
    for (int i = 0; i < body->output_count; i++)
        if (is_made(body, i))
            b->place_of[body->outputs[i]->index] = temporary(b, body->outputs[i]);
    values[TL_LOOP_AGAIN] = again ? place_value(b, body->outputs[0]) : TL_NO_VALUE;
    add_list(b, &item->bodies[0]);
    for (int i = again + count; i < body->output_count; i++) {
        if (stacks[i] == TL_NO_VALUE)
            continue;
        int *put = TL_NEW_ARRAY(b->arena, int, 3);
        put[0] = place_value(b, body->outputs[i]);
        put[1] = stacks[i];
        put[2] = values[TL_LOOP_TURN];
        add_step(b, (tl_executable_step){
                        .name = n->name, .kernel = TL_STEP_PUT, .value_count = 3, .values = put });
    }
    add_next_states(b, n, again, count, states);
    b->place_of = outer;
    b->steps[step].body = b->step_count - step - 1;
}

/* As deep as graphs are nested. */
static void add_list(builder *b, const tl_item_list *list)
{
    for (int i = 0; i < list->count; i++) {
        const tl_item *item = &list->items[i];
        if (item->kernel >= 0)
            add_steps(b, item->kernel);
        else if (item->node->op == TL_OP_LOOP)
            add_loop(b, item);
        else
            add_choice(b, item);
    }
}

/* Constants that steps read as they are lie where a kernel may read them; those of the model's own file may lie at any byte, and
 * the ones that are only packed stay there. */
static void align_constants(builder *b)
{
    const size_t alignment = 64;
    for (int s = 0; s < b->step_count; s++)
        for (int i = 0; i < b->steps[s].value_count; i++) {
            int at = b->steps[s].values[i];
            tl_executable_value *v = at == TL_NO_VALUE ? NULL : &b->values[at];
            if (v == NULL || v->place != TL_PLACE_CONSTANT || v->file != NULL || !v->is_mapped ||
                (uintptr_t)v->data % alignment == 0)
                continue;
            const void *data = v->data;
            v->data = tl_arena_copy(b->arena, data, (size_t)v->size, alignment);
            tl_pages_rest(data, (size_t)v->size);
            v->is_mapped = tl_arena_is_spilled(b->arena, v->data, (size_t)v->size);
            if (v->is_mapped)
                tl_pages_rest(v->data, (size_t)v->size);
        }
}

static tl_port *make_ports(const tl_model *model, tl_value *const *values, int count)
{
    tl_port *ports = TL_NEW_ARRAY(model->arena, tl_port, count);
    for (int i = 0; i < count; i++) {
        ports[i].name = values[i]->name;
        ports[i].dtype = values[i]->dtype;
        ports[i].rank = values[i]->shape.rank;
        for (int a = 0; a < values[i]->shape.rank; a++)
            ports[i].shape[a] = values[i]->shape.dims[a].extent;
        const tl_joined_value *joined = tl_notes_of(values[i])->joined;
        if (model->join != NULL && joined != NULL && joined->varies)
            ports[i].varying = joined->shape;
    }
    return ports;
}

/* Outputs whose extents are computed know the values that hold them. */
static const tl_port *count_ports(builder *b, const tl_graph *g, tl_port *ports)
{
    for (int i = 0; i < g->extent_count; i++) {
        const tl_output_extent *e = &g->extents[i];
        int *counts = (int *)ports[e->output].counts;
        if (counts == NULL) {
            counts = TL_NEW_ARRAY(b->arena, int, ports[e->output].rank);
            for (int a = 0; a < ports[e->output].rank; a++)
                counts[a] = TL_NO_VALUE;
            ports[e->output].counts = counts;
        }
        counts[e->axis] = place_value(b, g->outputs[e->count]);
    }
    return ports;
}

static int bound_count(const tl_model *model)
{
    if (model->join != NULL)
        return model->join->bound_count;
    return model->onnx != NULL ? tl_onnx_bound_count(model->onnx) : 0;
}

static const char *bound(const tl_model *model, int index, const void **data)
{
    if (model->join == NULL)
        return tl_onnx_bound(model->onnx, index, data);
    *data = model->join->bound[index];
    return model->join->bound_names[index];
}

/* Inputs that the graph is bound to a value of are fixed. */
static const tl_port *bind_ports(const tl_model *model, tl_port *ports, int count)
{
    for (int k = 0; k < bound_count(model); k++) {
        const void *data;
        const char *name = bound(model, k, &data);
        for (int i = 0; i < count; i++)
            if (strcmp(ports[i].name, name) == 0)
                ports[i].fixed = tl_arena_copy(model->arena, data, tl_port_size(&ports[i]), 8);
    }
    return ports;
}

tl_status tl_build_executable(tl_model *model, tl_diag *diag)
{
    const tl_graph *g = model->graph;
    builder b = { .model = model, .arena = model->arena };
    b.place_of = TL_NEW_ARRAY(b.arena, int, g->value_count);
    b.input_port = first_ports(&b, g->inputs, g->input_count);
    b.output_port = first_ports(&b, g->outputs, g->shown_count);
    b.kernel_of = TL_NEW_ARRAY(b.arena, int, model->work_count);
    b.prepare_kernel_of = TL_NEW_ARRAY(b.arena, int, model->work_count);
    memset(b.place_of, -1, sizeof(int) * (size_t)g->value_count);
    memset(b.kernel_of, -1, sizeof(int) * (size_t)model->work_count);
    memset(b.prepare_kernel_of, -1, sizeof(int) * (size_t)model->work_count);
    b.kernels = TL_NEW_ARRAY(b.arena, tl_executable_kernel, 2 * model->work_count);
    b.prepare = TL_NEW_ARRAY(b.arena, tl_executable_step, model->partition.count);

    add_list(&b, &model->partition.list);
    add_copies(&b, g);
    align_constants(&b);
    const tl_port *outputs = count_ports(&b, g, make_ports(model, g->outputs, g->shown_count));

    tl_executable_spec spec = {
        .model = g->name,
        .device = model->device != NULL              ? model->device->type->name
                  : tl_target_is_gpu(&model->target) ? "cuda"
                                                     : NULL,
        .note = tl_arena_format(b.arena, "tuned %d", model->facts.tuned_count),
        .input_count = g->input_count,
        .output_count = g->shown_count,
        .value_count = b.value_count,
        .kernel_count = b.kernel_count,
        .prepare_count = b.prepare_count,
        .step_count = b.step_count,
        .inputs = bind_ports(model, make_ports(model, g->inputs, g->input_count), g->input_count),
        .outputs = outputs,
        .values = b.values,
        .kernels = b.kernels,
        .prepare = b.prepare,
        .steps = b.steps,
    };
    if (model->join != NULL) {
        spec.dim_count = model->join->request.samples.dim_count;
        spec.dims = model->join->request.dims;
    }
    tl_cpu_features needed; /* of a target by name; else those of this machine */
    if (tl_cpu_level(model->prepare_target.cpu, &needed))
        spec.cpu = needed;
    return tl_executable_create(&spec, &model->executable, diag);
}
