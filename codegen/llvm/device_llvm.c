/* codegen/llvm/device_llvm.c: what only a GPU's hardware does and LLVM has no intrinsic for is a call of a function dev_*
 * (device_functions.def) until code is generated: so that the same module can be run where there is no GPU. Here each such
 * function gets its instructions, and goes where it is called. */
#include <string.h>
#include "codegen/llvm/llvm_private.h"

typedef struct {
    const char *name, *instructions, *operands;
} device_function;

static const device_function functions[] = {
#define DEVICE(name, instructions, operands) { "dev_" #name, instructions, operands },
#include "codegen/llvm/device_functions.def"
#undef DEVICE
};

static bool find(const char *name, tl_text *code, tl_text *operands)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (strcmp(functions[i].name, name) == 0) {
            tl_text_add(code, functions[i].instructions);
            tl_text_add(operands, functions[i].operands);
            return true;
        }
    return tl_llvm_device_text(name, code, operands);
}

static LLVMAttributeRef attribute(LLVMContextRef context, const char *name)
{
    return LLVMCreateEnumAttribute(context, LLVMGetEnumAttributeKindForName(name, strlen(name)), 0);
}

/* The function's body: one piece of assembly on its parameters. Pointers to shared memory are 32 bits there. */
static void fill(LLVMModuleRef module, LLVMValueRef f, const tl_text *instructions,
                 const tl_text *operands)
{
    enum { MOST_OPERANDS = 160, SHARED_SPACE = 3 };
    LLVMContextRef c = LLVMGetModuleContext(module);
    LLVMTypeRef result = LLVMGetReturnType(LLVMGlobalGetValueType(f)), types[MOST_OPERANDS];
    LLVMValueRef args[MOST_OPERANDS];
    unsigned count = LLVMCountParams(f);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(c);
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(c, f, ""));
    for (unsigned i = 0; i < count && i < MOST_OPERANDS; i++) {
        args[i] = LLVMGetParam(f, i);
        types[i] = LLVMTypeOf(args[i]);
        bool is_shared = LLVMGetTypeKind(types[i]) == LLVMPointerTypeKind &&
                         LLVMGetPointerAddressSpace(types[i]) == SHARED_SPACE;
        if (is_shared) {
            types[i] = LLVMInt32TypeInContext(c);
            args[i] = LLVMBuildPtrToInt(b, args[i], types[i], "");
        }
    }
    LLVMTypeRef type = LLVMFunctionType(result, types, count, false);
    LLVMValueRef code =
        LLVMGetInlineAsm(type, tl_text_get(instructions), instructions->size, tl_text_get(operands),
                         operands->size, true, false, LLVMInlineAsmDialectATT, false);
    LLVMValueRef v = LLVMBuildCall2(b, type, code, args, count, "");
    LLVMAddCallSiteAttribute(v, LLVMAttributeFunctionIndex, attribute(c, "convergent"));
    LLVMAddCallSiteAttribute(v, LLVMAttributeFunctionIndex, attribute(c, "nounwind"));
    if (LLVMGetTypeKind(result) == LLVMVoidTypeKind)
        LLVMBuildRetVoid(b);
    else
        LLVMBuildRet(b, v);
    LLVMDisposeBuilder(b);
    LLVMSetLinkage(f, LLVMInternalLinkage);
    LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex, attribute(c, "alwaysinline"));
}

tl_status tl_llvm_fill_device(LLVMModuleRef module, LLVMTargetMachineRef machine, tl_diag *diag)
{
    int filled = 0;
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f != NULL; f = LLVMGetNextFunction(f)) {
        size_t length;
        const char *name = LLVMGetValueName2(f, &length);
        if (!LLVMIsDeclaration(f) || strncmp(name, "dev_", 4) != 0)
            continue;
        tl_text code = { 0 }, operands = { 0 };
        tl_status status =
            find(name, &code, &operands)
                ? TL_OK
                : tl_fail(diag, TL_INTERNAL, "there are no instructions for %s", name);
        if (code.failed || operands.failed)
            status = tl_fail(diag, TL_NO_MEMORY, "no memory for the instructions of %s", name);
        if (status == TL_OK)
            fill(module, f, &code, &operands);
        tl_text_free(&code);
        tl_text_free(&operands);
        TL_TRY(status);
        filled++;
    }
    return filled == 0 ? TL_OK : tl_llvm_optimise(module, "always-inline,globaldce", machine, diag);
}
