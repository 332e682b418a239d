/* tuner/learn/layers.c: layers of networks, forwards and backwards. */
#include "tuner/learn/layers.h"
#include <math.h>
#include <stddef.h>
#include <string.h>
#include "tuner/learn/functions.h"
#include "tuner/learn/multiply.h"

static size_t at(int row, int width)
{
    return (size_t)row * (size_t)width;
}

/* Sums go over eight lanes, then over these: an order that vectors keep, and everybody else can. */
enum { LANES = 8 };

static float sum_lanes(const float lanes[LANES])
{
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
           ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

static float sum_of(const float *x, int count)
{
    float lanes[LANES] = { 0 };
    int i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int l = 0; l < LANES; l++)
            lanes[l] += x[i + l];
    for (; i < count; i++)
        lanes[i % LANES] += x[i];
    return sum_lanes(lanes);
}

static float dot_of(const float *x, const float *y, int count)
{
    float lanes[LANES] = { 0 };
    int i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int l = 0; l < LANES; l++)
            lanes[l] += x[i + l] * y[i + l];
    for (; i < count; i++)
        lanes[i % LANES] += x[i] * y[i];
    return sum_lanes(lanes);
}

void tl_add_floats(int count, const float *x, float *y)
{
    for (int i = 0; i < count; i++)
        y[i] += x[i];
}

/* --- linear ----------------------------------------------------------------------------------------------------------- */

void tl_linear(int rows, int in, int out, const float *x, const float *weight, const float *bias,
               float *y)
{
    for (int r = 0; r < rows; r++)
        memcpy(y + at(r, out), bias, sizeof *y * (size_t)out);
    tl_multiply(rows, out, in, tl_rows_of(x, in), tl_rows_of(weight, out), y, (size_t)out, true);
}

void tl_linear_back(int rows, int in, int out, const float *x, const float *weight,
                    const float *d_y, float *d_x, bool add, float *d_weight, float *d_bias)
{
    for (int r = 0; r < rows; r++)
        tl_add_floats(out, d_y + at(r, out), d_bias);
    tl_multiply(in, out, rows, tl_transposed(tl_rows_of(x, in)), tl_rows_of(d_y, out), d_weight,
                (size_t)out, true);
    if (d_x != NULL)
        tl_multiply(rows, in, out, tl_rows_of(d_y, out), tl_transposed(tl_rows_of(weight, out)),
                    d_x, (size_t)in, add);
}

/* --- layer norm ------------------------------------------------------------------------------------------------------- */

static const float norm_epsilon = 1e-5F;

void tl_layer_norm(int rows, int width, const float *x, const float *gain, const float *bias,
                   float *normal, float *inverse, float *y)
{
    for (int r = 0; r < rows; r++) {
        const float *restrict from = x + at(r, width);
        float *restrict to = normal + at(r, width), *restrict out = y + at(r, width);
        const float mean = sum_of(from, width) / (float)width;
        for (int i = 0; i < width; i++)
            to[i] = from[i] - mean;
        inverse[r] = 1 / sqrtf(dot_of(to, to, width) / (float)width + norm_epsilon);
        for (int i = 0; i < width; i++) {
            to[i] *= inverse[r];
            out[i] = gain[i] * to[i] + bias[i];
        }
    }
}

void tl_layer_norm_back(int rows, int width, const float *normal, const float *inverse,
                        const float *gain, const float *d_y, float *d_x, bool add, float *d_gain,
                        float *d_bias)
{
    for (int r = 0; r < rows; r++) {
        const float *restrict n = normal + at(r, width), *restrict d = d_y + at(r, width);
        float *restrict to = d_x + at(r, width);
        float lanes[LANES] = { 0 }, along[LANES] = { 0 };
        for (int i = 0; i < width; i++) {
            d_gain[i] += d[i] * n[i];
            d_bias[i] += d[i];
        }
        int i = 0;
        for (; i + LANES <= width; i += LANES)
            for (int l = 0; l < LANES; l++) {
                const float g = d[i + l] * gain[i + l];
                lanes[l] += g;
                along[l] += g * n[i + l];
            }
        for (; i < width; i++) {
            lanes[i % LANES] += d[i] * gain[i];
            along[i % LANES] += d[i] * gain[i] * n[i];
        }
        const float mean = sum_lanes(lanes) / (float)width, share = sum_lanes(along) / (float)width;
        for (i = 0; i < width; i++) {
            const float value = inverse[r] * (d[i] * gain[i] - mean - n[i] * share);
            to[i] = add ? to[i] + value : value;
        }
    }
}

/* --- element by element ----------------------------------------------------------------------------------------------- */

void tl_relu(int count, const float *x, float *y)
{
    for (int i = 0; i < count; i++)
        y[i] = x[i] > 0 ? x[i] : 0;
}

void tl_relu_back(int count, const float *y, const float *d_y, float *d_x)
{
    for (int i = 0; i < count; i++)
        d_x[i] = y[i] > 0 ? d_y[i] : 0;
}

void tl_gelu(int count, const float *x, float *y)
{
    tl_gelu_floats(x, y, count);
}

void tl_gelu_back(int count, const float *x, const float *d_y, float *d_x)
{
    enum { PIECE = 256 };
    float slopes[PIECE];
    for (int from = 0; from < count; from += PIECE) {
        const int size = count - from < PIECE ? count - from : PIECE;
        tl_gelu_slopes(x + from, slopes, size);
        for (int i = 0; i < size; i++)
            d_x[from + i] = d_y[from + i] * slopes[i];
    }
}

/* --- attention -------------------------------------------------------------------------------------------------------- */

/* One head of one segment. */
typedef struct {
    int length, size; /* rows; numbers of a query */
    tl_matrix_view query, key, value;
    size_t offset; /* of its query in a row of x, and of its values in one of y */
    size_t row;    /* of its first */
} head;

static head head_of(const tl_attention_shape *shape, int segment, int h, const float *x)
{
    const int size = shape->width / shape->heads;
    const size_t stride = 3 * (size_t)shape->width, row = (size_t)shape->first[segment];
    const float *from = x + row * stride + (size_t)h * (size_t)size;
    return (head){ .length = shape->first[segment + 1] - shape->first[segment],
                   .size = size,
                   .query = { from, stride, 1 },
                   .key = { from + shape->width, stride, 1 },
                   .value = { from + 2 * (size_t)shape->width, stride, 1 },
                   .offset = (size_t)h * (size_t)size,
                   .row = row };
}

long tl_attention_shares(const tl_attention_shape *shape)
{
    long sum = 0;
    for (int s = 0; s < shape->segments; s++) {
        const long length = shape->first[s + 1] - shape->first[s];
        sum += length * length;
    }
    return sum * shape->heads;
}

/* A row of scores becomes shares that add up to 1. */
static void softmax(float *x, int count, float scale)
{
    float most = x[0];
    for (int i = 1; i < count; i++)
        most = x[i] > most ? x[i] : most;
    for (int i = 0; i < count; i++)
        x[i] = (x[i] - most) * scale;
    tl_exp_floats(x, count);
    const float inverse = 1 / sum_of(x, count);
    for (int i = 0; i < count; i++)
        x[i] *= inverse;
}

void tl_attention(const tl_attention_shape *shape, const float *x, float *shares, float *y)
{
    const float scale = 1 / sqrtf((float)(shape->width / shape->heads));
    for (int s = 0; s < shape->segments; s++)
        for (int h = 0; h < shape->heads; h++) {
            const head a = head_of(shape, s, h, x);
            tl_multiply(a.length, a.length, a.size, a.query, tl_transposed(a.key), shares,
                        (size_t)a.length, false);
            for (int i = 0; i < a.length; i++)
                softmax(shares + at(i, a.length), a.length, scale);
            tl_multiply(a.length, a.size, a.length, tl_rows_of(shares, a.length), a.value,
                        y + a.row * (size_t)shape->width + a.offset, (size_t)shape->width, false);
            shares += at(a.length, a.length);
        }
}

/* d_scores = shares (d - sum of d times shares), row by row, in place of d. */
static void softmax_back(const float *shares, float *d, int count, float scale)
{
    const float along = dot_of(shares, d, count);
    for (int i = 0; i < count; i++)
        d[i] = shares[i] * (d[i] - along) * scale;
}

static void head_back(const tl_attention_shape *shape, const head *a, const float *shares,
                      float *d_shares, const float *d_y, float *d_x)
{
    const float scale = 1 / sqrtf((float)a->size);
    const size_t stride = 3 * (size_t)shape->width;
    const tl_matrix_view out = { d_y + a->row * (size_t)shape->width + a->offset,
                                 (size_t)shape->width, 1 };
    float *to = d_x + a->row * stride + a->offset;
    const tl_matrix_view kept = tl_rows_of(shares, a->length), d = tl_rows_of(d_shares, a->length);
    tl_multiply(a->length, a->size, a->length, tl_transposed(kept), out, to + 2 * shape->width,
                stride, false);
    tl_multiply(a->length, a->length, a->size, out, tl_transposed(a->value), d_shares,
                (size_t)a->length, false);
    for (int i = 0; i < a->length; i++)
        softmax_back(shares + at(i, a->length), d_shares + at(i, a->length), a->length, scale);
    tl_multiply(a->length, a->size, a->length, d, a->key, to, stride, false);
    tl_multiply(a->length, a->size, a->length, tl_transposed(d), a->query, to + shape->width,
                stride, false);
}

void tl_attention_back(const tl_attention_shape *shape, const float *x, const float *shares,
                       const float *d_y, float *d_x, float *room)
{
    for (int s = 0; s < shape->segments; s++)
        for (int h = 0; h < shape->heads; h++) {
            const head a = head_of(shape, s, h, x);
            head_back(shape, &a, shares, room, d_y, d_x);
            shares += at(a.length, a.length);
        }
}

/* --- segments --------------------------------------------------------------------------------------------------------- */

void tl_segment_sum(int segments, const int *first, int width, const float *x, const float *scale,
                    float *y)
{
    memset(y, 0, sizeof *y * at(segments, width));
    for (int s = 0; s < segments; s++) {
        float *restrict to = y + at(s, width);
        for (int r = first[s]; r < first[s + 1]; r++)
            tl_add_floats(width, x + at(r, width), to);
        for (int i = 0; i < width && scale != NULL; i++)
            to[i] *= scale[s];
    }
}

void tl_segment_sum_back(int segments, const int *first, int width, const float *scale,
                         const float *d_y, float *d_x)
{
    for (int s = 0; s < segments; s++) {
        const float *restrict from = d_y + at(s, width);
        const float by = scale != NULL ? scale[s] : 1;
        for (int r = first[s]; r < first[s + 1]; r++) {
            float *restrict to = d_x + at(r, width);
            for (int i = 0; i < width; i++)
                to[i] = from[i] * by;
        }
    }
}

void tl_scatter_rows(int rows, int width, const float *x, const int *to, float *y)
{
    for (int r = 0; r < rows; r++)
        memcpy(y + at(to[r], width), x + at(r, width), sizeof *y * (size_t)width);
}

void tl_gather_rows(int rows, int width, const float *from, const int *where, float *y)
{
    for (int r = 0; r < rows; r++)
        memcpy(y + at(r, width), from + at(where[r], width), sizeof *y * (size_t)width);
}
