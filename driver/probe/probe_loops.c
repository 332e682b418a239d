/* driver/probe/probe_loops.c: the loops that are timed, in assembly so that no compiler option changes what is measured.
 *
 * Each instruction set has the same ten. Numbers are 0.5 and 1, so that nothing grows, and no denormal slows anything
 * down. */
#include "driver/probe/probe_private.h"
#include "runtime/device/cpu.h"

#if defined(__x86_64__)
static const float half[16] = { 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f,
                                0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f };

/* clang-format off */
#define EACH_8(X)   X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define EACH_12(X)  EACH_8(X) X(8) X(9) X(10) X(11)
#define EACH_16(X)  EACH_12(X) X(12) X(13) X(14) X(15)
#define TWICE(text) text text
#define CLOBBERS "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
                 "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
/* Rounds in %0, memory in %1; 0.5 in all lanes of sixteen registers. */
#define LOOP(name, isa, START, BODY, END)                                                            \
    __attribute__((target(isa))) static void name(int64_t rounds, void *memory)                      \
    {                                                                                                \
        __asm__ volatile(EACH_16(START) ".p2align 5\n1:\n\t" BODY "dec %0\n\tjnz 1b\n\t" END         \
                         : "+r"(rounds), "+r"(memory) : "r"(half) : CLOBBERS);                       \
    }
#define NEXT_4_LINES "add $256, %1\n\t"
#define AHEAD(line)  "prefetcht0 512+64*" #line "(%1)\n\t"

#define START_Z(i)       "vmovups (%2), %%zmm" #i "\n\t"
#define FMA_Z(i)         "vfmadd213ps %%zmm15, %%zmm14, %%zmm" #i "\n\t"
#define FMA_CHAIN_Z(i)   "vfmadd213ps %%zmm15, %%zmm14, %%zmm0\n\t"
#define ADD_CHAIN_Z(i)   "vaddps %%zmm15, %%zmm0, %%zmm0\n\t"
#define LOAD_Z(i)        "vmovups 64*" #i "(%1), %%zmm" #i "\n\t"
#define STORE_Z(i)       "vmovups %%zmm" #i ", 64*" #i "(%1)\n\t"
#define BROADCAST_Z(i)   "vfmadd231ps 4*" #i "(%1)%{1to16%}, %%zmm14, %%zmm" #i "\n\t"
#define DIVIDE_Z(i)      "vdivps %%zmm15, %%zmm14, %%zmm" #i "\n\t"
#define USE_Z(i)         "vfmadd231ps %%zmm13, %%zmm14, %%zmm" #i "\n\t"
#define LINE_Z(line)     "vmovups 64*" #line "(%1), %%zmm13\n\t"
#define WORK_Z(line)     LINE_Z(line) EACH_8(USE_Z)
#define AHEAD_Z(line)    AHEAD(line) WORK_Z(line)
#define LINES(X)         X(0) X(1) X(2) X(3) NEXT_4_LINES
#define END_Z            "vzeroupper\n\t"

#define START_Y(i)       "vmovups (%2), %%ymm" #i "\n\t"
#define FMA_Y(i)         "vfmadd213ps %%ymm15, %%ymm14, %%ymm" #i "\n\t"
#define FMA_CHAIN_Y(i)   "vfmadd213ps %%ymm15, %%ymm14, %%ymm0\n\t"
#define ADD_CHAIN_Y(i)   "vaddps %%ymm15, %%ymm0, %%ymm0\n\t"
#define LOAD_Y(i)        "vmovups 64*" #i "(%1), %%ymm" #i "\n\t"
#define STORE_Y(i)       "vmovups %%ymm" #i ", 64*" #i "(%1)\n\t"
#define BROADCAST_Y(i)   "vbroadcastss 4*" #i "(%1), %%ymm13\n\tvfmadd231ps %%ymm13, %%ymm14, %%ymm" #i "\n\t"
#define DIVIDE_Y(i)      "vdivps %%ymm15, %%ymm14, %%ymm" #i "\n\t"
#define USE_Y(i)         "vfmadd231ps %%ymm13, %%ymm14, %%ymm" #i "\n\t"
#define LINE_Y(line)     "vmovups 64*" #line "(%1), %%ymm13\n\tvmovups 32+64*" #line "(%1), %%ymm12\n\t"
#define WORK_Y(line)     LINE_Y(line) EACH_8(USE_Y)
#define AHEAD_Y(line)    AHEAD(line) WORK_Y(line)

/* Without a fused instruction a multiply-add is two. */
#define START_X(i)       "movups (%2), %%xmm" #i "\n\t"
#define FMA_X(i)         "mulps %%xmm14, %%xmm" #i "\n\taddps %%xmm15, %%xmm" #i "\n\t"
#define FMA_CHAIN_X(i)   "mulps %%xmm14, %%xmm0\n\taddps %%xmm15, %%xmm0\n\t"
#define ADD_CHAIN_X(i)   "addps %%xmm15, %%xmm0\n\t"
#define LOAD_X(i)        "movups 64*" #i "(%1), %%xmm" #i "\n\t"
#define STORE_X(i)       "movups %%xmm" #i ", 64*" #i "(%1)\n\t"
#define BROADCAST_X(i)   "movss 4*" #i "(%1), %%xmm13\n\tshufps $0, %%xmm13, %%xmm13\n\t" \
                         "mulps %%xmm14, %%xmm13\n\taddps %%xmm13, %%xmm" #i "\n\t"
#define DIVIDE_X(i)      "movaps %%xmm14, %%xmm" #i "\n\tdivps %%xmm15, %%xmm" #i "\n\t"
#define LINE_X(line)     "movups 64*" #line "(%1), %%xmm10\n\tmovups 16+64*" #line "(%1), %%xmm11\n\t" \
                         "movups 32+64*" #line "(%1), %%xmm12\n\tmovups 48+64*" #line "(%1), %%xmm13\n\t"
#define USE_X(i)         "mulps %%xmm14, %%xmm" #i "\n\taddps %%xmm13, %%xmm" #i "\n\t"
#define WORK_X(line)     LINE_X(line) EACH_8(USE_X)
#define AHEAD_X(line)    AHEAD(line) WORK_X(line)

#define LOOPS(suffix, isa, END)                                                                        \
    LOOP(multiply_add_##suffix, isa, START_##suffix, TWICE(EACH_12(FMA_##suffix)), END)                \
    LOOP(multiply_chain_##suffix, isa, START_##suffix, EACH_8(FMA_CHAIN_##suffix), END)                \
    LOOP(add_chain_##suffix, isa, START_##suffix, EACH_8(ADD_CHAIN_##suffix), END)                     \
    LOOP(load_##suffix, isa, START_##suffix, EACH_16(LOAD_##suffix), END)                              \
    LOOP(store_##suffix, isa, START_##suffix, EACH_16(STORE_##suffix), END)                            \
    LOOP(broadcast_##suffix, isa, START_##suffix, EACH_12(BROADCAST_##suffix), END)                    \
    LOOP(divide_##suffix, isa, START_##suffix, EACH_8(DIVIDE_##suffix), END)                           \
    LOOP(stream_##suffix, isa, START_##suffix, LINES(LINE_##suffix), END)                              \
    LOOP(work_##suffix, isa, START_##suffix, LINES(WORK_##suffix), END)                                \
    LOOP(work_ahead_##suffix, isa, START_##suffix, LINES(AHEAD_##suffix), END)                         \
    static const tl_probe_loops loops_##suffix = {                                                     \
        multiply_add_##suffix, multiply_chain_##suffix, add_chain_##suffix, load_##suffix,             \
        store_##suffix, broadcast_##suffix, divide_##suffix, stream_##suffix, work_##suffix,           \
        work_ahead_##suffix                                                                            \
    };
LOOPS(Z, "avx512f", END_Z)
LOOPS(Y, "avx2,fma", END_Z)
LOOPS(X, "sse2", "")
/* clang-format on */

bool tl_probe_loops_of(tl_isa isa, tl_probe_loops *out)
{
    const tl_cpu_features *cpu = tl_cpu_host();
    switch (isa) {
    case TL_ISA_AVX512:
        *out = loops_Z;
        return tl_cpu_has(cpu, TL_CPU_AVX512F);
    case TL_ISA_AVX2:
        *out = loops_Y;
        return tl_cpu_has(cpu, TL_CPU_AVX2) && tl_cpu_has(cpu, TL_CPU_FMA);
    case TL_ISA_SSE2:
    case TL_ISA_SSE4:
        *out = loops_X;
        return true;
    case TL_ISA_NEON:
    case TL_ISA_PTX:
    case TL_ISA_COUNT:
        return false;
    }
    return false;
}

void tl_probe_forward(int64_t rounds, void *memory)
{
    for (; rounds > 0; rounds--)
        __asm__ volatile("movups %%xmm0, (%0)\n\tmovups (%0), %%xmm0\n\t"
                         "movups %%xmm0, (%0)\n\tmovups (%0), %%xmm0\n\t"
                         "movups %%xmm0, (%0)\n\tmovups (%0), %%xmm0\n\t"
                         "movups %%xmm0, (%0)\n\tmovups (%0), %%xmm0\n\t"
                         "movups %%xmm0, (%0)\n\tmovups (%0), %%xmm0\n\t"
                         "movups %%xmm0, (%0)\n\tmovups (%0), %%xmm0\n\t"
                         "movups %%xmm0, (%0)\n\tmovups (%0), %%xmm0\n\t"
                         "movups %%xmm0, (%0)\n\tmovups (%0), %%xmm0\n\t"
                         :
                         : "r"(memory)
                         : "xmm0", "memory");
}

void tl_probe_branch(int64_t rounds, void *memory)
{
    uint64_t sum = 0;
    __asm__ volatile("1:\n\ttestb $1, (%1)\n\tjz 2f\n\tadd $3, %2\n"
                     "2:\n\tinc %1\n\tdec %0\n\tjnz 1b\n\t"
                     : "+r"(rounds), "+r"(memory), "+r"(sum)
                     :
                     : "cc", "memory");
}
#else
bool tl_probe_loops_of(tl_isa isa, tl_probe_loops *out)
{
    (void)isa;
    *out = (tl_probe_loops){ 0 };
    return false;
}

void tl_probe_forward(int64_t rounds, void *memory)
{
    volatile float *x = memory;
    for (; rounds > 0; rounds--)
        for (int i = 0; i < 8; i++)
            *x = *x;
}

void tl_probe_branch(int64_t rounds, void *memory)
{
    const unsigned char *byte = memory;
    uint64_t sum = 0;
    for (; rounds > 0; rounds--) {
        if (*byte++ & 1)
            __asm__ volatile("" : "+r"(sum)); /* a jump, and no selection */
    }
}
#endif

void tl_probe_chase(int64_t rounds, void *memory)
{
    void **cursor = memory, *volatile *at = *cursor;
    for (; rounds > 0; rounds--)
        for (int i = 0; i < 8; i++)
            at = *at;
    *cursor = (void *)at;
}
