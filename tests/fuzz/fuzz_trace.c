/* tests/fuzz/fuzz_trace.c: a program and, behind a line of "trace", a trace, which is replayed on it. */
#include <string.h>
#include "schedule/trace.h"
#include "tests/fuzz/fuzz.h"

#define BORDER "\ntrace\n"

static void replay(tl_arena *arena, const tl_program *program, const char *text)
{
    tl_target target;
    tl_diag diag = { 0 };
    tl_trace *trace;
    if (tl_target_named("x86-64-v4", &target, &diag) != TL_OK)
        fuzz_fail("no target", &diag);
    tl_status status = tl_trace_parse(arena, text, "fuzz", &target, &trace, &diag);
    fuzz_check_refusal(status, &diag);
    if (status != TL_OK)
        return;
    tl_schedule *s = tl_schedule_create(arena, program, &target, true);
    status = tl_trace_apply(trace, s, &diag);
    fuzz_check_refusal(status, &diag);
    if (status == TL_OK && tl_program_verify(tl_schedule_program(s), &diag) != TL_OK)
        fuzz_fail("the scheduled program", &diag);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_program *program;
    if (TL_ARENA_GUARD(arena) == 0) {
        char *text = (char *)fuzz_text(arena, bytes, size), *trace = strstr(text, BORDER);
        if (trace != NULL) {
            trace[1] = '\0';
            trace += strlen(BORDER);
            if (tl_program_parse(arena, text, "fuzz", &program, &diag) == TL_OK &&
                tl_program_verify(program, &diag) == TL_OK)
                replay(arena, program, trace);
        }
    }
    tl_arena_destroy(arena);
    return 0;
}
