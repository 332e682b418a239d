/* codegen/lower/lower_program.h: the passes from a scheduled Program to statements that can be emitted (lower_passes.def). */
#ifndef TL_CODEGEN_LOWER_LOWER_PROGRAM_H
#define TL_CODEGEN_LOWER_LOWER_PROGRAM_H
#include "ir/program/program.h"
#include "ir/program/target.h"

/* One part of a program (its body or its prepare part) on its way down. */
typedef struct {
    tl_arena *arena;
    const tl_program *program; /* its params, dims and prepared buffers; its body does not count */
    const char *name;          /* of the functions that come out */
    const tl_target *target;
    const tl_stmt *body;
} tl_lowered_kernel;

/* Who wants to see what each pass made: called after every pass with the text of the kernel. */
typedef struct {
    void (*dump)(void *context, int number, const char *pass, const char *text);
    void *context;
} tl_lower_debug;

tl_status tl_lower(tl_lowered_kernel *kernel, const tl_lower_debug *debug,
                   tl_diag *diag); /* debug may be NULL */

#endif
