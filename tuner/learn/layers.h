/* tuner/learn/layers.h: layers of networks, forwards and backwards. Matrices are rows of floats, one behind the
 * other. What goes back: `d_x` is the derivative of the loss by x. A layer fills the d_x of its input, and adds to
 * those of its weights.
 *
 * Rows belong to segments of different lengths (a program's statements): segment s has rows first[s] .. first[s +
 * 1] - 1. */
#ifndef TL_TUNER_LEARN_LAYERS_H
#define TL_TUNER_LEARN_LAYERS_H
#include <stdbool.h>

/* y = x weight + bias: x `rows` by `in`, weight `in` by `out`. */
void tl_linear(int rows, int in, int out, const float *x, const float *weight, const float *bias,
               float *y);
/* d_x NULL: nobody asks for it; `add`: to what is in it. */
void tl_linear_back(int rows, int in, int out, const float *x, const float *weight,
                    const float *d_y, float *d_x, bool add, float *d_weight, float *d_bias);

/* y = gain (x - mean) / deviation + bias, of each row. `normal`: rows by width, and `inverse`: a number a row; kept
 * for the way back, of which they are the input. */
void tl_layer_norm(int rows, int width, const float *x, const float *gain, const float *bias,
                   float *normal, float *inverse, float *y);
void tl_layer_norm_back(int rows, int width, const float *normal, const float *inverse,
                        const float *gain, const float *d_y, float *d_x, bool add, float *d_gain,
                        float *d_bias);

/* y = max(x, 0), in place and not; the way back needs y alone. */
void tl_relu(int count, const float *x, float *y);
void tl_relu_back(int count, const float *y, const float *d_y, float *d_x);
void tl_gelu(int count, const float *x, float *y);
void tl_gelu_back(int count, const float *x, const float *d_y, float *d_x);

/* Attention of each row over the rows of its segment (Vaswani et al. 2017), `heads` beside each other: a row of x
 * has a query, a key and a value, `width` floats each. `shares` has tl_attention_shares floats, kept for the way
 * back; `room` those of the longest segment. */
typedef struct {
    int segments, width, heads;
    const int *first;
} tl_attention_shape;
long tl_attention_shares(const tl_attention_shape *shape);
void tl_attention(const tl_attention_shape *shape, const float *x, float *shares, float *y);
void tl_attention_back(const tl_attention_shape *shape, const float *x, const float *shares,
                       const float *d_y, float *d_x, float *room);

/* y[s] = sum of the segment's rows times `scale[s]` (NULL: 1). */
void tl_segment_sum(int segments, const int *first, int width, const float *x, const float *scale,
                    float *y);
void tl_segment_sum_back(int segments, const int *first, int width, const float *scale,
                         const float *d_y, float *d_x);

void tl_add_floats(int count, const float *x, float *y); /* y += x */
/* Rows that change their places: y[to[r]] = x[r], and y[r] = from[where[r]]: each is the way back of the other. */
void tl_scatter_rows(int rows, int width, const float *x, const int *to, float *y);
void tl_gather_rows(int rows, int width, const float *from, const int *where, float *y);

#endif
