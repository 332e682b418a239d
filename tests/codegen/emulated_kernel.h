/* tests/codegen/emulated_kernel.h: compiles a program for a GPU and runs it on the emulator, launch by launch, as a device
 * would. */
#ifndef TL_TESTS_EMULATED_KERNEL_H
#define TL_TESTS_EMULATED_KERNEL_H
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"
#include "codegen/emulate/emulate.h"
#include "ir/expr/index.h"
#include "runtime/base/array.h"

typedef struct {
    tl_emulated *module;
    tl_descriptor descriptor;
} emulated;

static inline tl_status emulated_make(tl_arena *arena, const tl_program *program, bool prepare,
                                      const tl_target *host, const tl_target *target, emulated *out,
                                      tl_diag *diag)
{
    tl_text text = { 0 };
    *out = (emulated){ 0 };
    tl_status status = tl_codegen_compile(arena, program, prepare, target, TL_EMIT_LLVM, &text,
                                          &out->descriptor, diag);
    if (status == TL_OK)
        status = tl_emulated_load(host, text.data, text.size, &out->module, diag);
    tl_text_free(&text);
    return status;
}

/* Bytes of a buffer for these dims. */
static inline int64_t emulated_bytes(tl_arena *arena, const tl_program *program, const tl_buffer *b,
                                     const int64_t *dims)
{
    int64_t count = 1, extent = 0;
    tl_binding *values = TL_NEW_ARRAY(arena, tl_binding, program->dim_count + 1);
    for (int d = 0; d < program->dim_count; d++)
        values[d] = (tl_binding){ program->dims[d], tl_int(arena, dims[d]) };
    for (int a = 0; a < b->rank; a++) {
        tl_const_int(tl_substitute(arena, b->shape[a], values, program->dim_count), &extent);
        count *= extent;
    }
    return tl_storage_bytes(b->dtype, count);
}

/* `data`: params, then prepared ones. */
static inline tl_status emulated_run(tl_arena *arena, const emulated *e, const tl_program *program,
                                     void *const *data, const int64_t *dims, tl_diag *diag)
{
    const tl_descriptor *d = &e->descriptor;
    int count = d->buffer_count;
    int64_t scratch_bytes = 0;
    TL_TRY(tl_descriptor_scratch(d, dims, &scratch_bytes, diag));
    bool has_scratch = scratch_bytes > 0 || d->scratch_formula != NULL;
    int arguments = count + has_scratch + d->dim_count;
    const void **values = TL_NEW_ARRAY(arena, const void *, arguments);
    void **pointers = TL_NEW_ARRAY(arena, void *, count + 1);
    tl_emulated_buffer *buffers = TL_NEW_ARRAY(arena, tl_emulated_buffer, count + 1);
    for (int i = 0; i < count; i++) {
        const tl_buffer *b = i < program->param_count ? program->params[i]
                                                      : program->prepared[i - program->param_count];
        pointers[i] = data[i];
        values[i] = &pointers[i];
        buffers[i] = (tl_emulated_buffer){ data[i], emulated_bytes(arena, program, b, dims), true };
    }
    if (has_scratch) {
        pointers[count] = tl_arena_alloc(arena, (size_t)scratch_bytes + 64, 64);
        memset(pointers[count], 0xA5, (size_t)scratch_bytes);
        values[count] = &pointers[count];
        buffers[count] = (tl_emulated_buffer){ pointers[count], scratch_bytes, true };
    }
    for (int i = 0; i < d->dim_count; i++)
        values[count + has_scratch + i] = &dims[i];
    for (int p = 0; p < d->phase_count; p++) {
        int64_t grid[TL_LAUNCH_AXES];
        TL_TRY(tl_descriptor_grid(d, p, dims, grid, diag));
        if (grid[0] * grid[1] * grid[2] == 0)
            continue;
        tl_emulated_launch launch = { .grid = { (int)grid[0], (int)grid[1], (int)grid[2] },
                                      .shared_bytes = d->launches[p].dynamic_shared_bytes,
                                      .arguments = (void *const *)values,
                                      .argument_count = arguments,
                                      .buffers = buffers,
                                      .buffer_count = count + has_scratch,
                                      .cpu_threads = 1 };
        memcpy(launch.block, d->launches[p].block, sizeof launch.block);
        const char *name = tl_arena_strdup(arena, tl_descriptor_function(d, p).text);
        TL_TRY(tl_emulated_run(e->module, tl_emulated_find(e->module, name), &launch, diag));
    }
    return TL_OK;
}

#endif
