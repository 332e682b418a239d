/* tests/fuzz/fuzz.c: the parts of targets. */
#include "tests/fuzz/fuzz.h"
#include <stdio.h>
#include <stdlib.h>

_Noreturn void fuzz_fail(const char *what, const tl_diag *diag)
{
    fprintf(stderr, "%s: %s\n", what, diag->text);
    abort();
}

void fuzz_check_refusal(tl_status status, const tl_diag *diag)
{
    if (status != TL_OK && diag->text[0] == '\0')
        fuzz_fail("a refusal without a sentence", diag);
}

const char *fuzz_text(tl_arena *arena, const uint8_t *bytes, size_t size)
{
    char *text = tl_arena_alloc(arena, size + 1, 1);
    for (size_t i = 0; i < size; i++)
        text[i] = (char)bytes[i];
    return text;
}

static void must_verify(const tl_graph *g, const char *after)
{
    tl_diag diag = { 0 };
    if (tl_graph_verify(g, &diag) != TL_OK)
        fuzz_fail(after, &diag);
}

static tl_status through_passes(tl_arena *arena, tl_graph *g, tl_diag *diag)
{
    tl_target target;
    tl_partition partition;
    TL_TRY(tl_target_named("x86-64-v4", &target, diag));
    TL_TRY(tl_infer_shapes(g, diag));
    must_verify(g, "infer_shapes");
    TL_TRY(tl_graph_prepare(g, TL_NUMERICS_RELAXED, diag));
    must_verify(g, "prepare");
    TL_TRY(tl_graph_fit(g, &target, TL_NUMERICS_RELAXED, diag));
    TL_TRY(tl_assign_layouts(g, &target, diag));
    must_verify(g, "layouts");
    TL_TRY(tl_partition_graph(arena, g, &partition, diag));
    for (int i = 0; i < partition.count; i++) {
        tl_program *program;
        const tl_kernel *kernel = &partition.kernels[i];
        const char *lowering = tl_choose_lowering(kernel, &target, TL_NUMERICS_RELAXED);
        TL_TRY(tl_kernel_program(arena, kernel, lowering, &program, diag));
        if (tl_program_verify(program, diag) != TL_OK)
            fuzz_fail(kernel->name, diag);
    }
    return TL_OK;
}

void fuzz_graph(tl_arena *arena, tl_graph *g)
{
    tl_diag diag = { 0 };
    fuzz_check_refusal(through_passes(arena, g, &diag), &diag);
}
