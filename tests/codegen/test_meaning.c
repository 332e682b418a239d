/* tests/codegen/test_meaning.c: the random kernels and schedules of tests/schedule/test_meaning.c, compiled: what runs is
 * what the interpreter computes for the naive kernel. For this machine or a smaller ISA that it can run, on one thread
 * or several, as the seed says. TL_SEED and TL_COUNT as there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "codegen/codegen.h"
#include "tests/codegen/compiled.h"
#include "tests/support/meaning.h"

static void *prepared_data(tl_arena *arena, const tl_buffer *b)
{
    size_t size = (size_t)tl_buffer_max_bytes(b);
    void *data = tl_arena_alloc(arena, size + 1, 64);
    memset(data, 0x5A, size);
    return data;
}

static tl_status run_compiled(tl_arena *arena, const tl_program *program, uint64_t seed,
                              const meaning_run *runs, int run_count, tl_diag *diag)
{
    static const char *const isas[] = { NULL, "x86-64-v4", "x86-64-v3", "x86-64" };
    const char *isa = isas[seed % 4];
    tl_target target;
    compiled body, prepare = { 0 };
    if (isa != NULL && !compiled_runs_here(isa))
        isa = NULL;
    TL_TRY(compiled_target(isa, &target, diag));
    TL_TRY(compiled_make(arena, program, false, &target, &body, diag));
    tl_status status = TL_OK;
    if (program->prepare != NULL)
        status = compiled_make(arena, program, true, &target, &prepare, diag);
    for (int r = 0; r < run_count && status == TL_OK; r++) {
        void *buffers[2 * MEANING_MAX_BUFFERS];
        int threads = 1 + (int)((seed / 4 + (uint64_t)r) % COMPILED_THREADS);
        memcpy(buffers, runs[r].data, sizeof runs[r].data);
        for (int i = 0; i < program->prepared_count; i++)
            buffers[program->param_count + i] = prepared_data(arena, program->prepared[i]);
        if (program->prepare != NULL)
            compiled_run(&prepare, buffers, runs[r].dims, threads);
        compiled_run(&body, buffers, runs[r].dims, threads);
    }
    compiled_free(&body);
    if (program->prepare != NULL)
        compiled_free(&prepare);
    return status;
}

static void compiled_schedules_keep_the_meaning(void **state)
{
    (void)state;
    meaning m = { .compiled = run_compiled };
    uint64_t first = meaning_environment("TL_SEED", 1);
    uint64_t count = meaning_environment("TL_COUNT", 500);
    assert_int_equal(meaning_run_cases(&m, first, count, false), 0);
}

static void compiled_strict_kernels_round_alike(void **state)
{
    (void)state;
    meaning m = { .compiled = run_compiled, .strict = true };
    uint64_t first = meaning_environment("TL_SEED", 1);
    uint64_t count = meaning_environment("TL_COUNT", 300);
    assert_int_equal(meaning_run_cases(&m, first, count, false), 0);
}

static void compiled_references_round_alike(void **state)
{
    (void)state;
    meaning m = { .compiled = run_compiled, .strict = true };
    uint64_t first = meaning_environment("TL_SEED", 1);
    uint64_t count = meaning_environment("TL_COUNT", 200);
    int64_t scheduled;
    assert_int_equal(meaning_run_references(&m, first, count, &scheduled), 0);
    assert_int_equal(m.refused, 0); /* it would cost the tuner the task */
    assert_true(count < 100 || scheduled > (int64_t)count / 10);
}

int main(void)
{
    tl_codegen_own_process();
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(compiled_schedules_keep_the_meaning),
        cmocka_unit_test(compiled_strict_kernels_round_alike),
        cmocka_unit_test(compiled_references_round_alike),
    };
    return cmocka_run_group_tests_name("codegen meaning", tests, NULL, NULL);
}
