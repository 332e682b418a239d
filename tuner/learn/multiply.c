/* tuner/learn/multiply.c: products of matrices in blocks that the caches hold: a panel of b is packed, `columns`
 * floats for each of k, and the tiles of c that need it go over it. The rows of a are read where they are; the last
 * ones, too few for a tile, from a copy that is filled up with zeros. */
#include "tuner/learn/multiply.h"
#include <math.h>
#include <string.h>
#include "tuner/learn/multiply_private.h"

/* Of k and n that are taken at once: the packed panel of b is 128 KB. */
enum { BLOCK_K = 256, BLOCK_N = 128 };

static inline float multiply_add(float a, float b, float c)
{
#ifdef __FP_FAST_FMAF
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

/* For processors of which nothing better is known. */
static void tile_plain(int k, tl_matrix_view a, const float *b, float *c, size_t c_row, bool add)
{
    enum { ROWS = 4, COLUMNS = 8 };
    float sum[ROWS][COLUMNS];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            sum[i][j] = add ? c[(size_t)i * c_row + (size_t)j] : 0;
    for (int p = 0; p < k; p++, b += COLUMNS)
        for (int i = 0; i < ROWS; i++) {
            const float x = a.data[(size_t)i * a.row + (size_t)p * a.column];
            for (int j = 0; j < COLUMNS; j++)
                sum[i][j] = multiply_add(x, b[j], sum[i][j]);
        }
    for (int i = 0; i < ROWS; i++)
        memcpy(c + (size_t)i * c_row, sum[i], sizeof sum[i]);
}

static const tl_multiply_kernel *choose(void)
{
    static const tl_multiply_kernel plain = { 4, 8, tile_plain };
    const tl_multiply_kernel *best = tl_multiply_x86();
    return best != NULL ? best : &plain;
}

/* Panels of `width` columns, one behind the other; the last one is filled up with zeros. */
static void pack(int n, int k, tl_matrix_view b, int width, float *to)
{
    for (int j = 0; j < n; j += width) {
        const int count = n - j < width ? n - j : width;
        for (int p = 0; p < k; p++, to += width) {
            const float *from = b.data + (size_t)p * b.row + (size_t)j * b.column;
            if (b.column == 1)
                memcpy(to, from, sizeof *to * (size_t)count);
            else
                for (int i = 0; i < count; i++)
                    to[i] = from[(size_t)i * b.column];
            if (count < width)
                memset(to + count, 0, sizeof *to * (size_t)(width - count));
        }
    }
}

/* A tile that reaches beyond c is computed beside it. */
static void edge_tile(const tl_multiply_kernel *kernel, int rows, int columns, int k,
                      tl_matrix_view a, const float *b, float *c, size_t c_row, bool add)
{
    float tile[TL_TILE_ROWS * TL_TILE_COLUMNS];
    memset(tile, 0, sizeof tile);
    for (int i = 0; i < rows && add; i++)
        memcpy(tile + i * TL_TILE_COLUMNS, c + (size_t)i * c_row, sizeof *c * (size_t)columns);
    kernel->tile(k, a, b, tile, TL_TILE_COLUMNS, add);
    for (int i = 0; i < rows; i++)
        memcpy(c + (size_t)i * c_row, tile + i * TL_TILE_COLUMNS, sizeof *c * (size_t)columns);
}

/* All rows of c, the columns of one packed block. */
static void multiply_block(const tl_multiply_kernel *kernel, int m, int n, int k, tl_matrix_view a,
                           const float *packed, float *c, size_t c_row, bool add)
{
    float last[TL_TILE_ROWS * BLOCK_K];
    for (int i = 0; i < m; i += kernel->rows) {
        const int rows = m - i < kernel->rows ? m - i : kernel->rows;
        tl_matrix_view from = { a.data + (size_t)i * a.row, a.row, a.column };
        if (rows < kernel->rows) {
            memset(last, 0, sizeof *last * (size_t)kernel->rows * (size_t)k);
            for (int r = 0; r < rows; r++)
                for (int p = 0; p < k; p++)
                    last[r * k + p] = from.data[(size_t)r * from.row + (size_t)p * from.column];
            from = (tl_matrix_view){ last, (size_t)k, 1 };
        }
        for (int j = 0; j < n; j += kernel->columns) {
            const int columns = n - j < kernel->columns ? n - j : kernel->columns;
            const float *b = packed + (size_t)j * (size_t)k;
            float *to = c + (size_t)i * c_row + j;
            if (rows == kernel->rows && columns == kernel->columns)
                kernel->tile(k, from, b, to, c_row, add);
            else
                edge_tile(kernel, rows, columns, k, from, b, to, c_row, add);
        }
    }
}

void tl_multiply(int m, int n, int k, tl_matrix_view a, tl_matrix_view b, float *c, size_t c_row,
                 bool add)
{
    const tl_multiply_kernel *kernel = choose();
    float packed[BLOCK_K * BLOCK_N];
    for (int i = 0; i < m && k == 0 && !add; i++)
        memset(c + (size_t)i * c_row, 0, sizeof *c * (size_t)n);
    for (int j = 0; j < n; j += BLOCK_N)
        for (int p = 0; p < k; p += BLOCK_K) {
            const int columns = n - j < BLOCK_N ? n - j : BLOCK_N;
            const int depth = k - p < BLOCK_K ? k - p : BLOCK_K;
            pack(columns, depth,
                 (tl_matrix_view){ b.data + (size_t)p * b.row + (size_t)j * b.column, b.row,
                                   b.column },
                 kernel->columns, packed);
            multiply_block(kernel, m, columns, depth,
                           (tl_matrix_view){ a.data + (size_t)p * a.column, a.row, a.column },
                           packed, c + j, c_row, add || p > 0);
        }
}
