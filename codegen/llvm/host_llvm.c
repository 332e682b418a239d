/* codegen/llvm/host_llvm.c: what LLVM says of the machine we run on. */
#include "codegen/llvm/llvm_private.h"
#include <string.h>

static tl_status copy(const char *what, const char *from, char *to, size_t size, tl_diag *diag)
{
    if (strlen(from) >= size)
        return tl_fail(diag, TL_INTERNAL, "this machine's %s is too long: %s", what, from);
    memcpy(to, from, strlen(from) + 1);
    return TL_OK;
}

tl_status tl_codegen_host(char triple[64], char cpu[32], char features[2048], tl_diag *diag)
{
    TL_TRY(tl_llvm_start(diag));
    char *host_triple = LLVMGetDefaultTargetTriple(), *host_cpu = LLVMGetHostCPUName();
    char *host_features = LLVMGetHostCPUFeatures();
    tl_status status = copy("triple", host_triple, triple, 64, diag);
    if (status == TL_OK)
        status = copy("CPU name", host_cpu, cpu, 32, diag);
    if (status == TL_OK)
        status = copy("list of features", host_features, features, 2048, diag);
    LLVMDisposeMessage(host_triple);
    LLVMDisposeMessage(host_cpu);
    LLVMDisposeMessage(host_features);
    return status;
}
