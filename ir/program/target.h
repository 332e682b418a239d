/* ir/program/target.h: what we compile for: plain data with a text form. The driver fills it from the runtime's
 * probe; nobody below asks the machine anything. */
#ifndef TL_IR_PROGRAM_TARGET_H
#define TL_IR_PROGRAM_TARGET_H
#include <stdbool.h>
#include <stdint.h>
#include "runtime/base/dtype.h"
#include "runtime/base/status.h"
#include "runtime/base/text.h"

typedef enum {
#define ISA(name, text, vector_bits, registers, masks, fma, features) TL_ISA_##name,
#include "ir/program/target.def"
#undef ISA
    TL_ISA_COUNT
} tl_isa;

typedef struct {
    const char *text;
    int vector_bits, vector_registers;
    bool has_masks, has_fma;
    const char *features;
} tl_isa_info;
extern const tl_isa_info tl_isa_infos[TL_ISA_COUNT];

typedef struct tl_machine tl_machine; /* ir/program/machine.h */

/* What a block of a GPU's threads may use, and how many fit on a multiprocessor (SM). */
typedef struct {
    int sm;                          /* 80 of "sm_80", 90 of "sm_90a" */
    bool is_exact;                   /* "sm_90a": with instructions that later ones have not */
    int threads_sm, blocks_sm;       /* at most, on one SM; a block has at most 1024 threads */
    int registers_sm;                /* of 32 bits; a thread has at most 255 */
    int64_t shared_block, shared_sm; /* bytes of shared memory, of a block at most and of an SM */
} tl_gpu_limits;
#define TL_WARP_LANES        32
#define TL_MAX_BLOCK_THREADS 1024

typedef struct {
    tl_isa isa;
    char triple[64];     /* "x86_64-pc-linux-gnu" */
    char cpu[32];        /* LLVM's name: "icelake-server", "znver5", "sm_90a" */
    char features[2048]; /* LLVM's feature string */
    bool has_vnni, has_bf16_dot;
    int64_t l1_bytes, l2_bytes, l3_bytes; /* data caches: L1 and L2 of one core, L3 as shared */
    int cores;         /* that the process may use; of a GPU: its multiprocessors */
    tl_gpu_limits gpu; /* of a GPU */
    /* What the analytic model goes by; NULL: the built-in profile. In no text, fingerprint or object's key: what was
     * measured of a machine says which schedule is chosen, and not what it is compiled for. */
    const tl_machine *machine;
    /* Which device of this machine it is, as that calls itself; "": none, or any of the kind. In no text or object's key, but in
     * the fingerprint of what was measured. */
    char device[80];
} tl_target;

bool tl_target_is_gpu(const tl_target *t);
/* Elements in a vector register, at least 1. */
int tl_target_lanes(const tl_target *t, tl_dtype dtype);
/* "isa=AVX512 triple=... cpu=... features=... l1=49152 l2=... l3=... cores=2 ..." and back. */
void tl_target_print(const tl_target *t, tl_text *out);
tl_status tl_target_parse(const char *text, tl_target *out, tl_diag *diag);
/* A generic machine of that ISA name ("x86-64-v3"), for --target and for tests; of a GPU with the generation behind a comma
 * ("cuda,sm_80"; "cuda" and "nvptx64" are sm_90). TL_BAD_ARGUMENT: it is no target's name; TL_UNSUPPORTED: of a generation
 * that no code is made for. Both say which are known. */
tl_status tl_target_named(const char *name, tl_target *out, tl_diag *diag);
/* The newest generation for which there is code that a device of compute capability major.minor runs: "sm_90a" for 9.0,
 * "sm_90" for what is newer. NULL: it is older than all. */
const char *tl_target_gpu_arch(int major, int minor);

#endif
