/* runtime/abi/formula.h: a whole number that depends on the dims of a kernel, as a text that a cache can hold and that needs
 * no machine code: how many blocks of a GPU a phase has when an extent is known only when it is called.
 *
 *     "d0 127 + 128 /"          (d0 + 127) / 128
 *     "d1 d0 64 min *"          d1 * min(d0, 64)
 *
 * Numbers, dims `d0`, `d1`, ... and + - * / % min max behind their two operands, a space between words; division rounds
 * down. */
#ifndef TL_RUNTIME_ABI_FORMULA_H
#define TL_RUNTIME_ABI_FORMULA_H
#include <stdint.h>
#include "runtime/base/status.h"

/* TL_BAD_TEXT: a word that is none, a dim beyond `dim_count`, an operator without operands, a text or a stack too deep. */
tl_status tl_formula_check(const char *text, int dim_count, tl_diag *diag);
/* Of a text that was checked. TL_BAD_ARGUMENT: a number does not fit in 64 bits, or a division by 0. */
tl_status tl_formula_evaluate(const char *text, const int64_t *dims, int64_t *out, tl_diag *diag);

#endif
