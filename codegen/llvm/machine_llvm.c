/* codegen/llvm/machine_llvm.c: target machines, kept from one compile to the next.
 *
 * LLVM fills tables of instructions and types for each machine, and for the first function that it sees: about a
 * millisecond, a fifth of what a small kernel costs. A machine serves one compile at a time; those of compiles that
 * LLVM gave up on are lost. Nothing of a module stays in a machine, so the code does not depend on what it did before. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/llvm/llvm_private.h"

/* Idle machines; few are ever wanted: one for each thread that compiles. */
enum { KEPT_MACHINES = 16 };
typedef struct {
    char *name; /* of the target */
    LLVMTargetMachineRef machine;
} idle;
static idle kept[KEPT_MACHINES];
static int kept_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

tl_status tl_llvm_machine(const tl_target *target, LLVMTargetMachineRef *out, tl_diag *diag)
{
    TL_TRY(tl_llvm_start(diag));
    char *message = NULL;
    LLVMTargetRef found;
    if (LLVMGetTargetFromTriple(target->triple, &found, &message)) {
        tl_status status = tl_fail(diag, TL_UNSUPPORTED, "target %s: %s", target->triple, message);
        LLVMDisposeMessage(message);
        return status;
    }
    bool is_gpu = tl_target_is_gpu(target);
    *out = LLVMCreateTargetMachine(found, target->triple, target->cpu, target->features,
                                   is_gpu ? LLVMCodeGenLevelAggressive : LLVMCodeGenLevelDefault,
                                   is_gpu ? LLVMRelocDefault : LLVMRelocPIC,
                                   is_gpu ? LLVMCodeModelDefault : LLVMCodeModelSmall);
    if (*out == NULL)
        return tl_fail(diag, TL_UNSUPPORTED, "target %s: LLVM has no machine for it",
                       target->triple);
    return TL_OK;
}

static void print_name(const tl_target *target, tl_text *name)
{
    tl_text_format(name, "%s %s %s", target->triple, target->cpu, target->features);
}

tl_status tl_llvm_borrow(const tl_target *target, LLVMTargetMachineRef *out, tl_diag *diag)
{
    tl_text name = { 0 };
    print_name(target, &name);
    *out = NULL;
    pthread_mutex_lock(&lock);
    for (int i = kept_count - 1; i >= 0 && *out == NULL; i--)
        if (!name.failed && strcmp(kept[i].name, tl_text_get(&name)) == 0) {
            *out = kept[i].machine;
            free(kept[i].name);
            kept[i] = kept[--kept_count];
        }
    pthread_mutex_unlock(&lock);
    tl_text_free(&name);
    return *out != NULL ? TL_OK : tl_llvm_machine(target, out, diag);
}

void tl_llvm_give_back(const tl_target *target, LLVMTargetMachineRef machine)
{
    tl_text text = { 0 };
    print_name(target, &text);
    char *name = text.failed ? NULL : strdup(tl_text_get(&text));
    tl_text_free(&text);
    pthread_mutex_lock(&lock);
    bool keep = name != NULL && kept_count < KEPT_MACHINES;
    if (keep)
        kept[kept_count++] = (idle){ name, machine };
    pthread_mutex_unlock(&lock);
    if (!keep) {
        free(name);
        LLVMDisposeTargetMachine(machine);
    }
}
