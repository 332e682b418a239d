/* codegen/lower/lower_program.h: the passes from a scheduled Program to statements that can be emitted
 * (lower_passes.def). */
#ifndef TL_CODEGEN_LOWER_LOWER_PROGRAM_H
#define TL_CODEGEN_LOWER_LOWER_PROGRAM_H
#include "ir/program/program.h"
#include "ir/program/target.h"

/* One part of a program (its body or its prepare part) on its way down. */
typedef struct {
    tl_arena *arena;
    /* its params, dims and prepared buffers; of its parts the other one counts */
    const tl_program *program;
    bool prepare;     /* which part of it this is */
    const char *name; /* of the functions that come out */
    const tl_target *target;
    const tl_stmt *body;
    int mbarrier_count; /* of a GPU block's, that the passes have given numbers to */
} tl_lowered_kernel;

/* The program with the part as it is now. */
tl_program tl_lowered_program(const tl_lowered_kernel *kernel);
/* The part alone as a text, as if it were a body. */
const char *tl_lowered_text(const tl_lowered_kernel *kernel);

/* What can be relied on between two passes. */
typedef enum {
#define INVARIANT(name, check, holds) TL_INVARIANT_##name,
#include "codegen/lower/lower_invariants.def"
#undef INVARIANT
    TL_INVARIANT_COUNT
} tl_invariant;

typedef tl_status tl_pass_function(tl_lowered_kernel *kernel, tl_diag *diag);
typedef struct {
    const char *name;
    bool is_run[2]; /* for a CPU, for a GPU */
    const char *leaves;
    unsigned holds;        /* after it: 1 << TL_INVARIANT_... */
    tl_pass_function *run; /* replaces kernel->body */
} tl_lower_pass;
const tl_lower_pass *tl_lower_passes(int *count);

/* verify_lowered.c: TL_BAD_IR and what breaks an invariant of the mask. Debug builds ask after every pass. */
tl_status tl_verify_lowered(const tl_lowered_kernel *kernel, unsigned holds, tl_diag *diag);

/* Who wants to see what each pass made: called after every one, which is pass `number` of all. */
typedef struct {
    void (*see)(void *context, int number, const tl_lower_pass *pass,
                const tl_lowered_kernel *kernel);
    void *context;
} tl_lower_observer;

tl_status tl_lower(tl_lowered_kernel *kernel, const tl_lower_observer *observer,
                   tl_diag *diag); /* observer may be NULL */

#endif
