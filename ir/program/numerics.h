/* ir/program/numerics.h: the numerics contract of a compile (frontend/README.md, "Numerics"). */
#ifndef TL_IR_PROGRAM_NUMERICS_H
#define TL_IR_PROGRAM_NUMERICS_H

/* Relaxed: sums are added up in any order, some lowerings state a larger error bound than the direct sum (Winograd).
 * Strict: what the naive program says, bit for bit. */
typedef enum { TL_NUMERICS_RELAXED, TL_NUMERICS_STRICT } tl_numerics;

const char *tl_numerics_text(tl_numerics numerics); /* "relaxed", "strict" */

#endif
