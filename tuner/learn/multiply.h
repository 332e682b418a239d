/* tuner/learn/multiply.h: products of matrices of floats, with a fixed order of sums.
 *
 * Every element of a product is summed over k from the first to the last, one multiply-add after the other,
 * whatever the width of the vectors and the blocks in which the work is done: the same numbers give the same bits
 * on every machine that has fused multiply-adds (elsewhere products are rounded before they are added). OpenBLAS
 * gives other bits on another CPU and with another number of threads, and is no dependency yet; NOTES.md has its
 * speed beside ours. */
#ifndef TL_TUNER_LEARN_MULTIPLY_H
#define TL_TUNER_LEARN_MULTIPLY_H
#include <stdbool.h>
#include <stddef.h>

/* Element (i, j) is data[i * row + j * column]. A transposed matrix is one with its strides exchanged. */
typedef struct {
    const float *data;
    size_t row, column;
} tl_matrix_view;

static inline tl_matrix_view tl_rows_of(const float *data, int width)
{
    return (tl_matrix_view){ data, (size_t)width, 1 };
}
static inline tl_matrix_view tl_transposed(tl_matrix_view v)
{
    return (tl_matrix_view){ v.data, v.column, v.row };
}

/* c = a b, or c += a b: a is m by k, b k by n, and c m by n, with rows of c_row floats. c overlaps neither. */
void tl_multiply(int m, int n, int k, tl_matrix_view a, tl_matrix_view b, float *c, size_t c_row,
                 bool add);

#endif
