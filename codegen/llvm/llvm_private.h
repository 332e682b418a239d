/* codegen/llvm/llvm_private.h: the process's one set-up of LLVM, and its failures as statuses. */
#ifndef TL_CODEGEN_LLVM_LLVM_PRIVATE_H
#define TL_CODEGEN_LLVM_LLVM_PRIVATE_H
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/TargetMachine.h>
#include <setjmp.h>
#include "codegen/codegen.h"

/* load_llvm.c: the library, once; what starts calls it. */
tl_status tl_llvm_load(tl_diag *diag);
/* From any thread, before anything of LLVM is called: loads it, once, with targets and our fatal-error handler. TL_IO: it is
 * not there. */
tl_status tl_llvm_start(tl_diag *diag);

/* handlers_llvm.c: LLVM must not end the process. A fatal error on a thread that entered a guard jumps back to it;
 * `text` then says why. The LLVM objects of that call are lost.
 *
 *     tl_llvm_guard guard;
 *     tl_llvm_enter(&guard);
 *     if (setjmp(guard.escape) != 0) { tl_llvm_leave(&guard); return tl_fail(..., guard.text); }
 *     ...
 *     tl_llvm_leave(&guard); */
typedef struct tl_llvm_guard {
    jmp_buf escape;
    char text[512];
    struct tl_llvm_guard *outer;
} tl_llvm_guard;
void tl_llvm_enter(tl_llvm_guard *guard);
void tl_llvm_leave(tl_llvm_guard *guard);
/* The first error that a context reports is kept in `text` (512 bytes, empty at first). */
void tl_llvm_collect(LLVMContextRef context, char *text);

/* An LLVM error as a status; consumes it. No error is TL_OK. */
tl_status tl_llvm_status(LLVMErrorRef error, const char *doing, tl_diag *diag);

/* machine_llvm.c: `tl_llvm_machine` makes one that is the caller's. A borrowed one is given back, under the same target,
 * once no module needs it any more. */
tl_status tl_llvm_machine(const tl_target *target, LLVMTargetMachineRef *out, tl_diag *diag);
tl_status tl_llvm_borrow(const tl_target *target, LLVMTargetMachineRef *out, tl_diag *diag);
void tl_llvm_give_back(const tl_target *target, LLVMTargetMachineRef machine);

/* object_llvm.c: passes over a module; its text; code for it. */
tl_status tl_llvm_optimise(LLVMModuleRef module, const char *passes, LLVMTargetMachineRef machine,
                           tl_diag *diag);
tl_status tl_llvm_print(LLVMModuleRef module, tl_text *out, tl_diag *diag);
tl_status tl_llvm_generate(LLVMModuleRef module, LLVMTargetMachineRef machine,
                           LLVMCodeGenFileType type, tl_text *out, tl_diag *diag);

/* device_llvm.c: gives the functions dev_* of a module for a GPU, which only hardware does, their instructions. */
tl_status tl_llvm_fill_device(LLVMModuleRef module, LLVMTargetMachineRef machine, tl_diag *diag);
/* device_text.c: those of a family, by the name; false: it is in none. */
bool tl_llvm_device_text(const char *name, tl_text *code, tl_text *operands);

/* object_symbols.c: names that an ELF object needs from outside and does not get from a permitted one. */
tl_status tl_object_check(const void *object, size_t size, tl_diag *diag);
extern const char *const tl_permitted_externals[]; /* NULL at the end */

#endif
