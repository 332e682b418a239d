/* codegen/codegen.h: from a scheduled Program to machine code.
 *
 * Thread-safe: several threads may compile at once, each with its own arena. LLVM objects never leave this folder. */
#ifndef TL_CODEGEN_CODEGEN_H
#define TL_CODEGEN_CODEGEN_H
#include "ir/program/program.h"
#include "ir/program/target.h"
#include "runtime/abi/descriptor.h"
#include "runtime/abi/kernel_abi.h"

/* Raise when the code emitted for the same Program changes: records belong to it, for their times are those of that code.
 * tests/codegen/test_emission.c fails when it was forgotten. */
#define TL_CODEGEN_REVISION 18

/* A digest of the sources that decide the code of a Program (codegen/fingerprint.sh), which the build makes: part of every
 * object's key, so that an object in a cache is never that of other sources. Comments do not change it. */
const char *tl_codegen_fingerprint(void);

/* Says, before the first compile, that this process is tilth's own: LLVM's options, which are a process's, may be set. Then
 * loops are compiled without LLVM's strength reduction: half of the time for kernels as fast (codegen/README.md). Programs that
 * have libtilth inside keep the options that they may share with others. */
void tl_codegen_own_process(void);
bool tl_codegen_owns_process(void);

/* Loads LLVM, which the first compile does otherwise: for a process that forks, or limits its memory, in between. TL_IO: it
 * cannot be loaded. */
tl_status tl_codegen_load(tl_diag *diag);

/* LLVM's name and features of the machine we run on, for the driver to put into a tl_target. */
tl_status tl_codegen_host(char triple[64], char cpu[32], char features[2048], tl_diag *diag);
/* Of the library that is loaded, or would be, "19.1.7"; "absent": there is none. */
const char *tl_codegen_llvm_version(void);

typedef enum { TL_EMIT_OBJECT, TL_EMIT_LLVM, TL_EMIT_ASSEMBLY } tl_emit;
/* What to emit for a device that loads code of that form: a module of LLVM, or its target's usual code. */
static inline tl_emit tl_emit_of_form(tl_code_form form)
{
    return form == TL_FORM_LLVM ? TL_EMIT_LLVM : TL_EMIT_OBJECT;
}

/* Compiles the program's body (`prepare` false) or its prepare part (true: params are the CONST
 * parameters' and PREPARED buffers' usual places) into an object, or a text. The descriptor lives in `arena`, and says which
 * form the code has. */
tl_status tl_codegen_compile(tl_arena *arena, const tl_program *program, bool prepare,
                             const tl_target *target, tl_emit what, tl_text *out,
                             tl_descriptor *descriptor, tl_diag *diag);

/* TILTH_PTX_WITH_IR=1: the PTX of a GPU's kernel ends with the LLVM module that it is made from, a comment `//ir ` a line, for
 * people who look at it, and for the driver without a GPU that runs it (tests/gpu/emulated_driver.c). */
bool tl_ptx_has_module(void);

/* Several programs as one text (TL_EMIT_LLVM, TL_EMIT_ASSEMBLY): one module, that a compiler or an assembler takes
 * as it is. Their names are distinct; `name` is what the text says it was made from. */
typedef struct {
    const tl_program *program;
    bool prepare;
} tl_codegen_part;
tl_status tl_codegen_emit(const char *name, const tl_codegen_part *parts, int count,
                          const tl_target *target, tl_emit what, tl_text *out, tl_diag *diag);

/* What tl_codegen_compile would say of a program, without making code, or loading LLVM: `descriptor` lives in `arena`. */
tl_status tl_codegen_describe(tl_arena *arena, const tl_program *program, bool prepare,
                              const tl_target *target, tl_descriptor *descriptor, tl_diag *diag);

/* Shows the lowering: `show` gets the kernel's text after each pass of codegen/lower/lower_passes.def. */
typedef struct {
    void (*show)(void *context, int number, const char *pass, const char *text);
    void *context;
} tl_codegen_observer;
tl_status tl_codegen_observe(const tl_program *program, bool prepare, const tl_target *target,
                             const tl_codegen_observer *observer, tl_diag *diag);

/* The key under which the object is cached: scheduled Program, target, numerics, fingerprint, LLVM version and options. */
void tl_codegen_key(const tl_program *program, bool prepare, const tl_target *target, char out[33]);

/* The ORC session: makes objects callable in this process. */
typedef struct tl_jit tl_jit;
typedef struct tl_jit_kernel tl_jit_kernel;
tl_status tl_jit_create(const tl_target *target, tl_jit **out, tl_diag *diag);
void tl_jit_destroy(tl_jit *jit); /* after its kernels */
/* Refuses an object with an external that is not permitted. */
tl_status tl_jit_add(tl_jit *jit, const void *object, size_t size, const tl_descriptor *descriptor,
                     tl_jit_kernel **out, tl_diag *diag);
void tl_jit_remove(tl_jit_kernel *kernel);
tl_phase_fn *tl_jit_phase(const tl_jit_kernel *kernel, int phase);
tl_sizes_fn *tl_jit_sizes(const tl_jit_kernel *kernel); /* NULL when the descriptor needs none */

#endif
