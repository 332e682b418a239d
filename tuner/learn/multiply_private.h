/* tuner/learn/multiply_private.h: what tl_multiply does in the registers, for each kind of vectors. */
#ifndef TL_TUNER_LEARN_MULTIPLY_PRIVATE_H
#define TL_TUNER_LEARN_MULTIPLY_PRIVATE_H
#include "tuner/learn/multiply.h"

enum { TL_TILE_ROWS = 12, TL_TILE_COLUMNS = 32 };

/* A tile of c: `rows` by `columns`. b is packed: `columns` floats for each of k. Adds to what is in c when `add`. */
typedef struct {
    int rows, columns;
    void (*tile)(int k, tl_matrix_view a, const float *b, float *c, size_t c_row, bool add);
} tl_multiply_kernel;

/* tuner/learn/multiply_x86.c; NULL: the processor has no fused multiply-adds, or is another one. */
const tl_multiply_kernel *tl_multiply_x86(void);

#endif
