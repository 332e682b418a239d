/* tests/tuner/test_tenset.c: TenSet's 164 features of small programs, computed by hand from the definition of its
 * extractor. */
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
#include "tuner/cost/tenset.h"
#include "tuner/search/space.h"

static int set_up(void **state)
{
    *state = tl_arena_create(0);
    return *state == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    tl_arena_destroy(*state);
    return 0;
}

static int rows_of(tl_arena *arena, const char *text, const float **rows)
{
    tl_program *program;
    tl_diag diag = { 0 };
    if (tl_program_parse(arena, text, "test", &program, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return tl_tenset_features_of(arena, program, rows);
}

/* What is wanted of a row: names, and the values before their logarithm is taken; what is not named is 0. */
typedef struct {
    const char *name;
    double value;
} wanted;

static bool is_raw(const char *name)
{
    return strstr(name, "_type.k") != NULL || strcmp(name, "is_gpu") == 0 ||
           strncmp(name, "arith_", 6) == 0;
}

static void expect_row(const float *row, const wanted *all, size_t count)
{
    char name[48];
    bool used[200] = { false };
    for (int i = 0; i < TL_TENSET_WIDTH; i++) {
        tl_tenset_name(i, name);
        double value = 0;
        for (size_t k = 0; k < count; k++)
            if (strcmp(all[k].name, name) == 0) {
                value = all[k].value;
                used[k] = true;
            }
        double expected = is_raw(name) ? value : log2(value + 1);
        if (fabs((double)row[i] - expected) > 1e-4 * fmax(1, expected))
            fail_msg("%s is %.6g, not %.6g (of %g)", name, (double)row[i], expected, value);
    }
    for (size_t k = 0; k < count; k++)
        if (!used[k])
            fail_msg("there is no feature %s", all[k].name);
}
#define EXPECT_ROW(row, ...)                                                       \
    do {                                                                           \
        const wanted expected_row[] = { __VA_ARGS__ };                             \
        expect_row(row, expected_row, sizeof expected_row / sizeof *expected_row); \
    } while (0)

static void there_are_164_by_their_names(void **state)
{
    char name[48];
    (void)state;
    assert_int_equal(TL_TENSET_WIDTH, 164);
    static const struct {
        int at;
        const char *name;
    } some[] = { { 0, "float_mad" },           { 16, "vec_num" },
                 { 26, "vec_type.kPosMixed" }, { 49, "is_gpu" },
                 { 56, "vthread_len" },        { 57, "B0.acc_type.kRead" },
                 { 146, "B4.stride" },         { 147, "arith_intensity_curve_0" },
                 { 157, "alloc_size" },        { 163, "auto_unroll_max_step" } };
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        tl_tenset_name(some[i].at, name);
        assert_string_equal(name, some[i].name);
    }
}

/* 16 x 32 results, sums of 64. Its first values are a statement of their own, under i alone: C is touched twice there.
 *
 *            j1 (16)        j0 (2)         k (64)           i (16)
 *   C        16             32             32               512, and 512 of the first values
 *   A        1              1              64               1024
 *   B        16             32             2048             2048
 *   bytes    132            260            8576             16384, of what is only read 12288; of the statement 14336
 *   flops    32             64             4096             65536 */
static const char gemm[] = "kernel gemm(A: f32[16, 64], const B: f32[64, 32], out C: f32[16, 32])\n"
                           "  for i in 0..16 parallel\n"
                           "    for k in 0..64\n"
                           "      for j0 in 0..2 unrolled\n"
                           "        for j1 in 0..16 vectorized\n"
                           "          block gemm\n"
                           "            spatial i\n"
                           "            spatial j in 0..32 = j0*16 + j1\n"
                           "            reduce k\n"
                           "            C[i, j] = sum(A[i, k]*B[k, j])\n";

/* Between two loops of the curve. */
static double between(double x, double c0, double m0, double c1, double m1)
{
    return c0 / m0 + (x - c0) / (c1 - c0) * (c1 / m1 - c0 / m0);
}

static void a_product(void **state)
{
    const float *row;
    assert_int_equal(rows_of(*state, gemm, &row), 1);
    const double m0 = log2(132), m1 = log2(260), m2 = log2(8576), m3 = log2(14336);
    EXPECT_ROW(
        row, { "float_addsub", 32768 }, { "float_mul", 32768 },
        { "int_addsub", 2 * 32768 }, /* j0*16 + j1 of C, which is read back, and of B */
        { "int_mul", 2 * 32768 }, { "vec_num", 1 }, { "vec_prod", 16 }, { "vec_len", 16 },
        { "vec_type.kPosMixed", 1 }, { "unroll_num", 1 }, { "unroll_prod", 2 }, { "unroll_len", 2 },
        { "unroll_type.kPosMixed", 1 }, { "parallel_num", 1 }, { "parallel_prod", 16 },
        { "parallel_len", 16 }, { "parallel_type.kPosMixed", 1 }, { "blockIdx_x_len", 1 },
        { "blockIdx_y_len", 1 }, { "blockIdx_z_len", 1 }, { "threadIdx_x_len", 1 },
        { "threadIdx_y_len", 1 }, { "threadIdx_z_len", 1 }, { "vthread_len", 1 },
        /* A, which the two innermost loops come back to; their extractor takes 16*16 off its lines, not 16*2, and
         * takes B's region for A's, of which no axis is whole */
        { "B0.acc_type.kRead", 1 }, { "B0.bytes", 131072 }, { "B0.unique_bytes", 4096 },
        { "B0.lines", 8 }, { "B0.unique_lines", 1024 }, { "B0.reuse_type.kLoopMultipleRead", 1 },
        { "B0.reuse_dis_iter", 1 }, { "B0.reuse_dis_bytes", 12 }, { "B0.reuse_ct", 32 },
        { "B0.bytes_d_reuse_ct", 4096 }, { "B0.unique_bytes_d_reuse_ct", 128 },
        { "B0.lines_d_reuse_ct", 0.25 }, { "B0.unique_lines_d_reuse_ct", 32 },
        /* C, which k comes back to */
        { "B1.acc_type.kReadWrite", 1 }, { "B1.bytes", 131072 }, { "B1.unique_bytes", 2048 },
        { "B1.lines", 2048 }, { "B1.unique_lines", 32 }, { "B1.reuse_type.kLoopMultipleRead", 1 },
        { "B1.reuse_dis_iter", 32 }, { "B1.reuse_dis_bytes", 260 }, { "B1.reuse_ct", 64 },
        { "B1.bytes_d_reuse_ct", 2048 }, { "B1.unique_bytes_d_reuse_ct", 32 },
        { "B1.lines_d_reuse_ct", 32 }, { "B1.unique_lines_d_reuse_ct", 0.5 }, { "B1.stride", 1 },
        /* B, which i comes back to */
        { "B2.acc_type.kRead", 1 }, { "B2.bytes", 131072 }, { "B2.unique_bytes", 8192 },
        { "B2.lines", 2048 }, { "B2.unique_lines", 128 }, { "B2.reuse_type.kLoopMultipleRead", 1 },
        { "B2.reuse_dis_iter", 2048 }, { "B2.reuse_dis_bytes", 8576 }, { "B2.reuse_ct", 16 },
        { "B2.bytes_d_reuse_ct", 8192 }, { "B2.unique_bytes_d_reuse_ct", 512 },
        { "B2.lines_d_reuse_ct", 128 }, { "B2.unique_lines_d_reuse_ct", 8 }, { "B2.stride", 1 },
        /* log(FLOP) is 5, 6, 12, 16 */
        { "arith_intensity_curve_0", 5 / m0 }, { "arith_intensity_curve_1", 5 / m0 },
        { "arith_intensity_curve_2", 5 / m0 },
        { "arith_intensity_curve_3", between(6.4, 6, m1, 12, m2) },
        { "arith_intensity_curve_4", between(8, 6, m1, 12, m2) },
        { "arith_intensity_curve_5", between(9.6, 6, m1, 12, m2) },
        { "arith_intensity_curve_6", between(11.2, 6, m1, 12, m2) },
        { "arith_intensity_curve_7", between(12.8, 12, m2, 16, m3) },
        { "arith_intensity_curve_8", between(14.4, 12, m2, 16, m3) },
        { "arith_intensity_curve_9", 16 / m3 }, { "outer_prod", 32768 }, { "num_loops", 4 });
}

/* A buffer that is allocated for each row, written and read back in two loops. */
static const char staged[] = "kernel staged(X: f32[8, 8], out Y: f32[8, 8])\n"
                             "  for i in 0..8\n"
                             "    alloc t: f32[8]\n"
                             "    for j in 0..8\n"
                             "      block square\n"
                             "        spatial i, j\n"
                             "        t[j] = X[i, j]*X[i, j]\n"
                             "    for j in 0..8\n"
                             "      block total\n"
                             "        spatial i, j\n"
                             "        Y[i, j] = t[j] + X[i, j]\n";
#define NO_GPU                                                                        \
    { "blockIdx_x_len", 1 }, { "blockIdx_y_len", 1 }, { "blockIdx_z_len", 1 },        \
        { "threadIdx_x_len", 1 }, { "threadIdx_y_len", 1 }, { "threadIdx_z_len", 1 }, \
    {                                                                                 \
        "vthread_len", 1                                                              \
    }
#define NO_LOOPS                                               \
    { "vec_type.kPosNone", 1 }, { "unroll_type.kPosNone", 1 }, \
    {                                                          \
        "parallel_type.kPosNone", 1                            \
    }

static void what_is_written_and_read_back(void **state)
{
    const float *row;
    assert_int_equal(rows_of(*state, staged, &row), 2);
    /* t: 8 elements under j and under i; X 8 and 64, read twice with the same indices */
    const double a0 = log2(64), a1 = log2(288);
    EXPECT_ROW(row, { "float_mul", 64 }, NO_LOOPS, NO_GPU, { "B0.acc_type.kRead", 1 },
               { "B0.bytes", 256 }, { "B0.unique_bytes", 256 }, { "B0.lines", 4 },
               { "B0.unique_lines", 8 }, { "B0.reuse_type.kNoReuse", 1 },
               { "B0.bytes_d_reuse_ct", 512 }, { "B0.unique_bytes_d_reuse_ct", 512 },
               { "B0.lines_d_reuse_ct", 8 }, { "B0.unique_lines_d_reuse_ct", 16 },
               { "B0.stride", 1 }, { "B1.acc_type.kWrite", 1 }, { "B1.bytes", 256 },
               { "B1.unique_bytes", 32 }, { "B1.lines", 4 }, { "B1.unique_lines", 1 },
               { "B1.reuse_type.kLoopMultipleRead", 1 }, { "B1.reuse_dis_iter", 8 },
               { "B1.reuse_dis_bytes", 64 }, { "B1.reuse_ct", 8 }, { "B1.bytes_d_reuse_ct", 32 },
               { "B1.unique_bytes_d_reuse_ct", 4 }, { "B1.lines_d_reuse_ct", 0.5 },
               { "B1.unique_lines_d_reuse_ct", 0.125 }, { "B1.stride", 1 },
               { "arith_intensity_curve_0", 3 / a0 }, { "arith_intensity_curve_1", 3 / a0 },
               { "arith_intensity_curve_2", 3 / a0 }, { "arith_intensity_curve_3", 3 / a0 },
               { "arith_intensity_curve_4", 3 / a0 },
               { "arith_intensity_curve_5", between(3.6, 3, a0, 6, a1) },
               { "arith_intensity_curve_6", between(4.2, 3, a0, 6, a1) },
               { "arith_intensity_curve_7", between(4.8, 3, a0, 6, a1) },
               { "arith_intensity_curve_8", between(5.4, 3, a0, 6, a1) },
               { "arith_intensity_curve_9", 6 / a1 }, { "alloc_size", 32 }, { "alloc_prod", 64 },
               { "alloc_outer_prod", 8 }, { "alloc_inner_prod", 8 }, { "outer_prod", 64 },
               { "num_loops", 2 });
    /* Y; t and X were touched before, under i, by the other statement */
    row += TL_TENSET_WIDTH;
    const double b0 = log2(96), b1 = log2((64 + 8 + 64) * 4);
    EXPECT_ROW(row, { "float_addsub", 64 }, NO_LOOPS, NO_GPU, { "B0.acc_type.kWrite", 1 },
               { "B0.bytes", 256 }, { "B0.unique_bytes", 256 }, { "B0.lines", 4 },
               { "B0.unique_lines", 8 }, { "B0.reuse_type.kNoReuse", 1 },
               { "B0.bytes_d_reuse_ct", 512 }, { "B0.unique_bytes_d_reuse_ct", 512 },
               { "B0.lines_d_reuse_ct", 8 }, { "B0.unique_lines_d_reuse_ct", 16 },
               { "B0.stride", 1 }, { "B1.acc_type.kRead", 1 }, { "B1.bytes", 256 },
               { "B1.unique_bytes", 32 }, { "B1.lines", 4 }, { "B1.unique_lines", 1 },
               { "B1.reuse_type.kSerialMultipleReadWrite", 1 }, { "B1.reuse_dis_iter", 1 },
               { "B1.reuse_dis_bytes", (64 + 8 + 64) * 4 / 8.0 }, { "B1.reuse_ct", 8 },
               { "B1.bytes_d_reuse_ct", 32 }, { "B1.unique_bytes_d_reuse_ct", 4 },
               { "B1.lines_d_reuse_ct", 0.5 }, { "B1.unique_lines_d_reuse_ct", 0.125 },
               { "B1.stride", 1 }, { "B2.acc_type.kRead", 1 }, { "B2.bytes", 256 },
               { "B2.unique_bytes", 256 }, { "B2.lines", 4 }, { "B2.unique_lines", 8 },
               { "B2.reuse_type.kSerialMultipleReadWrite", 1 }, { "B2.reuse_dis_iter", 8 },
               { "B2.reuse_dis_bytes", 68 }, { "B2.reuse_ct", 8 }, { "B2.bytes_d_reuse_ct", 32 },
               { "B2.unique_bytes_d_reuse_ct", 32 }, { "B2.lines_d_reuse_ct", 0.5 },
               { "B2.unique_lines_d_reuse_ct", 1 }, { "B2.stride", 1 },
               { "arith_intensity_curve_0", 3 / b0 }, { "arith_intensity_curve_1", 3 / b0 },
               { "arith_intensity_curve_2", 3 / b0 }, { "arith_intensity_curve_3", 3 / b0 },
               { "arith_intensity_curve_4", 3 / b0 },
               { "arith_intensity_curve_5", between(3.6, 3, b0, 6, b1) },
               { "arith_intensity_curve_6", between(4.2, 3, b0, 6, b1) },
               { "arith_intensity_curve_7", between(4.8, 3, b0, 6, b1) },
               { "arith_intensity_curve_8", between(5.4, 3, b0, 6, b1) },
               { "arith_intensity_curve_9", 6 / b1 }, { "outer_prod", 64 }, { "num_loops", 2 });
}

/* On the threads of a GPU; no operation of floats but a comparison and a function. */
static const char on_gpu[] = "kernel on_gpu(X: f32[128], out Y: f32[128])\n"
                             "  for b in 0..4 blockIdx.x\n"
                             "    for t in 0..32 threadIdx.x\n"
                             "      block relu\n"
                             "        spatial i in 0..128 = b*32 + t\n"
                             "        Y[i] = exp(max(X[i], 0.0))\n";

static void threads_of_a_gpu(void **state)
{
    const float *row;
    assert_int_equal(rows_of(*state, on_gpu, &row), 1);
    const double m0 = log2(256), m1 = log2(1024);
    EXPECT_ROW(row, { "float_cmp", 128 }, { "float_mathfunc", 128 }, { "int_addsub", 128 },
               { "int_mul", 128 }, NO_LOOPS, { "is_gpu", 1 }, { "blockIdx_x_len", 4 },
               { "blockIdx_y_len", 1 }, { "blockIdx_z_len", 1 }, { "threadIdx_x_len", 32 },
               { "threadIdx_y_len", 1 }, { "threadIdx_z_len", 1 }, { "vthread_len", 1 },
               /* alike but for the kind of access: what is read first */
               { "B0.acc_type.kRead", 1 }, { "B0.bytes", 512 }, { "B0.unique_bytes", 512 },
               { "B0.lines", 8 }, { "B0.unique_lines", 8 }, { "B0.reuse_type.kNoReuse", 1 },
               { "B0.bytes_d_reuse_ct", 1024 }, { "B0.unique_bytes_d_reuse_ct", 1024 },
               { "B0.lines_d_reuse_ct", 16 }, { "B0.unique_lines_d_reuse_ct", 16 },
               { "B0.stride", 1 }, { "B1.acc_type.kWrite", 1 }, { "B1.bytes", 512 },
               { "B1.unique_bytes", 512 }, { "B1.lines", 8 }, { "B1.unique_lines", 8 },
               { "B1.reuse_type.kNoReuse", 1 }, { "B1.bytes_d_reuse_ct", 1024 },
               { "B1.unique_bytes_d_reuse_ct", 1024 }, { "B1.lines_d_reuse_ct", 16 },
               { "B1.unique_lines_d_reuse_ct", 16 }, { "B1.stride", 1 },
               { "arith_intensity_curve_0", 6 / m0 }, { "arith_intensity_curve_1", 6 / m0 },
               { "arith_intensity_curve_2", 6 / m0 }, { "arith_intensity_curve_3", 6 / m0 },
               { "arith_intensity_curve_4", 6 / m0 }, { "arith_intensity_curve_5", 6 / m0 },
               { "arith_intensity_curve_6", 6 / m0 },
               { "arith_intensity_curve_7", between(6.4, 6, m0, 8, m1) },
               { "arith_intensity_curve_8", between(7.2, 6, m0, 8, m1) },
               { "arith_intensity_curve_9", 8 / m1 }, { "outer_prod", 128 }, { "num_loops", 2 });
}

/* A sum is read with the outer loop's part first, as a split writes it in TVM, whatever the order of ours. */
static void coefficients_are_guessed_as_theirs(void **state)
{
    static const char text[] = "kernel parts(X: f32[64, 8], out Y: f32[8, 64])\n"
                               "  for r in 0..8\n"
                               "    for b in 0..4\n"
                               "      for c in 0..4\n"
                               "        for a in 0..4\n"
                               "          block parts\n"
                               "            spatial r\n"
                               "            spatial i in 0..64 = a*16 + b*4 + c\n"
                               "            Y[r, i] = X[i, r]\n";
    const float *row;
    assert_int_equal(rows_of(*state, text, &row), 1);
    char name[48];
    double stride[2] = { 0, 0 };
    for (int i = 0; i < TL_TENSET_WIDTH; i++) {
        tl_tenset_name(i, name);
        if (strcmp(name, "B0.stride") == 0 || strcmp(name, "B1.stride") == 0)
            stride[name[1] - '0'] = tl_feature_unlog(row[i]);
    }
    /* r, b, c, a: the index is b*4 + c + a*16, and the constant that comes last behind a is its own */
    assert_true(fabs(fmin(stride[0], stride[1]) - 16) < 1e-3);
    assert_true(fabs(fmax(stride[0], stride[1]) - 16 * 8) < 1e-2);
}

/* All schedules of both spaces: numbers, the same twice; and at least 20,000 rows a second on an idle core of this
 * decade, of which a test that shares it asks a tenth. */
static void rows_are_numbers_and_come_quickly(void **state)
{
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
    enum { SAMPLES = 200 };
    tl_target target;
    tl_diag diag = { 0 };
    clock_t spent = 0;
    int64_t rows = 0;
    assert_int_equal(tl_target_named("x86-64-v4", &target, &diag), TL_OK);
    target.cores = 2;
    for (int kind = 0; kind < TL_SPACE_KIND_COUNT; kind++) {
        tl_space *space;
        tl_random random = tl_random_make(7);
        assert_int_equal(tl_space_create(*state, &task, &target, 2, (tl_space_kind)kind, &space,
                                         &diag),
                         TL_OK);
        for (int i = 0; i < SAMPLES; i++) {
            tl_variant v;
            const float *a, *b;
            if (tl_space_sample(space, *state, &random, &v, &diag) != TL_OK)
                continue;
            clock_t begun = clock();
            int count = tl_tenset_features_of(*state, v.program, &a);
            spent += clock() - begun;
            rows += count;
            assert_true(count > 0);
            assert_int_equal(tl_tenset_features_of(*state, v.program, &b), count);
            assert_memory_equal(a, b, sizeof *a * TL_TENSET_WIDTH * (size_t)count);
            for (int k = 0; k < count * TL_TENSET_WIDTH; k++)
                assert_true(isfinite(a[k]));
        }
    }
    double seconds = (double)spent / CLOCKS_PER_SEC;
    printf("%.0f rows a second\n", (double)rows / seconds);
    assert_true((double)rows / seconds > 2000);
}

static void operators_have_tags(void **state)
{
    static const struct {
        const char *family, *lowering;
        int tag;
        bool is;
    } cases[] = {
        { "gemm_relu", "direct", 6, true },      { "gemm_relu", "direct", 0, true },
        { "conv_relu", "winograd_f4", 4, true }, { "conv_relu", "winograd_f4", 3, false },
        { "conv_add", "direct", 3, true },       { "conv_add", "direct", 2, true },
        { "softmax", "direct", 7, true },        { "gemm", "direct", 2, false },
    };
    tl_program *program;
    tl_diag diag = { 0 };
    float tags[TL_TENSET_TAGS];
    assert_int_equal(tl_program_parse(*state, gemm, "test", &program, &diag), TL_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_tenset_tags_of(program, cases[i].family, cases[i].lowering, tags);
        assert_true((tags[cases[i].tag] == 1) == cases[i].is);
        assert_true(tags[TL_TENSET_TAGS - 1] == 0);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_are_164_by_their_names),
        cmocka_unit_test_setup_teardown(a_product, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_written_and_read_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(threads_of_a_gpu, set_up, tear_down),
        cmocka_unit_test_setup_teardown(coefficients_are_guessed_as_theirs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rows_are_numbers_and_come_quickly, set_up, tear_down),
        cmocka_unit_test_setup_teardown(operators_have_tags, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("TenSet's features", tests, NULL, NULL);
}
