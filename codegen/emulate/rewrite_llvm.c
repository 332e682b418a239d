/* codegen/emulate/rewrite_llvm.c: a module for NVPTX becomes one for this machine.
 *
 *   - a function of device_calls.def gets a body that hands its arguments to C, as an array of i64, and takes the results
 *     from another; whatever body it had (inline assembly) is dropped
 *   - variables in shared memory become addresses in the block's window
 *   - accesses are checked (instrument_llvm.c)
 *   - "emulated_N(arguments)" calls kernel N with what the array's elements point at */
#include "codegen/emulate/module_private.h"
#include <llvm-c/Analysis.h>
#include <stdio.h>
#include <string.h>
#include "runtime/base/array.h"

typedef struct {
    tl_emulated *out;
    LLVMModuleRef module;
    LLVMContextRef context;
    LLVMBuilderRef builder;
    LLVMTypeRef i64, generic;
    tl_diag *diag;
} rewrite;

static const char *name_of(LLVMValueRef value)
{
    size_t length;
    return LLVMGetValueName2(value, &length);
}

static bool begins(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_device_call(const char *name)
{
    return begins(name, "llvm.nvvm.") || begins(name, "dev_");
}

/* ---- what a GPU alone has ---- */

static void drop_attributes(LLVMValueRef function)
{
    for (unsigned i = 0; i <= LLVMCountParams(function) + 1; i++) {
        LLVMAttributeIndex at =
            i <= LLVMCountParams(function) ? i : (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
        LLVMAttributeRef attributes[64];
        unsigned count = LLVMGetAttributeCountAtIndex(function, at);
        if (count > 64)
            continue;
        LLVMGetAttributesAtIndex(function, at, attributes);
        for (unsigned k = 0; k < count; k++)
            if (LLVMIsEnumAttribute(attributes[k])) {
                LLVMRemoveEnumAttributeAtIndex(function, at,
                                               LLVMGetEnumAttributeKind(attributes[k]));
            } else if (LLVMIsStringAttribute(attributes[k])) {
                unsigned length;
                const char *kind = LLVMGetStringAttributeKind(attributes[k], &length);
                LLVMRemoveStringAttributeAtIndex(function, at, kind, length);
            }
    }
}

static void add_attribute(rewrite *r, LLVMValueRef function, const char *name, uint64_t value)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(r->context, kind, value));
}

/* Any value of at most 8 bytes as an i64. */
static LLVMValueRef to_bits(rewrite *r, LLVMValueRef value)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    if (kind == LLVMPointerTypeKind)
        return LLVMBuildPtrToInt(r->builder, value, r->i64, "");
    unsigned bits = (unsigned)LLVMSizeOfTypeInBits(LLVMGetModuleDataLayout(r->module), type);
    if (kind != LLVMIntegerTypeKind)
        value = LLVMBuildBitCast(r->builder, value, LLVMIntTypeInContext(r->context, bits), "");
    return bits < 64 ? LLVMBuildZExt(r->builder, value, r->i64, "") : value;
}

static LLVMValueRef slot(rewrite *r, LLVMValueRef array, unsigned i)
{
    LLVMValueRef index = LLVMConstInt(r->i64, i, false);
    return LLVMBuildGEP2(r->builder, r->i64, array, &index, 1, "");
}

static LLVMValueRef take_results(rewrite *r, LLVMTypeRef type, LLVMValueRef array)
{
    if (LLVMGetTypeKind(type) != LLVMStructTypeKind)
        return LLVMBuildLoad2(r->builder, type, array, "");
    LLVMValueRef all = LLVMGetUndef(type);
    for (unsigned i = 0; i < LLVMCountStructElementTypes(type); i++)
        all = LLVMBuildInsertValue(r->builder, all,
                                   LLVMBuildLoad2(r->builder, LLVMStructGetTypeAtIndex(type, i),
                                                  slot(r, array, i), ""),
                                   i, "");
    return all;
}

/* What every call goes through: the thread knows where it is. */
static void run_call(const tl_gpu_call *call, const int64_t *in, int64_t *out)
{
    tl_gpu_thread *t = tl_gpu_current->running;
    const tl_gpu_call *outer = t->call;
    t->call = call;
    if (++t->steps > t->block->team->launch->max_steps)
        tl_gpu_fail(t, TL_BUDGET, "has taken %lld steps and not ended", (long long)t->steps - 1);
    call->run(t, call, in, out);
    t->call = outer;
}

static void build_body(rewrite *r, LLVMValueRef function, const tl_gpu_call *call)
{
    LLVMTypeRef type = LLVMGlobalGetValueType(function), result = LLVMGetReturnType(type);
    LLVMPositionBuilderAtEnd(r->builder, LLVMAppendBasicBlockInContext(r->context, function, ""));
    unsigned in_count = (unsigned)call->argument_count,
             out_count = (unsigned)(call->result_bytes + 7) / 8;
    out_count = (unsigned)call->result_count > out_count ? (unsigned)call->result_count : out_count;
    LLVMValueRef in = LLVMBuildAlloca(r->builder, LLVMArrayType2(r->i64, in_count + 1), "");
    LLVMValueRef out = LLVMBuildAlloca(r->builder, LLVMArrayType2(r->i64, out_count + 1), "");
    LLVMSetAlignment(out, 16);
    for (unsigned i = 0; i < in_count; i++)
        LLVMBuildStore(r->builder, to_bits(r, LLVMGetParam(function, i)), slot(r, in, i));
    LLVMTypeRef arguments[3] = { r->generic, r->generic, r->generic };
    LLVMValueRef values[3] = { tl_emulate_address(r->context, (uintptr_t)call), in, out };
    LLVMBuildCall2(r->builder,
                   LLVMFunctionType(LLVMVoidTypeInContext(r->context), arguments, 3, false),
                   tl_emulate_address(r->context, (uintptr_t)run_call), values, 3, "");
    if (LLVMGetTypeKind(result) == LLVMVoidTypeKind)
        LLVMBuildRetVoid(r->builder);
    else
        LLVMBuildRet(r->builder, take_results(r, result, out));
}

static tl_status check_types(rewrite *r, LLVMValueRef function, tl_gpu_call *call)
{
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(r->module);
    LLVMTypeRef result = LLVMGetReturnType(LLVMGlobalGetValueType(function));
    call->argument_count = (int)LLVMCountParams(function);
    for (unsigned i = 0; i < LLVMCountParams(function); i++)
        if (LLVMSizeOfTypeInBits(layout, LLVMTypeOf(LLVMGetParam(function, i))) > 64)
            return tl_fail(r->diag, TL_UNSUPPORTED, "argument %u of %s has more than 64 bits", i,
                           call->name);
    if (LLVMGetTypeKind(result) == LLVMStructTypeKind) {
        call->result_count = (int)LLVMCountStructElementTypes(result);
        for (int i = 0; i < call->result_count; i++)
            if (LLVMSizeOfTypeInBits(layout, LLVMStructGetTypeAtIndex(result, (unsigned)i)) > 64)
                return tl_fail(r->diag, TL_UNSUPPORTED, "result %d of %s has more than 64 bits", i,
                               call->name);
    } else if (LLVMGetTypeKind(result) != LLVMVoidTypeKind) {
        call->result_count = 1;
        call->result_bytes = (int64_t)LLVMStoreSizeOfType(layout, result);
        if (call->result_bytes > 16)
            return tl_fail(r->diag, TL_UNSUPPORTED, "%s gives more than 16 bytes", call->name);
    }
    return TL_OK;
}

static tl_status replace_device_call(rewrite *r, LLVMValueRef function)
{
    tl_gpu_call *call = TL_NEW(r->out->arena, tl_gpu_call);
    TL_TRY(tl_gpu_call_find(r->out->arena, name_of(function), call, r->diag));
    TL_TRY(check_types(r, function, call));
    for (LLVMBasicBlockRef b; (b = LLVMGetFirstBasicBlock(function)) != NULL;)
        LLVMDeleteBasicBlock(b);
    const char *name = tl_arena_format(r->out->arena, "call_%s", call->name);
    LLVMSetValueName2(function, name, strlen(name)); /* an intrinsic no longer */
    drop_attributes(function);
    add_attribute(r, function, "noinline", 0);
    add_attribute(r, function, "nounwind", 0);
    if (call->pure) { /* it ends, and tells the same: `memory(none)` */
        add_attribute(r, function, "willreturn", 0);
        add_attribute(r, function, "memory", 0);
    } else {
        add_attribute(r, function, "convergent", 0);
    }
    LLVMSetLinkage(function, LLVMInternalLinkage);
    LLVMSetFunctionCallConv(function, LLVMCCallConv);
    build_body(r, function, call);
    return TL_OK;
}

/* ---- shared memory ---- */

static int64_t round_up(int64_t n, int64_t align)
{
    return (n + align - 1) / align * align;
}

static void place_shared(rewrite *r, LLVMValueRef global, int64_t at)
{
    LLVMValueRef number = LLVMConstInt(r->i64, TL_SHARED_WINDOW + (uint64_t)at, false);
    LLVMReplaceAllUsesWith(global, LLVMConstIntToPtr(number, LLVMTypeOf(global)));
}

/* Variables without a size begin where the others end: dynamic shared memory. */
static tl_status lay_out_shared(rewrite *r)
{
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(r->module);
    int64_t at = 0, dynamic_align = 16;
    for (int pass = 0; pass < 2; pass++) {
        bool dynamic = pass == 1;
        if (dynamic)
            r->out->dynamic_at = at = round_up(at, dynamic_align);
        LLVMValueRef next;
        for (LLVMValueRef g = LLVMGetFirstGlobal(r->module); g != NULL; g = next) {
            next = LLVMGetNextGlobal(g);
            if (LLVMGetPointerAddressSpace(LLVMTypeOf(g)) != 3)
                continue;
            int64_t bytes = (int64_t)LLVMABISizeOfType(layout, LLVMGlobalGetValueType(g));
            int64_t align = LLVMGetAlignment(g);
            align = align > 0 ? align
                              : (int64_t)LLVMABIAlignmentOfType(layout, LLVMGlobalGetValueType(g));
            if ((bytes == 0) != dynamic) {
                dynamic_align = bytes == 0 && align > dynamic_align ? align : dynamic_align;
                continue;
            }
            if (bytes > TL_GPU_SHARED || at > TL_GPU_SHARED - bytes)
                return tl_fail(r->diag, TL_UNSUPPORTED,
                               "the module has more than %d bytes of shared memory", TL_GPU_SHARED);
            at = dynamic ? at : round_up(at, align);
            place_shared(r, g, at);
            at += bytes;
            LLVMDeleteGlobal(g);
        }
        if (!dynamic)
            r->out->static_bytes = at;
    }
    return TL_OK;
}

/* ---- kernels ---- */

/* !nvvm.annotations: { function, "name", value, ... } */
static void read_annotations(rewrite *r, LLVMValueRef function, tl_emulated_kernel *k,
                             bool *is_kernel)
{
    enum { MOST = 64, FIELDS = 64 };
    LLVMValueRef notes[MOST], fields[FIELDS];
    unsigned count = LLVMGetNamedMetadataNumOperands(r->module, "nvvm.annotations");
    if (count > MOST)
        return;
    LLVMGetNamedMetadataOperands(r->module, "nvvm.annotations", notes);
    int64_t most[3] = { 0 }, exact[3] = { 0 };
    for (unsigned i = 0; i < count; i++) {
        unsigned n = LLVMGetMDNodeNumOperands(notes[i]);
        if (n > FIELDS)
            continue;
        LLVMGetMDNodeOperands(notes[i], fields);
        if (n < 3 || fields[0] != function)
            continue;
        for (unsigned f = 1; f + 1 < n; f += 2) {
            unsigned length = 0;
            const char *name = LLVMGetMDString(fields[f], &length);
            if (name == NULL || fields[f + 1] == NULL || LLVMIsAConstantInt(fields[f + 1]) == NULL)
                continue;
            int64_t value = LLVMConstIntGetSExtValue(fields[f + 1]);
            if (length == 6 && strncmp(name, "kernel", 6) == 0)
                *is_kernel = true;
            else if (length == 8 && strncmp(name, "maxntid", 7) == 0 && name[7] >= 'x' &&
                     name[7] <= 'z')
                most[name[7] - 'x'] = value;
            else if (length == 7 && strncmp(name, "reqntid", 6) == 0)
                exact[0] = value;
            else if (length == 8 && strncmp(name, "reqntid", 7) == 0 && name[7] >= 'x' &&
                     name[7] <= 'z')
                exact[name[7] - 'x'] = value;
        }
    }
    for (int a = 0; a < 3; a++) {
        k->most_threads =
            most[a] > 0 ? (k->most_threads > 0 ? k->most_threads : 1) * most[a] : k->most_threads;
        k->exact_threads = exact[a] > 0 ? (k->exact_threads > 0 ? k->exact_threads : 1) * exact[a]
                                        : k->exact_threads;
    }
}

/* Every argument is loaded from where its pointer points; one by value is that pointer. */
static void build_entry(rewrite *r, LLVMValueRef kernel, int number)
{
    char name[32];
    snprintf(name, sizeof name, "emulated_%d", number);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(r->context), &r->generic, 1, false);
    LLVMValueRef entry = LLVMAddFunction(r->module, name, type);
    LLVMPositionBuilderAtEnd(r->builder, LLVMAppendBasicBlockInContext(r->context, entry, ""));
    unsigned count = LLVMCountParams(kernel), byval = LLVMGetEnumAttributeKindForName("byval", 5);
    LLVMValueRef *values = TL_NEW_ARRAY(r->out->arena, LLVMValueRef, count + 1);
    for (unsigned i = 0; i < count; i++) {
        LLVMValueRef index = LLVMConstInt(r->i64, i, false);
        LLVMValueRef at =
            LLVMBuildGEP2(r->builder, r->generic, LLVMGetParam(entry, 0), &index, 1, "");
        values[i] = LLVMBuildLoad2(r->builder, r->generic, at, "");
        LLVMTypeRef wanted = LLVMTypeOf(LLVMGetParam(kernel, i));
        if (LLVMGetEnumAttributeAtIndex(kernel, i + 1, byval) == NULL) {
            values[i] = LLVMBuildLoad2(r->builder, wanted, values[i], "");
            LLVMSetAlignment(values[i], 1);
        } else { /* what is passed by value is constant: the pointer to the launch's own will do */
            LLVMRemoveEnumAttributeAtIndex(kernel, i + 1, byval);
        }
    }
    LLVMBuildCall2(r->builder, LLVMGlobalGetValueType(kernel), kernel, values, count, "");
    LLVMBuildRetVoid(r->builder);
}

static void add_kernel(rewrite *r, LLVMValueRef function)
{
    enum { PTX_KERNEL = 71 };
    tl_emulated *out = r->out;
    tl_emulated_kernel k = { .name = tl_arena_strdup(out->arena, name_of(function)),
                             .argument_count = (int)LLVMCountParams(function) };
    bool is_kernel = LLVMGetFunctionCallConv(function) == PTX_KERNEL;
    read_annotations(r, function, &k, &is_kernel);
    if (!is_kernel)
        return;
    LLVMAttributeRef denormals =
        LLVMGetStringAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                      "denormal-fp-math-f32", 20);
    unsigned length = 0;
    if (denormals == NULL)
        denormals =
            LLVMGetStringAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                          "denormal-fp-math", 16);
    if (denormals != NULL &&
        begins(LLVMGetStringAttributeValue(denormals, &length), "preserve-sign"))
        out->flushes = true;
    TL_ROOM(out->arena, out->kernels, out->kernel_count, out->kernel_capacity);
    out->kernels[out->kernel_count++] = k;
}

/* ---- functions ---- */

static void use_c_convention(LLVMValueRef function)
{
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b != NULL;
         b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i != NULL; i = LLVMGetNextInstruction(i))
            if (LLVMGetInstructionOpcode(i) == LLVMCall)
                LLVMSetInstructionCallConv(i, LLVMCCallConv);
    LLVMSetFunctionCallConv(function, LLVMCCallConv);
}

/* The stack that allocas take, all functions together: none may call itself. */
static size_t stack_of(rewrite *r, LLVMValueRef function)
{
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(r->module);
    size_t bytes = 0;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b != NULL;
         b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i != NULL;
             i = LLVMGetNextInstruction(i)) {
            bytes += 16; /* what it computes may be spilled */
            if (LLVMGetInstructionOpcode(i) == LLVMAlloca)
                bytes += (size_t)LLVMABISizeOfType(layout, LLVMGetAllocatedType(i)) + 64;
        }
    return bytes;
}

/* Its attributes speak of a machine, or of what a function does that now calls into C. Those of its parameters stay. */
static void drop_function_attributes(LLVMValueRef function)
{
    LLVMAttributeIndex at = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    LLVMAttributeRef attributes[64];
    unsigned count = LLVMGetAttributeCountAtIndex(function, at), length;
    if (count > 64)
        return;
    LLVMGetAttributesAtIndex(function, at, attributes);
    for (unsigned k = 0; k < count; k++)
        if (LLVMIsEnumAttribute(attributes[k]))
            LLVMRemoveEnumAttributeAtIndex(function, at, LLVMGetEnumAttributeKind(attributes[k]));
        else if (LLVMIsStringAttribute(attributes[k])) {
            const char *kind = LLVMGetStringAttributeKind(attributes[k], &length);
            LLVMRemoveStringAttributeAtIndex(function, at, kind, length);
        }
}

static tl_status rewrite_function(rewrite *r, LLVMValueRef function)
{
    const char *name = name_of(function);
    if (LLVMGetFirstBasicBlock(function) == NULL) {
        if (!begins(name, "llvm."))
            return tl_fail(r->diag, TL_UNSUPPORTED, "the module needs the function %s from outside",
                           name);
        return TL_OK;
    }
    add_kernel(r, function);
    use_c_convention(function);
    drop_function_attributes(function);
    tl_status status = tl_emulate_instrument(r->module, function, r->diag);
    if (status != TL_OK)
        tl_context(r->diag, "function %s", name);
    r->out->stack_bytes += stack_of(r, function);
    return status;
}

static tl_status verify(LLVMModuleRef module, tl_diag *diag)
{
    char *message = NULL;
    tl_status status = TL_OK;
    if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message))
        status = tl_fail(diag, TL_BAD_IR, "the LLVM module is not valid: %s", message);
    LLVMDisposeMessage(message);
    return status;
}

static tl_status rewrite_all(rewrite *r)
{
    LLVMValueRef next;
    TL_TRY(lay_out_shared(r));
    for (LLVMValueRef f = LLVMGetFirstFunction(r->module); f != NULL; f = next) {
        next = LLVMGetNextFunction(f);
        if (!is_device_call(name_of(f)))
            TL_TRY(rewrite_function(r, f));
    }
    for (LLVMValueRef f = LLVMGetFirstFunction(r->module); f != NULL; f = next) {
        next = LLVMGetNextFunction(f);
        if (is_device_call(name_of(f)))
            TL_TRY(replace_device_call(r, f));
    }
    for (int i = 0; i < r->out->kernel_count; i++) {
        LLVMValueRef kernel = LLVMGetNamedFunction(r->module, r->out->kernels[i].name);
        build_entry(r, kernel, i);
        LLVMSetLinkage(kernel, LLVMInternalLinkage);
    }
    return r->out->kernel_count > 0 ? TL_OK
                                    : tl_fail(r->diag, TL_BAD_IR, "the module has no kernel");
}

tl_status tl_emulate_rewrite(tl_emulated *out, LLVMModuleRef module, LLVMTargetMachineRef machine,
                             const tl_target *host, tl_diag *diag)
{
    enum { LEAST_STACK = 64 << 10 };
    TL_TRY(verify(module, diag));
    rewrite r = {
        .out = out, .module = module, .context = LLVMGetModuleContext(module), .diag = diag
    };
    r.i64 = LLVMInt64TypeInContext(r.context);
    r.generic = LLVMPointerTypeInContext(r.context, 0);
    r.builder = LLVMCreateBuilderInContext(r.context);
    LLVMSetTarget(module, host->triple);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
    LLVMSetModuleDataLayout(module, layout);
    LLVMDisposeTargetData(layout);
    tl_status status = rewrite_all(&r);
    LLVMDisposeBuilder(r.builder);
    out->stack_bytes = (out->stack_bytes + LEAST_STACK + 4095) / 4096 * 4096;
    TL_TRY(status);
    return verify(module, diag);
}
