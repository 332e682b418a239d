/* tests/codegen/test_gpu_group.c: what Hopper (sm_90a) adds: products of a warpgroup. Kernels under traces compute, emulated,
 * what the interpreter computes for the naive kernel; what becomes of them passes ptxas where there is one; and what is wrong
 * is refused, or noticed by the emulator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "codegen/lower/lower_program.h"
#include "ir/interpret/interpret.h"
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "tests/codegen/cubin.h"
#include "tests/codegen/emulated.h"
#include "tests/codegen/gpu_kernels.h"

/* ---- running ---- */

/* Small whole numbers: what is multiplied and added up is exact in all dtypes, tf32 as well. */
static void fill(const tl_program *program, void **data, tl_arena *arena)
{
    tl_random random = tl_random_make(1);
    for (int p = 0; p < program->param_count; p++) {
        const tl_buffer *b = program->params[p];
        int64_t count = tl_buffer_max_elements(b);
        data[p] = tl_arena_alloc(arena, (size_t)tl_buffer_max_bytes(b) + 64, 64);
        for (int64_t i = 0; i < count; i++) {
            int64_t value = tl_random_below(&random, 8);
            tl_number number = { .i = value };
            if (tl_dtype_is_float(b->dtype))
                number.f = (double)value;
            tl_number_store(b->dtype, data[p], (size_t)i, number);
        }
    }
}

static tl_status run(tl_arena *arena, const tl_program *naive, const tl_program *program,
                     const tl_target *target, tl_diag *diag)
{
    emulated device;
    void *got[8], *want[8];
    tl_argument arguments[8];
    fill(naive, got, arena);
    fill(naive, want, arena);
    TL_TRY(emulated_open(&device, diag));
    tl_status status = emulated_run(&device, arena, program, target, got, NULL, diag);
    emulated_close(&device);
    TL_TRY(status);
    for (int p = 0; p < naive->param_count; p++)
        arguments[p] = (tl_argument){ naive->params[p], want[p] };
    tl_interpret_options options = { .check = false };
    TL_TRY(tl_interpret(naive, arguments, naive->param_count, NULL, &options, diag));
    for (int p = 0; p < naive->param_count; p++)
        if (memcmp(got[p], want[p], (size_t)tl_buffer_max_bytes(naive->params[p])) != 0)
            return tl_fail(diag, TL_BAD_IR, "%s is something else", naive->params[p]->name);
    return TL_OK;
}

static void see_lowered(void *context, int number, const tl_lower_pass *pass,
                        const tl_lowered_kernel *kernel)
{
    (void)number;
    (void)context;
    tl_diag diag = { "" };
    if (tl_verify_lowered(kernel, pass->holds, &diag) != TL_OK)
        fail_msg("after %s: %s\n%s", pass->name, diag.text, tl_lowered_text(kernel));
}

/* The invariants of lowering hold after every pass. */
static void check_lowering(tl_arena *arena, const tl_program *program, const tl_target *target)
{
    tl_diag diag = { "" };
    tl_lower_observer observer = { see_lowered, NULL };
    tl_lowered_kernel kernel = { .arena = arena,
                                 .program = program,
                                 .name = program->name,
                                 .target = target,
                                 .body = program->body };
    if (tl_lower(&kernel, &observer, &diag) != TL_OK)
        fail_msg("%s", diag.text);
}

/* The kernel under the trace is right, and takes ptxas, which finds no spill and nothing to put in order; else fails the
 * test, or, when `sentence` is told, says that. */
static void check(const char *kernel, const char *trace, const char *cpu, const char *sentence)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { "" };
    tl_target target;
    tl_program *naive;
    const tl_program *program = NULL;
    tl_status status = tl_program_parse(arena, kernel, "kernel", &naive, &diag);
    if (status == TL_OK)
        status = gpu_target(cpu, &target, &diag);
    if (status == TL_OK)
        status = gpu_schedule(arena, kernel, trace, &target, &program, &diag);
    if (status == TL_OK)
        status = run(arena, naive, program, &target, &diag);
    if (sentence == NULL && status != TL_OK)
        fail_msg("%s\n%s%s", diag.text, kernel, trace);
    if (sentence != NULL && (status == TL_OK || strstr(diag.text, sentence) == NULL))
        fail_msg("expected: %s\nfound: %s", sentence, diag.text);
    if (sentence == NULL) {
        check_lowering(arena, program, &target);
        (void)gpu_ptx(arena, kernel, trace, cpu);
    }
    tl_arena_destroy(arena);
}

/* ---- products ---- */

/* Of 64 rows and one block of n columns, two steps of k of one row of 128 bytes each. */
typedef struct {
    const char *a, *c, *b; /* dtypes */
    int n, k;              /* of the intrinsic */
    bool is_nk;
    const char *intrinsic;
} product;

static const char *kernel_of(tl_arena *arena, const product *p)
{
    int k = 128 / (p->k == 8 ? 4 : p->k == 16 ? 2 : 1) * 2;
    bool is_float = strcmp(p->c, "f32") == 0;
    const char *b = p->is_nk ? "j, k" : "k, j";
    return tl_arena_format(arena,
                           "%skernel gemm(A: %s[64, %d], B: %s[%d, %d], out C: %s[64, %d])\n"
                           "  gemm: C[i, j] = sum(%s(A[i, k])*%s(B[%s]))\n",
                           p->k == 8 ? "tf32 " : "", p->a, k, p->b, p->is_nk ? p->n : k,
                           p->is_nk ? k : p->n, p->c, p->n, is_float ? "f32" : "i32",
                           is_float ? "f32" : "i32", b);
}

static const char trace_start[] = "out = cache_write(gemm, warpgroup)\n"
                                  "i, j = loops(out)\n"
                                  "i0, i1 = split(i, [_, 64])\n"
                                  "compute_at(gemm, i0)\n"
                                  "_, gi, gj, k = loops(gemm)\n"
                                  "k0, k1, k2 = split(k, [_, 4, %d])\n"
                                  "reorder(k0, k1, gi, gj, k2)\n"
                                  "zero = decompose_reduction(gemm, k0)\n"
                                  "a = cache_read(gemm, A, %s)\n"
                                  "b = cache_read(gemm, B, shared)\n"
                                  "compute_at(a, k0)\n"
                                  "compute_at(b, k0)\n";
static const char trace_rest[] = "_, zi, zj = loops(zero)\n"
                                 "zi0, zi1, zi2 = split(zi, [_, 2, 8])\n"
                                 "zj0, zj1, zj2 = split(zj, [_, 4, 2])\n"
                                 "reorder(zi1, zj0, zi0, zi2, zj1, zj2)\n"
                                 "unroll(zi1)\n"
                                 "unroll(zj0)\n"
                                 "bind(fuse(fuse(zi0, zi2), zj1), threadIdx.x)\n"
                                 "vectorize(zj2)\n"
                                 "ci0, ci1, ci2 = split(i1, [_, 2, 8])\n"
                                 "cj0, cj1, cj2 = split(j, [_, 4, 2])\n"
                                 "reorder(ci1, cj0, ci0, ci2, cj1, cj2)\n"
                                 "unroll(ci1)\n"
                                 "unroll(cj0)\n"
                                 "bind(fuse(fuse(ci0, ci2), cj1), threadIdx.x)\n"
                                 "vectorize(cj2)\n"
                                 "place_barriers()\n";

static const char *copy_to_shared(tl_arena *arena, const char *block, int loops)
{
    return tl_arena_format(arena,
                           "%s, %s_i, %s_k = loops(%s)\n"
                           "%s_0, %s_1 = split(fuse(%s_i, %s_k), [_, 128])\n"
                           "bind(%s_1, threadIdx.x)\n",
                           loops == 2 ? "_, _" : "_", block, block, block, block, block, block,
                           block, block);
}

static const char *trace_of(tl_arena *arena, const product *p, int swizzle, bool held)
{
    int size = p->k == 8 ? 4 : p->k == 16 ? 2 : 1;
    const char *start = tl_arena_format(arena, trace_start, p->k, held ? "warpgroup" : "shared");
    int row = swizzle / size, b_row = p->n < row ? p->n : row;
    const char *layout =
        p->is_nk
            ? ""
            : tl_arena_format(arena, "transform_layout(B_local, (k, j) -> (j//%d, k, j%%%d))\n",
                              b_row, b_row);
    if (p->is_nk && swizzle < 128)
        layout = tl_arena_format(arena, "transform_layout(B_local, (j, k) -> (k//%d, j, k%%%d))\n",
                                 row, row);
    const char *a = held ? "_, _, ai, ak = loops(a)\n"
                           "ai0, ai1, ai2 = split(ai, [_, 2, 8])\n"
                           "ak0, ak1, ak2 = split(ak, [_, 4, 2])\n"
                           "reorder(ai1, ak0, ai0, ai2, ak1, ak2)\n"
                           "unroll(ai1)\n"
                           "unroll(ak0)\n"
                           "bind(fuse(fuse(ai0, ai2), ak1), threadIdx.x)\n"
                           "vectorize(ak2)\n"
                         : tl_arena_format(arena, "swizzle(A_local, %d)\n%s", swizzle,
                                           copy_to_shared(arena, "a", 2));
    if (!held && swizzle < 128)
        a = tl_arena_format(arena, "transform_layout(A_local, (i, k) -> (k//%d, i, k%%%d))\n%s",
                            row, row, a);
    return tl_arena_format(arena, "%s%s%s%sswizzle(B_local, %d)\ntensorize(gi, %s)\nunroll(k1)\n%s",
                           start, layout, a, copy_to_shared(arena, "b", 2),
                           p->is_nk || p->n >= row ? swizzle : p->n * size, p->intrinsic,
                           trace_rest);
}

static void products_are_right(void **state)
{
    (void)state;
    static const product products[] = {
        { "bf16", "f32", "bf16", 128, 16, false, "wgmma_m64n128k16_bf16" },
        { "bf16", "f32", "bf16", 256, 16, true, "wgmma_m64n256k16_bf16_nk" },
        { "bf16", "f32", "bf16", 16, 16, false, "wgmma_m64n16k16_bf16" },
        { "bf16", "f32", "bf16", 192, 16, false, "wgmma_m64n192k16_bf16" },
        { "f16", "f32", "f16", 96, 16, true, "wgmma_m64n96k16_f16_nk" },
        { "f16", "f32", "f16", 64, 16, false, "wgmma_m64n64k16_f16" },
        { "f32", "f32", "f32", 64, 8, true, "wgmma_m64n64k8_tf32_nk" },
        { "i8", "i32", "i8", 32, 32, true, "wgmma_m64n32k32_i8_nk" },
        { "u8", "i32", "u8", 8, 32, true, "wgmma_m64n8k32_u8_nk" },
    };
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        tl_arena *arena = tl_arena_create(0);
        const product *p = &products[i];
        for (int swizzle = 32; swizzle <= 128; swizzle *= 2)
            check(kernel_of(arena, p), trace_of(arena, p, swizzle, false), "sm_90a", NULL);
        if (p->k == 16)
            check(kernel_of(arena, p), trace_of(arena, p, 128, true), "sm_90a", NULL);
        tl_arena_destroy(arena);
    }
}

/* What does not fit is said. */
static void products_are_refused(void **state)
{
    (void)state;
    static const product p = { "bf16", "f32", "bf16", 128, 16, false, "wgmma_m64n128k16_bf16" };
    static const struct {
        const char *cpu, *from, *to, *sentence;
    } cases[] = {
        { "sm_90", "unroll(k1)", "unroll(k1)", "it takes sm_90a" },
        { "sm_80", "unroll(k1)", "unroll(k1)", "it takes sm_90a" },
        { "sm_90a", "swizzle(A_local, 128)\n", "", "A_local, and it is not swizzled" },
        { "sm_90a", "swizzle(B_local, 128)\n", "swizzle(B_local, 64)\n",
          "its rows are not as long as its swizzle" },
        { "sm_90a", "cache_write(gemm, warpgroup)", "cache_write(gemm, shared)",
          "is in scope shared" },
        { "sm_90a", "wgmma_m64n128k16_bf16)", "wgmma_m64n96k16_bf16)",
          "axis n with 128 iterations, and that has 96" },
        { "sm_90a", "cache_read(gemm, B, shared)", "cache_read(gemm, B, global)",
          "only shared memory has" },
        { "sm_90a", "split(k, [_, 4, 16])", "split(k, [_, 4, 8])", "and that has 16" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tl_arena *arena = tl_arena_create(0);
        const char *trace = trace_of(arena, &p, 128, false), *at = strstr(trace, cases[i].from);
        assert_non_null(at);
        trace = tl_arena_format(arena, "%.*s%s%s", (int)(at - trace), trace, cases[i].to,
                                at + strlen(cases[i].from));
        check(kernel_of(arena, &p), trace, cases[i].cpu, cases[i].sentence);
        tl_arena_destroy(arena);
    }
}

/* ---- copies of boxes, pipelines of them, rows of threads that copy, clusters ---- */

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

static void check_file(const char *name, const char *from, const char *to, const char *cpu,
                       const char *sentence)
{
    tl_arena *arena = tl_arena_create(0);
    const char *kernel = read_kernel(arena, name, "tk"), *trace = read_kernel(arena, name, "tr");
    const char *at = from != NULL ? strstr(trace, from) : trace;
    assert_non_null(at);
    if (from != NULL)
        trace = tl_arena_format(arena, "%.*s%s%s", (int)(at - trace), trace, to, at + strlen(from));
    check(kernel, trace, cpu, sentence);
    tl_arena_destroy(arena);
}

static void files_are_right(void **state)
{
    (void)state;
    check_file("gemm_bf16_group", NULL, NULL, "sm_90a", NULL);
    check_file("gemm_bf16_bulk", NULL, NULL, "sm_90a", NULL);
    check_file("gemm_bf16_hopper", NULL, NULL, "sm_90a", NULL);
    check_file("gemm_bf16_hopper", "annotate(i0, cluster, 2)", "", "sm_90a", NULL);
    check_file("gemm_bf16_hopper", "annotate(i0, cluster, 2)", "annotate(j0, cluster, 2)", "sm_90a",
               NULL);
    check_file("gemm_bf16_hopper", "specialize(k0, 40, 232)", "", "sm_90a", NULL);
    check_file("gemm_bf16_bulk", "software_pipeline(k0, 3)", "", "sm_90a", NULL);
}

/* What is in the code: products of a step of k, written out in the steady part and in the epilogue; copies, and waits. */
static void code_is_as_written(void **state)
{
    (void)state;
    static const struct {
        const char *kernel, *word;
        int count;
    } cases[] = {
        { "gemm_bf16_group", "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16", 8 },
        { "gemm_bf16_group", "fence.proxy.async.shared::cta", 3 },
        { "gemm_bf16_bulk", "cp.async.bulk.tensor.2d.shared::cluster", 4 },
        { "gemm_bf16_bulk", "mbarrier.arrive.expect_tx", 2 },
        { "gemm_bf16_bulk", "mbarrier.try_wait.parity", 2 },
        { "gemm_bf16_bulk", "bar.sync", 3 },
        { "gemm_bf16_hopper", "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", 8 },
        { "gemm_bf16_hopper", "wgmma.wait_group.sync.aligned 1", 2 },
        { "gemm_bf16_hopper", "wgmma.wait_group.sync.aligned 0", 1 },
        { "gemm_bf16_hopper", ".multicast::cluster", 8 },
        { "gemm_bf16_hopper", "cp.async.bulk.tensor.2d.shared::cluster", 12 },
        { "gemm_bf16_hopper", "setmaxnreg.inc.sync.aligned.u32 232", 1 },
        { "gemm_bf16_hopper", "setmaxnreg.dec.sync.aligned.u32 40", 1 },
        { "gemm_bf16_hopper", "mbarrier.arrive.shared::cluster", 2 },
        { "gemm_bf16_hopper", "barrier.cluster.wait", 2 },
        { "gemm_bf16_hopper", "bar.sync", 0 },
        { "gemm_bf16_hopper", ".minnctapersm 1", 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tl_arena *arena = tl_arena_create(0);
        const char *kernel = read_kernel(arena, cases[i].kernel, "tk");
        const char *trace = read_kernel(arena, cases[i].kernel, "tr");
        const char *ptx = gpu_text(arena, kernel, trace, "sm_90a", TL_EMIT_OBJECT);
        const char *end = strstr(ptx, "\n//ir "); /* TILTH_PTX_WITH_IR */
        int count = 0;
        for (const char *at = ptx; (at = strstr(at, cases[i].word)) != NULL; at++)
            count += end == NULL || at < end;
        if (count != cases[i].count)
            fail_msg("%s: %s %d times, not %d", cases[i].kernel, cases[i].word, count,
                     cases[i].count);
        tl_arena_destroy(arena);
    }
}

/* ptxas puts no product in order after another, and no thread has a stack. */
static void assembler_is_content(void **state)
{
    (void)state;
    static const char *const names[] = { "gemm_bf16_group", "gemm_bf16_bulk", "gemm_bf16_hopper" };
    gpu_need_ptxas();
    tl_arena *arena = tl_arena_create(0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *ptx = gpu_ptx(arena, read_kernel(arena, names[i], "tk"),
                                  read_kernel(arena, names[i], "tr"), "sm_90a");
        tl_text cubin = { 0 };
        tl_diag diag = { "" };
        const tl_ptx_use *uses = NULL;
        int count = 0, counts[CUBIN_KINDS];
        if (tl_ptxas_run(arena, ptx, "sm_90a", &cubin, &uses, &count, &diag) != TL_OK)
            fail_msg("%s", diag.text);
        assert_int_equal(count, 1);
        assert_int_equal(uses[0].stack_bytes, 0);
        assert_true(cubin_count(cubin.data, cubin.size, counts));
        assert_int_equal(counts[CUBIN_HGMMA], 8);
        assert_int_equal(counts[CUBIN_LDSM] + counts[CUBIN_LDL] + counts[CUBIN_STL], 0);
        tl_text_free(&cubin);
    }
    tl_arena_destroy(arena);
}

/* Boxes in and out that stick out of the buffers: 70 by 90 in tiles of 16 by 32. */
static const char edges[] = "kernel edges(A: f32[70, 92], out C: f32[70, 92])\n"
                            "  scale: C[i, j] = A[i, j]*2.0 + 1.0\n";
static const char edges_trace[] = "out = cache_write(scale, shared)\n"
                                  "a = cache_read(scale, A, shared)\n"
                                  "i, j = loops(out)\n"
                                  "i0, j0, i1, j1 = tile(i, j, [16, 32])\n"
                                  "compute_at(scale, j0)\n"
                                  "compute_at(a, j0)\n"
                                  "_, _, ai, aj = loops(a)\n"
                                  "bulk_copy(ai)\n"
                                  "bulk_copy(i1)\n"
                                  "_, _, si, sj = loops(scale)\n"
                                  "bind(si, threadIdx.y)\n"
                                  "bind(sj, threadIdx.x)\n"
                                  "bind(i0, blockIdx.y)\n"
                                  "bind(j0, blockIdx.x)\n"
                                  "place_barriers()\n";

static void edges_are_zeroes(void **state)
{
    (void)state;
    check(edges, edges_trace, "sm_90a", NULL);
    check(edges, edges_trace, "sm_90", "it takes sm_90a");
    check(edges, edges_trace, "sm_80", "it takes sm_90a");
}

/* Boxes that begin anywhere along a row, which emulators could copy and hardware does not. */
static const char shifted[] = "kernel shift(A: f32[64, 64], out C: f32[64, 32])\n"
                              "  move: C[i, j] = A[i, j + 2]*2.0\n";
static const char shifted_trace[] = "a = cache_read(move, A, shared)\n"
                                    "i, j = loops(move)\n"
                                    "i0, i1 = split(i, [_, 16])\n"
                                    "compute_at(a, i0)\n"
                                    "_, ai, aj = loops(a)\n"
                                    "bulk_copy(ai)\n"
                                    "bind(i1, threadIdx.y)\n"
                                    "bind(j, threadIdx.x)\n"
                                    "bind(i0, blockIdx.x)\n"
                                    "place_barriers()\n";

static void boxes_begin_at_pieces(void **state)
{
    (void)state;
    check(shifted, shifted_trace, "sm_90a",
          "the box begins at element 2, which may be no multiple");
    tl_arena *arena = tl_arena_create(0);
    const char *at = strstr(shifted, "+ 2");
    check(tl_arena_format(arena, "%.*s+ 4%s", (int)(at - shifted), shifted, at + 3), shifted_trace,
          "sm_90a", NULL);
    tl_arena_destroy(arena);
}

/* One row that computes, without a loop over y: shared memory is allocated where only the fragments are around. */
static const char one_row[] =
    "kernel rows(A: bf16[128, 256], B: bf16[64, 256], out C: f32[128, 64])\n"
    "  gemm: C[i, j] = sum(f32(A[i, k])*f32(B[j, k]))\n";
static const char one_row_trace[] = "out = cache_write(gemm, warpgroup)\n"
                                    "i, j = loops(out)\n"
                                    "i0, i1 = split(i, [2, 64])\n"
                                    "compute_at(gemm, i0)\n"
                                    "_, gi, gj, k = loops(gemm)\n"
                                    "k0, k1, k2 = split(k, [_, 4, 16])\n"
                                    "reorder(k0, k1, gi, gj, k2)\n"
                                    "zero = decompose_reduction(gemm, k0)\n"
                                    "a = cache_read(gemm, A, shared)\n"
                                    "b = cache_read(gemm, B, shared)\n"
                                    "compute_at(a, k0)\n"
                                    "compute_at(b, k0)\n"
                                    "swizzle(A_local, 128)\n"
                                    "swizzle(B_local, 128)\n"
                                    "tensorize(gi, wgmma_m64n64k16_bf16_nk)\n"
                                    "unroll(k1)\n"
                                    "_, _, ai, ak = loops(a)\n"
                                    "bulk_copy(ai)\n"
                                    "_, _, bj, bk = loops(b)\n"
                                    "bulk_copy(bj)\n"
                                    "_, zi, zj = loops(zero)\n"
                                    "zi0, zi1, zi2 = split(zi, [_, 2, 8])\n"
                                    "zj0, zj1, zj2 = split(zj, [_, 4, 2])\n"
                                    "reorder(zi1, zj0, zi0, zi2, zj1, zj2)\n"
                                    "unroll(zi1)\n"
                                    "unroll(zj0)\n"
                                    "bind(fuse(fuse(zi0, zi2), zj1), threadIdx.x)\n"
                                    "vectorize(zj2)\n"
                                    "ci0, ci1, ci2 = split(i1, [_, 2, 8])\n"
                                    "cj0, cj1, cj2 = split(j, [_, 4, 2])\n"
                                    "reorder(ci1, cj0, ci0, ci2, cj1, cj2)\n"
                                    "unroll(ci1)\n"
                                    "unroll(cj0)\n"
                                    "bind(fuse(fuse(ci0, ci2), cj1), threadIdx.x)\n"
                                    "vectorize(cj2)\n"
                                    "software_pipeline(k0, 3)\n"
                                    "specialize(k0, 40, 232)\n"
                                    "bind(i0, blockIdx.x)\n"
                                    "annotate(i0, cluster, 2)\n"
                                    "place_barriers()\n";

static void one_row_computes(void **state)
{
    (void)state;
    check(one_row, one_row_trace, "sm_90a", NULL);
}

/* What does not fit is said. */
static void copies_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *from, *to, *sentence;
    } cases[] = {
        { "gemm_bf16_hopper", "annotate(i0, cluster, 2)", "annotate(i0, cluster, 3)",
          "divide the loop's constant extent" },
        { "gemm_bf16_hopper", "specialize(k0, 40, 232)", "specialize(k0, 41, 232)",
          "41 registers are no multiple of 8" },
        { "gemm_bf16_hopper", "specialize(k0, 40, 232)", "specialize(k1, 40, 232)",
          "it is no pipeline" },
        { "gemm_bf16_group", "software_pipeline(k0, 3)",
          "software_pipeline(k0, 3)\nspecialize(k0, 40, 232)", "threads make the copy A_local" },
        { "gemm_bf16_bulk", "bulk_copy(ai)", "bind(ai, threadIdx.x)\nbulk_copy(ai)",
          "bulk_copy before loops get a kind" },
        { "gemm_bf16_bulk", "swizzle(A_local, 128)", "swizzle(A_local, 64)",
          "longer than the swizzle" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_file(cases[i].name, cases[i].from, cases[i].to, "sm_90a", cases[i].sentence);
}

int main(void)
{
    tl_codegen_own_process();
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_right),    cmocka_unit_test(products_are_refused),
        cmocka_unit_test(files_are_right),       cmocka_unit_test(code_is_as_written),
        cmocka_unit_test(assembler_is_content),  cmocka_unit_test(edges_are_zeroes),
        cmocka_unit_test(boxes_begin_at_pieces), cmocka_unit_test(one_row_computes),
        cmocka_unit_test(copies_are_refused),
    };
    return cmocka_run_group_tests_name("gpu group", tests, NULL, NULL);
}
