/* frontend/import/import_signal.c: windows, filter banks, and Fourier transforms as products with the matrix of sines and
 * cosines.
 *
 *     DFT    [.., n] of pairs times [n * 2, m * 2]          STFT   a convolution: a filter for each frequency's parts, a window
 *                                                                  for each frame
 *
 * The products are of f64: outputs near zero would keep only the rounding of sums of large terms. */
#include <math.h>
#include <string.h>
#include "frontend/import/import_rules.h"

#define TAU 6.283185307179586476925

enum { LONGEST_TRANSFORM = 1 << 14, MOST_OF_MATRIX = 1 << 25 };

static tl_status float_dtype(tl_onnx_call *c, const char *attribute, tl_dtype *out)
{
    int asked = (int)tl_call_int(c, attribute, 1);
    return tl_dtype_from_onnx(asked, out)
               ? TL_OK
               : tl_call_unsupported(c, "data type %s", tl_onnx_dtype_text(asked));
}

/* a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n). */
static tl_status window(tl_onnx_call *c, double a0, double a1, double a2)
{
    double size;
    tl_dtype dtype;
    TL_TRY(float_dtype(c, "output_datatype", &dtype));
    TL_TRY(tl_need_scalar(c, 0, 0, &size));
    if (!(size >= 0 && size <= 1 << 20))
        return tl_call_bad(c, "a window of %g elements", size);
    int64_t count = (int64_t)size;
    double period = tl_call_int(c, "periodic", 1) != 0 ? size : size - 1;
    double *numbers = TL_NEW_ARRAY(c->arena, double, count);
    for (int64_t i = 0; i < count; i++)
        numbers[i] =
            a0 - a1 * cos(TAU * (double)i / period) + a2 * cos(2 * TAU * (double)i / period);
    tl_result(c, 0, tl_onnx_emit_numbers(c, dtype, numbers, 1, &count));
    return TL_OK;
}

tl_status tl_import_hann_window(tl_onnx_call *c)
{
    return window(c, 0.5, 0.5, 0);
}

tl_status tl_import_hamming_window(tl_onnx_call *c)
{
    return window(c, 25.0 / 46, 1 - 25.0 / 46, 0);
}

tl_status tl_import_blackman_window(tl_onnx_call *c)
{
    return window(c, 0.42, 0.5, 0.08);
}

static double to_mel(double hertz)
{
    return 2595 * log10(1 + hertz / 700);
}

/* Triangles over the frequencies of a transform, their corners evenly apart on the mel scale. */
tl_status tl_import_mel_weights(tl_onnx_call *c)
{
    double in[5]; /* bins, length of the transform, sample rate, lower and upper edge in Hz */
    tl_dtype dtype;
    TL_TRY(float_dtype(c, "output_datatype", &dtype));
    for (int i = 0; i < 5; i++)
        TL_TRY(tl_need_scalar(c, i, 0, &in[i]));
    if (!(in[0] >= 1 && in[0] <= 1 << 14 && in[1] >= 1 && in[1] <= 1 << 20 && in[2] > 0 &&
          in[2] >= 1e-3 && in[3] >= 0 && in[4] >= in[3] && in[4] <= 1e9))
        return tl_call_bad(c, "%g bins of a transform of %g", in[0], in[1]);
    int64_t bins = (int64_t)in[0], lines = (int64_t)in[1] / 2 + 1, extents[] = { lines, bins };
    if (bins * lines > 1 << 24)
        return tl_call_bad(c, "%g bins of a transform of %g", in[0], in[1]);
    double low = to_mel(in[3]), step = (to_mel(in[4]) - low) / (double)(bins + 2);
    double *weights = TL_NEW_ARRAY(c->arena, double, lines *bins);
    int64_t *corner = TL_NEW_ARRAY(c->arena, int64_t, bins + 2);
    for (int64_t i = 0; i < bins + 2; i++) {
        double hertz = 700 * (pow(10, ((double)i * step + low) / 2595) - 1);
        corner[i] = (int64_t)floor((in[1] + 1) * hertz / in[2]);
    }
    for (int64_t b = 0; b < bins; b++) {
        int64_t left = corner[b], middle = corner[b + 1], right = corner[b + 2];
        if (left == middle && middle < lines)
            weights[middle * bins + b] = 1;
        for (int64_t l = left; left != middle && l <= middle && l < lines; l++)
            weights[l * bins + b] = (double)(l - left) / (double)(middle - left);
        for (int64_t l = middle; right != middle && l < right && l < lines; l++)
            weights[l * bins + b] = (double)(right - l) / (double)(right - middle);
    }
    tl_result(c, 0, tl_onnx_emit_numbers(c, dtype, weights, 2, extents));
    return TL_OK;
}

/* e^(-2 pi i j k / n) for n frequencies or times; the product j*k is taken modulo n, so that large ones lose nothing. */
static void turn(int64_t j, int64_t k, int64_t n, double sign, double *real, double *imaginary)
{
    double angle = TAU * (double)(j * k % n) / (double)n;
    *real = cos(angle);
    *imaginary = sign * sin(angle);
}

/* The matrix of a transform of `n` points: rows are (parts of) the points that are there, columns parts of the results.
 * `mirrored`: of a spectrum's first half, whose other half is its mirror image. */
static tl_value *dft_matrix(tl_onnx_call *c, int64_t points, int in_parts, int64_t n,
                            int64_t results, int out_parts, bool inverse, bool mirrored)
{
    int64_t extents[] = { points * in_parts, results * out_parts };
    double *m = TL_NEW_ARRAY(c->arena, double, extents[0] * extents[1]);
    for (int64_t j = 0; j < points; j++)
        for (int64_t k = 0; k < results; k++) {
            double re, im, weight = inverse ? 1 / (double)n : 1;
            turn(j, k, n, inverse ? 1 : -1, &re, &im);
            if (mirrored && j != 0 && !(n % 2 == 0 && j == n / 2))
                weight *= 2;
            double *at = m + j * in_parts * extents[1] + k * out_parts;
            at[0] = weight * re;
            if (out_parts == 2)
                at[1] = weight * im;
            if (in_parts == 2) {
                at[extents[1]] = -weight * im;
                if (out_parts == 2)
                    at[extents[1] + 1] = weight * re;
            }
        }
    return tl_onnx_emit_doubles(c, m, 2, extents);
}

tl_status tl_import_dft(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    bool inverse = tl_call_int(c, "inverse", 0) != 0, onesided = tl_call_int(c, "onesided", 0) != 0;
    double length;
    int axis, rank;
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_dtype(c, x));
    rank = x->shape.rank;
    if (c->version < 20)
        TL_TRY(tl_onnx_axis(c, tl_call_int(c, "axis", 1), rank, &axis));
    else
        TL_TRY(tl_need_axis(c, 2, -2, rank, &axis));
    if (rank < 2 || axis == rank - 1 || x->shape.dims[rank - 1].extent < 1 ||
        x->shape.dims[rank - 1].extent > 2)
        return tl_call_bad(c, "its input has no last axis of one or two parts, or axis %d is that",
                           axis);
    int64_t parts = x->shape.dims[rank - 1].extent, points = x->shape.dims[axis].extent;
    bool to_real = inverse && onesided; /* from the first half of a spectrum */
    TL_TRY(tl_need_scalar(c, 1, (double)(to_real ? 2 * (points - 1) : points), &length));
    if (!(length >= 1 && length <= LONGEST_TRANSFORM))
        return tl_call_unsupported(c, "a transform of %g points, not 1 to %d", length,
                                   LONGEST_TRANSFORM);
    int64_t n = (int64_t)length, used = to_real ? n / 2 + 1 : n;
    int64_t results = onesided && !inverse ? n / 2 + 1 : n;
    int out_parts = to_real ? 1 : 2;
    if (used > points)
        used = points; /* what is missing is zero */
    if (used * parts * results * out_parts > MOST_OF_MATRIX)
        return tl_call_unsupported(c, "a transform of %g points, not of fewer", length);
    x = tl_onnx_emit_slice(c, tl_onnx_emit_cast(c, x, TL_F64), axis, 0, used);

    int64_t perm[TL_MAX_RANK], back[TL_MAX_RANK], extents[TL_MAX_RANK];
    int at = 0;
    for (int i = 0; i < rank; i++)
        if (i != axis && i != rank - 1)
            perm[at++] = i;
    perm[at++] = axis;
    perm[at] = rank - 1;
    x = tl_onnx_emit_transpose(c, x, perm);
    tl_onnx_extents(x, extents);
    extents[rank - 2] = used * parts;
    x = tl_onnx_emit_reshape(c, x, extents, rank - 1);
    x = tl_emit2(c, TL_OP_MATMUL, x,
                 dft_matrix(c, used, (int)parts, n, results, out_parts, inverse, to_real));
    extents[rank - 2] = results;
    extents[rank - 1] = out_parts;
    x = tl_onnx_emit_reshape(c, x, extents, rank);
    for (int i = 0; i < rank; i++)
        back[perm[i]] = i;
    tl_result(c, 0, tl_onnx_emit_cast(c, tl_onnx_emit_transpose(c, x, back), c->inputs[0]->dtype));
    return TL_OK;
}

/* [results * 2, 1, frame]: a filter for the real and one for the imaginary part of each frequency. */
static tl_value *stft_filters(tl_onnx_call *c, int64_t frame, int64_t results)
{
    int64_t extents[] = { results * 2, 1, frame };
    double *w = TL_NEW_ARRAY(c->arena, double, results * 2 * frame);
    for (int64_t k = 0; k < results; k++)
        for (int64_t t = 0; t < frame; t++)
            turn(k, t, frame, -1, &w[2 * k * frame + t], &w[(2 * k + 1) * frame + t]);
    return tl_onnx_emit_doubles(c, w, 3, extents);
}

tl_status tl_import_stft(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0], *shape_of_window = tl_call_input(c, 2);
    bool onesided = tl_call_int(c, "onesided", 1) != 0;
    double step, length;
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_dtype(c, x));
    tl_dtype dtype = x->dtype;
    TL_TRY(tl_need_scalar(c, 1, 0, &step));
    if (shape_of_window != NULL)
        TL_TRY(tl_need_shape(c, shape_of_window));
    TL_TRY(tl_need_scalar(
        c, 3, shape_of_window != NULL ? (double)tl_shape_elements(&shape_of_window->shape) : 0,
        &length));
    int rank = x->shape.rank;
    int64_t parts = rank == 3 ? x->shape.dims[2].extent : 1;
    if ((rank != 2 && rank != 3) || (parts != 1 && parts != 2))
        return tl_call_bad(c, "its signal has %d axes", rank);
    int64_t batch = x->shape.dims[0].extent, samples = x->shape.dims[1].extent;
    if (!(step >= 1 && step <= INT32_MAX && length >= 1 && length <= (double)samples))
        return tl_call_bad(c, "frames of %g samples, %g apart, of %lld", length, step,
                           (long long)samples);
    if (length > LONGEST_TRANSFORM)
        return tl_call_unsupported(c, "frames of more than %d samples", LONGEST_TRANSFORM);
    if (parts == 2 && onesided)
        return tl_call_bad(c, "one side of a complex signal's spectrum");
    int64_t frame = (int64_t)length, hop = (int64_t)step,
            results = onesided ? frame / 2 + 1 : frame;
    int64_t frames = (samples - frame) / hop + 1;
    if (results * 2 * frame > MOST_OF_MATRIX)
        return tl_call_unsupported(c, "frames of %g samples", length);
    tl_value *w = stft_filters(c, frame, results);
    if (shape_of_window != NULL)
        w = tl_emit2(c, TL_OP_MUL, w, tl_onnx_emit_cast(c, shape_of_window, TL_F64));
    x = tl_onnx_emit_reshape(c, tl_onnx_emit_cast(c, x, TL_F64),
                             (int64_t[]){ batch, samples, parts }, 3);
    tl_value *spectrum[2];
    for (int p = 0; p < parts; p++) {
        tl_value *part = tl_onnx_emit_reshape(c, tl_onnx_emit_slice(c, x, 2, p, 1),
                                              (int64_t[]){ batch, 1, samples }, 3);
        tl_value *inputs[] = { part, w };
        tl_node *n = tl_onnx_emit_node(c, TL_OP_CONV, 2, inputs);
        tl_attr_set_ints(c->graph, n, "strides", &hop, 1);
        spectrum[p] =
            tl_onnx_emit_reshape(c, tl_emitted(c, n), (int64_t[]){ batch, results, 2, frames }, 4);
    }
    tl_value *y = spectrum[0];
    if (parts == 2) { /* times i: the parts change places, one its sign */
        tl_value *turned[] = { tl_emit1(c, TL_OP_NEG, tl_onnx_emit_slice(c, spectrum[1], 2, 1, 1)),
                               tl_onnx_emit_slice(c, spectrum[1], 2, 0, 1) };
        y = tl_emit2(c, TL_OP_ADD, y, tl_onnx_emit_concat(c, 2, turned, 2));
    }
    y = tl_onnx_emit_transpose(c, y, (const int64_t[]){ 0, 3, 1, 2 });
    tl_result(c, 0, tl_onnx_emit_cast(c, y, dtype));
    return TL_OK;
}
