/* tests/codegen/test_gpu_meaning.c: the kernels of models/kernels/gpu, and random kernels under random schedules, emulated:
 * what the threads of a GPU compute is what the interpreter computes for the naive kernel. TL_SEED and TL_COUNT as in
 * tests/schedule/test_meaning.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "ir/interpret/interpret.h"
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "schedule/trace.h"
#include "tests/codegen/compiled.h"
#include "tests/codegen/emulated_kernel.h"
#include "tests/support/meaning.h"
#include "tests/support/proof.h"

static tl_status run_emulated(tl_arena *arena, const tl_program *program, uint64_t seed,
                              const meaning_run *runs, int run_count, tl_diag *diag)
{
    static const char *const names[] = { "cuda,sm_80", "cuda,sm_90", "cuda,sm_70" };
    tl_target host, target;
    emulated body = { 0 }, prepare = { 0 };
    TL_TRY(compiled_target(NULL, &host, diag));
    TL_TRY(tl_target_named(names[seed % 3], &target, diag));
    tl_status status = emulated_make(arena, program, false, &host, &target, &body, diag);
    if (status == TL_OK && program->prepare != NULL)
        status = emulated_make(arena, program, true, &host, &target, &prepare, diag);
    for (int r = 0; r < run_count && status == TL_OK; r++) {
        void *data[2 * MEANING_MAX_BUFFERS];
        memcpy(data, runs[r].data, sizeof runs[r].data);
        for (int i = 0; i < program->prepared_count; i++) {
            int64_t bytes = emulated_bytes(arena, program, program->prepared[i], runs[r].dims);
            data[program->param_count + i] = tl_arena_alloc(arena, (size_t)bytes + 64, 64);
        }
        if (program->prepare != NULL)
            status = emulated_run(arena, &prepare, program, data, runs[r].dims, diag);
        if (status == TL_OK)
            status = emulated_run(arena, &body, program, data, runs[r].dims, diag);
    }
    tl_emulated_unload(body.module);
    tl_emulated_unload(prepare.module);
    return status;
}

static void emulated_schedules_keep_the_meaning(void **state)
{
    (void)state;
    meaning m = { .compiled = run_emulated, .emulated = run_emulated };
    uint64_t first = meaning_environment("TL_SEED", 1);
    uint64_t count = meaning_environment("TL_COUNT", 200);
    assert_int_equal(meaning_run_cases(&m, first, count, true), 0);
    print_message("%lld of them refused by code generation\n", (long long)m.refused);
}

/* The kernels of models/kernels/gpu, each under its trace. */
static const char *const kernels[] = { "gemm_f32",  "gemm_bf16", "gemm_f16_nt",
                                       "gemm_tf32", "gemm_i8",   "gemm_edges" };

/* Those that only sm_90a has the instructions for. */
static const char *const group_kernels[] = { "gemm_bf16_group" };

static const char *read_kernel(tl_arena *arena, const char *name, const char *suffix)
{
    tl_diag diag = { "" };
    tl_text text = { 0 };
    const char *path = tl_arena_format(arena, "models/kernels/gpu/%s.%s", name, suffix);
    if (tl_file_read(path, &text, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    const char *copy = tl_arena_strdup(arena, tl_text_get(&text));
    tl_text_free(&text);
    return copy;
}

/* Small whole numbers: what is multiplied and added up is exact in all dtypes, tf32 as well. */
static void fill(const tl_program *program, int seed, void **data, tl_arena *arena)
{
    tl_random random = tl_random_make((uint64_t)seed);
    for (int p = 0; p < program->param_count; p++) {
        const tl_buffer *b = program->params[p];
        int64_t count = tl_buffer_max_elements(b);
        data[p] = tl_arena_alloc(arena, (size_t)tl_buffer_max_bytes(b) + 64, 64);
        for (int64_t i = 0; i < count; i++) {
            int64_t value = tl_random_below(&random, 8);
            tl_number number = { .i = value };
            if (tl_dtype_is_float(b->dtype))
                number.f = (double)value;
            tl_number_store(b->dtype, data[p], (size_t)i, number);
        }
    }
}

static void kernel_is_right(const char *name, const char *target_name)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { "" };
    tl_target host, target;
    tl_program *naive;
    tl_trace *steps;
    emulated kernel;
    void *got[8], *want[8];
    tl_argument arguments[8];
    const char *text = read_kernel(arena, name, "tk"), *trace = read_kernel(arena, name, "tr");
    tl_status status = compiled_target(NULL, &host, &diag);
    if (status == TL_OK)
        status = tl_target_named(target_name, &target, &diag);
    if (status == TL_OK)
        status = tl_program_parse(arena, text, name, &naive, &diag);
    if (status == TL_OK)
        status = tl_trace_parse(arena, trace, name, &target, &steps, &diag);
    tl_schedule *s = status == TL_OK ? tl_schedule_create(arena, naive, &target, true) : NULL;
    if (status == TL_OK)
        status = tl_trace_apply(steps, s, &diag);
    if (status == TL_OK)
        status =
            emulated_make(arena, tl_schedule_program(s), false, &host, &target, &kernel, &diag);
    if (status != TL_OK)
        fail_msg("%s: %s", name, diag.text);
    fill(naive, 1, got, arena);
    fill(naive, 1, want, arena);
    for (int p = 0; p < naive->param_count; p++)
        arguments[p] = (tl_argument){ naive->params[p], want[p] };
    tl_interpret_options options = { .check = false };
    status = emulated_run(arena, &kernel, naive, got, NULL, &diag);
    if (status == TL_OK)
        status = tl_interpret(naive, arguments, naive->param_count, NULL, &options, &diag);
    if (status != TL_OK)
        fail_msg("%s for %s: %s", name, target_name, diag.text);
    for (int p = 0; p < naive->param_count; p++)
        if (memcmp(got[p], want[p], (size_t)tl_buffer_max_bytes(naive->params[p])) != 0)
            fail_msg("%s for %s: %s is something else", name, target_name, naive->params[p]->name);
    tl_emulated_unload(kernel.module);
    tl_arena_destroy(arena);
}

/* The programs of the proof of the IR, whose loops run in one thread or are bound: what plain C computes. */
static void prove(const proof_case *c, const tl_target *host, const tl_target *target)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { "" };
    tl_text text = { 0 };
    tl_program *program;
    emulated body = { 0 }, prepare = { 0 };
    proof_run run;
    void *data[PROOF_MAX_ARRAYS + 8];
    char why[256];
    const char *path = tl_arena_format(arena, "tests/golden/proof/%s.tk", c->name);
    tl_status status = tl_file_read(path, &text, &diag);
    if (status == TL_OK)
        status = tl_program_parse(arena, tl_text_get(&text), path, &program, &diag);
    tl_text_free(&text);
    if (status == TL_OK)
        status = emulated_make(arena, program, false, host, target, &body, &diag);
    if (status == TL_OK && program->prepare != NULL)
        status = emulated_make(arena, program, true, host, target, &prepare, &diag);
    if (status != TL_OK)
        fail_msg("%s: %s", c->name, diag.text);
    proof_run_make(&run, c, 17);
    for (int i = 0; i < run.count; i++)
        data[i] = run.arrays[i].data;
    for (int i = 0; i < program->prepared_count; i++) {
        int64_t bytes = emulated_bytes(arena, program, program->prepared[i], c->dims);
        data[run.count + i] = tl_arena_alloc(arena, (size_t)bytes + 64, 64);
    }
    if (program->prepare != NULL)
        status = emulated_run(arena, &prepare, program, data, c->dims, &diag);
    if (status == TL_OK)
        status = emulated_run(arena, &body, program, data, c->dims, &diag);
    if (status != TL_OK)
        fail_msg("%s: %s", c->name, diag.text);
    if (!proof_run_check(&run, c, why, sizeof why))
        fail_msg("%s: %s", c->name, why);
    proof_run_free(&run);
    tl_emulated_unload(body.module);
    tl_emulated_unload(prepare.module);
    tl_arena_destroy(arena);
}

static void emulated_proof(void **state)
{
    (void)state;
    tl_target host, target;
    assert_int_equal(compiled_target(NULL, &host, NULL), TL_OK);
    assert_int_equal(tl_target_named("cuda,sm_80", &target, NULL), TL_OK);
    for (int i = 0; i < proof_case_count; i++)
        if (strcmp(proof_cases[i].name, "gpu_gemm_mma") !=
            0) /* of f32, which no tensor core takes */
            prove(&proof_cases[i], &host, &target);
}

static void emulated_kernels_are_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        kernel_is_right(kernels[i], "cuda,sm_80");
    kernel_is_right("gemm_edges", "cuda,sm_70");
    for (size_t i = 0; i < sizeof group_kernels / sizeof group_kernels[0]; i++)
        kernel_is_right(group_kernels[i], "cuda,sm_90a");
}

int main(void)
{
    tl_codegen_own_process();
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(emulated_kernels_are_right),
        cmocka_unit_test(emulated_proof),
        cmocka_unit_test(emulated_schedules_keep_the_meaning),
    };
    return cmocka_run_group_tests_name("gpu meaning", tests, NULL, NULL);
}
