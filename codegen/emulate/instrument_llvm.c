/* codegen/emulate/instrument_llvm.c: puts a question in front of every access of memory that others might see.
 *
 *     %v = load <4 x float>, ptr addrspace(3) %p, align 16
 *  ->
 *     %q = call ptr tl_gpu_access(ptr %p, i64 what)          may end the launch
 *     %v = load <4 x float>, ptr %q, align 16
 *
 * What lies on the thread's own stack is left alone, and so are constants of the module. */
#include "codegen/emulate/module_private.h"
#include <string.h>

typedef struct {
    LLVMModuleRef module;
    LLVMContextRef context;
    LLVMTargetDataRef layout;
    LLVMBuilderRef builder;
    LLVMTypeRef check_type;
    tl_diag *diag;
} pass;

LLVMValueRef tl_emulate_address(LLVMContextRef context, uintptr_t address)
{
    LLVMValueRef number = LLVMConstInt(LLVMInt64TypeInContext(context), address, false);
    return LLVMConstIntToPtr(number, LLVMPointerTypeInContext(context, 0));
}

/* What every pointer derived from it points into, as far as that is plain. */
static LLVMValueRef find_base(LLVMValueRef pointer)
{
    for (;;) {
        bool derived = false;
        if (LLVMIsAInstruction(pointer) != NULL) {
            LLVMOpcode op = LLVMGetInstructionOpcode(pointer);
            derived = op == LLVMGetElementPtr || op == LLVMBitCast || op == LLVMAddrSpaceCast;
        } else if (LLVMIsAConstantExpr(pointer) != NULL) {
            LLVMOpcode op = LLVMGetConstOpcode(pointer);
            derived = op == LLVMGetElementPtr || op == LLVMBitCast || op == LLVMAddrSpaceCast;
        }
        if (!derived)
            return pointer;
        pointer = LLVMGetOperand(pointer, 0);
    }
}

static bool is_byval(LLVMValueRef base)
{
    LLVMValueRef function = LLVMGetParamParent(base);
    unsigned kind = LLVMGetEnumAttributeKindForName("byval", 5);
    for (unsigned i = 0; i < LLVMCountParams(function); i++)
        if (LLVMGetParam(function, i) == base)
            return LLVMGetEnumAttributeAtIndex(function, i + 1, kind) != NULL;
    return false;
}

static bool is_private(LLVMValueRef pointer)
{
    LLVMValueRef base = find_base(pointer);
    if (LLVMIsAAllocaInst(base) != NULL)
        return true;
    if (LLVMIsAArgument(base) != NULL)
        return is_byval(base);
    return LLVMIsAGlobalVariable(base) != NULL && LLVMIsGlobalConstant(base);
}

static uint32_t space_flags(LLVMValueRef pointer)
{
    unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(pointer));
    return space == 3 ? TL_ACCESS_SHARED : space == 1 ? TL_ACCESS_GLOBAL : 0;
}

static LLVMValueRef build_check(pass *p, LLVMValueRef at, LLVMValueRef pointer, uint64_t bytes,
                                unsigned align, uint32_t flags)
{
    LLVMTypeRef generic = LLVMPointerTypeInContext(p->context, 0);
    uint32_t align_log2 = align > 1 ? (uint32_t)__builtin_ctz(align) : 0;
    uint64_t what = tl_access((uint32_t)bytes, align_log2, flags | space_flags(pointer));
    LLVMPositionBuilderBefore(p->builder, at);
    LLVMValueRef arguments[2] = { LLVMBuildPointerCast(p->builder, pointer, generic, ""),
                                  LLVMConstInt(LLVMInt64TypeInContext(p->context), what, false) };
    LLVMValueRef check = tl_emulate_address(p->context, (uintptr_t)tl_gpu_access);
    return LLVMBuildCall2(p->builder, p->check_type, check, arguments, 2, "");
}

static void check_operand(pass *p, LLVMValueRef access, unsigned operand, LLVMTypeRef type,
                          unsigned align, uint32_t flags)
{
    LLVMValueRef pointer = LLVMGetOperand(access, operand);
    if (is_private(pointer))
        return;
    uint64_t bytes = LLVMStoreSizeOfType(p->layout, type);
    LLVMSetOperand(access, operand, build_check(p, access, pointer, bytes, align, flags));
}

static bool begins(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* memcpy, memset and memmove of a constant size, as LLVM makes them of copies of arrays. */
static tl_status check_bulk(pass *p, LLVMValueRef call, const char *name)
{
    bool sets = begins(name, "llvm.memset.");
    LLVMValueRef size = LLVMGetOperand(call, 2);
    LLVMValueRef to = LLVMGetOperand(call, 0), from = sets ? NULL : LLVMGetOperand(call, 1);
    if (is_private(to) && (sets || is_private(from)))
        return TL_OK;
    if (LLVMIsAConstantInt(size) == NULL)
        return tl_fail(p->diag, TL_UNSUPPORTED, "%s of a size that is not constant is not emulated",
                       name);
    uint64_t bytes = LLVMConstIntGetZExtValue(size);
    if (!is_private(to))
        to = build_check(p, call, to, bytes, 1, TL_ACCESS_WRITE);
    if (!sets && !is_private(from))
        from = build_check(p, call, from, bytes, 1, 0);
    LLVMPositionBuilderBefore(p->builder, call);
    if (sets)
        LLVMBuildMemSet(p->builder, to, LLVMGetOperand(call, 1), size, 1);
    else if (begins(name, "llvm.memcpy."))
        LLVMBuildMemCpy(p->builder, to, 1, from, 1, size);
    else
        LLVMBuildMemMove(p->builder, to, 1, from, 1, size);
    LLVMInstructionEraseFromParent(call);
    return TL_OK;
}

/* ---- vectors of which a mask says what is touched ---- */

static LLVMValueRef build_masked_check(pass *p, LLVMValueRef pointer, uint64_t bytes,
                                       uint64_t align, uint32_t flags, LLVMValueRef mask)
{
    LLVMTypeRef i64 = LLVMInt64TypeInContext(p->context),
                generic = LLVMPointerTypeInContext(p->context, 0);
    LLVMTypeRef types[3] = { generic, i64, i64 };
    uint32_t align_log2 = align > 1 ? (uint32_t)__builtin_ctzll(align) : 0;
    uint64_t what = tl_access((uint32_t)bytes, align_log2, flags | space_flags(pointer));
    LLVMValueRef arguments[3] = { LLVMBuildPointerCast(p->builder, pointer, generic, ""),
                                  LLVMConstInt(i64, what, false),
                                  LLVMBuildZExt(p->builder, mask, i64, "") };
    return LLVMBuildCall2(p->builder, LLVMFunctionType(generic, types, 3, false),
                          tl_emulate_address(p->context, (uintptr_t)tl_gpu_access_masked),
                          arguments, 3, "");
}

/* Each lane's address is asked about by itself. */
static LLVMValueRef check_lanes(pass *p, LLVMValueRef pointers, uint64_t bytes, uint64_t align,
                                uint32_t flags, LLVMValueRef mask, unsigned lanes)
{
    LLVMTypeRef i32 = LLVMInt32TypeInContext(p->context);
    LLVMValueRef all =
        LLVMGetPoison(LLVMVectorType(LLVMPointerTypeInContext(p->context, 0), lanes));
    for (unsigned i = 0; i < lanes; i++) {
        LLVMValueRef at = LLVMConstInt(i32, i, false);
        LLVMValueRef checked =
            build_masked_check(p, LLVMBuildExtractElement(p->builder, pointers, at, ""), bytes,
                               align, flags, LLVMBuildExtractElement(p->builder, mask, at, ""));
        all = LLVMBuildInsertElement(p->builder, all, checked, at, "");
    }
    return all;
}

/* llvm.masked.load(p, align, mask, else), .store(v, p, align, mask), and the same with a vector of addresses: gather, scatter. */
static tl_status check_masked(pass *p, LLVMValueRef call, const char *name)
{
    bool writes = begins(name, "llvm.masked.store.") || begins(name, "llvm.masked.scatter.");
    bool by_lane = begins(name, "llvm.masked.gather.") || begins(name, "llvm.masked.scatter.");
    const char *plain = writes ? (by_lane ? "llvm.masked.scatter" : "llvm.masked.store")
                               : (by_lane ? "llvm.masked.gather" : "llvm.masked.load");
    if (!begins(name, plain))
        return tl_fail(p->diag, TL_UNSUPPORTED, "%s is not emulated", name);
    unsigned at = writes ? 1 : 0;
    LLVMValueRef values[4];
    for (unsigned i = 0; i < 4; i++)
        values[i] = LLVMGetOperand(call, i);
    LLVMTypeRef vector = writes ? LLVMTypeOf(values[0]) : LLVMTypeOf(call);
    unsigned lanes = LLVMGetVectorSize(vector);
    uint64_t bytes = LLVMStoreSizeOfType(p->layout, LLVMGetElementType(vector));
    uint64_t align = LLVMConstIntGetZExtValue(values[at + 1]);
    LLVMValueRef mask = values[at + 2];
    uint32_t flags = writes ? TL_ACCESS_WRITE : 0;
    if (lanes > 64)
        return tl_fail(p->diag, TL_UNSUPPORTED, "%s has more than 64 lanes", name);
    LLVMPositionBuilderBefore(p->builder, call);
    if (by_lane) {
        values[at] = check_lanes(p, values[at], bytes, align, flags, mask, lanes);
    } else {
        if (is_private(values[at]))
            return TL_OK;
        LLVMValueRef bits =
            LLVMBuildBitCast(p->builder, mask, LLVMIntTypeInContext(p->context, lanes), "");
        values[at] =
            build_masked_check(p, values[at], bytes, align < bytes ? align : bytes, flags, bits);
    }
    LLVMTypeRef overloads[2] = { vector, LLVMTypeOf(values[at]) };
    LLVMValueRef f =
        LLVMGetIntrinsicDeclaration(p->module, LLVMLookupIntrinsicID(plain, strlen(plain)),
                                    overloads, 2);
    LLVMValueRef made = LLVMBuildCall2(p->builder, LLVMGlobalGetValueType(f), f, values, 4, "");
    if (!writes)
        LLVMReplaceAllUsesWith(call, made);
    LLVMInstructionEraseFromParent(call);
    return TL_OK;
}

static tl_status check_call(pass *p, LLVMValueRef call)
{
    LLVMValueRef callee = LLVMGetCalledValue(call);
    if (LLVMIsAInlineAsm(callee) != NULL)
        return tl_fail(p->diag, TL_UNSUPPORTED,
                       "inline assembly outside of a dev_ function is not emulated");
    if (LLVMIsAFunction(callee) == NULL)
        return TL_OK; /* what the emulator itself put there, or a pointer that verification refuses */
    size_t length;
    const char *name = LLVMGetValueName2(callee, &length);
    if (begins(name, "llvm.memset.") || begins(name, "llvm.memcpy.") ||
        begins(name, "llvm.memmove."))
        return check_bulk(p, call, name);
    return begins(name, "llvm.masked.") ? check_masked(p, call, name) : TL_OK;
}

static tl_status check_instruction(pass *p, LLVMValueRef i)
{
    LLVMOpcode op = LLVMGetInstructionOpcode(i);
    if (op == LLVMLoad)
        check_operand(p, i, 0, LLVMTypeOf(i), LLVMGetAlignment(i), 0);
    else if (op == LLVMStore)
        check_operand(p, i, 1, LLVMTypeOf(LLVMGetOperand(i, 0)), LLVMGetAlignment(i),
                      TL_ACCESS_WRITE);
    else if (op == LLVMAtomicRMW || op == LLVMAtomicCmpXchg)
        check_operand(p, i, 0, LLVMTypeOf(LLVMGetOperand(i, 1)), LLVMGetAlignment(i),
                      TL_ACCESS_WRITE | TL_ACCESS_ATOMIC);
    else if (op == LLVMCall)
        return check_call(p, i);
    return TL_OK;
}

tl_status tl_emulate_instrument(LLVMModuleRef module, LLVMValueRef function, tl_diag *diag)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMTypeRef generic = LLVMPointerTypeInContext(context, 0);
    LLVMTypeRef arguments[2] = { generic, LLVMInt64TypeInContext(context) };
    pass p = { .module = module,
               .context = context,
               .layout = LLVMGetModuleDataLayout(module),
               .builder = LLVMCreateBuilderInContext(context),
               .check_type = LLVMFunctionType(generic, arguments, 2, false),
               .diag = diag };
    tl_status status = TL_OK;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b != NULL && status == TL_OK;
         b = LLVMGetNextBasicBlock(b)) {
        LLVMValueRef next;
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i != NULL && status == TL_OK; i = next) {
            next = LLVMGetNextInstruction(i);
            status = check_instruction(&p, i);
        }
    }
    LLVMDisposeBuilder(p.builder);
    return status;
}
