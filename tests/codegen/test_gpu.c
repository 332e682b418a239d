/* tests/codegen/test_gpu.c: kernels for a GPU become modules that LLVM and, where there is one, ptxas take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
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

int main(void)
{
    tl_codegen_own_process();
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_are_shared),
        cmocka_unit_test(threads_combine),
    };
    return cmocka_run_group_tests_name("gpu", tests, NULL, NULL);
}
