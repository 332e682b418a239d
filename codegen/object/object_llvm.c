/* codegen/object/object_llvm.c: a module through the passes into an object, assembly or IR text.
 *
 * The pass list is for code that is already explicit vectors: registers out of stack slots, common subexpressions,
 * invariants out of loops. Higher levels buy nothing and cost two to four times the time. */
#include "codegen/llvm/llvm_private.h"
#include <llvm-c/Transforms/PassBuilder.h>
#include <string.h>

static const char pass_list[] =
    "function(sroa,early-cse,instcombine<no-verify-fixpoint>,loop-mssa(licm),early-cse)";

tl_status tl_llvm_optimise(LLVMModuleRef module, LLVMTargetMachineRef machine, tl_diag *diag)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(module, pass_list, machine, options);
    LLVMDisposePassBuilderOptions(options);
    return tl_llvm_status(error, "optimising", diag);
}

tl_status tl_llvm_emit(LLVMModuleRef module, LLVMTargetMachineRef machine, tl_emit what,
                       tl_text *out, tl_diag *diag)
{
    if (what == TL_EMIT_LLVM) {
        char *text = LLVMPrintModuleToString(module);
        tl_text_add(out, text);
        LLVMDisposeMessage(text);
    } else {
        LLVMMemoryBufferRef buffer = NULL;
        char *message = NULL;
        LLVMCodeGenFileType type = what == TL_EMIT_OBJECT ? LLVMObjectFile : LLVMAssemblyFile;
        if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, type, &message, &buffer)) {
            tl_status status = tl_fail(diag, TL_INTERNAL, "LLVM, generating code: %s", message);
            LLVMDisposeMessage(message);
            return status;
        }
        tl_text_add_bytes(out, LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
        LLVMDisposeMemoryBuffer(buffer);
    }
    return out->failed ? tl_fail(diag, TL_NO_MEMORY, "no memory for the generated code") : TL_OK;
}
