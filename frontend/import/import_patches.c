/* frontend/import/import_patches.c: windows of an image as columns and back, pools with norms or positions, and crops. */
#include <math.h>
#include <string.h>
#include "frontend/import/import_rules.h"

enum { MOST_SPATIAL = 3 };

/* |x|^p, averaged over windows and taken times their size, to the power of 1/p. */
tl_status tl_import_lp_pool(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    double p = c->version < 2 ? tl_call_float(c, "p", 2) : (double)tl_call_int(c, "p", 2);
    const int64_t *kernel;
    int count = tl_call_ints(c, "kernel_shape", &kernel);
    double size = 1;
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_dtype(c, x));
    if (count != x->shape.rank - 2 || !(p > 0))
        return tl_call_bad(c, "a window of %d axes, p %g", count, p);
    for (int i = 0; i < count; i++)
        size *= (double)kernel[i];
    x = tl_onnx_emit_with(c, TL_OP_POW, tl_emit1(c, TL_OP_ABS, x), p);
    tl_node *n = tl_onnx_emit_node(c, TL_OP_AVERAGE_POOL, 1, &x);
    tl_copy_attributes(c, n);
    tl_attr_set_int(c->graph, n, "count_include_pad", 1);
    TL_TRY(tl_check_auto_pad(c, n));
    tl_value *sum = tl_onnx_emit_with(c, TL_OP_MUL, tl_emitted(c, n), size);
    tl_result(c, 0, tl_onnx_emit_with(c, TL_OP_POW, sum, 1 / p));
    return TL_OK;
}

tl_status tl_import_global_lp_pool(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    double p = c->version < 2 ? tl_call_float(c, "p", 2) : (double)tl_call_int(c, "p", 2);
    int64_t axes[TL_MAX_RANK];
    int rank;
    TL_TRY(tl_need_rank(c, x, &rank));
    TL_TRY(tl_need_dtype(c, x));
    if (rank < 3 || !(p > 0))
        return tl_call_bad(c, "an input of %d axes, p %g", rank, p);
    for (int i = 2; i < rank; i++)
        axes[i - 2] = i;
    x = tl_onnx_emit_with(c, TL_OP_POW, tl_emit1(c, TL_OP_ABS, x), p);
    x = tl_onnx_emit_reduce(c, TL_OP_REDUCE_SUM, x, axes, rank - 2, true);
    tl_result(c, 0, tl_onnx_emit_with(c, TL_OP_POW, x, 1 / p));
    return TL_OK;
}

/* ---- columns to an image ---- */

typedef struct {
    int spatial;
    int64_t image[MOST_SPATIAL], block[MOST_SPATIAL], steps[MOST_SPATIAL];
    int64_t stride[MOST_SPATIAL], dilation[MOST_SPATIAL], pads[2 * MOST_SPATIAL];
    int64_t pixels, taps, places; /* of the padded image; of a block; of a block in the image */
} layout;

static tl_status measure(tl_onnx_call *c, layout *y)
{
    y->pixels = y->taps = y->places = 1;
    for (int i = 0; i < y->spatial; i++) {
        int64_t padded = y->image[i] + y->pads[i] + y->pads[y->spatial + i];
        int64_t reach = (y->block[i] - 1) * y->dilation[i] + 1;
        if (y->image[i] < 1 || y->image[i] > 1 << 20 || y->block[i] < 1 || y->block[i] > 1 << 12 ||
            padded < reach)
            return tl_call_bad(c, "axis %d: %lld pixels for a block of %lld", i, (long long)padded,
                               (long long)reach);
        y->steps[i] = (padded - reach) / y->stride[i] + 1;
        y->pixels *= padded;
        y->taps *= y->block[i];
        y->places *= y->steps[i];
        if (y->pixels > 1 << 26 || y->taps > 1 << 20)
            return tl_call_unsupported(c, "an image of more than 2^26 pixels");
    }
    return y->taps * y->places <= TL_ONNX_MOST_NUMBERS
               ? TL_OK
               : tl_call_unsupported(c, "more than %d columns", TL_ONNX_MOST_NUMBERS);
}

/* Where tap `tap` of place `place` lies in the padded image. */
static int64_t pixel_of(const layout *y, int64_t tap, int64_t place)
{
    int64_t at[MOST_SPATIAL], pixel = 0;
    for (int i = y->spatial - 1; i >= 0; i--) {
        at[i] = place % y->steps[i] * y->stride[i] + tap % y->block[i] * y->dilation[i];
        place /= y->steps[i];
        tap /= y->block[i];
    }
    for (int i = 0; i < y->spatial; i++)
        pixel = pixel * (y->image[i] + y->pads[i] + y->pads[y->spatial + i]) + at[i];
    return pixel;
}

tl_status tl_import_col2im(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    const int64_t *image, *block;
    int count, block_count;
    layout y = { 0 };
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_dtype(c, x));
    TL_TRY(tl_need_i64(c, 1, &image, &count));
    TL_TRY(tl_need_i64(c, 2, &block, &block_count));
    if (count < 1 || count > MOST_SPATIAL || block_count != count || x->shape.rank != 3)
        return tl_call_bad(c, "a block of %d axes for an image of %d", block_count, count);
    y.spatial = count;
    memcpy(y.image, image, sizeof *image * (size_t)count);
    memcpy(y.block, block, sizeof *block * (size_t)count);
    TL_TRY(tl_call_list(c, "strides", count, 1, 1, y.stride));
    TL_TRY(tl_call_list(c, "dilations", count, 1, 1, y.dilation));
    TL_TRY(tl_call_list(c, "pads", 2 * count, 0, 0, y.pads));
    TL_TRY(measure(c, &y));
    int64_t batch = x->shape.dims[0].extent, columns = y.taps * y.places;
    if (x->shape.dims[1].extent % y.taps != 0 || x->shape.dims[2].extent != y.places)
        return tl_call_bad(c, "%lld columns of %lld, the block says %lld of %lld",
                           (long long)x->shape.dims[2].extent, (long long)x->shape.dims[1].extent,
                           (long long)y.places, (long long)y.taps);
    int64_t channels = x->shape.dims[1].extent / y.taps,
            *pixels = TL_NEW_ARRAY(c->arena, int64_t, columns);
    for (int64_t tap = 0; tap < y.taps; tap++)
        for (int64_t place = 0; place < y.places; place++)
            pixels[tap * y.places + place] = pixel_of(&y, tap, place);
    int64_t wide[] = { batch, channels, columns }, whole[] = { batch, channels, y.pixels };
    tl_value *at = tl_onnx_emit_along(c, tl_onnx_emit_i64(c, pixels, (int)columns), 3, 2);
    tl_value *inputs[] = { tl_onnx_emit_expand(c, tl_onnx_emit_scalar(c, x->dtype, 0), whole, 3),
                           tl_onnx_emit_expand(c, at, wide, 3),
                           tl_onnx_emit_reshape(c, x, wide, 3) };
    tl_node *n = tl_onnx_emit_node(c, TL_OP_SCATTER_ELEMENTS, 3, inputs);
    tl_attr_set_int(c->graph, n, "axis", 2);
    tl_attr_set_string(c->graph, n, "reduction", "add");
    int64_t padded[TL_MAX_RANK] = { batch, channels };
    for (int i = 0; i < count; i++)
        padded[2 + i] = y.image[i] + y.pads[i] + y.pads[count + i];
    tl_value *out = tl_onnx_emit_reshape(c, tl_emitted(c, n), padded, 2 + count);
    for (int i = 0; i < count; i++)
        out = tl_onnx_emit_slice(c, out, 2 + i, y.pads[i], y.image[i]);
    tl_result(c, 0, out);
    return TL_OK;
}

/* ---- positions of a pool's largest elements ---- */

/* The windows side by side, [N, C, places, taps], and where each of their elements lies in the image, [places, taps]: -1 in
 * the padding, which holds the smallest number. */
static tl_value *argmax_positions(tl_onnx_call *c, tl_value *x, const layout *y, bool by_columns)
{
    int64_t batch = x->shape.dims[0].extent, channels = x->shape.dims[1].extent, inside = 1;
    int64_t count = y->places * y->taps, pads[2 * TL_MAX_RANK] = { 0 };
    int rank = x->shape.rank;
    int64_t *pixels = TL_NEW_ARRAY(c->arena, int64_t, count),
            *own = TL_NEW_ARRAY(c->arena, int64_t, count);
    for (int i = 0; i < y->spatial; i++) {
        pads[2 + i] = y->pads[i];
        pads[rank + 2 + i] = y->pads[y->spatial + i];
        inside *= y->image[i];
    }
    for (int64_t place = 0; place < y->places; place++)
        for (int64_t tap = 0; tap < y->taps; tap++) {
            int64_t pixel = pixel_of(y, tap, place), rest = pixel, at = 0, scale = 1;
            bool hits = true;
            for (int i = y->spatial - 1; i >= 0; i--) {
                int64_t padded = y->image[i] + y->pads[i] + y->pads[y->spatial + i];
                int64_t k = rest % padded - y->pads[i];
                rest /= padded;
                hits = hits && k >= 0 && k < y->image[i];
                at = by_columns ? at * y->image[i] + k : at + k * scale;
                scale *= y->image[i];
            }
            pixels[place * y->taps + tap] = pixel;
            own[place * y->taps + tap] = hits ? at : 0;
        }
    double lowest = tl_dtype_is_float(x->dtype) ? -INFINITY : x->dtype == TL_I8 ? -128 : 0;
    tl_value *padded = tl_onnx_emit_pad(c, x, pads, lowest);
    padded = tl_onnx_emit_reshape(c, padded, (int64_t[]){ batch, channels, y->pixels }, 3);
    tl_value *windows =
        tl_onnx_emit_gather(c, TL_OP_GATHER, padded, tl_onnx_emit_i64(c, pixels, (int)count), 2);
    windows =
        tl_onnx_emit_reshape(c, windows, (int64_t[]){ batch, channels, y->places, y->taps }, 4);
    tl_node *n = tl_onnx_emit_node(c, TL_OP_ARGMAX, 1, &windows);
    tl_attr_set_int(c->graph, n, "axis", 3);
    tl_attr_set_int(c->graph, n, "keepdims", 1);
    tl_value *table = tl_onnx_emit_reshape(c, tl_onnx_emit_i64(c, own, (int)count),
                                           (int64_t[]){ 1, 1, y->places, y->taps }, 4);
    table = tl_onnx_emit_expand(c, table, (int64_t[]){ batch, channels, y->places, y->taps }, 4);
    tl_value *at = tl_onnx_emit_gather(c, TL_OP_GATHER_ELEMENTS, table, tl_emitted(c, n), 3);
    at = tl_onnx_emit_reshape(c, at, (int64_t[]){ batch * channels, y->places }, 2);
    /* and in the whole tensor: behind the images before it */
    tl_value *image =
        tl_onnx_emit_with(c, TL_OP_MUL, tl_onnx_emit_range(c, batch * channels), (double)inside);
    return tl_emit2(c, TL_OP_ADD, at, tl_onnx_emit_along(c, image, 2, 0));
}

/* The second result of MaxPool, whose first one is `pooled`. */
tl_status tl_import_pool_positions(tl_onnx_call *c, const tl_value *pooled)
{
    tl_value *x = c->inputs[0];
    const int64_t *kernel;
    layout y = { .spatial = x->shape.rank - 2 };
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_dtype(c, x));
    TL_TRY(tl_need_shape(c, pooled));
    if (y.spatial < 1 || y.spatial > MOST_SPATIAL ||
        (x->dtype != TL_I8 && x->dtype != TL_U8 && !tl_dtype_is_float(x->dtype)))
        return tl_call_unsupported(c, "positions of this input");
    if (tl_call_ints(c, "kernel_shape", &kernel) != y.spatial)
        return tl_call_bad(c, "kernel_shape is not of %d axes", y.spatial);
    memcpy(y.block, kernel, sizeof *kernel * (size_t)y.spatial);
    TL_TRY(tl_call_list(c, "strides", y.spatial, 1, 1, y.stride));
    TL_TRY(tl_call_list(c, "dilations", y.spatial, 1, 1, y.dilation));
    TL_TRY(tl_call_list(c, "pads", 2 * y.spatial, 0, 0, y.pads));
    bool lower = strcmp(tl_call_string(c, "auto_pad", "NOTSET"), "SAME_LOWER") == 0;
    bool same = lower || strcmp(tl_call_string(c, "auto_pad", "NOTSET"), "SAME_UPPER") == 0;
    for (int i = 0; i < y.spatial; i++) { /* as much padding as makes the windows that there are */
        int64_t reach = (y.block[i] - 1) * y.dilation[i] + 1;
        y.image[i] = x->shape.dims[2 + i].extent;
        int64_t needed = (pooled->shape.dims[2 + i].extent - 1) * y.stride[i] + reach;
        int64_t total = needed > y.image[i] ? needed - y.image[i] : 0;
        if (same)
            y.pads[i] = lower ? total - total / 2 : total / 2;
        int64_t after = needed - y.image[i] - y.pads[i];
        y.pads[y.spatial + i] = after > 0 ? after : 0;
    }
    TL_TRY(measure(c, &y));
    int64_t out[TL_MAX_RANK];
    tl_onnx_extents(pooled, out);
    tl_value *at = argmax_positions(c, x, &y, tl_call_int(c, "storage_order", 0) != 0);
    tl_result(c, 1, tl_onnx_emit_reshape(c, at, out, x->shape.rank));
    return TL_OK;
}

/* ---- the middle of it ---- */

tl_status tl_import_center_crop_pad(tl_onnx_call *c)
{
    tl_value *x = c->inputs[0];
    const int64_t *target, *axes;
    int count, axis_count = tl_call_ints(c, "axes", &axes);
    int64_t pads[2 * TL_MAX_RANK] = { 0 };
    TL_TRY(tl_need_shape(c, x));
    TL_TRY(tl_need_dtype(c, x));
    TL_TRY(tl_need_i64(c, 1, &target, &count));
    int rank = x->shape.rank;
    if (count != (axis_count >= 0 ? axis_count : rank))
        return tl_call_bad(c, "%d extents for %d axes", count, axis_count >= 0 ? axis_count : rank);
    for (int i = 0; i < count; i++) {
        int axis = i;
        if (axis_count >= 0)
            TL_TRY(tl_onnx_axis(c, axes[i], rank, &axis));
        int64_t extent = x->shape.dims[axis].extent, missing = target[i] - extent;
        if (target[i] < 0 || target[i] > INT32_MAX)
            return tl_call_bad(c, "%lld elements of axis %d", (long long)target[i], axis);
        if (missing < 0)
            x = tl_onnx_emit_slice(c, x, axis, -missing / 2, target[i]);
        else if (missing > 0) {
            pads[axis] = missing / 2;
            pads[rank + axis] = missing - missing / 2;
        }
    }
    tl_result(c, 0, tl_onnx_emit_pad(c, x, pads, 0));
    return TL_OK;
}
