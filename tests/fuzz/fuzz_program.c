/* tests/fuzz/fuzz_program.c: the text of a program; what verifies prints a text that gives the same one. */
#include <string.h>
#include "tests/fuzz/fuzz.h"

static void print_and_parse(tl_arena *arena, const tl_program *program)
{
    tl_text first = { 0 }, second = { 0 };
    tl_diag diag = { 0 };
    tl_program *again;
    tl_program_print(program, &first);
    const char *text = tl_arena_copy(arena, tl_text_get(&first), first.size + 1, 1);
    tl_text_free(&first);
    if (tl_program_parse(arena, text, "printed", &again, &diag) != TL_OK)
        fuzz_fail("what was printed is not read", &diag);
    tl_program_print(again, &second);
    bool same = strcmp(tl_text_get(&second), text) == 0;
    tl_text_free(&second);
    if (!same)
        fuzz_fail("printed twice, it differs", &diag);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_program *program;
    if (TL_ARENA_GUARD(arena) == 0) {
        const char *text = fuzz_text(arena, bytes, size);
        tl_status status = tl_program_parse(arena, text, "fuzz", &program, &diag);
        fuzz_check_refusal(status, &diag);
        if (status == TL_OK) {
            status = tl_program_verify(program, &diag);
            fuzz_check_refusal(status, &diag);
        }
        if (status == TL_OK)
            print_and_parse(arena, program);
    }
    tl_arena_destroy(arena);
    return 0;
}
