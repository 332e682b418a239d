/* driver/pipeline/model_memory.c: how much memory a model takes, told before it is taken. */
#include "driver/pipeline/model_memory.h"
#include <string.h>
#include "runtime/base/array.h"
#include "runtime/base/checked.h"
#include "runtime/base/limits.h"
#include "runtime/base/map.h"

int64_t tl_memory_sum(int64_t a, int64_t b)
{
    int64_t sum;
    return b < 0 || tl_add_overflows(a, b, &sum) ? INT64_MAX : sum;
}

/* With its layout's padding; -1: it overflows. */
static int64_t value_bytes(const tl_value *v)
{
    int64_t extents[2 * TL_MAX_RANK], elements = 1;
    int rank = tl_layout_physical(&v->layout, &v->shape, extents);
    for (int a = 0; a < rank; a++)
        if (tl_mul_overflows(elements, extents[a], &elements))
            return -1;
    return tl_storage_bytes(v->dtype, elements);
}

typedef struct {
    tl_arena *arena;
    tl_map *known; /* by address: the buffer of a value, counted from 1 */
    tl_plan_buffer *buffers;
    int count, capacity;
} planning;

static void touch(planning *p, const tl_value *v, int step)
{
    v = v->whole != NULL ? v->whole : v;
    if (v->data != NULL || v->is_input || v->is_output)
        return;
    const char *key = tl_arena_format(p->arena, "%p", (const void *)v);
    uintptr_t at = (uintptr_t)tl_map_find(p->known, key);
    if (at == 0) {
        TL_ROOM(p->arena, p->buffers, p->count, p->capacity);
        int64_t size = value_bytes(v);
        p->buffers[p->count++] =
            (tl_plan_buffer){ .size = size < 0 ? INT64_MAX : size, .first = step };
        at = (uintptr_t)p->count;
        tl_map_put(p->known, key, (void *)at);
    }
    p->buffers[at - 1].last = step;
}

/* With those of the graphs in its nodes. */
static int64_t constants_of(const tl_graph *graph)
{
    int64_t bytes = 0;
    for (int i = 0; i < graph->value_count; i++)
        if (graph->values[i]->data != NULL)
            bytes =
                tl_memory_sum(bytes, tl_storage_bytes(graph->values[i]->dtype,
                                                      tl_shape_elements(&graph->values[i]->shape)));
    for (int i = 0; i < graph->node_count; i++)
        for (int b = 0; b < tl_op_bodies(graph->nodes[i]->op); b++)
            bytes = tl_memory_sum(bytes, constants_of(graph->nodes[i]->bodies[b]));
    return bytes;
}

static int64_t port_bytes(tl_value *const *values, int count)
{
    int64_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes = tl_memory_sum(bytes, value_bytes(values[i]));
    return bytes;
}

tl_status tl_model_memory_of_graph(tl_arena *arena, const tl_graph *graph,
                                   const tl_partition *partition, const int64_t *scratch,
                                   tl_model_memory *out, tl_plan_sizes *plan, tl_diag *diag)
{
    planning p = { .arena = arena, .known = tl_map_create(arena) };
    *out = (tl_model_memory){ .constants = constants_of(graph) };
    out->ports = tl_memory_sum(port_bytes(graph->inputs, graph->input_count),
                               port_bytes(graph->outputs, graph->output_count));
    for (int k = 0; k < partition->count; k++) {
        const tl_kernel *kernel = &partition->kernels[k];
        for (int i = 0; i < kernel->input_count; i++)
            touch(&p, kernel->inputs[i], k);
        for (int i = 0; i < kernel->output_count; i++)
            touch(&p, kernel->outputs[i], k);
        TL_ROOM(arena, p.buffers, p.count, p.capacity);
        p.buffers[p.count++] =
            (tl_plan_buffer){ .size = scratch != NULL ? scratch[k] : 0, .first = k, .last = k };
    }
    tl_status status = tl_memory_plan(p.buffers, p.count, plan, NULL);
    if (status == TL_BAD_ARGUMENT) { /* the sum overflows */
        *plan = (tl_plan_sizes){ INT64_MAX, INT64_MAX, INT64_MAX };
        status = TL_OK;
    }
    out->plan = plan->planned;
    return status == TL_OK ? TL_OK : tl_fail(diag, status, "no memory for the plan of memory");
}

static int64_t tensors_bytes(const tl_port *ports, int count)
{
    int64_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes = tl_memory_sum(bytes, (int64_t)tl_port_size(&ports[i]));
    return bytes;
}

tl_model_memory tl_model_memory_of_executable(const tl_executable *executable)
{
    const tl_executable_spec *spec = tl_executable_info(executable);
    tl_executable_sizes sizes = tl_executable_measure(executable);
    tl_model_memory out = { .constants = tl_memory_sum(sizes.constant_bytes, sizes.external_bytes),
                            .packed = sizes.prepared_bytes,
                            .ports =
                                tl_memory_sum(tensors_bytes(spec->inputs, spec->input_count),
                                              tensors_bytes(spec->outputs, spec->output_count)) };
    return out;
}

int64_t tl_model_memory_limit(void)
{
    int64_t available = tl_available_memory();
    return available / 5 * 4;
}

static void print_part(tl_text *out, const char *name, int64_t bytes)
{
    if (bytes <= 0)
        return;
    tl_text_format(out, "%s%s ", out->size > 0 ? ", " : "", name);
    if (bytes == INT64_MAX)
        tl_text_add(out, "more than can be counted");
    else
        tl_text_add_size(out, bytes);
}

tl_status tl_model_memory_check(const tl_model_memory *f, int64_t limit, tl_diag *diag)
{
    /* what is packed takes the place of constants as they are: of a file, whose pages go */
    int64_t weights = f->packed > f->constants ? f->packed : f->constants;
    int64_t sum = tl_memory_sum(tl_memory_sum(weights, f->plan), f->ports);
    if (limit <= 0 || sum <= limit)
        return TL_OK;
    tl_text parts = { 0 }, most = { 0 };
    print_part(&parts, "weights", weights);
    print_part(&parts, "temporaries", f->plan);
    print_part(&parts, "inputs and outputs", f->ports);
    tl_text_add_size(&most, limit);
    tl_status status =
        tl_fail(diag, TL_NO_MEMORY, "it takes more memory than the limit of %s (--max-memory): %s",
                tl_text_get(&most), tl_text_get(&parts));
    tl_text_free(&parts);
    tl_text_free(&most);
    return status;
}
