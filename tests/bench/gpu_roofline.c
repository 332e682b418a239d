/* tests/bench/gpu_roofline.c: what default schedules should reach on an H200, told without one: from the instructions that ptxas
 * makes of a kernel, and what a multiprocessor does of each in a cycle. Predictions, to be held against measurements.
 *
 *     gpu_roofline [ARCH]          sm_80, or sm_90 where none is given
 *
 * The useful instructions of a kernel are known from its arithmetic, all others by their share in the code, which loops that are
 * written out dominate. A multiprocessor issues four instructions of a warp a cycle, serves 128 bytes of shared memory, and its
 * tensor cores do for mma.sync what was measured of a Hopper (62 % of what wgmma reaches). What takes longest counts, and a
 * quarter of the others, for not all of that is hidden. Multiprocessors that are idle in the last wave count; launches do not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"
#include "codegen/object/ptxas.h"
#include "runtime/base/checked.h"
#include "schedule/sketch/sketch.h"
#include "tests/codegen/cubin.h"

#define SMS            132.0
#define CLOCK          1.83e9        /* a second, as peaks are stated for */
#define MEMORY         4.8e12        /* bytes a second */
#define ISSUED         4.0           /* instructions of a warp in a cycle */
#define SHARED_BYTES   128.0         /* in a cycle */
#define TENSOR_FLOPS   (4096 * 0.62) /* f16, bf16, in a cycle */
#define NOT_HIDDEN     0.25
#define BLOCKS_AT_ONCE 132

typedef struct {
    const char *name, *kernel;
    double flops, bytes;
    cubin_kind useful;
    double flops_each; /* of a useful instruction of a warp */
    /* TFLOP/s, or GB/s where there are no useful instructions, that issue 25 asks for */
    double bar;
    const char *of;
} subject;

#define N 4096.0
#define GEMM(name, numerics, type, product)                                              \
    numerics "kernel " name "(A: " type "[4096, 4096], B: " type "[4096, 4096], out C: " \
             "f32[4096, 4096])\n  gemm: C[i, j] = sum(" product ")\n"

static const subject subjects[] = {
    { "gemm 4096 f32", GEMM("gemm_f32", "", "f32", "A[i, k]*B[k, j]"), 2 * N *N *N, 3 * 4 * N *N,
      CUBIN_FFMA, 64, 0.8 * 47.5, "80 % of cuBLAS" },
    { "gemm 4096 tf32", GEMM("gemm_tf32", "tf32 ", "f32", "A[i, k]*B[k, j]"), 2 * N *N *N,
      3 * 4 * N *N, CUBIN_HMMA, 2048, 0.6 * 409, "60 % of cuBLAS" },
    { "gemm 4096 bf16", GEMM("gemm_bf16", "", "bf16", "f32(A[i, k])*f32(B[k, j])"), 2 * N *N *N,
      8 * N *N, CUBIN_HMMA, 4096, 0.55 * 762, "55 % of cuBLAS" },
    { "add 64 M",
      "kernel add(A: f32[8192, 8192], B: f32[8192, 8192], out C: f32[8192, 8192])\n"
      "  add: C[i, j] = A[i, j] + B[i, j]\n",
      64 * 1048576.0, 3 * 4 * 64 * 1048576.0, CUBIN_KINDS, 0, 0.85 * 4800, "85 % of HBM" },
    { "row sums 8192",
      "kernel rows(A: f32[8192, 8192], out S: f32[8192])\n  S: S[i] = sum(A[i, k])\n",
      64 * 1048576.0, 4 * 64 * 1048576.0, CUBIN_KINDS, 0, 0.85 * 4800, "85 % of HBM" },
};

typedef struct {
    int counts[CUBIN_KINDS], all, registers;
    int64_t blocks, threads, shared;
} code;

static int instructions(const tl_text *cubin)
{
    const unsigned char *bytes = (const unsigned char *)cubin->data;
    const Elf64_Ehdr *header = (const void *)bytes;
    const Elf64_Shdr *sections = (const void *)(bytes + header->e_shoff);
    const char *names = (const char *)bytes + sections[header->e_shstrndx].sh_offset;
    int all = 0;
    for (int s = 0; s < header->e_shnum; s++)
        if (strncmp(names + sections[s].sh_name, ".text.", 6) == 0)
            all += (int)(sections[s].sh_size / 16);
    return all;
}

static tl_status compile(tl_arena *arena, const subject *x, const tl_target *target, code *out,
                         tl_diag *diag)
{
    tl_program *naive;
    tl_descriptor d;
    const tl_ptx_use *uses;
    int count;
    tl_text ptx = { 0 }, cubin = { 0 };
    TL_TRY(tl_program_parse(arena, x->kernel, x->name, &naive, diag));
    tl_schedule *s = tl_schedule_create(arena, naive, target, false);
    TL_TRY(tl_schedule_default(s, diag));
    tl_status status = tl_codegen_compile(arena, tl_schedule_program(s), false, target,
                                          TL_EMIT_OBJECT, &ptx, &d, diag);
    if (status == TL_OK)
        status = tl_ptxas_run(arena, tl_text_get(&ptx), target->cpu, &cubin, &uses, &count, diag);
    if (status == TL_OK && cubin_count(cubin.data, cubin.size, out->counts)) {
        const tl_launch *launch = &d.launches[0];
        out->all = instructions(&cubin);
        out->registers = uses[0].registers;
        out->blocks = launch->grid[0] * launch->grid[1] * launch->grid[2];
        out->threads = (int64_t)launch->block[0] * launch->block[1] * launch->block[2];
        out->shared = launch->shared_bytes + launch->dynamic_shared_bytes;
    }
    tl_text_free(&ptx);
    tl_text_free(&cubin);
    return status;
}

/* Seconds; *bound: what takes longest. */
static double predict(const subject *x, const code *c, const char **bound)
{
    double memory = x->bytes / MEMORY;
    *bound = "memory";
    if (x->useful == CUBIN_KINDS)
        return memory;
    int useful = c->counts[x->useful];
    if (useful == 0) {
        *bound = "unknown";
        return 0;
    }
    double times = x->flops / x->flops_each / useful; /* each instruction of the code, by a warp */
    double issue = times * c->all / ISSUED;
    double tensor = x->useful == CUBIN_FFMA ? 0 : x->flops / (x->flops_each / 4096 * TENSOR_FLOPS);
    /* threads take 16 bytes of a slice at once, in registers half of them the same; beside tensor cores 4, and by ldmatrix
     * 512 bytes of the stream and, where the panel has halves, 256 of it */
    double lds = x->useful == CUBIN_FFMA ? 256 : 128;
    double ldsm = x->flops_each > 2048 ? 341 : 512;
    double shared = times *
                    (c->counts[CUBIN_LDS] * lds + c->counts[CUBIN_LDSM] * ldsm +
                     c->counts[CUBIN_LDGSTS] * 512.0 + c->counts[CUBIN_STS] * 128.0) /
                    SHARED_BYTES;
    double longest = issue > tensor ? issue : tensor;
    *bound = issue > tensor ? "issue" : "tensor cores";
    if (shared > longest) {
        longest = shared;
        *bound = "shared memory";
    }
    double cycles = longest + NOT_HIDDEN * (issue + tensor + shared - longest);
    double waves = (double)c->blocks / BLOCKS_AT_ONCE,
           full = (double)tl_ceildiv(c->blocks, BLOCKS_AT_ONCE);
    double seconds = cycles / (SMS * CLOCK) * full / waves;
    return seconds > memory ? seconds : memory;
}

int main(int argc, char **argv)
{
    tl_target target;
    tl_diag diag = { "" };
    char name[64];
    int failed = 0;
    snprintf(name, sizeof name, "cuda,%s", argc > 1 ? argv[1] : "sm_90");
    if (tl_target_named(name, &target, &diag) != TL_OK) {
        fprintf(stderr, "gpu_roofline: %s\n", diag.text);
        return 2;
    }
    tl_codegen_own_process();
    printf("predictions for an H200 from code for %s; nothing was measured\n\n", target.cpu);
    printf("%-16s %6s %6s %9s %7s %9s  %-14s %9s  %s\n", "kernel", "blocks", "regs", "shared KB",
           "useful", "predicted", "bound by", "bar", "which is");
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        const subject *x = &subjects[i];
        tl_arena *arena = tl_arena_create(0);
        code c = { .all = 0 };
        const char *bound;
        if (compile(arena, x, &target, &c, &diag) != TL_OK) {
            fprintf(stderr, "gpu_roofline: %s: %s\n", x->name, diag.text);
            failed = 1;
        } else {
            double seconds = predict(x, &c, &bound);
            bool is_arithmetic = x->useful != CUBIN_KINDS;
            double rate = (is_arithmetic ? x->flops / 1e12 : x->bytes / 1e9) / seconds;
            printf("%-16s %6lld %6d %9.1f %6.0f%% %6.0f %s  %-14s %6.0f %s  %s\n", x->name,
                   (long long)c.blocks, c.registers, (double)c.shared / 1024,
                   is_arithmetic ? 100.0 * c.counts[x->useful] / c.all : 0.0, rate,
                   is_arithmetic ? "TF" : "GB", bound, x->bar, is_arithmetic ? "TF" : "GB", x->of);
        }
        tl_arena_destroy(arena);
    }
    return failed;
}
