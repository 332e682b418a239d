/* ir/program/join_programs.h: one program for all extents, from those of a kernel at some. */
#ifndef TL_IR_PROGRAM_JOIN_PROGRAMS_H
#define TL_IR_PROGRAM_JOIN_PROGRAMS_H
#include "ir/program/program.h"
#include "runtime/base/varying.h"

/* programs[i], naive and without dims, is the kernel where its extents are those at sample i. `out` is the kernel for all values
 * of the dims (variables with is_dim, whose range is that of the corners), with all of them as its arguments; the first of the
 * programs itself when none depends on them. TL_UNSUPPORTED says in what the programs differ but for numbers, or that
 * a number is no function of the dims. */
tl_status tl_join_programs(tl_arena *arena, const tl_program *const *programs,
                           const tl_samples *samples, const tl_var *const *dims,
                           const tl_program **out, tl_diag *diag);

#endif
