/* tests/structural/operands.h: what the inputs of a random graph hold. An input's name says it, so that a model's file is all
 * that is needed to run it again, also when it was made smaller:
 *
 *     x3__w-8_8    whole numbers from -8 to 8          x3__r0.125_4   reals
 *     x3__q-2_2    multiples of a quarter              x3__v1_3_-5    these numbers, again and again
 *
 * Other names: quarters between -2 and 2, whole numbers from 0 to 3, both truths. */
#ifndef TL_TESTS_STRUCTURAL_OPERANDS_H
#define TL_TESTS_STRUCTURAL_OPERANDS_H
#include "runtime/base/random.h"
#include "runtime/tensor/tensor.h"

/* Element `index` of the operand. */
tl_number operand_number(const char *name, tl_dtype dtype, int64_t index, tl_random *random);
tl_status operand_fill(const char *name, tl_dtype dtype, int rank, const int64_t *shape,
                       tl_tensor *out, tl_diag *diag);

#endif
