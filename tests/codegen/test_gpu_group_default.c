/* tests/codegen/test_gpu_group_default.c: the default schedules of products for a Hopper (sm_90a): what they are made of, that
 * the modules which are generated for them compute, emulated, what the interpreter computes for the naive programs, and,
 * where there is a ptxas, that it takes them and no kernel spills. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "ir/interpret/interpret.h"
#include "runtime/base/random.h"
#include "tests/codegen/emulated.h"
#include "tests/codegen/gpu_kernels.h"

enum { MOST_BUFFERS = 8, MOST_WORDS = 5 };

static const struct {
    const char *name, *program;
    const char *has[MOST_WORDS]; /* words of its trace */
    const char *lacks;           /* a word that is not in it */
} cases[] = {
    { "a product, whose blocks share the panel by twos",
      "kernel gemm(A: bf16[256, 192], B: bf16[192, 256], out C: f32[256, 256])\n"
      "  gemm: C[i, j] = sum(f32(A[i, k])*f32(B[k, j]))\n",
      { "k16_bf16)", "bulk_copy(", "specialize(", "cluster, 2)" },
      "mma_m16" },
    { "extents that divide no tile, a constant, a stage behind",
      "kernel gemm(A: f16[200, 136], const B: f16[136, 264], const b: f32[264], out C: f16[200, "
      "264])\n"
      "  gemm: acc[i, j] = sum(f32(A[i, k])*f32(B[k, j]))\n"
      "  out: C[i, j] = f16(max(acc[i, j] + b[j], 0.0))\n",
      { "k16_f16)", "pad_einsum(", "bulk_copy(", "specialize(" },
      "mma_m16" },
    { "the second factor the other way round",
      "kernel gemm(A: bf16[128, 256], B: bf16[96, 256], out C: f32[128, 96])\n"
      "  gemm: C[i, j] = sum(f32(A[i, k])*f32(B[j, k]))\n",
      { "k16_bf16_nk)", "bulk_copy(", "specialize(" },
      "mma_m16" },
    { "many at once",
      "kernel gemm(A: f16[2, 3, 128, 64], B: f16[2, 3, 64, 96], out C: f32[2, 3, 128, 96])\n"
      "  gemm: C[b, h, i, j] = sum(f32(A[b, h, i, k])*f32(B[b, h, k, j]))\n",
      { "k16_f16)", "bulk_copy(" },
      "mma_m16" },
    { "one slice: nothing to come while it is multiplied",
      "kernel gemm(A: bf16[64, 64], B: bf16[64, 64], out C: f32[64, 64])\n"
      "  gemm: C[i, j] = sum(f32(A[i, k])*f32(B[k, j]))\n",
      { "k16_bf16)", "bulk_copy(" },
      "specialize(" },
    { "tf32, of a constant that is turned when the model is loaded",
      "tf32 kernel gemm(A: f32[128, 64], const B: f32[64, 96], out C: f32[128, 96])\n"
      "  gemm: C[i, j] = sum(A[i, k]*B[k, j])\n",
      { "k8_tf32_nk)", "transform_layout(B", "bulk_copy(" },
      "mma_m16" },
    { "tf32, of a factor that lies across: threads turn it",
      "tf32 kernel gemm(A: f32[256, 192], B: f32[192, 256], out C: f32[256, 256])\n"
      "  gemm: C[i, j] = sum(A[i, k]*B[k, j])\n",
      { "k8_tf32_nk)", "bulk_copy(", "cache_write(B_local, register)", "software_pipeline(" },
      "specialize(" },
    { "the same where nothing comes out even",
      "tf32 kernel gemm(A: f32[100, 76], B: f32[76, 90], const b: f32[90], out C: f32[100, 90])\n"
      "  gemm: acc[i, j] = sum(A[i, k]*B[k, j])\n"
      "  out: C[i, j] = max(acc[i, j] + b[j], 0.0)\n",
      { "k8_tf32_nk)", "bulk_copy(", "register)", "pad_einsum(" },
      "specialize(" },
    { "the same, many, of a factor that a stage makes",
      "tf32 kernel gemm(A: f32[3, 64, 64], B: f32[3, 64, 128], out C: f32[3, 64, 128])\n"
      "  twice: D[b, k, j] = B[b, k, j]*2.0\n"
      "  gemm: C[b, i, j] = sum(A[b, i, k]*D[b, k, j])\n",
      { "k8_tf32_nk)", "bulk_copy(", "register)" },
      "specialize(" },
    { "the same, lines of an image",
      "tf32 kernel conv(x: f32[2, 32, 4, 56], const w: f32[64, 32, 1, 1], out y: f32[2, 64, 4, "
      "56])\n"
      "  conv: y[n, o, i, j] = sum(x[n, c, i + u, j + v]*w[o, c, u, v]) for i in 0..4, j in "
      "0..56\n",
      { "k8_tf32_nk)", "bulk_copy(", "cache_write(x_pad, register)" },
      "specialize(" },
    { "tf32, of a factor that lies across, turned as a whole in front",
      "tf32 kernel gemm(A: f32[256, 192], B: f32[192, 256], out C: f32[256, 256])\n"
      "  gemm: C[i, j] = sum(A[i, k]*B[k, j])\n",
      { "k8_tf32_nk)", "cache_read(gemm, B, global)", "specialize(", "cluster, 2)" },
      "mma_m16" },
    { "the same where nothing comes out even",
      "tf32 kernel gemm(A: f32[100, 72], B: f32[72, 96], const b: f32[96], out C: f32[100, 96])\n"
      "  gemm: acc[i, j] = sum(A[i, k]*B[k, j])\n"
      "  out: C[i, j] = max(acc[i, j] + b[j], 0.0)\n",
      { "k8_tf32_nk)", "cache_read(gemm, B, global)", "specialize(", "pad_einsum(" },
      "mma_m16" },
    { "the same, many at once",
      "tf32 kernel gemm(A: f32[2, 3, 128, 64], B: f32[2, 3, 64, 160], out C: f32[2, 3, 128, 160])\n"
      "  gemm: C[b, h, i, j] = sum(A[b, h, i, k]*B[b, h, k, j])\n",
      { "k8_tf32_nk)", "cache_read(gemm, B, global)", "specialize(" },
      "mma_m16" },
    { "not where its rows are no multiples of 16 bytes",
      "tf32 kernel gemm(A: f32[96, 64], B: f32[64, 90], out C: f32[96, 90])\n"
      "  gemm: C[i, j] = sum(A[i, k]*B[k, j])\n",
      { "k8_tf32_nk)", "cache_write(B_pad, register)" },
      ", global)" },
    { "the same, an image's places",
      "tf32 kernel conv(x: f32[2, 32, 4, 56], const w: f32[64, 32, 1, 1], out y: f32[2, 64, 4, "
      "56])\n"
      "  conv: y[n, o, i, j] = sum(x[n, c, i + u, j + v]*w[o, c, u, v]) for i in 0..4, j in "
      "0..56\n",
      { "k8_tf32_nk)", "cache_read(conv, x, global)", "bulk_copy(" },
      "mma_m16" },
    { "a window that moves along rows is nothing to load 16 bytes of at a time",
      "tf32 kernel conv(x: f32[2, 32, 4, 58], const w: f32[64, 32, 1, 3], out y: f32[2, 64, 4, "
      "56])\n"
      "  conv: y[n, o, i, j] = sum(x[n, c, i + u, j + v]*w[o, c, u, v]) for i in 0..4, j in "
      "0..56\n",
      { "bind(" },
      "wgmma" },
    { "f32 is not multiplied as anything else",
      "kernel gemm(A: f32[128, 64], const B: f32[64, 96], out C: f32[128, 96])\n"
      "  gemm: C[i, j] = sum(A[i, k]*B[k, j])\n",
      { "software_pipeline(" },
      "mma" },
    { "bytes",
      "kernel gemm(A: u8[128, 128], B: u8[64, 128], out C: i32[128, 64])\n"
      "  gemm: C[i, j] = sum(i32(A[i, k])*i32(B[j, k]))\n",
      { "k32_u8_nk)", "bulk_copy(" },
      "mma_m16" },
    { "a window that moves along lines, whose zeroes are those around the image",
      "kernel conv(x: bf16[2, 32, 6, 32], const w: bf16[64, 32, 3, 1], const b: f32[64], out y: "
      "bf16[2, 64, 6, 32])\n"
      "  pad: p[n, c, i, j] = select(1 <= i and i < 7, x[n, c, i - 1, j], bf16(0.0)) for i in "
      "0..8, "
      "j in 0..32\n"
      "  conv: acc[n, o, i, j] = sum(f32(p[n, c, i + u, j + v])*f32(w[o, c, u, v])) for i in 0..6, "
      "j in 0..32\n"
      "  y: y[n, o, i, j] = bf16(max(acc[n, o, i, j] + b[o], 0.0))\n",
      { "k16_bf16)", "transform_layout(w", "bulk_copy(", "specialize(" },
      "mma_m16" },
    { "the same, of lines that no tile divides",
      "kernel conv(x: bf16[1, 32, 3, 56], const w: bf16[64, 32, 3, 1], out y: bf16[1, 64, 3, 56])\n"
      "  pad: p[n, c, i, j] = select(1 <= i and i < 4, x[n, c, i - 1, j], bf16(0.0)) for i in "
      "0..5, "
      "j in 0..56\n"
      "  conv: acc[n, o, i, j] = sum(f32(p[n, c, i + u, j + v])*f32(w[o, c, u, v])) for i in "
      "0..3, j in 0..56\n"
      "  y: y[n, o, i, j] = bf16(acc[n, o, i, j])\n",
      { "k16_bf16)", "pad_einsum(", "bulk_copy(", "specialize(" },
      "mma_m16" },
    { "a window that moves along rows: boxes begin at multiples of 16 bytes alone",
      "kernel conv(x: bf16[1, 32, 3, 56], const w: bf16[64, 32, 3, 3], out y: bf16[1, 64, 3, 56])\n"
      "  pad: p[n, c, i, j] = select(1 <= i and i < 4 and 1 <= j and j < 57, x[n, c, i - 1, j - "
      "1], bf16(0.0)) for i in 0..5, j in 0..58\n"
      "  conv: acc[n, o, i, j] = sum(f32(p[n, c, i + u, j + v])*f32(w[o, c, u, v])) for i in "
      "0..3, j in 0..56\n"
      "  y: y[n, o, i, j] = bf16(acc[n, o, i, j])\n",
      { "mma_m16n8k16_bf16)" },
      "bulk_copy(" },
    { "a convolution of single elements, channels that come to no whole slice",
      "kernel conv(x: f16[1, 72, 4, 56], const w: f16[96, 72, 1, 1], out y: f16[1, 96, 4, 56])\n"
      "  conv: acc[n, o, i, j] = sum(f32(x[n, c, i + u, j + v])*f32(w[o, c, u, v])) for i in 0..4, "
      "j in 0..56\n"
      "  y: y[n, o, i, j] = f16(acc[n, o, i, j])\n",
      { "k16_f16)", "bulk_copy(" },
      "mma_m16" },
    { "steps of two are no box",
      "kernel conv(x: bf16[1, 32, 8, 64], const w: bf16[64, 32, 1, 1], out y: f32[1, 64, 4, 32])\n"
      "  conv: y[n, o, i, j] = sum(f32(x[n, c, i*2 + u, j*2 + v])*f32(w[o, c, u, v])) for i in "
      "0..4, j in 0..32\n",
      { "bind(" },
      "wgmma" },
    { "rows that begin anywhere are no box, either",
      "kernel gemm(A: bf16[128, 100], B: bf16[100, 96], out C: f32[128, 96])\n"
      "  gemm: C[i, j] = sum(f32(A[i, k])*f32(B[k, j]))\n",
      { "mma_m16n8k16_bf16)" },
      "wgmma" },
    { "nor are weights whose channels lie across, when they are not there before",
      "kernel conv(x: bf16[1, 64, 2, 72], w: bf16[64, 64, 1, 8], out y: f32[1, 64, 2, 65])\n"
      "  conv: y[n, o, i, j] = sum(f32(x[n, c, i + u, j + v])*f32(w[o, c, u, v])) for i in 0..2, "
      "j in 0..65\n",
      { "mma_m16n8k16_bf16)" },
      "wgmma" },
    { "few rows are for a warp",
      "kernel gemm(A: bf16[16, 128], B: bf16[128, 96], out C: f32[16, 96])\n"
      "  gemm: C[i, j] = sum(f32(A[i, k])*f32(B[k, j]))\n",
      { "mma_m16n8k16_bf16)" },
      "wgmma" },
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* What is to be turned in a launch in front is too small for the model to say so. */
static int decide(void *user, const tl_decision *open)
{
    const char *const *has = user;
    const char *role = strrchr(open->name, '.');
    for (int w = 0; w < MOST_WORDS && has[w] != NULL; w++)
        if (strstr(has[w], ", global)") != NULL && role != NULL && strcmp(role, ".turn") == 0)
            return open->count - 1;
    return open->initial;
}

static gpu_case schedule(tl_arena *arena, int i)
{
    return gpu_by_default(arena, cases[i].name, cases[i].program, "sm_90a", decide, cases[i].has);
}

static bool is_wanted(int i)
{
    const char *only = getenv("TL_ONLY");
    return only == NULL || strstr(cases[i].name, only) != NULL;
}

static void schedules_are_made_of(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        if (!is_wanted(i))
            continue;
        tl_arena *arena = tl_arena_create(0);
        gpu_case c = schedule(arena, i);
        for (int w = 0; w < MOST_WORDS && cases[i].has[w] != NULL; w++)
            if (strstr(c.trace, cases[i].has[w]) == NULL)
                fail_msg("%s: no %s in\n%s", cases[i].name, cases[i].has[w], c.trace);
        if (strstr(c.trace, cases[i].lacks) != NULL)
            fail_msg("%s: a %s in\n%s", cases[i].name, cases[i].lacks, c.trace);
        tl_arena_destroy(arena);
    }
}

/* A launch in front is worth it where it takes no longer than the products. */
static void many_rows_are_worth_a_launch(void **state)
{
    static const struct {
        int rows, columns;
        bool is_ahead;
    } sizes[] = {
        { 64, 4096, false }, { 384, 4096, false }, { 1024, 4096, true },
        { 512, 512, false }, { 4096, 512, true },  { 4096, 4096, true },
    };
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        tl_arena *arena = tl_arena_create(0);
        int m = sizes[i].rows, n = sizes[i].columns;
        const char *text =
            tl_arena_format(arena,
                            "tf32 kernel gemm(A: f32[%d, %d], B: f32[%d, %d], out C: f32[%d, %d])\n"
                            "  gemm: C[i, j] = sum(A[i, k]*B[k, j])\n",
                            m, n, n, n, m, n);
        gpu_case c = gpu_by_default(arena, "gemm", text, "sm_90a", NULL, NULL);
        if ((strstr(c.trace, "B, global)") != NULL) != sizes[i].is_ahead)
            fail_msg("%d rows of %d:\n%s", m, n, c.trace);
        tl_arena_destroy(arena);
    }
}

/* Small whole numbers: all that is multiplied and added up is exact, in every dtype and order. */
static void fill(tl_arena *arena, const tl_program *program, void **data)
{
    tl_random random = tl_random_make(3);
    for (int p = 0; p < program->param_count; p++) {
        const tl_buffer *b = program->params[p];
        data[p] = tl_arena_alloc(arena, (size_t)tl_buffer_max_bytes(b) + 64, 64);
        for (int64_t i = 0; i < tl_buffer_max_elements(b); i++) {
            tl_number number = { .i = tl_random_below(&random, 3) };
            if (tl_dtype_is_float(b->dtype))
                number.f = (double)(tl_random_below(&random, 5) - 2);
            tl_number_store(b->dtype, data[p], (size_t)i, number);
        }
    }
}

static void run_case(emulated *device, int i)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    void *got[MOST_BUFFERS], *want[MOST_BUFFERS];
    tl_argument arguments[MOST_BUFFERS];
    tl_interpret_options options = { .check = false };
    gpu_case c = schedule(arena, i);
    fill(arena, c.naive, got);
    fill(arena, c.naive, want);
    if (emulated_run(device, arena, c.program, &c.target, got, NULL, &diag) != TL_OK)
        fail_msg("%s: %s\n%s", cases[i].name, diag.text, c.trace);
    for (int p = 0; p < c.naive->param_count; p++)
        arguments[p] = (tl_argument){ c.naive->params[p], want[p] };
    if (tl_interpret(c.naive, arguments, c.naive->param_count, NULL, &options, &diag) != TL_OK)
        fail_msg("%s: %s", cases[i].name, diag.text);
    for (int p = 0; p < c.naive->param_count; p++)
        if (memcmp(got[p], want[p], (size_t)tl_buffer_max_bytes(c.naive->params[p])) != 0)
            fail_msg("%s: %s is something else\n%s", cases[i].name, c.naive->params[p]->name,
                     c.trace);
    tl_arena_destroy(arena);
}

static void schedules_are_right(void **state)
{
    (void)state;
    emulated device;
    tl_diag diag = { 0 };
    if (emulated_open(&device, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    for (int i = 0; i < CASES; i++)
        if (is_wanted(i))
            run_case(&device, i);
    emulated_close(&device);
}

static void schedules_assemble(void **state)
{
    (void)state;
    gpu_need_ptxas();
    for (int i = 0; i < CASES; i++) {
        tl_arena *arena = tl_arena_create(0);
        gpu_case c = schedule(arena, i);
        gpu_expect_assembles(arena, cases[i].name, &c, "sm_90a");
        tl_arena_destroy(arena);
    }
}

int main(void)
{
    tl_codegen_own_process();
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_are_made_of),
        cmocka_unit_test(many_rows_are_worth_a_launch),
        cmocka_unit_test(schedules_are_right),
        cmocka_unit_test(schedules_assemble),
    };
    return cmocka_run_group_tests_name("gpu group default", tests, NULL, NULL);
}
