/* tests/codegen/test_gpu.c: kernels for a GPU become modules that LLVM and, where there is one, ptxas take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "runtime/base/file.h"
#include "tests/codegen/cubin.h"
#include "tests/codegen/gpu_kernels.h"

static const char gemm[] = "kernel gemm(A: f32[64, 64], B: f32[64, 64], out C: f32[64, 64])\n"
                           "  gemm: C[i, j] = sum(A[i, k]*B[k, j])\n";
static const char gemm_trace[] = "i, j, k = loops(gemm)\n"
                                 "i0, j0, i1, j1 = tile(i, j, [16, 16])\n"
                                 "k0, k1 = split(k, [_, 16])\n"
                                 "reorder(k0, i1, j1, k1)\n"
                                 "a = cache_read(gemm, A, shared)\n"
                                 "b = cache_read(gemm, B, shared)\n"
                                 "compute_at(a, k0)\n"
                                 "compute_at(b, k0)\n"
                                 "bind(i0, blockIdx.y)\n"
                                 "bind(j0, blockIdx.x)\n"
                                 "bind(i1, threadIdx.y)\n"
                                 "bind(j1, threadIdx.x)\n"
                                 "_, _, _, ai, aj = loops(a)\n"
                                 "bind(ai, threadIdx.y)\n"
                                 "bind(aj, threadIdx.x)\n"
                                 "_, _, _, bi, bj = loops(b)\n"
                                 "bind(bi, threadIdx.y)\n"
                                 "bind(bj, threadIdx.x)\n"
                                 "place_barriers()\n";

static int count_of(const char *text, const char *word)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += strlen(word))
        count++;
    return count;
}

static void tiles_are_shared(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    const char *llvm = gpu_text(arena, gemm, gemm_trace, "sm_80", TL_EMIT_LLVM);
    const char *ptx = gpu_ptx(arena, gemm, gemm_trace, "sm_80");
    assert_non_null(strstr(llvm, "define ptx_kernel void @gemm_0("));
    assert_non_null(strstr(llvm, "!\"maxntidx\", i32 16"));
    assert_non_null(strstr(ptx, ".visible .entry gemm_0("));
    assert_int_equal(count_of(ptx, "bar.sync"), 2);
    assert_int_equal(count_of(ptx, "ld.global.nc.f32"), 2);
    tl_arena_destroy(arena);
}

static const char rows[] = "kernel rows(A: f32[8, 2048], out S: f32[8])\n"
                           "  S: S[i] = sum(A[i, k])\n";
static const char rows_trace[] = "i, k = loops(S)\n"
                                 "k0, k1 = split(k, [_, %d])\n"
                                 "part = rfactor(S, k1)\n"
                                 "i, t = loops(S)\n"
                                 "compute_at(part, t)\n"
                                 "set_scope(S_rf, register)\n"
                                 "bind(i, blockIdx.x)\n"
                                 "bind(t, threadIdx.x)\n"
                                 "place_barriers()\n";

static void threads_combine(void **state)
{
    (void)state;
    static const struct {
        int threads, shuffles, barriers;
    } cases[] = { { 8, 3, 0 }, { 32, 5, 0 }, { 256, 5, 2 } };
    tl_arena *arena = tl_arena_create(0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *ptx =
            gpu_ptx(arena, rows, tl_arena_format(arena, rows_trace, cases[i].threads), "sm_80");
        assert_int_equal(count_of(ptx, "shfl.sync.bfly"), cases[i].shuffles);
        assert_int_equal(count_of(ptx, "bar.sync"), cases[i].barriers);
    }
    tl_arena_destroy(arena);
}

/* What must be in the code of the kernels of models/kernels/gpu, written out as it is: one product a tile and step of 64
 * by 64 and 32 bytes of k, the fragments loaded once. */
static const struct {
    const char *name;
    cubin_kind kinds[2];
    int counts[2];
    bool needs_group; /* sm_90a */
} kernels[] = {
    { "gemm_f32", { CUBIN_FFMA, CUBIN_LDS }, { 512, 32 }, false },
    { "gemm_bf16", { CUBIN_HMMA, CUBIN_LDSM }, { 128, 48 }, false },
    { "gemm_f16_nt", { CUBIN_HMMA, CUBIN_LDSM }, { 64, 24 }, false },
    { "gemm_tf32", { CUBIN_HMMA, CUBIN_LDSM }, { 128, 16 }, false },
    { "gemm_i8", { CUBIN_IMMA, CUBIN_LDSM }, { 64, 24 }, false },
    { "gemm_bf16_group", { CUBIN_HGMMA, CUBIN_LDSM }, { 4, 0 }, true },
};

static const char *read_kernel(tl_arena *arena, const char *name, const char *suffix)
{
    tl_diag diag = { "" };
    tl_text text = { 0 };
    const char *path = tl_arena_format(arena, "models/kernels/gpu/%s.%s", name, suffix);
    if (tl_file_read(path, &text, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    const char *copy = tl_arena_strdup(arena, tl_text_get(&text));
    tl_text_free(&text);
    return copy;
}

static void check_code(tl_arena *arena, size_t which, const char *cpu)
{
    const char *name = kernels[which].name;
    const char *ptx =
        gpu_ptx(arena, read_kernel(arena, name, "tk"), read_kernel(arena, name, "tr"), cpu);
    tl_text cubin = { 0 };
    tl_diag diag = { "" };
    const tl_ptx_use *uses = NULL;
    int count = 0, counts[CUBIN_KINDS];
    if (tl_ptxas_run(arena, ptx, cpu, &cubin, &uses, &count, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(count, 1);
    assert_int_equal(uses[0].stack_bytes, 0);
    assert_true(cubin_count(cubin.data, cubin.size, counts));
    /* ptxas may write several steps of a loop one after the other */
    int first = counts[kernels[which].kinds[0]], second = counts[kernels[which].kinds[1]];
    const int *wanted = kernels[which].counts;
    if (first == 0 || first % wanted[0] != 0 || second * wanted[0] != first * wanted[1])
        fail_msg("%s for %s: %d and %d instructions, not %d and %d", name, cpu, first, second,
                 wanted[0], wanted[1]);
    assert_int_equal(counts[CUBIN_LDL] + counts[CUBIN_STL], 0);
    tl_text_free(&cubin);
}

static void inner_loops_are_as_written(void **state)
{
    (void)state;
    gpu_need_ptxas();
    tl_arena *arena = tl_arena_create(0);
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (!kernels[i].needs_group)
            check_code(arena, i, "sm_80");
        check_code(arena, i, "sm_90a");
    }
    tl_arena_destroy(arena);
}

/* A pipeline of three stages: copies go on by themselves, what they copy is waited for two steps later, and a step meets
 * once. Where there are no such copies, it meets all the same. */
static void copies_go_on(void **state)
{
    (void)state;
    static const struct {
        const char *kernel, *cpu;
        int copies, waits, barriers;
    } cases[] = { { "gemm_bf16", "sm_80", 24, 2, 3 },
                  { "gemm_tf32", "sm_90", 24, 2, 3 },
                  { "gemm_edges", "sm_80", 4, 2, 3 },
                  { "gemm_edges", "sm_75", 0, 0, 3 } };
    tl_arena *arena = tl_arena_create(0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *ptx = gpu_ptx(arena, read_kernel(arena, cases[i].kernel, "tk"),
                                  read_kernel(arena, cases[i].kernel, "tr"), cases[i].cpu);
        assert_int_equal(count_of(ptx, "cp.async.cg") + count_of(ptx, "cp.async.ca"),
                         cases[i].copies);
        assert_int_equal(count_of(ptx, "cp.async.wait_group"), cases[i].waits);
        assert_int_equal(count_of(ptx, "cp.async.commit_group"), cases[i].waits);
        assert_int_equal(count_of(ptx, "bar.sync"), cases[i].barriers);
    }
    tl_arena_destroy(arena);
}

/* Nobody has placed barriers: what stands outside of the thread loops is ordered with them all the same. */
static void one_and_all_wait(void **state)
{
    (void)state;
    static const char kernel[] = "kernel once(X: f32[4, 32], out Y: f32[4, 32])\n"
                                 "  for b in 0..4 blockIdx.x\n"
                                 "    alloc S: f32[1] shared\n"
                                 "    for r in 0..2\n"
                                 "      for z in 0..1\n"
                                 "        block S\n"
                                 "          spatial b, z\n"
                                 "          S[z] = X[b, z] + 1.0\n"
                                 "      for t in 0..32 threadIdx.x\n"
                                 "        block Y\n"
                                 "          spatial b, t\n"
                                 "          Y[b, t] = X[b, t]*S[0]\n";
    tl_arena *arena = tl_arena_create(0);
    const char *ptx = gpu_ptx(arena, kernel, NULL, "sm_80");
    assert_int_equal(count_of(ptx, "bar.sync"),
                     2); /* before the threads, and before the next turn */
    tl_arena_destroy(arena);
}

/* What no GPU, or not this one, has is said. */
static void refused(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { "" };
    tl_target target;
    const tl_program *program = NULL;
    const char *text;
    const char *kernel = read_kernel(arena, "gemm_f16_nt", "tk");
    const char *trace = read_kernel(arena, "gemm_f16_nt", "tr");
    assert_int_equal(gpu_target("sm_75", &target, &diag), TL_OK);
    assert_int_equal(gpu_schedule(arena, kernel, trace, &target, &program, &diag), TL_OK);
    assert_int_equal(gpu_emit(arena, program, &target, TL_EMIT_OBJECT, &text, &diag),
                     TL_UNSUPPORTED);
    assert_non_null(strstr(diag.text, "it takes sm_80 or later"));
    tl_arena_destroy(arena);
}

int main(void)
{
    tl_codegen_own_process();
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_are_shared),           cmocka_unit_test(threads_combine),
        cmocka_unit_test(inner_loops_are_as_written), cmocka_unit_test(copies_go_on),
        cmocka_unit_test(one_and_all_wait),           cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests_name("gpu", tests, NULL, NULL);
}
