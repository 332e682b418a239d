/* tests/ir/test_proof.c: the proof of the IR: every program of tests/golden/proof parses, verifies, prints to a text that
 * parses back, and is interpreted, checked and plain, to what plain C computes. TL_SEED changes the numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "ir/interpret/interpret.h"
#include "runtime/base/file.h"
#include "tests/support/proof.h"

static uint64_t seed(void)
{
    const char *text = getenv("TL_SEED");
    return text != NULL ? strtoull(text, NULL, 0) : 1;
}

static tl_program *parse(tl_arena *arena, const char *text, const char *file)
{
    tl_diag diag = { "" };
    tl_program *program = NULL;
    if (tl_program_parse(arena, text, file, &program, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    if (tl_program_verify(program, &diag) != TL_OK)
        fail_msg("%s: %s", file, diag.text);
    return program;
}

static const char *read_text(tl_arena *arena, const proof_case *c)
{
    tl_diag diag = { "" };
    tl_text text = { 0 };
    const char *path = tl_arena_format(arena, "tests/golden/proof/%s.tk", c->name);
    if (tl_file_read(path, &text, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    const char *kept = tl_arena_strdup(arena, tl_text_get(&text));
    tl_text_free(&text);
    return kept;
}

static tl_status interpret(const proof_case *c, const tl_program *program, const proof_run *run,
                           bool checked, tl_diag *diag)
{
    tl_argument arguments[PROOF_MAX_ARRAYS];
    tl_interpret_options options = { .check = checked };
    assert_int_equal(run->count, program->param_count);
    for (int i = 0; i < run->count; i++) {
        assert_string_equal(run->arrays[i].name, program->params[i]->name);
        arguments[i] = (tl_argument){ program->params[i], run->arrays[i].data };
    }
    return tl_interpret(program, arguments, run->count, c->dims, &options, diag);
}

static void check_case(const proof_case *c, const tl_program *program, bool checked)
{
    proof_run run;
    tl_diag diag = { "" };
    char why[256];
    proof_run_make(&run, c, seed());
    if (interpret(c, program, &run, checked, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    if (!proof_run_check(&run, c, why, sizeof why))
        fail_msg("TL_SEED=%llu, %s: %s", (unsigned long long)seed(), checked ? "checked" : "plain",
                 why);
    proof_run_free(&run);
}

static void proof(void **state)
{
    const proof_case *c = *state;
    tl_arena *arena = tl_arena_create(0);
    const tl_program *program = parse(arena, read_text(arena, c), c->name);
    const char *printed = tl_program_text(arena, program);
    const tl_program *again = parse(arena, printed, "the printed program");
    assert_string_equal(tl_program_text(arena, again), printed);

    check_case(c, program, true);
    check_case(c, program, false);
    check_case(c, again, true);
    tl_arena_destroy(arena);
}

/* Without any one of its barriers a thread of a GPU program meets what another wrote or has not written yet, and the
 * interpreter says so. */
static void barriers_are_needed(void **state)
{
    (void)state;
    static const char line[] = "barrier\n";
    int removed = 0;
    for (int i = 0; i < proof_case_count; i++) {
        const proof_case *c = &proof_cases[i];
        tl_arena *arena = tl_arena_create(0);
        const char *text = read_text(arena, c);
        for (const char *at = strstr(text, line); at != NULL; at = strstr(at + 1, line)) {
            char *without = tl_arena_strdup(arena, text);
            memset(without + (at - text), ' ', sizeof line - 2);
            const tl_program *program = parse(arena, without, c->name);
            tl_diag diag = { "" };
            proof_run run;
            proof_run_make(&run, c, seed());
            assert_int_equal(interpret(c, program, &run, true, &diag), TL_BAD_IR);
            if (strstr(diag.text, "race on ") == NULL &&
                strstr(diag.text, "is read before") == NULL)
                fail_msg("%s", diag.text);
            proof_run_free(&run);
            removed++;
        }
        tl_arena_destroy(arena);
    }
    assert_int_equal(removed, 4);
}

int main(void)
{
    struct CMUnitTest *tests = calloc((size_t)proof_case_count + 1, sizeof *tests);
    if (tests == NULL)
        return 1;
    tests[proof_case_count] = (struct CMUnitTest)cmocka_unit_test(barriers_are_needed);
    for (int i = 0; i < proof_case_count; i++)
        tests[i] =
            (struct CMUnitTest){ proof_cases[i].name, proof, NULL, NULL, (void *)&proof_cases[i] };
    int failed =
        _cmocka_run_group_tests("proof of the IR", tests, (size_t)proof_case_count + 1, NULL, NULL);
    free(tests);
    return failed;
}
