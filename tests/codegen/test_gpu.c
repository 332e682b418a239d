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
    tl_diag diag = { "" };
    tl_target target;
    const tl_program *program;
    const char *llvm = "", *ptx = "";
    if (gpu_target("sm_80", &target, &diag) != TL_OK ||
        gpu_schedule(arena, gemm, gemm_trace, &target, &program, &diag) != TL_OK ||
        gpu_emit(arena, program, &target, TL_EMIT_LLVM, &llvm, &diag) != TL_OK ||
        gpu_emit(arena, program, &target, TL_EMIT_OBJECT, &ptx, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_non_null(strstr(llvm, "define ptx_kernel void @gemm_0("));
    assert_non_null(strstr(llvm, "!\"maxntidx\", i32 16"));
    assert_non_null(strstr(ptx, ".visible .entry gemm_0("));
    assert_int_equal(count_of(ptx, "bar.sync"), 2);
    assert_int_equal(count_of(ptx, "ld.global.nc.f32"), 2);
    tl_arena_destroy(arena);
}

int main(void)
{
    tl_codegen_own_process();
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_are_shared),
    };
    return cmocka_run_group_tests_name("gpu", tests, NULL, NULL);
}
