/* tests/codegen/gpu_kernels.h: kernels for a GPU: a naive program and a trace, from texts or from models/kernels/gpu, compiled,
 * and assembled where there is a ptxas; what is in the machine code. */
#ifndef TL_TESTS_GPU_KERNELS_H
#define TL_TESTS_GPU_KERNELS_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"
#include "codegen/object/ptxas.h"
#include "schedule/decide.h"
#include "schedule/schedule.h"
#include "schedule/sketch/sketch.h"
#include "schedule/trace.h"

static inline tl_status gpu_target(const char *cpu, tl_target *out, tl_diag *diag)
{
    char name[40];
    snprintf(name, sizeof name, "cuda,%s", cpu);
    return tl_target_named(name, out, diag);
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

/* A kernel under a trace, as a text that ptxas takes where there is one. Fails the test otherwise. */
static inline const char *gpu_text(tl_arena *arena, const char *kernel, const char *trace,
                                   const char *cpu, tl_emit what)
{
    tl_diag diag = { "" };
    tl_target target;
    const tl_program *program = NULL;
    const char *text = "";
    if (gpu_target(cpu, &target, &diag) != TL_OK ||
        gpu_schedule(arena, kernel, trace, &target, &program, &diag) != TL_OK ||
        gpu_emit(arena, program, &target, what, &text, &diag) != TL_OK)
        fail_msg("%s\n%s%s", diag.text, kernel, trace);
    return text;
}

/* What ptxas makes of it spills no register. */
static inline void gpu_expect_no_spills(tl_arena *arena, const char *name, const char *ptx,
                                        const char *cpu)
{
    const tl_ptx_use *uses;
    int count;
    tl_diag diag = { "" };
    if (tl_ptxas_run(arena, ptx, cpu, NULL, &uses, &count, &diag) != TL_OK)
        fail_msg("%s: %s\n%s", name, diag.text, ptx);
    for (int i = 0; i < count; i++)
        if (uses[i].spill_bytes != 0)
            fail_msg("%s: %s spills %lld bytes\n%s", name, uses[i].kernel,
                     (long long)uses[i].spill_bytes, ptx);
}

static inline const char *gpu_ptx(tl_arena *arena, const char *kernel, const char *trace,
                                  const char *cpu)
{
    const char *ptx = gpu_text(arena, kernel, trace, cpu, TL_EMIT_OBJECT);
    if (tl_ptxas_find(arena) != NULL)
        gpu_expect_no_spills(arena, "kernel", ptx, cpu);
    return ptx;
}

/* A kernel under its default schedule, with what is open in it decided. */
typedef struct {
    tl_program *naive;
    const tl_program *program;
    tl_target target;
    const char *trace;
} gpu_case;

static inline gpu_case gpu_by_default(tl_arena *arena, const char *name, const char *kernel,
                                      const char *cpu, tl_decider *decide, const void *user)
{
    gpu_case c = { 0 };
    tl_diag diag = { "" };
    if (tl_program_parse(arena, kernel, name, &c.naive, &diag) != TL_OK ||
        gpu_target(cpu, &c.target, &diag) != TL_OK)
        fail_msg("%s: %s", name, diag.text);
    tl_schedule *s = tl_schedule_create(arena, c.naive, &c.target, false);
    tl_schedule_set_decider(s, decide, (void *)(uintptr_t)user);
    if (tl_schedule_default(s, &diag) != TL_OK)
        fail_msg("%s: %s", name, diag.text);
    c.trace = tl_trace_text(arena, tl_schedule_trace(s));
    c.program = tl_schedule_program(s);
    return c;
}

/* It assembles for its target, and spills no register. */
static inline void gpu_expect_assembles(tl_arena *arena, const char *name, const gpu_case *c,
                                        const char *cpu)
{
    tl_diag diag = { "" };
    const char *ptx = "";
    if (gpu_emit(arena, c->program, &c->target, TL_EMIT_OBJECT, &ptx, &diag) != TL_OK)
        fail_msg("%s: %s\n%s", name, diag.text, c->trace);
    gpu_expect_no_spills(arena, name, ptx, cpu);
}

/* Skips a test of what ptxas says where there is none. */
static inline void gpu_need_ptxas(void)
{
    tl_arena *arena = tl_arena_create(0);
    bool found = tl_ptxas_find(arena) != NULL;
    tl_arena_destroy(arena);
    if (found)
        return;
    print_message("there is no ptxas here\n");
    skip();
}

#endif
