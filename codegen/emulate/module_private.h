/* codegen/emulate/module_private.h: a loaded module, and what makes it one. */
#ifndef TL_CODEGEN_EMULATE_MODULE_PRIVATE_H
#define TL_CODEGEN_EMULATE_MODULE_PRIVATE_H
#include "codegen/emulate/emulate_private.h"
#include "codegen/llvm/llvm_private.h"

typedef struct {
    const char *name;
    int argument_count;
    int64_t most_threads, exact_threads; /* of a block, from the module; 0: it does not say */
    void (*entry)(void *const *arguments);
} tl_emulated_kernel;

struct tl_emulated {
    tl_arena *arena;
    tl_jit *jit;
    tl_jit_kernel *code;
    int kernel_count, kernel_capacity;
    tl_emulated_kernel *kernels;
    int64_t static_bytes, dynamic_at; /* of shared memory; where what a launch asks for begins */
    size_t stack_bytes;
    bool flushes; /* numbers below the smallest normal one count as zero */
};

/* rewrite_llvm.c: makes the module one of this machine. The function "emulated_N" calls kernel N. */
tl_status tl_emulate_rewrite(tl_emulated *out, LLVMModuleRef module, LLVMTargetMachineRef machine,
                             const tl_target *host, tl_diag *diag);
/* instrument_llvm.c: a call of tl_gpu_access in front of every access that others might see. */
tl_status tl_emulate_instrument(LLVMModuleRef module, LLVMValueRef function, tl_diag *diag);
/* A function of ours as a value of the module: its address. */
LLVMValueRef tl_emulate_address(LLVMContextRef context, uintptr_t address);

#endif
