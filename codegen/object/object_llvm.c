/* codegen/object/object_llvm.c: a module through passes, into an object, assembly or IR text. */
#include "codegen/llvm/llvm_private.h"
#include <llvm-c/Transforms/PassBuilder.h>
#include <string.h>

tl_status tl_llvm_optimise(LLVMModuleRef module, const char *passes, LLVMTargetMachineRef machine,
                           tl_diag *diag)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(module, passes, machine, options);
    LLVMDisposePassBuilderOptions(options);
    return tl_llvm_status(error, "optimising", diag);
}

static tl_status written(const tl_text *out, tl_diag *diag)
{
    return out->failed ? tl_fail(diag, TL_NO_MEMORY, "no memory for the generated code") : TL_OK;
}

tl_status tl_llvm_print(LLVMModuleRef module, tl_text *out, tl_diag *diag)
{
    char *text = LLVMPrintModuleToString(module);
    tl_text_add(out, text);
    LLVMDisposeMessage(text);
    return written(out, diag);
}

tl_status tl_llvm_generate(LLVMModuleRef module, LLVMTargetMachineRef machine,
                           LLVMCodeGenFileType type, tl_text *out, tl_diag *diag)
{
    LLVMMemoryBufferRef buffer = NULL;
    char *message = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, type, &message, &buffer)) {
        tl_status status = tl_fail(diag, TL_INTERNAL, "LLVM, generating code: %s", message);
        LLVMDisposeMessage(message);
        return status;
    }
    tl_text_add_bytes(out, LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
    LLVMDisposeMemoryBuffer(buffer);
    return written(out, diag);
}
