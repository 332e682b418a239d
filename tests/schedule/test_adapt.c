/* tests/schedule/test_adapt.c: traces on kernels that they were not written for, and traces with other decisions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "schedule/trace.h"

static tl_program *gemm(tl_arena *arena, int m, int n, int k)
{
    const char *text = tl_arena_format(arena,
                                       "kernel gemm(A: f32[%d, %d], B: f32[%d, %d], "
                                       "out C: f32[%d, %d])\n"
                                       "for i in 0..%d\n"
                                       "  for j in 0..%d\n"
                                       "    for k in 0..%d\n"
                                       "      block C\n"
                                       "        spatial i, j\n"
                                       "        reduce k\n"
                                       "        C[i, j] = sum(A[i, k]*B[k, j])\n",
                                       m, k, k, n, m, n, m, n, k);
    tl_program *program;
    tl_diag diag = { 0 };
    if (tl_program_parse(arena, text, "gemm", &program, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return program;
}

static tl_trace *parse(tl_arena *arena, const char *text)
{
    tl_trace *trace;
    tl_diag diag = { 0 };
    if (tl_trace_parse(arena, text, "trace", NULL, &trace, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return trace;
}

/* What is reported, after a check that the recorded trace replays to the same program. */
static const char *adapt(tl_arena *arena, const char *text, int m, int n, int k)
{
    tl_program *program = gemm(arena, m, n, k);
    tl_schedule *s = tl_schedule_create(arena, program, NULL, true);
    tl_text report = { 0 };
    tl_diag diag = { 0 };
    if (tl_trace_adapt(parse(arena, text), s, &report, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_schedule *again = tl_schedule_create(arena, program, NULL, true);
    const char *recorded = tl_trace_text(arena, tl_schedule_trace(s));
    if (tl_trace_apply(parse(arena, recorded), again, &diag) != TL_OK)
        fail_msg("%s\n%s", recorded, diag.text);
    assert_true(tl_program_hash(tl_schedule_program(s)) ==
                tl_program_hash(tl_schedule_program(again)));
    const char *copy = tl_arena_strdup(arena, tl_text_get(&report));
    tl_text_free(&report);
    return copy;
}

static const char tiled[] = "i, j, k = loops(C)\n"
                            "i0, i1 = split(i, [8, 4])\n"
                            "j0, j1 = split(j, [_, 16])\n"
                            "reorder(i0, j0, k, i1, j1)\n"
                            "vectorize(j1)\n";

static void what_fits_is_left_alone(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    assert_string_equal(adapt(arena, tiled, 32, 64, 16), "");
    tl_arena_destroy(arena);
}

static void a_tail_comes_first(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    assert_string_equal(adapt(arena, tiled, 45, 64, 16),
                        "step 2: i0, i1 = split(i, [8, 4]): i0, i1 = split(i, [_, 4])\n");
    tl_arena_destroy(arena);
}

static void nothing_to_peel_is_left_out(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *peeled = tl_arena_format(arena, "%sloop_partition(i0)\n", tiled);
    assert_string_equal(adapt(arena, peeled, 32, 64, 16), "step 6: loop_partition(i0): left out\n");
    tl_arena_destroy(arena);
}

/* tensorize takes no guard: a tail will not do, and a divisor has to */
static void a_divisor_comes_second(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *text = "i, j, k = loops(C)\n"
                       "i0, i1 = split(i, [_, 20])\n"
                       "decompose_reduction(C, i1)\n"
                       "tensorize(i1, mma_m16n8k8_f32)\n";
    assert_string_equal(adapt(arena, text, 32, 8, 8),
                        "step 2: i0, i1 = split(i, [_, 20]): i0, i1 = split(i, [2, 16])\n");
    tl_arena_destroy(arena);
}

static void decisions_are_mended(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *text = "i, j, k = loops(C)\n"
                       "t = sample_perfect_tile(i, 3, 16, [2, 2, 8])\n"
                       "i0, i1, i2 = split(i, t)\n";
    assert_string_equal(adapt(arena, text, 36, 8, 8),
                        "step 2: t = sample_perfect_tile(i, 3, 16, [2, 2, 8]): "
                        "t = sample_perfect_tile(i, 3, 16, [2, 2, 9])\n");
    tl_arena_destroy(arena);
}

static void what_cannot_be_says_where(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_schedule *s = tl_schedule_create(arena, gemm(arena, 8, 8, 8), NULL, true);
    tl_diag diag = { 0 };
    const tl_program *before = tl_schedule_program(s);
    tl_trace *trace = parse(arena, "i, j, k = loops(C)\ni0, i1 = split(i, [2, 4])\nparallel(k)\n");
    assert_int_equal(tl_trace_adapt(trace, s, NULL, &diag), TL_ILLEGAL_SCHEDULE);
    assert_non_null(strstr(diag.text, "adapting trace step 3: parallel(k)"));
    assert_ptr_equal(tl_schedule_program(s), before);
    tl_arena_destroy(arena);
}

/* A mutated trace differs in a decision, and the same seed draws the same. */
static void decisions_can_be_mutated(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_program *program = gemm(arena, 64, 64, 64);
    tl_trace *trace = parse(arena, "i, j, k = loops(C)\n"
                                   "t = sample_perfect_tile(i, 3, 16)\n"
                                   "i0, i1, i2 = split(i, t)\n"
                                   "d = sample_categorical([1, 2, 4, 8], [1, 1, 1, 1])\n"
                                   "annotate(k, depth, d)\n");
    tl_diag diag = { 0 };
    tl_schedule *first = tl_schedule_create(arena, program, NULL, true);
    tl_schedule_seed(first, 7);
    assert_int_equal(tl_trace_apply(trace, first, &diag), TL_OK);
    const tl_trace *decided = tl_schedule_trace(first);
    tl_random random = tl_random_make(3);
    int changed = 0;
    for (int i = 0; i < 20; i++) {
        tl_trace *mutated = tl_trace_mutate(arena, decided, &random);
        assert_non_null(mutated);
        uint64_t hashes[2];
        for (int k = 0; k < 2; k++) {
            tl_schedule *s = tl_schedule_create(arena, program, NULL, true);
            tl_schedule_seed(s, (uint64_t)i);
            assert_int_equal(tl_trace_apply(mutated, s, &diag), TL_OK);
            hashes[k] = tl_program_hash(tl_schedule_program(s));
        }
        assert_true(hashes[0] == hashes[1]);
        changed += hashes[0] != tl_program_hash(tl_schedule_program(first));
    }
    assert_true(changed > 5);
    assert_null(tl_trace_mutate(arena, parse(arena, "i, j, k = loops(C)\n"), &random));
    tl_arena_destroy(arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_is_left_alone),     cmocka_unit_test(a_tail_comes_first),
        cmocka_unit_test(nothing_to_peel_is_left_out), cmocka_unit_test(a_divisor_comes_second),
        cmocka_unit_test(decisions_are_mended),        cmocka_unit_test(what_cannot_be_says_where),
        cmocka_unit_test(decisions_can_be_mutated),
    };
    return cmocka_run_group_tests_name("schedule adapt", tests, NULL, NULL);
}
