/* tests/bench/without_avx512.c: a processor without AVX-512 where there is one with it (make bench-peers WITHOUT_AVX512=1).
 *
 * A library to preload (LD_PRELOAD): it lets the kernel trap CPUID (arch_prctl(2), ARCH_SET_CPUID) and answers without the
 * bits of AVX-512 and AMX, so that all who ask the processor, tilth and peers alike, take the code that they have for AVX2.
 * It begins before main, in each process that inherits it; the C library has chosen its memcpy by then. Where CPUID cannot be
 * trapped, the program ends with status 3 and says so: a comparison must not go on without.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { SET_CPUID = 0x1012 /* ARCH_SET_CPUID of asm/prctl.h */, CPUID_BYTES = 2 };

typedef struct {
    uint32_t leaf, subleaf;
    uint32_t eax, ebx, ecx, edx; /* bits to hide */
} hidden;

static struct sigaction before;

/* Intel's manual, volume 2A, CPUID. */
static const hidden hides[] = {
    /* F, DQ, IFMA, PF, ER, CD, BW, VL; VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ; 4VNNIW, 4FMAPS, VP2INTERSECT, AMX-BF16, FP16,
     * AMX-TILE, AMX-INT8 */
    { 7, 0, 0, 0xdc230000, 0x00005842, 0x03c0010c },
    { 7, 1, 0x00200020, 0, 0, 0x00080100 }, /* BF16, AMX-FP16; AMX-COMPLEX, AVX10 */
    { 13, 0, 0x000600e0, 0, 0, 0 },         /* the states that XSAVE keeps for them */
};

static void cpuid(uint32_t leaf, uint32_t subleaf, uint32_t out[4])
{
    __asm__ volatile("cpuid"
                     : "=a"(out[0]), "=b"(out[1]), "=c"(out[2]), "=d"(out[3])
                     : "a"(leaf), "c"(subleaf));
}

static void at_fault(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *code = (const unsigned char *)(uintptr_t)registers[REG_RIP];
    if (info->si_code != SI_KERNEL || code[0] != 0x0f ||
        code[1] != 0xa2) { /* a fault of the program's own: as before us */
        sigaction(number, &before, NULL);
        return;
    }
    int saved = errno;
    uint32_t leaf = (uint32_t)registers[REG_RAX], subleaf = (uint32_t)registers[REG_RCX], out[4];
    syscall(SYS_arch_prctl, SET_CPUID, 1L);
    cpuid(leaf, subleaf, out);
    syscall(SYS_arch_prctl, SET_CPUID, 0L);
    for (size_t i = 0; i < sizeof hides / sizeof *hides; i++)
        if (hides[i].leaf == leaf && hides[i].subleaf == subleaf) {
            out[0] &= ~hides[i].eax;
            out[1] &= ~hides[i].ebx;
            out[2] &= ~hides[i].ecx;
            out[3] &= ~hides[i].edx;
        }
    registers[REG_RAX] = out[0];
    registers[REG_RBX] = out[1];
    registers[REG_RCX] = out[2];
    registers[REG_RDX] = out[3];
    registers[REG_RIP] += CPUID_BYTES;
    errno = saved;
}

__attribute__((constructor)) static void hide(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = at_fault;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER;
    if (sigaction(SIGSEGV, &action, &before) != 0 || syscall(SYS_arch_prctl, SET_CPUID, 0L) != 0) {
        fprintf(stderr, "without_avx512: this machine cannot trap CPUID: %s\n", strerror(errno));
        _exit(3);
    }
}
