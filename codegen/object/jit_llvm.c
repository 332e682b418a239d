/* codegen/object/jit_llvm.c: the ORC session that turns objects into callable phases.
 *
 * Every kernel has a library (JITDylib) of its own, so that kernels may share names; it sees the permitted externals
 * and nothing else. ORC cannot drop a library, so those of removed kernels are emptied and used again. One lock
 * guards the session: linking an object takes a tenth of a millisecond. */
#include "codegen/llvm/llvm_private.h"
#include <assert.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/array.h"

struct tl_jit {
    pthread_mutex_t lock;
    LLVMOrcLLJITRef lljit;
    int library_count; /* ever made: for their names */
    int spare_count, spare_capacity;
    LLVMOrcJITDylibRef *spare;
};

struct tl_jit_kernel {
    tl_jit *jit;
    LLVMOrcJITDylibRef library;
    LLVMOrcResourceTrackerRef tracker;
    int phase_count;
    tl_sizes_fn *sizes;
    tl_phase_fn *phases[];
};

/* Where errors go that no call returns (a symbol that an object needs is missing): the call that was under way
 * reports its own failure. */
static void ignore_error(void *context, LLVMErrorRef error)
{
    (void)context;
    LLVMConsumeError(error);
}

static tl_status create_session(const tl_target *target, LLVMOrcLLJITRef *out, tl_diag *diag)
{
    LLVMTargetMachineRef machine;
    TL_TRY(tl_llvm_machine(target, &machine, diag));
    LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
    LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(
        builder, LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(machine));
    TL_TRY(tl_llvm_status(LLVMOrcCreateLLJIT(out, builder), "making a session", diag));
    LLVMOrcExecutionSessionSetErrorReporter(LLVMOrcLLJITGetExecutionSession(*out), ignore_error,
                                            NULL);
    return TL_OK;
}

tl_status tl_jit_create(const tl_target *target, tl_jit **out, tl_diag *diag)
{
    if (tl_target_is_gpu(target))
        return tl_fail(diag, TL_UNSUPPORTED, "a session runs code of this CPU, not of %s",
                       tl_isa_infos[target->isa].text);
    TL_TRY(tl_llvm_start(diag));
    tl_jit *jit = calloc(1, sizeof *jit);
    if (jit == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "no memory for a session");
    tl_llvm_guard guard;
    tl_llvm_enter(&guard);
    tl_status status = setjmp(guard.escape) == 0
                           ? create_session(target, &jit->lljit, diag)
                           : tl_fail(diag, TL_INTERNAL, "LLVM gave up: %s", guard.text);
    tl_llvm_leave(&guard);
    if (status != TL_OK) {
        free(jit);
        return status;
    }
    pthread_mutex_init(&jit->lock, NULL);
    *out = jit;
    return TL_OK;
}

void tl_jit_destroy(tl_jit *jit)
{
    if (jit == NULL)
        return;
    LLVMConsumeError(LLVMOrcDisposeLLJIT(jit->lljit));
    pthread_mutex_destroy(&jit->lock);
    free(jit->spare);
    free(jit);
}

static tl_status define_externals(tl_jit *jit, LLVMOrcJITDylibRef library, tl_diag *diag)
{
    void *const addresses[] = { (void *)(uintptr_t)memcpy, (void *)(uintptr_t)memset,
                                (void *)(uintptr_t)memmove };
    LLVMOrcCSymbolMapPair pairs[3];
    int count = 0;
    for (; tl_permitted_externals[count] != NULL; count++) {
        pairs[count].Name = LLVMOrcLLJITMangleAndIntern(jit->lljit, tl_permitted_externals[count]);
        pairs[count].Sym.Address = (LLVMOrcExecutorAddress)(uintptr_t)addresses[count];
        pairs[count].Sym.Flags = (LLVMJITSymbolFlags){ LLVMJITSymbolGenericFlagsExported, 0 };
    }
    LLVMOrcMaterializationUnitRef unit = LLVMOrcAbsoluteSymbols(pairs, (size_t)count);
    LLVMErrorRef error = LLVMOrcJITDylibDefine(library, unit);
    if (error != NULL)
        LLVMOrcDisposeMaterializationUnit(unit);
    return tl_llvm_status(error, "defining the permitted externals", diag);
}

static tl_status take_library(tl_jit *jit, LLVMOrcJITDylibRef *out, tl_diag *diag)
{
    if (jit->spare_count > 0) {
        *out = jit->spare[--jit->spare_count];
        return TL_OK;
    }
    char name[32];
    snprintf(name, sizeof name, "kernel%d", jit->library_count++);
    *out = LLVMOrcExecutionSessionCreateBareJITDylib(LLVMOrcLLJITGetExecutionSession(jit->lljit),
                                                     name);
    return define_externals(jit, *out, diag);
}

static void give_library(tl_jit *jit, LLVMOrcJITDylibRef library)
{
    assert(jit->spare_count <= jit->spare_capacity);
    if (!TL_HEAP_ROOM(jit->spare, jit->spare_count, jit->spare_capacity))
        return; /* it stays empty in the session */
    jit->spare[jit->spare_count++] = library;
}

/* Answers of a lookup, which ORC gives in a callback before the call returns. */
typedef struct {
    LLVMErrorRef error;
    LLVMOrcExecutorAddress address;
} answer;

static void take_answer(LLVMErrorRef error, LLVMOrcCSymbolMapPairs result, size_t count,
                        void *context)
{
    answer *a = context;
    a->error = error;
    if (error == NULL && count == 1)
        a->address = result[0].Sym.Address;
}

static tl_status look_up(tl_jit *jit, LLVMOrcJITDylibRef library, const char *name, void **out,
                         tl_diag *diag)
{
    LLVMOrcCJITDylibSearchOrderElement order = { library,
                                                 LLVMOrcJITDylibLookupFlagsMatchAllSymbols };
    LLVMOrcCLookupSetElement symbol = { LLVMOrcLLJITMangleAndIntern(jit->lljit, name),
                                        LLVMOrcSymbolLookupFlagsRequiredSymbol };
    answer a = { NULL, 0 };
    LLVMOrcExecutionSessionLookup(LLVMOrcLLJITGetExecutionSession(jit->lljit),
                                  LLVMOrcLookupKindStatic, &order, 1, &symbol, 1, take_answer, &a);
    TL_TRY(tl_llvm_status(a.error, "linking a kernel", diag));
    if (a.address == 0)
        return tl_fail(diag, TL_INTERNAL, "the object does not define %s", name);
    *out = (void *)(uintptr_t)a.address;
    return TL_OK;
}

static tl_status link_object(tl_jit *jit, const void *object, size_t size, const tl_descriptor *d,
                             tl_jit_kernel *kernel, tl_diag *diag)
{
    char name[512];
    void *address;
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(object, size, d->name);
    kernel->tracker = LLVMOrcJITDylibCreateResourceTracker(kernel->library);
    TL_TRY(tl_llvm_status(LLVMOrcLLJITAddObjectFileWithRT(jit->lljit, kernel->tracker, buffer),
                          "adding an object", diag));
    for (int p = 0; p < d->phase_count; p++) {
        snprintf(name, sizeof name, "%s_%d", d->name, p);
        TL_TRY(look_up(jit, kernel->library, name, &address, diag));
        memcpy(&kernel->phases[p], &address, sizeof address);
    }
    if (d->has_sizes) {
        snprintf(name, sizeof name, "%s_sizes", d->name);
        TL_TRY(look_up(jit, kernel->library, name, &address, diag));
        memcpy(&kernel->sizes, &address, sizeof address);
    }
    return TL_OK;
}

static void unlink_object(tl_jit *jit, tl_jit_kernel *kernel)
{
    if (kernel->tracker != NULL) {
        LLVMConsumeError(LLVMOrcResourceTrackerRemove(kernel->tracker));
        LLVMOrcReleaseResourceTracker(kernel->tracker);
    }
    if (kernel->library != NULL)
        give_library(jit, kernel->library);
}

static tl_status add_locked(tl_jit *jit, const void *object, size_t size, const tl_descriptor *d,
                            tl_jit_kernel *kernel, tl_diag *diag)
{
    TL_TRY(take_library(jit, &kernel->library, diag));
    return link_object(jit, object, size, d, kernel, diag);
}

tl_status tl_jit_add(tl_jit *jit, const void *object, size_t size, const tl_descriptor *descriptor,
                     tl_jit_kernel **out, tl_diag *diag)
{
    if (descriptor->phase_count < 0 || descriptor->phase_count > (1 << 20) ||
        strlen(descriptor->name) > 400)
        return tl_fail(diag, TL_BAD_ARGUMENT, "the descriptor of kernel %.40s is not believable",
                       descriptor->name);
    TL_TRY(tl_object_check(object, size, diag));
    size_t phases = (size_t)descriptor->phase_count;
    tl_jit_kernel *kernel = calloc(1, sizeof *kernel + phases * sizeof kernel->phases[0]);
    if (kernel == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "no memory for kernel %s", descriptor->name);
    kernel->jit = jit;
    kernel->phase_count = descriptor->phase_count;

    pthread_mutex_lock(&jit->lock);
    tl_llvm_guard guard;
    tl_llvm_enter(&guard);
    tl_status status;
    if (setjmp(guard.escape) == 0) {
        status = add_locked(jit, object, size, descriptor, kernel, diag);
        if (status != TL_OK)
            unlink_object(jit, kernel);
    } else {
        status = tl_fail(diag, TL_INTERNAL, "LLVM gave up on kernel %s: %s", descriptor->name,
                         guard.text);
    }
    tl_llvm_leave(&guard);
    pthread_mutex_unlock(&jit->lock);
    if (status != TL_OK) {
        free(kernel);
        return status;
    }
    *out = kernel;
    return TL_OK;
}

void tl_jit_remove(tl_jit_kernel *kernel)
{
    if (kernel == NULL)
        return;
    pthread_mutex_lock(&kernel->jit->lock);
    unlink_object(kernel->jit, kernel);
    pthread_mutex_unlock(&kernel->jit->lock);
    free(kernel);
}

tl_phase_fn *tl_jit_phase(const tl_jit_kernel *kernel, int phase)
{
    return phase >= 0 && phase < kernel->phase_count ? kernel->phases[phase] : NULL;
}

tl_sizes_fn *tl_jit_sizes(const tl_jit_kernel *kernel)
{
    return kernel->sizes;
}
