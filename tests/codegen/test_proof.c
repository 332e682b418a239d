/* tests/codegen/test_proof.c: the CPU programs of the proof of the IR compile and give what plain C gives, on one
 * thread and on several, for this machine and for the smaller ISAs that it can run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "codegen/codegen.h"
#include "runtime/base/file.h"
#include "tests/codegen/compiled.h"
#include "tests/support/proof.h"

static void must(tl_status status, const tl_diag *diag, const char *what)
{
    if (status != TL_OK)
        fail_msg("%s: %s", what, diag->text);
}

static void run_case(const proof_case *c, const char *isa)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { "" };
    tl_text text = { 0 };
    tl_program *program;
    tl_target target;
    const char *path = tl_arena_format(arena, "tests/golden/proof/%s.tk", c->name);
    must(tl_file_read(path, &text, &diag), &diag, path);
    must(tl_program_parse(arena, tl_text_get(&text), path, &program, &diag), &diag, path);
    tl_text_free(&text);
    must(compiled_target(isa, &target, &diag), &diag, "target");

    compiled body, prepare = { 0 };
    must(compiled_make(arena, program, false, &target, &body, &diag), &diag, c->name);
    if (program->prepare != NULL)
        must(compiled_make(arena, program, true, &target, &prepare, &diag), &diag, c->name);
    for (int threads = 1; threads <= COMPILED_THREADS; threads++) {
        proof_run run;
        void *buffers[PROOF_MAX_ARRAYS + 8];
        char why[256];
        proof_run_make(&run, c, 17);
        for (int i = 0; i < run.count; i++)
            buffers[i] = run.arrays[i].data;
        for (int i = 0; i < program->prepared_count; i++) {
            const tl_buffer *b = program->prepared[i];
            buffers[run.count + i] = malloc((size_t)tl_buffer_max_bytes(b) + 1);
        }
        if (program->prepare != NULL)
            compiled_run(&prepare, buffers, c->dims, threads);
        compiled_run(&body, buffers, c->dims, threads);
        if (!proof_run_check(&run, c, why, sizeof why))
            fail_msg("%s on %s, %d threads: %s", c->name, isa == NULL ? "this machine" : isa,
                     threads, why);
        for (int i = 0; i < program->prepared_count; i++)
            free(buffers[run.count + i]);
        proof_run_free(&run);
    }
    compiled_free(&body);
    if (program->prepare != NULL)
        compiled_free(&prepare);
    tl_arena_destroy(arena);
}

static void proof(void **state)
{
    const proof_case *c = *state;
    static const char *const isas[] = { NULL, "x86-64-v3", "x86-64" };
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        if (isas[i] == NULL || compiled_runs_here(isas[i]))
            run_case(c, isas[i]);
}

int main(void)
{
    tl_codegen_own_process();
    struct CMUnitTest tests[64] = { { 0 } };
    size_t count = 0;
    for (int i = 0; i < proof_case_count && count < 64; i++)
        if (!proof_cases[i].is_gpu)
            tests[count++] = (struct CMUnitTest){ proof_cases[i].name, proof, NULL, NULL,
                                                  (void *)&proof_cases[i] };
    struct CMUnitTest all[64];
    memcpy(all, tests, sizeof all);
    return _cmocka_run_group_tests("codegen proof", all, count, NULL, NULL);
}
