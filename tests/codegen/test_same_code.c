/* tests/codegen/test_same_code.c: a program compiled again gives the same assembly, whatever lies where in memory: every
 * program in tests/golden/sketch under its default schedule, compiled while the heap is another each time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "codegen/codegen.h"
#include "runtime/base/random.h"
#include "schedule/sketch/sketch.h"
#include "tests/codegen/compiled.h"
#include "tests/support/sketch_programs.h"

enum { BLOCKS = 2000, TIMES = 3 };
static const char *const isas[] = { "x86-64-v4", "x86-64-v3" };

/* Blocks of many sizes, every second one free again: what is allocated next lies in the gaps, in another order each time. */
typedef struct {
    void *blocks[BLOCKS];
} gaps;

static void gaps_make(gaps *g, uint64_t seed)
{
    tl_random random = tl_random_make(seed);
    for (int i = 0; i < BLOCKS; i++)
        g->blocks[i] = malloc((size_t)tl_random_below(&random, 600) + 1);
    for (int i = 0; i < BLOCKS; i++)
        if (tl_random_below(&random, 2) == 0) {
            free(g->blocks[i]);
            g->blocks[i] = NULL;
        }
}

static void gaps_free(gaps *g)
{
    for (int i = 0; i < BLOCKS; i++)
        free(g->blocks[i]);
}

static void compile(const char *name, const char *text, const char *isa, uint64_t seed,
                    tl_text *out)
{
    gaps g;
    gaps_make(&g, seed);
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_program *naive;
    tl_target target;
    tl_descriptor descriptor;
    tl_status status = tl_program_parse(arena, text, name, &naive, &diag);
    if (status == TL_OK)
        status = compiled_target(isa, &target, &diag);
    tl_schedule *s = status == TL_OK ? tl_schedule_create(arena, naive, &target, false) : NULL;
    if (status == TL_OK)
        status = tl_schedule_default(s, &diag);
    if (status == TL_OK)
        status = tl_codegen_compile(arena, tl_schedule_program(s), false, &target, TL_EMIT_ASSEMBLY,
                                    out, &descriptor, &diag);
    if (status != TL_OK)
        fail_msg("%s for %s: %s", name, isa, diag.text);
    tl_arena_destroy(arena);
    gaps_free(&g);
}

static void check(const char *name, const char *text, const char *isa)
{
    tl_text first = { 0 };
    compile(name, text, isa, 1, &first);
    assert_in_range(first.size, 100, SIZE_MAX);
    for (uint64_t seed = 2; seed <= TIMES; seed++) {
        tl_text again = { 0 };
        compile(name, text, isa, seed, &again);
        if (strcmp(tl_text_get(&first), tl_text_get(&again)) != 0)
            fail_msg("%s for %s: other assembly from heap %d, %zu bytes and %zu", name, isa,
                     (int)seed, first.size, again.size);
        tl_text_free(&again);
    }
    tl_text_free(&first);
}

static void check_program(const char *name, const char *text)
{
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
        check(name, text, isas[i]);
}

static void same_program_gives_the_same_code(void **state)
{
    (void)state;
    sketch_programs_visit(NULL, check_program);
}

int main(void)
{
    tl_codegen_own_process();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_program_gives_the_same_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
