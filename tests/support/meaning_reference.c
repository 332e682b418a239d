/* tests/support/meaning_reference.c: reference schedules of random kernels. */
#include <stdio.h>
#include "schedule/sketch/sketch.h"
#include "schedule/trace.h"
#include "tests/support/meaning.h"
#include "tests/support/random_kernel.h"

static bool run_case(meaning *m, const tl_target *target, uint64_t seed, bool *does_something)
{
    tl_arena *arena = tl_arena_create(0);
    tl_random random = tl_random_make(seed);
    meaning_failure failure = { "applying", "" };
    tl_diag diag = { 0 };
    tl_program *program;
    const char *kernel = tl_arena_format(arena, "strict %s", random_kernel(arena, &random));
    const char *trace = "";
    bool is_ok = false;
    m->seed = seed;
    if (tl_program_parse(arena, kernel, "kernel", &program, &diag) == TL_OK) {
        tl_schedule *s = tl_schedule_create(arena, program, target, true);
        is_ok = tl_schedule_reference(s, 1, &diag) == TL_OK;
        trace = tl_trace_text(arena, tl_schedule_trace(s));
        *does_something = trace[0] != '\0';
        is_ok = is_ok &&
                meaning_holds(m, kernel, trace, tl_program_hash(tl_schedule_program(s)), &failure);
    }
    if (!is_ok)
        fprintf(stderr, "TL_SEED=%llu TL_COUNT=1: reference schedule\n%s: %s%s\n%s\n%s\n",
                (unsigned long long)seed, failure.kind, failure.text, diag.text, kernel, trace);
    tl_arena_destroy(arena);
    return is_ok;
}

int64_t meaning_run_references(meaning *m, uint64_t first, uint64_t count, int64_t *scheduled)
{
    tl_diag diag = { 0 };
    tl_target target;
    int64_t failures = 0;
    *scheduled = 0;
    if (tl_target_named("x86-64-v3", &target, &diag) != TL_OK)
        return 1;
    for (uint64_t seed = first; seed < first + count; seed++) {
        bool does_something = false;
        failures += !run_case(m, &target, seed, &does_something);
        *scheduled += does_something;
    }
    return failures;
}
