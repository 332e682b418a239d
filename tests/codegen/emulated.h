/* tests/codegen/emulated.h: compiles a program for a GPU and runs it on the emulated device, every buffer in memory of its
 * own, so that an access outside of one is noticed; or on the device that TILTH_TEST_DEVICE names ("cuda"). */
#ifndef TL_TESTS_EMULATED_H
#define TL_TESTS_EMULATED_H
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"
#include "codegen/emulate/emulated_device.h"
#include "ir/interpret/interpret.h"
#include "runtime/base/random.h"

typedef struct {
    tl_device *device;
    tl_queue *queue;
} emulated;

static inline tl_status emulated_open(emulated *out, tl_diag *diag)
{
    const char *wanted = getenv("TILTH_TEST_DEVICE");
    tl_emulated_device_add();
    TL_TRY(tl_device_open(wanted != NULL ? wanted : "cuda-emulated", &out->device, diag));
    return out->device->type->make_queue(out->device, NULL, &out->queue, diag);
}

static inline void emulated_close(emulated *e)
{
    e->device->type->drop_queue(e->queue);
    tl_device_close(e->device);
}

static inline tl_status emulated_load(const emulated *e, tl_arena *arena, const tl_program *program,
                                      bool prepare, const tl_target *target, tl_device_kernel **out,
                                      tl_diag *diag)
{
    tl_text module = { 0 };
    tl_descriptor descriptor;
    tl_status status =
        tl_codegen_compile(arena, program, prepare, target, tl_emit_of_form(e->device->type->form),
                           &module, &descriptor, diag);
    if (status == TL_OK)
        status = e->device->type->load(e->device, &descriptor, module.data, module.size, out, diag);
    tl_text_free(&module);
    return status;
}

static inline const tl_buffer *emulated_buffer(const tl_program *program, int i)
{
    return i < program->param_count ? program->params[i]
                                    : program->prepared[i - program->param_count];
}

static inline int64_t emulated_bytes(const tl_buffer *b)
{
    return tl_storage_bytes(b->dtype, tl_buffer_max_elements(b));
}

/* Memory for each parameter, in `buffers`: floats of -0.5 to 0.5, integers below `below`, results of zeros. */
static inline void emulated_data(tl_arena *arena, const tl_program *program, uint64_t seed,
                                 int64_t below, void **buffers)
{
    tl_random random = tl_random_make(seed);
    for (int i = 0; i < program->param_count; i++) {
        const tl_buffer *b = program->params[i];
        int64_t n = tl_buffer_max_elements(b);
        buffers[i] = tl_arena_alloc(arena, (size_t)emulated_bytes(b) + 8, 64);
        memset(buffers[i], 0, (size_t)emulated_bytes(b));
        for (int64_t k = 0; k < n && b->role != TL_ROLE_OUTPUT; k++) {
            tl_number value;
            if (tl_dtype_is_float(b->dtype))
                value.f = tl_random_unit(&random) - 0.5;
            else
                value.i = tl_random_below(&random, below);
            tl_number_store(b->dtype, buffers[i], (size_t)k, value);
        }
    }
}

/* What the results are, by the interpreter. */
static inline tl_status emulated_want(tl_arena *arena, const tl_program *naive, void **buffers,
                                      tl_diag *diag)
{
    tl_argument *arguments = TL_NEW_ARRAY(arena, tl_argument, naive->param_count);
    for (int i = 0; i < naive->param_count; i++)
        arguments[i] = (tl_argument){ naive->params[i], buffers[i] };
    return tl_interpret(naive, arguments, naive->param_count, NULL, NULL, diag);
}

static inline tl_status emulated_launch(const emulated *e, const tl_device_kernel *kernel,
                                        void **places, const int64_t *dims, tl_diag *diag)
{
    const tl_descriptor *d = &kernel->descriptor;
    const tl_device_type *type = e->device->type;
    int64_t bytes;
    void *scratch = NULL;
    TL_TRY(tl_descriptor_scratch(d, dims, &bytes, diag));
    TL_TRY(type->allocate(e->device, bytes, &scratch, diag));
    tl_kernel_args args = { .buffers = places, .dims = dims, .scratch = scratch };
    tl_status status = TL_OK;
    for (int p = 0; p < d->phase_count && status == TL_OK; p++)
        status = type->launch(e->queue, kernel, p, &args, diag);
    type->release(e->device, scratch);
    return status;
}

/* `buffers` in the order of params, then prepared ones: packed data of the host, read and written. */
static inline tl_status emulated_run(const emulated *e, tl_arena *arena, const tl_program *program,
                                     const tl_target *target, void **buffers, const int64_t *dims,
                                     tl_diag *diag)
{
    const tl_device_type *type = e->device->type;
    int count = program->param_count + program->prepared_count;
    void **places = TL_NEW_ARRAY(arena, void *, count + 1);
    tl_device_kernel *body = NULL, *prepare = NULL;
    tl_status status = emulated_load(e, arena, program, false, target, &body, diag);
    if (status == TL_OK && program->prepare != NULL)
        status = emulated_load(e, arena, program, true, target, &prepare, diag);
    for (int i = 0; i < count && status == TL_OK; i++) {
        int64_t bytes = emulated_bytes(emulated_buffer(program, i));
        status = type->allocate(e->device, bytes, &places[i], diag);
        if (status == TL_OK && i < program->param_count)
            status = type->copy_in(e->queue, places[i], buffers[i], bytes, diag);
    }
    if (status == TL_OK && prepare != NULL)
        status = emulated_launch(e, prepare, places, dims, diag);
    if (status == TL_OK)
        status = emulated_launch(e, body, places, dims, diag);
    for (int i = 0; i < program->param_count && status == TL_OK; i++)
        if (program->params[i]->role == TL_ROLE_OUTPUT)
            status = type->copy_out(e->queue, buffers[i], places[i],
                                    emulated_bytes(program->params[i]), diag);
    for (int i = 0; i < count; i++)
        type->release(e->device, places[i]);
    type->unload(body);
    type->unload(prepare);
    return status;
}

#endif
