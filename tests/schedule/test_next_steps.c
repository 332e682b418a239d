/* tests/schedule/test_next_steps.c: what is said to be legal next is: its lines, added to the trace, give the same program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "schedule/next_steps.h"

static const char gemm[] = "kernel gemm(A: f32[64, 48], B: f32[48, 80], out C: f32[64, 80])\n"
                           "  gemm: C[i, j] = sum(A[i, k]*B[k, j])\n";
static const char two[] = "kernel two(x: f32[32, 64], out y: f32[32, 64])\n"
                          "  alloc t: f32[32, 64]\n"
                          "  first: t[i, j] = x[i, j]*2.0\n"
                          "  second: y[i, j] = t[i, j] + 1.0\n";

typedef struct {
    const char *kernel, *trace, *target;
    const char *wanted[6]; /* steps that must be among them */
} row;

static const row rows[] = {
    { gemm,
      "",
      "x86-64-v3",
      { "i, _, _ = loops(gemm)", "cache_write(gemm, global)", "vectorize(", "parallel(",
        "reorder(" } },
    { gemm,
      "i, j, k = loops(gemm)\ni0, i1 = split(i, [_, 8])\nj0, j1 = split(j, [_, V])\n"
      "reorder(i0, j0, k, i1, j1)\n",
      "x86-64-v4",
      { "vectorize(j1)", "unroll(i1)", "parallel(i0)", "decompose_reduction(gemm, k)",
        "fuse(i0, j0)", "split(k, [_, 16])" } },
    { two,
      "i, j = loops(second)\n",
      "x86-64-v3",
      { "compute_inline(first)", "compute_at(first, i)", "compute_at(first, j)",
        "set_scope(t, " } },
    { two, "i, j = loops(first)\nfuse(i, j)\n", "x86-64-v3", { "loops(second)" } },
    { gemm,
      "i, j, k = loops(gemm)\n",
      "nvptx64",
      { "bind(i, blockIdx.x)", "bind(j, threadIdx.x)" } },
};

static tl_schedule *scheduled(tl_arena *arena, const tl_program *naive, const tl_target *target,
                              const char *text, tl_replay **replay)
{
    tl_trace *trace;
    tl_diag diag = { 0 };
    tl_schedule *s = tl_schedule_create(arena, naive, target, true);
    if (tl_trace_parse(arena, text, "trace", target, &trace, &diag) != TL_OK)
        fail_msg("%s\n%s", text, diag.text);
    *replay = tl_replay_start(trace, s);
    if (tl_replay_to(*replay, trace->count, &diag) != TL_OK)
        fail_msg("%s\n%s", text, diag.text);
    return s;
}

static void each_is_legal_as_written(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        tl_arena *arena = tl_arena_create(0);
        tl_target target;
        tl_program *naive;
        tl_replay *replay, *again;
        const tl_next_step *steps;
        bool complete, found[6] = { false };
        assert_int_equal(tl_target_named(rows[r].target, &target, NULL), TL_OK);
        assert_int_equal(tl_program_parse(arena, rows[r].kernel, "kernel", &naive, NULL), TL_OK);
        tl_schedule *s = scheduled(arena, naive, &target, rows[r].trace, &replay);
        int count = tl_next_steps(s, replay, rows[r].trace, &target, &steps, &complete);
        assert_true(complete);
        assert_true(count > 0);
        for (int i = 0; i < count; i++) {
            tl_schedule *after =
                scheduled(arena, naive, &target,
                          tl_arena_format(arena, "%s%s\n", rows[r].trace, steps[i].text), &again);
            if (tl_program_hash(tl_schedule_program(after)) != tl_program_hash(steps[i].program))
                fail_msg("%s%s gives another program", rows[r].trace, steps[i].text);
            for (int w = 0; w < 6 && rows[r].wanted[w] != NULL; w++)
                found[w] = found[w] || strstr(steps[i].text, rows[r].wanted[w]) != NULL;
        }
        for (int w = 0; w < 6 && rows[r].wanted[w] != NULL; w++)
            if (!found[w])
                fail_msg("row %zu: no step has '%s'", r, rows[r].wanted[w]);
        tl_arena_destroy(arena);
    }
}

/* No program twice, and never the one that is there. */
static void none_is_the_same_again(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_target target;
    tl_program *naive;
    tl_replay *replay;
    const tl_next_step *steps;
    assert_int_equal(tl_target_named("x86-64-v3", &target, NULL), TL_OK);
    assert_int_equal(tl_program_parse(arena, gemm, "kernel", &naive, NULL), TL_OK);
    tl_schedule *s = scheduled(arena, naive, &target, "", &replay);
    int count = tl_next_steps(s, replay, "", &target, &steps, NULL);
    for (int i = 0; i < count; i++) {
        assert_true(tl_program_hash(steps[i].program) != tl_program_hash(naive));
        for (int k = 0; k < i; k++)
            assert_true(tl_program_hash(steps[i].program) != tl_program_hash(steps[k].program));
    }
    assert_ptr_equal(tl_schedule_program(s), naive);
    tl_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_legal_as_written),
        cmocka_unit_test(none_is_the_same_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
