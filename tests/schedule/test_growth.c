/* tests/schedule/test_growth.c: traces each of whose steps doubles something end, with a refusal or without, as soon as
 * others of their length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "runtime/base/text.h"
#include "schedule/sketch/sketch.h"
#include "schedule/trace.h"

enum { ROUNDS = 60, LARGEST = 32 << 20 /* bytes of the arena */ };

static const struct {
    const char *kernel, *first, *round; /* %1$d: the round, %2$d: the one before */
    const char *refusal;                /* NULL: every step is legal */
} cases[] = {
    /* the fused loop has the names of both */
    { "kernel k(x: f32[60], out y: f32[60])\n"
      "  for i in 0..60\n    block b\n      spatial i\n      y[i] = x[i]\n",
      "f0 = loops(b)\n", "a%1$d, c%1$d = split(f%2$d, [_, 4])\nf%1$d = fuse(a%1$d, c%1$d)\n",
      NULL },
    /* i is f//7 of an f that is two of the next round's f */
    { "kernel k(x: f32[60, 7], out y: f32[60, 7])\n"
      "  for i in 0..60\n    for j in 0..7\n      block b\n        spatial i\n        spatial j\n"
      "        y[i, j] = x[i, j]\n",
      "i, j = loops(b)\nreorder(j, i)\nf0 = fuse(j, i)\n",
      "a%1$d, c%1$d = split(f%2$d, [_, 4])\nreorder(c%1$d, a%1$d)\nf%1$d = fuse(c%1$d, a%1$d)\n"
      "d%1$d, e%1$d = split(f%1$d, [_, 9])\nreorder(e%1$d, d%1$d)\nf%1$d = fuse(e%1$d, d%1$d)\n",
      "an expression would have " },
};

static void apply_case(size_t k)
{
    tl_arena *arena = tl_arena_create(LARGEST);
    tl_program *program;
    tl_trace *trace;
    tl_target target;
    tl_diag diag = { 0 };
    tl_text text = { 0 };
    if (TL_ARENA_GUARD(arena))
        fail_msg("case %zu takes more than %d bytes", k, LARGEST);
    tl_text_add(&text, cases[k].first);
    for (int i = 1; i <= ROUNDS; i++) {
        const char *round = cases[k].round;
        for (const char *at; (at = strstr(round, "%")) != NULL; round = at + 4)
            tl_text_format(&text, "%.*s%d", (int)(at - round), round, at[1] == '1' ? i : i - 1);
        tl_text_add(&text, round);
    }
    assert_int_equal(tl_target_named("x86-64", &target, &diag), TL_OK);
    if (tl_program_parse(arena, cases[k].kernel, "k", &program, &diag) != TL_OK ||
        tl_trace_parse(arena, tl_text_get(&text), "t", &target, &trace, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_schedule *s = tl_schedule_create(arena, program, &target, true);
    tl_status status = tl_trace_apply(trace, s, &diag);
    assert_int_equal(status, cases[k].refusal == NULL ? TL_OK : TL_ILLEGAL_SCHEDULE);
    if (cases[k].refusal != NULL && strstr(diag.text, cases[k].refusal) == NULL)
        fail_msg("%s", diag.text);
    const char *printed = tl_program_text(arena, tl_schedule_program(s));
    tl_program *again;
    if (cases[k].refusal == NULL &&
        tl_program_parse(arena, printed, "printed", &again, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_text_free(&text);
    tl_arena_destroy(arena);
}

static void traces_do_not_explode(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
        apply_case(k);
}

/* A chain of stages, each of which reads the one before 32 times: the default schedule leaves some of them stored. */
static void default_schedules_do_not_explode(void **state)
{
    enum { STAGES = 24 };
    (void)state;
    tl_arena *arena = tl_arena_create(LARGEST);
    tl_text text = { 0 };
    tl_program *program;
    tl_target target;
    tl_diag diag = { 0 };
    if (TL_ARENA_GUARD(arena))
        fail_msg("it takes more than %d bytes", LARGEST);
    tl_text_add(&text, "kernel k(t0: f32[64], out y: f32[64])\n");
    for (int i = 1; i <= STAGES; i++) {
        tl_text_format(&text, "  stage%d: %s[i] = ", i,
                       i == STAGES ? "y" : tl_arena_format(arena, "t%d", i));
        for (int read = 0; read < 32; read++)
            tl_text_format(&text, "%st%d[i]", read > 0 ? " + " : "", i - 1);
        tl_text_add(&text, "\n");
    }
    assert_int_equal(tl_target_named("x86-64-v3", &target, &diag), TL_OK);
    if (tl_program_parse(arena, tl_text_get(&text), "k", &program, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_schedule *s = tl_schedule_create(arena, program, &target, true);
    if (tl_schedule_default(s, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_text_free(&text);
    tl_arena_destroy(arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(traces_do_not_explode),
        cmocka_unit_test(default_schedules_do_not_explode),
    };
    return cmocka_run_group_tests_name("growth", tests, NULL, NULL);
}
