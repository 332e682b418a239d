/* codegen/object/ptxas.h: NVIDIA's assembler, where it is installed: what a kernel takes on a device, without one. */
#ifndef TL_CODEGEN_OBJECT_PTXAS_H
#define TL_CODEGEN_OBJECT_PTXAS_H
#include <stdbool.h>
#include <stdint.h>
#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include "runtime/base/text.h"

/* What a thread of a kernel takes, and a block of it (shared memory that the code declares). */
typedef struct {
    const char *kernel;
    int registers;
    int64_t stack_bytes, spill_bytes, shared_bytes; /* spills: stores and loads together */
} tl_ptx_use;

/* The program: in PATH, or where CUDA is installed. NULL: nowhere. */
const char *tl_ptxas_find(tl_arena *arena);
/* Assembles PTX for an architecture ("sm_80") that is that of its target or a later one. `cubin` may be NULL; `uses` lie in
 * the arena. TL_UNSUPPORTED when there is no ptxas; TL_INTERNAL and what it says when it does not take the PTX. */
tl_status tl_ptxas_run(tl_arena *arena, const char *ptx, const char *arch, tl_text *cubin,
                       const tl_ptx_use **uses, int *count, tl_diag *diag);

#endif
