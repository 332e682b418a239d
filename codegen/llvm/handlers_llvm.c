/* codegen/llvm/handlers_llvm.c: LLVM must not end the process, and speaks only through us. */
#include "codegen/llvm/llvm_private.h"
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static _Thread_local tl_llvm_guard *current;

/* Comes back only when nobody is guarding, which LLVM answers by ending the process: every call of ours into LLVM
 * that may fail so is guarded. */
static void fatal(const char *reason)
{
    if (current == NULL)
        return;
    snprintf(current->text, sizeof current->text, "%s", reason);
    longjmp(current->escape, 1);
}

static atomic_bool own_process;

void tl_codegen_own_process(void)
{
    atomic_store(&own_process, true);
}

bool tl_codegen_owns_process(void)
{
    return atomic_load(&own_process);
}

static void start(void)
{
    static const char *const options[] = { "tilth", "-disable-lsr" };
    if (tl_codegen_owns_process())
        LLVMParseCommandLineOptions(2, options, NULL);
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    LLVMInstallFatalErrorHandler(fatal);
}

tl_status tl_llvm_start(tl_diag *diag)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    TL_TRY(tl_llvm_load(diag));
    pthread_once(&once, start);
    return TL_OK;
}

tl_status tl_codegen_load(tl_diag *diag)
{
    return tl_llvm_start(diag);
}

void tl_llvm_enter(tl_llvm_guard *guard)
{
    guard->text[0] = '\0';
    guard->outer = current;
    current = guard;
}

void tl_llvm_leave(tl_llvm_guard *guard)
{
    current = guard->outer;
}

static void diagnose(LLVMDiagnosticInfoRef info, void *context)
{
    char *text = context;
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || text[0] != '\0')
        return;
    char *description = LLVMGetDiagInfoDescription(info);
    snprintf(text, 512, "%s", description);
    LLVMDisposeMessage(description);
}

void tl_llvm_collect(LLVMContextRef context, char *text)
{
    LLVMContextSetDiagnosticHandler(context, diagnose, text);
}

tl_status tl_llvm_status(LLVMErrorRef error, const char *doing, tl_diag *diag)
{
    if (error == NULL)
        return TL_OK;
    char *message = LLVMGetErrorMessage(error);
    tl_status status = tl_fail(diag, TL_INTERNAL, "LLVM, %s: %s", doing, message);
    LLVMDisposeErrorMessage(message);
    return status;
}
