/* tests/codegen/gpu_kernels.h: kernels for a GPU: a naive program and a trace, from texts or from models/kernels/gpu, compiled,
 * and assembled where there is a ptxas; what is in the machine code. */
#ifndef TL_TESTS_GPU_KERNELS_H
#define TL_TESTS_GPU_KERNELS_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"
#include "codegen/object/ptxas.h"
#include "schedule/schedule.h"
#include "schedule/trace.h"

static inline tl_status gpu_target(const char *cpu, tl_target *out, tl_diag *diag)
{
    TL_TRY(tl_target_named("nvptx64", out, diag));
    snprintf(out->cpu, sizeof out->cpu, "%s", cpu);
    return TL_OK;
}

/* The scheduled program; `trace` may be NULL. */
static inline tl_status gpu_schedule(tl_arena *arena, const char *kernel, const char *trace,
                                     const tl_target *target, const tl_program **out, tl_diag *diag)
{
    tl_program *naive;
    TL_TRY(tl_program_parse(arena, kernel, "kernel", &naive, diag));
    TL_TRY(tl_program_verify(naive, diag));
    *out = naive;
    if (trace == NULL)
        return TL_OK;
    tl_schedule *s = tl_schedule_create(arena, naive, target, true);
    tl_trace *steps;
    TL_TRY(tl_trace_parse(arena, trace, "trace", target, &steps, diag));
    TL_TRY(tl_trace_apply(steps, s, diag));
    *out = tl_schedule_program(s);
    return TL_OK;
}

static inline tl_status gpu_emit(tl_arena *arena, const tl_program *program,
                                 const tl_target *target, tl_emit what, const char **out,
                                 tl_diag *diag)
{
    tl_text text = { 0 };
    tl_descriptor descriptor;
    tl_status status =
        tl_codegen_compile(arena, program, false, target, what, &text, &descriptor, diag);
    *out = tl_arena_strdup(arena, status == TL_OK ? tl_text_get(&text) : "");
    tl_text_free(&text);
    return status;
}

#endif
