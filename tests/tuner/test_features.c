/* tests/tuner/test_features.c: features against numbers that can be counted by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "schedule/sketch/sketch.h"
#include "tuner/cost/features.h"
#include "tuner/search/space.h"

/* 16 x 32 results, sums of 64: rows in parallel, columns are lanes, one result row in registers. */
static const char gemm_text[] =
    "kernel gemm(A: f32[16, 64], const B: f32[64, 32], out C: f32[16, 32])\n"
    "  for i in 0..16 parallel\n"
    "    for k in 0..64\n"
    "      for j0 in 0..2 unrolled\n"
    "        for j1 in 0..16 vectorized\n"
    "          block gemm\n"
    "            spatial i\n"
    "            spatial j in 0..32 = j0*16 + j1\n"
    "            reduce k\n"
    "            C[i, j] = sum(A[i, k]*B[k, j])\n";

/* Every other element of each row, through an exponential. */
static const char strided_text[] = "kernel strided(X: f32[8, 64], out Y: f32[8, 32])\n"
                                   "  for i in 0..8\n"
                                   "    for j in 0..32 vectorized\n"
                                   "      block strided\n"
                                   "        spatial i, j\n"
                                   "        Y[i, j] = exp(X[i, j*2])/3.0\n";

/* A border of zeros, which loops are parted by, and a choice by data. */
static const char choices_text[] =
    "kernel choices(X: f32[8, 32], W: f32[8, 32], out Y: f32[10, 32], out Z: f32[8, 32])\n"
    "  for i in 0..10\n"
    "    for j in 0..32 vectorized\n"
    "      block border\n"
    "        spatial i, j\n"
    "        Y[i, j] = select(1 <= i and i < 9, X[i - 1, j], 0.0)\n"
    "  for i in 0..8\n"
    "    for j in 0..32 vectorized\n"
    "      block choice\n"
    "        spatial i, j\n"
    "        Z[i, j] = select(X[i, j] < W[i, j], X[i, j], 0.0)\n";

typedef struct {
    tl_arena *arena;
    tl_target target;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    tl_diag diag = { 0 };
    f.arena = tl_arena_create(0);
    if (tl_target_named("x86-64-v4", &f.target, &diag) != TL_OK)
        return -1;
    f.target.cores = 3;
    f.target.l1_bytes = 4096;
    f.target.l2_bytes = 1 << 20;
    f.target.l3_bytes = 1 << 24;
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    tl_arena_destroy(((fixture *)*state)->arena);
    return 0;
}

static int rows_of(const fixture *f, const char *text, const float **rows)
{
    tl_program *program;
    tl_diag diag = { 0 };
    if (tl_program_parse(f->arena, text, "test", &program, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return tl_features_of(f->arena, program, &f->target, rows);
}

static void is_near(double value, double expected)
{
    if (fabs(value - expected) > 1e-3 * fmax(fabs(expected), 1))
        fail_msg("%g is not %g", value, expected);
}
#define MAGNITUDE(row, name) tl_feature_unlog((row)[TL_FEATURE_##name])
#define ACCESS(row, n, name) \
    tl_feature_unlog((row)[TL_FEATURE_FIRST_ACCESS + (n)*TL_ACCESS_WIDTH + TL_ACCESS_##name])

static void columns_have_names(void **state)
{
    (void)state;
    char name[48], other[48];
    for (int i = 0; i < TL_FEATURE_WIDTH; i++) {
        tl_feature_name(i, name);
        assert_true(strlen(name) > 0);
        for (int j = 0; j < i; j++) {
            tl_feature_name(j, other);
            assert_string_not_equal(name, other);
        }
    }
    assert_true(TL_FEATURE_WIDTH > 164);
    for (double x = -5; x < 1e9; x = x * 3 + 11)
        is_near(tl_feature_unlog(tl_feature_log(x)), x);
}

static void a_product_is_counted(void **state)
{
    const float *row;
    const fixture *f = *state;
    assert_int_equal(rows_of(f, gemm_text, &row), 1);
    double runs = 16 * 64 * 32;
    is_near(MAGNITUDE(row, float_mad), runs);
    is_near(MAGNITUDE(row, float_addsub), 0);
    is_near(MAGNITUDE(row, runs), runs);
    is_near(row[TL_FEATURE_loops], 4);
    is_near(row[TL_FEATURE_is_reduction], 1);
    is_near(MAGNITUDE(row, vector_innermost), 16);
    is_near(row[TL_FEATURE_vector_reduces], 0);
    is_near(row[TL_FEATURE_vector_fill], 1);
    is_near(MAGNITUDE(row, unroll_product), 2);
    is_near(MAGNITUDE(row, parallel_product), 16);
    is_near(row[TL_FEATURE_parallel_balance], 16.0 / 18); /* six rounds of three cores */
    is_near(MAGNITUDE(row, serial_innermost), 64);
    is_near(row[TL_FEATURE_serial_reduces], 1);
    is_near(MAGNITUDE(row, serial_starts), 16);
    is_near(MAGNITUDE(row, body_vectors), 2);
    is_near(MAGNITUDE(row, body_results), 2);
    is_near(MAGNITUDE(row, body_vector_loads), 4); /* two of B, two of C */
    is_near(MAGNITUDE(row, body_broadcasts), 1);
    is_near(MAGNITUDE(row, body_stores), 2);
    is_near(MAGNITUDE(row, body_cycles), 4); /* the latency of the sums */
    is_near(MAGNITUDE(row, cycles), 4 * 16 * 64);
    is_near(row[TL_FEATURE_phase_share], 1);
}

/* B is 8 KB, twice the first cache: it comes back from the second for each of the 16 rows. */
static void caches_are_followed(void **state)
{
    const float *row;
    const fixture *f = *state;
    rows_of(f, gemm_text, &row);
    double lines_of_b = 64 * 32 * 4 / 64, lines_of_a = 16 * 64 * 4 / 64,
           lines_of_c = 16 * 32 * 4 / 64;
    is_near(MAGNITUDE(row, phase_bytes), 64 * (lines_of_a + lines_of_b + lines_of_c));
    is_near(MAGNITUDE(row, lines_from_l2), 16 * lines_of_b + lines_of_a + lines_of_c);
    is_near(MAGNITUDE(row, lines_from_l3),
            0); /* all of it stays in the second cache from run to run */
    fixture large = *f;
    large.target.l1_bytes = 12 << 10; /* room for B and a row of the others */
    rows_of(&large, gemm_text, &row);
    is_near(MAGNITUDE(row, lines_from_l2), lines_of_b + lines_of_a + lines_of_c);
    large.target.l1_bytes = 1 << 20;
    rows_of(&large, gemm_text, &row);
    is_near(MAGNITUDE(row, lines_from_l2), 0);
}

/* The accesses are in the order of the lines they move: B and C alike, A last. */
static void accesses_are_described(void **state)
{
    const float *row;
    const fixture *f = *state;
    rows_of(f, gemm_text, &row);
    int b = -1, c = -1, a = -1;
    for (int i = 0; i < 3; i++) {
        double unique = ACCESS(row, i, unique_bytes);
        b = unique == 8192 || fabs(unique - 8192) < 5 ? i : b;
        a = fabs(unique - 4096) < 3 ? i : a;
        c = fabs(unique - 2048) < 2 ? i : c;
    }
    assert_true(a >= 0 && b >= 0 && c >= 0 && a > b && a > c);
    const float *rows = row + TL_FEATURE_FIRST_ACCESS;
    assert_true(rows[c * TL_ACCESS_WIDTH + TL_ACCESS_update] == 1);
    assert_true(rows[b * TL_ACCESS_WIDTH + TL_ACCESS_read] == 1);
    assert_true(rows[b * TL_ACCESS_WIDTH + TL_ACCESS_loop_reuse] == 1);
    is_near(ACCESS(row, b, reuse_count), 16);
    is_near(ACCESS(row, b, reuse_iterations), 64 * 32);
    is_near(ACCESS(row, b, lane_stride), 1);
    is_near(ACCESS(row, c, reuse_count), 64);
    is_near(ACCESS(row, a, reuse_count), 32);
    is_near(ACCESS(row, a, lane_stride), 0);
    for (int i = 0; i < TL_ACCESS_WIDTH; i++) /* there are three only */
        assert_true(rows[3 * TL_ACCESS_WIDTH + i] == 0 || i == TL_ACCESS_no_reuse);
}

static void strides_cost_loads(void **state)
{
    const float *row;
    const fixture *f = *state;
    assert_int_equal(rows_of(f, strided_text, &row), 1);
    is_near(MAGNITUDE(row, float_math), 8 * 32);
    is_near(MAGNITUDE(row, float_divmod), 8 * 32);
    is_near(row[TL_FEATURE_is_reduction], 0);
    is_near(MAGNITUDE(row, body_strided_loads), 32);
    is_near(MAGNITUDE(row, body_vector_loads), 0);
    is_near(MAGNITUDE(row, body_stores), 2);
    is_near(ACCESS(row, 0, unique_lines), 32); /* X: all four lines of each of eight rows */
    is_near(ACCESS(row, 0, lane_stride), 2);
}

/* Tests that loops are parted by cost nothing, those of data a comparison and a choice each. */
static void bounds_cost_nothing(void **state)
{
    const float *row;
    const fixture *f = *state;
    assert_int_equal(rows_of(f, choices_text, &row), 2);
    is_near(MAGNITUDE(row, select_op), 0);
    is_near(MAGNITUDE(row, int_cmp), 0);
    is_near(MAGNITUDE(row, bool_op), 0);
    row += TL_FEATURE_WIDTH;
    is_near(MAGNITUDE(row, select_op), 8 * 32);
    is_near(MAGNITUDE(row, float_cmp), 8 * 32);
}

/* The same program, parsed twice, gives the same bits; so does every schedule of a space, quickly. */
static void features_are_reproducible_and_quick(void **state)
{
    const fixture *f = *state;
    const float *a, *b;
    int count = rows_of(f, gemm_text, &a);
    assert_int_equal(rows_of(f, gemm_text, &b), count);
    assert_memory_equal(a, b, sizeof *a * TL_FEATURE_WIDTH * (size_t)count);

    static const char text[] =
        "kernel gemm(A: f32[60, 96], const B: f32[96, 80], out C: f32[60, 80])\n"
        "  for i in 0..60\n"
        "    for j in 0..80\n"
        "      for k in 0..96\n"
        "        block gemm\n"
        "          spatial i, j\n"
        "          reduce k\n"
        "          C[i, j] = sum(A[i, k]*B[k, j])\n";
    static const tl_measure_lowering direct = { "direct", text, 0, 0 };
    static const tl_measure_task task = { .name = "gemm",
                                          .lowering_count = 1,
                                          .lowerings = &direct };
    tl_space *space;
    tl_diag diag = { 0 };
    tl_random random = tl_random_make(2);
    assert_int_equal(tl_space_create(f->arena, &task, &f->target, 2, TL_SPACE_FULL, &space, &diag),
                     TL_OK);
    enum { SAMPLES = 200 };
    clock_t spent = 0;
    for (int i = 0; i < SAMPLES; i++) {
        tl_variant v;
        assert_int_equal(tl_space_sample(space, f->arena, &random, &v, &diag), TL_OK);
        clock_t begun = clock();
        count = tl_features_of(f->arena, v.program, &f->target, &a);
        spent += clock() - begun;
        assert_true(count > 0);
        double mads = 0;
        for (int r = 0; r < count; r++) {
            mads += MAGNITUDE(a + r * TL_FEATURE_WIDTH, float_mad);
            for (int c = 0; c < TL_FEATURE_WIDTH; c++)
                assert_true(isfinite(a[r * TL_FEATURE_WIDTH + c]));
        }
        /* whatever the tiles and tails: at least the work there is */
        assert_true(mads > 0.999 * 60 * 80 * 96);
    }
    assert_true((double)spent / CLOCKS_PER_SEC / SAMPLES < 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_have_names),
        cmocka_unit_test_setup_teardown(a_product_is_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(caches_are_followed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(accesses_are_described, set_up, tear_down),
        cmocka_unit_test_setup_teardown(strides_cost_loads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bounds_cost_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(features_are_reproducible_and_quick, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
