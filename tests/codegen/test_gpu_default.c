/* tests/codegen/test_gpu_default.c: the default schedules of the programs of tests/golden/sketch for a GPU, as the modules
 * that are generated for it, run emulated, and compared with the interpreter's results of the naive programs. Where there is
 * a ptxas, what is generated for two generations assembles, and no kernel spills. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/object/ptxas.h"
#include "schedule/sketch/sketch.h"
#include "schedule/trace.h"
#include "tests/codegen/emulated.h"
#include "tests/codegen/gpu_kernels.h"
#include "tests/support/sketch_programs.h"

enum { MOST_BUFFERS = 16, FEW_REGISTERS = 64 };

static emulated gpu;

/* For that target, of `cores` multiprocessors where they are not 0. */
static const tl_program *schedule_for(tl_arena *arena, const char *name, const char *text,
                                      const char *arch, int cores, tl_program **naive,
                                      tl_target *target)
{
    tl_diag diag = { 0 };
    if (tl_program_parse(arena, text, name, naive, &diag) != TL_OK ||
        tl_target_named(arch, target, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    target->cores = cores != 0 ? cores : target->cores;
    tl_schedule *s = tl_schedule_create(arena, *naive, target, false);
    if (tl_schedule_default(s, &diag) != TL_OK)
        fail_msg("%s: %s", name, diag.text);
    return tl_schedule_program(s);
}

static const tl_program *schedule(tl_arena *arena, const char *name, const char *text,
                                  const char *arch, tl_program **naive, tl_target *target)
{
    return schedule_for(arena, name, text, arch, 0, naive, target);
}

/* `part`: what the program's text has. */
static void run_for(const char *name, const char *text, const char *arch, int cores,
                    const char *part)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_target target;
    tl_program *naive;
    void *want[MOST_BUFFERS], *got[MOST_BUFFERS];
    const tl_program *program = schedule_for(arena, name, text, arch, cores, &naive, &target);
    if (strstr(tl_program_text(arena, program), part) == NULL)
        fail_msg("%s: no %s in\n%s", name, part, tl_program_text(arena, program));
    assert_in_range(program->param_count, 1, MOST_BUFFERS);
    emulated_data(arena, naive, 11, 5, want);
    emulated_data(arena, naive, 11, 5, got);
    if (emulated_want(arena, naive, want, &diag) != TL_OK ||
        emulated_run(&gpu, arena, program, &target, got, NULL, &diag) != TL_OK)
        fail_msg("%s: %s\n%s", name, diag.text, tl_program_text(arena, program));
    for (int i = 0; i < naive->param_count; i++) {
        const tl_buffer *b = naive->params[i];
        for (int64_t k = 0; b->role == TL_ROLE_OUTPUT && k < tl_buffer_max_elements(b); k++) {
            bool is_float = tl_dtype_is_float(b->dtype);
            tl_number w = tl_number_load(b->dtype, want[i], (size_t)k),
                      g = tl_number_load(b->dtype, got[i], (size_t)k);
            double bound = b->dtype == TL_BF16  ? 2e-2
                           : b->dtype == TL_F16 ? 2e-3
                           : naive->tf32        ? 2e-3
                                                : 2e-5;
            if (is_float ? !(fabs(w.f - g.f) <= bound * (1 + fabs(w.f))) : w.i != g.i)
                fail_msg("%s: %s[%lld] is %.9g, not %.9g", name, b->name, (long long)k,
                         is_float ? g.f : (double)g.i, is_float ? w.f : (double)w.i);
        }
    }
    tl_arena_destroy(arena);
}

static void run_program(const char *name, const char *text)
{
    run_for(name, text, "cuda,sm_80", 0, "");
}

static void default_schedules_run_emulated(void **state)
{
    (void)state;
    tl_diag diag = { 0 };
    if (emulated_open(&gpu, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    sketch_programs_visit(getenv("TL_ONLY"), run_program);
    emulated_close(&gpu);
}

/* Attention as the lowering `halves` writes it: weights in the operands' dtype. */
static const struct {
    const char *name, *dtype;
    int heads, rows, keys, depth, width;
} attentions[] = {
    { "attention bf16", "bf16", 2, 64, 128, 32, 64 },
    { "attention f16", "f16", 1, 48, 128, 64, 128 },
    { "attention bf16, one block of rows", "bf16", 1, 16, 64, 16, 64 },
};
enum { ATTENTIONS = sizeof attentions / sizeof attentions[0] };

static const char *attention_text(tl_arena *arena, int i)
{
    const char *type = attentions[i].dtype;
    int h = attentions[i].heads, n = attentions[i].rows, m = attentions[i].keys,
        d = attentions[i].depth, e = attentions[i].width;
    const char *params = tl_arena_format(
        arena,
        "kernel attention(q: %s[1, %d, %d], k: %s[1, %d, %d], v: %s[1, %d, %d], mask: %s[1, 1, 1, "
        "%d], out y: %s[1, %d, %d])\n",
        type, n, h * d, type, m, h * d, type, m, h * e, type, m, type, n, h * e);
    return tl_arena_format(
        arena,
        "%s  scores: s[b, h, i, j] = sum(f32(q[b, i, h*%d + d])*f32(k[b, j, h*%d + d])) for h in "
        "0..%d, d in 0..%d\n"
        "  masked: z[b, h, i, j] = s[b, h, i, j]*0.25 + f32(mask[b, 0, 0, j])\n"
        "  most: m[b, h, i] = max(z[b, h, i, j])\n"
        "  weight: p[b, h, i, j] = %s(exp(z[b, h, i, j] - m[b, h, i]))\n"
        "  total: l[b, h, i] = sum(f32(p[b, h, i, j]))\n"
        "  attend: acc[b, i, h, e] = sum(f32(p[b, h, i, j])*f32(v[b, j, h*%d + e])) for e in "
        "0..%d\n"
        "  epilogue: y[b, i, h*%d + e] = %s(acc[b, i, h, e]*(1.0/l[b, h, i])) for h in 0..%d, e in "
        "0..%d\n",
        params, d, d, h, d, type, e, e, e, type, h, e);
}

static void attention_runs_emulated(void **state)
{
    (void)state;
    tl_diag diag = { 0 };
    if (emulated_open(&gpu, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    for (int i = 0; i < ATTENTIONS; i++) {
        tl_arena *arena = tl_arena_create(0);
        run_program(attentions[i].name, attention_text(arena, i));
        tl_arena_destroy(arena);
    }
    emulated_close(&gpu);
}

/* A block that has a multiprocessor for itself has deep slices, where there is memory for three. On one multiprocessor large
 * tiles are best for small extents, too. */
static const struct {
    const char *name, *text, *arch, *part;
} large[] = {
    { "tf32, deep",
      "tf32 kernel k(A: f32[256, 256], B: f32[256, 128], out C: f32[256, 128])\n"
      "  gemm: C[i, j] = sum(A[i, k]*B[k, j])\n",
      "cuda,sm_90", "[3, 256, 32] swizzle 128 shared" },
    { "tf32, a pitch", /* four rows of k begin in banks 0, 8, 16 and 24 */
      "tf32 kernel k(A: f32[256, 256], B: f32[256, 128], out C: f32[256, 128])\n"
      "  gemm: C[i, j] = sum(A[i, k]*B[k, j])\n",
      "cuda,sm_80", "[3, 32, 128] strides [4352, 136, 1] shared" },
    { "tf32, little memory",
      "tf32 kernel k(A: f32[256, 256], B: f32[256, 128], out C: f32[256, 128])\n"
      "  gemm: C[i, j] = sum(A[i, k]*B[k, j])\n",
      "cuda,sm_86", "[3, 256, 16] swizzle 64 shared" },
    { "tf32, no whole deep slices",
      "tf32 kernel k(A: f32[256, 240], B: f32[240, 128], out C: f32[256, 128])\n"
      "  gemm: C[i, j] = sum(A[i, k]*B[k, j])\n",
      "cuda,sm_90", "[3, 256, 16] swizzle 64 shared" },
    { "bf16, deep",
      "kernel k(A: bf16[256, 256], B: bf16[256, 128], out C: f32[256, 128])\n"
      "  gemm: C[i, j] = sum(f32(A[i, k])*f32(B[k, j]))\n",
      "cuda,sm_90", "[3, 2, 64, 64] swizzle 128 shared" },
};

static void large_tiles_run_emulated(void **state)
{
    (void)state;
    tl_diag diag = { 0 };
    if (emulated_open(&gpu, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
        run_for(large[i].name, large[i].text, large[i].arch, 1, large[i].part);
    emulated_close(&gpu);
}

/* Nothing to sum up, and nothing to compute: sums of no terms are what they start from. */
static const char *const empty[][2] = {
    { "gemm of no terms", "kernel k(A: f32[5, 0], const B: f32[0, 7], out C: f32[5, 7])\n"
                          "  gemm: C[i, j] = sum(A[i, k]*B[k, j])\n" },
    { "gemm of no rows", "kernel k(A: f32[0, 9], const B: f32[9, 7], out C: f32[0, 7])\n"
                         "  gemm: C[i, j] = sum(A[i, k]*B[k, j])\n" },
    { "tf32 gemm of no terms",
      "tf32 kernel k(A: f32[64, 0], const B: f32[0, 64], out C: f32[64, 64])\n"
      "  gemm: C[i, j] = sum(A[i, k]*B[k, j])\n" },
    { "convolution of no channels",
      "kernel k(x: f32[1, 0, 8, 8], const w: f32[12, 0, 3, 3], out y: f32[1, 12, 6, 6])\n"
      "  conv: y[n, o, i, j] = sum(x[n, c, i + u, j + v]*w[o, c, u, v]) for i in 0..6, j in "
      "0..6\n" },
    { "softmax of no rows", "kernel k(x: f32[0, 16], out y: f32[0, 16])\n"
                            "  most: m[i] = max(x[i, k])\n  power: p[i, k] = exp(x[i, k] - m[i])\n"
                            "  total: l[i] = sum(p[i, k])\n  y: y[i, k] = p[i, k]/l[i]\n" },
    { "sum of no terms", "kernel k(x: f32[6, 0], out y: f32[6])\n  total: y[i] = sum(x[i, k])\n" },
    { "no elements", "kernel k(x: f32[3, 0], out y: f32[3, 0])\n  y: y[i, j] = exp(x[i, j])\n" },
};

static void nothing_to_do_runs_emulated(void **state)
{
    (void)state;
    tl_diag diag = { 0 };
    if (emulated_open(&gpu, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++)
        run_program(empty[i][0], empty[i][1]);
    emulated_close(&gpu);
}

/* ---- what schedules are made of ---- */

/* A step that the trace of a program has, and how many launches it comes to. */
static const struct {
    const char *program, *step;
    int launches;
} made_of[] = {
    { "attention_blocks.tk", "software_pipeline(", 1 },
    { "conv_plain.tk", "software_pipeline(", 1 },
    { "conv_plain_stride2.tk", "pad_einsum(", 1 },
    { "conv_tf32.tk", "mma_m16n8k8_tf32)", 1 },
    { "gemm_bf16_nt.tk", "mma_m16n8k16_bf16_nk)", 1 },
    { "gemm_f16.tk", "mma_m16n8k16_f16)", 1 },
    { "gemm_pieces.tk", "rfactor(", 2 },
    { "gemm_tf32.tk", "mma_m16n8k8_tf32)", 1 },
    { "gemm_u8i8.tk", "mma_m16n8k32_u8i8_nk)", 1 },
    { "layer_norm.tk", "rfactor(", 1 },
    { "layer_norm_lanes.tk", "rfactor(", 1 },
    { "softmax.tk", "rfactor(", 1 },
    { "two_products.tk", "software_pipeline(", 2 },
};

static void check_parts(const char *name, const char *text)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_target target;
    tl_program *naive;
    tl_descriptor descriptor;
    if (tl_program_parse(arena, text, name, &naive, &diag) != TL_OK ||
        tl_target_named("cuda,sm_80", &target, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_schedule *s = tl_schedule_create(arena, naive, &target, false);
    if (tl_schedule_default(s, &diag) != TL_OK ||
        tl_codegen_describe(arena, tl_schedule_program(s), false, &target, &descriptor, &diag) !=
            TL_OK)
        fail_msg("%s: %s", name, diag.text);
    const char *trace = tl_trace_text(arena, tl_schedule_trace(s));
    for (size_t i = 0; i < sizeof made_of / sizeof made_of[0]; i++)
        if (strcmp(made_of[i].program, name) == 0 &&
            (strstr(trace, made_of[i].step) == NULL ||
             descriptor.phase_count != made_of[i].launches))
            fail_msg("%s: %d launches, not %d, or no %s in\n%s", name, descriptor.phase_count,
                     made_of[i].launches, made_of[i].step, trace);
    tl_arena_destroy(arena);
}

/* One launch, both products by tensor cores. */
static void attention_is_one_launch(void **state)
{
    (void)state;
    for (int i = 0; i < ATTENTIONS; i++) {
        tl_arena *arena = tl_arena_create(0);
        tl_diag diag = { 0 };
        tl_target target;
        tl_program *naive;
        tl_descriptor descriptor;
        const char *name = attentions[i].name;
        const tl_program *program =
            schedule(arena, name, attention_text(arena, i), "cuda,sm_80", &naive, &target);
        if (tl_codegen_describe(arena, program, false, &target, &descriptor, &diag) != TL_OK)
            fail_msg("%s: %s", name, diag.text);
        const char *text = tl_program_text(arena, program);
        int products = 0;
        for (const char *at = text; (at = strstr(at, "call mma_m16n8k16_")) != NULL; at++)
            products++;
        if (descriptor.phase_count != 1 || products < 2)
            fail_msg("%s: %d launches, %d products in\n%s", name, descriptor.phase_count, products,
                     text);
        tl_arena_destroy(arena);
    }
}

/* Of rows on many axes a block has what it needs of its own, not of all. */
static void long_rows_take_little_memory(void **state)
{
    (void)state;
    static const char text[] =
        "kernel softmax(x: f32[16, 8, 1024, 1024], out y: f32[16, 8, 1024, 1024])\n"
        "  most: m[a, b, i] = max(x[a, b, i, k])\n"
        "  power: p[a, b, i, k] = exp(x[a, b, i, k] - m[a, b, i])\n"
        "  total: l[a, b, i] = sum(p[a, b, i, k])\n"
        "  y: y[a, b, i, k] = p[a, b, i, k]/l[a, b, i]\n";
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_target target;
    tl_program *naive;
    tl_descriptor descriptor;
    const tl_program *program = schedule(arena, "softmax", text, "cuda,sm_80", &naive, &target);
    if (tl_codegen_describe(arena, program, false, &target, &descriptor, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(descriptor.phase_count, 1);
    assert_in_range(descriptor.launches[0].shared_bytes, 4096, 8192);
    tl_arena_destroy(arena);
}

static void default_schedules_are_made_of(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof made_of / sizeof made_of[0]; i++)
        sketch_programs_visit(made_of[i].program, check_parts);
}

/* ---- what ptxas says ---- */

static const char *arch;

static void assemble_program(const char *name, const char *text)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_target target;
    tl_program *naive;
    tl_text ptx = { 0 };
    tl_descriptor descriptor;
    const tl_ptx_use *uses;
    int count;
    const tl_program *program =
        schedule(arena, name, text, tl_arena_format(arena, "cuda,%s", arch), &naive, &target);
    if (tl_codegen_compile(arena, program, false, &target, TL_EMIT_OBJECT, &ptx, &descriptor,
                           &diag) != TL_OK ||
        tl_ptxas_run(arena, tl_text_get(&ptx), arch, NULL, &uses, &count, &diag) != TL_OK)
        fail_msg("%s for %s: %s", name, arch, diag.text);
    /* what a call of a division's slow path saves counts as spilled, too: with few registers that is all it can be */
    for (int i = 0; i < count; i++)
        if (uses[i].spill_bytes > 0 && uses[i].registers > FEW_REGISTERS)
            fail_msg("%s for %s: %s spills %lld bytes, with %d registers", name, arch,
                     uses[i].kernel, (long long)uses[i].spill_bytes, uses[i].registers);
    tl_text_free(&ptx);
    tl_arena_destroy(arena);
}

static void default_schedules_assemble(void **state)
{
    (void)state;
    gpu_need_ptxas();
    arch = "sm_80";
    sketch_programs_visit(getenv("TL_ONLY"), assemble_program);
    for (int i = 0; i < ATTENTIONS; i++) {
        tl_arena *arena = tl_arena_create(0);
        assemble_program(attentions[i].name, attention_text(arena, i));
        tl_arena_destroy(arena);
    }
    arch = "sm_90a";
    sketch_programs_visit("gemm", assemble_program);
}

int main(void)
{
    tl_codegen_own_process();
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_schedules_are_made_of),
        cmocka_unit_test(attention_is_one_launch),
        cmocka_unit_test(long_rows_take_little_memory),
        cmocka_unit_test(attention_runs_emulated),
        cmocka_unit_test(large_tiles_run_emulated),
        cmocka_unit_test(nothing_to_do_runs_emulated),
        cmocka_unit_test(default_schedules_run_emulated),
        cmocka_unit_test(default_schedules_assemble),
    };
    return cmocka_run_group_tests_name("gpu default", tests, NULL, NULL);
}
