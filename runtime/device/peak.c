/* runtime/device/peak.c: loops that keep the multiply-add units and nothing else busy.
 *
 * A loop body is independent chains acc = a*acc + b on registers, more of them than latency
 * times units (4 x 2 on today's cores), written in assembly so that no compiler option changes
 * what is measured. With a = 0.5 and b = 1 every accumulator stays at 2: no infinity, no
 * denormal slows it down. */
#include "runtime/device/peak.h"
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/clock.h"
#include "runtime/device/cpu.h"

/* Runs `rounds` rounds of the body; a round is `flops` floating-point operations. */
typedef struct {
    const char *name;
    double flops;
    void (*run)(int64_t rounds);
} peak_loop;

#if defined(__x86_64__)
static const float half[16] = { 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f,
                                0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f };
static const float ones[16] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };

/* clang-format off */
#define EACH_12(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define EACH_24(X) EACH_12(X) X(12) X(13) X(14) X(15) X(16) X(17) \
                    X(18) X(19) X(20) X(21) X(22) X(23)
#define CLOBBER_12 "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
                   "xmm9", "xmm10", "xmm11"
#define CLOBBER_16 CLOBBER_12, "xmm12", "xmm13", "xmm14", "xmm15"
#define CLOBBER_32 CLOBBER_16, "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", \
                   "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31"

#define START_512(i) "vmovups (%2), %%zmm" #i "\n\t"
#define FMA_512(i)   "vfmadd213ps %%zmm31, %%zmm30, %%zmm" #i "\n\t"
__attribute__((target("avx512f"))) static void run_avx512(int64_t rounds)
{
    __asm__ volatile("vmovups (%1), %%zmm30\n\t"
                     "vmovups (%2), %%zmm31\n\t"
                     EACH_24(START_512)
                     ".p2align 5\n"
                     "1:\n\t"
                     EACH_24(FMA_512)
                     "dec %0\n\t"
                     "jnz 1b\n\t"
                     "vzeroupper\n\t"
                     : "+r"(rounds) : "r"(half), "r"(ones) : CLOBBER_32, "cc", "memory");
}

#define START_256(i) "vmovups (%2), %%ymm" #i "\n\t"
#define FMA_256(i)   "vfmadd213ps %%ymm15, %%ymm14, %%ymm" #i "\n\t"
__attribute__((target("avx2,fma"))) static void run_avx2(int64_t rounds)
{
    __asm__ volatile("vmovups (%1), %%ymm14\n\t"
                     "vmovups (%2), %%ymm15\n\t"
                     EACH_12(START_256)
                     ".p2align 5\n"
                     "1:\n\t"
                     EACH_12(FMA_256)
                     "dec %0\n\t"
                     "jnz 1b\n\t"
                     "vzeroupper\n\t"
                     : "+r"(rounds) : "r"(half), "r"(ones) : CLOBBER_16, "cc", "memory");
}

/* Without a fused instruction a multiply-add is two, in one chain: the chains must hide both. */
#define START_128(i) "movups (%2), %%xmm" #i "\n\t"
#define MUL_128(i)   "mulps %%xmm14, %%xmm" #i "\n\t"
#define ADD_128(i)   "addps %%xmm15, %%xmm" #i "\n\t"
static void run_sse2(int64_t rounds)
{
    __asm__ volatile("movups (%1), %%xmm14\n\t"
                     "movups (%2), %%xmm15\n\t"
                     EACH_12(START_128)
                     ".p2align 5\n"
                     "1:\n\t"
                     EACH_12(MUL_128)
                     EACH_12(ADD_128)
                     "dec %0\n\t"
                     "jnz 1b\n\t"
                     : "+r"(rounds) : "r"(half), "r"(ones) : CLOBBER_16, "cc", "memory");
}
/* clang-format on */

static peak_loop choose_loop(int vector_bits)
{
    const tl_cpu_features *cpu = tl_cpu_host();
    int most = vector_bits > 0 ? vector_bits : 512;

    if (most >= 512 && tl_cpu_has(cpu, TL_CPU_AVX512F))
        return (peak_loop){ "AVX-512", 24 * 16 * 2, run_avx512 };
    if (most >= 256 && tl_cpu_has(cpu, TL_CPU_AVX2) && tl_cpu_has(cpu, TL_CPU_FMA))
        return (peak_loop){ "AVX2+FMA", 12 * 8 * 2, run_avx2 };
    return (peak_loop){ "SSE2", 12 * 4 * 2, run_sse2 };
}
#elif defined(__aarch64__)
/* clang-format off */
#define EACH_16(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) \
                    X(12) X(13) X(14) X(15)
#define START_NEON(i) "fmov v" #i ".4s, #1.0\n\t"
#define FMA_NEON(i)   "fmla v" #i ".4s, v30.4s, v31.4s\n\t"
static void run_neon(int64_t rounds)
{
    __asm__ volatile("movi v30.4s, #0\n\t"
                     "fmov v31.4s, #1.0\n\t"
                     EACH_16(START_NEON)
                     "1:\n\t"
                     EACH_16(FMA_NEON)
                     "subs %0, %0, #1\n\t"
                     "b.ne 1b\n\t"
                     : "+r"(rounds) :
                     : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",
                       "v12", "v13", "v14", "v15", "v30", "v31", "cc");
}
/* clang-format on */

static peak_loop choose_loop(int vector_bits)
{
    (void)vector_bits; /* of one width only */
    return (peak_loop){ "NEON", 16 * 4 * 2, run_neon };
}
#else
static void run_scalar(int64_t rounds)
{
    volatile float start = 1.0f;
    float acc[8];

    for (int i = 0; i < 8; i++)
        acc[i] = start;
    for (; rounds > 0; rounds--)
        for (int i = 0; i < 8; i++)
            acc[i] = acc[i] * 0.5f + 1.0f;
    for (int i = 0; i < 8; i++)
        start = acc[i];
}

static peak_loop choose_loop(int vector_bits)
{
    (void)vector_bits; /* of one width only */
    return (peak_loop){ "scalar", 8 * 2, run_scalar };
}
#endif

const char *tl_peak_isa(int vector_bits)
{
    return choose_loop(vector_bits).name;
}

enum { SLICES = 8 };

/* A slice is timed from when all threads have begun to when all have ended; the best slice
 * counts. */
typedef struct {
    peak_loop loop;
    double seconds;
    double best;            /* GFLOP/s of the team */
    _Atomic int64_t rounds; /* of a slice, the same for all */
} flops_job;

/* Rounds that take about `ns` on this thread. */
static int64_t rounds_in(const peak_loop *loop, double ns)
{
    int64_t rounds = 2000, start, took;

    do {
        rounds *= 2;
        start = tl_clock_ns();
        loop->run(rounds);
        took = tl_clock_ns() - start;
    } while (took < 100000 && rounds < INT64_MAX / 4);
    double want = (double)rounds * ns / (double)took;
    return want < 1 ? 1 : (int64_t)want;
}

static void run_flops(tl_team *team, void *context)
{
    flops_job *job = context;

    if (team->thread == 0)
        atomic_store(&job->rounds, rounds_in(&job->loop, job->seconds * 1e9 / SLICES));
    tl_team_barrier(team);
    int64_t rounds = atomic_load(&job->rounds);
    for (int i = 0; i < SLICES; i++) {
        tl_team_barrier(team);
        int64_t start = tl_clock_ns();
        job->loop.run(rounds);
        tl_team_barrier(team);
        int64_t took = tl_clock_ns() - start;
        double rate =
            job->loop.flops * (double)rounds * team->threads / (double)(took > 0 ? took : 1);
        if (team->thread == 0 && rate > job->best)
            job->best = rate;
    }
}

double tl_peak_gflops(tl_pool *pool, int threads, int vector_bits, double seconds)
{
    flops_job job = { .loop = choose_loop(vector_bits), .seconds = seconds };

    tl_pool_run(pool, threads, run_flops, &job);
    return job.best;
}

typedef struct {
    unsigned char *from, *to;
    int64_t size;
    double seconds;
    tl_peak_bandwidth best;
    _Atomic uint64_t sum; /* keeps the reads from being optimised away */
    atomic_bool stop;
} bandwidth_job;

/* A line crosses the memory bus when one word of it is read. Several streams at once, as one
 * alone does not keep enough lines in flight. */
static uint64_t read_all(const unsigned char *from, int64_t size)
{
    enum { STREAMS = 8, LINE = 64 };
    int64_t share = size / STREAMS / LINE * LINE;
    uint64_t sum[STREAMS] = { 0 }, total = 0;

    for (int64_t i = 0; i < share; i += LINE)
        for (int k = 0; k < STREAMS; k++) {
            uint64_t word;
            memcpy(&word, from + k * share + i, sizeof word);
            sum[k] += word;
        }
    for (int k = 0; k < STREAMS; k++)
        total += sum[k];
    return total;
}

static void keep_best(double *best, double bytes, int64_t ns)
{
    double rate = bytes / (double)(ns > 0 ? ns : 1);

    if (rate > *best)
        *best = rate;
}

static void run_bandwidth(tl_team *team, void *context)
{
    bandwidth_job *job = context;
    tl_part r = tl_team_range(job->size / 64, team->thread, team->threads);
    unsigned char *from = job->from + r.begin * 64, *to = job->to + r.begin * 64;
    int64_t mine = (r.end - r.begin) * 64, begun = tl_clock_ns();

    memset(from, 1, (size_t)mine); /* pages are given out where they are first touched */
    memset(to, 2, (size_t)mine);
    do {
        tl_team_barrier(team);
        int64_t start = tl_clock_ns();
        atomic_fetch_add(&job->sum, read_all(from, mine));
        tl_team_barrier(team);
        int64_t between = tl_clock_ns();
        memcpy(to, from, (size_t)mine);
        tl_team_barrier(team);
        int64_t end = tl_clock_ns();
        if (team->thread == 0) {
            keep_best(&job->best.read_gbs, (double)job->size, between - start);
            keep_best(&job->best.copy_gbs, 2.0 * (double)job->size, end - between);
            atomic_store(&job->stop, (double)(end - begun) > job->seconds * 1e9);
        }
        tl_team_barrier(team);
    } while (!atomic_load(&job->stop));
}

tl_status tl_peak_measure_bandwidth(tl_pool *pool, int threads, double seconds,
                                    tl_peak_bandwidth *out, tl_diag *diag)
{
    const tl_topology *t = tl_topology_get();
    int64_t size = 4 * t->l3_bytes, most = t->memory_bytes / 16;

    if (size < INT64_C(64) << 20)
        size = INT64_C(64) << 20;
    if (size > INT64_C(256) << 20)
        size = INT64_C(256) << 20;
    if (most > 0 && size > most)
        size = most;
    size = (size + 63) / 64 * 64;

    bandwidth_job job = { .size = size, .seconds = seconds };
    job.from = aligned_alloc(64, (size_t)size);
    job.to = aligned_alloc(64, (size_t)size);
    tl_status status = TL_OK;
    if (job.from == NULL || job.to == NULL)
        status =
            tl_fail(diag, TL_NO_MEMORY, "bandwidth probe: no memory for two arrays of %lld bytes",
                    (long long)size);
    else {
        tl_pool_run(pool, threads, run_bandwidth, &job);
        *out = job.best;
    }
    free(job.from);
    free(job.to);
    return status;
}

typedef struct {
    unsigned char *from, *to;
    int64_t read, written; /* whole lines */
    double seconds, best;
    _Atomic uint64_t sum;
    atomic_bool stop;
} traffic_job;

/* A thread's share of `size` bytes, in lines. */
static tl_part share_of(const tl_team *team, int64_t size)
{
    tl_part lines = tl_team_range(size / 64, team->thread, team->threads);
    return (tl_part){ lines.begin * 64, lines.end * 64 };
}

/* What is written is copied from what is read, as far as there is that much. */
static void run_traffic(tl_team *team, void *context)
{
    traffic_job *job = context;
    int64_t copied = job->read < job->written ? job->read : job->written;
    tl_part copy = share_of(team, copied), more = share_of(team, job->read - copied),
            fill = share_of(team, job->written - copied);
    int64_t begun = tl_clock_ns();
    do {
        tl_team_barrier(team);
        int64_t start = tl_clock_ns();
        memcpy(job->to + copy.begin, job->from + copy.begin, (size_t)(copy.end - copy.begin));
        memset(job->to + copied + fill.begin, 3, (size_t)(fill.end - fill.begin));
        atomic_fetch_add(&job->sum,
                         read_all(job->from + copied + more.begin, more.end - more.begin));
        tl_team_barrier(team);
        int64_t end = tl_clock_ns();
        if (team->thread == 0) {
            keep_best(&job->best, (double)(job->read + job->written), end - start);
            atomic_store(&job->stop, (double)(end - begun) > job->seconds * 1e9);
        }
        tl_team_barrier(team);
    } while (!atomic_load(&job->stop));
}

double tl_peak_traffic_gbs(tl_pool *pool, int threads, int64_t read, int64_t written,
                           double seconds)
{
    traffic_job job = { .read = (read + 63) / 64 * 64,
                        .written = (written + 63) / 64 * 64,
                        .seconds = seconds };
    job.from = aligned_alloc(64, (size_t)job.read + 64);
    job.to = aligned_alloc(64, (size_t)job.written + 64);
    if (job.from != NULL && job.to != NULL) {
        memset(job.from, 1, (size_t)job.read);
        memset(job.to, 2, (size_t)job.written);
        tl_pool_run(pool, threads, run_traffic, &job);
    }
    free(job.from);
    free(job.to);
    return job.best;
}
