/* frontend/import/import_conv_transpose.c: ConvTranspose as convolutions.
 *
 * With stride s, output position s*m + r is a sum over the taps r, r+s, r+2s, ... of the kernel: for each r that is a
 * convolution of stride 1. All of them are one convolution with s times as many channels along each axis, whose result is
 * interleaved:
 *
 *     y = interleave(Conv(x, taps of all r side by side, J = ceil(k / s) along each axis))
 *
 * Nothing is multiplied by zero but the taps that fill k up to s*J. Dilated kernels of a stride, and grouped ones of three
 * axes, whose weights would have more axes than a tensor has, spread x with zeros instead. */
#include <string.h>
#include "frontend/import/import_rules.h"
#include "runtime/base/checked.h"

enum { MOST_SPATIAL = 3 };

typedef struct {
    tl_onnx_call *call;
    tl_value *x, *w, *bias;
    int spatial;
    int64_t batch, in_channels, out_channels, group;
    int64_t in[MOST_SPATIAL], kernel[MOST_SPATIAL], stride[MOST_SPATIAL], dilation[MOST_SPATIAL];
    int64_t begin[MOST_SPATIAL], out[MOST_SPATIAL]; /* cut off in front, kept */
} job;

/* How much of the full result is cut off in front, and how much is kept. */
static tl_status read_pads(tl_onnx_call *c, job *j)
{
    int64_t pads[2 * MOST_SPATIAL], extra[MOST_SPATIAL], shape[MOST_SPATIAL];
    const char *word = tl_call_string(c, "auto_pad", "NOTSET");
    bool upper = strcmp(word, "SAME_UPPER") == 0, same = upper || strcmp(word, "SAME_LOWER") == 0;
    if (!same && strcmp(word, "NOTSET") != 0 && strcmp(word, "VALID") != 0)
        return tl_call_bad(c, "auto_pad '%.40s'", word);
    TL_TRY(tl_call_list(c, "pads", 2 * j->spatial, 0, -TL_LARGEST_LISTED, pads));
    TL_TRY(tl_call_list(c, "output_padding", j->spatial, 0, 0, extra));
    TL_TRY(tl_call_list(c, "output_shape", j->spatial, -1, -1, shape));
    int64_t phases = 1;
    for (int i = 0; i < j->spatial; i++) {
        phases *= j->stride[i];
        if (phases > 1 << 20)
            return tl_call_unsupported(c, "strides whose product is more than 2^20");
        int64_t full =
            (j->in[i] - 1) * j->stride[i] + (j->kernel[i] - 1) * j->dilation[i] + 1 + extra[i];
        if (extra[i] >= j->stride[i] && extra[i] >= j->dilation[i])
            return tl_call_bad(c, "output_padding %lld of stride %lld", (long long)extra[i],
                               (long long)j->stride[i]);
        if (same && shape[i] < 0)
            shape[i] = j->in[i] * j->stride[i];
        if (shape[i] >= 0) {
            int64_t total = full - shape[i], half = tl_floordiv(total, 2);
            j->begin[i] = upper ? half : total - half;
            j->out[i] = shape[i];
        } else {
            bool none = strcmp(word, "VALID") == 0;
            j->begin[i] = none ? 0 : pads[i];
            j->out[i] = none ? full : full - pads[i] - pads[j->spatial + i];
        }
        if (j->out[i] < 0)
            return tl_call_bad(c, "nothing is left of axis %d", i + 2);
    }
    return TL_OK;
}

static tl_status read_job(tl_onnx_call *c, job *j)
{
    *j = (job){ .call = c, .x = c->inputs[0], .w = c->inputs[1], .bias = tl_call_input(c, 2) };
    TL_TRY(tl_need_shape(c, j->x));
    TL_TRY(tl_need_shape(c, j->w));
    const tl_dim *x = j->x->shape.dims, *w = j->w->shape.dims;
    j->spatial = j->x->shape.rank - 2;
    if (j->spatial < 1 || j->w->shape.rank != j->x->shape.rank)
        return tl_call_bad(c, "its input has %d axes, its weight %d", j->x->shape.rank,
                           j->w->shape.rank);
    if (j->spatial > MOST_SPATIAL)
        return tl_call_unsupported(c, "more than three spatial axes");
    j->batch = x[0].extent;
    j->in_channels = x[1].extent;
    j->group = tl_call_int(c, "group", 1);
    if (w[0].extent != j->in_channels || j->group < 1 || j->in_channels % j->group != 0)
        return tl_call_bad(c, "%lld channels, a weight for %lld, in %lld groups",
                           (long long)j->in_channels, (long long)w[0].extent, (long long)j->group);
    if (tl_mul_overflows(w[1].extent, j->group, &j->out_channels) || j->out_channels > INT32_MAX)
        return tl_call_unsupported(c, "more than 2^31 channels");
    for (int i = 0; i < j->spatial; i++) {
        j->in[i] = x[2 + i].extent;
        j->kernel[i] = w[2 + i].extent;
        if (j->kernel[i] < 1)
            return tl_call_bad(c, "axis %d of its weight is empty", 2 + i);
        if (j->in[i] > INT32_MAX || j->kernel[i] > INT32_MAX)
            return tl_call_unsupported(c, "more than 2^31 elements of axis %d", 2 + i);
    }
    TL_TRY(tl_call_list(c, "strides", j->spatial, 1, 1, j->stride));
    TL_TRY(tl_call_list(c, "dilations", j->spatial, 1, 1, j->dilation));
    const int64_t *kernel;
    int count = tl_call_ints(c, "kernel_shape", &kernel);
    for (int i = 0; i < count; i++)
        if (count != j->spatial || kernel[i] != j->kernel[i])
            return tl_call_bad(c, "kernel_shape does not agree with the weight's shape");
    return read_pads(c, j);
}

/* Windows [from, from + count) of Conv(x, w) in full, of `taps` along each axis: what lies outside of x is zero. */
static tl_value *convolve(const job *j, tl_value *x, tl_value *w, tl_value *bias,
                          const int64_t *reach, const int64_t *from, const int64_t *count,
                          bool dilated)
{
    tl_onnx_call *c = j->call;
    int64_t pads[2 * MOST_SPATIAL], cut[2 * TL_MAX_RANK] = { 0 };
    int rank = 2 + j->spatial;
    for (int i = 0; i < j->spatial; i++) {
        int64_t in = x->shape.dims[2 + i].extent;
        int64_t before = reach[i] - from[i], after = from[i] + count[i] - in;
        cut[2 + i] = before < 0 ? before : 0;
        cut[rank + 2 + i] = after < 0 ? after : 0;
        pads[i] = before > 0 ? before : 0;
        pads[j->spatial + i] = after > 0 ? after : 0;
    }
    tl_value *inputs[] = { tl_onnx_emit_pad(c, x, cut, 0), w, bias };
    tl_node *n = tl_onnx_emit_node(c, TL_OP_CONV, bias != NULL ? 3 : 2, inputs);
    tl_attr_set_int(c->graph, n, "group", j->group);
    tl_attr_set_ints(c->graph, n, "pads", pads, 2 * j->spatial);
    if (dilated)
        tl_attr_set_ints(c->graph, n, "dilations", j->dilation, j->spatial);
    return tl_emitted(c, n);
}

/* [C, M/g, k...] as the weight of a convolution: [M, C/g, k...], every kernel back to front. */
static tl_value *turn_weight(const job *j)
{
    tl_onnx_call *c = j->call;
    int64_t extents[TL_MAX_RANK], perm[TL_MAX_RANK];
    int rank = 3 + j->spatial;
    extents[0] = j->group;
    extents[1] = j->in_channels / j->group;
    extents[2] = j->out_channels / j->group;
    for (int i = 0; i < rank; i++)
        perm[i] = i == 1 ? 2 : i == 2 ? 1 : i;
    for (int i = 0; i < j->spatial; i++)
        extents[3 + i] = j->kernel[i];
    tl_value *w = tl_onnx_emit_reshape(c, j->w, extents, rank);
    w = tl_onnx_emit_transpose(c, w, perm);
    extents[1] = j->out_channels;
    extents[2] = j->in_channels / j->group;
    w = tl_onnx_emit_reshape(c, w, extents + 1, rank - 1);
    for (int i = 0; i < j->spatial; i++)
        if (j->kernel[i] > 1)
            w = tl_onnx_emit_reverse(c, w, 2 + i);
    return w;
}

/* x with stride - 1 zeros behind each element but the last. */
static tl_value *spread(const job *j)
{
    tl_onnx_call *c = j->call;
    tl_value *x = j->x;
    for (int i = 0; i < j->spatial; i++) {
        int64_t s = j->stride[i], pads[2 * TL_MAX_RANK] = { 0 };
        if (s == 1 || j->in[i] == 0)
            continue;
        int axis = 2 + i, rank = x->shape.rank + 1;
        x = tl_onnx_emit_reshape_axis(c, x, axis, 2, (int64_t[]){ j->in[i], 1 });
        pads[rank + axis + 1] = s - 1;
        x = tl_onnx_emit_pad(c, x, pads, 0);
        int64_t merged[TL_MAX_RANK];
        int at = 0;
        for (int k = 0; k < rank; k++)
            if (k != axis + 1)
                merged[at++] = k == axis ? j->in[i] * s : x->shape.dims[k].extent;
        x = tl_onnx_emit_reshape(c, x, merged, rank - 1);
        x = tl_onnx_emit_slice(c, x, axis, 0, (j->in[i] - 1) * s + 1);
    }
    return x;
}

static tl_value *by_spreading(const job *j)
{
    int64_t reach[MOST_SPATIAL];
    for (int i = 0; i < j->spatial; i++)
        reach[i] = (j->kernel[i] - 1) * j->dilation[i];
    return convolve(j, spread(j), turn_weight(j), j->bias, reach, j->begin, j->out, true);
}

/* The taps of all phases side by side: [M * s.., C/g, J..], and the bias of each. */
static tl_value *split_weight(const job *j, const int64_t *taps)
{
    tl_onnx_call *c = j->call;
    int64_t pads[2 * TL_MAX_RANK] = { 0 }, extents[TL_MAX_RANK], perm[TL_MAX_RANK];
    int rank = 2 + j->spatial, at = 0, count = 0, lead = j->group > 1 ? 3 : 2;
    tl_value *w = j->w;
    for (int i = 0; i < j->spatial; i++)
        pads[rank + 2 + i] = taps[i] * j->stride[i] - j->kernel[i];
    w = tl_onnx_emit_pad(c, w, pads, 0);
    if (lead == 3)
        extents[count++] = j->group;
    extents[count++] = j->in_channels / j->group;
    extents[count++] = j->out_channels / j->group;
    for (int i = 0; i < j->spatial; i++) {
        extents[count++] = taps[i];
        extents[count++] = j->stride[i];
    }
    w = tl_onnx_emit_reshape(c, w, extents, count);
    if (lead == 3)
        perm[at++] = 0;
    perm[at++] = lead - 1;
    for (int i = 0; i < j->spatial; i++)
        perm[at++] = lead + 2 * i + 1;
    perm[at++] = lead - 2;
    for (int i = 0; i < j->spatial; i++)
        perm[at++] = lead + 2 * i;
    w = tl_onnx_emit_transpose(c, w, perm);
    extents[0] = j->out_channels;
    extents[1] = j->in_channels / j->group;
    for (int i = 0; i < j->spatial; i++) {
        extents[0] *= j->stride[i];
        extents[2 + i] = taps[i];
    }
    w = tl_onnx_emit_reshape(c, w, extents, rank);
    for (int i = 0; i < j->spatial; i++)
        if (taps[i] > 1)
            w = tl_onnx_emit_reverse(c, w, 2 + i);
    return w;
}

/* The bias of every phase is the channel's. */
static tl_value *repeat_bias(const job *j, int64_t phases)
{
    tl_onnx_call *c = j->call;
    if (j->bias == NULL)
        return NULL;
    tl_value *b = tl_onnx_emit_reshape(c, j->bias, (int64_t[]){ j->out_channels, 1 }, 2);
    b = tl_onnx_emit_expand(c, b, (int64_t[]){ j->out_channels, phases }, 2);
    return tl_onnx_emit_reshape(c, b, (int64_t[]){ j->out_channels * phases }, 1);
}

/* [N, M * s.., m..] to [N, M, m * s..], and the part of it that is kept. */
static tl_value *interleave(const job *j, tl_value *y, const int64_t *from, const int64_t *count)
{
    tl_onnx_call *c = j->call;
    int64_t extents[TL_MAX_RANK] = { j->batch, j->out_channels }, perm[TL_MAX_RANK] = { 0, 1 };
    for (int i = 0; i < j->spatial; i++) {
        extents[2 + i] = j->stride[i];
        extents[2 + j->spatial + i] = count[i];
        perm[2 + 2 * i] = 2 + j->spatial + i;
        perm[3 + 2 * i] = 2 + i;
    }
    y = tl_onnx_emit_reshape(c, y, extents, 2 + 2 * j->spatial);
    y = tl_onnx_emit_transpose(c, y, perm);
    for (int i = 0; i < j->spatial; i++)
        extents[2 + i] = count[i] * j->stride[i];
    y = tl_onnx_emit_reshape(c, y, extents, 2 + j->spatial);
    for (int i = 0; i < j->spatial; i++)
        y = tl_onnx_emit_slice(c, y, 2 + i, j->begin[i] - from[i] * j->stride[i], j->out[i]);
    return y;
}

static tl_value *by_phases(const job *j)
{
    int64_t taps[MOST_SPATIAL], reach[MOST_SPATIAL], from[MOST_SPATIAL], count[MOST_SPATIAL];
    int64_t phases = 1;
    for (int i = 0; i < j->spatial; i++) {
        int64_t s = j->stride[i], begin = j->begin[i];
        taps[i] = (j->kernel[i] + s - 1) / s;
        reach[i] = taps[i] - 1;
        from[i] = begin >= 0 ? begin / s : -((s - 1 - begin) / s);
        count[i] = (begin + j->out[i] + s - 1) / s - from[i];
        phases *= s; /* few: read_pads */
    }
    tl_value *w = split_weight(j, taps);
    tl_value *y = convolve(j, j->x, w, repeat_bias(j, phases), reach, from, count, false);
    return interleave(j, y, from, count);
}

tl_status tl_import_conv_transpose(tl_onnx_call *c)
{
    job j;
    TL_TRY(read_job(c, &j));
    bool strided = false, dilated = false, empty = j.batch == 0;
    for (int i = 0; i < j.spatial; i++) {
        strided |= j.stride[i] > 1;
        dilated |= j.dilation[i] > 1 && j.kernel[i] > 1;
        empty |= j.in[i] == 0 || j.out[i] == 0;
    }
    if (empty)
        return tl_call_unsupported(c, "of an empty tensor");
    bool fits = j.spatial < MOST_SPATIAL || j.group == 1;
    tl_result(c, 0, strided && !dilated && fits ? by_phases(&j) : by_spreading(&j));
    return TL_OK;
}
