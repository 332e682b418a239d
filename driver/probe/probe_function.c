/* driver/probe/probe_function.c: how long a vector of exponentials takes as our own code computes it: a kernel over values in
 * L1, compiled as any other. */
#include "codegen/codegen.h"
#include "driver/probe/probe_private.h"
#include "schedule/sketch/sketch.h"

enum { VALUES = 1024 };
static const char text[] = "kernel exponential(X: f32[1024], out Y: f32[1024])\n"
                           "  exponential: Y[i] = exp(X[i])\n";

typedef struct {
    tl_phase_fn *phase;
    tl_kernel_args args;
    int64_t extent;
} exponential;

static void run(int64_t rounds, void *memory)
{
    exponential *e = memory;
    for (; rounds > 0; rounds--)
        e->phase(&e->args, 0, e->extent, 0);
}

static tl_status compile(tl_arena *arena, tl_jit *jit, const tl_target *target, tl_jit_kernel **out,
                         tl_descriptor *descriptor)
{
    tl_program *program;
    tl_text object = { 0 };
    if (TL_ARENA_GUARD(arena))
        return TL_NO_MEMORY;
    TL_TRY(tl_program_parse(arena, text, "exponential", &program, NULL));
    tl_schedule *s = tl_schedule_create(arena, program, target, false);
    TL_TRY(tl_schedule_default(s, NULL));
    tl_status status = tl_codegen_compile(arena, tl_schedule_program(s), false, target,
                                          TL_EMIT_OBJECT, &object, descriptor, NULL);
    if (status == TL_OK)
        status = tl_jit_add(jit, object.data, object.size, descriptor, out, NULL);
    tl_text_free(&object);
    return status;
}

static double time_kernel(const tl_jit_kernel *code, const tl_descriptor *d)
{
    static const float zeros[VALUES];
    float results[VALUES] __attribute__((aligned(64)));
    void *buffers[] = { (void *)zeros, results };
    if (d->phase_count != 1 || d->has_sizes || d->scratch_bytes > 0 || d->thread_scratch_bytes > 0)
        return 0;
    exponential e = { .phase = tl_jit_phase(code, 0), .extent = d->extents[0] };
    e.args = (tl_kernel_args){ buffers, NULL, NULL, NULL, 0 };
    return tl_probe_loop_time(run, &e).cycles;
}

double tl_probe_exp(const tl_target *target)
{
    tl_arena *arena = tl_arena_create(0);
    tl_jit *jit = NULL;
    tl_jit_kernel *code = NULL;
    tl_descriptor descriptor = { 0 };
    double cycles = 0;
    tl_target one = *target;
    one.cores = 1;
    if (arena != NULL && tl_jit_create(&one, &jit, NULL) == TL_OK &&
        compile(arena, jit, &one, &code, &descriptor) == TL_OK)
        cycles = time_kernel(code, &descriptor) * tl_target_lanes(&one, TL_F32) / VALUES;
    if (code != NULL)
        tl_jit_remove(code);
    if (jit != NULL)
        tl_jit_destroy(jit);
    tl_arena_destroy(arena);
    return cycles;
}
