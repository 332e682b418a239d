/* tests/bench/gpu_roofline.c: what default schedules should reach on an H200, told without one: from the instructions that ptxas
 * makes of a kernel, and what a multiprocessor does of each in a cycle. Predictions, to be held against measurements.
 *
 *     gpu_roofline [ARCH [POINTS]]          sm_90a where none is given
 *
 * With POINTS also what tuning could make of each product: from the default on, one decision after another takes the option with
 * the best prediction, over so many programs in all.
 *
 * The useful instructions of a kernel are known from its arithmetic, all others by their share in the code, which loops that are
 * written out dominate. A multiprocessor issues four instructions of a warp a cycle, serves 128 bytes of shared memory, and its
 * tensor cores do for mma.sync what was measured of a Hopper (62 % of what they could), and for wgmma what others' code has
 * reached of it (815 TFLOP/s, 82 %: power, not the schedule, keeps it there). What takes longest counts, and a quarter of the
 * others, for not all of that is hidden. What wgmma does by itself, of copies that another warpgroup asks for, hides all but
 * the wait for the first copies and the end, when all write their results; of a kernel that does more between its products all
 * instructions count again, and a quarter of what takes less. What a launch in front of a product makes of an operand is written
 * and read once more. Multiprocessors that are idle in the last wave count;
 * launches do not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"
#include "codegen/object/ptxas.h"
#include "runtime/base/checked.h"
#include "schedule/sketch/sketch.h"
#include "schedule/trace.h"
#include "tests/codegen/cubin.h"
#include "tests/gpu/peers/peer_attention.h"
#include "tuner/search/catalog.h"

#define SMS            132.0
#define CLOCK          1.83e9        /* a second, as peaks are stated for */
#define MEMORY         4.8e12        /* bytes a second */
#define COPIED         0.9           /* of that, which a launch that copies was seen to reach */
#define ISSUED         4.0           /* instructions of a warp in a cycle */
#define SHARED_BYTES   128.0         /* in a cycle */
#define TENSOR_FLOPS   (4096 * 0.62) /* f16, bf16, in a cycle */
#define GROUP_FLOPS    (4096 * 0.82) /* the same by wgmma */
#define MEMORY_CYCLES  1000.0        /* until what was asked for is there */
#define NOT_HIDDEN     0.25
#define BLOCKS_AT_ONCE 132

typedef struct {
    const char *name, *kernel;
    double flops, bytes;
    cubin_kind useful;
    double flops_each; /* of a useful instruction of a warp */
    /* TFLOP/s, or GB/s where there are no useful instructions, that issue 25 asks for; 0: nothing */
    double bar;
    const char *of;
    double group_bar; /* by wgmma, where it asks for more */
    const char *group_of;
} subject;

#define N 4096.0
#define GEMM(name, numerics, type, product)                                              \
    numerics "kernel " name "(A: " type "[4096, 4096], B: " type "[4096, 4096], out C: " \
             "f32[4096, 4096])\n  gemm: C[i, j] = sum(" product ")\n"

static const char conv_bf16[] =
    "kernel conv(x: bf16[32, 64, 56, 56], const w: bf16[64, 64, 3, 3], out y: bf16[32, 64, 56, "
    "56])\n"
    "  pad: p[n, c, i, j] = select(1 <= i and i < 57 and 1 <= j and j < 57, x[n, c, i - 1, j - 1], "
    "bf16(0.0)) for i in 0..58, j in 0..58\n"
    "  conv: acc[n, o, i, j] = sum(f32(p[n, c, i + u, j + v])*f32(w[o, c, u, v])) "
    "for i in 0..56, j in 0..56\n"
    "  y: y[n, o, i, j] = bf16(max(acc[n, o, i, j], 0.0))\n";

/* 16 of 8 heads of 128 features. */
static const char attention_bf16[] =
    "kernel attention(q: bf16[16, 1024, 1024], k: bf16[16, 1024, 1024], v: bf16[16, 1024, 1024], "
    "out y: bf16[16, 1024, 1024])\n"
    "  scores: s[b, h, i, j] = sum(f32(q[b, i, h*128 + d])*f32(k[b, j, h*128 + d])) "
    "for h in 0..8, d in 0..128\n"
    "  masked: z[b, h, i, j] = s[b, h, i, j]*0.0883883\n"
    "  most: m[b, h, i] = max(z[b, h, i, j])\n"
    "  weight: p[b, h, i, j] = bf16(exp(z[b, h, i, j] - m[b, h, i]))\n"
    "  total: l[b, h, i] = sum(f32(p[b, h, i, j]))\n"
    "  attend: acc[b, i, h, e] = sum(f32(p[b, h, i, j])*f32(v[b, j, h*128 + e])) for e in 0..128\n"
    "  epilogue: y[b, i, h*128 + e] = bf16(acc[b, i, h, e]*(1.0/l[b, h, i])) "
    "for h in 0..8, e in 0..128\n";

/* A kernel that is NULL is attention in blocks of keys (peer_attention.h). */
static const subject subjects[] = {
    { "gemm 4096 f32", GEMM("gemm_f32", "", "f32", "A[i, k]*B[k, j]"), 2 * N *N *N, 3 * 4 * N *N,
      CUBIN_FFMA, 64, 0.8 * 47.5, "80 % of cuBLAS", 0, "" },
    { "gemm 4096 tf32", GEMM("gemm_tf32", "tf32 ", "f32", "A[i, k]*B[k, j]"), 2 * N *N *N,
      3 * 4 * N *N, CUBIN_HMMA, 2048, 0.6 * 409, "60 % of cuBLAS", 0.85 * 409, "85 % of cuBLAS" },
    { "gemm 4096 tf32, B by rows",
      "tf32 kernel gemm_tf32_nt(A: f32[4096, 4096], B: f32[4096, 4096], out C: f32[4096, 4096])\n"
      "  gemm: C[i, j] = sum(A[i, k]*B[j, k])\n",
      2 * N *N *N, 3 * 4 * N *N, CUBIN_HMMA, 2048, 0.6 * 409, "60 % of cuBLAS", 0.85 * 409,
      "85 % of cuBLAS" },
    { "gemm 4096 bf16", GEMM("gemm_bf16", "", "bf16", "f32(A[i, k])*f32(B[k, j])"), 2 * N *N *N,
      8 * N *N, CUBIN_HMMA, 4096, 0.55 * 762, "55 % of cuBLAS", 0.85 * 762, "85 % of cuBLAS" },
    { "conv 3x3 of 64 channels, 56x56", conv_bf16, 2.0 * 32 * 64 * 56 * 56 * 64 * 9,
      2.0 * 2 * 32 * 64 * 56 * 56, CUBIN_HMMA, 4096, 0, "", 0, "" },
    { "attention 1024 bf16", attention_bf16, 4.0 * 16 * 8 * 1024 * 1024 * 128,
      2.0 * 4 * 16 * 1024 * 1024, CUBIN_HMMA, 4096, 0, "", 0, "" },
    { "attention 4096 bf16", NULL, 4.0 * 4 * 16 * N *N * 128, 2.0 * 4 * 4 * N * 2048, CUBIN_HMMA,
      4096, 0, "", 0.6 * 606, "60 % of FlashAttention-3" },
    { "add 64 M",
      "kernel add(A: f32[8192, 8192], B: f32[8192, 8192], out C: f32[8192, 8192])\n"
      "  add: C[i, j] = A[i, j] + B[i, j]\n",
      64 * 1048576.0, 3 * 4 * 64 * 1048576.0, CUBIN_KINDS, 0, 0.85 * 4800, "85 % of HBM", 0, "" },
    { "row sums 8192",
      "kernel rows(A: f32[8192, 8192], out S: f32[8192])\n  S: S[i] = sum(A[i, k])\n",
      64 * 1048576.0, 4 * 64 * 1048576.0, CUBIN_KINDS, 0, 0.85 * 4800, "85 % of HBM", 0, "" },
};

typedef struct {
    int counts[CUBIN_KINDS], all, registers, launches;
    int64_t blocks, threads, shared;
    int columns, depth; /* of a product of a warpgroup; 0: there is none */
    double result_bytes, results;
    double sums;        /* results with those that fill up tiles */
    int held;           /* buffers in registers of warpgroups */
    double ahead_bytes; /* what a launch in front makes of an operand, and reads for it */
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

static bool see_alloc(const tl_stmt *stmt, void *context)
{
    code *c = context;
    if (stmt->kind != TL_STMT_ALLOC)
        return true;
    const tl_buffer *buffer = stmt->u.alloc.buffer;
    if (buffer->scope == TL_SCOPE_WARPGROUP) {
        c->sums = (double)tl_buffer_max_elements(buffer);
        c->held++;
    } else if (buffer->scope == TL_SCOPE_GLOBAL) {
        c->ahead_bytes += 2 * (double)tl_buffer_max_bytes(buffer);
    }
    return true;
}

/* The launch that computes: of several the one with the most shared memory. */
static int find_launch(const tl_descriptor *d)
{
    int found = 0;
    for (int i = 1; i < d->phase_count; i++)
        if (d->launches[i].shared_bytes + d->launches[i].dynamic_shared_bytes >
            d->launches[found].shared_bytes + d->launches[found].dynamic_shared_bytes)
            found = i;
    return found;
}

/* Of a launch, which is named by its number. */
static int registers_of(const tl_ptx_use *uses, int count, int launch)
{
    for (int i = 0; i < count; i++) {
        const char *number = strrchr(uses[i].kernel, '_');
        if (number != NULL && atoi(number + 1) == launch)
            return uses[i].registers;
    }
    return -1;
}

static tl_status open_space(tl_arena *arena, const subject *x, const tl_target *target,
                            tl_space **out, tl_diag *diag)
{
    tl_text kernel = { 0 };
    tl_text_add(&kernel, x->kernel != NULL ? x->kernel : "kernel attention");
    if (x->kernel == NULL)
        peer_attention_text("bf16", 4, 16, (int64_t)N, 128, &kernel);
    tl_measure_lowering *direct = TL_NEW(arena, tl_measure_lowering);
    *direct = (tl_measure_lowering){ .name = "direct",
                                     .program = tl_arena_strdup(arena, tl_text_get(&kernel)) };
    tl_text_free(&kernel);
    tl_measure_task *task = TL_NEW(arena, tl_measure_task);
    *task = (tl_measure_task){
        .name = x->name, .workload = "", .lowering_count = 1, .lowerings = direct
    };
    return tl_space_create(arena, task, target, 1, TL_SPACE_FULL, out, diag);
}

/* What the trace makes of the space's program. */
static tl_status assemble(tl_arena *arena, const tl_space *space, const char *text, code *out,
                          tl_diag *diag)
{
    const tl_program *naive = tl_space_program(space, 0);
    const tl_target *target = tl_space_target(space);
    tl_schedule *s = tl_schedule_create(arena, naive, target, false);
    tl_trace *trace;
    TL_TRY(tl_trace_parse(arena, text, naive->name, target, &trace, diag));
    TL_TRY(tl_trace_apply(trace, s, diag));
    const tl_program *scheduled = tl_schedule_program(s);
    tl_descriptor d;
    const tl_ptx_use *uses;
    int count;
    tl_text ptx = { 0 }, cubin = { 0 };
    for (int i = 0; i < naive->param_count; i++)
        if (naive->params[i]->role == TL_ROLE_OUTPUT) {
            out->result_bytes += (double)tl_buffer_max_bytes(naive->params[i]);
            out->results += (double)tl_buffer_max_elements(naive->params[i]);
        }
    tl_stmt_visit(scheduled->body, see_alloc, out);
    const char *product = strstr(text, "wgmma_m64n");
    if (product != NULL && sscanf(product, "wgmma_m64n%dk%d", &out->columns, &out->depth) != 2)
        out->columns = 0;
    tl_status status =
        tl_codegen_compile(arena, scheduled, false, target, TL_EMIT_OBJECT, &ptx, &d, diag);
    if (status == TL_OK)
        status = tl_ptxas_run(arena, tl_text_get(&ptx), target->cpu, &cubin, &uses, &count, diag);
    if (status == TL_OK && cubin_count(cubin.data, cubin.size, out->counts)) {
        const int number = find_launch(&d);
        const tl_launch *launch = &d.launches[number];
        out->all = instructions(&cubin);
        out->registers = registers_of(uses, count, number);
        out->launches = d.phase_count;
        out->blocks = launch->grid[0] * launch->grid[1] * launch->grid[2];
        out->threads = (int64_t)launch->block[0] * launch->block[1] * launch->block[2];
        out->shared = launch->shared_bytes + launch->dynamic_shared_bytes;
    }
    tl_text_free(&ptx);
    tl_text_free(&cubin);
    return status;
}

static double in_waves(const code *c, double cycles)
{
    double waves = (double)c->blocks / BLOCKS_AT_ONCE,
           full = (double)tl_ceildiv(c->blocks, BLOCKS_AT_ONCE);
    return cycles / (SMS * CLOCK) * full / waves;
}

/* By products of a warpgroup: each reads 64 rows of one operand and its columns of the other from shared memory. */
static double predict_group(const subject *x, const code *c, const char **bound)
{
    double flops = x->flops * c->sums / c->results,
           tensor = flops / (x->flops_each / 4096 * GROUP_FLOPS),
           products = flops / (2.0 * 64 * c->columns * c->depth), /* of all warpgroups */
        shared = products * (64 + c->columns) * 32 / SHARED_BYTES;
    double longest = shared > tensor ? shared : tensor;
    *bound = shared > tensor ? "shared memory" : "tensor cores";
    double seconds = in_waves(c, longest + MEMORY_CYCLES * (double)c->blocks) +
                     c->result_bytes / MEMORY + c->ahead_bytes / (MEMORY * COPIED);
    double memory = x->bytes / MEMORY;
    if (memory > seconds)
        *bound = "memory";
    return memory > seconds ? memory : seconds;
}

/* With more between the products than copies: attention in registers. Half of the products read one operand alone. */
static double predict_mixed(const subject *x, const code *c, const char **bound)
{
    double products = x->flops / (2.0 * 64 * c->columns * c->depth);
    double parts[3] = { x->flops / (x->flops_each / 4096 * GROUP_FLOPS),
                        products * (32 + c->columns) * 32 / SHARED_BYTES,
                        products * 4 * c->all / c->counts[CUBIN_HGMMA] / ISSUED };
    static const char *const names[] = { "tensor cores", "shared memory", "issue" };
    double longest = 0, all = 0;
    for (int i = 0; i < 3; i++) {
        all += parts[i];
        if (parts[i] > longest)
            *bound = names[i];
        longest = parts[i] > longest ? parts[i] : longest;
    }
    return in_waves(c, longest + NOT_HIDDEN * (all - longest) + MEMORY_CYCLES * (double)c->blocks);
}

/* Seconds; *bound: what takes longest. */
static double predict(const subject *x, const code *c, const char **bound)
{
    double memory = x->bytes / MEMORY;
    *bound = "memory";
    if (x->useful == CUBIN_KINDS)
        return memory;
    if (c->columns > 0 && c->held > 1)
        return predict_mixed(x, c, bound);
    if (c->columns > 0)
        return predict_group(x, c, bound);
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
    double seconds = in_waves(c, cycles);
    return seconds > memory ? seconds : memory;
}

/* An entry of a subject's catalog, and what is predicted of it. */
typedef struct {
    code code;
    int entry;
    double seconds;
    const char *bound;
} prediction;

static tl_status predict_entry(const subject *x, const tl_space *space, tl_catalog *catalog,
                               int entry, prediction *out, tl_diag *diag)
{
    tl_arena *arena = tl_arena_create(0);
    const char *trace;
    *out = (prediction){ .entry = entry, .bound = "" };
    tl_status status = tl_catalog_trace(catalog, entry, arena, &trace, diag);
    if (status == TL_OK)
        status = assemble(arena, space, trace, &out->code, diag);
    if (status == TL_OK)
        out->seconds = predict(x, &out->code, &out->bound);
    tl_arena_destroy(arena);
    return status;
}

/* From *best on, which is the default's: each decision in its turn, until none has a better option or the catalog has so many
 * programs. What does not assemble is not better, nor what takes more launches: only one of them is predicted. */
static void improve(const subject *x, const tl_space *space, tl_catalog *catalog, int points,
                    prediction *best)
{
    const int launches = best->code.launches;
    bool is_better = true;
    tl_diag diag;
    while (is_better) {
        is_better = false;
        for (int i = 0; i < tl_catalog_at(catalog, best->entry)->point.count; i++)
            for (int o = 0; tl_catalog_count(catalog) < points; o++) {
                const tl_point *from = &tl_catalog_at(catalog, best->entry)->point;
                if (i >= from->count || o >= from->decisions[i].count)
                    break;
                int met = tl_catalog_count(catalog);
                int entry = tl_catalog_step(catalog, best->entry, i, from->decisions[i].options[o]);
                prediction found;
                if (entry < met || predict_entry(x, space, catalog, entry, &found, &diag) != TL_OK)
                    continue;
                if (found.code.launches <= launches && found.seconds > 0 &&
                    found.seconds < best->seconds * 0.999) {
                    *best = found;
                    is_better = true;
                }
            }
    }
}

static void print_row(const char *name, const subject *x, const prediction *p)
{
    const code *c = &p->code;
    bool is_arithmetic = x->useful != CUBIN_KINDS, is_group = c->columns > 0;
    double rate = (is_arithmetic ? x->flops / 1e12 : x->bytes / 1e9) / p->seconds;
    int useful = is_group ? c->counts[CUBIN_HGMMA] : is_arithmetic ? c->counts[x->useful] : 0;
    const char *unit = is_arithmetic ? "TF" : "GB", *of = is_group ? x->group_of : x->of;
    printf("%-30s %6lld %6d %9.1f %6.0f%% %6.0f %s  %-14s", name, (long long)c->blocks,
           c->registers, (double)c->shared / 1024, 100.0 * useful / c->all, rate, unit, p->bound);
    double bar = is_group ? x->group_bar : x->bar;
    if (bar > 0)
        printf(" %6.0f %s  %s", bar, unit, of);
    printf("\n");
}

static void print_changes(const tl_point *from, const tl_point *to)
{
    for (int i = 0; i < to->count; i++) {
        const tl_decision *d = &to->decisions[i], *before = NULL;
        for (int k = 0; k < from->count; k++)
            if (strcmp(from->decisions[k].name, d->name) == 0)
                before = &from->decisions[k];
        int64_t now = d->options[d->taken];
        if (before == NULL || before->options[before->taken] != now)
            printf(" %s=%lld", d->name, (long long)now);
    }
    printf("\n");
}

static tl_status tell(const subject *x, const tl_target *target, int points, tl_diag *diag)
{
    tl_arena *arena = tl_arena_create(0);
    tl_space *space;
    tl_catalog *catalog = NULL;
    prediction first;
    tl_status status = open_space(arena, x, target, &space, diag);
    if (status == TL_OK && (catalog = tl_catalog_create(space, false)) == NULL)
        status = tl_fail(diag, TL_NO_MEMORY, "out of memory");
    if (status == TL_OK && tl_catalog_build(catalog, 0, NULL, 0) == TL_NO_ENTRY)
        status = tl_fail(diag, TL_ILLEGAL_SCHEDULE, "%s has no default schedule", x->name);
    if (status == TL_OK)
        status = predict_entry(x, space, catalog, 0, &first, diag);
    if (status == TL_OK) {
        print_row(x->name, x, &first);
        if (points > 0 && x->useful != CUBIN_KINDS) {
            prediction best = first;
            improve(x, space, catalog, points, &best);
            print_row("  tuned", x, &best);
            printf("  of %d programs:", tl_catalog_count(catalog));
            print_changes(&tl_catalog_at(catalog, 0)->point,
                          &tl_catalog_at(catalog, best.entry)->point);
        }
        fflush(stdout);
    }
    tl_catalog_destroy(catalog);
    tl_arena_destroy(arena);
    return status;
}

int main(int argc, char **argv)
{
    tl_target target;
    tl_diag diag = { "" };
    char name[64];
    int failed = 0, points = argc > 2 ? atoi(argv[2]) : 0;
    snprintf(name, sizeof name, "cuda,%s", argc > 1 ? argv[1] : "sm_90a");
    if (tl_target_named(name, &target, &diag) != TL_OK) {
        fprintf(stderr, "gpu_roofline: %s\n", diag.text);
        return 2;
    }
    tl_codegen_own_process();
    printf("predictions for an H200 from code for %s; nothing was measured\n\n", target.cpu);
    printf("%-30s %6s %6s %9s %7s %9s  %-14s %9s  %s\n", "kernel", "blocks", "regs", "shared KB",
           "useful", "predicted", "bound by", "bar", "which is");
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        const subject *x = &subjects[i];
        if (x->kernel == NULL && !target.gpu.is_exact)
            continue;
        if (tell(x, &target, points, &diag) != TL_OK) {
            fprintf(stderr, "gpu_roofline: %s: %s\n", x->name, diag.text);
            failed = 1;
        }
    }
    return failed;
}
