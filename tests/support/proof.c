/* tests/support/proof.c: the cases of the proof: arguments, and outputs computed the plain way, in double where
 * the order of sums matters. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/support/proof.h"

/* ---- arrays ---- */

static proof_array *add(proof_run *run, const char *name, tl_dtype dtype, int64_t count)
{
    proof_array *array = &run->arrays[run->count++];
    size_t size = (size_t)count * tl_dtype_size(dtype);
    *array = (proof_array){ name, dtype, count, malloc(size + 1), NULL };
    if (array->data == NULL)
        abort();
    memset(array->data, 0xa5, size + 1);
    return array;
}

/* An input of numbers in [-1, 1). */
static const float *input(proof_run *run, const char *name, int64_t count)
{
    float *data = add(run, name, TL_F32, count)->data;
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)(2 * tl_random_unit(&run->random) - 1);
    return data;
}

static void *output(proof_run *run, const char *name, tl_dtype dtype, int64_t count)
{
    proof_array *array = add(run, name, dtype, count);
    array->expected = calloc((size_t)count, tl_dtype_size(dtype));
    if (array->expected == NULL)
        abort();
    return array->expected;
}

/* ---- references ---- */

static void conv_direct(proof_run *run, const int64_t *dims)
{
    (void)dims;
    const float *x = input(run, "X", 2 * 9 * 9 * 16), *w = input(run, "W", 32 * 32 * 9);
    const float *bias = input(run, "bias", 32), *r = input(run, "R", 2 * 7 * 7 * 16);
    float *y = output(run, "Y", TL_F32, 2 * 7 * 7 * 16);
    for (int k = 0; k < 32; k++) {
        for (int p = 0; p < 49; p++) {
            double sum = 0;
            for (int c = 0; c < 32; c++)
                for (int q = 0; q < 9; q++)
                    sum += (double)
                               x[((c / 16 * 9 + p / 7 + q / 3) * 9 + p % 7 + q % 3) * 16 + c % 16] *
                           w[(k * 32 + c) * 9 + q];
            int at = (k / 16 * 49 + p) * 16 + k % 16;
            y[at] = (float)fmax(sum + bias[k] + r[at], 0);
        }
    }
}

static void winograd(proof_run *run, const int64_t *dims)
{
    (void)dims;
    const float *x = input(run, "X", 4 * 10 * 10), *w = input(run, "W", 16 * 4 * 9);
    float *y = output(run, "Y", TL_F32, 16 * 8 * 8);
    for (int k = 0; k < 16; k++) {
        for (int p = 0; p < 64; p++) {
            double sum = 0;
            for (int c = 0; c < 4; c++)
                for (int q = 0; q < 9; q++)
                    sum += (double)x[(c * 10 + p / 8 + q / 3) * 10 + p % 8 + q % 3] *
                           w[(k * 4 + c) * 9 + q];
            y[k * 64 + p] = (float)sum;
        }
    }
}

static void pw_dw_pw(proof_run *run, const int64_t *dims)
{
    (void)dims;
    const float *x = input(run, "X", 8 * 6 * 4), *we = input(run, "We", 4 * 8);
    const float *wd = input(run, "Wd", 9 * 8), *wp = input(run, "Wp", 8 * 4);
    float *y = output(run, "Y", TL_F32, 8 * 6 * 4);
    double wide[8][6][8];
    for (int p = 0; p < 48; p++) {
        for (int e = 0; e < 8; e++) {
            double sum = 0;
            for (int c = 0; c < 4; c++)
                sum += (double)x[p * 4 + c] * we[c * 8 + e];
            wide[p / 6][p % 6][e] = fmax(sum, 0);
        }
    }
    for (int p = 0; p < 48; p++) {
        double row[8] = { 0 };
        for (int q = 0; q < 9; q++) {
            int i = p / 6 + q / 3 - 1, j = p % 6 + q % 3 - 1;
            for (int e = 0; e < 8 && i >= 0 && i < 8 && j >= 0 && j < 6; e++)
                row[e] += wide[i][j][e] * wd[q * 8 + e];
        }
        for (int k = 0; k < 4; k++) {
            double sum = 0;
            for (int e = 0; e < 8; e++)
                sum += fmax(row[e], 0) * wp[e * 4 + k];
            y[p * 4 + k] = (float)sum;
        }
    }
}

static void softmax_row(const double *x, int n, double *y)
{
    double top = -INFINITY, total = 0;
    for (int k = 0; k < n; k++)
        top = fmax(top, x[k]);
    for (int k = 0; k < n; k++)
        total += y[k] = exp(x[k] - top);
    for (int k = 0; k < n; k++)
        y[k] /= total;
}

static void softmax(proof_run *run, const int64_t *dims)
{
    (void)dims;
    const float *x = input(run, "X", 5 * 20);
    float *y = output(run, "Y", TL_F32, 5 * 20);
    for (int i = 0; i < 5; i++) {
        double row[20], out[20];
        for (int k = 0; k < 20; k++)
            row[k] = x[i * 20 + k];
        softmax_row(row, 20, out);
        for (int k = 0; k < 20; k++)
            y[i * 20 + k] = (float)out[k];
    }
}

static void layer_norm(proof_run *run, const int64_t *dims)
{
    (void)dims;
    const float *x = input(run, "X", 6 * 24), *scale = input(run, "scale", 24);
    const float *shift = input(run, "shift", 24);
    float *y = output(run, "Y", TL_F32, 6 * 24);
    for (int i = 0; i < 6; i++) {
        double mean = 0, variance = 0;
        for (int k = 0; k < 24; k++)
            mean += x[i * 24 + k] / 24.0;
        for (int k = 0; k < 24; k++)
            variance += (x[i * 24 + k] - mean) * (x[i * 24 + k] - mean) / 24;
        for (int k = 0; k < 24; k++)
            y[i * 24 + k] =
                (float)((x[i * 24 + k] - mean) / sqrt(variance + 1e-5) * scale[k] + shift[k]);
    }
}

static void attention(proof_run *run, const int64_t *dims)
{
    (void)dims;
    const float *q = input(run, "Q", 2 * 12 * 8), *k = input(run, "K", 2 * 12 * 8);
    const float *v = input(run, "V", 2 * 12 * 8);
    float *o = output(run, "O", TL_F32, 2 * 12 * 8);
    for (int p = 0; p < 24; p++) {
        const float *keys = k + p / 12 * 96, *values = v + p / 12 * 96;
        double scores[12] = { 0 }, weights[12];
        for (int j = 0; j < 12; j++)
            for (int d = 0; d < 8; d++)
                scores[j] += (double)q[p * 8 + d] * keys[j * 8 + d] / sqrt(8);
        softmax_row(scores, 12, weights);
        for (int d = 0; d < 8; d++) {
            double sum = 0;
            for (int j = 0; j < 12; j++)
                sum += weights[j] * values[j * 8 + d];
            o[p * 8 + d] = (float)sum;
        }
    }
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static void lstm(proof_run *run, const int64_t *dims)
{
    (void)dims;
    const float *x = input(run, "X", 5 * 2 * 4), *w = input(run, "W", 24 * 4);
    const float *r = input(run, "R", 24 * 6), *bias = input(run, "bias", 24);
    const float *h0 = input(run, "h0", 2 * 6), *c0 = input(run, "c0", 2 * 6);
    float *y = output(run, "Y", TL_F32, 5 * 2 * 6), *cell = output(run, "cell", TL_F32, 2 * 6);
    for (int b = 0; b < 2; b++) {
        double h[6], c[6];
        for (int j = 0; j < 6; j++) {
            h[j] = h0[b * 6 + j];
            c[j] = c0[b * 6 + j];
        }
        for (int t = 0; t < 5; t++) {
            double gates[24];
            for (int g = 0; g < 24; g++) {
                gates[g] = bias[g];
                for (int k = 0; k < 4; k++)
                    gates[g] += (double)x[(t * 2 + b) * 4 + k] * w[g * 4 + k];
                for (int k = 0; k < 6; k++)
                    gates[g] += h[k] * r[g * 6 + k];
            }
            for (int j = 0; j < 6; j++) {
                c[j] = sigmoid(gates[12 + j]) * c[j] + sigmoid(gates[j]) * tanh(gates[18 + j]);
                h[j] = sigmoid(gates[6 + j]) * tanh(c[j]);
                y[(t * 2 + b) * 6 + j] = (float)h[j];
                cell[b * 6 + j] = (float)c[j];
            }
        }
    }
}

static void matrix_product(const float *a, const float *b, float *c, int64_t m, int64_t n,
                           int64_t depth)
{
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t k = 0; k < depth; k++)
                sum += (double)a[i * depth + k] * b[k * n + j];
            c[i * n + j] = (float)sum;
        }
    }
}

static void gemm_dim(proof_run *run, const int64_t *dims)
{
    const float *a = input(run, "A", dims[0] * 24), *b = input(run, "B", 24 * 32);
    matrix_product(a, b, output(run, "C", TL_F32, dims[0] * 32), dims[0], 32, 24);
}

static void gpu_gemm(proof_run *run, const int64_t *dims)
{
    (void)dims;
    const float *a = input(run, "A", 32 * 16), *b = input(run, "B", 16 * 32);
    matrix_product(a, b, output(run, "C", TL_F32, 32 * 32), 32, 32, 16);
}

static void gpu_gemm_mma(proof_run *run, const int64_t *dims)
{
    (void)dims;
    const float *a = input(run, "A", 32 * 16), *b = input(run, "B", 16 * 16);
    matrix_product(a, b, output(run, "C", TL_F32, 32 * 16), 32, 16, 16);
}

static void embedding(proof_run *run, const int64_t *dims)
{
    (void)dims;
    int64_t *ids = add(run, "ids", TL_I64, 14)->data;
    for (int i = 0; i < 14; i++)
        ids[i] = i < 2 ? 49 * i : tl_random_below(&run->random, 50);
    const float *table = input(run, "table", 50 * 16);
    float *y = output(run, "Y", TL_F32, 14 * 16);
    for (int i = 0; i < 14; i++)
        memcpy(y + i * 16, table + ids[i] * 16, 16 * sizeof *y);
}

static void argmax(proof_run *run, const int64_t *dims)
{
    (void)dims;
    float *x = add(run, "X", TL_F32, 6 * 33)->data;
    for (int i = 0; i < 6 * 33; i++) /* few values: many ties */
        x[i] = (float)tl_random_below(&run->random, 9);
    for (int k = 0; k < 33; k++)
        x[k] = -INFINITY;
    int64_t *at = output(run, "I", TL_I64, 6);
    for (int i = 0; i < 6; i++)
        for (int k = 1; k < 33; k++)
            if (x[i * 33 + k] > x[i * 33 + at[i]])
                at[i] = k;
}

static void cumsum(proof_run *run, const int64_t *dims)
{
    (void)dims;
    const float *x = input(run, "X", 7 * 11);
    float *y = output(run, "Y", TL_F32, 7 * 11);
    for (int i = 0; i < 7; i++) {
        double sum = 0;
        for (int k = 0; k < 11; k++)
            y[i * 11 + k] = (float)(sum += x[i * 11 + k]);
    }
}

static void sort(proof_run *run, const int64_t *dims)
{
    (void)dims;
    float *x = add(run, "X", TL_F32, 5 * 17)->data;
    for (int i = 0; i < 5 * 17; i++)
        x[i] = (float)tl_random_below(&run->random, 12) / 4;
    float *y = output(run, "Y", TL_F32, 5 * 17);
    int64_t *at = output(run, "I", TL_I64, 5 * 17);
    for (int i = 0; i < 5 * 17; i++) { /* the place of an element: how many go before it */
        int place = 0, row = i / 17 * 17;
        for (int k = row; k < row + 17; k++)
            place += x[k] > x[i] || (x[k] == x[i] && k < i);
        y[row + place] = x[i];
        at[row + place] = i - row;
    }
}

static void int8_dot(proof_run *run, const int64_t *dims)
{
    (void)dims;
    uint8_t *a = add(run, "A", TL_U8, 5 * 32)->data;
    int8_t *b = add(run, "B", TL_I8, 32 * 32)->data;
    for (int i = 0; i < 5 * 32; i++)
        a[i] = (uint8_t)tl_random_below(&run->random, 256);
    for (int i = 0; i < 32 * 32; i++)
        b[i] = (int8_t)(tl_random_below(&run->random, 256) - 128);
    const float *scale = input(run, "scale", 32);
    float *c = output(run, "C", TL_F32, 5 * 32);
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 32; j++) {
            int32_t sum = 0;
            for (int k = 0; k < 32; k++)
                sum += a[i * 32 + k] * b[k * 32 + j];
            c[i * 32 + j] = (float)sum * scale[j];
        }
    }
}

/* Scatters, where the program gathers. */
static void conv_transposed(proof_run *run, const int64_t *dims)
{
    (void)dims;
    const float *x = input(run, "X", 6 * 5 * 4), *w = input(run, "W", 6 * 2 * 9);
    const float *bias = input(run, "bias", 4);
    float *y = output(run, "Y", TL_F32, 4 * 11 * 9);
    double sums[4][11][9];
    for (int i = 0; i < 4 * 99; i++)
        sums[i / 99][i / 9 % 11][i % 9] = bias[i / 99];
    for (int c = 0; c < 6; c++) {
        for (int p = 0; p < 20; p++) {
            for (int q = 0; q < 18; q++) {
                int i = p / 4 * 2 - 1 + q % 9 / 3 * 2, j = p % 4 * 2 - 1 + q % 3 * 2;
                if (i >= 0 && i < 11 && j >= 0 && j < 9)
                    sums[c / 3 * 2 + q / 9][i][j] += (double)x[c * 20 + p] * w[c * 18 + q];
            }
        }
    }
    for (int i = 0; i < 4 * 99; i++)
        y[i] = (float)sums[i / 99][i / 9 % 11][i % 9];
}

/* ---- the table ---- */

const proof_case proof_cases[] = {
    /* name             gpu    dims      tolerance  */
    { "conv_direct", false, 0, { 0 }, 1e-5, conv_direct },
    { "winograd", false, 0, { 0 }, 1e-4, winograd },
    { "pw_dw_pw", false, 0, { 0 }, 1e-5, pw_dw_pw },
    { "softmax", false, 0, { 0 }, 1e-6, softmax },
    { "layer_norm", false, 0, { 0 }, 1e-5, layer_norm },
    { "attention", false, 0, { 0 }, 1e-5, attention },
    { "attention_online", false, 0, { 0 }, 1e-5, attention },
    { "lstm", false, 0, { 0 }, 1e-5, lstm },
    { "gemm_dim", false, 1, { 1 }, 1e-5, gemm_dim },
    { "gemm_dim", false, 1, { 3 }, 1e-5, gemm_dim },
    { "gemm_dim", false, 1, { 4 }, 1e-5, gemm_dim },
    { "gemm_dim", false, 1, { 13 }, 1e-5, gemm_dim },
    { "gemm_dim", false, 1, { 64 }, 1e-5, gemm_dim },
    { "embedding", false, 0, { 0 }, 0, embedding },
    { "argmax", false, 0, { 0 }, 0, argmax },
    { "cumsum", false, 0, { 0 }, 1e-6, cumsum },
    { "sort", false, 0, { 0 }, 0, sort },
    { "int8_dot", false, 0, { 0 }, 1e-6, int8_dot },
    { "conv_transposed", false, 0, { 0 }, 1e-5, conv_transposed },
    { "gpu_gemm", true, 0, { 0 }, 1e-5, gpu_gemm },
    { "gpu_gemm_mma", true, 0, { 0 }, 1e-5, gpu_gemm_mma },
};
const int proof_case_count = sizeof proof_cases / sizeof *proof_cases;

void proof_run_make(proof_run *run, const proof_case *c, uint64_t seed)
{
    *run = (proof_run){ .random = tl_random_make(seed) };
    c->make(run, c->dims);
}

void proof_run_free(proof_run *run)
{
    for (int i = 0; i < run->count; i++) {
        free(run->arrays[i].data);
        free(run->arrays[i].expected);
    }
    run->count = 0;
}

static double element(tl_dtype dtype, const void *data, int64_t index)
{
    tl_number value = tl_number_load(dtype, data, (size_t)index);
    return tl_dtype_is_float(dtype) ? value.f : (double)value.i;
}

bool proof_run_check(const proof_run *run, const proof_case *c, char *why, size_t size)
{
    for (int i = 0; i < run->count; i++) {
        const proof_array *a = &run->arrays[i];
        for (int64_t k = 0; k < a->count && a->expected != NULL; k++) {
            double got = element(a->dtype, a->data, k);
            double expected = element(a->dtype, a->expected, k);
            if (fabs(got - expected) <= c->tolerance * (1 + fabs(expected)))
                continue; /* a NaN is not */
            snprintf(why, size, "%s: element %" PRId64 " of %s is %.9g, not %.9g", c->name, k,
                     a->name, got, expected);
            return false;
        }
    }
    return true;
}
