/* tests/tuner/test_gpu_points.c: random points of the space that the rules for GPUs span, of programs that each of them takes:
 * code generation takes all that it offers. TL_POINTS points a program and target, from TL_SEED; TL_ONLY has a part of the
 * program's name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include "codegen/codegen.h"
#include "tests/support/sketch_programs.h"
#include "tuner/search/space.h"

static const char *const targets[] = { "cuda,sm_80", "cuda,sm_90a" };

static int64_t number_from(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoll(text, NULL, 10) : otherwise;
}

static int points, rejected, refused;

static void build(const char *name, const tl_variant *v, const tl_target *target)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_text module = { 0 };
    tl_descriptor descriptor;
    if (tl_codegen_compile(arena, v->program, false, target, TL_EMIT_LLVM, &module, &descriptor,
                           &diag) != TL_OK) {
        fprintf(stderr, "%s for %s: %s\n%s\n", name, target->cpu, diag.text, v->trace);
        refused++;
    }
    tl_text_free(&module);
    tl_arena_destroy(arena);
}

static void build_points(const char *name, const char *text)
{
    tl_measure_lowering lowering = { "direct", text, 0, 0 };
    tl_measure_task task = { .name = name, .lowering_count = 1, .lowerings = &lowering };
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        tl_arena *arena = tl_arena_create(0);
        tl_diag diag = { 0 };
        tl_target target;
        tl_space *space;
        tl_random random = tl_random_make((uint64_t)number_from("TL_SEED", 1));
        if (tl_target_named(targets[t], &target, &diag) != TL_OK ||
            tl_space_create(arena, &task, &target, 1, TL_SPACE_FULL, &space, &diag) != TL_OK)
            fail_msg("%s: %s", name, diag.text);
        for (int64_t i = 0; i < number_from("TL_POINTS", 1); i++) {
            tl_arena *own = tl_arena_create(0);
            tl_variant v;
            tl_status status = tl_space_sample(space, own, &random, &v, &diag);
            points++;
            if (status == TL_OK)
                build(name, &v, &target);
            else if (status == TL_ILLEGAL_SCHEDULE)
                rejected++;
            else
                fail_msg("%s: %s", name, diag.text);
            tl_arena_destroy(own);
        }
        tl_arena_destroy(arena);
    }
}

/* Nothing that the space offers is refused by code generation, and few points are by the primitives. */
static void check_counts(void)
{
    print_message("%d points, %d rejected, %d refused\n", points, rejected, refused);
    assert_int_equal(refused, 0);
    assert_true(rejected * 50 <= points);
    points = rejected = refused = 0;
}

/* Programs of the kinds that sketches tell apart, and products large enough for all tiles. */
static void points_of_sketch_programs(void **state)
{
    (void)state;
    sketch_programs_visit(getenv("TL_ONLY"), build_points);
    check_counts();
}

static const char *const large[][2] = {
    { "gemm", "kernel k(A: f32[256, 512], const B: f32[512, 384], out C: f32[256, 384])\n"
              "  gemm: C[i, j] = sum(A[i, k]*B[k, j])\n" },
    { "gemm tf32", "tf32 kernel k(A: f32[256, 512], const B: f32[512, 384], out C: f32[256, 384])\n"
                   "  gemm: C[i, j] = sum(A[i, k]*B[k, j])\n" },
    { "gemm tf32, inputs",
      "tf32 kernel k(A: f32[256, 512], B: f32[512, 384], out C: f32[256, 384])\n"
      "  gemm: C[i, j] = sum(A[i, k]*B[k, j])\n" },
    { "gemm tf32 by rows",
      "tf32 kernel k(A: f32[256, 512], B: f32[384, 512], out C: f32[256, 384])\n"
      "  gemm: C[i, j] = sum(A[i, k]*B[j, k])\n" },
    { "gemm bf16", "kernel k(A: bf16[256, 512], B: bf16[512, 384], out C: f32[256, 384])\n"
                   "  gemm: C[i, j] = sum(f32(A[i, k])*f32(B[k, j]))\n" },
    { "convolution",
      "kernel k(x: f32[2, 32, 18, 18], const w: f32[64, 32, 3, 3], out y: f32[2, 64, "
      "16, 16])\n"
      "  conv: acc[n, o, i, j] = sum(x[n, c, i + u, j + v]*w[o, c, u, v]) "
      "for i in 0..16, j in 0..16\n"
      "  relu: y[n, o, i, j] = max(acc[n, o, i, j], 0.0)\n" },
    { "softmax", "kernel k(x: f32[64, 1024], out y: f32[64, 1024])\n"
                 "  most: m[i] = max(x[i, k])\n  power: p[i, k] = exp(x[i, k] - m[i])\n"
                 "  total: l[i] = sum(p[i, k])\n  y: y[i, k] = p[i, k]/l[i]\n" },
};

static void points_of_large_programs(void **state)
{
    (void)state;
    const char *only = getenv("TL_ONLY");
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
        if (only == NULL || strstr(large[i][0], only) != NULL)
            build_points(large[i][0], large[i][1]);
    check_counts();
}

int main(void)
{
    tl_codegen_own_process();
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_of_sketch_programs),
        cmocka_unit_test(points_of_large_programs),
    };
    return cmocka_run_group_tests_name("gpu points", tests, NULL, NULL);
}
