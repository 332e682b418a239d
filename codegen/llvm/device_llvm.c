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

static const device_function *find(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (strcmp(functions[i].name, name) == 0)
            return &functions[i];
    return NULL;
}

static LLVMAttributeRef attribute(LLVMContextRef context, const char *name)
{
    return LLVMCreateEnumAttribute(context, LLVMGetEnumAttributeKindForName(name, strlen(name)), 0);
}

/* The function's body: one piece of assembly on its parameters. Pointers to shared memory are 32 bits there. */
static void fill(LLVMModuleRef module, LLVMValueRef f, const device_function *d)
{
    enum { MOST_OPERANDS = 32, SHARED_SPACE = 3 };
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
        LLVMGetInlineAsm(type, d->instructions, strlen(d->instructions), d->operands,
                         strlen(d->operands), true, false, LLVMInlineAsmDialectATT, false);
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
        const device_function *d = find(name);
        if (d == NULL)
            return tl_fail(diag, TL_INTERNAL, "there are no instructions for %s", name);
        fill(module, f, d);
        filled++;
    }
    return filled == 0 ? TL_OK : tl_llvm_optimise(module, "always-inline,globaldce", machine, diag);
}
