/* driver/bench/bench_kernel.c: a kernel's text as an executable of one step, so that it is measured like a model. */
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"
#include "driver/bench/bench.h"
#include "driver/pipeline/device_target.h"
#include "driver/pipeline/host_target.h"
#include "frontend/frontend.h"
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "schedule/sketch/sketch.h"
#include "schedule/trace.h"

struct tl_kernel_file {
    tl_arena *arena;
    tl_target target, host; /* host: of what packs constants; the target where that is a CPU */
    tl_device *device;      /* that it runs on; NULL: the CPU */
    tl_program *naive;
    const tl_program *scheduled;
    tl_text objects[2]; /* body, prepare */
    tl_descriptor descriptors[2];
    tl_jit *jit;
    tl_jit_kernel *code[2];
    int64_t *dims;
    tl_executable *executable;
};

static tl_status read_text(const char *path, tl_text *text, tl_diag *diag)
{
    TL_TRY(tl_file_read(path, text, diag));
    if (memchr(tl_text_get(text), '\0', text->size) != NULL)
        return tl_fail(diag, TL_BAD_TEXT, "%s: this is no text", path);
    return TL_OK;
}

static tl_status read_program(tl_kernel_file *k, const char *path, tl_diag *diag)
{
    tl_text text = { 0 };
    tl_status status = read_text(path, &text, diag);
    if (status == TL_OK)
        status = tl_program_parse(k->arena, tl_text_get(&text), path, &k->naive, diag);
    if (status == TL_OK)
        status = tl_program_verify(k->naive, diag);
    if (status == TL_BAD_IR) /* of a file it is the file's fault */
        status = TL_BAD_TEXT;
    tl_text_free(&text);
    return status;
}

static tl_status schedule(tl_kernel_file *k, const char *trace_path, tl_diag *diag)
{
    tl_schedule *s = tl_schedule_create(k->arena, k->naive, &k->target, false);
    if (trace_path == NULL) {
        TL_TRY(tl_schedule_default(s, diag));
    } else {
        tl_text text = { 0 };
        tl_trace *trace;
        tl_status status = read_text(trace_path, &text, diag);
        if (status == TL_OK)
            status =
                tl_trace_parse(k->arena, tl_text_get(&text), trace_path, &k->target, &trace, diag);
        if (status == TL_OK)
            status = tl_trace_apply(trace, s, diag);
        if (status != TL_OK)
            tl_context(diag, "schedule %s", trace_path);
        tl_text_free(&text);
        TL_TRY(status);
    }
    k->scheduled = tl_schedule_program(s);
    return tl_program_verify(k->scheduled, diag);
}

static tl_status compile(tl_kernel_file *k, tl_diag *diag)
{
    TL_TRY(tl_jit_create(&k->host, &k->jit, diag));
    for (int part = 0; part < (k->scheduled->prepare != NULL ? 2 : 1); part++) {
        const tl_target *target = part == 1 ? &k->host : &k->target;
        tl_emit what = part == 0 && k->device != NULL ? tl_emit_of_form(k->device->type->form)
                                                      : TL_EMIT_OBJECT;
        TL_TRY(tl_codegen_compile(k->arena, k->scheduled, part == 1, target, what,
                                  &k->objects[part], &k->descriptors[part], diag));
        if (tl_target_is_gpu(target)) /* its device loads it */
            continue;
        TL_TRY(tl_jit_add(k->jit, k->objects[part].data, k->objects[part].size,
                          &k->descriptors[part], &k->code[part], diag));
    }
    return TL_OK;
}

static tl_status read_dims(tl_kernel_file *k, const tl_text_list *given, tl_diag *diag)
{
    k->dims = TL_NEW_ARRAY(k->arena, int64_t, k->naive->dim_count);
    for (int d = 0; d < k->naive->dim_count; d++)
        k->dims[d] = k->naive->dims[d]->max;
    for (int i = 0; i < given->count; i++) {
        const char *text = given->items[i], *equals = strchr(text, '=');
        char *end = NULL;
        long long n = equals != NULL ? strtoll(equals + 1, &end, 10) : 0;
        int found = -1;
        for (int d = 0; equals != NULL && d < k->naive->dim_count; d++) {
            const char *name = k->naive->dims[d]->name;
            if (strlen(name) == (size_t)(equals - text) && strncmp(name, text, strlen(name)) == 0)
                found = d;
        }
        if (equals == NULL || end == equals + 1 || *end != '\0')
            return tl_fail(diag, TL_BAD_ARGUMENT, "--dim %s: not of the form NAME=N", text);
        if (found < 0)
            return tl_fail(diag, TL_BAD_ARGUMENT, "--dim %s: kernel %s has no such dim", text,
                           k->naive->name);
        const tl_var *var = k->naive->dims[found];
        if (n < var->min || n > var->max)
            return tl_fail(diag, TL_BAD_ARGUMENT, "--dim %s: %s is in %lld..%lld", text, var->name,
                           (long long)var->min, (long long)var->max);
        k->dims[found] = n;
    }
    return TL_OK;
}

/* A constant's values: normal floats, small whole numbers. */
static void *random_values(tl_arena *arena, const tl_buffer *b, int64_t elements, uint64_t seed)
{
    size_t size = (size_t)tl_storage_bytes(b->dtype, elements);
    void *data = tl_arena_alloc(arena, size + 64, 64);
    tl_random random = tl_random_make(seed);
    for (int64_t i = 0; i < elements; i++) {
        tl_number value;
        if (tl_dtype_is_float(b->dtype))
            value.f = tl_random_normal(&random);
        else
            value.i = tl_random_below(&random, 100);
        tl_number_store(b->dtype, data, (size_t)i, value);
    }
    return data;
}

static tl_executable_kernel kernel_of(const tl_kernel_file *k, int part)
{
    tl_executable_kernel kernel = { .descriptor = k->descriptors[part],
                                    .object = k->objects[part].data,
                                    .object_size = k->objects[part].size };
    if (k->code[part] == NULL)
        return kernel;
    tl_phase_fn **phases = TL_NEW_ARRAY(k->arena, tl_phase_fn *, k->descriptors[part].phase_count);
    for (int p = 0; p < k->descriptors[part].phase_count; p++)
        phases[p] = tl_jit_phase(k->code[part], p);
    kernel.phases = phases;
    kernel.sizes = tl_jit_sizes(k->code[part]);
    return kernel;
}

/* Parameters become ports (as arrays of one axis, of the largest size) and constants. */
static tl_status build(tl_kernel_file *k, tl_diag *diag)
{
    const tl_program *p = k->scheduled;
    int params = p->param_count, count = params + p->prepared_count;
    tl_executable_value *values = TL_NEW_ARRAY(k->arena, tl_executable_value, count);
    tl_port *ports[2] = { TL_NEW_ARRAY(k->arena, tl_port, params),
                          TL_NEW_ARRAY(k->arena, tl_port, params) };
    int port_counts[2] = { 0 };
    int *body = TL_NEW_ARRAY(k->arena, int, count), *prepare = TL_NEW_ARRAY(k->arena, int, count);
    for (int i = 0; i < count; i++) {
        const tl_buffer *b = i < params ? p->params[i] : p->prepared[i - params];
        int64_t elements = tl_buffer_max_elements(b), bytes;
        TL_TRY(tl_tensor_bytes(b->dtype, 1, &elements, &bytes, diag));
        bool output = b->role == TL_ROLE_OUTPUT || b->role == TL_ROLE_INOUT;
        values[i] = (tl_executable_value){ .name = b->name, .size = bytes, .port = -1 };
        body[i] = i;
        prepare[i] = b->role == TL_ROLE_CONST || i >= params ? i : TL_NO_VALUE;
        if (i >= params) {
            values[i].place = TL_PLACE_PREPARED;
        } else if (b->role == TL_ROLE_CONST) {
            values[i].place = TL_PLACE_CONSTANT;
            values[i].data = random_values(k->arena, b, elements, (uint64_t)i + 1);
        } else {
            values[i].place = output ? TL_PLACE_OUTPUT : TL_PLACE_INPUT;
            values[i].port = port_counts[output]++;
            ports[output][values[i].port] =
                (tl_port){ .name = b->name, .dtype = b->dtype, .rank = 1, .shape = { elements } };
        }
    }

    char *keys = tl_arena_alloc(k->arena, 2 * 33, 1);
    tl_class_key(k->arena, k->naive, keys);
    tl_workload_key(k->arena, k->naive, keys + 33);
    bool prepares = p->prepare != NULL;
    tl_executable_kernel kernels[2] = { kernel_of(k, 0) };
    if (prepares)
        kernels[1] = kernel_of(k, 1);
    tl_executable_step steps[2] = {
        { .name = p->name,
          .kernel = 0,
          .value_count = count,
          .values = body,
          .dims = k->dims,
          .class_key = keys,
          .workload = keys + 33,
          .flops = tl_program_flops(k->naive),
          .bytes = tl_program_bytes(k->naive) },
        { .name = p->name, .kernel = 1, .value_count = count, .values = prepare, .dims = k->dims }
    };
    tl_executable_spec spec = { .model = p->name,
                                .device = k->device != NULL ? k->device->type->name : NULL,
                                .input_count = port_counts[0],
                                .output_count = port_counts[1],
                                .value_count = count,
                                .kernel_count = prepares ? 2 : 1,
                                .prepare_count = prepares,
                                .step_count = 1,
                                .inputs = ports[0],
                                .outputs = ports[1],
                                .values = values,
                                .kernels = kernels,
                                .prepare = &steps[1],
                                .steps = steps };
    TL_TRY(tl_executable_create(&spec, &k->executable, diag));
    return k->device != NULL ? tl_executable_attach(k->executable, k->device, diag) : TL_OK;
}

/* Where it runs, and what for. */
static tl_status choose_target(tl_kernel_file *k, const char *name, tl_diag *diag)
{
    if (tl_target_is_device(name))
        TL_TRY(tl_target_open_device(name, &k->device, diag));
    TL_TRY(tl_target_resolve(name, &k->target, diag));
    k->host = k->target;
    return k->device != NULL ? tl_target_resolve(NULL, &k->host, diag) : TL_OK;
}

static tl_status load(const tl_session *session, tl_kernel_file *k, const char *path,
                      const char *trace, const char *target, const tl_text_list *dims,
                      tl_diag *diag)
{
    if (TL_ARENA_GUARD(k->arena))
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", path);
    TL_TRY(choose_target(k, target, diag));
    k->target.machine = k->host.machine = session->machine;
    TL_TRY(read_program(k, path, diag));
    TL_TRY(read_dims(k, dims, diag));
    tl_status status = schedule(k, trace, diag);
    if (status == TL_OK)
        status = compile(k, diag);
    if (status == TL_OK)
        status = build(k, diag);
    if (status == TL_OK)
        status = tl_executable_prepare(k->executable, session->pool, 0, diag);
    if (status != TL_OK)
        tl_context(diag, "kernel %s of %s", k->naive->name, path);
    return status;
}

tl_status tl_kernel_file_load(const tl_session *session, const char *path, const char *trace,
                              const char *target, const tl_text_list *dims, tl_kernel_file **out,
                              tl_diag *diag)
{
    tl_kernel_file *k = calloc(1, sizeof *k);
    if (k != NULL)
        k->arena = tl_arena_create(0);
    if (k == NULL || k->arena == NULL) {
        free(k);
        return tl_fail(diag, TL_NO_MEMORY, "%s: out of memory", path);
    }
    tl_status status = load(session, k, path, trace, target, dims, diag);
    if (status != TL_OK) {
        tl_kernel_file_close(k);
        return status;
    }
    *out = k;
    return TL_OK;
}

void tl_kernel_file_close(tl_kernel_file *k)
{
    if (k == NULL)
        return;
    tl_executable_destroy(k->executable);
    for (int part = 0; part < 2; part++) {
        tl_jit_remove(k->code[part]);
        tl_text_free(&k->objects[part]);
    }
    tl_jit_destroy(k->jit);
    tl_device_close(k->device);
    tl_arena_destroy(k->arena);
    free(k);
}

tl_executable *tl_kernel_file_executable(const tl_kernel_file *k)
{
    return k->executable;
}
