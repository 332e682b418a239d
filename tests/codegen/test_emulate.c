/* tests/codegen/test_emulate.c: the emulator of a GPU computes what a GPU does, and notices what a GPU would only do by
 * chance: modules of gpu_modules/, each right as it stands and wrong with one line of it changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/emulate/emulate.h"
#include "runtime/base/file.h"
#include "tests/codegen/compiled.h"

static uint16_t bf16(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return (uint16_t)(u >> 16);
}

/* Small numbers that every format has exactly, and whose sums are exact in f32. */
static float small(int64_t i, int64_t seed)
{
    return (float)((i * 7919 + seed * 104729) % 17 - 8) / 8;
}

/* The text with the first `from` replaced by `to`; NULL: as it is. The caller frees it. */
static char *changed(const char *text, const char *from, const char *to)
{
    const char *at = from != NULL ? strstr(text, from) : text;
    assert_non_null(at);
    size_t gone = from != NULL ? strlen(from) : 0, added = from != NULL ? strlen(to) : 0;
    char *out = malloc(strlen(text) - gone + added + 1);
    memcpy(out, text, (size_t)(at - text));
    if (added > 0)
        memcpy(out + (at - text), to, added);
    strcpy(out + (at - text) + added, at + gone);
    return out;
}

static tl_emulated *load_text(const char *text)
{
    tl_target host;
    tl_diag diag = { 0 };
    tl_emulated *module = NULL;
    assert_int_equal(compiled_target(NULL, &host, &diag), TL_OK);
    if (tl_emulated_load(&host, text, strlen(text), &module, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    return module;
}

static tl_emulated *load_module(const char *name, const char *from, const char *to)
{
    char path[256];
    tl_text file = { 0 };
    tl_diag diag = { 0 };
    snprintf(path, sizeof path, "tests/codegen/gpu_modules/%s.ll", name);
    if (tl_file_read(path, &file, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    char *text = changed(tl_text_get(&file), from, to);
    tl_emulated *module = load_text(text);
    free(text);
    tl_text_free(&file);
    return module;
}

/* A run that is right, or fails with `sentence` in its report. */
static void expect(tl_status status, const tl_diag *diag, const char *sentence)
{
    if (sentence == NULL && status != TL_OK)
        fail_msg("%s", diag->text);
    if (sentence == NULL)
        return;
    if (status == TL_OK)
        fail_msg("nobody noticed; expected: %s", sentence);
    if (strstr(diag->text, sentence) == NULL)
        fail_msg("expected: %s\nfound: %s", sentence, diag->text);
}

/* ---- products ---- */

typedef struct {
    const char *module;
    int m, n, k, tile_m, tile_n, block[2];
    int64_t shared;
    enum { PLAIN, BF16, BF16_MAPS } kind;
    const char *from, *to, *sentence; /* of a mutant */
} product;

static void run_product(const product *p)
{
    tl_emulated *module = load_module(p->module, p->from, p->to);
    int m = p->m, n = p->n, k = p->k;
    size_t size = p->kind == PLAIN ? sizeof(float) : sizeof(uint16_t);
    size_t a_bytes = (size_t)(m * k) * size, b_bytes = (size_t)(n * k) * size,
           c_bytes = (size_t)(m * n) * sizeof(float);
    char *a = aligned_alloc(256, (a_bytes + 255) / 256 * 256),
         *b = aligned_alloc(256, (b_bytes + 255) / 256 * 256);
    float *c = aligned_alloc(256, (c_bytes + 255) / 256 * 256);
    bool by_columns = p->kind == BF16_MAPS; /* B lies as [N][K] */
    for (int i = 0; i < m * k; i++) {
        float x = small(i, 1);
        uint16_t h = bf16(x);
        memcpy(a + (size_t)i * size, p->kind == PLAIN ? (void *)&x : (void *)&h, size);
    }
    for (int r = 0; r < k; r++)
        for (int j = 0; j < n; j++) {
            float x = small(r * n + j, 2);
            uint16_t h = bf16(x);
            memcpy(b + (size_t)(by_columns ? j * k + r : r * n + j) * size,
                   p->kind == PLAIN ? (void *)&x : (void *)&h, size);
        }
    memset(c, 0xff, c_bytes);
    tl_emulated_map map_a = {
        TL_TENSOR_MAP_MAGIC, 2,         2, 128, 0, a, { (uint64_t)k, (uint64_t)m },
        { (uint64_t)k * 2 }, { 64, 64 }
    };
    tl_emulated_map map_b = {
        TL_TENSOR_MAP_MAGIC, 2,         2, 128, 0, b, { (uint64_t)k, (uint64_t)n },
        { (uint64_t)k * 2 }, { 64, 16 }
    };
    char maps[2][128] = { { 0 } };
    memcpy(maps[0], &map_a, sizeof map_a);
    memcpy(maps[1], &map_b, sizeof map_b);
    void *by_pointer[] = { &a, &b, &c, &n, &k }, *by_map[] = { maps[0], maps[1], &c, &n, &k };
    tl_emulated_buffer buffers[] = { { a, (int64_t)a_bytes, false },
                                     { b, (int64_t)b_bytes, false },
                                     { c, (int64_t)c_bytes, true } };
    tl_emulated_launch launch = { .grid = { (n + p->tile_n - 1) / p->tile_n,
                                            (m + p->tile_m - 1) / p->tile_m, 1 },
                                  .block = { p->block[0], p->block[1], 1 },
                                  .shared_bytes = p->shared,
                                  .arguments = by_columns ? by_map : by_pointer,
                                  .argument_count = 5,
                                  .buffers = buffers,
                                  .buffer_count = 3,
                                  .cpu_threads = 2 };
    tl_diag diag = { 0 };
    tl_status status = tl_emulated_run(module, tl_emulated_find(module, "gemm"), &launch, &diag);
    expect(status, &diag, p->sentence);
    for (int i = 0; i < m && status == TL_OK; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int r = 0; r < k; r++)
                sum += small(i * k + r, 1) * small(r * n + j, 2);
            assert_true(c[i * n + j] == sum);
        }
    free(a);
    free(b);
    free(c);
    tl_emulated_unload(module);
}

#define SIMT  "gemm_simt", 64, 96, 96, 32, 32, { 16, 16 }, 0, PLAIN
#define MMA   "gemm_bf16", 16, 8, 112, 16, 8, { 32, 1 }, 3 * 768, BF16
#define WGMMA "gemm_wgmma", 128, 32, 320, 64, 16, { 256, 1 }, 20512, BF16_MAPS

static void products_are_right(void **state)
{
    (void)state;
    static const product products[] = { { SIMT, NULL, NULL, NULL },
                                        { MMA, NULL, NULL, NULL },
                                        { WGMMA, NULL, NULL, NULL } };
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
        run_product(&products[i]);
}

static void mutants_are_noticed(void **state)
{
    (void)state;
    static const product products[] = {
        { SIMT, "call void @llvm.nvvm.barrier0()                               ; the first",
          "; the first", "without a barrier between" },
        { SIMT, "call void @llvm.nvvm.barrier0()                               ; these", "; these",
          "read without a barrier between" },
        { SIMT, "%other = xor i32 %buf, 1", "%other = xor i32 %buf, 0",
          "without a barrier between" },
        { SIMT, "%tx2 = shl i32 %tx, 1", "%tx2 = shl i32 %tx, 0", "is not aligned to 8" },
        { SIMT, "%col0 = shl i32 %bx, 5", "%col0 = shl i32 %bx, 7", "in no buffer" },
        { SIMT, "[32 x [32 x float]]] undef, align 16\n@Bs",
          "[32 x [16 x float]]] undef, align 16\n@Bs", "without a barrier between" },
        { MMA, "wait.group(i32 1)\n  call", "wait.group(i32 2)\n  call",
          "by a copy that nobody has waited for" },
        { MMA, "  call void @llvm.nvvm.bar.warp.sync(i32 -1)\n", "", "without a barrier between" },
        { MMA, "urem i32 %i, 3", "urem i32 %i, 2", "read without a barrier between" },
        { MMA, "%la = add i32 %ra, %ha", "%la = add i32 %ra, 8", "is not aligned to 16" },
        { MMA, "br i1 %low, label %b", "br i1 %in, label %b", "still writes by a copy" },
        { WGMMA, "call void @llvm.nvvm.barrier0()", "",
          "which another thread made without a barrier" },
        { WGMMA, "call void @dev_wg_fence()", "", "no wgmma.fence" },
        { WGMMA, "call void @dev_wg_wait0()\n", "\n", "still reads asynchronously" },
        { WGMMA, "i32 10240)\n  %sa", "i32 10256)\n  %sa", "(0 arrivals, 16 bytes)" },
        { WGMMA, "i32 10240)\n  %sa", "i32 8192)\n  %sa", "by a copy that nobody has waited for" },
        { WGMMA, "call void @dev_mbar_arrive(ptr addrspace(3) %je)", "", "deadlock" },
        { WGMMA, "br i1 %leads, label %give, label %given", "br label %give", "deadlock" },
        { WGMMA, "i32 10240)\n  %sa",
          "i32 10240)\n  call void @dev_mbar_arrive(ptr addrspace(3) %f)\n  %sa",
          "where all 1 of this phase have arrived" },
        { WGMMA, "call void @wait(ptr addrspace(3) %ju, i32 %there)", "", "nobody has waited for" },
        { WGMMA, "%free0 = xor i32 %round, 1", "%free0 = xor i32 %round, 0", "deadlock" },
        { WGMMA, "call void @wait(ptr addrspace(3) %e, i32 %free)", "",
          "of this phase have arrived" },
        { WGMMA, "%sends = icmp ult i32 %t, 128", "%sends = icmp ult i32 %t, 96",
          "divergent: thread" },
        { WGMMA, "%at = mul i32 %s, 10240", "%at = mul i32 %s, 10368", "is not aligned to 1024" },
    };
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
        run_product(&products[i]);
}

/* ---- sums by shuffles ---- */

static void run_sum(int block, int n, int cpu_threads, const char *from, const char *to,
                    const char *sentence)
{
    enum { BLOCKS = 5 };
    tl_emulated *module = load_module("block_sum", from, to);
    float *x = malloc((size_t)(BLOCKS * n) * sizeof *x), y[BLOCKS], *px = x, *py = y;
    for (int i = 0; i < BLOCKS * n; i++)
        x[i] = small(i, 3);
    void *arguments[] = { &px, &py, &n };
    tl_emulated_buffer buffers[] = { { x, BLOCKS * n * (int64_t)sizeof *x, false },
                                     { y, sizeof y, true } };
    tl_emulated_launch launch = { .grid = { BLOCKS, 1, 1 },
                                  .block = { block, 1, 1 },
                                  .arguments = arguments,
                                  .argument_count = 3,
                                  .buffers = buffers,
                                  .buffer_count = 2,
                                  .cpu_threads = cpu_threads };
    tl_diag diag = { 0 };
    tl_status status = tl_emulated_run(module, 0, &launch, &diag);
    expect(status, &diag, sentence);
    for (int b = 0; b < BLOCKS && status == TL_OK; b++) {
        float sum = 0;
        for (int i = 0; i < n; i++)
            sum += x[b * n + i];
        assert_true(y[b] == sum);
    }
    free(x);
    tl_emulated_unload(module);
}

static void sums_are_right(void **state)
{
    (void)state;
    static const int blocks[] = { 32, 64, 256 }, sizes[] = { 1, 31, 257, 1000 };
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++)
            run_sum(blocks[i], sizes[k], 1 + k % 3, NULL, NULL, NULL);
    run_sum(64, 64, 2, "  call void @llvm.nvvm.barrier0()\n", "",
            "which thread (31, 0, 0) read without a barrier between");
    run_sum(64, 64, 2, "br i1 %leads, label %put, label %meet", "br label %put",
            "writes byte 0 of shared memory, which thread (31, 0, 0) wrote without");
}

/* ---- clusters ---- */

static void run_cluster(const char *from, const char *to, const char *sentence)
{
    tl_emulated *module = load_module("cluster", from, to);
    float x[64], y[128], *py = y;
    for (int i = 0; i < 64; i++)
        x[i] = small(i, 4);
    tl_emulated_map map = { TL_TENSOR_MAP_MAGIC, 1, 4, 0, 0, x, { 64 }, { 0 }, { 32 } };
    char bytes[128] = { 0 };
    memcpy(bytes, &map, sizeof map);
    void *arguments[] = { bytes, &py };
    tl_emulated_buffer buffers[] = { { x, sizeof x, false }, { y, sizeof y, true } };
    tl_emulated_launch launch = { .grid = { 2, 1, 1 },
                                  .block = { 64, 1, 1 },
                                  .cluster = { 2, 1, 1 },
                                  .arguments = arguments,
                                  .argument_count = 2,
                                  .buffers = buffers,
                                  .buffer_count = 2 };
    tl_diag diag = { 0 };
    tl_status status = tl_emulated_run(module, 0, &launch, &diag);
    expect(status, &diag, sentence);
    for (int i = 0; i < 128 && status == TL_OK; i++)
        assert_true(y[i] == x[i % 64] + (float)(i < 64 ? 101 : 100));
    tl_emulated_unload(module);
}

static void clusters_share(void **state)
{
    (void)state;
    run_cluster(NULL, NULL, NULL);
    run_cluster("i32 3)\n", "i32 7)\n", "blocks 0x7 of a cluster of 2");
    run_cluster("i32 3)\n", "i32 1)\n", "deadlock");
    run_cluster("%TX, i32 %half", "%TX, i32 2", "begins at element 2 of 4 bytes along a row");
    run_cluster("%TX, i32 %half", "%TX, i32 -1", "begins at element -1 of 4 bytes along a row");
    run_cluster("@bar, i32 256", "@bar, i32 128", "by a copy that nobody has waited for");
}

/* ---- small mistakes ---- */

static const char start[] =
    "target triple = \"nvptx64-nvidia-cuda\"\n"
    "@s = internal addrspace(3) global [64 x float] undef, align 16\n"
    "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
    "declare void @llvm.nvvm.barrier0()\n"
    "declare void @llvm.nvvm.barrier(i32, i32)\n"
    "declare void @dev_bar_arrive(i32, i32)\n"
    "declare void @llvm.nvvm.bar.warp.sync(i32)\n"
    "declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32)\n"
    "declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)\n"
    "declare i32 @llvm.nvvm.redux.sync.add(i32, i32)\n"
    "declare float @llvm.nvvm.ex2.approx.ftz.f(float)\n"
    "declare <2 x bfloat> @llvm.nvvm.ff2bf16x2.rn(float, float)\n"
    "define ptx_kernel void @k(ptr addrspace(1) %Y) {\n"
    "  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
    "  %p = getelementptr [64 x float], ptr addrspace(3) @s, i32 0, i32 %t\n"
    "  %y = getelementptr i32, ptr addrspace(1) %Y, i32 %t\n";

/* 64 threads run the body, which may end with %r to be stored in Y[t]. */
static tl_status run_body(const char *body, bool stores, int32_t y[64], tl_diag *diag)
{
    size_t size = sizeof start + strlen(body) + 100;
    char *text = malloc(size);
    snprintf(text, size, "%s%s%s  ret void\n}\n", start, body,
             stores ? "  store i32 %r, ptr addrspace(1) %y\n" : "");
    tl_emulated *module = load_text(text);
    void *arguments[] = { &y };
    tl_emulated_buffer buffer = { y, 64 * sizeof *y, true };
    tl_emulated_launch launch = { .grid = { 1, 1, 1 },
                                  .block = { 64, 1, 1 },
                                  .arguments = arguments,
                                  .argument_count = 1,
                                  .buffers = &buffer,
                                  .buffer_count = 1,
                                  .max_steps = 10000 };
    tl_status status = tl_emulated_run(module, 0, &launch, diag);
    free(text);
    tl_emulated_unload(module);
    return status;
}

static void mistakes_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *body, *sentence;
    } cases[] = {
        { "store float 1.0, ptr addrspace(3) @s\n",
          "thread (1, 0, 0): writes byte 0 of shared memory" },
        { "%q = getelementptr float, ptr addrspace(3) %p, i32 1\nstore float 1.0, ptr addrspace(3) "
          "%q\n",
          "thread (63, 0, 0): an access of 4 bytes at byte 256 leaves the 256" },
        { "%v = load <4 x float>, ptr addrspace(3) %p, align 16\n", "" },
        { "store <4 x i32> zeroinitializer, ptr addrspace(1) %y, align 16\n",
          "is not aligned to 16" },
        { "%q = getelementptr i32, ptr addrspace(1) %y, i32 1\nstore i32 1, ptr addrspace(1) %q\n",
          "thread (63, 0, 0): writes 4 bytes of global memory in no buffer; the nearest is buffer "
          "0 of 256 bytes, 0 bytes" },
        { "%q = getelementptr i32, ptr addrspace(1) %y, i32 -1\nstore i32 1, ptr addrspace(1) %q\n",
          "thread (0, 0, 0): writes 4 bytes of global memory in no buffer" },
        { "%c = icmp ult i32 %t, 40\nbr i1 %c, label %a, label %b\na:\ncall void "
          "@llvm.nvvm.barrier0()\nbr label %b\nb:\n",
          "deadlock: it waits for barrier 0, and 39 other threads wait" },
        { "call void @llvm.nvvm.barrier(i32 3, i32 96)\n", "cannot be for 96 threads" },
        { "call void @llvm.nvvm.barrier(i32 16, i32 64)\n", "no barrier 16" },
        { "%c = icmp ult i32 %t, 32\nbr i1 %c, label %a, label %b\na:\ncall void "
          "@llvm.nvvm.barrier(i32 1, i32 32)\n"
          "br label %d\nb:\ncall void @llvm.nvvm.barrier(i32 1, i32 64)\nbr label %d\nd:\n",
          "deadlock" },
        { "%v = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 1, i32 %t, i32 0, i32 31)\n",
          "does not have its own lane 1" },
        { "%c = icmp eq i32 %t, 3\nbr i1 %c, label %a, label %b\na:\n"
          "%v = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 true)\nbr label %d\nb:\n"
          "%w = call i32 @llvm.nvvm.redux.sync.add(i32 1, i32 -1)\nbr label %d\nd:\n",
          "divergent: thread" },
        { "%b = and i32 %t, 1\n%c = icmp eq i32 %b, 1\nbr i1 %c, label %a, label %d\na:\n"
          "%v = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1431655766, i32 %t, i32 0, i32 31)\nbr "
          "label %d\nd:\n",
          "reads lane 0, which is not in the mask" },
        { "br label %a\na:\n%v = load volatile i32, ptr addrspace(1) %y\nbr label %a\nb:\n",
          "has taken 10000 steps" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int32_t y[64] __attribute__((aligned(16))) = { 0 };
        tl_diag diag = { 0 };
        tl_status status = run_body(cases[i].body, false, y, &diag);
        expect(status, &diag,
               cases[i].sentence[0] == '\0' ? "is not aligned to 16" : cases[i].sentence);
    }
}

static void warps_and_barriers_work(void **state)
{
    (void)state;
    int32_t y[64];
    tl_diag diag = { 0 };
    expect(
        run_body(
            "%c = icmp ugt i32 %t, 4\n%r = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %c)\n",
            true, y, &diag),
        &diag, NULL);
    assert_int_equal((uint32_t)y[0], 0xffffffe0);
    assert_int_equal((uint32_t)y[63], 0xffffffff);
    expect(run_body("%r = call i32 @llvm.nvvm.redux.sync.add(i32 %t, i32 -1)\n", true, y, &diag),
           &diag, NULL);
    assert_int_equal(y[31], 31 * 16);
    assert_int_equal(y[32], 31 * 16 + 32 * 32);
    /* groups of eight lanes: the third of each */
    expect(run_body("%r = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %t, i32 2, i32 6175)\n",
                    true, y, &diag),
           &diag, NULL);
    for (int i = 0; i < 64; i++)
        assert_int_equal(y[i], i / 8 * 8 + 2);
    /* a neighbour's element by a barrier of the warp */
    expect(run_body("%f = uitofp i32 %t to float\nstore float %f, ptr addrspace(3) %p\n"
                    "call void @llvm.nvvm.bar.warp.sync(i32 -1)\n%x = xor i32 %t, 5\n"
                    "%q = getelementptr [64 x float], ptr addrspace(3) @s, i32 0, i32 %x\n"
                    "%v = load float, ptr addrspace(3) %q\n%r = fptoui float %v to i32\n",
                    true, y, &diag),
           &diag, NULL);
    assert_int_equal(y[40], 40 ^ 5);
    /* one warp hands over to the other by a named barrier */
    expect(
        run_body(
            "%f = uitofp i32 %t to float\n%c = icmp ult i32 %t, 32\nbr i1 %c, label %a, label %b\n"
            "a:\nstore float %f, ptr addrspace(3) %p\ncall void @dev_bar_arrive(i32 2, i32 64)\nbr "
            "label %d\n"
            "b:\ncall void @llvm.nvvm.barrier(i32 2, i32 64)\n%o = sub i32 %t, 32\n"
            "%q = getelementptr [64 x float], ptr addrspace(3) @s, i32 0, i32 %o\n"
            "%v = load float, ptr addrspace(3) %q\n%u = fptoui float %v to i32\nbr label %d\n"
            "d:\n%r = phi i32 [ 0, %a ], [ %u, %b ]\n",
            true, y, &diag),
        &diag, NULL);
    assert_int_equal(y[40], 8);
    /* a generic pointer into shared memory */
    expect(run_body("%g = addrspacecast ptr addrspace(3) %p to ptr\nstore i32 %t, ptr %g\n%r = "
                    "load i32, ptr %g\n",
                    true, y, &diag),
           &diag, NULL);
    assert_int_equal(y[17], 17);
    expect(run_body("%f = call float @llvm.nvvm.ex2.approx.ftz.f(float 3.0)\n"
                    "%b = call <2 x bfloat> @llvm.nvvm.ff2bf16x2.rn(float %f, float 1.0)\n"
                    "%r = bitcast <2 x bfloat> %b to i32\n",
                    true, y, &diag),
           &diag, NULL);
    assert_int_equal(y[0], 0x41003f80);
}

/* ---- what is no module ---- */

static void bad_modules_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        { "this is no module", "the module is no LLVM IR" },
        { "define void @f() {\n  ret void\n}\n", "the module has no kernel" },
        { "declare void @llvm.nvvm.made.up()\ndefine ptx_kernel void @k() {\n  call void "
          "@llvm.nvvm.made.up()\n"
          "  ret void\n}\n",
          "the emulator does not know the function llvm.nvvm.made.up" },
        { "declare void @puts()\ndefine ptx_kernel void @k() {\n  call void @puts()\n  ret "
          "void\n}\n",
          "needs the function puts from outside" },
        { "define ptx_kernel void @k() {\n  call void asm sideeffect \"bar.sync 0;\", \"\"()\n  "
          "ret void\n}\n",
          "inline assembly outside of a dev_ function" },
        { "@s = internal addrspace(3) global [240000 x i8] undef\ndefine ptx_kernel void @k() {\n"
          "  store i8 0, ptr addrspace(3) @s\n  ret void\n}\n",
          "more than 232448 bytes of shared memory" },
    };
    tl_target host;
    assert_int_equal(compiled_target(NULL, &host, NULL), TL_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tl_emulated *module = NULL;
        tl_diag diag = { 0 };
        tl_status status =
            tl_emulated_load(&host, cases[i].text, strlen(cases[i].text), &module, &diag);
        expect(status, &diag, cases[i].sentence);
        assert_null(module);
    }
}

static void bad_launches_are_refused(void **state)
{
    (void)state;
    tl_emulated *module = load_module("cluster", NULL, NULL);
    assert_string_equal(tl_emulated_name(module, 0), "share");
    assert_int_equal(tl_emulated_find(module, "other"), -1);
    static const struct {
        int grid, block, cluster, arguments;
        int64_t shared;
        const char *sentence;
    } cases[] = {
        { 2, 128, 2, 2, 0, "a block of 128 threads, it is made for 64 at most" },
        { 3, 64, 2, 2, 0, "3 blocks along x are no whole clusters of 2" },
        { 2, 0, 2, 2, 0, "no GPU launches" },
        { 2, 64, 2, 3, 0, "takes 2 arguments, not 3" },
        { 34, 64, 17, 2, 0, "a cluster has 16 blocks at most" },
        { 2, 64, 2, 2, 1 << 20, "a block has 232448" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tl_emulated_launch launch = { .grid = { cases[i].grid, 1, 1 },
                                      .block = { cases[i].block, 1, 1 },
                                      .cluster = { cases[i].cluster, 1, 1 },
                                      .argument_count = cases[i].arguments,
                                      .shared_bytes = cases[i].shared };
        tl_diag diag = { 0 };
        expect(tl_emulated_run(module, 0, &launch, &diag), &diag, cases[i].sentence);
    }
    tl_emulated_unload(module);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_right),      cmocka_unit_test(mutants_are_noticed),
        cmocka_unit_test(sums_are_right),          cmocka_unit_test(clusters_share),
        cmocka_unit_test(mistakes_are_told),       cmocka_unit_test(warps_and_barriers_work),
        cmocka_unit_test(bad_modules_are_refused), cmocka_unit_test(bad_launches_are_refused),
    };
    return cmocka_run_group_tests_name("emulate", tests, NULL, NULL);
}
