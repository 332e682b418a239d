/* tuner/learn/multiply_x86.c: tiles of a product in the registers of AVX-512 (12 by 32) and AVX2 (6 by 16). */
#include "tuner/learn/multiply_private.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* Two vectors of b and 24 of c are in registers; rows of a are reached from three pointers, as addresses of three
 * parts. */
__attribute__((target("avx512f"))) static void tile_512(int k, tl_matrix_view a, const float *b,
                                                        float *c, size_t c_row, bool add)
{
    enum { ROWS = 12 };
    __m512 sum[ROWS][2];
    const size_t row = a.row, row3 = 3 * a.row;
    const float *from[3] = { a.data, a.data + 4 * row, a.data + 8 * row };
#pragma GCC unroll 12
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < 2; j++)
            sum[i][j] = add ? _mm512_loadu_ps(c + (size_t)i * c_row + 16 * j) : _mm512_setzero_ps();
    for (int p = 0; p < k; p++) {
        const __m512 b0 = _mm512_loadu_ps(b), b1 = _mm512_loadu_ps(b + 16);
#pragma GCC unroll 3
        for (int g = 0; g < 3; g++) {
            const float *x = from[g];
            const __m512 x0 = _mm512_set1_ps(x[0]), x1 = _mm512_set1_ps(x[row]);
            const __m512 x2 = _mm512_set1_ps(x[2 * row]), x3 = _mm512_set1_ps(x[row3]);
            __m512(*s)[2] = sum + 4 * g;
            s[0][0] = _mm512_fmadd_ps(x0, b0, s[0][0]);
            s[0][1] = _mm512_fmadd_ps(x0, b1, s[0][1]);
            s[1][0] = _mm512_fmadd_ps(x1, b0, s[1][0]);
            s[1][1] = _mm512_fmadd_ps(x1, b1, s[1][1]);
            s[2][0] = _mm512_fmadd_ps(x2, b0, s[2][0]);
            s[2][1] = _mm512_fmadd_ps(x2, b1, s[2][1]);
            s[3][0] = _mm512_fmadd_ps(x3, b0, s[3][0]);
            s[3][1] = _mm512_fmadd_ps(x3, b1, s[3][1]);
            from[g] += a.column;
        }
        b += 32;
    }
#pragma GCC unroll 12
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < 2; j++)
            _mm512_storeu_ps(c + (size_t)i * c_row + 16 * j, sum[i][j]);
}

__attribute__((target("avx2,fma"))) static void tile_256(int k, tl_matrix_view a, const float *b,
                                                         float *c, size_t c_row, bool add)
{
    enum { ROWS = 6 };
    __m256 sum[ROWS][2];
    const size_t row = a.row;
    const float *from[2] = { a.data, a.data + 3 * row };
#pragma GCC unroll 6
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < 2; j++)
            sum[i][j] = add ? _mm256_loadu_ps(c + (size_t)i * c_row + 8 * j) : _mm256_setzero_ps();
    for (int p = 0; p < k; p++) {
        const __m256 b0 = _mm256_loadu_ps(b), b1 = _mm256_loadu_ps(b + 8);
#pragma GCC unroll 2
        for (int g = 0; g < 2; g++) {
            const float *x = from[g];
            __m256(*s)[2] = sum + 3 * g;
#pragma GCC unroll 3
            for (int i = 0; i < 3; i++) {
                const __m256 x0 = _mm256_set1_ps(x[(size_t)i * row]);
                s[i][0] = _mm256_fmadd_ps(x0, b0, s[i][0]);
                s[i][1] = _mm256_fmadd_ps(x0, b1, s[i][1]);
            }
            from[g] += a.column;
        }
        b += 16;
    }
#pragma GCC unroll 6
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < 2; j++)
            _mm256_storeu_ps(c + (size_t)i * c_row + 8 * j, sum[i][j]);
}

const tl_multiply_kernel *tl_multiply_x86(void)
{
    static const tl_multiply_kernel wide = { 12, 32, tile_512 }, narrow = { 6, 16, tile_256 };
    if (__builtin_cpu_supports("avx512f"))
        return &wide;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &narrow : NULL;
}
#else
const tl_multiply_kernel *tl_multiply_x86(void)
{
    return NULL;
}
#endif
