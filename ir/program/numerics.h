/* ir/program/numerics.h: the numerics contract of a compile (frontend/README.md, "Numerics"). */
#ifndef TL_IR_PROGRAM_NUMERICS_H
#define TL_IR_PROGRAM_NUMERICS_H

#include "runtime/base/status.h"

/* Relaxed: sums are added up in any order, some lowerings state a larger error bound than the direct sum (Winograd).
 * Strict: what the naive program says, bit for bit. Tf32: relaxed, and products of f32 that are summed up may round their
 * operands to tf32, of 10 bits behind the point, which the tensor cores of GPUs take. */
typedef enum {
    TL_NUMERICS_RELAXED,
    TL_NUMERICS_STRICT,
    TL_NUMERICS_TF32,
    TL_NUMERICS_COUNT
} tl_numerics;

const char *tl_numerics_text(tl_numerics numerics); /* "relaxed", "strict", "tf32" */
/* NULL is relaxed. TL_BAD_ARGUMENT and the words that there are. */
tl_status tl_numerics_parse(const char *text, tl_numerics *out, tl_diag *diag);

#endif
